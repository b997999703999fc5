//! `plimsoll slob`.

mod arguments;
mod like;
mod load;
mod map;
mod script;
mod setup;
#[cfg(feature = "oracle")]
mod sql_script;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::{Args, Subcommand};

use super::exit::{Exit, Failure};
use crate::cli::arguments::{Format, FormatArgs, IoArgs, Measured, ProgressArgs, TargetArgs};
use crate::cli::database_load::{self, Moment};
use crate::cli::doctor::{keep, write_checks};
use crate::cli::dry_run::{DryRun, DryRunArg};
use crate::cli::fleet::{Experiment, Fleet, Joined};
use crate::cli::like::{LikeArgs, Shape, read_times};
use crate::cli::live::{ByteProgress, Steps};
use crate::cli::recording::{Recorded, Recording};
use crate::cli::runner::{self, Beginning, Outline, Work};
use crate::cli::servers::ServerArgs;
use crate::cli::timed::Timed;
use crate::cli::{Interrupt, RemovalArgs, in_turn, limits, say, sheets};
use crate::databases::{self, examine};
use crate::plan::share_out;
use crate::plan::slob::{RunPlan, SlobPlanRequest, facts_as_asked, plan};
use arguments::LedgerArgs;
use load::LoadArgs;
use model::config::io::RateRange;
use model::config::{Axes, MAX_SESSIONS, SlobParameters, TargetAddress, ThreadList, Vary, slob_conf};
use script::Script;
use targets::TargetError;
use targets::database::{Database, DatabaseOptions, DropScope, OpenRequest, Progress};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll slob setup -s 8 SCALE=1G --target dir:/u01/plimsoll
  plimsoll slob run -s 8 -t 4 RUN_TIME=60 UPDATE_PCT=20 \\
    --target dir:/u01/plimsoll
  plimsoll slob run -c slob.conf 8
  plimsoll slob sweep -s 8 --threads 1,2,4,8,16,32
  plimsoll slob map -s 8 --limit p99=5ms
  plimsoll slob verify
  plimsoll slob drop --dry-run";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create the data that loads use
    #[command(after_long_help = super::arguments::with_parameters(setup::EXAMPLES))]
    Setup(setup::Arguments),
    /// Measure one load
    #[command(after_long_help = super::arguments::with_parameters(RUN_EXAMPLES))]
    Run(RunArguments),
    /// Measure several loads in turn and find the largest that the target sustains
    #[command(after_long_help = super::arguments::with_parameters(SWEEP_EXAMPLES))]
    Sweep(SweepArguments),
    /// Find the line over reads and updates per second at which both meet a latency limit
    #[command(after_long_help = super::arguments::with_parameters(map::EXAMPLES))]
    Map(Box<map::Arguments>),
    /// Read all data and prove that it is intact and that no commit is missing
    #[command(after_long_help = VERIFY_EXAMPLES)]
    Verify(VerifyArguments),
    /// Show what data exists
    #[command(after_long_help = INFO_EXAMPLES)]
    Info(InfoArguments),
    /// Check whether an Oracle database is fit for measuring, and write the findings to a file
    #[command(after_long_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArguments),
    /// Remove the data
    #[command(after_long_help = DROP_EXAMPLES)]
    Drop(DropArguments),
    /// Print every statement that would be sent, for review
    #[cfg(feature = "oracle")]
    #[command(after_long_help = super::arguments::with_parameters(sql_script::EXAMPLES))]
    Script(sql_script::Arguments),
}

impl Command {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Setup(arguments) => setup::run(&arguments),
            Self::Run(arguments) => self::run(&arguments),
            Self::Sweep(arguments) => run_sweep(&arguments),
            Self::Map(arguments) => map::run(&arguments),
            Self::Verify(arguments) => run_verify(&arguments),
            Self::Info(arguments) => run_info(&arguments),
            Self::Doctor(arguments) => run_doctor(&arguments),
            Self::Drop(arguments) => run_drop(&arguments),
            #[cfg(feature = "oracle")]
            Self::Script(arguments) => sql_script::run(&arguments),
        }
    }
}

