//! Making a data set: tables of two rows a leaf, loaded as files or by statements, then rebuilt so that no leaf has more.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use mysql_async::Error;
use mysql_async::prelude::Queryable;

use super::catalog::{self, Server, qualified};
use super::{Access, Session, proof};
use crate::data::catalog::{Keeps, LOAD_TABLE, SqlData as _};
use crate::data::pieces::Piece;
use crate::data::setup::{SetUp, Work};
use crate::data::streams::{Halt, Stream};
use crate::data::{DataSet, RowSource, TableId, TableKind, index_name};
use crate::mysql::Connector;
use crate::mysql::sql::{ROWS_OF_A_LEAF, Sql, column_bytes, columns};
use crate::{COLUMNS, ServerError};
use measure::os::start_thread;
use targets::TargetError;
use targets::database::Phase;

/// How full leaves are made: two rows are more than that, and fewer than two InnoDB never puts there.
const FILL_FACTOR: u32 = 10;
/// That of a server whose own nobody knows any more.
const DEFAULT_FILL_FACTOR: u32 = 100;

/// An entry of the index on the keys: its header, key and place.
const INDEX_ENTRY_BYTES: u64 = 24;
/// What the redo log needs for a row in addition to its columns.
const REDO_OVERHEAD_BYTES: u64 = 80;

/// What is said where rows cannot be sent as a file.
pub(super) const NO_FILES: &str =
    "the server takes no rows as a file (`local_infile` is off), so they are sent as statements, which takes longer";

/// How many sessions read pages before an index build comes to them, all builds that go on together.
const READERS: usize = 4;
/// Rows that each of them reads at a time. Few, so that a disk with a head stays about where it is; and many beside the cost
/// of asking for them.
const READ_AHEAD_ROWS: u64 = 128;

impl SetUp for Connector {
    // It numbers pages with 32 bits, and the index on the keys and the pages above the leaves need some of them.
    const MAX_TABLE_BLOCKS: (&'static str, u64) = ("InnoDB", 1 << 31);

    fn column_bytes(block_bytes: u32) -> u32 {
        column_bytes(block_bytes)
    }

    fn estimates(data: &DataSet) -> (u64, u64) {
        let keys = data.scale_blocks * ROWS_OF_A_LEAF * u64::from(data.schemas);
        let row = u64::from(COLUMNS * data.column_bytes) + REDO_OVERHEAD_BYTES;
        (keys * INDEX_ENTRY_BYTES, data.blocks() * ROWS_OF_A_LEAF * row)
    }

    fn load(
        session: &mut Session<'_>,
        server: &Server,
        data: &DataSet,
        piece: &Piece,
        stream: &Stream<'_>,
    ) -> Result<(), TargetError> {
        self::load(session, data, piece, server.takes_files, stream)
    }

    fn make(work: &mut Work<'_, Self>) -> Result<(), TargetError> {
        work.make_tables()?;
        work.load_rows()?;
        if !work.server.takes_files && work.report.bytes_written > 0 {
            work.report.notes.push(NO_FILES.to_owned());
        }
        work.rebuild()?;
        work.build_indexes()?;
        work.make_procedures()?;
        work.analyze()?;
        let sql = work.sql();
        let names = work.data.tables().map(|table| table.qualified_in(&sql)).collect();
        work.write_out(names)
    }
}

impl Work<'_, Connector> {
    fn sql(&self) -> Sql {
        self.access.sql(self.data.block_bytes)
    }

    /// Makes the tables that are not there yet. A table that somebody dropped in between is loaded again.
    fn make_tables(&mut self) -> Result<(), TargetError> {
        let there = <Connector as Keeps<DataSet>>::objects(&mut self.session)?;
        self.phase(Phase::Create, 0, |work, _| {
            let (access, halt, sql) = (work.access, work.halt(), work.sql());
            let marks = qualified(access, LOAD_TABLE);
            let missing: Vec<TableId> = work.data.tables().filter(|table| !there.contains_key(&table.name())).collect();
            for table in missing {
                let forget = format!(
                    "DELETE FROM {marks} WHERE is_scan = {} AND `schema` = {}",
                    table.kind == TableKind::Scan,
                    table.schema
                );
                for statement in [forget, sql.create_table(&table.qualified_in(&sql))] {
                    Connector::execute(&mut work.session, "create the tables", &statement, halt)?;
                }
            }
            Ok(())
        })
    }

