//! The page of a database over time: what was most and when, charts with gaps as gaps, the day's profile, then every figure.

use std::io::{self, Write};

use maud::{Markup, html};
use serde_json::Value;

use super::chart::{Across, Bars, Calendar, Drawn, First, Frame, Group, Line, Lines, Quantity, day_ticks, thin};
use super::{Head, Kept, MAX_VALUES, Sheets, for_script, marked, page};
use crate::text::Detail;
use crate::trend::{grounds, headline, left_out, minute, value, write};
use analysis::trend::{Trend, TrendWindow, Trends};
use model::record::Metric;

const DAY_S: f64 = 86_400.0;
/// Labels along the axis of days.
const LABELS: usize = 8;
/// Days beyond which the tables leave measures out.
const MAX_DAYS_IN_FULL: f64 = 100.0;
/// Windows that lie no further apart are drawn as one line.
const JOINED_S: f64 = 60.0;

/// Measures that are drawn into one chart, since they have one unit, and what it is called.
const CHARTS: [(&str, Quantity, &[Metric]); 6] = [
    ("Requests per second", Quantity::PerSecond, &[Metric::Io, Metric::Reads, Metric::Writes]),
    (
        "Megabytes per second",
        Quantity::PerSecond,
        &[Metric::Megabytes, Metric::ReadMegabytes, Metric::WriteMegabytes, Metric::RedoMegabytes],
    ),
    ("Time of single-block reads", Quantity::Microseconds, &[Metric::ReadTime, Metric::ReadTimeP99]),
    ("Commits per second", Quantity::PerSecond, &[Metric::Commits]),
    ("Processors of the host", Quantity::Percent, &[Metric::HostBusy]),
    ("Active sessions", Quantity::Count, &[Metric::ActiveSessions]),
];

/// Writes trends as one page.
///
/// # Errors
/// If `out` fails.
pub fn trend(out: &mut dyn Write, trends: &Trends, kept: &Kept<'_>) -> io::Result<()> {
    let max_values = (MAX_VALUES / trends.trends.len().max(1)).max(super::MIN_VALUES);
    let (mut articles, mut data): (Vec<Markup>, Vec<Value>) = (Vec::new(), Vec::new());
    for (number, one) in trends.trends.iter().enumerate() {
        let charts = charts(one, number, max_values);
        let heading = format!("trend-{number}");
        articles.push(html! {
            article.run aria-labelledby=(heading) {
                h1 #(heading) { (one.database.name) " over time" }
                p.under-title { (marked(&grounds(one))) }
                p.opening { (marked(&headline(one))) }
                section { h2 { "Over time" } @for drawn in &charts { (drawn.figure) } }
                section.sheets {
                    h2 { "In figures" }
                    (Sheets::of(|sheets| write(sheets, one, detail(one), false)))
                }
            }
        });
        data.extend(charts.into_iter().map(|drawn| drawn.data));
    }
    let names: Vec<&str> = trends.trends.iter().map(|one| one.database.name.as_str()).collect();
    let body = html! {
        @for article in &articles { (article) }
        @if !trends.left_out.is_empty() { (Sheets::of(|sheets| left_out(sheets, trends, Detail::Full))) }
        (for_script(&data))
    };
    let title = format!("{} over time", names.join(" and "));
    out.write_all(page(&Head { title: &title, kept }, &body).as_bytes())
}

/// Of very many days the tables are of what storage is sized by, so that the page stays small.
fn detail(trend: &Trend) -> Detail {
    let days = trend.span().map_or(0.0, |(from, to)| to.duration_since(from).as_secs_f64() / 86_400.0);
    if days > MAX_DAYS_IN_FULL { Detail::Brief } else { Detail::Full }
}

fn charts(trend: &Trend, number: usize, max_values: usize) -> Vec<Drawn> {
    let mut charts: Vec<Drawn> = Vec::new();
    for (at, (title, quantity, measures)) in CHARTS.into_iter().enumerate() {
        charts.extend(over_time(trend, format!("trend-{number}-{at}"), title, quantity, measures, max_values));
        if at == 0 {
            let main = [Metric::Io, Metric::Reads].into_iter().find(|measure| trend.measures().contains(measure));
            charts.extend(main.and_then(|main| calendar(trend, format!("calendar-{number}"), main)));
            charts.extend(main.and_then(|main| profile(trend, format!("profile-{number}"), main)));
        }
    }
    charts.extend(profile(trend, format!("profile-time-{number}"), Metric::ReadTime));
    charts
}

/// Times are drawn in microseconds, as everywhere on pages.
fn scaled(quantity: Quantity, value: f64) -> f64 {
    if quantity == Quantity::Microseconds { value * 1e3 } else { value }
}

