//! A latency histogram that merges exactly and folds into power-of-two wait tables without loss.

use std::borrow::Cow;
use std::fmt;
use std::io::{Cursor, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use super::counts::{Counts, duration_in, longest_beside, number_of};

/// Upper bounds, in microseconds and exclusive, of the power-of-two wait buckets that tables print: `<1us` to `<2^26us`
/// (67 s); longer waits belong to the overflow bucket. "1 ms" in Oracle's tables is the bound 1024.
pub const POWER_OF_TWO_BOUNDS: usize = 27;

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
        Self { buckets: Buckets::Spread(Counts::default()), total_ns: Some(0), min_ns: None, max_ns: None }
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let Self { buckets, total_ns, min_ns, max_ns } = other;
        let same_buckets = match (&self.buckets, buckets) {
            (Buckets::Reported(mine), Buckets::Reported(theirs)) => mine == theirs,
            (Buckets::Reported(_), _) | (_, Buckets::Reported(_)) => false,
            (mine, theirs) => mine.spread() == theirs.spread(),
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
        match self.buckets.spread_mut() {
            Some(buckets) => buckets.record_n(ns, n),
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
        match self.buckets.spread_mut() {
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
                let bucket = |(from_ns, last, count): (u64, u64, u64)| ReportedBucket {
                    from_ns,
                    to_ns: Some(last.saturating_add(1)),
                    count,
                };
                buckets.used().into_iter().map(bucket).collect()
            }
        }
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        match self.buckets.spread_mut() {
            Some(buckets) => buckets.clear(),
            None => self.buckets = Buckets::Spread(Counts::default()),
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

    /// How many durations, from the shortest on, are a share `quantile` (0 to 1) of all; at least one. Numbers such as 0.999 are not exact
    /// in binary: of 1,000 they make 999 and not 1,000.
    pub fn rank(&self, quantile: f64) -> u64 {
        let exact = quantile * self.count() as f64;
        ((exact - exact * 4.0 * f64::EPSILON).ceil() as u64).max(1)
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
        let wanted = self.rank(quantile);
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
        let mut values = Vec::with_capacity(quantiles.len());
        let mut below: u64 = 0;
        let within = |ns: u64| ns.min(self.max_ns.unwrap_or(u64::MAX)).max(self.min_ns.unwrap_or(0));
        let edges: Vec<(Option<u64>, u64)> = match &self.buckets {
            Buckets::Reported(buckets) => {
                buckets.iter().map(|bucket| (bucket.to_ns.or(self.max_ns), bucket.count)).collect()
            }
            buckets => buckets.used().into_iter().map(|(_, highest, count)| (Some(highest), count)).collect(),
        };
        let mut rest = quantiles.iter().map(|quantile| self.rank(*quantile)).peekable();
        for (edge, count) in edges {
            if rest.peek().is_none() {
                break;
            }
            below = below.saturating_add(count);
            while rest.next_if(|wanted| *wanted <= below).is_some() {
                values.push(edge.map(within));
            }
        }
        values.resize(quantiles.len(), self.max_ns());
        values
    }

    /// The standard deviation of all durations, over their number n, unless nothing was counted.
    ///
    /// `sqrt(sum of c (v - mean)^2 / n)` over buckets with count c, where v is the middle of the bucket, moved into the
    /// range from the exact minimum to the exact maximum, and the mean is the exact one. A duration lies at most half a
    /// bucket from v, which is 1/256 of it (or half a nanosecond), so by the triangle inequality the result is at most
    /// 0.4 % of the root mean square duration off. Durations beyond 2^42 ns (73 minutes) count as one hour.
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

    /// The geometric mean of all durations, unless nothing was counted; a duration of 0 counts as 1 ns.
    ///
    /// `exp(sum of c ln(v) / n)` over buckets with count c, where v is the middle of the bucket, moved into the range from the exact
    /// minimum to the exact maximum. A duration lies at most half a bucket from v, which is 1/256 of it, so the result is at most
    /// 0.4 % off. Durations beyond 2^42 ns (73 minutes) count as one hour.
    ///
    /// Absent of one that was reported: its buckets are too wide for that.
    pub fn geometric_mean_ns(&self) -> Option<f64> {
        let (min_ns, max_ns) = (self.min_ns?, self.max_ns?);
        if self.is_reported() {
            return None;
        }
        let logarithms = self.buckets_ns().map(|(lowest, highest, count)| {
            let middle = (lowest as f64 + highest as f64) / 2.0;
            count as f64 * middle.max(min_ns as f64).min(max_ns as f64).max(1.0).ln()
        });
        Some((logarithms.sum::<f64>() / self.count() as f64).exp())
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

    /// The same as other HdrHistogram tools have it; absent of one that was reported, whose buckets are others.
    pub fn to_hdr(&self) -> Option<hdrhistogram::Histogram<u64>> {
        self.buckets.spread().map(|buckets| buckets.to_hdr())
    }

    /// The V2-deflate encoding in base64 that other HdrHistogram tools read.
    fn encode(hdr: &hdrhistogram::Histogram<u64>) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(hdr, &mut bytes).expect("writing to memory does not fail and counts fit");
        STANDARD.encode(bytes)
    }

    /// Adds counts recorded elsewhere with narrower counters. `total_ns`, `min_ns` and `max_ns` are the exact ones of the other side.
    pub fn merge_counts(&mut self, other: &Counts<u32>, total_ns: u64, min_ns: u64, max_ns: u64) {
        if other.count() == 0 {
            return;
        }
        let Some(buckets) = self.buckets.spread_mut() else {
            let mut more = Counts::default();
            more.merge(other);
            return self.merge_reported(&Self {
                buckets: Buckets::Spread(more),
                total_ns: Some(total_ns),
                min_ns: Some(min_ns),
                max_ns: Some(max_ns),
            });
        };
        buckets.merge(other);
        self.total_ns = self.total_ns.map(|sum| sum.saturating_add(total_ns));
        self.min_ns = Some(self.min_ns.map_or(min_ns, |least| least.min(min_ns)));
        self.max_ns = Some(self.max_ns.map_or(max_ns, |most| most.max(max_ns)));
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
#[derive(Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[cfg_attr(any(test, feature = "schemas"), schemars(rename = "Histogram"))]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reported: Option<Vec<ReportedBucket>>,
}

/// Quantiles of which the document says the durations.
const DOCUMENTED: [f64; 6] = [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999];

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let quantiles = self.quantiles_ns(&DOCUMENTED);
        Document {
            count: self.count(),
            total_ns: self.total_ns,
            min_ns: self.min_ns(),
            max_ns: self.max_ns(),
            mean_ns: self.mean_ns(),
            p50_ns: quantiles[0],
            p90_ns: quantiles[1],
            p95_ns: quantiles[2],
            p99_ns: quantiles[3],
            p99_9_ns: quantiles[4],
            p99_99_ns: quantiles[5],
            hdr_v2_deflate_base64: self.to_hdr().map(|hdr| Self::encode(&hdr)),
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
        let bytes = inflated(&bytes).map_err(fail)?;
        let decoded: hdrhistogram::Histogram<u64> =
            Deserializer::new().deserialize(&mut Cursor::new(bytes)).map_err(|e| fail(e.to_string()))?;
        let mut histogram = Self { buckets: Buckets::Spread(Counts::of_hdr(&decoded)), ..Self::default() };
        // A run of thousands of steps has tens of thousands of them.
        histogram.pack();
        if histogram.count() != document.count {
            return Err(histogram.says_otherwise(document.count));
        }
        histogram.total_ns = Some(document.total_ns.ok_or_else(|| fail("it has no sum".to_owned()))?);
        (histogram.min_ns, histogram.max_ns) = (document.min_ns, document.max_ns);
        Ok(histogram)
    }
}

/// What an encoded histogram begins with, and one that is deflated: their formats.
const PLAIN: u32 = 0x1c84_9313;
const DEFLATED: u32 = 0x1c84_9314;
/// Bytes of format, length, offset, digits, range and ratio, which stand before the counts.
const HEADER_BYTES: usize = 40;
/// Longest encoding, inflated: each of the buckets of three digits below one hour with nine bytes.
const MAX_ENCODED_BYTES: u64 = 512 << 10;
/// We write two digits, other tools two or three.
const MAX_DIGITS: u32 = 3;

/// An encoding without its deflation, if its header asks for no more memory than counts can need: the decoder believes the header.
fn inflated(encoded: &[u8]) -> Result<Vec<u8>, String> {
    let word = |bytes: &[u8], at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    let plain = match word(encoded, 0) {
        Some(DEFLATED) => {
            let mut plain = Vec::new();
            let inflater = flate2::read::ZlibDecoder::new(encoded.get(8..).unwrap_or_default());
            // What follows the counts, or is damaged behind them, is not looked at.
            let read = inflater.take(MAX_ENCODED_BYTES).read_to_end(&mut plain);
            if plain.len() < HEADER_BYTES {
                read.map_err(|error| error.to_string())?;
            }
            plain
        }
        _ => encoded.to_vec(),
    };
    match (word(&plain, 0), word(&plain, 4), word(&plain, 12)) {
        (Some(PLAIN), Some(length), Some(digits)) => {
            let is_there = plain.len().saturating_sub(HEADER_BYTES) as u64 >= u64::from(length);
            if digits > MAX_DIGITS || !is_there { Err("its header is damaged".to_owned()) } else { Ok(plain) }
        }
        _ => Err("it is in no known encoding".to_owned()),
    }
}

#[cfg(any(test, feature = "schemas"))]
impl schemars::JsonSchema for Histogram {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Document::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Document::json_schema(generator)
    }
}

/// Counts per bucket.
#[derive(Debug, Clone)]
enum Buckets {
    /// One counter a bucket, used or not: 36 KiB.
    Spread(Counts<u64>),
    /// Used buckets only: 2 or 3 bytes for each, of which a second of I/O fills a few hundred.
    Packed(Packed),
    /// Those that another program reported, by their upper edge.
    Reported(Vec<ReportedBucket>),
}

/// A bucket of a histogram that another program reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ReportedBucket {
    /// Its durations are not shorter than this.
    pub from_ns: u64,
    /// And shorter than this; a program that reports percentiles means not longer. Absent where only the other edge is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_ns: Option<u64>,
    /// How many.
    pub count: u64,
}

