//! `plimsoll probe`.

mod stalls;

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{ArgGroup, Args};

use super::arguments::{Format, FormatArgs, ProgressArgs, Seconds};
use super::exit::{Exit, Failure};
use super::live::{Verbosity, Watch};
use super::{Interrupt, say};
use measure::environment;
use measure::trace::{NoTrace, Process, TraceRequest, Tracer, devices_of, traced_devices};
use model::config::TargetAddress;
use model::config::mysql::MysqlAddress;
use model::config::postgres::PostgresAddress;
use model::plain::{self, Links};
use model::record::{Timestamp, TraceStats};
use model::units::{Bytes, Nanos};
use report::document::{ProbeEnd, ProbeLine};
use report::trace::{trace_lines, write_traces_within};
use sql::mysql;
use sql::postgres::{Connector, LocalServer};
use targets::TargetError;
use targets::embedded::Directory;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll probe --pid 4711                   a server by its first process
  plimsoll probe --device nvme0n1 --device nvme1n1    disks, for all processes
  plimsoll probe --target dir:/u01/plimsoll --interval 5s
  plimsoll probe --target my:/u01/my          a private server that runs
  plimsoll probe --pid 4711 --duration 60s --json     one line a second
  plimsoll probe --stalls --target postgres://db1/app    who waits, and for whom

Without `--stalls` it needs `bpftrace` and root. Nothing is written to the database or its disks. Times are of two layers: `OS file`, \
the system calls that the server makes on its files, and `device`, the requests below. Requests through io_uring, \
libaio and mapped memory are seen on the device only.

`--stalls` asks the server 20 times a second what each session does. Statements that take three times as long as their \
kind does, or wait for a lock, are reported with their cause, or as unexplained. Of devices it knows only those of this \
machine. No text of a statement is kept or shown.

Ctrl-C is how a probe without `--duration` ends: the sums are printed, and the exit code is 0.";

/// How often signals and the process are looked at while an interval passes.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The kernel's sums come ten times a second.
const SHORTEST_INTERVAL: Nanos = Nanos::millis(200);
const LONGEST_INTERVAL: Nanos = Nanos::seconds(86_400);

/// Arguments of `plimsoll probe`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true))]
pub(super) struct Arguments {
    /// Database whose server runs here (with `--stalls`, anywhere)
    ///
    /// `dir:PATH` is the directory of the embedded engine or of a PostgreSQL server.
    ///
    /// `pg:DIR`, `my:DIR`, `postgres://…` and `mysql://…` are addresses of servers.
    #[arg(long, value_name = "ADDRESS", group = "what", conflicts_with = "pid", help_heading = "Target")]
    target: Option<TargetAddress>,

    /// Process to watch, with its children and theirs
    #[arg(long, value_name = "N", group = "what", help_heading = "Target")]
    pid: Option<u32>,

    /// Block device, such as `sda` or `/dev/nvme0n1` [default: those below the database's files]
    #[arg(long = "device", value_name = "NAME", group = "what", help_heading = "Target")]
    devices: Vec<String>,

    /// Say why statements of the database are held up, instead of tracing its files
    #[arg(long, requires = "target", conflicts_with_all = ["devices", "interval"], help_heading = "Target")]
    stalls: bool,

    /// With `--stalls`: statements that take at least this long [default: 250ms]
    #[arg(long, value_name = "TIME", requires = "stalls", help_heading = "Target")]
    slower_than: Option<Seconds>,

    /// End after this time [default: run until Ctrl-C]
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    duration: Option<Seconds>,

    /// Time between two lines of output
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = "Load")]
    interval: Seconds,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    progress: ProgressArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(address) = arguments.target.as_ref().filter(|_| arguments.stalls) {
        return stalls::run(arguments, address);
    }
    if !(SHORTEST_INTERVAL..=LONGEST_INTERVAL).contains(&arguments.interval.0) {
        let failure = Failure::new(format_args!("`--interval` cannot be {}", arguments.interval.0));
        return Err(failure.with_hint(format!("it may be from {SHORTEST_INTERVAL} to {LONGEST_INTERVAL}")));
    }
    let process = match (&arguments.target, arguments.pid) {
        (Some(address), _) => Some(process_of(address)?),
        (None, pid) => pid,
    };
    let process = process.map(|pid| Process::find(pid).ok_or(NoTrace::NoProcess { pid })).transpose()?;
    let request = TraceRequest { process: process.map(|process| process.pid()), devices: devices(arguments, process)? };
    let interrupt = Interrupt::listen()?;
    let tracer = Tracer::start(&request)?;
    let verbosity = arguments.progress.verbosity();
    if verbosity == Verbosity::Normal {
        print_subject(process, &traced_devices(&request.devices)?);
    }
    if process.is_some() && !tracer.knows_files() {
        say::note("no file of the process is known as a database's, so all its calls are called `other`");
    }
    let mut probe = Probe {
        tracer,
        process,
        interrupt,
        watch: Watch::new(verbosity),
        format: arguments.format.format(),
        sum: Vec::new(),
    };
    let end = probe.watch(arguments.duration.map(|Seconds(time)| time), arguments.interval.0)?;
    probe.print_sum(end)?;
    match end {
        ProbeEnd::Tracing => {
            let why = probe.tracer.ended().unwrap_or_default();
            Err(Failure::new(format_args!("tracing ended by itself: {why}")))
        }
        // Without a duration, a signal is how it is meant to end.
        ProbeEnd::Signal if arguments.duration.is_some() => Ok(probe.interrupt.exit().unwrap_or(Exit::Done)),
        _ => Ok(Exit::Done),
    }
}

