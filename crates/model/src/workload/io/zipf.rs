//! Numbers that follow Zipf's law, in constant time and memory.

use crate::workload::Rng;

use super::MAX_ZIPF_THETA;

/// Draws ranks `1..=size`, rank k in proportion to h(k) = k^−θ.
///
/// The method is rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone
/// discrete distributions", 1996). Let H be an integral of h. Since h is convex, the slice of H between k − ½ and k + ½ is
/// at least as wide as h(k). So u is drawn evenly from the whole range of H, k is the whole number nearest to the x with
/// H(x) = u, and k is kept where u lies in the upper h(k) of its slice. The slice of rank 1 is cut down to just that
/// width. Nothing is summed over ranks, so the cost does not grow with the size, and few draws are rejected.
///
/// In f64 and with θ up to 1.1, the probability of a single rank holds to about 2 % at the far end of 2^40 ranks and
/// better before; with a larger θ as good as nothing is drawn from there.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    size: u64,
    theta: f64,
    lowest: f64,
    width: f64,
    sure: f64,
}

impl Zipf {
    /// Ranks up to `size`, which counts as 1 where it is 0. A θ that is no number above 0 makes all ranks equally
    /// likely.
    pub(super) fn new(size: u64, theta: f64) -> Self {
        let size = size.max(1);
        let theta = if theta > 0.0 { theta.min(MAX_ZIPF_THETA) } else { 0.0 };
        let lowest = integral(1.5, theta) - 1.0;
        // A rank k is kept where k − x is at most a bound that grows with k (rank 1 always is): what rank 2 would keep
        // needs no look at the slice of its own rank.
        let sure = 2.0 - inverse(integral(2.5, theta) - (-theta * 2.0_f64.ln()).exp(), theta);
        Self { size, theta, lowest, width: integral(size as f64 + 0.5, theta) - lowest, sure }
    }

    /// The next rank, from 1 to the size.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.lowest + rng.unit_f64() * self.width;
            let x = inverse(u, self.theta);
            // Not `round`, which is a call into the mathematics library on the x86-64 baseline.
            let rank = ((x + 0.5) as u64).clamp(1, self.size);
            let near = rank as f64;
            if near - x <= self.sure || u >= integral(near + 0.5, self.theta) - (-self.theta * near.ln()).exp() {
                return rank;
            }
        }
    }
}

/// H(x) = (x^(1−θ) − 1) / (1 − θ), and ln x for θ = 1: the integral of t^−θ from 1 to x, for x above 0.
#[inline]
fn integral(x: f64, theta: f64) -> f64 {
    let ln = x.ln();
    let power = (1.0 - theta) * ln;
    // As e^p − 1 over p, which stays exact where θ is near 1 and both are near 0.
    if power == 0.0 { ln } else { ln * (power.exp_m1() / power) }
}

