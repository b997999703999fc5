//! Order entry in Oracle: tables without keys are loaded by arrays of rows past the buffer cache, then indexed, and held against what
//! was asked for. Nobody has tried it on a real database: docs/workloads/oracle.md says what was done instead.

pub(crate) mod ddl;

use super::catalog::{Kept, Server};
use super::{Access, Session};
use crate::Connector;
use crate::data::catalog::sql_of;
use crate::driver::{Error, Row, ToDbValue, Value};
use crate::error::{NOT_GRANTED, number_in};
use crate::orders::{LEVELS, OracleOrders};
use crate::sql::{self, Need, ORDERS, PRIVILEGES, QUOTAS, WAIT_FOR_TABLES};
use ::sql::data::pieces::Piece;
use ::sql::data::streams::{Halt, Stream};
use ::sql::orders::load::OrdersSetting;
use ::sql::orders::{BuiltIndex, KeyStatements, OrdersData, OrdersDialect, Sizing, Source};
use ::sql::{ServerError, SqlText as _};
use model::workload::orders::Table;
use model::workload::orders::rows::Fields;
use model::workload::orders::tables::{Key, Kind, Sequence};
use targets::TargetError;

/// Bytes that may still be put into a tablespace, `:tablespace_name` and `:of_files` both: those that are free and those by which its
/// files may grow. Wants `dba_free_space` and `dba_data_files`.
pub(crate) const ROOM: &str = "SELECT (SELECT NVL(SUM(f.bytes), 0) FROM dba_free_space f \
    WHERE f.tablespace_name = :tablespace_name) + (SELECT NVL(SUM(GREATEST(d.maxbytes - d.bytes, 0)), 0) FROM dba_data_files d \
    WHERE d.tablespace_name = :of_files) AS room FROM dual";

impl Kept for OrdersData {
    const KIND: sql::Kind = sql::ORDERS;

    fn needs(need: Need) -> bool {
        need != Need::Awr
    }

    fn objects_there() -> String {
        let names = ddl::names();
        format!(
            "{} UNION ALL {} WHERE t.table_name IN ({names}) UNION ALL SELECT LOWER(o.object_name), 0 FROM user_objects o \
             WHERE o.object_type <> 'TABLE' AND o.subobject_name IS NULL AND o.object_name IN ({names})",
            Self::KIND.objects(),
            sql::TABLES
        )
    }

    /// Partitions have no names of their own here.
    fn tables_here(&self) -> Vec<String> {
        Table::ALL.into_iter().map(|table| table.name().to_owned()).collect()
    }

    /// What the user's quota leaves, and what the tablespace has; none of it where it may not be seen.
    fn room(session: &Session<'_>, server: &Server) -> Result<Option<u64>, TargetError> {
        let Some(place) = &server.place else { return Ok(None) };
        let (doing, name) = ("ask how much room there is", place.name.as_str());
        let read = |row: &Row| Ok::<_, Error>((row.get::<i64>(0)?, row.get::<i64>(1)?));
        let quota = session.first(doing, QUOTAS, &[&name], read)?;
        // Less than none is without limit.
        let quota = quota.filter(|(_, most)| *most >= 0).map(|(taken, most)| most.saturating_sub(taken).max(0));
        let quota = match quota {
            Some(_) if is_unlimited(session)? => None,
            quota => quota,
        };
        let files = match session.first::<Option<i64>>(doing, ROOM, &[&name, &name], |row| row.get(0)) {
            Ok(room) => room.flatten(),
            Err(error) if number_in(&error).is_some_and(|code| NOT_GRANTED.contains(&code)) => None,
            Err(error) => return Err(error),
        };
        Ok(quota.into_iter().chain(files).min().map(i64::unsigned_abs))
    }
}

