//! What files, servers and file systems are, and what names lead to: GETATTR and LOOKUP.

use super::super::answers::{Attributes, FileHandle, FileKind, FsInfo, FsStat};
use super::super::{Fault, Reader, put_bytes};
use super::{Compound, Op, Problem, Results};

/// Bytes of attributes that are read at most.
const MAX_VALUES_BYTES: usize = 1024;

/// Attributes, by their numbers.
pub(super) mod attribute {
    pub const TYPE: u32 = 1;
    pub const SIZE: u32 = 4;
    pub const FSID: u32 = 8;
    pub const LEASE_TIME: u32 = 10;
    pub const FILE_ID: u32 = 20;
    pub const MAX_FILE_SIZE: u32 = 27;
    pub const MAX_READ: u32 = 30;
    pub const MAX_WRITE: u32 = 31;
    pub const MODE: u32 = 33;
    pub const LINKS: u32 = 35;
    pub const SPACE_AVAILABLE: u32 = 42;
    pub const SPACE_TOTAL: u32 = 44;
    pub const SPACE_USED: u32 = 45;
}

pub(super) const OF_A_FILE: [u32; 6] =
    [attribute::TYPE, attribute::SIZE, attribute::FSID, attribute::FILE_ID, attribute::LINKS, attribute::SPACE_USED];
const OF_A_SERVER: [u32; 3] = [attribute::MAX_FILE_SIZE, attribute::MAX_READ, attribute::MAX_WRITE];
const OF_SPACE: [u32; 2] = [attribute::SPACE_AVAILABLE, attribute::SPACE_TOTAL];

impl Results<'_> {
    /// Attributes that were asked for, each as a number.
    fn attributes<const N: usize>(&mut self, asked: [u32; N]) -> Result<[Option<u64>; N], Problem> {
        self.op(Op::GetAttr)?;
        let map = self.bitmap()?;
        let mut values = Reader::new(self.reader.bytes(MAX_VALUES_BYTES)?);
        let mut found = [None; N];
        for bit in 0..64_u32 {
            if map[(bit / 32) as usize] & 1 << (bit % 32) == 0 {
                continue;
            }
            let Some(place) = asked.iter().position(|asked| *asked == bit) else {
                return Err(Fault::Wrong("attributes that were not requested").into());
            };
            let value = match bit {
                attribute::TYPE | attribute::LEASE_TIME | attribute::LINKS => values.u32()?.into(),
                // Two numbers; mixed, so that neither is lost.
                attribute::FSID => values.u64()? ^ values.u64()?.rotate_left(32),
                _ => values.u64()?,
            };
            found[place] = Some(value);
        }
        Ok(found)
    }
}

/// GETATTR of a file.
pub fn put_get_attributes(compound: &mut Compound<'_>, handle: &FileHandle) {
    compound.put_handle(handle);
    compound.get_attributes(&OF_A_FILE);
}

/// Its result.
///
/// # Errors
/// The server's refusal, and what is none.
pub fn attributes(results: &mut Results<'_>) -> Result<Attributes, Problem> {
    results.op(Op::PutFh)?;
    file_attributes(results)
}

pub(super) fn file_attributes(results: &mut Results<'_>) -> Result<Attributes, Problem> {
    let [Some(kind), Some(size_bytes), Some(fsid), Some(fileid), links, used] = results.attributes(OF_A_FILE)? else {
        return Err(Fault::Wrong("a file without kind, length or number").into());
    };
    let kind = match kind {
        1 => FileKind::Regular,
        2 => FileKind::Directory,
        3..=9 => FileKind::Other,
        _ => return Err(Fault::Wrong("a file of no known kind").into()),
    };
    let (links, used_bytes) = (links.map_or(1, |links| links as u32), used.unwrap_or(size_bytes));
    Ok(Attributes { kind, links, size_bytes, used_bytes, fsid, fileid })
}

/// LOOKUP, and what is there.
pub fn put_look_up(compound: &mut Compound<'_>, directory: &FileHandle, name: &str) {
    compound.put_handle(directory);
    put_bytes(compound.op(Op::Lookup), name.as_bytes());
    compound.op(Op::GetFh);
    compound.get_attributes(&OF_A_FILE);
}

/// Its result.
///
/// # Errors
/// The server's refusal, and what is none.
pub fn looked_up(results: &mut Results<'_>) -> Result<(FileHandle, Option<Attributes>), Problem> {
    results.op(Op::PutFh)?;
    results.op(Op::Lookup)?;
    Ok((results.handle()?, Some(file_attributes(results)?)))
}

/// The root of all that the server exports, and how long it remembers a client that says nothing.
pub fn put_root(compound: &mut Compound<'_>) {
    compound.op(Op::PutRootFh);
    compound.op(Op::GetFh);
    compound.get_attributes(&[attribute::LEASE_TIME]);
}

/// Its result: the handle, and the lease in seconds where the server says it.
///
/// # Errors
/// The server's refusal, and what is none.
pub fn root(results: &mut Results<'_>) -> Result<(FileHandle, Option<u32>), Problem> {
    results.op(Op::PutRootFh)?;
    let handle = results.handle()?;
    let [lease] = results.attributes([attribute::LEASE_TIME])?;
    Ok((handle, lease.and_then(|lease| u32::try_from(lease).ok())))
}

/// What a server takes in one call, and the space of a file system.
pub fn put_server(compound: &mut Compound<'_>, handle: &FileHandle) {
    compound.put_handle(handle);
    compound.get_attributes(&OF_A_SERVER);
}

/// Its result. What a server does not limit is the largest number.
///
/// # Errors
/// The server's refusal, and what is none.
pub fn server(results: &mut Results<'_>) -> Result<FsInfo, Problem> {
    results.op(Op::PutFh)?;
    let [file, read, write] = results.attributes(OF_A_SERVER)?;
    let bytes = |most: Option<u64>| most.map_or(u32::MAX, |most| most.try_into().unwrap_or(u32::MAX));
    Ok(FsInfo {
        read_max_bytes: bytes(read),
        write_max_bytes: bytes(write),
        // There is no such attribute.
        write_multiple_bytes: 0,
        file_max_bytes: file.unwrap_or(u64::MAX),
    })
}

/// The space of a file system.
pub fn put_space(compound: &mut Compound<'_>, handle: &FileHandle) {
    compound.put_handle(handle);
    compound.get_attributes(&OF_SPACE);
}

/// Its result.
///
/// # Errors
/// The server's refusal, and what is none.
pub fn space(results: &mut Results<'_>) -> Result<FsStat, Problem> {
    results.op(Op::PutFh)?;
    let [Some(available_bytes), Some(total_bytes)] = results.attributes(OF_SPACE)? else {
        return Err(Fault::Wrong("a file system without space").into());
    };
    Ok(FsStat { total_bytes, available_bytes })
}
