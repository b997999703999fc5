//! Connections that were made while load ran.

use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use crate::words::{NONE, duration, mean, number, quantile};
use analysis::{rate, wait};
use model::record::{CONNECT, Run};
use model::units::group_thousands;

/// How many there were, how long they took, and what stood against others. Nothing where none was made.
pub(crate) fn write(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let mut grid = Grid::new(1, ["step", "connections", "/s", "failed", "mean", "p50", "p99", "p99.9", "max"]);
    for step in &run.steps {
        let made = wait(step, CONNECT).map(|wait| &wait.waits);
        let failed: u64 = step.failed_connects.values().sum();
        if made.is_none() && failed == 0 {
            continue;
        }
        let some = |count: u64| if count == 0 { NONE.to_owned() } else { group_thousands(count as f64) };
        let count = made.map_or(0, |times| times.count());
        let per_s = number(rate(Some(count), step.window.duration_ns));
        let times = made.map_or_else(
            || vec![NONE.to_owned(); 5],
            |times| {
                let quantiles = [0.5, 0.99, 0.999].map(|q| quantile(times, q));
                [mean(times)].into_iter().chain(quantiles).chain([duration(times.max_ns())]).collect()
            },
        );
        grid.push([step.label.clone(), some(count), per_s, some(failed)].into_iter().chain(times).collect());
    }
    paper.table("Connections made anew, and how long each took until it could be used (layer: client)", &grid)?;
    for step in run.steps.iter().filter(|step| !step.failed_connects.is_empty()) {
        let reasons = step.failed_connects.iter();
        let reasons: Vec<String> =
            reasons.map(|(reason, count)| format!("{reason} {}", group_thousands(*count as f64))).collect();
        paper.remark(&format!(
            "{}: attempts at a connection that failed and were repeated: {}",
            step.label,
            reasons.join(", ")
        ))?;
    }
    Ok(())
}
