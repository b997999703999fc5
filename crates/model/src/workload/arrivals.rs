//! When operations are due, for an open loop.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::rng::{Choice, Rng};

const NS_PER_S: f64 = 1e9;

/// How operations follow each other at a given rate (`--arrival`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// At random, as the calls of many independent users do: exponential gaps. Queues form as they do in production.
    #[default]
    Poisson,
    /// At equal gaps.
    Fixed,
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Poisson => "poisson",
            Self::Fixed => "fixed",
        })
    }
}

/// The due instants of the operations of one lane, one of several that share a rate.
#[derive(Clone, Debug)]
pub struct Arrivals(Schedule);

#[derive(Clone, Debug)]
enum Schedule {
    Fixed { rate_per_s: f64, next: u64, lanes: u64 },
    // The part of a nanosecond is kept apart: a running sum in one f64 would lose it after some hours.
    Poisson { mean_gap_ns: f64, now_ns: u64, part_ns: f64, rng: Rng },
    Never,
}

impl Arrivals {
    /// Lane number `lane` of `lanes` that carry `rate_per_s` operations a second together. A rate that is not a positive
    /// finite number makes nothing due, ever.
    ///
    /// Fixed lanes take turns: lane `l` has arrivals number `l`, `l + lanes`, … of the common schedule, the first of
    /// which is due at the start. Poisson lanes are independent, and together again a Poisson process of the full rate.
    pub fn new(rate_per_s: f64, arrival: Arrival, lane: u32, lanes: u32, seed: u64) -> Self {
        let lanes = lanes.max(1);
        if !rate_per_s.is_finite() || rate_per_s <= 0.0 {
            return Self(Schedule::Never);
        }
        Self(match arrival {
            Arrival::Fixed => Schedule::Fixed { rate_per_s, next: u64::from(lane), lanes: u64::from(lanes) },
            Arrival::Poisson => Schedule::Poisson {
                mean_gap_ns: f64::from(lanes) * NS_PER_S / rate_per_s,
                now_ns: 0,
                part_ns: 0.0,
                rng: Choice::Arrival.rng(seed, lane),
            },
        })
    }

