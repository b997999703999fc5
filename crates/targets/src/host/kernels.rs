//! What each kind of slice does. Every kernel returns an answer that follows from its seed alone, so that it can be checked and is not
//! optimized away.

use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;

use rustix::thread::futex;
use rustix::thread::futex::Flags;

use crate::database::Filling;
use crate::embedded::block::{BlockIdentity, BlockKind, check};
use crate::embedded::{BlockShape, CachedBlocks};
use crate::host::pin;
use crate::io::Arena;
use measure::os::{start_thread, thread_cpu_ns};
use model::workload::{HostKind, HostOperation, Rng, mix64};

/// What one thread works on. A part is made when a kind first needs it.
pub(super) struct Work {
    size_bytes: u64,
    cached: Option<Arc<CachedBlocks>>,
    blocks: Option<Blocks>,
    sort: Sort,
    join: Join,
    streams: Option<Streams>,
    chase: Option<Chase>,
    partner: Option<Partner>,
}

/// How a slice ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// With this answer, which is right as far as the kernel itself can tell.
    Right(u64),
    /// With a wrong one.
    Wrong,
}

impl Work {
    /// Of a thread that goes through `size_bytes` of memory and reads blocks of `cached`.
    pub(super) fn new(size_bytes: u64, cached: Option<Arc<CachedBlocks>>) -> Self {
        Self {
            size_bytes,
            cached,
            blocks: None,
            sort: Sort::default(),
            join: Join::default(),
            streams: None,
            chase: None,
            partner: None,
        }
    }

    /// Makes what slices of `kind` need. Memory is touched here, by the thread that calls.
    ///
    /// # Errors
    /// When there is not so much memory, or no thread to wake.
    pub(super) fn make_ready(
        &mut self,
        kind: HostKind,
        partner: impl FnOnce() -> io::Result<Partner>,
    ) -> io::Result<()> {
        match kind {
            HostKind::Checksum | HostKind::Compare if self.blocks.is_none() => self.blocks = Some(Blocks::new()),
            HostKind::MemoryCopy | HostKind::MemoryTriad if self.streams.is_none() => {
                self.streams = Some(Streams::new(self.size_bytes)?);
            }
            HostKind::MemoryLatency if self.chase.is_none() => self.chase = Some(Chase::new(self.size_bytes)?),
            HostKind::Wake if self.partner.is_none() => self.partner = Some(partner()?),
            _ => {}
        }
        Ok(())
    }

    /// Does a slice whose kind was made ready. Sleeps are the lane's own affair.
    pub(super) fn run(&mut self, slice: &HostOperation) -> Ended {
        let HostOperation { kind, seed, units } = *slice;
        let mut rng = Rng::new(seed, 0);
        let answer = match kind {
            HostKind::LogicalRead => {
                let found = self.cached.as_ref().map(|cached| cached.read(&mut rng, units));
                found.filter(|found| *found == units)
            }
            HostKind::Checksum => self.blocks.as_ref().and_then(|blocks| blocks.check(seed, units)),
            HostKind::Compare => self.blocks.as_ref().and_then(|blocks| blocks.compare(seed, units)),
            HostKind::Sort => self.sort.run(&mut rng, units),
            HostKind::HashJoin => self.join.run(&mut rng, units),
            HostKind::MemoryCopy => self.streams.as_mut().map(|streams| streams.copy(units)),
            HostKind::MemoryTriad => self.streams.as_mut().map(|streams| streams.triad(units)),
            HostKind::MemoryLatency => self.chase.as_mut().map(|chase| chase.run(units)),
            HostKind::Wake => self.partner.as_ref().and_then(|partner| partner.round_trip().then_some(1)),
            HostKind::Timer => Some(0),
        };
        black_box(answer).map_or(Ended::Wrong, Ended::Right)
    }

    /// Processor time of the thread that is woken.
    pub(super) fn partner_cpu_ns(&self) -> u64 {
        self.partner.as_ref().map_or(0, Partner::cpu_ns)
    }
}

/// Sorting as a database does it for `ORDER BY` or a merge join: keys, each with the row that it belongs to, kept from slice to slice so that none allocates.
#[derive(Debug, Default)]
struct Sort(Vec<(u64, u32)>);

