//! Loads on the processors of a machine with four of them, on two cores.

use std::collections::BTreeMap;

use super::latencies;
use crate::record::{
    Cache, Counters, Ending, HostStats, Intensity, Interval, Load, OperationStats, Outcome, Processor, ProcessorStats,
    ProcessorTimes, Run, Step, Topology, Window, Workload,
};
use crate::units::Bytes;

const SECOND: u64 = 1_000_000_000;
/// Slices that one processor does in a second.
const SLICES: u64 = 1_000;
/// Blocks of a slice.
const UNITS: u64 = 2_048;

/// What a processor does in a second on which nothing else happens.
pub const UNDISTURBED: ProcessorTimes =
    ProcessorTimes { busy_ns: Some(SECOND), steal_ns: Some(0), own_ns: SECOND, operations: SLICES };

/// One load of checksums on four processors, for so many seconds.
pub fn load(seconds: u64) -> Run {
    let mut run = super::sweep(60);
    run.load = Load::foreign(Workload::Host);
    run.parameters.clear();
    run.environment.topology = Some(topology(4));
    run.target = crate::record::Target {
        kind: Some(crate::record::TargetKind::Host),
        address: "processors 0-3".to_owned(),
        ..crate::record::Target::default()
    };
    run.steps = vec![step(0, "checksum", 4, seconds)];
    run
}

/// A step of one kind of work, in which nothing happens besides.
pub fn step(index: u32, kind: &str, threads: u32, seconds: u64) -> Step {
    let slices = SLICES * u64::from(threads) * seconds;
    let operations = OperationStats {
        kind: kind.to_owned(),
        count: slices,
        errors: 0,
        block_touches: slices * UNITS,
        service: latencies(slices, SECOND / SLICES),
        response: latencies(slices, SECOND / SLICES),
        transactions: None,
        failed: Default::default(),
    };
    let processors: Vec<ProcessorStats> = (0..threads).map(|number| processor(number, seconds)).collect();
    let mut step = Step {
        load: Intensity { sessions: Some(threads), ..Intensity::default() },
        window: Window { offset_ns: 0, warmup_ns: 0, duration_ns: seconds * SECOND, ending: Ending::Time },
        outcome: Outcome::Completed,
        counters: Counters { operations: Some(slices), errors: Some(0), ..Counters::default() },
        operations: vec![operations],
        host: Some(host(processors, seconds)),
        intervals: (0..seconds).map(|second| interval(index, threads, second)).collect(),
        ..Step::new(index, format!("{kind}_p{threads}"))
    };
    step.parameters.insert("WORK".to_owned(), kind.to_owned());
    step
}

fn processor(number: u32, seconds: u64) -> ProcessorStats {
    let mut times = ProcessorTimes::NOTHING;
    (0..seconds).for_each(|_| times.add(&UNDISTURBED));
    ProcessorStats { number, times }
}

fn host(processors: Vec<ProcessorStats>, seconds: u64) -> HostStats {
    let mut loaded = ProcessorTimes::NOTHING;
    processors.iter().for_each(|processor| loaded.add(&processor.times));
    HostStats {
        elapsed_ns: seconds * SECOND,
        loaded,
        processors,
        thermal_throttles: Some(0),
        frequency_hz: Some(3_000_000_000),
        temperature_celsius: Some(60.0),
        ..HostStats::default()
    }
}

fn interval(step: u32, threads: u32, second: u64) -> Interval {
    let processors = (0..threads).map(|number| processor(number, 1)).collect();
    let work = BTreeMap::from([("checksum".to_owned(), SLICES * UNITS)]);
    Interval {
        step,
        offset_ns: second * SECOND,
        duration_ns: SECOND,
        counters: Counters { operations: Some(SLICES * u64::from(threads)), errors: Some(0), ..Counters::default() },
        host: Some(HostStats { work, processors: Vec::new(), ..host(processors, 1) }),
        ..Interval::default()
    }
}

/// So many processors, two on each core.
pub fn topology(processors: u32) -> Topology {
    let cores = (processors / 2).max(1);
    let processor = |number| Processor { number, core: Some(number % cores), socket: Some(0) };
    let caches = vec![Cache { level: 3, bytes: 32 << 20, shared_by: Some(processors) }];
    Topology { processors: (0..processors).map(processor).collect(), nodes: Vec::new(), caches }
}

/// Triads on one processor that go through so much memory.
pub fn level(size_bytes: Bytes) -> crate::record::Level {
    crate::record::Level::Host(crate::record::HostLevel {
        work: "memory-triad".parse().unwrap(),
        processors: vec![0],
        size_bytes: Some(size_bytes),
        cache_bytes: None,
        memory_of: None,
        wake_on: None,
    })
}
