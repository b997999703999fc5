//! A file that holds data or redo: one of this machine, opened past the page cache where the file system allows, or one on a
//! server.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use files::How;

use super::{Arena, Scrub, Scrubbed, VirtualFile};

/// Whether the kernel's page cache stands between us and storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// O_DIRECT: every request goes to storage.
    Direct,
    /// Through the page cache, because that was asked for or O_DIRECT was refused.
    PageCache,
}

/// When a write counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When the kernel has taken it; durable only after a later [`StorageFile::sync`].
    OnSync,
    /// When it is on stable storage (O_DSYNC).
    EachWrite,
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads only; the file cannot be changed through it.
    Read,
    /// Reads and writes.
    ReadWrite,
}

/// How an existing file or device is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// What for.
    pub access: Access,
    /// Past the page cache, as far as the file system lets us, or through it on purpose.
    pub caching: Caching,
    /// When a write counts as done.
    pub durability: Durability,
}

impl Opening {
    /// For reads past the page cache.
    pub const READ: Self = Self { access: Access::Read, caching: Caching::Direct, durability: Durability::OnSync };
    /// For reads and writes past the page cache.
    pub const WRITE: Self = Self { access: Access::ReadWrite, ..Self::READ };
}

/// An open file of the target.
#[derive(Debug)]
pub struct StorageFile {
    medium: Medium,
    path: PathBuf,
    caching: Caching,
}

#[derive(Debug)]
enum Medium {
    Local(File),
    Virtual(Arc<dyn VirtualFile>),
}

impl StorageFile {
    /// Opens a file that we keep, for reading and writing.
    ///
    /// # Errors
    /// As [`files::open_own`] has it, unless the system only refuses O_DIRECT: then the file is opened through the page cache.
    pub fn open_own(path: &Path, durability: Durability) -> io::Result<Self> {
        Self::open_with(path, Opening { durability, ..Opening::WRITE }, files::open_own)
    }

    /// Opens an existing file or block device for reading and writing, which the caller has judged.
    ///
    /// # Errors
    /// The system's error, unless it only refuses O_DIRECT: then the file is opened through the page cache.
    pub fn open(path: &Path, durability: Durability) -> io::Result<Self> {
        Self::open_as(path, Opening { durability, ..Opening::WRITE })
    }

    /// Opens an existing file or block device; one that is to be written to has been judged by the caller.
    ///
    /// # Errors
    /// The system's error, unless it only refuses O_DIRECT: then the file is opened through the page cache.
    pub fn open_as(path: &Path, opening: Opening) -> io::Result<Self> {
        match opening.access {
            Access::Read => Self::open_with(path, opening, files::open_to_read),
            Access::ReadWrite => Self::open_with(path, opening, files::open_judged),
        }
    }

    /// Creates a file that must not exist yet.
    ///
    /// # Errors
    /// The system's error, also when the file exists.
    pub fn create(path: &Path, durability: Durability) -> io::Result<Self> {
        // Some file systems create the file and refuse only O_DIRECT: then it is there when it is asked for again.
        let make = |path: &Path, how: How| {
            if how.direct { files::make_new(path, how) } else { files::open_or_make_own(path, how) }
        };
        Self::open_with(path, Opening { durability, ..Opening::WRITE }, make)
    }

    fn open_with(path: &Path, opening: Opening, open: impl Fn(&Path, How) -> io::Result<File>) -> io::Result<Self> {
        let durable = opening.durability == Durability::EachWrite;
        let how = How { mode: 0o640, durable, direct: opening.caching == Caching::Direct, ..How::default() };
        let opened = |file, caching| Self { medium: Medium::Local(file), path: path.to_owned(), caching };
        match open(path, how) {
            Err(error) if how.direct && error.raw_os_error() == Some(libc::EINVAL) => {
                Ok(opened(open(path, How { direct: false, ..how })?, Caching::PageCache))
            }
            file => Ok(opened(file?, opening.caching)),
        }
    }

    /// A virtual file, which `address` names in messages and in the record.
    pub fn virtual_at(address: PathBuf, file: Arc<dyn VirtualFile>) -> Self {
        let caching = if file.is_page_cached() { Caching::PageCache } else { Caching::Direct };
        Self { medium: Medium::Virtual(file), path: address, caching }
    }

    /// The file on a server, if it is one.
    pub fn virtual_file(&self) -> Option<&Arc<dyn VirtualFile>> {
        match &self.medium {
            Medium::Local(_) => None,
            Medium::Virtual(file) => Some(file),
        }
    }

