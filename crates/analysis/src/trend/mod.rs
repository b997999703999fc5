//! Many windows of one database along calendar time: peaks, percentiles over time, the day's profile and growth.
//!
//! Times are wall-clock times as the runs report them. Of imported reports in a zone that is not reported they are written as if
//! they were UTC, so that hours of the day are those of the database's own clock.

mod database;
mod profile;
mod windows;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

pub use database::{Database, Scope};
pub use profile::{Cell, DayRow, HourRow, LONGEST_FOR_DAYS_S, LONGEST_FOR_HOURS_S};
pub use windows::{Gap, SetAside, TrendWindow, Why};

use crate::levels::median_of;
use crate::{Figures, SINGLE_BLOCK_READ, is_on_server, operations_are_requests, wait};
use model::config::net::NetOptions;
use model::record::{Clock, Histogram, Load, Metric, Run, Step, WaitStats, Work, WorkFigure};

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
            growth: growth_of(self, measure),
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

/// For each of `quantiles` (0 to 1, in any order) the least value such that the values up to it have at least that share of
/// all weight: what was not exceeded in that share of the covered time. `values` are (value, weight) and are sorted. Nothing
/// comes back without a weight above zero.
pub fn weighted_quantiles(values: &mut [(f64, f64)], quantiles: &[f64]) -> Vec<f64> {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: f64 = values.iter().map(|(_, weight)| weight).sum();
    if !(all > 0.0 && all.is_finite()) {
        return Vec::new();
    }
    let reached = |quantile: &f64| {
        // The sum is built in the same order each time, so that only rounding is forgiven, and much less than any window.
        let wanted = all * quantile * (1.0 - 1e-12);
        let mut sum = 0.0;
        let found = values.iter().find(|(_, weight)| {
            sum += weight;
            sum >= wanted && *weight > 0.0
        });
        found.or(values.last()).map_or(0.0, |(value, _)| *value)
    };
    quantiles.iter().map(reached).collect()
}

// What a database did in one window, as far as a load can be made like it.

/// Bytes between an Oracle instance and its clients.
const CLIENT_BYTES: [&str; 2] = ["bytes sent via SQL*Net to client", "bytes received via SQL*Net from client"];

/// The work of a step. What it does not report is absent.
pub fn work(run: &Run, step: &Step) -> Work {
    let figures = Figures(step);
    let seconds = figures.seconds();
    let per_s = |count: Option<f64>| count.filter(|_| seconds > 0.0).map(|count| count / seconds);
    let counters = &step.counters;
    let reads = figures.value(Metric::Reads);
    let of_kind = |name: &str| step.operations.iter().find(|kind| kind.kind == name).map(|kind| kind.count as f64);
    // Scans of our own engine read past its cache; on raw storage large reads are operations of their own.
    let large = per_s(figures.reported(Metric::MultiBlockReads))
        .or_else(|| per_s(counters.direct_reads.map(|count| count as f64)))
        .or_else(|| per_s(of_kind("large read")))
        .map(|large| reads.map_or(large, |reads| large.min(reads)));
    // Each operation that sends redo is one write of it.
    let redo = redo_sent(run);
    let sent = figures.operations_per_s().filter(|_| redo.is_some());
    let of = |figure| match figure {
        WorkFigure::LogicalReads => figures.value(Metric::LogicalReads),
        WorkFigure::Reads => reads,
        WorkFigure::LargeReads => large,
        WorkFigure::ReadBytes => figures.value(Metric::ReadMegabytes).map(|megabytes| megabytes * 1e6),
        WorkFigure::Writes => figures.value(Metric::Writes),
        WorkFigure::WriteBytes => figures.value(Metric::WriteMegabytes).map(|megabytes| megabytes * 1e6),
        WorkFigure::Commits => figures.commits_per_s(),
        WorkFigure::RedoBytes => match figures.value(Metric::RedoMegabytes) {
            Some(megabytes) => Some(megabytes * 1e6),
            None => sent.zip(redo).map(|(per_s, options)| per_s * options.sizes_in_force().mean()),
        },
        WorkFigure::RedoWrites => per_s(counters.redo_writes.map(|count| count as f64)).or(sent),
        WorkFigure::ActiveSessions => measured(Metric::ActiveSessions, run, step),
        WorkFigure::ClientBytes => {
            per_s(CLIENT_BYTES.into_iter().map(|name| figures.own(name).map(|bytes| bytes as f64)).sum())
        }
    };
    let known = |figure: WorkFigure| Some((figure, of(figure).filter(|value| value.is_finite() && *value >= 0.0)?));
    WorkFigure::ALL.into_iter().filter_map(known).collect()
}

