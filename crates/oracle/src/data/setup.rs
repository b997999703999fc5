//! Making a data set: tables of one row a block, loaded past the buffer cache in permuted order, then indexed.

use super::catalog::{NO_TABLE, Server, name_of, sql_of, unless, with_grants};
use super::{Access, Session};
use crate::connect::Connector;
use crate::driver::ToDbValue;
use crate::sql::{READY_PLACE, SLOB, Sql, column_bytes, printable};
use ::sql::COLUMNS;
use ::sql::data::catalog::Keeps;
use ::sql::data::pieces::{Marks, Piece};
use ::sql::data::setup::{SetUp, Work};
use ::sql::data::streams::Stream;
use ::sql::data::{DataSet, RowSource, TableId, TableKind};
use targets::TargetError;
use targets::database::Phase;

/// An entry of the index on the keys: its header, key and ROWID.
const INDEX_ENTRY_BYTES: u64 = 20;
/// An index of that name is there already; a table has none of its name.
const INDEX_IS_THERE: u32 = 955;

impl SetUp for Connector {
    // A tablespace of one large file has as many blocks.
    const MAX_TABLE_BLOCKS: (&'static str, u64) = ("Oracle", 1 << 32);

    fn column_bytes(block_bytes: u32) -> u32 {
        column_bytes(block_bytes)
    }

    /// Rows are written past the cache, with redo of whole blocks where the database forces or archives it.
    fn estimates(data: &DataSet) -> (u64, u64) {
        (data.scale_blocks * u64::from(data.schemas) * INDEX_ENTRY_BYTES, data.bytes())
    }

    fn marks(_: Access<'_>, session: &mut Session<'_>) -> Result<Marks, TargetError> {
        let mut marks = Marks::new();
        for (table, first, places) in all_marks(session)? {
            if let (Ok(first), true) = (u64::try_from(first), places > 0) {
                marks.entry(table).or_default().push((first, places));
            }
        }
        Ok(marks)
    }

    fn load(
        session: &mut Session<'_>,
        _: &Server,
        data: &DataSet,
        piece: &Piece,
        stream: &Stream<'_>,
    ) -> Result<(), TargetError> {
        self::load(session, data, piece, stream)
    }

    fn make(work: &mut Work<'_, Self>) -> Result<(), TargetError> {
        make_tables(work)?;
        work.load_rows()?;
        build_indexes(work)?;
        analyze(work)
    }

    /// Batches are sent as blocks, so there are no procedures.
    fn drop_tables(access: Access<'_>, data: &DataSet) -> Vec<String> {
        let sql = sql_of(access, data.block_bytes);
        data.tables().map(|table| Sql::drop_table(&name_of(&sql, table))).collect()
    }
}

/// What has been done to tables: which, first place or [`READY_PLACE`], places.
fn all_marks(session: &Session<'_>) -> Result<Vec<(TableId, i64, u64)>, TargetError> {
    let sql = sql_of(session.access(), 0);
    session.query("read what has been loaded", &sql.marks(), &[], |row| {
        let kind = if row.get::<u32>(0)? == 1 { TableKind::Scan } else { TableKind::Rows };
        Ok((TableId { kind, schema: row.get(1)? }, row.get(2)?, row.get(3)?))
    })
}

fn sql_of_work(work: &Work<'_, Connector>) -> Sql {
    sql_of(work.access, work.data.block_bytes)
}

/// Makes the tables that are not ready for rows yet. One that was dropped in between is loaded again.
fn make_tables(work: &mut Work<'_, Connector>) -> Result<(), TargetError> {
    let there = <Connector as Keeps<DataSet>>::objects(&mut work.session)?;
    let ready: Vec<TableId> = all_marks(&work.session)?
        .into_iter()
        .filter_map(|(table, first, _)| (first == READY_PLACE).then_some(table))
        .collect();
    let is_ready = |table: &TableId| ready.contains(table) && there.contains_key(&table.name());
    let missing: Vec<TableId> = work.data.tables().filter(|table| !is_ready(table)).collect();
    work.phase(Phase::Create, 0, |work, _| {
        let (halt, sql) = (work.halt(), sql_of_work(work));
        for table in &missing {
            halt.check()?;
            let (name, session) = (name_of(&sql, *table), &work.session);
            let (is_scan, doing) = (u32::from(table.kind == TableKind::Scan), "create the tables");
            session.execute(doing, &sql.forget_marks(), &[&is_scan, &table.schema])?;
            session.connected()?.commit(doing)?;
            unless(session.execute(doing, &Sql::drop_table(&name), &[]), &[NO_TABLE])?;
            let made = session.execute(doing, &sql.create_table(&name), &[]);
            made.map_err(|error| with_grants::<DataSet>(session.access(), error))?;
            one_row(session, &sql, &name)?;
            session.execute(doing, &Sql::minimize(&name), &[])?;
            session.execute(doing, &Sql::truncate(&name), &[])?;
            session.execute(doing, &sql.insert_mark(&SLOB), &[&is_scan, &table.schema, &READY_PLACE, &0_u32])?;
            session.connected()?.commit(doing)?;
        }
        Ok(())
    })
}

fn build_indexes(work: &mut Work<'_, Connector>) -> Result<(), TargetError> {
    let (access, sql) = (work.access, sql_of_work(work));
    let each = work.data.scale_blocks * u64::from(work.data.block_bytes);
    let schemas: Vec<(u32, u64)> = (0..work.data.schemas).map(|schema| (schema, each)).collect();
    work.side_by_side(
        Phase::Index,
        &schemas,
        |_| Session::open(access),
        |session, schema, halt| {
            let doing = format!("build the index of {}", sql.table(schema));
            unless(session.execute_long(&doing, sql.create_index(schema), halt), &[INDEX_IS_THERE])
        },
    )
}

/// Has the server learn the shape of tables and indexes.
fn analyze(work: &mut Work<'_, Connector>) -> Result<(), TargetError> {
    let tables: Vec<TableId> = work.data.tables().collect();
    work.phase(Phase::Analyze, 0, |work, _| {
        let (sql, halt) = (sql_of_work(work), work.halt());
        for table in &tables {
            halt.check()?;
            let name = table.name().to_uppercase();
            work.session.execute("gather statistics", &sql.gather_statistics(), &[&name.as_str()])?;
        }
        Ok(())
    })
}

// Loading rows: in pieces, each one array of values that is written past the buffer cache, in one transaction with its mark.

/// What rows are filled with where they may be compressed.
const REPEATED: &[u8] = b"PLIMSOLL";

/// Rows as they are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rows {
    keys: Vec<u64>,
    /// All columns of all rows, one after the other.
    text: String,
    column_bytes: usize,
}

