//! What the server does wrong, and how it is set up.

use std::net::IpAddr;

use crate::nfs::wire::nfs4::Op;

/// Calls, as faults tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Read,
    Write,
    Commit,
    /// OPEN or CREATE.
    Open,
    Other,
}

/// How a reply is lost after its call was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The connection is closed.
    HangUp,
    /// Nothing comes on any connection to its address, until `stalled` is reset.
    Silence,
}

/// An operation of version 4.1 is refused.
#[derive(Debug, Clone, Copy)]
pub struct Refusal {
    pub op: Op,
    pub status: u32,
    /// So many are done before.
    pub after: u32,
    pub times: u32,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Done,
    /// It is not answered, and its connection ends.
    HangUp,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Faults {
    /// Data of a READ or WRITE at most, as the server says.
    pub most_bytes: u32,
    /// Data that a READ or WRITE really moves at most.
    pub moves_bytes: u32,
    /// Replies are cut into fragments of so many bytes.
    pub fragment_bytes: usize,
    /// Answers to so many calls are kept and then sent in the opposite order.
    pub reorders: usize,
    /// Calls that come to this address are not answered while this is set.
    pub stalled: Option<IpAddr>,
    /// Connections to this address are closed at the next call of NFS, once.
    pub hangs_up: Option<IpAddr>,
    /// Connections to this address are closed at the next WRITE, after the call was read, once.
    pub hangs_up_at_write: Option<IpAddr>,
    /// The reply to the next call of this kind is lost, once.
    pub loses_reply: Option<(Kind, Loss)>,
    /// At the next WRITE it begins a new life, as [`super::TestServer::restart`] with connections closed, and so often.
    pub restarts_at_write: u32,
    /// It begins a new life before each COMMIT; sessions stay.
    pub restarts_at_commit: bool,
    /// This is sent instead of the next reply to a call of NFS.
    pub garbage: Option<Vec<u8>>,
    /// Calls of NFS are rejected for this reason (`auth_stat`).
    pub rejects: u32,
    /// WRITE is answered as not durable whatever was asked for.
    pub never_durable: bool,
    /// Version 3: so many calls are answered with "not ready".
    pub not_ready: u32,
    /// Version 3: READ and WRITE are refused so.
    pub status: u32,
    /// Version 3: CREATE answers without handle and attributes.
    pub says_little: bool,
    /// Version 4.1: operations that are refused.
    pub refuses: Vec<Refusal>,
    /// Version 4.1: what SEQUENCE refuses is answered at once, before answers that wait to be sent.
    pub refusals_overtake: bool,
    /// Version 4.1: connections are closed at such an operation, so often.
    pub hangs_up_at: Option<(Op, u32)>,
    /// Version 4.1: it waits for clients of its life before.
    pub is_in_grace: bool,
    /// Version 4.1: it lets them have again what they had.
    pub takes_reclaims: bool,
    /// Version 4.1: seconds for which it says that it remembers clients.
    pub lease_s: u32,
    /// Version 4.1: slots of a session at most.
    pub slots: u32,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            most_bytes: 1 << 20,
            moves_bytes: u32::MAX,
            fragment_bytes: usize::MAX,
            reorders: 1,
            stalled: None,
            hangs_up: None,
            hangs_up_at_write: None,
            loses_reply: None,
            restarts_at_write: 0,
            restarts_at_commit: false,
            garbage: None,
            rejects: 0,
            never_durable: false,
            not_ready: 0,
            status: 0,
            says_little: false,
            refuses: Vec::new(),
            refusals_overtake: false,
            hangs_up_at: None,
            is_in_grace: false,
            takes_reclaims: true,
            lease_s: 60,
            slots: 64,
        }
    }
}

impl Faults {
    /// The status with which an operation is refused now; 0 where it is not.
    pub fn refuses(&mut self, op: Op) -> u32 {
        let Some(found) = self.refuses.iter_mut().find(|refusal| refusal.op == op && refusal.times > 0) else {
            return 0;
        };
        if found.after > 0 {
            found.after -= 1;
            return 0;
        }
        found.times -= 1;
        found.status
    }

    /// Whether the connection is closed at an operation.
    pub fn hangs_up_at(&mut self, op: Op) -> bool {
        let found = self.hangs_up_at.as_mut().filter(|(at, times)| *at == op && *times > 0);
        found.map(|(_, times)| *times -= 1).is_some()
    }
}
