//! Loading rows by COPY in its binary form.

use std::io::Cursor;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::SinkExt;

use crate::SqlText as _;
use crate::data::pieces::Piece;
use crate::data::streams::Stream;
use crate::orders::descriptor::OrdersData;
use crate::orders::source::Source;
use crate::postgres::Connector;
use crate::postgres::data::catalog;
use crate::postgres::data::session::Session;
use crate::postgres::data::setup::{HEADER, TRAILER};
use crate::postgres::sql::{identifier, literal};
use model::workload::orders::Table;
use model::workload::orders::rows::Fields;
use model::workload::orders::tables::{Column, Kind};
use targets::TargetError;

/// Bytes that are sent at once: enough to cost few calls, and so little that the server still has something to read from its socket
/// (about 200 KiB, written to again when three quarters are read) while the next are made.
const BUFFER_BYTES: u64 = 64 << 10;
/// Room in a buffer beyond that, for units that are longer than the mean.
const SPARE_BYTES: usize = 128 << 10;
/// How long a piece may go on when the load is to end: one that is given up leaves its blocks behind, empty.
const PIECE_PATIENCE: Duration = Duration::from_secs(5);
/// PostgreSQL counts days and microseconds from 2000-01-01 on.
const EPOCH_DAY: i32 = 10_957;
const EPOCH_MICROS: i64 = EPOCH_DAY as i64 * 86_400_000_000;

/// Bytes that are sent, and written anew when nobody has them any more.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// What is sent.
type Buffer = Cursor<Shared>;

/// Writes rows in the binary form of COPY, in buffers that are used again as soon as they have been sent.
#[derive(Default)]
struct Encoder {
    buffers: Vec<Arc<Vec<u8>>>,
}

/// Rows of one table that are being written.
struct Writer<'a> {
    bytes: &'a mut Vec<u8>,
    columns: &'static [Column],
    /// Number of the next field.
    at: usize,
}

impl Encoder {
    /// The rows of these units of a table, and how many they are.
    fn encode(&mut self, source: &Source, table: Table, units: std::ops::Range<u64>) -> (Buffer, u64) {
        // One that has been sent, or a new one.
        let idle = self.buffers.iter().position(|buffer| Arc::strong_count(buffer) == 1);
        let mut buffer = match idle {
            Some(idle) => self.buffers.swap_remove(idle),
            None => Arc::new(Vec::with_capacity(BUFFER_BYTES as usize + SPARE_BYTES)),
        };
        let bytes = Arc::get_mut(&mut buffer).expect("an idle buffer is nobody else's");
        bytes.clear();
        let rows = source.rows.each(table, units, &mut Writer { bytes, columns: table.columns(), at: 0 });
        self.buffers.push(Arc::clone(&buffer));
        (Cursor::new(Shared(buffer)), rows)
    }
}

impl Writer<'_> {
    fn field(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(&(value.len() as i32).to_be_bytes());
        self.bytes.extend_from_slice(value);
        self.at += 1;
    }
}

impl Fields for Writer<'_> {
    fn begin_row(&mut self) {
        self.at = 0;
        self.bytes.extend_from_slice(&(self.columns.len() as i16).to_be_bytes());
    }

    fn null(&mut self) {
        self.at += 1;
        self.bytes.extend_from_slice(&(-1_i32).to_be_bytes());
    }

    fn whole(&mut self, number: i64) {
        match self.columns[self.at].kind {
            Kind::Whole(..=9) => self.field(&(number as i32).to_be_bytes()),
            _ => self.field(&number.to_be_bytes()),
        }
    }

    /// In digits of base 10,000: how many, the power of the first, the sign, how many decimal digits are shown behind the point, and
    /// they themselves without zeros at the ends.
    fn money(&mut self, cents: i64) {
        let (whole, behind) = (cents / 100, (cents % 100 * 100) as u16);
        let groups = [(whole / 100_000_000) as u16, (whole / 10_000 % 10_000) as u16, (whole % 10_000) as u16, behind];
        let first = groups.iter().position(|group| *group != 0).unwrap_or(groups.len());
        let end = groups.iter().rposition(|group| *group != 0).map_or(first, |last| last + 1);
        let mut value = [0; 16];
        let weight = if first == end { 0 } else { 2 - first as i16 };
        value[..2].copy_from_slice(&((end - first) as i16).to_be_bytes());
        value[2..4].copy_from_slice(&weight.to_be_bytes());
        value[6..8].copy_from_slice(&2_i16.to_be_bytes());
        for (place, group) in value[8..].chunks_exact_mut(2).zip(&groups[first..end]) {
            place.copy_from_slice(&group.to_be_bytes());
        }
        self.field(&value[..8 + 2 * (end - first)]);
    }

    fn text(&mut self, parts: &[&str]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.bytes.extend_from_slice(&(length as i32).to_be_bytes());
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part.as_bytes()));
        self.at += 1;
    }

    fn day(&mut self, days: i32) {
        self.field(&(days - EPOCH_DAY).to_be_bytes());
    }

    fn instant(&mut self, micros: i64) {
        self.field(&(micros - EPOCH_MICROS).to_be_bytes());
    }

    fn end_row(&mut self) {}
}

