//! One second in one line, for a display that scrolls.

mod host;
mod network;
mod servers;

use crate::words::{NONE, UNKNOWN};
use analysis::{SINGLE_BLOCK_READ, counted_per_s, rate};
use model::record::{CONNECT, Histogram, Interval, known_sum};
use model::units::{Nanos, group_thousands, percent, short_count};

/// Wait by which databases time a commit.
const COMMIT: &str = "log file sync";

/// What was seen in one interval, in columns that line up from line to line. Cheap, but not for a hot path.
pub fn interval_line(interval: &Interval) -> String {
    if let Some(parts) = host::parts(interval) {
        return host::line(interval, parts);
    }
    if network::is_seen(interval) {
        return network::line(interval);
    }
    if are_counted(interval) {
        return requests_line(interval);
    }
    if servers::are_counted(interval) {
        return servers::line(interval);
    }
    let seen = Seen::of(interval);
    let ended_s = (interval.offset_ns + interval.duration_ns) as f64 / 1e9;
    let known = |figure: &Option<String>, width: usize, unit: &str| {
        figure.as_ref().map_or_else(String::new, |figure| format!("  {figure:>width$} {unit}"))
    };
    format!(
        "{ended_s:>5.0} s{}  read p99 {:>7}{}{}{}{}{}{}{}{}",
        known(&seen.reads, 6, "reads/s"),
        seen.read_p99,
        seen.commits.as_ref().map_or_else(String::new, |commits| format!("  {commits:>26}")),
        known(&seen.redo_megabytes, 6, "redo MB/s"),
        known(&seen.operations, 6, "ops/s"),
        known(&seen.writes, 6, "writes/s"),
        known(&seen.megabytes, 6, "MB/s"),
        known(&seen.hit, 6, "hit"),
        known(&seen.logical_reads, 6, "LIO/s"),
        if interval.warmup { "  warm-up" } else { "" },
    )
}

/// The same in at most `width` characters, for a line that is drawn over and over. What matters least is left out first, and
/// stands last; reads and how long they take stay.
pub fn interval_words(interval: &Interval, width: usize) -> String {
    if let Some(parts) = host::parts(interval) {
        return fitting(parts, width);
    }
    if network::is_seen(interval) {
        return fitting(network::parts(interval), width);
    }
    if are_counted(interval) {
        return fitting(requests_parts(interval), width);
    }
    if servers::are_counted(interval) {
        return fitting(servers::parts(interval), width);
    }
    let seen = Seen::of(interval);
    let known = |figure: Option<String>, unit: &str| figure.map(|figure| format!("{figure} {unit}"));
    let parts = [
        // The order in which they are shown, and how soon they are left out.
        (interval.warmup.then(|| "warm-up".to_owned()), 0),
        (known(seen.reads, "reads/s"), 0),
        (Some(format!("p99 {}", seen.read_p99)), 0),
        (seen.commits, 2),
        (known(seen.redo_megabytes, "redo MB/s"), 1),
        (known(seen.operations, "ops/s"), 2),
        (known(seen.writes, "writes/s"), 3),
        (known(seen.megabytes, "MB/s"), 4),
        (known(seen.hit, "hit"), 5),
        (known(seen.logical_reads, "LIO/s"), 5),
    ];
    fitting(parts.into(), width)
}

/// Parts in the order in which they are shown, with commas between them. Those with the largest numbers are left out first,
/// all with one number together, until the rest fits; what has number 0 stays.
fn fitting(mut parts: Vec<(Option<String>, u8)>, width: usize) -> String {
    let mut words = String::new();
    for most in (0..=5).rev() {
        parts.iter_mut().filter(|(_, soon)| *soon > most).for_each(|(part, _)| *part = None);
        let shown: Vec<&str> = parts.iter().filter_map(|(part, _)| part.as_deref()).collect();
        words = shown.join(", ");
        if words.chars().count() <= width {
            break;
        }
    }
    words
}

/// The figures of one interval in words; absent is what the target does not count.
struct Seen {
    operations: Option<String>,
    logical_reads: Option<String>,
    reads: Option<String>,
    writes: Option<String>,
    /// Of data: redo has a figure of its own.
    megabytes: Option<String>,
    redo_megabytes: Option<String>,
    read_p99: String,
    /// With how long they took; absent where none was made.
    commits: Option<String>,
    hit: Option<String>,
}

