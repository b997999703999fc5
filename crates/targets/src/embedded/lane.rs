//! The sessions of one thread: each a small state machine, none a thread of its own.
//!
//! A session works on its operation until it must wait: for a read, for another session's read, for a clean buffer, for
//! room in the log, for its commit. Then the thread goes on with another. Every wait is timed from the moment the session
//! stopped to the moment its reason to wait was seen to be gone.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::block;
use super::cache::{FrameId, Hand};
use super::flash::Slot;
use super::redo::Refusal;
use super::reuse::LaneReuse;
use super::shared::Shared;
use super::wakers::{ARRIVAL, CLEAN_BUFFERS, FAILURE, LOG, LaneWaker};
use crate::error::TargetError;
use crate::io::{Arena, Completion, Direction, Patience, Queue, Request};
use crate::{Finished, Lane, OperationResult, SessionRange};
use measure::{Counter, LaneRecorder, WaitEvent};
use model::workload::{OperationKind, RedoStress, Rng, SlobOperation};

/// With sessions waiting for other threads, a lane looks around this often even if nobody rings.
const LOOK_AROUND_NS: u64 = 10_000_000;
/// A latch is held for less than a microsecond: look again soon.
const LATCH_LOOK_AROUND_NS: u64 = 50_000;

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing: it has no operation.
    Idle,
    /// Its block is being read into this frame.
    Reading { frame: FrameId, block: u64 },
    /// Its block is being read into this frame from the flash cache.
    ReadingFlash { frame: FrameId, block: u64, slot: Slot },
    /// Another session is reading its block.
    OtherReads { frame: FrameId, block: u64 },
    /// No clean buffer was free.
    NoBuffer,
    /// Another thread holds the block's latch.
    Latched { frame: FrameId },
    /// The log took no record.
    NoLog(Refusal),
    /// Its commit record is not durable yet.
    Committing { position: u64 },
    /// No memory for a scan was free.
    NoScanMemory,
    /// Part of a scan table is being read past the cache.
    Scanning { memory: u64, blocks: u64 },
}

impl Phase {
    /// The wait event of this reason to wait.
    fn event(self) -> Option<WaitEvent> {
        match self {
            Self::Idle | Self::NoScanMemory => None,
            Self::Reading { .. } => Some(WaitEvent::DbFileSequentialRead),
            Self::ReadingFlash { .. } => Some(WaitEvent::DbFlashCacheSingleBlockPhysicalRead),
            Self::OtherReads { .. } => Some(WaitEvent::ReadByOtherSession),
            Self::NoBuffer => Some(WaitEvent::FreeBufferWaits),
            Self::Latched { .. } => Some(WaitEvent::BufferBusyWaits),
            Self::NoLog(Refusal::BufferFull) => Some(WaitEvent::LogBufferSpace),
            Self::NoLog(Refusal::CheckpointIncomplete) => Some(WaitEvent::LogFileSwitchCheckpoint),
            Self::Committing { .. } => Some(WaitEvent::LogFileSync),
            Self::Scanning { .. } => Some(WaitEvent::DirectPathRead),
        }
    }
}

/// One session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) operation: SlobOperation,
    pub(super) phase: Phase,
    /// When it began to wait.
    pub(super) since_ns: u64,
    /// Keys touched so far, or scan blocks read so far.
    pub(super) done: u64,
    /// The present touch had to read its block.
    pub(super) missed: bool,
    /// How many touches to look ahead: grows with hits, one after a miss.
    pub(super) look_ahead: u8,
}

/// The sessions of one thread, and its requests.
pub(super) struct EngineLane<'s> {
    pub(super) shared: &'s Shared,
    pub(super) range: SessionRange,
    pub(super) sessions: Vec<Session>,
    pub(super) queue: Queue,
    pub(super) hand: Hand,
    pub(super) reuse: LaneReuse,
    pub(super) rng: Rng,
    /// New contents of columns, made before a latch is taken.
    pub(super) columns: Vec<u8>,
    waker: Arc<LaneWaker>,
    /// Batches that database writers had cleaned when this lane last looked for a clean buffer, and when that was.
    batches_seen: u64,
    buffers_tried_ns: u64,
    buffers_cleaned: bool,
    /// Sessions that wait for other threads, commits apart.
    parked: Vec<u32>,
    /// Memory of the same kind, empty but while they are looked at.
    looked_at: Vec<u32>,
    /// Sessions whose commits are not durable, oldest first.
    committing: VecDeque<u32>,
    /// Last acknowledged commit of each session.
    acknowledged: Vec<u64>,
    ledger_bytes: Vec<u8>,
    completions: Vec<Completion>,
    finished: Vec<Finished>,
}

