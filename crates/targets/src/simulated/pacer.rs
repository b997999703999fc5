//! Token buckets, reported by instants.
//!
//! The generic cell rate algorithm (ITU-T I.371) is a token bucket without a count of tokens: it keeps the instant at
//! which the bucket will be full again. A unit may go when that instant is no farther away than a full bucket takes to
//! fill. So nothing adds up but the instant, and the rate in the long run is exact.

use super::options::{Burst, Cap};

/// One limit of rate.
#[derive(Debug, Clone)]
struct Limit {
    /// Time in which one unit is earned.
    ns_per_unit: f64,
    /// Time in which the empty bucket fills; 0 lets nothing be saved.
    bucket_ns: f64,
    /// When the bucket will be full, if nothing more goes.
    full_at_ns: f64,
}

impl Limit {
    fn new(units_per_s: f64, bucket_ns: f64) -> Self {
        Self { ns_per_unit: 1e9 / units_per_s, bucket_ns, full_at_ns: 0.0 }
    }
}

/// A cap: its long-run rate, and the higher rate of its burst, if it has one.
#[derive(Debug, Clone)]
pub(super) struct Pacer {
    limits: Vec<Limit>,
}

impl Pacer {
    /// A pacer of `cap`, where `units` is how many units its rates count as one.
    pub(super) fn new(cap: Cap, units: f64) -> Self {
        let Cap { per_s, burst } = cap;
        let mut limits = Vec::new();
        // At the burst's rate the bucket loses what the cap does not earn, so this much credit lasts as long as asked.
        let bucket_ns = burst.map_or(0.0, |Burst { per_s: fast, length }| (fast / per_s - 1.0) * length.0 as f64);
        limits.push(Limit::new(per_s * units, bucket_ns));
        limits.extend(burst.map(|burst| Limit::new(burst.per_s * units, 0.0)));
        Self { limits }
    }

    /// The first instant from `at_ns` on at which something may go.
    ///
    /// Parts of a nanosecond are cut off here and kept in the limits, so that they do not slow the rate.
    pub(super) fn earliest_ns(&self, at_ns: u64) -> u64 {
        let free = self.limits.iter().map(|limit| (limit.full_at_ns - limit.bucket_ns) as u64);
        free.fold(at_ns, u64::max)
    }

    /// Lets `units` go at `at_ns`, which is no earlier than [`earliest_ns`](Self::earliest_ns).
    pub(super) fn take(&mut self, at_ns: u64, units: f64) {
        for limit in &mut self.limits {
            limit.full_at_ns = limit.full_at_ns.max(at_ns as f64) + units * limit.ns_per_unit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Nanos;
    use proptest::prelude::*;

    /// When each of `count` units goes that all came at once.
    fn instants(pacer: &mut Pacer, count: u64) -> Vec<u64> {
        (0..count)
            .map(|_| {
                let at_ns = pacer.earliest_ns(0);
                pacer.take(at_ns, 1.0);
                at_ns
            })
            .collect()
    }

    #[test]
    fn the_rate_is_exact_even_where_its_gap_is_no_whole_nanosecond() {
        let mut pacer = Pacer::new(Cap { per_s: 30_000_011.0, burst: None }, 1.0);
        let gone = instants(&mut pacer, 30_000_011);
        assert!((999_999_965..=999_999_968).contains(gone.last().unwrap()), "{:?}", gone.last());
    }

    #[test]
    fn a_full_bucket_lasts_its_length_and_refills_from_what_is_not_used() {
        let burst = Some(Burst { per_s: 2_000.0, length: Nanos::seconds(3) });
        let mut pacer = Pacer::new(Cap { per_s: 500.0, burst }, 1.0);
        let gone = instants(&mut pacer, 8_000);
        let in_second = |second: u64| gone.iter().filter(|at| **at / 1_000_000_000 == second).count();
        assert_eq!([0, 1, 2, 3, 4].map(in_second), [2_000, 2_000, 2_000, 500, 500]);
        // Two seconds of rest earn 1,000, and 500 more come in each second: at 2,000/s that lasts for 2/3 s.
        let rested = gone.last().unwrap() + 2_000_000_000;
        let mut fast: u32 = 0;
        while pacer.earliest_ns(rested) < rested + 500_000_000 {
            let at_ns = pacer.earliest_ns(rested);
            pacer.take(at_ns, 1.0);
            fast += 1;
        }
        assert_eq!(fast, 1_000);
        let mut all = fast;
        while pacer.earliest_ns(rested) < rested + 2_000_000_000 {
            let at_ns = pacer.earliest_ns(rested);
            pacer.take(at_ns, 1.0);
            all += 1;
        }
        assert!((1_998..=2_002).contains(&all), "{all} in 2 s: 1,000 that were saved and 1,000 that came in");
    }

    proptest! {
        #[test]
        fn no_second_has_more_than_the_cap_however_requests_come(
            gaps in proptest::collection::vec(0u64..3_000_000, 1..2_000), per_s in 100.0f64..5_000.0,
        ) {
            let mut pacer = Pacer::new(Cap { per_s, burst: None }, 1.0);
            let (mut at, mut gone) = (0, Vec::new());
            for gap in gaps {
                at += gap;
                let earliest = pacer.earliest_ns(at);
                prop_assert!(earliest >= at);
                pacer.take(earliest, 1.0);
                gone.push(earliest);
            }
            prop_assert!(gone.is_sorted());
            for (first, from) in gone.iter().enumerate() {
                let within = gone[first..].iter().take_while(|at| **at < from + 1_000_000_000).count();
                prop_assert!(within as f64 <= per_s + 1.5, "{} in a second", within);
            }
        }
    }
}