fn edges(window: &TrendWindow) -> (f64, f64) {
    let from = window.from.as_millisecond() as f64 / 1e3;
    (from, from + window.seconds)
}

fn across(trend: &Trend) -> Option<Across> {
    let (from, to) = trend.span()?;
    let range = (from.as_millisecond() as f64 / 1e3, to.as_millisecond() as f64 / 1e3);
    let title = if trend.is_wall_clock { "time of the database's own clock" } else { "time in UTC" };
    let ticks = day_ticks(range.0, range.1, LABELS);
    Some(Across { title: title.to_owned(), quantity: Quantity::Clock, range, ticks })
}

fn over_time(
    trend: &Trend,
    id: String,
    title: &str,
    quantity: Quantity,
    measures: &[Metric],
    max_values: usize,
) -> Option<Drawn> {
    let lines: Vec<Line> = measures.iter().map(|measure| line(trend, *measure, quantity, max_values)).collect();
    let words = measures.iter().filter_map(|measure| {
        let summary = trend.summary(*measure)?;
        let window = trend.windows.get(summary.peak_at)?;
        Some(format!("{}: at most {}, from {}", measure.heading(), value(*measure, summary.peak), minute(window.from)))
    });
    let words = format!("{}.", words.collect::<Vec<_>>().join("; "));
    let frame = Frame {
        id,
        title: title.to_owned(),
        note: "The mean of each window, drawn over its whole length. Where nothing is known there is no line."
            .to_owned(),
        y_title: if quantity == Quantity::Microseconds { "time" } else { title }.to_owned(),
        y_quantity: quantity,
        first: First::Linear,
        words,
    };
    Lines { frame, across: across(trend)?, lines, bands: Vec::new(), marks: Vec::new(), labels: Vec::new() }.draw()
}

/// A level stretch for each window; what is not known is a gap.
fn line(trend: &Trend, measure: Metric, quantity: Quantity, max_values: usize) -> Line {
    let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut end = f64::NEG_INFINITY;
    for window in &trend.windows {
        let Some(reading) = window.reading(measure) else { continue };
        let (from, to) = edges(window);
        let y = scaled(quantity, reading.value);
        if from - end > JOINED_S {
            pieces.push(Vec::new());
        }
        if let Some(piece) = pieces.last_mut() {
            piece.extend([(from.max(end), y), (to, y)]);
        }
        end = to;
    }
    let all: usize = pieces.iter().map(Vec::len).sum();
    let share = |piece: &Vec<(f64, f64)>| (piece.len() * max_values).div_ceil(all.max(1));
    let pieces = pieces.iter().map(|piece| thin(piece, share(piece))).collect();
    Line { name: measure.heading().to_owned(), pieces, dots: false }
}

/// Hours of days by shades.
fn calendar(trend: &Trend, id: String, measure: Metric) -> Option<Drawn> {
    let cells: Vec<(i64, u8, f64)> = trend
        .hour_cells(measure)
        .into_iter()
        .filter_map(|(hour, cell)| Some((hour.div_euclid(24), hour.rem_euclid(24) as u8, cell.mean()?)))
        .collect();
    let most = cells.iter().copied().reduce(|most, cell| if cell.2 > most.2 { cell } else { most })?;
    let first = cells.first()?.0 as f64 * DAY_S;
    let last = (cells.last()?.0 + 1) as f64 * DAY_S;
    let frame = Frame {
        id,
        title: format!("{} by day and hour", measure.heading()),
        note: "Each column is a day, from midnight at the bottom to midnight at the top. Empty cells are not known."
            .to_owned(),
        y_title: "hour of day".to_owned(),
        y_quantity: Quantity::Count,
        first: First::Linear,
        words: format!("The busiest hour began at {:02}:00 on {}.", most.1, crate::trend::date(most.0)),
    };
    // Hours are upwards here, so that across stand days alone however few there are.
    let ticks = day_ticks(first, last, LABELS).into_iter().filter(|tick| tick.rem_euclid(DAY_S) == 0.0).collect();
    let across = Across { range: (first, last), ticks, ..across(trend)? };
    Calendar { frame, across, cells, unit: measure.heading().to_owned() }.draw()
}

