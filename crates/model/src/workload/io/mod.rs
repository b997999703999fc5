//! Requests to raw storage.

mod shape;

use super::mix64;
use crate::workload::mix::Split;
use crate::workload::{Choice, Drawn, Operation, Rng, Shape, Stream};
pub(super) use shape::stream_of_slot;

pub use shape::{IoClass, IoShape, IoStream, RequestSize};

/// The largest exponent of a Zipf distribution that is distinguished from a still larger one. Long before it, every access
/// goes to one block.
pub const MAX_ZIPF_THETA: f64 = 100.0;

/// In which order a class of requests visits its region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Access {
    /// Each request goes to a block drawn with replacement.
    Random(Distribution),
    /// Each stream goes from block to block and wraps at the end of the region. The streams of a class start at evenly
    /// spaced places.
    Sequential,
}

/// How often each block is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Distribution {
    /// Every block equally often.
    #[default]
    Uniform,
    /// The k-th most popular block in proportion to k to the power of −θ. Popular blocks lie scattered over the region.
    Zipf {
        /// θ, more than 0 and at most [`MAX_ZIPF_THETA`]; the larger, the more goes to few blocks.
        theta: f64,
    },
    /// Some blocks take most of the accesses, equally often among themselves; the others share the rest equally. Hot
    /// blocks lie scattered over the region.
    Hot {
        /// Hot blocks in each hundred, more than 0; at least one block is hot.
        space_pct: f64,
        /// Accesses to hot blocks in each hundred, from 0 to 100.
        access_pct: f64,
    },
}

/// The kinds of request. Small and large ones are distinguished where a load has both, as ORION's has; a load of one size
/// is small, whatever its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoKind {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A read of the large size.
    LargeRead,
    /// A write of the large size.
    LargeWrite,
    /// Nothing is moved: what was written before is made durable, everywhere if it has 0 bytes, else where its bytes lie.
    Flush,
    /// Nothing is moved: a range is given back to the storage, which then has no data there.
    Discard,
}

impl IoKind {
    /// Whether it writes data.
    pub const fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::LargeWrite)
    }

    /// Whether it reads or writes data.
    pub const fn moves_data(self) -> bool {
        !matches!(self, Self::Flush | Self::Discard)
    }
}

/// One request to a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoOperation {
    /// What is done.
    pub kind: IoKind,
    /// Where in the volume it begins.
    pub offset_bytes: u64,
    /// Its length; more than 0 except for a flush.
    pub bytes: u32,
    /// A write that is done only when it is durable.
    pub is_durable: bool,
}

impl Operation for IoOperation {
    const KINDS: &'static [&'static str] = &["read", "write", "large read", "large write", "flush", "discard"];

    fn kind_index(&self) -> usize {
        self.kind as usize
    }
}

/// An open loop in which any slot sends whatever kind is due, so that the kinds wait for each other only in the volume.
#[derive(Clone, Debug, PartialEq)]
pub struct IoBlend {
    /// The kinds; at least one.
    pub parts: Vec<IoPart>,
    /// Places from which requests are drawn, of each part; at least 1.
    pub streams: u32,
    /// Requests outstanding at most.
    pub slots: u32,
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IoPart {
    /// As what its requests count.
    pub kind: IoKind,
    /// Requests per second, in proportion to those of the other parts; above 0.
    pub per_s: f64,
    /// The length of each request, and what its offset is a multiple of; at least 1.
    pub block_bytes: u32,
    /// Length of the part of the volume that is visited, from its beginning.
    pub region_bytes: u64,
    /// In which order blocks are visited.
    pub access: Access,
}

/// Each stream has one or more sessions.
impl Shape for IoBlend {
    type Operation = IoOperation;
    type Stream = IoBlendStream;

    fn stream_of(&self, session: u32) -> u32 {
        stream_of_slot(session, self.streams, self.slots)
    }

