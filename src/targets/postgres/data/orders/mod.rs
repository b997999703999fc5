//! Order entry in PostgreSQL: tables without keys are loaded by COPY, then indexed, vacuumed and held against what was asked for.

mod copy;
mod ddl;

use std::collections::BTreeMap;

use tokio_postgres::SimpleQueryMessage;

use self::copy::Encoder;
use super::catalog::{self, Server};
use super::session::{Access, Halt, Session};
use super::setup::{open_with, sort_settings};
use crate::targets::database::Phase;
use crate::targets::error::TargetError;
use crate::targets::orders::Indexes;
use crate::targets::postgres::orders::InSchema;
use crate::targets::postgres::sql::literal;
use crate::targets::postgres::{Connector, PostgresOrders};
use crate::targets::sql::data::catalog::NamespaceFacts;
use crate::targets::sql::data::descriptor::Found;
use crate::targets::sql::data::pieces::Piece;
use crate::targets::sql::data::setup::Work;
use crate::targets::sql::data::streams::Stream;
use crate::targets::sql::orders::ddl::{indexes_of, partition_name, qualified};
use crate::targets::sql::orders::descriptor::OrdersData;
use crate::targets::sql::orders::load::OrdersSetting;
use crate::targets::sql::orders::load::procedure::{self, Procedure};
use crate::targets::sql::orders::source::Source;
use crate::targets::sql::orders::{Estimate, OrdersDialect, Parts, Step};
use crate::workload::orders::Table;

/// Memory that each stream sorts with while it builds an index, at most: indexes of order entry are many and narrow.
const SORT_BYTES: u64 = 256 << 20;
/// What a row has besides its values: its header, its line pointer, and what it is rounded up by.
const ROW_BYTES: f64 = 24.0 + 4.0 + 4.0;
/// What an entry of an index has: its header, its line pointer and its key.
const ENTRY_BYTES: f64 = 8.0 + 4.0 + 8.0;
/// How full leaves of an index are built.
const INDEX_FILL: f64 = 0.9;
/// The part of a block that rows of sparse tables take.
const SPARSE_FILL: f64 = 0.1;
/// Most of the log that is kept, as private servers are made.
const MOST_LOG: u64 = 4 << 30;
/// What the log needs for a row besides its values, where many rows of a block are logged together.
const LOGGED_BYTES: f64 = 8.0;

