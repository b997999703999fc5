//! A memory control group for a private server, so that the page cache cannot hide the device from it.
//!
//! All memory that the server's processes touch first is charged to the group: its buffers, the processes' own, and the page
//! cache of the files that they read. The kernel takes page cache away to stay below the limit.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use super::{PrivateError, is_alive};
use measure::os::cgroup::{self, Group, Version};
use measure::os::{Root, mounts};
use model::units::Bytes;

const PREFIX: &str = "plimsoll-";
/// A group that we have made, for one server. It is removed when the value is dropped, if nobody is in it any more.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    directory: PathBuf,
    version: Version,
}

impl MemoryLimit {
    /// Makes a group of `limit` inside the one that this process is in, or beside it where processes and inner groups may not
    /// be mixed. Nobody is in it yet.
    ///
    /// # Errors
    /// When that is not allowed here.
    pub(crate) fn make(limit: Bytes) -> Result<Self, PrivateError> {
        Self::make_under(&Root::default(), limit)
    }

    fn make_under(root: &Root, limit: Bytes) -> Result<Self, PrivateError> {
        let groups = cgroup::memory_groups(root, &mounts::all(root), "self");
        // The nearest place is the right one, so what stands against that is what is reported.
        let mut refused = None;
        for group in &groups {
            for parent in group.levels().filter(|level| may_have_inner(root, group.version, level)) {
                match Self::make_in(root, parent, group.version, limit) {
                    Ok(made) => return Ok(made),
                    Err((action, path, error)) => {
                        refused.get_or_insert_with(|| format!("cannot {action} `{}`: {error}", path.display()));
                    }
                }
            }
        }
        let refused = refused.unwrap_or_else(|| "no control group here passes on control of memory".to_owned());
        Err(PrivateError::Unfit {
            what: format!("the server's memory cannot be limited to {limit}: {refused}"),
            hint: Some(
                "run as root, or in a control group of your own: `systemd-run --user --scope -p Delegate=yes plimsoll …`; \
                 without `--host-memory` the page cache may hide the device"
                    .to_owned(),
            ),
        })
    }

    fn make_in(
        root: &Root,
        parent: &Path,
        version: Version,
        limit: Bytes,
    ) -> Result<Self, (&'static str, PathBuf, io::Error)> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        sweep(root, parent);
        let name = format!("{PREFIX}{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let directory = root.path(parent.join(name));
        files::kernel::make_directory(&directory).map_err(|error| ("create", directory.clone(), error))?;
        let made = Self { directory, version };
        let set = |file: &str, value: &str| {
            let path = made.directory.join(file);
            set_limit(&path, value).map_err(|error| ("write", path, error))
        };
        let bytes = rounded(limit).0.to_string();
        set(version.limit_file(), &bytes)?;
        // Swapped buffers would be read from a device as data are. A kernel that does not count swap has no such file.
        let swap: &[(&str, &str)] = match version {
            Version::One => &[("memory.memsw.limit_in_bytes", bytes.as_str()), ("memory.swappiness", "0")],
            Version::Two => &[("memory.swap.max", "0")],
        };
        if let Some((file, value)) = swap.iter().find(|(file, _)| made.directory.join(file).exists()) {
            set(file, value)?;
        }
        Ok(made)
    }

    /// Puts a process in it, and all that this process starts from now on.
    ///
    /// # Errors
    /// When that is not allowed.
    pub(crate) fn admit(&self, pid: u32) -> Result<(), PrivateError> {
        let path = self.directory.join("cgroup.procs");
        files::kernel::set(&path, &pid.to_string()).map_err(|source| PrivateError::Unfit {
            what: format!("the server cannot be moved to its control group by `{}`: {source}", path.display()),
            hint: Some("run as root, or do without `--host-memory`".to_owned()),
        })
    }

    /// Leaves the group as it is, for a server that goes on running.
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }

    /// The group that was made for a server that runs, to be removed with this value; none if it is in somebody else's.
    pub(crate) fn take_over(pid: u32) -> Option<Self> {
        let root = Root::default();
        let groups = cgroup::memory_groups(&root, &mounts::all(&root), &pid.to_string());
        let is_ours =
            |group: &Group| group.directory.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        let group = groups.into_iter().find(is_ours)?;
        Some(Self { directory: group.directory, version: group.version })
    }

    /// Its directory.
    #[cfg(test)]
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    fn limit(&self) -> Option<Bytes> {
        let text = fs::read_to_string(self.directory.join(self.version.limit_file())).ok()?;
        text.trim().parse().ok().map(Bytes)
    }
}

/// The kernel makes a group's files with its directory; in the tree of a test nobody does.
fn set_limit(path: &Path, value: &str) -> io::Result<()> {
    #[cfg(test)]
    if !path.starts_with("/sys") {
        fs::write(path, "")?;
    }
    files::kernel::set(path, value)
}

