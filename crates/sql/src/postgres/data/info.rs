//! What is known of a data set without reading its rows.

use serde::Serialize;

use super::descriptor::DataSet;
use super::session::{Access, Halt, Session};
use crate::data::Stage;
use crate::data::catalog::{self, Keeps, NamespaceFacts, SqlData as _};
use crate::postgres::Connector;
use targets::TargetError;

/// What is known of a data set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Info {
    /// The server.
    pub node: String,
    /// Its version, in its own words.
    pub server_version: String,
    /// The database.
    pub database: String,
    /// The schema of the database.
    pub namespace: String,
    /// The role that looked.
    pub role: String,
    /// What the data are, or are to become.
    pub descriptor: DataSet,
    /// How far they have come.
    pub stage: Stage,
    /// Who makes or removes them just now.
    pub in_use_by: Option<String>,
    /// Whether set-up made the schema of the database too.
    pub made_namespace: bool,
    /// The tables that are there, in the order of their names as numbers.
    pub tables: Vec<TableInfo>,
    /// Bytes of all tables, without their indexes.
    pub bytes: u64,
    /// Bytes of all indexes.
    pub index_bytes: u64,
    /// Whether the server checks blocks that it reads against checksums.
    pub data_checksums: bool,
    /// Rights and settings that are missing, and what they would show.
    pub missing: Vec<MissingRight>,
}

/// One table of a data set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableInfo {
    /// Its bare name.
    pub name: String,
    /// Rows, as the server estimates; unknown before it was vacuumed or analyzed.
    pub estimated_rows: Option<u64>,
    /// Bytes of its blocks.
    pub bytes: u64,
    /// Bytes of its indexes.
    pub index_bytes: u64,
}

/// A right or setting that would show more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingRight {
    /// Its name, such as `pg_read_all_stats`.
    pub name: String,
    /// What it would show or allow.
    pub gives: &'static str,
    /// How to get it.
    pub cure: String,
}

/// Looks at a data set, also while load runs on it; changes nothing.
///
/// # Errors
/// When there is none, or the server cannot be asked.
pub(crate) fn info(access: &Access<'_>) -> Result<Info, TargetError> {
    let mut session = Session::open(*access)?;
    let NamespaceFacts { server, found, .. } = <Connector as Keeps<DataSet>>::look(&mut session)?;
    let found = catalog::require(*access, found)?;
    let tables = tables(&session, &found.data)?;
    Ok(Info {
        node: access.node_name(),
        missing: missing_rights(&session, &server.role)?,
        server_version: server.version,
        database: server.database,
        namespace: access.namespace.to_owned(),
        role: server.role,
        descriptor: found.data,
        stage: found.stage,
        in_use_by: Connector::lock_holder(&mut session)?,
        made_namespace: found.made_namespace,
        bytes: tables.iter().map(|table| table.bytes).sum(),
        index_bytes: tables.iter().map(|table| table.index_bytes).sum(),
        tables,
        data_checksums: server.data_checksums,
    })
}

fn tables(session: &Session<'_>, data: &DataSet) -> Result<Vec<TableInfo>, TargetError> {
    let names: Vec<String> = data.tables().map(|table| table.name()).collect();
    // Before version 14, a table that was never vacuumed has 0 rows instead of -1.
    let ask = "SELECT t.name, c.reltuples, pg_relation_size(c.oid), pg_indexes_size(c.oid), c.relpages \
               FROM unnest($2::text[]) WITH ORDINALITY t(name, place) JOIN pg_class c ON c.relname = t.name \
               WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND c.relkind = 'r' ORDER BY place";
    let rows = session.query("list the tables", ask, &[&session.access().namespace, &names], Halt::NEVER)?;
    let table = |row: &tokio_postgres::Row| {
        let (rows, pages): (f32, i32) = (row.get(1), row.get(4));
        let bytes = |column: usize| row.get::<_, Option<i64>>(column).unwrap_or(0).unsigned_abs();
        TableInfo {
            name: row.get(0),
            estimated_rows: (rows > 0.0 || (rows == 0.0 && pages > 0)).then_some(rows as u64),
            bytes: bytes(2),
            index_bytes: bytes(3),
        }
    };
    Ok(rows.iter().map(table).collect())
}

/// Rights and settings that an ordinary role lacks, and what they would show.
fn missing_rights(session: &Session<'_>, role: &str) -> Result<Vec<MissingRight>, TargetError> {
    const ROLES: [(&str, &str); 2] = [
        ("pg_read_all_stats", "what the server's own processes wait for, and counters that only it may see"),
        ("pg_checkpoint", "a checkpoint at the end of set-up, so that no run pays for loaded blocks"),
    ];
    const SETTINGS: [(&str, &str); 2] = [
        ("track_io_timing", "how long the server's reads and writes of blocks take"),
        ("track_wal_io_timing", "how long the server's writes and syncs of the write-ahead log take"),
    ];
    let role = crate::postgres::sql::identifier(role);
    let mut missing = Vec::new();
    for (name, gives) in ROLES {
        // Older servers lack some of these roles: then there is nothing to be had.
        let ask = "SELECT pg_has_role(current_user, to_regrole($1::text)::oid, 'USAGE')";
        if session.query_one("ask for the role's rights", ask, &[&name])?.get::<_, Option<bool>>(0) == Some(false) {
            missing.push(MissingRight { name: name.to_owned(), gives, cure: format!("GRANT {name} TO {role}") });
        }
    }
    for (name, gives) in SETTINGS {
        let ask = "SELECT current_setting($1::text, true) = 'off'";
        if session.query_one("ask for its settings", ask, &[&name])?.get::<_, Option<bool>>(0) == Some(true) {
            missing.push(MissingRight { name: name.to_owned(), gives, cure: format!("ALTER SYSTEM SET {name} = on") });
        }
    }
    Ok(missing)
}
