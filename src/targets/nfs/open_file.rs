//! What an open file is to those who send calls about it.

use std::sync::{Arc, Mutex};

use super::mount::NfsMount;
use super::unstable::{Uncommitted, Writers};
use super::wire::{Attributes, FileHandle, Stable};
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
    pub(super) writers: Writers,
    /// What cold calls wrote; one thread at a time counts.
    pub(super) cold: Mutex<Arc<Uncommitted>>,
}

/// What a server is asked for with each write.
pub(super) const fn stable(durability: Durability) -> Stable {
    match durability {
        Durability::OnSync => Stable::Unstable,
        Durability::EachWrite => Stable::DataSync,
    }
}
