//! The load of a network: what crossed it, and how long operations took.

use model::record::Workload;
use std::io;

use super::spread;
use crate::grid::Grid;
use crate::paper::Paper;
use crate::words::{NONE, UNKNOWN, longest, mean, number, quantile, share};
use analysis::{Bulk, MatrixLink, NetworkMatrix, NetworkStop, rate};
use model::record::{NetworkEnd, NetworkSide, Run, Step};
use model::units::{Nanos, group_thousands};

/// Waits that an answer is cut into, and the headings of their means.
const PARTS: [(&str, &str); 3] =
    [("network round trip", "network"), ("remote service", "server"), ("RFS write", "disk")];
const LINKS: &str = "Links (Gbit/s that were received; each server by itself, and all of them at once)";

/// Whether a run is a load of ours on a network.
pub(crate) fn is_of(run: &Run) -> bool {
    run.imported.is_none() && run.workload() == Workload::Network
}

/// One row for each step and kind of operation.
pub(super) fn write(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let is_open = run.steps.iter().any(|step| step.load.rate_operations_per_s.is_some());
    let part = |(event, _): &&(&str, &str)| {
        run.steps.iter().any(|step| step.waits.iter().any(|wait| wait.event == *event && wait.waits.count() > 0))
    };
    let parts: Vec<&(&str, &str)> = PARTS.iter().filter(part).collect();
    let mut header = vec!["step", "kind", if is_open { "asked/s" } else { "under way" }, "ops/s", "Gbit/s up", "down"];
    header.extend(["mean", "p50", "p99", "p99.9", "max"]);
    header.extend(parts.iter().map(|(_, heading)| *heading));
    let mut grid = Grid::new(2, header);
    let mut failed = Grid::new(2, ["step", "kind", "errors", "% of operations"]);
    for step in &run.steps {
        for operations in step.operations.iter().filter(|operations| operations.count > 0) {
            let load = match step.load.rate_operations_per_s {
                Some(rate) => number(Some(rate)),
                None => step.load.sessions.map_or_else(|| UNKNOWN.to_owned(), |it| group_thousands(f64::from(it))),
            };
            let finished = operations.count - operations.errors;
            let mut row = vec![step.label.clone(), operations.kind.clone(), load];
            row.push(number(rate(Some(finished), step.window.duration_ns)));
            row.extend(gigabits(step));
            let times = &operations.response;
            row.push(mean(times));
            row.extend([0.5, 0.99, 0.999].map(|part| quantile(times, part)));
            row.push(longest(times));
            // Waits are those of all kinds that are answered; bulk flows have none.
            let is_answered = !matches!(operations.kind.as_str(), "send" | "receive");
            row.extend(parts.iter().map(|(event, _)| {
                let wait = step.waits.iter().find(|wait| wait.event == *event).filter(|_| is_answered);
                wait.map_or_else(|| NONE.to_owned(), |wait| mean(&wait.times()))
            }));
            if operations.errors > 0 {
                let (errors, all) = (operations.errors as f64, operations.count as f64);
                let counts = [group_thousands(errors), share(Some(errors / all))];
                failed.push([step.label.clone(), operations.kind.clone()].into_iter().chain(counts).collect());
            }
            grid.push(row);
        }
    }
    if grid.is_empty() {
        return Ok(());
    }
    links(paper, run)?;
    let due = if is_open { "from due to finished" } else { "from sent to finished" };
    paper.table(&format!("Load (times {due}; network, server and disk: means of the parts of an answer)"), &grid)?;
    if !failed.is_empty() {
        paper.table("Operations that ended in errors", &failed)?;
    }
    spread::write(paper, run)
}

/// Of all operations of a step together.
fn gigabits(step: &Step) -> [String; 2] {
    let of = |side, rate| NetworkEnd::sum_of(&step.network, side, rate);
    let shown = |bits: Option<f64>| bits.map_or_else(|| UNKNOWN.to_owned(), |bits| format!("{:.3}", bits / 1e9));
    let up = of(NetworkSide::Server, NetworkEnd::received_bits_per_s)
        .or_else(|| of(NetworkSide::Client, NetworkEnd::sent_bits_per_s));
    [shown(up), shown(of(NetworkSide::Client, NetworkEnd::received_bits_per_s))]
}

/// Links from one host to several servers, beside each other: one row for each server; nothing where a run has only one.
fn links(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let Some(matrix) = NetworkMatrix::of(run) else { return Ok(()) };
    let header = ["server", "round trip", "p99", "to", "from", "% of best", "all: to", "all: from", "stopped by"];
    let mut grid = Grid::new(1, header);
    for link in &matrix.links {
        grid.push(link_row(&matrix, link));
    }
    paper.table(LINKS, &grid)
}

fn link_row(matrix: &NetworkMatrix, link: &MatrixLink) -> Vec<String> {
    let time = |time: Option<Nanos>| time.map_or_else(|| UNKNOWN.to_owned(), |time| time.to_string());
    let gigabits = |bits: Option<f64>| match bits.map(|bits| bits / 1e9) {
        Some(rate) if rate < 10.0 => format!("{rate:.3}"),
        rate => number(rate),
    };
    let ways = |bulk: &Bulk| [gigabits(bulk.up), gigabits(bulk.down)];
    let mut row = vec![link.server.clone()];
    row.push(time(link.idle.map(|idle| idle.median)));
    row.push(time(link.idle.map(|idle| idle.p99)));
    row.extend(ways(&link.alone));
    row.push(share(matrix.share_of_best(link)));
    row.extend(ways(&link.together));
    row.push(stopped_by(&link.stops));
    row
}

/// `to: receive window; from: loss`, or once what is the same for both.
fn stopped_by(stops: &[NetworkStop]) -> String {
    let of = |from: NetworkSide| stops.iter().find(|stop| stop.from == from).map(NetworkStop::name);
    match (of(NetworkSide::Client), of(NetworkSide::Server)) {
        (Some(to), Some(from)) if to == from => to,
        (Some(to), Some(from)) => format!("to: {to}; from: {from}"),
        (Some(to), None) => format!("to: {to}"),
        (None, Some(from)) => format!("from: {from}"),
        (None, None) => NONE.to_owned(),
    }
}
