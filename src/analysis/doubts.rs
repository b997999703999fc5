//! What makes the figures of a run less than they seem.

use super::{Figures, Finding, burst, measured};
use crate::record::{Interval, Outcome, Run, Step};
use crate::units::Nanos;

/// A thread or a machine busier than this had no time left to send load when it was due.
const SATURATED: f64 = 0.9;
/// Share of the asked rate that counts as reached; Poisson arrivals of a short window stray by less.
const RATE_REACHED: f64 = 0.97;
/// A backlog above this share of what was due is a queue that grows.
const BACKLOG: f64 = 0.01;
/// Rounds that a window is cut into, and the limits on them, of the steady-state rule of SNIA's Solid State Storage
/// Performance Test Specification: range within 20 % of the mean, straight-line drift within 10 %.
const ROUNDS: usize = 5;
const STEADY_RANGE: f64 = 0.20;
const STEADY_DRIFT: f64 = 0.10;
/// Below so many operations a round, chance alone moves its rate.
const OPERATIONS_PER_ROUND: u64 = 200;
const IDLE: f64 = 0.05;
/// Seconds without a finished operation are stalls only where many are expected.
const OPERATIONS_PER_INTERVAL: f64 = 20.0;
const READS_AGREE: f64 = 0.01;
/// The device's reads above ours that are told: file system metadata and rounding stay below.
const OTHERS: f64 = 1.1;
/// Byte counts below this are not compared.
const ENOUGH_BYTES: u64 = 16 << 20;
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
    findings.extend(worst(run, |step| disagreement(run, step)).map(|(steps, (share, engine_bytes, kernel_bytes))| {
        Finding::ReadsDisagree { steps, share, engine_bytes, kernel_bytes }
    }));
    let (bursts, rises) = (burst::bursts(run), burst::rises(run));
    // Two flat levels say why the rate was not steady.
    let explained = |step: &Step| {
        let labels = bursts.iter().flat_map(|burst| &burst.steps).chain(rises.iter().flat_map(|rise| &rise.steps));
        labels.into_iter().any(|label| *label == step.label)
    };
    let unsteady = |step: &Step| unsteady(step).filter(|_| !explained(step));
    findings.extend(worst(run, unsteady).map(|(steps, (range, drift))| Finding::NotSteady { steps, range, drift }));
    findings.extend(worst(run, stalls).map(|(steps, longest)| Finding::Stalled { steps, longest }));
    findings.extend(worst(run, idle).map(|(steps, share)| Finding::WaitedForProcessor { steps, share }));
    findings.extend(worst(run, shared_device).map(|(steps, (times, device))| Finding::DeviceSharedWithOthers {
        steps,
        device,
        times,
    }));
    findings.extend(cache_held(run));
    if bursts.is_empty() {
        findings.extend(burst::not_seen(run).map(Finding::CreditNotSeen));
    }
    findings.extend(bursts.into_iter().map(Finding::Burst));
    findings.extend(rises.into_iter().map(Finding::Rose));
    findings
}

