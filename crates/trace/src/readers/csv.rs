//! Traces that were published as comma-separated values: of Microsoft Research, Alibaba and Tencent.

use std::path::Path;

use model::record::Timestamp;
use model::trace::TraceKind;

use super::lines::{Rows, Text};
use super::numbers::{SECTOR, fields, request, whole};
use super::sink::{Reader, Sink, unix};
use crate::{TraceError, TraceSource};

/// A published format: one row, its columns and what it is.
pub(super) trait Columns: Send + Default + 'static {
    /// Its columns, as a heading has them.
    const HEADING: &str;
    /// What the header of a trace calls it.
    const SOURCE: &str;
    /// What holds of every file.
    const NOTE: Option<&str> = None;

    /// What a line says; absent if it is not a row.
    fn row<'a>(&'a mut self, line: &'a [u8]) -> Option<Row<'a>>;
}

/// What a line says.
pub(super) struct Row<'a> {
    device: &'a [u8],
    /// Nanoseconds after 1970.
    at_ns: u64,
    kind: TraceKind,
    offset: u64,
    bytes: u64,
    latency_ns: Option<u64>,
}

/// Whether `line` is the heading of the columns.
pub(super) fn is_heading<C: Columns>(line: &[u8]) -> bool {
    line.eq_ignore_ascii_case(C::HEADING.as_bytes())
}

/// Whether a line is a row whose numbers are possible.
pub(super) fn is_row<C: Columns>(line: &[u8]) -> bool {
    C::default()
        .row(line)
        .is_some_and(|row| request(row.at_ns, 0, row.kind, (row.offset, row.bytes), row.latency_ns).is_some())
}

/// Reads a file of these columns.
pub(super) fn open<C: Columns>(path: &Path) -> Result<Box<dyn TraceSource>, TraceError> {
    let text = Text::open(path, Csv(C::default()))?;
    Reader::open(text, &path.display().to_string(), C::SOURCE, None)
}

struct Csv<C>(C);

impl<C: Columns> Rows for Csv<C> {
    fn row(&mut self, line: &[u8], sink: &mut Sink) -> Option<()> {
        let Some(row) = self.0.row(line) else {
            return is_heading::<C>(line).then_some(());
        };
        let mut request = request(row.at_ns, 0, row.kind, (row.offset, row.bytes), row.latency_ns)?;
        if let Some(device) = sink.device(row.device) {
            request.device = device;
            sink.push(request);
        }
        Some(())
    }

    fn wall(&self, at_ns: u64) -> Option<Timestamp> {
        unix(at_ns.into())
    }

    fn notes(&self) -> Vec<String> {
        C::NOTE.map(str::to_owned).into_iter().collect()
    }
}

/// Microsoft Research Cambridge: 36 volumes of 13 servers for a week of 2007.
///
/// Source: the README of the traces at SNIA IOTTA. `Timestamp` is the time of issue as Windows filetime, which counts
/// 100 ns from 1601. `Offset` and `Size` are in bytes, `ResponseTime` is in units of Windows filetime as well. A device is a host
/// and a disk, named as the files of the set are: `src1_0`.
#[derive(Default)]
pub(super) struct Msr {
    device: Vec<u8>,
}

/// 1970 as Windows filetime.
const FILETIME_1970: u64 = 116_444_736_000_000_000;

/// Times outside of the years 1970 to 2262 are not filetimes: their unit is not known.
const FILETIME_UNITS: u64 = i64::MAX as u64 / 100;

impl Columns for Msr {
    const HEADING: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
    const SOURCE: &str = "MSR Cambridge CSV";

    fn row<'a>(&'a mut self, line: &'a [u8]) -> Option<Row<'a>> {
        let [timestamp, host, disk, kind, offset, bytes, latency] = fields::<7>(line)?;
        let after = whole(timestamp)?.checked_sub(FILETIME_1970).filter(|after| *after < FILETIME_UNITS)?;
        let kind = if kind.eq_ignore_ascii_case(b"read") {
            TraceKind::Read
        } else if kind.eq_ignore_ascii_case(b"write") {
            TraceKind::Write
        } else {
            return None;
        };
        if host.is_empty() {
            return None;
        }
        whole(disk)?;
        self.device.clear();
        self.device.extend_from_slice(host);
        self.device.push(b'_');
        self.device.extend_from_slice(disk);
        Some(Row {
            at_ns: after * 100,
            kind,
            offset: whole(offset)?,
            bytes: whole(bytes)?,
            latency_ns: Some(whole(latency)?.checked_mul(100)?),
            device: &self.device,
        })
    }
}

/// Alibaba: 1,000 virtual disks for a month of 2020.
///
/// Source: the README of <https://github.com/alibaba/block-traces>. `offset` and `length` are in bytes, the time is that at which
/// the server received the request, in microseconds after 1970. The published file has neither latencies nor a heading.
#[derive(Default)]
pub(super) struct Alibaba;

impl Columns for Alibaba {
    const HEADING: &str = "device_id,opcode,offset,length,timestamp";
    const SOURCE: &str = "Alibaba block traces CSV";

    fn row<'a>(&'a mut self, line: &'a [u8]) -> Option<Row<'a>> {
        let [device, kind, offset, bytes, timestamp] = fields::<5>(line)?;
        let kind = match kind {
            b"R" => TraceKind::Read,
            b"W" => TraceKind::Write,
            _ => return None,
        };
        whole(device)?;
        // Only years from 2001 to 2286 have 16 digits in microseconds: with others the unit is another one.
        if timestamp.len() != 16 {
            return None;
        }
        Some(Row {
            device,
            at_ns: whole(timestamp)?.checked_mul(1_000)?,
            kind,
            offset: whole(offset)?,
            bytes: whole(bytes)?,
            latency_ns: None,
        })
    }
}

/// Tencent cloud block storage: 5,584 volumes for ten days of 2018.
///
/// Source: the README of the traces at SNIA IOTTA. `Timestamp` is the time of issue in seconds after 1970. `Offset`
/// and `Size` are in sectors of 512 bytes. `IOType` is 0 for a read and 1 for a write.
#[derive(Default)]
pub(super) struct Tencent;

impl Columns for Tencent {
    const HEADING: &str = "Timestamp,Offset,Size,IOType,VolumeID";
    const SOURCE: &str = "Tencent CBS CSV";
    const NOTE: Option<&str> = Some("times are whole seconds: requests of one second have the order of the file");

    fn row<'a>(&'a mut self, line: &'a [u8]) -> Option<Row<'a>> {
        let [timestamp, offset, sectors, kind, device] = fields::<5>(line)?;
        let kind = match kind {
            b"0" => TraceKind::Read,
            b"1" => TraceKind::Write,
            _ => return None,
        };
        whole(device)?;
        // Only years from 2001 to 2286 have ten digits in seconds: with others the unit is another one.
        if timestamp.len() != 10 {
            return None;
        }
        Some(Row {
            device,
            at_ns: whole(timestamp)?.checked_mul(1_000_000_000)?,
            kind,
            offset: whole(offset)?.checked_mul(SECTOR)?,
            bytes: whole(sectors)?.checked_mul(SECTOR)?,
            latency_ns: None,
        })
    }
}
