//! Other processes that have a file or device locked or open for writing, as far as `/proc` shows them.

use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;

use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};

use measure::os::Root;

/// Another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// Name of its program; unknown where it has ended since.
    pub name: Option<String>,
}

impl Process {
    pub(super) fn find(root: &Root, id: u32) -> Self {
        Self { id, name: root.value(format!("/proc/{id}/comm")) }
    }

    /// Whether it runs the program that this process runs. Its name says less: a child has the name of the thread that began it.
    pub(super) fn is_own_program(&self, root: &Root) -> bool {
        let program = |id: &dyn fmt::Display| fs::read_link(root.path(format!("/proc/{id}/exe"))).ok();
        program(&self.id).is_some_and(|theirs| program(&"self") == Some(theirs))
    }

    /// Whether it is a child of this process that has not begun its own program yet: what it has open is what we have.
    fn is_still_us(&self, root: &Root) -> bool {
        let status = root.text(format!("/proc/{}/status", self.id)).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
        let command = |id: &dyn fmt::Display| root.text(format!("/proc/{id}/cmdline"));
        parent == Some(std::process::id()) && self.is_own_program(root) && command(&self.id) == command(&"self")
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "process {} (`{name}`)", self.id),
            None => write!(f, "process {}", self.id),
        }
    }
}

/// The three ways in which the kernel locks files, as `/proc` calls them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockType {
    Flock,
    Fcntl,
    OpenFileDescription,
}

impl LockType {
    const fn word(self) -> &'static str {
        match self {
            Self::Flock => "FLOCK",
            Self::Fcntl => "POSIX",
            Self::OpenFileDescription => "OFDLCK",
        }
    }

    /// Its name in messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Flock => "flock",
            Self::Fcntl => "fcntl",
            Self::OpenFileDescription => "an open-file-description lock",
        }
    }
}

/// By what a file or device is known whatever its path is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Identity {
    /// Device of the file system, and inode.
    File(u64, u64),
    /// Numbers of a device and of those that overlap it.
    Devices(Vec<u64>),
}

impl Identity {
    pub(super) fn of_file(metadata: &Metadata) -> Self {
        Self::File(metadata.dev(), metadata.ino())
    }
}

/// A process that has one of the files or devices open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holder {
    /// Which of those that were looked for.
    pub(super) index: usize,
    pub(super) process: Process,
    pub(super) writes: bool,
    locks: Vec<String>,
}

impl Holder {
    pub(super) fn has_lock(&self, lock: LockType) -> bool {
        self.locks.iter().any(|word| word == lock.word())
    }
}

/// Processes other than this one that have one of `wanted` open for writing, or locked through what they have open. Those of other
/// users are seen by root alone.
pub(super) fn holders(root: &Root, wanted: &[Identity]) -> Vec<Holder> {
    let own = std::process::id();
    let others = root.names("/proc").into_iter().filter_map(|name| name.parse().ok()).filter(|id| *id != own);
    let mut found: Vec<Holder> = Vec::new();
    for id in others {
        for fd in root.names(format!("/proc/{id}/fdinfo")) {
            let Some(info) = root.text(format!("/proc/{id}/fdinfo/{fd}")).and_then(|text| OpenFile::read(&text)) else {
                continue;
            };
            if (!info.writes && info.locks.is_empty()) || info.inode.is_some_and(|inode| !may_be_of(inode, wanted)) {
                continue;
            }
            if let Some(index) = which(root, &format!("/proc/{id}/fd/{fd}"), wanted) {
                add(&mut found, root, (index, id), info.writes, info.locks);
            }
        }
        // A file that is mapped needs no descriptor any more.
        for range in written_ranges(&root.text(format!("/proc/{id}/maps")).unwrap_or_default(), wanted) {
            if let Some(index) = which(root, &format!("/proc/{id}/map_files/{range}"), wanted) {
                add(&mut found, root, (index, id), true, Vec::new());
            }
        }
    }
    found.retain(|holder| !holder.process.is_still_us(root));
    found
}