impl Sort {
    /// Draws `keys` keys and sorts them. The row of the middle one; `None` if they were not in order.
    fn run(&mut self, rng: &mut Rng, keys: u64) -> Option<u64> {
        self.0.clear();
        self.0.extend((0..keys as u32).map(|row| (rng.next_u64(), row)));
        self.0.sort_unstable();
        let sorted = self.0.is_sorted();
        let middle = self.0.get(self.0.len() / 2)?;
        sorted.then_some(u64::from(middle.1))
    }
}

// A hash join: the smaller side is put into a table, the rows of the larger one look for their partners in it.

/// What no key is.
const EMPTY: u64 = u64::MAX;

/// A table with open addressing, kept from slice to slice so that none allocates.
#[derive(Debug, Default)]
struct Join {
    keys: Vec<u64>,
    rows: Vec<u32>,
}

impl Join {
    /// Builds a table of an eighth as many keys as are probed, and probes it; every other row has a partner. The sum of the
    /// partners' numbers; `None` if another number of rows had one.
    fn run(&mut self, rng: &mut Rng, probes: u64) -> Option<u64> {
        let built = (probes / HostKind::PROBES).max(1);
        let slots = (2 * built).next_power_of_two() as usize;
        self.keys.clear();
        self.keys.resize(slots, EMPTY);
        self.rows.resize(slots, 0);
        let first = rng.below(1 << 40);
        for row in 0..built {
            let slot = self.slot(first + 2 * row);
            self.keys[slot] = first + 2 * row;
            self.rows[slot] = row as u32;
        }
        let (mut sum, mut matches) = (0_u64, 0_u64);
        for probe in 0..probes {
            // Odd ones lie between the keys, so that they have no partner.
            let key = first + 2 * rng.below(built) + probe % 2;
            let slot = self.slot(key);
            if self.keys[slot] == key {
                matches += 1;
                sum += u64::from(self.rows[slot]);
            }
        }
        (matches == probes.div_ceil(2)).then_some(sum)
    }

    /// Where a key is, or would be.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mask = self.keys.len() - 1;
        let mut slot = mix64(key) as usize & mask;
        while self.keys[slot] != EMPTY && self.keys[slot] != key {
            slot = (slot + 1) & mask;
        }
        slot
    }
}

/// 1 MiB, and as much again to compare with: they stay in the caches of the core, so that the processor is what is measured.
const BLOCKS: usize = 128;
/// One block of so many differs from its twin in its last word.
const DIFFERS: usize = 16;

/// Sealed blocks, and copies of them.
struct Blocks {
    blocks: Vec<u8>,
    twins: Vec<u8>,
}

fn identity(number: usize) -> BlockIdentity {
    BlockIdentity { database: 1, address: number as u64, key: number as u64, schema: 0, kind: BlockKind::Row }
}

impl Blocks {
    fn new() -> Self {
        let bytes = HostKind::BLOCK_BYTES;
        let mut blocks = vec![0; BLOCKS * bytes];
        let mut rng = Rng::new(1, 1);
        for (number, block) in blocks.chunks_exact_mut(bytes).enumerate() {
            if let Some(shape) = BlockShape::new(bytes) {
                shape.build(block, identity(number), Filling::Incompressible, &mut rng);
            }
        }
        let mut twins = blocks.clone();
        for twin in twins.chunks_exact_mut(bytes).step_by(DIFFERS) {
            twin[bytes - 1] ^= 1;
        }
        Self { blocks, twins }
    }

    /// Numbers of `units` blocks in a row, around all that there are.
    fn numbers(seed: u64, units: u64) -> impl Iterator<Item = usize> {
        let start = start_of(seed, BLOCKS);
        (0..units as usize).map(move |place| (start + place) % BLOCKS)
    }

    /// Checks blocks as the engine checks those that it reads: checksum and identity. Which they were, or `None` if one was
    /// found to be wrong.
    fn check(&self, seed: u64, units: u64) -> Option<u64> {
        let bytes = HostKind::BLOCK_BYTES;
        let is_sound = |number: usize| {
            check(&self.blocks[number * bytes..(number + 1) * bytes], identity(number), Some(0)).is_ok()
        };
        Self::numbers(seed, units).all(is_sound).then(|| start_of(seed, BLOCKS) as u64)
    }

