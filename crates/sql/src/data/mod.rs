//! Data sets on SQL servers: what they are, making them, proving them fit, reading all of them, removing them.
//!
//! A server's own folder says what of that is SQL of its dialect, by traits of its connector: [`catalog::SqlData`] and
//! [`catalog::Keeps`], which every kind of data needs, [`setup::SetUp`] and [`Verify`].

pub mod catalog;
pub(crate) mod drop;
pub(crate) mod found;
pub mod pieces;
pub(crate) mod plan;
pub mod setup;
pub mod streams;
#[cfg(test)]
pub(crate) mod tests;

/// Data that one command makes and removes, by their descriptor. Several kinds may be side by side in one namespace.
pub trait Content: Clone + Debug + Serialize + DeserializeOwned + 'static {
    /// What they are called, without an article.
    const NOUN: &'static str;
    /// The command that works on them.
    const COMMAND: &'static str;
    /// The table of the descriptor. While it is there, with a row, the rest is ours.
    const DATA_TABLE: &'static str;
    /// The table of what has been loaded, which is gone when all is.
    const LOAD_TABLE: &'static str;
    /// Its columns with their types, in words that every dialect knows; the first [`LOAD_KEY`](Self::LOAD_KEY) are its key.
    const LOAD_COLUMNS: &'static [(&'static str, &'static str)];
    /// How many of them are the key.
    const LOAD_KEY: usize;
    /// Their tables, as a sentence lists them.
    const TABLES: &'static str;
    /// What is dropped with them, without an article.
    const DROPPED: &'static str;
    /// Version of everything that set-up makes.
    const FORMAT_VERSION: u32;

    /// All names that a set-up may use, as a regular expression of any server's.
    fn names() -> String;

    /// Bare names of what is dropped with it, besides its marks.
    fn objects(&self) -> Vec<String>;

    /// Whether a descriptor says what there can be.
    fn is_sensible(&self) -> bool;
}

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ServerError;
use catalog::{Keeps, NamespaceFacts, SqlData};
use found::Loaded;
use model::units::percent;
use model::workload::{OperationKind, Permutation, Rng, SlobOperation, mix64};
use streams::{Halt, Queue, Stream, Streams};
use targets::TargetError;
use targets::database::{Filling, Phase, Progress, SetupRequest, difference};

/// Keeps the filling's numbers apart from those that place rows, which have the same seed.
const FILLING_STREAMS: u64 = u64::from_le_bytes(*b"filling\0");

/// Which rows of a table: places are numbered in the order in which rows are loaded.
#[derive(Debug, Clone)]
pub struct RowSource {
    permutation: Option<Permutation>,
    filling: Filling,
    seed: u64,
}

impl RowSource {
    /// The rows of one table of a data set.
    pub fn new(data: &DataSet, table: TableId) -> Self {
        let permutation = match table.kind {
            TableKind::Rows => Some(data.permutation(table.schema)),
            TableKind::Scan => None,
        };
        let number = u64::from(table.schema) << 1 | u64::from(table.kind == TableKind::Scan);
        Self { permutation, filling: data.filling, seed: mix64(data.seed ^ FILLING_STREAMS ^ mix64(number + 1)) }
    }

    /// The key of the row at `place`. The scan table is in the order of its keys.
    pub fn key(&self, place: u64) -> u64 {
        self.permutation.as_ref().map_or(place, |permutation| permutation.invert(place))
    }

    /// The numbers that fill the row at `place`, where rows must not be compressible. Each row has a stream of its own, so it is
    /// the same whichever connection it is sent on.
    pub fn numbers(&self, place: u64) -> Option<Rng> {
        (self.filling == Filling::Incompressible).then(|| Rng::new(self.seed, place))
    }
}

/// Where a data set is, or is to be.
#[derive(Debug)]
pub struct Access<'a, C> {
    /// Makes the connections.
    pub connector: &'a C,
    /// Number of the server.
    pub node: usize,
    /// What holds the data, by its name without quotes: see [`SqlData::HOLDER`].
    pub namespace: &'a str,
}

impl<C> Clone for Access<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Access<'_, C> {}

