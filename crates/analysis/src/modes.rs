//! The modes of a latency histogram: groups of durations with a clear gap between them.

use model::record::Histogram;

/// Bins of the density for each doubling of the duration.
const BINS_PER_OCTAVE: f64 = 32.0;
/// Standard deviation of the smoothing, in doublings: 7 %, less than any device scatters, so that modes stay apart and
/// the steps of clocks and buckets are smoothed away.
const SMOOTHING_OCTAVES: f64 = 0.1;
/// A valley is real if its floor is below this share of the lower of the two peaks beside it.
const VALLEY: f64 = 0.6;
/// And if so many standard deviations of chance do not fill it.
const BEYOND_CHANCE: f64 = 5.0;
/// Smaller groups are a tail, not a mode.
const MIN_SHARE: f64 = 0.03;
/// Below so many durations a histogram shows chance.
const MIN_COUNT: u64 = 1_000;

/// One group of durations.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Mode {
    /// Share of all durations, 0 to 1.
    pub share: f64,
    /// Duration that half of the group does not exceed.
    pub median_ns: u64,
    /// Duration that a tenth of it does not exceed.
    pub p10_ns: u64,
    /// Duration that nine tenths of it do not exceed.
    pub p90_ns: u64,
}

/// The modes, shortest first; one for a histogram without a gap, none for one with too few durations.
pub fn modes(times: &Histogram) -> Vec<Mode> {
    if times.count() < MIN_COUNT {
        return Vec::new();
    }
    let density = Density::of(times);
    let mut cuts = density.valleys();
    // A group that is too small joins its neighbour across the shallower valley.
    loop {
        let groups = density.groups(&cuts);
        let Some(small) = groups.iter().position(|count| *count < MIN_SHARE * times.count() as f64) else { break };
        let sides = [small.checked_sub(1), (small < cuts.len()).then_some(small)];
        let shallower =
            sides.into_iter().flatten().max_by(|a, b| density.at(cuts[*a]).total_cmp(&density.at(cuts[*b])));
        let Some(cut) = shallower else { break };
        cuts.remove(cut);
    }
    let edges: Vec<f64> = cuts.iter().map(|cut| density.duration_ns(*cut)).collect();
    grouped(times, &edges)
}

/// Cuts the histogram at the edges.
fn grouped(times: &Histogram, edges: &[f64]) -> Vec<Mode> {
    let mut groups: Vec<Vec<(u64, u64)>> = vec![Vec::new(); edges.len() + 1];
    for (lowest, highest, count) in times.buckets_ns() {
        let middle = lowest.midpoint(highest);
        groups[edges.partition_point(|edge| *edge <= middle as f64)].push((middle, count));
    }
    let mode = |group: Vec<(u64, u64)>| {
        let count: u64 = group.iter().map(|(_, count)| count).sum();
        let quantile = |share: f64| {
            let mut below = 0;
            let reached = group.iter().find(|(_, count)| {
                below += count;
                below as f64 >= share * count_of(&group)
            });
            reached.map(|(duration, _)| *duration)
        };
        Some(Mode {
            share: count as f64 / times.count() as f64,
            median_ns: quantile(0.5)?,
            p10_ns: quantile(0.1)?,
            p90_ns: quantile(0.9)?,
        })
    };
    groups.into_iter().filter_map(mode).collect()
}

fn count_of(group: &[(u64, u64)]) -> f64 {
    group.iter().map(|(_, count)| *count).sum::<u64>() as f64
}

/// Counts over the logarithm of the duration, in equal bins, and the same smoothed.
struct Density {
    first_octave: f64,
    counts: Vec<f64>,
    smooth: Vec<f64>,
}

