//! What data of order entry are wanted.

use serde::{Deserialize, Serialize};

use crate::TargetError;
use crate::database::Replace;
use model::units::group_thousands;
use model::workload::orders::{MAX_SCALE, MIN_SCALE, Sizes, TransactionKind};

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

/// Bare name of the procedure that does a transaction of this kind.
pub fn procedure_name(kind: TransactionKind) -> String {
    format!("plimsoll_{}", kind.name().replace(' ', "_"))
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