    fn stream(&self, seed: u64, stream: u32) -> IoBlendStream {
        let streams = self.streams.max(1);
        let part = |(number, part): (u32, &IoPart)| {
            let blocks = (part.region_bytes / u64::from(part.block_bytes.max(1))).clamp(1, Permutation::MAX_SIZE);
            // Numbered through all parts: two that drew from one random stream would visit the same places.
            let of_all = number * streams + stream;
            let place =
                StreamPosition { class: number, stream_of_class: stream, streams_of_class: streams, stream: of_all };
            (part.kind, part.block_bytes.max(1), Places::new(part.access, blocks, seed, place))
        };
        IoBlendStream {
            split: Split::new(self.parts.iter().map(|part| part.per_s), Choice::MixPhase.rng(seed, stream)),
            parts: (0..).zip(&self.parts).map(part).collect(),
        }
    }
}

/// The endless requests of one stream.
#[derive(Clone, Debug)]
pub struct IoBlendStream {
    split: Split,
    parts: Vec<(IoKind, u32, Places)>,
}

impl Stream for IoBlendStream {
    type Operation = IoOperation;

    #[inline]
    fn draw(&mut self) -> Drawn<IoOperation> {
        let (kind, bytes, places) = &mut self.parts[self.split.draw()];
        let offset_bytes = places.draw() * u64::from(*bytes);
        Drawn { operation: IoOperation { kind: *kind, offset_bytes, bytes: *bytes, is_durable: false }, think_ns: 0 }
    }
}

/// Rounds of the Feistel network. Four rounds of independent random functions are a strong pseudo-random permutation
/// (Luby and Rackoff, 1988); ours need only look random to a disk array.
const ROUNDS: usize = 4;

/// A keyed bijection on `0..size`, in constant memory and without tables.
///
/// The construction is the generalised Feistel network with cycle walking of Black and Rogaway, "Ciphers with Arbitrary
/// Finite Domains" (CT-RSA 2002). A number is split into `column + row · columns`; each round adds a keyed function of
/// one half to the other, modulo that half's own range, which can be undone whatever the function is.
///
/// `columns` is a power of two between √(size / 2) and √(2·size), so that splitting needs no division, and
/// `rows = ⌈size / columns⌉`. Hence fewer than `columns` of the `columns · rows` numbers lie outside `0..size`; a number
/// that lands there is sent round again, which happens to less than one in √(size / 2) of them.
#[derive(Clone, Debug)]
pub struct Permutation {
    size: u64,
    rows: u64,
    column_bits: u32,
    column_mask: u64,
    round_keys: [u64; ROUNDS],
}

impl Permutation {
    /// The largest size that can be permuted: 2^62.
    pub const MAX_SIZE: u64 = 1 << 62;

    /// A bijection on `0..size`; different keys give unrelated ones.
    ///
    /// # Panics
    /// If `size` is 0 or above [`MAX_SIZE`](Self::MAX_SIZE).
    pub fn new(size: u64, key: u64) -> Self {
        assert!((1..=Self::MAX_SIZE).contains(&size), "a permutation of {size} numbers cannot be made");
        let column_bits = (u64::BITS - size.leading_zeros()) / 2;
        let columns = 1_u64 << column_bits;
        let chain = mix64(key);
        Self {
            size,
            rows: size.div_ceil(columns),
            column_bits,
            column_mask: columns - 1,
            round_keys: std::array::from_fn(|round| mix64(chain.wrapping_add(round as u64))),
        }
    }

    /// How many numbers are permuted.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The position of `index`, which must lie in `0..size`.
    #[inline]
    pub fn map(&self, index: u64) -> u64 {
        debug_assert!(index < self.size, "index {index} lies outside 0..{}", self.size);
        let mut number = index;
        loop {
            number = self.forward(number);
            if number < self.size {
                return number;
            }
        }
    }

    /// The index whose position is `position`, which must lie in `0..size`: undoes [`map`](Self::map).
    #[inline]
    pub fn invert(&self, position: u64) -> u64 {
        debug_assert!(position < self.size, "position {position} lies outside 0..{}", self.size);
        let mut number = position;
        loop {
            number = self.backward(number);
            if number < self.size {
                return number;
            }
        }
    }

