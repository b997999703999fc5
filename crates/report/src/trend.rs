//! Many windows of a database along time, in text and in files for spreadsheets.

use std::io::{self, Write};

use super::grid::Grid;
use super::paper::{Paper, Terminal};
use super::text::{Detail, NARROWEST};
use super::words::UNKNOWN;
use crate::comma::{line, optional, quoted};
use analysis::trend::{
    Growth, LONGEST_FOR_HOURS_S, LikeDays, MEASURES, QUANTILES, SetAside, Summary, Trend, TrendWindow, Trends, Why,
};
use model::record::{Metric, MetricUnit};
use model::units::{group_thousands, percent};

const LEGEND: &str = "Percentiles are over time: windows of that share of the covered time had no more, each counting for as long as \
                      it is. Every value is the mean of a whole window: within it the load was higher and lower. MB: 1,000,000 bytes. \
                      `?`: not known.";

/// Gaps and windows set aside that a brief report lists.
const MAX_LISTED: usize = 5;
/// Characters of the longest bar.
const BAR: usize = 24;

/// Writes the trends for a terminal of `width` columns.
///
/// # Errors
/// If `out` fails.
pub fn trend(out: &mut impl Write, trends: &Trends, detail: Detail, width: usize) -> io::Result<()> {
    let mut paper = Terminal { out, width: width.max(NARROWEST) };
    for (number, trend) in trends.trends.iter().enumerate() {
        if number > 0 {
            paper.gap()?;
        }
        paper.remark(&headline(trend))?;
        paper.remark(&grounds(trend))?;
        write(&mut paper, trend, detail, true)?;
    }
    left_out(&mut paper, trends, detail)?;
    if trends.trends.is_empty() {
        return Ok(());
    }
    paper.gap()?;
    paper.remark(LEGEND)
}

/// What there is, in a sentence: the peak of what storage had to do, and when it was.
pub(super) fn headline(trend: &Trend) -> String {
    let name = &trend.database.name;
    let main = [Metric::Io, Metric::Reads, Metric::Megabytes, Metric::Commits].into_iter();
    let Some(summary) = main.filter_map(|measure| trend.summary(measure)).next() else {
        return format!("`{name}`: no window reports a rate.");
    };
    let when = trend.windows.get(summary.peak_at).map_or_else(String::new, |window| format!(" from {}", when(window)));
    let [_, _, p95, _] = summary.quantiles;
    let growth = match summary.growth {
        Some(growth) if growth.is_shown() => {
            format!("; {} per 30 days", signed(summary.measure, growth.per_day * 30.0))
        }
        _ => String::new(),
    };
    format!(
        "`{name}`: busiest{when} with {} {} on average, {} or less for 95 % of the covered time{growth}.",
        value(summary.measure, summary.peak),
        summary.measure.heading(),
        value(summary.measure, p95)
    )
}

/// What the figures rest on.
pub(super) fn grounds(trend: &Trend) -> String {
    let (Some((from, to)), Some([least, median, most])) = (trend.span(), trend.lengths_s()) else {
        return String::new();
    };
    let (count, cover) = match trend.windows.len() {
        1 => ("1 window".to_owned(), "covers"),
        windows => (format!("{} windows", group_thousands(windows as f64)), "cover"),
    };
    let lengths = if most - least < 60.0 {
        format!("of {}", length(median))
    } else {
        format!("of {} to {} (half of them {} or less)", length(least), length(most), length(median))
    };
    let gaps = match trend.gaps.len() {
        0 => "without a gap".to_owned(),
        1 => "with one gap".to_owned(),
        gaps => format!("with {gaps} gaps"),
    };
    let clock = if trend.is_wall_clock {
        "Times are those of the database's own clock, in a zone that is not reported."
    } else {
        "Times are in UTC."
    };
    let nameless = if trend.database.scope.identity.is_empty() {
        " No run says what it is of: figures of several may stand here as those of one."
    } else {
        ""
    };
    format!(
        "{count} {lengths} from {} to {}, which {cover} {} % of that time, {gaps}. {clock}{nameless}",
        minute(from),
        minute(to),
        percent(trend.covered_share())
    )
}

