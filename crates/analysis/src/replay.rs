//! A replay beside what was recorded: whether it did the same, and how long that took.

use super::{Finding, Message, measured};
use crate::Rule;
use model::record::{Histogram, Load, Outcome, ReplayLoad, ReplayScale, Run, Step};
use model::units::{Nanos, group_thousands};
use model::workload::Arrival;

/// A replay whose requests were sent so soon after they were due, 99 of 100, sent them as they were recorded.
pub const FAITHFUL_LAG_NS: u64 = 100_000;
/// Folded addresses may move the hit ratios of caches by so many points of 100.
pub const FAITHFUL_HIT_POINTS: f64 = 1.0;

/// A step of a replay beside the recorded window.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// Label of the step.
    pub step: String,
    /// How many times as fast as it was recorded; absent where it went as fast as possible.
    pub times: Option<f64>,
    /// Requests of the recorded window.
    pub requests: u64,
    /// Of these, those that fell due; absent where that is not known, as of a part of a fleet.
    pub due: Option<u64>,
    /// Of these, those that were sent.
    pub sent: Option<u64>,
    /// 99 of 100 requests were sent so soon after they were due, in nanoseconds.
    pub lag_p99_ns: Option<u64>,
    /// How far folded addresses move the hit ratios of caches, at most, in points of 100; absent where they are not folded.
    pub moved_hit_points: Option<f64>,
    /// By kind.
    pub kinds: Vec<ReplayedKind>,
    /// The intervals whose number of finished requests differed most from the trace's, the worst first; three at most.
    pub differing: Vec<DifferingInterval>,
}

/// Intervals that are listed.
pub const DIFFERING: usize = 3;
/// Requests of an interval that may end in the next, in each hundred of a usual interval; fewer are no difference.
const DIFFERS_PCT: f64 = 5.0;

/// An interval of a replay in which fewer or more requests were finished than the trace has there.
#[derive(Debug, Clone, PartialEq)]
pub struct DifferingInterval {
    /// When it began: after the beginning of the window.
    pub after: Nanos,
    /// Its length.
    pub duration: Nanos,
    /// Requests that the trace has in it.
    pub recorded: u64,
    /// Requests that were finished in it.
    pub finished: u64,
}

/// Requests of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayedKind {
    /// Its word.
    pub kind: String,
    /// Requests of the recorded window.
    pub recorded: u64,
    /// Requests that were finished in the step, or had been sent in it and were waited for.
    pub finished: u64,
    /// Latencies when they were recorded, from issued to completed; absent where none is known.
    pub recorded_latency: Option<Histogram>,
    /// From sent to finished.
    pub service: Histogram,
}

impl Replayed {
    /// Whether every request was sent, as it was due, and to addresses with the same reuse; absent where that is not known.
    pub fn is_faithful(&self) -> Option<bool> {
        let all = self.due? == self.requests && self.sent? == self.requests;
        let is_moved = self.moved_hit_points.is_some_and(|points| points > FAITHFUL_HIT_POINTS);
        Some(all && !is_moved && self.lag_p99_ns? <= FAITHFUL_LAG_NS)
    }
}

/// The steps of a replay beside what was recorded; nothing of other loads.
pub fn replayed(run: &Run) -> Vec<Replayed> {
    let Load::Replay(load) = &run.load else { return Vec::new() };
    measured(run).map(|step| of_step(run, load, step)).collect()
}

/// Whether the rates of a step are those of a trace from second to second: how they and the latencies change is the workload's affair, and
/// says nothing of the storage.
pub(super) fn is_of_trace(step: &Step) -> bool {
    step.load.arrival == Some(Arrival::Recorded)
}

/// How many times as fast as it was recorded a step is.
pub(super) fn times_recorded(load: &ReplayLoad, step: &Step) -> Option<f64> {
    let per_s = step.load.rate_operations_per_s?;
    // What was multiplied by the rate is had back without what the division leaves.
    (load.rate_per_s() > 0.0).then(|| (per_s / load.rate_per_s() * 1e9).round() / 1e9)
}

