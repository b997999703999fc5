//! What sessions do to rows: find their blocks, read them when they are not there, look at them, change them.

use std::sync::atomic::Ordering;

use super::block::{self, BlockFault, BlockIdentity, COLUMNS};
use super::cache::{Allocation, FrameId, Lookup};
use super::frame::DIRTY;
use super::lane::{EngineLane, Phase, Progress};
use super::redo::Change;
use super::wakers::ARRIVAL;
use crate::error::TargetError;
use crate::io::Completion;
use measure::{Counter, LaneRecorder, WaitEvent};
use model::workload::{OperationKind, RedoStress, SlobOperation};

/// Touches whose cache misses are overlapped at most.
const MAX_LOOK_AHEAD: usize = 16;
/// How often a latch is tried before the session makes way for others.
const LATCH_TRIES: u32 = 200;

/// What visiting a pinned block ends with.
enum Visit {
    Done,
    Waits(Phase),
}

impl EngineLane<'_> {
    /// Touches the rows of a session's operation, from where it left off.
    #[inline]
    pub(super) fn touch_rows(&mut self, index: u32, recorder: &mut LaneRecorder) -> Result<Progress, TargetError> {
        let shared = self.shared;
        let operation = self.sessions[index as usize].operation;
        let mut blocks = [0u64; MAX_LOOK_AHEAD];
        loop {
            let session = &self.sessions[index as usize];
            let left = u64::from(operation.keys) - session.done;
            if left == 0 {
                return Ok(Progress::Done);
            }
            // The keys of an operation are known in advance, so the memory latency of finding one block is overlapped
            // with that of the next ones: first all hash buckets, then all frames and headers.
            let ahead = (session.look_ahead as u64).min(left) as usize;
            let first = operation.first_key + session.done;
            for (key, block) in (first..).zip(&mut blocks[..ahead]) {
                *block = shared.layout.row_block(operation.schema, key);
                if ahead > 1 {
                    shared.cache.prefetch_bucket(*block);
                    shared.reuse.prefetch(*block);
                }
            }
            if ahead > 1 {
                blocks[..ahead].iter().for_each(|block| shared.cache.prefetch_frame(*block));
            }
            for (key, block) in (first..).zip(&blocks[..ahead]) {
                if let Some(waits) = self.touch_row(index, operation.kind, key, *block, recorder)? {
                    return Ok(waits);
                }
            }
        }
    }

    /// Touches one row. None when it is done and the session goes on.
    #[inline]
    fn touch_row(
        &mut self,
        index: u32,
        kind: OperationKind,
        key: u64,
        block: u64,
        recorder: &mut LaneRecorder,
    ) -> Result<Option<Progress>, TargetError> {
        loop {
            match self.shared.cache.lookup(block) {
                Lookup::Hit { frame, seen } => {
                    return match self.visit(index, kind, frame, key, block, recorder)? {
                        Visit::Done => {
                            self.shared.cache.frame(frame).unpin_used(seen);
                            self.count_touch(index, block, recorder);
                            Ok(None)
                        }
                        Visit::Waits(phase) => {
                            self.shared.cache.frame(frame).unpin();
                            Ok(Some(self.wait(index, phase)))
                        }
                    };
                }
                Lookup::Loading(frame) => {
                    if self.shared.cache.wait_for_loading(frame, block) {
                        return Ok(Some(self.wait(index, Phase::OtherReads { frame, block })));
                    }
                }
                Lookup::Miss => match self.shared.cache.allocate(block, &mut self.hand) {
                    Allocation::Frame(frame) => return self.read_block(index, frame, block, recorder).map(Some),
                    Allocation::Present => {}
                    Allocation::NoneFree => {
                        self.shared.writers.demand_clean_buffers();
                        return Ok(Some(self.wait(index, Phase::NoBuffer)));
                    }
                },
            }
        }
    }

    #[inline]
    fn count_touch(&mut self, index: u32, block: u64, recorder: &mut LaneRecorder) {
        self.reuse.touch(&self.shared.reuse, block);
        let session = &mut self.sessions[index as usize];
        session.done += 1;
        recorder.count(Counter::LogicalReads, 1);
        if session.missed {
            session.missed = false;
        } else {
            recorder.count(Counter::CacheHits, 1);
            session.look_ahead = (session.look_ahead * 2).min(MAX_LOOK_AHEAD as u8);
        }
    }

    #[inline]
    fn read_block(
        &mut self,
        index: u32,
        frame: FrameId,
        block: u64,
        recorder: &mut LaneRecorder,
    ) -> Result<Progress, TargetError> {
        let session = &mut self.sessions[index as usize];
        session.missed = true;
        session.look_ahead = 1;
        let shared = self.shared;
        if let Some(flash) = &shared.flash
            && self.read_flash(flash, index, (frame, block), recorder)?
        {
            return Ok(Progress::Waits);
        }
        let waits = self.wait(index, Phase::Reading { frame, block });
        let bytes = self.shared.layout.shape().bytes() as u32;
        self.send_read(index, block, self.shared.cache.offset(frame), bytes)?;
        Ok(waits)
    }

    /// Brings near what a block that has arrived, and the touch after it, are about to need: while its checksum is computed
    /// the lines arrive.
    #[inline]
    pub(super) fn prefetch_for_arrival(&self, index: u32) {
        let session = &self.sessions[index as usize];
        if let Phase::Reading { block, .. } | Phase::ReadingFlash { block, .. } = session.phase {
            self.shared.changes.prefetch(block);
            let next = session.done + 1;
            if next < u64::from(session.operation.keys) {
                let key = session.operation.first_key + next;
                self.shared.cache.prefetch_bucket(self.shared.layout.row_block(session.operation.schema, key));
            }
        }
    }

    /// A session's block has arrived from its data file: checks it, and uses it.
    #[inline]
    pub(super) fn arrive_block(
        &mut self,
        index: u32,
        frame: FrameId,
        block: u64,
        completion: Completion,
        recorder: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        let SlobOperation { schema, first_key, .. } = self.sessions[index as usize].operation;
        let key = first_key + self.sessions[index as usize].done;
        self.check_arrived(frame, self.shared.layout.row_identity(schema, key, block), completion)?;
        self.use_block(index, frame, block, recorder)
    }

    /// A block that was read, from wherever, is as it should be: lets everybody use it, and touches its row.
    #[inline]
    pub(super) fn use_block(
        &mut self,
        index: u32,
        frame: FrameId,
        block: u64,
        recorder: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        recorder.count(Counter::PhysicalReads, 1);
        recorder.count(Counter::PhysicalReadBytes, self.shared.layout.shape().bytes() as u64);
        if self.shared.cache.finish_loading(frame) {
            self.shared.wakers.ring(ARRIVAL);
        }
        let session = &mut self.sessions[index as usize];
        session.phase = Phase::Idle;
        let kind = session.operation.kind;
        let key = session.operation.first_key + session.done;
        match self.visit(index, kind, frame, key, block, recorder)? {
            Visit::Done => {
                self.shared.cache.frame(frame).unpin_used(0);
                self.count_touch(index, block, recorder);
            }
            // The session finds the block in the cache when it goes on; its read is not forgotten (`missed`).
            Visit::Waits(_) => self.shared.cache.frame(frame).unpin(),
        }
        Ok(())
    }

    /// Checks a block that was read into a frame, in every respect.
    #[inline]
    pub(super) fn check_arrived(
        &self,
        frame: FrameId,
        identity: BlockIdentity,
        completion: Completion,
    ) -> Result<(), TargetError> {
        let block = identity.address;
        let bytes = self.shared.layout.shape().bytes();
        let moved = completion.bytes();
        if !matches!(moved, Ok(moved) if moved as usize == bytes) {
            return Err(self.shared.bad_request("read", block, bytes as u32, moved));
        }
        // SAFETY: the frame is in state LOADING and this session is its loader: the kernel has finished with the buffer,
        // and no session writes to it before it is valid.
        let contents = unsafe { self.shared.cache.arena().bytes(self.shared.cache.offset(frame), bytes) };
        let expected = self.shared.changes.get(block);
        let Err(fault) = block::check(contents, identity, expected) else { return Ok(()) };
        // SAFETY: see above; `contents` is not used any more.
        let contents = unsafe { self.shared.cache.arena().bytes_mut(self.shared.cache.offset(frame), bytes) };
        self.shared.read_sound_copy(identity, expected, fault, contents)
    }

    #[inline]
    fn visit(
        &mut self,
        index: u32,
        kind: OperationKind,
        frame: FrameId,
        key: u64,
        block: u64,
        recorder: &mut LaneRecorder,
    ) -> Result<Visit, TargetError> {
        let at = self.shared.cache.offset(frame);
        if !block::is_row_at(self.shared.cache.arena(), at, block, key) {
            let fault = BlockFault::Misplaced { address: block::cached_address(self.shared.cache.arena(), at) };
            return Err(self.shared.bad_block(block, fault));
        }
        match kind {
            OperationKind::Update => Ok(self.change(index, frame, block, recorder)),
            OperationKind::Read | OperationKind::Scan => Ok(Visit::Done),
        }
    }

    /// Changes the row of a pinned block: redo first, then the buffer.
    fn change(&mut self, index: u32, frame: FrameId, block: u64, recorder: &mut LaneRecorder) -> Visit {
        let shared = self.shared;
        let session = self.range.first_session + index;
        let all_columns = self.sessions[index as usize].operation.redo_stress == RedoStress::Heavy;
        let column_bytes = shared.layout.shape().column_bytes();
        self.columns.resize(column_bytes * if all_columns { COLUMNS } else { 2 }, 0);
        self.rng.fill(&mut self.columns);

        let buffer = shared.cache.frame(frame);
        if !buffer.try_latch() && !self.insist_on_latch(frame, recorder) {
            return Visit::Waits(Phase::Latched { frame });
        }
        let (arena, at) = (shared.cache.arena(), shared.cache.offset(frame));
        let changes = block::cached_changes(arena, at) + 1;
        let change = Change { session, block, changes, all_columns, columns: &self.columns };
        let appended = match shared.redo.append_change(&change) {
            Ok(appended) => appended,
            Err(refusal) => {
                buffer.unlatch();
                return Visit::Waits(Phase::NoLog(refusal));
            }
        };
        let shape = shared.layout.shape();
        if all_columns {
            arena.store_bytes(at + shape.column_offset(0) as u64, &self.columns);
        } else {
            let (first, last) = self.columns.split_at(column_bytes);
            arena.store_bytes(at + shape.column_offset(0) as u64, first);
            arena.store_bytes(at + shape.column_offset(COLUMNS - 1) as u64, last);
        }
        block::note_change(arena, at, changes, appended.end, session);
        shared.changes.set(block, changes);
        if buffer.state.load(Ordering::Relaxed) & DIRTY == 0 {
            buffer.first_redo.store(appended.start, Ordering::Relaxed);
            buffer.state.fetch_or(DIRTY, Ordering::Relaxed);
            shared.cache.count_dirtied(block);
            if let Some(flash) = &shared.flash {
                flash.invalidate(block);
            }
        }
        buffer.last_redo.store(appended.end, Ordering::Relaxed);
        buffer.unlatch();
        recorder.count(Counter::BlockChanges, 1);
        Visit::Done
    }

    /// Tries for a short while to get a latch that somebody holds, and records how long it took.
    #[cold]
    fn insist_on_latch(&mut self, frame: FrameId, recorder: &mut LaneRecorder) -> bool {
        let begin = self.range.clock.now_ns();
        for _ in 0..LATCH_TRIES {
            std::hint::spin_loop();
            if self.shared.cache.frame(frame).try_latch() {
                let now = self.range.clock.now_ns();
                recorder.advance(now);
                recorder.wait(WaitEvent::BufferBusyWaits, now - begin);
                return true;
            }
        }
        false
    }
}
