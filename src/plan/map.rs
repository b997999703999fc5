//! The plan of a map of reads and writes, or of reads and updates.

use super::check::blend;
use super::io::{Facts, check_buffers};
use super::slob::{RunPlan, SlobPlanRequest};
use super::steps::seed_of_step;
use super::{PlanError, RunHead, slob};
use load::{Pace, Share, StepPlan};
use model::config::io::rate_text;
use model::config::{Axes, Key, Setting, Tag};
use model::record::{Intensity, IoMap, Level, Load, MapLevel, MapOf, MapSearch, SlobLoad, SlobMap};
use model::units::{Bytes, Nanos};
use model::workload::io::{Access, Distribution, IoBlend, IoKind, IoPart};
use model::workload::{Arrival, SlobShape};
use targets::database::DataFacts;

/// What is requested.
#[derive(Debug, Clone)]
pub struct MapRequest {
    /// The load.
    pub map: IoMap,
    /// How much of the volume is used; all where absent.
    pub size: Option<Bytes>,
    /// Length of each measured window.
    pub duration: Nanos,
    /// Load before each window.
    pub warmup: Nanos,
    /// Seed of every random choice.
    pub seed: u64,
    /// What the user calls the things that vary between runs.
    pub tags: Vec<Tag>,
    /// Processors that this process may use.
    pub processors: u32,
}

/// What will be done.
#[derive(Debug, Clone)]
pub struct MapPlan {
    /// What the run is before its first step.
    pub head: RunHead,
    /// Bytes of the volume that requests touch.
    pub region_bytes: u64,
    request: MapRequest,
}

impl MapPlan {
    /// Plans a map on a volume.
    ///
    /// # Errors
    /// The first thing that cannot be done.
    pub fn new(request: &MapRequest, facts: &Facts) -> Result<Self, PlanError> {
        if request.duration == Nanos(0) {
            return Err(PlanError::NoDuration);
        }
        let (block, capacity) = (Bytes::from(request.map.block), Bytes(facts.capacity_bytes));
        if !request.map.block.bytes().is_multiple_of(facts.unit_bytes) {
            return Err(PlanError::BlockBelowUnit { block, unit: Bytes(u64::from(facts.unit_bytes)) });
        }
        let wanted = request.size.unwrap_or(capacity);
        if wanted > capacity {
            return Err(PlanError::VolumeTooSmall { asked: wanted, capacity });
        }
        let region_bytes = wanted.0 - wanted.0 % block.0;
        let head = RunHead::new(
            &request.tags,
            ["map".to_owned(), request.map.block.to_string()],
            request.seed,
            Load::IoMap(request.map.clone()),
            [],
        )?;
        let plan = Self { head, region_bytes, request: request.clone() };
        let highest_per_s = request.map.search.highest_per_s;
        let most = MapLevel { mix: 0, read_share: 1.0, per_s: highest_per_s };
        check_buffers(plan.shape(most)?.slots, block, Bytes(0), facts.available_memory)?;
        Ok(plan)
    }

    fn shape(&self, level: MapLevel) -> Result<IoBlend, PlanError> {
        let part = |kind, per_s| IoPart {
            kind,
            per_s,
            block_bytes: self.request.map.block.bytes(),
            region_bytes: self.region_bytes,
            access: Access::Random(Distribution::Uniform),
        };
        let kinds = [(IoKind::Read, level.reads_per_s()), (IoKind::Write, level.writes_per_s())];
        let parts = kinds.into_iter().filter(|(_, per_s)| *per_s > 0.0).map(|(kind, per_s)| part(kind, per_s));
        blend(parts.collect(), self.region_bytes, self.request.processors)
    }

    /// Step number `index`: a point, for the `reading`-th time, counted from 1.
    ///
    /// # Errors
    /// If the volume holds no request.
    pub fn step(&self, index: u32, level: MapLevel, reading: usize) -> Result<StepPlan<IoBlend>, PlanError> {
        let shape = self.shape(level)?;
        let pace = Pace::Open { rate_per_s: level.per_s, arrival: Arrival::Poisson };
        Ok(StepPlan {
            index,
            label: label(MapOf::Requests, level, reading),
            load: Intensity {
                sessions: Some(shape.slots),
                rate_operations_per_s: pace.rate_per_s(),
                arrival: pace.arrival(),
                ..Intensity::default()
            },
            level: Some(Level::IoMap(level)),
            like: None,
            lanes: shape.streams,
            shape,
            seed: seed_of_step(self.request.seed, index),
            work_loop: None,
            warmup: self.request.warmup,
            duration: self.request.duration,
            pace,
            share: Share::WHOLE,
        })
    }

    /// How long a step lasts, warm-up included.
    pub fn step_time(&self) -> Nanos {
        Nanos(self.request.warmup.0.saturating_add(self.request.duration.0))
    }
}

/// What a point is called that is measured for the `reading`-th time.
fn label(of: MapOf, level: MapLevel, reading: usize) -> String {
    let again = if reading > 1 { format!("_{reading}") } else { String::new() };
    let change = of.changes().chars().next().unwrap_or_default();
    format!("r{}{change}{}{again}", short(level.reads_per_s()), short(level.writes_per_s()))
}

