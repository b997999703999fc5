//! Recording requests from the kernel's block tracepoints.
//!
//! The kernel writes an event for each issue and each completion into a ring buffer of each processor, in binary, and this reads whole
//! pages of it. Nothing is formatted, no program runs in the kernel, and no tool has to be installed. Devices with requests of their own
//! are seen where requests go to the driver (`block_rq_issue`); what is built on others (LVM, MD, multipath) where they arrive
//! (`block_bio_queue`).

mod events;
mod file;
mod ring;
mod tracefs;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::pairing::{Action, Event, Pairing};
use events::{Does, EventLayout, SECTOR_BYTES, Seen};
use model::record::Timestamp;
use model::trace::{TraceDevice, TraceHeader, TraceRequest};
use tracefs::Instance;

pub use file::{CallCounts, FileOptions, FileRecorder, FileRole, Roles};
pub use tracefs::left_behind;

/// A recording of either layer, which goes on until the value is dropped.
pub trait Recording {
    /// What the trace says of itself so far.
    fn header(&self) -> &TraceHeader;

    /// How long it has recorded, in nanoseconds.
    fn elapsed_ns(&self) -> u64;

    /// Whether nothing more can come: what is recorded has ended.
    fn is_over(&mut self) -> bool {
        false
    }

    /// How often [`take`](Self::take) is to be called.
    fn every(&self) -> Duration;

    /// Takes what the ring buffer has, and appends requests that are complete, in the order of their issue.
    ///
    /// # Errors
    /// When the ring buffer cannot be read.
    fn take(&mut self, into: &mut Vec<TraceRequest>) -> Result<(), RecordError>;

    /// Ends the recording and appends what is left of it. Returns what the trace says of itself in the end.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    fn end(self: Box<Self>, into: &mut Vec<TraceRequest>) -> Result<(TraceHeader, Recorded), RecordError>;
}

/// What is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordOptions {
    /// Devices: kernel names, or paths below `/dev`; at least one.
    pub devices: Vec<String>,
    /// Only requests that are issued by this process, its threads and descendants.
    pub process: Option<u32>,
    /// Memory of the kernel's ring buffer, in bytes for each processor.
    pub buffer_bytes: u64,
}

/// Recording that goes on until the value is dropped.
#[derive(Debug)]
pub struct Recorder {
    instance: Instance,
    header: TraceHeader,
    /// The events that are looked at, and what each says.
    layouts: Vec<(Action, EventLayout)>,
    /// Places of the devices, by the kernel's number.
    places: HashMap<u64, u16>,
    family: Option<Family>,
    began_ns: u64,
    /// Events that were read too early: earlier ones of another processor may follow.
    early: Vec<Early>,
    pairing: Pairing,
    /// The instant of the last event that was taken.
    last_ns: u64,
    /// Writes before which the device was to flush.
    preflushes: u64,
    /// Issues by threads that were gone when they were looked up.
    unknown: u64,
    /// Requests that are neither reads, writes, flushes nor discards.
    others: u64,
}

/// What is known when a recording has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// How long was recorded, in nanoseconds.
    pub duration_ns: u64,
    /// Events that the ring buffer lost: an issue or a completion each. Absent where the kernel does not say.
    pub lost_events: Option<u64>,
    /// Requests whose completion was not seen.
    pub untimed: u64,
    /// Requests that are none of the kinds, such as resets of zones: left out.
    pub others: u64,
    /// Writes with data before which the device was to flush. That flush is not in the trace.
    pub preflushes: u64,
    /// Requests that the driver gave back, which begin when they are issued again.
    pub requeued: u64,
    /// Requests whose thread had ended before it could be looked up: left out where only those of a process are recorded.
    pub unknown: u64,
    /// Memory of the ring buffers of all processors, in bytes.
    pub kernel_bytes: u64,
    /// What system calls were seen and are not in the trace; absent unless they were recorded.
    pub calls: Option<CallCounts>,
}

