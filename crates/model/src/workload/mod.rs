//! What load does, as pure generators from a seed.
//!
//! Nothing here reads a clock, a file or the configuration: the same seed and shape give the same operations, at the
//! same due instants, on every target. Each choice that a generator makes draws from its own random stream, so that
//! switching one choice on leaves all the others as they were.
//!
//! - [`SlobSession`]: the operations of one session of the SLOB method.
//! - [`io::IoStream`]: the requests of one stream to raw storage.
//! - [`HostShape`]: slices of work for processors.
//! - [`net::NetStream`]: what a session of a load on a network sends and is answered.
//! - [`orders::OrdersShape`]: the transactions of order entry.
//! - [`SlobBlend`], [`io::IoBlend`]: several kinds of work, each at a rate of its own.
//! - [`replay::ReplayShape`]: the requests of a trace, at its instants.
//! - [`Arrivals`]: when operations are due, for an open loop.
//! - [`Permutation`]: where logical neighbours lie physically.
//! - [`Rng`]: the random numbers behind all of them, and the filler of incompressible rows.
//! - [`MinimalStandard`]: random numbers that a SQL server draws as well.

pub mod io;
mod mix;
pub mod net;
pub mod orders;
pub mod replay;
mod slob;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use io::Permutation;
pub use slob::{
    HotSpot, OperationKind, RedoStress, SlobBlend, SlobBlendSession, SlobOperation, SlobPart, SlobSession, SlobShape,
    Think,
};

/// One unit that a workload asks a target for.
pub trait Operation: Copy + Send {
    /// The words for its kinds in tables and documents, by [`kind_index`](Self::kind_index).
    const KINDS: &'static [&'static str];

    /// The place of its kind in [`KINDS`](Self::KINDS).
    fn kind_index(&self) -> usize;
}

/// The facts that decide a workload's operations.
pub trait Shape: Sync {
    /// What is asked of the target.
    type Operation: Operation;
    /// Where operations are drawn from.
    type Stream: Stream<Operation = Self::Operation>;

    /// The stream that a session draws from. Sessions of one stream are numbered one after the other, and one thread
    /// drives them all.
    fn stream_of(&self, session: u32) -> u32;

    /// Opens a stream. The same seed and number give the same operations.
    fn stream(&self, seed: u64, stream: u32) -> Self::Stream;

    /// The same operations without end, for a load that moves nothing. It takes none from the load itself.
    fn rehearsal(&self) -> Self
    where
        Self: Clone,
    {
        self.clone()
    }
}

/// The operations of one stream; most have no end.
pub trait Stream {
    /// What is asked of the target.
    type Operation;

    /// The next operation.
    fn draw(&mut self) -> Drawn<Self::Operation>;

    /// The next operation and when it is due, in nanoseconds after the load begins, where the stream itself knows that; nothing at its
    /// end.
    fn draw_due(&mut self) -> Option<DueNext<Self::Operation>> {
        None
    }

    /// Whether there is no operation left; streams whose operations are drawn have no end. It may wait for what is read ahead.
    fn is_over(&mut self) -> bool {
        false
    }
}

/// An operation of a stream that knows when each is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueNext<O> {
    /// Nanoseconds after the load begins; never less than of the one before.
    pub due_ns: u64,
    /// What to do.
    pub drawn: Drawn<O>,
    /// What it waits for besides.
    pub after: Option<After>,
}

/// An operation that is not sent before the one before it in its chain has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After {
    /// Number of the chain. All operations of a chain are of one stream.
    pub chain: u64,
    /// From that end to this operation, at least, in nanoseconds.
    pub gap_ns: u64,
}

/// One operation to do, and the pause after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn<O> {
    /// What to do.
    pub operation: O,
    /// Pause after the operation; 0 is none.
    pub think_ns: u64,
}

/// Park and Miller's minimal standard generator ("Random number generators: good ones are hard to find", Communications of the ACM
/// 31(10), 1988) with the multiplier that they advise instead in 36(7), 1993: x becomes 48271·x mod (2³¹ − 1).
///
/// No product is above 2⁴⁷, so a server needs nothing but whole numbers of 64 bits to draw the same as a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinimalStandard(i64);

