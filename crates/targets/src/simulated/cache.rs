//! A cache that only knows which blocks it would hold.

use std::collections::HashMap;

/// Bytes that are cached or not cached together.
const BLOCK_BYTES: u64 = 8_192;

/// The clock algorithm over block numbers: a block touched since the hand last passed by is kept.
#[derive(Debug)]
pub(super) struct BlockCache {
    capacity: usize,
    /// Where each block stands.
    places: HashMap<u64, u32>,
    blocks: Vec<(u64, Touched)>,
    hand: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Touched {
    Lately,
    NotLately,
}

/// Whether a cache had everything that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    Hit,
    Miss,
}

impl BlockCache {
    /// An empty cache of `bytes`, one block at least.
    pub(super) fn new(bytes: u64) -> Self {
        let capacity = (bytes / BLOCK_BYTES).clamp(1, u64::from(u32::MAX)) as usize;
        Self { capacity, places: HashMap::new(), blocks: Vec::new(), hand: 0 }
    }

    /// Touches every block of a range; all that were missing are there afterwards.
    pub(super) fn touch(&mut self, offset_bytes: u64, bytes: u32) -> Lookup {
        let end = offset_bytes.saturating_add(u64::from(bytes.max(1)));
        let mut lookup = Lookup::Hit;
        for block in offset_bytes / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES) {
            if let Some(place) = self.places.get(&block) {
                self.blocks[*place as usize].1 = Touched::Lately;
            } else {
                lookup = Lookup::Miss;
                self.insert(block);
            }
        }
        lookup
    }

    fn insert(&mut self, block: u64) {
        if self.blocks.len() < self.capacity {
            self.places.insert(block, self.blocks.len() as u32);
            self.blocks.push((block, Touched::NotLately));
            return;
        }
        while self.blocks[self.hand].1 == Touched::Lately {
            self.blocks[self.hand].1 = Touched::NotLately;
            self.hand = (self.hand + 1) % self.capacity;
        }
        self.places.remove(&self.blocks[self.hand].0);
        self.places.insert(block, self.hand as u32);
        self.blocks[self.hand] = (block, Touched::NotLately);
        self.hand = (self.hand + 1) % self.capacity;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_found_again_and_what_was_not_touched_goes_first() {
        let mut cache = BlockCache::new(4 * BLOCK_BYTES);
        let mut touch = |block: u64| cache.touch(block * BLOCK_BYTES, BLOCK_BYTES as u32);
        assert_eq!([1, 2, 3, 4].map(&mut touch), [Lookup::Miss; 4]);
        assert_eq!([4, 3, 1].map(&mut touch), [Lookup::Hit; 3]);
        assert_eq!(touch(5), Lookup::Miss);
        assert_eq!([1, 3, 4, 5].map(&mut touch), [Lookup::Hit; 4], "2 made room, as nobody had touched it");
        assert_eq!(touch(2), Lookup::Miss);
    }

    #[test]
    fn a_range_hits_only_if_all_of_it_is_there() {
        let mut cache = BlockCache::new(1 << 20);
        cache.touch(0, 8_192);
        assert_eq!(cache.touch(0, 8_193), Lookup::Miss);
        assert_eq!(cache.touch(100, 16_000), Lookup::Hit);
    }

    #[test]
    fn uniform_reads_hit_in_proportion_to_what_fits() {
        let mut cache = BlockCache::new(300 * BLOCK_BYTES);
        let mut rng = model::workload::Rng::new(1, 1);
        let mut hits = 0;
        for read in 0..60_000 {
            let lookup = cache.touch(rng.below(1_000) * BLOCK_BYTES, 8_192);
            hits += usize::from(read >= 10_000 && lookup == Lookup::Hit);
        }
        assert!((14_500..15_500).contains(&hits), "{hits} of 50000 reads hit where 30 % of the blocks fit");
    }
}
