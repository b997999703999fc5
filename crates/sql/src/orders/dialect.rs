//! What a server's own folder gives, so that its servers hold order entry.

use std::collections::BTreeSet;

use serde::Serialize;

use super::load::{OrdersSession, OrdersSetting};
use super::{OrdersData, Source, ddl, procedures};
use crate::SqlServers;
use crate::data::catalog::{Dropped, Keeps};
use crate::data::found::Estimate;
use crate::data::pieces::Piece;
use targets::TargetError;
use targets::database::Phase;
use targets::orders::Indexes;

use crate::data::streams::{Halt, Stream};
use crate::data::{Access, Work};
use crate::database::Dialect;
use model::workload::orders::Table;
use model::workload::orders::tables::{ForeignKey, Index, IndexPart, Key, SEQUENCES, Sequence};

/// What a data set consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// A table.
    Table,
    /// A primary key.
    Key,
    /// An index that is no key.
    Index,
    /// A foreign key.
    ForeignKey,
    /// A rule that each row keeps.
    Check,
    /// What numbers rows.
    Sequence,
}

impl PartKind {
    /// Every kind.
    pub(crate) const ALL: [Self; 6] =
        [Self::Table, Self::Key, Self::Index, Self::ForeignKey, Self::Check, Self::Sequence];

    /// Its word in catalogs and reports.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Key => "key",
            Self::Index => "index",
            Self::ForeignKey => "foreign_key",
            Self::Check => "check",
            Self::Sequence => "sequence",
        }
    }
}

/// A thing that a data set consists of, by its bare name.
pub type Part = (PartKind, String);
/// Such things.
pub type Parts = BTreeSet<Part>;

/// Something to do once rows are loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// What it is, for an error.
    pub doing: String,
    /// One after the other, on one connection.
    pub statements: Vec<String>,
    /// The table whose rows are gone through.
    pub table: Table,
}

/// Jobs that make one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The phase.
    pub phase: Phase,
    /// Whether they are done side by side.
    pub is_parallel: bool,
    /// What is done.
    pub jobs: Vec<Job>,
}

/// Statements that give a table its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyStatements {
    /// Builds the unique index of the key's name beside others of the table, where that comes first.
    pub index: Option<String>,
    /// Makes it the key.
    pub key: Option<String>,
}

/// An index that is to be built.
#[derive(Debug, Clone)]
pub struct BuiltIndex {
    /// Of which table.
    pub table: Table,
    /// Its name.
    pub name: &'static str,
    /// What it is over.
    pub parts: Vec<IndexPart>,
    /// Whether it is that of a key.
    pub is_unique: bool,
}

impl BuiltIndex {
    /// One that is no key.
    pub fn of(index: &Index) -> Self {
        Self { table: index.table, name: index.name, parts: index.parts.to_vec(), is_unique: false }
    }

    /// That of a key over these columns.
    pub fn of_key(table: Table, name: &'static str, columns: &[&'static str]) -> Self {
        let parts = columns.iter().map(|name| IndexPart::Column(name)).collect();
        Self { table, name, parts, is_unique: true }
    }
}

/// Servers of one kind that hold order entry.
pub trait OrdersDialect: Dialect + Keeps<OrdersData> {
    /// What load is put on.
    type Orders: SqlServers<Session: OrdersSession>;

    /// Most rows of a piece.
    const MAX_PIECE_ROWS: u64 = u64::MAX;

    /// Refuses a level of transactions that its servers do not have, by its name in SQL.
    ///
    /// # Errors
    /// Which levels there are.
    fn check_isolation(&self, _level: &str) -> Result<(), TargetError> {
        Ok(())
    }

