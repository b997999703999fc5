//! Requests from the system calls of processes: which file, where, how many bytes, how long.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::calls::{ALLOCATES, ARGUMENTS, COUNTED, Call, Told, What};
use super::files::Files;
use super::open::{Change, Found, Look, Table};
use super::queue::Queue;
use crate::readers::numbers::request;
use model::trace::{TraceDevice, TraceKind, TraceRequest};

/// What was seen and is not in the trace, or not as it was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CallCounts {
    /// Calls on files that returned an error.
    pub failed: u64,
    /// Reads and writes on files that moved nothing, such as at the end of a file.
    pub empty: u64,
    /// Reads and writes of pipes, sockets and the like.
    pub not_files: u64,
    /// Calls whose file was closed, or whose process had ended, before it could be looked up.
    pub unknown: u64,
    /// Calls at the position of a file, which was not known.
    pub unplaced: u64,
    /// Calls whose end was not seen.
    pub unanswered: u64,
    /// Requests that were handed to io_uring.
    pub io_uring: u64,
    /// Requests that were handed over with `io_submit`.
    pub io_submit: u64,
    /// Requests in the trace whose file shares its device with others.
    pub folded: u64,
    /// Other calls that move data or make data durable, by name.
    pub counted: BTreeMap<&'static str, u64>,
}

/// What can be looked up of processes.
pub(super) trait Proc {
    /// The process of a thread, if the thread is there.
    fn process(&mut self, task: u32) -> Option<u32>;
    /// What a descriptor is now.
    fn look(&mut self, task: u32, process: u32, descriptor: u32, files: &mut Files) -> Look;
}

/// An event that waits.
#[derive(Debug, Clone, Copy)]
struct Early {
    at_ns: u64,
    told: Told,
    /// The process of its thread; 0 if that is unknown.
    process: u32,
}

/// A call that has not ended.
#[derive(Debug, Clone, Copy)]
struct Pending {
    at_ns: u64,
    call: Call,
    arguments: [u64; ARGUMENTS],
    process: u32,
    /// The file, its flags, and the place in the queue; else what the descriptor was.
    file: Result<(u16, u32, u64), Found>,
}

impl Pending {
    fn descriptor(&self) -> u32 {
        self.arguments[0] as u32
    }

    fn is_at_position(&self) -> bool {
        is_at_position(self.call, &self.arguments)
    }
}

/// Open flags of the kernel, which every architecture of 64 bits has in common but for a few that are not supported.
const APPENDS: u32 = 0o2000;
const IS_DURABLE: u32 = 0o10000;
/// Flags of `pwritev2`.
const CALL_IS_DURABLE: u64 = 0x2 | 0x4;
const CALL_APPENDS: u64 = 0x10;
/// Mode of `fallocate`.
const PUNCHES: u64 = 0x2;
/// Errors of the kernel to itself: the call begins once more.
const RESTARTS: std::ops::RangeInclusive<i64> = -516..=-512;

/// Threads that are remembered.
const MAX_TASKS: usize = 65_536;
/// Processes with a new ring that are remembered.
const MAX_RINGS: usize = 1_000;
/// Events that are looked through for one position.
const LOOKED_THROUGH: usize = 20_000;

/// Follows the calls of processes.
#[derive(Debug)]
pub(super) struct Follow {
    began_ns: u64,
    last_ns: u64,
    early: Vec<Early>,
    /// Of `early`: those that are prepared.
    prepared: usize,
    /// The process of each thread.
    tasks: HashMap<u32, u32>,
    table: Table,
    files: Files,
    pending: HashMap<u32, Pending>,
    queue: Queue,
    counts: CallCounts,
    /// Processes that made a ring.
    new_rings: BTreeSet<u32>,
    /// Of each thread in a call that duplicates: which descriptor.
    duplicating: HashMap<u32, u32>,
}

/// Whether a call is at the position of its file.
fn is_at_position(call: Call, arguments: &[u64; ARGUMENTS]) -> bool {
    match call {
        Call::Read | Call::Write => true,
        // `preadv2` and `pwritev2` name it so.
        Call::ReadAt | Call::WriteAt => arguments[3] == u64::MAX,
        _ => false,
    }
}

