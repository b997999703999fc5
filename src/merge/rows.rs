//! What each part did, beside what all did together.

use super::part::{Part, Second};
use super::step::Added;
use super::{Taken, align};
use model::record::{Histogram, MergedPart, PartStep, Step};

/// The parts, before their first step.
pub(super) fn begin(parts: &[Part]) -> Vec<MergedPart> {
    let zero = parts.iter().find(|part| part.place.number == 0);
    let row = |part: &Part| {
        let environment = &part.run.environment;
        MergedPart {
            number: part.place.number,
            host: environment.hostname.clone(),
            cpus: environment.cpus,
            cpu_model: environment.cpu_model.clone(),
            memory_bytes: environment.memory_bytes,
            kernel: environment.kernel.clone(),
            run: part.run.id.clone(),
            outcome: part.run.outcome.clone(),
            clock: align::clock(part, zero),
            start_error_ns: part.place.start_error_ns,
            steps: Vec::new(),
        }
    };
    parts.iter().map(row).collect()
}

/// Adds a step to the parts that are in it.
pub(super) fn add(rows: &mut [MergedPart], parts: &[Part], taken: &Taken, added: &Added) {
    for ((place, at), lies) in taken.from.iter().zip(&added.lying.parts) {
        let Some(part) = parts.get(*place) else { continue };
        let (Some(row), Some(step)) = (rows.get_mut(*place), part.run.steps.get(*at)) else { continue };
        let seconds = part.seconds.get(*at).map_or(&[][..], Vec::as_slice);
        let of_part = of_step(step, seconds, added.step.index);
        row.steps.push(PartStep { cut_before_ns: lies.cut_before_ns, cut_after_ns: lies.cut_after_ns, ..of_part });
    }
}

fn of_step(step: &Step, seconds: &[Second], index: u32) -> PartStep {
    let mut response = Histogram::default();
    step.operations.iter().for_each(|kind| response.merge(&kind.response));
    let window_s = Some(step.window.duration_ns as f64 / 1e9).filter(|seconds| *seconds > 0.0);
    let cpu = step.process_cpu.map(|cpu| cpu.busy_ns() as f64 / 1e9);
    PartStep {
        step: index,
        sessions: step.load.sessions,
        asked_operations_per_s: step.load.rate_operations_per_s,
        window_ns: step.window.duration_ns,
        operations: step.counters.operations,
        errors: step.counters.errors,
        operations_per_s: step
            .counters
            .operations
            .zip(window_s)
            .map(|(operations, seconds)| operations as f64 / seconds),
        deviation_per_s: deviation(seconds),
        p50_ns: response.quantile_ns(0.5),
        p99_ns: response.quantile_ns(0.99),
        busy_processors: cpu.zip(window_s).map(|(busy, seconds)| busy / seconds),
        busiest_share: step.generator.as_ref().map(|generator| generator.busiest_share),
        peak_memory_bytes: step.peak_memory_bytes,
        ..PartStep::default()
    }
}

/// Standard deviation of the rates of the intervals of a window.
fn deviation(seconds: &[Second]) -> Option<f64> {
    let in_window = seconds.iter().filter(|second| !second.warmup && second.duration_ns > 0);
    let rates: Vec<f64> = in_window
        .map(|second| Some(second.operations? as f64 * 1e9 / second.duration_ns as f64))
        .collect::<Option<_>>()?;
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let squares: f64 = rates.iter().map(|rate| (rate - mean) * (rate - mean)).sum();
    (rates.len() > 1).then(|| (squares / (rates.len() - 1) as f64).sqrt())
}
