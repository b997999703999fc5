//! How much is carried, over what was varied: connections to a server, or how many wait at the same time.

use super::chart::{Across, First, Frame, Line, Lines, Quantity, Scale};
use super::load_line::{rate_name, rate_of};
use analysis::{ConnectionSweep, Counted, Series};
use model::record::{Run, Step};
use model::units::group_thousands;

/// Labels below the chart.
const LABELS: usize = 8;

/// Throughput over connections; `None` of a run that did not vary them.
pub(super) fn over_connections(run: &Run, prefix: &str) -> Option<Lines> {
    let found = ConnectionSweep::of(run)?;
    let (unit, scale) = match found.counted {
        Counted::Requests => (rate_name(run), 1.0),
        Counted::Bytes => ("MB/s (layer: client)", 1e6),
    };
    let curve = found.points.iter().map(|point| (f64::from(point.each), point.measured.per_s / scale)).collect();
    let lines = vec![Line { name: "throughput".to_owned(), pieces: vec![curve], dots: true }];
    let frame = Frame {
        id: format!("{prefix}connections"),
        title: "Throughput over connections".to_owned(),
        note: format!(
            "With {} requests outstanding over all connections; medians of undisturbed seconds.",
            group_thousands(found.depth.into())
        ),
        y_title: unit.to_owned(),
        y_quantity: Quantity::PerSecond,
        first: First::Linear,
        words: format!("{}.", capital(found.phrase())),
    };
    drawn(frame, "connections of each thread to each path", lines)
}

/// Throughput of several runs over how many requests or sessions each had at the same time; `None` where none has two loads.
pub(super) fn over_load(runs: &[(&Run, &str)]) -> Option<Lines> {
    let (mut lines, mut words) = (Vec::new(), Vec::new());
    for (run, name) in runs {
        for series in Series::of(run).iter().filter(|series| series.is_closed_loop()) {
            let curve = mean_by_load(run, &series.steps);
            let most = curve.iter().copied().reduce(|one, other| if other.1 > one.1 { other } else { one });
            let name = if series.name.is_empty() { (*name).to_owned() } else { format!("{name}, {}", series.name) };
            let said = most.map(|(load, rate)| format!("{name}: at most {}/s, with {load}", group_thousands(rate)));
            words.extend(said);
            lines.push(Line { name, pieces: vec![curve], dots: true });
        }
    }
    if lines.iter().all(|line| line.pieces[0].len() < 2) {
        return None;
    }
    let mut rates: Vec<&str> = runs.iter().map(|(run, _)| rate_name(run)).collect();
    rates.dedup();
    let slots = Series::of(runs.first()?.0).first().map_or("sessions", |series| series.words.slots());
    let frame = Frame {
        id: "throughput".to_owned(),
        title: format!("Throughput over {slots}"),
        note: "Means over each measured window, and over the repeats of a load. Higher is better.".to_owned(),
        y_title: rates.join(" or "),
        y_quantity: Quantity::PerSecond,
        first: First::Linear,
        words: format!("{}.", words.join("; ")),
    };
    drawn(frame, slots, lines)
}

/// Load and mean rate of the steps with that load, least load first.
fn mean_by_load(run: &Run, steps: &[&Step]) -> Vec<(f64, f64)> {
    let of_load = |repeats: &[&Step]| {
        let rates: Vec<f64> = repeats.iter().filter_map(|step| rate_of(run, step)).collect();
        let load = repeats.first()?.load.sessions?;
        (!rates.is_empty()).then(|| (f64::from(load), rates.iter().sum::<f64>() / rates.len() as f64))
    };
    steps.chunk_by(|one, other| one.load.sessions == other.load.sessions).filter_map(of_load).collect()
}

fn drawn(frame: Frame, across: &str, lines: Vec<Line>) -> Option<Lines> {
    let most = lines.iter().flat_map(|line| line.pieces.iter().flatten().map(|(x, _)| *x)).fold(0.0, f64::max);
    let across = Across {
        title: across.to_owned(),
        quantity: Quantity::Count,
        range: (0.0, most * 1.06),
        ticks: Scale::from_zero(std::iter::once(most))?.ticks(LABELS),
    };
    Some(Lines { frame, across, lines, bands: Vec::new(), marks: Vec::new(), labels: Vec::new() })
}

fn capital(mut words: String) -> String {
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}
