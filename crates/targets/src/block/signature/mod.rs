//! Traces of what a device is already used for: file systems, volume managers, partition tables, databases.
//!
//! A trace is found by a few bytes at a place that its format fixes. The table errs on the side of finding: who tests a
//! device that only looks used loses a flag, who overwrites one that is used loses data.

mod content;
#[cfg(test)]
pub(super) mod images;
mod judged;
mod marks;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{fmt, io};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const PAGE_BYTES: u64 = 4 * KIB;

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
    let mut device = Device { read, size_bytes, pages: BTreeMap::new() };
    let mut found = Vec::new();
    for mark in marks::MARKS {
        let Some(offset) = mark.place.offset(size_bytes) else { continue };
        if device.bytes(offset, mark.bytes.len())?.is_some_and(|bytes| bytes == mark.bytes) {
            found.push(Signature::at(mark.kind, offset));
        }
    }
    for rule in judged::RULES.iter().chain(content::RULES) {
        rule(&mut device, &mut found)?;
    }
    Ok(found)
}

/// Looks for formats whose mark alone is too short, or is written in several places or ways. What it finds goes into the list.
type Rule = fn(&mut Device<'_, '_>, &mut Vec<Signature>) -> io::Result<()>;

/// A device that answers only for ranges inside it.
struct Device<'a, 'b> {
    read: &'a mut Read<'b>,
    size_bytes: u64,
    /// Pages that were read, each by its number: most marks share a few, and a server may be far away.
    pages: BTreeMap<u64, Vec<u8>>,
}

impl Device<'_, '_> {
    fn bytes(&mut self, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        if offset.checked_add(length as u64).is_none_or(|end| end > self.size_bytes) {
            return Ok(None);
        }
        if length as u64 > PAGE_BYTES {
            return read_whole(self.read, offset, length).map(Some);
        }
        let (first, last) = (offset / PAGE_BYTES, (offset + length as u64).div_ceil(PAGE_BYTES));
        let mut bytes = Vec::with_capacity(((last - first) * PAGE_BYTES) as usize);
        for page in first..last {
            bytes.extend_from_slice(self.page(page)?);
        }
        let begin = (offset % PAGE_BYTES) as usize;
        Ok(Some(bytes[begin..begin + length].to_vec()))
    }

    /// A page, or the part of it that is inside the device.
    fn page(&mut self, number: u64) -> io::Result<&[u8]> {
        let offset = number * PAGE_BYTES;
        let length = (self.size_bytes - offset).min(PAGE_BYTES) as usize;
        Ok(match self.pages.entry(number) {
            Entry::Occupied(page) => page.into_mut(),
            Entry::Vacant(place) => place.insert(read_whole(self.read, offset, length)?),
        })
    }
}

fn read_whole(read: &mut Read<'_>, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let bytes = read(offset, length)?;
    if bytes.len() == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// What another program says of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecondOpinion {
    /// It is not installed.
    Absent,
    /// It could not look.
    Silent,
    /// It found nothing.
    Nothing,
    /// It found this.
    Found(Vec<Signature>),
}

/// Where `blkid` is when `PATH` does not lead to it, as in the shells of ordinary users and of many services.
const BESIDE_PATH: [&str; 2] = ["/sbin/blkid", "/usr/sbin/blkid"];

/// Asks `blkid` to look at the device or file itself, not at what it remembers. `path` is absolute, so that no name is taken for
/// an option.
pub fn ask_blkid(path: &Path) -> SecondOpinion {
    ask(&["blkid", BESIDE_PATH[0], BESIDE_PATH[1]], path)
}

/// Asks the first of these programs that is there.
fn ask(programs: &[&str], path: &Path) -> SecondOpinion {
    for program in programs {
        let mut command = Command::new(program);
        command.args(["-p", "-o", "export"]).arg(path).stdin(Stdio::null()).stderr(Stdio::null());
        match command.output() {
            Ok(output) => return heard(output.status.code(), &String::from_utf8_lossy(&output.stdout)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => return SecondOpinion::Silent,
        }
    }
    SecondOpinion::Absent
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

fn u16_le(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_le(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
