//! The chart that answers the question, as a file for a mail: what pages draw, once more, with its head, axes and text in one
//! drawing on a light ground.
//!
//! Why not a library that turns SVG into pixels: text is all it would add, and with it forty crates and a search for fonts that
//! a server does not have. A drawing here is rectangles, lines, dots and text; each of them is an element of SVG, and one path
//! for `tiny-skia`.

mod sheet;
#[cfg(test)]
mod tests;

use std::fmt::Write;
use std::io;

use maud::{Markup, html};
use tiny_skia::{FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, StrokeDash, Transform};
use ttf_parser::{Face, OutlineBuilder};

use self::sheet::Head;
use super::distribution::{self, Judged};
use super::{Reported, comparison, load_line};
use crate::comparison::headline;
use crate::facts::clock;
use crate::html::chart::{At, Bars, Line, Lines, Quantity, Scale};
use analysis::history::Histories;
use analysis::{Compared, FirstScreen, Opening, Overall, is_of_jobs};
use model::record::Run;
use png::{BitDepth, ColorType, Encoder, PixelDimensions, Unit};
use sheet::{HEADROOM, SMALL, Sheet};

/// How the files that this makes are known again.
pub(super) const MADE_BY: [&str; 2] = [SVG_MADE_BY, PNG_MADE_BY];

/// A chart as a picture.
#[derive(Debug, Clone)]
pub struct Picture(Drawing);

impl Picture {
    /// Of a run that varied connections throughput over them; of a map reads against writes; of another with several steps latency against throughput, with limit and load line; of a single one the histogram of what
    /// it is judged by. `None` where the run has neither.
    pub fn of_run(reported: &Reported<'_>) -> Option<Self> {
        let Reported { run, findings, windows } = *reported;
        // Jobs that ran at the same time are one load, and no curve leads from one to the other.
        let of_steps = || {
            if is_of_jobs(run) || run.load.map().is_some() { None } else { load_line::chart(run, findings, "") }
        };
        let curve = super::over_connections(run, "").or_else(|| super::map::chart(run, "", windows)).or_else(of_steps);
        let drawn = curve.and_then(|chart| draw_lines(&head(reported, &chart.frame.title), &chart));
        let histogram = || {
            let Judged { chart, limit, reached } =
                distribution::judged(run, &load_line::judged_by(run, findings), findings)?;
            let mark = |(at, name), is_limit| Mark { at, name, is_limit };
            let limit = limit.map(|limit| mark(limit, true));
            let marks: Vec<Mark> = limit.into_iter().chain(reached.map(|reached| mark(reached, false))).collect();
            draw_bars(&head(reported, &chart.frame.title), &chart, &marks)
        };
        let is_map = run.load.map().is_some();
        drawn.or_else(|| if is_map { None } else { histogram() }).map(Self)
    }

    /// Of runs with several steps their curves over each other; of single ones the histograms of the first load that they have
    /// in common. `None` where there is neither.
    pub fn of_comparison(compared: &Compared, runs: &[&Run]) -> Option<Self> {
        let head = |title: &str| {
            let verdicts = compared.pairs.iter().map(|pair| compared.verdict(pair));
            Head {
                title: format!("{title}: {}", compared.names.join(", ")),
                answer: verdicts.collect::<Vec<_>>().join(" "),
                is_doubtful: compared
                    .pairs
                    .iter()
                    .any(|pair| matches!(pair.overall(), Overall::Worse | Overall::Mixed)),
                under: headline(compared),
            }
        };
        let curves = load_line::overlay(&comparison::named(compared, runs));
        let drawn = curves.and_then(|chart| draw_lines(&head(&chart.frame.title), &chart));
        let histogram = || {
            let chart = comparison::first_histogram(compared, runs)?;
            draw_bars(&head(&chart.frame.title), &chart, &[])
        };
        drawn.or_else(histogram).map(Self)
    }

    /// Of histories the figure that is worst, over time. `None` where no run has one.
    pub fn of_histories(histories: &Histories) -> Option<Self> {
        let (chart, history) = super::history::main_chart(histories)?;
        let head = Head {
            title: format!("{}: {}", crate::history::title(history), chart.frame.title),
            answer: crate::history::answer(histories, history),
            is_doubtful: histories.is_worse() == Some(true),
            under: crate::history::grounds(histories, history),
        };
        draw_lines(&head, &chart).map(Self)
    }

    /// As SVG.
    pub fn svg(&self) -> String {
        self::svg(&self.0)
    }

