//! MySQL's sessions: connections, and what is prepared on them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mysql_async::prelude::Queryable;
use mysql_async::{Error, Params, Statement, Value};
use tokio::sync::Mutex;

use super::connect::{Connected, Connector};
use super::sql::{Keys, MAX_ATTEMPTS, ROWS_OF_A_LEAF, Sql, TIME_BASE, TIME_PARTS, operation_text};
use crate::ServerError;
use crate::{
    ServerTimes, SessionId, SlobSession, SqlServers, SqlSession, SqlTarget, StatementKind, TimedOperation, home_schema,
};
use model::workload::SlobOperation;

/// One or several MySQL or MariaDB servers under load.
pub type Mysql = SqlTarget<MysqlServers>;

/// Lock wait timeout and deadlock: whoever does the same again may succeed.
pub(super) const WORTH_ANOTHER_ATTEMPT: [u16; 2] = [1205, 1213];

/// MySQL or MariaDB servers with SLOB's data. Clones are the same servers.
#[derive(Debug, Clone)]
pub struct MysqlServers(Arc<Shared>);

/// What the sessions of a run have in common.
#[derive(Debug)]
struct Shared {
    connector: Connector,
    sql: Sql,
    /// Of each server.
    repeated: Vec<AtomicU64>,
}

impl MysqlServers {
    /// The servers that `connector` leads to, with these data.
    pub fn new(connector: Connector, sql: Sql) -> Self {
        let repeated = connector.nodes().iter().map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Shared { connector, sql, repeated }))
    }
}

impl SqlServers for MysqlServers {
    type Session = Session;

    async fn open_session(&self, node: usize) -> Result<Session, ServerError> {
        let mut connected = self.0.connector.connect_session(node).await?;
        // MySQL's own limit binds only single statements that read, so batches need not heed it.
        let statement_timeout_ms = if connected.version.is_mariadb {
            let ask = "SELECT CAST(@@max_statement_time * 1000 AS UNSIGNED)";
            let asked = connected.conn.query_first::<u64, _>(ask).await;
            asked.map_err(|error| connected.error("prepare a session", &error))?.filter(|ms| *ms > 0)
        } else {
            None
        };
        let (id, shared) = (connected.conn.id(), Arc::clone(&self.0));
        let inside = Mutex::new(Inside { connected, prepared: Vec::new() });
        Ok(Session { shared, node, id, statement_timeout_ms, inside })
    }

    fn repeated(&self, node: usize) -> Option<u64> {
        Some(self.0.repeated.get(node)?.load(Ordering::Relaxed))
    }

    async fn at_work(&self, node: usize, sessions: Vec<SessionId>) -> Option<Vec<SessionId>> {
        busy(&self.0.connector, node, sessions).await
    }
}

/// Which of these sessions of server number `node` are executing something; `None` when the server does not say.
pub(super) async fn busy(connector: &Connector, node: usize, sessions: Vec<SessionId>) -> Option<Vec<SessionId>> {
    let mut connected = connector.connect(node).await.ok()?;
    let at_work = "SELECT id FROM information_schema.processlist WHERE command <> 'Sleep'";
    let busy: Vec<u64> = connected.conn.query(at_work).await.ok()?;
    Some(sessions.into_iter().filter(|id| busy.contains(&id.number)).collect())
}

/// A statement, of which each session prepares its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prepared {
    /// One operation on a schema of SLOB's.
    Operation(StatementKind, u32, Keys),
    /// A batch of them.
    Batch(u32),
}

impl Prepared {
    fn text(self, sql: &Sql) -> String {
        match self {
            Self::Operation(StatementKind::Read, schema, keys) => sql.read(schema, keys),
            Self::Operation(StatementKind::Scan, schema, _) => sql.scan(schema),
            Self::Operation(kind, schema, keys) => sql.update(kind, schema, keys),
            Self::Batch(schema) => sql.call_procedure(schema),
        }
    }
}

/// One session.
pub struct Session {
    shared: Arc<Shared>,
    node: usize,
    id: u32,
    statement_timeout_ms: Option<u64>,
    /// Asked one thing at a time, so nobody ever waits for it.
    inside: Mutex<Inside>,
}

struct Inside {
    connected: Connected,
    prepared: Vec<(Prepared, Statement)>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("node", &self.node).field("id", &self.id).finish_non_exhaustive()
    }
}

impl Inside {
    /// A statement, prepared if it is not yet.
    async fn statement(&mut self, wanted: Prepared, sql: &Sql) -> Result<Statement, Error> {
        if let Some((_, statement)) = self.prepared.iter().find(|(which, _)| *which == wanted) {
            return Ok(statement.clone());
        }
        let statement = self.connected.conn.prep(wanted.text(sql)).await?;
        self.prepared.push((wanted, statement.clone()));
        Ok(statement)
    }

    /// Executes an operation once, from a key on, and says how many blocks it touched.
    async fn touch(
        &mut self,
        operation: &SlobOperation,
        first_key: i64,
        filling: &[u8],
        sql: &Sql,
    ) -> Result<u64, Error> {
        let (kind, keys) = (StatementKind::of(operation), Keys::of(operation));
        let statement = self.statement(Prepared::Operation(kind, operation.schema, keys), sql).await?;
        let conn = &mut self.connected.conn;
        let beyond = (keys == Keys::Range).then(|| Value::Int(first_key + i64::from(operation.keys)));
        let range = std::iter::once(Value::Int(first_key)).chain(beyond);
        let values = match kind {
            StatementKind::Read => range.collect(),
            StatementKind::Scan => Vec::new(),
            StatementKind::UpdateLite | StatementKind::UpdateHeavy => {
                let columns = filling.chunks(sql.column_bytes() as usize).map(Value::from);
                let values = Params::Positional(columns.chain(range).collect());
                conn.exec_drop(&statement, values).await?;
                // Of rows that were changed, not of those that were found: that is another capability of the protocol.
                return Ok(conn.affected_rows());
            }
        };
        let values = if values.is_empty() { Params::Empty } else { Params::Positional(values) };
        let rows: u64 = conn.exec_first(&statement, values).await?.unwrap_or(0);
        Ok(if kind == StatementKind::Scan { rows.div_ceil(ROWS_OF_A_LEAF) } else { rows })
    }

