//! How soon blocks are touched again, and what a cache of another size would make of that.
//!
//! Some touches are drawn at random, one in [`Reuse::period`] of them. Their blocks are watched until somebody touches them again,
//! on whatever thread; the number of touches in between, of all threads together, is the *reuse time*. Drawing touches rather than
//! blocks gives blocks in steady use their share, however few they are.
//!
//! A cache that replaces what was used least recently keeps a block for some time, the same for all blocks, and holds what was touched
//! within it. So the share of touches whose reuse time is longer than a time `t` says two things: it is the miss ratio of a cache
//! that keeps blocks for `t`, and summed up from 0 to `t` it is the number of blocks which that cache holds (the model of average
//! eviction times of Hu and others, USENIX ATC 2016). What was not touched again before the load ended is counted as longer than
//! it was watched (Kaplan and Meier), so that a short load says less and not something else.
//!
//! A touch costs a look at one word of a small table. The table, its period and its memory are fixed: [`MAX_WATCHES`].

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::io::prefetch;
use model::workload::mix64;

/// Blocks that can be watched at a time. The words that every touch looks at, 64 KiB, stay in a processor's own cache.
const MAX_WATCHES: u64 = 1 << 14;
const MIN_WATCHES: u64 = 1 << 10;
/// Touches between two that are drawn, at least: what drawing one costs is nothing beside so many.
const MIN_PERIOD: u64 = 16;
/// Of the places in the table about one in so many is in use, so that few drawn touches find their place taken.
const ROOM: u64 = 4;
/// Touches after which a lane tells the others how far it is.
const PUBLISHED_EVERY: u64 = 64;
/// Steps of reuse times in each doubling.
const STEPS: usize = 16;
/// Reuse times up to 2^48.
const BUCKETS: usize = 45 * STEPS;
/// The curve ends where fewer samples than this were watched longer, unless none was given up.
const FEWEST_AT_RISK: u64 = 50;
/// Share of touches below which a larger cache is no better.
const NOTHING: f64 = 1e-3;

/// What all lanes share.
#[derive(Debug)]
pub(super) struct Reuse {
    /// Marks of the blocks that are watched, each in a place of its own; zero is none.
    watched: Vec<AtomicU32>,
    /// Touches of all lanes when each was drawn.
    begun: Vec<AtomicU64>,
    shift: u32,
    period: u64,
    /// Touches so far, as far as lanes have reported.
    touches: AtomicU64,
    /// Reuse times of lanes that are gone.
    times: Mutex<Times>,
}

/// Reuse times by their bucket.
#[derive(Debug, Clone)]
struct Times(Box<[u64; BUCKETS]>);

impl Default for Times {
    fn default() -> Self {
        Self(Box::new([0; BUCKETS]))
    }
}

impl Times {
    fn add(&mut self, touches: u64) {
        self.0[bucket_of(touches)] += 1;
    }
}

fn bucket_of(touches: u64) -> usize {
    let steps = STEPS as u64;
    if touches < steps {
        return touches as usize;
    }
    let doubling = touches.ilog2() - steps.ilog2();
    (((u64::from(doubling) + 1) * steps + ((touches >> doubling) & (steps - 1))) as usize).min(BUCKETS - 1)
}

/// Least reuse time of a bucket.
fn begin_of(bucket: usize) -> u64 {
    match bucket / STEPS {
        0 => bucket as u64,
        doublings => ((STEPS + bucket % STEPS) as u64) << (doublings - 1),
    }
}

/// A lane's part. Touches are counted without a lock.
#[derive(Debug)]
pub(super) struct LaneReuse {
    /// Touches of all lanes when this one last reported, its own included.
    base: u64,
    /// Its touches since.
    since: u64,
    /// Touches until the next one is drawn.
    left: u64,
    times: Times,
}

impl Reuse {
    /// Watches for touches of so many blocks.
    pub(super) fn new(blocks: u64) -> Self {
        let watches = blocks.next_power_of_two().clamp(MIN_WATCHES, MAX_WATCHES);
        Self {
            watched: (0..watches).map(|_| AtomicU32::new(0)).collect(),
            begun: (0..watches).map(|_| AtomicU64::new(0)).collect(),
            shift: u64::BITS - watches.trailing_zeros(),
            // In the mean a touch is as long away from the next of its block as there are blocks.
            period: MIN_PERIOD.max(ROOM * blocks / watches),
            touches: AtomicU64::new(0),
            times: Mutex::default(),
        }
    }

