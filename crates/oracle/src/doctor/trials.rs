//! What is tried out: the clock, the way to the server, reads and commits. Judging is apart from trying.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::meanings::{BATCHED, DIRECT, NEIGHBOURS, SINGLE, is_of};
use measure::doctor::Check;
use model::units::{Nanos, group_thousands};

/// A step of the server's clock, in microseconds, that is a tenth of a read of fast storage; and one that is longer than that read.
const COARSE_STEP_US: f64 = 10.0;
const USELESS_STEP_US: f64 = 1_000.0;
/// A round trip that takes longer than most reads do.
const LONG_ROUND_TRIP: Duration = Duration::from_millis(1);
/// Share of reads that must be of single blocks before nothing is said.
const SINGLE_BLOCK_SHARE: f64 = 0.95;
/// Commits that take longer than this wait for something else than storage.
const LONG_COMMIT_US: u64 = 100_000;

/// Events of reading, as servers call them: one block, several at once here and there, several in a row, past the cache.
const READS: [&[&str]; 4] = [&SINGLE, &BATCHED, &NEIGHBOURS, &DIRECT];
/// The wait of a commit for its redo.
pub(super) const COMMIT_WAIT: &str = "log file sync";

/// Waits and their microseconds, by event.
pub(super) type Waits = BTreeMap<String, (u64, u64)>;

/// What was waited for in between.
pub(super) fn difference(before: &Waits, after: &Waits) -> Waits {
    let between = after.iter().filter_map(|(event, (count, us))| {
        let (had, had_us) = before.get(event).copied().unwrap_or_default();
        let count = count.checked_sub(had).filter(|count| *count > 0)?;
        Some((event.clone(), (count, us.saturating_sub(had_us))))
    });
    between.collect()
}

/// The clock that times batches: its shortest step in microseconds, and how many it made.
pub(super) fn clock(smallest_us: Option<f64>, steps: u64) -> Check {
    let topic = "clock of the server";
    let Some(step) = smallest_us.filter(|_| steps > 0) else {
        return Check::problem(topic, "SYSTIMESTAMP stood still", "send operations as statements: `--send statement`");
    };
    let finding = format!("SYSTIMESTAMP goes on in steps of {} or more", Nanos((step * 1e3).round() as u64));
    let advice = "operations of a batch are timed no finer than that; send them as statements: `--send statement`";
    if step >= USELESS_STEP_US {
        Check::problem(topic, finding, advice)
    } else if step > COARSE_STEP_US {
        Check::advice(topic, finding, advice)
    } else {
        Check::good(topic, finding)
    }
}

/// Round trips that have nothing to do on the other side.
pub(super) fn round_trips(mut took: Vec<Duration>) -> Option<Check> {
    took.sort();
    let median = *took.get(took.len() / 2)?;
    let [shown, low, high] = [median, *took.first()?, *took.last()?].map(|took| Nanos(took.as_nanos() as u64));
    let finding = format!("{shown} in the median of {} ({low} to {high})", took.len());
    Some(if median > LONG_ROUND_TRIP {
        let advice =
            "this machine is far from the server: send operations in batches, which the server times, or move nearer";
        Check::advice("round trip", finding, advice)
    } else {
        Check::good("round trip", finding)
    })
}

/// What reads of the load's kind waited for: `operations` of them touched `rows` in `took`. The waits are unknown where the user
/// may not see them.
pub(super) fn reads(operations: u64, rows: u64, took: Duration, waits: Option<&Waits>) -> Check {
    let topic = "reads";
    let took = Nanos(took.as_nanos() as u64);
    let load = format!("{} operations touched {} rows in {took}", group(operations), group(rows));
    let Some(waits) = waits else {
        return Check::advice(
            topic,
            format!("{load}; what they waited for is not known"),
            "grant the right to v$session_event",
        );
    };
    let sum = |events: &[&str], of: fn(&(u64, u64)) -> u64| -> u64 {
        waits.iter().filter(|(event, _)| is_of(event, events)).map(|(_, waited)| of(waited)).sum()
    };
    let [single, parallel, scattered, direct] = READS.map(|events| sum(events, |(count, _)| *count));
    let all = single + parallel + scattered + direct;
    if all == 0 {
        return Check::advice(
            topic,
            format!("{load} and waited for none: all blocks came from the buffer cache"),
            "storage is not measured so; make more data, or measure after the cache was emptied",
        );
    }
    let mean = sum(&READS.concat(), |(_, us)| *us) as f64 / all as f64;
    let mean = Nanos((mean * 1e3).round() as u64);
    let mix =
        [("of several blocks at once", parallel), ("of neighbouring blocks", scattered), ("past the cache", direct)]
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(what, count)| format!(", {} {what}", group(count)))
            .collect::<String>();
    let finding = format!("{load}, by {} reads of single blocks{mix}; {mean} in the mean", group(single));
    if single as f64 / all as f64 >= SINGLE_BLOCK_SHARE {
        Check::good(topic, finding)
    } else {
        let advice = "the server prefetches several blocks at once, which SLOB switches off (see prefetching). Read \
            key by key, or treat latencies as those of larger reads";
        Check::advice(topic, finding, advice)
    }
}

