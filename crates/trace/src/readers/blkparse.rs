//! What blkparse prints of a trace of blktrace.
//!
//! Source: `process_default` of `blkparse_fmt.c` in blktrace, and the section DEFAULT OUTPUT of blkparse(1). A line is `maj,min cpu
//! sequence seconds.nanoseconds pid action rwbs`, then for a request `sector + sectors`. The time is after the first event, which
//! blkparse makes 0. Sectors have 512 bytes (`t_sec` of `blktrace.h`).

use std::path::Path;

use super::lines::{Line, Lines, Rows, Text};
use super::numbers::{SECTOR, decimal, letters, whole, words};
use super::sink::{Reader, Sink};
use crate::pairing::{Action, Event, Pairing};
use crate::{TraceError, TraceSource};

/// Lines that are searched for the first event D.
const SEARCHED: u64 = 1_000_000;

/// What a line says.
pub(super) enum Said<'a> {
    /// An event of a request and its device.
    Event(&'a [u8], Event),
    /// An event that matters not: a plug, a message, a command without sectors.
    Other,
}

/// Whether a summary begins here, which has one block of lines for each CPU and one for all.
pub(super) fn begins_summary(line: &[u8]) -> bool {
    line.strip_suffix(b"):").is_some_and(|line| {
        line.starts_with(b"Total (")
            || line.strip_prefix(b"CPU").is_some_and(|rest| {
                rest.iter().position(|byte| *byte == b' ').is_some_and(|end| {
                    whole(rest.get(..end).unwrap_or_default()).is_some()
                        && rest.get(end + 1..).is_some_and(|rest| rest.starts_with(b"("))
                })
            })
    })
}

/// Whether a line is one of those that blkparse prints of its own files.
pub(super) fn is_of_files(line: &[u8]) -> bool {
    line.starts_with(b"Input file ") && line.ends_with(b" added")
}

/// What a line says; absent if it is not one of blkparse.
pub(super) fn parse(line: &[u8]) -> Option<Said<'_>> {
    let mut words = words(line);
    let device = words.next()?;
    let comma = device.iter().position(|byte| *byte == b',')?;
    whole(device.get(..comma)?)?;
    whole(device.get(comma + 1..)?)?;
    whole(words.next()?)?;
    whole(words.next()?)?;
    let time = words.next()?;
    if !time.contains(&b'.') {
        return None;
    }
    let at_ns = decimal(time, 9)?;
    whole(words.next()?)?;
    let action = words.next()?;
    if action.len() > 2 || !action.iter().all(u8::is_ascii_alphabetic) {
        return None;
    }
    let rwbs = words.next()?;
    let action = match action {
        b"Q" => Action::Queue,
        b"M" | b"F" => Action::Merge,
        b"D" => Action::Issue,
        b"R" => Action::Requeue,
        b"C" => Action::Complete,
        _ => return Some(Said::Other),
    };
    let first = words.next().unwrap_or_default();
    let (sector, sectors) = match (whole(first), words.next()) {
        (Some(sector), Some(b"+")) => (sector, whole(words.next()?)?),
        // Only a flush is a request without a length. Commands to the device have their bytes in parentheses here.
        (None, _) if first.starts_with(b"[") || first.starts_with(b"(") => (0, 0),
        (Some(sector), Some(next)) if next.starts_with(b"[") || next.starts_with(b"(") => (sector, 0),
        _ => return None,
    };
    let bytes = sectors.checked_mul(SECTOR)?;
    match letters(rwbs, bytes)? {
        Some((kind, is_fua)) => Some(Said::Event(device, Event { at_ns, action, kind, is_fua, sector, bytes })),
        None => Some(Said::Other),
    }
}

/// Reads such a file.
pub(super) fn open(path: &Path) -> Result<Box<dyn TraceSource>, TraceError> {
    let pairing = Pairing::new(has_issue(path)?);
    let text = Text::open(path, Blkparse { pairing, is_summary: false })?;
    // blkparse prints the kernel's times less that of the first event.
    Reader::open(text, &path.display().to_string(), "blkparse", Some("CLOCK_MONOTONIC"))
}

/// Whether the trace has events D, or at least none of Q to use instead.
fn has_issue(path: &Path) -> Result<bool, TraceError> {
    let mut lines = Lines::open(path)?;
    let mut is_queued = false;
    for _ in 0..SEARCHED {
        let Line::Whole(line) = lines.next()? else { break };
        match parse(line) {
            Some(Said::Event(_, event)) if event.action == Action::Issue => return Ok(true),
            Some(Said::Event(_, event)) => is_queued |= event.action == Action::Queue,
            _ => {}
        }
    }
    Ok(!is_queued)
}

struct Blkparse {
    pairing: Pairing,
    is_summary: bool,
}

impl Rows for Blkparse {
    fn row(&mut self, line: &[u8], sink: &mut Sink) -> Option<()> {
        match parse(line) {
            Some(Said::Event(device, event)) => {
                self.is_summary = false;
                match sink.device(device) {
                    Some(device) => self.pairing.event(&event, device, sink),
                    None => Some(()),
                }
            }
            Some(Said::Other) => Some(()),
            None if is_of_files(line) => Some(()),
            None => {
                self.is_summary |= begins_summary(line);
                self.is_summary.then_some(())
            }
        }
    }

    fn finish(&mut self, sink: &mut Sink) {
        self.pairing.finish(sink);
    }

    fn notes(&self) -> Vec<String> {
        self.pairing.notes()
    }
}
