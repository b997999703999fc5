//! The logs that fio writes with `write_iolog` and replays with `read_iolog`.
//!
//! Source: the section "Trace file format" of fio's HOWTO, and `iolog.c`. Offsets and lengths are in bytes. HOWTO does not name the
//! unit of the times of version 3. `log_io_u` writes them with `utime_since_now` since that version exists (commit e8cf24e5, fio 3.31),
//! and `read_iolog` waits for them with `iolog_delay`: they are microseconds. The time is that at which fio logs a request, before it
//! is complete. Version 2 has no times, only waits: HOWTO has them in microseconds after the wait before.

use std::path::Path;

use model::trace::TraceKind;

use super::lines::{Rows, Text};
use super::numbers::{request, whole, words};
use super::sink::{Reader, Sink};
use crate::{TraceError, TraceSource};

/// The version of which a line is the first one.
pub(super) fn version(line: &[u8]) -> Option<u8> {
    // fio compares the beginning only.
    if line.starts_with(b"fio version 2 iolog") {
        Some(2)
    } else {
        line.starts_with(b"fio version 3 iolog").then_some(3)
    }
}

/// Reads such a file.
pub(super) fn open(path: &Path, version: u8) -> Result<Box<dyn TraceSource>, TraceError> {
    let source = if version == 2 { "fio iolog version 2" } else { "fio iolog version 3" };
    let rows = Iolog { is_timed: version != 2, lines: 0, began: 0, newest: 0, waits: 0, runs: 0, left_out: 0 };
    Reader::open(Text::open(path, rows)?, &path.display().to_string(), source, None)
}

struct Iolog {
    /// Whether each line begins with a time.
    is_timed: bool,
    lines: u64,
    /// The time at which the current run began.
    began: u64,
    newest: u64,
    waits: u64,
    runs: u64,
    left_out: u64,
}

impl Iolog {
    fn action(&mut self, sink: &mut Sink, file: &[u8], action: &[u8], place: Option<(u64, u64)>) -> Option<()> {
        let kind = match (action, place) {
            (b"add" | b"open" | b"close", None) => {
                sink.device(file);
                return Some(());
            }
            (b"wait", Some((wait, _))) if !self.is_timed => {
                self.waits += 1;
                self.newest = self.newest.checked_add(wait.checked_mul(1_000)?)?;
                return Some(());
            }
            // It makes nothing durable.
            (b"sync_file_range", _) => {
                self.left_out += 1;
                return Some(());
            }
            (b"sync" | b"datasync" | b"syncfs", _) => TraceKind::Flush,
            (b"read", Some(_)) => TraceKind::Read,
            (b"write", Some(_)) => TraceKind::Write,
            (b"trim", Some(_)) => TraceKind::Discard,
            _ => return None,
        };
        let mut request = request(self.newest, 0, kind, place.unwrap_or_default(), None)?;
        if let Some(device) = sink.device(file) {
            request.device = device;
            sink.push(request);
        }
        Some(())
    }
}

impl Rows for Iolog {
    fn row(&mut self, line: &[u8], sink: &mut Sink) -> Option<()> {
        self.lines += 1;
        if let Some(version) = version(line) {
            // fio appends to a log that exists: the times of the next run begin anew.
            self.is_timed = version != 2;
            self.began = self.newest;
            self.runs += 1;
            return Some(());
        }
        let mut words = words(line);
        let time = if self.is_timed { Some(whole(words.next()?)?) } else { None };
        let (file, action) = (words.next()?, words.next()?);
        let place = match (words.next(), words.next(), words.next()) {
            (None, ..) => None,
            (Some(offset), Some(bytes), None) => Some((whole(offset)?, whole(bytes)?)),
            // The length of a wait has no meaning: people leave it out.
            (Some(wait), None, _) if action == b"wait" => Some((whole(wait)?, 0)),
            _ => return None,
        };
        let Some(time) = time else { return self.action(sink, file, action, place) };
        let at_ns = self.began.checked_add(time.checked_mul(1_000)?)?;
        let newest = std::mem::replace(&mut self.newest, at_ns);
        let understood = self.action(sink, file, action, place);
        self.newest = if understood.is_some() { newest.max(at_ns) } else { newest };
        understood
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.is_timed {
            notes.push(if self.waits == 0 {
                "the log has no times: all requests are at its beginning".to_owned()
            } else {
                "the log has waits only, read as microseconds after the wait before, as in fio's HOWTO. \
                 fio itself replays them as milliseconds after its start"
                    .to_owned()
            });
        }
        if self.runs > 1 {
            notes.push(format!("runs in the log, each of which begins when the one before ended: {}", self.runs));
        }
        if self.left_out > 0 {
            notes.push(format!("calls of sync_file_range, left out: {}", self.left_out));
        }
        notes
    }
}
