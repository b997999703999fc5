//! How much the mean of a series would scatter if it were measured again.
//!
//! Seconds that follow each other are alike, so that they must not be taken for independent values. The variance is that
//! of the stationary bootstrap (Politis and Romano, 1994), which resamples blocks of random length: for a mean it has a
//! closed form (their Lemma 1), so nothing is drawn. The mean length of blocks follows from the autocorrelation (Politis
//! and White, 2004, as corrected by Patton, Politis and White, 2009).

/// Fewer values than this do not show how much they scatter.
const MIN_VALUES: usize = 8;
/// Blocks are this many times as long as those with the least mean error, which show too little scatter.
const LONGER_BLOCKS: f64 = 2.0;
/// The part of the scatter that blocks are at most trusted to have lost.
const MAX_LOST: f64 = 0.5;
/// The autocorrelation is known only from the series itself, and comes out too small. Without this factor, 8 of 100 pairs of
/// equal series of 120 values (first-order autoregressive, memory of 0.5) were called different instead of 5.
const CAUTION: f64 = 1.1;
/// Weights below this add nothing to the variance.
const NO_WEIGHT: f64 = 1e-9;

/// The scatter of one mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scatter {
    /// Variance of the mean.
    pub(super) variance: f64,
    /// How many independent values it is known from, less one; at least 1.
    pub(super) freedom: f64,
}

impl Scatter {
    /// From values in the order in which they were measured; absent with fewer than eight, or where one is no number.
    pub(super) fn of_series(values: &[f64]) -> Option<Self> {
        if values.len() < MIN_VALUES || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let blocks = Blocks::of(values);
        let count = values.len() as f64 / blocks.length;
        let kept = (1.0 - 1.0 / count) * (1.0 - blocks.lost);
        let variance = blocks.variance_of_mean(values) * CAUTION * CAUTION / kept;
        Some(Self { variance: variance.max(0.0), freedom: (count - 1.0).max(1.0) })
    }

    /// From values that are independent of each other, such as repeats; absent with fewer than two.
    pub(super) fn of_repeats(values: &[f64]) -> Option<Self> {
        if values.len() < 2 || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self { variance: squares / (count - 1.0) / count, freedom: count - 1.0 })
    }
}

/// How a series has to be cut.
#[derive(Debug, Clone, Copy)]
struct Blocks {
    /// Mean length.
    length: f64,
    /// Share of the variance that is lost because blocks are independent of each other.
    lost: f64,
}

/// Mean product of values `lag` apart, as distances from `mean`, over the number of all values.
fn covariance(values: &[f64], mean: f64, lag: usize) -> f64 {
    let pairs = values.iter().zip(&values[lag..]);
    pairs.map(|(early, late)| (early - mean) * (late - mean)).sum::<f64>() / values.len() as f64
}

impl Blocks {
    const OF_ONE: Self = Self { length: 1.0, lost: 0.0 };

    /// Of the mean of a series that is resampled in such blocks.
    fn variance_of_mean(self, values: &[f64]) -> f64 {
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let goes_on = 1.0 - 1.0 / self.length;
        // The series is a ring, so values far apart are near each other the other way round.
        let weight = |lag: usize| {
            let share = lag as f64 / count as f64;
            (1.0 - share) * goes_on.powf(lag as f64) + share * goes_on.powf((count - lag) as f64)
        };
        let lags = (1..count).map(|lag| (lag, weight(lag))).filter(|(_, weight)| *weight > NO_WEIGHT);
        let joint: f64 = lags.map(|(lag, weight)| weight * covariance(values, mean, lag)).sum();
        (covariance(values, mean, 0) + 2.0 * joint) / count as f64
    }

    /// From the autocorrelation of the values, for the mean. A block is at most a third of the series.
    fn of(values: &[f64]) -> Self {
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let variance = covariance(values, mean, 0);
        if variance <= 0.0 {
            return Self::OF_ONE;
        }
        let digits = (count as f64).log10();
        let (significant, quiet) = (2.0 * (digits / count as f64).sqrt(), (digits.sqrt().ceil() as usize).max(5));
        let max_lags = ((count as f64).sqrt().ceil() as usize + quiet).min(count / 2);
        let correlations: Vec<f64> = (0..=max_lags).map(|lag| covariance(values, mean, lag) / variance).collect();
        // The last lag before a stretch of lags without correlation.
        let is_quiet = |from: usize| correlations.iter().skip(from + 1).take(quiet).all(|r| r.abs() < significant);
        let last = (0..=max_lags).find(|lag| is_quiet(*lag)).unwrap_or(max_lags);
        let width = (2 * last.max(1)).min(max_lags);
        let (mut weighted, mut total) = (0.0, 1.0);
        for (lag, correlation) in correlations.iter().enumerate().take(width + 1).skip(1) {
            let share = lag as f64 / width as f64;
            let taper = if share <= 0.5 { 1.0 } else { 2.0 * (1.0 - share) };
            weighted += 2.0 * taper * lag as f64 * correlation;
            total += 2.0 * taper * correlation;
        }
        if total <= 0.0 {
            return Self::OF_ONE;
        }
        let least_error = ((weighted / total).powi(2) * count as f64).cbrt();
        let length = (LONGER_BLOCKS * least_error).clamp(1.0, (3.0 * (count as f64).sqrt()).min(count as f64 / 3.0));
        Self { length, lost: (weighted / total / length).clamp(0.0, MAX_LOST) }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::chance::Chance;

    /// Rates around `mean` that scatter by `scatter` of it and follow each other with a correlation of `memory`.
    pub(crate) fn series(chance: &mut Chance, count: usize, mean: f64, scatter: f64, memory: f64) -> Vec<f64> {
        let mut state = chance.normal();
        let mut next = || {
            state = memory * state + (1.0 - memory * memory).sqrt() * chance.normal();
            mean * (1.0 + scatter * state)
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn memory_makes_blocks_longer() {
        let mut chance = Chance::new(1);
        let lengths = [0.0, 0.5, 0.9].map(|memory| {
            (0..20).map(|_| Blocks::of(&series(&mut chance, 300, 1.0, 0.1, memory)).length).sum::<f64>() / 20.0
        });
        assert!(lengths[0] < 8.0 && lengths[0] < lengths[1] && lengths[1] < lengths[2], "{lengths:?}");
    }
}
