//! Reading a whole data set: whether it is what was loaded.

use super::catalog::Server;
use super::session::Session;
use crate::COLUMNS;
use crate::ServerError;
use crate::data::descriptor::{DataSet, TableId, TableKind, index_name};
use crate::data::rows::RowSource;
use crate::data::streams::{Halt, Stream};
use crate::data::verify::{Findings, Verify};
use crate::mysql::Connector;
use crate::mysql::error::{MISSING, number};
use crate::mysql::sql::{ROWS_OF_A_LEAF, columns, quoted};
use targets::TargetError;

/// Rows that are asked for at a time.
const ROWS_AT_ONCE: u64 = 20_000;

/// Every row of every table is read by both of its indexes, and the server checks its pages.
impl Verify for Connector {
    fn check_table(
        session: &mut Session<'_>,
        data: &DataSet,
        table: TableId,
        _: &Server,
        stream: &Stream<'_>,
        found: &mut Findings,
    ) -> Result<(), TargetError> {
        let sql = session.access().sql(data.block_bytes);
        let name = table.qualified_in(&sql);
        let bare = table.name();
        let source = RowSource::new(data, table);
        let leaves = data.rows_of(table);
        let rows = leaves * ROWS_OF_A_LEAF;
        let width = u64::from(COLUMNS * data.column_bytes);
        let doing = format!("read {name}");
        let filling = columns().collect::<Vec<_>>().join(", ");
        let by_place = format!(
            "SELECT place, custid, COALESCE(LENGTH(CONCAT({filling})), 0) FROM {name} FORCE INDEX (PRIMARY) \
             WHERE place >= ? AND place < ? ORDER BY place"
        );
        let key_of = |place: u64| source.key(place / ROWS_OF_A_LEAF) + place % ROWS_OF_A_LEAF * leaves;
        in_parts(rows, |from, to| {
            let read: Vec<(i64, i64, u64)> = session.query(&doing, &by_place, (from, to), stream.halt)?;
            found.rows += read.len() as u64;
            let mut expected = from..to;
            for (place, key, bytes) in read {
                for missing in expected.by_ref().take_while(|expected| *expected as i64 != place) {
                    found.fault(format!(
                        "`{bare}`: no row is at place {missing}, where key {} belongs",
                        key_of(missing)
                    ));
                }
                if key != key_of(place as u64) as i64 {
                    found.fault(format!(
                        "`{bare}`: the row at place {place} has key {key} instead of {}",
                        key_of(place as u64)
                    ));
                }
                if bytes != width {
                    found.fault(format!(
                        "`{bare}`: the row with key {key} has {bytes} bytes of filling instead of {width}"
                    ));
                }
            }
            for missing in expected {
                found.fault(format!("`{bare}`: no row is at place {missing}, where key {} belongs", key_of(missing)));
            }
            stream.done((to - from) / ROWS_OF_A_LEAF * u64::from(data.block_bytes));
            Ok(())
        })?;
        let outside = format!("SELECT COUNT(*) FROM {name} FORCE INDEX (PRIMARY) WHERE place < 0 OR place >= ?");
        let more: Option<u64> = session.first(&doing, &outside, (rows,))?;
        if let Some(more) = more.filter(|more| *more > 0) {
            found.fault(format!("`{bare}` has {more} rows that set-up did not put there"));
        }
        if table.kind == TableKind::Rows {
            check_index(session, data, table.schema, &name, stream.halt, found)?;
        }
        // The server reads every page of every index and compares their checksums and their order.
        let said: Vec<(String, String, String, String)> =
            session.query(&format!("check {name}"), &format!("CHECK TABLE {name}"), (), stream.halt)?;
        for (_, _, kind, text) in said {
            if kind.eq_ignore_ascii_case("error") || (kind.eq_ignore_ascii_case("status") && text != "OK") {
                found.fault(format!("`{bare}`: the server's own check says: {text}"));
            }
        }
        Ok(())
    }

    fn fault_of(error: &TargetError) -> Option<String> {
        if error.is_data_fault() {
            return Some(error.to_string());
        }
        let (code, message) = ServerError::refusal_in(error).filter(|(code, _)| MISSING.contains(&number(code)))?;
        Some(format!("{message} (error {code})"))
    }
}

/// Whether the index leads from each key to its place.
fn check_index(
    session: &mut Session<'_>,
    data: &DataSet,
    schema: u32,
    name: &str,
    halt: Halt<'_>,
    found: &mut Findings,
) -> Result<(), TargetError> {
    let index = index_name(schema);
    let by_key = format!(
        "SELECT custid, place FROM {name} FORCE INDEX ({}) WHERE custid >= ? AND custid < ? ORDER BY custid",
        quoted(&index)
    );
    let (permutation, leaves) = (data.permutation(schema), data.scale_blocks);
    in_parts(leaves * ROWS_OF_A_LEAF, |from, to| {
        let read: Vec<(u64, i64)> = session.query(&format!("read {index}"), &by_key, (from, to), halt)?;
        if read.len() as u64 != to - from {
            let what =
                format!("`{index}` has {} keys from {from} to {} where {} belong", read.len(), to - 1, to - from);
            found.fault(what);
        }
        for (key, place) in read {
            let expected = permutation.map(key % leaves) * ROWS_OF_A_LEAF + key / leaves;
            if place != expected as i64 {
                found.fault(format!("`{index}` leads from key {key} to place {place} instead of {expected}"));
            }
        }
        Ok(())
    })
}

/// Calls `read` with the ends of each part of `total` rows.
fn in_parts(total: u64, mut read: impl FnMut(u64, u64) -> Result<(), TargetError>) -> Result<(), TargetError> {
    (0..total).step_by(ROWS_AT_ONCE as usize).try_for_each(|from| read(from, (from + ROWS_AT_ONCE).min(total)))
}
