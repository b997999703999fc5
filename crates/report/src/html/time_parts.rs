//! Where the time of sessions went: areas over load, and over the time of one step.

use super::chart::{Across, Band, Drawn, First, Frame, Heights, Layer, Quantity, Scale, Stack, time_ticks};
use analysis::{Finding, Opening, Place, Series, TimeParts, Vocabulary};
use model::record::{Interval, Run, Step};
use model::units::percent;

/// Labels below a chart.
const LABELS: usize = 8;
/// Fewer loads than this show no growth.
const ENOUGH_LOADS: usize = 3;
/// Parts below this share of the whole at every point are not drawn.
const SMALL: f64 = 0.005;
/// Each point has so many values, one for each part.
const VALUES_OF_A_POINT: usize = 4;
/// Parts that are named in words at a point.
const NAMED: usize = 3;

const HOW: &str = "Each is in one place at a time, from the client (lowest) to the device. Layers: client, server, kernel. Hatched: nothing \
                   says where, and `--json` has the bounds of each part.";

/// Colour of a place, the same in every chart.
fn colour(place: Place) -> &'static str {
    match place {
        Place::Idle => "c7 light",
        Place::Generator => "c4",
        Place::Queue => "c4 light",
        Place::Client => "c5",
        Place::Outside => "c3",
        Place::Running => "c2",
        Place::Ready => "c2 light",
        Place::Reads | Place::Device | Place::Target => "c0",
        Place::Log | Place::BeforeDevice => "c1",
        Place::Locks => "c6",
        Place::OtherWaits => "c6 light",
        Place::Unknown => "c7",
    }
}

/// What waits and works in the places.
fn whose(run: &Run) -> &'static str {
    match Vocabulary::of(run) {
        Vocabulary::Sessions => "sessions",
        Vocabulary::Users => "users",
        Vocabulary::Requests => "request slots",
    }
}

fn is_open(step: &Step) -> bool {
    step.load.rate_operations_per_s.is_some()
}

/// Heights of all places at a point. Slots of an open loop with nothing to do only say how many slots there are, and what waits for one is
/// beside them.
fn heights(step: &Step, parts: &TimeParts) -> Vec<f64> {
    let left_out = if is_open(step) { Place::Idle } else { Place::Queue };
    let height = |place: &Place| parts.part(*place).filter(|_| *place != left_out).map_or(0.0, |it| it.likely_sessions);
    Place::ALL.iter().map(height).collect()
}

/// Means of the places at several points, each with its weight.
fn mean(points: &[(f64, Vec<f64>)]) -> Vec<f64> {
    let all: f64 = points.iter().map(|(weight, _)| weight).sum();
    let of_place = |at: usize| points.iter().map(|(weight, heights)| weight * heights[at]).sum::<f64>() / all;
    (0..Place::ALL.len()).map(of_place).collect()
}

/// The places that are seen in a chart, with their heights, and the others left out.
fn layers(pieces: &mut [Vec<Heights>]) -> Vec<Layer> {
    let is_part = |at: usize, of: &[f64]| of[at] > SMALL * of.iter().sum::<f64>();
    let is_seen = |at: &usize| pieces.iter().flatten().any(|heights| is_part(*at, &heights.of_layers));
    let seen: Vec<usize> = (0..Place::ALL.len()).filter(is_seen).collect();
    for heights in pieces.iter_mut().flatten() {
        heights.of_layers = seen.iter().map(|at| heights.of_layers[*at]).collect();
    }
    let layer = |at: &usize| {
        let place = Place::ALL[*at];
        Layer { name: place.name().to_owned(), colour: colour(place), is_hatched: place == Place::Unknown }
    };
    seen.iter().map(layer).collect()
}

/// The largest parts at a point.
fn in_words(layers: &[Layer], heights: &[f64]) -> String {
    let all: f64 = heights.iter().sum();
    let mut parts: Vec<(&str, f64)> =
        layers.iter().zip(heights).map(|(layer, height)| (layer.name.as_str(), height / all)).collect();
    parts.sort_by(|one, other| other.1.total_cmp(&one.1));
    let named = parts.iter().take(NAMED).filter(|(_, share)| *share > SMALL);
    named.map(|(name, share)| format!("{name} {} %", percent(*share))).collect::<Vec<_>>().join(", ")
}

fn frame(run: &Run, is_open: bool, prefix: &str, (id, over): (&str, &str), note: &str, words: String) -> Frame {
    let whose = whose(run);
    let what = if is_open { "Operations that are due or under way, by where they are" } else { "By where they are" };
    Frame {
        id: format!("{prefix}{id}"),
        title: format!("Where the time of {whose} went, {over}"),
        note: format!("{what}, on average{note} {HOW}"),
        y_title: if is_open { "operations".to_owned() } else { whose.to_owned() },
        y_quantity: Quantity::Count,
        first: First::Linear,
        words,
    }
}

