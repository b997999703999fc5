//! Where a member of a volume lies: at a path of this machine, or in a virtual directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::layout::{self, FileState};
use super::safety::{self, Checked, Guard, PathKind, Permission, Purpose};
use super::stamp::{FileId, SECTOR_BYTES};
use super::{BlockError, VirtualPlace, signature};
use crate::crew::Progress;
use crate::error::{FileContext, TargetError};
use crate::io::{Caching, Durability, FileUse, FoundFile, IoEngine, Opening, StorageFile, VirtualDirectory};

/// Where a member lies.
#[derive(Debug, Clone)]
pub enum MemberLocation {
    /// A file or block device of this machine.
    Local(PathBuf),
    /// A file in a virtual directory.
    Virtual(VirtualPlace),
}

impl VirtualPlace {
    fn check(&self, purpose: Purpose<'_>) -> Result<Checked, TargetError> {
        let missing = || BlockError::Missing { path: self.address.clone() };
        let claim = match purpose {
            Purpose::Read if self.directory.is_claimed(&self.name).of_file("find the claim on", &self.address)? => {
                return Err(BlockError::Held { path: self.address.clone(), name: self.name.clone() }.into());
            }
            Purpose::Read => None,
            Purpose::Write(_) => Some(self.claim()?),
        };
        let found = self.find()?.ok_or_else(missing)?;
        let id = match found.length_bytes >= SECTOR_BYTES as u64 {
            true => {
                let mut sector = [0; SECTOR_BYTES];
                let file = self.open(Opening::READ, Some(found.identity))?;
                file.read_exact_at(&mut sector, 0).of_file("read", &self.address)?;
                FileId::found_in(&sector)
            }
            false => None,
        };
        if let Purpose::Write(permission) = purpose
            && found.length_bytes > 0
            && id.is_none()
        {
            if !self.is_named(permission) {
                let (path, name) = (self.address.clone(), self.name.clone());
                return Err(BlockError::NotAllowed { path, what: "a file that Plimsoll did not lay out", name }.into());
            }
            if !permission.destroy_signature {
                self.refuse_signed(&found)?;
            }
        }
        let guard = Guard::Virtual { place: self.clone(), identity: found.identity, _claim: claim };
        Ok(Checked::new(self.address.clone(), PathKind::Virtual(self.directory.kind()), id, guard))
    }

    fn refuse_signed(&self, found: &FoundFile) -> Result<(), TargetError> {
        let file = self.open(Opening::READ, Some(found.identity))?;
        let mut read = |offset: u64, length: usize| {
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, offset).map(|()| bytes)
        };
        let found = signature::find(&mut read, found.length_bytes).of_file("read", &self.address)?;
        match found.is_empty() {
            true => Ok(()),
            false => Err(BlockError::Signed { path: self.address.clone(), found }.into()),
        }
    }

    fn is_named(&self, permission: &Permission) -> bool {
        permission.destroy.iter().any(|typed| *typed == self.name || Path::new(typed) == self.address)
    }

    /// Writes the file under another name, makes it durable, and gives it its name. Nothing is left of one that failed. The caller has
    /// made sure that what has the name now may go, and has it for this run alone; otherwise it is taken here.
    fn lay_out(
        &self,
        bytes: u64,
        is_claimed: bool,
        io_engine: IoEngine,
        progress: &dyn Fn(Progress),
        stop: &AtomicBool,
    ) -> Result<FileId, TargetError> {
        let _claim = if is_claimed { None } else { Some(self.claim()?) };
        let unfinished =
            layout::unfinished_path(Path::new(&self.name)).to_string_lossy().trim_start_matches("./").to_owned();
        let unfinished = Self::new(Arc::clone(&self.directory), unfinished);
        // Whoever was at work on it had the claim.
        unfinished.remove()?;
        let file = Arc::new(StorageFile::virtual_at(
            self.address.clone(),
            self.directory
                .create(&unfinished.name, bytes, FileUse::Data, Durability::OnSync)
                .of_file("create", &self.address)?,
        ));
        let laid = layout::lay_over(&file, bytes, io_engine, progress, stop);
        // A file that is open may not be given another name everywhere.
        drop(file);
        let laid = laid.and_then(|id| {
            self.directory
                .rename(&unfinished.name, &self.name)
                .of_file("rename the complete file to", &self.address)?;
            Ok(id)
        });
        if laid.is_err() {
            // The first failure is the one to report.
            let _ = unfinished.remove();
        }
        laid
    }
}

impl MemberLocation {
    /// Its path or address, for messages and the record.
    pub fn path(&self) -> &Path {
        match self {
            Self::Local(path) => path,
            Self::Virtual(place) => &place.address,
        }
    }

