//! The load of order entry: what each transaction does, once for all servers.
//!
//! A server's own room gives sessions that execute [`Statement`]s ([`OrdersSession`]) and the words in which it says them
//! ([`Words`]). Which statements a transaction sends, with which values and in which order, is here.

mod customers;
mod ledger;
mod orders;
mod rest;
mod rules;
mod session;
mod statements;
mod steps;
#[cfg(test)]
mod tests;

pub use ledger::Ledger;
pub use rest::{Alarm, Resting};
pub use rules::{Acknowledged, Rules};
pub use session::{Argument, OrdersServers, OrdersSession, OrdersSetting, RefusalKind, Rows};
pub use statements::{Gives, Statement, Words};

use self::steps::Steps;
use crate::measure::{RefusalClass, Tally};
use crate::targets::sql::SqlError as _;
use crate::workload::orders::{OrderTransaction, TransactionKind};

/// What came of a transaction that did not end the load.
#[derive(Debug)]
pub(in crate::targets::sql) struct Performed<E> {
    /// What it came to, with all attempts.
    pub(in crate::targets::sql) tally: Tally,
    /// What the server acknowledged, or why it did not do it.
    pub(in crate::targets::sql) result: Result<Acknowledged, E>,
}

/// Does a transaction, and does it again where an application would. `rows` is room for answers.
///
/// # Errors
/// When the load cannot go on: the connection, the data or the right to them are gone.
pub(in crate::targets::sql) async fn perform<S: OrdersSession>(
    session: &S,
    transaction: OrderTransaction,
    rules: &Rules,
    rows: &mut Rows,
) -> Result<Performed<S::Error>, S::Error> {
    let mut tally = Tally::default();
    for attempt in 0.. {
        let mut steps = Steps::new(session, rules, transaction.seed, attempt == 0, &mut tally, rows);
        let done = once(&mut steps, transaction.kind).await;
        steps.tally.round_trips += session.take_preparing();
        let (acknowledged, is_open) = (steps.acknowledged, steps.is_open());
        let Err(error) = done else { return Ok(Performed { tally, result: Ok(acknowledged) }) };
        if error.ends_the_load() {
            return Err(error);
        }
        if is_open {
            tally.round_trips += 1;
            session.roll_back().await?;
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

async fn once<S: OrdersSession>(steps: &mut Steps<'_, S>, kind: TransactionKind) -> Result<(), S::Error> {
    match kind {
        TransactionKind::CustomerRegistration => steps.register_customer().await,
        TransactionKind::UpdateCustomerDetails => steps.update_customer_details().await,
        TransactionKind::BrowseProducts => steps.browse_products().await,
        TransactionKind::OrderProducts => steps.order_products().await,
        TransactionKind::ProcessOrders => steps.process_orders().await,
        TransactionKind::BrowseOrders => steps.browse_orders().await,
        TransactionKind::SalesRepQuery => steps.ask_for_sales_rep().await,
        TransactionKind::WarehouseQuery => steps.ask_for_warehouse(Statement::Warehouse).await,
        TransactionKind::WarehouseActivityQuery => steps.ask_for_warehouse(Statement::WarehouseActivity).await,
    }
}

/// The statements that a kind of transaction sends.
pub(in crate::targets::sql) fn statements_of(kind: TransactionKind) -> &'static [Statement] {
    use Statement::*;
    match kind {
        TransactionKind::CustomerRegistration => &[AddCustomer, AddAddress, AddCard, SetPreferred, AddLogon, Customer],
        TransactionKind::UpdateCustomerDetails => &[CustomersByName, AddAddress, SetAddress],
        TransactionKind::BrowseProducts => &[Customer, AddLogon, Product],
        TransactionKind::OrderProducts => {
            &[Customer, Addresses, Cards, AddLogon, Category, AddOrder, Stock, AddItem, SetTotal, TakeStock]
        }
        TransactionKind::ProcessOrders => &[WaitingOrders, Process],
        TransactionKind::BrowseOrders => &[Customer, Addresses, AddLogon, Orders, Items, AddPiece, AddToTotal],
        TransactionKind::SalesRepQuery => &[SalesRep],
        TransactionKind::WarehouseQuery => &[Warehouse],
        TransactionKind::WarehouseActivityQuery => &[WarehouseActivity],
    }
}
