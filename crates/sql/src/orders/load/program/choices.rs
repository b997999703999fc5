//! What is chosen before a transaction begins, by whoever asks for it.

use std::fmt::Write as _;
use std::mem;

use super::{Local, Program, Text};
use model::workload::orders::{OrderTransaction, Sizes, names};
use model::workload::{MinimalStandard, Rng};

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
