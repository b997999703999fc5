//! The processors of this machine as a target: each lane is a thread that stays on one of them and does slices of work.

mod kernels;
mod lane;
mod options;
mod pin;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lane::HostLane;
pub use options::HostOptions;
use options::{WorkCounts, kernel};
pub use pin::allowed_processors;

use super::embedded::CachedBlocks;
use super::{Background, Lane, SessionRange, Target, TargetError, TargetFor};
use measure::host::{HostProbe, HostReading, OwnTimes};
use measure::{Clock, Counter};
use model::config::host::ranges;
use model::record;
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
    let facts = BTreeMap::from([("processors".to_owned(), ranges(processors))]);
    let address = format!("processors {}", ranges(processors));
    record::Target { kind: "host".to_owned(), address, facts, ..record::Target::default() }
}

#[cfg(test)]
mod tests;
