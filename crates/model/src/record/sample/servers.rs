//! Made-up runs on database servers, with known properties.

use std::collections::BTreeMap;

use super::requests::pair;
use super::{BLOCK, Level, SECOND, latencies, wait};
use crate::record::{
    Activity, Counters, CpuTime, DeviceStats, Gauge, Run, SentAs, ServerFacts, ServerStats, SessionState, Step, Target,
    TargetFacts, TargetKind, Term, TraceStats,
};

/// Blocks of an operation that its index takes; they stay in the buffer cache.
const INDEX_BLOCKS: u64 = 3;
/// Blocks of rows, of which all but a few miss the buffer cache.
const ROWS: u64 = 64;
const MISSES: u64 = 60;
/// A record of an update and its commit.
const RECORD: u64 = 180;
/// A full-page image, its hole left out.
const IMAGE: u64 = 1_400;

/// How a server is set up, and what it lets us see.
#[derive(Clone, Copy)]
pub struct Server {
    pub node: &'static str,
    /// Operations that it gets, in a hundred of the load's.
    pub load_pct: u64,
    /// Buffer misses that the page cache answers, in a hundred; unknown of a server that runs elsewhere.
    pub page_cache_pct: Option<u64>,
    /// Processor time for a logical read; unknown of a server that runs elsewhere.
    pub cpu_ns: Option<u64>,
    /// Rows of a hundred updated ones whose new version stays on its page.
    pub hot_pct: u64,
    /// Pages by which its tables grow a second.
    pub grows_per_s: u64,
}

/// A server on this machine that reads from its storage.
pub const LOCAL: Server = Server {
    node: "/u01/pgdata",
    load_pct: 100,
    page_cache_pct: Some(5),
    cpu_ns: Some(25_000),
    hot_pct: 99,
    grows_per_s: 0,
};

/// What `server` reported on `operations` in `elapsed_ns`.
fn server_stats(server: Server, operations: u64, updates: u64, elapsed_ns: u64) -> ServerStats {
    let of_load = |count: u64| count * server.load_pct / 100;
    let (operations, updates) = (of_load(operations), of_load(updates));
    let misses = operations * MISSES;
    let logical_reads = operations * (ROWS + INDEX_BLOCKS);
    let from_storage = server.page_cache_pct.map(|share| misses - misses * share / 100);
    let (rows, images) = (updates * ROWS, updates * ROWS / 2);
    let wal_bytes = rows * RECORD + images * IMAGE;
    let seconds = elapsed_ns / SECOND;
    let activity = [
        (Activity::Commits, operations),
        (Activity::Rollbacks, 0),
        (Activity::Deadlocks, 0),
        (Activity::LogRecords, rows + updates),
        (Activity::LogBlockImages, images),
        (Activity::CheckpointsTimed, 0),
        (Activity::CheckpointsRequested, 0),
        (Activity::BlocksWrittenByCheckpoints, 0),
        (Activity::BlocksWrittenInBackground, rows / 4),
        (Activity::BlocksWrittenBySessions, rows / 2),
        (Activity::RowsUpdated, rows),
        (Activity::RowsUpdatedInPlace, rows * server.hot_pct / 100),
        (Activity::Vacuums, 0),
        (Activity::Analyses, 0),
        (Activity::TableBlocksGrown, server.grows_per_s * seconds),
    ];
    let own = [("pg_stat_database.xact_commit", operations), ("pg_stat_wal.wal_fpi", images)];
    let samples = [("CPU", 1), ("IO:DataFileRead", 5), ("IO:WALSync", 1), ("LWLock:WALWrite", 1)];
    let sampled_times = seconds * 10;
    let session_samples = samples.map(|(name, sessions)| (name.to_owned(), sessions * sampled_times)).into();
    let cpu = server.cpu_ns.map(|ns| ns * logical_reads);
    ServerStats {
        node: server.node.to_owned(),
        elapsed_ns,
        counters: Counters {
            logical_reads: Some(logical_reads),
            cache_hits: Some(logical_reads - misses),
            buffer_misses: Some(misses),
            page_cache_hits: from_storage.map(|reads| misses - reads),
            physical_reads: from_storage,
            physical_read_bytes: from_storage.map(|reads| reads * BLOCK),
            physical_writes: Some(rows * 3 / 4),
            physical_write_bytes: Some(rows * 3 / 4 * BLOCK),
            redo_bytes: Some(wal_bytes),
            checkpoints: Some(0),
            ..Counters::default()
        },
        activity: activity.into(),
        own: own.map(|(name, count)| (name.to_owned(), count)).into(),
        session_states: crate::record::states(&session_samples),
        session_samples,
        sampled_times,
        cpu: cpu.map(|ns| CpuTime { user_ns: ns * 2 / 3, system_ns: ns / 3, ..CpuTime::default() }),
        ..ServerStats::default()
    }
}

