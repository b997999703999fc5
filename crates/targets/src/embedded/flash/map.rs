//! Which block lies in which slot of the flash cache.
//!
//! One thread, the flash writer, puts slots in and takes them out. Sessions look blocks up without a lock, and declare a slot void
//! when its block is changed. A lookup may miss a slot that is being moved just then, which costs a read of the data file; whoever
//! declares a slot void must not, and takes the lock of its chain.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use model::workload::mix64;

/// Bit of a bucket that says that somebody holds its chain.
const LOCK: u32 = 1 << 31;
/// Most slots that there can be.
pub(super) const MAX_SLOTS: u64 = (LOCK - 2) as u64;
/// A chain longer than this means that slots moved while it was walked.
const LONGEST_WALK: u32 = 64;
const NO_BLOCK: u64 = u64::MAX;

/// Number of a slot.
pub(crate) type Slot = u32;

struct Entry {
    /// The block that the slot was written with last.
    block: AtomicU64,
    /// Next slot in the chain, plus one; zero ends it.
    next: AtomicU32,
    /// Whether it holds the newest version of the block.
    valid: AtomicU32,
}

pub(super) struct SlotMap {
    entries: Vec<Entry>,
    buckets: Vec<AtomicU32>,
    shift: u32,
}

fn buckets_for(slots: u64) -> u64 {
    slots.next_power_of_two().max(2)
}

impl SlotMap {
    pub(super) fn new(slots: u64) -> Self {
        let entry = || Entry { block: AtomicU64::new(NO_BLOCK), next: AtomicU32::new(0), valid: AtomicU32::new(0) };
        let buckets = buckets_for(slots);
        Self {
            entries: (0..slots).map(|_| entry()).collect(),
            buckets: (0..buckets).map(|_| AtomicU32::new(0)).collect(),
            shift: u64::BITS - buckets.trailing_zeros(),
        }
    }

    /// Memory of a map of so many slots, in bytes.
    pub(super) fn bytes(slots: u64) -> u64 {
        slots * size_of::<Entry>() as u64 + buckets_for(slots) * size_of::<AtomicU32>() as u64
    }

    fn bucket(&self, block: u64) -> &AtomicU32 {
        &self.buckets[(mix64(block) >> self.shift) as usize]
    }

    /// The slot that holds the newest version of a block.
    pub(super) fn find(&self, block: u64) -> Option<Slot> {
        let mut link = self.bucket(block).load(Ordering::Acquire) & !LOCK;
        let mut steps = 0;
        while link != 0 && steps < LONGEST_WALK {
            let entry = &self.entries[(link - 1) as usize];
            // Read in this order: a slot that is being used anew is void before it has another block.
            if entry.block.load(Ordering::Acquire) == block && entry.valid.load(Ordering::Acquire) != 0 {
                return Some(link - 1);
            }
            link = entry.next.load(Ordering::Acquire);
            steps += 1;
        }
        None
    }

    /// Whether a slot still holds the newest version of a block.
    pub(super) fn holds(&self, slot: Slot, block: u64) -> bool {
        let entry = &self.entries[slot as usize];
        entry.block.load(Ordering::Acquire) == block && entry.valid.load(Ordering::Acquire) != 0
    }

    /// Whatever slot holds a block does so no longer.
    pub(super) fn invalidate(&self, block: u64) {
        self.locked(block, |mut link| {
            let first = link;
            while link != 0 {
                let entry = &self.entries[(link - 1) as usize];
                if entry.block.load(Ordering::Relaxed) == block {
                    entry.valid.store(0, Ordering::Release);
                }
                link = entry.next.load(Ordering::Relaxed);
            }
            first
        });
    }

    /// Takes a slot out, before it is written anew. Only the flash writer may call it.
    pub(super) fn take_out(&self, slot: Slot) {
        let entry = &self.entries[slot as usize];
        let block = entry.block.load(Ordering::Relaxed);
        if block == NO_BLOCK {
            return;
        }
        self.locked(block, |first| {
            entry.valid.store(0, Ordering::Release);
            let after = entry.next.load(Ordering::Relaxed);
            if first == slot + 1 {
                return after;
            }
            let mut link = first;
            while link != 0 {
                let before = &self.entries[(link - 1) as usize];
                link = before.next.load(Ordering::Relaxed);
                if link == slot + 1 {
                    before.next.store(after, Ordering::Release);
                    break;
                }
            }
            first
        });
        entry.block.store(NO_BLOCK, Ordering::Release);
    }