/// All tables of one database.
pub(super) fn write(paper: &mut dyn Paper, trend: &Trend, detail: Detail, has_bars: bool) -> io::Result<()> {
    let summaries: Vec<Summary> = trend.measures().into_iter().filter_map(|measure| trend.summary(measure)).collect();
    paper.table("Over time", &over_time(trend, &summaries))?;
    few_windows(paper, &summaries)?;
    growth_words(paper, &summaries)?;
    let main = main_measures(trend, detail);
    let hours = by_hour(trend, &main, has_bars);
    if hours.is_empty() && !main.is_empty() {
        paper.aside(&format!(
            "No window is of {} or less, so nothing is reported on hours of the day.",
            length(LONGEST_FOR_HOURS_S)
        ))?;
    }
    paper.table("By hour of day: mean, p95, peak", &hours)?;
    paper.table("By day: mean, peak", &by_day(trend, &main, has_bars))?;
    aside(paper, trend, detail)
}

/// What the tables by hour and day are of: what storage is sized by, or everything.
fn main_measures(trend: &Trend, detail: Detail) -> Vec<Metric> {
    let measures = trend.measures();
    if detail == Detail::Full {
        return measures;
    }
    let first_of = |choices: &[Metric]| choices.iter().copied().find(|measure| measures.contains(measure));
    let choices: [&[Metric]; 4] = [
        &[Metric::Io, Metric::Reads, Metric::Writes],
        &[Metric::Megabytes, Metric::ReadMegabytes, Metric::WriteMegabytes],
        &[Metric::RedoMegabytes, Metric::Commits],
        &[Metric::ReadTime, Metric::ReadTimeP99],
    ];
    choices.into_iter().filter_map(first_of).collect()
}

fn over_time(trend: &Trend, summaries: &[Summary]) -> Grid {
    let header = ["", "mean", "p50", "p90", "p95", "p99", "peak", "peak from", "per 30 days", "(95 % interval)"];
    let mut grid = Grid::new(1, header);
    for summary in summaries {
        let measure = summary.measure;
        let mut row = vec![measure.heading().to_owned(), shown(measure, summary.mean)];
        row.extend(summary.quantiles.map(|number| value(measure, number)));
        row.push(value(measure, summary.peak));
        row.push(trend.windows.get(summary.peak_at).map_or_else(String::new, |window| minute(window.from)));
        row.extend(growth(measure, summary.growth));
        grid.push(row);
    }
    grid
}

/// Growth in 30 days, and its interval: what three days changed by, ten times over, is no growth of a month.
fn growth(measure: Metric, growth: Option<Growth>) -> [String; 2] {
    let Some((growth, (low, high))) = growth.and_then(|growth| Some((growth, growth.interval?))) else {
        return [UNKNOWN.to_owned(), UNKNOWN.to_owned()];
    };
    let month = |per_day: f64| signed(measure, per_day * 30.0);
    [month(growth.per_day), format!("{} to {}", month(low), month(high))]
}

/// Which percentiles are no more than the peak, since there are too few windows for any of them to lie above.
fn few_windows(paper: &mut dyn Paper, summaries: &[Summary]) -> io::Result<()> {
    let Some(windows) = summaries.iter().map(|summary| summary.windows).max() else { return Ok(()) };
    let is_peak = |quantile: &&f64| (1.0 - **quantile) * (windows as f64) < 1.0 - 1e-9;
    let names: Vec<String> =
        QUANTILES[1..].iter().filter(is_peak).map(|it| format!("p{}", (it * 100.0).round())).collect();
    let Some((last, others)) = names.split_last() else { return Ok(()) };
    let names = if others.is_empty() { last.clone() } else { format!("{} and {last}", others.join(", ")) };
    let count = if windows == 1 { "1 window is".to_owned() } else { format!("{windows} windows are") };
    paper.aside(&format!("{count} too few for {names}, which stand for the peak here."))
}

