//! What servers of either version say, as far as it is used.

use std::fmt;

use super::{Fault, Reader};

/// Bytes of a file handle at most: in version 4, and in version 3.
const MAX_HANDLE_BYTES: usize = 128;
const MAX_HANDLE_BYTES_3: usize = 64;

/// Why a server refused what a call asked for: `nfsstat3`, `mountstat3` or `nfsstat4`, which agree where
/// several have a number. Never 0.
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
    /// The server is not ready for it yet; nothing was done. Version 4 calls it DELAY.
    pub const JUKEBOX: Self = Self(10008);
    /// The server has restarted, and lets clients of its life before come first; nothing was done.
    pub const GRACE: Self = Self(10013);
    /// Nobody may write.
    pub const ROFS: Self = Self(30);
    /// The server does not know the client any more.
    pub const STALE_CLIENTID: Self = Self(10022);
    /// The export wants another authentication.
    pub const WRONGSEC: Self = Self(10016);
    /// The server speaks version 4, and not this minor one.
    pub const MINOR_VERS_MISMATCH: Self = Self(10021);
    /// The server does not know the session.
    pub const BADSESSION: Self = Self(10052);
    /// It was said before that nothing is reclaimed any more.
    pub const COMPLETE_ALREADY: Self = Self(10054);
    /// The reply of a request that was sent again is not kept: it was done.
    pub const RETRY_UNCACHED_REP: Self = Self(10068);

    /// Whether the session is no more, or of no use since the server and this client count requests in a slot differently: what was sent
    /// was not done.
    pub const fn is_of_session(self) -> bool {
        // BADSESSION, DEADSESSION, STALE_CLIENTID, EXPIRED, CONN_NOT_BOUND_TO_SESSION; BADSLOT, SEQ_MISORDERED, SEQ_FALSE_RETRY,
        // BAD_HIGH_SLOT.
        matches!(self.0, 10052 | 10078 | 10022 | 10011 | 10055 | 10053 | 10063 | 10076 | 10077)
    }

    /// Whether the open state is no more: nothing was done.
    pub const fn is_of_state(self) -> bool {
        // EXPIRED, STALE_STATEID, OLD_STATEID, BAD_STATEID, ADMIN_REVOKED.
        matches!(self.0, 10011 | 10023 | 10024 | 10025 | 10047)
    }

    /// Its name in RFC 1813 or RFC 8881, without what it begins with.
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
            10011 => "EXPIRED",
            10013 => "GRACE",
            10015 => "SHARE_DENIED",
            10016 => "WRONGSEC",
            10017 => "CLID_INUSE",
            10018 => "RESOURCE",
            10021 => "MINOR_VERS_MISMATCH",
            10022 => "STALE_CLIENTID",
            10023 => "STALE_STATEID",
            10024 => "OLD_STATEID",
            10025 => "BAD_STATEID",
            10033 => "NO_GRACE",
            10034 => "RECLAIM_BAD",
            10036 => "BADXDR",
            10047 => "ADMIN_REVOKED",
            10052 => "BADSESSION",
            10053 => "BADSLOT",
            10054 => "COMPLETE_ALREADY",
            10055 => "CONN_NOT_BOUND_TO_SESSION",
            10063 => "SEQ_MISORDERED",
            10068 => "RETRY_UNCACHED_REP",
            10074 => "CLIENTID_BUSY",
            10076 => "SEQ_FALSE_RETRY",
            10077 => "BAD_HIGH_SLOT",
            10078 => "DEADSESSION",
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
            10008 | 10013 => libc::EAGAIN,
            _ => libc::EIO,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "NFSERR_{name}"),
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
    /// From its bytes, at most 128.
    pub fn new(handle: &[u8]) -> Option<Self> {
        let mut bytes = [0; MAX_HANDLE_BYTES];
        bytes.get_mut(..handle.len())?.copy_from_slice(handle);
        Some(Self { bytes, length: u8::try_from(handle.len()).ok()? })
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// As a result of version 3.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        Self::new(reader.bytes(MAX_HANDLE_BYTES_3)?).ok_or(Fault::Wrong("a file handle of more than 64 bytes"))
    }

    /// As a result of version 4.
    pub(super) fn read_longer(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        Self::new(reader.bytes(MAX_HANDLE_BYTES)?).ok_or(Fault::Wrong("a file handle of more than 128 bytes"))
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

/// Result of READ, before the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadHead {
    /// How many bytes of data follow.
    pub bytes: u32,
    /// Whether the file ends with them.
    pub is_end: bool,
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

/// Result of COMMIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitDone {
    /// That of writes which are durable now.
    pub verifier: u64,
}

/// Result of CREATE, or of an OPEN that creates: handle and attributes may be absent, and are then asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Created {
    /// Handle of the new file.
    pub handle: Option<FileHandle>,
    /// Its attributes.
    pub attributes: Option<Attributes>,
    /// Its open state; version 3 has none.
    pub state: Option<StateId>,
}

/// What a server of version 4 calls the open state of a file by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateId(pub [u8; 12]);

/// What a file system's space is (FSSTAT).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FsStat {
    /// Its size, in bytes.
    pub total_bytes: u64,
    /// What this user may still take of it, in bytes.
    pub available_bytes: u64,
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
