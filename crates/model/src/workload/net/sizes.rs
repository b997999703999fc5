//! How large what is sent is.

use crate::workload::Rng;

/// A size, and how many times in a hundred (or in whatever the weights add up to) it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightedSize {
    /// The size.
    pub bytes: u32,
    /// Its weight; above 0.
    pub weight: u32,
}

/// Sizes, one for each operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Always the same.
    Fixed(u32),
    /// Drawn by their weights; at least one.
    Drawn(Vec<WeightedSize>),
}

impl Sizes {
    /// The largest that can come.
    pub fn largest(&self) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Drawn(sizes) => sizes.iter().map(|size| size.bytes).max().unwrap_or(0),
        }
    }

    /// The smallest that can come.
    pub fn smallest(&self) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Drawn(sizes) => sizes.iter().map(|size| size.bytes).min().unwrap_or(0),
        }
    }

    /// The mean of very many.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(bytes) => f64::from(*bytes),
            Self::Drawn(sizes) => {
                let weights: u64 = sizes.iter().map(|size| u64::from(size.weight)).sum();
                let weighted: f64 = sizes.iter().map(|size| f64::from(size.bytes) * f64::from(size.weight)).sum();
                if weights == 0 { 0.0 } else { weighted / weights as f64 }
            }
        }
    }

    /// One of them.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Drawn(sizes) => {
                let weights = sizes.iter().map(|size| u64::from(size.weight)).sum();
                let mut drawn = rng.below(weights);
                for size in sizes {
                    match drawn.checked_sub(u64::from(size.weight)) {
                        Some(rest) => drawn = rest,
                        None => return size.bytes,
                    }
                }
                0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_as_often_as_their_weights_say() {
        let weighted = |bytes, weight| WeightedSize { bytes, weight };
        let sizes = Sizes::Drawn(vec![weighted(4_096, 70), weighted(65_536, 25), weighted(1 << 20, 5)]);
        assert_eq!((sizes.smallest(), sizes.largest()), (4_096, 1 << 20));
        assert!((sizes.mean() - (0.7 * 4_096.0 + 0.25 * 65_536.0 + 0.05 * 1_048_576.0)).abs() < 1e-6);
        let mut rng = Rng::new(3, 0);
        let mut counts = [0_u32; 3];
        for _ in 0..100_000 {
            let drawn = sizes.draw(&mut rng);
            counts[[4_096, 65_536, 1 << 20].iter().position(|bytes| *bytes == drawn).unwrap()] += 1;
        }
        for (count, expected) in counts.into_iter().zip([70_000.0, 25_000.0, 5_000.0]) {
            // Five standard deviations of a binomial count.
            let spread = 5.0 * (expected * (1.0 - expected / 1e5_f64)).sqrt();
            assert!((f64::from(count) - expected).abs() < spread, "{counts:?}");
        }
    }

    #[test]
    fn one_size_draws_nothing() {
        let mut rng = Rng::new(1, 1);
        let untouched = rng.clone().next_u64();
        assert_eq!(Sizes::Fixed(8_192).draw(&mut rng), 8_192);
        assert_eq!(rng.next_u64(), untouched);
        assert!((Sizes::Fixed(8_192).mean() - 8_192.0).abs() < f64::EPSILON);
    }
}