/// A limit as it is given to the kernel, which counts in pages; none are larger than this on any machine.
fn rounded(limit: Bytes) -> Bytes {
    Bytes(limit.0 - limit.0 % (64 << 10))
}

/// The limit that was made for a server that runs; none if it has none or it cannot be read.
pub(crate) fn limit_of(pid: u32) -> Option<Bytes> {
    let group = MemoryLimit::take_over(pid)?;
    let limit = group.limit();
    group.keep();
    limit
}

/// Whether a server that runs is held to `limit`.
pub(crate) fn is_held_to(pid: u32, limit: Bytes) -> bool {
    limit_of(pid) == Some(rounded(limit))
}

/// What the kernel does to the processes of a server's group that needs more than its limit.
#[derive(Debug)]
pub(crate) struct MemoryKills {
    file: PathBuf,
    limit: Bytes,
    before: u64,
}

impl MemoryKills {
    /// From now on, of a server that runs in a group that was made for it.
    pub(crate) fn watch(pid: u32) -> Option<Self> {
        let group = MemoryLimit::take_over(pid)?;
        let (file, limit) = (group.directory.join(group.version.kills_file()), group.limit());
        group.keep();
        let watched = Self { file, limit: limit?, before: 0 };
        let before = watched.count()?;
        Some(Self { before, ..watched })
    }

    fn count(&self) -> Option<u64> {
        cgroup::oom_kills(&fs::read_to_string(&self.file).ok()?)
    }

    /// The limit in which processes were killed, if any were.
    pub(crate) fn limit_that_killed(&self) -> Option<Bytes> {
        (self.count()? > self.before).then_some(self.limit)
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // The kernel needs a moment to forget processes that have ended.
        let begun = Instant::now();
        while files::kernel::remove_directory(&self.directory)
            .is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
            && begun.elapsed() < Duration::from_secs(2)
        {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The smallest limit of memory that binds a process: of its group or of one around it.
pub(crate) fn effective_limit(pid: u32) -> Option<Bytes> {
    let root = Root::default();
    let groups = cgroup::memory_groups(&root, &mounts::all(&root), &pid.to_string());
    groups.iter().filter_map(|group| group.limit_bytes(&root)).min().map(Bytes)
}

/// Whether a group may have inner groups with limits of their own. In version 2 it passes controllers on only where
/// somebody said so, and only the topmost of the machine may do that while it has processes itself.
fn may_have_inner(root: &Root, version: Version, group: &Path) -> bool {
    let passed_on =
        |file| root.text(group.join(file)).is_some_and(|text| text.split_whitespace().any(|c| c == "memory"));
    match version {
        Version::One => true,
        Version::Two => passed_on("cgroup.subtree_control"),
    }
}

/// Removes groups that commands left which were killed. The kernel removes none that has processes.
fn sweep(root: &Root, parent: &Path) {
    for name in root.names(parent) {
        let maker = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse().ok());
        if maker.is_some_and(|pid| !is_alive(pid)) {
            let _ = files::kernel::remove_directory(&root.path(parent.join(name)));
        }
    }
}

#[cfg(test)]
mod tests {
    use targets::DatabaseError as _;

    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        for (path, text) in files {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        }
        (directory, root)
    }

    const V2_MOUNT: (&str, &str) = ("/proc/self/mountinfo", "1 0 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");

    #[test]
    fn in_version_2_the_group_is_made_where_memory_is_passed_on() {
        let (_directory, root) = tree(&[
            V2_MOUNT,
            ("/proc/self/cgroup", "0::/user.slice/app.slice/shell.scope\n"),
            ("/sys/fs/cgroup/user.slice/app.slice/shell.scope/cgroup.subtree_control", "\n"),
            ("/sys/fs/cgroup/user.slice/app.slice/cgroup.subtree_control", "cpu memory pids\n"),
        ]);
        let stale = root.path("/sys/fs/cgroup/user.slice/app.slice/plimsoll-4194999-0");
        fs::create_dir(&stale).unwrap();
        let made = MemoryLimit::make_under(&root, Bytes::mib(256)).unwrap();
        assert_eq!(made.directory.parent().unwrap(), root.path("/sys/fs/cgroup/user.slice/app.slice"));
        assert_eq!(made.limit(), Some(Bytes::mib(256)));
        assert!(!stale.exists(), "what a killed command left is swept away");
        made.keep();
    }

    #[test]
    fn where_no_group_can_be_made_the_error_says_so_and_names_the_cure() {
        let (_directory, root) =
            tree(&[V2_MOUNT, ("/proc/self/cgroup", "0::/app\n"), ("/sys/fs/cgroup/app/cgroup.subtree_control", "")]);
        let error = MemoryLimit::make_under(&root, Bytes::mib(256)).unwrap_err();
        let reported = format!("{error}; {}", error.hint().unwrap());
        assert!(reported.contains("256 MiB") && reported.contains("systemd-run"), "{reported}");
    }
}
