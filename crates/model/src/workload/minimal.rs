//! A generator that any SQL server can compute too.

use super::Rng;

/// Park and Miller's minimal standard generator ("Random number generators: good ones are hard to find", Communications of the ACM
/// 31(10), 1988) with the multiplier that they advise instead in 36(7), 1993: x becomes 48271·x mod (2³¹ − 1).
///
/// No product is above 2⁴⁷, so a server needs nothing but whole numbers of 64 bits to draw the same as a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinimalStandard(i64);

impl MinimalStandard {
    /// What a state is multiplied by.
    pub const MULTIPLIER: i64 = 48_271;
    /// What it is divided by for its rest; a prime.
    pub const MODULUS: i64 = 2_147_483_647;

    /// Begins at a state that `rng` draws, each equally likely.
    pub fn drawn(rng: &mut Rng) -> Self {
        Self(1 + rng.below(Self::MODULUS.unsigned_abs() - 1) as i64)
    }

    /// The state, from 1 to below [`MODULUS`](Self::MODULUS): where somebody else goes on from.
    pub fn state(&self) -> i64 {
        self.0
    }

    #[inline]
    fn step(&mut self) -> i64 {
        self.0 = self.0 * Self::MULTIPLIER % Self::MODULUS;
        self.0
    }

    /// A number of `least..=most`; `least` where there is none. The range has to be far smaller than 2³¹: some of its numbers are
    /// likelier than others by its part of that.
    #[inline]
    pub fn between(&mut self, least: i64, most: i64) -> i64 {
        least + self.step() % (most - least + 1).max(1)
    }

    /// A number above 0 and below 1.
    pub fn unit_f64(&mut self) -> f64 {
        self.step() as f64 / Self::MODULUS as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_published_generator() {
        // The 10,000th number from the state 1, which the standard of C++ names for `minstd_rand`.
        let mut generator = MinimalStandard(1);
        assert_eq!((0..10_000).map(|_| generator.step()).last(), Some(399_268_537));
    }

    #[test]
    fn numbers_of_a_range_are_equally_likely_and_none_is_outside() {
        let mut generator = MinimalStandard::drawn(&mut Rng::new(3, 0));
        let mut counts = [0_u32; 23];
        for _ in 0..230_000 {
            counts[generator.between(1, 23) as usize - 1] += 1;
        }
        let chi_square: f64 = counts.iter().map(|&count| (f64::from(count) - 1e4).powi(2) / 1e4).sum();
        assert!(chi_square < 22.0 + 5.0 * 44.0_f64.sqrt(), "{chi_square}");
        assert_eq!((generator.between(7, 7), generator.between(7, 6)), (7, 7));
        let unit = generator.unit_f64();
        assert!(unit > 0.0 && unit < 1.0);
    }
}
