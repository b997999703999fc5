//! Which moment of a production a load is to be like, and what the database did then.
//!
//! All figures are of one and the same time: a load with the reads of one hour and the commits of another never was.

use std::fmt;
use std::str::FromStr;

use super::trend::{LONGEST_FOR_HOURS_S, Trend, TrendWindow, weighted_quantiles};
use model::record::{Like, LikeMoment, Metric, Work, WorkFigure};

/// A moment of a database's windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Moment {
    /// The window with the most requests.
    Peak,
    /// The window whose requests were not exceeded in this share of the time, 0 to 1.
    Quantile(f64),
    /// All windows, each by its length.
    Mean,
    /// The windows of an hour of the day, 0 to 23, of all days.
    Hour(u8),
}

/// A text that names no moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a moment: write `peak`, a percentile such as `p95`, `mean`, or an hour of the day from 0 to \
     23"
)]
pub struct MomentError {
    text: String,
}

/// Why there is no such moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoMoment {
    /// Nothing is known of the requests of any window.
    #[error("none of these runs reports how much was read or written per second")]
    NoRequests,
    /// No window lies in that hour.
    #[error("no window of these runs lies in hour {hour} of the day")]
    NoSuchHour {
        /// The hour.
        hour: u8,
    },
    /// All windows are longer than hours.
    #[error("the windows of these runs are longer than two hours, and say nothing about an hour of the day")]
    TooLong,
}

impl FromStr for Moment {
    type Err = MomentError;

