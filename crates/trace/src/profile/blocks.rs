//! Which blocks are touched: how many, how often again, and how soon; from a sample of them in space.
//!
//! The sample is that of SHARDS (Waldspurger and others, "Efficient MRC Construction with SHARDS", FAST 2015). A block is in it if
//! its hash is below a limit, and then all touches of it are. Distances among sampled blocks, over the share of blocks that is
//! sampled, estimate distances among all. The limit is halved as often as the sample would become larger than its memory. Each
//! touch weighs one over the share at its time, a power of two.
//!
//! Whether a block in heavy use is in the sample makes a difference to the number of touches, and so to the curve. SHARDS
//! counts what is missing as touches of the shortest distance. With a hot set of 6,000 blocks that was 2 points off.
//!
//! So a sample of touches ([`super::reuse`]) says how many reads follow the last touch of their block, and after how long. The
//! sample of blocks only says the distances for each such time (post-stratification), and the number of first reads.

use std::collections::HashMap;

use serde::Serialize;

use super::device::place_of;
use super::hash::{ByHash, place_hash};
use super::kinds::share;
use super::order::Order;
use super::reuse::{CLASSES, Watches, begin_of, class_of};

/// Blocks of one request that are looked at: 64 MiB of 4 KiB. No device takes longer reads or writes; a damaged trace may have some.
const MAX_BLOCKS: u64 = 1 << 14;
/// Classes of distances: by their bits, since the sizes of caches are powers of two.
const BITS: usize = u64::BITS as usize + 1;
/// The smallest cache of the curve.
const FIRST_CACHE_BYTES: u64 = 1 << 20;

/// How many distinct blocks were read or written.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Footprint {
    /// Distinct blocks.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The relative standard error of both: 0 where all blocks were counted, about 0.005 where a sample of them was.
    pub standard_error: f64,
}

/// A cache of a size, and what it would answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CachePoint {
    /// Its size.
    pub cache_bytes: u64,
    /// The share of blocks read that it would have.
    pub hit_ratio: f64,
}

/// What a cache in front of the devices would answer of the reads, by its size.
///
/// The cache replaces what was used least recently, begins empty, and keeps blocks that are written as well. First reads of a
/// block are misses. A request of several blocks counts as one touch of each. Discards do not change what is cached.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// The unit of the cache.
    pub block_bytes: u64,
    /// Blocks that were read, each as often as it was.
    pub read_blocks: u64,
    /// The share of blocks that was sampled at the end: 1 where the curve is exact.
    pub sampled_share: f64,
    /// Sizes from 1 MiB by powers of two up to one that holds all blocks; empty without reads.
    pub points: Vec<CachePoint>,
    /// Requests of more blocks than are looked at (16,384), of which only the first so many were.
    pub cut_requests: u64,
}

impl Curve {
    /// The share of blocks read that a cache of this size would have, between points by the logarithm of the size.
    ///
    /// Absent without reads and below the first point, unless the size is 0; beyond the last point a larger cache answers as much.
    pub fn hit_ratio(&self, cache_bytes: u64) -> Option<f64> {
        let last = self.points.last()?;
        if cache_bytes == 0 {
            return Some(0.0);
        }
        if cache_bytes >= last.cache_bytes {
            return Some(last.hit_ratio);
        }
        let after = self.points.iter().position(|point| point.cache_bytes > cache_bytes)?;
        let (from, to) = (self.points.get(after.checked_sub(1)?)?, self.points.get(after)?);
        let log = |bytes: u64| (bytes as f64).log2();
        let along = (log(cache_bytes) - log(from.cache_bytes)) / (log(to.cache_bytes) - log(from.cache_bytes));
        Some(from.hit_ratio + (to.hit_ratio - from.hit_ratio) * along)
    }

    /// The largest difference to the hit ratios of another, of the sizes that both have points for; absent where one has no reads.
    pub fn farthest(&self, other: &Self) -> Option<f64> {
        let sizes = self.points.iter().chain(&other.points).map(|point| point.cache_bytes);
        sizes.filter_map(|size| Some((self.hit_ratio(size)? - other.hit_ratio(size)?).abs())).reduce(f64::max)
    }
}

/// A sampled block.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// The place of its last touch.
    place: u32,
    device: u16,
    /// Whether its first touch is a read.
    is_read_first: bool,
    was_written: bool,
    /// All touches until its last one.
    at: u64,
}

