//! Traces of requests to block devices: their file, the traces of other programs, and what a trace is like.
//!
//! A trace is read once from its beginning to its end, in batches, and is never held in memory as a whole: an hour of production has
//! tens of millions of requests.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod error;
pub mod profile;
pub mod readers;

pub use error::TraceError;

use model::trace::{TraceEnd, TraceHeader, TraceRequest};

/// Requests of one batch, about: some hundred kilobytes.
pub const BATCH: usize = 8_192;

/// A trace that is read from its beginning to its end.
pub trait TraceSource: Send {
    /// What it says of itself. Devices are added as requests name them: at the end it has all of them.
    fn header(&self) -> &TraceHeader;

    /// Appends the next requests to `batch`, by time of issue, [`BATCH`] or a few more; nothing at the end.
    ///
    /// # Errors
    /// When the file cannot be read, or is not what its beginning says. A file that was cut off is no error: what is there is used,
    /// and [`end`](Self::end) has a note.
    fn next_batch(&mut self, batch: &mut Vec<TraceRequest>) -> Result<(), TraceError>;

    /// What is known when the last request was read.
    fn end(&self) -> TraceEnd;
}