    #[inline]
    fn forward(&self, number: u64) -> u64 {
        let (mut column, mut row) = (number & self.column_mask, number >> self.column_bits);
        let [first, second, third, fourth] = self.round_keys;
        // Neighbours differ in their column first, so the row is what the first round must move.
        row = self.add_to_row(row, column, first);
        column = (column + column_offset(row, second)) & self.column_mask;
        row = self.add_to_row(row, column, third);
        column = (column + column_offset(row, fourth)) & self.column_mask;
        row << self.column_bits | column
    }

    #[inline]
    fn backward(&self, number: u64) -> u64 {
        let (mut column, mut row) = (number & self.column_mask, number >> self.column_bits);
        let [first, second, third, fourth] = self.round_keys;
        column = column.wrapping_sub(column_offset(row, fourth)) & self.column_mask;
        row = self.take_from_row(row, column, third);
        column = column.wrapping_sub(column_offset(row, second)) & self.column_mask;
        row = self.take_from_row(row, column, first);
        row << self.column_bits | column
    }

    #[inline]
    fn add_to_row(&self, row: u64, column: u64, key: u64) -> u64 {
        let sum = row + self.row_offset(column, key);
        if sum >= self.rows { sum - self.rows } else { sum }
    }

    #[inline]
    fn take_from_row(&self, row: u64, column: u64, key: u64) -> u64 {
        let offset = self.row_offset(column, key);
        if row >= offset { row - offset } else { row + self.rows - offset }
    }

