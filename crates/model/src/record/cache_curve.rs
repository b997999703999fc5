//! What a buffer cache of another size would have answered.

use serde::{Deserialize, Serialize};

/// The hit ratio of the buffer cache over its size, from how soon the load of a step touched blocks again. It holds for load that
/// goes on as it was, once the cache is warm, and for a cache that replaces what was used least recently.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CacheCurve {
    /// Touches of blocks, drawn at random, of which it was measured how soon the block was touched again.
    pub samples: u64,
    /// Of these, how many were touched again before the load ended.
    pub reused: u64,
    /// One element a size, rising. Sizes are missing that only a longer load could say something about.
    pub points: Vec<CachePoint>,
}

/// One size of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CachePoint {
    /// All memory of the cache, its bookkeeping included: what `--cache` is.
    pub cache_bytes: u64,
    /// Blocks that it holds.
    pub cache_blocks: u64,
    /// Share of logical reads that it would answer, 0 to 1.
    pub hit_ratio: f64,
}

impl CacheCurve {
    /// The hit ratio of a cache that holds so many blocks, between the points that there are; absent outside of them.
    pub fn hit_ratio_at(&self, cache_blocks: u64) -> Option<f64> {
        let after = self.points.iter().position(|point| point.cache_blocks >= cache_blocks)?;
        let next = self.points[after];
        if next.cache_blocks == cache_blocks {
            return Some(next.hit_ratio);
        }
        let before = after.checked_sub(1).and_then(|before| self.points.get(before))?;
        let along = (cache_blocks - before.cache_blocks) as f64 / (next.cache_blocks - before.cache_blocks) as f64;
        Some(before.hit_ratio + along * (next.hit_ratio - before.hit_ratio))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_points_the_curve_is_straight_and_outside_it_is_unknown() {
        let point = |cache_blocks, hit_ratio| CachePoint { cache_bytes: cache_blocks * 8_320, cache_blocks, hit_ratio };
        let curve = CacheCurve { samples: 10, reused: 9, points: vec![point(100, 0.2), point(300, 0.6)] };
        let at = |blocks| curve.hit_ratio_at(blocks).map(|ratio| (ratio * 1e6).round() / 1e6);
        assert_eq!([at(99), at(100), at(150), at(300), at(301)], [None, Some(0.2), Some(0.3), Some(0.6), None]);
    }
}
