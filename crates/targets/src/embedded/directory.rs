//! The directory of a data set: who works on it, and which files in it are ours.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::destination::Files;
use super::{Descriptor, changes, control, descriptor, ledger, redo};
use crate::error::{FileContext, TargetError};
use files::{How, LockedFile};
use model::plain::{self, Links};

/// Held as long as a process works on the directory. Its presence also marks the directory as ours.
const LOCK_FILE: &str = "plimsoll.lock";
/// Present from the first to the last moment of a set-up.
const SETUP_MARK: &str = "setup.unfinished";

/// What a directory is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectoryState {
    /// It is not there, or it is empty.
    Free,
    /// We made what is in it.
    Ours,
}

/// A directory that this process alone works on. The lock goes with the value, or with the process.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    _lock: LockedFile,
}

impl Directory {
    /// Takes the directory for this process.
    ///
    /// # Errors
    /// [`TargetError::Locked`] when another process has it, [`TargetError::NotSetUp`] when it is not one of ours, or the
    /// system's error.
    pub fn lock(path: &Path) -> Result<Self, TargetError> {
        match Self::look(path) {
            Ok(DirectoryState::Ours) => Self::take(path),
            Ok(DirectoryState::Free) | Err(TargetError::NotOurs { .. }) => {
                Err(TargetError::NotSetUp { path: path.to_owned() })
            }
            Err(error) => Err(error),
        }
    }

    /// Makes the directory if needed and takes it for a new data set.
    ///
    /// # Errors
    /// [`TargetError::NotOurs`] when it holds anything that we did not make.
    pub fn claim(path: &Path) -> Result<Self, TargetError> {
        files::make_directories(path).of_file("create", path)?;
        Self::look(path)?;
        Self::take(path)
    }

