//! What a platform was measured to carry: the levels of a run.

use super::super::{
    Figures, LatencyTarget, QuantileValue, SINGLE_BLOCK_READ, Subject, VerdictOutcome, at_once, is_measured,
    is_on_server, is_on_servers, is_through_page_cache, judge,
};
use super::reported::{self, ReportedDemand};
use super::{LatencyThere, Rates};
use crate::load_line::judge::{crowd, fails_too_often, is_generator_busy};
use crate::{MapAnswer, limit_of_map};
use model::record::{Histogram, MapOf, Metric, Outcome, Run, Step, Workload};
use model::units::Nanos;

/// The levels of a run, by what they asked of storage.
#[derive(Debug, Clone, PartialEq)]
pub struct Platform {
    /// Name of the run, or its id.
    pub name: String,
    /// Its levels, those with the least requests first; those of which no rate is known last.
    pub levels: Vec<Level>,
    /// The target with its subject said.
    pub target: LatencyTarget,
    /// Whether the load went through the page cache of the machine that made it.
    pub is_memory: bool,
    /// Whether its levels are points of a map, which lie in no order of load.
    pub is_map: bool,
    /// That map, if the target is its own and it has a line.
    pub map: Option<MapAnswer>,
}

/// One level.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Label of its step.
    pub label: String,
    /// Length of its window, in seconds; absent where a program reported rates and not in what time.
    pub seconds: Option<f64>,
    /// What storage did.
    pub rates: Rates,
    /// Whether the target was met.
    pub verdict: Verdict,
    /// The target's quantile, as far as its program reports it.
    pub quantile: Option<QuantileValue>,
    /// The mean of what the target judges, in milliseconds.
    pub mean_ms: Option<f64>,
}

/// Whether a level met the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It did.
    Met,
    /// It did not.
    Missed,
    /// The buckets of another program are too wide to say.
    TooWide,
    /// Nothing that the target judges was timed, or the load was not what was asked for.
    NotJudged,
    /// Another program reported no more than a mean latency, which does not prove it.
    OnlyMean,
}

impl Platform {
    /// The measured steps of `run`, judged by `target`.
    pub fn of(run: &Run, target: &LatencyTarget) -> Self {
        let is_its_own = |limit: &LatencyTarget| {
            limit.quantile == target.quantile && limit.limit == target.limit && target.subject.is_none()
        };
        // An operation of a database is not one request to storage.
        let is_of_requests = |map: &MapAnswer| map.of == MapOf::Requests && map.has_line();
        let map = limit_of_map(run).filter(is_its_own).and_then(|_| MapAnswer::of(run)).filter(is_of_requests);
        let target = with_subject(run, target);
        let is_beside_others = at_once::is_beside_others(run);
        let judged = |of: at_once::Level<'_>| {
            let level = level(&of.step, &target);
            // What a part of a load met or missed by itself says nothing of the platform that all of it was on; and of levels some
            // of which ran beside others, one that missed the target did not miss it by its own load.
            let is_judged = of.is_whole && !(is_beside_others && level.verdict == Verdict::Missed);
            if is_judged { level } else { Level { verdict: Verdict::NotJudged, ..level } }
        };
        let mut levels: Vec<Level> = Vec::new();
        for of in at_once::levels(run) {
            let stated = reported::levels(run, &of.step);
            if stated.is_empty() && is_measured(&of.step) {
                levels.push(judged(of));
            } else if of.step.outcome == Outcome::Completed {
                levels.extend(stated.iter().map(|stated| completed(level(&of.step, &target), stated, &target)));
            }
        }
        let rate = |level: &Level| order(&level.rates).unwrap_or(f64::INFINITY);
        levels.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
        // Without tags the name of a run of ours is that of a workload, which is no platform.
        let name = match () {
            () if run.imported.is_none() && run.tags.is_empty() && !run.target.address.is_empty() => {
                run.target.address.clone()
            }
            () if run.name.is_empty() => run.id.clone(),
            () => run.name.clone(),
        };
        // A database server reads through the page cache too, and counts what it had from storage.
        let is_memory = is_through_page_cache(run) && !is_on_servers(run);
        Self { name, levels, target, is_memory, is_map: run.load.map().is_some(), map }
    }

    /// Whether any level had some of it.
    pub fn is_loaded(&self, respect: Metric) -> bool {
        self.levels.iter().any(|level| level.rates.of(respect).is_some_and(|rate| rate > 0.0))
    }

    /// The latency at `demand`, by all requests, or by what both know: read off a straight line between the two levels on either
    /// side of it. Of levels in which more load gave no more rate that with the least latency counts. Absent beyond the
    /// largest level, and of a map.
    pub(super) fn latency_at(&self, demand: &Rates) -> Option<LatencyThere> {
        let by: fn(&Rates) -> Option<f64> =
            if demand.io.is_some() && self.levels.iter().any(|level| level.rates.io.is_some()) {
                |rates| rates.io
            } else {
                |rates| rates.reads
            };
        let asked = by(demand).filter(|_| !self.is_map)?;
        let has_latency = |level: &&Level| level.quantile.is_some() || level.mean_ms.is_some();
        let mut points: Vec<(f64, &Level)> =
            self.levels.iter().filter(has_latency).filter_map(|level| Some((by(&level.rates)?, level))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (least, first) = *points.first()?;
        let at = |level: &Level, is_below| LatencyThere {
            quantile: level.quantile,
            mean_ms: level.mean_ms,
            levels: vec![level.label.clone()],
            is_below,
        };
        if asked < least {
            return Some(at(first, true));
        }
        let below = points.iter().rev().find(|(rate, _)| *rate <= asked)?;
        if below.0 == asked {
            return Some(at(below.1, false));
        }
        let above = points.iter().find(|(rate, _)| *rate > asked)?;
        let share = (asked - below.0) / (above.0 - below.0);
        let between = |low: f64, high: f64| low + share * (high - low);
        let quantile = |(low, high): (QuantileValue, QuantileValue)| QuantileValue {
            ns: Nanos(between(low.ns.0 as f64, high.ns.0 as f64).round() as u64),
            is_bound: low.is_bound || high.is_bound,
        };
        Some(LatencyThere {
            quantile: below.1.quantile.zip(above.1.quantile).map(quantile),
            mean_ms: below.1.mean_ms.zip(above.1.mean_ms).map(|(low, high)| between(low, high)),
            levels: vec![below.1.label.clone(), above.1.label.clone()],
            is_below: false,
        })
    }
}

