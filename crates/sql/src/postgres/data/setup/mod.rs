//! Making a data set: tables of one row a block, loaded by COPY.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io::Cursor;
use std::iter;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::SinkExt;
use tokio::time::sleep;

use super::catalog;
use super::descriptor::{DataSet, TableId, TableKind};
use super::session::{Access, Halt, Session};
use crate::COLUMNS;
use crate::data::catalog::Keeps;
use crate::data::pieces::{PIECE_BYTES, Piece};
use crate::data::setup::{SetUp, Work};
use crate::data::streams::{LOOK_AROUND, Stream};
use crate::data::{ALLOWED_PART, RowSource, index_name};
use crate::postgres::Connector;
use crate::postgres::data::catalog::Server;
use crate::postgres::sql::Sql;
use targets::TargetError;
use targets::database::Phase;

/// Tables and procedures that are made in one transaction: each holds locks until its end, of which a server has few.
const MADE_AT_ONCE: usize = 16;
/// Memory that sorting the keys of one row takes when an index is built.
const SORT_BYTES_PER_ROW: u64 = 32;
/// Most memory that one stream has indexes built with.
const MAX_SORT_BYTES: u64 = 256 << 20;
/// The planner learns from 300 rows for each unit of this: enough to tell 0 from 0.05 in a correlation, and far fewer
/// blocks to read than by default.
const STATISTICS_TARGET: u32 = 30;
/// How long deleted rows may be kept by transactions that are older than their end.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(60);
const OLD_SNAPSHOT: &str = "look for it by `SELECT pid, state, query FROM pg_stat_activity WHERE backend_xmin IS NOT NULL \
                            ORDER BY age(backend_xmin) DESC`, end it, and repeat this command: it continues from here";

impl SetUp for Connector {
    // It numbers blocks with 32 bits, and the last number is none.
    const MAX_TABLE_BLOCKS: (&'static str, u64) = ("PostgreSQL", u32::MAX as u64 - 1);

    fn column_bytes(block_bytes: u32) -> u32 {
        Sql::new("", block_bytes).column_bytes()
    }

    fn estimates(data: &DataSet) -> (u64, u64) {
        (data.estimated_index_bytes(), data.estimated_redo_bytes())
    }

    fn indexes_of(data: &DataSet) -> Vec<String> {
        (0..data.schemas).map(index_name).collect()
    }

    fn vacuum_bytes(server: &Server, streams: u32) -> u64 {
        vacuum_bytes(server.shared_buffers, streams)
    }

    /// Losing the last pieces in a crash of the server costs nothing: their marks are lost with them.
    fn open_for_loading<'a>(access: Access<'a>, halt: Halt<'_>) -> Result<Session<'a>, TargetError> {
        open_with(access, "SET synchronous_commit = off", halt)
    }

    fn load(
        session: &mut Session<'_>,
        _: &Server,
        data: &DataSet,
        piece: &Piece,
        stream: &Stream<'_>,
    ) -> Result<(), TargetError> {
        load_copy(session, data, piece, stream)
    }

    fn make(work: &mut Work<'_, Self>) -> Result<(), TargetError> {
        let autovacuum = if work.server.autovacuum {
            "is on and looks after"
        } else {
            "is off on this server and does not look after"
        };
        work.report.notes.push(format!("autovacuum {autovacuum} these tables"));
        work.make_tables()?;
        work.load_rows()?;
        work.compact()?;
        work.build_indexes()?;
        work.make_procedures()?;
        work.vacuum()?;
        work.write_checkpoint()
    }
}

/// Connects, and has `settings` executed.
pub(super) fn open_with<'a>(access: Access<'a>, settings: &str, halt: Halt<'_>) -> Result<Session<'a>, TargetError> {
    let session = Session::open(access)?;
    session.execute("set up a session", settings, halt)?;
    Ok(session)
}

/// The statement by which a session sorts with so much memory: never less than the server's own, and every role may ask for more.
pub(super) fn sort_settings(bytes: u64) -> String {
    let kib = bytes >> 10;
    format!(
        "SELECT set_config('maintenance_work_mem', greatest({kib}, setting::bigint)::text || 'kB', false) \
         FROM pg_settings WHERE name = 'maintenance_work_mem'"
    )
}

impl Work<'_, Connector> {
    fn sql(&self) -> Sql {
        self.access.sql(self.data.block_bytes)
    }

