//! Many runs of the same load along time: where a figure changed its level, what else changed there, and whether it is worse today than it
//! was.
//!
//! A comparison of two runs cannot tell a change from the scatter between one night and the next. A history knows this scatter:
//! [`Histories::of`] has it judge each run as if it were the latest, so that what it finds does not move when runs of the same loads are
//! added.

mod detect;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::record::{Better, Outcome, Run, Timestamp};

use crate::comparison::{Bearing, Measure, SettingDifference, loads, settings};
use crate::levels::median_of;
use detect::Limits;
pub use detect::{FEWEST_AFTER, FEWEST_BEFORE};

/// Runs on either side of a change at which surroundings that changed may belong to it: its place is known to about a run.
const NEAR: usize = 2;
/// What is compared as loads.
const NO_SURROUNDINGS: [&str; 1] = ["load"];
/// What differs from machine to machine, and seldom means anything for a load.
const MACHINE: &str = "host name";
/// Seconds before the latest run in which the latest runs of other histories ran with it.
const WITH_LATEST_S: i64 = 86_400;
/// What says what was measured, and changes along the life of one database: a change of it is told, and begins no other history.
const SIZES: [&str; 2] = ["data", "cache"];

/// Runs along time, those that can be compared together.
#[derive(Debug, Clone, PartialEq)]
pub struct Histories {
    /// Change from which it matters, as a share.
    pub threshold: f64,
    /// What ran last comes first. Others than that with the latest run are those that are long enough for a change.
    pub histories: Vec<History>,
    /// How many more there are.
    pub too_short: usize,
}

/// Runs of one experiment: the same work, target and tags.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The runs by their beginning.
    pub runs: Vec<HistoryRun>,
    /// Figures of loads that the latest run has.
    pub series: Vec<Series>,
    /// Loads that the run before the latest has and the latest has not, in words.
    pub missing: Vec<String>,
    /// Where its runs were made, and their tags, in words.
    pub of: String,
    /// Whether the target of any run is simulated.
    pub is_simulated: bool,
    /// Whether its latest run is not older than a day before the latest of all: the others say nothing about today.
    pub is_current: bool,
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
    /// Whether the latest run has it not, although the run before it has.
    pub is_missing: bool,
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
    /// The latest run has it not.
    Missing,
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
    /// The median of all points.
    pub fn middle(&self) -> Option<f64> {
        median_of(&self.points.iter().map(|(_, figure)| *figure).collect::<Vec<_>>())
    }

    /// Runs without which no change can be told.
    pub const FEWEST: usize = FEWEST_BEFORE + FEWEST_AFTER;

    /// Whether the figure is worse today than it was: the level of the latest runs against the best that came before. Small changes
    /// in one direction add up.
    pub fn today(&self, threshold: f64) -> Today<'_> {
        if self.is_missing {
            return Today::Missing;
        }
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
    /// of a history are as rarely called changed as one alone.
    pub fn of(runs: &[&Run], threshold: f64) -> Self {
        // A map has no load that a later one has, too.
        let mut sorted: Vec<&Run> = runs.iter().copied().filter(|run| run.load.map().is_none()).collect();
        sorted.sort_by(|one, other| (one.started_at, &one.id).cmp(&(other.started_at, &other.id)));
        let mut groups: Vec<Vec<&Run>> = Vec::new();
        let mut places: BTreeMap<Vec<(String, Option<String>)>, usize> = BTreeMap::new();
        for run in sorted.into_iter().rev() {
            let place = *places.entry(experiment(run)).or_insert(groups.len());
            match groups.get_mut(place) {
                Some(group) => group.push(run),
                None => groups.push(vec![run]),
            }
        }
        groups.iter_mut().for_each(|group| group.reverse());
        let all = groups.len();
        let mut is_latest = true;
        groups.retain(|group| std::mem::take(&mut is_latest) || group.len() >= Series::FEWEST);
        let too_short = all - groups.len();
        let mut histories: Vec<History> = groups.iter().map(|runs| History::of(runs)).collect();
        let latest = histories.first().and_then(|history| history.runs.last()).map(|run| run.started_at.0.as_second());
        for (history, runs) in histories.iter_mut().zip(&groups) {
            let last = runs.last().map(|run| run.started_at.0.as_second());
            history.is_current = latest.zip(last).is_some_and(|(latest, last)| latest - last <= WITH_LATEST_S);
            let mut limits = Limits::of(history.series.len());
            history.series.iter_mut().for_each(|series| series.find(runs, &mut limits));
        }
        Self { threshold: threshold.abs(), histories, too_short }
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

    /// Whether any figure of a current history is worse today than it was. Absent where none is, and the latest run has no series that is
    /// long enough, or has not all that the run before it has.
    pub fn is_worse(&self) -> Option<bool> {
        let is_worse = |(history, _, today): (&History, &Series, Today<'_>)| {
            history.is_current && matches!(today, Today::Worse(..))
        };
        if self.today().any(is_worse) {
            return Some(true);
        }
        let latest = self.histories.first()?;
        let today: Vec<Today<'_>> = self.series_of(latest).map(|(_, today)| today).collect();
        let is_judged = today.iter().any(|today| !matches!(today, Today::TooFew | Today::Missing));
        (is_judged && latest.missing.is_empty() && !today.contains(&Today::Missing)).then_some(false)
    }
}

