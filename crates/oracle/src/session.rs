//! Oracle's sessions: what is prepared on them, and how operations are executed.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::connect::{Connected, Connector};
use super::driver::{DB_TYPE_NUMBER, DB_TYPE_RAW, Prepared, Row, ToDbValue};
use super::sql::{AT_WORK, Kinds, MAX_BATCH, Sql, Statement, pack, printable, unpack};
use super::worker::{Opened, ThreadSession, Work};
use ::sql::{
    COLUMNS, ServerError, ServerTimes, SessionId, SlobSession, SqlServers, SqlTarget, StatementKind, home_schema,
};
use model::units::group_thousands;
use model::workload::SlobOperation;

/// Oracle databases under load.
pub type Oracle = SqlTarget<OracleServers>;

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
    landed: Landings,
}

impl OracleServers {
    /// The databases that `connector` leads to, with these data.
    pub(super) fn new(connector: Connector, sql: Sql) -> Self {
        Self(Arc::new(Shared { connector, sql, landed: Landings::default() }))
    }
}

impl SqlServers for OracleServers {
    type Session = Session;

    async fn open_session(&self, node: usize) -> Result<Session, ServerError> {
        Session::open(Inside::new(Arc::clone(&self.0), node), &self.0.connector, node).await
    }

    fn notes_of_the_load(&self) -> Vec<String> {
        self.0.landed.notes(&self.0.connector)
    }

    async fn at_work(&self, node: usize, sessions: Vec<SessionId>) -> Option<Vec<SessionId>> {
        self.0.landed.at_work(&self.0.connector, node, sessions).await
    }
}

/// What a session is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Job {
    /// Execute an operation.
    Operation(SlobOperation),
    /// Prepare for operations like this one.
    Rehearsal(SlobOperation),
    /// Have the server execute the operations that go with it.
    Batch,
}

/// A job with what goes with it.
#[derive(Debug, Default)]
pub struct SlobWork {
    job: Option<Job>,
    /// Those of a batch.
    operations: Arc<[SlobOperation]>,
    /// What updates write.
    filling: Vec<u8>,
}

impl SlobWork {
    fn put(&mut self, job: Job, operations: &Arc<[SlobOperation]>, filling: &[u8]) {
        (self.job, self.operations) = (Some(job), Arc::clone(operations));
        self.filling.clear();
        self.filling.extend_from_slice(filling);
    }
}

/// What it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Rows that an operation touched; none in a rehearsal.
    Touched(u64),
    /// What a batch took.
    Times(ServerTimes),
}

/// One session.
pub type Session = ThreadSession<Inside>;

impl Session {
    async fn touched(&self, job: Job, filling: &[u8]) -> Result<u64, ServerError> {
        match self.asked(|asked| asked.put(job, &Arc::default(), filling)).await? {
            Reply::Touched(rows) => Ok(rows),
            Reply::Times(_) => unreachable!("an operation has no times of a batch"),
        }
    }
}

impl SlobSession for Session {
    /// Nothing can be cancelled from outside, so what is under way when the load ends has to be waited for.
    const BATCH_NS: u64 = 200_000_000;

    fn statement_timeout_ms(&self) -> Option<u64> {
        Some(CALL_LIMIT.as_millis() as u64)
    }

    async fn execute(&self, operation: SlobOperation, filling: &[u8]) -> Result<u64, ServerError> {
        self.touched(Job::Operation(operation), filling).await
    }

    async fn rehearse(&self, operation: SlobOperation) -> Result<(), ServerError> {
        self.touched(Job::Rehearsal(operation), &[]).await.map(drop)
    }

    async fn execute_batch(
        &self,
        operations: &Arc<[SlobOperation]>,
        filling: &[u8],
    ) -> Result<ServerTimes, ServerError> {
        match self.asked(|asked| asked.put(Job::Batch, operations, filling)).await? {
            Reply::Times(times) => Ok(times),
            Reply::Touched(_) => unreachable!("a batch is answered with its times"),
        }
    }
}

