//! Many windows of one database along calendar time: peaks, percentiles over time, the day's profile and growth.
//!
//! Times are wall-clock times as the runs report them. Of imported reports in a zone that is not reported they are written as if
//! they were UTC, so that hours of the day are those of the database's own clock.

mod database;
mod growth;
mod measure;
mod profile;
mod quantile;
mod windows;
mod work;

pub use database::{Database, Scope};
pub use growth::{Growth, LikeDays};
pub use measure::{MEASURES, WindowValue, measured};
pub use profile::{Cell, DayRow, HourRow, LONGEST_FOR_DAYS_S, LONGEST_FOR_HOURS_S};
pub use quantile::weighted_quantiles;
pub use windows::{Gap, SetAside, TrendWindow, Why};
pub use work::work;

use model::record::{Clock, Metric, Run, Step};

/// Percentiles that are reported, as shares.
pub const QUANTILES: [f64; 4] = [0.5, 0.9, 0.95, 0.99];

/// Several runs along time, each database by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Trends {
    /// One element for each database, and for each instance of one that is reported by itself, in the order of their names.
    pub trends: Vec<Trend>,
    /// What has no place in time, and why.
    pub left_out: Vec<SetAside>,
}

/// One database along time.
#[derive(Debug, Clone, PartialEq)]
pub struct Trend {
    /// Whose windows these are.
    pub database: Database,
    /// Windows that count, by their beginning. They do not overlap by more than clocks are read apart.
    pub windows: Vec<TrendWindow>,
    /// Windows that were given and do not count, and why.
    pub set_aside: Vec<SetAside>,
    /// Stretches between two windows of which nothing is known.
    pub gaps: Vec<Gap>,
    /// Whether times are those of a clock on the wall in a zone that is not reported.
    pub is_wall_clock: bool,
}

/// One measure over all windows that report it.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// What is measured.
    pub measure: Metric,
    /// Windows that report it.
    pub windows: usize,
    /// Their length together, in seconds.
    pub covered_s: f64,
    /// Mean over time; of latencies and shares of reads the mean over all reads. Absent where no mean of windows is one.
    pub mean: Option<f64>,
    /// [`QUANTILES`] over time: the least value that windows of so great a share of the covered time did not exceed.
    pub quantiles: [f64; QUANTILES.len()],
    /// The largest value of a window.
    pub peak: f64,
    /// Index of that window; the first, if several have it.
    pub peak_at: usize,
    /// How it grew, where that is known.
    pub growth: Option<Growth>,
}

/// The database that a step of `run` is of, by the name that the run has for it.
pub fn database_of(run: &Run, step: &Step) -> Database {
    Database { scope: Scope::of(run, step), name: database::name_of(run) }
}

impl Trends {
    /// Sorts the windows of all steps of `runs` by database and time.
    pub fn of(runs: &[&Run]) -> Self {
        let mut left_out = Vec::new();
        let mut by_scope: std::collections::BTreeMap<Scope, Vec<TrendWindow>> = std::collections::BTreeMap::new();
        let (mut wall, mut names) = (std::collections::BTreeSet::new(), std::collections::BTreeMap::new());
        for run in runs {
            for (scope, window) in windows::of_run(run, &mut left_out) {
                if run.imported.as_ref().is_some_and(|imported| imported.clock == Clock::Wall) {
                    wall.insert(scope.clone());
                }
                names.entry(scope.clone()).or_insert_with(|| database::name_of(run));
                by_scope.entry(scope).or_default().push(window);
            }
        }
        let databases = database::named(&names);
        let mut trends: Vec<Trend> = Vec::new();
        for (scope, given) in by_scope {
            // Of one database the reports of all instances together come first, so that those of single ones find them here.
            let (given, inside) = match trends.iter().find(|trend| trend.database.scope.holds(&scope)) {
                Some(whole) => windows::outside(given, &whole.windows),
                None => (given, Vec::new()),
            };
            let (windows, mut set_aside) = windows::without_overlaps(given);
            set_aside.extend(inside);
            let Some(name) = databases.get(&scope) else { continue };
            let gaps = windows::gaps(&windows);
            let is_wall_clock = wall.contains(&scope);
            trends.push(Trend {
                database: Database { scope, name: name.clone() },
                windows,
                set_aside,
                gaps,
                is_wall_clock,
            });
        }
        // Nothing is left of an instance whose windows all lie in those of the whole: the whole says what was set aside.
        let (mut kept, empty): (Vec<Trend>, Vec<Trend>) =
            trends.into_iter().partition(|trend| !trend.windows.is_empty());
        for trend in empty {
            match kept.iter_mut().find(|whole| whole.database.scope.holds(&trend.database.scope)) {
                Some(whole) => whole.set_aside.extend(trend.set_aside),
                None => left_out.extend(trend.set_aside),
            }
        }
        kept.sort_by(|a, b| a.database.name.cmp(&b.database.name));
        Self { trends: kept, left_out }
    }
}

