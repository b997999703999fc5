//! A latency histogram that merges exactly and folds into power-of-two wait tables without loss.

use std::borrow::Cow;
use std::fmt;
use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use super::buckets::Buckets;

/// Upper bounds, in microseconds and exclusive, of the power-of-two wait buckets that tables print: `<1us` to `<2^26us`
/// (67 s); longer waits belong to the overflow bucket. "1 ms" in Oracle's tables is the bound 1024.
pub const POWER_OF_TWO_BOUNDS: usize = 27;

/// The longest duration that is told apart from longer ones: one hour. Longer waits count in the last bucket, while
/// [`Histogram::max_ns`] and [`Histogram::total_ns`] stay exact.
const HIGHEST_NS: u64 = 3_600 * 1_000_000_000;

/// Two significant digits: 128 linear buckets per power of two, so a quantile is at most 0.8 % off. The lower bound of
/// every power-of-two-microsecond wait bucket (1000 x 2^k ns = 250 x 2^(k+2)) is also the lower bound of an HDR bucket,
/// which is why the fold loses nothing.
const DIGITS: u8 = 2;

/// Durations in nanoseconds, as counts in HdrHistogram buckets, with their exact sum, minimum and maximum.
#[derive(Clone)]
pub struct Histogram {
    buckets: Buckets,
    total_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

/// Why an encoded histogram could not be read.
#[derive(Debug, thiserror::Error)]
#[error("histogram cannot be decoded: {reason}")]
pub struct HistogramError {
    reason: String,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: Buckets::Spread(empty()), total_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }
}

fn empty() -> hdrhistogram::Histogram<u64> {
    hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS)
        .expect("constant bounds and digits are within HdrHistogram's limits")
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let Self { buckets, total_ns, min_ns, max_ns } = other;
        (self.total_ns, self.min_ns, self.max_ns) == (*total_ns, *min_ns, *max_ns)
            && self.as_hdr() == buckets.spread(empty)
    }
}

impl Histogram {
    /// Counts one duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Counts `n` equal durations.
    pub fn record_n(&mut self, ns: u64, n: u64) {
        if n == 0 {
            return;
        }
        self.buckets.spread_mut(empty).saturating_record_n(ns, n);
        self.total_ns = self.total_ns.saturating_add(ns.saturating_mul(n));
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds everything that `other` counted: the same as if all of it had been recorded here.
    pub fn merge(&mut self, other: &Self) {
        let Self { buckets, total_ns, min_ns, max_ns } = other;
        buckets.add_to(self.buckets.spread_mut(empty));
        self.total_ns = self.total_ns.saturating_add(*total_ns);
        self.min_ns = self.min_ns.min(*min_ns);
        self.max_ns = self.max_ns.max(*max_ns);
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.buckets.spread_mut(empty).reset();
        self.total_ns = 0;
        self.min_ns = u64::MAX;
        self.max_ns = 0;
    }

    /// Keeps the same counts in a small part of the memory until something is added again. Reading them takes some
    /// microseconds longer: for histograms that are kept by the thousand.
    pub fn pack(&mut self) {
        self.buckets.pack();
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.buckets.count()
    }

    /// The exact sum of all durations.
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// The exact mean, unless nothing was counted.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.total_ns as f64 / self.count() as f64)
    }

