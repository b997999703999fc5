//! The catalogue of metrics: what tables, files for programs and trends show of a step, each defined once.

use super::comparison::Better;
use super::figures::Figure;

/// What the values of a metric are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricUnit {
    /// So many a second.
    PerSecond,
    /// Megabytes (10^6 bytes) a second.
    MegabytesPerSecond,
    /// A share, 0 to 1.
    Share,
    /// Processors: 1 is all time of one. Tables show percent of one.
    Processors,
    /// Seconds.
    Seconds,
    /// A mean or a plain number.
    Number,
}

impl MetricUnit {
    /// The unit as files for programs name it; empty for a plain number.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::PerSecond => "1/s",
            Self::MegabytesPerSecond => "10^6 B/s",
            Self::Share => "0 to 1",
            Self::Processors => "processors",
            Self::Seconds => "s",
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

/// A metric of the measured window of a step.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name in files for programs, ending in its unit.
    pub key: &'static str,
    /// The heading of its columns.
    pub heading: &'static str,
    /// What its values are in.
    pub unit: MetricUnit,
    /// Who counted it.
    pub layer: Layer,
    /// Which way it gets better; absent where neither way is.
    pub better: Option<Better>,
    /// What it counts, in a sentence without a full stop.
    pub meaning: &'static str,
    /// Its value; absent where a step does not know it.
    pub value: Figure,
}

macro_rules! metrics {
    ($($name:ident $key:literal $heading:literal $unit:ident $layer:ident $better:expr, $meaning:literal, $value:expr;)+) => {
        $(
            #[doc = $meaning]
            pub const $name: Metric = Metric {
                key: $key,
                heading: $heading,
                unit: MetricUnit::$unit,
                layer: Layer::$layer,
                better: $better,
                meaning: $meaning,
                value: $value,
            };
        )+

        /// All metrics, as the reference lists them.
        pub const ALL: &[Metric] = &[$($name,)+];
    };
}

const MORE: Option<Better> = Some(Better::More);
const LESS: Option<Better> = Some(Better::Less);

metrics! {
    SESSIONS "sessions" "sessions" Number Load None,
        "sessions at work, or requests outstanding", |f| f.0.load.sessions.map(f64::from);
    ASKED "asked_per_s" "asked/s" PerSecond Load None,
        "operations requested, of an open loop", |f| f.0.load.rate_operations_per_s;
    WINDOW "window_s" "window s" Seconds Load None,
        "length of the window", |f| Some(f.seconds());
    OPERATIONS "operations_per_s" "operations/s" PerSecond Load MORE,
        "operations finished well", |f| f.operations_per_s();
    FAILED "failed_share" "errors %" Share Load LESS,
        "operations that failed, of all that ended", |f| f.failed_share();
    QUEUED "queued_share" "queued %" Share Load LESS,
        "response time between due and sent, of an open loop", |f| f.queued_share();
    BUSY_SESSIONS "busy_sessions" "active sessions" Number Load None,
        "sessions inside an operation on average", |f| f.busy_sessions();
    LOGICAL_READS "logical_reads_per_s" "logical reads/s" PerSecond Database MORE,
        "blocks found through the buffer cache", |f| f.logical_reads_per_s();
    HITS "hit_share" "hit %" Share Database None,
        "logical reads that found their block in the cache", |f| f.hit_ratio();
    COMMITS "commits_per_s" "commits/s" PerSecond Database MORE,
        "commits acknowledged", |f| f.commits_per_s();
    EXECUTES "executes_per_s" "executes/s" PerSecond Database MORE,
        "statements executed, of a database that counts them", |f| f.executes_per_s();
    REDO_MEGABYTES "redo_megabytes_per_s" "redo MB/s" MegabytesPerSecond Database MORE,
        "redo generated", |f| f.redo_megabytes_per_s();
    BUFFER_MISSES "buffer_misses_per_s" "buffer misses/s" PerSecond Database MORE,
        "blocks that were not in the buffer cache of a database which reads through the page cache",
        |f| f.buffer_misses_per_s();
    PAGE_CACHE_HITS "page_cache_hits_per_s" "page cache hits/s" PerSecond Os None,
        "of these, those that the page cache had", |f| f.page_cache_hits_per_s();
    READS "reads_per_s" "reads/s" PerSecond Storage MORE,
        "read requests", |f| f.physical_reads_per_s();
    WRITES "writes_per_s" "writes/s" PerSecond Storage MORE,
        "write requests for data blocks", |f| f.physical_writes_per_s();
    BLOCKS_READ "blocks_read_per_s" "blocks read/s" PerSecond Storage MORE,
        "blocks read, where they are counted apart from requests", |f| f.blocks_read_per_s();
    BLOCKS_WRITTEN "blocks_written_per_s" "blocks written/s" PerSecond Storage MORE,
        "blocks written, where they are counted apart from requests", |f| f.blocks_written_per_s();
    MEGABYTES "megabytes_per_s" "MB/s" MegabytesPerSecond Storage MORE,
        "read and written", |f| f.all_megabytes_per_s();
    READ_MEGABYTES "read_megabytes_per_s" "read MB/s" MegabytesPerSecond Storage MORE,
        "read", |f| f.read_megabytes_per_s();
    WRITE_MEGABYTES "write_megabytes_per_s" "write MB/s" MegabytesPerSecond Storage MORE,
        "data blocks written", |f| f.write_megabytes_per_s();
    USER_PROCESSORS "user_processors" "user %" Processors Os None,
        "processors that this process kept busy in user code", |f| f.user_processors();
    SYSTEM_PROCESSORS "system_processors" "system %" Processors Os None,
        "processors that the kernel kept busy for this process", |f| f.system_processors();
    DATABASE_PROCESSORS "database_processors" "processors" Number Database None,
        "processors that the database kept busy", |f| f.database_processors();
    IO_PER_CPU_SECOND "io_per_cpu_second" "I/O per CPU s" Number Os MORE,
        "requests to storage for each second of processor time of this process", |f| f.io_per_cpu_second();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_end_in_their_unit() {
        let mut keys: Vec<&str> = ALL.iter().map(|metric| metric.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), ALL.len());
        for metric in ALL {
            let ending = match metric.unit {
                MetricUnit::PerSecond => "_per_s",
                MetricUnit::MegabytesPerSecond => "megabytes_per_s",
                MetricUnit::Share => "_share",
                MetricUnit::Processors => "_processors",
                MetricUnit::Seconds => "_s",
                MetricUnit::Number => "",
            };
            assert!(metric.key.ends_with(ending), "{}", metric.key);
        }
    }
}
