//! `plimsoll record`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::arguments::{Format, FormatArgs, ProgressArgs, Seconds};
use super::exit::{Exit, Failure};
use super::live::Watch;
use super::{Interrupt, say};
use measure::environment::devices_below;
use measure::os::{space, thread_cpu_ns};
use measure::trace::{DatabaseFiles, FileClass, has_other_numbers};
use model::record::Timestamp;
use model::trace::{TraceEnd, TraceHeader, TraceKind};
use model::units::{Bytes, Nanos, group_thousands};
use trace::record::{
    CallCounts, FileOptions, FileRecorder, FileRole, RecordError, RecordOptions, Recorded, Recorder,
    Recording as Layered, online_processors,
};
use trace::{TraceError, TraceSummary, TraceWriter};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll record --device nvme0n1 --duration 10m -o monday.trace
  plimsoll record --device sdb --device sdc -o monday.trace    until Ctrl-C
  plimsoll record --device sdb --pid 4711 --duration 1h -o db.trace
  plimsoll record --layer file --pid 4711 --duration 10m -o files.trace

It records every request of the devices: when it was issued, where, how long it is, what it does and how long it took. No data \
is recorded. The kernel's own tracing does it (root); nothing is installed. `plimsoll trace show` says what the load is like, \
`plimsoll io replay` repeats it elsewhere.

`--layer file` records what a process asks of its files instead, before caches and file systems: its reads, writes, fsyncs and \
punched holes. Each file is a device of the trace, such as `data-1` or `log-1`. Reads through mapped memory cannot be seen. \
Requests by io_uring and `io_submit` are only counted, and a note says how many. It ends when none of the processes is left.

Recording ends by itself before it harms the database: at --max-size, when the file system of the trace is nearly full, or \
beyond --max-cpu. What is recorded by then is a whole trace.";

/// Over so long the processor time is judged: to compress a part of the file takes a moment.
const JUDGED: Duration = Duration::from_secs(5);
/// So often what is recorded is made readable, even if the recording is killed.
const SETTLED_EVERY: Duration = Duration::from_secs(60);
/// What the file system of the trace keeps.
const SPARE: Bytes = Bytes::mib(512);
/// Smallest ring buffer of a processor: less is full at once.
const MIN_BUFFER: Bytes = Bytes::kib(64);

/// Arguments of `plimsoll record`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Requests of block devices, or system calls of a process on its files
    #[arg(long, value_name = "LAYER", value_enum, default_value_t = Layer::Device, help_heading = "Target")]
    layer: Layer,

    /// Block device, such as `sda` or `/dev/nvme0n1`
    ///
    /// What is built on others has a name of its own, such as `dm-3`.
    #[arg(long = "device", value_name = "NAME", required_unless_present = "layer", help_heading = "Target")]
    devices: Vec<String>,

    /// Process to watch, with its children and theirs
    ///
    /// Requests that others issue are left out, such as what the kernel writes back.
    #[arg(long, value_name = "N", help_heading = "Target")]
    pid: Option<u32>,

    /// Write the paths of files into the trace, with `--layer file`
    #[arg(long, help_heading = "Output")]
    names: bool,

    /// End after this time [default: run until Ctrl-C]
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    duration: Option<Seconds>,

    /// File for the trace
    ///
    /// An existing file is not replaced.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    out: PathBuf,

    /// End when the trace reaches this size
    #[arg(long, value_name = "SIZE", default_value = "4G", help_heading = "Limits")]
    max_size: Bytes,

    /// End when recording takes more than this share of one CPU over 5 s
    #[arg(long, value_name = "PCT", default_value_t = 50.0, value_parser = percent, help_heading = "Limits")]
    max_cpu: f64,

    /// Kernel memory for events, for each CPU [default: 16M, and 256M in total at most]
    #[arg(long = "kernel-buffer", value_name = "SIZE", help_heading = "Limits")]
    buffer: Option<Bytes>,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    progress: ProgressArgs,
}

/// What is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Layer {
    /// What block devices get
    Device,
    /// What a process asks of its files
    File,
}

fn percent(text: &str) -> Result<f64, String> {
    let value: f64 = text.trim_end_matches('%').parse().map_err(|_| format!("`{text}` is not a number"))?;
    if value > 0.0 && value <= 100.0 { Ok(value) } else { Err(format!("`{text}` is not between 0 and 100")) }
}

