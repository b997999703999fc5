//! Charts: SVG without text, which stretches to whatever room there is, between labels in HTML, which do not stretch.
//!
//! Why not a library: those that draw SVG in Rust write fixed colours and text at fixed places, so that neither a dark page,
//! nor a telephone, nor a series put away is possible; those that draw in the browser show nothing on paper or without
//! script, or weigh more than a report may. Drawing here is only scales, paths and rectangles.

mod draw;
mod heat;
mod labels;
mod scale;
mod stack;

use maud::{Markup, html};
use serde::Serialize;
use serde_json::{Value, json};

use super::marked;
use model::units::group_thousands;

pub(super) use heat::Heat;
use labels::Places;
pub(super) use scale::{Quantity, Scale, day_ticks, time_ticks};
pub(super) use stack::{Heights, Layer, Stack};

/// Units of the drawing: it is stretched, so they only say how finely it is drawn.
pub(in crate::html) const WIDTH: f64 = 2_000.0;
/// The same downwards.
pub(in crate::html) const HEIGHT: f64 = 800.0;

/// A mark before this share of the axis has its name after it, else before it.
const EARLY: f64 = 0.35;
/// How far above the axis the name of a mark stands, and how far names stand above each other, in rem.
const BOTTOM: f64 = 0.25;
const RAISED: f64 = 0.95;
/// A label beyond this share of the axis would reach over the edge if it stood below its middle.
const LATE: f64 = 0.985;

/// The horizontal axis.
#[derive(Debug, Clone)]
pub(super) struct Across {
    /// What it counts, with its unit.
    pub(super) title: String,
    /// What its values are, for the readout.
    pub(super) quantity: Quantity,
    /// First and last value.
    pub(super) range: (f64, f64),
    /// Where labels stand.
    pub(super) ticks: Vec<f64>,
}

impl Across {
    /// Where a value stands, 0 to 1.
    pub(super) fn share(&self, value: f64) -> f64 {
        Scale::Linear { low: self.range.0, high: self.range.1 }.share(value)
    }
}

/// Values in rising order of `x`, in pieces that are not joined with each other.
#[derive(Debug, Clone, Default)]
pub(super) struct Line {
    /// What it is, in the legend and the readout.
    pub(super) name: String,
    /// Pieces of `(x, y)`.
    pub(super) pieces: Vec<Vec<(f64, f64)>>,
    /// Whether each value is marked: for few values, each of which was measured by itself.
    pub(super) dots: bool,
}

/// A stretch of the horizontal axis with a name.
#[derive(Debug, Clone)]
pub(super) struct Band {
    /// Where it begins and ends.
    pub(super) range: (f64, f64),
    /// The part at its beginning that is shaded: the warm-up.
    pub(super) shaded_to: f64,
    /// Its name.
    pub(super) name: String,
}

/// A value that is worth a line across the whole chart.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    /// Which axis it lies on, and where.
    pub(super) at: At,
    /// What it is.
    pub(super) name: String,
}

/// Place of a mark.
#[derive(Debug, Clone, Copy)]
pub(super) enum At {
    /// A value of the horizontal axis.
    X(f64),
    /// A value of the vertical axis.
    Y(f64),
}

/// Which scale of the vertical axis is shown first. Both are drawn where both can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    Linear,
    Logarithmic,
}

/// Everything about a chart but what is drawn in it.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// Unique in the page.
    pub(super) id: String,
    /// What is shown.
    pub(super) title: String,
    /// At which layer, over which window, counted how.
    pub(super) note: String,
    /// The vertical axis: what it counts, with its unit.
    pub(super) y_title: String,
    /// What its values are.
    pub(super) y_quantity: Quantity,
    /// Which scale is shown first.
    pub(super) first: First,
    /// The chart in words, for everyone and above all for those who cannot see it.
    pub(super) words: String,
}

/// Lines over an axis.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    /// Title, words and vertical axis.
    pub(super) frame: Frame,
    /// The horizontal axis.
    pub(super) across: Across,
    /// The lines; those without a value are left out of everything.
    pub(super) lines: Vec<Line>,
    /// Named stretches.
    pub(super) bands: Vec<Band>,
    /// Values of note.
    pub(super) marks: Vec<Mark>,
    /// Names of single points.
    pub(super) labels: Vec<(f64, f64, String)>,
}