fn of_step(run: &Run, load: &ReplayLoad, step: &Step) -> Replayed {
    // A part of a fleet has its share of the requests, which it does not know.
    let generator = step.generator.as_ref().filter(|_| !run.is_one_of_many());
    let due = generator.and_then(|generator| generator.due_operations);
    let sent = due.zip(generator.and_then(|generator| generator.backlog_operations));
    let kinds = load.kinds.iter().map(|kind| {
        let operations = step.operations.iter().find(|operations| operations.kind == kind.kind);
        // The last requests of a window end after it.
        let late = step.outstanding.iter().find(|outstanding| outstanding.kind == kind.kind);
        let mut service = operations.map(|operations| operations.service.clone()).unwrap_or_default();
        late.iter().for_each(|late| service.merge(&late.service));
        ReplayedKind {
            kind: kind.kind.clone(),
            recorded: kind.requests,
            finished: operations.map_or(0, |operations| operations.count)
                + late.map_or(0, |late| late.errors + late.service.count()),
            recorded_latency: kind.latency.clone(),
            service,
        }
    });
    let times = times_recorded(load, step);
    let kinds: Vec<ReplayedKind> = kinds.collect();
    let ended: u64 = kinds.iter().map(|kind| kind.finished).sum();
    Replayed {
        step: step.label.clone(),
        times,
        requests: load.requests_at(times.unwrap_or(1.0)),
        due,
        sent: match times {
            Some(_) => sent.map(|(due, backlog)| due.saturating_sub(backlog)),
            None => (!run.is_one_of_many()).then_some(ended),
        },
        lag_p99_ns: generator.and_then(|generator| generator.schedule_lag.as_ref()?.quantile_ns(0.99)),
        moved_hit_points: load.moved_hit_points,
        kinds,
        differing: if run.is_one_of_many() { Vec::new() } else { differing(load, step) },
    }
}

fn differing(load: &ReplayLoad, step: &Step) -> Vec<DifferingInterval> {
    let Some(times) = times_recorded(load, step) else { return Vec::new() };
    // Requests of the trace up to an instant of the replay, within a second as if they were evenly spread.
    let mut sums = vec![0.0];
    for count in &load.by_second {
        sums.push(sums.last().unwrap_or(&0.0) + f64::from(*count));
    }
    let (pace, copies) = match load.scale {
        ReplayScale::Pace => (times, 1.0),
        ReplayScale::Copies => (1.0, times),
    };
    let until = |after_ns: u64| {
        let seconds = (after_ns as f64 * pace / 1e9).clamp(0.0, load.by_second.len() as f64);
        let whole = seconds.floor() as usize;
        // The last second is as short as the window leaves it.
        let length = (load.duration_ns.0 as f64 / 1e9 - whole as f64).clamp(1e-9, 1.0);
        let part = (seconds.fract() / length).min(1.0);
        (sums[whole] + part * load.by_second.get(whole).map_or(0.0, |count| f64::from(*count))) * copies
    };
    let begins_ns = step.window.warmup_ns;
    let seconds = step.intervals.iter().filter(|interval| !interval.warmup);
    let mut all: Vec<(f64, DifferingInterval)> = seconds
        .filter_map(|interval| {
            let after_ns = interval.offset_ns.checked_sub(begins_ns)?;
            let recorded = until(after_ns.saturating_add(interval.duration_ns)) - until(after_ns);
            let finished = interval.counters.operations?;
            let differing = DifferingInterval {
                after: Nanos(after_ns),
                duration: Nanos(interval.duration_ns),
                recorded: recorded.round() as u64,
                finished,
            };
            Some(((recorded - finished as f64).abs(), differing))
        })
        .collect();
    let usual = all.iter().map(|(_, one)| one.recorded as f64).sum::<f64>() / all.len().max(1) as f64;
    all.retain(|(by, _)| *by > usual * DIFFERS_PCT / 100.0);
    all.sort_by(|one, other| other.0.total_cmp(&one.0));
    all.into_iter().map(|(_, one)| one).take(DIFFERING).collect()
}

/// A replay of which requests are missing.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ReplayIncomplete {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// Requests of the recorded window.
    pub requests: u64,
    /// The fewest that a step sent.
    pub sent: u64,
}

pub(super) fn find(run: &Run) -> Option<Finding> {
    let Load::Replay(load) = &run.load else { return None };
    // One that was ended early is known to be not whole.
    let whole = measured(run).filter(|step| step.outcome == Outcome::Completed);
    let missing: Vec<(String, u64, u64)> = whole
        .map(|step| of_step(run, load, step))
        .filter_map(|step| Some((step.step, step.requests, step.sent?)))
        .filter(|(_, requests, sent)| sent != requests)
        .collect();
    let share = |(_, requests, sent): &(String, u64, u64)| *sent as f64 / (*requests).max(1) as f64;
    let &(_, requests, sent) = missing.iter().min_by(|one, other| share(one).total_cmp(&share(other)))?;
    let steps = missing.into_iter().map(|(label, ..)| label).collect();
    Some(Finding::ReplayIncomplete(ReplayIncomplete { steps, requests, sent }))
}

