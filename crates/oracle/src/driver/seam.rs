//! What a driver has to do.

use std::path::PathBuf;
use std::time::Duration;

use super::error::Error;
use super::row::Row;
use super::value::ToDbValue;
use ::sql::SessionId;
use model::config::Secret;
use model::config::oracle::{OracleDriver, OracleRole};

/// Statements of a session that a driver keeps prepared: more than operations and batches have.
pub(super) const STATEMENTS: u32 = 32;

/// How to connect.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) driver: OracleDriver,
    pub(crate) user: String,
    pub(crate) password: Secret,
    pub(crate) role: Option<OracleRole>,
    /// A descriptor, or a name of `tnsnames.ora`.
    pub(crate) connect_string: String,
    /// Longest wait for the network.
    pub(crate) connect_timeout: Duration,
    /// Directory of `tnsnames.ora`.
    pub(crate) tns_admin: Option<String>,
    pub(crate) wallet: Option<PathBuf>,
    pub(crate) wallet_password: Option<Secret>,
    /// The program's name, as `v$session` shows it; an installed client shows that of the file.
    pub(crate) program: String,
}

/// Where a connection has landed.
#[derive(Debug)]
pub(crate) struct Landed {
    pub(crate) instance: String,
    /// The server's version: 19, 3, 0, 0, 0.
    pub(crate) version: [usize; 5],
    pub(crate) id: SessionId,
}

/// A connection. It is asked one thing at a time, and waits for the answer.
pub(crate) trait Driver: Send {
    /// Names what the session does, as `v$session` shows it; it goes with the next call.
    ///
    /// # Errors
    /// When the connection is not usable.
    fn name_work(&self, module: &str, action: &str) -> Result<(), Error>;

    /// Limits how long a call may take. One that takes longer is cancelled and ends in [`Error::TookTooLong`].
    ///
    /// # Errors
    /// When the connection is not usable.
    fn limit_calls(&self, limit: Option<Duration>) -> Result<(), Error>;

    /// Executes a statement or a block, and says how many rows it changed.
    ///
    /// # Errors
    /// What the server says.
    fn execute(&self, sql: &str, values: &[&dyn ToDbValue]) -> Result<u64, Error>;

    /// Executes a block, and gives what it puts out: a column for each value that is one of the types.
    ///
    /// # Errors
    /// What the server says.
    fn call(&self, sql: &str, values: &[&dyn ToDbValue]) -> Result<Row, Error>;

    /// Executes a statement once for each row of values, in one round trip, and says how many rows it changed.
    ///
    /// # Errors
    /// What the server says.
    fn execute_for_each(&self, sql: &str, rows: &[&[&dyn ToDbValue]]) -> Result<u64, Error>;

    /// Has `take` see all rows of a query, of which so many come in one round trip.
    ///
    /// # Errors
    /// What the server or `take` says.
    fn query(
        &self,
        sql: &str,
        values: &[&dyn ToDbValue],
        rows_at_once: u32,
        take: &mut dyn FnMut(&Row) -> Result<(), Error>,
    ) -> Result<(), Error>;

    /// The first row of a query.
    ///
    /// # Errors
    /// [`Error::NoRow`], or what the server says.
    fn first(&self, sql: &str, values: &[&dyn ToDbValue]) -> Result<Row, Error>;

    /// A statement or block that is executed many times.
    ///
    /// # Errors
    /// What the server says.
    fn prepare(&self, sql: &str) -> Result<Prepared, Error>;

    /// One round trip with nothing to do on the other side.
    ///
    /// # Errors
    /// When the connection is not usable.
    fn ping(&self) -> Result<(), Error>;

    /// Ends the transaction.
    ///
    /// # Errors
    /// What the server says.
    fn commit(&self) -> Result<(), Error>;

    /// Takes back what was not committed.
    ///
    /// # Errors
    /// What the server says.
    fn rollback(&self) -> Result<(), Error>;
}

/// A block that is kept prepared.
pub(crate) trait Block: Send {
    /// Executes it, and gives what it puts out.
    ///
    /// # Errors
    /// What the server says.
    fn call(&mut self, values: &[&dyn ToDbValue]) -> Result<Row, Error>;
}

/// A statement or block that is kept prepared.
pub(crate) type Prepared = Box<dyn Block>;
