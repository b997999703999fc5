//! Several connections that work through a list of jobs side by side.

use std::sync::atomic::AtomicBool;

use super::session::{Access, Session};
use crate::targets::error::TargetError;
use crate::targets::sql::data::streams;
pub(super) use crate::targets::sql::data::streams::{Queue, Stream};

/// Who works.
pub(super) struct Streams<'a> {
    pub(super) access: Access<'a>,
    /// How many connections, at most one for each job.
    pub(super) count: u32,
    /// Ends the work early.
    pub(super) stop: &'a AtomicBool,
    /// Reported about ten times a second, on the calling thread, how much was added to [`Stream::done`].
    pub(super) tell: &'a dyn Fn(u64),
}

impl Streams<'_> {
    /// As [`streams::Streams::run`]. Each stream begins by having `settings` executed, and keeps what `make` gives it.
    ///
    /// # Errors
    /// As there.
    pub(super) fn run<J, S>(
        &self,
        settings: &str,
        make: impl Fn() -> S + Sync,
        next: impl Fn(Option<J>) -> Option<J> + Sync,
        work: impl Fn(&Session<'_>, &mut S, &J, &Stream<'_>) -> Result<(), TargetError> + Sync,
    ) -> Result<(), TargetError> {
        let Self { access, count, stop, tell } = *self;
        streams::Streams { count, stop, tell }.run(
            |halt| {
                let session = Session::open(access)?;
                session.execute("set up a session", settings, halt)?;
                Ok((session, make()))
            },
            next,
            |(session, kept), job, stream| work(session, kept, job, stream),
        )
    }
}
