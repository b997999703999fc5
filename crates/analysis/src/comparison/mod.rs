//! Runs against each other: what differs in how they were made, whether they can be compared, and what changed.
//!
//! [`Compared::of`] holds all of it. Each figure of each load has its [`Comparison`], with an interval where repeats or
//! seconds show how much the figure scatters. Many figures are looked at together, so the intervals are wide enough for
//! all of them to hold at once with 95 % confidence (Bonferroni).

mod change;
mod doubts;
mod grown;
pub(crate) mod loads;
mod measure;
mod scatter;
pub(crate) mod settings;
mod stalls;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Finding, analyse_asked};
use model::record::{Histogram, Run, Step, is_mark};
use scatter::Scatter;

pub(crate) use change::reach_student;
pub use change::{Comparison, Difference, ERROR_RATE, Evidence, Grounds, Overall, signed_percent};
pub use doubts::Doubt;
pub use grown::Grown;
pub use measure::{ComparedFigure, FigureUnit, Measure};
pub use settings::{Bearing, SettingDifference};
pub use stalls::GrownStalls;

/// Some runs, each of them against one that is the baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// What each run is called in sentences, each otherwise: its name, or its id, or that with its place.
    pub names: Vec<String>,
    /// Index of the baseline.
    pub baseline: usize,
    /// Change from which a difference matters, as a share.
    pub threshold: f64,
    /// How many intervals there are; all of them hold the true change at once with 95 % confidence.
    pub intervals: usize,
    /// What differs in how the runs were made, what matters most first.
    pub settings: Vec<SettingDifference>,
    /// Every other run against the baseline, in the order in which the runs were given.
    pub pairs: Vec<Pair>,
}

/// One run against the baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Index of the run.
    pub run: usize,
    /// Why the two may not be comparable, what weighs most first.
    pub doubts: Vec<Doubt>,
    /// Loads that both have, in the order in which the baseline ran them.
    pub loads: Vec<ComparedLoad>,
    /// Loads that only the baseline has, and only the run, in words.
    pub only: [Vec<String>; 2],
    /// What more could be had of the two.
    pub grounds: Grounds,
    /// The part of an operation's time that explains why operations of some load take longer.
    pub grown: Option<Grown>,
    /// The cause of stalls that explains why more time is lost to them.
    pub grown_stalls: Option<GrownStalls>,
}

/// One load in both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedLoad {
    /// The load in words, such as `8 sessions`. Unique within a pair unless sessions are spread otherwise over schemas.
    pub name: String,
    /// [`Step::index`] of the baseline's steps with this load, and of the other run's, in the order in which they ran.
    pub steps: [Vec<u32>; 2],
    /// Its figures, rates first.
    pub figures: Vec<ComparedFigure>,
    /// Whether a doubt is about these steps.
    pub is_doubtful: bool,
}

/// What is looked at, and how sure all of it is to be.
struct Look {
    is_asked: fn(&Measure) -> bool,
    /// Share of comparisons in which some interval may miss the true change.
    error_rate: f64,
}

impl Default for Look {
    fn default() -> Self {
        Self { is_asked: |_| true, error_rate: ERROR_RATE }
    }
}

impl ComparedLoad {
    /// The steps of this load in `run`, which is the baseline (side 0) or the other run (side 1).
    pub fn steps<'a>(&'a self, run: &'a Run, side: usize) -> impl Iterator<Item = &'a Step> {
        run.steps.iter().filter(move |step| self.steps[side].contains(&step.index))
    }
}

impl Compared {
    /// Compares `runs` with the one at index `baseline`; a change matters beyond `threshold`, a share. Absent if there are
    /// fewer than two runs, or no run at that index.
    pub fn of(runs: &[&Run], baseline: usize, threshold: f64) -> Option<Self> {
        let findings: Vec<Vec<Finding>> = runs.iter().map(|run| analyse_asked(run, None)).collect();
        let findings: Vec<&[Finding]> = findings.iter().map(Vec::as_slice).collect();
        Self::judged(runs, &findings, baseline, threshold, &Look::default())
    }

