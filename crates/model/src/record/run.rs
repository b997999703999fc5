//! One recorded experiment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    ArrayState, CheckRequest, GroupLimit, Imported, Like, Load, NvmeState, Outcome, PathState, PoolState, Step, Target,
    Topology, Workload,
};

/// Version of the document. Every version that was released stays readable.
pub const FORMAT: u32 = 1;

/// One recorded experiment: what was asked, where it ran, and what was seen at each load level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Run {
    /// Version of this document's format.
    pub format: u32,
    /// Unique name of the run and of its directory, such as `20260301-101500-slob-7f3a`.
    pub id: String,
    /// Name built from the tags and the load, such as `p30x2_d8s_s64_t1_wu64`.
    pub name: String,
    /// Which program made it.
    pub tool: Tool,
    /// What load it puts on, as it was asked for.
    pub load: Load,
    /// The command line, secrets removed.
    pub command: Vec<String>,
    /// When the run began.
    pub started_at: Timestamp,
    /// When it ended; absent while it goes on, or when it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub outcome: Outcome,
    /// What the user calls the things that vary: `vm=d8s disk=p30x2`.
    pub tags: BTreeMap<String, String>,
    /// Seed of every random choice in the run, where its program reports one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The parameters that all steps have in common, as text for display: made from the load, or as another program names them. Secrets
    /// are not among them.
    pub parameters: BTreeMap<String, String>,
    /// Where load landed.
    pub target: Target,
    /// The machine.
    pub environment: Environment,
    /// What the user should know about how the run was made: fallbacks taken, parameters ignored.
    pub notes: Vec<String>,
    /// The files that it was made from, if another program measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    /// Whether the platform carries what: the question that it answers, if it is a check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckRequest>,
    /// What its load was made like; absent where nobody asked for a production's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<Like>,
    /// Which part of a fleet's experiment it is; absent where it was the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<FleetPart>,
    /// How parts of a fleet became this run; absent where it is no merged one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<Merged>,
    /// These parts, by their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<MergedPart>,
    /// One element for each load level, in the order in which they ran.
    pub steps: Vec<Step>,
}

impl Run {
    /// Which kind of load it has.
    pub const fn workload(&self) -> Workload {
        self.load.workload()
    }

    /// A parameter of a step, or of the whole run.
    pub fn parameter<'a>(&'a self, step: &'a Step, name: &str) -> Option<&'a str> {
        step.parameters.get(name).or_else(|| self.parameters.get(name)).map(String::as_str)
    }

    /// Whether it is one of several parts of a fleet's experiment: what others did meanwhile is the other parts' load, or may be.
    pub fn is_one_of_many(&self) -> bool {
        self.part.as_ref().is_some_and(|part| part.parts > 1)
    }
}

/// A program and its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Tool {
    /// Name, such as `plimsoll`.
    pub name: String,
    /// Version.
    pub version: String,
}

impl Tool {
    /// Name of this program.
    pub const OWN: &str = "plimsoll";

    /// Whether it is this program, in whichever version.
    pub fn is_own(&self) -> bool {
        self.name == Self::OWN
    }
}

/// An instant, written as RFC 3339 text in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Timestamp(#[cfg_attr(any(test, feature = "schemas"), schemars(with = "String"))] pub jiff::Timestamp);

/// Facts about the host. Everything that could not be read is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
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
    /// Limits that the control groups around this process set: on these devices, on processors and on memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group_limits: Vec<GroupLimit>,
}

/// A mounted file system.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
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
    /// Whether new files in the directory are written in place although the file system else writes each change to a new place
    /// (`chattr +C`); absent where the file system does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes_in_place: Option<bool>,
}

impl FileSystem {
    /// The mount option by which it compresses new files; `None` where it does not. What is written in place is never compressed.
    pub fn compression(&self) -> Option<&str> {
        let is_on = |option: &&str| {
            let name = option.split_once('=').map_or((*option, ""), |(name, kind)| (name, kind));
            matches!(name.0, "compress" | "compress-force" | "compression") && !matches!(name.1, "no" | "none" | "off")
        };
        self.options.split(',').find(is_on).filter(|_| self.writes_in_place != Some(true))
    }
}

/// A block device and the settings of its queue that change results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct BlockDevice {
    /// Kernel name, such as `nvme0n1`.
    pub name: String,
    /// What it is built as, if it is not a plain disk: `partition`, `raid0`, `lvm`, `crypt`, `loop`, … `snapshot` is where a snapshot of
    /// LVM keeps blocks.
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
    /// State of an array (MD, or RAID of LVM) when the run began; absent for other devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayState>,
    /// State of a thin pool when the run began; absent for other devices, and where the program may not ask (it takes root).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolState>,
    /// Paths of a multipath device when the run began; absent for other devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<PathState>,
    /// What an NVMe device stated when the run began; absent for other devices, and where it states nothing that may be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvme: Option<NvmeState>,
}

