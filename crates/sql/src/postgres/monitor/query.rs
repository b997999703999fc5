//! What a server can be asked: its views and columns as they were found, and the statement that reads them all.

use std::collections::{BTreeMap, BTreeSet};

/// Views of one row, or of rows that are distinguished, whose counters are all read.
const VIEWS: [&str; 5] = ["pg_stat_database", "pg_stat_wal", "pg_stat_bgwriter", "pg_stat_checkpointer", "pg_stat_io"];

/// Name of a row that says when the counters of its view were last set to zero, in microseconds since 1970.
pub(super) const RESET: &str = "stats_reset";

/// Counters of a table, and the function that gives each. They are asked by function because the views look tables up
/// in the catalog, and those blocks would count as touched by the load.
const TABLE_COUNTERS: [(&str, &str); 12] = [
    ("seq_scan", "pg_stat_get_numscans"),
    ("seq_tup_read", "pg_stat_get_tuples_returned"),
    ("n_tup_ins", "pg_stat_get_tuples_inserted"),
    ("n_tup_upd", "pg_stat_get_tuples_updated"),
    ("n_tup_del", "pg_stat_get_tuples_deleted"),
    ("n_tup_hot_upd", "pg_stat_get_tuples_hot_updated"),
    ("n_tup_newpage_upd", "pg_stat_get_tuples_newpage_updated"),
    ("vacuum_count", "pg_stat_get_vacuum_count"),
    ("autovacuum_count", "pg_stat_get_autovacuum_count"),
    ("analyze_count", "pg_stat_get_analyze_count"),
    ("autoanalyze_count", "pg_stat_get_autoanalyze_count"),
    ("idx_scan", "pg_stat_get_numscans"),
];
const FETCHED: &str = "pg_stat_get_blocks_fetched";
const HIT: &str = "pg_stat_get_blocks_hit";

/// Settings that say what counters mean.
pub(super) const SETTINGS: [&str; 5] =
    ["track_counts", "track_activities", "track_io_timing", "track_wal_io_timing", "stats_fetch_consistency"];

/// Gives kind, name and type of the columns and functions that a server has, and its settings: one row each.
pub(super) fn catalog_query() -> String {
    let list =
        |names: &mut dyn Iterator<Item = &str>| names.map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    let views = list(&mut VIEWS.into_iter());
    let functions = list(&mut TABLE_COUNTERS.iter().map(|(_, function)| *function).chain([FETCHED, HIT]));
    let settings = list(&mut SETTINGS.into_iter());
    format!(
        "SELECT c.relname::text, a.attname::text, t.typname::text \
         FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid \
         JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
         WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relname IN ({views}) AND a.attnum > 0 \
         AND NOT a.attisdropped \
         UNION ALL SELECT DISTINCT 'function', proname::text, '' FROM pg_catalog.pg_proc \
         WHERE pronamespace = 'pg_catalog'::regnamespace AND proname IN ({functions}) \
         UNION ALL SELECT 'setting', s, current_setting(s, true) FROM unnest(ARRAY[{settings}]) s \
         WHERE current_setting(s, true) IS NOT NULL"
    )
}

/// What a server has.
#[derive(Debug, Clone, Default)]
pub(super) struct Catalog {
    /// Columns of its views, by type.
    views: BTreeMap<String, BTreeMap<String, String>>,
    functions: BTreeSet<String>,
    settings: BTreeMap<String, String>,
}

/// A statement that gives view, counter and value, and whose columns those are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) view: &'static str,
    pub(super) sql: String,
}

impl Catalog {
    /// From the rows of [`catalog_query`].
    pub(super) fn from_rows(rows: impl IntoIterator<Item = (String, String, String)>) -> Self {
        let mut catalog = Self::default();
        for (kind, name, value) in rows {
            match kind.as_str() {
                "function" => drop(catalog.functions.insert(name)),
                "setting" => drop(catalog.settings.insert(name, value)),
                _ => drop(catalog.views.entry(kind).or_default().insert(name, value)),
            }
        }
        catalog
    }

