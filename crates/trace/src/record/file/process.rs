//! What `/proc` shows of processes.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, Metadata};
use std::hash::BuildHasher;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::super::now_ns;
use super::files::{FileKey, FileRole, Files};
use super::follow::Proc;
use super::open::{Found, Look, MARGIN_NS};

/// Says what a file is to its database.
pub type Roles = Box<dyn FnMut(&Path) -> FileRole>;

/// Files whose role is remembered.
const MAX_ROLES: usize = 65_536;

/// Looks into `/proc`.
pub(super) struct Processes {
    roles: Roles,
    /// By device and inode: the hash of the path, and the role that it has.
    known: HashMap<(u64, u64), (u64, FileRole)>,
    hashes: RandomState,
}

impl Processes {
    pub(super) fn new(roles: Roles) -> Self {
        Self { roles, known: HashMap::new(), hashes: RandomState::new() }
    }

    /// What a file is. To find out may take long, so it is remembered while the file has its name.
    fn role(&mut self, number: (u64, u64), path: &Path) -> FileRole {
        let hash = self.hashes.hash_one(path);
        if let Some((_, role)) = self.known.get(&number).filter(|(known, _)| *known == hash) {
            return *role;
        }
        if self.known.len() >= MAX_ROLES {
            self.known.clear();
        }
        let role = (self.roles)(path);
        self.known.insert(number, (hash, role));
        role
    }
}

impl std::fmt::Debug for Processes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Processes")
    }
}

impl Proc for Processes {
    fn process(&mut self, task: u32) -> Option<u32> {
        let status = fs::read_to_string(format!("/proc/{task}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
    }

    fn look(&mut self, task: u32, process: u32, descriptor: u32, files: &mut Files) -> Look {
        let from_ns = now_ns();
        // The thread that made the call may have ended before its process.
        let seen = seen(task, descriptor).or_else(|| seen(process, descriptor));
        let to_ns = now_ns().saturating_add(MARGIN_NS);
        let gone = Look { from_ns, to_ns, found: Found::Gone, position: 0, size: 0, flags: 0 };
        let Some((path, metadata, position, flags)) = seen else { return gone };
        let is_device = metadata.file_type().is_block_device();
        // Files of these are the kernel's own answers.
        let is_kernel = path.starts_with("/proc") || path.starts_with("/sys");
        if is_kernel || !(is_device || metadata.is_file()) {
            return Look { found: Found::NotFile, ..gone };
        }
        let path = without_mark(path);
        let (device, inode) = if is_device { (metadata.rdev(), 0) } else { (metadata.dev(), metadata.ino()) };
        let key = FileKey { device, inode, role: self.role((device, inode), &path) };
        let size = metadata.size();
        let file = files.place(key, &path, (!is_device).then_some(size));
        Look { found: Found::File(file), position, size, flags, ..gone }
    }
}

fn seen(task: u32, descriptor: u32) -> Option<(PathBuf, Metadata, u64, u32)> {
    let link = format!("/proc/{task}/fd/{descriptor}");
    let path = fs::read_link(&link).ok()?;
    let metadata = fs::metadata(&link).ok()?;
    let (position, flags) = position(&fs::read_to_string(format!("/proc/{task}/fdinfo/{descriptor}")).ok()?)?;
    Some((path, metadata, position, flags))
}

/// Position and flags of an open file, from the text of its `fdinfo`.
fn position(text: &str) -> Option<(u64, u32)> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    Some((value("pos:")?.parse().ok()?, u32::from_str_radix(value("flags:")?, 8).ok()?))
}

/// A path without what the kernel adds to that of a file whose name was removed.
fn without_mark(path: PathBuf) -> PathBuf {
    match path.to_str().and_then(|text| text.strip_suffix(" (deleted)")) {
        Some(text) => PathBuf::from(text),
        None => path,
    }
}

/// The threads of a process and its descendants, each with its process; not this program.
pub(super) fn threads_of(root: u32) -> BTreeMap<u32, u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for process in numbers("/proc") {
        if let Some(parent) = stat(process, 1) {
            children.entry(parent as u32).or_default().push(process);
        }
    }
    let (mut found, mut next) = (BTreeSet::new(), vec![root]);
    while let Some(process) = next.pop() {
        if process != std::process::id() && found.insert(process) {
            next.extend(children.get(&process).into_iter().flatten());
        }
    }
    let threads = |process: u32| tasks_of(process).into_iter().map(move |task| (task, process));
    found.into_iter().flat_map(threads).collect()
}

/// The threads of one process.
pub(super) fn tasks_of(process: u32) -> Vec<u32> {
    numbers(&format!("/proc/{process}/task"))
}

/// When a process was born, in ticks after the machine started; absent if it is not there.
pub(super) fn born(process: u32) -> Option<u64> {
    stat(process, 19)
}

fn numbers(place: &str) -> Vec<u32> {
    let names = fs::read_dir(place).into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// A field of `/proc/PID/stat`, counted from the one after the name.
fn stat(process: u32, field: usize) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may have blanks.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(field)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom, Write};
    use std::os::fd::AsRawFd;

    #[test]
    fn an_open_file_is_looked_up_and_what_is_none_is_known() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[1; 300]).unwrap();
        file.seek(SeekFrom::Start(100)).unwrap();
        let (mut processes, mut files) = (Processes::new(Box::new(|_| FileRole::Log)), Files::default());
        let own = std::process::id();
        let mut look = |descriptor: i32| processes.look(own, own, descriptor as u32, &mut files);
        let found = look(file.as_raw_fd());
        assert_eq!((found.found, found.position, found.size), (Found::File(0), 100, 300));
        assert!(found.from_ns < found.to_ns);
        let (reader, _writer) = std::io::pipe().unwrap();
        assert_eq!(look(reader.as_raw_fd()).found, Found::NotFile);
        let kernel = fs::File::open("/proc/self/status").unwrap();
        assert_eq!(look(kernel.as_raw_fd()).found, Found::NotFile);
        assert_eq!(look(1 << 20).found, Found::Gone);
        assert_eq!(position("pos:\t7\nflags:\t0110002\nmnt_id:\t1\n"), Some((7, 0o110_002)));
        assert_eq!(without_mark("/a (deleted)".into()), Path::new("/a"));
    }

    #[test]
    fn the_role_of_a_file_is_found_out_once_for_each_name() {
        let questions = std::rc::Rc::new(std::cell::Cell::new(0));
        let counted = questions.clone();
        let mut processes = Processes::new(Box::new(move |_| {
            counted.set(counted.get() + 1);
            FileRole::Other
        }));
        for (number, path, expected) in [(1, "/a", 1), (1, "/a", 1), (2, "/a", 2), (1, "/b", 3), (1, "/b", 3)] {
            processes.role((1, number), Path::new(path));
            assert_eq!(questions.get(), expected, "{number} {path}");
        }
    }

    #[test]
    fn a_family_has_threads_and_descendants_and_not_this_program() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let own = std::process::id();
        assert_eq!(threads_of(child.id()), BTreeMap::from([(child.id(), child.id())]));
        assert!(threads_of(own).is_empty());
        assert_eq!(tasks_of(child.id()), [child.id()]);
        assert!(born(child.id()) >= born(own) && born(own).is_some() && born(u32::MAX).is_none());
        let parent = fs::read_to_string("/proc/self/stat").unwrap();
        let parent = parent.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
        let of_parent = threads_of(parent);
        assert!(of_parent.contains_key(&parent) && !of_parent.contains_key(&own));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