    /// As PNG.
    ///
    /// # Errors
    /// If there is not enough memory for its pixels.
    pub fn png(&self) -> io::Result<Vec<u8>> {
        self::png(&self.0)
    }
}

fn head(reported: &Reported<'_>, title: &str) -> Head {
    let run = reported.run;
    let opening = Opening::of(run, reported.findings);
    let answer = FirstScreen::with(&opening, run, reported.findings);
    let limited = match &answer.limited_by {
        Some(by) if by.starts_with("by ") => format!("; limited {by}"),
        Some(words) => format!("; {words}"),
        None => String::new(),
    };
    let target = format!("{} {}", run.target.kind_name(), run.target.address);
    let mut under =
        vec![format!("{} {}", run.started_at.0.strftime("%Y-%m-%d %H:%M:%S"), clock(run)), run.workload().to_string()];
    if !run.name.is_empty() {
        under.insert(0, run.name.clone());
    }
    under.insert(0, run.id.clone());
    if !target.trim().is_empty() {
        under.push(target.trim().to_owned());
    }
    Head {
        title: title.to_owned(),
        answer: format!("{}{limited}", answer.headline()),
        is_doubtful: opening.doubt.is_some(),
        under: under.join(" · "),
    }
}

// A histogram by power-of-two buckets, with the limit and what was reached.

/// Share of a place that its bars take.
const FILLED: f64 = 0.84;

/// A duration that is worth a line from bottom to top.
#[derive(Debug, Clone)]
struct Mark {
    /// Where it lies, as a share of the axis.
    at: f64,
    name: String,
    is_limit: bool,
}

/// Draws it; `None` if no bar has a height.
fn draw_bars(head: &Head, chart: &Bars, marks: &[Mark]) -> Option<Drawing> {
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

// The font of pictures, carried in the program: a server often has none, and a text must have the same width everywhere.

/// A part of DejaVu Sans; `DejaVuSans.txt` has which, and its licence.
const FONT: &[u8] = include_bytes!("DejaVuSans.ttf");
const ELLIPSIS: char = '…';

/// The font, ready to be measured and drawn.
struct Font(Face<'static>);

impl Font {
    fn new() -> Self {
        Self(Face::parse(FONT, 0).expect("the embedded font is whole"))
    }

    /// How wide a text is at `size` pixels.
    fn width(&self, text: &str, size: f64) -> f64 {
        text.chars().map(|letter| self.advance(letter)).sum::<f64>() * size
    }

    /// Draws each letter with `pen`.
    fn outline(&self, text: &str, size: f64, pen: &mut PathPen) {
        for letter in text.chars() {
            self.0.outline_glyph(self.glyph(letter), pen);
            pen.along += self.advance(letter) * size;
        }
    }

    /// Pixels of a unit of the font at `size`.
    fn scale(&self, size: f64) -> f64 {
        size / f64::from(self.0.units_per_em())
    }

    /// A letter that the font does not have is drawn as an empty box.
    fn glyph(&self, letter: char) -> ttf_parser::GlyphId {
        self.0.glyph_index(letter).unwrap_or_default()
    }

    fn advance(&self, letter: char) -> f64 {
        f64::from(self.0.glyph_hor_advance(self.glyph(letter)).unwrap_or_default()) / f64::from(self.0.units_per_em())
    }

    /// The text, cut where it is wider than `room`.
    fn fit(&self, text: &str, size: f64, room: f64) -> String {
        if self.width(text, size) <= room {
            return text.to_owned();
        }
        let room = room / size - self.advance(ELLIPSIS);
        let mut width = 0.0;
        let kept = text.chars().take_while(|letter| {
            width += self.advance(*letter);
            width <= room
        });
        kept.chain([ELLIPSIS]).collect()
    }

    /// The text in lines no wider than `room`, at most `lines` of them.
    fn wrap(&self, text: &str, size: f64, room: f64, lines: usize) -> Vec<String> {
        let mut wrapped: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            match wrapped.last_mut() {
                Some(line) if self.width(line, size) + self.width(&format!(" {word}"), size) <= room => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => wrapped.push(word.to_owned()),
            }
        }
        if wrapped.len() > lines {
            let rest = wrapped.split_off(lines.max(1) - 1);
            wrapped.push(rest.join(" "));
        }
        wrapped.iter().map(|line| self.fit(line, size, room)).collect()
    }
}

// A drawing as SVG: text stays text, so that it can be found and copied, and nothing is loaded.

/// The font of the program's own measure first, then others that are no wider.
const FONTS: &str = "DejaVu Sans, Verdana, Segoe UI, system-ui, sans-serif";
/// How a file of ours is known again.
const SVG_MADE_BY: &str = "<!-- made by plimsoll ";

fn svg(drawing: &Drawing) -> String {
    let drawn = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(WIDTH) height=(drawing.height)
            viewBox=(format!("0 0 {WIDTH} {}", drawing.height)) role="img" aria-labelledby="title words"
            font-family=(FONTS) {
            title #title { (drawing.title) }
            desc #words { (drawing.words) }
            rect width=(WIDTH) height=(drawing.height) fill=(colour(Ink::GROUND)) {}
            @for shape in &drawing.shapes { (element(shape)) }
        }
    };
    // XML ends where this comment does, so its text is our own.
    format!("{SVG_MADE_BY}{} -->\n{}\n", env!("CARGO_PKG_VERSION"), drawn.into_string())
}