/// Puts what the servers reported in the place of what an engine counts.
fn count(counters: &mut Counters, servers: &[ServerStats]) {
    *counters = Counters {
        operations: counters.operations,
        errors: counters.errors,
        commits: counters.commits,
        ..Counters::default()
    };
    servers.iter().for_each(|server| counters.add(&server.counters));
}

/// Makes a step of the embedded engine one on `servers`.
pub fn land(step: &mut Step, servers: &[Server]) {
    let servers_of = |counters: &Counters, ns: u64| -> Vec<ServerStats> {
        let counted = |count: Option<u64>| count.unwrap_or(0);
        let stats =
            |server: &Server| server_stats(*server, counted(counters.operations), counted(counters.commits), ns);
        servers.iter().map(stats).collect()
    };
    step.servers = servers_of(&step.counters, step.window.duration_ns);
    count(&mut step.counters, &step.servers);
    for interval in &mut step.intervals {
        interval.servers = servers_of(&interval.counters, interval.duration_ns);
        count(&mut interval.counters, &interval.servers);
        interval.waits = BTreeMap::new();
    }
    let updates = step.counters.commits.unwrap_or(0);
    step.waits = Vec::new();
    if updates > 0 {
        let mut commits = wait("commit", "Commit", true, latencies(updates, 1_100_000));
        commits.layer = "server".to_owned();
        step.waits.push(commits);
    }
    step.process_io = None;
    let (cpu_ns, window_ns) = (step.counters.operations.unwrap_or(0) * 4_000, step.window.duration_ns);
    step.process_cpu = Some(CpuTime { user_ns: cpu_ns * 3 / 4, system_ns: cpu_ns / 4, ..CpuTime::default() });
    let server_ns: u64 =
        step.servers.iter().filter_map(|server| server.cpu).map(|cpu| cpu.user_ns + cpu.system_ns).sum();
    let used_ns = cpu_ns + server_ns + window_ns / 25;
    step.host_cpu = Some(CpuTime {
        user_ns: used_ns * 2 / 3,
        system_ns: used_ns / 3,
        iowait_ns: Some(window_ns),
        steal_ns: Some(0),
        idle_ns: Some((7 * window_ns).saturating_sub(used_ns)),
    });
    if let Some(generator) = &mut step.generator {
        (generator.busy_ns, generator.busiest_share) = (cpu_ns, cpu_ns as f64 / 2.0 / window_ns as f64);
    }
    devices(step, servers);
}

/// The device of a server on this machine reads what its sessions had fetched; that of another cannot be seen.
fn devices(step: &mut Step, servers: &[Server]) {
    if servers.iter().any(|server| server.page_cache_pct.is_none()) {
        step.devices = Vec::new();
    }
    let reads = step.counters.physical_reads.unwrap_or(0);
    let written: u64 = step.counters.physical_writes.unwrap_or(0);
    for device in &mut step.devices {
        *device = DeviceStats {
            name: device.name.clone(),
            elapsed_ns: device.elapsed_ns,
            reads,
            read_bytes: reads * BLOCK,
            read_time_ns: reads * 400_000,
            writes: written / 2,
            write_bytes: written * BLOCK,
            write_time_ns: written * 300_000,
            flushes: step.counters.commits,
            busy_ns: device.elapsed_ns * 9 / 10,
            weighted_ns: reads * 400_000 + written * 300_000,
        };
    }
}

