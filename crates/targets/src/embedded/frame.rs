//! The state of one buffer frame, in one atomic word.
//!
//! ```text
//! bits  0..16  pins: sessions that look at the block just now
//! bit  20      VALID: holds the block named in `block`
//! bit  21      LOADING: a session is reading that block into it
//! bit  22      DIRTY: changed since it was last written
//! bit  23      LATCH: one session is changing it, or a writer is copying it
//! bit  24      WAITED: sessions wait for the loading to end
//! bit  25      CLAIMED: taken from the hash table for another block
//! bits 32..64  usage: how often the clock hand passes before the frame is taken
//! ```
//!
//! A frame with none of VALID, LOADING and CLAIMED is empty. Pins may be counted up and down for a moment by a session
//! that looked at the wrong frame, so no transition may overwrite the word: bits are set and cleared in place.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub(super) const PIN: u64 = 1;
const PINS: u64 = 0xffff;
/// The topmost bits: threads that count a use at the same moment may exceed the maximum, which must not carry over.
const USAGE: u64 = 1 << 32;
const USAGE_MASK: u64 = !(USAGE - 1);
/// A frame in steady use survives two passes of the clock hand.
const USAGE_MAX: u64 = 2 * USAGE;
pub(super) const VALID: u64 = 1 << 20;
pub(super) const LOADING: u64 = 1 << 21;
pub(super) const DIRTY: u64 = 1 << 22;
pub(super) const LATCH: u64 = 1 << 23;
pub(super) const WAITED: u64 = 1 << 24;
pub(super) const CLAIMED: u64 = 1 << 25;

/// Block number of an empty frame.
pub(super) const NO_BLOCK: u64 = u64::MAX;
/// Redo position of a clean frame's first change.
pub(super) const CLEAN: u64 = u64::MAX;

/// One buffer frame, in a cache line of its own.
#[repr(align(64))]
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) state: AtomicU64,
    /// The block that it holds or loads.
    pub(super) block: AtomicU64,
    /// Where the redo of its oldest unwritten change begins. Written under the latch.
    pub(super) first_redo: AtomicU64,
    /// Where the redo of its newest change ends. Written under the latch.
    pub(super) last_redo: AtomicU64,
    /// Next frame in the hash chain, plus one; zero ends the chain.
    pub(super) next: AtomicU32,
}

impl Default for Frame {
    fn default() -> Self {
        Self {
            state: AtomicU64::new(0),
            block: AtomicU64::new(NO_BLOCK),
            first_redo: AtomicU64::new(CLEAN),
            last_redo: AtomicU64::new(0),
            next: AtomicU32::new(0),
        }
    }
}

/// What the clock hand finds at a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Candidate {
    /// In use, or used lately.
    Busy,
    /// Changed and not yet written.
    Dirty,
    /// Holds a block that nobody needs: the state to claim it from.
    Evictable(u64),
    /// Holds nothing: the state to claim it from.
    Empty(u64),
}

impl Frame {
    /// Lets go of a pinned frame and counts the use.
    #[inline]
    pub(super) fn unpin_used(&self, seen: u64) {
        // The usage seen when it was pinned may be out of date: then it counts one too few, or goes above the maximum,
        // which the clock hand puts right.
        if seen & USAGE_MASK < USAGE_MAX {
            self.state.fetch_add(USAGE - PIN, Ordering::Release);
        } else {
            self.state.fetch_sub(PIN, Ordering::Release);
        }
    }

    /// Lets go of a pinned frame.
    #[inline]
    pub(super) fn unpin(&self) {
        self.state.fetch_sub(PIN, Ordering::Release);
    }

    /// Tries to become the only one who changes or copies the block.
    #[inline]
    pub(super) fn try_latch(&self) -> bool {
        self.state.fetch_or(LATCH, Ordering::Acquire) & LATCH == 0
    }

    /// Whether somebody holds the latch just now.
    pub(super) fn is_latched(&self) -> bool {
        self.state.load(Ordering::Relaxed) & LATCH != 0
    }

