//! The plan of a calibration: random reads of two sizes, at depths that are found on the way.

use super::io::{Facts, OWN_MEMORY, check_buffers};
use super::steps::seed_of_step;
use super::{PlanError, RunHead};
use crate::load::{Pace, Share, StepPlan};
use model::config::Tag;
use model::config::io::BlockSize;
use model::record::{CalibrateLevel, CalibrateLoad, Intensity, Level, Load};
use model::units::{Bytes, Nanos};
use model::workload::io::{Access, Distribution, IoClass, IoShape, RequestSize};

/// Most reads outstanding of each size. Deeper queues than these are found in no database, and a slot of a large read takes
/// a MiB of memory.
const MAX_SMALL: u32 = 1_024;
const MAX_LARGE: u32 = 128;
/// Reads outstanding from which another thread is worth its while.
const DEPTH_OF_A_LANE: u32 = 32;
/// The part of the available memory that buffers may take, as a divisor.
const SHARE_OF_MEMORY: u64 = 4;

/// What was asked for.
#[derive(Debug, Clone)]
pub struct CalibrateRequest {
    /// Length of a small read.
    pub small: BlockSize,
    /// Length of a large read.
    pub large: BlockSize,
    /// The latency limit, as it is recorded.
    pub max_latency: String,
    /// How much of the volume is read; all of it where nobody says.
    pub size: Option<Bytes>,
    /// Length of each window.
    pub duration: Nanos,
    /// Load before each window.
    pub warmup: Nanos,
    /// Seed of every random choice.
    pub seed: u64,
    /// What the user calls the things that vary between runs.
    pub tags: Vec<Tag>,
    /// Processors of this machine.
    pub processors: u32,
}

/// What will be done.
#[derive(Debug, Clone)]
pub struct CalibratePlan {
    /// What the run is before its first step.
    pub head: RunHead,
    /// Bytes of the volume that reads touch.
    pub region_bytes: u64,
    /// Most small reads outstanding.
    pub max_small: u32,
    /// Most large reads outstanding.
    pub max_large: u32,
    request: CalibrateRequest,
}

/// Plans a calibration of a volume.
///
/// # Errors
/// The first thing that cannot be done.
pub fn plan(request: &CalibrateRequest, facts: &Facts) -> Result<CalibratePlan, PlanError> {
    let CalibrateRequest { small, large, max_latency, size, tags, .. } = request;
    let capacity = Bytes(facts.capacity_bytes);
    let wanted = size.unwrap_or(capacity);
    if wanted > capacity {
        return Err(PlanError::VolumeTooSmall { asked: wanted, capacity });
    }
    let region_bytes = wanted.0 - wanted.0 % u64::from(large.bytes());
    if region_bytes == 0 {
        return Err(PlanError::VolumeTooSmall { asked: (*large).into(), capacity: wanted });
    }
    check_buffers(1, (*large).into(), Bytes(0), facts.available_memory)?;
    let most = |usual: u32, block: BlockSize| match facts.available_memory {
        None => usual,
        Some(Bytes(available)) => {
            let buffers = available.saturating_sub(OWN_MEMORY.0) / SHARE_OF_MEMORY / u64::from(block.bytes());
            usual.min(u32::try_from(buffers).unwrap_or(u32::MAX)).max(1)
        }
    };
    let (max_small, max_large) = (most(MAX_SMALL, *small), most(MAX_LARGE, *large));
    let load = CalibrateLoad { small: *small, large: *large, max_small, max_large, max_latency: max_latency.clone() };
    Ok(CalibratePlan {
        head: RunHead::new(tags, ["calibrate".to_owned()], request.seed, Load::Calibrate(load), [])?,
        region_bytes,
        max_small,
        max_large,
        request: request.clone(),
    })
}

impl CalibratePlan {
    /// Step number `index`: so many reads of a size outstanding, the `reading`-th time, counted from 1.
    pub fn step(&self, index: u32, block: BlockSize, depth: u32, reading: usize) -> StepPlan<IoShape> {
        let CalibrateRequest { duration, warmup, seed, processors, .. } = &self.request;
        let lanes = (depth / DEPTH_OF_A_LANE).clamp(1, (*processors).max(1));
        let again = if reading > 1 { format!("_r{reading}") } else { String::new() };
        StepPlan {
            index,
            label: format!("{block}_d{depth}{again}"),
            load: Intensity { sessions: Some(depth), ..Intensity::default() },
            level: Some(Level::Calibrate(CalibrateLevel { block, depth, jobs: lanes })),
            like: None,
            shape: IoShape::of(IoClass {
                size: RequestSize::Small,
                block_bytes: block.bytes(),
                from_bytes: 0,
                region_bytes: self.region_bytes,
                access: Access::Random(Distribution::Uniform),
                read_pct: 100,
                streams: lanes,
                slots: depth,
            }),
            // Places that were read before may have stayed in a cache.
            seed: seed_of_step(*seed, index),
            work_loop: None,
            warmup: *warmup,
            duration: *duration,
            pace: Pace::Closed,
            lanes,
            share: Share::WHOLE,
        }
    }

    /// How long a step lasts, warm-up included.
    pub fn step_time(&self) -> Nanos {
        Nanos(self.request.warmup.0.saturating_add(self.request.duration.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> CalibrateRequest {
        CalibrateRequest {
            small: "8K".parse().unwrap(),
            large: "1M".parse().unwrap(),
            max_latency: "mean=10ms".to_owned(),
            size: None,
            duration: Nanos::seconds(10),
            warmup: Nanos::seconds(2),
            seed: 7,
            tags: vec!["disk=p30".parse().unwrap()],
            processors: 4,
        }
    }

    const FACTS: Facts =
        Facts { capacity_bytes: (1 << 30) + 5_000, volumes: Vec::new(), unit_bytes: 512, available_memory: None };

    #[test]
    fn no_two_steps_read_the_same_places() {
        let plan = plan(&request(), &FACTS).unwrap();
        assert_eq!((plan.head.name.as_str(), plan.region_bytes), ("p30_calibrate", 1 << 30));
        let (first, again) = (plan.step(3, request().small, 64, 1), plan.step(9, request().small, 64, 2));
        assert_eq!((first.label.as_str(), again.label.as_str()), ("8K_d64", "8K_d64_r2"));
        assert_ne!(first.seed, again.seed);
        assert_eq!((first.lanes, first.shape.streams(), first.shape.sessions()), (2, 2, 64));
        assert_eq!(plan.step(0, request().large, 1, 1).lanes, 1);
    }

    #[test]
    fn buffers_never_take_more_than_a_part_of_the_memory() {
        let facts = Facts { available_memory: Some(Bytes::mib(192)), ..FACTS };
        let plan = plan(&request(), &facts).unwrap();
        assert_eq!((plan.max_small, plan.max_large), (1_024, 32));
        let none = Facts { available_memory: Some(Bytes::mib(32)), ..FACTS };
        assert!(matches!(super::plan(&request(), &none), Err(PlanError::BuffersTooLarge { .. })));
    }

    #[test]
    fn what_cannot_hold_a_large_read_is_refused() {
        let small = Facts { capacity_bytes: 1 << 19, ..FACTS };
        let error = plan(&request(), &small).unwrap_err();
        assert_eq!(error.to_string(), "1 MiB are to be used, but there are only 512 KiB");
        let large = CalibrateRequest { size: Some(Bytes::gib(2)), ..request() };
        assert!(matches!(plan(&large, &FACTS), Err(PlanError::VolumeTooSmall { .. })));
    }
}
