//! The connections of a queue, their lives, and what is sent and received over them.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::Timespec;

use super::calls::{Calls, NONE, Requests, What};
use super::form::{self, Form};
use super::memory::Memory;
use super::replies::{QueueFile, Replies, Work};
use super::{Connection, Life, Slots, Stuck};
use crate::io::{Arena, EventFd};
use crate::nfs::mount::NfsMount;
use crate::nfs::wire::nfs4::SessionId;
use crate::nfs::wire::{Credential, Fault};
use crate::nfs::{NfsError, OpenFile};
use measure::{ChannelCounter, monotonic_ns};
use model::config::nfs::{DEFAULT_OUTSTANDING, NfsVersion};

/// Lanes in which requests wait.
pub(super) const LANES: usize = 2;
/// Data of one READ or WRITE at most, whatever the server takes.
const MAX_CALL_BYTES: u32 = 1 << 20;
/// Bytes that are received at once, beside data that go straight to their place.
const RECEIVE_BYTES: usize = 256 << 10;
/// Events that are taken at once.
const EVENTS: usize = 256;
/// The event of the waker; connections have their numbers.
const WAKE: u64 = u64::MAX;

/// How busy a connection is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) calls: u32,
    pub(super) is_usable: bool,
}

/// Connections to one server.
pub(super) struct Group {
    pub(super) mount: Arc<NfsMount>,
    version: NfsVersion,
    pub(super) credential: Arc<Credential>,
    pub(super) connections: Range<usize>,
    /// Where the search for the least busy one begins.
    pub(super) next: usize,
    pub(super) outstanding: u32,
    pub(super) read_bytes: u32,
    pub(super) write_bytes: u32,
    /// Requests of which not all parts are calls yet: those that write or make durable, and all others, each in their order. Either may
    /// have to wait for what the others need not wait for.
    pub(super) waiting: [VecDeque<u32>; LANES],
    /// When one of its connections was last up.
    pub(super) up_ns: u64,
    /// When something was last sent.
    pub(super) sent_ns: u64,
}

/// All connections of a queue, and what their calls are about.
pub(super) struct Links {
    pub(super) groups: Vec<Group>,
    pub(super) connections: Vec<Connection>,
    pub(super) loads: Vec<Load>,
    pub(super) work: Work,
    /// Connections with something to send.
    to_send: Vec<u32>,
    epoll: OwnedFd,
    pub(super) event: Arc<EventFd>,
    events: Vec<epoll::Event>,
    pub(super) buffer: Box<[u8]>,
    pub(super) now_ns: u64,
    /// There is no way just now to make good what servers have forgotten.
    pub(super) stuck: Option<Stuck>,
    /// Sessions that are of no use any more, with their groups: answers in them may still come.
    pub(super) left: Vec<(usize, SessionId)>,
}

impl Links {
    /// Connects for `files`, with as many connections as their addresses say.
    ///
    /// # Errors
    /// The first connection that cannot be made.
    pub(super) fn open(files: Vec<Arc<OpenFile>>, arena: Arc<Arena>, depth: u32) -> Result<Self, NfsError> {
        let now_ns = monotonic_ns();
        let kernel = |action| move |source: io::Error| NfsError::Kernel { action, source: Arc::new(source) };
        let epoll =
            epoll::create(CreateFlags::CLOEXEC).map_err(|error| kernel("wait for connections")(error.into()))?;
        let event = Arc::new(EventFd::new().map_err(kernel("make a wake-up descriptor"))?);
        let mut groups: Vec<Group> = Vec::new();
        let mut queue_files = Vec::new();
        for file in files {
            let group = match groups.iter().position(|group| Arc::ptr_eq(&group.mount, &file.mount)) {
                Some(group) => group,
                None => {
                    groups.push(Group::of(&file.mount, depth, now_ns));
                    groups.len() - 1
                }
            };
            queue_files.push(QueueFile::new(file, group));
        }
        let work = Work {
            files: queue_files,
            memory: Memory::new(arena),
            calls: Calls::new(depth as usize * 2, (now_ns ^ now_ns >> 20) as u32),
            requests: Requests::default(),
            finished: Vec::with_capacity(depth as usize),
            again: Vec::with_capacity(depth as usize),
            sessions: Vec::new(),
            doubtful: Vec::new(),
            unanswered: None,
            is_hurt: false,
            failed: None,
        };
        let mut links = Self {
            groups,
            connections: Vec::new(),
            loads: Vec::new(),
            work,
            to_send: Vec::new(),
            epoll,
            event,
            events: Vec::with_capacity(EVENTS),
            buffer: vec![0; RECEIVE_BYTES].into_boxed_slice(),
            now_ns,
            stuck: None,
            left: Vec::new(),
        };
        let wake = EventData::new_u64(WAKE);
        epoll::add(&links.epoll, &*links.event, wake, EventFlags::IN)
            .map_err(|error| kernel("wait for wake-ups")(error.into()))?;
        links.connect()?;
        // What was written by others may be lost with a server that these connections do not know.
        for QueueFile { file, .. } in links.work.files.iter().filter(|of| of.file.writes.kept_bytes() > 0) {
            file.mount.ways().make();
        }
        Ok(links)
    }

