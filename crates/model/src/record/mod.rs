//! The [`Run`] document: the neck of the hourglass, and its store on disk.
//!
//! Live runs and importers produce it; analysis and reports read nothing else. Names carry their unit (`_ns`, `_bytes`,
//! `_per_s`), one case throughout. What a source does not report is absent (`None`), never zero.

pub mod at_once;
mod channel;
mod counters;
mod counts;
mod demand;
pub mod facts;
mod failure;
mod histogram;
mod host;
mod interval;
pub mod invariants;
mod like;
mod load;
mod looks;
mod map;
mod metric;
mod network;
mod pulse;
mod replay;
mod run;
#[cfg(any(test, feature = "samples"))]
pub mod sample;
mod server;
mod slow;
mod stack;
mod step;
pub mod store;
mod target;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use at_once::JobsAtOnce;
pub use channel::{ChannelKind, ChannelStats};
pub use counters::Counters;
pub use counts::Counts;
pub use demand::{ASKED, CheckRequest, Demand, Demands, Throughput, Within};
pub use facts::{
    DatabaseFacts, FileFacts, KernelClient, LunFacts, NfsFacts, PathMtu, SentAs, ServerFacts, TargetFacts, Term,
    VolumeFacts, VolumeLayout,
};
pub use failure::FailureMarks;
pub use histogram::{Histogram, HistogramError, POWER_OF_TWO_BOUNDS, ReportedBucket};
pub use host::{Cache, HostStats, NumaNode, Processor, ProcessorStats, ProcessorTimes, Throttled, Topology};
pub use interval::Interval;
pub use like::{Aspect, Like, LikeLevel, LikeMoment, Work, WorkFigure};
pub use load::{
    Beside, CalibrateLevel, CalibrateLoad, Foreign, HostLevel, HostLoad, IoMix, Level, Load, NetLevel, NetMatrix,
    NetSurvey, OrdersOptions, OrionLevel, OrionLoad, Parameters, SlobLoad, Soak, Workload, one_word,
};
pub use looks::{Look, Looks, ServerWork};
pub use map::{IoMap, MapDemand, MapLevel, MapOf, MapSearch, SlobMap};
pub use metric::{Better, Known, Layer, Metric, MetricUnit};
pub use network::{NetworkEnd, NetworkFacts, NetworkSide, ProcessorTime, Spread, TcpStats, ThreadTime};
pub use pulse::{Pulse, PulseTest, ReliefTest, SizeTest};
pub use replay::{RecordedKind, ReplayChains, ReplayLoad, ReplayPlacement, ReplayScale};
pub use run::{
    BlockDevice, ClockOffset, Environment, FORMAT, FileSystem, FleetPart, Merged, MergedPart, MergedStep,
    MergedWindows, PartStep, Run, Timestamp, Tool,
};
pub use server::{OwnReport, ServerStats, TraceStats, counted_per_s, rate};
pub use slow::{LONG_NS, Moment, Moments, SlowOperation, SlowOperations};
pub use stack::{ArrayState, GroupLimit, Limited, NvmeState, NvmeWarning, PathState, PoolMode, PoolState};
pub use step::{
    CONNECT, CacheCurve, CachePoint, Covers, DeviceStats, Ending, Generator, Intensity, OperationStats, Outstanding,
    ProcessIo, ReportedColumn, ReportedRow, ReportedTable, ReportedWaits, Step, TransactionStats, Unended, WaitStats,
    Waited, Waiters, Window,
};
pub use target::{Target, TargetKind};

/// The sum of counts or times. None if one of them is unknown, or if 64 bits do not hold the sum: a recorded time that saturated is not
/// added to others.
pub fn known_sum(values: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
    values.into_iter().try_fold(0_u64, |sum, value| sum.checked_add(value?))
}

// The JSON schema of what a run directory holds, made from the types that write it.

/// Schema of `run.json`.
#[cfg(any(test, feature = "schemas"))]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Run).to_value()
}

/// Schema of each line of `intervals.jsonl`.
#[cfg(any(test, feature = "schemas"))]
pub fn interval_schema() -> serde_json::Value {
    schemars::schema_for!(Interval).to_value()
}

