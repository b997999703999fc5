//! What a step sent to storage, and how evenly.

use model::record::{Counters, Histogram, Interval, Run, Step};
use model::units::{Nanos, group_thousands};

/// What a limit or a credit is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Requests sent to storage.
    Requests,
    /// Bytes of such requests.
    Bytes,
}

impl Counted {
    /// `per_s` in words: `3,000 requests/s` or `125 MB/s`.
    pub(super) fn rate_words(self, per_s: f64) -> String {
        match self {
            Self::Requests => format!("{} requests/s", group_thousands(per_s)),
            Self::Bytes => format!("{} MB/s", group_thousands(per_s / 1e6)),
        }
    }

    /// `amount` in words: `5.4 million requests` or `1,080 GB`.
    pub(super) fn amount_words(self, amount: f64) -> String {
        match self {
            Self::Requests if amount >= 1e6 => format!("{:.2} million requests", amount / 1e6),
            Self::Requests => format!("{} requests", group_thousands(amount)),
            Self::Bytes if amount >= 1e10 => format!("{} GB", group_thousands(amount / 1e9)),
            Self::Bytes => format!("{} MB", group_thousands(amount / 1e6)),
        }
    }
}

/// Requests of at least this many bytes are limited by bytes rather than by their number.
pub(super) const LARGE_REQUEST_BYTES: f64 = 131_072.0;

/// Data reads and writes; where one is unknown, the other. Log writes are not among them. Of a database that uses the page
/// cache only reads from storage: what it writes is written to storage later, by others and in other requests.
pub(super) fn requests(counters: &Counters) -> Option<u64> {
    let writes = counters.physical_writes.filter(|_| !uses_page_cache(counters));
    sum(counters.physical_reads, writes)
}

/// Bytes of those.
pub(super) fn bytes(counters: &Counters) -> Option<u64> {
    let writes = counters.physical_write_bytes.filter(|_| !uses_page_cache(counters));
    sum(counters.physical_read_bytes, writes)
}

/// Whether these are counts of a database that reads and writes through the page cache.
fn uses_page_cache(counters: &Counters) -> bool {
    counters.buffer_misses.is_some()
}

fn sum(reads: Option<u64>, writes: Option<u64>) -> Option<u64> {
    match (reads, writes) {
        (None, None) => None,
        (reads, writes) => Some(reads.unwrap_or(0) + writes.unwrap_or(0)),
    }
}

/// Whether an operation of this run is one request to storage, as in raw I/O, rather than many through a cache.
pub fn operations_are_requests(run: &Run) -> bool {
    run.workload().is_of_requests()
}

/// Mean size of a request.
pub(super) fn request_bytes(step: &Step) -> Option<f64> {
    let requests = requests(&step.counters).filter(|requests| *requests > 0)?;
    Some(bytes(&step.counters)? as f64 / requests as f64)
}

/// Whole intervals inside the window.
pub(super) fn inside(step: &Step) -> impl Iterator<Item = &Interval> {
    let longest = step.intervals.iter().map(|interval| interval.duration_ns).max().unwrap_or(0);
    step.intervals.iter().filter(move |interval| !interval.warmup && interval.duration_ns > longest / 2)
}

/// Rate of what `count` counts in each of these.
pub(super) fn rates_inside(step: &Step, count: impl Fn(&Counters) -> Option<u64>) -> Vec<f64> {
    inside(step).filter_map(|interval| super::rate(count(&interval.counters), interval.duration_ns)).collect()
}

/// Times of all operations together; absent if none is recorded.
pub(super) fn merged<'a>(parts: impl Iterator<Item = &'a Histogram>) -> Option<Histogram> {
    let mut all = Histogram::default();
    parts.for_each(|part| all.merge(part));
    (all.count() > 0).then_some(all)
}

/// A length of time as people say it: whole minutes or hours where seconds no longer matter.
pub(super) fn about(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => Nanos((s * 1e9) as u64).to_string(),
        s if s < 7_200.0 => format!("{} minutes", group_thousands((s / 60.0).ceil())),
        s => format!("{:.1} hours", s / 3_600.0),
    }
}
