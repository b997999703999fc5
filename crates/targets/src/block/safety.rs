//! What must hold before load touches a file or device.
//!
//! Reading is always allowed. Writing is allowed where Plimsoll laid the data out itself, and otherwise only where the
//! user has typed the name of what is to be destroyed; never where anybody uses or has locked it. All paths are judged before any is
//! written to, and nothing here writes.

use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::signature::{self, SecondOpinion};
use super::stamp::{FileId, SECTOR_BYTES};
use super::usage::{self, Device};
use super::users::{self, Holder, Identity, LockType, Process};
use super::{BlockError, VirtualPlace};
use crate::error::{FileContext, TargetError};
use crate::io::{Claim, RecordLock, record_lock};
use files::{How, LockedFile, Refusal};
use measure::os::Root;
use measure::os::mounts::ResolvedPath;

/// What the user has said about data that may be lost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permission {
    /// Names typed out: kernel names such as `sdb`, or paths. Each path to be written to needs one that means it.
    pub destroy: Vec<String>,
    /// Whether something may be written to although it holds a file system, a partition table, a database or the like.
    pub destroy_signature: bool,
}

/// What load will do with the paths.
#[derive(Debug, Clone, Copy)]
pub enum Purpose<'a> {
    /// Read only.
    Read,
    /// Write, with this permission.
    Write(&'a Permission),
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// A regular file.
    File,
    /// A block device.
    BlockDevice,
    /// A file that is no path of this machine, with the word for it.
    Virtual(&'static str),
}

impl PathKind {
    /// The kind of what these metadata belong to.
    ///
    /// # Errors
    /// [`BlockError::WrongKind`] for everything that load cannot land on.
    pub(super) fn of(path: &Path, metadata: &Metadata) -> Result<Self, BlockError> {
        let found = metadata.file_type();
        let kind = match () {
            () if found.is_file() => return Ok(Self::File),
            () if found.is_block_device() => return Ok(Self::BlockDevice),
            () if found.is_dir() => "a directory",
            () if found.is_fifo() => "a named pipe",
            () if found.is_socket() => "a socket",
            () if found.is_char_device() => "a character device",
            () => "of a kind that holds no data",
        };
        Err(BlockError::WrongKind { path: path.to_owned(), kind })
    }

    /// Name as the record has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::BlockDevice => "block device",
            Self::Virtual(kind) => kind,
        }
    }
}

/// A path that has passed. As long as it lives, other users who ask for exclusive use are kept away.
#[derive(Debug)]
pub struct Checked {
    path: PathBuf,
    kind: PathKind,
    id: Option<FileId>,
    guard: Guard,
    notes: Vec<String>,
}

/// What keeps others away, to be kept as long as load runs.
#[derive(Debug)]
pub(super) enum Guard {
    /// Holds the lock of a file, or the exclusive use of a device that is to be written to.
    Local(LockedFile),
    /// A file in a virtual directory, and the claim on it if it is to be written to.
    Virtual { place: VirtualPlace, identity: (u64, u64), _claim: Option<Claim> },
}

impl Checked {
    pub(super) fn new(path: PathBuf, kind: PathKind, id: Option<FileId>, guard: Guard) -> Self {
        Self { path, kind, id, guard, notes: Vec::new() }
    }

    /// What the user should know although it forbids nothing.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it leads to.
    pub fn kind(&self) -> PathKind {
        self.kind
    }

    /// The number that its first sector carries; none if Plimsoll did not lay it out.
    pub fn id(&self) -> Option<FileId> {
        self.id
    }

    /// The file or device itself, as it was judged; none in a virtual directory.
    pub(crate) fn local(&self) -> Option<&File> {
        match &self.guard {
            Guard::Local(file) => Some(file),
            Guard::Virtual { .. } => None,
        }
    }

    /// Opens a file or device that was judged for writing, for reading and writing.
    ///
    /// # Errors
    /// [`BlockError::Replaced`] when the path leads elsewhere by now, or the system's error.
    pub fn open_to_write(&self, how: How) -> Result<File, TargetError> {
        let replaced = || BlockError::Replaced { path: self.path.clone() };
        let guard = self.local().ok_or_else(replaced)?.metadata().of_file("look at", &self.path)?;
        let file = files::open_judged(&self.path, how).of_file("open", &self.path)?;
        let found = file.metadata().of_file("look at", &self.path)?;
        if is_same_file(&guard, &found) { Ok(file) } else { Err(replaced().into()) }
    }

    /// What keeps others away, to be kept as long as load runs.
    pub(super) fn into_guard(self) -> Guard {
        self.guard
    }
}

