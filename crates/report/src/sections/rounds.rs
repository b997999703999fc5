//! A long load, round by round.

use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use crate::text::Detail;
use crate::words::{duration, mean, number, quantile};
use analysis::{Round, rounds};
use model::record::Run;
use model::units::Nanos;

/// Rows of a brief report; more rounds than that are joined.
const MAX_ROWS: usize = 30;

/// A table of the rounds of each step, if the run says how long its rounds are.
pub(crate) fn write(paper: &mut dyn Paper, run: &Run, detail: Detail) -> io::Result<()> {
    let most = rounds(run, 1).iter().map(|(_, rounds)| rounds.len()).max().unwrap_or(0);
    let join = match detail {
        Detail::Full => 1,
        Detail::Brief => most.div_ceil(MAX_ROWS),
    };
    for (step, rounds) in rounds(run, join) {
        let Some(first) = rounds.first() else { continue };
        let length = first.length;
        let joined = if join > 1 { format!(", {join} rounds a line (all of them with --full)") } else { String::new() };
        let columns = ["after", "operations/s", "least s", "most s", "MB/s", "mean", "p50", "p99", "p99.9", "max"];
        let mut grid = Grid::new(1, columns);
        rounds.iter().for_each(|round| grid.push(row(round)));
        paper.table(&format!("Rounds of {}, {length} each{joined}", step.label), &grid)?;
    }
    Ok(())
}

fn row(round: &Round) -> Vec<String> {
    let Round { begins, operations_per_s, seconds_range, megabytes_per_s, response, length: _ } = round;
    let (least, most) = seconds_range.unzip();
    let mut row = vec![if *begins == Nanos(0) { "0 s".to_owned() } else { begins.to_string() }];
    row.extend([*operations_per_s, least, most, *megabytes_per_s].map(number));
    row.push(mean(response));
    row.extend([0.5, 0.99, 0.999].map(|q| quantile(response, q)));
    row.push(duration(response.max_ns()));
    row
}
