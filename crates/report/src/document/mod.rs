//! What `--json` prints of runs and probes. The types are the format: their schemas are in `docs/schema`, and a test holds
//! those files against them.

use serde::Serialize;

use crate::answer::AnswerText;
use crate::operation_parts::{OperationParts, StepParts};
use analysis::check::{Carries, Check, Kind, Reached};
use analysis::{
    self, Because, Calibrated, Calibration, Expected, FailureCost, FailureDemand, Figures, Finding, FirstScreen,
    GeneratorVerdict, LastMinute, LikeRow, LimitAnswer, LimitVerdict, MapAnswer, Opening, Severity, Stalls, Tagged,
    Vocabulary, WatchedEpisode, WatchedSum, highest_minute, like_rows, tagged_platform,
};
use model::platforms::{Catalogue, Whose};
use model::record::{Interval, Run, Step, Timestamp, TraceStats, WorkFigure};

/// Version of these documents' form. A field that is added does not raise it.
const FORMAT: u32 = 1;

/// A run and what is to be said about it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(title = "Report"))]
pub struct RunReport<'a> {
    /// Version of this document's form. A field that is added does not raise it; `run` has a version of its own.
    format: u32,
    /// The sentence that a report begins with.
    opening: String,
    /// The answer in short lines.
    answer: AnswerText,
    /// Whether the limits that were asked for were kept; absent where none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<VerdictText>,
    /// What is to be said about the run, most important first.
    findings: Vec<FindingText<'a>>,
    /// The load generator's verdict on itself, one a step that has one; only of loads on raw storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    generator: Option<Vec<GeneratorVerdict>>,
    /// The answers of `plimsoll io calibrate`; absent in every other run.
    #[serde(skip_serializing_if = "Option::is_none")]
    calibration: Option<CalibrationAnswers>,
    /// What `plimsoll io map` or `slob map` found; absent in every other run.
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<MapAnswer>,
    /// The answer of `plimsoll check`; absent in every other run.
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<CheckAnswer>,
    /// Production beside what was asked for and reached, a row a figure and step; absent of a run that is like none.
    #[serde(skip_serializing_if = "Option::is_none")]
    like: Option<Vec<LikeFigure>>,
    /// Transactions of users second by second, one a step; absent of other loads.
    #[serde(skip_serializing_if = "Option::is_none")]
    transactions: Option<Vec<TransactionRates<'a>>>,
    /// Where the time of one operation or transaction went, one element for each step of a database in which they were timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_times: Option<Vec<OperationParts<'a>>>,
    /// Where sessions, users or request slots were, one element for each step of a load of this program's on storage or a database.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_parts: Option<Vec<StepParts<'a>>>,
    /// Why operations were slow for a while, one element for each step in which several sessions waited long; absent where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    stalls: Option<Vec<Stalls>>,
    /// What a failure cost, and whether that is allowed; absent where none was marked within the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<FailureAnswer>,
    /// What the platform that the run's tags name should reach; absent where they name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<ExpectedRequests>,
    /// The run, as `run.json` has it.
    run: &'a Run,
}

/// What a platform should reach by published limits under such a load as the step that did most, with no read served by a host's cache.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ExpectedRequests {
    /// Machine and volumes.
    platform: String,
    /// Label of the step.
    step: String,
    /// Requests that it did, per second.
    requests_per_s: f64,
    /// Requests per second that the platform sustains; `null` where no limit is known.
    sustained_requests_per_s: Option<f64>,
    /// Which limit binds there.
    binds: Option<Whose>,
    /// Requests per second that the volumes alone allow.
    volumes_requests_per_s: Option<f64>,
    /// The same in words, as the report has it.
    sentence: Option<String>,
}

impl ExpectedRequests {
    fn of(run: &Run) -> Option<Self> {
        let Tagged::Platform(platform) = tagged_platform(run, Catalogue::in_reports()) else { return None };
        let expected = Expected::of_run(run, &platform)?;
        let sustained = expected.cold.sustained();
        Some(Self {
            platform: platform.name(),
            requests_per_s: expected.per_s,
            sustained_requests_per_s: sustained.map(|phase| phase.per_s),
            binds: sustained.map(|phase| phase.whose),
            volumes_requests_per_s: expected.volumes_allow(),
            sentence: expected.words(&platform),
            step: expected.step,
        })
    }
}

