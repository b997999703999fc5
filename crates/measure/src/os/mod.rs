//! Counters of the operating system, read at both edges of a window and each second.
//!
//! Everything is read as an ordinary user. What a container or an old kernel hides is absent from the result.

mod kernel;
mod mapper;
mod net;
mod nvme;
mod tcp;
mod threads;

pub mod block;
pub mod cgroup;
pub mod group_limits;
pub mod moments;
pub mod mounts;
pub mod proc;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub use kernel::{
    PromptThread, Resource, effective_user, limit, precise_timers, space, spare_address_space, thread_cpu_ns,
    thread_number, thread_run_delay_ns, ticks_per_second, wall_clock_bound_ns,
};
pub use net::{EndWatch, EndedThreads};
pub use tcp::{SocketFacts, TcpInfo, path_mtu, unread_bytes};
pub use threads::{room_for_thread, start_thread};

use cgroup::{Group, Version, groups};
use model::record::{CpuTime, DeviceStats, ProcessIo, Throttled};
use mounts::Mount;

/// What snapshots look at.
#[derive(Debug, Clone)]
pub struct Probe {
    root: Root,
    devices: Vec<String>,
    ticks_per_second: Option<u64>,
    quota: Quota,
}

impl Probe {
    /// Looks at this machine, and in `/proc/diskstats` at `devices` (kernel names, such as those that
    /// [`devices_below`](super::environment::devices_below) gives).
    pub fn new(devices: Vec<String>) -> Self {
        Self::under(Root::default(), devices)
    }

    /// Looks at the same devices in shorter spans.
    pub fn watch(&self) -> moments::MomentWatch {
        moments::MomentWatch::new(self.root.clone(), self.devices.clone())
    }

    /// The same with the kernel's files below another root. The processor time of the process is still its own.
    pub fn under(root: Root, devices: Vec<String>) -> Self {
        let quota = Quota::of(&root, &mounts::all(&root), "self");
        Self { root, devices, ticks_per_second: kernel::ticks_per_second(), quota }
    }
}

