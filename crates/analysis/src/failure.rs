//! What a failure cost a load that went on: how long nothing was completed, how far behind it fell, and when it was as before.
//!
//! The instants of the failure and of its recovery come from the command that caused them, on the clock of the load. Everything else is
//! in the record: slow operations with their own times, and the seconds.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Stalls;
use model::record::{Interval, LONG_NS, Run, SlowOperation, Step};
use model::units::Nanos;

/// A second is as before where its p99 is at most so many times that of the seconds before the failure, or their highest, unless a
/// limit is named,
const TIMES_P99: u64 = 2;
/// and it has no less than this share of their operations,
const OF_RATE: f64 = 0.9;
/// give or take so many times what arrivals at random differ by.
const BY_CHANCE: f64 = 3.0;
/// A pause delays nearly all operations that were due within it, or all sessions of a load without a rate.
const NEARLY_ALL: f64 = 0.7;
/// Its instants are noted a moment before a failure begins: operations that were under way then count.
const UNDER_WAY_NS: u64 = 1_000_000_000;

/// When it failed and recovered, from the start of the step's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureMarks {
    /// When the failure was caused.
    pub failed: Nanos,
    /// When it was ended, if that was noted.
    pub recovered: Option<Nanos>,
    /// The p99 that is as before; else it follows from the seconds before.
    pub p99: Option<Nanos>,
}

/// Time without a completed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Pause {
    /// There was none: some operations at most were held up.
    None,
    /// One, known to its instants.
    Seen {
        /// From the start of the window to when the first operation that waited was due.
        from_ns: u64,
        /// From there until one was completed again.
        length_ns: u64,
    },
    /// One of at least that long: whole seconds have no completion, and its instants were not recorded.
    AtLeast {
        /// Its length.
        length_ns: u64,
    },
}

/// What a usual second was like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct UsualSecond {
    /// Operations per second.
    pub rate_per_s: f64,
    /// Median of the seconds' 99th percentiles of response, in nanoseconds.
    pub p99_ns: u64,
    /// The highest of them.
    pub highest_p99_ns: u64,
}

/// What a failure cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailureCost {
    /// From the start of the window, in nanoseconds.
    pub failed_ns: u64,
    /// The same of the recovery, if it was noted.
    pub recovered_ns: Option<u64>,
    /// Whether operations were due at a rate. Without one, those that would have come meanwhile are not counted.
    pub has_rate: bool,
    /// Before the failure; unknown where less than one second of the window was before it.
    pub before: Option<UsualSecond>,
    /// The longest.
    pub pause: Pause,
    /// The longest time of one operation, from due to finished or given up, in nanoseconds.
    pub longest_ns: Option<u64>,
    /// Most operations that were due and not finished at the same time, as far as slow ones were recorded.
    pub backlog: Option<u64>,
    /// From the recovery, else the failure, until the last operation that was held up had ended, in nanoseconds.
    pub gone_after_ns: Option<u64>,
    /// From the recovery, else the failure, until seconds are as before, to the end of the window; none where they never are.
    pub as_before_after_ns: Option<u64>,
    /// Operations of the window that failed.
    pub errors: u64,
    /// The same by their reasons, where those are recorded.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Operations that never ended.
    pub unended: u64,
    /// What held operations up, where the record shows it.
    pub cause: Option<String>,
}