impl Density {
    fn of(times: &Histogram) -> Self {
        let margin = (4.0 * SMOOTHING_OCTAVES).ceil();
        let octave = |ns: u64| (ns.max(1) as f64).log2();
        let first_octave = octave(times.min_ns().unwrap_or(1)).floor() - margin;
        let octaves = octave(times.max_ns().unwrap_or(1)).ceil() + margin - first_octave;
        let mut counts = vec![0.0; (octaves * BINS_PER_OCTAVE) as usize + 1];
        for (lowest, highest, count) in times.buckets_ns() {
            // Buckets of short durations are wider than bins, so a bucket's count is spread over what it covers.
            let place = |ns: f64| (ns.max(1.0).log2() - first_octave) * BINS_PER_OCTAVE;
            let (from, to) = (place(lowest as f64), place(highest as f64 + 1.0));
            let first = from.max(0.0) as usize;
            for (bin, bin_count) in counts.iter_mut().enumerate().take(to as usize + 1).skip(first) {
                let part = (to.min(bin as f64 + 1.0) - from.max(bin as f64)).max(0.0) / (to - from).max(f64::EPSILON);
                *bin_count += part * count as f64;
            }
        }
        let smooth = smoothed(&counts);
        Self { first_octave, counts, smooth }
    }

    fn at(&self, bin: usize) -> f64 {
        self.smooth[bin]
    }

    fn duration_ns(&self, bin: usize) -> f64 {
        (self.first_octave + (bin as f64 + 0.5) / BINS_PER_OCTAVE).exp2()
    }

    /// Counts between the cuts.
    fn groups(&self, cuts: &[usize]) -> Vec<f64> {
        let mut groups = vec![0.0; cuts.len() + 1];
        for (bin, count) in self.counts.iter().enumerate() {
            groups[cuts.partition_point(|cut| *cut <= bin)] += count;
        }
        groups
    }

    /// Whether a valley of this depth between peaks of which this is the lower is more than chance.
    fn is_valley(floor: f64, peak: f64) -> bool {
        // A smoothed bin averages what the kernel covers: 2 sqrt(pi) standard deviations of it.
        let covered = 2.0 * std::f64::consts::PI.sqrt() * SMOOTHING_OCTAVES * BINS_PER_OCTAVE;
        floor < VALLEY * peak && (peak - floor) * covered > BEYOND_CHANCE * ((peak + floor) * covered).sqrt()
    }

    /// The lowest bins between peaks that are apart.
    fn valleys(&self) -> Vec<usize> {
        let mut cuts = Vec::new();
        let (mut peak, mut floor) = (0.0_f64, (f64::INFINITY, 0));
        for (bin, height) in self.smooth.iter().copied().enumerate() {
            if height < floor.0 {
                floor = (height, bin);
            }
            if Self::is_valley(floor.0, peak.min(height)) {
                cuts.push(floor.1);
                peak = height;
                floor = (height, bin);
            } else if height > peak {
                peak = height;
                floor = (height, bin);
            }
        }
        cuts
    }
}