impl Seen {
    fn of(interval: &Interval) -> Self {
        let counters = &interval.counters;
        let per_s = |count| rate(count, interval.duration_ns);
        let short = |count| per_s(count).map(short_count);
        let megabytes = |bytes| per_s(bytes).map(|bytes| format!("{:.1}", bytes / 1e6));
        Self {
            operations: short(counters.operations),
            logical_reads: short(counters.logical_reads),
            reads: short(counters.physical_reads),
            writes: short(counters.physical_writes),
            megabytes: megabytes(
                counters.physical_read_bytes.zip(counters.physical_write_bytes).map(|(read, write)| read + write),
            ),
            redo_megabytes: megabytes(counters.redo_bytes),
            read_p99: interval
                .waits
                .get(SINGLE_BLOCK_READ)
                .and_then(|waits| waits.quantile_ns(0.99))
                .map_or_else(|| NONE.to_owned(), |ns| Nanos(ns).to_string()),
            commits: short(counters.commits.filter(|commits| *commits > 0)).map(|commits| {
                let p99 = interval.waits.get(COMMIT).and_then(|waits| waits.quantile_ns(0.99));
                p99.map_or_else(
                    || format!("{commits} commits/s"),
                    |ns| format!("{commits} commits/s, p99 {}", Nanos(ns)),
                )
            }),
            hit: counters.cache_hits.zip(counters.logical_reads).map(|(hits, reads)| {
                if reads == 0 { NONE.to_owned() } else { format!("{} %", percent(hits as f64 / reads as f64)) }
            }),
        }
    }
}

/// What was seen in one second, with what ended in the last sixty: for a display that scrolls.
pub fn transactions_line(interval: &Interval, per_minute: Option<u64>) -> String {
    let ended_s = (interval.offset_ns + interval.duration_ns) as f64 / 1e9;
    let TransactionsSeen { per_s, minute, p99, commits, connects, errors } = TransactionsSeen::of(interval, per_minute);
    let rest: String =
        [minute, commits, connects, errors].into_iter().flatten().map(|part| format!("  {part}")).collect();
    let servers = if servers::are_counted(interval) { servers::reads(interval) } else { String::new() };
    let warmup = if interval.warmup { "  warm-up" } else { "" };
    format!("{ended_s:>5.0} s {per_s:>6} transactions/s  p99 {p99:>7}{rest}{servers}{warmup}")
}

/// The same in at most `width` characters.
pub fn transactions_words(interval: &Interval, per_minute: Option<u64>, width: usize) -> String {
    let TransactionsSeen { per_s, minute, p99, commits, connects, errors } = TransactionsSeen::of(interval, per_minute);
    let mut parts = vec![
        (interval.warmup.then(|| "warm-up".to_owned()), 0),
        (Some(format!("{per_s} transactions/s")), 0),
        (minute, 1),
        (Some(format!("p99 {p99}")), 0),
        (errors, 1),
        (commits, 2),
        (connects, 2),
    ];
    // What the server does besides, as of any load on one: commits stand there already.
    if servers::are_counted(interval) {
        parts.extend(servers::parts(interval).into_iter().skip(4));
    }
    fitting(parts, width)
}

struct TransactionsSeen {
    per_s: String,
    /// Absent before a minute has passed.
    minute: Option<String>,
    p99: String,
    commits: Option<String>,
    connects: Option<String>,
    errors: Option<String>,
}

impl TransactionsSeen {
    fn of(interval: &Interval, per_minute: Option<u64>) -> Self {
        let per_s = |count| rate(Some(count), interval.duration_ns).filter(|rate| *rate > 0.0).map(short_count);
        let commits = counted_per_s(&interval.counters, &interval.servers, interval.duration_ns, |count| count.commits);
        let p99 = |times: &Histogram| times.quantile_ns(0.99).map(|ns| Nanos(ns).to_string());
        let connects = interval
            .waits
            .get(CONNECT)
            .and_then(|times| Some(format!("{} connects/s (p99 {})", per_s(times.count())?, p99(times)?)));
        Self {
            per_s: interval.counters.operations.and_then(per_s).unwrap_or_else(|| "0".to_owned()),
            minute: per_minute.map(|minute| format!("{} in the last minute", group_thousands(minute as f64))),
            p99: p99(&interval.response).unwrap_or_else(|| NONE.to_owned()),
            commits: commits.filter(|rate| *rate > 0.0).map(|rate| format!("{} commits/s", short_count(rate))),
            connects,
            errors: interval.counters.errors.and_then(per_s).map(|errors| format!("{errors} errors/s")),
        }
    }
}

/// What single writes of raw storage are timed as.
const WRITE: &str = "direct path write";
/// Less of the response time than this passes before a request is sent also in a closed loop, whose clock is read apart.
const QUEUED: f64 = 0.1;

/// Whether the interval is of raw storage: whoever reads through a cache counts that.
fn are_counted(interval: &Interval) -> bool {
    let counters = &interval.counters;
    counters.logical_reads.is_none() && counters.physical_reads.is_some() && counters.physical_writes.is_some()
}