/// An event that waits for earlier ones of other processors.
#[derive(Debug, Clone, Copy)]
struct Early {
    at_ns: u64,
    action: Action,
    device: u16,
    seen: Seen,
    does: Does,
}

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum RecordError {
    /// The kernel has no tracing.
    #[error("this kernel offers no tracing: `/sys/kernel/tracing` is not there")]
    #[diagnostic(help("in a container, let `/sys` show the kernel's files; else use a kernel with CONFIG_FTRACE"))]
    NoTracing,
    /// Its files are not shown.
    #[error("the kernel's tracing is not mounted")]
    #[diagnostic(help("as root: `mount -t tracefs tracefs /sys/kernel/tracing`"))]
    NotMounted,
    /// The rights are not enough.
    #[error("recording is not permitted: no access to `{path}`")]
    #[diagnostic(help("run as root"))]
    NotPermitted {
        /// The file.
        path: String,
    },
    /// No such block device.
    #[error("there is no block device `{name}`")]
    #[diagnostic(help("`lsblk` lists the names"))]
    NoDevice {
        /// As the user named it.
        name: String,
    },
    /// The kernel counts requests by disk.
    #[error("`{name}` is a partition, and the kernel shows requests of whole disks")]
    #[diagnostic(help("record `{disk}`"))]
    Partition {
        /// As the user named it.
        name: String,
        /// The disk that it is on.
        disk: String,
    },
    /// A device was named twice.
    #[error("`{name}` is named twice")]
    #[diagnostic(help("name each device once; one device may have several paths"))]
    Twice {
        /// Its kernel name.
        name: String,
    },
    /// No such process.
    #[error("there is no process {pid}")]
    #[diagnostic(help("`ps -e` lists the processes"))]
    NoProcess {
        /// Its number.
        pid: u32,
    },
    /// The kernel describes its events in another way.
    #[error("this kernel describes `{what}` in a form that Plimsoll cannot read")]
    #[diagnostic(help("report it with the version of the kernel (`uname -r`)"))]
    Unknown {
        /// The file.
        what: &'static str,
    },
    /// The kernel does not trace system calls.
    #[error("this kernel does not trace system calls")]
    #[diagnostic(help("use a kernel with CONFIG_FTRACE_SYSCALLS, or record devices"))]
    NoCalls,
    /// The kernel describes an event in another way.
    #[error("this kernel describes the event `{name}` in a form that Plimsoll cannot read")]
    #[diagnostic(help("report it with the version of the kernel (`uname -r`), or use `--layer device`"))]
    UnknownEvent {
        /// Its group and name.
        name: String,
    },
    /// The system's error.
    #[error("cannot {action} `{path}`: {source}")]
    #[diagnostic(help("look at the kernel's log (`dmesg`); if memory is short, use a smaller `--kernel-buffer`"))]
    Kernel {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

/// The tracepoints of devices with requests of their own, and of others.
const OF_REQUESTS: &[(&str, Action)] = &[
    ("block_rq_issue", Action::Issue),
    ("block_rq_requeue", Action::Requeue),
    ("block_rq_complete", Action::Complete),
];
const OF_BIOS: &[(&str, Action)] = &[("block_bio_queue", Action::Issue), ("block_bio_complete", Action::Complete)];

/// An event has its time before others can see it: an interrupt, or a processor that the hypervisor takes away, may be in between. So
/// what happened more recently than this waits for the next look.
const SETTLED_NS: u64 = 100_000_000;

/// A device as `/sys` shows it.
struct Found {
    device: TraceDevice,
    number: u64,
    has_requests: bool,
}

impl Recorder {
    /// Begins to record: events are counted when it returns.
    ///
    /// # Errors
    /// [`RecordError`] says what is missing.
    pub fn start(options: &RecordOptions) -> Result<Self, RecordError> {
        let mut found: Vec<Found> = Vec::new();
        for name in &options.devices {
            let one = find(name)?;
            if found.iter().any(|known| known.number == one.number) {
                return Err(RecordError::Twice { name: one.device.name });
            }
            found.push(one);
        }
        let family = options.process.map(Family::of).transpose()?;
        let instance = Instance::make(options.buffer_bytes)?;
        let mut layouts = Vec::new();
        for (has_requests, names) in [(true, OF_REQUESTS), (false, OF_BIOS)] {
            let of_kind = found.iter().filter(|one| one.has_requests == has_requests);
            let filter: Vec<String> = of_kind.map(|one| format!("dev == {}", one.number)).collect();
            if filter.is_empty() {
                continue;
            }
            for (name, action) in names {
                let text = instance.text(&format!("events/block/{name}/format"))?;
                layouts.push((*action, EventLayout::parse(&text).ok_or(RecordError::Unknown { what: name })?));
                instance.set(&format!("events/block/{name}/filter"), &filter.join(" || "))?;
                instance.set(&format!("events/block/{name}/enable"), "1")?;
            }
        }
        let (began_ns, began) = (now_ns(), Timestamp(jiff::Timestamp::now()));
        instance.set("tracing_on", "1")?;
        let places = (0_u16..).zip(&found).map(|(place, one)| (one.number, place)).collect();
        let header = TraceHeader {
            source: "plimsoll record".to_owned(),
            began: Some(began),
            devices: found.into_iter().map(|one| one.device).collect(),
            clock: Some("CLOCK_MONOTONIC of the kernel".to_owned()),
            ..TraceHeader::default()
        };
        Ok(Self {
            instance,
            header,
            layouts,
            places,
            family,
            began_ns,
            early: Vec::new(),
            pairing: Pairing::new(true),
            last_ns: 0,
            preflushes: 0,
            unknown: 0,
            others: 0,
        })
    }

    /// Reads what the ring buffer has, up to what happens after `read_ns`, and takes what happened before `settled_ns`.
    fn drain(&mut self, read_ns: u64, settled_ns: u64, into: &mut Vec<TraceRequest>) -> Result<(), RecordError> {
        let Self { instance, layouts, places, family, early, others, unknown, preflushes, .. } = self;
        instance.drain(read_ns, |at_ns, bytes| {
            let seen = layouts.iter().find_map(|(action, layout)| Some((*action, layout.read(bytes)?)));
            let Some((action, seen)) = seen else { return };
            let Some(&device) = places.get(&seen.device) else { return };
            let is_issue = action == Action::Issue;
            // A thread of the kernel issues again what the driver gave back: so it counts from its first issue.
            if action == Action::Requeue && family.is_some() {
                return;
            }
            if is_issue && let Some(family) = family.as_mut() {
                match family.has(seen.pid) {
                    Some(true) => {}
                    Some(false) => return,
                    None => {
                        *unknown += 1;
                        return;
                    }
                }
            }
            match seen.does {
                Some(does) => {
                    *preflushes += u64::from(is_issue && does.is_preflush);
                    early.push(Early { at_ns, action, device, seen, does });
                }
                None => *others += u64::from(is_issue),
            }
        })?;
        // Of each processor they are in order already.
        self.early.sort_by_key(|event| event.at_ns);
        let ready = self.early.partition_point(|event| event.at_ns < settled_ns);
        for Early { at_ns, action, device, seen, does } in self.early.drain(..ready) {
            // One that became visible later than that still comes after those that were taken.
            self.last_ns = self.last_ns.max(at_ns);
            let event = Event {
                at_ns: self.last_ns.saturating_sub(self.began_ns),
                action,
                kind: does.kind,
                is_fua: does.is_fua,
                sector: seen.sector,
                bytes: seen.sectors.saturating_mul(SECTOR_BYTES),
            };
            if self.pairing.event(&event, device, into).is_none() {
                self.others += u64::from(action == Action::Issue);
            }
        }
        Ok(())
    }
}

impl Recording for Recorder {
    fn header(&self) -> &TraceHeader {
        &self.header
    }

    fn elapsed_ns(&self) -> u64 {
        now_ns().saturating_sub(self.began_ns)
    }

    fn every(&self) -> Duration {
        Duration::from_millis(50)
    }

    fn take(&mut self, into: &mut Vec<TraceRequest>) -> Result<(), RecordError> {
        let now_ns = now_ns();
        self.drain(now_ns, now_ns.saturating_sub(SETTLED_NS), into)?;
        self.pairing.pass_on(now_ns.saturating_sub(SETTLED_NS).saturating_sub(self.began_ns), into);
        Ok(())
    }

    fn end(mut self: Box<Self>, into: &mut Vec<TraceRequest>) -> Result<(TraceHeader, Recorded), RecordError> {
        self.instance.set("tracing_on", "0")?;
        let duration_ns = self.elapsed_ns();
        self.drain(u64::MAX, u64::MAX, into)?;
        self.pairing.finish(into);
        let recorded = Recorded {
            duration_ns,
            lost_events: self.instance.lost(),
            untimed: self.pairing.incomplete(),
            others: self.others,
            preflushes: self.preflushes,
            unknown: self.unknown,
            requeued: self.pairing.requeued(),
            kernel_bytes: self.instance.buffer_bytes(),
            calls: None,
        };
        Ok((self.header, recorded))
    }
}

/// Processors for which the kernel has ring buffers.
pub fn online_processors() -> u64 {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    in_ranges(&text).unwrap_or(1).max(1)
}

/// How many numbers `0-3,8` names.
fn in_ranges(text: &str) -> Option<u64> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        last.parse::<u64>().ok()?.checked_sub(first.parse().ok()?)?.checked_add(1)
    };
    text.trim().split(',').map(range).sum()
}

