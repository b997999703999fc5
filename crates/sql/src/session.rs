//! What a server's own folder gives: its servers and its sessions.

use std::fmt::Debug;
use std::sync::Arc;

use super::error::ServerError;
use super::lane::ServerTimes;
use model::workload::{OperationKind, RedoStress, SlobOperation};

/// The servers that a run loads.
pub trait SqlServers: Debug + Send + Sync + 'static {
    /// One connection to one of them.
    type Session: SqlSession;

    /// Connects a session to server number `node`, ready for operations but with none of them prepared.
    ///
    /// # Errors
    /// When it cannot be connected.
    fn open_session(&self, node: usize) -> impl Future<Output = Result<Self::Session, ServerError>> + Send;

    /// How many updates the sessions of server number `node` have done again so far, after a deadlock or a wait for a lock that
    /// lasted too long. `None` where sessions do not try again.
    fn repeated(&self, _node: usize) -> Option<u64> {
        None
    }

    /// What the user should know about where sessions ended up, once the load has ended.
    fn notes_of_the_load(&self) -> Vec<String> {
        Vec::new()
    }

    /// Which of these sessions of server number `node` are executing something, asked over a connection of its own. `None`
    /// when the server answers but does not say.
    fn at_work(&self, node: usize, sessions: Vec<SessionId>) -> impl Future<Output = Option<Vec<SessionId>>> + Send;
}

/// How a server numbers a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionId {
    /// Its number.
    pub number: u64,
    /// What distinguishes those that had the number one after the other, where that is known.
    pub serial: Option<u64>,
}

impl From<u64> for SessionId {
    fn from(number: u64) -> Self {
        Self { number, serial: None }
    }
}

/// The number of a process.
impl From<i32> for SessionId {
    fn from(process: i32) -> Self {
        u64::from(process.unsigned_abs()).into()
    }
}

/// One connection to a server. It is asked one thing at a time, except to cancel that and to flush its statistics.
pub trait SqlSession: Send + Sync + Sized + 'static {
    /// The server's number of this session.
    fn id(&self) -> SessionId;

    /// Has the server's counters include at once what this session did, where they would lag. Must cost little; a failure is
    /// left for the next operation to find.
    fn flush_statistics(&self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Asks the server to cancel what the session executes, over a connection of its own. A failure shows in the answer that
    /// does not come.
    fn cancel(&self) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// A session that executes the operations of SLOB's method.
pub trait SlobSession: SqlSession {
    /// How long a batch should take, in nanoseconds. Sending and reading one costs about 0.2 ms of the client's time; and where all
    /// processors are busy, its session stands idle for some milliseconds until the client has its turn, which is then a
    /// hundredth.
    const BATCH_NS: u64 = 500_000_000;

    /// Longest that a statement may take, in milliseconds, where the server limits it.
    fn statement_timeout_ms(&self) -> Option<u64> {
        None
    }

    /// Executes one operation and says how many rows it touched. `filling` is what an update writes, column after column; it
    /// is empty for the others.
    fn execute(
        &self,
        operation: SlobOperation,
        filling: &[u8],
    ) -> impl Future<Output = Result<u64, ServerError>> + Send;

    /// Prepares for operations like this one, and executes one that touches nothing if there is such a thing.
    fn rehearse(&self, operation: SlobOperation) -> impl Future<Output = Result<(), ServerError>> + Send;

    /// Has the server execute operations one after the other, each update with a commit of its own, and time each. They are on
    /// the tables of their [`home_schema`] or of the first schema. `filling` has [`batch_filling_bytes`] for them all, and is
    /// empty where none is an update.
    ///
    /// [`batch_filling_bytes`]: super::batch_filling_bytes
    fn execute_batch(
        &self,
        operations: &Arc<[SlobOperation]>,
        filling: &[u8],
    ) -> impl Future<Output = Result<ServerTimes, ServerError>> + Send;
}

/// Which statement an operation is. The number is how procedures know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i16)]
pub enum StatementKind {
    /// Reads a range of keys.
    Read = 0,
    /// Changes the first and the last column of a range.
    UpdateLite = 1,
    /// Changes every column of a range.
    UpdateHeavy = 2,
    /// Reads the scan table.
    Scan = 3,
}

impl StatementKind {
    /// The statement of an operation.
    pub fn of(operation: &SlobOperation) -> Self {
        match (operation.kind, operation.redo_stress) {
            (OperationKind::Read, _) => Self::Read,
            (OperationKind::Scan, _) => Self::Scan,
            (OperationKind::Update, RedoStress::Lite) => Self::UpdateLite,
            (OperationKind::Update, RedoStress::Heavy) => Self::UpdateHeavy,
        }
    }
}

/// The schema whose procedure executes a batch, from 0: that of all its operations which are not on the first.
pub fn home_schema(operations: &[SlobOperation]) -> u32 {
    operations.iter().map(|operation| operation.schema).max().unwrap_or(0)
}
