//! Order entry: customers who register, browse and order, and staff who process orders and ask for figures.
//!
//! Tables, numbers of rows, kinds of transaction and their weights are those of Swingbench's Order Entry (SOE) schema,
//! version 2, as its documentation and its results describe them; statements and code are our own.
//!
//! - [`OrdersShape`]: which transactions each user does, and how long a user thinks.
//! - [`Sizes`]: how many rows each table has at a scale.
//! - [`tables`]: their columns, keys and indexes.
//! - [`rows`]: what set-up puts into them.
//! - [`names`]: what people are called.

pub mod names;
pub mod rows;
pub mod tables;

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::workload::mix::Split;
use crate::workload::{Choice, Drawn, Operation, Rng, Shape, Stream};

pub use tables::Table;

crate::text::as_text!(Mix, Pauses, Reconnect);

/// Smallest scale: about a thousand customers.
pub const MIN_SCALE: f64 = 0.001;
/// Largest scale: keys of customers and orders then still have twelve digits.
pub const MAX_SCALE: f64 = 10_000.0;

/// Products, whatever the scale; their keys are 1 to this.
pub const PRODUCTS: u32 = 1_000;
/// Warehouses from [`FULL_STOCK_SCALE`] on.
pub const WAREHOUSES: u32 = 1_000;
/// The scale below which there are fewer warehouses, and so fewer stocks, which would be nearly all rows otherwise.
pub const FULL_STOCK_SCALE: f64 = 0.1;
/// Categories of products; their keys are 1 to this.
pub const CATEGORIES: u32 = 199;
/// Sales representatives; their keys are 1 to this.
pub const SALES_REPS: u32 = 1_000;

/// Rows of each table that differs with the scale. Keys are 1 to the number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Customers.
    pub customers: u64,
    /// Addresses: one of each customer, and a second one of half of them.
    pub addresses: u64,
    /// Cards, shared out as addresses are.
    pub cards: u64,
    /// Orders. Each has 1 to 10 items.
    pub orders: u64,
    /// Logons.
    pub logons: u64,
    /// Warehouses. Data that do not say how many have as many as the largest.
    #[serde(default = "all_warehouses")]
    pub warehouses: u64,
}

fn all_warehouses() -> u64 {
    u64::from(WAREHOUSES)
}

impl Sizes {
    /// At this scale, which is between [`MIN_SCALE`] and [`MAX_SCALE`]. Scale 1 is Swingbench's: a million customers.
    pub fn of(scale: f64) -> Self {
        let of = |rows: f64| (rows * scale).round().max(1.0) as u64;
        Self {
            customers: of(1_000_000.0),
            addresses: of(1_500_000.0),
            cards: of(1_500_000.0),
            orders: of(1_429_790.0),
            logons: of(2_382_984.0),
            warehouses: of(f64::from(WAREHOUSES) / FULL_STOCK_SCALE).min(all_warehouses()),
        }
    }

    /// Whether these are data of this scale. Those of versions before had all warehouses at each.
    pub fn are_of(&self, scale: f64) -> bool {
        let now = Self::of(scale);
        *self == now || *self == Self { warehouses: all_warehouses(), ..now }
    }
}

/// How long a connection serves its user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reconnect {
    /// As long as the load goes on.
    #[default]
    Never,
    /// So many transactions; then it is closed, and the next transaction makes another.
    After(NonZeroU32),
}

/// The golden ratio as a fraction of 2^32: its multiples lie evenly, however many are taken.
const GOLDEN: u32 = 0x9e37_79b9;

impl Reconnect {
    /// For how many transactions a connection serves.
    pub fn lasts(self) -> u64 {
        match self {
            Self::Never => u64::MAX,
            Self::After(transactions) => u64::from(transactions.get()),
        }
    }

    /// For how many the first connection of user number `user` serves. They differ, so that users who began together do not make
    /// their connections anew together.
    pub fn first_lasts(self, user: u32) -> u64 {
        match self {
            Self::Never => u64::MAX,
            Self::After(transactions) => {
                1 + ((u64::from(user.wrapping_mul(GOLDEN)) * u64::from(transactions.get())) >> 32)
            }
        }
    }

    /// Whether a connection serves one transaction only, so that it is not worth while to prepare anything in it.
    pub fn is_each(self) -> bool {
        self.lasts() == 1
    }
}

/// As it is read: `never`, `every` or a number.
impl fmt::Display for Reconnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::After(transactions) if transactions.get() == 1 => f.write_str("every"),
            Self::After(transactions) => transactions.fmt(f),
        }
    }
}

