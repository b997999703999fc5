//! Time for which a limit on a control group kept the process from running.

use std::path::{Path, PathBuf};

use crate::measure::os::Root;
use crate::measure::os::mounts::{self, Mount};

/// What the groups around this process count of their limits on processors.
#[derive(Debug)]
pub(super) struct Throttle(Vec<PathBuf>);

impl Throttle {
    pub(super) fn of(root: &Root) -> Self {
        let mounts = mounts::all(root);
        let groups = root.text("/proc/self/cgroup").unwrap_or_default();
        let files = groups.lines().filter_map(|line| of_group(&mounts, line)).flatten();
        Self(files.filter(|file| root.exists(file)).collect())
    }

    /// That of the group that was held back the longest; `None` where no group counts it.
    pub(super) fn read(&self, root: &Root) -> Option<u64> {
        self.0.iter().filter_map(|file| throttled_ns(&root.text(file)?)).max()
    }
}

/// The files of a group and of those around it, from a line of `/proc/self/cgroup`: `id:controllers:path`.
fn of_group(mounts: &[Mount], line: &str) -> Option<Vec<PathBuf>> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, group) = (parts.next()?, parts.next()?);
    let has = |list: &str| list.split(',').any(|name| name == "cpu");
    let mount = mounts.iter().find(|mount| match controllers {
        "" => mount.kind == "cgroup2",
        list => mount.kind == "cgroup" && has(list) && has(&mount.options),
    })?;
    let inside = Path::new(group).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let directory = mount.mount_point.join(inside);
    let levels = directory.ancestors().take_while(|level| level.starts_with(&mount.mount_point));
    Some(levels.map(|level| level.join("cpu.stat")).collect())
}

/// Version 1 counts in nanoseconds, version 2 in microseconds.
fn throttled_ns(text: &str) -> Option<u64> {
    let field = |name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    };
    field("throttled_time").or_else(|| field("throttled_usec")?.checked_mul(1_000))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_group_that_was_held_back_longest_counts_in_both_versions() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        let put = |path: &str, text: &str| {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        };
        put("/proc/self/cgroup", "3:cpu,cpuacct:/a/b\n0::/\n");
        put(
            "/proc/self/mountinfo",
            "1 0 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n2 0 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        );
        assert_eq!(Throttle::of(&root).read(&root), None);
        put("/sys/fs/cgroup/cpu/a/cpu.stat", "nr_periods 4\nnr_throttled 3\nthrottled_time 200\n");
        put("/sys/fs/cgroup/cpu/a/b/cpu.stat", "nr_periods 4\nnr_throttled 0\nthrottled_time 0\n");
        assert_eq!(Throttle::of(&root).read(&root), Some(200));
        put("/sys/fs/cgroup/unified/cpu.stat", "usage_usec 9\nthrottled_usec 7\n");
        assert_eq!(Throttle::of(&root).read(&root), Some(7_000));
    }
}
