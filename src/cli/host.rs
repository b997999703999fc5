//! `plimsoll host`.

use clap::{Args, Subcommand};

use super::exit::{Exit, Failure};
use crate::cli::arguments::{KeepingArgs, Measured, Seconds, SeedArg};
use crate::cli::dry_run::DryRun;
use crate::cli::fleet::{Experiment, FleetArgs, Joined};
use crate::cli::live::Steps;
use crate::cli::recording::{NextStep, Recorded};
use crate::cli::runner::{self, Beginning, Landing, Outline, Work};
use crate::plan::host::{DEFAULT_DURATION, DEFAULT_WARMUP, HostFacts, HostPlan, HostRequest, plan};
use measure::{Clock, environment};
use model::config::host::{ProcessorChoice, WorkList, ranges};
use model::config::io::DepthList;
use model::record::HostLoad;
use model::units::Bytes;
use model::workload::HostKind;
use targets::host::{HostTarget, allowed_processors, describe};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll host run                  a look at everything, in a minute
  plimsoll host run --duration 10m   does it keep its speed?
  plimsoll host run --work checksum --processors each --duration 5
  plimsoll host sweep --work memory-triad --threads 1..8
  plimsoll beside --duration 30 --warmup 5 -- host run --work processor \\
    -- io run --path /u01/test.dat --pattern randread";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Measure CPUs and memory, or keep them busy for a time
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(RunArguments),
    /// Measure how work scales with threads, and where memory is saturated
    #[command(after_long_help = SWEEP_EXAMPLES)]
    Sweep(SweepArguments),
}

impl Command {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Run(arguments) => self::run(&arguments),
            Self::Sweep(arguments) => run_sweep(&arguments),
        }
    }
}

const SWEEP_EXAMPLES: &str = "\
Examples:
  plimsoll host sweep --threads 1,2,4,…,32
  plimsoll host sweep --work memory-triad --size 256M --threads 1..8
  plimsoll host sweep --work logical-read --cache 4G --threads 1,8,16

Threads are put on different cores first, and on second hardware threads of the same cores only then.";

/// Arguments of `plimsoll host sweep`.
#[derive(Debug, Args)]
pub(super) struct SweepArguments {
    /// Types of work: checksum, sort, …, or a group, `processor` or `memory`
    ///
    /// Each is measured with every number of threads [default: processor].
    #[arg(long, value_name = "KIND,KIND,...", help_heading = "Load")]
    work: Option<WorkList>,

    /// Threads at work at once, each on its own CPU: 1,2,4 or 1,2,4,…,64 or 1..64
    #[arg(long, value_name = "N,N,...", help_heading = "Load")]
    threads: DepthList,

    /// Length of each measured window, in seconds or with a unit
    #[arg(long, value_name = "TIME", default_value = "5", allow_hyphen_values = true, help_heading = "Load")]
    duration: Seconds,

    #[command(flatten)]
    common: WorkArgs,
}

fn run_sweep(arguments: &SweepArguments) -> Result<Exit, Failure> {
    let SweepArguments { work, threads, duration: Seconds(duration), common } = arguments;
    let request = common.request(work.as_ref(), ProcessorChoice::All);
    let request = HostRequest {
        load: HostLoad { threads: Some(threads.clone()), ..request.load },
        duration: Some(*duration),
        ..request
    };
    run_measure(&request, common)
}

/// How much memory work goes through, for how long, and how the run is kept.
#[derive(Debug, Args)]
struct WorkArgs {
    /// Memory that each thread goes through in copies, triads and chases [default: 64M]
    ///
    /// Without --work there are several sizes: within every cache, and beyond.
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Load")]
    size: Option<Bytes>,

    /// Buffer cache for logical reads, shared by all threads [default: 256M]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Load")]
    cache: Option<Bytes>,

    /// Load before each measured window, recorded and marked [default: 1s; without --work 0.2s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Load")]
    warmup: Option<Seconds>,

    #[command(flatten)]
    seed: SeedArg,

    #[command(flatten)]
    fleet: FleetArgs,

    #[command(flatten)]
    keeping: KeepingArgs,
}

impl WorkArgs {
    /// What is asked for, on these processors.
    fn request(&self, work: Option<&WorkList>, processors: ProcessorChoice) -> HostRequest {
        HostRequest {
            load: HostLoad {
                work: work.cloned(),
                processors,
                threads: None,
                size_bytes: self.size,
                cache_bytes: self.cache,
            },
            duration: None,
            warmup: self.warmup.map(|Seconds(warmup)| warmup),
            seed: self.seed.given().unwrap_or_default(),
            tags: self.keeping.tags.clone(),
        }
    }
}

const RUN_EXAMPLES: &str = "\
Examples:
  plimsoll host run
  plimsoll host run --duration 10m --tag vm=d8s
  plimsoll host run --work logical-read,checksum --processors 4
  plimsoll host run --work memory-latency --size 1G --duration 5
  plimsoll host run --work checksum --processors each --duration 2