impl FailureCost {
    /// Of the only step of a run; none where it has no window, or the failure is outside it.
    pub fn of(run: &Run, marks: FailureMarks) -> Option<Self> {
        let [step] = run.steps.as_slice() else { return None };
        let warmup_ns = step.window.warmup_ns;
        let end_ns = warmup_ns.saturating_add(step.window.duration_ns);
        if !(warmup_ns..end_ns).contains(&marks.failed.0) {
            return None;
        }
        let from_ns = marks.recovered.unwrap_or(marks.failed).0;
        let inside: Vec<&Interval> = step.intervals.iter().filter(|interval| !interval.warmup).collect();
        let before = usual(inside.iter().copied().filter(|second| end_of(second) <= marks.failed.0));
        let episode = Episode::of(run, step, marks);
        let slow = episode.as_ref().map(|episode| episode.slow.as_slice()).unwrap_or_default();
        let pause = pause(step, marks, before, slow, &inside);
        let unended: u64 = step.outstanding.iter().map(|one| one.unended.count()).sum();
        let given_up = step.outstanding.iter().filter_map(|one| one.unended.max_ns()).max();
        let longest_ns = slow.iter().map(|one| one.response_ns).chain(given_up).max();
        let gone = slow.iter().map(|one| one.ended_ns).max().filter(|_| unended == 0);
        let operations = step.operations.iter();
        let mut errors_by_kind = step.failed_connects.clone();
        for transactions in operations.clone().filter_map(|one| one.transactions.as_ref()) {
            transactions
                .failures
                .iter()
                .for_each(|(kind, more)| *errors_by_kind.entry(kind.clone()).or_default() += more);
        }
        Some(Self {
            failed_ns: marks.failed.0 - warmup_ns,
            recovered_ns: marks.recovered.map(|at| at.0.saturating_sub(warmup_ns)),
            has_rate: step.load.rate_operations_per_s.is_some(),
            before,
            pause,
            longest_ns,
            backlog: episode.as_ref().map(|episode| backlog(&episode.slow)),
            gone_after_ns: gone.map(|at_ns| at_ns.saturating_sub(from_ns)),
            as_before_after_ns: before.and_then(|before| as_before(&inside, from_ns, before, marks)),
            errors: operations.map(|one| one.errors).sum::<u64>()
                + step.outstanding.iter().map(|one| one.errors).sum::<u64>(),
            errors_by_kind,
            unended,
            cause: episode.and_then(|episode| episode.cause),
        })
    }

    /// The length of the pause, as far as it is known: nothing where there was none.
    pub fn pause_ns(&self) -> u64 {
        match self.pause {
            Pause::None => 0,
            Pause::Seen { length_ns, .. } | Pause::AtLeast { length_ns } => length_ns,
        }
    }
}

/// The operations that the failure held up.
struct Episode<'a> {
    slow: Vec<&'a SlowOperation>,
    cause: Option<String>,
}

impl<'a> Episode<'a> {
    /// The longest one that goes on after the failure and began before the recovery was over.
    fn of(run: &Run, step: &'a Step, marks: FailureMarks) -> Option<Self> {
        let warmup_ns = step.window.warmup_ns;
        let stalls = Stalls::of(run, 0)?;
        let failed_ns = marks.failed.0 - warmup_ns;
        let recovered_ns = marks.recovered.map_or(u64::MAX, |at| at.0.saturating_sub(warmup_ns));
        let is_of_it = |from_ns: u64, until_ns: u64| {
            until_ns > failed_ns
                && from_ns.saturating_add(UNDER_WAY_NS) >= failed_ns
                && from_ns <= recovered_ns.saturating_add(UNDER_WAY_NS)
        };
        let episodes =
            stalls.episodes.iter().filter(|one| is_of_it(one.from.0, one.from.0.saturating_add(one.length.0)));
        let longest = episodes.max_by_key(|one| one.length)?;
        let (from_ns, until_ns) = (longest.from.0 + warmup_ns, longest.from.0 + warmup_ns + longest.length.0);
        let all = step.intervals.iter().flat_map(|interval| interval.slow.iter().flat_map(|slow| &slow.kept));
        let is_in_it = |one: &&SlowOperation| {
            one.response_ns >= LONG_NS && one.ended_ns > from_ns && one.ended_ns <= until_ns && one.due_ns() >= from_ns
        };
        let mut slow: Vec<&SlowOperation> = all.filter(is_in_it).collect();
        slow.sort_by_key(|one| one.ended_ns);
        let cause = longest.blame.as_ref().map(|blame| blame.cause.words());
        (!slow.is_empty()).then_some(Self { slow, cause })
    }
}

fn end_of(second: &Interval) -> u64 {
    second.offset_ns.saturating_add(second.duration_ns)
}

fn p99_of(second: &Interval) -> Option<u64> {
    second.response.quantiles_ns(&[0.99])[0]
}

