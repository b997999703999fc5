//! Why a MySQL or MariaDB server cannot do what was asked.

use std::fmt::Display;
use std::io;

use mysql_async::{DriverError, Error, IoError, ServerError};

/// Why something about a MySQL or MariaDB server could not be done. No message ever holds a password.
#[derive(Debug, thiserror::Error)]
pub enum MysqlError {
    /// No connection could be made.
    #[error("cannot connect to MySQL at `{node}`: {reason}")]
    Connect {
        /// The server.
        node: String,
        /// Why, in one sentence.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A connection broke while it was in use.
    #[error("MySQL at `{node}` is gone: {reason}")]
    Lost {
        /// The server.
        node: String,
        /// Why, as far as it is known.
        reason: String,
    },
    /// The server refused a statement.
    #[error("cannot {doing} on `{node}`: {message} (error {code})")]
    Refused {
        /// The server.
        node: String,
        /// What was tried, such as `create the tables`.
        doing: String,
        /// The server's number of the error.
        code: u16,
        /// The server's own words.
        message: String,
    },
    /// The server did not answer in time.
    #[error("MySQL at `{node}` did not answer for {waited_s} s while it should {doing}")]
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

impl MysqlError {
    /// What an error of the client means: `node` was asked to do `doing`, such as `create the tables`.
    pub fn of(node: &dyn Display, doing: &str, error: &Error) -> Self {
        let (node, doing) = (node.to_string(), doing.to_owned());
        match error {
            Error::Server(refusal) if ENDS_THE_CONNECTION.contains(&refusal.code) => {
                Self::Lost { node, reason: reported(refusal) }
            }
            Error::Server(ServerError { code, message, .. }) => {
                Self::Refused { node, doing, code: *code, message: message.clone() }
            }
            Error::Io(IoError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Self::Lost { node, reason: "it closed the connection without a word".to_owned() }
            }
            Error::Io(error) => Self::Lost { node, reason: innermost(error) },
            Error::Driver(DriverError::ConnectionClosed) => {
                Self::Lost { node, reason: "the connection is closed".to_owned() }
            }
            // Neither the server nor the network: a value that cannot be sent or read as what it should be.
            other => Self::Unfit { what: format!("cannot {doing} on `{node}`: {other}"), hint: None },
        }
    }

    /// Whether going on makes no sense. Only errors that are known to be about one operation leave the load able to go on:
    /// whatever else a server says stands against the next operation as well.
    pub fn ends_the_load(&self) -> bool {
        !matches!(self, Self::Refused { code, .. } if COSTS_ONLY_THE_OPERATION.contains(code))
    }

    /// Whether it says that stored data are not what was loaded, as opposed to a request that could not be done.
    pub fn is_data_fault(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Refused { code, .. } => CORRUPTED.contains(code),
            _ => false,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Connect { hint, .. } | Self::Unfit { hint, .. } => return hint.clone(),
            Self::Lost { .. } => "the server's own log says why; what was measured until then is kept",
            Self::Damaged { .. } => {
                "another program changed or damaged it; `plimsoll slob verify` says more, and `plimsoll slob setup --replace` \
                 makes the data anew"
            }
            Self::TimedOut { .. } => "look whether the server and the network to it still answer",
            Self::Refused { code, .. } => refusal_hint(*code)?,
        };
        Some(hint.to_owned())
    }
}

/// Shutdown, a killed connection, and one that was idle for too long ("Server Error Message Reference").
const ENDS_THE_CONNECTION: [u16; 5] = [1053, 1080, 1927, 1152, 4031];
/// Lock wait timeout, deadlock, a row that changed meanwhile, a full lock table, a killed statement, and the limits of time of
/// MariaDB and MySQL.
const COSTS_ONLY_THE_OPERATION: [u16; 7] = [1205, 1213, 1020, 1206, 1317, 1969, 3024];
/// A wrong key file, a crashed table, a corrupted index or table.
const CORRUPTED: [u16; 5] = [1034, 1194, 1195, 1712, 1877];
/// The right to a database, table, column, procedure or server-wide setting is missing.
pub(super) const LACKS_RIGHTS: [u16; 6] = [1044, 1142, 1143, 1227, 1370, 1419];
/// Data that are not there: database, table, column, index, procedure.
pub(super) const MISSING: [u16; 5] = [1049, 1054, 1146, 1176, 1305];

/// The server's own words with their number.
pub(super) fn reported(refusal: &ServerError) -> String {
    format!("{} (error {})", refusal.message, refusal.code)
}

/// The words of the cause behind all causes.
pub(super) fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// What a refusal asks for.
pub(super) fn refusal_hint(code: u16) -> Option<&'static str> {
    Some(match code {
        3 | 1021 | 1114 => "the server's disk is full; free some space there",
        1040 | 1203 | 1226 => {
            "the server takes no more connections; raise its max_connections or the user's max_user_connections, or use fewer \
             sessions"
        }
        1205 => "another session holds the rows; raise innodb_lock_wait_timeout, or spread the load with more data",
        1213 => "two sessions changed the same rows; fewer meet with more data or without a hot spot",
        1290 | 1792 | 1836 => "the server only reads (`read_only`); name the primary",
        1317 => "somebody killed the statement",
        1665 => "have the server log rows: `SET GLOBAL binlog_format = 'ROW'`",
        1969 | 3024 => "raise max_statement_time (MariaDB) or max_execution_time (MySQL) for this user",
        code if LACKS_RIGHTS.contains(&code) => {
            "have the right granted; `GRANT ALL ON DATABASE.* TO USER` is enough for all but set-up, which docs/mysql.md lists"
        }
        code if MISSING.contains(&code) => {
            "the data are not there, or not all of them; make them: `plimsoll slob setup`"
        }
        code if CORRUPTED.contains(&code) => {
            "the server found damage; `plimsoll slob verify` says more, and `plimsoll slob setup --replace` makes the data anew"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16) -> MysqlError {
        let error = ServerError { code, message: "no".to_owned(), state: "HY000".to_owned() };
        MysqlError::of(&"db1:3306", "execute operations", &Error::Server(error))
    }

    #[test]
    fn only_what_is_about_one_operation_leaves_the_load_going() {
        for code in [1205, 1213, 1317, 1969, 3024] {
            assert!(!refused(code).ends_the_load(), "{code}");
        }
        for code in [1021, 1114, 1040, 1142, 1146, 1290, 1712, 1927, 1053, 1064] {
            assert!(refused(code).ends_the_load(), "{code}");
        }
    }

    #[test]
    fn a_killed_session_is_a_lost_connection_and_damage_is_damage() {
        assert_eq!(refused(1927).to_string(), "MySQL at `db1:3306` is gone: no (error 1927)");
        assert_eq!(refused(1205).to_string(), "cannot execute operations on `db1:3306`: no (error 1205)");
        assert!(refused(1712).is_data_fault() && !refused(1205).is_data_fault());
        let closed = io::Error::from(io::ErrorKind::UnexpectedEof);
        let closed = MysqlError::of(&"db1:3306", "x", &Error::Io(IoError::Io(closed)));
        assert!(matches!(closed, MysqlError::Lost { .. }), "{closed}");
    }
}
