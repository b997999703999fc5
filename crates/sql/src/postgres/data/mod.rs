//! A SLOB data set in PostgreSQL: making it, proving how it lies, reading all of it, removing it.
//!
//! Everything lies in one schema of the database, which is called the namespace here to tell it from SLOB's schemas, and
//! can be made by an ordinary role. Two tables beside the data say what they are:
//!
//! - `plimsoll_data` has one row, the descriptor, and the state: `loading`, `ready` or `dropping`.
//! - `plimsoll_load` says which rows are there while data are being loaded. Each piece of rows is committed together with
//!   its mark, so after any interruption the same command goes on where it was, and no row comes twice.
//!
//! The functions here are synchronous and drive connections of their own: they must not be called in a tokio runtime.

mod catalog;
mod descriptor;
pub(crate) mod info;
mod orders;
pub(crate) mod proof;
mod session;
mod setup;
pub mod shape;
mod verify;

use std::error::Error as StdError;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::json;
use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type};

use super::cluster::{Binaries, facts_of};
use super::executor::{Executor, Failure, Prepared, Row};
use super::{Connector, Executing, LocalServer, MonitorRequest, PostgresServers};
use crate::data::{DataSet, Proven, Shape};
use crate::database::durable::CommitDialect;
use crate::database::{APPLICATION, Dialect, Watched, add_state};
use crate::monitor::SAMPLE_EVERY;
use crate::orders::load::{Argument, End, Gives, OrdersSession, OrdersSetting, Program, Rows, Statement};
use crate::{ServerError, SessionId, SqlServers, SqlSession};
use info::info;
use model::config::postgres::PostgresAddress;
use model::record::TargetFacts;
use model::units::Bytes;
use proof::prove;
use targets::TargetError;
use targets::database::{Method, Sheet};
use targets::orders::OrdersSending;

pub(crate) use session::Access;

impl Dialect for Connector {
    const HOLDER_FIELD: &'static str = "db_schema";
    const LOG: (&'static str, Option<&'static str>) = ("write-ahead log", Some("max_wal_size"));
    // What a server was started with precedes its files, and a role's own settings precede both.
    const UNWAITED: Option<[&'static str; 3]> = Some([
        "synchronous_commit=off",
        "ALTER ROLE CURRENT_USER SET synchronous_commit = off",
        "ALTER ROLE CURRENT_USER RESET synchronous_commit",
    ]);
    const READS_PAST_PAGE_CACHE: bool = false;

    type Programs = Binaries;
    type Servers = PostgresServers;
    type Reader = MonitorRequest;

    fn connector(address: &PostgresAddress, per_node: bool, _: Method) -> Result<Self, TargetError> {
        let connector = Self::new(address, APPLICATION)?;
        Ok(if per_node { connector } else { connector.single()? })
    }

    fn remarks(&self) -> Vec<String> {
        self.notes().to_vec()
    }

    fn facts(&self) -> Result<TargetFacts, TargetError> {
        Ok(facts_of(self, 0)?)
    }

    fn info(access: &Access<'_>) -> Result<Sheet, TargetError> {
        let info = info(access)?;
        let mut sheet = Sheet::of(json!(info));
        sheet.add("server", format!("{}, PostgreSQL {}", info.node, info.server_version));
        sheet.add("database", format!("{}, schema {}, role {}", info.database, info.namespace, info.role));
        add_state(&mut sheet, &info.descriptor, info.stage, info.in_use_by.as_deref());
        let (bytes, index_bytes) = (Bytes(info.bytes), Bytes(info.index_bytes));
        sheet.add("tables", format!("{}, {bytes} and {index_bytes} of indexes", info.tables.len()));
        sheet.add("checksums", if info.data_checksums { "on" } else { "off" });
        for right in &info.missing {
            sheet.add("missing", format!("{}: {}; {}", right.name, right.gives, right.cure));
        }
        Ok(sheet)
    }

    fn prove(access: &Access<'_>, data: &DataSet, schemas: u32) -> Result<Proven, TargetError> {
        let proof = prove(access, data, schemas)?;
        Ok(Proven { facts: proof.facts(), notes: proof.notes })
    }

    fn reader(&self, watched: &Watched<'_>) -> MonitorRequest {
        let local = watched
            .process
            .clone()
            .map(|(postmaster_pid, data)| LocalServer { postmaster_pid, data_directory: Some(data) });
        MonitorRequest {
            connector: self.clone(),
            schema: watched.namespace.to_owned(),
            schemas: watched.schemas,
            block_bytes: watched.block_bytes,
            application: APPLICATION.to_owned(),
            local: vec![local; self.nodes().len()],
            sample_every: SAMPLE_EVERY,
        }
    }

    fn servers(&self, namespace: &str, data: &DataSet) -> PostgresServers {
        PostgresServers::new(self.clone(), data.sql(namespace))
    }

    fn process(&self) -> Result<Option<(u32, Option<PathBuf>)>, TargetError> {
        let found = LocalServer::find(self, 0)?;
        Ok(found.map(|local| (local.postmaster_pid, local.data_directory)))
    }

    fn shape(access: &Access<'_>, data: &DataSet, schemas: u32) -> Result<Option<Shape>, TargetError> {
        shape::read(access, data, schemas).map(Some)
    }
}

