//! Latencies as the kernel sees them: system calls of a server on its files, and requests on the devices below.
//!
//! A `bpftrace` process counts in the kernel and prints its sums ten times a second; what is reported is the difference of two
//! such readings. Nothing is sampled and nothing is sent to user space for each call.

mod bpftrace;
mod device;
mod missing;
mod place;
mod process;
mod program;
mod reading;

use std::sync::{Mutex, PoisonError};

use crate::environment;
use crate::os::Root;
use crate::os::proc::DiskCounts;
use model::record::TraceStats;

use bpftrace::Bpftrace;
use device::TracedDevice;
use place::ClassifiedPath;
use program::Event;
use reading::TraceSample;

pub use missing::NoTrace;
pub use process::Process;

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
        missing::look(&root, request)?;
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

/// Kernel names of the devices below the database files that a process works on; empty where none is known.
pub fn devices_of(pid: u32) -> Vec<String> {
    let mut devices = Vec::new();
    for ClassifiedPath { path, .. } in place::of_process(&Root::default(), pid) {
        for device in environment::devices_below(&path) {
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
    }
    devices
}

/// Devices whose requests would be traced if these were asked for.
///
/// # Errors
/// [`NoTrace::NoDevice`] where there is none of a name.
pub fn traced_devices(names: &[String]) -> Result<Vec<String>, NoTrace> {
    let devices = device::resolve(&Root::default(), names)?;
    Ok(devices.into_iter().map(|TracedDevice { name, .. }| name).collect())
}

#[cfg(test)]
mod tests;
