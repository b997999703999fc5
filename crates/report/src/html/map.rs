//! Reads against writes or updates: the line of a map, and the points that it lies between.

use super::chart::{Across, First, Frame, Line, Lines, Quantity, Scale};
use analysis::{MapAnswer, MappedMix, Tagged, tagged_platform};
use model::platforms::{Asked, Catalogue, Expectation};
use model::record::Run;
use model::units::{group_thousands, percent};

/// Labels below the chart.
const LABELS: usize = 7;
/// Points farther out than this, as a multiple of the line, would press it into a corner.
const FAR: f64 = 1.15;
/// A demand and published limits are drawn up to this multiple of the line, and else said.
const SIGHT: f64 = 2.5;
/// The sine of an angle below which a line is straight.
const STRAIGHT: f64 = 1e-3;
/// Parts that mixes are divided into for published limits.
const MIXES: u32 = 20;

/// The map of a run, with a database's `windows`: reads and writes per second of each. `None` for another run, and where no mix met the limit.
pub(super) fn chart(run: &Run, prefix: &str, windows: &[(f64, f64)]) -> Option<Lines> {
    let map = MapAnswer::of(run)?;
    let on_line: Vec<(f64, f64)> = map.mixes.iter().filter_map(MappedMix::on_line).map(|[x, y]| (x, y)).collect();
    let most = on_line.iter().fold((0.0_f64, 0.0_f64), |most, point| (most.0.max(point.0), most.1.max(point.1)));
    let point = |mix: &MappedMix, per_s: f64| (per_s * mix.read_share, per_s * (1.0 - mix.read_share));
    let near = |(reads, writes): &(f64, f64)| *reads <= most.0 * FAR && *writes <= most.1 * FAR;
    let dots = |name: &str, per_s: fn(&MappedMix) -> Option<f64>| {
        let points = map.mixes.iter().filter_map(|mix| Some(point(mix, per_s(mix)?))).filter(near);
        Line { name: name.to_owned(), pieces: points.map(|point| vec![point]).collect(), dots: true }
    };
    let mut lines = vec![
        Line { name: "line".to_owned(), pieces: vec![on_line.clone()], dots: false },
        dots("missed the limit", |mix| mix.missed_per_s),
        dots("met the limit", |mix| mix.carried_per_s),
    ];
    let is_in_sight = |(reads, writes): (f64, f64)| reads <= SIGHT * most.0 && writes <= SIGHT * most.1;
    let changes = map.of.changes();
    let (mut words, mut widest) = (vec![spans(&on_line, changes)], most.0);
    if let Some(demand) = map.demand {
        let point = (demand.reads_per_s, demand.writes_per_s);
        words.extend(map.place_words().map(|words| format!("{words}.")));
        if is_in_sight(point) {
            widest = widest.max(point.0);
            lines.push(Line { name: "demand".to_owned(), pieces: vec![vec![point]], dots: true });
        }
    }
    if !windows.is_empty() {
        let near: Vec<(f64, f64)> = windows.iter().copied().filter(|point| is_in_sight(*point)).collect();
        let far = windows.len() - near.len();
        if far > 0 {
            let are = if far == 1 { "1 window is".to_owned() } else { format!("{far} windows are") };
            words.push(format!("{are} too far beyond the line to be drawn."));
        }
        widest = near.iter().fold(widest, |most, (reads, _)| most.max(*reads));
        let pieces = near.into_iter().map(|point| vec![point]).collect();
        lines.push(Line { name: "windows of the demand".to_owned(), pieces, dots: true });
    }
    if let Some((platform, published)) = map.block_bytes.and_then(|bytes| published(run, bytes)) {
        let ends = [published.first(), published.last()].map(|end| end.copied().unwrap_or_default());
        words.push(format!("Published for {platform}: {}", spans(&ends, changes)));
        if ends.into_iter().all(is_in_sight) {
            widest = ends.iter().fold(widest, |most, (reads, _)| most.max(*reads));
            lines.push(Line { name: "published limits".to_owned(), pieces: vec![published], dots: false });
        }
    }
    let scale = Scale::from_zero(std::iter::once(widest))?;
    let sure =
        map.within.map_or_else(String::new, |within| format!(" It is known to {} % either way.", percent(within)));
    let frame = Frame {
        id: format!("{prefix}map"),
        title: format!("Reads and {changes} within {}", map.limit),
        note: format!(
            "Layer: client. Below the line reads and {changes} both meet the limit. It lies between the rates of each mix that met the limit and \
             that missed it. Where none missed it, it is a lower bound.{sure}"
        ),
        y_title: format!("{changes}/s (layer: client)"),
        y_quantity: Quantity::PerSecond,
        first: First::Linear,
        words: words.join(" "),
    };
    let across = Across {
        title: "reads/s (layer: client)".to_owned(),
        quantity: Quantity::PerSecond,
        range: (0.0, widest * FAR),
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

/// The platform that the tags of a run name, and what is published that it carries of each mix of such requests, reads alone first.
fn published(run: &Run, block_bytes: u32) -> Option<(String, Vec<(f64, f64)>)> {
    let Tagged::Platform(platform) = tagged_platform(run, Catalogue::in_reports()) else { return None };
    let of_mix = |step: u32| {
        let read_share = f64::from(MIXES - step) / f64::from(MIXES);
        let asked = Asked { read_share, block_bytes: f64::from(block_bytes), hit_share: 0.0 };
        let per_s = Expectation::of(&platform, asked).sustained()?.per_s;
        Some((per_s * read_share, per_s * (1.0 - read_share)))
    };
    let mut points: Vec<(f64, f64)> = (0..=MIXES).map(of_mix).collect::<Option<_>>()?;
    // Nothing was measured there, so that only ends and corners are points.
    let is_corner = |[one, middle, other]: [(f64, f64); 3]| {
        let (there, back) = ((middle.0 - one.0, middle.1 - one.1), (other.0 - middle.0, other.1 - middle.1));
        let [there_long, back_long] = [there, back].map(|(reads, writes)| reads.hypot(writes));
        (there.0 * back.1 - there.1 * back.0).abs() > STRAIGHT * there_long * back_long
    };
    let corners: Vec<bool> = points.windows(3).map(|three| is_corner([three[0], three[1], three[2]])).collect();
    let last = points.len() - 1;
    let mut place = 0;
    points.retain(|_| {
        place += 1;
        place == 1 || place == last + 1 || corners[place - 2]
    });
    Some((platform.name(), points))
}

/// From where to where the line leads, in words.
fn spans(points: &[(f64, f64)], changes: &str) -> String {
    let words: Vec<String> = points
        .iter()
        .map(|(reads, writes)| {
            format!("{} reads/s with {} {changes}/s", group_thousands(*reads), group_thousands(*writes))
        })
        .collect();
    format!("{}.", words.join("; "))
}