    /// A keyed function of the column in `0..rows`: the high half of a product stands in for a slow remainder.
    #[inline]
    fn row_offset(&self, column: u64, key: u64) -> u64 {
        ((u128::from(scramble(column, key)) * u128::from(self.rows)) >> 64) as u64
    }
}

/// A keyed function of the row, to be cut down to `0..columns`; columns have at most 31 bits.
#[inline]
fn column_offset(row: u64, key: u64) -> u64 {
    scramble(row, key) >> 32
}

/// A keyed function of one half whose upper 32 bits depend on every bit of the half.
///
/// One product alone would leave the halves of neighbours in arithmetic progression; the shift between two products
/// breaks that.
#[inline]
fn scramble(half: u64, key: u64) -> u64 {
    let product = (half ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (product ^ product >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// The blocks that one stream visits, one after the other.
#[derive(Clone, Debug)]
enum Places {
    Uniform { blocks: u64, rng: Rng },
    Zipf { ranks: Zipf, scatter: Permutation, rng: Rng },
    Hot { hot_blocks: u64, hot_share: f64, scatter: Permutation, is_hot: Rng, rng: Rng },
    Sequential { next: u64, blocks: u64 },
}

/// Whose blocks are drawn.
#[derive(Clone, Copy, Debug)]
struct StreamPosition {
    /// The class among the classes of its shape. All streams of a class agree about which blocks are popular.
    class: u32,
    /// The stream among the streams of its class, and how many there are.
    stream_of_class: u32,
    streams_of_class: u32,
    /// The stream among all streams.
    stream: u32,
}

impl Places {
    /// The places of one stream in a region of `blocks`, from 1 to [`Permutation::MAX_SIZE`].
    fn new(access: Access, blocks: u64, seed: u64, place: StreamPosition) -> Self {
        let rng = Choice::Key.rng(seed, place.stream);
        let scatter = || Permutation::new(blocks, Choice::Scatter.rng(seed, place.class).next_u64());
        match access {
            Access::Random(Distribution::Uniform) => Self::Uniform { blocks, rng },
            Access::Random(Distribution::Zipf { theta }) => {
                Self::Zipf { ranks: Zipf::new(blocks, theta), scatter: scatter(), rng }
            }
            Access::Random(Distribution::Hot { space_pct, access_pct }) => Self::Hot {
                hot_blocks: ((blocks as f64 * space_pct / 100.0).round() as u64).clamp(1, blocks),
                hot_share: access_pct / 100.0,
                scatter: scatter(),
                is_hot: Choice::HotSpot.rng(seed, place.stream),
                rng,
            },
            Access::Sequential => {
                let streams = u128::from(place.streams_of_class.max(1));
                let first = u128::from(blocks) * u128::from(place.stream_of_class) / streams;
                Self::Sequential { next: first as u64, blocks }
            }
        }
    }

    /// The number of the next block.
    #[inline]
    fn draw(&mut self) -> u64 {
        match self {
            Self::Uniform { blocks, rng } => rng.below(*blocks),
            Self::Zipf { ranks, scatter, rng } => scatter.map(ranks.draw(rng) - 1),
            Self::Hot { hot_blocks, hot_share, scatter, is_hot, rng } => {
                let (hot, all) = (*hot_blocks, scatter.size());
                let is_hot = is_hot.unit_f64() < *hot_share || hot == all;
                scatter.map(if is_hot { rng.below(hot) } else { hot + rng.below(all - hot) })
            }
            Self::Sequential { next, blocks } => {
                let block = *next;
                *next = if block + 1 == *blocks { 0 } else { block + 1 };
                block
            }
        }
    }
}

/// Draws ranks `1..=size`, rank k in proportion to h(k) = k^−θ.
///
/// The method is rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone
/// discrete distributions", 1996). Let H be an integral of h. Since h is convex, the slice of H between k − ½ and k + ½ is
/// at least as wide as h(k). So u is drawn evenly from the whole range of H, k is the whole number nearest to the x with
/// H(x) = u, and k is kept where u lies in the upper h(k) of its slice. The slice of rank 1 is cut down to just that
/// width. Nothing is summed over ranks, so the cost does not grow with the size, and few draws are rejected.
///
/// In f64 and with θ up to 1.1, the probability of a single rank holds to about 2 % at the far end of 2^40 ranks and
/// better before; with a larger θ as good as nothing is drawn from there.
#[derive(Clone, Debug)]
struct Zipf {
    size: u64,
    theta: f64,
    lowest: f64,
    width: f64,
    sure: f64,
}

impl Zipf {
    /// Ranks up to `size`, which counts as 1 where it is 0. A θ that is no number above 0 makes all ranks equally
    /// likely.
    fn new(size: u64, theta: f64) -> Self {
        let size = size.max(1);
        let theta = if theta > 0.0 { theta.min(MAX_ZIPF_THETA) } else { 0.0 };
        let lowest = integral(1.5, theta) - 1.0;
        // A rank k is kept where k − x is at most a bound that grows with k (rank 1 always is): what rank 2 would keep
        // needs no look at the slice of its own rank.
        let sure = 2.0 - inverse(integral(2.5, theta) - (-theta * 2.0_f64.ln()).exp(), theta);
        Self { size, theta, lowest, width: integral(size as f64 + 0.5, theta) - lowest, sure }
    }

    /// The next rank, from 1 to the size.
    #[inline]
    fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.lowest + rng.unit_f64() * self.width;
            let x = inverse(u, self.theta);
            // Not `round`, which is a call into the mathematics library on the x86-64 baseline.
            let rank = ((x + 0.5) as u64).clamp(1, self.size);
            let near = rank as f64;
            if near - x <= self.sure || u >= integral(near + 0.5, self.theta) - (-self.theta * near.ln()).exp() {
                return rank;
            }
        }
    }
}

/// H(x) = (x^(1−θ) − 1) / (1 − θ), and ln x for θ = 1: the integral of t^−θ from 1 to x, for x above 0.
#[inline]
fn integral(x: f64, theta: f64) -> f64 {
    let ln = x.ln();
    let power = (1.0 - theta) * ln;
    // As e^p − 1 over p, which stays exact where θ is near 1 and both are near 0.
    if power == 0.0 { ln } else { ln * (power.exp_m1() / power) }
}

/// The x with H(x) = `value`: e to the power of `value` · ln(1 + p) / p, where p = (1 − θ) · `value`.
#[inline]
fn inverse(value: f64, theta: f64) -> f64 {
    // Rounding may carry p past −1, the limit that H has for θ above 1.
    let sum = (1.0 + (1.0 - theta) * value).max(0.0);
    // The p that `sum` really holds, and not the one that went in, keeps the quotient exact where both are near 0, without
    // the slow `ln_1p`.
    let power = sum - 1.0;
    if power == 0.0 { value.exp() } else { (value * (sum.ln() / power)).exp() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::io::Distribution;

    fn blend() -> IoBlend {
        let part =
            |kind, per_s, block_bytes, access| IoPart { kind, per_s, block_bytes, region_bytes: 1 << 30, access };
        let random = Access::Random(Distribution::Uniform);
        IoBlend {
            parts: vec![
                part(IoKind::Read, 20_000.0, 8_192, random),
                part(IoKind::Write, 130.0, 8_192, random),
                part(IoKind::LargeRead, 870.0, 1 << 20, Access::Sequential),
            ],
            streams: 2,
            slots: 64,
        }
    }

    #[test]
    fn each_kind_comes_at_its_own_rate() {
        let mut stream = blend().stream(3, 0);
        let mut counts = [0_f64; 4];
        for _ in 0..210_000 {
            counts[stream.draw().operation.kind as usize] += 1.0;
        }
        for (kind, expected) in [(0, 200_000.0_f64), (1, 1_300.0), (3, 0.0), (2, 8_700.0)] {
            assert!((counts[kind] - expected).abs() <= 4.0 * expected.sqrt(), "{counts:?}");
        }
    }

    #[test]
    fn kinds_visit_places_of_their_own_inside_the_volume() {
        let mut stream = blend().stream(3, 1);
        let (mut reads, mut writes, mut scans) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..100_000 {
            let IoOperation { kind, offset_bytes, bytes, .. } = stream.draw().operation;
            assert!(offset_bytes + u64::from(bytes) <= 1 << 30 && offset_bytes % u64::from(bytes) == 0);
            match kind {
                IoKind::Read => reads.push(offset_bytes),
                IoKind::Write => writes.push(offset_bytes),
                _ => scans.push(offset_bytes >> 20),
            }
        }
        assert!(scans.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 1_024), "{scans:?}");
        assert_eq!(scans[0], 512, "the second of two streams begins in the middle");
        let same = reads.iter().zip(&writes).filter(|(read, write)| read == write).count();
        assert!(same < 5, "{same} of {} writes go where a read went", writes.len());
    }

    #[test]
    fn the_same_seed_gives_the_same_requests_and_another_stream_others() {
        let draws = |stream| {
            let mut stream = blend().stream(9, stream);
            (0..200).map(|_| stream.draw().operation).collect::<Vec<_>>()
        };
        assert_eq!(draws(0), draws(0));
        assert_ne!(draws(0), draws(1));
    }
}

#[cfg(test)]
mod permutation_tests {
    use proptest::prelude::*;

    use super::Permutation;

    const AWKWARD_SIZES: [u64; 28] = [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 1000, 1023, 1024, 1025, 10007, 65536,
        65537, 131_071,
    ];

    #[test]
    fn every_position_is_taken_once_for_awkward_sizes() {
        for size in AWKWARD_SIZES {
            for key in [0, 1, u64::MAX] {
                let permutation = Permutation::new(size, key);
                let mut taken = vec![false; size as usize];
                for index in 0..size {
                    let position = permutation.map(index);
                    assert!(!taken[position as usize], "position {position} of {size} is taken twice");
                    taken[position as usize] = true;
                    assert_eq!(permutation.invert(position), index, "size {size}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn inverting_gives_the_index_back(size in 1..=Permutation::MAX_SIZE, key: u64, at in 0.0..1.0_f64) {
            let permutation = Permutation::new(size, key);
            for index in [0, (size as f64 * at) as u64 % size, size - 1] {
                let position = permutation.map(index);
                prop_assert!(position < size);
                prop_assert_eq!(permutation.invert(position), index);
                prop_assert_eq!(permutation.map(permutation.invert(index)), index);
            }
        }

        #[test]
        fn few_numbers_lie_outside_the_size(size in 1..=Permutation::MAX_SIZE) {
            let permutation = Permutation::new(size, 0);
            let domain = u128::from(permutation.rows) << permutation.column_bits;
            let outside = domain - u128::from(size);
            prop_assert!(outside <= u128::from(permutation.column_mask));
            prop_assert!(outside * outside <= 2 * u128::from(size));
        }
    }

    #[test]
    fn different_keys_agree_no_more_than_chance() {
        let size = 100_003;
        let one = Permutation::new(size, 1);
        for key in [0, 2, 3, 1 << 63] {
            let other = Permutation::new(size, key);
            let agreements = (0..size).filter(|&index| one.map(index) == other.map(index)).count();
            assert!(agreements < 10, "{agreements} agreements with key {key}; chance gives about 1");
        }
    }

    #[test]
    fn neighbours_scatter_over_the_whole_range() {
        for size in [10_007_u64, 65_536, 131_072, 1_000_003] {
            for key in 0..4 {
                let permutation = Permutation::new(size, key);
                let (mut adjacent, mut fixed, mut travelled) = (0, 0, 0.0);
                for index in 0..size - 1 {
                    let (here, next) = (permutation.map(index), permutation.map(index + 1));
                    adjacent += u32::from(here.abs_diff(next) == 1);
                    fixed += u32::from(here == index);
                    travelled += here.abs_diff(next) as f64;
                }
                // Chance gives 2 adjacent pairs, 1 fixed point, and a third of the size between two random positions.
                assert!(adjacent < 12, "{adjacent} neighbours stayed neighbours, size {size} key {key}");
                assert!(fixed < 10, "{fixed} numbers stayed where they were, size {size} key {key}");
                let mean = travelled / (size - 1) as f64 / size as f64;
                assert!((mean - 1.0 / 3.0).abs() < 0.01, "mean distance {mean} of size {size} key {key}");
            }
        }
    }

    #[test]
    fn a_short_range_of_keys_fills_every_part_of_the_table_alike() {
        let (size, parts, keys) = (1_u64 << 34, 64, 64_000_u64);
        let permutation = Permutation::new(size, 9);
        let mut counts = vec![0_u32; parts];
        for index in 5_000_000..5_000_000 + keys {
            counts[(permutation.map(index) * parts as u64 / size) as usize] += 1;
        }
        let expected = keys as f64 / parts as f64;
        let chi_square: f64 = counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        // 63 degrees of freedom: mean 63, standard deviation 11.2.
        assert!((25.0..120.0).contains(&chi_square), "chi-square {chi_square}");
    }

    #[test]
    #[should_panic(expected = "a permutation of 0 numbers")]
    fn nothing_cannot_be_permuted() {
        let _ = Permutation::new(0, 1);
    }
}

#[cfg(test)]
mod places_tests {
    use proptest::prelude::*;

    use super::{Zipf, integral, inverse};
    use crate::workload::Rng;

    const THETAS: [f64; 8] = [0.01, 0.5, 0.99, 1.0, 1.000_000_1, 1.1, 2.0, 5.0];

    /// Chi-square of the drawn ranks against exact probabilities, with ranks too rare for the test thrown together, and
    /// its degrees of freedom.
    fn chi_square(size: u64, theta: f64, draws: u32) -> (f64, f64) {
        let zipf = Zipf::new(size, theta);
        let mut rng = Rng::new(7, size);
        let mut counts = vec![0_u32; size as usize];
        for _ in 0..draws {
            counts[zipf.draw(&mut rng) as usize - 1] += 1;
        }
        let weights: Vec<f64> = (1..=size).map(|rank| (rank as f64).powf(-theta)).collect();
        let sum: f64 = weights.iter().sum();
        let (mut statistic, mut cells, mut rare, mut rare_expected) = (0.0, 0, 0, 0.0);
        for (count, weight) in counts.into_iter().zip(weights) {
            let expected = weight / sum * f64::from(draws);
            if expected < 10.0 {
                (rare, rare_expected) = (rare + count, rare_expected + expected);
            } else {
                statistic += (f64::from(count) - expected).powi(2) / expected;
                cells += 1;
            }
        }
        if rare_expected > 1.0 {
            statistic += (f64::from(rare) - rare_expected).powi(2) / rare_expected;
            cells += 1;
        }
        (statistic, f64::from(cells - 1))
    }

    #[test]
    fn ranks_follow_the_exact_probabilities() {
        for theta in THETAS {
            for size in [1, 2, 3, 10, 100] {
                let (statistic, freedom) = chi_square(size, theta, 100_000);
                let limit = freedom + 5.0 * (2.0 * freedom).sqrt() + 1e-9;
                assert!(statistic < limit, "theta {theta} size {size}: chi-square {statistic} of {freedom}");
            }
        }
    }

    #[test]
    fn a_far_tail_has_the_weight_of_its_integral() {
        let (size, draws) = (1_u64 << 40, 100_000);
        for theta in [0.5, 0.99, 1.0, 1.1] {
            let zipf = Zipf::new(size, theta);
            let mut rng = Rng::new(3, 3);
            let far = (0..draws).filter(|_| zipf.draw(&mut rng) > 1 << 20).count() as f64 / f64::from(draws);
            // Euler and Maclaurin: the sum up to n is the integral from 1 plus half of both ends plus a twelfth of the
            // slope between them, which is good to 1 % here.
            let sum = |n: f64| integral(n, theta) + 0.5 * (1.0 + n.powf(-theta)) + theta / 12.0;
            let expected = 1.0 - sum((1_u64 << 20) as f64) / sum(size as f64);
            let error = (expected * (1.0 - expected) / f64::from(draws)).sqrt();
            assert!((far - expected).abs() < 5.0 * error + 0.002, "theta {theta}: {far} for {expected}");
        }
    }

    #[test]
    fn few_draws_are_rejected() {
        // Each try costs one random number, so the state after many draws says how many tries they took.
        for theta in THETAS {
            let zipf = Zipf::new(1 << 30, theta);
            let mut rng = Rng::new(1, 1);
            let mut counter = rng.clone();
            (0..10_000).for_each(|_| assert!(zipf.draw(&mut rng) >= 1));
            let after = rng.next_u64();
            let tries = (0..).find(|_| counter.next_u64() == after).unwrap();
            assert!(tries < 12_500, "theta {theta}: {tries} tries for 10000 ranks");
        }
    }

    proptest! {
        #[test]
        fn a_rank_lies_within_the_size(size in 1..=1_u64 << 40, theta in 0.0..150.0_f64, seed: u64) {
            let zipf = Zipf::new(size, theta);
            let mut rng = Rng::new(seed, 0);
            for _ in 0..20 {
                prop_assert!((1..=size).contains(&zipf.draw(&mut rng)));
            }
        }

        #[test]
        fn the_inverse_undoes_the_integral(x in 0.6..1e6_f64, theta in 0.01..1.6_f64) {
            let back = inverse(integral(x, theta), theta);
            prop_assert!((back / x - 1.0).abs() < 1e-6, "{} for {}", back, x);
        }
    }

    #[test]
    fn a_theta_that_is_none_makes_all_ranks_alike() {
        for theta in [f64::NAN, -1.0, 0.0] {
            let zipf = Zipf::new(10, theta);
            let mut rng = Rng::new(5, 5);
            let firsts = (0..10_000).filter(|_| zipf.draw(&mut rng) == 1).count();
            assert!((850..1150).contains(&firsts), "theta {theta}: rank 1 came {firsts} times");
        }
        assert_eq!(Zipf::new(0, f64::INFINITY).draw(&mut Rng::new(1, 1)), 1);
    }
}
