//! A history in text: is it worse today than it was, since when, and what else changed there.

use std::io::{self, Write};

use super::comparison::value;
use super::grid::Grid;
use super::paper::{Paper, Terminal};
use super::text::{Detail, NARROWEST};
use super::words::UNKNOWN;
use crate::trend::minute;
use analysis::history::{Histories, History, HistoryRun, LevelChange, Series, Today};
use analysis::{SettingDifference, signed_percent};
use model::units::percent;

const LEGEND: &str = "`today`: the level since the last change. `best`: the best level before. A level is a median of runs, or \
                      the end of a line where it changed little by little. `too few`: a change takes 16 runs.";

/// Surroundings that are named of a change; `--full` and the page have all.
const MAX_SURROUNDINGS: usize = 4;

/// Writes histories for a terminal of `width` columns.
///
/// # Errors
/// If `out` fails.
pub fn history(out: &mut impl Write, histories: &Histories, detail: Detail, width: usize) -> io::Result<()> {
    let mut paper = Terminal { out, width: width.max(NARROWEST) };
    for (place, history) in histories.histories.iter().enumerate() {
        if place > 0 {
            paper.gap()?;
        }
        paper.remark(&answer(histories, history))?;
        write(&mut paper, histories, history, detail)?;
    }
    if let Some(others) = others(histories) {
        paper.aside(&others)?;
    }
    paper.aside(LEGEND)
}

/// What is not shown.
pub(super) fn others(histories: &Histories) -> Option<String> {
    match histories.too_short {
        0 => None,
        1 => Some(format!("One other history has fewer than {} runs: another address, tag or work.", Series::FEWEST)),
        more => Some(format!(
            "{more} other histories have fewer than {} runs: other addresses, tags or work.",
            Series::FEWEST
        )),
    }
}

/// All that is said of one history below its answer.
pub(super) fn write(paper: &mut dyn Paper, histories: &Histories, history: &History, detail: Detail) -> io::Result<()> {
    paper.remark(&grounds(histories, history))?;
    let series = worst_first(histories, history);
    let mut grid = Grid::new(2, ["load", "figure", "runs", "today", "best", "change", "answer", "since"]);
    for (series, today) in &series {
        grid.push(row(history, series, *today));
    }
    paper.table("Against its history", &grid)?;
    let is_told = |today: &Today<'_>| detail == Detail::Full || matches!(today, Today::Worse(..));
    let told: Vec<_> = series.iter().filter(|(series, today)| is_told(today) && !series.changes.is_empty()).collect();
    if !told.is_empty() {
        paper.title("Where it changed")?;
    }
    for (series, today) in told {
        for change in &series.changes {
            let since = if let Today::Worse(_, since) = today { std::ptr::eq(*since, change) } else { false };
            if detail == Detail::Full || since {
                paper.remark(&format!("- {}", changed(history, series, change, detail)))?;
            }
        }
    }
    Ok(())
}

/// What a series is called.
pub(super) fn name(series: &Series) -> String {
    format!("{} at {}", series.measure, series.load)
}

/// What a history is called.
pub(super) fn title(history: &History) -> String {
    let name = history.runs.last().map_or("", |run| if run.name.is_empty() { &run.id } else { &run.name });
    format!("History of {name} on {}{}", history.of, if history.is_simulated { " (simulated)" } else { "" })
}

