//! Areas that lie on each other: parts of a whole, over load or over time.

use std::fmt::Write;

use maud::{Markup, html};
use serde_json::json;

use super::{Across, Band, DIGITS, Drawn, Frame, HEIGHT, Plot, Scale, Short, WIDTH, draw};

/// Units of the drawing between two lines of a hatched area.
const HATCH: f64 = WIDTH / 160.0;

/// One part of the whole.
#[derive(Debug, Clone)]
pub(in crate::html) struct Layer {
    /// What it is, in the legend and the readout.
    pub(in crate::html) name: String,
    /// Classes that give it its colour: `c0` to `c7`, and `light` where another layer has the same colour.
    pub(in crate::html) colour: &'static str,
    /// Whether it is hatched: what is not known.
    pub(in crate::html) is_hatched: bool,
}

/// The height of each layer at a place.
#[derive(Debug, Clone)]
pub(in crate::html) struct Heights {
    /// From where to where they are as high: the same twice at a point, between which and the next they rise or fall evenly.
    pub(in crate::html) range: (f64, f64),
    /// One a layer.
    pub(in crate::html) of_layers: Vec<f64>,
}

impl Heights {
    fn all(&self) -> f64 {
        self.of_layers.iter().sum()
    }

    fn is_point(&self) -> bool {
        self.range.1 <= self.range.0
    }
}

/// Areas on each other.
#[derive(Debug, Clone)]
pub(in crate::html) struct Stack {
    /// Title, words and vertical axis.
    pub(in crate::html) frame: Frame,
    /// The horizontal axis.
    pub(in crate::html) across: Across,
    /// The parts, the lowest first.
    pub(in crate::html) layers: Vec<Layer>,
    /// Pieces that are not joined with each other, of points in order.
    pub(in crate::html) pieces: Vec<Vec<Heights>>,
    /// Named stretches.
    pub(in crate::html) bands: Vec<Band>,
}

/// Lower and upper edge of a layer at a point, in units of the drawing, and where the point lies.
type Edge = (f64, f64, f64);

impl Stack {
    /// Draws it; `None` if no piece has a width, or no height.
    pub(in crate::html) fn draw(mut self) -> Option<Drawn> {
        self.pieces.retain(|piece| piece.len() > 1 || piece.iter().any(|heights| !heights.is_point()));
        let scale = Scale::from_zero(self.pieces.iter().flatten().map(Heights::all))?;
        let ticks: Vec<_> =
            self.across.ticks.iter().map(|x| (self.across.share(*x), self.across.quantity.tick(*x))).collect();
        let series = |(at, layer): (usize, &Layer)| {
            let (mut xs, mut ys) = (Vec::new(), Vec::new());
            for piece in &self.pieces {
                if !xs.is_empty() {
                    xs.push(None);
                    ys.push(None);
                }
                let middle = |heights: &Heights| f64::midpoint(heights.range.0, heights.range.1);
                xs.extend(piece.iter().map(|heights| Some(Short(middle(heights), DIGITS))));
                ys.extend(piece.iter().map(|heights| heights.of_layers.get(at).map(|height| Short(*height, DIGITS))));
            }
            json!({ "name": layer.name, "colour": class(layer), "x": xs, "y": ys })
        };
        let data = json!({
            "id": self.frame.id,
            "x": { "quantity": self.across.quantity, "low": self.across.range.0, "high": self.across.range.1 },
            "y": self.frame.y_quantity,
            "series": self.layers.iter().enumerate().map(series).collect::<Vec<_>>(),
        });
        let legend: Vec<(String, &str)> = self.layers.iter().map(|layer| (class(layer), layer.name.as_str())).collect();
        let figure = self.frame.figure_of(&legend, vec![self.plot(scale)], &ticks, &self.across.title);
        Some(Drawn { figure, data })
    }

    fn edges(&self, at: usize, scale: &Scale) -> Vec<Vec<Edge>> {
        let down = |value: f64| (1.0 - scale.share(value)) * HEIGHT;
        let edge = |heights: &Heights| {
            let below: f64 = heights.of_layers.iter().take(at).sum();
            let height = heights.of_layers.get(at).copied().unwrap_or(0.0);
            let (from, to) = heights.range;
            let sides = [from, to].into_iter().take(if heights.is_point() { 1 } else { 2 });
            let (bottom, top) = (down(below), down(below + height));
            sides.map(|x| (self.across.share(x) * WIDTH, bottom, top)).collect::<Vec<Edge>>()
        };
        self.pieces.iter().map(|piece| piece.iter().flat_map(edge).collect()).collect()
    }

    fn plot(&self, scale: Scale) -> Plot {
        let content = html! {
            @for band in &self.bands { (draw::shade(self.across.share(band.range.0), self.across.share(band.shaded_to))) }
            (draw::grid(&scale))
            @for (at, layer) in self.layers.iter().enumerate() {
                @let edges = self.edges(at, &scale);
                g.series.(class(layer)) data-series=(at) {
                    path.area d=(outline(&edges)) {}
                    @if layer.is_hatched { path.hatch d=(hatch(&edges)) {} }
                }
            }
            @for heights in self.pieces.iter().flatten().filter(|heights| heights.is_point()) {
                (draw::vertical("edge", self.across.share(heights.range.0)))
            }
        };
        let over: Markup = html! {
            @for band in &self.bands {
                @let (left, right) = (self.across.share(band.range.0), self.across.share(band.range.1));
                span.band style=(format!("left:{:.2}%;width:{:.2}%", left * 100.0, (right - left) * 100.0)) { (band.name) }
            }
        };
        Plot { scale, content, over }
    }
}