    /// Looks whether the directory is ours or may become so, and changes nothing.
    ///
    /// # Errors
    /// [`TargetError::NotOurs`] when it holds anything that we did not make, or the system's error.
    pub fn look(path: &Path) -> Result<DirectoryState, TargetError> {
        match fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(DirectoryState::Free),
            Err(error) => return Err(error).of_file("open", path),
            Ok(found) if !found.is_dir() => {
                return Err(std::io::Error::from_raw_os_error(libc::ENOTDIR)).of_file("open", path);
            }
            Ok(_) => {}
        }
        // A copy or a clean-up may have left the lock file out; the descriptor says whose data they are.
        if path.join(LOCK_FILE).exists() || Descriptor::load(path).is_ok() {
            return Ok(DirectoryState::Ours);
        }
        for entry in fs::read_dir(path).of_file("list", path)? {
            let file = entry.of_file("list", path)?.file_name().to_string_lossy().into_owned();
            // A freshly made file system has this directory, and it holds nobody's data.
            if file != "lost+found" {
                return Err(TargetError::NotOurs { path: path.to_owned(), file });
            }
        }
        Ok(DirectoryState::Free)
    }

    /// Who works on the directory, as the holder of the lock calls itself; none if nobody does.
    ///
    /// # Errors
    /// The system's error.
    pub fn holder(path: &Path) -> Result<Option<String>, TargetError> {
        let lock_path = path.join(LOCK_FILE);
        let mut lock = match plain::open(&lock_path, Links::Refused) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.of_file("open", &lock_path)?,
        };
        // Shared, so that several may look at once, and let go as soon as that is known.
        match lock.try_lock_shared() {
            Ok(()) => lock.unlock().of_file("unlock", &lock_path).map(|()| None),
            Err(TryLockError::WouldBlock) => Ok(Some(holder_of(&mut lock))),
            Err(TryLockError::Error(error)) => Err(error).of_file("lock", &lock_path),
        }
    }

    fn take(path: &Path) -> Result<Self, TargetError> {
        let lock_path = path.join(LOCK_FILE);
        files::judge_directory(path).of_file("use", path)?;
        let mut lock =
            LockedFile::from(files::open_or_make_own(&lock_path, How::default()).of_file("open", &lock_path)?);
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = holder_of(&mut lock);
                let holder = if holder.is_empty() { holder } else { format!(" ({holder})") };
                return Err(TargetError::Locked { path: path.to_owned(), holder });
            }
            Err(TryLockError::Error(error)) => return Err(error).of_file("lock", &lock_path),
        }
        let named =
            lock.set_len(0).and_then(|()| lock.rewind()).and_then(|()| write!(lock, "process {}", std::process::id()));
        named.of_file("write", &lock_path)?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Marks a set-up as begun, and puts down where its files may lie.
    ///
    /// # Errors
    /// The system's error.
    pub fn begin_setup(&self, descriptor: Option<&Descriptor>) -> Result<(), TargetError> {
        let mark = self.path.join(SETUP_MARK);
        let text = descriptor.map(|it| serde_json::to_string(it).expect("a descriptor has no value that JSON lacks"));
        let mut file = files::open_or_make_own(&mark, How::default()).of_file("create", &mark)?;
        let written = file.set_len(0).and_then(|()| file.write_all(text.unwrap_or_default().as_bytes()));
        written.and_then(|()| file.sync_all()).of_file("write", &mark)?;
        descriptor::sync_directory(&self.path)
    }

    /// Marks a set-up as finished.
    ///
    /// # Errors
    /// The system's error.
    pub fn end_setup(&self) -> Result<(), TargetError> {
        let mark = self.path.join(SETUP_MARK);
        files::remove(&mark).of_file("remove", &mark)?;
        descriptor::sync_directory(&self.path)
    }

    /// Whether a set-up was begun and never finished.
    pub fn is_half_set_up(&self) -> bool {
        Self::is_half_set_up_at(&self.path)
    }

    /// The same of a directory that is not locked.
    pub fn is_half_set_up_at(path: &Path) -> bool {
        path.join(SETUP_MARK).exists()
    }

    /// Files in the directory that we made, the lock last, with their sizes.
    ///
    /// # Errors
    /// The system's error.
    pub fn our_files(&self) -> Result<Vec<(PathBuf, u64)>, TargetError> {
        let files = Self::files_at(&self.path)?;
        Ok(files.into_iter().map(|(path, metadata)| (path, metadata.len())).collect())
    }

    /// The same of a directory that is not locked, with all that the file system knows of them.
    ///
    /// # Errors
    /// The system's error.
    pub fn files_at(path: &Path) -> Result<Vec<(PathBuf, Metadata)>, TargetError> {
        let mut files = Vec::new();
        for entry in fs::read_dir(path).of_file("list", path)? {
            let entry = entry.of_file("list", path)?;
            if entry.file_name().to_str().is_some_and(is_ours) {
                // An entry that vanished since it was listed needs no removing.
                let Ok(metadata) = entry.metadata() else { continue };
                if metadata.is_file() {
                    files.push((entry.path(), metadata));
                }
            }
        }
        files.sort_by_key(|(path, _)| (path.ends_with(LOCK_FILE), path.clone()));
        Ok(files)
    }

    /// The large files of data that are or were being made here and lie elsewhere. Where no descriptor can be read, nothing is known.
    ///
    /// # Errors
    /// When a place cannot be reached.
    pub(super) fn elsewhere(&self) -> Result<Vec<Files>, TargetError> {
        let unfinished = plain::read_text(&self.path.join(SETUP_MARK), Links::Ours, descriptor::MAX_FILE).ok();
        let unfinished = unfinished.and_then(|text| serde_json::from_str::<Descriptor>(&text).ok());
        let known = Descriptor::load(&self.path).ok().into_iter().chain(unfinished);
        let elsewhere = known.filter(|descriptor| !descriptor.destinations.are_own());
        elsewhere.map(|descriptor| descriptor.files(&self.path, &descriptor.layout(&self.path)?)).collect()
    }

    /// Removes our files but for the lock, those elsewhere among them.
    ///
    /// # Errors
    /// The system's error; what was removed before stays removed.
    pub fn clear(&self) -> Result<(), TargetError> {
        let elsewhere = self.elsewhere()?;
        if let Ok(there) = Descriptor::load(&self.path)
            && !there.destinations.are_own()
        {
            self.begin_setup(Some(&there))?;
        }
        // The descriptor goes first, so that no half-removed data set looks whole; the mark, which says where files are, last.
        let (descriptor, mark) = (self.path.join(descriptor::FILE_NAME), self.path.join(SETUP_MARK));
        if descriptor.exists() {
            files::remove(&descriptor).of_file("remove", &descriptor)?;
        }
        elsewhere.iter().try_for_each(Files::remove_elsewhere)?;
        let mut files = self.our_files()?;
        files.sort_by_key(|(path, _)| *path == mark);
        for (path, _) in files.iter().filter(|(path, _)| !path.ends_with(LOCK_FILE)) {
            files::remove(path).of_file("remove", path)?;
        }
        Ok(())
    }

    /// Removes all our files and leaves the directory.
    ///
    /// # Errors
    /// The system's error; what was removed before stays removed.
    pub fn vacate(self) -> Result<(), TargetError> {
        self.clear()?;
        let lock = self.path.join(LOCK_FILE);
        files::remove(&lock).of_file("remove", &lock)
    }

    /// Removes all our files, and the directory if nothing else is in it.
    ///
    /// # Errors
    /// The system's error; what was removed before stays removed.
    pub fn remove(self) -> Result<(), TargetError> {
        let path = self.path.clone();
        self.vacate()?;
        match files::remove_directory(&path) {
            // Someone else's files, a mount point, or a parent that we may not write to: the directory itself stays.
            Err(_) | Ok(()) => Ok(()),
        }
    }
}