/// A chart, and what its readout needs.
pub(super) struct Drawn {
    /// The figure.
    pub(super) figure: Markup,
    /// For the script.
    pub(super) data: Value,
}

/// One drawing of a chart: everything that depends on the scale of its vertical axis.
pub(super) struct Plot {
    /// The scale.
    pub(super) scale: Scale,
    /// What stands in the SVG.
    pub(super) content: Markup,
    /// Labels over it.
    pub(super) over: Markup,
}

impl Lines {
    /// Draws it; `None` if there is nothing to draw.
    pub(super) fn draw(mut self) -> Option<Drawn> {
        self.lines.retain(|line| line.pieces.iter().any(|piece| !piece.is_empty()));
        let values = || self.lines.iter().flat_map(|line| line.pieces.iter().flatten().map(|(_, y)| *y));
        let marked = self.marks.iter().filter_map(|mark| match mark.at {
            At::Y(y) => Some(y),
            At::X(_) => None,
        });
        let linear = Scale::from_zero(values().chain(marked.clone()))?;
        let scales = [Some(linear), Scale::logarithmic(values().chain(marked))];
        let plots = scales.into_iter().flatten().map(|scale| self.plot(scale)).collect();
        let names: Vec<&str> = self.lines.iter().map(|line| line.name.as_str()).collect();
        let ticks = self.across.ticks.iter().map(|x| (self.across.share(*x), self.across.quantity.tick(*x)));
        let digits = if self.across.quantity == Quantity::Clock { DIGITS_OF_TIME } else { DIGITS };
        let series: Vec<Series<'_>> = self.lines.iter().map(|line| Series::of(line, digits)).collect();
        let data = json!({
            "id": self.frame.id,
            "x": { "quantity": self.across.quantity, "low": self.across.range.0, "high": self.across.range.1 },
            "y": self.frame.y_quantity,
            "series": series,
        });
        let figure = self.frame.figure(&names, plots, &ticks.collect::<Vec<_>>(), &self.across.title);
        Some(Drawn { figure, data })
    }

    fn plot(&self, scale: Scale) -> Plot {
        let place = |x: f64, y: f64| (self.across.share(x), scale.share(y));
        let content = html! {
            @for band in &self.bands {
                (draw::shade(self.across.share(band.range.0), self.across.share(band.shaded_to)))
                (draw::vertical("edge", self.across.share(band.range.0)))
            }
            (draw::grid(&scale))
            @for (index, line) in self.lines.iter().enumerate() {
                (draw::line(index, line, &place))
            }
            @for mark in &self.marks {
                @match mark.at {
                    At::X(x) => (draw::vertical("mark", self.across.share(x))),
                    At::Y(y) => (draw::horizontal("mark", scale.share(y))),
                }
            }
        };
        let places = Places::of(&self.marks, &self.labels, place);
        let over = html! {
            @for band in &self.bands {
                @let (left, right) = (self.across.share(band.range.0), self.across.share(band.range.1));
                span.band style=(format!("left:{:.2}%;width:{:.2}%", left * 100.0, (right - left) * 100.0)) { (band.name) }
            }
            @for ((x, y, name), side) in self.labels.iter().zip(&places.sides).filter_map(|(label, side)| Some((label, (*side)?))) {
                @let (left, bottom) = place(*x, *y);
                span.point.(side.class()) style=(format!("left:{:.2}%;bottom:{:.2}%", left * 100.0, bottom * 100.0)) { (name) }
            }
            @for (mark, level) in self.marks.iter().zip(&places.levels) {
                @match mark.at {
                    At::X(x) => span.mark.x.early[self.across.share(x) < EARLY]
                        style=(format!("left:{:.2}%;bottom:{:.2}rem", self.across.share(x) * 100.0, RAISED.mul_add(*level as f64, BOTTOM)))
                        { (mark.name) },
                    At::Y(y) => span.mark.y style=(format!("bottom:{:.2}%", scale.share(y) * 100.0)) { (mark.name) },
                }
            }
        };
        Plot { scale, content, over }
    }
}

/// What the readout knows of a line: the drawn values, with `null` between pieces.
#[derive(Serialize)]
struct Series<'a> {
    name: &'a str,
    x: Vec<Option<Short>>,
    y: Vec<Option<Short>>,
}