/// The load of a run that sends redo over a network.
fn redo_sent(run: &Run) -> Option<&NetOptions> {
    match &run.load {
        Load::Network(options) => Some(options).filter(|options| options.pattern.is_redo()),
        _ => None,
    }
}

/// Reads that take longer are what [`Metric::SlowReads`] counts.
const SLOW_NS: u64 = 10_000_000;

/// The metrics that are followed over time, in the order in which they are reported.
pub const MEASURES: [Metric; 13] = [
    Metric::Io,
    Metric::Reads,
    Metric::Writes,
    Metric::Megabytes,
    Metric::ReadMegabytes,
    Metric::WriteMegabytes,
    Metric::RedoMegabytes,
    Metric::Commits,
    Metric::ReadTime,
    Metric::ReadTimeP99,
    Metric::SlowReads,
    Metric::HostBusy,
    Metric::ActiveSessions,
];

/// Rates of what storage and its log have to do: so many of [`MEASURES`], which begin with them.
const OF_STORAGE: usize = 8;

/// A value of one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowValue {
    /// The value, in the unit of its metric.
    pub value: f64,
    /// What it counts for in a mean: the seconds of its window, or the number of reads. Absent where a mean of values is
    /// nothing, as of percentiles.
    pub weight: Option<f64>,
}

/// The value of one of [`MEASURES`] in one step, where that is known.
pub fn measured(metric: Metric, run: &Run, step: &Step) -> Option<f64> {
    read(metric, run, step).map(|reading| reading.value)
}

/// What a step reports on one of [`MEASURES`]. Unknown is never taken for zero: a sum is known where both its parts are.
fn read(metric: Metric, run: &Run, step: &Step) -> Option<WindowValue> {
    let figures = Figures(step);
    let distribution = || single_reads(run, step).filter(|reads| reads.is_distribution());
    let over_time = |value: Option<f64>| value.map(|value| WindowValue { value, weight: Some(figures.seconds()) });
    match metric {
        Metric::Io if is_on_server(step) => over_time(figures.physical_io_per_s()),
        Metric::Io => over_time(figures.value(Metric::Reads).zip(figures.value(Metric::Writes)).map(|(r, w)| r + w)),
        Metric::ReadTime => {
            let reads = single_reads(run, step)?;
            Some(WindowValue { value: reads.mean_ns()? / 1e6, weight: Some(reads.count() as f64) })
        }
        Metric::ReadTimeP99 => {
            Some(WindowValue { value: distribution()?.quantile_ns(0.99)? as f64 / 1e6, weight: None })
        }
        Metric::SlowReads => {
            let reads = distribution()?;
            let (_, perhaps_faster) = reads.below_ns(SLOW_NS);
            let all = reads.count() as f64;
            Some(WindowValue { value: 100.0 * (1.0 - perhaps_faster as f64 / all), weight: Some(all) })
        }
        Metric::HostBusy => over_time(host_busy_percent(step)),
        Metric::ActiveSessions => over_time(active_sessions(&figures)),
        other => over_time(figures.value(other)),
    }
    .filter(|reading| reading.value.is_finite())
}

/// Reads of one block, as the database timed them; of raw storage the reads as they were sent.
fn single_reads<'a>(run: &Run, step: &'a Step) -> Option<Cow<'a, Histogram>> {
    if operations_are_requests(run) {
        let read = step.operations.iter().find(|operation| operation.kind == "read")?;
        return Some(Cow::Borrowed(&read.service)).filter(|times| times.count() > 0);
    }
    wait(step, SINGLE_BLOCK_READ).map(WaitStats::times)
}

/// Busy is what code of users and of the system used: a processor that waits for storage is not busy.
fn host_busy_percent(step: &Step) -> Option<f64> {
    if let Some(cpu) = step.host_cpu {
        let busy = cpu.busy_ns() as f64;
        let all = busy + cpu.free_ns()? as f64 + cpu.steal_ns.unwrap_or(0) as f64;
        return (all > 0.0).then(|| 100.0 * busy / all);
    }
    busy_of_instances(step).or_else(|| reported_busy(step)).filter(|busy| (0.0..=100.5).contains(busy))
}