    /// Makes all connections, at the same time.
    fn connect(&mut self) -> Result<(), NfsError> {
        for group in &mut self.groups {
            let Group { mount, connections, .. } = group;
            let begin = self.connections.len();
            let connect_ns = mount.limits().connect.as_nanos() as u64;
            let each = mount.connections();
            for number in 0..each {
                for route in &mount.ways().routes {
                    let data_max = group.read_bytes;
                    let session = mount.open_session()?;
                    self.work.sessions.push(session.map(|session| Slots::new(&session, None)));
                    let until_ns = monotonic_ns() + connect_ns;
                    let connection =
                        Connection::begin(mount, *route, number, data_max, until_ns).map_err(|source| {
                            NfsError::Connect { service: "NFS server", path: route.to, source: Arc::new(source) }
                        })?;
                    self.connections.push(connection);
                    self.loads.push(Load { calls: 0, is_usable: false });
                }
            }
            *connections = begin..self.connections.len();
        }
        // Making sessions and a thousand sockets takes its time, which is not the connections'.
        let now_ns = monotonic_ns();
        for Group { mount, connections, .. } in &self.groups {
            let until_ns = now_ns + mount.limits().connect.as_nanos() as u64;
            self.connections[connections.clone()].iter_mut().for_each(|it| it.life = Life::Connecting { until_ns });
        }
        self.to_send.reserve(self.connections.len());
        for number in 0..self.connections.len() {
            self.watch(number)?;
        }
        while let Some(waiting) = self.connections.iter().find(|connection| connection.life != Life::Up) {
            let path = waiting.route.to;
            let failed = |source| NfsError::Connect { service: "NFS server", path, source: Arc::new(source) };
            let Life::Connecting { until_ns } = waiting.life else {
                let why = waiting.why.clone().unwrap_or_default();
                return Err(failed(io::Error::other(why)));
            };
            self.now_ns = monotonic_ns();
            if self.now_ns >= until_ns {
                return Err(failed(io::ErrorKind::TimedOut.into()));
            }
            self.take_events(Duration::from_nanos(until_ns - self.now_ns)).map_err(failed)?;
        }
        Ok(())
    }

    /// Asks for events of a connection that is being made.
    pub(super) fn watch(&mut self, number: usize) -> Result<(), NfsError> {
        let Some(socket) = self.connections[number].socket() else { return Ok(()) };
        epoll::add(&self.epoll, socket, EventData::new_u64(number as u64), EventFlags::OUT)
            .map_err(|error| NfsError::Kernel { action: "wait for a connection", source: Arc::new(error.into()) })
    }

    fn watch_for(&mut self, number: usize, flags: EventFlags) {
        let Some(socket) = self.connections[number].socket() else { return };
        if let Err(error) = epoll::modify(&self.epoll, socket, EventData::new_u64(number as u64), flags) {
            let source = Arc::new(io::Error::from(error));
            self.work.fail(NfsError::Kernel { action: "wait for a connection", source });
        }
    }