    /// Brings near what a touch of `block` looks at.
    #[inline]
    pub(super) fn prefetch(&self, block: u64) {
        prefetch(&self.watched[self.place(block).0]);
    }

    /// The place of a block and its mark. That two blocks have both in common is a chance of one in 2^31.
    #[inline]
    fn place(&self, block: u64) -> (usize, u32) {
        let mixed = mix64(block);
        ((mixed >> self.shift) as usize, mixed as u32 | 1)
    }

    /// A lane's part.
    pub(super) fn lane(&self, number: u32) -> LaneReuse {
        let left = 1 + mix64(u64::from(number)) % self.period;
        LaneReuse { base: self.touches.load(Ordering::Relaxed), since: 0, left, times: Times::default() }
    }

    /// Keeps what a lane saw.
    pub(super) fn give_back(&self, lane: &mut LaneReuse) {
        let mut all = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = std::mem::take(&mut lane.times);
        all.0.iter_mut().zip(seen.0.iter()).for_each(|(sum, count)| *sum += count);
        self.touches.fetch_add(std::mem::take(&mut lane.since), Ordering::Relaxed);
    }

    /// What was seen since the last call, once all lanes have given back theirs; nothing where nobody touched anything.
    pub(super) fn take(&self) -> Option<Reused> {
        let times = std::mem::take(&mut *self.times.lock().unwrap_or_else(PoisonError::into_inner));
        let touches = self.touches.swap(0, Ordering::Relaxed);
        let mut given_up = Times::default();
        for (watched, begun) in self.watched.iter().zip(&self.begun) {
            if watched.swap(0, Ordering::Relaxed) != 0 {
                given_up.add(touches.saturating_sub(begun.load(Ordering::Relaxed)));
            }
        }
        let reused = Reused { times, given_up };
        (reused.samples() > 0).then_some(reused)
    }
}

impl LaneReuse {
    /// A block was touched.
    #[inline]
    pub(super) fn touch(&mut self, shared: &Reuse, block: u64) {
        let (place, mark) = shared.place(block);
        self.since += 1;
        self.left -= 1;
        if shared.watched[place].load(Ordering::Relaxed) == mark {
            self.end(shared, place, mark);
        }
        if self.left == 0 {
            self.draw(shared, place, mark);
        }
    }

    /// Touches of all lanes so far.
    fn now(&mut self, shared: &Reuse) -> u64 {
        if self.since >= PUBLISHED_EVERY {
            self.base = shared.touches.fetch_add(self.since, Ordering::Relaxed) + self.since;
            self.since = 0;
        }
        self.base + self.since
    }

    #[inline(never)]
    fn end(&mut self, shared: &Reuse, place: usize, mark: u32) {
        let (now, begun) = (self.now(shared), shared.begun[place].load(Ordering::Relaxed));
        // Another lane may touch it at the same moment: one of the two ends the watch.
        if shared.watched[place].compare_exchange(mark, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.times.add(now.saturating_sub(begun).max(1));
        }
    }