impl CommitDialect for Connector {
    fn change(
        session: &mut session::Session<'_>,
        statement: &str,
        halt: session::Halt<'_>,
    ) -> Result<u64, TargetError> {
        let messages = session.wait("commit", halt, session.client().simple_query(statement))?;
        let changed = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::CommandComplete(rows) => Some(*rows),
            _ => None,
        };
        Ok(messages.iter().filter_map(changed).sum())
    }

    fn identity(session: &mut session::Session<'_>) -> String {
        // A standby has the number of its primary, and once promoted another timeline, which the control file has later.
        let ask = "SELECT system_identifier::text || ' ' || pg_catalog.current_database() \
                   || CASE WHEN pg_catalog.pg_is_in_recovery() THEN ' (a standby)' \
                      ELSE ' ' || pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8) END \
                   FROM pg_catalog.pg_control_system()";
        Self::first_value(session, ask).unwrap_or_default()
    }

    fn started_s(session: &mut session::Session<'_>) -> Option<u64> {
        let ask = "SELECT EXTRACT(EPOCH FROM pg_catalog.pg_postmaster_start_time())::bigint::text";
        Self::first_value(session, ask)?.parse().ok()
    }
}

/// PostgreSQL servers with the data of order entry.
#[derive(Debug)]
pub struct PostgresOrders(Arc<Shared>);

/// What the sessions of a run have in common.
#[derive(Debug)]
struct Shared {
    connector: Connector,
    schema: String,
    setting: OrdersSetting,
    /// What begins a transaction.
    begin: String,
    /// What has transactions inside procedures begin so.
    of_calls: Option<String>,
    /// Each statement as it is sent unprepared, once any session has prepared it.
    known: [OnceLock<Prepared>; Statement::ALL.len()],
}

impl PostgresOrders {
    /// The servers that `connector` leads to, with data in the schema of this name.
    pub fn new(connector: Connector, schema: &str, setting: OrdersSetting) -> Self {
        let level = setting.isolation.as_ref().map(|level| format!(" ISOLATION LEVEL {level}"));
        let of_calls = level.as_ref().filter(|_| setting.rules.sending == OrdersSending::Procedure);
        let of_calls = of_calls.map(|level| format!("SET SESSION CHARACTERISTICS AS TRANSACTION{level}"));
        let begin = format!("BEGIN{}", level.unwrap_or_default());
        Self(Arc::new(Shared {
            connector,
            schema: schema.to_owned(),
            setting,
            begin,
            of_calls,
            known: [const { OnceLock::new() }; Statement::ALL.len()],
        }))
    }
}

impl SqlServers for PostgresOrders {
    type Session = Session;

    async fn open_session(&self, node: usize) -> Result<Session, ServerError> {
        let executing = Executing::on(self.0.connector.connect(node).await?).await;
        if let Some(setting) = &self.0.of_calls {
            let set = executing.executor.lock().await.execute_text(setting).await;
            set.map_err(|failure| executing.error("prepare a session", failure))?;
        }
        Ok(Session {
            shared: Arc::clone(&self.0),
            executing,
            prepared: [const { OnceLock::new() }; Statement::ALL.len()],
            begins: AtomicBool::new(false),
            preparing: AtomicU64::new(0),
        })
    }

    async fn at_work(&self, node: usize, sessions: Vec<SessionId>) -> Option<Vec<SessionId>> {
        super::session::active(&self.0.connector, node, sessions).await
    }
}

