//! Messages of NFS version 3 (RFC 1813): arguments are written, results are read.

use std::fmt;

use super::rpc::Program;
use super::xdr::{Fault, Reader, put_bytes, put_u32, put_u64};

/// NFS version 3.
pub const NFS3: Program = Program { number: 100_003, version: 3 };
/// Bytes of a file handle at most.
const MAX_HANDLE_BYTES: usize = 64;
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

/// Why a server refused what a call asked for: `nfsstat3` or `mountstat3`, which agree where both have a number. Never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status(pub u32);

impl Status {
    /// The name is taken.
    pub const EXIST: Self = Self(17);
    /// There is no such name.
    pub const NOENT: Self = Self(2);
    /// Nobody may do that.
    pub const PERM: Self = Self(1);
    /// This user may not do that.
    pub const ACCES: Self = Self(13);
    /// The handle is of a file that is no more.
    pub const STALE: Self = Self(70);
    /// The server is not ready for it yet; nothing was done.
    pub const JUKEBOX: Self = Self(10008);

    /// Its name in RFC 1813.
    fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            1 => "PERM",
            2 => "NOENT",
            5 => "IO",
            6 => "NXIO",
            13 => "ACCES",
            17 => "EXIST",
            18 => "XDEV",
            19 => "NODEV",
            20 => "NOTDIR",
            21 => "ISDIR",
            22 => "INVAL",
            27 => "FBIG",
            28 => "NOSPC",
            30 => "ROFS",
            31 => "MLINK",
            63 => "NAMETOOLONG",
            66 => "NOTEMPTY",
            69 => "DQUOT",
            70 => "STALE",
            71 => "REMOTE",
            10001 => "BADHANDLE",
            10002 => "NOT_SYNC",
            10003 => "BAD_COOKIE",
            10004 => "NOTSUPP",
            10005 => "TOOSMALL",
            10006 => "SERVERFAULT",
            10007 => "BADTYPE",
            10008 => "JUKEBOX",
            _ => return None,
        })
    }

    /// The system's number for the same reason.
    pub const fn errno(self) -> i32 {
        match self.0 {
            // These are Unix's own numbers, on whatever system.
            1 => libc::EPERM,
            2 => libc::ENOENT,
            6 => libc::ENXIO,
            13 => libc::EACCES,
            17 => libc::EEXIST,
            18 => libc::EXDEV,
            19 => libc::ENODEV,
            20 => libc::ENOTDIR,
            21 => libc::EISDIR,
            22 => libc::EINVAL,
            27 => libc::EFBIG,
            28 => libc::ENOSPC,
            30 => libc::EROFS,
            31 => libc::EMLINK,
            63 => libc::ENAMETOOLONG,
            66 => libc::ENOTEMPTY,
            69 => libc::EDQUOT,
            70 | 10001 => libc::ESTALE,
            10004 => libc::EOPNOTSUPP,
            10008 => libc::EAGAIN,
            _ => libc::EIO,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "NFS3ERR_{name}"),
            None => write!(f, "status {}", self.0),
        }
    }
}

/// What a server calls a file by. Means nothing to us.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FileHandle {
    bytes: [u8; MAX_HANDLE_BYTES],
    length: u8,
}

impl fmt::Debug for FileHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileHandle({:02x?})", self.as_bytes())
    }
}

impl FileHandle {
    /// From its bytes, at most 64.
    pub fn new(handle: &[u8]) -> Option<Self> {
        let mut bytes = [0; MAX_HANDLE_BYTES];
        bytes.get_mut(..handle.len())?.copy_from_slice(handle);
        Some(Self { bytes, length: u8::try_from(handle.len()).ok()? })
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        Self::new(reader.bytes(MAX_HANDLE_BYTES)?).ok_or(Fault::Wrong("a file handle of more than 64 bytes"))
    }
}

/// What kind of thing a name leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum FileKind {
    Regular,
    Directory,
    Other,
}

/// What a server says of a file (`fattr3`), as far as it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// What it is.
    pub kind: FileKind,
    /// How many names it has.
    pub links: u32,
    /// Length, in bytes.
    pub size_bytes: u64,
    /// Space that it takes, in bytes.
    pub used_bytes: u64,
    /// Its file system.
    pub fsid: u64,
    /// Its number in the file system.
    pub fileid: u64,
}

impl Attributes {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
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
        Ok(Self { kind, links, size_bytes, used_bytes, fsid, fileid })
    }

    /// `post_op_attr`.
    fn read_if_there(reader: &mut Reader<'_>) -> Result<Option<Self>, Fault> {
        if reader.bool()? { Self::read(reader).map(Some) } else { Ok(None) }
    }
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
        None => Attributes::read(&mut reader).map(Ok),
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
    Ok(Ok((handle, Attributes::read_if_there(&mut reader)?)))
}

/// Arguments of READ.
#[inline]
pub fn put_read(to: &mut Vec<u8>, handle: &FileHandle, offset: u64, bytes: u32) {
    put_handle(to, handle);
    put_u64(to, offset);
    put_u32(to, bytes);
}

/// Result of READ, before the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadHead {
    /// How many bytes of data follow.
    pub bytes: u32,
    /// Whether the file ends with them.
    pub is_end: bool,
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

/// When a WRITE shall be answered (`stable_how`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Stable {
    /// When the server has the data; COMMIT makes them durable.
    Unstable = 0,
    /// When the data are durable.
    DataSync = 1,
    /// When the data and all attributes are durable.
    FileSync = 2,
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

/// How durable a server says that written data are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// Lost when the server restarts before a COMMIT.
    Not,
    /// Durable.
    Data,
}

/// Result of WRITE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteDone {
    /// Bytes that were written.
    pub bytes: u32,
    /// How durable they are.
    pub committed: Committed,
    /// Changes when the server may have lost what was not committed.
    pub verifier: u64,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitDone {
    /// That of writes which are durable now.
    pub verifier: u64,
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

/// Result of CREATE: both may be absent, and are then asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Created {
    /// Handle of the new file.
    pub handle: Option<FileHandle>,
    /// Its attributes.
    pub attributes: Option<Attributes>,
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
    Ok(Ok(Created { handle, attributes: Attributes::read_if_there(&mut reader)? }))
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

/// What a file system's space is (FSSTAT).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FsStat {
    /// Its size, in bytes.
    pub total_bytes: u64,
    /// What this user may still take of it, in bytes.
    pub available_bytes: u64,
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

/// What a server takes in one call (FSINFO).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FsInfo {
    /// Bytes of a READ at most.
    pub read_max_bytes: u32,
    /// Bytes of a WRITE at most.
    pub write_max_bytes: u32,
    /// What lengths of a WRITE should be a multiple of.
    pub write_multiple_bytes: u32,
    /// Bytes of a file at most.
    pub file_max_bytes: u64,
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
