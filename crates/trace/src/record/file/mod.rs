//! Recording what processes ask the kernel to do with files.
//!
//! The kernel writes an event for the begin and the end of each system call, only for the processes that are followed and those that
//! they start. Which file a descriptor is comes from `/proc`, and from the events of calls that change descriptors.

mod calls;
mod files;
mod follow;
mod open;
mod process;
mod queue;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::tracefs::Instance;
use super::{RecordError, Recorded, Recording, SETTLED_NS, now_ns};
use calls::Layouts;
use follow::Follow;
use model::record::Timestamp;
use model::trace::{TraceHeader, TraceLayer, TraceRequest};
use process::{Processes, born, tasks_of, threads_of};

pub use files::FileRole;
pub use follow::CallCounts;
pub use process::Roles;

/// What is recorded.
pub struct FileOptions {
    /// The process, with its threads and descendants.
    pub process: u32,
    /// Memory of the kernel's ring buffer, in bytes for each processor.
    pub buffer_bytes: u64,
    /// Whether the trace has the names of files.
    pub has_names: bool,
    /// Says what a file is to its database.
    pub roles: Roles,
}

/// Recording that goes on until the value is dropped.
#[derive(Debug)]
pub struct FileRecorder {
    instance: Instance,
    header: TraceHeader,
    layouts: Layouts,
    process: u32,
    /// When it was born: its number may be given to another.
    born: Option<u64>,
    processes: Processes,
    follow: Follow,
    began_ns: u64,
    /// When threads of rings were last looked for, and processes last counted.
    looked: (Option<Instant>, Instant),
    /// Events that were lost when it was last looked, and when that was.
    lost: (Option<u64>, Instant),
}

/// How often it is looked whether events were lost, which threads submit for rings, and whether any process is left.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Looks for threads that begin while others are found.
const ROUNDS: usize = 10;
/// Numbers of threads that are written at once: the kernel takes a page.
const AT_ONCE: usize = 256;

impl FileRecorder {
    /// Begins to record: calls are counted when it returns.
    ///
    /// # Errors
    /// [`RecordError`] says what is missing.
    pub fn start(options: FileOptions) -> Result<Self, RecordError> {
        let FileOptions { process, buffer_bytes, has_names, roles } = options;
        let born = born(process);
        if threads_of(process).is_empty() {
            return Err(RecordError::NoProcess { pid: process });
        }
        let instance = Instance::make(buffer_bytes)?;
        let mut layouts = Layouts::default();
        // Before the first thread is named: its children are followed from then on.
        instance.set("options/event-fork", "1")?;
        let mut follow = Follow::new(has_names);
        let mut known = BTreeSet::new();
        for _ in 0..ROUNDS {
            if watch(&instance, process, &mut known, &mut follow)? == 0 {
                break;
            }
        }
        for wanted in calls::wanted() {
            let place = wanted.place();
            if !instance.has(&format!("events/{place}/format")) {
                // Calls differ between kernels and machines, but not these.
                if place.ends_with("pread64") {
                    return Err(RecordError::NoCalls);
                }
                continue;
            }
            let text = instance.text(&format!("events/{place}/format"))?;
            layouts.add(wanted, &text).ok_or(RecordError::UnknownEvent { name: place.clone() })?;
            instance.set(&format!("events/{place}/enable"), "1")?;
        }
        let (began_ns, began) = (now_ns(), Timestamp(jiff::Timestamp::now()));
        follow.begin(began_ns);
        instance.set("tracing_on", "1")?;
        let header = TraceHeader {
            source: "plimsoll record --layer file".to_owned(),
            layer: TraceLayer::File,
            began: Some(began),
            devices: Vec::new(),
            clock: Some("CLOCK_MONOTONIC of the kernel".to_owned()),
        };
        let lost = (instance.lost(), Instant::now());
        let processes = Processes::new(roles);
        let looked = (None, Instant::now());
        Ok(Self { instance, header, layouts, process, born, processes, follow, began_ns, looked, lost })
    }

