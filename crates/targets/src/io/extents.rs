//! How much of a file is really on storage.
//!
//! A read of a hole, or of space that was only reserved, is answered by the file system with zeroes: no device sees it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

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
pub(super) fn written(file: &File, bytes: u64) -> io::Result<Written> {
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
