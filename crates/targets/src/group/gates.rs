//! Who may change an extent: any number of writes of load at once, or one repair alone.
//!
//! A repair copies what it reads. A write between its read and its write would be undone by it, without any trace. So writes
//! pass a gate, and a repair closes it while none is inside.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Extents share gates: two that are written at once meet rarely.
const GATES: usize = 1024;
const CLOSED: u32 = 1 << 31;
/// How often a repair looks whether it may close the gate, and how long it waits between.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_micros(200);

/// The gates of a group.
#[derive(Debug)]
pub struct Gates(Box<[AtomicU32]>);

impl Default for Gates {
    fn default() -> Self {
        Self((0..GATES).map(|_| AtomicU32::new(0)).collect())
    }
}

impl Gates {
    #[inline]
    fn gate(&self, slot: u16, extent: u32) -> &AtomicU32 {
        &self.0[(usize::from(slot) * 97 + extent as usize) % GATES]
    }

    /// A write of an extent begins. Waits while it is being repaired.
    #[inline]
    pub fn enter(&self, slot: u16, extent: u32) {
        let gate = self.gate(slot, extent);
        while gate.fetch_add(1, Ordering::Acquire) & CLOSED != 0 {
            gate.fetch_sub(1, Ordering::Release);
            std::thread::sleep(PAUSE);
        }
    }

    /// A write has ended.
    #[inline]
    pub fn leave(&self, slot: u16, extent: u32) {
        self.gate(slot, extent).fetch_sub(1, Ordering::Release);
    }

    /// Keeps writes away from an extent as long as the result lives. None where writes were in flight all the while, those of
    /// this very thread perhaps.
    pub fn close(&self, slot: u16, extent: u32) -> Option<Closed<'_>> {
        let gate = self.gate(slot, extent);
        for _ in 0..TRIES {
            if gate.compare_exchange(0, CLOSED, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Some(Closed(gate));
            }
            std::thread::sleep(PAUSE);
        }
        None
    }
}

/// A closed gate.
pub struct Closed<'a>(&'a AtomicU32);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(CLOSED, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_waits_for_writes_and_writes_for_it() {
        let gates = Gates::default();
        gates.enter(1, 5);
        assert!(gates.close(1, 5).is_none(), "a write is in flight");
        gates.leave(1, 5);
        let closed = gates.close(1, 5).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| gates.enter(1, 5));
            std::thread::sleep(Duration::from_millis(5));
            assert!(!writer.is_finished());
            drop(closed);
        });
        gates.leave(1, 5);
        assert!(gates.close(1, 5).is_some());
    }
}
