//! Requests to raw storage like a production's, from their plan to the report.

use crate::cli::dry_run::DryRun;
use std::collections::BTreeMap;

pub(super) use crate::cli::like::refuse;

use super::arguments::{OutputArgs, ShapeArgs, Storage, TimeArgs, VolumeArgs};
use super::volume::{Intended, Prospect};
use crate::cli::exit::Failure;
use crate::cli::fleet::{Experiment, Fleet, Joined};
use crate::cli::live::Steps;
use crate::cli::recording::Recorded;
use crate::cli::runner::{self, Beginning, Outline};
use crate::cli::timed::Timed;
use crate::cli::{in_turn, limits, processors};
use crate::plan::like::{IoLikePlan, IoRequest, plan_io};
use crate::plan::share_out;
use load::StepPlan;
use model::config::io::{DepthList, IoOptions, Pattern};
use model::record::{Like, Work, WorkFigure};
use model::units::Bytes;
use model::workload::io::IoBlend;

/// A run that is asked for.
pub(super) struct Job<'a> {
    pub(super) volume: &'a VolumeArgs,
    pub(super) storage: &'a Storage,
    pub(super) shape: &'a ShapeArgs,
    pub(super) production: Like,
    pub(super) times: f64,
    pub(super) time: &'a TimeArgs,
    pub(super) fleet: &'a Fleet,
    pub(super) output: &'a OutputArgs,
}

/// The load of a production, planned and checked.
pub(super) struct Planned<'a> {
    job: Job<'a>,
    asked: IoOptions,
    region_bytes: u64,
    plan: IoLikePlan,
    steps: Vec<StepPlan<IoBlend>>,
    joined: Joined,
    prospect: Prospect,
}

/// Plans and checks everything.
pub(super) fn plan(job: Job<'_>) -> Result<Planned<'_>, Failure> {
    let Job { volume, storage, shape, production, fleet, output, .. } = &job;
    let asked = IoOptions {
        durable: shape.durable,
        ..volume.asked(storage, pattern(production), shape.block_size, DepthList(vec![1]))
    };
    let prospect = Prospect::look(storage, &volume.handling, &asked)?;
    let capacity = prospect.facts(&asked)?.capacity_bytes;
    if let Some(size) = volume.size.filter(|size| size.0 > capacity) {
        return Err(crate::plan::PlanError::VolumeTooSmall { asked: size, capacity: Bytes(capacity) }.into());
    }
    let region_bytes = volume.size.map_or(capacity, |size| size.0);
    let ((plan, steps), joined) = fleet.plan(job.time.seed.given(), &mut |seed| {
        let plan = plan_io(&request(&job, seed, region_bytes))?;
        let steps = share_out(plan.steps(), fleet.share())?;
        let experiment = Experiment::new(&plan.head, &steps);
        Ok(((plan, steps), experiment))
    })?;
    limits::check_planned(&output.limits.asked(), &Timed::of_io_blends(plan.shapes()))?;
    Ok(Planned { job, asked, region_bytes, plan, steps, joined, prospect })
}

impl<'a> runner::Work<'a> for Planned<'a> {
    fn outline(&self) -> Outline<'a> {
        let output = self.job.output;
        Outline {
            joined: Some(self.joined.clone()),
            limits: output.limits.asked(),
            like: Some(self.plan.like.clone()),
            is_simulated: self.prospect.clock().is_simulated(),
            ..Outline::new(&self.plan.head, &output.keeping, Steps::of(&self.steps))
        }
    }

    fn described(self) -> Result<DryRun, Failure> {
        let Self { plan, steps, prospect, region_bytes, .. } = self;
        let described = DryRun::named(&plan.head.name)
            .facts("path", prospect.members().iter().map(|(path, bytes)| format!("{} of {bytes}", path.display())));
        let described = prospect
            .describe_fills(described)
            .fact("touch", Bytes(region_bytes))
            .fact("seed", plan.head.seed)
            .settings(&plan.head.tags, &BTreeMap::new())
            .like(&plan.like);
        Ok(described.steps(&steps, |step| {
            let rate = step.load.rate_operations_per_s.unwrap_or(0.0);
            format!("{rate:.1} requests/s, at most {} outstanding", step.load.slots())
        }))
    }

    fn carry_out(self, beginning: Beginning<'_>) -> Result<Recorded, Failure> {
        let Self { job: Job { output, storage, .. }, asked, region_bytes, plan, steps, prospect, .. } = self;
        let (clock, verbosity) = (prospect.clock(), output.keeping.progress.verbosity());
        let intended = Intended { region_bytes, largest_bytes: plan.largest_bytes(), seed: plan.head.seed };
        let opened = prospect.open(&asked, intended, clock, beginning.interrupt, verbosity)?;
        let landing = opened.landing(clock, Bytes(asked.block.bytes().into()), region_bytes, storage.local());
        let mut recording = beginning.record(landing)?;
        let wanted = in_turn::run(&mut recording, opened.target(), &steps, &output.limits.asked());
        opened.note_of_the_load().into_iter().for_each(|note| recording.note(note));
        drop(opened);
        Ok(recording.end(wanted))
    }
}

/// What storage is opened for.
fn pattern(production: &Like) -> Pattern {
    let does = |figure: WorkFigure| {
        let rate = |work: &Work| work.get(&figure).copied().unwrap_or(0.0);
        production.moments.iter().any(|moment| rate(&moment.work) > 0.0)
    };
    match (does(WorkFigure::Reads), does(WorkFigure::Writes)) {
        (true, true) => Pattern::RandRw,
        (false, true) => Pattern::RandWrite,
        (_, false) => Pattern::RandRead,
    }
}

fn request(job: &Job<'_>, seed: u64, region_bytes: u64) -> IoRequest {
    IoRequest {
        like: job.production.clone(),
        times: vec![job.times],
        block: job.shape.block_size,
        region_bytes,
        duration: job.time.duration.0,
        warmup: job.time.warmup.0,
        seed,
        tags: job.output.keeping.tags.clone(),
        processors: processors(),
    }
}
