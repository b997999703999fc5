//! An experiment in five sentences that somebody can read who does not read tables.

use std::collections::BTreeMap;

use super::{ExperimentFound, FailureReading};
use crate::opening::{Carried, Claim, Opening, Unit};
use crate::{
    Calibration, Expected, LatencyTarget, LimitAnswer, NotRepeats, Repeats, Stopped, Tagged, analyse_limits,
    tagged_platform,
};
use model::platforms::{Cache, Catalogue, Combination, Whose, allowed_by};
use model::record::{ExperimentMark, Run, is_mark};
use model::units::{group_thousands, percent};

/// A platform reaches what is published from this share of it on: measuring takes some.
const REACHED: f64 = 0.9;
/// Above what is published by more than measuring is off.
const ABOVE: f64 = 1.02;
/// A factor below which nothing that was varied made a difference.
const FACTOR: f64 = 1.05;

impl ExperimentFound {
    /// What was measured; what carries most and least; what made the difference; what published limits say; and how far it can be
    /// trusted.
    pub fn summary(&self) -> [String; 5] {
        if self.is_of_failures() {
            let [pauses, demands, trust] = [self.longest_and_shortest(), self.demands_met(), self.trust_in_pauses()];
            return [self.measured(), pauses, demands, self.against(), trust];
        }
        [self.measured(), self.most_and_least(), self.difference(), self.against(), self.trust()]
    }

    fn measured(&self) -> String {
        let Some(most) = self.cases.iter().map(|case| case.readings.len()).max() else {
            return "Nothing was measured.".to_owned();
        };
        let cases = match (self.cases.len(), self.varied.is_empty()) {
            (1, _) => "1 combination".to_owned(),
            (count, true) => format!("{count} loads"),
            (count, false) => format!("{count} combinations of {}", joined(&self.varied)),
        };
        let loads: Vec<String> = self.loads().iter().map(|load| format!("`{load}`")).collect();
        let least = self.cases.iter().map(|case| case.readings.len()).min().unwrap_or(most);
        let times = match (least, most) {
            (1, 1) => "once each".to_owned(),
            (least, most) if least == most => format!("{most} times each"),
            (least, most) => format!("{least} to {most} times each"),
        };
        let verb = if self.cases.len() == 1 { "was" } else { "were" };
        let missing = match self.asked.saturating_sub(self.runs()) {
            0 => String::new(),
            missing => format!("; {missing} of {} requested runs are missing", self.asked),
        };
        format!("{cases} {verb} measured by {}, {times}{missing}.", joined(&loads))
    }

    /// Cases of the load that has most of them with a rate of one kind: what can be ranked.
    fn ranked(&self) -> Vec<(&Case, CaseRate)> {
        let of_load = |load: &&str| {
            let rated = self.cases.iter().filter(|case| case.load == **load);
            let rated: Vec<(&Case, CaseRate)> = rated.filter_map(|case| Some((case, case.rate()?))).collect();
            let Some(unit) = rated.first().map(|(_, rate)| rate.unit) else { return Vec::new() };
            rated.into_iter().filter(|(_, rate)| rate.unit == unit).collect::<Vec<_>>()
        };
        let loads = self.loads();
        let mut ranked: Vec<Vec<(&Case, CaseRate)>> = loads.iter().map(of_load).collect();
        // Of equals the first.
        let most = ranked.iter().map(Vec::len).max().unwrap_or(0);
        let place = ranked.iter().position(|cases| cases.len() == most);
        let mut best = place.map(|place| ranked.swap_remove(place)).unwrap_or_default();
        // Those that miss the limit with every load carry least.
        let misses = |rate: CaseRate| rate.carried_per_s().is_none();
        best.sort_by(|a, b| misses(a.1).cmp(&misses(b.1)).then(b.1.per_s.total_cmp(&a.1.per_s)));
        best
    }

