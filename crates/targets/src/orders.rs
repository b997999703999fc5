//! Data of order entry, on whichever database: what [`Database`](crate::database::Database) is for the SLOB method.
//!
//! An [`OrdersDatabase`] is an address that was understood, and nothing is done before it is asked for something. Every command
//! finds it in `databases` of the program.

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::TargetError;
use super::database::{DropPlan, OpenDatabase, SetupPlan, Sheet};
use crate::database::Replace;
use model::units::group_thousands;
use model::workload::orders::{MAX_SCALE, MIN_SCALE, OrderTransaction, Pauses, Reconnect, Sizes, TransactionKind};

/// What data are opened for.
#[derive(Debug)]
pub struct OrdersOpenRequest<'a> {
    /// Users of the largest step.
    pub users: u32,
    /// Pauses between the steps of a transaction.
    pub inside: Pauses,
    /// How often a transaction is tried again after a deadlock, a serialization failure or a lock timeout.
    pub max_retries: u32,
    /// How long the connections of users last.
    pub reconnect: Reconnect,
    /// Level of transactions, as SQL has it; that of the server where `None`.
    pub isolation: Option<&'a str>,
    /// How transactions are sent.
    pub sending: OrdersSending,
    /// Ends opening.
    pub stop: &'a AtomicBool,
}

/// Data that are open for load, and who audits them afterwards.
pub struct OpenOrders {
    /// What load is put on.
    pub database: Box<dyn OpenDatabase<OrderTransaction>>,
    /// Knows what was acknowledged. Of use as long as the database is open.
    pub auditor: Box<dyn Auditor>,
}

/// Data of order entry that may be there or not.
///
/// Methods that take `stop` end soon with [`TargetError::Interrupted`] once it is set.
pub trait OrdersDatabase {
    /// Decides everything about a set-up, and writes nothing.
    ///
    /// # Errors
    /// When the request makes no sense, or something there stands against it.
    fn plan_setup(
        &mut self,
        request: &OrdersRequest,
        stop: &AtomicBool,
    ) -> Result<Box<dyn SetupPlan + '_>, TargetError>;

    /// What is known of the data without reading them; changes nothing, and works while load runs.
    ///
    /// # Errors
    /// When there are none, or they cannot be looked at.
    fn info(&mut self, stop: &AtomicBool) -> Result<Sheet, TargetError>;

    /// Lists what would be removed, and removes nothing.
    ///
    /// # Errors
    /// When there is nothing to remove, or it is not ours.
    fn plan_drop(&mut self, stop: &AtomicBool) -> Result<Box<dyn DropPlan + '_>, TargetError>;

    /// Opens the data for load.
    ///
    /// # Errors
    /// When they cannot be opened or are not whole; then everything is left as it was found.
    fn open(self: Box<Self>, request: &OrdersOpenRequest<'_>) -> Result<OpenOrders, TargetError>;

    /// Looks whether the data keep their rules, and whether what was acknowledged is there.
    ///
    /// # Errors
    /// When there are none, they are not whole, or the server cannot be asked.
    fn audit(&mut self, acknowledged: &Acknowledgements, stop: &AtomicBool) -> Result<Audit, TargetError>;

    /// What the user should know about how it was reached.
    fn notes(&self) -> Vec<String>;

    /// Leaves it as it was found: ends a private server, unless it is to go on.
    ///
    /// # Errors
    /// When that cannot be done.
    fn close(self: Box<Self>) -> Result<(), TargetError>;
}

/// Keys of what servers acknowledged during a load.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Acknowledgements {
    /// Orders that were made.
    pub orders: Vec<i64>,
    /// Orders that were marked as processed, as often as that was acknowledged.
    pub processed: Vec<i64>,
}

impl Acknowledgements {
    /// Whether nothing was acknowledged.
    pub fn is_empty(&self) -> bool {
        self.orders.is_empty() && self.processed.is_empty()
    }

    /// As text, one acknowledgement a line: `order 17` or `processed 17`.
    pub fn to_text(&self) -> String {
        let lines =
            |word: &'static str, keys: &[i64]| -> String { keys.iter().map(|key| format!("{word} {key}\n")).collect() };
        lines("order", &self.orders) + &lines("processed", &self.processed)
    }

    /// Reads what [`to_text`](Self::to_text) wrote.
    ///
    /// # Errors
    /// The number and the text of the first line that is none.
    pub fn from_text(text: &str) -> Result<Self, (usize, String)> {
        let mut read = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let unread = || (number, line.to_owned());
            let (word, key) = line.split_once(' ').ok_or_else(unread)?;
            let key = key.parse().map_err(|_| unread())?;
            match word {
                "order" => read.orders.push(key),
                "processed" => read.processed.push(key),
                _ => return Err(unread()),
            }
        }
        Ok(read)
    }
}

/// One thing that an audit looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Audited {
    /// What must hold, in a sentence.
    pub rule: String,
    /// How many rows break it.
    pub violations: u64,
    /// The first of them.
    pub rows: Vec<String>,
}

/// What an audit found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// Each rule, in the order in which they were looked at.
    pub rules: Vec<Audited>,
    /// How long it took.
    pub elapsed_ns: u64,
}

