//! What a data set on a SQL server is.

use serde::{Deserialize, Serialize};

use super::content::Content;
use model::workload::{OperationKind, SlobOperation};
use model::workload::{Permutation, mix64};
use targets::database::{Filling, SetupRequest, difference};

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
mod tests {
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
