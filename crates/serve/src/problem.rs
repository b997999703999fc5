//! Why a page cannot be shown, or the server cannot serve.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use hyper::StatusCode;
use maud::html;

use model::record::store::StoreError;
use report::html::{Head, Kept, page};

/// What went wrong, with what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// An address at which nothing stands.
    #[error("there is no page `{path}`")]
    NoPage {
        /// What was asked for.
        path: String,
    },
    /// A run that is not there.
    #[error("there is no run `{run}`")]
    NoRun {
        /// The requested id.
        run: String,
    },
    /// A query that means nothing.
    #[error("`{part}` is not a valid query: {reason}")]
    Query {
        /// The part of it that is wrong.
        part: String,
        /// Why.
        reason: String,
    },
    /// Nothing or one run to compare.
    #[error("a comparison needs two runs, and {given}")]
    TooFewRuns {
        /// How many there are, in words.
        given: &'static str,
    },
    /// More runs than can be laid side by side.
    #[error("{given} runs are too many to compare: at most {most}")]
    TooManyRuns {
        /// How many were asked for.
        given: usize,
        /// How many there may be.
        most: usize,
    },
    /// Something that would change something, if anything could be changed.
    #[error("`{method}` is refused: pages can only be read here")]
    Method {
        /// What was asked.
        method: String,
    },
    /// A name that does not belong to this machine.
    #[error("`{host}` is not a name by which this server answers")]
    ForeignHost {
        /// The name.
        host: String,
    },
    /// The store, or a run in it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Too many pages are being made.
    #[error("too many pages are being made at this moment")]
    Busy,
    /// Making the page takes too long.
    #[error("the page takes longer than {seconds} s to make")]
    TooSlow {
        /// The limit, in seconds.
        seconds: u64,
    },
    /// The page could not be written, or its making was given up.
    #[error("the page could not be made: {reason}")]
    Unmade {
        /// Why.
        reason: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    CannotListen {
        /// The address.
        address: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// The server cannot be started.
    #[error("cannot start the server: {source}")]
    CannotStart {
        /// The system's answer.
        source: io::Error,
    },
}

impl Problem {
    pub(super) fn query(key: &str, value: &str, reason: fmt::Arguments<'_>) -> Self {
        let part = if value.is_empty() { key.to_owned() } else { format!("{key}={value}") };
        Self::Query { part, reason: reason.to_string() }
    }

    /// The status of the reply.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NoPage { .. } | Self::NoRun { .. } => StatusCode::NOT_FOUND,
            Self::Query { .. } | Self::TooFewRuns { .. } | Self::TooManyRuns { .. } => StatusCode::BAD_REQUEST,
            Self::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::ForeignHost { .. } => StatusCode::FORBIDDEN,
            Self::Busy | Self::TooSlow { .. } | Self::Store(StoreError::TooSlow { .. }) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            // The run, not the request, but it is the nearest that there is.
            Self::Store(StoreError::TooMuch { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Store(_) | Self::Unmade { .. } | Self::CannotListen { .. } | Self::CannotStart { .. } => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoPage { .. } | Self::NoRun { .. } => "the list of all runs shows what there is",
            Self::Query { .. } => "correct the address, or begin again at the list of all runs",
            Self::TooFewRuns { .. } | Self::TooManyRuns { .. } => "tick the runs to compare in the list of all runs",
            Self::Method { .. } => "runs are made and removed with the program itself, on its command line",
            Self::ForeignHost { .. } => "ask for it as localhost or 127.0.0.1, or serve with another --listen",
            Self::Busy => "try again in a moment",
            Self::TooSlow { .. } => "ask for fewer or smaller runs; `plimsoll report` has no limit of time",
            Self::Store(error) => return error.hint(),
            Self::Unmade { .. } | Self::CannotStart { .. } => return None,
            Self::CannotListen { source, .. } => match source.kind() {
                io::ErrorKind::AddrInUse => {
                    "another program, perhaps another plimsoll serve, uses that port; --listen 127.0.0.1:0 picks a free one"
                }
                io::ErrorKind::PermissionDenied => "ports below 1024 belong to root; choose a higher one",
                io::ErrorKind::AddrNotAvailable => "the address must be one of this machine's own; 127.0.0.1 always is",
                _ => return None,
            },
        };
        Some(hint.to_owned())
    }

    /// It as a page in the usual frame.
    pub(super) fn page(&self) -> String {
        let status = self.status();
        let title = status.canonical_reason().unwrap_or("Error");
        let body = html! {
            h1 { (title) }
            p role="alert" { (sentence(&self.to_string())) }
            @if let Some(hint) = self.hint() { p { "What to do: " (hint) "." } }
            p { a href="/" { "All runs" } }
        };
        page(&Head { title, kept: &Kept::Served { follow: None } }, &body)
    }
}

/// A message of the command line as a sentence of its own.
fn sentence(message: &str) -> String {
    let mut rest = message.chars();
    let first = rest.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(rest).chain(['.']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_says_what_to_do() {
        let address = "127.0.0.1:8321".parse().unwrap();
        let problem = Problem::CannotListen { address, source: io::Error::from(io::ErrorKind::AddrInUse) };
        assert!(problem.to_string().starts_with("cannot listen on 127.0.0.1:8321: "), "{problem}");
        assert!(problem.hint().is_some_and(|hint| hint.contains("--listen 127.0.0.1:0")));
    }

    #[test]
    fn what_was_asked_is_shown_as_text_and_never_as_markup() {
        let problem = Problem::NoRun { run: "<script>alert(1)</script>".to_owned() };
        let page = problem.page();
        assert!(page.contains("&lt;script&gt;alert(1)") && !page.contains("<script>alert"), "{page}");
        assert!(page.contains(">There is no run ") && page.contains("What to do: the list of all runs"), "{page}");
    }
}