/// A figure of production beside what was asked for and reached.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LikeFigure {
    /// Label of the step.
    step: String,
    /// Which moment of production; absent where there is only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    moment: Option<String>,
    /// How many times production the step asks for.
    times: f64,
    /// What; each is per second, bytes as bytes, but for a number of sessions.
    figure: WorkFigure,
    /// What production did.
    production: f64,
    /// What was asked for; `null` where it is not reproduced.
    asked: Option<f64>,
    /// What was reached; `null` where the target does not count it.
    reached: Option<f64>,
    /// What was reached beside so many times production, in percent of that.
    difference_percent: Option<f64>,
}

impl From<LikeRow> for LikeFigure {
    fn from(row: LikeRow) -> Self {
        let difference_percent = row.difference().map(|share| share * 100.0);
        let LikeRow { step, moment, times, figure, production, asked, reached, .. } = row;
        Self { step, moment, times, figure, production, asked, reached, difference_percent }
    }
}

/// How many transactions a step did.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TransactionRates<'a> {
    /// Label of the step.
    step: &'a str,
    /// Those that ended well, per second of the window.
    transactions_per_s: Option<f64>,
    /// The most that ended well in any sixty seconds of the window; `null` of a shorter one.
    highest_transactions_per_minute: Option<u64>,
    /// Each second, warm-up included and marked.
    seconds: Vec<TransactionSecond>,
}

/// Transactions of one second.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TransactionSecond {
    /// From the start of the step's load to the start of the second.
    offset_ns: u64,
    /// Whether it lies in the warm-up.
    warmup: bool,
    /// Those that ended well in it, per second.
    transactions_per_s: Option<f64>,
    /// Those that ended well in the sixty seconds up to its end; `null` before a minute of load has passed.
    transactions_per_minute: Option<u64>,
}

impl<'a> TransactionRates<'a> {
    fn new(step: &'a Step) -> Self {
        let mut minute = LastMinute::default();
        let second = |interval: &Interval| TransactionSecond {
            offset_ns: interval.offset_ns,
            warmup: interval.warmup,
            transactions_per_s: analysis::rate(interval.counters.operations, interval.duration_ns),
            transactions_per_minute: minute.add(interval),
        };
        Self {
            step: &step.label,
            transactions_per_s: Figures(step).operations_per_s(),
            highest_transactions_per_minute: highest_minute(step),
            seconds: step.intervals.iter().map(second).collect(),
        }
    }
}

/// One thing that there is to say about a run.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Finding"))]
struct FindingText<'a> {
    /// The rule that made it, such as `ceiling.limit`; `docs/reference/findings.md` lists all. It keeps its meaning where sentences change.
    id: &'static str,
    /// How it bears on the rest of the report.
    severity: Severity,
    /// What it says.
    sentence: String,
    /// What to do about it, where there is something.
    advice: Option<String>,
    /// The figures that it stands on, by names of the rule's own.
    #[cfg_attr(test, schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    evidence: &'a Finding,
    /// Where the book explains it, below the folder `docs`.
    page: &'static str,
}

/// Whether the limits that were asked for were kept.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Verdict"))]
struct VerdictText {
    /// Yes only if one load kept all of them.
    answer: LimitAnswer,
    /// Each limit by itself, in the order in which they were asked for.
    limits: Vec<LimitText>,
}

/// Whether one limit was kept.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "LimitVerdict"))]
struct LimitText {
    /// The limit in words, such as `p99 of response time within 5.00 ms`.
    limit: String,
    /// The judged quantile, 0 to 1.
    quantile: f64,
    /// The longest duration that still keeps it.
    limit_ns: u64,
    /// Whether it was kept.
    answer: LimitAnswer,
    /// Label of the step that shows it; of several loads, of the largest that keeps it, or of the
    /// least if none does.
    step: Option<String>,
    /// The quantile in that step; `null` where it is not known.
    value_ns: Option<u64>,
    /// Whether that is no more than an upper bound.
    value_is_bound: bool,
    /// The same quantile of service times, where response times alone suffered by a load generator that sent late; else `null`.
    service_ns: Option<u64>,
    /// What there is to say about it, without a full stop.
    words: String,
}

/// The answers of a calibration. What could not be measured is `null`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Calibration"))]
struct CalibrationAnswers {
    /// The latency that `max_iops` had to keep, such as `10ms` or `p99=10ms`.
    max_latency: String,
    /// Most small random reads a second within that latency.
    max_iops: Option<CalibratedRate>,
    /// Most megabytes (1,000,000 bytes) a second of large random reads.
    max_mbps: Option<CalibratedRate>,
    /// Mean latency at `max_iops`, in microseconds.
    actual_latency_us: Option<f64>,
    /// The largest distance between repeats, as a share of their median.
    spread: f64,
    /// How far the rate of single seconds ranged within a repeat, at most, as a share of its mean.
    range_of_seconds: Option<f64>,
    /// Load on the storage in all. A burst credit that lasts longer was not seen to end.
    watched_ns: u64,
    /// What makes the answers doubtful, in sentences.
    doubts: Vec<String>,
}