/// Text says nothing about how long connections last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a connection is made anew for `every` transaction, after a number of them from 1 to {max}, or `never`", max = u32::MAX)]
pub struct ReconnectError;

impl FromStr for Reconnect {
    type Err = ReconnectError;

    fn from_str(text: &str) -> Result<Self, ReconnectError> {
        match text.trim() {
            "never" => Ok(Self::Never),
            "every" => Ok(Self::After(NonZeroU32::MIN)),
            number => number.parse().map(Self::After).map_err(|_| ReconnectError),
        }
    }
}

/// The kinds of transaction of order entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TransactionKind {
    /// Makes a customer with an address and a card, and reads the customer back.
    CustomerRegistration,
    /// Finds customers by name and gives the first a new address.
    UpdateCustomerDetails,
    /// Looks at products and their stock.
    BrowseProducts,
    /// Looks at products and orders some of them.
    OrderProducts,
    /// Takes an order of a warehouse that waits, and marks it as processed.
    ProcessOrders,
    /// Looks at a customer's orders and adds one piece to one of them.
    BrowseOrders,
    /// The largest orders of a sales representative.
    SalesRepQuery,
    /// Orders of a warehouse, summed by how they were made.
    WarehouseQuery,
    /// Orders of a warehouse in its last hour, in five-minute parts.
    WarehouseActivityQuery,
}

impl TransactionKind {
    /// Every kind, in the order of [`index`](Self::index).
    pub const ALL: [Self; 9] = [
        Self::CustomerRegistration,
        Self::UpdateCustomerDetails,
        Self::BrowseProducts,
        Self::OrderProducts,
        Self::ProcessOrders,
        Self::BrowseOrders,
        Self::SalesRepQuery,
        Self::WarehouseQuery,
        Self::WarehouseActivityQuery,
    ];

    /// The words for this kind in tables and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CustomerRegistration => "customer registration",
            Self::UpdateCustomerDetails => "update customer details",
            Self::BrowseProducts => "browse products",
            Self::OrderProducts => "order products",
            Self::ProcessOrders => "process orders",
            Self::BrowseOrders => "browse orders",
            Self::SalesRepQuery => "sales rep query",
            Self::WarehouseQuery => "warehouse query",
            Self::WarehouseActivityQuery => "warehouse activity query",
        }
    }

    /// Its abbreviation, as people know it and as `--mix` takes it.
    pub const fn short(self) -> &'static str {
        match self {
            Self::CustomerRegistration => "NCR",
            Self::UpdateCustomerDetails => "UCD",
            Self::BrowseProducts => "BP",
            Self::OrderProducts => "OP",
            Self::ProcessOrders => "PO",
            Self::BrowseOrders => "BO",
            Self::SalesRepQuery => "SQ",
            Self::WarehouseQuery => "WQ",
            Self::WarehouseActivityQuery => "WA",
        }
    }

    /// The place of this kind in [`ALL`](Self::ALL), for arrays with one entry for each kind.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether it may change anything.
    pub const fn changes_data(self) -> bool {
        !matches!(self, Self::SalesRepQuery | Self::WarehouseQuery | Self::WarehouseActivityQuery)
    }
}

/// One transaction to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderTransaction {
    /// Which.
    pub kind: TransactionKind,
    /// Seed of every choice inside it: who orders what, and how long is paused between its steps.
    pub seed: u64,
}

impl Operation for OrderTransaction {
    const KINDS: &'static [&'static str] = &{
        let mut names = [""; TransactionKind::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = TransactionKind::ALL[at].name();
            at += 1;
        }
        names
    };

    fn kind_index(&self) -> usize {
        self.kind.index()
    }
}

/// How long somebody pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pauses {
    /// Not at all.
    #[default]
    None,
    /// Always as long.
    Fixed {
        /// How long, in nanoseconds.
        ns: u64,
    },
    /// Each length between two bounds equally likely.
    Uniform {
        /// The shortest, in nanoseconds.
        min_ns: u64,
        /// The longest, not below the shortest.
        max_ns: u64,
    },
    /// Exponentially distributed, as between the calls of independent people.
    Exponential {
        /// The mean, in nanoseconds.
        mean_ns: u64,
    },
}

