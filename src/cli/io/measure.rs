//! A run on raw storage from its plan to its report.

use super::arguments::{OutputArgs, Storage, TimeArgs, VolumeArgs};
use super::volume::{Intended, OpenStorage, Prospect};
use crate::cli::dry_run::DryRun;
use crate::cli::exit::{Exit, Failure};
use crate::cli::fleet::{Experiment, Fleet, Joined};
use crate::cli::live::{ByteProgress, Verbosity};
use crate::cli::recording::{Recorded, Recording};
use crate::cli::runner::{self, Beginning, Outline, Work};
use crate::cli::second_look::{self, Experiments};
use crate::cli::timed::Timed;
use crate::cli::{Interrupt, in_turn, limits, processors, say};
use crate::plan::io::{IoPlan, IoPlanRequest, plan};
use analysis::MIN_SECONDS;
use load::{Compiled as _, Share, StepPlan, Stop};
use measure::Clock;
use model::config::io::{Chosen, Connections, IoLevel, IoOptions, RateRange, Verify, Volumes, letter};
use model::record::{KernelClient, Level, NfsFacts, TargetFacts, VolumeFacts};
use model::units::{Bytes, Nanos, group_thousands};
use model::workload::io::IoShape;
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
    /// What stands between the file and its server, where that is held against a client of our own.
    pub(super) kernel_client: Option<KernelClient>,
    pub(super) fleet: &'a Fleet,
    /// What follows the last step, to tell which limit it is.
    pub(super) experiments: Experiments,
    pub(super) output: &'a OutputArgs,
}

/// A run that is planned and checked, and has touched nothing.
pub(super) struct Prepared<'a> {
    job: Job<'a>,
    pub(super) plan: IoPlan,
    joined: Joined,
    prospect: Prospect,
    facts: TargetFacts,
}

/// Plans and checks everything, carries it out, keeps it and reports it.
pub(super) fn run(job: Job<'_>) -> Result<Exit, Failure> {
    runner::run(prepare(job)?)
}

/// Plans and checks everything.
pub(super) fn prepare(job: Job<'_>) -> Result<Prepared<'_>, Failure> {
    let Job { storage, volume, asked, fleet, output, .. } = &job;
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
        let plan = plan(&request(&job, seed), &facts)?;
        let experiment = Experiment::new(&plan.head, &plan.steps());
        Ok((plan, experiment))
    })?;
    limits::check_planned(&output.limits.asked(), &Timed::of_io(&plan))?;
    let volumes = look_together(&job, &prospect)?;
    let varied = super::look_connections(asked, storage, asked.jobs.saturating_mul(fleet.share().parts));
    let nfs =
        NfsFacts { connections: varied.connections, kernel_client: job.kernel_client.clone(), ..NfsFacts::default() };
    let facts = TargetFacts { volumes: volumes.facts, nfs, ..TargetFacts::default() };
    plan.notes.extend(volumes.notes.into_iter().chain(varied.notes).chain(crowd(asked.jobs, processors())));
    plan.notes.iter().for_each(say::note);
    Ok(Prepared { job, plan, joined, prospect, facts })
}

/// So many threads for each processor measure how they wait for it.
const MANY_THREADS: u32 = 32;

/// A warning of more threads than processors can be shared out to.
fn crowd(jobs: u32, processors: u32) -> Option<String> {
    (jobs > processors.saturating_mul(MANY_THREADS)).then(|| {
        format!(
            "{} threads share {processors} processors: times have the wait for one in them, and rates may be this machine's limit",
            group_thousands(f64::from(jobs))
        )
    })
}

