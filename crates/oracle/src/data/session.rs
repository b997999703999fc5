//! One connection for set-up, proof and verification.

use crate::error::number;
use std::sync::mpsc;

use crate::connect::{Connected, Connector};
use crate::driver::{Error, Row, ToDbValue};
use ::sql::ServerError;
use ::sql::data::streams::{Halt, LOOK_AROUND};
use targets::TargetError;

/// Where a data set is, or is to be.
pub(crate) type Access<'a> = sql::data::Access<'a, Connector>;

/// A connection that waits for each answer.
#[derive(Debug)]
pub struct Session<'a> {
    access: Access<'a>,
    /// Lent to a thread while a long statement runs; gone for good if that was not waited for.
    connected: Option<Connected>,
    /// Another one, in whose transaction something is locked.
    holding: Option<Connected>,
}

impl<'a> Session<'a> {
    /// Connects for work of any length.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub(super) fn open(access: Access<'a>) -> Result<Self, TargetError> {
        let connected = access.connector.connect(access.node)?;
        connected.name_work(access.connector.program(), "set-up");
        Ok(Self { access, connected: Some(connected), holding: None })
    }

    pub(super) fn access(&self) -> Access<'a> {
        self.access
    }

    /// The connection, for what the others have no words for.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`] when it was left to a statement that nobody waited for.
    pub(super) fn connected(&self) -> Result<&Connected, TargetError> {
        self.connected.as_ref().ok_or(TargetError::Interrupted)
    }

    /// The version of the server.
    pub(super) fn version_text(&self) -> String {
        self.connected.as_ref().map(Connected::version_text).unwrap_or_default()
    }

    /// Locks something by a query on a connection of its own, which is kept as long as this session or until it is
    /// [`released`](Self::release); `false` if that is refused with one of the numbers in `is_held`, and `None` if there is nothing to
    /// lock: no row, or an error with one of those in `is_missing`.
    ///
    /// # Errors
    /// When the server refuses otherwise.
    pub(super) fn hold(&mut self, sql: &str, is_held: &[u32], is_missing: &[u32]) -> Result<Option<bool>, TargetError> {
        let connected = self.access.connector.connect(self.access.node)?;
        let is_one =
            |error: &ServerError, numbers: &[u32]| number(error).is_some_and(|number| numbers.contains(&number));
        match connected.first("lock the data", sql, &[], |_| Ok(())) {
            Ok(Some(())) => {
                self.holding = Some(connected);
                Ok(Some(true))
            }
            Ok(None) => Ok(None),
            Err(error) if is_one(&error, is_held) => Ok(Some(false)),
            Err(error) if is_one(&error, is_missing) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether something is locked so.
    pub(super) fn is_holding(&self) -> bool {
        self.holding.is_some()
    }

    /// Gives that up.
    pub(super) fn release(&mut self) {
        self.holding = None;
    }

    /// Executes a short statement, and says how many rows it changed.
    ///
    /// # Errors
    /// When the server refuses.
    pub(super) fn execute(&self, doing: &str, sql: &str, values: &[&dyn ToDbValue]) -> Result<u64, TargetError> {
        Ok(self.connected()?.execute(doing, sql, values)?)
    }

    /// Executes a statement that may take long. Nothing can cancel it from outside, so when the work is to end it is left to the
    /// database, which finishes it or takes it back when the connection ends.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or what the server says.
    pub(super) fn execute_long(&mut self, doing: &str, sql: String, halt: Halt<'_>) -> Result<u64, TargetError> {
        let doing = doing.to_owned();
        self.long(halt, move |connected| connected.execute(&doing, &sql, &[]))
    }

    /// All rows of a query that may take long, each as `read` takes it. It is left as [`execute_long`](Self::execute_long) is.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or what the server says.
    pub(super) fn query_long<T: Send + 'static>(
        &mut self,
        doing: &str,
        sql: &str,
        halt: Halt<'_>,
        read: fn(&Row) -> Result<T, Error>,
    ) -> Result<Vec<T>, TargetError> {
        let (doing, sql) = (doing.to_owned(), sql.to_owned());
        self.long(halt, move |connected| connected.query(&doing, &sql, &[], read))
    }

    fn long<T: Send + 'static>(
        &mut self,
        halt: Halt<'_>,
        work: impl FnOnce(&Connected) -> Result<T, ServerError> + Send + 'static,
    ) -> Result<T, TargetError> {
        halt.check()?;
        let connected = self.connected.take().ok_or(TargetError::Interrupted)?;
        let (sender, done) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("oracle-statement".to_owned());
        let spawned = thread.spawn(move || {
            let outcome = work(&connected);
            let _ = sender.send((connected, outcome));
        });
        spawned.map_err(|source| TargetError::Kernel { action: "start a thread", source })?;
        loop {
            match done.recv_timeout(LOOK_AROUND) {
                Ok((connected, outcome)) => {
                    self.connected = Some(connected);
                    return Ok(outcome?);
                }
                Err(mpsc::RecvTimeoutError::Timeout) if !halt.is_set() => {}
                Err(_) => return Err(TargetError::Interrupted),
            }
        }
    }

    /// All rows of a query, each as `read` takes it.
    ///
    /// # Errors
    /// When the server refuses.
    pub(super) fn query<T>(
        &self,
        doing: &str,
        sql: &str,
        values: &[&dyn ToDbValue],
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Vec<T>, TargetError> {
        Ok(self.connected()?.query(doing, sql, values, read)?)
    }

    /// The first row of a query, if it has any.
    ///
    /// # Errors
    /// When the server refuses.
    pub(super) fn first<T>(
        &self,
        doing: &str,
        sql: &str,
        values: &[&dyn ToDbValue],
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Option<T>, TargetError> {
        Ok(self.connected()?.first(doing, sql, values, read)?)
    }
}
