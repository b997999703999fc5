//! Tables of a report that was imported: what has no field of ours, each with its source, its layer and its window. And what a
//! machine did between the snapshots that such a report spans.

use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use crate::text::Detail;
use crate::words::{UNKNOWN, duration};
use model::record::{Covers, ReportedColumn, ReportedRow, ReportedTable, Run, Step};
use model::units::{Bytes, Nanos, group_thousands};

/// Units that stand in each cell.
const IN_CELLS: [&str; 2] = ["B", "ms"];
/// Columns of figures up to which those that are zero in all rows are shown.
const MAX_COLUMNS: usize = 6;
/// Rows of a table that are shown: a database may have thousands of files.
const MAX_ROWS: usize = 500;
/// Subjects that a brief report names.
const MAX_NAMED: usize = 12;

/// All tables of all steps, those of one subject and form as one.
pub(crate) fn tables(paper: &mut dyn Paper, run: &Run, detail: Detail) -> io::Result<()> {
    let subjects = subjects(run);
    if detail == Detail::Brief {
        let mut names: Vec<&str> = subjects.iter().map(|tables| tables.first.subject.as_str()).collect();
        names.dedup();
        let more = if names.len() > MAX_NAMED { ", and more" } else { "" };
        names.truncate(MAX_NAMED);
        return match names.as_slice() {
            [] => Ok(()),
            names => paper.aside(&format!("`--full` also shows: {}{more}.", names.join(", "))),
        };
    }
    for alike in &subjects {
        let (grid, zero) = grid(run, alike);
        paper.table(&title(alike), &grid)?;
        let rows: usize = alike.tables.iter().map(|(_, table)| table.rows.len()).sum();
        if rows > MAX_ROWS {
            paper.remark(&format!("{} more rows: `--csv` and `--json` have all.", rows - MAX_ROWS))?;
        }
        if !zero.is_empty() {
            paper.remark(&format!("Zero in all rows: {}.", zero.join(", ")))?;
        }
        alike.remarks().try_for_each(|remark| paper.remark(remark))?;
    }
    Ok(())
}

/// Tables of one subject with the same columns, and the steps that they are of.
struct Alike<'a> {
    first: &'a ReportedTable,
    tables: Vec<(&'a Step, &'a ReportedTable)>,
}

impl Alike<'_> {
    fn remarks(&self) -> impl Iterator<Item = &str> {
        let all = self.tables.iter().flat_map(|(_, table)| &table.remarks).map(String::as_str);
        let mut remarks: Vec<&str> = Vec::new();
        for remark in all {
            if !remarks.contains(&remark) {
                remarks.push(remark);
            }
        }
        remarks.into_iter()
    }
}

fn subjects(run: &Run) -> Vec<Alike<'_>> {
    let mut all: Vec<Alike<'_>> = Vec::new();
    for (step, table) in run.steps.iter().flat_map(|step| step.tables.iter().map(move |table| (step, table))) {
        match all.iter_mut().find(|alike| is_alike(alike.first, table)) {
            Some(alike) => alike.tables.push((step, table)),
            None => all.push(Alike { first: table, tables: vec![(step, table)] }),
        }
    }
    all
}

fn is_alike(one: &ReportedTable, other: &ReportedTable) -> bool {
    (&one.subject, &one.source, &one.keys, &one.columns) == (&other.subject, &other.source, &other.keys, &other.columns)
}

fn title(alike: &Alike<'_>) -> String {
    let ReportedTable { subject, source, layer, covers, .. } = alike.first;
    let mut windows: Vec<u64> = alike.tables.iter().map(|(step, _)| step.window.duration_ns).collect();
    windows.dedup();
    let over = match (covers, windows.as_slice()) {
        (Covers::Edges, _) => "at the begin and end of the window".to_owned(),
        (Covers::Window, [0]) => "over a window that is not reported".to_owned(),
        (Covers::Window, [one]) => format!("over {}", Nanos(*one)),
        (Covers::Window, _) => "over the window of each step".to_owned(),
    };
    // The report of a cluster may have been joined with that of one of its instances.
    let of_one = alike.tables.iter().all(|(step, table)| step.instances.len() > 1 && table.node == alike.first.node);
    let of_node = alike.first.node.iter().filter(|_| of_one).map(|node| format!(" of {node}")).collect::<String>();
    format!("{subject}{of_node} (layer: {layer}; {over}; from `{source}`)")
}