fn usual<'a>(seconds: impl Iterator<Item = &'a Interval>) -> Option<UsualSecond> {
    let (mut count, mut time_ns, mut p99s) = (0_u64, 0_u64, Vec::new());
    for second in seconds {
        count += second.response.count();
        time_ns += second.duration_ns;
        p99s.extend(p99_of(second));
    }
    p99s.sort_unstable();
    let (p99_ns, highest_p99_ns) = (*p99s.get(p99s.len() / 2)?, *p99s.last()?);
    Some(UsualSecond { rate_per_s: count as f64 / (time_ns as f64 / 1e9), p99_ns, highest_p99_ns })
}

fn pause(
    step: &Step,
    marks: FailureMarks,
    before: Option<UsualSecond>,
    slow: &[&SlowOperation],
    inside: &[&Interval],
) -> Pause {
    // In the order in which they ended: between two of them nothing was completed, if nearly all that was due waited.
    let first_due_ns = slow.iter().map(|one| one.due_ns()).min();
    let starts = first_due_ns.into_iter().chain(slow.iter().map(|one| one.ended_ns));
    let gaps = starts
        .zip(slow.iter().map(|one| one.ended_ns))
        .map(|(from_ns, until_ns)| (until_ns.saturating_sub(from_ns), from_ns));
    let longest = gaps.max();
    let silent_ns = silent_ns(marks, inside);
    if let Some((length_ns, from_ns)) = longest.filter(|(length_ns, _)| *length_ns >= silent_ns) {
        // What was due in it, or began to wait before.
        let waited: f64 = slow.iter().filter(|one| one.due_ns() <= from_ns + length_ns).map(|one| one.stands_for).sum();
        let of_rate =
            step.load.rate_operations_per_s.or(before.filter(|_| step.load.sessions.is_none()).map(|it| it.rate_per_s));
        let all = match of_rate {
            Some(rate_per_s) => rate_per_s * length_ns as f64 / 1e9,
            None => f64::from(step.load.sessions.unwrap_or(1)),
        };
        if waited >= NEARLY_ALL * all {
            return Pause::Seen { from_ns: from_ns.saturating_sub(step.window.warmup_ns), length_ns };
        }
    }
    if silent_ns > 0 { Pause::AtLeast { length_ns: silent_ns } } else { Pause::None }
}

/// The longest time of seconds after the failure in which nothing was completed.
fn silent_ns(marks: FailureMarks, inside: &[&Interval]) -> u64 {
    let (mut longest_ns, mut now_ns) = (0, 0);
    for second in inside.iter().filter(|second| second.offset_ns >= marks.failed.0) {
        now_ns = if second.response.count() == 0 { now_ns + second.duration_ns } else { 0 };
        longest_ns = longest_ns.max(now_ns);
    }
    longest_ns
}

/// Most operations at the same instant that were due and had not ended.
fn backlog(slow: &[&SlowOperation]) -> u64 {
    let mut changes: Vec<(u64, f64)> = Vec::new();
    for one in slow {
        changes.extend([(one.due_ns(), one.stands_for), (one.ended_ns, -one.stands_for)]);
    }
    changes.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let (mut now, mut most) = (0.0_f64, 0.0_f64);
    for (_, change) in changes {
        now += change;
        most = most.max(now);
    }
    most.round() as u64
}

