//! A latency histogram that merges exactly and folds into power-of-two wait tables without loss.

use std::borrow::Cow;
use std::fmt;
use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use super::buckets::Buckets;
pub use super::buckets::ReportedBucket;

/// Upper bounds, in microseconds and exclusive, of the power-of-two wait buckets that tables print: `<1us` to `<2^26us`
/// (67 s); longer waits belong to the overflow bucket. "1 ms" in Oracle's tables is the bound 1024.
pub const POWER_OF_TWO_BOUNDS: usize = 27;

/// The longest duration that is distinguished from longer ones: one hour. Longer waits count in the last bucket, while
/// [`Histogram::max_ns`] and [`Histogram::total_ns`] stay exact.
const HIGHEST_NS: u64 = 3_600 * 1_000_000_000;

/// Two significant digits: 128 linear buckets per power of two, so a quantile is at most 0.8 % off. The lower bound of
/// every power-of-two-microsecond wait bucket (1000 x 2^k ns = 250 x 2^(k+2)) is also the lower bound of an HDR bucket,
/// which is why the fold loses nothing.
const DIGITS: u8 = 2;

/// A bucket no wider than this, as its upper over its lower edge, knows the quantiles in it.
const KNOWN_WIDTH: f64 = 1.02;

/// The edge at one second with which some of Oracle's tables of powers of two end.
const SECOND_NS: u64 = 1_000_000_000;

/// Whether all edges are powers of two of micro- or milliseconds, as those of a database's tables; percentiles lie there by chance
/// only, and hardly all of them.
fn is_of_powers(buckets: &[ReportedBucket]) -> bool {
    let is_power = |ns: u64, unit: u64| ns.is_multiple_of(unit) && (ns / unit).is_power_of_two();
    let is_edge = |ns: u64| ns == 0 || ns == SECOND_NS || is_power(ns, 1_000) || is_power(ns, 1_000_000);
    buckets.iter().all(|bucket| is_edge(bucket.from_ns) && bucket.to_ns.is_none_or(is_edge))
}

/// With fewer durations beyond a quantile than this the end of any bucket may lie at it.
const BEYOND: u64 = 10;

/// Durations in nanoseconds, as counts in HdrHistogram buckets, with their exact sum, minimum and maximum.
///
/// One that was [reported](Self::reported) by another program has that program's buckets instead, often as wide as a power of two, and
/// its sum, minimum and maximum may be unknown.
#[derive(Clone)]
pub struct Histogram {
    buckets: Buckets,
    total_ns: Option<u64>,
    min_ns: Option<u64>,
    max_ns: Option<u64>,
}

/// Why an encoded histogram could not be read.
#[derive(Debug, thiserror::Error)]
#[error("histogram cannot be decoded: {reason}")]
pub struct HistogramError {
    reason: String,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: Buckets::Spread(empty()), total_ns: Some(0), min_ns: None, max_ns: None }
    }
}

fn empty() -> hdrhistogram::Histogram<u64> {
    hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS)
        .expect("constant bounds and digits are within HdrHistogram's limits")
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let Self { buckets, total_ns, min_ns, max_ns } = other;
        let same_buckets = match (&self.buckets, buckets) {
            (Buckets::Reported(mine), Buckets::Reported(theirs)) => mine == theirs,
            (Buckets::Reported(_), _) | (_, Buckets::Reported(_)) => false,
            (mine, theirs) => mine.spread(empty) == theirs.spread(empty),
        };
        (self.total_ns, self.min_ns, self.max_ns) == (*total_ns, *min_ns, *max_ns) && same_buckets
    }
}

impl Histogram {
    /// What another program reports on durations: counts in its own buckets, in any order and of any width, and their sum,
    /// minimum and maximum as far as it knows them. Buckets that hold nothing are left out.
    pub fn reported(
        buckets: impl IntoIterator<Item = ReportedBucket>,
        total_ns: Option<u64>,
        min_ns: Option<u64>,
        max_ns: Option<u64>,
    ) -> Self {
        let mut buckets: Vec<ReportedBucket> = buckets.into_iter().filter(|bucket| bucket.count > 0).collect();
        buckets.sort_by_key(|bucket| (bucket.to_ns.unwrap_or(u64::MAX), bucket.from_ns));
        Self { buckets: Buckets::Reported(buckets), total_ns, min_ns, max_ns }
    }

