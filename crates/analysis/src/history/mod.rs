//! Many runs of the same load along time: where a figure changed its level, what else changed there, and whether it is worse today than it
//! was.
//!
//! A comparison of two runs cannot tell a change from the scatter between one night and the next. A history knows this scatter:
//! [`Histories::of`] has it judge each run as if it were the latest, so that what it finds does not move when more runs are added.

mod detect;
#[cfg(test)]
mod tests;

use model::record::{Better, Run, Timestamp};

use crate::comparison::{Bearing, Measure, SettingDifference, loads, settings};
use detect::Limits;
pub use detect::{FEWEST_AFTER, FEWEST_BEFORE};

/// Runs on either side of a change at which surroundings that changed may belong to it: its place is known to about a run.
const NEAR: usize = 2;
/// What is compared as loads, or differs from run to run without meaning anything for a load.
const NO_SURROUNDINGS: [&str; 3] = ["load", "window", "warm-up"];

/// Runs along time, those that can be compared together.
#[derive(Debug, Clone, PartialEq)]
pub struct Histories {
    /// Change from which it matters, as a share.
    pub threshold: f64,
    /// What ran last comes first.
    pub histories: Vec<History>,
}

/// Runs of one experiment: the same work, target and tags.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The runs by their beginning.
    pub runs: Vec<HistoryRun>,
    /// Figures of loads that the latest run has.
    pub series: Vec<Series>,
    /// Whether the target of any run is simulated.
    pub is_simulated: bool,
}

/// A run of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRun {
    /// [`Run::id`].
    pub id: String,
    /// [`Run::name`].
    pub name: String,
    /// When it began.
    pub started_at: Timestamp,
}

/// One figure of one load, of each run that has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The load in words.
    pub load: String,
    /// Which figure.
    pub measure: Measure,
    /// Index of the run, and the figure, above zero.
    pub points: Vec<(usize, f64)>,
    /// Where its level changed, in the order of time.
    pub changes: Vec<LevelChange>,
}

/// A change of the level of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelChange {
    /// Index of the first point after it.
    pub at: usize,
    /// Index of the point at which it was first certain.
    pub seen_at: usize,
    /// Indices of the first point of the level before, and of the first behind the level after.
    pub stretch: [usize; 2],
    /// The level before and after; of a drift where it begins and ends.
    pub levels: [f64; 2],
    /// Whether the figure changed little by little.
    pub is_drift: bool,
    /// What else changed there, or of a drift from its beginning to its end. It need not be the cause.
    pub surroundings: Vec<SettingDifference>,
}

/// What a series says about today.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Today<'a> {
    /// Fewer runs than a change takes.
    TooFew,
    /// Its level never changed as far as the runs can say.
    Level,
    /// It changed and is not worse than it ever was, or not by more than the threshold: the change against the best level.
    Changed(f64),
    /// It is worse than its best level by this share, more than the threshold, most of all since this change.
    Worse(f64, &'a LevelChange),
}

impl LevelChange {
    /// The change as a share.
    pub fn share(&self) -> f64 {
        self.levels[1] / self.levels[0] - 1.0
    }
}

impl Series {
    /// The middle of all points, or the higher of two in the middle.
    pub fn middle(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.points.iter().map(|(_, figure)| *figure).collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }

    /// Runs without which no change can be told.
    pub const FEWEST: usize = FEWEST_BEFORE + FEWEST_AFTER;

    /// Whether the figure is worse today than it was: the level of the latest runs against the best that came before. Small changes
    /// in one direction add up.
    pub fn today(&self, threshold: f64) -> Today<'_> {
        if self.points.len() < Self::FEWEST {
            return Today::TooFew;
        }
        let (Some(first), Some(last)) = (self.changes.first(), self.changes.last()) else { return Today::Level };
        let is_better = |one: f64, other: f64| (one > other) == (self.measure.better() == Better::More) && one != other;
        let (mut best, mut from) = (first.levels[0], 0);
        for (place, change) in self.changes.iter().enumerate() {
            if place + 1 < self.changes.len() && !is_better(best, change.levels[1]) {
                (best, from) = (change.levels[1], place + 1);
            }
        }
        let lost = |change: &LevelChange| {
            if is_better(change.levels[0], change.levels[1]) { change.share().abs() } else { 0.0 }
        };
        let since = self.changes.iter().skip(from).max_by(|one, other| lost(one).total_cmp(&lost(other)));
        let since = since.unwrap_or(last);
        let share = last.levels[1] / best - 1.0;
        if is_better(best, last.levels[1]) && share.abs() > threshold {
            Today::Worse(share, since)
        } else {
            Today::Changed(share)
        }
    }
}