/// Whether a session goes on or waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It waits; its phase says for what.
    Waits,
    /// Its operation is done.
    Done,
}

impl<'s> EngineLane<'s> {
    pub(super) fn new(shared: &'s Shared, arena: &Arc<Arena>, range: SessionRange) -> Result<Self, TargetError> {
        let kernel = |source| TargetError::Kernel { action: "set up the requests of a lane of sessions", source };
        let queue =
            Queue::new(shared.io_engine, &shared.files_to_read(), Arc::clone(arena), range.sessions).map_err(kernel)?;
        let waker = shared.wakers.add(queue.waker());
        let nothing = SlobOperation {
            kind: OperationKind::Read,
            schema: 0,
            first_key: 0,
            keys: 0,
            redo_stress: RedoStress::Lite,
        };
        let session =
            || Session { operation: nothing, phase: Phase::Idle, since_ns: 0, done: 0, missed: false, look_ahead: 1 };
        let first = range.first_session as usize;
        let acknowledged = (first..first + range.sessions as usize)
            .map(|session| shared.commits[session].load(Ordering::Relaxed))
            .collect::<Vec<_>>();
        // The contents of updates need no repetition: two runs must not write the same bytes.
        let entropy = acknowledged.iter().fold(u64::from(range.first_session), |sum, made| sum.rotate_left(7) ^ made);
        Ok(Self {
            shared,
            range,
            sessions: (0..range.sessions).map(|_| session()).collect(),
            queue,
            hand: Hand::default(),
            reuse: shared.reuse.lane(range.lane),
            rng: Rng::new(entropy, u64::from(shared.layout.identity(0).database)),
            columns: Vec::with_capacity(block::COLUMNS * shared.layout.shape().column_bytes()),
            waker,
            batches_seen: 0,
            buffers_tried_ns: 0,
            buffers_cleaned: false,
            parked: Vec::new(),
            looked_at: Vec::new(),
            committing: VecDeque::new(),
            acknowledged,
            ledger_bytes: Vec::new(),
            completions: Vec::new(),
            finished: Vec::new(),
        })
    }

    /// Lets a session go on until it waits or its operation is done.
    fn proceed(&mut self, index: u32, recorder: &mut LaneRecorder) -> Result<(), TargetError> {
        let progress = match self.sessions[index as usize].operation.kind {
            OperationKind::Scan => self.scan(index, recorder)?,
            OperationKind::Read => self.touch_rows(index, recorder)?,
            OperationKind::Update => match self.touch_rows(index, recorder)? {
                Progress::Done => self.commit(index),
                waits => waits,
            },
        };
        match progress {
            Progress::Done => self.finish(index),
            Progress::Waits => match self.sessions[index as usize].phase {
                Phase::Reading { .. } | Phase::ReadingFlash { .. } | Phase::Scanning { .. } => {}
                Phase::Committing { .. } => self.committing.push_back(index),
                _ => self.parked.push(index),
            },
        }
        Ok(())
    }

    fn finish(&mut self, index: u32) {
        let session = &mut self.sessions[index as usize];
        session.phase = Phase::Idle;
        let (at_ns, block_touches) = (self.range.clock.now_ns(), session.done);
        self.finished.push(Finished {
            session: index,
            at_ns,
            paused_ns: 0,
            connecting_ns: 0,
            block_touches,
            result: OperationResult::Done,
        });
    }

    /// Begins a wait.
    pub(super) fn wait(&mut self, index: u32, phase: Phase) -> Progress {
        let session = &mut self.sessions[index as usize];
        session.since_ns = self.range.clock.now_ns();
        session.phase = phase;
        Progress::Waits
    }

    /// Ends a wait: records it and makes the session ready to go on.
    pub(super) fn end_wait(&mut self, index: u32, recorder: &mut LaneRecorder) {
        let now = self.range.clock.now_ns();
        let session = &mut self.sessions[index as usize];
        let event = session.phase.event();
        session.phase = Phase::Idle;
        if let Some(event) = event {
            recorder.advance(now);
            recorder.wait(event, now.saturating_sub(session.since_ns));
        }
    }