    /// The file of this machine, if it is one.
    fn local(&self) -> Option<&File> {
        match &self.medium {
            Medium::Local(file) => Some(file),
            Medium::Virtual(_) => None,
        }
    }

    /// Its path or address, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the page cache is bypassed.
    pub fn caching(&self) -> Caching {
        self.caching
    }

    /// Present length in bytes, of a file or a block device.
    ///
    /// # Errors
    /// The system's or the server's error.
    pub fn length(&self) -> io::Result<u64> {
        match &self.medium {
            Medium::Virtual(file) => file.length(),
            Medium::Local(file) if self.is_block_device()? => {
                // Metadata give a device no length. Nothing of ours uses the file's position.
                let mut position: &File = file;
                position.seek(SeekFrom::End(0))
            }
            Medium::Local(file) => Ok(file.metadata()?.len()),
        }
    }

    /// Whether it is a block device.
    ///
    /// # Errors
    /// The system's error.
    pub fn is_block_device(&self) -> io::Result<bool> {
        self.local().map_or(Ok(false), |file| Ok(file.metadata()?.file_type().is_block_device()))
    }

    /// Size of a block device's logical sector in bytes: no request may be smaller. Unknown for a regular file.
    pub fn logical_sector_bytes(&self) -> Option<u32> {
        let file = self.local().filter(|_| self.is_block_device().is_ok_and(|is| is))?;
        let mut bytes: libc::c_int = 0;
        // SAFETY: the descriptor is ours and that of a block device, which answers this question with one `int`.
        let asked = unsafe { libc::ioctl(file.as_raw_fd(), libc::BLKSSZGET, &raw mut bytes) };
        u32::try_from(bytes).ok().filter(|bytes| asked == 0 && *bytes > 0)
    }

    /// Whether the file still has a name in some directory.
    ///
    /// # Errors
    /// The system's or the server's error.
    pub fn is_linked(&self) -> io::Result<bool> {
        match &self.medium {
            Medium::Local(file) => Ok(file.metadata()?.nlink() > 0),
            Medium::Virtual(file) => file.is_linked(),
        }
    }

    /// See [`VirtualFile::known_failure`]; a file of this machine knows of none.
    pub fn known_failure(&self) -> Option<io::Error> {
        self.virtual_file().and_then(|file| file.known_failure())
    }

    /// Whether `other` is open on the same file or device.
    ///
    /// # Errors
    /// The system's error.
    pub fn is_same_as(&self, other: &File) -> io::Result<bool> {
        let Some(file) = self.local() else { return Ok(false) };
        let (one, other) = (file.metadata()?, other.metadata()?);
        Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
    }

