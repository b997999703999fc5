//! Lines of comma-separated values, as RFC 4180 has them.

use std::io::{self, Write};

use model::shown::shown_lines;

/// What a cell begins with that a spreadsheet takes for a formula, by itself or behind blanks.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// A cell of text, in quotation marks where it needs them. What acts on a terminal is shown, and a spreadsheet takes nothing in it for
/// a formula: it would be a program of whoever chose a name.
pub(super) fn quoted(text: &str) -> String {
    let text = defused(&shown_lines(text));
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

fn defused(text: &str) -> String {
    if is_formula(text) { format!("'{text}") } else { text.to_owned() }
}

/// The text of a cell as it was before [`quoted`] defused it.
pub(super) fn restored(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|text| is_formula(text)).unwrap_or(cell)
}

fn is_formula(text: &str) -> bool {
    text.starts_with('\t') || (text.trim_start().starts_with(FORMULA) && text.parse::<f64>().is_err())
}

/// A number unrounded; empty where it is not known.
pub(super) fn optional(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Writes a line of cells that are quoted already where they need it.
pub(super) fn line<T: AsRef<str>>(
    out: &mut (impl Write + ?Sized),
    cells: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    for (index, cell) in cells.into_iter().enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        out.write_all(cell.as_ref().as_bytes())?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_begins_a_formula() {
        for (text, cell) in [
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("=HYPERLINK(\"http://evil\",\"x\")", "\"'=HYPERLINK(\"\"http://evil\"\",\"\"x\"\")\""),
            ("+1+1", "'+1+1"),
            ("-2+3", "'-2+3"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1+1", "'\t=1+1"),
            ("  =1", "'  =1"),
            ("\u{ff1d}1", "'\u{ff1d}1"),
            ("\r=1", "[U+000D]=1"),
            ("-5", "-5"),
            ("+0.5", "+0.5"),
            ("p99=5ms", "p99=5ms"),
            ("a, b", "\"a, b\""),
            ("\x1b[2J", "[U+001B][2J"),
        ] {
            assert_eq!(quoted(text), cell, "{text:?}");
        }
        assert_eq!((restored("'=cmd"), restored("'tis"), restored("=cmd")), ("=cmd", "'tis", "=cmd"));
    }
}
