//! Whether a series of rates lies on two levels with one abrupt change between them.

/// Fewest values on a level, before and after the change.
const MIN_BEFORE: usize = 5;
const MIN_AFTER: usize = 10;
/// Longer series are judged by this many means, which noise sways less.
const MAX_BINS: usize = 240;
/// The levels differ by at least this many standard deviations of a value on its own level. Slow noise of any size splits
/// into halves that differ by less: for a whole sine wave, which splits best of all, it is 4.1, and its halves are not
/// flat. A level of few values is a chance of slow noise to look flat, so at this length the levels must differ twice as
/// much.
const SEPARATION: f64 = 4.0;
const SHORT_LEVEL: f64 = 10.0;
/// Share of the higher level by which the levels differ; less does not matter.
const MIN_CHANGE: f64 = 0.05;
/// Share of the higher level that the lower one reaches; less is a stall.
const ALIVE: f64 = 0.01;
/// Parts that a level is cut into, values in each at least, and the share of the change over which their medians may
/// range on a flat level.
const PARTS: usize = 4;
const MIN_PART: usize = 5;
const FLAT: f64 = 0.3;
/// Half the width of the running median that takes out stalls and spikes of one or two values.
const HALF_WIDTH: usize = 2;

/// Two flat levels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoLevels {
    /// Index of the first value on the second level.
    pub at: usize,
    /// Level of the values before it.
    pub before: f64,
    /// Level of the values from it on.
    pub after: f64,
}

/// The change between two flat levels, if `values` are that; a drift, a stall, a wave or noise is not.
///
/// The change is where a split into two means leaves the least squares. It counts if the levels differ by much more
/// than values stray from their own level, and if each level is flat over its length.
pub fn two_levels(values: &[f64]) -> Option<TwoLevels> {
    let width = values.len().div_ceil(MAX_BINS).max(1);
    let bins: Vec<f64> = values.chunks_exact(width).map(mean).collect();
    if bins.len() < MIN_BEFORE + MIN_AFTER {
        return None;
    }
    let split = best_split(&running_median(&bins), MIN_BEFORE, bins.len() - MIN_AFTER)?;
    // The value in which the change falls belongs to neither level.
    let (first, second) = (&bins[..split - 1], &bins[split + 1..]);
    let change = (median(first) - median(second)).abs();
    let noise = spread(first).max(spread(second));
    let wanted = SEPARATION * (1.0 + SHORT_LEVEL / first.len().min(second.len()) as f64);
    if change < wanted * noise || !is_flat(first, change) || !is_flat(second, change) {
        return None;
    }
    let (low, high) = ((split - 2) * width, ((split + 2) * width).min(values.len() - 1));
    let at = if width == 1 { split } else { best_split(&running_median(values), low, high)? };
    let (before, after) = (robust_mean(&values[..at - 1]), robust_mean(&values[at + 1..]));
    let high = before.max(after);
    (high > 0.0 && (before - after).abs() >= MIN_CHANGE * high && before.min(after) >= ALIVE * high)
        .then_some(TwoLevels { at: first_across(values, at, before, after), before, after })
}

/// The first value near `at` that lies nearer to the second level.
fn first_across(values: &[f64], at: usize, before: f64, after: f64) -> usize {
    let crossed = |value: f64| (value - after).abs() < (value - before).abs();
    let (from, to) = (at.saturating_sub(HALF_WIDTH), (at + HALF_WIDTH).min(values.len() - 1));
    (from..=to).find(|index| values[*index..=to].iter().all(|value| crossed(*value))).unwrap_or(at)
}

