//! What an instance's own names mean in the record. Those of an imported report are the same, so a run that was measured here and
//! the report of its window have the same columns.

use std::collections::BTreeMap;

use model::record::{Activity, NamedActivity, ServerStats, SessionState, Term, WaitStats, activities};

/// Statistics that are read.
pub(super) const STATISTICS: [&str; 48] = [
    "DBWR checkpoint buffers written",
    "background checkpoints completed",
    "bytes received via SQL*Net from client",
    "bytes sent via SQL*Net to client",
    "cell flash cache read hits",
    "consistent gets from cache",
    "db block changes",
    "db block gets from cache",
    "dirty buffers inspected",
    "enqueue deadlocks",
    "enqueue waits",
    "execute count",
    "free buffer requested",
    "gc cr blocks received",
    "gc current blocks received",
    "parse count (hard)",
    "physical read IO requests",
    "physical read bytes",
    "physical read requests optimized",
    "physical read total IO requests",
    "physical read total bytes",
    "physical read total multi block requests",
    "physical reads",
    "physical reads cache",
    "physical reads cache prefetch",
    "physical reads direct",
    "physical write IO requests",
    "physical write bytes",
    "physical write total IO requests",
    "physical write total bytes",
    "physical write total multi block requests",
    "physical writes",
    "physical writes direct",
    "physical writes from cache",
    "recursive calls",
    "redo blocks written",
    "redo buffer allocation retries",
    "redo entries",
    "redo log space requests",
    "redo size",
    "redo synch writes",
    "redo wastage",
    "redo writes",
    "session logical reads",
    "table fetch continued row",
    "user calls",
    "user commits",
    "user rollbacks",
];
/// Times of the time model that are read.
pub(super) const TIMES: [&str; 6] = [
    "DB time",
    "DB CPU",
    "background elapsed time",
    "background cpu time",
    "sql execute elapsed time",
    "PL/SQL execution elapsed time",
];
/// What the database writers alone count.
pub(super) const WRITTEN_BY_WRITERS: &str = "physical writes from cache";
/// Of both, by their names in the record, what the server's own processes count, which work for all databases of an instance.
pub(super) const BACKGROUND: [&str; 14] = [
    "DBWR checkpoint buffers written",
    "background checkpoints completed",
    "background cpu time_ns",
    "background elapsed time_ns",
    "dirty buffers inspected",
    "physical write IO requests",
    "physical write bytes",
    "physical write total IO requests",
    "physical write total bytes",
    "physical write total multi block requests",
    "physical writes",
    "physical writes from cache",
    "redo blocks written",
    "redo writes",
];

/// What Oracle calls things that sentences name.
pub(super) const TERMS: [(Term, &str); 9] = [
    (Term::Log, "redo log"),
    (Term::LogCapacity, "the size of the redo log files"),
    (Term::CheckpointInterval, "`fast_start_mttr_target`"),
    (Term::CheckpointCommand, "`ALTER SYSTEM CHECKPOINT`"),
    (Term::BufferCache, "db_cache_size"),
    (Term::Sessions, "`v$session`"),
    (Term::DirectReads, "filesystemio_options=setall"),
    (
        Term::SingleBlockReads,
        "`--reads key-by-key`, or `_db_block_prefetch_limit`, `_db_block_prefetch_quota` and `_db_file_noncontig_mblock_read_count` at \
         0 in the server's parameter file",
    ),
    (
        Term::ScansPastCache,
        "use a larger `SCAN_TABLE_SZ`, and see that `_serial_direct_read` is not `never`. Tables below \
        `_small_table_threshold` (default: a fiftieth of the buffer cache) go through the cache, and so do tables \
        that are mostly cached",
    ),
];

const ACTIVITY: [NamedActivity; 9] = [
    (Activity::Commits, &["user commits"]),
    (Activity::Rollbacks, &["user rollbacks"]),
    (Activity::Deadlocks, &["enqueue deadlocks"]),
    (Activity::ReadAheadBlocks, &["physical reads cache prefetch"]),
    (Activity::BlocksReadPastCache, &["physical reads direct"]),
    (Activity::LogRecords, &["redo entries"]),
    (Activity::LogWrites, &["redo writes"]),
    (Activity::LogBufferFull, &["redo buffer allocation retries"]),
    (Activity::BlocksWrittenByCheckpoints, &["DBWR checkpoint buffers written"]),
];

/// Reads of one block; those of several blocks that need not lie together, which are fetched ahead of need; those of neighbours;
/// and those past the buffer cache, which scans of large tables make.
pub(super) const SINGLE: [&str; 2] = ["db file sequential read", "cell single block physical read"];
pub(super) const BATCHED: [&str; 2] = ["db file parallel read", "cell list of blocks physical read"];
pub(super) const NEIGHBOURS: [&str; 2] = ["db file scattered read", "cell multiblock physical read"];
pub(super) const DIRECT: [&str; 2] = ["direct path read", "cell smart table scan"];

