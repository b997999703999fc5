//! What biosnoop of bcc prints, both the one in Python and the one of libbpf-tools.
//!
//! Source: `tools/biosnoop.py` and `libbpf-tools/biosnoop.c` with `biosnoop.bpf.c` of <https://github.com/iovisor/bcc>. `TIME(s)` is the
//! time of completion after the first completion: `data.ts` and `event.ts` are taken when a request completes. `LAT(ms)` is from the
//! issue to the driver to the completion, without the time in a queue. `SECTOR` has 512 bytes. The one in Python prints `R` for all
//! that is not a write; that of libbpf-tools has the letters of the kernel. `TIMESTAMP` (`-t`) is the time of day and not read.

use std::path::Path;

use super::lines::{Rows, Text};
use super::numbers::{SECTOR, decimal, letters, request, whole, words};
use super::sink::{Reader, Sink};
use crate::{TraceError, TraceSource};
use model::trace::TraceKind;

/// Added to each time: the first requests were issued before the first one completed, which is time 0.
const BEFORE_NS: u64 = 86_400_000_000_000;

/// The columns between the sizes and the latency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Heading {
    has_pattern: bool,
    has_queued: bool,
}

/// The heading that a line is.
pub(super) fn heading(line: &[u8]) -> Option<Heading> {
    let mut words = words(line);
    for name in ["TIME(s)", "COMM", "PID", "DISK", "T", "SECTOR", "BYTES"] {
        if words.next()? != name.as_bytes() {
            return None;
        }
    }
    let mut heading = Heading::default();
    let mut next = words.next()?;
    if next == b"P" {
        heading.has_pattern = true;
        next = words.next()?;
    }
    if next == b"QUE(ms)" {
        heading.has_queued = true;
        next = words.next()?;
    }
    (next == b"LAT(ms)" && words.next().is_none()).then_some(heading)
}

/// Whether a line is the heading of the program of bpftrace, which prints neither sectors nor sizes.
pub(super) fn is_of_bpftrace(line: &[u8]) -> bool {
    line.starts_with(b"TIME(ms)") && line.ends_with(b"LAT(ms)") && words(line).any(|word| word == b"COMM")
}

/// Reads such a file.
pub(super) fn open(path: &Path) -> Result<Box<dyn TraceSource>, TraceError> {
    let text = Text::open(path, Biosnoop { heading: None, left_out: 0 })?;
    Reader::open(text, &path.display().to_string(), "biosnoop", Some("CLOCK_MONOTONIC"))
}

struct Biosnoop {
    heading: Option<Heading>,
    left_out: u64,
}

impl Rows for Biosnoop {
    fn row(&mut self, line: &[u8], sink: &mut Sink) -> Option<()> {
        if let Some(heading) = heading(line) {
            self.heading = Some(heading);
            return Some(());
        }
        // Before the heading the program may say what it does.
        let Some(heading) = self.heading else { return Some(()) };
        let completed = words(line).next().and_then(|time| decimal(time, 9))?;
        // A name of a program may have spaces: the other columns are found from the end.
        let mut words = line.rsplit(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let latency = decimal(words.next()?, 6)?;
        if heading.has_queued {
            words.next()?;
        }
        let mut bytes = words.next()?;
        if heading.has_pattern {
            // A size of seven digits has no space after it.
            bytes = match bytes {
                b"S" | b"R" | b"?" => words.next()?,
                [digits @ .., b'S' | b'R' | b'?'] => digits,
                _ => return None,
            };
        }
        let (bytes, sector) = (whole(bytes)?, words.next()?);
        let (operation, disk) = (words.next()?, words.next()?);
        whole(words.next()?)?;
        // The time and at least one word of the name are left.
        words.nth(1)?;
        let Some((kind, is_fua)) = letters(operation, bytes)? else {
            self.left_out += 1;
            return Some(());
        };
        // The sector of a flush is printed as -1.
        let offset = if kind == TraceKind::Flush { 0 } else { whole(sector)?.checked_mul(SECTOR)? };
        let at_ns = completed.checked_add(BEFORE_NS)?.checked_sub(latency)?;
        let mut request = request(at_ns, 0, kind, (offset, bytes), Some(latency))?;
        request.is_fua = is_fua;
        if let Some(device) = sink.device(disk) {
            request.device = device;
            sink.push(request);
        }
        Some(())
    }

    fn notes(&self) -> Vec<String> {
        if self.left_out == 0 {
            return Vec::new();
        }
        vec![format!("requests without a length, left out as their type is unknown: {}", self.left_out)]
    }
}
