//! What a server's own names mean in the record. What runs before format 3 held as well is in [`postgres_names`].

use std::collections::BTreeMap;

use model::record::{Activity, NamedActivity, activities};

pub(super) use model::record::{describe, states};

/// `pg_stat_wal` until version 17, `pg_stat_io` from then on.
const ACTIVITY: [NamedActivity; 10] = [
    (Activity::TempBytes, &["pg_stat_database.temp_bytes"]),
    (Activity::RowsInserted, &["pg_stat_user_tables.n_tup_ins"]),
    (Activity::RowsDeleted, &["pg_stat_user_tables.n_tup_del"]),
    (Activity::BlockReadNs, &["pg_stat_database.blk_read_time_ns"]),
    (Activity::BlockWriteNs, &["pg_stat_database.blk_write_time_ns"]),
    (Activity::LogWrites, &["pg_stat_wal.wal_write", "pg_stat_io.*.wal.normal.writes"]),
    (Activity::LogWriteNs, &["pg_stat_wal.wal_write_time_ns", "pg_stat_io.*.wal.normal.write_time_ns"]),
    (Activity::LogSyncs, &["pg_stat_wal.wal_sync", "pg_stat_io.*.wal.normal.fsyncs"]),
    (Activity::LogSyncNs, &["pg_stat_wal.wal_sync_time_ns", "pg_stat_io.*.wal.normal.fsync_time_ns"]),
    (Activity::LogBufferFull, &["pg_stat_wal.wal_buffers_full"]),
];

/// What the server's own counters mean.
pub(super) fn activity(own: &BTreeMap<String, u64>) -> BTreeMap<Activity, u64> {
    let mut activity = model::record::activity(own);
    activity.extend(activities(own, &ACTIVITY));
    activity
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logs_writes_and_syncs_are_found_in_every_version() {
        let counted = |own: &[(&str, u64)]| {
            let own = own.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
            let activity = activity(&own);
            [Activity::LogSyncs, Activity::LogSyncNs, Activity::Commits].map(|what| activity.get(&what).copied())
        };
        let commits = ("pg_stat_database.xact_commit", 7);
        let until_17 = [("pg_stat_wal.wal_sync", 5), ("pg_stat_wal.wal_sync_time_ns", 900), commits];
        assert_eq!(counted(&until_17), [Some(5), Some(900), Some(7)]);
        let by_process = [
            ("pg_stat_io.client backend.wal.normal.fsyncs", 3),
            ("pg_stat_io.walwriter.wal.normal.fsyncs", 2),
            ("pg_stat_io.client backend.relation.normal.fsyncs", 77),
        ];
        assert_eq!(counted(&by_process), [Some(5), None, None], "what is not timed is unknown");
    }
}