/// Processor time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct CpuTime {
    /// In user code.
    pub user_ns: u64,
    /// In the kernel, interrupts included where they are accounted apart.
    pub system_ns: u64,
    /// Idle with I/O outstanding; machine-wide only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iowait_ns: Option<u64>,
    /// Taken by the hypervisor for others; machine-wide only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal_ns: Option<u64>,
    /// Idle; machine-wide only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ns: Option<u64>,
}

// A record may come from anywhere, so that these sums end at the highest number instead of overflowing.
impl CpuTime {
    /// In user code and in the kernel.
    pub fn busy_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }

    /// Idle, with I/O outstanding or not; none where idle time is unknown.
    pub fn free_ns(&self) -> Option<u64> {
        self.idle_ns.map(|idle_ns| idle_ns.saturating_add(self.iowait_ns.unwrap_or(0)))
    }
}

/// How a run or a step ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It goes on, or its process was killed.
    Unfinished,
    /// All that was asked was done.
    Completed,
    /// The user ended it early; what was measured is kept.
    Interrupted,
    /// An error ended it; what was measured is kept.
    Failed {
        /// The error, as it was shown.
        error: String,
    },
}

impl Outcome {
    /// The worse of two: failed, then unfinished, then ended early.
    pub fn worse(self, other: &Self) -> Self {
        let rank = |outcome: &Self| match outcome {
            Self::Completed => 0,
            Self::Interrupted => 1,
            Self::Unfinished => 2,
            Self::Failed { .. } => 3,
        };
        if rank(other) > rank(&self) { other.clone() } else { self }
    }
}

/// What has the same meaning in every database, of statistics by Oracle's own names. What is not there is unknown.
pub fn counters(own: &BTreeMap<String, u64>) -> Counters {
    let get = |name: &str| own.get(name).copied();
    let hits = || {
        let from_cache = get("consistent gets from cache")?.checked_add(get("db block gets from cache")?)?;
        from_cache.checked_sub(get("physical reads cache")?)
    };
    Counters {
        logical_reads: get("session logical reads"),
        cache_hits: hits(),
        physical_reads: get("physical read IO requests"),
        physical_read_bytes: get("physical read bytes"),
        physical_read_blocks: get("physical reads"),
        physical_writes: get("physical write IO requests"),
        physical_write_bytes: get("physical write bytes"),
        physical_write_blocks: get("physical writes"),
        block_changes: get("db block changes"),
        commits: get("user commits"),
        redo_bytes: get("redo size"),
        redo_writes: get("redo writes"),
        checkpoints: get("background checkpoints completed"),
        ..Counters::default()
    }
}

// Which runs of a store belong to one experiment, and to which of its steps. Tags say it, so that lists and people see it too.

/// Tag: the experiment that a run belongs to.
pub const EXPERIMENT: &str = "experiment";
/// Tag: what its load is called in the experiment.
pub const LOAD: &str = "experiment.load";
/// Tag: which of its steps it is, from 1.
pub const STEP: &str = "experiment.step";
/// Tag: which of its repeats, from 1.
pub const ROUND: &str = "experiment.round";

/// The place of a run in an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExperimentMark {
    /// The experiment's name.
    pub experiment: String,
    /// What its load is called there.
    pub load: String,
    /// The step, from 1: one combination of values.
    pub step: u32,
    /// The repeat, from 1.
    pub round: u32,
}

