//! Points become steps.

use model::record::{Ending, Histogram, Level, OperationStats, OrionLevel, ReportedBucket, ReportedFigure};
use std::collections::BTreeMap;

use super::super::draft::{self, step, whole};
use super::super::{Began, Draft, oracle_time};
use super::{Point, Rows};

/// Latency of a point's reads or writes, in microseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Latency {
    /// Mean.
    pub(super) mean: Option<f64>,
    /// Shortest.
    pub(super) min: Option<f64>,
    /// Longest.
    pub(super) max: Option<f64>,
}

/// Reads or writes, small or large.
pub(super) const KINDS: [&str; 4] = ["read", "write", "large read", "large write"];

/// What is reported on one point.
#[derive(Debug, Default)]
pub(super) struct Reported {
    /// Figures by ORION's names.
    pub(super) reported: Vec<ReportedFigure>,
    /// Latencies of [`KINDS`].
    pub(super) latencies: [Latency; 4],
    /// Histograms of small and of large requests.
    pub(super) histograms: [Rows; 2],
    /// Small requests per second.
    pub(super) small_per_s: Option<f64>,
}

/// What is known of the load of every point.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Load {
    /// How long a point ran; 0 if that is not reported.
    pub(super) duration_ns: u64,
    /// Requests outstanding for a large load of one: 1 where they are random; absent if that is not reported.
    pub(super) requests_per_large: Option<u32>,
    /// Share of writes, in percent.
    pub(super) write_pct: Option<f64>,
    /// Size of small requests.
    pub(super) small_bytes: Option<u64>,
}

/// Points in the order in which they are reported.
#[derive(Debug, Default)]
pub(super) struct Points {
    /// Each with its place in that order.
    points: BTreeMap<Point, (usize, Reported)>,
}

impl Points {
    /// What is reported on a point so far.
    pub(super) fn at(&mut self, point: Point) -> &mut Reported {
        let place = self.points.len();
        &mut self.points.entry(point).or_insert_with(|| (place, Reported::default())).1
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Reported> {
        self.points.values().map(|(_, reported)| reported)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether nothing is reported.
    pub(super) fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Adds a step for each point, named as Plimsoll names its own.
    pub(super) fn into_steps(self, draft: &mut Draft, load: &Load) {
        let mut points: Vec<(Point, (usize, Reported))> = self.points.into_iter().collect();
        points.sort_by_key(|(_, (place, _))| *place);
        for (point, (_, reported)) in points {
            let Point { small, large } = point;
            let mut step = step(draft.steps.len(), format!("small{small}_large{large}"), load.duration_ns);
            if load.duration_ns > 0 {
                step.window.ending = Ending::Time;
            }
            let level = Level::Orion(OrionLevel { small, large });
            step.parameters = level.parameters();
            step.level = Some(level);
            let large_requests = match large {
                0 => Some(0),
                large => load.requests_per_large.and_then(|each| large.checked_mul(each)),
            };
            step.load.sessions = large_requests.and_then(|large| small.checked_add(large));
            step.operations = operations(point, &reported, load);
            let only_small = step.operations.iter().map(|operation| operation.count).reduce(u64::saturating_add);
            if let Some(count) = only_small.filter(|_| large == 0) {
                step.counters.operations = Some(count);
                let of = |kind: &str| {
                    let of_kind = step.operations.iter().find(|operation| operation.kind == kind);
                    of_kind.map(|operation| operation.count)
                };
                (step.counters.physical_reads, step.counters.physical_writes) = (of("read"), of("write"));
                let bytes = |count: u64| count.checked_mul(load.small_bytes?);
                step.counters.physical_read_bytes = step.counters.physical_reads.and_then(bytes);
                step.counters.physical_write_bytes = step.counters.physical_writes.and_then(bytes);
            }
            step.reported = reported.reported;
            draft.steps.push(step);
        }
    }
}

/// How many requests a point did and how long they took. Where there is no histogram but it is reported how long a point ran and
/// that it only read small blocks, their number is the rate over that time.
fn operations(point: Point, reported: &Reported, load: &Load) -> Vec<OperationStats> {
    let mut operations = Vec::new();
    for (at, (kind, latency)) in KINDS.iter().zip(reported.latencies).enumerate() {
        let rows = if at < 2 { reported.histograms.first() } else { reported.histograms.last() };
        let buckets: &[ReportedBucket] = match (rows, at % 2) {
            (Some(rows), 0) => &rows.reads,
            (Some(rows), _) => &rows.writes,
            (None, _) => &[],
        };
        let count = buckets.iter().fold(0_u64, |sum, bucket| sum.saturating_add(bucket.count));
        let ns = |us: Option<f64>| us.and_then(|us| whole(us * 1e3));
        let sum_ns = |count: u64| latency.mean.and_then(|mean| whole(mean * 1e3 * count as f64));
        let times = if count > 0 {
            Histogram::reported(buckets.to_vec(), sum_ns(count), ns(latency.min), ns(latency.max))
        } else if at == 0 && point.large == 0 && load.write_pct == Some(0.0) && load.duration_ns > 0 {
            let Some(count) =
                reported.small_per_s.and_then(|rate| super::super::draft::count_of(rate, load.duration_ns))
            else {
                continue;
            };
            let all = ReportedBucket { from_ns: 0, to_ns: None, count };
            Histogram::reported([all], sum_ns(count), ns(latency.min), ns(latency.max))
        } else {
            continue;
        };
        let block_touches = times.count();
        operations.push(OperationStats { block_touches, ..draft::operations(*kind, times.clone(), times) });
    }
    operations
}

/// A text that is not too long for a note.
pub(super) fn short(text: &str) -> String {
    text.trim().chars().take(80).collect()
}

/// The name of a file without its folders and its last ending.
pub(super) fn file_stem(path: &str) -> Option<&str> {
    let name = path.rsplit(['/', '\\']).next()?;
    let name = name.strip_suffix(".gz").unwrap_or(name);
    name.rsplit_once('.').map_or(Some(name), |(stem, _)| Some(stem))
}

/// The instant in `san_20211113_1809` or `san_20211113_1809_iops`, on the clock of the machine; Plimsoll writes it in UTC.
pub(super) fn began_by_name(name: &str, is_utc: bool) -> Option<Began> {
    let parts: Vec<&str> = name.rsplit('_').take(3).collect();
    let is_digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    let pair = parts.windows(2).find_map(|pair| match pair {
        [time, date] if is_digits(time, 4) && is_digits(date, 8) => Some((*date, *time)),
        _ => None,
    });
    let (date, time) = pair?;
    let zone = if is_utc { " +00:00" } else { "" };
    let text = format!(
        "{}-{}-{} {}:{}{zone}",
        date.get(..4)?,
        date.get(4..6)?,
        date.get(6..)?,
        time.get(..2)?,
        time.get(2..)?
    );
    oracle_time::began(&text)
}

/// Parameters by Plimsoll's names of them.
pub(super) type Parameters = BTreeMap<String, String>;
