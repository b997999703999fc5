//! Loading rows: what is still missing, in pieces, and the streams that send them.

use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::SinkExt;

use super::rows::{Buffer, RowBuilder, RowSource};
use crate::targets::error::TargetError;
use crate::targets::postgres::data::catalog;
use crate::targets::postgres::data::descriptor::{DataSet, TableId, TableKind};
use crate::targets::postgres::data::session::{Halt, Session};
use crate::targets::postgres::data::streams::Stream;
use crate::targets::postgres::sql::Sql;

/// Blocks of a piece, in bytes: a piece takes well under a second, which is what an interruption costs, and far longer
/// than its commit.
const PIECE_BYTES: u64 = 16 << 20;
/// A table is vacuumed each time that so many bytes of it were loaded, or a smaller part of the server's buffers. Its blocks are
/// still in memory and not yet written: an hour later each would be read and written once more, and the log flushed for every
/// few of them.
const MAX_VACUUM_BYTES: u64 = 64 << 20;
/// All streams together fill so small a part of the server's buffers between two vacuums.
const PART_OF_BUFFERS: u64 = 4;
/// A table is vacuumed at most so often: each time the map of all blocks vacuumed before is gone through.
const MAX_VACUUMS: u64 = 64;
/// How long a piece may go on when the load is to end: one that is given up leaves its blocks behind, empty.
const PIECE_PATIENCE: Duration = Duration::from_secs(5);

/// Places of one table that are loaded in one transaction, together with their mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) table: TableId,
    /// First place.
    pub(super) first: u64,
    /// How many.
    pub(super) places: u64,
    /// Whether the table is vacuumed after it.
    pub(super) then_vacuum: bool,
}

/// Places that are loaded already, by table.
pub(super) type Marks = BTreeMap<TableId, Vec<(u64, u64)>>;

/// Reads what has been loaded.
pub(super) fn marks(session: &Session<'_>) -> Result<Marks, TargetError> {
    let table = catalog::load_table(session.access());
    let read = format!("SELECT is_scan, schema, first_place, places FROM {table} ORDER BY 1, 2, 3");
    let rows = session.query("read what has been loaded", &read, &[], Halt::NEVER)?;
    let mut marks = Marks::new();
    for row in &rows {
        let kind = if row.get(0) { TableKind::Scan } else { TableKind::Rows };
        let table = TableId { kind, schema: row.get::<_, i32>(1).unsigned_abs() };
        let (first, places): (i64, i64) = (row.get(2), row.get(3));
        marks.entry(table).or_default().push((first.unsigned_abs(), places.unsigned_abs()));
    }
    Ok(marks)
}

/// Places that are loaded already.
pub(super) fn loaded_places(marks: &Marks) -> u64 {
    marks.values().flatten().map(|(_, places)| places).sum()
}

/// How many bytes of a table are loaded between two vacuums of it, on a server with buffers of this size.
pub(super) fn vacuum_bytes(shared_buffers: u64, streams: u32) -> u64 {
    (shared_buffers / PART_OF_BUFFERS / u64::from(streams.max(1))).clamp(PIECE_BYTES, MAX_VACUUM_BYTES)
}

/// What is missing, cut into pieces. Each table is vacuumed whenever `vacuum_bytes` of it were loaded, or less often.
pub(super) fn missing(data: &DataSet, marks: &Marks, vacuum_bytes: u64) -> Vec<(TableId, VecDeque<Piece>)> {
    let block_bytes = u64::from(data.block_bytes);
    let longest = (PIECE_BYTES / block_bytes).max(1);
    let mut work = Vec::new();
    for table in data.tables() {
        let vacuum_places = (vacuum_bytes / block_bytes).max(data.rows_of(table) / MAX_VACUUMS);
        let mut pieces = VecDeque::new();
        let (mut at, mut since_vacuum) = (0, 0);
        let loaded = marks.get(&table).map_or(&[][..], Vec::as_slice);
        for (first, places) in loaded.iter().copied().chain([(data.rows_of(table), 0)]) {
            while at < first {
                let places = longest.min(first - at);
                since_vacuum += places;
                let then_vacuum = since_vacuum >= vacuum_places;
                pieces.push_back(Piece { table, first: at, places, then_vacuum });
                if then_vacuum {
                    since_vacuum = 0;
                }
                at += places;
            }
            at = first + places;
        }
        if !pieces.is_empty() {
            work.push((table, pieces));
        }
    }
    work
}

/// Hands out pieces so that streams keep to tables of their own as long as there are enough: streams in one table wait
/// for each other whenever it grows, and leave blocks behind that nobody fills.
pub(super) struct Pieces(Mutex<Vec<Share>>);

struct Share {
    table: TableId,
    pieces: VecDeque<Piece>,
    streams: u32,
}

impl Pieces {
    pub(super) fn new(work: Vec<(TableId, VecDeque<Piece>)>) -> Self {
        let shares = work.into_iter().map(|(table, pieces)| Share { table, pieces, streams: 0 });
        Self(Mutex::new(shares.collect()))
    }

