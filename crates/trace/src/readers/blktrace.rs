//! The files of blktrace, one for each CPU: `sda.blktrace.0`, `sda.blktrace.1` and so on.
//!
//! Source: `struct blk_io_trace` and its constants in `include/uapi/linux/blktrace_api.h` of Linux, and `__blk_add_trace` in
//! `kernel/trace/blktrace.c`. Times are nanoseconds of `ktime_get()`, which is CLOCK_MONOTONIC. A record `BLK_TN_TIMESTAMP` has the
//! wall-clock time as seconds and nanoseconds (`trace_note_time`). Sectors have 512 bytes, lengths are in bytes. The device has 12 bits
//! of the major and 20 bits of the minor number (`MINORBITS` in `blktrace.h` of blktrace).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Seek, SeekFrom};
use std::path::Path;

use model::record::Timestamp;
use model::trace::TraceKind;

use super::sink::{Input, Reader, Sink, unix};
use crate::pairing::{Action, Event, Pairing};
use crate::{TraceError, TraceSource};

/// What each record begins with; the last byte is the version.
const MAGIC: u32 = 0x6561_7400;
/// The version that is read.
const VERSION: u32 = 7;
/// The bytes of a record without its payload.
const RECORD: usize = 48;
/// What is read at once of each file.
const BUFFER: usize = 65_536;
/// Records that are searched for the first event D.
const SEARCHED: u64 = 1_000_000;
/// Changes to another CPU at a later time: so many are only in a file that was merged.
const MERGED: u64 = 8;
/// The most parts of a file, each of which is opened.
const MAX_PARTS: usize = 256;
/// Records until requests are passed on.
const STEP: usize = 1_024;

const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << (16 + 1);
const FLUSH: u32 = 1 << (16 + 2);
const COMMAND: u32 = 1 << (16 + 9);
const NOTIFY: u32 = 1 << (16 + 10);
const DISCARD: u32 = 1 << (16 + 13);
const FUA: u32 = 1 << (16 + 15);
/// The number of the action in the lower half, without the bit of cgroups.
const NUMBER: u32 = 0xfeff;
/// The notification that has the wall-clock time.
const TIMESTAMP: u32 = 1;

/// Whether a file begins with a record, of whichever version.
pub(super) fn begins(head: &[u8]) -> bool {
    head.len() >= RECORD && order(head).is_some()
}

/// Whether the first bytes are the magic number, and if so whether the higher bytes come first.
fn order(bytes: &[u8]) -> Option<bool> {
    let magic: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    let is_magic = |value: u32| value & 0xffff_ff00 == MAGIC;
    if is_magic(u32::from_le_bytes(magic)) { Some(false) } else { is_magic(u32::from_be_bytes(magic)).then_some(true) }
}

/// Reads files of one trace as one.
pub(super) fn open(paths: &[&Path]) -> Result<Box<dyn TraceSource>, TraceError> {
    let pairing = Pairing::new(has_issue(paths)?);
    let mut input = Blktrace {
        files: Vec::new(),
        next: BinaryHeap::new(),
        pairing,
        wall: None,
        last: None,
        other: 0,
        impossible: 0,
    };
    for path in paths {
        // Only of one file it can be that it has those of several CPUs, one after the other.
        let ends = if paths.len() == 1 { ends(path)? } else { Vec::new() };
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let ends = ends.iter().copied().map(Some).chain([None]);
        for (start, end) in starts.zip(ends) {
            input.files.push(Records::open(path, start, end)?);
            input.advance(input.files.len() - 1)?;
        }
    }
    let name = paths.first().map(|path| path.display().to_string()).unwrap_or_default();
    Reader::open(input, &name, "blktrace", Some("CLOCK_MONOTONIC"))
}

/// Whether the trace has events D, or at least none of Q to use instead.
fn has_issue(paths: &[&Path]) -> Result<bool, TraceError> {
    let mut is_queued = false;
    for path in paths {
        let mut records = Records::open(path, 0, None)?;
        for _ in 0..SEARCHED {
            let Some(record) = records.next()? else { break };
            match record.event() {
                Some(event) if event.action == Action::Issue => return Ok(true),
                Some(event) => is_queued |= event.action == Action::Queue,
                None => {}
            }
        }
    }
    Ok(!is_queued)
}

