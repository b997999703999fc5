//! A run from its plan to its report: what `run` and `sweep` have in common.

use crate::cli::dry_run::DryRun;
use model::config::TargetAddress;
use model::config::slob_conf;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::AtomicBool;

use super::load::LoadArgs;
use super::script::Script;
use crate::cli::database_load::{DatabaseLoad, Moment};
use crate::cli::exit::{Exit, Failure};
use crate::cli::fleet::{Experiment, Fleet, Joined};
use crate::cli::interrupt::Interrupt;
use crate::cli::live::{RunProgress, Steps};
use crate::cli::recording::Recording;
use crate::cli::timed::Timed;
use crate::cli::{limits, say};
use crate::databases;
use crate::plan::share_out;
use crate::plan::slob::{RunPlan, SlobPlanRequest, facts_as_asked, plan};
use targets::database::{Database, OpenRequest};

/// Plans and checks everything, runs it, keeps it and reports it.
pub(super) fn run(arguments: &LoadArgs, request: &SlobPlanRequest) -> Result<Exit, Failure> {
    let fleet = arguments.fleet.join()?;
    let interrupt = Interrupt::listen()?;
    let stop = interrupt.flag();
    let mut database = databases::slob(arguments.target.address(), &arguments.options()?)?;
    let (plan, joined, script) = interrupt.judge(planned(arguments, request, &fleet, &mut *database, stop))?;
    if arguments.keeping.dry_run {
        database.close()?;
        let address = arguments.target.address();
        return described(&plan, address).part(&joined).print(Some(plan.duration()), address.has_simulated_time());
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
    let RunPlan { head, steps, notes, .. } = plan;
    let keeping = &arguments.keeping;
    let load = DatabaseLoad { head, steps, notes, limits: &arguments.limits, joined: &joined, keeping };
    let mut call = |moment: Moment, _: &mut Recording| script.as_ref().map_or(Ok(()), |script| script.call(moment));
    let recorded = load.record(opened, &mut call, &interrupt, progress)?;
    recorded.report(arguments.keeping.format.format(), &arguments.limits, &interrupt)
}

/// The plan, and the script that it calls.
fn planned(
    arguments: &LoadArgs,
    request: &SlobPlanRequest,
    fleet: &Fleet,
    database: &mut dyn Database,
    stop: &AtomicBool,
) -> Result<(RunPlan, Joined, Option<Script>), Failure> {
    let timing = database.timing()?;
    let facts = match database.facts(stop)? {
        Some(facts) => facts,
        None => facts_as_asked(request)?,
    };
    let (mut plan, joined) = fleet.plan(arguments.seed.given(), &mut |seed| {
        let mut plan = plan(&SlobPlanRequest { seed, ..request.clone() }, &facts)?;
        plan.steps = share_out(plan.steps, fleet.share())?;
        let experiment = Experiment::new(&plan.head, &plan.steps);
        Ok((plan, experiment))
    })?;
    plan.notes.extend(database.check_load(&plan.load(), stop)?);
    limits::check_planned(&arguments.limits, &Timed::of_slob(&plan, timing, arguments.flash.is_asked()))?;
    let script = plan.script.as_ref().map(|(path, origin)| Script::check(path, origin)).transpose()?;
    plan.notes.iter().for_each(say::note);
    Ok((plan, joined, script))
}

/// What a run would do, the parameters as a parameter file has them.
fn described(plan: &RunPlan, target: &TargetAddress) -> DryRun {
    let described = DryRun::named(&plan.head.name)
        .fact("target", target)
        .fact("cache", plan.cache)
        .fact("seed", plan.head.seed)
        .fact("load for", plan.duration())
        .settings(&plan.head.tags, &BTreeMap::new())
        .gap()
        .with(|text| text.write_all(slob_conf::render(&plan.head.parameters).as_bytes()))
        .gap();
    plan.steps.iter().fold(described, |it, step| {
        let [sessions, lanes] = [(step.load.slots(), "session"), (step.lanes, "thread")]
            .map(|(count, what)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }));
        let rate = step.load.rate_operations_per_s.zip(step.load.arrival);
        let rate = rate.map(|(rate, arrival)| format!("{rate} operations/s ({arrival})"));
        let own = step.parameters(&plan.head.parameters).into_iter().map(|(key, value)| format!("{key}={value}"));
        let load: Vec<String> = [format!("{sessions} on {lanes}")].into_iter().chain(rate).chain(own).collect();
        it.step(&step.label, &load.join(", "), step.warmup, step.duration)
    })
}
