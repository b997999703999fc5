//! Why a PostgreSQL server cannot do what was asked.

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::time::Duration;

use tokio_postgres::error::{DbError, Severity};

use crate::targets::sql::SqlError;

/// How long the network may swallow what is sent before the connection counts as lost.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

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
    /// The data are not what was loaded.
    #[error("{table} on `{node}` is damaged: {what}")]
    Damaged {
        /// The server.
        node: String,
        /// The table, as it stands in SQL.
        table: String,
        /// What is wrong, with the keys.
        what: String,
    },
    /// Something about the data, the server or this machine stands against it.
    #[error("{what}")]
    Unfit {
        /// What and where, in one sentence.
        what: String,
        /// What to do about it.
        hint: Option<String>,
    },
}

impl PostgresError {
    /// What an error of the client means: `node` was asked to do `doing`, such as `create the tables`.
    ///
    /// Where the connection had ended before, the client knows no more than that it is closed;
    /// [`Connected::error`](super::Connected::error) knows why.
    pub fn of(node: &dyn Display, doing: &str, error: &tokio_postgres::Error) -> Self {
        let node = node.to_string();
        if let Some(refusal) = error.as_db_error() {
            return if ends_the_connection(refusal) {
                Self::Lost { node, reason: reported(refusal) }
            } else {
                let code = refusal.code().code().to_owned();
                Self::Refused { node, doing: doing.to_owned(), code, message: refusal.message().to_owned() }
            };
        }
        match system_error(error) {
            Some(system) if system.kind() == io::ErrorKind::TimedOut => Self::silence(&node, doing),
            Some(_) => Self::Lost { node, reason: Self::reason_of(error) },
            None if error.is_closed() => Self::Lost { node, reason: Self::reason_of(error) },
            // Neither the server nor the network: a value that cannot be sent or read as what it should be.
            None => {
                let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
                Self::Unfit { what: format!("cannot {doing} on `{node}`: {error}{cause}"), hint: None }
            }
        }
    }

    /// The network swallowed what was sent.
    pub(super) fn silence(node: &str, doing: &str) -> Self {
        Self::TimedOut { node: node.to_owned(), doing: doing.to_owned(), waited_s: SILENCE.as_secs() }
    }

    /// Why a connection ended.
    pub(super) fn reason_of(error: &tokio_postgres::Error) -> String {
        match error.as_db_error() {
            Some(last_words) => reported(last_words),
            None if error.is_closed() => "it closed the connection without a word".to_owned(),
            None => innermost(error),
        }
    }

    /// Whether it says that stored data are not what was loaded, as opposed to a request that could not be done.
    pub fn is_data_fault(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            // data_corrupted and index_corrupted: the server found it out itself.
            Self::Refused { code, .. } => matches!(code.as_str(), "XX001" | "XX002"),
            _ => false,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Connect { hint, .. } | Self::Unfit { hint, .. } => hint.clone(),
            Self::Lost { .. } => Some("the server's own log says why; what was measured until then is kept".to_owned()),
            Self::Damaged { .. } => Some(
                "another program changed or damaged it; `plimsoll slob verify` says more, and `plimsoll slob setup \
                 --replace` makes the data anew"
                    .to_owned(),
            ),
            Self::TimedOut { .. } => Some("look whether the server and the network to it still answer".to_owned()),
            Self::Refused { code, .. } => refusal_hint(code).map(str::to_owned),
        }
    }
}

impl SqlError for PostgresError {
    fn ends_the_load(&self) -> bool {
        match self {
            Self::Refused { code, .. } => is_lasting(code),
            Self::Connect { .. }
            | Self::Lost { .. }
            | Self::TimedOut { .. }
            | Self::Damaged { .. }
            | Self::Unfit { .. } => true,
        }
    }

    fn hint(&self) -> Option<String> {
        Self::hint(self)
    }

    fn damaged(node: String, table: String, what: String) -> Self {
        Self::Damaged { node, table, what }
    }

    fn timed_out(node: String, doing: String, waited_s: u64) -> Self {
        Self::TimedOut { node, doing, waited_s }
    }

    fn unfit(what: String, hint: Option<String>) -> Self {
        Self::Unfit { what, hint }
    }
}

/// Whether the next operation would be refused as well, by SQLSTATE.
fn is_lasting(code: &str) -> bool {
    /// Connection; feature not there, as when a table changed under a prepared statement; statement not there, as behind a
    /// pooler; login; database not there; schema not there; name or right wrong; resources used up; system; its settings;
    /// internal error and damaged data.
    const LASTING_CLASSES: [&str; 11] = ["08", "0A", "26", "28", "3D", "3F", "42", "53", "58", "F0", "XX"];
    // Ended by an operator, and a server that only reads.
    let is_lasting = code.starts_with("57P") || code == "25006";
    is_lasting || LASTING_CLASSES.iter().any(|class| code.starts_with(class))
}

/// Whether nothing follows on the same connection.
fn ends_the_connection(refusal: &DbError) -> bool {
    matches!(refusal.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
}

/// A server's own words with their code.
pub(super) fn reported(words: &DbError) -> String {
    format!("{} (SQLSTATE {})", words.message(), words.code().code())
}

/// The error of the system that an error of the client wraps.
pub(super) fn system_error(error: &tokio_postgres::Error) -> Option<&io::Error> {
    error.source()?.downcast_ref::<io::Error>()
}

/// The words of the cause behind all causes.
pub(super) fn innermost(error: &tokio_postgres::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// What a refusal asks for, by SQLSTATE ("PostgreSQL Error Codes", appendix A of its manual).
pub(super) fn refusal_hint(code: &str) -> Option<&'static str> {
    match code {
        "53100" => Some("the server's disk is full; free some space there"),
        "53300" => Some("the server takes no more connections; raise its max_connections, or use fewer sessions"),
        "42501" => Some(
            "the role has not the right to; name a schema that it owns with `--db-schema`, or have the right granted",
        ),
        "42P01" | "42883" | "3F000" => {
            Some("the data are not there, or not all of them; make them: `plimsoll slob setup`")
        }
        "57014" => Some("the server cancelled it, most likely for its statement_timeout; raise that for this role"),
        "25006" => Some("the server is a standby or read-only; name the primary"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_names_the_table_its_server_and_what_is_wrong() {
        let damaged = PostgresError::damaged("db1:5432".into(), "\"plimsoll\".\"slob_3\"".into(), "it is empty".into());
        assert!(damaged.is_data_fault());
        assert_eq!(damaged.to_string(), "\"plimsoll\".\"slob_3\" on `db1:5432` is damaged: it is empty");
    }

    #[test]
    fn only_what_stands_against_every_operation_ends_the_load() {
        let refused = |code: &str| PostgresError::Refused {
            node: "db1:5432".to_owned(),
            doing: "execute operations".to_owned(),
            code: code.to_owned(),
            message: String::new(),
        };
        for code in
            ["53100", "53300", "42P01", "42501", "57P01", "57P02", "57P03", "08006", "58030", "XX001", "XX002", "25006"]
        {
            assert!(refused(code).ends_the_load(), "{code}");
        }
        for code in ["40001", "40P01", "55P03", "57014", "23505", "22001", "25P02"] {
            assert!(!refused(code).ends_the_load(), "{code}");
        }
        assert!(PostgresError::silence("db1", "execute operations").ends_the_load());
    }
}
