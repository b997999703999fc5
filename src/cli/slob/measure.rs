//! A run from its plan to its report: what `run` and `sweep` have in common.

use std::sync::atomic::AtomicBool;

use super::load::LoadArgs;
use super::plan_text;
use super::script::{Moment, Script};
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::live::{RunProgress, Steps};
use crate::cli::recording::{Header, Recorded, Recording};
use crate::cli::timed::Timed;
use crate::cli::{in_turn, limits, say};
use crate::plan::slob::{Request, RunPlan, facts_as_asked, plan};
use crate::targets::Target;
use crate::targets::database::{self, Database, OpenDatabase, OpenRequest};

/// Plans and checks everything, runs it, keeps it and reports it.
pub(super) fn run(arguments: &LoadArgs, request: &Request) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let stop = interrupt.flag();
    let mut database = database::at(arguments.target.address(), &arguments.options()?)?;
    let (plan, script) = interrupt.judge(planned(arguments, request, &mut *database, stop))?;
    if arguments.keeping.dry_run {
        database.close()?;
        let mut out = say::output();
        plan_text::write(&mut out, &plan, &arguments.target.address().to_string())?;
        std::io::Write::flush(&mut out)?;
        return Ok(Exit::Done);
    }
    let progress =
        RunProgress::new(Steps::Known(plan.steps.len(), plan.duration()), arguments.keeping.progress.verbosity());
    let recovering = |redo_bytes| progress.recovering(redo_bytes);
    let opened = database.open(&OpenRequest { load: plan.load(), recovering: &recovering, stop });
    let opened = interrupt.judge(opened.inspect_err(|_| progress.end()).map_err(Failure::from))?;
    if plan.has_usual_time && !opened.clock().is_simulated() {
        progress
            .line(&format!("this takes {}, since nobody said for how long; for less: `RUN_TIME=60`", plan.duration()));
    }
    let recorded = record(arguments, &plan, opened, script.as_ref(), &interrupt, progress)?;
    recorded.tell(arguments.keeping.format.format(), &arguments.limits, &interrupt)
}

/// The plan, and the script that it calls.
fn planned(
    arguments: &LoadArgs,
    request: &Request,
    database: &mut dyn Database,
    stop: &AtomicBool,
) -> Result<(RunPlan, Option<Script>), Failure> {
    let timing = database.timing()?;
    let facts = match database.facts(stop)? {
        Some(facts) => facts,
        None => facts_as_asked(request)?,
    };
    let mut plan = plan(request, &facts)?;
    plan.notes.extend(database.check_load(&plan.load(), stop)?);
    limits::check_planned(&arguments.limits, &Timed::of_slob(&plan, timing))?;
    let script = plan.script.as_ref().map(|(path, origin)| Script::check(path, origin)).transpose()?;
    plan.notes.iter().for_each(say::note);
    Ok((plan, script))
}

/// Runs a plan. The target is always closed, so that nothing has to be recovered.
fn record(
    arguments: &LoadArgs,
    plan: &RunPlan,
    opened: Box<dyn OpenDatabase>,
    script: Option<&Script>,
    interrupt: &Interrupt,
    progress: RunProgress,
) -> Result<Recorded, Failure> {
    let mut recording = match begin(arguments, plan, &*opened, script, interrupt, progress) {
        Ok(recording) => recording,
        Err(failure) => {
            // The first failure is the one to report.
            let _ = opened.close();
            return Err(failure);
        }
    };
    let steps = in_turn::run(&mut recording, opened.target(), &plan.steps, &arguments.limits);
    recording.progress().end();
    call(script, Moment::Post, &mut recording);
    opened.notes_of_the_load().into_iter().for_each(|note| recording.note(note));
    if let Err(error) = opened.close() {
        recording.fail(error);
    }
    call(script, Moment::End, &mut recording);
    Ok(recording.end(steps))
}

fn begin(
    arguments: &LoadArgs,
    plan: &RunPlan,
    opened: &dyn OpenDatabase,
    script: Option<&Script>,
    interrupt: &Interrupt,
    progress: RunProgress,
) -> Result<Recording, Failure> {
    let target: &dyn Target = opened.target();
    let opening_notes = target.notes();
    opening_notes.iter().for_each(|note| progress.note(note));
    let header = Header {
        workload: "slob",
        name: plan.name.clone(),
        tags: plan.tags.clone(),
        seed: plan.seed,
        parameters: plan.parameters.clone(),
        target: target.describe(),
        paths: &opened.paths(),
        notes: plan.notes.iter().cloned().chain(opening_notes).collect(),
    };
    let recording = Recording::begin(&arguments.keeping.runs.store(), header, opened.clock(), interrupt, progress)?;
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