    /// Each table with its bytes.
    fn sized(&self, tables: impl IntoIterator<Item = TableId>) -> Vec<(TableId, u64)> {
        tables.into_iter().map(|table| (table, self.data.bytes_of(table))).collect()
    }

    /// Makes the tables that are not there yet. A table that somebody dropped in between is loaded again.
    fn make_tables(&mut self) -> Result<(), TargetError> {
        let there = <Connector as Keeps<DataSet>>::objects(&mut self.session)?;
        let missing: Vec<TableId> = self.data.tables().filter(|table| !there.contains_key(&table.name())).collect();
        self.phase(Phase::Create, 0, |work, _| {
            let (marks, sql) = (catalog::load_table::<DataSet>(work.access), work.sql());
            let make = |table: &TableId| {
                let (name, is_scan) = (table.qualified(&sql), table.kind == TableKind::Scan);
                // Nobody else should look at a table while it is loaded: it is vacuumed at the end anyway.
                format!(
                    "{}; ALTER TABLE {name} SET (autovacuum_enabled = off); \
                     DELETE FROM {marks} WHERE is_scan = {is_scan} AND schema = {};",
                    sql.create_table(&name),
                    table.schema
                )
            };
            for tables in missing.chunks(MADE_AT_ONCE) {
                let statements: String = tables.iter().map(make).collect();
                work.session.execute("create the tables", &format!("BEGIN; {statements} COMMIT"), work.halt())?;
            }
            Ok(())
        })
    }

    /// Rewrites tables that have too many blocks without a row. Pieces that were given up leave such blocks, and so
    /// does a server that adds several blocks at a time.
    fn compact(&mut self) -> Result<(), TargetError> {
        let tables = self.sized(sparse(&self.session, &self.data)?);
        if tables.is_empty() {
            return Ok(());
        }
        let (access, sql, data) = (self.access, self.sql(), self.data.clone());
        self.side_by_side(
            Phase::Compact,
            &tables,
            |_| Session::open(access),
            |session, table, halt| {
                let name = table.qualified(&sql);
                let began = Instant::now();
                // Deleted rows stay while a snapshot sees them that is older than their end, such as that of ANALYZE.
                loop {
                    let rewrite = Instant::now();
                    session.execute(&format!("compact {name}"), &format!("VACUUM FULL {name}"), halt)?;
                    if !sparse(session, &data)?.contains(&table) {
                        return Ok(());
                    }
                    if began.elapsed() > SNAPSHOT_PATIENCE {
                        let what =
                            format!("{name} keeps deleted rows that an older transaction in its database still sees");
                        return Err(access.unfit(what, OLD_SNAPSHOT));
                    }
                    let pause = rewrite.elapsed().max(LOOK_AROUND);
                    session.wait("wait for an older transaction", halt, async {
                        sleep(pause).await;
                        Ok(())
                    })?;
                }
            },
        )
    }

    fn build_indexes(&mut self) -> Result<(), TargetError> {
        let there = <Connector as Keeps<DataSet>>::objects(&mut self.session)?;
        let each = self.data.scale_blocks * u64::from(self.data.block_bytes);
        let missing = (0..self.data.schemas).filter(|schema| !there.contains_key(&index_name(*schema)));
        let missing: Vec<(u32, u64)> = missing.map(|schema| (schema, each)).collect();
        let settings = sort_settings((self.data.scale_blocks * SORT_BYTES_PER_ROW).min(MAX_SORT_BYTES));
        let (access, sql) = (self.access, self.sql());
        self.side_by_side(
            Phase::Index,
            &missing,
            |halt| open_with(access, &settings, halt),
            |session, schema, halt| {
                let doing = format!("build the index of {}", sql.table(schema));
                session.execute(&doing, &sql.create_index(schema), halt)
            },
        )
    }

    fn make_procedures(&mut self) -> Result<(), TargetError> {
        let sql = self.sql();
        let schemas: Vec<u32> = (0..self.data.schemas).collect();
        for schemas in schemas.chunks(MADE_AT_ONCE) {
            let statements: Vec<String> = schemas.iter().map(|schema| sql.create_procedure(*schema)).collect();
            self.session.execute("create the procedures", &statements.join("; "), self.halt())?;
        }
        Ok(())
    }