fn element(shape: &Shape) -> Markup {
    match shape {
        Shape::Area { left, top, width, height, ink } => html! {
            rect x=(short(*left)) y=(short(*top)) width=(short(*width)) height=(short(*height)) fill=(colour(*ink)) {}
        },
        Shape::Path { points, width, ink, stroke } => {
            let dashes = stroke.dashes().map(|[line, gap]| format!("{line} {gap}"));
            html! {
                path d=(steps(points)) fill="none" stroke=(colour(*ink)) stroke-width=(width) stroke-linejoin="round"
                    stroke-dasharray=[dashes] {}
            }
        }
        Shape::Dot { at: (x, y), radius, ink } => html! {
            circle cx=(short(*x)) cy=(short(*y)) r=(radius) fill=(colour(*ink)) {}
        },
        Shape::Text { at: (x, y), size, anchor, ink, has_halo, text } => {
            let anchor = match anchor {
                Anchor::Start => None,
                Anchor::Middle => Some("middle"),
                Anchor::End => Some("end"),
            };
            let halo = has_halo.then(|| colour(Ink::GROUND));
            html! {
                text x=(short(*x)) y=(short(*y)) font-size=(size) fill=(colour(*ink)) text-anchor=[anchor]
                    stroke=[&halo] stroke-width=[halo.as_ref().map(|_| HALO)] paint-order=[halo.as_ref().map(|_| "stroke")]
                    stroke-linejoin=[halo.as_ref().map(|_| "round")] { (text) }
            }
        }
    }
}

fn colour(Ink([red, green, blue]): Ink) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// A tenth of a pixel is finer than anyone sees.
fn short(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn steps(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (number, (x, y)) in points.iter().enumerate() {
        let _ = write!(path, "{}{} {}", if number == 0 { "M" } else { "L" }, short(*x), short(*y));
    }
    path
}

// A drawing: what SVG and PNG are both written from, in pixels of a page 900 wide, downwards from its upper left corner.

/// Width of every picture: that of a mail.
const WIDTH: f64 = 900.0;

/// A colour: red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ink([u8; 3]);

impl Ink {
    const GROUND: Self = Self([255, 255, 255]);
    const TEXT: Self = Self([0x1b, 0x22, 0x29]);
    const QUIET: Self = Self([0x55, 0x61, 0x6d]);
    const GRID: Self = Self([0xe3, 0xe8, 0xed]);
    const AXIS: Self = Self([0x8a, 0x96, 0xa3]);
    const LIMIT: Self = Self([0xb8, 0x32, 0x1f]);
    /// Where a limit is not kept.
    const BEYOND: Self = Self([0xfb, 0xf0, 0xee]);
    /// The colours of series on a page with a light ground, in the same order.
    const SERIES: [Self; 8] = [
        Self([0x0b, 0x5c, 0xad]),
        Self([0xc2, 0x41, 0x0c]),
        Self([0x15, 0x80, 0x3d]),
        Self([0x93, 0x33, 0xea]),
        Self([0xa1, 0x62, 0x07]),
        Self([0xbe, 0x18, 0x5d]),
        Self([0x0e, 0x74, 0x90]),
        Self([0x57, 0x53, 0x4e]),
    ];

    fn of_series(series: usize) -> Self {
        Self::SERIES[series % Self::SERIES.len()]
    }
}

/// How a line is broken: later series repeat colours with other strokes, as on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stroke {
    Whole,
    Dashed,
    Dotted,
}