    /// The least busy connection of a group that has room, and a slot for a new call where one is wanted.
    pub(super) fn choose(&mut self, group: usize, wants_slot: bool) -> Option<usize> {
        let Group { connections, next, outstanding, version, .. } = &mut self.groups[group];
        let wants_slot = wants_slot && *version == NfsVersion::V41;
        let (begin, count) = (connections.start, connections.len());
        let mut best = None;
        let mut least = *outstanding;
        for step in 0..count {
            let number = begin + (*next + step) % count;
            let load = self.loads[number];
            let has_slot = || !wants_slot || self.work.sessions[number].as_ref().is_none_or(Slots::has_free);
            if load.is_usable && load.calls < least && self.connections[number].has_room() && has_slot() {
                (best, least) = (Some(number), load.calls);
                if least == 0 {
                    break;
                }
            }
        }
        *next = (*next + 1) % count.max(1);
        best
    }

    /// Writes a call behind what a connection has to send.
    pub(super) fn write(&mut self, number: usize, group: usize, place: u32) {
        let connection = &mut self.connections[number];
        let Group { version, credential, sent_ns, .. } = &mut self.groups[group];
        let call = self.work.calls.get_mut(place);
        let mut slot = None;
        if *version == NfsVersion::V41 && !matches!(call.what, What::Null | What::Probe) {
            // A call that is sent again keeps its slot, whichever connection takes it.
            if call.held.is_none() {
                call.held = self.work.sessions[number].as_mut().and_then(|slots| slots.take(number as u32));
                call.sends = 0;
            }
            let of = call.held.and_then(|held| Some((held, self.work.sessions[held.session as usize].as_ref()?)));
            let Some((held, slots)) = of else { return self.work.again.push((0, place)) };
            if !slots.is_of(held) {
                let may_be = call.sends > 0;
                return self.work.leave_session(place, may_be);
            }
            slot = Some(slots.slot(held));
        }
        let xid = self.work.calls.number(place, number as u32, self.now_ns);
        let call = self.work.calls.get_mut(place);
        call.sends += 1;
        // NULL is in no session: the server does not take it for a sign of life.
        if slot.is_some() {
            *sent_ns = self.now_ns;
        }
        let file = &self.work.files[call.file as usize];
        match call.what {
            What::Write if call.order == 0 => call.order = file.file.writes.number(),
            // What is sent again in a slot was perhaps done before: it covers no more than it did then.
            What::Commit if slot.is_none() || call.sends == 1 => {
                let (made, order) = (file.file.mount.ways().made(), file.file.writes.number());
                (call.made, call.order, call.waits) = (made, order, false);
                if call.is_for_room {
                    connection.writer.count(ChannelCounter::RoomCommits, 1);
                }
            }
            What::Commit => call.waits = false,
            What::Read | What::Write | What::Null | What::Renew | What::Probe => {}
        }
        let form = Form { version: *version, slot };
        form::put(&mut connection.out, (xid, &**credential, form), call, (&*file.file, file.state), &self.work.memory);
        if self.loads[number].calls == 0 {
            connection.heard_ns = self.now_ns;
        }
        self.loads[number].calls += 1;
        connection.writer.sent(self.now_ns);
        if !connection.is_listed {
            connection.is_listed = true;
            self.to_send.push(number as u32);
        }
    }

    pub(super) fn send_written(&mut self) {
        while let Some(number) = self.to_send.pop() {
            let number = number as usize;
            self.connections[number].is_listed = false;
            self.send_on(number);
        }
    }

    fn send_on(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        match connection.send() {
            Ok(all) if all == connection.waits_to_send => {
                connection.waits_to_send = !all;
                let flags = if all { EventFlags::IN } else { EventFlags::IN | EventFlags::OUT };
                self.watch_for(number, flags);
            }
            Ok(_) => {}
            Err(error) => self.lose(number, error.to_string()),
        }
    }

