//! What is sent for a statement.

use super::program::{Program, procedure_name};
use super::statements::{Statement, StatementWords};

impl Statement {
    /// Its text for a server.
    pub fn text(self, words: &impl StatementWords) -> String {
        match self.called() {
            Some(kind) => {
                let values = 1..=Program::of(kind).parameters().count();
                words.call(&procedure_name(kind), &values.map(|number| words.value(number)).collect::<Vec<_>>())
            }
            None => self.written(words, &|number| words.value(number), &|key| words.returning(key)),
        }
    }
}