/// Where the files of all CPUs but the last one end, in a file that has them one after the other.
///
/// `cat` makes such a file: where the CPU changes, the time goes back. In a file that blkparse merged, the CPU changes and the time
/// never goes back. Such a file need not be read to its end for this.
fn ends(path: &Path) -> Result<Vec<u64>, TraceError> {
    let mut records = Records::open(path, 0, None)?;
    let mut ends = Vec::new();
    let mut before: Option<Record> = None;
    let mut forward = 0;
    loop {
        let start = records.offset;
        let Some(record) = records.next()? else { return Ok(ends) };
        if let Some(before) = before.filter(|before| before.cpu != record.cpu) {
            if record.at_ns < before.at_ns {
                ends.push(start);
            } else {
                forward += 1;
            }
        }
        if forward > MERGED || ends.len() > MAX_PARTS {
            return Ok(Vec::new());
        }
        before = Some(record);
    }
}

/// One record.
#[derive(Clone, Copy)]
struct Record {
    at_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    device: u32,
    cpu: u32,
    /// The wall-clock time of a record that has it: seconds and nanoseconds.
    wall: Option<(u32, u32)>,
}

impl Record {
    /// The event of a request; absent for notifications, commands to the device and what else matters not.
    fn event(&self) -> Option<Event> {
        let has = |bits: u32| self.action & bits != 0;
        if has(NOTIFY | COMMAND) {
            return None;
        }
        let action = match self.action & NUMBER {
            1 => Action::Queue,
            2 | 3 => Action::Merge,
            6 => Action::Requeue,
            7 => Action::Issue,
            8 => Action::Complete,
            _ => return None,
        };
        let kind = match self.bytes {
            0 if has(FLUSH) => TraceKind::Flush,
            0 => return None,
            _ if has(DISCARD) => TraceKind::Discard,
            _ if has(WRITE) => TraceKind::Write,
            _ if has(READ) => TraceKind::Read,
            _ => return None,
        };
        let is_fua = has(FUA) && kind != TraceKind::Flush;
        Some(Event { at_ns: self.at_ns, action, kind, is_fua, sector: self.sector, bytes: self.bytes.into() })
    }
}

/// The records of one file, or of a part of it.
struct Records {
    path: String,
    reader: BufReader<File>,
    /// Known from the first record.
    is_big_endian: Option<bool>,
    /// Bytes before the next record.
    offset: u64,
    /// Where the part ends.
    end: Option<u64>,
    /// The record within which the file ends.
    cut_off: Option<u64>,
    current: Option<Record>,
}

