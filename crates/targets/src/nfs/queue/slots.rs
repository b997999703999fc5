//! Slots of sessions: each connection has a session, and calls are sent in its slots. A call keeps its slot and number when it is sent
//! again, by whatever connection, so that the server does it once.

use crate::nfs::client::Session;
use crate::nfs::wire::Status;
use crate::nfs::wire::nfs4::{SessionId, Slot};

/// A slot that a call has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    /// Connection whose session it is of.
    pub(super) session: u32,
    /// Which of its sessions, since they are made anew.
    pub(super) life: u32,
    slot: u32,
    sequence: u32,
}

/// The session of a connection.
#[derive(Debug)]
pub(super) struct Slots {
    id: SessionId,
    life: u32,
    /// Number of the last request in each.
    sequences: Vec<u32>,
    free: Vec<u32>,
    /// Why it is of no use any more.
    pub(super) lost: Option<Status>,
    /// Sessions, this one included, in which nothing was answered yet.
    pub(super) useless: u32,
    /// The server's verifier in the last answer to a WRITE or COMMIT.
    verifier: Option<u64>,
    /// The sessions before, the last one at the end, as answers in them may still come: their names, and the verifier that was known then.
    earlier: Vec<(SessionId, Option<u64>)>,
}

/// Sessions before whose answers are still known. A server does not answer in older ones: it forgot each of those since.
const EARLIER: usize = 8;

impl Slots {
    /// Of a new session, in the place of another one that is lost.
    pub(super) fn new(session: &Session, before: Option<&Self>) -> Self {
        let slots = session.channel.slots;
        let mut earlier = before.map(|before| before.earlier.clone()).unwrap_or_default();
        earlier.extend(before.map(|before| (before.id, before.verifier.or(before.earlier.last().and_then(|it| it.1)))));
        earlier.drain(..earlier.len().saturating_sub(EARLIER));
        Self {
            id: session.id,
            life: before.map_or(0, |before| before.life.wrapping_add(1)),
            sequences: vec![0; slots as usize],
            free: (0..slots).rev().collect(),
            lost: None,
            useless: before.map_or(0, |before| before.useless) + 1,
            verifier: None,
            earlier,
        }
    }

    pub(super) fn id(&self) -> &SessionId {
        &self.id
    }

    pub(super) fn has_free(&self) -> bool {
        self.lost.is_none() && !self.free.is_empty()
    }

    /// A slot for a new request of the connection with this number.
    pub(super) fn take(&mut self, session: u32) -> Option<Held> {
        let slot = self.free.pop()?;
        let sequence = self.sequences.get_mut(slot as usize)?;
        *sequence = sequence.wrapping_add(1);
        Some(Held { session, life: self.life, slot, sequence: *sequence })
    }

    /// The server has answered in a slot, a WRITE or COMMIT with its verifier. An answer in the session before says nothing of this one.
    pub(super) fn give(&mut self, held: Held, verifier: Option<u64>) {
        if self.is_of(held) {
            self.free.push(held.slot);
            self.useless = 0;
            self.verifier = verifier.or(self.verifier);
        }
    }

    /// Whether a slot is of this session, and not of one before.
    pub(super) fn is_of(&self, held: Held) -> bool {
        held.life == self.life
    }

    /// The session before this one that a slot is of.
    fn before(&self, held: Held) -> Option<&(SessionId, Option<u64>)> {
        let age = self.life.wrapping_sub(held.life) as usize;
        self.earlier.get(self.earlier.len().checked_sub(age)?)
    }

    /// The server's last verifier before a call in this slot has no answer.
    pub(super) fn verifier_of(&self, held: Held) -> Option<u64> {
        if self.is_of(held) { self.verifier } else { self.before(held).and_then(|it| it.1) }
    }

    /// As it is written.
    pub(super) fn slot(&self, held: Held) -> Slot {
        let highest = self.sequences.len() as u32 - 1;
        let session = self.before(held).map_or(self.id, |it| it.0);
        Slot { session, slot: held.slot, sequence: held.sequence, highest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nfs::wire::nfs4::Channel;

    fn session() -> Session {
        let channel = Channel { request_bytes: 1, reply_bytes: 1, kept_bytes: 1, operations: 8, slots: 2 };
        Session { id: [7; 16], channel }
    }

    #[test]
    fn numbers_of_a_slot_go_on_and_slots_of_a_lost_session_are_not_given_back() {
        let mut slots = Slots::new(&session(), None);
        let (first, second) = (slots.take(5).unwrap(), slots.take(5).unwrap());
        assert_eq!((slots.take(5), slots.has_free()), (None, false));
        assert_eq!(slots.slot(first), Slot { session: [7; 16], slot: 0, sequence: 1, highest: 1 });
        assert_eq!(slots.useless, 1);
        slots.give(first, Some(4));
        assert_eq!(slots.useless, 0);
        let taken = slots.take(5).unwrap();
        assert_eq!(slots.slot(taken).sequence, 2);
        let mut next = Slots::new(&Session { id: [8; 16], ..session() }, Some(&slots));
        // What is answered late in the old session is told by its name, and says nothing of the new one.
        assert_eq!((next.slot(second).session, next.slot(second).slot), ([7; 16], 1));
        next.give(second, Some(9));
        assert_eq!(next.useless, 1);
        assert_eq!((next.free.len(), next.verifier_of(second), slots.verifier_of(second)), (2, Some(4), Some(4)));
        assert!(!next.is_of(second));
        let third = Slots::new(&Session { id: [9; 16], ..session() }, Some(&next));
        let of = |held| (third.slot(held).session, third.verifier_of(held));
        assert_eq!((of(second), of(next.take(5).unwrap())), (([7; 16], Some(4)), ([8; 16], Some(4))));
        next.lost = Some(Status::BADSESSION);
        assert!(!next.has_free());
    }
}
