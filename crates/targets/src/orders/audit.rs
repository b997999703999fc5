//! What an audit of order entry is asked and answers.

use std::sync::atomic::AtomicBool;

use serde::Serialize;

use crate::TargetError;

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
