//! Which write of each block was acknowledged last, so that a lost write is noticed when the block is read.
//!
//! All lanes share one map without locks: a word a block, half a GiB for a volume of 1 TiB in blocks of 8 KiB. A block
//! has at most one write in flight. Generations of a run begin above those of every run before it, so that a block that
//! still carries an older run's data is known as older, too.

use std::sync::atomic::{AtomicU32, Ordering};

/// Set while a write is in flight.
const BUSY: u32 = 1 << 31;
const COUNT: u32 = BUSY - 1;

/// The last acknowledged generation of each block.
#[derive(Debug)]
pub struct Generations {
    /// Writes of this run that were acknowledged, and [`BUSY`].
    blocks: Box<[AtomicU32]>,
    base: u64,
}

/// What was known of a block when a read of it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor(u32);

/// What the generation found in a block says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is what was acknowledged last or, where a write was in flight, its old or new state.
    Sound,
    /// The data are older than a write that was acknowledged before the read was sent.
    Lost {
        /// Generation found.
        found: u64,
        /// Oldest that may be there.
        acknowledged: u64,
    },
    /// The data carry a generation that this run has not yet given to this block: another program writes here.
    Unknown {
        /// Generation found.
        found: u64,
        /// Newest that may be there.
        newest: u64,
    },
}

impl Generations {
    /// A map of `blocks` blocks whose writes get generations above `base`: see [`base_at`].
    pub fn new(blocks: usize, base: u64) -> Self {
        Self { blocks: (0..blocks).map(|_| AtomicU32::new(0)).collect(), base }
    }

