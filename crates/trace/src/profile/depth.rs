//! How many requests a device had in flight, from their times of issue and latencies.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::record::Histogram;
use serde::Serialize;

/// Requests in flight that are remembered; a Linux queue has a few thousand at most.
const MAX_IN_FLIGHT: usize = 1 << 16;

/// Numbers in flight below this have a counter each, as in the histogram of the others.
const EXACT: usize = 256;

/// Requests in flight, over time: each number of them weighs as much as the time that so many were.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Depth {
    /// Requests whose latency is known: only these are counted.
    pub requests: u64,
    /// The mean over the whole duration.
    pub mean: f64,
    /// Half of the time no more were in flight (exact up to 255, then within 0.8 %).
    pub p50: u64,
    /// 99 % of the time no more were.
    pub p99: u64,
    /// The most.
    pub max: u64,
    /// The share of time with at least one in flight.
    pub busy_share: f64,
    /// Whether more than 65,536 were in flight, so that the earliest of them counted as completed.
    pub is_cut: bool,
}

/// Follows what is in flight.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlight {
    completions: BinaryHeap<Reverse<u64>>,
    now_ns: u64,
    /// Nanoseconds by the number in flight: of small numbers, which most are, and of all others.
    spent: Vec<u64>,
    spent_deep: Histogram,
    requests: u64,
    is_cut: bool,
}

impl InFlight {
    /// `now_ns` does not fall from call to call.
    #[inline]
    pub(crate) fn issue(&mut self, now_ns: u64, latency_ns: u64) {
        self.advance(now_ns);
        if self.completions.len() >= MAX_IN_FLIGHT {
            self.completions.pop();
            self.is_cut = true;
        }
        self.requests += 1;
        self.completions.push(Reverse(now_ns.saturating_add(latency_ns)));
    }

    #[inline]
    fn advance(&mut self, now_ns: u64) {
        while let Some(Reverse(completion)) = self.completions.peek().copied()
            && completion <= now_ns
        {
            self.spend_until(completion);
            self.completions.pop();
        }
        self.spend_until(now_ns);
    }

    #[inline]
    fn spend_until(&mut self, until_ns: u64) {
        let spent_ns = until_ns.saturating_sub(self.now_ns);
        if spent_ns == 0 {
            return;
        }
        self.now_ns = until_ns;
        let depth = self.completions.len();
        match self.spent.get_mut(depth) {
            Some(spent) => *spent += spent_ns,
            None => self.spend_deep(depth, spent_ns),
        }
    }

    #[cold]
    fn spend_deep(&mut self, depth: usize, spent_ns: u64) {
        if depth < EXACT {
            self.spent.resize(depth + 1, 0);
            self.spent[depth] = spent_ns;
        } else {
            self.spent_deep.record_n(depth as u64, spent_ns);
        }
    }

    /// Absent where no latency was known, or no time passed.
    pub(crate) fn finish(mut self, duration_ns: u64) -> Option<Depth> {
        if self.requests == 0 {
            return None;
        }
        self.advance(duration_ns);
        let mut spent = self.spent_deep;
        self.spent.iter().zip(0..).for_each(|(spent_ns, depth)| spent.record_n(depth, *spent_ns));
        let idle_ns = self.spent.first().copied().unwrap_or(0);
        let quantiles = spent.quantiles_ns(&[0.5, 0.99]);
        Some(Depth {
            requests: self.requests,
            mean: spent.mean_ns()?,
            p50: quantiles.first().copied().flatten()?,
            p99: quantiles.get(1).copied().flatten()?,
            max: spent.max_ns()?,
            busy_share: 1.0 - idle_ns as f64 / spent.count() as f64,
            is_cut: self.is_cut,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_overlap_has_its_depth() {
        let mut flight = InFlight::default();
        // One from 0 to 100, one from 50 to 150, one from 200 to 300; 400 in all.
        [(0, 100), (50, 100), (200, 100)].iter().for_each(|&(at, latency)| flight.issue(at, latency));
        let depth = flight.finish(400).unwrap();
        assert_eq!((depth.requests, depth.max, depth.p50, depth.p99), (3, 2, 1, 2));
        assert!((depth.mean - 0.75).abs() < 1e-12 && (depth.busy_share - 0.625).abs() < 1e-12, "{depth:?}");
    }

    #[test]
    fn a_constant_depth_is_that() {
        let mut flight = InFlight::default();
        (0..10_000).for_each(|number: u64| flight.issue(number * 10, 320));
        let depth = flight.finish(100_000).unwrap();
        assert_eq!((depth.p50, depth.p99, depth.max, depth.is_cut), (32, 32, 32, false));
    }

    #[test]
    fn without_end_only_so_many_are_remembered() {
        let mut flight = InFlight::default();
        (0..2 * MAX_IN_FLIGHT as u64).for_each(|at| flight.issue(at, u64::MAX));
        assert!(flight.completions.len() <= MAX_IN_FLIGHT);
        assert!(flight.finish(1 << 40).unwrap().is_cut);
        assert_eq!(InFlight::default().finish(100), None);
    }
}
