//! One load level: its window and everything seen in it.

use crate::workload::Arrival;
use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    ChannelStats, Counters, CpuTime, FailureMarks, Histogram, HostStats, Interval, Level, LikeLevel, NetworkEnd,
    Outcome, OwnReport, PulseTest, ReliefTest, ReportedFigure, ServerStats, SizeTest, Throttled, TraceStats,
};

/// One load level of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Step {
    /// Position in the run, from 0.
    pub index: u32,
    /// What distinguishes it, such as `s8_t4` or `s8_t4_wu64`.
    pub label: String,
    /// How much load was put on.
    pub load: Intensity,
    /// The point of the run's load at which it is; absent where its points differ in nothing else, and where another program does not report
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// How much of a production it is like; absent where it is like none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<LikeLevel>,
    /// Parameters that differ from the run's, as text for display.
    pub parameters: BTreeMap<String, String>,
    /// The measured part.
    pub window: Window,
    /// How the step ended.
    pub outcome: Outcome,
    /// Engine counts in the window. Of several servers their sum, where all of them were read for all of it.
    pub counters: Counters,
    /// One element per operation type that was asked for.
    pub operations: Vec<OperationStats>,
    /// One element per wait event that happened in the window.
    pub waits: Vec<WaitStats>,
    /// Attempts at a connection that failed in the window and whose session tried again, by the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed_connects: BTreeMap<String, u64>,
    /// When the target failed and recovered; absent where no failure was marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureMarks>,
    /// Operations that were due before the window closed and had not ended then, by their kind; no count and no rate has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outstanding: Vec<Outstanding>,
    /// What the server still worked on when it was no longer waited for; absent where all ended in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unended: Option<Unended>,
    /// Processor time of this process in the window, load generator and embedded engine together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_cpu: Option<CpuTime>,
    /// Processor time of the whole machine in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_cpu: Option<CpuTime>,
    /// What the kernel accounts to this process as storage I/O in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_io: Option<ProcessIo>,
    /// Largest resident memory of the process so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
    /// `/proc/diskstats` of the devices below the target, in the window.
    pub devices: Vec<DeviceStats>,
    /// What each database server reported on itself in the window; none where load does not land on one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerStats>,
    /// What databases' own reports say of the window, where they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_reports: Vec<OwnReport>,
    /// What each instance of an imported database report counted; `counters` has their sum where all of them report it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<ServerStats>,
    /// Figures of an imported run by the names of the program that measured them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reported: Vec<ReportedFigure>,
    /// Tables of an imported report, of what no other field has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<ReportedTable>,
    /// What kernel tracing timed in the window; none where nothing was traced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TraceStats>,
    /// What a buffer cache of another size would have answered; of runs of the embedded engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_curve: Option<CacheCurve>,
    /// What the processors did in the window, where the load was on them and not on storage or a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostStats>,
    /// What each end of a network test saw of itself in the window; none where no network was tested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<NetworkEnd>,
    /// What each way to storage carried in the window, where this program drives several itself: connections to a server, members of a
    /// disk group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<ChannelStats>,
    /// What the load of the step did in the first moment after pauses; absent where that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pulse_test: Option<PulseTest>,
    /// What the load of the step did with requests of another size; absent where that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_test: Option<SizeTest>,
    /// What the load of the step did with what stopped it relieved; absent where that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relief_test: Option<ReliefTest>,
    /// The load generator's verdict on itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<Generator>,
    /// One element per second, warm-up included and marked. Kept beside the document in `intervals.jsonl`.
    #[serde(skip)]
    pub intervals: Vec<Interval>,
}

impl Step {
    /// Instances of a database that have waits of their own: those of imported reports, and servers that are several.
    pub fn instances_with_waits(&self) -> impl Iterator<Item = &ServerStats> {
        self.instances.iter().chain(&self.servers).filter(|instance| !instance.waits.is_empty())
    }