/// What the columns of growth rest on.
fn growth_words(paper: &mut dyn Paper, summaries: &[Summary]) -> io::Result<()> {
    let grown = || summaries.iter().filter_map(|summary| summary.growth);
    let Some(growth) = grown().find(|growth| growth.interval.is_some()) else {
        return paper.aside(&match grown().map(|growth| growth.days).max() {
            Some(days) => format!(
                "Growth not estimated: {days} days that have an hour in common are too few to tell it from chance."
            ),
            None => "Growth not estimated: needs at least five days that have an hour in common.".to_owned(),
        });
    };
    let like = match growth.like {
        LikeDays::All => "each day with each other, by the hours that both have",
        LikeDays::OfWeek => "each day with the same day of other weeks, by the hours that both have",
    };
    let doubt = match growth.like {
        LikeDays::All => " Less than four weeks cannot tell growth from a week's own shape.",
        LikeDays::OfWeek => "",
    };
    paper.aside(&format!("Growth compares {} days, {like}: the median slope.{doubt}", growth.days))
}

fn by_hour(trend: &Trend, measures: &[Metric], has_bars: bool) -> Grid {
    let rows: Vec<_> = measures.iter().map(|measure| (*measure, trend.hours(*measure))).collect();
    let columns = |measure: &Metric| [format!("{} mean", measure.heading()), "p95".to_owned(), "peak".to_owned()];
    let mut header = vec!["hour".to_owned(), "days".to_owned()];
    header.extend(bar_heading(measures, has_bars));
    header.extend(measures.iter().flat_map(columns));
    let mut grid = Grid::new(1, header);
    let most = rows.first().map_or(0.0, |(_, hours)| hours.iter().filter_map(|hour| hour.mean).fold(0.0, f64::max));
    for hour in 0..24_u8 {
        let of_hour = |(measure, hours): &(Metric, Vec<analysis::trend::HourRow>)| {
            (*measure, hours.iter().find(|row| row.hour == hour).cloned())
        };
        let cells: Vec<_> = rows.iter().map(of_hour).collect();
        let Some(days) = cells.iter().filter_map(|(_, row)| Some(row.as_ref()?.days)).max() else { continue };
        let mut row = vec![format!("{hour:02}:00"), days.to_string()];
        if has_bars && !measures.is_empty() {
            row.push(bar(cells.first().and_then(|(_, row)| row.as_ref()?.mean), most));
        }
        for (measure, cell) in &cells {
            let values = cell.as_ref().map(|row| [row.mean, Some(row.p95), Some(row.peak)]);
            row.extend(values.unwrap_or_default().map(|number| shown(*measure, number)));
        }
        grid.push(row);
    }
    grid
}

fn by_day(trend: &Trend, measures: &[Metric], has_bars: bool) -> Grid {
    let rows: Vec<_> = measures.iter().map(|measure| (*measure, trend.days(*measure))).collect();
    let mut header = vec!["day".to_owned(), "covered %".to_owned()];
    header.extend(bar_heading(measures, has_bars));
    header.extend(measures.iter().flat_map(|measure| [format!("{} mean", measure.heading()), "peak".to_owned()]));
    let mut grid = Grid::new(1, header);
    let most = rows.first().map_or(0.0, |(_, days)| days.iter().filter_map(|day| day.mean).fold(0.0, f64::max));
    let days: std::collections::BTreeSet<i64> =
        rows.iter().flat_map(|(_, days)| days.iter().map(|row| row.day)).collect();
    for day in days {
        let of_day = |(measure, days): &(Metric, Vec<analysis::trend::DayRow>)| {
            (*measure, days.iter().find(|row| row.day == day).cloned())
        };
        let cells: Vec<_> = rows.iter().map(of_day).collect();
        let covered = cells.iter().filter_map(|(_, row)| Some(row.as_ref()?.covered_share)).fold(0.0, f64::max);
        let mut row = vec![date(day), percent(covered)];
        if has_bars && !measures.is_empty() {
            row.push(bar(cells.first().and_then(|(_, row)| row.as_ref()?.mean), most));
        }
        for (measure, cell) in &cells {
            let values = cell.as_ref().map(|row| [row.mean, Some(row.peak)]);
            row.extend(values.unwrap_or_default().map(|number| shown(*measure, number)));
        }
        grid.push(row);
    }
    grid
}