    fn from_str(text: &str) -> Result<Self, MomentError> {
        let word = text.trim().to_ascii_lowercase();
        let percentile = || {
            let percent: f64 = word.strip_prefix('p')?.parse().ok()?;
            (percent > 0.0 && percent < 100.0).then_some(Self::Quantile(percent / 100.0))
        };
        let hour = || word.strip_suffix(":00").unwrap_or(&word).parse().ok().filter(|hour| *hour < 24).map(Self::Hour);
        match word.as_str() {
            "peak" => Ok(Self::Peak),
            "mean" => Ok(Self::Mean),
            _ => percentile().or_else(hour).ok_or_else(|| MomentError { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peak => f.write_str("peak"),
            Self::Quantile(quantile) => write!(f, "p{}", (quantile * 1e6).round() / 1e4),
            Self::Mean => f.write_str("mean"),
            Self::Hour(hour) => write!(f, "{hour:02}"),
        }
    }
}

/// What the database of `trend` did at a moment, for a load to be like.
///
/// # Errors
/// If its windows know no such moment.
pub fn at(trend: &Trend, moment: Moment) -> Result<Like, NoMoment> {
    Ok(like(trend, moment.to_string(), vec![one(trend, moment)?]))
}

/// The same for each hour of a day of which anything is known.
///
/// # Errors
/// If its windows are longer than hours.
pub fn day(trend: &Trend) -> Result<Like, NoMoment> {
    let hours: Vec<LikeMoment> = (0..24).filter_map(|hour| one(trend, Moment::Hour(hour)).ok()).collect();
    if hours.is_empty() { Err(NoMoment::TooLong) } else { Ok(like(trend, "day".to_owned(), hours)) }
}

fn like(trend: &Trend, at: String, moments: Vec<LikeMoment>) -> Like {
    let mut runs: Vec<String> = trend.windows.iter().map(|window| window.run.clone()).collect();
    runs.sort();
    runs.dedup();
    Like { database: trend.database.name.clone(), runs, at, moments, aspects: Vec::new() }
}

fn one(trend: &Trend, moment: Moment) -> Result<LikeMoment, NoMoment> {
    let known: Vec<(&TrendWindow, f64)> =
        trend.windows.iter().filter_map(|window| Some((window, requests(window)?))).collect();
    if known.is_empty() {
        return Err(NoMoment::NoRequests);
    }
    let (work, words) = match moment {
        Moment::Peak => of_window(&known, f64::INFINITY, "the busiest"),
        Moment::Quantile(quantile) => {
            let mut values: Vec<(f64, f64)> = known.iter().map(|(window, rate)| (*rate, window.seconds)).collect();
            let wanted = weighted_quantiles(&mut values, &[quantile]).first().copied().unwrap_or(f64::INFINITY);
            of_window(&known, wanted, &format!("the one at {moment}"))
        }
        Moment::Mean => {
            (mean(known.iter().map(|(window, _)| *window)), "the mean".to_owned() + &of_windows(known.len()))
        }
        Moment::Hour(hour) => {
            let short: Vec<&TrendWindow> = known
                .iter()
                .map(|(window, _)| *window)
                .filter(|window| window.seconds <= LONGEST_FOR_HOURS_S)
                .collect();
            if short.is_empty() {
                return Err(NoMoment::TooLong);
            }
            let within: Vec<&TrendWindow> = short.into_iter().filter(|window| hour_of(window) == Some(hour)).collect();
            if within.is_empty() {
                return Err(NoMoment::NoSuchHour { hour });
            }
            let words = format!("the mean{} around {hour:02}:30", of_windows(within.len()));
            (mean(within.into_iter()), words)
        }
    };
    Ok(LikeMoment { name: moment.to_string(), words, work, asked: Work::new() })
}

/// Requests to storage per second, by which windows are compared.
fn requests(window: &TrendWindow) -> Option<f64> {
    let value = |measure| Some(window.reading(measure)?.value);
    value(Metric::Io).or_else(|| value(Metric::Reads)).or_else(|| value(Metric::Writes))
}

/// The hour of the day in which its middle lies.
fn hour_of(window: &TrendWindow) -> Option<u8> {
    let middle = window.from.checked_add(jiff::SignedDuration::from_millis((window.seconds * 500.0) as i64)).ok()?;
    u8::try_from(middle.to_zoned(jiff::tz::TimeZone::UTC).hour()).ok()
}

/// The window with the least number of requests from `wanted` on, else the one with the most: the first of several.
fn of_window(known: &[(&TrendWindow, f64)], wanted: f64, which: &str) -> (Work, String) {
    let from = |least: f64| known.iter().filter(move |(_, rate)| *rate >= least);
    let chosen = from(wanted).min_by(|a, b| a.1.total_cmp(&b.1));
    let most = || known.iter().reduce(|most, other| if other.1 > most.1 { other } else { most });
    let Some((window, _)) = chosen.or_else(most) else { return (Work::new(), String::new()) };
    let time = |time: jiff::Timestamp| time.strftime("%Y-%m-%d %H:%M").to_string();
    let which = if known.len() == 1 { "its window".to_owned() } else { which.to_owned() + &of_windows(known.len()) };
    (window.work.clone(), format!("{which}, {} to {} ({})", time(window.from), time(window.to), window.run))
}

fn of_windows(count: usize) -> String {
    if count == 1 { " of one window".to_owned() } else { format!(" of {count} windows") }
}

/// Means over time of what every window reports: a mean of some would be of another time.
fn mean<'a>(windows: impl Iterator<Item = &'a TrendWindow> + Clone) -> Work {
    let all: f64 = windows.clone().map(|window| window.seconds).sum();
    let of = |figure: WorkFigure| {
        let parts = windows.clone().map(|window| Some(window.work.get(&figure)? * window.seconds));
        Some((figure, parts.sum::<Option<f64>>()? / all))
    };
    if all > 0.0 { WorkFigure::ALL.into_iter().filter_map(of).collect() } else { Work::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trend::Trends;
    use model::record::Run;
    use model::record::sample::windows::{Hour, QUICK, history, report};

    fn trend(runs: &[Run]) -> Trend {
        Trends::of(&runs.iter().collect::<Vec<_>>()).trends.swap_remove(0)
    }

    #[test]
    fn moments_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Moment>();
        assert_eq!(read("peak"), Ok(Moment::Peak));
        assert_eq!(read("P95"), Ok(Moment::Quantile(0.95)));
        assert_eq!((read("14"), read("09:00")), (Ok(Moment::Hour(14)), Ok(Moment::Hour(9))));
        for text in ["", "24", "p0", "p100", "noon", "-1"] {
            assert!(read(text).unwrap_err().to_string().contains("hour of the day"), "{text}");
        }
    }

    #[test]
    fn all_figures_of_a_peak_are_of_one_window() {
        let hour = |at, reads_per_s, writes_per_s| {
            report(Hour { at, minutes: 60, reads_per_s, writes_per_s, within_ms: QUICK })
        };
        let trend = trend(&[hour(1, 6_000, 100), hour(2, 1_000, 2_000), hour(3, 500, 500)]);
        let peak = at(&trend, Moment::Peak).unwrap();
        let [moment] = &peak.moments[..] else { panic!("{peak:?}") };
        assert_eq!((moment.work[&WorkFigure::Reads], moment.work[&WorkFigure::Writes]), (6_000.0, 100.0));
        assert_eq!(
            moment.words,
            "the busiest of 3 windows, 2026-11-02 01:00 to 2026-11-02 02:00 (20261102-010000-awr)"
        );
        let middle = at(&trend, Moment::Quantile(0.5)).unwrap();
        assert_eq!(middle.moments[0].work[&WorkFigure::Writes], 2_000.0);
        let mean = at(&trend, Moment::Mean).unwrap();
        assert_eq!((mean.moments[0].work[&WorkFigure::Reads], mean.runs.len()), (2_500.0, 3));
    }

    #[test]
    fn a_day_has_the_hours_that_are_known() {
        let runs = history();
        let trend = trend(&runs);
        let day = day(&trend).unwrap();
        assert_eq!(day.moments.len(), 24);
        // Quiet nights, and 100 reads/s more each day; the batch was at 02:00 of the sixth.
        let reads = |hour: usize| day.moments[hour].work[&WorkFigure::Reads];
        assert_eq!((reads(4), reads(10)), (200.0 + 450.0, 3_000.0 + 450.0 + 50.0 / 3.0));
        let long = report(Hour { at: 0, minutes: 1_440, reads_per_s: 10, writes_per_s: 1, within_ms: QUICK });
        let long = super::tests::trend(&[long]);
        assert_eq!(super::day(&long), Err(NoMoment::TooLong));
        assert_eq!(at(&long, Moment::Hour(3)), Err(NoMoment::TooLong));
        let one = super::tests::trend(&runs[..3]);
        assert_eq!(at(&one, Moment::Hour(9)), Err(NoMoment::NoSuchHour { hour: 9 }));
        assert_eq!(at(&one, Moment::Hour(2)).unwrap().at, "02");
    }
}
