//! Why a file could not be imported.

use std::io;

use super::Source;

/// Why a file could not be imported. Nothing of it is kept.
#[derive(Debug, thiserror::Error)]
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
    #[error("{path} is no result that is known here: it begins with {begins:?}")]
    NotRecognised {
        /// The file.
        path: String,
        /// Its first words.
        begins: String,
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
        // The head: a word may be as long as the file.
        let begins = source.head().split_whitespace().take(8).collect::<Vec<_>>().join(" ");
        Self::NotRecognised { path: source.path().to_owned(), begins: begins.chars().take(60).collect() }
    }

    /// `source` is of its kind and damaged at `line`.
    pub fn damaged(source: &Source, line: impl Into<Option<u64>>, what: impl Into<String>) -> Self {
        Self::Damaged { path: source.path().to_owned(), line: line.into(), what: what.into() }
    }

    /// `source` is of a known kind and holds no result.
    pub fn no_result(source: &Source, what: impl Into<String>) -> Self {
        Self::NoResult { path: source.path().to_owned(), what: what.into() }
    }

    /// What the user can do, where there is something.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotRecognised { .. } => Some("`plimsoll import --list` tells what is read"),
            Self::TooLarge { .. } => Some("cut it down to the part that matters"),
            Self::Damaged { .. } => Some("make the file again; nothing of it was kept"),
            Self::Io { .. } | Self::NotText { .. } | Self::NoResult { .. } => None,
        }
    }
}
