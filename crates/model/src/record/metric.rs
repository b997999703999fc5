//! The catalogue of metrics: what tables, files for programs, trends, comparisons and scrapers show, each defined once. How a step
//! computes one is in `analysis`; figures of other programs are taken for one when they are imported.

use serde::{Deserialize, Serialize};

use super::Counters;

/// What the values of a metric are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricUnit {
    /// So many a second.
    PerSecond,
    /// So many a minute.
    PerMinute,
    /// Megabytes (10^6 bytes) a second.
    MegabytesPerSecond,
    /// A share, 0 to 1. Tables show percent.
    Share,
    /// Percent, 0 to 100.
    Percent,
    /// Processors: 1 is all time of one. Tables show percent of one.
    Processors,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Bytes.
    Bytes,
    /// A mean or a plain number.
    Number,
}

impl MetricUnit {
    /// The unit as files for programs name it; empty for a plain number.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::PerSecond => "1/s",
            Self::PerMinute => "1/min",
            Self::MegabytesPerSecond => "10^6 B/s",
            Self::Share => "0 to 1",
            Self::Percent => "%",
            Self::Processors => "processors",
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Bytes => "B",
            Self::Number => "",
        }
    }
}

/// Who counted a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// The load generator, or the program whose result was imported.
    Load,
    /// The engine, or the database server: its own counters.
    Database,
    /// Requests to storage, as the engine sends them or a database counts them.
    Storage,
    /// The kernel.
    Os,
}

impl Layer {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Database => "database",
            Self::Storage => "storage",
            Self::Os => "OS",
        }
    }
}

/// Which way a metric gets better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better, as of rates.
    More,
    /// Less is better, as of times.
    Less,
}

const MORE: Option<Better> = Some(Better::More);
const LESS: Option<Better> = Some(Better::Less);

macro_rules! metrics {
    ($($name:ident $key:literal $heading:literal $unit:ident $layer:ident $better:expr, $meaning:literal;)+) => {
        /// A metric of the measured window of a step; its name in files is its key.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
        pub enum Metric {
            $(
                #[doc = $meaning]
                #[serde(rename = $key)]
                $name,
            )+
        }

        impl Metric {
            /// All of them, as the reference lists them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Its name in files for programs, ending in its unit.
            pub const fn key(self) -> &'static str {
                match self { $(Self::$name => $key,)+ }
            }

            /// The heading of its columns.
            pub const fn heading(self) -> &'static str {
                match self { $(Self::$name => $heading,)+ }
            }

            /// What its values are in.
            pub const fn unit(self) -> MetricUnit {
                match self { $(Self::$name => MetricUnit::$unit,)+ }
            }

            /// Who counted it.
            pub const fn layer(self) -> Layer {
                match self { $(Self::$name => Layer::$layer,)+ }
            }

            /// Which way it gets better; absent where neither way is.
            pub const fn better(self) -> Option<Better> {
                match self { $(Self::$name => $better,)+ }
            }

            /// What it counts, in a sentence without a full stop.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)+ }
            }
        }
    };
}

