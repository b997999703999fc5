//! Resampling of series whose values are not independent of each other.
//!
//! Seconds that follow each other are alike, so that they must not be taken for independent values. The interval comes
//! from the stationary bootstrap (Politis and Romano, 1994), which resamples blocks of random length; the mean length
//! follows from the autocorrelation (Politis and White, 2004, as corrected by Patton, Politis and White, 2009).

use super::chance::Chance;
use crate::record::Histogram;

/// Fewer values than this do not show how much they scatter.
const LEAST_VALUES: usize = 8;
/// Blocks are this many times as long as those with the least mean error, which show too little scatter.
const LONGER_BLOCKS: f64 = 2.0;
/// The part of the scatter that blocks are at most trusted to have lost.
const MOST_LOST: f64 = 0.5;
/// The autocorrelation is known only from the series itself, and comes out too small. Without this factor, 8 of 100 pairs of
/// equal series of 120 values (first-order autoregressive, memory of 0.5) were called different instead of 5.
const CAUTION: f64 = 1.1;
/// Half the width of the interval that holds 95 %, in standard deviations of the normal distribution.
const NORMAL_QUANTILE: f64 = 1.959_964;

/// Values that stand together in a series. Past its end the series begins again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) start: usize,
    pub(super) length: usize,
}

impl Block {
    /// The sum over the block, from running sums that begin with zero.
    pub(super) fn sum(&self, running: &[f64]) -> f64 {
        let count = running.len() - 1;
        let upto = |end: usize| (end / count) as f64 * running[count] + running[end % count];
        upto(self.start + self.length) - upto(self.start)
    }

    pub(super) fn indices(&self, count: usize) -> impl Iterator<Item = usize> {
        let start = self.start;
        (0..self.length).map(move |step| (start + step) % count)
    }
}

pub(super) fn running_sums(values: &[f64]) -> Vec<f64> {
    let mut sums = Vec::with_capacity(values.len() + 1);
    sums.push(0.0);
    let mut total = 0.0;
    for value in values {
        total += value;
        sums.push(total);
    }
    sums
}

/// How one side is resampled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side {
    pub(super) count: usize,
    blocks: Blocks,
}

/// How a series has to be cut.
#[derive(Debug, Clone, Copy)]
struct Blocks {
    /// Mean length.
    length: f64,
    /// Share of the variance that is lost because blocks are independent of each other.
    lost: f64,
}

impl Side {
    pub(super) fn of_means(values: &[f64]) -> Option<Self> {
        let usable = values.len() >= LEAST_VALUES && values.iter().all(|value| value.is_finite());
        usable.then(|| Self { count: values.len(), blocks: Blocks::of(values) })
    }

    pub(super) fn of_quantiles(intervals: &[&Histogram], quantile: f64) -> Option<Self> {
        let values: Option<Vec<f64>> =
            intervals.iter().map(|histogram| histogram.quantile_ns(quantile).map(|ns| ns as f64)).collect();
        Self::of_means(&values?)
    }

    /// Blocks of random place and geometric length that are together as long as the series.
    pub(super) fn resample(&self, chance: &mut Chance) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut left = self.count;
        while left > 0 {
            let length = if self.blocks.length <= 1.0 {
                1
            } else {
                let beyond = (1.0 - chance.share()).ln() / (1.0 - 1.0 / self.blocks.length).ln();
                (beyond as usize).saturating_add(1).min(left)
            };
            blocks.push(Block { start: chance.below(self.count), length });
            left -= length;
        }
        blocks
    }
}

/// By how much the interval has to be wider than the scatter of resamples: Student's t instead of the normal
/// distribution, with as many values as there are blocks, and the variance that blocks lose.
pub(super) fn stretch(sides: &[Side; 2]) -> f64 {
    let blocks = |side: &Side| side.count as f64 / side.blocks.length;
    let freedom = (sides.iter().map(blocks).sum::<f64>() - 2.0).max(1.0);
    let kept = |side: &Side| (1.0 - 1.0 / blocks(side)) * (1.0 - side.blocks.lost);
    let least_kept = sides.iter().map(kept).fold(1.0, f64::min);
    // Cornish-Fisher expansion of the quantile of Student's t.
    let z = NORMAL_QUANTILE;
    let t = z
        + (z.powi(3) + z) / (4.0 * freedom)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom.powi(2));
    CAUTION * t / z / least_kept.sqrt()
}

impl Blocks {
    const OF_ONE: Self = Self { length: 1.0, lost: 0.0 };

    /// From the autocorrelation of the values, for the mean. A block is at most a third of the series.
    fn of(values: &[f64]) -> Self {
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let covariance = |lag: usize| {
            let pairs = values.iter().zip(&values[lag..]);
            pairs.map(|(early, late)| (early - mean) * (late - mean)).sum::<f64>() / count as f64
        };
        let variance = covariance(0);
        if variance <= 0.0 {
            return Self::OF_ONE;
        }
        let digits = (count as f64).log10();
        let (significant, quiet) = (2.0 * (digits / count as f64).sqrt(), (digits.sqrt().ceil() as usize).max(5));
        let most_lags = ((count as f64).sqrt().ceil() as usize + quiet).min(count / 2);
        let correlations: Vec<f64> = (0..=most_lags).map(|lag| covariance(lag) / variance).collect();
        // The last lag before a stretch of lags without correlation.
        let is_quiet = |from: usize| correlations.iter().skip(from + 1).take(quiet).all(|r| r.abs() < significant);
        let last = (0..=most_lags).find(|lag| is_quiet(*lag)).unwrap_or(most_lags);
        let width = (2 * last.max(1)).min(most_lags);
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
        Self { length, lost: (weighted / total / length).clamp(0.0, MOST_LOST) }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Rates around `mean` that scatter by `scatter` of it and follow each other with a correlation of `memory`.
    pub(in crate::analysis) fn series(
        chance: &mut Chance,
        count: usize,
        mean: f64,
        scatter: f64,
        memory: f64,
    ) -> Vec<f64> {
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
