//! A directory of an NFS server, as storage is opened in it.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::claim::{NfsClaim, SUFFIX};
use super::error::NfsError;
use super::file::NfsFile;
use super::mount::NfsMount;
use super::wire::{Attributes, FileKind};
use crate::io::{Access, Claim, Durability, FileUse, FoundFile, VirtualDirectory, VirtualFile};
use model::config::nfs::{DEFAULT_CONNECTIONS, DEFAULT_OUTSTANDING, NfsAddress};
use model::record::facts::NFS_VOLUME_BYTES;

/// A directory of a server. All files in it share a mount.
#[derive(Clone)]
pub struct NfsDirectory {
    mount: Arc<NfsMount>,
    /// From the server's root, without a slash at its end.
    path: String,
    address: NfsAddress,
}

impl fmt::Debug for NfsDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NfsDirectory({} {})", self.path, self.address)
    }
}

impl NfsDirectory {
    /// Mounts the directory that the file of `address` lies in.
    ///
    /// # Errors
    /// Why no path answers, or why the server refuses.
    pub fn of_file(address: &NfsAddress) -> Result<Self, NfsError> {
        let (directory, _) = address.directory_and_name();
        let path = directory.trim_end_matches('/').to_owned();
        Ok(Self { mount: NfsMount::connect(address)?, path, address: address.clone() })
    }

    /// Mounts the directory that `address` itself names.
    ///
    /// # Errors
    /// As [`NfsDirectory::of_file`].
    pub fn of_directory(address: &NfsAddress) -> Result<Self, NfsError> {
        let path = address.path.trim_end_matches('/').to_owned();
        // What is looked for is an export at or above the directory of a file.
        let file = NfsAddress { path: format!("{path}/file"), ..address.clone() };
        Ok(Self { mount: NfsMount::connect(&file)?, path, address: address.clone() })
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// What connections there are, in words.
    pub fn words(&self) -> String {
        let NfsAddress { server, connections, outstanding, .. } = &self.address;
        let paths: Vec<String> =
            self.address.routes().map(|(path, _)| path.shown(self.address.port_of(path))).collect();
        let (connections, outstanding) =
            (connections.unwrap_or(DEFAULT_CONNECTIONS), outstanding.unwrap_or(DEFAULT_OUTSTANDING));
        format!(
            "NFS version {} of this program itself to {}: paths {}, for each thread {connections} connections to each, at most \
             {} requests outstanding on one{}",
            self.address.version.name(),
            server.shown(model::config::nfs::DEFAULT_PORT),
            paths.join(", "),
            self.mount.slots().map_or(outstanding, |slots| slots.min(outstanding)),
            match self.mount.slots().filter(|slots| *slots < outstanding) {
                Some(slots) => format!(", since the server grants a session {slots} slots of the {outstanding} asked"),
                None => String::new(),
            }
        )
    }
}

impl VirtualDirectory for NfsDirectory {
    fn kind(&self) -> &'static str {
        "NFS file"
    }

    fn address_of(&self, name: &str) -> PathBuf {
        let path = self.path_of(name);
        // A name that no address can have is refused by whatever is done with it.
        self.address.with_path(&path).map_or_else(|_| PathBuf::from(path), |address| PathBuf::from(address.to_string()))
    }

    fn find(&self, name: &str) -> io::Result<Option<FoundFile>> {
        let path = self.path_of(name);
        match self.mount.look_up(&path) {
            Ok((_, Attributes { kind: FileKind::Regular, size_bytes, fsid, fileid, .. })) => {
                Ok(Some(FoundFile { length_bytes: size_bytes, identity: (fsid, fileid) }))
            }
            Ok(_) => Err(NfsError::NotAFile { name: path }.into()),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn open(&self, name: &str, _: Access, durability: Durability) -> io::Result<Arc<dyn VirtualFile>> {
        Ok(Arc::new(NfsFile::open(&self.mount, &self.path_of(name), durability)?))
    }

    fn create(&self, name: &str, _: u64, _: FileUse, durability: Durability) -> io::Result<Arc<dyn VirtualFile>> {
        Ok(Arc::new(NfsFile::create(&self.mount, &self.path_of(name), durability)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(self.mount.rename(&self.path_of(from), &self.path_of(to))?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match self.mount.remove(&self.path_of(name)) {
            Err(error) if error.is_not_found() => Ok(()),
            removed => Ok(removed?),
        }
    }

    fn free_bytes(&self) -> io::Result<Option<u64>> {
        Ok(Some(self.mount.space()?.available_bytes))
    }

    fn claim(&self, name: &str, holder: &str) -> io::Result<Claim> {
        Ok(Box::new(NfsClaim::take(&self.mount, &self.path_of(name), holder)?))
    }

    fn is_claimed(&self, name: &str) -> io::Result<bool> {
        Ok(self.find(&format!(".{name}{SUFFIX}"))?.is_some())
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let NfsAddress { connections, outstanding, .. } = &self.address;
        let paths: Vec<String> =
            self.address.routes().map(|(path, _)| path.shown(self.address.port_of(path))).collect();
        let info = self.mount.info();
        let volume_bytes = self.mount.space().ok().map(|space| (NFS_VOLUME_BYTES, space.total_bytes.to_string()));
        let facts = [
            ("protocol", format!("nfs{}", self.address.version.name())),
            ("nfs_paths", paths.join(" ")),
            ("nfs_connections", connections.unwrap_or(DEFAULT_CONNECTIONS).to_string()),
            ("nfs_outstanding", outstanding.unwrap_or(DEFAULT_OUTSTANDING).to_string()),
            ("nfs_read_max", info.read_max_bytes.to_string()),
            ("nfs_write_max", info.write_max_bytes.to_string()),
        ];
        let slots = self.mount.slots().map(|slots| ("nfs_slots", slots.to_string()));
        facts.into_iter().chain(slots).chain(volume_bytes).collect()
    }
}