/// How long after an instant the last second ended that was not as before; none where no whole second follows it.
fn as_before(inside: &[&Interval], from_ns: u64, before: UsualSecond, marks: FailureMarks) -> Option<u64> {
    let highest_ns = before.p99_ns.saturating_mul(TIMES_P99).max(before.highest_p99_ns);
    let most_ns = marks.p99.map_or(highest_ns, |p99| p99.0);
    // The last one may be short.
    let whole_ns = inside.iter().map(|second| second.duration_ns).max()?;
    let seconds = inside.iter().filter(|second| end_of(second) > from_ns && second.duration_ns == whole_ns);
    let is_worse = |second: &Interval| {
        let usual = before.rate_per_s * second.duration_ns as f64 / 1e9;
        let has_fewer = (second.response.count() as f64) < OF_RATE * usual - BY_CHANCE * usual.sqrt();
        has_fewer || p99_of(second).is_none_or(|p99_ns| p99_ns > most_ns)
    };
    let (mut since_ns, mut is_as_before) = (from_ns, false);
    for second in seconds {
        is_as_before = !is_worse(second);
        if !is_as_before {
            since_ns = end_of(second);
        }
    }
    is_as_before.then(|| since_ns.saturating_sub(from_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample::stalls::{quiet, stall};

    const SECOND: u64 = 1_000_000_000;

    /// A failure at second 7 of the window that holds all sessions up for so long.
    fn failed_for(length_ns: u64) -> (Run, FailureMarks) {
        let mut run = quiet();
        stall(&mut run, (7 * SECOND, length_ns), |_| ());
        let warmup_ns = run.steps[0].window.warmup_ns;
        let at = |ns: u64| Nanos(ns + warmup_ns);
        (run, FailureMarks { failed: at(7 * SECOND), recovered: Some(at(7 * SECOND + length_ns)), p99: None })
    }

    #[test]
    fn a_pause_is_as_long_as_it_was() {
        for length_ns in [SECOND / 2, 700_000_000, 3 * SECOND] {
            let (run, marks) = failed_for(length_ns);
            let cost = FailureCost::of(&run, marks).unwrap();
            assert_eq!(cost.pause, Pause::Seen { from_ns: 7 * SECOND, length_ns });
            assert_eq!((cost.longest_ns, cost.backlog), (Some(length_ns), Some(32)));
            // The sessions ended one after the other, 10 µs apart.
            assert_eq!(cost.gone_after_ns, Some(310_000));
            assert!((cost.before.unwrap().rate_per_s - 8_000.0).abs() < 100.0, "{cost:?}");
        }
    }

    #[test]
    fn where_some_operations_go_on_there_is_no_pause() {
        let (mut run, marks) = failed_for(SECOND / 2);
        run.steps[0].load.rate_operations_per_s = Some(8_000.0);
        let cost = FailureCost::of(&run, marks).unwrap();
        assert_eq!(cost.pause, Pause::None, "32 waited of 4,000 that were due");
        assert_eq!(cost.longest_ns, Some(SECOND / 2));
        let (run, _) = (quiet(), ());
        let cost = FailureCost::of(&run, marks).unwrap();
        assert_eq!((cost.pause, cost.longest_ns, cost.as_before_after_ns), (Pause::None, None, Some(0)));
    }

    #[test]
    fn what_never_comes_back_is_told_by_its_seconds() {
        let (_, marks) = failed_for(SECOND);
        let mut run = quiet();
        for interval in run.steps[0].intervals.iter_mut().filter(|interval| interval.offset_ns >= marks.failed.0) {
            interval.response = Default::default();
        }
        let cost = FailureCost::of(&run, marks).unwrap();
        assert!(matches!(cost.pause, Pause::AtLeast { length_ns } if length_ns >= 12 * SECOND), "{cost:?}");
        assert_eq!(cost.as_before_after_ns, None);
    }

    #[test]
    fn seconds_are_as_before_by_rate_and_p99() {
        let (mut run, marks) = failed_for(SECOND / 2);
        let at_ns = marks.failed.0 + 4 * SECOND;
        let slow = run.steps[0].intervals.iter_mut().find(|interval| end_of(interval) > at_ns).unwrap();
        let (count, end_ns) = (slow.response.count(), end_of(slow));
        (0..count).for_each(|_| slow.response.record(100_000_000));
        let cost = FailureCost::of(&run, marks).unwrap();
        assert_eq!(cost.as_before_after_ns, Some(end_ns - marks.recovered.unwrap().0));
        let within = FailureMarks { p99: Some(Nanos(200_000_000)), ..marks };
        assert!(FailureCost::of(&run, within).unwrap().as_before_after_ns < cost.as_before_after_ns);
        let outside = FailureMarks { failed: Nanos(u64::MAX), ..marks };
        assert_eq!(FailureCost::of(&run, outside), None);
    }
}
