//! Making a data set of SLOB's: the request, and what a server's own folder supplies.
//!
//! Each of its steps can be repeated, and what was done stays: whoever is interrupted goes on where it was with the same command.

use super::catalog::{Dropped, FORMAT_VERSION, Keeps, LOAD_TABLE};
use super::pieces::{self, Marks, Piece, Pieces};
use super::plan::DataRequest;
use super::streams::{Halt, Stream};
use model::units::Bytes;
use targets::TargetError;
use targets::database::{Phase, Replace, SetupRequest};

use super::found::Estimate;
use super::{Access, DataSet, TableId, TableKind, procedure_name};

pub use super::Work;

/// How servers of one kind have data made.
pub trait SetUp: Keeps<DataSet> {
    /// Who keeps the tables, and how many blocks one of them has at most.
    const MAX_TABLE_BLOCKS: (&'static str, u64) = ("the server", u64::MAX);

    /// Bytes of each filling column in blocks of this size.
    fn column_bytes(block_bytes: u32) -> u32;

    /// About what the indexes take and what the log grows by while the data are made, in bytes.
    fn estimates(data: &DataSet) -> (u64, u64);

    /// What [`Keeps::objects`] gives for a whole data set besides [`Keeps::objects_of`].
    fn indexes_of(_data: &DataSet) -> Vec<String> {
        Vec::new()
    }

    /// Reads what has been loaded.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn marks(access: Access<'_, Self>, session: &mut Self::Session<'_>) -> Result<Marks, TargetError> {
        let [is_scan, schema, first, places] = ["is_scan", "schema", "first_place", "places"].map(Self::quoted);
        let table = Self::qualified(access.namespace, LOAD_TABLE);
        let read =
            format!("SELECT {is_scan}, {schema}, {first}, {places} FROM {table} WHERE {places} > 0 ORDER BY 1, 2, 3");
        let read = Self::after_commits(&table, &read);
        let rows = Self::ask(session, "read what has been loaded", &read, Halt::NEVER)?;
        let mut marks = Marks::new();
        for row in &rows {
            let text = |column: usize| row.get(column).and_then(Option::as_deref).unwrap_or_default();
            let number = |column: usize| text(column).parse::<u64>().unwrap_or(0);
            let kind = if ["1", "t"].contains(&text(0)) { TableKind::Scan } else { TableKind::Rows };
            let table = TableId { kind, schema: number(1) as u32 };
            marks.entry(table).or_default().push((number(2), number(3)));
        }
        Ok(marks)
    }

    /// Bytes of a table that are loaded between two vacuums, where tables are vacuumed.
    fn vacuum_bytes(_server: &Self::Server, _streams: u32) -> u64 {
        u64::MAX
    }

    /// Connects a stream that loads.
    ///
    /// # Errors
    /// When it cannot be connected.
    fn open_for_loading<'a>(access: Access<'a, Self>, _: Halt<'_>) -> Result<Self::Session<'a>, TargetError> {
        Self::open(access)
    }

    /// Loads one piece and its mark: both or neither.
    ///
    /// # Errors
    /// When the server refuses, or it was stopped.
    fn load(
        session: &mut Self::Session<'_>,
        server: &Self::Server,
        data: &DataSet,
        piece: &Piece,
        stream: &Stream<'_>,
    ) -> Result<(), TargetError>;

    /// Makes the tables, has rows loaded, and does what has to be done before and after, until the data can be declared whole.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or what went wrong.
    fn make(work: &mut Work<'_, Self>) -> Result<(), TargetError>;

    /// Statements that drop tables and procedures.
    fn drop_tables(access: Access<'_, Self>, data: &DataSet) -> Vec<String> {
        let drop =
            |kind: &str, name: String| format!("DROP {kind} IF EXISTS {}", Self::qualified(access.namespace, &name));
        let procedures = (0..data.schemas).map(|schema| drop("PROCEDURE", procedure_name(schema)));
        procedures.chain(data.tables().map(|table| drop("TABLE", table.name()))).collect()
    }
}

impl<C: SetUp> Dropped<C> for DataSet {
    fn drops(&self, access: Access<'_, C>, _: &mut C::Session<'_>) -> Result<Vec<String>, TargetError> {
        Ok(C::drop_tables(access, self))
    }
}

impl<C: SetUp> DataRequest<C> for SetupRequest {
    type Data = DataSet;
    type Outcome = ();

