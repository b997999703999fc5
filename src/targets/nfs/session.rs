//! Calls that block in version 4.1: who this client is to a server, the sessions that it has there, and what it has open. After a restart of
//! the server all three are made anew, under the same name.
//!
//! A call in a session is done at most once, however often it is sent: so it is sent again by another connection where one breaks.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::caller::Caller;
use super::error::NfsError;
use super::ways::{FIRST_PAUSE, MAX_GRACE, MAX_NOT_READY, MAX_PAUSE, Ways, is_of_path};
use super::wire::nfs4::{self, Access, COMPOUND, Channel, Claim, Compound, NFS4, Problem, Results, SessionId, Slot};
use super::wire::{FileHandle, Operation, StateId, Status};

/// Data of one READ or WRITE at most, and bytes beside them, that a session is asked for.
const MAX_DATA_BYTES: u32 = 1 << 20;
pub const MAX_HEAD_BYTES: u32 = 2048;
/// Bytes of a reply that the server is to keep: more than any that changes something has.
const KEPT_BYTES: u32 = 2048;
/// Operations of a compound at most; the longest has six.
const OPERATIONS: u32 = 8;
/// How often a session is made anew for one call.
const MAX_SESSIONS: u32 = 5;
/// How long the end waits for the server.
const FAREWELL: Duration = Duration::from_secs(1);
/// A lease where the server does not say it.
const DEFAULT_LEASE_S: u32 = 60;

/// A session.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    /// Its name.
    pub id: SessionId,
    /// What it takes.
    pub channel: Channel,
}

/// An open file as the server knows it.
#[derive(Debug)]
pub struct Open {
    handle: FileHandle,
    owner: u64,
    access: Access,
    state: Mutex<StateId>,
}

