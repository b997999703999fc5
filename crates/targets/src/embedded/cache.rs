//! The buffer cache: the only cache between sessions and storage.
//!
//! Lookups take no lock. A hash bucket points to a chain of frames; a session that finds its block pins the frame and
//! then looks again whether it still is that block. Only inserting and removing take the bucket's lock. Frames are
//! replaced by a clock hand that spares frames in use (generalised CLOCK, as PostgreSQL has it).
//!
//! The cache's size is all the memory it takes: buffers, frames, hash table and the change map, as Oracle's SGA counts
//! its headers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::block::BlockShape;
use super::changes::ChangeMap;
use super::frame::{CLAIMED, Candidate, Frame, LOADING, NO_BLOCK, PIN, VALID, WAITED};
use crate::error::TargetError;
use crate::io::{Arena, prefetch};
use model::units::Bytes;
use model::workload::mix64;

/// Fewest frames that a cache works with.
const MIN_FRAMES: u64 = 64;
/// Bit of a hash bucket that says that somebody changes its chain.
const BUCKET_LOCK: u32 = 1 << 31;
/// A chain longer than this means that frames moved while it was walked: the walk is given up and done under the lock.
const LONGEST_WALK: u32 = 64;
/// Frames that a thread takes from the clock hand at a time.
const HAND_STRIDE: u64 = 16;

/// Counts of blocks that became dirty.
const EPOCHS: usize = 1024;

/// Number of a frame.
pub(super) type FrameId = u32;

/// The buffer cache, shared by all threads.
pub(super) struct Cache {
    frames: Vec<Frame>,
    buckets: Vec<AtomicU32>,
    bucket_shift: u32,
    hand: AtomicU64,
    dirty: AtomicU64,
    /// How often blocks became dirty, many of them counted together; empty where nobody asks.
    epochs: Vec<AtomicU32>,
    arena: Arc<Arena>,
    block_bytes: u64,
}

/// What a lookup finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    /// The block is there. It is pinned; `seen` goes back to [`Frame::unpin_used`].
    Hit { frame: FrameId, seen: u64 },
    /// A session is reading it just now.
    Loading(FrameId),
    /// It is not there.
    Miss,
}

/// What an attempt to make room for a block ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allocation {
    /// The frame is the block's, in state LOADING and pinned: the caller reads it.
    Frame(FrameId),
    /// Another thread was quicker: look again.
    Present,
    /// All frames are dirty or in use.
    NoneFree,
}

/// A thread's share of the clock hand.
#[derive(Debug, Default)]
pub(super) struct Hand {
    next: u64,
    end: u64,
    /// What the frame held that it found last.
    pub(super) evicted: Option<Evicted>,
}

/// A clean block that left the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Evicted {
    /// The block.
    pub(super) block: u64,
    /// Its [`Cache::epoch`] before it left.
    pub(super) epoch: u32,
}

impl Cache {
    /// Frames that a cache of `bytes` holds for a data set with `row_blocks` blocks, where so much of it is needed `besides`.
    ///
    /// # Errors
    /// [`TargetError::CacheTooSmall`].
    pub(super) fn frames_in(
        bytes: Bytes,
        shape: BlockShape,
        (row_blocks, besides): (u64, Bytes),
        pinned_at_once: u64,
    ) -> Result<u64, TargetError> {
        // Twice the sessions that may pin or load a block at once leaves the clock hand something to find.
        let least = MIN_FRAMES.max(2 * pinned_at_once);
        let each = Self::frame_bytes(shape);
        let needed = ChangeMap::bytes(row_blocks) + besides.0 + least * each;
        let frames = Self::frames_of(Bytes(bytes.0.saturating_sub(besides.0)), shape, row_blocks);
        if frames < least {
            return Err(TargetError::CacheTooSmall { cache: bytes, needed: Bytes(needed) });
        }
        Ok(frames)
    }

    /// Frames of a cache of `bytes`, however few.
    pub(super) fn frames_of(bytes: Bytes, shape: BlockShape, row_blocks: u64) -> u64 {
        bytes.0.saturating_sub(ChangeMap::bytes(row_blocks)) / Self::frame_bytes(shape)
    }

    /// Memory of one frame: its buffer, its state, and its part of the hash table (at most two buckets of 4 bytes).
    fn frame_bytes(shape: BlockShape) -> u64 {
        (shape.bytes() + size_of::<Frame>() + 2 * size_of::<AtomicU32>()) as u64
    }

    /// A cache of `frames` frames whose buffers are the first bytes of `arena`.
    pub(super) fn new(frames: u64, shape: BlockShape, arena: Arc<Arena>) -> Self {
        assert!(arena.len() as u64 >= frames * shape.bytes() as u64, "the arena holds all frames");
        assert!(frames < u64::from(BUCKET_LOCK), "frame numbers leave room for the lock bit");
        let buckets = frames.next_power_of_two();
        Self {
            frames: (0..frames).map(|_| Frame::default()).collect(),
            buckets: (0..buckets).map(|_| AtomicU32::new(0)).collect(),
            bucket_shift: u64::BITS - buckets.trailing_zeros(),
            hand: AtomicU64::new(0),
            dirty: AtomicU64::new(0),
            epochs: Vec::new(),
            arena,
            block_bytes: shape.bytes() as u64,
        }
    }

