//! Data of order entry, on whichever database: what [`Database`](crate::targets::database::Database) is for the SLOB method.
//!
//! An [`OrdersDatabase`] is an address that was understood, and nothing is done before it is asked for something. Every command
//! finds it by [`at`].

mod at;
mod request;

use std::sync::atomic::AtomicBool;

use super::TargetError;
use super::database::{DropPlan, SetupPlan, Sheet};

pub use at::at;
pub use request::{Indexes, MAX_PARTITIONS, OrdersRequest, data_words};

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

    /// What the user should know about how it was reached.
    fn notes(&self) -> Vec<String>;

    /// Leaves it as it was found: ends a private server, unless it is to go on.
    ///
    /// # Errors
    /// When that cannot be done.
    fn close(self: Box<Self>) -> Result<(), TargetError>;
}
