//! `plimsoll check`: is this load carried here? Yes or no, in a few lines.

mod database;
mod left_behind;
mod session;
mod storage;

use crate::cli::arguments::{RunsArgs, SeedArg};
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::arguments::{Format, KeepingArgs, Seconds};
use super::exit::{Exit, Failure};
use super::io::arguments::HandlingArgs;
use super::recording::Recorded;
use super::servers::ServerArgs;
use super::{Interrupt, page_file, report, say};
use crate::cli::like::one_database;
use crate::cli::trend::load;
use crate::plan::like::split;
use ::report::document::RunReport;
use ::report::html::Reported;
use analysis::LatencyTarget;
use analysis::capacity::{Demand as Needs, Share};
use analysis::check::{Carries, Check};
use left_behind::LeftBehind;
use measure::environment;
use model::config::TargetAddress;
use model::config::io::BlockSize;
use model::record::{Demand, Demands, Metric, Run, Throughput, Within};
use model::units::{Bytes, Nanos, group_thousands, shell_command};
use targets::block::layout::unfinished_path;
use targets::embedded::Descriptor;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll check --reads 20000@5ms --commits 200@10ms /u01
  plimsoll check --reads 20k@p99.9=5ms --writes 4k@10ms --for 30m /dev/sdb \\
    --destroy sdb
  plimsoll check --scan 800MB/s --reads 5000@5ms --size 200G /u01
  plimsoll check --like 202610 --for 10m /u01
  plimsoll check --reads 2000@20ms --commits 100@20ms pg:/u01/pgdata \\
    --host-memory 340M
  plimsoll check --reads 3000@5ms sim:iops_cap=8000,clock=simulated

Reads and writes alone go to raw storage. With commits they go to the embedded
engine, which reads, changes, logs and writes blocks as a database does. All of
them run at the same time, at the requested rates (open loop).

Exit codes: 0 yes, 1 no, 2 not measurable.";

/// Data that are made for a check unless the user says how large.
const DEFAULT_SIZE: Bytes = Bytes::gib(4);

/// Arguments of `plimsoll check`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Target to check: directory, file, block device, `dir:PATH`, `pg:DIR`, server address or `sim:`
    ///
    /// `dir:PATH` is data of the embedded engine, `pg:DIR` a private PostgreSQL.
    ///
    /// A server address is like `postgres://USER@HOST/DATABASE`; `sim:` is simulated storage.
    #[arg(value_name = "WHERE")]
    place: String,

    #[command(flatten)]
    demands: DemandArgs,

    /// Total time, including data creation, such as 2m or 30m (a bare number is seconds)
    #[arg(long = "for", value_name = "TIME", default_value = "2m", help_heading = "Load")]
    time: Seconds,

    /// Size of the temporary data, or the part of a file or device to use
    ///
    /// In a directory the default is 4G, but at most half of the free space.
    ///
    /// On a server the default is 1G, down to 320M with a short --for.
    ///
    /// Of a file or device the default is all of it.
    #[arg(long, value_name = "SIZE", help_heading = "Load")]
    size: Option<Bytes>,

    /// Size of a request
    #[arg(long, value_name = "SIZE", default_value = "8K", help_heading = "Load")]
    block_size: BlockSize,

    /// If commits limit a private server, stop waiting for its log for some seconds, as proof
    #[arg(long, help_heading = "Load")]
    prove: bool,

    /// Leave out the experiments after the last step, which identify the limit
    ///
    /// They are pulses, each after a pause of 0.7 s. They distinguish a limit from the device.
    #[arg(long, help_heading = "Load")]
    no_experiments: bool,

    #[command(flatten)]
    seed: SeedArg,

    #[command(flatten)]
    handling: HandlingArgs,

    #[command(flatten)]
    server: ServerArgs,

    /// File to write: an HTML page
    #[arg(short, long, value_name = "FILE", default_value = "check.html", help_heading = "Output")]
    output: PathBuf,

    #[command(flatten)]
    keeping: KeepingArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let demands = arguments.demands.read(&arguments.keeping.runs, arguments.block_size.bytes())?;
    let place = CheckTarget::look(&arguments.place, &demands, arguments.size)?;
    if arguments.prove && demands.commits.is_none() {
        let failure = Failure::new("--prove: no commits are requested, and it relieves only what commits wait for");
        return Err(failure.with_hint("leave it out, or ask for commits: `--commits 200@10ms`".to_owned()));
    }
    if arguments.prove && !place.is_private_server() {
        let failure = Failure::new(format_args!(
            "--prove: `{}` is not a private server, and it changes settings of the server",
            arguments.place
        ));
        return Err(failure.with_hint("leave it out, or name a private server: `pg:DIR` or `my:DIR`".to_owned()));
    }
    if !arguments.keeping.dry_run {
        page_file::check_page(&arguments.output)?;
    }
    let Some((recorded, interrupt)) = session::measure(arguments, &demands, place)? else { return Ok(Exit::Done) };
    say(arguments, recorded, &interrupt)
}

