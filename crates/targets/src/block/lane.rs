//! Requests of one thread to a volume: the path on which every nanosecond of ours counts as the device's.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::raw::Block;
use super::stamp::{self, Cover};
use super::volume::{Segment, VolumeLayout};
use super::{Floor, Generations, SlotMemory};
use crate::error::TargetError;
use crate::io::{Completion, Direction, Patience, Queue, Request};
use crate::{Finished, Lane, OperationResult, SessionRange};
use measure::{Counter, LaneRecorder, WaitEvent};
use model::config::io::Durable;
use model::workload::Rng;
use model::workload::io::{IoKind, IoOperation};

const PAGE_BYTES: u64 = 4096;

/// Filling of a lane's writes that is unlike itself: storage that compresses looks at less than this at once.
const FILLING_BYTES: u64 = 1 << 20;

/// What a lane does with the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Device {
    /// It reads and writes.
    Used,
    /// Everything is done but the moving of data.
    Spared,
}

/// A place for one operation under way.
#[derive(Debug, Clone, Copy)]
struct Slot {
    operation: IoOperation,
    sent_ns: u64,
    /// Requests of it in flight.
    left: u32,
    /// Bytes that its requests have moved, and that they should move.
    moved: u64,
    wanted: u64,
    failed: bool,
    then: Then,
}

/// What follows when all requests of an operation have come back.
#[derive(Debug, Clone, Copy)]
enum Then {
    /// It has finished.
    Finish,
    /// Its write, and those before, are made durable.
    Sync,
    /// What was read is checked; this is what was known of the block when the read was sent.
    Check(Floor),
    /// The write of a block of this number is acknowledged.
    Acknowledge { block: usize, sync: bool },
}

const IDLE: Slot = Slot {
    operation: IoOperation { kind: IoKind::Read, offset_bytes: 0, bytes: 0, is_durable: false },
    sent_ns: 0,
    left: 0,
    moved: 0,
    wanted: 0,
    failed: false,
    then: Then::Finish,
};

/// The lane of one thread.
pub(super) struct BlockLane<'t> {
    block: &'t Block,
    queue: Queue,
    range: SessionRange,
    device: Device,
    memory: SlotMemory,
    slots: Vec<Slot>,
    completions: Vec<Completion>,
    sync_every: u32,
    /// Writes since the last sync was decided on.
    unsynced: u32,
    /// Generation of the last write, where nobody checks.
    generation: u64,
    /// Pieces that each slot's memory is cut into, all with other filling; writes take one after the other.
    pieces: u64,
    piece_bytes: u64,
    next_piece: u64,
}

impl<'t> BlockLane<'t> {
    /// Gets memory and a queue for the range's sessions.
    pub(super) fn open(block: &'t Block, range: SessionRange, device: Device) -> Result<Self, TargetError> {
        let kernel = |action| move |source| TargetError::Kernel { action, source };
        let options = block.options();
        let piece_bytes = block.slot_bytes().next_multiple_of(PAGE_BYTES);
        let pieces = if options.writes {
            FILLING_BYTES.div_ceil(piece_bytes.saturating_mul(u64::from(range.sessions.max(1))))
        } else {
            1
        };
        let memory = SlotMemory::new(range.sessions, piece_bytes.saturating_mul(pieces))
            .map_err(kernel("get memory for the requests in flight"))?;
        if options.writes {
            // Every lane writes other data, so that nothing below finds two blocks alike.
            memory.fill(&mut Rng::new(options.seed, u64::from(range.lane)));
        } else {
            memory.touch();
        }
        let depth = range.sessions.saturating_mul(block.max_requests());
        let queue = Queue::new(options.io_engine, block.files(), Arc::clone(memory.arena()), depth)
            .map_err(kernel("make a queue for requests"))?;
        block.note_features(queue.features());
        Ok(Self {
            block,
            queue,
            range,
            device,
            memory,
            slots: vec![IDLE; range.sessions as usize],
            completions: Vec::with_capacity(depth as usize),
            sync_every: match options.durable {
                Durable::Fsync { every } => every.get(),
                Durable::None | Durable::Dsync => 0,
            },
            unsynced: 0,
            generation: options.generation_base,
            pieces,
            piece_bytes,
            next_piece: 0,
        })
    }

