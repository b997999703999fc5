//! What a database server reports on itself, under names of its meaning: whatever a server calls a thing, it enters the record
//! as one of these. What a server does not report is not among its counts: unknown, not zero.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a server counted in one window, everybody's, not only the load's. What sessions read and found is in
/// [`super::Counters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Transactions committed.
    Commits,
    /// Transactions rolled back.
    Rollbacks,
    /// Deadlocks found.
    Deadlocks,
    /// Updates of the load that were done again after a deadlock, or after a wait for a lock that lasted too long. What they took
    /// counts in their operations.
    UpdatesRepeated,
    /// Waits for a lock of a row.
    LockWaits,
    /// Their time, in nanoseconds.
    LockWaitNs,
    /// Bytes written to temporary files.
    TempBytes,
    /// Rows inserted into our tables.
    RowsInserted,
    /// Rows updated in our tables.
    RowsUpdated,
    /// Of these, rows that stayed on their page without a new index entry.
    RowsUpdatedInPlace,
    /// Rows deleted from our tables.
    RowsDeleted,
    /// Blocks by which our tables grew.
    TableBlocksGrown,
    /// Vacuums of our tables that the server began by itself: old versions of rows were removed.
    Vacuums,
    /// Times that the server gathered statistics on our tables by itself.
    Analyses,
    /// Time of reads of data blocks by sessions, in nanoseconds.
    BlockReadNs,
    /// Time of their writes, in nanoseconds.
    BlockWriteNs,
    /// Blocks read before somebody asked for them.
    ReadAheadBlocks,
    /// Reads of one block that the load's sessions waited for, where the server counts them by how many blocks they are of.
    SingleBlockReads,
    /// Likewise, reads of several blocks at once that need not lie together: those of further rows, ahead of need.
    BatchedReads,
    /// Likewise, reads of neighbouring blocks, as those of scans are.
    MultiBlockReads,
    /// Likewise, reads past the server's buffer cache, as those of scans of large tables are.
    ReadsPastCache,
    /// Blocks that sessions read past the server's buffer cache, everybody's.
    BlocksReadPastCache,
    /// Records of the log.
    LogRecords,
    /// Whole images of blocks in the log.
    LogBlockImages,
    /// Writes of the log to its files.
    LogWrites,
    /// Their time, in nanoseconds.
    LogWriteNs,
    /// Times that the log was made durable.
    LogSyncs,
    /// Their time, in nanoseconds.
    LogSyncNs,
    /// Times that a session found the log's buffer full.
    LogBufferFull,
    /// Checkpoints begun because their time had come.
    CheckpointsTimed,
    /// Checkpoints begun because the log had grown to its limit, or because somebody asked for one.
    CheckpointsRequested,
    /// Blocks written by checkpoints.
    BlocksWrittenByCheckpoints,
    /// Blocks written ahead of need by the server's own writers.
    BlocksWrittenInBackground,
    /// Blocks that sessions had to write themselves.
    BlocksWrittenBySessions,
    /// The same in bytes, where the server counts no blocks.
    BytesWrittenBySessions,
}

/// What a server reports as a level. A window has the largest that was read in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gauge {
    /// Blocks in the buffer cache that were changed and not written yet.
    DirtyBlocks,
    /// Bytes of log that no checkpoint has covered yet.
    CheckpointAgeBytes,
    /// Old versions of rows, in transactions, that wait to be removed (InnoDB's history list).
    PurgeBacklog,
}

/// What a session of the load was found doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Using a processor, or wanting one.
    Processor,
    /// One of both: using a processor, or reading a data block. Not every server distinguishes them.
    ProcessorOrRead,
    /// Reading a data block.
    Read,
    /// Waiting for a block that somebody else reads, or that is read ahead.
    ReadElsewhere,
    /// Waiting for the log to be written or made durable.
    LogWrite,
    /// Waiting for anything else of the log: room in its buffer, a standby.
    Log,
    /// Waiting for a lock of another transaction.
    Lock,
    /// Anything else.
    #[default]
    Other,
}

/// A server's own names for an activity. Versions differ in them, so the first that the server has counts. A `*` stands for any
/// text, and the counts of all names that fit are added.
pub type NamedActivity = (Activity, &'static [&'static str]);

/// Takes from a server's own counters what has a meaning, by a table of its names.
pub fn activities(own: &BTreeMap<String, u64>, table: &[NamedActivity]) -> BTreeMap<Activity, u64> {
    let count = |names: &[&str]| names.iter().find_map(|name| counted(own, name));
    table.iter().filter_map(|(activity, names)| Some((*activity, count(names)?))).collect()
}

fn counted(own: &BTreeMap<String, u64>, name: &str) -> Option<u64> {
    let Some((head, tail)) = name.split_once('*') else { return own.get(name).copied() };
    let fits = |name: &str| name.strip_prefix(head).is_some_and(|rest| rest.ends_with(tail));
    own.iter().filter(|(name, _)| fits(name)).map(|(_, count)| *count).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_that_a_server_has_gives_the_count_and_none_gives_nothing() {
        let own = [("new.commits", 7), ("io.a.writes", 1), ("io.b.writes", 2), ("io.b.reads", 9)];
        let own = own.map(|(name, count)| (name.to_owned(), count)).into();
        let table: [NamedActivity; 3] = [
            (Activity::Commits, &["old.commits", "new.commits"]),
            (Activity::Deadlocks, &["deadlocks"]),
            (Activity::BlocksWrittenBySessions, &["io.*.writes"]),
        ];
        let found = activities(&own, &table);
        assert_eq!(found, [(Activity::Commits, 7), (Activity::BlocksWrittenBySessions, 3)].into());
    }
}
