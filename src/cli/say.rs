//! Words for the user on standard error, and data on standard output. All of it passes [`model::shown`], since names, tags and
//! messages of servers are in it.
//!
//! Colours are dropped where the stream is no terminal or `NO_COLOR` is set. A standard error that cannot be written to is
//! no reason to stop, so its errors are ignored.

use std::fmt::Display;
use std::io::{BufWriter, StdoutLock, Write};

use model::shown::{ShownWriter, shown_message};
use owo_colors::OwoColorize;
use serde::Serialize;

use super::exit::Failure;

/// Columns where the terminal does not report, as in a pipe.
const DEFAULT_WIDTH: usize = 120;

pub(super) fn error(message: impl Display) {
    let _ = writeln!(anstream::stderr(), "{} {}", "error:".red().bold(), shortened(&fit(message)));
}

pub(super) fn hint(message: impl Display) {
    let _ = writeln!(anstream::stderr(), "{} {}", "hint:".cyan().bold(), shortened(&fit(message)));
}

pub(super) fn note(message: impl Display) {
    let _ = writeln!(anstream::stderr(), "{} {}", "note:".yellow().bold(), fit(message));
}

/// A line that says how things go.
pub(super) fn line(message: impl Display) {
    let _ = writeln!(anstream::stderr(), "{}", fit(message));
}

/// A message in which no name acts on the terminal, or begins a message of its own.
fn fit(message: impl Display) -> String {
    shown_message(&message.to_string())
}

/// Where data goes.
pub(super) type Output = BufWriter<ShownWriter<StdoutLock<'static>>>;

/// Where text goes that people read. Buffered: flush it.
pub(super) fn output() -> Output {
    BufWriter::new(ShownWriter::text(std::io::stdout().lock()))
}

/// Where JSON goes. Buffered: flush it.
pub(super) fn json_output() -> Output {
    BufWriter::new(ShownWriter::json(std::io::stdout().lock()))
}

/// Where files go as they are, such as pictures. Buffered: flush it.
pub(super) fn file_output() -> impl Write {
    BufWriter::new(std::io::stdout().lock())
}

/// Writes a document for other programs.
pub(super) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let mut out = json_output();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

/// Columns of the terminal that data goes to.
pub(super) fn width() -> usize {
    // A terminal that has not been given a size says 0.
    comfy_table::Table::new().width().filter(|width| *width > 0).map_or(DEFAULT_WIDTH, usize::from)
}

/// Columns of the terminal that the status line is drawn on.
pub(super) fn status_width() -> usize {
    let size = terminal_size::terminal_size_of(std::io::stderr());
    size.map(|(terminal_size::Width(width), _)| usize::from(width)).filter(|width| *width > 0).unwrap_or(DEFAULT_WIDTH)
}

/// Columns of one word beyond which its middle is left out: longer than any path.
const LONGEST_WORD: usize = 4_200;
const SHOWN_OF_LONGER: usize = 60;

/// A message with the middle of absurdly long words left out, so that what is wrong with them can be seen.
pub(super) fn shortened(message: &str) -> String {
    let short = |word: &str| {
        let count = word.chars().count();
        if count <= LONGEST_WORD {
            return word.to_owned();
        }
        let begin: String = word.chars().take(SHOWN_OF_LONGER).collect();
        let end: String = word.chars().skip(count - SHOWN_OF_LONGER).collect();
        format!("{begin}...({} more)...{end}", count - 2 * SHOWN_OF_LONGER)
    };
    message.split(' ').map(short).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absurdly_long_words_are_shortened() {
        let path = format!("cannot open `{}`: no", "d/".repeat(2_000));
        assert_eq!(shortened(&path), path);
        let message = shortened(&format!("`UPDATE_PCT={}` is not a number", "9".repeat(100_000)));
        assert!(message.starts_with("`UPDATE_PCT=999") && message.ends_with("999` is not a number"), "{message}");
        assert!(message.len() < 200, "{message}");
    }
}
