//! Made-up runs with known properties, for the tests of everything that reads runs.

#![allow(missing_docs, clippy::unwrap_used, reason = "only tests use it")]

pub mod beside;
pub mod fleet;
pub mod host;
pub mod requests;
pub mod servers;
pub mod stalls;
pub mod windows;

use std::collections::BTreeMap;

use super::{
    BlockDevice, CheckRequest, Counters, CpuTime, Demands, DeviceStats, Ending, Environment, FORMAT, FileFacts,
    FileSystem, Generator, Histogram, Intensity, Interval, Load, OperationStats, Outcome, ProcessIo, Run, SlobLoad,
    Step, Target, TargetFacts, TargetKind, Timestamp, Tool, WaitStats, Window,
};

pub const SEQUENTIAL_READ: &str = "db file sequential read";
const SECOND: u64 = 1_000_000_000;
const BLOCK: u64 = 8_192;
const WORK_UNIT: u64 = 64;
/// 63 of the 64 blocks of an operation miss a cache of 1/64 of the data.
const MISSES: u64 = 63;

/// Shape of a latency distribution: shares of all waits, and where they lie relative to the median. The last line of
/// waits makes the maximum.
const SHAPE: [(f64, f64); 9] = [
    (0.01, 0.62),
    (0.19, 0.80),
    (0.20, 0.92),
    (0.30, 1.08),
    (0.15, 1.25),
    (0.035, 1.60),
    (0.014, 2.40),
    (0.0009, 4.10),
    (0.00009, 9.70),
];

/// A load level and what came of it.
#[derive(Clone, Copy)]
pub struct Level {
    pub sessions: u32,
    pub operations_per_s: u64,
    /// Median of single-block reads.
    pub read_ns: u64,
    pub seconds: u64,
    /// Updates in a hundred operations.
    pub update_pct: u64,
}

/// `count` durations around `median_ns`.
pub fn latencies(count: u64, median_ns: u64) -> Histogram {
    let mut histogram = Histogram::default();
    let mut left = count;
    for (share, factor) in SHAPE {
        let part = (count as f64 * share) as u64;
        histogram.record_n((median_ns as f64 * factor) as u64, part);
        left -= part;
    }
    histogram.record_n(median_ns, left);
    histogram
}

pub fn wait(event: &str, class: &str, foreground: bool, waits: Histogram) -> WaitStats {
    let (event, class, layer) = (event.to_owned(), class.to_owned(), "engine".to_owned());
    WaitStats { event, class, layer, foreground, waits, reported: Vec::new() }
}

fn counters(operations: u64, updates: u64) -> Counters {
    let physical_reads = operations * MISSES;
    let redo_bytes = updates * WORK_UNIT * 420;
    Counters {
        operations: Some(operations),
        errors: Some(0),
        logical_reads: Some(operations * WORK_UNIT),
        cache_hits: Some(operations * (WORK_UNIT - MISSES)),
        buffer_misses: None,
        page_cache_hits: None,
        physical_reads: Some(physical_reads),
        physical_read_bytes: Some(physical_reads * BLOCK),
        physical_read_blocks: None,
        direct_reads: Some(0),
        direct_read_bytes: Some(0),
        physical_writes: Some(updates * MISSES),
        physical_write_bytes: Some(updates * MISSES * BLOCK),
        physical_write_blocks: None,
        block_changes: Some(updates * WORK_UNIT),
        commits: Some(updates),
        redo_bytes: Some(redo_bytes),
        redo_writes: Some(updates / 4),
        redo_write_bytes: Some(redo_bytes + updates / 4 * 512),
        log_switches: Some(u64::from(updates > 0)),
        checkpoints: Some(u64::from(updates > 0)),
        flash_cache_reads: None,
        flash_cache_read_bytes: None,
        flash_cache_writes: None,
        flash_cache_write_bytes: None,
        flash_cache_skipped: None,
        flash_cache_fallbacks: None,
        flash_cache_given_up: None,
    }
}

