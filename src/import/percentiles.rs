//! Percentiles that a program tells become buckets between them.

use super::draft::whole;
use crate::record::{Histogram, ToldBucket};

/// Milliseconds in nanoseconds, if a duration can be that long.
pub(super) fn ms(value: f64) -> Option<u64> {
    whole(value * 1e6)
}

/// The sum of `count` durations with this mean, rounded.
pub(super) fn sum_of_mean(mean_ns: f64, count: u64) -> Option<u64> {
    whole(mean_ns * count as f64)
}

/// `count` durations between `min_ns` and `max_ns`, of which a share (0 to 1) did not exceed each of `percentiles` (in
/// nanoseconds). Between two of them lies one bucket, and the last goes on to the maximum, or has no end where that is not told.
///
/// A percentile below a lower one counts as that: estimates of percentiles can cross.
pub(super) fn histogram(
    count: u64,
    total_ns: Option<u64>,
    min_ns: Option<u64>,
    max_ns: Option<u64>,
    percentiles: &[(f64, u64)],
) -> Histogram {
    let mut known: Vec<(f64, u64)> = percentiles.iter().copied().filter(|(share, _)| *share > 0.0).collect();
    known.sort_by(|left, right| left.0.total_cmp(&right.0));
    let mut from_ns = known.first().map(|first| first.1).into_iter().chain(min_ns).min().filter(|_| min_ns.is_some());
    let mut below = 0;
    let mut buckets = Vec::new();
    for (share, ns) in known {
        // The same sum as a quantile of the histogram makes, so that it gives this percentile back.
        let up_to = ((share.min(1.0) * count as f64).ceil() as u64).min(count);
        let to_ns = ns.max(from_ns.unwrap_or(0));
        let bucket =
            ToldBucket { from_ns: from_ns.unwrap_or(0), to_ns: Some(to_ns), count: up_to.saturating_sub(below) };
        buckets.push(bucket);
        below = below.max(up_to);
        from_ns = Some(to_ns);
    }
    let from_ns = from_ns.or(min_ns).unwrap_or(0);
    let to_ns = max_ns.map(|max_ns| max_ns.max(from_ns));
    buckets.push(ToldBucket { from_ns, to_ns, count: count.saturating_sub(below) });
    Histogram::told(buckets, total_ns, min_ns, max_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_percentile_comes_back_and_no_duration_is_lost() {
        let told = histogram(1_003, Some(9), Some(1), Some(90), &[(0.95, 40), (0.5, 7), (0.99, 60)]);
        assert_eq!((told.count(), told.min_ns(), told.max_ns(), told.total_ns()), (1_003, Some(1), Some(90), Some(9)));
        assert_eq!(
            told.quantiles_ns(&[0.5, 0.95, 0.99, 1.0]),
            [Some(7), Some(40), Some(60), Some(90)],
            "{:?}",
            told.buckets_ns().collect::<Vec<_>>()
        );
    }

    #[test]
    fn what_lies_above_the_last_percentile_has_no_end_without_a_maximum() {
        let told = histogram(10, None, None, None, &[(0.9, 5)]);
        assert_eq!(told.quantiles_ns(&[0.9, 0.99]), [Some(5), None]);
        assert_eq!(told.below_ns(5), (9, 9));
    }

    #[test]
    fn percentiles_that_cross_or_lie_beyond_the_ends_keep_all_durations() {
        let told = histogram(100, None, Some(10), Some(20), &[(0.1, 5), (0.2, 30), (0.3, 4), (7.0, 9), (-1.0, 1)]);
        assert_eq!(told.count(), 100);
        assert!(!histogram(3, Some(12), None, None, &[]).is_distribution());
    }
}
