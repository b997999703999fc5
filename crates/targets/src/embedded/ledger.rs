//! `acknowledged.led`: what sessions were reported is committed.
//!
//! For every session one word: the number of its last commit that was acknowledged. It is written through the page cache
//! before the session is reported, so it survives the death of the process, and after the commit is durable, so it never
//! claims too much. After a crash `verify` holds it against what recovery found.
//!
//! A machine that loses power, or a file system that is shut down, loses the newest words: the ledger then claims less, never
//! more, and what it does not claim proves nothing. Two marks show that. A session makes one commit at a time, so that a ledger which
//! lacks two of a session's commits lost some ([`Ledger::open_for_load`] takes over what recovery found, so that no two accumulate).
//! And it holds which boot of the machine wrote it, until a clean end makes it durable.

use std::fs::File;
use std::io::ErrorKind::{NotFound, UnexpectedEof};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::database::MAX_SESSIONS;
use crate::error::{FileContext, TargetError};
use files::How;
use model::units::group_thousands;
use serde::Serialize;

/// Name of the ledger in the directory of its data.
pub const FILE_NAME: &str = "acknowledged.led";

const WORDS_BYTES: u64 = MAX_SESSIONS as u64 * 8;
/// After the words and the boot stands the number of the data.
const DATABASE_AT: u64 = WORDS_BYTES + 16;
/// Length of a ledger.
pub(super) const BYTES: u64 = DATABASE_AT + 4;
/// Written as the boot once a clean end has made the words durable.
const DURABLE: u128 = 0;

/// How far the ledger reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LedgerReach {
    /// Every acknowledged commit is in it.
    Whole,
    /// It lost entries: commits were found that it must have had.
    Behind {
        /// Sessions of which it lacks some.
        sessions: u32,
        /// Commits that it lacks at least.
        commits: u64,
    },
    /// The machine restarted since it was written and the data were not closed: it may have lost entries, and the data the same
    /// commits.
    Restarted,
}

impl LedgerReach {
    /// Why acknowledged commits may be missing unseen, if they may.
    pub fn warning(self) -> Option<String> {
        match self {
            Self::Whole => None,
            Self::Behind { sessions, commits } => Some(format!(
                "the ledger lost at least {} acknowledged commits of {} sessions, as after a power loss. Acknowledged commits may be \
                 missing unseen",
                group_thousands(commits as f64),
                group_thousands(f64::from(sessions))
            )),
            Self::Restarted => Some(
                "the machine restarted while the data was in use, so the ledger of acknowledged commits may have lost entries. \
                 Acknowledged commits may be missing unseen"
                    .to_owned(),
            ),
        }
    }
}

/// What the ledger says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledged {
    /// The last acknowledged commit of every session.
    pub commits: Vec<u64>,
    /// Which boot wrote it, unless it was made durable.
    boot: Option<u128>,
}

impl Acknowledged {
    /// How far it reaches, if `found` are the commits of each session that are there.
    pub fn reach(&self, found: &[u64]) -> LedgerReach {
        // One may have become durable just before the process ended, and was not acknowledged.
        let lacks = |(acknowledged, found): (&u64, &u64)| found.saturating_sub(acknowledged + 1);
        let lacking: Vec<u64> = self.commits.iter().zip(found).map(lacks).filter(|commits| *commits > 0).collect();
        if !lacking.is_empty() {
            return LedgerReach::Behind { sessions: lacking.len() as u32, commits: lacking.iter().sum() };
        }
        if self.boot.is_some_and(|boot| Some(boot) != this_boot()) {
            LedgerReach::Restarted
        } else {
            LedgerReach::Whole
        }
    }
}

/// The number that the kernel gave this boot of the machine.
fn this_boot() -> Option<u128> {
    let words = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    u128::from_str_radix(&words.trim().replace('-', ""), 16).ok().filter(|boot| *boot != DURABLE)
}

/// Where the ledger of a data set lies: in its directory, or in another one.
#[derive(Debug, Clone)]
pub struct LedgerPlace {
    path: PathBuf,
    /// The data's directory.
    data: PathBuf,
    database: u32,
    is_elsewhere: bool,
}

/// Its name in a directory that other data sets may use too.
pub(super) fn name_elsewhere(database: u32) -> String {
    format!("plimsoll-{database:08x}-{FILE_NAME}")
}

