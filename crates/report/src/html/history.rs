//! The page of a history: is it worse today, then each figure over time with its changes, what is worse first.

use std::io::{self, Write};

use maud::{Markup, html};
use serde_json::Value;

use super::chart::{Across, At, Drawn, First, Frame, Line, Lines, Mark, Quantity, day_ticks};
use super::{Head, Kept, Sheets, for_script, marked, page};
use crate::history::{answer, name, others, sentence, title, worst_first, write};
use crate::text::Detail;
use analysis::FigureUnit;
use analysis::history::{Histories, History, Series, Today};

/// Charts of a page; the tables have all.
const MAX_CHARTS: usize = 24;
/// Labels along the axis of days.
const LABELS: usize = 8;
/// Room about a single run, in seconds.
const ROOM_S: f64 = 3_600.0;

/// Writes histories as one page.
///
/// # Errors
/// If `out` fails.
pub fn history(out: &mut dyn Write, histories: &Histories, kept: &Kept<'_>) -> io::Result<()> {
    let (mut articles, mut data): (Vec<Markup>, Vec<Value>) = (Vec::new(), Vec::new());
    let mut room = MAX_CHARTS;
    for (place, history) in histories.histories.iter().enumerate() {
        let series = worst_first(histories, history);
        let lines = series.iter().take(room).enumerate();
        let charts: Vec<Drawn> = lines
            .filter_map(|(at, (series, _))| chart(histories, history, series, format!("history-{place}-{at}"))?.draw())
            .collect();
        room -= charts.len();
        let is_worse = series.iter().any(|(_, today)| matches!(today, Today::Worse(..)));
        let heading = format!("history-{place}");
        articles.push(html! {
            article.run aria-labelledby=(heading) {
                h1 #(heading) { (title(history)) }
                p.opening.doubtful[is_worse] { (marked(&answer(histories, history))) }
                section { h2 { "Over time" } @for drawn in &charts { (drawn.figure) } }
                section.sheets {
                    h2 { "In figures" }
                    (Sheets::of(|sheets| write(sheets, histories, history, Detail::Full)))
                }
            }
        });
        data.extend(charts.into_iter().map(|drawn| drawn.data));
    }
    let body = html! {
        @for article in &articles { (article) }
        @if let Some(others) = others(histories) { p.under-title { (others) } }
        (for_script(&data))
    };
    let titles: Vec<String> = histories.histories.iter().map(title).collect();
    out.write_all(page(&Head { title: &titles.join(", "), kept }, &body).as_bytes())
}

/// The figure that is worst, and whose history it is of.
pub(super) fn main_chart(histories: &Histories) -> Option<(Lines, &History)> {
    let worse = |history: &&History| {
        history.is_current && histories.series_of(history).any(|(_, today)| matches!(today, Today::Worse(..)))
    };
    let history = histories.histories.iter().find(worse).or_else(|| histories.histories.first())?;
    let (series, _) = worst_first(histories, history).into_iter().next()?;
    chart(histories, history, series, "history".to_owned()).map(|lines| (lines, history))
}

fn chart(histories: &Histories, history: &History, series: &Series, id: String) -> Option<Lines> {
    let unit = series.measure.unit();
    let (y_quantity, scale) = match unit {
        FigureUnit::Nanoseconds => (Quantity::Microseconds, 1e-3),
        FigureUnit::PerSecond => (Quantity::PerSecond, 1.0),
        FigureUnit::Percent => (Quantity::Percent, 1.0),
    };
    let second = |point: usize| {
        let (run, _) = series.points.get(point)?;
        Some(history.runs.get(*run)?.started_at.0.as_millisecond() as f64 / 1e3)
    };
    let all: Vec<(f64, f64)> = series
        .points
        .iter()
        .enumerate()
        .filter_map(|(point, (_, value))| Some((second(point)?, value * scale)))
        .collect();
    let (from, to) = (all.first()?.0, all.last()?.0);
    let range = if to > from { (from, to) } else { (from - ROOM_S, to + ROOM_S) };
    let level = |from: usize, to: usize, levels: [f64; 2]| {
        let ends = second(from).zip(second(to.saturating_sub(1)));
        ends.map(|(from, to)| vec![(from, levels[0] * scale), (to, levels[1] * scale)])
    };
    let mut levels: Vec<Vec<(f64, f64)>> = Vec::new();
    for change in &series.changes {
        let [from, end] = change.stretch;
        if change.is_drift {
            levels.extend(level(from, end, change.levels));
            continue;
        }
        levels.extend(level(from, change.at, [change.levels[0]; 2]));
        levels.extend(level(change.at, end, [change.levels[1]; 2]));
    }
    if series.changes.is_empty()
        && let Some(middle) = series.middle()
    {
        levels.extend(level(0, all.len(), [middle; 2]));
    }
    levels.dedup();
    let marks = series.changes.iter().filter_map(|change| {
        let words = analysis::signed_percent(change.share());
        Some(Mark { at: At::X(second(change.at)?), name: words })
    });
    let words = sentence(histories, history, series, series.today(histories.threshold));
    let frame = Frame {
        id,
        title: name(series),
        note: "Each run once, over its measured windows, with its level between changes.".to_owned(),
        y_title: series.measure.to_string(),
        y_quantity,
        first: First::Linear,
        words,
    };
    let lines = vec![
        Line { name: "run".to_owned(), pieces: all.iter().map(|point| vec![*point]).collect(), dots: true },
        Line { name: "level".to_owned(), pieces: levels, dots: false },
    ];
    let across = Across {
        title: "beginning of the run, in UTC".to_owned(),
        quantity: Quantity::Clock,
        range,
        ticks: day_ticks(range.0, range.1, LABELS),
    };
    Some(Lines { frame, across, lines, bands: Vec::new(), marks: marks.collect(), labels: Vec::new() })
}
