//! One session: a connection, and what is prepared on it.

use std::sync::{Mutex, PoisonError};

use tokio_postgres::{Error, Statement};

use super::batch::Arrays;
use super::times::ServerTimes;
use crate::targets::postgres::connect::{CancelToken, Connected, Connector};
use crate::targets::postgres::error::PostgresError;
use crate::targets::postgres::sql::{BatchKind, Sql};
use crate::workload::{OperationKind, RedoStress, SlobOperation};

/// What limits this session's statements in time, in milliseconds and without 0, which is none; and whether it can have its
/// counters reported at once. Both are looked for by name, since versions differ in them.
const ABOUT_THE_SESSION: &str = "SELECT \
    (SELECT min(setting::bigint) FROM pg_catalog.pg_settings \
     WHERE name IN ('statement_timeout', 'transaction_timeout') AND setting <> '0'), \
    EXISTS (SELECT FROM pg_catalog.pg_proc WHERE proname = 'pg_stat_force_next_flush' \
            AND pronamespace = 'pg_catalog'::regnamespace AND has_function_privilege(oid, 'EXECUTE'))";

/// A statement, of which each session prepares its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prepared {
    /// One operation on a schema of SLOB's.
    Operation(BatchKind, u32),
    /// A batch of them.
    Batch(u32),
}

impl Prepared {
    fn text(self, sql: &Sql) -> String {
        match self {
            Self::Operation(BatchKind::Read, schema) => sql.read(schema),
            Self::Operation(BatchKind::Scan, schema) => sql.scan(schema),
            Self::Operation(BatchKind::UpdateLite, schema) => sql.update_lite(schema),
            Self::Operation(BatchKind::UpdateHeavy, schema) => sql.update_heavy(schema),
            Self::Batch(schema) => sql.call_procedure(schema),
        }
    }
}

/// How an operation is called in batches and among prepared statements.
pub(super) fn kind_of(operation: &SlobOperation) -> BatchKind {
    match (operation.kind, operation.redo_stress) {
        (OperationKind::Read, _) => BatchKind::Read,
        (OperationKind::Scan, _) => BatchKind::Scan,
        (OperationKind::Update, RedoStress::Lite) => BatchKind::UpdateLite,
        (OperationKind::Update, RedoStress::Heavy) => BatchKind::UpdateHeavy,
    }
}

/// The first of each sort of operation, by what has to be prepared for them.
pub(super) fn one_of_each(operations: Vec<SlobOperation>) -> Vec<SlobOperation> {
    let mut one_of_each: Vec<SlobOperation> = Vec::new();
    for operation in operations {
        let sort = |operation: &SlobOperation| (kind_of(operation), operation.schema);
        if !one_of_each.iter().any(|known| sort(known) == sort(&operation)) {
            one_of_each.push(operation);
        }
    }
    one_of_each
}

/// One session.
pub(super) struct Session {
    /// Number of its server.
    pub(super) node: usize,
    /// Longest that a statement may take, in milliseconds, where the server limits it.
    pub(super) statement_timeout_ms: Option<u64>,
    connected: Connected,
    prepared: Mutex<Vec<(Prepared, Statement)>>,
    flush: Option<Statement>,
}

impl Session {
    /// Connects a session to a server.
    pub(super) async fn open(connector: &Connector, node: usize) -> Result<Self, PostgresError> {
        let connected = connector.connect_session(node).await?;
        let of = |error| connected.error("prepare a session", &error);
        let row = connected.client.query_one(ABOUT_THE_SESSION, &[]).await.map_err(of)?;
        let (timeout_ms, can_flush): (Option<i64>, bool) = (row.get(0), row.get(1));
        let flush = if can_flush {
            let flush = connected.client.prepare("SELECT pg_catalog.pg_stat_force_next_flush()").await;
            Some(flush.map_err(of)?)
        } else {
            None
        };
        let statement_timeout_ms = timeout_ms.and_then(|ms| u64::try_from(ms).ok());
        Ok(Self { node, statement_timeout_ms, connected, prepared: Mutex::default(), flush })
    }

    /// Process number of the server's side.
    pub(super) fn server_pid(&self) -> i32 {
        self.connected.server_pid
    }

    /// A statement, prepared if it is not yet.
    async fn statement(&self, wanted: Prepared, sql: &Sql) -> Result<Statement, Error> {
        let known = {
            let prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
            prepared.iter().find(|(which, _)| *which == wanted).map(|(_, statement)| statement.clone())
        };
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.connected.client.prepare(&wanted.text(sql)).await?;
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner).push((wanted, statement.clone()));
        Ok(statement)
    }

    /// Executes one operation, `filling` being what an update writes, and says how many rows it touched.
    pub(super) async fn execute(
        &self,
        operation: SlobOperation,
        filling: &[u8],
        sql: &Sql,
    ) -> Result<u64, PostgresError> {
        self.count_rows(operation, filling, sql)
            .await
            .map_err(|error| self.connected.error("execute an operation", &error))
    }

    async fn count_rows(&self, operation: SlobOperation, filling: &[u8], sql: &Sql) -> Result<u64, Error> {
        let kind = kind_of(&operation);
        let statement = self.statement(Prepared::Operation(kind, operation.schema), sql).await?;
        let client = &self.connected.client;
        let first = operation.first_key as i64;
        let beyond = first + i64::from(operation.keys);
        let row = match kind {
            BatchKind::Read => client.query_one(&statement, &[&first, &beyond]).await?,
            BatchKind::Scan => client.query_one(&statement, &[]).await?,
            BatchKind::UpdateLite | BatchKind::UpdateHeavy => {
                return client.execute(&statement, &[&first, &beyond, &filling]).await;
            }
        };
        row.try_get::<_, i64>(0).map(|rows| rows as u64)
    }

    /// Prepares for operations like this one, and executes one that touches nothing if there is such a thing.
    pub(super) async fn rehearse(&self, operation: SlobOperation, sql: &Sql) -> Result<(), PostgresError> {
        let rehearsed = match operation.kind {
            OperationKind::Scan => {
                self.statement(Prepared::Operation(BatchKind::Scan, operation.schema), sql).await.map(drop)
            }
            OperationKind::Read | OperationKind::Update => {
                self.count_rows(SlobOperation { keys: 0, ..operation }, &[], sql).await.map(drop)
            }
        };
        rehearsed.map_err(|error| self.connected.error("prepare the operations", &error))
    }

    /// Has the procedure of a schema execute a batch.
    pub(super) async fn execute_batch(
        &self,
        schema: u32,
        batch: &Arrays,
        sql: &Sql,
    ) -> Result<ServerTimes, PostgresError> {
        let executed = async {
            let statement = self.statement(Prepared::Batch(schema), sql).await?;
            let Arrays { kinds, hot, first_keys, keys, filling } = batch;
            let row = self.connected.client.query_one(&statement, &[kinds, hot, first_keys, keys, filling]).await?;
            ServerTimes::read(&row)
        };
        executed.await.map_err(|error| self.connected.error("execute a batch of operations", &error))
    }

    /// Has the server's counters know at once what this session did; they would otherwise lag by a second. Costs the session
    /// little, and nothing comes of a failure: the next statement would report on it.
    pub(super) async fn flush_statistics(&self) {
        if let Some(flush) = &self.flush {
            let _ = self.connected.client.execute(flush, &[]).await;
        }
    }

    /// What cancels that which the session executes.
    pub(super) fn cancel_token(&self) -> CancelToken {
        self.connected.cancel_token()
    }
}
