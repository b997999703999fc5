//! What is still to be loaded, in pieces, and which stream loads which.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use super::{DataSet, TableId};

/// Blocks of a piece, in bytes: a piece takes well under a second, which is what an interruption costs, and far longer
/// than its commit.
pub(crate) const PIECE_BYTES: u64 = 16 << 20;
/// A table is vacuumed at most so often: each time the map of all blocks vacuumed before is gone through.
const MAX_VACUUMS: u64 = 64;
/// Places of one table that are loaded in one transaction, together with their mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<T = TableId> {
    /// The table.
    pub table: T,
    /// First place.
    pub first: u64,
    /// How many.
    pub places: u64,
    /// Whether the table is vacuumed after it.
    pub then_vacuum: bool,
}

/// Places that are loaded already, by table.
pub type Marks<T = TableId> = BTreeMap<T, Vec<(u64, u64)>>;

/// Places that are loaded already.
pub(crate) fn loaded_places(marks: &Marks) -> u64 {
    marks.values().flatten().map(|(_, places)| places).sum()
}

/// What is missing, cut into pieces. Each table is vacuumed whenever `vacuum_bytes` of it were loaded, or less often.
pub(crate) fn missing(data: &DataSet, marks: &Marks, vacuum_bytes: u64) -> Vec<(TableId, VecDeque<Piece>)> {
    let block_bytes = u64::from(data.block_bytes);
    let longest = (PIECE_BYTES / block_bytes).max(1);
    let mut work = Vec::new();
    for table in data.tables() {
        let vacuum_places = (vacuum_bytes / block_bytes).max(data.rows_of(table) / MAX_VACUUMS);
        let loaded = marks.get(&table).map_or(&[][..], Vec::as_slice);
        let pieces = cut(table, data.rows_of(table), loaded, longest, vacuum_places);
        if !pieces.is_empty() {
            work.push((table, pieces));
        }
    }
    work
}

/// What is missing of the `total` places of a table, in pieces of at most `longest` places.
pub(crate) fn cut<T: Copy>(
    table: T,
    total: u64,
    loaded: &[(u64, u64)],
    longest: u64,
    vacuum_places: u64,
) -> VecDeque<Piece<T>> {
    let mut pieces = VecDeque::new();
    let (mut at, mut since_vacuum) = (0, 0);
    for (first, places) in loaded.iter().copied().chain([(total, 0)]) {
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
    pieces
}

/// Hands out pieces so that streams keep to tables of their own as long as there are enough: streams in one table wait
/// for each other whenever it grows, and leave blocks behind that nobody fills.
pub(crate) struct Pieces<T = TableId>(Mutex<Vec<Share<T>>>);

struct Share<T> {
    table: T,
    pieces: VecDeque<Piece<T>>,
    /// Room that one of them takes, beside those of other tables.
    weight: u64,
    streams: u32,
}

impl<T> Share<T> {
    fn left(&self) -> u64 {
        self.pieces.len() as u64 * self.weight
    }
}

impl<T: Copy + PartialEq> Pieces<T> {
    /// All of the same weight.
    pub(crate) fn new(work: Vec<(T, VecDeque<Piece<T>>)>) -> Self {
        Self::weighed(work.into_iter().map(|(table, pieces)| (table, pieces, 1)))
    }

    /// Each table's pieces with the room that one of them takes: the table of which most is left is begun first, so that no stream is
    /// left alone with it, or has to share it, in the end.
    pub(crate) fn weighed(work: impl IntoIterator<Item = (T, VecDeque<Piece<T>>, u64)>) -> Self {
        let shares = work.into_iter().map(|(table, pieces, weight)| Share { table, pieces, weight, streams: 0 });
        Self(Mutex::new(shares.collect()))
    }

    /// The next piece for the stream that has ended `ended`.
    pub(crate) fn next(&self, ended: Option<Piece<T>>) -> Option<Piece<T>> {
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = ended.and_then(|ended| shares.iter().position(|share| share.table == ended.table)) {
            if let Some(piece) = shares[at].pieces.pop_front() {
                return Some(piece);
            }
            shares[at].streams -= 1;
        }
        let waiting = shares.iter_mut().filter(|share| !share.pieces.is_empty());
        let share = waiting.min_by_key(|share| (share.streams, std::cmp::Reverse(share.left())))?;
        share.streams += 1;
        share.pieces.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::super::TableKind;
    use super::*;
    use crate::data::sample;

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
            missing(&data, marks, 64 << 20)
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
    fn streams_keep_apart_until_tables_run_out() {
        let pieces = Pieces::new(missing(&data(3, 2 * PIECE), &Marks::new(), 64 << 20));
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

    #[test]
    fn the_heaviest_table_is_begun_first_however_few_pieces_it_has() {
        let piece = |table| Piece { table, first: 0, places: 1, then_vacuum: false };
        let pieces =
            Pieces::weighed([("many", vec![piece("many"); 9].into(), 8), ("heavy", [piece("heavy")].into(), 100)]);
        let one = pieces.next(None).unwrap();
        let other = pieces.next(None).unwrap();
        assert_eq!((one.table, other.table), ("heavy", "many"));
        assert_eq!(pieces.next(Some(one)).unwrap().table, "many", "nobody is left alone with the rest");
    }
}