    /// Puts a commit record into the log.
    fn commit(&mut self, index: u32) -> Progress {
        let session = self.range.first_session + index;
        // The wait begins before the log writer is woken: it may take this very processor.
        let since_ns = self.range.clock.now_ns();
        match self.shared.redo.append_commit(session, &self.shared.commits[session as usize]) {
            Ok(appended) => {
                let waits = self.wait(index, Phase::Committing { position: appended.end });
                self.sessions[index as usize].since_ns = since_ns;
                waits
            }
            Err(refusal) => self.wait(index, Phase::NoLog(refusal)),
        }
    }

    /// Acknowledges every commit that has become durable.
    fn acknowledge(&mut self, recorder: &mut LaneRecorder) -> Result<(), TargetError> {
        let durable = self.shared.redo.durable();
        let is_durable =
            |session: &Session| matches!(session.phase, Phase::Committing { position } if position <= durable);
        let ready = self.committing.iter().take_while(|index| is_durable(&self.sessions[**index as usize])).count();
        if ready == 0 {
            return Ok(());
        }
        let (mut lowest, mut highest) = (u32::MAX, 0);
        for index in self.committing.iter().take(ready) {
            let session = self.range.first_session + index;
            self.acknowledged[*index as usize] = self.shared.commits[session as usize].load(Ordering::Relaxed);
            lowest = lowest.min(*index);
            highest = highest.max(*index);
        }
        // The ledger is written before any of them is reported.
        let acknowledged = &self.acknowledged[lowest as usize..=highest as usize];
        self.shared.ledger.note(self.range.first_session + lowest, acknowledged, &mut self.ledger_bytes)?;
        for _ in 0..ready {
            let index = self.committing.pop_front().expect("counted just above");
            self.end_wait(index, recorder);
            recorder.count(Counter::Commits, 1);
            self.finish(index);
        }
        Ok(())
    }

    /// Whether the reason that a parked session waits for is gone, as far as can be seen without trying.
    fn may_go_on(&self, index: u32) -> bool {
        match self.sessions[index as usize].phase {
            Phase::OtherReads { frame, block } => !self.shared.cache.is_loading(frame, block),
            Phase::Latched { frame } => !self.shared.cache.frame(frame).is_latched(),
            Phase::NoBuffer => self.buffers_cleaned,
            Phase::NoLog(_) => !self.shared.redo.refuses(),
            Phase::NoScanMemory => self.shared.has_scan_memory(),
            Phase::Idle
            | Phase::Reading { .. }
            | Phase::ReadingFlash { .. }
            | Phase::Committing { .. }
            | Phase::Scanning { .. } => true,
        }
    }

    /// Lets every parked session go on whose reason to wait is gone.
    fn look_at_parked(&mut self, recorder: &mut LaneRecorder) -> Result<(), TargetError> {
        if self.parked.is_empty() {
            return Ok(());
        }
        // Looking for a clean buffer passes over many frames: only when a writer has been at work, or after a while.
        let (cleaned, now) = (self.shared.writers.batches_cleaned(), self.range.clock.now_ns());
        self.buffers_cleaned = cleaned != self.batches_seen || now > self.buffers_tried_ns + LOOK_AROUND_NS;
        if self.buffers_cleaned {
            (self.batches_seen, self.buffers_tried_ns) = (cleaned, now);
        }
        let mut looked_at = std::mem::take(&mut self.looked_at);
        std::mem::swap(&mut self.parked, &mut looked_at);
        for index in looked_at.drain(..) {
            if !self.may_go_on(index) {
                self.parked.push(index);
                continue;
            }
            let waited = self.sessions[index as usize].phase;
            if matches!(waited, Phase::NoBuffer | Phase::NoLog(_) | Phase::NoScanMemory) {
                // Only trying says whether there is one for this session: the wait goes on if there is not.
                self.retry(index, recorder)?;
            } else {
                self.end_wait(index, recorder);
                self.proceed(index, recorder)?;
            }
        }
        self.looked_at = looked_at;
        Ok(())
    }

