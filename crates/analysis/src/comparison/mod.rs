//! Runs against each other: what differs in how they were made, whether they can be compared, and what changed.
//!
//! [`Compared::of`] holds all of it. Each figure of each load has its [`Comparison`], with an interval where repeats or
//! seconds show how much the figure scatters. Many figures are looked at together, so the intervals are wide enough for
//! all of them to hold at once with 95 % confidence (Bonferroni).

mod change;
mod doubts;
mod loads;
mod measure;
mod repeats;
mod sample;
mod scatter;
mod settings;
mod student;
#[cfg(test)]
mod tests;
mod verdict;

use super::{Finding, analyse_asked};
use model::record::{Run, Step};

pub use change::{Comparison, Difference, ERROR_RATE, Evidence, Grounds, signed_percent};
pub use doubts::Doubt;
pub use measure::{ComparedFigure, FigureUnit, Measure};
pub use repeats::{NotRepeats, Repeats};
pub use settings::{Bearing, SettingDifference};
pub use verdict::Overall;

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
            let grounds = Grounds::of(sides);
            Pair { run: *run, doubts: Vec::new(), loads: loads_of_pair.collect(), only: loads.only, grounds }
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