impl Pauses {
    /// The next pause, in nanoseconds.
    pub fn draw(self, rng: &mut Rng) -> u64 {
        match self {
            Self::None => 0,
            Self::Fixed { ns } => ns,
            Self::Uniform { min_ns, max_ns } => min_ns + rng.below(max_ns.saturating_sub(min_ns).saturating_add(1)),
            // A draw is below 1, so its distance from 1 is never 0.
            Self::Exponential { mean_ns } => (-(1.0 - rng.unit_f64()).ln() * mean_ns as f64) as u64,
        }
    }

    /// The pause at this place of its distribution, above 0 and below 1, in nanoseconds: as far as a server can draw it too.
    pub fn at(self, unit: f64) -> u64 {
        let PauseBounds { least_ns, most_ns, mean_ns } = self.bounds();
        (least_ns as f64 + (most_ns - least_ns) as f64 * unit - mean_ns as f64 * unit.ln()) as u64
    }

    /// The figures of which [`at`](Self::at) is made: two bounds, and a mean of what exceeds them.
    pub fn bounds(self) -> PauseBounds {
        let (least_ns, most_ns, mean_ns) = match self {
            Self::None => (0, 0, 0),
            Self::Fixed { ns } => (ns, ns, 0),
            Self::Uniform { min_ns, max_ns } => (min_ns, max_ns, 0),
            Self::Exponential { mean_ns } => (0, 0, mean_ns),
        };
        PauseBounds { least_ns, most_ns, mean_ns }
    }

    /// Whether there is ever a pause.
    pub fn is_none(self) -> bool {
        matches!(
            self,
            Self::None | Self::Fixed { ns: 0 } | Self::Uniform { max_ns: 0, .. } | Self::Exponential { mean_ns: 0 }
        )
    }
}

/// What a pause is drawn by, in nanoseconds: equally likely between two bounds, and exponential beyond them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseBounds {
    /// The shortest where nothing is exponential.
    pub least_ns: u64,
    /// The longest where nothing is exponential.
    pub most_ns: u64,
    /// Mean of the exponential part.
    pub mean_ns: u64,
}

/// What users of order entry do: the facts that decide their transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrdersShape {
    /// How often each kind is drawn.
    pub mix: Mix,
    /// Pauses between two transactions of a user.
    pub between: Pauses,
}

/// The endless transactions of one user.
#[derive(Clone, Debug)]
pub struct OrdersSession {
    kinds: Split,
    seeds: Rng,
    between: Pauses,
    pauses: Rng,
}

impl Shape for OrdersShape {
    type Operation = OrderTransaction;
    type Stream = OrdersSession;

    /// Each user has a stream of its own.
    fn stream_of(&self, session: u32) -> u32 {
        session
    }

    fn stream(&self, seed: u64, stream: u32) -> OrdersSession {
        OrdersSession {
            kinds: Split::new(self.mix.weights(), Choice::Transaction.rng(seed, stream)),
            seeds: Choice::TransactionSeed.rng(seed, stream),
            between: self.between,
            pauses: Choice::Think.rng(seed, stream),
        }
    }
}

impl Stream for OrdersSession {
    type Operation = OrderTransaction;

    fn draw(&mut self) -> Drawn<OrderTransaction> {
        let kind = TransactionKind::ALL[self.kinds.draw()];
        let operation = OrderTransaction { kind, seed: self.seeds.next_u64() };
        Drawn { operation, think_ns: self.between.draw(&mut self.pauses) }
    }
}

/// Weights that Swingbench has by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Those of version 2.6.
    V26,
    /// Those of version 2.7 and later, which leave the three queries out.
    V27,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 2] = [Self::V26, Self::V27];

    /// Its word in `--mix`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V26 => "2.6",
            Self::V27 => "2.7",
        }
    }

    /// Its weights.
    pub const fn mix(self) -> Mix {
        Mix(match self {
            Self::V26 => [15, 10, 90, 40, 5, 15, 2, 1, 1],
            Self::V27 => [15, 10, 50, 40, 5, 5, 0, 0, 0],
        })
    }
}

/// The weight of each kind of transaction, by its [`index`](TransactionKind::index): how often it is drawn beside the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix([u32; TransactionKind::ALL.len()]);

/// Why text is no mix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixError(String);

impl fmt::Display for MixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MixError {}

/// Largest weight, so that sums stay small.
const MAX_WEIGHT: u32 = 1_000_000;

impl Mix {
    /// The weight of a kind.
    pub fn weight(&self, kind: TransactionKind) -> u32 {
        self.0[kind.index()]
    }

    /// Weights by kind, in their order.
    fn weights(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        self.0.iter().copied().map(f64::from)
    }

