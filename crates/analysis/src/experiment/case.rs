//! One combination of values: what each of its runs carried, and what its platform allows.

use std::collections::BTreeMap;

use crate::opening::{Carried, Claim, Opening, Unit};
use crate::{
    Calibration, Expected, LatencyTarget, LimitAnswer, NotRepeats, Repeats, Stopped, Tagged, analyse_limits,
    tagged_platform,
};
use model::platforms::{Cache, Catalogue, Combination, Whose};
use model::record::{ExperimentMark, Run, is_mark};

/// One combination of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// What its load is called.
    pub load: String,
    /// Its step, from 1.
    pub step: u32,
    /// Its values, and what else its runs are tagged with.
    pub tags: BTreeMap<String, String>,
    /// What each of its runs came to, at least one.
    pub readings: Vec<CaseReading>,
    /// Its runs as one, with the steps of all.
    pub side: Repeats,
    /// Why they are no repeats of each other, if they are not.
    pub not_repeats: Option<NotRepeats>,
    /// What was measured beside what is published of its platform, where its tags name one.
    pub against: Option<Against>,
}

/// What one run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseReading {
    /// Id of the run.
    pub id: String,
    /// Which repeat it is, from 1.
    pub round: u32,
    /// What it carried, if that is a rate and clear.
    pub rate: Option<CaseRate>,
    /// At which latency, in words that follow the rate; empty where nothing is known.
    pub latency: String,
    /// What stopped it, in words.
    pub stopped_by: Option<String>,
    /// The sentence that its own report opens with.
    pub sentence: String,
    /// Whether the limits of its command were kept; absent where there are none.
    pub verdict: Option<LimitAnswer>,
    /// Whether that should not be relied on as it stands.
    pub is_doubtful: bool,
}

/// What is known of the most that is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// It is the rate.
    Is,
    /// It is the rate or more: nothing higher was tried.
    AtLeast,
    /// It is less: the lowest load that was tried misses the limit.
    LessThan,
}

/// A rate that was carried, or that was not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaseRate {
    /// So many per second.
    pub per_s: f64,
    /// Of what.
    pub unit: Unit,
    /// What that says of the most that is carried.
    pub bound: Bound,
}

impl CaseRate {
    /// `125,000 reads/s`, `at least 125,000 reads/s`.
    pub fn words(self) -> String {
        let bound = match self.bound {
            Bound::Is => "",
            Bound::AtLeast => "at least ",
            Bound::LessThan => "less than ",
        };
        format!("{bound}{} {}", crate::opening::number(self.per_s), self.unit.words())
    }

    /// The rate, where it was carried.
    pub fn carried_per_s(self) -> Option<f64> {
        (self.bound != Bound::LessThan).then_some(self.per_s)
    }

    /// How many times `less` it is, and whether that is the least that it can be; absent where bounds leave it open.
    pub fn times(self, less: Self) -> Option<(f64, bool)> {
        if self.bound == Bound::LessThan || less.bound == Bound::AtLeast {
            return None;
        }
        let factor = self.per_s / less.per_s;
        let is_least = self.bound == Bound::AtLeast || less.bound == Bound::LessThan;
        (factor.is_finite() && (factor >= 1.0 || !is_least)).then_some((factor, is_least))
    }
}

/// The most requests that were measured beside what is published.
#[derive(Debug, Clone, PartialEq)]
pub struct Against {
    /// Requests per second.
    pub per_s: f64,
    /// Requests per second that the platform allows in the long run with a cold cache.
    pub allowed_per_s: f64,
    /// The same while credits last, where that is more.
    pub burst_per_s: Option<f64>,
    /// Whose limit that is.
    pub whose: Whose,
    /// Whether a host's cache lies before the volumes, which what is above the limit came from.
    pub has_cache: bool,
    /// All of it in words.
    pub words: String,
}

impl Against {
    fn of(run: &Run, platform: &Combination) -> Option<Self> {
        let expected = Expected::of_run(run, platform)?;
        let sustained = expected.cold.sustained()?;
        let words = expected.words(platform)?;
        let has_cache = platform.cache == Cache::Read;
        let burst_per_s = expected.cold.burst().map(|burst| burst.per_s).filter(|burst| *burst > sustained.per_s);
        let (per_s, allowed_per_s, whose) = (expected.per_s, sustained.per_s, sustained.whose);
        Some(Self { per_s, allowed_per_s, burst_per_s, whose, has_cache, words })
    }

