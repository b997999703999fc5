//! Latencies as the kernel sees them: system calls of a server on its files, and requests on the devices below.
//!
//! A `bpftrace` process counts in the kernel and prints its sums ten times a second; what is reported is the difference of two
//! such readings. Nothing is sampled and nothing is sent to user space for each call.

mod bpftrace;
mod device;
mod place;
mod program;

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::environment;
use crate::os::proc::DiskCounts;
use crate::os::{Resource, Root, limit};
use model::record::TraceStats;

use bpftrace::{Bpftrace, TraceSample};
use device::TracedDevice;
use model::units::Bytes;
use place::ClassifiedPath;
pub use place::{DatabaseFiles, FileClass};
use program::Event;

/// What is to be traced; at least one of both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceRequest {
    /// A process as this machine numbers it, with its present and future children and theirs: a postmaster, or a server of
    /// many threads.
    pub process: Option<u32>,
    /// Devices by their kernel names, as in `/proc/diskstats`. One that has no requests of its own (a partition, LVM, MD)
    /// stands for the disks below it.
    pub devices: Vec<String>,
}

/// Tracing that goes on until the value is dropped.
#[derive(Debug)]
pub struct Tracer {
    root: Root,
    bpftrace: Bpftrace,
    events: Vec<Event>,
    devices: Vec<TracedDevice>,
    /// What the last answer went up to.
    reported: Mutex<Seen>,
    files_known: bool,
}

/// All sums at one instant.
#[derive(Debug)]
struct Seen {
    traced: TraceSample,
    /// The kernel's own counts of the devices, in their order.
    counted: Vec<Option<DiskCounts>>,
}

impl Tracer {
    /// Begins to trace. Takes a second or two: the kernel checks the program, and every place is in force on return.
    ///
    /// # Errors
    /// [`NoTrace`] says what is missing.
    pub fn start(request: &TraceRequest) -> Result<Self, NoTrace> {
        let root = Root::default();
        look_missing(&root, request)?;
        let devices = device::resolve(&root, &request.devices)?;
        if request.process.is_none() && devices.is_empty() {
            return Err(NoTrace::Nothing);
        }
        let places = request.process.map(|pid| place::of_process(&root, pid)).unwrap_or_default();
        let bpftrace = Bpftrace::start(&root, &program::text(request.process, &places, &devices))?;
        let traced = bpftrace.now().unwrap_or_default();
        let reported = Mutex::new(Seen { traced, counted: device::counts(&root, &devices) });
        let events = program::events(request.process.map(|_| places.as_slice()), &devices);
        Ok(Self { root, bpftrace, events, devices, reported, files_known: !places.is_empty() })
    }

    /// What happened since the last call, or since the start. Always the same kinds in the same order, those without a
    /// single call too, so that parts can be added one by one; `elapsed_ns` is the time between the two readings of the
    /// kernel's sums that were used. The later one was made at most 100 ms after the call. Waits for it at most 300 ms; if
    /// none comes, the answer is empty and the next one covers the time.
    pub fn take(&self) -> Vec<TraceStats> {
        let latest = self.bpftrace.now();
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(traced) = latest.filter(|latest| latest.at_ns > reported.traced.at_ns) else { return Vec::new() };
        let now = Seen { traced, counted: device::counts(&self.root, &self.devices) };
        let stats = self.events.iter().map(|event| self.between(&reported, &now, event)).collect();
        *reported = now;
        stats
    }

    fn between(&self, earlier: &Seen, later: &Seen, event: &Event) -> TraceStats {
        let stats = later.traced.since(&earlier.traced, event);
        let place = self.devices.iter().position(|device| Some(&device.name) == event.device.as_ref());
        let counted = place.and_then(|place| {
            let (before, now) = (earlier.counted[place]?, later.counted[place]?);
            let counted = now.since(&before, &self.devices[place].name, stats.elapsed_ns)?;
            match event.name.as_str() {
                "read" => Some(counted.reads),
                "write" => Some(counted.writes),
                _ => counted.flushes,
            }
        });
        TraceStats { counted_by_kernel: counted, ..stats }
    }

    /// Why tracing has ended by itself, if it has.
    pub fn ended(&self) -> Option<String> {
        self.bpftrace.ended()
    }

    /// Whether any file of the process was known as a database's. If not, all that it does is called `other`.
    pub fn knows_files(&self) -> bool {
        self.files_known
    }
}

/// Directories and files of the database that a process and its children work on; empty where none is known.
pub fn files_of(pid: u32) -> Vec<PathBuf> {
    place::of_process(&Root::default(), pid).into_iter().map(|ClassifiedPath { path, .. }| path).collect()
}

