//! How fast each kind of work went.

use crate::measured;
use model::record::HostLevel;
use model::record::Level;
use model::record::Workload;
use model::record::{Histogram, Run, Step};
use model::units::{Bytes, Nanos, short_count};

/// Blocks that are checked and compared.
const BLOCK_BYTES: f64 = 8_192.0;

/// Whether `run` put load on processors, by this program. Other programs' results have no work of ours.
pub fn is_host_load(run: &Run) -> bool {
    run.workload() == Workload::Host && run.imported.is_none()
}

/// What a kind of work is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkUnit {
    /// Logical reads of blocks.
    LogicalReads,
    /// Bytes of blocks of 8 KiB; the record counts blocks.
    BlockBytes,
    /// Keys that are sorted.
    Keys,
    /// Rows that look for a partner.
    Rows,
    /// Bytes read and written.
    Bytes,
    /// Loads that wait for the one before.
    Loads,
    /// Round trips between two threads.
    RoundTrips,
    /// Sleeps, of which the lateness is what matters.
    Sleeps,
}

impl WorkUnit {
    /// That of a kind of work, by its name in the record.
    pub fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "logical-read" => Self::LogicalReads,
            "checksum" | "compare" => Self::BlockBytes,
            "sort" => Self::Keys,
            "hash-join" => Self::Rows,
            "memory-copy" | "memory-triad" => Self::Bytes,
            "memory-latency" => Self::Loads,
            "wake" => Self::RoundTrips,
            "timer" => Self::Sleeps,
            _ => return None,
        })
    }

    /// Whether it keeps a processor busy without a pause.
    pub fn is_busy(self) -> bool {
        !matches!(self, Self::RoundTrips | Self::Sleeps)
    }

    /// A rate in words: `31M logical reads/s` or `24.1 GB/s`.
    pub fn words(self, per_s: f64) -> String {
        match self {
            Self::LogicalReads => format!("{} logical reads/s", short_count(per_s)),
            Self::BlockBytes => format!("{:.1} GB/s", per_s * BLOCK_BYTES / 1e9),
            Self::Keys => format!("{} keys/s", short_count(per_s)),
            Self::Rows => format!("{} rows/s", short_count(per_s)),
            Self::Bytes => format!("{:.1} GB/s", per_s / 1e9),
            Self::Loads => format!("{} loads/s", short_count(per_s)),
            Self::RoundTrips => format!("{} round trips/s", short_count(per_s)),
            Self::Sleeps => format!("{} sleeps/s", short_count(per_s)),
        }
    }
}

/// What one kind of work came to in one step.
#[derive(Debug, Clone)]
pub struct Speed<'a> {
    /// The step.
    pub step: &'a Step,
    /// Its name.
    pub kind: &'a str,
    /// What it is counted in.
    pub unit: WorkUnit,
    /// Processors at once.
    pub threads: u32,
    /// Memory that each of them went through, where that was chosen.
    pub size: Option<Bytes>,
    /// Units per second of all of them, where the step did nothing else.
    pub per_s: Option<f64>,
    /// Units per second of one of them while it was at this work.
    pub per_processor_s: f64,
    /// Times of slices; of round trips, of lateness.
    pub times: &'a Histogram,
}

impl<'a> Speed<'a> {
    /// Of each kind in a step.
    pub fn of_step(step: &'a Step) -> Vec<Self> {
        let size = host_level(step).and_then(|level| level.size_bytes);
        let is_alone = step.operations.len() == 1;
        let of = |operations: &'a model::record::OperationStats| {
            let unit = WorkUnit::of(&operations.kind)?;
            let busy_ns = operations.service.total_ns().filter(|ns| *ns > 0)?;
            let units = operations.block_touches;
            Some(Self {
                step,
                kind: &operations.kind,
                unit,
                threads: step.load.sessions?,
                size,
                per_s: crate::rate(Some(units), step.window.duration_ns).filter(|_| is_alone),
                per_processor_s: units as f64 * 1e9 / busy_ns as f64,
                times: &operations.service,
            })
        };
        step.operations.iter().filter_map(of).collect()
    }

    /// Of each kind in each step with figures.
    pub fn of_run(run: &'a Run) -> Vec<Self> {
        measured(run).flat_map(|step| Self::of_step(step)).collect()
    }

    /// How long one load takes.
    pub fn load_time(&self) -> Option<f64> {
        (self.unit == WorkUnit::Loads && self.per_processor_s > 0.0).then(|| 1e9 / self.per_processor_s)
    }

    /// Memory of all threads together.
    pub(super) fn whole_size(&self) -> Option<u64> {
        self.size.map(|size| size.0.saturating_mul(u64::from(self.threads)))
    }
}

/// The work of a step on processors.
fn host_level(step: &Step) -> Option<&HostLevel> {
    match &step.level {
        Some(Level::Host(level)) => Some(level),
        _ => None,
    }
}

/// Whether a step's memory is near to the processors that go through it.
pub(super) fn is_near(step: &Step) -> bool {
    host_level(step).is_none_or(|level| level.memory_of.is_none())
}

/// Whether the threads that are woken are on another processor.
pub(super) fn is_across(step: &Step) -> bool {
    host_level(step).is_some_and(|level| level.wake_on.is_some())
}

/// A time in few digits.
pub(super) fn time_words(ns: f64) -> String {
    if ns < 1_000.0 { format!("{ns:.1} ns") } else { Nanos(ns as u64).to_string() }
}
