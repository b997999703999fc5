//! A run on raw storage from its plan to its report.

use super::arguments::{OutputArgs, Storage, TimeArgs, VolumeArgs};
use super::volume::{Intended, OpenStorage, Prospect};
use crate::cli::dry_run::DryRun;
use crate::cli::exit::{Exit, Failure};
use crate::cli::fleet::{Experiment, Fleet, Joined};
use crate::cli::live::{ByteProgress, RunProgress, Steps, Verbosity};
use crate::cli::recording::{Header, Recorded, Recording};
use crate::cli::timed::Timed;
use crate::cli::{Interrupt, in_turn, limits, say};
use crate::plan::io::{IoPlan, IoPlanRequest, plan};
use analysis::{LatencyTarget, MIN_SECONDS, SearchPlan};
use load::{Share, Stop, generator_ceiling};
use measure::Clock;
use model::config::io::{Chosen, Connections, IoLevel, IoOptions, RateRange, Verify, Volumes, letter};
use model::record::facts::{DEVICES_SHARED, VOLUME_PATH};
use model::record::{self, Level};
use model::units::{Nanos, group_thousands};
use targets::TargetError;
use targets::block::{Block, devices_shared};

/// A run that is asked for.
pub(super) struct Job<'a> {
    /// Length of the rounds in which a long load is reported; absent for another load.
    pub(super) round: Option<Nanos>,
    pub(super) volume: &'a VolumeArgs,
    pub(super) storage: &'a Storage,
    pub(super) asked: IoOptions,
    pub(super) time: &'a TimeArgs,
    /// Seed of every random choice; a fresh one where absent.
    pub(super) seed: Option<u64>,
    /// What else the record is to say of the target.
    pub(super) facts: Vec<(String, String)>,
    pub(super) fleet: &'a Fleet,
    pub(super) output: &'a OutputArgs,
}

/// A run that is planned and checked, and has touched nothing.
pub(super) struct Prepared {
    pub(super) plan: IoPlan,
    joined: Joined,
    prospect: Prospect,
    facts: Vec<(String, String)>,
}

/// Plans and checks everything, carries it out, keeps it and reports it.
pub(super) fn run(job: &Job<'_>) -> Result<Exit, Failure> {
    let Job { output, .. } = job;
    let prepared = prepare(job)?;
    if output.keeping.dry_run {
        let time = load_time(&job.asked, &prepared.plan);
        return prepared.described(&job.asked).print(Some(time), prepared.prospect.clock().is_simulated());
    }
    let interrupt = Interrupt::listen()?;
    record(job, prepared, &interrupt)?.report(output.keeping.format.format(), &output.limits, &interrupt)
}

/// Plans and checks everything.
pub(super) fn prepare(job: &Job<'_>) -> Result<Prepared, Failure> {
    let Job { storage, volume, asked, fleet, output, .. } = job;
    asked.check()?;
    super::check_connections(storage, &asked.connections)?;
    fleet.refuse_search(asked.rates.as_ref())?;
    fleet.refuse(
        asked.verify == Verify::Blocks && asked.writes(),
        "writes that are checked",
        "leave `--verify` out: a part knows what it wrote itself, and storage may be that of all",
    )?;
    let prospect = Prospect::look(storage, &volume.handling, asked)?;
    let facts = prospect.facts(asked)?;
    let (mut plan, joined) = fleet.plan(job.seed, &mut |seed| {
        let plan = plan(&request(job, seed), &facts)?;
        let experiment = Experiment::new(&plan.head, &plan.steps());
        Ok((plan, experiment))
    })?;
    limits::check_planned(&output.limits, &Timed::of_io(&plan))?;
    let volumes = look_together(job, &prospect)?;
    let varied = super::look_connections(asked, storage, asked.jobs.saturating_mul(fleet.share().parts));
    let facts = volumes.facts.into_iter().chain(varied.facts).chain(job.facts.iter().cloned()).collect();
    plan.notes.extend(volumes.notes.into_iter().chain(varied.notes));
    plan.notes.iter().for_each(say::note);
    Ok(Prepared { plan, joined, prospect, facts })
}

