//! What makes the figures of a run less than they seem.

use super::message::list;
use super::network::is_one_host;
use super::sending::{ClientSaturated, FallbackEngine, RateNotReached, WaitedForProcessor};
use super::steadiness::{self, Excursion};
use super::{Figures, Finding, Message, Vocabulary, burst, measured, replay, worst};
use crate::Rule;
use crate::Severity;
use model::record::{Histogram, Outcome, Run, Step, Unended};
use model::units::{Nanos, group_thousands, percent};

/// Seconds without a finished operation are stalls only where many are expected.
const OPERATIONS_PER_INTERVAL: f64 = 20.0;
const CACHE_HELD: f64 = 0.5;
/// Hit ratio from which a run is about the cache rather than about storage.
const MOSTLY_CACHED: f64 = 0.9;

/// How the run and its operations ended, if not well.
pub(super) fn ended(run: &Run) -> impl Iterator<Item = Finding> {
    let failed = OperationErrors::of(run).map(Finding::OperationErrors);
    let late = NotEnded::of(run).map(Finding::NotEnded);
    NotCompleted::of(run).map(Finding::NotCompleted).into_iter().chain(failed).chain(late)
}

pub(super) fn find(run: &Run) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(NotCompleted::of(run).map(Finding::NotCompleted));
    // Where both ends of a network are one host, its processors are what was measured.
    findings.extend(ClientSaturated::of(run).filter(|_| !is_one_host(run)).map(Finding::ClientSaturated));
    findings.extend(measured(run).filter_map(|step| RateNotReached::of(run, step)).map(Finding::RateNotReached));
    findings.extend(FallbackEngine::of(run).map(Finding::FallbackEngine));
    findings.extend(OperationErrors::of(run).map(Finding::OperationErrors));
    findings.extend(NotEnded::of(run).map(Finding::NotEnded));
    let (bursts, rises) = (burst::bursts(run), burst::rises(run));
    // Two flat levels say why the rate was not steady.
    let explained = |step: &Step| {
        let labels = bursts.iter().flat_map(|burst| &burst.steps).chain(rises.iter().flat_map(|rise| &rise.steps));
        labels.into_iter().any(|label| *label == step.label) || stopped(step).is_some()
    };
    let unsteady = worst(run, |step| steadiness::unsteady(step).filter(|_| !explained(step)));
    findings.extend(unsteady.map(|(steps, most)| Finding::NotSteady(NotSteady { steps, most })));
    findings.extend(worst(run, stopped).map(|(steps, longest)| Finding::HeldUp(HeldUp { steps, longest })));
    // What stopped after a failure that was caused is its cost, and is said of it.
    let stalled = worst(run, |step| match step.failure {
        None => stalls(step),
        Some(marks) => {
            let mut before = step.clone();
            before.intervals.retain(|second| second.offset_ns.saturating_add(second.duration_ns) <= marks.failed_ns);
            before.outstanding.clear();
            stalls(&before)
        }
    });
    findings.extend(stalled.map(|(steps, longest)| Finding::Stalled(Stalled { steps, longest })));
    findings.extend(WaitedForProcessor::of(run).map(Finding::WaitedForProcessor));
    findings.extend(CacheHeld::of(run).map(Finding::CacheHeld));
    if bursts.is_empty() {
        findings.extend(burst::not_seen(run).map(Finding::CreditNotSeen));
    }
    findings.extend(bursts.into_iter().map(Finding::Burst));
    findings.extend(rises.into_iter().map(Finding::Rose));
    findings
}

/// The run did not come to its planned end.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum NotCompleted {
    /// An error ended it.
    Failed {
        /// The error, as it was shown.
        error: String,
        /// Steps recorded.
        #[serde(rename = "step_count")]
        steps: usize,
    },
    /// The user ended it.
    Interrupted {
        /// Steps in which anything was measured.
        #[serde(rename = "step_count")]
        steps: usize,
        /// Whether the last of them was cut short.
        last_is_partial: bool,
    },
    /// It goes on, or its process was killed.
    Unfinished {
        /// Steps recorded.
        #[serde(rename = "step_count")]
        steps: usize,
    },
}

