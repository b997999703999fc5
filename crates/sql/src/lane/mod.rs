//! The sessions of one thread: each a connection of its own, all driven by one small runtime on that thread.
//!
//! [`Line`](line::Line) asks and hears the answers; what is asked is one statement for each operation
//! ([`StatementLane`]), a batch for a procedure on the server ([`BatchesLane`]) or a transaction of several statements
//! ([`TransactionLane`]).

use std::pin::Pin;

mod batch;
mod inbox;
mod line;
mod slot;
mod statement;
mod timer;
mod times;
mod transaction;
mod watch;

pub(super) use batch::BatchesLane;
pub(super) use statement::StatementLane;
pub use times::{ServerTimes, TimedOperation};
pub(super) use transaction::TransactionLane;

use super::session::StatementKind;
use model::workload::SlobOperation;

/// Something that a lane's runtime is to do beside the others.
type SideJob = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The first of each sort of operation, by what has to be prepared for them.
fn one_of_each(operations: Vec<SlobOperation>) -> Vec<SlobOperation> {
    let mut one_of_each: Vec<SlobOperation> = Vec::new();
    for operation in operations {
        let sort = |operation: &SlobOperation| (StatementKind::of(operation), operation.schema);
        if !one_of_each.iter().any(|known| sort(known) == sort(&operation)) {
            one_of_each.push(operation);
        }
    }
    one_of_each
}