    /// Keeps its histograms in little memory until something is added to them.
    pub fn pack(&mut self) {
        for operation in &mut self.operations {
            operation.service.pack();
            operation.response.pack();
            operation.failed.pack();
        }
        let of_servers = self.servers.iter_mut().chain(&mut self.instances).flat_map(|server| &mut server.waits);
        self.waits.iter_mut().chain(of_servers).for_each(|wait| wait.waits.pack());
        if let Some(generator) = &mut self.generator {
            [&mut generator.schedule_lag, &mut generator.own_lag].into_iter().flatten().for_each(Histogram::pack);
        }
        self.channels.iter_mut().for_each(ChannelStats::pack);
        self.intervals.iter_mut().for_each(Interval::pack);
    }

    /// A step of which nothing is known yet but its place and its name.
    pub fn new(index: u32, label: impl Into<String>) -> Self {
        Self {
            index,
            label: label.into(),
            load: Intensity::default(),
            level: None,
            like: None,
            parameters: BTreeMap::new(),
            window: Window { offset_ns: 0, warmup_ns: 0, duration_ns: 0, ending: Ending::Unknown },
            outcome: Outcome::Unfinished,
            counters: Counters::default(),
            operations: Vec::new(),
            waits: Vec::new(),
            failed_connects: BTreeMap::new(),
            failure: None,
            outstanding: Vec::new(),
            unended: None,
            process_cpu: None,
            host_cpu: None,
            process_io: None,
            peak_memory_bytes: None,
            devices: Vec::new(),
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
            generator: None,
            intervals: Vec::new(),
        }
    }
}

/// Operations that were under way when the window closed and did not end in the time for which a step waits for them, or although the server
/// was asked to cancel them. They are in no other count, and in [`Outstanding`] where each was timed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Unended {
    /// How many; of a batch all that were sent with it.
    pub operations: u64,
    /// The sessions that they belong to.
    pub sessions: u64,
    /// How long after the window they were waited for.
    pub waited_ns: u64,
}

impl Unended {
    /// Adds those of another thread or process, which were waited for at the same time.
    pub fn add(&mut self, other: &Self) {
        let Self { operations, sessions, waited_ns } = other;
        self.operations = self.operations.saturating_add(*operations);
        self.sessions = self.sessions.saturating_add(*sessions);
        self.waited_ns = self.waited_ns.max(*waited_ns);
    }
}

/// How much load was put on: how many at once, at which rate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Intensity {
    /// Sessions that worked at the same time, or requests outstanding; absent where an imported run does not report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u32>,
    /// Schemas they worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schemas: Option<u32>,
    /// Sessions for each schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads_per_schema: Option<u32>,
    /// Asked rate of an open loop, in operations per second over all sessions; absent for a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_operations_per_s: Option<f64>,
    /// Arrival process of an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival: Option<Arrival>,
}

impl Intensity {
    /// Sessions of load that is planned, which always says how many; 0 where nobody reported.
    pub fn slots(&self) -> u32 {
        self.sessions.unwrap_or(0)
    }
}

/// The measured part of a step. All sessions were loaded during the whole of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Window {
    /// From the start of the run to the start of the window.
    pub offset_ns: u64,
    /// Load before the window, recorded in the intervals and marked there.
    pub warmup_ns: u64,
    /// Length of the window; 0, and absent in the document, where an imported run does not report. Then nothing has a rate.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub duration_ns: u64,
    /// What ended it.
    pub ending: Ending,
}

fn is_unknown(ns: &u64) -> bool {
    *ns == 0
}

/// What ended a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The time asked for was over.
    Time,
    /// The first session had done all operations asked for.
    WorkLoop,
    /// The user ended it.
    Interrupt,
    /// An error ended it.
    Failure,
    /// An imported run does not report.
    Unknown,
}

