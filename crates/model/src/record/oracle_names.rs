//! What Oracle's statistics mean, by the names that its views, AWR and Statspack have in common.

use std::collections::BTreeMap;

use super::Counters;

/// What has the same meaning in every database, of statistics by Oracle's own names. What is not there is unknown.
pub fn counters(own: &BTreeMap<String, u64>) -> Counters {
    let get = |name: &str| own.get(name).copied();
    let hits = || {
        let from_cache = get("consistent gets from cache")?.checked_add(get("db block gets from cache")?)?;
        from_cache.checked_sub(get("physical reads cache")?)
    };
    Counters {
        logical_reads: get("session logical reads"),
        cache_hits: hits(),
        physical_reads: get("physical read IO requests"),
        physical_read_bytes: get("physical read bytes"),
        physical_read_blocks: get("physical reads"),
        physical_writes: get("physical write IO requests"),
        physical_write_bytes: get("physical write bytes"),
        physical_write_blocks: get("physical writes"),
        block_changes: get("db block changes"),
        commits: get("user commits"),
        redo_bytes: get("redo size"),
        redo_writes: get("redo writes"),
        checkpoints: get("background checkpoints completed"),
        ..Counters::default()
    }
}
