//! Order entry in Oracle: tables without keys are loaded by arrays of rows past the buffer cache, then indexed, and held against what
//! was asked for. Nobody has tried it on a real database: docs/oracle.md says what was done instead.

pub(crate) mod ddl;
pub(crate) mod load;

use super::catalog::{Kept, Server};
use super::session::{Access, Session};
use crate::Connector;
use crate::driver::{Error, Row};
use crate::error::number_in;
use crate::orders::{LEVELS, OracleOrders};
use crate::sql::{self, Need, QUOTAS, WAIT_FOR_TABLES};
use ::sql::ServerError;
use ::sql::data::pieces::Piece;
use ::sql::data::streams::{Halt, Stream};
use ::sql::orders::load::OrdersSetting;
use ::sql::orders::{BuiltIndex, KeyStatements, OrdersData, OrdersDialect, Sizing, Source};
use model::workload::orders::Table;
use model::workload::orders::tables::{Key, Sequence};
use targets::TargetError;

/// What a statement is not allowed to see.
const HIDDEN: [u32; 2] = [942, 1031];
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
        let files = match session.first::<Option<i64>>(doing, ROOM, &[&name, &name], |row| row.get(0)) {
            Ok(room) => room.flatten(),
            Err(error) if number_in(&error).is_some_and(|code| HIDDEN.contains(&code)) => None,
            Err(error) => return Err(error),
        };
        Ok(quota.into_iter().chain(files).min().map(i64::unsigned_abs))
    }
}

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
        load::load(session, source, piece, stream)
    }
}
