//! The processors of this machine as a target: each lane is a thread that stays on one of them and does slices of work.

mod kernels;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::embedded::CachedBlocks;
use super::{Background, Lane, SessionRange, Target, TargetError, TargetFor};
use crate::{Finished, OperationResult};
use kernels::{Ended, Partner, Work};
use measure::host::{HostProbe, HostReading, OwnTimes};
use measure::os::thread_cpu_ns;
use measure::{Clock, Counter, LaneRecorder};
use model::config::host::ranges;
use model::record;
use model::units::Bytes;
use model::workload::{HostKind, HostOperation};

/// The processors.
pub struct HostTarget {
    options: HostOptions,
    cached: Option<Arc<CachedBlocks>>,
    clock: Clock,
    probe: HostProbe,
    counts: Box<[WorkCounts]>,
    last: Mutex<Last>,
}

/// What was read at the last edge.
#[derive(Default)]
struct Last {
    reading: HostReading,
    own: Vec<OwnTimes>,
    units: [u64; HostKind::ALL.len()],
}

impl HostTarget {
    /// Gets ready for slices on these processors. A cache for logical reads is filled here.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn open(options: HostOptions, clock: Clock) -> Result<Self, TargetError> {
        let cached = options.cache.map(CachedBlocks::new).transpose();
        let cached = cached.map_err(|source| kernel("take memory for a buffer cache", source))?.map(Arc::new);
        let mut processors = options.processors.clone();
        processors.extend(options.wake_on);
        let probe = HostProbe::new(processors);
        let counts: Box<[WorkCounts]> = options.processors.iter().map(|_| WorkCounts::default()).collect();
        let last = Last { reading: probe.read(clock.now_ns()), ..Last::default() };
        Ok(Self { options, cached, clock, probe, counts, last: Mutex::new(last) })
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happened since it was last asked.
    fn take(&self) -> record::HostStats {
        let reading = self.probe.read(self.clock.now_ns());
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let now: Vec<OwnTimes> = self
            .counts
            .iter()
            .map(|counts| OwnTimes { cpu_ns: load(&counts.cpu_ns), operations: load(&counts.operations) })
            .collect();
        let units: [u64; HostKind::ALL.len()] =
            std::array::from_fn(|kind| self.counts.iter().map(|counts| load(&counts.units[kind])).sum());
        let mut last = self.last();
        let before = |lane: usize| last.own.get(lane).copied().unwrap_or_default();
        let own: Vec<(u32, OwnTimes)> = (0..)
            .zip(self.options.processors.iter().zip(&now))
            .map(|(lane, (processor, now))| {
                let (cpu_ns, operations) = (before(lane).cpu_ns, before(lane).operations);
                (*processor, OwnTimes { cpu_ns: now.cpu_ns - cpu_ns, operations: now.operations - operations })
            })
            .collect();
        let work = HostKind::ALL.into_iter().map(|kind| (kind, units[kind.index()] - last.units[kind.index()]));
        let work: BTreeMap<String, u64> =
            work.filter(|(_, units)| *units > 0).map(|(kind, units)| (kind.name().to_owned(), units)).collect();
        let seen = record::HostStats { work, ..reading.since(&last.reading, &own) };
        *last = Last { reading, own: now, units };
        seen
    }
}

impl Target for HostTarget {
    fn describe(&self) -> record::Target {
        describe(&self.options.processors)
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    fn layer(&self) -> &'static str {
        "processor"
    }

    fn known_counters(&self) -> &'static [Counter] {
        &[Counter::Operations, Counter::Errors]
    }

    fn take_background(&self) -> Background {
        Background { host: Some(self.take()), ..Background::default() }
    }

    fn check_health(&self) -> Result<(), TargetError> {
        Ok(())
    }
}

impl TargetFor<HostOperation> for HostTarget {
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<HostOperation> + '_>, TargetError> {
        let number = range.lane as usize;
        let (Some(processor), Some(counts)) = (self.options.processors.get(number), self.counts.get(number)) else {
            return Err(kernel("find a processor for each thread", io::ErrorKind::InvalidInput.into()));
        };
        Ok(Box::new(HostLane::open(&self.options, *processor, self.cached.clone(), counts, range.clock)?))
    }
}