/// Operations of one type. Service time runs from the instant an operation was sent, response time from the instant it
/// was due; in a closed loop both are the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct OperationStats {
    /// `read`, `update` or `scan`.
    pub kind: String,
    /// Operations finished in the window.
    pub count: u64,
    /// Of these, how many failed.
    pub errors: u64,
    /// Blocks that they touched.
    pub block_touches: u64,
    /// From sent to finished.
    pub service: Histogram,
    /// From due to finished.
    pub response: Histogram,
    /// From due to the error, of those that failed. Empty where errors are counted and their times are not known.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub failed: Histogram,
    /// What transactions came to besides, where operations are transactions of several statements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<TransactionStats>,
}

fn is_empty(histogram: &Histogram) -> bool {
    histogram.count() == 0
}

/// Operations of one kind that had been sent and had not ended when the window closed. They were waited for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Outstanding {
    /// As in [`OperationStats`].
    pub kind: String,
    /// Those that failed when they ended.
    pub errors: u64,
    /// From sent to finished, of those that ended well.
    pub service: Histogram,
    /// The same from due to finished.
    pub response: Histogram,
    /// From due to when they were no longer waited for, of those that never ended: each took longer than that.
    pub unended: Histogram,
}

impl Outstanding {
    /// How many there were.
    pub fn count(&self) -> u64 {
        self.errors + self.response.count() + self.unended.count()
    }

    /// Adds those of another thread or process, kind by kind.
    pub fn add_to(sums: &mut Vec<Self>, more: &[Self]) {
        for more in more {
            let Self { kind, errors, service, response, unended } = more;
            let Some(sum) = sums.iter_mut().find(|sum| sum.kind == *kind) else {
                sums.push(more.clone());
                continue;
            };
            sum.errors += errors;
            sum.service.merge(service);
            sum.response.merge(response);
            sum.unended.merge(unended);
        }
    }
}

/// What transactions of one type came to, besides how long they took. Attempts that were given up count like the last one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct TransactionStats {
    /// Statements that were sent and answered, those that begin and end transactions left out.
    pub statements: u64,
    /// Times that an answer was waited for.
    pub round_trips: u64,
    /// Rows that queries gave.
    pub rows_read: u64,
    /// Rows that were inserted, changed or removed.
    pub rows_changed: u64,
    /// Commits that were acknowledged.
    pub commits: u64,
    /// Rollbacks that transactions themselves asked for.
    pub rollbacks: u64,
    /// Attempts that the server refused and that were made again, by the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retries: BTreeMap<String, u64>,
    /// Transactions that failed, by the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, u64>,
    /// Pauses between the steps of transactions: no part of their times.
    pub paused_ns: u64,
}

/// One wait event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct WaitStats {
    /// Name, such as `db file sequential read`.
    pub event: String,
    /// Class, such as `User I/O` or `Commit`.
    pub class: String,
    /// Layer that timed it, such as `engine`.
    pub layer: String,
    /// Whether sessions waited in it (foreground), or the engine's own writers (background).
    pub foreground: bool,
    /// Every wait that ended in the window.
    pub waits: Histogram,
    /// Numbers and times that an imported report or a server states of these waits elsewhere, where they are not those of the histogram.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reported: Vec<ReportedWaits>,
}

/// `/proc/self/io` in the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ProcessIo {
    /// Bytes that the process caused to be fetched from storage.
    pub read_bytes: u64,
    /// Bytes that it caused to be sent to storage.
    pub write_bytes: u64,
}

/// One device in `/proc/diskstats`, as a difference over the window. Counts everybody's I/O, not only ours.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct DeviceStats {
    /// Kernel name.
    pub name: String,
    /// Time between the two readings.
    pub elapsed_ns: u64,
    /// Read requests completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Sum over reads of the time each spent in the queue and the device.
    pub read_time_ns: u64,
    /// Write requests completed.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Sum over writes of the time each spent in the queue and the device.
    pub write_time_ns: u64,
    /// Flush requests completed, where the kernel counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes: Option<u64>,
    /// Time with at least one request in flight.
    pub busy_ns: u64,
    /// Integral of requests in flight over time.
    pub weighted_ns: u64,
}