/// The kernel's monotonic clock.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}

fn find(asked: &str) -> Result<Found, RecordError> {
    let missing = || RecordError::NoDevice { name: asked.to_owned() };
    let path = Path::new(asked);
    // `/dev/mapper/…` and `/dev/disk/by-id/…` are links.
    let kernel_name = if path.is_absolute() {
        fs::canonicalize(path).ok().and_then(|path| Some(path.file_name()?.to_str()?.to_owned()))
    } else {
        Some(asked.to_owned())
    };
    let name = kernel_name.filter(|name| !name.is_empty() && !name.contains('/') && !name.starts_with('.'));
    let name = name.ok_or_else(missing)?;
    let place = Path::new("/sys/class/block").join(&name);
    let numbers = fs::read_to_string(place.join("dev")).map_err(|_| missing())?;
    let number = device_number(&numbers).ok_or_else(missing)?;
    if place.join("partition").exists() {
        let above = fs::canonicalize(&place).ok().and_then(|path| Some(path.parent()?.file_name()?.to_owned()));
        let disk = above.map_or_else(|| "its disk".to_owned(), |disk| disk.to_string_lossy().into_owned());
        return Err(RecordError::Partition { name, disk });
    }
    let sectors: Option<u64> = fs::read_to_string(place.join("size")).ok().and_then(|text| text.trim().parse().ok());
    let bytes = sectors.map(|sectors| sectors.saturating_mul(SECTOR_BYTES));
    Ok(Found { device: TraceDevice { name, bytes }, number, has_requests: place.join("mq").exists() })
}

