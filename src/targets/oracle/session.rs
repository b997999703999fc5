//! Oracle's sessions: what is prepared on them, and how operations are executed.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::connect::{Connected, Connector, SessionId};
use super::driver::{DB_TYPE_NUMBER, DB_TYPE_RAW, Prepared, Row, ToDbValue};
use super::error::OracleError;
use super::sql::{AT_WORK, Kinds, MAX_BATCH, Sql, Statement, pack, printable, unpack};
use super::worker::{Job, Opened, Reply, Work, Worker};
use crate::targets::sql::{
    COLUMNS, ServerTimes, SlobServers, SlobSession, SqlServers, SqlSession, SqlTarget, StatementKind, home_schema,
};
use crate::workload::{OperationKind, SlobOperation};

/// Oracle databases under load.
pub type Oracle = SqlTarget<OracleServers>;

/// A call that takes longer is cancelled. It is far above any operation, the scan of a large table included; a server that is silent is
/// noticed before, by asking it.
const CALL_LIMIT: Duration = Duration::from_secs(300);
/// An instance that has so small a part more sessions than another is no finding.
const UNBALANCED_PART: u64 = 10;
/// Most values that are bound to one statement: all columns, two keys, and the count that comes back.
const MAX_VALUES: usize = COLUMNS as usize + 3;

/// Oracle databases with SLOB's data. Clones are the same.
#[derive(Debug, Clone)]
pub struct OracleServers(Arc<Shared>);

/// What the sessions of a run have in common.
#[derive(Debug)]
struct Shared {
    connector: Connector,
    sql: Sql,
    /// Sessions that were opened, by the instance where they landed.
    landed: Mutex<Vec<(String, u64)>>,
}

impl OracleServers {
    /// The databases that `connector` leads to, with these data.
    pub(super) fn new(connector: Connector, sql: Sql) -> Self {
        Self(Arc::new(Shared { connector, sql, landed: Mutex::new(Vec::new()) }))
    }
}

impl Shared {
    fn landed(&self) -> MutexGuard<'_, Vec<(String, u64)>> {
        self.landed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_landing(&self, instance: &str) {
        let mut landed = self.landed();
        match landed.iter_mut().find(|(name, _)| name == instance) {
            Some((_, sessions)) => *sessions += 1,
            None => landed.push((instance.to_owned(), 1)),
        }
    }
}

impl SqlServers for OracleServers {
    type Session = Session;
    type Error = OracleError;

    fn nodes(&self) -> Vec<String> {
        self.0.connector.nodes()
    }

    async fn open_session(&self, node: usize) -> Result<Session, OracleError> {
        let name = self.0.connector.nodes().swap_remove(node);
        let inside = Inside::new(Arc::clone(&self.0), node);
        let (worker, id) = Worker::start(inside, &name).await?;
        Ok(Session { worker, id, node: name })
    }

    /// Where sessions landed: a listener sends them wherever it likes, so a cluster may be loaded on one side.
    fn notes_of_the_load(&self) -> Vec<String> {
        let mut landed = self.0.landed().clone();
        if landed.is_empty() {
            return Vec::new();
        }
        // Where a cluster is watched as a whole, an instance that got none is known too.
        let watched = self.0.connector.instances();
        let without = watched.values().filter(|name| !landed.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
        let without: Vec<(String, u64)> = without.map(|name| (name.clone(), 0)).collect();
        landed.extend(without);
        landed.sort();
        let all: Vec<String> = landed.iter().map(|(instance, sessions)| format!("{instance} {sessions}")).collect();
        let most = landed.iter().map(|(_, sessions)| *sessions).max().unwrap_or(0);
        let least = landed.iter().map(|(_, sessions)| *sessions).min().unwrap_or(0);
        let mut notes = Vec::new();
        if landed.len() > 1 {
            notes.push(format!("sessions landed on instances, over all steps: {}", all.join(", ")));
        }
        if most > least + least / UNBALANCED_PART + 1 {
            notes.push(
                "the instances had unequal shares of the sessions, so one of them is loaded before the others: name each by \
                 `--per-node`, or numbered services by `services=N`"
                    .to_owned(),
            );
        }
        notes
    }

    async fn at_work(&self, node: usize, sessions: Vec<SessionId>) -> Option<Vec<SessionId>> {
        let connector = self.0.connector.clone();
        let landed: Vec<String> = self.0.landed().iter().map(|(instance, _)| instance.clone()).collect();
        let asked = tokio::task::spawn_blocking(move || {
            let connected = connector.connect(node).ok()?;
            // Another instance knows nothing of these sessions, and who is not seen would pass for idle.
            let is_alone = landed == [connected.instance.as_str()];
            let busy = if is_alone { AT_WORK.to_owned() } else { AT_WORK.replace("v$session", "gv$session") };
            let read = |row: &Row| Ok(SessionId { sid: row.get(0)?, serial: row.get(1)? });
            connected.query("look which sessions work", &busy, &[], read).ok()
        });
        let busy = asked.await.ok()??;
        Some(sessions.into_iter().filter(|id| busy.contains(id)).collect())
    }
}

impl SlobServers for OracleServers {
    fn namespace(&self) -> String {
        self.0.sql.owner().to_owned()
    }

