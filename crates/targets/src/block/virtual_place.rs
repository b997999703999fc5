//! A file in a virtual directory as a member of a volume.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::BlockError;
use crate::error::{FileContext, TargetError};
use crate::io::{Claim, Durability, FileUse, FoundFile, Opening, StorageFile, VirtualDirectory};

/// A file in a virtual directory, whether or not it is there yet.
#[derive(Debug, Clone)]
pub struct VirtualPlace {
    pub(super) directory: Arc<dyn VirtualDirectory>,
    pub(super) name: String,
    pub(super) address: PathBuf,
}

impl VirtualPlace {
    /// The file of that name.
    pub fn new(directory: Arc<dyn VirtualDirectory>, name: String) -> Self {
        let address = directory.address_of(&name);
        Self { directory, name, address }
    }

    /// Its address, for messages and the record.
    pub fn address(&self) -> &Path {
        &self.address
    }

    /// Where it lies.
    pub fn directory(&self) -> &Arc<dyn VirtualDirectory> {
        &self.directory
    }

    /// What is there under its name, if anything is.
    pub(super) fn find(&self) -> Result<Option<FoundFile>, TargetError> {
        self.directory.find(&self.name).of_file("find", &self.address)
    }

    /// Opens it, if it is the file that was found before.
    pub(super) fn open(&self, opening: Opening, identity: Option<(u64, u64)>) -> Result<StorageFile, TargetError> {
        let file =
            self.directory.open(&self.name, opening.access, opening.durability).of_file("open", &self.address)?;
        let found = self.find()?;
        if identity.is_some() && found.map(|found| found.identity) != identity {
            return Err(BlockError::Replaced { path: self.address.clone() }.into());
        }
        Ok(StorageFile::virtual_at(self.address.clone(), file))
    }

    /// Has it for this run alone.
    pub(super) fn claim(&self) -> Result<Claim, TargetError> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let holder = format!("process {} on {}", std::process::id(), host.trim());
        self.directory.claim(&self.name, &holder).of_file("have for this run alone", &self.address)
    }

    /// Creates the file, which must not exist and is to have so many bytes.
    pub(crate) fn create(&self, bytes: u64) -> Result<StorageFile, TargetError> {
        let file = self.directory.create(&self.name, bytes, FileUse::Data, Durability::OnSync);
        Ok(StorageFile::virtual_at(self.address.clone(), file.of_file("create", &self.address)?))
    }

    /// Removes it; that it is not there is no error.
    pub(super) fn remove(&self) -> Result<(), TargetError> {
        self.directory.remove(&self.name).of_file("remove", &self.address)
    }
}
