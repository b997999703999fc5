//! What a failure cost a load that went on: how long nothing was completed, how far behind it fell, and when it was as before.
//!
//! The instants of the failure and of its recovery come from the command that caused them, on the clock of the load. Everything else is
//! in the record: slow operations with their own times, and the seconds.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Stalls;
use model::record::{FailureMarks, Histogram, Interval, LONG_NS, Run, SlowOperation, Step};
use model::units::{Nanos, group_thousands};

/// A second is as before where its p99 is at most so many times that of the seconds before the failure, or their highest, unless a
/// limit is named,
const TIMES_P99: u64 = 2;
/// and it has no less than this share of their operations,
const OF_RATE: f64 = 0.9;
/// give or take so many times what arrivals at random differ by.
const BY_CHANCE: f64 = 3.0;
/// A pause delays nearly all operations that were due within it, or all sessions of a load without a rate,
const NEARLY_ALL: f64 = 0.7;
/// or, where few were due and more than chance is missing, at least this share.
const OF_FEW: f64 = 0.5;
/// Operations that wait because of a recovery begin to do so within this time.
const OF_RECOVERY_NS: u64 = 10_000_000_000;

/// Time without a completed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Pause {
    /// None was seen. Whether there was one of a given length: [`FailureCost::is_pause_within`].
    None,
    /// One, known to its instants.
    Seen {
        /// From the start of the window to when the first operation that waited was due, or the failure.
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
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
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
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
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
    /// The longest time of one operation of the window, from due to finished or given up, in nanoseconds.
    pub longest_ns: Option<u64>,
    /// Longest time between two completed operations that the seconds allow, in nanoseconds.
    pub pause_below_ns: u64,
    /// Most operations that were due and not finished at the same time, as far as slow ones were recorded.
    pub backlog: Option<u64>,
    /// From the start of the window until the last operation that was held up had ended, in nanoseconds.
    pub gone_ns: Option<u64>,
    /// From the start of the window until seconds are as before, to its end; none where they never are.
    pub as_before_ns: Option<u64>,
    /// Operations of the window that failed.
    pub errors: u64,
    /// The same by their reasons, where those are recorded.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Attempts to connect that failed, by their reasons.
    pub failed_connects: BTreeMap<String, u64>,
    /// Operations that were due and not sent when the window ended.
    pub unsent: u64,
    /// Operations that never ended.
    pub unended: u64,
    /// What held operations up, where the record shows it.
    pub cause: Option<String>,
}

impl FailureCost {
    /// Of the only step of a run; none where no failure is marked, or it is outside the window.
    pub fn of(run: &Run) -> Option<Self> {
        if run.steps.len() == 1 { Self::of_step(run, 0) } else { None }
    }

