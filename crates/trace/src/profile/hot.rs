//! How unevenly requests are spread over the devices.

use std::collections::HashMap;

use serde::Serialize;

use super::hash::{ByHash, place_hash};
use super::kinds::share;

/// How many reads and writes go to the chunks that have most of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HotSpots {
    /// The length of a chunk. A request counts to the chunk that it begins in.
    pub chunk_bytes: u64,
    /// Chunks with at least one request; estimated where `sampled_share` is below 1.
    pub chunks: u64,
    /// The share of chunks that was counted, drawn by a hash: 1 where all were. It was halved as often as their memory was full.
    pub sampled_share: f64,
    /// The share of requests that go to the hottest 1 % of these chunks (at least one chunk).
    pub hottest_1_percent_share: f64,
    /// To the hottest 5 %.
    pub hottest_5_percent_share: f64,
    /// To the hottest 20 %.
    pub hottest_20_percent_share: f64,
}

/// Counts requests by chunk.
#[derive(Debug)]
pub(super) struct Chunks {
    chunk_bits: u32,
    max_chunks: usize,
    limit: u64,
    halvings: u32,
    counts: HashMap<u64, u32, ByHash>,
    /// The chunk of the last requests, and how many there were one after another.
    last: u64,
    run: u32,
    /// Such runs that are not counted yet.
    pending: Vec<(u64, u32)>,
}

/// Runs that are counted at a time. The table is larger than the CPU's caches: what one look-up waits for, the next ones do too.
const PENDING: usize = 256;

impl Chunks {
    /// `chunk_bits` is the logarithm of the chunk's bytes; `max_chunks` are counted at most.
    pub(super) fn new(chunk_bits: u32, max_chunks: usize) -> Self {
        let counts = HashMap::default();
        Self {
            chunk_bits,
            max_chunks,
            limit: u64::MAX,
            halvings: 0,
            counts,
            last: 0,
            run: 0,
            pending: Vec::with_capacity(PENDING),
        }
    }

    #[inline]
    pub(super) fn add(&mut self, device: u16, offset_bytes: u64) {
        let hash = place_hash(device, offset_bytes >> self.chunk_bits);
        if hash == self.last {
            self.run = self.run.saturating_add(1);
            return;
        }
        self.settle();
        (self.last, self.run) = (hash, 1);
    }

    #[inline]
    fn settle(&mut self) {
        let run = std::mem::take(&mut self.run);
        if run == 0 || self.last > self.limit {
            return;
        }
        self.pending.push((self.last, run));
        if self.pending.len() >= PENDING {
            self.count();
        }
    }

    fn count(&mut self) {
        for (hash, run) in self.pending.drain(..) {
            let count = self.counts.entry(hash).or_default();
            *count = count.saturating_add(run);
        }
        while self.counts.len() > self.max_chunks {
            self.limit >>= 1;
            self.halvings += 1;
            let limit = self.limit;
            self.counts.retain(|hash, _| *hash <= limit);
        }
    }

    /// Absent without a request.
    pub(super) fn finish(mut self) -> Option<HotSpots> {
        self.settle();
        self.count();
        let mut counts: Vec<u32> = self.counts.into_values().collect();
        counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
        let sum = |counts: &[u32]| counts.iter().map(|count| u64::from(*count)).sum::<u64>();
        let all = sum(&counts);
        let hottest = |percent: usize| {
            let chunks = (counts.len() * percent).div_ceil(100);
            share(sum(counts.get(..chunks)?), all)
        };
        Some(HotSpots {
            chunk_bytes: 1 << self.chunk_bits,
            chunks: (counts.len() as u64) << self.halvings,
            sampled_share: 0.5_f64.powi(self.halvings as i32),
            hottest_1_percent_share: hottest(1)?,
            hottest_5_percent_share: hottest(5)?,
            hottest_20_percent_share: hottest(20)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use model::workload::Rng;

    use super::*;

    /// Of 1,000 chunks the first 10 have half of the requests.
    fn skewed(max_chunks: usize) -> HotSpots {
        let (mut rng, mut chunks) = (Rng::new(4, 4), Chunks::new(20, max_chunks));
        for _ in 0..200_000 {
            let chunk = if rng.below(2) == 0 { rng.below(10) } else { 10 + rng.below(990) };
            chunks.add(0, (chunk << 20) + rng.below(1 << 20));
        }
        chunks.finish().unwrap()
    }

    #[test]
    fn a_known_skew_is_found() {
        let hot = skewed(1 << 20);
        assert_eq!((hot.chunks, hot.sampled_share), (1_000, 1.0));
        assert!((hot.hottest_1_percent_share - 0.5).abs() < 0.01, "{hot:?}");
        assert!((hot.hottest_20_percent_share - (0.5 + 0.5 * 190.0 / 990.0)).abs() < 0.02, "{hot:?}");
    }

    #[test]
    fn a_sample_says_that_it_is_one() {
        let hot = skewed(600);
        assert_eq!(hot.sampled_share, 0.5);
        assert!((900..1_100).contains(&hot.chunks), "{hot:?}");
        assert_eq!(Chunks::new(20, 10).finish(), None);
    }
}
