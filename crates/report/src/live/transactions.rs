//! One second of users who do transactions.

use super::servers;
use crate::words::NONE;
use analysis::{counted_per_s, rate};
use model::record::{CONNECT, Histogram, Interval};
use model::units::{Nanos, group_thousands, short_count};

/// What was seen in one second, with what ended in the last sixty: for a display that scrolls.
pub fn transactions_line(interval: &Interval, per_minute: Option<u64>) -> String {
    let ended_s = (interval.offset_ns + interval.duration_ns) as f64 / 1e9;
    let Seen { per_s, minute, p99, commits, connects, errors } = Seen::of(interval, per_minute);
    let rest: String =
        [minute, commits, connects, errors].into_iter().flatten().map(|part| format!("  {part}")).collect();
    let servers = if servers::are_counted(interval) { servers::reads(interval) } else { String::new() };
    let warmup = if interval.warmup { "  warm-up" } else { "" };
    format!("{ended_s:>5.0} s {per_s:>6} transactions/s  p99 {p99:>7}{rest}{servers}{warmup}")
}

/// The same in at most `width` characters.
pub fn transactions_words(interval: &Interval, per_minute: Option<u64>, width: usize) -> String {
    let Seen { per_s, minute, p99, commits, connects, errors } = Seen::of(interval, per_minute);
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
    super::fitting(parts, width)
}

struct Seen {
    per_s: String,
    /// Absent before a minute has passed.
    minute: Option<String>,
    p99: String,
    commits: Option<String>,
    connects: Option<String>,
    errors: Option<String>,
}

impl Seen {
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

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::{Counters, sample};

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
