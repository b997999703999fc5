//! When a request would be done: planted behaviour, without a clock and without threads.
//!
//! A request goes through the cache, then through the caps in the order in which requests came, then to the first server
//! that is free. All that is random is drawn from the seed, each choice from a stream of its own, so that planting one
//! thing more leaves the others as they were.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::{Burst, Cap, SimulatedOptions, Spread, Stall};
use crate::OperationResult;
use ::model::workload::Rng;

const NS_PER_HOUR: f64 = 3.6e12;
const BYTES_PER_MB: f64 = 1e6;

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimulatedRequest {
    /// Where it begins; decides only what a cache knows.
    pub offset_bytes: u64,
    /// Its length.
    pub bytes: u32,
    /// Whether it writes: a write goes through the cache to the device, and leaves its blocks in both.
    pub is_write: bool,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// When it is done, since opening: later than it was asked.
    pub done_at_ns: u64,
    /// How it ended.
    pub result: OperationResult,
}

/// The planted behaviour and its state.
#[derive(Debug)]
pub struct Model {
    options: SimulatedOptions,
    volumes: Vec<Volume>,
    machine: Caps,
    cache: Option<BlockCache>,
    service_times: Rng,
    tiers: Rng,
    failures: Rng,
}

/// Limits on the rate of requests, on that of bytes, or on both.
#[derive(Debug)]
struct Caps {
    iops: Option<Pacer>,
    mbps: Option<Pacer>,
}

impl Caps {
    fn new(iops: Option<Cap>, mbps: Option<Cap>) -> Self {
        Self { iops: iops.map(|cap| Pacer::new(cap, 1.0)), mbps: mbps.map(|cap| Pacer::new(cap, BYTES_PER_MB)) }
    }

    fn is_none(&self) -> bool {
        self.iops.is_none() && self.mbps.is_none()
    }

    fn earliest_ns(&self, at_ns: u64) -> u64 {
        [&self.iops, &self.mbps].into_iter().flatten().fold(at_ns, |at, cap| cap.earliest_ns(at))
    }

    fn take(&mut self, at_ns: u64, requests: u64, bytes: u32) {
        if let Some(iops) = &mut self.iops {
            iops.take(at_ns, requests as f64);
        }
        if let Some(mbps) = &mut self.mbps {
            mbps.take(at_ns, f64::from(bytes));
        }
    }
}

/// The end of the stall in which `at_ns` lies, or else `at_ns` itself.
fn after_stalls(stalls: &[Stall], at_ns: u64) -> u64 {
    stalls.iter().fold(at_ns, |at_ns, stall| {
        let end_ns = stall.at.0.saturating_add(stall.length.0);
        if (stall.at.0..end_ns).contains(&at_ns) { end_ns } else { at_ns }
    })
}

/// What each volume has for itself.
#[derive(Debug)]
struct Volume {
    /// When each server is free again, soonest first.
    free_at_ns: BinaryHeap<Reverse<u64>>,
    caps: Caps,
    /// Those of reads, and of writes.
    directions: [Caps; 2],
}

impl Model {
    /// A model at rest: buckets full, cache empty.
    pub fn new(options: SimulatedOptions) -> Self {
        let stream = |choice| Rng::new(options.seed, choice);
        let volume = |_| Volume {
            free_at_ns: (0..options.servers.max(1)).map(|_| Reverse(0)).collect(),
            caps: Caps::new(options.iops, options.mbps),
            directions: [options.read_iops, options.write_iops].map(|cap| Caps::new(cap, None)),
        };
        Self {
            volumes: (0..options.volumes.max(1)).map(volume).collect(),
            machine: Caps::new(options.machine_iops, options.machine_mbps),
            cache: options.cache.map(|cache| BlockCache::new(cache.size.0)),
            service_times: stream(0),
            tiers: stream(1),
            failures: stream(2),
            options,
        }
    }

    /// What is planted.
    pub fn options(&self) -> &SimulatedOptions {
        &self.options
    }

    /// Serves a request that comes at `now_ns` since opening. Requests are served in the order of calls, so instants should
    /// not run backwards.
    pub fn serve(&mut self, now_ns: u64, request: SimulatedRequest) -> Served {
        let result = if self.options.errors > 0.0 && self.failures.unit_f64() < self.options.errors {
            OperationResult::Failed
        } else {
            OperationResult::Done
        };
        let lookup = self.cache.as_mut().map(|cache| cache.touch(request.offset_bytes, request.bytes));
        let done_at_ns = match (lookup, self.options.cache) {
            (Some(Lookup::Hit), Some(cache)) if !request.is_write => {
                self.after_stalls(now_ns).saturating_add(self.spread(cache.service.0 as f64))
            }
            _ => self.serve_by_device(now_ns, request),
        };
        Served { done_at_ns, result }
    }