impl ExperimentMark {
    /// The mark as tags.
    pub fn tags(&self) -> BTreeMap<String, String> {
        let pairs = [
            (EXPERIMENT, self.experiment.clone()),
            (LOAD, self.load.clone()),
            (STEP, self.step.to_string()),
            (ROUND, self.round.to_string()),
        ];
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// The mark that tags are; absent unless all of it is there.
    pub fn of_tags(tags: &BTreeMap<String, String>) -> Option<Self> {
        Some(Self {
            experiment: tags.get(EXPERIMENT)?.clone(),
            load: tags.get(LOAD)?.clone(),
            step: tags.get(STEP)?.parse().ok()?,
            round: tags.get(ROUND)?.parse().ok()?,
        })
    }
}

/// Whether a tag is a part of such a mark, and says nothing of the platform.
pub fn is_mark(name: &str) -> bool {
    [EXPERIMENT, LOAD, STEP, ROUND].contains(&name)
}

// Which runs of a store belong to one measurement of loads beside each other. Tags say it, so that lists, comparisons and
// people see it too.

/// Tag: the measurement that a run belongs to.
pub const GROUP: &str = "beside";
/// Tag: the letter of the load.
pub const BESIDE_LOAD: &str = "beside.load";
/// Tag: the round in which it ran, from 1.
pub const BESIDE_ROUND: &str = "beside.round";
/// Tag: whether the load ran `alone` or `together` with the others.
pub const COMPANY: &str = "beside.turn";

/// Tags that differ between runs which repeat each other.
pub const INCIDENTAL: [&str; 2] = [GROUP, BESIDE_ROUND];

/// Whether a load ran by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Company {
    /// By itself.
    Alone,
    /// At the same time as all others of its group.
    Together,
}

impl Company {
    /// As tags and tables have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Together => "together",
        }
    }
}

/// The place of a run in such a measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BesideMark {
    /// The measurement, such as `20261120-103000`.
    pub group: String,
    /// Letter of the load, from `A`.
    pub load: String,
    /// Round, from 1.
    pub round: u32,
    /// Whether it ran alone.
    pub company: Company,
}

impl BesideMark {
    /// The mark as tags.
    pub fn tags(&self) -> BTreeMap<String, String> {
        let pairs = [
            (GROUP, self.group.clone()),
            (BESIDE_LOAD, self.load.clone()),
            (BESIDE_ROUND, self.round.to_string()),
            (COMPANY, self.company.word().to_owned()),
        ];
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// The mark of a run that has one.
    pub fn of(run: &Run) -> Option<Self> {
        Self::of_tags(&run.tags)
    }

    /// The mark that tags are; absent unless all of it is there.
    pub fn of_tags(tags: &BTreeMap<String, String>) -> Option<Self> {
        let company = [Company::Alone, Company::Together];
        Some(Self {
            group: tags.get(GROUP)?.clone(),
            load: tags.get(BESIDE_LOAD)?.clone(),
            round: tags.get(BESIDE_ROUND)?.parse().ok()?,
            company: company.into_iter().find(|company| tags.get(COMPANY).is_some_and(|tag| tag == company.word()))?,
        })
    }
}

/// [`ImportedFile::kind`] of a trace of requests.
pub const TRACE_FILE: &str = "trace";

/// The files that a run was made from, and what could not be read in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Imported {
    /// The files, the one that gave the run its name first.
    pub files: Vec<ImportedFile>,
    /// What the times of the run are reported in.
    pub clock: Clock,
    /// What was recognised as belonging to a file of its kind, and not understood.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_understood: Vec<NotUnderstood>,
}

/// A file that a run was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ImportedFile {
    /// Its path, as it was named.
    pub path: String,
    /// What it is, such as `awr-text` or `fio-json`.
    pub kind: String,
    /// Its size, after decompression.
    pub bytes: u64,
    /// CRC-64/NVME of its content after decompression, in hexadecimal: the same file is not taken twice.
    pub crc64: String,
    /// Which run of the file this is, from 0, where it holds several.
    #[serde(default)]
    pub part: u32,
    /// Its lines; absent where its reader takes it as a whole, as JSON, or by sections, as reports of a database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineCounts>,
}

/// Lines of an imported file, those of all runs in it. What is neither ignored nor unknown was understood.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct LineCounts {
    /// All of them.
    pub all: u64,
    /// Lines without a value, or of a kind that its reader leaves out on purpose.
    pub ignored: u64,
    /// Lines with a value that its reader does not know or could not read; the first ones are in `not_understood`.
    pub unknown: u64,
}

/// What the times of an imported run are reported in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Universal time, or a time with its zone.
    Utc,
    /// Time of the clock on the wall, in a zone that is not reported; it is written as if it were UTC.
    Wall,
    /// The file reports no time: that of its last change.
    FileTime,
}

