//! One reading of a server's counters, and what two of them say.

use std::collections::BTreeMap;

use super::processes::ProcessReading;
use super::query::RESET;
use model::record::{Counters, CpuTime, Throttled};

/// Views whose counters are set to zero together with those of the database.
const OF_DATABASE: [&str; 3] = ["pg_stat_database", "pg_stat_user_tables", "pg_statio_user_tables"];

/// Counters of each view.
pub(super) type Views = BTreeMap<String, BTreeMap<String, u64>>;

/// A server's counters at one instant. Only the difference of two means something.
#[derive(Debug, Clone)]
pub struct Reading {
    pub(super) views: Views,
    /// Pages of the data set's tables.
    pub(super) pages: Option<u64>,
    /// The server's processes, where they can be seen.
    pub(super) processes: Option<ProcessReading>,
}

/// What happened between two readings.
#[derive(Debug, Default)]
pub(super) struct Difference {
    pub(super) own: BTreeMap<String, u64>,
    pub(super) counters: Counters,
    pub(super) cpu: Option<CpuTime>,
    pub(super) run_delay_ns: Option<u64>,
    pub(super) throttled: Option<Throttled>,
    /// Views that are unknown because their counters were set to zero meanwhile.
    pub(super) reset: Vec<String>,
}

impl Reading {
    /// What happened since `earlier`.
    pub(super) fn since(&self, earlier: &Self, block_bytes: u32) -> Difference {
        let (views, reset) = views_between(&earlier.views, &self.views);
        let block_bytes = u64::from(block_bytes);
        let mut counters = engine_counters(&views, block_bytes);
        let mut own = named(&views);
        if let Some((later, earlier)) = self.pages.zip(earlier.pages) {
            // A table that shrinks and grows again to where it was has not grown.
            own.insert("relation.main_pages_grown".to_owned(), later.saturating_sub(earlier));
        }
        let both = self.processes.as_ref().zip(earlier.processes.as_ref());
        if let Some(reads) = both.and_then(|(later, earlier)| later.reads_since(earlier)) {
            own.insert("proc_io.rchar".to_owned(), reads.called_bytes);
            own.insert("proc_io.read_bytes".to_owned(), reads.storage_bytes);
            let blocks = reads.storage_bytes / block_bytes;
            counters.physical_read_bytes = Some(reads.storage_bytes);
            counters.physical_reads = Some(blocks);
            counters.page_cache_hits = counters.buffer_misses.map(|misses| misses.saturating_sub(blocks));
        }
        let cpu = both.and_then(|(later, earlier)| later.cpu_since(earlier));
        let run_delay_ns = both.and_then(|(later, earlier)| later.run_delay_since(earlier));
        let throttled = both.and_then(|(later, earlier)| later.throttled_since(earlier));
        Difference { own, counters, cpu, run_delay_ns, throttled, reset }
    }

    /// Keeps the largest size that the tables ever had, so that growth is counted once.
    pub(super) fn remember_size(&mut self, earlier: &Self) {
        self.pages = self.pages.max(earlier.pages);
    }
}

/// The differences of the views that both readings have, and which of them were set to zero.
fn views_between(earlier: &Views, later: &Views) -> (Views, Vec<String>) {
    let database = "pg_stat_database";
    let database_reset =
        earlier.get(database).zip(later.get(database)).is_some_and(|(earlier, later)| was_reset(earlier, later));
    let mut differences = Views::new();
    let mut reset = Vec::new();
    for (view, later_counts) in later {
        let Some(earlier_counts) = earlier.get(view) else { continue };
        let reported =
            was_reset(earlier_counts, later_counts) || (database_reset && OF_DATABASE.contains(&view.as_str()));
        match counts_between(view, earlier_counts, later_counts).filter(|_| !reported) {
            Some(counts) => drop(differences.insert(view.clone(), counts)),
            None => reset.push(view.clone()),
        }
    }
    (differences, reset)
}

/// Before version 15 a database has no such time until something was counted of it: then nothing was lost.
fn was_reset(earlier: &BTreeMap<String, u64>, later: &BTreeMap<String, u64>) -> bool {
    let has_counted = earlier.values().any(|value| *value > 0);
    has_counted && earlier.get(RESET) != later.get(RESET)
}

