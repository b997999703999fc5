//! A run of one load on a network, or of several one after the other, from its plan to its report.

use crate::cli::dry_run::DryRun;

use super::Link;
use super::arguments::{DURATION, LinkOptions, ServerArgs, TimeArgs};
use crate::cli::arguments::KeepingArgs;
use crate::cli::exit::{Exit, Failure};
use crate::cli::fleet::{Experiment, FleetArgs, Joined};
use crate::cli::io::arguments::OutputArgs;
use crate::cli::live::{RunProgress, Steps};
use crate::cli::recording::{Header, Recording};
use crate::cli::timed::Timed;
use crate::cli::{Interrupt, in_turn, limits};
use crate::plan::RunHead;
use crate::plan::net::{NetPlan, NetPlanRequest, NetRate, plan, words};
use ::measure::Clock;
use analysis::{LatencyTarget, SearchPlan};
use load::StepPlan;
use model::config::io::RateRange;
use model::config::net::NetOptions;
use model::record::Like;
use model::units::Nanos;
use model::workload::net::NetShape;
use targets::Target;

/// A run that is asked for.
pub(super) struct Job<'a> {
    pub(super) server: &'a ServerArgs,
    pub(super) asked: NetOptions,
    pub(super) time: &'a TimeArgs,
    pub(super) fleet: &'a FleetArgs,
    pub(super) output: &'a OutputArgs,
    /// The production that it is like, and how many times it.
    pub(super) like: Option<(Like, f64)>,
}

/// Plans and checks everything, carries it out, keeps it and reports it.
pub(super) fn run(job: &Job<'_>) -> Result<Exit, Failure> {
    let Job { server, asked, time, fleet, output, like } = job;
    let fleet = fleet.join()?;
    fleet.refuse_search(asked.rates.as_ref())?;
    // A server serves one test at a time: a part is all of the load between its two hosts.
    let (plan, joined) = fleet.plan(time.seed.given(), &mut |seed| {
        let times = like.as_ref().map(|(_, times)| *times);
        let plan = plan(&NetPlanRequest { times, ..request(asked, time, output, seed) })?;
        let experiment = Experiment::new(&plan.head, &plan.steps());
        Ok((plan, experiment))
    })?;
    limits::check_planned(&output.limits, &Timed::of_net(&plan.steps()))?;
    if output.keeping.dry_run {
        return described(&plan, job).part(&joined).print(Some(load_time(asked, &plan)), false);
    }
    let interrupt = Interrupt::listen()?;
    let clock = Clock::start();
    let link_options = LinkOptions { is_udp: asked.is_udp, is_durable: asked.is_durable, ..server.link.link_options() };
    let link = Link::open(&server.to, &link_options, clock)?;
    let steps = match asked.rates {
        Some(RateRange::Between { .. }) => Steps::UpTo(SearchPlan::default().max_points),
        Some(RateRange::Each(_)) | None => Steps::Known(plan.levels.len(), load_time(asked, &plan)),
    };
    let repeats = |limits: Vec<LatencyTarget>| if joined.may_repeat() { limits } else { Vec::new() };
    let mut recording = begin((&plan.head, Some(&joined)), &link, steps, &output.keeping, clock, &interrupt)?;
    like.iter().for_each(|(like, _)| recording.be_like(like.clone()));
    let pattern = asked.pattern.name();
    let wanted = match &asked.rates {
        Some(RateRange::Between { lowest, highest }) => {
            let limits = limits::of_lines(&output.limits);
            let Some(level) = plan.levels.first().copied() else { return Ok(Exit::CouldNot) };
            crate::cli::run_search(&mut recording, (*lowest, *highest), &limits, &mut |recording, index, per_s| {
                link.step(recording, &plan.step(index, NetRate { per_s: Some(per_s), ..level }), pattern)
            })
        }
        Some(RateRange::Each(_)) => {
            let limits = repeats(limits::of_lines(&output.limits));
            each(&mut recording, &link, &plan.steps(), &limits, pattern)
        }
        None => each(&mut recording, &link, &plan.steps(), &repeats(output.limits.clone()), pattern),
    };
    drop(link);
    recording.end(wanted).report(output.keeping.format.format(), &output.limits, &interrupt)
}

/// How long load is on: of a search, at most.
fn load_time(asked: &NetOptions, plan: &NetPlan) -> Nanos {
    let steps = match asked.rates {
        Some(RateRange::Between { .. }) => SearchPlan::default().max_points,
        Some(RateRange::Each(_)) | None => plan.levels.len(),
    };
    Nanos(plan.step_time().0.saturating_mul(steps as u64))
}

/// Every step in turn. Returns how many steps a whole run has.
pub(super) fn each(
    recording: &mut Recording,
    link: &Link,
    steps: &[StepPlan<NetShape>],
    limits: &[LatencyTarget],
    what: &str,
) -> usize {
    in_turn::run_by(recording, steps, limits, &mut |recording, step| link.step(recording, step, what))
}

/// What is asked of the plan.
pub(super) fn request(asked: &NetOptions, time: &TimeArgs, output: &OutputArgs, seed: u64) -> NetPlanRequest {
    NetPlanRequest {
        asked: asked.clone(),
        duration: time.duration(DURATION),
        warmup: time.warmup.0,
        arrival: asked.arrival.unwrap_or_default(),
        times: None,
        seed,
        tags: output.keeping.tags.clone(),
        processors: processors(),
    }
}

/// Processors that this process may use.
pub(super) fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
}

/// Begins to write down a run.
pub(super) fn begin(
    (head, joined): (&RunHead, Option<&Joined>),
    link: &Link,
    steps: Steps,
    keeping: &KeepingArgs,
    clock: Clock,
    interrupt: &Interrupt,
) -> Result<Recording, Failure> {
    let progress = RunProgress::new(steps, keeping.progress.verbosity());
    let notes: Vec<String> = link.notes().into_iter().chain(link.target().notes()).collect();
    notes.iter().for_each(|note| progress.note(note));
    let target = link.target().describe();
    let header = Header { head: head.clone(), check: None, target, paths: &[], notes, fleet: joined };
    Recording::begin(&keeping.runs.store(), header, clock, interrupt, progress)
}

fn described(plan: &NetPlan, job: &Job<'_>) -> DryRun {
    let described = DryRun::of(&plan.head, [("to", job.server.to.to_string())]);
    let described = match &job.like {
        Some((like, _)) => described.like(like),
        None => described,
    };
    if let Some(RateRange::Between { lowest, highest }) = job.asked.rates {
        let (most, each) = (SearchPlan::default().max_points, plan.step_time());
        let search = format!("search from {lowest} to {highest} operations/s in at most {most} steps of {each} each");
        return described.gap().line(search);
    }
    with_steps(described, &plan.steps())
}

/// A line for each step.
pub(super) fn with_steps(described: DryRun, steps: &[StepPlan<NetShape>]) -> DryRun {
    steps.iter().fold(described, |it, step| {
        let rate =
            step.load.rate_operations_per_s.map_or_else(String::new, |per_s| format!("{per_s} operations/s, at most "));
        it.step(&step.label, &format!("{rate}{}", words(&step.shape)), step.warmup, step.duration)
    })
}