    /// The volume that holds a request, counted from 0.
    fn volume_of(&self, offset_bytes: u64) -> usize {
        let volume = self.options.volume_bytes.map_or(0, |length| offset_bytes / length.0.max(1));
        usize::try_from(volume).unwrap_or(usize::MAX).min(self.volumes.len() - 1)
    }

    fn serve_by_device(
        &mut self,
        now_ns: u64,
        SimulatedRequest { offset_bytes, bytes, is_write }: SimulatedRequest,
    ) -> u64 {
        let volume = self.volume_of(offset_bytes);
        let allowed_ns = self.pass_caps(volume, now_ns, bytes);
        let service_ns = self.service_ns(now_ns, bytes);
        let Reverse(free_ns) = self.volumes[volume].free_at_ns.pop().expect("there is at least one server");
        let done_at_ns = self.after_stalls(allowed_ns.max(free_ns)).saturating_add(service_ns);
        let Volume { free_at_ns, directions, .. } = &mut self.volumes[volume];
        free_at_ns.push(Reverse(done_at_ns));
        // What waits for the cap of its direction holds up no others, neither in a server nor in a cap of both: the wait is added to the
        // time that it would take without.
        let direction = &mut directions[usize::from(is_write)];
        if direction.is_none() {
            return done_at_ns;
        }
        let requests = self.options.requests_of(bytes);
        let allowed_ns = after_stalls(&self.options.stalls, direction.earliest_ns(now_ns));
        direction.take(allowed_ns, requests, bytes);
        done_at_ns.saturating_add(allowed_ns.saturating_sub(now_ns))
    }

    /// When the caps let a request through. A stall holds them up too: what could not go then is not let through at once
    /// afterwards.
    fn pass_caps(&mut self, volume: usize, now_ns: u64, bytes: u32) -> u64 {
        if self.volumes[volume].caps.is_none() && self.machine.is_none() {
            return now_ns;
        }
        let requests = self.options.requests_of(bytes);
        let mut at_ns = now_ns;
        // The machine's first: what waits for its volume does not hold up the others' requests.
        let stalls = &self.options.stalls;
        for caps in [&mut self.machine, &mut self.volumes[volume].caps] {
            at_ns = after_stalls(stalls, caps.earliest_ns(at_ns));
            caps.take(at_ns, requests, bytes);
        }
        at_ns
    }

    fn after_stalls(&self, at_ns: u64) -> u64 {
        after_stalls(&self.options.stalls, at_ns)
    }

    fn service_ns(&mut self, now_ns: u64, bytes: u32) -> u64 {
        let planted = self.planted_ns();
        let drift = 1.0 + self.options.drift_pct_per_h / 100.0 * (now_ns as f64 / NS_PER_HOUR);
        let transfer = self.options.bandwidth.map_or(0.0, |bandwidth| f64::from(bytes) * 1e9 / bandwidth.0 as f64);
        self.spread(planted * drift).saturating_add(transfer as u64)
    }

    /// Service time of the tier that a request falls on.
    fn planted_ns(&mut self) -> f64 {
        if self.options.tiers.is_empty() {
            return self.options.service.0 as f64;
        }
        let mut place = self.tiers.unit_f64();
        for tier in &self.options.tiers {
            place -= tier.share;
            if place < 0.0 {
                return tier.service.0 as f64;
            }
        }
        // Only rounding of the shares leads here.
        self.options.tiers.last().map_or(0.0, |tier| tier.service.0 as f64)
    }

    /// A service time around `centre_ns`; never nothing, for then time could not pass.
    fn spread(&mut self, centre_ns: f64) -> u64 {
        let mut unit = || 1.0 - self.service_times.unit_f64();
        let service_ns = match self.options.spread {
            Spread::Fixed => centre_ns,
            Spread::Exponential => -unit().ln() * centre_ns,
            // Box and Muller (1958): two uniform numbers make a normal one.
            Spread::Lognormal { sigma } => {
                let normal = (-2.0 * unit().ln()).sqrt() * (std::f64::consts::TAU * unit()).cos();
                centre_ns * (sigma * normal).exp()
            }
        };
        (service_ns as u64).max(1)
    }
}

// Token buckets, reported by instants.
//
// The generic cell rate algorithm (ITU-T I.371) is a token bucket without a count of tokens: it keeps the instant at
// which the bucket will be full again. A unit may go when that instant is no farther away than a full bucket takes to
// fill. So nothing adds up but the instant, and the rate in the long run is exact.

