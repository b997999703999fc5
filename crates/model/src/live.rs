//! What one look at a live database server shows: nothing of it is recorded.

use std::collections::BTreeMap;

use crate::record::{ServerWork, SessionState};
use crate::units::Nanos;

/// A statement that a server was executing when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenStatement {
    /// The session, by the server's number of it.
    pub session: u64,
    /// Tells this statement from others of the session: when it began, or its number.
    pub begun: u64,
    /// Since when it is executed, by the server's own clock.
    pub age: Nanos,
    /// What it does or waits for, in the server's words.
    pub doing: String,
    /// What these words mean.
    pub state: SessionState,
    /// Whether it waits for a lock that others take for their work; absent where that was not asked this time.
    pub in_lock: Option<bool>,
    /// Equal for statements whose texts differ in constants only. The text itself is kept nowhere.
    pub text: u64,
}

/// A session that waits for a lock, and one that holds it and waits for none itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    /// The session that waits.
    pub waiter: u64,
    /// The one that holds the lock, by the server's number; absent where that is not known, as of a prepared transaction.
    pub session: Option<u64>,
    /// What it is and does: `psql, idle in transaction`.
    pub who: String,
}

/// One look at all sessions of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementLook {
    /// When the server was asked, on the kernel's monotonic clock.
    pub asked_ns: u64,
    /// When it had answered.
    pub answered_ns: u64,
    /// Statements of all sessions but ours, those that began first before others.
    pub statements: Vec<SeenStatement>,
    /// Who waits for whom, of those that began first; empty where it was not asked this time.
    pub holders: Vec<LockHolder>,
    /// What the server itself does; absent where it does not let us see.
    pub work: Option<BTreeMap<ServerWork, u32>>,
}