    /// The next piece for the stream that has ended `ended`.
    pub(super) fn next(&self, ended: Option<Piece>) -> Option<Piece> {
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = ended.and_then(|ended| shares.iter().position(|share| share.table == ended.table)) {
            if let Some(piece) = shares[at].pieces.pop_front() {
                return Some(piece);
            }
            shares[at].streams -= 1;
        }
        let waiting = shares.iter_mut().filter(|share| !share.pieces.is_empty());
        let share = waiting.min_by_key(|share| (share.streams, std::cmp::Reverse(share.pieces.len())))?;
        share.streams += 1;
        share.pieces.pop_front()
    }
}

/// Loads one piece and its mark: both or neither. Then vacuums the table where that is due.
pub(super) fn load(
    session: &Session<'_>,
    data: &DataSet,
    sql: &Sql,
    piece: &Piece,
    builder: &mut RowBuilder,
    stream: &Stream<'_>,
) -> Result<(), TargetError> {
    let Piece { table, first, places, then_vacuum } = *piece;
    let name = table.qualified(sql);
    let doing = format!("load rows into {name}");
    let source = RowSource::new(data, table);
    let block_bytes = u64::from(data.block_bytes);
    // Rows count as committed for a vacuum once the log says so on storage.
    let durable = if then_vacuum { "SET LOCAL synchronous_commit = local; " } else { "" };
    let mark = format!(
        "{durable}INSERT INTO {} VALUES ({}, {}, {first}, {places}); COMMIT",
        catalog::load_table(session.access()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::postgres::data::descriptor::sample;

    const PIECE: u64 = PIECE_BYTES / 8192;

    fn data(schemas: u32, scale_blocks: u64) -> DataSet {
        DataSet { schemas, scale_blocks, scan_blocks: 0, ..sample() }
    }

    fn rows(schema: u32) -> TableId {
        TableId { kind: TableKind::Rows, schema }
    }

    #[test]
    fn what_is_missing_is_what_no_mark_covers() {
        let data = data(1, 3 * PIECE + 10);
        let places = |marks: &Marks| -> Vec<(u64, u64)> {
            missing(&data, marks, MAX_VACUUM_BYTES)
                .iter()
                .flat_map(|(_, pieces)| pieces)
                .map(|piece| (piece.first, piece.places))
                .collect()
        };
        assert_eq!(places(&Marks::new()), [(0, PIECE), (PIECE, PIECE), (2 * PIECE, PIECE), (3 * PIECE, 10)]);
        // Also marks of pieces of another length.
        let marks = Marks::from([(rows(0), vec![(100, PIECE), (2 * PIECE, PIECE)])]);
        assert_eq!(places(&marks), [(0, 100), (PIECE + 100, PIECE - 100), (3 * PIECE, 10)]);
        assert_eq!(loaded_places(&marks), 2 * PIECE);
        assert_eq!(places(&Marks::from([(rows(0), vec![(0, 3 * PIECE + 10)])])), []);
    }

    #[test]
    fn a_table_is_vacuumed_while_its_blocks_are_in_memory_and_not_too_often() {
        let due = |scale_blocks, vacuum_bytes| -> Vec<usize> {
            let work = missing(&data(1, scale_blocks), &Marks::new(), vacuum_bytes);
            let pieces = work[0].1.iter().enumerate();
            pieces.filter(|(_, piece)| piece.then_vacuum).map(|(place, _)| place).collect()
        };
        assert_eq!(due(10 * PIECE, vacuum_bytes(128 << 20, 1)), [1, 3, 5, 7, 9]);
        assert_eq!(due(10 * PIECE, vacuum_bytes(128 << 20, 2)), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(due(10 * PIECE + 1, vacuum_bytes(8 << 30, 4)), [3, 7]);
        assert_eq!(due(1000 * PIECE, vacuum_bytes(16 << 20, 16)).len(), 62, "each 16th piece");
        assert!(due(PIECE - 1, MAX_VACUUM_BYTES).is_empty());
    }

    #[test]
    fn streams_keep_apart_until_tables_run_out() {
        let pieces = Pieces::new(missing(&data(3, 2 * PIECE), &Marks::new(), MAX_VACUUM_BYTES));
        let take = |ended| pieces.next(ended).map(|piece| (piece, piece.table.schema));
        let (one, a) = take(None).unwrap();
        let (other, b) = take(None).unwrap();
        assert_ne!(a, b);
        let (one, again) = take(Some(one)).unwrap();
        assert_eq!(again, a, "a stream stays with its table");
        let (one, c) = take(Some(one)).unwrap();
        assert_ne!(c, b, "then takes one that nobody works on");
        let (other, _) = take(Some(other)).unwrap();
        let (_, shared) = take(Some(other)).unwrap();
        assert_eq!(shared, c, "and shares one only when no other is left");
        assert_eq!(take(Some(one)), None);
    }
}