/// The x with H(x) = `value`: e to the power of `value` · ln(1 + p) / p, where p = (1 − θ) · `value`.
#[inline]
fn inverse(value: f64, theta: f64) -> f64 {
    // Rounding may carry p past −1, the limit that H has for θ above 1.
    let sum = (1.0 + (1.0 - theta) * value).max(0.0);
    // The p that `sum` really holds, and not the one that went in, keeps the quotient exact where both are near 0, without
    // the slow `ln_1p`.
    let power = sum - 1.0;
    if power == 0.0 { value.exp() } else { (value * (sum.ln() / power)).exp() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Zipf, integral, inverse};
    use crate::workload::Rng;

    const THETAS: [f64; 8] = [0.01, 0.5, 0.99, 1.0, 1.000_000_1, 1.1, 2.0, 5.0];

    /// Chi-square of the drawn ranks against exact probabilities, with ranks too rare for the test thrown together, and
    /// its degrees of freedom.
    fn chi_square(size: u64, theta: f64, draws: u32) -> (f64, f64) {
        let zipf = Zipf::new(size, theta);
        let mut rng = Rng::new(7, size);
        let mut counts = vec![0_u32; size as usize];
        for _ in 0..draws {
            counts[zipf.draw(&mut rng) as usize - 1] += 1;
        }
        let weights: Vec<f64> = (1..=size).map(|rank| (rank as f64).powf(-theta)).collect();
        let sum: f64 = weights.iter().sum();
        let (mut statistic, mut cells, mut rare, mut rare_expected) = (0.0, 0, 0, 0.0);
        for (count, weight) in counts.into_iter().zip(weights) {
            let expected = weight / sum * f64::from(draws);
            if expected < 10.0 {
                (rare, rare_expected) = (rare + count, rare_expected + expected);
            } else {
                statistic += (f64::from(count) - expected).powi(2) / expected;
                cells += 1;
            }
        }
        if rare_expected > 1.0 {
            statistic += (f64::from(rare) - rare_expected).powi(2) / rare_expected;
            cells += 1;
        }
        (statistic, f64::from(cells - 1))
    }

    #[test]
    fn ranks_follow_the_exact_probabilities() {
        for theta in THETAS {
            for size in [1, 2, 3, 10, 100] {
                let (statistic, freedom) = chi_square(size, theta, 100_000);
                let limit = freedom + 5.0 * (2.0 * freedom).sqrt() + 1e-9;
                assert!(statistic < limit, "theta {theta} size {size}: chi-square {statistic} of {freedom}");
            }
        }
    }

    #[test]
    fn a_far_tail_has_the_weight_of_its_integral() {
        let (size, draws) = (1_u64 << 40, 100_000);
        for theta in [0.5, 0.99, 1.0, 1.1] {
            let zipf = Zipf::new(size, theta);
            let mut rng = Rng::new(3, 3);
            let far = (0..draws).filter(|_| zipf.draw(&mut rng) > 1 << 20).count() as f64 / f64::from(draws);
            // Euler and Maclaurin: the sum up to n is the integral from 1 plus half of both ends plus a twelfth of the
            // slope between them, which is good to 1 % here.
            let sum = |n: f64| integral(n, theta) + 0.5 * (1.0 + n.powf(-theta)) + theta / 12.0;
            let expected = 1.0 - sum((1_u64 << 20) as f64) / sum(size as f64);
            let error = (expected * (1.0 - expected) / f64::from(draws)).sqrt();
            assert!((far - expected).abs() < 5.0 * error + 0.002, "theta {theta}: {far} for {expected}");
        }
    }

    #[test]
    fn few_draws_are_rejected() {
        // Each try costs one random number, so the state after many draws says how many tries they took.
        for theta in THETAS {
            let zipf = Zipf::new(1 << 30, theta);
            let mut rng = Rng::new(1, 1);
            let mut counter = rng.clone();
            (0..10_000).for_each(|_| assert!(zipf.draw(&mut rng) >= 1));
            let after = rng.next_u64();
            let tries = (0..).find(|_| counter.next_u64() == after).unwrap();
            assert!(tries < 12_500, "theta {theta}: {tries} tries for 10000 ranks");
        }
    }

    proptest! {
        #[test]
        fn a_rank_lies_within_the_size(size in 1..=1_u64 << 40, theta in 0.0..150.0_f64, seed: u64) {
            let zipf = Zipf::new(size, theta);
            let mut rng = Rng::new(seed, 0);
            for _ in 0..20 {
                prop_assert!((1..=size).contains(&zipf.draw(&mut rng)));
            }
        }

        #[test]
        fn the_inverse_undoes_the_integral(x in 0.6..1e6_f64, theta in 0.01..1.6_f64) {
            let back = inverse(integral(x, theta), theta);
            prop_assert!((back / x - 1.0).abs() < 1e-6, "{} for {}", back, x);
        }
    }

    #[test]
    fn a_theta_that_is_none_makes_all_ranks_alike() {
        for theta in [f64::NAN, -1.0, 0.0] {
            let zipf = Zipf::new(10, theta);
            let mut rng = Rng::new(5, 5);
            let firsts = (0..10_000).filter(|_| zipf.draw(&mut rng) == 1).count();
            assert!((850..1150).contains(&firsts), "theta {theta}: rank 1 came {firsts} times");
        }
        assert_eq!(Zipf::new(0, f64::INFINITY).draw(&mut Rng::new(1, 1)), 1);
    }
}
