//! The day: what each hour of it is usually like, and how one day differs from the next.

use std::collections::BTreeMap;

use super::{Trend, TrendWindow, weighted_quantiles};
use model::record::Metric;

/// Windows longer than this say nothing about an hour.
pub const LONGEST_FOR_HOURS_S: f64 = 7_200.0;
/// Windows longer than this say nothing about a day. Some of a day are an hour or two too long when clocks change.
pub const LONGEST_FOR_DAYS_S: f64 = 26.0 * 3_600.0;
/// An hour of a day is compared with others if at least so many seconds of it are known, or half a window where windows are
/// shorter: a report that ends some seconds late says nothing about the hour after, least of all its peak.
const KNOWN_OF_HOUR_S: f64 = 600.0;

const HOUR_S: i64 = 3_600;
const DAY_S: i64 = 86_400;

/// What is known of an hour of one day, or of a day.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cell {
    /// Seconds of it that windows cover.
    pub covered_s: f64,
    /// Largest value of a window that lies in it, or reaches into it by ten minutes or half of its length.
    pub peak: f64,
    sum: f64,
    weights: f64,
    seconds_sum: f64,
}

impl Cell {
    /// Mean of what is known, each window counted as [`super::WindowValue::weight`] says, or by its time where it has no weight.
    pub fn mean(&self) -> Option<f64> {
        if self.weights > 0.0 {
            return Some(self.sum / self.weights);
        }
        (self.covered_s > 0.0).then(|| self.seconds_sum / self.covered_s)
    }

    /// Of the parts of one place; absent where windows only touch it. The peak is that of windows which do more.
    fn of(parts: &[Part<'_>]) -> Option<Self> {
        let peaks = parts.iter().filter(|part| !part.is_sliver()).map(|part| part.value);
        let mut cell = Self { peak: peaks.reduce(f64::max)?, ..Self::default() };
        for part in parts {
            cell.covered_s += part.covered_s;
            cell.seconds_sum += part.value * part.covered_s;
            if let Some(weight) = part.weight {
                let share = part.covered_s / part.window.seconds;
                cell.sum += part.value * weight * share;
                cell.weights += weight * share;
            }
        }
        Some(cell)
    }
}

/// One hour of the day, over all days.
#[derive(Debug, Clone, PartialEq)]
pub struct HourRow {
    /// 0 to 23.
    pub hour: u8,
    /// Days on which anything is known of it.
    pub days: usize,
    /// Mean over time, or over all reads; absent where no mean of windows is one, as of percentiles.
    pub mean: Option<f64>,
    /// Not exceeded in 95 % of its covered time.
    pub p95: f64,
    /// Largest value of a window that lies in it, or reaches into it by ten minutes or half of its length.
    pub peak: f64,
    /// Beginning of that window.
    pub peak_from: jiff::Timestamp,
}

/// One day.
#[derive(Debug, Clone, PartialEq)]
pub struct DayRow {
    /// Days since 1970-01-01.
    pub day: i64,
    /// Share of its 24 hours that windows cover, 0 to 1.
    pub covered_share: f64,
    /// Mean over time, or over all reads; absent where no mean of windows is one, as of percentiles.
    pub mean: Option<f64>,
    /// Not exceeded in 95 % of its covered time.
    pub p95: f64,
    /// Largest value of a window that lies in it, or reaches into it by ten minutes or half of its length.
    pub peak: f64,
    /// Beginning of that window.
    pub peak_from: jiff::Timestamp,
}

/// A value for a part of a window.
struct Part<'a> {
    window: &'a TrendWindow,
    /// Number of the hour or day since 1970.
    place: i64,
    covered_s: f64,
    value: f64,
    weight: Option<f64>,
}

impl Part<'_> {
    /// Whether so little of the window lies there that it says nothing of that place by itself.
    fn is_sliver(&self) -> bool {
        self.covered_s + 1e-3 < KNOWN_OF_HOUR_S.min(self.window.seconds / 2.0)
    }
}

/// The windows of at most `longest_s`, cut at whole multiples of `length_s`: each part keeps the mean of its window, since
/// nothing is known of how it was spread within.
fn parts(trend: &Trend, measure: Metric, length_s: i64, longest_s: f64) -> impl Iterator<Item = Part<'_>> {
    let short = trend.windows.iter().filter(move |window| window.seconds <= longest_s);
    short.filter_map(move |window| Some((window, window.reading(measure)?))).flat_map(move |(window, reading)| {
        let (from, to) = window.edges_s();
        let first = (from / length_s as f64).floor() as i64;
        let last = (to / length_s as f64).ceil() as i64;
        (first..last).filter_map(move |place| {
            let begin = (place * length_s) as f64;
            let covered_s = to.min(begin + length_s as f64) - from.max(begin);
            let part = Part { window, place, covered_s, value: reading.value, weight: reading.weight };
            (covered_s > 1e-6).then_some(part)
        })
    })
}