/// `None` if one of them went backwards, or is gone.
fn counts_between(
    view: &str,
    earlier: &BTreeMap<String, u64>,
    later: &BTreeMap<String, u64>,
) -> Option<BTreeMap<String, u64>> {
    let is_io = view == "pg_stat_io";
    if earlier.keys().any(|name| !later.contains_key(name)) {
        return None;
    }
    let mut counts = BTreeMap::new();
    for (name, later) in later.iter().filter(|(name, _)| *name != RESET) {
        let difference = match earlier.get(name) {
            Some(earlier) => later.checked_sub(*earlier)?,
            // Zeros of this view are not sent.
            None if is_io => *later,
            None => continue,
        };
        if difference > 0 || !is_io {
            counts.insert(name.clone(), difference);
        }
    }
    Some(counts)
}

/// All of them by `view.counter`.
fn named(views: &Views) -> BTreeMap<String, u64> {
    let counts = views
        .iter()
        .flat_map(|(view, counts)| counts.iter().map(move |(name, count)| (format!("{view}.{name}"), *count)));
    counts.collect()
}

/// What has a meaning in every database, from the server's own counters.
fn engine_counters(views: &Views, block_bytes: u64) -> Counters {
    let of = |view: &str, name: &str| views.get(view)?.get(name).copied();
    let (hits, misses) = (of("pg_stat_database", "blks_hit"), of("pg_stat_database", "blks_read"));
    let buffers = |name| of("pg_stat_bgwriter", name);
    // Buffers written are reported by kind of process until version 16, and with all else of I/O from 16 on. There, requests may
    // be of several blocks, so bytes are counted.
    let written_bytes = relation_write_bytes(views).or_else(|| {
        let written = buffers("buffers_checkpoint")? + buffers("buffers_clean")? + buffers("buffers_backend")?;
        Some(written * block_bytes)
    });
    // Since version 18 checkpoints that had nothing to do are distinguished.
    let checkpoints = of("pg_stat_checkpointer", "num_done")
        .or_else(|| Some(of("pg_stat_checkpointer", "num_timed")? + of("pg_stat_checkpointer", "num_requested")?))
        .or_else(|| Some(buffers("checkpoints_timed")? + buffers("checkpoints_req")?));
    Counters {
        logical_reads: hits.zip(misses).map(|(hits, misses)| hits + misses),
        cache_hits: hits,
        buffer_misses: misses,
        physical_writes: written_bytes.map(|bytes| bytes / block_bytes),
        physical_write_bytes: written_bytes,
        redo_bytes: of("pg_stat_wal", "wal_bytes"),
        checkpoints,
        ..Counters::default()
    }
}