/// Labels of the steps for which `rule` answers, and the largest answer.
fn worst<T: PartialOrd>(run: &Run, rule: impl Fn(&Step) -> Option<T>) -> Option<(Vec<String>, T)> {
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

fn rate_not_reached(run: &Run) -> Vec<Finding> {
    measured(run)
        .filter_map(|step| {
            let asked = step.load.rate_operations_per_s?;
            let achieved = Figures(step).operations_per_s()?;
            let generator = step.generator.as_ref();
            let due = generator.and_then(|generator| generator.due_operations);
            let backlog = generator.and_then(|generator| generator.backlog_operations);
            // Arrivals drawn at random may be fewer than asked; that is no fault of the target.
            let wanted = super::rate(due, step.window.duration_ns).map_or(asked, |due| due.min(asked));
            let queue_grows = match (due, backlog) {
                (Some(due), Some(backlog)) => {
                    backlog as f64 > (BACKLOG * due as f64).max(f64::from(step.load.sessions))
                }
                _ => false,
            };
            (achieved < RATE_REACHED * wanted || queue_grows).then(|| Finding::RateNotReached {
                step: step.label.clone(),
                asked_per_s: asked,
                achieved_per_s: achieved,
                backlog,
            })
        })
        .collect()
}

fn fallbacks(run: &Run) -> Vec<Finding> {
    let fact = |name: &str| run.target.facts.get(name).map(|value| value.trim().to_ascii_lowercase());
    let mut findings = Vec::new();
    if matches!(fact("direct_io").as_deref(), Some("off" | "no" | "false" | "refused")) {
        findings.push(Finding::PageCacheInPath);
    }
    if let Some(engine) = fact("io_engine").filter(|engine| engine.contains("psync") || engine.contains("pread")) {
        findings.push(Finding::FallbackEngine { engine });
    }
    findings
}

/// Completed operations and length of each whole second inside the window.
fn inside(step: &Step) -> Vec<(u64, u64)> {
    let longest = step.intervals.iter().map(|interval| interval.duration_ns).max().unwrap_or(0);
    let whole = |interval: &&Interval| !interval.warmup && interval.duration_ns > longest / 2;
    let count = |interval: &Interval| Some((interval.counters.operations?, interval.duration_ns));
    step.intervals.iter().filter(whole).filter_map(count).collect()
}

/// Range and drift of the operation rate as shares of its mean, if they are beyond the limits.
fn unsteady(step: &Step) -> Option<(f64, f64)> {
    let intervals = inside(step);
    if intervals.len() < 2 * ROUNDS {
        return None;
    }
    let mut rates = [0.0; ROUNDS];
    for (round, rate) in rates.iter_mut().enumerate() {
        let part = &intervals[round * intervals.len() / ROUNDS..(round + 1) * intervals.len() / ROUNDS];
        let (operations, ns) = part.iter().fold((0, 0), |(n, ns), (more, longer)| (n + more, ns + longer));
        *rate = super::rate(Some(operations), ns)?;
    }
    let total: u64 = intervals.iter().map(|(operations, _)| operations).sum();
    if total < OPERATIONS_PER_ROUND * ROUNDS as u64 {
        return None;
    }
    let mean = rates.iter().sum::<f64>() / ROUNDS as f64;
    let (low, high) = rates.iter().fold((f64::MAX, f64::MIN), |(low, high), y| (low.min(*y), high.max(*y)));
    let middle = (ROUNDS - 1) as f64 / 2.0;
    let (products, squares) = rates.iter().enumerate().fold((0.0, 0.0), |(products, squares), (x, y)| {
        let x = x as f64 - middle;
        (products + x * (y - mean), squares + x * x)
    });
    let range = (high - low) / mean;
    let drift = products / squares * (ROUNDS - 1) as f64 / mean;
    (range > STEADY_RANGE || drift.abs() > STEADY_DRIFT).then_some((range, drift))
}

/// The longest stretch of whole seconds in which no operation finished.
fn stalls(step: &Step) -> Option<Nanos> {
    let intervals = inside(step);
    let operations: u64 = intervals.iter().map(|(operations, _)| operations).sum();
    if (operations as f64) < OPERATIONS_PER_INTERVAL * intervals.len() as f64 {
        return None;
    }
    let (mut longest, mut stretch) = (0, 0);
    for (operations, ns) in intervals {
        stretch = if operations == 0 { stretch + ns } else { 0 };
        longest = longest.max(stretch);
    }
    (longest > 0).then_some(Nanos(longest))
}

fn idle(step: &Step) -> Option<f64> {
    let available = step.window.duration_ns as f64 * f64::from(step.load.sessions);
    let share = step.generator.as_ref()?.idle_session_ns as f64 / available;
    (share > IDLE).then_some(share)
}

/// Our count of bytes read against the kernel's, where this process does the reading itself.
fn disagreement(run: &Run, step: &Step) -> Option<(f64, u64, u64)> {
    if !matches!(run.target.kind.as_str(), "embedded" | "block") {
        return None;
    }
    let engine = step.counters.physical_read_bytes?;
    let kernel = step.process_io?.read_bytes;
    let more = engine.max(kernel);
    let share = engine.abs_diff(kernel) as f64 / more.max(1) as f64;
    (more >= ENOUGH_BYTES && share > READS_AGREE).then_some((share, engine, kernel))
}

/// How many times our reads the device has read. The first device is what the file system is mounted from; those below
/// it see the same requests again.
fn shared_device(step: &Step) -> Option<(f64, String)> {
    let device = step.devices.first()?;
    let ours = Figures(step).read_megabytes_per_s()?;
    let all = super::rate(Some(device.read_bytes), device.elapsed_ns)? / 1e6;
    (device.read_bytes >= ENOUGH_BYTES && all > OTHERS * ours).then(|| (all / ours.max(1e-3), device.name.clone()))
}

fn cache_held(run: &Run) -> Option<Finding> {
    let (steps, hit_ratio) = worst(run, |step| Figures(step).hit_ratio().filter(|ratio| *ratio >= CACHE_HELD))?;
    let fits = matches!((run.target.data_bytes, run.target.cache_bytes), (Some(data), Some(cache)) if data <= cache);
    Some(Finding::CacheHeld { steps, hit_ratio, data_fits: fits })
}