fn run(levels: &[Level], servers: &[Server]) -> Run {
    let mut run = super::run(levels);
    run.id = "20261120-120000-slob".to_owned();
    run.name = "pg_p30x2".to_owned();
    let percent = levels.first().map_or(0, |level| level.update_pct);
    run.parameters.insert("UPDATE_PCT".to_owned(), percent.to_string());
    for step in &mut run.steps {
        land(step, servers);
    }
    run.target = Target {
        kind: Some(TargetKind::Postgres),
        address: "postgres://bench@db1/bench".to_owned(),
        block_bytes: Some(BLOCK),
        data_bytes: Some(8 << 30),
        cache_bytes: Some(128 << 20),
        cache_blocks: Some(16_384),
        facts: TargetFacts {
            server: ServerFacts {
                is_private: Some(false),
                sent_as: Some(SentAs::Batch),
                settings: [
                    ("shared_buffers", "128MB"),
                    ("max_wal_size", "1GB"),
                    ("full_page_writes", "on"),
                    ("track_io_timing", "off"),
                ]
                .map(pair)
                .into(),
                ..ServerFacts::default()
            },
            other: [("server_version", "15.18"), ("timed_by", "server"), ("schema", "plimsoll")].map(pair).into(),
            ..TargetFacts::default()
        },
    };
    crate::record::describe(&mut run.target.facts.server);
    run
}

/// A private cluster on this machine: batches, a fifth of updates, 4 to 16 sessions, reads and writes traced.
pub fn private_cluster() -> Run {
    let levels = [(4, 150, 26), (8, 280, 28), (16, 460, 34)];
    let levels = levels.map(|(sessions, operations_per_s, ms)| Level {
        sessions,
        operations_per_s,
        read_ns: ms * 1_000_000,
        seconds: 60,
        update_pct: 20,
    });
    let mut run = run(&levels, &[LOCAL]);
    run.target.address = "pg:/u01/pgdata".to_owned();
    run.command =
        ["plimsoll", "slob", "sweep", "--target", "pg:/u01/pgdata", "--host-memory", "1G"].map(str::to_owned).to_vec();
    run.target.facts.server.is_private = Some(true);
    run.target.facts.server.memory_limit_bytes = Some(1 << 30);
    for step in &mut run.steps {
        let reads = step.counters.buffer_misses.unwrap_or(0);
        let (half, rest) = (reads / 2, reads - reads / 2);
        let mut buckets = vec![0; 11];
        (buckets[8], buckets[9]) = (half, rest);
        step.traces.push(TraceStats {
            counted_by_kernel: None,
            layer: "OS file".to_owned(),
            event: "data read".to_owned(),
            device: None,
            elapsed_ns: step.window.duration_ns,
            count: reads,
            bytes: reads * BLOCK,
            total_ns: reads * 260_000,
            buckets,
        });
    }
    run
}

/// A private MySQL server, which counts its reads itself and keeps redo; updates met each other.
pub fn innodb() -> Run {
    let level = Level { sessions: 8, operations_per_s: 280, read_ns: 28_000_000, seconds: 60, update_pct: 20 };
    let mut run = run(&[level], &[Server { node: "my", ..LOCAL }]);
    run.target.kind = Some(TargetKind::Mysql);
    run.target.address = "my:/u01/mydata".to_owned();
    run.command = ["plimsoll", "slob", "run", "--target", "my:/u01/mydata"].map(str::to_owned).to_vec();
    run.target.facts = TargetFacts {
        server: ServerFacts {
            is_private: Some(true),
            reads_directly: Some(true),
            counts_device_reads: Some(true),
            sent_as: Some(SentAs::Batch),
            settings: [("innodb_buffer_pool_size", "134217728")].map(pair).into(),
            terms: [
                (Term::Log, "redo log"),
                (Term::BufferCache, "innodb_buffer_pool_size"),
                (Term::Sessions, "the process list"),
                (Term::DirectReads, "innodb_flush_method=O_DIRECT"),
            ]
            .map(|(term, name)| (term, name.to_owned()))
            .into(),
            ..ServerFacts::default()
        },
        other: [("server_version", "8.0.15"), ("timed_by", "server")].map(pair).into(),
        ..TargetFacts::default()
    };
    for step in &mut run.steps {
        count_as_innodb(&mut step.counters, &mut step.servers);
        for interval in &mut step.intervals {
            count_as_innodb(&mut interval.counters, &mut interval.servers);
        }
    }
    run
}

