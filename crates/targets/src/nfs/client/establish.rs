//! The server knows this client, there is a session, and what was open is: or else that is made so.

use std::sync::{Arc, Weak};

use super::calls::{Client, MAX_HEAD_BYTES, MAX_SESSIONS, Said, Session};
use super::open::Open;
use crate::nfs::error::NfsError;
use crate::nfs::ways::{MAX_NOT_READY, Pauses, Ways};
use crate::nfs::wire::Status;
use crate::nfs::wire::nfs4::{self, Channel, Claim, Compound, Results, SessionId};

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
