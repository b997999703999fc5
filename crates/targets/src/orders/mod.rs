//! Data of order entry, on whichever database: what [`Database`](crate::database::Database) is for the SLOB method.
//!
//! An [`OrdersDatabase`] is an address that was understood, and nothing is done before it is asked for something. Every command
//! finds it in `databases` of the program.

mod audit;
mod request;

use std::sync::atomic::AtomicBool;

use super::TargetError;
use super::database::{DropPlan, OpenDatabase, SetupPlan, Sheet};
use model::workload::orders::{OrderTransaction, Pauses, Reconnect};

pub use audit::{Acknowledgements, Audit, Audited, Auditor};
pub use request::{Indexes, MAX_PARTITIONS, OrdersRequest, OrdersSending, data_words, procedure_name};

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
