//! Links from one host to several servers, beside each other.

use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use crate::words::{NONE, UNKNOWN, number, share};
use analysis::{Bulk, MatrixLink, NetworkMatrix, NetworkStop};
use model::record::{NetworkSide, Run};
use model::units::Nanos;

const TITLE: &str = "Links (Gbit/s that were received; each server by itself, and all of them at once)";

/// One row for each server; nothing where a run has only one.
pub(super) fn write(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let Some(matrix) = NetworkMatrix::of(run) else { return Ok(()) };
    let header = ["server", "round trip", "p99", "to", "from", "% of best", "all: to", "all: from", "stopped by"];
    let mut grid = Grid::new(1, header);
    for link in &matrix.links {
        grid.push(row(&matrix, link));
    }
    paper.table(TITLE, &grid)
}

fn row(matrix: &NetworkMatrix, link: &MatrixLink) -> Vec<String> {
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
