//! Production, what was asked for, and what was reached, side by side.

use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use crate::words::{NONE, UNKNOWN, number};
use analysis::{LikeRow, like_rows};
use model::record::{Like, Run};

/// A table of each figure in each step; nothing of a run that is like no production.
pub(crate) fn write(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let Some(like) = &run.like else { return Ok(()) };
    let rows = like_rows(run);
    let mut grid = Grid::new(2, ["step", "figure", "production", "times", "asked", "reached", "difference"]);
    // Of what is neither asked for nor counted there is nothing to compare.
    rows.iter().filter(|row| row.asked.or(row.reached).is_some()).for_each(|row| grid.push(cells(row)));
    if grid.is_empty() {
        return Ok(());
    }
    paper.table(&title(like), &grid)?;
    let gaps = like.aspects.iter().filter_map(|aspect| Some((aspect.figure, aspect.gap.as_ref()?)));
    for (figure, gap) in gaps {
        paper.remark(&format!("{}: {gap}.", figure.name()))?;
    }
    paper.remark(
        "Difference: reached beside production as many times as was asked. Asked is `-` where a figure is not reproduced, and reached \
         `?` where the target does not count it.",
    )
}

fn title(like: &Like) -> String {
    let moment = match like.moments.as_slice() {
        [only] => only.words.clone(),
        hours => format!("{} hours of its day", hours.len()),
    };
    format!("Like {}, {moment}", like.database)
}

fn cells(row: &LikeRow) -> Vec<String> {
    let scale = row.figure.scale();
    let scaled = |value: f64| number(Some(value / scale));
    vec![
        row.step.clone(),
        row.figure.name().to_owned(),
        scaled(row.production),
        ((row.times * 100.0).round() / 100.0).to_string(),
        row.asked.map_or_else(|| NONE.to_owned(), scaled),
        row.reached.map_or_else(|| UNKNOWN.to_owned(), scaled),
        row.difference().map_or_else(|| NONE.to_owned(), |share| format!("{:+.1} %", share * 100.0)),
    ]
}
