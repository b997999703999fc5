//! One database writer: copies dirty buffers, seals them, and writes them in batches.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::block;
use super::cache::FrameId;
use super::frame::{CLEAN, DIRTY, LATCH, VALID};
use super::shared::Shared;
use super::wakers::CLEAN_BUFFERS;
use super::writers::Task;
use crate::error::TargetError;
use crate::io::{Arena, Completion, Direction, Patience, Queue, Request};
use measure::{Counter, WaitEvent};

/// Memory for copies of one batch.
const STAGING_BYTES: usize = 2 << 20;
/// Buffers of a batch at most.
const BATCH: usize = 256;
/// Largest single request made of neighbouring blocks.
const MAX_REQUEST_BYTES: u64 = 1 << 20;

/// A database writer. Runs on a thread of its own.
pub(super) struct DbWriter<'s> {
    shared: &'s Shared,
    directory: &'s Path,
    frames: Range<u64>,
    cursor: u64,
    staging: Arc<Arena>,
    queue: Queue,
    batch: Vec<Copied>,
    done: Vec<Completion>,
}

/// A buffer in a batch.
#[derive(Debug, Clone, Copy)]
struct Copied {
    frame: FrameId,
    block: u64,
    /// Redo position after the newest change in the copy.
    last_redo: u64,
}

/// Which dirty buffers a batch takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pick {
    /// Any that is at rest.
    AtRest,
    /// All that were first changed before this redo position, also those in use.
    FirstChangedBefore(u64),
}

impl<'s> DbWriter<'s> {
    /// Writer `number` of all writers. Must be made on the thread that runs it.
    ///
    /// # Errors
    /// When memory or requests cannot be set up.
    pub(super) fn new(shared: &'s Shared, directory: &'s Path, number: u32) -> Result<Self, TargetError> {
        let kernel = |action| move |source| TargetError::Kernel { action, source };
        let staging = Arc::new(Arena::new(STAGING_BYTES).map_err(kernel("map memory for a database writer"))?);
        let queue = Queue::new(shared.io_engine, &shared.data_files, Arc::clone(&staging), BATCH as u32)
            .map_err(kernel("set up a database writer's requests"))?;
        let (all, count) = (shared.cache.len(), u64::from(shared.writers.count()));
        let frames = all * u64::from(number) / count..all * u64::from(number + 1) / count;
        let cursor = frames.start;
        Ok(Self { shared, directory, frames, cursor, staging, queue, batch: Vec::new(), done: Vec::new() })
    }

    /// Writes until asked to stop.
    ///
    /// # Errors
    /// When a write fails.
    pub(super) fn run(mut self) -> Result<(), TargetError> {
        let mut swept = 0;
        loop {
            match self.shared.writers.next_task(self.shared, swept) {
                Task::Stop => return Ok(()),
                Task::Clean => {
                    self.clean_ahead()?;
                    // Sessions that always want clean buffers must not keep the checkpoint from going on.
                    if let Some(Task::Sweep { number, start }) =
                        self.shared.writers.sweep_in_progress(self.shared, swept)
                    {
                        self.sweep(start)?;
                        swept = number;
                    }
                }
                Task::Sweep { number, start } => {
                    self.sweep(start)?;
                    swept = number;
                }
            }
        }
    }

    fn batch_limit(&self) -> usize {
        BATCH.min(STAGING_BYTES / self.shared.layout.shape().bytes())
    }

    /// Writes one batch of what the clock hand will reach next.
    fn clean_ahead(&mut self) -> Result<(), TargetError> {
        let hand = self.shared.cache.hand_position();
        let own = self.frames.end - self.frames.start;
        if self.frames.contains(&hand) {
            self.cursor = hand;
        }
        self.batch.clear();
        for _ in 0..own {
            self.consider(self.cursor as FrameId, DIRTY);
            self.cursor += 1;
            if self.cursor >= self.frames.end {
                self.cursor = self.frames.start;
            }
            if self.batch.len() == self.batch_limit() {
                break;
            }
        }
        self.write_batch(Pick::AtRest)
    }

    /// Writes everything of this writer's frames that was first changed before `start`.
    fn sweep(&mut self, start: u64) -> Result<(), TargetError> {
        let mut at = self.frames.start;
        while at < self.frames.end && !self.shared.has_failed() {
            self.batch.clear();
            while at < self.frames.end && self.batch.len() < self.batch_limit() {
                // A latched frame may be about to become dirty with a change from before the sweep.
                self.consider(at as FrameId, DIRTY | LATCH);
                at += 1;
            }
            self.write_batch(Pick::FirstChangedBefore(start))?;
        }
        if self.shared.has_failed() {
            return Ok(());
        }
        self.shared.writers.finish_sweep(self.shared, self.directory)
    }

    fn consider(&mut self, frame: FrameId, bits: u64) {
        let state = self.shared.cache.frame(frame).state.load(Ordering::Acquire);
        if state & VALID != 0 && state & bits != 0 {
            let block = self.shared.cache.frame(frame).block.load(Ordering::Relaxed);
            self.batch.push(Copied { frame, block, last_redo: 0 });
        }
    }