impl NotCompleted {
    fn of(run: &Run) -> Option<Self> {
        let steps = run.steps.len();
        match &run.outcome {
            Outcome::Completed => None,
            Outcome::Unfinished => Some(Self::Unfinished { steps }),
            Outcome::Interrupted => Some(Self::Interrupted {
                steps: measured(run).count(),
                last_is_partial: measured(run).last().is_some_and(|step| step.outcome == Outcome::Interrupted),
            }),
            Outcome::Failed { error } => Some(Self::Failed { error: error.clone(), steps }),
        }
    }
}

impl Message for NotCompleted {
    fn rule(&self) -> Rule {
        Rule::RunNotCompleted
    }

    fn sentence(&self) -> String {
        let recorded = |steps: &usize| match steps {
            0 => "no step recorded".to_owned(),
            1 => "1 step recorded".to_owned(),
            n => format!("{n} steps recorded"),
        };
        match self {
            Self::Failed { error, steps } => format!("The run failed with {}: {error}", recorded(steps)),
            Self::Interrupted { steps: 0, .. } => "The run was ended early, before anything was measured.".to_owned(),
            Self::Interrupted { steps, last_is_partial } => {
                let partial = if *last_is_partial { "; the last is partial" } else { "" };
                format!("The run was ended early with {}{partial}.", recorded(steps))
            }
            Self::Unfinished { steps } => {
                format!("The run has not finished, or its process was killed, with {}.", recorded(steps))
            }
        }
    }

    fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::Failed { .. } => "Mend what the error names and run again; the steps before it stand.",
            Self::Interrupted { steps: 0, .. } => return None,
            Self::Interrupted { .. } => "Compare the complete steps only.",
            Self::Unfinished { .. } => "If it is not running any more, take it as cut short.",
        };
        Some(advice.to_owned())
    }
}

/// Operations ended in errors.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct OperationErrors {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// How many, in all of them.
    pub errors: u64,
    /// Median from due to the error, in these steps' windows; absent where the times are not known of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_after_ns: Option<u64>,
    /// The longest of these times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_after_ns: Option<u64>,
    /// What work is called.
    #[serde(skip)]
    pub words: Vocabulary,
}

impl OperationErrors {
    fn of(run: &Run) -> Option<Self> {
        let failed = measured(run).filter_map(|step| Some((step, step.counters.errors.filter(|errors| *errors > 0)?)));
        let (steps, errors): (Vec<_>, Vec<_>) = failed.map(|(step, errors)| (step.label.clone(), errors)).unzip();
        let words = Vocabulary::of(run);
        let errors = errors.iter().sum();
        let mut times = Histogram::default();
        measured(run).flat_map(|step| &step.operations).for_each(|operations| times.merge(&operations.failed));
        let all = Some(times).filter(|times| times.count() == errors);
        let median_after_ns = all.as_ref().and_then(|times| times.quantile_ns(0.5));
        let last_after_ns = all.and_then(|times| times.max_ns());
        (!steps.is_empty()).then_some(Self { steps, errors, median_after_ns, last_after_ns, words })
    }
}

impl Message for OperationErrors {
    fn rule(&self) -> Rule {
        Rule::RunErrors
    }

    fn sentence(&self) -> String {
        let work = self.words.work();
        let work = if self.errors == 1 { work.trim_end_matches('s') } else { work };
        let after = match self.median_after_ns.zip(self.last_after_ns) {
            Some((_, longest)) if self.errors == 1 => format!(", after {}", Nanos(longest)),
            Some((median, longest)) => {
                format!(", half of them within {}, the last after {}", Nanos(median), Nanos(longest))
            }
            None => String::new(),
        };
        format!("{} {work} ended in errors in {}{after}.", group_thousands(self.errors as f64), list(&self.steps))
    }

