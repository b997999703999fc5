//! Blocks as a database has them in memory: checked and compared.

use crate::database::Filling;
use crate::embedded::BlockShape;
use crate::embedded::block::{BlockIdentity, BlockKind, check};
use model::workload::{HostKind, Rng, mix64};

/// 1 MiB, and as much again to compare with: they stay in the caches of the core, so that the processor is what is measured.
const BLOCKS: usize = 128;
/// One block of so many differs from its twin in its last word.
const DIFFERS: usize = 16;

/// Sealed blocks, and copies of them.
pub(super) struct Blocks {
    blocks: Vec<u8>,
    twins: Vec<u8>,
}

fn identity(number: usize) -> BlockIdentity {
    BlockIdentity { database: 1, address: number as u64, key: number as u64, schema: 0, kind: BlockKind::Row }
}

impl Blocks {
    pub(super) fn new() -> Self {
        let bytes = HostKind::BLOCK_BYTES;
        let mut blocks = vec![0; BLOCKS * bytes];
        let mut rng = Rng::new(1, 1);
        for (number, block) in blocks.chunks_exact_mut(bytes).enumerate() {
            if let Some(shape) = BlockShape::new(bytes) {
                shape.build(block, identity(number), Filling::Incompressible, &mut rng);
            }
        }
        let mut twins = blocks.clone();
        for twin in twins.chunks_exact_mut(bytes).step_by(DIFFERS) {
            twin[bytes - 1] ^= 1;
        }
        Self { blocks, twins }
    }

    /// Numbers of `units` blocks in a row, around all that there are.
    fn numbers(seed: u64, units: u64) -> impl Iterator<Item = usize> {
        let start = start_of(seed, BLOCKS);
        (0..units as usize).map(move |place| (start + place) % BLOCKS)
    }

    /// Checks blocks as the engine checks those that it reads: checksum and identity. Which they were, or `None` if one was
    /// found to be wrong.
    pub(super) fn check(&self, seed: u64, units: u64) -> Option<u64> {
        let bytes = HostKind::BLOCK_BYTES;
        let is_sound = |number: usize| {
            check(&self.blocks[number * bytes..(number + 1) * bytes], identity(number), Some(0)).is_ok()
        };
        Self::numbers(seed, units).all(is_sound).then(|| start_of(seed, BLOCKS) as u64)
    }

    /// Compares blocks with their twins. How many were the same.
    pub(super) fn compare(&self, seed: u64, units: u64) -> Option<u64> {
        let bytes = HostKind::BLOCK_BYTES;
        let of = |number: usize| number * bytes..(number + 1) * bytes;
        let is_same = |number: &usize| self.blocks[of(*number)] == self.twins[of(*number)];
        let same = Self::numbers(seed, units).filter(is_same).count() as u64;
        let differ = Self::numbers(seed, units).filter(|number| number.is_multiple_of(DIFFERS)).count() as u64;
        (same + differ == units).then_some(same << 8 | start_of(seed, BLOCKS) as u64)
    }
}

/// Where in a row of so many things a slice begins.
fn start_of(seed: u64, among: usize) -> usize {
    (mix64(seed) % among.max(1) as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_blocks_are_sound_and_a_flipped_bit_is_found() {
        let mut blocks = Blocks::new();
        assert!(blocks.check(3, 300).is_some());
        assert_eq!(
            blocks.compare(3, BLOCKS as u64).map(|answer| answer >> 8),
            Some((BLOCKS - BLOCKS / DIFFERS) as u64)
        );
        blocks.blocks[5 * HostKind::BLOCK_BYTES + 77] ^= 4;
        assert_eq!(blocks.check(3, BLOCKS as u64), None);
        assert_eq!(blocks.compare(3, BLOCKS as u64), None);
    }
}
