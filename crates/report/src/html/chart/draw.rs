//! Paths and rectangles in the units of a drawing.

use std::fmt::Write;

use maud::{Markup, html};

use super::{HEIGHT, Line, Scale, WIDTH};

/// Colours that can be distinguished; later series begin again, with broken lines.
const COLOURS: usize = 8;

/// Class that gives a series its colour and stroke.
pub(super) fn colour(series: usize) -> String {
    let repeat = (series / COLOURS).min(2);
    format!("c{} r{repeat}", series % COLOURS)
}

/// The value with so many significant digits.
pub(super) fn significant(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let power = 10_f64.powi(digits - 1 - value.abs().log10().floor() as i32);
    (value * power).round() / power
}

fn across(share: f64) -> i64 {
    (share * WIDTH).round() as i64
}

/// Upwards on paper is downwards in SVG.
fn down(share: f64) -> i64 {
    ((1.0 - share) * HEIGHT).round() as i64
}

/// Lines at the labels of the vertical axis.
pub(super) fn grid(scale: &Scale) -> Markup {
    let mut path = String::new();
    for tick in scale.ticks(5) {
        let _ = write!(path, "M0 {}h{WIDTH}", down(scale.share(tick)));
    }
    html! { path.grid d=(path) {} }
}

/// A line from bottom to top.
pub(super) fn vertical(class: &str, share: f64) -> Markup {
    html! { path.(class) d=(format!("M{} 0v{HEIGHT}", across(share))) {} }
}

/// A line from side to side.
pub(super) fn horizontal(class: &str, share: f64) -> Markup {
    html! { path.(class) d=(format!("M0 {}h{WIDTH}", down(share))) {} }
}

/// A shaded stretch of the whole height.
pub(super) fn shade(from: f64, to: f64) -> Markup {
    let (from, to) = (across(from), across(to));
    html! { @if to > from { rect.shade x=(from) y="0" width=(to - from) height=(HEIGHT) {} } }
}

/// A line, in steps relative to each other, which are shorter to write.
pub(super) fn line(series: usize, line: &Line, place: &dyn Fn(f64, f64) -> (f64, f64)) -> Markup {
    let (mut path, mut dots) = (String::new(), String::new());
    for piece in &line.pieces {
        let mut last: Option<(i64, i64)> = None;
        for (x, y) in piece {
            let (x, y) = place(*x, *y);
            let (x, y) = (across(x), down(y));
            let _ = match last {
                None => write!(path, "M{x} {y}l0 0"),
                Some((left, above)) => write!(path, "l{} {}", x - left, y - above),
            };
            if line.dots {
                // A stroke of no length with round ends is a dot that stretching leaves round.
                let _ = write!(dots, "M{x} {y}h0");
            }
            last = Some((x, y));
        }
    }
    html! {
        g.series.(colour(series)) data-series=(series) {
            path.line d=(path) {}
            @if !dots.is_empty() { path.dots d=(dots) {} }
        }
    }
}

/// One rectangle, as a part of a path: from `left` to `right` and from `low` to `high`, all 0 to 1.
pub(super) fn rectangle(path: &mut String, [left, right]: [f64; 2], [low, high]: [f64; 2]) {
    let (x, y) = (across(left), down(high));
    let (width, height) = (across(right) - x, down(low) - y);
    if width > 0 && height > 0 {
        let _ = write!(path, "M{x} {y}h{width}v{height}h{}z", -width);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significant_digits_are_kept_and_no_more() {
        assert_eq!(significant(123_456.0, 5), 123_460.0);
        assert_eq!(significant(0.001_234_56, 3), 0.00123);
        assert_eq!((significant(0.0, 5), significant(f64::NAN, 5)), (0.0, 0.0));
    }

    #[test]
    fn a_line_ends_where_its_last_value_lies_however_many_steps_it_takes() {
        let values: Vec<(f64, f64)> = (0..=1_000).map(|x| (f64::from(x), f64::from(x % 7) / 7.0)).collect();
        let drawn = line(0, &Line { pieces: vec![values.clone()], ..Line::default() }, &|x, y| (x / 1_000.0, y));
        let text = drawn.into_string();
        let path = text.split("d=\"M").nth(1).unwrap().split('"').next().unwrap();
        let end = path.split('l').map(|step| {
            let (x, y) = step.split_once(' ').unwrap();
            (x.parse::<i64>().unwrap(), y.parse::<i64>().unwrap())
        });
        let end = end.reduce(|sum, step| (sum.0 + step.0, sum.1 + step.1)).unwrap();
        assert_eq!(end, (across(1.0), down(values[1_000].1)));
    }
}
