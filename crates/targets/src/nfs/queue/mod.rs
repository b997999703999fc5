//! Calls in flight of one thread, over connections of its own.
//!
//! Requests become calls, which the connection with the fewest calls in flight takes as long as it has room. Calls for one connection
//! are written behind each other and handed to the kernel at once; replies are received as many as there are, and copied to
//! where they belong, so that nothing can come to memory of a request that is over.

mod calls;
mod form;
mod links;
mod lost;
mod memory;
mod replies;

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use calls::{NONE, Pending, What};
use links::{Group, LANES, Links};

use super::{NfsError, OpenFile};
use crate::io::{Arena, Completion, Direction, Patience, Request, VirtualQueue, Waker};
use crate::nfs::client::Session;
use crate::nfs::connect::{Route, begin, made};
use crate::nfs::mount::NfsMount;
use crate::nfs::wire::nfs4::{SessionId, Slot};
use crate::nfs::wire::{Records, Status};
use measure::os::TcpInfo;
use measure::{ChannelCounter, ChannelName, ChannelWriter, monotonic_ns};
use model::record::ChannelKind;

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
                    Direction::Sync | Direction::Discard | Direction::Nothing => true,
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
                    Direction::Discard | Direction::Nothing => (What::Null, u32::MAX),
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
        if request.direction == Direction::Discard {
            // NFS version 3 has no such call.
            let refused = Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
            self.links.work.finished.push(Completion::new(request.token, refused));
            return Ok(());
        }
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

// Slots of sessions: each connection has a session, and calls are sent in its slots. A call keeps its slot and number when it is sent
// again, by whatever connection, so that the server does it once.

/// A slot that a call has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    /// Connection whose session it is of.
    session: u32,
    /// Which of its sessions, since they are made anew.
    life: u32,
    slot: u32,
    sequence: u32,
}

/// The session of a connection.
#[derive(Debug)]
struct Slots {
    id: SessionId,
    life: u32,
    /// Number of the last request in each.
    sequences: Vec<u32>,
    free: Vec<u32>,
    /// Why it is of no use any more.
    lost: Option<Status>,
    /// Sessions, this one included, in which nothing was answered yet.
    useless: u32,
    /// The server's verifier in the last answer to a WRITE or COMMIT.
    verifier: Option<u64>,
    /// The sessions before, the last one at the end, as answers in them may still come: their names, and the verifier that was known then.
    earlier: Vec<(SessionId, Option<u64>)>,
}

/// Sessions before whose answers are still known. A server does not answer in older ones: it forgot each of those since.
const EARLIER: usize = 8;

impl Slots {
    /// Of a new session, in the place of another one that is lost.
    fn new(session: &Session, before: Option<&Self>) -> Self {
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

    fn id(&self) -> &SessionId {
        &self.id
    }

    fn has_free(&self) -> bool {
        self.lost.is_none() && !self.free.is_empty()
    }

    /// A slot for a new request of the connection with this number.
    fn take(&mut self, session: u32) -> Option<Held> {
        let slot = self.free.pop()?;
        let sequence = self.sequences.get_mut(slot as usize)?;
        *sequence = sequence.wrapping_add(1);
        Some(Held { session, life: self.life, slot, sequence: *sequence })
    }

    /// The server has answered in a slot, a WRITE or COMMIT with its verifier. An answer in the session before says nothing of this one.
    fn give(&mut self, held: Held, verifier: Option<u64>) {
        if self.is_of(held) {
            self.free.push(held.slot);
            self.useless = 0;
            self.verifier = verifier.or(self.verifier);
        }
    }

    /// Whether a slot is of this session, and not of one before.
    fn is_of(&self, held: Held) -> bool {
        held.life == self.life
    }

    /// The session before this one that a slot is of.
    fn before(&self, held: Held) -> Option<&(SessionId, Option<u64>)> {
        let age = self.life.wrapping_sub(held.life) as usize;
        self.earlier.get(self.earlier.len().checked_sub(age)?)
    }

    /// The server's last verifier before a call in this slot has no answer.
    fn verifier_of(&self, held: Held) -> Option<u64> {
        if self.is_of(held) { self.verifier } else { self.before(held).and_then(|it| it.1) }
    }

    /// As it is written.
    fn slot(&self, held: Held) -> Slot {
        let highest = self.sequences.len() as u32 - 1;
        let session = self.before(held).map_or(self.id, |it| it.0);
        Slot { session, slot: held.slot, sequence: held.sequence, highest }
    }
}

/// Calls are written no further ahead of what the kernel takes than this, in bytes.
const MAX_UNSENT_BYTES: usize = 256 << 10;
/// Pauses between attempts to reach a server again: the first, and the longest.
const FIRST_RETRY_NS: u64 = 100_000_000;
const MAX_RETRY_NS: u64 = 5_000_000_000;
/// What is counted about connections beside requests.
const KEEPS: &[ChannelCounter] = &[
    ChannelCounter::Queued,
    ChannelCounter::QueuedNs,
    ChannelCounter::Retries,
    ChannelCounter::Reconnects,
    ChannelCounter::SegmentsResent,
    ChannelCounter::BusyNs,
    ChannelCounter::RwndLimitedNs,
    ChannelCounter::RoomCommits,
    ChannelCounter::ResentWrites,
    ChannelCounter::ResentBytes,
];

/// Pauses between attempts, each twice as long as the one before up to 5 s. Nothing sleeps: a queue has others to serve meanwhile.
#[derive(Debug)]
struct Backoff {
    pause_ns: u64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { pause_ns: FIRST_RETRY_NS }
    }
}