/// Adds what a process does with one of the files to what is known of it.
fn add(found: &mut Vec<Holder>, root: &Root, (index, id): (usize, u32), writes: bool, locks: Vec<String>) {
    match found.iter_mut().find(|holder| holder.process.id == id && holder.index == index) {
        Some(holder) => {
            holder.writes |= writes;
            holder.locks.extend(locks);
        }
        None => found.push(Holder { index, process: Process::find(root, id), writes, locks }),
    }
}

/// Ranges of memory through which a process writes to what may be one of `wanted`, by the text of its `maps`.
fn written_ranges<'t>(maps: &'t str, wanted: &[Identity]) -> impl Iterator<Item = &'t str> {
    maps.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (range, permissions, inode) = (fields.next()?, fields.next()?, fields.nth(2)?.parse().ok()?);
        let is_written = permissions.contains('w') && permissions.ends_with('s') && inode != 0;
        (is_written && may_be_of(inode, wanted)).then_some(range)
    })
}

/// False where an inode alone says no, which saves asking a file system that may not answer.
fn may_be_of(inode: u64, wanted: &[Identity]) -> bool {
    wanted.iter().any(|wanted| match wanted {
        Identity::File(_, wanted) => *wanted == inode,
        Identity::Devices(_) => true,
    })
}

/// What the kernel says of a descriptor.
struct OpenFile {
    writes: bool,
    /// Unknown on kernels before 5.14.
    inode: Option<u64>,
    locks: Vec<String>,
}

impl OpenFile {
    fn read(text: &str) -> Option<Self> {
        const MODE: u32 = (libc::O_WRONLY | libc::O_RDWR) as u32;
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let flags = u32::from_str_radix(field("flags:")?, 8).ok()?;
        let locks = text.lines().filter_map(|line| line.strip_prefix("lock:")?.split_ascii_whitespace().nth(1));
        Some(Self {
            writes: flags & MODE != 0,
            inode: field("ino:").and_then(|inode| inode.parse().ok()),
            locks: locks.map(str::to_owned).collect(),
        })
    }
}