    /// The same of sides that may be repeats of a run. The figures are those of [`Repeats::run`].
    pub fn of_repeats(sides: &[Repeats], baseline: usize, threshold: f64) -> Option<Self> {
        let runs: Vec<&Run> = sides.iter().map(|side| &side.run).collect();
        let findings: Vec<&[Finding]> = sides.iter().map(|side| side.findings.as_slice()).collect();
        let mut compared = Self::judged(&runs, &findings, baseline, threshold, &Look::default())?;
        let in_common: Vec<String> = sides.iter().map(Repeats::in_common).collect();
        for ((name, side), common) in compared.names.iter_mut().zip(sides).zip(&in_common) {
            // Figures of several runs must not stand below the id of one of them.
            if side.ids.len() > 1 {
                let is_unique = in_common.iter().filter(|other| *other == common).count() == 1;
                let called = if is_unique { common.clone() } else { name.clone() };
                *name = format!("{called} ({} runs)", side.ids.len());
            }
        }
        Some(compared)
    }

    /// One load by itself and beside others: the figures that `is_asked` says, the two sides called by `names`. The intervals of all
    /// of them together miss the true change in a share `error_rate` of all comparisons.
    pub(super) fn of_turns(
        sides: &[Repeats; 2],
        names: [String; 2],
        threshold: f64,
        (is_asked, error_rate): (fn(&Measure) -> bool, f64),
    ) -> Option<Self> {
        let [alone, together] = sides;
        let (runs, findings) = ([&alone.run, &together.run], [&*alone.findings, &*together.findings]);
        let compared = Self::judged(&runs, &findings, 0, threshold, &Look { is_asked, error_rate })?;
        Some(Self { names: names.to_vec(), ..compared })
    }

    fn judged(runs: &[&Run], findings: &[&[Finding]], baseline: usize, threshold: f64, look: &Look) -> Option<Self> {
        let first = *runs.get(baseline).filter(|_| runs.len() > 1)?;
        let others: Vec<usize> = (0..runs.len()).filter(|run| *run != baseline).collect();
        let matched: Vec<loads::Loads<'_>> = others.iter().map(|run| loads::of([first, runs[*run]])).collect();
        let prepare = |run: &usize, loads: &loads::Loads<'_>| -> Vec<Vec<measure::Prepared>> {
            let of_load = |load: &loads::Matched<'_>| {
                let mut figures = Measure::of_load([first, runs[*run]], &load.sides);
                figures.retain(|figure| (look.is_asked)(&figure.measure));
                figures
            };
            loads.both.iter().map(of_load).collect()
        };
        let prepared: Vec<_> = others.iter().zip(&matched).map(|(run, loads)| prepare(run, loads)).collect();
        let intervals = prepared.iter().flatten().flatten().filter(|figure| figure.has_interval()).count();
        let error_rate = look.error_rate / intervals.max(1) as f64;
        let pair = |((run, loads), prepared): ((&usize, loads::Loads<'_>), Vec<Vec<measure::Prepared>>)| {
            let figures = prepared
                .into_iter()
                .map(|figures| figures.into_iter().map(|figure| figure.finish(threshold, error_rate)).collect());
            let loads_of_pair = loads.both.iter().zip(figures).map(|(load, figures)| ComparedLoad {
                name: load.name.clone(),
                steps: load.sides.each_ref().map(|side| side.iter().map(|step| step.index).collect()),
                figures,
                is_doubtful: false,
            });
            let (sides, reported) = ([first, runs[*run]], [findings[baseline], findings[*run]]);
            let (loads_of_pair, grounds) = (loads_of_pair.collect::<Vec<_>>(), Grounds::of(sides));
            let grown = Grown::of(sides, &loads_of_pair, threshold);
            let grown_stalls = GrownStalls::of(sides, &loads_of_pair);
            Pair { run: *run, doubts: Vec::new(), loads: loads_of_pair, only: loads.only, grounds, grown, grown_stalls }
                .judged(sides, reported)
        };
        let pairs = others.iter().zip(matched).zip(prepared).map(pair).collect();
        Some(Self { names: names(runs), baseline, threshold, intervals, settings: settings::differences(runs), pairs })
    }

    /// What the baseline and the run of a pair are called.
    pub fn names_of(&self, pair: &Pair) -> [&str; 2] {
        [self.baseline, pair.run].map(|run| self.names.get(run).map_or("?", String::as_str))
    }

    /// Whether a figure of any run is worse than the baseline's by more than the threshold, and the difference is real.
    pub fn has_regression(&self) -> bool {
        self.pairs.iter().any(|pair| pair.count(Difference::Worse) > 0)
    }
}