    /// Whether any transaction of it changes data.
    pub fn changes_data(&self) -> bool {
        TransactionKind::ALL.into_iter().any(|kind| kind.changes_data() && self.weight(kind) > 0)
    }
}

impl fmt::Display for Mix {
    /// As it can be written in `--mix`: kinds of weight 0 are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let there = TransactionKind::ALL.into_iter().filter(|kind| self.weight(*kind) > 0);
        for (place, kind) in there.enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{}={}", kind.short(), self.weight(kind))?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Mix {
    type Err = MixError;

    /// A preset's name, or `NCR=15,UCD=10,…`: what is not named is left out.
    fn from_str(text: &str) -> Result<Self, MixError> {
        if let Some(preset) = Preset::ALL.into_iter().find(|preset| preset.name() == text.trim()) {
            return Ok(preset.mix());
        }
        let mut weights = [None; TransactionKind::ALL.len()];
        for part in text.split(',') {
            let part = part.trim();
            let (name, weight) = part
                .split_once('=')
                .ok_or_else(|| MixError(format!("`{part}` is neither NAME=WEIGHT nor a preset (2.6, 2.7)")))?;
            let (name, weight) = (name.trim(), weight.trim());
            let kind = TransactionKind::ALL.into_iter().find(|kind| kind.short().eq_ignore_ascii_case(name));
            let kind = kind.ok_or_else(|| {
                let known: Vec<&str> = TransactionKind::ALL.into_iter().map(TransactionKind::short).collect();
                MixError(format!("there is no transaction `{name}`; there are {}", known.join(", ")))
            })?;
            let parsed = weight.parse().ok().filter(|weight| *weight <= MAX_WEIGHT);
            let parsed = parsed.ok_or_else(|| {
                MixError(format!(
                    "`{weight}` is not a weight for {}: give a whole number up to {MAX_WEIGHT}",
                    kind.short()
                ))
            })?;
            if weights[kind.index()].replace(parsed).is_some() {
                return Err(MixError(format!("the weight of {} is given twice", kind.short())));
            }
        }
        let weights = weights.map(|weight| weight.unwrap_or(0));
        if weights.iter().all(|weight| *weight == 0) {
            return Err(MixError("every weight is 0: nothing would be done".to_owned()));
        }
        Ok(Self(weights))
    }
}

#[cfg(test)]
mod tests {
    use super::{Preset, *};
    use crate::workload::MinimalStandard;

    #[test]
    fn rows_follow_the_scale() {
        assert_eq!(Sizes::of(1.0).orders, 1_429_790);
        assert_eq!((Sizes::of(0.02).customers, Sizes::of(0.02).logons), (20_000, 47_660));
        assert_eq!(Sizes::of(MIN_SCALE).customers, 1_000);
        assert!(Sizes::of(MAX_SCALE).logons < 1_000_000_000_000);
    }

    #[test]
    fn warehouses_are_fewer_below_a_tenth_and_never_more_than_a_thousand() {
        let at = |scale: f64| Sizes::of(scale).warehouses;
        assert_eq!([at(MIN_SCALE), at(0.02), at(0.099_9)], [10, 200, 999]);
        assert_eq!([at(0.1), at(1.0), at(MAX_SCALE)], [1_000; 3]);
    }