    fn advice(&self) -> Option<String> {
        Some("Find out what failed before using these figures.".to_owned())
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

/// So small a share of operations that did not end is beyond p99 at the most.
const FEW_NOT_ENDED: f64 = 0.01;

/// Operations were still under way long after the window, since storage or something else held up their server.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct NotEnded {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// How many, in all of them.
    pub operations: u64,
    /// The largest share that they are of all of a step, 0 to 1.
    pub share: f64,
    /// How long they were waited for after the window, at most.
    #[serde(rename = "waited_ns")]
    pub waited: Nanos,
    /// What work is called.
    #[serde(skip)]
    pub words: Vocabulary,
}

impl NotEnded {
    fn of(run: &Run) -> Option<Self> {
        let late = || measured(run).filter_map(|step| Some((step, step.unended?)));
        let share = |(step, late): (&Step, Unended)| {
            let ended = step.counters.operations.unwrap_or(0);
            late.operations as f64 / ended.saturating_add(late.operations).max(1) as f64
        };
        let share = late().map(share).fold(0.0, f64::max);
        let (steps, late): (Vec<_>, Vec<_>) = late().map(|(step, late)| (step.label.clone(), late)).unzip();
        let all = late.into_iter().reduce(|mut all, more| {
            all.add(&more);
            all
        })?;
        let (waited, words) = (Nanos(all.waited_ns), Vocabulary::of(run));
        Some(Self { steps, operations: all.operations, share, waited, words })
    }
}

impl Message for NotEnded {
    fn rule(&self) -> Rule {
        Rule::RunLate
    }

    fn severity(&self) -> Severity {
        if self.share > FEW_NOT_ENDED { Severity::Doubt } else { Severity::Note }
    }

    fn sentence(&self) -> String {
        let Self { steps, operations, waited, words, share: _ } = self;
        let work = words.work();
        let (work, them) = match operations {
            1 => (work.trim_end_matches('s'), "it"),
            _ => (work, "them"),
        };
        format!(
            "{} {work} of {} had not ended {waited} after the window. Rates leave {them} out, and latencies contain \
             the time until then.",
            group_thousands(*operations as f64),
            list(steps)
        )
    }

    fn advice(&self) -> Option<String> {
        Some("Look for what held the server up: storage that is slow or limited, or locks of others. Latencies of these steps are longer than reported.".to_owned())
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

/// Throughput changed within the window.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct NotSteady {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// How far it strayed in the one where it did most.
    pub most: Excursion,
}

impl Message for NotSteady {
    fn rule(&self) -> Rule {
        Rule::SteadinessUnsteady
    }

    fn sentence(&self) -> String {
        format!(
            "Throughput was not steady in {}. It ranged over {} % of its mean (limit: 20 %) and drifted by {} % \
             within the window (limit: 10 %).",
            list(&self.steps),
            percent(self.most.range),
            self.most.drift_percent()
        )
    }