const INFO_EXAMPLES: &str = "\
Examples:
  plimsoll slob info
  plimsoll slob info --target dir:/u01/plimsoll --json

It only looks, so it works while a run goes on; a private server (`pg:DIR`, `my:DIR`) is started for it and stopped again.";

/// Arguments of `plimsoll slob info`.
#[derive(Debug, Args)]
pub(super) struct InfoArguments {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
}

fn run_info(arguments: &InfoArguments) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let address = arguments.target.address();
    let database = databases::slob(address, &arguments.server.options(address)?)?;
    let sheet = interrupt.judge(sheets::with(database, |database| {
        let sheet = database.info(interrupt.flag())?;
        database.notes().iter().for_each(say::note);
        Ok(sheet)
    }))?;
    sheets::show(&sheet, arguments.format.format())
}

const DROP_EXAMPLES: &str = "\
Examples:
  plimsoll slob drop --dry-run                    only say what would go
  plimsoll slob drop --target dir:/u01/plimsoll --yes
  plimsoll slob drop --target postgres://bench@db1/bench

It removes only what setup created, and the directory if nothing else is in it. It removes a private server \
(`pg:DIR`, `my:DIR`) whole, unless order entry is in it too. On your own server it removes only the tables that \
setup created.";

/// Arguments of `plimsoll slob drop`.
#[derive(Debug, Args)]
pub(super) struct DropArguments {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    removal: RemovalArgs,
}

fn run_drop(arguments: &DropArguments) -> Result<Exit, Failure> {
    let address = arguments.target.address();
    let options = arguments.server.options(address)?;
    let interrupt = Interrupt::listen()?;
    interrupt.judge(sheets::with(databases::slob(address, &options)?, |database| {
        let plan = database.plan_drop(DropScope::Everything, interrupt.flag())?;
        arguments.removal.run(plan, &interrupt)
    }))
}

const SWEEP_EXAMPLES: &str = "\
Examples:
  plimsoll slob sweep -s 8 --threads 1,2,4,8,16,32 RUN_TIME=30
  plimsoll slob sweep -s 8 --threads 1..64 --duration 30
  plimsoll slob sweep -s 8 --threads 1,4,16 --vary WORK_UNIT=4,16,64
  plimsoll slob sweep -s 8 --vary UPDATE_PCT=0,20,50,100 --dry-run
  plimsoll slob sweep --threads 1,2,4 --target sim: --limit p99=2ms
  plimsoll slob sweep --like 202610 --times 1..8 --limit p99=10ms";

/// clap's own is one line that does not fit a terminal.
const USAGE: &str = "\
plimsoll slob sweep [OPTIONS] --threads <N,N,...> [N | KEY=VALUE]...
       plimsoll slob sweep [OPTIONS] --vary <KEY=V,V,...> [N | KEY=VALUE]...
       plimsoll slob sweep [OPTIONS] --like <RUN> --times <N..N> [KEY=VALUE]...";

/// Arguments of `plimsoll slob sweep`.
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("axes").args(["threads", "vary", "times"]).required(true).multiple(true),
    override_usage = USAGE
)]
pub(super) struct SweepArguments {
    /// Sessions for each schema, one step each: 1,2,4 or 1,2,…,64 or 1..64
    #[arg(short, long, value_name = "N,N,...", help_heading = "Load")]
    threads: Option<ThreadList>,

    /// Values of one parameter, one step each: WORK_UNIT=4,16,64 or WORK_UNIT=4..64
    ///
    /// With several of these flags, every combination is a step.
    #[arg(long, value_name = "KEY=V,V,...", help_heading = "Load")]
    vary: Vec<Vary>,

    #[command(flatten)]
    like: LikeArgs,

    /// Multiples of production's load, one step each: 1,2,4
    ///
    /// `1..8` finds the multiple that the target sustains.
    #[arg(
        long,
        value_name = "N..N",
        requires = "like",
        conflicts_with_all = ["threads", "vary"],
        help_heading = "Like production"
    )]
    times: Option<RateRange>,

    #[command(flatten)]
    load: LoadArgs,
}

