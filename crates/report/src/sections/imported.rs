//! What runs have that another program measured: rates of whatever it counted, each instance of a database, and its figures by
//! its own names.

use super::column;
use std::cmp::Reverse;
use std::io;

use super::{Column, steps};
use crate::grid::Grid;
use crate::paper::Paper;
use crate::text::Detail;
use crate::words::{DOUBTED, NONE, UNKNOWN, longest, mean, number, quantile};
use analysis::{Figures, SINGLE_BLOCK_READ, counted_per_s, wait};
use model::record::{Histogram, Metric, ReportedFigure, Run, ServerStats, Step, WaitStats};
use model::units::{awr_count, group_thousands};

/// Figures by the source's names that a brief report shows.
const BRIEF: usize = 24;
/// Wait events of each instance that it shows.
const BRIEF_EVENTS: usize = 5;
/// Figures up to which those that are zero are looked for.
const MAX_SORTED: usize = 2_000;
/// Steps that stand side by side; of more, each figure has a row a step.
const MAX_BESIDE: usize = 6;

const THROUGHPUT: [Column; 18] = [
    ("sessions", |f| super::sessions(f.0)),
    column!(Operations),
    ("mean", |f| f.response().map_or_else(|| UNKNOWN.to_owned(), |times| mean(&times))),
    ("p95", |f| f.response().map_or_else(|| UNKNOWN.to_owned(), |times| quantile(&times, 0.95))),
    column!(Failed),
    column!(BusySessions),
    column!(LogicalReads),
    column!(Hits),
    column!(BlocksRead),
    column!(Reads),
    column!(BlocksWritten),
    column!(Writes),
    column!(ReadMegabytes),
    column!(WriteMegabytes),
    column!(RedoMegabytes),
    column!(Commits),
    ("executes/s", |f| match f.operations_per_s() {
        Some(_) => UNKNOWN.to_owned(),
        None => number(f.executes_per_s()),
    }),
    column!(DatabaseProcessors),
];

/// A report that does not name the event says nothing of it.
const READS: [Column; 6] = [
    ("sessions", |f| super::sessions(f.0)),
    ("read mean", |f| reads(f, mean)),
    ("p50", |f| reads(f, |waits| quantile(waits, 0.5))),
    ("p99", |f| reads(f, |waits| quantile(waits, 0.99))),
    ("p99.9", |f| reads(f, |waits| quantile(waits, 0.999))),
    ("max", |f| reads(f, longest)),
];

fn reads(figures: &Figures<'_>, show: fn(&Histogram) -> String) -> String {
    let waits = figures.0.waits.iter().find(|wait| wait.event == SINGLE_BLOCK_READ);
    waits.map_or_else(|| UNKNOWN.to_owned(), |wait| show(&wait.times()))
}

/// Rates of whatever was counted.
pub(crate) fn throughput(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    steps(paper, run, "Throughput (reads, writes: requests)", &THROUGHPUT)?;
    if run.steps.iter().any(|step| wait(step, SINGLE_BLOCK_READ).is_some()) {
        steps(paper, run, "Single-block reads (db file sequential read)", &READS)?;
    }
    Ok(())
}

const OF_INSTANCE: [Metric; 9] = [
    Metric::LogicalReads,
    Metric::BlocksRead,
    Metric::Reads,
    Metric::BlocksWritten,
    Metric::Writes,
    Metric::ReadMegabytes,
    Metric::WriteMegabytes,
    Metric::RedoMegabytes,
    Metric::Commits,
];

/// Each instance of a database, where there are several.
pub(crate) fn instances(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    if run.steps.iter().all(|step| step.instances.len() < 2) {
        return Ok(());
    }
    let names = ["step", "instance", "blocks/s"].into_iter().chain(OF_INSTANCE.map(Metric::heading));
    let mut grid = Grid::new(2, names);
    for step in &run.steps {
        for instance in &step.instances {
            let per_s = |metric: Metric| {
                let ServerStats { counters, elapsed_ns, .. } = instance;
                let per_s = counted_per_s(counters, &[], *elapsed_ns, |counters| metric.count(counters));
                per_s.map(|per_s| per_s / metric.scale())
            };
            let blocks = per_s(Metric::BlocksRead).zip(per_s(Metric::BlocksWritten));
            let blocks = blocks.map(|(read, written)| read + written);
            let rates = OF_INSTANCE.map(|metric| number(per_s(metric)));
            grid.push([step.label.clone(), instance.node.clone(), number(blocks)].into_iter().chain(rates).collect());
        }
    }
    paper.table("Instances (blocks/s: read and written)", &grid.with_known_columns())
}

/// How an instance's own histogram of an event reads, beside that of its step.
pub(super) fn histograms_of_instances<'a>(step: &'a Step, event: &str) -> Vec<(String, &'a Histogram)> {
    let mut rows = Vec::new();
    for instance in step.instances_with_waits() {
        let waits = instance.waits.iter().filter(|wait| wait.event == event && wait.waits.is_distribution());
        rows.extend(waits.map(|wait| (format!("{}: {}", step.label, instance.node), &wait.waits)));
    }
    rows
}

