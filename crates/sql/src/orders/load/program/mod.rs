//! What a transaction does, as data: a program of few kinds of step. `perform` performs it statement by
//! statement, and [`procedure`](super::procedure) writes it as a procedure in the words of a server, so both do the same.

mod transactions;

use std::fmt::Write as _;
use std::mem;

use super::statements::{ANSWERS, Statement};
use model::workload::orders::{OrderTransaction, Sizes, names};
use model::workload::{MinimalStandard, Rng};
pub use targets::orders::procedure_name;

/// A whole number that a transaction keeps. Each is 0 until it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Local {
    /// A customer.
    Customer,
    /// An address.
    Address,
    /// A card.
    Card,
    /// The number on a card.
    CardNumber,
    /// A credit limit, in hundredths.
    Credit,
    /// Who looks after a customer.
    Manager,
    /// A customer's day of birth, in days from today.
    Born,
    /// When a card ends, in days from today.
    Expiry,
    /// The code of a card.
    SecurityCode,
    /// What decides whether something is done.
    Chance,
    /// How often products are looked at.
    Browses,
    /// How often something has been done.
    Counter,
    /// A product.
    Product,
    /// A category of products.
    Category,
    /// How many warehouses there are.
    Warehouses,
    /// A warehouse.
    Warehouse,
    /// A sales representative.
    SalesRep,
    /// A promotion.
    Promotion,
    /// What delivery costs.
    Delivery,
    /// An order.
    Order,
    /// Items that an order is to have.
    Wanted,
    /// A row of those that were found, from 1.
    Row,
    /// A price, in hundredths.
    Cents,
    /// Pieces in stock.
    Stock,
    /// A supplier.
    Supplier,
    /// The sum of an order, in hundredths.
    Total,
    /// A status of an order.
    Status,
    /// The number of an item in its order.
    Line,
    /// How many rows the last change changed.
    Changed,
    /// The order that was made and committed.
    Made,
    /// The order that was marked as processed and committed.
    Processed,
}

impl Local {
    /// Every one, in the order of their numbers.
    pub const ALL: [Self; 31] = [
        Self::Customer,
        Self::Address,
        Self::Card,
        Self::CardNumber,
        Self::Credit,
        Self::Manager,
        Self::Born,
        Self::Expiry,
        Self::SecurityCode,
        Self::Chance,
        Self::Browses,
        Self::Counter,
        Self::Product,
        Self::Category,
        Self::Warehouses,
        Self::Warehouse,
        Self::SalesRep,
        Self::Promotion,
        Self::Delivery,
        Self::Order,
        Self::Wanted,
        Self::Row,
        Self::Cents,
        Self::Stock,
        Self::Supplier,
        Self::Total,
        Self::Status,
        Self::Line,
        Self::Changed,
        Self::Made,
        Self::Processed,
    ];
}

/// Text that whoever asks for a transaction chooses, since a server has no lists of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    /// A first name.
    First,
    /// A last name.
    Last,
    /// The address of both for mail. They are chosen before it.
    Email,
    /// A first name in small letters.
    LowerFirst,
    /// A last name in small letters.
    LowerLast,
    /// The number of a house.
    House,
    /// A street.
    Street,
    /// A town.
    Town,
    /// A county.
    County,
    /// A country.
    Country,
    /// A post code.
    PostCode,
    /// A kind of card.
    CardType,
}

impl Text {
    /// Every one, in the order of their numbers.
    pub const ALL: [Self; 12] = [
        Self::First,
        Self::Last,
        Self::Email,
        Self::LowerFirst,
        Self::LowerLast,
        Self::House,
        Self::Street,
        Self::Town,
        Self::County,
        Self::Country,
        Self::PostCode,
        Self::CardType,
    ];
}

/// Where the rows of a query are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bank {
    /// Those of the last query.
    Rows,
    /// The products that a customer found last.
    Found,
    /// The items of an order: product and warehouse.
    Items,
}

impl Bank {
    /// Every one, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Rows, Self::Found, Self::Items];
    /// Columns that are kept, at most.
    pub const WIDTH: usize = 2;
}

/// A whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whole {
    /// This.
    Number(i64),
    /// What is kept there.
    Of(Local),
    /// How many rows are kept there.
    Rows(Bank),
}

/// A value of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// A whole number.
    Whole(Whole),
    /// This text, which has no quotes in it.
    Word(&'static str),
    /// Text that was chosen before the transaction began.
    Chosen(Text),
}

/// What something depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The first is larger.
    Exceeds(Whole, Whole),
    /// They are the same.
    Is(Whole, Whole),
}

