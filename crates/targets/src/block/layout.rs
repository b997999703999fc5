//! Laying out files for load, and looking whether a file is fit for it.
//!
//! A read of a file that was only made long, or only reserved, never reaches a device. So a file is written from its
//! beginning to its end with stamped data that neither compress nor have duplicates, and takes its name when it is
//! complete.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::BlockError;
use super::safety::{PathKind, patiently};
use super::stamp::{self, Cover, FileId, SECTOR_BYTES};
use crate::crew::{Crew, Job, Piece, Progress};
use crate::error::{FileContext, TargetError};
use crate::io::{Caching, Direction, Durability, IoEngine, Opening, StorageFile};
use files::LockedFile;
use measure::os;
use model::units::Bytes;

/// Generation of data as they are laid out; below all that a run gives out.
pub const LAID_GENERATION: u64 = 1;
/// Size of a write: large enough to run at a disk's sequential rate.
const PIECE_BYTES: u64 = 1 << 20;
/// With four requests each, eight are in flight; and one thread builds data while the other's go out.
const THREADS: u32 = 2;
const GRAIN_BYTES: u64 = 4096;

/// What a path holds, from the point of view of load that reads it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FileState {
    /// Nothing.
    Missing,
    /// Fewer bytes than wanted.
    TooShort {
        /// Length in bytes.
        length_bytes: u64,
    },
    /// Parts of it stand nowhere, so that reading them reaches no device.
    Sparse {
        /// Share of the wanted bytes that hold data, from 0 to 1.
        written_share: f64,
    },
    /// All of it has space, and parts were never written, so that reading them reaches no device.
    NeverWritten {
        /// Share of the wanted bytes that hold data, from 0 to 1.
        written_share: f64,
    },
    /// Data that Plimsoll did not lay out; good for reads.
    Foreign {
        /// Length in bytes.
        length_bytes: u64,
    },
    /// Laid out by Plimsoll.
    Laid {
        /// Number of the file.
        id: FileId,
        /// Length in bytes.
        length_bytes: u64,
    },
}

/// Looks at a path of which load wants to touch the first `wanted_bytes` bytes. Block devices are always written as far
/// as can be known from here.
///
/// # Errors
/// When it is neither a file nor a block device, or the system's error.
pub fn inspect(path: &Path, wanted_bytes: u64) -> Result<FileState, TargetError> {
    // Before it is opened: opening a pipe waits for somebody at its other end.
    let metadata = match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FileState::Missing),
        found => found.of_file("find", path)?,
    };
    let kind = PathKind::of(path, &metadata)?;
    let opening = Opening { caching: Caching::PageCache, ..Opening::READ };
    let file = StorageFile::open_as(path, opening).of_file("open", path)?;
    let is_device = kind == PathKind::BlockDevice;
    state(&file, wanted_bytes, is_device)
}

/// The same of a file that is open.
pub(super) fn inspect_open(file: &StorageFile, wanted_bytes: u64) -> Result<FileState, TargetError> {
    state(file, wanted_bytes, false)
}

fn state(file: &StorageFile, wanted_bytes: u64, is_device: bool) -> Result<FileState, TargetError> {
    let path = file.path();
    let length_bytes = file.length().of_file("find the size of", path)?;
    if length_bytes < wanted_bytes || length_bytes == 0 {
        return Ok(FileState::TooShort { length_bytes });
    }
    if !is_device
        && wanted_bytes > 0
        && let Some(found) = file.written(wanted_bytes).of_file("find the extents of", path)?
    {
        let written_share = found.data_bytes as f64 / wanted_bytes as f64;
        if found.hole_bytes > 0 {
            return Ok(FileState::Sparse { written_share });
        }
        if found.reserved_bytes.is_some_and(|reserved| reserved > 0) {
            return Ok(FileState::NeverWritten { written_share });
        }
    }
    let laid = laid_id(file, length_bytes).of_file("read", path)?;
    Ok(laid.map_or(FileState::Foreign { length_bytes }, |id| FileState::Laid { id, length_bytes }))
}

/// Whether the first `bytes` bytes of a file or device were laid out at once, as far as their first and last sectors show.
///
/// # Errors
/// The system's error.
pub(super) fn is_laid(path: &Path, bytes: u64) -> Result<bool, TargetError> {
    let opening = Opening { caching: Caching::PageCache, ..Opening::READ };
    let file = StorageFile::open_as(path, opening).of_file("open", path)?;
    Ok(laid_id(&file, bytes).of_file("read", path)?.is_some())
}

