//! Why a run could not be kept, found or read.

use std::io;
use std::path::{Path, PathBuf};

const CUT_SHORT: &str = "the file is cut short; copy it again from where it came from";
const NO_RUN: &str = "a run is a directory with a `run.json` written by this program";

/// What went wrong with the store or with one run in it. Nothing that was there before is lost by any of them.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum StoreError {
    /// The operating system refused.
    #[error("cannot {doing} `{}`: {source}", path.display())]
    #[diagnostic(help("{}", hint_for_io(source)))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried, as an infinitive.
        doing: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// A document is cut short, is not JSON, or is not a run.
    #[error("cannot read `{}`, line {line}, column {column}: {reason}", path.display())]
    #[diagnostic(help("{}", if *cut_short { CUT_SHORT } else { NO_RUN }))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1; 0 is before the first character.
        column: usize,
        /// What the parser found.
        reason: String,
        /// Whether the text ends before the document does.
        cut_short: bool,
    },
    /// A run made before there was a release, whose load is text.
    #[error("`{}` was made before the first release, and its record is not read any more", path.display())]
    #[diagnostic(help("measure or import again; the version of the program that made it still reads it"))]
    OlderFormat {
        /// The file.
        path: PathBuf,
    },
    /// A run made by a later version of the program.
    #[error("`{}` has format {format}, but this program reads formats up to {newest}", path.display())]
    #[diagnostic(help("read it with the version of the program that made it, or a later one"))]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The newest that is understood.
        newest: u32,
    },
    /// No run of that name.
    #[error("there is no run `{name}` in `{}`", store.display())]
    #[diagnostic(help("`plimsoll runs list` shows what there is; a tag `vm=d8s` or a run's directory works too"))]
    NotFound {
        /// What was asked for.
        name: String,
        /// Where it was looked for.
        store: PathBuf,
    },
    /// The path given holds no run.
    #[error("`{}` holds no run: there is no `run.json`", path.display())]
    #[diagnostic(help("give the directory that holds `run.json`, or that file itself"))]
    NoRunThere {
        /// The path.
        path: PathBuf,
    },
    /// Several runs answer to the name.
    #[error("`{name}` may be any of {}", candidates.join(", "))]
    #[diagnostic(help("name one of them: give more of its id"))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// Ids of the runs that match.
        candidates: Vec<String>,
    },
    /// An id that cannot be the name of a directory.
    #[error(
        "`{id}` cannot be the id of a run: an id has letters, digits, `-`, `_` and `.`, and does not begin with `.`"
    )]
    BadId {
        /// The id.
        id: String,
    },
    /// Whoever makes the run would write over a change.
    #[error("`{id}` has no end: it still goes on, or was killed")]
    #[diagnostic(help("wait until it has ended; a run that was killed keeps its tags"))]
    StillGoesOn {
        /// Its id.
        id: String,
    },
    /// Something that is not ours would be lost.
    #[error("`{}` is not removed: {reason}", path.display())]
    #[diagnostic(help("look into the directory, and remove by hand what is not needed"))]
    NotRemoved {
        /// The directory.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl StoreError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        crate::hint(self)
    }

    pub(super) fn io(path: &Path, doing: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), doing, source }
    }

    pub(super) fn json(path: &Path, error: &serde_json::Error) -> Self {
        let full = error.to_string();
        let reason = full.split(" at line ").next().unwrap_or(&full).to_owned();
        Self::Unreadable {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
            reason,
            cut_short: error.is_eof(),
        }
    }
}

fn hint_for_io(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "choose a directory that you may write to",
        io::ErrorKind::StorageFull => "free some space; what was written before is intact",
        io::ErrorKind::ReadOnlyFilesystem => "choose a directory on a writable file system",
        io::ErrorKind::NotFound => {
            "a directory on the way to it is missing or was removed; choose one that you may write to"
        }
        io::ErrorKind::NotADirectory => "choose a directory, or a path that does not exist yet",
        _ if matches!(source.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
            "raise the limit of open files: `ulimit -n 65536`"
        }
        _ => "",
    }
}