/// Something that an importer recognised and did not understand.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct NotUnderstood {
    /// The file.
    pub path: String,
    /// Its line, from 1, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What stands there and what was expected.
    pub what: String,
}

/// A figure by the name that the program which measured it uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ReportedFigure {
    /// Layer at which it was measured: `client`, `engine`, `server`, `OS file`, `device`, `network`, `host`.
    pub layer: String,
    /// Name, as the program writes it, such as `NOPM` or `bogo ops/s (real time)`.
    pub name: String,
    /// Unit, such as `MB/s` or `%`; empty for a plain number.
    pub unit: String,
    /// Its value in that unit.
    pub value: f64,
    /// Which metric of the catalogue it is; absent where it is none, and in runs from before there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Known>,
    /// The [rule](invariants::Invariant::id) that it breaks: it is shown struck through, and is no metric. Absent where it can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubted: Option<String>,
}

impl ReportedFigure {
    /// A figure by the name that its program uses, of which no metric is known.
    pub fn new(layer: &str, name: impl Into<String>, unit: &str, value: f64) -> Self {
        Self { layer: layer.to_owned(), name: name.into(), unit: unit.to_owned(), value, metric: None, doubted: None }
    }

    /// The same, which is `metric`: `factor` of its unit are one of the figure's.
    #[must_use]
    pub fn is(mut self, metric: impl Into<Option<Metric>>, factor: f64) -> Self {
        self.metric = metric.into().map(|key| Known { key, factor, of: None });
        self
    }

    /// The same of a part of the measured, such as a device or a node.
    #[must_use]
    pub fn of(mut self, part: &str) -> Self {
        self.metric.iter_mut().for_each(|known| known.of = Some(part.to_owned()));
        self
    }

    /// Its value in the unit of `metric`; absent where it is another one, or one of a part.
    pub fn value_of(&self, metric: Metric) -> Option<f64> {
        self.part_of(metric).filter(|(part, _)| part.is_none()).map(|(_, value)| value)
    }

    /// The part that it is `metric` of, and its value in the unit of that; absent where it is doubted.
    pub fn part_of(&self, metric: Metric) -> Option<(Option<&str>, f64)> {
        let known = self.metric.as_ref().filter(|known| known.key == metric && self.doubted.is_none())?;
        Some((known.of.as_deref(), self.value * known.factor))
    }
}

const ACTIVITY: [NamedActivity; 16] = [
    (Activity::Commits, &["pg_stat_database.xact_commit"]),
    (Activity::Rollbacks, &["pg_stat_database.xact_rollback"]),
    (Activity::Deadlocks, &["pg_stat_database.deadlocks"]),
    (Activity::RowsUpdated, &["pg_stat_user_tables.n_tup_upd"]),
    (Activity::RowsUpdatedInPlace, &["pg_stat_user_tables.n_tup_hot_upd"]),
    (Activity::TableBlocksGrown, &["relation.main_pages_grown"]),
    (Activity::Vacuums, &["pg_stat_user_tables.autovacuum_count"]),
    (Activity::Analyses, &["pg_stat_user_tables.autoanalyze_count"]),
    (Activity::LogRecords, &["pg_stat_wal.wal_records"]),
    (Activity::LogBlockImages, &["pg_stat_wal.wal_fpi"]),
    (Activity::CheckpointsTimed, &["pg_stat_checkpointer.num_timed", "pg_stat_bgwriter.checkpoints_timed"]),
    (Activity::CheckpointsRequested, &["pg_stat_checkpointer.num_requested", "pg_stat_bgwriter.checkpoints_req"]),
    (
        Activity::BlocksWrittenByCheckpoints,
        &["pg_stat_checkpointer.buffers_written", "pg_stat_bgwriter.buffers_checkpoint"],
    ),
    (Activity::BlocksWrittenInBackground, &["pg_stat_bgwriter.buffers_clean"]),
    // From version 16 on by kind of process, and from 18 on in bytes only, since one write may be of several blocks.
    (Activity::BytesWrittenBySessions, &["pg_stat_io.client backend.relation.*.write_bytes"]),
    (
        Activity::BlocksWrittenBySessions,
        &["pg_stat_bgwriter.buffers_backend", "pg_stat_io.client backend.relation.*.writes"],
    ),
];

