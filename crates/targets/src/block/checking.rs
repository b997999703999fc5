//! Whether what was read is what was written.

use super::generations::{Floor, Generations, Verdict};
use super::raw::{Block, Checking};
use super::stamp::{self, FileId, SECTOR_BYTES, StampFault};
use super::volume::Segment;
use crate::block::BlockError;
use crate::error::TargetError;
use crate::io::Direction;
use model::workload::io::IoOperation;

/// How often all blocks are looked at before none counts as free.
const CLAIM_ROUNDS: u32 = 1_000;

impl Block {
    /// Number of the block that an operation is about, where data are checked.
    #[inline]
    pub(super) fn number(&self, operation: IoOperation) -> usize {
        (operation.offset_bytes / u64::from(operation.bytes)) as usize
    }

    /// Claims the first block from `wanted` on that nobody writes to just now.
    ///
    /// # Errors
    /// [`BlockError::NoBlockFree`] when there is none, however often one looks: blocks whose write failed are never free
    /// again.
    pub(super) fn claim(&self, map: &Generations, wanted: usize) -> Result<(usize, u64), TargetError> {
        for _ in 0..CLAIM_ROUNDS {
            for block in (wanted..map.blocks()).chain(0..wanted) {
                if let Some(generation) = map.try_begin_write(block) {
                    return Ok((block, generation));
                }
            }
            // Other lanes' writes come and go behind the one who looks.
            std::thread::yield_now();
        }
        Err(BlockError::NoBlockFree { blocks: map.blocks() as u64 }.into())
    }

    /// Checks data that were read at an offset of the volume.
    ///
    /// # Errors
    /// [`BlockError::BadData`] for the first sector that is not what was written.
    pub(super) fn check(&self, offset_bytes: u64, found: &[u8], floor: Floor) -> Result<(), TargetError> {
        let (Some(map), Checking::On { block_bytes }) = (self.generations(), self.options().checking) else {
            return Ok(());
        };
        let block = (offset_bytes / u64::from(block_bytes)) as usize;
        for segment in self.volume().segments(offset_bytes, found.len() as u32, Direction::Read) {
            let part = &found[segment.at as usize..][..segment.bytes as usize];
            self.check_segment(map, block, segment, part, floor)?;
        }
        Ok(())
    }

    /// Checks the part of a block that was read from one place of one member.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub(super) fn check_segment(
        &self,
        map: &Generations,
        block: usize,
        segment: Segment,
        part: &[u8],
        floor: Floor,
    ) -> Result<(), TargetError> {
        let offset = segment.offset_bytes;
        let bad = |why: String| {
            let path = self.files()[segment.member as usize].path().to_owned();
            TargetError::from(BlockError::BadData { path, why })
        };
        let seen = examine(part, offset, self.id(segment.member)).map_err(|fault| bad(fault.to_string()))?;
        let of_this_run = seen.newest > self.options().generation_base;
        if of_this_run && seen.oldest != seen.newest && !map.was_written_since(block, floor) {
            return Err(bad(format!(
                "the write of {} bytes at offset {offset} is torn: it holds generations {} and {}",
                segment.bytes, seen.oldest, seen.newest
            )));
        }
        match map.check(block, seen.newest, floor) {
            Verdict::Sound => Ok(()),
            Verdict::Lost { found, acknowledged } => Err(bad(format!(
                "an acknowledged write at offset {offset} is lost: generation {found} is there, {acknowledged} was \
                 acknowledged"
            ))),
            Verdict::Unknown { found, .. } => Err(bad(format!(
                "offset {offset} holds generation {found}, which this run never wrote: another program writes here"
            ))),
        }
    }
}

/// Generations found in a range.
struct Seen {
    oldest: u64,
    newest: u64,
}

/// Looks at each sector by itself: earlier runs may have written requests of other sizes.
fn examine(part: &[u8], offset_bytes: u64, id: FileId) -> Result<Seen, StampFault> {
    let mut seen = Seen { oldest: u64::MAX, newest: 0 };
    for (index, sector) in part.chunks(SECTOR_BYTES).enumerate() {
        let generation = stamp::check(sector, offset_bytes + (index * SECTOR_BYTES) as u64, id)?;
        seen.oldest = seen.oldest.min(generation);
        seen.newest = seen.newest.max(generation);
    }
    Ok(seen)
}
