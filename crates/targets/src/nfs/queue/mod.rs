//! Calls in flight of one thread, over connections of its own.
//!
//! Requests become calls, which the connection with the fewest calls in flight takes as long as it has room. Calls for one connection
//! are written behind each other and handed to the kernel at once; replies are received as many as there are, and copied to
//! where they belong, so that nothing can come to memory of a request that is over.

mod calls;
mod connection;
mod form;
mod links;
mod lost;
mod memory;
mod receive;
mod replies;
mod slots;
mod tend;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use calls::{NONE, Pending, What};
use connection::Life;
use links::{Group, LANES, Links};

use super::error::NfsError;
use super::open_file::OpenFile;
use crate::io::{Arena, Completion, Direction, Patience, Request, VirtualQueue, Waker};
use measure::{ChannelCounter, monotonic_ns};

/// One call in so many is followed by one that asks for nothing.
const CALLS_PER_PROBE: u32 = 100;
/// How often it is looked whether other threads let writes go on.
const LOOK: Duration = Duration::from_millis(1);

/// See the module.
pub struct NfsQueue {
    links: Links,
    in_flight: u32,
    /// Number of the present turn of sending.
    turn: u64,
    /// Requests that were pushed.
    pushed: u64,
    to_probe: u32,
    /// Connection, group and file of a call that asks for nothing and is still to be sent.
    probe: Option<(usize, usize, u32)>,
    /// When connections are looked after next.
    tend_ns: u64,
    /// A connection that is kept for a call that asks for nothing until that is answered.
    held: Option<usize>,
}

impl NfsQueue {
    /// Connects for `files`, with as many connections as their addresses say.
    ///
    /// # Errors
    /// The first connection that cannot be made.
    pub(super) fn open(files: Vec<Arc<OpenFile>>, arena: Arc<Arena>, depth: u32) -> Result<Self, NfsError> {
        let links = Links::open(files, arena, depth)?;
        Ok(Self {
            links,
            in_flight: 0,
            turn: 0,
            pushed: 0,
            to_probe: CALLS_PER_PROBE,
            probe: None,
            tend_ns: 0,
            held: None,
        })
    }

    /// Turns requests into calls as long as connections have room, and hands these to the kernel.
    fn send(&mut self) {
        self.turn += 1;
        // The connection had no idle moment: it is asked as busy as it is.
        self.send_probe();
        self.send_again();
        for group in 0..self.links.groups.len() {
            let mut is_blocked = [false; LANES];
            while let Some((lane, request)) = self.next_waiting(group, is_blocked) {
                let pending = *self.links.work.requests.get_mut(request);
                if pending.errno != 0 {
                    // What is left of it is not worth asking for.
                    self.links.work.requests.get_mut(request).cut_bytes = pending.request.bytes;
                    self.links.groups[group].waiting[lane].pop_front();
                    self.links.work.finished.extend(self.links.work.requests.finish_if_ended(request));
                    continue;
                }
                let Some(connection) = self.links.choose(group, true) else { break };
                let Request { direction, file, .. } = pending.request;
                let may_go = match direction {
                    Direction::Read => self.links.work.may_read(file),
                    Direction::Write => self.links.may_write(file),
                    Direction::Sync | Direction::Nothing => true,
                };
                if !may_go {
                    is_blocked[lane] = true;
                    continue;
                }
                let Pending {
                    request: Request { direction, file, file_offset, arena_offset, bytes, .. },
                    cut_bytes,
                    ..
                } = pending;
                let (what, most) = match direction {
                    Direction::Read => (What::Read, self.links.groups[group].read_bytes),
                    Direction::Write => (What::Write, self.links.groups[group].write_bytes),
                    Direction::Sync => (What::Commit, u32::MAX),
                    Direction::Nothing => (What::Null, u32::MAX),
                };
                let part = (bytes - cut_bytes).min(most);
                let done = u64::from(cut_bytes);
                let call =
                    self.links.work.calls.add(what, request, file, file_offset + done, arena_offset + done, part);
                if cut_bytes == 0 && self.turn > pending.turn {
                    let waited_ns = self.links.now_ns.saturating_sub(pending.pushed_ns);
                    let writer = &mut self.links.connections[connection].writer;
                    writer.count(ChannelCounter::Queued, 1);
                    writer.count(ChannelCounter::QueuedNs, waited_ns);
                }
                let pending = self.links.work.requests.get_mut(request);
                pending.cut_bytes += part;
                pending.parts += 1;
                if pending.cut_bytes >= bytes {
                    self.links.groups[group].waiting[lane].pop_front();
                }
                self.to_probe = self.to_probe.saturating_sub(1);
                if self.to_probe == 0 && self.probe.is_none() {
                    self.probe = Some((connection, group, file));
                }
                self.links.write(connection, group, call);
            }
        }
        self.links.send_written();
    }