    /// Reserves space on the file system, so that later writes cannot run out of it.
    ///
    /// # Errors
    /// The system's error, such as a full disk. A file system or server that cannot reserve is not an error.
    pub fn reserve(&self, bytes: u64) -> io::Result<()> {
        let bytes = libc::off_t::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let Some(file) = self.local() else { return Ok(()) };
        // SAFETY: plain system call on a descriptor that we own.
        match unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes) } {
            0 => Ok(()),
            _ => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
                error => Err(error),
            },
        }
    }

    /// Whether ranges of it can be discarded. Nothing is.
    ///
    /// # Errors
    /// Why not: of a server's file, of a device or of a file system that cannot, `Unsupported`.
    pub fn check_discards(&self) -> io::Result<()> {
        let fd = self.local().ok_or(io::ErrorKind::Unsupported)?.as_raw_fd();
        // Of a device less than a sector, which the kernel refuses once it knows that the device discards; of a file what is
        // behind its end.
        let is_device = self.is_block_device()?;
        let (offset, bytes) = if is_device { (1, 1) } else { (self.length()?.next_multiple_of(4_096), 4_096) };
        // SAFETY: the descriptor is ours.
        match unsafe { discard(fd, offset, bytes) } {
            0 => Ok(()),
            _ => match io::Error::last_os_error() {
                error if is_device && error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
                error => Err(error),
            },
        }
    }

    /// How much of the first `bytes` bytes of a regular file is really on storage. None where only a server could say.
    ///
    /// # Errors
    /// The system's error; a file system that cannot tell is none.
    pub fn written(&self, bytes: u64) -> io::Result<Option<Written>> {
        self.local().map(|file| written(file, bytes)).transpose()
    }

    /// Smallest unit in which the file can be read and written past the page cache, in bytes: at least 512. Asks the
    /// kernel, and tries where the kernel does not report; then the file must be at least 1 KiB long. Through the page
    /// cache it is a page, since writing less makes the kernel read the rest first.
    pub fn direct_unit_bytes(&self) -> u32 {
        const SECTOR: u32 = 512;
        const PAGE: u32 = 4096;
        if self.caching == Caching::PageCache {
            return PAGE;
        }
        let file = match &self.medium {
            Medium::Local(file) => file,
            Medium::Virtual(file) => return file.unit_bytes(),
        };
        if let Some(reported) = reported_direct_unit(file) {
            return reported.max(SECTOR);
        }
        let Ok(buffer) = Arena::new(PAGE as usize) else { return PAGE };
        // SAFETY: nobody else knows this memory.
        let buffer = unsafe { buffer.bytes_mut(0, SECTOR as usize) };
        match file.read_exact_at(buffer, u64::from(SECTOR)) {
            Ok(()) => SECTOR,
            Err(_) => PAGE,
        }
    }

    /// Makes all earlier writes durable.
    ///
    /// # Errors
    /// The system's or the server's error; data written since the last success may be lost.
    pub fn sync(&self) -> io::Result<()> {
        match &self.medium {
            Medium::Local(file) => file.sync_data(),
            Medium::Virtual(file) => file.sync(),
        }
    }

    /// Reads exactly `buffer.len()` bytes at `offset`, blocking. With direct I/O the buffer must be aligned.
    ///
    /// # Errors
    /// The system's or the server's error, or `UnexpectedEof` when the file is shorter.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match &self.medium {
            Medium::Local(file) => file.read_exact_at(buffer, offset),
            Medium::Virtual(file) => file.read_exact_at(buffer, offset),
        }
    }

    /// Looks for a copy of a range that passes `is_sound`; see [`VirtualFile::read_sound`]. A file of this machine has one copy.
    ///
    /// # Errors
    /// When looking for it failed as such.
    pub fn read_sound(&self, buffer: &mut [u8], offset: u64, is_sound: &dyn Fn(&[u8]) -> bool) -> io::Result<bool> {
        self.virtual_file().map_or(Ok(false), |file| file.read_sound(buffer, offset, is_sound))
    }

    /// Compares all copies of it; see [`VirtualFile::scrub`]. A file of this machine has one copy.
    pub fn scrub(&self, scrub: &Scrub<'_>) -> Option<Scrubbed> {
        self.virtual_file()?.scrub(scrub)
    }

    /// Writes all of `buffer` at `offset`, blocking. With direct I/O the buffer must be aligned.
    ///
    /// # Errors
    /// The system's or the server's error.
    pub fn write_all_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        match &self.medium {
            Medium::Local(file) => file.write_all_at(buffer, offset),
            Medium::Virtual(file) => file.write_all_at(buffer, offset),
        }
    }
}

/// Who has a lock of fcntl on some byte of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordLock {
    /// A process, by its number; none where this process may not see it.
    Process(Option<u32>),
    /// Whoever has an open file description, which may be shared by processes.
    OpenFile,
}

