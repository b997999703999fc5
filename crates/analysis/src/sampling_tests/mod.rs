//! What the rules find in hundreds of made-up runs: everything that was planted, and nothing where nothing was.

use super::*;
use model::record::Load;
use model::record::Workload;
use model::record::sample::{self, Level};
use model::record::{Counters, Histogram, Intensity, Interval, OperationStats, Step, TargetKind};

mod bursts;
mod ceilings;
mod disturbed;
mod knees;

const SEEDS: u64 = 200;
const SECOND: u64 = 1_000_000_000;

/// A seeded source of noise.
pub(super) struct Noise(u64);

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66)
    }

    /// 0 to 1, both excluded.
    pub(super) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (((mixed ^ (mixed >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Mean 0, standard deviation 1.
    pub(super) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// `count` values of standard deviation `deviation` that remember each other for about `memory_s`.
    pub(super) fn slow(&mut self, count: usize, deviation: f64, memory_s: f64) -> Vec<f64> {
        let keep = (-1.0 / memory_s).exp();
        let mut value = self.normal();
        (0..count)
            .map(|_| {
                value = keep * value + (1.0 - keep * keep).sqrt() * self.normal();
                value * deviation
            })
            .collect()
    }
}

/// Every `rates[second]` a count drawn from a Poisson distribution, well enough for rates above 30.
pub(super) fn poisson(noise: &mut Noise, rates: &[f64]) -> Vec<f64> {
    rates.iter().map(|rate| (rate + rate.max(0.0).sqrt() * noise.normal()).max(0.0).round()).collect()
}

/// A run of raw I/O in which operations are requests of `block_bytes`.
pub(super) fn io_run(steps: Vec<Step>) -> Run {
    let mut run = sample::run(&[]);
    run.load = Load::foreign(Workload::Io);
    run.target.kind = Some(TargetKind::Simulated);
    run.environment = Default::default();
    // No tag names volumes, so that any may be recognised.
    run.tags.clear();
    run.steps = steps;
    run
}

fn reads(requests: u64, block_bytes: u64) -> Counters {
    Counters {
        operations: Some(requests),
        physical_reads: Some(requests),
        physical_read_bytes: Some(requests * block_bytes),
        ..Counters::default()
    }
}

/// A closed-loop step of `sessions` that finished `counts[second]` requests in each second, after `warmup` seconds like
/// the first. Service times lie around Little's mean.
pub(super) fn io_step(index: u32, sessions: u32, block_bytes: u64, counts: &[f64], warmup: usize) -> Step {
    let level = Level { sessions, operations_per_s: 1, read_ns: 1_000, seconds: 0, update_pct: 0 };
    let mut step = sample::step(index, level);
    let total: u64 = counts.iter().map(|count| *count as u64).sum();
    let mean_ns = u64::from(sessions) * SECOND * counts.len() as u64 / total.max(1);
    step.label = format!("d{sessions}_{index}");
    step.load = Intensity { sessions: Some(sessions), ..Intensity::default() };
    step.window.duration_ns = counts.len() as u64 * SECOND;
    step.window.warmup_ns = warmup as u64 * SECOND;
    step.counters = reads(total, block_bytes);
    step.operations = vec![operation(total, mean_ns)];
    step.waits = vec![sample::wait(SINGLE_BLOCK_READ, "User I/O", true, sample::latencies(total, mean_ns))];
    step.generator = None;
    step.process_io = None;
    step.process_cpu = None;
    step.devices = Vec::new();
    let first = counts.first().copied().unwrap_or(0.0);
    step.intervals = std::iter::repeat_n(first, warmup)
        .chain(counts.iter().copied())
        .enumerate()
        .map(|(second, count)| Interval {
            step: index,
            offset_ns: second as u64 * SECOND,
            duration_ns: SECOND,
            warmup: second < warmup,
            counters: reads(count as u64, block_bytes),
            ..Interval::default()
        })
        .collect();
    step
}

pub(super) fn operation(count: u64, mean_ns: u64) -> OperationStats {
    let mut times = Histogram::default();
    for (share, factor) in [(0.05, 0.7), (0.8, 1.0), (0.15, 1.1)] {
        times.record_n((mean_ns as f64 * factor) as u64, (count as f64 * share) as u64);
    }
    OperationStats {
        kind: "read".to_owned(),
        count,
        errors: 0,
        block_touches: count,
        service: times.clone(),
        response: times,
        transactions: None,
        failed: Default::default(),
    }
}

/// Share of the seeds for which `finds` holds.
pub(super) fn share(finds: impl Fn(&mut Noise) -> bool) -> f64 {
    (0..SEEDS).filter(|seed| finds(&mut Noise::new(*seed))).count() as f64 / SEEDS as f64
}

#[test]
fn what_is_reported_reads_as_sentences() {
    let runs = bursts::runs_with_findings()
        .into_iter()
        .chain(ceilings::runs_with_findings())
        .chain(disturbed::runs_with_findings())
        .chain(knees::runs_with_findings());
    for finding in runs.flat_map(|run| analyse(&run, &LatencyTarget::default())) {
        for text in [Some(finding.sentence()), finding.advice()].into_iter().flatten() {
            assert!(text.ends_with('.') && !text.contains('\n') && !text.contains("  "), "{text}");
        }
    }
}
