//! A set-up that is being done: its phases, and jobs side by side.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::access::Access;
use super::catalog::SqlData;
use super::descriptor::DataSet;
use super::found::Loaded;
use super::streams::{Halt, Queue, Streams};
use targets::TargetError;
use targets::database::{Phase, Progress};

/// A set-up that is being done.
pub struct Work<'a, C: SqlData, D = DataSet> {
    /// Where the data are made.
    pub access: Access<'a, C>,
    /// Holds the lock.
    pub session: C::Session<'a>,
    pub(crate) server: C::Server,
    /// What is made.
    pub data: D,
    pub(crate) streams: u32,
    pub(crate) notify: &'a dyn Fn(Phase, Progress),
    pub(crate) stop: &'a AtomicBool,
    pub(crate) report: Loaded,
}

impl<'a, C: SqlData, D: Sync> Work<'a, C, D> {
    /// What ends it early.
    pub fn halt(&self) -> Halt<'a> {
        Halt::on(self.stop)
    }

    /// Does one phase, which comes to `total_bytes`; it is handed what to call with the bytes that it has done.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or those of `work`.
    pub fn phase(
        &mut self,
        phase: Phase,
        total_bytes: u64,
        work: impl FnOnce(&mut Self, &dyn Fn(u64)) -> Result<(), TargetError>,
    ) -> Result<(), TargetError> {
        self.halt().check()?;
        let (began, reported) = (Instant::now(), self.notify);
        let notify = |done_bytes: u64| reported(phase, Progress { done_bytes, total_bytes });
        notify(0);
        work(self, &notify)?;
        notify(total_bytes);
        self.report.phases.push((phase, began.elapsed().as_nanos() as u64));
        Ok(())
    }

    /// Streams for so many jobs.
    pub(crate) fn streams<'b>(&self, jobs: usize, notify: &'b dyn Fn(u64)) -> Streams<'b>
    where
        'a: 'b,
    {
        let count = self.streams.min(u32::try_from(jobs).unwrap_or(u32::MAX));
        Streams { count, stop: self.stop, notify }
    }

    /// Does a phase of jobs, each of so many bytes, side by side on connections of their own that `open` makes.
    ///
    /// # Errors
    /// As [`phase`](Self::phase).
    pub fn side_by_side<J: Copy + Send>(
        &mut self,
        phase: Phase,
        jobs: &[(J, u64)],
        open: impl Fn(Halt<'_>) -> Result<C::Session<'a>, TargetError> + Sync,
        work: impl Fn(&mut C::Session<'a>, J, Halt<'_>) -> Result<(), TargetError> + Sync,
    ) -> Result<(), TargetError> {
        let total = jobs.iter().map(|(_, bytes)| bytes).sum();
        self.phase(phase, total, |this, tell| {
            let queue = Queue::new(jobs.iter().copied());
            this.streams(jobs.len(), tell).run(
                open,
                |ended| queue.next(ended),
                |session, &(job, bytes), stream| {
                    work(session, job, stream.halt)?;
                    stream.done(bytes);
                    Ok(())
                },
            )
        })
    }
}
