//! `plimsoll io calibrate`.

use std::io;
use std::io::Write;

use crate::cli::arguments::{Format, KeepingArgs, Seconds, SeedArg, Taken};
use crate::cli::dry_run::DryRun;

use clap::{ArgGroup, Args};
use serde_json::json;

use super::arguments::{Storage, VolumeArgs};
use super::volume::{Intended, OpenStorage, Prospect};
use crate::cli::exit::{Exit, Failure};
use crate::cli::live::{Steps, Verbosity, warmup_words};
use crate::cli::recording::{NextStep, Recorded, Recording};
use crate::cli::runner::{self, Beginning, Outline, Work};
use crate::cli::supervisor::Supervisor;
use crate::cli::{Interrupt, processors, say, second_look};
use crate::databases::calibrate_io;
use crate::plan::{CalibratePlan, CalibrateRequest, plan};
use analysis::{Calibration, DepthMeasurement, DepthSearch, LatencyCap, Question, REPEATS, Statistic, pulse_wanted};
use model::config::TargetAddress;
use model::config::io::{BlockSize, DepthList, IoOptions, Pattern};
use model::record::Level;
use model::units::{Bytes, Nanos, group_thousands};
use targets::database::{IoCalibration, IoCalibrationRequest};

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

    /// Latency limit for max_iops: of the mean, or of a percentile as in `p99=10ms`
    #[arg(
        long,
        alias = "limit",
        value_name = "[pQ=]TIME",
        default_value = "10ms",
        allow_hyphen_values = true,
        help_heading = "Load"
    )]
    max_latency: LatencyCap,

    /// Size of a request
    #[arg(long, value_name = "SIZE", default_value = "8K", help_heading = "Load")]
    block_size: BlockSize,

    /// Length of each measured window, in seconds or with a unit
    #[arg(long, value_name = "TIME", default_value = "10", allow_hyphen_values = true, help_heading = "Load")]
    duration: Seconds,

    /// Load before each measured window, recorded and marked
    #[arg(long, value_name = "TIME", default_value = "1", allow_hyphen_values = true, help_heading = "Load")]
    warmup: Seconds,

    #[command(flatten)]
    seed: SeedArg,

    /// Leave out the experiments after the last step, which identify the limit
    ///
    /// They are five pulses, each after a pause of 0.7 s. They distinguish a rate limiter from the device.
    #[arg(long, help_heading = "Load")]
    no_experiments: bool,

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
    let Arguments { volume, database, max_latency, block_size, duration, warmup, seed, keeping, no_experiments: _ } =
        arguments;
    if let Some(address) = database.target() {
        return run_calibrate_database(address, database, *max_latency, keeping);
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
        processors: processors(),
    };
    let plan = plan(&request, &prospect.facts(&asked)?)?;
    let work = Planned { arguments, request, plan, storage, asked, prospect };
    runner::run_with(work, None, |recorded, outline, interrupt| {
        let found = Calibration::of(recorded.run()).is_some_and(|calibration| calibration.max_iops.is_some());
        match recorded.report(outline, interrupt)? {
            Exit::Done if !found => {
                say::note(format_args!("not even one read at a time keeps the limit: {max_latency}"));
                // What a supervised process ends with is about its data.
                Ok(if Supervisor::of_this_process().is_some() { Exit::Done } else { Exit::NotMet })
            }
            exit => Ok(exit),
        }
    })
}

/// A calibration that is planned and checked.
struct Planned<'a> {
    arguments: &'a Arguments,
    request: CalibrateRequest,
    plan: CalibratePlan,
    storage: Storage,
    asked: IoOptions,
    prospect: Prospect,
}