impl<'a, C: SqlData> Access<'a, C> {
    /// In the namespace of this name on the first server.
    pub fn new(connector: &'a C, namespace: &'a str) -> Self {
        Self { connector, node: 0, namespace }
    }

    /// Name of the server.
    pub fn node_name(&self) -> String {
        self.connector.node_names().swap_remove(self.node)
    }

    /// ``the schema `x` on `db1:5432` ``
    pub fn place(&self) -> String {
        format!("the {} `{}` on `{}`", C::HOLDER, self.namespace, self.node_name())
    }

    /// What cannot be because of what is on the server.
    pub fn unfit(&self, what: impl Into<String>, hint: impl Into<String>) -> TargetError {
        ServerError::unfit(what, Some(hint.into())).into()
    }

    /// The same, where another place would do: `hint` is followed by how that is named.
    pub fn unfit_here(&self, what: impl Into<String>, hint: &str) -> TargetError {
        self.unfit(what, format!("{hint} another {}: {}", C::HOLDER, C::HOLDER_OPTION))
    }
}

// Why rows do not lie as the SLOB method needs them: one that is addressed in each block, scattered, read one by one through
// the index.
//
// It is looked at before every run. Data that do not lie so would still give numbers, but of something else; so a run on them is
// refused, with the reason and the cure.

/// Growth of a table that still is the same shape: one part in this many.
pub(crate) const ALLOWED_PART: u64 = 100;
/// Rows of each table that are really looked at.
pub const SAMPLE_KEYS: u64 = 32;
/// Faults whose reasons are reported; all are counted.
const REPORTED_FAULTS: usize = 3;

/// What a proof gives the record, and what the user should know.
#[derive(Debug, Clone, PartialEq)]
pub struct Proven {
    /// Facts for the record, by name.
    pub facts: BTreeMap<String, String>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Why data do not lie as they must, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    reason: String,
    cure: String,
}

impl Fault {
    /// A fault and what removes it.
    pub fn new(reason: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { reason: reason.into(), cure: cure.into() }
    }

    /// Where only making the data again helps.
    pub fn beyond_repair(reason: impl Into<String>) -> Self {
        Self::new(reason, "make the data again: `plimsoll slob setup --replace`")
    }
}

/// Refuses data with faults, with the first reasons and the first cure.
///
/// # Errors
/// When there are any.
pub fn refuse<C: SqlData>(access: &Access<'_, C>, faults: &[Fault]) -> Result<(), TargetError> {
    let Some(first) = faults.first() else { return Ok(()) };
    let mut reasons: Vec<&str> = faults.iter().take(REPORTED_FAULTS).map(|fault| fault.reason.as_str()).collect();
    let unreported = format!("{} more like these", faults.len() - reasons.len());
    if faults.len() > reasons.len() {
        reasons.push(&unreported);
    }
    let what = format!("the data in {} do not lie as the SLOB method needs: {}", access.place(), reasons.join("; "));
    Err(access.unfit(what, first.cure.clone()))
}

/// Keys that a table ends with, where others belong, in words.
pub fn wrong_ends(table: &str, (first, last): (Option<i64>, Option<i64>), wanted: [u64; 2]) -> String {
    let shown = |key: Option<i64>| key.map_or_else(|| "none".to_owned(), |key| key.to_string());
    let [from, to] = wanted;
    format!("keys of {table} go from {} to {} instead of {from} to {to}", shown(first), shown(last))
}

// How large the tables are: read before and after a run, it says whether the run changed what it measured.

/// Sizes of the tables of all schemas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// By schema.
    pub tables: Vec<TableShape>,
}

/// Size of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableShape {
    /// Blocks of the table.
    pub pages: u64,
    /// Blocks of its index.
    pub index_pages: u64,
}

