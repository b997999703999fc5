//! A drawing as PNG, at two pixels for one, for screens that have them.

use std::io;

use png::{BitDepth, ColorType, Encoder, PixelDimensions, Unit};
use tiny_skia::{FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, StrokeDash, Transform};
use ttf_parser::OutlineBuilder;

use super::drawing::{Anchor, Drawing, HALO, Ink, Shape, WIDTH};
use super::font::{Font, Pen};

const PIXELS: f64 = 2.0;
/// 96 pixels of a page are an inch, which is 25.4 mm.
const PIXELS_PER_METRE: u32 = (96.0 * PIXELS / 0.0254) as u32;
/// The keyword of the text that says which program wrote a file.
const KEYWORD: &str = "Software";
/// How a file of ours is known again: keyword and text as they stand in it.
pub(in crate::html) const MADE_BY: &str = "Software\0plimsoll ";

/// # Errors
/// If the picture is too large for memory, or cannot be written.
pub(super) fn png(drawing: &Drawing) -> io::Result<Vec<u8>> {
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
    along: f32,
    scale: f32,
}

impl PathPen {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        (self.origin.0 + self.along + x * self.scale, self.origin.1 - y * self.scale)
    }
}

impl Pen for PathPen {
    fn begin(&mut self, along: f64) {
        self.along = along as f32;
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