    /// Vacuums what is not vacuumed yet.
    fn vacuum(&mut self) -> Result<(), TargetError> {
        let tables = self.sized(self.unvacuumed()?);
        let settings = format!("SET default_statistics_target = {STATISTICS_TARGET}");
        let (access, sql) = (self.access, self.sql());
        self.side_by_side(
            Phase::Vacuum,
            &tables,
            |halt| open_with(access, &settings, halt),
            |session, table, halt| {
                let name = table.qualified(&sql);
                let doing = format!("vacuum {name}");
                // Only the key matters to the planner; VACUUM wants to be alone in its message.
                session.execute(&doing, &format!("ALTER TABLE {name} RESET (autovacuum_enabled)"), halt)?;
                session.execute(&doing, &format!("VACUUM (ANALYZE) {name} (custid)"), halt)
            },
        )
    }

    fn unvacuumed(&self) -> Result<Vec<TableId>, TargetError> {
        let access = self.access;
        let ask = "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                   WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relpages > 0 AND c.relallvisible = c.relpages \
                   AND EXISTS (SELECT FROM pg_stats s WHERE s.schemaname = n.nspname AND s.tablename = c.relname)";
        let rows = self.session.query("look which tables are vacuumed", ask, &[&access.namespace], self.halt())?;
        let vacuumed: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
        Ok(self.data.tables().filter(|table| !vacuumed.contains(&table.name())).collect())
    }
}

/// Tables that have too many blocks without a row.
fn sparse(session: &Session<'_>, data: &DataSet) -> Result<Vec<TableId>, TargetError> {
    let too_many = |(table, pages): &(TableId, u64)| {
        let rows = data.rows_of(*table);
        *pages > rows + (rows / (2 * ALLOWED_PART)).max(1)
    };
    let pages = catalog::table_pages(session, data)?;
    Ok(pages.into_iter().filter(too_many).map(|(table, _)| table).collect())
}

impl<D: Sync> Work<'_, Connector, D> {
    /// Writes everything to storage now, where the role may ask for it: else the first run would pay for it.
    pub(in crate::postgres) fn write_checkpoint(&mut self) -> Result<(), TargetError> {
        let ask = "SELECT rolsuper OR coalesce(pg_has_role(current_user, to_regrole('pg_checkpoint')::oid, 'USAGE'), false) \
                   FROM pg_roles WHERE rolname = current_user";
        if self.session.query_one("ask for the role's rights", ask, &[])?.get(0) {
            return self.phase(Phase::Checkpoint, 0, |work, _| {
                work.session.execute("write a checkpoint", "CHECKPOINT", work.halt())
            });
        }
        self.report.notes.push(
            "setup wrote no checkpoint: the role lacks the right (pg_checkpoint, from PostgreSQL 15 on). The server \
            still writes loaded blocks, so wait for its next checkpoint before a run"
                .to_owned(),
        );
        Ok(())
    }
}

/// A table is vacuumed each time that so many bytes of it were loaded, or a smaller part of the server's buffers. Its blocks are
/// still in memory and not yet written: an hour later each would be read and written once more, and the log flushed for every
/// few of them.
const MAX_VACUUM_BYTES: u64 = 64 << 20;
/// All streams together fill so small a part of the server's buffers between two vacuums.
const PART_OF_BUFFERS: u64 = 4;
/// How long a piece may go on when the load is to end: one that is given up leaves its blocks behind, empty.
const PIECE_PATIENCE: Duration = Duration::from_secs(5);

/// How many bytes of a table are loaded between two vacuums of it, on a server with buffers of this size.
fn vacuum_bytes(shared_buffers: u64, streams: u32) -> u64 {
    (shared_buffers / PART_OF_BUFFERS / u64::from(streams.max(1))).clamp(PIECE_BYTES, MAX_VACUUM_BYTES)
}