pub fn step(index: u32, level: Level) -> Step {
    let operations = level.operations_per_s * level.seconds;
    let updates = operations * level.update_pct / 100;
    let counters = counters(operations, updates);
    let reads = operations * MISSES;
    let duration_ns = level.seconds * SECOND;
    // Little's law: in a closed loop the mean operation takes sessions / rate.
    let operation_ns = u64::from(level.sessions) * SECOND / level.operations_per_s.max(1);
    let mut waits = vec![wait(SEQUENTIAL_READ, "User I/O", true, latencies(reads, level.read_ns))];
    let mut operation_stats = vec![operation("read", operations - updates, operation_ns)];
    if updates > 0 {
        operation_stats.push(operation("update", updates, operation_ns + 900_000));
        waits.push(wait("log file sync", "Commit", true, latencies(updates, 900_000)));
        waits.push(wait("db file parallel write", "System I/O", false, latencies(updates, 2_100_000)));
        waits.push(wait("log file parallel write", "System I/O", false, latencies(updates / 4, 600_000)));
    }
    let cpu = CpuTime { user_ns: reads * 6_000, system_ns: reads * 4_000, ..CpuTime::default() };
    Step {
        index,
        label: format!("s{}_t1", level.sessions),
        load: Intensity {
            sessions: Some(level.sessions),
            schemas: Some(level.sessions),
            threads_per_schema: Some(1),
            ..Intensity::default()
        },
        level: None,
        like: None,
        parameters: BTreeMap::new(),
        window: Window {
            offset_ns: u64::from(index) * (duration_ns + 3 * SECOND) + 2 * SECOND,
            warmup_ns: 2 * SECOND,
            duration_ns,
            ending: Ending::Time,
        },
        outcome: Outcome::Completed,
        operations: operation_stats,
        waits,
        failed_connects: BTreeMap::new(),
        failure: None,
        outstanding: Vec::new(),
        unended: None,
        process_cpu: Some(cpu),
        host_cpu: Some(CpuTime {
            user_ns: cpu.user_ns + duration_ns / 50,
            system_ns: cpu.system_ns + duration_ns / 50,
            iowait_ns: Some(duration_ns / 2),
            steal_ns: Some(0),
            idle_ns: Some((8 * duration_ns).saturating_sub(cpu.user_ns + cpu.system_ns)),
        }),
        process_io: Some(ProcessIo {
            read_bytes: reads * BLOCK + 65_536,
            write_bytes: counters.physical_write_bytes.unwrap_or(0) + counters.redo_write_bytes.unwrap_or(0),
        }),
        peak_memory_bytes: Some(151 << 20),
        devices: vec![DeviceStats {
            name: "nvme0n1".to_owned(),
            elapsed_ns: duration_ns,
            reads: reads + 40,
            read_bytes: reads * BLOCK + (1 << 20),
            read_time_ns: reads * level.read_ns * 9 / 10,
            writes: updates * 2 + 30,
            write_bytes: updates * WORK_UNIT * BLOCK + (1 << 20),
            write_time_ns: updates * 1_800_000,
            flushes: Some(0),
            busy_ns: duration_ns * 97 / 100,
            weighted_ns: reads * level.read_ns * 9 / 10,
        }],
        servers: Vec::new(),
        own_reports: Vec::new(),
        instances: Vec::new(),
        reported: Vec::new(),
        tables: Vec::new(),
        traces: Vec::new(),
        cache_curve: None,
        host: None,
        network: Vec::new(),
        channels: Vec::new(),
        pulse_test: None,
        size_test: None,
        relief_test: None,
        generator: Some(Generator {
            lanes: 2,
            busy_ns: duration_ns / 2,
            busiest_share: 0.31,
            wanted_share: None,
            idle_session_ns: 0,
            ..Generator::default()
        }),
        intervals: (0..level.seconds + 2).map(|second| interval(index, level, second)).collect(),
        counters,
    }
}

fn operation(kind: &str, count: u64, mean_ns: u64) -> OperationStats {
    let times = latencies(count, mean_ns);
    OperationStats {
        kind: kind.to_owned(),
        count,
        errors: 0,
        block_touches: count * WORK_UNIT,
        service: times.clone(),
        response: times,
        transactions: None,
        failed: Default::default(),
    }
}