const TERMS: [(Term, &str); 6] = [
    (Term::Log, "WAL"),
    (Term::LogCapacity, "max_wal_size"),
    (Term::CheckpointInterval, "checkpoint_timeout"),
    (Term::CheckpointCommand, "CHECKPOINT"),
    (Term::BufferCache, "shared_buffers"),
    (Term::Sessions, "pg_stat_activity"),
];

/// What the server's own counters mean.
pub fn activity(own: &BTreeMap<String, u64>) -> BTreeMap<Activity, u64> {
    activities(own, &ACTIVITY)
}

/// What a session is doing, by `type:event`.
pub fn state(found_in: &str) -> SessionState {
    let (kind, event) = found_in.split_once(':').unwrap_or(("", found_in));
    match (kind, event) {
        ("", "CPU") => SessionState::Processor,
        ("IO", "DataFileRead") => SessionState::Read,
        // A block that another session is reading is waited for in `BufferIO`, one that is read ahead in `AioIoCompletion`.
        (_, "DataFileRead" | "DataFilePrefetch" | "BufferIO" | "BufferIo" | "AioIoCompletion") => {
            SessionState::ReadElsewhere
        }
        ("IO", "WALSync" | "WALWrite" | "WalSync" | "WalWrite") | ("LWLock", "WALWrite") => SessionState::LogWrite,
        (_, "SyncRep") => SessionState::Log,
        (_, event) if event.starts_with("WAL") || event.starts_with("Wal") => SessionState::Log,
        ("Lock", _) => SessionState::Lock,
        ("Client", _) => SessionState::Client,
        _ => SessionState::Other,
    }
}

/// The states of all that sessions were found in.
pub fn states(samples: &BTreeMap<String, u64>) -> BTreeMap<String, SessionState> {
    samples.keys().map(|found_in| (found_in.clone(), state(found_in))).collect()
}

/// Adds to what is known of a server what follows from its settings, and what it calls things.
pub fn describe(server: &mut ServerFacts) {
    server.terms.extend(TERMS.map(|(term, name)| (term, name.to_owned())));
    let ways = server.settings.get("debug_io_direct").map(|ways| ways.to_ascii_lowercase());
    server.reads_directly = ways.map(|ways| ways.split(',').any(|way| way.trim() == "data"));
}

// What a database server reports on itself, under names of its meaning: whatever a server calls a thing, it enters the record
// as one of these. What a server does not report is not among its counts: unknown, not zero.

/// What a server counted in one window, everybody's, not only the load's. What sessions read and found is in
/// [`Counters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Transactions committed.
    Commits,
    /// Transactions rolled back.
    Rollbacks,
    /// Deadlocks found.
    Deadlocks,
    /// Updates of the load that were done again after a deadlock, or after a wait for a lock that lasted too long. What they took
    /// counts in their operations.
    UpdatesRepeated,
    /// Waits for a lock of a row.
    LockWaits,
    /// Their time, in nanoseconds.
    LockWaitNs,
    /// Bytes written to temporary files.
    TempBytes,
    /// Rows inserted into our tables.
    RowsInserted,
    /// Rows updated in our tables.
    RowsUpdated,
    /// Of these, rows that stayed on their page without a new index entry.
    RowsUpdatedInPlace,
    /// Rows deleted from our tables.
    RowsDeleted,
    /// Blocks by which our tables grew.
    TableBlocksGrown,
    /// Vacuums of our tables that the server began by itself: old versions of rows were removed.
    Vacuums,
    /// Times that the server gathered statistics on our tables by itself.
    Analyses,
    /// Time of reads of data blocks by sessions, in nanoseconds.
    BlockReadNs,
    /// Time of their writes, in nanoseconds.
    BlockWriteNs,
    /// Blocks read before somebody asked for them.
    ReadAheadBlocks,
    /// Reads of one block that the load's sessions waited for, where the server counts them by how many blocks they are of.
    SingleBlockReads,
    /// Likewise, reads of several blocks at once that need not lie together: those of further rows, ahead of need.
    BatchedReads,
    /// Likewise, reads of neighbouring blocks, as those of scans are.
    MultiBlockReads,
    /// Likewise, reads past the server's buffer cache, as those of scans of large tables are.
    ReadsPastCache,
    /// Blocks that sessions read past the server's buffer cache, everybody's.
    BlocksReadPastCache,
    /// Records of the log.
    LogRecords,
    /// Whole images of blocks in the log.
    LogBlockImages,
    /// Writes of the log to its files.
    LogWrites,
    /// Their time, in nanoseconds.
    LogWriteNs,
    /// Times that the log was made durable.
    LogSyncs,
    /// Their time, in nanoseconds.
    LogSyncNs,
    /// Times that a session found the log's buffer full.
    LogBufferFull,
    /// Checkpoints begun because their time had come.
    CheckpointsTimed,
    /// Checkpoints begun because the log had grown to its limit, or because somebody asked for one.
    CheckpointsRequested,
    /// Blocks written by checkpoints.
    BlocksWrittenByCheckpoints,
    /// Blocks written ahead of need by the server's own writers.
    BlocksWrittenInBackground,
    /// Blocks that sessions had to write themselves.
    BlocksWrittenBySessions,
    /// The same in bytes, where the server counts no blocks.
    BytesWrittenBySessions,
}

