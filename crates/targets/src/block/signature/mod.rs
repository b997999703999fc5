//! Traces of what a device is already used for: file systems, volume managers, partition tables, databases.
//!
//! A trace is found by a few bytes at a place that its format fixes. The table errs on the side of finding: who tests a
//! device that only looks used loses a flag, who overwrites one that is used loses data.

mod judged;
mod second_opinion;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;

pub use second_opinion::{SecondOpinion, ask_blkid};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// One trace of earlier use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// What left it, such as `ext4` or `LVM2 physical volume`.
    pub kind: String,
    /// Where it was found, in bytes from the start of the device; unknown where another program found it.
    pub offset_bytes: Option<u64>,
}

impl Signature {
    fn at(kind: impl Into<String>, offset_bytes: u64) -> Self {
        Self { kind: kind.into(), offset_bytes: Some(offset_bytes) }
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset_bytes {
            Some(offset) => write!(f, "{} (at byte {offset})", self.kind),
            None => f.write_str(&self.kind),
        }
    }
}

/// Reads parts of a device: `(offset, length)` to that many bytes.
pub type Read<'a> = dyn FnMut(u64, usize) -> io::Result<Vec<u8>> + 'a;

/// Finds all traces on a device of `size_bytes` bytes, in no particular order. `read` is asked only for ranges inside
/// the device.
///
/// # Errors
/// The first error of `read`: what cannot be read cannot be called unused.
pub fn find(read: &mut Read<'_>, size_bytes: u64) -> io::Result<Vec<Signature>> {
    let mut device = Device { read, size_bytes };
    let mut found = Vec::new();
    for mark in MARKS {
        let Some(offset) = mark.place.offset(size_bytes) else { continue };
        if device.bytes(offset, mark.bytes.len())?.is_some_and(|bytes| bytes == mark.bytes) {
            found.push(Signature::at(mark.kind, offset));
        }
    }
    judged::find(&mut device, &mut found)?;
    Ok(found)
}

/// A device that answers only for ranges inside it.
struct Device<'a, 'b> {
    read: &'a mut Read<'b>,
    size_bytes: u64,
}