impl Shape {
    /// What changed since `before`, in a sentence, if that is more than a run should change: a table or an index that grew
    /// by more than 1 %, or shrank.
    pub fn changed_since(&self, before: &Self) -> Option<String> {
        let mut changed = 0_u32;
        let mut worst: Option<(f64, String)> = None;
        for (schema, (now, then)) in (0..).zip(self.tables.iter().zip(&before.tables)) {
            let pairs = [
                (TableId { kind: TableKind::Rows, schema }.name(), then.pages, now.pages),
                (index_name(schema), then.index_pages, now.index_pages),
            ];
            for (name, then, now) in pairs {
                // One block more is no change of shape, however small the table.
                let grown = now > then + (then / ALLOWED_PART).max(1);
                if grown || now < then {
                    changed += 1;
                    let by = now.abs_diff(then) as f64 / then.max(1) as f64;
                    if worst.as_ref().is_none_or(|(most, _)| by > *most) {
                        let how = if grown { "grew" } else { "shrank" };
                        worst = Some((by, format!("`{name}` {how} by {}% ({then} blocks to {now})", percent(by))));
                    }
                }
            }
        }
        let (_, worst) = worst?;
        let others = match changed - 1 {
            0 => String::new(),
            1 => "; another table or index changed too".to_owned(),
            others => format!("; {others} more tables or indexes changed too"),
        };
        Some(format!("{worst}{others}"))
    }
}

/// A set-up that is being done.
pub struct Work<'a, C: SqlData, D = DataSet> {
    /// Where the data are made.
    pub access: Access<'a, C>,
    /// Holds the lock.
    pub session: C::Session<'a>,
    pub(crate) server: C::Server,
    /// What is made.
    pub data: D,
    pub(crate) streams: u32,
    pub(crate) notify: &'a dyn Fn(Phase, Progress),
    pub(crate) stop: &'a AtomicBool,
    pub(crate) report: Loaded,
}

impl<'a, C: SqlData, D: Sync> Work<'a, C, D> {
    /// What ends it early.
    pub fn halt(&self) -> Halt<'a> {
        Halt::on(self.stop)
    }

    /// Does one phase, which comes to `total_bytes`; it is handed what to call with the bytes that it has done.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or those of `work`.
    pub fn phase(
        &mut self,
        phase: Phase,
        total_bytes: u64,
        work: impl FnOnce(&mut Self, &dyn Fn(u64)) -> Result<(), TargetError>,
    ) -> Result<(), TargetError> {
        self.halt().check()?;
        let (began, reported) = (Instant::now(), self.notify);
        let notify = |done_bytes: u64| reported(phase, Progress { done_bytes, total_bytes });
        notify(0);
        work(self, &notify)?;
        notify(total_bytes);
        self.report.phases.push((phase, began.elapsed().as_nanos() as u64));
        Ok(())
    }

    /// Streams for so many jobs.
    pub(crate) fn streams<'b>(&self, jobs: usize, notify: &'b dyn Fn(u64)) -> Streams<'b>
    where
        'a: 'b,
    {
        let count = self.streams.min(u32::try_from(jobs).unwrap_or(u32::MAX));
        Streams { count, stop: self.stop, notify }
    }

    /// Does a phase of jobs, each of so many bytes, side by side on connections of their own that `open` makes.
    ///
    /// # Errors
    /// As [`phase`](Self::phase).
    pub fn side_by_side<J: Copy + Send>(
        &mut self,
        phase: Phase,
        jobs: &[(J, u64)],
        open: impl Fn(Halt<'_>) -> Result<C::Session<'a>, TargetError> + Sync,
        work: impl Fn(&mut C::Session<'a>, J, Halt<'_>) -> Result<(), TargetError> + Sync,
    ) -> Result<(), TargetError> {
        let total = jobs.iter().map(|(_, bytes)| bytes).sum();
        self.phase(phase, total, |this, tell| {
            let queue = Queue::new(jobs.iter().copied());
            this.streams(jobs.len(), tell).run(
                open,
                |ended| queue.next(ended),
                |session, &(job, bytes), stream| {
                    work(session, job, stream.halt)?;
                    stream.done(bytes);
                    Ok(())
                },
            )
        })
    }
}

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

/// The table of the descriptor.
pub const DATA_TABLE: &str = "plimsoll_data";
/// The table of what has been loaded.
pub const LOAD_TABLE: &str = "plimsoll_load";
/// Version of everything that set-up makes.
pub const FORMAT_VERSION: u32 = 1;

