//! Why a PostgreSQL server cannot do what was asked.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why something about a PostgreSQL server could not be done. No message ever holds a password.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// No connection could be made.
    #[error("cannot connect to PostgreSQL at `{node}`: {reason}")]
    Connect {
        /// The server.
        node: String,
        /// Why, in one sentence.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A connection broke while it was in use.
    #[error("PostgreSQL at `{node}` is gone: {reason}")]
    Lost {
        /// The server.
        node: String,
        /// Why, as far as it is known.
        reason: String,
    },
    /// The server refused a statement.
    #[error("cannot {doing} on `{node}`: {message} (SQLSTATE {code})")]
    Refused {
        /// The server.
        node: String,
        /// What was tried, such as `create the tables`.
        doing: String,
        /// Its code of five characters.
        code: String,
        /// The server's own words.
        message: String,
    },
    /// The server did not answer in time.
    #[error("PostgreSQL at `{node}` did not answer for {waited_s} s while it should {doing}")]
    TimedOut {
        /// The server.
        node: String,
        /// What it was asked, such as `execute operations`.
        doing: String,
        /// How long.
        waited_s: u64,
    },
    /// Something about the data, the server or this machine stands against it.
    #[error("{what}")]
    Unfit {
        /// What and where, in one sentence.
        what: String,
        /// What to do about it.
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
        hint: Option<String>,
    },
    /// A file of a private cluster cannot be used.
    #[error("cannot {action} `{path}`: {source}", path = .path.display())]
    File {
        /// What was tried, such as `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl PostgresError {
    /// What a client's error means: `node` is the server, `doing` what was tried, such as `create the tables`.
    pub fn of(node: &dyn fmt::Display, doing: &str, error: &tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(told) => Self::Refused {
                node: node.to_string(),
                doing: doing.to_owned(),
                code: told.code().code().to_owned(),
                message: told.message().to_owned(),
            },
            None => Self::Lost { node: node.to_string(), reason: error.to_string() },
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Connect { hint, .. } | Self::Unfit { hint, .. } | Self::Program { hint, .. } => hint.clone(),
            Self::Lost { .. } => {
                Some("the server's own log tells why; what was measured until then is kept".to_owned())
            }
            Self::TimedOut { .. } => Some("look whether the server and the network to it still answer".to_owned()),
            Self::Refused { code, .. } => refusal_hint(code).map(str::to_owned),
            Self::File { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    Some("use a directory that this user may write, or run as one who may".to_owned())
                }
                io::ErrorKind::StorageFull => Some("free some space, or use another file system".to_owned()),
                _ => None,
            },
        }
    }
}

/// What a refusal asks for, by SQLSTATE ("PostgreSQL Error Codes", appendix A of its manual).
fn refusal_hint(code: &str) -> Option<&'static str> {
    match code {
        "53100" => Some("the server's disk is full; free some space there"),
        "53300" => Some("the server takes no more connections; raise its max_connections, or use fewer sessions"),
        "42501" => {
            Some("the role has not the right to; name a schema that it owns with `--schema`, or have the right granted")
        }
        "42P01" | "42883" | "3F000" => {
            Some("the data are not there, or not all of them; make them: `plimsoll slob setup`")
        }
        "55P03" => Some("sessions use the tables; have them end first"),
        "57014" => Some("the server cancelled it, most likely for its statement_timeout; raise that for this role"),
        "25006" => Some("the server is a standby or read-only; name the primary"),
        _ => None,
    }
}
