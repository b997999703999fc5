//! Counters of the operating system, read at both edges of a window and each second.
//!
//! Everything is read as an ordinary user. What a container or an old kernel hides is absent from the result.

mod kept;
mod kernel;
mod net;
mod root;
mod tcp;
mod threads;

pub mod block;
pub mod cgroup;
pub mod mounts;
pub mod proc;
pub(crate) mod quota;

pub use kept::KeptFiles;
pub use kernel::{Resource, effective_user, limit, space, ticks_per_second};
pub use kernel::{precise_timers, thread_cpu_ns, wall_clock_bound_ns};
pub use net::{EndWatch, EndedThreads};
pub use root::Root;
pub use tcp::{SocketFacts, TcpInfo, path_mtu, unread_bytes};
pub use threads::{room_for_thread, start_thread};

use model::record::{CpuTime, DeviceStats, ProcessIo};

/// What snapshots look at.
#[derive(Debug, Clone)]
pub struct Probe {
    root: Root,
    devices: Vec<String>,
    ticks_per_second: Option<u64>,
}

impl Probe {
    /// Looks at this machine, and in `/proc/diskstats` at `devices` (kernel names, such as those that
    /// [`devices_below`](super::environment::devices_below) gives).
    pub fn new(devices: Vec<String>) -> Self {
        Self::under(Root::default(), devices)
    }

    /// The same with the kernel's files below another root. The processor time of the process is still its own.
    pub fn under(root: Root, devices: Vec<String>) -> Self {
        Self { root, devices, ticks_per_second: kernel::ticks_per_second() }
    }
}

/// Counters at one instant. Only the difference of two means something.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    instant_ns: u64,
    process_cpu: Option<CpuTime>,
    host_cpu: Option<CpuTime>,
    process_io: Option<ProcessIo>,
    peak_memory_bytes: Option<u64>,
    devices: Vec<(String, proc::DiskCounts)>,
}

/// What happened between two snapshots. What either of them could not read, and every counter that went backwards, is
/// absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Processor time of this process.
    pub process_cpu: Option<CpuTime>,
    /// Processor time of the whole machine.
    pub host_cpu: Option<CpuTime>,
    /// Storage I/O of this process.
    pub process_io: Option<ProcessIo>,
    /// The devices that the probe named, in its order.
    pub devices: Vec<DeviceStats>,
    /// Largest resident memory of the process up to the later snapshot.
    pub peak_memory_bytes: Option<u64>,
}

impl Snapshot {
    /// Reads all counters. `instant_ns` is the caller's monotonic clock, so that rates agree with its windows. Takes about
    /// a tenth of a millisecond, more on a host with many processors or disks: right for once a second.
    pub fn take(probe: &Probe, instant_ns: u64) -> Self {
        let Probe { root, devices, ticks_per_second } = probe;
        Self {
            instant_ns,
            process_cpu: kernel::process_cpu(),
            host_cpu: ticks_per_second.and_then(|ticks| proc::host_cpu(&root.text("/proc/stat")?, ticks)),
            process_io: root.text("/proc/self/io").and_then(|text| proc::process_io(&text)),
            peak_memory_bytes: root.text("/proc/self/status").and_then(|text| proc::kib_field_bytes(&text, "VmHWM")),
            devices: device_counts(root, devices),
        }
    }

    /// What happened since `earlier`.
    pub fn since(&self, earlier: &Self) -> Difference {
        Difference {
            process_cpu: both(&earlier.process_cpu, &self.process_cpu, proc::cpu_between),
            host_cpu: both(&earlier.host_cpu, &self.host_cpu, proc::cpu_between),
            process_io: both(&earlier.process_io, &self.process_io, proc::io_between),
            devices: self.devices_since(earlier).unwrap_or_default(),
            peak_memory_bytes: self.peak_memory_bytes,
        }
    }

    fn devices_since(&self, earlier: &Self) -> Option<Vec<DeviceStats>> {
        let elapsed_ns = self.instant_ns.checked_sub(earlier.instant_ns)?;
        let stats = self.devices.iter().filter_map(|(name, later)| {
            let (_, earlier) = earlier.devices.iter().find(|(other, _)| other == name)?;
            later.since(earlier, name, elapsed_ns)
        });
        Some(stats.collect())
    }
}