/// A data set, as its descriptor says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSet {
    /// Version of the format of everything in the namespace.
    pub format_version: u32,
    /// Version of Plimsoll that began to make it.
    pub plimsoll_version: String,
    /// When it was begun, RFC 3339 in UTC.
    pub created_at: String,
    /// Seed of the placement of rows and of their filling.
    pub seed: u64,
    /// Size of a block of the server.
    pub block_bytes: u32,
    /// Bytes of each filling column.
    pub column_bytes: u32,
    /// Number of schemas.
    pub schemas: u32,
    /// Rows, and so blocks, of each schema.
    pub scale_blocks: u64,
    /// Blocks of each schema's scan table.
    pub scan_blocks: u64,
    /// How rows were filled.
    pub filling: Filling,
}

impl Content for DataSet {
    const NOUN: &'static str = "SLOB data";
    const COMMAND: &'static str = "plimsoll slob";
    const DATA_TABLE: &'static str = DATA_TABLE;
    const LOAD_TABLE: &'static str = LOAD_TABLE;
    const LOAD_COLUMNS: &'static [(&'static str, &'static str)] =
        &[("is_scan", "boolean"), ("schema", "integer"), ("first_place", "bigint"), ("places", "bigint")];
    const LOAD_KEY: usize = 3;
    const TABLES: &'static str = "`slob_…`, `scan_…`";
    const DROPPED: &'static str = "tables and procedures";
    const FORMAT_VERSION: u32 = FORMAT_VERSION;

    fn names() -> String {
        "^(plimsoll_(data|load)(_pkey)?|(slob|scan)_[0-9]+|slob_[0-9]+_key|slob_batch_[0-9]+)$".to_owned()
    }

    /// Tables, and the procedures that execute batches.
    fn objects(&self) -> Vec<String> {
        self.tables().map(TableId::name).chain((0..self.schemas).map(procedure_name)).collect()
    }

    fn is_sensible(&self) -> bool {
        self.schemas > 0 && self.scale_blocks > 0 && self.block_bytes > 0
    }
}

impl DataSet {
    /// The data that a request asks for.
    pub fn wanted(request: &SetupRequest, format_version: u32, column_bytes: u32) -> Self {
        let &SetupRequest { seed, block_bytes, schemas, scale_blocks, scan_blocks, filling, .. } = request;
        // To the second: fractions would only make the descriptor harder to read.
        let now = jiff::Timestamp::now().round(jiff::Unit::Second).unwrap_or_else(|_| jiff::Timestamp::now());
        Self {
            format_version,
            plimsoll_version: env!("CARGO_PKG_VERSION").to_owned(),
            created_at: now.to_string(),
            seed,
            block_bytes,
            column_bytes,
            schemas,
            scale_blocks,
            scan_blocks,
            filling,
        }
    }

    /// How these data differ from what is asked for, in words; none if they do not.
    pub(crate) fn difference(&self, asked: &SetupRequest) -> Option<String> {
        let figures = [
            ("the number of schemas", self.schemas.into(), asked.schemas.into()),
            ("the number of blocks of a schema", self.scale_blocks, asked.scale_blocks),
            ("the number of blocks of a scan table", self.scan_blocks, asked.scan_blocks),
            ("the block size in bytes", self.block_bytes.into(), asked.block_bytes.into()),
            ("the seed", self.seed, asked.seed),
        ];
        difference(&figures, (self.filling, asked.filling))
    }

    /// Where the rows of one schema lie: row `key` is the one at [`map`](Permutation::map)`(key)` of those that were
    /// loaded. The same as on the embedded engine.
    pub fn permutation(&self, schema: u32) -> Permutation {
        Permutation::new(self.scale_blocks, mix64(self.seed ^ mix64(u64::from(schema) + 1)))
    }

    /// Blocks of all tables.
    pub fn blocks(&self) -> u64 {
        (self.scale_blocks + self.scan_blocks) * u64::from(self.schemas)
    }

    /// Bytes of the blocks of all tables.
    pub fn bytes(&self) -> u64 {
        self.blocks() * u64::from(self.block_bytes)
    }

