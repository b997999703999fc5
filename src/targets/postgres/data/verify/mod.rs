//! Proving that a data set is whole: every row is there once, in a block of its own and of the right shape, and the index
//! agrees.
//!
//! All rows are read where they lie, so a server with data checksums checks every block too. Their keys come here, to be
//! ticked off one by one. Then the index is read from end to end.

mod reading;
#[cfg(test)]
mod tests;

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::Serialize;

use super::catalog::{self, Ground, Stage};
use super::descriptor::{DataSet, TableId, TableKind};
use super::session::{Access, Halt, Session};
use super::streams::{Queue, Streams};
use crate::targets::error::TargetError;
use crate::targets::postgres::sql::identifier;

pub use crate::targets::crew::Progress;

/// Faults that a report lists; all are counted.
pub const LISTED_FAULTS: usize = 1000;
/// Connections that read.
const STREAMS: u32 = 2;

/// What `verify` found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// The schema of the database.
    pub namespace: String,
    /// Tables of the data set: all were read.
    pub tables: u64,
    /// Rows that were found in them.
    pub rows: u64,
    /// Bytes of the blocks that belong to the data set.
    pub bytes: u64,
    /// How long it took.
    pub elapsed_ns: u64,
    /// Whether the server checked every block against a checksum as it read it.
    pub data_checksums: bool,
    /// Whether the pages of the indexes were checked too, by the extension `amcheck`.
    pub amcheck: bool,
    /// The first [`LISTED_FAULTS`] faults.
    pub faults: Vec<String>,
    /// All faults.
    pub fault_count: u64,
    /// What could not be checked, and why.
    pub notes: Vec<String>,
}

impl VerifyReport {
    /// Whether all is as it must be.
    pub fn is_sound(&self) -> bool {
        self.fault_count == 0
    }
}

/// What was found so far, by all streams.
#[derive(Debug, Default)]
struct Findings {
    rows: u64,
    faults: Vec<String>,
    fault_count: u64,
}

impl Findings {
    fn fault(&mut self, fault: String) {
        self.fault_count += 1;
        if self.faults.len() < LISTED_FAULTS {
            self.faults.push(fault);
        }
    }

    fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.fault_count += other.fault_count;
        let room = LISTED_FAULTS - self.faults.len();
        self.faults.extend(other.faults.into_iter().take(room));
    }
}

/// Reads all of a data set. What is wrong with it does not end it: faults are counted and listed. `progress` is reported at
/// most ten times a second; setting `stop` ends it soon.
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
    let session = Session::open(*access)?;
    let ground = Ground::look(&session)?;
    let found = catalog::require(*access, ground.found)?;
    if found.stage != Stage::Ready {
        return Err(catalog::unfinished(*access, found.stage));
    }
    let (data, data_checksums) = (found.data, ground.server.data_checksums);
    let mut notes = Vec::new();
    if !data_checksums {
        notes.push(
            "the server has no data checksums, so a flipped bit in the filling of a row is not noticed".to_owned(),
        );
    }
    let amcheck = find_amcheck(&session)?;
    if amcheck.is_none() {
        notes.push(
            "the pages of the indexes were not checked, only their entries: the extension amcheck is not installed in this \
             database, or the role may not execute its bt_index_check()"
                .to_owned(),
        );
    }
    let findings = read_all(*access, &data, amcheck.as_deref(), progress, stop)?;
    Ok(VerifyReport {
        namespace: access.namespace.to_owned(),
        tables: data.tables().count() as u64,
        rows: findings.rows,
        bytes: data.bytes(),
        elapsed_ns: began.elapsed().as_nanos() as u64,
        data_checksums,
        amcheck: amcheck.is_some(),
        faults: findings.faults,
        fault_count: findings.fault_count,
        notes,
    })
}

fn read_all(
    access: Access<'_>,
    data: &DataSet,
    amcheck: Option<&str>,
    progress: &dyn Fn(Progress),
    stop: &AtomicBool,
) -> Result<Findings, TargetError> {
    let total_bytes = data.bytes();
    let tell = |done_bytes: u64| progress(Progress { done_bytes: done_bytes.min(total_bytes), total_bytes });
    let count = STREAMS.min(u32::try_from(data.tables().count()).unwrap_or(u32::MAX));
    let streams = Streams { access, count, stop, tell: &tell };
    let (queue, findings) = (Queue::new(data.tables()), Mutex::new(Findings::default()));
    streams.run(
        "",
        || (),
        |ended| queue.next(ended),
        |session, (), table, stream| {
            let mut found = Findings::default();
            let outcome =
                check_table(session, data, *table, amcheck, stream.halt, &mut |bytes| stream.done(bytes), &mut found);
            if let Some(fault) = as_fault(outcome, &table.name())? {
                found.fault(fault);
            }
            findings.lock().unwrap_or_else(PoisonError::into_inner).add(found);
            Ok(())
        },
    )?;
    Ok(findings.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn check_table(
    session: &Session<'_>,
    data: &DataSet,
    table: TableId,
    amcheck: Option<&str>,
    halt: Halt<'_>,
    done: &mut dyn FnMut(u64),
    found: &mut Findings,
) -> Result<(), TargetError> {
    reading::heap(session, data, table, halt, done, found)?;
    if table.kind == TableKind::Rows {
        reading::index(session, data, table.schema, halt, found)?;
        if let Some(amcheck) = amcheck {
            reading::index_pages(session, data, table.schema, amcheck, halt)?;
        }
    }
    Ok(())
}

/// Turns an error that is about the data into a fault to be reported.
fn as_fault(outcome: Result<(), TargetError>, table: &str) -> Result<Option<String>, TargetError> {
    use crate::targets::postgres::PostgresError;
    match outcome {
        // A table, a column or an index that is missing, and data or an index that are corrupted.
        Err(TargetError::Postgres(PostgresError::Refused { code, message, .. }))
            if ["42P01", "42703", "42704", "XX001", "XX002"].contains(&code.as_str()) =>
        {
            Ok(Some(format!("`{table}`: {message} (SQLSTATE {code})")))
        }
        other => other.map(|()| None),
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