/// The part of a fleet that a run was. A part drives contiguous lanes and sessions of the whole experiment, so that all parts
/// together send what one process with all sessions would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct FleetPart {
    /// Its number, from 0.
    pub number: u32,
    /// Parts of the experiment; at least 1 and more than `number`.
    pub parts: u32,
    /// Where both came from, such as `--part` or `OMPI_COMM_WORLD_RANK`.
    pub source: String,
    /// Digest of everything that decides the load: equal in all parts of one experiment. Hosts, paths and part numbers are not in it.
    pub configuration: String,
    /// What the parts agreed on as the start, by this host's clock: nanoseconds since 1970 in UTC. Absent where each began by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at_ns: Option<u64>,
    /// How far the load began from `start_at_ns`: positive is late. Absent where nothing was agreed on, or no load began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_error_ns: Option<i64>,
    /// This host's clock beside that of part 0; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockOffset>,
}

/// A clock beside another: what has to be added to its times to have the other's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ClockOffset {
    /// Offset in nanoseconds by the exchange of the least round trip, before the load.
    pub before_ns: i64,
    /// The same after the load; absent where the end came without an exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ns: Option<i64>,
    /// Half of the least round trip: the true offset is no farther away than this.
    pub bound_ns: u64,
}

impl ClockOffset {
    /// What is added to this clock's times: the middle of both offsets where there are two.
    pub fn offset_ns(&self) -> i64 {
        self.after_ns.map_or(self.before_ns, |after_ns| self.before_ns.midpoint(after_ns))
    }

    /// How far the true offset may be away, at any time of the run: the bound, and half of what the clocks drifted meanwhile.
    pub fn uncertainty_ns(&self) -> u64 {
        let drift_ns = self.after_ns.map_or(0, |after_ns| after_ns.abs_diff(self.before_ns));
        self.bound_ns.saturating_add(drift_ns.div_ceil(2))
    }
}

/// How the parts of a fleet became one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Merged {
    /// Parts that the experiment had.
    pub parts: u32,
    /// Digest of everything that decided the load, which the parts have in common.
    pub configuration: String,
    /// Numbers of the parts of which there was no run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<u32>,
    /// What did not belong together and was merged all the same, because that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forced: Vec<String>,
    /// One element for each step of the run, in its order.
    pub steps: Vec<MergedStep>,
}

/// How the windows of the parts became that of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct MergedStep {
    /// The step, by its index.
    pub step: u32,
    /// Parts that are in it.
    pub parts: u32,
    /// What its figures are of.
    pub windows: MergedWindows,
    /// How far the first intervals of the merged window begin apart in the parts, by the clock of part 0; unknown where parts have no
    /// intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart_ns: Option<u64>,
    /// How far a part's clock may be away from where it was taken to be, of the worst one; unknown where a clock was compared with
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_uncertainty_ns: Option<u64>,
    /// Whether the step has intervals: not where the parts' lie more than half a second apart, or some have none.
    pub has_intervals: bool,
}

/// What the figures of a merged step are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MergedWindows {
    /// The whole windows of all parts, which lie over each other interval by interval: every figure is an exact sum.
    Whole,
    /// The intervals that all parts share. What intervals carry is an exact sum; what they do not is unknown, or of whole windows
    /// where it is a share or a lateness.
    Shared,
    /// The whole windows of all parts, although they do not lie over each other, since there are no intervals to cut them by. Counts
    /// are exact sums, rates are not.
    Apart,
}

/// One part of a merged run, as its own run has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct MergedPart {
    /// Its number, from 0.
    pub number: u32,
    /// Host that it ran on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Processors that it could use there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Processor model of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Memory of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Kernel of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Id of its run.
    pub run: String,
    /// How its run ended.
    pub outcome: Outcome,
    /// Its clock beside that of part 0: that of the run, or no offset at all on the host of part 0. Absent where it is not known; its
    /// times were taken as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockOffset>,
    /// How far its load began from the agreed start: positive is late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_error_ns: Option<i64>,
    /// Steps that it is in.
    pub steps: Vec<PartStep>,
}

/// What one part did in one step, over the whole of its own window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct PartStep {
    /// The step, by its index in the merged run.
    pub step: u32,
    /// Sessions that it drove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u32>,
    /// Rate that it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_operations_per_s: Option<f64>,
    /// Length of its window; 0 where its process was killed before it had any.
    pub window_ns: u64,
    /// Operations that finished in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// Of these, how many failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<u64>,
    /// Operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations_per_s: Option<f64>,
    /// Standard deviation of that from interval to interval; absent with fewer than two of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation_per_s: Option<f64>,
    /// Median of the response times of all operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<u64>,
    /// Their 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
    /// Processors that its process kept busy, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_processors: Option<f64>,
    /// Processor time of the busiest thread of its load generator, as a share of the window: 1 is saturated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_share: Option<f64>,
    /// Largest resident memory of its process so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
    /// What was cut from the beginning of its window.
    pub cut_before_ns: u64,
    /// What was cut from the end of it.
    pub cut_after_ns: u64,
}