    /// Of the step at a place of a run.
    pub fn of_step(run: &Run, place: usize) -> Option<Self> {
        let step = run.steps.get(place)?;
        let marks = step.failure?;
        let warmup_ns = step.window.warmup_ns;
        let end_ns = warmup_ns.saturating_add(step.window.duration_ns);
        if !(warmup_ns..end_ns).contains(&marks.failed_ns) {
            return None;
        }
        let inside: Vec<&Interval> = step.intervals.iter().filter(|interval| !interval.warmup).collect();
        let before = usual(inside.iter().copied().filter(|second| end_of(second) <= marks.failed_ns));
        let episodes = Episode::all(step, Stalls::of(run, place), marks);
        let pauses = episodes.iter().map(|episode| pause(step, marks, before, &episode.slow, &inside));
        let silent_ns = silent_ns(marks, &inside);
        let longest =
            pauses.flatten().max_by_key(|(length_ns, _)| *length_ns).filter(|(length_ns, _)| *length_ns >= silent_ns);
        let pause = match longest {
            Some((length_ns, from_ns)) => Pause::Seen { from_ns: from_ns.saturating_sub(warmup_ns), length_ns },
            None if silent_ns > 0 => Pause::AtLeast { length_ns: silent_ns },
            None => Pause::None,
        };
        let counted: u64 = step.outstanding.iter().map(|one| one.unended.count()).sum();
        // Those of batches are counted there alone.
        let unended = counted.max(step.unended.as_ref().map_or(0, |unended| unended.operations));
        let unsent = step.generator.as_ref().and_then(|generator| generator.backlog_operations).unwrap_or(0);
        let ages = step.generator.as_ref().and_then(|generator| generator.backlog_ages.as_ref());
        let waited = step.outstanding.iter().flat_map(|one| [&one.unended, &one.response]);
        let operations = step.operations.iter();
        let times = operations.clone().flat_map(|one| [&one.response, &one.failed]).chain(waited).chain(ages);
        let mut errors_by_kind = BTreeMap::<String, u64>::new();
        for transactions in operations.clone().filter_map(|one| one.transactions.as_ref()) {
            transactions
                .failures
                .iter()
                .for_each(|(kind, more)| *errors_by_kind.entry(kind.clone()).or_default() += more);
        }
        let last_ns = episodes.iter().flat_map(|episode| &episode.slow).map(|one| one.ended_ns).max();
        let worst = episodes.iter().map(|episode| backlog(&episode.slow)).max();
        let longest_episode = episodes.into_iter().max_by_key(|episode| episode.length_ns);
        let outstanding_errors = step.outstanding.iter().map(|one| one.errors);
        Some(Self {
            failed_ns: marks.failed_ns - warmup_ns,
            recovered_ns: marks.recovered_ns.map(|at_ns| at_ns.saturating_sub(warmup_ns)),
            has_rate: step.load.rate_operations_per_s.is_some(),
            before,
            pause,
            longest_ns: times.filter_map(Histogram::max_ns).max(),
            pause_below_ns: silent_ns
                .saturating_add(2 * inside.iter().map(|second| second.duration_ns).max().unwrap_or(0)),
            backlog: match (worst, unsent) {
                (None, 0) => None,
                (worst, unsent) => Some(worst.unwrap_or(0).max(unsent.saturating_add(unended))),
            },
            gone_ns: last_ns.filter(|_| unended + unsent == 0).map(|at_ns| at_ns.saturating_sub(warmup_ns)),
            as_before_ns: before
                .and_then(|before| as_before(&inside, before, marks))
                .map(|at_ns| at_ns.saturating_sub(warmup_ns)),
            errors: operations.map(|one| one.errors).chain(outstanding_errors).sum(),
            errors_by_kind,
            failed_connects: step.failed_connects.clone(),
            unended,
            unsent,
            cause: longest_episode.and_then(|episode| episode.cause),
        })
    }

    /// Each demand in words, and whether it is met; none where the record does not show that.
    pub fn demands(&self, marks: FailureMarks) -> Vec<FailureDemand> {
        let pause = marks.max_pause_ns.map(Nanos).map(|most| FailureDemand {
            demand: format!("at most {most} without a completed operation"),
            met: self.is_pause_within(most),
        });
        let errors = marks.no_errors.then(|| FailureDemand {
            demand: "no operation fails, or is never sent or never ends".to_owned(),
            met: Some(self.lost() == 0),
        });
        pause.into_iter().chain(errors).collect()
    }

    /// The cost in one sentence without a full stop.
    pub fn result(&self) -> String {
        let pause = match self.pause {
            Pause::None => "no pause was seen".to_owned(),
            Pause::Seen { length_ns, .. } => format!("a pause of {}", Nanos(length_ns)),
            Pause::AtLeast { length_ns } => format!("a pause of at least {}", Nanos(length_ns)),
        };
        let recovery = match (self.before, self.as_before_ns) {
            (None, _) => "how the load was before is not known".to_owned(),
            (Some(_), Some(at_ns)) => format!("as before {}", self.since(at_ns)),
            (Some(_), None) => "not as before within the window".to_owned(),
        };
        let lost = match self.lost() {
            0 => "no operation failed".to_owned(),
            lost => format!("{} operations failed, or were not sent or ended", group_thousands(lost as f64)),
        };
        format!("a failure cost {pause}, {recovery}, {lost}")
    }

    /// Operations that failed, or were due and never sent, or never ended.
    pub fn lost(&self) -> u64 {
        self.errors + self.unended + self.unsent
    }

