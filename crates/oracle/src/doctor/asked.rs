//! One session that is asked, and what it said.

use crate::error::number;
use std::collections::BTreeMap;
use std::time::Duration;

use super::questions;
use super::trials::Waits;
use crate::connect::{Connected, Connector};
use crate::driver::{Error, Row, ToDbValue};
use crate::error::LACKS_RIGHTS;
use crate::sql;
use ::sql::ServerError;
use targets::TargetError;

/// Longest that one question may take.
const CALL_LIMIT: Duration = Duration::from_secs(60);
/// What a view that is not there, or not to be seen, is called.
const NO_TABLE: u32 = 942;

/// How the names of notes begin that say why there was no answer.
pub(super) const REFUSED: &str = "refused.";

/// A session, and what is known so far.
pub(super) struct DoctorSession {
    pub(super) connected: Connected,
    pub(super) facts: BTreeMap<String, String>,
}

impl DoctorSession {
    pub(super) fn connect(connector: &Connector) -> Result<Self, TargetError> {
        let connected = connector.connect(0)?;
        connected.limit_calls(Some(CALL_LIMIT))?;
        connected.name_work(connector.program(), "doctor");
        Ok(Self { connected, facts: BTreeMap::new() })
    }

    /// Keeps something that was said, on one line.
    pub(super) fn note(&mut self, name: &str, value: &str) {
        self.facts.insert(name.to_owned(), value.replace(char::is_control, " "));
    }

    /// An answer, or `None` and a note where it was refused.
    pub(super) fn unless_refused<T>(
        &mut self,
        about: &str,
        answer: Result<T, TargetError>,
    ) -> Result<Option<T>, TargetError> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) => {
                let words = words_unless_gone(error)?;
                self.note(&format!("{REFUSED}{about}"), &words);
                Ok(None)
            }
        }
    }

    /// All rows of a query; `None` where that was refused.
    pub(super) fn rows<T>(
        &mut self,
        doing: &str,
        sql: &str,
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Option<Vec<T>>, TargetError> {
        self.rows_for(doing, sql, &[], read)
    }

    /// The same with values.
    pub(super) fn rows_for<T>(
        &mut self,
        doing: &str,
        sql: &str,
        values: &[&dyn ToDbValue],
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Option<Vec<T>>, TargetError> {
        let rows = self.connected.query(doing, sql, values, read).map_err(TargetError::from);
        self.unless_refused(doing, rows)
    }

    /// What a block puts out; `None` where it was refused.
    pub(super) fn block<T>(
        &mut self,
        doing: &str,
        sql: &str,
        values: &[&dyn ToDbValue],
        read: impl FnOnce(Row) -> Result<T, Error>,
    ) -> Result<Option<T>, TargetError> {
        let out = self.connected.call(doing, sql, values);
        let out = out.and_then(|row| read(row).map_err(|error| self.connected.error(doing, &error)));
        self.unless_refused(doing, out.map_err(TargetError::from))
    }

    /// Whether a query is allowed; `None` where it fails for another reason.
    pub(super) fn may_read(&mut self, sql: &str) -> Result<Option<bool>, TargetError> {
        match self.connected.query("try a view", sql, &[], |_| Ok(())) {
            Ok(_) => Ok(Some(true)),
            Err(error) => {
                let number = number(&error);
                let words = words_unless_gone(error.into())?;
                if number.is_some_and(|number| number == NO_TABLE || LACKS_RIGHTS.contains(&number)) {
                    return Ok(Some(false));
                }
                self.note(&format!("{REFUSED}{sql}"), &words);
                Ok(None)
            }
        }
    }

    /// Whether there is room in a tablespace for more.
    pub(super) fn quota(&mut self, tablespace: &str) -> Result<Option<bool>, TargetError> {
        let read = |row: &Row| Ok((row.get::<i64>(0)?, row.get::<i64>(1)?));
        let quotas = self.rows_for("ask for the quota", sql::QUOTAS, &[&tablespace], read)?;
        Ok(quotas.map(|rows| rows.iter().any(|(has, may)| *may == -1 || has < may)))
    }

    /// Parameters, by name; none where they may not be seen.
    pub(super) fn parameters(&mut self) -> Result<BTreeMap<String, String>, TargetError> {
        let read = |row: &Row| Ok((row.get::<String>(0)?, row.get::<Option<String>>(1)?.unwrap_or_default()));
        let parameters = self.rows("ask for the parameters", questions::PARAMETERS, read)?;
        let parameters: BTreeMap<String, String> = parameters.into_iter().flatten().collect();
        for (name, value) in &parameters {
            self.note(&format!("parameter.{name}"), value);
        }
        Ok(parameters)
    }

    /// What this session has waited for so far, where it may see that.
    pub(super) fn waits(&mut self) -> Result<Option<Waits>, TargetError> {
        let read = |row: &Row| Ok((row.get::<String>(0)?, (row.get::<u64>(1)?, row.get::<u64>(2)?)));
        let waits = self.rows("ask for its waits", questions::OWN_WAITS, read)?;
        Ok(waits.map(|waits| waits.into_iter().collect()))
    }
}

/// What was said instead of an answer.
///
/// # Errors
/// The error itself, when the database is gone or nobody wants to know any more.
pub(super) fn words_unless_gone(error: TargetError) -> Result<String, TargetError> {
    match error.database() {
        Some(ServerError::Refused { .. } | ServerError::Unfit { .. }) => Ok(error.to_string()),
        _ => Err(error),
    }
}
