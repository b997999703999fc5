//! What servers acknowledged, kept so that an audit can look for it.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::rules::Acknowledged;
use targets::orders::Acknowledgements;

/// Keys of what was acknowledged, 8 bytes each.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<Acknowledgements>);

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Acknowledgements> {
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
    pub fn take(&self) -> Acknowledgements {
        mem::take(&mut self.lock())
    }
}
