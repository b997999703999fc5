//! Files and devices that hold the data of a database or are compressed, which no short mark proves.

use std::io;

use super::{Device, Rule, Signature, u16_le, u32_le};

/// All of them.
pub(super) const RULES: &[Rule] = &[oracle, innodb, postgres_page, postgres_control, postgres_wal, compressed];

/// The first block of each of Oracle's files has their block size and a mark in the byte order of the machine. What the file is
/// stands in the first byte of the block behind it.
fn oracle(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    const AT: usize = 28;
    let Some(block) = device.bytes(0, 32)? else { return Ok(()) };
    let size = match &block[AT..] {
        b"}|{z" => u32_le(&block, 20),
        b"z{|}" => u32_le(&block, 20).swap_bytes(),
        _ => return Ok(()),
    };
    let kind = match size {
        512..=32_768 if size.is_power_of_two() => device.bytes(size.into(), 1)?.map(|kind| kind[0]),
        _ => None,
    };
    let kind = match kind {
        Some(0x01) => "Oracle redo log",
        Some(0x15) => "Oracle control file",
        Some(0x13 | 0x14) => "Oracle backup piece",
        _ => "Oracle data file",
    };
    found.push(Signature::at(kind, AT as u64));
    Ok(())
}

/// The first page of a tablespace of MySQL or MariaDB has number 0 and a type of its own, names its tablespace twice, and begins with a
/// checksum. From 10.5 on MariaDB has the checksum at the end of the page; then no page is before or after this one.
fn innodb(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    const FIRST_PAGE: [u8; 2] = [0, 8];
    let Some(page) = device.bytes(0, 42)? else { return Ok(()) };
    let is_marked = page[..4] != [0; 4] || page[8..16] == [0xff; 8];
    let is_first = is_marked && page[4..8] == [0; 4] && page[24..26] == FIRST_PAGE;
    if is_first && page[34..38] == page[38..42] {
        found.push(Signature::at("InnoDB tablespace", 24));
    }
    Ok(())
}

/// A page has its size and version, few flags, and three places within it that follow each other.
fn postgres_page(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    const HEADER: u16 = 24;
    const FLAGS: u16 = 7;
    const VERSION: u16 = 4;
    let Some(page) = device.bytes(0, HEADER.into())? else { return Ok(()) };
    let [flags, lower, upper, special, size_and_version] = [10, 12, 14, 16, 18].map(|at| u16_le(&page, at));
    let (size, version) = (size_and_version & 0xff00, size_and_version & 0xff);
    let is_page = version == VERSION && size.is_power_of_two() && size >= 1_024 && flags & !FLAGS == 0;
    if is_page && HEADER <= lower && lower <= upper && upper <= special && special <= size {
        found.push(Signature::at("PostgreSQL table or index", 18));
    }
    Ok(())
}

/// `pg_control` begins with the number of the system, its own version, and that of the catalogue, which is a date and a digit.
fn postgres_control(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    let Some(file) = device.bytes(0, 16)? else { return Ok(()) };
    let is_control = |version: u32, catalogue: u32| {
        let (year, month, day) = (catalogue / 100_000, catalogue / 1_000 % 100, catalogue / 10 % 100);
        (800..10_000).contains(&version)
            && (2_000..2_200).contains(&year)
            && (1..=12).contains(&month)
            && (1..=31).contains(&day)
    };
    let (version, catalogue) = (u32_le(&file, 8), u32_le(&file, 12));
    let known = is_control(version, catalogue) || is_control(version.swap_bytes(), catalogue.swap_bytes());
    if known && file[..8] != [0; 8] {
        found.push(Signature::at("PostgreSQL control file", 8));
    }
    Ok(())
}

/// The first page of a segment of the write-ahead log has a long header with the sizes of segments and pages.
fn postgres_wal(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    const LONG_HEADER: u16 = 2;
    let Some(page) = device.bytes(0, 40)? else { return Ok(()) };
    let (segment, block) = (u32_le(&page, 32), u32_le(&page, 36));
    let has_sizes = segment.is_power_of_two() && segment >= 1 << 20 && block.is_power_of_two() && block <= 1 << 16;
    if matches!(page[1], 0xd0 | 0xd1) && u16_le(&page, 2) & LONG_HEADER != 0 && has_sizes {
        found.push(Signature::at("PostgreSQL write-ahead log", 0));
    }
    Ok(())
}

/// gzip has one method, and three flags that are always 0; bzip2 a digit for the size of its blocks, of which the first begins at
/// once.
fn compressed(device: &mut Device<'_, '_>, found: &mut Vec<Signature>) -> io::Result<()> {
    const GZIP: &[u8] = &[0x1f, 0x8b, 8];
    const BZIP2_BLOCK: &[u8] = &[0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
    let Some(start) = device.bytes(0, 10)? else { return Ok(()) };
    if start.starts_with(GZIP) && start[3] & 0xe0 == 0 {
        found.push(Signature::at("gzip-compressed data", 0));
    }
    if start.starts_with(b"BZh") && start[3].is_ascii_digit() && start[4..] == *BZIP2_BLOCK {
        found.push(Signature::at("bzip2-compressed data", 0));
    }
    Ok(())
}