    fn write_batch(&mut self, pick: Pick) -> Result<(), TargetError> {
        self.batch.sort_unstable_by_key(|copied| copied.block);
        self.copy(pick);
        if self.batch.is_empty() {
            return Ok(());
        }
        let newest = self.batch.iter().map(|copied| copied.last_redo).max().expect("the batch is not empty");
        // Write-ahead: no block reaches storage before the redo of its changes.
        if !self.shared.redo.make_durable(newest) {
            return Ok(());
        }
        self.write_copies()?;
        for copied in &self.batch {
            self.settle(*copied);
        }
        self.shared.writers.count_batch();
        self.shared.wakers.ring(CLEAN_BUFFERS);
        Ok(())
    }

    /// Copies the batch's buffers one after the other and drops from the batch what need not be written after all.
    fn copy(&mut self, pick: Pick) {
        let Self { shared, staging, batch, .. } = self;
        let bytes = shared.layout.shape().bytes();
        let mut copies = 0;
        batch.retain_mut(|copied| {
            let frame = shared.cache.frame(copied.frame);
            match pick {
                Pick::AtRest => {
                    if !frame.try_latch() {
                        return false;
                    }
                }
                Pick::FirstChangedBefore(_) => frame.latch(),
            }
            // Only a latched frame's state holds still. It may have been cleaned, and even be another block by now.
            let state = frame.state.load(Ordering::Acquire);
            let wanted = match pick {
                Pick::AtRest => true,
                Pick::FirstChangedBefore(start) => frame.first_redo.load(Ordering::Relaxed) < start,
            };
            let block = frame.block.load(Ordering::Relaxed);
            let take = state & VALID != 0 && state & DIRTY != 0 && wanted;
            if take {
                copied.block = block;
                copied.last_redo = frame.last_redo.load(Ordering::Relaxed);
                let at = (copies * bytes) as u64;
                // SAFETY: the latch keeps sessions from writing to the buffer, and a valid buffer is not being read into;
                // the staging memory is this writer's own and no request is in flight.
                let (from, to) = unsafe {
                    (shared.cache.arena().bytes(shared.cache.offset(copied.frame), bytes), staging.bytes_mut(at, bytes))
                };
                to.copy_from_slice(from);
                copies += 1;
            }
            frame.unlatch();
            if take {
                let at = ((copies - 1) * bytes) as u64;
                // SAFETY: as above.
                block::seal(unsafe { staging.bytes_mut(at, bytes) });
            }
            take
        });
    }

    /// Sends the copies, neighbours together, and waits for all of them.
    fn write_copies(&mut self) -> Result<(), TargetError> {
        let layout = &self.shared.layout;
        let block_bytes = layout.shape().bytes() as u64;
        let begin = self.shared.clock.now_ns();
        let mut requests = 0u64;
        let mut at = 0;
        while at < self.batch.len() {
            let first = self.batch[at].block;
            let most = layout.contiguous(first, MAX_REQUEST_BYTES / block_bytes) as usize;
            let mut length = 1;
            while length < most && self.batch.get(at + length).is_some_and(|next| next.block == first + length as u64) {
                length += 1;
            }
            let place = layout.place(first);
            let bytes = (length as u64 * block_bytes) as u32;
            let request = Request {
                direction: Direction::Write,
                file: place.file,
                file_offset: place.offset,
                arena_offset: at as u64 * block_bytes,
                bytes,
                token: first,
            };
            self.queue.push(request).map_err(|error| self.shared.bad_request("write", first, bytes, Err(error)))?;
            requests += 1;
            at += length;
        }
        self.done.clear();
        while self.queue.in_flight() > 0 {
            self.queue
                .wait(Patience::Until(Duration::from_secs(1)), &mut self.done)
                .map_err(|source| TargetError::Kernel { action: "wait for writes", source })?;
        }
        let mut written = 0;
        for completion in &self.done {
            match completion.bytes() {
                Ok(bytes) => written += u64::from(bytes),
                Err(error) => return Err(self.shared.bad_request("write", completion.token, 0, Err(error))),
            }
        }
        let bytes = self.batch.len() as u64 * block_bytes;
        if written != bytes {
            let error = std::io::ErrorKind::WriteZero.into();
            return Err(self.shared.bad_request("write", self.batch[0].block, bytes as u32, Err(error)));
        }
        let took = self.shared.clock.now_ns() - begin;
        self.shared.background.with(|recorded| {
            recorded.wait(WaitEvent::DbFileParallelWrite, took);
            recorded.count(Counter::PhysicalWrites, requests);
            recorded.count(Counter::PhysicalWriteBytes, bytes);
        });
        Ok(())
    }

    /// Marks a written buffer clean, unless it was changed again since it was copied.
    fn settle(&self, copied: Copied) {
        let frame = self.shared.cache.frame(copied.frame);
        frame.latch();
        if frame.last_redo.load(Ordering::Relaxed) == copied.last_redo {
            frame.first_redo.store(CLEAN, Ordering::Relaxed);
            frame.state.fetch_and(!DIRTY, Ordering::Release);
            self.shared.cache.count_cleaned();
        } else {
            // Its oldest unwritten change comes after the copy.
            frame.first_redo.store(copied.last_redo, Ordering::Relaxed);
        }
        frame.unlatch();
    }
}