    /// Rebuilds the tables with two rows in each leaf. That takes a setting of the whole server, which is put back.
    fn rebuild(&mut self) -> Result<(), TargetError> {
        let access = self.access;
        let marks = qualified(access, LOAD_TABLE);
        let ask = format!("SELECT is_scan, `schema` FROM {marks} WHERE first_place = -1");
        let done: BTreeSet<(bool, u32)> =
            self.session.query("look which tables are rebuilt", &ask, (), Halt::NEVER)?.into_iter().collect();
        let is_done = |table: &TableId| done.contains(&(table.kind == TableKind::Scan, table.schema));
        let tables = self.data.tables().filter(|table| !is_done(table));
        let tables: Vec<(TableId, u64)> = tables.map(|table| (table, self.data.bytes_of(table))).collect();
        if tables.is_empty() {
            return Ok(());
        }
        // Two set-ups on one server would put the setting back under each other's hands.
        let halt = self.halt();
        catalog::lock_fill_factor(&mut self.session, halt)?;
        self.server = <Connector as Keeps<DataSet>>::look(&mut self.session)?.server;
        self.set_fill_factor(FILL_FACTOR)?;
        let sql = self.sql();
        let rebuilt = self.side_by_side(
            Phase::Rebuild,
            &tables,
            |_| Session::open(access),
            |session, table, halt| {
                let name = table.qualified_in(&sql);
                session.execute(&format!("rebuild {name}"), &Sql::rebuild(&name), halt)?;
                let (is_scan, schema) = (table.kind == TableKind::Scan, table.schema);
                let mark = format!("REPLACE INTO {marks} VALUES ({is_scan}, {schema}, -1, 0)");
                session.execute("note a rebuilt table", &mark, halt)
            },
        );
        let usual = if self.server.fill_factor == FILL_FACTOR { DEFAULT_FILL_FACTOR } else { self.server.fill_factor };
        let put_back = self.set_fill_factor(usual);
        catalog::unlock_fill_factor(&mut self.session)?;
        rebuilt.and(put_back)
    }

    fn set_fill_factor(&mut self, percent: u32) -> Result<(), TargetError> {
        let statement = format!("SET GLOBAL innodb_fill_factor = {percent}");
        Connector::execute(&mut self.session, "set how full tables are built", &statement, Halt::NEVER)
    }

    /// After the tables, since the index is to be as full as others are. For it the server reads a table page by page and waits
    /// for each, so others read the same pages before it comes to them.
    fn build_indexes(&mut self) -> Result<(), TargetError> {
        let access = self.access;
        let ask = "SELECT DISTINCT index_name FROM information_schema.statistics WHERE table_schema = ?";
        let there: Vec<String> =
            self.session.query("look which indexes there are", ask, (access.namespace,), Halt::NEVER)?;
        let each = self.data.scale_blocks * u64::from(self.data.block_bytes);
        let missing = (0..self.data.schemas).filter(|schema| !there.contains(&index_name(*schema)));
        let missing: Vec<(u32, u64)> = missing.map(|schema| (schema, each)).collect();
        let sql = self.sql();
        let rows = self.data.scale_blocks * ROWS_OF_A_LEAF;
        // Tables that are worked on side by side wait for each other's pages no more.
        let readers = READERS / missing.len().clamp(1, self.streams as usize);
        self.side_by_side(
            Phase::Index,
            &missing,
            |_| Session::open(access),
            |session, schema, halt| {
                let table = sql.table(schema);
                let (next, ended) = (AtomicU64::new(0), AtomicBool::new(false));
                let until_built = Halt { failed: &ended, ..halt };
                // Whoever cannot read ahead is only missed for its help.
                let read = || drop(read_ahead(access, &table, rows, &next, until_built));
                std::thread::scope(|scope| {
                    for _ in 0..readers {
                        let read = &read;
                        let _ = start_thread(|begun| {
                            std::thread::Builder::new().spawn_scoped(scope, move || {
                                begun.say();
                                read();
                            })
                        });
                    }
                    let doing = format!("build the index of {table}");
                    let built = session.execute(&doing, &sql.create_index(schema), halt);
                    ended.store(true, Ordering::Relaxed);
                    built
                })
            },
        )
    }

    fn make_procedures(&mut self) -> Result<(), TargetError> {
        let (halt, sql) = (self.halt(), self.sql());
        for schema in 0..self.data.schemas {
            let forget = format!("DROP PROCEDURE IF EXISTS {}", sql.procedure(schema));
            for statement in [forget, sql.create_procedure(schema)] {
                Connector::execute(&mut self.session, "create the procedures", &statement, halt)?;
            }
        }
        Ok(())
    }

    /// Has the server count leaves and learn the shape of the indexes.
    fn analyze(&mut self) -> Result<(), TargetError> {
        let tables: Vec<TableId> = self.data.tables().collect();
        self.phase(Phase::Analyze, 0, |work, _| {
            let (sql, halt) = (work.sql(), work.halt());
            for table in &tables {
                proof::analyze(&mut work.session, &table.qualified_in(&sql), halt)?;
            }
            Ok(())
        })
    }
}

