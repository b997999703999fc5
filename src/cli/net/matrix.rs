//! `plimsoll net matrix`: several servers, each by itself and all at once.

use crate::cli::dry_run::DryRun;

use clap::Args;

use super::arguments::{LinkArgs, LinkOptions, TimeArgs};
use super::link::Link;
use super::{measure, survey};
use crate::cli::arguments::KeepingArgs;
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::live::{RunProgress, Steps};
use crate::cli::recording::{Header, NextStep, Recording};
use crate::load::StepPlan;
use crate::plan::net::NetPlanRequest;
use crate::plan::net_matrix::{DEFAULT_FLOWS, MatrixStep, NetMatrix, matrix};
use ::measure::Clock;
use model::config::net::{NetOptions, NetPattern, NetServer, NetServers};
use model::record;
use model::units::Nanos;
use model::workload::Arrival;
use model::workload::net::NetShape;
use targets::Target;
use targets::network::{NetTarget, NetTargets, TestOptions};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll net matrix --to db2,db3,db4
  plimsoll net matrix --to db2,db3:7020 --flows 8 --duration 30
  plimsoll net matrix --to db2,db3 --token-file token --json

Each server runs `plimsoll net serve`, all of them with one token. Of each: round trips while nothing else goes, then flows \
to it, then from it. Then flows to all servers at once, and from all of them.";

/// Arguments of `plimsoll net matrix`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Where each `plimsoll net serve` listens: HOST or HOST:PORT, two or more
    #[arg(long, value_name = "HOST[:PORT],...", help_heading = "Network")]
    to: NetServers,

    #[command(flatten)]
    link: LinkArgs,

    /// Bulk flows to and from each server
    #[arg(long, value_name = "N", default_value_t = DEFAULT_FLOWS, help_heading = "Load")]
    flows: u32,

    #[command(flatten)]
    time: TimeArgs,

    #[command(flatten)]
    keeping: KeepingArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { to: NetServers(servers), link, flows, time, keeping } = arguments;
    let request = NetPlanRequest {
        asked: NetOptions::new(NetPattern::Ping),
        duration: time.duration(survey::DURATION),
        warmup: time.warmup.0,
        arrival: Arrival::Poisson,
        times: None,
        seed: time.seed.or_fresh(),
        tags: keeping.tags.clone(),
        processors: measure::processors(),
    };
    let NetMatrix { head, steps } = matrix(&request, servers, *flows)?;
    let plans: Vec<StepPlan<NetShape>> = steps.iter().map(|step| step.plan.clone()).collect();
    let names: Vec<String> = servers.iter().map(ToString::to_string).collect();
    if keeping.dry_run {
        let described = DryRun::of(&head, [("to", names.join(", "))]);
        return measure::with_steps(described, &plans).print(None, false);
    }
    let interrupt = Interrupt::listen()?;
    let clock = Clock::start();
    let doors = Doors { servers, link_options: link.link_options(), clock };
    // All of them answer, or nothing runs.
    drop(doors.open(0..servers.len())?);
    let load = plans.iter().map(|step| step.warmup.0.saturating_add(step.duration.0)).sum();
    let progress = RunProgress::new(Steps::Known(plans.len(), Nanos(load)), keeping.progress.verbosity());
    let target = record::Target { kind: "network".to_owned(), address: names.join(", "), ..record::Target::default() };
    let header = Header { head, check: None, target, paths: &[], fleet: None, notes: Vec::new() };
    let mut recording = Recording::begin(&keeping.runs.store(), header, clock, &interrupt, progress)?;
    let mut notes = Vec::new();
    for step in &steps {
        if doors.step(&mut recording, step, &mut notes) == NextStep::Stop {
            break;
        }
    }
    recording.end(steps.len()).report(keeping.format.format(), &[], &interrupt)
}

/// How servers are reached: anew for each step, since one that waited for the others' steps would take its client for gone.
struct Doors<'a> {
    servers: &'a [NetServer],
    link_options: LinkOptions,
    clock: Clock,
}

impl Doors<'_> {
    fn open(&self, places: std::ops::Range<usize>) -> Result<Vec<NetTarget>, Failure> {
        let servers = self.servers[places].iter();
        servers.map(|server| Link::open(server, &self.link_options, self.clock).map(Link::into_target)).collect()
    }

    /// Carries out one step: a test of its own on each of its servers. What is to be known of them is noted once.
    fn step(&self, recording: &mut Recording, step: &MatrixStep, notes: &mut Vec<String>) -> NextStep {
        if !recording.is_going_well() {
            return NextStep::Stop;
        }
        let plan = &step.plan;
        let time = Nanos(plan.warmup.0.saturating_add(plan.duration.0));
        let wanted = TestOptions { what: format!("matrix {}", plan.label), duration: time };
        let begun = self
            .open(step.servers.clone())
            .and_then(|targets| NetTargets::begin(targets, &step.each, &wanted).map_err(Failure::from));
        let target = match begun {
            Ok(target) => target,
            Err(failure) => {
                recording.fail(failure);
                return NextStep::Stop;
            }
        };
        let next = recording.step(&target, plan);
        let ended = target.end();
        for note in target.notes().into_iter().chain(target.take_trouble()) {
            if !notes.contains(&note) {
                recording.note(note.clone());
                notes.push(note);
            }
        }
        match ended {
            Ok(()) => next,
            // Only the first error counts: of a step that failed it says why.
            Err(error) => {
                recording.fail(error);
                NextStep::Stop
            }
        }
    }
}