/// `254:0` as the kernel has it inside: 12 bits and 20 (`MKDEV`, include/linux/kdev_t.h).
fn device_number(text: &str) -> Option<u64> {
    let (major, minor) = text.trim().split_once(':')?;
    Some(major.parse::<u64>().ok()? << 20 | minor.parse::<u64>().ok()?)
}

/// A process with its threads and descendants, those that come later too.
#[derive(Debug)]
struct Family {
    pid: u32,
    /// What is known of threads: numbers are given out again, so that is forgotten from time to time.
    known: HashMap<u32, bool>,
}

/// Generations between a process and its descendants, at most.
const MAX_GENERATIONS: u32 = 16;
/// Threads that are remembered.
const MAX_KNOWN: usize = 4_096;

impl Family {
    fn of(pid: u32) -> Result<Self, RecordError> {
        if !Path::new(&format!("/proc/{pid}")).exists() {
            return Err(RecordError::NoProcess { pid });
        }
        Ok(Self { pid, known: HashMap::new() })
    }

    /// Whether a thread belongs to it; absent where the thread has ended.
    fn has(&mut self, thread: u32) -> Option<bool> {
        if let Some(known) = self.known.get(&thread) {
            return Some(*known);
        }
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        let is_member = self.look(thread)?;
        self.known.insert(thread, is_member);
        Some(is_member)
    }

    fn look(&self, thread: u32) -> Option<bool> {
        let mut at = thread;
        for _ in 0..MAX_GENERATIONS {
            let status = fs::read_to_string(format!("/proc/{at}/status")).ok()?;
            let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u32>().ok());
            if value("Tgid:") == Some(self.pid) {
                return Some(true);
            }
            match value("PPid:") {
                Some(parent) if parent > 0 => at = parent,
                _ => return Some(false),
            }
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_the_number_that_events_name() {
        assert_eq!(device_number("254:0\n"), Some(254 << 20));
        assert_eq!(device_number("8:17"), Some(8 << 20 | 17));
        assert_eq!(device_number("x"), None);
    }

    #[test]
    fn processors_are_counted_in_ranges() {
        assert_eq!(in_ranges("0-3,8\n"), Some(5));
        assert_eq!(in_ranges("0"), Some(1));
        assert_eq!(in_ranges("3-1"), None);
        assert!(online_processors() >= 1);
    }

    #[test]
    fn what_is_no_device_is_refused_by_its_name() {
        for name in ["no such device", "../vda", "", "/dev/null", "/nowhere/at/all"] {
            let error = find(name).err().expect("it is none");
            assert_eq!(error.to_string(), format!("there is no block device `{name}`"));
        }
    }

    #[test]
    fn a_family_has_threads_and_descendants() {
        let mut family = Family::of(std::process::id()).unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert_eq!(family.has(child.id()), Some(true));
        assert_eq!((family.has(std::process::id()), family.has(1)), (Some(true), Some(false)));
        assert_eq!(family.has(u32::MAX), None);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(matches!(Family::of(u32::MAX), Err(RecordError::NoProcess { .. })));
    }
}