/// Writes the page and the answer, and says by the exit code which it is.
fn say(arguments: &Arguments, recorded: Recorded, interrupt: &Interrupt) -> Result<Exit, Failure> {
    let Recorded { run, failure, directory } = recorded;
    let findings = report::findings(&run, &[]);
    let page = report::page(&[Reported::new(&run, &findings)])?;
    let written = page_file::replace(&arguments.output, &page);
    let check = Check::of(&run, &findings).ok_or_else(|| Failure::new("no load was requested"))?;
    match arguments.keeping.format.format() {
        Format::Json => say::json(&RunReport::new(&run, &findings))?,
        Format::Text => {
            let mut out = say::output();
            for line in check.before.iter().map(|before| before.trim().to_owned()).chain(check.lines()) {
                writeln!(out, "{line}")?;
            }
            let page = if written.is_ok() { format!("Page: {}   ", shown(&arguments.output)) } else { String::new() };
            writeln!(out, "{page}Run: {}", run.id)?;
            out.flush()?;
        }
    }
    if !directory.exists() {
        say::note("the run could not be kept");
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    written?;
    if let Some(exit) = interrupt.exit() {
        say::note("the check was cut short; what was measured is kept");
        return Ok(exit);
    }
    Ok(match check.answer {
        Carries::Yes => Exit::Done,
        Carries::No(_) => Exit::NotMet,
        Carries::Unknown(_) => Exit::CouldNot,
    })
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// How soon reads and commits that come from `--like` must be done: 99 of 100 within what databases are usually judged by.
const READS_WITHIN: Within = Within { quantile: 0.99, limit: Nanos::millis(5) };
const COMMITS_WITHIN: Within = Within { quantile: 0.99, limit: Nanos::millis(10) };

/// Flags that say what is to be carried.
#[derive(Debug, Args)]
struct DemandArgs {
    /// Random single-block reads per second, and their limit: `20000@5ms`
    ///
    /// `20000@5ms` means p99 within 5 ms, `20000@p99.9=5ms` another percentile.
    #[arg(long, value_name = "N@TIME", help_heading = "Demand")]
    reads: Option<Demand>,

    /// Single-block writes per second, and their limit
    ///
    /// On raw storage each write is durable by itself.
    ///
    /// With --commits they are the blocks that commits change, and their latency is not judged.
    #[arg(long, value_name = "N@TIME", help_heading = "Demand")]
    writes: Option<Demand>,

    /// Durable commits per second, and their limit
    #[arg(long, value_name = "N@TIME", help_heading = "Demand")]
    commits: Option<Demand>,

    /// Large sequential reads per second: `800MB/s` (a bare number is megabytes)
    #[arg(long, value_name = "MB/s", help_heading = "Demand")]
    scan: Option<Throughput>,

    /// Take the rates from this run, such as an imported AWR report (repeatable)
    ///
    /// Rates are the peaks, with p99 of reads within 5 ms and of commits within 10 ms.
    ///
    /// Other flags override them.
    #[arg(long, value_name = "RUN", help_heading = "Demand")]
    like: Vec<String>,
}

impl DemandArgs {
    /// All demands.
    fn read(&self, runs: &RunsArgs, block_bytes: u32) -> Result<Demands, Failure> {
        let like = match self.like.as_slice() {
            [] => Demands::default(),
            names => needs(&load(names, runs)?, block_bytes)?,
        };
        let demands = Demands {
            reads: self.reads.or(like.reads),
            writes: self.writes.or(like.writes),
            commits: self.commits.or(like.commits),
            scan: self.scan.or(like.scan),
        };
        if demands.is_empty() {
            let failure = Failure::new("no load given");
            return Err(failure.with_hint("name the load: `--reads 20000@5ms --commits 200@10ms`".to_owned()));
        }
        if demands.commits.is_some() && self.writes.is_some_and(|writes| writes.within.is_some()) {
            let failure = Failure::new("with `--commits`, `--writes` cannot have a time limit");
            let hint = "a database writes in the background, where no session waits: give `--writes` a rate alone";
            return Err(failure.with_hint(hint.to_owned()));
        }
        Ok(demands)
    }
}

/// What the busiest windows of one database need, which is said with the windows.
fn needs(runs: &[Run], block_bytes: u32) -> Result<Demands, Failure> {
    let trend = &one_database(runs)?;
    let runs: Vec<&Run> = runs.iter().collect();
    let rates = Needs::of(trend, &runs, Share::Peak, &LatencyTarget::default()).rates;
    let demand = |per_s: Option<f64>, within| {
        let per_s = per_s.filter(|per_s| *per_s >= 1.0)?.ceil();
        Some(Demand { per_s, within })
    };
    let megabytes = trend.summary(Metric::ReadMegabytes).map(|summary| summary.peak);
    let (single, scan) = split(rates.reads, megabytes.map(|megabytes| megabytes * 1e6), block_bytes);
    let scan = scan.map(Throughput);
    let demands = Demands {
        reads: demand(single, Some(READS_WITHIN)),
        writes: demand(rates.writes, None),
        commits: demand(rates.commits, Some(COMMITS_WITHIN)),
        scan,
    };
    if demands.is_empty() {
        let failure = Failure::new("the runs of `--like` report neither reads, writes nor commits per second");
        return Err(failure.with_hint("name the load: `--reads 20000@5ms`".to_owned()));
    }
    let name = &trend.database.name;
    for (noun, measure) in [
        ("reads/s", Metric::Reads),
        ("MB/s read", Metric::ReadMegabytes),
        ("writes/s", Metric::Writes),
        ("commits/s", Metric::Commits),
    ] {
        if let Some(summary) = trend.summary(measure)
            && let Some(window) = trend.windows.get(summary.peak_at)
        {
            let (peak, run) = (group_thousands(summary.peak), &window.run);
            say::line(format_args!("{name}: {peak} {noun} at most, from {} to {} ({run})", window.from, window.to));
        }
    }
    match (scan, rates.reads, megabytes) {
        (Some(_), Some(reads), Some(megabytes)) => say::line(format_args!(
            "its reads are of {} on average: the large ones become a scan",
            Bytes((megabytes * 1e6 / reads) as u64)
        )),
        (None, Some(_), None) => {
            say::note("it does not report the size of its reads: each becomes a read of one block");
        }
        _ => {}
    }
    Ok(demands)
}

/// What is made in a directory: a file for raw storage, a directory for the engine's data.
const MADE: &str = "plimsoll-check";

/// Where a check is made.
enum CheckTarget {
    /// A file or device for raw storage.
    Storage {
        /// It.
        path: PathBuf,
        /// How much is used; all of it where nobody says.
        size: Option<Bytes>,
        /// Removes it at the end, if it was made for the check.
        made: Option<Made>,
    },
    /// A database.
    Database(Subject),
    /// Simulated storage.
    Simulated {
        /// What is planted.
        pairs: Vec<(String, String)>,
        /// Its size.
        size: Option<Bytes>,
    },
}

/// A database that a check is made on.
struct Subject {
    /// Where it is.
    address: TargetAddress,
    /// How large data are made there, if that is known already.
    size: Option<Bytes>,
    /// Whether what is there under this name is the rest of a check that was killed.
    is_ours: bool,
}

/// A file that is made for a check. From when it begins to be made it is removed when this is dropped, whatever ends the check.
struct Made {
    path: PathBuf,
    has_begun: bool,
}

impl Made {
    /// In `directory`. The name says whose it is, so that a later check knows whether that still runs.
    fn of(directory: &Path) -> Self {
        Self { path: directory.join(made_name(std::process::id())), has_begun: false }
    }

    /// What to say where it could not be removed. It has another name until it is complete.
    fn left_behind(&self, is_complete: bool) -> LeftBehind {
        let path = if is_complete { self.path.clone() } else { unfinished_path(&self.path) };
        let word = shell_command(&[path.to_string_lossy().into_owned()]);
        let words =
            format!("left behind: `{}`; the next check removes it, or remove it with `rm {word}`", path.display());
        LeftBehind { words, file: std::path::absolute(path).ok(), directory: None }
    }

    /// It begins to be made; those of checks of this machine that were killed go before.
    fn begin(&mut self) {
        self.has_begun = true;
        self.path.parent().map(left_by_others).unwrap_or_default().iter().for_each(|path| remove_left(path));
    }
}

/// How the file of a check's process is called.
fn made_name(process: u32) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host.trim().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{MADE}-{host}-{process}.dat")
}

/// The number of the process in a name of [`made_name`].
fn made_process(name: &str) -> Option<u32> {
    name.split_once(".dat").and_then(|(name, _)| name.rsplit_once('-')?.1.parse().ok())
}

/// What the check of this process made in a directory, as far as it is there.
fn of_process(directory: &Path, process: u32) -> Vec<PathBuf> {
    let made = directory.join(made_name(process));
    [unfinished_path(&made), made].into_iter().filter(|path| path.is_file()).collect()
}

fn remove_left(path: &Path) {
    match files::remove(path) {
        Ok(()) => say::note(format_args!("removed `{}`, which an earlier check left behind", path.display())),
        Err(error) => say::note(format_args!("an earlier check left `{}` behind: {error}", path.display())),
    }
}

/// Files of checks of this machine whose process is no more.
fn left_by_others(directory: &Path) -> Vec<PathBuf> {
    let is_left = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        made_process(name).is_some_and(|process| {
            !Path::new(&format!("/proc/{process}")).exists() && of_process(directory, process).contains(path)
        })
    };
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(is_left).collect()
}