/// Carries out what was prepared, and keeps it.
pub(super) fn record(job: &Job<'_>, prepared: Prepared, interrupt: &Interrupt) -> Result<Recorded, Failure> {
    let Job { asked, fleet, output, .. } = job;
    let Prepared { plan, joined, prospect, facts } = prepared;
    let (clock, verbosity) = (prospect.clock(), output.keeping.progress.verbosity());
    let intended =
        Intended { region_bytes: plan.region_bytes, largest_bytes: asked.block.bytes(), seed: plan.head.seed };
    let opened = prospect.open(asked, intended, clock, interrupt, verbosity)?;
    check_rates(asked, &plan, fleet.share(), &opened, clock, interrupt.stop())?;
    let mut recording = begin(job, &plan, &joined, facts, &opened, clock, interrupt)?;
    let repeats = |limits: &[LatencyTarget]| if joined.may_repeat() { limits.to_vec() } else { Vec::new() };
    let wanted = match &asked.rates {
        Some(RateRange::Between { lowest, highest }) => {
            let most = plan.levels.first().map_or(1, |level| level.slots());
            let limits = limits::of_lines(&output.limits);
            crate::cli::run_search(&mut recording, (*lowest, *highest), &limits, &mut |recording, index, per_s| {
                recording.step(opened.target(), &plan.step(index, IoLevel::Rate { per_s, most }))
            })
        }
        Some(RateRange::Each(_)) => each(&mut recording, &plan, &opened, &repeats(&limits::of_lines(&output.limits))),
        // Volumes and connections are measured in turns, and a repeat out of turn would not be like them.
        None if asked.volumes != Volumes::One || asked.connections != Connections::Addressed => {
            each(&mut recording, &plan, &opened, &[])
        }
        None => each(&mut recording, &plan, &opened, &repeats(&output.limits)),
    };
    if let OpenStorage::Block(block) = &opened {
        run_read_back(&mut recording, block, interrupt, verbosity);
    }
    drop(opened);
    Ok(recording.end(wanted))
}

/// Refuses a rate that this machine could not even send to no device at all.
fn check_rates(
    asked: &IoOptions,
    plan: &IoPlan,
    share: Share,
    opened: &OpenStorage,
    clock: Clock,
    stop: &Stop,
) -> Result<(), Failure> {
    let Some(RateRange::Each(rates)) = &asked.rates else { return Ok(()) };
    let Some((index, per_s)) = (0..).zip(rates.iter().copied()).max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return Ok(());
    };
    let per_s = per_s / f64::from(share.parts.max(1));
    let step = plan.step(index, plan.levels[index as usize]);
    let Some(ceiling) = generator_ceiling(opened.target(), &step, clock, stop) else { return Ok(()) };
    if per_s <= ceiling {
        return Ok(());
    }
    let threads =
        if asked.jobs == 1 { "one thread reaches".to_owned() } else { format!("{} threads reach", asked.jobs) };
    let ceiling = group_thousands(ceiling);
    let failure = Failure::new(format_args!(
        "a rate of {} requests/s cannot be met: with no device at all, {threads} {ceiling}/s here",
        group_thousands(per_s)
    ));
    Err(failure.with_hint("ask for a lower rate, or for more threads with `--jobs`".to_owned()))
}

fn request(job: &Job<'_>, seed: u64) -> IoPlanRequest {
    let Job { asked, time, fleet, output, .. } = job;
    IoPlanRequest {
        asked: asked.clone(),
        duration: time.duration.0,
        warmup: time.warmup.0,
        arrival: asked.arrival.unwrap_or_default(),
        round: job.round,
        seed,
        tags: output.keeping.tags.clone(),
        share: fleet.share(),
    }
}

fn begin(
    job: &Job<'_>,
    plan: &IoPlan,
    joined: &Joined,
    facts: Vec<(String, String)>,
    opened: &OpenStorage,
    clock: Clock,
    interrupt: &Interrupt,
) -> Result<Recording, Failure> {
    let steps = match job.asked.rates {
        Some(RateRange::Between { .. }) => Steps::UpTo(SearchPlan::default().max_points),
        Some(RateRange::Each(_)) | None => Steps::Known(plan.levels.len(), load_time(&job.asked, plan)),
    };
    let progress = RunProgress::new(steps, job.output.keeping.progress.verbosity());
    let notes = opened.target().notes();
    notes.iter().for_each(|note| progress.note(note));
    let mut target = opened.target().describe();
    target.facts.extend(facts);
    let header = Header {
        head: plan.head.clone(),
        check: None,
        target: record::Target {
            block_bytes: Some(u64::from(job.asked.block.bytes())),
            data_bytes: Some(plan.region_bytes),
            ..target
        },
        paths: job.storage.local(),
        notes: plan.notes.iter().cloned().chain(notes).collect(),
        fleet: Some(joined),
    };
    Recording::begin(&job.output.keeping.runs.store(), header, clock, interrupt, progress)
}

/// How long load is on: of a search, at most.
fn load_time(asked: &IoOptions, plan: &IoPlan) -> Nanos {
    let steps = match asked.rates {
        Some(RateRange::Between { .. }) => SearchPlan::default().max_points,
        Some(RateRange::Each(_)) | None => plan.levels.len(),
    };
    Nanos(plan.step_time().0.saturating_mul(steps as u64))
}

/// Every level in turn. Returns how many steps a whole run has.
fn each(recording: &mut Recording, plan: &IoPlan, opened: &OpenStorage, limits: &[LatencyTarget]) -> usize {
    in_turn::run_by(recording, &plan.steps(), limits, &mut |recording, step| {
        if let Some(Level::Io(IoLevel::Connections { each, .. })) = step.level {
            opened.use_connections(each);
        }
        recording.step(opened.target(), step)
    })
}