/// Loads one piece and its mark: both or neither.
pub(super) fn load(
    session: &Session<'_>,
    source: &Source,
    piece: &Piece<Table>,
    stream: &Stream<'_>,
) -> Result<(), TargetError> {
    let Piece { table, first, places, .. } = *piece;
    let access = session.access();
    let name = Connector::qualified(access.namespace, table.name());
    let columns: Vec<String> = table.columns().iter().map(|column| identifier(column.name)).collect();
    // Rows of a table that is one piece can be frozen where they are written, so nobody writes its blocks again to do so; a
    // partitioned table's cannot.
    let is_whole = places == table.units(source.rows.sizes()) && table.partitioned_by().is_none();
    let (begin, freeze) =
        if is_whole { (format!("BEGIN; TRUNCATE {name}"), ", FREEZE") } else { ("BEGIN".to_owned(), "") };
    let copy = format!("COPY {name} ({}) FROM STDIN (FORMAT binary{freeze})", columns.join(", "));
    let at_once = (BUFFER_BYTES / source.bytes_of_units(table, 1).max(1)).clamp(1, BUFFER_BYTES / 128);
    session.wait_with_patience(&format!("load rows into {name}"), stream.halt, PIECE_PATIENCE, async {
        let (client, mut encoder) = (session.client(), Encoder::default());
        client.batch_execute(&begin).await?;
        let mut sink = pin!(client.copy_in::<_, Buffer>(&copy).await?);
        sink.feed(Cursor::new(Shared(Arc::new(HEADER.to_vec())))).await?;
        let (mut at, mut rows) = (first, 0);
        while at < first + places {
            let units = at_once.min(first + places - at);
            let (buffer, count) = encoder.encode(source, table, at..at + units);
            sink.feed(buffer).await?;
            at += units;
            rows += count;
            stream.done(source.bytes_of_units(table, units));
        }
        sink.feed(Cursor::new(Shared(Arc::new(TRAILER.to_vec())))).await?;
        sink.finish().await?;
        let mark = format!(
            "INSERT INTO {} VALUES ({}, {first}, {places}, {rows}); COMMIT",
            catalog::load_table::<OrdersData>(access),
            literal(table.name())
        );
        client.batch_execute(&mark).await
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(cents: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        Writer { bytes: &mut bytes, columns: Table::Orders.columns(), at: 5 }.money(cents);
        bytes.split_off(4)
    }

    #[test]
    fn money_is_written_as_the_server_reads_numbers() {
        let numeric = |weight: i16, digits: &[i16]| -> Vec<u8> {
            let head = [digits.len() as i16, weight, 0, 2];
            head.iter().chain(digits).flat_map(|part| part.to_be_bytes()).collect()
        };
        assert_eq!(money(0), numeric(0, &[]));
        assert_eq!(money(5), numeric(-1, &[500]));
        assert_eq!(money(100), numeric(0, &[1]));
        assert_eq!(money(12_345), numeric(0, &[123, 4_500]));
        assert_eq!(money(1_000_000), numeric(1, &[1]));
        assert_eq!(money(123_456_789_012), numeric(2, &[12, 3_456, 7_890, 1_200]));
    }
}
