//! Whether two measurements differ: is the difference real, and does it matter?

use std::collections::BTreeMap;

use super::chance::Chance;
use super::resample::{Block, Side, running_sums, stretch};
use crate::record::Histogram;
use crate::units::percent;

const RESAMPLES: usize = 600;
/// Ends of the interval, which holds 95 %.
const INTERVAL: [f64; 2] = [0.025, 0.975];

/// B against A: the relative change of one figure, with an interval that holds the true change with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// The figure of A.
    pub a: f64,
    /// The figure of B.
    pub b: f64,
    /// `b / a - 1`.
    pub change: f64,
    /// Lower end of the interval of the change.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Change from which it matters, as a share.
    pub threshold: f64,
}

/// The answer to both questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// The interval excludes no change at all, and the change is beyond the threshold.
    RealAndMatters,
    /// The interval excludes no change at all, but the change is within the threshold.
    RealButSmall,
    /// The interval includes no change at all and nothing beyond the threshold.
    NoneThatMatters,
    /// The interval includes both no change at all and changes beyond the threshold.
    NotShown,
}

impl Comparison {
    /// Compares means of values in the order in which they were measured, such as operations per second of each second.
    /// `threshold` is the change that matters, as a share. Absent with fewer than eight values on a side, or where a
    /// mean is not above zero. The same seed gives the same interval.
    pub fn of(a: &[f64], b: &[f64], seed: u64, threshold: f64) -> Option<Self> {
        let sides = [Side::of_means(a)?, Side::of_means(b)?];
        let sums = [a, b].map(running_sums);
        let mean = |side: usize, blocks: &[Block]| {
            let total: f64 = blocks.iter().map(|block| block.sum(&sums[side])).sum();
            let count: usize = blocks.iter().map(|block| block.length).sum();
            total / count as f64
        };
        Self::by(sides, seed, threshold, mean)
    }

    /// Compares a quantile (0 to 1) of the durations of intervals in the order in which they were measured, such as the
    /// response times of each second. Absent with fewer than eight intervals that hold durations on a side.
    pub fn of_quantile(a: &[&Histogram], b: &[&Histogram], quantile: f64, seed: u64, threshold: f64) -> Option<Self> {
        let [a, b] = [a, b].map(|side| -> Vec<&Histogram> { side.iter().copied().filter(|h| h.count() > 0).collect() });
        let rows = [&a, &b].map(|side| Rows::of(side));
        let sides = [Side::of_quantiles(&a, quantile)?, Side::of_quantiles(&b, quantile)?];
        Self::by(sides, seed, threshold, |side, blocks| rows[side].quantile(blocks, quantile))
    }

    /// `figure` computes the compared figure of a side (0 or 1) from blocks of it.
    fn by(sides: [Side; 2], seed: u64, threshold: f64, figure: impl Fn(usize, &[Block]) -> f64) -> Option<Self> {
        let whole = |side: usize| figure(side, &[Block { start: 0, length: sides[side].count }]);
        let (a, b) = (whole(0), whole(1));
        let change = b / a - 1.0;
        if !(a > 0.0 && b > 0.0 && change.is_finite()) {
            return None;
        }
        let mut chance = Chance::new(seed);
        let mut changes: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let [a, b] = [0, 1].map(|side: usize| figure(side, &sides[side].resample(&mut chance)));
                (b / a).ln()
            })
            .filter(|change| change.is_finite())
            .collect();
        if changes.len() < RESAMPLES / 2 {
            return None;
        }
        changes.sort_by(f64::total_cmp);
        // Resampling from few blocks shows too little scatter; the stretch makes up for it.
        let (middle, stretch) = ((b / a).ln(), stretch(&sides));
        let [low, high] = INTERVAL.map(|share| {
            let end = changes[((changes.len() - 1) as f64 * share).round() as usize];
            (middle + (end - middle) * stretch).exp() - 1.0
        });
        Some(Self { a, b, change, low: low.min(change), high: high.max(change), threshold: threshold.abs() })
    }

    /// Whether the interval excludes no change at all.
    pub fn is_real(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// The answer to both questions.
    pub fn difference(&self) -> Difference {
        match (self.is_real(), self.change.abs() > self.threshold) {
            (true, true) => Difference::RealAndMatters,
            (true, false) => Difference::RealButSmall,
            (false, _) if self.low.abs().max(self.high.abs()) <= self.threshold => Difference::NoneThatMatters,
            (false, _) => Difference::NotShown,
        }
    }

    /// The answer in a sentence; `what` is the figure, such as `p99 of response time`.
    pub fn sentence(&self, what: &str) -> String {
        let signed = |share: f64| format!("{}{} %", if share >= 0.0 { "+" } else { "" }, percent(share));
        let interval = format!("95 % interval {} to {}", signed(self.low), signed(self.high));
        let (change, threshold) = (signed(self.change), percent(self.threshold));
        match self.difference() {
            Difference::RealAndMatters => {
                format!(
                    "{what} of B is {change} against A ({interval}): a real difference, and more than {threshold} %."
                )
            }
            Difference::RealButSmall => {
                format!("{what} of B is {change} against A ({interval}): a real difference, but within {threshold} %.")
            }
            Difference::NoneThatMatters => {
                format!("{what} of A and B do not differ by more than {threshold} % ({interval}).")
            }
            Difference::NotShown => format!(
                "No difference in {what} is shown, but these data could hide one of more than {threshold} % ({interval})."
            ),
        }
    }

    /// What the user can do about it.
    pub fn advice(&self) -> Option<String> {
        (self.difference() == Difference::NotShown).then(|| "Measure both for longer, in turns: A, B, A.".to_owned())
    }
}