/// How long commits took, in microseconds, and, where the user may see that, how often the server waited for redo meanwhile and how
/// often it asked for that. Where the log writer is done before anybody waits, as with a log in persistent memory, only the latter
/// counts.
pub(super) fn commits(mut took_us: Vec<u64>, waits: Option<u64>, synchronous: Option<u64>) -> Option<Check> {
    took_us.sort_unstable();
    let (low, median, high) = (*took_us.first()?, took_us[took_us.len() / 2], *took_us.last()?);
    let [low, median_ns, high] = [low, median, high].map(|us| Nanos(us * 1000));
    let count = took_us.len() as u64;
    let seen = waits.map_or_else(String::new, |waits| format!(", with {waits} waits for redo ({COMMIT_WAIT})"));
    let asked = synchronous.map_or_else(String::new, |asked| format!(", and {asked} redo synch writes"));
    let finding = format!("{count} commits took {low} to {high}, {median_ns} in the median{seen}{asked}");
    Some(match waits.max(synchronous) {
        Some(waited) if waited < count => Check::advice(
            "commits",
            finding + ": not all waited, although they requested it",
            "do not take commits of batches here for durable ones before this is understood; send us this file",
        ),
        _ if median >= LONG_COMMIT_US => Check::advice(
            "commits",
            finding,
            "look what holds them up: the log's storage, or a synchronous standby (v$dataguard_config)",
        ),
        _ => Check::good("commits", finding),
    })
}

fn group(number: u64) -> String {
    group_thousands(number as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::doctor::Status;

    fn waits(all: &[(&str, u64, u64)]) -> Waits {
        all.iter().map(|(event, count, us)| ((*event).to_owned(), (*count, *us))).collect()
    }

    #[test]
    fn a_clock_is_judged_by_its_shortest_step() {
        let status = |step| clock(step, 9).status;
        assert_eq!(
            [status(Some(1.0)), status(Some(100.0)), status(Some(15_600.0)), status(None)],
            [Status::Good, Status::Advice, Status::Problem, Status::Problem]
        );
        assert_eq!(clock(Some(1.0), 5000).finding, "SYSTIMESTAMP goes on in steps of 1.00 us or more");
    }

    #[test]
    fn a_server_that_is_far_away_is_known_by_its_round_trips() {
        let of = |us: &[u64]| round_trips(us.iter().map(|us| Duration::from_micros(*us)).collect()).unwrap();
        assert_eq!(of(&[90, 200, 90_000]).status, Status::Good);
        assert_eq!(of(&[1500, 1500, 90]).status, Status::Advice);
        assert_eq!(round_trips(Vec::new()), None);
    }

    #[test]
    fn reads_are_doubted_when_they_are_not_single_or_reach_no_storage() {
        let second = Duration::from_secs(1);
        let of = |all: &[(&str, u64, u64)]| reads(10, 640, second, Some(&waits(all)));
        let single = of(&[("db file sequential read", 600, 120_000), ("SQL*Net message from client", 10, 1)]);
        assert_eq!(single.status, Status::Good);
        assert!(single.finding.ends_with("by 600 reads of single blocks; 200 us in the mean"), "{single:?}");
        let mixed = of(&[("db file sequential read", 20, 1), ("db file parallel read", 10, 1)]);
        assert!(mixed.status == Status::Advice && mixed.finding.contains("10 of several blocks at once"), "{mixed:?}");
        let cells =
            of(&[("cell single block physical read", 500, 50_000), ("cell list of blocks physical read", 1, 1)]);
        assert!(cells.finding.contains("by 500 reads of single blocks, 1 of several blocks at once"), "{cells:?}");
        assert!(of(&[]).finding.contains("buffer cache"));
        assert!(reads(10, 640, second, None).finding.contains("not known"));
    }

    #[test]
    fn commits_that_did_not_wait_are_reported() {
        let status = |took: [u64; 3], waits, synchronous| commits(took.to_vec(), waits, synchronous).unwrap().status;
        assert_eq!(status([400, 500, 900], Some(3), None), Status::Good);
        assert_eq!(status([400, 500, 900], None, None), Status::Good);
        assert_eq!(status([4, 5, 9], Some(1), None), Status::Advice);
        assert_eq!(status([4, 5, 9], Some(1), Some(1)), Status::Advice);
        assert_eq!(status([4, 5, 9], Some(1), Some(3)), Status::Good, "the log writer was done before");
        assert_eq!(status([200_000; 3], Some(3), Some(3)), Status::Advice);
        assert_eq!(commits(Vec::new(), Some(3), None), None);
    }

    #[test]
    fn waits_are_those_in_between() {
        let (before, after) = (waits(&[("a", 5, 50), ("b", 1, 1)]), waits(&[("a", 8, 90), ("b", 1, 1), ("c", 2, 3)]));
        assert_eq!(difference(&before, &after), waits(&[("a", 3, 40), ("c", 2, 3)]));
    }
}