impl Stroke {
    fn of_series(series: usize) -> Self {
        match series / Ink::SERIES.len() {
            0 => Self::Whole,
            1 => Self::Dashed,
            _ => Self::Dotted,
        }
    }

    /// Lengths of line and gap in pixels.
    fn dashes(self) -> Option<[f32; 2]> {
        match self {
            Self::Whole => None,
            Self::Dashed => Some([7.0, 4.0]),
            Self::Dotted => Some([2.0, 4.0]),
        }
    }
}

/// Width of the ground that a text with a halo has around it.
const HALO: f64 = 4.0;

/// Where a text stands relative to its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchor {
    Start,
    Middle,
    End,
}

/// One thing that is drawn.
#[derive(Debug, Clone)]
enum Shape {
    /// A filled rectangle.
    Area { left: f64, top: f64, width: f64, height: f64, ink: Ink },
    /// Lines from point to point.
    Path { points: Vec<(f64, f64)>, width: f64, ink: Ink, stroke: Stroke },
    /// A filled circle.
    Dot { at: (f64, f64), radius: f64, ink: Ink },
    /// One line of text; `at` is on its base line. With a halo it is read over lines too.
    Text { at: (f64, f64), size: f64, anchor: Anchor, ink: Ink, has_halo: bool, text: String },
}

/// A picture in parts, drawn in their order.
#[derive(Debug, Clone)]
struct Drawing {
    /// What it shows, in a line.
    title: String,
    /// The same in sentences, for those who cannot see it.
    words: String,
    height: f64,
    shapes: Vec<Shape>,
}

impl Drawing {
    fn text(&mut self, at: (f64, f64), size: f64, anchor: Anchor, ink: Ink, text: &str) {
        self.shapes.push(Shape::Text { at, size, anchor, ink, has_halo: false, text: text.to_owned() });
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), ink: Ink) {
        self.shapes.push(Shape::Path { points: vec![from, to], width: 1.0, ink, stroke: Stroke::Whole });
    }
}

// Latency against throughput, with the limit across.

/// Beyond so many times each other, curve and limit are both seen on a logarithmic axis only.
const MAX_LIMIT_ABOVE: f64 = 4.0;
const MAX_CURVE_ABOVE: f64 = 20.0;
const RADIUS: f64 = 5.0;
/// Points less far apart from left to right could be taken for each other.
const NEAR: f64 = 60.0;
/// Heights at which the name of a mark may stand, from the bottom to the top.
const MARK_PLACES: u8 = 17;

/// Draws it; `None` where no line has two points to join.
fn draw_lines(head: &Head, chart: &Lines) -> Option<Drawing> {
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

const PIXELS: f64 = 2.0;
/// 96 pixels of a page are an inch, which is 25.4 mm.
const PIXELS_PER_METRE: u32 = (96.0 * PIXELS / 0.0254) as u32;
/// The keyword of the text that says which program wrote a file.
const KEYWORD: &str = "Software";
/// How a file of ours is known again: keyword and text as they stand in it.
const PNG_MADE_BY: &str = "Software\0plimsoll ";

/// # Errors
/// If the picture is too large for memory, or cannot be written.
fn png(drawing: &Drawing) -> io::Result<Vec<u8>> {
    let (width, height) = ((WIDTH * PIXELS) as u32, (drawing.height * PIXELS).ceil() as u32);
    let mut pixmap = Pixmap::new(width, height).ok_or_else(|| io::Error::other("the picture is too large"))?;
    let Ink([red, green, blue]) = Ink::GROUND;
    pixmap.fill(tiny_skia::Color::from_rgba8(red, green, blue, 255));
    let font = Font::new();
    for shape in &drawing.shapes {
        draw(&mut pixmap, &font, shape);
    }
    // The ground is opaque, and so is all that is drawn on it.
    let colours: Vec<u8> =
        pixmap.pixels().iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]).collect();
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width, height);
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    let dimensions = PixelDimensions { xppu: PIXELS_PER_METRE, yppu: PIXELS_PER_METRE, unit: Unit::Meter };
    encoder.set_pixel_dims(Some(dimensions));
    encoder.add_text_chunk(KEYWORD.to_owned(), concat!("plimsoll ", env!("CARGO_PKG_VERSION")).to_owned())?;
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&colours)?;
    writer.finish()?;
    Ok(file)
}

