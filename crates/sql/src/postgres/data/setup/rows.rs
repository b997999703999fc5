//! Rows in PostgreSQL's binary form of COPY.

use std::io::Cursor;
use std::iter;
use std::sync::Arc;

use crate::COLUMNS;
use crate::data::rows::RowSource;

/// The signature, flags and the length of an extension: the manual's "Binary Format" of COPY.
pub(in crate::postgres::data) const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What ends the stream: a row of -1 fields.
pub(in crate::postgres::data) const TRAILER: &[u8] = &(-1_i16).to_be_bytes();
/// Bytes sent at once: enough to cost few calls, and little enough to stay in a processor's cache until it is sent.
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes before the first column: the number of fields, and the key with its length.
const KEY_AT: usize = 2 + 4;
const COLUMNS_AT: usize = KEY_AT + 8;
/// Bytes of a column's length.
const LENGTH_BYTES: usize = 4;
/// What is sent.
pub(super) type Buffer = Cursor<Arc<[u8]>>;

/// Builds rows in buffers that are used again as soon as they have been sent.
pub struct RowBuilder {
    column_bytes: usize,
    template: Arc<[u8]>,
    buffers: Vec<Arc<[u8]>>,
}

impl RowBuilder {
    pub(super) fn new(column_bytes: u32) -> Self {
        let column_bytes = column_bytes as usize;
        let row = row_template(column_bytes);
        let rows = (BUFFER_BYTES / row.len()).max(1);
        Self { column_bytes, template: row.repeat(rows).into(), buffers: Vec::new() }
    }

    fn row_bytes(&self) -> usize {
        COLUMNS_AT + COLUMNS as usize * (LENGTH_BYTES + self.column_bytes)
    }

    /// Rows that are sent at once.
    pub(super) fn rows_at_once(&self) -> u64 {
        (self.template.len() / self.row_bytes()) as u64
    }

    /// What a stream begins with.
    pub(super) fn header() -> Buffer {
        Cursor::new(HEADER.into())
    }

    /// What a stream ends with.
    pub(super) fn trailer() -> Buffer {
        Cursor::new(TRAILER.into())
    }

    /// The rows at `rows` places from `first` on; at most [`rows_at_once`](Self::rows_at_once).
    pub(super) fn build(&mut self, source: &RowSource, first: u64, rows: u64) -> Buffer {
        let (row_bytes, column_bytes) = (self.row_bytes(), self.column_bytes);
        let bytes = rows as usize * row_bytes;
        let mut buffer = self.idle_buffer();
        let contents = Arc::get_mut(&mut buffer).expect("an idle buffer is nobody else's");
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
mod tests {
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
