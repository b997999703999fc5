//! Reading a whole data set: whether it is what was loaded.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;

use super::access::Access;
use super::catalog::{self, Keeps, NamespaceFacts};
use super::descriptor::{DataSet, TableId};
use super::streams::{Queue, Stream, Streams};
use targets::TargetError;
use targets::database::Progress;

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerifyReport {
    /// Tables of the data set: all were read.
    pub(crate) tables: u64,
    /// Rows that were found in them.
    pub rows: u64,
    /// Bytes of the blocks that belong to the data set.
    pub(crate) bytes: u64,
    /// How long it took.
    pub(crate) elapsed_ns: u64,
    /// What is wrong, as far as it was put into words.
    pub(crate) faults: Vec<String>,
    /// How many faults there are.
    pub(crate) fault_count: u64,
    /// What could not be checked, and why.
    pub(crate) notes: Vec<String>,
    /// What only servers of this kind have.
    #[serde(flatten)]
    pub(crate) own: BTreeMap<&'static str, Value>,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub(crate) fn is_sound(&self) -> bool {
        self.fault_count == 0
    }
}

/// What was found so far.
#[derive(Debug, Default)]
pub struct Findings {
    /// Rows that were read.
    pub rows: u64,
    pub(crate) faults: Vec<String>,
    fault_count: u64,
}

impl Findings {
    /// Counts a fault.
    pub fn fault(&mut self, what: String) {
        self.fault_count += 1;
        if self.faults.len() < LISTED_FAULTS {
            self.faults.push(what);
        }
    }

    fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.fault_count += other.fault_count;
        let room = LISTED_FAULTS - self.faults.len();
        self.faults.extend(other.faults.into_iter().take(room));
    }
}

/// Faults that a report lists; all are counted.
const LISTED_FAULTS: usize = 1000;

/// How servers of one kind have their data read.
pub trait Verify: Keeps<DataSet> {
    /// Connections that read.
    const STREAMS: u32 = 4;

    /// Finds out what reading needs to know of the server, and puts what follows from it into the report.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn means(
        _access: Access<'_, Self>,
        _session: &mut Self::Session<'_>,
        _server: &mut Self::Server,
        report: &mut VerifyReport,
    ) -> Result<(), TargetError> {
        report.notes.push("what updates wrote is not known, so it is not proven that no commit is missing".to_owned());
        Ok(())
    }

    /// Reads one table and its index.
    ///
    /// # Errors
    /// When it was stopped, or the server refused.
    fn check_table(
        session: &mut Self::Session<'_>,
        data: &DataSet,
        table: TableId,
        server: &Self::Server,
        stream: &Stream<'_>,
        found: &mut Findings,
    ) -> Result<(), TargetError>;

    /// What is wrong with the data, if an error says so.
    fn fault_of(error: &TargetError) -> Option<String> {
        error.is_data_fault().then(|| error.to_string())
    }
}

/// Reads all of a data set. What is wrong with it does not end it: faults are counted and listed. `progress` is called at
/// most ten times a second; setting `stop` ends it soon.
///
/// # Errors
/// When there are no data, or they are unfinished, it was stopped, or the server refused for a reason that says nothing
/// about the data.
pub(crate) fn verify<C: Verify>(
    access: &Access<'_, C>,
    progress: &dyn Fn(Progress),
    stop: &AtomicBool,
) -> Result<VerifyReport, TargetError> {
    let began = Instant::now();
    let mut session = C::open(*access)?;
    let NamespaceFacts { mut server, found, .. } = C::look(&mut session)?;
    let data = catalog::whole(*access, found)?;
    let mut report = VerifyReport {
        tables: data.tables().count() as u64,
        rows: 0,
        bytes: data.bytes(),
        elapsed_ns: 0,
        faults: Vec::new(),
        fault_count: 0,
        notes: Vec::new(),
        own: BTreeMap::new(),
    };
    C::means(*access, &mut session, &mut server, &mut report)?;
    let total_bytes = report.bytes;
    let notify = |done_bytes: u64| progress(Progress { done_bytes: done_bytes.min(total_bytes), total_bytes });
    let count = C::STREAMS.min(u32::try_from(report.tables).unwrap_or(u32::MAX));
    let (queue, findings) = (Queue::new(data.tables()), Mutex::new(Findings::default()));
    Streams { count, stop, notify: &notify }.run(
        |_| C::open(*access),
        |ended| queue.next(ended),
        |session, table, stream| {
            let mut found = Findings::default();
            if let Err(error) = C::check_table(session, &data, *table, &server, stream, &mut found) {
                let fault = C::fault_of(&error).ok_or(error)?;
                found.fault(format!("`{}`: {fault}", table.name()));
            }
            findings.lock().unwrap_or_else(PoisonError::into_inner).add(found);
            Ok(())
        },
    )?;
    let Findings { rows, faults, fault_count } = findings.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(VerifyReport { rows, faults, fault_count, elapsed_ns: began.elapsed().as_nanos() as u64, ..report })
}
