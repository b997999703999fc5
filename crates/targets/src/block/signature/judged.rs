//! Formats of devices whose mark alone is too short, or is written in several places or ways.

use std::io;

use super::{Device, KIB, Rule, Signature, u16_le, u32_le};

/// All of them.
pub(super) const RULES: &[Rule] = &[ext, swap, lvm2, md, luks, zfs, udf, nilfs2, minix, hfs, sun_label, boot_sector];

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

/// The superblock is at 1 KiB, its copy in the last block of 4 KiB but one.
fn nilfs2(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    const MAGIC: u16 = 0x3434;
    const MAX_REVISION: u32 = 2;
    // Blocks are of 1 KiB times a power of two, up to 64 KiB.
    const MAX_LOG_BLOCK: u32 = 6;
    let copy = (device.size_bytes / (4 * KIB)).checked_sub(1).map(|block| block * 4 * KIB);
    for offset in [Some(KIB), copy].into_iter().flatten() {
        let Some(block) = device.bytes(offset, 24)? else { continue };
        let sane = u32_le(&block, 0) <= MAX_REVISION && u32_le(&block, 20) <= MAX_LOG_BLOCK;
        if u16_le(&block, 6) == MAGIC && sane {
            found.push(Signature::at("nilfs2", offset + 6));
        }
    }
    Ok(())
}

/// Versions 1 and 2 have one layout, version 3 another; what is reserved in them is zero.
fn minix(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    const OLD: [u16; 4] = [0x137f, 0x138f, 0x2468, 0x2478];
    const NEW: u16 = 0x4d5a;
    const MAX_STATE: u16 = 3;
    let Some(block) = device.bytes(KIB, 32)? else { return Ok(()) };
    let old = OLD.contains(&u16_le(&block, 16)) && u16_le(&block, 10) == 0 && u16_le(&block, 18) <= MAX_STATE;
    let new = u16_le(&block, 24) == NEW && u16_le(&block, 4) == 0 && u16_le(&block, 12) == 0;
    if old || new {
        found.push(Signature::at("minix", KIB + if old { 16 } else { 24 }));
    }
    Ok(())
}

/// The mark is of two bytes; allocation blocks are multiples of 512 bytes.
fn hfs(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    let Some(block) = device.bytes(KIB, 24)? else { return Ok(()) };
    let unit = u32::from_be_bytes([block[20], block[21], block[22], block[23]]);
    if block.starts_with(b"BD") && unit > 0 && unit.is_multiple_of(512) {
        found.push(Signature::at("hfs", KIB));
    }
    Ok(())
}

/// The mark is of two bytes; the label begins with a text, which need not be there.
fn sun_label(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    let Some(sector) = device.bytes(0, 512)? else { return Ok(()) };
    let is_text = |byte: &u8| *byte == 0 || byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    if sector[508..510] == [0xda, 0xbe] && sector[..128].iter().all(is_text) {
        found.push(Signature::at("Sun label", 508));
    }
    Ok(())
}
