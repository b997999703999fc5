//! A drawing as SVG: text stays text, so that it can be found and copied, and nothing is loaded.

use std::fmt::Write;

use maud::{Markup, html};

use super::drawing::{Anchor, Drawing, HALO, Ink, Shape, WIDTH};

/// The font of the program's own measure first, then others that are no wider.
const FONTS: &str = "DejaVu Sans, Verdana, Segoe UI, system-ui, sans-serif";
/// How a file of ours is known again.
pub(in crate::html) const MADE_BY: &str = "<!-- made by plimsoll ";

pub(super) fn svg(drawing: &Drawing) -> String {
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
    format!("{MADE_BY}{} -->\n{}\n", env!("CARGO_PKG_VERSION"), drawn.into_string())
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
