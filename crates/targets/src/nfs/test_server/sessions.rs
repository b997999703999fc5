//! Clients of version 4.1 as the server knows them: their sessions with a cache of replies in each slot, and their open files.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::nfs::wire::Status;
use crate::nfs::wire::nfs4::{SessionId, Slot};

const STALE_STATEID: Status = Status(10023);
const BAD_STATEID: Status = Status(10025);
const NO_GRACE: Status = Status(10033);
const BADSLOT: Status = Status(10053);
const COMPLETE_ALREADY: Status = Status(10054);
const SEQ_MISORDERED: Status = Status(10063);
const CLIENTID_BUSY: Status = Status(10074);
const SEQ_FALSE_RETRY: Status = Status(10076);

/// See the module.
#[derive(Debug, Default)]
pub struct Sessions {
    /// Which of the server's lives it is.
    life: u32,
    last: u64,
    clients: HashMap<u64, Client>,
    sessions: HashMap<SessionId, Session>,
    opens: HashMap<[u8; 12], Open>,
    /// Owners that had something open in the life before.
    remembered: Vec<Vec<u8>>,
    longest_silence: Duration,
    renewals: u64,
}

#[derive(Debug)]
struct Client {
    owner: Vec<u8>,
    verifier: u64,
    /// Number of the next CREATE_SESSION, and what the last one made.
    next: u32,
    made: Option<SessionId>,
    /// Whether it has said that it reclaims no more.
    is_complete: bool,
    heard: Instant,
}

#[derive(Debug)]
struct Session {
    client: u64,
    slots: Vec<Kept>,
}

/// The last request in a slot.
#[derive(Debug, Clone, Default)]
struct Kept {
    sequence: u32,
    request: Vec<u8>,
    reply: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Open {
    client: u64,
    file: u64,
}

/// What SEQUENCE comes to.
#[derive(Debug)]
pub enum Begun {
    /// It is to be done, for this client.
    New(u64),
    /// It was done before, and was answered so.
    Again(Vec<u8>),
    Refused(Status),
}

impl Sessions {
    /// A new life, with nothing of the one before.
    pub fn restart(&mut self) {
        let owner_of = |open: &Open| self.clients.get(&open.client).map(|client| client.owner.clone());
        self.remembered = self.opens.values().filter_map(owner_of).collect();
        self.life += 1;
        self.expire();
    }

    /// Forgets all clients.
    pub fn expire(&mut self) {
        self.clients.clear();
        self.sessions.clear();
        self.opens.clear();
    }

    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    pub fn take_renewals(&mut self) -> (Duration, u64) {
        (std::mem::take(&mut self.longest_silence), std::mem::take(&mut self.renewals))
    }

    /// A compound was SEQUENCE alone.
    pub fn renewed(&mut self) {
        self.renewals += 1;
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        u64::from(self.life) << 32 | self.last
    }

    /// EXCHANGE_ID: the client, and the number of its next CREATE_SESSION.
    pub fn exchange(&mut self, owner: &[u8], verifier: u64) -> (u64, u32) {
        let known = self.clients.iter().find(|(_, client)| client.owner == owner && client.verifier == verifier);
        if let Some((id, client)) = known {
            return (*id, client.next);
        }
        let id = self.next();
        let (owner, heard) = (owner.to_vec(), Instant::now());
        self.clients.insert(id, Client { owner, verifier, next: 1, made: None, is_complete: false, heard });
        (id, 1)
    }

    /// CREATE_SESSION: its name.
    pub fn create(&mut self, id: u64, number: u32, slots: u32) -> Result<SessionId, Status> {
        let session = u128::from(self.next()).to_be_bytes();
        let client = self.clients.get_mut(&id).ok_or(Status::STALE_CLIENTID)?;
        match client.made.filter(|_| number + 1 == client.next) {
            Some(made) => return Ok(made),
            None if number != client.next => return Err(SEQ_MISORDERED),
            None => {}
        }
        (client.next, client.made) = (number + 1, Some(session));
        self.sessions.insert(session, Session { client: id, slots: vec![Kept::default(); slots as usize] });
        Ok(session)
    }