impl Pair {
    fn judged(mut self, runs: [&Run; 2], findings: [&[Finding]; 2]) -> Self {
        self.doubts = doubts::find(runs, findings, &self.loads);
        let doubtful: Vec<bool> = self
            .loads
            .iter()
            .map(|load| {
                let labels = [0, 1].map(|side: usize| -> Vec<String> {
                    load.steps(runs[side], side).map(|step| step.label.clone()).collect()
                });
                self.doubts.iter().any(|doubt| doubt.is_about(&load.name, &labels))
            })
            .collect();
        self.loads.iter_mut().zip(doubtful).for_each(|(load, is_doubtful)| load.is_doubtful = is_doubtful);
        self
    }

    /// Every figure that could be compared, with its load.
    pub fn comparisons(&self) -> impl Iterator<Item = (&ComparedLoad, &Measure, &Comparison)> {
        self.loads.iter().flat_map(|load| {
            load.figures.iter().filter_map(move |figure| Some((load, &figure.measure, figure.comparison.as_ref()?)))
        })
    }

    /// How many figures have this answer.
    pub fn count(&self, answer: Difference) -> usize {
        self.comparisons().filter(|(.., comparison)| comparison.difference() == answer).count()
    }
}

/// Runs of two machines may have been given one id in the same second, so that only their place distinguishes them.
fn names(runs: &[&Run]) -> Vec<String> {
    let is_unique = |of: fn(&Run) -> &str, name: &str| runs.iter().filter(|run| of(run) == name).count() == 1;
    let name = |(place, run): (usize, &&Run)| match run {
        run if !run.name.is_empty() && is_unique(|run| &run.name, &run.name) => run.name.clone(),
        run if is_unique(|run| &run.id, &run.id) => run.id.clone(),
        run => format!("{} ({})", run.id, place + 1),
    };
    runs.iter().enumerate().map(name).collect()
}

/// One side of a comparison: a run, or several that repeat the same experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeats {
    /// The first of them, with the steps of all, numbered anew in the order in which they were given.
    pub run: Run,
    /// Ids of all of them.
    pub ids: Vec<String>,
    /// What is to be said about each by itself.
    findings: Vec<Finding>,
}

/// Why runs are no repeats of each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{first}` and `{other}` are no repeats of each other: they differ in {what}")]
pub struct NotRepeats {
    /// Id of the first run.
    pub first: String,
    /// Id of the one that differs.
    pub other: String,
    /// Names of what differs.
    pub what: String,
}

impl Repeats {
    /// Takes runs for one side; absent without any.
    ///
    /// # Errors
    /// If they differ in more than what is incidental.
    pub fn of(runs: Vec<Run>) -> Option<Result<Self, NotRepeats>> {
        let original = runs.first()?;
        for run in runs.iter().skip(1) {
            let differing = settings::differences(&[original, run]);
            let names: Vec<String> = differing
                .into_iter()
                .filter(|setting| setting.bearing != Bearing::Incidental)
                .map(|setting| setting.name)
                .collect();
            if !names.is_empty() {
                let (first, other) = (original.id.clone(), run.id.clone());
                return Some(Err(NotRepeats { first, other, what: names.join(", ") }));
            }
        }
        Self::of_one_command(runs).map(Ok)
    }

    /// Takes runs of one command for one side, whatever else differs; absent without any.
    pub(crate) fn of_one_command(runs: Vec<Run>) -> Option<Self> {
        let mut runs = runs.into_iter();
        let first = runs.next()?;
        let mut side = Self { findings: analyse_asked(&first, None), ids: vec![first.id.clone()], run: first };
        runs.for_each(|run| side.add(run));
        Some(side)
    }

    /// What all of them are called: their tags, or the name or id of the first.
    fn in_common(&self) -> String {
        let run = &self.run;
        let tags = run.tags.iter().filter(|(name, _)| !is_mark(name));
        let tags: Vec<String> = tags.map(|(name, value)| format!("{name}={value}")).collect();
        match () {
            () if !tags.is_empty() => tags.join(" "),
            () if run.name.is_empty() => run.id.clone(),
            () => run.name.clone(),
        }
    }