/// Waits for a row that another transaction has changed, and the log writer's writes.
const ROW_LOCK: &str = "enq: TX - row lock contention";
const LOG_WRITE: &str = "log file parallel write";
/// A commit's wait for the log.
const COMMIT: &str = "log file sync";

/// Fills in, from the counters and waits in `stats`, what they mean. `ours` are reads that the load's sessions waited for, by event.
pub(super) fn explain(ours: Option<&BTreeMap<String, u64>>, stats: &mut ServerStats) {
    stats.activity = activities(&stats.own, &ACTIVITY);
    stats.counters = model::record::counters(&stats.own);
    if !stats.waits.is_empty() {
        let wait = |event: &str| stats.waits.iter().find(|wait| wait.event == event);
        let locks = wait(ROW_LOCK).map(WaitStats::sum).unwrap_or_default();
        let log_ns = wait(LOG_WRITE).and_then(|wait| wait.sum().total_ns);
        let reads = stats.waits.iter().filter(|wait| wait.class == "User I/O" && reads_blocks(&wait.event));
        let read_ns = reads.filter_map(WaitStats::of_sessions).map(|waited| waited.total_ns).sum::<Option<u64>>();
        let known = [
            (Activity::LockWaits, Some(locks.count)),
            (Activity::LockWaitNs, if locks.count == 0 { Some(0) } else { locks.total_ns }),
            (Activity::LogWriteNs, log_ns),
            (Activity::BlockReadNs, read_ns),
        ];
        stats.activity.extend(known.into_iter().filter_map(|(activity, count)| Some((activity, count?))));
    }
    if let Some(ours) = ours {
        let sum = |is: fn(&str) -> bool| ours.iter().filter(|(event, _)| is(event)).map(|(_, count)| count).sum();
        stats.activity.extend([
            (Activity::SingleBlockReads, sum(|event| is_of(event, &SINGLE))),
            (Activity::BatchedReads, sum(|event| is_of(event, &BATCHED))),
            (Activity::MultiBlockReads, sum(|event| is_of(event, &NEIGHBOURS))),
            (Activity::ReadsPastCache, sum(|event| is_of(event, &DIRECT))),
        ]);
    }
    stats.session_states = stats.session_samples.keys().map(|name| (name.clone(), state(name))).collect();
}

/// Whether an event is one of these. Newer releases say after a colon where a cell found the block.
pub(super) fn is_of(event: &str, events: &[&str]) -> bool {
    events.contains(&event.split(':').next().unwrap_or(event))
}

fn reads_blocks(event: &str) -> bool {
    [SINGLE, BATCHED, NEIGHBOURS, DIRECT].iter().any(|events| is_of(event, events)) || event == "read by other session"
}

/// What a session does that is found in `name`: the class of its wait and its event, or `CPU`.
fn state(name: &str) -> SessionState {
    let Some((class, event)) = name.split_once(':') else { return SessionState::Processor };
    match class {
        "User I/O" if event == "read by other session" => SessionState::ReadElsewhere,
        "User I/O" if event.contains("read") => SessionState::Read,
        // The block comes from another instance.
        "Cluster" => SessionState::ReadElsewhere,
        "Commit" if event == COMMIT => SessionState::LogWrite,
        "Commit" => SessionState::Log,
        "Configuration" if event.starts_with("log ") => SessionState::Log,
        // The resource manager lets others have the processor.
        "Scheduler" => SessionState::Processor,
        _ if event.starts_with("enq: T") => SessionState::Lock,
        _ => SessionState::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_sessions_have_a_meaning() {
        let states = [
            ("CPU", SessionState::Processor),
            ("User I/O:db file sequential read", SessionState::Read),
            ("User I/O:cell single block physical read: flash cache", SessionState::Read),
            ("User I/O:direct path write", SessionState::Other),
            ("User I/O:read by other session", SessionState::ReadElsewhere),
            ("Commit:log file sync", SessionState::LogWrite),
            ("Configuration:log file switch (checkpoint incomplete)", SessionState::Log),
            ("Configuration:free buffer waits", SessionState::Other),
            ("Application:enq: TX - row lock contention", SessionState::Lock),
            ("Concurrency:buffer busy waits", SessionState::Other),
            ("Scheduler:resmgr:cpu quantum", SessionState::Processor),
        ];
        for (name, meaning) in states {
            assert_eq!(state(name), meaning, "{name}");
        }
    }

    #[test]
    fn what_only_the_servers_own_processes_count_is_among_what_is_read() {
        assert!(BACKGROUND.contains(&WRITTEN_BY_WRITERS));
        for name in BACKGROUND {
            let time = name.strip_suffix("_ns");
            assert!(time.map_or(STATISTICS.contains(&name), |time| TIMES.contains(&time)), "{name}");
        }
    }
}