    /// Gives the latch back.
    #[inline]
    pub(super) fn unlatch(&self) {
        self.state.fetch_and(!LATCH, Ordering::Release);
    }

    /// Waits for the latch. Latches are held for less than a microsecond of work, so only a thread that has lost its
    /// processor makes this long.
    pub(super) fn latch(&self) {
        let mut tries = 0u32;
        while !self.try_latch() {
            tries += 1;
            if tries.is_multiple_of(64) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Looks at the frame with the clock hand, and takes one use off it.
    pub(super) fn pass_clock_hand(&self) -> Candidate {
        let state = self.state.load(Ordering::Relaxed);
        if state & (PINS | LOADING | CLAIMED | LATCH) != 0 {
            return Candidate::Busy;
        }
        if state & VALID == 0 {
            return Candidate::Empty(state);
        }
        if state & USAGE_MASK != 0 {
            let less = ((state & USAGE_MASK).min(USAGE_MAX) - USAGE) | (state & !USAGE_MASK);
            // Losing this race means that somebody uses the frame: as good as it gets.
            let _ = self.state.compare_exchange(state, less, Ordering::Relaxed, Ordering::Relaxed);
            return Candidate::Busy;
        }
        if state & DIRTY != 0 { Candidate::Dirty } else { Candidate::Evictable(state) }
    }

    /// Takes the frame out of service, if it is still in the state that the clock hand saw.
    pub(super) fn claim(&self, seen: u64) -> bool {
        self.state.compare_exchange(seen, CLAIMED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_frame_survives_two_passes_and_no_more() {
        let frame = Frame::default();
        frame.state.store(VALID, Ordering::Relaxed);
        for _ in 0..10 {
            let seen = frame.state.fetch_add(PIN, Ordering::Relaxed);
            frame.unpin_used(seen);
        }
        assert_eq!(frame.pass_clock_hand(), Candidate::Busy);
        assert_eq!(frame.pass_clock_hand(), Candidate::Busy);
        assert_eq!(frame.pass_clock_hand(), Candidate::Evictable(VALID));
    }

    #[test]
    fn a_use_counted_by_many_threads_at_once_changes_nothing_else() {
        let frame = Frame::default();
        frame.state.store(VALID, Ordering::Relaxed);
        let all_seen: Vec<u64> = (0..64).map(|_| frame.state.fetch_add(PIN, Ordering::Relaxed)).collect();
        all_seen.into_iter().for_each(|seen| frame.unpin_used(seen));
        assert_eq!(frame.state.load(Ordering::Relaxed) & !USAGE_MASK, VALID);
        assert_eq!(frame.pass_clock_hand(), Candidate::Busy);
        assert_eq!(frame.pass_clock_hand(), Candidate::Busy);
        assert_eq!(frame.pass_clock_hand(), Candidate::Evictable(VALID));
    }

    #[test]
    fn pinned_latched_and_loading_frames_are_left_alone() {
        for bits in [VALID | PIN, VALID | LATCH, LOADING, CLAIMED] {
            let frame = Frame::default();
            frame.state.store(bits, Ordering::Relaxed);
            assert_eq!(frame.pass_clock_hand(), Candidate::Busy);
        }
    }

    #[test]
    fn a_frame_that_changed_since_it_was_seen_is_not_claimed() {
        let frame = Frame::default();
        frame.state.store(VALID, Ordering::Relaxed);
        let Candidate::Evictable(seen) = frame.pass_clock_hand() else { panic!("not evictable") };
        frame.state.fetch_add(PIN, Ordering::Relaxed);
        assert!(!frame.claim(seen));
        frame.unpin();
        assert!(frame.claim(seen));
    }

    #[test]
    fn the_latch_has_one_holder() {
        let frame = Frame::default();
        assert!(frame.try_latch());
        assert!(!frame.try_latch());
        frame.unlatch();
        assert!(frame.try_latch());
    }
}
