//! A histogram by power-of-two buckets, with the limit and what was reached.

use super::drawing::{Anchor, Drawing, Ink, Shape, Stroke};
use super::sheet::{HEADROOM, Head, SMALL, Sheet};
use crate::html::chart::{Bars, Quantity, Scale};

/// Share of a place that its bars take.
const FILLED: f64 = 0.84;

/// A duration that is worth a line from bottom to top.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    /// Where it lies, as a share of the axis.
    pub(super) at: f64,
    pub(super) name: String,
    pub(super) is_limit: bool,
}

/// Draws it; `None` if no bar has a height.
pub(super) fn draw(head: &Head, chart: &Bars, marks: &[Mark]) -> Option<Drawing> {
    let scale = Scale::from_zero(chart.groups.iter().flat_map(|group| group.values.iter().flatten().copied()))?;
    let mut sheet = Sheet::new(head, &chart.frame.note, &chart.frame.words);
    let names: Vec<&str> = chart.groups.iter().map(|group| group.name.as_str()).collect();
    sheet.legend(&names);
    let of_what = if let [only] = names.as_slice() { format!(": {only}") } else { String::new() };
    let title = format!("{}{of_what}", chart.frame.y_title);
    let plot = sheet.plot(&scale, chart.frame.y_quantity, &title, None);
    let (places, groups) = (chart.places.len() as f64, chart.groups.len() as f64);
    let width = FILLED / places / groups;
    let labelled = chart.groups.len() == 1 && chart.frame.y_quantity == Quantity::Percent;
    for (series, group) in chart.groups.iter().enumerate() {
        for (place, value) in group.values.iter().enumerate() {
            let Some(value) = value.filter(|value| *value > 0.0) else { continue };
            let share = (place as f64 + (1.0 - FILLED) / 2.0) / places + series as f64 * width;
            let (left, top) = plot.at(share, scale.share(value));
            let height = plot.at(share, 0.0).1 - top;
            let width = width * plot.width();
            sheet.drawing.shapes.push(Shape::Area { left, top, width, height, ink: Ink::of_series(series) });
            if labelled {
                sheet.label(&[((left + width / 2.0, top - 5.0), Anchor::Middle)], Ink::TEXT, &in_words(value));
            }
        }
    }
    for mark in marks {
        let (bottom, (x, top)) = (plot.at(mark.at, 0.0), plot.at(mark.at, 1.0));
        let top = top - HEADROOM;
        let (ink, width, stroke) =
            if mark.is_limit { (Ink::LIMIT, 2.0, Stroke::Whole) } else { (Ink::TEXT, 1.3, Stroke::Dashed) };
        sheet.curve(vec![bottom, (x, top)], width, ink, stroke);
        let heights = [0.0, 18.0, 36.0].map(|down| top + SMALL + down);
        let places = heights.map(|y| [((x + 6.0, y), Anchor::Start), ((x - 6.0, y), Anchor::End)]);
        sheet.label(places.as_flattened(), ink, &mark.name);
    }
    let ticks: Vec<(f64, String)> =
        chart.places.iter().enumerate().map(|(place, name)| ((place as f64 + 0.5) / places, name.clone())).collect();
    Some(sheet.end(&plot, &ticks, &chart.x_title))
}

/// A share in percent, above its bar.
fn in_words(percent: f64) -> String {
    match percent {
        tiny if tiny < 0.05 => "<0.1 %".to_owned(),
        small if small < 9.95 => format!("{small:.1} %"),
        large => format!("{large:.0} %"),
    }
}