impl Histories {
    /// Puts runs into histories and finds where they changed; a change matters for today beyond `threshold`, a share. Together all series
    /// are as rarely called changed as one alone.
    pub fn of(runs: &[&Run], threshold: f64) -> Self {
        let mut sorted = runs.to_vec();
        sorted.sort_by(|one, other| (one.started_at, &one.id).cmp(&(other.started_at, &other.id)));
        let mut groups: Vec<Vec<&Run>> = Vec::new();
        for run in sorted.into_iter().rev() {
            match groups.iter_mut().find(|group| group.first().is_some_and(|latest| is_alike(latest, run))) {
                Some(group) => group.push(run),
                None => groups.push(vec![run]),
            }
        }
        groups.iter_mut().for_each(|group| group.reverse());
        let mut histories: Vec<History> = groups.iter().map(|runs| History::of(runs)).collect();
        let series = || histories.iter().flat_map(|history| &history.series);
        let judged = series().filter(|series| series.points.len() >= Series::FEWEST).count();
        let mut limits = Limits::of(judged);
        for (history, runs) in histories.iter_mut().zip(&groups) {
            history.series.iter_mut().for_each(|series| series.find(runs, &mut limits));
        }
        Self { threshold: threshold.abs(), histories }
    }

    /// Every series with what it says about today.
    pub fn today(&self) -> impl Iterator<Item = (&History, &Series, Today<'_>)> {
        let of_history =
            |history| self.series_of(history).map(move |(series, today)| (history, series, today)).collect::<Vec<_>>();
        self.histories.iter().flat_map(of_history)
    }

    /// The same of one history.
    pub fn series_of<'a>(&self, history: &'a History) -> impl Iterator<Item = (&'a Series, Today<'a>)> {
        let threshold = self.threshold;
        history.series.iter().map(move |series| (series, series.today(threshold)))
    }

    /// Whether any figure is worse today than it was; absent where none is and no series of the latest run is long enough.
    pub fn is_worse(&self) -> Option<bool> {
        if self.today().any(|(.., today)| matches!(today, Today::Worse(..))) {
            return Some(true);
        }
        let latest = self.histories.first()?;
        self.series_of(latest).any(|(_, today)| today != Today::TooFew).then_some(false)
    }
}

/// Where the level of figures above zero changed, in the order in which they were measured: index of the first figure after each change, and
/// of the one at which it was first certain.
pub fn level_changes(figures: &[f64]) -> Vec<(usize, usize)> {
    let logarithms: Vec<f64> = figures.iter().map(|figure| figure.ln()).collect();
    detect::changes(&logarithms, &mut Limits::of(1)).into_iter().map(|found| (found.at, found.seen_at)).collect()
}

/// Whether two runs belong into one history: neither what was measured differs, nor where, nor a tag.
fn is_alike(one: &Run, other: &Run) -> bool {
    settings::differences(&[one, other]).iter().all(|difference| match difference.bearing {
        Bearing::Work => false,
        Bearing::Varied => difference.name != "address" && !difference.name.starts_with("tag "),
        Bearing::Incidental => true,
    })
}

impl History {
    fn of(runs: &[&Run]) -> Self {
        let mut series: Vec<Series> = Vec::new();
        for (place, run) in runs.iter().enumerate() {
            let Some(latest) = runs.last() else { break };
            for load in loads::of([latest, run]).both {
                for (measure, value) in Measure::values_of_load([latest, run], &load.sides) {
                    let known = series.iter_mut().find(|one| one.load == load.name && one.measure == measure);
                    match known {
                        Some(known) => known.points.push((place, value)),
                        None => series.push(Series {
                            load: load.name.clone(),
                            measure,
                            points: vec![(place, value)],
                            changes: Vec::new(),
                        }),
                    }
                }
            }
        }
        // What the latest run has not says nothing about today.
        series.retain(|series| series.points.last().is_some_and(|(run, _)| run + 1 == runs.len()));
        let is_simulated = runs.iter().any(|run| run.target.is_simulated());
        let runs = runs.iter().map(|run| HistoryRun {
            id: run.id.clone(),
            name: run.name.clone(),
            started_at: run.started_at,
        });
        Self { runs: runs.collect(), series, is_simulated }
    }
}

impl Series {
    fn find(&mut self, runs: &[&Run], limits: &mut Limits) {
        let values: Vec<f64> = self.points.iter().map(|(_, value)| value.ln()).collect();
        let run = |point: usize| self.points.get(point).and_then(|(run, _)| runs.get(*run)).copied();
        let change = |found: detect::Found| LevelChange {
            at: found.at,
            seen_at: found.seen_at,
            stretch: found.stretch,
            levels: found.levels.map(f64::exp),
            is_drift: found.is_drift,
            surroundings: if found.is_drift {
                between(run(found.stretch[0]), run(found.stretch[1].saturating_sub(1)))
            } else {
                around(found.at, &run)
            },
        };
        self.changes = detect::changes(&values, limits).into_iter().map(change).collect();
    }
}

/// What changed from the point before `at` to it, or nearest to that.
fn around<'a>(at: usize, run: &impl Fn(usize) -> Option<&'a Run>) -> Vec<SettingDifference> {
    let changed = |at: usize| between(at.checked_sub(1).and_then(run), run(at));
    let places = (0..=NEAR).flat_map(|apart| [at.checked_sub(apart), at.checked_add(apart)]);
    places.flatten().map(changed).find(|changed| !changed.is_empty()).unwrap_or_default()
}

fn between(one: Option<&Run>, other: Option<&Run>) -> Vec<SettingDifference> {
    let (Some(one), Some(other)) = (one, other) else { return Vec::new() };
    let mut changed = settings::differences(&[one, other]);
    changed.retain(|one| one.bearing == Bearing::Varied && !NO_SURROUNDINGS.contains(&one.name.as_str()));
    changed
}