    /// Its path, if it is one of this machine.
    pub fn local(&self) -> Option<&Path> {
        match self {
            Self::Local(path) => Some(path),
            Self::Virtual(_) => None,
        }
    }

    /// The virtual directory that it lies in.
    pub fn directory(&self) -> Option<&Arc<dyn VirtualDirectory>> {
        match self {
            Self::Local(_) => None,
            Self::Virtual(place) => Some(&place.directory),
        }
    }

    /// Whether anything has this name, be it a link that leads nowhere.
    pub(crate) fn is_there(&self) -> Result<bool, TargetError> {
        match self {
            Self::Local(path) => Ok(path.symlink_metadata().is_ok()),
            Self::Virtual(place) => Ok(place.find()?.is_some()),
        }
    }

    /// Refuses a path at which nothing is, or a link that leads to nothing, where it could only be a device.
    pub(crate) fn refuse_new_among_devices(&self) -> Result<(), TargetError> {
        match self {
            Self::Local(path) if !path.exists() => safety::refuse_system_place(path),
            Self::Local(_) | Self::Virtual(_) => Ok(()),
        }
    }

    pub(crate) fn open(&self) -> Result<StorageFile, TargetError> {
        match self {
            Self::Local(path) => {
                // Opening a pipe would wait for somebody who writes to it.
                PathKind::of(path, &path.metadata().of_file("open", path)?)?;
                let opening = Opening { caching: Caching::PageCache, ..Opening::READ };
                StorageFile::open_as(path, opening).of_file("open", path)
            }
            Self::Virtual(place) => place.open(Opening::READ, None),
        }
    }

    /// Judges it alone: for reads, or for writes with this permission.
    pub(crate) fn check(&self, permission: Option<&Permission>) -> Result<Checked, TargetError> {
        let purpose = permission.map_or(Purpose::Read, Purpose::Write);
        let missing = || BlockError::Missing { path: self.path().to_owned() };
        Ok(check(std::slice::from_ref(self), purpose)?.pop().ok_or_else(missing)?)
    }

    /// Removes a file that was made by this process.
    pub(crate) fn remove(&self) -> Result<(), TargetError> {
        match self {
            Self::Local(path) => files::remove(path).of_file("remove", path),
            Self::Virtual(place) => place.remove(),
        }
    }

    pub(crate) fn length(&self) -> Result<u64, TargetError> {
        self.open()?.length().of_file("find the size of", self.path())
    }

    /// See [`layout::inspect`].
    pub(super) fn inspect(&self, wanted_bytes: u64) -> Result<FileState, TargetError> {
        match self {
            Self::Local(path) => layout::inspect(path, wanted_bytes),
            Self::Virtual(_) => layout::inspect_open(&self.open()?, wanted_bytes),
        }
    }

    /// Lays out a file of `bytes` bytes in the place of what is there, which the caller has judged: `replaced` holds it.
    pub(super) fn lay_out(
        &self,
        bytes: u64,
        replaced: Option<&Checked>,
        io_engine: IoEngine,
        progress: &dyn Fn(Progress),
        stop: &AtomicBool,
    ) -> Result<FileId, TargetError> {
        match self {
            Self::Local(path) => {
                layout::lay_out(path, bytes, replaced.and_then(Checked::local), io_engine, progress, stop)
            }
            Self::Virtual(place) => place.lay_out(bytes, replaced.is_some(), io_engine, progress, stop),
        }
    }
}

/// Judges all places. Nothing is written but claims.
///
/// # Errors
/// The first thing that forbids the purpose, see [`safety::check`].
pub(super) fn check(places: &[MemberLocation], purpose: Purpose<'_>) -> Result<Vec<Checked>, TargetError> {
    for (index, second) in places.iter().enumerate() {
        let is_same = |first: &&MemberLocation| first.local().is_none() && first.path() == second.path();
        if let Some(first) = places[..index].iter().find(is_same) {
            let (first, second) = (first.path().to_owned(), second.path().to_owned());
            return Err(BlockError::Same { first, second, what: "the same file" }.into());
        }
    }
    let local: Vec<PathBuf> = places.iter().filter_map(MemberLocation::local).map(Path::to_owned).collect();
    let mut local = safety::check(&local, purpose)?.into_iter();
    let mut checked = Vec::with_capacity(places.len());
    for place in places {
        checked.extend(match place {
            MemberLocation::Local(_) => local.next(),
            MemberLocation::Virtual(place) => Some(place.check(purpose)?),
        });
    }
    Ok(checked)
}
