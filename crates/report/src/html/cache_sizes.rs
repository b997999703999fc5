//! The hit ratio of the buffer cache over its size.

use super::chart::{Across, At, Drawn, First, Frame, Line, Lines, Mark, Quantity, Scale};
use model::record::{Run, Step};
use model::units::Bytes;

/// Labels below the chart.
const LABELS: usize = 6;
/// Steps that are drawn, the last ones: the curve is one of what was asked for, and hardly one of the load.
const MAX_LINES: usize = 4;

/// Draws the curve of each step; `None` where there is none.
pub(super) fn draw(run: &Run, prefix: &str) -> Option<Drawn> {
    let steps: Vec<&Step> = run.steps.iter().filter(|step| step.cache_curve.is_some()).collect();
    let line = |step: &&Step| {
        let points = step.cache_curve.iter().flat_map(|curve| &curve.points);
        let points = points.map(|point| (mebibytes(point.cache_bytes), point.hit_ratio * 100.0)).collect();
        Line { name: step.label.clone(), pieces: vec![points], dots: true }
    };
    let lines: Vec<Line> = steps.iter().skip(steps.len().saturating_sub(MAX_LINES)).map(line).collect();
    let most = lines.iter().flat_map(|line| line.pieces.iter().flatten().map(|(x, _)| *x)).fold(0.0, f64::max);
    let scale = Scale::from_zero(std::iter::once(most))?;
    let own = run
        .target
        .cache_bytes
        .map(|bytes| Mark { at: At::X(mebibytes(bytes)), name: format!("this run: {}", Bytes(bytes)) });
    let frame = Frame {
        id: format!("{prefix}cache-sizes"),
        title: "Hit ratio over the size of the buffer cache".to_owned(),
        note: "Layer: engine. By how soon the blocks of touches drawn at random were touched again, for a cache that replaces what \
               was used least recently and is warm. A line ends where the load was too short to say more."
            .to_owned(),
        y_title: "hits, % of logical reads".to_owned(),
        y_quantity: Quantity::Percent,
        first: First::Linear,
        words: "The table below has the same in figures.".to_owned(),
    };
    let across = Across {
        title: "buffer cache (--cache)".to_owned(),
        quantity: Quantity::Mebibytes,
        range: (0.0, most * 1.03),
        ticks: scale.ticks(LABELS),
    };
    Lines { frame, across, lines, bands: Vec::new(), marks: own.into_iter().collect(), labels: Vec::new() }.draw()
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1_u32 << 20)
}
