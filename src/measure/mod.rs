//! Recorders, interval merge and operating-system counters.

pub mod doctor;
pub mod environment;
pub mod os;
