//! Loading rows: in pieces, each in one transaction with its mark, as a file that is never on a disk or as statements.

use std::fmt::Write;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use mysql_async::Error;
use mysql_async::prelude::Queryable;

use super::catalog::qualified;
use super::session::Session;
use crate::COLUMNS;
use crate::data::catalog::LOAD_TABLE;
use crate::data::descriptor::{DataSet, TableId, TableKind};
use crate::data::pieces::Piece;
use crate::data::rows::RowSource;
use crate::data::streams::Stream;
use crate::mysql::sql::{ROWS_OF_A_LEAF, Sql, columns};
use targets::TargetError;

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
pub(super) fn load(
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
        .unfit(what, "somebody else has put rows there; make the data anew: `plimsoll slob setup --replace`"))
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
    use crate::data::descriptor::sample;

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