/// All series, what is worst first.
pub(super) fn worst_first<'a>(histories: &Histories, history: &'a History) -> Vec<(&'a Series, Today<'a>)> {
    let mut series: Vec<(&Series, Today<'_>)> = histories.series_of(history).collect();
    let rank = |(series, today): &(&Series, Today<'_>)| match today {
        Today::Worse(share, _) => (0, -factor(*share)),
        Today::Missing => (1, 0.0),
        _ if !series.changes.is_empty() => (2, 0.0),
        _ => (3, 0.0),
    };
    series.sort_by(|one, other| rank(one).partial_cmp(&rank(other)).unwrap_or(std::cmp::Ordering::Equal));
    series
}

/// Whether it is worse today than it was, in a sentence.
pub(super) fn answer(histories: &Histories, history: &History) -> String {
    let series = worst_first(histories, history);
    let latest = history.runs.last().map_or_else(|| UNKNOWN.to_owned(), called);
    let stale = if history.is_current { "" } else { " Its runs ended more than a day before the latest of all." };
    if let Some((first, Today::Worse(share, since))) = series.first() {
        let others = match series.iter().filter(|(_, today)| matches!(today, Today::Worse(..))).count() - 1 {
            0 => String::new(),
            1 => " One more figure is worse.".to_owned(),
            more => format!(" {more} more figures are worse."),
        };
        let since = at(history, first, since.at);
        return format!("Worse: {} is {} since {since}.{others}{stale}", name(first), signed_percent(*share));
    }
    let lost: Vec<String> = history
        .missing
        .iter()
        .cloned()
        .chain(series.iter().filter(|(_, today)| *today == Today::Missing).map(|(series, _)| name(series)))
        .collect();
    if !lost.is_empty() {
        return format!(
            "Unknown: the latest run, {latest}, has not what the run before it has: {}.{stale}",
            lost.join(", ")
        );
    }
    if series.iter().all(|(_, today)| *today == Today::TooFew) {
        let runs = series.iter().map(|(series, _)| series.points.len()).max().unwrap_or(0);
        return format!(
            "Unknown: a change takes {} runs of one load, and up to {latest} there are {runs}.{stale}",
            Series::FEWEST
        );
    }
    let limit = percent(histories.threshold);
    format!("Not worse: up to {latest} no level is worse by more than {limit} % than it was.{stale}")
}

/// What the answer rests on.
pub(super) fn grounds(histories: &Histories, history: &History) -> String {
    let (first, last) = (history.runs.first().map(when), history.runs.last().map(when));
    let span = first.zip(last).map_or_else(String::new, |(first, last)| format!(", {first} to {last}"));
    let runs = history.runs.len();
    let runs = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
    let simulated = if history.is_simulated { " The target is simulated." } else { "" };
    format!("{runs}{span}, times in UTC.{simulated} A change matters beyond {} %.", percent(histories.threshold))
}

/// How far a share is from no change, the same for half and twice as much.
fn factor(share: f64) -> f64 {
    (1.0 + share).ln().abs()
}

fn row(history: &History, series: &Series, today: Today<'_>) -> Vec<String> {
    let shown = |figure: f64| value(&series.measure, Some(figure));
    let levels = series.changes.last().map(|last| last.levels[1]);
    let level = levels.or_else(|| series.middle());
    let best = |share: f64| level.map_or_else(|| UNKNOWN.to_owned(), |level| shown(level / (1.0 + share)));
    let (best, change, answer, since) = match today {
        Today::Missing => (String::new(), String::new(), "missing", String::new()),
        Today::TooFew => (String::new(), String::new(), "too few", String::new()),
        Today::Level => (String::new(), String::new(), "same", String::new()),
        Today::Changed(share) => (best(share), signed_percent(share), "not worse", String::new()),
        Today::Worse(share, since) => (best(share), signed_percent(share), "worse", at(history, series, since.at)),
    };
    vec![
        series.load.clone(),
        series.measure.to_string(),
        series.points.len().to_string(),
        level.map_or_else(|| UNKNOWN.to_owned(), shown),
        best,
        change,
        answer.to_owned(),
        since,
    ]
}

/// What a series says about today, in a sentence.
pub(super) fn sentence(histories: &Histories, history: &History, series: &Series, today: Today<'_>) -> String {
    let limit = percent(histories.threshold);
    match today {
        Today::Missing => "The latest run has it not, and the run before it has.".to_owned(),
        Today::TooFew => format!("{} runs have it, and a change takes {}.", series.points.len(), Series::FEWEST),
        Today::Level => format!("Its level did not change in {} runs.", series.points.len()),
        Today::Changed(share) => {
            format!("Its level is {} against the best, not worse by more than {limit} %.", signed_percent(share))
        }
        Today::Worse(share, since) => {
            let change = changed(history, series, since, Detail::Brief);
            format!("It is {} against the best level. {change}", signed_percent(share))
        }
    }
}

/// A change with what else changed there.
pub(super) fn changed(history: &History, series: &Series, change: &LevelChange, detail: Detail) -> String {
    let [before, after] = change.levels.map(|level| value(&series.measure, Some(level)));
    let share = signed_percent(change.share());
    let last = change.stretch[1].saturating_sub(1);
    let place = if change.is_drift {
        let ends = [change.stretch[0], last].map(|point| at(history, series, point));
        format!("little by little from {} to {}", ends[0], ends[1])
    } else {
        format!("in one step at {}", at(history, series, change.at))
    };
    let seen = at(history, series, change.seen_at);
    let around = surroundings(change, detail);
    format!("{}: {before} to {after} ({share}), {place}, certain from {seen} on. {around}", name(series))
}

fn surroundings(change: &LevelChange, detail: Detail) -> String {
    let all = &change.surroundings;
    if all.is_empty() {
        return "No setting that is recorded changed there.".to_owned();
    }
    let room = if detail == Detail::Full { usize::MAX } else { MAX_SURROUNDINGS };
    let one = |changed: &SettingDifference| {
        let value = |place: usize| changed.values.get(place).cloned().flatten().unwrap_or_else(|| UNKNOWN.to_owned());
        format!("{}: {} -> {}", changed.name, value(0), value(1))
    };
    let shown: Vec<String> = all.iter().take(room).map(one).collect();
    let more = all.len().saturating_sub(room);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("Changed there too, which need not be the cause: {}{more}.", shown.join("; "))
}

fn at(history: &History, series: &Series, point: usize) -> String {
    let run = series.points.get(point).and_then(|(run, _)| history.runs.get(*run));
    run.map_or_else(|| UNKNOWN.to_owned(), called)
}

/// Its id has its date where it was given by this program, and none where it was not.
fn called(run: &HistoryRun) -> String {
    format!("`{}` ({})", run.id, when(run))
}

fn when(run: &HistoryRun) -> String {
    minute(run.started_at.0)
}