    fn add(&mut self, run: Run) {
        // Analysed by itself: what changes from one run to the next is no change within a run.
        for finding in analyse_asked(&run, None) {
            if !self.findings.contains(&finding) {
                self.findings.push(finding);
            }
        }
        self.ids.push(run.id);
        let steps = self.run.steps.len();
        for (mut step, index) in run.steps.into_iter().zip(steps..) {
            step.index = u32::try_from(index).unwrap_or(u32::MAX);
            step.intervals.iter_mut().for_each(|interval| interval.step = step.index);
            self.run.steps.push(step);
        }
    }
}

// A figure of one side, and how much it would scatter if it were measured again.

/// Quantiles are read from buckets that are at most this wide, as a share.
const BUCKET: f64 = 0.008;

/// A figure with its scatter.
#[derive(Debug, Clone)]
struct Sample {
    /// The figure as reports have it.
    value: f64,
    spread: Spread,
    /// How finely the figure is known even without scatter, in its logarithm.
    resolution: f64,
}

#[derive(Debug, Clone)]
enum Spread {
    /// The scatter of the logarithm.
    Even(Scatter),
    /// The scatter of the share (as its logit) of durations that the quantile leaves below it.
    Quantile { share: f64, scatter: Scatter, curve: Rc<Curve> },
    /// Every value was zero.
    None,
}

impl Sample {
    /// A rate or a mean: what is counted in each second over what it is divided by, such as operations and nanoseconds.
    /// `value` is the figure of the whole, `resolution` the share of it that one count is. Absent with fewer than eight
    /// seconds, or where nothing is divided by.
    ///
    /// The variance of the ratio of two sums is that of the mean of `above - ratio * below` (the linearisation of survey
    /// statistics), so that seconds weigh by what happened in them, and empty ones are no trouble.
    fn of_ratio(value: f64, seconds: &[(f64, f64)], resolution: f64) -> Option<Self> {
        let (above, below) =
            seconds.iter().fold((0.0, 0.0), |(above, below), second| (above + second.0, below + second.1));
        let residuals =
            |ratio: f64| -> Vec<f64> { seconds.iter().map(|(above, below)| above - ratio * below).collect() };
        if below <= 0.0 {
            return None;
        }
        let scatter = Scatter::of_series(&residuals(above / below))?;
        if above <= 0.0 || value <= 0.0 {
            return (value == 0.0).then_some(Self { value, spread: Spread::None, resolution: 0.0 });
        }
        let mean = above / seconds.len() as f64;
        let variance = scatter.variance / (mean * mean);
        Some(Self { value, spread: Spread::Even(Scatter { variance, ..scatter }), resolution })
    }

    /// A quantile of the durations of seconds: what Woodruff (1952) found for samples that are no simple draw. The share
    /// of durations below the quantile is a ratio of two sums and has an interval; the quantiles at the ends of that
    /// interval are the ends of the interval of the quantile. Shares near one are kept below it by their logit. Absent
    /// with fewer than eight seconds.
    fn of_quantile(value: f64, seconds: &Durations, quantile: f64) -> Option<Self> {
        let (index, part) = seconds.curve.place(quantile);
        let (_, highest, _) = seconds.curve.buckets[index];
        let residual = |second: &Vec<Bucket>| {
            let place = second.partition_point(|(_, top, _)| *top < highest);
            let whole: u64 = second[..place].iter().map(|(.., count)| count).sum();
            let rest: u64 = second[place..].iter().map(|(.., count)| count).sum();
            let edge = second.get(place).filter(|(_, top, _)| *top == highest).map_or(0, |(.., count)| *count);
            whole as f64 + part * edge as f64 - quantile * (whole + rest) as f64
        };
        let scatter = Scatter::of_series(&seconds.seconds.iter().map(residual).collect::<Vec<f64>>())?;
        let mean = seconds.curve.count / seconds.seconds.len() as f64;
        let slope = quantile * (1.0 - quantile);
        let variance = scatter.variance / (mean * mean) / (slope * slope);
        let curve = Rc::clone(&seconds.curve);
        let spread = Spread::Quantile { share: quantile, scatter: Scatter { variance, ..scatter }, curve };
        Some(Self { value, spread, resolution: BUCKET })
    }