/// Why a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Ended {
    Duration,
    Signal,
    Size,
    Space,
    Cpu,
    Process,
    Failure,
}

impl Ended {
    fn note(self, arguments: &Arguments) -> Option<String> {
        match self {
            Self::Duration | Self::Signal => None,
            Self::Failure => Some("stopped early: recording failed".to_owned()),
            Self::Size => Some(format!("stopped early: the trace reached `--max-size {}`", arguments.max_size)),
            Self::Space => Some(format!("stopped early: the file system of the trace has less than {SPARE} left")),
            Self::Process => Some("ended: none of the recorded processes is left".to_owned()),
            Self::Cpu => Some(format!("stopped early: recording took more than `--max-cpu {}` %", arguments.max_cpu)),
        }
    }
}

/// What was recorded, as it is printed with `--json`.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    file: &'a Path,
    file_bytes: u64,
    header: &'a TraceHeader,
    duration_ns: u64,
    ended_by: Ended,
    summary: &'a TraceSummary,
    lost_events: Option<u64>,
    untimed_requests: u64,
    other_requests: u64,
    cpu_pct: f64,
    kernel_memory_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<&'a CallCounts>,
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        Self::new(&error).with_hint(model::hint(&error))
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        Self::new(&error).with_hint(model::hint(&error))
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(buffer) = arguments.buffer.filter(|buffer| *buffer < MIN_BUFFER) {
        let failure = Failure::new(format_args!("`--kernel-buffer {buffer}` is too small"));
        return Err(failure.with_hint(format!("use at least {MIN_BUFFER}")));
    }
    check_layer(arguments)?;
    // Known before anything is traced.
    if arguments.out.symlink_metadata().is_ok() {
        let failure = Failure::new(format_args!("`{}` exists already", arguments.out.display()));
        return Err(failure.with_hint("name another file: a trace is never replaced".to_owned()));
    }
    let interrupt = Interrupt::listen()?;
    if is_nearly_full(&arguments.out) {
        let failure =
            Failure::new(format_args!("the file system of `{}` has less than {SPARE} left", arguments.out.display()));
        return Err(failure.with_hint("write the trace elsewhere".to_owned()));
    }
    let recorder = start(arguments)?;
    let writer = TraceWriter::create(&arguments.out)?;
    let verbosity = arguments.progress.verbosity();
    let own = recorder.header().devices.iter().find(|device| devices_below(&arguments.out).contains(&device.name));
    if let Some(device) = own {
        say::note(format_args!("the trace itself is written to `{}`, so it records its own writes", device.name));
    }
    let mut recording = Recording { arguments, recorder, writer, batch: Vec::new(), watch: Watch::new(verbosity) };
    let cpu_begun = thread_cpu_ns();
    match recording.go_on(&interrupt) {
        Ok(ended) => recording.end(&interrupt, ended, cpu_begun),
        Err(failure) => {
            // What was recorded by then is a trace all the same.
            let _ = recording.end(&interrupt, Ended::Failure, cpu_begun);
            Err(failure)
        }
    }
}

/// What belongs to one layer and not to the other.
fn check_layer(arguments: &Arguments) -> Result<(), Failure> {
    let refused = |what: &str, hint: &str| Err(Failure::new(what).with_hint(hint.to_owned()));
    match arguments.layer {
        Layer::Device if arguments.devices.is_empty() => {
            refused("`--layer device` needs `--device`", "name a device; `lsblk` lists them")
        }
        Layer::Device if arguments.names => {
            refused("`--names` needs `--layer file`", "leave it out: devices have their names in the trace")
        }
        Layer::File if !arguments.devices.is_empty() => {
            refused("`--device` does not go with `--layer file`", "leave out one of the two")
        }
        Layer::File if arguments.pid.is_none() => {
            refused("`--layer file` needs `--pid`", "name the first process of the database, such as the postmaster")
        }
        Layer::File if has_other_numbers() => refused(
            "this process runs in a container with process numbers of its own, and tracing goes by the machine's",
            "run it on the machine itself (`docker run --pid=host`), or record devices",
        ),
        Layer::Device | Layer::File => Ok(()),
    }
}

