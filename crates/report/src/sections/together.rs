//! Volumes alone and all together.

use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use analysis::{Counted, Measured, Together, TogetherPoint};
use model::record::Run;
use model::units::{group_thousands, percent};

/// One row a depth; nothing of a run that did not compare volumes.
pub(crate) fn write(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let Some(found) = Together::of(run).filter(|found| !found.points.is_empty()) else { return Ok(()) };
    let (unit, scale) = match found.counted {
        Counted::Requests => ("requests/s", 1.0),
        Counted::Bytes => ("MB/s", 1e6),
    };
    let alone = found.volumes.iter().map(|(letter, _)| format!("{letter} alone"));
    let names = ["sum", "together", "% of sum", "+/- %", "s left out"].map(str::to_owned);
    let mut grid = Grid::new(0, ["outstanding each".to_owned()].into_iter().chain(alone).chain(names));
    for point in &found.points {
        let TogetherPoint { depth, alone, together, share, share_error, .. } = point;
        let number = |per_s: f64| group_thousands(per_s / scale);
        let (out, all) = point.left_out();
        let mut row = vec![group_thousands(f64::from(*depth))];
        row.extend(alone.iter().map(|Measured { per_s, .. }| number(*per_s)));
        row.extend([number(point.sum_per_s()), number(together.per_s), percent(*share), percent(*share_error)]);
        row.push(format!("{out} of {all}"));
        grid.push(row);
    }
    paper.table(&format!("Volumes alone and together ({unit}, from medians of undisturbed seconds)"), &grid)
}
