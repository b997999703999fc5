//! A set-up that is being done: its phases, and jobs side by side.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::access::Access;
use super::catalog::SqlData;
use super::descriptor::DataSet;
use super::found::Loaded;
use super::streams::{Halt, Queue, Streams};
use crate::targets::TargetError;
use crate::targets::database::{Phase, Progress};

/// A set-up that is being done.
pub(in crate::targets) struct Work<'a, C: SqlData, D = DataSet> {
    pub(in crate::targets) access: Access<'a, C>,
    /// Holds the lock.
    pub(in crate::targets) session: C::Session<'a>,
    pub(in crate::targets) server: C::Server,
    pub(in crate::targets) data: D,
    pub(in crate::targets) streams: u32,
    pub(in crate::targets) notify: &'a dyn Fn(Phase, Progress),
    pub(in crate::targets) stop: &'a AtomicBool,
    pub(in crate::targets) report: Loaded,
}

impl<'a, C: SqlData, D: Sync> Work<'a, C, D> {
    /// What ends it early.
    pub(in crate::targets) fn halt(&self) -> Halt<'a> {
        Halt::on(self.stop)
    }

    /// Does one phase, which comes to `total_bytes`; it is handed what to call with the bytes that it has done.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or those of `work`.
    pub(in crate::targets) fn phase(
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
    pub(in crate::targets) fn streams<'b>(&self, jobs: usize, notify: &'b dyn Fn(u64)) -> Streams<'b>
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
    pub(in crate::targets) fn side_by_side<J: Copy + Send>(
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