    /// Compares blocks with their twins. How many were the same.
    fn compare(&self, seed: u64, units: u64) -> Option<u64> {
        let bytes = HostKind::BLOCK_BYTES;
        let of = |number: usize| number * bytes..(number + 1) * bytes;
        let is_same = |number: &usize| self.blocks[of(*number)] == self.twins[of(*number)];
        let same = Self::numbers(seed, units).filter(is_same).count() as u64;
        let differ = Self::numbers(seed, units).filter(|number| number.is_multiple_of(DIFFERS)).count() as u64;
        (same + differ == units).then_some(same << 8 | start_of(seed, BLOCKS) as u64)
    }
}

/// Where in a row of so many things a slice begins.
fn start_of(seed: u64, among: usize) -> usize {
    (mix64(seed) % among.max(1) as u64) as usize
}

/// Whose turn it is.
const MINE: u32 = 0;
const PARTNERS: u32 = 1;
const OVER: u32 = 2;
/// The partner says so often how much processor time it has used: asking costs more than a round trip does otherwise.
const TRIPS_PER_READING: u32 = 64;

/// A thread that answers whenever it is woken. Ends when it is dropped.
pub(super) struct Partner {
    pair: Arc<Pair>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Pair {
    turn: AtomicU32,
    cpu_ns: AtomicU64,
}

impl Pair {
    /// Sleeps while it is `turn`'s turn; whose it is then.
    fn wait_while(&self, turn: u32) -> u32 {
        loop {
            let now = self.turn.load(Ordering::Acquire);
            if now != turn {
                return now;
            }
            // Woken for nothing, or because the turn has changed meanwhile: looked at again either way.
            let _ = futex::wait(&self.turn, Flags::PRIVATE, turn, None);
        }
    }

    fn give(&self, turn: u32) {
        self.turn.store(turn, Ordering::Release);
        let _ = futex::wake(&self.turn, Flags::PRIVATE, 1);
    }
}

impl Partner {
    /// Starts one on this processor, or on any.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn start(processor: Option<u32>) -> io::Result<Self> {
        let pair = Arc::new(Pair::default());
        let its = Arc::clone(&pair);
        let thread = start_thread(|begun| {
            std::thread::Builder::new().name("partner".to_owned()).spawn(move || {
                begun.say();
                // Where it cannot be moved, it answers from another processor: slower, and no less true.
                let _ = processor.map(pin);
                for trip in (0..=u32::MAX).cycle() {
                    if its.wait_while(MINE) == OVER {
                        return;
                    }
                    if trip.is_multiple_of(TRIPS_PER_READING) {
                        its.cpu_ns.store(thread_cpu_ns(), Ordering::Relaxed);
                    }
                    its.give(MINE);
                }
            })
        })?;
        Ok(Self { pair, thread: Some(thread) })
    }

    /// Wakes it and sleeps until it has answered. False if it has ended.
    pub(super) fn round_trip(&self) -> bool {
        self.pair.give(PARTNERS);
        self.pair.wait_while(PARTNERS) == MINE
    }

