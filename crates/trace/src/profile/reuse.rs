//! How soon blocks are touched again, from a sample of touches.
//!
//! A sample of blocks has a block in heavy use or does not, and all its touches with it. Where few blocks have half of the touches, it
//! knows badly how many touches are soon repeated. A sample of touches knows that well.
//!
//! A touch is drawn with a chance of one in [`Watches::weight`], and its block is watched until it is touched again. The chance is
//! halved as often as too many blocks are watched. Each watch is then kept with a chance of one half, so that old and new ones
//! weigh the same.

use std::collections::HashMap;

use model::workload::mix64;

use super::hash::ByHash;

/// Blocks watched at a time.
const MAX_WATCHES: usize = 1 << 14;
/// One touch in 2^this is drawn at first: the curve of a trace that is too short for that is exact.
const FIRST_HALVINGS: u32 = 3;
/// Places of the filter.
const PLACES: usize = 1 << 17;
/// Classes of times in each doubling.
const STEPS: u64 = 8;
/// Classes of times.
pub(super) const CLASSES: usize = 62 * STEPS as usize;

/// The class of a time in touches.
#[inline]
pub(super) fn class_of(touches: u64) -> usize {
    if touches < STEPS {
        return touches as usize;
    }
    let doubling = touches.ilog2() - STEPS.ilog2();
    (((u64::from(doubling) + 1) * STEPS + ((touches >> doubling) & (STEPS - 1))) as usize).min(CLASSES - 1)
}

/// The shortest time of a class.
pub(super) fn begin_of(class: usize) -> u64 {
    let class = class as u64;
    match class / STEPS {
        0 => class,
        doublings => (STEPS + class % STEPS) << (doublings - 1),
    }
}

/// A watched block.
#[derive(Debug, Clone, Copy)]
struct Watch {
    since: u64,
    /// Random bits, one for each halving.
    draw: u64,
}

/// The touches that were drawn.
#[derive(Debug)]
pub(super) struct Watches {
    watched: HashMap<u64, Watch, ByHash>,
    /// Watched blocks by some bits of their hash: most touches are of a block that is not watched, and end here.
    filter: Vec<u16>,
    halvings: u32,
    /// Touches until the next one is drawn.
    left: u64,
    /// Weights of reads, by the class of the time since the touch before.
    times: Vec<u64>,
}

impl Watches {
    pub(super) fn new() -> Self {
        Self {
            watched: HashMap::default(),
            filter: vec![0; PLACES],
            halvings: FIRST_HALVINGS,
            left: 1,
            times: vec![0; CLASSES],
        }
    }

    fn weight(&self) -> u64 {
        1 << self.halvings
    }

    /// A touch of the block with this hash, the `now`-th of all.
    #[inline]
    pub(super) fn touch(&mut self, hash: u64, now: u64, is_write: bool) {
        if self.filter[hash as usize % PLACES] > 0 {
            self.end(hash, now, is_write);
        }
        self.left -= 1;
        if self.left == 0 {
            self.draw(hash, now);
        }
    }

    fn end(&mut self, hash: u64, now: u64, is_write: bool) {
        let Some(watch) = self.watched.remove(&hash) else { return };
        self.filter[hash as usize % PLACES] -= 1;
        if !is_write {
            self.times[class_of(now.saturating_sub(watch.since))] += self.weight();
        }
    }

    fn draw(&mut self, hash: u64, now: u64) {
        let draw = mix64(hash ^ now.rotate_left(32));
        // Not at equal distances: requests may be periodic themselves. The mean is the weight.
        self.left = 1 + mix64(draw) % (2 * self.weight() - 1);
        self.watched.insert(hash, Watch { since: now, draw });
        self.filter[hash as usize % PLACES] += 1;
        while self.watched.len() > MAX_WATCHES {
            let bit = self.halvings % u64::BITS;
            self.halvings = (self.halvings + 1).min(u64::BITS - 2);
            let filter = &mut self.filter;
            self.watched.retain(|hash, watch| {
                let is_kept = watch.draw >> bit & 1 == 0;
                filter[*hash as usize % PLACES] -= u16::from(!is_kept);
                is_kept
            });
        }
    }

    /// Reads by the class of the time since the touch of their block before.
    pub(super) fn times(&self) -> &[u64] {
        &self.times
    }
}

#[cfg(test)]
mod tests {
    use model::workload::Rng;

    use super::*;
    use crate::profile::hash::place_hash;

    #[test]
    fn classes_follow_each_other_without_a_gap() {
        for touches in (0..5_000).chain([1 << 20, (1 << 40) + 12_345]) {
            let class = class_of(touches);
            assert!(begin_of(class) <= touches && touches < begin_of(class + 1), "{touches}");
        }
        assert_eq!(class_of(u64::MAX), CLASSES - 1);
    }

    #[test]
    fn blocks_in_heavy_use_have_their_share() {
        let (mut rng, mut watches) = (Rng::new(6, 6), Watches::new());
        // Eight blocks have half of the touches, and the others are rarely touched again.
        for now in 0..600_000 {
            let block = if rng.below(2) == 0 { rng.below(8) } else { 8 + rng.below(1 << 40) };
            watches.touch(place_hash(0, block), now, false);
        }
        let soon = watches.times().iter().sum::<u64>() as f64 / 600_000.0;
        assert!((soon - 0.5).abs() < 0.02, "{soon}");
        assert!(watches.watched.len() <= MAX_WATCHES && watches.halvings > FIRST_HALVINGS);
        let used: u64 = watches.filter.iter().map(|count| u64::from(*count)).sum();
        assert_eq!(used as usize, watches.watched.len());
    }
}