/// Whether a call is a request of a file.
fn is_request(call: Call) -> bool {
    matches!(call, Call::ReadAt | Call::Read | Call::WriteAt | Call::Write | Call::Flush | Call::Allocate)
}

impl Follow {
    pub(super) fn new(has_names: bool) -> Self {
        Self {
            began_ns: 0,
            last_ns: 0,
            early: Vec::new(),
            prepared: 0,
            tasks: HashMap::new(),
            table: Table::default(),
            files: Files::new(has_names),
            pending: HashMap::new(),
            queue: Queue::default(),
            counts: CallCounts::default(),
            new_rings: BTreeSet::new(),
            duplicating: HashMap::new(),
        }
    }

    /// The trace begins.
    pub(super) fn begin(&mut self, at_ns: u64) {
        self.began_ns = at_ns;
    }

    /// A thread of a process that was there before.
    pub(super) fn knows(&mut self, task: u32, process: u32) {
        if self.tasks.len() >= MAX_TASKS {
            self.tasks.clear();
        }
        self.tasks.insert(task, process);
    }

    /// Takes an event, in any order.
    pub(super) fn tell(&mut self, at_ns: u64, told: Told) {
        self.early.push(Early { at_ns, told, process: 0 });
    }

    /// Whether a ring was made since the last time: it may have a thread of its own.
    pub(super) fn has_new_rings(&self) -> bool {
        !self.new_rings.is_empty()
    }

    /// The processes that made one since the last time, as far as they have not ended.
    pub(super) fn take_new_rings(&mut self) -> Vec<u32> {
        let there: BTreeSet<u32> = self.tasks.values().copied().collect();
        std::mem::take(&mut self.new_rings).intersection(&there).copied().collect()
    }

    /// Whether it is known whose a thread is.
    pub(super) fn has_task(&self, task: u32) -> bool {
        self.tasks.contains_key(&task)
    }

    /// Events were lost until a moment, any of them: forgets what they may have changed.
    pub(super) fn doubt(&mut self, until_ns: u64) {
        self.table.clear(until_ns);
        self.tasks.clear();
        self.duplicating.clear();
        for pending in std::mem::take(&mut self.pending).into_values() {
            self.unanswered(pending);
        }
        self.prepared = 0;
    }

    /// Looks up what the events since the last call name, as long as it is there.
    pub(super) fn prepare(&mut self, proc: &mut impl Proc) {
        if self.table.has_many() {
            // What waits is prepared again, so only what is under way loses its position.
            self.table.clear(self.last_ns.saturating_add(1));
            self.prepared = 0;
        }
        let new = self.prepared.min(self.early.len());
        // Of several processors only those of each are in order.
        self.early[new..].sort_by_key(|event| event.at_ns);
        if let Some(last) = self.early.last() {
            self.table.reached(last.at_ns);
        }
        for at in new..self.early.len() {
            let Early { told, process, .. } = self.early[at];
            let process = if process == 0 { self.process(told.task, proc) } else { Some(process) };
            self.early[at].process = process.unwrap_or(0);
            if let (What::Begun { task, is_thread }, Some(process)) = (told.what, process) {
                self.knows(task, if is_thread { process } else { task });
            }
        }
        for at in new..self.early.len() {
            self.change(self.early[at]);
        }
        for at in new..self.early.len() {
            let Early { at_ns, told, process } = self.early[at];
            let descriptor = match told.what {
                What::Enter(call, arguments) if is_request(call) => arguments[0] as u32,
                What::Exit(Call::Open | Call::Duplicate, returned) if returned >= 0 => returned as u32,
                _ => continue,
            };
            if process != 0 && self.table.of(process, descriptor).needs_look(at_ns) {
                let look = proc.look(told.task, process, descriptor, &mut self.files);
                self.table.of(process, descriptor).looked(look);
            }
        }
        self.prepared = self.early.len();
    }

    fn process(&mut self, task: u32, proc: &mut impl Proc) -> Option<u32> {
        if let Some(process) = self.tasks.get(&task) {
            return Some(*process);
        }
        let process = proc.process(task)?;
        self.knows(task, process);
        Some(process)
    }

