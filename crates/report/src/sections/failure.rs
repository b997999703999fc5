//! What a failure cost the load that went on.

use std::collections::BTreeMap;
use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use analysis::{FailureCost, FailureDemand, Pause};
use model::record::Run;
use model::shown::shown;
use model::units::{Nanos, group_thousands};

/// Each demand with its answer, then what the failure cost: a label and words.
pub fn failure_rows(cost: &FailureCost, demands: &[FailureDemand]) -> Vec<(&'static str, String)> {
    let answer = |met: Option<bool>| met.map_or("unknown", |is_met| if is_met { "yes" } else { "no" });
    let mut rows: Vec<(&'static str, String)> =
        demands.iter().map(|FailureDemand { demand, met }| (answer(*met), demand.clone())).collect();
    rows.push((
        "pause",
        match cost.pause {
            Pause::None => "none was seen".to_owned(),
            Pause::Seen { from_ns, length_ns } => {
                format!("{} without a completed operation, {} into the window", Nanos(length_ns), Nanos(from_ns))
            }
            Pause::AtLeast { length_ns } => format!("{} or longer without a completed operation", Nanos(length_ns)),
        },
    ));
    rows.extend(
        cost.longest_ns
            .map(|ns| ("longest", format!("{} for one operation of the window, from due to finished", Nanos(ns)))),
    );
    let when = |at_ns: u64| cost.since(at_ns);
    if let Some(backlog) = cost.backlog {
        let gone = cost.gone_ns.map(|at_ns| format!(", the last ended {}", when(at_ns)));
        let backlog = group_thousands(backlog as f64);
        rows.push(("backlog", format!("{backlog} operations waited at its worst{}", gone.unwrap_or_default())));
    }
    rows.push((
        "as before",
        match (cost.before, cost.as_before_ns) {
            (None, _) => "unknown: no whole second of the window was before the failure".to_owned(),
            (Some(_), Some(at_ns)) => format!("{}, to the end of the window", when(at_ns)),
            (Some(_), None) => "not within the window".to_owned(),
        },
    ));
    if let Some(before) = cost.before {
        let rate = group_thousands(before.rate_per_s);
        rows.push(("before", format!("{rate} operations/s, p99 {}", Nanos(before.p99_ns))));
    }
    rows.push((
        "errors",
        match (cost.errors, cost.unended, cost.unsent) {
            (0, 0, 0) => "none".to_owned(),
            (errors, unended, unsent) => format!(
                "{errors} failed{}, {unended} never ended, {unsent} were due and never sent",
                kinds(&cost.errors_by_kind)
            ),
        },
    ));
    let connects: u64 = cost.failed_connects.values().sum();
    if connects > 0 {
        rows.push(("connects", format!("{connects} attempts failed{}", kinds(&cost.failed_connects))));
    }
    rows.extend(cost.cause.as_ref().map(|cause| ("cause", shown(cause).into_owned())));
    let recovered = cost.recovered_ns.map(|ns| format!(", recovery at {}", Nanos(ns)));
    let marks = format!("failure at {} of the window{}", Nanos(cost.failed_ns), recovered.unwrap_or_default());
    rows.push(("marks", marks));
    if !cost.has_rate {
        let note = "the load has no `--rate`: operations that would have come meanwhile are not counted";
        rows.push(("note", note.to_owned()));
    }
    rows
}

/// ` (refused 12, timed out 3)`; nothing where no kinds are known.
fn kinds(by_kind: &BTreeMap<String, u64>) -> String {
    let kinds = by_kind.iter().filter(|(_, many)| **many > 0);
    let kinds: Vec<String> = kinds.map(|(kind, many)| format!("{} {many}", shown(kind))).collect();
    if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) }
}

/// The same as a table; nothing of a run without a failure.
pub(super) fn write(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let Some((marks, cost)) = run.steps.first().and_then(|step| step.failure).zip(FailureCost::of(run)) else {
        return Ok(());
    };
    let mut grid = Grid::new(2, ["failure", "what it cost"]);
    for (label, words) in failure_rows(&cost, &cost.demands(marks)) {
        grid.push(vec![label.to_owned(), words]);
    }
    paper.table("Failure", &grid)
}
