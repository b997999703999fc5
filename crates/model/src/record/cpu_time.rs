//! Processor time, of a process or a machine.

use serde::{Deserialize, Serialize};

/// Processor time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CpuTime {
    /// In user code.
    pub user_ns: u64,
    /// In the kernel, interrupts included where they are accounted apart.
    pub system_ns: u64,
    /// Idle with I/O outstanding; machine-wide only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iowait_ns: Option<u64>,
    /// Taken by the hypervisor for others; machine-wide only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal_ns: Option<u64>,
    /// Idle; machine-wide only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ns: Option<u64>,
}
