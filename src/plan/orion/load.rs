//! ORION's walk as load on an open volume.

use super::{Lun, OrionPoint, OrionWalk, Warming, walk};
use crate::load::{Pace, Share, StepPlan};
use crate::plan::io::{Facts, check_buffers};
use crate::plan::steps::seed_of_step;
use crate::plan::{PlanError, RunHead};
use model::config::Tag;
use model::config::orion::{LargePattern, OrionOptions};
use model::record::{Intensity, Level, Load, OrionLevel};
use model::units::{Bytes, Nanos};
use model::workload::io::{Access, Distribution, IoClass, IoShape, RequestSize};

/// Warming that has a size takes as long as it takes; this only keeps it from taking for ever.
const LONGEST_WARMING: Nanos = Nanos::seconds(24 * 3_600);

/// What was asked for.
#[derive(Debug, Clone)]
pub struct OrionRequest {
    /// ORION's options.
    pub options: OrionOptions,
    /// What the volume is made of.
    pub luns: Vec<Lun>,
    /// Load of each point before its window.
    pub warmup: Nanos,
    /// Seed of every random choice.
    pub seed: u64,
    /// What the user calls the things that vary between runs.
    pub tags: Vec<Tag>,
}

/// What will be done.
#[derive(Debug, Clone)]
pub struct OrionPlan {
    /// What the run is before its first step.
    pub head: RunHead,
    /// Bytes of the volume that requests touch.
    pub region_bytes: u64,
    /// The points.
    pub walk: OrionWalk,
    options: OrionOptions,
    warmup: Nanos,
}

/// Plans a walk over a volume.
///
/// # Errors
/// As [`walk`], and [`PlanError::BuffersTooLarge`], [`PlanError::TagTwice`].
pub fn plan(request: &OrionRequest, facts: &Facts) -> Result<OrionPlan, PlanError> {
    let OrionRequest { options, luns, warmup, seed, tags } = request;
    let walk = walk(options, luns)?;
    let words = ["orion".to_owned(), options.run.name().to_owned()];
    let plan = OrionPlan {
        head: RunHead::new(tags, words, *seed, Load::Orion(walk.load(options)), [])?,
        region_bytes: facts.capacity_bytes,
        walk,
        options: options.clone(),
        warmup: *warmup,
    };
    for point in &plan.walk.points {
        check_buffers(plan.slots(point), plan.largest(point), Bytes(0), facts.available_memory)?;
    }
    Ok(plan)
}

impl OrionPlan {
    /// Point number `index` as a step.
    pub fn step(&self, index: u32, point: &OrionPoint) -> StepPlan<IoShape> {
        let classes = [self.small(point.small), self.large(point)];
        StepPlan {
            index,
            label: point.label(),
            load: Intensity { sessions: Some(self.slots(point)), ..Intensity::default() },
            level: Some(Level::Orion(OrionLevel { small: point.small, large: point.large })),
            like: None,
            shape: IoShape { classes: classes.into_iter().filter(|class| class.slots > 0).collect() },
            seed: seed_of_step(self.head.seed, index),
            work_loop: None,
            warmup: self.warmup,
            duration: self.options.duration,
            pace: Pace::Closed,
            // One thread, as ORION is: a stream that two threads shared would read everything twice.
            lanes: 1,
            share: Share::WHOLE,
        }
    }

    /// What goes before point number `index`, unmeasured.
    pub fn warming(&self, index: u32, point: &OrionPoint) -> Option<StepPlan<IoShape>> {
        let slots = point.large_requests(self.options.pattern).max(1);
        let (duration, work_loop) = match point.warming {
            Warming::None => return None,
            Warming::For(time) => (time, None),
            Warming::Bytes(Bytes(bytes)) => {
                let round = u64::from(slots).saturating_mul(self.options.size_large.0);
                (LONGEST_WARMING, Some(bytes.div_ceil(round.max(1)).max(1)))
            }
        };
        let anywhere = IoClass { access: ANYWHERE, streams: 1, slots, ..self.large(point) };
        Some(StepPlan {
            label: format!("warming before {}", point.label()),
            load: Intensity { sessions: Some(slots), ..Intensity::default() },
            level: None,
            shape: IoShape::of(anywhere),
            // What the point itself will ask for must not be in the cache.
            seed: seed_of_step(self.head.seed, u32::MAX - index),
            work_loop,
            warmup: Nanos(0),
            duration,
            ..self.step(index, point)
        })
    }

    /// The longest request of a point, in bytes.
    pub fn largest_bytes(&self, point: &OrionPoint) -> u32 {
        request_bytes(self.largest(point))
    }

    /// The longest request of all points, in bytes.
    pub fn largest_bytes_of_all(&self) -> u32 {
        self.walk.points.iter().map(|point| self.largest_bytes(point)).max().unwrap_or(0)
    }

    /// How long all points take, with each point's own warm-up and without warming.
    pub fn time_of_points(&self) -> Nanos {
        let of_one = self.warmup.0.saturating_add(self.options.duration.0);
        Nanos(of_one.saturating_mul(self.walk.points.len() as u64))
    }

    fn slots(&self, point: &OrionPoint) -> u32 {
        point.small.saturating_add(point.large_requests(self.options.pattern))
    }

    fn largest(&self, point: &OrionPoint) -> Bytes {
        match (point.small, point.large) {
            (_, 0) => self.options.size_small,
            (0, _) => self.options.size_large,
            _ => self.options.size_small.max(self.options.size_large),
        }
    }

    fn small(&self, slots: u32) -> IoClass {
        IoClass {
            size: RequestSize::Small,
            block_bytes: request_bytes(self.options.size_small),
            from_bytes: 0,
            region_bytes: self.region_bytes,
            access: ANYWHERE,
            read_pct: 100 - self.options.write_pct.min(100),
            streams: 1,
            slots,
        }
    }

    fn large(&self, point: &OrionPoint) -> IoClass {
        let (access, streams) = match self.options.pattern {
            LargePattern::Random => (ANYWHERE, 1),
            LargePattern::Sequential { .. } => (Access::Sequential, point.large.max(1)),
        };
        IoClass {
            size: RequestSize::Large,
            block_bytes: request_bytes(self.options.size_large),
            access,
            streams,
            slots: point.large_requests(self.options.pattern),
            ..self.small(0)
        }
    }
}

const ANYWHERE: Access = Access::Random(Distribution::Uniform);

fn request_bytes(Bytes(bytes): Bytes) -> u32 {
    u32::try_from(bytes).expect("ORION's options allow no request that large")
}