/// Where the level of figures above zero changed, in the order in which they were measured: index of the first figure after each change, and
/// of the one at which it was first certain.
pub fn level_changes(figures: &[f64]) -> Vec<(usize, usize)> {
    let logarithms: Vec<f64> = figures.iter().map(|figure| figure.ln()).collect();
    detect::changes(&logarithms, &mut Limits::of(1)).into_iter().map(|found| (found.at, found.seen_at)).collect()
}

/// What runs of one history have in common: what was measured, where, and their tags.
fn experiment(run: &Run) -> Vec<(String, Option<String>)> {
    let is_kept = |name: &str, bearing: Bearing| match bearing {
        Bearing::Work => !SIZES.contains(&name),
        Bearing::Varied => name == "address" || name.starts_with("tag "),
        Bearing::Incidental => name.strip_prefix("tag ").is_some_and(|tag| !is_incidental(tag)),
    };
    let settings = settings::settings(run).into_iter();
    settings.filter(|(name, bearing, _)| is_kept(name, *bearing)).map(|(name, _, value)| (name, value)).collect()
}

impl History {
    fn of(runs: &[&Run]) -> Self {
        let mut series: Vec<(Vec<u32>, Series)> = Vec::new();
        let latest = runs.last().copied();
        // What a load is called must not depend on the run that it is found in.
        let own = latest.map(|latest| loads::of([latest, latest]).both).unwrap_or_default();
        for (place, run) in runs.iter().enumerate() {
            let Some(latest) = latest else { break };
            for load in loads::of([latest, run]).both {
                // What was cut short is another load.
                if load.sides[1].iter().any(|step| step.outcome != Outcome::Completed) {
                    continue;
                }
                let steps: Vec<u32> = load.sides[0].iter().map(|step| step.index).collect();
                let same =
                    |own: &&loads::Matched<'_>| own.sides[0].iter().map(|step| step.index).eq(steps.iter().copied());
                let name = own.iter().find(same).map_or(&load.name, |own| &own.name);
                for (measure, value) in Measure::values_of_load(run, &load.sides[1]) {
                    let known = series.iter_mut().find(|(known, one)| *known == steps && one.measure == measure);
                    match known {
                        Some((_, known)) => known.points.push((place, value)),
                        None => {
                            let (load, points) = (name.clone(), vec![(place, value)]);
                            let one = Series { load, measure, points, is_missing: false, changes: Vec::new() };
                            series.push((steps.clone(), one));
                        }
                    }
                }
            }
        }
        let mut series: Vec<Series> = series.into_iter().map(|(_, series)| series).collect();
        // What the runs before do not have either says nothing about today.
        let last = |series: &Series| series.points.last().map_or(0, |(run, _)| runs.len() - run);
        series.retain(|series| last(series) <= 2);
        series.iter_mut().for_each(|series| series.is_missing = last(series) == 2);
        let missing = match runs {
            [.., before, latest] => loads::of([before, latest]).only[0].clone(),
            _ => Vec::new(),
        };
        Self {
            series,
            missing,
            of: latest.map(place_and_tags).unwrap_or_default(),
            is_simulated: runs.iter().any(|run| run.target.is_simulated()),
            is_current: false,
            runs: runs
                .iter()
                .map(|run| HistoryRun { id: run.id.clone(), name: run.name.clone(), started_at: run.started_at })
                .collect(),
        }
    }
}

fn place_and_tags(run: &Run) -> String {
    let tags = run.tags.iter().filter(|(name, _)| !is_incidental(name));
    let tags = tags.map(|(name, value)| format!(", {name}={value}"));
    format!("{}{}", run.target.address, tags.collect::<String>())
}

/// Whether a tag says nothing of what an experiment is. Which step of an experiment file a run is of does.
fn is_incidental(tag: &str) -> bool {
    model::record::INCIDENTAL.contains(&tag) || model::record::is_mark(tag) && tag != model::record::STEP
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
    changed.retain(|one| {
        let name = one.name.as_str();
        SIZES.contains(&name) || name == MACHINE || one.bearing == Bearing::Varied && !NO_SURROUNDINGS.contains(&name)
    });
    changed
}