    /// When the next operation is due, in nanoseconds from the start of the load; never earlier than the one before.
    /// `u64::MAX` where that lies beyond what nanoseconds can count.
    #[inline]
    pub fn next_ns(&mut self) -> u64 {
        match &mut self.0 {
            // From the index and not from the arrival before, so that no error adds up. The two roundings of f64 shift an
            // instant by less than 0.1 ns in the first four days.
            Schedule::Fixed { rate_per_s, next, lanes } => {
                let index = *next;
                *next += *lanes;
                (index as f64 * NS_PER_S / *rate_per_s).round() as u64
            }
            Schedule::Poisson { mean_gap_ns, now_ns, part_ns, rng } => {
                // A draw is a multiple of 2^-53 below 1, so its distance from 1 is exact and never 0.
                let gap_ns = *part_ns - *mean_gap_ns * (1.0 - rng.unit_f64()).ln();
                let whole_ns = gap_ns.floor();
                *part_ns = gap_ns - whole_ns;
                *now_ns = now_ns.saturating_add(whole_ns as u64);
                *now_ns
            }
            Schedule::Never => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Arrival, Arrivals};

    fn gaps(rate_per_s: f64, lanes: u32, count: usize) -> Vec<f64> {
        let mut arrivals = Arrivals::new(rate_per_s, Arrival::Poisson, 0, lanes, 7);
        let mut before = 0;
        (0..count)
            .map(|_| {
                let due = arrivals.next_ns();
                let gap = due - before;
                before = due;
                gap as f64
            })
            .collect()
    }

    #[test]
    fn fixed_arrivals_stand_exactly_on_their_grid() {
        let mut thirds = Arrivals::new(3.0, Arrival::Fixed, 0, 1, 0);
        let due: Vec<u64> = (0..4).map(|_| thirds.next_ns()).collect();
        assert_eq!(due, [0, 333_333_333, 666_666_667, 1_000_000_000]);
    }

    #[test]
    fn fixed_arrivals_do_not_drift() {
        for rate in [7_u64, 999, 1_000_000, 9_999_991] {
            let mut arrivals = Arrivals::new(rate as f64, Arrival::Fixed, 0, 1, 0);
            for index in 0..2_000_000_u128 {
                let exact = (index * 2_000_000_000 + u128::from(rate)) / (2 * u128::from(rate));
                assert_eq!(u128::from(arrivals.next_ns()), exact, "arrival {index} at {rate}/s");
            }
        }
    }

    proptest! {
        #[test]
        fn fixed_lanes_together_are_the_schedule_of_one_lane(rate in 0.01..1e7_f64, lanes in 1..40_u32) {
            let mut alone = Arrivals::new(rate, Arrival::Fixed, 0, 1, 1);
            let mut shared: Vec<_> =
                (0..lanes).map(|lane| Arrivals::new(rate, Arrival::Fixed, lane, lanes, 2)).collect();
            for turn in 0..200 {
                prop_assert_eq!(alone.next_ns(), shared[turn % lanes as usize].next_ns());
            }
        }

        #[test]
        fn instants_never_go_back(rate in 1e-6..1e7_f64, seed: u64) {
            for arrival in [Arrival::Poisson, Arrival::Fixed] {
                let mut arrivals = Arrivals::new(rate, arrival, 0, 1, seed);
                let due: Vec<u64> = (0..200).map(|_| arrivals.next_ns()).collect();
                prop_assert!(due.is_sorted());
            }
        }
    }

    #[test]
    fn poisson_arrivals_keep_their_rate_however_many_and_however_fast() {
        for (rate, lanes) in [(1e7, 1), (3e6, 2), (1234.5, 4), (0.5, 1)] {
            let count = 2_000_000;
            let mut arrivals = Arrivals::new(rate, Arrival::Poisson, 0, lanes, 3);
            let last = (0..count).map(|_| arrivals.next_ns()).last().unwrap();
            let expected = count as f64 * f64::from(lanes) * 1e9 / rate;
            // The sum of n exponential gaps has a relative standard deviation of 1/√n = 0.07%.
            assert!((last as f64 / expected - 1.0).abs() < 0.003, "{last} ns instead of {expected} at {rate}/s");
        }
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let (rate, lanes, count) = (1e5, 2, 100_000);
        let mean = f64::from(lanes) * 1e9 / rate;
        let mut gaps = gaps(rate, lanes, count);
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count as f64;
        assert!((variance / mean.powi(2) - 1.0).abs() < 0.05, "variance {variance}");
        gaps.sort_by(f64::total_cmp);
        let distance = gaps
            .iter()
            .enumerate()
            .map(|(rank, gap)| ((1.0 - (-gap / mean).exp()) - rank as f64 / count as f64).abs())
            .fold(0.0, f64::max);
        // Kolmogorov and Smirnov: 1.95/√n is passed by one sample in a thousand.
        assert!(distance < 1.95 / (count as f64).sqrt(), "distance {distance}");
    }

    #[test]
    fn poisson_gaps_do_not_follow_each_other() {
        let gaps = gaps(1e5, 1, 100_000);
        let mean = 1e4;
        let covariance = gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
        let correlation = covariance / (gaps.len() as f64 * mean * mean);
        assert!(correlation.abs() < 0.015, "correlation {correlation}");
    }

    #[test]
    fn poisson_lanes_are_independent_and_repeatable() {
        let due = |lane, seed| {
            let mut arrivals = Arrivals::new(1e3, Arrival::Poisson, lane, 2, seed);
            (0..100).map(|_| arrivals.next_ns()).collect::<Vec<_>>()
        };
        assert_eq!(due(0, 1), due(0, 1));
        assert_ne!(due(0, 1), due(1, 1));
        assert_ne!(due(0, 1), due(0, 2));
    }

    #[test]
    fn a_rate_that_is_no_rate_makes_nothing_due() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            for arrival in [Arrival::Poisson, Arrival::Fixed] {
                assert_eq!(Arrivals::new(rate, arrival, 0, 1, 0).next_ns(), u64::MAX);
            }
        }
    }
}
