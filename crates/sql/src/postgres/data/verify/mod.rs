//! Proving that a data set is whole: every row is there once, in a block of its own and of the right shape, and the index
//! agrees.
//!
//! All rows are read where they lie, so a server with data checksums checks every block too. Their keys come here, to be
//! ticked off one by one. Then the index is read from end to end.

mod reading;

use serde_json::json;

use super::catalog::Server;
use super::descriptor::{DataSet, TableId, TableKind};
use super::session::{Access, Halt, Session};
use crate::ServerError;
use crate::data::streams::Stream;
use crate::data::{Findings, Verify, VerifyReport};
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
                "the entries of the indexes were checked, but not their pages: amcheck is not installed in this \
                database, or the role may not execute bt_index_check()"
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::data::verify;
    use crate::postgres::data::tests::{NAMESPACE, connector, execute, refusal, request, set_up};
    use crate::postgres::test_server::database;
    use targets::database::{Progress, Replace, SetupRequest};

    fn verified(access: &Access<'_>) -> VerifyReport {
        verify(access, &|_| {}, &AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn fresh_data_are_sound_and_progress_comes_to_its_end() {
        let Some(address) = database("verify_fresh") else { return };
        let connector = connector(&address);
        let access = Access::new(&connector, NAMESPACE);
        assert!(refusal(verify(&access, &|_| {}, &AtomicBool::new(false))).0.contains("no SLOB data"));
        set_up(&access, &request()).unwrap();
        let last = Mutex::new(None);
        let report =
            verify(&access, &|reported| *last.lock().unwrap() = Some(reported), &AtomicBool::new(false)).unwrap();
        assert!(report.is_sound(), "{report:?}");
        assert_eq!((report.rows, report.tables, report.bytes), (960, 6, 960 * 8192));
        assert_eq!(*last.lock().unwrap(), Some(Progress { done_bytes: 960 * 8192, total_bytes: 960 * 8192 }));
        // From version 18 on they are there unless told not to.
        let checksums = report.own["data_checksums"] == json!(true);
        let notes = if checksums { 1 } else { 2 };
        assert!(report.own["amcheck"] == json!(false) && report.notes.len() == notes, "{report:?}");
        // Updated rows are as sound.
        execute(&access, "UPDATE slob_1 SET c2 = c3, c20 = c4 WHERE custid < 100");
        assert!(verified(&access).is_sound());
        execute(&access, "CREATE EXTENSION amcheck SCHEMA public");
        let report = verified(&access);
        assert!(
            report.is_sound() && report.own["amcheck"] == json!(true) && report.notes.len() == notes - 1,
            "{report:?}"
        );
    }

    #[test]
    fn every_kind_of_damage_is_found_and_named() {
        let Some(address) = database("verify_damage") else { return };
        let connector = connector(&address);
        let access = Access::new(&connector, NAMESPACE);
        let columns = (2..=20).map(|column| format!("c{column}")).collect::<Vec<_>>().join(", ");
        let copy_row = |key: i64| {
            format!("INSERT INTO slob_2 (custid, {columns}) SELECT {key}, {columns} FROM slob_2 WHERE custid = 9")
        };
        let cases = [
            ("DELETE FROM slob_1 WHERE custid = 17".to_owned(), "`slob_1` misses 1 of 300 rows; the first has key 17"),
            (format!("DROP INDEX slob_2_key; {}", copy_row(9)), "`slob_2` has more than one row with key 9"),
            (copy_row(300), "`slob_2` has a row with key 300, which belongs nowhere"),
            (copy_row(-1), "`slob_2` has a row with key -1, which belongs nowhere"),
            (
                "UPDATE slob_3 SET c7 = substr(c7, 1, 47) WHERE custid = 5".to_owned(),
                "the row with key 5 of `slob_3` has a column c7 of the wrong length",
            ),
            ("DELETE FROM scan_2 WHERE custid = 3".to_owned(), "`scan_2` misses 1 of 20 rows; the first has key 3"),
            ("DROP INDEX slob_1_key".to_owned(), "the index `slob_1_key` is missing or not valid"),
            ("DROP TABLE slob_2".to_owned(), "does not exist (SQLSTATE 42P01)"),
            ("ALTER TABLE slob_2 DROP COLUMN c4".to_owned(), "column \"c4\" does not exist"),
            (
                "ALTER TABLE slob_1 SET (fillfactor = 100); VACUUM FULL slob_1".to_owned(),
                "block 0 of `slob_1` holds more than one row",
            ),
        ];
        for (statements, fault) in cases {
            set_up(&access, &SetupRequest { replace: Replace::Replace, ..request() }).unwrap();
            execute(&access, &statements);
            let report = verified(&access);
            assert!(!report.is_sound());
            assert!(
                report.faults.iter().any(|reported| reported.contains(fault)),
                "`{statements}` gave {:?}",
                report.faults
            );
            assert_eq!(report.fault_count, report.faults.len() as u64);
        }
    }

    #[test]
    fn an_index_that_disagrees_with_its_table_is_found() {
        let Some(address) = database("verify_index") else { return };
        let connector = connector(&address);
        let access = Access::new(&connector, NAMESPACE);
        set_up(&access, &request()).unwrap();
        // An index on other keys than those of the rows: an index on an expression, dressed up as the real one, cannot be made
        // by SQL, so the rows are changed below the index instead.
        execute(&access, "DROP INDEX slob_1_key; CREATE INDEX slob_1_key ON slob_1 (custid)");
        let report = verified(&access);
        assert_eq!(report.faults, ["the index `slob_1_key` is missing or not valid"], "an index that is not unique");
        execute(
            &access,
            "DROP INDEX slob_1_key; CREATE UNIQUE INDEX slob_1_key ON slob_1 (custid); \
         UPDATE pg_index SET indisready = false, indislive = true WHERE indexrelid = 'plimsoll.slob_1_key'::regclass; \
         DELETE FROM slob_1 WHERE custid = 4; \
         INSERT INTO slob_1 SELECT 4, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20 \
         FROM slob_1 WHERE custid = 5; \
         UPDATE pg_index SET indisready = true WHERE indexrelid = 'plimsoll.slob_1_key'::regclass",
        );
        let report = verified(&access);
        assert_eq!(report.faults, ["the index `slob_1_key` has the key 5 where 4 belongs"]);
    }

    #[test]
    fn it_can_be_interrupted() {
        let Some(address) = database("verify_stop") else { return };
        let connector = connector(&address);
        let access = Access::new(&connector, NAMESPACE);
        set_up(&access, &SetupRequest { scale_blocks: 20_000, ..request() }).unwrap();
        let stop = AtomicBool::new(false);
        let outcome = verify(&access, &|_| stop.store(true, Ordering::Relaxed), &stop);
        assert!(matches!(outcome, Err(TargetError::Interrupted)), "{outcome:?}");
    }
}