/// Whether a platform carries what was asked.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Check"))]
struct CheckAnswer {
    /// The answer.
    answer: CheckWord,
    /// The same in lines that can be read aloud.
    lines: Vec<String>,
    /// Where it was asked.
    place: String,
    /// What came of each kind of work at exactly what was asked.
    asked: Vec<CheckedKind>,
    /// How long exactly what was asked was measured at a stretch.
    window_ns: u64,
    /// The largest multiple of what was asked that was carried. `null` where none was, or where it is not known.
    carried_times: Option<f64>,
    /// Whether a larger multiple was not carried; if not, the room is at least that.
    limit_seen: bool,
}

/// One word for an answer.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum CheckWord {
    /// It is carried.
    Yes,
    /// It is not.
    No,
    /// The run does not report.
    NotMeasurable,
}

/// What came of one kind of work.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CheckedKind {
    /// Which: `reads`, `writes`, `commits` or `scans`.
    kind: &'static str,
    /// What was asked for per second; of scans in bytes.
    asked_per_s: f64,
    /// What was finished per second, in the same unit.
    reached_per_s: Option<f64>,
    /// The quantile that was judged, 0 to 1; `null` where no time was asked for.
    quantile: Option<f64>,
    /// Its value.
    value_ns: Option<u64>,
    /// Its limit.
    limit_ns: Option<u64>,
}

impl CheckAnswer {
    fn new(check: &Check) -> Self {
        let room = check.room.as_ref();
        Self {
            answer: match check.answer {
                Carries::Yes => CheckWord::Yes,
                Carries::No(_) => CheckWord::No,
                Carries::Unknown(_) => CheckWord::NotMeasurable,
            },
            lines: check.lines(),
            place: check.place.clone(),
            asked: check.kinds.iter().map(CheckedKind::new).collect(),
            window_ns: check.window.0,
            carried_times: room.and_then(|room| room.carried),
            limit_seen: room.is_some_and(|room| room.stopped_by.is_some()),
        }
    }
}

impl CheckedKind {
    fn new(reached: &Reached) -> Self {
        Self {
            kind: Kind::noun(reached.kind),
            asked_per_s: reached.asked_per_s,
            reached_per_s: reached.per_s,
            quantile: reached.within.map(|within| within.quantile),
            value_ns: reached.value.map(|value| value.ns.0),
            limit_ns: reached.within.map(|within| within.limit.0),
        }
    }
}

/// One answer of a calibration.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CalibratedRate {
    /// Median of the repeats.
    value: f64,
    /// The lowest of them.
    low: f64,
    /// The highest of them.
    high: f64,
    /// How many repeats there are.
    runs: usize,
    /// Length of a request.
    request_bytes: u64,
    /// Requests outstanding.
    outstanding: u32,
    /// Mean latency over all repeats.
    mean_ns: u64,
    /// 99th percentile of it.
    p99_ns: u64,
    /// Labels of the steps that it comes from.
    steps: Vec<String>,
}

/// What a failure cost.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FailureAnswer {
    /// Each demand, and whether it is met.
    demands: Vec<FailureDemand>,
    /// The rest.
    cost: FailureCost,
}

impl FailureAnswer {
    fn of(run: &Run) -> Option<Self> {
        let (marks, cost) = (run.steps.first()?.failure?, FailureCost::of(run)?);
        Some(Self { demands: cost.demands(marks), cost })
    }
}

