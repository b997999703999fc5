//! The load line as the steps of a series show it.

use super::{LatencyTarget, QuantileValue, Subject};
use crate::Rule;
use crate::message::{list, of_series};
use crate::{Message, Vocabulary};
use model::units::group_thousands;

/// One step seen against the latency target.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Point {
    /// Label of the step.
    pub step: String,
    /// Its load in words, such as `8 sessions` or `32 outstanding`.
    pub load: String,
    /// Value of the target's quantile.
    pub value: QuantileValue,
    /// Physical reads per second.
    pub reads_per_s: Option<f64>,
    /// Operations per second.
    pub operations_per_s: Option<f64>,
    /// Megabytes (10^6) read and written per second.
    pub megabytes_per_s: Option<f64>,
    /// Why it does not meet the target although its value does, such as `6.4 % of requests failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<String>,
    /// What its load and work are called.
    #[serde(skip)]
    pub words: Vocabulary,
}

/// Steps that do not meet the target.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Failing {
    /// The least load above the load line.
    pub above: Point,
    /// Labels of steps below the load line that do not meet the target either.
    pub below: Vec<String>,
}

/// How much load meets a latency target, by steps that each did or did not. `series` is empty where the run has one series only.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[expect(missing_docs, reason = "each variant's fields are the figures of its sentence")]
pub enum StepLine {
    /// The largest load that meets the latency target, with a larger one that does not.
    Between { series: String, target: LatencyTarget, passing: Point, failing: Failing },
    /// The largest load meets the target although smaller ones do not.
    OnlyAbove { series: String, target: LatencyTarget, passing: Point, below: Vec<String> },
    /// Even the largest load meets the target.
    AllMeet {
        series: String,
        target: LatencyTarget,
        most: Point,
        #[serde(rename = "step_count")]
        steps: usize,
    },
    /// Even the least load does not meet the target.
    NoneMeets { series: String, target: LatencyTarget, least: Point },
    /// Nothing of what the target judges happened.
    ///
    /// `too_wide`: something did happen, and another program reported it in buckets too wide to say.
    NotJudged { series: String, target: LatencyTarget, too_wide: bool },
}

impl StepLine {
    /// The target that was judged, unless nothing was.
    pub fn judged_target(&self) -> Option<&LatencyTarget> {
        match self {
            Self::Between { target, .. }
            | Self::OnlyAbove { target, .. }
            | Self::AllMeet { target, .. }
            | Self::NoneMeets { target, .. } => Some(target),
            Self::NotJudged { .. } => None,
        }
    }
}

impl Message for StepLine {
    fn rule(&self) -> Rule {
        Rule::LoadLineSteps
    }

    fn sentence(&self) -> String {
        match self {
            Self::Between { series, target, passing, failing } => {
                let below = if failing.below.is_empty() {
                    String::new()
                } else {
                    format!(" The curve is not monotonic: {} below the line missed it.", list(&failing.below))
                };
                let above = &failing.above;
                let (line, what) = (of_series(series), target.what());
                let carried = format!("Load line{line}: {} ({}), {}", passing.load, passing.step, passing.rates());
                let compared = match &above.missed {
                    Some(missed) => format!(
                        "{what} is {} there, against a limit of {}; at {} {missed}",
                        passing.value, target.limit, above.load
                    ),
                    None => format!(
                        "{what} is {} there and {} at {}, against a limit of {}",
                        passing.value, above.value, above.load, target.limit
                    ),
                };
                format!("{carried}; {compared}.{below}")
            }
            Self::OnlyAbove { series, target, passing, below } => format!(
                "Load line{}: not clear. {} ({}) meets {target} with {}, but {} with less load did not.",
                of_series(series),
                passing.load,
                passing.step,
                passing.value,
                list(below)
            ),
            Self::AllMeet { series, target, most, steps } => {
                let which = if *steps == 1 { "the only step" } else { "every step" };
                format!(
                    "Load line{}: at least {} ({}), {}: {which} meets {target}, which is {} there.",
                    of_series(series),
                    most.load,
                    most.step,
                    most.rates(),
                    most.value,
                )
            }
            Self::NoneMeets { series, target, least: least @ Point { missed: Some(missed), .. } } => format!(
                "Load line{}: below the least load. No step meets {target}; at {} ({}) {missed}, {}.",
                of_series(series),
                least.load,
                least.step,
                least.rates()
            ),
            Self::NoneMeets { series, target, least } => format!(
                "Load line{}: below the least load. No step meets {target}; at {} ({}) it is {} already, {}.",
                of_series(series),
                least.load,
                least.step,
                least.value,
                least.rates()
            ),
            Self::NotJudged { series, target, too_wide: true } => format!(
                "Load line{}: unknown. The buckets in which the times were reported are too wide to judge {target}.",
                of_series(series)
            ),
            Self::NotJudged { series, target, too_wide: false } => {
                let why = match &target.subject {
                    Some(Subject::Event(event)) => format!("No session waited for `{event}`"),
                    _ => "No such operation finished".to_owned(),
                };
                format!("Load line{}: unknown. {why}, so {target} says nothing.", of_series(series))
            }
        }
    }

    fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::Between { .. } => "A sweep with steps between the two narrows it down.",
            Self::OnlyAbove { .. } => "Repeat the sweep: something disturbed the smaller loads.",
            Self::AllMeet { most, .. } if most.words == Vocabulary::Requests => {
                "Raise the load: more requests outstanding or a higher rate."
            }
            Self::AllMeet { most, .. } if most.words == Vocabulary::Users => {
                "Raise the load: more users or a higher rate."
            }
            Self::AllMeet { .. } => "Raise the load: more threads, more schemas or a higher rate.",
            Self::NoneMeets { least, .. } if least.words == Vocabulary::Users => {
                "Start with fewer users, or set a limit that the server can keep."
            }
            Self::NoneMeets { least: Point { missed: Some(_), .. }, .. } => "Find out why that was so, and repeat.",
            Self::NoneMeets { .. } => "Start with less load, or set a target that this storage can meet.",
            Self::NotJudged { too_wide: true, .. } => return None,
            Self::NotJudged { .. } => {
                "Make sure that reads reach storage, or judge something else, such as `response:p99=5ms`."
            }
        };
        Some(advice.to_owned())
    }
}

impl Point {
    fn rates(&self) -> String {
        if self.words == Vocabulary::Requests {
            let requests = self.operations_per_s.map_or("rate unknown".to_owned(), |rate| self.words.rate(rate));
            let bytes = self.megabytes_per_s.map_or(String::new(), |rate| format!(" ({} MB/s)", group_thousands(rate)));
            return requests + &bytes;
        }
        // Transactions are not judged by the storage below them.
        let reads = self
            .reads_per_s
            .filter(|_| self.words != Vocabulary::Users)
            .map(|rate| format!("{} physical reads/s", group_thousands(rate)));
        let operations = self.operations_per_s.map(|rate| self.words.rate(rate));
        match (reads, operations) {
            (Some(reads), Some(operations)) => format!("{reads}, {operations}"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => "rates unknown".to_owned(),
        }
    }
}