    /// Waits for events, at most so long, and does what they call for. True when the waker was used.
    pub(super) fn take_events(&mut self, patience: Duration) -> io::Result<bool> {
        let patience = Timespec::try_from(patience).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        let waited = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&patience));
        self.now_ns = monotonic_ns();
        let mut woken = false;
        for event in &events {
            match event.data.u64() {
                WAKE => {
                    self.event.reset();
                    woken = true;
                }
                number => self.take_event(number as usize, event.flags),
            }
        }
        self.events = events;
        match waited {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(woken),
            Err(error) => Err(error.into()),
        }
    }

    fn take_event(&mut self, number: usize, flags: EventFlags) {
        match self.connections[number].life {
            Life::Connecting { .. } => match self.connections[number].made(self.now_ns) {
                Ok(()) => {
                    if self.connections[number].why.take().is_some() {
                        self.group_of(number).into_iter().for_each(|group| self.groups[group].mount.ways().make());
                        self.connections[number].writer.count(ChannelCounter::Reconnects, 1);
                    }
                    self.loads[number].is_usable = true;
                    self.watch_for(number, EventFlags::IN);
                }
                Err(error) => self.lose(number, error.to_string()),
            },
            Life::Up | Life::Silent => {
                if flags.contains(EventFlags::OUT) {
                    self.send_on(number);
                }
                if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                    self.receive(number);
                }
            }
            Life::Down { .. } => {}
        }
    }

    /// The group of a connection.
    pub(super) fn group_of(&self, number: usize) -> Option<usize> {
        self.groups.iter().position(|group| group.connections.contains(&number))
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        let Self { groups, work, left, .. } = self;
        for (number, group) in groups.iter().enumerate() {
            let sessions = work.sessions.get(group.connections.clone()).unwrap_or_default();
            let left = left.iter().filter(|(of, _)| *of == number).map(|(_, session)| session);
            sessions.iter().flatten().map(Slots::id).chain(left).for_each(|id| group.mount.close_session(id));
        }
    }
}

impl Group {
    fn of(mount: &Arc<NfsMount>, depth: u32, now_ns: u64) -> Self {
        let (info, address) = (mount.info(), mount.address());
        Self {
            mount: Arc::clone(mount),
            version: address.version,
            credential: Arc::clone(&mount.ways().credential),
            connections: 0..0,
            next: 0,
            outstanding: address.outstanding.unwrap_or(DEFAULT_OUTSTANDING),
            read_bytes: info.read_max_bytes.min(MAX_CALL_BYTES),
            write_bytes: info.write_max_bytes.min(MAX_CALL_BYTES),
            waiting: [(); LANES].map(|()| VecDeque::with_capacity(depth as usize)),
            up_ns: now_ns,
            sent_ns: now_ns,
        }
    }
}

/// How often that is, at least.
const TICK_NS: u64 = 250_000_000;

impl Links {
    /// Looks after all of them. Returns when to do it again.
    pub(super) fn tend(&mut self) -> u64 {
        let now_ns = self.now_ns;
        let shortest = self.groups.iter().map(|group| group.mount.limits().silent.as_nanos() as u64 / 4).min();
        for group in 0..self.groups.len() {
            let limits = self.groups[group].mount.limits();
            let (silent_ns, connect_ns) = (limits.silent.as_nanos() as u64, limits.connect.as_nanos() as u64);
            for number in self.groups[group].connections.clone() {
                match self.connections[number].life {
                    Life::Up => {
                        self.connections[number].count_tcp();
                        self.groups[group].up_ns = now_ns;
                        let quiet_ns = now_ns.saturating_sub(self.connections[number].heard_ns);
                        if self.loads[number].calls > 0 && quiet_ns > silent_ns {
                            self.silent(group, number);
                        }
                    }
                    Life::Silent => {}
                    Life::Connecting { until_ns } if now_ns >= until_ns => {
                        self.lose(number, "no connection was made in time".to_owned());
                    }
                    Life::Connecting { .. } => {}
                    Life::Down { retry_ns } if now_ns >= retry_ns => {
                        let begun = self.connections[number].begin_again(now_ns + connect_ns);
                        let watched = begun
                            .map_err(|error| error.to_string())
                            .and_then(|()| self.watch(number).map_err(|error| error.to_string()));
                        if let Err(why) = watched {
                            self.lose(number, why);
                        }
                    }
                    Life::Down { .. } => {}
                }
            }
            self.count_resent(group);
            self.stay(group);
            self.give_up(group, limits.give_up.as_nanos() as u64);
        }
        now_ns + shortest.unwrap_or(TICK_NS).clamp(1_000_000, TICK_NS)
    }