fn run_sweep(arguments: &SweepArguments) -> Result<Exit, Failure> {
    if let Some(times) = &arguments.times {
        let request = arguments.load.request(None, Axes::default())?;
        let production = arguments.like.production(None, &arguments.load.keeping.runs)?;
        return like::run(&arguments.load, &request, production, times);
    }
    if arguments.like.is_asked() {
        let failure = Failure::new("`--like` sweeps multiples of what production did, and none are given");
        return Err(failure.with_hint("say which: `--times 1..8`, or `--times 1,2,4`".to_owned()));
    }
    let axes = Axes::new(arguments.threads.clone(), arguments.vary.clone())?;
    let request = arguments.load.request(None, axes)?;
    run_measure(&arguments.load, &request)
}

const DOCTOR_EXAMPLES: &str = "\
Examples:
  plimsoll slob doctor --target oracle://slob@db1/orclpdb
  plimsoll slob doctor --target oracle://slob@db1/orclpdb -o doctor.txt

It changes nothing: with data of ours it reads for two seconds and commits ten times without a change. The file is \
for those who help: names of machines are masked in it, names of users, services and tables are not. Please send it \
to us: Plimsoll was never tried on a real Oracle database. Exit code 1: something spoils a test.";

/// What every such file begins with.
const HEAD: &str = "plimsoll slob doctor";

/// Arguments of `plimsoll slob doctor`.
#[derive(Debug, Args)]
pub(super) struct DoctorArguments {
    #[command(flatten)]
    target: TargetArgs,

    /// File to write [default: ./plimsoll-doctor-TIME.txt]
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    dry_run: DryRunArg,
}

fn run_doctor(arguments: &DoctorArguments) -> Result<Exit, Failure> {
    let now = jiff::Timestamp::now();
    let path = arguments
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("plimsoll-doctor-{}.txt", now.strftime("%Y%m%d-%H%M%S"))));
    if arguments.dry_run.is_set() {
        return DryRun::default()
            .fact("connect", format_args!("to `{}`", arguments.target.address()))
            .fact("read", "for two seconds, if it has data of Plimsoll")
            .fact("commit", "ten times without a change, if it has data of Plimsoll")
            .fact("write", format_args!("`{}`", path.display()))
            .print(None, false);
    }
    let interrupt = Interrupt::listen()?;
    let found = examine(arguments.target.address(), &|words| say::line(words), interrupt.flag());
    let found = interrupt.judge(found.map_err(Failure::from))?;
    keep(&path, HEAD, &found, now)?;
    match arguments.format.format() {
        Format::Json => say::json(&found)?,
        Format::Text => {
            let mut out = anstream::stdout().lock();
            write_checks(&mut out, &found.checks)?;
            out.flush()?;
        }
    }
    say::line(format_args!("wrote `{}`: machines are masked in it, users and services are not", path.display()));
    Ok(if found.has_problem() { Exit::NotMet } else { Exit::Done })
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  plimsoll slob verify
  plimsoll slob verify --target dir:/u01/plimsoll --json
  plimsoll slob verify --target dir:/u01/plimsoll --scrub

Redo is replayed first if the last run was killed. Exit code 1: a block is not what was written, or a commit that was \
acknowledged is missing. Exit code 2: which commits were acknowledged is not known, as after a power loss.";

/// Arguments of `plimsoll slob verify`.
#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    #[command(flatten)]
    target: TargetArgs,
    /// Also compare all copies that a disk group keeps of the files, and make them alike
    #[arg(long, help_heading = "Data")]
    scrub: bool,

    #[command(flatten)]
    ledger: LedgerArgs,

    #[command(flatten)]
    io: IoArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    progress: ProgressArgs,
    #[command(flatten)]
    dry_run: DryRunArg,
}

impl VerifyArguments {
    fn print_plan(&self) -> Result<Exit, Failure> {
        let address = self.target.address();
        let is_engine = matches!(address, TargetAddress::Directory(_));
        let starts = address.is_private_server().then_some("a private server, and stop it again");
        DryRun::default()
            .facts("start", starts)
            .facts("replay", is_engine.then_some("redo, if the last run was killed"))
            .fact("read", format_args!("all data of `{address}`"))
            .facts("repair", self.scrub.then_some("copies on disk groups that differ"))
            .print(None, false)
    }
}