impl Drop for Made {
    fn drop(&mut self) {
        let Self { path, has_begun } = self;
        if *has_begun
            && path.exists()
            && let Err(error) = files::remove(path)
        {
            say::note(format_args!("`{}` was made for the check and could not be removed: {error}", path.display()));
        }
    }
}

impl CheckTarget {
    fn is_private_server(&self) -> bool {
        matches!(self, Self::Database(subject) if subject.address.is_private_server())
    }

    /// What the user's word means. Nothing is made yet.
    fn look(word: &str, demands: &Demands, size: Option<Bytes>) -> Result<Self, Failure> {
        let is_database = demands.commits.is_some();
        // A word before a colon is the kind of an address, unless there is a file of that name.
        let has_kind = word
            .split_once(':')
            .is_some_and(|(kind, _)| kind.len() > 1 && kind.chars().all(|c| c.is_ascii_alphanumeric()));
        let is_address = has_kind && !Path::new(word).exists();
        let path = match is_address.then(|| word.parse::<TargetAddress>()).transpose()? {
            None => PathBuf::from(word),
            Some(TargetAddress::Directory(path)) => path,
            Some(TargetAddress::Simulated(pairs)) if !is_database => return Ok(Self::Simulated { pairs, size }),
            Some(address) => {
                if demands.writes.is_some() && address.is_server() {
                    let failure = Failure::new("a server decides when it writes: `--writes` cannot be measured there");
                    return Err(failure.with_hint("ask for commits: `--commits 200@10ms`".to_owned()));
                }
                return Ok(Self::Database(Subject { address, size, is_ours: false }));
            }
        };
        let found = std::fs::metadata(&path).map_err(|error| {
            let failure = Failure::new(format_args!("cannot look at `{}`: {error}", path.display()));
            failure.with_hint("name a directory on the storage in question, a file, or a device".to_owned())
        })?;
        match (found.is_dir(), is_database) {
            (true, true) => Self::engine(path, size),
            (true, false) => {
                let size = made_size(&path, size)?;
                let made = Made::of(&path);
                Ok(Self::Storage { path: made.path.clone(), size: Some(size), made: Some(made) })
            }
            (false, false) => Ok(Self::Storage { path, size, made: None }),
            (false, true) => {
                let failure =
                    Failure::new(format_args!("commits need files, and `{}` is not a directory", path.display()));
                let hint = "name a directory on the same storage, or leave `--commits` out to load the device itself";
                Err(failure.with_hint(hint.to_owned()))
            }
        }
    }

