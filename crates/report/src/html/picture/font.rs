//! The font of pictures, carried in the program: a server often has none, and a text must have the same width everywhere.

use ttf_parser::{Face, OutlineBuilder};

/// A part of DejaVu Sans; `DejaVuSans.txt` has which, and its licence.
const FONT: &[u8] = include_bytes!("DejaVuSans.ttf");
const ELLIPSIS: char = '…';

/// Takes outlines of letters.
pub(super) trait Pen: OutlineBuilder {
    /// The next letter stands `along` pixels from the beginning of its text.
    fn begin(&mut self, along: f64);
}

/// The font, ready to be measured and drawn.
pub(super) struct Font(Face<'static>);

impl Font {
    pub(super) fn new() -> Self {
        Self(Face::parse(FONT, 0).expect("the font that the program carries is whole"))
    }

    /// How wide a text is at `size` pixels.
    pub(super) fn width(&self, text: &str, size: f64) -> f64 {
        text.chars().map(|letter| self.advance(letter)).sum::<f64>() * size
    }

    /// Draws each letter with `pen`, which is first given its distance from the beginning of the text.
    pub(super) fn outline<P: Pen>(&self, text: &str, size: f64, pen: &mut P) {
        let mut along = 0.0;
        for letter in text.chars() {
            pen.begin(along);
            self.0.outline_glyph(self.glyph(letter), pen);
            along += self.advance(letter) * size;
        }
    }

    /// Pixels of a unit of the font at `size`.
    pub(super) fn scale(&self, size: f64) -> f64 {
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
    pub(super) fn fit(&self, text: &str, size: f64, room: f64) -> String {
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
    pub(super) fn wrap(&self, text: &str, size: f64, room: f64, lines: usize) -> Vec<String> {
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

#[cfg(test)]
mod tests {
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
            "Carries at least 76,580 reads/s at p99 of `db file sequential read` within 5.00 ms with 32 sessions";
        let whole = font.wrap(text, 15.0, 400.0, 9);
        assert!(whole.len() > 1 && whole.iter().all(|line| font.width(line, 15.0) <= 400.0), "{whole:?}");
        assert_eq!(whole.join(" "), text);
        let cut = font.wrap(text, 15.0, 400.0, 1);
        assert!(cut.len() == 1 && cut[0].ends_with('…') && font.width(&cut[0], 15.0) <= 400.0, "{cut:?}");
        let word = "x".repeat(500);
        assert!(font.width(&font.wrap(&word, 15.0, 400.0, 3)[0], 15.0) <= 400.0, "a word that does not fit is cut");
    }
}