fn smoothed(counts: &[f64]) -> Vec<f64> {
    let deviation = SMOOTHING_OCTAVES * BINS_PER_OCTAVE;
    let reach = (4.0 * deviation).ceil() as usize;
    let weights: Vec<f64> = (0..=reach).map(|distance| (-0.5 * (distance as f64 / deviation).powi(2)).exp()).collect();
    let total = 2.0 * weights.iter().sum::<f64>() - weights[0];
    let mut smooth = vec![0.0; counts.len()];
    for (bin, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0.0) {
        for to in bin.saturating_sub(reach)..=(bin + reach).min(counts.len() - 1) {
            smooth[to] += count * weights[bin.abs_diff(to)] / total;
        }
    }
    smooth
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::chance::Chance;
    use proptest::prelude::*;

    /// Lognormal groups: share, median in microseconds, and scatter as the standard deviation of the logarithm.
    pub(crate) fn mixture(seed: u64, count: usize, groups: &[(f64, f64, f64)]) -> Histogram {
        let mut chance = Chance::new(seed);
        let mut histogram = Histogram::default();
        for _ in 0..count {
            let mut left = chance.share();
            let group = groups.iter().find(|(share, ..)| {
                left -= share;
                left < 0.0
            });
            let (_, median_us, scatter) = group.unwrap_or(&groups[0]);
            histogram.record((median_us * 1e3 * (scatter * chance.normal()).exp()) as u64);
        }
        histogram
    }

    fn assert_found(found: &[Mode], planted: &[(f64, f64, f64)], seed: u64) {
        assert_eq!(found.len(), planted.len(), "seed {seed}: {found:?} for {planted:?}");
        for (mode, (share, median_us, _)) in found.iter().zip(planted) {
            assert!((mode.share - share).abs() < 0.03, "seed {seed}: {mode:?} for {planted:?}");
            let place = mode.median_ns as f64 / (median_us * 1e3);
            assert!((0.9..1.1).contains(&place), "seed {seed}: {mode:?} for {planted:?}");
            assert!(mode.p10_ns <= mode.median_ns && mode.median_ns <= mode.p90_ns);
        }
    }

    #[test]
    fn two_planted_tiers_are_found_in_their_place() {
        for seed in 0..200 {
            let mut chance = Chance::new(seed);
            let fast_share = 0.1 + 0.8 * chance.share();
            let (fast_us, times) = (10.0 + 190.0 * chance.share(), 4.0 + 16.0 * chance.share());
            let scatter = 0.1 + 0.2 * chance.share();
            let planted = [(fast_share, fast_us, scatter), (1.0 - fast_share, fast_us * times, scatter)];
            assert_found(&modes(&mixture(seed, 5_000, &planted)), &planted, seed);
        }
    }

    #[test]
    fn three_planted_tiers_are_found_in_their_place() {
        for seed in 0..200 {
            let planted = [(0.2, 12.0, 0.15), (0.5, 110.0, 0.25), (0.3, 5_000.0, 0.35)];
            assert_found(&modes(&mixture(seed, 5_000, &planted)), &planted, seed);
        }
    }

    #[test]
    fn one_group_of_any_scatter_is_one_mode() {
        let mut false_alarms = 0;
        for seed in 0..200 {
            let mut chance = Chance::new(seed);
            let (scatter, count) = (0.02 + 1.2 * chance.share(), [1_000, 3_000, 10_000][chance.below(3)]);
            let median_us = 10.0 * 500.0_f64.powf(chance.share());
            false_alarms += usize::from(modes(&mixture(seed, count, &[(1.0, median_us, scatter)])).len() != 1);
        }
        assert!(false_alarms <= 2, "{false_alarms} of 200");
    }

    #[test]
    fn a_tail_and_a_flat_top_are_no_modes() {
        let tail = [(0.98, 100.0, 0.2), (0.02, 3_000.0, 0.3)];
        assert_eq!(modes(&mixture(1, 20_000, &tail)).len(), 1);
        let mut flat = Histogram::default();
        (100_000..200_000).step_by(7).for_each(|ns| flat.record(ns));
        assert_eq!(modes(&flat).len(), 1);
    }

    #[test]
    fn constant_times_are_modes_as_well() {
        let mut constant = Histogram::default();
        constant.record_n(100_000, 700);
        constant.record_n(1_000_000, 300);
        let found = modes(&constant);
        assert_eq!(found.iter().map(|mode| mode.share).collect::<Vec<_>>(), [0.7, 0.3]);
        let clock_steps = (0..40).fold(Histogram::default(), |mut all, step| {
            all.record_n(2_000 + 100 * step, 100);
            all
        });
        assert_eq!(modes(&clock_steps).len(), 1);
    }

    #[test]
    fn few_durations_show_no_mode() {
        assert!(modes(&Histogram::default()).is_empty());
        assert!(modes(&mixture(1, 999, &[(1.0, 100.0, 0.2)])).is_empty());
    }

    proptest! {
        #[test]
        fn modes_share_all_durations_in_rising_order(
            spikes in prop::collection::vec((0u64..4_000_000_000_000, 1u64..5_000), 1..12),
        ) {
            let mut histogram = Histogram::default();
            spikes.iter().for_each(|(ns, count)| histogram.record_n(*ns, *count));
            let found = modes(&histogram);
            if histogram.count() >= 1_000 {
                prop_assert!((found.iter().map(|mode| mode.share).sum::<f64>() - 1.0).abs() < 1e-9, "{found:?}");
            }
            prop_assert!(found.windows(2).all(|pair| pair[0].p90_ns <= pair[1].p10_ns));
        }
    }
}