/// The first process of the server behind an address. It has to run on this machine.
fn process_of(address: &TargetAddress) -> Result<u32, Failure> {
    match address {
        TargetAddress::Directory(path) => match embedded_user(path)? {
            Some(pid) => Ok(pid),
            None => postmaster(path),
        },
        TargetAddress::PrivateCluster(path) => postmaster(&path.join("data")),
        TargetAddress::Postgres(address) => process_of_server(address),
        TargetAddress::PrivateMysql(directory) => match mysql::server::process(directory)? {
            Some(Some(pid)) => Ok(pid),
            Some(None) => {
                let failure = Failure::new(format_args!("no server works on `{}`", directory.display()));
                Err(failure
                    .with_hint("load it meanwhile, or have a command leave it running: `--keep-running`".to_owned()))
            }
            None => {
                let failure = Failure::new(format_args!("there is no private server in `{}`", directory.display()));
                Err(failure.with_hint(format!("make one: `plimsoll slob setup --target my:{}`", directory.display())))
            }
        },
        TargetAddress::Mysql(address) => process_of_mysql(address),
        TargetAddress::Oracle(address) => Err(unseen(&address.to_string())),
        address @ TargetAddress::Simulated(_) => {
            let failure = Failure::new(format_args!("`{address}` is simulated and has no process"));
            Err(failure.with_hint("name a process: `--pid N`".to_owned()))
        }
    }
}

/// The first process of a server that answers; it has to run here, and to let itself be seen.
fn process_of_server(address: &PostgresAddress) -> Result<u32, Failure> {
    let connector = Connector::new(address, "plimsoll probe").and_then(Connector::single).map_err(TargetError::from)?;
    let found = LocalServer::find(&connector, 0).map_err(TargetError::from)?;
    found.map(|server| server.postmaster_pid).ok_or_else(|| unseen(&connector.nodes()[0]))
}

fn process_of_mysql(address: &MysqlAddress) -> Result<u32, Failure> {
    let connector = mysql::Connector::new(address, "plimsoll probe").and_then(mysql::Connector::single);
    let connector = connector.map_err(TargetError::from)?;
    let found = mysql::LocalServer::find(&connector, 0).map_err(TargetError::from)?;
    found.map(|server| server.pid).ok_or_else(|| unseen(&connector.nodes()[0]))
}

fn unseen(node: &dyn Display) -> Failure {
    let failure = Failure::new(format_args!("the processes of the server at `{node}` cannot be seen from here"));
    failure.with_hint("run the probe on the server's own machine, or name its first process: `--pid N`".to_owned())
}

/// The process that works on a directory of the embedded engine.
fn embedded_user(directory: &Path) -> Result<Option<u32>, Failure> {
    let holder = Directory::holder(directory)?;
    Ok(holder.and_then(|holder| holder.strip_prefix("process ")?.parse().ok()))
}

/// A `postmaster.pid` has a few lines.
const MAX_PID_FILE: Bytes = Bytes::kib(64);

/// The postmaster of a PostgreSQL server by its data directory. Its number is the first line of a file there, which stays
/// behind when the server is killed; the number may belong to anybody then.
fn postmaster(data_directory: &Path) -> Result<u32, Failure> {
    let no_server = |why: &str| {
        let failure = Failure::new(format_args!("no server works on `{}`: {why}", data_directory.display()));
        failure.with_hint("start it, or name its first process: `--pid N`".to_owned())
    };
    let file = data_directory.join("postmaster.pid");
    let text = plain::read_text(&file, Links::Refused, MAX_PID_FILE).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => no_server("no process holds it, and it has no `postmaster.pid`"),
        _ => no_server(&format!("`postmaster.pid`: {error}")),
    })?;
    let pid: Option<u32> = text.lines().next().and_then(|line| line.trim().parse().ok());
    let pid = pid.ok_or_else(|| no_server("`postmaster.pid` does not begin with a process number"))?;
    let works_here = std::fs::read_link(format!("/proc/{pid}/cwd"))
        .is_ok_and(|directory| data_directory.canonicalize().is_ok_and(|own| own == directory));
    if !works_here {
        return Err(no_server(&format!("process {pid} of its `postmaster.pid` is gone or works elsewhere")));
    }
    Ok(pid)
}

/// The devices that were named, or those below the files of the database.
fn devices(arguments: &Arguments, process: Option<Process>) -> Result<Vec<String>, Failure> {
    if !arguments.devices.is_empty() {
        return arguments.devices.iter().map(|device| kernel_name(device)).collect();
    }
    let mut devices = process.map(|process| devices_of(process.pid())).unwrap_or_default();
    if let Some(TargetAddress::Directory(path)) = &arguments.target {
        let more = environment::devices_below(path).into_iter().filter(|device| !devices.contains(device));
        devices.extend(more.collect::<Vec<_>>());
    }
    Ok(devices)
}