/// Which of `wanted` a descriptor is open on.
fn which(root: &Root, link: &str, wanted: &[Identity]) -> Option<usize> {
    const BLOCK_DEVICE: u16 = 0o060_000;
    const TYPE: u16 = 0o170_000;
    // What the kernel knows already: a server that is gone would keep us waiting.
    let found = statx(CWD, root.path(link), AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS).ok()?;
    let file = Identity::File(makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino);
    let device = (found.stx_mode & TYPE == BLOCK_DEVICE).then(|| makedev(found.stx_rdev_major, found.stx_rdev_minor));
    wanted.iter().position(|wanted| match wanted {
        Identity::Devices(numbers) => device.is_some_and(|number| numbers.contains(&number)),
        wanted => device.is_none() && *wanted == file,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    /// A process of a made-up machine with one descriptor.
    fn process(root: &Path, id: u32, name: &str, file: &Path, info: &str) {
        let home = root.join(format!("proc/{id}"));
        fs::create_dir_all(home.join("fd")).unwrap();
        fs::create_dir_all(home.join("fdinfo")).unwrap();
        fs::write(home.join("comm"), format!("{name}\n")).unwrap();
        fs::write(home.join("fdinfo/3"), info).unwrap();
        symlink(file, home.join("fd/3")).unwrap();
    }

    #[test]
    fn who_writes_or_locks_is_found_and_who_reads_or_has_another_file_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let (file, other) = (directory.path().join("file"), directory.path().join("other"));
        fs::write(&file, "a").unwrap();
        fs::write(&other, "b").unwrap();
        let metadata = file.metadata().unwrap();
        let inode = metadata.ino();
        let machine = directory.path().join("machine");
        process(&machine, 2_000_000_001, "reads", &file, &format!("pos:\t0\nflags:\t0100000\nino:\t{inode}\n"));
        process(&machine, 2_000_000_002, "mysqld", &file, &format!("pos:\t0\nflags:\t0140002\nino:\t{inode}\n"));
        process(&machine, 2_000_000_003, "old kernel", &file, "pos:\t0\nflags:\t0100001\n");
        process(&machine, 2_000_000_004, "other", &other, "pos:\t0\nflags:\t0100002\n");
        let lock = "lock:\t1: OFDLCK ADVISORY  WRITE -1 08:01:12 0 EOF\n";
        process(&machine, 2_000_000_005, "locks", &file, &format!("flags:\t0100000\n{lock}"));
        process(&machine, std::process::id(), "ourselves", &file, "flags:\t0100002\n");
        process(&machine, 2_000_000_006, "damaged", &file, "flags: what\nino:\n");
        process(&machine, 2_000_000_007, "maps", &other, "flags:\t0100000\n");
        let maps = machine.join("proc/2000000007");
        let mapped = |range: &str, how: &str| format!("{range} {how} 00000000 fe:00 {inode}    /data/a file\n");
        fs::write(maps.join("maps"), [mapped("1-2", "rw-p"), mapped("2-3", "r--s"), mapped("3-4", "rw-s")].concat())
            .unwrap();
        fs::create_dir(maps.join("map_files")).unwrap();
        symlink(&file, maps.join("map_files/3-4")).unwrap();
        let found = holders(&Root::at(&machine), &[Identity::of_file(&metadata)]);
        let shown: Vec<_> = found.iter().map(|holder| (holder.process.to_string(), holder.writes)).collect();
        let expected = [
            ("process 2000000002 (`mysqld`)", true),
            ("process 2000000003 (`old kernel`)", true),
            ("process 2000000005 (`locks`)", false),
            ("process 2000000007 (`maps`)", true),
        ];
        assert_eq!(shown, expected.map(|(name, writes)| (name.to_owned(), writes)));
        assert!(found[2].has_lock(LockType::OpenFileDescription) && !found[2].has_lock(LockType::Flock));
    }

    fn users_of(root: &Root, file: &Path) -> usize {
        super::holders(root, &[Identity::of_file(&file.metadata().unwrap())]).len()
    }

    #[test]
    fn a_child_that_still_runs_our_program_is_known_by_it_and_not_by_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        process(directory.path(), 7, "block::safety::", &file, "");
        process(directory.path(), 8, "plimsoll", &file, "");
        for (id, program) in [("self", "/usr/bin/plimsoll"), ("7", "/usr/bin/plimsoll"), ("8", "/opt/plimsoll")] {
            let home = directory.path().join("proc").join(id);
            fs::create_dir_all(&home).unwrap();
            symlink(program, home.join("exe")).unwrap();
        }
        let root = Root::at(directory.path());
        let is_own = |id| Process::find(&root, id).is_own_program(&root);
        assert_eq!([7, 8, 9].map(is_own), [true, false, false]);
        // What it has open is ours until it is another program.
        let holders = |parent: u32, command: &str| {
            fs::write(&file, "").unwrap();
            fs::write(directory.path().join("proc/7/fdinfo/3"), "flags:\t0100002\n").unwrap();
            fs::write(directory.path().join("proc/7/status"), format!("Name:\tx\nPPid:\t{parent}\n")).unwrap();
            fs::write(directory.path().join("proc/7/cmdline"), command).unwrap();
            fs::write(directory.path().join("proc/self/cmdline"), "plimsoll\0io\0run").unwrap();
            users_of(&root, &file)
        };
        assert_eq!(holders(std::process::id(), "plimsoll\0io\0run"), 0);
        assert_eq!(holders(std::process::id(), "plimsoll\0slob\0run"), 1);
        assert_eq!(holders(1, "plimsoll\0io\0run"), 1);
    }
}