impl Open {
    /// Its state at present.
    pub fn state(&self) -> StateId {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: StateId) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

/// What came of a call in a session.
enum Said<T> {
    Done(Result<T, Status>),
    /// The server did not look at it. It may have done it before if it was sent more than once.
    NotInSession(Status, bool),
}

/// A client of a server.
#[derive(Debug)]
pub struct Client {
    caller: Option<Caller>,
    owner: Vec<u8>,
    verifier: u64,
    /// The server's number of this client, and that of its next CREATE_SESSION.
    id: Option<(u64, u32)>,
    /// For cold calls, which take its first slot.
    session: Option<Session>,
    sequence: u32,
    slots: u32,
    opens: Vec<Weak<Open>>,
    next_owner: u64,
}

impl Client {
    /// Asks for sessions of so many slots.
    pub fn new(slots: u32) -> Self {
        let verifier = crate::measure::monotonic_ns();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let owner = format!("plimsoll {} {} {}.{verifier}", host.trim(), std::process::id(), wall.as_nanos());
        let (caller, id, session) = (None, None, None);
        let (opens, owner) = (Vec::new(), owner.into_bytes());
        Self { caller, owner, verifier, id, session, sequence: 0, slots, opens, next_owner: 0 }
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
    fn send<T>(
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

    /// Sends a compound in the session that there is.
    fn say<T>(
        &mut self,
        ways: &Ways,
        (name, is_kept): (&'static str, bool),
        put: &dyn Fn(&mut Compound<'_>),
        read: &dyn Fn(&mut Results<'_>) -> Result<T, Problem>,
    ) -> Result<Said<T>, NfsError> {
        let Some(Session { id, .. }) = self.session else {
            return Ok(Said::NotInSession(Status::BADSESSION, false));
        };
        let slot = Slot { session: id, slot: 0, sequence: self.sequence.wrapping_add(1), highest: 0 };
        let (began, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            let put = |compound: &mut Compound<'_>| {
                nfs4::put_sequence(compound, &slot, is_kept);
                put(compound);
            };
            let read = |results: &mut Results<'_>| match nfs4::sequenced(results, &slot) {
                Ok(()) => Ok(Ok(nfs4::told(read(results))?)),
                Err(Problem::Refused(status)) => Ok(Err(status)),
                Err(fault) => Err(fault),
            };
            let (answer, was_sent_again) = self.send(ways, name, &put, &read).inspect_err(|_| {
                // Whether the slot's number is used is not known.
                self.session = None;
            })?;
            match answer {
                Ok(Ok(answer)) => {
                    self.sequence = slot.sequence;
                    return Ok(Said::Done(answer));
                }
                Ok(Err(Status::JUKEBOX)) if began.elapsed() < MAX_NOT_READY => {
                    thread::sleep(pause);
                    pause = (pause * 2).min(MAX_PAUSE);
                }
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

    fn ask<T>(
        &mut self,
        ways: &Ways,
        (name, is_repeatable): (&'static str, bool),
        put: &dyn Fn(&mut Compound<'_>),
        read: &dyn Fn(&mut Results<'_>) -> Result<T, Problem>,
    ) -> Result<Result<T, Status>, NfsError> {
        let mut status = Status::BADSESSION;
        for _ in 0..MAX_SESSIONS {
            self.establish(ways)?;
            let was_sent_again;
            (status, was_sent_again) = match self.say(ways, (name, !is_repeatable), put, read)? {
                Said::Done(answer) => return Ok(answer),
                Said::NotInSession(status, was_sent_again) => (status, was_sent_again),
            };
            self.session = None;
            // In the session that is gone it may have been done.
            if was_sent_again && !is_repeatable || !status.is_of_session() && status != Status::RETRY_UNCACHED_REP {
                break;
            }
        }
        Ok(Err(status))
    }

    /// Makes sure that the server knows this client, that there is a session, and that what was open is.
    fn establish(&mut self, ways: &Ways) -> Result<(), NfsError> {
        if self.session.is_some() {
            return Ok(());
        }
        let mut is_known = self.id.is_some();
        let session = self.make_session(ways, &mut is_known)?;
        (self.session, self.sequence) = (Some(session), 0);
        if is_known { Ok(()) } else { self.reclaim(ways) }
    }

    /// A session of its own for another connection.
    pub fn open_session(&mut self, ways: &Ways) -> Result<Session, NfsError> {
        self.establish(ways)?;
        let mut is_known = true;
        let session = self.make_session(ways, &mut is_known)?;
        if !is_known {
            // The server has restarted: the session of cold calls is gone with all that was open.
            self.session = None;
            let cold = self.make_session(ways, &mut true)?;
            (self.session, self.sequence) = (Some(cold), 0);
            self.reclaim(ways)?;
        }
        Ok(session)
    }

    /// CREATE_SESSION, and EXCHANGE_ID before it where the server does not know this client; then `is_known` becomes false.
    fn make_session(&mut self, ways: &Ways, is_known: &mut bool) -> Result<Session, NfsError> {
        let (began, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            let asked = self.try_session(ways, is_known)?;
            match asked {
                Ok(session) => return Ok(session),
                Err((_, Status::STALE_CLIENTID)) if began.elapsed() < MAX_NOT_READY => self.id = None,
                Err((_, Status::JUKEBOX)) if began.elapsed() < MAX_NOT_READY => {
                    thread::sleep(pause);
                    pause = (pause * 2).min(MAX_PAUSE);
                }
                Err((call, status)) => {
                    // The number of the next one is not certain.
                    self.id = None;
                    return Err(NfsError::Refused { call, name: ways.server.clone(), status });
                }
            }
        }
    }

    fn try_session(
        &mut self,
        ways: &Ways,
        is_known: &mut bool,
    ) -> Result<Result<Session, (&'static str, Status)>, NfsError> {
        let (id, number) = match self.id {
            Some(known) => known,
            None => {
                *is_known = false;
                let (owner, verifier) = (self.owner.clone(), self.verifier);
                let put = |compound: &mut Compound<'_>| nfs4::put_exchange_id(compound, &owner, verifier);
                match self.send(ways, "EXCHANGE_ID", &put, &nfs4::exchanged_id)?.0 {
                    Ok(new) => *self.id.insert(new),
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

    /// Opens again what was open before the server restarted: by name of what was there, as long as it lets clients do that, and
    /// otherwise as any client.
    fn reclaim(&mut self, ways: &Ways) -> Result<(), NfsError> {
        self.opens.retain(|open| open.strong_count() > 0);
        let opens: Vec<Arc<Open>> = self.opens.iter().filter_map(Weak::upgrade).collect();
        let mut left = Vec::new();
        for open in opens {
            match self.open_once(ways, (&open.handle, open.owner, open.access), Claim::Before)? {
                Ok(state) => open.set(state),
                Err(_) => left.push(open),
            }
        }
        let said =
            self.say(ways, ("RECLAIM_COMPLETE", true), &nfs4::put_reclaim_complete, &|_: &mut Results<'_>| Ok(()))?;
        if let Said::NotInSession(status, _) = said {
            return Err(NfsError::Refused { call: "RECLAIM_COMPLETE", name: ways.server.clone(), status });
        }
        left.into_iter().try_for_each(|open| {
            let state = self.open_patiently(ways, (&open.handle, open.owner, open.access), &ways.server)?;
            open.set(state);
            Ok(())
        })
    }

    /// One OPEN in the session that there is.
    fn open_once(
        &mut self,
        ways: &Ways,
        (handle, owner, access): (&FileHandle, u64, Access),
        claim: Claim,
    ) -> Result<Result<StateId, Status>, NfsError> {
        let put = |compound: &mut Compound<'_>| nfs4::put_open_file(compound, handle, owner, access, claim);
        Ok(match self.say(ways, ("OPEN", true), &put, &nfs4::opened)? {
            Said::Done(answer) => answer,
            Said::NotInSession(status, _) => Err(status),
        })
    }

    /// Waits as long as the server is not ready, or waits for clients of its life before.
    fn open_patiently(
        &mut self,
        ways: &Ways,
        what: (&FileHandle, u64, Access),
        name: &str,
    ) -> Result<StateId, NfsError> {
        let (began, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            match self.open_once(ways, what, Claim::File)? {
                Ok(state) => return Ok(state),
                Err(Status::GRACE | Status::JUKEBOX) if began.elapsed() < MAX_GRACE => {
                    thread::sleep(pause);
                    pause = (pause * 2).min(MAX_PAUSE);
                }
                Err(status) => return Err(NfsError::Refused { call: "OPEN", name: name.to_owned(), status }),
            }
        }
    }

    /// Opens a file that is there: to read and write, or to read where that is refused.
    pub fn open(&mut self, ways: &Ways, handle: FileHandle, name: &str) -> Result<Arc<Open>, NfsError> {
        self.establish(ways)?;
        let owner = self.new_owner();
        let mut access = Access::Both;
        let opened = match self.open_patiently(ways, (&handle, owner, access), name) {
            Err(NfsError::Refused { status: Status::ACCES | Status::PERM | Status::ROFS, .. }) => {
                access = Access::Read;
                self.open_patiently(ways, (&handle, owner, access), name)
            }
            opened => opened,
        };
        Ok(self.keep(Open { handle, owner, access, state: Mutex::new(opened?) }))
    }

    /// What CREATE has opened.
    pub fn created(&mut self, handle: FileHandle, owner: u64, state: StateId) -> Arc<Open> {
        self.keep(Open { handle, owner, access: Access::Both, state: Mutex::new(state) })
    }

    fn keep(&mut self, open: Open) -> Arc<Open> {
        let open = Arc::new(open);
        self.opens.retain(|open| open.strong_count() > 0);
        self.opens.push(Arc::downgrade(&open));
        open
    }

    /// Opens a file again whose state `lost` the server does not know any more.
    pub fn open_again(&mut self, ways: &Ways, open: &Open, lost: StateId, name: &str) -> Result<(), NfsError> {
        if open.state() == lost {
            // Makes a session anew where there is none any more.
            let refused = |status| NfsError::Refused { call: "OPEN", name: name.to_owned(), status };
            self.root(ways)?.map_err(refused)?;
        }
        // Where the whole client was not known, that was done with it.
        if open.state() == lost {
            open.set(self.open_patiently(ways, (&open.handle, open.owner, open.access), name)?);
        }
        Ok(())
    }

    /// Says that a file is not used any more.
    pub fn close(&mut self, ways: &Ways, open: &Open) {
        let Some(Session { id, .. }) = self.session else { return };
        self.sequence = self.sequence.wrapping_add(1);
        let slot = Slot { session: id, slot: 0, sequence: self.sequence, highest: 0 };
        let put = |compound: &mut Compound<'_>| {
            nfs4::put_sequence(compound, &slot, true);
            nfs4::put_close(compound, &open.handle, open.state());
        };
        if !self.bid(ways, "CLOSE", &put) {
            self.session = None;
        }
    }

    /// Ends a session.
    pub fn close_session(&mut self, ways: &Ways, session: &SessionId) {
        self.bid(ways, "DESTROY_SESSION", &|compound: &mut Compound<'_>| nfs4::put_destroy_session(compound, session));
    }

    /// Has the server forget this client. What has sessions that nobody has ended stays until its lease has passed.
    pub fn leave(&mut self, ways: &Ways) {
        self.session.take().iter().for_each(|session| self.close_session(ways, &session.id));
        if let Some((client, _)) = self.id.take() {
            self.bid(ways, "DESTROY_CLIENTID", &|compound: &mut Compound<'_>| {
                nfs4::put_destroy_client(compound, client)
            });
        }
    }

    /// Says something whose answer is of no use. Nobody waits for a server that is not there.
    fn bid(&mut self, ways: &Ways, name: &'static str, put: &dyn Fn(&mut Compound<'_>)) -> bool {
        let Some(mut caller) = self.caller.take().filter(Caller::is_open) else { return false };
        caller.hurry(FAREWELL);
        let is_said = caller.call((COMPOUND, name), |to| put(&mut Compound::begin(to)), |_| Ok(())).is_ok();
        caller.hurry(ways.limits.give_up);
        self.caller = is_said.then_some(caller);
        is_said
    }

    /// The root of all that the server exports, and for how long it remembers a client that says nothing.
    pub fn root(&mut self, ways: &Ways) -> Result<Result<(FileHandle, Duration), Status>, NfsError> {
        let answer = self.ask(ways, ("PUTROOTFH", true), &nfs4::put_root, &nfs4::root)?;
        let lease =
            |lease: Option<u32>| Duration::from_secs(lease.filter(|s| *s > 0).unwrap_or(DEFAULT_LEASE_S).into());
        Ok(answer.map(|(handle, seconds)| (handle, lease(seconds))))
    }
}
