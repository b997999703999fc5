//! Reading a whole data set: whether it is what was loaded.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::catalog;
use super::plan::Progress;
use super::session::{Access, Session};
use crate::targets::error::TargetError;
use crate::targets::mysql::MysqlError;
use crate::targets::mysql::error::MISSING;
use crate::targets::mysql::sql::{ROWS_OF_A_LEAF, Sql, columns, quoted};
use crate::targets::sql::COLUMNS;
use crate::targets::sql::data::descriptor::{DataSet, Stage, TableId, TableKind};
use crate::targets::sql::data::rows::RowSource;
use crate::targets::sql::data::streams::{Halt, Queue, Stream, Streams};

/// Connections that read.
const STREAMS: u32 = 4;
/// Rows that are asked for at a time.
const ROWS_AT_ONCE: u64 = 20_000;
/// Faults that are put into words; all are counted.
const REPORTED_FAULTS: usize = 20;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct VerifyReport {
    /// Tables that were read.
    pub tables: u64,
    /// Rows that were read.
    pub rows: u64,
    /// Bytes of the leaves that they lie in.
    pub bytes: u64,
    /// How long it took.
    pub elapsed_ns: u64,
    /// What is wrong, as far as it was put into words.
    pub faults: Vec<String>,
    /// How many faults there are.
    pub fault_count: u64,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.fault_count == 0
    }
}

#[derive(Debug, Default)]
struct Findings {
    rows: u64,
    faults: Vec<String>,
    fault_count: u64,
}

impl Findings {
    fn fault(&mut self, what: String) {
        self.fault_count += 1;
        if self.faults.len() < REPORTED_FAULTS {
            self.faults.push(what);
        }
    }
}

/// Reads every row of every table by both of its indexes, and has the server check its pages.
///
/// # Errors
/// When there are no data, or they are unfinished, it was stopped, or the server refused for a reason that says nothing
/// about the data.
pub fn verify(
    access: &Access<'_>,
    progress: &dyn Fn(Progress),
    stop: &AtomicBool,
) -> Result<VerifyReport, TargetError> {
    let began = Instant::now();
    let found = catalog::require(*access, catalog::find(access)?)?;
    if found.stage != Stage::Ready {
        return Err(catalog::unfinished(*access, found.stage));
    }
    let data = found.data;
    let total_bytes = data.bytes();
    let tell = |done_bytes: u64| progress(Progress { done_bytes: done_bytes.min(total_bytes), total_bytes });
    let tables = data.tables().count() as u64;
    let streams = Streams { count: STREAMS.min(u32::try_from(tables).unwrap_or(STREAMS)), stop, tell: &tell };
    let (queue, findings) = (Queue::new(data.tables()), Mutex::new(Findings::default()));
    streams.run(
        |_| Session::open(*access),
        |ended| queue.next(ended),
        |session, table, stream| {
            let mut found = Findings::default();
            let outcome = check_table(session, &data, *table, stream, &mut found);
            if let Some(fault) = as_fault(outcome, &table.name())? {
                found.fault(fault);
            }
            let mut all = findings.lock().unwrap_or_else(PoisonError::into_inner);
            all.rows += found.rows;
            let more = found.fault_count - found.faults.len() as u64;
            found.faults.into_iter().for_each(|fault| all.fault(fault));
            all.fault_count += more;
            Ok(())
        },
    )?;
    let Findings { rows, faults, fault_count } = findings.into_inner().unwrap_or_else(PoisonError::into_inner);
    let notes = vec!["what updates wrote is not known, so it is not proven that no commit is missing".to_owned()];
    let elapsed_ns = began.elapsed().as_nanos() as u64;
    Ok(VerifyReport { tables, rows, bytes: total_bytes, elapsed_ns, faults, fault_count, notes })
}

fn check_table(
    session: &mut Session<'_>,
    data: &DataSet,
    table: TableId,
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
                found.fault(format!("`{bare}`: no row is at place {missing}, where key {} belongs", key_of(missing)));
            }
            if key != key_of(place as u64) as i64 {
                found.fault(format!(
                    "`{bare}`: the row at place {place} has key {key} instead of {}",
                    key_of(place as u64)
                ));
            }
            if bytes != width {
                found
                    .fault(format!("`{bare}`: the row with key {key} has {bytes} bytes of filling instead of {width}"));
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

/// Whether the index leads from each key to its place.
fn check_index(
    session: &mut Session<'_>,
    data: &DataSet,
    schema: u32,
    name: &str,
    halt: Halt<'_>,
    found: &mut Findings,
) -> Result<(), TargetError> {
    let index = Sql::index_name(schema);
    let by_key = format!(
        "SELECT custid, place FROM {name} FORCE INDEX ({}) WHERE custid >= ? AND custid < ? ORDER BY custid",
        quoted(&index)
    );
    let (permutation, leaves) = (data.permutation(schema), data.scale_blocks);
    in_parts(leaves * ROWS_OF_A_LEAF, |from, to| {
        let read: Vec<(u64, u64)> = session.query(&format!("read {index}"), &by_key, (from, to), halt)?;
        if read.len() as u64 != to - from {
            let what =
                format!("`{index}` has {} keys from {from} to {} where {} belong", read.len(), to - 1, to - from);
            found.fault(what);
        }
        for (key, place) in read {
            let expected = permutation.map(key % leaves) * ROWS_OF_A_LEAF + key / leaves;
            if place != expected {
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

/// Turns an error that is about the data into a fault to be reported.
fn as_fault(outcome: Result<(), TargetError>, table: &str) -> Result<Option<String>, TargetError> {
    match outcome {
        Err(TargetError::Mysql(error)) if error.is_data_fault() => Ok(Some(format!("`{table}`: {error}"))),
        Err(TargetError::Mysql(MysqlError::Refused { code, message, .. })) if MISSING.contains(&code) => {
            Ok(Some(format!("`{table}`: {message} (error {code})")))
        }
        other => other.map(|()| None),
    }
}
