//! What tests of all crates share: how a test says that it was skipped, where it puts data, and disks of its own.

pub mod loop_device;
pub mod scratch;
pub mod skip;