    fn most_and_least(&self) -> String {
        let ranked = self.ranked();
        let said = |case: &Case| format!("`{}`", self.name(case));
        match ranked[..] {
            [] => "No run found a rate that could rank platforms; each run's report has its result.".to_owned(),
            [(case, rate)] => format!("{} sustains {}.", said(case), carried(case, rate)),
            [(best, most), ..] if most.bound == Bound::LessThan => {
                format!("None met its limit at any tested load; {} sustains {}.", said(best), carried(best, most))
            }
            [(best, most), .., (worst, least)] => {
                let factor = most.times(least).map_or_else(String::new, |(factor, is_least)| {
                    format!(", {}{} times less", if is_least { "at least " } else { "" }, times(factor))
                });
                let open = match ranked.iter().filter(|(_, rate)| rate.bound == Bound::AtLeast).count() {
                    0 => String::new(),
                    1 => "; one of them may sustain more: it met its limit at the highest load".to_owned(),
                    open => format!("; {open} of them may sustain more: they met their limit at the highest load"),
                };
                format!(
                    "{} sustains most, {}. {} sustains least, {}{factor}{open}.",
                    said(best),
                    carried(best, most),
                    said(worst),
                    least.words()
                )
            }
        }
    }

    /// Of each thing that varies, the pair that differs in it alone and most.
    fn difference(&self) -> String {
        let ranked = self.ranked();
        if ranked.len() < 2 {
            return "Too few combinations to compare: what makes a difference is unknown.".to_owned();
        }
        let mut effects: Vec<(&String, (f64, bool), &Case, &Case)> = Vec::new();
        for name in &self.varied {
            let pairs = ranked.iter().enumerate().flat_map(|(at, more)| {
                ranked[at + 1..]
                    .iter()
                    .filter(move |less| differ_only_in(name, more.0, less.0))
                    .map(move |less| (more, less))
            });
            let factors = pairs.filter_map(|(more, less)| Some((name, more.1.times(less.1)?, more.0, less.0)));
            effects.extend(factors.max_by(|a, b| a.1.0.total_cmp(&b.1.0)));
        }
        effects.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
        let Some((name, (factor, is_least), more, less)) = effects.first().copied() else {
            return format!(
                "No two combinations differ in one thing only and by a known factor: which of {} makes the difference is unknown.",
                joined(&self.varied)
            );
        };
        if factor < FACTOR {
            return format!("No varied setting makes a difference of more than {} %.", percent(FACTOR - 1.0));
        }
        let value =
            |case: &Case| case.tags.get(name).map_or_else(|| format!("without {name}"), |value| format!("`{value}`"));
        let others: Vec<String> = self
            .varied
            .iter()
            .filter(|other| *other != name)
            .filter_map(|other| Some(format!("{other}={}", more.tags.get(other)?)))
            .collect();
        let with = if others.is_empty() { String::new() } else { format!(" with `{}`", others.join(" ")) };
        let next = effects.get(1).filter(|(_, (factor, _), ..)| *factor >= FACTOR);
        let next = next.map_or_else(String::new, |(name, (factor, is_least), ..)| {
            format!("; next is {name}, with {} {} times", if *is_least { "at least" } else { "up to" }, times(*factor))
        });
        format!(
            "The largest single difference is {name}:{with} {} sustains {}{} times what {} does{next}.",
            value(more),
            if is_least { "at least " } else { "" },
            times(factor),
            value(less)
        )
    }

