//! The machine that a run was made on, as far as its user could see it.

use serde::{Deserialize, Serialize};

use super::Topology;

/// Facts about the host. Everything that could not be read is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Environment {
    /// Host name.
    pub hostname: Option<String>,
    /// Distribution, from `/etc/os-release`.
    pub os: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Vendor and product as the firmware reports them, such as `Amazon EC2 m7i.large`.
    pub machine: Option<String>,
    /// CPU architecture.
    pub architecture: Option<String>,
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Processors that this process may use.
    pub cpus: Option<u32>,
    /// How processors, caches and memory lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Frequency governor of the first processor.
    pub cpu_governor: Option<String>,
    /// Physical memory.
    pub memory_bytes: Option<u64>,
    /// Memory that was available without swapping when the run began.
    pub memory_available_bytes: Option<u64>,
    /// Memory limit of the control group of this process, if one is set.
    pub memory_limit_bytes: Option<u64>,
    /// When the kernel backs memory with huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Mean number of tasks running or waiting for storage in the minute before, on the whole machine.
    pub load_average_1m: Option<f64>,
    /// Share of the ten seconds before in which some task waited for storage, in percent, on the whole machine.
    pub io_pressure_percent: Option<f64>,
    /// Kernel clock source (`tsc`, `kvm-clock`, …).
    pub clocksource: Option<String>,
    /// Hypervisor or container runtime, if one was recognised.
    pub virtualization: Option<String>,
    /// The file system below the target.
    pub file_system: Option<FileSystem>,
    /// Block devices below that file system, the one it is mounted from first.
    pub devices: Vec<BlockDevice>,
}

/// A mounted file system.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileSystem {
    /// Type, such as `ext4`.
    pub kind: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// What is mounted: a device or a remote address.
    pub source: String,
    /// Mount options as the kernel shows them.
    pub options: String,
    /// Size.
    pub size_bytes: Option<u64>,
    /// Space that an ordinary user could still take.
    pub available_bytes: Option<u64>,
}

/// A block device and the settings of its queue that change results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BlockDevice {
    /// Kernel name, such as `nvme0n1`.
    pub name: String,
    /// What it is built as, if it is not a plain disk: `partition`, `raid0`, `lvm`, `crypt`, `loop`, …
    pub layer: Option<String>,
    /// Model, where the device reports one.
    pub model: Option<String>,
    /// Size.
    pub size_bytes: Option<u64>,
    /// Whether the kernel takes it for a spinning disk.
    pub rotational: Option<bool>,
    /// Active I/O scheduler.
    pub scheduler: Option<String>,
    /// Requests that the queue holds.
    pub queue_requests: Option<u32>,
    /// Kernel read-ahead.
    pub read_ahead_bytes: Option<u64>,
    /// Largest request that the kernel sends; larger reads and writes are split.
    pub max_request_bytes: Option<u64>,
    /// Smallest unit of I/O.
    pub logical_block_bytes: Option<u32>,
    /// Unit in which the medium prefers I/O.
    pub physical_block_bytes: Option<u32>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Whether a single write can be made durable by itself (FUA), without flushing the device's whole cache.
    #[serde(default)]
    pub forced_unit_access: Option<bool>,
    /// Whether the kernel counts its I/O; if not, `/proc/diskstats` stands still.
    pub statistics: Option<bool>,
}