impl<'a> Series<'a> {
    fn of(line: &'a Line, digits: i32) -> Self {
        let (mut xs, mut ys) = (Vec::new(), Vec::new());
        for piece in line.pieces.iter().filter(|piece| !piece.is_empty()) {
            if !xs.is_empty() {
                xs.push(None);
                ys.push(None);
            }
            xs.extend(piece.iter().map(|(x, _)| Some(Short(*x, digits))));
            ys.extend(piece.iter().map(|(_, y)| Some(Short(*y, DIGITS))));
        }
        Self { name: &line.name, x: xs, y: ys }
    }
}

/// Significant digits of values: more than a readout shows.
const DIGITS: i32 = 5;
/// Those of seconds since 1970.
const DIGITS_OF_TIME: i32 = 10;

/// A number with so many significant digits.
struct Short(f64, i32);

impl Serialize for Short {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rounded = draw::significant(self.0, self.1);
        if rounded.fract() == 0.0 && rounded.abs() < 9e15 {
            serializer.serialize_i64(rounded as i64)
        } else {
            serializer.serialize_f64(rounded)
        }
    }
}

impl Frame {
    /// The figure around its drawings: title, legend, switch between scales, axes, words. Series have their colours in order.
    fn figure(&self, names: &[&str], plots: Vec<Plot>, ticks: &[(f64, String)], x_title: &str) -> Markup {
        let series: Vec<_> = names.iter().enumerate().map(|(at, name)| (draw::colour(at), *name)).collect();
        self.figure_of(&series, plots, ticks, x_title)
    }

    /// The same with a colour of its own for each series.
    fn figure_of(&self, series: &[(String, &str)], plots: Vec<Plot>, ticks: &[(f64, String)], x_title: &str) -> Markup {
        let titled = format!("{}-title", self.id);
        let words_id = format!("{}-words", self.id);
        let is_first = |plot: &Plot| match self.first {
            First::Linear => matches!(plot.scale, Scale::Linear { .. }),
            First::Logarithmic => matches!(plot.scale, Scale::Log { .. }),
        };
        let has_first = plots.iter().any(is_first);
        let kind = |plot: &Plot| if matches!(plot.scale, Scale::Log { .. }) { "log" } else { "linear" };
        html! {
            figure.chart #(self.id) aria-labelledby=(titled) {
                figcaption {
                    h3 #(titled) { (self.title) }
                    p.note { (marked(&self.note)) }
                }
                div.tools {
                    (legend(series))
                    @if plots.len() > 1 {
                        fieldset.scale {
                            legend { "Vertical scale" }
                            @for plot in &plots {
                                label {
                                    input type="radio" name=(format!("{}-scale", self.id)) value=(kind(plot))
                                        #(format!("{}-{}", self.id, kind(plot)))
                                        checked[is_first(plot) || !has_first && kind(plot) == "linear"];
                                    @if kind(plot) == "log" { "logarithmic" } @else { "linear" }
                                }
                            }
                        }
                    }
                }
                // One series has no legend, so the axis names it.
                div.y-title { (self.y_title) @if let [(_, only)] = series { ": " (only) } }
                @for plot in &plots {
                    div.row.(kind(plot)) {
                        div.ticks.y aria-hidden="true" {
                            @for tick in plot.scale.ticks(5) {
                                span style=(format!("bottom:{:.2}%", plot.scale.share(tick) * 100.0)) {
                                    (self.y_quantity.tick(tick))
                                }
                            }
                        }
                        div.plot tabindex="0" role="group" aria-describedby=(words_id)
                            aria-label=(format!("{}: left and right arrow keys read values", self.title)) {
                            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img"
                                aria-labelledby=(titled) aria-describedby=(words_id) { (plot.content) }
                            (plot.over)
                        }
                    }
                }
                div.ticks.x aria-hidden="true" {
                    @for (at, label) in ticks {
                        span.late[*at > LATE] style=(format!("left:{:.2}%", at * 100.0)) { (label) }
                    }
                }
                div.x-title { (x_title) }
                p.words #(words_id) { (marked(&self.words)) }
            }
        }
    }
}

/// Series with their colours; the script makes each a switch. One series needs no legend but its axis.
fn legend(series: &[(String, &str)]) -> Markup {
    html! {
        @if series.len() > 1 {
            div.legend role="group" aria-label="Series" {
                @for (index, (colour, name)) in series.iter().enumerate() {
                    button type="button" aria-pressed="true" data-series=(index) disabled {
                        span.key.(colour) aria-hidden="true" {} (name)
                    }
                }
            }
        }
    }
}