/// Whether no quota counts for the user. Who may not ask is taken for limited.
fn is_unlimited(session: &Session<'_>) -> Result<bool, TargetError> {
    match session.query("list the privileges", PRIVILEGES, &[], |row| row.get::<String>(0)) {
        Ok(privileges) => Ok(privileges.iter().any(|privilege| privilege == "UNLIMITED TABLESPACE")),
        Err(error) if ServerError::refusal_in(&error).is_some() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The release from which on everybody may have the server sleep.
const FIRST_TO_SLEEP: usize = 18;
/// How exactly it sleeps.
const SLEEPS_COARSELY: &str = "the server sleeps pauses inside transactions, in hundredths of a second: each is up \
    to 10 ms off, their mean is exact";

impl OrdersDialect for Connector {
    type Orders = OracleOrders;
    /// An array of them is held in memory on both sides.
    const MAX_PIECE_ROWS: u64 = 30_000;
    const SIZING: Sizing = Sizing {
        // Its header, its place in the block's list, and the lengths of its columns.
        row_bytes: 3.0 + 2.0 + 12.0,
        // A tenth is left free, and the block has a header with 16 places for transactions.
        fill: 0.85,
        sparse_fill: 0.09,
        // Its header, its place in the list, its key and the address of the row.
        entry_bytes: 4.0 + 2.0 + 8.0 + 7.0,
        index_fill: 0.9,
        keys_are_apart: true,
        sorts_together: false,
        // Whole blocks are logged, where the database keeps its redo; and so are indexes.
        logged_bytes: 17.0,
        logs_indexes: true,
        most_log: u64::MAX,
    };

    fn check_isolation(&self, level: &str) -> Result<(), TargetError> {
        if LEVELS.contains(&level) {
            return Ok(());
        }
        let what = format!("Oracle has no isolation level `{}`", level.to_lowercase());
        Err(ServerError::Unfit {
            what,
            hint: Some(
                "ask for `--isolation read-committed`, its own default, or `--isolation serializable`".to_owned(),
            ),
        }
        .into())
    }

    fn check_pauses(access: Access<'_>) -> Result<Option<&'static str>, TargetError> {
        let connected = access.connector.connect(access.node)?;
        if connected.version[0] >= FIRST_TO_SLEEP {
            return Ok(Some(SLEEPS_COARSELY));
        }
        let what = format!(
            "`{}` is Oracle {}, whose procedures cannot pause without a further grant",
            access.node_name(),
            connected.version_text()
        );
        Err(access.unfit(what, "leave `--think-inside` out, or send each statement by itself: `--send statement`"))
    }

    fn orders_servers(&self, namespace: &str, setting: OrdersSetting) -> OracleOrders {
        OracleOrders::new(self.clone(), namespace, setting)
    }

    fn parts_there(_: &str) -> String {
        ddl::parts_there()
    }

    fn procedures_there(namespace: &str) -> String {
        ddl::procedures_there(namespace)
    }

    fn broken_procedures() -> Option<String> {
        Some(ddl::broken_procedures())
    }

    fn storage(data: &OrdersData, table: Table) -> String {
        ddl::storage(data, table)
    }

    fn drop_orders_tables(namespace: &str) -> Vec<String> {
        ddl::drops(namespace)
    }

    fn key_statements(namespace: &str, data: &OrdersData, table: Table, key: &Key) -> KeyStatements {
        ddl::key_statements(namespace, data, table, key)
    }

    fn create_index(namespace: &str, data: &OrdersData, index: &BuiltIndex) -> String {
        ddl::create_index(namespace, data, index)
    }

    fn number_rows(namespace: &str, data: &OrdersData, sequence: &Sequence, is_there: bool) -> Vec<String> {
        ddl::number_rows(namespace, data, sequence, is_there)
    }

    fn open_for_building<'a>(access: Access<'a>, _: Halt<'_>) -> Result<Session<'a>, TargetError> {
        let session = Session::open(access)?;
        session.execute("set up a session", WAIT_FOR_TABLES, &[])?;
        Ok(session)
    }

    fn settle(session: &mut Session<'_>, _: &OrdersData, table: Table, halt: Halt<'_>) -> Result<(), TargetError> {
        let namespace = session.access().namespace;
        session.execute_long("gather statistics", ddl::gather_statistics(namespace, table), halt).map(drop)
    }

    fn load_orders(
        session: &mut Session<'_>,
        _: &Server,
        source: &Source,
        piece: &Piece<Table>,
        stream: &Stream<'_>,
    ) -> Result<(), TargetError> {
        self::load(session, source, piece, stream)
    }
}

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
fn load(
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