/// Second `second` of the load, the first two being warm-up, with a ripple of 2 %.
fn interval(step: u32, level: Level, second: u64) -> Interval {
    let operations = level.operations_per_s * (99 + second % 3) / 100;
    let updates = operations * level.update_pct / 100;
    let operation_ns = u64::from(level.sessions) * SECOND / level.operations_per_s.max(1);
    let reads = latencies(operations * MISSES, level.read_ns);
    Interval {
        step,
        offset_ns: second * SECOND,
        duration_ns: SECOND,
        warmup: second < 2,
        counters: counters(operations, updates),
        waits: BTreeMap::from([(SEQUENTIAL_READ.to_owned(), reads)]),
        response: latencies(operations, operation_ns),
        process_cpu: None,
        devices: Vec::new(),
        servers: Vec::new(),
        host: None,
        reported: BTreeMap::new(),
        traces: Vec::new(),
        network: Vec::new(),
        channels: Vec::new(),
        slow: None,
        moments: None,
        looks: Vec::new(),
    }
}

/// A check of reads, written as they are asked for.
pub fn check_of_reads(reads: &str) -> CheckRequest {
    let demands = Demands { reads: Some(reads.parse().unwrap()), ..Demands::default() };
    CheckRequest { demands, place: "/u01".to_owned(), scan_bytes: None }
}

