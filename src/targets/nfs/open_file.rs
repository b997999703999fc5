//! What an open file is to those who send calls about it.

use std::sync::Arc;

use super::error::NfsError;
use super::mount::NfsMount;
use super::unstable::{Writer, Writes};
use super::wire::{self, Attributes, CommitDone, FileHandle, Procedure, Stable, WriteDone};
use crate::targets::io::Durability;

/// What makes a file itself, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// The server's number of its file system.
    pub fsid: u64,
    /// Its number there.
    pub fileid: u64,
}

impl From<&Attributes> for FileIdentity {
    fn from(attributes: &Attributes) -> Self {
        Self { fsid: attributes.fsid, fileid: attributes.fileid }
    }
}

/// An open file.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) mount: Arc<NfsMount>,
    pub(super) handle: FileHandle,
    /// From the server's root.
    pub(super) path: String,
    pub(super) durability: Durability,
    pub(super) identity: FileIdentity,
    pub(super) writes: Writes,
    /// What cold calls write.
    pub(super) cold: Arc<Writer>,
}

impl OpenFile {
    /// One WRITE, of as much as fits into it, by a call that blocks.
    pub(super) fn write_once(&self, stable: Stable, offset: u64, data: &[u8]) -> Result<WriteDone, NfsError> {
        let put = |to: &mut Vec<u8>| {
            wire::put_write_head(to, &self.handle, offset, data.len() as u32, stable);
            to.extend_from_slice(data);
            to.resize(to.len().next_multiple_of(4), 0);
        };
        let answer = self.mount.ask_once(Procedure::Write, &self.path, put, wire::write_done);
        let done = answer.map_err(|error| match error {
            NfsError::Silent { path, .. } | NfsError::Broken { path, .. } | NfsError::Garbage { path, .. } => {
                NfsError::WriteUnanswered { path, why: error.to_string() }
            }
            error => error,
        })?;
        if done.bytes == 0 || done.bytes as usize > data.len() {
            let what = "a WRITE of more than was sent, or of nothing";
            return Err(NfsError::Garbage { path: self.mount.routes()[0].to, call: Procedure::Write.name(), what });
        }
        Ok(done)
    }

    /// One COMMIT of the whole file, by a call that blocks.
    pub(super) fn commit_once(&self) -> Result<CommitDone, NfsError> {
        self.mount.ask(Procedure::Commit, &self.path, |to| wire::put_commit(to, &self.handle), wire::commit_done)
    }
}

/// What a server is asked for with each write.
pub(super) const fn stable(durability: Durability) -> Stable {
    match durability {
        Durability::OnSync => Stable::Unstable,
        Durability::EachWrite => Stable::DataSync,
    }
}