    /// The exact shortest duration.
    pub fn min_ns(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.min_ns)
    }

    /// The exact longest duration.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max_ns)
    }

    /// The duration that a share `quantile` (0 to 1) of all waits did not exceed: the upper edge of its bucket, at most
    /// 0.8 % above the true value and never above the maximum.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        self.quantiles_ns(&[quantile])[0]
    }

    /// Several quantiles, in rising order, in one pass; each as [`Self::quantile_ns`] has it.
    pub fn quantiles_ns(&self, quantiles: &[f64]) -> Vec<Option<u64>> {
        let all = self.count();
        let mut told = Vec::with_capacity(quantiles.len());
        let mut below = 0;
        for (_, highest, count) in self.buckets_ns() {
            below += count;
            let reached = |quantile: &&f64| ((**quantile * all as f64).ceil() as u64).max(1) <= below;
            let more = quantiles[told.len()..].iter().take_while(reached).count();
            told.extend(std::iter::repeat_n(Some(highest.min(self.max_ns).max(self.min_ns)), more));
        }
        told.resize(quantiles.len(), self.max_ns());
        told
    }

    /// The standard deviation of all durations, over their number n, unless nothing was counted.
    ///
    /// `sqrt(sum of c (v - mean)^2 / n)` over buckets with count c, where v is the middle of the bucket, moved into the
    /// range from the exact minimum to the exact maximum, and the mean is the exact one. A duration lies at most half a
    /// bucket from v, which is 1/256 of it (or half a nanosecond), so by the triangle inequality the result is at most
    /// 0.4 % of the root mean square duration off. Durations beyond one hour count as one hour.
    pub fn standard_deviation_ns(&self) -> Option<f64> {
        let mean = self.mean_ns()?;
        let squares = self.buckets_ns().map(|(lowest, highest, count)| {
            let middle = (lowest as f64 + highest as f64) / 2.0;
            let off = middle.clamp(self.min_ns as f64, self.max_ns as f64) - mean;
            count as f64 * off * off
        });
        Some((squares.sum::<f64>() / self.count() as f64).sqrt())
    }

    /// Counts per power-of-two-microsecond bucket: element `k` holds waits `w` with `2^(k-1) us <= w < 2^k us`
    /// (element 0: below 1 us); the last element holds everything from 2^26 us up.
    pub fn power_of_two_us(&self) -> [u64; POWER_OF_TWO_BOUNDS + 1] {
        let mut counts = [0; POWER_OF_TWO_BOUNDS + 1];
        for (lowest, _, count) in self.buckets_ns() {
            let whole_us = lowest / 1_000;
            let index = (u64::BITS - whole_us.leading_zeros()) as usize;
            counts[index.min(POWER_OF_TWO_BOUNDS)] += count;
        }
        counts
    }

    /// Every non-empty bucket as (lowest duration in it, highest duration in it, count), in rising order.
    pub fn buckets_ns(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.buckets.used().into_iter()
    }

    /// The HdrHistogram behind it, for `.hlog` export.
    pub fn as_hdr(&self) -> Cow<'_, hdrhistogram::Histogram<u64>> {
        self.buckets.spread(empty)
    }

    /// The V2-deflate encoding in base64 that other HdrHistogram tools read.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&*self.as_hdr(), &mut bytes)
            .expect("writing to memory does not fail and counts fit");
        STANDARD.encode(bytes)
    }

    /// Adds counts recorded elsewhere in the same layout with narrower counters. `total_ns`, `min_ns` and `max_ns` are
    /// the exact ones of the other side.
    pub fn merge_counts(&mut self, other: &hdrhistogram::Histogram<u32>, total_ns: u64, min_ns: u64, max_ns: u64) {
        let buckets = self.buckets.spread_mut(empty);
        for bucket in other.iter_recorded() {
            buckets.saturating_record_n(bucket.value_iterated_to(), u64::from(bucket.count_at_value()));
        }
        self.total_ns = self.total_ns.saturating_add(total_ns);
        self.min_ns = self.min_ns.min(min_ns);
        self.max_ns = self.max_ns.max(max_ns);
    }

    /// An empty recorder with the same bucket layout and 32-bit counters, for hot paths.
    pub fn narrow_layout() -> hdrhistogram::Histogram<u32> {
        hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS)
            .expect("constant bounds and digits are within HdrHistogram's limits")
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("total_ns", &self.total_ns)
            .field("max_ns", &self.max_ns())
            .finish_non_exhaustive()
    }
}

/// The form in the document: a summary for people, and the whole histogram for programs.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Histogram")]
struct Document {
    count: u64,
    total_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mean_ns: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p50_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p90_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p95_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p99_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p99_9_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p99_99_ns: Option<u64>,
    /// HdrHistogram V2 with deflate, base64; values in nanoseconds, two significant digits.
    hdr_v2_deflate_base64: String,
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Document {
            count: self.count(),
            total_ns: self.total_ns,
            min_ns: self.min_ns(),
            max_ns: self.max_ns(),
            mean_ns: self.mean_ns(),
            p50_ns: self.quantile_ns(0.5),
            p90_ns: self.quantile_ns(0.9),
            p95_ns: self.quantile_ns(0.95),
            p99_ns: self.quantile_ns(0.99),
            p99_9_ns: self.quantile_ns(0.999),
            p99_99_ns: self.quantile_ns(0.9999),
            hdr_v2_deflate_base64: self.encode(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let document = Document::deserialize(deserializer)?;
        Self::try_from(document).map_err(serde::de::Error::custom)
    }
}

impl TryFrom<Document> for Histogram {
    type Error = HistogramError;

