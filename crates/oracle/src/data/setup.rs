//! Making a data set: tables of one row a block, loaded past the buffer cache in permuted order, then indexed.

use super::catalog::{NO_TABLE, Server, name_of, sql_of, unless, with_grants};
use super::load;
use super::session::{Access, Session};
use crate::connect::Connector;
use crate::sql::{READY_PLACE, SLOB, Sql, column_bytes};
use ::sql::data::catalog::Keeps;
use ::sql::data::pieces::{Marks, Piece};
use ::sql::data::setup::{SetUp, Work};
use ::sql::data::streams::Stream;
use ::sql::data::{DataSet, TableId, TableKind};
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
        load::load(session, data, piece, stream)
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
            load::one_row(session, &sql, &name)?;
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
