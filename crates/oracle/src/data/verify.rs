//! Reading a whole data set: whether it is what was loaded.

use super::catalog::{NO_TABLE, Server, name_of, sql_of};
use super::session::Session;
use crate::connect::Connector;
use crate::error::number;
use crate::sql::Address;
use ::sql::data::streams::Stream;
use ::sql::data::{DataSet, Findings, TableId, TableKind, Verify};
use ::sql::{COLUMNS, ServerError};
use targets::{DatabaseError as _, TargetError};

/// Rows that are asked for at a time.
const ROWS_AT_ONCE: u64 = 20_000;

/// Every row of every table is read, with its address and the length of its filling.
impl Verify for Connector {
    fn check_table(
        session: &mut Session<'_>,
        data: &DataSet,
        table: TableId,
        _: &Server,
        stream: &Stream<'_>,
        found: &mut Findings,
    ) -> Result<(), TargetError> {
        let sql = sql_of(session.access(), data.block_bytes);
        let (name, bare, rows) = (name_of(&sql, table), table.name(), data.rows_of(table));
        let doing = format!("read {name}");
        let width = u64::from(COLUMNS * data.column_bytes);
        // Without an index the server would read the whole table for each part of it.
        let at_once = if table.kind == TableKind::Scan { rows } else { ROWS_AT_ONCE };
        let mut blocks = std::collections::HashSet::new();
        let (mut from, end) = (sql.custid(0), sql.custid(rows));
        while from < end {
            stream.halt.check()?;
            let beyond = end.min(from + at_once);
            let read: Vec<(u64, String, u64)> =
                session.query(&doing, &sql.filled_rows(&name), &[&from, &beyond], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })?;
            let mut expected = from;
            for (key, rowid, bytes) in read {
                found.rows += 1;
                if key < expected {
                    found.fault(format!("`{bare}`: there are several rows with key {key}"));
                }
                for missing in expected..key {
                    found.fault(format!("`{bare}`: there is no row with key {missing}"));
                }
                expected = expected.max(key + 1);
                if bytes != width {
                    found.fault(format!(
                        "`{bare}`: the row with key {key} has {bytes} bytes of filling instead of {width}"
                    ));
                }
                match Address::of(&rowid) {
                    None => found.fault(format!("`{bare}`: the row with key {key} has the address `{rowid}`")),
                    Some(address) if !blocks.insert(address) => {
                        found.fault(format!("`{bare}`: the row with key {key} shares its block with another"));
                    }
                    Some(_) => {}
                }
            }
            for missing in expected..beyond {
                found.fault(format!("`{bare}`: there is no row with key {missing}"));
            }
            stream.done((beyond - from) * u64::from(data.block_bytes));
            from = beyond;
        }
        let more: Option<u64> =
            session.first(&doing, &sql.strange_rows(&name), &[&sql.custid(0), &end], |row| row.get(0))?;
        if let Some(more) = more.filter(|more| *more > 0) {
            found.fault(format!("`{bare}` has {more} rows that set-up did not put there"));
        }
        Ok(())
    }

    fn fault_of(error: &TargetError) -> Option<String> {
        let error = error.database::<ServerError>()?;
        (error.is_data_fault() || number(error) == Some(NO_TABLE)).then(|| error.to_string())
    }
}
