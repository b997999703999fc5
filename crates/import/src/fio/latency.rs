//! From fio's percentiles and bins to buckets.

use super::Latency;
use crate::draft::whole;
use crate::percentiles;
use model::record::{Histogram, ReportedBucket};

/// fio counts durations below this one by one ...
const EXACT_BELOW: u64 = 128;
/// ... and above in 64 buckets a power of two (`FIO_IO_U_PLAT_BITS` in its `stat.h`) ...
const BITS: u32 = 6;
/// ... up to this many powers of two; the last bucket holds all that is longer.
const GROUPS: u64 = 29;
/// The same up to 2.x, which counted microseconds.
const GROUPS_OF_2: u64 = 19;

/// The bucket whose middle fio prints as `middle`, and what one unit of it is in nanoseconds.
pub fn bin_of_middle(middle: u64, unit_ns: u64, count: u64) -> ReportedBucket {
    let (from, width) = if middle < EXACT_BELOW {
        (middle, 1)
    } else {
        let width = 1_u64 << (middle.ilog2() - BITS);
        (middle - middle % width, width)
    };
    let groups = if unit_ns == 1 { GROUPS } else { GROUPS_OF_2 };
    bucket(from, width, unit_ns, count, last_bucket(groups))
}

/// The bucket with a number, as fio 2.10 to 2.19 print it.
pub fn bin_of_index(index: u64, count: u64) -> Option<ReportedBucket> {
    if index >= GROUPS_OF_2 << BITS {
        return None;
    }
    let (from, width) = edges(index);
    Some(bucket(from, width, 1_000, count, last_bucket(GROUPS_OF_2)))
}

/// What a log of histograms holds in one column, by how many columns it has: all buckets of this or of older versions, or 2, 4, ... 64
/// of them together (`log_hist_coarseness`). Nothing if fio never writes so many.
pub fn columns_of_log(columns: usize) -> Option<Vec<(u64, Option<u64>)>> {
    let known = [(GROUPS, 1), (GROUPS_OF_2, 1_000)].into_iter();
    let (groups, unit_ns, together) = known
        .flat_map(|(groups, unit_ns)| (0..=BITS).map(move |coarseness| (groups, unit_ns, 1_u64 << coarseness)))
        .find(|(groups, _, together)| Ok(columns) == usize::try_from((groups << BITS) / together))?;
    let last = last_bucket(groups);
    let ends = |first: u64| {
        let ((from, _), (highest, width)) = (edges(first), edges(first + together - 1));
        (from * unit_ns, (highest < last).then_some((highest + width) * unit_ns))
    };
    Some((0..groups << BITS).step_by(1 << together.ilog2()).map(ends).collect())
}

fn bucket(from: u64, width: u64, unit_ns: u64, count: u64, last: u64) -> ReportedBucket {
    let to_ns = (from < last).then(|| from.saturating_add(width).saturating_mul(unit_ns));
    ReportedBucket { from_ns: from.saturating_mul(unit_ns), to_ns, count }
}

fn edges(index: u64) -> (u64, u64) {
    if index < EXACT_BELOW {
        return (index, 1);
    }
    let error_bits = (index >> BITS) - 1;
    ((1 << (error_bits + u64::from(BITS))) + ((index % 64) << error_bits), 1 << error_bits)
}

fn last_bucket(groups: u64) -> u64 {
    edges((groups << BITS) - 1).0
}

/// The histogram of `requests` durations; what was measured reports the number itself from 3.18 on, and it may differ by those
/// under way when a ramp ended.
pub fn histogram(latency: &Latency, requests: Option<u64>) -> Histogram {
    let counted: u64 = latency.bins.iter().fold(0, |sum, bin| sum.saturating_add(bin.count));
    let count = if counted > 0 { counted } else { latency.samples.or(requests).unwrap_or(0) };
    let total_ns = latency.mean_ns.and_then(|mean_ns| whole(mean_ns * count as f64));
    let (min_ns, max_ns) = match (latency.min_ns, latency.max_ns) {
        (Some(min_ns), Some(max_ns)) if min_ns > max_ns => (None, None),
        known => known,
    };
    let buckets = if counted > 0 {
        latency.bins.clone()
    } else if !latency.percentiles.is_empty() {
        percentiles::buckets(count, min_ns, max_ns, &as_shares(&latency.percentiles))
    } else if !latency.shares.is_empty() {
        of_shares(&latency.shares, count)
    } else {
        vec![ReportedBucket { from_ns: 0, to_ns: None, count }]
    };
    Histogram::reported(buckets, total_ns, min_ns, max_ns)
}

/// fio's percentages as shares. They have six digits: divided as whole numbers they are the fractions that people write.
fn as_shares(percentiles: &[(f64, f64)]) -> Vec<(f64, u64)> {
    percentiles.iter().filter_map(|(percentage, ns)| Some(((percentage * 1e6).round() / 1e8, whole(*ns)?))).collect()
}

/// Buckets by shares in percent, whose counts sum to `count`. fio prints `0.01%` for anything that is less and not nothing, so
/// that shares do not sum to 100.
fn of_shares(shares: &[(u64, Option<u64>, f64)], count: u64) -> Vec<ReportedBucket> {
    let all: f64 = shares.iter().map(|(_, _, share)| share).sum();
    let (mut below, mut sum) = (0, 0.0);
    let mut buckets = Vec::with_capacity(shares.len());
    for (from_ns, to_ns, share) in shares {
        sum += share;
        let reached = whole(sum / all * count as f64).unwrap_or(below).clamp(below, count);
        buckets.push(ReportedBucket { from_ns: *from_ns, to_ns: *to_ns, count: reached - below });
        below = reached;
    }
    buckets
}

