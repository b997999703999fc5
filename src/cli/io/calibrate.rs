//! `plimsoll io calibrate`.

use crate::cli::arguments::SeedArg;
use crate::cli::dry_run::DryRun;

use clap::{ArgGroup, Args};

use super::arguments::{Storage, VolumeArgs};
use super::calibrate_database::{self, DatabaseArgs};
use super::volume::{Intended, OpenStorage, Prospect};
use crate::cli::arguments::KeepingArgs;
use crate::cli::arguments::Seconds;
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::live::{RunProgress, Steps, warmup_words};
use crate::cli::recording::{Header, NextStep, Recording};
use crate::cli::say;
use crate::cli::supervisor::Supervisor;
use crate::plan::calibrate::{CalibratePlan, CalibrateRequest, plan};
use analysis::{Calibration, DepthMeasurement, DepthSearch, LatencyCap, Question, REPEATS};
use measure::Clock;
use model::config::io::{BlockSize, DepthList, Pattern};
use model::record;
use model::units::{Bytes, Nanos};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll io calibrate --path /dev/sdb
  plimsoll io calibrate --path /u01/test.dat --size 64G --max-latency 5ms
  plimsoll io calibrate --path /dev/sdb --path /dev/sdc --stripe 1M \\
    --max-latency p99=10ms --json
  plimsoll io calibrate --path sim:iops_cap=5000,mbps_cap=200,clock=simulated
  plimsoll io calibrate --target 'oracle://sys@db1/orcl?role=sysdba' \\
    --disks 8 --max-latency 10ms --beside last

It only reads; missing files are laid out first. A whole calibration takes about 30 steps.";

/// Best points that are given up because repeats do not keep the limit, at most.
const MAX_RETREATS: usize = 3;
/// Steps that a calibration takes, about: for the time that is shown as left.
const DEFAULT_STEPS: usize = 28;

/// Storage of our own is named, unless a database calibrates its.
pub(super) fn storage(group: ArgGroup) -> ArgGroup {
    group.arg("target")
}

/// clap's own is one line that does not fit a terminal.
const USAGE: &str = "\
plimsoll io calibrate [OPTIONS] --path <PATH>
       plimsoll io calibrate [OPTIONS] --group <SPEC>
       plimsoll io calibrate [OPTIONS] --target <ADDRESS>";

/// Arguments of `plimsoll io calibrate`.
#[derive(Debug, Args)]
#[command(override_usage = USAGE)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    volume: VolumeArgs,

    #[command(flatten)]
    database: DatabaseArgs,

    /// Latency within which max_iops is looked for: of the mean, or of a quantile as in `p99=10ms`
    #[arg(
        long,
        alias = "limit",
        value_name = "[pQ=]TIME",
        default_value = "10ms",
        allow_hyphen_values = true,
        help_heading = "Load"
    )]
    max_latency: LatencyCap,

    /// Length of a small read
    #[arg(long, value_name = "SIZE", default_value = "8K", help_heading = "Load")]
    block_size: BlockSize,

    /// Length of each measured window, in seconds or with a unit
    #[arg(long, value_name = "TIME", default_value = "10", allow_hyphen_values = true, help_heading = "Load")]
    duration: Seconds,

    /// Load before each measured window; recorded and marked
    #[arg(long, value_name = "TIME", default_value = "1", allow_hyphen_values = true, help_heading = "Load")]
    warmup: Seconds,

    #[command(flatten)]
    seed: SeedArg,

    #[command(flatten)]
    keeping: KeepingArgs,
}