/// One step of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Begins what is committed as one.
    Begin,
    /// Commits.
    Commit,
    /// Takes back what was done since the last commit, because it can no longer be done as asked, and ends the transaction.
    GiveUp,
    /// Pauses, as its user asked for.
    Pause,
    /// Draws a number of a range; its least one where the range is empty.
    Draw {
        /// Where it is kept.
        into: Local,
        /// The least number.
        least: i64,
        /// The largest number.
        most: Whole,
    },
    /// Keeps a number.
    Set(Local, Whole),
    /// Adds to a number.
    Add(Local, Whole),
    /// Executes a query and keeps its leading columns.
    Query(Statement, &'static [Value], Bank),
    /// Takes a number out of a row.
    Pick {
        /// Of whose rows.
        from: Bank,
        /// Which of them, from 1.
        row: Whole,
        /// Which of its columns, from 0.
        column: usize,
        /// Where it is kept. It is 0 where there is no such row, or nothing in it.
        into: Local,
    },
    /// Keeps these numbers as one more row.
    Keep(Bank, [Local; Bank::WIDTH]),
    /// Executes a change, and keeps in [`Local::Changed`] how many rows it changed.
    Change(Statement, &'static [Value]),
    /// Executes an insertion, and keeps the key of the new row.
    Insert(Statement, &'static [Value], Local),
    /// Does these steps where this is so.
    If(Condition, &'static [Self]),
    /// Does these steps so many times, which are counted from 1 in [`Local::Counter`]. None of them may do so in turn.
    Times(Whole, &'static [Self]),
    /// Does these steps.
    Do(&'static [Self]),
}

/// What a transaction does, and what has to be chosen before it begins.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Whole numbers that are known before: those of the data, and those chosen from ranges that are too large for the generator of
    /// its steps.
    pub wholes: &'static [Local],
    /// Texts that are chosen.
    pub texts: &'static [Text],
    /// What is done.
    pub steps: &'static [Step],
}

/// What a procedure is called with, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// The state at which the generator of its choices begins.
    Random,
    /// That of the lengths of its pauses.
    Lengths,
    /// The shortest pause where nothing is exponential, in microseconds.
    LeastPause,
    /// The longest pause where nothing is exponential, in microseconds.
    MostPause,
    /// The mean of what is exponential of a pause, in microseconds.
    MeanPause,
    /// A number.
    Whole(Local),
    /// A text.
    Text(Text),
}

impl Program {
    /// Parameters that any program has, at most.
    pub const MAX_PARAMETERS: usize = 5 + 2 + 10;

    /// What its procedure is called with.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter> {
        let pauses = [Parameter::Lengths, Parameter::LeastPause, Parameter::MostPause, Parameter::MeanPause];
        let pauses = pauses.into_iter().take(if self.pauses() { pauses.len() } else { 0 });
        let wholes = self.wholes.iter().map(|local| Parameter::Whole(*local));
        let texts = self.texts.iter().map(|text| Parameter::Text(*text));
        std::iter::once(Parameter::Random).chain(pauses).chain(wholes).chain(texts)
    }

    /// Whether there is anything between which one could pause.
    pub fn pauses(&self) -> bool {
        let mut pauses = false;
        self.each(&mut |step| pauses |= *step == Step::Pause);
        pauses
    }

    /// The statements that it may send, each once.
    pub fn statements(&self) -> Vec<Statement> {
        let mut statements = Vec::new();
        self.each(&mut |step| match step {
            Step::Query(statement, ..) | Step::Change(statement, _) | Step::Insert(statement, ..)
                if !statements.contains(statement) =>
            {
                statements.push(*statement);
            }
            _ => {}
        });
        statements
    }

    /// Shows each step, from the first.
    pub fn each(&self, show: &mut impl FnMut(&'static Step)) {
        fn among(steps: &'static [Step], show: &mut impl FnMut(&'static Step)) {
            for step in steps {
                show(step);
                if let Step::If(_, steps) | Step::Times(_, steps) | Step::Do(steps) = step {
                    among(steps, show);
                }
            }
        }
        among(self.steps, show);
    }
}

/// What a procedure answers, in this order.
pub const ANSWER: [&str; ANSWERS] =
    ["made", "processed", "statements", "rows_read", "rows_changed", "commits", "rollbacks", "paused_us"];

// What is chosen before a transaction begins, by whoever asks for it.

/// Words of addresses.
const STREETS: [&str; 8] = ["High", "Station", "Church", "Mill", "Park", "Victoria", "Green", "Bridge"];
const TOWNS: [&str; 8] = ["Ashford", "Burnley", "Carlisle", "Dover", "Exeter", "Falmouth", "Guildford", "Hereford"];
const COUNTIES: [&str; 6] = ["Devon", "Essex", "Kent", "Norfolk", "Suffolk", "Surrey"];
const COUNTRIES: [&str; 5] = ["England", "France", "Germany", "Spain", "Sweden"];
const CARDS: [&str; 3] = ["Visa (Credit)", "Visa (Debit)", "MasterCard"];

/// The choices of one transaction, and room for those of the next.
#[derive(Debug, Clone)]
pub struct Choices {
    /// Draws what is chosen while it goes on.
    pub random: MinimalStandard,
    /// Draws the lengths of pauses apart, so that choices are the same however long is paused.
    pub lengths: MinimalStandard,
    locals: [i64; Local::ALL.len()],
    texts: [String; Text::ALL.len()],
}

impl Default for Choices {
    fn default() -> Self {
        let random = MinimalStandard::drawn(&mut Rng::new(0, 0));
        Self { random, lengths: random, locals: [0; Local::ALL.len()], texts: Default::default() }
    }
}

impl Choices {
    /// Chooses what a transaction needs, all of it from its seed.
    pub fn draw(&mut self, transaction: OrderTransaction, sizes: &Sizes) {
        let program = Program::of(transaction.kind);
        let mut rng = Rng::new(transaction.seed, 0);
        self.random = MinimalStandard::drawn(&mut rng);
        self.lengths = MinimalStandard::drawn(&mut rng);
        for local in program.wholes {
            self.locals[*local as usize] = whole(*local, &mut rng, sizes);
        }
        for text in program.texts {
            let mut chosen = mem::take(&mut self.texts[*text as usize]);
            chosen.clear();
            self.choose(*text, &mut rng, &mut chosen);
            self.texts[*text as usize] = chosen;
        }
    }

    /// A whole number that was chosen.
    pub fn whole(&self, local: Local) -> i64 {
        self.locals[local as usize]
    }

    /// A text that was chosen.
    pub fn text(&self, text: Text) -> &str {
        &self.texts[text as usize]
    }

    fn choose(&self, text: Text, rng: &mut Rng, into: &mut String) {
        let any = |of: &[&'static str], rng: &mut Rng| of[rng.below(of.len() as u64) as usize];
        match text {
            Text::First | Text::LowerFirst => into.push_str(names::first(rng)),
            Text::Last | Text::LowerLast => into.push_str(names::last(rng)),
            Text::Email => {
                let parts = [self.text(Text::First), ".", self.text(Text::Last), "@example.com"];
                parts.into_iter().for_each(|part| into.push_str(part));
            }
            // Writing to a string cannot fail.
            Text::House => drop(write!(into, "{}", 1 + rng.below(200))),
            Text::Street => [any(&STREETS, rng), " Street"].into_iter().for_each(|part| into.push_str(part)),
            Text::Town => into.push_str(any(&TOWNS, rng)),
            Text::County => into.push_str(any(&COUNTIES, rng)),
            Text::Country => into.push_str(any(&COUNTRIES, rng)),
            Text::PostCode => drop(write!(into, "{:05}", rng.below(100_000))),
            Text::CardType => into.push_str(any(&CARDS, rng)),
        }
        if matches!(text, Text::Email | Text::LowerFirst | Text::LowerLast) {
            into.make_ascii_lowercase();
        }
    }
}

fn whole(local: Local, rng: &mut Rng, sizes: &Sizes) -> i64 {
    let mut between = |least: u64, most: u64| (least + rng.below(most - least + 1)) as i64;
    match local {
        // One that was there when the data were made.
        Local::Customer => between(1, sizes.customers),
        Local::Warehouses => sizes.warehouses as i64,
        Local::CardNumber => between(1_111_111_111, 9_999_999_999),
        Local::Credit => 100 * between(100, 5_000),
        other => unreachable!("{other:?} is drawn by a step"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::workload::orders::TransactionKind;

    #[test]
    fn choices_follow_from_the_seed_and_not_from_what_was_chosen_before() {
        let sizes = Sizes::of(0.01);
        let mut used = Choices::default();
        for kind in TransactionKind::ALL {
            for seed in 0..20 {
                let (transaction, mut fresh) = (OrderTransaction { kind, seed }, Choices::default());
                used.draw(transaction, &sizes);
                fresh.draw(transaction, &sizes);
                assert_eq!((used.random, used.lengths), (fresh.random, fresh.lengths));
                assert_ne!(used.random, used.lengths);
                let program = Program::of(kind);
                assert!(program.wholes.iter().all(|local| used.whole(*local) == fresh.whole(*local)));
                for text in program.texts {
                    assert_eq!(used.text(*text), fresh.text(*text));
                    assert!(!used.text(*text).is_empty(), "{text:?}");
                }
                assert!(program.parameters().count() <= Program::MAX_PARAMETERS);
            }
        }
    }

    #[test]
    fn mail_is_addressed_by_both_names() {
        let mut choices = Choices::default();
        let transaction = OrderTransaction { kind: TransactionKind::CustomerRegistration, seed: 3 };
        choices.draw(transaction, &Sizes::of(1.0));
        let names = format!("{}.{}@example.com", choices.text(Text::First), choices.text(Text::Last));
        assert_eq!(choices.text(Text::Email), names.to_lowercase());
        assert!((10_000..=500_000).contains(&choices.whole(Local::Credit)));
    }
}