/// Locks a whole file by its open file description, for tests.
#[cfg(test)]
pub(crate) fn lock_description(file: &File) -> io::Result<()> {
    // SAFETY: as in `record_lock`.
    let mut lock: libc::flock = unsafe { MaybeUninit::zeroed().assume_init() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    // SAFETY: as in `record_lock`; the call only reads the structure.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The first lock of fcntl or of an open file description, also one for reading, that others have on any part of a file. A file
/// system without locks has none.
///
/// # Errors
/// The system's error.
pub fn record_lock(file: &File) -> io::Result<Option<RecordLock>> {
    // SAFETY: the structure holds integers only, for which zeroes are valid; a length of 0 reaches to the end, wherever that is.
    let mut lock: libc::flock = unsafe { MaybeUninit::zeroed().assume_init() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: the descriptor is ours, and the call reads and fills one structure of this type.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) } != 0 {
        let error = io::Error::last_os_error();
        // Kernels before 3.15 do not know the question.
        let unknown = [libc::EINVAL, libc::ENOLCK, libc::EOPNOTSUPP, libc::ENOSYS];
        return if error.raw_os_error().is_some_and(|code| unknown.contains(&code)) { Ok(None) } else { Err(error) };
    }
    Ok(match (libc::c_int::from(lock.l_type), lock.l_pid) {
        (libc::F_UNLCK, _) => None,
        (_, -1) => Some(RecordLock::OpenFile),
        (_, process) => Some(RecordLock::Process(u32::try_from(process).ok().filter(|process| *process > 0))),
    })
}

fn reported_direct_unit(file: &File) -> Option<u32> {
    let mut reported = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the path is an empty string that ends with NUL, so the call is about the descriptor, which we own;
    // `reported` is writable and of the type that the call fills.
    let result = unsafe {
        let (fd, flags) = (file.as_raw_fd(), libc::AT_EMPTY_PATH);
        libc::statx(fd, c"".as_ptr(), flags, libc::STATX_DIOALIGN, reported.as_mut_ptr())
    };
    // SAFETY: the structure holds integers only, for which zeroes are valid.
    let reported = unsafe { reported.assume_init() };
    let known = result == 0 && reported.stx_mask & libc::STATX_DIOALIGN != 0 && reported.stx_dio_offset_align > 0;
    known.then(|| reported.stx_dio_offset_align.max(reported.stx_dio_mem_align))
}

/// The descriptors of files of this machine, which are open as long as the files.
///
/// # Errors
/// `Unsupported` where one of them is on a server.
pub(super) fn fds(files: &[Arc<StorageFile>]) -> io::Result<Vec<RawFd>> {
    let fd = |file: &Arc<StorageFile>| file.local().map(AsRawFd::as_raw_fd).ok_or(io::ErrorKind::Unsupported.into());
    files.iter().map(fd).collect()
}

/// `BLKDISCARD` of `linux/fs.h`: `_IO(0x12, 119)`. It takes an offset and a length, both of 64 bits.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// Gives a range of a file or block device back. The answer is that of the system call.
///
/// # Safety
/// The descriptor must be open.
pub(super) unsafe fn discard(fd: RawFd, offset: u64, bytes: u64) -> i32 {
    let range = [offset, bytes];
    // SAFETY: the caller keeps the descriptor open, and the range lives until the call has returned.
    let done = unsafe { libc::ioctl(fd, BLKDISCARD, range.as_ptr()) };
    // Files do not know this request.
    if done == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ENOTTY) {
        return done;
    }
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the caller keeps the descriptor open; no memory is given.
    unsafe { libc::fallocate64(fd, mode, offset as i64, bytes as i64) }
}

// How much of a file is really on storage.
//
// A read of a hole, or of space that was only reserved, is answered by the file system with zeroes: no device sees it.

/// What stands behind a range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Bytes that hold data.
    pub data_bytes: u64,
    /// Bytes that were reserved and never written; unknown where the file system does not report them from data.
    pub reserved_bytes: Option<u64>,
    /// Bytes that nothing stands behind.
    pub hole_bytes: u64,
}

/// Looks at the first `bytes` bytes of a regular file, which must be that long.
///
/// # Errors
/// The system's error. A file system that cannot tell is no error: its files then count as data, as far as it gives
/// space to them at all.
fn written(file: &File, bytes: u64) -> io::Result<Written> {
    match mapped(file, bytes) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL)) => {
            sought(file, bytes)
        }
        mapped => mapped,
    }
}

/// `FS_IOC_FIEMAP`, see the kernel's `Documentation/filesystems/fiemap.rst`.
const FIEMAP: libc::Ioctl = libc::_IOWR::<Head>(b'f' as u32, 11);
/// Write cached data first, so that each extent has its place.
const SYNC: u32 = 1;
const LAST: u32 = 1;
/// Reserved and never written.
const UNWRITTEN: u32 = 0x800;
const EXTENTS: usize = 256;

/// The kernel's `struct fiemap` without its extents.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Head {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// The kernel's `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Question {
    head: Head,
    extents: [Extent; EXTENTS],
}

