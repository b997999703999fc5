//! The rate at which one mix of reads and changes misses the limit.
//!
//! The first point is more than can be carried: the rate at which its requests are finished is what the mix can do, if latency is not what
//! ends it. One point below and one above that are what a search by halves would need six for. The search decides wherever they do not.

use model::record::{MapLevel, MapSearch};

use super::Judged;
use crate::load_line::Verdict;
use crate::search::{Search, SearchPlan};
use crate::{LoadLine, VerdictOutcome};

/// The interval in which the line of a mix lies is as wide as this part of what is wanted to both sides: the rest is for what lies between
/// mixes.
const OF_WITHIN: f64 = 1.6;
/// The first point below the line that is expected.
const BELOW: f64 = 0.96;
/// Farther apart than this, one end is looked for from the other.
const NEAR: f64 = 1.3;
/// Steps from one end get longer by this many halves of that at most.
const LONGEST: u32 = 4;
/// What was finished is all that can be, where it is less than this part of what was due.
const ALL: f64 = 0.97;

/// The search on one mix.
#[derive(Debug, Clone)]
pub(super) struct MixSearch {
    pub(super) number: u32,
    pub(super) read_share: f64,
    lowest_per_s: f64,
    highest_per_s: f64,
    resolution: f64,
    /// The line as a part of what is finished under more, as other mixes have it.
    expected: f64,
    search: Search,
    tried: Vec<Judged>,
}

impl MixSearch {
    /// Of a load whose range is in order.
    pub(super) fn new(load: &MapSearch, number: u32, read_share: f64) -> Self {
        let resolution = load.within * OF_WITHIN;
        let plan = SearchPlan {
            low: load.lowest_per_s,
            high: load.highest_per_s,
            resolution,
            max_points: load.most_points as usize,
            repeats: 1,
        };
        Self {
            number,
            read_share,
            lowest_per_s: load.lowest_per_s,
            highest_per_s: load.highest_per_s,
            resolution,
            expected: 1.0,
            search: Search::new(plan),
            tried: Vec::new(),
        }
    }

    /// The line as a part of what is finished under more; absent where either is unknown, or the search goes on.
    pub(super) fn of_capacity(&self) -> Option<f64> {
        let (low, high) = self.bounds().filter(|_| self.next().is_none())?;
        Some((low.sqrt() * high?.sqrt() / self.capacity()?).min(1.0))
    }

    /// Looks first where others have their line.
    pub(super) fn expect(&mut self, of_capacity: f64) {
        self.expected = of_capacity;
    }

    /// The point at a rate.
    pub(super) fn level(&self, per_s: f64) -> MapLevel {
        MapLevel { mix: self.number, read_share: self.read_share, per_s }
    }

    /// Its first point, at a rate that is more than it is expected to carry.
    pub(super) fn first(&self, more_per_s: f64) -> MapLevel {
        self.level(self.possible(more_per_s))
    }

    pub(super) fn record(&mut self, point: &Judged) {
        self.search.record(Verdict { rate: point.level.per_s, outcome: point.outcome });
        if point.has_hung {
            self.search.settle(point.level.per_s);
        }
        self.tried.push(*point);
    }

    /// Whether a kind was too rare for its percentile at the largest rate that kept the limit.
    pub(super) fn has_few(&self) -> bool {
        let carried = self.carried();
        self.tried.iter().any(|point| Some(point.level.per_s) == carried && point.has_few)
    }

    pub(super) fn points(&self) -> usize {
        self.tried.len()
    }

    /// What was finished under more than can be, per second.
    pub(super) fn capacity(&self) -> Option<f64> {
        let first = self.tried.first().filter(|point| point.outcome != VerdictOutcome::Passed)?;
        let is_all = first.finished_per_s < ALL * first.level.per_s;
        (is_all && first.finished_per_s > 0.0).then_some(first.finished_per_s)
    }

    /// Rates that kept the limit, or that did not.
    fn rates(&self, has_passed: bool) -> u32 {
        let mut rates: Vec<u64> = self
            .tried
            .iter()
            .filter(|point| (point.outcome == VerdictOutcome::Passed) == has_passed)
            .map(|point| point.level.per_s.to_bits())
            .collect();
        rates.sort_unstable();
        rates.dedup();
        rates.len() as u32
    }

    /// How far a step goes after so many in the same direction.
    fn stride(&self, before: u32) -> f64 {
        (1.0 + self.resolution * 0.98).powi(1 << before.min(LONGEST))
    }

