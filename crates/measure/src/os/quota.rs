//! The limit that control groups put on processor time, in both versions of the interface.

use std::path::{Path, PathBuf};

use super::cgroup::{Group, Version, groups};
use super::mounts::Mount;
use super::proc;
use super::root::Root;
use model::record::Throttled;

/// The control groups around this process that may limit its processors, the innermost first.
#[derive(Debug)]
pub(crate) struct Quota(Vec<(Version, PathBuf)>);

impl Quota {
    pub(crate) fn of(root: &Root, mounts: &[Mount]) -> Self {
        let found: Vec<Group> = groups(root, mounts, "self", "cpu");
        let levels = |group: &Group| -> Vec<(Version, PathBuf)> {
            group.levels().map(|level| (group.version, level.to_owned())).collect()
        };
        Self(found.iter().flat_map(levels).collect())
    }

    /// The smallest limit, in processors.
    pub(crate) fn processors(&self, root: &Root) -> Option<f64> {
        self.binding(root).map(|(processors, ..)| processors)
    }

    /// What the smallest limit did; where there is none, what the innermost group that counts at all says.
    pub(crate) fn throttled(&self, root: &Root) -> Option<Throttled> {
        let counts = |level: &(Version, PathBuf)| throttled(level.0, &root.text(level.1.join("cpu.stat"))?);
        match self.binding(root) {
            Some((_, version, directory)) => counts(&(version, directory.to_owned())),
            None => self.0.iter().find_map(counts),
        }
    }

    fn binding(&self, root: &Root) -> Option<(f64, Version, &Path)> {
        let limits = self.0.iter().filter_map(|(version, directory)| {
            let processors = match version {
                Version::Two => of_max(&root.value(directory.join("cpu.max"))?)?,
                Version::One => {
                    let quota: f64 = root.number(directory.join("cpu.cfs_quota_us"))?;
                    ratio(quota, root.number(directory.join("cpu.cfs_period_us"))?)?
                }
            };
            Some((processors, *version, directory.as_path()))
        });
        limits.min_by(|a, b| a.0.total_cmp(&b.0))
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
        let quota = Quota::of(&root, &mounts);
        assert_eq!((quota.processors(&root), quota.throttled(&root)), (None, None));
        put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
        put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
        put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "150000\n");
        put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
        put("/sys/fs/cgroup/cpu/a/cpu.stat", "nr_periods 4\nnr_throttled 3\nthrottled_time 200\nwait_sum 1\n");
        put("/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "200000\n");
        put("/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
        assert_eq!(quota.processors(&root), Some(1.5));
        let seen = Throttled { periods: 4, throttled_periods: 3, throttled_ns: 200 };
        assert_eq!(quota.throttled(&root), Some(seen));
        for text in ["max 100000", "50000", "x y", "0 100000", "50000 0"] {
            assert_eq!(of_max(text), None, "{text}");
        }
    }
}