impl Audit {
    /// Whether every rule holds.
    pub fn is_sound(&self) -> bool {
        self.rules.iter().all(|rule| rule.violations == 0)
    }
}

/// Looks whether data of order entry keep their rules, beside an open load or without one.
pub trait Auditor {
    /// Takes what was acknowledged since it was last asked.
    fn take_acknowledged(&self) -> Acknowledgements;

    /// Looks at all data, and whether what was acknowledged is there.
    ///
    /// # Errors
    /// When the servers cannot be asked.
    fn audit(&self, acknowledged: &Acknowledgements, stop: &AtomicBool) -> Result<Audit, TargetError>;
}

/// Most partitions of a table.
pub const MAX_PARTITIONS: u32 = 1024;

/// How transactions are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OrdersSending {
    /// Each statement by itself, as applications do.
    #[default]
    Statement,
    /// Each transaction as one call of a procedure.
    Procedure,
}

impl OrdersSending {
    /// Its word on the command line and in the record.
    pub fn word(self) -> &'static str {
        match self {
            Self::Statement => "statement",
            Self::Procedure => "procedure",
        }
    }
}

/// Bare name of the procedure that does a transaction of this kind: 30 bytes at most, as Oracle 12.1 allows.
pub fn procedure_name(kind: TransactionKind) -> String {
    let name = match kind {
        TransactionKind::UpdateCustomerDetails => "update customer",
        TransactionKind::WarehouseActivityQuery => "warehouse activity",
        kind => kind.name(),
    };
    format!("plimsoll_{}", name.replace(' ', "_"))
}

/// Which indexes data of order entry have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Indexes {
    /// All: keys, foreign keys and the others.
    All,
    /// Keys and foreign keys.
    Keys,
    /// None, but for those without which the server cannot keep a table.
    None,
}

impl Indexes {
    /// Its word on the command line and in the descriptor.
    pub fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Keys => "keys",
            Self::None => "none",
        }
    }
}

/// What data are wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct OrdersRequest {
    /// Scale, from [`MIN_SCALE`] to [`MAX_SCALE`]: 1 is a million customers.
    pub scale: f64,
    /// Hash partitions of each large table, up to [`MAX_PARTITIONS`]; 0 without.
    pub partitions: u32,
    /// Which indexes there are.
    pub indexes: Indexes,
    /// Connections that load, at least 1. The data do not depend on it.
    pub streams: u32,
    /// Seed of all rows.
    pub seed: u64,
    /// Whether the user named the seed. If not, the same data with another seed are the data that are asked for.
    pub is_seed_asked: bool,
    /// What to do with data that are there.
    pub replace: Replace,
}

impl OrdersRequest {
    /// The same, beside data with the seed `there`: the same command given twice finds its own data.
    #[must_use]
    pub fn beside(&self, there: Option<u64>) -> Self {
        let keeps = |_: &u64| !self.is_seed_asked && self.replace == Replace::Refuse;
        Self { seed: there.filter(keeps).unwrap_or(self.seed), ..self.clone() }
    }

    /// Refuses what no database can make.
    ///
    /// # Errors
    /// [`TargetError::Shape`] says what makes no sense.
    pub fn check(&self) -> Result<(), TargetError> {
        let refuse = |why: String| Err(TargetError::Shape(why));
        if !(MIN_SCALE..=MAX_SCALE).contains(&self.scale) {
            return refuse(format!("a scale is from {MIN_SCALE} to {MAX_SCALE}, not {}", self.scale));
        }
        if self.partitions > MAX_PARTITIONS || self.partitions == 1 {
            return refuse(format!("tables have 2 to {MAX_PARTITIONS} partitions, not {}", self.partitions));
        }
        if self.streams == 0 {
            return refuse("at least 1 stream is needed to load, not 0".to_owned());
        }
        Ok(())
    }

    /// The data in words.
    pub fn words(&self) -> String {
        data_words(self.scale, self.partitions, self.indexes)
    }
}

/// `order entry of scale 0.1 (100,000 customers, 142,979 orders), in 8 partitions, keys only`.
pub fn data_words(scale: f64, partitions: u32, indexes: Indexes) -> String {
    let Sizes { customers, orders, .. } = Sizes::of(scale);
    let (customers, orders) = (group_thousands(customers as f64), group_thousands(orders as f64));
    let mut words = format!("order entry of scale {scale} ({customers} customers, {orders} orders)");
    if partitions > 0 {
        words.push_str(&format!(", in {partitions} partitions"));
    }
    words.push_str(match indexes {
        Indexes::All => "",
        Indexes::Keys => ", keys only",
        Indexes::None => ", without indexes",
    });
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_acknowledged_is_read_as_it_was_written() {
        let acknowledged = Acknowledgements { orders: vec![7, 1_000_000], processed: vec![7, 7] };
        assert_eq!(Acknowledgements::from_text(&acknowledged.to_text()), Ok(acknowledged));
        assert_eq!(Acknowledgements::from_text(""), Ok(Acknowledgements::default()));
        assert_eq!(Acknowledgements::from_text("order 1\norder x\n"), Err((2, "order x".to_owned())));
        assert_eq!(Acknowledgements::from_text("sold 1"), Err((1, "sold 1".to_owned())));
    }
}