    /// Processor time that it has used, as of some round trips ago.
    pub(super) fn cpu_ns(&self) -> u64 {
        self.pair.cpu_ns.load(Ordering::Relaxed)
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        self.pair.give(OVER);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

// Memory by working-set size: how much of it moves in a second, and how long one load takes that has to wait for the one before it.
//
// Huge pages are asked for, as a database's buffer cache does: without them much of the time is that of finding pages.

/// A number that any processor multiplies by at full speed.
const SCALAR: f64 = 3.0;
/// What a cache holds of memory at once, on the processors that databases run on.
const LINE_BYTES: u64 = 64;
/// Bytes that a pass of a triad or of a copy moves for each number.
const TRIAD_BYTES: u64 = 24;
const COPY_BYTES: u64 = 16;

/// Arrays that are streamed through. A slice goes on where the one before it ended.
struct Streams {
    arena: Arena,
    at: usize,
}

impl Streams {
    /// Three arrays for triads, or two for copies, of `bytes` together, at least [`HostKind::MIN_MEMORY_BYTES`].
    fn new(bytes: u64) -> io::Result<Self> {
        let bytes = usize::try_from(bytes.max(HostKind::MIN_MEMORY_BYTES)).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut arena = Arena::new(bytes)?;
        arena.as_f64_mut().iter_mut().enumerate().for_each(|(place, number)| *number = (place % 1_024) as f64);
        Ok(Self { arena, at: 0 })
    }

    /// `a = b + s·c`, until so many bytes were read and written.
    fn triad(&mut self, bytes: u64) -> u64 {
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
    fn copy(&mut self, bytes: u64) -> u64 {
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
struct Chase {
    arena: Arena,
    at: u64,
}

impl Chase {
    /// Through `bytes`, at least 4 KiB.
    fn new(bytes: u64) -> io::Result<Self> {
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
    fn run(&mut self, loads: u64) -> u64 {
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
    use model::units::Bytes;

    fn answers(seed: u64) -> Vec<Ended> {
        let cached = Arc::new(CachedBlocks::new(Bytes::mib(1)).unwrap());
        let mut work = Work::new(1 << 20, Some(cached));
        let mut answers = Vec::new();
        for kind in HostKind::ALL {
            work.make_ready(kind, || Partner::start(None)).unwrap();
            for round in 0..2 {
                let units = kind.units(1 << 20).min(20_000);
                answers.push(work.run(&HostOperation { kind, seed: seed + round, units }));
            }
        }
        answers
    }

    #[test]
    fn the_same_seed_does_the_same_work_and_every_answer_is_right() {
        let first = answers(5);
        assert!(first.iter().all(|ended| matches!(ended, Ended::Right(_))), "{first:?}");
        assert_eq!(first, answers(5));
        assert_ne!(first, answers(6));
    }

    #[test]
    fn what_was_not_made_ready_is_no_work_done() {
        let slice = HostOperation { kind: HostKind::Checksum, seed: 1, units: 4 };
        assert_eq!(Work::new(1 << 20, None).run(&slice), Ended::Wrong);
    }

    #[test]
    fn the_middle_row_is_that_of_the_middle_key() {
        let mut rng = Rng::new(9, 0);
        let mut keys: Vec<(u64, u64)> = (0..1_001).map(|row| (rng.next_u64(), row)).collect();
        keys.sort();
        let mut sort = Sort::default();
        assert_eq!(sort.run(&mut Rng::new(9, 0), 1_001), Some(keys[500].1));
        assert_eq!(sort.0.len(), 1_001);
        assert_eq!(sort.run(&mut Rng::new(9, 0), 0), None);
    }

    #[test]
    fn every_row_with_a_partner_finds_it_and_no_other_does() {
        let mut rng = Rng::new(4, 0);
        let first = rng.below(1 << 40);
        let partners = (0..8_000).filter_map(|probe| {
            let row = rng.below(1_000);
            (probe % 2 == 0).then_some(row)
        });
        let expected: u64 = partners.sum();
        let mut join = Join::default();
        assert_eq!(join.run(&mut Rng::new(4, 0), 8_000), Some(expected));
        assert_eq!(join.keys.iter().filter(|key| **key != EMPTY).count(), 1_000);
        assert!(join.keys.contains(&first));
    }

    #[test]
    fn sound_blocks_are_sound_and_a_flipped_bit_is_found() {
        let mut blocks = Blocks::new();
        assert!(blocks.check(3, 300).is_some());
        assert_eq!(
            blocks.compare(3, BLOCKS as u64).map(|answer| answer >> 8),
            Some((BLOCKS - BLOCKS / DIFFERS) as u64)
        );
        blocks.blocks[5 * HostKind::BLOCK_BYTES + 77] ^= 4;
        assert_eq!(blocks.check(3, BLOCKS as u64), None);
        assert_eq!(blocks.compare(3, BLOCKS as u64), None);
    }

    #[test]
    fn every_trip_is_answered_and_the_partner_ends() {
        let partner = Partner::start(None).unwrap();
        assert!((0..500).all(|_| partner.round_trip()));
        let pair = Arc::clone(&partner.pair);
        drop(partner);
        assert_eq!(Arc::strong_count(&pair), 1, "its thread has gone");
    }

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