impl Trend {
    /// When the first window begins and the last one ends; absent without a window.
    pub fn span(&self) -> Option<(jiff::Timestamp, jiff::Timestamp)> {
        let from = self.windows.first()?.from;
        Some((from, self.windows.iter().map(|window| window.to).max()?))
    }

    /// Share of the span that windows cover, 0 to 1.
    pub fn covered_share(&self) -> f64 {
        let Some((from, to)) = self.span() else { return 0.0 };
        let span = windows::seconds_between(from, to);
        let uncovered: f64 = windows::holes(&self.windows).map(|gap| gap.seconds()).sum();
        if span > 0.0 { (1.0 - uncovered / span).clamp(0.0, 1.0) } else { 1.0 }
    }

    /// The shortest, the median and the longest window, in seconds.
    pub fn lengths_s(&self) -> Option<[f64; 3]> {
        let mut lengths: Vec<f64> = self.windows.iter().map(|window| window.seconds).collect();
        lengths.sort_by(f64::total_cmp);
        Some([*lengths.first()?, *lengths.get(lengths.len() / 2)?, *lengths.last()?])
    }

    /// Measures that at least one window reports, in the order of [`MEASURES`].
    pub fn measures(&self) -> Vec<Metric> {
        MEASURES.into_iter().filter(|measure| self.windows.iter().any(|w| w.reading(*measure).is_some())).collect()
    }

    /// What is to be said of a measure; absent where no window reports it.
    pub fn summary(&self, measure: Metric) -> Option<Summary> {
        let readings = || {
            let windows = self.windows.iter().enumerate();
            windows.filter_map(|(at, window)| Some((at, window.seconds, window.reading(measure)?)))
        };
        let mut values: Vec<(f64, f64)> = readings().map(|(_, seconds, reading)| (reading.value, seconds)).collect();
        let (peak_at, peak) = readings().fold(None, |most: Option<(usize, f64)>, (at, _, reading)| match most {
            Some((_, value)) if value >= reading.value => most,
            _ => Some((at, reading.value)),
        })?;
        let quantiles = weighted_quantiles(&mut values, &QUANTILES);
        Some(Summary {
            measure,
            windows: values.len(),
            covered_s: values.iter().map(|(_, seconds)| seconds).sum(),
            mean: weighted_mean(readings().map(|(_, _, reading)| reading)),
            quantiles: [0, 1, 2, 3].map(|at| quantiles.get(at).copied().unwrap_or(peak)),
            peak,
            peak_at,
            growth: growth::of(self, measure),
        })
    }

    /// The value that windows of a share `quantile` of the covered time did not exceed.
    pub fn quantile(&self, measure: Metric, quantile: f64) -> Option<f64> {
        let readings = self.windows.iter().filter_map(|window| Some((window.reading(measure)?.value, window.seconds)));
        let mut values: Vec<(f64, f64)> = readings.collect();
        weighted_quantiles(&mut values, &[quantile]).first().copied()
    }
}

/// Mean of readings, each counted by its weight; absent where one of them has none.
fn weighted_mean(readings: impl Iterator<Item = WindowValue>) -> Option<f64> {
    let (mut sum, mut weights) = (0.0, 0.0);
    for reading in readings {
        let weight = reading.weight?;
        sum += reading.value * weight;
        weights += weight;
    }
    (weights > 0.0).then(|| sum / weights)
}

#[cfg(test)]
mod tests;
