//! Why a private server cannot be had.

use std::io;
use std::path::PathBuf;

use targets::{DatabaseError, TargetError, io_hint};

const LET_IN: &str = "the user that it runs as must be let into its directory and all above it; if root runs this command, \
                      that is the server's own user, such as `mysql`";

/// Why a private server, or something in its directory, cannot be had.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum PrivateError {
    /// Something about the directory or this machine stands against it.
    #[error("{what}")]
    Unfit {
        /// What and where, in one sentence.
        what: String,
        /// What to do about it.
        #[help]
        hint: Option<String>,
    },
    /// A program of the server's failed.
    #[error("`{program}` failed: {reason}", program = .program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// What it said, or the system's reason.
        reason: String,
        /// What to do about it.
        #[help]
        hint: Option<String>,
    },
    /// A file cannot be used.
    #[error("cannot {action} `{path}`: {source}", path = .path.display())]
    #[diagnostic(help("{}", hint_for_file(action, source).unwrap_or_default()))]
    File {
        /// What was tried, such as `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl PrivateError {
    /// Something stands against it.
    pub(crate) fn unfit(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Unfit { what: what.into(), hint: Some(hint.into()) }
    }
}

impl DatabaseError for PrivateError {}

fn hint_for_file(action: &str, source: &io::Error) -> Option<String> {
    if action == "run" && source.kind() == io::ErrorKind::PermissionDenied {
        return Some(LET_IN.to_owned());
    }
    io_hint(source)
}

impl From<PrivateError> for TargetError {
    fn from(error: PrivateError) -> Self {
        Self::Database(Box::new(error))
    }
}