impl<'a> Work<'a> for Prepared<'a> {
    fn outline(&self) -> Outline<'a> {
        let Job { asked, output, .. } = &self.job;
        let IoPlan { head, levels, .. } = &self.plan;
        Outline {
            joined: Some(self.joined.clone()),
            limits: output.limits.asked(),
            is_simulated: self.prospect.clock().is_simulated(),
            ..Outline::of_rates(head, &output.keeping, asked.rates.as_ref(), levels.len(), self.plan.step_time())
        }
    }

    fn described(self) -> Result<DryRun, Failure> {
        let Self { job: Job { asked, experiments, .. }, plan, prospect, .. } = self;
        let described = asked.paths.iter().enumerate().fold(DryRun::named(&plan.head.name), |it, (volume, path)| {
            match asked.volumes {
                Volumes::One => it.fact("path", path.display()),
                Volumes::Each { .. } => it.fact(&format!("volume {}", letter(volume)), path.display()),
            }
        });
        let described = prospect
            .describe_fills(described)
            .fact("touch", Bytes(plan.region_bytes))
            .fact("seed", plan.head.seed)
            .settings(&plan.head.tags, &plan.head.parameters);
        let described = experiments.of(&asked).describe(described);
        Ok(described.rates(asked.rates.as_ref(), "requests", plan.step_time(), &plan.steps(), level_words))
    }

    fn carry_out(self, beginning: Beginning<'_>) -> Result<Recorded, Failure> {
        let Self { job: Job { asked, fleet, experiments, output, storage, .. }, plan, prospect, mut facts, .. } = self;
        let (clock, verbosity) = (prospect.clock(), output.keeping.progress.verbosity());
        let (interrupt, block) = (beginning.interrupt, asked.block.bytes());
        let experiments = experiments.of(&asked);
        let largest_bytes = experiments.largest_bytes(block);
        let intended = Intended { region_bytes: plan.region_bytes, largest_bytes, seed: plan.head.seed };
        let opened = prospect.open(&asked, intended, clock, interrupt, verbosity)?;
        check_rates(&asked, &plan, fleet.share(), &opened, clock, interrupt.stop())?;
        let mut landing = opened.landing(clock, Bytes(block.into()), plan.region_bytes, storage.local());
        // What was asked for stands, and not what the storage says of its usual way.
        facts.fill(&landing.target.facts);
        landing.target.facts = facts;
        landing.said.clone_from(&plan.notes);
        let mut recording = beginning.record(landing)?;
        let rates = asked.rates.as_ref();
        // Volumes and connections are measured in turns, and a repeat out of turn would not be like them.
        let in_turns = asked.volumes != Volumes::One || asked.connections != Connections::Addressed;
        let limits = if in_turns && rates.is_none() { Vec::new() } else { output.limits.asked() };
        let most = plan.levels.first().map_or(1, |level| level.slots());
        let mut step_at = |index, per_s| Some(plan.step(index, IoLevel::Rate { per_s, most }));
        let wanted =
            in_turn::run_rates(&mut recording, rates, &plan.steps(), &limits, &mut step_at, &mut |recording, step| {
                if let Some(Level::Io(IoLevel::Connections { each, .. })) = step.level {
                    opened.use_connections(each);
                }
                recording.step(opened.target(), step)
            });
        second_look::run(experiments, &mut recording, opened.target(), &plan.steps());
        if let OpenStorage::Block(block) = &opened {
            run_read_back(&mut recording, block, interrupt, verbosity);
        }
        opened.note_of_the_load().into_iter().for_each(|note| recording.note(note));
        drop(opened);
        Ok(recording.end(wanted))
    }
}

/// How often the load generator is asked what it reaches before a rate is refused: each takes 0.2 s, in which other programs
/// may have the processors.
const ATTEMPTS: usize = 3;

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
    let mut ceiling = 0.0_f64;
    for _ in 0..ATTEMPTS {
        // What was not found out refuses nothing.
        let Some(reached) = IoShape::generator_ceiling(opened.target(), &step, clock, stop) else { return Ok(()) };
        ceiling = ceiling.max(reached);
        if per_s <= ceiling {
            return Ok(());
        }
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

fn level_words(step: &StepPlan<IoShape>) -> String {
    let Some(Level::Io(level)) = step.level else { return String::new() };
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
        Ok(blocks) => {
            let failed: u64 = recording.steps().iter().filter_map(|step| step.counters.errors).sum();
            recording.note(read_back_words(blocks, failed));
        }
        Err(TargetError::Interrupted) => {
            recording.note("reading back was cut short: not every block that was written was checked".to_owned());
            recording.cut_short();
        }
        Err(error) => recording.fail(error),
    }
}

/// What is known of the data after `blocks` that were written were read back, where `failed` requests failed.
fn read_back_words(blocks: u64, failed: u64) -> String {
    let whose = if failed == 0 { "every block that was read" } else { "every block whose read did not fail" };
    let mut words = format!("{whose} held what was written there");
    if blocks > 0 {
        words += &format!("; the {} blocks written were read back and are sound", group_thousands(blocks as f64));
    }
    if failed > 0 {
        words += &format!(
            "; {} requests failed, and what those were to write may not be there",
            group_thousands(failed as f64)
        );
    }
    words
}

/// What is known of the volumes before they are loaded.
#[derive(Default)]
struct Compared {
    /// For the record: which letter is which path, and which devices several have in common.
    pub(super) facts: VolumeFacts,
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
    compared.facts.paths = names;
    let shared = devices_shared(job.storage.local()).map_err(targets::TargetError::from)?;
    if !shared.is_empty() {
        compared.notes.push(format!(
            "several of these volumes lie on `{}`: a limit that they share may be that of this device rather than of the \
             machine",
            shared.join("`, `")
        ));
        compared.facts.devices_shared = shared;
    }
    Ok(compared)
}

#[cfg(test)]
mod tests {
    use super::read_back_words;

    #[test]
    fn data_are_called_sound_only_as_far_as_requests_did_not_fail() {
        assert_eq!(read_back_words(0, 0), "every block that was read held what was written there");
        assert!(read_back_words(3_435, 0).ends_with("; the 3,435 blocks written were read back and are sound"));
        let failed = read_back_words(3_435, 878);
        assert!(
            failed.starts_with("every block whose read did not fail ") && failed.contains("; 878 requests failed, ")
        );
    }
}