impl Device<'_, '_> {
    fn bytes(&mut self, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        if offset.checked_add(length as u64).is_none_or(|end| end > self.size_bytes) {
            return Ok(None);
        }
        let bytes = (self.read)(offset, length)?;
        if bytes.len() == length { Ok(Some(bytes)) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

/// Where a mark stands.
#[derive(Debug, Clone, Copy)]
enum SignatureOffset {
    /// Bytes from the start.
    Start(u64),
    /// Bytes before the end.
    End(u64),
}

impl SignatureOffset {
    fn offset(self, size_bytes: u64) -> Option<u64> {
        match self {
            Self::Start(offset) => Some(offset),
            Self::End(before) => size_bytes.checked_sub(before),
        }
    }
}

/// Bytes that alone are proof enough.
struct Mark {
    kind: &'static str,
    place: SignatureOffset,
    bytes: &'static [u8],
}

const fn start(kind: &'static str, offset: u64, bytes: &'static [u8]) -> Mark {
    Mark { kind, place: SignatureOffset::Start(offset), bytes }
}

const fn end(kind: &'static str, before: u64, bytes: &'static [u8]) -> Mark {
    Mark { kind, place: SignatureOffset::End(before), bytes }
}

const BTRFS: &[u8] = b"_BHRfS_M";
const LUKS_SECOND: &[u8] = b"SKUL\xba\xbe";
const BCACHE: &[u8] = b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81";
const BCACHEFS: &[u8] = b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef";
const STRATIS: &[u8] = b"!Stra0tis\x86\xff\x02^Arh";

/// Formats whose mark is long enough, at its place, that chance does not make it.
const MARKS: &[Mark] = &[
    start("xfs", 0, b"XFSB"),
    // The superblock has copies at 64 MiB and 256 GiB; the first is the only one that a mount looks at.
    start("btrfs", 64 * KIB + 64, BTRFS),
    start("btrfs (second superblock)", 64 * MIB + 64, BTRFS),
    start("f2fs", KIB, b"\x10\x20\xf5\xf2"),
    start("jfs", 32 * KIB, b"JFS1"),
    start("reiserfs", 8 * KIB + 52, b"ReIsErFs"),
    start("reiserfs", 64 * KIB + 52, b"ReIsErFs"),
    start("reiserfs", 64 * KIB + 52, b"ReIsEr2Fs"),
    start("reiserfs", 64 * KIB + 52, b"ReIsEr3Fs"),
    start("gfs2", 64 * KIB, b"\x01\x16\x19\x70"),
    // The superblock is the third block, of 512 to 4,096 bytes.
    start("ocfs2", KIB, b"OCFSV2"),
    start("ocfs2", 2 * KIB, b"OCFSV2"),
    start("ocfs2", 4 * KIB, b"OCFSV2"),
    start("ocfs2", 8 * KIB, b"OCFSV2"),
    start("exfat", 3, b"EXFAT   "),
    start("ntfs", 3, b"NTFS    "),
    start("BitLocker volume", 3, b"-FVE-FS-"),
    start("apfs", 32, b"NXSB"),
    start("squashfs", 0, b"hsqs"),
    start("iso9660", 32 * KIB + 1, b"CD001"),
    start("vmfs volume", MIB, b"\x0d\xd0\x01\xc0"),
    start("vmfs", 2 * MIB, b"\x5e\xf1\xab\x2f"),
    start("LUKS2 (second header)", 16 * KIB, LUKS_SECOND),
    start("LUKS2 (second header)", 32 * KIB, LUKS_SECOND),
    start("LUKS2 (second header)", 64 * KIB, LUKS_SECOND),
    start("LUKS2 (second header)", 128 * KIB, LUKS_SECOND),
    start("LUKS2 (second header)", 256 * KIB, LUKS_SECOND),
    start("LUKS2 (second header)", 512 * KIB, LUKS_SECOND),
    start("LUKS2 (second header)", MIB, LUKS_SECOND),
    start("LUKS2 (second header)", 2 * MIB, LUKS_SECOND),
    start("LUKS2 (second header)", 4 * MIB, LUKS_SECOND),
    start("bcache", 4 * KIB + 24, BCACHE),
    start("bcachefs", 4 * KIB + 24, BCACHEFS),
    start("Stratis pool", 512 + 4, STRATIS),
    start("Stratis pool", 9 * 512 + 4, STRATIS),
    start("Ceph BlueStore", 0, b"bluestore block device"),
    start("VDO volume", 0, b"dmvdo001"),
    // The tag of a disk group's disk, with and without ASMLib; the header has a copy in the last block but one of the
    // second allocation unit, which is of 1 to 64 MiB, in blocks of 4 KiB.
    start("Oracle ASM disk", 32, b"ORCLDISK"),
    start("Oracle ASM disk (second header)", 2 * MIB - 8 * KIB + 32, b"ORCLDISK"),
    start("Oracle ASM disk (second header)", 4 * MIB - 8 * KIB + 32, b"ORCLDISK"),
    start("Oracle ASM disk (second header)", 8 * MIB - 8 * KIB + 32, b"ORCLDISK"),
    start("Oracle ASM disk (second header)", 16 * MIB - 8 * KIB + 32, b"ORCLDISK"),
    start("Oracle ASM disk (second header)", 32 * MIB - 8 * KIB + 32, b"ORCLDISK"),
    start("Oracle ASM disk (second header)", 64 * MIB - 8 * KIB + 32, b"ORCLDISK"),
    start("Oracle ASM disk (second header)", 128 * MIB - 8 * KIB + 32, b"ORCLDISK"),
    start("Oracle data file", 28, b"}|{z"),
    // Metadata inside the device lie at its end, the version's magic behind 60 bytes of identifiers and flags.
    end("DRBD 8", 4 * KIB - 60, b"\x83\x74\x02\x6b"),
    end("DRBD 8", 4 * KIB - 60, b"\x83\x74\x02\x6c"),
    end("DRBD 9", 4 * KIB - 60, b"\x83\x74\x02\x6d"),
    start("GPT partition table", 512, b"EFI PART"),
    start("GPT partition table", 4 * KIB, b"EFI PART"),
    end("GPT partition table (backup)", 512, b"EFI PART"),
    end("GPT partition table (backup)", 4 * KIB, b"EFI PART"),
];
