//! A run on processors from its plan to its report.

use model::record::Workload;
use std::io::{self, Write};

use super::arguments::WorkArgs;
use crate::cli::exit::{Exit, Failure};
use crate::cli::fleet::Experiment;
use crate::cli::interrupt::Interrupt;
use crate::cli::live::{RunProgress, Steps, warmup_words};
use crate::cli::recording::{Header, NextStep, Recording};
use crate::cli::say;
use crate::cli::supervisor::say_planned;
use crate::plan::host::{HostFacts, HostPlan, HostRequest, plan};
use measure::{Clock, environment};
use targets::host::{HostTarget, allowed_processors, describe, ranges};

/// Plans and checks everything, carries it out, keeps it and reports it.
pub(super) fn run(request: &HostRequest, arguments: &WorkArgs) -> Result<Exit, Failure> {
    let (facts, keeping) = (facts()?, &arguments.keeping);
    // A part is all of the load of its host.
    let (plan, joined) = arguments.fleet.join()?.plan(arguments.seed, &mut |seed| {
        let plan = plan(&HostRequest { seed, ..request.clone() }, &facts)?;
        let steps = plan.steps.iter().map(|step| &step.plan);
        let experiment = Experiment::new(Workload::Host, &plan.parameters, seed, steps);
        Ok((plan, experiment))
    })?;
    if keeping.dry_run {
        let mut out = say::output();
        write_plan(&mut out, &plan)?;
        joined.write(&mut out)?;
        out.flush()?;
        drop(out);
        say_planned(Some(plan.duration()), false);
        return Ok(Exit::Done);
    }
    let interrupt = Interrupt::listen()?;
    let clock = Clock::start();
    let progress = RunProgress::new(Steps::Known(plan.steps.len(), plan.duration()), keeping.progress.verbosity());
    let header = Header {
        workload: Workload::Host,
        name: plan.name.clone(),
        tags: plan.tags.clone(),
        seed: plan.seed,
        parameters: plan.parameters.clone(),
        target: describe(&plan.processors),
        paths: &[],
        notes: Vec::new(),
        fleet: Some(&joined),
    };
    let mut recording = Recording::begin(&keeping.runs.store(), header, clock, &interrupt, progress)?;
    for step in &plan.steps {
        // Each step has memory and processors of its own, and gives them back before the next one.
        let target = match HostTarget::open(step.options.clone(), clock) {
            Ok(target) => target,
            Err(error) => {
                recording.fail(error);
                break;
            }
        };
        if recording.step(&target, &step.plan) == NextStep::Stop {
            break;
        }
    }
    recording.end(plan.steps.len()).report(keeping.format.format(), &[], &interrupt)
}

fn facts() -> Result<HostFacts, Failure> {
    let allowed = allowed_processors().map_err(|error| {
        Failure::new(format_args!("the kernel does not say which processors this process may use: {error}"))
            .with_hint("it does on machines of up to 1,024 processors".to_owned())
    })?;
    let topology = environment::capture(None).topology;
    Ok(HostFacts { allowed, topology, available_memory: environment::available_memory() })
}

fn write_plan(out: &mut impl Write, plan: &HostPlan) -> io::Result<()> {
    writeln!(out, "name        {}", plan.name)?;
    writeln!(out, "processors  {}", ranges(&plan.processors))?;
    writeln!(out, "takes       {}", plan.duration())?;
    writeln!(out, "seed        {}", plan.seed)?;
    for (key, value) in plan.tags.iter().chain(&plan.parameters) {
        writeln!(out, "{key}={value}")?;
    }
    writeln!(out)?;
    for (number, step) in (1..).zip(&plan.steps) {
        let (load, warmup, duration) = (&step.plan, warmup_words(step.plan.warmup), step.plan.duration);
        let on = ranges(&step.options.processors);
        writeln!(out, "step {number:<3} {}: processors {on}, {warmup}, {duration} measured", load.label)?;
    }
    Ok(())
}
