//! Requests to files of groups: each becomes one request to a member for each piece and copy, and finishes with the last.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::map::{FileMap, Range};
use super::state::State;
use crate::io::{Arena, Completion, Direction, Patience, Queue, Request, StorageFile, VirtualQueue, Waker};
use measure::{ChannelWork, ChannelWriter, Clock};

/// With members of several kinds, the thread waits for one kind at a time, this long.
const TURN: Duration = Duration::from_micros(100);
/// Bits of a token that hold the copy.
const COPY_BITS: u32 = 2;

/// A request of the caller.
#[derive(Debug, Clone, Copy)]
struct Operation {
    token: u64,
    /// Pieces that have not finished.
    left: u32,
    bytes: u32,
    error: Option<i32>,
}

/// Part of a request that lies in one piece on each member that it goes to.
#[derive(Debug, Clone, Copy)]
struct Piece {
    operation: u32,
    /// Index into the files.
    file: u32,
    direction: Direction,
    range: Range,
    arena_offset: u64,
    /// The member, for what is no matter of a range.
    member: u16,
    /// Copies that have not come back.
    left: u8,
    /// Copies that failed, as bits.
    failed: u8,
    /// Copies that were written.
    good: u8,
    /// Copies that were asked and have not answered, as bits.
    asked: u8,
    sent_ns: u64,
}

impl Piece {
    /// The member that has a copy, or that is meant where there is no range.
    #[inline]
    fn member_of(&self, map: &FileMap, copy: usize) -> u16 {
        match self.direction {
            Direction::Read | Direction::Write => map.places(self.range.extent)[copy].member,
            Direction::Sync | Direction::Discard | Direction::Nothing => self.member,
        }
    }
}

/// Of a copy of a piece.
#[inline]
fn token(piece: u32, copy: usize) -> u64 {
    u64::from(piece) << COPY_BITS | copy as u64
}

/// Things that come and go, in memory that is taken once.
#[derive(Debug)]
struct Slab<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    fn new(room: usize) -> Self {
        Self { items: Vec::with_capacity(room), free: Vec::with_capacity(room) }
    }

    #[inline]
    fn put(&mut self, item: T) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.items[at as usize] = item;
                at
            }
            None => {
                self.items.push(item);
                self.items.len() as u32 - 1
            }
        }
    }
}

/// A group that files of the queue are in.
struct Group {
    state: Arc<State>,
    /// What this queue counts about each member.
    writers: Vec<ChannelWriter>,
    /// Queue and place in it of each member; none for one that is absent.
    members: Vec<Option<(u32, u32)>>,
}

/// The queue of one kind of members.
struct Below {
    /// None once a server could not be asked any more.
    queue: Option<Queue>,
    /// Whether members are files of servers and have copies elsewhere: then a queue that fails is a failure of the members.
    is_spared: bool,
}

/// A queue for files of groups; see [`VirtualQueue`].
pub struct GroupQueue {
    files: Vec<(Arc<FileMap>, u32)>,
    groups: Vec<Group>,
    /// One for each kind of members.
    queues: Vec<Below>,
    /// Whose turn it is to be waited for.
    turn: usize,
    operations: Slab<Operation>,
    pieces: Slab<Piece>,
    clock: Clock,
    in_flight: u32,
    /// Pieces that are with members.
    sent: u32,
    completions: Vec<Completion>,
    ready: Vec<Completion>,
}