    fn table_of(&self, operation: &SlobOperation) -> String {
        match operation.kind {
            OperationKind::Scan => self.0.sql.scan_table(operation.schema),
            OperationKind::Read | OperationKind::Update => self.0.sql.table(operation.schema),
        }
    }

    fn column_bytes(&self) -> u32 {
        self.0.sql.column_bytes()
    }
}

/// One session.
pub struct Session {
    worker: Worker,
    id: SessionId,
    node: String,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("node", &self.node).field("id", &self.id).finish_non_exhaustive()
    }
}

impl Session {
    async fn touched(&self, job: Job, filling: &[u8]) -> Result<u64, OracleError> {
        self.worker.ask(job, Arc::default(), filling);
        match self.worker.answer(&self.node).await? {
            Reply::Touched(rows) => Ok(rows),
            Reply::Times(_) => unreachable!("an operation has no times of a batch"),
        }
    }
}

impl SqlSession for Session {
    type Error = OracleError;
    type Id = SessionId;

    fn id(&self) -> SessionId {
        self.id
    }

    /// The driver has no way to cancel what another thread waits for. A batch ends by itself within a fraction of a second, an
    /// operation within five minutes.
    async fn cancel(&self) {}
}

impl SlobSession for Session {
    /// Nothing can be cancelled from outside, so what is under way when the load ends has to be waited for.
    const BATCH_NS: u64 = 200_000_000;

    fn statement_timeout_ms(&self) -> Option<u64> {
        Some(CALL_LIMIT.as_millis() as u64)
    }

    async fn execute(&self, operation: SlobOperation, filling: &[u8]) -> Result<u64, OracleError> {
        self.touched(Job::Operation(operation), filling).await
    }

    async fn rehearse(&self, operation: SlobOperation) -> Result<(), OracleError> {
        self.touched(Job::Rehearsal(operation), &[]).await.map(drop)
    }

    async fn execute_batch(
        &self,
        operations: &Arc<[SlobOperation]>,
        filling: &[u8],
    ) -> Result<ServerTimes, OracleError> {
        self.worker.ask(Job::Batch, Arc::clone(operations), filling);
        match self.worker.answer(&self.node).await? {
            Reply::Times(times) => Ok(times),
            Reply::Touched(_) => unreachable!("a batch is answered with its times"),
        }
    }
}

/// What lives on a session's thread.
struct Inside {
    shared: Arc<Shared>,
    node: usize,
    /// None before it is opened.
    connected: Option<Connected>,
    operations: Vec<((StatementKind, u32), PreparedOperation)>,
    batches: Vec<((u32, Kinds), Prepared)>,
    /// Room that is used again and again.
    packed: Vec<u8>,
    text: String,
}

/// An operation's statement. Those that change something are kept prepared; queries the driver keeps by their text.
struct PreparedOperation {
    statement: Statement,
    block: Option<Prepared>,
}

impl Inside {
    fn new(shared: Arc<Shared>, node: usize) -> Self {
        let (operations, batches) = (Vec::new(), Vec::new());
        Self { shared, node, connected: None, operations, batches, packed: Vec::new(), text: String::new() }
    }

    /// Where the statement of an operation is among those that are prepared.
    fn prepared(&mut self, kind: StatementKind, schema: u32) -> Result<usize, OracleError> {
        if let Some(at) = self.operations.iter().position(|(which, _)| *which == (kind, schema)) {
            return Ok(at);
        }
        let statement = self.shared.sql.statement(kind, schema);
        let connected = self.connected.as_ref().expect("a session is opened before it works");
        let doing = "prepare the operations";
        let block = if statement.is_block { Some(connected.prepare(doing, &statement.text)?) } else { None };
        self.operations.push(((kind, schema), PreparedOperation { statement, block }));
        Ok(self.operations.len() - 1)
    }