    fn read(&mut self, until_ns: u64) -> Result<(), RecordError> {
        let Self { instance, layouts, follow, .. } = self;
        let was_filled = instance.drain(until_ns, |at_ns, bytes| {
            if let Some(told) = layouts.read(bytes) {
                follow.tell(at_ns, told);
            }
        })?;
        // Before anything that was read is taken for whole.
        if was_filled || self.lost.1.elapsed() >= LOOK_AGAIN {
            let lost = self.instance.lost();
            if lost != self.lost.0 {
                self.follow.doubt(now_ns());
            }
            self.lost = (lost, Instant::now());
        }
        self.follow.prepare(&mut self.processes);
        self.watch_rings()
    }

    /// The kernel does not follow the threads that submit for rings.
    fn watch_rings(&mut self) -> Result<(), RecordError> {
        if !self.follow.has_new_rings() || self.looked.0.is_some_and(|looked| looked.elapsed() < LOOK_AGAIN) {
            return Ok(());
        }
        self.looked.0 = Some(Instant::now());
        let rings = self.follow.take_new_rings();
        if self.born.is_none() || born(self.process) != self.born {
            return Ok(());
        }
        for process in rings {
            let new: Vec<(u32, u32)> = tasks_of(process)
                .into_iter()
                .filter(|task| !self.follow.has_task(*task))
                .map(|task| (task, process))
                .collect();
            name(&self.instance, &new, &mut self.follow)?;
        }
        Ok(())
    }
}

/// Has the kernel watch the threads that are not yet known, and returns how many they are.
fn watch(
    instance: &Instance,
    process: u32,
    known: &mut BTreeSet<u32>,
    follow: &mut Follow,
) -> Result<usize, RecordError> {
    let found = threads_of(process);
    let new: Vec<(u32, u32)> = found.into_iter().filter(|(task, _)| known.insert(*task)).collect();
    name(instance, &new, follow)?;
    Ok(new.len())
}

/// Names threads to the kernel, each with its process.
fn name(instance: &Instance, new: &[(u32, u32)], follow: &mut Follow) -> Result<(), RecordError> {
    for some in new.chunks(AT_ONCE) {
        let text: String = some.iter().map(|(task, _)| format!("{task} ")).collect();
        instance.set("set_event_pid", &text)?;
    }
    new.iter().for_each(|(task, process)| follow.knows(*task, *process));
    Ok(())
}

impl Recording for FileRecorder {
    fn header(&self) -> &TraceHeader {
        &self.header
    }

    fn elapsed_ns(&self) -> u64 {
        now_ns().saturating_sub(self.began_ns)
    }

    fn is_over(&mut self) -> bool {
        if self.looked.1.elapsed() < LOOK_AGAIN {
            return false;
        }
        self.looked.1 = Instant::now();
        !self.instance.has_watched()
    }

    /// A checkpoint opens files only to flush them, and has closed them a moment later.
    fn every(&self) -> Duration {
        Duration::from_millis(5)
    }

    fn take(&mut self, into: &mut Vec<TraceRequest>) -> Result<(), RecordError> {
        let now_ns = now_ns();
        self.read(now_ns)?;
        self.follow.settle(now_ns.saturating_sub(SETTLED_NS), &mut self.header.devices, into);
        Ok(())
    }

    fn end(mut self: Box<Self>, into: &mut Vec<TraceRequest>) -> Result<(TraceHeader, Recorded), RecordError> {
        self.instance.set("tracing_on", "0")?;
        let duration_ns = self.elapsed_ns();
        self.read(u64::MAX)?;
        let Self { instance, mut header, follow, .. } = *self;
        let calls = follow.finish(&mut header.devices, into);
        let recorded = Recorded {
            duration_ns,
            lost_events: instance.lost(),
            kernel_bytes: instance.buffer_bytes(),
            calls: Some(calls),
            ..Recorded::default()
        };
        Ok((header, recorded))
    }
}