fn bar_heading(measures: &[Metric], has_bars: bool) -> Option<String> {
    let first = measures.first().filter(|_| has_bars)?;
    Some(format!("{:<BAR$}", first.heading()))
}

/// As long as the value is large; blanks keep bars on one side where cells stand on the other.
fn bar(value: Option<f64>, most: f64) -> String {
    let share = value.filter(|_| most > 0.0).map_or(0.0, |value| (value / most).clamp(0.0, 1.0));
    format!("{:<BAR$}", "#".repeat((share * BAR as f64).round() as usize))
}

/// Gaps, and windows that do not count.
fn aside(paper: &mut dyn Paper, trend: &Trend, detail: Detail) -> io::Result<()> {
    let most = if detail == Detail::Full { usize::MAX } else { MAX_LISTED };
    if !trend.gaps.is_empty() {
        let mut longest: Vec<_> = trend.gaps.iter().collect();
        longest.sort_by(|a, b| b.seconds().total_cmp(&a.seconds()));
        let gaps = longest.iter().take(most).map(|gap| format!("{} from {}", length(gap.seconds()), minute(gap.from)));
        let more = more(longest.len(), most);
        paper.aside(&format!("Not known: {}{more}.", gaps.collect::<Vec<_>>().join(", ")))?;
    }
    if !trend.set_aside.is_empty() {
        let set_aside = trend.set_aside.iter().take(most).map(set_aside_words);
        let more = more(trend.set_aside.len(), most);
        paper.aside(&format!("Not counted: {}{more}.", set_aside.collect::<Vec<_>>().join("; ")))?;
    }
    Ok(())
}

fn more(count: usize, most: usize) -> String {
    if count > most { format!(" and {} more (`--full`)", count - most) } else { String::new() }
}

/// What has no place in time.
pub(super) fn left_out(paper: &mut dyn Paper, trends: &Trends, detail: Detail) -> io::Result<()> {
    if trends.left_out.is_empty() {
        return Ok(());
    }
    let most = if detail == Detail::Full { usize::MAX } else { MAX_LISTED };
    let left_out: Vec<String> = trends.left_out.iter().take(most).map(set_aside_words).collect();
    paper.aside(&format!("Left out: {}{}.", left_out.join("; "), more(trends.left_out.len(), most)))
}

fn set_aside_words(aside: &SetAside) -> String {
    let why = match &aside.why {
        Why::Again { of } => format!("the time of `{of}` again"),
        Why::Overlaps { of } => format!("overlaps `{of}`, which says more of time"),
        Why::InWhole { of } => format!("one instance in the time of `{of}`, which has all of them"),
        Why::NoLength => "how long its window was is not reported".to_owned(),
        Why::NoTime => "when it was is not reported".to_owned(),
        Why::Part => "other jobs ran in a part of its time".to_owned(),
        Why::NotFinished => "it failed or was not finished".to_owned(),
    };
    format!("`{}`: {why}", aside.run)
}

/// A value as tables show it.
pub(super) fn value(measure: Metric, value: f64) -> String {
    match measure.unit() {
        // Reads of a cache below the database take microseconds.
        MetricUnit::Milliseconds if value != 0.0 && value.abs() < 0.0995 => format!("{value:.4}"),
        MetricUnit::Milliseconds | MetricUnit::MegabytesPerSecond if value < 9.995 => format!("{value:.2}"),
        MetricUnit::Percent if value > 0.0 && value < 0.1 => format!("{value:.2}"),
        _ if value != 0.0 && value.abs() < 0.05 => format!("{value:.2}"),
        _ if value.abs() < 99.95 => format!("{value:.1}"),
        _ => group_thousands(value),
    }
}

