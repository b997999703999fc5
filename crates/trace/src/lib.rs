//! Traces of requests to block devices: their file, the traces of other programs, and what a trace is like.
//!
//! A trace is read once from its beginning to its end, in batches, and is never held in memory as a whole: an hour of production has
//! tens of millions of requests.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod error;
mod file;
mod pairing;
pub mod profile;
pub mod readers;
pub mod record;
pub mod replay;
mod summary;

pub use error::TraceError;
pub use file::{TraceFile, TraceWriter};
pub use summary::TraceSummary;

use model::trace::{TraceEnd, TraceHeader, TraceRequest};

/// Opens a trace of any format; several files are those of one trace.
///
/// # Errors
/// [`TraceError`] says what is wrong with it.
pub fn open<P: AsRef<std::path::Path>>(paths: &[P]) -> Result<Box<dyn TraceSource>, TraceError> {
    match paths {
        [path] if TraceFile::is_one(path.as_ref()) => Ok(Box::new(TraceFile::open(path.as_ref())?)),
        paths => readers::open_all(paths),
    }
}

/// Requests of one batch, about: some hundred kilobytes.
pub const BATCH: usize = 8_192;

/// A trace that is read from its beginning to its end.
pub trait TraceSource: Send {
    /// What it says of itself. Devices are added as requests name them: at the end it has all of them.
    fn header(&self) -> &TraceHeader;

    /// Appends the next requests to `batch`, by time of issue, [`BATCH`] or a few more; nothing at the end.
    ///
    /// # Errors
    /// When the file cannot be read, or is not what its beginning says. A file that was cut off is read up to there,
    /// and [`end`](Self::end) has a note.
    fn next_batch(&mut self, batch: &mut Vec<TraceRequest>) -> Result<(), TraceError>;

    /// How far it has read, in bytes of its files; absent where that is not followed.
    fn read_bytes(&self) -> Option<u64> {
        None
    }

    /// What is known when the last request was read.
    fn end(&self) -> TraceEnd;
}
