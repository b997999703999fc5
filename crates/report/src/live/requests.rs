//! One second of raw storage, where an operation is one request.

use crate::words::{NONE, UNKNOWN};
use analysis::{SINGLE_BLOCK_READ, rate};
use model::record::{Histogram, Interval};
use model::units::{Nanos, percent, short_count};

/// What single writes of raw storage are timed as.
const WRITE: &str = "direct path write";
/// Less of the response time than this passes before a request is sent also in a closed loop, whose clock is read apart.
const QUEUED: f64 = 0.1;

/// Whether the interval is of raw storage: whoever reads through a cache counts that.
pub(super) fn are_counted(interval: &Interval) -> bool {
    let counters = &interval.counters;
    counters.logical_reads.is_none() && counters.physical_reads.is_some() && counters.physical_writes.is_some()
}

pub(super) fn line(interval: &Interval) -> String {
    let ended_s = (interval.offset_ns + interval.duration_ns) as f64 / 1e9;
    let seen = Seen::of(interval);
    let apart = seen.apart.map(|(reads, writes)| format!("  {reads}  {writes}"));
    let queued = seen.queued.map(|queued| format!("  queued {queued:>4} %"));
    let warmup = interval.warmup.then(|| "  warm-up".to_owned());
    let rest: String = [apart, queued, warmup].into_iter().flatten().collect();
    format!("{ended_s:>5.0} s {:>6} IOPS {:>8} MB/s  p99 {:>7}{rest}", seen.requests, seen.megabytes, seen.p99)
}

/// In the order in which they are shown, and how soon they are left out.
pub(super) fn parts(interval: &Interval) -> Vec<(Option<String>, u8)> {
    let seen = Seen::of(interval);
    let (reads, writes) = seen.apart.unzip();
    vec![
        (interval.warmup.then(|| "warm-up".to_owned()), 0),
        (Some(format!("{} IOPS", seen.requests)), 0),
        (reads, 2),
        (writes, 2),
        (Some(format!("{} MB/s", seen.megabytes)), 1),
        (Some(format!("p99 {}", seen.p99)), 0),
        (seen.queued.map(|queued| format!("queued {queued} %")), 3),
    ]
}

/// The figures of one interval in words.
struct Seen {
    requests: String,
    /// Reads and writes, where there are both, each with how long they took once sent.
    apart: Option<(String, String)>,
    megabytes: String,
    p99: String,
    /// Share of the response time that passed before requests were sent, where the schedule runs ahead of them.
    queued: Option<String>,
}

impl Seen {
    fn of(interval: &Interval) -> Self {
        let counters = &interval.counters;
        let short = |count| rate(count, interval.duration_ns).map_or_else(|| UNKNOWN.to_owned(), short_count);
        let bytes = counters.physical_read_bytes.zip(counters.physical_write_bytes).map(|(read, write)| read + write);
        let megabytes = rate(bytes, interval.duration_ns).map(|bytes| bytes / 1e6);
        let some = |count: Option<u64>| count.is_some_and(|count| count > 0);
        let mixed = some(counters.physical_reads) && some(counters.physical_writes);
        Self {
            requests: short(counters.operations),
            apart: mixed.then(|| {
                let kind = |count, noun, event| {
                    let p99 = interval.waits.get(event).and_then(|waits| waits.quantile_ns(0.99));
                    let p99 = p99.map_or_else(String::new, |ns| format!(" (p99 {})", Nanos(ns)));
                    format!("{} {noun}/s{p99}", short(count))
                };
                let reads = kind(counters.physical_reads, "reads", SINGLE_BLOCK_READ);
                (reads, kind(counters.physical_writes, "writes", WRITE))
            }),
            megabytes: megabytes.map_or_else(|| UNKNOWN.to_owned(), |rate| format!("{rate:.1}")),
            p99: interval.response.quantile_ns(0.99).map_or_else(|| NONE.to_owned(), |ns| Nanos(ns).to_string()),
            queued: queued_share(interval).filter(|share| *share >= QUEUED).map(percent),
        }
    }
}

/// Waits begin when a request is sent, responses when it was due.
fn queued_share(interval: &Interval) -> Option<f64> {
    let waited: u64 = interval.waits.values().map(Histogram::total_ns).sum::<Option<u64>>()?;
    let response = interval.response.total_ns().filter(|ns| *ns > 0)?;
    Some(1.0 - waited as f64 / response as f64)
}

#[cfg(test)]
mod tests {
    use crate::{interval_line, interval_words};
    use model::record::{Counters, Interval, sample};

    fn second(reads: u64, writes: u64, queued_ns: u64) -> Interval {
        let waits = sample::latencies(reads + writes, 1_000_000);
        Interval {
            duration_ns: 1_000_000_000,
            counters: Counters {
                operations: Some(reads + writes),
                physical_reads: Some(reads),
                physical_read_bytes: Some(reads * 8_192),
                physical_writes: Some(writes),
                physical_write_bytes: Some(writes * 8_192),
                ..Counters::default()
            },
            response: sample::latencies(reads + writes, 1_000_000 + queued_ns),
            waits: [("db file sequential read".to_owned(), waits)].into(),
            ..Interval::default()
        }
    }

    #[test]
    fn raw_storage_tells_requests_and_nothing_of_a_cache() {
        assert_eq!(interval_line(&second(5_000, 0, 0)), "    1 s   5.0K IOPS     41.0 MB/s  p99 2.41 ms");
        assert_eq!(interval_words(&second(5_000, 0, 0), 80), "5.0K IOPS, 41.0 MB/s, p99 2.41 ms");
    }

    #[test]
    fn reads_and_writes_are_distinguished_and_so_is_the_queue() {
        let mixed = second(3_000, 2_000, 1_000_000);
        assert_eq!(
            interval_line(&mixed),
            "    1 s   5.0K IOPS     41.0 MB/s  p99 4.82 ms  3.0K reads/s (p99 2.41 ms)  2.0K writes/s  queued 50.0 %"
        );
        assert_eq!(interval_words(&mixed, 40), "5.0K IOPS, 41.0 MB/s, p99 4.82 ms");
        assert_eq!(interval_words(&mixed, 10), "5.0K IOPS, p99 4.82 ms");
    }
}