impl LedgerPlace {
    /// Of the data set `database` in the directory `data`, with the ledger in `elsewhere` if that is given.
    pub(super) fn new(data: &Path, elsewhere: Option<&str>, database: u32) -> Self {
        let path = match elsewhere {
            Some(directory) => Path::new(directory).join(name_elsewhere(database)),
            None => data.join(FILE_NAME),
        };
        Self { path, data: data.to_owned(), database, is_elsewhere: elsewhere.is_some() }
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Looks whether files may be made and opened there.
    fn judge(&self) -> Result<(), TargetError> {
        let directory = self.directory();
        if !self.is_elsewhere {
            return Ok(());
        }
        match files::judge_directory(directory) {
            Err(error) if error.kind() == NotFound => Err(self.missing()),
            judged => judged.of_file("use", directory),
        }
    }

    fn missing(&self) -> TargetError {
        TargetError::NoLedger { directory: self.directory().to_owned(), data: self.data.clone() }
    }
}

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
    pub fn create(place: &LedgerPlace) -> Result<(), TargetError> {
        place.judge()?;
        let path = place.path.clone();
        let file = files::make_new(&path, How::default()).of_file("create", &path)?;
        let ledger = Self { file, path };
        ledger.note(0, &vec![0; MAX_SESSIONS as usize], &mut Vec::new())?;
        ledger.file.write_all_at(&place.database.to_le_bytes(), DATABASE_AT).of_file("write", &ledger.path)?;
        ledger.make_durable()?;
        if place.is_elsewhere {
            files::sync_directory(place.directory()).of_file("sync", place.directory())?;
        }
        Ok(())
    }

    /// Opens the ledger for commits of this boot, beginning with those that were found. Gives how far it reached.
    ///
    /// # Errors
    /// The system's error.
    pub fn open_for_load(place: &LedgerPlace, found: &[u64]) -> Result<(Self, LedgerReach), TargetError> {
        let ledger = Self::open(place)?;
        let reach = ledger.read()?.reach(found);
        ledger.note(0, found, &mut Vec::new())?;
        ledger.write_boot(this_boot().unwrap_or(DURABLE))?;
        Ok((ledger, reach))
    }

    /// Makes what it says durable, as a clean end does.
    ///
    /// # Errors
    /// The system's error.
    pub fn make_durable(&self) -> Result<(), TargetError> {
        self.sync()?;
        self.write_boot(DURABLE)?;
        self.sync()
    }

    fn sync(&self) -> Result<(), TargetError> {
        self.file.sync_data().of_file("sync", &self.path)
    }

    fn write_boot(&self, boot: u128) -> Result<(), TargetError> {
        self.file.write_all_at(&boot.to_le_bytes(), WORDS_BYTES).of_file("write", &self.path)
    }