/// Loads one piece and its mark: both or neither. Then vacuums the table where that is due.
fn load_copy(session: &Session<'_>, data: &DataSet, piece: &Piece, stream: &Stream<'_>) -> Result<(), TargetError> {
    let Piece { table, first, places, then_vacuum } = *piece;
    let name = table.qualified(&session.access().sql(data.block_bytes));
    let doing = format!("load rows into {name}");
    let (source, mut builder) = (RowSource::new(data, table), RowBuilder::new(data.column_bytes));
    let block_bytes = u64::from(data.block_bytes);
    // Rows count as committed for a vacuum once the log says so on storage.
    let durable = if then_vacuum { "SET LOCAL synchronous_commit = local; " } else { "" };
    let mark = format!(
        "{durable}INSERT INTO {} VALUES ({}, {}, {first}, {places}); COMMIT",
        catalog::load_table::<DataSet>(session.access()),
        table.kind == TableKind::Scan,
        table.schema,
    );
    session.wait_with_patience(&doing, stream.halt, PIECE_PATIENCE, async {
        let client = session.client();
        client.batch_execute("BEGIN").await?;
        let mut sink = pin!(client.copy_in::<_, Buffer>(&Sql::copy_in(&name)).await?);
        sink.feed(RowBuilder::header()).await?;
        let mut at = first;
        while at < first + places {
            let rows = builder.rows_at_once().min(first + places - at);
            sink.feed(builder.build(&source, at, rows)).await?;
            at += rows;
            stream.done(rows * block_bytes);
        }
        sink.feed(RowBuilder::trailer()).await?;
        sink.finish().await?;
        client.batch_execute(&mark).await
    })?;
    if then_vacuum {
        // Another stream's vacuum of the same table does as well. Blocks at the end may be those that another stream is about
        // to fill.
        let vacuum = format!("VACUUM (TRUNCATE false, SKIP_LOCKED) {name}");
        session.execute(&format!("vacuum {name}"), &vacuum, stream.halt)?;
    }
    Ok(())
}

/// The signature, flags and the length of an extension: the manual's "Binary Format" of COPY.
pub(super) const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What ends the stream: a row of -1 fields.
pub(super) const TRAILER: &[u8] = &(-1_i16).to_be_bytes();
/// Bytes sent at once: enough to cost few calls, and little enough to stay in a processor's cache until it is sent.
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes before the first column: the number of fields, and the key with its length.
const KEY_AT: usize = 2 + 4;
const COLUMNS_AT: usize = KEY_AT + 8;
/// Bytes of a column's length.
const LENGTH_BYTES: usize = 4;
/// What is sent.
type Buffer = Cursor<Arc<[u8]>>;

/// Builds rows in buffers that are used again as soon as they have been sent.
struct RowBuilder {
    column_bytes: usize,
    template: Arc<[u8]>,
    buffers: Vec<Arc<[u8]>>,
}

impl RowBuilder {
    fn new(column_bytes: u32) -> Self {
        let column_bytes = column_bytes as usize;
        let row = row_template(column_bytes);
        let rows = (BUFFER_BYTES / row.len()).max(1);
        Self { column_bytes, template: row.repeat(rows).into(), buffers: Vec::new() }
    }

    fn row_bytes(&self) -> usize {
        COLUMNS_AT + COLUMNS as usize * (LENGTH_BYTES + self.column_bytes)
    }

    /// Rows that are sent at once.
    fn rows_at_once(&self) -> u64 {
        (self.template.len() / self.row_bytes()) as u64
    }

    /// What a stream begins with.
    fn header() -> Buffer {
        Cursor::new(HEADER.into())
    }

    /// What a stream ends with.
    fn trailer() -> Buffer {
        Cursor::new(TRAILER.into())
    }

    /// The rows at `rows` places from `first` on; at most [`rows_at_once`](Self::rows_at_once).
    fn build(&mut self, source: &RowSource, first: u64, rows: u64) -> Buffer {
        let (row_bytes, column_bytes) = (self.row_bytes(), self.column_bytes);
        let bytes = rows as usize * row_bytes;
        let mut buffer = self.idle_buffer();
        let contents = Arc::get_mut(&mut buffer).expect("an idle buffer has one owner");
        for (place, row) in (first..).zip(contents[..bytes].chunks_exact_mut(row_bytes)) {
            row[KEY_AT..COLUMNS_AT].copy_from_slice(&source.key(place).to_be_bytes());
            if let Some(mut rng) = source.numbers(place) {
                for column in row[COLUMNS_AT..].chunks_exact_mut(LENGTH_BYTES + column_bytes) {
                    rng.fill(&mut column[LENGTH_BYTES..]);
                }
            }
        }
        if bytes == buffer.len() {
            self.buffers.push(Arc::clone(&buffer));
            return Cursor::new(buffer);
        }
        let part = Arc::from(&buffer[..bytes]);
        self.buffers.push(buffer);
        Cursor::new(part)
    }