impl Message for ReplayIncomplete {
    fn rule(&self) -> Rule {
        Rule::ReplayIncomplete
    }

    fn sentence(&self) -> String {
        let Self { steps, requests, sent } = self;
        let count = |number: u64| group_thousands(number as f64);
        format!(
            "The replay is not whole: {} of {} recorded requests were sent in {}.",
            count(*sent),
            count(*requests),
            super::message::list(steps)
        )
    }

    fn advice(&self) -> Option<String> {
        let advice =
            "Replay at a lower multiple, with more threads (`--jobs`) or with more outstanding requests (`--depth`).";
        Some(advice.to_owned())
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VerdictOutcome;
    use model::record::sample::{self, Level};
    use model::record::{Intensity, RecordedKind};

    fn run(due: u64, backlog: u64) -> Run {
        let level = Level { sessions: 8, operations_per_s: 1_000, read_ns: 100_000, seconds: 10, update_pct: 0 };
        let mut run = sample::run(&[level]);
        let kind = RecordedKind { kind: "read".to_owned(), requests: 10_000, bytes: 1, latency: None };
        let load = ReplayLoad { duration_ns: Nanos::seconds(10), kinds: vec![kind], ..ReplayLoad::default() };
        run.load = Load::Replay(load);
        let step = &mut run.steps[0];
        let arrival = Some(Arrival::Recorded);
        step.load = Intensity { rate_operations_per_s: Some(2_000.0), arrival, ..step.load.clone() };
        let generator = step.generator.as_mut().unwrap();
        generator.due_operations = Some(due);
        generator.backlog_operations = Some(backlog);
        generator.schedule_lag = Some(sample::latencies(1_000, 20_000));
        run
    }

    #[test]
    fn a_replay_that_sent_everything_in_time_is_faithful() {
        let found = replayed(&run(10_000, 0));
        assert_eq!((found[0].times, found[0].sent, found[0].is_faithful()), (Some(2.0), Some(10_000), Some(true)));
        assert_eq!(find(&run(10_000, 0)), None);
        let mut late = run(10_000, 0);
        late.steps[0].generator.as_mut().unwrap().schedule_lag = Some(sample::latencies(1_000, 900_000));
        assert_eq!(replayed(&late)[0].is_faithful(), Some(false));
    }

    #[test]
    fn one_request_that_is_missing_is_a_doubt() {
        for (due, backlog) in [(10_000, 1), (9_999, 0)] {
            let run = run(due, backlog);
            assert_eq!(replayed(&run)[0].is_faithful(), Some(false));
            let sentence = find(&run).map(|finding| finding.sentence()).unwrap();
            assert!(
                sentence.starts_with("The replay is not whole: 9,999 of 10,000 recorded requests were sent"),
                "{sentence}"
            );
        }
    }

    #[test]
    fn a_rate_that_changes_as_the_trace_does_is_no_doubt() {
        let mut replay = run(10_000, 0);
        for (second, interval) in replay.steps[0].intervals.iter_mut().enumerate() {
            let times = if second < 5 { 1 } else { 9 };
            interval.counters.operations = interval.counters.operations.map(|operations| operations * times);
        }
        let rules = |run: &Run| crate::analyse_asked(run, None).iter().map(Finding::rule).collect::<Vec<_>>();
        let of_rates = [Rule::SteadinessUnsteady, Rule::SteadinessRise, Rule::CreditSpent];
        assert!(rules(&replay).iter().all(|rule| !of_rates.contains(rule)), "{:?}", rules(&replay));
        // The mark of its steps says so.
        replay.steps[0].load.arrival = None;
        assert!(rules(&replay).iter().any(|rule| of_rates.contains(rule)), "{:?}", rules(&replay));
    }

    #[test]
    fn a_part_of_a_fleet_does_not_know_its_share() {
        let mut part = run(5_000, 0);
        part.part = Some(model::record::FleetPart {
            number: 1,
            parts: 2,
            source: "--part".to_owned(),
            configuration: "c0ffee".to_owned(),
            start_at_ns: None,
            start_error_ns: None,
            clock: None,
        });
        assert_eq!((replayed(&part)[0].is_faithful(), find(&part)), (None, None));
    }

    /// A minute whose rate is `per_s` in the seconds that `is_high` names and a tenth of it in the others, with a limit that it keeps.
    fn swinging(is_high: impl Fn(usize) -> bool) -> Step {
        let level = Level { sessions: 64, operations_per_s: 1_000, read_ns: 300_000, seconds: 60, update_pct: 0 };
        let mut step = sample::run(&[level]).steps.swap_remove(0);
        step.load.rate_operations_per_s = Some(1_000.0);
        step.operations[0].response = sample::latencies(60_000, 300_000);
        step.operations[0].service = step.operations[0].response.clone();
        for (second, interval) in step.intervals.iter_mut().enumerate() {
            let (count, us) = if is_high(second) { (1_000, 900) } else { (100, 300) };
            interval.counters.operations = Some(count);
            interval.response = sample::latencies(count, us * 1_000);
        }
        let generator = step.generator.as_mut().unwrap();
        (generator.due_operations, generator.backlog_operations) = (Some(60_000), Some(0));
        step
    }

    #[test]
    fn what_changes_as_the_trace_does_is_judged_by_its_latency_alone() {
        let limit = crate::LatencyTarget::default();
        let judged = |mut step: Step, arrival| {
            step.load.arrival = Some(arrival);
            crate::load_line::judge(&step, &limit)
        };
        // A rate that swings, and one that grows with its latency to the end.
        let (swings, grows) = (swinging(|second| second % 40 < 20), swinging(|second| second >= 50));
        assert_eq!(judged(swings.clone(), Arrival::Fixed), Some(VerdictOutcome::Unsteady));
        for step in [swings, grows] {
            assert_eq!(judged(step, Arrival::Recorded), Some(VerdictOutcome::Passed));
        }
    }

    #[test]
    fn the_seconds_that_differed_most_are_listed() {
        let mut run = run(10_000, 0);
        let Load::Replay(load) = &mut run.load else { unreachable!() };
        // Twice as fast: a second of the replay has two of the trace.
        load.by_second = vec![500; 20];
        load.duration_ns = Nanos::seconds(20);
        for (interval, count) in run.steps[0].intervals.iter_mut().zip([1_000, 1_000, 400, 1_600, 1_040]) {
            interval.counters.operations = Some(count);
        }
        let warmup_ns = run.steps[0].window.warmup_ns;
        run.steps[0].load.rate_operations_per_s = Some(1_000.0);
        let found = replayed(&run).remove(0).differing;
        let words: Vec<_> = found.iter().map(|one| (one.after.0 / 1_000_000_000, one.recorded, one.finished)).collect();
        // Two seconds of warm-up come first, and the third of the window differs by no more than usual.
        assert_eq!((warmup_ns, words), (2_000_000_000, vec![(0, 1_000, 400), (1, 1_000, 1_600)]));
    }

    #[test]
    fn a_last_second_that_is_short_differs_from_nothing() {
        let mut run = run(10_000, 0);
        let Load::Replay(load) = &mut run.load else { unreachable!() };
        (load.by_second, load.duration_ns) = ([vec![1_000; 9], vec![300]].concat(), Nanos(9_300_000_000));
        load.kinds[0].requests = 9_300;
        let step = &mut run.steps[0];
        step.load.rate_operations_per_s = Some(1_000.0);
        let begins_ns = step.window.warmup_ns;
        step.intervals.retain(|interval| !interval.warmup);
        step.intervals.truncate(10);
        for (interval, second) in step.intervals.iter_mut().zip(0..) {
            let (count, duration_ns) = if second < 9 { (1_000, 1_000_000_000) } else { (300, 300_000_000) };
            (interval.counters.operations, interval.duration_ns) = (Some(count), duration_ns);
            interval.offset_ns = begins_ns + second * 1_000_000_000;
        }
        assert_eq!(replayed(&run).remove(0).differing, []);
    }

    #[test]
    fn a_pause_of_the_trace_is_no_stall() {
        let mut step = swinging(|_| true);
        step.load.arrival = Some(Arrival::Recorded);
        // One of five seconds, and one of ten in which nothing can have been under way.
        for second in (20..25).chain(40..50) {
            let interval = &mut step.intervals[second];
            interval.counters.operations = Some(0);
            interval.response = Histogram::default();
        }
        assert_eq!(crate::doubts::stalls(&step), None);
        step.operations[0].response.record(5_500_000_000);
        assert_eq!(crate::doubts::stalls(&step), Some(Nanos::seconds(5)));
    }
}
