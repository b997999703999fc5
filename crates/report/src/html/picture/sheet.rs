//! What stands around every chart of a picture: head, legend, axes, and who made it.

use super::{Anchor, Drawing, Font, Ink, Shape, Stroke, WIDTH};
use crate::html::chart::{Quantity, Scale};
use crate::words::plain;

const MARGIN: f64 = 24.0;
const PLOT_HEIGHT: f64 = 330.0;
/// Room above the plot, for a text that stands over what is highest.
pub(super) const HEADROOM: f64 = 20.0;
const TITLE: f64 = 20.0;
const ANSWER: f64 = 15.5;
const MAX_ANSWER_LINES: usize = 5;
pub(super) const SMALL: f64 = 13.0;
const MAX_NOTE_LINES: usize = 3;
/// Between two lines of text, as a share of its size.
const LEADING: f64 = 1.35;
const MADE_BY: &str = concat!("plimsoll ", env!("CARGO_PKG_VERSION"));

/// What a picture says before it shows anything.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) title: String,
    /// The answer in a sentence.
    pub(super) answer: String,
    /// Whether the answer is a warning.
    pub(super) is_doubtful: bool,
    /// Which run, when, on what.
    pub(super) under: String,
}

/// A picture that is being drawn, from its head downwards.
pub(super) struct Sheet {
    pub(super) drawing: Drawing,
    pub(super) font: Font,
    /// Where the next thing begins.
    down: f64,
    /// Where labels and points are: left, top, right, bottom.
    taken: Vec<[f64; 4]>,
    /// Points of lines.
    crossed: Vec<(f64, f64)>,
}

/// Where the chart is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plot {
    left: f64,
    top: f64,
}

impl Plot {
    pub(super) fn width(&self) -> f64 {
        WIDTH - MARGIN - self.left
    }

    /// The place of two shares, from the left and from below.
    pub(super) fn at(&self, across: f64, up: f64) -> (f64, f64) {
        (self.left + across * self.width(), self.top + (1.0 - up) * PLOT_HEIGHT)
    }
}

impl Sheet {
    /// Begins a picture. `note` says at which layer and over which window, `words` all of it to those who cannot see it.
    pub(super) fn new(head: &Head, note: &str, words: &str) -> Self {
        let title = clean(&head.title);
        let words = clean(&format!("{} {words}", head.answer));
        let drawing = Drawing { title: title.clone(), words, height: 0.0, shapes: Vec::new() };
        let mut sheet = Self { drawing, font: Font::new(), down: MARGIN, taken: Vec::new(), crossed: Vec::new() };
        sheet.paragraph(&title, TITLE, Ink::TEXT, 1);
        sheet.down += 6.0;
        let ink = if head.is_doubtful { Ink::LIMIT } else { Ink::TEXT };
        sheet.paragraph(&clean(&head.answer), ANSWER, ink, MAX_ANSWER_LINES);
        sheet.down += 6.0;
        sheet.paragraph(&clean(&head.under), SMALL, Ink::QUIET, 1);
        sheet.paragraph(&clean(note), SMALL, Ink::QUIET, MAX_NOTE_LINES);
        sheet.down += 10.0;
        sheet
    }

    fn paragraph(&mut self, text: &str, size: f64, ink: Ink, lines: usize) {
        for line in self.font.wrap(text, size, WIDTH - 2.0 * MARGIN, lines) {
            self.drawing.text((MARGIN, self.down + size), size, Anchor::Start, ink, &line);
            self.down += size * LEADING;
        }
    }

    /// Names of series with their colours; one series needs none but the vertical axis's title.
    pub(super) fn legend(&mut self, names: &[&str]) {
        const KEY: f64 = 22.0;
        if names.len() < 2 {
            return;
        }
        let mut x = MARGIN;
        for (series, name) in names.iter().enumerate() {
            let name = self.font.fit(&clean(name), SMALL, WIDTH - 2.0 * MARGIN - KEY - 8.0);
            let width = KEY + 8.0 + self.font.width(&name, SMALL) + 20.0;
            if x > MARGIN && x + width - 20.0 > WIDTH - MARGIN {
                (x, self.down) = (MARGIN, self.down + SMALL * 1.6);
            }
            let points = vec![(x, self.down + 9.0), (x + KEY, self.down + 9.0)];
            let (ink, stroke) = (Ink::of_series(series), Stroke::of_series(series));
            self.drawing.shapes.push(Shape::Path { points, width: 4.0, ink, stroke });
            self.drawing.text((x + KEY + 8.0, self.down + 14.0), SMALL, Anchor::Start, Ink::TEXT, &name);
            x += width;
        }
        self.down += SMALL * 1.6 + 6.0;
    }

    /// The place of the chart, below the title of its vertical axis. `beyond` says from which height on a limit is not kept.
    pub(super) fn plot(&mut self, scale: &Scale, quantity: Quantity, title: &str, beyond: Option<f64>) -> Plot {
        let ticks: Vec<(f64, String)> = scale.ticks(5).iter().map(|y| (scale.share(*y), quantity.tick(*y))).collect();
        let widest = ticks.iter().map(|(_, label)| self.font.width(label, SMALL)).fold(0.0, f64::max);
        let by_logarithm = if matches!(scale, Scale::Log { .. }) { ", logarithmic" } else { "" };
        self.paragraph(&clean(&format!("{title}{by_logarithm}")), SMALL, Ink::QUIET, 1);
        let plot = Plot { left: (MARGIN + widest + 10.0).round(), top: (self.down + HEADROOM).round() };
        if let Some(beyond) = beyond {
            let (left, top) = plot.at(0.0, 1.0);
            let height = plot.at(0.0, beyond).1 - top;
            self.drawing.shapes.push(Shape::Area { left, top, width: plot.width(), height, ink: Ink::BEYOND });
        }
        for (share, label) in &ticks {
            let y = plot.at(0.0, *share).1.round() + 0.5;
            self.drawing.line((plot.left, y), (WIDTH - MARGIN, y), Ink::GRID);
            self.drawing.text((plot.left - 8.0, y + SMALL * 0.36), SMALL, Anchor::End, Ink::QUIET, label);
        }
        self.down = plot.at(0.0, 0.0).1;
        plot
    }

