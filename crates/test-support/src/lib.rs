//! What tests of all crates share: how a test says that it was skipped, where it puts data, disks and ports of its own, and patience.

pub mod loop_device;
pub mod patience;
pub mod ports;
pub mod scratch;
pub mod skip;
