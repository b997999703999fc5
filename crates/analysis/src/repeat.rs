//! One hiccup decides nothing: which load of a sweep is to be measured again.

use super::load_line::Verdicts;
use super::{LatencyTarget, Series, judge_all};
use model::record::{Run, Step};

/// The step whose load is to be measured again at once, now that the last step of `run` has ended: it did not keep `limits`
/// although a larger load of its series has. No load is measured more than [`super::MAX_VERDICTS`] times, nor when the verdicts
/// on it cannot change any more.
pub fn to_repeat<'a>(run: &'a Run, limits: &[LatencyTarget]) -> Option<&'a Step> {
    let last = run.steps.last()?;
    let series =
        Series::of(run).into_iter().find(|series| series.steps.iter().any(|step| std::ptr::eq(*step, last)))?;
    let load = |step: &Step| step.load.rate_operations_per_s.or(step.load.sessions.map(f64::from));
    let mut verdicts = Verdicts::default();
    for step in &series.steps {
        if let (Some(rate), Some(outcome)) = (load(step), judge_all(run.workload(), step, limits)) {
            verdicts.add_step(rate, outcome, step);
        }
    }
    let rate = verdicts.hiccup()?;
    series.steps.into_iter().find(|step| load(step) == Some(rate))
}

#[cfg(test)]
mod tests {
    use super::super::load_line::judge::tests::open;
    use super::*;
    use model::record::{Load, Workload, sample};

    fn asked(run: &Run) -> Option<&str> {
        to_repeat(run, &[LatencyTarget::default()]).map(|step| step.label.as_str())
    }

    /// Rates with a median response in microseconds each; p99 is 2.4 times that, and the limit 5 ms.
    fn rates(steps: &[(u64, u64)]) -> Run {
        let mut run = sample::sweep(60);
        run.load = Load::foreign(Workload::Io);
        run.steps = steps.iter().map(|(rate, us)| open(*rate, *us)).collect();
        run
    }

    #[test]
    fn a_rate_that_failed_below_one_that_passed_is_measured_again_at_once() {
        assert_eq!(asked(&rates(&[(1_000, 400), (2_000, 9_000)])), None, "nothing larger has passed yet");
        assert_eq!(asked(&rates(&[(1_000, 400), (2_000, 9_000), (4_000, 500)])), Some("r2000"));
        assert_eq!(asked(&rates(&[(4_000, 500), (2_000, 9_000)])), Some("r2000"), "in any order");
    }

    #[test]
    fn it_is_measured_until_the_verdicts_on_it_are_settled() {
        let mut steps = vec![(1_000, 400), (2_000, 9_000), (4_000, 500), (2_000, 500)];
        assert_eq!(asked(&rates(&steps)), Some("r2000"), "one for and one against");
        steps.push((2_000, 500));
        assert_eq!(asked(&rates(&steps)), None, "it passes");
        steps[3].1 = 9_000;
        assert_eq!(asked(&rates(&steps[..4])), None, "two of three cannot be outvoted");
    }

    #[test]
    fn storage_that_stood_still_is_not_asked_again_until_it_has_come_round() {
        let mut run = rates(&[(1_000, 400), (2_000, 9_000), (4_000, 500)]);
        for interval in run.steps[1].intervals.iter_mut().filter(|interval| !interval.warmup).take(4) {
            interval.counters.operations = Some(0);
        }
        assert_eq!(asked(&run), None);
    }

    #[test]
    fn sessions_are_loads_too_and_each_series_has_its_own() {
        let mut run = sample::sweep(60);
        // 32 sessions miss the limit, and nothing above them keeps it.
        assert_eq!(asked(&run), None);
        run.steps[1].waits = run.steps[5].waits.clone();
        assert_eq!(asked(&run), Some("s2_t1"));
        run.steps[1].parameters.insert("WORK_UNIT".to_owned(), "8".to_owned());
        assert_eq!(asked(&run), None, "of another curve");
    }
}
