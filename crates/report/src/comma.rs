//! Lines of comma-separated values, as RFC 4180 has them.

use std::io::{self, Write};

/// A cell of text, in quotation marks where it needs them.
pub(super) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
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
