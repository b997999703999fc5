//! Whether a limiter holds a rate or the device itself does, by what comes through in the first moment after a pause.
//!
//! A limiter saves what is not used for a while: the kernel's throttle a tenth of a second of it, clouds seconds or hours. So after a
//! pause it lets a burst through. A device saves nothing.

use super::{Ceiling, Confidence, Grounds, Limit, cap_of, rate};
use crate::load_line::find_limits;
use crate::{Finding, LatencyTarget, Series};
use model::record::{Load, PulseTest, Run};
use model::units::Nanos;

/// The kernel's throttle lets 5.3 times its rate or more through in the first 10 ms, and a disk without one 1.13 times or less.
const BURST: f64 = 3.0;
const NO_MORE: f64 = 1.5;
/// Less than that is no answer: a disk gave 0.41 times its rate or more, and where requests take longer than a pulse nothing ends in it.
const TOO_LITTLE: f64 = 0.3;
/// Fewer pulses, or of them fewer than two of three that agree, show nothing.
const MIN_PULSES: usize = 3;
const AGREE: (usize, usize) = (2, 3);
/// A burst is this many requests at least. To see that there is none, so many must end in a pulse at the steady rate: chance alone
/// halves or doubles a smaller number.
const MIN_BURST_REQUESTS: u64 = 5;
const MIN_STEADY_REQUESTS: f64 = 4.0;

/// What pulses say of a limit.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Pulsed {
    /// That.
    pub verdict: PulseVerdict,
    /// Time without load before each of them.
    pub pause: Nanos,
    /// How many times the steady rate came through: the median of them. Absent where none was whole.
    pub median_ratio: Option<f64>,
    /// How many agree with the verdict, of how many.
    pub agree: (usize, usize),
}

/// What pulses say of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PulseVerdict {
    /// A burst came through after a pause: something saves credit, and only software does.
    Burst,
    /// No more came through than without a pause.
    NoMore,
    /// Neither is clear.
    Unknown,
}

impl Pulsed {
    fn of(test: &PulseTest) -> Self {
        let PulseTest { pause_ns, pulses, .. } = test;
        let is_enough = test.steady_requests() >= MIN_STEADY_REQUESTS;
        let burst = pulses.iter().filter(|pulse| pulse.ratio >= BURST && pulse.requests >= MIN_BURST_REQUESTS).count();
        let no_more = pulses.iter().filter(|pulse| is_enough && (TOO_LITTLE..=NO_MORE).contains(&pulse.ratio)).count();
        let (all, answers) = (pulses.len(), pulses.iter().filter(|pulse| pulse.ratio >= TOO_LITTLE).count());
        let agree = |some: usize| answers >= MIN_PULSES && some * AGREE.1 >= answers * AGREE.0;
        let (verdict, agreeing) = match () {
            () if agree(burst) => (PulseVerdict::Burst, burst),
            // Whatever holds a pulse up makes it smaller, and nothing makes it larger: one burst is too many for a device.
            () if agree(no_more) && burst == 0 => (PulseVerdict::NoMore, no_more),
            () => (PulseVerdict::Unknown, 0),
        };
        Self { verdict, pause: Nanos(*pause_ns), median_ratio: test.median_ratio(), agree: (agreeing, all) }
    }
}

/// A limit, with what pulses say of it where they were sent.
pub(super) fn decided(run: &Run, series: &Series<'_>, found: Ceiling) -> Ceiling {
    let is_open = found.is_cap() || matches!(found.limit, Limit::Unclear | Limit::Device);
    if !is_open || run.imported.is_some() {
        return found;
    }
    let Some(test) = series.steps.iter().rev().find_map(|step| step.pulse_test.as_ref()) else { return found };
    let pulsed = Pulsed::of(test);
    let limit = match pulsed.verdict {
        PulseVerdict::Burst if !found.is_cap() => cap_of(series.steps.last()),
        // Seconds that are the same to the request are not taken for a device's: some limiters save nothing.
        PulseVerdict::NoMore if !matches!(found.grounds, Some(Grounds::Exact { .. })) => Limit::Device,
        PulseVerdict::Burst | PulseVerdict::NoMore | PulseVerdict::Unknown => found.limit,
    };
    // A published limit is no limit of a device.
    let like = found.like.filter(|_| limit != Limit::Device);
    Ceiling { limit, like, pulsed: Some(pulsed), ..found }
}