/// A run of the embedded engine with these load levels.
pub fn run(levels: &[Level]) -> Run {
    let began: jiff::Timestamp = "2026-11-20T10:30:00Z".parse().unwrap();
    Run {
        format: FORMAT,
        id: "20261120-103000-slob".to_owned(),
        name: "p30x2_d8s".to_owned(),
        tool: Tool { name: "plimsoll".to_owned(), version: "0.1.0".to_owned() },
        load: Load::Slob(SlobLoad::default()),
        check: None,
        command: ["plimsoll", "slob", "sweep", "--tag", "disk=p30x2", "--tag", "vm=d8s"].map(str::to_owned).to_vec(),
        started_at: Timestamp(began),
        ended_at: Some(Timestamp(began + jiff::SignedDuration::from_secs(90))),
        outcome: Outcome::Completed,
        tags: [("disk", "p30x2"), ("vm", "d8s")].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        seed: Some(42),
        parameters: [("UPDATE_PCT", "0"), ("SCALE", "1G"), ("WORK_UNIT", "64"), ("RUN_TIME", "10")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
        target: Target {
            kind: Some(TargetKind::Embedded),
            address: "dir:/u01/plimsoll".to_owned(),
            block_bytes: Some(BLOCK),
            data_bytes: Some(4 << 30),
            cache_bytes: Some(64 << 20),
            cache_blocks: Some(8_100),
            facts: TargetFacts {
                files: FileFacts {
                    io_engine: Some("io_uring".to_owned()),
                    direct_io: Some(true),
                    ..FileFacts::default()
                },
                other: [("workers".to_owned(), "2".to_owned())].into(),
                ..TargetFacts::default()
            },
        },
        environment: environment(),
        notes: Vec::new(),
        imported: None,
        part: None,
        like: None,
        merged: None,
        parts: Vec::new(),
        steps: levels.iter().zip(0..).map(|(level, index)| step(index, *level)).collect(),
    }
}

fn environment() -> Environment {
    Environment {
        hostname: Some("db1".to_owned()),
        os: Some("Debian GNU/Linux 13 (trixie)".to_owned()),
        kernel: Some("6.12.48-cloud-amd64".to_owned()),
        architecture: Some("x86_64".to_owned()),
        cpu_model: Some("Intel(R) Xeon(R) Platinum 8272CL CPU @ 2.60GHz".to_owned()),
        cpus: Some(8),
        memory_bytes: Some(32 << 30),
        memory_available_bytes: Some(29 << 30),
        clocksource: Some("tsc".to_owned()),
        virtualization: Some("microsoft".to_owned()),
        file_system: Some(FileSystem {
            kind: "xfs".to_owned(),
            mount_point: "/u01".to_owned(),
            source: "/dev/nvme0n1".to_owned(),
            options: "rw,noatime,attr2,inode64".to_owned(),
            size_bytes: Some(1 << 40),
            available_bytes: Some(900 << 30),
            ..FileSystem::default()
        }),
        devices: vec![BlockDevice {
            name: "nvme0n1".to_owned(),
            model: Some("MSFT NVMe Accelerator v1.0".to_owned()),
            size_bytes: Some(1 << 40),
            rotational: Some(false),
            scheduler: Some("none".to_owned()),
            queue_requests: Some(1_023),
            read_ahead_bytes: Some(128 << 10),
            logical_block_bytes: Some(512),
            physical_block_bytes: Some(4_096),
            write_cache: Some("write through".to_owned()),
            ..BlockDevice::default()
        }],
        ..Environment::default()
    }
}

/// 1 to 32 sessions against storage that gives 40,320 reads/s and no more: the bound is reached at 8 sessions, and p99
/// crosses 5 ms between 16 and 32.
pub fn sweep(seconds: u64) -> Run {
    let levels = [(1, 80, 420), (2, 158, 430), (4, 308, 460), (8, 560, 610), (16, 636, 1_210), (32, 640, 2_450)];
    run(&levels.map(|(sessions, operations_per_s, us)| Level {
        sessions,
        operations_per_s,
        read_ns: us * 1_000,
        seconds,
        update_pct: 0,
    }))
}

/// One step of 32 sessions with a fifth of updates.
pub fn updates(seconds: u64) -> Run {
    let level = Level { sessions: 32, operations_per_s: 500, read_ns: 900_000, seconds, update_pct: 20 };
    let mut run = run(&[level]);
    run.id = "20261120-104500-slob".to_owned();
    run.name = "p30x2_d8s_s8_t4".to_owned();
    run.parameters.insert("UPDATE_PCT".to_owned(), "20".to_owned());
    run
}

/// A sweep that its user ended in the second step.
pub fn interrupted() -> Run {
    let level = Level { sessions: 1, operations_per_s: 80, read_ns: 420_000, seconds: 5, update_pct: 0 };
    let cut = Level { sessions: 2, operations_per_s: 158, read_ns: 430_000, seconds: 3, update_pct: 0 };
    let mut run = run(&[level, cut]);
    run.id = "20261120-105000-slob".to_owned();
    run.name = "cut_short".to_owned();
    run.outcome = Outcome::Interrupted;
    run.steps[1].outcome = Outcome::Interrupted;
    run.steps[1].window.ending = Ending::Interrupt;
    run
}

/// What remains of a run when another tool's averages and one wait histogram are all there is.
pub fn imported() -> Run {
    let mut run =
        run(&[Level { sessions: 128, operations_per_s: 1_000, read_ns: 2_700_000, seconds: 300, update_pct: 0 }]);
    run.id = "20261120-110000-slob".to_owned();
    run.name = "p30x2_d8s_s64_t1_wu64".to_owned();
    run.tool = Tool { name: "awr".to_owned(), version: "19.0.0.0.0".to_owned() };
    run.command = Vec::new();
    run.target = Target {
        kind: Some(TargetKind::Oracle),
        address: "awr_p30x2_d8s_s64_t1_wu64.txt".to_owned(),
        ..Target::default()
    };
    run.environment = Environment::default();
    let step = &mut run.steps[0];
    step.counters = Counters {
        logical_reads: step.counters.logical_reads,
        physical_reads: step.counters.physical_reads,
        physical_read_bytes: step.counters.physical_read_bytes,
        ..Counters::default()
    };
    step.operations = Vec::new();
    step.process_cpu = None;
    step.host_cpu = None;
    step.process_io = None;
    step.peak_memory_bytes = None;
    step.devices = Vec::new();
    step.generator = None;
    step.intervals = Vec::new();
    run
}
