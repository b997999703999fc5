//! What transactions have in common, and what servers acknowledge of them.

use model::workload::orders::{Pauses, Reconnect, Sizes};
use targets::orders::OrdersSending;

/// What all transactions of a run have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Rows that there were when the data were made.
    pub sizes: Sizes,
    /// Pauses between the steps of a transaction.
    pub inside: Pauses,
    /// How often a transaction is tried again after a deadlock, a serialization failure or a lock timeout.
    pub max_retries: u32,
    /// How long connections last.
    pub reconnect: Reconnect,
    /// How transactions are sent.
    pub sending: OrdersSending,
}

/// What a transaction changed and the server acknowledged: an audit looks for it afterwards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// An order that was made.
    pub order: Option<i64>,
    /// An order that was marked as processed.
    pub processed: Option<i64>,
}