fn class(layer: &Layer) -> String {
    if layer.is_hatched { format!("{} hatched", layer.colour) } else { layer.colour.to_owned() }
}

/// Along the upper edge, and back along the lower one.
fn outline(pieces: &[Vec<Edge>]) -> String {
    let mut path = String::new();
    for piece in pieces {
        let upper = piece.iter().map(|(x, _, top)| (x, top));
        let lower = piece.iter().rev().map(|(x, bottom, _)| (x, bottom));
        for (place, (x, y)) in upper.chain(lower).enumerate() {
            let _ = write!(path, "{}{} {}", if place == 0 { 'M' } else { 'L' }, x.round(), y.round());
        }
        path.push('z');
    }
    path
}

/// Lines from edge to edge. A pattern would be an address, and a page has none.
fn hatch(pieces: &[Vec<Edge>]) -> String {
    let mut path = String::new();
    for pair in pieces.iter().flat_map(|piece| piece.windows(2)) {
        let [(left, below, above), (right, below_right, above_right)] = *pair else { continue };
        let first = (left / HATCH).ceil() as i64;
        for x in (first..).map(|line| line as f64 * HATCH).take_while(|x| *x < right) {
            let share = (x - left) / (right - left);
            let between = |from: f64, to: f64| from + (to - from) * share;
            let (bottom, top) = (between(below, below_right), between(above, above_right));
            if bottom - top >= 1.0 {
                let _ = write!(path, "M{} {}V{}", x.round(), bottom.round(), top.round());
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::chart::{First, Quantity};

    fn at(from: f64, to: f64, of_layers: [f64; 2]) -> Heights {
        Heights { range: (from, to), of_layers: of_layers.to_vec() }
    }

    fn stack(pieces: Vec<Vec<Heights>>) -> Stack {
        let layer = |name: &str, is_hatched| Layer { name: name.to_owned(), colour: "c0", is_hatched };
        Stack {
            frame: Frame {
                id: "s".to_owned(),
                title: "t".to_owned(),
                note: String::new(),
                y_title: "sessions".to_owned(),
                y_quantity: Quantity::Count,
                first: First::Linear,
                words: String::new(),
            },
            across: Across { title: "x".to_owned(), quantity: Quantity::Count, range: (0.0, 10.0), ticks: vec![0.0] },
            layers: vec![layer("lower", false), layer("upper", true)],
            pieces,
            bands: Vec::new(),
        }
    }

    #[test]
    fn each_layer_begins_where_the_one_below_it_ends() {
        let stack = stack(vec![vec![at(0.0, 0.0, [1.0, 2.0]), at(10.0, 10.0, [3.0, 1.0])]]);
        let scale = Scale::Linear { low: 0.0, high: 4.0 };
        let [lower, upper] = [0, 1].map(|at| stack.edges(at, &scale).remove(0));
        assert_eq!(lower, [(0.0, HEIGHT, 0.75 * HEIGHT), (WIDTH, HEIGHT, 0.25 * HEIGHT)]);
        assert_eq!(upper, [(0.0, 0.75 * HEIGHT, 0.25 * HEIGHT), (WIDTH, 0.25 * HEIGHT, 0.0)]);
        assert_eq!(outline(std::slice::from_ref(&lower)), "M0 600L2000 200L2000 800L0 800z");
        // The line in the middle goes from edge to edge.
        assert!(hatch(&[upper]).contains("M1000 400V100M"), "{}", hatch(&[lower]));
    }

    #[test]
    fn a_second_is_as_high_from_its_beginning_to_its_end() {
        let stack = stack(vec![vec![at(0.0, 5.0, [1.0, 0.0]), at(5.0, 10.0, [4.0, 0.0])]]);
        let lower = stack.edges(0, &Scale::Linear { low: 0.0, high: 4.0 });
        assert_eq!(outline(&lower), "M0 600L1000 600L1000 0L2000 0L2000 800L1000 800L1000 800L0 800z");
    }

    #[test]
    fn a_point_by_itself_is_no_area_and_the_readout_has_the_heights() {
        assert!(stack(vec![vec![at(1.0, 1.0, [1.0, 1.0])]]).draw().is_none());
        assert!(stack(vec![vec![at(1.0, 2.0, [1.0, 1.0])]]).draw().is_some(), "a second has a width");
        assert!(stack(vec![vec![at(1.0, 1.0, [0.0, 0.0]), at(2.0, 2.0, [0.0, 0.0])]]).draw().is_none());
        let piece = |x: f64| vec![at(x, x, [1.0, 2.0]), at(x + 1.0, x + 1.0, [3.0, 1.0])];
        let drawn = stack(vec![piece(0.0), piece(5.0)]).draw().unwrap();
        assert_eq!(drawn.data["series"][1]["y"], json!([2, 1, null, 2, 1]));
        assert_eq!(drawn.data["series"][1]["colour"], "c0 hatched");
        let markup = drawn.figure.into_string();
        assert!(markup.contains("data-series=\"1\"") && markup.contains("class=\"hatch\""), "{markup}");
        assert!(!markup.contains("url("));
    }
}
