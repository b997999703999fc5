//! What transactions came to, besides how long they took.

use std::collections::BTreeMap;

use model::record::TransactionStats;

/// Why a server refused what a transaction asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalClass {
    /// Two sessions waited for each other.
    Deadlock,
    /// The isolation level does not let it see what it saw.
    Serialization,
    /// Somebody else held a lock for too long.
    LockTimeout,
    /// It took too long, or somebody cancelled it.
    Cancelled,
    /// A key, a foreign key or a check stands against it.
    Constraint,
    /// Anything else.
    Other,
}

impl RefusalClass {
    /// Every class, in the order of its number.
    pub const ALL: [Self; 6] =
        [Self::Deadlock, Self::Serialization, Self::LockTimeout, Self::Cancelled, Self::Constraint, Self::Other];

    /// The word for it in tables and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deadlock => "deadlock",
            Self::Serialization => "serialization failure",
            Self::LockTimeout => "lock timeout",
            Self::Cancelled => "cancelled",
            Self::Constraint => "constraint",
            Self::Other => "other",
        }
    }

    /// Whether an application would try the same again: whoever does may succeed.
    pub const fn is_worth_another_attempt(self) -> bool {
        matches!(self, Self::Deadlock | Self::Serialization | Self::LockTimeout)
    }
}

/// What one transaction, or many of one kind, came to. Attempts that were given up count like the last one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Statements that were sent and answered, those that begin and end transactions left out.
    pub statements: u64,
    /// Times that an answer was waited for.
    pub round_trips: u64,
    /// Rows that queries gave.
    pub rows_read: u64,
    /// Rows that were inserted, changed or removed.
    pub rows_changed: u64,
    /// Commits that were acknowledged.
    pub commits: u64,
    /// Rollbacks that the transaction itself asked for, such as of an order of products that are sold out.
    pub rollbacks: u64,
    /// Attempts that the server refused and that were made again, by [`RefusalClass`].
    pub retries: [u64; RefusalClass::ALL.len()],
    /// Transactions that failed, by the class of the last refusal.
    pub failures: [u64; RefusalClass::ALL.len()],
    /// Pauses between its steps, in nanoseconds.
    pub paused_ns: u64,
}

impl Tally {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        let Self { statements, round_trips, rows_read, rows_changed, commits, rollbacks, retries, failures, paused_ns } =
            other;
        self.statements += statements;
        self.round_trips += round_trips;
        self.rows_read += rows_read;
        self.rows_changed += rows_changed;
        self.commits += commits;
        self.rollbacks += rollbacks;
        self.retries.iter_mut().zip(retries).for_each(|(sum, more)| *sum += more);
        self.failures.iter_mut().zip(failures).for_each(|(sum, more)| *sum += more);
        self.paused_ns = self.paused_ns.saturating_add(*paused_ns);
    }

    /// The document's form.
    pub fn stats(&self) -> TransactionStats {
        let by_class = |counts: &[u64; RefusalClass::ALL.len()]| -> BTreeMap<String, u64> {
            let classes = RefusalClass::ALL.into_iter().zip(counts).filter(|(_, count)| **count > 0);
            classes.map(|(class, count)| (class.name().to_owned(), *count)).collect()
        };
        TransactionStats {
            statements: self.statements,
            round_trips: self.round_trips,
            rows_read: self.rows_read,
            rows_changed: self.rows_changed,
            commits: self.commits,
            rollbacks: self.rollbacks,
            retries: by_class(&self.retries),
            failures: by_class(&self.failures),
            paused_ns: self.paused_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_have_everything_and_documents_only_classes_that_happened() {
        let mut sum = Tally { statements: 3, commits: 1, ..Tally::default() };
        let mut more = Tally { rows_changed: 4, paused_ns: 5, ..Tally::default() };
        more.retries[RefusalClass::LockTimeout as usize] = 2;
        sum.add(&more);
        let stats = sum.stats();
        assert_eq!((stats.statements, stats.commits, stats.rows_changed, stats.paused_ns), (3, 1, 4, 5));
        assert_eq!(stats.retries, BTreeMap::from([("lock timeout".to_owned(), 2)]));
        assert!(stats.failures.is_empty());
    }

    #[test]
    fn classes_stand_in_the_list_at_their_numbers() {
        for (place, class) in RefusalClass::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, place);
        }
    }
}
