//! Loading rows: in pieces, each one array of values that is written past the buffer cache, in one transaction with its mark.

use crate::Connector;
use crate::data::catalog::sql_of;
use crate::data::session::Session;
use crate::driver::{ToDbValue, Value};
use crate::sql::ORDERS;
use ::sql::SqlText as _;
use ::sql::data::pieces::Piece;
use ::sql::data::streams::Stream;
use ::sql::orders::Source;
use model::workload::orders::Table;
use model::workload::orders::rows::Fields;
use model::workload::orders::tables::Kind;
use targets::TargetError;

/// Rows as they are sent, field by field. All values of a column are of one type, which also those have that are unknown.
struct Cells {
    table: Table,
    cells: Vec<Cell>,
}

enum Cell {
    Number(i64),
    NoNumber,
    Text(String),
}

impl Cells {
    fn next_kind(&self) -> Kind {
        let columns = self.table.columns();
        columns[self.cells.len() % columns.len()].kind
    }
}

impl Fields for Cells {
    fn begin_row(&mut self) {}

    fn null(&mut self) {
        // An empty text is none here.
        let is_text = matches!(self.next_kind(), Kind::Text(_));
        self.cells.push(if is_text { Cell::Text(String::new()) } else { Cell::NoNumber });
    }

    fn whole(&mut self, number: i64) {
        self.cells.push(Cell::Number(number));
    }

    fn money(&mut self, cents: i64) {
        self.cells.push(Cell::Number(cents));
    }

    fn text(&mut self, parts: &[&str]) {
        self.cells.push(Cell::Text(parts.concat()));
    }

    fn day(&mut self, days: i32) {
        self.cells.push(Cell::Number(days.into()));
    }

    fn instant(&mut self, micros: i64) {
        self.cells.push(Cell::Number(micros));
    }

    fn end_row(&mut self) {}
}

/// Puts rows into a table: a value for each column. Money comes in hundredths, days and instants as days and microseconds since 1970,
/// so that they mean the same whatever the session's settings of language are. Rows are written behind all others, past the buffer
/// cache; one session at a time does that in a table, and must commit before it does it again (ORA-12838).
pub(crate) fn insert_rows(namespace: &str, table: Table) -> String {
    let value = |(number, kind): (usize, Kind)| match kind {
        Kind::Whole(_) | Kind::Text(_) => format!(":c{number}"),
        Kind::Money(_) => format!(":c{number} / 100"),
        Kind::Day => format!("DATE '1970-01-01' + :c{number}"),
        Kind::Instant => {
            format!("TIMESTAMP '1970-01-01 00:00:00' + NUMTODSINTERVAL(:c{number} / 1000000, 'SECOND')")
        }
    };
    let (names, values): (Vec<&str>, Vec<String>) =
        (1..).zip(table.columns()).map(|(number, column)| (column.name, value((number, column.kind)))).unzip();
    format!(
        "INSERT /*+ APPEND_VALUES */ INTO {} ({}) VALUES ({})",
        Connector::qualified(namespace, table.name()),
        names.join(", "),
        values.join(", ")
    )
}

/// Loads one piece and its mark: both or neither.
pub(super) fn load(
    session: &Session<'_>,
    source: &Source,
    piece: &Piece<Table>,
    progress: &Stream<'_>,
) -> Result<(), TargetError> {
    let Piece { table, first, places, .. } = *piece;
    let access = session.access();
    let name = Connector::qualified(access.namespace, table.name());
    let doing = format!("load rows into {name}");
    let mut cells = Cells { table, cells: Vec::new() };
    let wanted = source.rows.each(table, first..first + places, &mut cells);
    let values: Vec<Value<'_>> = cells
        .cells
        .iter()
        .map(|cell| match cell {
            Cell::Number(number) => Value::Signed(*number),
            Cell::NoNumber => Value::NoNumber,
            Cell::Text(text) => Value::Text(text),
        })
        .collect();
    let values: Vec<&dyn ToDbValue> = values.iter().map(|value| value as &dyn ToDbValue).collect();
    let rows: Vec<&[&dyn ToDbValue]> = values.chunks_exact(table.columns().len()).collect();
    let connected = session.connected()?;
    let loaded = connected.execute_for_each(&doing, &insert_rows(access.namespace, table), &rows)?;
    if loaded != wanted {
        connected.rollback();
        let what = format!("the server took {loaded} of {wanted} rows for {name}");
        return Err(access.unfit(what, "make the data again: `plimsoll orders setup --replace`"));
    }
    let mark: [&dyn ToDbValue; 4] = [&table.name(), &first, &places, &loaded];
    connected.execute(&doing, &sql_of(access, 0).insert_mark(&ORDERS), &mark)?;
    connected.commit(&doing)?;
    progress.done(source.bytes_of_units(table, places));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::workload::orders::Sizes;

    #[test]
    fn each_column_has_values_of_one_type_alone() {
        let source = Source::new(3, Sizes::of(0.001));
        for table in Table::ALL {
            let units = table.units(source.rows.sizes()).min(200);
            let mut cells = Cells { table, cells: Vec::new() };
            let rows = source.rows.each(table, 0..units, &mut cells);
            let width = table.columns().len();
            assert_eq!(cells.cells.len() as u64, rows * width as u64);
            for (at, cell) in cells.cells.iter().enumerate() {
                let column = table.columns()[at % width];
                let is_text = matches!(cell, Cell::Text(_));
                assert_eq!(is_text, matches!(column.kind, Kind::Text(_)), "{}", column.name);
            }
        }
    }

    #[test]
    fn values_are_bound_in_the_order_of_the_columns() {
        let text = insert_rows("S", Table::OrderItems);
        assert!(text.starts_with("INSERT /*+ APPEND_VALUES */ INTO \"S\".order_items (order_id, "), "{text}");
        let bound: Vec<usize> =
            text.split(":c").skip(1).map(|rest| rest.split([',', ' ', ')']).next().unwrap().parse().unwrap()).collect();
        assert_eq!(bound, (1..=Table::OrderItems.columns().len()).collect::<Vec<_>>(), "{text}");
    }
}
