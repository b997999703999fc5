//! What a responder remembers of each session, for tests to look at.

use super::answers::{Call, Kind};

/// One session from its connect packet on.
#[derive(Clone, Debug, Default)]
pub struct SessionLog {
    /// From 1 on, in the order of connecting. The session id that the client is given, too.
    pub session: u32,
    /// The service that was asked for, in the client's own letters.
    pub service: String,
    /// The connect descriptor as it came.
    pub descriptor: String,
    pub user: String,
    pub program: String,
    pub machine: String,
    pub osuser: String,
    pub terminal: String,
    pub driver: String,
    /// As set last, with the call that brought them.
    pub module: String,
    pub action: String,
    pub client_identifier: String,
    pub client_info: String,
    pub operation: String,
    /// Nothing when the responder keeps no calls.
    pub calls: Vec<Call>,
    /// How many calls were made, so many round trips since the logon. Kept in any case.
    pub round_trips: u64,
    /// Cursors that the client has closed.
    pub closed_cursors: u64,
    /// The kinds of marker packets, as they came: 2 is a reset, 3 an interrupt.
    pub markers: Vec<u8>,
    pub state: State,
}

/// How far a session has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Connecting,
    /// The password was right.
    LoggedOn,
    /// The client said goodbye.
    LoggedOff,
    /// The connection ended without that.
    Gone,
}

impl SessionLog {
    /// The texts of the statements that were executed, one for each execution.
    pub fn statements(&self) -> Vec<&str> {
        self.calls.iter().filter(|call| call.is_executed()).map(|call| &*call.sql).collect()
    }

    pub fn kinds(&self) -> Vec<Kind> {
        self.calls.iter().map(|call| call.kind).collect()
    }
}