/// At most about `most` values: of each of many equal stretches the least and the largest, in their order, so that no spike is
/// lost. A mean would hide exactly what a chart of latency is looked at for.
pub(super) fn thin(values: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let stretches = (most / 2).max(1);
    if values.len() <= most {
        return values.to_vec();
    }
    let length = values.len().div_ceil(stretches);
    let kept = values.chunks(length).flat_map(|stretch| {
        let by = |a: &(usize, &(f64, f64)), b: &(usize, &(f64, f64))| a.1.1.total_cmp(&b.1.1);
        let least = stretch.iter().enumerate().min_by(by).map(|(at, _)| at).unwrap_or(0);
        let largest = stretch.iter().enumerate().max_by(by).map(|(at, _)| at).unwrap_or(0);
        let both = [least.min(largest), least.max(largest)];
        both.into_iter().take(if least == largest { 1 } else { 2 }).map(|at| stretch[at])
    });
    kept.collect()
}

/// Share of a place that its bars take; the rest keeps it apart from the next.
const FILLED: f64 = 0.84;
/// Of labels below the chart, so many fit where the page is not very narrow.
const MAX_LABELS: usize = 18;

/// The bars of one series: one value a place, absent where nothing is known or there is none.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// What it is, in the legend and the readout.
    pub(super) name: String,
    /// One value a place.
    pub(super) values: Vec<Option<f64>>,
    /// The same in words, for the readout.
    pub(super) words: Vec<String>,
}

/// A chart of bars.
#[derive(Debug, Clone)]
pub(super) struct Bars {
    /// Title, words and vertical axis.
    pub(super) frame: Frame,
    /// What the places are.
    pub(super) x_title: String,
    /// Their names.
    pub(super) places: Vec<String>,
    /// One group of bars for each series.
    pub(super) groups: Vec<Group>,
}

impl Bars {
    /// Draws it; `None` if no bar has a height.
    pub(super) fn draw(self) -> Option<Drawn> {
        let values = || self.groups.iter().flat_map(|group| group.values.iter().flatten().copied());
        let linear = Scale::from_zero(values())?;
        let plots = [Some(linear), logarithmic(values())].into_iter().flatten().map(|scale| self.plot(scale)).collect();
        let names: Vec<&str> = self.groups.iter().map(|group| group.name.as_str()).collect();
        let count = self.places.len() as f64;
        let every = self.places.len().div_ceil(MAX_LABELS).max(1);
        let labelled = self.places.iter().enumerate().filter(|(place, _)| place % every == 0);
        let ticks = labelled.map(|(place, name)| ((place as f64 + 0.5) / count, name.clone()));
        let series: Vec<_> =
            self.groups.iter().map(|group| json!({ "name": group.name, "words": group.words })).collect();
        let data = json!({ "id": self.frame.id, "places": self.places, "series": series });
        let figure = self.frame.figure(&names, plots, &ticks.collect::<Vec<_>>(), &self.x_title);
        Some(Drawn { figure, data })
    }

    fn plot(&self, scale: Scale) -> Plot {
        let (places, groups) = (self.places.len() as f64, self.groups.len() as f64);
        let width = FILLED / places / groups;
        let path = |series: usize, group: &Group| {
            let mut path = String::new();
            for (place, value) in group.values.iter().enumerate() {
                let Some(value) = value.filter(|value| *value > 0.0) else { continue };
                let left = (place as f64 + (1.0 - FILLED) / 2.0) / places + series as f64 * width;
                draw::rectangle(&mut path, [left, left + width], [0.0, scale.share(value)]);
            }
            path
        };
        let content = html! {
            (draw::grid(&scale))
            @for (series, group) in self.groups.iter().enumerate() {
                g.series.(draw::colour(series)) data-series=(series) { path.bars d=(path(series, group)) {} }
            }
        };
        Plot { scale, content, over: html! {} }
    }
}

/// From below the least to above the largest, so that a single wait is still seen beside a million.
fn logarithmic(values: impl Iterator<Item = f64>) -> Option<Scale> {
    match Scale::logarithmic(values)? {
        Scale::Log { low, high } => Some(Scale::Log { low: low / 2.0, high }),
        linear => Some(linear),
    }
}