/// Parts over load, one point a load; `None` of fewer than three loads.
pub(super) fn over_load(run: &Run, prefix: &str) -> Option<Drawn> {
    let load = |step: &Step| step.load.rate_operations_per_s.or_else(|| step.load.sessions.map(f64::from));
    let points = |series: &Series<'_>| -> Vec<Heights> {
        let repeats = series.steps.chunk_by(|one, other| load(one) == load(other));
        let point = |repeats: &[&Step]| {
            let all: Vec<_> = repeats
                .iter()
                .filter_map(|step| Some((step.window.duration_ns as f64, heights(step, &TimeParts::of(run, step)?))))
                .collect();
            let at = load(repeats.first()?).filter(|_| !all.is_empty())?;
            Some(Heights { range: (at, at), of_layers: mean(&all) })
        };
        repeats.filter_map(point).collect()
    };
    let all = Series::of(run);
    let one_kind = |series: &&Series<'_>| series.is_open_loop() || series.is_closed_loop();
    let of_series = all.iter().filter(one_kind).map(|series| (series, points(series)));
    // Of several kinds of work the one with the most loads, the first of equals.
    let (series, piece) = of_series.reduce(|most, other| if other.1.len() > most.1.len() { other } else { most })?;
    if piece.len() < ENOUGH_LOADS {
        return None;
    }
    let (low, high) = (piece.first()?.range.0, piece.last()?.range.0);
    let mut pieces = [piece];
    let layers = layers(&mut pieces);
    let is_open = series.is_open_loop();
    let words = series.words;
    let across = if is_open { format!("requested {}/s", words.work()) } else { words.slots().to_owned() };
    let at = |heights: &Heights| {
        let load = heights.range.0;
        let load = if is_open { words.rate(load) } else { words.closed_load(load as u32) };
        format!("At {load}: {}.", in_words(&layers, &heights.of_layers))
    };
    let words = [pieces[0].first(), pieces[0].last()].into_iter().flatten().map(at).collect::<Vec<_>>().join(" ");
    let only = if series.name.is_empty() { String::new() } else { format!(", with {}", series.name) };
    let note = format!(" over each window{only}; a line marks each load.");
    let frame = frame(run, is_open, prefix, ("time-over-load", "over load"), &note, words);
    let across = Across {
        title: across,
        quantity: Quantity::Count,
        range: (low, high),
        ticks: Scale::Linear { low, high }.ticks(LABELS),
    };
    Stack { frame, across, layers, pieces: pieces.into(), bands: Vec::new() }.draw()
}

/// When a second ends, from the start of the step's load.
fn end_s(second: &Interval) -> f64 {
    second.offset_ns.saturating_add(second.duration_ns) as f64 / 1e9
}

