//! What stands on a member before its allocation units.
//!
//! | offset | holds |
//! | --- | --- |
//! | 0, 4 KiB | header, twice: which member of which group this is |
//! | 64 KiB, 96 KiB | map of changes, in turns |
//! | 128 KiB, 576 KiB | what the group remembers, in turns |
//! | 1 MiB | allocation unit 0 |
//!
//! Each is sealed: a mark, the group's number, a sequence number and a checksum over all of it. The mark is not that of raw
//! data laid out by this program, so that nobody takes a member for a file that he may overwrite.

use std::io;

use crc_fast::CrcAlgorithm;
use serde::{Deserialize, Serialize};

use super::buffer::{Buffer, PAGE_BYTES};
use super::document::{Document, MAX_FILES, PARTS_OF_FILE};
use crate::io::StorageFile;

/// Where allocation units begin.
pub const FIRST_UNIT: u64 = 1 << 20;
/// Version of what stands here.
pub const FORMAT: u32 = 1;
/// Words of the map of changes.
pub const CHANGE_WORDS: usize = MAX_FILES * PARTS_OF_FILE as usize / 64;

const HEADERS: [u64; 2] = [0, 4 << 10];
const CHANGES: [u64; 2] = [64 << 10, 96 << 10];
const CHANGES_BYTES: usize = CHANGE_WORDS * 8 + PAGE_BYTES;
const DOCUMENTS: [u64; 2] = [128 << 10, 576 << 10];
const DOCUMENT_BYTES: usize = 448 << 10;
const HEAD_BYTES: usize = 64;

/// What a sealed page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Header,
    Changes,
    Document,
}

impl Kind {
    fn mark(self) -> [u8; 8] {
        *match self {
            Self::Header => b"PLSGRP\x01H",
            Self::Changes => b"PLSGRP\x01C",
            Self::Document => b"PLSGRP\x01D",
        }
    }
}

/// Which member of which group this is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of what stands on the members.
    pub format: u32,
    /// Name of the group.
    pub name: String,
    /// Number of the member, from 0.
    pub member: u16,
    /// Allocation units of the member.
    pub units: u32,
}

/// A page that was found sound.
struct Sealed {
    group: u64,
    sequence: u64,
    body: Vec<u8>,
}

fn seal(kind: Kind, group: u64, sequence: u64, body: &[u8]) -> Buffer {
    let mut page = Buffer::new(HEAD_BYTES + body.len());
    page[..8].copy_from_slice(&kind.mark());
    page[8..16].copy_from_slice(&group.to_le_bytes());
    page[16..24].copy_from_slice(&sequence.to_le_bytes());
    page[24..32].copy_from_slice(&(body.len() as u64).to_le_bytes());
    page[HEAD_BYTES..HEAD_BYTES + body.len()].copy_from_slice(body);
    let sum = sum_of(&page, body.len());
    page[32..40].copy_from_slice(&sum.to_le_bytes());
    page
}

/// Over the head without its checksum, and the body.
fn sum_of(page: &[u8], body: usize) -> u64 {
    let mut covered = page[..32].to_vec();
    covered.extend_from_slice(&page[HEAD_BYTES..HEAD_BYTES + body]);
    crc_fast::checksum(CrcAlgorithm::Crc64Nvme, &covered)
}

fn word(page: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(page[at..at + 8].try_into().expect("a word has eight bytes"))
}

fn unseal(kind: Kind, page: &[u8]) -> Option<Sealed> {
    if page.len() < HEAD_BYTES || page[..8] != kind.mark() {
        return None;
    }
    let body = usize::try_from(word(page, 24)).ok().filter(|body| *body <= page.len() - HEAD_BYTES)?;
    let sound = word(page, 32) == sum_of(page, body);
    sound.then(|| Sealed {
        group: word(page, 8),
        sequence: word(page, 16),
        body: page[HEAD_BYTES..HEAD_BYTES + body].to_vec(),
    })
}

/// A page as it stands there, as far as the file reaches.
fn read(file: &StorageFile, offset: u64, bytes: usize) -> io::Result<Buffer> {
    let mut page = Buffer::new(bytes);
    let length = file.length()?.saturating_sub(offset) as usize;
    let there = bytes.min(length) / PAGE_BYTES * PAGE_BYTES;
    if there > 0 {
        file.read_exact_at(&mut page[..there], offset)?;
    }
    Ok(page)
}

/// The sound one of two places, or the newer of two.
/// Those of another group than the one asked for do not count.
fn newest(
    file: &StorageFile,
    kind: Kind,
    places: [u64; 2],
    bytes: usize,
    group: Option<u64>,
) -> io::Result<Option<Sealed>> {
    let is_wanted = |page: &Sealed| group.is_none_or(|group| page.group == group);
    // A medium error in one of two places leaves the other.
    let found = places.map(|offset| read(file, offset, bytes).map(|page| unseal(kind, &page).filter(is_wanted)));
    let all_failed = found.iter().all(Result::is_err);
    let mut best: Option<Sealed> = None;
    let mut failure = None;
    for page in found {
        match page {
            Ok(Some(page)) if best.as_ref().is_none_or(|best| page.sequence > best.sequence) => best = Some(page),
            Ok(_) => {}
            Err(error) => failure = Some(error),
        }
    }
    match failure {
        Some(error) if all_failed => Err(error),
        _ => Ok(best),
    }
}

