//! PostgreSQL's sessions: connections, and what is prepared on them.

use std::error::Error as StdError;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_postgres::types::{FromSql, Type, accepts};
use tokio_postgres::{Error, Row, Statement};

use super::connect::{Connected, Connector};
use super::error::PostgresError;
use super::sql::Sql;
use crate::targets::sql::{
    ServerTimes, SlobServers, SlobSession, SqlServers, SqlSession, SqlTarget, StatementKind, TimedOperation,
    home_schema,
};
use crate::workload::{OperationKind, SlobOperation};

/// One or several PostgreSQL servers under load.
pub type Postgres = SqlTarget<PostgresServers>;

/// What limits this session's statements in time, in milliseconds and without 0, which is none; and whether it can have its
/// counters reported at once. Both are looked for by name, since versions differ in them.
const ABOUT_THE_SESSION: &str = "SELECT \
    (SELECT min(setting::bigint) FROM pg_catalog.pg_settings \
     WHERE name IN ('statement_timeout', 'transaction_timeout') AND setting <> '0'), \
    EXISTS (SELECT FROM pg_catalog.pg_proc WHERE proname = 'pg_stat_force_next_flush' \
            AND pronamespace = 'pg_catalog'::regnamespace AND has_function_privilege(oid, 'EXECUTE'))";

/// A statement, of which each session prepares its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prepared {
    /// One operation on a schema of SLOB's.
    Operation(StatementKind, u32),
    /// A batch of them.
    Batch(u32),
}

impl Prepared {
    fn text(self, sql: &Sql) -> String {
        match self {
            Self::Operation(StatementKind::Read, schema) => sql.read(schema),
            Self::Operation(StatementKind::Scan, schema) => sql.scan(schema),
            Self::Operation(StatementKind::UpdateLite, schema) => sql.update_lite(schema),
            Self::Operation(StatementKind::UpdateHeavy, schema) => sql.update_heavy(schema),
            Self::Batch(schema) => sql.call_procedure(schema),
        }
    }
}

/// PostgreSQL servers with SLOB's data.
#[derive(Debug)]
pub struct PostgresServers {
    connector: Connector,
    sql: Arc<Sql>,
}

impl PostgresServers {
    /// The servers that `connector` leads to, with these data.
    pub fn new(connector: Connector, sql: Sql) -> Self {
        Self { connector, sql: Arc::new(sql) }
    }
}

impl SqlServers for PostgresServers {
    type Session = Session;
    type Error = PostgresError;

    fn nodes(&self) -> Vec<String> {
        self.connector.nodes().iter().map(ToString::to_string).collect()
    }

    async fn open_session(&self, node: usize) -> Result<Session, PostgresError> {
        let connected = self.connector.connect_session(node).await?;
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
        let sql = Arc::clone(&self.sql);
        Ok(Session { sql, statement_timeout_ms, connected, prepared: Mutex::default(), flush })
    }

    async fn at_work(&self, node: usize, sessions: Vec<i32>) -> Option<Vec<i32>> {
        active(&self.connector, node, sessions).await
    }
}

/// Which of these sessions of server number `node` are executing something; `None` when the server does not say.
pub(super) async fn active(connector: &Connector, node: usize, sessions: Vec<i32>) -> Option<Vec<i32>> {
    let connected = connector.connect(node).await.ok()?;
    let at_work = "SELECT pid FROM pg_catalog.pg_stat_activity WHERE pid = ANY ($1) AND state = 'active'";
    let rows = connected.client.query(at_work, &[&sessions]).await.ok()?;
    rows.iter().map(|row| row.try_get(0).ok()).collect()
}

impl SlobServers for PostgresServers {
    fn namespace(&self) -> String {
        self.sql.schema().to_owned()
    }

    fn table_of(&self, operation: &SlobOperation) -> String {
        match operation.kind {
            OperationKind::Scan => self.sql.scan_table(operation.schema),
            OperationKind::Read | OperationKind::Update => self.sql.table(operation.schema),
        }
    }

    fn column_bytes(&self) -> u32 {
        self.sql.column_bytes()
    }
}

/// One session.
#[derive(Debug)]
pub struct Session {
    sql: Arc<Sql>,
    statement_timeout_ms: Option<u64>,
    connected: Connected,
    prepared: Mutex<Vec<(Prepared, Statement)>>,
    flush: Option<Statement>,
}

impl Session {
    /// A statement, prepared if it is not yet.
    async fn statement(&self, wanted: Prepared) -> Result<Statement, Error> {
        let known = {
            let prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
            prepared.iter().find(|(which, _)| *which == wanted).map(|(_, statement)| statement.clone())
        };
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.connected.client.prepare(&wanted.text(&self.sql)).await?;
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner).push((wanted, statement.clone()));
        Ok(statement)
    }

    async fn count_rows(&self, operation: SlobOperation, filling: &[u8]) -> Result<u64, Error> {
        let kind = StatementKind::of(&operation);
        let statement = self.statement(Prepared::Operation(kind, operation.schema)).await?;
        let client = &self.connected.client;
        let first = operation.first_key as i64;
        let beyond = first + i64::from(operation.keys);
        let row = match kind {
            StatementKind::Read => client.query_one(&statement, &[&first, &beyond]).await?,
            StatementKind::Scan => client.query_one(&statement, &[]).await?,
            StatementKind::UpdateLite | StatementKind::UpdateHeavy => {
                return client.execute(&statement, &[&first, &beyond, &filling]).await;
            }
        };
        row.try_get::<_, i64>(0).map(|rows| rows as u64)
    }
}

