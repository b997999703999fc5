//! One file or device of a volume, open for load.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use super::BlockError;
use super::safety::{Checked, PathKind};
use super::stamp::FileId;
use crate::targets::error::{FileContext, TargetError};
use crate::targets::io::{Opening, StorageFile};

/// A file or device that has passed the checks and is open. Others are kept away as long as it lives.
#[derive(Debug)]
pub struct Member {
    file: Arc<StorageFile>,
    kind: PathKind,
    id: Option<FileId>,
    length_bytes: u64,
    /// Keeps the lock or the exclusive claim; never read or written.
    _guard: File,
}

impl Member {
    /// Opens what has been checked. The exclusive claim on a device that is to be written to is that of the check.
    ///
    /// # Errors
    /// [`BlockError::Replaced`] when the path leads elsewhere by now, or the system's error.
    pub fn open(checked: Checked, opening: Opening) -> Result<Self, TargetError> {
        let path = checked.path().to_owned();
        let (kind, id, guard) = (checked.kind(), checked.id(), checked.into_guard());
        let file = StorageFile::open_as(&path, opening).of_file("open", &path)?;
        if !file.is_same_as(&guard).of_file("look at", &path)? {
            return Err(BlockError::Replaced { path }.into());
        }
        let length_bytes = file.length().of_file("find the size of", &path)?;
        Ok(Self { file: Arc::new(file), kind, id, length_bytes, _guard: guard })
    }

    /// The open file.
    pub fn file(&self) -> &Arc<StorageFile> {
        &self.file
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// What it is.
    pub fn kind(&self) -> PathKind {
        self.kind
    }

    /// The number that its first sector carried when it was checked; none if Plimsoll did not lay it out.
    pub fn id(&self) -> Option<FileId> {
        self.id
    }

    /// Length when it was opened, in bytes.
    pub fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// Smallest request that it takes without the kernel reading or writing more, in bytes.
    pub fn request_unit_bytes(&self) -> u32 {
        self.file.direct_unit_bytes().max(self.file.logical_sector_bytes().unwrap_or(0))
    }

    /// Looks whether it is still there and as long as it was.
    ///
    /// # Errors
    /// [`TargetError::Vanished`], [`TargetError::Truncated`], or the system's error.
    pub fn check_health(&self) -> Result<(), TargetError> {
        let path = || self.path().to_owned();
        if self.kind == PathKind::File && !self.file.is_linked().of_file("look at", self.path())? {
            return Err(TargetError::Vanished { path: path() });
        }
        let length = self.file.length().of_file("find the size of", self.path())?;
        if length < self.length_bytes {
            return Err(TargetError::Truncated { path: path(), length, expected: self.length_bytes });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::targets::block::safety::{Permission, Purpose, check};
    use crate::targets::io::Caching;

    fn file_of(bytes: usize) -> (tempfile::TempDir, Checked) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        fs::write(&path, vec![3; bytes]).unwrap();
        let permission = Permission { destroy: vec!["data".to_owned()], destroy_signature: false };
        let checked = check(&[path], Purpose::Write(&permission)).unwrap().remove(0);
        (directory, checked)
    }

    #[test]
    fn a_member_knows_its_size_and_keeps_its_lock() {
        let (_directory, checked) = file_of(12_288);
        let path = checked.path().to_owned();
        let member = Member::open(checked, Opening::WRITE).unwrap();
        assert_eq!((member.length_bytes(), member.kind(), member.id()), (12_288, PathKind::File, None));
        assert!(member.request_unit_bytes() >= 512);
        assert!(check(std::slice::from_ref(&path), Purpose::Read).is_err());
        drop(member);
        check(&[path], Purpose::Read).unwrap();
    }

    #[test]
    fn the_page_cache_is_used_when_asked_for() {
        let (_directory, checked) = file_of(4096);
        let member = Member::open(checked, Opening { caching: Caching::PageCache, ..Opening::READ }).unwrap();
        assert_eq!(member.file().caching(), Caching::PageCache);
        assert!(member.file().write_all_at(&[0; 512], 0).is_err(), "opened for reads only");
    }

    #[test]
    fn a_file_that_shrinks_or_vanishes_is_noticed() {
        let (directory, checked) = file_of(8192);
        let path = checked.path().to_owned();
        let member = Member::open(checked, Opening::READ).unwrap();
        member.check_health().unwrap();
        File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
        assert!(matches!(member.check_health(), Err(TargetError::Truncated { length: 4096, expected: 8192, .. })));
        drop(directory);
        assert!(matches!(member.check_health(), Err(TargetError::Vanished { .. })));
    }

    #[test]
    fn a_file_that_was_replaced_after_its_check_is_not_opened() {
        let (directory, checked) = file_of(4096);
        let other = directory.path().join("other");
        fs::write(&other, vec![1; 4096]).unwrap();
        fs::rename(&other, checked.path()).unwrap();
        let said = Member::open(checked, Opening::WRITE).unwrap_err().to_string();
        assert!(said.ends_with("was replaced by another file meanwhile"), "{said}");
    }
}