    /// Lets a session try again what it waited for, and records the wait if that got it anywhere.
    fn retry(&mut self, index: u32, recorder: &mut LaneRecorder) -> Result<(), TargetError> {
        // The wait is over now if this try succeeds, whatever the session does with its success.
        let now = self.range.clock.now_ns();
        let session = &mut self.sessions[index as usize];
        let (waited, since_ns, touched) = (session.phase, session.since_ns, session.done);
        session.phase = Phase::Idle;
        self.proceed(index, recorder)?;
        let session = &mut self.sessions[index as usize];
        if session.phase == waited && session.done == touched {
            // The same reason again: it has been waiting all the time.
            session.since_ns = since_ns;
            return Ok(());
        }
        if let Some(event) = waited.event() {
            recorder.advance(now);
            recorder.wait(event, now.saturating_sub(since_ns));
        }
        Ok(())
    }

    /// Takes what has come back from storage and lets its sessions go on.
    fn take_completions(&mut self, recorder: &mut LaneRecorder) -> Result<(), TargetError> {
        if self.completions.is_empty() {
            return Ok(());
        }
        // All of these had finished by now: one instant for all is nearer to the truth than one after each is checked.
        let now = self.range.clock.now_ns();
        recorder.advance(now);
        for at in 0..self.completions.len() {
            let index = self.completions[at].token as u32;
            let session = &self.sessions[index as usize];
            if let Some(event) = session.phase.event() {
                recorder.wait(event, now.saturating_sub(session.since_ns));
            }
            self.prefetch_for_arrival(index);
        }
        let mut completions = std::mem::take(&mut self.completions);
        for completion in completions.drain(..) {
            // The read that the session before asked for goes out before this one's block is checked. Sent together, reads
            // come back together, and every one of them waits until the processor has been through all the others: on
            // the machine of dev/performance.md that cost an eighth of the throughput at 32 sessions.
            self.queue.flush().map_err(|source| TargetError::Kernel { action: "send reads", source })?;
            let index = completion.token as u32;
            match self.sessions[index as usize].phase {
                Phase::Scanning { memory, blocks } => self.arrive_scan(index, memory, blocks, completion, recorder)?,
                Phase::Reading { frame, block } => self.arrive_block(index, frame, block, completion, recorder)?,
                Phase::ReadingFlash { frame, block, slot } => {
                    if !self.arrive_flash(index, (frame, block, slot), completion, recorder)? {
                        continue;
                    }
                    self.use_block(index, frame, block, recorder)?;
                }
                phase => unreachable!("a session in {phase:?} has no request in flight"),
            }
            self.proceed(index, recorder)?;
        }
        self.completions = completions;
        Ok(())
    }

    /// Sends a read for a session.
    pub(super) fn send_read(&mut self, index: u32, block: u64, memory: u64, bytes: u32) -> Result<(), TargetError> {
        let place = self.shared.layout.place(block);
        let request = Request {
            direction: Direction::Read,
            file: place.file,
            file_offset: place.offset,
            arena_offset: memory,
            bytes,
            token: u64::from(index),
        };
        self.queue.push(request).map_err(|error| self.shared.bad_request("read", block, bytes, Err(error)))
    }

    /// What the lane's sessions wait for, as waker bits.
    fn listens_for(&self) -> u32 {
        let mut bits = FAILURE;
        if !self.committing.is_empty() {
            bits |= LOG;
        }
        for index in &self.parked {
            bits |= match self.sessions[*index as usize].phase {
                Phase::NoBuffer => CLEAN_BUFFERS,
                Phase::NoLog(_) => LOG,
                Phase::OtherReads { .. } | Phase::NoScanMemory => ARRIVAL,
                _ => 0,
            };
        }
        bits
    }

    fn patience(&self, until_ns: u64) -> u64 {
        let now = self.range.clock.now_ns();
        let mut patience = until_ns.saturating_sub(now);
        if !self.parked.is_empty() {
            let latched = |index: &u32| matches!(self.sessions[*index as usize].phase, Phase::Latched { .. });
            patience =
                patience.min(if self.parked.iter().any(latched) { LATCH_LOOK_AROUND_NS } else { LOOK_AROUND_NS });
        }
        if !self.committing.is_empty() {
            patience = patience.min(LOOK_AROUND_NS);
        }
        patience
    }

    fn check_failure(&self) -> Result<(), TargetError> {
        if self.shared.has_failed() { Err(TargetError::Stopped) } else { Ok(()) }
    }

