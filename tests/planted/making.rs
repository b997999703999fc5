//! Runs on simulated storage in which something is planted.

use model::config::io::BlockSize;
use model::config::io::IoLevel;
use model::config::io::IoOptions;
use model::config::io::Pattern;
use std::collections::BTreeMap;

use plimsoll::config::TargetAddress;
use plimsoll::load::{Begin, Pace, Share, StepPlan, Stop, Surroundings, run_any_step};
use plimsoll::measure::Clock;
use plimsoll::record::{self, Outcome, Run, Step};
use plimsoll::targets::Target;
use plimsoll::targets::simulated::{Simulated, SimulatedOptions};
use plimsoll::units::{Bytes, Nanos};
use plimsoll::workload::io::{IoKind, IoOperation};
use plimsoll::workload::{Arrival, Drawn, Rng, Shape, Stream};

/// One load level.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub depth: u32,
    pub pace: Pace,
}

/// So many requests outstanding, always.
pub fn closed(depth: u32) -> Load {
    Load { depth, pace: Pace::Closed }
}

/// So many requests a second at equal gaps, outstanding as far as `depth` goes.
pub fn open(rate_per_s: f64, depth: u32) -> Load {
    Load { depth, pace: Pace::Open { rate_per_s, arrival: Arrival::Fixed } }
}

/// What all steps of a run share.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub seed: u64,
    pub warmup: Nanos,
    pub duration: Nanos,
    pub requests: Requests,
}

impl Default for Plan {
    fn default() -> Self {
        let requests = Requests { bytes: 8_192, data: Bytes::gib(1), write_pct: 0 };
        Self { seed: 1, warmup: Nanos::seconds(2), duration: Nanos::seconds(10), requests }
    }
}

/// Requests of one size at uniformly random places.
#[derive(Debug, Clone, Copy)]
pub struct Requests {
    pub bytes: u32,
    pub data: Bytes,
    pub write_pct: u64,
}

pub struct RequestStream(Requests, Rng);

impl Shape for Requests {
    type Operation = IoOperation;
    type Stream = RequestStream;

    fn stream_of(&self, _: u32) -> u32 {
        0
    }

    fn stream(&self, seed: u64, stream: u32) -> RequestStream {
        RequestStream(*self, Rng::new(seed, u64::from(stream)))
    }
}

impl Stream for RequestStream {
    type Operation = IoOperation;

    fn draw(&mut self) -> Drawn<IoOperation> {
        let Self(Requests { bytes, data, write_pct }, rng) = self;
        let kind = if rng.below(100) < *write_pct { IoKind::Write } else { IoKind::Read };
        let offset_bytes = rng.below(data.0 / u64::from(*bytes)) * u64::from(*bytes);
        Drawn { operation: IoOperation { kind, offset_bytes, bytes: *bytes, is_durable: false }, think_ns: 0 }
    }
}

/// A run of 8 KiB reads on what `sim`, the text of an address behind its colon, plants.
pub fn planted(sim: &str, steps: &[Load]) -> Run {
    planted_as(sim, &Plan::default(), steps)
}

/// Simulated storage and its time.
pub struct Storage {
    target: Simulated,
    clock: Clock,
    plan: Plan,
    steps: u32,
}

impl Storage {
    /// What `sim`, the text of an address behind its colon, plants. The plan's seed is also that of the device, unless
    /// `sim` has another.
    pub fn open(sim: &str, plan: &Plan) -> Self {
        let seed = if sim.contains("seed=") { String::new() } else { format!(",seed={}", plan.seed) };
        let Ok(TargetAddress::Simulated(pairs)) = format!("sim:{sim}{seed},clock=simulated").parse() else {
            panic!("`{sim}` is no address");
        };
        let options = SimulatedOptions::from_pairs(&pairs).unwrap();
        let clock = options.clock();
        Self { target: Simulated::open_volume(options, clock), clock, plan: *plan, steps: 0 }
    }

    /// Puts load on, after what was before.
    pub fn step(&mut self, load: Load) -> Step {
        let plan = step_plan(self.steps, load, &self.plan);
        self.steps += 1;
        let outcome = run_any_step(
            &self.target,
            &plan,
            Surroundings::new(self.clock, &Stop::new()),
            &mut || Begin::AtOnce,
            &mut |_| {},
        );
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        outcome.step
    }

    /// The document of a run that has these steps.
    pub fn run(&self, steps: Vec<Step>) -> Run {
        Run { steps, ..document(&self.target, &self.plan) }
    }
}

/// The same with a plan of one's own. The plan's seed is also that of the device, unless `sim` has another.
pub fn planted_as(sim: &str, plan: &Plan, steps: &[Load]) -> Run {
    let mut storage = Storage::open(sim, plan);
    let steps = steps.iter().map(|load| storage.step(*load)).collect();
    storage.run(steps)
}

pub fn step_plan(index: u32, Load { depth, pace }: Load, plan: &Plan) -> StepPlan<Requests> {
    let rate_operations_per_s = pace.rate_per_s();
    let arrival = rate_operations_per_s.map(|_| Arrival::Fixed);
    let level = match rate_operations_per_s {
        None => IoLevel::Depth(depth),
        Some(per_s) => IoLevel::Rate { per_s, most: depth },
    };
    StepPlan {
        index,
        label: rate_operations_per_s.map_or_else(|| format!("d{depth}"), |rate| format!("d{depth}_r{rate}")),
        load: record::Intensity {
            sessions: Some(depth),
            rate_operations_per_s,
            arrival,
            ..record::Intensity::default()
        },
        level: Some(record::Level::Io(level)),
        like: None,
        shape: plan.requests,
        seed: plan.seed,
        work_loop: None,
        warmup: plan.warmup,
        duration: plan.duration,
        pace,
        lanes: 1,
        share: Share::WHOLE,
    }
}

/// The document without its steps.
pub fn document(target: &Simulated, plan: &Plan) -> Run {
    let Requests { bytes, data, write_pct } = plan.requests;
    let pattern = match write_pct {
        0 => Pattern::RandRead,
        100 => Pattern::RandWrite,
        _ => Pattern::RandRw,
    };
    let load = record::Load::Io(IoOptions {
        pattern,
        block: BlockSize::new(Bytes(u64::from(bytes))).unwrap(),
        read_pct: (write_pct % 100 != 0).then(|| (100 - write_pct) as u8),
        ..record::sample::requests::random_reads()
    });
    Run {
        format: record::FORMAT,
        id: "planted".to_owned(),
        name: "planted".to_owned(),
        tool: record::Tool { name: "plimsoll".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
        parameters: load.parameters(),
        load,
        check: None,
        command: Vec::new(),
        started_at: record::Timestamp("2026-01-01T00:00:00Z".parse().unwrap()),
        ended_at: None,
        outcome: Outcome::Completed,
        tags: BTreeMap::new(),
        seed: Some(plan.seed),
        target: record::Target { block_bytes: Some(u64::from(bytes)), data_bytes: Some(data.0), ..target.describe() },
        environment: record::Environment::default(),
        notes: target.notes(),
        imported: None,
        part: None,
        like: None,
        merged: None,
        parts: Vec::new(),
        steps: Vec::new(),
    }
}
