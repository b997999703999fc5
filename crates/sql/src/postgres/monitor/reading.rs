//! One reading of a server's counters, and what two of them say.

use std::collections::BTreeMap;

use super::processes::ProcessReading;
use super::query::RESET;
use model::record::{Counters, CpuTime};

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
        Difference { own, counters, cpu, reset }
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
#[path = "reading_tests.rs"]
mod tests;
