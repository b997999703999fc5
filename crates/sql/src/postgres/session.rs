//! PostgreSQL's sessions: connections, and what is prepared on them.

use std::error::Error as StdError;
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio_postgres::types::{FromSql, ToSql, Type, accepts};

use super::Executing;
use super::connect::Connector;
use super::executor::{Executor, Failure, Prepared, Row};
use super::sql::Sql;
use crate::{
    ServerError, ServerTimes, SessionId, SlobSession, SqlServers, SqlSession, SqlTarget, StatementKind, TimedOperation,
    home_schema,
};
use model::workload::{OperationKind, SlobOperation};

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
enum StatementKey {
    /// One operation on a schema of SLOB's.
    Operation(StatementKind, u32),
    /// A batch of them.
    Batch(u32),
}

impl StatementKey {
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

    async fn open_session(&self, node: usize) -> Result<Session, ServerError> {
        let connected = self.connector.connect_session(node).await?;
        let of = |error| connected.error("prepare a session", &error);
        let row = connected.client.query_one(ABOUT_THE_SESSION, &[]).await.map_err(of)?;
        let (timeout_ms, can_flush): (Option<i64>, bool) = (row.get(0), row.get(1));
        let executing = Executing::on(connected).await;
        let of = |failure| executing.error("prepare a session", failure);
        let flush = if can_flush {
            let mut executor = executing.executor.lock().await;
            Some(executor.prepare("SELECT pg_catalog.pg_stat_force_next_flush()").await.map_err(of)?)
        } else {
            None
        };
        let statement_timeout_ms = timeout_ms.and_then(|ms| u64::try_from(ms).ok());
        let sql = Arc::clone(&self.sql);
        Ok(Session { sql, statement_timeout_ms, executing, prepared: Mutex::default(), flush })
    }

    async fn at_work(&self, node: usize, sessions: Vec<SessionId>) -> Option<Vec<SessionId>> {
        active(&self.connector, node, sessions).await
    }
}

/// Which of these sessions of server number `node` are executing something; `None` when the server does not say.
pub(super) async fn active(connector: &Connector, node: usize, sessions: Vec<SessionId>) -> Option<Vec<SessionId>> {
    let connected = connector.connect(node).await.ok()?;
    let at_work = "SELECT pid FROM pg_catalog.pg_stat_activity WHERE pid = ANY ($1) AND state = 'active'";
    let numbers: Vec<i32> = sessions.iter().filter_map(|id| i32::try_from(id.number).ok()).collect();
    let rows = connected.client.query(at_work, &[&numbers]).await.ok()?;
    rows.iter().map(|row| Some(row.try_get::<_, i32>(0).ok()?.into())).collect()
}

/// One session.
#[derive(Debug)]
pub struct Session {
    sql: Arc<Sql>,
    statement_timeout_ms: Option<u64>,
    executing: Executing,
    prepared: Mutex<Vec<(StatementKey, Prepared)>>,
    flush: Option<Prepared>,
}

impl Session {
    /// Executes a statement, prepared if it is not yet; gives how many rows it returned or changed, and what `read` made of the
    /// last.
    async fn executed<T>(
        &self,
        wanted: StatementKey,
        values: &[&(dyn ToSql + Sync)],
        mut read: impl FnMut(Row<'_>) -> Result<T, Failure>,
    ) -> Result<(u64, Option<T>), Failure> {
        let (mut executor, mut prepared) = (self.executing.executor.lock().await, self.prepared.lock().await);
        let statement = self.statement(wanted, &mut executor, &mut prepared).await?;
        let mut made = None;
        let rows = executor.execute(statement, values, |row| made = Some(read(row))).await?;
        Ok((rows, made.transpose()?))
    }

    async fn statement<'a>(
        &self,
        wanted: StatementKey,
        executor: &mut Executor,
        prepared: &'a mut Vec<(StatementKey, Prepared)>,
    ) -> Result<&'a Prepared, Failure> {
        let place = match prepared.iter().position(|(which, _)| *which == wanted) {
            Some(place) => place,
            None => {
                prepared.push((wanted, executor.prepare(&wanted.text(&self.sql)).await?));
                prepared.len() - 1
            }
        };
        Ok(&prepared[place].1)
    }

    async fn count_rows(&self, operation: SlobOperation, filling: &[u8]) -> Result<u64, Failure> {
        let kind = StatementKind::of(&operation);
        let wanted = StatementKey::Operation(kind, operation.schema);
        let first = operation.first_key as i64;
        let beyond = first + i64::from(operation.keys);
        let count = |row: Row<'_>| row.get::<i64>(0);
        let (_, counted) = match kind {
            StatementKind::Read => self.executed(wanted, &[&first, &beyond], count).await?,
            StatementKind::Scan => self.executed(wanted, &[], count).await?,
            StatementKind::UpdateLite | StatementKind::UpdateHeavy => {
                return Ok(self.executed(wanted, &[&first, &beyond, &filling], |_| Ok(())).await?.0);
            }
        };
        counted.map(|rows| rows as u64).ok_or(NO_ROW)
    }
}

/// A statement that always returns a row returned none.
const NO_ROW: Failure = Failure::Protocol("no row for a count");

impl SqlSession for Session {
    fn id(&self) -> SessionId {
        self.executing.server_pid.into()
    }

    async fn flush_statistics(&self) {
        if let Some(flush) = &self.flush {
            let _ = self.executing.executor.lock().await.execute(flush, &[], |_| ()).await;
        }
    }

    async fn cancel(&self) {
        let _ = self.executing.cancel_token().cancel().await;
    }
}

impl SlobSession for Session {
    fn statement_timeout_ms(&self) -> Option<u64> {
        self.statement_timeout_ms
    }

    async fn execute(&self, operation: SlobOperation, filling: &[u8]) -> Result<u64, ServerError> {
        let executed = self.count_rows(operation, filling).await;
        executed.map_err(|failure| self.executing.error("execute an operation", failure))
    }

    async fn rehearse(&self, operation: SlobOperation) -> Result<(), ServerError> {
        let rehearsed = match operation.kind {
            OperationKind::Scan => {
                let (mut executor, mut prepared) = (self.executing.executor.lock().await, self.prepared.lock().await);
                let scan = StatementKey::Operation(StatementKind::Scan, operation.schema);
                self.statement(scan, &mut executor, &mut prepared).await.map(drop)
            }
            OperationKind::Read | OperationKind::Update => {
                self.count_rows(SlobOperation { keys: 0, ..operation }, &[]).await.map(drop)
            }
        };
        rehearsed.map_err(|failure| self.executing.error("prepare the operations", failure))
    }

    async fn execute_batch(
        &self,
        operations: &Arc<[SlobOperation]>,
        filling: &[u8],
    ) -> Result<ServerTimes, ServerError> {
        let executed = async {
            let Arrays { kinds, hot, first_keys, keys } = Arrays::of(operations);
            let values: [&(dyn ToSql + Sync); 5] = [&kinds, &hot, &first_keys, &keys, &filling];
            let (_, times) = self.executed(StatementKey::Batch(home_schema(operations)), &values, times).await?;
            times.ok_or(NO_ROW)
        };
        executed.await.map_err(|failure| self.executing.error("execute a batch of operations", failure))
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
fn times(row: Row<'_>) -> Result<ServerTimes, Failure> {
    let Micros(began_us) = row.get(0)?;
    let (committing, ended): (Vec<Micros>, Vec<Micros>) = (row.get(1)?, row.get(2)?);
    let touched: Vec<i64> = row.get(3)?;
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
    use model::workload::RedoStress;

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