impl MinimalStandard {
    /// What a state is multiplied by.
    pub const MULTIPLIER: i64 = 48_271;
    /// What it is divided by for its rest; a prime.
    pub const MODULUS: i64 = 2_147_483_647;

    /// Begins at a state that `rng` draws, each equally likely.
    pub fn drawn(rng: &mut Rng) -> Self {
        Self(1 + rng.below(Self::MODULUS.unsigned_abs() - 1) as i64)
    }

    /// The state, from 1 to below [`MODULUS`](Self::MODULUS): where somebody else goes on from.
    pub fn state(&self) -> i64 {
        self.0
    }

    #[inline]
    fn step(&mut self) -> i64 {
        self.0 = self.0 * Self::MULTIPLIER % Self::MODULUS;
        self.0
    }

    /// A number of `least..=most`; `least` where there is none. The range has to be far smaller than 2³¹: some of its numbers are
    /// likelier than others by its part of that.
    #[inline]
    pub fn between(&mut self, least: i64, most: i64) -> i64 {
        least + self.step() % (most - least + 1).max(1)
    }

    /// A number above 0 and below 1.
    pub fn unit_f64(&mut self) -> f64 {
        self.step() as f64 / Self::MODULUS as f64
    }
}

const NS_PER_S: f64 = 1e9;

/// How operations follow each other at a given rate (`--arrival`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// At random, as the calls of many independent users do: exponential gaps. Queues form as they do in production.
    #[default]
    Poisson,
    /// At equal gaps.
    Fixed,
    /// As a trace has them: how the rate changes is the workload's affair, and says nothing of the target. It is not a choice of `--arrival`.
    Recorded,
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Poisson => "poisson",
            Self::Fixed => "fixed",
            Self::Recorded => "recorded",
        })
    }
}

/// The due instants of the operations of one lane, one of several that share a rate.
#[derive(Clone, Debug)]
pub struct Arrivals(Schedule);

#[derive(Clone, Debug)]
enum Schedule {
    Fixed { rate_per_s: f64, next: u64, lanes: u64 },
    // The part of a nanosecond is kept apart: a running sum in one f64 would lose it after some hours.
    Poisson { mean_gap_ns: f64, now_ns: u64, part_ns: f64, rng: Rng },
    Never,
}

impl Arrivals {
    /// Lane number `lane` of `lanes` that carry `rate_per_s` operations a second together. A rate that is not a positive
    /// finite number makes nothing due, ever; nor do recorded arrivals, which the shape's own streams have.
    ///
    /// Fixed lanes take turns: lane `l` has arrivals number `l`, `l + lanes`, … of the common schedule, the first of
    /// which is due at the start. Poisson lanes are independent, and together again a Poisson process of the full rate.
    pub fn new(rate_per_s: f64, arrival: Arrival, lane: u32, lanes: u32, seed: u64) -> Self {
        let lanes = lanes.max(1);
        if !rate_per_s.is_finite() || rate_per_s <= 0.0 {
            return Self(Schedule::Never);
        }
        Self(match arrival {
            Arrival::Fixed => Schedule::Fixed { rate_per_s, next: u64::from(lane), lanes: u64::from(lanes) },
            Arrival::Recorded => Schedule::Never,
            Arrival::Poisson => Schedule::Poisson {
                mean_gap_ns: f64::from(lanes) * NS_PER_S / rate_per_s,
                now_ns: 0,
                part_ns: 0.0,
                rng: Choice::Arrival.rng(seed, lane),
            },
        })
    }

