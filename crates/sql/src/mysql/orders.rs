//! Order entry on MySQL's and MariaDB's sessions.

use std::sync::Arc;
use std::{fmt, mem};

use mysql_async::prelude::Queryable;
use mysql_async::{Error, Params, Row, Statement as Prepared, Value};
use tokio::sync::Mutex;

use super::connect::{Connected, Connector};
use crate::ServerError;
use crate::orders::load::{Argument, End, Gives, OrdersSession, OrdersSetting, Rows, Statement};
use crate::{SessionId, SqlServers, SqlSession};

/// What sessions do, as an error says it.
const DOING: &str = "do a transaction";

/// MySQL or MariaDB servers with the data of order entry.
#[derive(Debug)]
pub struct MysqlOrders(Arc<Shared>);

/// What the sessions of a run have in common.
#[derive(Debug)]
struct Shared {
    connector: Connector,
    database: String,
    setting: OrdersSetting,
}

impl MysqlOrders {
    /// The servers that `connector` leads to, with data in the database of this name.
    pub fn new(connector: Connector, database: &str, setting: OrdersSetting) -> Self {
        Self(Arc::new(Shared { connector, database: database.to_owned(), setting }))
    }
}

impl SqlServers for MysqlOrders {
    type Session = Session;

    async fn open_session(&self, node: usize) -> Result<Session, ServerError> {
        let mut connected = self.0.connector.connect(node).await?;
        // Dates are in UTC as set-up wrote them.
        let mut settings = "SET SESSION time_zone = '+00:00', autocommit = 1".to_owned();
        if let Some(level) = &self.0.setting.isolation {
            // Of MySQL and of MariaDB, whose variables differ in name.
            settings = format!("{settings}; SET SESSION TRANSACTION ISOLATION LEVEL {level}");
        }
        for setting in settings.split("; ") {
            let set = connected.conn.query_drop(setting).await;
            set.map_err(|error| connected.error("prepare a session", &error))?;
        }
        let id = connected.conn.id();
        let is_brief = self.0.setting.rules.reconnect.is_each();
        let prepared = vec![None; Statement::ALL.len()];
        let inside = Mutex::new(Inside { connected, prepared, is_brief, preparing: 0 });
        Ok(Session { shared: Arc::clone(&self.0), node, id, inside })
    }

    async fn at_work(&self, node: usize, sessions: Vec<SessionId>) -> Option<Vec<SessionId>> {
        super::session::busy(&self.0.connector, node, sessions).await
    }
}

/// One session.
pub struct Session {
    shared: Arc<Shared>,
    node: usize,
    id: u32,
    /// Asked one thing at a time, so nobody ever waits for it.
    inside: Mutex<Inside>,
}

struct Inside {
    connected: Connected,
    prepared: Vec<Option<Prepared>>,
    /// A connection for one transaction: nothing is gained by preparing in it.
    is_brief: bool,
    /// Round trips in which statements were prepared, since somebody asked.
    preparing: u64,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("node", &self.node).field("id", &self.id).finish_non_exhaustive()
    }
}

impl Inside {
    /// A statement, prepared if it is not yet.
    async fn statement(&mut self, wanted: Statement, database: &str) -> Result<Prepared, Error> {
        if let Some(known) = &self.prepared[wanted.index()] {
            return Ok(known.clone());
        }
        self.preparing += 1;
        let prepared = self.connected.conn.prep(wanted.text::<Connector>(database)).await?;
        self.prepared[wanted.index()] = Some(prepared.clone());
        Ok(prepared)
    }