    /// `count` durations of which nothing is known but, where it is reported, their sum.
    pub fn counted(count: u64, total_ns: Option<u64>) -> Self {
        Self::reported([ReportedBucket { from_ns: 0, to_ns: None, count }], total_ns, None, None)
    }

    /// The same counts with a sum that is known from elsewhere.
    pub fn with_total_ns(self, total_ns: u64) -> Self {
        Self { total_ns: Some(total_ns), ..self }
    }

    /// Whether another program reported it, in buckets of its own: then quantiles are the upper edges of these.
    pub fn is_reported(&self) -> bool {
        matches!(self.buckets, Buckets::Reported(_))
    }

    /// Whether it says how durations are distributed. One that was reported may know only how many there were.
    pub fn is_distribution(&self) -> bool {
        match &self.buckets {
            Buckets::Reported(buckets) => buckets.iter().any(|bucket| bucket.from_ns > 0 || bucket.to_ns.is_some()),
            _ => true,
        }
    }

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
        match self.buckets.spread_mut(empty) {
            Some(buckets) => buckets.saturating_record_n(ns, n),
            None => return self.merge_reported(&Self::exactly(ns, n)),
        }
        self.total_ns = self.total_ns.map(|total_ns| total_ns.saturating_add(ns.saturating_mul(n)));
        self.min_ns = Some(self.min_ns.map_or(ns, |least| least.min(ns)));
        self.max_ns = Some(self.max_ns.map_or(ns, |most| most.max(ns)));
    }

    fn exactly(ns: u64, n: u64) -> Self {
        let mut one = Self::default();
        one.record_n(ns, n);
        one
    }

    /// Adds everything that `other` counted: the same as if all of it had been recorded here.
    pub fn merge(&mut self, other: &Self) {
        if other.count() == 0 {
            return;
        }
        match self.buckets.spread_mut(empty) {
            Some(buckets) if !other.is_reported() => other.buckets.add_to(buckets),
            _ => return self.merge_reported(other),
        }
        self.total_ns = self.total_ns.zip(other.total_ns).map(|(mine, more)| mine.saturating_add(more));
        self.min_ns = self.min_ns.into_iter().chain(other.min_ns).min();
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Merging where one side was reported: all buckets are kept, those with the same edges as one.
    fn merge_reported(&mut self, other: &Self) {
        if self.count() == 0 {
            self.clone_from(other);
            return;
        }
        let mut counts = std::collections::BTreeMap::new();
        for bucket in self.reported_buckets().into_iter().chain(other.reported_buckets()) {
            let count = counts.entry((bucket.from_ns, bucket.to_ns)).or_insert(0_u64);
            *count = count.saturating_add(bucket.count);
        }
        let buckets = counts.into_iter().map(|((from_ns, to_ns), count)| ReportedBucket { from_ns, to_ns, count });
        let total_ns = self.total_ns.zip(other.total_ns).map(|(mine, more)| mine.saturating_add(more));
        let both = |pick: fn(u64, u64) -> u64, mine: Option<u64>, theirs: Option<u64>| {
            mine.zip(theirs).map(|(mine, theirs)| pick(mine, theirs))
        };
        *self = Self::reported(
            buckets,
            total_ns,
            both(u64::min, self.min_ns, other.min_ns),
            both(u64::max, self.max_ns, other.max_ns),
        );
    }

    /// Its buckets as [`Self::reported`] takes them, those that hold nothing left out.
    pub fn reported_buckets(&self) -> Vec<ReportedBucket> {
        match &self.buckets {
            Buckets::Reported(buckets) => buckets.clone(),
            buckets => {
                let reported = |(from_ns, last, count): (u64, u64, u64)| ReportedBucket {
                    from_ns,
                    to_ns: Some(last.saturating_add(1)),
                    count,
                };
                buckets.used().into_iter().map(reported).collect()
            }
        }
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        match self.buckets.spread_mut(empty) {
            Some(buckets) => buckets.reset(),
            None => self.buckets = Buckets::Spread(empty()),
        }
        (self.total_ns, self.min_ns, self.max_ns) = (Some(0), None, None);
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

    /// The exact sum of all durations, where it is known.
    pub fn total_ns(&self) -> Option<u64> {
        self.total_ns
    }

    /// The exact mean, unless nothing was counted or the sum is not known.
    pub fn mean_ns(&self) -> Option<f64> {
        let total_ns = self.total_ns.filter(|_| self.count() > 0)?;
        Some(total_ns as f64 / self.count() as f64)
    }

    /// The exact shortest duration, where it is known.
    pub fn min_ns(&self) -> Option<u64> {
        self.min_ns
    }

    /// The exact longest duration, where it is known.
    pub fn max_ns(&self) -> Option<u64> {
        self.max_ns
    }

    /// Durations that were surely shorter than `limit_ns`, and those that perhaps were: the counts of all buckets that end
    /// there or before, and of all that begin before it.
    pub fn below_ns(&self, limit_ns: u64) -> (u64, u64) {
        let sum = |buckets: &mut dyn Iterator<Item = ReportedBucket>| buckets.map(|bucket| bucket.count).sum();
        let buckets = self.reported_buckets();
        let surely = &mut buckets.iter().filter(|bucket| bucket.to_ns.is_some_and(|to_ns| to_ns <= limit_ns)).copied();
        let perhaps = &mut buckets.iter().filter(|bucket| bucket.from_ns < limit_ns).copied();
        (sum(surely), sum(perhaps))
    }

    /// The duration that a share `quantile` (0 to 1) of all waits did not exceed: the upper edge of its bucket, at most
    /// 0.8 % above the true value and never above the maximum. Of one that was reported, whose buckets may be wider, it is the
    /// upper edge too, and absent if that bucket has no upper edge and the maximum is not known.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        self.quantiles_ns(&[quantile])[0]
    }

    /// How wide the bucket of a quantile is, as its upper over its lower edge; 1 where the quantile is known: of what was recorded
    /// here, and where a reported bucket ends at the very share, as those do that are made of percentiles. Absent without a quantile.
    pub fn quantile_width(&self, quantile: f64) -> Option<f64> {
        let Buckets::Reported(buckets) = &self.buckets else { return (self.count() > 0).then_some(1.0) };
        let all = self.count();
        let wanted = ((quantile * all as f64).ceil() as u64).max(1);
        let mut below: u64 = 0;
        for (at, bucket) in buckets.iter().enumerate() {
            below = below.saturating_add(bucket.count);
            if below >= wanted {
                let to_ns = bucket.to_ns.or(self.max_ns)?;
                // Where two histograms with other edges were merged, durations of later buckets may be shorter.
                let rest = buckets.get(at + 1..).unwrap_or_default();
                let from_ns = rest.iter().map(|later| later.from_ns).fold(bucket.from_ns, u64::min);
                let is_apart = rest.iter().all(|later| later.from_ns >= to_ns);
                // A table ends somewhere near the quantile of few durations too, and knows nothing by that; and where its shares
                // are rounded, as those of reports are, of many.
                let is_wide = from_ns == 0 || to_ns / 2 >= from_ns;
                let is_few = all.saturating_sub(wanted) < BEYOND;
                let may_be_chance = is_wide && (is_few || is_of_powers(buckets));
                let ends_there = below - wanted <= 1 + all / 1_000_000 && bucket.to_ns.is_some();
                let is_known = ends_there && is_apart && !may_be_chance;
                return Some(if is_known { 1.0 } else { to_ns as f64 / from_ns.max(1) as f64 });
            }
        }
        None
    }

    /// Whether a quantile is known, and not only bounded by the edge of a wide bucket: those of fio's `json+` and sysbench's
    /// histograms are 1.6 and 1.8 % wide, and know theirs.
    pub fn knows_quantile(&self, quantile: f64) -> bool {
        self.quantile_width(quantile).is_some_and(|width| width <= KNOWN_WIDTH)
    }

    /// Several quantiles, in rising order, in one pass; each as [`Self::quantile_ns`] has it.
    pub fn quantiles_ns(&self, quantiles: &[f64]) -> Vec<Option<u64>> {
        let all = self.count();
        let mut reported = Vec::with_capacity(quantiles.len());
        let mut below: u64 = 0;
        let within = |ns: u64| ns.min(self.max_ns.unwrap_or(u64::MAX)).max(self.min_ns.unwrap_or(0));
        let edges: Vec<(Option<u64>, u64)> = match &self.buckets {
            Buckets::Reported(buckets) => {
                buckets.iter().map(|bucket| (bucket.to_ns.or(self.max_ns), bucket.count)).collect()
            }
            buckets => buckets.used().into_iter().map(|(_, highest, count)| (Some(highest), count)).collect(),
        };
        for (edge, count) in edges {
            below = below.saturating_add(count);
            let reached = |quantile: &&f64| ((**quantile * all as f64).ceil() as u64).max(1) <= below;
            let more = quantiles[reported.len()..].iter().take_while(reached).count();
            reported.extend(std::iter::repeat_n(edge.map(within), more));
        }
        reported.resize(quantiles.len(), self.max_ns());
        reported
    }

    /// The standard deviation of all durations, over their number n, unless nothing was counted.
    ///
    /// `sqrt(sum of c (v - mean)^2 / n)` over buckets with count c, where v is the middle of the bucket, moved into the
    /// range from the exact minimum to the exact maximum, and the mean is the exact one. A duration lies at most half a
    /// bucket from v, which is 1/256 of it (or half a nanosecond), so by the triangle inequality the result is at most
    /// 0.4 % of the root mean square duration off. Durations beyond one hour count as one hour.
    ///
    /// Absent of one that was reported: its buckets are too wide for that.
    pub fn standard_deviation_ns(&self) -> Option<f64> {
        let (mean, min_ns, max_ns) = (self.mean_ns()?, self.min_ns?, self.max_ns?);
        if self.is_reported() {
            return None;
        }
        let squares = self.buckets_ns().map(|(lowest, highest, count)| {
            let middle = (lowest as f64 + highest as f64) / 2.0;
            let off = middle.clamp(min_ns as f64, max_ns as f64) - mean;
            count as f64 * off * off
        });
        Some((squares.sum::<f64>() / self.count() as f64).sqrt())
    }

    /// Counts per power-of-two-microsecond bucket: element `k` holds waits `w` with `2^(k-1) us <= w < 2^k us`
    /// (element 0: below 1 us); the last element holds everything from 2^26 us up.
    ///
    /// A bucket of one that was reported, which spans several elements, counts in the last of them, as tables whose first column is
    /// `<1ms` have it; in none if it has no upper edge. Of the elements that it spans, those that no bucket counts in are absent: so
    /// all counts sum to [`Self::count`], but for buckets without an upper edge. An edge that lies within 2.5 % of a power of two
    /// counts as that, since reports that count in milliseconds of 1,000 us stand beside those of 1,024 us.
    pub fn power_of_two_us(&self) -> [Option<u64>; POWER_OF_TWO_BOUNDS + 1] {
        let mut counts = [Some(0); POWER_OF_TWO_BOUNDS + 1];
        let element = |ns: u64| {
            let whole_us = ns / 1_000;
            ((u64::BITS - whole_us.leading_zeros()) as usize).min(POWER_OF_TWO_BOUNDS)
        };
        if let Buckets::Reported(buckets) = &self.buckets {
            let mut is_gap = [false; POWER_OF_TWO_BOUNDS + 1];
            for bucket in buckets {
                // A bucket that ends a little above a bound ends there, and one that begins a little below it begins there.
                let first = element(bucket.from_ns.saturating_add(bucket.from_ns / 40));
                let end_ns = bucket.to_ns.or(self.max_ns.map(|max_ns| max_ns.saturating_add(1))).unwrap_or(u64::MAX);
                let last = element(end_ns.saturating_sub(1).saturating_sub(end_ns / 40)).max(first);
                if first < last {
                    is_gap[first..=last].fill(true);
                }
                // What lies below an edge that is known does so, wherever it begins.
                if first == last || bucket.to_ns.is_some() {
                    counts[last] = counts[last].map(|count: u64| count.saturating_add(bucket.count));
                }
            }
            // What is known of an element stays, also where another bucket may have more of it.
            for (count, is_gap) in counts.iter_mut().zip(is_gap) {
                *count = count.filter(|count| *count > 0 || !is_gap);
            }
            return counts;
        }
        for (lowest, _, count) in self.buckets_ns() {
            let index = element(lowest);
            counts[index] = counts[index].map(|so_far| so_far + count);
        }
        counts
    }

    /// Every non-empty bucket as (lowest duration in it, highest duration in it, count), in rising order.
    pub fn buckets_ns(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.buckets.used().into_iter()
    }

    /// The HdrHistogram behind it; absent of one that was reported, whose buckets are others.
    pub fn as_hdr(&self) -> Option<Cow<'_, hdrhistogram::Histogram<u64>>> {
        (!self.is_reported()).then(|| self.buckets.spread(empty))
    }

    /// The V2-deflate encoding in base64 that other HdrHistogram tools read.
    fn encode(hdr: &hdrhistogram::Histogram<u64>) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(hdr, &mut bytes).expect("writing to memory does not fail and counts fit");
        STANDARD.encode(bytes)
    }

    /// Adds counts recorded elsewhere in the same layout with narrower counters. `total_ns`, `min_ns` and `max_ns` are
    /// the exact ones of the other side.
    pub fn merge_counts(&mut self, other: &hdrhistogram::Histogram<u32>, total_ns: u64, min_ns: u64, max_ns: u64) {
        if other.is_empty() {
            return;
        }
        let mut more = empty();
        let buckets = self.buckets.spread_mut(empty).unwrap_or(&mut more);
        for bucket in other.iter_recorded() {
            buckets.saturating_record_n(bucket.value_iterated_to(), u64::from(bucket.count_at_value()));
        }
        if self.is_reported() {
            let buckets = Buckets::Spread(more);
            return self.merge_reported(&Self {
                buckets,
                total_ns: Some(total_ns),
                min_ns: Some(min_ns),
                max_ns: Some(max_ns),
            });
        }
        self.total_ns = self.total_ns.map(|sum| sum.saturating_add(total_ns));
        self.min_ns = Some(self.min_ns.map_or(min_ns, |least| least.min(min_ns)));
        self.max_ns = Some(self.max_ns.map_or(max_ns, |most| most.max(max_ns)));
    }

    /// An empty recorder with the same bucket layout and 32-bit counters, for hot paths.
    pub fn narrow_layout() -> hdrhistogram::Histogram<u32> {
        hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS)
            .expect("constant bounds and digits are within HdrHistogram's limits")
    }
}

