//! From parameters to one step of load.

use super::PlanError;
use super::slob::SlobPlanRequest;
use load::{Share, StepPlan};
use model::config::{self, SlobParameters};
use model::record::Intensity;
use model::workload::{self, SlobShape, mix64};

/// Step number `index`, still without the label and the parameters that only the whole run decides. The scale of
/// `parameters` must be what operations choose from.
pub(super) fn step(
    request: &SlobPlanRequest,
    parameters: &SlobParameters,
    schemas: u32,
    index: u32,
) -> Result<StepPlan<SlobShape>, PlanError> {
    let sessions = parameters.sessions(schemas)?;
    Ok(StepPlan {
        index,
        label: String::new(),
        load: Intensity {
            sessions: Some(sessions),
            schemas: Some(schemas),
            threads_per_schema: Some(parameters.threads_per_schema),
            rate_operations_per_s: request.pace.rate_per_s(),
            arrival: request.pace.arrival(),
        },
        level: None,
        like: None,
        shape: shape(parameters, schemas),
        seed: seed_of_step(request.seed, index),
        work_loop: (parameters.work_loop > 0).then_some(parameters.work_loop),
        warmup: request.warmup.unwrap_or_else(|| SlobPlanRequest::default_warmup(parameters.run_time)),
        duration: parameters.run_time,
        pace: request.pace,
        lanes: request.lanes.unwrap_or(request.processors).clamp(1, sessions.max(1)),
        share: Share::WHOLE,
    })
}

/// The steps of a plan as one part of several carries them out: with as many threads as the plan has, and a share of its sessions.
///
/// # Errors
/// If a step cannot be shared out.
pub fn share_out<S>(steps: Vec<StepPlan<S>>, share: Share) -> Result<Vec<StepPlan<S>>, PlanError> {
    steps
        .into_iter()
        .map(|step| {
            check_share(&step.label, step.load.slots(), 1, share)?;
            if share.parts > 1 && step.work_loop.is_some() {
                return Err(PlanError::WorkLoopOfPart);
            }
            Ok(step.of_part(share))
        })
        .collect()
}

/// Refuses a load of which some of the threads of a part would have nothing.
pub(super) fn check_share(label: &str, sessions: u32, threads: u32, share: Share) -> Result<(), PlanError> {
    let (parts, needed) = (share.parts, share.parts.saturating_mul(threads));
    if parts > 1 && sessions < needed {
        return Err(PlanError::LessLoadThanParts { label: label.to_owned(), sessions, needed, parts });
    }
    Ok(())
}

/// Seed of one step. With the run's own seed in all of them, a step would ask again for the blocks that the step before
/// has just brought into the cache.
pub(super) fn seed_of_step(seed: u64, index: u32) -> u64 {
    if index == 0 { seed } else { mix64(seed ^ mix64(u64::from(index))) }
}

/// Number `time` of the measurements of a step's load, as step `index` of its run. Its operations are others: a cache may hold
/// what the first ones touched.
pub fn again<S: Clone>(step: &StepPlan<S>, index: u32, time: usize) -> StepPlan<S> {
    let seed = mix64(step.seed ^ mix64(!(time as u64)));
    StepPlan { index, label: format!("{}_{time}", step.label), seed, ..step.clone() }
}

fn shape(parameters: &SlobParameters, schemas: u32) -> SlobShape {
    // Only sizes depend on it, and those of the hot spot are counted in the data set's own blocks.
    let block_bytes = parameters.block_size.map_or(1, |size| size.0);
    SlobShape {
        schemas,
        threads_per_schema: parameters.threads_per_schema,
        scale_blocks: parameters.scale.blocks(block_bytes),
        work_unit: parameters.work_unit,
        update_pct: parameters.update_pct,
        update_share: None,
        scan_pct: parameters.scan_pct,
        redo_stress: match parameters.redo_stress {
            config::RedoStress::Lite => workload::RedoStress::Lite,
            config::RedoStress::Heavy => workload::RedoStress::Heavy,
        },
        hot_spot: parameters.hot_spot.map(|hot_spot| {
            let blocks = hot_spot.blocks(block_bytes);
            workload::HotSpot {
                offset_blocks: blocks.start,
                blocks: blocks.end - blocks.start,
                frequency: hot_spot.frequency,
            }
        }),
        hot_schema_frequency: parameters.hot_schema_frequency,
        think: parameters.think.map(|think| workload::Think {
            frequency: think.frequency,
            min_ns: think.min.0,
            max_ns: think.max.0,
        }),
    }
}
