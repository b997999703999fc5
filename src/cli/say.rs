//! Words for the user on standard error, and data on standard output.
//!
//! Colours are dropped where the stream is no terminal or `NO_COLOR` is set. A standard error that cannot be written to is
//! no reason to stop, so its errors are ignored.

use std::fmt::Display;
use std::io::Write;

use owo_colors::OwoColorize;
use serde::Serialize;

use super::exit::Failure;

/// Columns where the terminal does not tell, as in a pipe.
const USUAL_WIDTH: usize = 120;

pub(super) fn error(message: impl Display) {
    let _ = writeln!(anstream::stderr(), "{} {message}", "error:".red().bold());
}

pub(super) fn hint(message: impl Display) {
    let _ = writeln!(anstream::stderr(), "{} {message}", "hint:".cyan().bold());
}

pub(super) fn note(message: impl Display) {
    let _ = writeln!(anstream::stderr(), "{} {message}", "note:".yellow().bold());
}

/// A line that says how things go.
pub(super) fn line(message: impl Display) {
    let _ = writeln!(anstream::stderr(), "{message}");
}

/// Where data goes. Buffered: flush it.
pub(super) fn output() -> impl Write {
    std::io::BufWriter::new(std::io::stdout().lock())
}

/// Writes a document for other programs.
pub(super) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let mut out = output();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

/// Columns of the terminal that data goes to.
pub(super) fn width() -> usize {
    // A terminal that has not been given a size says 0.
    comfy_table::Table::new().width().filter(|width| *width > 0).map_or(USUAL_WIDTH, usize::from)
}