    /// What was measured as a share of what is allowed.
    pub fn share(&self) -> f64 {
        self.per_s / self.allowed_per_s
    }
}

impl Case {
    pub(super) fn of(mark: &ExperimentMark, limits: &[LatencyTarget], runs: Vec<Run>) -> Option<Self> {
        let first = runs.first()?;
        let tags = first.tags.iter().filter(|(name, _)| !is_mark(name));
        let tags = tags.map(|(name, value)| (name.clone(), value.clone())).collect();
        let platform = match tagged_platform(first, Catalogue::in_reports()) {
            Tagged::Platform(platform) => Some(platform),
            Tagged::Nearly(_) | Tagged::Nothing => None,
        };
        let readings = runs.iter().map(|run| CaseReading::of(run, limits)).collect();
        let of_runs = runs.iter().filter_map(|run| Against::of(run, platform.as_deref()?));
        let against = of_runs.max_by(|a, b| a.per_s.total_cmp(&b.per_s));
        let not_repeats = Repeats::of(runs.clone()).and_then(Result::err);
        let side = Repeats::of_one_command(runs)?;
        Some(Self { load: mark.load.clone(), step: mark.step, tags, readings, side, not_repeats, against })
    }

    /// What it carries: the mean of its runs, where all of them have a rate of one kind, and not only some miss the limit with every load.
    pub fn rate(&self) -> Option<CaseRate> {
        let rates: Vec<CaseRate> = self.readings.iter().map(|reading| reading.rate).collect::<Option<_>>()?;
        let unit = rates.first()?.unit;
        let count = |bound| rates.iter().filter(|rate| rate.bound == bound).count();
        let bound = match (count(Bound::LessThan), count(Bound::AtLeast)) {
            (0, 0) => Bound::Is,
            (0, _) => Bound::AtLeast,
            (missing, _) if missing == rates.len() => Bound::LessThan,
            _ => return None,
        };
        let are_alike = rates.iter().all(|rate| rate.unit == unit);
        let mean = rates.iter().map(|rate| rate.per_s).sum::<f64>() / rates.len() as f64;
        are_alike.then_some(CaseRate { per_s: mean, unit, bound })
    }

    /// From the least to the most that its runs carried, as a share of their mean; absent with fewer than two.
    pub fn spread(&self) -> Option<f64> {
        let mean = self.rate().filter(|_| self.readings.len() > 1)?.carried_per_s()?;
        let rates = || self.readings.iter().filter_map(|reading| Some(reading.rate?.per_s));
        let (low, high) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
        (mean > 0.0).then(|| (high - low) / mean)
    }

    /// Latency and what stopped it, as its first run has them.
    pub fn first(&self) -> Option<&CaseReading> {
        self.readings.first()
    }
}

impl CaseReading {
    fn of(run: &Run, limits: &[LatencyTarget]) -> Self {
        let findings = analyse_limits(run, limits);
        let opening = Opening::of(run, &findings);
        let of_carried = |carried: &Carried| {
            let bound = match carried.claim {
                Claim::AtLeast => Bound::AtLeast,
                Claim::LessThan { .. } => Bound::LessThan,
                // Loads below it miss the limit: its own sentence says so.
                Claim::Unclear => return None,
                Claim::Most { .. } | Claim::Sustained { .. } | Claim::Steady { .. } | Claim::Seen => Bound::Is,
            };
            Some(CaseRate { per_s: carried.per_s, unit: carried.unit, bound })
        };
        let calibrated = |found: &Calibration| {
            let most = found.max_iops.as_ref()?;
            let bound = match most.stopped {
                Stopped::MostOutstanding | Stopped::CutShort => Bound::AtLeast,
                _ => Bound::Is,
            };
            Some(CaseRate { per_s: most.rate.value, unit: Unit::Reads, bound })
        };
        let latency = |carried: &Carried| carried.latency.as_ref().map(|latency| latency.words());
        Self {
            id: run.id.clone(),
            round: ExperimentMark::of_tags(&run.tags).map_or(1, |mark| mark.round),
            rate: match &opening.carries {
                Some(carried) => of_carried(carried),
                None => opening.calibration.as_ref().and_then(calibrated),
            },
            latency: opening.carries.as_ref().and_then(latency).unwrap_or_default(),
            stopped_by: opening.stopped_by.as_ref().map(|by| by.words()),
            sentence: opening.sentence(),
            verdict: opening.verdict.as_ref().map(|verdict| verdict.answer),
            is_doubtful: opening.doubt.is_some(),
        }
    }
}