fn device_counts(root: &Root, names: &[String]) -> Vec<(String, proc::DiskCounts)> {
    if names.is_empty() {
        return Vec::new();
    }
    let text = root.text("/proc/diskstats").unwrap_or_default();
    let rows: Vec<_> = proc::diskstats(&text).collect();
    names.iter().filter_map(|name| Some((name.clone(), rows.iter().find(|row| row.name == name)?.counts))).collect()
}

fn both<T>(earlier: &Option<T>, later: &Option<T>, between: impl Fn(&T, &T) -> Option<T>) -> Option<T> {
    between(earlier.as_ref()?, later.as_ref()?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn tree(directory: &std::path::Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = directory.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn a_difference_holds_everything_that_both_snapshots_saw() {
        let directory = tempfile::tempdir().unwrap();
        let probe = Probe::under(Root::at(directory.path()), vec!["vdb".into(), "vda".into(), "gone".into()]);
        tree(
            directory.path(),
            &[
                ("proc/stat", "cpu  10 0 10 100 0 0 0 0 0 0\n"),
                ("proc/self/io", "read_bytes: 8192\nwrite_bytes: 0\n"),
                ("proc/self/status", "VmHWM: 10 kB\n"),
                ("proc/diskstats", "254 0 vda 1 0 16 1 0 0 0 0 0 1 1\n254 16 vdb 0 0 0 0 0 0 0 0 0 0 0\n"),
            ],
        );
        let earlier = Snapshot::take(&probe, 5_000);
        tree(
            directory.path(),
            &[
                ("proc/stat", "cpu  20 0 10 150 0 0 0 0 0 0\n"),
                ("proc/self/io", "read_bytes: 24576\nwrite_bytes: 0\n"),
                ("proc/self/status", "VmHWM: 20 kB\n"),
                ("proc/diskstats", "254 0 vda 3 0 48 2 0 0 0 0 0 2 2\n254 16 vdb 0 0 0 0 0 0 0 0 0 0 0\n"),
            ],
        );
        let difference = Snapshot::take(&probe, 9_000).since(&earlier);

        assert_eq!(difference.process_io, Some(ProcessIo { read_bytes: 16_384, write_bytes: 0 }));
        assert_eq!(difference.peak_memory_bytes, Some(20 << 10));
        assert!(difference.process_cpu.is_some());
        assert_eq!(difference.host_cpu.unwrap().system_ns, 0);
        let seen: Vec<_> = difference.devices.iter().map(|d| (d.name.as_str(), d.elapsed_ns, d.read_bytes)).collect();
        assert_eq!(seen, [("vdb", 4_000, 0), ("vda", 4_000, 16_384)]);
    }

    #[test]
    fn a_hidden_proc_leaves_only_what_system_calls_tell() {
        let directory = tempfile::tempdir().unwrap();
        let probe = Probe::under(Root::at(directory.path()), vec!["vda".into()]);
        let earlier = Snapshot::take(&probe, 1);
        let difference = Snapshot::take(&probe, 2).since(&earlier);
        assert!(difference.process_cpu.is_some());
        assert_eq!(Difference { process_cpu: None, ..difference }, Difference::default());
    }

    #[test]
    fn snapshots_in_the_wrong_order_give_no_devices() {
        let directory = tempfile::tempdir().unwrap();
        tree(directory.path(), &[("proc/diskstats", "254 0 vda 1 0 16 1 0 0 0 0 0 1 1\n")]);
        let probe = Probe::under(Root::at(directory.path()), vec!["vda".into()]);
        let earlier = Snapshot::take(&probe, 2);
        let difference = Snapshot::take(&probe, 1).since(&earlier);
        assert!(difference.devices.is_empty());
    }

    #[test]
    fn this_machine_counts_the_memory_that_this_process_touches() {
        let probe = Probe::new(Vec::new());
        let earlier = Snapshot::take(&probe, 0);
        let touched = std::hint::black_box(vec![1u8; 32 << 20]);
        let difference = Snapshot::take(&probe, 1).since(&earlier);
        // A kernel without /proc is possible; one that has it must have seen 32 MiB.
        assert!(difference.peak_memory_bytes.is_none_or(|peak| peak >= touched.len() as u64));
    }
}