/// Wait events of each instance, as its own report has them or as it counted them itself; in brief those that sessions waited for longest.
pub(crate) fn waits_of_instances(paper: &mut dyn Paper, run: &Run, detail: Detail) -> io::Result<()> {
    let mut grid = Grid::new(3, ["step", "instance", "event", "class", "waits", "total", "mean", "of background"]);
    for step in &run.steps {
        for instance in step.instances_with_waits() {
            let idle = |wait: &WaitStats| wait.class == "Idle";
            let mut waits: Vec<&WaitStats> = instance.waits.iter().filter(|wait| wait.sum().count > 0).collect();
            let of_sessions = |wait: &WaitStats| wait.of_sessions().map(|waited| waited.total_ns);
            waits.sort_by_key(|wait| Reverse((!idle(wait), of_sessions(wait), wait.sum().total_ns)));
            let shown = if detail == Detail::Full { waits.len() } else { BRIEF_EVENTS };
            for wait in waits.into_iter().take(shown) {
                let names = [&step.label, &instance.node, &wait.event, &wait.class].map(String::clone);
                let background = wait.of_background().map_or(0, |waited| waited.count);
                let background = if background == 0 { NONE.to_owned() } else { awr_count(background as f64) };
                grid.push(names.into_iter().chain(super::waited(wait.sum())).chain([background]).collect());
            }
        }
    }
    if run.steps.iter().all(|step| step.instances_with_waits().next().is_none()) {
        return Ok(());
    }
    paper.table("Wait events of each instance", &grid)
}

/// A value in its own unit: whole numbers as they are, others with two decimals or as many digits as say something.
fn value(value: f64) -> String {
    if value == value.trunc() || value.abs() >= 1e4 {
        return group_thousands(value);
    }
    if value.abs() < 0.01 { format!("{value:.3e}") } else { format!("{value:.2}") }
}

/// The value of a figure, with a mark where it cannot be.
fn value_of(figure: &ReportedFigure) -> String {
    value(figure.value) + if figure.doubted.is_some() { DOUBTED } else { "" }
}

/// Figures by the names of the program that measured them.
pub(crate) fn reported_figures(paper: &mut dyn Paper, run: &Run, detail: Detail) -> io::Result<()> {
    let mut named: Vec<&ReportedFigure> = Vec::new();
    let is_same = |one: &ReportedFigure, other: &ReportedFigure| {
        (&one.name, &one.unit, &one.layer) == (&other.name, &other.unit, &other.layer)
    };
    for figure in run.steps.iter().flat_map(|step| &step.reported) {
        // Steps have mostly the same names; of a step with very many, a search through all would take too long.
        if named.len() > 4_096 || !named.iter().any(|known| is_same(known, figure)) {
            named.push(figure);
        }
    }
    if named.is_empty() {
        return Ok(());
    }
    // A machine has many devices, and most of them do nothing.
    let is_zero = |figure: &&ReportedFigure| {
        run.steps.iter().flat_map(|step| &step.reported).all(|other| !is_same(figure, other) || other.value == 0.0)
    };
    if detail == Detail::Brief && named.len() > BRIEF && named.len() <= MAX_SORTED {
        named.sort_by_key(is_zero);
    }
    let shown = if detail == Detail::Brief { named.len().min(BRIEF) } else { named.len() };
    let title = format!("As {} reports (by its own names)", run.tool.name);
    let grid = if run.steps.len() <= MAX_BESIDE {
        beside(run, &named[..shown], is_same)
    } else {
        below(run, &named[..shown], is_same)
    };
    paper.table(&title, &grid)?;
    match named.len() - shown {
        0 => Ok(()),
        more => paper.remark(&format!("{more} more figures: `--full` shows all.")),
    }
}

/// A row a figure, and the steps side by side.
fn beside(run: &Run, named: &[&ReportedFigure], is_same: impl Fn(&ReportedFigure, &ReportedFigure) -> bool) -> Grid {
    let labels = run.steps.iter().map(|step| step.label.clone());
    let mut grid = Grid::new(3, ["figure", "layer", "unit"].map(str::to_owned).into_iter().chain(labels));
    for figure in named {
        let of_step = run.steps.iter().map(|step| {
            let found = step.reported.iter().find(|other| is_same(figure, other));
            found.map_or_else(|| UNKNOWN.to_owned(), value_of)
        });
        let names = [&figure.name, &figure.layer, &figure.unit].map(Clone::clone);
        grid.push(names.into_iter().chain(of_step).collect());
    }
    grid
}

/// A row a figure and step.
fn below(run: &Run, named: &[&ReportedFigure], is_same: impl Fn(&ReportedFigure, &ReportedFigure) -> bool) -> Grid {
    let mut grid = Grid::new(4, ["figure", "layer", "unit", "step", "value"]);
    for figure in named {
        for step in &run.steps {
            for found in step.reported.iter().filter(|other| is_same(figure, other)) {
                let names = [&figure.name, &figure.layer, &figure.unit, &step.label].map(Clone::clone);
                grid.push(names.into_iter().chain([value_of(found)]).collect());
            }
        }
    }
    grid
}

/// Where a file was not understood.
pub(crate) fn not_understood(paper: &mut dyn Paper, run: &Run, detail: Detail) -> io::Result<()> {
    let Some(imported) = run.imported.as_ref().filter(|imported| !imported.not_understood.is_empty()) else {
        return Ok(());
    };
    if detail == Detail::Brief {
        let places = imported.not_understood.len();
        let places = if places == 1 { "1 place was".to_owned() } else { format!("{places} places were") };
        return paper.aside(&format!("{places} not understood: `--full` names them."));
    }
    let mut grid = Grid::new(3, ["file", "line", "what stands there"]);
    for place in &imported.not_understood {
        let line = place.line.map_or_else(String::new, |line| line.to_string());
        grid.push(vec![place.path.clone(), line, place.what.clone()]);
    }
    paper.table("Not understood", &grid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_as_many_digits_as_tell_something() {
        let shown = [1_234_567.0, 12.5, 0.004_2, 23_456.7, 0.0].map(value);
        assert_eq!(shown, ["1,234,567", "12.50", "4.200e-3", "23,457", "0"]);
    }
}
