//! The [`Run`] document: the neck of the hourglass, and its store on disk.
//!
//! Live runs and importers produce it; analysis and reports read nothing else. Names carry their unit (`_ns`, `_bytes`,
//! `_per_s`), one case throughout. What a source does not report is absent (`None`), never zero.

mod activity;
pub mod at_once;
pub mod beside;
mod buckets;
mod cache_curve;
mod channel;
mod counters;
mod counts;
mod cpu_time;
mod demand;
mod environment;
pub mod experiment;
pub mod facts;
mod fleet;
mod histogram;
mod host;
mod imported;
mod like;
mod load;
mod metric;
mod network;
pub mod oracle_names;
mod outcome;
pub mod postgres_names;
mod reported;
mod run;
#[cfg(any(test, feature = "samples"))]
pub mod sample;
mod schema;
mod server;
mod step;
pub mod store;
mod waits;
mod workload;

pub use activity::{Activity, Gauge, NamedActivity, SessionState, activities};
pub use cache_curve::{CacheCurve, CachePoint};
pub use channel::{ChannelKind, ChannelStats};
pub use counters::Counters;
pub use counts::Counts;
pub use cpu_time::CpuTime;
pub use demand::{ASKED, CheckRequest, Demand, Demands, Throughput, Within};
pub use environment::{BlockDevice, Environment, FileSystem};
pub use fleet::{ClockOffset, FleetPart, Merged, MergedPart, MergedStep, MergedWindows, PartStep};
pub use histogram::{Histogram, HistogramError, POWER_OF_TWO_BOUNDS, ReportedBucket};
pub use host::{Cache, HostStats, NumaNode, Processor, ProcessorStats, ProcessorTimes, Throttled, Topology};
pub use imported::{Clock, Imported, ImportedFile, NotUnderstood, ReportedFigure};
pub use like::{Aspect, Like, LikeLevel, LikeMoment, Work, WorkFigure};
pub use load::{
    Beside, CalibrateLevel, CalibrateLoad, Foreign, HostLevel, HostLoad, IoMix, Level, Load, NetLevel, NetMatrix,
    NetSurvey, OrdersOptions, OrionLevel, OrionLoad, Parameters, SlobLoad, Soak, one_word,
};
pub use metric::{Better, Known, Layer, Metric, MetricUnit};
pub use network::{NetworkEnd, NetworkFacts, NetworkSide, ProcessorTime, Spread, TcpStats, ThreadTime};
pub use outcome::Outcome;
pub use reported::{Covers, ReportedColumn, ReportedRow, ReportedTable};
pub use run::{FORMAT, Run, Target, Timestamp, Tool};
pub use schema::{interval_schema, schema};
pub use server::{OwnReport, ServerStats, TraceStats, counted_per_s, rate};
pub use step::{
    DeviceStats, Ending, Generator, Intensity, Interval, OperationStats, ProcessIo, Step, TransactionStats, WaitStats,
    Window,
};
pub use waits::{CONNECT, ReportedWaits, Waited, Waiters};
pub use workload::Workload;
