//! The steps that transactions are made of, and what comes of them.

use super::rules::{Acknowledged, Rules};
use super::session::{Argument, OrdersSession, Rows};
use super::statements::{Gives, Statement};
use crate::measure::Tally;
use crate::workload::Rng;
use crate::workload::orders::Pauses;

/// One attempt at a transaction.
pub(super) struct Steps<'a, S> {
    pub(super) session: &'a S,
    rules: &'a Rules,
    /// The choices, which are the same in each attempt.
    pub(super) rng: Rng,
    /// Nobody thinks again about what is only tried again.
    pauses: Pauses,
    /// The lengths of pauses. They are drawn apart, so that choices are the same however long is paused.
    lengths: Rng,
    pub(super) tally: &'a mut Tally,
    /// What the last query gave.
    pub(super) rows: &'a mut Rows,
    pub(super) acknowledged: Acknowledged,
    /// Something is not committed yet.
    is_open: bool,
}

impl<'a, S: OrdersSession> Steps<'a, S> {
    pub(super) fn new(
        session: &'a S,
        rules: &'a Rules,
        seed: u64,
        is_first: bool,
        tally: &'a mut Tally,
        rows: &'a mut Rows,
    ) -> Self {
        let pauses = if is_first { rules.inside } else { Pauses::None };
        let (rng, lengths) = (Rng::new(seed, 0), Rng::new(seed, 1));
        Self {
            session,
            rules,
            rng,
            pauses,
            lengths,
            tally,
            rows,
            acknowledged: Acknowledged::default(),
            is_open: false,
        }
    }

    /// Whether something was begun and neither committed nor taken back.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// A number of `min..=max`.
    pub(super) fn between(&mut self, min: i64, max: i64) -> i64 {
        min + self.rng.below((max - min + 1).unsigned_abs()) as i64
    }

    /// A number below `count`.
    pub(super) fn below(&mut self, count: usize) -> usize {
        self.rng.below(count as u64) as usize
    }

    /// A customer that was there when the data were made.
    pub(super) fn customer(&mut self) -> i64 {
        self.between(1, self.rules.sizes.customers as i64)
    }

    /// How many times a customer looks at products.
    pub(super) fn browses(&mut self) -> i64 {
        self.between(1, 23)
    }

    /// The key of one of the rows that the last query gave.
    pub(super) fn any_row(&mut self) -> Option<i64> {
        let row = self.below(self.rows.len());
        self.rows.get(row, 0)
    }

    /// Pauses, as its user asked for.
    pub(super) async fn pause(&mut self) {
        let ns = self.pauses.draw(&mut self.lengths);
        if ns > 0 {
            let session = self.session;
            self.tally.paused_ns += session.alarm().rest(session.id(), session.resting(), ns).await;
        }
    }

    pub(super) async fn begin(&mut self) -> Result<(), S::Error> {
        self.tally.round_trips += self.session.begin().await?;
        self.is_open = true;
        Ok(())
    }

    pub(super) async fn query(&mut self, statement: Statement, values: &[Argument<'_>]) -> Result<(), S::Error> {
        debug_assert!(matches!(statement.gives(), Gives::Rows(_)), "{statement:?}");
        self.tally.round_trips += 1;
        self.session.query(statement, values, self.rows).await?;
        self.tally.statements += 1;
        self.tally.rows_read += self.rows.len() as u64;
        Ok(())
    }

    pub(super) async fn change(&mut self, statement: Statement, values: &[Argument<'_>]) -> Result<u64, S::Error> {
        debug_assert_eq!(statement.gives(), Gives::Changes, "{statement:?}");
        self.tally.round_trips += 1;
        let changed = self.session.change(statement, values).await?;
        self.tally.statements += 1;
        self.tally.rows_changed += changed;
        Ok(changed)
    }

    pub(super) async fn insert(&mut self, statement: Statement, values: &[Argument<'_>]) -> Result<i64, S::Error> {
        debug_assert_eq!(statement.gives(), Gives::Key, "{statement:?}");
        self.tally.round_trips += 1;
        let key = self.session.insert(statement, values).await?;
        self.tally.statements += 1;
        self.tally.rows_changed += 1;
        Ok(key)
    }

    pub(super) async fn commit(&mut self) -> Result<(), S::Error> {
        self.tally.round_trips += 1;
        self.session.commit().await?;
        self.is_open = false;
        self.tally.commits += 1;
        Ok(())
    }

    /// Takes back what was done, since it can no longer be done as asked.
    pub(super) async fn give_up(&mut self) -> Result<(), S::Error> {
        self.roll_back().await?;
        self.tally.rollbacks += 1;
        Ok(())
    }

    pub(super) async fn roll_back(&mut self) -> Result<(), S::Error> {
        self.tally.round_trips += 1;
        self.session.roll_back().await?;
        self.is_open = false;
        Ok(())
    }
}