impl SqlSession for Session {
    type Error = PostgresError;
    /// Process number of the server's side.
    type Id = i32;

    fn id(&self) -> i32 {
        self.connected.server_pid
    }

    async fn flush_statistics(&self) {
        if let Some(flush) = &self.flush {
            let _ = self.connected.client.execute(flush, &[]).await;
        }
    }

    async fn cancel(&self) {
        let _ = self.connected.cancel_token().cancel().await;
    }
}

impl SlobSession for Session {
    fn statement_timeout_ms(&self) -> Option<u64> {
        self.statement_timeout_ms
    }

    async fn execute(&self, operation: SlobOperation, filling: &[u8]) -> Result<u64, PostgresError> {
        let executed = self.count_rows(operation, filling).await;
        executed.map_err(|error| self.connected.error("execute an operation", &error))
    }

    async fn rehearse(&self, operation: SlobOperation) -> Result<(), PostgresError> {
        let rehearsed = match operation.kind {
            OperationKind::Scan => {
                self.statement(Prepared::Operation(StatementKind::Scan, operation.schema)).await.map(drop)
            }
            OperationKind::Read | OperationKind::Update => {
                self.count_rows(SlobOperation { keys: 0, ..operation }, &[]).await.map(drop)
            }
        };
        rehearsed.map_err(|error| self.connected.error("prepare the operations", &error))
    }

    async fn execute_batch(
        &self,
        operations: &Arc<[SlobOperation]>,
        filling: &[u8],
    ) -> Result<ServerTimes, PostgresError> {
        let executed = async {
            let statement = self.statement(Prepared::Batch(home_schema(operations))).await?;
            let Arrays { kinds, hot, first_keys, keys } = Arrays::of(operations);
            let row =
                self.connected.client.query_one(&statement, &[&kinds, &hot, &first_keys, &keys, &filling]).await?;
            times(&row)
        };
        executed.await.map_err(|error| self.connected.error("execute a batch of operations", &error))
    }
}

/// What the procedure is given of the operations of a batch.
#[derive(Debug, Default)]
struct Arrays {
    kinds: Vec<i16>,
    hot: Vec<bool>,
    first_keys: Vec<i64>,
    keys: Vec<i32>,
}

impl Arrays {
    fn of(operations: &[SlobOperation]) -> Self {
        let home = home_schema(operations);
        let mut arrays = Self::default();
        for operation in operations {
            arrays.kinds.push(StatementKind::of(operation) as i16);
            arrays.hot.push(operation.schema != home);
            arrays.first_keys.push(operation.first_key as i64);
            arrays.keys.push(operation.keys as i32);
        }
        arrays
    }
}

/// A `timestamptz` as it is sent: microseconds since the year 2000.
struct Micros(i64);

impl FromSql<'_> for Micros {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(i64::from_be_bytes(raw.try_into()?)))
    }

    accepts!(TIMESTAMPTZ);
}

/// How the procedure says that an operation had no commit: `-infinity`.
const NO_COMMIT: i64 = i64::MIN;

/// What the procedure gave. Another one than ours may give arrays of different lengths: then no operation is known.
fn times(row: &Row) -> Result<ServerTimes, Error> {
    let Micros(began_us) = row.try_get(0)?;
    let (committing, ended): (Vec<Micros>, Vec<Micros>) = (row.try_get(1)?, row.try_get(2)?);
    let touched: Vec<i64> = row.try_get(3)?;
    let is_whole = committing.len() == ended.len() && ended.len() == touched.len();
    let timed = committing.iter().zip(&ended).zip(&touched).map(|((committing, ended), touched)| TimedOperation {
        committing_us: Some(committing.0).filter(|us| *us != NO_COMMIT),
        ended_us: ended.0,
        touched: u64::try_from(*touched).unwrap_or(0),
    });
    Ok(ServerTimes { began_us, operations: if is_whole { timed.collect() } else { Vec::new() } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::RedoStress;

    #[test]
    fn a_batch_goes_to_its_sessions_home_and_says_which_operations_are_on_the_first_schema() {
        let redo_stress = RedoStress::Heavy;
        let read = |schema| SlobOperation { kind: OperationKind::Read, schema, first_key: 7, keys: 3, redo_stress };
        let update = SlobOperation { kind: OperationKind::Update, ..read(0) };
        let batch = [read(4), update, read(4)];
        let arrays = Arrays::of(&batch);
        assert_eq!((home_schema(&batch), arrays.hot, arrays.kinds), (4, vec![false, true, false], vec![0, 2, 0]));
        assert_eq!((arrays.first_keys, arrays.keys), (vec![7; 3], vec![3; 3]));
        assert_eq!((home_schema(&[read(0), update]), Arrays::of(&[read(0), update]).hot), (0, vec![false; 2]));
    }
}