/// A level with what its counts do not say and its program reported.
fn completed(level: Level, reported: &ReportedDemand, target: &LatencyTarget) -> Level {
    let (counted, rates) = (level.rates, reported.rates);
    let is_of_all = matches!(&target.subject, Some(Subject::Response(None) | Subject::Service(None)));
    let is_not_judged = level.verdict == Verdict::NotJudged && is_of_all;
    let verdict = match reported.mean_below_ms.or(reported.max_ms) {
        Some(_) if is_not_judged && reported.proves(target.quantile, target.limit.0 as f64 / 1e6) => Verdict::Met,
        Some(_) if is_not_judged => Verdict::OnlyMean,
        _ => level.verdict,
    };
    Level {
        label: reported.label.map_or(level.label, str::to_owned),
        rates: Rates {
            reads: counted.reads.or(rates.reads),
            writes: counted.writes.or(rates.writes),
            io: counted.io.or(rates.io),
            megabytes: counted.megabytes.or(rates.megabytes),
            ..counted
        },
        verdict,
        mean_ms: level.mean_ms.or(reported.mean_ms.filter(|_| is_of_all)),
        ..level
    }
}

fn order(rates: &Rates) -> Option<f64> {
    rates.io.or(rates.reads).or(rates.writes).or(rates.megabytes)
}

/// What is judged where nobody says: what the workload is usually judged by, and in reports of a database, which know no operations,
/// its single-block reads.
pub(super) fn with_subject(run: &Run, target: &LatencyTarget) -> LatencyTarget {
    let usual = target.of_run(run);
    let is_timed = |target: &LatencyTarget| run.steps.iter().any(|step| target.value(run.workload(), step).is_some());
    let by_reads = LatencyTarget { subject: Some(Subject::Event(SINGLE_BLOCK_READ.to_owned())), ..target.clone() };
    if target.subject.is_none() && !is_timed(&usual) && is_timed(&by_reads) { by_reads } else { usual }
}

/// The target's quantile of times that report more than their mean.
pub(super) fn quantile(times: Option<&Histogram>, target: &LatencyTarget) -> Option<QuantileValue> {
    times.filter(|times| times.is_distribution()).and_then(|times| QuantileValue::of(times, target.quantile))
}

fn level(step: &Step, target: &LatencyTarget) -> Level {
    let times = target.subject.as_ref().and_then(|subject| subject.times(step));
    Level {
        label: step.label.clone(),
        seconds: Some(Figures(step).seconds()).filter(|seconds| *seconds > 0.0),
        rates: rates(step),
        verdict: verdict(step, target, times.as_deref()),
        quantile: quantile(times.as_deref(), target),
        mean_ms: times.as_deref().and_then(Histogram::mean_ns).map(|ns| ns / 1e6),
    }
}

/// Rates of a step. A sum is known where both its parts are; a server's writes reach storage later and in other requests.
pub(super) fn rates(step: &Step) -> Rates {
    let figures = Figures(step);
    let (reads, on_server) = (figures.value(Metric::Reads), is_on_server(step));
    let writes = figures.value(Metric::Writes).filter(|_| !on_server);
    Rates {
        reads,
        writes,
        io: reads.zip(writes).map(|(reads, writes)| reads + writes),
        megabytes: figures.all_megabytes_per_s().filter(|_| !on_server),
        redo: figures.value(Metric::RedoMegabytes),
        commits: figures.commits_per_s(),
    }
}

fn verdict(step: &Step, target: &LatencyTarget, times: Option<&Histogram>) -> Verdict {
    let (Some(times), Some(subject)) = (times.filter(|times| times.count() > 0), &target.subject) else {
        return Verdict::NotJudged;
    };
    if step.load.rate_operations_per_s.is_some() && !times.is_reported() {
        // Reads and writes of a map each keep the limit, or the point does not.
        let of_map = || crate::map::outcome(Workload::Map, step, target).map(|(outcome, _)| outcome);
        let is_of_all = matches!(subject, Subject::Response(None));
        return match of_map().filter(|_| is_of_all).or_else(|| judge(step, target)) {
            Some(VerdictOutcome::Passed) => Verdict::Met,
            Some(VerdictOutcome::Failed) => Verdict::Missed,
            Some(VerdictOutcome::Unsteady | VerdictOutcome::GeneratorBound) | None => Verdict::NotJudged,
        };
    }
    // What failed has no latency to judge it by.
    if !times.is_distribution() || fails_too_often(step, target) {
        return Verdict::NotJudged;
    }
    match target.is_met_by(subject, step) {
        Some(true) => Verdict::Met,
        // This machine may be what was slow.
        Some(false) if !times.is_reported() && (is_generator_busy(step) || crowd(step).is_some()) => Verdict::NotJudged,
        Some(false) => Verdict::Missed,
        None => Verdict::TooWide,
    }
}