    /// What an event changes of descriptors.
    fn change(&mut self, Early { at_ns, told, process }: Early) {
        if process == 0 {
            return;
        }
        match told.what {
            What::Enter(Call::Duplicate, arguments) => {
                if self.duplicating.len() >= MAX_TASKS {
                    self.duplicating.clear();
                }
                self.duplicating.insert(told.task, arguments[0] as u32);
            }
            What::Exit(Call::Duplicate, returned) => {
                let old = self.duplicating.remove(&told.task);
                match (u32::try_from(returned), old) {
                    (Ok(new), Some(old)) => self.table.duplicate(process, (old, new), at_ns),
                    (Ok(new), None) => self.table.change(process, new, Change { at_ns, is_open: false }),
                    (Err(_), _) => {}
                }
            }
            What::Enter(Call::Close, arguments) => {
                self.table.change(process, arguments[0] as u32, Change { at_ns, is_open: false });
            }
            What::Enter(Call::CloseRange, arguments) => {
                self.table.change_range(process, (arguments[0] as u32, arguments[1] as u32), at_ns);
            }
            What::Executed => self.table.change_range(process, (0, u32::MAX), at_ns),
            What::Exit(Call::Open, returned) if returned >= 0 => {
                self.table.change(process, returned as u32, Change { at_ns, is_open: true });
            }
            What::Exit(Call::RingSetup, returned) if returned >= 0 && self.new_rings.len() < MAX_RINGS => {
                self.new_rings.insert(process);
            }
            _ => {}
        }
    }

    /// Takes what happened before `settled_ns`, and appends what is complete.
    pub(super) fn settle(&mut self, settled_ns: u64, devices: &mut Vec<TraceDevice>, into: &mut Vec<TraceRequest>) {
        let mut early = std::mem::take(&mut self.early);
        early.sort_by_key(|event| event.at_ns);
        let mut taken = 0;
        while let Some(event) = early.get(taken).filter(|event| event.at_ns < settled_ns) {
            if !self.step(*event, &early[taken + 1..], settled_ns, devices) {
                break;
            }
            taken += 1;
        }
        early.drain(..taken);
        self.prepared = early.len();
        self.early = early;
        self.queue.pass_on(self.last_ns.max(settled_ns.min(u64::MAX - 1)), into);
    }

    /// Takes the next event; false if what it names is not certain yet.
    fn step(&mut self, event: Early, later: &[Early], settled_ns: u64, devices: &mut Vec<TraceDevice>) -> bool {
        let Early { at_ns, told, process } = event;
        match told.what {
            What::Enter(call, arguments) if is_request(call) || call == Call::Seek => {
                let mut pending = Pending { at_ns, call, arguments, process, file: Err(Found::Gone) };
                let descriptor = self.table.get(process, pending.descriptor());
                if let Some(look) = descriptor.and_then(|descriptor| descriptor.look(at_ns)) {
                    // A change before the end of the look may not have been read yet.
                    if look.to_ns >= settled_ns {
                        return false;
                    }
                    pending.file = match look.found {
                        Found::File(file) => Ok((file, look.flags, 0)),
                        other => Err(other),
                    };
                    if let Found::File(file) = look.found {
                        self.files.seen(file, look.from_ns, look.size);
                    }
                    self.find_position(told.task, &pending, &look, later);
                }
                self.last_ns = self.last_ns.max(at_ns);
                pending.at_ns = self.last_ns;
                if let Ok((_, _, place)) = &mut pending.file
                    && is_request(call)
                {
                    *place = self.queue.begin(pending.at_ns);
                }
                // The end of the one before was lost.
                if let Some(before) = self.pending.insert(told.task, pending) {
                    self.unanswered(before);
                }
            }
            What::Exit(Call::Open | Call::Duplicate, returned) if returned >= 0 => {
                self.forget(process, returned as u32, at_ns);
            }
            What::Exit(Call::Submit, returned) => self.counts.io_submit += u64::try_from(returned).unwrap_or(0),
            What::Exit(Call::Counted(place), returned) if returned >= 0 => self.count(place),
            What::Exit(call, returned) => {
                let ended_ns = self.last_ns.max(at_ns);
                match self.pending.remove(&told.task) {
                    Some(pending) if pending.call == call => {
                        let request = self.ended(&pending, ended_ns, returned, devices);
                        if let (Ok((_, _, place)), true) = (pending.file, is_request(call)) {
                            self.queue.end(place, request);
                        }
                    }
                    Some(other) => self.unanswered(other),
                    None => {}
                }
            }
            What::Ended => {
                if let Some(pending) = self.pending.remove(&told.task) {
                    self.unanswered(pending);
                }
                self.tasks.remove(&told.task);
                if told.task == process {
                    self.table.remove(process);
                }
            }
            What::Ring => self.counts.io_uring += 1,
            What::Enter(Call::Close, arguments) => {
                let descriptor = arguments[0] as u32;
                self.forget(process, descriptor, at_ns);
                self.table.forget_closed(process, (descriptor, descriptor), at_ns);
            }
            What::Enter(Call::CloseRange, arguments) => {
                self.table.forget_closed(process, (arguments[0] as u32, arguments[1] as u32), at_ns);
            }
            What::Executed => self.table.forget_closed(process, (0, u32::MAX), at_ns),
            What::Begun { task, is_thread: false } => self.table.fork(process, task, at_ns),
            What::Enter(..) | What::Begun { .. } => {}
        }
        true
    }