/// The table, and the columns that it does not have because all of their figures are zero: of errors and drops most are.
fn grid(run: &Run, alike: &Alike<'_>) -> (Grid, Vec<String>) {
    let has_steps = run.steps.len() > 1;
    let has_nodes = alike.tables.iter().any(|(_, table)| table.node != alike.first.node);
    let mut names: Vec<String> = Vec::new();
    names.extend(has_steps.then(|| "step".to_owned()));
    names.extend(has_nodes.then(|| "instance".to_owned()));
    names.extend(alike.first.keys.iter().cloned());
    let keys = names.len();
    let rows = || alike.tables.iter().flat_map(|(_, table)| &table.rows);
    let values = |at: usize| rows().filter_map(move |row| row.values.get(at).copied().flatten());
    let is_zero = |at: usize| values(at).next().is_some() && values(at).all(|value| value == 0.0);
    let all = || alike.first.columns.iter().enumerate();
    let is_wide = alike.first.columns.len() > MAX_COLUMNS;
    let (zero, kept): (Vec<_>, Vec<_>) = all().partition(|(at, _)| is_wide && is_zero(*at));
    // In a column all figures have as many decimals as the one with the most; where rows have units, each has its own.
    let decimals = |at: usize| values(at).map(decimals).max().unwrap_or(0);
    let kept: Vec<(usize, usize)> = kept.into_iter().map(|(at, _)| (at, decimals(at))).collect();
    let heading = |column: &ReportedColumn| match column.unit.as_str() {
        "" => column.name.clone(),
        unit if IN_CELLS.contains(&unit) || column.name.contains(unit) => column.name.clone(),
        unit => format!("{} {unit}", column.name),
    };
    let headings = kept.iter().filter_map(|(at, _)| alike.first.columns.get(*at)).map(heading);
    let mut grid = Grid::new(keys, names.into_iter().chain(headings));
    for (step, table) in &alike.tables {
        for row in table.rows.iter().take(MAX_ROWS.saturating_sub(grid.rows().len())) {
            let mut cells: Vec<String> = Vec::new();
            cells.extend(has_steps.then(|| step.label.clone()));
            cells.extend(has_nodes.then(|| table.node.clone().unwrap_or_default()));
            cells.extend((0..table.keys.len()).map(|at| row.names.get(at).cloned().unwrap_or_default()));
            cells.extend(kept.iter().map(|(at, decimals)| cell(table, row, *at, *decimals)));
            grid.push(cells);
        }
    }
    (grid.with_known_columns(), zero.into_iter().map(|(_, column)| column.name.clone()).collect())
}

fn cell(table: &ReportedTable, row: &ReportedRow, column: usize, of_column: usize) -> String {
    let Some(value) = row.values.get(column).copied().flatten() else { return UNKNOWN.to_owned() };
    match table.unit(row, column) {
        "B" if value >= 0.0 => Bytes(value as u64).to_string(),
        // Rounded to nothing by the source.
        "ms" if value == 0.0 => "0 ms".to_owned(),
        "ms" if value > 0.0 => duration(Some((value * 1e6).round() as u64)),
        unit if !row.unit.is_empty() => format!("{} {unit}", with_decimals(value, decimals(value))),
        _ => with_decimals(value, of_column),
    }
}

/// Decimals that a figure needs, at most two; more of one that would have none left.
fn decimals(value: f64) -> usize {
    let most = if value != 0.0 && value.abs() < 0.005 { 4 } else { 2 };
    let is_whole = |decimals: &usize| {
        let scaled = value * 10_f64.powi(*decimals as i32);
        (scaled - scaled.round()).abs() < 1e-6 * scaled.abs().max(1.0)
    };
    (0..most).find(is_whole).unwrap_or(most)
}

fn with_decimals(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((text.as_str(), ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), group_thousands);
    let sign = if value < 0.0 { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

/// Figures of the machine between snapshots, where an imported report of a database spans several.
pub(crate) fn snapshots(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let is_of_report = |step: &&Step| !step.tables.is_empty() && !step.intervals.is_empty();
    for step in run.steps.iter().filter(is_of_report) {
        let mut names: Vec<&str> =
            step.intervals.iter().flat_map(|interval| interval.reported.keys()).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let of_host = |name: &&str| step.reported.iter().any(|figure| figure.layer == "host" && figure.name == **name);
        let names: Vec<&str> = names.into_iter().filter(of_host).collect();
        let most_decimals = |name: &str| {
            step.intervals.iter().filter_map(|interval| interval.reported.get(name)).copied().map(decimals).max()
        };
        let decimals: Vec<usize> = names.iter().map(|name| most_decimals(name).unwrap_or(0)).collect();
        let mut grid = Grid::new(2, ["from", "length"].into_iter().chain(names.iter().copied()));
        for interval in step.intervals.iter().filter(|one| names.iter().any(|name| one.reported.contains_key(*name))) {
            let offset = i64::try_from(interval.offset_ns).map(jiff::SignedDuration::from_nanos);
            let begins = offset.ok().and_then(|offset| run.started_at.0.checked_add(offset).ok());
            let begins = begins.map_or_else(|| UNKNOWN.to_owned(), |at| at.strftime("%m-%d %H:%M:%S").to_string());
            let times = [begins, Nanos(interval.duration_ns).to_string()];
            let figure = |(name, decimals): (&&str, &usize)| {
                interval
                    .reported
                    .get(*name)
                    .map_or_else(|| UNKNOWN.to_owned(), |value| with_decimals(*value, *decimals))
            };
            grid.push(times.into_iter().chain(names.iter().zip(&decimals).map(figure)).collect());
        }
        paper.table(
            "The machine between snapshots (layer: host; times by the clock there)",
            &grid.with_known_columns(),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_decimals_that_their_source_has() {
        let shown =
            [83.7, 53.85, 19_080.0, 2_620.57, 0.000_2, -0.5, 0.0].map(|value| with_decimals(value, decimals(value)));
        assert_eq!(shown, ["83.7", "53.85", "19,080", "2,620.57", "0.0002", "-0.5", "0"]);
        assert_eq!(with_decimals(84.0, 2), "84.00", "as the others of its column");
    }
}
