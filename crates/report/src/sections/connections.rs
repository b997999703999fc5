//! Numbers of connections to an NFS server beside each other.

use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use crate::words::{UNKNOWN, number};
use analysis::{ConnectionPoint, ConnectionSweep, Counted};
use model::record::Run;
use model::units::{group_thousands, percent};

/// One row for each number of connections; nothing of a run that did not vary them.
pub(crate) fn write(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let Some(found) = ConnectionSweep::of(run) else { return Ok(()) };
    let (unit, scale) = match found.counted {
        Counted::Requests => ("IOPS", 1.0),
        Counted::Bytes => ("MB/s", 1e6),
    };
    let least = found.points.first().map_or(1.0, |first| first.measured.per_s);
    let mut grid =
        Grid::new(1, ["connections", "in all", unit, "+/- %", "x first", "mean", "CPU us each", "full", "s left out"]);
    for point in &found.points {
        let ConnectionPoint { each, all, measured, mean, processor_us, full, .. } = point;
        let known = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
        grid.push(vec![
            each.to_string(),
            all.to_string(),
            group_thousands(measured.per_s / scale),
            percent(2.0 * measured.error_per_s / measured.per_s),
            format!("{:.2}", measured.per_s / least),
            known(mean.map(|mean| mean.to_string())),
            number(*processor_us),
            if full.is_some() { "yes" } else { "no" }.to_owned(),
            format!("{} of {}", measured.left_out, measured.left_out + measured.seconds),
        ]);
    }
    let depth = group_thousands(found.depth.into());
    let title = format!(
        "Connections of each thread to each path, with {depth} outstanding (from medians of undisturbed seconds; CPU: processor time of \
         this process; full: no room for more calls)"
    );
    paper.table(&title, &grid)
}
