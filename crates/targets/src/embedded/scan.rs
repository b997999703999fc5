//! Scans: a schema's scan table read past the cache, in large pieces.

use std::sync::PoisonError;

use super::block;
use super::lane::{EngineLane, Phase, Progress};
use super::shared::Shared;
use super::wakers::ARRIVAL;
use crate::error::TargetError;
use crate::io::Completion;
use measure::{Counter, LaneRecorder};

/// Size of one read of a scan, as Oracle's direct path reads have it.
pub(super) const SCAN_READ_BYTES: u64 = 1 << 20;
/// Pieces of memory for scans, shared by all sessions: so many scan reads are in flight at most.
const SCAN_PIECES: u64 = 16;

/// Where the pieces lie in the arena behind `buffers` bytes of buffers. Multiples of their own size, since a request
/// must not cross the edge between two stretches of memory that the kernel has registered (see [`Queue`]).
///
/// [`Queue`]: crate::io::Queue
pub(super) fn memory_after(buffers: u64) -> Vec<u64> {
    let first = buffers.div_ceil(SCAN_READ_BYTES);
    (first..first + SCAN_PIECES).map(|piece| piece * SCAN_READ_BYTES).collect()
}

impl Shared {
    fn take_scan_memory(&self) -> Option<u64> {
        self.scan_memory.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Whether a scan could begin to read.
    pub(super) fn has_scan_memory(&self) -> bool {
        !self.scan_memory.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Gives a piece of memory back for other scans.
    pub(super) fn give_scan_memory_back(&self, memory: u64) {
        self.scan_memory.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
        self.wakers.ring(ARRIVAL);
    }
}

impl EngineLane<'_> {
    /// Reads the next piece of a session's scan table.
    pub(super) fn scan(&mut self, index: u32, _recorder: &mut LaneRecorder) -> Result<Progress, TargetError> {
        let layout = &self.shared.layout;
        let session = &self.sessions[index as usize];
        let left = layout.scan_blocks() - session.done;
        if left == 0 {
            return Ok(Progress::Done);
        }
        let Some(memory) = self.shared.take_scan_memory() else {
            return Ok(self.wait(index, Phase::NoScanMemory));
        };
        let block_bytes = layout.shape().bytes() as u64;
        let first = layout.scan_block(session.operation.schema, session.done);
        let blocks = layout.contiguous(first, left.min(SCAN_READ_BYTES / block_bytes));
        let waits = self.wait(index, Phase::Scanning { memory, blocks });
        self.send_read(index, first, memory, (blocks * block_bytes) as u32)?;
        Ok(waits)
    }

    /// A piece has arrived: checks every block of it.
    pub(super) fn arrive_scan(
        &mut self,
        index: u32,
        memory: u64,
        blocks: u64,
        completion: Completion,
        recorder: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        let layout = &self.shared.layout;
        let session = &mut self.sessions[index as usize];
        let first = layout.scan_block(session.operation.schema, session.done);
        let block_bytes = layout.shape().bytes();
        let bytes = blocks * block_bytes as u64;
        let moved = completion.bytes();
        if !matches!(moved, Ok(moved) if u64::from(moved) == bytes) {
            return Err(self.shared.bad_request("read", first, bytes as u32, moved));
        }
        for number in 0..blocks {
            // SAFETY: this session took the piece of memory for itself, and the kernel has finished with it.
            let contents =
                unsafe { self.shared.cache.arena().bytes_mut(memory + number * block_bytes as u64, block_bytes) };
            let identity = layout.identity(first + number);
            if let Err(fault) = block::check(contents, identity, None) {
                self.shared.read_sound_copy(identity, None, fault, contents)?;
            }
        }
        session.done += blocks;
        session.phase = Phase::Idle;
        self.shared.give_scan_memory_back(memory);
        for counter in [Counter::PhysicalReads, Counter::DirectReads] {
            recorder.count(counter, 1);
        }
        for counter in [Counter::PhysicalReadBytes, Counter::DirectReadBytes] {
            recorder.count(counter, bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_piece_crosses_the_edge_of_registered_memory() {
        // What caches of 1 GiB of blocks of 8 KiB leave to buffers, bookkeeping taken off, and some sizes around it.
        for buffers in [0, 8192, (1 << 30) - 9_363_456, (1 << 30) - 8192, (3 << 30) + 8192] {
            let pieces = memory_after(buffers);
            assert_eq!(pieces.len() as u64, SCAN_PIECES);
            assert!(pieces[0] >= buffers);
            for piece in pieces {
                assert_eq!(piece >> 30, (piece + SCAN_READ_BYTES - 1) >> 30, "{piece} behind {buffers}");
            }
        }
    }
}