/// What processors are as a target of a run.
pub fn describe(processors: &[u32]) -> record::Target {
    let other = [("processors".to_owned(), ranges(processors))].into();
    let facts = record::TargetFacts { other, ..record::TargetFacts::default() };
    let address = format!("processors {}", ranges(processors));
    record::Target { kind: Some(record::TargetKind::Host), address, facts, ..record::Target::default() }
}

/// Which processors, and what their work needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostOptions {
    /// The processor of each lane.
    pub processors: Vec<u32>,
    /// Memory that each lane's copies, triads and chases go through.
    pub size_bytes: u64,
    /// Buffer cache that logical reads are done in, shared by all lanes; `None` where there are none.
    pub cache: Option<Bytes>,
    /// Processor that touches each lane's memory first, so that it lies near to that one; `None` for the lane's own.
    pub memory_of: Option<u32>,
    /// Processor of the threads that are woken; `None` for that of the lane which wakes them.
    pub wake_on: Option<u32>,
}

/// What a lane has done so far.
#[derive(Default)]
struct WorkCounts {
    cpu_ns: AtomicU64,
    operations: AtomicU64,
    units: [AtomicU64; HostKind::ALL.len()],
}

fn kernel(action: &'static str, source: io::Error) -> TargetError {
    TargetError::Kernel { action, source }
}

/// How often the thread's processor time is asked for: that costs as much as many a short operation.
const READING_NS: u64 = 1_000_000;

struct HostLane<'t> {
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
    fn open(
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

/// Keeps the calling thread on one processor from now on.
///
/// # Errors
/// When the processor is offline, or not allowed to this process.
fn pin(processor: u32) -> io::Result<()> {
    let number = usize::try_from(processor).ok().filter(|number| *number < CpuSet::MAX_CPU);
    let mut one = CpuSet::new();
    one.set(number.ok_or(io::ErrorKind::InvalidInput)?);
    Ok(sched_setaffinity(None, &one)?)
}

/// Processors that this process may run on, in rising order.
///
/// # Errors
/// When the kernel does not say, which it does on machines of up to 1,024 processors.
pub fn allowed_processors() -> io::Result<Vec<u32>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU as u32).filter(|number| allowed.is_set(*number as usize)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_kernel_writes_them() {
        assert_eq!(ranges(&[3, 0, 1, 2, 9, 7, 7]), "0-3,7,9");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn what_is_taken_is_what_was_done_since_it_was_taken_before() {
        let processors = vec![allowed_processors().unwrap()[0]];
        let options = HostOptions { processors, size_bytes: 1 << 20, cache: None, memory_of: None, wake_on: None };
        let target = HostTarget::open(options, Clock::start()).unwrap();
        target.counts[0].operations.store(5, Ordering::Relaxed);
        target.counts[0].units[HostKind::Sort.index()].store(50, Ordering::Relaxed);
        let first = target.take();
        assert_eq!((first.loaded.operations, first.work["sort"], first.processors.len()), (5, 50, 1));
        target.counts[0].operations.store(7, Ordering::Relaxed);
        let second = target.take();
        assert_eq!((second.loaded.operations, second.work.is_empty()), (2, true));
    }

    #[test]
    fn a_thread_stays_where_it_is_put_and_a_processor_that_is_not_there_is_refused() {
        let allowed = allowed_processors().unwrap();
        let last = *allowed.last().unwrap();
        std::thread::spawn(move || {
            pin(last).unwrap();
            assert_eq!(rustix::thread::sched_getcpu() as u32, last);
            assert_eq!(allowed_processors().unwrap(), [last]);
            assert!(pin(1_023).is_err() || last == 1_023);
            assert!(pin(u32::MAX).is_err());
        })
        .join()
        .unwrap();
    }
}