    /// Refuses pauses that procedures of its servers cannot make, before any is made. Gives what to know of those that they can.
    ///
    /// # Errors
    /// What stands against them, or why the server cannot be asked.
    fn check_pauses(_access: Access<'_, Self>) -> Result<Option<&'static str>, TargetError> {
        Ok(None)
    }

    /// What is stored besides values.
    const SIZING: Sizing;

    /// Whether a sparse table is loaded by one stream and in one piece. Where a table grows block by block, streams that fill one
    /// wait for each other, and it has next to nothing but blocks.
    const LOADS_SPARSE_WHOLE: bool = false;

    /// The servers, with data in a namespace.
    fn orders_servers(&self, namespace: &str, setting: OrdersSetting) -> Self::Orders;

    /// The statement that gives kind (as `table`, `key`, `index`, `foreign_key`, `check`, `sequence`) and name of each thing in a
    /// namespace that is whole.
    fn parts_there(namespace: &str) -> String;

    /// The statement that gives, of whatever has the name of one of them: name, how a statement names it, and what is said of it.
    fn procedures_there(namespace: &str) -> String;

    /// The statement that gives names of those that the server took and cannot execute, and why; none where it takes only what it can.
    fn broken_procedures() -> Option<String> {
        None
    }

    /// What a data set consists of there.
    fn parts_of(_server: &Self::Server, data: &OrdersData) -> Parts {
        parts_of(data)
    }

    /// What of a data set is otherwise there than it was asked for, or than on other servers.
    fn remarks_on(_data: &OrdersData) -> Vec<String> {
        Vec::new()
    }

    /// Statements that make an empty table with all that it has while rows are loaded.
    /// `forget` is one that forgets what was loaded into it.
    fn create_orders_table(namespace: &str, data: &OrdersData, table: Table, forget: String) -> Vec<String> {
        vec![forget, format!("{}{}", ddl::create_table::<Self>(namespace, table), Self::storage(data, table))]
    }

    /// What stands behind that statement, of how the server is to store the table.
    fn storage(_data: &OrdersData, _table: Table) -> String {
        String::new()
    }

    /// Statements that drop all tables, those that refer to others first.
    fn drop_orders_tables(namespace: &str) -> Vec<String> {
        let tables = Table::ALL.into_iter().rev();
        tables.map(|table| format!("DROP TABLE IF EXISTS {}", Self::qualified(namespace, table.name()))).collect()
    }

    /// What is still to be done once rows are loaded, where so much is there: indexes side by side, keys after them.
    fn steps(namespace: &str, data: &OrdersData, there: &Parts) -> Vec<Step> {
        let lacking = Lacking { data, there };
        let (mut indexes, mut keys) = (Vec::new(), Vec::new());
        for table in Table::ALL {
            let name = Self::qualified(namespace, table.name());
            let job = |doing: String, statements: Vec<String>| Job { doing, statements, table };
            if let Some(key) = lacking.key(table) {
                let KeyStatements { index, key: add } = Self::key_statements(namespace, data, table, &key);
                let index = index.filter(|_| lacking.lacks(PartKind::Index, key.name));
                indexes.extend(index.map(|build| job(format!("build the key of {name}"), vec![build])));
                keys.extend(add.map(|add| job(format!("add the key of {name}"), vec![add])));
            }
            indexes.extend(lacking.indexes(table).map(|index| {
                let (doing, index) = (format!("build the index {}", Self::quoted(index.name)), BuiltIndex::of(index));
                job(doing, vec![Self::create_index(namespace, data, &index)])
            }));
            if let Some(sequence) = ddl::sequence_of(table) {
                let is_there = lacking.sequence(table).is_none();
                let statements = Self::number_rows(namespace, data, sequence, is_there);
                let doing = format!("make the sequence {}", Self::qualified(namespace, sequence.name));
                keys.extend((!statements.is_empty()).then(|| job(doing, statements)));
            }
        }
        keys.extend(Table::ALL.into_iter().flat_map(|table| lacking.foreign_keys(table)).map(|key| {
            let deferrable = if key.is_deferrable { " DEFERRABLE" } else { "" };
            let name = Self::qualified(namespace, key.table.name());
            let add = format!("ALTER TABLE {name} ADD {}{deferrable}", ddl::foreign_key::<Self>(namespace, key));
            Job {
                doing: format!("add the foreign key {}", Self::quoted(key.name)),
                statements: vec![add],
                table: key.table,
            }
        }));
        vec![
            Step { phase: Phase::Index, is_parallel: true, jobs: indexes },
            // Foreign keys lock two tables each, so side by side they would wait for each other.
            Step { phase: Phase::Keys, is_parallel: false, jobs: keys },
        ]
    }

    /// How a table gets its key.
    fn key_statements(namespace: &str, _data: &OrdersData, table: Table, key: &Key) -> KeyStatements {
        let (name, columns) = (Self::qualified(namespace, table.name()), ddl::list::<Self>(key.columns));
        let add = format!("ALTER TABLE {name} ADD CONSTRAINT {} PRIMARY KEY ({columns})", Self::quoted(key.name));
        KeyStatements { index: None, key: Some(add) }
    }

    /// The statement that builds an index.
    fn create_index(namespace: &str, _data: &OrdersData, index: &BuiltIndex) -> String {
        let BuiltIndex { table, name, parts, is_unique } = index;
        let unique = if *is_unique { "UNIQUE " } else { "" };
        let table = Self::qualified(namespace, table.name());
        format!("CREATE {unique}INDEX {} ON {table} ({})", Self::quoted(name), ddl::parts::<Self>(parts))
    }

    /// Statements that have a sequence number the rows of its table, which may be there already.
    fn number_rows(namespace: &str, data: &OrdersData, sequence: &Sequence, is_there: bool) -> Vec<String> {
        let own = Self::qualified(namespace, sequence.name);
        let table = Self::qualified(namespace, sequence.table.name());
        let make = format!("CREATE SEQUENCE {own} START WITH {}", ddl::next_number(sequence.table, &data.sizes));
        let column = Self::quoted(sequence.column);
        let number = format!("ALTER TABLE {table} ALTER COLUMN {column} SET DEFAULT NEXT VALUE FOR {own}");
        if is_there { Vec::new() } else { vec![make, number] }
    }

    /// Connects to build indexes.
    ///
    /// # Errors
    /// When it cannot be connected.
    fn open_for_building<'a>(access: Access<'a, Self>, _: Halt<'_>) -> Result<Self::Session<'a>, TargetError> {
        Self::open(access)
    }

    /// Has the planner learn the shape of a table, and what else its rows need after loading.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or what went wrong.
    fn settle(
        session: &mut Self::Session<'_>,
        data: &OrdersData,
        table: Table,
        halt: Halt<'_>,
    ) -> Result<(), TargetError>;

    /// Which phase that is.
    const SETTLING: Phase = Phase::Analyze;

    /// Writes everything to storage now, where the user may ask for it.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or what went wrong.
    fn write_out_orders(_work: &mut Work<'_, Self, OrdersData>) -> Result<(), TargetError> {
        Ok(())
    }

    /// Connects a stream that loads.
    ///
    /// # Errors
    /// When it cannot be connected.
    fn open_for_loading_orders<'a>(access: Access<'a, Self>, halt: Halt<'_>) -> Result<Self::Session<'a>, TargetError> {
        Self::open_for_loading(access, halt)
    }

    /// Loads one piece and its mark, both or neither, and counts what it sends in `stream`. A piece's places are the units of its
    /// table, from 0.
    ///
    /// # Errors
    /// When the server refuses, or it was stopped.
    fn load_orders(
        session: &mut Self::Session<'_>,
        server: &Self::Server,
        source: &Source,
        piece: &Piece<Table>,
        stream: &Stream<'_>,
    ) -> Result<(), TargetError>;

    /// What the user should know about how such a server takes tables and rows.
    fn notes_on_loading(_server: &Self::Server) -> Vec<String> {
        Vec::new()
    }
}

impl<C: OrdersDialect> Dropped<C> for OrdersData {
    fn drops(&self, access: Access<'_, C>, session: &mut C::Session<'_>) -> Result<Vec<String>, TargetError> {
        let procedures = procedures::drops::<C>(session, access.namespace)?;
        Ok([procedures, C::drop_orders_tables(access.namespace)].concat())
    }