/// The number that both the first and the last sector carry.
fn laid_id(file: &StorageFile, length_bytes: u64) -> io::Result<Option<FileId>> {
    let sectors = length_bytes / SECTOR_BYTES as u64;
    let Some(last) = sectors.checked_sub(1).map(|last| last * SECTOR_BYTES as u64) else { return Ok(None) };
    let mut sector = [0; SECTOR_BYTES];
    file.read_exact_at(&mut sector, 0)?;
    let Some(id) = FileId::found_in(&sector) else { return Ok(None) };
    file.read_exact_at(&mut sector, last)?;
    Ok(stamp::check(&sector, last, id).is_ok().then_some(id))
}

/// Makes a file of exactly `bytes` bytes that is fit for load, and gives its number. It appears under its name when it
/// is complete and durable; nothing is left of one that failed or was interrupted.
///
/// # Errors
/// [`BlockError::Size`], [`BlockError::Replaced`], [`BlockError::NoSpace`], [`BlockError::Locked`] while another process
/// lays out the same file, [`TargetError::Interrupted`], or the system's error.
pub fn lay_out(
    path: &Path,
    bytes: u64,
    replaced: Option<&File>,
    io_engine: IoEngine,
    progress: &dyn Fn(Progress),
    stop: &AtomicBool,
) -> Result<FileId, TargetError> {
    // A name that is a link stays one: the file that it leads to is replaced.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let named = || path.to_owned();
    if bytes == 0 || !bytes.is_multiple_of(GRAIN_BYTES) {
        return Err(BlockError::Size { path: named(), size: Bytes(bytes) }.into());
    }
    if replaced.is_none() && real.symlink_metadata().is_ok() {
        return Err(BlockError::Replaced { path: named() }.into());
    }
    let folder = folder_of(&real);
    if let Some(space) = os::space(folder)
        && space.available_bytes < bytes
    {
        let available = Bytes(space.available_bytes);
        return Err(BlockError::NoSpace { path: named(), needed: Bytes(bytes), available }.into());
    }
    let unfinished = Unfinished::create(&real)?;
    let file = unfinished.file.clone();
    file.reserve(bytes).of_file("reserve space for", path)?;
    let id = lay_over(&file, bytes, io_engine, progress, stop)?;
    // Filling takes minutes, in which somebody may have put his own file there.
    let renamed = match replaced {
        Some(judged) if !is_named(judged, &real).of_file("look at", path)? => {
            return Err(BlockError::Replaced { path: named() }.into());
        }
        Some(_) => files::rename(&unfinished.path, &real),
        None => files::rename_new(&unfinished.path, &real),
    };
    match renamed {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(BlockError::Replaced { path: named() }.into());
        }
        renamed => renamed.of_file("rename the complete file to", path)?,
    }
    files::sync_directory(folder).of_file("make durable", folder)?;
    Ok(id)
}

/// Whether a path is still that of an open file.
fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let (one, other) = (file.metadata()?, fs::symlink_metadata(path)?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// The directory that a path lies in.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes stamped data over the first `bytes` bytes, whole multiples of 4 KiB, of a file or device that may be written
/// to, makes them durable, and gives the file's new number. One that was interrupted is partly overwritten.
///
/// # Errors
/// [`TargetError::Interrupted`], or the system's error.
pub fn lay_over(
    file: &Arc<StorageFile>,
    bytes: u64,
    io_engine: IoEngine,
    progress: &dyn Fn(Progress),
    stop: &AtomicBool,
) -> Result<FileId, TargetError> {
    // Other data each time: storage that removes duplicates may still have the ones laid out before.
    let seed = RandomState::new().build_hasher().finish();
    let filling = Filling { path: file.path(), bytes, seed, id: FileId::new(seed) };
    let files = std::slice::from_ref(file);
    Crew { files, io_engine, threads: THREADS, stop, progress, total_bytes: bytes }.run(&filling)?;
    file.sync().of_file("make durable", file.path())?;
    Ok(filling.id)
}

/// The name that a file has until it is complete.
pub fn unfinished_path(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(UNFINISHED);
    folder_of(path).join(name)
}

/// The end of that name.
const UNFINISHED: &str = ".plimsoll-unfinished";

/// A file under its temporary name; removed unless it was renamed.
struct Unfinished {
    path: PathBuf,
    file: Arc<StorageFile>,
    /// Tells others that somebody is at work, so that they do not take the file for one that was left behind.
    _lock: LockedFile,
}

impl Unfinished {
    /// Clears away what an earlier attempt left, and begins a new file.
    fn create(real: &Path) -> Result<Self, TargetError> {
        let path = unfinished_path(real);
        let locked = || BlockError::Locked { path: real.to_owned() };
        let is_locked = |error: &fs::TryLockError| matches!(error, fs::TryLockError::WouldBlock);
        let is_at_work = |file: &File| patiently(|| file.try_lock(), is_locked).is_err_and(|error| is_locked(&error));
        // The name is known in advance: what is not a file of ours is refused, neither waited for nor removed.
        match files::open_own(&path, files::How::default()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            left => {
                if is_at_work(&LockedFile::from(left.of_file("use the temporary file", &path)?)) {
                    return Err(locked().into());
                }
                files::remove(&path).of_file("remove", &path)?;
            }
        }
        let file = StorageFile::create(&path, Durability::OnSync).of_file("create", real)?;
        let lock = LockedFile::from(File::open(&path).of_file("open", &path)?);
        // Somebody may have cleared away our file before it was locked, and may have begun another.
        if is_at_work(&lock)
            || !file.is_same_as(&File::open(&path).of_file("open", &path)?).of_file("look at", &path)?
        {
            return Err(locked().into());
        }
        Ok(Self { path, file: Arc::new(file), _lock: lock })
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After the rename there is nothing; and nobody could be notified of a failure here.
        let _ = files::remove(&self.path);
    }
}

/// All writes of one file.
struct Filling<'a> {
    path: &'a Path,
    bytes: u64,
    seed: u64,
    id: FileId,
}