impl Backoff {
    /// When to try again after an attempt that failed now.
    fn retry_ns(&mut self, now_ns: u64) -> u64 {
        let retry_ns = now_ns + self.pause_ns;
        self.pause_ns = (self.pause_ns * 2).min(MAX_RETRY_NS);
        retry_ns
    }
}

/// What servers have forgotten could not be made good.
#[derive(Debug)]
struct Stuck {
    since_ns: u64,
    /// When that is tried again.
    retry_ns: u64,
    backoff: Backoff,
}

/// How a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// Calls can be sent.
    Up,
    /// It owes answers and has been silent for long: nothing more is sent there.
    Silent,
    /// Being made, until then at most.
    Connecting { until_ns: u64 },
    /// Broken; made again then.
    Down { retry_ns: u64 },
}

/// A read whose data are coming.
#[derive(Debug, Clone, Copy)]
struct ReadInProgress {
    call: u32,
    done_bytes: u32,
    is_end: bool,
}

#[derive(Debug)]
struct Connection {
    route: Route,
    life: Life,
    socket: Option<TcpStream>,
    /// Calls that the kernel has not taken yet, from `sent_bytes` on.
    out: Vec<u8>,
    sent_bytes: usize,
    records: Records,
    data_max: u32,
    reading: Option<ReadInProgress>,
    writer: ChannelWriter,
    /// When something last came, or when it began to owe answers.
    heard_ns: u64,
    /// Whether a wake-up was asked for when it takes more.
    waits_to_send: bool,
    /// Whether it is on the list of those with something to send.
    is_listed: bool,
    backoff: Backoff,
    /// The server's verifier in the last answer to a WRITE or COMMIT.
    verifier: Option<u64>,
    /// Why it was last lost.
    why: Option<String>,
    tcp: TcpInfo,
}

impl Connection {
    /// Begins to connect. `number` is that of the connection on its path, from 0.
    fn begin(mount: &NfsMount, route: Route, number: u32, data_max: u32, until_ns: u64) -> io::Result<Self> {
        let socket = begin(route)?;
        let writer = mount.channels().open(ChannelName {
            kind: ChannelKind::Connection,
            of: mount.ways().server.clone(),
            within: Some(route.to.to_string()),
            name: (number + 1).to_string(),
            keeps: KEEPS,
        });
        Ok(Self {
            route,
            life: Life::Connecting { until_ns },
            socket: Some(socket),
            out: Vec::new(),
            sent_bytes: 0,
            records: Records::new(data_max),
            data_max,
            reading: None,
            writer,
            heard_ns: 0,
            waits_to_send: false,
            is_listed: false,
            backoff: Backoff::default(),
            verifier: None,
            why: None,
            tcp: TcpInfo::default(),
        })
    }

    fn socket(&self) -> Option<&TcpStream> {
        self.socket.as_ref()
    }

    /// Whether more calls may be written.
    fn has_room(&self) -> bool {
        self.out.len() - self.sent_bytes < MAX_UNSENT_BYTES
    }

    /// Whether it was made.
    fn made(&mut self, now_ns: u64) -> io::Result<()> {
        made(self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?)?;
        self.life = Life::Up;
        self.heard_ns = now_ns;
        self.backoff = Backoff::default();
        Ok(())
    }

    /// Hands the kernel what it takes. True where nothing is left.
    fn send(&mut self) -> io::Result<bool> {
        let Some(mut socket) = self.socket.as_ref() else { return Ok(true) };
        while self.sent_bytes < self.out.len() {
            match socket.write(&self.out[self.sent_bytes..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => self.sent_bytes += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.sent_bytes > MAX_UNSENT_BYTES {
                        self.out.drain(..self.sent_bytes);
                        self.sent_bytes = 0;
                    }
                    return Ok(false);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent_bytes = 0;
        Ok(true)
    }

    /// Gives the socket up. What it owes is the caller's affair.
    fn close(&mut self, why: String, now_ns: u64) -> Option<TcpStream> {
        self.count_tcp();
        self.tcp = TcpInfo::default();
        self.why = Some(why);
        self.life = Life::Down { retry_ns: self.backoff.retry_ns(now_ns) };
        self.out.clear();
        self.sent_bytes = 0;
        (self.reading, self.waits_to_send) = (None, false);
        self.records = Records::new(self.data_max);
        self.socket.take()
    }

    /// Begins to connect once more.
    fn begin_again(&mut self, until_ns: u64) -> io::Result<()> {
        self.socket = Some(begin(self.route)?);
        self.life = Life::Connecting { until_ns };
        Ok(())
    }

    /// Counts what the kernel has counted since the last time.
    fn count_tcp(&mut self) {
        let Some(now) = self.socket.as_ref().and_then(|socket| TcpInfo::of(socket).ok()) else { return };
        let before = std::mem::replace(&mut self.tcp, now);
        let resent = now.segments_resent.wrapping_sub(before.segments_resent);
        self.writer.count(ChannelCounter::SegmentsResent, resent.into());
        self.writer.count(ChannelCounter::BusyNs, now.busy_ns.saturating_sub(before.busy_ns));
        self.writer.count(ChannelCounter::RwndLimitedNs, now.rwnd_limited_ns.saturating_sub(before.rwnd_limited_ns));
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.count_tcp();
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
