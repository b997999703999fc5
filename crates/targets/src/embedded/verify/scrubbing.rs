//! Comparing all copies of the data set's files, where a disk group keeps more than one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::reading::DirectoryState;
use crate::crew::Progress;
use crate::embedded::block;
use crate::embedded::changes::ChangeMap;
use crate::embedded::destination::Files;
use crate::embedded::layout::Layout;
use crate::error::TargetError;
use crate::io::{Durability, Scrub, Scrubbed, StorageFile};

/// The smallest piece of which copies are compared; a smaller block is written with its neighbour.
const MIN_GRAIN_BYTES: u32 = 4096;

/// Everything that is compared.
pub(super) struct Scrubbing<'a> {
    pub(super) layout: &'a Layout,
    /// What was written last, where that is known.
    pub(super) changes: Option<&'a ChangeMap>,
    pub(super) state: &'a DirectoryState,
    pub(super) stop: &'a AtomicBool,
    /// Called after each step with the bytes of files that are done, and those of all files.
    pub(super) progress: &'a dyn Fn(Progress),
}

/// A file to be compared, and the number of its first block; none of redo, which has no blocks.
struct Candidate {
    file: Arc<StorageFile>,
    first_block: Option<u64>,
    bytes: u64,
}

impl Scrubbing<'_> {
    /// Compares all copies of data and redo. Of data the newest sound copy wins, of redo the primary: whatever redo there was has been
    /// applied by now, so no copy of it is needed.
    ///
    /// # Errors
    /// [`TargetError::Place`] when no file has copies, [`TargetError::Interrupted`].
    pub(super) fn run(&self, path: &Path, files: &Files) -> Result<Scrubbed, TargetError> {
        let candidates = self.candidates(files);
        let mut total_bytes = candidates.iter().map(|candidate| candidate.bytes).sum();
        let (mut found, mut has_copies, mut before) = (Scrubbed::default(), false, 0);
        for candidate in &candidates {
            let judge = |offset: u64, grain: &[u8]| self.judge(candidate.first_block, offset, grain);
            let progress = |done_bytes: u64, _| {
                (self.progress)(Progress { done_bytes: before + done_bytes, total_bytes });
            };
            let block_bytes = self.layout.shape().bytes() as u32;
            let grain_bytes = block_bytes.max(MIN_GRAIN_BYTES);
            let scrub = Scrub { grain_bytes, block_bytes, judge: &judge, progress: &progress, stop: self.stop };
            match candidate.file.scrub(&scrub) {
                Some(scrubbed) => {
                    found += scrubbed;
                    has_copies = true;
                    before += candidate.bytes;
                }
                None => total_bytes -= candidate.bytes,
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(TargetError::Interrupted);
            }
        }
        if has_copies {
            return Ok(found);
        }
        let why = "its files have one copy each, and there is nothing to compare".to_owned();
        let hint = "leave `--scrub` out: every block is read and checked anyway. Copies are those of a disk group with normal or high redundancy".to_owned();
        Err(TargetError::Place { place: path.to_owned(), why, hint })
    }

    /// Files that can be opened; those that cannot are faults by now, or hold redo that is not needed.
    fn candidates(&self, files: &Files) -> Vec<Candidate> {
        let data = self.state.readable().map(|(file, first_block, blocks)| {
            let bytes = blocks * self.layout.shape().bytes() as u64;
            Candidate { file: Arc::clone(file), first_block: Some(first_block), bytes }
        });
        let redo = files.redo.iter().filter_map(|placed| {
            let file = Arc::new(placed.open(Durability::EachWrite).ok()?);
            Some(Candidate { file, first_block: None, bytes: placed.bytes })
        });
        data.chain(redo).collect()
    }

    /// How new blocks that lie beside each other are, all of which must be sound.
    fn judge(&self, first_block: Option<u64>, offset: u64, grain: &[u8]) -> Option<u64> {
        let Some(first_block) = first_block else { return Some(0) };
        let block_bytes = self.layout.shape().bytes();
        let first = first_block + offset / block_bytes as u64;
        let mut rank = 0_u64;
        for (number, contents) in (first..self.layout.blocks()).zip(grain.chunks_exact(block_bytes)) {
            let expected = self.changes.and_then(|changes| changes.get(number));
            block::check(contents, self.layout.identity(number), expected).ok()?;
            rank = rank.saturating_add(block::changes(contents));
        }
        Some(rank)
    }
}