    #[inline(never)]
    fn draw(&mut self, shared: &Reuse, place: usize, mark: u32) {
        let now = self.now(shared);
        // Not at equal distances: load may be periodic itself.
        self.left = 1 + shared.period / 2 + mix64(now ^ u64::from(mark)) % shared.period;
        let watched = &shared.watched[place];
        if watched.load(Ordering::Relaxed) == 0 {
            shared.begun[place].store(now, Ordering::Relaxed);
            let _ = watched.compare_exchange(0, mark, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// Reuse times of a step.
#[derive(Debug)]
pub(super) struct Reused {
    times: Times,
    /// How long those were watched that were not touched again.
    given_up: Times,
}

impl Reused {
    fn sum(times: &Times) -> u64 {
        times.0.iter().sum()
    }

    /// Touches that were drawn.
    pub(super) fn samples(&self) -> u64 {
        self.reused() + Self::sum(&self.given_up)
    }

    /// Of these, those whose block was touched again.
    pub(super) fn reused(&self) -> u64 {
        Self::sum(&self.times)
    }

    /// The hit ratio of caches that hold so many blocks, which rise; of the last ones nothing where the load was too short to say.
    pub(super) fn hit_ratios(&self, caches: &[u64]) -> Vec<f64> {
        let mut ratios = Vec::with_capacity(caches.len());
        let (mut reused, mut given_up) = (self.reused(), Self::sum(&self.given_up));
        let (mut longer, mut blocks) = (1.0_f64, 0.0_f64);
        for bucket in 0..BUCKETS {
            let at_risk = reused + given_up;
            if at_risk == 0 || (at_risk < FEWEST_AT_RISK && given_up > 0) {
                break;
            }
            let (here, lost) = (self.times.0[bucket], self.given_up.0[bucket]);
            // Times of a bucket are taken to be spread evenly over it.
            let after = longer * (1.0 - here as f64 / at_risk as f64);
            let width = (begin_of(bucket + 1) - begin_of(bucket)) as f64;
            let held = blocks + width * (longer + after) / 2.0;
            while let Some(cache) = caches.get(ratios.len()).filter(|cache| **cache as f64 <= held) {
                let along = if held > blocks { (*cache as f64 - blocks) / (held - blocks) } else { 1.0 };
                ratios.push(1.0 - (longer + (after - longer) * along));
            }
            (longer, blocks) = (after, held);
            (reused, given_up) = (reused - here, given_up - lost);
        }
        // Nothing is left that a larger cache could answer besides.
        if longer < NOTHING {
            ratios.resize(caches.len(), 1.0 - longer);
        }
        ratios
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::workload::Rng;

    /// Touches by several lanes in turns, and the curve of them.
    fn curve(
        lanes: u32,
        blocks: u64,
        touches: u64,
        caches: &[u64],
        draw: impl Fn(&mut Rng) -> u64,
    ) -> (Reused, Vec<f64>) {
        let shared = Reuse::new(blocks);
        let mut all: Vec<LaneReuse> = (0..lanes).map(|lane| shared.lane(lane)).collect();
        let mut rng = Rng::new(7, 7);
        for touch in 0..touches {
            all[(touch % u64::from(lanes)) as usize].touch(&shared, draw(&mut rng));
        }
        all.iter_mut().for_each(|lane| shared.give_back(lane));
        let reused = shared.take().unwrap();
        let ratios = reused.hit_ratios(caches);
        (reused, ratios)
    }

    fn near(one: f64, other: f64, by: f64) -> bool {
        (one - other).abs() <= by
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        for touches in (0..5_000).chain([1 << 20, (1 << 40) + 12_345]) {
            let bucket = bucket_of(touches);
            assert!(begin_of(bucket) <= touches && touches < begin_of(bucket + 1), "{touches}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn a_cache_answers_its_share_of_uniform_load_whatever_the_lanes() {
        for lanes in [1, 7] {
            let (reused, ratios) =
                curve(lanes, 20_000, 1_000_000, &[1_000, 5_000, 10_000, 18_000], |rng| rng.below(20_000));
            assert!(reused.samples() > 50_000, "{}", reused.samples());
            for (ratio, share) in ratios.iter().zip([0.05, 0.25, 0.5, 0.9]) {
                assert!(near(*ratio, share, 0.01), "{ratios:?}");
            }
        }
    }

    #[test]
    fn a_few_blocks_in_heavy_use_have_their_share() {
        // Half of all touches go to eight of 20,000 blocks.
        let draw = |rng: &mut Rng| if rng.below(2) == 0 { rng.below(8) } else { rng.below(20_000) };
        let (_, ratios) = curve(3, 20_000, 1_000_000, &[100, 2_000, 10_000], draw);
        for (ratio, share) in ratios.iter().zip([0.502, 0.55, 0.75]) {
            assert!(near(*ratio, share, 0.015), "{ratios:?}");
        }
    }

    #[test]
    fn a_loop_over_the_data_needs_all_of_them() {
        let at = std::cell::Cell::new(0_u64);
        let draw = |_: &mut Rng| at.replace((at.get() + 1) % 4_000);
        let (_, ratios) = curve(1, 4_000, 200_000, &[1_000, 3_500, 4_200], draw);
        assert!(ratios[0] < 0.01 && ratios[1] < 0.01 && ratios[2] > 0.99, "{ratios:?}");
    }

    #[test]
    fn a_short_load_says_nothing_about_large_caches() {
        let (reused, ratios) = curve(2, 100_000, 60_000, &[1_000, 20_000, 90_000], |rng| rng.below(100_000));
        assert_eq!(ratios.len(), 2, "{ratios:?}");
        assert!(near(ratios[1], 0.2, 0.03), "{ratios:?}");
        assert!(reused.reused() < reused.samples());
    }

    #[test]
    fn what_was_taken_is_gone() {
        let shared = Reuse::new(1_000);
        let mut lane = shared.lane(0);
        (0..10_000).for_each(|touch| lane.touch(&shared, touch % 10));
        shared.give_back(&mut lane);
        assert!(shared.take().is_some());
        assert!(shared.take().is_none());
    }
}
