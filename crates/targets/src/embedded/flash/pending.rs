//! Blocks on their way to flash: copies in memory that a session puts there and the flash writer takes.
//!
//! A queue without locks for many sessions and one writer (Vyukov's bounded queue). Copies lie beside each other in the order in
//! which they were put there, so that the writer sends many of them with one request.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

struct QueueSlot {
    /// The turn in which it is free, or one more when it is full.
    turn: AtomicU64,
    block: AtomicU64,
    epoch: AtomicU32,
}

pub(super) struct Pending {
    places: Vec<QueueSlot>,
    put: AtomicU64,
    /// Only the writer changes it.
    taken: AtomicU64,
}

/// A place that a session fills.
pub(super) struct Filling<'p> {
    place: &'p QueueSlot,
    turn: u64,
    /// Number of the place.
    pub(super) number: usize,
}

impl Filling<'_> {
    /// The copy is there: of this block, which had changed so often.
    pub(super) fn fill(self, block: u64, epoch: u32) {
        self.place.block.store(block, Ordering::Relaxed);
        self.place.epoch.store(epoch, Ordering::Relaxed);
        self.place.turn.store(self.turn + 1, Ordering::Release);
    }

    /// How many were put here before.
    pub(super) fn turn(&self) -> u64 {
        self.turn
    }
}

impl Pending {
    /// Room for `places` copies, a power of two.
    pub(super) fn new(places: usize) -> Self {
        assert!(places.is_power_of_two(), "turns are counted on over the last place");
        let place = |turn| QueueSlot { turn: AtomicU64::new(turn), block: AtomicU64::new(0), epoch: AtomicU32::new(0) };
        Self { places: (0..places as u64).map(place).collect(), put: AtomicU64::new(0), taken: AtomicU64::new(0) }
    }

    fn number(&self, turn: u64) -> usize {
        turn as usize & (self.places.len() - 1)
    }

    /// A place for a copy; none where the writer is behind.
    pub(super) fn put(&self) -> Option<Filling<'_>> {
        let mut turn = self.put.load(Ordering::Relaxed);
        loop {
            let number = self.number(turn);
            let place = &self.places[number];
            let found = place.turn.load(Ordering::Acquire);
            match found.cmp(&turn) {
                // It still has the copy of a round before.
                std::cmp::Ordering::Less => return None,
                // Another session was quicker.
                std::cmp::Ordering::Greater => turn = self.put.load(Ordering::Relaxed),
                std::cmp::Ordering::Equal => {
                    match self.put.compare_exchange_weak(turn, turn + 1, Ordering::Relaxed, Ordering::Relaxed) {
                        Ok(_) => return Some(Filling { place, turn, number }),
                        Err(newer) => turn = newer,
                    }
                }
            }
        }
    }

    /// The oldest copies, as many as lie beside each other and at most `most`; nothing where they are fewer than `least`.
    pub(super) fn take(&self, least: usize, most: usize) -> Option<Range<usize>> {
        let first = self.taken.load(Ordering::Relaxed);
        let begin = self.number(first);
        let to_edge = self.places.len() - begin;
        let is_full =
            |ahead: &usize| self.places[begin + ahead].turn.load(Ordering::Acquire) == first + *ahead as u64 + 1;
        let count = (0..most.min(to_edge)).take_while(is_full).count();
        // At the edge no more can lie beside each other, however long one waits.
        (count > 0 && (count >= least || count == to_edge)).then(|| begin..begin + count)
    }

    /// The block of a copy that was taken, and how often it had changed.
    pub(super) fn copy(&self, number: usize) -> (u64, u32) {
        let place = &self.places[number];
        (place.block.load(Ordering::Relaxed), place.epoch.load(Ordering::Relaxed))
    }

    /// Copies that were taken are not needed any more.
    pub(super) fn free(&self, taken: Range<usize>) {
        let first = self.taken.load(Ordering::Relaxed);
        for (number, turn) in taken.zip(first..) {
            self.places[number].turn.store(turn + self.places.len() as u64, Ordering::Release);
            self.taken.store(turn + 1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(pending: &Pending, block: u64) -> Option<usize> {
        let filling = pending.put()?;
        let number = filling.number;
        filling.fill(block, 1);
        Some(number)
    }

    #[test]
    fn copies_come_out_in_order_and_a_full_queue_takes_no_more() {
        let pending = Pending::new(8);
        (0..8).for_each(|block| assert_eq!(put(&pending, block), Some(block as usize)));
        assert_eq!(put(&pending, 8), None);
        assert_eq!(pending.take(3, 5), Some(0..5));
        assert_eq!(pending.copy(4), (4, 1));
        pending.free(0..5);
        assert_eq!(put(&pending, 8), Some(0));
        assert_eq!(pending.take(4, 5), Some(5..8), "up to the edge, though they are few");
        pending.free(5..8);
        assert_eq!(pending.take(2, 5), None);
        assert_eq!(pending.take(1, 5), Some(0..1));
    }

    #[test]
    fn a_place_that_is_still_being_filled_holds_up_those_behind_it() {
        let pending = Pending::new(4);
        let first = pending.put().unwrap();
        put(&pending, 2).unwrap();
        assert_eq!(pending.take(1, 4), None);
        first.fill(1, 0);
        assert_eq!(pending.take(1, 4), Some(0..2));
    }

    #[test]
    fn no_copy_is_lost_or_seen_twice_between_threads() {
        let pending = Pending::new(16);
        let mut seen = vec![0_u32; 3_000];
        std::thread::scope(|scope| {
            for thread in 0..3_u64 {
                let pending = &pending;
                scope.spawn(move || {
                    for block in (0..1_000).map(|at| thread * 1_000 + at) {
                        while put(pending, block).is_none() {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let mut left = 3_000;
            while left > 0 {
                let Some(taken) = pending.take(1, 4) else {
                    std::thread::yield_now();
                    continue;
                };
                taken.clone().for_each(|number| seen[pending.copy(number).0 as usize] += 1);
                left -= taken.len();
                pending.free(taken);
            }
        });
        assert!(seen.iter().all(|times| *times == 1));
    }
}
