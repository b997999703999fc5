//! Traces of what a device is already used for: file systems, volume managers, partition tables, databases.
//!
//! A trace is found by a few bytes at a place that its format fixes. The table errs on the side of finding: who tests a
//! device that only looks used loses a flag, who overwrites one that is used loses data.

use std::path::Path;
use std::process::{Command, Stdio};
use std::{fmt, io};

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
    find_judged(&mut device, &mut found)?;
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

/// What another program says of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecondOpinion {
    /// It is not installed or could not look.
    Silent,
    /// It found nothing.
    Nothing,
    /// It found this.
    Found(Vec<Signature>),
}

/// Asks `blkid` to look at the device itself, not at what it remembers.
pub fn ask_blkid(path: &Path) -> SecondOpinion {
    let mut command = Command::new("blkid");
    command.args(["-p", "-o", "export"]).arg(path).stdin(Stdio::null()).stderr(Stdio::null());
    match command.output() {
        Ok(output) => heard(output.status.code(), &String::from_utf8_lossy(&output.stdout)),
        Err(_) => SecondOpinion::Silent,
    }
}

/// Exit code 2 stands for nothing found, also where the device could not be opened; 8 for several traces that exclude
/// each other.
fn heard(code: Option<i32>, export: &str) -> SecondOpinion {
    let said = |kind: String| Signature { kind: format!("{kind}, says blkid"), offset_bytes: None };
    let value = |key: &str| export.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    match code {
        Some(0) => {
            let table = value("PTTYPE").map(|kind| said(format!("{kind} partition table")));
            let content = value("TYPE").map(|kind| said(kind.to_owned()));
            let found: Vec<_> = content.into_iter().chain(table).collect();
            // What is left are facts about a partition's place in its disk.
            if found.is_empty() { SecondOpinion::Nothing } else { SecondOpinion::Found(found) }
        }
        Some(2) => SecondOpinion::Nothing,
        Some(8) => SecondOpinion::Found(vec![said("traces of several formats".to_owned())]),
        _ => SecondOpinion::Silent,
    }
}

// Formats whose mark alone is too short, or is written in several places or ways.

/// A rule: what it finds goes into the list.
type Rule = fn(&mut Device<'_, '_>, &mut Vec<Signature>) -> io::Result<()>;

fn find_judged(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    let rules: [Rule; 8] = [ext, swap, lvm2, md, luks, zfs, udf, boot_sector];
    rules.iter().try_for_each(|rule| rule(device, found))
}

