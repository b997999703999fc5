//! Removing a data set: what set-up made, and nothing else.

use super::catalog::{self, qualified};
use super::session::Session;
use crate::targets::error::TargetError;
use crate::targets::mysql::sql::quoted;
use crate::targets::sql::data::catalog::{DATA_TABLE, LOAD_TABLE};
use crate::targets::sql::data::descriptor::{Found, Stage};
use crate::targets::sql::data::streams::Halt;

/// How long to wait for sessions that use a table, in seconds; then it is in use.
const LOCK_TIMEOUT_S: u32 = 5;

/// Drops a data set. The caller holds the lock.
pub(super) fn remove(session: &mut Session<'_>, found: &Found, halt: Halt<'_>) -> Result<(), TargetError> {
    let access = session.access();
    let sql = access.sql(found.data.block_bytes);
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
        session.execute(doing, &format!("DROP DATABASE {}", quoted(access.namespace)), halt)?;
    }
    session.execute(doing, "SET SESSION lock_wait_timeout = 31536000", halt)
}

/// Whether nothing is in the database.
fn is_empty(session: &mut Session<'_>) -> Result<bool, TargetError> {
    let ask = "SELECT (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ?) \
               + (SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = ?) \
               + (SELECT COUNT(*) FROM information_schema.events WHERE event_schema = ?)";
    let database = session.access().namespace;
    let left: Option<u64> = session.first("look what else is in the database", ask, (database, database, database))?;
    Ok(left == Some(0))
}