    /// How long an instant of the window was after the recovery, or after the failure where it was before the recovery.
    pub fn since(&self, at_ns: u64) -> String {
        match self.recovered_ns.filter(|recovered_ns| *recovered_ns <= at_ns) {
            Some(recovered_ns) => format!("{} after the recovery", Nanos(at_ns - recovered_ns)),
            None => format!("{} after the failure", Nanos(at_ns.saturating_sub(self.failed_ns))),
        }
    }

    /// Whether no time without a completed operation was longer; none where the record does not show that.
    pub fn is_pause_within(&self, most: Nanos) -> Option<bool> {
        match self.pause {
            Pause::Seen { length_ns, .. } => Some(length_ns <= most.0),
            Pause::AtLeast { length_ns } if length_ns > most.0 => Some(false),
            // What was due when it began, or under way, would have taken longer; but what fails takes no time.
            _ if self.errors == 0 && self.longest_ns.is_some_and(|longest_ns| longest_ns <= most.0) => Some(true),
            _ if self.pause_below_ns <= most.0 => Some(true),
            _ => None,
        }
    }
}

/// What was demanded of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct FailureDemand {
    /// In words.
    pub demand: String,
    /// Whether it is met; absent where that is unknown.
    pub met: Option<bool>,
}

/// Operations that the failure, or its recovery, held up.
struct Episode<'a> {
    /// In the order in which they ended.
    slow: Vec<&'a SlowOperation>,
    length_ns: u64,
    cause: Option<String>,
}