/// Judges all paths. Nothing is written.
///
/// # Errors
/// The first thing that forbids the purpose, see [`BlockError`]; or the system's error.
pub fn check(paths: &[PathBuf], purpose: Purpose<'_>) -> Result<Vec<Checked>, TargetError> {
    let root = Root::default();
    let subjects = paths.iter().map(|path| Subject::find(&root, path)).collect::<Result<Vec<_>, _>>()?;
    for (index, second) in subjects.iter().enumerate() {
        for first in &subjects[..index] {
            if let Some(what) = first.sameness(&root, second) {
                let (first, second) = (first.path.to_owned(), second.path.to_owned());
                return Err(BlockError::Same { first, second, what }.into());
            }
        }
    }
    match purpose {
        Purpose::Read => subjects.iter().map(Subject::for_reading).collect(),
        Purpose::Write(permission) => {
            let writers = writers(&root, &subjects, permission)?;
            let of = |index| writers.iter().filter(move |holder| holder.index == index).map(|holder| &holder.process);
            let each = subjects.iter().enumerate();
            each.map(|(index, subject)| subject.for_writing(&root, permission, of(index).collect())).collect()
        }
    }
}

/// Refuses to make a file among devices or files of the kernel: it would be in memory, and its name is more likely a mistyped
/// device's.
///
/// # Errors
/// [`BlockError::NoDevice`], or what [`files::judge_new`] says.
pub fn refuse_system_place(path: &Path) -> Result<(), TargetError> {
    match files::judge_new(path) {
        Err(error) if files::refusal(&error) == Some(&Refusal::KernelsOwn("/dev")) => {
            Err(BlockError::NoDevice { path: path.to_owned() }.into())
        }
        judged => judged.of_file("create", path),
    }
}

/// Other processes that have one of the paths open for writing.
fn writers(root: &Root, subjects: &[Subject<'_>], permission: &Permission) -> Result<Vec<Holder>, TargetError> {
    let wanted = subjects.iter().map(|subject| subject.identity(root)).collect::<Result<Vec<_>, _>>()?;
    let look = || {
        let found = users::holders(root, &wanted).into_iter().filter(|holder| holder.writes).collect::<Vec<_>>();
        match found.iter().all(|holder| subjects[holder.index].is_permitted(root, permission)) {
            true => Ok(found),
            false => Err(found),
        }
    };
    Ok(patiently(look, |_| true).unwrap_or_else(|found| found))
}

/// A path that is to be judged.
struct Subject<'a> {
    path: &'a Path,
    /// Without symbolic links.
    real: PathBuf,
    kind: PathKind,
    metadata: Metadata,
}

impl<'a> Subject<'a> {
    fn find(root: &Root, path: &'a Path) -> Result<Self, TargetError> {
        let metadata = path.metadata().of_file("find", path)?;
        let kind = PathKind::of(path, &metadata)?;
        let place = ResolvedPath::nearest(root, path).map(|place| place.path);
        Ok(Self { path, real: place.unwrap_or_else(|| path.to_owned()), kind, metadata })
    }