/// From the processor time of every instance's machine.
fn busy_of_instances(step: &Step) -> Option<f64> {
    let (mut busy, mut all) = (0.0, 0.0);
    for instance in &step.instances {
        let of = |name: &str| instance.own.get(name).map(|ns| *ns as f64);
        let (used, idle) = of("BUSY_TIME_ns").zip(of("IDLE_TIME_ns"))?;
        (busy, all) = (busy + used, all + used + idle);
    }
    (all > 0.0).then(|| 100.0 * busy / all)
}

/// From shares in percent that other programs report of the whole, or of the only machine that they name: of those of a cluster it
/// is not known how many processors each of them has.
fn reported_busy(step: &Step) -> Option<f64> {
    let parts = |metric| step.reported.iter().filter_map(move |figure| figure.part_of(metric));
    let all = [Metric::HostUser, Metric::HostSystem, Metric::HostIdle, Metric::HostBusy];
    let machines: BTreeSet<Option<&str>> = all.into_iter().flat_map(parts).map(|(machine, _)| machine).collect();
    let machine = *machines.first()?;
    if machine.is_some() && machines.len() > 1 {
        return None;
    }
    let shares = |metric| parts(metric).filter(|(of, _)| *of == machine).map(|(_, value)| value);
    let share = |metric| shares(metric).next();
    // Of both there may be parts: nice code, interrupts.
    let sum = |metric| shares(metric).reduce(|sum, more| sum + more);
    let used = || Some(sum(Metric::HostUser)? + sum(Metric::HostSystem)?);
    let waited = || share(Metric::HostIowait).unwrap_or(0.0) + share(Metric::HostSteal).unwrap_or(0.0);
    used().or_else(|| share(Metric::HostIdle).map(|idle| 100.0 - idle - waited())).or_else(|| share(Metric::HostBusy))
}

/// From the database's time or sessions as a report has them, or from what the load itself timed.
fn active_sessions(figures: &Figures<'_>) -> Option<f64> {
    let from_time = figures.reported(Metric::DbTime).map(|seconds| seconds / figures.seconds());
    from_time
        .or_else(|| figures.reported(Metric::ActiveSessions))
        .or_else(|| figures.busy_sessions())
        .filter(|sessions| *sessions >= 0.0)
}

// How a measure grows from day to day.
//
// A day's load has a shape, and reports do not cover every hour of every day, so that the mean of all windows moves when
// only other hours were reported. Days are compared by the hours that both have, and all pairs of days have one vote each
// (Theil 1950, Sen 1968): a single wild day does not decide.

/// Fewest days from which a slope is reported, and from which its interval is: with four days no order of them is rarer than 1
/// in 12, so that nothing can be said with 95 %.
const MIN_DAYS: usize = 3;
const MIN_DAYS_FOR_INTERVAL: usize = 5;
/// Days from the first to the last from which on a day is compared with the same day of other weeks only.
const WEEKS_APART: i64 = 28;
/// Quantile of the normal distribution for a two-sided interval of 95 %.
const Z: f64 = 1.959_964;

/// A straight line through days.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Change of the measure in a day.
    pub per_day: f64,
    /// Interval that holds the change with 95 %; absent with fewer than five days, or too few that can be compared.
    pub interval: Option<(f64, f64)>,
    /// Days that have an hour in common with another.
    pub days: usize,
    /// Which days were compared with which.
    pub like: LikeDays,
}

/// Which days are compared with which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LikeDays {
    /// Each with each.
    All,
    /// Each with the same day of other weeks.
    OfWeek,
}