    /// When the next operation is due, in nanoseconds from the start of the load; never earlier than the one before.
    /// `u64::MAX` where that lies beyond what nanoseconds can count.
    #[inline]
    pub fn next_ns(&mut self) -> u64 {
        match &mut self.0 {
            // From the index and not from the arrival before, so that no error adds up. The two roundings of f64 shift an
            // instant by less than 0.1 ns in the first four days.
            Schedule::Fixed { rate_per_s, next, lanes } => {
                let index = *next;
                *next += *lanes;
                (index as f64 * NS_PER_S / *rate_per_s).round() as u64
            }
            Schedule::Poisson { mean_gap_ns, now_ns, part_ns, rng } => {
                // A draw is a multiple of 2^-53 below 1, so its distance from 1 is exact and never 0.
                let gap_ns = *part_ns - *mean_gap_ns * (1.0 - rng.unit_f64()).ln();
                let whole_ns = gap_ns.floor();
                *part_ns = gap_ns - whole_ns;
                *now_ns = now_ns.saturating_add(whole_ns as u64);
                *now_ns
            }
            Schedule::Never => u64::MAX,
        }
    }
}

/// The golden ratio as a 64-bit fraction: the step of splitmix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014, with Stafford's constants): a bijection in which
/// each input bit flips about half of the output bits. It maps 0 to 0.
#[inline]
pub const fn mix64(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A seeded generator: xoshiro256++ (Blackman and Vigna, 2019), its state filled by splitmix64 as its authors advise.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Stream number `stream` of `seed`: streams of one seed, and equal streams of different seeds, are independent.
    pub fn new(seed: u64, stream: u64) -> Self {
        let start = mix64(seed.wrapping_add(GOLDEN)) ^ mix64(!stream).rotate_left(32);
        // At most one of four distinct inputs maps to 0, so the state is never the forbidden all-zero one.
        let state = std::array::from_fn(|word| mix64(start.wrapping_add(GOLDEN.wrapping_mul(word as u64 + 1))));
        Self { state }
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let (c2, d2) = (c ^ a, d ^ b);
        self.state = [a ^ d2, b ^ c2, c2 ^ (b << 17), d2.rotate_left(45)];
        a.wrapping_add(d).rotate_left(23).wrapping_add(a)
    }

    /// A number in `0..bound`, each equally likely; 0 when `bound` is 0.
    ///
    /// The multiply-and-reject method of Lemire, "Fast Random Integer Generation in an Interval" (2019): a division only
    /// when the first draw lands in the sliver that could be biased.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        let mut product = u128::from(self.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            let sliver = bound.wrapping_neg() % bound;
            while (product as u64) < sliver {
                product = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// A number in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Fills `bytes` with incompressible data; equal on every machine for equal generators.
    ///
    /// Rows are filled at many GB/s, which xoshiro's chain of dependent steps cannot reach. So a draw from it only starts
    /// a counter, and each word is wyrand's folded product (Wang Yi, wyhash) of its own count: no word waits for another.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        const STEP: u64 = 0xa076_1d64_78bd_642f;
        const FLIP: u64 = 0xe703_7ed1_a0b4_28db;
        let start = self.next_u64();
        let word = |index: usize| {
            let count = start.wrapping_add(STEP.wrapping_mul(index as u64));
            let product = u128::from(count) * u128::from(count ^ FLIP);
            ((product >> 64) as u64 ^ product as u64).to_le_bytes()
        };
        let (words, tail) = bytes.as_chunks_mut::<8>();
        for (index, place) in words.iter_mut().enumerate() {
            *place = word(index);
        }
        tail.copy_from_slice(&word(words.len())[..tail.len()]);
    }
}

/// The independent choices of this module, so that no two ever share a stream of one seed.
#[derive(Clone, Copy)]
enum Choice {
    MixPhase = 1,
    Key,
    HotSpot,
    HotSchema,
    Think,
    Arrival,
    Scatter,
    Transaction,
    TransactionSeed,
    MessageSize,
}

impl Choice {
    /// The generator of this choice for session, stream, class or lane `number`.
    fn rng(self, seed: u64, number: u32) -> Rng {
        Rng::new(seed, (self as u64) << 32 | u64::from(number))
    }
}

// Work for processors that is shaped as a database's: what a slice of each kind consists of, from a seed.
//
// A slice is a fixed amount of work of about a millisecond on a processor of today, the same on every machine. So the rate of slices
// is the speed of the processor at that work, and nothing has to be calibrated.