/// One session.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
    executing: Executing,
    prepared: [OnceLock<Prepared>; Statement::ALL.len()],
    /// The next statement begins a transaction.
    begins: AtomicBool,
    /// Round trips in which statements were prepared, since somebody asked.
    preparing: AtomicU64,
}

impl Session {
    /// A statement, prepared if it is not yet.
    async fn statement(&self, wanted: Statement, executor: &mut Executor) -> Result<&Prepared, Failure> {
        let place = &self.prepared[wanted.index()];
        if let Some(prepared) = place.get() {
            return Ok(prepared);
        }
        self.preparing.fetch_add(1, Ordering::Relaxed);
        let text = wanted.text::<Connector>(&self.shared.schema);
        let prepared = executor.prepare(&text).await?;
        if self.shared.setting.rules.reconnect.is_each() {
            let _ = self.shared.known[wanted.index()].set(prepared.unprepared(text));
        }
        Ok(place.get_or_init(|| prepared))
    }

    /// A statement that is sent as text each time, as nothing is gained by preparing it in a connection for one transaction. The
    /// types of its values must be known from a session that prepared it.
    fn sent_unprepared(&self, statement: Statement) -> Option<&Prepared> {
        let known = || self.shared.known[statement.index()].get();
        self.shared.setting.rules.reconnect.is_each().then(known)?
    }

