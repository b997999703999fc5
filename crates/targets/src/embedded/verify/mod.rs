//! Proving that a data set is whole: every block is what was written last, every acknowledged commit is there.

mod reading;
mod scrubbing;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::Serialize;

use super::changes::ChangeMap;
use super::control::Control;
use super::descriptor::Descriptor;
use super::directory::Directory;
use super::ledger::{Acknowledged, Ledger, LedgerReach};
use super::recovery::{LostCommits, Recovery, lost_commits, recover};
use crate::crew::Crew;
use crate::error::TargetError;
use crate::io::{IoEngine, Scrubbed};

pub use crate::crew::Progress;

use reading::{DirectoryState, VerificationReads};
use scrubbing::Scrubbing;

/// Bad blocks that a report lists; all are counted.
pub const LISTED_BAD_BLOCKS: usize = 1000;
/// Threads that read and check.
const READERS: u32 = 2;

/// What `verify` found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Blocks of the data set: all were looked at.
    pub blocks: u64,
    /// Their size.
    pub bytes: u64,
    /// How long it took, recovery included.
    pub elapsed_ns: u64,
    /// What recovery did, if the last user of the data was killed.
    pub recovery: Option<Recovery>,
    /// What is wrong beyond single blocks, such as redo that cannot be applied. Blocks are then checked without the
    /// knowledge of what was written last.
    pub faults: Vec<String>,
    /// The first [`LISTED_BAD_BLOCKS`] bad blocks, in their order in the data set.
    pub bad_blocks: Vec<BadBlock>,
    /// All bad blocks.
    pub bad_block_count: u64,
    /// Commits that sessions were reported on; none when that cannot be read.
    pub commits_acknowledged: Option<u64>,
    /// Commits that are there; none when that cannot be read.
    pub commits_found: Option<u64>,
    /// How far the ledger of acknowledged commits reaches; none when it or the commits cannot be read.
    pub ledger: Option<LedgerReach>,
    /// Sessions that miss commits of which they were reported.
    pub lost: Vec<LostCommits>,
    /// What comparing all copies found and did, if it was asked for.
    pub scrub: Option<Scrubbed>,
}

/// A block that is not what was written last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BadBlock {
    /// The data file.
    pub path: PathBuf,
    /// Number of the block in the data set.
    pub block: u64,
    /// Its offset in the file, in bytes.
    pub offset: u64,
    /// What is wrong with it.
    pub fault: String,
}

impl VerifyReport {
    /// Whether the ledger reaches so far that no acknowledged commit can be missing unseen.
    pub fn is_proven(&self) -> bool {
        self.ledger == Some(LedgerReach::Whole)
    }

    /// Whether all that could be looked at is as it must be.
    pub fn is_sound(&self) -> bool {
        let are_alike = self.scrub.is_none_or(|scrub| scrub.lost == 0 && scrub.left == 0);
        self.bad_block_count == 0 && self.lost.is_empty() && self.faults.is_empty() && are_alike
    }
}