fn u16_le(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_le(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// ext2, ext3 and ext4 share a superblock at 1 KiB, and differ in the features that it lists.
fn ext(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    const MAGIC: u16 = 0xef53;
    const HAS_JOURNAL: u32 = 0x4;
    const JOURNAL_DEVICE: u32 = 0x8;
    // Extents, 64-bit block numbers, flexible groups, inline data: what ext3 does not know.
    const ONLY_EXT4: u32 = 0x40 | 0x80 | 0x200 | 0x8000;
    let Some(block) = device.bytes(KIB, 128)? else { return Ok(()) };
    // The magic has two bytes only. Blocks are of 1 KiB to 64 KiB, and there have been two revisions.
    let sane = u32_le(&block, 24) <= 6 && u32_le(&block, 76) <= 1;
    if u16_le(&block, 56) == MAGIC && sane {
        let (compatible, incompatible) = (u32_le(&block, 92), u32_le(&block, 96));
        let kind = match () {
            () if incompatible & JOURNAL_DEVICE != 0 => "ext journal device",
            () if incompatible & ONLY_EXT4 != 0 => "ext4",
            () if compatible & HAS_JOURNAL != 0 => "ext3",
            () => "ext2",
        };
        found.push(Signature::at(kind, KIB + 56));
    }
    Ok(())
}

/// Swap space has its mark at the end of the first page, whatever a page was where it was made. A hibernated machine
/// leaves another mark at the same place.
fn swap(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    const SWAP: [&[u8]; 2] = [b"SWAPSPACE2", b"SWAP-SPACE"];
    const HIBERNATED: [&[u8]; 4] = [b"S1SUSPEND\0", b"S2SUSPEND\0", b"ULSUSPEND\0", b"LINHIB0001"];
    for page in [4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB] {
        let Some(mark) = device.bytes(page - 10, 10)? else { continue };
        if SWAP.contains(&mark.as_slice()) {
            found.push(Signature::at("swap space", page - 10));
        }
        if HIBERNATED.contains(&mark.as_slice()) {
            found.push(Signature::at("swap space of a hibernated machine", page - 10));
        }
    }
    Ok(())
}

/// A label may stand in any of the first four sectors.
fn lvm2(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    for offset in (0..4).map(|sector| sector * 512) {
        let Some(label) = device.bytes(offset, 32)? else { continue };
        if label.starts_with(b"LABELONE") && label[24..].starts_with(b"LVM2 001") {
            found.push(Signature::at("LVM2 physical volume", offset));
        }
    }
    Ok(())
}

/// Linux software RAID: version 0.90 near the end in the byte order of the machine that made it, 1.0 near the end, 1.1
/// at the start and 1.2 at 4 KiB.
fn md(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    const MAGIC: u32 = 0xa92b_4efc;
    const RESERVED: u64 = 64 * KIB;
    let size = device.size_bytes;
    let near_end = |distance: u64, unit: u64| size.checked_sub(distance).map(|at| at - at % unit);
    let places = [
        ("0.90", (size - size % RESERVED).checked_sub(RESERVED)),
        ("1.0", near_end(8 * KIB, 4 * KIB)),
        ("1.1", Some(0)),
        ("1.2", Some(4 * KIB)),
    ];
    for (version, offset) in places {
        let Some(offset) = offset else { continue };
        let Some(block) = device.bytes(offset, 8)? else { continue };
        let major = u32::from(version != "0.90");
        let little = u32_le(&block, 0) == MAGIC && u32_le(&block, 4) == major;
        let big = block[..4] == MAGIC.to_be_bytes() && block[4..] == major.to_be_bytes();
        if little || (big && major == 0) {
            found.push(Signature::at(format!("Linux RAID member (version {version})"), offset));
        }
    }
    Ok(())
}

fn luks(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    let Some(header) = device.bytes(0, 8)? else { return Ok(()) };
    if header.starts_with(b"LUKS\xba\xbe") {
        found.push(Signature::at(format!("LUKS{}", u16::from_be_bytes([header[6], header[7]])), 0));
    }
    Ok(())
}

/// Four labels of 256 KiB, two at each end; the upper half of a label is a ring of uberblocks, each on a multiple of
/// 1 KiB at least, in the byte order of the machine that wrote it.
fn zfs(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    const LABEL: u64 = 256 * KIB;
    const UBERBLOCK: u64 = 0x00ba_b10c;
    let aligned = device.size_bytes - device.size_bytes % LABEL;
    let labels = [Some(0), Some(LABEL), aligned.checked_sub(2 * LABEL), aligned.checked_sub(LABEL)];
    for label in labels.into_iter().flatten() {
        let Some(ring) = device.bytes(label + LABEL / 2, (LABEL / 2) as usize)? else { continue };
        let marked =
            |block: &[u8]| block.starts_with(&UBERBLOCK.to_le_bytes()) || block.starts_with(&UBERBLOCK.to_be_bytes());
        if let Some(index) = ring.chunks_exact(KIB as usize).position(marked) {
            found.push(Signature::at("ZFS label", label + LABEL / 2 + index as u64 * KIB));
        }
    }
    Ok(())
}

/// The volume recognition sequence begins at 32 KiB, one descriptor a sector of 2 KiB or more.
fn udf(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    for offset in (0..16).map(|sector| 32 * KIB + sector * 2 * KIB) {
        let Some(descriptor) = device.bytes(offset, 6)? else { continue };
        if [b"NSR02", b"NSR03"].iter().any(|mark| descriptor[1..] == mark[..]) {
            found.push(Signature::at("udf", offset + 1));
        }
    }
    Ok(())
}

/// FAT and MBR end their first sector in the same way, so FAT is looked for first and excludes the other.
fn boot_sector(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    let Some(sector) = device.bytes(0, 512)? else { return Ok(()) };
    if !sector.ends_with(&[0x55, 0xaa]) {
        return Ok(());
    }
    let fat = [(54, &b"FAT12   "[..]), (54, b"FAT16   "), (54, b"FAT     "), (82, b"FAT32   ")];
    if let Some((at, name)) = fat.into_iter().find(|(at, name)| sector[*at..].starts_with(name)) {
        found.push(Signature::at(String::from_utf8_lossy(name).trim().to_lowercase(), at as u64));
        return Ok(());
    }
    let entries: Vec<&[u8]> = sector[446..510].chunks_exact(16).collect();
    let empty = |entry: &&[u8]| entry.iter().all(|byte| *byte == 0);
    let sane = |entry: &&[u8]| {
        let [flag, kind] = [entry[0], entry[4]];
        matches!(flag, 0 | 0x80) && kind != 0 && u32_le(entry, 8) > 0 && u32_le(entry, 12) > 0
    };
    // A table without partitions is one, too: somebody has prepared the disk.
    if entries.iter().all(|entry| empty(entry) || sane(entry)) {
        found.push(Signature::at("MBR partition table", 446));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    //! Traces made by the real tools where they are installed, and by hand where they are not.

    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;
    use test_support::skip::skip;

    const SIZE: u64 = 160 * MIB;

    /// What is found on a device that holds these bytes at these places and zeroes elsewhere.
    fn found_among(size_bytes: u64, parts: &[(u64, &[u8])]) -> Vec<String> {
        let mut read = |offset: u64, length: usize| {
            assert!(offset + length as u64 <= size_bytes, "read beyond the end of the device");
            let mut bytes = vec![0; length];
            for (start, part) in parts {
                for (at, byte) in part.iter().enumerate() {
                    if let Some(place) = (start + at as u64).checked_sub(offset).filter(|place| *place < length as u64)
                    {
                        bytes[place as usize] = *byte;
                    }
                }
            }
            Ok(bytes)
        };
        find(&mut read, size_bytes).unwrap().into_iter().map(|signature| signature.kind).collect()
    }

    fn found_in(path: &Path) -> Vec<String> {
        let file = File::open(path).unwrap();
        let size_bytes = file.metadata().unwrap().len();
        let mut read = |offset: u64, length: usize| {
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, offset).map(|()| bytes)
        };
        find(&mut read, size_bytes).unwrap().into_iter().map(|signature| signature.kind).collect()
    }

    #[test]
    fn every_mark_of_the_table_is_found_where_it_stands() {
        for mark in MARKS {
            let offset = mark.place.offset(SIZE).unwrap();
            let found = found_among(SIZE, &[(offset, mark.bytes)]);
            assert!(found.iter().any(|kind| kind == mark.kind), "{}: {found:?}", mark.kind);
            let found = found_among(SIZE, &[(offset + 1, mark.bytes)]);
            assert!(!found.iter().any(|kind| kind == mark.kind), "{} was found one byte away", mark.kind);
        }
    }

    #[test]
    fn an_unused_device_of_any_size_is_clean() {
        for size in [0, 1, 511, 512, 4096, 5000, 64 * KIB, 300 * KIB, SIZE, (1 << 44) + 512] {
            assert!(found_among(size, &[]).is_empty(), "{size}");
        }
    }

    #[test]
    fn our_own_data_are_no_trace_of_others() {
        let mut filling = vec![0; 2 << 20];
        for seed in 0..8 {
            model::workload::Rng::new(seed, 0).fill(&mut filling);
            let mut read = |offset: u64, length: usize| Ok(filling[offset as usize..][..length].to_vec());
            assert!(find(&mut read, 2 << 20).unwrap().is_empty());
        }
    }

    #[test]
    fn ext_file_systems_are_distinguished_by_their_features() {
        let block = |compatible: u8, incompatible: u16, block_size: u8| {
            let mut block = vec![0; 128];
            block[24] = block_size;
            block[56..58].copy_from_slice(&[0x53, 0xef]);
            block[76] = 1;
            block[92] = compatible;
            block[96..98].copy_from_slice(&incompatible.to_le_bytes());
            found_among(SIZE, &[(1024, &block)])
        };
        assert_eq!(block(0, 0x2, 2), ["ext2"]);
        assert_eq!(block(0x4, 0x2, 2), ["ext3"]);
        assert_eq!(block(0x4, 0x2 | 0x40, 2), ["ext4"]);
        assert_eq!(block(0, 0x8, 2), ["ext journal device"]);
        assert!(block(0x4, 0x2, 77).is_empty(), "two bytes alone are no proof");
    }

    #[test]
    fn swap_is_found_for_each_size_of_page() {
        for page in [4096, 8192, 16_384, 65_536] {
            assert_eq!(found_among(SIZE, &[(page - 10, b"SWAPSPACE2")]), ["swap space"]);
            assert_eq!(found_among(SIZE, &[(page - 10, b"S1SUSPEND")]), ["swap space of a hibernated machine"]);
        }
    }

    #[test]
    fn a_volume_managers_label_may_stand_in_any_of_four_sectors() {
        for sector in 0..4 {
            let parts: [(u64, &[u8]); 2] = [(sector * 512, b"LABELONE"), (sector * 512 + 24, b"LVM2 001")];
            assert_eq!(found_among(SIZE, &parts), ["LVM2 physical volume"]);
        }
        assert!(found_among(SIZE, &[(512, b"LABELONE")]).is_empty());
    }

    #[test]
    fn software_raid_is_found_in_all_its_places() {
        let size = 100 * MIB + 12 * KIB;
        let version_1 = b"\xfc\x4e\x2b\xa9\x01\0\0\0";
        let of = |offset, bytes: &[u8]| found_among(size, &[(offset, bytes)]);
        assert_eq!(of(100 * MIB - 64 * KIB, b"\xfc\x4e\x2b\xa9\0\0\0\0"), ["Linux RAID member (version 0.90)"]);
        assert_eq!(of(100 * MIB - 64 * KIB, b"\xa9\x2b\x4e\xfc\0\0\0\0"), ["Linux RAID member (version 0.90)"]);
        assert_eq!(of(100 * MIB + 4 * KIB, version_1), ["Linux RAID member (version 1.0)"]);
        assert_eq!(of(0, version_1), ["Linux RAID member (version 1.1)"]);
        assert_eq!(of(4096, version_1), ["Linux RAID member (version 1.2)"]);
    }

    #[test]
    fn encrypted_and_zfs_devices_are_found() {
        assert_eq!(found_among(SIZE, &[(0, b"LUKS\xba\xbe\0\x01")]), ["LUKS1"]);
        assert_eq!(found_among(SIZE, &[(0, b"LUKS\xba\xbe\0\x02")]), ["LUKS2"]);
        let labels = [0, 256 * KIB, SIZE - 512 * KIB, SIZE - 256 * KIB];
        for label in labels {
            let uberblock = label + 128 * KIB + 4096;
            assert_eq!(found_among(SIZE, &[(uberblock, b"\x0c\xb1\xba\0\0\0\0\0")]), ["ZFS label"]);
            assert_eq!(found_among(SIZE, &[(uberblock, b"\0\0\0\0\0\xba\xb1\x0c")]), ["ZFS label"]);
        }
    }

    #[test]
    fn a_boot_sector_is_fat_or_a_partition_table_or_nothing_known() {
        let end: (u64, &[u8]) = (510, b"\x55\xaa");
        let entry = b"\x80\0\0\0\x83\0\0\0\x00\x08\0\0\x00\x10\0\0";
        assert_eq!(found_among(SIZE, &[end, (446, entry)]), ["MBR partition table"]);
        assert_eq!(found_among(SIZE, &[end]), ["MBR partition table"]);
        assert_eq!(found_among(SIZE, &[end, (82, b"FAT32   ")]), ["fat32"]);
        assert_eq!(found_among(SIZE, &[end, (54, b"FAT16   ")]), ["fat16"]);
        assert!(found_among(SIZE, &[end, (446, b"\x12boot code here")]).is_empty());
        assert!(found_among(SIZE, &[(446, entry)]).is_empty());
    }

    #[test]
    fn udf_is_found_behind_a_bridge_to_iso9660() {
        assert_eq!(found_among(SIZE, &[(32_769, b"BEA01"), (34_817, b"NSR02")]), ["udf"]);
        assert_eq!(found_among(SIZE, &[(32_769, b"CD001"), (38_913, b"NSR03")]), ["iso9660", "udf"]);
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_not_clean() {
        let mut read = |_: u64, _: usize| Err(io::ErrorKind::PermissionDenied.into());
        assert_eq!(find(&mut read, SIZE).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    /// Makes an image with each tool that is installed; the others are covered by hand-made bytes above.
    #[test]
    fn what_real_tools_make_is_found() {
        let recipes: &[(&str, &[&str], &str)] = &[
            ("mkfs.ext2", &["-q", "-F"], "ext2"),
            ("mkfs.ext3", &["-q", "-F"], "ext3"),
            ("mkfs.ext4", &["-q", "-F"], "ext4"),
            ("mkfs.xfs", &["-q", "-f"], "xfs"),
            ("mkfs.btrfs", &["-q", "-f"], "btrfs"),
            ("mkfs.vfat", &["-F", "32"], "fat32"),
            ("mkfs.ntfs", &["-q", "-F", "-f"], "ntfs"),
            ("mkfs.f2fs", &["-q", "-f"], "f2fs"),
            ("mkswap", &[], "swap space"),
        ];
        for (tool, arguments, kind) in recipes {
            let directory = tempfile::tempdir().unwrap();
            let image = directory.path().join("image");
            File::create(&image).unwrap().set_len(400 * MIB).unwrap();
            let made =
                Command::new(tool).args(*arguments).arg(&image).stdout(Stdio::null()).stderr(Stdio::null()).status();
            match made {
                Ok(status) if status.success() => {
                    let found = found_in(&image);
                    assert!(found.iter().any(|other| other == kind), "{tool}: {found:?}");
                    if let SecondOpinion::Found(said) = ask_blkid(&image) {
                        assert!(!said.is_empty());
                    }
                }
                Ok(status) => skip(format_args!("{tool} ended with {status}")),
                Err(error) => skip(format_args!("{tool}: {error}")),
            }
        }
    }

    fn kinds(code: i32, export: &str) -> Vec<String> {
        match heard(Some(code), export) {
            SecondOpinion::Found(found) => found.into_iter().map(|signature| signature.to_string()).collect(),
            SecondOpinion::Nothing | SecondOpinion::Silent => Vec::new(),
        }
    }

    #[test]
    fn what_blkid_says_is_understood() {
        assert_eq!(kinds(0, "DEVNAME=/dev/sdb\nUUID=1\nTYPE=ext4\nUSAGE=filesystem\n"), ["ext4, says blkid"]);
        assert_eq!(kinds(0, "DEVNAME=/dev/sdb\nPTTYPE=gpt\n"), ["gpt partition table, says blkid"]);
        assert_eq!(kinds(8, ""), ["traces of several formats, says blkid"]);
    }

    #[test]
    fn the_place_of_a_partition_is_no_trace() {
        assert_eq!(heard(Some(0), "DEVNAME=/dev/sdb1\nPART_ENTRY_TYPE=0x83\n"), SecondOpinion::Nothing);
        assert_eq!(heard(Some(2), ""), SecondOpinion::Nothing);
        assert_eq!(heard(Some(4), ""), SecondOpinion::Silent);
        assert_eq!(heard(None, ""), SecondOpinion::Silent);
    }
}