    fn touch(&mut self, operation: &SlobOperation, filling: &[u8]) -> Result<u64, OracleError> {
        let at = self.prepared(StatementKind::of(operation), operation.schema)?;
        let Self { shared, connected, operations, text, .. } = self;
        let connected = connected.as_ref().expect("a session is opened before it works");
        let PreparedOperation { statement, block } = &mut operations[at].1;
        let first = shared.sql.custid(operation.first_key);
        let beyond = first + u64::from(operation.keys);
        text.clear();
        printable(filling, text);
        let column_bytes = shared.sql.column_bytes() as usize;
        let columns: [&str; COLUMNS as usize] = std::array::from_fn(|column| {
            text.get(column * column_bytes..(column + 1) * column_bytes).unwrap_or_default()
        });
        let mut values: [&dyn ToDbValue; MAX_VALUES] = [&DB_TYPE_NUMBER; MAX_VALUES];
        let mut bound = 0;
        for column in &columns[..statement.columns as usize] {
            values[bound] = column;
            bound += 1;
        }
        if statement.has_keys {
            (values[bound], values[bound + 1]) = (&first, &beyond);
            bound += 2;
        }
        match block {
            Some(block) => connected.count_of_block("execute an operation", block, &values[..=bound]),
            None => connected.count_of_query("execute an operation", &statement.text, &values[..bound]),
        }
    }

    fn batch(&mut self, operations: &[SlobOperation], filling: &[u8]) -> Result<ServerTimes, OracleError> {
        let home = home_schema(operations);
        let mut times = ServerTimes { began_us: 0, operations: Vec::with_capacity(operations.len()) };
        self.text.clear();
        for part in operations.chunks(MAX_BATCH) {
            let done = times.operations.len();
            let kinds = Kinds::of(part);
            let at = match self.batches.iter().position(|(which, _)| *which == (home, kinds)) {
                Some(at) => at,
                None => {
                    let connected = self.connected.as_ref().expect("a session is opened before it works");
                    let block = connected.prepare("prepare the batches", &self.shared.sql.batch(home, kinds))?;
                    self.batches.push(((home, kinds), block));
                    self.batches.len() - 1
                }
            };
            let Self { shared, connected, batches, packed, text, .. } = self;
            let connected = connected.as_ref().expect("a session is opened before it works");
            pack(&shared.sql, part, home, packed);
            match text.chars().next() {
                None if kinds.updates => printable(filling, text),
                // The block counts its operations from 0 again, and what they write follows from their numbers: moved on by one
                // place, it differs from what the block before has written.
                Some(first) => {
                    text.remove(0);
                    text.push(first);
                }
                None => {}
            }
            let (packed, text): (&[u8], &str) = (packed, text);
            let with_updates: [&dyn ToDbValue; 3] = [&packed, &text, &DB_TYPE_RAW];
            let without: [&dyn ToDbValue; 2] = [&packed, &DB_TYPE_RAW];
            let values: &[&dyn ToDbValue] = if kinds.updates { &with_updates } else { &without };
            let is_ours =
                connected.bytes_of_block("execute a batch of operations", &mut batches[at].1, values, |bytes| {
                    unpack(bytes, &mut times)
                })?;
            if !is_ours || times.operations.len() != done + part.len() {
                return Err(OracleError::Unfit {
                    what: format!(
                        "`{}` answered a batch with other times than its block can have written",
                        connected.node()
                    ),
                    hint: Some("send each operation by itself: `--send statement`".to_owned()),
                });
            }
        }
        Ok(times)
    }
}

impl Work for Inside {
    fn open(mut self) -> Result<(Self, Opened), OracleError> {
        let connected = self.shared.connector.connect(self.node)?;
        connected.limit_calls(Some(CALL_LIMIT))?;
        connected.name_work(self.shared.connector.program(), "load");
        self.shared.note_landing(&connected.instance);
        let id = connected.id;
        self.connected = Some(connected);
        Ok((self, id))
    }

    fn work(&mut self, job: Job, operations: &[SlobOperation], filling: &[u8]) -> Result<Reply, OracleError> {
        match job {
            Job::Operation(operation) => self.touch(&operation, filling).map(Reply::Touched),
            Job::Rehearsal(operation) => {
                let kind = StatementKind::of(&operation);
                if kind == StatementKind::Scan {
                    // There is no scan of nothing.
                    return self.prepared(kind, operation.schema).map(|_| Reply::Touched(0));
                }
                let none = vec![0; (COLUMNS * self.shared.sql.column_bytes()) as usize];
                self.touch(&SlobOperation { keys: 0, ..operation }, &none).map(Reply::Touched)
            }
            Job::Batch => self.batch(operations, filling).map(Reply::Times),
        }
    }
}