/// A holder calls itself by a command and a number.
const MAX_HOLDER_BYTES: u64 = 4 << 10;

/// How the holder of a lock calls itself. Only words for messages: without them they are still right.
fn holder_of(lock: &mut File) -> String {
    let mut holder = String::new();
    let _ = lock.take(MAX_HOLDER_BYTES).read_to_string(&mut holder);
    holder.trim().to_owned()
}

fn is_ours(name: &str) -> bool {
    let numbered = |prefix: &str, suffix: &str| {
        name.strip_prefix(prefix)
            .and_then(|rest| rest.strip_suffix(suffix))
            .is_some_and(|middle| !middle.is_empty() && middle.bytes().all(|byte| byte.is_ascii_digit()))
    };
    [
        LOCK_FILE,
        SETUP_MARK,
        descriptor::FILE_NAME,
        descriptor::UNFINISHED,
        control::FILE_NAME,
        ledger::FILE_NAME,
        changes::FILE_NAMES[0],
        changes::FILE_NAMES[1],
    ]
    .contains(&name)
        || numbered("data-", ".dbf")
        || numbered(redo::FILE_PREFIX, redo::FILE_SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_belongs_to_one_holder_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let held = Directory::claim(dir.path()).unwrap();
        let error = Directory::claim(dir.path()).unwrap_err();
        assert!(matches!(&error, TargetError::Locked { holder, .. } if holder.contains("process")), "{error}");
        drop(held);
        Directory::lock(dir.path()).unwrap();
    }

    #[test]
    fn a_foreign_directory_is_neither_claimed_nor_locked() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.tex"), "years of work").unwrap();
        assert!(matches!(Directory::claim(dir.path()), Err(TargetError::NotOurs { file, .. }) if file == "thesis.tex"));
        assert!(matches!(Directory::lock(dir.path()), Err(TargetError::NotSetUp { .. })));
    }

    #[test]
    fn a_foreign_file_beside_lost_and_found_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("lost+found")).unwrap();
        assert_eq!(Directory::look(dir.path()).unwrap(), DirectoryState::Free);
        fs::write(dir.path().join("thesis.tex"), "years of work").unwrap();
        assert!(matches!(Directory::look(dir.path()), Err(TargetError::NotOurs { file, .. }) if file == "thesis.tex"));
    }

    #[test]
    fn looking_who_holds_a_directory_takes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let held = Directory::claim(dir.path()).unwrap();
        assert_eq!(Directory::holder(dir.path()).unwrap(), Some(format!("process {}", std::process::id())));
        drop(held);
        assert_eq!(Directory::holder(dir.path()).unwrap(), None);
        Directory::lock(dir.path()).unwrap();
    }

    #[test]
    fn only_our_files_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let held = Directory::claim(dir.path()).unwrap();
        for name in ["data-0001.dbf", "data-.dbf", "data-1x.dbf", "notes.txt", "redo-01.log"] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        held.remove().unwrap();
        let mut left: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, ["data-.dbf", "data-1x.dbf", "notes.txt"]);
    }
}