/// The buckets of one of fio's tables of latency, whose labels are upper edges in a unit: `2`, `4`, `10`, ... `>=2000`.
pub fn shares_of_labels(labels: &[(&str, f64)], unit_ns: u64) -> Vec<(u64, Option<u64>, f64)> {
    const EDGES: [u64; 12] = [1, 2, 4, 10, 20, 50, 100, 250, 500, 750, 1_000, 2_000];
    let mut shares = Vec::new();
    for (label, share) in labels.iter().filter(|(_, share)| *share > 0.0) {
        if let Some(from) = label.strip_prefix(">=").and_then(|from| from.parse::<u64>().ok()) {
            shares.push((from.saturating_mul(unit_ns), None, *share));
            continue;
        }
        let Ok(to) = label.parse::<u64>() else { continue };
        let Some(at) = EDGES.iter().position(|edge| *edge == to).filter(|at| *at > 0) else { continue };
        // What is below two nanoseconds may be none at all.
        let from = if unit_ns == 1 && to == 2 { 0 } else { EDGES[at - 1] };
        shares.push((from * unit_ns, Some(to * unit_ns), *share));
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(histogram: &Histogram) -> Vec<(u64, u64, u64)> {
        histogram.buckets_ns().collect()
    }

    #[test]
    fn bins_of_fio_are_its_own_buckets() {
        let range = |bin: ReportedBucket| (bin.from_ns, bin.to_ns);
        assert_eq!(range(bin_of_middle(0, 1, 1)), (0, Some(1)));
        assert_eq!(range(bin_of_middle(127, 1, 1)), (127, Some(128)));
        assert_eq!(range(bin_of_middle(129, 1, 1)), (128, Some(130)));
        assert_eq!(range(bin_of_middle(2_448, 1, 1)), (2_432, Some(2_464)));
        assert_eq!(range(bin_of_middle(17_112_760_320, 1, 1)), (17_045_651_456, None), "the last has no end");
        assert_eq!(range(bin_of_middle(129, 1_000, 1)), (128_000, Some(130_000)));
        assert_eq!(range(bin_of_index(128, 1).unwrap()), (128_000, Some(130_000)));
        assert_eq!(bin_of_index(1_216, 1), None);
        for index in 0..(GROUPS << BITS) {
            let (from, width) = edges(index);
            assert_eq!(bin_of_middle(from + width / 2, 1, 1).from_ns, from, "{index}");
        }
    }

    #[test]
    fn columns_of_logs_cover_all_durations_one_after_the_other() {
        for (columns, first_ns, at_128, last_from_ns) in [
            (1_856, 1, (128, Some(130)), 17_045_651_456),
            (232, 8, (2_097_152, Some(2_359_296)), 16_106_127_360),
            (29, 64, (0, None), 8_589_934_592),
            (1_216, 1_000, (128_000, Some(130_000)), 16_646_144_000),
        ] {
            let made = columns_of_log(columns).unwrap();
            assert_eq!((made.len(), made[0]), (columns, (0, Some(first_ns))));
            if columns > 128 {
                assert_eq!(made[128], at_128, "{columns}");
            }
            assert_eq!(made[columns - 1], (last_from_ns, None));
            assert!(made.windows(2).all(|pair| pair[0].1 == Some(pair[1].0)));
        }
        assert_eq!([0, 1, 100, 1_855].map(columns_of_log), [const { None }; 4]);
    }

    #[test]
    fn percentiles_come_back_from_their_buckets() {
        let latency = Latency {
            mean_ns: Some(1_234.567),
            min_ns: Some(100),
            max_ns: Some(90_000),
            percentiles: vec![(50.0, 1_000.0), (90.0, 1_000.0), (99.0, 5_000.0), (99.9, 20_000.0)],
            ..Latency::default()
        };
        let histogram = histogram(&latency, Some(1_003));
        assert_eq!((histogram.count(), histogram.total_ns()), (1_003, Some(1_238_271)));
        let quantiles = histogram.quantiles_ns(&[0.5, 0.9, 0.99, 0.999, 1.0]);
        assert_eq!(quantiles, [1_000, 1_000, 5_000, 20_000, 90_000].map(Some));
        assert_eq!(histogram.min_ns(), Some(100));
    }

    #[test]
    fn the_longest_below_the_last_percentile_leaves_no_bucket_behind_it() {
        let latency = Latency {
            min_ns: Some(10),
            max_ns: Some(995),
            percentiles: vec![(50.0, 500.0), (99.0, 1_000.0)],
            ..Latency::default()
        };
        let histogram = histogram(&latency, Some(1_000));
        assert_eq!(counts(&histogram).iter().map(|(.., count)| *count).collect::<Vec<_>>(), [500, 500]);
        assert_eq!(histogram.quantile_ns(0.99), Some(995));
    }

    #[test]
    fn one_request_has_one_bucket() {
        let latency = Latency { percentiles: vec![(1.0, 7.0), (99.0, 7.0)], ..Latency::default() };
        assert_eq!(histogram(&latency, Some(1)).count(), 1);
        assert_eq!(histogram(&latency, Some(0)).count(), 0);
    }

    #[test]
    fn shares_sum_to_all() {
        let mut shares = shares_of_labels(&[("750", 33.3), ("1000", 33.4)], 1_000);
        shares.extend(shares_of_labels(&[("2", 33.3), (">=2000", 0.01), ("4", 0.0)], 1_000_000));
        let latency = Latency { shares, ..Latency::default() };
        let histogram = histogram(&latency, Some(1_001));
        assert_eq!(histogram.count(), 1_001);
        assert_eq!(histogram.quantile_ns(0.3), Some(750_000));
    }
}
