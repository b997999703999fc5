//! Recorders, interval merge and operating-system counters.

mod clock;
mod event;
mod recorder;
mod timeline;

pub use clock::Clock;
pub use event::{Counter, WaitClass, WaitEvent, counters_from};
pub use recorder::{LaneRecorder, OPERATION_KINDS, Outbox, Recorded, SharedRecorder, Timings};
pub use timeline::{IntervalId, Timeline};