    /// What two paths have in common that forbids to use both.
    fn sameness(&self, root: &Root, other: &Self) -> Option<&'static str> {
        match (self.kind, other.kind) {
            (PathKind::File, PathKind::File) => {
                is_same_file(&self.metadata, &other.metadata).then_some("the same file")
            }
            (PathKind::BlockDevice, PathKind::BlockDevice) => {
                if self.metadata.rdev() == other.metadata.rdev() {
                    return Some("the same device");
                }
                let (one, two) = (self.device(root).ok()?, other.device(root).ok()?);
                if one.is_other_path_of(root, &two) {
                    return Some("two paths of one device");
                }
                let is_disk_of = |disk: &Device, part: &Device| part.disk(root).as_ref() == Some(disk);
                (is_disk_of(&one, &two) || is_disk_of(&two, &one)).then_some("a disk and its partition")
            }
            _ => None,
        }
    }

    fn device(&self, root: &Root) -> Result<Device, BlockError> {
        let number = ResolvedPath::nearest(root, &self.real).and_then(|place| place.block_device);
        let hidden = || BlockError::Unseen { path: self.path.to_owned(), what: self.real.display().to_string() };
        Device::find(root, number.ok_or_else(hidden)?, self.path)
    }

    fn checked(&self, guard: LockedFile) -> Result<Checked, TargetError> {
        let mut sector = [0; SECTOR_BYTES];
        let id = match guard.read_exact_at(&mut sector, 0) {
            Ok(()) => FileId::found_in(&sector),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => return Err(error).of_file("read", self.path),
        };
        Ok(Checked { path: self.path.to_owned(), kind: self.kind, id, guard: Guard::Local(guard), notes: Vec::new() })
    }

    fn identity(&self, root: &Root) -> Result<Identity, BlockError> {
        Ok(match self.kind {
            PathKind::BlockDevice => Identity::Devices(self.device(root)?.numbers(root)),
            PathKind::File | PathKind::Virtual(_) => Identity::of_file(&self.metadata),
        })
    }

    /// Name that the user types to mean this path.
    fn name(&self, root: &Root) -> Result<String, BlockError> {
        Ok(match self.kind {
            PathKind::BlockDevice => self.device(root)?.name,
            PathKind::File | PathKind::Virtual(_) => {
                self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
            }
        })
    }

    fn is_permitted(&self, root: &Root, permission: &Permission) -> bool {
        self.name(root).is_ok_and(|name| self.is_named(&name, permission))
    }

    fn lock(&self, root: &Root, guard: &File, purpose: Purpose<'_>) -> Result<(), TargetError> {
        let attempt = || match purpose {
            Purpose::Read => guard.try_lock_shared(),
            Purpose::Write(_) => guard.try_lock(),
        };
        let is_locked = |error: &TryLockError| matches!(error, TryLockError::WouldBlock);
        // What watches for new devices locks each while it looks at it.
        let patience = if self.kind == PathKind::BlockDevice { 10 } else { 1 };
        let mut locked = patiently(attempt, is_locked);
        for _ in 1..patience {
            if !locked.as_ref().is_err_and(is_locked) {
                break;
            }
            locked = patiently(attempt, is_locked);
        }
        match locked {
            Err(TryLockError::WouldBlock) => Err(self.locked_by_flock(root).into()),
            // Some file systems have no locks; then nobody can be kept away.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
        }
    }

    fn locked_by_flock(&self, root: &Root) -> BlockError {
        match self.holder_of(root, LockType::Flock).filter(|holder| !holder.is_own_program(root)) {
            Some(by) => self.locked(LockType::Flock, Some(by)),
            None => BlockError::Locked { path: self.path.to_owned() },
        }
    }

    /// Asks for locks that keep nobody from writing who does not ask.
    fn refuse_record_lock(&self, root: &Root, guard: &File) -> Result<(), TargetError> {
        let (how, by) = match record_lock(guard).of_file("ask for locks on", self.path)? {
            None => return Ok(()),
            Some(RecordLock::Process(by)) => (LockType::Fcntl, by.map(|by| Process::find(root, by))),
            Some(RecordLock::OpenFile) => {
                (LockType::OpenFileDescription, self.holder_of(root, LockType::OpenFileDescription))
            }
        };
        Err(self.locked(how, by).into())
    }

    fn locked(&self, how: LockType, by: Option<Process>) -> BlockError {
        let what = self.path.display().to_string();
        BlockError::InUse { path: self.path.to_owned(), uses: vec![usage::Usage::Locked { what, how: how.name(), by }] }
    }

    fn holder_of(&self, root: &Root, lock: LockType) -> Option<Process> {
        let holders = users::holders(root, &[self.identity(root).ok()?]);
        holders.into_iter().find(|holder| holder.has_lock(lock)).map(|holder| holder.process)
    }

    fn for_reading(&self) -> Result<Checked, TargetError> {
        let guard = LockedFile::from(File::open(self.path).of_file("open", self.path)?);
        if self.kind == PathKind::File {
            self.lock(&Root::default(), &guard, Purpose::Read)?;
        }
        self.checked(guard)
    }

    /// `writers` are other processes that have it open for writing.
    fn for_writing(
        &self,
        root: &Root,
        permission: &Permission,
        writers: Vec<&Process>,
    ) -> Result<Checked, TargetError> {
        let guard = LockedFile::from(match self.kind {
            PathKind::BlockDevice => self.device_alone(root)?,
            PathKind::File | PathKind::Virtual(_) => self.file_alone(root)?,
        });
        self.lock(root, &guard, Purpose::Write(permission))?;
        self.refuse_record_lock(root, &guard)?;
        let name = self.name(root)?;
        let is_named = self.is_named(&name, permission);
        if !writers.is_empty() && !is_named {
            let by = writers.into_iter().cloned().collect();
            return Err(BlockError::OpenElsewhere { path: self.path.to_owned(), by, name }.into());
        }
        let mut checked = self.checked(guard)?;
        for writer in writers {
            let path = self.path.display();
            checked.notes.push(format!("{writer} has `{path}` open for writing, and may write to it during the load"));
        }
        // A device is never known to be ours as a whole.
        let what = match self.kind {
            PathKind::BlockDevice => Some("all data on this device"),
            _ if self.metadata.len() > 0 && checked.id.is_none() => Some("a file that Plimsoll did not lay out"),
            _ => None,
        };
        if let Some(what) = what {
            if !is_named {
                return Err(BlockError::NotAllowed { path: self.path.to_owned(), what, name }.into());
            }
            if !permission.destroy_signature {
                self.refuse_signed(&mut checked)?;
            }
        }
        Ok(checked)
    }

    fn file_alone(&self, root: &Root) -> Result<File, TargetError> {
        let is_same = |other: &Path| other.metadata().is_ok_and(|other| is_same_file(&self.metadata, &other));
        self.refuse_used(usage::of_file(root, &self.real, &is_same))?;
        File::open(self.path).of_file("open", self.path)
    }

    fn device_alone(&self, root: &Root) -> Result<File, TargetError> {
        let device = self.device(root)?;
        self.refuse_used(usage::of_device(root, &device))?;
        // Partitions first: once we have the disk, nobody, ourselves included, can have a partition of it.
        for partition in device.partitions(root) {
            let node = Path::new("/dev").join(&partition.name);
            // A container may lack the node; the disk's own claim conflicts with those of its partitions then.
            if node.exists() {
                drop(self.claim(&node, &partition.name)?);
            }
        }
        self.claim(self.path, &device.name)
    }

    fn refuse_used(&self, uses: Vec<usage::Usage>) -> Result<(), BlockError> {
        if uses.is_empty() { Ok(()) } else { Err(BlockError::InUse { path: self.path.to_owned(), uses }) }
    }

    /// Opens a device so that nobody else can have it exclusively; for reading, so that asking changes nothing.
    fn claim(&self, node: &Path, device: &str) -> Result<File, TargetError> {
        let is_busy = |error: &io::Error| error.raw_os_error() == Some(libc::EBUSY);
        match patiently(|| files::claim_device(node), is_busy) {
            Err(error) if is_busy(&error) => {
                Err(BlockError::Claimed { path: self.path.to_owned(), device: device.to_owned() }.into())
            }
            opened => opened.of_file("open", node),
        }
    }

    /// Whether one of the names that the user typed means this path: its own name, or any path that leads to it.
    fn is_named(&self, name: &str, permission: &Permission) -> bool {
        permission.destroy.iter().any(|typed| {
            // A bare word is a name and not a path, whatever the current directory holds.
            if !typed.contains('/') {
                return typed == name || Path::new(typed) == self.path;
            }
            Path::new(typed).canonicalize().is_ok_and(|typed| typed == self.real)
        })
    }

    /// Refuses what holds somebody's data, and notes where only half of the usual care could be taken.
    fn refuse_signed(&self, checked: &mut Checked) -> Result<(), TargetError> {
        let Guard::Local(file) = &checked.guard else { return Ok(()) };
        let mut end: &File = file;
        let size_bytes = io::Seek::seek(&mut end, io::SeekFrom::End(0)).of_file("find the size of", self.path)?;
        let mut read = |offset: u64, length: usize| {
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, offset).map(|()| bytes)
        };
        let mut found = signature::find(&mut read, size_bytes).of_file("read", self.path)?;
        if found.is_empty() {
            let path = self.path.display();
            match signature::ask_blkid(&self.real) {
                SecondOpinion::Found(said) => found = said,
                SecondOpinion::Nothing => {}
                SecondOpinion::Absent => checked.notes.push(format!(
                    "`{path}` was searched only for formats that Plimsoll knows: `blkid` is not on the PATH, in /sbin or in /usr/sbin"
                )),
                SecondOpinion::Silent => checked.notes.push(format!(
                    "`{path}` was searched only for formats that Plimsoll knows: `blkid` could not look at it"
                )),
            }
        }
        match found.is_empty() {
            true => Ok(()),
            false => Err(BlockError::Signed { path: self.path.to_owned(), found }.into()),
        }
    }
}

/// Tries again for a moment while somebody is in the way. Programs that watch for new devices look at each of them
/// shortly, and a process that is just being started has our own descriptors until its program runs.
pub(super) fn patiently<T, E>(
    mut attempt: impl FnMut() -> Result<T, E>,
    is_in_the_way: impl Fn(&E) -> bool,
) -> Result<T, E> {
    const PATIENCE: Duration = Duration::from_millis(300);
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(error) if is_in_the_way(&error) && begun.elapsed() < PATIENCE => {
                std::thread::sleep(PATIENCE / 30);
            }
            ended => return ended,
        }
    }
}

fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(test)]
#[path = "safety_tests.rs"]
mod tests;