impl Growth {
    /// Whether the interval excludes that nothing grew and nothing shrank.
    pub fn is_shown(&self) -> bool {
        self.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// Absent where fewer than three days have an hour in common.
fn growth_of(trend: &Trend, measure: Metric) -> Option<Growth> {
    of_days(&trend.days_by_hour(measure))
}

/// Of days, each with the values of its hours.
fn of_days(days: &BTreeMap<i64, BTreeMap<i64, f64>>) -> Option<Growth> {
    let span = days.last_key_value()?.0 - days.first_key_value()?.0;
    if span >= WEEKS_APART
        && let Some(growth) = along(days, LikeDays::OfWeek)
        && growth.interval.is_some()
    {
        return Some(growth);
    }
    along(days, LikeDays::All)
}

fn along(days: &BTreeMap<i64, BTreeMap<i64, f64>>, like: LikeDays) -> Option<Growth> {
    let class = |day: i64| if like == LikeDays::OfWeek { day.rem_euclid(7) } else { 0 };
    let mut slopes = Vec::new();
    let mut compared: BTreeMap<i64, i64> = BTreeMap::new();
    let list: Vec<(i64, Hours)> = days.iter().map(|(day, hours)| (*day, by_place(hours))).collect();
    for (at, (earlier, before)) in list.iter().enumerate() {
        for (later, after) in list.iter().skip(at + 1).filter(|(later, _)| class(*later) == class(*earlier)) {
            let Some(change) = mean_change(before, after) else { continue };
            slopes.push(change / (*later - *earlier) as f64);
            compared.extend([*earlier, *later].map(|day| (day, class(day))));
        }
    }
    let count = compared.len();
    if count < MIN_DAYS {
        return None;
    }
    slopes.sort_by(f64::total_cmp);
    let mut sizes: BTreeMap<i64, f64> = BTreeMap::new();
    compared.values().for_each(|class| *sizes.entry(*class).or_default() += 1.0);
    let variance: f64 = sizes.values().map(|n| n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sum();
    let interval = (count >= MIN_DAYS_FOR_INTERVAL).then(|| interval(&slopes, variance)).flatten();
    Some(Growth { per_day: median_of(&slopes)?, interval, days: count, like })
}

/// The hours of a day, in their places: all pairs of days of years are compared, so that no hour may be looked for.
type Hours = [Option<f64>; 24];

fn by_place(hours: &BTreeMap<i64, f64>) -> Hours {
    let mut places = [None; 24];
    for (hour, value) in hours {
        if let Some(place) = usize::try_from(*hour).ok().and_then(|hour| places.get_mut(hour)) {
            *place = Some(*value);
        }
    }
    places
}

/// Mean of what each hour that both days have changed by.
fn mean_change(before: &Hours, after: &Hours) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for (earlier, later) in before.iter().zip(after) {
        if let (Some(earlier), Some(later)) = (earlier, later) {
            sum += later - earlier;
            count += 1.0;
        }
    }
    (count > 0.0).then(|| sum / count)
}

/// Sen's interval: of N slopes in rising order those at ranks (N - C)/2 and (N + C)/2 + 1, with C = z sqrt(Var S) and Var S
/// that of Kendall's S, summed over what is compared apart (Hirsch, Slack and Smith 1982; Gilbert 1987). Ranks are rounded
/// outwards; absent if one lies beyond the slopes.
fn interval(slopes: &[f64], variance: f64) -> Option<(f64, f64)> {
    let (count, reach) = (slopes.len() as f64, Z * variance.sqrt());
    let low = ((count - reach) / 2.0).floor();
    let high = ((count + reach) / 2.0 + 1.0).ceil();
    if low < 1.0 || high > count {
        return None;
    }
    Some((*slopes.get(low as usize - 1)?, *slopes.get(high as usize - 1)?))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod quantile_tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_long_window_counts_for_as_long_as_it_is() {
        let mut values = vec![(10.0, 1.0), (1.0, 9.0)];
        assert_eq!(weighted_quantiles(&mut values, &[0.5, 0.9, 0.91, 1.0]), [1.0, 1.0, 10.0, 10.0]);
        assert_eq!(weighted_quantiles(&mut [], &[0.5]), Vec::<f64>::new());
        assert_eq!(weighted_quantiles(&mut [(1.0, 0.0)], &[0.5]), Vec::<f64>::new());
    }

    proptest! {
        /// Each value written down once for every second that it held, sorted, and counted through.
        #[test]
        fn it_is_the_percentile_of_all_seconds(
            values in prop::collection::vec((0_u32..50, 1_u32..40), 1..40),
            percent in 1_u32..=100,
        ) {
            let mut seconds: Vec<u32> =
                values.iter().flat_map(|(value, seconds)| std::iter::repeat_n(*value, *seconds as usize)).collect();
            seconds.sort_unstable();
            let rank = (seconds.len() * percent as usize).div_ceil(100).max(1);
            let mut weighted: Vec<(f64, f64)> =
                values.iter().map(|(value, seconds)| (f64::from(*value), f64::from(*seconds))).collect();
            let found = weighted_quantiles(&mut weighted, &[f64::from(percent) / 100.0]);
            prop_assert_eq!(found, vec![f64::from(seconds[rank - 1])]);
        }
    }
}

#[cfg(test)]
mod growth_tests {
    use super::*;
    use crate::chance::Chance;
    use proptest::prelude::*;

    fn one_a_day(values: &[f64]) -> BTreeMap<i64, BTreeMap<i64, f64>> {
        values.iter().zip(20_000..).map(|(value, day)| (day, BTreeMap::from([(9, *value)]))).collect()
    }

    /// The median by its definition: no more slopes on either side than on the other.
    fn is_median(middle: f64, slopes: &[f64]) -> bool {
        let half = slopes.len() as f64 / 2.0;
        let near = 1e-9 * (1.0 + middle.abs());
        slopes.iter().filter(|slope| **slope < middle - near).count() as f64 <= half
            && slopes.iter().filter(|slope| **slope > middle + near).count() as f64 <= half
    }

    proptest! {
        #[test]
        fn one_value_a_day_gives_the_median_of_all_slopes_between_two_days(
            values in prop::collection::vec(-1e3_f64..1e3, 3..25),
        ) {
            let growth = of_days(&one_a_day(&values)).unwrap();
            let mut slopes = Vec::new();
            for later in 1..values.len() {
                for earlier in 0..later {
                    slopes.push((values[later] - values[earlier]) / (later - earlier) as f64);
                }
            }
            prop_assert!(is_median(growth.per_day, &slopes));
            prop_assert_eq!(growth.days, values.len());
            if let Some((low, high)) = growth.interval {
                prop_assert!(low <= growth.per_day && growth.per_day <= high);
            }
        }

        /// Hours missing at random and a strong daily shape: the planted growth comes out exactly.
        #[test]
        fn the_shape_of_the_day_and_missing_hours_do_not_bend_the_slope(
            missing in prop::collection::vec(any::<bool>(), 10 * 24),
            per_day in -50.0_f64..50.0,
        ) {
            let mut days: BTreeMap<i64, BTreeMap<i64, f64>> = BTreeMap::new();
            for (at, _) in missing.iter().enumerate().filter(|(_, missing)| !**missing) {
                let (day, hour) = (at as i64 / 24, at as i64 % 24);
                let shape = 1_000.0 * (hour - 12).pow(2) as f64;
                days.entry(day).or_default().insert(hour, shape + per_day * day as f64);
            }
            if let Some(growth) = of_days(&days) {
                prop_assert!((growth.per_day - per_day).abs() < 1e-6, "{growth:?} and not {per_day}");
            }
        }
    }

    #[test]
    fn too_few_days_have_no_slope_and_a_few_more_no_interval() {
        assert_eq!(of_days(&one_a_day(&[1.0, 2.0])), None);
        let four = of_days(&one_a_day(&[1.0, 2.0, 3.0, 4.0])).unwrap();
        assert_eq!((four.per_day, four.interval, four.is_shown()), (1.0, None, false));
        let mut apart = one_a_day(&[1.0; 5]);
        apart.values_mut().enumerate().for_each(|(hour, day)| *day = BTreeMap::from([(hour as i64, 1.0)]));
        assert_eq!(of_days(&apart), None, "no two days share an hour");
    }

    /// The interval is one of at least 95 %: of series that do not grow it misses zero in about one of twenty, and never in
    /// many more.
    #[test]
    fn what_does_not_grow_is_rarely_said_to_grow() {
        for length in [5, 6, 8, 12, 20, 40] {
            let shown = (0..400).filter(|seed| {
                let mut chance = Chance::new(*seed);
                let values: Vec<f64> = (0..length).map(|_| chance.normal()).collect();
                of_days(&one_a_day(&values)).unwrap().is_shown()
            });
            let share = shown.count() as f64 / 400.0;
            assert!(share < 0.08, "{share} of {length} days");
        }
    }

    #[test]
    fn after_four_weeks_mondays_are_compared_with_mondays() {
        // Weekends are quiet; the series begins on one and ends in a week. Day 0 of 1970 was a Thursday.
        let load = |day: i64| if matches!((day + 3).rem_euclid(7), 5 | 6) { 10.0 } else { 500.0 };
        let days: BTreeMap<i64, BTreeMap<i64, f64>> =
            (20_000..20_040).map(|day| (day, BTreeMap::from([(9, load(day) + 2.0 * day as f64)]))).collect();
        let growth = of_days(&days).unwrap();
        assert_eq!((growth.like, growth.per_day), (LikeDays::OfWeek, 2.0));
        assert!(growth.is_shown());
    }
}
