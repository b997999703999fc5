//! Made-up runs on raw storage, where an operation is one request.

use crate::config::io::{Connections, DepthList, Durable, IoOptions, PageCache, Pattern, Redundancy, Verify, Volumes};
use crate::record::{CalibrateLevel, CalibrateLoad, Soak};
use crate::record::{Load, Workload};
use crate::units::Nanos;
use crate::workload::Arrival;
use std::collections::BTreeMap;

use super::{Level, SECOND, SEQUENTIAL_READ, latencies, wait};
use crate::record::{
    Counters, CpuTime, FileFacts, Generator, Interval, OperationStats, ProcessIo, Run, Step, Target, TargetFacts,
    TargetKind, Throttled, VolumeLayout,
};

const SIZE: u64 = 8_192;

/// A load level of raw storage and what came of it.
#[derive(Clone, Copy)]
pub struct Requests {
    /// Requests outstanding at most.
    pub slots: u32,
    /// What an open loop asks for.
    pub asked_per_s: Option<u64>,
    pub reads_per_s: u64,
    pub writes_per_s: u64,
    /// Median time of a read; writes take twice as long.
    pub service_ns: u64,
    /// How much longer the response is.
    pub queued_ns: u64,
}

/// A run of such steps, ten seconds each.
pub fn run(levels: &[Requests]) -> Run {
    let plain = |level: &Requests| Level {
        sessions: level.slots,
        operations_per_s: level.reads_per_s + level.writes_per_s,
        read_ns: level.service_ns,
        seconds: 10,
        update_pct: 0,
    };
    let mut run = super::run(&levels.iter().map(plain).collect::<Vec<_>>());
    run.id = "20261120-113000-io".to_owned();
    run.name = "p30x2_randread_8K".to_owned();
    run.load = Load::foreign(Workload::Io);
    run.command = ["plimsoll", "io", "sweep"].map(str::to_owned).to_vec();
    run.parameters = [("PATTERN", "randread"), ("BLOCK_SIZE", "8K"), ("JOBS", "1")].map(pair).into();
    run.target = Target {
        kind: Some(TargetKind::Block),
        address: "/u01/test.dat".to_owned(),
        block_bytes: Some(SIZE),
        data_bytes: Some(64 << 30),
        cache_bytes: None,
        cache_blocks: None,
        facts: TargetFacts {
            files: FileFacts {
                direct_io: Some(true),
                durable: Some(Durable::None),
                io_engine: Some("io_uring".to_owned()),
                layout: Some(VolumeLayout::Single),
                ..FileFacts::default()
            },
            ..TargetFacts::default()
        },
    };
    for (step, level) in run.steps.iter_mut().zip(levels) {
        make(step, *level);
    }
    run
}