    fn replace(&self) -> Replace {
        self.replace
    }

    fn streams(&self) -> u32 {
        self.streams
    }

    fn check(&self) -> Result<(), TargetError> {
        SetupRequest::check(self)?;
        let (keeper, most) = C::MAX_TABLE_BLOCKS;
        if self.scale_blocks.max(self.scan_blocks) > most {
            let bytes = Bytes(most * u64::from(self.block_bytes));
            return Err(TargetError::Shape(format!(
                "a table of {keeper} has at most {most} blocks, {bytes}; lower the scale"
            )));
        }
        Ok(())
    }

    fn beside(&self, there: Option<&DataSet>) -> Self {
        SetupRequest::beside(self, there.map(|data| data.seed))
    }

    fn data(&self, access: Access<'_, C>, block_bytes: u32) -> Result<DataSet, TargetError> {
        let (asked, there) = (Bytes(self.block_bytes.into()), Bytes(block_bytes.into()));
        if asked != there {
            let what = format!("blocks of {asked} were requested, but `{}` has blocks of {there}", access.node_name());
            return Err(access.unfit(what, format!("leave the block size out, or ask for {there}")));
        }
        Ok(DataSet::wanted(self, FORMAT_VERSION, C::column_bytes(block_bytes)))
    }

    fn difference(&self, there: &DataSet) -> Option<String> {
        there.difference(self)
    }

    fn lacks(
        _: Access<'_, C>,
        session: &mut C::Session<'_>,
        _: &C::Server,
        data: &DataSet,
    ) -> Result<Option<String>, TargetError> {
        let there = <C as Keeps<DataSet>>::objects(session)?;
        let mut wanted = C::objects_of(data).into_iter().chain(C::indexes_of(data));
        Ok(wanted.find(|name| !there.contains_key(name)))
    }

    fn loaded_bytes(access: Access<'_, C>, session: &mut C::Session<'_>, data: &DataSet) -> Result<u64, TargetError> {
        Ok(pieces::loaded_places(&C::marks(access, session)?) * u64::from(data.block_bytes))
    }

    fn bytes(data: &DataSet) -> u64 {
        data.bytes()
    }

    fn estimate(data: &DataSet) -> Estimate {
        let (indexes, log) = C::estimates(data);
        Estimate { tables: data.bytes(), indexes, sorting: 0, log }
    }

    fn make(work: &mut Work<'_, C>) -> Result<(), TargetError> {
        C::make(work)
    }
}

impl<C: SetUp> Work<'_, C> {
    /// Loads what is missing, in pieces.
    ///
    /// # Errors
    /// As [`phase`](Self::phase).
    pub fn load_rows(&mut self) -> Result<(), TargetError> {
        let marks = C::marks(self.access, &mut self.session)?;
        let found = pieces::loaded_places(&marks) * u64::from(self.data.block_bytes);
        let total = self.data.bytes();
        self.report.bytes_found = found;
        self.report.bytes_written = total - found;
        self.report.rows_written = (total - found) / u64::from(self.data.block_bytes.max(1));
        let missing = pieces::missing(&self.data, &marks, C::vacuum_bytes(&self.server, self.streams));
        let count = missing.iter().map(|(_, pieces)| pieces.len()).sum();
        let left = Pieces::new(missing);
        self.phase(Phase::Load, total, |work, notify| {
            let (access, server, data) = (work.access, &work.server, &work.data);
            let notify_all = |done| notify(found + done);
            work.streams(count, &notify_all).run(
                |halt| C::open_for_loading(access, halt),
                |ended| left.next(ended),
                |session, piece, stream| C::load(session, server, data, piece, stream),
            )
        })
    }
}
