//! What an experiment found: the summary, every combination with what it carries, repeats, and the matrix of all steps.

use model::record::Workload;
use std::io::{self, Write};

use super::grid::Grid;
use super::paper::{Paper, Terminal};
use super::sheet::Sheet;
use super::table::{Style, matrix};
use super::text::NARROWEST;
use super::words::UNKNOWN;
use analysis::{Case, ExperimentFound, FailureReading, Figures, Pause};
use model::record::Run;
use model::units::{Nanos, group_thousands, percent};

/// A step that has no run, and why, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotMeasured {
    /// The step's name.
    pub step: String,
    /// Which repeat.
    pub round: u32,
    /// Why.
    pub why: String,
}

/// Writes what an experiment found for a terminal of `width` columns.
///
/// # Errors
/// If `out` fails.
pub fn experiment(
    out: &mut impl Write,
    found: &ExperimentFound,
    missing: &[NotMeasured],
    width: usize,
) -> io::Result<()> {
    let mut paper = Terminal { out, width: width.max(NARROWEST) };
    found.summary().iter().try_for_each(|sentence| paper.remark(sentence))?;
    write(&mut paper, found, missing)?;
    let Some(sheet) = sheet(found) else { return Ok(()) };
    paper.title(Style::Matrix.title())?;
    sheet.write_markdown(paper.out)
}

/// Every step of every run with what is expected of it; nothing where no step says what it asked of storage.
pub(super) fn sheet(found: &ExperimentFound) -> Option<Sheet> {
    let runs = found.cases.iter().map(|case| &case.side.run).filter(|run| run.workload() != Workload::Calibrate);
    let runs: Vec<Run> = runs.cloned().collect();
    let has_io = runs.iter().flat_map(|run| &run.steps).any(|step| Figures(step).physical_io_per_s().is_some());
    has_io.then(|| matrix(&runs))
}

/// All tables but the matrix, in the order in which they are to be read.
pub(super) fn write(paper: &mut dyn Paper, found: &ExperimentFound, missing: &[NotMeasured]) -> io::Result<()> {
    paper.table("What each failure cost", &failures(found))?;
    paper.table("What each combination sustains", &carried(found))?;
    repeats(paper, found)?;
    each_run(paper, found)?;
    not_measured(paper, missing)
}

/// Values that name a case: its load where there are several, then each tag that varies.
fn keys(found: &ExperimentFound) -> Vec<String> {
    let load = (found.has_loads() || found.varied.is_empty()).then(|| "load".to_owned());
    load.into_iter().chain(found.varied.iter().cloned()).collect()
}

fn key_cells(found: &ExperimentFound, case: &Case) -> Vec<String> {
    let load = (found.has_loads() || found.varied.is_empty()).then(|| case.load.clone());
    let tags = found.varied.iter().map(|name| case.tags.get(name).cloned().unwrap_or_else(|| "-".to_owned()));
    load.into_iter().chain(tags).collect()
}

fn carried(found: &ExperimentFound) -> Grid {
    let keys = keys(found);
    let figures = ["sustains", "runs", "+/- %", "requests/s", "allowed", "% of it", "within"];
    let mut grid = Grid::new(keys.len(), keys.iter().map(String::as_str).chain(figures));
    for case in &found.cases {
        let unknown = || UNKNOWN.to_owned();
        let latency = case.first().map_or("", |reading| reading.latency.trim_start().trim_start_matches("at "));
        let (measured, allowed, share) = match &case.against {
            None => (unknown(), unknown(), unknown()),
            Some(against) => (
                group_thousands(against.per_s),
                group_thousands(against.allowed_per_s.floor()),
                percent(against.share()),
            ),
        };
        let mut row = key_cells(found, case);
        row.extend([
            case.rate().map_or_else(unknown, |rate| rate.words()),
            case.readings.len().to_string(),
            case.spread().map_or_else(unknown, |spread| percent(spread / 2.0)),
            measured,
            allowed,
            share,
            if latency.is_empty() { unknown() } else { latency.replace(" within ", " ").replace('`', "") },
        ]);
        grid.push(row);
    }
    grid.with_known_columns()
}

