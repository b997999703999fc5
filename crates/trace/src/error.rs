//! Why a trace cannot be read or written.

use std::io;

/// Why a trace cannot be read or written.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot read `{path}`: {source}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write `{path}`: {source}")]
    Write {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// It is of no form that is known.
    #[error("`{path}`: unrecognized trace format")]
    #[diagnostic(help("`plimsoll trace formats` lists the formats that are read"))]
    NotRecognised {
        /// The file.
        path: String,
    },
    /// It is of a known form and contradicts itself.
    #[error("`{path}`{}: {what}", line.map_or_else(String::new, |line| format!(", line {line}")))]
    #[diagnostic(help("make the file again"))]
    Damaged {
        /// The file.
        path: String,
        /// The line at which that shows, from 1; absent for binary files.
        line: Option<u64>,
        /// What is wrong.
        what: String,
    },
    /// It has no request at all.
    #[error("`{path}` has no requests")]
    Empty {
        /// The file.
        path: String,
    },
}
