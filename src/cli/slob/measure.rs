//! A run from its plan to its report: what `run` and `sweep` have in common.

use super::ground::{Ground, Site};
use super::load::LoadArgs;
use super::plan_text;
use super::script::{Moment, Script};
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::live::{RunProgress, Steps};
use crate::cli::recording::{Header, Recorded, Recording};
use crate::cli::timed::Timed;
use crate::cli::{in_turn, limits, say};
use crate::measure::Clock;
use crate::plan::slob::{Request, RunPlan, plan};
use crate::targets::Target;

/// Plans and checks everything, carries it out, keeps it and reports it.
pub(super) fn run(arguments: &LoadArgs, request: &Request) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let site = Site::reach(arguments, interrupt.flag())?;
    let planned = planned(arguments, request, &site);
    let (plan, script) = match planned {
        Ok(planned) if arguments.keeping.dry_run => {
            site.leave()?;
            let mut out = say::output();
            plan_text::write(&mut out, &planned.0, &arguments.target.address().to_string())?;
            std::io::Write::flush(&mut out)?;
            return Ok(Exit::Done);
        }
        Ok(planned) => planned,
        Err(failure) => {
            // The first failure is the one to tell.
            let _ = site.leave();
            return Err(failure);
        }
    };
    let progress =
        RunProgress::new(Steps::Known(plan.steps.len(), plan.duration()), arguments.keeping.progress.verbosity());
    let (ground, clock) = site.open(arguments, &plan, &progress, interrupt.flag())?;
    let recorded = record(arguments, &plan, ground, script.as_ref(), clock, &interrupt, progress)?;
    recorded.tell(arguments.keeping.format.format(), &arguments.limits, &interrupt)
}

/// The plan, and the script that it calls.
fn planned(arguments: &LoadArgs, request: &Request, site: &Site<'_>) -> Result<(RunPlan, Option<Script>), Failure> {
    let mut plan = plan(request, &site.facts(request)?)?;
    plan.notes.extend(site.check(&plan)?);
    limits::check_planned(&arguments.limits, &Timed::of_slob(&plan, site.timed_by()))?;
    let script = plan.script.as_ref().map(|(path, origin)| Script::check(path, origin)).transpose()?;
    plan.notes.iter().for_each(say::note);
    Ok((plan, script))
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
    let steps = in_turn::run(&mut recording, ground.target(), &plan.steps, &arguments.limits);
    recording.progress().end();
    call(script, Moment::Post, &mut recording);
    ground.notes_of_the_load().into_iter().for_each(|note| recording.note(note));
    if let Err(error) = ground.close() {
        recording.fail(error);
    }
    call(script, Moment::End, &mut recording);
    Ok(recording.end(steps))
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
    let recording = Recording::begin(&arguments.keeping.runs.store(), header, clock, interrupt, progress)?;
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