/// What a server reports as a level. A window has the largest that was read in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Gauge {
    /// Blocks in the buffer cache that were changed and not written yet.
    DirtyBlocks,
    /// Bytes of log that no checkpoint has covered yet.
    CheckpointAgeBytes,
    /// Old versions of rows, in transactions, that wait to be removed (InnoDB's history list).
    PurgeBacklog,
}

/// What a session of the load was found doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Using a processor, or wanting one.
    Processor,
    /// One of both: using a processor, or reading a data block. Not every server distinguishes them.
    ProcessorOrRead,
    /// Reading a data block.
    Read,
    /// Waiting for a block that somebody else reads, or that is read ahead.
    ReadElsewhere,
    /// Waiting for the log to be written or made durable.
    LogWrite,
    /// Waiting for anything else of the log: room in its buffer, a standby.
    Log,
    /// Waiting for a lock of another transaction.
    Lock,
    /// Within a transaction, waiting for what the client sends next, or for it to take an answer.
    Client,
    /// Anything else.
    #[default]
    Other,
}

/// A server's own names for an activity. Versions differ in them, so the first that the server has counts. A `*` stands for any
/// text, and the counts of all names that fit are added.
pub type NamedActivity = (Activity, &'static [&'static str]);

/// Takes from a server's own counters what has a meaning, by a table of its names.
pub fn activities(own: &BTreeMap<String, u64>, table: &[NamedActivity]) -> BTreeMap<Activity, u64> {
    let count = |names: &[&str]| names.iter().find_map(|name| counted(own, name));
    table.iter().filter_map(|(activity, names)| Some((*activity, count(names)?))).collect()
}

