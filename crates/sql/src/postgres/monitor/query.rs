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
    format!("unnest('{{{}}}'::oid[]) r", numbers.join(","))
}

fn union(view: &'static str, counters: &[String]) -> Option<Part> {
    let counters = counters.join(", ");
    let sql =
        format!("SELECT '{view}', c.name, c.value FROM (VALUES {counters}) c(name, value) WHERE c.value IS NOT NULL");
    (!counters.is_empty()).then_some(Part { view, sql })
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
