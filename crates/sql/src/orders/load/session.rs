//! What a server's own folder gives, so that order entry can be run on its sessions.

use std::sync::Arc;

use super::ledger::Ledger;
use super::rules::Rules;
use super::statements::Statement;
use crate::{ServerError, SqlSession};

/// How the sessions of a run are to work.
#[derive(Debug, Clone)]
pub struct OrdersSetting {
    /// What all transactions have in common.
    pub rules: Rules,
    /// Level of transactions, as SQL has it; that of the server where `None`.
    pub isolation: Option<String>,
    /// Where what was acknowledged is kept for the audit.
    pub ledger: Arc<Ledger>,
}

/// A value of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument<'a> {
    /// A whole number.
    Int(i64),
    /// Text.
    Text(&'a str),
}

/// The whole numbers of the leading columns of the rows that a query gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    values: Vec<Option<i64>>,
    width: usize,
    count: usize,
}

impl Rows {
    /// Makes room for the answer of another query, which has so many columns of interest.
    pub fn begin(&mut self, width: usize) {
        self.values.clear();
        (self.width, self.count) = (width, 0);
    }

    /// Appends a row, whose columns of interest are `values`.
    pub fn push(&mut self, values: impl Iterator<Item = Option<i64>>) {
        self.values.extend(values.take(self.width));
        self.count += 1;
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A number; `None` where it is null.
    pub fn get(&self, row: usize, column: usize) -> Option<i64> {
        *self.values.get(row * self.width + column)?
    }
}

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// What was done stays.
    Commit,
    /// What was done since the last commit is taken back.
    RollBack,
}

impl End {
    /// The statement.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Commit => "COMMIT",
            Self::RollBack => "ROLLBACK",
        }
    }
}

/// A session that executes the statements of order entry, one at a time.
pub trait OrdersSession: SqlSession {
    /// Begins a transaction, now or with the next statement, and says how many round trips that took; nothing where the first change
    /// does so by itself.
    fn begin(&self) -> impl Future<Output = Result<u64, ServerError>> + Send {
        async { Ok(0) }
    }

    /// Executes a statement. The rows of a query go into `into`, and their number is given; of a change how many rows it changed, of an
    /// insertion the key of the new row.
    fn execute(
        &self,
        statement: Statement,
        values: &[Argument<'_>],
        into: &mut Rows,
    ) -> impl Future<Output = Result<i64, ServerError>> + Send;

    /// Ends the transaction.
    fn end(&self, how: End) -> impl Future<Output = Result<(), ServerError>> + Send;

    /// Takes back what a call that failed has left open, where the server does not do so by itself. Says how many round trips that
    /// took.
    fn clear(&self) -> impl Future<Output = Result<u64, ServerError>> + Send {
        async { Ok(0) }
    }

    /// Prepares a statement, so that its first execution costs no more than the next.
    fn prepare(&self, _statement: Statement) -> impl Future<Output = Result<(), ServerError>> + Send {
        async { Ok(()) }
    }

    /// Round trips in which statements were prepared since this was last asked.
    fn take_preparing(&self) -> u64 {
        0
    }
}
