//! The sessions of one thread: each a connection of its own, all driven by one small runtime on that thread.
//!
//! [`Line`](line::Line) asks and hears the answers; what is asked is one statement for each operation
//! ([`StatementLane`]) or a batch for a procedure on the server ([`BatchesLane`]).

use std::pin::Pin;

mod batch;
mod check;
mod filling;
mod line;
mod session;
mod statement;
mod timer;
mod times;
mod watch;

pub(super) use batch::BatchesLane;
pub(super) use statement::StatementLane;

/// Something that a lane's runtime is to do beside the others.
type Request = Pin<Box<dyn Future<Output = ()> + Send>>;