    fn forget(&mut self, process: u32, descriptor: u32, at_ns: u64) {
        if let Some(descriptor) = self.table.get(process, descriptor) {
            descriptor.forget(at_ns);
        }
    }

    fn unanswered(&mut self, pending: Pending) {
        if let Ok((_, _, place)) = pending.file
            && is_request(pending.call)
            && self.queue.end(place, None)
        {
            self.counts.unanswered += 1;
        }
    }

    fn count(&mut self, place: u8) {
        if let Some(name) = COUNTED.get(usize::from(place)) {
            *self.counts.counted.entry(name).or_default() += 1;
        }
    }

    /// Finds out where a file's position is at a call, once after each change of the descriptor.
    fn find_position(&mut self, task: u32, pending: &Pending, look: &Look, later: &[Early]) {
        let is_shared = self.table.is_shared(pending.process, pending.descriptor(), pending.at_ns);
        let is_append = look.flags & APPENDS != 0 && pending.call == Call::Write;
        let cut_ns = match pending.file {
            Ok((file, ..)) if is_append => self.files.cut_ns(file),
            _ => 0,
        };
        let Some(descriptor) = self.table.get(pending.process, pending.descriptor()) else { return };
        descriptor.forget(pending.at_ns);
        if !pending.is_at_position() || (cut_ns == 0 && !descriptor.needs_position(pending.at_ns, look)) {
            return;
        }
        if is_shared && !is_append {
            return;
        }
        let seen = if is_append { look.size } else { look.position };
        let position = if !is_append && descriptor.is_just_opened(pending.at_ns) {
            Some(0)
        } else if look.from_ns < cut_ns || (!is_append && !descriptor.shows_position(pending.at_ns, look)) {
            None
        } else if look.to_ns <= pending.at_ns {
            Some(seen)
        } else {
            moved_bytes(task, pending, look, is_append, later).and_then(|moved| seen.checked_sub(moved))
        };
        descriptor.found_position(pending.at_ns, look, position);
    }