impl GroupQueue {
    /// A queue of the calling thread.
    ///
    /// # Errors
    /// When a queue for the members cannot be made.
    pub fn new(maps: Vec<Arc<FileMap>>, arena: &Arc<Arena>, depth: u32) -> io::Result<Self> {
        let mut groups: Vec<Group> = Vec::new();
        let mut kinds: Vec<(Option<&'static str>, Vec<Arc<StorageFile>>)> = Vec::new();
        let mut files = Vec::new();
        for map in maps {
            let known = groups.iter().position(|group| Arc::ptr_eq(&group.state, &map.state));
            let number = known.unwrap_or_else(|| {
                let state = Arc::clone(&map.state);
                let mut place = |file: &Arc<StorageFile>| {
                    let kind = file.virtual_file().map(|file| file.protocol());
                    let known = kinds.iter().position(|(known, _)| *known == kind);
                    let queue = known.unwrap_or_else(|| {
                        kinds.push((kind, Vec::new()));
                        kinds.len() - 1
                    });
                    kinds[queue].1.push(Arc::clone(file));
                    (queue as u32, kinds[queue].1.len() as u32 - 1)
                };
                let members = state.members.iter().map(|member| member.file.as_ref().map(&mut place)).collect();
                groups.push(Group { writers: state.channel_writers(), members, state });
                groups.len() - 1
            });
            files.push((map, number as u32));
        }
        let copies = groups.iter().map(|group| group.state.shape.copies).max().unwrap_or(1);
        // A request may be cut once; deeper queues hold the rest back until there is room.
        let inner = depth.saturating_mul(2 * copies);
        let engine = groups.first().map(|group| group.state.io_engine);
        let mut unreachable = Vec::new();
        let queues = (0..).zip(&kinds).map(|(number, (kind, members))| {
            let queue = Queue::new(engine.ok_or(io::ErrorKind::InvalidInput)?, members, Arc::clone(arena), inner);
            let is_here = |group: &Group| group.members.iter().flatten().any(|(queue, _)| *queue == number);
            let is_needed = groups.iter().any(|group| group.state.shape.copies == 1 && is_here(group));
            let is_spared = kind.is_some() && !is_needed;
            match queue {
                Err(error) if is_spared => {
                    unreachable.push((number as usize, error));
                    Ok(Below { queue: None, is_spared })
                }
                queue => Ok(Below { queue: Some(queue?), is_spared }),
            }
        });
        let queues = queues.collect::<io::Result<_>>()?;
        let mut this = Self {
            files,
            queues,
            groups,
            turn: 0,
            operations: Slab::new(depth as usize),
            pieces: Slab::new(2 * depth as usize),
            clock: Clock::start(),
            in_flight: 0,
            sent: 0,
            completions: Vec::with_capacity(depth as usize),
            ready: Vec::with_capacity(depth as usize),
        };
        unreachable.iter().for_each(|(number, error)| this.give_up(*number, error));
        match this.groups.iter().find(|group| group.state.has_failed()) {
            Some(lost) => Err(io::Error::other(lost.state.failure())),
            None => Ok(this),
        }
    }

    /// Adds a piece to a request.
    #[inline]
    fn add(&mut self, operation: u32, piece: Piece) -> u32 {
        self.operations.items[operation as usize].left += 1;
        self.pieces.put(piece)
    }

    /// Sends a piece to the member that has a copy.
    #[inline]
    fn send(&mut self, number: u32, copy: usize) -> io::Result<()> {
        let Piece { file, direction, range, arena_offset, member, sent_ns, .. } = self.pieces.items[number as usize];
        let (map, group) = &self.files[file as usize];
        let group = &mut self.groups[*group as usize];
        let (member, file_offset) = match direction {
            Direction::Read | Direction::Write => {
                let place = map.places(range.extent)[copy];
                (place.member, map.offset(place, range.within))
            }
            Direction::Sync | Direction::Discard | Direction::Nothing => (member, 0),
        };
        let Some((queue, file)) = group.members[usize::from(member)] else {
            return Err(io::ErrorKind::NotFound.into());
        };
        group.writers[usize::from(member)].sent(sent_ns);
        self.sent += 1;
        self.pieces.items[number as usize].asked |= 1 << copy;
        let token = token(number, copy);
        if self.queues[queue as usize].queue.is_none() {
            self.completions.push(Completion::new(token, Err(io::ErrorKind::NotConnected.into())));
        }
        let request = Request { direction, file, file_offset, arena_offset, bytes: range.bytes, token };
        self.with_queue(queue as usize, |queue, _| queue.push(request))
    }

    /// Does something with the queue of one kind of members, if there still is one. A server that cannot be asked any more is its
    /// members' failure and not the group's, unless nobody else has what they have: that error names the server, and a request's would not.
    #[inline]
    fn with_queue(
        &mut self,
        number: usize,
        act: impl FnOnce(&mut Queue, &mut Vec<Completion>) -> io::Result<()>,
    ) -> io::Result<()> {
        let below = &mut self.queues[number];
        let Some(queue) = &mut below.queue else { return Ok(()) };
        match act(queue, &mut self.completions) {
            Err(error) if below.is_spared => {
                self.give_up(number, &error);
                Ok(())
            }
            done => done,
        }
    }

    /// Gives up a queue: what its members were asked has failed, and the group goes on without them where its redundancy bears that.
    #[cold]
    fn give_up(&mut self, number: usize, error: &io::Error) {
        self.queues[number].queue = None;
        let is_below = |group: &Group, member: u16| {
            group.members[usize::from(member)].is_some_and(|(queue, _)| queue as usize == number)
        };
        let answered: Vec<u64> = self.completions.iter().map(|completion| completion.token).collect();
        for (at, piece) in (0..).zip(&self.pieces.items) {
            let (map, group) = &self.files[piece.file as usize];
            for copy in (0..u8::BITS as usize).filter(|copy| piece.asked & 1 << copy != 0) {
                let token = token(at, copy);
                if is_below(&self.groups[*group as usize], piece.member_of(map, copy)) && !answered.contains(&token) {
                    let error = io::Error::new(error.kind(), error.to_string());
                    self.completions.push(Completion::new(token, Err(error)));
                }
            }
        }
        for group in self.groups.iter().filter(|group| group.state.shape.copies > 1) {
            for member in (0..group.members.len() as u16).filter(|member| is_below(group, *member)) {
                // What it missed is in the map of changes. That too few members are left is found by the next request.
                let _ = group.state.drop_member(usize::from(member), &format!("no answer: {error}"), false);
            }
        }
    }

    /// Cuts a request and sends its pieces.
    #[inline]
    fn send_pieces(&mut self, operation: u32, request: &Request) -> io::Result<()> {
        let sent_ns = self.clock.now_ns();
        let map = Arc::clone(&self.files[request.file as usize].0);
        let mut at = 0;
        while at < request.bytes {
            let range = map.range(request.file_offset + u64::from(at), u64::from(request.bytes - at));
            let piece = Piece {
                operation,
                file: request.file,
                direction: request.direction,
                range,
                arena_offset: request.arena_offset + u64::from(at),
                member: 0,
                left: 0,
                failed: 0,
                good: 0,
                asked: 0,
                sent_ns,
            };
            at += range.bytes;
            let number = self.add(operation, piece);
            if request.direction == Direction::Read {
                match map.copy_to_read(range.extent, 0) {
                    Some(copy) => {
                        self.pieces.items[number as usize].left = 1;
                        self.send(number, copy)?;
                    }
                    None => self.finish(number, Some(libc::EIO)),
                }
            } else {
                self.send_write(&map, number, range)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn send_write(&mut self, map: &FileMap, number: u32, range: Range) -> io::Result<()> {
        if map.state.has_failed() || map.begin_write(range.extent).is_err() {
            self.finish(number, Some(libc::EIO));
            return Ok(());
        }
        let online = map.state.online();
        let places = map.places(range.extent);
        let is_current = |copy: &usize| online & 1 << places[*copy].member != 0;
        let left = (0..places.len()).filter(is_current).count() as u8;
        self.pieces.items[number as usize].left = left;
        if left == 0 {
            map.end_write(range.extent);
            self.finish(number, Some(libc::EIO));
        }
        (0..places.len()).filter(is_current).try_for_each(|copy| self.send(number, copy))
    }

    /// Sends what is about members and not about ranges.
    fn send_to_members(&mut self, operation: u32, request: &Request) -> io::Result<()> {
        let map = Arc::clone(&self.files[request.file as usize].0);
        let mut members = map.members();
        members.retain(|member| map.state.is_online(*member));
        if request.direction == Direction::Nothing {
            members.truncate(1);
        }
        let range = Range { extent: 0, within: 0, bytes: 0 };
        let sent_ns = self.clock.now_ns();
        // All pieces are added before the first can finish.
        let piece = |member| Piece {
            operation,
            file: request.file,
            direction: request.direction,
            range,
            arena_offset: 0,
            member,
            left: 1,
            failed: 0,
            good: 0,
            asked: 0,
            sent_ns,
        };
        for member in members {
            let number = self.add(operation, piece(member));
            self.send(number, 0)?;
        }
        Ok(())
    }

    /// A piece has finished.
    #[inline]
    fn finish(&mut self, number: u32, error: Option<i32>) {
        let Piece { operation, range, .. } = self.pieces.items[number as usize];
        self.pieces.free.push(number);
        let of = &mut self.operations.items[operation as usize];
        of.left -= 1;
        match error {
            None => of.bytes += range.bytes,
            Some(error) => of.error = of.error.or(Some(error)),
        }
        if of.left == 0 {
            self.complete(operation);
        }
    }

    /// All pieces of a request have finished.
    #[inline]
    fn complete(&mut self, operation: u32) {
        let Operation { token, bytes, error, .. } = self.operations.items[operation as usize];
        self.operations.free.push(operation);
        let moved = error.map_or(Ok(bytes), |error| Err(io::Error::from_raw_os_error(error)));
        self.ready.push(Completion::new(token, moved));
    }

    /// A member has answered.
    #[inline]
    fn take(&mut self, completion: Completion, now_ns: u64) -> io::Result<()> {
        self.sent -= 1;
        let number = (completion.token >> COPY_BITS) as u32;
        let copy = (completion.token & ((1 << COPY_BITS) - 1)) as usize;
        self.pieces.items[number as usize].asked &= !(1 << copy);
        let piece = self.pieces.items[number as usize];
        let (map, group) = &self.files[piece.file as usize];
        let member = piece.member_of(map, copy);
        let failure = match completion.bytes() {
            Ok(bytes) if bytes == piece.range.bytes => None,
            Ok(_) => Some(io::Error::from(io::ErrorKind::UnexpectedEof)),
            Err(error) => Some(error),
        };
        let writer = &mut self.groups[*group as usize].writers[usize::from(member)];
        let (bytes, service_ns) = (u64::from(piece.range.bytes), now_ns.saturating_sub(piece.sent_ns));
        match (piece.direction, &failure) {
            (_, Some(_)) => writer.failed(now_ns),
            (Direction::Read, None) => writer.finished(ChannelWork::Read, bytes, service_ns, now_ns),
            (Direction::Write, None) => writer.finished(ChannelWork::Write, bytes, service_ns, now_ns),
            (Direction::Sync | Direction::Discard | Direction::Nothing, None) => writer.ended(now_ns),
        }
        match (piece.direction, failure) {
            (Direction::Read, None) => {
                if piece.failed != 0 {
                    map.repair(piece.range, piece.failed, &|_| true);
                }
                self.finish(number, None);
                Ok(())
            }
            (Direction::Read, Some(error)) => self.read_failed(number, copy, &error),
            (Direction::Write, failure) => {
                self.written(number, member, failure);
                Ok(())
            }
            (Direction::Sync | Direction::Discard | Direction::Nothing, failure) => {
                let state = &map.state;
                let failed = failure.and_then(|error| state.write_failed(usize::from(member), error).err());
                self.finish(number, failed.map(|error| error_number(&error)));
                Ok(())
            }
        }
    }

    /// Reads the next copy, if there is one.
    #[cold]
    fn read_failed(&mut self, number: u32, copy: usize, error: &io::Error) -> io::Result<()> {
        let piece = &mut self.pieces.items[number as usize];
        piece.failed |= 1 << copy;
        let (range, failed, file) = (piece.range, piece.failed, piece.file);
        piece.sent_ns = self.clock.now_ns();
        let map = Arc::clone(&self.files[file as usize].0);
        map.read_failed(range.extent, copy);
        match map.copy_to_read(range.extent, failed) {
            Some(copy) => self.send(number, copy),
            None => {
                self.finish(number, Some(error_number(error)));
                Ok(())
            }
        }
    }

    /// A copy was written, or failed to be. A piece that was written nowhere has failed; one that was written somewhere has
    /// succeeded when the others remember who lacks it.
    #[inline]
    fn written(&mut self, number: u32, member: u16, failure: Option<io::Error>) {
        let piece = &mut self.pieces.items[number as usize];
        piece.left -= 1;
        let map = &self.files[piece.file as usize].0;
        match failure {
            None => piece.good += 1,
            Some(error) => {
                if let Err(error) = map.state.write_failed(usize::from(member), error) {
                    let of = &mut self.operations.items[piece.operation as usize];
                    of.error = of.error.or(Some(error_number(&error)));
                }
            }
        }
        if piece.left == 0 {
            map.end_write(piece.range.extent);
            let error = (piece.good == 0).then_some(libc::EIO);
            self.finish(number, error);
        }
    }

    fn take_all(&mut self) -> io::Result<()> {
        while !self.completions.is_empty() {
            let now_ns = self.clock.now_ns();
            let mut completions = std::mem::take(&mut self.completions);
            let taken = completions.drain(..).try_for_each(|completion| self.take(completion, now_ns));
            // What has come meanwhile are failures of members that cannot be asked.
            completions.append(&mut self.completions);
            self.completions = completions;
            taken?;
        }
        Ok(())
    }

    /// Waits in the queues of several kinds of members, in turns.
    fn wait_in_turns(&mut self, patience: Patience) -> io::Result<()> {
        let begun = Instant::now();
        loop {
            for number in 0..self.queues.len() {
                self.with_queue(number, |queue, done| queue.wait(Patience::Now, done))?;
            }
            let Patience::Until(time) = patience else { return Ok(()) };
            let left = time.saturating_sub(begun.elapsed());
            if !self.completions.is_empty() || left.is_zero() {
                return Ok(());
            }
            let is_there = |number: &usize| self.queues[*number].queue.is_some();
            let next = (self.turn + 1..self.queues.len()).chain(0..=self.turn).find(is_there);
            let Some(next) = next else { return Ok(()) };
            self.turn = next;
            let (slept, turn) = (Instant::now(), left.min(TURN));
            self.with_queue(next, |queue, done| queue.wait(Patience::Until(turn), done))?;
            // Early and with nothing: somebody has woken us.
            if self.completions.is_empty() && slept.elapsed() < turn {
                return Ok(());
            }
        }
    }
}

/// The number of an error, as a completion has it.
fn error_number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

impl VirtualQueue for GroupQueue {
    #[inline]
    fn push(&mut self, request: Request) -> io::Result<()> {
        self.in_flight += 1;
        // One piece more than there are: it finishes when all others were sent, so that none completes the request before.
        let operation = self.operations.put(Operation { token: request.token, left: 1, bytes: 0, error: None });
        let there = self.files[request.file as usize].0.bytes.saturating_sub(request.file_offset);
        match request.direction {
            Direction::Sync | Direction::Nothing => self.send_to_members(operation, &request)?,
            Direction::Discard => self.operations.items[operation as usize].error = Some(libc::EOPNOTSUPP),
            Direction::Write if u64::from(request.bytes) > there => {
                self.operations.items[operation as usize].error = Some(libc::ENOSPC);
            }
            Direction::Read | Direction::Write => {
                let bytes = u64::from(request.bytes).min(there) as u32;
                self.send_pieces(operation, &Request { bytes, ..request })?;
            }
        }
        let of = &mut self.operations.items[operation as usize];
        of.left -= 1;
        if of.left == 0 {
            self.complete(operation);
        }
        Ok(())
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        (0..self.queues.len()).try_for_each(|number| self.with_queue(number, |queue, _| queue.flush()))
    }

    #[inline]
    fn wait(&mut self, patience: Patience, done: &mut Vec<Completion>) -> io::Result<()> {
        let has_some = !self.ready.is_empty() || !self.completions.is_empty();
        let patience = if has_some { Patience::Now } else { patience };
        match self.queues.len() {
            1 => self.with_queue(0, |queue, done| queue.wait(patience, done))?,
            _ => self.wait_in_turns(patience)?,
        }
        self.take_all()?;
        self.in_flight -= self.ready.len() as u32;
        done.append(&mut self.ready);
        Ok(())
    }

    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn waker(&self) -> Waker {
        Waker::of_all(self.queues.iter().filter_map(|below| below.queue.as_ref()).map(Queue::waker))
    }
}

impl Drop for GroupQueue {
    fn drop(&mut self) {
        // Writes that are with members hold gates, which others wait for.
        while self.sent > 0 {
            let waited = self.wait_in_turns(Patience::Until(Duration::from_secs(1)));
            if waited.and_then(|()| self.take_all()).is_err() {
                break;
            }
        }
    }
}