/// A map of reads and updates as it will be measured.
#[derive(Debug)]
pub struct SlobMapPlan {
    /// What the run is before its first step.
    pub head: RunHead,
    /// Its largest load, with both kinds of operations.
    pub base: RunPlan,
    first: StepPlan<SlobShape>,
}

impl SlobMapPlan {
    /// Plans a map on the data that `data` describes. Of `request`, `UPDATE_PCT` and the pace do not count: points have their own.
    ///
    /// # Errors
    /// The first thing that cannot be done.
    pub fn new(request: &SlobPlanRequest, search: MapSearch, data: &DataFacts) -> Result<Self, PlanError> {
        let mut request = request.clone();
        // Any share between: the plan is of both kinds.
        request.settings.push(Setting::from_command_line(Key::UpdatePct, "50".to_owned()));
        request.pace = Pace::Open { rate_per_s: search.highest_per_s, arrival: Arrival::Poisson };
        // Without axes there is one step.
        request.axes = Axes::default();
        let base = slob::plan(&request, data)?;
        let first = base.steps[0].clone();
        let mut load = SlobLoad::of(&base.head.parameters);
        load.parameters.remove(&Key::UpdatePct);
        let head =
            RunHead::new(&request.tags, ["map".to_owned()], request.seed, Load::SlobMap(SlobMap { load, search }), [])?;
        Ok(Self { head, base, first })
    }

    /// Step number `index`: a point, for the `reading`-th time, counted from 1.
    pub fn step(&self, index: u32, level: MapLevel, reading: usize) -> StepPlan<SlobShape> {
        let base = &self.first;
        let pace = Pace::Open { rate_per_s: level.per_s, arrival: Arrival::Poisson };
        StepPlan {
            index,
            label: label(MapOf::Operations, level, reading),
            load: Intensity { rate_operations_per_s: pace.rate_per_s(), arrival: pace.arrival(), ..base.load.clone() },
            level: Some(Level::SlobMap(level)),
            shape: SlobShape { update_share: Some(1.0 - level.read_share), ..base.shape.clone() },
            seed: seed_of_step(self.head.seed, index),
            pace,
            ..base.clone()
        }
    }

    /// Load before each measured window, and how long that is.
    pub fn window(&self) -> (Nanos, Nanos) {
        (self.first.warmup, self.first.duration)
    }

    /// How long all points take at most.
    pub fn time(&self, points: usize) -> Nanos {
        Nanos(self.base.duration().0.saturating_mul(points as u64))
    }
}

/// A rate in a label: whole requests where there are enough of them.
fn short(per_s: f64) -> String {
    rate_text(if per_s >= 100.0 { per_s.round() } else { per_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_its_mix_at_its_rate_and_a_repeat_draws_other_places() {
        let search = MapSearch {
            of: MapOf::Requests,
            limit: "p99=5ms".to_owned(),
            least_read_pct: 0,
            most_read_pct: 100,
            lowest_per_s: 10.0,
            highest_per_s: 1e5,
            within: 0.05,
            most_points: 40,
            demand: None,
        };
        let map = IoMap { block: "8K".parse().unwrap(), durable: Default::default(), search };
        let (duration, warmup) = (Nanos::seconds(10), Nanos::seconds(2));
        let request = MapRequest { map, size: None, duration, warmup, seed: 7, tags: Vec::new(), processors: 2 };
        let facts = Facts {
            capacity_bytes: 1 << 30,
            volumes: Vec::new(),
            unit_bytes: 512,
            available_memory: Some(Bytes::gib(1)),
        };
        let plan = MapPlan::new(&request, &facts).unwrap();
        let level = MapLevel { mix: 2, read_share: 0.75, per_s: 8_000.0 };
        let (first, second) = (plan.step(3, level, 1).unwrap(), plan.step(9, level, 2).unwrap());
        assert_eq!((first.label.as_str(), second.label.as_str()), ("r6000w2000", "r6000w2000_2"));
        assert_eq!(first.shape.parts.iter().map(|part| part.per_s).collect::<Vec<_>>(), [6_000.0, 2_000.0]);
        assert_ne!(first.seed, second.seed);
        let reads = plan.step(0, MapLevel { read_share: 1.0, ..level }, 1).unwrap();
        assert_eq!(reads.shape.parts.len(), 1, "what has no rate is no part");
        let large = MapRequest { size: Some(Bytes::gib(2)), ..request.clone() };
        assert!(matches!(MapPlan::new(&large, &facts), Err(PlanError::VolumeTooSmall { .. })));
        let tight = Facts { available_memory: Some(Bytes::mib(65)), ..facts.clone() };
        assert!(matches!(MapPlan::new(&request, &tight), Err(PlanError::BuffersTooLarge { .. })));
        let small = Facts { capacity_bytes: 4_096, ..facts };
        assert!(matches!(MapPlan::new(&request, &small), Err(PlanError::VolumeBelowBlock { .. })));
    }
}