fn counted(own: &BTreeMap<String, u64>, name: &str) -> Option<u64> {
    let Some((head, tail)) = name.split_once('*') else { return own.get(name).copied() };
    let fits = |name: &str| name.strip_prefix(head).is_some_and(|rest| rest.ends_with(tail));
    own.iter().filter(|(name, _)| fits(name)).map(|(_, count)| *count).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back_and_a_part_of_one_is_none() {
        let mark = ExperimentMark { experiment: "e".to_owned(), load: "slob run".to_owned(), step: 3, round: 2 };
        assert_eq!(ExperimentMark::of_tags(&mark.tags()).as_ref(), Some(&mark));
        assert!(mark.tags().keys().all(|name| is_mark(name)) && !is_mark("vm"));
        for key in [EXPERIMENT, LOAD, STEP, ROUND] {
            let mut tags = mark.tags();
            tags.remove(key);
            assert_eq!(ExperimentMark::of_tags(&tags), None, "{key}");
        }
    }

    fn counted(own: &[(&str, u64)], activity: Activity) -> Option<u64> {
        let own = own.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        super::activity(&own).get(&activity).copied()
    }

    #[test]
    fn versions_name_their_counters_otherwise() {
        for name in ["pg_stat_bgwriter.checkpoints_timed", "pg_stat_checkpointer.num_timed"] {
            assert_eq!(counted(&[(name, 3)], Activity::CheckpointsTimed), Some(3), "{name}");
        }
        let client = |column: &str| format!("pg_stat_io.client backend.relation.normal.{column}");
        let (writes, bytes, vacuum) =
            (client("writes"), client("write_bytes"), "pg_stat_io.client backend.relation.vacuum.writes");
        let others = ("pg_stat_io.checkpointer.relation.normal.writes", 77);
        let own = [(writes.as_str(), 5), (vacuum, 10), (bytes.as_str(), 40_960), others];
        assert_eq!(counted(&own, Activity::BlocksWrittenBySessions), Some(15));
        assert_eq!(counted(&own, Activity::BytesWrittenBySessions), Some(40_960));
        assert_eq!(counted(&[others], Activity::BlocksWrittenBySessions), None, "unknown is not zero");
    }

    #[test]
    fn what_sessions_are_found_in_has_a_meaning() {
        for (found_in, meaning) in [
            ("CPU", SessionState::Processor),
            ("IO:DataFileRead", SessionState::Read),
            ("IPC:BufferIO", SessionState::ReadElsewhere),
            ("LWLock:WALWrite", SessionState::LogWrite),
            ("IO:WalSync", SessionState::LogWrite),
            ("LWLock:WALInsert", SessionState::Log),
            ("IPC:SyncRep", SessionState::Log),
            ("Lock:tuple", SessionState::Lock),
            ("LWLock:BufferMapping", SessionState::Other),
        ] {
            assert_eq!(state(found_in), meaning, "{found_in}");
        }
    }

    #[test]
    fn that_data_files_are_read_directly_is_a_fact() {
        for (setting, is_direct) in [("data, wal", true), ("WAL", false), ("", false)] {
            let settings = [("debug_io_direct".to_owned(), setting.to_owned())].into();
            let mut server = ServerFacts { settings, ..ServerFacts::default() };
            describe(&mut server);
            assert_eq!(server.reads_directly, Some(is_direct), "{setting}");
        }
    }

    #[test]
    fn the_first_name_that_a_server_has_gives_the_count_and_none_gives_nothing() {
        let own = [("new.commits", 7), ("io.a.writes", 1), ("io.b.writes", 2), ("io.b.reads", 9)];
        let own = own.map(|(name, count)| (name.to_owned(), count)).into();
        let table: [NamedActivity; 3] = [
            (Activity::Commits, &["old.commits", "new.commits"]),
            (Activity::Deadlocks, &["deadlocks"]),
            (Activity::BlocksWrittenBySessions, &["io.*.writes"]),
        ];
        let found = activities(&own, &table);
        assert_eq!(found, [(Activity::Commits, 7), (Activity::BlocksWrittenBySessions, 3)].into());
    }
}

#[cfg(test)]
mod beside_tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back_and_a_part_of_one_is_none() {
        let mark = BesideMark { group: "g".to_owned(), load: "B".to_owned(), round: 2, company: Company::Together };
        assert_eq!(BesideMark::of_tags(&mark.tags()).as_ref(), Some(&mark));
        for key in [GROUP, BESIDE_LOAD, BESIDE_ROUND, COMPANY] {
            let mut tags = mark.tags();
            tags.remove(key);
            assert_eq!(BesideMark::of_tags(&tags), None, "{key}");
            tags.insert(key.to_owned(), "x".to_owned());
            assert_eq!(BesideMark::of_tags(&tags).is_some(), [GROUP, BESIDE_LOAD].contains(&key), "{key}");
        }
    }
}

#[cfg(test)]
mod sum_tests {
    use super::known_sum;

    #[test]
    fn a_sum_that_64_bits_do_not_hold_is_unknown() {
        assert_eq!(known_sum([Some(1), Some(u64::MAX - 1)]), Some(u64::MAX));
        assert_eq!(known_sum([Some(2), Some(u64::MAX - 1)]), None);
        assert_eq!(known_sum([Some(1), None]), None);
        assert_eq!(known_sum([]), Some(0));
    }
}
