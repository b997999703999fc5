//! Pages written where `--output` says.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::arguments::Reader;
use super::exit::Failure;
use super::{files, say};
use crate::report::html::is_ours;
use crate::units::group_thousands;

/// Bytes at the beginning of a file by which a page of ours is known.
const BEGINNING: u64 = 4_096;
/// In place of a file: standard output.
const STANDARD_OUTPUT: &str = "-";

/// Where a page goes, and what is told beside it.
#[derive(Debug, Args)]
pub(super) struct PageArgs {
    /// Write one HTML file with everything in it; `-` is standard output. Without it the output is text
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Also print the text where `--output` is given
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    text: bool,
}

impl PageArgs {
    /// Whether text is printed: always, unless a page is asked for and text is not.
    pub(super) fn has_text(&self) -> bool {
        self.output.is_none() || self.text
    }

    /// Refuses a place that cannot be written to, before anything else is done.
    pub(super) fn check(&self, reader: Reader) -> Result<(), Failure> {
        let has_more = self.text || reader == Reader::Program;
        self.output.as_ref().map_or(Ok(()), |path| check(path, has_more))
    }

    /// Writes the page that `make` makes, if one is asked for.
    pub(super) fn write(&self, make: impl FnOnce() -> Result<Vec<u8>, Failure>) -> Result<(), Failure> {
        self.output.as_ref().map_or(Ok(()), |path| write(path, &make()?))
    }
}

/// Whether a page can be written there, before anything else is done. A file that this program did not write is not written
/// over; `has_more` says that something else goes to standard output.
pub(super) fn check(path: &Path, has_more: bool) -> Result<(), Failure> {
    if path.as_os_str() == STANDARD_OUTPUT {
        let failure = Failure::new("`-o -` writes the page to standard output, where `--text` and `--json` write too");
        return if has_more { Err(failure.with_hint("name a file: `-o FILE`".to_owned())) } else { Ok(()) };
    }
    if path.is_dir() {
        return Err(cannot("write", path, &ErrorKind::IsADirectory.into()));
    }
    let found = match File::open(path) {
        Ok(found) if path.is_file() => found,
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(cannot("look at", path, &error)),
    };
    let mut beginning = Vec::new();
    found.take(BEGINNING).read_to_end(&mut beginning).map_err(|error| cannot("read", path, &error))?;
    if beginning.is_empty() || is_ours(&String::from_utf8_lossy(&beginning)) {
        return Ok(());
    }
    let failure = Failure::new(format_args!("`{}` is not overwritten: this program did not make it", path.display()));
    Err(failure.with_hint("name another file: `-o FILE`".to_owned()))
}

fn cannot(doing: &str, path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::new(format_args!("cannot {doing} `{}`: {error}", path.display()));
    match error.kind() {
        ErrorKind::NotFound => {
            failure.with_hint("make its directory first, or name another file: `-o FILE`".to_owned())
        }
        ErrorKind::IsADirectory => failure.with_hint("name a file: `-o FILE`".to_owned()),
        _ => failure,
    }
}

/// Writes a page whole or not at all.
fn write(path: &Path, page: &[u8]) -> Result<(), Failure> {
    if path.as_os_str() == STANDARD_OUTPUT {
        let mut out = say::output();
        out.write_all(page)?;
        out.flush()?;
        return Ok(());
    }
    // A device or a pipe is written to as it is: there is nothing to replace.
    if path.exists() && !path.is_file() {
        return fs::write(path, page).map_err(|error| cannot("write", path, &error));
    }
    replace(path, page)?;
    say::line(format_args!("wrote `{}`, {} KB", path.display(), group_thousands((page.len() as f64 / 1e3).ceil())));
    Ok(())
}

/// Puts a page into a file, whole or not at all.
pub(super) fn replace(path: &Path, page: &[u8]) -> Result<(), Failure> {
    files::replace(path, |out| out.write_all(page)).map_err(|error| cannot("write", path, &error))
}
