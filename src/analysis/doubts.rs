//! What makes the figures of a run less than they seem.

use super::steadiness::{self, Excursion};
use super::{Figures, Finding, ThreadsFlag, Vocabulary, burst, is_on_server, measured, proof};
use crate::record::{Outcome, Run, Step};
use crate::units::Nanos;

/// A thread or a machine busier than this had no time left to send load when it was due.
pub(super) const SATURATED: f64 = 0.9;
/// Share of the asked rate that counts as reached; Poisson arrivals of a short window stray by less.
const RATE_REACHED: f64 = 0.97;
/// A backlog above this share of what was due is a queue that grows.
const BACKLOG: f64 = 0.01;
const IDLE: f64 = 0.05;
/// Seconds without a finished operation are stalls only where many are expected.
const OPERATIONS_PER_INTERVAL: f64 = 20.0;
const CACHE_HELD: f64 = 0.5;

pub(super) fn find(run: &Run) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(outcome(run));
    findings.extend(saturated(run));
    findings.extend(rate_not_reached(run));
    findings.extend(fallbacks(run));
    let labels = |holds: &dyn Fn(&Step) -> bool| -> Vec<String> {
        measured(run).filter(|step| holds(step)).map(|step| step.label.clone()).collect()
    };
    let errors: u64 = measured(run).filter_map(|step| step.counters.errors).sum();
    if errors > 0 {
        let steps = labels(&|step| step.counters.errors.unwrap_or(0) > 0);
        findings.push(Finding::OperationErrors { steps, errors });
    }
    let (bursts, rises) = (burst::bursts(run), burst::rises(run));
    // Two flat levels say why the rate was not steady.
    let explained = |step: &Step| {
        let labels = bursts.iter().flat_map(|burst| &burst.steps).chain(rises.iter().flat_map(|rise| &rise.steps));
        labels.into_iter().any(|label| *label == step.label)
    };
    let unsteady = |step: &Step| unsteady(step).filter(|_| !explained(step));
    findings.extend(worst(run, unsteady).map(|(steps, (range, drift))| Finding::NotSteady { steps, range, drift }));
    findings.extend(worst(run, stalls).map(|(steps, longest)| Finding::Stalled { steps, longest }));
    let words = Vocabulary::of(run);
    // What a server's sessions wait for between operations is reported on servers.
    let waited = |step: &Step| idle(step).filter(|_| !is_on_server(step));
    let threads = ThreadsFlag::of(run);
    let waited = worst(run, waited);
    findings.extend(waited.map(|(steps, share)| Finding::WaitedForProcessor { steps, share, words, threads }));
    findings.extend(cache_held(run));
    if bursts.is_empty() {
        findings.extend(burst::not_seen(run).map(Finding::CreditNotSeen));
    }
    findings.extend(bursts.into_iter().map(Finding::Burst));
    findings.extend(rises.into_iter().map(Finding::Rose));
    findings
}

/// Labels of the steps for which `rule` answers, and the largest answer.
pub(super) fn worst<T: PartialOrd>(run: &Run, rule: impl Fn(&Step) -> Option<T>) -> Option<(Vec<String>, T)> {
    let mut labels = Vec::new();
    let mut largest = None;
    for step in measured(run) {
        if let Some(answer) = rule(step) {
            labels.push(step.label.clone());
            if largest.as_ref().is_none_or(|known| answer > *known) {
                largest = Some(answer);
            }
        }
    }
    Some((labels, largest?))
}

fn outcome(run: &Run) -> Option<Finding> {
    let steps = run.steps.len();
    match &run.outcome {
        Outcome::Completed => None,
        Outcome::Unfinished => Some(Finding::Unfinished { steps }),
        Outcome::Interrupted => Some(Finding::Interrupted {
            steps: measured(run).count(),
            last_is_partial: measured(run).last().is_some_and(|step| step.outcome == Outcome::Interrupted),
        }),
        Outcome::Failed { error } => Some(Finding::Failed { error: error.clone(), steps }),
    }
}

/// Share of the processors that the process may use which it kept busy, 0 to 1.
fn processor_share(run: &Run, step: &Step) -> Option<f64> {
    let cpus = run.environment.cpus.filter(|cpus| *cpus > 0)?;
    Some(Figures(step).processors_busy()? / f64::from(cpus))
}