    /// Writes a text at that of `places` where it lies on no other text and least on lines; nowhere if there is none.
    pub(super) fn label(&mut self, places: &[((f64, f64), Anchor)], ink: Ink, text: &str) {
        let text = clean(text);
        let width = self.font.width(&text, SMALL);
        let room = |((x, y), anchor): &((f64, f64), Anchor)| {
            let left = match anchor {
                Anchor::Start => *x,
                Anchor::Middle => x - width / 2.0,
                Anchor::End => x - width,
            };
            [left, y - SMALL, left + width, y + 3.0]
        };
        let lie = |[left, top, right, bottom]: [f64; 4], other: &[f64; 4]| {
            left < other[2] && other[0] < right && top < other[3] && other[1] < bottom
        };
        let is_free = |place: &&((f64, f64), Anchor)| {
            let room = room(place);
            let is_inside = room[0] > 0.0 && room[2] < WIDTH && room[3] < self.down;
            is_inside && !self.taken.iter().any(|other| lie(room, other))
        };
        let crossings = |place: &&((f64, f64), Anchor)| {
            let [left, top, right, bottom] = room(place);
            self.crossed.iter().filter(|(x, y)| (left..right).contains(x) && (top..bottom).contains(y)).count()
        };
        let Some(place) = places.iter().filter(is_free).min_by_key(crossings) else { return };
        let ((at, anchor), room) = (*place, room(place));
        self.taken.push(room);
        self.drawing.shapes.push(Shape::Text { at, size: SMALL, anchor, ink, has_halo: true, text });
    }

    /// Draws a line that labels keep clear of, if they can.
    pub(super) fn curve(&mut self, points: Vec<(f64, f64)>, width: f64, ink: Ink, stroke: Stroke) {
        const APART: f64 = 4.0;
        for pair in points.windows(2) {
            let (by_x, by_y) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
            let count = (by_x.hypot(by_y) / APART).ceil().max(1.0);
            let along = (0..=count as usize).map(|at| at as f64 / count);
            self.crossed.extend(along.map(|share| (pair[0].0 + by_x * share, pair[0].1 + by_y * share)));
        }
        self.drawing.shapes.push(Shape::Path { points, width, ink, stroke });
    }

    /// Draws a point that no label lies on.
    pub(super) fn dot(&mut self, at: (f64, f64), radius: f64, ink: Ink) {
        self.taken.push([at.0 - radius, at.1 - radius, at.0 + radius, at.1 + radius]);
        self.drawing.shapes.push(Shape::Dot { at, radius, ink });
    }

    /// Draws the horizontal axis and ends the picture.
    pub(super) fn end(mut self, plot: &Plot, ticks: &[(f64, String)], title: &str) -> Drawing {
        let (left, bottom) = plot.at(0.0, 0.0);
        let bottom = bottom.round() + 0.5;
        self.drawing.line((left, bottom), (WIDTH - MARGIN, bottom), Ink::AXIS);
        self.drawing.line((left + 0.5, plot.top), (left + 0.5, bottom), Ink::AXIS);
        let reach = |(share, label): &(f64, String)| {
            let (x, half) = (plot.at(*share, 0.0).0, self.font.width(label, SMALL) / 2.0);
            (x - half, x + half + 8.0)
        };
        let fit = |every: &usize| {
            let shown: Vec<(f64, f64)> = ticks.iter().step_by(*every).map(reach).collect();
            shown.windows(2).all(|pair| pair[0].1 <= pair[1].0)
        };
        let every = (1..ticks.len()).find(fit).unwrap_or(ticks.len().max(1));
        let shown = ticks.iter().step_by(every).filter(|tick| reach(tick).1 <= WIDTH);
        for (share, label) in shown.collect::<Vec<_>>() {
            let x = plot.at(*share, 0.0).0;
            self.drawing.line((x, bottom), (x, bottom + 5.0), Ink::AXIS);
            self.drawing.text((x, bottom + 20.0), SMALL, Anchor::Middle, Ink::QUIET, label);
        }
        self.down = bottom + 42.0;
        let maker = self.font.width(MADE_BY, SMALL) + 20.0;
        let title = self.font.fit(&clean(title), SMALL, WIDTH - MARGIN - left - maker);
        self.drawing.text((left, self.down), SMALL, Anchor::Start, Ink::QUIET, &title);
        self.drawing.text((WIDTH - MARGIN, self.down), SMALL, Anchor::End, Ink::QUIET, MADE_BY);
        self.drawing.height = (self.down + 18.0).ceil();
        self.drawing
    }
}

/// Text as a picture can have it: without the marks that make code of a word, and without what XML may not hold.
fn clean(text: &str) -> String {
    plain(&text.replace('`', "")).replace(['\u{fffe}', '\u{ffff}'], "?")
}
