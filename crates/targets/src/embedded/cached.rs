//! The engine's buffer cache by itself, with every block in it: what a logical read costs the processor that does it.

use std::io;
use std::sync::Arc;

use super::block::{self, BlockIdentity, BlockKind, BlockShape};
use super::cache::{Allocation, Cache, Hand, Lookup};
use crate::database::Filling;
use crate::io::Arena;
use model::units::Bytes;
use model::workload::Rng;

const BLOCK_BYTES: usize = 8_192;
/// Touches whose cache misses are overlapped, as in the engine's own lanes.
const LOOK_AHEAD: usize = 16;

/// A buffer cache that holds all there is. Threads share it as sessions share the engine's.
pub struct CachedBlocks {
    cache: Cache,
}

impl CachedBlocks {
    /// The smallest cache that works: 64 blocks.
    pub const MIN: Bytes = Bytes(64 * BLOCK_BYTES as u64);

    /// Fills a cache of `bytes` with blocks of 8 KiB, of which there are 64 at least.
    ///
    /// # Errors
    /// When there is not so much memory.
    pub fn new(bytes: Bytes) -> io::Result<Self> {
        let shape = BlockShape::new(BLOCK_BYTES).ok_or(io::ErrorKind::InvalidInput)?;
        let blocks = (bytes.0 / BLOCK_BYTES as u64).max(Self::MIN.0 / BLOCK_BYTES as u64);
        let arena = Arena::new(usize::try_from(blocks).map_err(|_| io::ErrorKind::OutOfMemory)? * BLOCK_BYTES)?;
        let cache = Cache::new(blocks, shape, Arc::new(arena));
        let (mut hand, mut buffer, mut rng) = (Hand::default(), vec![0; BLOCK_BYTES], Rng::new(0, 0));
        for address in 0..blocks {
            let Allocation::Frame(frame) = cache.allocate(address, &mut hand) else {
                return Err(io::ErrorKind::OutOfMemory.into());
            };
            let identity = BlockIdentity { database: 0, address, key: address, schema: 0, kind: BlockKind::Row };
            shape.build(&mut buffer, identity, Filling::Compressible, &mut rng);
            cache.arena().store_bytes(cache.offset(frame), &buffer);
            cache.finish_loading(frame);
            cache.frame(frame).unpin();
        }
        Ok(Self { cache })
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> u64 {
        self.cache.len()
    }

    /// Does so many logical reads of blocks that `rng` draws: each is found, pinned, looked at and released. Returns how many
    /// were what was asked for, which are all of them.
    pub fn read(&self, rng: &mut Rng, reads: u64) -> u64 {
        let (mut found, mut left) = (0, reads);
        let mut blocks = [0_u64; LOOK_AHEAD];
        while left > 0 {
            let ahead = left.min(LOOK_AHEAD as u64) as usize;
            for block in &mut blocks[..ahead] {
                *block = rng.below(self.cache.len());
                self.cache.prefetch_bucket(*block);
            }
            blocks[..ahead].iter().for_each(|block| self.cache.prefetch_frame(*block));
            found += blocks[..ahead].iter().filter(|block| self.touch(**block)).count() as u64;
            left -= ahead as u64;
        }
        found
    }

    #[inline]
    fn touch(&self, block: u64) -> bool {
        let Lookup::Hit { frame, seen } = self.cache.lookup(block) else { return false };
        let is_it = block::is_row_at(self.cache.arena(), self.cache.offset(frame), block, block);
        self.cache.frame(frame).unpin_used(seen);
        is_it
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_there_and_stays_there() {
        let cached = CachedBlocks::new(Bytes::mib(2)).unwrap();
        assert_eq!(cached.blocks(), 256);
        assert!((0..256).all(|block| cached.touch(block)));
        assert!(!cached.touch(256));
        std::thread::scope(|scope| {
            for stream in 0..3 {
                let cached = &cached;
                scope.spawn(move || assert_eq!(cached.read(&mut Rng::new(1, stream), 5_003), 5_003));
            }
        });
    }
}
