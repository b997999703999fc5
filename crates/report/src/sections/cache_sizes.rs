//! What buffer caches of other sizes would have answered.

use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use crate::words::{UNKNOWN, share};
use model::record::{CachePoint, Run, Step};
use model::units::Bytes;

/// Sizes of a table.
const MAX_SIZES: usize = 10;
/// Doublings below the cache of the run that are shown.
const BELOW: u32 = 3;

/// Hit ratios over the size of the cache, a row each step; nothing where no step has them.
pub(crate) fn write(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let points = |step: &Step| step.cache_curve.as_ref().map(|curve| curve.points.clone()).unwrap_or_default();
    let own = run.target.cache_bytes.unwrap_or(0);
    let is_shown = |point: &CachePoint| point.cache_bytes.is_power_of_two() && point.cache_bytes >= own >> BELOW;
    let mut sizes: Vec<u64> =
        run.steps.iter().flat_map(points).filter(is_shown).map(|point| point.cache_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.truncate(MAX_SIZES);
    if sizes.is_empty() {
        return Ok(());
    }
    let names = sizes.iter().map(|size| Bytes(*size).to_string());
    let mut grid = Grid::new(1, ["step".to_owned()].into_iter().chain(names));
    for step in &run.steps {
        let known = points(step);
        if known.is_empty() {
            continue;
        }
        let ratio = |size: &u64| {
            let point = known.iter().find(|point| point.cache_bytes == *size);
            point.map_or_else(|| UNKNOWN.to_owned(), |point| share(Some(point.hit_ratio)))
        };
        grid.push([step.label.clone()].into_iter().chain(sizes.iter().map(ratio)).collect());
    }
    paper.table("Hit % of a buffer cache of another size (layer: engine; by how soon blocks were touched again)", &grid)
}
