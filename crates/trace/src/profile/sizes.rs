//! How long requests are.

use std::collections::HashMap;

use serde::Serialize;

use super::hash::ByHash;
use super::kinds::Counted;

/// Lengths that are listed, the most frequent ones.
const LISTED: usize = 64;
/// Lengths that are counted each by itself: a trace has some hundred, multiples of its sector within the longest request.
const COUNTED: usize = 1_024;

/// Requests of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OfSize {
    /// The length.
    pub bytes: u64,
    /// Requests that have it.
    pub requests: u64,
}

/// The lengths of requests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sizes {
    /// The shortest.
    pub min_bytes: u64,
    /// The mean.
    pub mean_bytes: f64,
    /// The longest.
    pub max_bytes: u64,
    /// The (at most 64) most frequent lengths, by length.
    pub exact: Vec<OfSize>,
    /// The others in classes: each has requests from `bytes` to less than twice that, a power of two (0 and 1 are one class).
    pub classes: Vec<OfSize>,
}

/// Counts lengths.
#[derive(Debug, Default)]
pub(super) struct SizeCounts {
    exact: HashMap<u64, u64, ByHash>,
    /// Those beyond [`COUNTED`] lengths, by the power of two.
    classes: Vec<u64>,
    all: Counted,
    range: Option<(u64, u64)>,
    /// Requests one after another of the same length.
    last: u64,
    run: u64,
}

impl SizeCounts {
    #[inline]
    pub(super) fn add(&mut self, bytes: u64) {
        self.all.add(bytes);
        if bytes == self.last {
            self.run += 1;
            return;
        }
        self.settle();
        (self.last, self.run) = (bytes, 1);
    }

    fn settle(&mut self) {
        let (bytes, run) = (self.last, std::mem::take(&mut self.run));
        if run == 0 {
            return;
        }
        self.range = Some(self.range.map_or((bytes, bytes), |(min, max)| (min.min(bytes), max.max(bytes))));
        if let Some(count) = self.exact.get_mut(&bytes) {
            *count += run;
        } else if self.exact.len() < COUNTED {
            self.exact.insert(bytes, run);
        } else {
            self.classify(bytes, run);
        }
    }

    fn classify(&mut self, bytes: u64, requests: u64) {
        let class = bytes.max(1).ilog2() as usize;
        if self.classes.len() <= class {
            self.classes.resize(class + 1, 0);
        }
        self.classes[class] += requests;
    }

    /// Absent where nothing was counted.
    pub(super) fn finish(mut self) -> Option<Sizes> {
        self.settle();
        let (min_bytes, max_bytes) = self.range?;
        let mut exact: Vec<OfSize> = self.exact.iter().map(|(&bytes, &requests)| OfSize { bytes, requests }).collect();
        exact.sort_unstable_by_key(|size| (std::cmp::Reverse(size.requests), size.bytes));
        for rare in exact.drain(LISTED.min(exact.len())..) {
            self.classify(rare.bytes, rare.requests);
        }
        exact.sort_unstable_by_key(|size| size.bytes);
        let class = |(power, &requests): (usize, &u64)| OfSize { bytes: 1 << power, requests };
        let classes = self.classes.iter().enumerate().map(class).filter(|class| class.requests > 0).collect();
        let mean_bytes = self.all.bytes as f64 / self.all.requests as f64;
        Some(Sizes { min_bytes, mean_bytes, max_bytes, exact, classes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_lengths_are_exact() {
        let mut counts = SizeCounts::default();
        [4096, 4096, 512, 8192, 4096].iter().for_each(|bytes| counts.add(*bytes));
        let sizes = counts.finish().unwrap();
        let exact: Vec<_> = sizes.exact.iter().map(|size| (size.bytes, size.requests)).collect();
        assert_eq!(exact, [(512, 1), (4096, 3), (8192, 1)]);
        assert_eq!((sizes.min_bytes, sizes.max_bytes, sizes.classes.len()), (512, 8192, 0));
        assert_eq!(sizes.mean_bytes, 4198.4);
        assert_eq!(SizeCounts::default().finish(), None);
    }

    #[test]
    fn the_frequent_of_many_lengths_are_exact() {
        let mut counts = SizeCounts::default();
        (1..5_000).for_each(|number| {
            counts.add(number * 512);
            counts.add(16_384);
        });
        let sizes = counts.finish().unwrap();
        assert_eq!(sizes.exact.len(), LISTED);
        assert!(sizes.exact.contains(&OfSize { bytes: 16_384, requests: 5_000 }));
        let all: u64 = sizes.exact.iter().chain(&sizes.classes).map(|size| size.requests).sum();
        assert_eq!(all, 2 * 4_999);
    }
}