Without --work and --duration it surveys everything for about a minute: work on one CPU and on all, memory by size, \
wake-ups, timers. With them it is one load: the given --work, or the first five types in turn.

Kinds of work (docs/workloads/host-network.md says what each is):
  logical-read, checksum, compare, sort, hash-join   `processor` for all five
  memory-copy, memory-triad, memory-latency          `memory` for all three
  wake, timer";

/// Arguments of `plimsoll host run`.
#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// Types of work: checksum, sort, …, or a group, `processor` or `memory`
    ///
    /// Several are done in turn.
    #[arg(long, value_name = "KIND,KIND,...", help_heading = "Load")]
    work: Option<WorkList>,

    /// CPUs to use: all at once, each by itself, one thread per core, a number, or a list such as 0,2-3
    #[arg(long, value_name = "all|each|cores|N|LIST", default_value = "all", help_heading = "Load")]
    processors: ProcessorChoice,

    /// Length of each measured window, in seconds or with a unit [default: 30s; without --work a survey]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Load")]
    duration: Option<Seconds>,

    #[command(flatten)]
    common: WorkArgs,
}

impl RunArguments {
    fn request(&self) -> HostRequest {
        let request = self.common.request(self.work.as_ref(), self.processors.clone());
        let duration = self.duration.map(|Seconds(duration)| duration);
        // Whoever says how long, and not what, wants processors busy.
        let work = request.load.work.or_else(|| duration.map(|_| WorkList(HostKind::PROCESSOR.to_vec())));
        HostRequest { load: HostLoad { work, ..request.load }, duration, ..request }
    }

    /// When the only load is measured.
    pub(super) fn measured(&self) -> Result<Measured, Failure> {
        let request = self.request();
        if request.load.work.is_none() || self.processors == ProcessorChoice::Each {
            let failure =
                Failure::new("`host run` is several loads in turn as it stands, and one is to run beside others");
            return Err(
                failure.with_hint("say what it does on which processors: `host run --work processor`".to_owned())
            );
        }
        Ok(Measured {
            warmup: request.warmup.unwrap_or(DEFAULT_WARMUP),
            duration: request.duration.unwrap_or(DEFAULT_DURATION),
        })
    }
}

fn run(arguments: &RunArguments) -> Result<Exit, Failure> {
    run_measure(&arguments.request(), &arguments.common)
}

/// Plans and checks everything, carries it out, keeps it and reports it.
fn run_measure(request: &HostRequest, arguments: &WorkArgs) -> Result<Exit, Failure> {
    let (facts, keeping) = (facts()?, &arguments.keeping);
    // A part is all of the load of its host.
    let (plan, joined) = arguments.fleet.join()?.plan(arguments.seed.given(), &mut |seed| {
        let plan = plan(&HostRequest { seed, ..request.clone() }, &facts)?;
        let steps = plan.steps.iter().map(|step| &step.plan);
        let experiment = Experiment::new(&plan.head, steps);
        Ok((plan, experiment))
    })?;
    runner::run(Planned { keeping, plan, joined })
}

/// Work on processors, planned and checked.
struct Planned<'a> {
    keeping: &'a KeepingArgs,
    plan: HostPlan,
    joined: Joined,
}

impl<'a> Work<'a> for Planned<'a> {
    fn outline(&self) -> Outline<'a> {
        let Self { keeping, plan, joined } = self;
        let steps = Steps::Known(plan.steps.len(), plan.duration());
        Outline { joined: Some(joined.clone()), ..Outline::new(&plan.head, keeping, steps) }
    }

    fn described(self) -> Result<DryRun, Failure> {
        let plan = self.plan;
        let described =
            DryRun::of(&plan.head, [("processors", ranges(&plan.processors)), ("takes", plan.duration().to_string())]);
        Ok(plan.steps.iter().fold(described, |it, step| {
            let on = format!("processors {}", ranges(&step.options.processors));
            it.step(&step.plan.label, &on, step.plan.warmup, step.plan.duration)
        }))
    }

    fn carry_out(self, beginning: Beginning<'_>) -> Result<Recorded, Failure> {
        let (plan, clock) = (self.plan, Clock::start());
        let target = describe(&plan.processors);
        let landing = Landing { target, clock, paths: Vec::new(), said: Vec::new(), notes: Vec::new() };
        let mut recording = beginning.record(landing)?;
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
        Ok(recording.end(plan.steps.len()))
    }
}

fn facts() -> Result<HostFacts, Failure> {
    let allowed = allowed_processors().map_err(|error| {
        Failure::new(format_args!("the kernel does not say which processors this process may use: {error}"))
            .with_hint("it does on machines of up to 1,024 processors".to_owned())
    })?;
    let topology = environment::capture(None).topology;
    Ok(HostFacts { allowed, topology, available_memory: environment::available_memory() })
}
