//! Order entry in PostgreSQL: tables without keys are loaded by COPY, then indexed, vacuumed and held against what was asked for.

mod copy;
mod ddl;

use super::catalog::Server;
use super::session::{Access, Halt, Session};
use super::setup::{open_with, sort_settings};
use crate::SqlText as _;
use crate::data::pieces::Piece;
use crate::data::streams::Stream;
use crate::data::work::Work;
use crate::orders::descriptor::{OrdersData, partition_name};
use crate::orders::load::OrdersSetting;
use crate::orders::load::procedure;
use crate::orders::source::Source;
use crate::orders::{KeyStatements, OrdersDialect, Sizing};
use crate::postgres::sql::literal;
use crate::postgres::{Connector, PostgresOrders};
use model::workload::orders::Table;
use model::workload::orders::tables::{Key, Sequence};
use targets::TargetError;
use targets::database::Phase;
use targets::orders::Indexes;

/// Memory that each stream sorts with while it builds an index, at most: indexes of order entry are many and narrow.
const SORT_BYTES: u64 = 256 << 20;
impl OrdersDialect for Connector {
    type Orders = PostgresOrders;
    const SETTLING: Phase = Phase::Vacuum;
    const LOADS_SPARSE_WHOLE: bool = true;
    const SIZING: Sizing = Sizing {
        // Its header, its line pointer, and what it is rounded up by.
        row_bytes: 24.0 + 4.0 + 4.0,
        fill: 1.0,
        sparse_fill: 0.1,
        // Its header, its line pointer and its key.
        entry_bytes: 8.0 + 4.0 + 8.0,
        index_fill: 0.9,
        keys_are_apart: true,
        sorts_together: false,
        // Many rows of a block are logged together, and indexes block by block.
        logged_bytes: 8.0,
        logs_indexes: true,
        // As private servers are made; what a checkpoint has made needless is written over.
        most_log: 4 << 30,
    };

    fn orders_servers(&self, namespace: &str, setting: OrdersSetting) -> PostgresOrders {
        PostgresOrders::new(self.clone(), namespace, setting)
    }

    fn parts_there(namespace: &str) -> String {
        ddl::parts_there(namespace)
    }

    fn procedures_there(namespace: &str) -> String {
        format!(
            "SELECT p.proname, format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)), \
             obj_description(p.oid, 'pg_proc') FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
             WHERE n.nspname = {} AND p.proname IN ({}) ORDER BY p.proname",
            literal(namespace),
            procedure::names()
        )
    }

    fn remarks_on(data: &OrdersData) -> Vec<String> {
        let is_wide = data.partitions > 0 && data.indexes != Indexes::None;
        let remark =
            "the key of card_details has customer_id in it too: a key has the column that decides on the partition";
        is_wide.then(|| remark.to_owned()).into_iter().collect()
    }

    fn create_orders_table(namespace: &str, data: &OrdersData, table: Table, forget: String) -> Vec<String> {
        let statements = ddl::create_table(namespace, data, table);
        vec![format!("BEGIN; {}; {forget}; COMMIT", statements.join("; "))]
    }

    fn key_statements(namespace: &str, data: &OrdersData, table: Table, key: &Key) -> KeyStatements {
        ddl::key_statements(namespace, data, table, key)
    }

    fn number_rows(namespace: &str, data: &OrdersData, sequence: &Sequence, is_there: bool) -> Vec<String> {
        (!is_there).then(|| ddl::number_rows(namespace, data, sequence)).into_iter().collect()
    }

    fn open_for_building<'a>(access: Access<'a>, halt: Halt<'_>) -> Result<Session<'a>, TargetError> {
        open_with(access, &sort_settings(SORT_BYTES), halt)
    }

    fn settle(session: &mut Session<'_>, data: &OrdersData, table: Table, halt: Halt<'_>) -> Result<(), TargetError> {
        let namespace = session.access().namespace;
        let name = Self::qualified(namespace, table.name());
        let doing = format!("vacuum {name}");
        // VACUUM wants to be alone in its message.
        session.execute(&doing, &format!("VACUUM (ANALYZE) {name}"), halt)?;
        let parts = match data.partitions_of(table) {
            Some(partitions) => (0..partitions).map(|number| partition_name(table, number)).collect(),
            None => vec![table.name().to_owned()],
        };
        let reset =
            |name: &String| format!("ALTER TABLE {} RESET (autovacuum_enabled)", Self::qualified(namespace, name));
        session.execute(&doing, &parts.iter().map(reset).collect::<Vec<_>>().join("; "), halt)
    }

    fn write_out_orders(work: &mut Work<'_, Self, OrdersData>) -> Result<(), TargetError> {
        work.write_checkpoint()
    }

    fn load_orders(
        session: &mut Session<'_>,
        _: &Server,
        source: &Source,
        piece: &Piece<Table>,
        stream: &Stream<'_>,
    ) -> Result<(), TargetError> {
        copy::load(session, source, piece, stream)
    }
}