impl<'a> RunReport<'a> {
    /// The report of `run` with `findings`, which are its own.
    pub fn new(run: &'a Run, findings: &'a [Finding]) -> Self {
        let opening = Opening::of(run, findings);
        let generator = || run.steps.iter().filter_map(GeneratorVerdict::of).collect();
        Self {
            format: FORMAT,
            opening: opening.sentence(),
            answer: FirstScreen::with(&opening, run, findings).into(),
            verdict: findings.iter().find_map(VerdictText::of),
            findings: findings.iter().map(|finding| FindingText::new(finding, &opening)).collect(),
            generator: analysis::operations_are_requests(run).then(generator),
            calibration: Calibration::of(run).map(CalibrationAnswers::new),
            map: MapAnswer::of(run),
            check: Check::of(run, findings).as_ref().map(CheckAnswer::new),
            like: (run.like.is_some()).then(|| like_rows(run).into_iter().map(LikeFigure::from).collect()),
            operation_times: Some(run.steps.iter().filter_map(|step| OperationParts::of(run, step)).collect())
                .filter(|times: &Vec<_>| !times.is_empty()),
            time_parts: Some(run.steps.iter().filter_map(|step| StepParts::of(run, step)).collect())
                .filter(|parts: &Vec<_>| !parts.is_empty()),
            stalls: Some(Stalls::all(run)).filter(|stalls| !stalls.is_empty()),
            failure: FailureAnswer::of(run),
            transactions: (Vocabulary::of(run) == Vocabulary::Users)
                .then(|| run.steps.iter().map(TransactionRates::new).collect()),
            expected: ExpectedRequests::of(run),
            run,
        }
    }
}

impl VerdictText {
    fn of(finding: &Finding) -> Option<Self> {
        let Finding::Verdict(verdict) = finding else { return None };
        Some(Self { answer: verdict.answer, limits: verdict.limits.iter().map(LimitText::new).collect() })
    }
}

impl LimitText {
    fn new(verdict: &LimitVerdict) -> Self {
        let LimitVerdict { target, answer, step, value, because } = verdict;
        let service = match because {
            Because::SentLate { service, .. } => *service,
            _ => None,
        };
        Self {
            limit: target.to_string(),
            quantile: target.quantile,
            limit_ns: target.limit.0,
            answer: *answer,
            step: step.clone(),
            value_ns: value.map(|value| value.ns.0),
            value_is_bound: value.is_some_and(|value| value.is_bound),
            service_ns: service.map(|value| value.ns.0),
            words: verdict.words(),
        }
    }
}

impl<'a> FindingText<'a> {
    fn new(finding: &'a Finding, opening: &Opening) -> Self {
        let rule = finding.rule();
        Self {
            id: rule.id(),
            severity: finding.severity(),
            sentence: finding.sentence(),
            advice: opening.advice(finding),
            evidence: finding,
            page: rule.page(),
        }
    }
}

impl CalibrationAnswers {
    fn new(calibration: Calibration) -> Self {
        let Calibration { cap, max_iops, max_bytes, confidence } = calibration;
        Self {
            max_latency: cap.to_string(),
            actual_latency_us: max_iops.as_ref().map(|found| found.mean.0 as f64 / 1e3),
            max_iops: max_iops.map(|found| CalibratedRate::new(found, 1.0)),
            max_mbps: max_bytes.map(|found| CalibratedRate::new(found, 1e6)),
            spread: confidence.spread,
            range_of_seconds: confidence.range_of_seconds,
            watched_ns: confidence.watched.0,
            doubts: confidence.doubts,
        }
    }
}

impl CalibratedRate {
    fn new(answer: Calibrated, unit: f64) -> Self {
        let Calibrated { request, depth, rate, mean, p99, steps, stopped: _ } = answer;
        Self {
            value: rate.value / unit,
            low: rate.low / unit,
            high: rate.high / unit,
            runs: rate.runs,
            request_bytes: request.0,
            outstanding: depth,
            mean_ns: mean.0,
            p99_ns: p99.0,
            steps,
        }
    }
}

/// One line of `plimsoll probe --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProbeLine<'a> {
    /// What happened in one interval.
    Interval {
        /// When the interval ended.
        at: Timestamp,
        /// One element for each kind of call or request, those without any included.
        traces: &'a [TraceStats],
    },
    /// With `--stalls`: statements that were held up together.
    Episode {
        /// When the first of them began.
        at: Timestamp,
        /// What was seen of it, and why.
        episode: &'a WatchedEpisode,
    },
    /// With `--stalls`: all episodes; the last line.
    Stalls {
        /// When the probe ended.
        at: Timestamp,
        /// What ended it.
        ended_by: ProbeEnd,
        /// Their sum.
        stalls: &'a WatchedSum,
    },
    /// The sum of all intervals; the last line.
    Total {
        /// When the probe ended.
        at: Timestamp,
        /// What ended it.
        ended_by: ProbeEnd,
        /// One element for each kind of call or request, those without any included.
        traces: &'a [TraceStats],
    },
}

/// What ended a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProbeEnd {
    /// The time that was asked for was over.
    Duration,
    /// A signal, such as that of Ctrl-C.
    Signal,
    /// The process that was traced ended.
    Process,
    /// Tracing ended by itself.
    Tracing,
}

#[cfg(test)]
mod tests;