    fn try_from(document: Document) -> Result<Self, Self::Error> {
        let fail = |reason: String| HistogramError { reason };
        let bytes = STANDARD.decode(&document.hdr_v2_deflate_base64).map_err(|e| fail(e.to_string()))?;
        let decoded: hdrhistogram::Histogram<u64> =
            Deserializer::new().deserialize(&mut Cursor::new(bytes)).map_err(|e| fail(e.to_string()))?;
        let mut histogram = Self::default();
        let buckets = histogram.buckets.spread_mut(empty);
        for bucket in decoded.iter_recorded() {
            buckets.saturating_record_n(bucket.value_iterated_to(), bucket.count_at_value());
        }
        if histogram.count() != document.count {
            return Err(fail(format!("it holds {} waits but says {}", histogram.count(), document.count)));
        }
        histogram.total_ns = document.total_ns;
        histogram.min_ns = document.min_ns.unwrap_or(u64::MAX);
        histogram.max_ns = document.max_ns.unwrap_or(0);
        Ok(histogram)
    }
}

impl schemars::JsonSchema for Histogram {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Document::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Document::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|ns| histogram.record(*ns));
        histogram
    }

    #[test]
    fn an_empty_histogram_knows_no_quantile() {
        let empty = Histogram::default();
        assert_eq!((empty.mean_ns(), empty.min_ns(), empty.max_ns(), empty.quantile_ns(0.5)), (None, None, None, None));
    }

    #[test]
    fn a_wait_counts_in_the_lowest_bound_above_it() {
        for k in 0..POWER_OF_TWO_BOUNDS {
            let bound_ns = 1_000u64 << k;
            assert_eq!(of(&[bound_ns - 1]).power_of_two_us()[k], 1, "just below 2^{k} us");
            assert_eq!(of(&[bound_ns]).power_of_two_us()[k + 1], 1, "2^{k} us exactly");
        }
    }

    #[test]
    fn equal_durations_do_not_deviate() {
        assert_eq!(of(&[123_457; 9]).standard_deviation_ns(), Some(0.0));
        assert_eq!(Histogram::default().standard_deviation_ns(), None);
    }

    #[test]
    fn waits_beyond_the_range_keep_an_exact_maximum_and_sum() {
        let two_hours = 2 * HIGHEST_NS;
        let histogram = of(&[5, two_hours]);
        assert_eq!(histogram.max_ns(), Some(two_hours));
        assert_eq!(histogram.total_ns(), two_hours + 5);
        assert_eq!(histogram.power_of_two_us()[POWER_OF_TWO_BOUNDS], 1);
    }

    #[test]
    fn a_document_with_a_wrong_count_is_refused() {
        let json = serde_json::to_string(&of(&[1, 2, 3])).unwrap().replace("\"count\":3", "\"count\":4");
        let error = serde_json::from_str::<Histogram>(&json).unwrap_err().to_string();
        assert!(error.contains("holds 3 waits but says 4"), "{error}");
    }

    #[test]
    fn a_packed_second_of_reads_takes_a_small_part_of_the_memory() {
        let mut second = Histogram::default();
        (0..20_000u64).for_each(|read| second.record(60_000 + read * read % 900_000));
        second.pack();
        let Buckets::Packed(packed) = &second.buckets else { panic!("it is not packed") };
        assert!(packed.bytes() < 1_500, "{} bytes", packed.bytes());
    }

    proptest! {
        #[test]
        fn packed_counts_read_and_merge_as_before(values in prop::collection::vec(0u64..HIGHEST_NS * 2, 0..200)) {
            let spread = of(&values);
            let mut packed = spread.clone();
            packed.pack();
            prop_assert_eq!(&packed, &spread);
            prop_assert_eq!((packed.count(), packed.quantile_ns(0.9)), (spread.count(), spread.quantile_ns(0.9)));
            prop_assert_eq!(packed.encode(), spread.encode());
            let (mut twice, mut expected) = (packed.clone(), spread.clone());
            twice.merge(&packed);
            expected.merge(&spread);
            prop_assert_eq!(twice, expected);
        }

        #[test]
        fn merge_equals_concatenation(
            left in prop::collection::vec(0u64..HIGHEST_NS * 2, 0..200),
            right in prop::collection::vec(0u64..10_000_000, 0..200),
        ) {
            let mut merged = of(&left);
            merged.merge(&of(&right));
            prop_assert_eq!(merged, of(&[left, right].concat()));
        }

        #[test]
        fn the_fold_loses_no_wait_and_misplaces_none(values in prop::collection::vec(0u64..1 << 42, 1..300)) {
            let folded = of(&values).power_of_two_us();
            let mut expected = [0; POWER_OF_TWO_BOUNDS + 1];
            for ns in &values {
                let index = (0..POWER_OF_TWO_BOUNDS).find(|k| *ns < 1_000u64 << k).unwrap_or(POWER_OF_TWO_BOUNDS);
                expected[index] += 1;
            }
            prop_assert_eq!(folded, expected);
        }

        #[test]
        fn quantiles_are_within_one_bucket(values in prop::collection::vec(1u64..1 << 40, 1..300), q in 0.0f64..1.0) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let rank = ((q * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1;
            let exact = sorted[rank] as f64;
            let told = of(&values).quantile_ns(q).unwrap() as f64;
            prop_assert!(told >= exact * 0.999 && told <= exact * 1.008, "told {told}, exact {exact}");
        }

        #[test]
        fn the_standard_deviation_is_within_its_bound(values in prop::collection::vec(0u64..1 << 40, 1..300)) {
            let mean_of = |squares: f64| squares / values.len() as f64;
            let mean = mean_of(values.iter().map(|v| *v as f64).sum());
            let exact = mean_of(values.iter().map(|v| (*v as f64 - mean).powi(2)).sum()).sqrt();
            let root_mean_square = mean_of(values.iter().map(|v| (*v as f64).powi(2)).sum()).sqrt();
            let told = of(&values).standard_deviation_ns().unwrap();
            prop_assert!((told - exact).abs() <= 0.004 * root_mean_square + 0.5, "told {told}, exact {exact}");
        }

        #[test]
        fn quantiles_are_those_of_hdr_histogram_packed_or_not(
            values in prop::collection::vec(0u64..1 << 43, 1..200),
            quantile in 0.0_f64..=1.0,
        ) {
            let mut histogram = of(&values);
            let told = histogram.as_hdr().value_at_quantile(quantile);
            let wanted = Some(told.min(histogram.max_ns).max(histogram.min_ns));
            prop_assert_eq!(histogram.quantile_ns(quantile), wanted);
            let spread: Vec<_> = histogram.buckets_ns().collect();
            histogram.pack();
            prop_assert_eq!(histogram.quantile_ns(quantile), wanted);
            prop_assert_eq!(histogram.buckets_ns().collect::<Vec<_>>(), spread);
            let several = [0.0, 0.5, quantile.max(0.5), 1.0];
            let each: Vec<_> = several.iter().map(|q| histogram.quantile_ns(*q)).collect();
            prop_assert_eq!(histogram.quantiles_ns(&several), each);
        }

        #[test]
        fn the_document_form_round_trips(values in prop::collection::vec(0u64..1 << 41, 0..200)) {
            let histogram = of(&values);
            let json = serde_json::to_string(&histogram).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&json).unwrap(), histogram);
        }

        #[test]
        fn narrow_counters_merge_as_if_recorded_here(values in prop::collection::vec(0u64..1 << 41, 1..200)) {
            let mut narrow = Histogram::narrow_layout();
            values.iter().for_each(|ns| narrow.saturating_record(*ns));
            let mut merged = Histogram::default();
            let (min, max) = (*values.iter().min().unwrap(), *values.iter().max().unwrap());
            merged.merge_counts(&narrow, values.iter().sum(), min, max);
            prop_assert_eq!(merged, of(&values));
        }
    }
}