impl<'a> Work<'a> for Planned<'a> {
    fn outline(&self) -> Outline<'a> {
        let Self { plan, arguments, prospect, .. } = self;
        let time = Nanos(plan.step_time().0.saturating_mul(DEFAULT_STEPS as u64));
        let is_simulated = prospect.clock().is_simulated();
        let outline = Outline::new(&plan.head, &arguments.keeping, Steps::About(DEFAULT_STEPS));
        Outline { time: Some(time), is_simulated, ..outline }
    }

    fn described(self) -> Result<DryRun, Failure> {
        let described = described(&self.plan, &self.request, &self.prospect, &self.storage);
        let pulses = "then five pulses, if the steps do not show whether a limiter or the device holds the rate";
        Ok(if self.arguments.no_experiments { described } else { described.line(pulses) })
    }

    fn carry_out(self, beginning: Beginning<'_>) -> Result<Recorded, Failure> {
        let Self { arguments, request, plan, storage, asked, prospect } = self;
        let (clock, verbosity) = (prospect.clock(), arguments.keeping.progress.verbosity());
        let CalibrateRequest { small, large, .. } = request;
        let intended = Intended { region_bytes: plan.region_bytes, largest_bytes: large.bytes(), seed: request.seed };
        let opened = prospect.open(&asked, intended, clock, beginning.interrupt, verbosity)?;
        let landing = opened.landing(clock, Bytes(small.bytes().into()), plan.region_bytes, storage.local());
        let recording = beginning.record(landing)?;
        let mut session = Session { recording, plan, opened, cap: arguments.max_latency, readings: Vec::new() };
        let whole = session.calibrate(small, large);
        if whole == NextStep::Go && !arguments.no_experiments {
            session.pulse();
        }
        let Session { recording, opened, .. } = session;
        drop(opened);
        let steps = recording.steps().len() + usize::from(whole == NextStep::Stop);
        Ok(recording.end(steps))
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

    /// Sends pulses of the load whose limit the steps show, if they leave open what holds it.
    fn pulse(&mut self) {
        let Some(wanted) = pulse_wanted(self.recording.run()) else { return };
        let Some(Level::Calibrate(level)) = self.recording.steps()[wanted.step].level.clone() else { return };
        let index = self.recording.steps().len() as u32;
        self.opened.expect_largest(level.block.bytes());
        let plan = self.plan.step(index, level.block, level.depth, 1);
        second_look::pulse(&mut self.recording, self.opened.target(), &plan);
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

/// Disks behind a database where nobody says how many, as `CALIBRATE_IO` has it.
const DEFAULT_DISKS: u32 = 1;
/// What an end by the user leaves behind.
const GOES_ON: &str = "the database goes on calibrating; that ends by itself";
const MILLISECOND: u64 = 1_000_000;
/// Flags that are about storage of our own.
const OF_STORAGE: [&str; 17] = [
    "paths",
    "group",
    "oranfstab",
    "size",
    "stripe",
    "mirror",
    "direct",
    "engine",
    "prefill",
    "destroy",
    "destroy_signature",
    "block_size",
    "duration",
    "warmup",
    "no_experiments",
    "seed",
    "tags",
];

/// What only a database takes.
#[derive(Debug, Args)]
struct DatabaseArgs {
    /// Oracle database that runs CALIBRATE_IO three times: `oracle://sys@HOST/SERVICE?role=sysdba`
    #[arg(long, value_name = "ADDRESS", help_heading = "Oracle", conflicts_with_all = OF_STORAGE)]
    target: Option<TargetAddress>,

    /// Approximate number of disks behind the database [default: 1]
    #[arg(long, value_name = "N", help_heading = "Oracle", requires = "target", value_parser = clap::value_parser!(u32).range(1..))]
    disks: Option<u32>,

    /// Run of `io calibrate` on the same storage, to show alongside the database's results
    #[arg(long, value_name = "RUN", help_heading = "Oracle", requires = "target")]
    beside: Option<String>,
}

impl DatabaseArgs {
    /// The database, if one is to calibrate its storage.
    pub(super) fn target(&self) -> Option<&TargetAddress> {
        self.target.as_ref()
    }
}

/// Our own answers: reads a second, megabytes a second, mean latency.
struct Ours {
    id: String,
    max_iops: Option<(f64, Nanos)>,
    max_mb_per_s: Option<f64>,
}

fn run_calibrate_database(
    address: &TargetAddress,
    arguments: &DatabaseArgs,
    cap: LatencyCap,
    keeping: &KeepingArgs,
) -> Result<Exit, Failure> {
    let request = IoCalibrationRequest {
        disks: arguments.disks.unwrap_or(DEFAULT_DISKS),
        max_latency_ms: whole_milliseconds(cap)?,
    };
    let ours = arguments.beside.as_deref().map(|word| ours(word, keeping)).transpose()?;
    if keeping.dry_run {
        let call = format!(
            "DBMS_RESOURCE_MANAGER.CALIBRATE_IO, {REPEATS} times, with {} disks and at most {} ms",
            request.disks, request.max_latency_ms
        );
        return DryRun::default().fact("target", address).fact("call", call).print(None, false);
    }
    let interrupt = Interrupt::listen()?;
    say::note(
        "this was never tried on a real Oracle database: it was tested against a stand-in that speaks its protocol",
    );
    say::note(
        "CALIBRATE_IO reads all data files from all instances, so nothing else should run; the database keeps its answer",
    );
    interrupt.leaves(Some(GOES_ON.to_owned()));
    let mut answers = Vec::with_capacity(REPEATS);
    for number in 1..=REPEATS {
        if keeping.progress.verbosity() != Verbosity::Quiet {
            say::line(format_args!("CALIBRATE_IO {number} of {REPEATS}, which takes minutes"));
        }
        let answer = calibrate_io(address, &request, interrupt.flag()).map_err(Failure::from);
        let with_rest = |failure: Failure| match interrupt.exit() {
            Some(_) => failure.with_hint(GOES_ON.to_owned()),
            None => failure,
        };
        answers.push(interrupt.judge(answer).map_err(with_rest)?);
    }
    let median = median(&answers);
    match keeping.format.format() {
        Format::Json => say::json(&json!({
            "target": address.to_string(),
            "disks": request.disks,
            "max_latency_ms": request.max_latency_ms,
            "answers": answers,
            "median": median,
            "beside": ours.as_ref().map(|ours| json!({
                "run": ours.id,
                "max_iops": ours.max_iops.map(|(rate, _)| rate),
                "mean_latency_ns": ours.max_iops.map(|(_, mean)| mean.0),
                "max_mb_per_s": ours.max_mb_per_s,
            })),
        }))?,
        Format::Text => {
            let mut out = say::output();
            write(&mut out, &answers, &median, ours.as_ref())?;
            out.flush()?;
        }
    }
    Ok(Exit::Done)
}

/// CALIBRATE_IO limits the mean, in whole milliseconds.
fn whole_milliseconds(cap: LatencyCap) -> Result<u32, Failure> {
    let LatencyCap { statistic, limit } = cap;
    let whole = u32::try_from(limit.0 / MILLISECOND).ok().filter(|ms| *ms > 0 && limit.0 % MILLISECOND == 0);
    match (statistic, whole) {
        (Statistic::Mean, Some(ms)) => Ok(ms),
        _ => {
            let failure = Failure::new(format_args!("--max-latency: CALIBRATE_IO cannot keep `{cap}`"));
            Err(failure.with_hint("it limits the mean, in whole milliseconds: `--max-latency 10ms`".to_owned()))
        }
    }
}

fn ours(word: &str, keeping: &KeepingArgs) -> Result<Ours, Failure> {
    let (_, run_calibrate_database) = Taken::default().load(&keeping.runs.store(), word)?;
    let Some(Calibration { max_iops, max_bytes, .. }) = Calibration::of(&run_calibrate_database) else {
        let failure =
            Failure::new(format_args!("run `{}` is none of `plimsoll io calibrate`", run_calibrate_database.id));
        return Err(failure.with_hint("name one that is: `plimsoll runs` lists them".to_owned()));
    };
    Ok(Ours {
        id: run_calibrate_database.id,
        max_iops: max_iops.map(|answer| (answer.rate.value, answer.mean)),
        max_mb_per_s: max_bytes.map(|answer| answer.rate.value / 1e6),
    })
}

/// Of each figure by itself. There is an odd number of answers.
fn median(answers: &[IoCalibration]) -> IoCalibration {
    let of = |figure: fn(&IoCalibration) -> u64| {
        let mut figures: Vec<u64> = answers.iter().map(figure).collect();
        figures.sort_unstable();
        figures[figures.len() / 2]
    };
    IoCalibration {
        max_iops: of(|answer| answer.max_iops),
        max_mb_per_s: of(|answer| answer.max_mb_per_s),
        latency_ms: of(|answer| answer.latency_ms),
    }
}

fn write(
    out: &mut impl Write,
    answers: &[IoCalibration],
    median: &IoCalibration,
    ours: Option<&Ours>,
) -> io::Result<()> {
    let mut row = |of: &str, iops: String, mb_per_s: String, latency: String| {
        writeln!(out, "{of:<16} {iops:>12} {mb_per_s:>9} {latency:>10}")
    };
    let group = |figure: f64| group_thousands(figure.round());
    row("", "max_iops".to_owned(), "MB/s".to_owned(), "latency".to_owned())?;
    let numbered = answers.iter().enumerate().map(|(at, answer)| (format!("CALIBRATE_IO {}", at + 1), answer));
    for (of, answer) in numbered.chain([("median".to_owned(), median)]) {
        let latency = match answer.latency_ms {
            0 => "< 1 ms".to_owned(),
            ms => format!("{ms} ms"),
        };
        row(&of, group(answer.max_iops as f64), group(answer.max_mb_per_s as f64), latency)?;
    }
    let Some(Ours { id, max_iops, max_mb_per_s }) = ours else { return Ok(()) };
    let unknown = || "-".to_owned();
    row(
        "ours",
        max_iops.map_or_else(unknown, |(rate, _)| group(rate)),
        max_mb_per_s.map_or_else(unknown, group),
        max_iops.map_or_else(unknown, |(_, mean)| mean.to_string()),
    )?;
    writeln!(out, "\nours: run {id}; megabytes are of 10^6 bytes there, and the database does not say which it means")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(max_iops: u64, max_mb_per_s: u64, latency_ms: u64) -> IoCalibration {
        IoCalibration { max_iops, max_mb_per_s, latency_ms }
    }

    #[test]
    fn only_what_calibrate_io_can_keep_is_asked_of_it() {
        let asked = |text: &str| whole_milliseconds(text.parse().unwrap()).ok();
        assert_eq!([asked("10ms"), asked("mean=20ms"), asked("1s")], [Some(10), Some(20), Some(1000)]);
        assert_eq!([asked("p99=10ms"), asked("500us"), asked("1500us")], [None; 3]);
    }

    #[test]
    fn answers_stand_beside_ours_and_what_is_unknown_is_no_zero() {
        let answers = [answer(9000, 900, 8), answer(12_000, 850, 0), answer(11_000, 1000, 9)];
        let middle = median(&answers);
        assert_eq!(middle, answer(11_000, 900, 8));
        let ours = Ours { id: "r1".to_owned(), max_iops: None, max_mb_per_s: Some(812.4) };
        let mut out = Vec::new();
        write(&mut out, &answers, &middle, Some(&ours)).unwrap();
        let lines: Vec<Vec<String>> = String::from_utf8(out)
            .unwrap()
            .lines()
            .map(|line| line.split_whitespace().map(str::to_owned).collect())
            .collect();
        assert_eq!(lines[2], ["CALIBRATE_IO", "2", "12,000", "850", "<", "1", "ms"]);
        assert_eq!(lines[4], ["median", "11,000", "900", "8", "ms"]);
        assert_eq!(lines[5], ["ours", "-", "812", "-"]);
    }
}