    #[test]
    fn data_that_do_not_say_how_many_warehouses_they_have_are_those_of_versions_before() {
        let text = r#"{"customers":1000,"addresses":1500,"cards":1500,"orders":1430,"logons":2383}"#;
        let before: Sizes = serde_json::from_str(text).unwrap();
        assert_eq!(before.warehouses, 1_000);
        assert!(before.are_of(0.001) && Sizes::of(0.001).are_of(0.001) && !before.are_of(0.002));
        assert!(!Sizes { warehouses: 20, ..before }.are_of(0.001));
    }

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        for (text, lasts) in [("never", u64::MAX), ("every", 1), ("100", 100)] {
            let read: Reconnect = text.parse().unwrap();
            assert_eq!((read.lasts(), read.to_string().as_str()), (lasts, text));
        }
        assert_eq!("1".parse::<Reconnect>().unwrap().to_string(), "every");
        for text in ["", "0", "-1", "each", "1.5", "4294967296"] {
            assert_eq!(text.parse::<Reconnect>(), Err(ReconnectError), "{text}");
        }
    }

    #[test]
    fn first_connections_end_one_after_the_other() {
        let hundred: Reconnect = "100".parse().unwrap();
        let mut ends: Vec<u64> = (0..20).map(|user| hundred.first_lasts(user)).collect();
        ends.sort_unstable();
        assert!(ends[0] >= 1 && ends[19] <= 100, "{ends:?}");
        assert!(ends.windows(2).all(|pair| (2..=10).contains(&(pair[1] - pair[0]))), "{ends:?}");
        let every: Reconnect = "every".parse().unwrap();
        assert!((0..1_000).all(|user| every.first_lasts(user) == 1));
    }

    #[test]
    fn each_kind_stands_in_the_list_at_its_own_index() {
        for (place, kind) in TransactionKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), place);
            assert_eq!(OrderTransaction::KINDS[place], kind.name());
        }
    }

    #[test]
    fn kinds_are_drawn_by_their_weights_and_the_same_for_the_same_seed() {
        let shape = OrdersShape { mix: Preset::V26.mix(), between: Pauses::None };
        let mut counts = [0_u32; TransactionKind::ALL.len()];
        let (mut stream, mut again) = (shape.stream(7, 3), shape.stream(7, 3));
        for _ in 0..179_000 {
            let drawn = stream.draw();
            assert_eq!(drawn, again.draw());
            counts[drawn.operation.kind.index()] += 1;
        }
        for kind in TransactionKind::ALL {
            let wanted = f64::from(shape.mix.weight(kind)) * 1_000.0;
            let drawn = f64::from(counts[kind.index()]);
            assert!((drawn - wanted).abs() < 5.0 * wanted.sqrt(), "{kind:?}: {drawn} of {wanted}");
        }
    }

    #[test]
    fn a_kind_of_weight_zero_is_never_drawn() {
        let shape = OrdersShape { mix: "WA=1,NCR=2".parse().unwrap(), between: Pauses::None };
        let mut stream = shape.stream(1, 0);
        for _ in 0..10_000 {
            let kind = stream.draw().operation.kind;
            assert!(matches!(kind, TransactionKind::CustomerRegistration | TransactionKind::WarehouseActivityQuery));
        }
    }

    #[test]
    fn pauses_have_the_mean_that_was_asked_for() {
        let mut rng = Rng::new(1, 2);
        let mut lengths = MinimalStandard::drawn(&mut rng);
        let mut at = |pauses: Pauses| (0..100_000).map(|_| pauses.at(lengths.unit_f64()) as f64).sum::<f64>() / 1e5;
        assert_eq!((at(Pauses::None), at(Pauses::Fixed { ns: 500 })), (0.0, 500.0));
        assert!((at(Pauses::Uniform { min_ns: 1_000, max_ns: 3_000 }) / 2_000.0 - 1.0).abs() < 0.01);
        assert!((at(Pauses::Exponential { mean_ns: 1_000_000 }) / 1e6 - 1.0).abs() < 0.02);
        let mut mean = |pauses: Pauses| (0..100_000).map(|_| pauses.draw(&mut rng) as f64).sum::<f64>() / 1e5;
        assert_eq!(mean(Pauses::Fixed { ns: 500 }), 500.0);
        assert!((mean(Pauses::Uniform { min_ns: 1_000, max_ns: 3_000 }) / 2_000.0 - 1.0).abs() < 0.01);
        assert!((mean(Pauses::Exponential { mean_ns: 1_000_000 }) / 1e6 - 1.0).abs() < 0.02);
    }
}

#[cfg(test)]
mod mix_tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read_again() {
        for preset in Preset::ALL {
            assert_eq!(preset.mix().to_string().parse(), Ok(preset.mix()));
            assert_eq!(preset.name().parse(), Ok(preset.mix()));
        }
        let mix: Mix = "op=3, NCR=1".parse().unwrap();
        assert_eq!(mix.to_string(), "NCR=1,OP=3");
    }

    #[test]
    fn what_is_no_mix_is_refused_with_its_reason() {
        let why = |text: &str| text.parse::<Mix>().unwrap_err().to_string();
        assert_eq!(why("NCR"), "`NCR` is neither NAME=WEIGHT nor a preset (2.6, 2.7)");
        assert!(why("NEW=3").starts_with("there is no transaction `NEW`; there are NCR, UCD"));
        assert!(why("NCR=-1").starts_with("`-1` is not a weight for NCR"));
        assert_eq!(why("NCR=1,ncr=2"), "the weight of NCR is given twice");
        assert_eq!(why("NCR=0"), "every weight is 0: nothing would be done");
        assert!(why("").contains("neither"));
    }
}