/// The failure of every run; empty where none was caused.
fn failures(found: &ExperimentFound) -> Grid {
    let keys = keys(found);
    let figures = ["run", "pause", "longest wait", "as before", "lost", "demands"];
    let mut grid = Grid::new(keys.len() + 1, keys.iter().map(String::as_str).chain(figures));
    for case in &found.cases {
        for reading in &case.readings {
            let Some(FailureReading { cost, demands }) = &reading.failure else { continue };
            let unknown = || UNKNOWN.to_owned();
            let missed = demands.iter().filter(|demand| demand.met == Some(false)).count();
            let mut row = key_cells(found, case);
            row.extend([
                reading.round.to_string(),
                match cost.pause {
                    Pause::None => "none seen".to_owned(),
                    Pause::Seen { length_ns, .. } => Nanos(length_ns).to_string(),
                    Pause::AtLeast { length_ns } => format!("{} or longer", Nanos(length_ns)),
                },
                cost.longest_ns.map_or_else(unknown, |ns| Nanos(ns).to_string()),
                match (cost.before, cost.as_before_ns) {
                    (None, _) => unknown(),
                    (Some(_), None) => "not within the window".to_owned(),
                    (Some(_), Some(at_ns)) => cost.since(at_ns),
                },
                group_thousands(cost.lost() as f64),
                match (demands.len(), missed, reading.failure.as_ref().and_then(FailureReading::are_met)) {
                    (0, ..) => "none".to_owned(),
                    (_, _, Some(true)) => "met".to_owned(),
                    (_, 0, _) => "unknown".to_owned(),
                    (all, missed, _) => format!("{missed} of {all} missed"),
                },
            ]);
            grid.push(row);
        }
    }
    grid
}

/// The rate of every repeat, and combinations against the first one.
fn repeats(paper: &mut dyn Paper, found: &ExperimentFound) -> io::Result<()> {
    let rounds = found.cases.iter().map(|case| case.readings.len()).max().unwrap_or(0);
    if rounds < 2 {
        return Ok(());
    }
    let keys = keys(found);
    let names = (1..=rounds).map(|round| format!("run {round}"));
    let mut grid = Grid::new(keys.len(), keys.iter().cloned().chain(names));
    for case in &found.cases {
        let rates = (0..rounds).map(|at| case.readings.get(at).and_then(|reading| reading.rate));
        let rates = rates.map(|rate| rate.map_or_else(|| UNKNOWN.to_owned(), |rate| rate.words()));
        grid.push(key_cells(found, case).into_iter().chain(rates).collect());
    }
    paper.table("Repeats", &grid)?;
    for compared in &found.compared {
        for pair in &compared.pairs {
            paper.aside(&compared.verdict(pair))?;
        }
    }
    for problem in &found.not_compared {
        paper.aside(&format!("Not compared: {problem}."))?;
    }
    Ok(())
}

/// The sentence that each run's own report opens with.
fn each_run(paper: &mut dyn Paper, found: &ExperimentFound) -> io::Result<()> {
    if found.cases.is_empty() {
        return Ok(());
    }
    paper.title("Each run")?;
    for case in &found.cases {
        for reading in &case.readings {
            paper.remark(&format!("`{}`, {}: {}", reading.id, found.name(case), reading.sentence))?;
        }
    }
    Ok(())
}

fn not_measured(paper: &mut dyn Paper, missing: &[NotMeasured]) -> io::Result<()> {
    let mut grid = Grid::new(1, ["step", "round", "why"]);
    for NotMeasured { step, round, why } in missing {
        grid.push(vec![step.clone(), round.to_string(), why.clone()]);
    }
    paper.table("Not measured", &grid)
}
