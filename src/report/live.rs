//! One second in one line, for a display that scrolls.

mod requests;
mod servers;

use crate::analysis::{SINGLE_BLOCK_READ, rate};
use crate::record::Interval;
use crate::report::words::{NONE, UNKNOWN};
use crate::units::{Nanos, percent, short_count};

/// What was seen in one interval, in columns that line up from line to line. Cheap, but not for a hot path.
pub fn interval_line(interval: &Interval) -> String {
    if requests::are_counted(interval) {
        return requests::line(interval);
    }
    if servers::are_counted(interval) {
        return servers::line(interval);
    }
    let seen = Seen::of(interval);
    let ended_s = (interval.offset_ns + interval.duration_ns) as f64 / 1e9;
    format!(
        "{ended_s:>5.0} s {:>6} ops/s {:>6} LIO/s {:>6} reads/s {:>6} writes/s {:>8} MB/s  read p99 {:>7}  hit {:>7}{}",
        seen.operations,
        seen.logical_reads,
        seen.reads,
        seen.writes,
        seen.megabytes,
        seen.read_p99,
        seen.hit,
        if interval.warmup { "  warm-up" } else { "" },
    )
}

/// The same in at most `width` characters, for a line that is drawn over and over. What matters least is left out first;
/// reads and how long they take stay.
pub fn interval_words(interval: &Interval, width: usize) -> String {
    if requests::are_counted(interval) {
        return fitting(requests::parts(interval), width);
    }
    if servers::are_counted(interval) {
        return fitting(servers::parts(interval), width);
    }
    let seen = Seen::of(interval);
    let warmup = interval.warmup.then(|| "warm-up".to_owned());
    let parts = [
        // The order in which they are shown, and how soon they are left out.
        (warmup, 0),
        (Some(format!("{} ops/s", seen.operations)), 2),
        (Some(format!("{} LIO/s", seen.logical_reads)), 5),
        (Some(format!("{} reads/s", seen.reads)), 0),
        (Some(format!("p99 {}", seen.read_p99)), 0),
        (Some(format!("{} writes/s", seen.writes)), 1),
        (Some(format!("{} MB/s", seen.megabytes)), 3),
        (Some(format!("hit {}", seen.hit)), 4),
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

/// The figures of one interval in words.
struct Seen {
    operations: String,
    logical_reads: String,
    reads: String,
    writes: String,
    megabytes: String,
    read_p99: String,
    hit: String,
}

impl Seen {
    fn of(interval: &Interval) -> Self {
        let counters = &interval.counters;
        let per_s = |count| rate(count, interval.duration_ns);
        let short = |count| per_s(count).map_or_else(|| UNKNOWN.to_owned(), short_count);
        let bytes = match (counters.physical_read_bytes, counters.physical_write_bytes) {
            (None, None) => None,
            (read, write) => Some(read.unwrap_or(0) + write.unwrap_or(0)),
        };
        Self {
            operations: short(counters.operations),
            logical_reads: short(counters.logical_reads),
            reads: short(counters.physical_reads),
            writes: short(counters.physical_writes),
            megabytes: per_s(bytes).map_or_else(|| UNKNOWN.to_owned(), |bytes| format!("{:.1}", bytes / 1e6)),
            read_p99: interval
                .waits
                .get(SINGLE_BLOCK_READ)
                .and_then(|waits| waits.quantile_ns(0.99))
                .map_or_else(|| NONE.to_owned(), |ns| Nanos(ns).to_string()),
            hit: match (counters.cache_hits, counters.logical_reads) {
                (Some(hits), Some(reads)) if reads > 0 => format!("{} %", percent(hits as f64 / reads as f64)),
                (Some(_), Some(_)) => NONE.to_owned(),
                _ => UNKNOWN.to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;

    #[test]
    fn a_narrow_line_leaves_out_what_matters_least() {
        let mut interval = sample::updates(60).steps[0].intervals[0].clone();
        interval.warmup = true;
        let wide = interval_words(&interval, 200);
        for part in ["warm-up", "ops/s", "LIO/s", "reads/s", "p99", "writes/s", "MB/s", "hit"] {
            assert!(wide.contains(part), "{part} is not in {wide}");
        }
        let mut before = wide;
        for width in (0..200).rev() {
            let words = interval_words(&interval, width);
            let least = words.contains("warm-up") && words.contains(" reads/s") && words.contains("p99");
            assert!(least && (words.chars().count() <= width || !words.contains("writes/s")), "{width}: {words}");
            assert!(words.len() <= before.len(), "{width}: {words}");
            before = words;
        }
    }
}
