use std::fmt::Write;

use super::super::super::connect::{Connected, Connector};
use super::super::super::test_server::{block_on, database};
use super::super::reading::Views;
use super::*;

const DATABASE: &str = "datid:oid datname:name numbackends:int4 xact_commit:int8 xact_rollback:int8 blks_read:int8 \
    blks_hit:int8 tup_updated:int8 checksum_failures:int8 checksum_last_failure:timestamptz blk_read_time:float8 \
    blk_write_time:float8 stats_reset:timestamptz";
const SESSIONS: &str = "session_time:float8 active_time:float8 sessions:int8";
const OLD_BGWRITER: &str = "checkpoints_timed:int8 checkpoints_req:int8 checkpoint_write_time:float8 \
    checkpoint_sync_time:float8 buffers_checkpoint:int8 buffers_clean:int8 maxwritten_clean:int8 buffers_backend:int8 \
    buffers_backend_fsync:int8 buffers_alloc:int8 stats_reset:timestamptz";
const BGWRITER: &str = "buffers_clean:int8 maxwritten_clean:int8 buffers_alloc:int8 stats_reset:timestamptz";
const CHECKPOINTER: &str = "num_timed:int8 num_requested:int8 write_time:float8 sync_time:float8 buffers_written:int8 \
    stats_reset:timestamptz";
const OLD_WAL: &str = "wal_records:int8 wal_fpi:int8 wal_bytes:numeric wal_buffers_full:int8 wal_write:int8 \
    wal_sync:int8 wal_write_time:float8 wal_sync_time:float8 stats_reset:timestamptz";
const WAL: &str = "wal_records:int8 wal_fpi:int8 wal_bytes:numeric wal_buffers_full:int8 stats_reset:timestamptz";
const OLD_IO: &str = "backend_type:text object:text context:text reads:int8 read_time:float8 writes:int8 \
    write_time:float8 extends:int8 op_bytes:int8 hits:int8 stats_reset:timestamptz";
const IO: &str = "backend_type:text object:text context:text reads:int8 read_bytes:numeric read_time:float8 writes:int8 \
    write_bytes:numeric write_time:float8 extends:int8 extend_bytes:numeric hits:int8 stats_reset:timestamptz";

/// The views of a version, with their columns.
fn views(version: u32) -> Vec<(&'static str, String)> {
    let mut views = Vec::new();
    views.push(match version {
        13 => ("pg_stat_database", DATABASE.to_owned()),
        _ => ("pg_stat_database", format!("{DATABASE} {SESSIONS}")),
    });
    if version >= 17 {
        let done = if version >= 18 { " num_done:int8 slru_written:int8" } else { "" };
        views.push(("pg_stat_bgwriter", BGWRITER.to_owned()));
        views.push(("pg_stat_checkpointer", format!("{CHECKPOINTER}{done}")));
    } else {
        views.push(("pg_stat_bgwriter", OLD_BGWRITER.to_owned()));
    }
    match version {
        13 => {}
        14..18 => views.push(("pg_stat_wal", OLD_WAL.to_owned())),
        _ => views.push(("pg_stat_wal", WAL.to_owned())),
    }
    match version {
        13..16 => {}
        16 | 17 => views.push(("pg_stat_io", OLD_IO.to_owned())),
        _ => views.push(("pg_stat_io", IO.to_owned())),
    }
    views
}

fn columns(list: &str) -> impl Iterator<Item = (&str, &str)> {
    list.split_ascii_whitespace().map(|column| column.split_once(':').unwrap())
}

fn catalog(version: u32, settings: &[(&str, &str)]) -> Catalog {
    let mut rows: Vec<(String, String, String)> = Vec::new();
    for (view, list) in views(version) {
        rows.extend(columns(&list).map(|(name, kind)| (view.to_owned(), name.to_owned(), kind.to_owned())));
    }
    let functions = TABLE_COUNTERS.iter().map(|(_, function)| *function).chain([FETCHED, HIT]);
    let there = functions.filter(|function| version >= 16 || !function.contains("newpage"));
    rows.extend(there.map(|function| ("function".to_owned(), function.to_owned(), String::new())));
    rows.push(("setting".to_owned(), "track_counts".to_owned(), "on".to_owned()));
    rows.extend(settings.iter().map(|(name, value)| ("setting".to_owned(), (*name).to_owned(), (*value).to_owned())));
    Catalog::from_rows(rows)
}

/// A table for each view of a version, in a schema of the version's name: every counter is 3, every time 1.5 ms.
fn look_alikes(version: u32) -> String {
    let mut made = format!("CREATE SCHEMA v{version};");
    for (view, list) in views(version) {
        let types: Vec<String> = columns(&list).map(|(name, kind)| format!("{name} {kind}")).collect();
        let values: Vec<&str> = columns(&list)
            .map(|(name, kind)| match (name, kind) {
                ("datname", _) => "current_database()",
                ("op_bytes", _) => "8192",
                ("backend_type", _) => "'client backend'",
                ("object", _) => "'relation'",
                ("context", _) => "'normal'",
                ("checksum_failures" | "checksum_last_failure", _) => "NULL",
                (_, "timestamptz") => "'1970-01-01 00:00:01Z'",
                (_, "float8") => "1.5",
                _ => "3",
            })
            .collect();
        let (types, values) = (types.join(", "), values.join(", "));
        let _ =
            write!(made, "CREATE TABLE v{version}.{view} ({types}); INSERT INTO v{version}.{view} SELECT {values};");
    }
    // Another database's counters are not ours.
    let _ = write!(made, "INSERT INTO v{version}.pg_stat_database (datname, blks_hit) VALUES ('other', 100);");
    made
}