fn shown(measure: Metric, number: Option<f64>) -> String {
    number.map_or_else(|| UNKNOWN.to_owned(), |number| value(measure, number))
}

fn signed(measure: Metric, change: f64) -> String {
    let sign = if change < 0.0 { "-" } else { "+" };
    format!("{sign}{}", value(measure, change.abs()))
}

/// `2026-11-07 02:00 to 03:00`; of windows of less than two minutes also their seconds.
pub(crate) fn when(window: &TrendWindow) -> String {
    let is_same_day = window.from.strftime("%F").to_string() == window.to.strftime("%F").to_string();
    let form = if window.seconds < 120.0 { "%H:%M:%S" } else { "%H:%M" };
    let to = if is_same_day { window.to.strftime(form) } else { window.to.strftime("%Y-%m-%d %H:%M") };
    format!("{} {} to {to}", window.from.strftime("%Y-%m-%d"), window.from.strftime(form))
}

/// `2026-11-07 02:00`.
pub(crate) fn minute(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M").to_string()
}

/// `2026-11-07`, from days since 1970-01-01.
pub fn date(day: i64) -> String {
    let time = day.checked_mul(86_400).and_then(|second| jiff::Timestamp::from_second(second).ok());
    time.map_or_else(|| UNKNOWN.to_owned(), |time| time.strftime("%Y-%m-%d").to_string())
}

