//! Which cause of stalls grew, where one alone explains most of why more time is lost to slow operations.

use std::collections::BTreeSet;

use super::ComparedLoad;
use crate::{StallCause, Stalls};
use model::record::Run;
use model::units::{Nanos, percent};

/// A cause of the growth from this share on explains it.
const EXPLAINS: f64 = 0.5;
/// So many times as much is lost,
const TIMES: f64 = 2.0;
/// and so much more in each minute: less is by chance.
const LEAST_NS: f64 = 1e9;
/// If more of the slow time than this is of operations that are not recorded one by one, nothing is compared.
const MOST_UNRECORDED: f64 = 0.1;

/// The cause that grew most, in the load whose operations lost most more to episodes of slow operations.
#[derive(Debug, Clone, PartialEq)]
pub struct GrownStalls {
    /// The load in words.
    pub load: String,
    /// What grew; absent where that is unexplained.
    pub cause: Option<StallCause>,
    /// What operations took beyond what is usual in their run because of it, together, in nanoseconds of each minute: in the
    /// baseline, and in the other run.
    pub of_cause_ns: [f64; 2],
    /// The same of all causes.
    pub of_all_ns: [f64; 2],
}

/// Time lost to episodes in the steps of a load, in nanoseconds of each minute.
struct Lost {
    all_ns: f64,
    by_cause: Vec<(Option<StallCause>, f64)>,
}

impl Lost {
    /// Absent where slow operations were not recorded, or too few of them.
    fn of(run: &Run, load: &ComparedLoad, side: usize) -> Option<Self> {
        let indexes: BTreeSet<u32> = load.steps(run, side).map(|step| step.index).collect();
        let places = (0..run.steps.len()).filter(|place| indexes.contains(&run.steps[*place].index));
        let (mut window_ns, mut by_cause) = (0.0, Vec::<(Option<StallCause>, f64)>::new());
        for place in places {
            let step = &run.steps[place];
            if step.intervals.iter().all(|interval| interval.moments.is_none()) {
                return None;
            }
            window_ns += step.window.duration_ns as f64;
            let stalls = Stalls::of(run, place);
            // Of a long run not all are recorded one by one.
            if stalls.as_ref().is_some_and(|stalls| stalls.unrecorded_share > MOST_UNRECORDED) {
                return None;
            }
            for share in stalls.iter().flat_map(|stalls| stalls.causes.iter().map(|share| (share, stalls.beyond))) {
                let (share, beyond) = share;
                let ns = share.share * beyond.0 as f64;
                match by_cause.iter_mut().find(|(cause, _)| *cause == share.cause) {
                    Some((_, sum)) => *sum += ns,
                    None => by_cause.push((share.cause.clone(), ns)),
                }
            }
        }
        let minutes = window_ns / 60e9;
        by_cause.iter_mut().for_each(|(_, ns)| *ns /= minutes);
        (minutes > 0.0).then(|| Self { all_ns: by_cause.iter().map(|(_, ns)| ns).sum(), by_cause })
    }

    fn of_cause(&self, cause: Option<&StallCause>) -> f64 {
        let found = self.by_cause.iter().find(|(known, _)| known.as_ref() == cause);
        found.map_or(0.0, |(_, ns)| *ns)
    }
}

impl GrownStalls {
    /// Of the loads of a pair; absent where no more is lost, or no cause explains most of it.
    pub(super) fn of(runs: [&Run; 2], loads: &[ComparedLoad]) -> Option<Self> {
        let grew = |grown: &Self| grown.of_all_ns[1] - grown.of_all_ns[0];
        let all = loads.iter().filter_map(|load| Self::of_load(runs, load));
        all.max_by(|one, other| grew(one).total_cmp(&grew(other)))
    }