/// What all processes wrote to tables and indexes; `None` where there is no `pg_stat_io`.
fn relation_write_bytes(views: &Views) -> Option<u64> {
    let counts = views.get("pg_stat_io")?.iter().filter(|(name, _)| {
        // Backend type, object, context, counter.
        let mut parts = name.rsplit('.');
        parts.next() == Some("write_bytes") && parts.nth(1) == Some("relation")
    });
    Some(counts.map(|(_, count)| count).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn views(counts: &[(&str, &str, u64)]) -> Views {
        let mut views = Views::new();
        for (view, name, count) in counts {
            views.entry((*view).to_owned()).or_default().insert((*name).to_owned(), *count);
        }
        views
    }

    fn reading(views: Views, pages: Option<u64>) -> Reading {
        Reading { views, pages, processes: None }
    }

    fn difference(earlier: &[(&str, &str, u64)], later: &[(&str, &str, u64)]) -> Difference {
        reading(views(later), None).since(&reading(views(earlier), None), 8192)
    }

    #[test]
    fn blocks_are_reported_in_the_words_of_every_database() {
        let at = |hit, read, reset| {
            [
                ("pg_stat_database", "blks_hit", hit),
                ("pg_stat_database", "blks_read", read),
                ("pg_stat_database", RESET, reset),
            ]
        };
        let reported = difference(&at(100, 10, 7), &at(130, 15, 7));
        let counters =
            Counters { logical_reads: Some(35), cache_hits: Some(30), buffer_misses: Some(5), ..Counters::default() };
        assert_eq!(reported.counters, counters);
        assert_eq!(reported.own["pg_stat_database.blks_hit"], 30);
        assert_eq!(reported.own.keys().find(|name| name.contains(RESET)), None);
        assert!(reported.reset.is_empty());
    }

    #[test]
    fn counters_that_were_set_back_are_unknown() {
        let at = |hit, reset, updated, wal| {
            [
                ("pg_stat_database", "blks_hit", hit),
                ("pg_stat_database", "blks_read", 0),
                ("pg_stat_database", RESET, reset),
                ("pg_stat_user_tables", "n_tup_upd", updated),
                ("pg_stat_wal", "wal_bytes", wal),
            ]
        };
        // They may be larger than before all the same.
        let reported = difference(&at(100, 7, 5, 10), &at(130, 8, 6, 11));
        assert_eq!(reported.counters, Counters { redo_bytes: Some(1), ..Counters::default() });
        assert_eq!(reported.reset, ["pg_stat_database", "pg_stat_user_tables"]);
        // Nobody says so after a crash.
        let reported = difference(&at(100, 7, 5, 10), &at(130, 7, 5, 9));
        assert_eq!((reported.counters.redo_bytes, reported.counters.cache_hits), (None, Some(30)));
        assert_eq!(reported.reset, ["pg_stat_wal"]);
    }

    #[test]
    fn a_database_of_which_nothing_was_counted_yet_was_not_set_back() {
        let of = |count| [("pg_stat_database", "blks_hit", count), ("pg_stat_database", "blks_read", count)];
        let later = [&of(30)[..], &[("pg_stat_database", RESET, 7)]].concat();
        let reported = difference(&of(0), &later);
        assert_eq!((reported.counters.cache_hits, reported.reset.len()), (Some(30), 0));
        assert_eq!(difference(&of(1), &later).counters.cache_hits, None);
    }

    #[test]
    fn buffers_written_and_checkpoints_are_found_in_every_version() {
        let old = |n| {
            [
                ("pg_stat_bgwriter", "buffers_checkpoint", n),
                ("pg_stat_bgwriter", "buffers_clean", n),
                ("pg_stat_bgwriter", "buffers_backend", 2 * n),
                ("pg_stat_bgwriter", "checkpoints_timed", n),
                ("pg_stat_bgwriter", "checkpoints_req", n),
            ]
        };
        let reported = difference(&old(1), &old(2)).counters;
        assert_eq!(
            (reported.physical_writes, reported.physical_write_bytes, reported.checkpoints),
            (Some(4), Some(4 * 8192), Some(2))
        );

        let new = |n: u64, done: bool| {
            let mut counts = vec![
                ("pg_stat_bgwriter", "buffers_clean", n),
                ("pg_stat_checkpointer", "num_timed", 2 * n),
                ("pg_stat_checkpointer", "num_requested", n),
                ("pg_stat_io", "checkpointer.relation.normal.write_bytes", 8192 * n),
                ("pg_stat_io", "client backend.relation.bulkread.write_bytes", 16384 * n),
                ("pg_stat_io", "client backend.temp relation.normal.write_bytes", 5 * n),
                ("pg_stat_io", "walwriter.wal.normal.write_bytes", 7 * n),
                ("pg_stat_io", "checkpointer.relation.normal.writes", n),
            ];
            if done {
                counts.push(("pg_stat_checkpointer", "num_done", n));
            }
            counts
        };
        let reported = difference(&new(1, false), &new(2, false)).counters;
        assert_eq!(
            (reported.physical_writes, reported.physical_write_bytes, reported.checkpoints),
            (Some(3), Some(3 * 8192), Some(3))
        );
        assert_eq!(difference(&new(1, true), &new(2, true)).counters.checkpoints, Some(1));
    }

    #[test]
    fn a_row_of_io_that_appears_counts_from_zero_and_one_that_rests_is_left_out() {
        let reported = difference(
            &[("pg_stat_io", "checkpointer.relation.normal.writes", 5)],
            &[
                ("pg_stat_io", "checkpointer.relation.normal.writes", 5),
                ("pg_stat_io", "autovacuum worker.relation.vacuum.reads", 9),
            ],
        );
        assert_eq!(reported.own, [("pg_stat_io.autovacuum worker.relation.vacuum.reads".to_owned(), 9)].into());
        // Elsewhere a counter that appears was unknown before.
        let reported = difference(&[("pg_stat_wal", "a", 1)], &[("pg_stat_wal", "a", 1), ("pg_stat_wal", "b", 7)]);
        assert_eq!(reported.own, [("pg_stat_wal.a".to_owned(), 0)].into());
    }

    #[test]
    fn growth_is_counted_once() {
        let mut sizes = [100, 120, 90, 120, 125].map(|pages| reading(Views::new(), Some(pages)));
        let mut grown = Vec::new();
        for at in 1..sizes.len() {
            let (earlier, later) = sizes.split_at_mut(at);
            let earlier = earlier.last().unwrap();
            grown.push(later[0].since(earlier, 8192).own["relation.main_pages_grown"]);
            later[0].remember_size(earlier);
        }
        assert_eq!(grown, [20, 0, 0, 5]);
    }
}
