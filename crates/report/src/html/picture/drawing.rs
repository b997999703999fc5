//! A drawing: what SVG and PNG are both written from, in pixels of a page 900 wide, downwards from its upper left corner.

/// Width of every picture: that of a mail.
pub(super) const WIDTH: f64 = 900.0;

/// A colour: red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ink(pub(super) [u8; 3]);

impl Ink {
    pub(super) const GROUND: Self = Self([255, 255, 255]);
    pub(super) const TEXT: Self = Self([0x1b, 0x22, 0x29]);
    pub(super) const QUIET: Self = Self([0x55, 0x61, 0x6d]);
    pub(super) const GRID: Self = Self([0xe3, 0xe8, 0xed]);
    pub(super) const AXIS: Self = Self([0x8a, 0x96, 0xa3]);
    pub(super) const LIMIT: Self = Self([0xb8, 0x32, 0x1f]);
    /// Where a limit is not kept.
    pub(super) const BEYOND: Self = Self([0xfb, 0xf0, 0xee]);
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

    pub(super) fn of_series(series: usize) -> Self {
        Self::SERIES[series % Self::SERIES.len()]
    }
}

/// How a line is broken: later series repeat colours with other strokes, as on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stroke {
    Whole,
    Dashed,
    Dotted,
}

impl Stroke {
    pub(super) fn of_series(series: usize) -> Self {
        match series / Ink::SERIES.len() {
            0 => Self::Whole,
            1 => Self::Dashed,
            _ => Self::Dotted,
        }
    }

    /// Lengths of line and gap in pixels.
    pub(super) fn dashes(self) -> Option<[f32; 2]> {
        match self {
            Self::Whole => None,
            Self::Dashed => Some([7.0, 4.0]),
            Self::Dotted => Some([2.0, 4.0]),
        }
    }
}

/// Width of the ground that a text with a halo has around it.
pub(super) const HALO: f64 = 4.0;

/// Where a text stands relative to its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// One thing that is drawn.
#[derive(Debug, Clone)]
pub(super) enum Shape {
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
pub(super) struct Drawing {
    /// What it shows, in a line.
    pub(super) title: String,
    /// The same in sentences, for those who cannot see it.
    pub(super) words: String,
    pub(super) height: f64,
    pub(super) shapes: Vec<Shape>,
}

impl Drawing {
    pub(super) fn text(&mut self, at: (f64, f64), size: f64, anchor: Anchor, ink: Ink, text: &str) {
        self.shapes.push(Shape::Text { at, size, anchor, ink, has_halo: false, text: text.to_owned() });
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), ink: Ink) {
        self.shapes.push(Shape::Path { points: vec![from, to], width: 1.0, ink, stroke: Stroke::Whole });
    }
}