    /// Claims a block for a write, and gives the generation to stamp. None while another write of the block is in
    /// flight, or after 2^31 writes of it.
    ///
    /// A write that fails is not acknowledged: its block stays claimed, since nobody knows what is in it now.
    #[inline]
    pub fn try_begin_write(&self, block: usize) -> Option<u64> {
        let word = &self.blocks[block];
        let before = word.load(Ordering::Relaxed);
        if before & BUSY != 0 || before == COUNT {
            return None;
        }
        word.compare_exchange(before, before | BUSY, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(self.base + u64::from(before) + 1)
    }

    /// Says that the write of a claimed block is done: from now on, no read may find older data.
    #[inline]
    pub fn acknowledge(&self, block: usize) {
        let word = &self.blocks[block];
        let before = word.load(Ordering::Relaxed);
        debug_assert!(before & BUSY != 0, "only a claimed block can be acknowledged");
        word.store((before & COUNT) + 1, Ordering::Release);
    }

    /// To be noted when a read of the block is sent.
    #[inline]
    pub fn floor(&self, block: usize) -> Floor {
        Floor(self.blocks[block].load(Ordering::Acquire))
    }

    /// Whether any write of the block was acknowledged.
    pub fn was_acknowledged(&self, block: usize) -> bool {
        self.blocks[block].load(Ordering::Acquire) & COUNT > 0
    }

    /// Whether a write of the block was in flight at some time since `floor` was noted. Such a read may find the old
    /// data, the new, or sectors of both, and none of these is a fault.
    #[inline]
    pub fn was_written_since(&self, block: usize, floor: Floor) -> bool {
        let now = self.blocks[block].load(Ordering::Acquire);
        floor.0 & BUSY != 0 || now != floor.0
    }

    /// Judges the generation that a read found, given the floor noted when it was sent.
    #[inline]
    pub fn check(&self, block: usize, found: u64, floor: Floor) -> Verdict {
        let acknowledged = floor.0 & COUNT;
        let now = self.blocks[block].load(Ordering::Acquire);
        let newest = self.base + u64::from(now & COUNT) + u64::from(now & BUSY != 0);
        // A block that this run has not written may hold data of any earlier run.
        if acknowledged > 0 && found < self.base + u64::from(acknowledged) {
            return Verdict::Lost { found, acknowledged: self.base + u64::from(acknowledged) };
        }
        if found > newest { Verdict::Unknown { found, newest } } else { Verdict::Sound }
    }

    /// Blocks in the map.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }
}

/// Where the generations of a run begin that starts at `unix_ms` milliseconds since 1970. Later runs begin above all
/// that this one can give out, unless it writes one block more than a million times a millisecond.
pub const fn base_at(unix_ms: u64) -> u64 {
    unix_ms << 20
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    const BASE: u64 = base_at(1_000);

    #[test]
    fn a_block_has_one_write_in_flight() {
        let map = Generations::new(2, BASE);
        assert_eq!(map.try_begin_write(0), Some(BASE + 1));
        assert_eq!(map.try_begin_write(0), None);
        assert_eq!(map.try_begin_write(1), Some(BASE + 1), "blocks do not share a claim");
        map.acknowledge(0);
        assert_eq!(map.try_begin_write(0), Some(BASE + 2));
    }

    #[test]
    fn a_lost_write_is_noticed() {
        let map = Generations::new(1, BASE);
        map.try_begin_write(0).unwrap();
        map.acknowledge(0);
        map.try_begin_write(0).unwrap();
        map.acknowledge(0);
        let floor = map.floor(0);
        assert_eq!(map.check(0, BASE + 2, floor), Verdict::Sound);
        assert_eq!(map.check(0, BASE + 1, floor), Verdict::Lost { found: BASE + 1, acknowledged: BASE + 2 });
        // Data of an earlier run are older than anything that this run wrote.
        assert!(matches!(map.check(0, base_at(999) + 77, floor), Verdict::Lost { .. }));
    }

    #[test]
    fn a_write_in_flight_may_be_found_or_not() {
        let map = Generations::new(1, BASE);
        map.try_begin_write(0).unwrap();
        map.acknowledge(0);
        let floor = map.floor(0);
        assert!(!map.was_written_since(0, floor));
        map.try_begin_write(0).unwrap();
        assert!(map.was_written_since(0, floor));
        assert_eq!(map.check(0, BASE + 1, floor), Verdict::Sound);
        assert_eq!(map.check(0, BASE + 2, floor), Verdict::Sound);
        map.acknowledge(0);
        assert!(map.was_written_since(0, floor), "it began and ended while the read was under way");
        assert_eq!(map.check(0, BASE + 1, floor), Verdict::Sound);
        assert!(matches!(map.check(0, BASE + 1, map.floor(0)), Verdict::Lost { .. }));
    }

    #[test]
    fn a_block_that_was_not_written_may_hold_what_earlier_runs_left() {
        let map = Generations::new(1, BASE);
        let floor = map.floor(0);
        assert_eq!(map.check(0, 1, floor), Verdict::Sound);
        assert_eq!(map.check(0, BASE, floor), Verdict::Sound);
        assert_eq!(map.check(0, BASE + 1, floor), Verdict::Unknown { found: BASE + 1, newest: BASE });
    }

    #[test]
    fn a_failed_write_keeps_its_block_claimed() {
        let map = Generations::new(1, BASE);
        map.try_begin_write(0).unwrap();
        let floor = map.floor(0);
        assert_eq!(map.try_begin_write(0), None);
        assert!(map.was_written_since(0, floor));
        assert_eq!(map.check(0, BASE + 1, floor), Verdict::Sound);
        assert_eq!(map.check(0, 1, floor), Verdict::Sound);
    }

    #[test]
    fn lanes_share_the_map_without_losing_a_write() {
        const WRITES: u64 = 20_000;
        let map = Generations::new(4, BASE);
        // Stands for the device: the data of each block.
        let stored: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        let written = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for lane in 0..3 {
                let (map, stored, written) = (&map, &stored, &written);
                scope.spawn(move || {
                    let mut block = lane;
                    while written.load(Ordering::Relaxed) < WRITES {
                        block = (block + 1) % 4;
                        if let Some(generation) = map.try_begin_write(block) {
                            stored[block].store(generation, Ordering::Relaxed);
                            map.acknowledge(block);
                            written.fetch_add(1, Ordering::Relaxed);
                        }
                        let floor = map.floor(block);
                        let found = stored[block].load(Ordering::Relaxed);
                        let verdict = map.check(block, found, floor);
                        assert_eq!(verdict, Verdict::Sound, "block {block}");
                    }
                });
            }
        });
        let given: u64 = stored.iter().map(|found| found.load(Ordering::Relaxed) - BASE).sum();
        assert_eq!(given, written.into_inner());
    }
}