    /// Repeats of a figure that is above zero; their geometric mean is the figure.
    fn of_repeats(values: &[f64], resolution: f64) -> Option<Self> {
        let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let scatter = Scatter::of_repeats(&logarithms)?;
        let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
        Some(Self { value: mean.exp(), spread: Spread::Even(scatter), resolution })
    }

    /// Whether every value was zero.
    fn is_nothing(&self) -> bool {
        matches!(self.spread, Spread::None)
    }

    fn resolution(&self) -> f64 {
        self.resolution
    }

    /// Degrees of freedom of the scatter.
    fn freedom(&self) -> f64 {
        match &self.spread {
            Spread::Even(scatter) | Spread::Quantile { scatter, .. } => scatter.freedom,
            Spread::None => 1.0,
        }
    }

    /// Variance of the logarithm of the figure.
    fn variance(&self) -> f64 {
        match &self.spread {
            Spread::Even(scatter) => scatter.variance,
            Spread::Quantile { .. } => {
                let (down, up) = self.reach(1.0);
                ((down + up) / 2.0).powi(2)
            }
            Spread::None => 0.0,
        }
    }

    /// How far the logarithm of the figure may lie below and above, `errors` standard errors away.
    fn reach(&self, errors: f64) -> (f64, f64) {
        match &self.spread {
            Spread::Even(scatter) => {
                let away = errors * scatter.variance.sqrt();
                (away, away)
            }
            Spread::Quantile { share, scatter, curve } => {
                let (logit, away) = ((share / (1.0 - share)).ln(), errors * scatter.variance.sqrt());
                let at = |logit: f64| curve.at(1.0 / (1.0 + (-logit).exp())).ln();
                let middle = at(logit);
                ((middle - at(logit - away)).max(0.0), (at(logit + away) - middle).max(0.0))
            }
            Spread::None => (0.0, 0.0),
        }
    }
}

/// Lowest and highest duration of a bucket, and how many durations are in it.
type Bucket = (u64, u64, u64);

/// Durations of many seconds, read once for all quantiles.
#[derive(Debug, Clone)]
struct Durations {
    /// Buckets of each second in rising order; those without durations are left out.
    seconds: Vec<Vec<Bucket>>,
    /// All of them together.
    curve: Rc<Curve>,
}

impl Durations {
    /// Absent without any duration. A second without a histogram has none.
    fn of(seconds: &[Option<&Histogram>]) -> Option<Self> {
        let buckets = |second: &Option<&Histogram>| {
            second.map_or_else(
                Vec::new,
                |second| if second.count() > 0 { second.buckets_ns().collect() } else { Vec::new() },
            )
        };
        let seconds: Vec<Vec<Bucket>> = seconds.iter().map(buckets).collect();
        let mut together: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for (lowest, highest, count) in seconds.iter().flatten() {
            *together.entry((*lowest, *highest)).or_default() += count;
        }
        let mut below = 0.0;
        let buckets = together.into_iter().map(|((lowest, highest), count)| {
            below += count as f64;
            (lowest, highest, below)
        });
        let buckets: Vec<_> = buckets.collect();
        (!buckets.is_empty()).then(|| Self { seconds, curve: Rc::new(Curve { buckets, count: below }) })
    }
}

/// Durations as a rising curve.
#[derive(Debug)]
struct Curve {
    /// Lowest and highest duration of each bucket, and how many durations are in it or below.
    buckets: Vec<(u64, u64, f64)>,
    count: f64,
}

impl Curve {
    /// Index of the bucket in which a share of the durations is reached, and the part of it that belongs to the share.
    fn place(&self, share: f64) -> (usize, f64) {
        let wanted = share.clamp(0.0, 1.0) * self.count;
        let index = self.buckets.partition_point(|(_, _, upto)| *upto < wanted).min(self.buckets.len() - 1);
        let before = index.checked_sub(1).map_or(0.0, |before| self.buckets[before].2);
        let within = self.buckets[index].2 - before;
        (index, if within > 0.0 { ((wanted - before) / within).clamp(0.0, 1.0) } else { 1.0 })
    }

    /// The duration that a share of all does not exceed, with those of one bucket laid evenly over it. At least 1 ns.
    fn at(&self, share: f64) -> f64 {
        let (index, part) = self.place(share);
        let (lowest, highest, _) = self.buckets[index];
        (lowest as f64 + part * (highest - lowest) as f64).max(1.0)
    }
}