/// One limit of rate.
#[derive(Debug, Clone)]
struct Limit {
    /// Time in which one unit is earned.
    ns_per_unit: f64,
    /// Time in which the empty bucket fills; 0 lets nothing be saved.
    bucket_ns: f64,
    /// When the bucket will be full, if nothing more goes.
    full_at_ns: f64,
}

impl Limit {
    fn new(units_per_s: f64, bucket_ns: f64) -> Self {
        Self { ns_per_unit: 1e9 / units_per_s, bucket_ns, full_at_ns: 0.0 }
    }
}

/// A cap: its long-run rate, and the higher rate of its burst, if it has one.
#[derive(Debug, Clone)]
struct Pacer {
    limits: Vec<Limit>,
}

impl Pacer {
    /// A pacer of `cap`, where `units` is how many units its rates count as one.
    pub(super) fn new(cap: Cap, units: f64) -> Self {
        let Cap { per_s, burst } = cap;
        let mut limits = Vec::new();
        // At the burst's rate the bucket loses what the cap does not earn, so this much credit lasts as long as asked.
        let bucket_ns = burst.map_or(0.0, |Burst { per_s: fast, length }| (fast / per_s - 1.0) * length.0 as f64);
        limits.push(Limit::new(per_s * units, bucket_ns));
        limits.extend(burst.map(|burst| Limit::new(burst.per_s * units, 0.0)));
        Self { limits }
    }

    /// The first instant from `at_ns` on at which something may go.
    ///
    /// Parts of a nanosecond are cut off here and kept in the limits, so that they do not slow the rate.
    pub(super) fn earliest_ns(&self, at_ns: u64) -> u64 {
        let free = self.limits.iter().map(|limit| (limit.full_at_ns - limit.bucket_ns) as u64);
        free.fold(at_ns, u64::max)
    }

    /// Lets `units` go at `at_ns`, which is no earlier than [`earliest_ns`](Self::earliest_ns).
    pub(super) fn take(&mut self, at_ns: u64, units: f64) {
        for limit in &mut self.limits {
            limit.full_at_ns = limit.full_at_ns.max(at_ns as f64) + units * limit.ns_per_unit;
        }
    }
}

// A cache that only knows which blocks it would hold.

/// Bytes that are cached or not cached together.
const BLOCK_BYTES: u64 = 8_192;

/// The clock algorithm over block numbers: a block touched since the hand last passed by is kept.
#[derive(Debug)]
struct BlockCache {
    capacity: usize,
    /// Where each block stands.
    places: HashMap<u64, u32>,
    blocks: Vec<(u64, Touched)>,
    hand: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Touched {
    Lately,
    NotLately,
}

/// Whether a cache had everything that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lookup {
    Hit,
    Miss,
}

impl BlockCache {
    /// An empty cache of `bytes`, one block at least.
    pub(super) fn new(bytes: u64) -> Self {
        let capacity = (bytes / BLOCK_BYTES).clamp(1, u64::from(u32::MAX)) as usize;
        Self { capacity, places: HashMap::new(), blocks: Vec::new(), hand: 0 }
    }

