//! Why a PostgreSQL server cannot do what was asked.

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::time::Duration;

use tokio_postgres::error::{DbError, Severity};

use crate::{Codes, ServerError};
use measure::RefusalClass;

/// How long the network may swallow what is sent before the connection counts as lost.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

/// Why a connection ended that nobody said anything about.
pub(super) const WITHOUT_A_WORD: &str = "it closed the connection without a word";

/// Why something about a PostgreSQL server could not be done.
pub type PostgresError = ServerError<SqlState>;

/// PostgreSQL's codes of five characters.
#[derive(Debug)]
pub enum SqlState {}

impl Codes for SqlState {
    type Code = String;
    const PRODUCT: &'static str = "PostgreSQL";
    const NAME: &'static str = "SQLSTATE";

    fn is_lasting(code: &String) -> bool {
        is_lasting(code)
    }

    fn is_corruption(code: &String) -> bool {
        // data_corrupted and index_corrupted: the server found it out itself.
        matches!(code.as_str(), "XX001" | "XX002")
    }

    fn hint(code: &String) -> Option<&'static str> {
        refusal_hint(code)
    }

    fn class(code: &String) -> RefusalClass {
        match code.as_str() {
            "40P01" => RefusalClass::Deadlock,
            "40001" => RefusalClass::Serialization,
            "55P03" => RefusalClass::LockTimeout,
            "57014" => RefusalClass::Cancelled,
            code if code.starts_with("23") => RefusalClass::Constraint,
            _ => RefusalClass::Other,
        }
    }

    fn lacks_procedure(code: &String) -> bool {
        code == "42883"
    }
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
            None if error.is_closed() => WITHOUT_A_WORD.to_owned(),
            None => innermost(error),
        }
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
    with_code(words.message(), words.code().code())
}

/// The same of words that somebody else read.
pub(super) fn with_code(message: &str, code: &str) -> String {
    format!("{message} (SQLSTATE {code})")
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
        "42P01" | "42883" | "3F000" => Some(
            "the data are not there, or not all of them; make them: `plimsoll slob setup`, for order entry `plimsoll orders setup`",
        ),
        "57014" => Some("the server cancelled it, most likely for its statement_timeout; raise that for this role"),
        "25006" => Some("the server is a standby or read-only; name the primary"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use targets::DatabaseError as _;

    use super::*;
    use crate::SqlError as _;

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
