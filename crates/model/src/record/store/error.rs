//! Why a run could not be kept, found or read.

use std::io;
use std::path::{Path, PathBuf};

/// What went wrong with the store or with one run in it. Nothing that was there before is lost by any of them.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused.
    #[error("cannot {doing} `{}`: {source}", path.display())]
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
    /// A run made by a later version of the program.
    #[error("`{}` has format {format}, but this program reads formats up to {newest}", path.display())]
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
    NotFound {
        /// What was asked for.
        name: String,
        /// Where it was looked for.
        store: PathBuf,
    },
    /// The path given holds no run.
    #[error("`{}` holds no run: there is no `run.json`", path.display())]
    NoRunThere {
        /// The path.
        path: PathBuf,
    },
    /// Several runs answer to the name.
    #[error("`{name}` may be any of {}", candidates.join(", "))]
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
    StillGoesOn {
        /// Its id.
        id: String,
    },
    /// Something that is not ours would be lost.
    #[error("`{}` is not removed: {reason}", path.display())]
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
        match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => Some("choose a directory that you may write to".to_owned()),
                io::ErrorKind::StorageFull => Some("free some space; what was written before is intact".to_owned()),
                io::ErrorKind::ReadOnlyFilesystem => Some("choose a directory on a writable file system".to_owned()),
                io::ErrorKind::NotFound => Some(
                    "a directory on the way to it is missing or was removed; choose one that you may write to"
                        .to_owned(),
                ),
                io::ErrorKind::NotADirectory => {
                    Some("choose a directory, or a path that does not exist yet".to_owned())
                }
                _ if matches!(source.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                    Some("raise the limit of open files: `ulimit -n 65536`".to_owned())
                }
                _ => None,
            },
            Self::Unreadable { cut_short: true, .. } => {
                Some("the file is cut short; copy it again from where it came from".to_owned())
            }
            Self::Unreadable { .. } => {
                Some("a run is a directory with a `run.json` written by this program".to_owned())
            }
            Self::NewerFormat { .. } => {
                Some("read it with the version of the program that made it, or a later one".to_owned())
            }
            Self::NotFound { .. } => Some(
                "`plimsoll runs list` shows what there is; a tag `vm=d8s` or a run's directory works too".to_owned(),
            ),
            Self::NoRunThere { .. } => Some("give the directory that holds `run.json`, or that file itself".to_owned()),
            Self::Ambiguous { .. } => Some("name one of them: give more of its id".to_owned()),
            Self::BadId { .. } => None,
            Self::StillGoesOn { .. } => {
                Some("wait until it has ended; a run that was killed keeps its tags".to_owned())
            }
            Self::NotRemoved { .. } => {
                Some("look into the directory, and remove by hand what is not needed".to_owned())
            }
        }
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