/// Pairs of numbers in rising order of durations: how many buckets further a used one lies, and its count; each in as many bytes of seven bits as it needs, the last of which has its top bit clear.
#[derive(Debug, Clone, Default)]
struct Packed {
    count: u64,
    pairs: Box<[u8]>,
}

impl Packed {
    fn of(buckets: &Counts<u64>) -> Self {
        let mut pairs = Vec::new();
        let mut last = 0;
        for (ns, count) in buckets.iter() {
            let number = number_of(ns);
            push(&mut pairs, number - last);
            push(&mut pairs, count);
            last = number;
        }
        Self { count: buckets.count(), pairs: pairs.into_boxed_slice() }
    }

    /// Memory that the counts take.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.pairs.len()
    }

    /// The shortest duration of each bucket, and its count.
    fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (mut rest, mut number) = (&*self.pairs, 0);
        std::iter::from_fn(move || {
            let (further, count) = (pull(&mut rest)?, pull(&mut rest)?);
            number += further;
            Some((duration_in(number), count))
        })
    }

    fn spread(&self) -> Counts<u64> {
        let mut buckets = Counts::default();
        self.iter().for_each(|(ns, count)| buckets.record_n(ns, count));
        buckets
    }
}

fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn pull(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(number)
}

impl Buckets {
    /// How many durations were counted.
    pub(super) fn count(&self) -> u64 {
        match self {
            Self::Spread(buckets) => buckets.count(),
            Self::Packed(packed) => packed.count,
            Self::Reported(buckets) => buckets.iter().fold(0, |sum, bucket| sum.saturating_add(bucket.count)),
        }
    }