/// Parts second by second, of the step that the report is about, or else of the last one.
pub(super) fn over_time(run: &Run, findings: &[Finding], prefix: &str, max_values: usize) -> Option<Drawn> {
    let has_seconds = |step: &&Step| step.intervals.len() > 1 && TimeParts::of(run, step).is_some();
    let carried = Opening::of(run, findings).carries.and_then(|carried| carried.step);
    let reported = run.steps.iter().find(|step| Some(&step.label) == carried.as_ref()).filter(has_seconds);
    let step = reported.or_else(|| run.steps.iter().rfind(has_seconds))?;
    let seconds: Vec<&Interval> = step.intervals.iter().filter(|second| second.duration_ns > 0).collect();
    let length = seconds.len().div_ceil((max_values / VALUES_OF_A_POINT).max(1)).max(1);
    let mut pieces = vec![Vec::new()];
    for joined in seconds.chunks(length) {
        let parts = |second: &&Interval| {
            Some((second.duration_ns as f64, heights(step, &TimeParts::of_second(run, step, second)?)))
        };
        let known: Option<Vec<_>> = joined.iter().map(parts).collect();
        let (Some(first), Some(last)) = (joined.first(), joined.last()) else { continue };
        let range = (first.offset_ns as f64 / 1e9, end_s(last));
        match (known, pieces.last_mut()) {
            (Some(known), Some(piece)) => piece.push(Heights { range, of_layers: mean(&known) }),
            _ => pieces.push(Vec::new()),
        }
    }
    let layers = layers(&mut pieces);
    let end = seconds.last().map(|last| end_s(last))?;
    let warm: u64 = seconds.iter().filter(|second| second.warmup).map(|second| second.duration_ns).sum();
    let all: Vec<&Heights> = pieces.iter().flatten().collect();
    let of_layer = |at: usize| all.iter().map(|heights| heights.of_layers[at]).sum::<f64>() / all.len().max(1) as f64;
    let heights: Vec<f64> = (0..layers.len()).map(of_layer).collect();
    let words = format!("On average over all of {}: {}.", step.label, in_words(&layers, &heights));
    let joined = if length > 1 { format!(", {length} seconds joined in each point") } else { String::new() };
    let note = format!(" in each second of {}{joined}; warm-up is shaded.", step.label);
    let frame = frame(run, is_open(step), prefix, ("time-over-time", "over time"), &note, words);
    let across = Across {
        title: "time since the load of the step began".to_owned(),
        quantity: Quantity::Elapsed,
        range: (0.0, end),
        ticks: time_ticks(0.0, end, LABELS),
    };
    let bands = vec![Band { range: (0.0, end), shaded_to: warm as f64 / 1e9, name: step.label.clone() }];
    Stack { frame, across, layers, pieces, bands }.draw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample::{self, requests, servers};
    use serde_json::Value;

    fn names(drawn: &Drawn) -> Vec<String> {
        let series = drawn.data["series"].as_array().unwrap();
        series.iter().map(|series| series["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Sums of all series at each point.
    fn sums(drawn: &Drawn) -> Vec<f64> {
        let series = drawn.data["series"].as_array().unwrap();
        let of = |at: usize| series.iter().filter_map(|series| series["y"][at].as_f64()).sum();
        (0..series[0]["x"].as_array().map_or(0, Vec::len)).map(of).collect()
    }

    #[test]
    fn areas_over_load_are_as_high_as_there_are_sessions() {
        let run = requests::sweep();
        let drawn = over_load(&run, "").unwrap();
        for (sum, slots) in sums(&drawn).into_iter().zip([1.0, 4.0, 16.0, 64.0]) {
            assert!((sum / slots - 1.0).abs() < 0.02, "{sum} of {slots}");
        }
        assert!(names(&drawn).contains(&Place::Device.name().to_owned()), "{:?}", names(&drawn));
        let markup = drawn.figure.into_string();
        assert!(markup.contains("Where the time of request slots went, over load"), "{markup}");
        let mut few = run.clone();
        few.steps.truncate(2);
        assert!(over_load(&few, "").is_none());
        assert!(over_load(&sample::imported(), "").is_none());
        assert!(over_load(&servers::private_cluster(), "").is_some());
    }

    #[test]
    fn an_open_loop_shows_what_is_due_and_no_slots_that_have_nothing_to_do() {
        let drawn = over_load(&requests::open_loop(), "").unwrap();
        let names = names(&drawn);
        assert!(!names.contains(&Place::Idle.name().to_owned()), "{names:?}");
        assert!(names.contains(&Place::Queue.name().to_owned()), "{names:?}");
        assert_eq!(drawn.data["x"]["high"], 8_000.0);
    }

    #[test]
    fn seconds_are_those_of_the_step_that_the_report_is_about() {
        let run = sample::sweep(20);
        let findings = analysis::analyse_asked(&run, None);
        let carried = Opening::of(&run, &findings).carries.unwrap().step.unwrap();
        let drawn = over_time(&run, &findings, "", 1_600).unwrap();
        assert!(drawn.figure.into_string().contains(&format!("in each second of {carried};")));
        let last = over_time(&servers::innodb(), &[], "", 1_600).unwrap();
        let sessions = f64::from(servers::innodb().steps[0].load.sessions.unwrap());
        assert!(sums(&last).iter().all(|sum| (sum / sessions - 1.0).abs() < 0.03), "{:?}", sums(&last));
        let coarse = over_time(&servers::innodb(), &[], "", 40).unwrap();
        assert!(coarse.data["series"][0]["x"].as_array().map(Vec::len).unwrap() <= 11);
        assert!(over_time(&sample::imported(), &[], "", 1_600).is_none());
    }

    #[test]
    fn what_is_unknown_is_hatched_and_named() {
        let mut run = servers::remote();
        let step = run.steps[0].clone();
        run.steps = (1..4).map(|times| Step { index: times, ..step.clone() }).collect();
        for (step, sessions) in run.steps.iter_mut().zip([16, 32, 64]) {
            step.load.sessions = Some(sessions);
        }
        let drawn = over_load(&run, "").unwrap();
        let unknown = drawn.data["series"].as_array().unwrap().last().cloned().unwrap();
        assert_eq!((&unknown["name"], &unknown["colour"]), (&Value::from("unknown"), &Value::from("c7 hatched")));
    }
}
