//! Memory for the requests of one lane: a piece for each slot.

use std::io;
use std::sync::Arc;

use crate::io::Arena;
use model::workload::Rng;

/// A request must not cross a multiple of this in the arena.
const CHUNK_BYTES: u64 = 1 << 30;
const PAGE_BYTES: u64 = 4096;

/// An arena cut into equal pieces, none of which crosses a chunk.
pub(super) struct SlotMemory {
    arena: Arc<Arena>,
    slot_bytes: u64,
    slots_per_chunk: u64,
}

impl SlotMemory {
    /// Memory for `slots` slots of `slot_bytes` bytes, 1 GiB at most, each beginning on a page.
    ///
    /// # Errors
    /// When the system has no such memory.
    pub(super) fn new(slots: u32, slot_bytes: u64) -> io::Result<Self> {
        let slot_bytes = slot_bytes.max(1).next_multiple_of(PAGE_BYTES);
        if slot_bytes > CHUNK_BYTES {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let slots_per_chunk = CHUNK_BYTES / slot_bytes;
        let last = u64::from(slots.max(1)) - 1;
        let bytes = last / slots_per_chunk * CHUNK_BYTES + (last % slots_per_chunk + 1) * slot_bytes;
        let arena = Arena::new(usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?)?;
        Ok(Self { arena: Arc::new(arena), slot_bytes, slots_per_chunk })
    }

    pub(super) fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Where the piece of a slot begins.
    #[inline]
    pub(super) fn offset(&self, slot: u32) -> u64 {
        let slot = u64::from(slot);
        slot / self.slots_per_chunk * CHUNK_BYTES + slot % self.slots_per_chunk * self.slot_bytes
    }

    /// Fills everything with incompressible data.
    pub(super) fn fill(&self, rng: &mut Rng) {
        const PIECE: usize = 4096;
        let mut piece = [0; PIECE];
        for offset in (0..self.arena.len() as u64).step_by(PIECE) {
            rng.fill(&mut piece);
            self.arena.store_bytes(offset, &piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_piece_meets_another_or_crosses_a_chunk(slots in 1..3_000_u32, slot_bytes in 1..80_000_000_u64) {
            let slots = slots.min((8 << 30) / slot_bytes as u32 + 1);
            let memory = SlotMemory::new(slots, slot_bytes).unwrap();
            let mut end = 0;
            for slot in 0..slots {
                let begin = memory.offset(slot);
                prop_assert!(begin >= end && begin.is_multiple_of(PAGE_BYTES));
                end = begin + slot_bytes;
                prop_assert_eq!(begin / CHUNK_BYTES, (end - 1) / CHUNK_BYTES);
            }
            prop_assert!(end <= memory.arena().len() as u64);
        }
    }

    #[test]
    fn no_two_sectors_are_alike() {
        let memory = SlotMemory::new(3, 8192).unwrap();
        memory.fill(&mut model::workload::Rng::new(1, 2));
        let words: std::collections::BTreeSet<u64> =
            (0..memory.arena().len() as u64).step_by(512).map(|at| memory.arena().load(at)).collect();
        assert_eq!(words.len(), 48);
    }
}