    /// Which writes were acknowledged, if that is kept: without a device nothing is written.
    #[inline]
    fn generations(&self) -> Option<&'t Generations> {
        let block: &'t Block = self.block;
        if self.device == Device::Used { block.generations() } else { None }
    }

    #[inline]
    fn push(&mut self, slot: u32, segment: Segment, at: u64, direction: Direction) -> Result<(), TargetError> {
        let Segment { member: file, offset_bytes: file_offset, bytes, .. } = segment;
        let direction = if self.device == Device::Spared { Direction::Nothing } else { direction };
        let arena_offset = self.memory.offset(slot) + at;
        let request = Request { direction, file, file_offset, arena_offset, bytes, token: u64::from(slot) };
        self.queue.push(request).map_err(|source| TargetError::Kernel { action: "send a request", source })
    }

    #[inline]
    fn start_read(&mut self, slot: u32, operation: IoOperation, sent_ns: u64) -> Result<(), TargetError> {
        let block = self.block;
        let then = self.generations().map_or(Then::Finish, |map| Then::Check(map.floor(block.number(operation))));
        let wanted = u64::from(operation.bytes);
        // Counted as they are sent: if the kernel refuses one, those before it still come back to the slot.
        self.slots[slot as usize] = Slot { operation, sent_ns, left: 0, moved: 0, wanted, failed: false, then };
        for segment in block.volume().segments(operation.offset_bytes, operation.bytes, Direction::Read) {
            self.push(slot, segment, u64::from(segment.at), Direction::Read)?;
            self.slots[slot as usize].left += 1;
        }
        Ok(())
    }

    fn start_write(&mut self, slot: u32, mut operation: IoOperation, sent_ns: u64) -> Result<(), TargetError> {
        let block = self.block;
        self.unsynced += 1;
        let sync = operation.is_durable || self.sync_every > 0 && self.unsynced >= self.sync_every;
        if sync {
            self.unsynced = 0;
        }
        let (generation, then) = match self.generations() {
            None => {
                self.generation += 1;
                (self.generation, if sync { Then::Sync } else { Then::Finish })
            }
            Some(map) => {
                let (number, generation) = block.claim(map, block.number(operation))?;
                operation.offset_bytes = number as u64 * u64::from(operation.bytes);
                (generation, Then::Acknowledge { block: number, sync })
            }
        };
        self.next_piece = (self.next_piece + 1) % self.pieces;
        let piece_begin = self.next_piece * self.piece_bytes;
        // Whoever checks wants to hear of every changed bit.
        let cover = if self.generations().is_some() { Cover::Sector } else { Cover::Stamp };
        let wanted = u64::from(operation.bytes) * u64::from(block.volume().copies());
        // Counted as they are sent, as for reads; a write that was sent in part is never acknowledged.
        self.slots[slot as usize] = Slot { operation, sent_ns, left: 0, moved: 0, wanted, failed: false, then };
        let mut at = piece_begin;
        for segment in block.volume().segments(operation.offset_bytes, operation.bytes, Direction::Write) {
            // Second copies lie behind the first, each part with stamps of its own place.
            // SAFETY: the slot has no request in flight that could touch this piece of its memory, and its memory is
            // only used by this thread.
            let piece = unsafe { self.memory.arena().bytes_mut(self.memory.offset(slot) + at, segment.bytes as usize) };
            stamp::write_stamps(piece, segment.offset_bytes, generation, block.id(segment.member), cover);
            self.push(slot, segment, at, Direction::Write)?;
            self.slots[slot as usize].left += 1;
            at += u64::from(segment.bytes);
        }
        Ok(())
    }

    fn start_discard(&mut self, slot: u32, operation: IoOperation, sent_ns: u64) -> Result<(), TargetError> {
        let block = self.block;
        self.slots[slot as usize] =
            Slot { operation, sent_ns, left: 0, moved: 0, wanted: 0, failed: false, then: Then::Finish };
        // Copies lie where those of a write would. A member gets what lies side by side there at once, as striped devices send it.
        let mut ranges: Vec<Segment> = Vec::new();
        for segment in block.volume().segments(operation.offset_bytes, operation.bytes, Direction::Write) {
            let is_before = |range: &&mut Segment| {
                range.member == segment.member && range.offset_bytes + u64::from(range.bytes) == segment.offset_bytes
            };
            match ranges.iter_mut().rev().find(is_before) {
                Some(range) => range.bytes += segment.bytes,
                None => ranges.push(segment),
            }
        }
        for range in ranges {
            self.push(slot, range, 0, Direction::Discard)?;
            self.slots[slot as usize].left += 1;
        }
        Ok(())
    }

    fn start_flush(&mut self, slot: u32, operation: IoOperation, sent_ns: u64) -> Result<(), TargetError> {
        let zero = Slot { operation, sent_ns, left: 0, moved: 0, wanted: 0, failed: false, then: Then::Finish };
        self.slots[slot as usize] = zero;
        self.unsynced = 0;
        let members = match operation.bytes {
            0 => 0..self.block.files().len() as u32,
            _ => self.members_to_sync(operation),
        };
        for member in members {
            self.push(slot, Segment { member, offset_bytes: 0, bytes: 0, at: 0 }, 0, Direction::Sync)?;
            self.slots[slot as usize].left += 1;
        }
        Ok(())
    }

    /// One of a slot's requests has come back.
    #[inline]
    fn take(
        &mut self,
        completion: Completion,
        at_ns: u64,
        recorder: &mut LaneRecorder,
        finished: &mut Vec<Finished>,
    ) -> Result<(), TargetError> {
        let index = completion.token as u32;
        let slot = &mut self.slots[index as usize];
        slot.left -= 1;
        match completion.bytes() {
            Ok(bytes) => slot.moved += u64::from(bytes),
            Err(source) if is_of_the_medium(&source) => {
                slot.failed = true;
                self.block.note_failure(&self.request_error(index, source));
            }
            Err(source) => return Err(self.request_error(index, source)),
        }
        let slot = &self.slots[index as usize];
        if slot.left > 0 {
            return Ok(());
        }
        if slot.moved != slot.wanted && !slot.failed && self.device == Device::Used {
            return Err(self.request_error(index, io::ErrorKind::UnexpectedEof.into()));
        }
        if !slot.failed && !self.follow(index)? {
            return Ok(());
        }
        let Slot { operation, sent_ns, failed, .. } = self.slots[index as usize];
        // What moves nothing is timed as the operation that it is.
        if !failed && operation.kind.moves_data() {
            let (event, requests, bytes) = accounts(operation);
            recorder.wait(event, at_ns.saturating_sub(sent_ns));
            recorder.count(requests, 1);
            recorder.count(bytes, u64::from(operation.bytes));
        }
        let result = if failed { OperationResult::Failed } else { OperationResult::Done };
        finished.push(Finished { session: index, at_ns, paused_ns: 0, connecting_ns: 0, block_touches: 1, result });
        Ok(())
    }

    /// Does what follows an operation's requests. Returns whether the operation has finished.
    #[inline]
    fn follow(&mut self, index: u32) -> Result<bool, TargetError> {
        let sync = match self.slots[index as usize].then {
            Then::Finish => return Ok(true),
            Then::Check(floor) => {
                self.check(index, floor)?;
                return Ok(true);
            }
            Then::Sync => true,
            Then::Acknowledge { block, sync } => {
                if let Some(map) = self.generations() {
                    map.acknowledge(block);
                }
                sync
            }
        };
        if !sync {
            return Ok(true);
        }
        let members = self.members_to_sync(self.slots[index as usize].operation);
        let slot = &mut self.slots[index as usize];
        slot.then = Then::Finish;
        slot.left = members.len() as u32;
        for member in members {
            let nothing = Segment { member, offset_bytes: 0, bytes: 0, at: 0 };
            self.push(index, nothing, 0, Direction::Sync)?;
        }
        Ok(false)
    }

    /// Where the writes of this lane up to this one may lie. A volume does not wait for another's flush: a lane whose volumes are
    /// separate writes to one of them. A flush of a part, and a write that is durable by itself, are of the members below them alone, where
    /// these lie one behind the other.
    fn members_to_sync(&self, operation: IoOperation) -> Range<u32> {
        let IoOperation { kind, offset_bytes, bytes, is_durable } = operation;
        let volume = self.block.volume();
        let mut own = volume.segments(offset_bytes, bytes, Direction::Read).map(|segment| segment.member);
        let is_of_its_own = match volume.layout() {
            VolumeLayout::Separate => true,
            VolumeLayout::Concat => is_durable || kind == IoKind::Flush,
            VolumeLayout::Single | VolumeLayout::Stripe { .. } | VolumeLayout::Mirror { .. } => false,
        };
        match own.next().filter(|_| is_of_its_own) {
            Some(first) => first..own.last().unwrap_or(first) + 1,
            None => 0..self.block.files().len() as u32,
        }
    }

    fn check(&self, index: u32, floor: Floor) -> Result<(), TargetError> {
        let IoOperation { offset_bytes, bytes, .. } = self.slots[index as usize].operation;
        // SAFETY: the slot's read has come back, so nobody writes to its memory until its next request is sent.
        let found = unsafe { self.memory.arena().bytes(self.memory.offset(index), bytes as usize) };
        self.block.check(offset_bytes, found, floor)
    }

    #[cold]
    fn request_error(&self, slot: u32, source: io::Error) -> TargetError {
        // What became of the file says more than that a request found nothing where data were.
        if source.kind() == io::ErrorKind::UnexpectedEof
            && let Err(error) = self.block.look_now()
        {
            return error;
        }
        let IoOperation { kind, offset_bytes, bytes, .. } = self.slots[slot as usize].operation;
        let first = self.block.volume().segments(offset_bytes, bytes, Direction::Read).next();
        let (member, offset) = first.map_or((0, offset_bytes), |segment| (segment.member, segment.offset_bytes));
        let path = self.block.files()[member as usize].path().to_owned();
        let action = match kind {
            IoKind::Read | IoKind::LargeRead => "read",
            IoKind::Write | IoKind::LargeWrite => "write",
            IoKind::Flush => "flush",
            IoKind::Discard => "discard",
        };
        TargetError::Request { action, path, offset, bytes, source }
    }
}