    fn answer(&self) -> LoadLine {
        self.search.answer()
    }

    /// The largest rate that kept the limit.
    pub(super) fn carried(&self) -> Option<f64> {
        self.answer().highest_passing
    }

    /// The least rate that did not.
    pub(super) fn missed(&self) -> Option<f64> {
        self.answer().lowest_failing
    }

    /// Whether the load generator, and not the storage, ends the line.
    pub(super) fn is_generators(&self) -> bool {
        let LoadLine { generator_bound, lowest_failing, .. } = self.answer();
        generator_bound.is_some_and(|bound| lowest_failing.is_none_or(|failing| bound < failing))
    }

    /// Between which rates the line lies; absent where none kept the limit, and without an end where the storage was not what ended it.
    pub(super) fn bounds(&self) -> Option<(f64, Option<f64>)> {
        let high = if self.is_generators() { None } else { self.missed() };
        Some((self.carried()?, high))
    }

    /// The least rate above the line at which requests were too slow. One that was only not steady ends the search, and shows nothing
    /// beyond it.
    pub(super) fn failed(&self) -> Option<f64> {
        let LoadLine { highest_passing, lowest_failing, unsteady, .. } = self.answer();
        let is_above = |per_s: f64| highest_passing.is_none_or(|passing| per_s > passing);
        let known = lowest_failing.filter(|per_s| !unsteady.contains(per_s));
        let has_failed = |per_s: f64| {
            let times = |outcome| {
                let is_it = |point: &&Judged| point.level.per_s == per_s && point.outcome == outcome;
                self.tried.iter().filter(is_it).count()
            };
            is_above(per_s) && times(VerdictOutcome::Failed) > times(VerdictOutcome::Passed)
        };
        let tried = self.tried.iter().map(|point| point.level.per_s).filter(|per_s| has_failed(*per_s));
        known.or_else(|| tried.min_by(f64::total_cmp))
    }

    /// Whether requests were too slow at the upper end itself.
    pub(super) fn has_failed(&self) -> bool {
        self.failed().is_some_and(|per_s| Some(per_s) == self.missed())
    }

    /// Points that kept the limit below the line, and those that did not above it.
    pub(super) fn known(&self) -> impl Iterator<Item = (f64, bool)> {
        let carried = self.carried();
        let missed = self.failed().filter(|_| !self.is_generators());
        carried.map(|per_s| (per_s, true)).into_iter().chain(missed.map(|per_s| (per_s, false)))
    }

    /// The next point; absent where the interval is narrow enough, or the range ends.
    pub(super) fn next(&self) -> Option<MapLevel> {
        let by_halves = self.search.next()?;
        let is_tried = |per_s: f64| self.tried.iter().any(|point| point.level.per_s == per_s);
        if is_tried(by_halves) {
            // It was not steady, or verdicts contradict each other.
            return Some(self.level(by_halves));
        }
        // Where the line is expected above a rate that failed, one stall may have decided.
        if let [_, only] = self.tried.as_slice()
            && self.expected < 1.0
            && self.capacity().is_some()
            && only.outcome == VerdictOutcome::Failed
            && !only.has_hung
        {
            return Some(only.level);
        }
        let line = self.answer();
        let bound = line.lowest_failing.into_iter().chain(line.generator_bound).reduce(f64::min);
        let guess = match (line.highest_passing, bound) {
            (None, Some(failing)) if self.rates(false) == 1 => {
                self.capacity().map_or(failing / NEAR, |per_s| (per_s * self.expected).min(failing) * BELOW)
            }
            // Each step is longer than the one before.
            (None, Some(failing)) => failing / self.stride(self.rates(false).saturating_sub(2)),
            (Some(passing), Some(failing)) if failing > passing * NEAR => {
                passing * self.stride(self.rates(true).saturating_sub(1))
            }
            (Some(passing), None) => passing * NEAR * NEAR,
            _ => by_halves,
        };
        let guess = self.possible(guess);
        let is_between =
            line.highest_passing.is_none_or(|passing| guess > passing) && bound.is_none_or(|bound| guess < bound);
        Some(self.level(if is_between && !is_tried(guess) { guess } else { by_halves }))
    }

    /// Within the range, in as many digits as a person reads.
    fn possible(&self, per_s: f64) -> f64 {
        let per_s = per_s.clamp(self.lowest_per_s, self.highest_per_s);
        if per_s >= 100.0 { per_s.round() } else { per_s }
    }
}
