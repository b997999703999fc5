//! MySQL and MariaDB as a database under SLOB's method. They speak one dialect with two accents; docs/workloads/servers.md says what a user
//! sees of it.

mod connect;
mod data;
#[cfg(test)]
mod hostile_tests;
mod login;
pub mod monitor;
mod orders;
pub mod server;
mod session;
mod sql;
pub(crate) mod statements;
#[cfg(any(test, feature = "test-servers"))]
pub mod test_server;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::io;

use mysql_async::{DriverError, Error, IoError, ServerError as Refusal};

use crate::error::innermost;
use crate::{Meaning, Product, ServerError};
use measure::RefusalClass;
use model::record::TargetKind;

pub use connect::{Connected, Connector, Version};
pub use data::LocalServer;
pub use orders::MysqlOrders;
pub use session::{Mysql, MysqlServers};
pub use sql::{Sql, quoted};

/// MySQL and MariaDB, whose codes are numbers.
const MYSQL: &Product = &Product { name: "MySQL", kind: TargetKind::Mysql, code: "error", meaning };

fn meaning(code: &str) -> Meaning {
    let code = number(code);
    Meaning {
        // Only errors that are known to be about one operation leave the load able to go on: whatever else a server says stands
        // against the next operation as well.
        is_lasting: !COSTS_ONLY_THE_OPERATION.contains(&code),
        is_corruption: CORRUPTED.contains(&code),
        lacks_procedure: code == 1305,
        class: match code {
            1213 => RefusalClass::Deadlock,
            1020 => RefusalClass::Serialization,
            1205 => RefusalClass::LockTimeout,
            1317 | 1969 | 3024 => RefusalClass::Cancelled,
            1048 | 1062 | 1451 | 1452 | 1586 | 3819 | 4025 => RefusalClass::Constraint,
            _ => RefusalClass::Other,
        },
        hint: refusal_hint(code),
    }
}

/// The number of a code.
fn number(code: &str) -> u16 {
    code.parse().unwrap_or(0)
}

/// What an error of the client means: `node` was asked to do `doing`, such as `create the tables`.
fn error_of(node: &dyn Display, doing: &str, error: &Error) -> ServerError {
    let node = node.to_string();
    match error {
        Error::Server(refusal) if ENDS_THE_CONNECTION.contains(&refusal.code) => MYSQL.lost(node, numbered(refusal)),
        Error::Server(Refusal { code, message, .. }) => MYSQL.refused(node, doing, code, message),
        Error::Io(IoError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            MYSQL.lost(node, "it closed the connection without a word")
        }
        Error::Io(error) => MYSQL.lost(node, innermost(error)),
        Error::Driver(DriverError::ConnectionClosed) => MYSQL.lost(node, "the connection is closed"),
        // Neither the server nor the network: a value that cannot be sent or read as what it should be.
        other => ServerError::unfit(format!("cannot {doing} on `{node}`: {other}"), None),
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
const LACKS_RIGHTS: [u16; 6] = [1044, 1142, 1143, 1227, 1370, 1419];
/// Data that are not there: database, table, column, index, procedure.
const MISSING: [u16; 5] = [1049, 1054, 1146, 1176, 1305];

/// The server's own words with their number.
fn numbered(refusal: &Refusal) -> String {
    format!("{} (error {})", refusal.message, refusal.code)
}

/// What a refusal asks for.
fn refusal_hint(code: u16) -> Option<&'static str> {
    Some(match code {
        3 | 1021 | 1114 => "the server's disk is full; free some space there",
        1040 | 1203 | 1226 => {
            "the server takes no more connections; raise its max_connections or the user's max_user_connections, or use fewer \
             sessions"
        }
        1205 => "another session holds the rows; raise innodb_lock_wait_timeout, or spread the load with more data",
        1213 => "two sessions changed the same rows; fewer meet with more data or without a hot spot",
        1290 | 1792 | 1836 => "the server only reads (`read_only`); name the primary",
        1317 => "the statement was killed",
        1461 => "raise the server's max_prepared_stmt_count, or send batches: `--send batch`",
        1665 => "have the server log rows: `SET GLOBAL binlog_format = 'ROW'`",
        1862 => "the password has expired; change it with the server's own client",
        1969 | 3024 => "raise max_statement_time (MariaDB) or max_execution_time (MySQL) for this user",
        3118 | 4151 => "the account is locked; have an administrator unlock it: ALTER USER … ACCOUNT UNLOCK",
        code if LACKS_RIGHTS.contains(&code) => {
            "have the right granted; `GRANT ALL ON DATABASE.* TO USER` is enough for all but set-up, which docs/workloads/servers.md lists"
        }
        code if MISSING.contains(&code) => {
            "the data is missing or incomplete; create it: `plimsoll slob setup`, for order entry `plimsoll orders setup`"
        }
        code if CORRUPTED.contains(&code) => {
            "the server found damage; `plimsoll slob verify` says more, and `plimsoll slob setup --replace` makes the data again"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod error_tests {
    use targets::DatabaseError as _;

    use super::*;

    fn refused(code: u16) -> ServerError {
        let error = Refusal { code, message: "no".to_owned(), state: "HY000".to_owned() };
        error_of(&"db1:3306", "execute operations", &Error::Server(error))
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
        let closed = error_of(&"db1:3306", "x", &Error::Io(IoError::Io(closed)));
        assert!(matches!(closed, ServerError::Lost { .. }), "{closed}");
    }
}
