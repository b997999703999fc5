//! Calls in flight and the requests that they are parts of.

use super::Held;
use crate::io::{Completion, Request};
use std::io;

/// No connection, no request.
pub(super) const NONE: u32 = u32::MAX;

/// What a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Read,
    Write,
    Commit,
    /// Nothing, as a request asks.
    Null,
    /// Nothing, so that the server does not forget this client.
    Renew,
    /// Nothing, to see what calls cost that do nothing.
    Probe,
}

impl What {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Read => "READ",
            Self::Write => "WRITE",
            Self::Commit => "COMMIT",
            Self::Renew => "SEQUENCE",
            Self::Null | Self::Probe => "NULL",
        }
    }
}

/// One call: a request, or a part of it that fits into one.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) what: What,
    /// Which request it is a part of.
    pub(super) request: u32,
    /// Which file.
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) arena_offset: u64,
    pub(super) bytes: u32,
    /// Number of the call as it was last sent.
    xid: u32,
    /// Connection that it is in flight on.
    pub(super) connection: u32,
    /// When it was last sent.
    pub(super) sent_ns: u64,
    /// Since when it is owed an answer of any kind, over whichever connections it was sent.
    pub(super) owed_ns: Option<u64>,
    /// When the server first said that it is not ready for it.
    pub(super) not_ready_ns: Option<u64>,
    /// Pause before it is sent once more.
    pub(super) pause_ns: u64,
    /// Whether another connection did not answer it.
    pub(super) was_owed: bool,
    /// Its number among all that happens to the file: of a write when it was first sent, of a COMMIT when it was sent, 0 before.
    pub(super) order: u64,
    /// Of a COMMIT: the mount's count of connections when it was sent.
    pub(super) made: u64,
    /// Of a COMMIT: it is answered, and asked for again once lost writes have been sent again.
    pub(super) waits: bool,
    /// Of a COMMIT: it is to make room for more writes.
    pub(super) is_for_room: bool,
    /// The slot that it has in a session, until it is answered there.
    pub(super) held: Option<Held>,
    /// How often it was sent in this slot.
    pub(super) sends: u32,
    /// Of a write whose connection broke: the server's verifier before, and the number of a COMMIT from which on its answer counts.
    pub(super) doubt: Option<Doubt>,
}

/// Whether a write was done is not known, nor whether it still will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Doubt {
    /// The life of the server that it was sent in.
    pub(super) verifier: u64,
    /// COMMITs with a higher number were sent afterwards.
    pub(super) since: u64,
    /// Connection that it was sent by.
    pub(super) connection: u32,
}

/// All calls, found by the number that replies have.
#[derive(Debug, Default)]
pub(super) struct Calls {
    all: Vec<Call>,
    free: Vec<u32>,
    /// Places of calls by the low bits of their numbers; its length is a power of two.
    places: Vec<u32>,
    next_xid: u32,
}

impl Calls {
    pub(super) fn new(expected: usize, first_xid: u32) -> Self {
        let mut calls = Self { next_xid: first_xid, ..Self::default() };
        calls.all.reserve(expected);
        calls.free.reserve(expected);
        calls.places.resize((expected.max(16) * 4).next_power_of_two(), NONE);
        calls
    }

    /// A new call, not in flight yet.
    pub(super) fn add(
        &mut self,
        what: What,
        request: u32,
        file: u32,
        offset: u64,
        arena_offset: u64,
        bytes: u32,
    ) -> u32 {
        let call = Call {
            what,
            request,
            file,
            offset,
            arena_offset,
            bytes,
            xid: 0,
            connection: NONE,
            sent_ns: 0,
            owed_ns: None,
            not_ready_ns: None,
            pause_ns: 0,
            was_owed: false,
            order: 0,
            made: 0,
            waits: false,
            is_for_room: false,
            held: None,
            sends: 0,
            doubt: None,
        };
        if let Some(place) = self.free.pop() {
            self.all[place as usize] = call;
            return place;
        }
        self.all.push(call);
        if self.all.len() * 4 > self.places.len() {
            self.widen();
        }
        (self.all.len() - 1) as u32
    }

    fn widen(&mut self) {
        let length = (self.all.len() * 8).next_power_of_two();
        self.places.clear();
        self.places.resize(length, NONE);
        for (place, call) in (0..).zip(&self.all) {
            if call.connection != NONE {
                // What did not meet in a table does not meet in one that is a multiple of it.
                self.places[call.xid as usize & (length - 1)] = place;
            }
        }
    }

