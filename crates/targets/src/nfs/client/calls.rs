//! Compounds of a client: by whichever way there is, in its session or without.

use std::sync::Weak;
use std::time::Duration;

use super::open::Open;
use crate::nfs::caller::Caller;
use crate::nfs::error::NfsError;
use crate::nfs::ways::{MAX_NOT_READY, Pauses, Ways, is_of_path};
use crate::nfs::wire::nfs4::{self, COMPOUND, Channel, Compound, NFS4, Problem, Results, SessionId, Slot};
use crate::nfs::wire::{Fault, Operation, Reader, Status};

/// Bytes beside data in a call or reply, that a session is asked for.
pub const MAX_HEAD_BYTES: u32 = 2048;
/// How many sessions are made, one after the other, in which the server does nothing of what is asked.
pub const MAX_SESSIONS: u32 = 5;
/// How long the end waits for the server.
pub(super) const FAREWELL: Duration = Duration::from_secs(1);

/// A session.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    /// Its name.
    pub id: SessionId,
    /// What it takes.
    pub channel: Channel,
}

/// What came of a call in a session.
pub(super) enum Said<T> {
    Done(Result<T, Status>),
    /// The server did not look at it. It may have done it before if it was sent more than once.
    NotInSession(Status, bool),
}

/// A client of a server.
#[derive(Debug)]
pub struct Client {
    pub(super) caller: Option<Caller>,
    pub(super) owner: Vec<u8>,
    pub(super) verifier: u64,
    /// The server's number of this client, and that of its next CREATE_SESSION.
    pub(super) id: Option<(u64, u32)>,
    /// Whether the server was told that nothing of its life before is asked for any more: until then nothing can be opened anew.
    pub(super) is_settled: bool,
    /// For cold calls, which take its first slot.
    pub(super) session: Option<Session>,
    pub(super) sequence: u32,
    pub(super) slots: u32,
    pub(super) opens: Vec<Weak<Open>>,
    next_owner: u64,
}

impl Client {
    /// Asks for sessions of so many slots.
    pub fn new(slots: u32) -> Self {
        let verifier = measure::monotonic_ns();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let owner = format!("plimsoll {} {} {}.{verifier}", host.trim(), std::process::id(), wall.as_nanos());
        Self {
            caller: None,
            owner: owner.into_bytes(),
            verifier,
            id: None,
            is_settled: false,
            session: None,
            sequence: 0,
            slots,
            opens: Vec::new(),
            next_owner: 0,
        }
    }

    /// The session of cold calls, which says what all are granted.
    pub fn granted(&self) -> Option<Channel> {
        self.session.map(|session| session.channel)
    }

    /// An owner that has opened nothing yet.
    pub fn new_owner(&mut self) -> u64 {
        self.next_owner += 1;
        self.next_owner
    }