    /// Has the server remember this client, where nothing else was sent for long.
    fn stay(&mut self, group: usize) {
        let Group { mount, sent_ns, .. } = &mut self.groups[group];
        let Some(lease) = mount.lease() else { return };
        let file = (0..).zip(&self.work.files).find(|(_, file)| file.group == group);
        if let Some((file, _)) = file.filter(|_| self.now_ns.saturating_sub(*sent_ns) > lease.as_nanos() as u64 / 3) {
            *sent_ns = self.now_ns;
            let renew = self.work.calls.add(What::Renew, NONE, file, 0, 0, 0);
            self.work.again.push((0, renew));
        }
    }

    /// Counts what was sent again after a restart, whoever sent it.
    fn count_resent(&mut self, group: usize) {
        let (writes, bytes) = self.groups[group].mount.resent().take();
        if let Some(connection) = self.connections[self.groups[group].connections.clone()].first_mut() {
            connection.writer.count(ChannelCounter::ResentWrites, writes);
            connection.writer.count(ChannelCounter::ResentBytes, bytes);
        }
    }

    /// A connection owes answers and has been silent: reads go elsewhere, if there is anywhere.
    fn silent(&mut self, group: usize, number: usize) {
        let is_other = |other: usize| other != number && self.loads[other].is_usable;
        if !self.groups[group].connections.clone().any(is_other) {
            return;
        }
        let why = "it was silent".to_owned();
        if self.groups[group].mount.lease().is_some() {
            // Nothing is sent again in a session before the connection is given up.
            return self.lose(number, why);
        }
        self.take_back(number, &why);
        if self.loads[number].calls == 0 {
            self.lose(number, why);
        } else {
            // Writes may still be answered. Until then nothing new goes there.
            self.loads[number].is_usable = false;
            self.connections[number].life = Life::Silent;
        }
    }

    /// Ends the run where nothing has answered for long.
    fn give_up(&mut self, group: usize, give_up_ns: u64) {
        let now_ns = self.now_ns;
        let Group { connections, up_ns, .. } = &self.groups[group];
        let is_old = |owed_ns: u64| now_ns.saturating_sub(owed_ns) > give_up_ns;
        let of_group = |file: u32| self.work.files[file as usize].group == group;
        // Whoever goes from one silent connection to the next, or is cut off again and again, has no answer either.
        let old = self.work.calls.owed().find(|(call, owed_ns)| is_old(*owed_ns) && of_group(call.file));
        let error = if let Some((call, owed_ns)) = old {
            let last = connections.end - 1;
            let number = Some(call.connection as usize).filter(|number| connections.contains(number)).unwrap_or(last);
            let path = self.connections[number].route.to;
            let silent = NfsError::Silent { path, call: call.what.name(), waited_ns: now_ns - owed_ns };
            match call.what {
                What::Write => NfsError::WriteUnanswered { path, why: silent.to_string() },
                _ => silent,
            }
        } else if now_ns.saturating_sub(*up_ns) > give_up_ns {
            let last = &self.connections[connections.end - 1];
            let why = last.why.clone().unwrap_or_else(|| "it was silent".to_owned());
            NfsError::NoPath { path: last.route.to, why }
        } else {
            return;
        };
        self.work.fail(error);
    }
}

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
        self.lose(number, "what came is not a reply".to_owned());
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
