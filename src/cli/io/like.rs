//! Requests to raw storage like a production's, from their plan to the report.

use crate::cli::dry_run::DryRun;
use std::collections::BTreeMap;

pub(super) use crate::cli::like::refuse;

use super::arguments::{OutputArgs, ShapeArgs, Storage, TimeArgs, VolumeArgs};
use super::volume::{Intended, OpenStorage, Prospect};
use crate::cli::exit::{Exit, Failure};
use crate::cli::fleet::{Experiment, Fleet, Joined};
use crate::cli::live::{RunProgress, Steps};
use crate::cli::recording::{Header, Recording};
use crate::cli::timed::Timed;
use crate::cli::{Interrupt, in_turn, limits};
use crate::plan::like::{IoLikePlan, IoRequest, plan_io};
use crate::plan::share_out;
use load::StepPlan;
use measure::Clock;
use model::config::io::{DepthList, IoOptions, Pattern};
use model::record::{self, Like, Work, WorkFigure};
use model::units::{Bytes, Nanos};
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

/// Plans and checks everything, carries it out, keeps it and reports it.
pub(super) fn run(job: &Job<'_>) -> Result<Exit, Failure> {
    let Job { volume, storage, shape, production, fleet, output, .. } = job;
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
        let plan = plan_io(&request(job, seed, region_bytes))?;
        let steps = share_out(plan.steps(), fleet.share())?;
        let experiment = Experiment::new(&plan.head, &steps);
        Ok(((plan, steps), experiment))
    })?;
    limits::check_planned(&output.limits, &Timed::of_io_blends(plan.shapes()))?;
    if output.keeping.dry_run {
        let described = DryRun::named(&plan.head.name)
            .facts("path", prospect.members().iter().map(|(path, bytes)| format!("{} of {bytes}", path.display())));
        let described = prospect
            .describe_fills(described)
            .fact("touch", Bytes(region_bytes))
            .fact("seed", plan.head.seed)
            .settings(&plan.head.tags, &BTreeMap::new())
            .like(&plan.like);
        let load = |step: &StepPlan<IoBlend>| {
            let rate = step.load.rate_operations_per_s.unwrap_or(0.0);
            format!("{rate:.1} requests/s, at most {} outstanding", step.load.slots())
        };
        let described =
            steps.iter().fold(described, |it, step| it.step(&step.label, &load(step), step.warmup, step.duration));
        return described.part(&joined).print(Some(time_of(&steps)), prospect.clock().is_simulated());
    }
    let interrupt = Interrupt::listen()?;
    let (clock, verbosity) = (prospect.clock(), output.keeping.progress.verbosity());
    let intended = Intended { region_bytes, largest_bytes: plan.largest_bytes(), seed: plan.head.seed };
    let opened = prospect.open(&asked, intended, clock, &interrupt, verbosity)?;
    let mut recording = begin(job, &plan, (&steps, region_bytes), &joined, &opened, (clock, &interrupt))?;
    recording.be_like(plan.like.clone());
    let repeated: &[_] = if joined.may_repeat() { &output.limits } else { &[] };
    let wanted = in_turn::run(&mut recording, opened.target(), &steps, repeated);
    drop(opened);
    recording.end(wanted).report(output.keeping.format.format(), &output.limits, &interrupt)
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
        processors: std::thread::available_parallelism().map_or(1, |processors| processors.get() as u32),
    }
}

/// How long load runs, warm-up included.
fn time_of(steps: &[StepPlan<IoBlend>]) -> Nanos {
    Nanos(steps.iter().map(|step| step.warmup.0.saturating_add(step.duration.0)).fold(0, u64::saturating_add))
}

fn begin(
    job: &Job<'_>,
    plan: &IoLikePlan,
    (steps, region_bytes): (&[StepPlan<IoBlend>], u64),
    joined: &Joined,
    opened: &OpenStorage,
    (clock, interrupt): (Clock, &Interrupt),
) -> Result<Recording, Failure> {
    let progress = RunProgress::new(Steps::Known(steps.len(), time_of(steps)), job.output.keeping.progress.verbosity());
    let notes = opened.target().notes();
    notes.iter().for_each(|note| progress.note(note));
    let header = Header {
        head: plan.head.clone(),
        check: None,
        target: record::Target {
            block_bytes: Some(u64::from(job.shape.block_size.bytes())),
            data_bytes: Some(region_bytes),
            ..opened.target().describe()
        },
        paths: job.storage.local(),
        notes,
        fleet: Some(joined),
    };
    Recording::begin(&job.output.keeping.runs.store(), header, clock, interrupt, progress)
}
