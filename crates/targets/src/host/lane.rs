//! One thread on one processor.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::kernels::{Ended, Partner, Work};
use super::options::{HostOptions, WorkCounts, kernel};
use super::pin::pin;
use crate::embedded::CachedBlocks;
use crate::{Finished, Lane, OperationResult, TargetError};
use measure::os::thread_cpu_ns;
use measure::{Clock, LaneRecorder};
use model::workload::{HostKind, HostOperation};

/// How often the thread's processor time is asked for: that costs as much as many a short operation.
const READING_NS: u64 = 1_000_000;

pub(super) struct HostLane<'t> {
    options: &'t HostOptions,
    processor: u32,
    counts: &'t WorkCounts,
    clock: Clock,
    work: Work,
    /// Slices that were started and not done, with their sessions and when they were sent.
    started: VecDeque<(u32, HostOperation, u64)>,
    /// Processor time of the thread when the lane was opened.
    cpu_from_ns: u64,
    read_ns: u64,
}

impl<'t> HostLane<'t> {
    /// Moves the calling thread to `processor`.
    pub(super) fn open(
        options: &'t HostOptions,
        processor: u32,
        cached: Option<Arc<CachedBlocks>>,
        counts: &'t WorkCounts,
        clock: Clock,
    ) -> Result<Self, TargetError> {
        pin(processor).map_err(|source| kernel("move a thread to its processor", source))?;
        let work = Work::new(options.size_bytes, cached);
        let cpu_from_ns = thread_cpu_ns();
        Ok(Self { options, processor, counts, clock, work, started: VecDeque::new(), cpu_from_ns, read_ns: 0 })
    }

    fn make_ready(&mut self, kind: HostKind) -> Result<(), TargetError> {
        let partner = self.options.wake_on.unwrap_or(self.processor);
        let made = self.work.make_ready(kind, || Partner::start(Some(partner)));
        made.map_err(|source| kernel("take memory and threads for the work", source))
    }

    /// Tells how much was done.
    fn book(&mut self, slice: &HostOperation, at_ns: u64) {
        self.counts.operations.fetch_add(1, Ordering::Relaxed);
        self.counts.units[slice.kind.index()].fetch_add(slice.units, Ordering::Relaxed);
        if at_ns.saturating_sub(self.read_ns) >= READING_NS {
            self.read_ns = at_ns;
            let used_ns = thread_cpu_ns().saturating_sub(self.cpu_from_ns) + self.work.partner_cpu_ns();
            self.counts.cpu_ns.fetch_max(used_ns, Ordering::Relaxed);
        }
    }
}

impl Lane<HostOperation> for HostLane<'_> {
    fn start(
        &mut self,
        session: u32,
        operation: &HostOperation,
        sent_ns: u64,
        _: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        self.started.push_back((session, *operation, sent_ns));
        Ok(())
    }

    fn poll(&mut self, until_ns: u64, _: &mut LaneRecorder, finished: &mut Vec<Finished>) -> Result<(), TargetError> {
        let Some((session, slice, sent_ns)) = self.started.pop_front() else {
            self.clock.sleep_until(until_ns);
            return Ok(());
        };
        // What was asked of a sleep is no part of its time: what is left is how late it ended.
        let paused_ns = if slice.kind == HostKind::Timer { HostKind::SLEEP_NS } else { 0 };
        if paused_ns > 0 {
            self.clock.sleep_until(sent_ns + paused_ns);
        }
        let result = match self.work.run(&slice) {
            Ended::Right(_) => OperationResult::Done,
            Ended::Wrong => OperationResult::Failed,
        };
        let at_ns = self.clock.now_ns();
        self.book(&slice, at_ns);
        finished.push(Finished { session, at_ns, paused_ns, connecting_ns: 0, block_touches: slice.units, result });
        Ok(())
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.started.clear();
        Ok(())
    }

    fn prepare(&mut self, upcoming: &mut dyn FnMut(u32) -> Vec<HostOperation>) -> Result<(), TargetError> {
        let slices = upcoming(0);
        if let Some(other) = self.options.memory_of {
            pin(other).map_err(|source| kernel("touch memory from another processor", source))?;
        }
        for kind in HostKind::ALL.into_iter().filter(|kind| slices.iter().any(|slice| slice.kind == *kind)) {
            self.make_ready(kind)?;
        }
        pin(self.processor).map_err(|source| kernel("move a thread to its processor", source))?;
        // The first slice of each kind finds cold caches and code that was never run.
        for kind in HostKind::ALL {
            if let Some(slice) = slices.iter().find(|slice| slice.kind == kind) {
                self.work.run(slice);
            }
        }
        self.cpu_from_ns = thread_cpu_ns() + self.work.partner_cpu_ns();
        Ok(())
    }
}