/// One slice of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostOperation {
    /// What is done.
    pub kind: HostKind,
    /// What decides its data: which blocks, which keys.
    pub seed: u64,
    /// How much of it, in units of the kind.
    pub units: u64,
}

impl Operation for HostOperation {
    const KINDS: &'static [&'static str] = &HostKind::NAMES;

    fn kind_index(&self) -> usize {
        self.kind.index()
    }
}

/// The work of all sessions of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostShape {
    /// The kinds of slices, which each session does in turn; at least one.
    pub kinds: Vec<HostKind>,
    /// Memory that each session's copies, triads and chases go through.
    pub size_bytes: u64,
}

/// The slices of one session.
#[derive(Clone, Debug)]
pub struct HostStream {
    shape: HostShape,
    next: usize,
    rng: Rng,
}

impl Shape for HostShape {
    type Operation = HostOperation;
    type Stream = HostStream;

    fn stream_of(&self, session: u32) -> u32 {
        session
    }

    fn stream(&self, seed: u64, stream: u32) -> HostStream {
        HostStream { shape: self.clone(), next: 0, rng: Rng::new(seed, u64::from(stream)) }
    }
}

impl Stream for HostStream {
    type Operation = HostOperation;

    fn draw(&mut self) -> Drawn<HostOperation> {
        let kind = self.shape.kinds[self.next];
        self.next = (self.next + 1) % self.shape.kinds.len();
        let operation = HostOperation { kind, seed: self.rng.next_u64(), units: kind.units(self.shape.size_bytes) };
        Drawn { operation, think_ns: 0 }
    }
}

/// A kind of work for a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostKind {
    /// Logical reads of blocks in a buffer cache that all sessions share.
    LogicalRead,
    /// Checksums of blocks of 8 KiB.
    Checksum,
    /// Comparisons of blocks of 8 KiB.
    Compare,
    /// Sorting of keys with the rows that they belong to.
    Sort,
    /// A hash join: a table is built and probed.
    HashJoin,
    /// Copies through memory.
    MemoryCopy,
    /// STREAM's triad through memory: two arrays read, one written.
    MemoryTriad,
    /// Loads of which each says where the next one is.
    MemoryLatency,
    /// A thread wakes another, which wakes it in turn.
    Wake,
    /// A sleep of one millisecond.
    Timer,
}

impl HostKind {
    /// Every kind, in the order of [`index`](Self::index).
    pub const ALL: [Self; 10] = [
        Self::LogicalRead,
        Self::Checksum,
        Self::Compare,
        Self::Sort,
        Self::HashJoin,
        Self::MemoryCopy,
        Self::MemoryTriad,
        Self::MemoryLatency,
        Self::Wake,
        Self::Timer,
    ];

    /// Their words, in the same order.
    pub const NAMES: [&'static str; 10] = [
        "logical-read",
        "checksum",
        "compare",
        "sort",
        "hash-join",
        "memory-copy",
        "memory-triad",
        "memory-latency",
        "wake",
        "timer",
    ];

    /// What keeps a processor busy as a database's work does: what is done where nothing else is asked for.
    pub const PROCESSOR: [Self; 5] = [Self::LogicalRead, Self::Checksum, Self::Compare, Self::Sort, Self::HashJoin];

    /// How long a [`Timer`](Self::Timer) sleeps, in nanoseconds.
    pub const SLEEP_NS: u64 = 1_000_000;

    /// Bytes of a block that is checked or compared.
    pub const BLOCK_BYTES: usize = 8_192;

    /// Probes for each key of the table that a hash join builds.
    pub const PROBES: u64 = 8;

    /// Its place in [`ALL`](Self::ALL).
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Its word.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it goes through memory of a size that can be chosen.
    pub const fn is_of_memory(self) -> bool {
        matches!(self, Self::MemoryCopy | Self::MemoryTriad | Self::MemoryLatency)
    }

    /// The least memory that work goes through: a page, in bytes.
    pub const MIN_MEMORY_BYTES: u64 = 4 << 10;

