//! Reads against writes: the line of a map, and the points that it lies between.

use super::chart::{Across, First, Frame, Line, Lines, Quantity, Scale};
use analysis::{MapAnswer, MappedMix};
use model::record::Run;
use model::units::{group_thousands, percent};

/// Labels below the chart.
const LABELS: usize = 7;
/// Points farther out than this, as a multiple of the line, would press it into a corner.
const FAR: f64 = 1.15;

/// The map of a run; `None` for another run, and where no mix met the limit.
pub(super) fn chart(run: &Run, prefix: &str) -> Option<Lines> {
    let map = MapAnswer::of(run)?;
    let on_line: Vec<(f64, f64)> = map.mixes.iter().filter_map(MappedMix::on_line).map(|[x, y]| (x, y)).collect();
    let most = on_line.iter().fold((0.0_f64, 0.0_f64), |most, point| (most.0.max(point.0), most.1.max(point.1)));
    let point = |mix: &MappedMix, per_s: f64| (per_s * mix.read_share, per_s * (1.0 - mix.read_share));
    let near = |(reads, writes): &(f64, f64)| *reads <= most.0 * FAR && *writes <= most.1 * FAR;
    let dots = |name: &str, per_s: fn(&MappedMix) -> Option<f64>| {
        let points = map.mixes.iter().filter_map(|mix| Some(point(mix, per_s(mix)?))).filter(near);
        Line { name: name.to_owned(), pieces: points.map(|point| vec![point]).collect(), dots: true }
    };
    let lines = vec![
        Line { name: "line".to_owned(), pieces: vec![on_line.clone()], dots: false },
        dots("missed the limit", |mix| mix.missed_per_s),
        dots("met the limit", |mix| mix.carried_per_s),
    ];
    let scale = Scale::from_zero(std::iter::once(most.0))?;
    let sure =
        map.within.map_or_else(String::new, |within| format!(" It is known to {} % either way.", percent(within)));
    let frame = Frame {
        id: format!("{prefix}map"),
        title: format!("Reads and writes within {}", map.limit),
        note: format!(
            "Layer: client. Below the line reads and writes both meet the limit. It lies between the rates of each mix that met the limit and \
             that missed it. Where none missed it, it is a lower bound.{sure}"
        ),
        y_title: "writes/s (layer: client)".to_owned(),
        y_quantity: Quantity::PerSecond,
        first: First::Linear,
        words: spans(&on_line),
    };
    let across = Across {
        title: "reads/s (layer: client)".to_owned(),
        quantity: Quantity::PerSecond,
        range: (0.0, most.0 * FAR),
        ticks: scale.ticks(LABELS),
    };
    (on_line.len() > 1).then_some(Lines {
        frame,
        across,
        lines,
        bands: Vec::new(),
        marks: Vec::new(),
        labels: Vec::new(),
    })
}

/// From where to where the line leads, in words.
fn spans(points: &[(f64, f64)]) -> String {
    let words: Vec<String> = points
        .iter()
        .map(|(reads, writes)| {
            format!("{} reads/s with {} writes/s", group_thousands(*reads), group_thousands(*writes))
        })
        .collect();
    format!("{}.", words.join("; "))
}
