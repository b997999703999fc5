//! How a measure grows from day to day.
//!
//! A day's load has a shape, and reports do not cover every hour of every day, so that the mean of all windows moves when
//! only other hours were reported. Days are compared by the hours that both have, and all pairs of days have one vote each
//! (Theil 1950, Sen 1968): a single wild day does not decide.

use std::collections::BTreeMap;

use super::Trend;
use model::record::Metric;

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
pub(super) fn of(trend: &Trend, measure: Metric) -> Option<Growth> {
    of_days(&trend.days_by_hour(measure))
}

/// Of days, each with the values of its hours.
pub(super) fn of_days(days: &BTreeMap<i64, BTreeMap<i64, f64>>) -> Option<Growth> {
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
    Some(Growth { per_day: median(&slopes)?, interval, days: count, like })
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

fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get((sorted.len() - 1) / 2)?;
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
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