fn run_verify(arguments: &VerifyArguments) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let address = arguments.target.address();
    let options = arguments.server.options(address)?;
    if arguments.scrub && !matches!(address, TargetAddress::Directory(_)) {
        let failure = Failure::new(format_args!("`--scrub` is for the embedded engine, not for `{address}`"));
        return Err(failure.with_hint(
            "leave it out: it compares the copies of a disk group, and no other target has files on one".to_owned(),
        ));
    }
    let ledger = arguments.ledger.directory(address)?;
    if arguments.dry_run.is_set() {
        return arguments.print_plan();
    }
    let options = DatabaseOptions { io_engine: arguments.io.engine(), scrub: arguments.scrub, ledger, ..options };
    let verified = sheets::with(databases::slob(address, &options)?, |database| {
        let progress = ByteProgress::new("verifying", arguments.progress.verbosity());
        let show = |now: Progress| progress.update(now.done_bytes, now.total_bytes);
        let outcome = database.verify(&show, interrupt.flag());
        progress.end();
        database.notes().iter().for_each(say::note);
        outcome.map_err(|error| match (error, interrupt.exit()) {
            (TargetError::Interrupted, Some(exit)) => {
                Failure::new("interrupted; not all data were read").with_exit(exit)
            }
            (error, _) => Failure::from(error),
        })
    })?;
    match arguments.format.format() {
        Format::Json => say::json(&verified.sheet.document)?,
        Format::Text => {
            verified.notes.iter().for_each(say::note);
            let mut out = say::output();
            sheets::write(&mut out, &verified.sheet)?;
            out.flush()?;
        }
    }
    Ok(match (verified.is_sound, verified.is_proven) {
        (false, _) => Exit::NotMet,
        (true, true) => Exit::Done,
        (true, false) => Exit::NoVerdict,
    })
}

const RUN_EXAMPLES: &str = "\
Examples:
  plimsoll slob run -s 8 -t 4 RUN_TIME=60 UPDATE_PCT=20 \\
    --tag vm=d8s --tag disk=p30x2
  plimsoll slob run -c slob.conf                      an existing slob.conf
  plimsoll slob run -c slob.conf 8 WORK_UNIT=16       one value overridden
  plimsoll slob run 4 --rate 500/s --limit p99=10ms   open loop, with a limit
  plimsoll slob run -s 64 --target sim:service=200us,servers=8
  plimsoll slob run --like 202610 --dry-run           as production's peak
  plimsoll slob run --like 202610 --times 2 RUN_TIME=60
  plimsoll slob run --like 202610 --shape day RUN_TIME=30";

/// Arguments of `plimsoll slob run`.
#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// Sessions for each schema (overrides THREADS_PER_SCHEMA)
    #[arg(
        short,
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SESSIONS)),
        help_heading = "Load"
    )]
    threads: Option<u32>,

    #[command(flatten)]
    like: LikeArgs,

    /// Multiple of production's load [default: 1]
    #[arg(long, value_name = "N", requires = "like", value_parser = read_times, help_heading = "Like production")]
    times: Option<f64>,

    /// Run a whole day of production, in steps of --duration each
    #[arg(
        long,
        value_enum,
        value_name = "SHAPE",
        requires = "like",
        conflicts_with = "at",
        help_heading = "Like production"
    )]
    shape: Option<Shape>,

    #[command(flatten)]
    load: LoadArgs,
}

impl RunArguments {
    /// The directory that nobody else can use at the same time, if the data are in one.
    pub(super) fn directory(&self) -> Option<&Path> {
        self.load.put.address().directory()
    }