    fn made_later(access: Access<'_, C>, session: &mut C::Session<'_>) -> Result<Vec<String>, TargetError> {
        procedures::names_of_ours::<C>(session, access.namespace)
    }
}

/// What a data set consists of where a server knows all of it.
pub fn parts_of(data: &OrdersData) -> Parts {
    let mut parts = Parts::new();
    for table in Table::ALL {
        parts.insert((PartKind::Table, table.name().to_owned()));
        parts.extend(ddl::checks_of(table).map(|check| (PartKind::Check, check.name.to_owned())));
        if data.indexes != Indexes::None {
            parts.extend(table.key().map(|key| (PartKind::Key, key.name.to_owned())));
            parts.extend(ddl::foreign_keys_of(table).map(|key| (PartKind::ForeignKey, key.name.to_owned())));
        }
        if data.indexes == Indexes::All {
            parts.extend(ddl::indexes_of(table).map(|index| (PartKind::Index, index.name.to_owned())));
        }
    }
    parts.extend(SEQUENCES.iter().map(|sequence| (PartKind::Sequence, sequence.name.to_owned())));
    parts
}

/// What a data set lacks of what it was asked for, once its rows are there.
#[derive(Clone, Copy)]
pub struct Lacking<'a> {
    /// The data set as requested.
    pub data: &'a OrdersData,
    /// What of it is there.
    pub there: &'a Parts,
}

