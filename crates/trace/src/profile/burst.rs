//! How unevenly requests arrive.
//!
//! The index of dispersion for counts is the variance over the mean of the numbers of requests in windows of one length. It is from
//! Gusella, "Characterizing the Variability of Arrival Processes with Indexes of Dispersion", IEEE JSAC 1991. Independent
//! arrivals at a constant rate (Poisson) have 1 at every length. Regular ones have less; bursts have more, at the lengths that
//! they last.

use serde::Serialize;

/// Lengths of windows; each is a multiple of the one before.
const WINDOWS_NS: [u64; 6] = [10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000, 60_000_000_000, 600_000_000_000];

/// Windows that a variance needs at least.
const FEWEST_WINDOWS: u64 = 10;

/// How unevenly requests are spread over windows of one length.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Burst {
    /// The length of each window.
    pub window_ns: u64,
    /// Windows that are completely in the trace.
    pub windows: u64,
    /// Variance over mean of the requests in a window; absent with fewer than 10 windows, or without requests.
    pub dispersion: Option<f64>,
    /// The rate of requests in the window with most of them; absent without a window.
    pub peak_per_s: Option<f64>,
}

#[derive(Debug, Default)]
struct Window {
    length_ns: u64,
    end_ns: u64,
    /// Requests so far in the window that ends then.
    count: u64,
    sum: u64,
    squares: u128,
    peak: u64,
}

/// Counts requests in windows of all lengths.
#[derive(Debug)]
pub(super) struct Windows([Window; WINDOWS_NS.len()]);

impl Windows {
    pub(super) fn new() -> Self {
        Self(WINDOWS_NS.map(|length_ns| Window { length_ns, end_ns: length_ns, ..Window::default() }))
    }

    /// `now_ns` does not fall from call to call.
    #[inline]
    pub(super) fn add(&mut self, now_ns: u64) {
        if now_ns >= self.0[0].end_ns {
            self.roll(now_ns);
        }
        self.0[0].count += 1;
    }

    /// Closes the windows that ended. A long window ends only together with a short one, and has what the short ones had.
    fn roll(&mut self, now_ns: u64) {
        let mut carried = 0;
        for window in &mut self.0 {
            window.count += carried;
            if now_ns < window.end_ns {
                return;
            }
            carried = std::mem::take(&mut window.count);
            window.sum += carried;
            window.squares += u128::from(carried) * u128::from(carried);
            window.peak = window.peak.max(carried);
            window.end_ns = (now_ns - now_ns % window.length_ns).saturating_add(window.length_ns);
        }
    }

    pub(super) fn finish(mut self, duration_ns: u64) -> Vec<Burst> {
        self.roll(duration_ns);
        let burst = |window: Window| {
            // Those without a request were not counted one by one, and add nothing to the sums.
            let windows = duration_ns / window.length_ns;
            let mean = window.sum as f64 / windows as f64;
            let variance =
                (window.squares as f64 - mean * window.sum as f64).max(0.0) / windows.saturating_sub(1) as f64;
            let is_known = windows >= FEWEST_WINDOWS && window.sum > 0;
            let per_s = window.peak as f64 * 1e9 / window.length_ns as f64;
            Burst {
                window_ns: window.length_ns,
                windows,
                dispersion: is_known.then(|| variance / mean),
                peak_per_s: (windows > 0).then_some(per_s),
            }
        };
        self.0.into_iter().map(burst).collect()
    }
}

#[cfg(test)]
mod tests {
    use model::workload::Rng;

    use super::*;

    fn dispersions(times: impl IntoIterator<Item = u64>, duration_ns: u64) -> Vec<Option<f64>> {
        let mut windows = Windows::new();
        times.into_iter().for_each(|at| windows.add(at));
        windows.finish(duration_ns).into_iter().map(|burst| burst.dispersion).collect()
    }

    fn exponential(rng: &mut Rng, mean_ns: f64) -> u64 {
        (-(1.0 - rng.unit_f64()).ln() * mean_ns) as u64
    }

    #[test]
    fn independent_arrivals_have_one_and_regular_ones_none() {
        let (mut rng, mut now) = (Rng::new(1, 1), 0);
        let times: Vec<u64> = std::iter::from_fn(|| {
            now += exponential(&mut rng, 2e6);
            (now < 200_000_000_000).then_some(now)
        })
        .collect();
        let found = dispersions(times, 200_000_000_000);
        for (found, by) in found[..3].iter().zip([0.1, 0.2, 0.4]) {
            assert!((found.unwrap() - 1.0).abs() < by, "{found:?}");
        }
        assert_eq!(found[4], None, "three minutes are too few");
        let regular = dispersions((0..100_000).map(|number| number * 1_000_000), 100_000_000_000);
        assert!(regular[0].unwrap() < 1e-9 && regular[2].unwrap() < 1e-9, "{regular:?}");
    }

    #[test]
    fn bursts_have_far_more() {
        let (mut rng, mut now) = (Rng::new(2, 2), 0_u64);
        // Half of each two seconds at 1,000/s, then nothing.
        let times: Vec<u64> = std::iter::from_fn(|| {
            now += exponential(&mut rng, 1e6);
            if now % 2_000_000_000 >= 1_000_000_000 {
                now += 1_000_000_000;
            }
            (now < 100_000_000_000).then_some(now)
        })
        .collect();
        let mut windows = Windows::new();
        times.into_iter().for_each(|at| windows.add(at));
        let bursts = windows.finish(100_000_000_000);
        assert!(bursts[2].dispersion.unwrap() > 300.0, "{bursts:?}");
        assert!((800.0..1_200.0).contains(&bursts[2].peak_per_s.unwrap()), "{bursts:?}");
        assert_eq!(bursts[2].windows, 100);
        assert_eq!(bursts[5].peak_per_s, None);
    }
}
