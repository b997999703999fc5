//! What the control groups around this process limit: requests and bytes of devices, processors, memory.

use std::path::Path;

use super::cgroup::{self, Group, Version, groups, memory_groups};
use super::mounts::Mount;
use super::proc::diskstats;
use super::{Root, of_max, ratio};
use model::record::{BlockDevice, GroupLimit, Limited};

/// Limits of this process's groups on `devices`, on processors and on memory, the innermost group first. An outer group binds inner ones,
/// and a limit on another device is left out.
pub fn all(root: &Root, mounts: &[Mount], devices: &[BlockDevice]) -> Vec<GroupLimit> {
    let mut found = Vec::new();
    for group in groups(root, mounts, "self", "blkio") {
        let reader = Reader { root, group: &group, devices };
        match group.version {
            Version::Two => group.levels().for_each(|level| reader.io_of_level(level, &mut found)),
            // Version 1 throttles a group by its own limits alone, whatever groups are around it.
            Version::One => reader.throttle(&mut found),
        }
    }
    for group in groups(root, mounts, "self", "cpu") {
        let reader = Reader { root, group: &group, devices };
        group.levels().for_each(|level| found.extend(reader.processors(level)));
    }
    for group in memory_groups(root, mounts, "self") {
        let reader = Reader { root, group: &group, devices };
        group.levels().for_each(|level| found.extend(reader.memory(level)));
    }
    found
}

/// Limits per second of `io.max`.
const MOST: [(&str, Limited); 4] = [
    ("riops", Limited::ReadsPerS),
    ("wiops", Limited::WritesPerS),
    ("rbps", Limited::ReadBytesPerS),
    ("wbps", Limited::WriteBytesPerS),
];
/// The same in version 1, a file each.
const THROTTLE: [(&str, Limited); 4] = [
    ("blkio.throttle.read_iops_device", Limited::ReadsPerS),
    ("blkio.throttle.write_iops_device", Limited::WritesPerS),
    ("blkio.throttle.read_bps_device", Limited::ReadBytesPerS),
    ("blkio.throttle.write_bps_device", Limited::WriteBytesPerS),
];

struct Reader<'a> {
    root: &'a Root,
    group: &'a Group,
    devices: &'a [BlockDevice],
}

impl Reader<'_> {
    fn io_of_level(&self, level: &Path, found: &mut Vec<GroupLimit>) {
        for (device, words) in self.lines(level, "io.max") {
            let limits = MOST.iter().filter_map(|(key, what)| Some((*what, value(&words, key)?)));
            found.extend(limits.map(|(what, value)| self.limit(level, "io.max", Some(&device), what, value)));
        }
        for (device, words) in self.lines(level, "io.latency") {
            // In microseconds.
            let target = value(&words, "target").map(|micros| micros * 1e3);
            found.extend(target.map(|ns| self.limit(level, "io.latency", Some(&device), Limited::LatencyNs, ns)));
        }
        for (device, words) in self.lines(level, "io.cost.qos") {
            let most = value(&words, "max").filter(|_| value(&words, "enable") == Some(1.0));
            let of = |percent| self.limit(level, "io.cost.qos", Some(&device), Limited::CostPercent, percent);
            found.extend(most.map(of));
        }
    }

    fn throttle(&self, found: &mut Vec<GroupLimit>) {
        let level = &self.group.directory;
        for (file, what) in THROTTLE {
            for (device, words) in self.lines(level, file) {
                let most = words.parse().ok().filter(|most: &f64| *most > 0.0);
                found.extend(most.map(|most| self.limit(level, file, Some(&device), what, most)));
            }
        }
    }

    fn processors(&self, level: &Path) -> Option<GroupLimit> {
        let (file, processors) = match self.group.version {
            Version::Two => ("cpu.max", of_max(&self.root.value(level.join("cpu.max"))?)?),
            Version::One => {
                let quota: f64 = self.root.number(level.join("cpu.cfs_quota_us"))?;
                ("cpu.cfs_quota_us", ratio(quota, self.root.number(level.join("cpu.cfs_period_us"))?)?)
            }
        };
        Some(self.limit(level, file, None, Limited::Processors, processors))
    }

    fn memory(&self, level: &Path) -> Option<GroupLimit> {
        let file = self.group.version.limit_file();
        let bytes = cgroup::limit(&self.root.value(level.join(file))?)?;
        Some(self.limit(level, file, None, Limited::MemoryBytes, bytes as f64))
    }

    fn limit(&self, level: &Path, file: &str, device: Option<&str>, what: Limited, value: f64) -> GroupLimit {
        let below = level.strip_prefix(&self.group.top).unwrap_or(level);
        GroupLimit {
            group: format!("/{}", below.display()),
            file: file.to_owned(),
            device: device.map(str::to_owned),
            what,
            value,
        }
    }

    /// Lines of a file that begin with the number of one of the devices: its name, and what follows.
    fn lines(&self, level: &Path, file: &str) -> Vec<(String, String)> {
        let text = self.root.text(level.join(file)).unwrap_or_default();
        let line = |line: &str| {
            let (number, words) = line.trim().split_once(' ')?;
            Some((self.device(number)?, words.trim().to_owned()))
        };
        text.lines().filter_map(line).collect()
    }

    /// The name of the device with this number, if it is one of those that are asked about.
    fn device(&self, number: &str) -> Option<String> {
        let by_link = self.root.canonical(Path::new("/sys/dev/block").join(number));
        let name = match by_link.as_deref().and_then(Path::file_name) {
            Some(name) => name.to_string_lossy().replace('!', "/"),
            None => {
                let text = self.root.text("/proc/diskstats").unwrap_or_default();
                let number = number.parse().ok()?;
                diskstats(&text).find(|row| row.number == number)?.name.to_owned()
            }
        };
        self.devices.iter().any(|device| device.name == name).then_some(name)
    }
}