    fn of_load(runs: [&Run; 2], load: &ComparedLoad) -> Option<Self> {
        let (before, after) = (Lost::of(runs[0], load, 0)?, Lost::of(runs[1], load, 1)?);
        let growth = after.all_ns - before.all_ns;
        if growth < LEAST_NS || after.all_ns < TIMES * before.all_ns {
            return None;
        }
        let grew = |cause: &Option<StallCause>| after.of_cause(cause.as_ref()) - before.of_cause(cause.as_ref());
        let (cause, _) = after.by_cause.iter().max_by(|one, other| grew(&one.0).total_cmp(&grew(&other.0)))?;
        let of_cause_ns = [&before, &after].map(|lost| lost.of_cause(cause.as_ref()));
        let of_all_ns = [before.all_ns, after.all_ns];
        let explains = of_cause_ns[1] - of_cause_ns[0] >= EXPLAINS * growth;
        explains.then(|| Self { load: load.name.clone(), cause: cause.clone(), of_cause_ns, of_all_ns })
    }

    /// `At 8 sessions stalls of `new` cost operations 40.0 s a minute, instead of 0 s. Of the difference, 90.0 % is "a checkpoint of the
    /// server", which grew from 0 s to 36.0 s.`
    pub fn sentence(&self, name: &str) -> String {
        let Self { load, cause, of_cause_ns, of_all_ns } = self;
        let time = |ns: f64| if ns < 1.0 { "0 s".to_owned() } else { Nanos(ns.round() as u64).to_string() };
        let ([before, after], [all_before, all_after]) = (of_cause_ns.map(time), of_all_ns.map(time));
        let share = (of_cause_ns[1] - of_cause_ns[0]) / (of_all_ns[1] - of_all_ns[0]);
        let cause = cause.as_ref().map_or_else(|| "unexplained".to_owned(), StallCause::words);
        format!(
            "At {load} stalls of `{name}` cost operations {all_after} a minute, instead of {all_before}. Of the difference, {} % is \
             \"{cause}\", which grew from {before} to {after}.",
            percent(share.min(1.0))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Compared;
    use model::record::Moment;
    use model::record::sample::stalls::{quiet, stall};

    const SECOND: u64 = 1_000_000_000;

    /// 20 s of 32 sessions that were held up for so many milliseconds, by a device that was silent.
    fn run(id: &str, ms: u64) -> Run {
        let mut run = quiet();
        (run.id, run.name) = (id.to_owned(), id.to_owned());
        if ms > 0 {
            let silent = |moment: &mut Moment| (moment.completed, moment.device_us) = (Some(0), Some(0));
            stall(&mut run, (7 * SECOND, ms * 1_000_000), silent);
        }
        run
    }

    fn grown(old: &Run, new: &Run) -> Option<GrownStalls> {
        Compared::of(&[old, new], 0, 0.05).unwrap().pairs.remove(0).grown_stalls
    }

    #[test]
    fn the_cause_that_cost_most_more_is_named() {
        let (old, new) = (run("old", 0), run("new", 1_500));
        let found = grown(&old, &new).unwrap();
        assert_eq!((found.cause.as_ref(), found.of_all_ns[0]), (Some(&StallCause::DeviceSilent), 0.0));
        // 32 sessions for 1.5 s in a third of a minute.
        assert!((found.of_all_ns[1] - 144e9).abs() < 3e9, "{found:?}");
        let compared = Compared::of(&[&old, &new], 0, 0.05).unwrap();
        let verdict = compared.verdict(&compared.pairs[0]);
        let says = "\"the device completed no request\", which grew from 0 s to ";
        assert!(verdict.contains("stalls of `new` cost operations ") && verdict.contains(says), "{verdict}");
        assert_eq!(grown(&new, &old), None, "what became less has not grown");
        assert_eq!(grown(&new, &run("more", 2_000)), None, "less than twice as much");
        let mut unseen = run("unseen", 0);
        unseen.steps[0].intervals.iter_mut().for_each(|interval| interval.moments = None);
        assert_eq!(grown(&unseen, &new), None, "nobody looked for stalls");
    }
}
