//! Recorders, interval merge and operating-system counters.

pub mod environment;
pub mod os;