impl Arguments {
    /// Whether a database calibrates its own storage, of which no run comes.
    pub(in crate::cli) fn is_of_database(&self) -> bool {
        self.database.target().is_some()
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { volume, database, max_latency, block_size, duration, warmup, seed, keeping } = arguments;
    if let Some(address) = database.target() {
        return calibrate_database::run(address, database, *max_latency, keeping);
    }
    let large = BlockSize::new(Bytes::mib(1)).expect("requests may have a MiB");
    if *block_size >= large {
        let failure =
            Failure::new(format_args!("--block-size: small reads of {block_size} are not smaller than large ones"));
        return Err(failure.with_hint(format!("write less than {large}; databases read blocks of `8K`")));
    }
    let storage = volume.storage()?;
    let asked = volume.asked(&storage, Pattern::RandRead, *block_size, DepthList(vec![1]));
    asked.check()?;
    let prospect = Prospect::look(&storage, &volume.handling, &asked)?;
    let request = CalibrateRequest {
        small: *block_size,
        large,
        max_latency: max_latency.to_string(),
        size: volume.size,
        duration: duration.0,
        warmup: warmup.0,
        seed: seed.or_fresh(),
        tags: keeping.tags.clone(),
        processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
    };
    let plan = plan(&request, &prospect.facts(&asked)?)?;
    if keeping.dry_run {
        let time = Nanos(plan.step_time().0.saturating_mul(DEFAULT_STEPS as u64));
        return described(&plan, &request, &prospect, &storage).print(Some(time), prospect.clock().is_simulated());
    }
    let interrupt = Interrupt::listen()?;
    let (clock, verbosity) = (prospect.clock(), keeping.progress.verbosity());
    let intended =
        Intended { region_bytes: plan.region_bytes, largest_bytes: request.large.bytes(), seed: request.seed };
    let opened = prospect.open(&asked, intended, clock, &interrupt, verbosity)?;
    let recording = begin(arguments, &plan, &request, &storage, &opened, clock, &interrupt)?;
    let (small, large) = (request.small, request.large);
    let mut session = Session { recording, plan, opened, cap: *max_latency, readings: Vec::new() };
    let whole = session.calibrate(small, large);
    let Session { recording, opened, .. } = session;
    drop(opened);
    let steps = recording.steps().len() + usize::from(whole == NextStep::Stop);
    let recorded = recording.end(steps);
    let found = Calibration::of(&recorded.run).is_some_and(|calibration| calibration.max_iops.is_some());
    match recorded.report(keeping.format.format(), &[], &interrupt)? {
        Exit::Done if !found => {
            say::note(format_args!("not even one read at a time keeps the limit: {max_latency}"));
            // What a supervised process ends with is about its data.
            Ok(if Supervisor::of_this_process().is_some() { Exit::Done } else { Exit::NotMet })
        }
        exit => Ok(exit),
    }
}

/// A calibration under way.
struct Session {
    recording: Recording,
    plan: CalibratePlan,
    opened: OpenStorage,
    cap: LatencyCap,
    /// Size and depth of every step so far.
    readings: Vec<(BlockSize, u32)>,
}

impl Session {
    /// Looks for the best depth of each size, then measures both again and again in turn, so that what changes with time
    /// changes both.
    fn calibrate(&mut self, small: BlockSize, large: BlockSize) -> NextStep {
        let mut requests = DepthSearch::new(Question::Requests.rule(self.plan.max_small));
        let mut bytes = DepthSearch::new(Question::Bytes.rule(self.plan.max_large));
        if self.explore(small, Question::Requests, &mut requests) == NextStep::Stop
            || self.explore(large, Question::Bytes, &mut bytes) == NextStep::Stop
        {
            return NextStep::Stop;
        }
        let best = |search: &DepthSearch| search.best().map(|reading| reading.depth);
        let (mut small_depth, large_depth) = (best(&requests), best(&bytes));
        let mut large_left = REPEATS;
        for _ in 0..MAX_RETREATS {
            for _ in 0..REPEATS {
                let large_now = large_depth.filter(|_| large_left > 0);
                large_left = large_left.saturating_sub(1);
                for (block, depth) in [(small, small_depth), (large, large_now)] {
                    if depth.is_some_and(|depth| self.measure(block, depth) == NextStep::Stop) {
                        return NextStep::Stop;
                    }
                }
            }
            let Some(depth) = small_depth else { break };
            let answer = Calibration::of(self.recording.run()).and_then(|calibration| calibration.max_iops);
            if answer.is_some_and(|answer| answer.rate.runs >= REPEATS) {
                break;
            }
            // What one reading promised the repeats did not keep.
            requests.record(DepthMeasurement { depth, rate: 0.0, keeps_limit: false });
            if self.explore(small, Question::Requests, &mut requests) == NextStep::Stop {
                return NextStep::Stop;
            }
            small_depth = best(&requests);
        }
        NextStep::Go
    }

    /// Measures depths until the best is known.
    fn explore(&mut self, block: BlockSize, question: Question, search: &mut DepthSearch) -> NextStep {
        while let Some(depth) = search.next() {
            if self.measure(block, depth) == NextStep::Stop {
                return NextStep::Stop;
            }
            // Without a single read there is nothing to go by.
            let cap = self.cap;
            let Some(reading) = self.recording.steps().last().and_then(|step| question.reading(step, &cap)) else {
                break;
            };
            search.record(reading);
        }
        NextStep::Go
    }

    fn measure(&mut self, block: BlockSize, depth: u32) -> NextStep {
        self.readings.push((block, depth));
        let reading = self.readings.iter().filter(|known| **known == (block, depth)).count();
        let index = self.recording.steps().len() as u32;
        self.opened.expect_largest(block.bytes());
        self.recording.step(self.opened.target(), &self.plan.step(index, block, depth, reading))
    }
}

fn begin(
    arguments: &Arguments,
    plan: &CalibratePlan,
    request: &CalibrateRequest,
    storage: &Storage,
    opened: &OpenStorage,
    clock: Clock,
    interrupt: &Interrupt,
) -> Result<Recording, Failure> {
    let KeepingArgs { runs, progress, .. } = &arguments.keeping;
    let progress = RunProgress::new(Steps::About(DEFAULT_STEPS), progress.verbosity());
    let notes = opened.target().notes();
    notes.iter().for_each(|note| progress.note(note));
    let header = Header {
        head: plan.head.clone(),
        check: None,
        target: record::Target {
            block_bytes: Some(u64::from(request.small.bytes())),
            data_bytes: Some(plan.region_bytes),
            ..opened.target().describe()
        },
        paths: storage.local(),
        notes,
        fleet: None,
    };
    Recording::begin(&runs.store(), header, clock, interrupt, progress)
}

fn described(plan: &CalibratePlan, request: &CalibrateRequest, prospect: &Prospect, storage: &Storage) -> DryRun {
    let described = DryRun::named(&plan.head.name).facts("path", storage.paths().iter().map(|path| path.display()));
    let described = prospect
        .describe_fills(described)
        .fact("touch", Bytes(plan.region_bytes))
        .fact("seed", request.seed)
        .settings(&plan.head.tags, &plan.head.parameters)
        .gap();
    let (warmup, duration) = (warmup_words(request.warmup), request.duration);
    [
        (request.small, plan.max_small, format!("the rate is flat or breaks {}", request.max_latency)),
        (request.large, plan.max_large, "the rate is flat".to_owned()),
    ]
    .into_iter()
    .fold(described, |it, (block, most, until)| {
        it.line(format_args!("{block} reads, 1, 2, 4, … up to {most} outstanding, until {until}"))
    })
    .line(format_args!("then both best points {REPEATS} times in turn; each step has {warmup} and {duration} measured"))
}