/// What lives on a session's thread.
pub struct Inside {
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
    fn prepared(&mut self, kind: StatementKind, schema: u32) -> Result<usize, ServerError> {
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

    fn touch(&mut self, operation: &SlobOperation, filling: &[u8]) -> Result<u64, ServerError> {
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

    fn batch(&mut self, operations: &[SlobOperation], filling: &[u8]) -> Result<ServerTimes, ServerError> {
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
                return Err(ServerError::Unfit {
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
    type Request = SlobWork;
    type Reply = Reply;

    fn open(mut self) -> Result<(Self, Opened), ServerError> {
        let connected = self.shared.landed.open(&self.shared.connector, self.node)?;
        let id = connected.id;
        self.connected = Some(connected);
        Ok((self, id))
    }

    fn work(&mut self, asked: &SlobWork) -> Result<Reply, ServerError> {
        let SlobWork { job, operations, filling } = asked;
        match job.expect("a session gets a request") {
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

// Where sessions landed: a listener sends them wherever it likes, so a cluster may be loaded on one side.

/// A call that takes longer is cancelled. It is far above any operation, the scan of a large table included; a server that is silent is
/// noticed before, by asking it.
const CALL_LIMIT: Duration = Duration::from_secs(300);
/// An instance that has so small a part more sessions than another is no finding.
const UNBALANCED_PART: u64 = 10;

/// The resource plan, and how often the resource manager has had sessions wait for a processor. Wants `v$parameter` and
/// `v$system_event`.
const RESOURCES: &str = "SELECT (SELECT value FROM v$parameter WHERE name = 'resource_manager_plan') AS plan, \
    (SELECT NVL(SUM(total_waits), 0) FROM v$system_event WHERE event = 'resmgr:cpu quantum') AS held FROM dual";

/// What holds sessions back besides the machine.
#[derive(Debug, PartialEq, Eq)]
struct Resources {
    instance: String,
    plan: String,
    held: u64,
}

impl Resources {
    /// Nothing where that is not shown.
    fn ask(connected: &Connected) -> Option<Self> {
        let read = |row: &Row| Ok((row.get::<Option<String>>(0)?.unwrap_or_default(), row.get(1)?));
        let (plan, held) = connected.first("ask for the resource plan", RESOURCES, &[], read).ok()??;
        Some(Self { instance: connected.instance.clone(), plan, held })
    }

    /// What is worth knowing of what became of it.
    fn until(&self, now: &Self) -> Vec<String> {
        let named = |plan: &str| if plan.is_empty() { "none".to_owned() } else { format!("`{plan}`") };
        let mut notes = Vec::new();
        if self.plan != now.plan {
            notes.push(format!(
                "the resource plan changed during the run, from {} to {}: what was measured before and after does not compare; hold it \
                 by `ALTER SYSTEM SET resource_manager_plan = 'FORCE:…'`",
                named(&self.plan),
                named(&now.plan)
            ));
        }
        let held = now.held.saturating_sub(self.held);
        if held > 0 && self.instance == now.instance {
            notes.push(format!(
                "the resource manager made sessions wait for a CPU {} times (resmgr:cpu quantum). The plan, \
                `cpu_count` or the edition is the limit, not the machine; Standard Edition 2 stops at 16 threads",
                group_thousands(held as f64)
            ));
        }
        notes
    }
}

/// Sessions that were opened, by the instance where they landed.
#[derive(Debug, Default)]
pub(crate) struct Landings {
    sessions: Mutex<Vec<(String, u64)>>,
    /// As the first session found it; nothing in it where that is not shown.
    resources: OnceLock<Option<Resources>>,
}

impl Landings {
    fn lock(&self) -> MutexGuard<'_, Vec<(String, u64)>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session of the load, and notes where that is.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn open(&self, connector: &Connector, node: usize) -> Result<Connected, ServerError> {
        let connected = connector.connect(node)?;
        connected.limit_calls(Some(CALL_LIMIT))?;
        self.resources.get_or_init(|| Resources::ask(&connected));
        connected.name_work(connector.program(), "load");
        let mut landed = self.lock();
        match landed.iter_mut().find(|(name, _)| *name == connected.instance) {
            Some((_, sessions)) => *sessions += 1,
            None => landed.push((connected.instance.clone(), 1)),
        }
        drop(landed);
        Ok(connected)
    }

    /// What is worth knowing of it.
    pub(super) fn notes(&self, connector: &Connector) -> Vec<String> {
        let mut landed = self.lock().clone();
        if landed.is_empty() {
            return Vec::new();
        }
        // Where a cluster is watched as a whole, an instance that got none is known too.
        let watched = connector.instances();
        let without = watched.values().filter(|name| !landed.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
        let without: Vec<(String, u64)> = without.map(|name| (name.clone(), 0)).collect();
        landed.extend(without);
        landed.sort();
        let all: Vec<String> = landed.iter().map(|(instance, sessions)| format!("{instance} {sessions}")).collect();
        let most = landed.iter().map(|(_, sessions)| *sessions).max().unwrap_or(0);
        let least = landed.iter().map(|(_, sessions)| *sessions).min().unwrap_or(0);
        let resources = self.resources.get().and_then(Option::as_ref);
        let now = resources.and_then(|_| Resources::ask(&connector.connect(0).ok()?));
        let mut notes = resources.zip(now).map_or_else(Vec::new, |(then, now)| then.until(&now));
        if landed.len() > 1 {
            notes.push(format!("sessions landed on instances, over all steps: {}", all.join(", ")));
        }
        if most > least + least / UNBALANCED_PART + 1 {
            notes.push(
                "the instances had unequal shares of the sessions, so one is loaded before the others. Use \
                `--per-node`, or numbered services with `services=N`"
                    .to_owned(),
            );
        }
        notes
    }

    /// Those of `sessions` that the server works for just now; none where it does not say so.
    pub(super) async fn at_work(
        &self,
        connector: &Connector,
        node: usize,
        sessions: Vec<SessionId>,
    ) -> Option<Vec<SessionId>> {
        let connector = connector.clone();
        let landed: Vec<String> = self.lock().iter().map(|(instance, _)| instance.clone()).collect();
        let asked = tokio::task::spawn_blocking(move || {
            let connected = connector.connect(node).ok()?;
            // Another instance knows nothing of these sessions, and who is not seen would pass for idle.
            let is_alone = landed == [connected.instance.as_str()];
            let busy = if is_alone { AT_WORK.to_owned() } else { AT_WORK.replace("v$session", "gv$session") };
            let read = |row: &Row| Ok(SessionId { number: row.get(0)?, serial: row.get(1)? });
            connected.query("look which sessions work", &busy, &[], read).ok()
        });
        let busy = asked.await.ok()??;
        Some(sessions.into_iter().filter(|id| busy.contains(id)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_changed_and_sessions_that_were_held_back_are_said() {
        let of = |plan: &str, held| Resources { instance: "ONE1".to_owned(), plan: plan.to_owned(), held };
        assert_eq!(of("", 7).until(&of("", 7)), Vec::<String>::new());
        let changed = of("", 7).until(&of("SCHEDULER[0x4D]:DEFAULT_MAINTENANCE_PLAN", 7));
        assert!(changed.len() == 1 && changed[0].contains("from none to `SCHEDULER[0x4D]:DEFAULT"), "{changed:?}");
        let held = of("A", 7).until(&of("A", 2007));
        assert!(held.len() == 1 && held[0].contains("2,000 times (resmgr:cpu quantum)"), "{held:?}");
        let elsewhere = Resources { instance: "ONE2".to_owned(), ..of("A", 2007) };
        assert_eq!(of("A", 7).until(&elsewhere), Vec::<String>::new(), "another instance counts by itself");
    }
}