    /// Has a statement executed, and gives how many rows it returned or changed. Where it begins a transaction, both are sent at
    /// once, as drivers of applications do.
    async fn executed(
        &self,
        statement: Statement,
        values: &[Argument<'_>],
        row: impl FnMut(Row<'_>),
    ) -> Result<u64, ServerError> {
        let work = async {
            let mut executor = self.executing.executor.lock().await;
            let prepared = match self.sent_unprepared(statement) {
                Some(unprepared) => unprepared,
                None => self.statement(statement, &mut executor).await?,
            };
            if self.begins.swap(false, Ordering::Relaxed) {
                executor.send_before(&self.shared.begin)?;
            }
            executor.execute(prepared, &references(values)[..values.len()], row).await
        };
        work.await.map_err(|failure| self.executing.error(DOING, failure))
    }
}

/// What sessions do, as an error says it.
const DOING: &str = "do a transaction";
/// Values of a statement, at most.
const MAX_VALUES: usize = Program::MAX_PARAMETERS;

/// Values as the client takes them; those that are not there are of no matter.
fn references<'a>(values: &'a [Argument<'a>]) -> [&'a (dyn ToSql + Sync); MAX_VALUES] {
    std::array::from_fn(|place| values.get(place).unwrap_or(&Argument::Int(0)) as &(dyn ToSql + Sync))
}

impl SqlSession for Session {
    fn id(&self) -> SessionId {
        self.executing.server_pid.into()
    }

    async fn cancel(&self) {
        let _ = self.executing.cancel_token().cancel().await;
    }
}

impl OrdersSession for Session {
    async fn begin(&self) -> Result<u64, ServerError> {
        self.begins.store(true, Ordering::Relaxed);
        Ok(0)
    }

    async fn execute(
        &self,
        statement: Statement,
        values: &[Argument<'_>],
        into: &mut Rows,
    ) -> Result<i64, ServerError> {
        if let Gives::Rows(width) = statement.gives() {
            into.begin(width);
        }
        let mut key = None;
        let rows = self.executed(statement, values, |row| match statement.gives() {
            Gives::Key => key = row.whole_numbers().next().flatten(),
            _ => into.push(row.whole_numbers()),
        });
        let rows = rows.await?;
        match statement.gives() {
            Gives::Key => key.ok_or_else(|| {
                let hint = "look whether a trigger or a rule changes the tables".to_owned();
                ServerError::unfit(format!("an insertion into `{}` gave no key", self.shared.schema), Some(hint))
            }),
            _ => Ok(rows as i64),
        }
    }

    async fn end(&self, how: End) -> Result<(), ServerError> {
        // Nothing was sent since it was to begin.
        if self.begins.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let ended = self.executing.executor.lock().await.execute_text(how.sql()).await;
        ended.map_err(|failure| self.executing.error(DOING, failure))
    }

    async fn prepare(&self, statement: Statement) -> Result<(), ServerError> {
        let prepared = self.statement(statement, &mut *self.executing.executor.lock().await).await.map(drop);
        prepared.map_err(|failure| self.executing.error(DOING, failure))
    }

    fn take_preparing(&self) -> u64 {
        self.preparing.swap(0, Ordering::Relaxed)
    }
}

impl ToSql for Argument<'_> {
    fn to_sql(&self, wanted: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match (self, wanted) {
            (Self::Int(number), &Type::INT2) => i16::try_from(*number)?.to_sql(wanted, out),
            (Self::Int(number), &Type::INT4) => i32::try_from(*number)?.to_sql(wanted, out),
            (Self::Int(number), _) => number.to_sql(&Type::INT8, out),
            (Self::Text(text), _) => text.to_sql(&Type::TEXT, out),
        }
    }

    fn accepts(wanted: &Type) -> bool {
        matches!(*wanted, Type::INT2 | Type::INT4 | Type::INT8 | Type::TEXT | Type::VARCHAR | Type::BPCHAR)
    }

    tokio_postgres::types::to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::session::{Halt, Session};
    use super::*;
    use crate::data::catalog::load;
    use crate::data::tests::{self, Tested};
    use crate::data::{DataSet, Stage, drop};
    use crate::postgres::Connector;
    use crate::postgres::test_server::{database, server};
    use model::config::postgres::PostgresAddress;
    use targets::TargetError;
    use targets::database::{Phase, SetupRequest};

    pub(super) use crate::data::tests::{assert_sound, interrupt, refusal, set_up};

    pub(super) const NAMESPACE: &str = "plimsoll";

    pub(super) fn connector(address: &PostgresAddress) -> Connector {
        Connector::new(address, "plimsoll tests").unwrap()
    }

    /// Of the same database, as another role.
    pub(super) fn connector_as(address: &PostgresAddress, role: &str) -> Connector {
        connector(&PostgresAddress { user: Some(role.to_owned()), ..address.clone() })
    }

    pub(super) fn request() -> SetupRequest {
        SetupRequest { schemas: 3, ..tests::request::<Connector>() }
    }

    impl Tested for Connector {
        const PHASES: &'static [Phase] = &[Phase::Create, Phase::Load, Phase::Index, Phase::Vacuum, Phase::Checkpoint];
        const HOSTILE: [&'static str; 3] =
            ["x\"; DROP TABLE data_names.slob_1; --", "it's \\ $procedure$ %s", "Ünï cödé"];
        const CLASHES: &'static [(&'static str, &'static str)] = &[
            ("CREATE TABLE slob_7 (id int)", "slob_7"),
            ("CREATE VIEW scan_1 AS SELECT 1", "scan_1"),
            ("CREATE PROCEDURE slob_batch_2() LANGUAGE sql AS ''", "slob_batch_2"),
            ("CREATE TYPE slob_1 AS (id int)", "slob_1"),
            ("CREATE TABLE plimsoll_data (id int)", "plimsoll_data"),
        ];

        fn place(name: &str) -> Option<Self> {
            Some(connector(&database(name)?))
        }

        fn as_clerk(place: &str, namespace: &str) -> Self {
            let (address, user) = (server().unwrap().address(place), format!("{place}_clerk"));
            let rights = format!(
                "CREATE ROLE {user} LOGIN; GRANT USAGE ON SCHEMA {namespace} TO {user}; \
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {namespace} TO {user}; \
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA {namespace} TO {user}"
            );
            execute(&Access::new(&connector(&address), "public"), &rights);
            connector_as(&address, &user)
        }

        fn inside(access: &Access<'_>, statements: &[&str]) {
            let namespace = if access.namespace.is_empty() { "public" } else { access.namespace };
            execute(&Access { namespace, ..*access }, &statements.join("; "));
        }

        fn kill_sessions(&self) {
            let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                    WHERE datname = current_database() AND pid <> pg_backend_pid()";
            number(&Access::new(self, "public"), kill);
        }
    }

    /// Executes statements in the namespace as the owner of everything.
    pub(super) fn execute(access: &Access<'_>, statements: &str) {
        let session = Session::open(*access).unwrap();
        let path = format!("SET search_path = {}", access.sql(8192).schema());
        session.execute("test", &path, Halt::NEVER).unwrap();
        for statement in statements.split(';') {
            session.execute("test", statement, Halt::NEVER).unwrap();
        }
    }

    pub(super) fn number(access: &Access<'_>, ask: &str) -> i64 {
        Session::open(*access).unwrap().query_one("test", ask, &[]).unwrap().get(0)
    }

    mod dropping {
        use super::*;

        fn drop_all(access: &Access<'_>) -> Result<bool, TargetError> {
            drop::run(drop::plan::<_, DataSet>(access)?, &AtomicBool::new(false))
        }

        #[test]
        fn what_others_put_beside_the_data_stays() {
            let Some(address) = database("data_drop_others") else { return };
            let connector = connector(&address);
            let access = Access::new(&connector, NAMESPACE);
            set_up(&access, &request()).unwrap();
            execute(
                &access,
                "CREATE TABLE slob_99 (id int); CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            );
            assert!(!drop_all(&access).unwrap());
            let left = number(&access, "SELECT count(*) FROM pg_class WHERE relnamespace = 'plimsoll'::regnamespace");
            assert_eq!(left, 1);
            execute(&access, "SELECT mine() FROM slob_99");
        }

        #[test]
        fn tables_that_somebody_depends_on_stay_and_are_reported() {
            let Some(address) = database("data_drop_view") else { return };
            let connector = connector(&address);
            let access = Access::new(&connector, NAMESPACE);
            set_up(&access, &request()).unwrap();
            execute(&access, "CREATE VIEW mine AS SELECT custid FROM slob_2");
            let (what, _) = refusal(drop_all(&access));
            assert!(what.contains("cannot drop the data") && what.contains("2BP01"), "{what}");
            // Half of it is gone; the rest can be dropped once nothing stands against it.
            assert!(refusal(load(&access)).0.contains("half removed"));
            execute(&access, "DROP VIEW mine");
            assert!(drop_all(&access).unwrap());
        }
    }

    mod looking {
        use super::*;

        #[test]
        fn info_tells_what_the_data_are_and_what_the_role_lacks() {
            let Some(address) = database("data_info") else { return };
            let owner = connector(&address);
            execute(
                &Access::new(&owner, "public"),
                "CREATE ROLE info_user LOGIN; GRANT CREATE ON DATABASE data_info TO info_user",
            );
            let connector = connector_as(&address, "info_user");
            let access = Access::new(&connector, NAMESPACE);
            assert!(refusal(info::info(&access)).0.contains("no SLOB data"));
            set_up(&access, &request()).unwrap();
            let info = info::info(&access).unwrap();
            assert_eq!((info.stage, info.in_use_by.as_deref(), info.descriptor.seed), (Stage::Ready, None, 42));
            assert_eq!(info.tables.len(), 6);
            assert_eq!((info.tables[0].estimated_rows, info.tables[0].bytes), (Some(300), 300 * 8192));
            assert_eq!((info.bytes, info.role.as_str()), (960 * 8192, "info_user"));
            let missing: Vec<&str> = info.missing.iter().map(|right| right.name.as_str()).collect();
            assert!(missing.contains(&"pg_read_all_stats") && missing.contains(&"track_io_timing"), "{missing:?}");
            // A superuser lacks no right.
            let all = info::info(&Access::new(&owner, NAMESPACE)).unwrap();
            assert!(all.missing.iter().all(|right| right.name.starts_with("track_")), "{:?}", all.missing);
            serde_json::to_value(&all).unwrap();
        }

        #[test]
        fn a_table_that_grew_is_a_change_of_shape() {
            let Some(address) = database("data_shape") else { return };
            let connector = connector(&address);
            let access = Access::new(&connector, NAMESPACE);
            set_up(&access, &request()).unwrap();
            let data = load(&access).unwrap();
            let before = shape::read(&access, &data, 3).unwrap();
            assert_eq!((before.tables.len(), before.tables[1].pages), (3, 300));
            execute(&access, "UPDATE slob_2 SET c2 = c3");
            assert_eq!(
                shape::read(&access, &data, 3).unwrap().changed_since(&before),
                None,
                "updates stay in their blocks"
            );
            // One transaction that changes rows more often than versions of them fit into a block.
            let session = Session::open(access).unwrap();
            let often = "UPDATE plimsoll.slob_2 SET c2 = c3 WHERE custid < 150;".repeat(12);
            session.execute("test", &often, Halt::NEVER).unwrap();
            let reported = shape::read(&access, &data, 3).unwrap().changed_since(&before).unwrap();
            assert!(reported.starts_with("`slob_2") && reported.contains("grew by"), "{reported}");
        }
    }
}