/// `15 minutes`, `1 hour`, `3.3 hours`, `2 days`.
pub(crate) fn length(seconds: f64) -> String {
    let (amount, unit) = match seconds {
        s if s < 119.5 => (s, "second"),
        s if s < 3_599.5 => (s / 60.0, "minute"),
        s if s < 86_399.5 * 2.0 => (s / 3_600.0, "hour"),
        s => (s / 86_400.0, "day"),
    };
    let text = format!("{amount:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    format!("{text} {unit}{}", if text == "1" { "" } else { "s" })
}

// Trends as comma-separated files: numbers unrounded, unknown values empty, times as RFC 3339 without a zone.

/// Writes one file.
pub type Writer = fn(&mut dyn Write, &Trends) -> io::Result<()>;

/// What every one of the files begins with.
pub const BEGINNING: &str = "database,";

/// Every file, by the name it should have.
pub const FILES: [(&str, Writer); 4] =
    [("windows.csv", windows), ("measures.csv", measures), ("hours.csv", hours), ("days.csv", days)];

fn time(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

fn header(out: &mut dyn Write, first: &[&str], rest: impl IntoIterator<Item = String>) -> io::Result<()> {
    let cells: Vec<String> = first.iter().map(|name| (*name).to_owned()).chain(rest).collect();
    line(out, &cells)
}

fn each(trends: &Trends) -> impl Iterator<Item = (String, &Trend)> {
    trends.trends.iter().map(|trend| (quoted(&trend.database.name), trend))
}

/// One row for each window that counts, with every measure.
///
/// # Errors
/// If `out` fails.
pub fn windows(out: &mut dyn Write, trends: &Trends) -> io::Result<()> {
    let keys = MEASURES.map(|measure| measure.key().to_owned());
    header(out, &["database", "from", "to", "seconds", "run", "step"], keys)?;
    for (name, trend) in each(trends) {
        for window in &trend.windows {
            let mut row = vec![name.clone(), time(window.from), time(window.to), window.seconds.to_string()];
            row.extend([quoted(&window.run), quoted(&window.step)]);
            row.extend(MEASURES.map(|measure| optional(window.reading(measure).map(|reading| reading.value))));
            line(out, &row)?;
        }
    }
    Ok(())
}

/// One row for each measure: mean, percentiles over time, peak and growth.
///
/// # Errors
/// If `out` fails.
pub fn measures(out: &mut dyn Write, trends: &Trends) -> io::Result<()> {
    let quantiles = QUANTILES.map(|quantile| format!("p{}", quantile * 100.0));
    let after = ["peak", "peak_from", "peak_to", "growth_per_day", "growth_low", "growth_high", "growth_days"];
    let rest = quantiles.into_iter().chain(after.map(str::to_owned));
    header(out, &["database", "measure", "windows", "covered_s", "mean"], rest)?;
    for (name, trend) in each(trends) {
        for reported in trend.measures().into_iter().filter_map(|measure| trend.summary(measure)) {
            let mut row = vec![name.clone(), reported.measure.key().to_owned(), reported.windows.to_string()];
            row.extend([reported.covered_s.to_string(), optional(reported.mean)]);
            row.extend(reported.quantiles.map(|value| value.to_string()));
            row.push(reported.peak.to_string());
            let peak = trend.windows.get(reported.peak_at);
            row.extend(
                [peak.map(|window| window.from), peak.map(|window| window.to)]
                    .map(|at| at.map(time).unwrap_or_default()),
            );
            let interval = reported.growth.and_then(|growth| growth.interval);
            row.push(optional(reported.growth.map(|growth| growth.per_day)));
            row.extend([optional(interval.map(|(low, _)| low)), optional(interval.map(|(_, high)| high))]);
            row.push(reported.growth.map(|growth| growth.days.to_string()).unwrap_or_default());
            line(out, &row)?;
        }
    }
    Ok(())
}

/// One row for each hour of the day and measure.
///
/// # Errors
/// If `out` fails.
pub fn hours(out: &mut dyn Write, trends: &Trends) -> io::Result<()> {
    header(out, &["database", "measure", "hour", "days", "mean", "p95", "peak", "peak_from"], [])?;
    for (name, trend) in each(trends) {
        for measure in trend.measures() {
            for row in trend.hours(measure) {
                let first = [name.clone(), measure.key().to_owned(), row.hour.to_string(), row.days.to_string()];
                let values = [row.mean, Some(row.p95), Some(row.peak)].map(optional);
                let cells: Vec<String> = first.into_iter().chain(values).chain([time(row.peak_from)]).collect();
                line(out, &cells)?;
            }
        }
    }
    Ok(())
}

/// One row for each day and measure.
///
/// # Errors
/// If `out` fails.
pub fn days(out: &mut dyn Write, trends: &Trends) -> io::Result<()> {
    header(out, &["database", "measure", "day", "covered_share", "mean", "p95", "peak", "peak_from"], [])?;
    for (name, trend) in each(trends) {
        for measure in trend.measures() {
            for row in trend.days(measure) {
                let first = [name.clone(), measure.key().to_owned(), date(row.day)];
                let values = [Some(row.covered_share), row.mean, Some(row.p95), Some(row.peak)].map(optional);
                let cells: Vec<String> = first.into_iter().chain(values).chain([time(row.peak_from)]).collect();
                line(out, &cells)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::Run;
    use model::record::sample::windows::{Hour, QUICK, history, report};

    fn rendered(runs: &[Run], detail: Detail, width: usize) -> String {
        let trends = Trends::of(&runs.iter().collect::<Vec<_>>());
        let mut out = Vec::new();
        trend(&mut out, &trends, detail, width).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn ten_days_of_reports_in_brief() {
        insta::assert_snapshot!(rendered(&history(), Detail::Brief, 140));
    }

    #[test]
    fn percentiles_that_are_the_peak_are_named() {
        let of = |count| {
            let runs: Vec<Run> = history().into_iter().take(count).collect();
            rendered(&runs, Detail::Brief, 140)
        };
        assert!(
            of(4).contains("4 windows are too few for p90, p95 and p99, which stand for the peak here."),
            "{}",
            of(4)
        );
        assert!(of(24).contains("24 windows are too few for p99, which"), "{}", of(24));
        assert!(!of(120).contains("too few for"), "{}", of(120));
    }

    #[test]
    fn one_report_and_what_is_left_out() {
        let one = report(Hour { at: 9, minutes: 60, reads_per_s: 1_000, writes_per_s: 100, within_ms: QUICK });
        let mut no_length = report(Hour { at: 10, minutes: 60, reads_per_s: 1, writes_per_s: 1, within_ms: QUICK });
        no_length.steps[0].window.duration_ns = 0;
        insta::assert_snapshot!(rendered(&[one, no_length], Detail::Full, 80));
    }

    #[test]
    fn growth_comes_with_an_interval_or_not_at_all() {
        let days = |count: i64| -> Vec<Run> {
            let hour = |day: i64| Hour {
                at: 24 * day + 9,
                minutes: 60,
                reads_per_s: 1_000 + day as u64,
                writes_per_s: 1,
                within_ms: QUICK,
            };
            (0..count).map(|day| report(hour(day))).collect()
        };
        let four = rendered(&days(4), Detail::Brief, 140);
        assert!(four.contains("Growth not estimated: 4 days") && !four.contains("+30.0"), "{four}");
        let seven = rendered(&days(7), Detail::Brief, 140);
        assert!(seven.contains("+30.0 to +30.0") && seven.contains("Growth compares 7 days"), "{seven}");
    }

    #[test]
    fn what_has_no_name_may_be_several_databases() {
        let mut run = report(Hour { at: 9, minutes: 60, reads_per_s: 9, writes_per_s: 1, within_ms: QUICK });
        assert!(!rendered(std::slice::from_ref(&run), Detail::Brief, 140).contains("No run reports"));
        run.target.facts.database.id = None;
        run.target.address.clear();
        assert!(rendered(&[run], Detail::Brief, 140).contains("figures of several may stand here"));
    }

    #[test]
    fn a_small_rate_is_not_shown_as_none() {
        let rates = [0.0, 0.02, 0.3, 99.0].map(|rate| value(Metric::Reads, rate));
        assert_eq!(rates, ["0.0", "0.02", "0.3", "99.0"]);
        let times = [0.0, 0.012_96, 0.099_6, 0.15, 12.3].map(|ms| value(Metric::ReadTime, ms));
        assert_eq!(times, ["0.00", "0.0130", "0.10", "0.15", "12.3"]);
    }

    #[test]
    fn lengths_of_time_read_as_people_say_them() {
        let lengths = [10.0, 900.0, 3_600.0, 3_597.0, 12_000.0, 86_400.0, 172_800.0].map(length);
        assert_eq!(lengths, ["10 seconds", "15 minutes", "1 hour", "60 minutes", "3.3 hours", "24 hours", "2 days"]);
    }

    #[test]
    fn every_file_has_as_many_fields_in_each_row_as_in_its_header() {
        let mut runs = history();
        runs.iter_mut().for_each(|run| run.target.address = "PROD, \"old\"/1".to_owned());
        let trends = Trends::of(&runs.iter().collect::<Vec<_>>());
        for (name, write) in FILES {
            let mut out = Vec::new();
            write(&mut out, &trends).unwrap();
            let text = String::from_utf8(out).unwrap();
            let rows: Vec<&str> = text.lines().collect();
            assert!(rows.len() > 9 && rows[0].starts_with("database,"), "{name}");
            let fields = |row: &str| row.replace("\"PROD, \"\"old\"\"/1\"", "PROD").split(',').count();
            assert!(rows.iter().all(|row| fields(row) == fields(rows[0])), "{name}");
        }
    }

    #[test]
    fn windows_are_written_in_the_order_of_time() {
        let runs = history();
        let mut out = Vec::new();
        windows(&mut out, &Trends::of(&runs.iter().collect::<Vec<_>>())).unwrap();
        let text = String::from_utf8(out).unwrap();
        let first = text.lines().nth(1).unwrap();
        assert!(first.starts_with("PROD/PROD1,2026-11-02T00:00:00,2026-11-02T01:00:00,3600,20261102-000000-awr,snapshots 100 to 101,250,200,50,"), "{first}");
        assert_eq!(text.lines().count(), 238);
    }
}