/// Whether processes have other numbers here than the kernel's tracing has, as in a container.
pub fn has_other_numbers() -> bool {
    numbers_are_foreign(&Root::default())
}

/// Kernel names of the devices below the database files that a process works on; empty where none is known.
pub fn devices_of(pid: u32) -> Vec<String> {
    environment::devices_below_all(&files_of(pid))
}

/// Devices whose requests would be traced if these were asked for.
///
/// # Errors
/// [`NoTrace::NoDevice`] where there is none of a name.
pub fn traced_devices(names: &[String]) -> Result<Vec<String>, NoTrace> {
    let devices = device::resolve(&Root::default(), names)?;
    Ok(devices.into_iter().map(|TracedDevice { name, .. }| name).collect())
}

/// A process that was there once. Its number may be given to another when it has ended, so its time of birth is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    pid: u32,
    born_ticks: u64,
}

impl Process {
    /// The process of this number, if there is one that has not ended.
    pub fn find(pid: u32) -> Option<Self> {
        let stat = Stat::read(&Root::default(), pid)?;
        (!stat.has_ended).then_some(Self { pid, born_ticks: stat.born_ticks })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its short name, as `ps` shows it.
    pub fn name(&self) -> Option<String> {
        Root::default().value(format!("/proc/{}/comm", self.pid))
    }

    /// Whether it has not ended yet.
    pub fn is_running(&self) -> bool {
        Self::find(self.pid) == Some(*self)
    }
}

/// The process, its children and theirs, as far as tracing looks.
fn family(root: &Root, pid: u32) -> Vec<u32> {
    let all: Vec<(u32, u32)> = root
        .names("/proc")
        .iter()
        .filter_map(|name| name.parse().ok())
        .filter_map(|pid| Some((pid, Stat::read(root, pid)?.parent)))
        .collect();
    let children = |parents: &[u32]| -> Vec<u32> {
        all.iter().filter(|(_, parent)| parents.contains(parent)).map(|(pid, _)| *pid).collect()
    };
    let children_of = children(&[pid]);
    let grandchildren = children(&children_of);
    [vec![pid], children_of, grandchildren].concat()
}

/// What is used of `/proc/PID/stat`. See proc_pid_stat(5).
struct Stat {
    has_ended: bool,
    parent: u32,
    born_ticks: u64,
}

impl Stat {
    fn read(root: &Root, pid: u32) -> Option<Self> {
        Self::parse(&root.text(format!("/proc/{pid}/stat"))?)
    }

    fn parse(text: &str) -> Option<Self> {
        // The name in parentheses may itself hold parentheses and blanks; behind the last one everything is regular.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Self {
            has_ended: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            born_ticks: fields.get(19)?.parse().ok()?,
        })
    }
}

/// Why nothing can be traced. The message says what is missing; [`Self::hint`] what to do.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum NoTrace {
    /// The program that does the work is not there.
    #[error("kernel tracing needs `bpftrace`, which is not installed")]
    #[diagnostic(help("install the package `bpftrace`"))]
    NotInstalled,
    /// The rights are not enough.
    #[error("kernel tracing is not permitted: {lacking}")]
    #[diagnostic(help("run as root; in a container, with the capabilities SYS_ADMIN, BPF and PERFMON"))]
    NotPermitted {
        /// Which right is missing.
        lacking: String,
    },
    /// The kernel has no tracing at all, or hides it.
    #[error("this kernel offers no tracing: `/sys/kernel/tracing` is not there")]
    #[diagnostic(help("in a container, let `/sys` show the kernel's files; else use a kernel with CONFIG_FTRACE"))]
    NoTracing,
    /// The kernel does not describe its own data types, so files cannot be distinguished.
    #[error("this kernel does not describe its types: `/sys/kernel/btf/vmlinux` is not there")]
    #[diagnostic(help(
        "use a kernel with CONFIG_DEBUG_INFO_BTF, as distributions have since about 2020; devices can be traced without"
    ))]
    NoTypes,
    /// Processes have other numbers here than in the kernel, so another process would be traced.
    #[error("this process runs in a container with process numbers of its own, and tracing goes by the machine's")]
    #[diagnostic(help("run it on the machine itself (`docker run --pid=host`), or trace devices only"))]
    OtherNumbers,
    /// No such process.
    #[error("there is no process {pid}")]
    NoProcess {
        /// Its number.
        pid: u32,
    },
    /// No such block device.
    #[error("there is no block device `{name}`")]
    #[diagnostic(help("`/proc/diskstats` and `lsblk` list the names"))]
    NoDevice {
        /// Its kernel name.
        name: String,
    },
    /// Neither a process nor a device.
    #[error("there is nothing to trace: neither a process nor a block device")]
    Nothing,
    /// The kernel refused memory for the sums.
    #[error("the kernel refused memory for tracing (limit of locked memory: {limit}): {said}")]
    #[diagnostic(help("raise the limit of locked memory: `ulimit -l unlimited`"))]
    LockedMemory {
        /// The limit in force.
        limit: String,
        /// What `bpftrace` said.
        said: String,
    },
    /// It did not come to work in time.
    #[error("`bpftrace` was not ready after {seconds} seconds")]
    #[diagnostic(help("try again when the machine has less to do"))]
    TooSlow {
        /// How long it was waited for.
        seconds: u64,
    },
    /// It refused for another reason.
    #[error("`bpftrace` cannot trace here: {said}")]
    #[diagnostic(help(
        "try `bpftrace -e 'BEGIN {{ exit(); }}'` as the same user; kernel lockdown and missing tracepoints also end \
         here"
    ))]
    Refused {
        /// What it said.
        said: String,
    },
    /// It could not be started, or not be listened to.
    #[error("cannot start `bpftrace`: {0}")]
    Start(#[from] io::Error),
}