/// Recovers the data set if its last user was killed, and reads all of it. Bad blocks do not end it: they are counted
/// and listed. `progress` is called while it reads; setting `stop` ends it soon. With `scrub` all copies of its files that a disk
/// group keeps are compared and made alike before. `ledger` is the directory of the ledger where that is another one than the data say.
///
/// # Errors
/// When there is no data set, there are no copies to compare, another process works on it, its descriptor is damaged, it was stopped, or a request was
/// refused for a reason that says nothing about the data.
pub fn verify(
    path: &Path,
    ledger: Option<&str>,
    io: Option<IoEngine>,
    scrub: bool,
    progress: &(dyn Fn(Progress) + Sync),
    stop: &AtomicBool,
) -> Result<VerifyReport, TargetError> {
    let began = Instant::now();
    let directory = Directory::lock(path)?;
    if directory.is_half_set_up() {
        return Err(TargetError::HalfSetUp { path: path.to_owned() });
    }
    let descriptor = Descriptor::load(path)?.with_ledger(ledger);
    let layout = descriptor.layout(path)?;
    let bytes = layout.blocks() * layout.shape().bytes() as u64;

    let (known, mut faults) = Known::gather(&directory, &descriptor, layout.row_blocks())?;
    let files = descriptor.files(path, &layout)?;
    let state = DirectoryState::open(&files, &layout)?;
    // Recovery may have met the same file.
    faults.extend(state.faults.iter().filter(|fault| !faults.contains(fault)).cloned().collect::<Vec<_>>());
    let changes = known.changes.as_ref();
    let scrubbing = Scrubbing { layout: &layout, changes, state: &state, stop, progress };
    let scrub = scrub.then(|| scrubbing.run(path, &files)).transpose()?;
    let reading = VerificationReads::new(&layout, known.changes.as_ref(), &state, stop);
    let crew = Crew {
        files: &state.files,
        io_engine: io.unwrap_or_else(|| IoEngine::best_available().0),
        threads: READERS,
        stop,
        progress,
        total_bytes: state.readable_bytes(&layout),
    };
    crew.run(&reading)?;
    let (bad_blocks, bad_block_count) = reading.into_bad_blocks();
    Ok(VerifyReport {
        blocks: layout.blocks(),
        bytes,
        elapsed_ns: began.elapsed().as_nanos() as u64,
        recovery: known.recovery,
        faults,
        bad_blocks,
        bad_block_count,
        commits_acknowledged: known.acknowledged,
        commits_found: known.found,
        ledger: known.reach,
        lost: known.lost,
        scrub,
    })
}

/// What is known of the data from outside the data files.
#[derive(Default)]
struct Known {
    recovery: Option<Recovery>,
    changes: Option<ChangeMap>,
    acknowledged: Option<u64>,
    found: Option<u64>,
    reach: Option<LedgerReach>,
    lost: Vec<LostCommits>,
}

impl Known {
    /// Recovers, and reads the control file, the change map and the ledger. What is damaged or missing there is a fault to
    /// be reported, not an end: the blocks are still worth reading.
    fn gather(
        directory: &Directory,
        descriptor: &Descriptor,
        row_blocks: u64,
    ) -> Result<(Self, Vec<String>), TargetError> {
        let path = directory.path();
        let mut known = Self::default();
        let mut faults = Vec::new();
        let Some(recovery) = ok_or_fault(recover(directory, descriptor, &|_| {}), &mut faults)? else {
            // Without recovery neither the map nor the commits are those of the blocks.
            return Ok((known, faults));
        };
        known.recovery = recovery;
        let ledger = ok_or_fault(Ledger::open(&descriptor.ledger(path)).and_then(|ledger| ledger.read()), &mut faults)?;
        known.acknowledged = ledger.as_ref().map(|Acknowledged { commits, .. }| commits.iter().sum());
        if let Some((_, checkpoint)) = ok_or_fault(Control::open(path, descriptor.database), &mut faults)? {
            known.found = Some(checkpoint.commits.iter().sum());
            known.changes = ok_or_fault(ChangeMap::load(path, checkpoint.change_map, row_blocks), &mut faults)?;
            if let Some(ledger) = ledger {
                known.reach = Some(ledger.reach(&checkpoint.commits));
                known.lost = lost_commits(&ledger.commits, &checkpoint.commits);
            }
        }
        Ok((known, faults))
    }
}

/// Turns an error that is about the data into a fault to be reported.
fn ok_or_fault<T>(result: Result<T, TargetError>, faults: &mut Vec<String>) -> Result<Option<T>, TargetError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_about_data(&error) => {
            faults.push(error.to_string());
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn is_about_data(error: &TargetError) -> bool {
    match error {
        TargetError::Damaged { .. } => true,
        TargetError::File { source, .. } | TargetError::Request { source, .. } => is_loss(source),
        error => error.is_data_fault(),
    }
}

/// Whether a system error says that stored data are lost, as opposed to a request that is not permitted or possible.
fn is_loss(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotFound, UnexpectedEof};
    matches!(error.kind(), NotFound | UnexpectedEof)
        || matches!(
            error.raw_os_error(),
            Some(libc::EIO | libc::ENODATA | libc::EUCLEAN | libc::EBADMSG | libc::EILSEQ)
        )
}

#[cfg(test)]
mod tests;
