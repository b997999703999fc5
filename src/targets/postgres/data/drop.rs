//! Removing a data set: what set-up made, and nothing else.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use super::catalog::{self, DATA_TABLE, Found, Ground, LOAD_TABLE, Stage};
use super::descriptor::TableId;
use super::session::{Access, Halt, Session};
use crate::targets::error::TargetError;
use crate::targets::postgres::sql::Sql;

/// Tables that are dropped in one transaction: each holds locks until its end, of which a server has few.
const DROPPED_AT_ONCE: usize = 16;
/// How long to wait for sessions that use a table; then it is in use, and dropping it would only make them wait too.
const LOCK_TIMEOUT: &str = "5s";

/// What [`run`] will do.
#[derive(Debug, Clone)]
pub struct DropPlan<'a> {
    /// Where.
    pub access: Access<'a>,
    /// What set-up made and is still there: bare names and bytes with everything that belongs to it, the largest first.
    pub objects: Vec<Dropped>,
    /// Bytes of all.
    pub bytes: u64,
    /// Whether set-up also made the schema of the database; it goes if nothing else is in it.
    pub made_namespace: bool,
}

/// One table or procedure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Its bare name.
    pub name: String,
    /// What it takes, its index included.
    pub bytes: u64,
}

/// What [`run`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DropReport {
    /// Whether the schema of the database was removed too.
    pub removed_namespace: bool,
}

/// Lists what would go, and changes nothing. Unfinished data can be dropped too.
///
/// # Errors
/// When there are no data, or the server cannot be asked.
pub fn plan<'a>(access: &Access<'a>) -> Result<DropPlan<'a>, TargetError> {
    let session = Session::open(*access)?;
    let found = catalog::require(*access, Ground::look(&session)?.found)?;
    let there: BTreeMap<String, u64> = catalog::our_objects(&session)?.into_iter().collect();
    let mut objects: Vec<Dropped> =
        names(&found).filter_map(|name| there.get(&name).map(|bytes| Dropped { name, bytes: *bytes })).collect();
    objects.sort_by_key(|object| std::cmp::Reverse(object.bytes));
    let bytes = objects.iter().map(|object| object.bytes).sum();
    Ok(DropPlan { access: *access, objects, bytes, made_namespace: found.made_namespace })
}

/// Bare names of everything that set-up makes, without the indexes, which go with their tables.
fn names(found: &Found) -> impl Iterator<Item = String> {
    let procedures = (0..found.data.schemas).map(Sql::procedure_name);
    let own = [DATA_TABLE, LOAD_TABLE].map(str::to_owned);
    found.data.tables().map(TableId::name).chain(procedures).chain(own)
}

/// Drops what was listed. Setting `stop` ends it soon; the rest can be dropped later.
///
/// # Errors
/// [`TargetError::Interrupted`] when stopped, or what went wrong, such as tables that somebody uses.
pub fn run(plan: DropPlan<'_>, stop: &AtomicBool) -> Result<DropReport, TargetError> {
    let session = Session::open(plan.access)?;
    catalog::lock(&session)?;
    let found = catalog::require(plan.access, Ground::look(&session)?.found)?;
    remove(&session, &found, Halt::on(stop))?;
    Ok(DropReport { removed_namespace: !Ground::look(&session)?.has_namespace() })
}

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
