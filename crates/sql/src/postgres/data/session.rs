//! One connection, driven from ordinary code.

use std::time::Duration;

use tokio::runtime::Runtime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::ServerError;
pub(super) use crate::data::streams::Halt;
use crate::data::streams::runtime;
use crate::postgres::sql::Sql;
use crate::postgres::{Connected, Connector, error_of};
use targets::TargetError;

/// Longest name of a schema, in bytes: the server would cut a longer one without an error (`NAMEDATALEN` - 1).
const LONGEST_NAME_BYTES: usize = 63;

/// Settings of a session that works on data for as long as it takes. Those that this server does not have are left out.
///
/// The server's own limits of time are for applications. `client_connection_check_interval` lets the server notice in the
/// middle of a statement that this program was killed. No name is looked for on the search path.
const WORKING_SETTINGS: &[(&str, &str)] = &[
    ("statement_timeout", "0"),
    ("lock_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    ("idle_session_timeout", "0"),
    ("transaction_timeout", "0"),
    ("client_connection_check_interval", "1s"),
    ("search_path", "pg_catalog"),
    ("client_min_messages", "warning"),
    ("default_transaction_read_only", "off"),
];

/// Where a data set is, or is to be.
pub(crate) type Access<'a> = crate::data::Access<'a, Connector>;

impl Access<'_> {
    /// Refuses a name that no schema can have.
    fn check_namespace(&self) -> Result<(), TargetError> {
        let name = self.namespace;
        if (1..=LONGEST_NAME_BYTES).contains(&name.len()) && !name.contains('\0') {
            return Ok(());
        }
        let what = format!("a schema of PostgreSQL cannot be named `{}`", name.escape_debug());
        Err(self.unfit(what, format!("use a name of 1 to {LONGEST_NAME_BYTES} bytes: `--db-schema NAME`")))
    }

    /// Names and statements, once the size of the server's blocks is known.
    pub(super) fn sql(&self, block_bytes: u32) -> Sql {
        Sql::new(self.namespace, block_bytes)
    }
}

/// A connection and the runtime that drives it.
pub struct Session<'a> {
    access: Access<'a>,
    node: String,
    // Before the runtime, which must outlive it.
    connected: Connected,
    runtime: Runtime,
}

impl<'a> Session<'a> {
    /// Connects for work of any length.
    ///
    /// # Errors
    /// When the server cannot be reached, or no runtime be made.
    pub(super) fn open(access: Access<'a>) -> Result<Self, TargetError> {
        let session = Self::connect(access, async |connector, node| connector.connect(node).await)?;
        // Alone and first: looking the others up can take longer than a hasty limit allows.
        session.execute("set up a session", "SET statement_timeout = 0", Halt::NEVER)?;
        let names: Vec<&str> = WORKING_SETTINGS.iter().map(|(name, _)| *name).collect();
        let values: Vec<&str> = WORKING_SETTINGS.iter().map(|(_, value)| *value).collect();
        let set = "SELECT pg_catalog.set_config(s.name, w.value, false) FROM pg_catalog.pg_settings s \
                   JOIN ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[])) w(name, value) \
                   ON s.name = w.name";
        session.query("set up a session", set, &[&names, &values], Halt::NEVER)?;
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
        access.check_namespace()?;
        let runtime = runtime()?;
        let connected = runtime.block_on(connect(access.connector, access.node))?;
        Ok(Self { access, node: access.node_name(), connected, runtime })
    }

    pub(super) fn access(&self) -> Access<'a> {
        self.access
    }

    pub(super) fn client(&self) -> &Client {
        &self.connected.client
    }

    /// Does `work` on the connection. When it should end, the server is asked to break off the statement; the session is
    /// of no use then.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or what the server says.
    pub(super) fn wait<T>(
        &self,
        doing: &str,
        halt: Halt<'_>,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, TargetError> {
        self.wait_with_patience(doing, halt, Duration::ZERO, work)
    }

    /// As [`wait`](Self::wait), but work that has begun is given some time to come to its end when it should end.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub(super) fn wait_with_patience<T>(
        &self,
        doing: &str,
        halt: Halt<'_>,
        patience: Duration,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, TargetError> {
        halt.check()?;
        let reported = |error: tokio_postgres::Error| error_of(&self.node, doing, &error).into();
        let outcome = self.runtime.block_on(halt.unless_set(patience, work, self.cancel()));
        outcome.map_or(Err(TargetError::Interrupted), |done| done.map_err(reported))
    }

    /// Has the server break off what this session does; every role may do that to its own sessions.
    async fn cancel(&self) -> Option<()> {
        let other = self.access.connector.connect(self.access.node).await.ok()?;
        other.client.query("SELECT pg_catalog.pg_cancel_backend($1)", &[&self.connected.server_pid]).await.ok()?;
        Some(())
    }

    /// Executes statements without values or rows. Several form one transaction.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub(super) fn execute(&self, doing: &str, statements: &str, halt: Halt<'_>) -> Result<(), TargetError> {
        self.wait(doing, halt, self.client().batch_execute(statements))
    }

    /// Executes one statement with values, for its rows.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub(super) fn query(
        &self,
        doing: &str,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
        halt: Halt<'_>,
    ) -> Result<Vec<Row>, TargetError> {
        self.wait(doing, halt, self.client().query(statement, values))
    }

    /// As [`query`](Self::query), for a statement that always has one row.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub(super) fn query_one(
        &self,
        doing: &str,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, TargetError> {
        self.wait(doing, Halt::NEVER, self.client().query_one(statement, values))
    }
}
