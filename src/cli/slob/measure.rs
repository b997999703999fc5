//! A run from its plan to its report: what `run` and `sweep` have in common.

use model::record::Workload;
use std::sync::atomic::AtomicBool;

use super::load::LoadArgs;
use super::plan_text;
use super::script::Script;
use crate::cli::database_load::{DatabaseLoad, Moment};
use crate::cli::exit::{Exit, Failure};
use crate::cli::fleet::{Experiment, Fleet, Joined};
use crate::cli::interrupt::Interrupt;
use crate::cli::live::{RunProgress, Steps};
use crate::cli::recording::Recording;
use crate::cli::supervisor::say_planned;
use crate::cli::timed::Timed;
use crate::cli::{limits, say};
use crate::databases;
use crate::plan::share_out;
use crate::plan::slob::{Request, RunPlan, facts_as_asked, plan};
use targets::database::{Database, OpenRequest};

/// Plans and checks everything, runs it, keeps it and reports it.
pub(super) fn run(arguments: &LoadArgs, request: &Request) -> Result<Exit, Failure> {
    let fleet = arguments.fleet.join()?;
    let interrupt = Interrupt::listen()?;
    let stop = interrupt.flag();
    let mut database = databases::slob(arguments.target.address(), &arguments.options()?)?;
    let (plan, joined, script) = interrupt.judge(planned(arguments, request, &fleet, &mut *database, stop))?;
    if arguments.keeping.dry_run {
        database.close()?;
        let mut out = say::output();
        plan_text::write(&mut out, &plan, &arguments.target.address().to_string())?;
        joined.write(&mut out)?;
        std::io::Write::flush(&mut out)?;
        drop(out);
        say_planned(Some(plan.duration()), arguments.target.address().has_simulated_time());
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
    let RunPlan { name, tags, seed, parameters, steps, notes, .. } = plan;
    let keeping = &arguments.keeping;
    let load = DatabaseLoad {
        workload: Workload::Slob,
        name,
        tags,
        seed,
        parameters,
        steps,
        notes,
        limits: &arguments.limits,
        joined: &joined,
        keeping,
    };
    let mut call = |moment: Moment, _: &mut Recording| script.as_ref().map_or(Ok(()), |script| script.call(moment));
    let recorded = load.record(opened, &mut call, &interrupt, progress)?;
    recorded.report(arguments.keeping.format.format(), &arguments.limits, &interrupt)
}

/// The plan, and the script that it calls.
fn planned(
    arguments: &LoadArgs,
    request: &Request,
    fleet: &Fleet,
    database: &mut dyn Database,
    stop: &AtomicBool,
) -> Result<(RunPlan, Joined, Option<Script>), Failure> {
    let timing = database.timing()?;
    let facts = match database.facts(stop)? {
        Some(facts) => facts,
        None => facts_as_asked(request)?,
    };
    let (mut plan, joined) = fleet.plan(arguments.seed, &mut |seed| {
        let mut plan = plan(&Request { seed, ..request.clone() }, &facts)?;
        plan.steps = share_out(plan.steps, fleet.share())?;
        let experiment = Experiment::new(Workload::Slob, &plan.parameters, seed, &plan.steps);
        Ok((plan, experiment))
    })?;
    plan.notes.extend(database.check_load(&plan.load(), stop)?);
    limits::check_planned(&arguments.limits, &Timed::of_slob(&plan, timing, arguments.flash.is_asked()))?;
    let script = plan.script.as_ref().map(|(path, origin)| Script::check(path, origin)).transpose()?;
    plan.notes.iter().for_each(say::note);
    Ok((plan, joined, script))
}
