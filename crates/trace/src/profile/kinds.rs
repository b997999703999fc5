//! Counts by the kind of request.

use model::trace::TraceKind;
use serde::Serialize;

/// One value for each kind of request.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ByKind<T> {
    /// Of reads.
    pub read: T,
    /// Of writes, FUA or not.
    pub write: T,
    /// Of flushes.
    pub flush: T,
    /// Of discards.
    pub discard: T,
}

impl<T> ByKind<T> {
    /// The value of a kind.
    pub fn get(&self, kind: TraceKind) -> &T {
        match kind {
            TraceKind::Read => &self.read,
            TraceKind::Write => &self.write,
            TraceKind::Flush => &self.flush,
            TraceKind::Discard => &self.discard,
        }
    }

    pub(super) fn get_mut(&mut self, kind: TraceKind) -> &mut T {
        match kind {
            TraceKind::Read => &mut self.read,
            TraceKind::Write => &mut self.write,
            TraceKind::Flush => &mut self.flush,
            TraceKind::Discard => &mut self.discard,
        }
    }
}

/// Requests and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// Requests.
    pub requests: u64,
    /// The sum of their lengths.
    pub bytes: u64,
}

impl Counted {
    #[inline]
    pub(super) fn add(&mut self, bytes: u64) {
        self.requests += 1;
        // Lengths of a damaged trace can be anything.
        self.bytes = self.bytes.saturating_add(bytes);
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { requests: self.requests.saturating_add(other.requests), bytes: self.bytes.saturating_add(other.bytes) }
    }
}

/// A share (0 to 1), absent where the whole is zero.
pub(super) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
