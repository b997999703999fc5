//! Messages of NFS version 3 (RFC 1813): arguments are written, results are read.

use std::fmt;

use super::answers::{
    Attributes, CommitDone, Committed, Created, FileHandle, FileKind, FsInfo, FsStat, ReadHead, Stable, Status,
    WriteDone,
};
use super::{Fault, Program, Reader, put_bytes, put_u32, put_u64};

/// NFS version 3.
pub const NFS3: Program = Program { number: 100_003, version: 3 };
/// Bytes of attributes.
const ATTRIBUTE_BYTES: usize = 84;
/// Bytes before the data in the reply to a READ at most: RPC's head with the longest verifier, status, attributes, numbers.
pub const MAX_READ_HEAD_BYTES: usize = 24 + 400 + 4 + 4 + ATTRIBUTE_BYTES + 12;

/// Procedures that are called, by their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
#[expect(missing_docs, reason = "the names are those of RFC 1813")]
pub enum Procedure {
    Null = 0,
    GetAttr = 1,
    Lookup = 3,
    Read = 6,
    Write = 7,
    Create = 8,
    Remove = 12,
    Rename = 14,
    FsStat = 18,
    FsInfo = 19,
    Commit = 21,
}

impl Procedure {
    /// Its name in RFC 1813.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::GetAttr => "GETATTR",
            Self::Lookup => "LOOKUP",
            Self::Read => "READ",
            Self::Write => "WRITE",
            Self::Create => "CREATE",
            Self::Remove => "REMOVE",
            Self::Rename => "RENAME",
            Self::FsStat => "FSSTAT",
            Self::FsInfo => "FSINFO",
            Self::Commit => "COMMIT",
        }
    }
}

impl fmt::Display for Procedure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn read_attributes(reader: &mut Reader<'_>) -> Result<Attributes, Fault> {
    let kind = match reader.u32()? {
        1 => FileKind::Regular,
        2 => FileKind::Directory,
        3..=7 => FileKind::Other,
        _ => return Err(Fault::Wrong("a file of no known kind")),
    };
    reader.fixed(4)?;
    let links = reader.u32()?;
    reader.fixed(8)?;
    let (size_bytes, used_bytes) = (reader.u64()?, reader.u64()?);
    reader.fixed(8)?;
    let (fsid, fileid) = (reader.u64()?, reader.u64()?);
    reader.fixed(24)?;
    Ok(Attributes { kind, links, size_bytes, used_bytes, fsid, fileid })
}

/// `post_op_attr`.
fn attributes_if_there(reader: &mut Reader<'_>) -> Result<Option<Attributes>, Fault> {
    if reader.bool()? { read_attributes(reader).map(Some) } else { Ok(None) }
}

#[inline]
fn skip_attributes(reader: &mut Reader<'_>) -> Result<(), Fault> {
    if reader.bool()? {
        reader.fixed(ATTRIBUTE_BYTES)?;
    }
    Ok(())
}

/// `wcc_data`: attributes before and after.
fn skip_change(reader: &mut Reader<'_>) -> Result<(), Fault> {
    if reader.bool()? {
        reader.fixed(24)?;
    }
    skip_attributes(reader)
}

fn refused(reader: &mut Reader<'_>) -> Result<Option<Status>, Fault> {
    let status = reader.u32()?;
    Ok((status != 0).then_some(Status(status)))
}

/// Arguments of GETATTR, FSSTAT and FSINFO.
pub fn put_handle(to: &mut Vec<u8>, handle: &FileHandle) {
    put_bytes(to, handle.as_bytes());
}

/// Arguments of LOOKUP and REMOVE.
pub fn put_handle_and_name(to: &mut Vec<u8>, directory: &FileHandle, name: &str) {
    put_handle(to, directory);
    put_bytes(to, name.as_bytes());
}

/// Result of GETATTR.
///
/// # Errors
/// What is none.
pub fn attributes(mut reader: Reader<'_>) -> Result<Result<Attributes, Status>, Fault> {
    match refused(&mut reader)? {
        Some(status) => Ok(Err(status)),
        None => read_attributes(&mut reader).map(Ok),
    }
}

/// Result of LOOKUP: the handle, and attributes where the server adds them.
///
/// # Errors
/// What is none.
pub fn looked_up(mut reader: Reader<'_>) -> Result<Result<(FileHandle, Option<Attributes>), Status>, Fault> {
    if let Some(status) = refused(&mut reader)? {
        return Ok(Err(status));
    }
    let handle = FileHandle::read(&mut reader)?;
    Ok(Ok((handle, attributes_if_there(&mut reader)?)))
}

/// Arguments of READ.
#[inline]
pub fn put_read(to: &mut Vec<u8>, handle: &FileHandle, offset: u64, bytes: u32) {
    put_handle(to, handle);
    put_u64(to, offset);
    put_u32(to, bytes);
}

