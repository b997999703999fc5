//! What servers acknowledged, kept so that an audit can look for it.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Acknowledged;

/// Keys of what was acknowledged, 8 bytes each.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<Entries>);

/// What is in a ledger.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Entries {
    /// Orders that were made.
    pub orders: Vec<i64>,
    /// Orders that were marked as processed, as often as that was acknowledged.
    pub processed: Vec<i64>,
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what a transaction had acknowledged.
    pub fn add(&self, acknowledged: &Acknowledged) {
        let Acknowledged { order, processed } = acknowledged;
        if order.is_some() || processed.is_some() {
            let mut entries = self.lock();
            entries.orders.extend(order);
            entries.processed.extend(processed);
        }
    }

    /// Takes everything out.
    pub fn take(&self) -> Entries {
        mem::take(&mut self.lock())
    }
}
