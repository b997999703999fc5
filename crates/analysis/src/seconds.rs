//! The whole seconds inside the window of a step: what was counted in each, what others did to the device meanwhile, and
//! the level that is left when disturbed seconds are left out.

use super::levels::{median, spread};
use super::proof::others_share;
use super::traffic::{inside, rates_inside};
use model::record::{Counters, Run, Step};

/// Fewer seconds than these are not judged one by one.
const MIN_SECONDS: usize = 5;
/// Others that take this share of what we take may disturb us.
const OTHERS: f64 = 0.1;
/// A second is disturbed if it lies below the others by this many standard deviations, as the median distance reports them,
/// and by this share of their level. It is also disturbed if it lies above by as much right after a disturbed one: what was
/// held back is then caught up with.
const DEVIATIONS: f64 = 4.0;
const DISTURBED: f64 = 0.02;

/// The seconds of one step.
#[derive(Debug, Clone, Default)]
pub(super) struct Seconds {
    /// What was counted in each, per second.
    pub(super) per_s: Vec<f64>,
    /// What others took from the device in each, as a share of what we took; absent where that is not known.
    pub(super) others: Vec<Option<f64>>,
    /// What the warm-up before them counted, per second.
    pub(super) warmup_per_s: Vec<f64>,
}

/// What the seconds of a step say when disturbed ones are left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Level {
    /// Mean of the seconds that are left.
    pub(super) per_s: f64,
    /// Their standard deviation as a share of it.
    pub(super) deviation: f64,
    /// How many seconds there are, how many were left out, and in how many of these others used the device.
    pub(super) left_out: LeftOut,
}

/// How many seconds were judged, and how many of them were left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct LeftOut {
    /// All whole seconds.
    pub seconds: usize,
    /// Of these, disturbed ones.
    pub disturbed: usize,
    /// Of the disturbed ones, those in which the device's own counters, or those of the second before, show others at work.
    pub by_others: usize,
}

impl LeftOut {
    pub(super) fn add(&mut self, more: Self) {
        self.seconds += more.seconds;
        self.disturbed += more.disturbed;
        self.by_others += more.by_others;
    }
}

impl Seconds {
    /// Of what `count` counts.
    pub(super) fn of(run: &Run, step: &Step, count: impl Fn(&Counters) -> Option<u64>) -> Self {
        let known = inside(step).filter(|second| count(&second.counters).is_some());
        let others = known.map(|second| others_share(run, step, second)).collect();
        let warmup = step.intervals.iter().filter(|second| second.warmup);
        let warmup_per_s =
            warmup.filter_map(|second| super::rate(count(&second.counters), second.duration_ns)).collect();
        Self { per_s: rates_inside(step, count), others, warmup_per_s }
    }

    pub(super) fn is_with_others(&self, second: usize) -> bool {
        self.others.get(second).copied().flatten().is_some_and(|share| share > OTHERS)
    }

    /// Whether others were at work in a second or in the one before it, whose work this one may have to catch up with.
    pub(super) fn is_near_others(&self, second: usize) -> bool {
        self.is_with_others(second) || second.checked_sub(1).is_some_and(|before| self.is_with_others(before))
    }

    /// Seconds in which others used the device.
    pub(super) fn with_others(&self) -> usize {
        (0..self.per_s.len()).filter(|second| self.is_with_others(*second)).count()
    }

    /// Which seconds are disturbed; none where there are too few to tell.
    pub(super) fn disturbed(&self) -> Vec<bool> {
        let mut disturbed = vec![false; self.per_s.len()];
        if self.per_s.len() < MIN_SECONDS {
            return disturbed;
        }
        let quiet: Vec<f64> =
            (0..self.per_s.len()).filter(|at| !self.is_near_others(*at)).map(|at| self.per_s[at]).collect();
        let basis = if quiet.len() >= MIN_SECONDS { &quiet } else { &self.per_s };
        let middle = median(basis);
        let far = (DEVIATIONS * spread(basis)).max(DISTURBED * middle);
        for at in 0..self.per_s.len() {
            let catches_up = at.checked_sub(1).is_some_and(|before| disturbed[before]) && self.per_s[at] > middle + far;
            disturbed[at] = self.per_s[at] < middle - far || catches_up;
        }
        disturbed
    }

    /// The level of the seconds that are not disturbed; absent with too few of them.
    pub(super) fn level(&self) -> Option<Level> {
        let disturbed = self.disturbed();
        let kept: Vec<f64> =
            self.per_s.iter().zip(&disturbed).filter(|(_, disturbed)| !**disturbed).map(|(rate, _)| *rate).collect();
        let by_others = (0..disturbed.len()).filter(|at| disturbed[*at] && self.is_near_others(*at)).count();
        let per_s = kept.iter().sum::<f64>() / kept.len().max(1) as f64;
        if self.per_s.len() < MIN_SECONDS || kept.len() < MIN_SECONDS.min(self.per_s.len() / 2 + 1) || per_s <= 0.0 {
            return None;
        }
        let squares: f64 = kept.iter().map(|rate| (rate - per_s).powi(2)).sum();
        let deviation = (squares / (kept.len() - 1).max(1) as f64).sqrt() / per_s;
        let left_out = LeftOut { seconds: self.per_s.len(), disturbed: self.per_s.len() - kept.len(), by_others };
        Some(Level { per_s, deviation, left_out })
    }
}