fn mapped(file: &File, bytes: u64) -> io::Result<Written> {
    let mut question = Box::new(Question { head: Head::default(), extents: [Extent::default(); EXTENTS] });
    let (mut data_bytes, mut reserved_bytes) = (0, 0);
    let mut start = 0;
    while start < bytes {
        let length = bytes - start;
        question.head = Head { start, length, flags: SYNC, extent_count: EXTENTS as u32, ..Head::default() };
        // SAFETY: the descriptor is open, and `question` has the layout that the kernel expects, with room for as many
        // extents as it says.
        if unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP, &raw mut *question) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let found = question.head.mapped_extents as usize;
        let Some(last) = question.extents[..found.min(EXTENTS)].last().copied() else { break };
        for extent in &question.extents[..found.min(EXTENTS)] {
            let from = extent.logical.max(start);
            let to = extent.logical.saturating_add(extent.length).min(bytes);
            let sum = if extent.flags & UNWRITTEN != 0 { &mut reserved_bytes } else { &mut data_bytes };
            *sum += to.saturating_sub(from);
        }
        let end = last.logical.saturating_add(last.length);
        if last.flags & LAST != 0 || end <= start {
            break;
        }
        start = end;
    }
    let hole_bytes = bytes.saturating_sub(data_bytes + reserved_bytes);
    Ok(Written { data_bytes, reserved_bytes: Some(reserved_bytes), hole_bytes })
}

/// The same from what each file system reports: where data begin and end, and how much space the file has.
fn sought(file: &File, bytes: u64) -> io::Result<Written> {
    let seek = |from: u64, whence| {
        let from = libc::off_t::try_from(from).map_err(|_| io::ErrorKind::FileTooLarge)?;
        // SAFETY: plain system call on an open descriptor.
        let found = unsafe { libc::lseek(file.as_raw_fd(), from, whence) };
        u64::try_from(found).map_err(|_| io::Error::last_os_error())
    };
    let mut data_bytes = 0;
    let mut position = 0;
    while position < bytes {
        let data = match seek(position, libc::SEEK_DATA) {
            // Nothing but a hole up to the end.
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => break,
            found => found?.min(bytes),
        };
        position = seek(data, libc::SEEK_HOLE)?.min(bytes);
        data_bytes += position - data;
    }
    // A file system without holes of its own calls everything data; its space says more.
    let metadata = file.metadata()?;
    if metadata.blocks() == 0 {
        data_bytes = 0;
    }
    Ok(Written { data_bytes, reserved_bytes: None, hole_bytes: bytes - data_bytes })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use test_support::skip::skip;

    const MIB: u64 = 1 << 20;

    fn reserve(file: &File, bytes: u64) -> bool {
        // SAFETY: plain system call on an open descriptor.
        unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes as libc::off_t) == 0 }
    }

    #[test]
    fn the_kernels_structures_have_the_kernels_sizes() {
        assert_eq!((size_of::<Head>(), size_of::<Extent>()), (32, 56));
        #[cfg(target_arch = "x86_64")]
        assert_eq!(FIEMAP, 0xc020_660b);
    }

    #[test]
    fn data_and_holes_are_distinguished() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8 * MIB).unwrap();
        assert_eq!(written(&file, 8 * MIB).unwrap().hole_bytes, 8 * MIB);
        // Every other MiB.
        for mib in [0, 2, 4] {
            file.write_all_at(&vec![1; MIB as usize], mib * MIB).unwrap();
        }
        for look in [mapped, sought] {
            match look(&file, 8 * MIB) {
                Ok(found) => assert_eq!((found.data_bytes, found.hole_bytes), (3 * MIB, 5 * MIB)),
                Err(error) => skip(format_args!("this file system cannot tell: {error}")),
            }
        }
        assert_eq!(written(&file, MIB).unwrap().hole_bytes, 0, "only the range asked for counts");
    }

    #[test]
    fn more_extents_than_one_question_holds_are_all_counted() {
        const PIECES: u64 = 600;
        let file = tempfile::tempfile().unwrap();
        for piece in 0..PIECES {
            file.write_all_at(&[1; 4096], piece * 64 * 1024).unwrap();
        }
        let bytes = PIECES * 64 * 1024;
        file.set_len(bytes).unwrap();
        let found = written(&file, bytes).unwrap();
        assert_eq!(found.data_bytes, PIECES * 4096);
        assert_eq!(found.data_bytes + found.hole_bytes, bytes);
    }

    #[test]
    fn reserved_space_is_not_data() {
        let file = tempfile::tempfile().unwrap();
        if !reserve(&file, 4 * MIB) {
            skip("this file system cannot reserve space");
            return;
        }
        file.write_all_at(&vec![1; MIB as usize], 0).unwrap();
        let found = written(&file, 4 * MIB).unwrap();
        if found.reserved_bytes.is_none() {
            skip("this file system does not report reserved space from data");
            return;
        }
        assert_eq!(found, Written { data_bytes: MIB, reserved_bytes: Some(3 * MIB), hole_bytes: 0 });
    }
}