pub(super) fn pair((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn counters(reads: u64, writes: u64) -> Counters {
    Counters {
        operations: Some(reads + writes),
        errors: Some(0),
        physical_reads: Some(reads),
        physical_read_bytes: Some(reads * SIZE),
        physical_writes: Some(writes),
        physical_write_bytes: Some(writes * SIZE),
        ..Counters::default()
    }
}

fn make(step: &mut Step, level: Requests) {
    let Requests { slots, asked_per_s, reads_per_s, writes_per_s, service_ns, queued_ns } = level;
    let (reads, writes) = (reads_per_s * 10, writes_per_s * 10);
    let (label, key, value) = match asked_per_s {
        Some(rate) => (format!("r{rate}"), "RATE", rate.to_string()),
        None => (format!("d{slots}"), "DEPTH", slots.to_string()),
    };
    step.label = label;
    step.parameters = [(key.to_owned(), value)].into();
    step.load.schemas = None;
    step.load.threads_per_schema = None;
    step.load.rate_operations_per_s = asked_per_s.map(|rate| rate as f64);
    step.load.arrival = asked_per_s.map(|_| Arrival::Poisson);
    step.counters = counters(reads, writes);
    let kind = |kind: &str, count: u64, ns: u64| OperationStats {
        kind: kind.to_owned(),
        count,
        errors: 0,
        block_touches: count,
        service: latencies(count, ns),
        response: latencies(count, ns + queued_ns),
        transactions: None,
        failed: Default::default(),
    };
    step.operations = vec![kind("read", reads, service_ns), kind("write", writes, 2 * service_ns)];
    step.waits = vec![wait(SEQUENTIAL_READ, "User I/O", true, latencies(reads, service_ns))];
    step.waits.push(wait("direct path write", "User I/O", true, latencies(writes, 2 * service_ns)));
    step.waits.retain(|wait| wait.waits.count() > 0);
    step.waits.iter_mut().for_each(|wait| wait.layer = "os file".to_owned());
    step.process_io = Some(ProcessIo { read_bytes: reads * SIZE, write_bytes: writes * SIZE });
    step.process_cpu = Some(CpuTime { user_ns: SECOND, system_ns: 2 * SECOND, ..CpuTime::default() });
    if let Some(host) = &mut step.host_cpu {
        (host.user_ns, host.system_ns, host.idle_ns) =
            (SECOND + SECOND / 5, 2 * SECOND + SECOND / 5, Some(70 * SECOND));
    }
    let device = &mut step.devices[0];
    (device.read_time_ns, device.write_time_ns) = (reads * service_ns, 2 * writes * service_ns);
    device.weighted_ns = device.read_time_ns + device.write_time_ns;
    (device.reads, device.read_bytes) = (reads + 40, reads * SIZE + (1 << 20));
    (device.writes, device.write_bytes) = (writes + 30, writes * SIZE + (1 << 20));
    step.generator = Some(Generator {
        lanes: 1,
        busy_ns: 3 * SECOND,
        busiest_share: 0.3,
        wanted_share: None,
        idle_session_ns: if asked_per_s.is_some() { 0 } else { SECOND / 5 },
        due_operations: asked_per_s.map(|rate| rate * 10),
        backlog_operations: asked_per_s.map(|rate| (rate * 10).saturating_sub(reads + writes)),
        backlog_ages: None,
        own_lag: None,
        schedule_lag: asked_per_s.map(|_| latencies(reads + writes, queued_ns / 2 + 2_000)),
        ceiling_operations_per_s: Some(900_000.0),
        stopped_ns: Some(0),
        throttled: Some(Throttled::default()),
    });
    let writes_ns = latencies(writes_per_s, 2 * service_ns);
    for interval in &mut step.intervals {
        *interval = Interval {
            counters: counters(reads_per_s, writes_per_s),
            waits: BTreeMap::from([
                (SEQUENTIAL_READ.to_owned(), latencies(reads_per_s, service_ns)),
                ("direct path write".to_owned(), writes_ns.clone()),
            ]),
            response: latencies(reads_per_s + writes_per_s, service_ns + queued_ns),
            ..interval.clone()
        };
    }
}

/// 1 to 64 outstanding against storage that stops at 5,000 requests a second.
pub fn sweep() -> Run {
    let levels = [(1, 2_000, 490), (4, 4_800, 800), (16, 5_000, 3_050), (64, 5_000, 12_200)];
    run(&levels.map(|(slots, reads_per_s, us)| Requests {
        slots,
        asked_per_s: None,
        reads_per_s,
        writes_per_s: 0,
        service_ns: us * 1_000,
        queued_ns: 0,
    }))
}

/// Three rates, of which the last is not carried.
pub fn open_loop() -> Run {
    let levels = [(1_000, 1_000, 500, 4), (4_000, 4_000, 700, 30), (8_000, 5_000, 190_000, 2_000_000)];
    run(&levels.map(|(asked, reads_per_s, us, queued_us)| Requests {
        slots: 1_024,
        asked_per_s: Some(asked),
        reads_per_s,
        writes_per_s: 0,
        service_ns: us * 1_000,
        queued_ns: queued_us * 1_000,
    }))
}

/// Seven reads for three writes, durable each.
pub fn mixed() -> Run {
    let mut run = run(&[Requests {
        slots: 16,
        asked_per_s: None,
        reads_per_s: 7_000,
        writes_per_s: 3_000,
        service_ns: 1_190_000,
        queued_ns: 0,
    }]);
    run.parameters.extend([("PATTERN", "randrw"), ("READ_PCT", "70")].map(pair));
    run.target.facts.files.durable = Some(Durable::Dsync);
    run.environment.devices[0].write_cache = Some("write back".to_owned());
    run.environment.devices[0].forced_unit_access = Some(false);
    run.steps[0].devices[0].flushes = Some(29_000);
    run
}

/// Random reads of 8 KiB at a depth of 8, past the page cache.
pub fn random_reads() -> IoOptions {
    IoOptions {
        paths: Vec::new(),
        pattern: Pattern::RandRead,
        block: "8K".parse().unwrap(),
        read_pct: None,
        distribution: None,
        depths: DepthList(vec![8]),
        jobs: 1,
        rates: None,
        arrival: None,
        volumes: Volumes::One,
        connections: Connections::Addressed,
        size: None,
        durable: Durable::None,
        page_cache: PageCache::Bypassed,
        stripe: None,
        redundancy: Redundancy::None,
        verify: Verify::Nothing,
    }
}

/// The same in rounds of this length.
pub fn soak(round_ns: Nanos) -> Soak {
    Soak { requests: random_reads(), round_ns }
}

/// A search with reads of 8 KiB and of 1 MiB, at most 64 of the small ones outstanding.
pub fn calibration(max_latency: &str) -> CalibrateLoad {
    CalibrateLoad {
        small: "8K".parse().unwrap(),
        large: "1M".parse().unwrap(),
        max_small: 64,
        max_large: 64,
        max_latency: max_latency.to_owned(),
    }
}

/// One of its readings.
pub fn reading(block: &str, depth: u32) -> crate::record::Level {
    crate::record::Level::Calibrate(CalibrateLevel { block: block.parse().unwrap(), depth, jobs: 1 })
}