impl Histogram {
    fn says_otherwise(&self, count: u64) -> HistogramError {
        HistogramError { reason: format!("it holds {} waits but says {count}", self.count()) }
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
    /// Sum of all durations, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total_ns: Option<u64>,
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
    /// HdrHistogram V2 with deflate, base64; values in nanoseconds, two significant digits. Absent where another program
    /// reported the buckets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hdr_v2_deflate_base64: Option<String>,
    /// Buckets as another program reported them; quantiles are the upper edges of these.
    #[serde(default, alias = "told", skip_serializing_if = "Option::is_none")]
    reported: Option<Vec<ReportedBucket>>,
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
            hdr_v2_deflate_base64: self.as_hdr().map(|hdr| Self::encode(&hdr)),
            reported: self.is_reported().then(|| self.reported_buckets()),
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
        if let Some(buckets) = document.reported {
            let histogram = Self::reported(buckets, document.total_ns, document.min_ns, document.max_ns);
            return if histogram.count() == document.count {
                Ok(histogram)
            } else {
                Err(histogram.says_otherwise(document.count))
            };
        }
        let encoded = document.hdr_v2_deflate_base64.ok_or_else(|| fail("it has no counts".to_owned()))?;
        let bytes = STANDARD.decode(encoded).map_err(|e| fail(e.to_string()))?;
        let decoded: hdrhistogram::Histogram<u64> =
            Deserializer::new().deserialize(&mut Cursor::new(bytes)).map_err(|e| fail(e.to_string()))?;
        let mut histogram = Self::default();
        let mut buckets = empty();
        for bucket in decoded.iter_recorded() {
            buckets.saturating_record_n(bucket.value_iterated_to(), bucket.count_at_value());
        }
        histogram.buckets = Buckets::Spread(buckets);
        if histogram.count() != document.count {
            return Err(histogram.says_otherwise(document.count));
        }
        histogram.total_ns = Some(document.total_ns.ok_or_else(|| fail("it has no sum".to_owned()))?);
        (histogram.min_ns, histogram.max_ns) = (document.min_ns, document.max_ns);
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
            assert_eq!(of(&[bound_ns - 1]).power_of_two_us()[k], Some(1), "just below 2^{k} us");
            assert_eq!(of(&[bound_ns]).power_of_two_us()[k + 1], Some(1), "2^{k} us exactly");
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
        assert_eq!(histogram.total_ns(), Some(two_hours + 5));
        assert_eq!(histogram.power_of_two_us()[POWER_OF_TWO_BOUNDS], Some(1));
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

    fn buckets(counts: &[(u64, Option<u64>, u64)]) -> Vec<ReportedBucket> {
        counts
            .iter()
            .map(|(from_ns, to_ns, count)| ReportedBucket { from_ns: *from_ns, to_ns: *to_ns, count: *count })
            .collect()
    }

    #[test]
    fn reported_buckets_give_upper_edges_and_no_more() {
        let reported = Histogram::reported(
            buckets(&[(0, Some(1_024_000), 60), (1_024_000, Some(2_048_000), 39), (2_048_000, None, 1)]),
            Some(90_000_000),
            None,
            None,
        );
        assert_eq!(
            (reported.count(), reported.mean_ns(), reported.min_ns(), reported.max_ns()),
            (100, Some(900_000.0), None, None)
        );
        assert_eq!(reported.quantiles_ns(&[0.5, 0.99, 0.999]), [Some(1_024_000), Some(2_048_000), None]);
        assert_eq!((reported.standard_deviation_ns(), reported.as_hdr().is_none()), (None, true));
        assert_eq!(
            [1_024_000, 1_500_000, 4_000_000].map(|limit| reported.below_ns(limit)),
            [(60, 60), (60, 99), (99, 100)]
        );
        let folded = reported.power_of_two_us();
        assert_eq!(folded[..10], [None; 10], "how many of those below 1 ms were how short, nobody knows");
        assert_eq!((folded[10], folded[11], folded[12], folded[27]), (Some(60), Some(39), None, None));
        assert_eq!([0.9, 0.999].map(|quantile| reported.quantile_width(quantile)), [Some(2.0), None]);
        assert_eq!([0.6, 0.9, 0.999].map(|quantile| reported.knows_quantile(quantile)), [false; 3]);
        let fine =
            Histogram::reported(buckets(&[(100_000, Some(101_600), 9), (101_600, Some(103_200), 9)]), None, None, None);
        assert!(fine.knows_quantile(0.7), "a bucket of fio");
    }

    #[test]
    fn a_table_of_powers_of_two_knows_no_percentile_where_a_rounded_share_ends_at_it() {
        let counts = |edges: [u64; 3]| {
            let [first, second, third] = edges;
            let counts = [(0, Some(first), 900_000), (first, Some(second), 90_000), (second, Some(third), 10_000)];
            Histogram::reported(buckets(&counts), None, None, None)
        };
        for table in [
            [8_192_000, 16_384_000, 32_768_000],
            [8_000_000, 16_000_000, 32_000_000],
            [8_000_000, 32_000_000, SECOND_NS],
        ] {
            assert!(!counts(table).knows_quantile(0.99), "{table:?}");
        }
        let percentiles = counts([8_192_000, 16_384_000, 31_000_000]);
        assert!(percentiles.knows_quantile(0.9) && percentiles.knows_quantile(0.99), "p90, p99 and the maximum");
    }

    #[test]
    fn edges_in_thousands_count_as_powers_of_two() {
        let reported = Histogram::reported(
            buckets(&[(2_000_000, Some(4_000_000), 7), (4_000_000, Some(8_192_000), 2)]),
            None,
            None,
            None,
        );
        assert_eq!(reported.power_of_two_us()[12..14], [Some(7), Some(2)]);
    }

    #[test]
    fn percentiles_that_span_bounds_lose_no_wait() {
        let reported = Histogram::reported(
            buckets(&[
                (20_000, Some(50_000), 10),
                (50_000, Some(60_000), 20),
                (60_000, Some(97_000), 30),
                (97_000, Some(120_000), 25),
                (120_000, Some(600_000), 14),
                (600_000, None, 1),
            ]),
            None,
            None,
            None,
        );
        let folded = reported.power_of_two_us();
        assert_eq!(folded[4..12], [Some(0), None, Some(30), Some(55), None, None, Some(14), None]);
        assert_eq!(folded.iter().flatten().sum::<u64>(), 99, "all but the one without an upper edge");
    }

    #[test]
    fn reported_histograms_merge_with_each_other_and_with_recorded_ones() {
        let mut reported =
            Histogram::reported(buckets(&[(0, Some(1_000), 5), (1_000, Some(2_000), 1)]), None, None, None);
        reported.merge(&Histogram::reported(buckets(&[(0, Some(1_000), 2)]), Some(900), None, None));
        assert_eq!((reported.count(), reported.total_ns(), reported.below_ns(1_000)), (8, None, (7, 7)));
        let mut recorded = of(&[5_000]);
        recorded.merge(&reported);
        assert_eq!((recorded.count(), recorded.max_ns(), recorded.is_reported()), (9, None, true));
        recorded.record(9_000);
        assert_eq!(recorded.count(), 10);
    }

    #[test]
    fn waits_that_were_only_counted_have_no_distribution() {
        let counted = Histogram::counted(12, Some(24_000));
        assert_eq!(
            (counted.mean_ns(), counted.quantile_ns(0.5), counted.is_distribution()),
            (Some(2_000.0), None, false)
        );
        assert!(counted.power_of_two_us().iter().all(Option::is_none));
    }

    #[test]
    fn reported_histograms_come_back_from_the_document() {
        let reported =
            Histogram::reported(buckets(&[(0, Some(1_000), 5), (1_000, None, 1)]), None, Some(10), Some(5_000));
        let text = serde_json::to_string(&reported).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), reported);
        assert!(!text.contains("hdr") && !text.contains("total_ns"), "{text}");
        let wrong = serde_json::from_str::<Histogram>(&text.replace("\"count\":6", "\"count\":7")).unwrap_err();
        assert!(wrong.to_string().contains("it holds 6 waits but says 7"), "{wrong}");
    }

    proptest! {
        #[test]
        fn packed_counts_read_and_merge_as_before(values in prop::collection::vec(0u64..HIGHEST_NS * 2, 0..200)) {
            let spread = of(&values);
            let mut packed = spread.clone();
            packed.pack();
            prop_assert_eq!(&packed, &spread);
            prop_assert_eq!((packed.count(), packed.quantile_ns(0.9)), (spread.count(), spread.quantile_ns(0.9)));
            prop_assert_eq!(serde_json::to_string(&packed).unwrap(), serde_json::to_string(&spread).unwrap());
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
            prop_assert_eq!(folded, expected.map(Some));
        }

        #[test]
        fn quantiles_are_within_one_bucket(values in prop::collection::vec(1u64..1 << 40, 1..300), q in 0.0f64..1.0) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let rank = ((q * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1;
            let exact = sorted[rank] as f64;
            let reported = of(&values).quantile_ns(q).unwrap() as f64;
            prop_assert!(reported >= exact * 0.999 && reported <= exact * 1.008, "reported {reported}, exact {exact}");
        }

        #[test]
        fn the_standard_deviation_is_within_its_bound(values in prop::collection::vec(0u64..1 << 40, 1..300)) {
            let mean_of = |squares: f64| squares / values.len() as f64;
            let mean = mean_of(values.iter().map(|v| *v as f64).sum());
            let exact = mean_of(values.iter().map(|v| (*v as f64 - mean).powi(2)).sum()).sqrt();
            let root_mean_square = mean_of(values.iter().map(|v| (*v as f64).powi(2)).sum()).sqrt();
            let reported = of(&values).standard_deviation_ns().unwrap();
            prop_assert!((reported - exact).abs() <= 0.004 * root_mean_square + 0.5, "reported {reported}, exact {exact}");
        }

        #[test]
        fn quantiles_are_those_of_hdr_histogram_packed_or_not(
            values in prop::collection::vec(0u64..1 << 43, 1..200),
            quantile in 0.0_f64..=1.0,
        ) {
            let mut histogram = of(&values);
            let reported = histogram.as_hdr().unwrap().value_at_quantile(quantile);
            let wanted = Some(reported.min(histogram.max_ns().unwrap()).max(histogram.min_ns().unwrap()));
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
