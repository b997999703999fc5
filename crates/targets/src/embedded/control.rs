//! `control.ctl`: where recovery begins.
//!
//! Two slots are written in turn, each with a sequence number and a checksum, so that one sound slot is there whenever
//! the process or the machine stops. A slot holds the redo position of the last checkpoint, which copy of the change map
//! belongs to it, and for every session how many commits it had made.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crc_fast::CrcAlgorithm;
use files::How;

use crate::database::MAX_SESSIONS;
use crate::error::{FileContext, TargetError};

/// Name of the control file.
pub const FILE_NAME: &str = "control.ctl";

const MAGIC: u64 = u64::from_le_bytes(*b"PLIMCTL1");
const HEADER_WORDS: usize = 8;
const SLOT_WORDS: usize = HEADER_WORDS + MAX_SESSIONS as usize + 1;
const SLOT_BYTES: u64 = (SLOT_WORDS as u64 * 8).next_multiple_of(4096);

/// What a slot says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Identity of the data set.
    pub database: u32,
    /// Everything before this redo position is in the data files.
    pub redo_position: u64,
    /// Number of the log file that holds that position.
    pub log_number: u64,
    /// Which copy of the change map belongs to it: 0 or 1.
    pub change_map: u8,
    /// Whether the data set was closed after this checkpoint, with nothing to recover.
    pub clean: bool,
    /// Commits of each session.
    pub commits: Vec<u64>,
}

impl Checkpoint {
    /// The state of a data set that was just made.
    pub fn of_new_data(database: u32) -> Self {
        let commits = vec![0; MAX_SESSIONS as usize];
        Self { database, redo_position: 0, log_number: 0, change_map: 0, clean: true, commits }
    }
}

/// The open control file.
#[derive(Debug)]
pub struct Control {
    file: File,
    path: PathBuf,
    sequence: u64,
}

impl Control {
    /// Makes the control file of a new data set.
    ///
    /// # Errors
    /// The system's error.
    pub fn create(directory: &Path, checkpoint: &Checkpoint) -> Result<(), TargetError> {
        let path = directory.join(FILE_NAME);
        let file = files::make_new(&path, How::default()).of_file("create", &path)?;
        file.set_len(2 * SLOT_BYTES).of_file("extend", &path)?;
        Self { file, path, sequence: 0 }.save(checkpoint)
    }

    /// Opens the control file and reads its newest sound slot.
    ///
    /// # Errors
    /// [`TargetError::Damaged`] when no slot is sound, or the system's error.
    pub fn open(directory: &Path, database: u32) -> Result<(Self, Checkpoint), TargetError> {
        let path = directory.join(FILE_NAME);
        let file = files::open_own(&path, How::default()).of_file("open", &path)?;
        let newest = (0..2).filter_map(|slot| read_slot(&file, slot)).max_by_key(|(sequence, _)| *sequence);
        let damaged = |what: &str| TargetError::Damaged { path: path.clone(), what: what.to_owned() };
        let (sequence, checkpoint) = newest.ok_or_else(|| damaged("neither of its two slots is sound"))?;
        if checkpoint.database != database {
            return Err(damaged("it belongs to another data set"));
        }
        Ok((Self { file, path, sequence }, checkpoint))
    }

    /// Makes `checkpoint` the newest. It counts once this returns.
    ///
    /// # Errors
    /// The system's error; the older slot is untouched.
    pub fn save(&mut self, checkpoint: &Checkpoint) -> Result<(), TargetError> {
        let sequence = self.sequence + 1;
        let mut words = vec![0u64; SLOT_WORDS];
        words[..7].copy_from_slice(&[
            MAGIC,
            sequence,
            u64::from(checkpoint.database),
            checkpoint.redo_position,
            checkpoint.log_number,
            u64::from(checkpoint.change_map),
            u64::from(checkpoint.clean),
        ]);
        words[HEADER_WORDS..SLOT_WORDS - 1].copy_from_slice(&checkpoint.commits);
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let end = bytes.len() - 8;
        let sum = crc_fast::checksum(CrcAlgorithm::Crc64Nvme, &bytes[..end]);
        bytes[end..].copy_from_slice(&sum.to_le_bytes());
        self.file.write_all_at(&bytes, sequence % 2 * SLOT_BYTES).of_file("write", &self.path)?;
        self.file.sync_data().of_file("sync", &self.path)?;
        self.sequence = sequence;
        Ok(())
    }
}

fn read_slot(file: &File, slot: u64) -> Option<(u64, Checkpoint)> {
    let mut bytes = vec![0; SLOT_WORDS * 8];
    // A slot that cannot be read is no sound slot.
    file.read_exact_at(&mut bytes, slot * SLOT_BYTES).ok()?;
    let words: Vec<u64> =
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect();
    let sum = crc_fast::checksum(CrcAlgorithm::Crc64Nvme, &bytes[..bytes.len() - 8]);
    if words[0] != MAGIC || words[SLOT_WORDS - 1] != sum {
        return None;
    }
    let checkpoint = Checkpoint {
        database: words[2] as u32,
        redo_position: words[3],
        log_number: words[4],
        change_map: words[5] as u8 & 1,
        clean: words[6] != 0,
        commits: words[HEADER_WORDS..SLOT_WORDS - 1].to_vec(),
    };
    Some((words[1], checkpoint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(position: u64) -> Checkpoint {
        Checkpoint { redo_position: position, log_number: 3, clean: false, ..Checkpoint::of_new_data(9) }
    }

    #[test]
    fn the_newest_checkpoint_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        Control::create(dir.path(), &checkpoint(1)).unwrap();
        for position in 2..6 {
            let (mut control, found) = Control::open(dir.path(), 9).unwrap();
            assert_eq!(found, checkpoint(position - 1));
            control.save(&checkpoint(position)).unwrap();
        }
    }

    #[test]
    fn a_torn_slot_leaves_the_one_before_it() {
        let dir = tempfile::tempdir().unwrap();
        Control::create(dir.path(), &checkpoint(1)).unwrap();
        Control::open(dir.path(), 9).unwrap().0.save(&checkpoint(2)).unwrap();
        let path = dir.path().join(FILE_NAME);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[40] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(Control::open(dir.path(), 9).unwrap().1, checkpoint(1));
        bytes[SLOT_BYTES as usize + 40] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(matches!(Control::open(dir.path(), 9), Err(TargetError::Damaged { .. })));
    }

    #[test]
    fn another_data_sets_control_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        Control::create(dir.path(), &checkpoint(1)).unwrap();
        assert!(matches!(Control::open(dir.path(), 8), Err(TargetError::Damaged { .. })));
    }
}
