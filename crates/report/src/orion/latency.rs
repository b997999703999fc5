//! Latencies of a point: the line of the summary, and the histogram.

use super::{Point, Points, Size, Way};
use model::record::{Histogram, POWER_OF_TWO_BOUNDS};

/// Where ORION's last bucket ends, in microseconds.
const LAST_BOUND_US: u64 = 1 << 28;

/// Mean, extremes and standard deviation, in microseconds.
pub(super) struct Latency {
    pub(super) mean: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) standard_deviation: f64,
}

impl Latency {
    fn of(times: &Histogram) -> Option<Self> {
        Some(Self {
            mean: times.mean_ns()? / 1e3,
            min: times.min_ns()? as f64 / 1e3,
            max: times.max_ns()? as f64 / 1e3,
            standard_deviation: times.standard_deviation_ns()? / 1e3,
        })
    }

    pub(super) fn line(&self, name: &str, place: &str) -> String {
        let Self { mean, min, max, standard_deviation } = self;
        format!(
            "{name} Latency: avg={mean:.3} us, min={min:.3} us, max={max:.3} us, std dev={standard_deviation:.3} us @ \
             {place}\n"
        )
    }
}

/// Latency of small reads and of small writes, a line for each that there were.
pub(super) fn small_lines(point: &Point<'_>) -> String {
    [(Way::Read, "Small Read"), (Way::Write, "Small Write")]
        .into_iter()
        .filter_map(|(way, name)| Some(Latency::of(point.times(Size::Small, way)?)?.line(name, &point.place())))
        .collect()
}

/// The histogram of the point's requests of one size.
pub(super) fn histogram(point: &Point<'_>, size: Size) -> String {
    let name = match size {
        Size::Small => "Small",
        Size::Large => "Large",
    };
    // These points were measured here, so that every bucket is known.
    let known = |times: &Histogram| times.power_of_two_us().map(|count| count.unwrap_or(0));
    let counts = |way| point.times(size, way).map_or([0; POWER_OF_TWO_BOUNDS + 1], known);
    let (reads, writes) = (counts(Way::Read), counts(Way::Write));
    let mut text = format!("{name} Read / Write Latency Histogram @ {}\n", point.place());
    text.push_str("        Latency:                         # of IOs (read)          # of IOs (write)\n");
    let (mut read, mut written) = (Column::new(&reads), Column::new(&writes));
    for row in rows(&reads, &writes) {
        let Row { from_us, to_us, counts } = row;
        let (reads, read_percent) = read.count(reads[counts.clone()].iter().sum());
        let (writes, write_percent) = written.count(writes[counts].iter().sum());
        text.push_str(&format!(
            "{from_us:>9} - {to_us:<11}us:{reads:>16} ({read_percent:>6.2}%){writes:>15} ({write_percent:>6.2}%)\n"
        ));
    }
    text
}

/// `_hist.csv`: every point's histograms, in the order in which the points ran.
pub(super) fn histograms(points: &Points<'_>) -> String {
    let small = |point: &Point<'_>| (point.small > 0).then(|| histogram(point, Size::Small));
    let large = |point: &Point<'_>| (point.large > 0).then(|| histogram(point, Size::Large));
    points.seen.iter().flat_map(|point| [small(point), large(point)]).flatten().collect::<Vec<_>>().join("\n")
}

struct Row {
    from_us: u64,
    to_us: u64,
    /// Buckets that the row adds up.
    counts: std::ops::Range<usize>,
}

/// Bucket `k` holds waits from `2^(k-1)` to `2^k` microseconds, bucket 0 those below 1 and the last one all the rest.
fn rows(reads: &[u64], writes: &[u64]) -> Vec<Row> {
    let holds_some = |bucket: usize| reads[bucket] + writes[bucket] > 0;
    let Some(first) = (0..=POWER_OF_TWO_BOUNDS).find(|bucket| holds_some(*bucket)) else {
        return vec![Row { from_us: 0, to_us: LAST_BOUND_US, counts: 0..0 }];
    };
    let last = (0..=POWER_OF_TWO_BOUNDS).rfind(|bucket| holds_some(*bucket)).unwrap_or(first);
    let end = POWER_OF_TWO_BOUNDS.min(last + 1);
    let lower_us = |bucket: usize| if bucket == 0 { 0 } else { 1_u64 << (bucket - 1) };
    let mut rows = Vec::new();
    if first > 0 {
        rows.push(Row { from_us: 0, to_us: lower_us(first), counts: 0..first });
    }
    rows.extend((first..end).map(|bucket| Row {
        from_us: lower_us(bucket),
        to_us: 1 << bucket,
        counts: bucket..bucket + 1,
    }));
    rows.push(Row { from_us: lower_us(end), to_us: LAST_BOUND_US, counts: end..POWER_OF_TWO_BOUNDS + 1 });
    rows
}

/// Counts with the percentage of all that they and those before them make.
struct Column {
    so_far: u64,
    total: u64,
}

impl Column {
    fn new(counts: &[u64]) -> Self {
        Self { so_far: 0, total: counts.iter().sum() }
    }

    fn count(&mut self, count: u64) -> (u64, f64) {
        self.so_far += count;
        let percent = if self.total == 0 { 0.0 } else { self.so_far as f64 * 100.0 / self.total as f64 };
        (count, percent)
    }
}
