//! Percentiles of values that hold for a time.

/// For each of `quantiles` (0 to 1, in any order) the least value such that the values up to it have at least that share of
/// all weight: what was not exceeded in that share of the covered time. `values` are (value, weight) and are sorted. Nothing
/// comes back without a weight above zero.
pub fn weighted_quantiles(values: &mut [(f64, f64)], quantiles: &[f64]) -> Vec<f64> {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: f64 = values.iter().map(|(_, weight)| weight).sum();
    if !(all > 0.0 && all.is_finite()) {
        return Vec::new();
    }
    let reached = |quantile: &f64| {
        // The sum is built in the same order each time, so that only rounding is forgiven, and much less than any window.
        let wanted = all * quantile * (1.0 - 1e-12);
        let mut sum = 0.0;
        let found = values.iter().find(|(_, weight)| {
            sum += weight;
            sum >= wanted && *weight > 0.0
        });
        found.or(values.last()).map_or(0.0, |(value, _)| *value)
    };
    quantiles.iter().map(reached).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_long_window_counts_for_as_long_as_it_is() {
        let mut values = vec![(10.0, 1.0), (1.0, 9.0)];
        assert_eq!(weighted_quantiles(&mut values, &[0.5, 0.9, 0.91, 1.0]), [1.0, 1.0, 10.0, 10.0]);
        assert_eq!(weighted_quantiles(&mut [], &[0.5]), Vec::<f64>::new());
        assert_eq!(weighted_quantiles(&mut [(1.0, 0.0)], &[0.5]), Vec::<f64>::new());
    }

    proptest! {
        /// Each value written down once for every second that it held, sorted, and counted through.
        #[test]
        fn it_is_the_percentile_of_all_seconds(
            values in prop::collection::vec((0_u32..50, 1_u32..40), 1..40),
            percent in 1_u32..=100,
        ) {
            let mut seconds: Vec<u32> =
                values.iter().flat_map(|(value, seconds)| std::iter::repeat_n(*value, *seconds as usize)).collect();
            seconds.sort_unstable();
            let rank = (seconds.len() * percent as usize).div_ceil(100).max(1);
            let mut weighted: Vec<(f64, f64)> =
                values.iter().map(|(value, seconds)| (f64::from(*value), f64::from(*seconds))).collect();
            let found = weighted_quantiles(&mut weighted, &[f64::from(percent) / 100.0]);
            prop_assert_eq!(found, vec![f64::from(seconds[rank - 1])]);
        }
    }
}
