//! Compounds of a client: by whichever way there is, in its session or without.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::Open;
use crate::nfs::NfsError;
use crate::nfs::caller::Caller;
use crate::nfs::ways::{MAX_NOT_READY, Pauses, Ways, is_of_path, patience};
use crate::nfs::wire::nfs4::{
    self, Access, COMPOUND, Channel, Claim, Compound, NFS4, Problem, Results, SessionId, Slot,
};
use crate::nfs::wire::{Fault, FileHandle, Operation, Reader, StateId, Status};

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

    /// Sends a compound by any way, and once more where a connection breaks; by none where the server was silent. Tells whether it was sent more than once.
    pub(super) fn send<T>(
        &mut self,
        ways: &Ways,
        name: &'static str,
        put: &dyn Fn(&mut Compound<'_>),
        read: &dyn Fn(&mut Results<'_>) -> Result<T, Problem>,
    ) -> Result<(Result<T, Status>, bool), NfsError> {
        let (mut failed, mut sent) = (None, 0);
        for (count, route) in ways.routes.iter().chain(ways.routes.first()).enumerate() {
            if count == ways.routes.len() && matches!(failed, Some(NfsError::Silent { .. })) {
                break;
            }
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

/// A lease where the server does not say it.
const DEFAULT_LEASE_S: u32 = 60;

impl Client {
    /// Opens what is there. Waits as long as the server is not ready, or waits for clients of its life before.
    fn open_anew(
        &mut self,
        ways: &Ways,
        (handle, owner, access): (&FileHandle, u64, Access),
        name: &str,
    ) -> Result<StateId, NfsError> {
        let put = |compound: &mut Compound<'_>| nfs4::put_open_file(compound, handle, owner, access, Claim::File);
        let mut pauses = Pauses::begin();
        loop {
            match self.ask(ways, ("OPEN", true), &put, &nfs4::opened)? {
                Ok(state) => return Ok(state),
                Err(status) if pauses.rest(patience(status)) => {}
                Err(status) => return Err(pauses.refused("OPEN", name, status)),
            }
        }
    }

    /// Opens a file that is there: to read and write, or to read where that is refused.
    pub fn open(&mut self, ways: &Ways, handle: FileHandle, name: &str) -> Result<Arc<Open>, NfsError> {
        let owner = self.new_owner();
        let mut access = Access::Both;
        let opened = match self.open_anew(ways, (&handle, owner, access), name) {
            Err(NfsError::Refused { status: Status::ACCES | Status::PERM | Status::ROFS, .. }) => {
                access = Access::Read;
                self.open_anew(ways, (&handle, owner, access), name)
            }
            opened => opened,
        };
        Ok(self.keep(Open::new(handle, owner, access, opened?)))
    }

    /// What CREATE has opened.
    pub fn created(&mut self, handle: FileHandle, owner: u64, state: StateId) -> Arc<Open> {
        self.keep(Open::new(handle, owner, Access::Both, state))
    }

    fn keep(&mut self, open: Open) -> Arc<Open> {
        let open = Arc::new(open);
        self.opens.retain(|open| open.strong_count() > 0);
        self.opens.push(Arc::downgrade(&open));
        open
    }

    /// Opens a file again whose state `lost` the server does not know any more.
    pub fn open_again(&mut self, ways: &Ways, open: &Open, lost: StateId, name: &str) -> Result<(), NfsError> {
        // Where the whole client was not known, that was done with it.
        if open.state() == lost {
            open.set(self.open_anew(ways, (&open.handle, open.owner, open.access), name)?);
        }
        Ok(())
    }

    /// Says that a file is not used any more.
    pub fn close(&mut self, ways: &Ways, open: &Open) {
        let Some(Session { id, .. }) = self.session else { return };
        let slot = self.next_slot(id);
        let put = |compound: &mut Compound<'_>| {
            nfs4::put_sequence(compound, &slot, true);
            nfs4::put_close(compound, &open.handle, open.state());
        };
        let mut pauses = Pauses::begin();
        loop {
            let said = self.bid(ways, "CLOSE", &put, &|reader| {
                nfs4::told(Results::begin(reader).and_then(|mut results| nfs4::sequenced(&mut results, &slot)))
            });
            match said {
                Some(Ok(())) => self.sequence = slot.sequence,
                // Nothing was done, so the number is not used.
                Some(Err(Status::JUKEBOX)) if pauses.rest(FAREWELL) => continue,
                Some(Err(Status::JUKEBOX)) => {}
                Some(Err(_)) | None => self.session = None,
            }
            return;
        }
    }

    /// The root of all that the server exports, and for how long it remembers a client that says nothing.
    pub fn root(&mut self, ways: &Ways) -> Result<Result<(FileHandle, Duration), Status>, NfsError> {
        let answer = self.ask(ways, ("PUTROOTFH", true), &nfs4::put_root, &nfs4::root)?;
        let lease =
            |lease: Option<u32>| Duration::from_secs(lease.filter(|s| *s > 0).unwrap_or(DEFAULT_LEASE_S).into());
        Ok(answer.map(|(handle, seconds)| (handle, lease(seconds))))
    }
}

/// Data of one READ or WRITE at most, that a session is asked for.
const MAX_DATA_BYTES: u32 = 1 << 20;
/// Bytes of a reply that the server is to keep: more than any that changes something has.
const KEPT_BYTES: u32 = 2048;
/// Operations of a compound at most; the longest has six.
const OPERATIONS: u32 = 8;

impl Client {
    /// Makes sure that the server knows this client, that there is a session, and that what was open is.
    pub(super) fn establish(&mut self, ways: &Ways) -> Result<(), NfsError> {
        let mut sessions = 0;
        loop {
            if self.session.is_none() {
                let session = self.make_session(ways)?;
                (self.session, self.sequence) = (Some(session), 0);
                sessions += 1;
            }
            let (call, status) = match if self.is_settled { Ok(()) } else { self.reclaim(ways)? } {
                Ok(()) => return Ok(()),
                Err(refused) => refused,
            };
            // The server has restarted again meanwhile.
            self.session = None;
            let server = ways.server.clone();
            if !status.is_of_session() {
                return Err(NfsError::Refused { call, name: server, status });
            }
            if sessions >= MAX_SESSIONS {
                return Err(NfsError::NoSession { server, call, sessions, status });
            }
        }
    }

    /// A session of its own for another connection.
    pub fn open_session(&mut self, ways: &Ways) -> Result<Session, NfsError> {
        self.establish(ways)?;
        let session = self.make_session(ways)?;
        if !self.is_settled {
            // The server has restarted: the session of cold calls is gone with all that was open.
            self.session = None;
            self.establish(ways)?;
        }
        Ok(session)
    }

    /// CREATE_SESSION, and EXCHANGE_ID before it where the server does not know this client.
    fn make_session(&mut self, ways: &Ways) -> Result<Session, NfsError> {
        let mut pauses = Pauses::begin();
        loop {
            match self.try_session(ways)? {
                Ok(session) => {
                    // The server may have lost what it had not made durable, although connections stayed.
                    ways.make();
                    return Ok(session);
                }
                Err((_, Status::STALE_CLIENTID)) if pauses.rest(MAX_NOT_READY) => self.id = None,
                Err((_, Status::JUKEBOX)) if pauses.rest(MAX_NOT_READY) => {}
                Err((call, status)) => {
                    // The number of the next one is not certain.
                    self.id = None;
                    return Err(NfsError::Refused { call, name: ways.server.clone(), status });
                }
            }
        }
    }

    fn try_session(&mut self, ways: &Ways) -> Result<Result<Session, (&'static str, Status)>, NfsError> {
        let (id, number) = match self.id {
            Some(known) => known,
            None => {
                let (owner, verifier) = (self.owner.clone(), self.verifier);
                let put = |compound: &mut Compound<'_>| nfs4::put_exchange_id(compound, &owner, verifier);
                match self.send(ways, "EXCHANGE_ID", &put, &nfs4::exchanged_id)?.0 {
                    Ok(new) => {
                        self.is_settled = false;
                        *self.id.insert(new)
                    }
                    Err(status) => return Ok(Err(("EXCHANGE_ID", status))),
                }
            }
        };
        let asked = Channel {
            request_bytes: MAX_DATA_BYTES + MAX_HEAD_BYTES,
            reply_bytes: MAX_DATA_BYTES + MAX_HEAD_BYTES,
            kept_bytes: KEPT_BYTES,
            operations: OPERATIONS,
            slots: self.slots,
        };
        let put = |compound: &mut Compound<'_>| nfs4::put_create_session(compound, (id, number), asked);
        match self.send(ways, "CREATE_SESSION", &put, &nfs4::created_session)?.0 {
            Ok((session, channel)) => {
                self.id = Some((id, number.wrapping_add(1)));
                let slots = channel.slots.min(self.slots);
                Ok(Ok(Session { id: session, channel: Channel { slots, ..channel } }))
            }
            Err(status) => Ok(Err(("CREATE_SESSION", status))),
        }
    }

    /// Opens again what was open before the server restarted, by name of what was there, as long as it lets clients do that; what it does
    /// not is opened when it is used next. Then says that this was all. An error is the refusal of a call in the session.
    fn reclaim(&mut self, ways: &Ways) -> Result<Result<(), (&'static str, Status)>, NfsError> {
        self.opens.retain(|open| open.strong_count() > 0);
        let opens: Vec<Arc<Open>> = self.opens.iter().filter_map(Weak::upgrade).collect();
        for open in opens {
            let put = |compound: &mut Compound<'_>| {
                nfs4::put_open_file(compound, &open.handle, open.owner, open.access, Claim::Before);
            };
            match self.say_patiently(ways, "OPEN", &put, &nfs4::opened)? {
                Said::Done(Ok(state)) => open.set(state),
                Said::Done(Err(_)) => {}
                Said::NotInSession(status, _) => return Ok(Err(("OPEN", status))),
            }
        }
        let put = nfs4::put_reclaim_complete;
        match self.say_patiently(ways, "RECLAIM_COMPLETE", &put, &nfs4::completed)? {
            Said::Done(Ok(()) | Err(Status::COMPLETE_ALREADY)) => {
                self.is_settled = true;
                Ok(Ok(()))
            }
            Said::Done(Err(status)) | Said::NotInSession(status, _) => Ok(Err(("RECLAIM_COMPLETE", status))),
        }
    }

    /// The same again as long as the server is not ready for it.
    fn say_patiently<T>(
        &mut self,
        ways: &Ways,
        call: &'static str,
        put: &dyn Fn(&mut Compound<'_>),
        read: &dyn Fn(&mut Results<'_>) -> Result<T, nfs4::Problem>,
    ) -> Result<Said<T>, NfsError> {
        let mut pauses = Pauses::begin();
        loop {
            match self.say(ways, (call, true), put, read)? {
                Said::Done(Err(Status::JUKEBOX)) if pauses.rest(MAX_NOT_READY) => {}
                said => return Ok(said),
            }
        }
    }

    /// Ends the session of cold calls.
    pub(super) fn end_session(&mut self, ways: &Ways) {
        self.session.take().iter().for_each(|session| self.close_session(ways, &session.id));
    }

    /// Ends a session.
    pub fn close_session(&mut self, ways: &Ways, session: &SessionId) {
        let put = |compound: &mut Compound<'_>| nfs4::put_destroy_session(compound, session);
        self.bid(ways, "DESTROY_SESSION", &put, &|_| Ok(()));
    }

    /// Has the server forget this client. What has sessions that nobody has ended stays until its lease has passed.
    pub fn leave(&mut self, ways: &Ways) {
        self.end_session(ways);
        if let Some((client, _)) = self.id.take() {
            let put = |compound: &mut Compound<'_>| nfs4::put_destroy_client(compound, client);
            self.bid(ways, "DESTROY_CLIENTID", &put, &|_| Ok(()));
        }
    }
}
