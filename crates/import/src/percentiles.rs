//! Percentiles that a program reports become buckets between them.

use super::draft::whole;
use model::record::{Histogram, ReportedBucket};

/// Milliseconds in nanoseconds, if a duration can be that long.
pub(super) fn ms(value: f64) -> Option<u64> {
    whole(value * 1e6)
}

/// The sum of `count` durations with this mean, rounded.
pub(super) fn sum_of_mean(mean_ns: f64, count: u64) -> Option<u64> {
    whole(mean_ns * count as f64)
}

/// `count` durations between `min_ns` and `max_ns`, of which a share (0 to 1) did not exceed each of `percentiles` (in
/// nanoseconds).
pub(super) fn histogram(
    count: u64,
    total_ns: Option<u64>,
    min_ns: Option<u64>,
    max_ns: Option<u64>,
    percentiles: &[(f64, u64)],
) -> Histogram {
    Histogram::reported(buckets(count, min_ns, max_ns, percentiles), total_ns, min_ns, max_ns)
}

/// The buckets of [`histogram`]. Between two percentiles lies one, and the last goes on to the maximum, or has no end where that is
/// not reported. Up to a percentile lie as many durations as its share says, rounded up, so that the quantile gives it back.
///
/// A percentile below a lower one counts as that: estimates of percentiles can cross. All between two that are the same took just as
/// long, as far as the program distinguishes times: they have a bucket without width. Where the maximum is no more than the last
/// percentile, which may be the middle of a bucket, what lies above that is in its bucket.
pub(super) fn buckets(
    count: u64,
    min_ns: Option<u64>,
    max_ns: Option<u64>,
    percentiles: &[(f64, u64)],
) -> Vec<ReportedBucket> {
    let mut known: Vec<(f64, u64)> = percentiles.iter().copied().filter(|(share, _)| *share > 0.0).collect();
    known.sort_by(|left, right| left.0.total_cmp(&right.0));
    let first_ns = known.first().map_or(u64::MAX, |first| first.1);
    let mut from_ns = min_ns.unwrap_or(0).min(first_ns);
    let mut below = 0;
    let mut buckets: Vec<ReportedBucket> = Vec::with_capacity(known.len() + 1);
    for (share, ns) in known {
        let reached = ((share.min(1.0) * count as f64).ceil() as u64).clamp(below, count);
        let (to_ns, more) = (ns.max(from_ns), reached - below);
        match buckets.last_mut() {
            Some(last) if from_ns == to_ns && (last.from_ns, last.to_ns) == (to_ns, Some(to_ns)) => last.count += more,
            _ => buckets.push(ReportedBucket { from_ns, to_ns: Some(to_ns), count: more }),
        }
        (below, from_ns) = (reached, to_ns);
    }
    if count > below {
        let to_ns = max_ns.filter(|max_ns| *max_ns > from_ns);
        match buckets.last_mut() {
            Some(last) if max_ns.is_some() && to_ns.is_none() => last.count += count - below,
            _ => buckets.push(ReportedBucket { from_ns, to_ns: to_ns.or(max_ns), count: count - below }),
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_percentile_comes_back_and_no_duration_is_lost() {
        let durations = histogram(1_003, Some(9), Some(1), Some(90), &[(0.95, 40), (0.5, 7), (0.99, 60)]);
        assert_eq!(
            (durations.count(), durations.min_ns(), durations.max_ns(), durations.total_ns()),
            (1_003, Some(1), Some(90), Some(9))
        );
        assert_eq!(
            durations.quantiles_ns(&[0.5, 0.95, 0.99, 1.0]),
            [Some(7), Some(40), Some(60), Some(90)],
            "{:?}",
            durations.buckets_ns().collect::<Vec<_>>()
        );
    }

    #[test]
    fn what_lies_above_the_last_percentile_has_no_end_without_a_maximum() {
        let durations = histogram(10, None, None, None, &[(0.9, 5)]);
        assert_eq!(durations.quantiles_ns(&[0.9, 0.99]), [Some(5), None]);
        assert_eq!(durations.below_ns(5), (9, 9));
    }

    #[test]
    fn percentiles_that_cross_or_lie_beyond_the_ends_keep_all_durations() {
        let durations = histogram(100, None, Some(10), Some(20), &[(0.1, 5), (0.2, 30), (0.3, 4), (7.0, 9), (-1.0, 1)]);
        assert_eq!(durations.count(), 100);
        assert!(!histogram(3, Some(12), None, None, &[]).is_distribution());
        assert_eq!(histogram(3, None, Some(8), Some(8), &[]).buckets_ns().collect::<Vec<_>>(), [(8, 8, 3)]);
    }

    #[test]
    fn all_between_equal_percentiles_took_just_as_long() {
        let bucket = |from_ns, count| ReportedBucket { from_ns, to_ns: Some(10), count };
        let percentiles = [(0.5, 10), (0.75, 10), (0.9, 10)];
        assert_eq!(
            buckets(100, Some(1), Some(9), &percentiles),
            [bucket(1, 50), bucket(10, 50)],
            "a maximum below them"
        );
        let durations = histogram(1_000, None, Some(1), None, &percentiles);
        assert!([0.5, 0.6, 0.75, 0.9].iter().all(|quantile| durations.knows_quantile(*quantile)));
        assert!(!durations.knows_quantile(0.4));
    }
}