fn draw(pixmap: &mut Pixmap, font: &Font, shape: &Shape) {
    let scaled = Transform::from_scale(PIXELS as f32, PIXELS as f32);
    match shape {
        Shape::Area { left, top, width, height, ink } => {
            if let Some(area) = Rect::from_xywh(*left as f32, *top as f32, *width as f32, *height as f32) {
                pixmap.fill_rect(area, &paint(*ink), scaled, None);
            }
        }
        Shape::Path { points, width, ink, stroke } => {
            let mut path = PathBuilder::new();
            for (number, (x, y)) in points.iter().enumerate() {
                let (x, y) = (*x as f32, *y as f32);
                if number == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
            }
            let stroke = tiny_skia::Stroke {
                width: *width as f32,
                line_join: LineJoin::Round,
                dash: stroke.dashes().and_then(|dashes| StrokeDash::new(dashes.to_vec(), 0.0)),
                ..tiny_skia::Stroke::default()
            };
            if let Some(path) = path.finish() {
                pixmap.stroke_path(&path, &paint(*ink), &stroke, scaled, None);
            }
        }
        Shape::Dot { at: (x, y), radius, ink } => {
            fill(pixmap, PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32), *ink, scaled);
        }
        Shape::Text { at: (x, y), size, anchor, ink, has_halo, text } => {
            let width = font.width(text, *size);
            let left = match anchor {
                Anchor::Start => *x,
                Anchor::Middle => x - width / 2.0,
                Anchor::End => x - width,
            };
            let (origin, scale) = ((left as f32, *y as f32), font.scale(*size) as f32);
            let mut pen = PathPen { letters: PathBuilder::new(), origin, along: 0.0, scale };
            font.outline(text, *size, &mut pen);
            let letters = pen.letters.finish();
            if let Some(letters) = letters.as_ref().filter(|_| *has_halo) {
                let line_join = LineJoin::Round;
                let stroke = tiny_skia::Stroke { width: HALO as f32, line_join, ..tiny_skia::Stroke::default() };
                pixmap.stroke_path(letters, &paint(Ink::GROUND), &stroke, scaled, None);
            }
            fill(pixmap, letters, *ink, scaled);
        }
    }
}

fn paint(Ink([red, green, blue]): Ink) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(red, green, blue, 255);
    paint
}

fn fill(pixmap: &mut Pixmap, path: Option<Path>, ink: Ink, scaled: Transform) {
    if let Some(path) = path {
        pixmap.fill_path(&path, &paint(ink), FillRule::Winding, scaled, None);
    }
}

/// Makes one path of all letters of a text. Outlines are reported upwards from the base line.
struct PathPen {
    letters: PathBuilder,
    origin: (f32, f32),
    /// Distance of the letter from the beginning of its text.
    along: f64,
    scale: f32,
}

impl PathPen {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        (self.origin.0 + self.along as f32 + x * self.scale, self.origin.1 - y * self.scale)
    }
}

impl OutlineBuilder for PathPen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.letters.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.letters.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.letters.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
        self.letters.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.letters.close();
    }
}

#[cfg(test)]
mod font_tests {
    use super::*;

    #[test]
    fn every_sign_that_reports_write_is_in_the_font() {
        let font = Font::new();
        let written = "ABCXYZabcxyz0123456789.,:;!?%&/()[]{}<>=+-*'\"#_|~^@$ äöüßéñøłžΩµдж–—·…→≤≥≈€";
        let missing: String = written.chars().filter(|letter| font.0.glyph_index(*letter).is_none()).collect();
        assert_eq!(missing, "");
    }

    #[test]
    fn lines_are_as_wide_as_their_room_and_nothing_is_lost_but_behind_an_ellipsis() {
        let font = Font::new();
        let text =
            "Sustains at least 76,580 reads/s at p99 of `db file sequential read` within 5.00 ms with 32 sessions";
        let whole = font.wrap(text, 15.0, 400.0, 9);
        assert!(whole.len() > 1 && whole.iter().all(|line| font.width(line, 15.0) <= 400.0), "{whole:?}");
        assert_eq!(whole.join(" "), text);
        let cut = font.wrap(text, 15.0, 400.0, 1);
        assert!(cut.len() == 1 && cut[0].ends_with('…') && font.width(&cut[0], 15.0) <= 400.0, "{cut:?}");
        let word = "x".repeat(500);
        assert!(font.width(&font.wrap(&word, 15.0, 400.0, 3)[0], 15.0) <= 400.0, "a word that does not fit is cut");
    }
}
