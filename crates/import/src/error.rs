//! Why a file could not be imported.

use std::io;

use super::Source;

/// Why a file could not be imported. Nothing of it is kept.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ImportError {
    /// It cannot be read.
    #[error("cannot read {path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// It is larger than anything that is read into memory.
    #[error("{path} holds more than {} MiB", most >> 20)]
    #[diagnostic(help("cut it down to the part that matters"))]
    TooLarge {
        /// The file.
        path: String,
        /// What is read at most, after decompression.
        most: u64,
    },
    /// It is not text.
    #[error("{path} is not text: {what}")]
    NotText {
        /// The file.
        path: String,
        /// What it holds instead.
        what: String,
    },
    /// No importer knows it.
    #[error("{path}: unrecognized file format{}", quotation(begins.as_deref()))]
    #[diagnostic(help("`plimsoll import --list` says what is read"))]
    NotRecognised {
        /// The file.
        path: String,
        /// What its first line says of its kind, where anybody may read it.
        begins: Option<String>,
    },
    /// It is of a program whose results are not read.
    #[error("{path} is {what}, which is not read")]
    #[diagnostic(help("{instead}"))]
    NotRead {
        /// The file.
        path: String,
        /// What it is.
        what: &'static str,
        /// What to save instead.
        instead: &'static str,
    },
    /// It is of a known kind, and what is imported is not in it.
    #[error("{path}: {what}")]
    NoResult {
        /// The file.
        path: String,
        /// What it holds instead.
        what: String,
    },
    /// It is of a known kind and not whole, or contradicts itself.
    #[error("{path}{}: {what}", line.map_or_else(String::new, |line| format!(", line {line}")))]
    #[diagnostic(help("make the file again; nothing of it was kept"))]
    Damaged {
        /// The file.
        path: String,
        /// The line at which that shows, from 1.
        line: Option<u64>,
        /// What is wrong.
        what: String,
    },
}

impl ImportError {
    /// `source` is of no known kind.
    pub fn not_recognised(source: &Source) -> Self {
        if let Some((what, instead)) = super::strangers::of(source.head()) {
            return Self::NotRead { path: source.path().to_owned(), what, instead };
        }
        let begins = if source.is_private() { None } else { heading(source.head()) };
        Self::NotRecognised { path: source.path().to_owned(), begins }
    }

    /// `source` is of its kind and damaged at `line`.
    pub fn damaged(source: &Source, line: impl Into<Option<u64>>, what: impl Into<String>) -> Self {
        let line = line.into().map(|line| source.lines_before().saturating_add(line));
        Self::Damaged { path: source.path().to_owned(), line, what: what.into() }
    }

    /// `source` is of a known kind and holds no result.
    pub fn no_result(source: &Source, what: impl Into<String>) -> Self {
        Self::NoResult { path: source.path().to_owned(), what: what.into() }
    }

    /// What the user can do, where there is something.
    pub fn hint(&self) -> Option<String> {
        model::hint(self)
    }
}

/// Characters of a file that an error quotes, at most.
const MAX_QUOTED: usize = 40;

/// What the first line of a text says of its kind. It ends where a value may begin, since the file may hold anything: a list
/// of users, or passwords.
fn heading(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?.trim();
    let heading: String = line.chars().take(MAX_QUOTED).take_while(|c| is_plain(*c) && !"=:@,;".contains(*c)).collect();
    let heading = heading.trim_end();
    heading.contains(|c: char| c.is_ascii_alphabetic()).then(|| heading.to_owned())
}

fn quotation(begins: Option<&str>) -> String {
    begins.map_or_else(String::new, |begins| format!(": it begins with `{begins}`"))
}

/// Whether a character can be printed and moves no cursor.
fn is_plain(c: char) -> bool {
    c == ' ' || c.is_ascii_graphic()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_what_says_something_of_the_kind_is_quoted() {
        for (text, quoted) in [
            ("root:x:0:0:root:/root:/bin/bash\n", Some("root")),
            ("\n  <html lang=\"en\"><body>\n", Some("<html lang")),
            ("password=hunter2\n", Some("password")),
            ("{\"key\": \"value\"}", Some("{\"key\"")),
            (
                "# Results of an evening with a volume that nobody has heard of",
                Some("# Results of an evening with a volume th"),
            ),
            ("bell\u{7}bell", Some("bell")),
            ("\u{1b}[31mred", None),
            ("\u{fffd}\u{fffd}PNG", None),
            ("1,2,3\n4,5,6\n", None),
        ] {
            assert_eq!(heading(text).as_deref(), quoted, "{text:?}");
        }
    }

    #[test]
    fn nothing_is_quoted_of_a_file_that_not_everybody_may_read() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("notes");
        std::fs::write(&path, "secret plans\n").unwrap();
        for (mode, is_quoted) in [(0o644, true), (0o640, false), (0o600, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let message = ImportError::not_recognised(&Source::open(&path).unwrap()).to_string();
            assert_eq!(message.contains("secret"), is_quoted, "{mode:o}: {message}");
            assert!(message.contains("unrecognized file format"), "{message}");
        }
    }
}
