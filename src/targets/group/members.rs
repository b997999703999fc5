//! Finding a group's members on this machine: locked, judged, made where they are missing, and the group opened or made over them.

use std::fs::{self, File, Metadata};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::disk_group::{DiskGroup, GroupAccess};
use super::error::GroupError;
use super::member;
use super::opening::{Guard, MemberOffer};
use crate::config::group::GroupSpec;
use crate::targets::block::safety::{Checked, Permission, Purpose, check};
use crate::targets::error::{FileContext, TargetError};
use crate::targets::io::{Access, Caching, Durability, IoEngine, Opening, StorageFile};

/// A member that is no path of this machine: the open file, and what keeps others away from it.
pub type Elsewhere = Result<(Arc<StorageFile>, Option<Guard>), String>;

/// How a group's members are found and used.
pub struct Members<'a> {
    /// The group.
    pub spec: &'a GroupSpec,
    /// What the user has said about data that may be lost, where the group has to be made.
    pub permission: &'a Permission,
    /// What for.
    pub access: GroupAccess,
    /// When a write counts as done.
    pub durability: Durability,
    /// How requests to local members reach the kernel.
    pub io_engine: IoEngine,
    /// Opens a member that is named by an address and no path; none for a text that is a path.
    pub elsewhere: &'a dyn Fn(&str) -> Option<Elsewhere>,
    /// Reported of resynchronisation: bytes done, and in all.
    pub progress: &'a dyn Fn(u64, u64),
    /// Ends it early.
    pub stop: &'a AtomicBool,
}

/// A member before it is locked.
enum Found {
    Local(PathBuf),
    Elsewhere(Elsewhere),
}

