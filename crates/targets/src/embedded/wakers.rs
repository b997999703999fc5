//! Waking threads that wait for each other.
//!
//! A lane that has sessions waiting says so before it sleeps: it sets the bits of what it waits for, looks once more, and
//! only then sleeps. Whoever makes such a thing happen rings for its bit. In this order no wake-up can be lost. What is
//! looked at need not be sequentially consistent itself: the fences on both sides see to it.

use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Arc, PoisonError, RwLock};

use crate::io::Waker;

/// Redo became durable, or the log has room again.
pub(super) const LOG: u32 = 1;
/// Buffers became clean.
pub(super) const CLEAN_BUFFERS: u32 = 2;
/// A block that was being read has arrived, or memory for a scan is free.
pub(super) const ARRIVAL: u32 = 4;
/// Something failed.
pub(super) const FAILURE: u32 = 8;

/// One lane's waker.
pub(super) struct LaneWaker {
    waker: Waker,
    waits_for: AtomicU32,
}

impl LaneWaker {
    /// Says what the lane waits for from now on.
    pub(super) fn listen(&self, bits: u32) {
        self.waits_for.store(bits, Ordering::Relaxed);
        if bits != 0 {
            fence(Ordering::SeqCst);
        }
    }
}

/// The wakers of all lanes.
#[derive(Default)]
pub(super) struct Wakers(RwLock<Vec<Arc<LaneWaker>>>);

impl Wakers {
    /// Adds a lane.
    pub(super) fn add(&self, waker: Waker) -> Arc<LaneWaker> {
        let waker = Arc::new(LaneWaker { waker, waits_for: AtomicU32::new(0) });
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&waker));
        waker
    }

    /// Removes a lane.
    pub(super) fn remove(&self, waker: &Arc<LaneWaker>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).retain(|other| !Arc::ptr_eq(other, waker));
    }

    /// Wakes every lane that waits for any of `bits`.
    pub(super) fn ring(&self, bits: u32) {
        fence(Ordering::SeqCst);
        for waker in self.0.read().unwrap_or_else(PoisonError::into_inner).iter() {
            if waker.waits_for.load(Ordering::Relaxed) & bits != 0 {
                // The lane may have begun to listen anew just now: waking it comes last and makes up for that.
                waker.waits_for.store(0, Ordering::Relaxed);
                waker.waker.wake();
            }
        }
    }
}
