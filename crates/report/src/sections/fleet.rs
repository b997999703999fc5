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

/// A part, and what it did in a step.
type Row<'a> = (&'a MergedPart, &'a PartStep);

/// Heading and value of a column.
type Column = (&'static str, fn(&Row<'_>) -> String);

const COLUMNS: [Column; 11] = [
    ("sessions", |(_, step)| known(step.sessions, |sessions| group_thousands(f64::from(sessions)))),
    ("operations/s", |(_, step)| number(step.operations_per_s)),
    ("p50", |(_, step)| duration(step.p50_ns)),
    ("p99", |(_, step)| duration(step.p99_ns)),
    ("errors", |(_, step)| known(step.errors, |errors| group_thousands(errors as f64))),
    ("processors", |(_, step)| known(step.busy_processors, |busy| format!("{busy:.2}"))),
    ("busiest %", |(_, step)| share(step.busiest_share)),
    ("late", |(part, _)| known(part.start_error_ns, signed)),
    ("clock", |(part, _)| {
        known(part.clock, |clock| match (clock.offset_ns(), clock.uncertainty_ns()) {
            (0, 0) => NONE.to_owned(),
            (offset_ns, uncertainty_ns) => format!("{} +/- {}", signed(offset_ns), Nanos(uncertainty_ns)),
        })
    }),
    ("cut", |(_, step)| match step.cut_before_ns.saturating_add(step.cut_after_ns) {
        0 => NONE.to_owned(),
        ns => Nanos(ns).to_string(),
    }),
    ("run", |(part, _)| match &part.outcome {
        Outcome::Completed => part.run.clone(),
        Outcome::Interrupted => format!("{} (ended early)", part.run),
        Outcome::Unfinished => format!("{} (killed)", part.run),
        Outcome::Failed { .. } => format!("{} (failed)", part.run),
    }),
];

fn known<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), show)
}

fn signed(ns: i64) -> String {
    format!("{}{}", if ns < 0 { "-" } else { "" }, Nanos(ns.unsigned_abs()))
}

/// One row for each part in each step; nothing of a run that is not merged.
pub(crate) fn write(paper: &mut dyn Paper, run: &Run, detail: Detail) -> io::Result<()> {
    if run.parts.is_empty() {
        return Ok(());
    }
    let mut all = Vec::new();
    let mut left_out = 0;
    for step in &run.steps {
        let mut rows = rows(run, step);
        if detail == Detail::Brief && rows.len() > MAX_ROWS {
            left_out = left_out.max(rows.len() - MAX_ROWS);
            rows = ends(rows);
        }
        let host = |part: &MergedPart| part.host.clone().unwrap_or_else(|| UNKNOWN.to_owned());
        all.extend(rows.into_iter().map(|row| ([step.label.clone(), row.0.number.to_string(), host(row.0)], row)));
    }
    let left_out = match left_out {
        0 => String::new(),
        count => format!("; {count} between the slowest and the fastest are shown with --full"),
    };
    paper.table(
        &format!("Parts, each over its own window (busiest: thread of the generator; late: from the agreed start; clock: to be added for that of part 0){left_out}"),
        &Grid::of(["step", "part", "host"], &COLUMNS[..], all),
    )
}

fn rows<'a>(run: &'a Run, step: &Step) -> Vec<Row<'a>> {
    let of_step = |part: &'a MergedPart| Some((part, part.steps.iter().find(|known| known.step == step.index)?));
    run.parts.iter().filter_map(of_step).collect()
}

/// The slowest and the fastest, by their numbers.
fn ends(mut rows: Vec<Row<'_>>) -> Vec<Row<'_>> {
    let rate = |step: &PartStep| step.operations_per_s.unwrap_or(0.0);
    rows.sort_by(|(_, one), (_, other)| rate(one).total_cmp(&rate(other)));
    let fastest = rows.split_off(rows.len() - MAX_ROWS / 2);
    rows.truncate(MAX_ROWS / 2);
    rows.extend(fastest);
    rows.sort_by_key(|(part, _)| part.number);
    rows
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
