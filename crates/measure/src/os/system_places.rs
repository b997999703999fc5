//! Places where no file belongs: those of devices and of the kernel, and what the system keeps in memory.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use super::Root;
use super::mounts::{self, ResolvedPath};

/// Directories of devices, of the kernel, and of programs that run; the inner ones first.
const DIRECTORIES: [&str; 5] = ["/dev/shm", "/dev", "/proc", "/sys", "/run"];
/// File systems that the kernel makes up, wherever they are mounted.
const OF_THE_KERNEL: [&str; 15] = [
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "mqueue",
    "proc",
    "pstore",
    "securityfs",
    "sysfs",
    "tracefs",
];
/// File systems in memory: a disk that is mounted below one of [`DIRECTORIES`] has none of them.
const IN_MEMORY: [&str; 2] = ["ramfs", "tmpfs"];
/// As many links as the kernel follows.
const MAX_LINKS: usize = 40;

/// The directory of devices, of the kernel or of what the system keeps in memory in which a file called `path` would be created;
/// `None` where files belong. Links and `..` are followed as the kernel follows them, whether or not anything is there.
pub fn system_place(root: &Root, path: &Path) -> Option<PathBuf> {
    let real = destination(root, path)?;
    let below = DIRECTORIES.into_iter().map(Path::new).find(|directory| real.starts_with(directory));
    let mounts = mounts::all(root);
    let mount = ResolvedPath::nearest(root, &real).and_then(|it| mounts::holding(&mounts, &real, it.device));
    match mount {
        Some(mount) if OF_THE_KERNEL.contains(&mount.kind.as_str()) => {
            Some(below.map_or_else(|| mount.mount_point.clone(), Path::to_owned))
        }
        // Such as a disk that a desktop mounted below /run/media.
        Some(mount)
            if !IN_MEMORY.contains(&mount.kind.as_str())
                && below.is_some_and(|below| is_inside(&mount.mount_point, below)) =>
        {
            None
        }
        _ => below.map(Path::to_owned),
    }
}

fn is_inside(path: &Path, directory: &Path) -> bool {
    path != directory && path.starts_with(directory)
}

/// Where a path leads, without links; none where links lead round in a circle, so that nothing can be created.
fn destination(root: &Root, path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    let parts = |path: &Path| path.components().map(|part| part.as_os_str().to_owned()).collect::<Vec<OsString>>();
    let mut left: VecDeque<OsString> = parts(&absolute).into();
    let (mut real, mut links) = (PathBuf::from("/"), 0);
    while let Some(part) = left.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::RootDir) => real = PathBuf::from("/"),
            Some(Component::ParentDir) => {
                real.pop();
            }
            Some(Component::Normal(name)) => match root.path(real.join(name)).read_link() {
                Ok(target) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return None;
                    }
                    parts(&target).into_iter().rev().for_each(|part| left.push_front(part));
                }
                Err(_) => real.push(name),
            },
            _ => {}
        }
    }
    Some(real)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const MOUNTS: &str = "\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
23 22 0:5 / /dev rw - devtmpfs udev rw
24 23 0:26 / /dev/shm rw - tmpfs tmpfs rw
25 22 0:22 / /proc rw - proc proc rw
26 22 0:25 / /run rw - tmpfs tmpfs rw
27 26 8:17 / /run/media/me/disk rw - ext4 /dev/sdb1 rw
28 22 0:5 / /srv/guest/dev rw - devtmpfs udev rw
29 22 0:30 / /data rw - tmpfs tmpfs rw
";

    /// A machine of its own, with links that lead where devices are.
    fn machine() -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        for path in ["dev/shm", "proc/self", "sys/block", "run/media/me/disk", "srv/guest/dev", "data/sub", "var"] {
            fs::create_dir_all(directory.path().join(path)).unwrap();
        }
        fs::write(root.path("/proc/self/mountinfo"), MOUNTS).unwrap();
        let link = |to: &str, name: &str| symlink(to, root.path(name)).unwrap();
        link("/run", "/var/run");
        link("/dev", "/data/devices");
        link("../../dev/sdq", "/data/sub/dangling");
        link("one", "/data/two");
        link("two", "/data/one");
        (directory, root)
    }

    #[test]
    fn a_name_that_leads_among_devices_is_known_by_whatever_way() {
        let (_directory, root) = machine();
        for (path, place) in [
            ("/dev/sdq", "/dev"),
            ("/dev/new/sdq", "/dev"),
            ("/dev/shm/file", "/dev/shm"),
            ("/dev/shm/../sdq", "/dev"),
            ("/data/../dev/sdq", "/dev"),
            ("/data/nothing/../../dev/sdq", "/dev"),
            ("//dev//./sdq", "/dev"),
            ("/data/devices/sdq", "/dev"),
            ("/data/sub/dangling", "/dev"),
            ("/proc/sys/new", "/proc"),
            ("/sys/block/sdq", "/sys"),
            ("/run/file", "/run"),
            ("/var/run/file", "/run"),
            ("/srv/guest/dev/sdq", "/srv/guest/dev"),
        ] {
            assert_eq!(system_place(&root, Path::new(path)).as_deref(), Some(Path::new(place)), "{path}");
        }
    }

    #[test]
    fn files_may_be_made_elsewhere_and_on_disks_that_are_mounted_there() {
        let (_directory, root) = machine();
        for path in
            ["/data/file", "/device/file", "/run/media/me/disk/file", "/dev/../data/file", "/data/one/file", "/"]
        {
            assert_eq!(system_place(&root, Path::new(path)), None, "{path}");
        }
    }
}