    /// How much one slice does, where memory of `size_bytes` is gone through: logical reads, blocks, pairs of blocks, keys, rows
    /// probed, bytes moved, loads, round trips, sleeps.
    pub const fn units(self, size_bytes: u64) -> u64 {
        match self {
            Self::LogicalRead => 32_768,
            Self::Checksum => 2_048,
            Self::Compare => 2_048,
            Self::Sort => 16_384,
            Self::HashJoin => 65_536,
            // STREAM counts what is read and what is written.
            Self::MemoryCopy | Self::MemoryTriad => 16 << 20,
            Self::MemoryLatency => match size_bytes {
                0..=262_144 => 262_144,
                262_145..=4_194_304 => 65_536,
                _ => 16_384,
            },
            Self::Wake | Self::Timer => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_published_generator() {
        // The 10,000th number from the state 1, which the standard of C++ names for `minstd_rand`.
        let mut generator = MinimalStandard(1);
        assert_eq!((0..10_000).map(|_| generator.step()).last(), Some(399_268_537));
    }

    #[test]
    fn numbers_of_a_range_are_equally_likely_and_none_is_outside() {
        let mut generator = MinimalStandard::drawn(&mut Rng::new(3, 0));
        let mut counts = [0_u32; 23];
        for _ in 0..230_000 {
            counts[generator.between(1, 23) as usize - 1] += 1;
        }
        let chi_square: f64 = counts.iter().map(|&count| (f64::from(count) - 1e4).powi(2) / 1e4).sum();
        assert!(chi_square < 22.0 + 5.0 * 44.0_f64.sqrt(), "{chi_square}");
        assert_eq!((generator.between(7, 7), generator.between(7, 6)), (7, 7));
        let unit = generator.unit_f64();
        assert!(unit > 0.0 && unit < 1.0);
    }

    fn drawn(seed: u64, stream: u32) -> Vec<HostOperation> {
        let shape = HostShape { kinds: vec![HostKind::Checksum, HostKind::Sort], size_bytes: 1 << 20 };
        let mut stream = shape.stream(seed, stream);
        (0..20).map(|_| stream.draw().operation).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_work_and_kinds_take_turns() {
        assert_eq!(drawn(7, 3), drawn(7, 3));
        assert!(drawn(7, 3).iter().zip(drawn(7, 4)).all(|(a, b)| a.seed != b.seed && a.kind == b.kind));
        let kinds: Vec<HostKind> = drawn(1, 0).iter().map(|slice| slice.kind).collect();
        assert_eq!(kinds[..4], [HostKind::Checksum, HostKind::Sort, HostKind::Checksum, HostKind::Sort]);
    }

    #[test]
    fn each_kind_stands_at_its_place_and_has_its_word() {
        for (place, kind) in HostKind::ALL.into_iter().enumerate() {
            assert_eq!((kind.index(), HostKind::named(kind.name())), (place, Some(kind)));
            assert!(kind.units(1 << 20) > 0);
        }
        assert_eq!(HostKind::named("nothing"), None);
    }
}

#[cfg(test)]
mod arrivals_tests {
    use proptest::prelude::*;

    use super::{Arrival, Arrivals};

    fn gaps(rate_per_s: f64, lanes: u32, count: usize) -> Vec<f64> {
        let mut arrivals = Arrivals::new(rate_per_s, Arrival::Poisson, 0, lanes, 7);
        let mut before = 0;
        (0..count)
            .map(|_| {
                let due = arrivals.next_ns();
                let gap = due - before;
                before = due;
                gap as f64
            })
            .collect()
    }

    #[test]
    fn fixed_arrivals_stand_exactly_on_their_grid() {
        let mut thirds = Arrivals::new(3.0, Arrival::Fixed, 0, 1, 0);
        let due: Vec<u64> = (0..4).map(|_| thirds.next_ns()).collect();
        assert_eq!(due, [0, 333_333_333, 666_666_667, 1_000_000_000]);
    }

    #[test]
    fn fixed_arrivals_do_not_drift() {
        for rate in [7_u64, 999, 1_000_000, 9_999_991] {
            let mut arrivals = Arrivals::new(rate as f64, Arrival::Fixed, 0, 1, 0);
            for index in 0..2_000_000_u128 {
                let exact = (index * 2_000_000_000 + u128::from(rate)) / (2 * u128::from(rate));
                assert_eq!(u128::from(arrivals.next_ns()), exact, "arrival {index} at {rate}/s");
            }
        }
    }

    proptest! {
        #[test]
        fn fixed_lanes_together_are_the_schedule_of_one_lane(rate in 0.01..1e7_f64, lanes in 1..40_u32) {
            let mut alone = Arrivals::new(rate, Arrival::Fixed, 0, 1, 1);
            let mut shared: Vec<_> =
                (0..lanes).map(|lane| Arrivals::new(rate, Arrival::Fixed, lane, lanes, 2)).collect();
            for turn in 0..200 {
                prop_assert_eq!(alone.next_ns(), shared[turn % lanes as usize].next_ns());
            }
        }

        #[test]
        fn instants_never_go_back(rate in 1e-6..1e7_f64, seed: u64) {
            for arrival in [Arrival::Poisson, Arrival::Fixed] {
                let mut arrivals = Arrivals::new(rate, arrival, 0, 1, seed);
                let due: Vec<u64> = (0..200).map(|_| arrivals.next_ns()).collect();
                prop_assert!(due.is_sorted());
            }
        }
    }

    #[test]
    fn poisson_arrivals_keep_their_rate_however_many_and_however_fast() {
        for (rate, lanes) in [(1e7, 1), (3e6, 2), (1234.5, 4), (0.5, 1)] {
            let count = 2_000_000;
            let mut arrivals = Arrivals::new(rate, Arrival::Poisson, 0, lanes, 3);
            let last = (0..count).map(|_| arrivals.next_ns()).last().unwrap();
            let expected = count as f64 * f64::from(lanes) * 1e9 / rate;
            // The sum of n exponential gaps has a relative standard deviation of 1/√n = 0.07%.
            assert!((last as f64 / expected - 1.0).abs() < 0.003, "{last} ns instead of {expected} at {rate}/s");
        }
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let (rate, lanes, count) = (1e5, 2, 100_000);
        let mean = f64::from(lanes) * 1e9 / rate;
        let mut gaps = gaps(rate, lanes, count);
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count as f64;
        assert!((variance / mean.powi(2) - 1.0).abs() < 0.05, "variance {variance}");
        gaps.sort_by(f64::total_cmp);
        let distance = gaps
            .iter()
            .enumerate()
            .map(|(rank, gap)| ((1.0 - (-gap / mean).exp()) - rank as f64 / count as f64).abs())
            .fold(0.0, f64::max);
        // Kolmogorov and Smirnov: 1.95/√n is passed by one sample in a thousand.
        assert!(distance < 1.95 / (count as f64).sqrt(), "distance {distance}");
    }

    #[test]
    fn poisson_gaps_do_not_follow_each_other() {
        let gaps = gaps(1e5, 1, 100_000);
        let mean = 1e4;
        let covariance = gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
        let correlation = covariance / (gaps.len() as f64 * mean * mean);
        assert!(correlation.abs() < 0.015, "correlation {correlation}");
    }

    #[test]
    fn poisson_lanes_are_independent_and_repeatable() {
        let due = |lane, seed| {
            let mut arrivals = Arrivals::new(1e3, Arrival::Poisson, lane, 2, seed);
            (0..100).map(|_| arrivals.next_ns()).collect::<Vec<_>>()
        };
        assert_eq!(due(0, 1), due(0, 1));
        assert_ne!(due(0, 1), due(1, 1));
        assert_ne!(due(0, 1), due(0, 2));
    }

    #[test]
    fn a_rate_that_is_no_rate_makes_nothing_due() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            for arrival in [Arrival::Poisson, Arrival::Fixed] {
                assert_eq!(Arrivals::new(rate, arrival, 0, 1, 0).next_ns(), u64::MAX);
            }
        }
    }
}

#[cfg(test)]
mod rng_tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::{Rng, mix64};