/// Where to cut, from `low` to `high`, so that the two means leave the least sum of squares.
fn best_split(values: &[f64], low: usize, high: usize) -> Option<usize> {
    let all: f64 = values.iter().sum();
    let count = values.len() as f64;
    let mut sum: f64 = values[..low].iter().sum();
    let mut best: Option<(f64, usize)> = None;
    for (at, value) in values.iter().enumerate().take(high + 1).skip(low) {
        let (left, right) = (at as f64, count - at as f64);
        let between = left * right / count * (sum / left - (all - sum) / right).powi(2);
        if best.is_none_or(|(most, _)| between > most) {
            best = Some((between, at));
        }
        sum += value;
    }
    best.map(|(_, at)| at)
}

fn running_median(values: &[f64]) -> Vec<f64> {
    let last = values.len().saturating_sub(1);
    (0..values.len())
        .map(|at| {
            let reach = HALF_WIDTH.min(at).min(last - at);
            median(&values[at - reach..=at + reach])
        })
        .collect()
}

fn is_flat(level: &[f64], change: f64) -> bool {
    let parts = (level.len() / MIN_PART).clamp(1, PARTS);
    let medians = (0..parts).map(|part| median(&level[part * level.len() / parts..(part + 1) * level.len() / parts]));
    let (low, high) = medians.fold((f64::MAX, f64::MIN), |(low, high), y| (low.min(y), high.max(y)));
    high - low <= FLAT * change
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

/// The median, of an even number the mean of the two in the middle; absent where there are none.
pub(super) fn median_of(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let upper = sorted.get(sorted.len() / 2)?;
    let lower = sorted.get((sorted.len() - 1) / 2)?;
    Some((lower + upper) / 2.0)
}

/// The median of values of which there is at least one; otherwise 0.
pub(super) fn median(values: &[f64]) -> f64 {
    median_of(values).unwrap_or_default()
}

/// Mean of the values that lie within three standard deviations of the median: stalls and spikes do not move it, and it
/// strays less than the median.
pub(super) fn robust_mean(values: &[f64]) -> f64 {
    let (middle, reach) = (median(values), 3.0 * spread(values));
    let near: Vec<f64> = values.iter().copied().filter(|value| (value - middle).abs() <= reach).collect();
    mean(&near)
}

/// Standard deviation as the median distance from the median reports it, which stalls do not inflate.
pub(super) fn spread(values: &[f64]) -> f64 {
    let middle = median(values);
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    1.4826 * median(&distances)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_fall_is_found_where_it_is() {
        let values: Vec<f64> = (0..60).map(|second| if second < 23 { 3_000.0 } else { 300.0 }).collect();
        assert_eq!(two_levels(&values), Some(TwoLevels { at: 23, before: 3_000.0, after: 300.0 }));
    }

    #[test]
    fn the_second_in_which_it_fell_counts_for_neither_level() {
        let mut values = vec![3_000.0; 60];
        values[30] = 2_000.0;
        values[31..].fill(500.0);
        let levels = two_levels(&values).unwrap();
        assert_eq!((levels.before, levels.after), (3_000.0, 500.0));
        assert!((30..=31).contains(&levels.at), "{levels:?}");
    }

    #[test]
    fn a_drift_a_wave_a_stall_and_a_return_are_not_two_levels() {
        let drift: Vec<f64> = (0..120).map(|second| 3_000.0 - 20.0 * f64::from(second)).collect();
        let wave = |turns: f64| -> Vec<f64> {
            (0..120).map(|second| 3_000.0 + 600.0 * (f64::from(second) * turns * 0.0524).sin()).collect()
        };
        let mut stall = vec![3_000.0; 60];
        stall[50..].fill(0.0);
        let mut comes_back = vec![3_000.0; 120];
        comes_back[40..60].fill(1_000.0);
        for values in [drift, wave(1.0), wave(2.0), wave(0.5), stall, comes_back, vec![3_000.0; 60], vec![0.0; 60]] {
            assert_eq!(two_levels(&values), None, "{values:?}");
        }
    }

    #[test]
    fn short_series_are_not_judged() {
        for length in 0..15 {
            assert_eq!(two_levels(&vec![1.0; length]), None);
        }
    }
}