impl Job for Filling<'_> {
    const DIRECTION: Direction = Direction::Write;
    const BUFFER_BYTES: usize = PIECE_BYTES as usize;

    fn piece(&self, number: u64) -> Option<Piece> {
        let offset = number * PIECE_BYTES;
        let bytes = PIECE_BYTES.min(self.bytes.checked_sub(offset)?) as u32;
        (bytes > 0).then_some(Piece { file: 0, offset, bytes })
    }

    fn prepare(&self, number: u64, buffer: &mut [u8]) {
        stamp::fill(buffer, self.seed, number);
        stamp::write_stamps(buffer, number * PIECE_BYTES, LAID_GENERATION, self.id, Cover::Sector);
    }

    fn finish(&self, piece: &Piece, _: u64, _: &mut [u8], moved: io::Result<u32>) -> Result<(), TargetError> {
        let source = match moved {
            Ok(moved) if moved == piece.bytes => return Ok(()),
            Ok(moved) => io::Error::new(io::ErrorKind::WriteZero, format!("only {moved} bytes were written")),
            Err(error) => error,
        };
        let (path, offset, bytes) = (self.path.to_owned(), piece.offset, piece.bytes);
        Err(TargetError::Request { action: "write", path, offset, bytes, source })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::os::unix::fs::FileExt;
    use std::sync::Mutex;
    use std::sync::atomic::Ordering;

    use super::*;
    use test_support::skip::skip;

    const MIB: u64 = 1 << 20;

    fn lay(path: &Path, bytes: u64, replaced: Option<&File>) -> Result<FileId, TargetError> {
        let (engine, _) = IoEngine::best_available();
        lay_out(path, bytes, replaced, engine, &|_| {}, &AtomicBool::new(false))
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_laid_out_in_its_exact_size_and_every_sector_is_stamped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let bytes = 9 * MIB + 4096;
        let seen = Mutex::new(Vec::new());
        let progress = |progress: Progress| seen.lock().unwrap().push(progress);
        let (engine, _) = IoEngine::best_available();
        let id = lay_out(&path, bytes, None, engine, &progress, &AtomicBool::new(false)).unwrap();

        let data = fs::read(&path).unwrap();
        assert_eq!(data.len() as u64, bytes);
        assert_eq!(stamp::check(&data, 0, id), Ok(LAID_GENERATION));
        let filling: HashSet<&[u8]> = data.chunks(SECTOR_BYTES).map(|sector| &sector[32..]).collect();
        assert_eq!(filling.len() as u64, bytes / SECTOR_BYTES as u64, "no two sectors are filled alike");
        assert_eq!(seen.into_inner().unwrap().last(), Some(&Progress { done_bytes: bytes, total_bytes: bytes }));
        assert_eq!(names(directory.path()), ["data"]);
        assert_eq!(inspect(&path, bytes).unwrap(), FileState::Laid { id, length_bytes: bytes });
    }

    #[test]
    fn an_interrupted_file_leaves_nothing_and_the_old_one_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        fs::write(&path, "old").unwrap();
        let old = File::open(&path).unwrap();
        let stop = AtomicBool::new(true);
        let (engine, _) = IoEngine::best_available();
        let laid = lay_out(&path, 64 * MIB, Some(&old), engine, &|_| stop.store(true, Ordering::Relaxed), &stop);
        assert!(matches!(laid, Err(TargetError::Interrupted)));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(directory.path()), ["data"]);
    }

    #[test]
    fn a_file_that_is_there_is_replaced_only_when_reported() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        fs::write(&path, "old").unwrap();
        let is_replaced =
            |laid: Result<FileId, TargetError>| matches!(laid, Err(TargetError::Block(BlockError::Replaced { .. })));
        assert!(is_replaced(lay(&path, MIB, None)));
        let first = lay(&path, MIB, Some(&File::open(&path).unwrap())).unwrap();
        let judged = File::open(&path).unwrap();
        let second = lay(&path, MIB, Some(&judged)).unwrap();
        assert_ne!(first, second, "old data must not pass for new ones");
        assert!(is_replaced(lay(&path, MIB, Some(&judged))), "another file has its name by now");
        assert_eq!(names(directory.path()), ["data"]);
    }

    #[test]
    fn a_file_that_comes_while_another_is_filled_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let come = |_: Progress| fs::write(&path, "somebody's").unwrap();
        let (engine, _) = IoEngine::best_available();
        assert!(lay_out(&path, 8 * MIB, None, engine, &come, &AtomicBool::new(false)).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"somebody's");
        assert_eq!(names(directory.path()), ["data"]);
    }

    #[test]
    fn a_name_known_in_advance_that_is_no_file_of_ours_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let left = directory.path().join(".data.plimsoll-unfinished");
        rustix::fs::mknodat(rustix::fs::CWD, &left, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        assert!(lay(&path, MIB, None).unwrap_err().to_string().contains("temporary file"));
        fs::remove_file(&left).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &left).unwrap();
        assert!(lay(&path, MIB, None).is_err());
        assert!(left.symlink_metadata().unwrap().is_symlink(), "it is left as it is");
    }

    #[test]
    fn what_an_earlier_attempt_left_is_cleared_away_unless_it_is_at_work() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let left = directory.path().join(".data.plimsoll-unfinished");
        fs::write(&left, "half").unwrap();
        let at_work = File::open(&left).unwrap();
        at_work.lock().unwrap();
        assert!(lay(&path, MIB, None).unwrap_err().to_string().contains("in use by another Plimsoll"));
        drop(at_work);
        lay(&path, MIB, None).unwrap();
        assert_eq!(names(directory.path()), ["data"]);
    }

    #[test]
    fn impossible_sizes_are_refused_before_anything_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        for bytes in [0, 5000] {
            assert!(lay(&path, bytes, None).unwrap_err().to_string().contains("multiple of 4 KiB"));
        }
        let error = lay(&path, 1 << 60, None).unwrap_err();
        assert!(error.to_string().contains("free"), "{error}");
        assert!(error.hint().is_some());
        assert!(names(directory.path()).is_empty());
    }

    #[test]
    fn files_that_no_device_would_see_reads_of_are_distinguished() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        assert_eq!(inspect(&path, MIB).unwrap(), FileState::Missing);
        let file = File::create(&path).unwrap();
        assert_eq!(inspect(&path, 0).unwrap(), FileState::TooShort { length_bytes: 0 });
        file.set_len(4 * MIB).unwrap();
        assert_eq!(inspect(&path, 8 * MIB).unwrap(), FileState::TooShort { length_bytes: 4 * MIB });
        assert_eq!(inspect(&path, 4 * MIB).unwrap(), FileState::Sparse { written_share: 0.0 });
        file.write_all_at(&vec![7; 3 * MIB as usize], 0).unwrap();
        assert_eq!(inspect(&path, 4 * MIB).unwrap(), FileState::Sparse { written_share: 0.75 });
        assert_eq!(inspect(&path, 3 * MIB).unwrap(), FileState::Foreign { length_bytes: 4 * MIB });
    }

    #[test]
    fn a_file_that_was_only_reserved_is_not_taken_for_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        StorageFile::create(&path, Durability::OnSync).unwrap().reserve(4 * MIB).unwrap();
        match inspect(&path, 4 * MIB).unwrap() {
            FileState::NeverWritten { written_share } => assert_eq!(written_share, 0.0),
            other => skip(format_args!("this file system does not report reserved space from data: {other:?}")),
        }
    }

    #[test]
    fn a_laid_file_that_was_cut_or_made_longer_is_no_laid_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        lay(&path, MIB, None).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.write_all_at(&[1; 4096], MIB).unwrap();
        assert_eq!(inspect(&path, MIB).unwrap(), FileState::Foreign { length_bytes: MIB + 4096 });
    }

    #[test]
    fn a_link_stays_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("data"), directory.path().join("link"));
        fs::write(&path, "").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let id = lay(&link, MIB, Some(&File::open(&path).unwrap())).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(inspect(&path, MIB).unwrap(), FileState::Laid { id, length_bytes: MIB });
    }

    #[test]
    fn a_pipe_is_refused_without_waiting_for_its_other_end() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        if !made.is_ok_and(|status| status.success()) {
            skip("no mkfifo");
            return;
        }
        assert!(inspect(&pipe, 0).unwrap_err().to_string().contains("is a named pipe"));
    }
}