/// The sample.
#[derive(Debug)]
pub(super) struct Blocks {
    block_bits: u32,
    /// Blocks with a hash up to this are sampled.
    limit: u64,
    /// How often it was halved: a sampled touch stands for 2^this.
    halvings: u32,
    max_blocks: usize,
    seen: HashMap<u64, Seen, ByHash>,
    order: Order,
    /// The blocks at the places of their touches.
    owners: Vec<u64>,
    next: usize,
    /// Weights of reads, by the class of the time since the touch before, and for each by distance.
    distances: Vec<[u64; BITS]>,
    watches: Watches,
    /// Blocks read and blocks written, each as often as it was.
    reads: u64,
    writes: u64,
    cut_requests: u64,
}

/// What is known at the end.
#[derive(Debug)]
pub(super) struct Touched {
    pub(super) footprint: Option<Footprint>,
    /// By place of the device; absent where none of its blocks was sampled.
    pub(super) by_device: Vec<Option<Footprint>>,
    pub(super) overwritten_share: Option<f64>,
    pub(super) curve: Curve,
}

impl Blocks {
    /// `block_bits` is the logarithm of the block's bytes; `max_blocks` are sampled at most.
    pub(super) fn new(block_bits: u32, max_blocks: usize) -> Self {
        let order = Order::new(4 * max_blocks);
        Self {
            block_bits,
            limit: u64::MAX,
            halvings: 0,
            max_blocks,
            seen: HashMap::default(),
            owners: vec![0; order.places()],
            order,
            next: 0,
            distances: vec![[0; BITS]; CLASSES],
            watches: Watches::new(),
            reads: 0,
            writes: 0,
            cut_requests: 0,
        }
    }

    /// A read or write of a device.
    #[inline]
    pub(super) fn add(&mut self, device: u16, is_write: bool, offset_bytes: u64, bytes: u64) {
        let Some(beyond) = bytes.checked_sub(1) else { return };
        let first = offset_bytes >> self.block_bits;
        let mut last = offset_bytes.saturating_add(beyond) >> self.block_bits;
        if last - first >= MAX_BLOCKS {
            last = first + MAX_BLOCKS - 1;
            self.cut_requests += 1;
        }
        let before = self.reads + self.writes;
        let side = if is_write { &mut self.writes } else { &mut self.reads };
        *side += last - first + 1;
        for block in first..=last {
            let now = before + (block - first);
            let hash = place_hash(device, block);
            self.watches.touch(hash, now, is_write);
            if hash <= self.limit {
                self.touch(hash, device, now, is_write);
            }
        }
    }

    fn touch(&mut self, hash: u64, device: u16, now: u64, is_write: bool) {
        if self.next == self.owners.len() {
            self.compact();
        }
        let place = self.next;
        self.next += 1;
        self.owners[place] = hash;
        if let Some(seen) = self.seen.get_mut(&hash) {
            let before = std::mem::replace(&mut seen.place, place as u32) as usize;
            let at = std::mem::replace(&mut seen.at, now);
            seen.was_written |= is_write;
            if !is_write {
                let others = (self.order.later(before) as u64) << self.halvings;
                self.distances[class_of(now - at)][bits_of(others)] += 1 << self.halvings;
            }
            self.order.unmark(before);
            self.order.mark(place);
            return;
        }
        self.order.mark(place);
        let seen = Seen { place: place as u32, device, is_read_first: !is_write, was_written: is_write, at: now };
        self.seen.insert(hash, seen);
        while self.seen.len() > self.max_blocks {
            self.limit >>= 1;
            self.halvings += 1;
            self.compact();
        }
    }

    /// Moves the last touches of blocks to the first places in their order, without those that are no longer sampled.
    fn compact(&mut self) {
        let mut kept = 0;
        for place in 0..self.next {
            if !self.order.is_marked(place) {
                continue;
            }
            let hash = self.owners[place];
            if hash > self.limit {
                self.seen.remove(&hash);
                continue;
            }
            if let Some(seen) = self.seen.get_mut(&hash) {
                seen.place = kept as u32;
            }
            self.owners[kept] = hash;
            kept += 1;
        }
        self.order.reset(kept);
        self.next = kept;
    }

    fn footprint(&self, sampled: u64) -> Option<Footprint> {
        let blocks = Some(sampled << self.halvings).filter(|blocks| *blocks > 0)?;
        // Each block is sampled or not by itself: the number sampled is binomial.
        let left_out = 1.0 - 0.5_f64.powi(self.halvings as i32);
        let bytes = blocks.saturating_mul(1 << self.block_bits);
        Some(Footprint { blocks, bytes, standard_error: (left_out / sampled as f64).sqrt() })
    }