/// How hard the load generator itself worked. In the embedded target its threads run the engine too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Generator {
    /// Threads that drove sessions.
    pub lanes: u32,
    /// Processor time of these threads, in user code and in the kernel, summed.
    pub busy_ns: u64,
    /// Processor time of the busiest of them as a share of the window, 0 to 1.
    pub busiest_share: f64,
    /// The same with the time that it was ready to run and got no processor, of the thread that wanted most; absent where the kernel does
    /// not report that, in simulated time, and in runs made before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_share: Option<f64>,
    /// What a limit on processor time did to the control group of this process (`cpu.stat`), with all others in that group; absent where that is
    /// not known, in simulated time, and in runs made before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Throttled>,
    /// Time that sessions stood ready and no thread had come to them (think time is not counted), summed.
    pub idle_session_ns: u64,
    /// Open loop: operations that fell due in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_operations: Option<u64>,
    /// Open loop: operations that were due but not yet sent when the window ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_operations: Option<u64>,
    /// Open loop: from due to the end of the window, of these, or to when a session was free for them after it: each waited at least so long.
    /// Runs made before it was recorded do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_ages: Option<Histogram>,
    /// Open loop: from due to sent, of every operation sent in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_lag: Option<Histogram>,
    /// Open loop: the part of that in which a slot was free, so that only the generator was late. Runs made before it was recorded
    /// do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_lag: Option<Histogram>,
    /// Operations per second that the same threads reached with no device at all, just before the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_operations_per_s: Option<f64>,
    /// The longest time in the window by which a thread that only sleeps woke late: the process was stopped, or had no processor. Runs made
    /// before it was recorded do not have it, nor those in simulated time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_ns: Option<u64>,
}

/// The hit ratio of the buffer cache over its size, from how soon the load of a step touched blocks again. It holds for load that
/// goes on as it was, once the cache is warm, and for a cache that replaces what was used least recently.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct CacheCurve {
    /// Touches of blocks, drawn at random, of which it was measured how soon the block was touched again.
    pub samples: u64,
    /// Of these, how many were touched again before the load ended.
    pub reused: u64,
    /// One element a size, rising. Sizes are missing that only a longer load could say something about.
    pub points: Vec<CachePoint>,
}

/// One size of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct CachePoint {
    /// All memory of the cache, its bookkeeping included: what `--cache` is.
    pub cache_bytes: u64,
    /// Blocks that it holds.
    pub cache_blocks: u64,
    /// Share of logical reads that it would answer, 0 to 1.
    pub hit_ratio: f64,
}

// Tables that another program's report holds.

/// A table of an imported report: figures of many things of one kind, such as tablespaces, or of a subject that no field of the
/// record has, such as the memory of an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ReportedTable {
    /// What it is about. The same subject has the same name whatever release or form of the report it comes from.
    pub subject: String,
    /// Section of the source that it was read from, as it is titled there.
    pub source: String,
    /// Database instance that it is of; absent where it is of all of them, or names them in its rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Layer at which its figures were measured, as [`super::ReportedFigure::layer`] has it, or `storage cell`.
    pub layer: String,
    /// Which time its figures are of.
    pub covers: Covers,
    /// What the names of its rows are, such as `tablespace` and `file`.
    pub keys: Vec<String>,
    /// Its columns of figures.
    pub columns: Vec<ReportedColumn>,
    /// Its rows.
    pub rows: Vec<ReportedRow>,
    /// What its reader must know, such as which columns were left out, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// Which time the figures of a table are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Covers {
    /// The window of the step.
    Window,
    /// The instants at which the window begins and ends.
    Edges,
}

/// A column of a reported table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ReportedColumn {
    /// What it is called.
    pub name: String,
    /// Unit of its figures: `ms`, `s`, `B`, `/s`, `%`, or as the source has it (`MB/s`, whatever it calls so). Empty for plain
    /// numbers, and where each row has a unit of its own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
}