    /// Collects completions, sleeping at most `patience_ns`.
    fn collect(&mut self, patience_ns: u64) -> Result<(), TargetError> {
        let patience =
            if patience_ns == 0 { Patience::Now } else { Patience::Until(Duration::from_nanos(patience_ns)) };
        self.queue
            .wait(patience, &mut self.completions)
            .map_err(|source| TargetError::Kernel { action: "wait for reads", source })
    }
}

impl Lane<SlobOperation> for EngineLane<'_> {
    fn start(
        &mut self,
        session: u32,
        operation: &SlobOperation,
        _sent_ns: u64,
        recorder: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        let slot = &mut self.sessions[session as usize];
        debug_assert_eq!(slot.phase, Phase::Idle, "a session does one operation at a time");
        slot.operation = *operation;
        slot.done = 0;
        slot.missed = false;
        self.proceed(session, recorder)
    }

    fn poll(
        &mut self,
        until_ns: u64,
        recorder: &mut LaneRecorder,
        finished: &mut Vec<Finished>,
    ) -> Result<(), TargetError> {
        self.check_failure()?;
        self.acknowledge(recorder)?;
        self.look_at_parked(recorder)?;
        let mut patience = if self.finished.is_empty() { self.patience(until_ns) } else { 0 };
        if patience > 0 {
            // In this order no wake-up is lost: say what is waited for, look again, sleep.
            self.waker.listen(self.listens_for());
            self.acknowledge(recorder)?;
            self.look_at_parked(recorder)?;
            self.check_failure()?;
            if !self.finished.is_empty() {
                patience = 0;
            }
        }
        self.collect(patience)?;
        self.waker.listen(0);
        self.take_completions(recorder)?;
        self.acknowledge(recorder)?;
        finished.append(&mut self.finished);
        Ok(())
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        let kernel = |source| TargetError::Kernel { action: "wait for reads", source };
        while self.queue.in_flight() > 0 {
            let patience = Patience::Until(Duration::from_secs(1));
            self.queue.wait(patience, &mut self.completions).map_err(kernel)?;
            self.take_abandoned()?;
        }
        self.parked.clear();
        self.committing.clear();
        self.finished.clear();
        self.sessions.iter_mut().for_each(|session| session.phase = Phase::Idle);
        Ok(())
    }
}

impl EngineLane<'_> {
    /// Lets go of what has come back for sessions that wait no more.
    fn take_abandoned(&mut self) -> Result<(), TargetError> {
        let mut completions = std::mem::take(&mut self.completions);
        for completion in completions.drain(..) {
            let index = completion.token as u32;
            match self.sessions[index as usize].phase {
                Phase::Scanning { memory, .. } => self.shared.give_scan_memory_back(memory),
                Phase::Reading { frame, block } => self.accept_block(frame, block, completion)?,
                Phase::ReadingFlash { frame, block, slot } => {
                    self.accept_flash(index, (frame, block, slot), completion)?
                }
                phase => unreachable!("a session in {phase:?} has no request in flight"),
            }
        }
        self.completions = completions;
        Ok(())
    }

    /// A block arrived that nobody waits for any more.
    fn accept_block(&mut self, frame: FrameId, block: u64, completion: Completion) -> Result<(), TargetError> {
        self.check_arrived(frame, self.shared.layout.identity(block), completion)?;
        self.accept(frame);
        Ok(())
    }

    fn accept(&self, frame: FrameId) {
        if self.shared.cache.finish_loading(frame) {
            self.shared.wakers.ring(ARRIVAL);
        }
        self.shared.cache.frame(frame).unpin();
    }

    /// The same from flash: what did not come from there is read from the data file, for others may wait for it.
    fn accept_flash(
        &mut self,
        index: u32,
        (frame, block, slot): (FrameId, u64, Slot),
        completion: Completion,
    ) -> Result<(), TargetError> {
        let shared = self.shared;
        if shared.flash.as_ref().is_some_and(|flash| self.is_from_flash(flash, (frame, block, slot), completion)) {
            self.accept(frame);
            return Ok(());
        }
        self.wait(index, Phase::Reading { frame, block });
        self.send_read(index, block, shared.cache.offset(frame), shared.layout.shape().bytes() as u32)
    }
}

impl Drop for EngineLane<'_> {
    fn drop(&mut self) {
        self.shared.reuse.give_back(&mut self.reuse);
        self.shared.wakers.remove(&self.waker);
    }
}
