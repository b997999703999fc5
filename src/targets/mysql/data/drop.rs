//! Removing a data set: what set-up made, and nothing else.

use std::sync::atomic::AtomicBool;

use super::catalog::{self, DATA_TABLE, LOAD_TABLE, qualified};
use super::session::{Access, Session};
use crate::targets::error::TargetError;
use crate::targets::mysql::sql::quoted;
use crate::targets::sql::data::descriptor::{Found, Stage};
use crate::targets::sql::data::streams::Halt;

/// How long to wait for sessions that use a table, in seconds; then it is in use.
const LOCK_TIMEOUT_S: u32 = 5;

/// What [`run`] will do.
#[derive(Debug, Clone)]
pub struct DropPlan<'a> {
    /// Where.
    pub access: Access<'a>,
    /// What set-up made and is still there: bare names and bytes with indexes, the largest first.
    pub objects: Vec<(String, u64)>,
    /// Bytes of all.
    pub bytes: u64,
    /// Whether set-up also made the database; it goes if nothing else is in it.
    pub made_database: bool,
}

/// Lists what would go, and changes nothing. Unfinished data can be dropped too.
///
/// # Errors
/// When there are no data, or the server cannot be asked.
pub fn plan<'a>(access: &Access<'a>) -> Result<DropPlan<'a>, TargetError> {
    let mut session = Session::open(*access)?;
    let found = catalog::read_descriptor(&mut session)?;
    let found = catalog::require(*access, found)?;
    let there = catalog::our_objects(&mut session)?;
    let own = [DATA_TABLE, LOAD_TABLE].map(str::to_owned);
    let names = catalog::expected_objects(&found.data).into_iter().chain(own);
    let mut objects: Vec<(String, u64)> =
        names.filter_map(|name| there.get(&name).map(|bytes| (name, *bytes))).collect();
    objects.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let bytes = objects.iter().map(|(_, bytes)| bytes).sum();
    Ok(DropPlan { access: *access, objects, bytes, made_database: found.made_namespace })
}

/// Drops what was listed, and says whether the database went as well. Setting `stop` ends it soon; the rest can be dropped
/// later.
///
/// # Errors
/// [`TargetError::Interrupted`] when stopped, or what went wrong, such as tables that somebody uses.
pub fn run(plan: DropPlan<'_>, stop: &AtomicBool) -> Result<bool, TargetError> {
    let mut session = Session::open(plan.access)?;
    catalog::lock(&mut session)?;
    let found = catalog::read_descriptor(&mut session)?;
    remove(&mut session, &catalog::require(plan.access, found)?, stop)?;
    Ok(!catalog::has_database(&mut session)?)
}

/// Drops a data set. The caller holds the lock.
pub(super) fn remove(session: &mut Session<'_>, found: &Found, stop: &AtomicBool) -> Result<(), TargetError> {
    let access = session.access();
    let (sql, halt) = (access.sql(found.data.block_bytes), Halt::on(stop));
    let doing = "drop the data";
    session.execute(doing, &format!("SET SESSION lock_wait_timeout = {LOCK_TIMEOUT_S}"), halt)?;
    catalog::set_stage(session, Stage::Dropping)?;
    let procedures =
        (0..found.data.schemas).map(|schema| format!("DROP PROCEDURE IF EXISTS {}", sql.procedure(schema)));
    let tables = found.data.tables().map(|table| format!("DROP TABLE IF EXISTS {}", table.qualified_in(&sql)));
    let last = [LOAD_TABLE, DATA_TABLE].map(|name| format!("DROP TABLE IF EXISTS {}", qualified(access, name)));
    for statement in procedures.chain(tables).chain(last) {
        session.execute(doing, &statement, halt)?;
    }
    if found.made_namespace && is_empty(session)? {
        session.execute(doing, &format!("DROP DATABASE {}", quoted(access.database)), halt)?;
    }
    session.execute(doing, "SET SESSION lock_wait_timeout = 31536000", halt)
}

/// Whether nothing is in the database.
fn is_empty(session: &mut Session<'_>) -> Result<bool, TargetError> {
    let ask = "SELECT (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ?) \
               + (SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = ?) \
               + (SELECT COUNT(*) FROM information_schema.events WHERE event_schema = ?)";
    let database = session.access().database;
    let left: Option<u64> = session.first("look what else is in the database", ask, (database, database, database))?;
    Ok(left == Some(0))
}
