//! A run from its plan to its report: what `run` and `sweep` have in common.

use std::path::{Path, PathBuf};

use super::load::LoadArgs;
use super::plan_text;
use super::script::{Moment, Script};
use crate::cli::arguments::no_server_yet;
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::live::{RunProgress, Steps};
use crate::cli::recording::{Header, Onward, Recorded, Recording};
use crate::cli::say;
use crate::config::TargetAddress;
use crate::measure::{Clock, environment};
use crate::plan::slob::{Facts, Request, RunPlan, plan};
use crate::record::Environment;
use crate::target::embedded::{Descriptor, Engine, EngineOptions};
use crate::target::simulated::{Simulated, SimulatedOptions};
use crate::target::{Target, TargetError, TargetFor};
use crate::units::Bytes;
use crate::workload::SlobOperation;

/// Plans and checks everything, carries it out, keeps it and tells it.
pub(super) fn carry_out(arguments: &LoadArgs, request: &Request) -> Result<Exit, Failure> {
    let address = arguments.target.address();
    let facts = match address {
        TargetAddress::Directory(path) => Facts::of(&Descriptor::load(path)?, available_memory()),
        TargetAddress::Simulated(_) => Facts::as_asked(request)?,
        address => return Err(no_server_yet(address)),
    };
    let plan = plan(request, &facts)?;
    let script = plan.script.as_ref().map(|(path, origin)| Script::check(path, origin)).transpose()?;
    plan.notes.iter().for_each(say::note);
    if arguments.dry_run {
        let mut out = say::output();
        plan_text::write(&mut out, &plan, &address.to_string())?;
        std::io::Write::flush(&mut out)?;
        return Ok(Exit::Done);
    }
    let interrupt = Interrupt::listen()?;
    let progress = RunProgress::new(Steps::Known(plan.steps.len(), plan.duration()), arguments.progress.loudness());
    let (ground, clock) = Ground::open(address, arguments, &plan, &progress)?;
    let recorded = record(arguments, &plan, ground, script.as_ref(), clock, &interrupt, progress)?;
    recorded.tell(arguments.format.reader(), arguments.limit.as_ref(), &interrupt)
}

/// Memory that can be taken without driving somebody out of it.
fn available_memory() -> Option<Bytes> {
    let Environment { memory_available_bytes, memory_limit_bytes, .. } = environment::capture(None);
    memory_available_bytes.into_iter().chain(memory_limit_bytes).min().map(Bytes)
}

/// The open target.
enum Ground<'a> {
    Embedded { engine: Box<Engine>, path: &'a Path },
    Simulated(Simulated),
}

impl<'a> Ground<'a> {
    /// Opens the target, and the clock on which load will run.
    fn open(
        address: &'a TargetAddress,
        arguments: &LoadArgs,
        plan: &RunPlan,
        progress: &RunProgress,
    ) -> Result<(Self, Clock), Failure> {
        match address {
            TargetAddress::Simulated(pairs) => {
                let options = SimulatedOptions::from_pairs(pairs)?;
                let clock = options.clock();
                Ok((Self::Simulated(Simulated::open(options, clock)), clock))
            }
            TargetAddress::Directory(path) => {
                let options = EngineOptions {
                    cache: plan.cache,
                    writers: None,
                    most_sessions: plan.most_sessions(),
                    io_engine: arguments.io.engine(),
                };
                let clock = Clock::start();
                let opened = Engine::open(path, &options, clock, &|redo_bytes| progress.recovering(redo_bytes));
                let engine = opened.inspect_err(|_| progress.end())?;
                Ok((Self::Embedded { engine: Box::new(engine), path }, clock))
            }
            address => Err(no_server_yet(address)),
        }
    }

    fn target(&self) -> &dyn TargetFor<SlobOperation> {
        match self {
            Self::Embedded { engine, .. } => engine.as_ref(),
            Self::Simulated(simulated) => simulated,
        }
    }

    fn paths(&self) -> Vec<PathBuf> {
        match self {
            Self::Embedded { path, .. } => vec![(*path).to_owned()],
            Self::Simulated(_) => Vec::new(),
        }
    }

    fn close(self) -> Result<(), TargetError> {
        match self {
            Self::Embedded { engine, .. } => engine.close(),
            Self::Simulated(_) => Ok(()),
        }
    }
}

/// Carries out a plan. The target is always closed, so that nothing has to be recovered.
fn record(
    arguments: &LoadArgs,
    plan: &RunPlan,
    ground: Ground<'_>,
    script: Option<&Script>,
    clock: Clock,
    interrupt: &Interrupt,
    progress: RunProgress,
) -> Result<Recorded, Failure> {
    let mut recording = match begin(arguments, plan, &ground, script, clock, interrupt, progress) {
        Ok(recording) => recording,
        Err(failure) => {
            // The first failure is the one to tell.
            let _ = ground.close();
            return Err(failure);
        }
    };
    for step in &plan.steps {
        if recording.step(ground.target(), step) == Onward::Stop {
            break;
        }
    }
    recording.progress().end();
    call(script, Moment::Post, &mut recording);
    if let Err(error) = ground.close() {
        recording.fail(error);
    }
    call(script, Moment::End, &mut recording);
    Ok(recording.end(plan.steps.len()))
}

fn begin(
    arguments: &LoadArgs,
    plan: &RunPlan,
    ground: &Ground<'_>,
    script: Option<&Script>,
    clock: Clock,
    interrupt: &Interrupt,
    progress: RunProgress,
) -> Result<Recording, Failure> {
    let target: &dyn Target = ground.target();
    let opening_notes = target.notes();
    opening_notes.iter().for_each(|note| progress.note(note));
    let header = Header {
        workload: "slob",
        name: plan.name.clone(),
        tags: plan.tags.clone(),
        seed: plan.seed,
        parameters: plan.parameters.clone(),
        target: target.describe(),
        paths: &ground.paths(),
        notes: plan.notes.iter().cloned().chain(opening_notes).collect(),
    };
    let recording = Recording::begin(&arguments.runs.store(), header, clock, interrupt, progress)?;
    if let Some(Err(why)) = script.map(|script| script.call(Moment::Pre)) {
        recording.forget();
        return Err(Failure::new(why).with_hint("nothing was run; see what the script printed".to_owned()));
    }
    Ok(recording)
}

/// Calls the script; if it fails, that is a note and no more.
fn call(script: Option<&Script>, moment: Moment, recording: &mut Recording) {
    if let Some(Err(why)) = script.map(|script| script.call(moment)) {
        recording.note(why);
    }
}