impl Rows {
    /// Those of the places from `first` on.
    fn of(data: &DataSet, piece: &Piece) -> Self {
        let source = RowSource::new(data, piece.table);
        let column_bytes = data.column_bytes as usize;
        let bytes = COLUMNS as usize * column_bytes;
        let mut filling: Vec<u8> = REPEATED.iter().copied().cycle().take(bytes).collect();
        let repeated = String::from_utf8_lossy(&filling).into_owned();
        let mut rows = Self {
            keys: Vec::with_capacity(piece.places as usize),
            text: String::with_capacity(piece.places as usize * bytes),
            column_bytes,
        };
        for place in piece.first..piece.first + piece.places {
            rows.keys.push(source.key(place));
            match source.numbers(place) {
                Some(mut numbers) => {
                    numbers.fill(&mut filling);
                    printable(&filling, &mut rows.text);
                }
                None => rows.text.push_str(&repeated),
            }
        }
        rows
    }

    fn columns(&self) -> Vec<&str> {
        let places = 0..self.keys.len() * COLUMNS as usize;
        places.map(|column| &self.text[column * self.column_bytes..(column + 1) * self.column_bytes]).collect()
    }
}

/// Loads one piece and its mark: both or neither.
fn load(session: &Session<'_>, data: &DataSet, piece: &Piece, progress: &Stream<'_>) -> Result<(), TargetError> {
    let sql = sql_of(session.access(), data.block_bytes);
    let name = name_of(&sql, piece.table);
    let doing = format!("load rows into {name}");
    let rows = Rows::of(data, piece);
    let columns = rows.columns();
    let values: Vec<Vec<&dyn ToDbValue>> = rows
        .keys
        .iter()
        .zip(columns.chunks_exact(COLUMNS as usize))
        .map(|(key, columns)| {
            std::iter::once(key as &dyn ToDbValue).chain(columns.iter().map(|text| text as &dyn ToDbValue)).collect()
        })
        .collect();
    let values: Vec<&[&dyn ToDbValue]> = values.iter().map(Vec::as_slice).collect();
    let connected = session.connected()?;
    let loaded = connected.execute_for_each(&doing, &sql.insert_rows(&name), &values)?;
    if loaded != piece.places {
        connected.rollback();
        let what = format!("the server took {loaded} of {} rows for {name}", piece.places);
        return Err(session.access().unfit(what, "make the data again: `plimsoll slob setup --replace`"));
    }
    let is_scan = u32::from(piece.table.kind == TableKind::Scan);
    let mark: [&dyn ToDbValue; 4] = [&is_scan, &piece.table.schema, &piece.first, &piece.places];
    connected.execute(&doing, &sql.insert_mark(&SLOB), &mark)?;
    connected.commit(&doing)?;
    progress.done(piece.places * u64::from(data.block_bytes));
    Ok(())
}

/// Puts one full row into an empty table, after which it is known how many a block takes.
fn one_row(session: &Session<'_>, sql: &Sql, table: &str) -> Result<(), TargetError> {
    let filling = "x".repeat(sql.column_bytes() as usize);
    let filling = filling.as_str();
    let values: Vec<&dyn ToDbValue> =
        std::iter::once(&0_u64 as &dyn ToDbValue).chain((0..COLUMNS).map(|_| &filling as &dyn ToDbValue)).collect();
    session.execute("create the tables", &sql.insert_row(table), &values)?;
    Ok(session.connected()?.commit("create the tables")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::data::{TableId, sample};

    fn piece(first: u64, places: u64) -> Piece {
        Piece { table: TableId { kind: TableKind::Rows, schema: 1 }, first, places, then_vacuum: false }
    }

    #[test]
    fn rows_are_the_same_in_whatever_pieces_they_are_sent() {
        let data = sample();
        let (all, one, other) =
            (Rows::of(&data, &piece(0, 30)), Rows::of(&data, &piece(0, 7)), Rows::of(&data, &piece(7, 23)));
        assert_eq!([one.keys.clone(), other.keys.clone()].concat(), all.keys);
        assert_eq!(one.text + &other.text, all.text);
        let keys: Vec<u64> = (0..30).map(|place| data.permutation(1).invert(place)).collect();
        assert_eq!(all.keys, keys);
    }

    #[test]
    fn each_row_has_all_columns_of_the_full_width() {
        let data = sample();
        let rows = Rows::of(&data, &piece(0, 3));
        let columns = rows.columns();
        assert_eq!(columns.len(), 3 * COLUMNS as usize);
        assert!(columns.iter().all(|text| text.len() == data.column_bytes as usize && text.is_ascii()));
        let distinct: std::collections::BTreeSet<&&str> = columns.iter().collect();
        assert_eq!(distinct.len(), columns.len(), "each is filled by itself");
    }
}