impl<'a> Lacking<'a> {
    /// Whether something is not there.
    pub fn lacks(self, kind: PartKind, name: &str) -> bool {
        !self.there.contains(&(kind, name.to_owned()))
    }

    /// The key of a table.
    pub fn key(self, table: Table) -> Option<Key> {
        table.key().filter(|key| self.data.indexes != Indexes::None && self.lacks(PartKind::Key, key.name))
    }

    /// Indexes of a table that are no key.
    pub fn indexes(self, table: Table) -> impl Iterator<Item = &'static Index> + use<'a> {
        ddl::indexes_of(table)
            .filter(move |index| self.data.indexes == Indexes::All && self.lacks(PartKind::Index, index.name))
    }

    /// Foreign keys of a table.
    pub fn foreign_keys(self, table: Table) -> impl Iterator<Item = &'static ForeignKey> + use<'a> {
        ddl::foreign_keys_of(table)
            .filter(move |key| self.data.indexes != Indexes::None && self.lacks(PartKind::ForeignKey, key.name))
    }

    /// What numbers the rows of a table.
    pub fn sequence(self, table: Table) -> Option<&'static Sequence> {
        ddl::sequence_of(table).filter(|sequence| self.lacks(PartKind::Sequence, sequence.name))
    }
}

/// What servers of one kind store besides values.
pub struct Sizing {
    /// What a row has besides its values, in bytes.
    pub row_bytes: f64,
    /// How full blocks are loaded.
    pub fill: f64,
    /// How full blocks of sparse tables are loaded.
    pub sparse_fill: f64,
    /// What an entry of an index takes, in bytes.
    pub entry_bytes: f64,
    /// How full leaves of an index are built.
    pub index_fill: f64,
    /// Whether a key is an index of its own, and not the order in which rows lie.
    pub keys_are_apart: bool,
    /// Whether all indexes of a table are sorted at once.
    pub sorts_together: bool,
    /// What the log needs for a row besides its values, in bytes.
    pub logged_bytes: f64,
    /// Whether building an index is logged.
    pub logs_indexes: bool,
    /// Most of the log that is kept, in bytes.
    pub most_log: u64,
}

impl Sizing {
    /// About how many bytes a table takes, without its indexes.
    pub(crate) fn room(&self, table: Table, source: &Source) -> f64 {
        let fill = if table.is_sparse() { self.sparse_fill } else { self.fill };
        (source.bytes_of(table) as f64 + source.rows_of(table) * self.row_bytes) / fill
    }

    /// About what data take.
    pub(crate) fn estimate(&self, data: &OrdersData, source: &Source) -> Estimate {
        let mut estimate = Estimate::default();
        for table in Table::ALL {
            let (rows, values) = (source.rows_of(table), source.bytes_of(table) as f64);
            estimate.tables += self.room(table, source) as u64;
            estimate.log += (values + rows * self.logged_bytes) as u64;
            let keys = u64::from(self.keys_are_apart && data.indexes != Indexes::None && table.key().is_some());
            let others = if data.indexes == Indexes::All { ddl::indexes_of(table).count() as u64 } else { 0 };
            let of_index = (rows * self.entry_bytes / self.index_fill) as u64;
            let of_all = (keys + others) * of_index;
            estimate.indexes += of_all;
            let sorted = if self.sorts_together { of_all } else { of_index.min(of_all) };
            estimate.sorting = estimate.sorting.max(sorted);
        }
        estimate.log += if self.logs_indexes { estimate.indexes } else { 0 };
        estimate.log = estimate.log.min(self.most_log);
        estimate
    }
}

/// What there is in the namespace.
pub fn parts_there<C: OrdersDialect>(
    access: Access<'_, C>,
    session: &mut C::Session<'_>,
) -> Result<Parts, TargetError> {
    let rows = C::ask(session, "look what there is", &C::parts_there(access.namespace), Halt::NEVER)?;
    let part = |row: &Vec<Option<String>>| -> Option<Part> {
        let kind = PartKind::ALL.into_iter().find(|kind| Some(kind.word()) == row[0].as_deref())?;
        Some((kind, row[1].clone()?))
    };
    Ok(rows.iter().filter_map(part).collect())
}