    /// The counts to read from; reported buckets have none.
    pub(super) fn spread(&self) -> Option<Cow<'_, Counts<u64>>> {
        match self {
            Self::Spread(buckets) => Some(Cow::Borrowed(buckets)),
            Self::Packed(packed) => Some(Cow::Owned(packed.spread())),
            Self::Reported(_) => None,
        }
    }

    /// The counts to add to; packed ones are spread out, and reported ones cannot be.
    pub(super) fn spread_mut(&mut self) -> Option<&mut Counts<u64>> {
        if let Self::Packed(packed) = self {
            *self = Self::Spread(packed.spread());
        }
        match self {
            Self::Spread(buckets) => Some(buckets),
            Self::Packed(_) | Self::Reported(_) => None,
        }
    }

    /// Keeps the same counts in as little memory as they need.
    pub(super) fn pack(&mut self) {
        if let Self::Spread(buckets) = self {
            *self = Self::Packed(Packed::of(buckets));
        }
    }

    /// Every used bucket as (shortest duration in it, longest duration in it, count), in rising order.
    pub(super) fn used(&self) -> Vec<(u64, u64, u64)> {
        let used = |(ns, count)| (ns, longest_beside(ns), count);
        match self {
            Self::Spread(buckets) => buckets.iter().map(used).collect(),
            Self::Packed(packed) => packed.iter().map(used).collect(),
            Self::Reported(buckets) => {
                let last = |bucket: &ReportedBucket| {
                    bucket.to_ns.map_or(u64::MAX, |to_ns| to_ns.saturating_sub(1).max(bucket.from_ns))
                };
                buckets.iter().map(|bucket| (bucket.from_ns, last(bucket), bucket.count)).collect()
            }
        }
    }

    /// Adds these counts to others.
    pub(super) fn add_to(&self, sum: &mut Counts<u64>) {
        match self {
            Self::Spread(buckets) => sum.merge(buckets),
            Self::Packed(packed) => packed.iter().for_each(|(ns, count)| sum.record_n(ns, count)),
            Self::Reported(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