/// Begins to record.
fn start(arguments: &Arguments) -> Result<Box<dyn Layered>, RecordError> {
    let buffer_bytes = arguments.buffer.unwrap_or_else(usual_buffer).0;
    if let (Layer::File, Some(process)) = (arguments.layer, arguments.pid) {
        let mut files = DatabaseFiles::of(process);
        let roles = Box::new(move |path: &Path| match files.class(path) {
            FileClass::Data => FileRole::Data,
            FileClass::Log => FileRole::Log,
            FileClass::Other => FileRole::Other,
        });
        let options = FileOptions { process, buffer_bytes, has_names: arguments.names, roles };
        return Ok(Box::new(FileRecorder::start(options)?));
    }
    let options = RecordOptions { devices: arguments.devices.clone(), process: arguments.pid, buffer_bytes };
    Ok(Box::new(Recorder::start(&options)?))
}

/// The kernel's memory for each processor unless the user says otherwise.
fn usual_buffer() -> Bytes {
    Bytes((Bytes::mib(256).0 / online_processors()).clamp(MIN_BUFFER.0, Bytes::mib(16).0))
}

/// Whether the file system of a trace has too little room.
fn is_nearly_full(out: &Path) -> bool {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    space(folder.unwrap_or(Path::new("."))).is_some_and(|left| left.available_bytes < SPARE.0)
}

struct Recording<'a, W: Write + Send> {
    arguments: &'a Arguments,
    recorder: Box<dyn Layered>,
    writer: TraceWriter<W>,
    batch: Vec<model::trace::TraceRequest>,
    watch: Watch,
}