    /// Number of frames.
    pub(super) fn len(&self) -> u64 {
        self.frames.len() as u64
    }

    /// The memory of the buffers.
    #[inline]
    pub(super) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Where the buffer of a frame begins in the arena.
    #[inline]
    pub(super) fn offset(&self, frame: FrameId) -> u64 {
        u64::from(frame) * self.block_bytes
    }

    /// A frame's state.
    #[inline]
    pub(super) fn frame(&self, frame: FrameId) -> &Frame {
        &self.frames[frame as usize]
    }

    /// Frames changed and not yet written.
    pub(super) fn dirty(&self) -> u64 {
        self.dirty.load(Ordering::Relaxed)
    }

    /// Counts the frame of a block that became dirty.
    #[inline]
    pub(super) fn count_dirtied(&self, block: u64) {
        self.dirty.fetch_add(1, Ordering::Relaxed);
        if let Some(epoch) = self.epochs.get(block as usize % EPOCHS) {
            epoch.fetch_add(1, Ordering::Release);
        }
    }

    /// Counts from now on how often blocks become dirty.
    pub(super) fn with_epochs(mut self) -> Self {
        self.epochs = (0..EPOCHS).map(|_| AtomicU32::new(0)).collect();
        self
    }

    /// Is another one after the block became dirty; always 0 where nobody counts.
    pub(super) fn epoch(&self, block: u64) -> u32 {
        self.epochs.get(block as usize % EPOCHS).map_or(0, |epoch| epoch.load(Ordering::Acquire))
    }

    /// Counts a frame that became clean.
    pub(super) fn count_cleaned(&self) {
        self.dirty.fetch_sub(1, Ordering::Relaxed);
    }

    /// Where the clock hand stands.
    pub(super) fn hand_position(&self) -> u64 {
        self.hand.load(Ordering::Relaxed) % self.len()
    }

    #[inline]
    fn bucket(&self, block: u64) -> &AtomicU32 {
        // With a single bucket the shift would be all 64 bits, which the processor does not do.
        &self.buckets[mix64(block).checked_shr(self.bucket_shift).unwrap_or(0) as usize]
    }

    /// First step of bringing the lines of a lookup near: the hash bucket.
    #[inline]
    pub(super) fn prefetch_bucket(&self, block: u64) {
        prefetch(self.bucket(block));
    }

    /// Second step: the first frame of the chain and the header of its buffer.
    #[inline]
    pub(super) fn prefetch_frame(&self, block: u64) {
        let first = self.bucket(block).load(Ordering::Relaxed) & !BUCKET_LOCK;
        if first != 0 {
            let frame = first - 1;
            prefetch(self.frame(frame));
            self.arena.prefetch(self.offset(frame));
        }
    }

    /// Looks for a block, without a lock.
    #[inline]
    pub(super) fn lookup(&self, block: u64) -> Lookup {
        let mut link = self.bucket(block).load(Ordering::Acquire) & !BUCKET_LOCK;
        let mut steps = 0;
        while link != 0 && steps < LONGEST_WALK {
            let id = link - 1;
            let frame = self.frame(id);
            if frame.block.load(Ordering::Acquire) == block {
                let seen = frame.state.fetch_add(PIN, Ordering::Acquire);
                if frame.block.load(Ordering::Relaxed) == block {
                    if seen & VALID != 0 {
                        return Lookup::Hit { frame: id, seen };
                    }
                    if seen & LOADING != 0 {
                        frame.unpin();
                        return Lookup::Loading(id);
                    }
                }
                frame.unpin();
            }
            link = frame.next.load(Ordering::Acquire);
            steps += 1;
        }
        Lookup::Miss
    }

    /// Makes room for a block that a lookup missed.
    pub(super) fn allocate(&self, block: u64, hand: &mut Hand) -> Allocation {
        let Some(id) = self.claim_frame(hand) else { return Allocation::NoneFree };
        let frame = self.frame(id);
        let bucket = self.lock_bucket(block);
        let mut link = bucket & !BUCKET_LOCK;
        while link != 0 {
            let other = self.frame(link - 1);
            if other.block.load(Ordering::Relaxed) == block
                && other.state.load(Ordering::Relaxed) & (VALID | LOADING) != 0
            {
                self.unlock_bucket(block, bucket);
                frame.block.store(NO_BLOCK, Ordering::Relaxed);
                frame.state.fetch_and(!CLAIMED, Ordering::Release);
                return Allocation::Present;
            }
            link = other.next.load(Ordering::Relaxed);
        }
        frame.block.store(block, Ordering::Relaxed);
        frame.next.store(bucket & !BUCKET_LOCK, Ordering::Relaxed);
        // Bits are flipped in place: strangers' passing pins are kept.
        frame.state.fetch_add(PIN, Ordering::Relaxed);
        frame.state.fetch_xor(CLAIMED | LOADING, Ordering::AcqRel);
        self.unlock_bucket(block, id + 1);
        Allocation::Frame(id)
    }