    /// SEQUENCE of a compound whose bytes are `request`.
    pub fn begin(&mut self, slot: &Slot, request: &[u8]) -> Begun {
        let Some(session) = self.sessions.get_mut(&slot.session) else { return Begun::Refused(Status::BADSESSION) };
        if let Some(client) = self.clients.get_mut(&session.client) {
            self.longest_silence = self.longest_silence.max(client.heard.elapsed());
            client.heard = Instant::now();
        }
        let Some(kept) = session.slots.get_mut(slot.slot as usize).filter(|_| slot.slot <= slot.highest) else {
            return Begun::Refused(BADSLOT);
        };
        if slot.sequence == kept.sequence.wrapping_add(1) {
            *kept = Kept { sequence: slot.sequence, request: request.to_vec(), reply: None };
            return Begun::New(session.client);
        }
        if slot.sequence != kept.sequence || kept.sequence == 0 {
            return Begun::Refused(SEQ_MISORDERED);
        }
        if request != kept.request {
            return Begun::Refused(SEQ_FALSE_RETRY);
        }
        kept.reply.clone().map_or(Begun::Refused(Status::RETRY_UNCACHED_REP), Begun::Again)
    }

    /// What was begun in a slot is not done.
    pub fn abandon(&mut self, slot: &Slot) {
        let session = self.sessions.get_mut(&slot.session);
        if let Some(kept) = session.and_then(|session| session.slots.get_mut(slot.slot as usize)) {
            *kept = Kept { sequence: slot.sequence.wrapping_sub(1), ..Kept::default() };
        }
    }

    /// Keeps a reply for when the request comes again.
    pub fn keep(&mut self, slot: &Slot, reply: &[u8]) {
        let session = self.sessions.get_mut(&slot.session);
        if let Some(kept) = session.and_then(|session| session.slots.get_mut(slot.slot as usize)) {
            kept.reply = Some(reply.to_vec());
        }
    }

    pub fn destroy_session(&mut self, session: &SessionId) -> Result<(), Status> {
        self.sessions.remove(session).map(|_| ()).ok_or(Status::BADSESSION)
    }

    pub fn destroy_client(&mut self, id: u64) -> Result<(), Status> {
        let is_busy = self.sessions.values().any(|session| session.client == id)
            || self.opens.values().any(|open| open.client == id);
        match self.clients.contains_key(&id) {
            false => Err(Status::STALE_CLIENTID),
            true if is_busy => Err(CLIENTID_BUSY),
            true => {
                self.clients.remove(&id);
                Ok(())
            }
        }
    }

    pub fn complete(&mut self, id: u64) -> Result<(), Status> {
        let client = self.clients.get_mut(&id).ok_or(Status::STALE_CLIENTID)?;
        if std::mem::replace(&mut client.is_complete, true) { Err(COMPLETE_ALREADY) } else { Ok(()) }
    }

    /// OPEN, as a reclaim or anew: its state.
    pub fn open(&mut self, id: u64, file: u64, is_reclaim: bool, may_reclaim: bool) -> Result<[u8; 12], Status> {
        let client = self.clients.get(&id).ok_or(Status::STALE_CLIENTID)?;
        match (is_reclaim, client.is_complete) {
            (true, false) if may_reclaim && self.remembered.contains(&client.owner) => {}
            (true, _) => return Err(NO_GRACE),
            (false, false) => return Err(Status::GRACE),
            (false, true) => {}
        }
        let mut state = [0; 12];
        state[..4].copy_from_slice(&self.life.to_be_bytes());
        let number = self.next();
        state[4..].copy_from_slice(&number.to_be_bytes());
        self.opens.insert(state, Open { client: id, file });
        Ok(state)
    }

    /// Whether a client has a file open by this state.
    pub fn check(&self, id: u64, file: u64, state: &[u8]) -> Result<(), Status> {
        let open = <[u8; 12]>::try_from(state).ok().and_then(|state| self.opens.get(&state));
        if open.is_some_and(|open| open.client == id && open.file == file) {
            return Ok(());
        }
        Err(if state.starts_with(&self.life.to_be_bytes()) { BAD_STATEID } else { STALE_STATEID })
    }

    pub fn close(&mut self, state: &[u8]) {
        self.opens.retain(|open, _| open != state);
    }
}
