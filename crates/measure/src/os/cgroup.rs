//! The control groups that limit the memory and the processors of a process.

use std::path::{Component, Path, PathBuf};

use super::Root;
use super::mounts::Mount;

/// Version 1 prints the largest page-aligned number for "no limit"; no machine comes near half of it.
const NO_LIMIT_BYTES: u64 = 1 << 62;

/// The smallest memory limit from the process's own group up to the top of what is mounted; a limit of an outer group
/// binds the inner ones. Knows version 2, version 1 and both side by side.
pub fn memory_limit_bytes(root: &Root, mounts: &[Mount]) -> Option<u64> {
    memory_groups(root, mounts, "self").iter().filter_map(|group| group.limit_bytes(root)).min()
}

/// Version of the kernel's interface to control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// A tree for each controller.
    One,
    /// One tree for all.
    Two,
}

impl Version {
    /// Name of the file that holds a group's memory limit.
    pub const fn limit_file(self) -> &'static str {
        match self {
            Self::One => "memory.limit_in_bytes",
            Self::Two => "memory.max",
        }
    }

    /// Name of the file that counts the processes of a group which the kernel killed for its memory.
    pub const fn kills_file(self) -> &'static str {
        match self {
            Self::One => "memory.oom_control",
            Self::Two => "memory.events",
        }
    }
}

/// That count, from the text of [`Version::kills_file`]: `oom_kill` in both versions (Linux 4.13 and later).
pub fn oom_kills(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// A group that may limit its processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The interface that it is seen through.
    pub version: Version,
    /// Where its tree is mounted.
    pub top: PathBuf,
    /// Its directory, at or below the top.
    pub directory: PathBuf,
}

impl Group {
    /// Its directory and those of the groups around it up to the top.
    pub fn levels(&self) -> impl Iterator<Item = &Path> {
        self.directory.ancestors().take_while(|level| level.starts_with(&self.top))
    }

    /// The smallest limit on memory of the group and of those around it; `None` without any.
    pub fn limit_bytes(&self, root: &Root) -> Option<u64> {
        self.levels().filter_map(|level| limit(&root.value(level.join(self.version.limit_file()))?)).min()
    }
}

/// The groups that may limit the memory of `process`, a number or `self`: with both versions side by side the one of
/// version 1 comes first, for a controller that is mounted there is not in the tree of version 2.
pub fn memory_groups(root: &Root, mounts: &[Mount], process: &str) -> Vec<Group> {
    groups(root, mounts, process, "memory")
}

/// The same for another controller.
pub fn groups(root: &Root, mounts: &[Mount], process: &str, controller: &str) -> Vec<Group> {
    let text = root.text(format!("/proc/{process}/cgroup")).unwrap_or_default();
    let mut groups: Vec<Group> = text.lines().filter_map(|line| group(mounts, line, controller)).collect();
    groups.sort_by_key(|group| group.version == Version::Two);
    groups
}

/// From a line of `/proc/PID/cgroup`: `id:controllers:path`.
fn group(mounts: &[Mount], line: &str, controller: &str) -> Option<Group> {
    let (_, rest) = line.split_once(':')?;
    let (controllers, path) = rest.split_once(':')?;
    let (version, kind) = match controllers {
        "" => (Version::Two, "cgroup2"),
        _ if controllers.split(',').any(|name| name == controller) => (Version::One, "cgroup"),
        _ => return None,
    };
    let has_it = |mount: &&Mount| version == Version::Two || mount.options.split(',').any(|name| name == controller);
    let mount = mounts.iter().filter(|mount| mount.kind == kind).find(has_it)?;
    Some(Group { version, top: mount.mount_point.clone(), directory: directory(mount, Path::new(path)) })
}

/// Where `group` is seen. A container often sees its own group mounted at the top, under a name that only the host
/// knows, or a path that climbs out of its namespace: the top is the best guess then.
fn directory(mount: &Mount, group: &Path) -> PathBuf {
    let inside = group.strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let climbs = inside.components().any(|part| !matches!(part, Component::Normal(_)));
    if climbs { mount.mount_point.clone() } else { mount.mount_point.join(inside) }
}

/// Bytes of a limit; `None` where there is none.
pub(super) fn limit(text: &str) -> Option<u64> {
    text.parse().ok().filter(|bytes| *bytes < NO_LIMIT_BYTES)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::os::mounts::parse;

    fn limit_of(groups: &str, mounts: &str, limits: &[(&str, &str)]) -> Option<u64> {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        for (path, text) in limits.iter().chain(&[("/proc/self/cgroup", groups)]) {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        }
        memory_limit_bytes(&root, &parse(mounts))
    }

    const V2: &str = "1 0 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    const V1: &str = "1 0 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      2 0 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

    #[test]
    fn kills_are_counted_in_both_versions() {
        assert_eq!(oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), Some(3));
        assert_eq!(oom_kills("low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 0\n"), Some(1));
        assert_eq!(oom_kills("oom_kill_disable 0\nunder_oom 0\n"), None);
    }

    #[test]
    fn an_outer_group_binds_an_inner_one() {
        let limits = [
            ("/sys/fs/cgroup/user.slice/app.scope/memory.max", "8000\n"),
            ("/sys/fs/cgroup/user.slice/memory.max", "5000\n"),
            ("/sys/fs/cgroup/other/memory.max", "1\n"),
        ];
        assert_eq!(limit_of("0::/user.slice/app.scope\n", V2, &limits), Some(5_000));
    }

    #[test]
    fn no_limit_is_unknown_in_both_versions() {
        assert_eq!(limit_of("0::/a\n", V2, &[("/sys/fs/cgroup/a/memory.max", "max\n")]), None);
        let limits = [("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n")];
        assert_eq!(limit_of("4:cpu,memory:/a\n", V1, &limits), None);
        assert_eq!(limit_of("", V2, &[]), None);
    }

    #[test]
    fn version_one_is_read_where_its_memory_controller_is_mounted() {
        let limits = [
            ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096\n"),
            ("/sys/fs/cgroup/cpu/a/memory.limit_in_bytes", "1\n"),
        ];
        assert_eq!(limit_of("5:cpu:/a\n4:memory:/a\n0::/\n", V1, &limits), Some(4_096));
    }

    #[test]
    fn a_container_sees_its_own_group_at_the_top() {
        let mounted_inside = "1 0 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let limits = [("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n")];
        assert_eq!(limit_of("4:memory:/docker/abc\n", mounted_inside, &limits), Some(4_096));
        assert_eq!(limit_of("4:memory:/elsewhere\n", mounted_inside, &limits), Some(4_096));
        assert_eq!(limit_of("0::/../../x\n", V2, &[("/sys/fs/cgroup/memory.max", "77\n")]), Some(77));
    }
}