/// `sda` of `sda`, `/dev/sda` and any link to it.
fn kernel_name(device: &str) -> Result<String, Failure> {
    if !device.starts_with('/') {
        return Ok(device.to_owned());
    }
    let real: PathBuf = Path::new(device)
        .canonicalize()
        .map_err(|error| Failure::new(format_args!("cannot find `{device}`: {error}")))?;
    Ok(real.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

fn print_subject(process: Option<Process>, devices: &[String]) {
    let name = |process: Process| process.name().map_or_else(String::new, |name| format!(" ({name})"));
    let process = process.map(|process| format!("process {}{} and its children", process.pid(), name(process)));
    let devices = (!devices.is_empty()).then(|| format!("device {}", devices.join(", ")));
    let what: Vec<String> = process.into_iter().chain(devices).collect();
    say::line(format_args!("tracing {}", what.join("; ")));
}

struct Probe {
    tracer: Tracer,
    process: Option<Process>,
    interrupt: Interrupt,
    watch: Watch,
    format: Format,
    sum: Vec<TraceStats>,
}

impl Probe {
    /// Tells every interval until something ends it.
    fn watch(&mut self, duration: Option<Nanos>, interval: Nanos) -> Result<ProbeEnd, Failure> {
        let begun = Instant::now();
        // A time too far away to be one never comes.
        let last = duration.and_then(|duration| begun.checked_add(duration.as_duration()));
        let mut due = begun;
        loop {
            due += interval.as_duration();
            let end = self.wait(last.map_or(due, |last| last.min(due)), last);
            let traces = self.tracer.take();
            self.add(&traces);
            self.print(&traces)?;
            if let Some(end) = end {
                self.watch.end();
                return Ok(end);
            }
        }
    }

    /// Waits until `due`, or until something ends the probe.
    fn wait(&self, due: Instant, last: Option<Instant>) -> Option<ProbeEnd> {
        loop {
            let now = Instant::now();
            if self.interrupt.exit().is_some() {
                return Some(ProbeEnd::Signal);
            }
            if self.tracer.ended().is_some() {
                return Some(ProbeEnd::Tracing);
            }
            if self.process.is_some_and(|process| !process.is_running()) {
                return Some(ProbeEnd::Process);
            }
            if now >= due {
                return last.is_some_and(|last| now >= last).then_some(ProbeEnd::Duration);
            }
            std::thread::sleep(LOOK_EVERY.min(due - now));
        }
    }

    fn add(&mut self, traces: &[TraceStats]) {
        if self.sum.is_empty() {
            self.sum = traces.to_vec();
            return;
        }
        for (sum, more) in self.sum.iter_mut().zip(traces) {
            sum.add(more);
        }
    }

    fn print(&self, traces: &[TraceStats]) -> Result<(), Failure> {
        if self.format == Format::Json && !traces.is_empty() {
            line(&ProbeLine::Interval { at: now(), traces })?;
        }
        let table = |width| {
            let mut text = Vec::new();
            // Memory takes whatever is written.
            let _ = write_traces_within(&mut text, traces, width);
            let text = String::from_utf8_lossy(&text);
            if text.is_empty() { trace_lines(traces).join("\n") } else { text.trim().to_owned() }
        };
        self.watch.show(table, || trace_lines(traces));
        Ok(())
    }

    fn print_sum(&self, end: ProbeEnd) -> Result<(), Failure> {
        if end == ProbeEnd::Process {
            say::note("the process has ended");
        }
        match self.format {
            Format::Json => line(&ProbeLine::Total { at: now(), ended_by: end, traces: &self.sum }),
            Format::Text => {
                let mut out = say::output();
                let elapsed = Nanos(self.sum.first().map_or(0, |sum| sum.elapsed_ns));
                if self.sum.iter().any(|trace| trace.count > 0) {
                    writeln!(out, "Traced for {elapsed}")?;
                    write_traces_within(&mut out, &self.sum, say::width())?;
                    writeln!(out, "\n{LEGEND}")?;
                } else {
                    writeln!(out, "Traced for {elapsed}, and there was no call or request")?;
                }
                out.flush()?;
                Ok(())
            }
        }
    }
}

const LEGEND: &str = "\
MB: 1,000,000 bytes. ms in the lower tables: 1024 us. p50 to max: upper edges of the buckets that hold them.
timed %: of the requests that the kernel counted; tracing itself makes it miss some. `-`: none; 0.0: less than 0.05 %.";

/// One document in one line, at once.
fn line(line: &ProbeLine<'_>) -> Result<(), Failure> {
    let mut out = say::json_output();
    serde_json::to_writer(&mut out, line)?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now())
}

impl From<NoTrace> for Failure {
    fn from(error: NoTrace) -> Self {
        Self::new(&error).with_hint(error.hint())
    }
}