impl<W: Write + Send> Recording<'_, W> {
    /// Records until something ends it, and returns what did.
    fn go_on(&mut self, interrupt: &Interrupt) -> Result<Ended, Failure> {
        let duration_ns = self.arguments.duration.map(|Seconds(time)| time.0);
        let (begun, cpu_begun) = (Instant::now(), thread_cpu_ns());
        let (mut shown, mut judged, mut settled) = ((begun, 0, 0), (begun, cpu_begun), begun);
        loop {
            std::thread::sleep(self.recorder.every());
            self.recorder.take(&mut self.batch)?;
            self.write()?;
            let now = Instant::now();
            let cpu_ns = thread_cpu_ns();
            if interrupt.exit().is_some() {
                return Ok(Ended::Signal);
            }
            if duration_ns.is_some_and(|duration_ns| self.recorder.elapsed_ns() >= duration_ns) {
                return Ok(Ended::Duration);
            }
            if self.recorder.is_over() {
                return Ok(Ended::Process);
            }
            if self.writer.written_bytes() >= self.arguments.max_size.0 {
                return Ok(Ended::Size);
            }
            if now - judged.0 >= JUDGED {
                let share = (cpu_ns - judged.1) as f64 / (now - judged.0).as_nanos() as f64;
                if share * 100.0 > self.arguments.max_cpu {
                    return Ok(Ended::Cpu);
                }
                if is_nearly_full(&self.arguments.out) {
                    return Ok(Ended::Space);
                }
                judged = (now, cpu_ns);
            }
            // Each table of contents has all parts so far: so it must not come too often in a long recording.
            if now - settled >= SETTLED_EVERY.max((now - begun) / 20) {
                self.writer.settle(self.recorder.header())?;
                settled = now;
            }
            if now - shown.0 >= Duration::from_secs(1) {
                let summary = self.writer.summary();
                let (requests, bytes) = (summary.total(), summary.bytes.iter().sum::<u64>());
                let seconds = (now - shown.0).as_secs_f64();
                let words = format!(
                    "{}  {} requests/s  {:.0} MB/s  {} requests",
                    Nanos(self.recorder.elapsed_ns() / 1_000_000_000 * 1_000_000_000),
                    group_thousands((requests - shown.1) as f64 / seconds),
                    (bytes - shown.2) as f64 / seconds / 1e6,
                    group_thousands(requests as f64),
                );
                self.watch.show(|_| words.clone(), || vec![words.clone()]);
                shown = (now, requests, bytes);
            }
        }
    }

    fn write(&mut self) -> Result<(), Failure> {
        let written = self.writer.write(&self.batch, self.recorder.header());
        self.batch.clear();
        Ok(written?)
    }

    fn end(self, interrupt: &Interrupt, ended: Ended, cpu_begun: u64) -> Result<Exit, Failure> {
        let Self { arguments, recorder, mut writer, mut batch, watch } = self;
        watch.end();
        let header = recorder.header().clone();
        let elapsed_ns = recorder.elapsed_ns();
        let (header, recorded) = match recorder.end(&mut batch) {
            // What was written before is whole without the rest.
            Err(_) if ended == Ended::Failure => (header, Recorded { duration_ns: elapsed_ns, ..Recorded::default() }),
            recorded => recorded?,
        };
        writer.write(&batch, &header)?;
        let mut notes: Vec<String> = ended.note(arguments).into_iter().collect();
        notes.extend(of_recorded(&recorded));
        let end = TraceEnd {
            duration_ns: Some(recorded.duration_ns),
            // Each event is an issue or a completion, so no more requests are missing than events.
            lost: recorded.lost_events,
            notes,
        };
        let (summary, _) = writer.finish(&header, &end)?;
        let file_bytes = arguments.out.metadata().map(|found| found.len()).unwrap_or_default();
        let cpu_pct = (thread_cpu_ns() - cpu_begun) as f64 * 100.0 / recorded.duration_ns.max(1) as f64;
        let memory = Bytes(recorded.kernel_bytes);
        end.notes.iter().for_each(say::note);
        match arguments.format.format() {
            Format::Json => say::json(&Summary {
                file: &arguments.out,
                file_bytes,
                header: &header,
                duration_ns: recorded.duration_ns,
                ended_by: ended,
                summary: &summary,
                lost_events: recorded.lost_events,
                untimed_requests: recorded.untimed,
                other_requests: recorded.others,
                cpu_pct,
                kernel_memory_bytes: memory.0,
                calls: recorded.calls.as_ref(),
            })?,
            Format::Text => {
                let mut out = say::output();
                let requests = summary.total();
                let seconds = recorded.duration_ns as f64 / 1e9;
                writeln!(
                    out,
                    "recorded  {} requests in {} ({}/s): {}",
                    group_thousands(requests as f64),
                    Nanos(recorded.duration_ns),
                    group_thousands(requests as f64 / seconds.max(1e-9)),
                    kinds(&summary),
                )?;
                let each = if requests == 0 {
                    String::new()
                } else {
                    format!(", {:.1} bytes a request", file_bytes as f64 / requests as f64)
                };
                writeln!(out, "file      `{}`, {}{each}", arguments.out.display(), Bytes(file_bytes))?;
                let lost = recorded
                    .lost_events
                    .map_or("not known".to_owned(), |lost| format!("{} events", group_thousands(lost as f64)));
                writeln!(out, "lost      {lost}")?;
                writeln!(out, "cost      {cpu_pct:.1} % of one CPU in this program, {memory} of kernel memory")?;
                writeln!(out, "next      `plimsoll trace show {}`", arguments.out.display())?;
                out.flush()?;
            }
        }
        // Without a duration, a signal is how it is meant to end.
        match ended {
            Ended::Signal if arguments.duration.is_some() => Ok(interrupt.exit().unwrap_or(Exit::Done)),
            // Less was recorded than the user requested.
            Ended::Size | Ended::Space | Ended::Cpu | Ended::Process if arguments.duration.is_some() => {
                Ok(Exit::CouldNot)
            }
            _ => Ok(Exit::Done),
        }
    }
}

/// What a reader of the trace has to know of it.
fn of_recorded(recorded: &Recorded) -> Vec<String> {
    let mut notes = Vec::new();
    let count = |number: u64| group_thousands(number as f64);
    if let Some(lost) = recorded.lost_events.filter(|lost| *lost > 0) {
        notes.push(format!(
            "{} events were lost, each an issue or a completion: use a larger `--kernel-buffer`",
            count(lost)
        ));
    }
    if recorded.untimed > 0 {
        notes.push(format!("{} requests have no latency: their completion was not seen", count(recorded.untimed)));
    }
    if recorded.requeued > 0 {
        notes.push(format!(
            "{} requests were given back by the driver, and begin when issued again",
            count(recorded.requeued)
        ));
    }
    if recorded.unknown > 0 {
        notes.push(format!("{} requests are left out: the thread that issued them had ended", count(recorded.unknown)));
    }
    if recorded.preflushes > 0 {
        notes.push(format!(
            "{} writes flush the device first; that flush is not in the trace",
            count(recorded.preflushes)
        ));
    }
    if recorded.others > 0 {
        notes.push(format!(
            "{} requests are neither reads, writes, flushes nor discards, and are left out",
            count(recorded.others)
        ));
    }
    notes.extend(recorded.calls.iter().flat_map(of_calls));
    notes
}