impl Members<'_> {
    /// Opens the group, or makes it where none of its members belongs to one yet. A group that is opened for reads must be there.
    ///
    /// # Errors
    /// What forbids to use a member ([`BlockError`](crate::targets::block::BlockError)), or what is wrong with the group ([`GroupError`]).
    pub fn open_or_create(&self) -> Result<DiskGroup, TargetError> {
        let find = |name: &str| match (self.elsewhere)(name) {
            Some(elsewhere) => Found::Elsewhere(elsewhere),
            None => Found::Local(PathBuf::from(name)),
        };
        let found: Vec<(String, Found)> = self.spec.members().map(|(_, name)| (name.to_owned(), find(name))).collect();
        if self.is_there(&found)? || self.access == GroupAccess::Read {
            let offers = self.offers(found)?;
            let (access, engine) = (self.access, self.io_engine);
            return Ok(DiskGroup::open(self.spec, offers, access, engine, self.progress, self.stop)?);
        }
        self.create(found)
    }

    /// Whether any member belongs to a group.
    fn is_there(&self, found: &[(String, Found)]) -> Result<bool, TargetError> {
        for (_, found) in found {
            let has_header = match found {
                Found::Local(path) => is_member(path)?,
                Found::Elsewhere(Ok((file, _))) => member::read_header(file).of_file("read", file.path())?.is_some(),
                Found::Elsewhere(Err(_)) => false,
            };
            if has_header {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Locks what is there and opens it. What the group itself laid out needs no permission.
    fn offers(&self, found: Vec<(String, Found)>) -> Result<Vec<MemberOffer>, TargetError> {
        let mut permission = self.permission.clone();
        for path in found.iter().filter_map(|(_, found)| local(found)) {
            if is_member(&path)? {
                permission.destroy.push(absolute(&path));
            }
        }
        self.lock(found, &permission)
    }

    /// Locks and opens everything that is there.
    fn lock(&self, found: Vec<(String, Found)>, permission: &Permission) -> Result<Vec<MemberOffer>, TargetError> {
        let there: Vec<PathBuf> =
            found.iter().filter_map(|(_, found)| local(found)).filter(|path| path.exists()).collect();
        let mut checked = self.judge(&there, permission)?.into_iter();
        let mut offers = Vec::new();
        for (name, found) in found {
            let (file, guard) = match found {
                Found::Local(path) if !there.contains(&path) => (Err("it is not there".to_owned()), None),
                Found::Local(path) => {
                    let guard = checked.next().map(|checked| Box::new(checked) as Guard);
                    (Ok(self.open(&path)?), guard)
                }
                Found::Elsewhere(Ok((file, guard))) => (Ok(file), guard),
                Found::Elsewhere(Err(why)) => (Err(why), None),
            };
            offers.push(MemberOffer { name, file, guard });
        }
        Ok(offers)
    }

    /// Makes members that are missing, locks all, and makes the group. Nothing that was made is left where that fails.
    fn create(&self, found: Vec<(String, Found)>) -> Result<DiskGroup, TargetError> {
        let paths: Vec<PathBuf> = found.iter().filter_map(|(_, found)| local(found)).collect();
        let (there, missing): (Vec<PathBuf>, Vec<PathBuf>) = paths.into_iter().partition(|path| path.exists());
        // All are judged before the first is made or written.
        drop(self.judge(&there, self.permission)?);
        for (name, found) in &found {
            if let Found::Elsewhere(Err(why)) = found {
                let source = std::io::Error::other(why.clone());
                return Err(GroupError::Member { action: "open", member: name.clone(), source }.into());
            }
        }
        let mut made = Made::default();
        if let Some(first) = missing.first() {
            let no_size = || GroupError::NoSize { member: first.display().to_string() };
            let size = self.spec.size.ok_or_else(no_size)?;
            missing.into_iter().try_for_each(|path| made.make(path, size.0))?;
        }
        let mut permission = self.permission.clone();
        permission.destroy.extend(made.paths.iter().map(|path| absolute(path)));
        let offers = self.lock(found, &permission)?;
        let files: Vec<Arc<StorageFile>> = offers.iter().filter_map(|offer| offer.file.clone().ok()).collect();
        DiskGroup::create(self.spec, &files, true)?;
        let group = DiskGroup::open(self.spec, offers, self.access, self.io_engine, self.progress, self.stop)?;
        made.paths.clear();
        Ok(group)
    }

    fn judge(&self, paths: &[PathBuf], permission: &Permission) -> Result<Vec<Checked>, TargetError> {
        match self.access {
            GroupAccess::Read => check(paths, Purpose::Read),
            GroupAccess::Write => check(paths, Purpose::Write(permission)),
        }
    }

    fn open(&self, path: &Path) -> Result<Arc<StorageFile>, TargetError> {
        let access = if self.access == GroupAccess::Read { Access::Read } else { Access::ReadWrite };
        let opening = Opening { access, durability: self.durability, ..Opening::WRITE };
        Ok(Arc::new(StorageFile::open_as(path, opening).of_file("open", path)?))
    }
}

/// Files that were made, to be removed again unless all went well.
#[derive(Default)]
struct Made {
    paths: Vec<PathBuf>,
}

impl Made {
    fn make(&mut self, path: PathBuf, bytes: u64) -> Result<(), TargetError> {
        let file = StorageFile::create(&path, Durability::OnSync).of_file("create", &path)?;
        self.paths.push(path.clone());
        file.reserve(bytes).of_file("reserve space for", &path)?;
        let file = File::options().write(true).open(&path).of_file("open", &path)?;
        file.set_len(bytes).of_file("lengthen", &path)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // The failure that brought us here is the one to report.
        self.paths.iter().for_each(|path| drop(fs::remove_file(path)));
    }
}

/// Whether there is a member of some group at a path. What is neither file nor device is not opened: a pipe would wait.
fn is_member(path: &Path) -> Result<bool, TargetError> {
    let holds_data = |metadata: Metadata| metadata.is_file() || metadata.file_type().is_block_device();
    if !path.metadata().is_ok_and(holds_data) {
        return Ok(false);
    }
    let opening = Opening { caching: Caching::PageCache, ..Opening::READ };
    let file = StorageFile::open_as(path, opening).of_file("open", path)?;
    Ok(member::read_header(&file).of_file("read", path)?.is_some())
}

fn local(found: &Found) -> Option<PathBuf> {
    match found {
        Found::Local(path) => Some(path.clone()),
        Found::Elsewhere(_) => None,
    }
}

/// A name that means this path and no device or file of the same name elsewhere.
fn absolute(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}