fn count_as_innodb(sum: &mut Counters, servers: &mut [ServerStats]) {
    for server in servers.iter_mut() {
        let rows = server.activity[&Activity::RowsUpdated];
        let seconds = server.elapsed_ns / SECOND;
        let counters = &mut server.counters;
        counters.physical_reads = counters.buffer_misses.take();
        counters.physical_read_bytes = counters.physical_reads.map(|reads| reads * BLOCK);
        counters.page_cache_hits = None;
        counters.physical_write_blocks = counters.physical_writes.take();
        server.activity = [
            (Activity::RowsUpdated, rows),
            (Activity::LogWrites, 40 * seconds),
            (Activity::LogSyncs, 30 * seconds),
            (Activity::LockWaits, seconds),
            (Activity::LockWaitNs, 2_000_000 * seconds),
            (Activity::UpdatesRepeated, 2 * seconds),
            (Activity::BlockReadNs, 5 * server.elapsed_ns),
        ]
        .into();
        server.gauges =
            [(Gauge::DirtyBlocks, 4_000), (Gauge::CheckpointAgeBytes, 90_000_000), (Gauge::PurgeBacklog, 12)].into();
        server.session_samples =
            [("executing".to_owned(), 7 * server.sampled_times), ("Commit".to_owned(), server.sampled_times)].into();
        server.session_states =
            [("executing".to_owned(), SessionState::ProcessorOrRead), ("Commit".to_owned(), SessionState::LogWrite)]
                .into();
        server.own = BTreeMap::new();
    }
    count(sum, servers);
}

/// Somebody else's server, of which an ordinary user sees neither the page cache nor processors: statements, no updates.
pub fn remote() -> Run {
    let level = Level { sessions: 16, operations_per_s: 900, read_ns: 17_000_000, seconds: 60, update_pct: 0 };
    let elsewhere = Server { node: "db1:5432", page_cache_pct: None, cpu_ns: None, ..LOCAL };
    let mut run = run(&[level], &[elsewhere]);
    run.target.facts.server.sent_as = Some(SentAs::Statement);
    run.target.facts.other.extend([("timed_by", "client")].map(pair));
    for step in &mut run.steps {
        let servers = step.intervals.iter_mut().flat_map(|interval| &mut interval.servers).chain(&mut step.servers);
        for server in servers {
            server.session_samples = [("CPU".to_owned(), 4 * server.sampled_times)].into();
        }
    }
    run
}

/// Two nodes, one of which has three fifths of the load.
pub fn two_nodes() -> Run {
    let level = Level { sessions: 16, operations_per_s: 800, read_ns: 20_000_000, seconds: 60, update_pct: 0 };
    let (left, right) = (
        Server { node: "db1:5432", load_pct: 60, page_cache_pct: None, cpu_ns: None, ..LOCAL },
        Server { node: "db2:5432", load_pct: 40, page_cache_pct: None, cpu_ns: None, ..LOCAL },
    );
    let mut run = run(&[level], &[left, right]);
    run.target.address = "postgres://bench@db1,db2/bench".to_owned();
    run.target.facts.other.extend([("nodes", "2")].map(pair));
    run
}

/// A server whose rows do not fit beside their new versions, so that its tables grow; statements, whose commits nobody
/// times apart.
pub fn changed_shape() -> Run {
    let level = Level { sessions: 8, operations_per_s: 300, read_ns: 26_000_000, seconds: 60, update_pct: 50 };
    let full = Server { hot_pct: 20, grows_per_s: 500, ..LOCAL };
    let mut run = run(&[level], &[full]);
    run.target.facts.server.sent_as = Some(SentAs::Statement);
    run.target.facts.other.extend([("timed_by", "client")].map(pair));
    run.steps.iter_mut().for_each(|step| step.waits.clear());
    run
}
