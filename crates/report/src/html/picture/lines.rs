//! Latency against throughput, with the limit across.

use super::drawing::{Anchor, Drawing, Ink, Stroke};
use super::sheet::{Head, SMALL, Sheet};
use crate::html::chart::{At, Line, Lines, Scale};

/// Beyond so many times each other, curve and limit are both seen on a logarithmic axis only.
const MAX_LIMIT_ABOVE: f64 = 4.0;
const MAX_CURVE_ABOVE: f64 = 20.0;
const RADIUS: f64 = 5.0;
/// Points less far apart from left to right could be taken for each other.
const NEAR: f64 = 60.0;
/// Heights at which the name of a mark may stand, from the bottom to the top.
const MARK_PLACES: u8 = 17;

/// Draws it; `None` where no line has two points to join.
pub(super) fn draw(head: &Head, chart: &Lines) -> Option<Drawing> {
    let lines: Vec<&Line> =
        chart.lines.iter().filter(|line| line.pieces.iter().any(|piece| !piece.is_empty())).collect();
    if lines.iter().all(|line| line.pieces.iter().map(Vec::len).max() < Some(2)) {
        return None;
    }
    let limit = chart.marks.iter().find_map(|mark| match mark.at {
        At::Y(y) => Some((y, &mark.name)),
        At::X(_) => None,
    });
    let scale = scale(&lines, limit.map(|(y, _)| y))?;
    let mut sheet = Sheet::new(head, &chart.frame.note, &chart.frame.words);
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    sheet.legend(&names);
    let of_what = if let [only] = names.as_slice() { format!(": {only}") } else { String::new() };
    let title = format!("{}{of_what}", chart.frame.y_title);
    let plot = sheet.plot(&scale, chart.frame.y_quantity, &title, limit.map(|(y, _)| scale.share(y)));
    let place = |x: f64, y: f64| plot.at(chart.across.share(x), scale.share(y));

    if let Some((y, _)) = limit {
        let across = vec![place(chart.across.range.0, y), place(chart.across.range.1, y)];
        sheet.curve(across, 2.0, Ink::LIMIT, Stroke::Whole);
    }
    for mark in &chart.marks {
        let At::X(x) = mark.at else { continue };
        let share = chart.across.share(x);
        sheet.curve(vec![plot.at(share, 0.0), plot.at(share, 1.0)], 1.3, Ink::TEXT, Stroke::Dashed);
    }
    for (series, line) in lines.iter().enumerate().rev() {
        let (ink, stroke) = (Ink::of_series(series), Stroke::of_series(series));
        for piece in &line.pieces {
            let points: Vec<(f64, f64)> = piece.iter().map(|(x, y)| place(*x, *y)).collect();
            sheet.curve(points.clone(), 2.5, ink, stroke);
            points.into_iter().for_each(|at| sheet.dot(at, RADIUS, ink));
        }
    }
    if let Some((y, name)) = limit {
        let (left, right) = (place(chart.across.range.0, y), place(chart.across.range.1, y));
        let heights = [left.1 - 6.0, left.1 + SMALL + 4.0];
        let places = heights.map(|y| [((left.0 + 8.0, y), Anchor::Start), ((right.0 - 8.0, y), Anchor::End)]);
        sheet.label(places.as_flattened(), Ink::LIMIT, name);
    }
    let points: Vec<(f64, f64)> = chart.labels.iter().map(|(x, y, _)| place(*x, *y)).collect();
    for ((x, y), (.., name)) in points.iter().zip(&chart.labels) {
        let level = SMALL * 0.36;
        let places = [
            ((*x, y - 11.0), Anchor::Middle),
            ((x - 9.0, y - 6.0), Anchor::End),
            ((x + 9.0, y + SMALL + 4.0), Anchor::Start),
            ((*x, y + SMALL + 9.0), Anchor::Middle),
            ((x + 9.0, y + level), Anchor::Start),
            ((x - 9.0, y + level), Anchor::End),
        ];
        // A name that stands nearer to another point would be taken for that one's.
        let belongs = |((_, base), _): &&((f64, f64), Anchor)| {
            let nearness = |point_y: f64| (base - level - point_y).abs();
            let others = points.iter().filter(|other| **other != (*x, *y) && (other.0 - x).abs() < NEAR);
            others.into_iter().all(|other| nearness(*y) <= nearness(other.1))
        };
        let places: Vec<_> = places.iter().filter(belongs).copied().collect();
        sheet.label(&places, Ink::TEXT, name);
    }
    for mark in &chart.marks {
        let At::X(x) = mark.at else { continue };
        let (x, bottom) = plot.at(chart.across.share(x), 0.0);
        let heights = (0..MARK_PLACES).map(|place| bottom - 8.0 - 18.0 * f64::from(place));
        let places: Vec<_> =
            heights.flat_map(|y| [((x - 6.0, y), Anchor::End), ((x + 6.0, y), Anchor::Start)]).collect();
        sheet.label(&places, Ink::TEXT, &mark.name);
    }
    let ticks: Vec<(f64, String)> =
        chart.across.ticks.iter().map(|x| (chart.across.share(*x), chart.across.quantity.tick(*x))).collect();
    Some(sheet.end(&plot, &ticks, &chart.across.title))
}

/// From zero where both the curve and the limit can be seen so.
fn scale(lines: &[&Line], limit: Option<f64>) -> Option<Scale> {
    let values = || lines.iter().flat_map(|line| line.pieces.iter().flatten().map(|(_, y)| *y));
    let most = values().fold(0.0, f64::max);
    let from_zero = limit.is_none_or(|limit| limit <= most * MAX_LIMIT_ABOVE && most <= limit * MAX_CURVE_ABOVE);
    let logarithmic = || Scale::logarithmic(values().chain(limit));
    if from_zero { Scale::from_zero(values().chain(limit)) } else { logarithmic() }
}
