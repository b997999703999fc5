//! Traces of other programs.

mod biosnoop;
mod blkparse;
mod blktrace;
mod csv;
mod iolog;
mod lines;
pub(crate) mod numbers;
mod ordered;
mod sink;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use self::csv::{Alibaba, Columns, Msr, Tencent};
use crate::{TraceError, TraceSource};

/// A format that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
}

/// The formats that are read.
pub const FORMATS: &[Format] = &[
    Format { name: "blktrace", about: "binary files of blktrace, one for each CPU: sda.blktrace.0 and so on" },
    Format { name: "blkparse", about: "text of blkparse in its default format" },
    Format { name: "fio iolog", about: "logs of fio's write_iolog, versions 2 and 3" },
    Format { name: "biosnoop", about: "text of biosnoop of bcc or its libbpf-tools" },
    Format { name: "MSR Cambridge", about: "CSV: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime" },
    Format { name: "Alibaba", about: "CSV: device_id,opcode,offset,length,timestamp" },
    Format { name: "Tencent CBS", about: "CSV: Timestamp,Offset,Size,IOType,VolumeID" },
];

/// What of a file shows its format.
const HEAD: u64 = 65_536;

/// Opens a trace of another program.
///
/// # Errors
/// When the file cannot be read, is of no known format, contradicts itself, or has no requests.
pub fn open(path: &Path) -> Result<Box<dyn TraceSource>, TraceError> {
    open_all(&[path])
}

/// Opens a trace that is in several files: those that blktrace writes for each CPU.
///
/// # Errors
/// As [`open`], and when several files are given that are not of blktrace.
pub fn open_all<P: AsRef<Path>>(paths: &[P]) -> Result<Box<dyn TraceSource>, TraceError> {
    let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
    let mut known = None;
    for path in &paths {
        let head = head(path)?;
        // A CPU without requests has an empty file.
        if head.is_empty() && paths.len() > 1 {
            continue;
        }
        let this = recognise(path, &head)?;
        if known.is_some_and(|(_, known)| known != this) || paths.len() > 1 && this != Known::Blktrace {
            return Err(TraceError::Damaged {
                path: path.display().to_string(),
                line: None,
                what: "only the files of blktrace are read as one trace".to_owned(),
            });
        }
        known = Some((*path, this));
    }
    let Some((first, known)) = known else {
        return Err(TraceError::Empty {
            path: paths.first().map(|path| path.display().to_string()).unwrap_or_default(),
        });
    };
    match known {
        Known::Blktrace => blktrace::open(&paths),
        Known::Blkparse => blkparse::open(first),
        Known::Iolog(version) => iolog::open(first, version),
        Known::Biosnoop => biosnoop::open(first),
        Known::Bpftrace => Err(TraceError::Damaged {
            path: first.display().to_string(),
            line: Some(1),
            what: "biosnoop of bpftrace prints neither sectors nor sizes: use that of bcc".to_owned(),
        }),
        Known::Msr => csv::open::<Msr>(first),
        Known::Alibaba => csv::open::<Alibaba>(first),
        Known::Tencent => csv::open::<Tencent>(first),
    }
}

/// A format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Blktrace,
    Blkparse,
    Iolog(u8),
    Biosnoop,
    Bpftrace,
    Msr,
    Alibaba,
    Tencent,
}

fn recognise(path: &Path, head: &[u8]) -> Result<Known, TraceError> {
    if head.is_empty() {
        return Err(TraceError::Empty { path: path.display().to_string() });
    }
    claims(head).first().copied().ok_or_else(|| TraceError::NotRecognised { path: path.display().to_string() })
}

/// Every format that a file with this head can be: at most one.
fn claims(head: &[u8]) -> Vec<Known> {
    if blktrace::begins(head) {
        return vec![Known::Blktrace];
    }
    let mut claims = Vec::new();
    let lines: Vec<&[u8]> = lines(head).collect();
    let first = lines.first().copied().unwrap_or_default();
    claims.extend(iolog::version(first).map(Known::Iolog));
    if lines.iter().take(5).any(|line| biosnoop::heading(line).is_some()) {
        claims.push(Known::Biosnoop);
    }
    if lines.iter().take(5).any(|line| biosnoop::is_of_bpftrace(line)) {
        claims.push(Known::Bpftrace);
    }
    let events = lines.iter().copied().filter(|line| !blkparse::is_of_files(line));
    let events = events.take_while(|line| !blkparse::begins_summary(line));
    if is_mostly(events, |line| blkparse::parse(line).is_some()) {
        claims.push(Known::Blkparse);
    }
    let is_csv = [
        (Known::Msr, is_table::<Msr>(&lines)),
        (Known::Alibaba, is_table::<Alibaba>(&lines)),
        (Known::Tencent, is_table::<Tencent>(&lines)),
    ];
    claims.extend(is_csv.into_iter().filter_map(|(known, is_it)| is_it.then_some(known)));
    claims
}

fn is_table<C: Columns>(lines: &[&[u8]]) -> bool {
    let rows = lines.iter().skip_while(|line| csv::is_heading::<C>(line)).copied();
    is_mostly(rows, csv::is_row::<C>)
}

/// Whether the first line is of a form, and more than half of the others.
fn is_mostly<'a>(lines: impl Iterator<Item = &'a [u8]>, is_of_form: impl Fn(&[u8]) -> bool) -> bool {
    let (mut seen, mut of_form) = (0_usize, 0_usize);
    for line in lines {
        let is_it = is_of_form(line);
        if seen == 0 && !is_it {
            return false;
        }
        seen += 1;
        of_form += usize::from(is_it);
    }
    of_form * 2 > seen
}

/// The whole lines that are not empty.
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = head.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    head.get(..end)
        .unwrap_or_default()
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.iter().all(u8::is_ascii_whitespace))
}

fn head(path: &Path) -> Result<Vec<u8>, TraceError> {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    match read {
        Ok(_) => Ok(head),
        Err(source) => Err(TraceError::Read { path: path.display().to_string(), source }),
    }
}