/// What each hour of the day is usually like.
fn profile(trend: &Trend, id: String, measure: Metric) -> Option<Drawn> {
    let rows = trend.hours(measure);
    let of_hour = |hour: u8| rows.iter().find(|row| row.hour == hour);
    let is_time = measure == Metric::ReadTime;
    let quantity = if is_time { Quantity::Microseconds } else { Quantity::PerSecond };
    type Pick = fn(&analysis::trend::HourRow) -> Option<f64>;
    let picks: [(&str, Pick); 3] =
        [("mean", |row| row.mean), ("p95", |row| Some(row.p95)), ("peak", |row| Some(row.peak))];
    let group = |(name, pick): (&str, Pick)| {
        let values: Vec<Option<f64>> = (0..24).map(|hour| of_hour(hour).and_then(pick)).collect();
        let words = values
            .iter()
            .map(|reported| reported.map_or_else(|| "not known".to_owned(), |reported| value(measure, reported)));
        Group {
            name: name.to_owned(),
            words: words.collect(),
            values: values.into_iter().map(|reported| reported.map(|reported| scaled(quantity, reported))).collect(),
        }
    };
    let groups: Vec<Group> = picks.into_iter().map(group).collect();
    let busiest = rows.iter().reduce(|most, row| if row.peak > most.peak { row } else { most })?;
    let frame = Frame {
        id,
        title: format!("{} by hour of day", measure.heading()),
        note:
            "Over all days: the mean of the hour, what it did not exceed in 95 % of its time, and its largest window."
                .to_owned(),
        y_title: if is_time { "time".to_owned() } else { measure.heading().to_owned() },
        y_quantity: quantity,
        first: First::Linear,
        words: format!(
            "The largest window, {}, is in the hour from {:02}:00.",
            value(measure, busiest.peak),
            busiest.hour
        ),
    };
    let places = (0..24).map(|hour| format!("{hour:02}:00")).collect();
    Bars { frame, x_title: "hour of day".to_owned(), places, groups }.draw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::Run;
    use model::record::sample::windows::{Hour, QUICK, history, planted_reads, report};

    fn page_of(runs: &[Run]) -> String {
        let mut page = Vec::new();
        trend(&mut page, &Trends::of(&runs.iter().collect::<Vec<_>>()), &Kept::File).unwrap();
        String::from_utf8(page).unwrap()
    }

    #[test]
    fn a_history_becomes_charts_with_unique_ids_and_loads_nothing() {
        let mut runs = history();
        let mut other = history();
        other.iter_mut().for_each(|run| run.target.address = "A<script>B/1".to_owned());
        other.iter_mut().for_each(|run| run.target.facts.database.id = None);
        runs.extend(other);
        let page = page_of(&runs);
        let ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let unique: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(unique.len(), ids.len());
        for id in ["trend-0-0", "trend-1-2", "calendar-0", "profile-1", "profile-time-0"] {
            assert!(unique.contains(id), "{id}");
        }
        assert!(!page.contains("<script>B") && page.contains("A&lt;script&gt;B"));
        for address in ["src=", "url(", "@import", "<link", "<img", "fetch("] {
            assert!(!page.contains(address), "the page has {address}");
        }
        assert!(page.len() < super::super::MAX_BYTES);
    }

    #[test]
    fn the_readout_knows_the_minute() {
        let page = page_of(&history());
        let midnight = 1_793_577_600_i64;
        assert!(page.contains(&format!("\"x\":[{midnight},{},", midnight + 3_600)), "times are rounded");
    }

    #[test]
    fn two_years_of_hours_are_a_page_like_any_other() {
        let hour = |at| {
            report(Hour { at, minutes: 60, reads_per_s: planted_reads(at % 480), writes_per_s: 9, within_ms: QUICK })
        };
        let runs: Vec<Run> = (0..2 * 365 * 24).map(hour).collect();
        let page = page_of(&runs);
        assert!(page.len() < super::super::MAX_BYTES, "{} bytes", page.len());
    }

    #[test]
    fn across_the_calendar_of_a_single_day_stands_that_day_and_no_hours() {
        let hour = |at| report(Hour { at, minutes: 60, reads_per_s: 100, writes_per_s: 9, within_ms: QUICK });
        let runs: Vec<Run> = (0..24).map(hour).collect();
        let trends = Trends::of(&runs.iter().collect::<Vec<_>>());
        let drawn = calendar(&trends.trends[0], "calendar-0".to_owned(), Metric::Io).unwrap();
        let figure = drawn.figure.into_string();
        assert!(figure.contains("2026-11-02") && !figure.contains("11-02 03:00"), "{figure}");
    }

    #[test]
    fn a_gap_is_a_gap_in_the_line() {
        let runs = history();
        let trends = Trends::of(&runs.iter().collect::<Vec<_>>());
        let line = line(&trends.trends[0], Metric::Reads, Quantity::PerSecond, 10_000);
        let lengths: Vec<usize> = line.pieces.iter().map(Vec::len).collect();
        assert_eq!(lengths, [160, 314], "80 windows before the restart and 157 after it");
    }
}
