//! The plan of a run on raw storage that is like a production.

use super::io::io;
use super::marks::{self, LikeStep};
use crate::load::StepPlan;
use crate::plan::check::blend;
use crate::plan::{PlanError, RunHead};
use model::config::Tag;
use model::config::io::BlockSize;
use model::record::{IoMix, Like, Load};
use model::units::Nanos;
use model::workload::io::{IoBlend, IoPart};

/// What was asked for.
#[derive(Debug, Clone)]
pub struct IoRequest {
    /// The production.
    pub like: Like,
    /// Multiples of it.
    pub times: Vec<f64>,
    /// Length of a single-block request.
    pub block: BlockSize,
    /// Bytes of the volume that requests touch.
    pub region_bytes: u64,
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
pub struct IoLikePlan {
    /// What the run is before its first step.
    pub head: RunHead,
    /// Production, with what is asked for and what is not.
    pub like: Like,
    request: IoRequest,
    shapes: Vec<IoBlend>,
}

/// Plans requests like a production's.
///
/// # Errors
/// If nothing that is reported can be asked for, or the volume is too small.
pub fn plan_io(request: &IoRequest) -> Result<IoLikePlan, PlanError> {
    let mut like = request.like.clone();
    let busiest = marks::busiest(&like).map(|moment| moment.name.clone());
    let mut shapes = Vec::with_capacity(like.moments.len());
    let mut aspects = Vec::new();
    for mut moment in std::mem::take(&mut like.moments) {
        let of_moment = io(&moment.work, request.block.bytes(), request.region_bytes);
        if Some(&moment.name) == busiest.as_ref() {
            aspects = of_moment.aspects;
        }
        // An hour in which nothing happens has no load.
        if !of_moment.parts.is_empty() {
            shapes.push(blend(of_moment.parts, request.region_bytes, request.processors)?);
            moment.asked = of_moment.asked;
            like.moments.push(moment);
        }
    }
    like.aspects = aspects;
    if shapes.is_empty() {
        return Err(PlanError::NothingAlike { database: like.database });
    }
    let load = Load::IoMix(IoMix { block: request.block });
    let name = marks::name(&like, &request.times);
    Ok(IoLikePlan {
        head: RunHead::new(&request.tags, name, request.seed, load, [])?.like(&request.times),
        like,
        request: request.clone(),
        shapes,
    })
}

impl IoLikePlan {
    /// The longest request.
    pub fn largest_bytes(&self) -> u32 {
        self.shapes.iter().flat_map(|shape| &shape.parts).map(|part| part.block_bytes).max().unwrap_or(1)
    }

    /// Kinds of request of all steps.
    pub fn shapes(&self) -> &[IoBlend] {
        &self.shapes
    }

    /// Every moment at every multiple.
    pub fn steps(&self) -> Vec<StepPlan<IoBlend>> {
        marks::all(self.shapes.len(), &self.request.times, |index, moment, times| self.step(index, moment, times))
    }

    fn step(&self, index: u32, moment: usize, times: f64) -> Option<StepPlan<IoBlend>> {
        let (shape, of) = (self.shapes.get(moment)?, self.like.moments.get(moment)?);
        let per_s = shape.parts.iter().map(|part| part.per_s).sum();
        // What a multiple needs more threads for.
        let shape = blend(
            shape.parts.iter().map(|part| IoPart { per_s: part.per_s * times, ..*part }).collect(),
            self.request.region_bytes,
            self.request.processors,
        )
        .ok()?;
        let place = LikeStep {
            index,
            like: &self.like,
            moment: of,
            times,
            seed: self.request.seed,
            time: (self.request.warmup, self.request.duration),
            slots: (shape.slots, shape.streams),
        };
        Some(marks::step(place, shape, per_s, None))
    }
}