/// Shades: each is a fifth of the largest value.
const SHADES: usize = 5;
const DAY_S: f64 = 86_400.0;

/// Hours of days.
#[derive(Debug, Clone)]
pub(super) struct Calendar {
    /// Title, words and vertical axis, which counts hours.
    pub(super) frame: Frame,
    /// The horizontal axis, in seconds since 1970.
    pub(super) across: Across,
    /// Day since 1970-01-01, hour of it, and value.
    pub(super) cells: Vec<(i64, u8, f64)>,
    /// What the values are.
    pub(super) unit: String,
}

impl Calendar {
    /// Draws it; `None` if no value is above zero.
    pub(super) fn draw(self) -> Option<Drawn> {
        let most = self.cells.iter().map(|(_, _, value)| *value).fold(0.0, f64::max);
        if most <= 0.0 {
            return None;
        }
        let scale = Scale::Linear { low: 0.0, high: 24.0 };
        let mut paths = vec![String::new(); SHADES];
        let mut days: std::collections::BTreeMap<i64, (u8, f64)> = std::collections::BTreeMap::new();
        for (day, hour, value) in &self.cells {
            let begin = *day as f64 * DAY_S;
            let sides = [self.across.share(begin), self.across.share(begin + DAY_S)];
            let edges = [scale.share(f64::from(*hour)), scale.share(f64::from(*hour) + 1.0)];
            if let Some(path) = paths.get_mut(shade(value / most)) {
                draw::rectangle(path, sides, edges);
            }
            let busiest = days.entry(*day).or_insert((*hour, *value));
            if *value > busiest.1 {
                *busiest = (*hour, *value);
            }
        }
        let unit = &self.unit;
        let words = |(day, (hour, value)): (&i64, &(u8, f64))| {
            let begin = *day as f64 * DAY_S;
            json!([begin, begin + DAY_S, format!("busiest from {hour:02}:00, with {} {unit}", group_thousands(*value))])
        };
        let columns: Vec<_> = days.iter().map(words).collect();
        let content = html! {
            @for (shade, path) in paths.iter().enumerate() { path.heat.(format!("h{shade}")) d=(path) {} }
        };
        let ticks: Vec<_> =
            self.across.ticks.iter().map(|x| (self.across.share(*x), self.across.quantity.tick(*x))).collect();
        let data = json!({
            "id": self.frame.id,
            "x": { "quantity": self.across.quantity, "low": self.across.range.0, "high": self.across.range.1 },
            "columns": columns,
        });
        let plot = Plot { scale, content, over: html! {} };
        let figure = self.frame.figure(&[], vec![plot], &ticks, &self.across.title);
        let label = |shade: usize| group_thousands(most * shade as f64 / SHADES as f64);
        let key = html! {
            p.heat-key {
                (unit) ": "
                @for shade in 0..SHADES {
                    span.swatch {
                        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" aria-hidden="true" {
                            rect.heat.(format!("h{shade}")) width=(WIDTH) height=(HEIGHT) {}
                        }
                        "from " (label(shade))
                    }
                }
            }
        };
        Some(Drawn { figure: html! { (figure) (key) }, data })
    }
}

/// The shade of a share of the largest value.
fn shade(share: f64) -> usize {
    ((share * SHADES as f64).floor().max(0.0) as usize).min(SHADES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn spikes_survive_and_order_is_kept(values in prop::collection::vec(0.0_f64..1e9, 1..5_000), most in 2_usize..300) {
            let values: Vec<(f64, f64)> = values.into_iter().enumerate().map(|(x, y)| (x as f64, y)).collect();
            let kept = thin(&values, most);
            prop_assert!(kept.len() <= most.max(2), "{} of at most {most}", kept.len());
            prop_assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
            let extremes = |values: &[(f64, f64)]| {
                values.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), (_, y)| (low.min(*y), high.max(*y)))
            };
            prop_assert_eq!(extremes(&kept), extremes(&values));
        }
    }
}

#[cfg(test)]
mod calendar_tests {
    use super::*;

    #[test]
    fn shades_are_even_fifths() {
        assert_eq!([0.0, 0.19, 0.2, 0.59, 0.99, 1.0].map(shade), [0, 0, 1, 2, 4, 4]);
    }
}