/// A row of a reported table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ReportedRow {
    /// Its names, one for each of the keys.
    pub names: Vec<String>,
    /// Unit of its figures, where it has one of its own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Its figures, one for each column; `null` where the source does not report.
    pub values: Vec<Option<f64>>,
}

impl ReportedTable {
    /// The unit of a figure by the positions of its row and column: that of the row where it has one, else that of the column.
    pub fn unit<'a>(&'a self, row: &'a ReportedRow, column: usize) -> &'a str {
        if row.unit.is_empty() { self.columns.get(column).map_or("", |column| &column.unit) } else { &row.unit }
    }
}

/// A session that came about while load ran: the client times it, even where the server times all other waits.
pub const CONNECT: &str = "connect";

/// Who waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Waiters {
    /// Sessions of users.
    Foreground,
    /// The database's own processes.
    Background,
    /// Both, where the report does not keep them apart.
    All,
}

/// What a table of events in an imported report, or a view of a server, states of waits, where the histogram holds others too or
/// another number of them.
/// Its window is that of the step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ReportedWaits {
    /// Who waited.
    pub by: Waiters,
    /// How often.
    pub count: u64,
    /// Sum of the waits; absent where it is rounded to nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_ns: Option<u64>,
    /// Layer that timed them, such as `engine`.
    pub layer: String,
    /// Title of the table that states it.
    pub source: String,
}

/// A number of waits and their sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waited {
    /// How many waits.
    pub count: u64,
    /// Their sum, where it is known.
    pub total_ns: Option<u64>,
}

impl Waited {
    /// The mean wait, where it is known.
    pub fn mean_ns(&self) -> Option<f64> {
        let total_ns = self.total_ns.filter(|_| self.count > 0)?;
        Some(total_ns as f64 / self.count as f64)
    }

    /// Both together; the sum is unknown if either is.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            total_ns: self.total_ns.zip(other.total_ns).map(|(one, other)| one.saturating_add(other)),
        }
    }
}

impl WaitStats {
    /// Adds waits of the same event.
    pub fn add(&mut self, other: &Self) {
        let Self { event: _, class: _, layer: _, foreground, waits, reported } = other;
        self.foreground |= foreground;
        self.waits.merge(waits);
        for more in reported {
            match self.reported.iter_mut().find(|sum| sum.by == more.by) {
                Some(sum) => {
                    sum.count = sum.count.saturating_add(more.count);
                    sum.total_ns = sum.total_ns.zip(more.total_ns).map(|(sum, more)| sum.saturating_add(more));
                }
                None => self.reported.push(more.clone()),
            }
        }
    }

    /// Adds each of `more` to the one of `sums` that is of the same event.
    pub fn add_to(sums: &mut Vec<Self>, more: &[Self]) {
        for more in more {
            match sums.iter_mut().find(|sum| sum.event == more.event) {
                Some(sum) => sum.add(more),
                None => sums.push(more.clone()),
            }
        }
    }

    fn counted(&self) -> Waited {
        Waited { count: self.waits.count(), total_ns: self.waits.total_ns() }
    }

    fn reported_by(&self, by: Waiters) -> Option<Waited> {
        let of = |reported: &ReportedWaits| Waited { count: reported.count, total_ns: reported.total_ns };
        self.reported.iter().filter(|reported| reported.by == by).map(of).reduce(Waited::and)
    }

    /// Waits as tables of events report them, of foreground and background together as far as they do; else as the histogram
    /// counts them.
    pub fn sum(&self) -> Waited {
        let all = self.reported_by(Waiters::All);
        let parts = || {
            let parts = [Waiters::Foreground, Waiters::Background].into_iter().filter_map(|by| self.reported_by(by));
            parts.reduce(Waited::and)
        };
        all.or_else(parts).unwrap_or_else(|| self.counted())
    }

