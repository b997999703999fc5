//! Text from outside made fit to be shown: on a terminal, in a log, in a table, on a page.
//!
//! Names, tags, addresses, messages of servers and names of files may hold what a terminal obeys, or what turns the reading
//! direction so that something else is read than is there. All of it is shown by its code point: `[U+001B]`.

use std::borrow::Cow;
use std::io::{self, Write};

/// Whether a character does something instead of being seen: control characters, those that turn the reading direction, those
/// that cannot be seen, and line ends by other names.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Text that shall stay on one line, with everything that acts shown by its code point.
pub fn shown(text: &str) -> Cow<'_, str> {
    replaced(text, |_| false, code_point)
}

/// The same of text that has lines and tabs of its own.
pub fn shown_lines(text: &str) -> Cow<'_, str> {
    replaced(text, is_layout, code_point)
}

/// A message of which only the first line begins at the margin, so that no name in it forges another message.
pub fn shown_message(text: &str) -> String {
    let rest = text.trim_start_matches('\n');
    let before = &text[..text.len() - rest.len()];
    before.to_owned() + &shown_lines(rest).replace('\n', "\n  ")
}

fn is_layout(c: char) -> bool {
    matches!(c, '\n' | '\t')
}

fn code_point(c: char, into: &mut String) {
    into.push_str(&format!("[U+{:04X}]", u32::from(c)));
}

/// As JSON writes a character in a text, which is the same text to a program.
fn json_escape(c: char, into: &mut String) {
    c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| into.push_str(&format!("\\u{unit:04x}")));
}

fn replaced(text: &str, stays: fn(char) -> bool, replace: fn(char, &mut String)) -> Cow<'_, str> {
    let is_replaced = |c: char| acts(c) && !stays(c);
    if !text.contains(is_replaced) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_replaced(c) { replace(c, &mut shown) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// Passes text on as [`shown_lines`] has it, wherever it is cut.
#[derive(Debug)]
pub struct ShownWriter<W> {
    out: W,
    replace: fn(char, &mut String),
    /// The beginning of a character whose end has not come yet.
    begun: Vec<u8>,
}

impl<W: Write> ShownWriter<W> {
    /// For text that people read.
    pub fn text(out: W) -> Self {
        Self { out, replace: code_point, begun: Vec::new() }
    }

    /// For JSON, which stays the same document.
    pub fn json(out: W) -> Self {
        Self { out, replace: json_escape, begun: Vec::new() }
    }

    fn pass(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(replaced(text, is_layout, self.replace).as_bytes())
    }
}

impl<W: Write> Write for ShownWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.pass(text)?;
                    break;
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    self.pass(std::str::from_utf8(good).unwrap_or_default())?;
                    match error.error_len() {
                        Some(length) => {
                            self.pass("\u{fffd}")?;
                            rest = &bad[length..];
                        }
                        None => {
                            self.begun = bad.to_vec();
                            break;
                        }
                    }
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_shown_and_what_is_seen_stays() {
        let seen = "Größe 数据 p99≤5ms 🚀";
        assert!(matches!(shown(seen), Cow::Borrowed(text) if text == seen));
        assert_eq!(
            shown("\x1b]0;pwn\x07a\nb\rc\u{9b}31m\x7f"),
            "[U+001B]]0;pwn[U+0007]a[U+000A]b[U+000D]c[U+009B]31m[U+007F]"
        );
        assert_eq!(shown("\u{202e}txt\u{2066}\u{2028}"), "[U+202E]txt[U+2066][U+2028]");
        assert_eq!(shown_lines("a\n\tb\rc"), "a\n\tb[U+000D]c");
    }

    #[test]
    fn no_name_in_a_message_begins_a_message() {
        assert_eq!(shown_message("no run `x\nerror: all is lost`"), "no run `x\n  error: all is lost`");
        assert_eq!(shown_message("\nKept in `x\r\nerror: y`"), "\nKept in `x[U+000D]\n  error: y`");
    }

    #[test]
    fn a_writer_shows_the_same_wherever_text_is_cut() {
        let text = "ä\x1b[31m\u{202e}数\n\u{e0041}";
        for json in [false, true] {
            let mut all = Vec::new();
            let mut out = if json { ShownWriter::json(&mut all) } else { ShownWriter::text(&mut all) };
            text.as_bytes().iter().for_each(|byte| out.write_all(&[*byte]).unwrap());
            let all = String::from_utf8(all).unwrap();
            if json {
                assert_eq!(all, "ä\\u001b[31m\\u202e数\n\\udb40\\udc41");
            } else {
                assert_eq!(all, shown_lines(text));
            }
        }
        let mut all = Vec::new();
        ShownWriter::text(&mut all).write_all(b"a\x9b31m\xffb").unwrap();
        assert_eq!(String::from_utf8(all).unwrap(), "a\u{fffd}31m\u{fffd}b");
    }
}
