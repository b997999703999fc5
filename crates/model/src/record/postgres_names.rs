//! What PostgreSQL's own names mean.

use std::collections::BTreeMap;

use super::facts::{DIRECT_READS, Term};
use super::{Activity, NamedActivity, SessionState, activities};

const ACTIVITY: [NamedActivity; 16] = [
    (Activity::Commits, &["pg_stat_database.xact_commit"]),
    (Activity::Rollbacks, &["pg_stat_database.xact_rollback"]),
    (Activity::Deadlocks, &["pg_stat_database.deadlocks"]),
    (Activity::RowsUpdated, &["pg_stat_user_tables.n_tup_upd"]),
    (Activity::RowsUpdatedInPlace, &["pg_stat_user_tables.n_tup_hot_upd"]),
    (Activity::TableBlocksGrown, &["relation.main_pages_grown"]),
    (Activity::Vacuums, &["pg_stat_user_tables.autovacuum_count"]),
    (Activity::Analyses, &["pg_stat_user_tables.autoanalyze_count"]),
    (Activity::LogRecords, &["pg_stat_wal.wal_records"]),
    (Activity::LogBlockImages, &["pg_stat_wal.wal_fpi"]),
    (Activity::CheckpointsTimed, &["pg_stat_checkpointer.num_timed", "pg_stat_bgwriter.checkpoints_timed"]),
    (Activity::CheckpointsRequested, &["pg_stat_checkpointer.num_requested", "pg_stat_bgwriter.checkpoints_req"]),
    (
        Activity::BlocksWrittenByCheckpoints,
        &["pg_stat_checkpointer.buffers_written", "pg_stat_bgwriter.buffers_checkpoint"],
    ),
    (Activity::BlocksWrittenInBackground, &["pg_stat_bgwriter.buffers_clean"]),
    // From version 16 on by kind of process, and from 18 on in bytes only, since one write may be of several blocks.
    (Activity::BytesWrittenBySessions, &["pg_stat_io.client backend.relation.*.write_bytes"]),
    (
        Activity::BlocksWrittenBySessions,
        &["pg_stat_bgwriter.buffers_backend", "pg_stat_io.client backend.relation.*.writes"],
    ),
];

const TERMS: [(Term, &str); 6] = [
    (Term::Log, "WAL"),
    (Term::LogCapacity, "max_wal_size"),
    (Term::CheckpointInterval, "checkpoint_timeout"),
    (Term::CheckpointCommand, "CHECKPOINT"),
    (Term::BufferCache, "shared_buffers"),
    (Term::Sessions, "pg_stat_activity"),
];

/// What the server's own counters mean.
pub fn activity(own: &BTreeMap<String, u64>) -> BTreeMap<Activity, u64> {
    activities(own, &ACTIVITY)
}

/// What a session is doing, by `type:event`.
pub fn state(found_in: &str) -> SessionState {
    let (kind, event) = found_in.split_once(':').unwrap_or(("", found_in));
    match (kind, event) {
        ("", "CPU") => SessionState::Processor,
        ("IO", "DataFileRead") => SessionState::Read,
        // A block that another session is reading is waited for in `BufferIO`, one that is read ahead in `AioIoCompletion`.
        (_, "DataFileRead" | "DataFilePrefetch" | "BufferIO" | "BufferIo" | "AioIoCompletion") => {
            SessionState::ReadElsewhere
        }
        ("IO", "WALSync" | "WALWrite" | "WalSync" | "WalWrite") | ("LWLock", "WALWrite") => SessionState::LogWrite,
        (_, "SyncRep") => SessionState::Log,
        (_, event) if event.starts_with("WAL") || event.starts_with("Wal") => SessionState::Log,
        ("Lock", _) => SessionState::Lock,
        _ => SessionState::Other,
    }
}

/// The states of all that sessions were found in.
pub fn states(samples: &BTreeMap<String, u64>) -> BTreeMap<String, SessionState> {
    samples.keys().map(|found_in| (found_in.clone(), state(found_in))).collect()
}

/// Adds to what is known of a server what follows from its settings, and what it calls things.
pub fn describe(facts: &mut BTreeMap<String, String>) {
    facts.extend(TERMS.map(|(term, name)| (term.fact().0.to_owned(), name.to_owned())));
    let direct = facts.get("setting.debug_io_direct").map(|ways| ways.to_ascii_lowercase());
    if direct.is_some_and(|ways| ways.split(',').any(|way| way.trim() == "data")) {
        facts.insert(DIRECT_READS.to_owned(), "yes".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(own: &[(&str, u64)], activity: Activity) -> Option<u64> {
        let own = own.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        super::activity(&own).get(&activity).copied()
    }

    #[test]
    fn versions_name_their_counters_otherwise() {
        for name in ["pg_stat_bgwriter.checkpoints_timed", "pg_stat_checkpointer.num_timed"] {
            assert_eq!(counted(&[(name, 3)], Activity::CheckpointsTimed), Some(3), "{name}");
        }
        let client = |column: &str| format!("pg_stat_io.client backend.relation.normal.{column}");
        let (writes, bytes, vacuum) =
            (client("writes"), client("write_bytes"), "pg_stat_io.client backend.relation.vacuum.writes");
        let others = ("pg_stat_io.checkpointer.relation.normal.writes", 77);
        let own = [(writes.as_str(), 5), (vacuum, 10), (bytes.as_str(), 40_960), others];
        assert_eq!(counted(&own, Activity::BlocksWrittenBySessions), Some(15));
        assert_eq!(counted(&own, Activity::BytesWrittenBySessions), Some(40_960));
        assert_eq!(counted(&[others], Activity::BlocksWrittenBySessions), None, "unknown is not zero");
    }

    #[test]
    fn what_sessions_are_found_in_has_a_meaning() {
        for (found_in, meaning) in [
            ("CPU", SessionState::Processor),
            ("IO:DataFileRead", SessionState::Read),
            ("IPC:BufferIO", SessionState::ReadElsewhere),
            ("LWLock:WALWrite", SessionState::LogWrite),
            ("IO:WalSync", SessionState::LogWrite),
            ("LWLock:WALInsert", SessionState::Log),
            ("IPC:SyncRep", SessionState::Log),
            ("Lock:tuple", SessionState::Lock),
            ("LWLock:BufferMapping", SessionState::Other),
        ] {
            assert_eq!(state(found_in), meaning, "{found_in}");
        }
    }

    #[test]
    fn that_data_files_are_read_directly_is_a_fact() {
        for (setting, is_direct) in [("data, wal", true), ("WAL", false), ("", false)] {
            let mut facts = [("setting.debug_io_direct".to_owned(), setting.to_owned())].into();
            describe(&mut facts);
            assert_eq!(facts.contains_key(DIRECT_READS), is_direct, "{setting}");
        }
    }
}