impl<'a> Episode<'a> {
    /// All that go on after the failure, and began within some time after the recovery.
    fn all(step: &'a Step, stalls: Option<Stalls>, marks: FailureMarks) -> Vec<Self> {
        let warmup_ns = step.window.warmup_ns;
        let Some(stalls) = stalls else { return Vec::new() };
        let last_ns = marks.recovered_ns.map_or(u64::MAX, |at_ns| at_ns.saturating_add(OF_RECOVERY_NS));
        let mut all = Vec::new();
        for episode in stalls.episodes {
            let from_ns = episode.from.0 + warmup_ns;
            let until_ns = from_ns.saturating_add(episode.length.0);
            if until_ns <= marks.failed_ns || from_ns > last_ns {
                continue;
            }
            let kept = step.intervals.iter().flat_map(|interval| interval.slow.iter().flat_map(|slow| &slow.kept));
            let is_in_it = |one: &&SlowOperation| {
                one.response_ns >= LONG_NS
                    && one.ended_ns > marks.failed_ns
                    && one.ended_ns <= until_ns
                    && one.due_ns() >= from_ns
            };
            let mut slow: Vec<&SlowOperation> = kept.filter(is_in_it).collect();
            slow.sort_by_key(|one| one.ended_ns);
            if !slow.is_empty() {
                let cause = episode.blame.as_ref().map(|blame| blame.cause.words());
                all.push(Self { slow, length_ns: episode.length.0, cause });
            }
        }
        all
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

/// The longest time without a completed operation among these, and when it began: between two of them nothing was completed, if nearly all
/// that was due waited, and no second within it says otherwise.
fn pause(
    step: &Step,
    marks: FailureMarks,
    before: Option<UsualSecond>,
    slow: &[&SlowOperation],
    inside: &[&Interval],
) -> Option<(u64, u64)> {
    let first_due_ns = slow.iter().map(|one| one.due_ns()).min()?.max(marks.failed_ns);
    let starts = std::iter::once(first_due_ns).chain(slow.iter().map(|one| one.ended_ns));
    let gaps = starts.zip(slow.iter().map(|one| one.ended_ns));
    let (length_ns, from_ns) = gaps.map(|(from_ns, until_ns)| (until_ns.saturating_sub(from_ns), from_ns)).max()?;
    let until_ns = from_ns + length_ns;
    let is_within = |second: &&&Interval| second.offset_ns >= from_ns && end_of(second) <= until_ns;
    if inside.iter().filter(is_within).any(|second| second.response.count() > 0) {
        return None;
    }
    let waited = slow.iter().filter(|one| one.due_ns() <= until_ns && one.ended_ns >= until_ns);
    let waited: f64 = waited.map(|one| one.stands_for).sum();
    let rate_per_s = match (step.load.rate_operations_per_s, step.load.sessions) {
        (None, Some(sessions)) => return (waited >= NEARLY_ALL * f64::from(sessions)).then_some((length_ns, from_ns)),
        (rate_per_s, _) => rate_per_s.or(before.map(|before| before.rate_per_s))?,
    };
    let due = rate_per_s * length_ns as f64 / 1e9;
    let by_chance = (due - BY_CHANCE * due.sqrt()).max(OF_FEW * due);
    (waited >= by_chance.min(NEARLY_ALL * due)).then_some((length_ns, from_ns))
}

/// The longest time of seconds after the failure in which nothing was completed.
fn silent_ns(marks: FailureMarks, inside: &[&Interval]) -> u64 {
    let (mut longest_ns, mut now_ns) = (0, 0);
    for second in inside.iter().filter(|second| second.offset_ns >= marks.failed_ns) {
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

/// When the last second after the failure ended that was not as before; the failure itself if all were; none where no whole second follows it.
fn as_before(inside: &[&Interval], before: UsualSecond, marks: FailureMarks) -> Option<u64> {
    let highest_ns = before.p99_ns.saturating_mul(TIMES_P99).max(before.highest_p99_ns);
    let most_ns = marks.p99_ns.unwrap_or(highest_ns);
    // The last one may be short.
    let whole_ns = inside.iter().map(|second| second.duration_ns).max()?;
    let seconds = inside.iter().filter(|second| end_of(second) > marks.failed_ns && second.duration_ns == whole_ns);
    let is_worse = |second: &Interval| {
        let usual = before.rate_per_s * second.duration_ns as f64 / 1e9;
        let has_fewer = (second.response.count() as f64) < OF_RATE * usual - BY_CHANCE * usual.sqrt();
        has_fewer || p99_of(second).is_none_or(|p99_ns| p99_ns > most_ns)
    };
    let (mut since_ns, mut is_as_before) = (marks.failed_ns, false);
    for second in seconds {
        is_as_before = !is_worse(second);
        if !is_as_before {
            since_ns = end_of(second);
        }
    }
    is_as_before.then_some(since_ns)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Compared, Difference, Measure, Repeats};
    use model::record::sample::stalls::{quiet, stall};

    pub(crate) const SECOND: u64 = 1_000_000_000;

    /// A failure at second 7 of the window that holds all sessions up for so long.
    pub(crate) fn failed_for(length_ns: u64) -> (Run, FailureMarks) {
        let mut run = quiet();
        stall(&mut run, (7 * SECOND, length_ns), |_| ());
        let warmup_ns = run.steps[0].window.warmup_ns;
        let at = |ns: u64| ns + warmup_ns;
        for second in &mut run.steps[0].intervals {
            if second.offset_ns >= at(7 * SECOND) && end_of(second) <= at(7 * SECOND + length_ns) {
                second.response = Histogram::default();
            }
        }
        let recovered_ns = Some(at(7 * SECOND + length_ns));
        let (max_pause_ns, no_errors) = (Some(SECOND), true);
        (run, FailureMarks { failed_ns: at(7 * SECOND), recovered_ns, p99_ns: None, max_pause_ns, no_errors })
    }

    fn cost_of(run: &Run, marks: FailureMarks) -> Option<FailureCost> {
        let mut run = run.clone();
        run.steps[0].failure = Some(marks);
        FailureCost::of(&run)
    }

    #[test]
    fn demands_are_met_or_missed_by_what_is_known() {
        let met = |length_ns, change: fn(&mut FailureCost)| {
            let (run, marks) = failed_for(length_ns);
            let mut cost = cost_of(&run, marks).unwrap();
            change(&mut cost);
            cost.demands(marks).iter().map(|demand| demand.met).collect::<Vec<_>>()
        };
        assert_eq!(met(SECOND / 2, |_| ()), [Some(true), Some(true)]);
        assert_eq!(met(3 * SECOND, |cost| cost.unsent = 1), [Some(false), Some(false)]);
        let unknown = |cost: &mut FailureCost| (cost.pause, cost.errors) = (Pause::None, 1);
        assert_eq!(met(3 * SECOND, unknown), [None, Some(false)]);
        assert_eq!(FailureCost::of(&quiet()), None, "none was marked");
    }

    #[test]
    fn failures_are_compared_and_repeats_say_how_they_scatter() {
        let run = |id: &str, length_ns| {
            let (mut run, marks) = failed_for(length_ns);
            run.steps[0].failure = Some(marks);
            Run { id: id.to_owned(), ..run }
        };
        let of_pause = |compared: &Compared| {
            let [load] = compared.pairs[0].loads.as_slice() else { panic!("one load: {compared:?}") };
            assert!(load.figures.iter().all(|figure| matches!(figure.measure, Measure::Failure(_))), "{load:?}");
            load.figures.iter().find(|figure| figure.measure.to_string() == "pause of the failure").unwrap().clone()
        };
        let (one, other) = (run("a", SECOND), run("b", 3 * SECOND));
        let single = of_pause(&Compared::of(&[&one, &other], 0, 0.05).unwrap());
        assert_eq!(single.values, [Some(1e9), Some(3e9)]);
        assert_eq!(single.comparison.unwrap().difference(), Difference::Unknown, "one failure of each");
        let side = |name: &str, lengths: [u64; 3]| {
            let runs = lengths.iter().enumerate().map(|(at, length_ns)| run(&format!("{name}{at}"), *length_ns));
            Repeats::of(runs.collect()).unwrap().unwrap()
        };
        let sides =
            [side("a", [SECOND, 1_010_000_000, 990_000_000]), side("b", [3 * SECOND, 3_010_000_000, 2_990_000_000])];
        let repeated = of_pause(&Compared::of_repeats(&sides, 0, 0.05).unwrap());
        assert_eq!(repeated.comparison.unwrap().difference(), Difference::Worse, "{repeated:?}");
        // A run without a failure answers another question.
        let calm = quiet();
        let compared = Compared::of(&[&calm, &other], 0, 0.05).unwrap();
        assert!(compared.settings.iter().any(|setting| setting.name == "failure"), "{:?}", compared.settings);
    }

    #[test]
    fn a_pause_is_as_long_as_it_was() {
        for length_ns in [SECOND / 2, 700_000_000, 3 * SECOND] {
            let (run, marks) = failed_for(length_ns);
            let cost = cost_of(&run, marks).unwrap();
            assert_eq!(cost.pause, Pause::Seen { from_ns: 7 * SECOND, length_ns });
            assert_eq!((cost.longest_ns, cost.backlog), (Some(length_ns), Some(32)));
            // The sessions ended one after the other, 10 µs apart.
            assert_eq!(cost.gone_ns, Some(7 * SECOND + length_ns + 310_000));
            assert_eq!(
                [length_ns, length_ns - 1].map(|most| cost.is_pause_within(Nanos(most))),
                [Some(true), Some(false)]
            );
            assert!((cost.before.unwrap().rate_per_s - 8_000.0).abs() < 100.0, "{cost:?}");
        }
    }

    #[test]
    fn what_recovered_before_the_mark_did_so_after_the_failure() {
        let (run, marks) = failed_for(SECOND);
        let late = FailureMarks { recovered_ns: Some(marks.failed_ns + 9 * SECOND), ..marks };
        let words = [marks, late].map(|marks| cost_of(&run, marks).unwrap().result());
        assert!(words[0].contains("as before 0") && words[0].contains("after the recovery, no operation"), "{words:?}");
        assert!(words[1].contains("as before 1.00 s after the failure"), "{words:?}");
    }

    #[test]
    fn where_some_operations_go_on_there_is_no_pause() {
        let (mut run, marks) = failed_for(SECOND / 2);
        run.steps[0].load.rate_operations_per_s = Some(8_000.0);
        let cost = cost_of(&run, marks).unwrap();
        assert_eq!(cost.pause, Pause::None, "32 waited of 4,000 that were due");
        assert_eq!(cost.longest_ns, Some(SECOND / 2));
        let (run, _) = (quiet(), ());
        let cost = cost_of(&run, marks).unwrap();
        assert_eq!((cost.pause, cost.backlog, cost.as_before_ns), (Pause::None, None, Some(7 * SECOND)));
        assert_eq!(cost.is_pause_within(Nanos(2 * SECOND)), Some(true), "each second has completions");
    }

    #[test]
    fn few_operations_that_came_at_random_still_show_a_pause() {
        let (mut run, marks) = failed_for(2 * SECOND);
        let mut pause_at = |rate_per_s| {
            run.steps[0].load.rate_operations_per_s = Some(rate_per_s);
            cost_of(&run, marks).unwrap().pause
        };
        assert!(matches!(pause_at(25.0), Pause::Seen { .. }), "32 waited where 50 are expected, give or take 21");
        assert!(!matches!(pause_at(40.0), Pause::Seen { .. }), "32 waited where 80 are expected, give or take 27");
    }

    #[test]
    fn what_never_comes_back_is_told_by_its_seconds() {
        let (_, marks) = failed_for(SECOND);
        let mut run = quiet();
        for interval in run.steps[0].intervals.iter_mut().filter(|interval| interval.offset_ns >= marks.failed_ns) {
            interval.response = Default::default();
        }
        let cost = cost_of(&run, marks).unwrap();
        assert!(matches!(cost.pause, Pause::AtLeast { length_ns } if length_ns >= 12 * SECOND), "{cost:?}");
        assert_eq!(cost.as_before_ns, None);
        let most = [5, 600].map(|seconds| cost.is_pause_within(Nanos(seconds * SECOND)));
        assert_eq!(most, [Some(false), Some(true)]);
        let at_least = FailureCost { longest_ns: None, ..cost };
        assert_eq!(at_least.is_pause_within(Nanos(13 * SECOND)), None, "nothing was completed for 12 s or up to 14 s");
    }

    #[test]
    fn what_was_never_sent_or_never_ended_is_no_end_of_the_backlog() {
        let (mut run, marks) = failed_for(SECOND);
        run.steps[0].generator.as_mut().unwrap().backlog_operations = Some(25_000);
        let cost = cost_of(&run, marks).unwrap();
        assert_eq!((cost.backlog, cost.unsent, cost.gone_ns), (Some(25_000), 25_000, None));
    }

    #[test]
    fn sessions_that_wait_long_beside_others_are_no_pause() {
        let (mut run, marks) = failed_for(30_000_000);
        let end_ns = marks.failed_ns + 5 * SECOND;
        let interval = run.steps[0].intervals.iter_mut().find(|interval| end_of(interval) >= end_ns).unwrap();
        for session in 0..8 {
            let (service_ns, response_ns) = (4 * SECOND, 4 * SECOND);
            let kind = "read".to_owned();
            let slow = SlowOperation { kind, session, ended_ns: end_ns, service_ns, response_ns, stands_for: 1.0 };
            interval.slow.get_or_insert_default().kept.push(slow);
        }
        let cost = cost_of(&run, marks).unwrap();
        assert!(!matches!(cost.pause, Pause::Seen { length_ns, .. } if length_ns > SECOND), "{cost:?}");
    }

    #[test]
    fn seconds_are_as_before_by_rate_and_p99() {
        let (mut run, marks) = failed_for(SECOND / 2);
        let at_ns = marks.failed_ns + 4 * SECOND;
        let slow = run.steps[0].intervals.iter_mut().find(|interval| end_of(interval) > at_ns).unwrap();
        let (count, end_ns) = (slow.response.count(), end_of(slow));
        (0..count).for_each(|_| slow.response.record(100_000_000));
        let cost = cost_of(&run, marks).unwrap();
        assert_eq!(cost.as_before_ns, Some(end_ns - run.steps[0].window.warmup_ns));
        let within = FailureMarks { p99_ns: Some(200_000_000), ..marks };
        assert!(cost_of(&run, within).unwrap().as_before_ns < cost.as_before_ns);
        let outside = FailureMarks { failed_ns: u64::MAX, ..marks };
        assert_eq!(cost_of(&run, outside), None);
    }
}