    /// A statement as text with its values in it, if it is to be sent so.
    fn sent_unprepared(&self, statement: Statement, values: &[Argument<'_>], database: &str) -> Option<String> {
        self.is_brief.then(|| with_values(&statement.text::<Connector>(database), values)).flatten()
    }

    /// Lets `take` see each row. Each is gone before the next is read, so that its memory serves for that: where all are kept, the
    /// allocator costs a tenth of all processor time here.
    async fn each_row(
        &mut self,
        statement: Statement,
        values: &[Argument<'_>],
        database: &str,
        mut take: impl FnMut(&Row) + Send,
    ) -> Result<(), Error> {
        let take = |row: Row| take(&row);
        if let Some(text) = self.sent_unprepared(statement, values, database) {
            return self.connected.conn.query_iter(text).await?.for_each_and_drop(take).await;
        }
        let prepared = self.statement(statement, database).await?;
        self.connected.conn.exec_iter(&prepared, parameters(values)).await?.for_each_and_drop(take).await
    }

    async fn changed(&mut self, statement: Statement, values: &[Argument<'_>], database: &str) -> Result<(), Error> {
        if let Some(text) = self.sent_unprepared(statement, values, database) {
            return self.connected.conn.query_drop(text).await;
        }
        let prepared = self.statement(statement, database).await?;
        self.connected.conn.exec_drop(&prepared, parameters(values)).await
    }
}

fn parameters(values: &[Argument<'_>]) -> Params {
    let value = |value: &Argument<'_>| match value {
        Argument::Int(number) => Value::Int(*number),
        Argument::Text(text) => Value::Bytes(text.as_bytes().to_vec()),
    };
    Params::Positional(values.iter().map(value).collect())
}

/// A statement with its values in the places of their marks; nothing where a value would have to be escaped, which depends on the
/// server's settings.
fn with_values(statement: &str, values: &[Argument<'_>]) -> Option<String> {
    let mut parts = statement.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (value, part) in values.iter().zip(parts) {
        match value {
            Argument::Int(number) => text += &number.to_string(),
            Argument::Text(words) if words.contains(['\'', '\\']) => return None,
            Argument::Text(words) => text += &format!("'{words}'"),
        }
        text += part;
    }
    Some(text)
}

impl Session {
    async fn simply(&self, statement: &str) -> Result<(), ServerError> {
        let mut inside = self.inside.lock().await;
        let done = inside.connected.conn.query_drop(statement).await;
        done.map_err(|error| inside.connected.error(DOING, &error))
    }
}

impl SqlSession for Session {
    fn id(&self) -> SessionId {
        u64::from(self.id).into()
    }

    async fn cancel(&self) {
        if let Ok(mut other) = self.shared.connector.connect(self.node).await {
            let _ = other.kill_query(self.id).await;
        }
    }
}

impl OrdersSession for Session {
    async fn begin(&self) -> Result<u64, ServerError> {
        self.simply("START TRANSACTION").await?;
        Ok(1)
    }

    async fn execute(
        &self,
        statement: Statement,
        values: &[Argument<'_>],
        into: &mut Rows,
    ) -> Result<i64, ServerError> {
        let (mut inside, database) = (self.inside.lock().await, &self.shared.database);
        let done = match statement.gives() {
            Gives::Rows(width) => {
                into.begin(width);
                let take = |row: &Row| into.push((0..width).map(|column| whole(row.as_ref(column))));
                inside.each_row(statement, values, database, take).await
            }
            Gives::Changes | Gives::Key => inside.changed(statement, values, database).await,
        };
        done.map_err(|error| inside.connected.error(DOING, &error))?;
        let conn = &inside.connected.conn;
        match statement.gives() {
            Gives::Rows(_) => Ok(into.len() as i64),
            Gives::Changes => Ok(conn.affected_rows() as i64),
            Gives::Key => conn.last_insert_id().and_then(|key| i64::try_from(key).ok()).ok_or_else(|| {
                let hint = "look whether a trigger changes the tables".to_owned();
                ServerError::unfit(format!("an insertion into `{database}` gave no key"), Some(hint))
            }),
        }
    }

    async fn end(&self, how: End) -> Result<(), ServerError> {
        self.simply(how.sql()).await
    }

    /// The server leaves what a procedure began open where that ended by an error.
    async fn clear(&self) -> Result<u64, ServerError> {
        self.end(End::RollBack).await?;
        Ok(1)
    }

    async fn prepare(&self, statement: Statement) -> Result<(), ServerError> {
        let mut inside = self.inside.lock().await;
        let prepared = inside.statement(statement, &self.shared.database).await.map(drop);
        prepared.map_err(|error| inside.connected.error(DOING, &error))
    }

    fn take_preparing(&self) -> u64 {
        self.inside.try_lock().map_or(0, |mut inside| mem::take(&mut inside.preparing))
    }
}

/// A whole number.
fn whole(value: Option<&Value>) -> Option<i64> {
    match value? {
        Value::Int(number) => Some(*number),
        Value::UInt(number) => i64::try_from(*number).ok(),
        // What was not prepared is answered as text.
        Value::Bytes(digits) => str::from_utf8(digits).ok()?.parse().ok(),
        _ => None,
    }
}
