//! A replay beside what was recorded: whether it did the same, and how long that took.

use super::{Finding, Message, measured};
use crate::Rule;
use model::record::{Histogram, Load, Outcome, ReplayLoad, Run, Step};
use model::units::group_thousands;

/// A replay whose requests were sent so soon after they were due, 99 of 100, sent them as they were recorded.
pub const FAITHFUL_LAG_NS: u64 = 100_000;

/// A step of a replay beside the recorded window.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// Label of the step.
    pub step: String,
    /// How many times as fast as it was recorded.
    pub times: f64,
    /// Requests of the recorded window.
    pub requests: u64,
    /// Of these, those that fell due; absent where that is not known, as of a part of a fleet.
    pub due: Option<u64>,
    /// Of these, those that were sent.
    pub sent: Option<u64>,
    /// 99 of 100 requests were sent so soon after they were due, in nanoseconds.
    pub lag_p99_ns: Option<u64>,
    /// By kind.
    pub kinds: Vec<ReplayedKind>,
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
    /// Whether every request was sent, and as it was due; absent where that is not known.
    pub fn is_faithful(&self) -> Option<bool> {
        let all = self.due? == self.requests && self.sent? == self.requests;
        Some(all && self.lag_p99_ns? <= FAITHFUL_LAG_NS)
    }
}

/// The steps of a replay beside what was recorded; nothing of other loads.
pub fn replayed(run: &Run) -> Vec<Replayed> {
    let Load::Replay(load) = &run.load else { return Vec::new() };
    measured(run).map(|step| of_step(run, load, step)).collect()
}

/// Whether the rates of a run are those of a trace from second to second: how they change is the workload's affair, and says nothing of
/// the storage.
pub(super) fn is_of_trace(run: &Run) -> bool {
    matches!(run.load, Load::Replay(_))
}

/// How many times as fast as it was recorded a step is.
pub(super) fn times_recorded(load: &ReplayLoad, step: &Step) -> Option<f64> {
    let per_s = step.load.rate_operations_per_s?;
    (load.rate_per_s() > 0.0).then(|| per_s / load.rate_per_s())
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
    Replayed {
        step: step.label.clone(),
        times: times_recorded(load, step).unwrap_or(1.0),
        requests: load.requests(),
        due,
        sent: sent.map(|(due, backlog)| due.saturating_sub(backlog)),
        lag_p99_ns: generator.and_then(|generator| generator.schedule_lag.as_ref()?.quantile_ns(0.99)),
        kinds: kinds.collect(),
    }
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
    let (_, requests, sent) = missing.iter().min_by_key(|(.., sent)| *sent)?;
    let (requests, sent) = (*requests, *sent);
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
    use model::record::sample::{self, Level};
    use model::record::{Intensity, RecordedKind};
    use model::units::Nanos;

    fn run(due: u64, backlog: u64) -> Run {
        let level = Level { sessions: 8, operations_per_s: 1_000, read_ns: 100_000, seconds: 10, update_pct: 0 };
        let mut run = sample::run(&[level]);
        let kind = RecordedKind { kind: "read".to_owned(), requests: 10_000, bytes: 1, latency: None };
        let load = ReplayLoad { duration_ns: Nanos::seconds(10), kinds: vec![kind], ..ReplayLoad::default() };
        run.load = Load::Replay(load);
        let step = &mut run.steps[0];
        step.load = Intensity { rate_operations_per_s: Some(2_000.0), ..step.load.clone() };
        let generator = step.generator.as_mut().unwrap();
        generator.due_operations = Some(due);
        generator.backlog_operations = Some(backlog);
        generator.schedule_lag = Some(sample::latencies(1_000, 20_000));
        run
    }

    #[test]
    fn a_replay_that_sent_everything_in_time_is_faithful() {
        let found = replayed(&run(10_000, 0));
        assert_eq!((found[0].times, found[0].sent, found[0].is_faithful()), (2.0, Some(10_000), Some(true)));
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
        replay.load = Load::foreign(model::record::Workload::Io);
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
}
