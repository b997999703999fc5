//! Slow operations over the time of a step, each with the cause of its episode.

use super::capital;
use super::chart::{Across, Band, Drawn, First, Frame, Line, Lines, Quantity, time_ticks};
use analysis::{SlowPoint, StallCause, Stalls};
use model::record::{Run, Step};

/// Labels below the chart.
const LABELS: usize = 8;
/// A point is drawn by itself, and the readout needs what lies between two.
const VALUES_OF_A_POINT: usize = 4;
/// Causes that have a colour of their own; the others are drawn together.
const CAUSES: usize = 5;

/// Of the step that lost most time to episodes; `None` where no step has any.
pub(super) fn over_time(run: &Run, prefix: &str, max_values: usize) -> Option<Drawn> {
    let stalls = Stalls::worst(run, |_| true)?;
    let step = run.steps.get(stalls.place)?;
    let end_s = end_s(step);
    let points = longest(&stalls.points, (max_values / VALUES_OF_A_POINT).max(1));
    let left_out = stalls.points.len() - points.len();
    let cause = |point: &SlowPoint| {
        let episode = stalls.episodes.get(point.episode?)?;
        Some(episode.blame.as_ref().map(|blame| &blame.cause))
    };
    let named: Vec<Option<&StallCause>> = stalls.causes.iter().take(CAUSES).map(|share| share.cause.as_ref()).collect();
    let line = |name: String, is_of: &dyn Fn(&SlowPoint) -> bool| Line {
        name,
        pieces: points.iter().filter(|point| is_of(point)).map(|point| vec![place(point)]).collect(),
        dots: true,
    };
    let words = |cause: Option<&StallCause>| cause.map_or_else(|| "unexplained".to_owned(), StallCause::words);
    let mut lines: Vec<Line> = named.iter().map(|of| line(words(*of), &|point| cause(point) == Some(*of))).collect();
    lines.push(line("other causes".to_owned(), &|point| cause(point).is_some_and(|cause| !named.contains(&cause))));
    lines.push(line("single operations".to_owned(), &|point| cause(point).is_none()));
    let only = if left_out > 0 { format!(" The {} longest are drawn.", points.len()) } else { String::new() };
    let warm_s = step.window.warmup_ns as f64 / 1e9;
    Lines {
        frame: Frame {
            id: format!("{prefix}slow-operations"),
            title: "Slow operations, by cause".to_owned(),
            note: format!(
                "Layer: client, from due to finished. Each point is a recorded operation of {} that took longer than {}.{only}",
                step.label, stalls.threshold
            ),
            y_title: "response time".to_owned(),
            y_quantity: Quantity::Microseconds,
            first: First::Logarithmic,
            words: format!("{}.", capital(stalls.phrase())),
        },
        across: Across {
            title: "time since the load of the step began".to_owned(),
            quantity: Quantity::Elapsed,
            range: (0.0, end_s),
            ticks: time_ticks(0.0, end_s, LABELS),
        },
        lines,
        bands: vec![Band { range: (0.0, end_s), shaded_to: warm_s, name: step.label.clone() }],
        marks: Vec::new(),
        labels: Vec::new(),
    }
    .draw()
}

/// Where a point stands.
fn place(point: &SlowPoint) -> (f64, f64) {
    (point.ended.0 as f64 / 1e9, point.response.0 as f64 / 1e3)
}

fn end_s(step: &Step) -> f64 {
    let ends = step.intervals.iter().map(|second| second.offset_ns.saturating_add(second.duration_ns));
    ends.max().unwrap_or(0) as f64 / 1e9
}

/// The longest of them, in the order in which they ended.
fn longest(points: &[SlowPoint], most: usize) -> Vec<SlowPoint> {
    let mut points = points.to_vec();
    points.sort_by_key(|point| std::cmp::Reverse(point.response));
    points.truncate(most);
    points.sort_by_key(|point| point.ended);
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample;

    #[test]
    fn each_slow_operation_is_a_point_of_its_cause() {
        assert!(over_time(&sample::sweep(5), "", 1_000).is_none());
        let run = sample::stalls::stalled();
        let drawn = over_time(&run, "", 1_000).unwrap();
        let series = drawn.data["series"].as_array().unwrap();
        let counted: Vec<(&str, usize)> = series
            .iter()
            .map(|series| {
                let values = series["y"].as_array().unwrap();
                (series["name"].as_str().unwrap(), values.iter().filter(|value| !value.is_null()).count())
            })
            .collect();
        assert_eq!(counted, [("the device completed no request", 32), ("unexplained", 32)]);
        assert!(drawn.figure.into_string().contains("Of the time beyond"));
        let few = over_time(&run, "", 40).unwrap();
        assert!(few.figure.into_string().contains("The 10 longest are drawn"));
    }
}
