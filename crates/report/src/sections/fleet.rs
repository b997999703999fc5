//! The parts of a merged run.

use std::collections::BTreeSet;
use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use crate::text::Detail;
use crate::words::{NONE, UNKNOWN, duration, number, share};
use model::record::{MergedPart, Outcome, PartStep, Run, Step};
use model::units::{Nanos, group_thousands};

/// Rows that a brief report has of one step; of more parts it has the slowest and the fastest.
const MAX_ROWS: usize = 12;

const COLUMNS: [&str; 14] = [
    "step",
    "part",
    "host",
    "sessions",
    "operations/s",
    "p50",
    "p99",
    "errors",
    "processors",
    "busiest %",
    "late",
    "clock",
    "cut",
    "run",
];

/// One row for each part in each step; nothing of a run that is not merged.
pub(crate) fn write(paper: &mut dyn Paper, run: &Run, detail: Detail) -> io::Result<()> {
    if run.parts.is_empty() {
        return Ok(());
    }
    let mut grid = Grid::new(3, COLUMNS);
    let mut left_out = 0;
    for step in &run.steps {
        let mut rows = rows(run, step);
        if detail == Detail::Brief && rows.len() > MAX_ROWS {
            left_out = left_out.max(rows.len() - MAX_ROWS);
            rows = ends(rows);
        }
        for (part, of_step) in rows {
            grid.push(row(step, part, of_step));
        }
    }
    let left_out = match left_out {
        0 => String::new(),
        count => format!("; {count} between the slowest and the fastest are shown with --full"),
    };
    paper.table(
        &format!("Parts, each over its own window (busiest: thread of the generator; late: from the agreed start; clock: to be added for that of part 0){left_out}"),
        &grid,
    )
}

fn rows<'a>(run: &'a Run, step: &Step) -> Vec<(&'a MergedPart, &'a PartStep)> {
    let of_step = |part: &'a MergedPart| Some((part, part.steps.iter().find(|known| known.step == step.index)?));
    run.parts.iter().filter_map(of_step).collect()
}

/// The slowest and the fastest, by their numbers.
fn ends<'a>(mut rows: Vec<(&'a MergedPart, &'a PartStep)>) -> Vec<(&'a MergedPart, &'a PartStep)> {
    let rate = |step: &PartStep| step.operations_per_s.unwrap_or(0.0);
    rows.sort_by(|(_, one), (_, other)| rate(one).total_cmp(&rate(other)));
    let fastest = rows.split_off(rows.len() - MAX_ROWS / 2);
    rows.truncate(MAX_ROWS / 2);
    rows.extend(fastest);
    rows.sort_by_key(|(part, _)| part.number);
    rows
}

fn row(step: &Step, part: &MergedPart, of_step: &PartStep) -> Vec<String> {
    let time = |ns: Option<u64>| ns.map_or_else(|| NONE.to_owned(), |ns| duration(Some(ns)));
    let signed = |ns: i64| {
        let sign = if ns < 0 { "-" } else { "" };
        format!("{sign}{}", Nanos(ns.unsigned_abs()))
    };
    let clock = part.clock.map_or_else(
        || UNKNOWN.to_owned(),
        |clock| match (clock.offset_ns(), clock.uncertainty_ns()) {
            (0, 0) => NONE.to_owned(),
            (offset_ns, uncertainty_ns) => format!("{} +/- {}", signed(offset_ns), Nanos(uncertainty_ns)),
        },
    );
    let cut = match of_step.cut_before_ns + of_step.cut_after_ns {
        0 => NONE.to_owned(),
        ns => Nanos(ns).to_string(),
    };
    let ended = match &part.outcome {
        Outcome::Completed => part.run.clone(),
        Outcome::Interrupted => format!("{} (ended early)", part.run),
        Outcome::Unfinished => format!("{} (killed)", part.run),
        Outcome::Failed { .. } => format!("{} (failed)", part.run),
    };
    vec![
        step.label.clone(),
        part.number.to_string(),
        part.host.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
        of_step.sessions.map_or_else(|| UNKNOWN.to_owned(), |sessions| group_thousands(f64::from(sessions))),
        number(of_step.operations_per_s),
        time(of_step.p50_ns),
        time(of_step.p99_ns),
        of_step.errors.map_or_else(|| UNKNOWN.to_owned(), |errors| group_thousands(errors as f64)),
        of_step.busy_processors.map_or_else(|| UNKNOWN.to_owned(), |busy| format!("{busy:.2}")),
        share(of_step.busiest_share),
        part.start_error_ns.map_or_else(|| UNKNOWN.to_owned(), signed),
        clock,
        cut,
        ended,
    ]
}

/// How many parts on how many hosts there are; nothing of a run that is not merged.
pub(crate) fn fact(run: &Run) -> String {
    let Some(merged) = &run.merged else { return String::new() };
    let hosts: BTreeSet<_> = run.parts.iter().filter_map(|part| part.host.as_ref()).collect();
    let hosts = match hosts.len() {
        0 => String::new(),
        1 => " on one host".to_owned(),
        count => format!(" on {count} hosts"),
    };
    let forced = if merged.forced.is_empty() { "" } else { ", merged with --force" };
    let first = run.parts.first().map_or(0, |part| part.number);
    format!("{} of {}{hosts}{forced}; machine and storage are those of part {first}", run.parts.len(), merged.parts)
}