    /// When the load is measured.
    ///
    /// # Errors
    /// If the parameters cannot be read, or may end the window before its time.
    pub(super) fn measured(&self) -> Result<Measured, Failure> {
        if self.shape.is_some() {
            let failure = Failure::new("a day of production is several loads, and one is to run beside others");
            return Err(failure.with_hint("choose one moment: `--at peak`, or an hour".to_owned()));
        }
        let request = self.load.request(self.threads, Axes::default())?;
        let SlobParameters { run_time, work_loop, .. } = SlobParameters::from_settings(&request.settings)?;
        if work_loop > 0 {
            let failure = Failure::new(format_args!("`WORK_LOOP={work_loop}` ends a load when its work is done"));
            return Err(failure.with_hint("leave it out; loads that are measured together end at one time".to_owned()));
        }
        let warmup = request.warmup.unwrap_or_else(|| SlobPlanRequest::default_warmup(run_time));
        Ok(Measured { warmup, duration: run_time })
    }
}

fn run(arguments: &RunArguments) -> Result<Exit, Failure> {
    let RunArguments { threads, like, times, shape, load } = arguments;
    let request = load.request(*threads, Axes::default())?;
    if !like.is_asked() {
        return run_measure(load, &request);
    }
    let times = RateRange::Each(vec![times.unwrap_or(1.0)]);
    like::run(load, &request, like.production(*shape, &load.keeping.runs)?, &times)
}

/// Plans and checks everything, runs it, keeps it and reports it.
fn run_measure(arguments: &LoadArgs, request: &SlobPlanRequest) -> Result<Exit, Failure> {
    let fleet = arguments.fleet.join()?;
    let interrupt = Interrupt::listen()?;
    let stop = interrupt.flag();
    let mut database = databases::slob(arguments.put.address(), &arguments.options()?)?;
    let (plan, joined, script) = interrupt.judge(planned(arguments, request, &fleet, &mut *database, stop))?;
    let work = Planned { arguments, plan, joined, script, database };
    runner::run_with(work, Some(&interrupt), Recorded::report)
}

/// A load that is planned and checked, on a database that is not open yet.
struct Planned<'a> {
    arguments: &'a LoadArgs,
    plan: RunPlan,
    joined: Joined,
    script: Option<Script>,
    database: Box<dyn Database>,
}

impl<'a> Work<'a> for Planned<'a> {
    fn outline(&self) -> Outline<'a> {
        let Self { arguments, plan, .. } = self;
        let steps = Steps::Known(plan.steps.len(), plan.duration());
        Outline {
            joined: Some(self.joined.clone()),
            limits: arguments.limits.asked(),
            is_simulated: arguments.put.address().has_simulated_time(),
            ..Outline::new(&plan.head, &arguments.keeping, steps)
        }
    }

    fn described(self) -> Result<DryRun, Failure> {
        self.database.close()?;
        Ok(described(&self.plan, self.arguments.put.address()))
    }

    fn carry_out(self, beginning: Beginning<'_>) -> Result<Recorded, Failure> {
        let Self { arguments, plan, script, database, .. } = self;
        let (progress, stop) = (&beginning.progress, beginning.interrupt.flag());
        let recovering = |redo_bytes| progress.recovering(redo_bytes);
        let opened = database.open(&OpenRequest { load: plan.load(), recovering: &recovering, stop });
        let opened = beginning.opened(opened)?;
        if plan.has_usual_time && !opened.clock().is_simulated() {
            let takes = plan.duration();
            progress.line(&format!("this run takes {takes} (default RUN_TIME=300); to shorten it: `RUN_TIME=60`"));
        }
        let RunPlan { steps, notes, .. } = plan;
        let mut call = |moment: Moment, _: &mut Recording| script.as_ref().map_or(Ok(()), |script| script.call(moment));
        database_load::record(beginning, opened, notes, &mut call, &mut |recording, target| {
            in_turn::run(recording, target, &steps, &arguments.limits.asked())
        })
    }
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
    let (mut plan, joined) = fleet.plan(arguments.put.seed.given(), &mut |seed| {
        let mut plan = plan(&SlobPlanRequest { seed, ..request.clone() }, &facts)?;
        plan.steps = share_out(plan.steps, fleet.share())?;
        let experiment = Experiment::new(&plan.head, &plan.steps);
        Ok((plan, experiment))
    })?;
    plan.notes.extend(database.check_load(&plan.load(), stop)?);
    limits::check_planned(&arguments.limits.asked(), &Timed::of_slob(&plan, timing, arguments.put.has_flash()))?;
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
