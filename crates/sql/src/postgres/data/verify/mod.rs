//! Proving that a data set is whole: every row is there once, in a block of its own and of the right shape, and the index
//! agrees.
//!
//! All rows are read where they lie, so a server with data checksums checks every block too. Their keys come here, to be
//! ticked off one by one. Then the index is read from end to end.

mod reading;
#[cfg(test)]
mod tests;

use serde_json::json;

use super::catalog::Server;
use super::descriptor::{DataSet, TableId, TableKind};
use super::session::{Access, Halt, Session};
use crate::ServerError;
use crate::data::streams::Stream;
use crate::data::verify::{Findings, Verify, VerifyReport};
use crate::postgres::Connector;
use crate::postgres::sql::identifier;
use targets::TargetError;

impl Verify for Connector {
    const STREAMS: u32 = 2;

    fn means(
        access: Access<'_>,
        session: &mut Session<'_>,
        server: &mut Server,
        report: &mut VerifyReport,
    ) -> Result<(), TargetError> {
        if !server.data_checksums {
            report.notes.push(
                "the server has no data checksums, so a flipped bit in the filling of a row is not noticed".to_owned(),
            );
        }
        server.amcheck = find_amcheck(session)?;
        if server.amcheck.is_none() {
            report.notes.push(
                "the pages of the indexes were not checked, only their entries: the extension amcheck is not installed in \
                 this database, or the role may not execute its bt_index_check()"
                    .to_owned(),
            );
        }
        report.own.extend([
            ("namespace", json!(access.namespace)),
            ("data_checksums", json!(server.data_checksums)),
            ("amcheck", json!(server.amcheck.is_some())),
        ]);
        Ok(())
    }

    fn check_table(
        session: &mut Session<'_>,
        data: &DataSet,
        table: TableId,
        server: &Server,
        stream: &Stream<'_>,
        found: &mut Findings,
    ) -> Result<(), TargetError> {
        reading::heap(session, data, table, stream, found)?;
        if table.kind == TableKind::Rows {
            reading::index(session, data, table.schema, stream.halt, found)?;
            if let Some(amcheck) = &server.amcheck {
                reading::index_pages(session, data, table.schema, amcheck, stream.halt)?;
            }
        }
        Ok(())
    }

    fn fault_of(error: &TargetError) -> Option<String> {
        // A table, a column or an index that is missing, and data or an index that are corrupted.
        let faults = ["42P01", "42703", "42704", "XX001", "XX002"];
        let (code, message) = ServerError::refusal_in(error).filter(|(code, _)| faults.contains(code))?;
        Some(format!("{message} (SQLSTATE {code})"))
    }
}

/// The checking function of amcheck, qualified and quoted, where it is installed and may be executed.
fn find_amcheck(session: &Session<'_>) -> Result<Option<String>, TargetError> {
    let ask = "SELECT n.nspname::text FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace \
               JOIN pg_proc p ON p.pronamespace = n.oid AND p.proname = 'bt_index_check' AND p.pronargs = 2 \
               WHERE e.extname = 'amcheck' AND has_schema_privilege(n.oid, 'USAGE') \
               AND has_function_privilege(p.oid, 'EXECUTE')";
    let rows = session.query("look for amcheck", ask, &[], Halt::NEVER)?;
    Ok(rows.first().map(|row| format!("{}.bt_index_check", identifier(row.get(0)))))
}
