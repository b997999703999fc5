//! Why a PostgreSQL server cannot do what was asked.

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::time::Duration;

use tokio_postgres::error::{DbError, Severity};

use crate::error::innermost;
use crate::{Meaning, Product, ServerError};
use measure::RefusalClass;

/// How long the network may swallow what is sent before the connection counts as lost.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

/// Why a connection ended that nobody said anything about.
pub(super) const WITHOUT_A_WORD: &str = "it closed the connection without a word";

/// PostgreSQL, whose codes have five characters.
pub(super) const POSTGRES: &Product = &Product { name: "PostgreSQL", kind: "postgres", code: "SQLSTATE", meaning };

fn meaning(code: &str) -> Meaning {
    Meaning {
        is_lasting: is_lasting(code),
        // data_corrupted and index_corrupted: the server found it out itself.
        is_corruption: matches!(code, "XX001" | "XX002"),
        lacks_procedure: code == "42883",
        class: match code {
            "40P01" => RefusalClass::Deadlock,
            "40001" => RefusalClass::Serialization,
            "55P03" => RefusalClass::LockTimeout,
            "57014" => RefusalClass::Cancelled,
            code if code.starts_with("23") => RefusalClass::Constraint,
            _ => RefusalClass::Other,
        },
        hint: refusal_hint(code),
    }
}

/// What an error of the client means: `node` was asked to do `doing`, such as `create the tables`.
///
/// Where the connection had ended before, the client knows no more than that it is closed;
/// [`Connected::error`](super::Connected::error) knows why.
pub(super) fn error_of(node: &dyn Display, doing: &str, error: &tokio_postgres::Error) -> ServerError {
    let node = node.to_string();
    if let Some(refusal) = error.as_db_error() {
        return if ends_the_connection(refusal) {
            POSTGRES.lost(node, with_state(refusal))
        } else {
            POSTGRES.refused(node, doing, refusal.code().code(), refusal.message())
        };
    }
    match system_error(error) {
        Some(system) if system.kind() == io::ErrorKind::TimedOut => silence(&node, doing),
        Some(_) => POSTGRES.lost(node, reason_of(error)),
        None if error.is_closed() => POSTGRES.lost(node, reason_of(error)),
        // Neither the server nor the network: a value that cannot be sent or read as what it should be.
        None => {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            ServerError::unfit(format!("cannot {doing} on `{node}`: {error}{cause}"), None)
        }
    }
}

/// The network swallowed what was sent.
pub(super) fn silence(node: &str, doing: &str) -> ServerError {
    POSTGRES.timed_out(node, doing, SILENCE.as_secs())
}

/// Why a connection ended.
pub(super) fn reason_of(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(last_words) => with_state(last_words),
        None if error.is_closed() => WITHOUT_A_WORD.to_owned(),
        None => innermost(error),
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
pub(super) fn with_state(words: &DbError) -> String {
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

    #[test]
    fn damage_names_the_table_its_server_and_what_is_wrong() {
        let damaged = ServerError::damaged("db1:5432".into(), "\"plimsoll\".\"slob_3\"".into(), "it is empty".into());
        assert!(damaged.is_data_fault());
        assert_eq!(damaged.to_string(), "\"plimsoll\".\"slob_3\" on `db1:5432` is damaged: it is empty");
    }

    #[test]
    fn only_what_stands_against_every_operation_ends_the_load() {
        let refused = |code: &str| POSTGRES.refused("db1:5432", "execute operations", code, "");
        for code in
            ["53100", "53300", "42P01", "42501", "57P01", "57P02", "57P03", "08006", "58030", "XX001", "XX002", "25006"]
        {
            assert!(refused(code).ends_the_load(), "{code}");
        }
        for code in ["40001", "40P01", "55P03", "57014", "23505", "22001", "25P02"] {
            assert!(!refused(code).ends_the_load(), "{code}");
        }
        assert!(silence("db1", "execute operations").ends_the_load());
    }
}