impl OrdersDialect for Connector {
    type OrdersLoader<'a> = (Session<'a>, Encoder);
    type Orders = PostgresOrders;
    const SETTLING: Phase = Phase::Vacuum;

    fn orders_servers(&self, namespace: &str, setting: OrdersSetting) -> PostgresOrders {
        PostgresOrders::new(self.clone(), namespace, setting)
    }

    fn look_for_orders(session: &mut Session<'_>) -> Result<NamespaceFacts<Server, OrdersData>, TargetError> {
        catalog::look(session)
    }

    fn check_place_of_orders(
        access: Access<'_>,
        _: &mut Session<'_>,
        facts: &NamespaceFacts<Server, OrdersData>,
    ) -> Result<(), TargetError> {
        catalog::check_place(access, &facts.server)
    }

    fn orders_objects(session: &mut Session<'_>) -> Result<BTreeMap<String, u64>, TargetError> {
        catalog::objects::<OrdersData>(session)
    }

    fn begin_orders(session: &mut Session<'_>, data: &OrdersData) -> Result<(), TargetError> {
        catalog::begin(session, data)
    }

    fn finish_orders(session: &mut Session<'_>, halt: Halt<'_>) -> Result<(), TargetError> {
        catalog::finish::<OrdersData>(session, halt)
    }

    fn remove_orders(
        session: &mut Session<'_>,
        found: &Found<OrdersData>,
        drops: &[String],
        halt: Halt<'_>,
    ) -> Result<(), TargetError> {
        catalog::remove(session, found, drops, halt)
    }

    fn execute(session: &mut Session<'_>, doing: &str, statement: &str, halt: Halt<'_>) -> Result<(), TargetError> {
        Session::execute(session, doing, statement, halt)
    }

    fn ask(
        session: &mut Session<'_>,
        doing: &str,
        statement: &str,
        halt: Halt<'_>,
    ) -> Result<Vec<Vec<Option<String>>>, TargetError> {
        let messages = session.wait(doing, halt, session.client().simple_query(statement))?;
        let row = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect())
            }
            _ => None,
        };
        Ok(messages.iter().filter_map(row).collect())
    }

    fn parts_there(namespace: &str) -> String {
        ddl::parts_there(namespace)
    }

    fn procedures(namespace: &str) -> Vec<Procedure> {
        Procedure::all(&InSchema(namespace))
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

    fn steps(namespace: &str, data: &OrdersData, there: &Parts) -> Vec<Step> {
        ddl::steps(namespace, data, there)
    }

    fn open_for_building<'a>(access: Access<'a>, halt: Halt<'_>) -> Result<Session<'a>, TargetError> {
        open_with(access, &sort_settings(SORT_BYTES), halt)
    }

    fn settle(session: &mut Session<'_>, data: &OrdersData, table: Table, halt: Halt<'_>) -> Result<(), TargetError> {
        let namespace = session.access().namespace;
        let name = qualified::<Self>(namespace, table.name());
        let doing = format!("vacuum {name}");
        // VACUUM wants to be alone in its message.
        session.execute(&doing, &format!("VACUUM (ANALYZE) {name}"), halt)?;
        let parts = match data.partitions_of(table) {
            Some(partitions) => (0..partitions).map(|number| partition_name(table, number)).collect(),
            None => vec![table.name().to_owned()],
        };
        let reset =
            |name: &String| format!("ALTER TABLE {} RESET (autovacuum_enabled)", qualified::<Self>(namespace, name));
        session.execute(&doing, &parts.iter().map(reset).collect::<Vec<_>>().join("; "), halt)
    }

    fn write_out_orders(work: &mut Work<'_, Self, OrdersData>) -> Result<(), TargetError> {
        work.write_checkpoint()
    }

    fn estimate(data: &OrdersData, source: &Source) -> Estimate {
        let mut estimate = Estimate::default();
        for table in Table::ALL {
            let (rows, values) = (source.rows_of(table), source.bytes_of(table) as f64);
            let fill = if table.is_sparse() { SPARSE_FILL } else { 1.0 };
            estimate.tables += ((values + rows * ROW_BYTES) / fill) as u64;
            estimate.log += (values + rows * LOGGED_BYTES) as u64;
            let keys = usize::from(data.indexes != Indexes::None && table.key().is_some());
            let others = if data.indexes == Indexes::All { indexes_of(table).count() } else { 0 };
            let of_index = (rows * ENTRY_BYTES / INDEX_FILL) as u64;
            estimate.indexes += (keys + others) as u64 * of_index;
            estimate.sorting = estimate.sorting.max(of_index);
        }
        // Indexes are logged block by block; what a checkpoint has made needless is written over.
        estimate.log = (estimate.log + estimate.indexes).min(MOST_LOG);
        estimate
    }

    fn orders_loader<'a>(
        access: Access<'a>,
        _: &Server,
        halt: Halt<'_>,
    ) -> Result<(Session<'a>, Encoder), TargetError> {
        // Losing the last pieces in a crash of the server costs nothing: their marks are lost with them.
        Ok((open_with(access, "SET synchronous_commit = off", halt)?, Encoder::default()))
    }

    fn load_orders(
        (session, encoder): &mut Self::OrdersLoader<'_>,
        source: &Source,
        piece: &Piece<Table>,
        stream: &Stream<'_>,
    ) -> Result<(), TargetError> {
        copy::load(session, encoder, source, piece, stream)
    }
}