impl Trend {
    /// Hours of single days, by hours since 1970: what is known of each. Those that a window only touches are not there.
    pub fn hour_cells(&self, measure: Metric) -> BTreeMap<i64, Cell> {
        let mut by_hour: BTreeMap<i64, Vec<Part<'_>>> = BTreeMap::new();
        for part in parts(self, measure, HOUR_S, LONGEST_FOR_HOURS_S) {
            by_hour.entry(part.place).or_default().push(part);
        }
        by_hour.into_iter().filter_map(|(place, parts)| Some((place, Cell::of(&parts)?))).collect()
    }

    /// The usual day: hours of which anything is known.
    pub fn hours(&self, measure: Metric) -> Vec<HourRow> {
        let mut by_hour: BTreeMap<i64, Vec<Part<'_>>> = BTreeMap::new();
        for part in parts(self, measure, HOUR_S, LONGEST_FOR_HOURS_S) {
            by_hour.entry(part.place.rem_euclid(24)).or_default().push(part);
        }
        let row = |(hour, parts): (i64, Vec<Part<'_>>)| {
            let whole = parts.iter().filter(|part| !part.is_sliver());
            let days: std::collections::BTreeSet<i64> = whole.map(|part| part.place.div_euclid(24)).collect();
            let (mean, p95, peak, peak_from) = of_parts(&parts)?;
            Some(HourRow { hour: u8::try_from(hour).ok()?, days: days.len(), mean, p95, peak, peak_from })
        };
        by_hour.into_iter().filter_map(row).collect()
    }

    /// Day by day: those of which anything is known.
    pub fn days(&self, measure: Metric) -> Vec<DayRow> {
        let mut by_day: BTreeMap<i64, Vec<Part<'_>>> = BTreeMap::new();
        for part in parts(self, measure, DAY_S, LONGEST_FOR_DAYS_S) {
            by_day.entry(part.place).or_default().push(part);
        }
        let row = |(day, parts): (i64, Vec<Part<'_>>)| {
            let covered_s: f64 = parts.iter().map(|part| part.covered_s).sum();
            let (mean, p95, peak, peak_from) = of_parts(&parts)?;
            let covered_share = (covered_s / DAY_S as f64).min(1.0);
            Some(DayRow { day, covered_share, mean, p95, peak, peak_from })
        };
        by_day.into_iter().filter_map(row).collect()
    }

    /// What is compared when growth is looked for: for each day, by its hours, the mean of each of which enough is known. Where
    /// windows are too long for hours, a day has one value, at the hour of its window's middle.
    pub(super) fn days_by_hour(&self, measure: Metric) -> BTreeMap<i64, BTreeMap<i64, f64>> {
        let mut days: BTreeMap<i64, BTreeMap<i64, f64>> = BTreeMap::new();
        let median_s = self.lengths_s().map_or(0.0, |[_, median, _]| median);
        if median_s <= LONGEST_FOR_HOURS_S {
            let wanted_s = KNOWN_OF_HOUR_S.min(median_s / 2.0);
            let cells = self.hour_cells(measure).into_iter().filter(|(_, cell)| cell.covered_s >= wanted_s);
            for (place, value) in cells.filter_map(|(place, cell)| Some((place, cell.mean()?))) {
                days.entry(place.div_euclid(24)).or_default().insert(place.rem_euclid(24), value);
            }
            return days;
        }
        for window in self.windows.iter().filter(|window| window.seconds <= LONGEST_FOR_DAYS_S) {
            let Some(reading) = window.reading(measure) else { continue };
            let (from, to) = window.edges_s();
            let middle = ((from + to) / 2.0 / HOUR_S as f64).floor() as i64;
            days.entry(middle.div_euclid(24)).or_default().entry(middle.rem_euclid(24)).or_insert(reading.value);
        }
        days
    }
}

/// Mean, p95, peak and when the peak's window began.
fn of_parts(parts: &[Part<'_>]) -> Option<(Option<f64>, f64, f64, jiff::Timestamp)> {
    let all = Cell::of(parts)?;
    let mut values: Vec<(f64, f64)> = parts.iter().map(|part| (part.value, part.covered_s)).collect();
    let mut whole = parts.iter().filter(|part| !part.is_sliver());
    let first = whole.next()?;
    let most = whole.fold(first, |most, part| if part.value > most.value { part } else { most });
    let p95 = weighted_quantiles(&mut values, &[0.95]).first().copied()?;
    Some((all.mean().filter(|_| all.weights > 0.0), p95, most.value, most.window.from))
}
