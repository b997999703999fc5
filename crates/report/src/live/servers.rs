//! One second on database servers.

use crate::sections::servers::COMMIT;
use crate::words::{NONE, UNKNOWN};
use analysis::counted_per_s;
use model::record::{Counters, Interval, ServerStats};
use model::units::{Nanos, percent, short_count};

/// Whether the interval is of load on a server.
pub(super) fn are_counted(interval: &Interval) -> bool {
    !interval.servers.is_empty() || interval.counters.buffer_misses.is_some()
}

pub(super) fn line(interval: &Interval) -> String {
    let ended_s = (interval.offset_ns + interval.duration_ns) as f64 / 1e9;
    let seen = Seen::of(interval);
    format!(
        "{ended_s:>5.0} s {:>6} ops/s  op p99 {:>7}{}{} {:>6} device reads/s {:>6} {} MB/s  hit {:>7} {:>6} LIO/s{}",
        seen.operations,
        seen.p99,
        seen.commits.as_ref().map_or_else(String::new, |commits| format!("  {commits}")),
        seen.misses.map_or_else(String::new, |misses| format!(" {misses:>6} misses/s")),
        seen.device_reads,
        seen.log_megabytes,
        seen.log,
        seen.hit,
        seen.logical_reads,
        if interval.warmup { "  warm-up" } else { "" },
    )
}

/// What was read, found and logged meanwhile.
pub(super) fn reads(interval: &Interval) -> String {
    let seen = Seen::of(interval);
    format!(
        "{} {:>6} device reads/s {:>6} {} MB/s  hit {:>7}",
        seen.misses.map_or_else(String::new, |misses| format!(" {misses:>6} misses/s")),
        seen.device_reads,
        seen.log_megabytes,
        seen.log,
        seen.hit,
    )
}

/// In the order in which they are shown, and how soon they are left out.
pub(super) fn parts(interval: &Interval) -> Vec<(Option<String>, u8)> {
    let seen = Seen::of(interval);
    vec![
        (interval.warmup.then(|| "warm-up".to_owned()), 0),
        (Some(format!("{} ops/s", seen.operations)), 0),
        (Some(format!("p99 {}", seen.p99)), 0),
        (seen.commits, 1),
        (seen.misses.map(|misses| format!("{misses} misses/s")), 1),
        (Some(format!("{} device reads/s", seen.device_reads)), 2),
        (Some(format!("{} {} MB/s", seen.log_megabytes, seen.log)), 3),
        (Some(format!("hit {}", seen.hit)), 4),
        (Some(format!("{} LIO/s", seen.logical_reads)), 5),
    ]
}

/// The figures of one interval in words.
struct Seen {
    operations: String,
    logical_reads: String,
    /// Absent where reads pass by the page cache: each that misses the buffer cache goes to storage.
    misses: Option<String>,
    device_reads: String,
    log_megabytes: String,
    /// The meaning of the log: only servers that keep changed blocks back for it report levels of them.
    log: &'static str,
    /// With how long they took, where the server timed them; absent where none was made.
    commits: Option<String>,
    /// Of operations: a server does not time its reads for its clients.
    p99: String,
    hit: String,
}

impl Seen {
    fn of(interval: &Interval) -> Self {
        let counted = |count: fn(&Counters) -> Option<u64>| {
            counted_per_s(&interval.counters, &interval.servers, interval.duration_ns, count)
        };
        let short = |rate: Option<f64>| rate.map_or_else(|| UNKNOWN.to_owned(), short_count);
        let (hits, reads) = (counted(|counters| counters.cache_hits), counted(|counters| counters.logical_reads));
        let keeps_redo = interval.servers.iter().any(ServerStats::keeps_redo);
        let (misses, device_reads) =
            (counted(|counters| counters.buffer_misses), counted(|counters| counters.physical_reads));
        Self {
            operations: short(counted(|counters| counters.operations)),
            logical_reads: short(reads),
            misses: (misses.is_some() || !keeps_redo || device_reads.is_none()).then(|| short(misses)),
            device_reads: short(device_reads),
            log: if keeps_redo { "redo" } else { "WAL" },
            log_megabytes: counted(|counters| counters.redo_bytes)
                .map_or_else(|| UNKNOWN.to_owned(), |bytes| format!("{:.1}", bytes / 1e6)),
            commits: counted(|counters| counters.commits).filter(|rate| *rate > 0.0).map(|rate| {
                let p99 = interval.waits.get(COMMIT).and_then(|waits| waits.quantile_ns(0.99));
                let p99 = p99.map_or_else(String::new, |ns| format!(" (p99 {})", Nanos(ns)));
                format!("{} commits/s{p99}", short_count(rate))
            }),
            p99: interval.response.quantile_ns(0.99).map_or_else(|| NONE.to_owned(), |ns| Nanos(ns).to_string()),
            hit: match (hits, reads) {
                (Some(hits), Some(reads)) if reads > 0.0 => format!("{} %", percent(hits / reads)),
                (Some(_), Some(_)) => NONE.to_owned(),
                _ => UNKNOWN.to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::COMMIT;
    use crate::{interval_line, interval_words};
    use model::record::{Interval, sample};

    fn second(run: model::record::Run) -> Interval {
        run.steps[0].intervals[5].clone()
    }

    #[test]
    fn a_second_on_a_server_tells_misses_and_device_reads() {
        let local = second(sample::servers::private_cluster());
        assert_eq!(
            interval_line(&local),
            "    6 s    151 ops/s  op p99 64.0 ms  30 commits/s   9.1K misses/s   8.6K device reads/s    1.7 WAL MB/s  hit  10.4 %    10K LIO/s"
        );
        let narrow = interval_words(&local, 60);
        assert_eq!(narrow, "151 ops/s, p99 64.0 ms, 30 commits/s, 9.1K misses/s");
        let mut timed = local.clone();
        timed.waits.insert(COMMIT.to_owned(), sample::latencies(30, 1_000_000));
        assert!(interval_line(&timed).contains("  30 commits/s (p99 "), "{}", interval_line(&timed));
        assert_eq!(interval_words(&local, 30), "151 ops/s, p99 64.0 ms");
    }

    #[test]
    fn a_second_on_a_server_that_reads_past_the_page_cache_has_no_misses_beside_its_reads() {
        let line = interval_line(&second(sample::servers::innodb()));
        assert!(line.contains("  17K device reads/s") && line.contains(" redo MB/s"), "{line}");
        assert!(!line.contains("misses") && !line.contains("WAL"), "{line}");
    }

    #[test]
    fn what_the_page_cache_answered_on_another_machine_is_unknown() {
        let line = interval_line(&second(sample::servers::remote()));
        assert!(line.contains(" misses/s      ? device reads/s"), "{line}");
    }

    #[test]
    fn counters_read_late_are_divided_by_the_time_between_the_readings() {
        let mut late = second(sample::servers::remote());
        let before = interval_line(&late);
        let server = &mut late.servers[0];
        server.elapsed_ns *= 2;
        for count in [&mut server.counters.logical_reads, &mut server.counters.cache_hits] {
            *count = count.map(|count| count * 2);
        }
        server.counters.buffer_misses = server.counters.buffer_misses.map(|count| count * 2);
        late.counters.add(&server.counters);
        assert_eq!(interval_line(&late), before);
    }
}