/// What a reader has to know of a process's calls.
fn of_calls(calls: &CallCounts) -> Vec<String> {
    let count = |number: u64| group_thousands(number as f64);
    let mut notes: Vec<String> = [
        (calls.io_uring, "requests by io_uring are not in the trace: they bypass system calls"),
        (calls.io_submit, "requests by `io_submit` are not in the trace: the kernel does not show what they are"),
        (
            calls.unknown,
            "calls are left out: their file was closed, or their process had ended, before it was looked up",
        ),
        (calls.unplaced, "reads and writes are left out: the position of their file was not known"),
        (calls.unanswered, "calls are left out: their end was not seen"),
        (calls.failed, "calls on files failed, and are left out"),
        (calls.empty, "reads and writes of files moved nothing, such as at the end of a file, and are left out"),
        (calls.not_files, "reads and writes of pipes, sockets and the like are left out"),
        (
            calls.folded,
            "requests are of files beyond the limit: such files share one device, and their offsets overlap",
        ),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, words)| format!("{} {words}", count(number)))
    .collect();
    if !calls.counted.is_empty() {
        let each: Vec<String> =
            calls.counted.iter().map(|(name, number)| format!("{} {name}", count(*number))).collect();
        notes.push(format!("other calls, on files or on everything, are not in the trace: {}", each.join(", ")));
    }
    notes
}

/// `70 % reads, 29 % writes, 1 % flushes`.
pub(super) fn kinds(summary: &TraceSummary) -> String {
    let total = summary.total().max(1) as f64;
    let share = |kind: TraceKind| summary.of(kind) as f64 * 100.0 / total;
    let words = |kind: TraceKind| format!("{:.0} % {}", share(kind), plural(kind));
    let there: Vec<String> = TraceKind::ALL.into_iter().filter(|kind| summary.of(*kind) > 0).map(words).collect();
    if there.is_empty() { "none".to_owned() } else { there.join(", ") }
}

/// Several of a kind.
pub(super) fn plural(kind: TraceKind) -> &'static str {
    match kind {
        TraceKind::Read => "reads",
        TraceKind::Write => "writes",
        TraceKind::Flush => "flushes",
        TraceKind::Discard => "discards",
    }
}

/// When a trace began, in words.
pub(super) fn began(began: Option<Timestamp>) -> String {
    began.map_or_else(|| "not known".to_owned(), |Timestamp(at)| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_a_processor_is_more_than_nothing() {
        assert_eq!(percent("50"), Ok(50.0));
        assert_eq!(percent("5%"), Ok(5.0));
        assert!(percent("0").is_err() && percent("101").is_err() && percent("x").is_err());
    }

    #[test]
    fn what_is_missing_is_noted() {
        let whole = whole_recording();
        assert_eq!(of_recorded(&whole), Vec::<String>::new());
        let notes = of_recorded(&Recorded { lost_events: Some(7), untimed: 2, others: 1, ..whole });
        assert!(notes[0].starts_with("7 events were lost") && notes.len() == 3, "{notes:?}");
        let counted = [("splice", 2), ("sync", 1_000)].into_iter().collect();
        let calls = CallCounts { io_uring: 12, counted, ..CallCounts::default() };
        let notes = of_recorded(&Recorded { calls: Some(calls), ..whole_recording() });
        assert!(notes[0].starts_with("12 requests by io_uring are not in the trace"), "{notes:?}");
        assert!(notes[1].ends_with(": 2 splice, 1,000 sync") && notes.len() == 2, "{notes:?}");
    }

    fn whole_recording() -> Recorded {
        Recorded { lost_events: Some(0), ..Recorded::default() }
    }
}