/// Result of READ; the data follow in `reader`, with padding.
///
/// # Errors
/// What is none.
#[inline]
pub fn read_head(reader: &mut Reader<'_>) -> Result<Result<ReadHead, Status>, Fault> {
    if let Some(status) = refused(reader)? {
        return Ok(Err(status));
    }
    skip_attributes(reader)?;
    let (bytes, is_end, length) = (reader.u32()?, reader.bool()?, reader.u32()?);
    if bytes != length {
        return Err(Fault::Wrong("a READ whose count is not the length of its data"));
    }
    Ok(Ok(ReadHead { bytes, is_end }))
}

/// Arguments of WRITE before the data, which follow with padding.
#[inline]
pub fn put_write_head(to: &mut Vec<u8>, handle: &FileHandle, offset: u64, bytes: u32, stable: Stable) {
    put_handle(to, handle);
    put_u64(to, offset);
    put_u32(to, bytes);
    put_u32(to, stable as u32);
    put_u32(to, bytes);
}

/// Result of WRITE.
///
/// # Errors
/// What is none.
#[inline]
pub fn write_done(mut reader: Reader<'_>) -> Result<Result<WriteDone, Status>, Fault> {
    if let Some(status) = refused(&mut reader)? {
        return Ok(Err(status));
    }
    skip_change(&mut reader)?;
    let bytes = reader.u32()?;
    let committed = match reader.u32()? {
        0 => Committed::Not,
        1 | 2 => Committed::Data,
        _ => return Err(Fault::Wrong("a WRITE of no known durability")),
    };
    Ok(Ok(WriteDone { bytes, committed, verifier: reader.u64()? }))
}

/// Arguments of COMMIT, for the whole file.
pub fn put_commit(to: &mut Vec<u8>, handle: &FileHandle) {
    put_handle(to, handle);
    put_u64(to, 0);
    put_u32(to, 0);
}

/// Result of COMMIT.
///
/// # Errors
/// What is none.
pub fn commit_done(mut reader: Reader<'_>) -> Result<Result<CommitDone, Status>, Fault> {
    if let Some(status) = refused(&mut reader)? {
        return Ok(Err(status));
    }
    skip_change(&mut reader)?;
    Ok(Ok(CommitDone { verifier: reader.u64()? }))
}

/// Arguments of CREATE, GUARDED: of what must not exist yet, with these rights.
pub fn put_create(to: &mut Vec<u8>, directory: &FileHandle, name: &str, mode: u32) {
    const GUARDED: u32 = 1;
    put_handle_and_name(to, directory, name);
    // The rights are set; owner, group, size and both times are the server's affair.
    [GUARDED, 1, mode, 0, 0, 0, 0, 0].into_iter().for_each(|word| put_u32(to, word));
}

/// Result of CREATE.
///
/// # Errors
/// What is none.
pub fn created(mut reader: Reader<'_>) -> Result<Result<Created, Status>, Fault> {
    if let Some(status) = refused(&mut reader)? {
        return Ok(Err(status));
    }
    let handle = if reader.bool()? { Some(FileHandle::read(&mut reader)?) } else { None };
    Ok(Ok(Created { handle, attributes: attributes_if_there(&mut reader)?, state: None }))
}

/// Result of REMOVE.
///
/// # Errors
/// What is none.
pub fn removed(mut reader: Reader<'_>) -> Result<Result<(), Status>, Fault> {
    Ok(refused(&mut reader)?.map_or(Ok(()), Err))
}

/// Arguments of RENAME.
pub fn put_rename(to: &mut Vec<u8>, from: (&FileHandle, &str), new: (&FileHandle, &str)) {
    put_handle_and_name(to, from.0, from.1);
    put_handle_and_name(to, new.0, new.1);
}

/// Result of RENAME.
///
/// # Errors
/// What is none.
pub fn renamed(reader: Reader<'_>) -> Result<Result<(), Status>, Fault> {
    removed(reader)
}

/// Result of FSSTAT.
///
/// # Errors
/// What is none.
pub fn fs_stat(mut reader: Reader<'_>) -> Result<Result<FsStat, Status>, Fault> {
    if let Some(status) = refused(&mut reader)? {
        return Ok(Err(status));
    }
    skip_attributes(&mut reader)?;
    let total_bytes = reader.u64()?;
    reader.u64()?;
    Ok(Ok(FsStat { total_bytes, available_bytes: reader.u64()? }))
}

/// Result of FSINFO.
///
/// # Errors
/// What is none.
pub fn fs_info(mut reader: Reader<'_>) -> Result<Result<FsInfo, Status>, Fault> {
    if let Some(status) = refused(&mut reader)? {
        return Ok(Err(status));
    }
    skip_attributes(&mut reader)?;
    let read_max_bytes = reader.u32()?;
    reader.fixed(8)?;
    let write_max_bytes = reader.u32()?;
    reader.fixed(4)?;
    let write_multiple_bytes = reader.u32()?;
    reader.fixed(4)?;
    Ok(Ok(FsInfo { read_max_bytes, write_max_bytes, write_multiple_bytes, file_max_bytes: reader.u64()? }))
}