    /// Touches every block of a range; all that were missing are there afterwards.
    pub(super) fn touch(&mut self, offset_bytes: u64, bytes: u32) -> Lookup {
        let end = offset_bytes.saturating_add(u64::from(bytes.max(1)));
        let mut lookup = Lookup::Hit;
        for block in offset_bytes / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES) {
            if let Some(place) = self.places.get(&block) {
                self.blocks[*place as usize].1 = Touched::Lately;
            } else {
                lookup = Lookup::Miss;
                self.insert(block);
            }
        }
        lookup
    }

    fn insert(&mut self, block: u64) {
        if self.blocks.len() < self.capacity {
            self.places.insert(block, self.blocks.len() as u32);
            self.blocks.push((block, Touched::NotLately));
            return;
        }
        while self.blocks[self.hand].1 == Touched::Lately {
            self.blocks[self.hand].1 = Touched::NotLately;
            self.hand = (self.hand + 1) % self.capacity;
        }
        self.places.remove(&self.blocks[self.hand].0);
        self.places.insert(block, self.hand as u32);
        self.blocks[self.hand] = (block, Touched::NotLately);
        self.hand = (self.hand + 1) % self.capacity;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Nanos;
    use proptest::prelude::*;

    /// When each of `count` units goes that all came at once.
    fn instants(pacer: &mut Pacer, count: u64) -> Vec<u64> {
        (0..count)
            .map(|_| {
                let at_ns = pacer.earliest_ns(0);
                pacer.take(at_ns, 1.0);
                at_ns
            })
            .collect()
    }

    #[test]
    fn the_rate_is_exact_even_where_its_gap_is_no_whole_nanosecond() {
        let mut pacer = Pacer::new(Cap { per_s: 30_000_011.0, burst: None }, 1.0);
        let gone = instants(&mut pacer, 30_000_011);
        assert!((999_999_965..=999_999_968).contains(gone.last().unwrap()), "{:?}", gone.last());
    }

    #[test]
    fn a_full_bucket_lasts_its_length_and_refills_from_what_is_not_used() {
        let burst = Some(Burst { per_s: 2_000.0, length: Nanos::seconds(3) });
        let mut pacer = Pacer::new(Cap { per_s: 500.0, burst }, 1.0);
        let gone = instants(&mut pacer, 8_000);
        let in_second = |second: u64| gone.iter().filter(|at| **at / 1_000_000_000 == second).count();
        assert_eq!([0, 1, 2, 3, 4].map(in_second), [2_000, 2_000, 2_000, 500, 500]);
        // Two seconds of rest earn 1,000, and 500 more come in each second: at 2,000/s that lasts for 2/3 s.
        let rested = gone.last().unwrap() + 2_000_000_000;
        let mut fast: u32 = 0;
        while pacer.earliest_ns(rested) < rested + 500_000_000 {
            let at_ns = pacer.earliest_ns(rested);
            pacer.take(at_ns, 1.0);
            fast += 1;
        }
        assert_eq!(fast, 1_000);
        let mut all = fast;
        while pacer.earliest_ns(rested) < rested + 2_000_000_000 {
            let at_ns = pacer.earliest_ns(rested);
            pacer.take(at_ns, 1.0);
            all += 1;
        }
        assert!((1_998..=2_002).contains(&all), "{all} in 2 s: 1,000 that were saved and 1,000 that came in");
    }

    proptest! {
        #[test]
        fn no_second_has_more_than_the_cap_however_requests_come(
            gaps in proptest::collection::vec(0u64..3_000_000, 1..2_000), per_s in 100.0f64..5_000.0,
        ) {
            let mut pacer = Pacer::new(Cap { per_s, burst: None }, 1.0);
            let (mut at, mut gone) = (0, Vec::new());
            for gap in gaps {
                at += gap;
                let earliest = pacer.earliest_ns(at);
                prop_assert!(earliest >= at);
                pacer.take(earliest, 1.0);
                gone.push(earliest);
            }
            prop_assert!(gone.is_sorted());
            for (first, from) in gone.iter().enumerate() {
                let within = gone[first..].iter().take_while(|at| **at < from + 1_000_000_000).count();
                prop_assert!(within as f64 <= per_s + 1.5, "{} in a second", within);
            }
        }
    }
}

#[cfg(test)]
mod cache_tests {
    use super::*;

    #[test]
    fn what_fits_is_found_again_and_what_was_not_touched_goes_first() {
        let mut cache = BlockCache::new(4 * BLOCK_BYTES);
        let mut touch = |block: u64| cache.touch(block * BLOCK_BYTES, BLOCK_BYTES as u32);
        assert_eq!([1, 2, 3, 4].map(&mut touch), [Lookup::Miss; 4]);
        assert_eq!([4, 3, 1].map(&mut touch), [Lookup::Hit; 3]);
        assert_eq!(touch(5), Lookup::Miss);
        assert_eq!([1, 3, 4, 5].map(&mut touch), [Lookup::Hit; 4], "2 made room, as nobody had touched it");
        assert_eq!(touch(2), Lookup::Miss);
    }

    #[test]
    fn a_range_hits_only_if_all_of_it_is_there() {
        let mut cache = BlockCache::new(1 << 20);
        cache.touch(0, 8_192);
        assert_eq!(cache.touch(0, 8_193), Lookup::Miss);
        assert_eq!(cache.touch(100, 16_000), Lookup::Hit);
    }

    #[test]
    fn uniform_reads_hit_in_proportion_to_what_fits() {
        let mut cache = BlockCache::new(300 * BLOCK_BYTES);
        let mut rng = model::workload::Rng::new(1, 1);
        let mut hits = 0;
        for read in 0..60_000 {
            let lookup = cache.touch(rng.below(1_000) * BLOCK_BYTES, 8_192);
            hits += usize::from(read >= 10_000 && lookup == Lookup::Hit);
        }
        assert!((14_500..15_500).contains(&hits), "{hits} of 50000 reads hit where 30 % of the blocks fit");
    }
}