    /// The kinds of table that it has.
    pub(crate) fn kinds(&self) -> &'static [TableKind] {
        if self.scan_blocks > 0 { &[TableKind::Rows, TableKind::Scan] } else { &[TableKind::Rows] }
    }

    /// All tables, those of rows first.
    pub fn tables(&self) -> impl Iterator<Item = TableId> {
        let schemas = self.schemas;
        self.kinds().iter().flat_map(move |kind| (0..schemas).map(|schema| TableId { kind: *kind, schema }))
    }

    /// Rows, and so blocks, of one table.
    pub fn rows_of(&self, table: TableId) -> u64 {
        match table.kind {
            TableKind::Rows => self.scale_blocks,
            TableKind::Scan => self.scan_blocks,
        }
    }

    /// Bytes of the blocks of one table.
    pub(crate) fn bytes_of(&self, table: TableId) -> u64 {
        self.rows_of(table) * u64::from(self.block_bytes)
    }
}

/// What a table is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableKind {
    /// Rows that operations read and change.
    Rows,
    /// The table that scans read.
    Scan,
}

/// One table of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId {
    /// What it is for.
    pub kind: TableKind,
    /// SLOB's schema, from 0.
    pub schema: u32,
}

impl TableId {
    /// The one that an operation works on.
    pub(crate) fn of(operation: &SlobOperation) -> Self {
        let kind = match operation.kind {
            OperationKind::Scan => TableKind::Scan,
            OperationKind::Read | OperationKind::Update => TableKind::Rows,
        };
        Self { kind, schema: operation.schema }
    }

    /// Its bare name.
    pub fn name(self) -> String {
        match self.kind {
            TableKind::Rows => format!("slob_{}", self.schema + 1),
            TableKind::Scan => format!("scan_{}", self.schema + 1),
        }
    }
}

/// The bare name of the index on the keys of SLOB's schema number `schema`, from 0.
pub fn index_name(schema: u32) -> String {
    format!("slob_{}_key", schema + 1)
}

/// The bare name of the procedure that executes batches of it.
pub(crate) fn procedure_name(schema: u32) -> String {
    format!("slob_batch_{}", schema + 1)
}

/// How far a data set has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Its set-up never came to its end, or goes on just now.
    Loading,
    /// It is whole.
    Ready,
    /// Removing it never came to its end, or goes on just now.
    Dropping,
}

impl Stage {
    pub(crate) const ALL: [Self; 3] = [Self::Loading, Self::Ready, Self::Dropping];

    /// As it stands in the table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Ready => "ready",
            Self::Dropping => "dropping",
        }
    }
}

/// A data set that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<D = DataSet> {
    /// What it is, or is to become.
    pub data: D,
    /// How far it has come.
    pub stage: Stage,
    /// Whether set-up made the schema of the database too.
    pub made_namespace: bool,
}

/// A small data set, for tests.
#[cfg(any(test, feature = "test-servers"))]
pub fn sample() -> DataSet {
    DataSet {
        format_version: 1,
        plimsoll_version: "0".to_owned(),
        created_at: "2026-01-01T00:00:00Z".to_owned(),
        seed: 42,
        block_bytes: 8192,
        column_bytes: 48,
        schemas: 2,
        scale_blocks: 1000,
        scan_blocks: 10,
        filling: Filling::Incompressible,
    }
}

#[cfg(test)]
mod descriptor_tests {
    use super::*;
    use targets::embedded::{BlockShape, Layout};

    #[test]
    fn rows_lie_as_on_the_embedded_engine() {
        let data = sample();
        let layout = Layout::new(BlockShape::new(8192).unwrap(), 1, data.seed, data.schemas, data.scale_blocks, 0);
        for key in 0..data.scale_blocks {
            assert_eq!(data.permutation(1).map(key), layout.row_block(1, key) - data.scale_blocks);
        }
    }

    #[test]
    fn tables_and_their_sizes_add_up() {
        let data = sample();
        assert_eq!(data.tables().map(|table| data.rows_of(table)).sum::<u64>(), data.blocks());
        let names: Vec<String> = data.tables().map(TableId::name).collect();
        assert_eq!(names, ["slob_1", "slob_2", "scan_1", "scan_2"]);
        assert_eq!(DataSet { scan_blocks: 0, ..data }.tables().count(), 2);
    }
}