/// What a server of this version would report, asked of a real one that has tables in the place of the views.
fn views_of(version: u32, settings: &[(&str, &str)]) -> Option<Views> {
    let address = database(&format!("monitor_version_{version}_{}", settings.len()))?;
    let parts = catalog(version, settings).parts(&[], &[]);
    let sql: Vec<String> =
        parts.iter().map(|part| part.sql.replace("pg_catalog.pg_stat_", &format!("v{version}.pg_stat_"))).collect();
    block_on(async {
        let Connected { client, .. } = Connector::new(&address, "test").unwrap().connect(0).await.unwrap();
        let newpage =
            "CREATE FUNCTION pg_stat_get_tuples_newpage_updated(oid) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint'";
        client.batch_execute(newpage).await.unwrap();
        client.batch_execute(&look_alikes(version)).await.unwrap();
        let mut views = Views::new();
        for row in client.query(&sql.join(" UNION ALL "), &[]).await.unwrap() {
            let value = u64::try_from(row.get::<_, i64>(2)).unwrap();
            let reported_before = views.entry(row.get(0)).or_default().insert(row.get(1), value);
            assert_eq!(reported_before, None, "{:?} twice", row.get::<_, &str>(1));
        }
        Some(views)
    })
}

const TIMED: &[(&str, &str)] = &[("track_io_timing", "on"), ("track_wal_io_timing", "on")];

#[test]
fn every_version_tells_what_it_has() {
    for version in [13, 14, 16, 17, 18] {
        let Some(reported) = views_of(version, TIMED) else { return };
        let of = |view: &str, name: &str| reported.get(view).and_then(|counts| counts.get(name)).copied();
        assert_eq!(of("pg_stat_database", "blks_hit"), Some(3), "{version}");
        assert_eq!(of("pg_stat_database", "blk_read_time_ns"), Some(1_500_000), "{version}");
        assert_eq!(of("pg_stat_database", RESET), Some(1_000_000), "{version}");
        assert_eq!(of("pg_stat_database", "checksum_failures"), None, "{version}");
        assert_eq!(of("pg_stat_database", "numbackends"), None, "{version}");
        assert_eq!(of("pg_stat_database", "session_time_ns").is_some(), version >= 14, "{version}");
        assert_eq!(of("pg_stat_wal", "wal_bytes").is_some(), version >= 14, "{version}");
        assert_eq!(of("pg_stat_wal", "wal_sync_time_ns").is_some(), (14..18).contains(&version), "{version}");
        assert_eq!(of("pg_stat_bgwriter", "buffers_backend").is_some(), version < 17, "{version}");
        assert_eq!(of("pg_stat_bgwriter", "buffers_clean"), Some(3), "{version}");
        assert_eq!(of("pg_stat_checkpointer", "num_timed").is_some(), version >= 17, "{version}");
        assert_eq!(of("pg_stat_checkpointer", "num_done").is_some(), version >= 18, "{version}");
        let read_bytes = match version {
            13 | 14 => None,
            16 | 17 => Some(3 * 8192),
            _ => Some(3),
        };
        assert_eq!(of("pg_stat_io", "client backend.relation.normal.read_bytes"), read_bytes, "{version}");
        assert_eq!(of("pg_stat_io", "client backend.relation.normal.op_bytes"), None, "{version}");
        assert_eq!(of("pg_stat_io", "client backend.relation.normal.read_time_ns").is_some(), version >= 16);
        assert_eq!(of("pg_stat_io", RESET).is_some(), version >= 16, "{version}");
    }
}

#[test]
fn times_that_are_not_measured_are_unknown_not_zero() {
    let Some(reported) = views_of(17, &[]) else { return };
    let untimed = |view: &str| !reported[view].keys().any(|name| name.ends_with("_ns"));
    assert!(untimed("pg_stat_wal") && untimed("pg_stat_io"));
    assert_eq!(reported["pg_stat_database"].get("blk_read_time_ns"), None);
    // These are always measured.
    assert_eq!(reported["pg_stat_database"].get("active_time_ns"), Some(&1_500_000));
    assert_eq!(reported["pg_stat_checkpointer"].get("write_time_ns"), Some(&1_500_000));
}

#[test]
fn where_only_one_kind_of_time_is_measured_the_other_stays_unknown() {
    let Some(reported) = views_of(18, &[("track_wal_io_timing", "on")]) else { return };
    assert_eq!(reported["pg_stat_io"].get("client backend.relation.normal.read_time_ns"), None);
    assert_eq!(reported["pg_stat_io"].get("client backend.relation.normal.reads"), Some(&3));
}

#[test]
fn a_server_that_does_not_count_is_not_asked_for_its_zeros() {
    let rows = columns(WAL).map(|(name, kind)| ("pg_stat_wal".to_owned(), name.to_owned(), kind.to_owned()));
    let database =
        columns(DATABASE).map(|(name, kind)| ("pg_stat_database".to_owned(), name.to_owned(), kind.to_owned()));
    let off = [("setting".to_owned(), "track_counts".to_owned(), "off".to_owned())];
    let parts = Catalog::from_rows(rows.chain(database).chain(off)).parts(&[1], &[2]);
    assert_eq!(parts.iter().map(|part| part.view).collect::<Vec<_>>(), ["pg_stat_wal"]);
}
