//! Seeded random numbers, small and fast; not for secrets.

/// The golden ratio as a 64-bit fraction: the step of splitmix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014, with Stafford's constants): a bijection in which
/// each input bit flips about half of the output bits. It maps 0 to 0.
#[inline]
pub const fn mix64(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A seeded generator: xoshiro256++ (Blackman and Vigna, 2019), its state filled by splitmix64 as its authors advise.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Stream number `stream` of `seed`: streams of one seed, and equal streams of different seeds, are independent.
    pub fn new(seed: u64, stream: u64) -> Self {
        let start = mix64(seed.wrapping_add(GOLDEN)) ^ mix64(!stream).rotate_left(32);
        // At most one of four distinct inputs maps to 0, so the state is never the forbidden all-zero one.
        let state = std::array::from_fn(|word| mix64(start.wrapping_add(GOLDEN.wrapping_mul(word as u64 + 1))));
        Self { state }
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let (c2, d2) = (c ^ a, d ^ b);
        self.state = [a ^ d2, b ^ c2, c2 ^ (b << 17), d2.rotate_left(45)];
        a.wrapping_add(d).rotate_left(23).wrapping_add(a)
    }

    /// A number in `0..bound`, each equally likely; 0 when `bound` is 0.
    ///
    /// The multiply-and-reject method of Lemire, "Fast Random Integer Generation in an Interval" (2019): a division only
    /// when the first draw lands in the sliver that could be biased.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        let mut product = u128::from(self.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            let sliver = bound.wrapping_neg() % bound;
            while (product as u64) < sliver {
                product = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// A number in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Fills `bytes` with incompressible data; equal on every machine for equal generators.
    ///
    /// Rows are filled at many GB/s, which xoshiro's chain of dependent steps cannot reach. So a draw from it only starts
    /// a counter, and each word is wyrand's folded product (Wang Yi, wyhash) of its own count: no word waits for another.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        const STEP: u64 = 0xa076_1d64_78bd_642f;
        const FLIP: u64 = 0xe703_7ed1_a0b4_28db;
        let start = self.next_u64();
        let word = |index: usize| {
            let count = start.wrapping_add(STEP.wrapping_mul(index as u64));
            let product = u128::from(count) * u128::from(count ^ FLIP);
            ((product >> 64) as u64 ^ product as u64).to_le_bytes()
        };
        let (words, tail) = bytes.as_chunks_mut::<8>();
        for (index, place) in words.iter_mut().enumerate() {
            *place = word(index);
        }
        tail.copy_from_slice(&word(words.len())[..tail.len()]);
    }
}

/// The independent choices of this module, so that no two ever share a stream of one seed.
#[derive(Clone, Copy)]
pub(super) enum Choice {
    MixPhase = 1,
    Key,
    HotSpot,
    HotSchema,
    Think,
    Arrival,
    Scatter,
    Transaction,
    TransactionSeed,
    MessageSize,
}

impl Choice {
    /// The generator of this choice for session, stream, class or lane `number`.
    pub(super) fn rng(self, seed: u64, number: u32) -> Rng {
        Rng::new(seed, (self as u64) << 32 | u64::from(number))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::{Rng, mix64};

    #[test]
    fn the_generator_is_xoshiro256_plus_plus() {
        // What the authors' C program prints for the state 1, 2, 3, 4.
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let drawn: [u64; 4] = std::array::from_fn(|_| rng.next_u64());
        assert_eq!(drawn, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn mixing_flips_about_half_of_the_bits() {
        for bit in 0..64 {
            let flipped: u32 = (1..=256).map(|x: u64| (mix64(x) ^ mix64(x ^ (1 << bit))).count_ones()).sum();
            let mean = f64::from(flipped) / 256.0;
            assert!((29.0..35.0).contains(&mean), "bit {bit} flips {mean} bits");
        }
    }

    #[test]
    fn seeds_and_streams_never_share_a_number() {
        let mut seen = HashSet::new();
        for seed in 0..32 {
            for stream in 0..32 {
                let mut rng = Rng::new(seed, stream);
                assert!((0..32).all(|_| seen.insert(rng.next_u64())), "seed {seed} stream {stream}");
            }
        }
    }

    #[test]
    fn every_number_below_a_bound_is_equally_likely() {
        for bound in [3_u64, 10, 64, 100] {
            let mut rng = Rng::new(5, bound);
            let mut counts = vec![0_u32; bound as usize];
            let expected = 2_000.0;
            for _ in 0..bound * 2_000 {
                counts[rng.below(bound) as usize] += 1;
            }
            let chi_square: f64 = counts.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
            let freedom = (bound - 1) as f64;
            assert!(chi_square < freedom + 5.0 * (2.0 * freedom).sqrt(), "bound {bound}: {chi_square}");
        }
    }

    #[test]
    fn a_bound_that_does_not_divide_the_range_is_not_biased() {
        // Without rejection a bound of 3·2^62 would give every third number twice as often as the others.
        let (mut rng, bound) = (Rng::new(1, 1), 3_u64 << 62);
        let thirds = (0..30_000).filter(|_| rng.below(bound).is_multiple_of(3)).count();
        assert!((9_500..10_500).contains(&thirds), "{thirds} of 30000 are multiples of three");
    }

    proptest! {
        #[test]
        fn a_draw_stays_below_its_bound(seed: u64, bound in 1..=u64::MAX) {
            let mut rng = Rng::new(seed, 0);
            for _ in 0..8 {
                prop_assert!(rng.below(bound) < bound);
            }
        }

        #[test]
        fn a_longer_fill_begins_like_a_shorter_one(seed: u64, short in 0..200_usize, more in 0..200_usize) {
            let (mut one, mut other) = (vec![0; short], vec![0; short + more]);
            Rng::new(seed, 0).fill(&mut one);
            Rng::new(seed, 0).fill(&mut other);
            prop_assert_eq!(&one[..], &other[..short]);
        }
    }

    #[test]
    fn unit_numbers_fill_the_interval_evenly() {
        let mut rng = Rng::new(11, 0);
        let draws: Vec<f64> = (0..100_000).map(|_| rng.unit_f64()).collect();
        assert!(draws.iter().all(|draw| (0.0..1.0).contains(draw)));
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        assert!((mean - 0.5).abs() < 0.005, "mean {mean}");
    }

    #[test]
    fn filler_shows_no_pattern_and_never_repeats() {
        let mut rng = Rng::new(3, 0);
        let mut bytes = vec![0; 1 << 20];
        let mut words = HashSet::new();
        for block in bytes.chunks_mut(8192) {
            rng.fill(block);
            assert!(block.chunks_exact(8).all(|word| words.insert(word.to_vec())), "a word came twice");
        }
        let mut pairs = vec![0_u32; 65_536];
        for pair in bytes.as_chunks::<2>().0 {
            pairs[usize::from(u16::from_le_bytes(*pair))] += 1;
        }
        let expected = (bytes.len() / 2) as f64 / 65_536.0;
        let chi_square: f64 = pairs.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        // 65,535 degrees of freedom: standard deviation 362.
        assert!((chi_square - 65_535.0).abs() < 5.0 * 362.0, "chi-square {chi_square}");
    }
}
