//! One file or device of a volume, open for load.

use std::path::Path;
use std::sync::Arc;

use super::BlockError;
use super::safety::{Checked, Guard, PathKind};
use super::stamp::FileId;
use crate::error::{FileContext, TargetError};
use crate::io::{Opening, StorageFile};
use crate::watch::{Watch, look};

/// A file or device that has passed the checks and is open. Others are kept away as long as it lives.
#[derive(Debug)]
pub struct Member {
    file: Arc<StorageFile>,
    kind: PathKind,
    id: Option<FileId>,
    length_bytes: u64,
    /// Keeps the lock or the exclusive claim; never read or written.
    _guard: Guard,
    /// Looks at a file that only a server can be asked about.
    watch: Option<Watch>,
}

impl Member {
    /// Opens what has been checked. The exclusive claim on a device that is to be written to is that of the check.
    ///
    /// # Errors
    /// [`BlockError::Replaced`] when the path leads elsewhere by now, or the system's error.
    pub fn open(checked: Checked, opening: Opening) -> Result<Self, TargetError> {
        let path = checked.path().to_owned();
        let (kind, id, guard) = (checked.kind(), checked.id(), checked.into_guard());
        let file = match &guard {
            Guard::Local(guard) => {
                let file = StorageFile::open_as(&path, opening).of_file("open", &path)?;
                if !file.is_same_as(guard).of_file("look at", &path)? {
                    return Err(BlockError::Replaced { path }.into());
                }
                file
            }
            Guard::Virtual { place, identity, .. } => place.open(opening, Some(*identity))?,
        };
        let file = Arc::new(file);
        let length_bytes = file.length().of_file("find the size of", &path)?;
        let watch = file.virtual_file().map(|_| Watch::begin(&file, length_bytes)).transpose();
        let watch =
            watch.map_err(|source| TargetError::Kernel { action: "start a thread that looks after files", source })?;
        Ok(Self { file, kind, id, length_bytes, _guard: guard, watch })
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

    /// Looks whether it is still there and as long as it was; of a virtual file, what was seen of it last.
    ///
    /// # Errors
    /// [`TargetError::Vanished`], [`TargetError::Truncated`], or the system's error.
    pub fn check_health(&self) -> Result<(), TargetError> {
        match &self.watch {
            Some(watch) => watch.seen(),
            None => self.look_now(),
        }
    }

    /// Looks whether it is still there and as long as it was, however long that takes.
    ///
    /// # Errors
    /// As [`Member::check_health`].
    pub(super) fn look_now(&self) -> Result<(), TargetError> {
        look(&self.file, self.kind != PathKind::BlockDevice, self.length_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;
    use crate::block::safety::{Permission, Purpose, check};
    use crate::io::Caching;

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