/// The load whose pulses would tell a limiter from the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PulseWanted {
    /// Position of its step in the run.
    pub step: usize,
    /// Its rate in requests per second, disturbed seconds left out; above 0.
    pub steady_requests_per_s: f64,
}

/// The largest load of a run, if its steps show a limit and leave open what holds it; of a calibration, of the reads whose limit they show.
pub fn pulse_wanted(run: &Run) -> Option<PulseWanted> {
    let all = Series::of(run);
    let is_open = |found: &Ceiling| {
        let looks_like_one = found.limit == Limit::Device && found.confidence() == Some(Confidence::Uncertain);
        found.is_cap() || found.limit == Limit::Unclear || looks_like_one
    };
    let open = find_limits(run, &LatencyTarget::default()).into_iter().find_map(|finding| match finding {
        Finding::Ceiling(found) if is_open(&found) => Some(found.series),
        _ => None,
    })?;
    let series = all.iter().find(|series| series.name == open)?;
    if all.len() > 1 && !matches!(run.load, Load::Calibrate(_)) {
        return None;
    }
    let last = *series.steps.last()?;
    let step = run.steps.iter().position(|step| std::ptr::eq(step, last))?;
    let steady_requests_per_s = rate(run, last).filter(|rate| *rate > 0.0)?;
    Some(PulseWanted { step, steady_requests_per_s })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Message, Rule, analyse};
    use model::record::sample::requests;
    use model::record::{ChannelKind, ChannelStats, Clock, Imported};

    fn ceiling(run: &Run) -> Ceiling {
        let found = analyse(run, &LatencyTarget::default()).into_iter().find_map(|finding| match finding {
            Finding::Ceiling(found) => Some(found),
            _ => None,
        });
        found.unwrap()
    }

    /// A sweep that comes to 5,000 requests/s and stays there, with pulses of so many requests in 10 ms.
    fn pulsed(requests: &[u64]) -> Run {
        let mut run = requests::sweep();
        let mut test = PulseTest::new(700_000_000, 10_000_000, 5_000.0);
        requests.iter().for_each(|requests| test.push(*requests));
        run.steps.last_mut().unwrap().pulse_test = Some(test);
        run
    }

    #[test]
    fn the_largest_load_of_a_limit_is_worth_pulses() {
        let mut run = requests::sweep();
        let wanted = pulse_wanted(&run).unwrap();
        assert_eq!((wanted.step, wanted.steady_requests_per_s), (run.steps.len() - 1, 5_000.0));
        run.steps.truncate(1);
        assert_eq!(pulse_wanted(&run), None, "one load shows no limit");
    }

    #[test]
    fn without_pulses_a_limit_may_be_the_devices_own() {
        let found = ceiling(&requests::sweep());
        assert!(found.is_cap() && found.pulsed.is_none(), "{found:?}");
        assert!(found.sentence().contains("a limit, set for it or its own"), "{}", found.sentence());
    }

    #[test]
    fn a_tag_of_other_volumes_counts_more_than_a_published_rate() {
        let like = |tag: &str| {
            let mut run = requests::sweep();
            run.tags.insert("disk".to_owned(), tag.to_owned());
            ceiling(&run).like
        };
        assert_eq!(["p30", "P30x2"].map(like), [Some("Azure P30"); 2]);
        assert_eq!(["p80x2", "p300", "our array"].map(like), [None; 3]);
    }

    #[test]
    fn a_burst_after_a_pause_is_a_limit_set_by_software() {
        // What the disk was too busy to answer is no answer.
        let held_up = &[500, 0, 500, 7, 490];
        for requests in
            [&[500, 490, 480, 500, 335][..], held_up, &[500, 500, 500, 500, 10], &[160, 160, 160, 40, 40, 160]]
        {
            let found = ceiling(&pulsed(requests));
            assert_eq!(found.pulsed.unwrap().verdict, PulseVerdict::Burst, "{requests:?}");
            assert_eq!((found.limit, found.rule()), (Limit::RequestsOrThroughput, Rule::CeilingLimit));
        }
        let sentence = ceiling(&pulsed(&[500, 490, 480, 500, 335])).sentence();
        assert!(
            sentence.contains(": a limit set by software, as published for Azure P30: after a pause"),
            "{sentence}"
        );
        assert!(sentence.contains("of 0.7 s it lets 9.8 times its rate through (5 of 5 pulses)"), "{sentence}");
    }

    #[test]
    fn a_rate_that_a_pause_does_not_raise_is_the_devices_unless_its_seconds_are_the_same() {
        for requests in [&[50, 51, 40, 55, 21][..], &[75, 75, 15, 15, 100]] {
            let mut run = pulsed(requests);
            let found = ceiling(&run);
            assert!(found.is_cap() && !found.is_set_by_software(), "{requests:?}");
            run.steps.iter_mut().for_each(|step| step.intervals.clear());
            let found = ceiling(&run);
            assert_eq!((found.limit, found.rule()), (Limit::Device, Rule::CeilingDevice), "{requests:?}");
            assert_eq!((found.like, found.confidence()), (None, Some(Confidence::Likely)));
        }
        let mut run = pulsed(&[50, 51, 40, 55, 21]);
        let words = "after a pause of 0.7 s it lets no more through than before (1.0 times, 5 of 5 pulses)";
        let sentence = ceiling(&run).sentence();
        let either = "a limit that saves no credit, or a device whose service is as even";
        assert!(sentence.contains(either) && sentence.contains(words), "{sentence}");
        let first = crate::opening::at_ceiling(&ceiling(&run));
        assert!(first.starts_with("a limit or the device itself, at 5,000 requests/s"), "{first}");
        run.steps.iter_mut().for_each(|step| step.intervals.clear());
        let sentence = ceiling(&run).sentence();
        assert!(sentence.contains(words), "{sentence}");
        assert!(!sentence.contains("a limit,") && !sentence.contains("set by software"), "{sentence}");
    }

    #[test]
    fn behind_an_nfs_server_no_device_is_seen() {
        let mut run = pulsed(&[50, 51, 40, 55, 21]);
        run.steps.iter_mut().for_each(|step| {
            step.intervals.clear();
            step.channels = vec![ChannelStats { kind: ChannelKind::Connection, ..ChannelStats::default() }];
        });
        let found = ceiling(&run);
        assert_eq!((found.limit, found.rule()), (Limit::FileServer, Rule::CeilingServer));
        let first = crate::opening::at_ceiling(&found);
        assert!(first.starts_with("the way to the server, it itself, or what it reads from, at 5,000"), "{first}");
    }

    #[test]
    fn pulses_that_do_not_agree_or_are_too_few_leave_it_open() {
        let not_whole: &[u64] = &[];
        let between = &[100, 90, 110, 120, 100];
        let disagree = &[500, 500, 500, 50, 50];
        let held_up = &[500, 40, 40, 40, 40];
        for requests in [not_whole, &[500, 500], &[50, 50], between, disagree, held_up, &[0, 0, 0, 0, 0]] {
            let found = ceiling(&pulsed(requests));
            assert_eq!(found.pulsed.unwrap().verdict, PulseVerdict::Unknown, "{requests:?}");
            assert_eq!(found.limit, Limit::RequestsOrThroughput, "{requests:?}");
            let sentence = found.sentence();
            assert!(sentence.contains("a limit, set for it or its own"), "{sentence}");
            assert!(sentence.contains("whether software sets it"), "{sentence}");
        }
    }

    #[test]
    fn a_few_requests_in_a_pulse_show_no_device_and_only_a_clear_burst() {
        let slow = |requests: u64| {
            let mut test = PulseTest::new(700_000_000, 20_000_000, 95.0);
            (0..5).for_each(|_| test.push(requests));
            Pulsed::of(&test).verdict
        };
        assert_eq!(
            [1, 2, 4, 9].map(slow),
            [PulseVerdict::Unknown, PulseVerdict::Unknown, PulseVerdict::Unknown, PulseVerdict::Burst]
        );
    }

    #[test]
    fn an_imported_sweep_has_a_limit_and_no_more() {
        let mut run = pulsed(&[500; 5]);
        run.imported = Some(Imported { files: Vec::new(), clock: Clock::Utc, not_understood: Vec::new() });
        let found = ceiling(&run);
        assert!(found.pulsed.is_none(), "{found:?}");
    }
}