impl Prepared {
    /// What would be done.
    pub(super) fn described(&self, asked: &IoOptions) -> DryRun {
        let Self { plan, prospect, .. } = self;
        let mut described = DryRun::named(&plan.head.name);
        for (volume, path) in asked.paths.iter().enumerate() {
            described = match asked.volumes {
                Volumes::One => described.fact("path", path.display()),
                Volumes::Each { .. } => described.fact(&format!("volume {}", letter(volume)), path.display()),
            };
        }
        described = prospect
            .describe_fills(described)
            .fact("touch", model::units::Bytes(plan.region_bytes))
            .fact("seed", plan.head.seed)
            .settings(&plan.head.tags, &plan.head.parameters);
        if let Some(RateRange::Between { lowest, highest }) = asked.rates {
            let (most, each) = (SearchPlan::default().max_points, plan.step_time());
            let search = format!("search from {lowest} to {highest} requests/s in at most {most} steps of {each} each");
            return described.gap().line(search).part(&self.joined);
        }
        let steps = (0..).zip(&plan.levels).map(|(index, level)| (plan.step(index, *level), level_words(*level)));
        steps
            .fold(described, |it, (step, load)| it.step(&step.label, &load, step.warmup, step.duration))
            .part(&self.joined)
    }
}

fn level_words(level: IoLevel) -> String {
    match level {
        IoLevel::Depth(depth) => format!("{depth} outstanding"),
        IoLevel::Rate { per_s, most } => format!("{per_s} requests/s, at most {most} outstanding"),
        IoLevel::Volumes { depth, chosen: Chosen::One(volume), .. } => {
            format!("{depth} outstanding on {}", letter(volume))
        }
        IoLevel::Volumes { depth, chosen, .. } => format!("{depth} outstanding on each of {chosen}"),
        IoLevel::Connections { depth, each, .. } => {
            let plural = if each == 1 { "" } else { "s" };
            format!("{depth} outstanding over {each} connection{plural} of each thread to each path")
        }
    }
}

// `--verify`: after the load, every block that it wrote is read back.

/// Reads back what was written, and says so in the record. A bad block fails the run.
fn run_read_back(recording: &mut Recording, block: &Block, interrupt: &Interrupt, verbosity: Verbosity) {
    if !block.is_checked() || !recording.is_going_well() {
        return;
    }
    recording.progress().end();
    let progress = ByteProgress::new("reading back", verbosity);
    let result = block.read_back(&|now| progress.update(now.done_bytes, now.total_bytes), interrupt.flag());
    progress.end();
    match result {
        Ok(0) => recording.note("every block that was read held what was written there".to_owned()),
        Ok(blocks) => {
            let blocks = group_thousands(blocks as f64);
            recording.note(format!(
                "every block that was read held what was written there; the {blocks} blocks written were read back and are \
                 sound"
            ));
        }
        Err(TargetError::Interrupted) => {
            recording.note("reading back was cut short: not every block that was written was checked".to_owned());
            recording.cut_short();
        }
        Err(error) => recording.fail(error),
    }
}

/// What is known of the volumes before they are loaded.
#[derive(Default)]
struct Compared {
    /// For the record: which letter is which path, and which devices several have in common.
    pub(super) facts: Vec<(String, String)>,
    /// What the user should know.
    pub(super) notes: Vec<String>,
}

/// Looks what the volumes are; nothing if all paths are one. Two paths on one device are refused.
fn look_together(job: &Job<'_>, prospect: &Prospect) -> Result<Compared, Failure> {
    let Volumes::Each { rounds } = job.asked.volumes else { return Ok(Compared::default()) };
    let mut compared = Compared::default();
    let seconds = job.time.duration.0.as_seconds() * f64::from(rounds);
    if seconds < MIN_SECONDS as f64 {
        compared.notes.push(format!(
            "{rounds} x {} leave too little to judge by: at least {MIN_SECONDS} undisturbed seconds of each load are \
             needed; use a longer `--duration`",
            job.time.duration.0
        ));
    }
    let names = match job.storage {
        Storage::Paths(paths) | Storage::Nfs { paths, .. } | Storage::Group { paths, .. } => {
            paths.iter().map(|path| path.display().to_string()).collect()
        }
        Storage::Simulated(_) => vec!["sim:".to_owned(); prospect.facts(&job.asked)?.volumes.len()],
    };
    let fact = |(volume, name): (usize, String)| (format!("{VOLUME_PATH}{}", letter(volume)), name);
    compared.facts = names.into_iter().enumerate().map(fact).collect();
    let shared = devices_shared(job.storage.local()).map_err(targets::TargetError::from)?;
    if !shared.is_empty() {
        compared.notes.push(format!(
            "several of these volumes lie on `{}`: a limit that they share may be that of this device rather than of the \
             machine",
            shared.join("`, `")
        ));
        compared.facts.push((DEVICES_SHARED.to_owned(), shared.join(" ")));
    }
    Ok(compared)
}