/// The busier of the load generator's busiest thread and the process as a whole, if either is saturated.
fn saturation(run: &Run, step: &Step) -> Option<f64> {
    let thread = step.generator.as_ref().map(|generator| generator.busiest_share);
    let process = processor_share(run, step);
    thread.into_iter().chain(process).filter(|share| *share > SATURATED).reduce(f64::max)
}

pub(super) fn is_saturated(run: &Run, step: &Step) -> bool {
    saturation(run, step).is_some()
}

fn saturated(run: &Run) -> Option<Finding> {
    let (steps, share) = worst(run, |step| saturation(run, step))?;
    let whole_machine = measured(run).any(|step| processor_share(run, step).is_some_and(|share| share > SATURATED));
    Some(Finding::ClientSaturated { steps, share: share.min(1.0), whole_machine })
}

/// Asked rate, achieved rate and backlog of an open loop that fell behind its schedule.
pub(super) fn behind(step: &Step) -> Option<(f64, f64, Option<u64>)> {
    let asked = step.load.rate_operations_per_s?;
    // What failed was sent and answered all the same: it is reported as failed, not as a queue.
    let achieved = Figures(step).ended_per_s()?;
    let generator = step.generator.as_ref();
    let due = generator.and_then(|generator| generator.due_operations);
    let backlog = generator.and_then(|generator| generator.backlog_operations);
    // Arrivals drawn at random may be fewer than asked; that is no fault of the target.
    let wanted = super::rate(due, step.window.duration_ns).map_or(asked, |due| due.min(asked));
    let queue_grows = match (due, backlog) {
        (Some(due), Some(backlog)) => {
            backlog as f64 > (BACKLOG * due as f64).max(step.load.sessions.map_or(0.0, f64::from))
        }
        _ => false,
    };
    (achieved < RATE_REACHED * wanted || queue_grows).then_some((asked, achieved, backlog))
}

fn rate_not_reached(run: &Run) -> Vec<Finding> {
    measured(run)
        .filter_map(|step| {
            let (asked_per_s, achieved_per_s, backlog) = behind(step)?;
            Some(Finding::RateNotReached {
                step: step.label.clone(),
                asked_per_s,
                achieved_per_s,
                backlog,
                words: Vocabulary::of(run),
            })
        })
        .collect()
}

fn fallbacks(run: &Run) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(engine) =
        proof::fact(run, "io_engine").filter(|engine| engine.contains("psync") || engine.contains("pread"))
    {
        findings.push(Finding::FallbackEngine { engine });
    }
    findings
}

/// How far the rate strays in the window, if it is beyond the limits.
fn unsteady(step: &Step) -> Option<(f64, f64)> {
    let Excursion { range, drift } = steadiness::excursion(step).filter(|excursion| !excursion.is_steady())?;
    Some((range, drift))
}

/// The longest stretch of whole seconds in which no operation finished.
fn stalls(step: &Step) -> Option<Nanos> {
    let seconds = steadiness::operations_of(&steadiness::seconds_inside(step));
    let operations: u64 = seconds.iter().map(|(operations, _)| operations).sum();
    if (operations as f64) < OPERATIONS_PER_INTERVAL * seconds.len() as f64 {
        return None;
    }
    steadiness::longest_pause(&seconds)
}

/// Share of the window in which sessions stood ready, if it is worth telling.
pub(super) fn idle(step: &Step) -> Option<f64> {
    let available = step.window.duration_ns as f64 * f64::from(step.load.sessions?);
    let share = step.generator.as_ref()?.idle_session_ns as f64 / available;
    (share > IDLE).then_some(share)
}

fn cache_held(run: &Run) -> Option<Finding> {
    let (steps, hit_ratio) = worst(run, |step| Figures(step).hit_ratio().filter(|ratio| *ratio >= CACHE_HELD))?;
    let fits = matches!((run.target.data_bytes, run.target.cache_bytes), (Some(data), Some(cache)) if data <= cache);
    Some(Finding::CacheHeld { steps, hit_ratio, data_fits: fits })
}