    /// A setting, if the server has it.
    pub(super) fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// Whether a setting is there and on.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.setting(name) == Some("on")
    }

    /// The statements that read everything the server has, each of them good on its own and all of them in a `UNION ALL`.
    /// `tables` and `indexes` are those whose counters are summed.
    pub(super) fn parts(&self, tables: &[u32], indexes: &[u32]) -> Vec<Part> {
        let mut parts = Vec::new();
        for view in VIEWS {
            let counted = view != "pg_stat_database" || self.is_on("track_counts");
            if let Some(columns) = self.views.get(view).filter(|_| counted) {
                parts.extend(self.view_part(view, columns));
            }
        }
        if self.is_on("track_counts") {
            parts.extend(self.table_part(tables, indexes));
            parts.extend(self.blocks_part(tables, indexes));
        }
        parts
    }

    fn view_part(&self, view: &'static str, columns: &BTreeMap<String, String>) -> Option<Part> {
        let is_io = view == "pg_stat_io";
        let mut counters: Vec<String> = columns
            .iter()
            .filter_map(|(column, kind)| self.counter(view, column, kind))
            .map(|(key, value)| format!("('{key}', {value})"))
            .collect();
        if counters.is_empty() {
            return None;
        }
        if is_io && columns.contains_key("op_bytes") {
            for (count, bytes) in [("reads", "read_bytes"), ("writes", "write_bytes"), ("extends", "extend_bytes")] {
                counters.push(format!("('{bytes}', (v.{count} * v.op_bytes)::int8)"));
            }
        }
        let reset = columns
            .contains_key(RESET)
            .then(|| format!("coalesce((extract(epoch FROM v.{RESET}) * 1000000)::int8, 0)"));
        let name = if is_io { "concat_ws('.', v.backend_type, v.object, v.context, c.name)" } else { "c.name" };
        let mut filter = "c.value IS NOT NULL".to_owned();
        let mut sql = String::new();
        match (view, reset) {
            ("pg_stat_io", reset) => {
                // Hundreds of its counters never move.
                filter = "c.value <> 0".to_owned();
                if let Some(reset) = reset {
                    sql = format!("SELECT '{view}', '{RESET}', max({reset}) FROM pg_catalog.{view} v UNION ALL ");
                }
            }
            (_, Some(reset)) => counters.push(format!("('{RESET}', {reset})")),
            (_, None) => {}
        }
        if view == "pg_stat_database" {
            filter.push_str(" AND v.datname = current_database()");
        }
        let counters = counters.join(", ");
        sql.push_str(&format!(
            "SELECT '{view}', {name}, c.value FROM pg_catalog.{view} v, LATERAL (VALUES {counters}) c(name, value) \
             WHERE {filter}"
        ));
        Some(Part { view, sql })
    }

    /// The counter in a column, as its key and the expression of its value; `None` for what is no counter, and for times that
    /// the server does not measure, which are zero there.
    fn counter(&self, view: &str, column: &str, kind: &str) -> Option<(String, String)> {
        match kind {
            "int8" | "numeric" if column != "op_bytes" => Some((column.to_owned(), format!("v.{column}::int8"))),
            // All of them are milliseconds.
            "float8" => {
                let value = format!("(v.{column} * 1000000)::int8");
                let (io, wal) = (self.is_on("track_io_timing"), self.is_on("track_wal_io_timing"));
                let value = match view {
                    "pg_stat_database" if column.starts_with("blk_") => io.then_some(value),
                    "pg_stat_wal" => wal.then_some(value),
                    "pg_stat_io" => match (io, wal) {
                        (true, true) => Some(value),
                        (false, false) => None,
                        (true, false) => Some(format!("CASE WHEN v.object <> 'wal' THEN {value} END")),
                        (false, true) => Some(format!("CASE WHEN v.object = 'wal' THEN {value} END")),
                    },
                    _ => Some(value),
                };
                value.map(|value| (format!("{column}_ns"), value))
            }
            _ => None,
        }
    }

    fn table_part(&self, tables: &[u32], indexes: &[u32]) -> Option<Part> {
        const VIEW: &str = "pg_stat_user_tables";
        let sums: Vec<String> = TABLE_COUNTERS
            .iter()
            .filter(|(_, function)| self.functions.contains(*function))
            .map(|(key, function)| {
                let of = if *key == "idx_scan" { indexes } else { tables };
                format!("('{key}', (SELECT sum({function}(r))::int8 FROM {}))", relations(of))
            })
            .collect();
        union(VIEW, &sums)
    }

    fn blocks_part(&self, tables: &[u32], indexes: &[u32]) -> Option<Part> {
        const VIEW: &str = "pg_statio_user_tables";
        if ![FETCHED, HIT].iter().all(|function| self.functions.contains(*function)) {
            return None;
        }
        let sum = |what: &str, of: &[u32]| {
            [("read", format!("{FETCHED}(r) - {HIT}(r)")), ("hit", format!("{HIT}(r)"))].map(|(name, value)| {
                format!("('{what}_blks_{name}', (SELECT sum({value})::int8 FROM {}))", relations(of))
            })
        };
        union(VIEW, &[sum("heap", tables), sum("idx", indexes)].concat())
    }
}

/// Pages of tables, as the files are now.
pub(super) fn pages_query(tables: &[u32]) -> String {
    format!(
        "SELECT sum(pg_relation_size(r, 'main') / current_setting('block_size')::int8)::int8 FROM {}",
        relations(tables)
    )
}

/// Relations by number, as a table of one column `r`.
fn relations(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    format!("pg_catalog.unnest('{{{}}}'::oid[]) r", numbers.join(","))
}

fn union(view: &'static str, counters: &[String]) -> Option<Part> {
    let counters = counters.join(", ");
    let sql =
        format!("SELECT '{view}', c.name, c.value FROM (VALUES {counters}) c(name, value) WHERE c.value IS NOT NULL");
    (!counters.is_empty()).then_some(Part { view, sql })
}

#[cfg(test)]
mod tests {
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
        rows.extend(
            settings.iter().map(|(name, value)| ("setting".to_owned(), (*name).to_owned(), (*value).to_owned())),
        );
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
            let _ = write!(
                made,
                "CREATE TABLE v{version}.{view} ({types}); INSERT INTO v{version}.{view} SELECT {values};"
            );
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
            let newpage = "CREATE FUNCTION pg_stat_get_tuples_newpage_updated(oid) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint'";
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
}
