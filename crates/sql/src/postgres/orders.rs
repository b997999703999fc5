//! Order entry on PostgreSQL's sessions.

use std::error::Error as StdError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio_postgres::types::{IsNull, ToSql, Type, private::BytesMut};

use super::connect::Connector;
use super::executing::Executing;
use super::executor::{Executor, Failure, Prepared, Row};
use crate::ServerError;
use crate::orders::load::{Argument, End, Gives, OrdersSession, OrdersSetting, Program, Rows, Statement};
use crate::{SessionId, SqlServers, SqlSession};
use targets::orders::OrdersSending;

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
