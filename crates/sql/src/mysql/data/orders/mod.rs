//! Order entry in MySQL and MariaDB: tables with their keys are loaded as files or by statements, then get indexes and foreign keys.

mod ddl;
mod load;

use super::catalog::Server;
use super::{Access, Session, proof};
use crate::SqlText as _;
use crate::data::Work;
use crate::data::pieces::Piece;
use crate::data::streams::{Halt, Stream};
use crate::mysql::sql::literal;
use crate::mysql::{Connector, MysqlOrders};
use crate::orders::load::{OrdersSetting, procedure};
use crate::orders::{OrdersData, OrdersDialect, Parts, Sizing, Source, Step};
use model::workload::orders::Table;
use targets::TargetError;

impl OrdersDialect for Connector {
    type Orders = MysqlOrders;
    const SIZING: Sizing = Sizing {
        // Its header, and who changed it.
        row_bytes: 5.0 + 13.0 + 3.0,
        // Rows come in the order of their keys. Pages cannot be left empty.
        fill: 15.0 / 16.0,
        sparse_fill: 15.0 / 16.0,
        // Its header, its key and the key of the row.
        entry_bytes: 5.0 + 8.0 + 8.0,
        index_fill: 15.0 / 16.0,
        keys_are_apart: false,
        sorts_together: true,
        logged_bytes: 40.0,
        logs_indexes: false,
        // The redo log is a circle, about as large by default.
        most_log: 100 << 20,
    };

    fn orders_servers(&self, namespace: &str, setting: OrdersSetting) -> MysqlOrders {
        MysqlOrders::new(self.clone(), namespace, setting)
    }

    fn parts_there(namespace: &str) -> String {
        ddl::parts_there(namespace)
    }

    fn procedures_there(namespace: &str) -> String {
        let reference = "CONCAT('`', REPLACE(routine_schema, '`', '``'), '`.`', routine_name, '`')";
        format!(
            "SELECT routine_name, {reference}, routine_comment FROM information_schema.routines \
             WHERE routine_schema = {} AND routine_name IN ({}) ORDER BY routine_name",
            literal(namespace),
            procedure::names()
        )
    }

    fn parts_of(server: &Server, data: &OrdersData) -> Parts {
        ddl::parts_of(server.keeps_checks, data)
    }

    fn remarks_on(data: &OrdersData) -> Vec<String> {
        ddl::remarks(data)
    }

    fn create_orders_table(namespace: &str, data: &OrdersData, table: Table, forget: String) -> Vec<String> {
        std::iter::once(forget).chain(ddl::create_table(namespace, data, table)).collect()
    }

    fn steps(namespace: &str, data: &OrdersData, there: &Parts) -> Vec<Step> {
        ddl::steps(namespace, data, there)
    }

    fn settle(session: &mut Session<'_>, _: &OrdersData, table: Table, halt: Halt<'_>) -> Result<(), TargetError> {
        let name = Self::qualified(session.access().namespace, table.name());
        proof::analyze(session, &name, halt)
    }

    fn write_out_orders(work: &mut Work<'_, Self, OrdersData>) -> Result<(), TargetError> {
        let namespace = work.access.namespace;
        let names = Table::ALL.into_iter().map(|table| Self::qualified(namespace, table.name())).collect();
        work.write_out(names)
    }

    /// Rows are whole as they are generated: nothing needs to be looked up for them.
    fn open_for_loading_orders<'a>(access: Access<'a>, halt: Halt<'_>) -> Result<Session<'a>, TargetError> {
        let mut session = Session::open(access)?;
        let settings = "SET SESSION unique_checks = 0, foreign_key_checks = 0";
        session.execute("set up a session", settings, halt)?;
        Ok(session)
    }

    fn load_orders(
        session: &mut Session<'_>,
        server: &Server,
        source: &Source,
        piece: &Piece<Table>,
        stream: &Stream<'_>,
    ) -> Result<(), TargetError> {
        load::load(session, source, piece, server.takes_files, stream)
    }

    fn notes_on_loading(server: &Server) -> Vec<String> {
        let no_checks =
            "this version of the server does not keep the rules of columns (CHECK); MySQL does from 8.0.16 on";
        let notes = [(server.takes_files, super::setup::NO_FILES), (server.keeps_checks, no_checks)];
        notes.into_iter().filter(|(is_fine, _)| !is_fine).map(|(_, note)| note.to_owned()).collect()
    }
}