/// The number after `key=`; `None` for `max`, which limits nothing.
fn value(words: &str, key: &str) -> Option<f64> {
    let text = words.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))?;
    text.parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::os::mounts::parse;

    const V2: &str = "1 0 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    const V1: &str = "1 0 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                      2 0 0:27 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
                      3 0 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    const DISKSTATS: (&str, &str) = (
        "/proc/diskstats",
        "259 1 nvme1n1 1 0 16 1 0 0 0 0 0 1 1\n252 0 dm-0 1 0 16 1 0 0 0 0 0 1 1\n8 0 sda 1 0 16 1 0 0 0 0 0 1 1\n",
    );

    fn limits_of(groups: &str, mounts: &str, files: &[(&str, &str)], devices: &[&str]) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        for (path, text) in files.iter().chain(&[("/proc/self/cgroup", groups), DISKSTATS]) {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        }
        let device = |name: &&str| BlockDevice { name: (*name).to_owned(), ..BlockDevice::default() };
        let devices: Vec<BlockDevice> = devices.iter().map(device).collect();
        all(&root, &parse(mounts), &devices).iter().map(GroupLimit::words).collect()
    }

    #[test]
    fn limits_of_the_own_group_and_of_those_above_are_found_for_the_disks_below_too() {
        let files = [
            ("/sys/fs/cgroup/system.slice/run.service/io.max", "259:1 rbps=max wbps=max riops=300 wiops=max\n"),
            ("/sys/fs/cgroup/system.slice/io.max", "259:1 rbps=2000000 wbps=max riops=max wiops=max\n8:0 riops=1\n"),
            ("/sys/fs/cgroup/system.slice/run.service/io.latency", "252:0 target=75000\n"),
            ("/sys/fs/cgroup/io.cost.qos", "259:1 enable=1 ctrl=user rpct=95 rlat=1 wpct=95 wlat=1 min=50 max=150\n"),
            ("/sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n"),
            ("/sys/fs/cgroup/system.slice/run.service/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/system.slice/memory.max", "2147483648\n"),
            ("/sys/fs/cgroup/other/io.max", "259:1 riops=1\n"),
        ];
        assert_eq!(
            limits_of("0::/system.slice/run.service\n", V2, &files, &["dm-0", "nvme1n1"]),
            [
                "`io.max` of `/system.slice/run.service` caps nvme1n1 at 300 reads/s",
                "`io.latency` of `/system.slice/run.service` slows other groups on dm-0 until requests of this one take 75.0 ms",
                "`io.max` of `/system.slice` caps nvme1n1 at 2 MB/s of reads",
                "`io.cost.qos` of `/` slows requests to nvme1n1 to 150 % of the kernel's model",
                "`cpu.max` of `/system.slice` leaves 1.50 processors",
                "`memory.max` of `/system.slice` leaves 2 GiB of memory",
            ]
        );
    }

    #[test]
    fn a_container_finds_the_limits_of_its_own_group_where_it_sees_it() {
        let mounted = "1 0 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
        let files = [("/sys/fs/cgroup/io.max", "8:0 rbps=max wbps=max riops=max wiops=120\n")];
        for (own, mounts) in [("0::/docker/abc\n", mounted), ("0::/\n", V2), ("0::/../elsewhere\n", V2)] {
            assert_eq!(limits_of(own, mounts, &files, &["sda"]), ["`io.max` of `/` caps sda at 120 writes/s"], "{own}");
        }
    }

    #[test]
    fn version_one_has_a_file_for_each_limit_and_outer_groups_do_not_bind() {
        let files = [
            ("/sys/fs/cgroup/blkio/a/b/blkio.throttle.read_iops_device", "8:0 500\n"),
            ("/sys/fs/cgroup/blkio/a/b/blkio.throttle.write_bps_device", "259:1 1000000\n"),
            ("/sys/fs/cgroup/blkio/a/blkio.throttle.read_iops_device", "8:0 100\n"),
            ("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n"),
            ("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"),
        ];
        let own = "7:blkio:/a/b\n3:cpu,cpuacct:/a/b\n0::/\n";
        assert_eq!(
            limits_of(own, V1, &files, &["sda"]),
            [
                "`blkio.throttle.read_iops_device` of `/a/b` caps sda at 500 reads/s",
                "`cpu.cfs_quota_us` of `/a` leaves 0.50 processors"
            ]
        );
    }

    #[test]
    fn what_limits_nothing_or_cannot_be_read_is_no_limit() {
        let files = [
            ("/sys/fs/cgroup/a/io.max", "8:0 rbps=max wbps=max riops=max wiops=max\nnonsense\n8:0\n"),
            ("/sys/fs/cgroup/a/io.cost.qos", "8:0 enable=0 ctrl=auto min=1.00 max=10000.00\n"),
            ("/sys/fs/cgroup/a/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/memory.max", "max\n"),
        ];
        assert!(limits_of("0::/a\n", V2, &files, &["sda"]).is_empty());
        assert!(limits_of("", V2, &files, &["sda"]).is_empty());
    }
}