    /// Sends a compound by any way, and once more where a connection breaks. Tells whether it was sent more than once.
    pub(super) fn send<T>(
        &mut self,
        ways: &Ways,
        name: &'static str,
        put: &dyn Fn(&mut Compound<'_>),
        read: &dyn Fn(&mut Results<'_>) -> Result<T, Problem>,
    ) -> Result<(Result<T, Status>, bool), NfsError> {
        let (mut failed, mut sent) = (None, 0);
        for route in ways.routes.iter().chain(ways.routes.first()) {
            let connected = match self.caller.take().filter(Caller::is_open) {
                Some(caller) => Ok(caller),
                None => ways.connect(*route, NFS4),
            };
            let mut caller = match connected {
                Ok(caller) => caller,
                Err(error) => {
                    failed.get_or_insert(error);
                    continue;
                }
            };
            sent += 1;
            let answer = caller.call(
                (COMPOUND, name),
                |to| put(&mut Compound::begin(to)),
                |reader| nfs4::told(Results::begin(reader).and_then(|mut results| read(&mut results))),
            );
            match answer {
                Ok(answer) => {
                    self.caller = Some(caller);
                    return Ok((answer, sent > 1));
                }
                Err(error) if is_of_path(&error) => {
                    failed.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(failed.unwrap_or_else(|| ways.nowhere()))
    }

    /// The first slot of a session, for its next request.
    pub(super) fn next_slot(&self, session: SessionId) -> Slot {
        Slot { session, slot: 0, sequence: self.sequence.wrapping_add(1), highest: 0 }
    }

    /// Sends a compound in the session that there is.
    pub(super) fn say<T>(
        &mut self,
        ways: &Ways,
        (name, is_kept): (&'static str, bool),
        put: &dyn Fn(&mut Compound<'_>),
        read: &dyn Fn(&mut Results<'_>) -> Result<T, Problem>,
    ) -> Result<Said<T>, NfsError> {
        let Some(Session { id, .. }) = self.session else {
            return Ok(Said::NotInSession(Status::BADSESSION, false));
        };
        let slot = self.next_slot(id);
        let put = |compound: &mut Compound<'_>| {
            nfs4::put_sequence(compound, &slot, is_kept);
            put(compound);
        };
        let read = |results: &mut Results<'_>| match nfs4::sequenced(results, &slot) {
            Ok(()) => Ok(Ok(nfs4::told(read(results))?)),
            Err(Problem::Refused(status)) => Ok(Err(status)),
            Err(fault) => Err(fault),
        };
        let (mut pauses, mut was_sent_again) = (Pauses::begin(), false);
        loop {
            let (answer, again) = self.send(ways, name, &put, &read).inspect_err(|_| {
                // Whether the slot's number is used is not known.
                self.session = None;
            })?;
            was_sent_again |= again;
            match answer {
                Ok(Ok(answer)) => {
                    self.sequence = slot.sequence;
                    return Ok(Said::Done(answer));
                }
                Ok(Err(Status::JUKEBOX)) if pauses.rest(MAX_NOT_READY) => {}
                Ok(Err(status)) | Err(status) => return Ok(Said::NotInSession(status, was_sent_again)),
            }
        }
    }

    /// Does what `operation` says, in a session that is made where there is none.
    pub fn call<O: Operation>(&mut self, ways: &Ways, operation: &O) -> Result<Result<O::Answer, Status>, NfsError> {
        let name = O::PROCEDURE.name();
        let put = |compound: &mut Compound<'_>| operation.put_4(compound);
        let read = |results: &mut Results<'_>| operation.read_4(results);
        self.ask(ways, (name, O::IS_REPEATABLE), &put, &read)
    }

    pub(super) fn ask<T>(
        &mut self,
        ways: &Ways,
        (call, is_repeatable): (&'static str, bool),
        put: &dyn Fn(&mut Compound<'_>),
        read: &dyn Fn(&mut Results<'_>) -> Result<T, Problem>,
    ) -> Result<Result<T, Status>, NfsError> {
        let mut sessions = 0;
        loop {
            self.establish(ways)?;
            let (status, was_sent_again) = match self.say(ways, (call, !is_repeatable), put, read)? {
                Said::Done(answer) => return Ok(answer),
                Said::NotInSession(status, was_sent_again) => (status, was_sent_again),
            };
            let is_lost = status.is_of_session();
            if !is_lost && !was_sent_again {
                return Ok(Err(status));
            }
            // Whether the slot's number is used is not known.
            self.end_session(ways);
            sessions += 1;
            let server = ways.server.clone();
            if was_sent_again && !is_repeatable {
                return Err(NfsError::DoneOrNot { server, call, status });
            }
            if !is_lost && status != Status::RETRY_UNCACHED_REP {
                return Ok(Err(status));
            }
            if sessions == MAX_SESSIONS {
                return Err(NfsError::NoSession { server, call, sessions, status });
            }
        }
    }

    /// Says something whose answer is of no use beyond what `read` makes of it. Nobody waits for a server that is not there.
    pub(super) fn bid<T>(
        &mut self,
        ways: &Ways,
        name: &'static str,
        put: &dyn Fn(&mut Compound<'_>),
        read: &dyn Fn(Reader<'_>) -> Result<T, Fault>,
    ) -> Option<T> {
        let mut caller = self.caller.take().filter(Caller::is_open)?;
        caller.hurry(FAREWELL);
        let said = caller.call((COMPOUND, name), |to| put(&mut Compound::begin(to)), read).ok()?;
        caller.hurry(ways.limits.give_up);
        self.caller = Some(caller);
        Some(said)
    }
}
