//! Removing a data set: what set-up made, and nothing else.

use super::catalog;
use super::session::{Halt, Session};
use crate::targets::error::TargetError;
use crate::targets::sql::data::catalog::{DATA_TABLE, LOAD_TABLE};
use crate::targets::sql::data::descriptor::{Found, Stage};

/// Tables that are dropped in one transaction: each holds locks until its end, of which a server has few.
const DROPPED_AT_ONCE: usize = 16;
/// How long to wait for sessions that use a table; then it is in use, and dropping it would only make them wait too.
const LOCK_TIMEOUT: &str = "5s";

/// Drops a data set. The caller holds the lock.
pub(super) fn remove(session: &Session<'_>, found: &Found, halt: Halt<'_>) -> Result<(), TargetError> {
    let access = session.access();
    let sql = access.sql(found.data.block_bytes);
    let doing = "drop the data";
    let begin = format!("SET lock_timeout = '{LOCK_TIMEOUT}'; {}", catalog::set_stage(access, Stage::Dropping));
    session.execute(doing, &begin, halt)?;
    let procedures: Vec<String> =
        (0..found.data.schemas).map(|schema| format!("DROP PROCEDURE IF EXISTS {}", sql.procedure(schema))).collect();
    let tables: Vec<String> =
        found.data.tables().map(|table| format!("DROP TABLE IF EXISTS {}", table.qualified(&sql))).collect();
    for statements in procedures.chunks(DROPPED_AT_ONCE).chain(tables.chunks(DROPPED_AT_ONCE)) {
        session.execute(doing, &statements.join("; "), halt)?;
    }
    let mut last =
        format!("DROP TABLE IF EXISTS {}; DROP TABLE {}", catalog::load_table(access), sql.qualified(DATA_TABLE));
    if found.made_namespace && is_empty_but_for_ours(session)? {
        last.push_str(&format!("; DROP SCHEMA {}", sql.schema()));
    }
    session.execute(doing, &format!("{last}; SET lock_timeout = 0"), halt)
}

/// Whether nothing is in the namespace but Plimsoll's own two tables and what hangs on them.
fn is_empty_but_for_ours(session: &Session<'_>) -> Result<bool, TargetError> {
    // Everything in a schema depends on it: one catalogue reports on objects of every kind.
    let ask = "SELECT NOT EXISTS (SELECT FROM pg_depend d WHERE d.refclassid = 'pg_namespace'::regclass \
               AND d.refobjid = (SELECT oid FROM pg_namespace WHERE nspname = $1) \
               AND NOT (d.classid = 'pg_class'::regclass AND d.objid IN (SELECT c.oid FROM pg_class c \
               WHERE c.relname = ANY($2))))";
    let own = [DATA_TABLE, LOAD_TABLE].as_slice();
    Ok(session.query_one("look what else is in the schema", ask, &[&session.access().namespace, &own])?.get(0))
}
