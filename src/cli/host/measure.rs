//! A run on processors from its plan to its report.

use crate::cli::dry_run::DryRun;

use super::arguments::WorkArgs;
use crate::cli::exit::{Exit, Failure};
use crate::cli::fleet::Experiment;
use crate::cli::interrupt::Interrupt;
use crate::cli::live::{RunProgress, Steps};
use crate::cli::recording::{Header, NextStep, Recording};
use crate::plan::host::{HostFacts, HostRequest, plan};
use measure::{Clock, environment};
use model::config::host::ranges;
use targets::host::{HostTarget, allowed_processors, describe};

/// Plans and checks everything, carries it out, keeps it and reports it.
pub(super) fn run(request: &HostRequest, arguments: &WorkArgs) -> Result<Exit, Failure> {
    let (facts, keeping) = (facts()?, &arguments.keeping);
    // A part is all of the load of its host.
    let (plan, joined) = arguments.fleet.join()?.plan(arguments.seed.given(), &mut |seed| {
        let plan = plan(&HostRequest { seed, ..request.clone() }, &facts)?;
        let steps = plan.steps.iter().map(|step| &step.plan);
        let experiment = Experiment::new(&plan.head, steps);
        Ok((plan, experiment))
    })?;
    if keeping.dry_run {
        let described =
            DryRun::of(&plan.head, [("processors", ranges(&plan.processors)), ("takes", plan.duration().to_string())]);
        let described = plan.steps.iter().fold(described, |it, step| {
            let on = format!("processors {}", ranges(&step.options.processors));
            it.step(&step.plan.label, &on, step.plan.warmup, step.plan.duration)
        });
        return described.part(&joined).print(Some(plan.duration()), false);
    }
    let interrupt = Interrupt::listen()?;
    let clock = Clock::start();
    let progress = RunProgress::new(Steps::Known(plan.steps.len(), plan.duration()), keeping.progress.verbosity());
    let header = Header {
        head: plan.head.clone(),
        check: None,
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
