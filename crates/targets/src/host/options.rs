//! What a target of processors is opened with, and the counts on which its lanes lay what they have done.

use std::io;
use std::sync::atomic::AtomicU64;

use crate::TargetError;
use model::units::Bytes;
use model::workload::HostKind;

/// Which processors, and what their work needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostOptions {
    /// The processor of each lane.
    pub processors: Vec<u32>,
    /// Memory that each lane's copies, triads and chases go through.
    pub size_bytes: u64,
    /// Buffer cache that logical reads are done in, shared by all lanes; `None` where there are none.
    pub cache: Option<Bytes>,
    /// Processor that touches each lane's memory first, so that it lies near to that one; `None` for the lane's own.
    pub memory_of: Option<u32>,
    /// Processor of the threads that are woken; `None` for that of the lane which wakes them.
    pub wake_on: Option<u32>,
}

/// What a lane has done so far.
#[derive(Default)]
pub(super) struct WorkCounts {
    pub(super) cpu_ns: AtomicU64,
    pub(super) operations: AtomicU64,
    pub(super) units: [AtomicU64; HostKind::ALL.len()],
}

pub(super) fn kernel(action: &'static str, source: io::Error) -> TargetError {
    TargetError::Kernel { action, source }
}