    /// A buffer that has been sent, or a new one. It holds rows already: only keys and incompressible filling change.
    fn idle_buffer(&mut self) -> Arc<[u8]> {
        match self.buffers.iter().position(|buffer| Arc::strong_count(buffer) == 1) {
            Some(idle) => self.buffers.swap_remove(idle),
            None => Arc::from(&self.template[..]),
        }
    }
}

/// A row of repeated text, as SLOB has it by default.
fn row_template(column_bytes: usize) -> Vec<u8> {
    let mut row = Vec::with_capacity(COLUMNS_AT + COLUMNS as usize * (LENGTH_BYTES + column_bytes));
    row.extend((COLUMNS as i16 + 1).to_be_bytes());
    row.extend(8_i32.to_be_bytes());
    row.extend([0; 8]);
    for _ in 0..COLUMNS {
        row.extend((column_bytes as i32).to_be_bytes());
        row.extend(iter::repeat_n(b"PLIMSOLL", column_bytes.div_ceil(8)).flatten().take(column_bytes));
    }
    row
}

#[cfg(test)]
mod rows_tests {
    use super::*;
    use crate::postgres::data::descriptor::{DataSet, TableId, TableKind, sample};
    use targets::database::Filling;

    const ROWS: TableId = TableId { kind: TableKind::Rows, schema: 0 };

    fn built(data: &DataSet, table: TableId, first: u64, rows: u64) -> Vec<u8> {
        RowBuilder::new(48).build(&RowSource::new(data, table), first, rows).into_inner().to_vec()
    }

    #[test]
    fn a_row_is_the_same_in_whatever_piece_it_is_sent() {
        let data = sample();
        let whole = built(&data, ROWS, 0, 100);
        let row = whole.len() / 100;
        assert_eq!(built(&data, ROWS, 60, 40), whole[60 * row..]);
        let mut builder = RowBuilder::new(48);
        let source = RowSource::new(&data, ROWS);
        for first in (0..100).step_by(10) {
            assert_eq!(builder.build(&source, first, 10).into_inner()[..], whole[first as usize * row..][..10 * row]);
        }
    }

    #[test]
    fn keys_follow_the_permutation_and_in_the_scan_table_their_order() {
        let data = sample();
        let keys = |table| -> Vec<u64> {
            let rows = built(&data, table, 0, 10);
            rows.chunks(rows.len() / 10).map(|row| u64::from_be_bytes(row[6..14].try_into().unwrap())).collect()
        };
        let permutation = data.permutation(1);
        let expected: Vec<u64> = (0..10).map(|place| permutation.invert(place)).collect();
        assert_eq!(keys(TableId { kind: TableKind::Rows, schema: 1 }), expected);
        assert_eq!(keys(TableId { kind: TableKind::Scan, schema: 1 }), (0..10).collect::<Vec<u64>>());
    }

    #[test]
    fn buffers_are_used_again_once_they_have_been_sent() {
        let mut builder = RowBuilder::new(48);
        let (source, rows) = (RowSource::new(&sample(), ROWS), builder.rows_at_once());
        let at = |buffer: &Buffer| buffer.get_ref().as_ptr();
        let first = builder.build(&source, 0, rows);
        let second = builder.build(&source, 0, rows);
        assert_ne!(at(&first), at(&second), "a buffer on its way is left alone");
        let place = at(&first);
        drop(first);
        assert_eq!(at(&builder.build(&source, 0, rows)), place);
    }

    #[test]
    fn incompressible_rows_differ_and_compressible_ones_do_not() {
        let tail = |row: &[u8]| row[14..].to_vec();
        for (filling, differ) in [(Filling::Incompressible, true), (Filling::Compressible, false)] {
            let rows = built(&DataSet { filling, ..sample() }, ROWS, 0, 2);
            let (one, other) = rows.split_at(rows.len() / 2);
            assert_eq!(tail(one) != tail(other), differ);
        }
    }
}