    fn against(&self) -> String {
        let known: Vec<(&Case, &Against)> =
            self.cases.iter().filter_map(|case| Some((case, case.against.as_ref()?))).collect();
        let count = |holds: &dyn Fn(&Against) -> bool| known.iter().filter(|(_, against)| holds(against)).count();
        let Some((furthest, least)) = known.iter().copied().min_by(|a, b| a.1.share().total_cmp(&b.1.share())) else {
            return "No tags name a machine and volumes whose limits are published, so nothing was expected."
                .to_owned();
        };
        let on_credit = count(&Against::may_be_credit);
        let is_above = |against: &Against| against.share() > ABOVE && !against.may_be_credit();
        let above = count(&is_above);
        let cached = count(&|against| is_above(against) && against.has_cache);
        let reached = count(&|against| (REACHED..=ABOVE).contains(&against.share()));
        let mut parts = vec![format!(
            "Of {} whose limits are published, {reached} {} {} % of them or more",
            known.len(),
            if reached == 1 { "reaches" } else { "reach" },
            percent(REACHED).trim_end_matches(".0")
        )];
        let does = |count: usize| if count == 1 { "does" } else { "do" };
        if on_credit > 0 {
            parts.push(format!("{on_credit} {} more than lasts, as burst credits allow for a time", does(on_credit)));
        }
        if above > 0 {
            let why = if cached == above { ", perhaps from the host's cache" } else { "" };
            parts.push(format!("{above} {} more than volumes and machines allow past a cache{why}", does(above)));
        }
        if least.share() < REACHED {
            parts.push(format!(
                "furthest below is `{}` with {} of {} requests/s that {}",
                self.name(furthest),
                group_thousands(least.per_s),
                group_thousands(least.allowed_per_s.floor()),
                allowed_by(least.whose)
            ));
        }
        format!("{}.", parts.join("; "))
    }

    fn trust(&self) -> String {
        let spreads = self.cases.iter().filter_map(|case| Some((case, case.spread()?)));
        let widest = spreads.max_by(|a, b| a.1.total_cmp(&b.1));
        let repeats = match widest {
            Some((case, spread)) => format!(
                "Repeats of one combination differ by {} % at most (`{}`), and what differs by less between combinations may be chance",
                percent(spread),
                self.name(case)
            ),
            None if self.cases.iter().all(|case| case.readings.len() < 2) => {
                "No combination was measured more than once, so what differs by a few percent may be chance".to_owned()
            }
            None => "Repeats have no rate by which they could be compared".to_owned(),
        };
        let doubtful = self.cases.iter().flat_map(|case| &case.readings).filter(|reading| reading.is_doubtful).count();
        let doubts = match doubtful {
            0 => String::new(),
            1 => "; 1 run should not be relied on as it stands".to_owned(),
            count => format!("; {count} runs should not be relied on as they stand"),
        };
        format!("{repeats}{doubts}.")
    }
}

impl Against {
    /// Whether it is more than the platform allows in the long run, and no more than it allows on credit.
    fn may_be_credit(&self) -> bool {
        self.share() > ABOVE && self.burst_per_s.is_some_and(|burst| self.per_s <= burst * ABOVE)
    }
}

fn carried(case: &Case, rate: CaseRate) -> String {
    format!("{}{}", rate.words(), case.first().map_or("", |reading| reading.latency.as_str()))
}

/// Whether two cases have the same value of everything but `name`, and not of that.
fn differ_only_in(name: &str, one: &Case, other: &Case) -> bool {
    let rest = |case: &Case| {
        let mut tags = case.tags.clone();
        tags.remove(name);
        tags
    };
    one.tags.get(name) != other.tags.get(name) && rest(one) == rest(other)
}

/// `a, b and c`.
fn joined(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A factor as people say it.
fn times(factor: f64) -> String {
    if factor < 9.95 { format!("{factor:.1}") } else { group_thousands(factor) }
}

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
    /// What its failure cost, where one was caused.
    pub failure: Option<FailureReading>,
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
            failure: FailureReading::of(run),
            is_doubtful: opening.doubt.is_some(),
        }
    }

    /// Answers to the limits of its command and to what was demanded of its failure.
    pub fn answers(&self) -> impl Iterator<Item = LimitAnswer> {
        let demands = self.failure.iter().flat_map(|failure| &failure.demands).map(|demand| match demand.met {
            Some(true) => LimitAnswer::Yes,
            Some(false) => LimitAnswer::No,
            None => LimitAnswer::NoVerdict,
        });
        self.verdict.into_iter().chain(demands)
    }
}
