//! Recorders, interval merge and operating-system counters.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod channel;
mod clock;
pub mod doctor;
pub mod environment;
mod event;
pub mod host;
pub mod os;
mod recorder;
mod slow;
pub mod trace;

pub use channel::{ChannelCounter, ChannelName, ChannelWork, ChannelWriter, Channels};
pub use clock::{Clock, monotonic_at_wall, monotonic_ns, wall_at_monotonic, wall_ns};
pub use event::{Counter, WaitClass, WaitEvent, counters_from};
pub use recorder::{
    ConnectFailure, FailedConnects, IntervalId, LaneRecorder, OPERATION_KINDS, Outbox, Recorded, RefusalClass,
    SharedRecorder, Tally, Timeline, Timings,
};
pub use slow::{EndedOperation, KEPT_LONG, Reservoir, SlowOnes};