impl<D: Sync> Work<'_, Connector, D> {
    /// Writes tables of these names to storage now, where the user may ask for it: else the first run would pay for it.
    pub(super) fn write_out(&mut self, tables: Vec<String>) -> Result<(), TargetError> {
        let mut refused = None;
        self.phase(Phase::Checkpoint, 0, |work, _| {
            let halt = work.halt();
            for name in &tables {
                let flush = format!("FLUSH TABLES {name} FOR EXPORT");
                match work.session.execute("write out a table", &flush, halt) {
                    Ok(()) => work.session.execute("unlock a table", "UNLOCK TABLES", Halt::NEVER)?,
                    Err(error @ TargetError::Database(_))
                        if !matches!(error.database(), Some(ServerError::Lost { .. })) =>
                    {
                        refused = Some(error);
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })?;
        if let Some(refused) = refused {
            self.report.notes.push(format!(
                "the server may still write loaded pages in the background, so wait before a run: {refused}"
            ));
        }
        Ok(())
    }
}

/// Reads the rows of a table, as far as others that count in `next` have not, until it is to end.
fn read_ahead(access: Access<'_>, table: &str, rows: u64, next: &AtomicU64, halt: Halt<'_>) -> Result<(), TargetError> {
    let mut session = Session::open(access)?;
    let read = format!("SELECT COUNT(c2) FROM {table} FORCE INDEX (PRIMARY) WHERE place >= ? AND place < ?");
    loop {
        let first = next.fetch_add(READ_AHEAD_ROWS, Ordering::Relaxed);
        if first >= rows || halt.is_set() {
            return Ok(());
        }
        session.query::<u64>("read ahead", &read, (first, first + READ_AHEAD_ROWS), halt)?;
    }
}

/// Bytes of filling that are sent at once: enough to cost few calls, and less than any server takes in one statement.
const BUFFER_BYTES: u64 = 256 << 10;
/// How long a piece may go on when the load is to end.
const PIECE_PATIENCE: Duration = Duration::from_secs(5);

/// The rows of some leaves of a table, made anew wherever they are needed.
#[derive(Debug, Clone)]
struct Rows {
    source: RowSource,
    column_bytes: usize,
    /// Leaves of the table: the second row of each has a key from here on.
    leaves: u64,
}

impl Rows {
    fn of(data: &DataSet, table: TableId) -> Self {
        let source = RowSource::new(data, table);
        Self { source, column_bytes: data.column_bytes as usize, leaves: data.rows_of(table) }
    }

    /// Calls `row` with place, key and filling of each row of the leaves.
    fn each(&self, leaves: std::ops::Range<u64>, mut row: impl FnMut(u64, u64, &[u8])) {
        let bytes = COLUMNS as usize * self.column_bytes;
        let mut filling: Vec<u8> = b"PLIMSOLL".iter().copied().cycle().take(bytes).collect();
        for leaf in leaves {
            let key = self.source.key(leaf);
            for half in 0..ROWS_OF_A_LEAF {
                let place = leaf * ROWS_OF_A_LEAF + half;
                if let Some(mut numbers) = self.source.numbers(place) {
                    numbers.fill(&mut filling);
                }
                row(place, key + half * self.leaves, &filling);
            }
        }
    }

    /// As LOAD DATA reads them.
    fn text(&self, leaves: std::ops::Range<u64>) -> Vec<u8> {
        let mut text =
            Vec::with_capacity((leaves.end - leaves.start) as usize * 2 * (COLUMNS as usize + 1) * self.column_bytes);
        self.each(leaves, |place, key, filling| {
            text.extend_from_slice(format!("{place}\t{key}").as_bytes());
            for column in filling.chunks_exact(self.column_bytes) {
                text.push(b'\t');
                for &byte in column {
                    if matches!(byte, b'\t' | b'\n' | b'\\') {
                        text.push(b'\\');
                    }
                    text.push(byte);
                }
            }
            text.push(b'\n');
        });
        text
    }

    /// As a statement.
    fn insert(&self, table: &str, leaves: std::ops::Range<u64>) -> String {
        let columns = columns().collect::<Vec<_>>().join(", ");
        let mut statement = format!("INSERT INTO {table} (place, custid, {columns}) VALUES ");
        let mut is_first = true;
        self.each(leaves, |place, key, filling| {
            let comma = if std::mem::take(&mut is_first) { "" } else { ", " };
            let _ = write!(statement, "{comma}({place}, {key}");
            for column in filling.chunks_exact(self.column_bytes) {
                statement.push_str(", x'");
                column.iter().for_each(|byte| {
                    let _ = write!(statement, "{byte:02x}");
                });
                statement.push('\'');
            }
            statement.push(')');
        });
        statement
    }
}

/// Loads one piece and its mark: both or neither. `as_file` says whether the server takes rows as a file.
fn load(
    session: &mut Session<'_>,
    data: &DataSet,
    piece: &Piece,
    as_file: bool,
    progress: &Stream<'_>,
) -> Result<(), TargetError> {
    let Piece { table, first, places, .. } = *piece;
    let name = table.qualified_in(&session.access().sql(data.block_bytes));
    let doing = format!("load rows into {name}");
    let rows = Rows::of(data, table);
    let at_once = (BUFFER_BYTES / (ROWS_OF_A_LEAF * u64::from(COLUMNS * data.column_bytes))).max(1);
    let parts =
        move || (first..first + places).step_by(at_once as usize).map(move |at| at..(at + at_once).min(first + places));
    let mark = format!(
        "INSERT INTO {} VALUES ({}, {}, {first}, {places})",
        qualified(session.access(), LOAD_TABLE),
        table.kind == TableKind::Scan,
        table.schema,
    );
    let loaded: u64 = session.transact(&doing, progress.halt, PIECE_PATIENCE, async |conn| {
        let mut loaded = 0;
        if as_file {
            let rows = rows.clone();
            conn.set_infile_handler(async move {
                let parts: Vec<_> = parts().collect();
                let buffers = stream::iter(parts).map(move |leaves| Ok(rows.text(leaves).into()));
                Ok(buffers.boxed())
            });
            conn.query_drop(Sql::load_data(&name)).await?;
            loaded += conn.affected_rows();
        } else {
            for leaves in parts() {
                conn.query_drop(rows.insert(&name, leaves)).await?;
                loaded += conn.affected_rows();
            }
        }
        // Rows that the server passes over, such as those whose place is taken, are no error of its.
        if loaded == places * ROWS_OF_A_LEAF {
            conn.query_drop(&mark).await?;
            conn.query_drop("COMMIT").await?;
        } else {
            conn.query_drop("ROLLBACK").await?;
        }
        Ok::<_, Error>(loaded)
    })?;
    let wanted = places * ROWS_OF_A_LEAF;
    if loaded == wanted {
        progress.done(places * u64::from(data.block_bytes));
        return Ok(());
    }
    let what = format!("the server took {loaded} of {wanted} rows for {} from place {first} on", table.name());
    Err(session
        .access()
        .unfit(what, "another program has inserted rows. Create the data again: `plimsoll slob setup --replace`"))
}

impl TableId {
    /// Its name, qualified and quoted as MySQL quotes.
    pub(super) fn qualified_in(self, sql: &Sql) -> String {
        sql.qualified(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::sample;

    const ROWS: TableId = TableId { kind: TableKind::Rows, schema: 1 };

    /// What the server makes of a field.
    fn unescaped(field: &[u8]) -> Vec<u8> {
        let mut bytes = field.iter();
        std::iter::from_fn(|| bytes.next().map(|byte| if *byte == b'\\' { *bytes.next().unwrap() } else { *byte }))
            .collect()
    }

    #[test]
    fn every_second_row_has_a_key_that_is_drawn_and_both_share_a_leaf() {
        let data = sample();
        let permutation = data.permutation(1);
        let mut keys = Vec::new();
        Rows::of(&data, ROWS).each(3..5, |place, key, _| keys.push((place, key)));
        let (three, four) = (permutation.invert(3), permutation.invert(4));
        assert_eq!(keys, [(6, three), (7, three + 1000), (8, four), (9, four + 1000)]);
    }

    #[test]
    fn whatever_the_filling_holds_the_server_reads_the_same_bytes() {
        let data = sample();
        let rows = Rows::of(&data, ROWS);
        let text = rows.text(0..200);
        let mut at = 0;
        rows.each(0..200, |place, key, filling| {
            let mut fields = vec![Vec::new()];
            loop {
                match text[at] {
                    b'\n' => break,
                    b'\t' => fields.push(Vec::new()),
                    b'\\' => {
                        fields.last_mut().unwrap().extend_from_slice(&text[at..at + 2]);
                        at += 1;
                    }
                    byte => fields.last_mut().unwrap().push(byte),
                }
                at += 1;
            }
            at += 1;
            assert_eq!(
                (fields[0].as_slice(), fields[1].as_slice()),
                (place.to_string().as_bytes(), key.to_string().as_bytes())
            );
            let read: Vec<u8> = fields[2..].iter().flat_map(|field| unescaped(field)).collect();
            assert_eq!(read, filling);
        });
        assert_eq!(at, text.len());
    }

    #[test]
    fn rows_are_the_same_in_whatever_parts_they_are_sent() {
        let rows = Rows::of(&sample(), ROWS);
        assert_eq!([rows.text(0..7), rows.text(7..30)].concat(), rows.text(0..30));
        assert!(rows.insert("t", 0..1).starts_with("INSERT INTO t (place, custid, c2, "));
    }
}
