//! `acknowledged.led`: what sessions were reported is committed.
//!
//! For every session one word: the number of its last commit that was acknowledged. It is written through the page cache
//! before the session is reported, so it survives the death of the process, and after the commit is durable, so it never
//! claims too much. After a crash `verify` holds it against what recovery found. A machine that loses power may lose the
//! newest words; the ledger then claims less, never more.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::database::MAX_SESSIONS;
use crate::error::{FileContext, TargetError};
use files::How;

/// Name of the ledger.
pub const FILE_NAME: &str = "acknowledged.led";

/// The open ledger.
#[derive(Debug)]
pub struct Ledger {
    file: File,
    path: PathBuf,
}

impl Ledger {
    /// Makes the ledger of a new data set.
    ///
    /// # Errors
    /// The system's error.
    pub fn create(directory: &Path) -> Result<(), TargetError> {
        let path = directory.join(FILE_NAME);
        let file = files::make_new(&path, How::default()).of_file("create", &path)?;
        let ledger = Self { file, path };
        ledger.note(0, &vec![0; MAX_SESSIONS as usize], &mut Vec::new())?;
        ledger.file.sync_data().of_file("sync", &ledger.path)
    }

    /// Opens the ledger.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(directory: &Path) -> Result<Self, TargetError> {
        let path = directory.join(FILE_NAME);
        let file = files::open_own(&path, How::default()).of_file("open", &path)?;
        Ok(Self { file, path })
    }

    /// Notes the last acknowledged commits of neighbouring sessions, the first of which is `first`. `bytes` is memory for
    /// their encoding, so that nothing is allocated here.
    ///
    /// # Errors
    /// The system's error.
    pub fn note(&self, first: u32, commits: &[u64], bytes: &mut Vec<u8>) -> Result<(), TargetError> {
        bytes.clear();
        commits.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        self.file.write_all_at(bytes, u64::from(first) * 8).of_file("write", &self.path)
    }

    /// The last acknowledged commit of every session.
    ///
    /// # Errors
    /// [`TargetError::Damaged`] when it is too short, or the system's error.
    pub fn read(&self) -> Result<Vec<u64>, TargetError> {
        let mut bytes = vec![0; MAX_SESSIONS as usize * 8];
        match self.file.read_exact_at(&mut bytes, 0) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(TargetError::Damaged { path: self.path.clone(), what: "it is too short".to_owned() })
            }
            read => read.of_file("read", &self.path),
        }?;
        Ok(bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_back_and_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        Ledger::create(dir.path()).unwrap();
        let ledger = Ledger::open(dir.path()).unwrap();
        ledger.note(3, &[7, 8], &mut Vec::new()).unwrap();
        let read = ledger.read().unwrap();
        assert_eq!(read[..6], [0, 0, 0, 7, 8, 0]);
        assert_eq!(read.len(), MAX_SESSIONS as usize);
    }
}
