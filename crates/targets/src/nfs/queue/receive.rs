//! What comes over connections, and what becomes of calls whose connection is lost.

use std::io::{self, Read};

use super::calls::{NONE, What};
use super::connection::{Connection, Life};
use super::links::Links;
use super::replies::Replies;
use crate::nfs::error::NfsError;
use crate::nfs::wire::Fault;

/// Data that are still to come go straight to their place when they are at least so many.
const MIN_STRAIGHT_BYTES: usize = 16 << 10;

impl Links {
    /// Takes the replies that have come.
    pub(super) fn receive(&mut self, number: usize) {
        loop {
            let connection = &mut self.connections[number];
            let Some(mut socket) = connection.socket() else { return };
            let straight = connection.records.data_next();
            let straight = if straight >= MIN_STRAIGHT_BYTES { straight } else { 0 };
            let received = match connection.reading.filter(|_| straight > 0) {
                Some(reading) => {
                    let at = self.work.calls.get(reading.call).arena_offset + u64::from(reading.done_bytes);
                    self.work.memory.receive(socket, at, straight, &mut self.buffer)
                }
                None => socket.read(&mut self.buffer),
            };
            let received = match received {
                Ok(0) => return self.lose(number, "the server closed the connection".to_owned()),
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return self.lose(number, error.to_string()),
            };
            connection.heard_ns = self.now_ns;
            if connection.life == Life::Silent {
                connection.life = Life::Up;
                self.loads[number].is_usable = true;
            }
            let is_straight = connection.reading.is_some() && straight > 0;
            let straight = if is_straight { straight.min(received) } else { 0 };
            let Connection { records, reading, writer, route, verifier, .. } = connection;
            if let Some(reading) = reading.as_mut().filter(|_| straight > 0) {
                reading.done_bytes += straight as u32;
            }
            let mut replies = Replies {
                work: &mut self.work,
                writer,
                reading,
                verifier,
                load: &mut self.loads[number].calls,
                connection: number as u32,
                path: route.to,
                now_ns: self.now_ns,
            };
            let mut fed = if straight > 0 { records.took_data(straight, &mut replies) } else { Ok(()) };
            fed = fed.and_then(|()| records.feed(&self.buffer[..received - straight], &mut replies));
            if let Err(fault) = fed {
                return self.garbage(number, fault);
            }
            if received - straight < self.buffer.len() {
                return;
            }
        }
    }

    /// A server that does not keep to the protocol is not asked again: what it does with writes cannot be known either.
    fn garbage(&mut self, number: usize, fault: Fault) {
        let path = self.connections[number].route.to;
        self.work.fail(NfsError::garbage(path, "a call", fault));
        self.lose(number, "what came is no reply".to_owned());
    }

    /// A connection is of no use any more. What it owes is asked for elsewhere, unless that could do harm.
    pub(super) fn lose(&mut self, number: usize, why: String) {
        let path = self.connections[number].route.to;
        self.take_back(number, &why);
        if !self.doubt(number) {
            self.work.fail(NfsError::WriteUnanswered { path, why: why.clone() });
        }
        self.loads[number].is_usable = false;
        if self.connections[number].life == Life::Up
            && let Some(group) = self.group_of(number)
        {
            self.groups[group].up_ns = self.now_ns;
        }
        // Closing a descriptor ends its events.
        drop(self.connections[number].close(why, self.now_ns));
    }

    /// Takes back the calls that a connection owes answers to. A session does them once, whatever they are; else writes stay.
    pub(super) fn take_back(&mut self, number: usize, why: &str) {
        let is_once = self.work.sessions[number].is_some();
        let owed: Vec<(u32, What)> = self
            .work
            .calls
            .in_flight()
            .filter(|(_, call)| call.connection == number as u32 && (is_once || call.what != What::Write))
            .map(|(place, call)| (place, call.what))
            .collect();
        self.connections[number].why = Some(why.to_owned());
        for (place, what) in owed {
            self.loads[number].calls = self.loads[number].calls.saturating_sub(1);
            self.connections[number].writer.failed(self.now_ns);
            if what == What::Probe {
                self.work.calls.end(place);
                continue;
            }
            let call = self.work.calls.get_mut(place);
            (call.connection, call.was_owed) = (NONE, true);
            let of = call.held.and_then(|held| Some((held, self.work.sessions[held.session as usize].as_ref()?)));
            match of {
                Some((held, slots)) if !slots.is_of(held) => self.work.leave_session(place, true),
                _ => self.work.again.push((0, place)),
            }
        }
        // Data on the way to a call that was taken back are of no use.
        if let Some(reading) = self.connections[number].reading
            && self.work.calls.get(reading.call).connection != number as u32
        {
            self.connections[number].reading = None;
        }
    }
}