    async fn batch(
        &mut self,
        operations: &[SlobOperation],
        filling: &[u8],
        sql: &Sql,
    ) -> Result<Option<(u64, ServerTimes)>, Error> {
        let home = home_schema(operations);
        let statement = self.statement(Prepared::Batch(home), sql).await?;
        let text: String = operations
            .iter()
            .map(|operation| {
                let is_hot = operation.schema != home;
                operation_text(StatementKind::of(operation), is_hot, operation.first_key, operation.keys)
            })
            .collect();
        let answer: Option<(u64, Vec<u8>)> = self.connected.conn.exec_first(&statement, (text, filling)).await?;
        Ok(answer.and_then(|(repeated, text)| Some((repeated, times(&text)?))))
    }
}

impl Session {
    fn count_repeated(&self, updates: u64) {
        self.shared.repeated[self.node].fetch_add(updates, Ordering::Relaxed);
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

impl SlobSession for Session {
    fn statement_timeout_ms(&self) -> Option<u64> {
        self.statement_timeout_ms
    }

    async fn execute(&self, operation: SlobOperation, filling: &[u8]) -> Result<u64, ServerError> {
        let mut inside = self.inside.lock().await;
        let mut attempts = 1;
        loop {
            match inside.touch(&operation, operation.first_key as i64, filling, &self.shared.sql).await {
                Err(Error::Server(refusal))
                    if WORTH_ANOTHER_ATTEMPT.contains(&refusal.code) && attempts < MAX_ATTEMPTS =>
                {
                    attempts += 1;
                    self.count_repeated(1);
                }
                outcome => return outcome.map_err(|error| inside.connected.error("execute an operation", &error)),
            }
        }
    }

    async fn rehearse(&self, operation: SlobOperation) -> Result<(), ServerError> {
        let mut inside = self.inside.lock().await;
        let sql = &self.shared.sql;
        let kind = StatementKind::of(&operation);
        let rehearsed = match kind {
            StatementKind::Scan => {
                inside.statement(Prepared::Operation(kind, operation.schema, Keys::Range), sql).await.map(drop)
            }
            _ => {
                let columns = match kind {
                    StatementKind::Read => 0,
                    StatementKind::UpdateLite => 2,
                    _ => crate::COLUMNS,
                };
                let filling = vec![0; (columns * sql.column_bytes()) as usize];
                // No key is negative.
                inside.touch(&operation, -i64::from(operation.keys), &filling, sql).await.map(drop)
            }
        };
        rehearsed.map_err(|error| inside.connected.error("prepare the operations", &error))
    }

    async fn execute_batch(
        &self,
        operations: &Arc<[SlobOperation]>,
        filling: &[u8],
    ) -> Result<ServerTimes, ServerError> {
        let mut inside = self.inside.lock().await;
        let outcome = inside.batch(operations, filling, &self.shared.sql).await;
        if let Err(Error::Server(refusal)) = &outcome
            && WORTH_ANOTHER_ATTEMPT.contains(&refusal.code)
        {
            // The procedure gave up on one update, and no longer says how many others of the list it did again.
            self.count_repeated(u64::from(MAX_ATTEMPTS) - 1);
        }
        let answer = outcome.map_err(|error| inside.connected.error("execute a batch of operations", &error))?;
        // Another procedure than ours may answer anything: then no operation is known.
        let (repeated, times) = answer.unwrap_or((0, ServerTimes { began_us: 0, operations: Vec::new() }));
        self.count_repeated(repeated);
        Ok(times)
    }
}

/// What the procedure gave, in microseconds since the batch began; none if it is not of the right form.
fn times(text: &[u8]) -> Option<ServerTimes> {
    let width = TIME_PARTS.iter().sum();
    if !text.len().is_multiple_of(width) {
        return None;
    }
    let [end_digits, commit_digits, _] = TIME_PARTS;
    let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<i64>().ok();
    let operation = |text: &[u8]| {
        let (end, rest) = text.split_at(end_digits);
        let (commit, touched) = rest.split_at(commit_digits);
        let committing = number(commit)?;
        Some(TimedOperation {
            committing_us: (committing != 0).then_some(committing - TIME_BASE),
            ended_us: number(end)? - TIME_BASE,
            touched: u64::try_from(number(touched)?).ok()?,
        })
    };
    let operations = text.chunks_exact(width).map(operation).collect::<Option<_>>()?;
    Some(ServerTimes { began_us: 0, operations })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_the_procedure_writes_them() {
        let text = b"100000000030000000000000000000000064\
                     100000001000010000000007000000000008";
        let read = times(text).unwrap();
        let timed = |committing_us, ended_us, touched| TimedOperation { committing_us, ended_us, touched };
        assert_eq!(read.operations, [timed(None, 300, 64), timed(Some(700), 10_000, 8)]);
        assert!(times(&text[1..]).is_none() && times(&[b'x'; 36]).is_none());
        assert_eq!(times(b"").unwrap().operations, []);
    }
}
