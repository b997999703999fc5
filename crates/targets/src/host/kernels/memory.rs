//! Memory by working-set size: how much of it moves in a second, and how long one load takes that has to wait for the one before it.
//!
//! Huge pages are asked for, as a database's buffer cache does: without them much of the time is that of finding pages.

use std::hint::black_box;
use std::io;

use crate::io::Arena;
use model::workload::{HostKind, Rng};

/// A number that any processor multiplies by at full speed.
const SCALAR: f64 = 3.0;
/// What a cache holds of memory at once, on the processors that databases run on.
const LINE_BYTES: u64 = 64;
/// Bytes that a pass of a triad or of a copy moves for each number.
const TRIAD_BYTES: u64 = 24;
const COPY_BYTES: u64 = 16;

/// Arrays that are streamed through. A slice goes on where the one before it ended.
pub(super) struct Streams {
    arena: Arena,
    at: usize,
}

impl Streams {
    /// Three arrays for triads, or two for copies, of `bytes` together, at least [`HostKind::MIN_MEMORY_BYTES`].
    pub(super) fn new(bytes: u64) -> io::Result<Self> {
        let bytes = usize::try_from(bytes.max(HostKind::MIN_MEMORY_BYTES)).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut arena = Arena::new(bytes)?;
        arena.as_f64_mut().iter_mut().enumerate().for_each(|(place, number)| *number = (place % 1_024) as f64);
        Ok(Self { arena, at: 0 })
    }

    /// `a = b + s·c`, until so many bytes were read and written.
    pub(super) fn triad(&mut self, bytes: u64) -> u64 {
        let numbers = self.arena.as_f64_mut();
        let third = numbers.len() / 3;
        let (a, rest) = numbers.split_at_mut(third);
        let (b, c) = rest.split_at_mut(third);
        let passes = stretches(&mut self.at, third, bytes / TRIAD_BYTES);
        passes.iter().for_each(|stretch| {
            let stretch = stretch.clone();
            triad(&mut a[stretch.clone()], &b[stretch.clone()], &c[stretch]);
            black_box(&mut *a);
        });
        a[0].to_bits()
    }

    /// `a = b`, until so many bytes were read and written.
    pub(super) fn copy(&mut self, bytes: u64) -> u64 {
        let numbers = self.arena.as_f64_mut();
        let half = numbers.len() / 2;
        let (a, b) = numbers.split_at_mut(half);
        let passes = stretches(&mut self.at, half, bytes / COPY_BYTES);
        passes.iter().for_each(|stretch| {
            a[stretch.clone()].copy_from_slice(&b[stretch.clone()]);
            black_box(&mut *a);
        });
        a[0].to_bits()
    }
}

#[inline(never)]
fn triad(a: &mut [f64], b: &[f64], c: &[f64]) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = *b + SCALAR * *c;
    }
}

/// The next `count` places from `at` on, around an array of `length` as often as it takes.
fn stretches(at: &mut usize, length: usize, count: u64) -> Vec<std::ops::Range<usize>> {
    let mut left = count as usize;
    let mut found = Vec::with_capacity(left / length.max(1) + 2);
    *at = if *at < length { *at } else { 0 };
    while left > 0 && length > 0 {
        let end = length.min(*at + left);
        found.push(*at..end);
        left -= end - *at;
        *at = if end == length { 0 } else { end };
    }
    found
}

/// A walk through every line of some memory in an order that no processor foresees.
pub(super) struct Chase {
    arena: Arena,
    at: u64,
}

impl Chase {
    /// Through `bytes`, at least 4 KiB.
    pub(super) fn new(bytes: u64) -> io::Result<Self> {
        let lines = bytes.max(HostKind::MIN_MEMORY_BYTES) / LINE_BYTES;
        let whole = usize::try_from(lines * LINE_BYTES).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let arena = Arena::new(whole)?;
        // Sattolo's shuffle makes one cycle of all lines, so that no part of it is walked alone.
        let mut next: Vec<u32> = (0..u32::try_from(lines).map_err(|_| io::ErrorKind::OutOfMemory)?).collect();
        let mut rng = Rng::new(2, 2);
        for place in (1..next.len()).rev() {
            next.swap(place, rng.below(place as u64) as usize);
        }
        for (line, next) in next.iter().enumerate() {
            arena.store(line as u64 * LINE_BYTES, u64::from(*next) * LINE_BYTES);
        }
        Ok(Self { arena, at: 0 })
    }

    /// So many loads, each from where the one before it says. Where the walk has come to.
    pub(super) fn run(&mut self, loads: u64) -> u64 {
        let mut at = self.at;
        for _ in 0..loads {
            at = self.arena.load(at);
        }
        self.at = black_box(at);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_triad_is_computed_and_a_copy_is_one() {
        let mut streams = Streams::new(48 << 10).unwrap();
        let numbers = streams.arena.len() / 8;
        let third = numbers / 3;
        // Once around and a piece.
        streams.triad(third as u64 * TRIAD_BYTES + 240);
        let all = streams.arena.as_f64_mut();
        assert!((0..third).all(|place| all[place] == all[third + place] + SCALAR * all[2 * third + place]));
        assert_eq!(streams.at, 10);
        streams.copy(numbers as u64 / 2 * COPY_BYTES);
        let (a, b) = streams.arena.as_f64_mut().split_at(numbers / 2);
        assert!(a.iter().zip(b).all(|(a, b)| a == b));
    }

    #[test]
    fn stretches_add_up_to_what_is_asked_for() {
        let mut at = 7;
        let found = stretches(&mut at, 10, 25);
        assert_eq!(found, [7..10, 0..10, 0..10, 0..2]);
        assert_eq!(at, 2);
    }

    #[test]
    fn a_chase_comes_through_every_line_before_it_comes_back() {
        let mut chase = Chase::new(64 << 10).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1_024 {
            assert!(seen.insert(chase.run(1)));
        }
        assert_eq!(chase.run(1), *seen.iter().find(|at| **at == chase.arena.load(0)).unwrap());
    }
}