impl NoTrace {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        model::hint(self)
    }

    /// What `bpftrace` said when it gave up.
    fn from_words(said: &str) -> Self {
        let said = essence(said);
        let has = |word: &str| said.to_lowercase().contains(word);
        if has("root user") {
            return Self::NotPermitted { lacking: "this version of `bpftrace` works for root only".to_owned() };
        }
        if has("map") && (has("not permitted") || has("cannot allocate memory")) {
            let limit = match limit(Resource::LockedMemory) {
                Some(u64::MAX) => "none".to_owned(),
                Some(bytes) => Bytes(bytes).to_string(),
                None => "not known".to_owned(),
            };
            return Self::LockedMemory { limit, said };
        }
        Self::Refused { said }
    }
}

/// Errors are kept, and only the lines that report something: `bpftrace` repeats the program below each.
fn essence(said: &str) -> String {
    // It warns that it could not raise the limit of locked memory, and works nevertheless.
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty() && !line.contains("set RLIMIT_MEMLOCK"));
    let errors: Vec<&str> = lines().filter(|line| line.contains("ERROR") || line.contains("FATAL")).collect();
    let message = if errors.is_empty() { lines().next_back().map(str::to_owned) } else { Some(errors.join("; ")) };
    message.unwrap_or_else(|| "it ended without a word".to_owned())
}

/// Looks for everything that is known to be needed.
fn look_missing(root: &Root, request: &TraceRequest) -> Result<(), NoTrace> {
    if on_path("bpftrace").is_none() {
        return Err(NoTrace::NotInstalled);
    }
    look_at_rights(root)?;
    if !root.exists("/sys/kernel/tracing") && !has_tracefs(root) {
        return Err(NoTrace::NoTracing);
    }
    let Some(pid) = request.process else { return Ok(()) };
    if !root.exists("/sys/kernel/btf/vmlinux") {
        return Err(NoTrace::NoTypes);
    }
    if numbers_are_foreign(root) {
        return Err(NoTrace::OtherNumbers);
    }
    Process::find(pid).map(drop).ok_or(NoTrace::NoProcess { pid })
}

/// The tracing file system is mounted.
fn has_tracefs(root: &Root) -> bool {
    ["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"].iter().any(|events| root.exists(events))
}

/// The first program of this name where programs are looked for.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|program| program.is_file())
}

/// See capabilities(7).
fn look_at_rights(root: &Root) -> Result<(), NoTrace> {
    const SYS_ADMIN: u32 = 21;
    const PERFMON: u32 = 38;
    const BPF: u32 = 39;
    let status = root.text("/proc/self/status").unwrap_or_default();
    let held = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    // What is not reported is left to `bpftrace` to find out.
    let Some(held) = held.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()) else { return Ok(()) };
    let has = |capability: u32| held >> capability & 1 == 1;
    if has(SYS_ADMIN) || (has(BPF) && has(PERFMON)) {
        return Ok(());
    }
    let lacking = "this process has neither the capability SYS_ADMIN nor both BPF and PERFMON";
    Err(NoTrace::NotPermitted { lacking: lacking.to_owned() })
}

/// Whether this process lives in another process-number namespace than the kernel's first, which has this fixed number
/// (`PROC_PID_INIT_INO` in the kernel's sources).
fn numbers_are_foreign(root: &Root) -> bool {
    const FIRST: &str = "pid:[4026531836]";
    std::fs::read_link(root.path("/proc/self/ns/pid")).is_ok_and(|namespace| namespace.as_os_str() != FIRST)
}

#[cfg(test)]
mod tests;
