//! Recorders, interval merge and operating-system counters.

mod channel;
mod clock;
mod connect;
pub mod doctor;
pub mod environment;
mod event;
pub mod host;
pub mod os;
mod recorder;
mod timeline;
pub mod trace;
mod transaction;

pub use channel::{ChannelCounter, ChannelName, ChannelWork, ChannelWriter, Channels};
pub use clock::{Clock, monotonic_at_wall, monotonic_ns, wall_at_monotonic, wall_ns};
pub use connect::{ConnectFailure, FailedConnects};
pub use event::{Counter, WaitClass, WaitEvent, counters_from};
pub use recorder::{LaneRecorder, OPERATION_KINDS, Outbox, Recorded, SharedRecorder, Timings};
pub use timeline::{IntervalId, Timeline};
pub use transaction::{RefusalClass, Tally};