metrics! {
    Sessions "sessions" "sessions" Number Load None, "sessions at work, or requests outstanding";
    Asked "asked_per_s" "target/s" PerSecond Load None, "operations requested, of an open loop";
    Window "window_s" "window s" Seconds Load None, "length of the window";
    Operations "operations_per_s" "operations/s" PerSecond Load MORE, "operations finished well";
    Errors "errors_per_s" "errors/s" PerSecond Load LESS, "operations that ended in an error";
    Failed "failed_share" "errors %" Share Load LESS, "operations that failed, of all that ended";
    Queued "queued_share" "queued %" Share Load LESS, "response time between due and sent, of an open loop";
    BusySessions "busy_sessions" "active sessions" Number Load None, "sessions inside an operation on average";
    Transactions "transactions_per_s" "transactions/s" PerSecond Load MORE,
        "transactions that another program finished";
    NewOrders "new_orders_per_minute" "NOPM" PerMinute Load MORE, "new orders that another program entered";
    LogicalReads "logical_reads_per_s" "logical reads/s" PerSecond Database MORE, "blocks found through the buffer cache";
    CacheHits "cache_hits_per_s" "cache hits/s" PerSecond Database None,
        "logical reads that found their block in the cache";
    Hits "hit_share" "hit %" Share Database None, "logical reads that found their block in the cache";
    BlockChanges "block_changes_per_s" "block changes/s" PerSecond Database MORE, "blocks changed by sessions";
    Commits "commits_per_s" "commits/s" PerSecond Database MORE, "commits acknowledged";
    Executes "executes_per_s" "executes/s" PerSecond Database MORE,
        "statements executed, of a database that counts them";
    RedoMegabytes "redo_megabytes_per_s" "redo MB/s" MegabytesPerSecond Database MORE, "redo generated";
    RedoWrites "redo_writes_per_s" "redo writes/s" PerSecond Storage None, "write requests of the log writer";
    RedoWriteMegabytes "redo_write_megabytes_per_s" "redo write MB/s" MegabytesPerSecond Storage None,
        "written by the log writer";
    LogSwitches "log_switches_per_s" "log switches/s" PerSecond Database None, "log file switches";
    Checkpoints "checkpoints_per_s" "checkpoints/s" PerSecond Database None, "checkpoints completed";
    DbTime "db_time_s" "DB time s" Seconds Database None, "time of sessions inside calls of the database, in the window";
    ActiveSessions "active_sessions" "active sessions" Number Database None,
        "sessions active on average: the database's time over the clock's";
    BufferMisses "buffer_misses_per_s" "buffer misses/s" PerSecond Database MORE,
        "blocks that were not in the buffer cache of a database which reads through the page cache";
    PageCacheHits "page_cache_hits_per_s" "page cache hits/s" PerSecond Os None, "of these, those that the page cache had";
    Io "io_per_s" "IOPS" PerSecond Storage MORE, "read and write requests to storage";
    Reads "reads_per_s" "reads/s" PerSecond Storage MORE, "read requests";
    Writes "writes_per_s" "writes/s" PerSecond Storage MORE, "write requests for data blocks";
    DirectReads "direct_reads_per_s" "past the cache/s" PerSecond Storage None, "read requests past the buffer cache";
    MultiBlockReads "multi_block_reads" "large reads" Number Storage None,
        "read requests for more than one block, in the window";
    BlocksRead "blocks_read_per_s" "blocks read/s" PerSecond Storage MORE,
        "blocks read, where they are counted apart from requests";
    BlocksWritten "blocks_written_per_s" "blocks written/s" PerSecond Storage MORE,
        "blocks written, where they are counted apart from requests";
    Megabytes "megabytes_per_s" "MB/s" MegabytesPerSecond Storage MORE, "read and written";
    ReadMegabytes "read_megabytes_per_s" "read MB/s" MegabytesPerSecond Storage MORE, "read";
    WriteMegabytes "write_megabytes_per_s" "write MB/s" MegabytesPerSecond Storage MORE, "data blocks written";
    AllReadBytes "all_read_bytes" "bytes read" Bytes Storage None,
        "read in the window, including control files, redo and archives";
    AllWrittenBytes "all_written_bytes" "bytes written" Bytes Storage None,
        "written in the window, including control files, redo and archives";
    RequestTime "request_mean_ms" "request ms" Milliseconds Storage LESS, "mean time of a request";
    ReadTime "read_mean_ms" "read ms" Milliseconds Storage LESS, "mean time of a single-block read";
    ReadTimeP99 "read_p99_at_most_ms" "read p99 ms" Milliseconds Storage LESS,
        "99th percentile of single-block reads: the upper edge of its bucket";
    ReadTimeMax "read_max_ms" "read max ms" Milliseconds Storage LESS, "time of the slowest read";
    SlowReads "reads_surely_above_10ms_percent" "reads > 10 ms %" Percent Storage LESS,
        "single-block reads that surely took longer than 10 ms";
    UserProcessors "user_processors" "user %" Processors Os None, "processors that this process kept busy in user code";
    SystemProcessors "system_processors" "system %" Processors Os None,
        "processors that the kernel kept busy for this process";
    DatabaseProcessors "database_processors" "processors" Number Database None,
        "processors that the database kept busy";
    IoPerCpuSecond "io_per_cpu_second" "I/O per CPU s" Number Os MORE,
        "requests to storage for each second of processor time of this process";
    HostBusy "host_busy_percent" "host busy %" Percent Os None, "processor time of the database's host in use";
    HostUser "host_user_percent" "host user %" Percent Os None, "processor time of a host in user code, guests included";
    HostSystem "host_system_percent" "host system %" Percent Os None,
        "processor time of a host in its kernel, interrupts included";
    HostIowait "host_iowait_percent" "host iowait %" Percent Os None,
        "processor time of a host idle with I/O outstanding, where idle time does not hold it";
    HostSteal "host_steal_percent" "host steal %" Percent Os LESS, "processor time of a host taken by its hypervisor";
    HostIdle "host_idle_percent" "host idle %" Percent Os None, "processor time of a host with nothing to do";
    RunQueue "run_queue" "run queue" Number Os LESS, "threads that ran or waited for a processor";
    DeviceReads "device_reads_per_s" "reads/s" PerSecond Os MORE, "read requests that a device completed, anyone's";
    DeviceWrites "device_writes_per_s" "writes/s" PerSecond Os MORE, "write requests that a device completed, anyone's";
    DeviceReadMegabytes "device_read_megabytes_per_s" "read MB/s" MegabytesPerSecond Os MORE,
        "read from a device, by anyone";
    DeviceWriteMegabytes "device_write_megabytes_per_s" "write MB/s" MegabytesPerSecond Os MORE,
        "written to a device, by anyone";
    DeviceAwait "device_await_ms" "await" Milliseconds Os LESS, "mean time of a device's request from when it was queued";
    DeviceReadAwait "device_read_await_ms" "r_await" Milliseconds Os LESS, "the same, of reads";
    DeviceWriteAwait "device_write_await_ms" "w_await" Milliseconds Os LESS, "the same, of writes";
    DeviceBusy "device_busy_percent" "busy %" Percent Os LESS, "time in which a device had a request";
    NetworkMegabytes "network_megabytes_per_s" "network MB/s" MegabytesPerSecond Load MORE, "sent or received";
}

