//! ORION's data points, read from the steps of a run.

use std::collections::BTreeSet;

use super::OrionFilesError;
use model::record::{Histogram, Level, Load, OperationStats, OrionLevel, OrionLoad, Outcome, Run, Step};
use model::units::Bytes;

/// The matrix of a run.
pub(super) struct Points<'a> {
    /// Points that ran to their end, in the order in which they ran.
    pub(super) seen: Vec<Point<'a>>,
    /// All small loads of the walk, in rising order.
    pub(super) small_loads: Vec<u32>,
    /// All large loads of the walk, in rising order.
    pub(super) large_loads: Vec<u32>,
    pub(super) small_bytes: u64,
    pub(super) large_bytes: u64,
    /// What was asked for.
    pub(super) load: &'a OrionLoad,
}

/// One point that ran to its end.
pub(super) struct Point<'a> {
    pub(super) small: u32,
    pub(super) large: u32,
    large_bytes: u64,
    step: &'a Step,
}

/// Requests of one size.
#[derive(Clone, Copy)]
pub(super) enum Size {
    Small,
    Large,
}

/// Reads or writes.
#[derive(Clone, Copy)]
pub(super) enum Way {
    Read,
    Write,
}

impl<'a> Points<'a> {
    pub(super) fn of(run: &'a Run) -> Result<Self, OrionFilesError> {
        let Load::Orion(load) = &run.load else {
            return Err(OrionFilesError::NotOrion { id: run.id.clone(), workload: run.workload() });
        };
        let (Bytes(small_bytes), Bytes(large_bytes)) = (load.options.size_small, load.options.size_large);
        let mut small_loads: BTreeSet<u32> = load.small_loads.iter().copied().collect();
        let mut large_loads: BTreeSet<u32> = load.large_loads.iter().copied().collect();
        let mut seen = Vec::new();
        for step in run.steps.iter().filter(|step| step.outcome == Outcome::Completed) {
            let Some(Level::Orion(OrionLevel { small, large })) = step.level else { continue };
            small_loads.insert(small);
            large_loads.insert(large);
            seen.push(Point { small, large, large_bytes, step });
        }
        Ok(Self {
            load,
            seen,
            small_loads: small_loads.into_iter().collect(),
            large_loads: large_loads.into_iter().collect(),
            small_bytes,
            large_bytes,
        })
    }

    /// The last point that ran with this load.
    pub(super) fn at(&self, small: u32, large: u32) -> Option<&Point<'a>> {
        self.seen.iter().rev().find(|point| (point.small, point.large) == (small, large))
    }
}

impl Point<'_> {
    /// Where it lies, as ORION says it.
    pub(super) fn place(&self) -> String {
        format!("Small={} and Large={}", self.small, self.large)
    }

    /// Small requests per second; none if the point has no small load.
    pub(super) fn small_per_s(&self) -> Option<f64> {
        (self.small > 0).then(|| self.per_s(Size::Small)).flatten()
    }

    /// Bytes of large requests per second, in units of 2^20; none if the point has no large load.
    pub(super) fn megabytes_per_s(&self) -> Option<f64> {
        let requests = (self.large > 0).then(|| self.per_s(Size::Large)).flatten()?;
        Some(requests * self.large_bytes as f64 / (1_u64 << 20) as f64)
    }

    /// Mean latency of small reads and writes together.
    pub(super) fn small_latency_us(&self) -> Option<f64> {
        let mut all = Histogram::default();
        for way in [Way::Read, Way::Write] {
            if let Some(times) = self.times(Size::Small, way) {
                all.merge(times);
            }
        }
        all.mean_ns().map(|ns| ns / 1e3)
    }

    /// From sent to finished; none if no such request finished.
    pub(super) fn times(&self, size: Size, way: Way) -> Option<&Histogram> {
        self.operations(size, way).map(|operations| &operations.service).filter(|times| times.count() > 0)
    }

    fn per_s(&self, size: Size) -> Option<f64> {
        let finished: u64 = [Way::Read, Way::Write]
            .into_iter()
            .filter_map(|way| self.operations(size, way))
            .map(|operations| operations.count.saturating_sub(operations.errors))
            .sum();
        let duration_ns = self.step.window.duration_ns;
        (duration_ns > 0).then(|| finished as f64 * 1e9 / duration_ns as f64)
    }

    fn operations(&self, size: Size, way: Way) -> Option<&OperationStats> {
        let kind = match (size, way) {
            (Size::Small, Way::Read) => "read",
            (Size::Small, Way::Write) => "write",
            (Size::Large, Way::Read) => "large read",
            (Size::Large, Way::Write) => "large write",
        };
        self.step.operations.iter().find(|operations| operations.kind == kind)
    }
}