    fn engine(path: PathBuf, size: Option<Bytes>) -> Result<Self, Failure> {
        if Descriptor::load(&path).is_ok() {
            if size.is_some() {
                let failure =
                    Failure::new(format_args!("`{}` holds data already, of a size of their own", path.display()));
                return Err(failure.with_hint("leave `--size` out, or name another directory".to_owned()));
            }
            let address = TargetAddress::Directory(path);
            return Ok(Self::Database(Subject { address, size: None, is_ours: false }));
        }
        let size = Some(made_size(&path, size)?);
        let address = TargetAddress::Directory(path.join(MADE));
        Ok(Self::Database(Subject { address, size, is_ours: true }))
    }
}

/// How large data are made in a directory: what is asked for, else the usual, and half of what is free at most.
fn made_size(directory: &Path, asked: Option<Bytes>) -> Result<Bytes, Failure> {
    if let Some(size) = asked {
        return Ok(size);
    }
    let Some(free) =
        environment::capture(Some(directory)).file_system.and_then(|found| found.available_bytes).map(Bytes)
    else {
        let failure = Failure::new(format_args!("how much is free in `{}` is not known", directory.display()));
        return Err(failure.with_hint("say how large the data may be: `--size 4G`".to_owned()));
    };
    let half = Bytes(free.0 / 2 / (1 << 20) * (1 << 20));
    if half < Bytes::mib(64) {
        let failure = Failure::new(format_args!("only {free} are free in `{}`", directory.display()));
        return Err(failure.with_hint("make room, or say how large the data may be: `--size 100M`".to_owned()));
    }
    Ok(DEFAULT_SIZE.min(half))
}
