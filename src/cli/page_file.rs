//! Pages and pictures written where `--output` says.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::arguments::Format;
use super::exit::Failure;
use super::say;
use model::units::group_thousands;
use report::html::{Picture, is_ours};

/// Bytes at the beginning of a file by which a page of ours is known.
const BEGINNING: u64 = 4_096;
/// In place of a file: standard output.
const STANDARD_OUTPUT: &str = "-";

/// What a file holds, which the ending of its name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Page,
    Svg,
    Png,
}

/// Where a page or a picture goes, and what is reported beside it.
#[derive(Debug, Args)]
pub(super) struct PageArgs {
    /// File to write: an HTML page, or the main chart for a name in `.svg` or `.png`
    ///
    /// The chart is the one that answers the question, where there is one. `-` is standard output.
    ///
    /// Without this flag the output is text.
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

    /// Whether a file is to be written.
    pub(super) fn is_wanted(&self) -> bool {
        self.output.is_some()
    }

    /// Refuses a place that cannot be written to, or a kind of file that is not made, before anything else is done.
    pub(super) fn check(&self, format: Format) -> Result<(), Failure> {
        let has_more = self.text || format == Format::Json;
        self.output.as_ref().map_or(Ok(()), |path| kind(path).and_then(|_| check(path, has_more)))
    }

    /// Whether a picture is asked for.
    pub(super) fn is_picture(&self) -> bool {
        self.output.as_ref().is_some_and(|path| matches!(kind(path), Ok(Kind::Svg | Kind::Png)))
    }

    /// Writes the page or the picture, whichever is asked for.
    pub(super) fn write(
        &self,
        page: impl FnOnce() -> Result<Vec<u8>, Failure>,
        picture: impl FnOnce() -> Result<Picture, Failure>,
    ) -> Result<(), Failure> {
        let Some(path) = &self.output else { return Ok(()) };
        let file = match kind(path)? {
            Kind::Page => page()?,
            Kind::Svg => picture()?.svg().into_bytes(),
            Kind::Png => picture()?.png().map_err(|error| cannot("write", path, &error))?,
        };
        write(path, &file)
    }
}

/// What the name of a file says that it holds: a page where it says nothing.
fn kind(path: &Path) -> Result<Kind, Failure> {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let hint = match ending.as_str() {
        "" | "html" | "htm" => return Ok(Kind::Page),
        "svg" => return Ok(Kind::Svg),
        "png" => return Ok(Kind::Png),
        "pdf" => "write `-o FILE.html` and print that from a browser into a PDF, or `-o FILE.png` for a mail",
        "csv" | "tsv" | "xls" | "xlsx" => "figures for a spreadsheet come from `plimsoll report RUN --csv FILE.csv`",
        "json" => "use `--json >FILE` for a program",
        "txt" | "md" | "log" => "without `-o` the output is text: redirect it with `>FILE`",
        "jpg" | "jpeg" | "gif" | "webp" | "bmp" | "tif" | "tiff" => {
            "pictures are written as `-o FILE.png` or `-o FILE.svg`"
        }
        _ => "end the name in `.html` for a page, or in `.svg` or `.png` for a picture",
    };
    Err(Failure::new(format_args!("`-o {}`: no file of this kind is written", path.display()))
        .with_hint(hint.to_owned()))
}

/// The same for what is a page and nothing else.
pub(super) fn check_page(path: &Path) -> Result<(), Failure> {
    if kind(path)? == Kind::Page {
        return check(path, true);
    }
    let failure = Failure::new(format_args!("`-o {}`: this answer is written as a page", path.display()));
    Err(failure
        .with_hint("name it `-o FILE.html`; `plimsoll report RUN -o FILE.png` draws the chart of a run".to_owned()))
}

/// Whether a file can be written there, before anything else is done. A file that this program did not write is not written
/// over; `has_more` says that something else goes to standard output.
fn check(path: &Path, has_more: bool) -> Result<(), Failure> {
    if path.as_os_str() == STANDARD_OUTPUT {
        let failure = Failure::new("`-o -` writes the page to standard output, where `--text` and `--json` write too");
        return if has_more { Err(failure.with_hint("name a file: `-o FILE`".to_owned())) } else { Ok(()) };
    }
    files::judge_result(path).map_err(|error| cannot("write", path, &error))?;
    // A pipe is not waited for, nor read.
    if path.exists() && !path.is_file() {
        return Ok(());
    }
    let found = match File::open(path) {
        Ok(found) => found,
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
    let failure = Failure::of_file(doing, path, error);
    match error.kind() {
        ErrorKind::NotFound => {
            failure.with_hint("make its directory first, or name another file: `-o FILE`".to_owned())
        }
        ErrorKind::IsADirectory => failure.with_hint("name a file: `-o FILE`".to_owned()),
        _ => failure,
    }
}

/// Writes a file whole or not at all.
fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    if path.as_os_str() == STANDARD_OUTPUT {
        let mut out = say::file_output();
        out.write_all(content)?;
        out.flush()?;
        return Ok(());
    }
    replace(path, content)?;
    say::line(format_args!("wrote `{}`, {} KB", path.display(), group_thousands((content.len() as f64 / 1e3).ceil())));
    Ok(())
}

/// Puts what is made into a file, whole or not at all.
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<(), Failure> {
    files::write_result(path, |out| out.write_all(content)).map_err(|error| cannot("write", path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_says_what_it_holds_or_it_is_refused_with_what_to_do() {
        let kind_of = |name: &str| kind(Path::new(name)).unwrap();
        let kinds = ["a.html", "b.HTM", "report", "-", "c.svg", "d.x.PNG"].map(kind_of);
        assert_eq!(kinds, [Kind::Page, Kind::Page, Kind::Page, Kind::Page, Kind::Svg, Kind::Png]);
        for (name, hint) in [
            ("a.pdf", "print that from a browser"),
            ("a.csv", "--csv FILE.csv"),
            ("a.json", "--json"),
            ("a.txt", "redirect"),
            ("a.jpg", "FILE.png"),
            ("p20.30x2", "end the name in `.html`"),
        ] {
            let Err(Failure::Reported(reported)) = kind(Path::new(name)) else { panic!("{name} is taken") };
            assert!(reported.message.contains(name) && reported.hint.as_ref().unwrap().contains(hint), "{reported:?}");
        }
    }
}