impl Metric {
    /// Metrics that are rates of a counter.
    pub const COUNTED: [Self; 20] = [
        Self::Operations,
        Self::Errors,
        Self::LogicalReads,
        Self::CacheHits,
        Self::BufferMisses,
        Self::PageCacheHits,
        Self::Reads,
        Self::ReadMegabytes,
        Self::Writes,
        Self::WriteMegabytes,
        Self::BlocksRead,
        Self::BlocksWritten,
        Self::BlockChanges,
        Self::Commits,
        Self::RedoMegabytes,
        Self::RedoWrites,
        Self::RedoWriteMegabytes,
        Self::LogSwitches,
        Self::Checkpoints,
        Self::DirectReads,
    ];

    /// What it is a rate of, of those in [`Self::COUNTED`]; of megabytes the bytes.
    pub fn count(self, counters: &Counters) -> Option<u64> {
        match self {
            Self::Operations => counters.operations,
            Self::Errors => counters.errors,
            Self::LogicalReads => counters.logical_reads,
            Self::CacheHits => counters.cache_hits,
            Self::BufferMisses => counters.buffer_misses,
            Self::PageCacheHits => counters.page_cache_hits,
            Self::Reads => counters.physical_reads,
            Self::ReadMegabytes => counters.physical_read_bytes,
            Self::Writes => counters.physical_writes,
            Self::WriteMegabytes => counters.physical_write_bytes,
            Self::Megabytes => Some(counters.physical_read_bytes?.saturating_add(counters.physical_write_bytes?)),
            Self::BlocksRead => counters.physical_read_blocks,
            Self::BlocksWritten => counters.physical_write_blocks,
            Self::BlockChanges => counters.block_changes,
            Self::Commits => counters.commits,
            Self::RedoMegabytes => counters.redo_bytes,
            Self::RedoWrites => counters.redo_writes,
            Self::RedoWriteMegabytes => counters.redo_write_bytes,
            Self::LogSwitches => counters.log_switches,
            Self::Checkpoints => counters.checkpoints,
            Self::DirectReads => counters.direct_reads,
            _ => None,
        }
    }

    /// How many of what [`Self::count`] counts are one of it: a million bytes are a megabyte.
    pub fn scale(self) -> f64 {
        if self.unit() == MetricUnit::MegabytesPerSecond { 1e6 } else { 1.0 }
    }

    /// The name of what it is a rate of, of those in [`Self::COUNTED`].
    pub fn count_name(self) -> String {
        self.key().trim_end_matches("_per_s").replace("megabytes", "bytes")
    }
}

/// Which metric a figure of another program is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Known {
    /// Key of the metric.
    pub key: Metric,
    /// How many of the metric's unit one of the figure's is.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub factor: f64,
    /// The part of the measured that it is a figure of, such as a device or a node; absent where it is of the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
}

fn one() -> f64 {
    1.0
}

fn is_one(factor: &f64) -> bool {
    *factor == 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_end_in_their_unit() {
        let mut keys: Vec<&str> = Metric::ALL.iter().map(|metric| metric.key()).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), Metric::ALL.len());
        for metric in Metric::ALL {
            let ending = match metric.unit() {
                MetricUnit::PerSecond => "_per_s",
                MetricUnit::PerMinute => "_per_minute",
                MetricUnit::MegabytesPerSecond => "megabytes_per_s",
                MetricUnit::Share => "_share",
                MetricUnit::Percent => "_percent",
                MetricUnit::Processors => "_processors",
                MetricUnit::Seconds => "_s",
                MetricUnit::Milliseconds => "_ms",
                MetricUnit::Bytes => "_bytes",
                MetricUnit::Number => "",
            };
            assert!(metric.key().ends_with(ending), "{}", metric.key());
            assert_eq!(serde_json::to_value(metric).unwrap(), metric.key());
        }
    }

    #[test]
    fn what_is_counted_is_a_rate_with_a_counter() {
        let all = serde_json::json!({});
        let mut counters: Counters = serde_json::from_value(all).unwrap();
        counters.redo_bytes = Some(7);
        assert_eq!((Metric::RedoMegabytes.count(&counters), Metric::Sessions.count(&counters)), (Some(7), None));
        for metric in Metric::COUNTED {
            assert!(metric.key().ends_with("_per_s"), "{metric:?}");
        }
        assert_eq!(Metric::RedoWriteMegabytes.count_name(), "redo_write_bytes");
    }
}