fn requests_line(interval: &Interval) -> String {
    let ended_s = (interval.offset_ns + interval.duration_ns) as f64 / 1e9;
    let seen = RequestsSeen::of(interval);
    let apart = seen.apart.map(|(reads, writes)| format!("  {reads}  {writes}"));
    let queued = seen.queued.map(|queued| format!("  queued {queued:>4} %"));
    let warmup = interval.warmup.then(|| "  warm-up".to_owned());
    let rest: String = [apart, queued, warmup].into_iter().flatten().collect();
    format!("{ended_s:>5.0} s {:>6} IOPS {:>8} MB/s  p99 {:>7}{rest}", seen.requests, seen.megabytes, seen.p99)
}

/// In the order in which they are shown, and how soon they are left out.
fn requests_parts(interval: &Interval) -> Vec<(Option<String>, u8)> {
    let seen = RequestsSeen::of(interval);
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
struct RequestsSeen {
    requests: String,
    /// Reads and writes, where there are both, each with how long they took once sent.
    apart: Option<(String, String)>,
    megabytes: String,
    p99: String,
    /// Share of the response time that passed before requests were sent, where the schedule runs ahead of them.
    queued: Option<String>,
}

impl RequestsSeen {
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
    let waited = known_sum(interval.waits.values().map(Histogram::total_ns))?;
    let response = interval.response.total_ns().filter(|ns| *ns > 0)?;
    Some(1.0 - waited as f64 / response as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::{Counters, sample};

    #[test]
    fn a_narrow_line_leaves_out_what_matters_least() {
        let mut interval = sample::updates(60).steps[0].intervals[0].clone();
        interval.warmup = false;
        let narrow = interval_words(&interval, 45);
        assert!(narrow.contains(" reads/s, p99 ") && narrow.ends_with(" redo MB/s"), "{narrow}");
        interval.warmup = true;
        assert!(!interval_words(&interval, 200).contains("commits/s, p99"), "how long they take is not known here");
        interval.waits.insert(COMMIT.to_owned(), interval.waits[SINGLE_BLOCK_READ].clone());
        let wide = interval_words(&interval, 200);
        for part in ["warm-up", "reads/s", "p99", "redo MB/s", "commits/s, p99", "ops/s", "writes/s", "% hit", "LIO/s"]
        {
            assert!(wide.contains(part), "{part} is not in {wide}");
        }
        let mut before = wide;
        for width in (0..200).rev() {
            let words = interval_words(&interval, width);
            let least = words.contains("warm-up") && words.contains(" reads/s") && words.contains("p99");
            assert!(least && (words.chars().count() <= width || !words.contains("redo")), "{width}: {words}");
            assert!(words.len() <= before.len(), "{width}: {words}");
            before = words;
        }
    }

    #[test]
    fn what_a_target_does_not_count_is_not_reported() {
        let mut interval = sample::updates(60).steps[0].intervals[0].clone();
        interval.counters.physical_writes = None;
        interval.counters.redo_bytes = None;
        let lines = [interval_line(&interval), interval_words(&interval, 200)];
        assert!(lines.iter().all(|line| !line.contains("writes/s") && !line.contains("redo") && !line.contains('?')));
        assert!(lines.iter().all(|line| !line.contains("misses")), "{lines:?}");
    }

    #[test]
    fn a_second_tells_transactions_their_minute_and_connections_as_far_as_there_is_room() {
        let mut second = Interval {
            offset_ns: 59_000_000_000,
            duration_ns: 1_000_000_000,
            counters: Counters { operations: Some(880), commits: Some(671), errors: Some(0), ..Counters::default() },
            response: sample::latencies(880, 4_000_000),
            ..Interval::default()
        };
        assert_eq!(
            transactions_line(&second, Some(52_800)),
            "   60 s    880 transactions/s  p99 9.60 ms  52,800 in the last minute  671 commits/s"
        );
        let early = transactions_line(&second, None);
        assert!(!early.contains("minute") && !early.contains("connects") && !early.contains("errors"), "{early}");
        second.waits.insert(CONNECT.to_owned(), sample::latencies(880, 1_000_000));
        second.counters.errors = Some(3);
        let all = transactions_words(&second, Some(52_800), 200);
        for part in ["52,800 in the last minute", "880 connects/s (p99 ", "3 errors/s"] {
            assert!(all.contains(part), "{part}: {all}");
        }
        assert_eq!(transactions_words(&second, Some(52_800), 40), "880 transactions/s, p99 9.60 ms");
    }
}

#[cfg(test)]
mod requests_tests {
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