/// Histograms of a side as rows over the durations that occur in any of them.
struct Rows {
    durations: Vec<u64>,
    /// For each interval: place in `durations`, and count.
    counts: Vec<Vec<(usize, u64)>>,
}

impl Rows {
    fn of(intervals: &[&Histogram]) -> Self {
        let all = intervals.iter().flat_map(|histogram| histogram.buckets_ns());
        let mut places: BTreeMap<u64, usize> = all.map(|(_, highest, _)| (highest, 0)).collect();
        places.values_mut().zip(0..).for_each(|(place, index)| *place = index);
        let row = |histogram: &&Histogram| -> Vec<(usize, u64)> {
            histogram.buckets_ns().filter_map(|(_, highest, count)| Some((*places.get(&highest)?, count))).collect()
        };
        let counts = intervals.iter().map(row).collect();
        Self { durations: places.into_keys().collect(), counts }
    }

    /// The quantile of the intervals in `blocks`, merged.
    fn quantile(&self, blocks: &[Block], quantile: f64) -> f64 {
        let mut times = vec![0_u64; self.counts.len()];
        for block in blocks {
            block.indices(self.counts.len()).for_each(|interval| times[interval] += 1);
        }
        let mut merged = vec![0_u64; self.durations.len()];
        for (row, times) in self.counts.iter().zip(times).filter(|(_, times)| *times > 0) {
            row.iter().for_each(|(place, count)| merged[*place] += count * times);
        }
        let rank = (quantile * merged.iter().sum::<u64>() as f64).ceil().max(1.0);
        let mut below = 0;
        for (duration, count) in self.durations.iter().zip(merged) {
            below += count;
            if below as f64 >= rank {
                return *duration as f64;
            }
        }
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use super::super::resample::tests::series;
    use super::*;

    fn called_real(count: usize, memory: f64) -> usize {
        let mut chance = Chance::new(7);
        let pairs = (0..400).filter(|seed| {
            let [a, b] = [0, 1].map(|_| series(&mut chance, count, 1_000.0, 0.05, memory));
            Comparison::of(&a, &b, *seed, 0.05).unwrap().is_real()
        });
        pairs.count()
    }

    #[test]
    fn equal_storage_is_called_different_no_more_often_than_stated() {
        // 20 of 400 are stated; three standard deviations of chance are 13 more.
        for (count, memory) in [(60, 0.0), (120, 0.5), (300, 0.8)] {
            let real = called_real(count, memory);
            assert!(real <= 33, "{real} of 400 with {count} values of memory {memory}");
        }
    }

    #[test]
    fn a_planted_difference_is_found_and_its_interval_holds_it() {
        let mut chance = Chance::new(3);
        let (mut found, mut held) = (0, 0);
        for seed in 0..200 {
            let a = series(&mut chance, 60, 1_000.0, 0.05, 0.5);
            let b = series(&mut chance, 60, 1_100.0, 0.05, 0.5);
            let comparison = Comparison::of(&a, &b, seed, 0.05).unwrap();
            found += usize::from(comparison.difference() == Difference::RealAndMatters);
            held += usize::from(comparison.low <= 0.1 && 0.1 <= comparison.high);
        }
        assert!(found >= 195 && held >= 180, "{found} found, {held} held of 200");
    }

    #[test]
    fn each_answer_has_its_sentence() {
        let with = |low: f64, change: f64, high: f64| Comparison {
            a: 100.0,
            b: 100.0 * (1.0 + change),
            change,
            low,
            high,
            threshold: 0.05,
        };
        for (comparison, answer, words) in [
            (
                with(0.08, 0.1, 0.12),
                Difference::RealAndMatters,
                "B is +10.0 % against A (95 % interval +8.0 % to +12.0 %)",
            ),
            (with(-0.03, -0.02, -0.01), Difference::RealButSmall, "a real difference, but within 5.0 %"),
            (with(-0.01, 0.0, 0.02), Difference::NoneThatMatters, "do not differ by more than 5.0 %"),
            (with(-0.01, 0.07, 0.12), Difference::NotShown, "could hide one"),
        ] {
            assert_eq!(comparison.difference(), answer);
            assert!(comparison.sentence("throughput").contains(words), "{}", comparison.sentence("throughput"));
            assert_eq!(comparison.advice().is_some(), answer == Difference::NotShown);
        }
    }

    #[test]
    fn too_little_to_compare_is_not_compared() {
        assert_eq!(Comparison::of(&[1.0; 7], &[1.0; 60], 1, 0.05), None);
        assert_eq!(Comparison::of(&[0.0; 60], &[1.0; 60], 1, 0.05), None);
        assert_eq!(Comparison::of(&[f64::NAN; 60], &[1.0; 60], 1, 0.05), None);
        let same = Comparison::of(&[5.0; 60], &[5.0; 60], 1, 0.05).unwrap();
        assert_eq!((same.change, same.low, same.high, same.difference()), (0.0, 0.0, 0.0, Difference::NoneThatMatters));
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let mut chance = Chance::new(5);
        let [a, b] = [0, 1].map(|_| series(&mut chance, 60, 1_000.0, 0.05, 0.5));
        assert_eq!(Comparison::of(&a, &b, 9, 0.05), Comparison::of(&a, &b, 9, 0.05));
        assert_ne!(Comparison::of(&a, &b, 9, 0.05), Comparison::of(&a, &b, 10, 0.05));
    }

    /// Seconds of lognormal durations around `median_us`, whose median wanders by 3 % from second to second.
    fn seconds(chance: &mut Chance, count: usize, median_us: f64) -> Vec<Histogram> {
        let wander = series(chance, count, 1.0, 0.03, 0.5);
        let second = |factor: &f64| {
            let mut histogram = Histogram::default();
            (0..200).for_each(|_| histogram.record((median_us * 1e3 * factor * (0.3 * chance.normal()).exp()) as u64));
            histogram
        };
        wander.iter().map(second).collect()
    }

    #[test]
    fn quantiles_of_equal_storage_seldom_differ_and_planted_ones_do() {
        let mut chance = Chance::new(11);
        let (mut false_alarms, mut found) = (0, 0);
        for seed in 0..20 {
            let [a, b, slow] = [100.0, 100.0, 110.0].map(|us| seconds(&mut chance, 60, us));
            let [a, b, slow]: [Vec<&Histogram>; 3] = [&a, &b, &slow].map(|side| side.iter().collect());
            false_alarms += usize::from(Comparison::of_quantile(&a, &b, 0.9, seed, 0.05).unwrap().is_real());
            let planted = Comparison::of_quantile(&a, &slow, 0.9, seed, 0.05).unwrap();
            found += usize::from(planted.is_real() && (0.03..0.17).contains(&planted.change));
        }
        assert!(false_alarms <= 4 && found >= 19, "{false_alarms} false alarms, {found} found of 20");
    }

    #[test]
    fn merging_rows_gives_the_quantile_of_merged_histograms() {
        let mut chance = Chance::new(2);
        let all = seconds(&mut chance, 20, 250.0);
        let mut merged = Histogram::default();
        all.iter().for_each(|second| merged.merge(second));
        let rows = Rows::of(&all.iter().collect::<Vec<_>>());
        for quantile in [0.01, 0.5, 0.99] {
            let told = rows.quantile(&[Block { start: 0, length: 20 }], quantile);
            assert_eq!(told as u64, merged.quantile_ns(quantile).unwrap(), "{quantile}");
        }
    }
}