    /// Gives a call that goes out by `connection` a number that no other call in flight has, nor had for long: servers take a call
    /// with the number of an older one for that one's repetition.
    pub(super) fn number(&mut self, place: u32, connection: u32, now_ns: u64) -> u32 {
        let mask = self.places.len() - 1;
        loop {
            let xid = self.next_xid;
            self.next_xid = xid.wrapping_add(1);
            let slot = xid as usize & mask;
            let is_taken = self
                .all
                .get(self.places[slot] as usize)
                .is_some_and(|other| other.connection != NONE && other.xid as usize & mask == slot);
            if !is_taken {
                self.places[slot] = place;
                let call = &mut self.all[place as usize];
                (call.xid, call.connection, call.sent_ns) = (xid, connection, now_ns);
                call.owed_ns.get_or_insert(now_ns);
                return xid;
            }
        }
    }

    /// The call in flight on `connection` with this number.
    pub(super) fn find(&self, xid: u32, connection: u32) -> Option<u32> {
        let place = self.places[xid as usize & (self.places.len() - 1)];
        self.all.get(place as usize).filter(|call| call.xid == xid && call.connection == connection).map(|_| place)
    }

    pub(super) fn get(&self, place: u32) -> &Call {
        &self.all[place as usize]
    }

    pub(super) fn get_mut(&mut self, place: u32) -> &mut Call {
        &mut self.all[place as usize]
    }

    /// The call is over, whatever came of it.
    pub(super) fn end(&mut self, place: u32) {
        let call = &mut self.all[place as usize];
        (call.connection, call.owed_ns) = (NONE, None);
        self.free.push(place);
    }

    /// Calls that are owed an answer since they were first sent, in flight or not: of those that were taken back too.
    pub(super) fn owed(&self) -> impl Iterator<Item = (&Call, u64)> {
        self.all.iter().filter_map(|call| Some((call, call.owed_ns?)))
    }

    /// Calls in flight, with their places.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = (u32, &Call)> {
        (0..).zip(&self.all).filter(|(_, call)| call.connection != NONE)
    }
}

/// A request that has not finished.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub(super) request: Request,
    /// Bytes of it that are parts already.
    pub(super) cut_bytes: u32,
    /// Parts that have not ended.
    pub(super) parts: u32,
    /// Bytes from its beginning that were moved, once all parts have ended.
    pub(super) moved_bytes: u32,
    /// The first error.
    pub(super) errno: i32,
    /// When it was pushed, in which turn, and how many were pushed before.
    pub(super) pushed_ns: u64,
    pub(super) turn: u64,
    pub(super) number: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Requests {
    all: Vec<Pending>,
    free: Vec<u32>,
}

impl Requests {
    pub(super) fn add(&mut self, pending: Pending) -> u32 {
        if let Some(place) = self.free.pop() {
            self.all[place as usize] = pending;
            return place;
        }
        self.all.push(pending);
        (self.all.len() - 1) as u32
    }

    pub(super) fn get_mut(&mut self, place: u32) -> &mut Pending {
        &mut self.all[place as usize]
    }

    /// A part of it has ended: what it comes to, if that was the last one.
    pub(super) fn part_ended(&mut self, place: u32) -> Option<Completion> {
        self.all[place as usize].parts -= 1;
        self.finish_if_ended(place)
    }

    /// What a request comes to, if all of it was cut and all parts have ended.
    pub(super) fn finish_if_ended(&mut self, place: u32) -> Option<Completion> {
        let pending = &self.all[place as usize];
        if pending.parts > 0 || pending.cut_bytes < pending.request.bytes {
            return None;
        }
        let moved = match pending.errno {
            0 => Ok(pending.moved_bytes),
            errno => Err(io::Error::from_raw_os_error(errno)),
        };
        let token = pending.request.token;
        self.free.push(place);
        Some(Completion::new(token, moved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_find_their_call_by_number_and_connection_only() {
        let mut calls = Calls::new(2, u32::MAX - 1);
        let places: Vec<u32> = (0..100).map(|_| calls.add(What::Read, 0, 0, 0, 0, 0)).collect();
        let numbers: Vec<u32> = places.iter().map(|place| calls.number(*place, place % 3, 5)).collect();
        for (place, xid) in places.iter().zip(&numbers) {
            assert_eq!(calls.find(*xid, place % 3), Some(*place));
            assert_eq!(calls.find(*xid, 3), None);
        }
        calls.end(places[7]);
        assert_eq!(calls.find(numbers[7], 1), None);
        assert_eq!(calls.in_flight().count(), 99);
    }

    #[test]
    fn numbers_go_on_round_a_call_that_stays_and_never_repeat_soon() {
        let mut calls = Calls::new(2, 0);
        let stays = calls.add(What::Read, 0, 0, 0, 0, 0);
        let number = calls.number(stays, 0, 0);
        let mut last = number;
        for _ in 0..1_000 {
            let other = calls.add(What::Write, 0, 0, 0, 0, 0);
            let next = calls.number(other, 0, 0);
            assert!(next > last);
            assert_eq!((calls.find(next, 0), calls.find(number, 0)), (Some(other), Some(stays)));
            calls.end(other);
            last = next;
        }
    }
}
