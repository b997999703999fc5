//! What a check asked for and what came of it.

use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use crate::words::{NONE, UNKNOWN, number};
use analysis::check::{Kind, Reached, steps};
use model::record::Run;

/// A table of each kind of work in each step, in the order in which they ran; nothing of a run that was no check.
pub(crate) fn write(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let mut grid = Grid::new(2, ["step", "work", "asked/s", "done/s", "percentile", "reached", "once sent", "limit"]);
    for (label, kinds) in steps(run) {
        kinds.iter().for_each(|kind| grid.push(row(&label, kind)));
    }
    if grid.is_empty() { Ok(()) } else { paper.table("What was asked, and what came of it", &grid) }
}

fn row(label: &str, kind: &Reached) -> Vec<String> {
    let (scale, unit) = if kind.kind == Kind::Scan { (1e6, " MB") } else { (1.0, "") };
    let rate = |per_s: Option<f64>| number(per_s.map(|per_s| per_s / scale)) + unit;
    let value = |value: Option<analysis::QuantileValue>, absent: &str| {
        value.map_or_else(|| absent.to_owned(), |value| value.to_string())
    };
    vec![
        label.to_owned(),
        kind.kind.noun().to_owned(),
        rate(Some(kind.asked_per_s)),
        rate(kind.per_s),
        kind.quantile_name(),
        value(kind.value, UNKNOWN),
        value(kind.service, NONE),
        kind.within.map_or_else(|| NONE.to_owned(), |within| within.limit.to_string()),
    ]
}