    #[test]
    fn the_generator_is_xoshiro256_plus_plus() {
        // What the authors' C program prints for the state 1, 2, 3, 4.
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let drawn: [u64; 4] = std::array::from_fn(|_| rng.next_u64());
        assert_eq!(drawn, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn mixing_flips_about_half_of_the_bits() {
        for bit in 0..64 {
            let flipped: u32 = (1..=256).map(|x: u64| (mix64(x) ^ mix64(x ^ (1 << bit))).count_ones()).sum();
            let mean = f64::from(flipped) / 256.0;
            assert!((29.0..35.0).contains(&mean), "bit {bit} flips {mean} bits");
        }
    }

    #[test]
    fn seeds_and_streams_never_share_a_number() {
        let mut seen = HashSet::new();
        for seed in 0..32 {
            for stream in 0..32 {
                let mut rng = Rng::new(seed, stream);
                assert!((0..32).all(|_| seen.insert(rng.next_u64())), "seed {seed} stream {stream}");
            }
        }
    }

    #[test]
    fn every_number_below_a_bound_is_equally_likely() {
        for bound in [3_u64, 10, 64, 100] {
            let mut rng = Rng::new(5, bound);
            let mut counts = vec![0_u32; bound as usize];
            let expected = 2_000.0;
            for _ in 0..bound * 2_000 {
                counts[rng.below(bound) as usize] += 1;
            }
            let chi_square: f64 = counts.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
            let freedom = (bound - 1) as f64;
            assert!(chi_square < freedom + 5.0 * (2.0 * freedom).sqrt(), "bound {bound}: {chi_square}");
        }
    }

    #[test]
    fn a_bound_that_does_not_divide_the_range_is_not_biased() {
        // Without rejection a bound of 3·2^62 would give every third number twice as often as the others.
        let (mut rng, bound) = (Rng::new(1, 1), 3_u64 << 62);
        let thirds = (0..30_000).filter(|_| rng.below(bound).is_multiple_of(3)).count();
        assert!((9_500..10_500).contains(&thirds), "{thirds} of 30000 are multiples of three");
    }

    proptest! {
        #[test]
        fn a_draw_stays_below_its_bound(seed: u64, bound in 1..=u64::MAX) {
            let mut rng = Rng::new(seed, 0);
            for _ in 0..8 {
                prop_assert!(rng.below(bound) < bound);
            }
        }

        #[test]
        fn a_longer_fill_begins_like_a_shorter_one(seed: u64, short in 0..200_usize, more in 0..200_usize) {
            let (mut one, mut other) = (vec![0; short], vec![0; short + more]);
            Rng::new(seed, 0).fill(&mut one);
            Rng::new(seed, 0).fill(&mut other);
            prop_assert_eq!(&one[..], &other[..short]);
        }
    }

    #[test]
    fn unit_numbers_fill_the_interval_evenly() {
        let mut rng = Rng::new(11, 0);
        let draws: Vec<f64> = (0..100_000).map(|_| rng.unit_f64()).collect();
        assert!(draws.iter().all(|draw| (0.0..1.0).contains(draw)));
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        assert!((mean - 0.5).abs() < 0.005, "mean {mean}");
    }

    #[test]
    fn filler_shows_no_pattern_and_never_repeats() {
        let mut rng = Rng::new(3, 0);
        let mut bytes = vec![0; 1 << 20];
        let mut words = HashSet::new();
        for block in bytes.chunks_mut(8192) {
            rng.fill(block);
            assert!(block.chunks_exact(8).all(|word| words.insert(word.to_vec())), "a word came twice");
        }
        let mut pairs = vec![0_u32; 65_536];
        for pair in bytes.as_chunks::<2>().0 {
            pairs[usize::from(u16::from_le_bytes(*pair))] += 1;
        }
        let expected = (bytes.len() / 2) as f64 / 65_536.0;
        let chi_square: f64 = pairs.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        // 65,535 degrees of freedom: standard deviation 362.
        assert!((chi_square - 65_535.0).abs() < 5.0 * 362.0, "chi-square {chi_square}");
    }
}