    /// Tells that a frame's block has arrived; it stays pinned. Returns whether sessions of other threads may wait for it.
    pub(super) fn finish_loading(&self, id: FrameId) -> bool {
        let before = self.frame(id).state.fetch_xor(LOADING | VALID, Ordering::AcqRel);
        if before & WAITED != 0 {
            self.frame(id).state.fetch_and(!WAITED, Ordering::Relaxed);
        }
        before & WAITED != 0
    }

    /// Announces that a session waits for a frame to be loaded. Returns false when the loading is over already.
    pub(super) fn wait_for_loading(&self, id: FrameId, block: u64) -> bool {
        let before = self.frame(id).state.fetch_or(WAITED, Ordering::AcqRel);
        before & LOADING != 0 && self.frame(id).block.load(Ordering::Relaxed) == block
    }

    /// Whether a frame is still being loaded with `block`.
    pub(super) fn is_loading(&self, id: FrameId, block: u64) -> bool {
        let frame = self.frame(id);
        frame.state.load(Ordering::Acquire) & LOADING != 0 && frame.block.load(Ordering::Relaxed) == block
    }

    /// Takes a frame out of service: out of the hash table, state CLAIMED. None when all are dirty or in use.
    fn claim_frame(&self, hand: &mut Hand) -> Option<FrameId> {
        let frames = self.len();
        // A frame in use needs three passes to lose its uses. Dirty frames do not become clean by passing them.
        let most_passes = 4 * frames + HAND_STRIDE;
        let most_dirty = (frames / 2).clamp(1, 1024);
        let mut dirty = 0;
        for _ in 0..most_passes {
            if hand.next == hand.end {
                hand.next = self.hand.fetch_add(HAND_STRIDE, Ordering::Relaxed);
                hand.end = hand.next + HAND_STRIDE;
            }
            let id = (hand.next % frames) as FrameId;
            hand.next += 1;
            match self.frame(id).pass_clock_hand() {
                Candidate::Busy => {}
                Candidate::Dirty => {
                    dirty += 1;
                    if dirty > most_dirty {
                        return None;
                    }
                }
                Candidate::Empty(seen) => {
                    if self.frame(id).claim(seen) {
                        hand.evicted = None;
                        return Some(id);
                    }
                }
                Candidate::Evictable(seen) => {
                    hand.evicted = self.evict(id, seen);
                    if hand.evicted.is_some() {
                        return Some(id);
                    }
                }
            }
        }
        None
    }

    fn evict(&self, id: FrameId, seen: u64) -> Option<Evicted> {
        let frame = self.frame(id);
        let block = frame.block.load(Ordering::Relaxed);
        if block == NO_BLOCK {
            return None;
        }
        let first = self.lock_bucket(block) & !BUCKET_LOCK;
        // Looked at first: once the frame is claimed, the block may be read again and changed elsewhere.
        let evicted = Evicted { block, epoch: self.epoch(block) };
        // The frame may have changed hands before the lock was ours: then its state or its block differ.
        if frame.block.load(Ordering::Relaxed) != block || !frame.claim(seen) {
            self.unlock_bucket(block, first);
            return None;
        }
        let next = frame.next.load(Ordering::Relaxed);
        if first == id + 1 {
            self.unlock_bucket(block, next);
        } else {
            let mut link = first;
            while link != 0 {
                let other = self.frame(link - 1);
                let after = other.next.load(Ordering::Relaxed);
                if after == id + 1 {
                    other.next.store(next, Ordering::Release);
                    break;
                }
                link = after;
            }
            debug_assert_ne!(link, 0, "a valid frame is in the chain of its block");
            self.unlock_bucket(block, first);
        }
        frame.block.store(NO_BLOCK, Ordering::Relaxed);
        Some(evicted)
    }

    /// Locks a bucket and returns its first link (without the lock bit).
    fn lock_bucket(&self, block: u64) -> u32 {
        let bucket = self.bucket(block);
        let mut tries = 0u32;
        loop {
            let before = bucket.fetch_or(BUCKET_LOCK, Ordering::Acquire);
            if before & BUCKET_LOCK == 0 {
                return before;
            }
            tries += 1;
            if tries.is_multiple_of(64) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Unlocks a bucket and sets its first link.
    fn unlock_bucket(&self, block: u64, first: u32) {
        self.bucket(block).store(first & !BUCKET_LOCK, Ordering::Release);
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
