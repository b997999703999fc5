//! Where the data files and the redo files of a data set lie: in its directory, or each in a place of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::layout::Layout;
use super::redo;
use crate::block::safety::Permission;
use crate::error::{FileContext, TargetError};
use crate::io::{Access, Caching, Durability, FileUse, Opening, StorageFile, VirtualDirectory};
use crate::places;

/// Where files lie that are not in the data set's own directory, as the user named it; directories by their absolute paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destinations {
    /// Of data files.
    #[serde(default, rename = "data_dest", skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Of redo log files.
    #[serde(default, rename = "redo_dest", skip_serializing_if = "Option::is_none")]
    pub redo: Option<String>,
    /// Of the ledger of acknowledged commits: a directory of this machine.
    #[serde(default, rename = "ledger_dest", skip_serializing_if = "Option::is_none")]
    pub ledger: Option<String>,
}

impl Destinations {
    /// Whether all files lie in the data set's own directory.
    pub fn are_own(&self) -> bool {
        self.data.is_none() && self.redo.is_none() && self.ledger.is_none()
    }
}

/// A place for files.
#[derive(Debug, Clone)]
pub(super) enum Store {
    /// A directory of this machine.
    Local(PathBuf),
    /// A directory of a server, or a disk group.
    Virtual(Arc<dyn VirtualDirectory>),
}

impl Store {
    fn open_at(
        destination: Option<&str>,
        own: &Path,
        durability: Durability,
        permission: &Permission,
    ) -> Result<Self, TargetError> {
        match destination {
            None => Ok(Self::Local(own.to_owned())),
            Some(text) if places::is_virtual(text) => {
                Ok(Self::Virtual(places::directory(text, durability, permission)?))
            }
            Some(text) => Ok(Self::Local(PathBuf::from(text))),
        }
    }

    /// Path or address of a file.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        match self {
            Self::Local(directory) => directory.join(name),
            Self::Virtual(directory) => directory.address_of(name),
        }
    }

    /// Creates a file that must not exist.
    fn create(&self, name: &str, bytes: u64, of: FileUse) -> Result<StorageFile, TargetError> {
        let path = self.path(name);
        let file = match self {
            Self::Local(directory) => {
                files::judge_directory(directory).of_file("write to", directory)?;
                StorageFile::create(&path, Durability::OnSync).of_file("create", &path)?
            }
            Self::Virtual(directory) => {
                let file = directory.create(name, bytes, of, Durability::OnSync).of_file("create", &path)?;
                StorageFile::virtual_at(path.clone(), file)
            }
        };
        file.reserve(bytes).of_file("reserve space for", &path)?;
        Ok(file)
    }

    /// Opens a file that exists.
    pub(super) fn open(&self, name: &str, durability: Durability) -> io::Result<StorageFile> {
        match self {
            Self::Local(directory) => {
                files::judge_directory(directory)?;
                StorageFile::open_own(&directory.join(name), durability)
            }
            Self::Virtual(directory) => {
                let file = directory.open(name, Access::ReadWrite, durability)?;
                Ok(StorageFile::virtual_at(directory.address_of(name), file))
            }
        }
    }

    /// The same for reads of any place and length, through the page cache where there is one.
    pub(super) fn open_to_look(&self, name: &str) -> io::Result<StorageFile> {
        match self {
            Self::Local(directory) => {
                let path = directory.join(name);
                // Whoever may write to the directory may have put a pipe there, or a link.
                drop(files::open_plain(&path, files::Links::Refused)?);
                StorageFile::open_as(&path, Opening { caching: Caching::PageCache, ..Opening::READ })
            }
            Self::Virtual(_) => self.open(name, Durability::OnSync),
        }
    }

    /// Length of a file; none where there is none.
    pub(super) fn length(&self, name: &str) -> Result<Option<u64>, TargetError> {
        let path = self.path(name);
        let found = match self {
            Self::Local(_) => match fs::metadata(&path) {
                Ok(metadata) => Ok(Some(metadata.len())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            },
            Self::Virtual(directory) => directory.find(name).map(|found| found.map(|found| found.length_bytes)),
        };
        found.of_file("find", &path)
    }

    fn remove(&self, name: &str) -> Result<(), TargetError> {
        let path = self.path(name);
        let removed = match self {
            Self::Local(_) => match files::remove(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            },
            Self::Virtual(directory) => directory.remove(name),
        };
        removed.of_file("remove", &path)
    }

    fn free_bytes(&self) -> Result<Option<u64>, TargetError> {
        match self {
            Self::Local(path) => Ok(measure::os::space(path).map(|space| space.available_bytes)),
            Self::Virtual(directory) => directory.free_bytes().of_file("find the free space of", &self.path("")),
        }
    }

    /// Makes the names of files durable, where that is needed.
    fn sync(&self) -> Result<(), TargetError> {
        match self {
            Self::Local(path) => files::sync_directory(path).of_file("sync", path),
            Self::Virtual(_) => Ok(()),
        }
    }
}

/// A file of a data set, and where it lies.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) name: String,
    pub(super) store: Store,
    pub(super) bytes: u64,
    of: FileUse,
    /// Whether it lies outside the data set's own directory.
    pub(super) is_elsewhere: bool,
}

impl Placed {
    /// Creates it.
    pub(super) fn create(&self) -> Result<Arc<StorageFile>, TargetError> {
        Ok(Arc::new(self.store.create(&self.name, self.bytes, self.of)?))
    }

    /// Its path or address.
    pub(super) fn path(&self) -> PathBuf {
        self.store.path(&self.name)
    }

    /// Opens it, and looks whether it is as long as it must be.
    pub(super) fn open(&self, durability: Durability) -> Result<StorageFile, TargetError> {
        self.checked(self.store.open(&self.name, durability))
    }