    fn advice(&self) -> Option<String> {
        Some("Run longer, or with more warm-up; look at the intervals for when it changed.".to_owned())
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

/// No operation finished for a while.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Stalled {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// The longest stretch without one.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// A processor that is only busy keeps nobody waiting so long.
const STOPPED: Nanos = Nanos(500_000_000);

/// How long the load generator itself did not run.
fn stopped(step: &Step) -> Option<Nanos> {
    step.generator.as_ref()?.stopped_ns.map(Nanos).filter(|longest| *longest >= STOPPED)
}

/// The load generator did not run for a while.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct HeldUp {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// The longest time.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

impl Message for HeldUp {
    fn rule(&self) -> Rule {
        Rule::GeneratorStopped
    }

    fn sentence(&self) -> String {
        format!(
            "The load generator itself did not run for {} in {}: it was stopped, or had no processor. That time says nothing of what it \
             loads.",
            self.longest,
            list(&self.steps)
        )
    }

    fn advice(&self) -> Option<String> {
        let advice = "Measure again, and let the process run: no SIGSTOP, frozen control group or virtual machine, no quota, and CPUs to spare.";
        Some(advice.to_owned())
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

/// Operations under way at the end that all took so much longer than any before, and at least a second, were held up together.
const LONGER_AT_END: u64 = 2;
const HELD_UP_AT_END_NS: u64 = SECOND_NS;
const SECOND_NS: u64 = 1_000_000_000;

/// The longest stretch in which no operation finished, unless the load generator did not run for as long: of whole seconds, or at the end for as
/// long as the quickest of those took that were under way.
pub(super) fn stalls(step: &Step) -> Option<Nanos> {
    let longest = stall_inside(step).into_iter().chain(stall_at_end(step)).max();
    // The rest of the second in which it was stopped may be empty, too.
    longest.filter(|longest| stopped(step).is_none_or(|own| longest.0 > own.0.saturating_add(SECOND_NS)))
}

/// A hiccup of a busy machine is over sooner.
const HANG: Nanos = Nanos::seconds(3);

/// For how long a step's storage or server answered nothing, if that was no hiccup. Another measurement does not undo it.
pub(super) fn hung(step: &Step) -> Option<Nanos> {
    stalls(step).filter(|longest| *longest >= HANG)
}

fn stall_at_end(step: &Step) -> Option<Nanos> {
    let times = step.outstanding.iter().flat_map(|late| [&late.service, &late.unended]);
    let least_ns = times.filter_map(Histogram::min_ns).min()?;
    let before_ns = step.operations.iter().filter_map(|kind| kind.service.max_ns()).max()?;
    (least_ns >= HELD_UP_AT_END_NS && least_ns >= LONGER_AT_END.saturating_mul(before_ns)).then_some(Nanos(least_ns))
}

fn stall_inside(step: &Step) -> Option<Nanos> {
    let seconds = steadiness::operations_of(&steadiness::seconds_inside(step));
    let operations: u64 = seconds.iter().map(|(operations, _)| operations).sum();
    if (operations as f64) < OPERATIONS_PER_INTERVAL * seconds.len() as f64 {
        return None;
    }
    // Where a trace has pauses, nothing stalled unless something was under way all the while.
    let most_ns = match replay::is_of_trace(step) {
        true => Figures(step).response().and_then(|times| times.max_ns()).unwrap_or(0),
        false => u64::MAX,
    };
    steadiness::longest_pause(&seconds, Nanos(most_ns))
}

impl Message for Stalled {
    fn rule(&self) -> Rule {
        Rule::SteadinessStall
    }

    fn sentence(&self) -> String {
        format!("No operation finished for {} in {}, although load was on.", self.longest, list(&self.steps))
    }

    fn advice(&self) -> Option<String> {
        let advice = "Look at the intervals, and at the logs of the kernel and of a server for that time. `plimsoll probe --stalls` says what held it up.";
        Some(advice.to_owned())
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

/// Reads were served by the buffer cache.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CacheHeld {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// The largest share of logical reads that were, 0 to 1.
    pub hit_ratio: f64,
    /// Whether the cache is as large as the data set.
    pub data_fits: bool,
}

impl CacheHeld {
    fn of(run: &Run) -> Option<Self> {
        let (steps, hit_ratio) = worst(run, |step| Figures(step).hit_ratio().filter(|ratio| *ratio >= CACHE_HELD))?;
        let sizes = run.target.data_bytes.zip(run.target.cache_bytes);
        Some(Self { steps, hit_ratio, data_fits: sizes.is_some_and(|(data, cache)| data <= cache) })
    }

    /// Whether the figures are those of the cache.
    pub(super) fn is_doubt(&self) -> bool {
        self.hit_ratio >= MOSTLY_CACHED
    }
}

impl Message for CacheHeld {
    fn rule(&self) -> Rule {
        Rule::CacheHeld
    }

    fn severity(&self) -> Severity {
        if self.is_doubt() { Severity::Doubt } else { Severity::Note }
    }

    fn sentence(&self) -> String {
        let why = if self.data_fits { " The data set fits into the cache." } else { "" };
        let (share, steps) = (percent(self.hit_ratio), list(&self.steps));
        format!("{share} % of logical reads never reached storage in {steps}.{why}")
    }

    fn advice(&self) -> Option<String> {
        Some("To measure storage, use a larger SCALE or a smaller cache.".to_owned())
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}