/// Counters at one instant. Only the difference of two means something.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    instant_ns: u64,
    process_cpu: Option<CpuTime>,
    host_cpu: Option<CpuTime>,
    throttled: Throttling,
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
    /// What the limit on processor time did that binds this process's control group, or one around it.
    pub throttled: Option<Throttled>,
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
        let Probe { root, devices, ticks_per_second, quota } = probe;
        Self {
            instant_ns,
            process_cpu: kernel::process_cpu(),
            host_cpu: ticks_per_second.and_then(|ticks| proc::host_cpu(&root.text("/proc/stat")?, ticks)),
            throttled: quota.throttled(root),
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
            throttled: self.throttled.since(&earlier.throttled),
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

/// The directory that stands for `/` when `/proc`, `/sys` and `/etc` are read, so that a test can offer a tree of its
/// own. What a path leads to that cannot be read is `None`: a container may hide any of these files.
#[derive(Debug, Clone)]
pub struct Root {
    prefix: PathBuf,
}

impl Default for Root {
    fn default() -> Self {
        Self::at("/")
    }
}

impl Root {
    /// Takes `prefix` for `/`.
    pub fn at(prefix: impl Into<PathBuf>) -> Self {
        Self { prefix: prefix.into() }
    }

    /// Where `absolute` really lies.
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        self.prefix.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    /// The whole file; bytes that are not UTF-8 are replaced, since a mount point may hold any.
    pub fn text(&self, absolute: impl AsRef<Path>) -> Option<String> {
        fs::read(self.path(absolute)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The file without white space (or the NUL that device trees end with) around it; `None` if nothing is left.
    pub fn value(&self, absolute: impl AsRef<Path>) -> Option<String> {
        let text = self.text(absolute)?;
        let value = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// The file as a whole number.
    pub fn number<T: std::str::FromStr>(&self, absolute: impl AsRef<Path>) -> Option<T> {
        self.value(absolute)?.parse().ok()
    }

    /// Whether the path leads to something.
    pub fn exists(&self, absolute: impl AsRef<Path>) -> bool {
        self.path(absolute).exists()
    }

    /// Names in a directory, sorted so that results do not depend on the order of the directory; empty if unreadable.
    pub fn names(&self, absolute: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(absolute)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The path without symbolic links, as seen from inside; `None` if it does not exist or a link leads outside.
    pub fn canonical(&self, absolute: impl AsRef<Path>) -> Option<PathBuf> {
        let real = self.path(absolute).canonicalize().ok()?;
        let prefix = self.prefix.canonicalize().ok()?;
        Some(Path::new("/").join(real.strip_prefix(prefix).ok()?))
    }
}

/// Of the files that this process may open, the part that is kept open; the others stay free for connections.
const SHARE: u64 = 8;
/// Room for a file at first.
const ROOM_BYTES: usize = 4096;

/// Keeps files open between readings: of a small file in `/proc`, opening costs more than twice what reading does, and a server
/// with a thousand sessions has a thousand of them. Those for which there is no room are opened each time.
#[derive(Debug)]
pub struct KeptFiles {
    root: Root,
    /// Each with the number of the round in which it was last read.
    files: HashMap<String, (File, u64)>,
    max: usize,
    round: u64,
    text: Vec<u8>,
}

impl KeptFiles {
    /// Keeps none yet.
    pub fn new(root: Root) -> Self {
        let max = usize::try_from(limit(Resource::OpenFiles).unwrap_or(0) / SHARE).unwrap_or(usize::MAX);
        Self { root, files: HashMap::new(), max, round: 0, text: vec![0; ROOM_BYTES] }
    }

    /// Begins a round of reading: what was not read in the last one is closed.
    pub fn begin_round(&mut self) {
        let last = self.round;
        self.files.retain(|_, (_, round)| *round == last);
        self.round += 1;
    }

    /// The whole file as it is now, bytes that are not UTF-8 replaced; `None` when it cannot be read, as when its process has ended. It is kept open if
    /// `keeps` says so of it.
    pub fn text(&mut self, path: &str, keeps: impl FnOnce(&str) -> bool) -> Option<Cow<'_, str>> {
        if let Some((file, round)) = self.files.get_mut(path) {
            *round = self.round;
            if let Some(length) = read(file, &mut self.text) {
                return Some(String::from_utf8_lossy(&self.text[..length]));
            }
            // The process of this number has ended. There may be another one.
            self.files.remove(path);
        }
        let file = File::open(self.root.path(path)).ok()?;
        let length = read(&file, &mut self.text)?;
        let text = String::from_utf8_lossy(&self.text[..length]);
        if self.files.len() < self.max && keeps(&text) {
            self.files.insert(path.to_owned(), (file, self.round));
        }
        Some(text)
    }
}

/// Reads a file from its beginning; gives its length.
fn read(file: &File, into: &mut Vec<u8>) -> Option<usize> {
    let mut length = 0;
    loop {
        length += file.read_at(&mut into[length..], length as u64).ok()?;
        // The kernel gives such a file whole if there is room for all of it.
        if length < into.len() {
            return Some(length);
        }
        into.resize(2 * into.len(), 0);
    }
}

/// The control groups around a process that may limit its processors, the innermost first.
#[derive(Debug, Clone)]
pub struct Quota(Vec<(Version, PathBuf)>);

impl Quota {
    /// Of `process`, a number or `self`.
    pub fn of(root: &Root, mounts: &[Mount], process: &str) -> Self {
        let found: Vec<Group> = groups(root, mounts, process, "cpu");
        let levels = |group: &Group| -> Vec<(Version, PathBuf)> {
            group.levels().map(|level| (group.version, level.to_owned())).collect()
        };
        Self(found.iter().flat_map(levels).collect())
    }

    /// The smallest limit, in processors, and the group that has it.
    pub(crate) fn smallest(&self, root: &Root) -> Option<(f64, &Path)> {
        let limits = self
            .0
            .iter()
            .filter_map(|(version, directory)| Some((limit_of(root, *version, directory)?, directory.as_path())));
        limits.min_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// What the limits have done until now. A group that many share may be held back though its limit is not the smallest.
    pub fn throttled(&self, root: &Root) -> Throttling {
        Throttling::read(&self.0, |path| root.text(path))
    }

    /// Those groups that have a limit; where none has, the innermost that counts at all.
    fn counting(&self, root: &Root) -> Vec<(Version, PathBuf)> {
        let of = |is_wanted: &dyn Fn(&(Version, PathBuf)) -> bool| -> Vec<_> {
            self.0.iter().filter(|group| is_wanted(group)).cloned().collect()
        };
        let limited = of(&|(version, directory)| limit_of(root, *version, directory).is_some());
        if !limited.is_empty() {
            return limited;
        }
        // The root has such a file of version 2, too, in which nothing is counted.
        let counting = of(&|(version, directory)| {
            root.text(directory.join("cpu.stat")).is_some_and(|text| throttled(*version, &text).is_some())
        });
        counting.into_iter().take(1).collect()
    }
}

/// What limits on processor time have done to the control groups around a process until now, each by its own count, the innermost first.
/// Only the difference of two means something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Throttling(Vec<(PathBuf, Throttled)>);

impl Throttling {
    fn read(groups: &[(Version, PathBuf)], mut text: impl FnMut(&Path) -> Option<String>) -> Self {
        let count = |(version, directory): &(Version, PathBuf)| {
            Some((directory.clone(), throttled(*version, &text(&directory.join("cpu.stat"))?)?))
        };
        Self(groups.iter().filter_map(count).collect())
    }

    /// What happened since `earlier` to the group that was held back in most of its periods; `None` where none counts that. Time is summed
    /// over processors, so that a large group has much of it.
    pub fn since(&self, earlier: &Self) -> Option<Throttled> {
        self.most_since(earlier).map(|(_, held)| held)
    }

    /// The same with the directory of that group.
    pub(crate) fn most_since(&self, earlier: &Self) -> Option<(&Path, Throttled)> {
        let since = |(directory, later): &'_ (PathBuf, Throttled)| {
            let (_, before) = earlier.0.iter().find(|(known, _)| known == directory)?;
            later.since(before)
        };
        let share = |held: &Throttled| held.throttled_periods as f64 / held.periods.max(1) as f64;
        let groups = self.0.iter().filter_map(|group| Some((group.0.as_path(), since(group)?)));
        groups.max_by(|(_, one), (_, other)| {
            share(one).total_cmp(&share(other)).then(one.throttled_ns.cmp(&other.throttled_ns))
        })
    }
}

/// The limit of a group, in processors.
fn limit_of(root: &Root, version: Version, directory: &Path) -> Option<f64> {
    match version {
        Version::Two => of_max(&root.value(directory.join("cpu.max"))?),
        Version::One => {
            let quota: f64 = root.number(directory.join("cpu.cfs_quota_us"))?;
            ratio(quota, root.number(directory.join("cpu.cfs_period_us"))?)
        }
    }
}

/// `50000 100000` is half a processor, `max 100000` no limit.
fn of_max(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(char::is_whitespace)?;
    ratio(quota.parse().ok()?, period.trim().parse().ok()?)
}

/// Version 1 writes -1 for no limit.
fn ratio(quota: f64, period: f64) -> Option<f64> {
    let processors = quota / period;
    (quota > 0.0 && processors.is_finite() && processors > 0.0).then_some(processors)
}

/// Version 1 counts time in nanoseconds (`throttled_time`), version 2 in microseconds (`throttled_usec`).
fn throttled(version: Version, text: &str) -> Option<Throttled> {
    let field = |name: &str| proc::count(text, name);
    let throttled_ns = match version {
        Version::One => field("throttled_time")?,
        Version::Two => field("throttled_usec")?.checked_mul(1_000)?,
    };
    Some(Throttled { periods: field("nr_periods")?, throttled_periods: field("nr_throttled")?, throttled_ns })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::os::mounts::parse;

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

    #[test]
    fn a_file_is_read_as_it_is_now_kept_or_not() {
        let place = tempfile::tempdir().unwrap();
        let mut files = KeptFiles::new(Root::at(place.path()));
        for (round, text) in ["7", "long ".repeat(3_000).as_str(), "", "short"].into_iter().enumerate() {
            files.begin_round();
            for name in ["kept", "not"] {
                fs::write(place.path().join(name), text).unwrap();
                assert_eq!(files.text(&format!("/{name}"), |_| name == "kept"), Some(text.into()));
            }
            assert_eq!(files.files.len(), 1, "{round}");
        }
        files.begin_round();
        files.begin_round();
        assert!(files.files.is_empty(), "what nobody reads any more is closed");
        assert_eq!(files.text("/missing", |_| true), None);
    }

    #[test]
    fn the_end_of_a_process_is_noticed_though_its_file_is_kept() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let path = format!("/proc/{}/stat", child.id());
        let mut files = KeptFiles::new(Root::default());
        files.begin_round();
        assert!(files.text(&path, |text| text.contains("sleep")).is_some());
        assert_eq!(files.files.len(), 1);
        child.kill().unwrap();
        child.wait().unwrap();
        files.begin_round();
        assert_eq!(files.text(&path, |_| true), None);
        assert!(files.files.is_empty());
    }

    #[test]
    fn no_more_files_are_kept_than_there_is_room_for() {
        let place = tempfile::tempdir().unwrap();
        let mut files = KeptFiles { max: 2, ..KeptFiles::new(Root::at(place.path())) };
        for name in ["a", "b", "c"] {
            fs::write(place.path().join(name), name).unwrap();
            assert_eq!(files.text(&format!("/{name}"), |_| true), Some(name.into()));
        }
        assert_eq!(files.files.len(), 2);
    }

    #[test]
    fn the_smallest_limit_binds_in_both_versions() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        let put = |path: &str, text: &str| {
            let path = root.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let mounts = parse("1 0 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
        put("/proc/self/cgroup", "3:cpu,cpuacct:/a/b\n0::/\n");
        let quota = Quota::of(&root, &mounts, "self");
        assert_eq!((quota.smallest(&root), quota.throttled(&root)), (None, Throttling::default()));
        put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
        put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
        put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "150000\n");
        put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
        put("/sys/fs/cgroup/cpu/a/cpu.stat", "nr_periods 4\nnr_throttled 3\nthrottled_time 200\nwait_sum 1\n");
        put("/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "200000\n");
        put("/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
        assert_eq!(quota.smallest(&root), Some((1.5, Path::new("/sys/fs/cgroup/cpu/a"))));
        let counts = |periods, throttled_periods, throttled_ns| Throttled { periods, throttled_periods, throttled_ns };
        let earlier = quota.throttled(&root);
        put("/sys/fs/cgroup/cpu/a/cpu.stat", "nr_periods 9\nnr_throttled 7\nthrottled_time 900\nwait_sum 1\n");
        put("/sys/fs/cgroup/cpu/a/b/cpu.stat", "nr_periods 9\nnr_throttled 9\nthrottled_time 999\nwait_sum 1\n");
        assert_eq!(quota.throttled(&root).since(&earlier), Some(counts(5, 4, 700)), "b did not count before");
        // A limit that is not the smallest may be used up, and a large group that is held back now and then has more time of it.
        let earlier = quota.throttled(&root);
        put("/sys/fs/cgroup/cpu/a/b/cpu.stat", "nr_periods 12\nnr_throttled 11\nthrottled_time 1500\nwait_sum 1\n");
        put("/sys/fs/cgroup/cpu/a/cpu.stat", "nr_periods 109\nnr_throttled 12\nthrottled_time 99900\nwait_sum 1\n");
        assert_eq!(quota.throttled(&root).since(&earlier), Some(counts(3, 2, 501)));
        put("/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n");
        assert_eq!(quota.counting(&root), [(Version::One, PathBuf::from("/sys/fs/cgroup/cpu/a"))]);
        for text in ["max 100000", "50000", "x y", "0 100000", "50000 0"] {
            assert_eq!(of_max(text), None, "{text}");
        }
    }
}

#[cfg(test)]
mod root_tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn reads_below_its_prefix_and_follows_links_inside_it() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        fs::create_dir_all(root.path("/sys/devices/disk")).unwrap();
        fs::write(root.path("/sys/devices/disk/size"), " 42\n").unwrap();
        fs::create_dir_all(root.path("/sys/block")).unwrap();
        symlink("../devices/disk", root.path("/sys/block/disk")).unwrap();

        assert_eq!(root.number("/sys/block/disk/size"), Some(42u64));
        assert_eq!(root.canonical("/sys/block/disk"), Some(PathBuf::from("/sys/devices/disk")));
        assert_eq!(root.names("/sys"), ["block", "devices"]);
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        fs::write(root.path("/blank"), " \n").unwrap();
        fs::write(root.path("/word"), "many\n").unwrap();

        assert_eq!(root.text("/missing"), None);
        assert_eq!(root.value("/blank"), None);
        assert_eq!(root.number::<u64>("/word"), None);
        assert_eq!(root.canonical("/missing"), None);
        assert!(root.names("/missing").is_empty());
    }
}