    /// The same for reads of any place and length.
    pub(super) fn open_to_look(&self) -> Result<StorageFile, TargetError> {
        self.checked(self.store.open_to_look(&self.name))
    }

    fn checked(&self, opened: io::Result<StorageFile>) -> Result<StorageFile, TargetError> {
        let (path, expected) = (self.path(), self.bytes);
        let file = opened.of_file("open", &path)?;
        let length = file.length().of_file("inspect", &path)?;
        if length < expected {
            return Err(TargetError::Truncated { path, length, expected });
        }
        Ok(file)
    }
}

/// Where all large files of a data set lie.
#[derive(Debug, Clone)]
pub(super) struct Files {
    /// Data files, in order.
    pub(super) data: Vec<Placed>,
    /// Redo log files, in order.
    pub(super) redo: Vec<Placed>,
    /// The ledger, if it lies elsewhere.
    ledger: Vec<Placed>,
}

impl Files {
    /// The files of the data set `database` in the directory `own`. Elsewhere other data sets may lie beside it, so its number is in the
    /// files' names there. `permission` has what may be overwritten where a disk group is to be made.
    ///
    /// # Errors
    /// When a destination cannot be reached.
    pub(super) fn of(
        own: &Path,
        destinations: &Destinations,
        database: u32,
        layout: &Layout,
        (redo_files, redo_file_bytes): (u32, u64),
        permission: &Permission,
    ) -> Result<Self, TargetError> {
        let place = |destination: &Option<String>, name: String, store: &Store, bytes: u64, of: FileUse| {
            let is_elsewhere = destination.is_some();
            let name = if is_elsewhere { format!("plimsoll-{database:08x}-{name}") } else { name };
            Placed { name, store: store.clone(), bytes, of, is_elsewhere }
        };
        let Destinations { data, redo, ledger } = destinations;
        // A disk group has one way for all its files: that of the log, if it has the log.
        let of_data = if redo == data { Durability::EachWrite } else { Durability::OnSync };
        let data_store = Store::open_at(data.as_deref(), own, of_data, permission)?;
        let redo_store = if redo == data {
            data_store.clone()
        } else {
            Store::open_at(redo.as_deref(), own, Durability::EachWrite, permission)?
        };
        let of_data =
            |index| place(data, Layout::file_name(index), &data_store, layout.file_bytes(index), FileUse::Data);
        let of_redo = |index| place(redo, redo::file_name(index), &redo_store, redo_file_bytes, FileUse::Redo);
        let of_ledger = |directory: &String| Placed {
            name: super::ledger::name_elsewhere(database),
            store: Store::Local(PathBuf::from(directory)),
            bytes: super::ledger::BYTES,
            of: FileUse::Redo,
            is_elsewhere: true,
        };
        Ok(Self {
            data: (0..layout.files()).map(of_data).collect(),
            redo: (0..redo_files).map(of_redo).collect(),
            ledger: ledger.iter().map(of_ledger).collect(),
        })
    }

    /// Data files, and after them log files.
    pub(super) fn all(&self) -> impl Iterator<Item = &Placed> {
        self.data.iter().chain(&self.redo)
    }

    /// Those outside the data set's own directory.
    pub(super) fn elsewhere(&self) -> impl Iterator<Item = &Placed> {
        self.all().chain(&self.ledger).filter(|file| file.is_elsewhere)
    }

    /// Removes those outside the data set's own directory.
    ///
    /// # Errors
    /// The first answer that is none; what was removed before stays removed.
    pub(super) fn remove_elsewhere(&self) -> Result<(), TargetError> {
        self.elsewhere().try_for_each(|file| file.store.remove(&file.name))
    }

    /// Makes the names of those outside the data set's own directory durable.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn sync_names(&self) -> Result<(), TargetError> {
        for files in [&self.data, &self.redo] {
            if let Some(file) = files.first().filter(|file| file.is_elsewhere) {
                file.store.sync()?;
            }
        }
        Ok(())
    }

    /// Refuses destinations that are not there, may not be written to or have less room than their files need.
    ///
    /// # Errors
    /// [`TargetError::NoSpace`], what the user has not allowed, or that a destination is no directory.
    pub(super) fn check_room(&self) -> Result<(), TargetError> {
        for files in [&self.data, &self.redo, &self.ledger] {
            let Some(first) = files.first().filter(|file| file.is_elsewhere) else { continue };
            if let Store::Local(path) = &first.store
                && !fs::metadata(path).of_file("find", path)?.is_dir()
            {
                return Err(io::Error::from_raw_os_error(libc::ENOTDIR)).of_file("open", path);
            }
            if let Store::Virtual(directory) = &first.store {
                directory.check_writable().of_file("write to", &first.store.path(""))?;
            }
            // What lies in one place needs its room together.
            let place = first.store.path("");
            let beside = self.elsewhere().filter(|file| file.store.path("") == place);
            let needed: u64 = beside.map(|file| file.bytes).sum();
            if let Some(available) = first.store.free_bytes()?.filter(|available| *available < needed) {
                let (needed, available) = (model::units::Bytes(needed), model::units::Bytes(available));
                return Err(TargetError::NoSpace { path: first.store.path(""), needed, available });
            }
        }
        Ok(())
    }

    /// What the places say of themselves, for the record and for notes.
    pub(super) fn directories(&self) -> Vec<(&'static str, Arc<dyn VirtualDirectory>)> {
        let of = |name, files: &[Placed]| match files.first().map(|file| &file.store) {
            Some(Store::Virtual(directory)) => Some((name, Arc::clone(directory))),
            _ => None,
        };
        [of("data", &self.data), of("redo", &self.redo)].into_iter().flatten().collect()
    }
}
