//! Loading rows: in pieces, each one array of values that is written past the buffer cache, in one transaction with its mark.

use super::catalog::{name_of, sql_of};
use super::session::Session;
use crate::driver::ToDbValue;
use crate::sql::{SLOB, Sql, printable};
use ::sql::COLUMNS;
use ::sql::data::pieces::Piece;
use ::sql::data::streams::Stream;
use ::sql::data::{DataSet, RowSource, TableKind};
use targets::TargetError;

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
pub(super) fn load(
    session: &Session<'_>,
    data: &DataSet,
    piece: &Piece,
    progress: &Stream<'_>,
) -> Result<(), TargetError> {
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
pub(super) fn one_row(session: &Session<'_>, sql: &Sql, table: &str) -> Result<(), TargetError> {
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
