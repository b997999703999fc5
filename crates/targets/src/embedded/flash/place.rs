//! The file or device behind a flash cache: made, refused, and removed again.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::options::FlashOptions;
use crate::block::BlockError;
use crate::block::safety::{Checked, PathKind, Purpose, check};
use crate::error::{FileContext, TargetError};
use crate::io::{Durability, StorageFile};
use files::{How, LockedFile};
use model::units::Bytes;

/// What a file begins with that was made here, and no other: whatever has it is taken and removed. (`-1` was written to what the user
/// allowed, too, and says nothing.) Nothing behind it is read before it was written anew.
const MARK: &[u8; 16] = b"PLIMSOLL-FLASH-2";
/// Bytes before the first slot.
pub(super) const HEAD_BYTES: u64 = 4096;

/// An open file or device, ours alone.
pub(super) struct FlashFile {
    pub(super) storage: Arc<StorageFile>,
    /// Keeps others away.
    _guard: Guard,
    /// Whether it goes with us.
    is_ours: bool,
}

enum Guard {
    Lock(#[expect(dead_code, reason = "holds the lock of a file until it is dropped")] LockedFile),
    Judged(#[expect(dead_code, reason = "holds the exclusive use of a device until it is dropped")] Checked),
}

/// What there is at a path.
enum There {
    Nothing,
    /// A file of ours, left by a process that was killed.
    Ours(LockedFile),
    /// Something that may be written to.
    Allowed(Checked),
}

impl FlashFile {
    /// Makes the file, or takes one of ours that was left, or what the user allowed.
    ///
    /// # Errors
    /// When something else is there, it is in use, or there is too little space. A file made here is removed again then.
    pub(super) fn open(options: &FlashOptions) -> Result<Self, TargetError> {
        let (path, bytes) = (options.path.as_path(), options.size.0 + HEAD_BYTES);
        match look(options)? {
            There::Nothing => {
                let storage = StorageFile::create(path, Durability::OnSync).of_file("create", path)?;
                Self::of_file(storage, path, bytes).inspect_err(|_| {
                    let _ = files::remove(path);
                })
            }
            There::Ours(lock) => {
                let storage = StorageFile::open_own(path, Durability::OnSync).of_file("open", path)?;
                storage.reserve(bytes).of_file("reserve space for", path)?;
                Ok(Self { storage: Arc::new(storage), _guard: Guard::Lock(lock), is_ours: true })
            }
            There::Allowed(judged) => {
                let storage = StorageFile::open(path, Durability::OnSync).of_file("open", path)?;
                let is_judged = |file| storage.is_same_as(file);
                if !judged.local().map_or(Ok(true), is_judged).of_file("look at", path)? {
                    return Err(BlockError::Replaced { path: path.to_owned() }.into());
                }
                if judged.kind() == PathKind::File {
                    storage.reserve(bytes).of_file("reserve space for", path)?;
                }
                let length = storage.length().of_file("inspect", path)?;
                if length < bytes {
                    let what = format!("has {} where {} are needed", Bytes(length), Bytes(bytes));
                    return Err(
                        options.refused(what, "ask for a smaller `--flash-cache`, 4 KiB less than the device has")
                    );
                }
                Ok(Self { storage: Arc::new(storage), _guard: Guard::Judged(judged), is_ours: false })
            }
        }
    }

    fn of_file(storage: StorageFile, path: &Path, bytes: u64) -> Result<Self, TargetError> {
        let lock = LockedFile::from(File::open(path).of_file("open", path)?);
        lock_alone(&lock, path)?;
        storage.reserve(bytes).of_file("reserve space for", path)?;
        let marked = files::open_own(path, How::default()).and_then(|file| file.write_all_at(MARK, 0));
        marked.of_file("write", path)?;
        Ok(Self { storage: Arc::new(storage), _guard: Guard::Lock(lock), is_ours: true })
    }
}

impl Drop for FlashFile {
    fn drop(&mut self) {
        let path = self.storage.path();
        // Somebody may have put another file in its place.
        let is_there = File::open(path).and_then(|file| self.storage.is_same_as(&file)).unwrap_or(false);
        if self.is_ours && is_there {
            let _ = files::remove(path);
        }
    }
}

/// Says what forbids to use a path, and changes nothing.
///
/// # Errors
/// As [`FlashFile::open`].
pub(super) fn judge(options: &FlashOptions) -> Result<(), TargetError> {
    look(options).map(drop)
}

fn look(options: &FlashOptions) -> Result<There, TargetError> {
    let path = options.path.as_path();
    let metadata = match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            parent.metadata().of_file("find", parent)?;
            files::judge_new(path).of_file("create", path)?;
            return Ok(There::Nothing);
        }
        found => found.of_file("find", path)?,
    };
    if metadata.is_file() {
        let file = LockedFile::from(File::open(path).of_file("open", path)?);
        let mut mark = [0; MARK.len()];
        if file.read_exact_at(&mut mark, 0).is_ok() && mark == *MARK {
            lock_alone(&file, path)?;
            return Ok(There::Ours(file));
        }
    }
    let judged = check(&[path.to_owned()], Purpose::Write(&options.permission));
    // The leave that raw storage asks for has another flag.
    let mut judged = judged.map_err(|error| match error {
        TargetError::Block(BlockError::NotAllowed { what, .. }) => options.refused(
            format!("would destroy {what}"),
            "if you no longer need its data, type its name: `--flash-cache-destroy NAME`",
        ),
        TargetError::Block(BlockError::Signed { .. }) => options.refused(
            "would destroy what looks used, such as a file system or a partition table".to_owned(),
            "use another device; if nothing of it is needed any more, `wipefs --all` says so",
        ),
        other => other,
    })?;
    Ok(There::Allowed(judged.remove(0)))
}

fn lock_alone(file: &File, path: &Path) -> Result<(), TargetError> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(BlockError::Locked { path: path.to_owned() }.into()),
        // Some file systems have no locks; then nobody can be kept away.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