    /// Of what waits in lanes that are not blocked, what came first, with its lane.
    fn next_waiting(&mut self, group: usize, is_blocked: [bool; LANES]) -> Option<(usize, u32)> {
        let Links { groups, work, .. } = &mut self.links;
        let fronts = groups[group].waiting.iter().zip(0..).filter(|(_, lane)| !is_blocked[*lane]);
        let fronts = fronts.filter_map(|(waiting, lane)| Some((lane, *waiting.front()?)));
        fronts.min_by_key(|(_, request)| work.requests.get_mut(*request).number)
    }

    /// Sends the call that asks for nothing, if it is time for one.
    fn send_probe(&mut self) {
        let Some((connection, group, file)) = self.probe.take() else { return };
        self.to_probe = CALLS_PER_PROBE;
        if self.links.loads[connection].is_usable {
            let probe = self.links.work.calls.add(What::Probe, NONE, file, 0, 0, 0);
            self.links.write(connection, group, probe);
        }
    }

    /// A connection that was kept for a call that asks for nothing takes others once that is answered.
    fn let_go(&mut self) {
        if let Some(connection) = self.held.take_if(|connection| self.links.loads[*connection].calls == 0) {
            self.links.loads[connection].is_usable = self.links.connections[connection].life == Life::Up;
        }
    }

    /// Sends calls that are to be sent again and whose time has come.
    fn send_again(&mut self) {
        let mut at = 0;
        while let Some((due_ns, call)) = self.links.work.again.get(at).copied() {
            let group = self.links.work.files[self.links.work.calls.get(call).file as usize].group;
            let may_go = due_ns <= self.links.now_ns && self.links.work.may_go_again(call);
            let wants_slot = self.links.work.calls.get(call).held.is_none();
            match may_go.then(|| self.links.choose(group, wants_slot)).flatten() {
                Some(connection) => {
                    self.links.work.again.swap_remove(at);
                    if std::mem::take(&mut self.links.work.calls.get_mut(call).was_owed) {
                        self.links.connections[connection].writer.count(ChannelCounter::Retries, 1);
                    }
                    self.links.write(connection, group, call);
                }
                None => at += 1,
            }
        }
    }

    fn check(&self) -> io::Result<()> {
        self.links.work.failed.clone().map_or(Ok(()), |error| Err(error.into()))
    }
}

impl VirtualQueue for NfsQueue {
    fn push(&mut self, request: Request) -> io::Result<()> {
        self.check()?;
        self.links.work.memory.assert_inside(request.arena_offset, request.bytes);
        let group = self.links.work.files[request.file as usize].group;
        let is_of_data = matches!(request.direction, Direction::Read | Direction::Write);
        self.in_flight += 1;
        if is_of_data && request.bytes == 0 {
            self.links.work.finished.push(Completion::new(request.token, Ok(0)));
            return Ok(());
        }
        let request = Request { bytes: if is_of_data { request.bytes } else { 0 }, ..request };
        let pending = Pending {
            request,
            cut_bytes: 0,
            parts: 0,
            moved_bytes: request.bytes,
            errno: 0,
            pushed_ns: self.links.now_ns,
            turn: self.turn + 1,
            number: self.pushed,
        };
        self.pushed += 1;
        let place = self.links.work.requests.add(pending);
        let lane = usize::from(matches!(request.direction, Direction::Write | Direction::Sync));
        self.links.groups[group].waiting[lane].push_back(place);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.check()?;
        self.links.now_ns = monotonic_ns();
        self.send();
        self.check()
    }

    fn wait(&mut self, patience: Patience, done: &mut Vec<Completion>) -> io::Result<()> {
        self.flush()?;
        let patience = match patience {
            Patience::Until(time) if self.links.work.finished.is_empty() => {
                let due_ns = self
                    .links
                    .work
                    .again
                    .iter()
                    .map(|(due_ns, _)| *due_ns)
                    .filter(|due_ns| *due_ns > self.links.now_ns)
                    .min();
                let until_ns = self.tend_ns.min(due_ns.unwrap_or(u64::MAX));
                let time = if self.links.waits_for_others() { time.min(LOOK) } else { time };
                time.min(Duration::from_nanos(until_ns.saturating_sub(self.links.now_ns)))
            }
            Patience::Until(_) | Patience::Now => Duration::ZERO,
        };
        self.links.take_events(patience)?;
        if self.links.now_ns >= self.tend_ns {
            self.tend_ns = self.links.tend();
        }
        self.links.heal();
        self.let_go();
        // What had no room may have it now.
        let waits = |group: &Group| group.waiting.iter().any(|lane| !lane.is_empty());
        if !self.links.work.again.is_empty() || self.links.groups.iter().any(waits) {
            self.send();
        }
        // Best while nothing else is in flight on the connection: then it waits for nothing but itself, and nothing is sent there until
        // it is answered.
        self.let_go();
        if let Some((connection, ..)) = self.probe
            && self.links.loads[connection].calls == 0
            && self.links.loads[connection].is_usable
        {
            self.send_probe();
            self.links.send_written();
            self.links.loads[connection].is_usable = false;
            self.held = Some(connection);
        }
        self.check()?;
        self.in_flight -= self.links.work.finished.len() as u32;
        done.append(&mut self.links.work.finished);
        Ok(())
    }

    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn waker(&self) -> Waker {
        Arc::clone(&self.links.event).into()
    }
}
