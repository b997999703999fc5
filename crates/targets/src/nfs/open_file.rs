//! What an open file is to those who send calls about it.

use std::sync::Arc;

use super::client::Open;
use super::error::NfsError;
use super::mount::NfsMount;
use super::unstable::{Writer, Writes};
use super::wire::{Attributes, Commit, CommitDone, FileHandle, Procedure, Read, Stable, StateId, Write, WriteDone};
use crate::io::Durability;

/// How often a file is opened again for one call.
const MAX_OPENS: u32 = 3;

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
    /// What the server calls it by while it is open; version 3 knows no open files.
    pub(super) open: Option<Arc<Open>>,
    pub(super) writes: Writes,
    /// What cold calls write.
    pub(super) cold: Arc<Writer>,
}

impl OpenFile {
    /// Its open state at present.
    pub(super) fn state(&self) -> StateId {
        self.open.as_ref().map(|open| open.state()).unwrap_or_default()
    }

    /// Opens it again, if its state is still `lost`.
    pub(super) fn open_again(&self, lost: StateId) -> Result<(), NfsError> {
        self.open.as_ref().map_or(Ok(()), |open| self.mount.open_again(open, lost, &self.path))
    }

    /// Asks with the open state, and once more with another one where the server does not know it any more.
    fn with_state<T>(&self, ask: impl Fn(StateId) -> Result<T, NfsError>) -> Result<T, NfsError> {
        let mut opens = 0;
        loop {
            let state = self.state();
            match ask(state) {
                Err(NfsError::Refused { status, .. }) if status.is_of_state() && opens < MAX_OPENS => {
                    opens += 1;
                    self.open_again(state)?;
                }
                answer => return answer,
            }
        }
    }

    /// One READ, of `bytes` at most, by a call that blocks.
    pub(super) fn read_once(&self, offset: u64, bytes: u32) -> Result<Vec<u8>, NfsError> {
        self.with_state(|state| self.mount.ask(&Read { file: (&self.handle, state), offset, bytes }, &self.path))
    }

    /// One WRITE, of as much as fits into it, by a call that blocks.
    pub(super) fn write_once(&self, stable: Stable, offset: u64, data: &[u8]) -> Result<WriteDone, NfsError> {
        let answer = self.with_state(|state| {
            self.mount.ask(&Write { file: (&self.handle, state), offset, data, stable }, &self.path)
        });
        let done = answer.map_err(|error| match error {
            NfsError::Silent { path, .. } | NfsError::Broken { path, .. } | NfsError::Garbage { path, .. } => {
                NfsError::WriteUnanswered { path, why: error.to_string() }
            }
            NfsError::DoneOrNot { .. } => {
                let why = error.to_string();
                self.mount.ways().first().map_or(error, |path| NfsError::WriteUnanswered { path, why })
            }
            error => error,
        })?;
        if done.bytes == 0 || done.bytes as usize > data.len() {
            return Err(self.mount.garbage(Procedure::Write, "a WRITE of more than was sent, or of nothing"));
        }
        Ok(done)
    }

    /// One COMMIT of the whole file, by a call that blocks.
    pub(super) fn commit_once(&self) -> Result<CommitDone, NfsError> {
        self.mount.ask(&Commit(&self.handle), &self.path)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.open.iter().for_each(|open| self.mount.close(open));
    }
}

/// What a server is asked for with each write.
pub(super) const fn stable(durability: Durability) -> Stable {
    match durability {
        Durability::OnSync => Stable::Unstable,
        Durability::EachWrite => Stable::DataSync,
    }
}
