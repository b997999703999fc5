//! One connection, driven from ordinary code.

use std::time::Duration;

use mysql_async::prelude::{FromRow, Queryable};
use mysql_async::{Conn, Error, FromRowError, Params};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::ServerError;
use crate::data::access;
use crate::data::streams::{CANCEL_PATIENCE, Halt, runtime};
use crate::mysql::error::number;
use crate::mysql::session::WORTH_ANOTHER_ATTEMPT;
use crate::mysql::{Connected, Connector, Sql};
use targets::TargetError;

/// The longest wait for a table's lock that can be set, a year: all work but removal waits for as long as it takes.
pub(super) const NO_LOCK_TIMEOUT_S: u32 = 31_536_000;
/// How often a transaction that works on data is begun before its refusal is reported.
const MAX_ATTEMPTS: u32 = 10;
/// Longest name of a database, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Where a data set is, or is to be.
pub(crate) type Access<'a> = access::Access<'a, Connector>;

impl Access<'_> {
    /// Names and statements, once the size of the server's pages is known.
    pub(super) fn sql(&self, page_bytes: u32) -> Sql {
        Sql::new(self.namespace, page_bytes)
    }
}

/// A connection and the runtime that drives it.
pub struct Session<'a> {
    access: Access<'a>,
    /// Only taken when the session ends.
    connected: Option<Connected>,
    runtime: Runtime,
}

impl<'a> Session<'a> {
    /// Connects for work of any length.
    ///
    /// # Errors
    /// When the server cannot be reached, or no runtime be made.
    pub(super) fn open(access: Access<'a>) -> Result<Self, TargetError> {
        let mut session = Self::connect(access, async |connector, node| connector.connect(node).await)?;
        // Limits of time are for applications. MySQL's views of tables are up to a day old by default.
        let own = if session.is_mariadb() { "max_statement_time = 0" } else { "information_schema_stats_expiry = 0" };
        let settings = format!(
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES', autocommit = 1, lock_wait_timeout = {NO_LOCK_TIMEOUT_S}, \
             wait_timeout = 86400, net_read_timeout = 600, net_write_timeout = 600, {own}"
        );
        session.execute("set up a session", &settings, Halt::NEVER)?;
        Ok(session)
    }

    /// Connects as the sessions of the load do, with their settings.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(super) fn open_as_load(access: Access<'a>) -> Result<Self, TargetError> {
        Self::connect(access, async |connector, node| connector.connect_session(node).await)
    }

    fn connect(
        access: Access<'a>,
        connect: impl AsyncFnOnce(&Connector, usize) -> Result<Connected, ServerError>,
    ) -> Result<Self, TargetError> {
        let name = access.namespace;
        if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || name.ends_with(' ') || name.contains('\0') {
            let what = format!("a database of MySQL cannot be named `{}`", name.escape_debug());
            return Err(access.unfit(what, format!("use a name of 1 to {MAX_NAME_CHARS} characters")));
        }
        let runtime = runtime()?;
        let connected = runtime.block_on(connect(access.connector, access.node))?;
        Ok(Self { access, connected: Some(connected), runtime })
    }

    pub(super) fn access(&self) -> Access<'a> {
        self.access
    }

    pub(super) fn is_mariadb(&self) -> bool {
        self.connected.as_ref().is_some_and(|connected| connected.version.is_mariadb)
    }

    /// Does `work` on the connection. When it should end, work that has begun is given `patience`, and then the server is asked
    /// to cancel the statement; the session is of no use after that.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or what the server says.
    pub(super) fn wait<T>(
        &mut self,
        doing: &str,
        halt: Halt<'_>,
        patience: Duration,
        work: impl AsyncFnOnce(&mut Conn) -> Result<T, Error>,
    ) -> Result<T, TargetError> {
        halt.check()?;
        let Self { access, connected, runtime } = self;
        let connected = connected.as_mut().expect("a session has a connection until it ends");
        let id = connected.conn.id();
        let cancel = async { access.connector.connect(access.node).await.ok()?.kill_query(id).await.ok() };
        let outcome = runtime.block_on(halt.unless_set(patience, work(&mut connected.conn), cancel));
        match outcome {
            None => Err(TargetError::Interrupted),
            Some(done) => done.map_err(|error| connected.error(doing, &error).into()),
        }
    }

    /// Does `work`, a transaction from its first statement to its commit, as [`wait`](Self::wait) does. One that InnoDB ends so
    /// that another can go on, as it may where streams load side by side, is begun again.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), once it was begun [`MAX_ATTEMPTS`] times.
    pub(super) fn transact<T>(
        &mut self,
        doing: &str,
        halt: Halt<'_>,
        patience: Duration,
        work: impl AsyncFn(&mut Conn) -> Result<T, Error>,
    ) -> Result<T, TargetError> {
        let mut attempts = 1;
        loop {
            let outcome = self.wait(doing, halt, patience, async |conn| {
                conn.query_drop("START TRANSACTION").await?;
                let outcome = work(conn).await;
                if let Err(Error::Server(refusal)) = &outcome
                    && WORTH_ANOTHER_ATTEMPT.contains(&refusal.code)
                {
                    // A wait that timed out undoes its statement only.
                    conn.query_drop("ROLLBACK").await?;
                }
                outcome
            });
            match outcome {
                Err(error)
                    if attempts < MAX_ATTEMPTS
                        && ServerError::refusal_in(&error)
                            .is_some_and(|(code, _)| WORTH_ANOTHER_ATTEMPT.contains(&number(code))) =>
                {
                    attempts += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// Executes one statement without values or rows.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub(super) fn execute(&mut self, doing: &str, statement: &str, halt: Halt<'_>) -> Result<(), TargetError> {
        self.wait(doing, halt, Duration::ZERO, async |conn| conn.query_drop(statement).await)
    }

    /// Executes one statement with values, for its rows.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), or that rows have other values than such a statement gives.
    pub(super) fn query<T: FromRow + Send + 'static>(
        &mut self,
        doing: &str,
        statement: &str,
        values: impl Into<Params>,
        halt: Halt<'_>,
    ) -> Result<Vec<T>, TargetError> {
        let values = values.into();
        let rows: Vec<Result<T, FromRowError>> = self.wait(doing, halt, Duration::ZERO, async |conn| match values {
            // Some statements, such as ANALYZE of old versions, cannot be prepared.
            Params::Empty => conn.query_iter(statement).await?.try_collect_and_drop().await,
            values => conn.exec_iter(statement, values).await?.try_collect_and_drop().await,
        })?;
        rows.into_iter().collect::<Result<_, _>>().map_err(|_| {
            let what = format!("cannot {doing} on `{}`: a value is none that can be there", self.access.node_name());
            self.access.unfit(
                what,
                "somebody else may have changed the data; make them again: `plimsoll slob setup --replace`",
            )
        })
    }

    /// As [`query`](Self::query), for the first row of a statement that takes no time.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub(super) fn first<T: FromRow + Send + 'static>(
        &mut self,
        doing: &str,
        statement: &str,
        values: impl Into<Params>,
    ) -> Result<Option<T>, TargetError> {
        Ok(self.query(doing, statement, values, Halt::NEVER)?.into_iter().next())
    }
}

impl Drop for Session<'_> {
    /// Says goodbye, so that the server releases at once what the session held.
    fn drop(&mut self) {
        if let Some(connected) = self.connected.take() {
            let goodbye = async { timeout(CANCEL_PATIENCE, connected.conn.disconnect()).await };
            let _ = self.runtime.block_on(goodbye);
        }
    }
}