/// The wait event and the counters of an operation.
#[inline]
fn accounts(operation: IoOperation) -> (WaitEvent, Counter, Counter) {
    if operation.kind.is_write() {
        (WaitEvent::DirectPathWrite, Counter::PhysicalWrites, Counter::PhysicalWriteBytes)
    } else {
        (WaitEvent::of_read(operation.bytes), Counter::PhysicalReads, Counter::PhysicalReadBytes)
    }
}

/// Whether an error reports on one place on the medium, so that others can still be read, rather than of the way there.
fn is_of_the_medium(error: &io::Error) -> bool {
    const OF_THE_MEDIUM: [i32; 6] =
        [libc::EIO, libc::EREMOTEIO, libc::ENODATA, libc::EILSEQ, libc::EBADE, libc::ETIMEDOUT];
    error.raw_os_error().is_some_and(|number| OF_THE_MEDIUM.contains(&number))
}

impl Lane<IoOperation> for BlockLane<'_> {
    #[inline]
    fn start(
        &mut self,
        session: u32,
        operation: &IoOperation,
        sent_ns: u64,
        _: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        match operation.kind {
            IoKind::Read | IoKind::LargeRead => self.start_read(session, *operation, sent_ns),
            IoKind::Write | IoKind::LargeWrite => self.start_write(session, *operation, sent_ns),
            IoKind::Flush => self.start_flush(session, *operation, sent_ns),
            IoKind::Discard => self.start_discard(session, *operation, sent_ns),
        }
    }

    #[inline]
    fn poll(
        &mut self,
        until_ns: u64,
        recorder: &mut LaneRecorder,
        finished: &mut Vec<Finished>,
    ) -> Result<(), TargetError> {
        let left = if until_ns == 0 { 0 } else { until_ns.saturating_sub(self.range.clock.now_ns()) };
        let patience = if left == 0 { Patience::Now } else { Patience::Until(Duration::from_nanos(left)) };
        self.queue.wait(patience, &mut self.completions).map_err(wait_error)?;
        if self.completions.is_empty() {
            return Ok(());
        }
        // One reading for all: it is the instant at which this thread learnt of every one of them.
        let at_ns = self.range.clock.now_ns();
        recorder.advance(at_ns);
        let mut completions = std::mem::take(&mut self.completions);
        let mut taken = Ok(());
        for completion in completions.drain(..) {
            match taken {
                Ok(()) => taken = self.take(completion, at_ns, recorder, finished),
                // What came back beside the first error still counts as done where that is kept.
                Err(_) => self.settle(completion),
            }
        }
        self.completions = completions;
        taken
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        let mut completions = Vec::new();
        while self.queue.in_flight() > 0 {
            self.queue.wait(Patience::Until(Duration::from_secs(1)), &mut completions).map_err(wait_error)?;
            for completion in completions.drain(..) {
                self.settle(completion);
            }
        }
        Ok(())
    }
}

impl BlockLane<'_> {
    /// A request came back of which nobody wants to know how long it took. An acknowledged write still counts.
    fn settle(&mut self, completion: Completion) {
        let map = self.generations();
        let slot = &mut self.slots[completion.token as usize];
        slot.left -= 1;
        match completion.bytes() {
            Ok(bytes) => slot.moved += u64::from(bytes),
            Err(_) => slot.failed = true,
        }
        if let (Then::Acknowledge { block, .. }, Some(map)) = (slot.then, map)
            && slot.left == 0
            && !slot.failed
            && slot.moved == slot.wanted
        {
            map.acknowledge(block);
        }
    }
}

fn wait_error(source: io::Error) -> TargetError {
    TargetError::Kernel { action: "wait for requests", source }
}