    /// Puts a slot in that was written with a block, if that still `is_current`. Only the flash writer may call it, for a slot that it
    /// has taken out.
    ///
    /// Whoever changes a block first makes `is_current` false and then calls [`Self::invalidate`], so that under the lock of the chain
    /// either this call or that one sees the other.
    pub(super) fn put_in(&self, slot: Slot, block: u64, is_current: impl FnOnce() -> bool) {
        let entry = &self.entries[slot as usize];
        self.locked(block, |first| {
            if !is_current() {
                return first;
            }
            // It may have been written twice: the older copy is void, and taken out when its slot is written anew.
            let mut link = first;
            while link != 0 {
                let other = &self.entries[(link - 1) as usize];
                if other.block.load(Ordering::Relaxed) == block {
                    other.valid.store(0, Ordering::Release);
                }
                link = other.next.load(Ordering::Relaxed);
            }
            entry.block.store(block, Ordering::Release);
            entry.next.store(first, Ordering::Release);
            entry.valid.store(1, Ordering::Release);
            slot + 1
        });
    }

    /// Does something with the chain of a block while nobody else changes it: is given its first link, and returns the new one.
    fn locked(&self, block: u64, change: impl FnOnce(u32) -> u32) {
        let bucket = self.bucket(block);
        let mut tries = 0_u32;
        let first = loop {
            let before = bucket.fetch_or(LOCK, Ordering::Acquire);
            if before & LOCK == 0 {
                break before;
            }
            tries += 1;
            if tries.is_multiple_of(64) { std::thread::yield_now() } else { std::hint::spin_loop() }
        };
        bucket.store(change(first) & !LOCK, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use model::workload::Rng;

    #[test]
    fn slots_are_found_until_they_are_void_or_taken_out() {
        let map = SlotMap::new(8);
        map.put_in(0, 100, || true);
        map.put_in(1, 200, || true);
        assert_eq!((map.find(100), map.find(200), map.find(300)), (Some(0), Some(1), None));
        map.invalidate(100);
        assert_eq!(map.find(100), None);
        map.take_out(0);
        map.take_out(1);
        assert_eq!((map.find(100), map.find(200)), (None, None));
        map.put_in(0, 100, || false);
        assert_eq!(map.find(100), None);
    }

    #[test]
    fn of_two_copies_the_later_one_counts() {
        let map = SlotMap::new(8);
        map.put_in(0, 7, || true);
        map.put_in(5, 7, || true);
        assert_eq!(map.find(7), Some(5));
        map.take_out(0);
        assert_eq!(map.find(7), Some(5));
        map.invalidate(7);
        assert_eq!(map.find(7), None);
    }

    #[test]
    fn a_ring_of_few_slots_and_many_blocks_never_shows_a_wrong_one() {
        let map = SlotMap::new(64);
        let mut rng = Rng::new(1, 1);
        let mut holds = [None; 64];
        for turn in 0..20_000_u32 {
            let (slot, block) = (turn % 64, rng.below(500));
            map.take_out(slot);
            map.put_in(slot, block, || true);
            holds.iter_mut().filter(|held| **held == Some(block)).for_each(|held| *held = None);
            holds[slot as usize] = Some(block);
            let asked = rng.below(500);
            let expected = holds.iter().position(|held| *held == Some(asked)).map(|slot| slot as u32);
            assert_eq!(map.find(asked), expected);
        }
    }

    /// The order of a change and of a write that was under way when it happened: whichever comes first, no old version is found.
    #[test]
    fn a_block_that_changes_while_it_is_written_is_not_found_afterwards() {
        for round in 0..2_000_u64 {
            let (map, changed) = (SlotMap::new(16), AtomicBool::new(false));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    changed.store(true, Ordering::Release);
                    map.invalidate(round);
                });
                scope.spawn(|| map.put_in(3, round, || !changed.load(Ordering::Acquire)));
            });
            assert_eq!(map.find(round), None);
        }
    }
}