    /// `devices` are those that have a place of their own.
    pub(super) fn finish(self, devices: usize) -> Touched {
        let mut sampled = vec![0_u64; devices];
        for seen in self.seen.values() {
            if let Some(count) = sampled.get_mut(place_of(seen.device)) {
                *count += 1;
            }
        }
        let footprint = self.footprint(self.seen.len() as u64);
        Touched {
            footprint,
            by_device: sampled.into_iter().map(|count| self.footprint(count)).collect(),
            // All writes of a block but its first one.
            overwritten_share: share(self.writes.saturating_sub(self.all(|seen| seen.was_written)), self.writes),
            curve: Curve {
                block_bytes: 1 << self.block_bits,
                read_blocks: self.reads,
                sampled_share: 0.5_f64.powi(self.halvings as i32),
                points: self.points(footprint.map_or(0, |footprint| footprint.bytes)),
                cut_requests: self.cut_requests,
            },
        }
    }

    /// How many blocks are like this, from those that are sampled.
    fn all(&self, is_such: impl Fn(&Seen) -> bool) -> u64 {
        (self.seen.values().filter(|seen| is_such(seen)).count() as u64) << self.halvings
    }

    /// Reads of blocks touched before, by the class of the time since then.
    fn reads_again(&self) -> Vec<f64> {
        let watched = self.watches.times().iter().map(|weight| *weight as f64);
        let by_blocks = self.distances.iter().map(|row| row.iter().map(|weight| *weight as f64).sum());
        let mut reads: Vec<f64> = if self.halvings == 0 { by_blocks.collect() } else { watched.collect() };
        let again = self.reads.saturating_sub(self.all(|seen| seen.is_read_first)) as f64;
        let sum: f64 = reads.iter().sum();
        if sum > 0.0 {
            reads.iter_mut().for_each(|reads| *reads *= again / sum);
        }
        reads
    }

    fn points(&self, footprint_bytes: u64) -> Vec<CachePoint> {
        if self.reads == 0 {
            return Vec::new();
        }
        let (again, rows) = (self.reads_again(), Rows::new(&self.distances));
        let mut points: Vec<CachePoint> = Vec::new();
        let mut cache_bytes = Some(FIRST_CACHE_BYTES.max(1 << self.block_bits));
        while let Some(size) = cache_bytes {
            let blocks = size >> self.block_bits;
            let mut hits = 0.0;
            for (class, reads) in again.iter().enumerate().filter(|(_, reads)| **reads > 0.0) {
                hits += reads * rows.hits_of(class, blocks);
            }
            let before = points.last().map_or(0.0, |point| point.hit_ratio);
            points.push(CachePoint { cache_bytes: size, hit_ratio: (hits / self.reads as f64).clamp(before, 1.0) });
            cache_bytes = size.checked_mul(2).filter(|_| size < footprint_bytes);
        }
        points
    }
}

/// Distances by the time since the touch before.
struct Rows<'a> {
    /// Classes of times with a touch in the sample, their distances and the sum of these.
    used: Vec<(usize, &'a [u64; BITS], u64)>,
}

impl<'a> Rows<'a> {
    fn new(distances: &'a [[u64; BITS]]) -> Self {
        let row = |(class, row): (usize, &'a [u64; BITS])| (class, row, row.iter().sum());
        Self { used: distances.iter().enumerate().map(row).filter(|(_, _, sum)| *sum > 0).collect() }
    }

    /// The share of reads with times of this class that a cache of so many blocks, a power of two, answers.
    fn hits_of(&self, class: usize, blocks: u64) -> f64 {
        // Within so many touches there are no more blocks, the one itself included.
        if begin_of(class + 1) <= blocks + 1 {
            return 1.0;
        }
        // Where no block of the sample was touched after such a time, one was after a time near it.
        let after = self.used.partition_point(|(used, _, _)| *used < class);
        let near = [after.checked_sub(1).and_then(|before| self.used.get(before)), self.used.get(after)];
        let nearest = near.into_iter().flatten().min_by_key(|(used, _, _)| used.abs_diff(class));
        let share = nearest.and_then(|(_, row, all)| {
            // So many other blocks may have been used since: one less than the cache holds.
            share(row.iter().take(bits_of(blocks)).sum(), *all)
        });
        share.unwrap_or(0.0)
    }
}

/// The bits of a number: a power of two has one more than the numbers below it at most.
fn bits_of(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()) as usize
}