impl Records {
    fn open(path: &Path, start: u64, end: Option<u64>) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let opened = File::open(path).and_then(|mut file| file.seek(SeekFrom::Start(start)).map(|_| file));
        match opened {
            Ok(file) => Ok(Self {
                path: name,
                reader: BufReader::with_capacity(BUFFER, file),
                is_big_endian: None,
                offset: start,
                end,
                cut_off: None,
                current: None,
            }),
            Err(source) => Err(TraceError::Read { path: name, source }),
        }
    }

    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        if self.end.is_some_and(|end| self.offset >= end) {
            return Ok(None);
        }
        let mut bytes = [0; RECORD];
        let read = self.fill(&mut bytes)?;
        if read < RECORD {
            self.cut_off = (read > 0).then_some(self.offset);
            return Ok(None);
        }
        let order = order(&bytes);
        let expected = self.is_big_endian.or(order);
        if order.is_none() || order != expected {
            return Err(self.damaged(format!("byte {} does not begin a record of blktrace", self.offset)));
        }
        self.is_big_endian = order;
        let version = self.u32(&bytes, 0) & 0xff;
        if version != VERSION {
            return Err(self.damaged(format!("a record of version {version}: only version {VERSION} is read")));
        }
        let mut record = Record {
            at_ns: self.u64(&bytes, 8),
            sector: self.u64(&bytes, 16),
            bytes: self.u32(&bytes, 24),
            action: self.u32(&bytes, 28),
            device: self.u32(&bytes, 36),
            cpu: self.u32(&bytes, 40),
            wall: None,
        };
        // The last two fields are the error and the length of the payload, of 16 bits each.
        let last = self.u32(&bytes, 44);
        let payload =
            usize::try_from(if self.is_big_endian == Some(true) { last & 0xffff } else { last >> 16 }).unwrap_or(0);
        let mut skipped = 0;
        if payload == 8 && record.action & NOTIFY != 0 && record.action & NUMBER == TIMESTAMP {
            let mut time = [0; 8];
            skipped = self.fill(&mut time)?;
            record.wall = Some((self.u32(&time, 0), self.u32(&time, 4)));
        }
        while skipped < payload {
            let available = self.available()?.min(payload - skipped);
            if available == 0 {
                self.cut_off = Some(self.offset);
                return Ok(None);
            }
            self.reader.consume(available);
            skipped += available;
        }
        self.offset += (RECORD + payload) as u64;
        Ok(Some(record))
    }

    /// How many bytes were there: fewer at the end of the file.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize, TraceError> {
        let mut filled = 0;
        while filled < bytes.len() {
            let available = self.available()?.min(bytes.len() - filled);
            if available == 0 {
                break;
            }
            if let (Some(to), Some(from)) =
                (bytes.get_mut(filled..filled + available), self.reader.buffer().get(..available))
            {
                to.copy_from_slice(from);
            }
            self.reader.consume(available);
            filled += available;
        }
        Ok(filled)
    }

    fn available(&mut self) -> Result<usize, TraceError> {
        loop {
            match self.reader.fill_buf() {
                Ok(available) => return Ok(available.len()),
                Err(source) if source.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(TraceError::Read { path: self.path.clone(), source }),
            }
        }
    }

    fn u32(&self, bytes: &[u8], at: usize) -> u32 {
        let bytes: [u8; 4] = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
        if self.is_big_endian == Some(true) { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    fn u64(&self, bytes: &[u8], at: usize) -> u64 {
        let bytes: [u8; 8] = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
        if self.is_big_endian == Some(true) { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
    }

    fn damaged(&self, what: String) -> TraceError {
        TraceError::Damaged { path: self.path.clone(), line: None, what }
    }
}

/// Some files, merged by time.
struct Blktrace {
    files: Vec<Records>,
    /// The times of the current records, with the places of their files.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    pairing: Pairing,
    /// A time of the trace, and the same as seconds and nanoseconds after 1970.
    wall: Option<(u64, u32, u32)>,
    /// The device of the last record, as the kernel has it and its number here.
    last: Option<(u32, u16)>,
    other: u64,
    impossible: u64,
}

impl Blktrace {
    /// Goes on to the next record of a file.
    fn advance(&mut self, place: usize) -> Result<(), TraceError> {
        if let Some(file) = self.files.get_mut(place) {
            file.current = file.next()?;
            if let Some(record) = file.current {
                self.next.push(Reverse((record.at_ns, place)));
            }
        }
        Ok(())
    }

    fn record(&mut self, record: &Record, sink: &mut Sink) {
        if let Some((seconds, ns)) = record.wall {
            self.wall.get_or_insert((record.at_ns, seconds, ns));
        }
        if record.action & COMMAND != 0 && record.action & NUMBER == 7 {
            self.other += 1;
        }
        let Some(event) = record.event() else { return };
        let device = match self.last {
            Some((number, device)) if number == record.device => device,
            _ => {
                let name = format!("{},{}", record.device >> 20, record.device & 0xf_ffff);
                let Some(device) = sink.device(name.as_bytes()) else { return };
                self.last = Some((record.device, device));
                device
            }
        };
        if self.pairing.event(&event, device, sink).is_none() {
            self.impossible += 1;
        }
    }
}

impl Input for Blktrace {
    fn read(&mut self, sink: &mut Sink) -> Result<bool, TraceError> {
        for _ in 0..STEP {
            let Some(Reverse((_, place))) = self.next.pop() else {
                self.pairing.finish(sink);
                return Ok(false);
            };
            if let Some(record) = self.files.get_mut(place).and_then(|file| file.current.take()) {
                self.record(&record, sink);
            }
            self.advance(place)?;
        }
        Ok(true)
    }

    fn wall(&self, at_ns: u64) -> Option<Timestamp> {
        let (then, seconds, ns) = self.wall?;
        // `blkparse -d` lets the times of requests begin at 0, and leaves that of this record as it was.
        if then > at_ns.saturating_add(1_000_000_000) {
            return None;
        }
        unix(i128::from(seconds) * 1_000_000_000 + i128::from(ns) + i128::from(at_ns) - i128::from(then))
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.pairing.notes();
        if self.other > 0 {
            notes.push(format!("commands that move no sectors, left out: {}", self.other));
        }
        if self.impossible > 0 {
            notes.push(format!("records whose place no device can have, left out: {}", self.impossible));
        }
        for file in &self.files {
            if let Some(offset) = file.cut_off {
                notes.push(format!("`{}` ends within the record at byte {offset}: it is left out", file.path));
            }
        }
        notes
    }
}
