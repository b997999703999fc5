//! One second in one line, for a display that scrolls.

use crate::analysis::{SINGLE_BLOCK_READ, rate};
use crate::record::Interval;
use crate::report::words::{NONE, UNKNOWN};
use crate::units::{Nanos, percent, short_count};

/// What was seen in one interval, in columns that line up from line to line. Cheap, but not for a hot path.
pub fn interval_line(interval: &Interval) -> String {
    let counters = &interval.counters;
    let per_s = |count| rate(count, interval.duration_ns);
    let short = |value: Option<f64>| value.map_or_else(|| UNKNOWN.to_owned(), short_count);
    let bytes = match (counters.physical_read_bytes, counters.physical_write_bytes) {
        (None, None) => None,
        (read, write) => Some(read.unwrap_or(0) + write.unwrap_or(0)),
    };
    let megabytes = per_s(bytes).map_or_else(|| UNKNOWN.to_owned(), |bytes| format!("{:.1}", bytes / 1e6));
    let read_p99 = interval
        .waits
        .get(SINGLE_BLOCK_READ)
        .and_then(|waits| waits.quantile_ns(0.99))
        .map_or_else(|| NONE.to_owned(), |ns| Nanos(ns).to_string());
    let hit = match (counters.cache_hits, counters.logical_reads) {
        (Some(hits), Some(reads)) if reads > 0 => format!("{} %", percent(hits as f64 / reads as f64)),
        (Some(_), Some(_)) => NONE.to_owned(),
        _ => UNKNOWN.to_owned(),
    };
    let ended_s = (interval.offset_ns + interval.duration_ns) as f64 / 1e9;
    format!(
        "{ended_s:>5.0} s {:>6} ops/s {:>6} LIO/s {:>6} reads/s {:>6} writes/s {megabytes:>8} MB/s  read p99 {read_p99:>7}  hit {hit:>7}{}",
        short(per_s(counters.operations)),
        short(per_s(counters.logical_reads)),
        short(per_s(counters.physical_reads)),
        short(per_s(counters.physical_writes)),
        if interval.warmup { "  warm-up" } else { "" },
    )
}
