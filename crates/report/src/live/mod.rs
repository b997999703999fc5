//! One second in one line, for a display that scrolls.

mod host;
mod network;
mod requests;
mod servers;
mod transactions;

pub use transactions::{transactions_line, transactions_words};

use crate::words::NONE;
use analysis::{SINGLE_BLOCK_READ, rate};
use model::record::Interval;
use model::units::{Nanos, percent, short_count};

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
    if requests::are_counted(interval) {
        return requests::line(interval);
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
    if requests::are_counted(interval) {
        return fitting(requests::parts(interval), width);
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

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample;

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
}
