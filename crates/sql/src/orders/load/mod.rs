//! The load of order entry: what each transaction does, once for all servers.
//!
//! A server's own folder gives sessions that execute [`Statement`]s ([`OrdersSession`]) and the words in which it says them
//! ([`SqlText`]). Which statements a transaction sends, with which values and in which order, is its [`program`]. It is performed
//! statement by statement, or written as a procedure ([`procedure`]) in the words of a server and called.

mod ledger;
mod perform;
pub mod procedure;
pub mod program;
mod rest;
mod rules;
mod session;
mod statements;
#[cfg(test)]
mod tests;

pub use ledger::Ledger;
pub use perform::Room;
pub use program::Program;
pub(crate) use rest::Alarm;
pub use rules::{Acknowledged, Rules};
pub use session::{Argument, End, OrdersSession, OrdersSetting, Rows};
pub use statements::{ANSWERS, Gives, Statement};

use self::perform::Attempt;
use self::program::procedure_name;
use crate::{ServerError, SqlText};
use measure::{RefusalClass, Tally};
use model::workload::orders::{OrderTransaction, Pauses, TransactionKind};
use targets::orders::OrdersSending;

/// What came of a transaction that did not end the load.
#[derive(Debug)]
pub(crate) struct Performed {
    /// What it came to, with all attempts.
    pub(crate) tally: Tally,
    /// What the server acknowledged, or why it did not do it.
    pub(crate) result: Result<Acknowledged, ServerError>,
}

/// Does a transaction, and does it again where an application would. `alarm` ends its pauses.
///
/// # Errors
/// When the load cannot go on: the connection, the data or the right to them are gone.
pub(crate) async fn perform<S: OrdersSession>(
    session: &S,
    transaction: OrderTransaction,
    rules: &Rules,
    room: &mut Room,
    alarm: &Alarm,
) -> Result<Performed, ServerError> {
    let mut tally = Tally::default();
    room.choose(transaction, rules);
    for attempt in 0.. {
        // Nobody thinks again about what is only tried again.
        let pauses = if attempt == 0 { rules.inside } else { Pauses::None };
        let mut doing = Attempt::new(session, alarm, pauses, &mut tally, room);
        let done = match rules.sending {
            OrdersSending::Statement => doing.perform(Program::of(transaction.kind)).await,
            OrdersSending::Procedure => doing.call(transaction).await,
        };
        let (acknowledged, is_open) = (doing.acknowledged(), doing.is_open());
        tally.round_trips += session.take_preparing();
        let Err(error) = done else { return Ok(Performed { tally, result: Ok(acknowledged) }) };
        if error.ends_the_load() {
            return Err(error);
        }
        if is_open {
            tally.round_trips += 1;
            session.end(End::RollBack).await?;
        }
        let class = error.refusal().unwrap_or(RefusalClass::Other);
        if !class.is_worth_another_attempt() || attempt >= rules.max_retries {
            tally.failures[class as usize] += 1;
            return Ok(Performed { tally, result: Err(error) });
        }
        tally.retries[class as usize] += 1;
    }
    unreachable!("attempts are counted")
}

/// The statements that a kind of transaction sends.
pub(crate) fn statements_of(kind: TransactionKind, sending: OrdersSending) -> Vec<Statement> {
    match sending {
        OrdersSending::Statement => Program::of(kind).statements(),
        OrdersSending::Procedure => vec![Statement::call(kind)],
    }
}

impl Statement {
    /// What is sent for it, for data in a namespace.
    pub fn text<W: SqlText>(self, namespace: &str) -> String {
        match self.called() {
            Some(kind) => {
                let values = 1..=Program::of(kind).parameters().count();
                W::call(namespace, &procedure_name(kind), &values.map(W::value).collect::<Vec<_>>())
            }
            None => self.written::<W>(namespace, &W::value, &W::returning),
        }
    }
}
