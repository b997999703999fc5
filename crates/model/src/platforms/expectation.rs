//! What a platform should reach: which limit binds, what bursts give and how long.

use super::combination::{Asked, Cache, Combination};
use super::limits::{self, Limit, Whose};

/// Rates nearer to each other than this are one: a phase that ends in no other rate is none.
const SAME: f64 = 1e-9;

/// A time during which the ceiling is the same, under a load that takes all that there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Requests of the load per second.
    pub per_s: f64,
    /// What binds.
    pub whose: Whose,
    /// How long it lasts, in seconds; absent where it lasts.
    pub seconds: Option<f64>,
    /// Whose credit is spent at its end.
    pub ends: Option<Whose>,
}

/// What a platform should reach under a load.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// The load.
    pub asked: Asked,
    /// Every published limit that the load touches.
    pub limits: Vec<Limit>,
    /// How the ceiling falls, from full credits to none. Empty where no limit is published.
    pub phases: Vec<Phase>,
}

impl Expectation {
    /// Of `platform` under a load of `asked`.
    pub fn of(platform: &Combination, asked: Asked) -> Self {
        Self::with_redo(platform, asked, 0.0)
    }

    /// The same where so many bytes of redo come with each request, on volumes of their own: they pass the machines all the same.
    pub fn with_redo(platform: &Combination, asked: Asked, redo_bytes: f64) -> Self {
        let asked = if platform.cache == Cache::None { Asked { hit_share: 0.0, ..asked } } else { asked };
        let mut limits = limits::of(platform, &asked, redo_bytes);
        limits.retain(|limit| limit.use_of_one > 0.0);
        let phases = phases(&limits);
        Self { asked, limits, phases }
    }

    /// The ceiling in the long run: requests of the load per second, and whose it is.
    pub fn sustained(&self) -> Option<Phase> {
        self.phases.last().copied()
    }

    /// The ceiling with full credits, where that is another.
    pub fn burst(&self) -> Option<Phase> {
        self.phases.first().copied().filter(|phase| phase.seconds.is_some())
    }

    /// How many seconds of all that there is until every credit that is touched is spent; 0 where there are none.
    pub fn seconds_to_sustained(&self) -> f64 {
        self.phases.iter().filter_map(|phase| phase.seconds).sum()
    }

    /// The limit in the long run that this is of, in requests of the load per second.
    pub fn at(&self, whose: Whose) -> Option<f64> {
        self.limits.iter().find(|limit| limit.whose == whose).map(|limit| limit.binds_at(false))
    }
}

fn phases(limits: &[Limit]) -> Vec<Phase> {
    let mut phases = Vec::new();
    // What is left of each credit; none where there is no credit or it is spent.
    let mut left: Vec<Option<f64>> = limits.iter().map(|limit| limit.credit.map(|credit| credit.full)).collect();
    // Each turn spends one credit, so there are no more of them than limits.
    for _ in 0..=limits.len() {
        let at = |index: usize| limits[index].binds_at(left[index].is_some());
        let Some(binding) = (0..limits.len()).min_by(|a, b| at(*a).total_cmp(&at(*b))) else { break };
        let per_s = at(binding);
        let spent_in = |index: usize| {
            let beyond = per_s * limits[index].use_of_one - limits[index].per_s;
            left[index].filter(|_| beyond > SAME * limits[index].per_s).map(|left| left / beyond)
        };
        let next = (0..limits.len()).filter_map(|index| Some((index, spent_in(index)?)));
        let next = next.min_by(|a, b| a.1.total_cmp(&b.1));
        let whose = limits[binding].whose;
        let Some((ends, seconds)) = next else {
            phases.push(Phase { per_s, whose, seconds: None, ends: None });
            break;
        };
        for index in 0..limits.len() {
            let beyond = per_s * limits[index].use_of_one - limits[index].per_s;
            // What is saved up meanwhile by those that are not touched is left out: they are full already or of no help.
            left[index] = left[index].map(|left| (left - seconds * beyond.max(0.0)).max(0.0));
        }
        left[ends] = None;
        phases.push(Phase { per_s, whose, seconds: Some(seconds), ends: Some(limits[ends].whose) });
    }
    phases
}