    /// The histogram, with the mean of [`Self::sum`] where its own sum is not known: its shares and their mean may be of
    /// slightly different waits.
    pub fn times(&self) -> Cow<'_, Histogram> {
        let mean_ns = self.sum().mean_ns().filter(|_| self.waits.total_ns().is_none() && self.waits.count() > 0);
        mean_ns.map_or(Cow::Borrowed(&self.waits), |mean_ns| {
            Cow::Owned(self.waits.clone().with_total_ns((mean_ns * self.waits.count() as f64).round() as u64))
        })
    }

    /// Whether the report keeps waits of the foreground and the background apart.
    fn are_apart(&self) -> bool {
        self.reported.iter().any(|reported| reported.by != Waiters::All)
    }

    /// Waits of sessions; nothing if only the background waited.
    pub fn of_sessions(&self) -> Option<Waited> {
        if self.are_apart() { self.reported_by(Waiters::Foreground) } else { self.foreground.then(|| self.sum()) }
    }

    /// Waits of the database's own processes; nothing if only sessions waited.
    pub fn of_background(&self) -> Option<Waited> {
        if self.are_apart() { self.reported_by(Waiters::Background) } else { (!self.foreground).then(|| self.sum()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(foreground: bool, reported: &[(Waiters, u64, Option<u64>)]) -> WaitStats {
        let reported = reported.iter().map(|(by, count, total_ns)| ReportedWaits {
            by: *by,
            count: *count,
            total_ns: *total_ns,
            layer: "engine".to_owned(),
            source: "Wait Events".to_owned(),
        });
        WaitStats {
            event: "tape read".to_owned(),
            class: "User I/O".to_owned(),
            layer: "engine".to_owned(),
            foreground,
            waits: Histogram::counted(100, None),
            reported: reported.collect(),
        }
    }

    #[test]
    fn what_tables_of_events_report_stands_before_what_a_histogram_counts() {
        let both = wait(true, &[(Waiters::Foreground, 30, Some(60)), (Waiters::Background, 10, Some(100))]);
        assert_eq!(both.sum(), Waited { count: 40, total_ns: Some(160) });
        assert_eq!(both.of_sessions().and_then(|waited| waited.mean_ns()), Some(2.0));
        assert_eq!(both.of_background().and_then(|waited| waited.mean_ns()), Some(10.0));
        let all = wait(true, &[(Waiters::All, 90, Some(9))]);
        assert_eq!((all.of_sessions(), all.of_background()), (Some(all.sum()), None));
        assert_eq!(all.times().mean_ns(), Some(0.1), "its shares are of 100 waits, its mean of 90");
        let with_sum = wait(true, &[(Waiters::All, 90, Some(9)), (Waiters::Foreground, 80, Some(8))]);
        assert_eq!((with_sum.sum().count, with_sum.of_sessions().map(|waited| waited.count)), (90, Some(80)));
        let background = wait(true, &[(Waiters::Background, 10, None)]);
        assert_eq!((background.of_sessions(), background.sum().total_ns), (None, None));
    }

    #[test]
    fn waits_of_the_next_second_and_of_the_next_server_are_added_to_those_of_the_same_event() {
        let first = wait(true, &[(Waiters::Foreground, 90, Some(900)), (Waiters::Background, 10, Some(70))]);
        let second = wait(false, &[(Waiters::Background, 100, Some(30))]);
        let other = WaitStats { event: "tape write".to_owned(), ..second.clone() };
        let mut sums = vec![first];
        WaitStats::add_to(&mut sums, &[second, other.clone()]);
        let [reads, writes] = sums.as_slice() else { panic!("{sums:?}") };
        assert_eq!(reads.of_sessions(), Some(Waited { count: 90, total_ns: Some(900) }));
        assert_eq!(reads.of_background(), Some(Waited { count: 110, total_ns: Some(100) }));
        assert!(reads.foreground && reads.waits.count() == 200 && *writes == other);
    }

    #[test]
    fn without_a_report_the_histogram_is_all_there_is() {
        let alone = wait(false, &[]);
        assert_eq!((alone.sum().count, alone.of_sessions(), alone.of_background()), (100, None, Some(alone.sum())));
    }
}