    /// What a call was that has ended; absent where it is left out.
    fn ended(
        &mut self,
        pending: &Pending,
        ended_ns: u64,
        returned: i64,
        devices: &mut Vec<TraceDevice>,
    ) -> Option<TraceRequest> {
        if pending.call == Call::Seek {
            if let (Ok(position), Some(descriptor)) =
                (u64::try_from(returned), self.table.get(pending.process, pending.descriptor()))
            {
                descriptor.set_position(pending.at_ns, position);
            }
            return None;
        }
        let is_sized = matches!(pending.call, Call::ReadAt | Call::Read | Call::WriteAt | Call::Write);
        let (file, flags) = match pending.file {
            Ok((file, flags, _)) => (file, flags),
            Err(found) => {
                let has_done = returned > 0 || (returned == 0 && !is_sized);
                let count = if found == Found::NotFile { &mut self.counts.not_files } else { &mut self.counts.unknown };
                *count += u64::from(has_done);
                return None;
            }
        };
        let Ok(bytes) = u64::try_from(returned) else {
            self.counts.failed += u64::from(!RESTARTS.contains(&returned));
            return None;
        };
        if is_sized && bytes == 0 {
            self.counts.empty += 1;
            return None;
        }
        let is_write = matches!(pending.call, Call::WriteAt | Call::Write);
        let appends = is_write && (flags & APPENDS != 0 || pending.arguments[5] & CALL_APPENDS != 0);
        let (kind, place) = match pending.call {
            Call::Flush => (TraceKind::Flush, (0, 0)),
            Call::Allocate if pending.arguments[1] & PUNCHES != 0 => {
                (TraceKind::Discard, (pending.arguments[2], pending.arguments[3]))
            }
            Call::Allocate => {
                self.count(ALLOCATES);
                return None;
            }
            _ => {
                let kind = if is_write { TraceKind::Write } else { TraceKind::Read };
                let Some(offset) = self.offset(pending, file, appends, (ended_ns, bytes)) else {
                    self.counts.unplaced += 1;
                    return None;
                };
                (kind, (offset, bytes))
            }
        };
        let at_ns = pending.at_ns.saturating_sub(self.began_ns);
        let latency_ns = ended_ns.checked_sub(pending.at_ns);
        let mut request = request(at_ns, 0, kind, place, latency_ns)?;
        request.is_fua = is_write && (flags & IS_DURABLE != 0 || pending.arguments[5] & CALL_IS_DURABLE != 0);
        let end_bytes = if kind == TraceKind::Discard { 0 } else { place.0.saturating_add(place.1) };
        let (device, is_folded) = self.files.request(file, end_bytes, devices)?;
        self.counts.folded += u64::from(is_folded);
        request.device = device;
        Some(request)
    }

    /// Where a read or write was, and where the next one will be.
    fn offset(&mut self, pending: &Pending, file: u16, appends: bool, (ended_ns, bytes): (u64, u64)) -> Option<u64> {
        if !appends && !pending.is_at_position() {
            return Some(pending.arguments[3]);
        }
        if !appends && self.table.is_shared(pending.process, pending.descriptor(), pending.at_ns) {
            return None;
        }
        let descriptor = self.table.get(pending.process, pending.descriptor());
        let known = descriptor.as_ref().and_then(|descriptor| descriptor.position(pending.at_ns));
        // Others may have appended since.
        let offset = if appends { self.files.end_bytes(file).or(known) } else { known };
        let next = offset.and_then(|offset| offset.checked_add(bytes));
        if appends {
            self.files.set_end(file, ended_ns, next);
        }
        if pending.is_at_position()
            && let (Some(descriptor), Some(next)) = (descriptor, next)
        {
            descriptor.set_position(pending.at_ns, next);
        }
        offset
    }

    /// Appends what is left, and returns what is not in the trace.
    pub(super) fn finish(mut self, devices: &mut Vec<TraceDevice>, into: &mut Vec<TraceRequest>) -> CallCounts {
        self.settle(u64::MAX, devices, into);
        let given_up = self.queue.finish(into);
        self.counts.unanswered += given_up;
        self.counts
    }
}

/// By how much a file's position moved from a call to a look at it; absent where that cannot be known.
fn moved_bytes(task: u32, pending: &Pending, look: &Look, is_append: bool, later: &[Early]) -> Option<u64> {
    let mut under_way = vec![task];
    let mut moved = 0_u64;
    let is_same = |event: &Early, arguments: &[u64; ARGUMENTS]| {
        event.process == pending.process && arguments[0] as u32 == pending.descriptor()
    };
    for (number, event) in later.iter().take_while(|event| event.at_ns <= look.to_ns).enumerate() {
        if number >= LOOKED_THROUGH {
            return None;
        }
        match event.told.what {
            What::Enter(Call::Seek, arguments) if is_same(event, &arguments) => return None,
            What::Enter(call, arguments) if is_at_position(call, &arguments) && is_same(event, &arguments) => {
                under_way.push(event.told.task);
            }
            What::Exit(call, returned) if is_request(call) => {
                let Some(place) = under_way.iter().position(|task| *task == event.told.task) else { continue };
                // It may have moved before the look or after.
                if event.at_ns >= look.from_ns {
                    return None;
                }
                under_way.swap_remove(place);
                moved = moved.checked_add(u64::try_from(returned).unwrap_or(0))?;
            }
            _ => {}
        }
    }
    // A call moves the position when it ends, and the size of its file before.
    (under_way.is_empty() || !is_append).then_some(moved)
}

#[cfg(test)]
mod tests;