/// The header and the number of the group; none where there is none.
///
/// # Errors
/// The system's error.
pub fn read_header(file: &StorageFile) -> io::Result<Option<(u64, Header)>> {
    let page = newest(file, Kind::Header, HEADERS, PAGE_BYTES, None)?;
    Ok(page.and_then(|page| Some((page.group, serde_json::from_slice(&page.body).ok()?))))
}

/// Makes a file or device a member: its header is written last and made durable.
///
/// # Errors
/// The system's error.
pub fn write_header(file: &StorageFile, group: u64, header: &Header) -> io::Result<()> {
    let page = seal(Kind::Header, group, 1, &serde_json::to_vec(header)?);
    HEADERS.iter().try_for_each(|offset| file.write_all_at(&page, *offset))?;
    file.sync()
}

/// Takes the header away, before a member is laid out anew.
///
/// # Errors
/// The system's error.
pub fn erase_header(file: &StorageFile) -> io::Result<()> {
    let page = Buffer::new(PAGE_BYTES);
    HEADERS.iter().try_for_each(|offset| file.write_all_at(&page, *offset))?;
    file.sync()
}

/// The newest that a member remembers of the group, with its generation.
///
/// # Errors
/// The system's error.
pub fn read_document(file: &StorageFile, group: u64) -> io::Result<Option<(u64, Document)>> {
    let page = newest(file, Kind::Document, DOCUMENTS, DOCUMENT_BYTES, Some(group))?;
    Ok(page.and_then(|page| {
        let document: Document = serde_json::from_slice(&page.body).ok()?;
        document.is_sound().then_some((page.sequence, document))
    }))
}

/// What is to be written to all members; none where it is too long.
pub fn seal_document(document: &Document, group: u64, generation: u64) -> Option<Buffer> {
    let body = serde_json::to_vec(document).ok()?;
    (HEAD_BYTES + body.len() <= DOCUMENT_BYTES).then(|| seal(Kind::Document, group, generation, &body))
}

/// Writes it durably, over the one before the last.
///
/// # Errors
/// The system's error.
pub fn write_document(file: &StorageFile, page: &Buffer, generation: u64) -> io::Result<()> {
    file.write_all_at(page, DOCUMENTS[(generation % 2) as usize])?;
    file.sync()
}

/// The newest map of changes of a member, with its number.
///
/// # Errors
/// The system's error.
pub fn read_changes(file: &StorageFile, group: u64) -> io::Result<Option<(u64, Vec<u64>)>> {
    let page = newest(file, Kind::Changes, CHANGES, CHANGES_BYTES, Some(group))?;
    Ok(page.filter(|page| page.body.len() == CHANGE_WORDS * 8).map(|page| {
        let words = (0..CHANGE_WORDS).map(|at| word(&page.body, at * 8));
        (page.sequence, words.collect())
    }))
}

/// The map of changes as it is to be written to all members.
pub fn seal_changes(words: &[u64], group: u64, sequence: u64) -> Buffer {
    let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    seal(Kind::Changes, group, sequence, &body)
}

/// Writes it durably, over the one before the last.
///
/// # Errors
/// The system's error.
pub fn write_changes(file: &StorageFile, page: &Buffer, sequence: u64) -> io::Result<()> {
    file.write_all_at(page, CHANGES[(sequence % 2) as usize])?;
    file.sync()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_changed_bit_passes_and_places_do_not_meet() {
        let page = seal(Kind::Header, 7, 3, b"what stands here");
        let sealed = unseal(Kind::Header, &page).unwrap();
        assert_eq!((sealed.group, sealed.sequence, &sealed.body[..]), (7, 3, &b"what stands here"[..]));
        assert!(unseal(Kind::Document, &page).is_none());
        for bit in (0..320).chain(HEAD_BYTES * 8..(HEAD_BYTES + 16) * 8) {
            let mut broken = page.to_vec();
            broken[bit / 8] ^= 1 << (bit % 8);
            assert!(unseal(Kind::Header, &broken).is_none(), "bit {bit}");
        }
        assert!(CHANGES[0] + CHANGES_BYTES as u64 <= CHANGES[1] && CHANGES[1] + CHANGES_BYTES as u64 <= DOCUMENTS[0]);
        assert!(DOCUMENTS[0] + DOCUMENT_BYTES as u64 <= DOCUMENTS[1]);
        assert!(DOCUMENTS[1] + DOCUMENT_BYTES as u64 <= FIRST_UNIT);
    }
}