    /// Opens the ledger.
    ///
    /// # Errors
    /// [`TargetError::NoLedger`] where it lies elsewhere and is not there, [`TargetError::ForeignLedger`] where it is that of other
    /// data, or the system's error.
    pub fn open(place: &LedgerPlace) -> Result<Self, TargetError> {
        place.judge()?;
        let path = place.path.clone();
        let file = match files::open_own(&path, How::default()) {
            Err(error) if place.is_elsewhere && error.kind() == NotFound => return Err(place.missing()),
            opened => opened.of_file("open", &path)?,
        };
        if place.is_elsewhere {
            let mut database = [0; 4];
            match file.read_exact_at(&mut database, DATABASE_AT) {
                Err(error) if error.kind() == UnexpectedEof => {
                    return Err(TargetError::Damaged { path, what: "it is too short".to_owned() });
                }
                read => read.of_file("read", &path)?,
            }
            if u32::from_le_bytes(database) != place.database {
                return Err(TargetError::ForeignLedger { path, data: place.data.clone() });
            }
        }
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

    /// What it says.
    ///
    /// # Errors
    /// [`TargetError::Damaged`] when it is too short, or the system's error.
    pub fn read(&self) -> Result<Acknowledged, TargetError> {
        let mut bytes = vec![0; WORDS_BYTES as usize];
        match self.file.read_exact_at(&mut bytes, 0) {
            Err(error) if error.kind() == UnexpectedEof => {
                Err(TargetError::Damaged { path: self.path.clone(), what: "it is too short".to_owned() })
            }
            read => read.of_file("read", &self.path),
        }?;
        let commits = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        let mut boot = [0; 16];
        let boot = match self.file.read_exact_at(&mut boot, WORDS_BYTES) {
            // One of data that were made before it held a boot.
            Err(error) if error.kind() == UnexpectedEof => DURABLE,
            read => read.of_file("read", &self.path).map(|()| u128::from_le_bytes(boot))?,
        };
        Ok(Acknowledged { commits: commits.collect(), boot: Some(boot).filter(|boot| *boot != DURABLE) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_back_and_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let place = LedgerPlace::new(dir.path(), None, 7);
        Ledger::create(&place).unwrap();
        let ledger = Ledger::open(&place).unwrap();
        ledger.note(3, &[7, 8], &mut Vec::new()).unwrap();
        let read = ledger.read().unwrap().commits;
        assert_eq!(read[..6], [0, 0, 0, 7, 8, 0]);
        assert_eq!(read.len(), MAX_SESSIONS as usize);
    }

    #[test]
    fn a_ledger_says_how_far_it_reaches() {
        let dir = tempfile::tempdir().unwrap();
        let place = LedgerPlace::new(dir.path(), None, 7);
        Ledger::create(&place).unwrap();
        let of = |first: &[u64]| {
            let mut commits = vec![0; MAX_SESSIONS as usize];
            commits[..first.len()].copy_from_slice(first);
            commits
        };
        let (ledger, reach) = Ledger::open_for_load(&place, &of(&[])).unwrap();
        assert_eq!(reach, LedgerReach::Whole);
        ledger.note(0, &[7, 8], &mut Vec::new()).unwrap();
        let reach = |found: &[u64]| Ledger::open(&place).unwrap().read().unwrap().reach(&of(found));
        assert_eq!(reach(&[8, 9]), LedgerReach::Whole, "the last one of each may not have been acknowledged");
        assert_eq!(reach(&[9, 20, 1]), LedgerReach::Behind { sessions: 2, commits: 12 });
        // Of another boot.
        ledger.write_boot(1).unwrap();
        assert_eq!(reach(&[8, 9]), LedgerReach::Restarted);
        assert_eq!(reach(&[9, 9]), LedgerReach::Behind { sessions: 1, commits: 1 });
        ledger.make_durable().unwrap();
        assert_eq!(reach(&[8, 9]), LedgerReach::Whole);
        // The next load begins with what was found: two ends without an acknowledgement in between are no loss.
        Ledger::open_for_load(&place, &of(&[8, 9])).unwrap();
        assert_eq!(reach(&[9, 10]), LedgerReach::Whole);
        // Data of before.
        ledger.file.set_len(WORDS_BYTES).unwrap();
        assert_eq!(reach(&[8, 9]), LedgerReach::Whole);
    }

    #[test]
    fn a_ledger_elsewhere_is_that_of_its_data_or_none() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let elsewhere = other.path().to_str().unwrap();
        let place = LedgerPlace::new(dir.path(), Some(elsewhere), 7);
        let missing = Ledger::open(&place).unwrap_err();
        assert!(matches!(&missing, TargetError::NoLedger { directory, .. } if directory == other.path()), "{missing}");
        Ledger::create(&place).unwrap();
        Ledger::open(&place).unwrap().note(0, &[3], &mut Vec::new()).unwrap();
        assert_eq!(Ledger::open(&place).unwrap().read().unwrap().commits[0], 3);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing of it lies with the data");
        // Other data may have one beside it, and a file that was renamed is still another's.
        let others = LedgerPlace::new(dir.path(), Some(elsewhere), 8);
        assert!(matches!(Ledger::open(&others), Err(TargetError::NoLedger { .. })));
        std::fs::rename(&place.path, &others.path).unwrap();
        assert!(matches!(Ledger::open(&others), Err(TargetError::ForeignLedger { .. })));
        std::fs::write(&others.path, [0; 16]).unwrap();
        assert!(matches!(Ledger::open(&others), Err(TargetError::Damaged { .. })));
        let gone = LedgerPlace::new(dir.path(), Some("/nowhere/at/all"), 7);
        assert!(matches!(Ledger::open(&gone), Err(TargetError::NoLedger { .. })));
        assert!(matches!(Ledger::create(&gone), Err(TargetError::NoLedger { .. })));
    }
}
