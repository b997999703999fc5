//! Reading a trace.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Once;

use files::Links;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::reader::{ChunkReader, FileReader, Length};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::statistics::Statistics;

use super::{COLUMNS, END_KEY, HEADER_KEY, SUMMARY_KEY, VERSION, VERSION_KEY, failed};
use crate::{BATCH, TraceError, TraceSource, TraceSummary};
use model::trace::{TraceEnd, TraceHeader, TraceKind, TraceRequest};

const MAGIC: &[u8; 4] = b"PAR1";
/// Tables of contents that are tried in a file without one at its end.
const MAX_TRIED: usize = 64;
/// Pieces in which it is searched from its end.
const PIECE: u64 = 1 << 20;

/// The file of a trace that is read from its beginning to its end.
pub struct TraceFile {
    path: String,
    reader: SerializedFileReader<Beginning>,
    header: TraceHeader,
    summary: TraceSummary,
    end: TraceEnd,
    /// The next row group.
    group: usize,
    columns: Option<Columns>,
    last_ns: u64,
}

/// The beginning of a file, up to its last whole table of contents.
struct Beginning {
    file: File,
    bytes: u64,
}

impl Length for Beginning {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Beginning {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(start))?;
        Ok(BufReader::new(file))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<bytes::Bytes> {
        // The length is what the file says: it must not be allocated before it is known to be there.
        if start.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let mut buffer = vec![0; length];
        self.file.read_exact_at(&mut buffer, start)?;
        Ok(buffer.into())
    }
}

/// Readers of a row group's columns, which are read side by side.
struct Columns {
    rows: u64,
    at_ns: ColumnReader,
    device: ColumnReader,
    kind: ColumnReader,
    fua: ColumnReader,
    offset_bytes: ColumnReader,
    bytes: ColumnReader,
    latency_ns: ColumnReader,
}

impl TraceFile {
    /// Whether a file begins as one does.
    pub fn is_one(path: &Path) -> bool {
        let mut head = [0; 4];
        let read = files::open_plain(path, Links::Followed).and_then(|file| file.read_exact_at(&mut head, 0));
        read.is_ok() && head == *MAGIC
    }

    /// Opens the trace at `path`.
    ///
    /// # Errors
    /// [`TraceError::Read`], [`TraceError::Damaged`] or, if it is another table, [`TraceError::NotRecognised`].
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let unread = |source| TraceError::Read { path: name.clone(), source };
        let file = files::open_plain(path, Links::Followed).map_err(unread)?;
        let bytes = file.metadata().map_err(unread)?.len();
        let mut head = [0; 4];
        if file.read_exact_at(&mut head, 0).is_err() || head != *MAGIC {
            return Err(TraceError::NotRecognised { path: name });
        }
        let damaged = |what: &str| TraceError::Damaged { path: name.clone(), line: None, what: what.to_owned() };
        let whole = Beginning { file: file.try_clone().map_err(unread)?, bytes };
        let opened = guarded(|| SerializedFileReader::new(whole).map_err(|error| failed(error).to_string()));
        let (reader, is_cut) = match opened {
            Ok(reader) => (reader, false),
            Err(_) => {
                let found = last_whole(&file, bytes).map_err(unread)?;
                (found.ok_or_else(|| damaged("it was cut off before its first part was complete"))?, true)
            }
        };
        let metadata = reader.metadata();
        let pairs = metadata.file_metadata().key_value_metadata().map(Vec::as_slice).unwrap_or_default();
        match value(pairs, VERSION_KEY) {
            None => return Err(TraceError::NotRecognised { path: name }),
            Some(VERSION) => {}
            Some(_) => return Err(damaged("a newer version of Plimsoll wrote it")),
        }
        check(metadata).map_err(|what| damaged(&what))?;
        let document = |key: &str| value(pairs, key).unwrap_or_default();
        let header = serde_json::from_str(document(HEADER_KEY)).map_err(|_| damaged("its header is not whole"))?;
        let summary = serde_json::from_str(document(SUMMARY_KEY)).map_err(|_| damaged("its summary is not whole"))?;
        let mut end: TraceEnd = serde_json::from_str(document(END_KEY)).map_err(|_| damaged("its end is not whole"))?;
        if is_cut {
            let left = bytes - reader_bytes(&reader);
            end.notes.push(format!("the file was cut off: its last {left} bytes were not used"));
        }
        Ok(Self { path: name, reader, header, summary, end, group: 0, columns: None, last_ns: 0 })
    }

    /// Leaves out parts that end before `at_ns`, at the beginning.
    pub fn skip_to(&mut self, at_ns: u64) {
        while self.columns.is_none() && self.ends_before(self.group, at_ns) {
            self.group += 1;
        }
    }

    /// Whether the last request of a row group is before `at_ns`, as far as its statistics say.
    fn ends_before(&self, group: usize, at_ns: u64) -> bool {
        let group = self.reader.metadata().row_groups().get(group);
        let statistics = group.and_then(|group| group.columns().first()?.statistics());
        match statistics {
            Some(Statistics::Int64(values)) => {
                values.max_opt().is_some_and(|last| u64::try_from(*last).is_ok_and(|last| last < at_ns))
            }
            _ => false,
        }
    }

    /// What the file says of all its requests.
    pub fn summary(&self) -> &TraceSummary {
        &self.summary
    }

    fn damaged(&self, what: impl Into<String>) -> TraceError {
        TraceError::Damaged { path: self.path.clone(), line: None, what: what.into() }
    }

    /// The columns of the next group; none at the end.
    fn next_group(&mut self) -> io::Result<Option<Columns>> {
        if self.group >= self.reader.num_row_groups() {
            return Ok(None);
        }
        let group = self.reader.get_row_group(self.group).map_err(failed)?;
        self.group += 1;
        let column = |name: &str| {
            let place = COLUMNS.iter().position(|known| *known == name).unwrap_or_default();
            group.get_column_reader(place).map_err(failed)
        };
        Ok(Some(Columns {
            rows: u64::try_from(group.metadata().num_rows()).unwrap_or_default(),
            at_ns: column("at_ns")?,
            device: column("device")?,
            kind: column("kind")?,
            fua: column("fua")?,
            offset_bytes: column("offset_bytes")?,
            bytes: column("bytes")?,
            latency_ns: column("latency_ns")?,
        }))
    }
}

fn reader_bytes(reader: &SerializedFileReader<Beginning>) -> u64 {
    let last = reader.metadata().row_groups().last();
    let columns = last.map(|group| group.columns()).unwrap_or_default();
    columns.iter().map(|column| column.byte_range()).map(|(start, length)| start + length).max().unwrap_or(0)
}

fn value<'a>(pairs: &'a [KeyValue], key: &str) -> Option<&'a str> {
    // What was added last counts: a table of contents in the middle has the same keys.
    pairs.iter().rev().find(|pair| pair.key == key)?.value.as_deref()
}

/// Whether the columns are those of a trace, and lie in the file.
fn check(metadata: &ParquetMetaData) -> Result<(), String> {
    let schema = metadata.file_metadata().schema_descr();
    let names: Vec<&str> = schema.columns().iter().map(|column| column.name()).collect();
    if names != COLUMNS {
        return Err(format!("its columns are not {}", COLUMNS.join(", ")));
    }
    let expected = parquet::schema::parser::parse_message_type(super::MESSAGE).map_err(|error| error.to_string())?;
    let types = |schema: &parquet::schema::types::Type| -> Vec<_> {
        schema.get_fields().iter().map(|field| (field.get_physical_type(), field.is_optional())).collect()
    };
    let root = schema.root_schema();
    let are_plain = root.get_fields().iter().all(|field| field.is_primitive());
    if !are_plain || types(root) != types(&expected) {
        return Err("its columns have other types".to_owned());
    }
    Ok(())
}

/// The file up to its last whole table of contents.
fn last_whole(file: &File, bytes: u64) -> io::Result<Option<SerializedFileReader<Beginning>>> {
    let (mut end, mut tried) = (bytes, 0);
    let mut piece = Vec::new();
    while end > 0 && tried < MAX_TRIED {
        let start = end.saturating_sub(PIECE);
        // Three bytes more, for a mark that lies across the edge.
        let length = (end - start + 3).min(bytes - start);
        piece.resize(usize::try_from(length).unwrap_or(0), 0);
        file.read_exact_at(&mut piece, start)?;
        for at in (0..piece.len().saturating_sub(3)).rev() {
            if piece[at..at + 4] != *MAGIC || tried >= MAX_TRIED {
                continue;
            }
            tried += 1;
            let beginning = Beginning { file: file.try_clone()?, bytes: start + at as u64 + 4 };
            if let Ok(reader) =
                guarded(|| SerializedFileReader::new(beginning).map_err(|error| failed(error).to_string()))
            {
                return Ok(Some(reader));
            }
        }
        end = start;
    }
    Ok(None)
}

impl Columns {
    /// Appends the next requests to `batch`.
    fn read(&mut self, batch: &mut Vec<TraceRequest>) -> Result<(), String> {
        let rows = usize::try_from(self.rows).unwrap_or(usize::MAX).min(BATCH);
        let at_ns: Vec<i64> = whole(typed(&mut self.at_ns)?, rows)?;
        let device: Vec<i32> = match &mut self.device {
            ColumnReader::Int32ColumnReader(column) => whole(column, rows)?,
            _ => return Err(OTHER_TYPE.to_owned()),
        };
        let kind: Vec<ByteArray> = match &mut self.kind {
            ColumnReader::ByteArrayColumnReader(column) => whole(column, rows)?,
            _ => return Err(OTHER_TYPE.to_owned()),
        };
        let fua: Vec<bool> = match &mut self.fua {
            ColumnReader::BoolColumnReader(column) => whole(column, rows)?,
            _ => return Err(OTHER_TYPE.to_owned()),
        };
        let offset_bytes: Vec<i64> = whole(typed(&mut self.offset_bytes)?, rows)?;
        let bytes: Vec<i64> = whole(typed(&mut self.bytes)?, rows)?;
        let (mut is_timed, mut latency_ns) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        records(typed(&mut self.latency_ns)?, rows, Some(&mut is_timed), &mut latency_ns)?;
        if is_timed.len() != rows {
            return Err(FEWER.to_owned());
        }
        let mut latencies = latency_ns.into_iter();
        let count = |number: i64| u64::try_from(number).map_err(|_| format!("{number} is below zero"));
        for row in 0..rows {
            let kind = TraceKind::ALL.into_iter().find(|known| known.name().as_bytes() == kind[row].data());
            let latency_ns = if is_timed[row] == 0 { None } else { latencies.next().map(count).transpose()? };
            batch.push(TraceRequest {
                at_ns: count(at_ns[row])?,
                device: u16::try_from(device[row]).map_err(|_| format!("there is no device {}", device[row]))?,
                kind: kind.ok_or("a request is of an unknown kind")?,
                is_fua: fua[row],
                offset_bytes: count(offset_bytes[row])?,
                bytes: count(bytes[row])?,
                latency_ns,
            });
        }
        self.rows -= rows as u64;
        Ok(())
    }
}

thread_local! {
    /// Whether this thread decodes what may be damaged.
    static DECODES: Cell<bool> = const { Cell::new(false) };
}

/// Decodes a part of a file. The library panics on some damaged pages: that is an error of the file, and is reported as one alone.
fn guarded<T>(decode: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !DECODES.get() {
                usual(info);
            }
        }));
    });
    DECODES.set(true);
    let decoded = panic::catch_unwind(AssertUnwindSafe(decode));
    DECODES.set(false);
    decoded.unwrap_or_else(|_| Err("one of its pages cannot be decoded".to_owned()))
}

const OTHER_TYPE: &str = "a column is of another type";
const FEWER: &str = "a column has fewer values than the others";

fn typed(column: &mut ColumnReader) -> Result<&mut ColumnReaderImpl<parquet::data_type::Int64Type>, String> {
    match column {
        ColumnReader::Int64ColumnReader(column) => Ok(column),
        _ => Err(OTHER_TYPE.to_owned()),
    }
}

/// So many values of a column that has one in each row.
fn whole<T: DataType>(column: &mut ColumnReaderImpl<T>, rows: usize) -> Result<Vec<T::T>, String> {
    let mut values = Vec::with_capacity(rows);
    records(column, rows, None, &mut values)?;
    if values.len() == rows { Ok(values) } else { Err(FEWER.to_owned()) }
}

fn records<T: DataType>(
    column: &mut ColumnReaderImpl<T>,
    rows: usize,
    mut is_known: Option<&mut Vec<i16>>,
    values: &mut Vec<T::T>,
) -> Result<(), String> {
    let mut read = 0;
    while read < rows {
        let more = column.read_records(rows - read, is_known.as_deref_mut(), None, values);
        match more.map_err(|error| failed(error).to_string())?.0 {
            0 => return Ok(()),
            more => read += more,
        }
    }
    Ok(())
}

impl TraceSource for TraceFile {
    fn header(&self) -> &TraceHeader {
        &self.header
    }

    fn next_batch(&mut self, batch: &mut Vec<TraceRequest>) -> Result<(), TraceError> {
        let columns = loop {
            match &mut self.columns {
                Some(columns) if columns.rows > 0 => break columns,
                _ => {
                    let next = guarded(|| self.next_group().map_err(|error| error.to_string()));
                    self.columns = next.map_err(|what| self.damaged(what))?;
                    if self.columns.is_none() {
                        return Ok(());
                    }
                }
            }
        };
        let first = batch.len();
        if let Err(what) = guarded(|| columns.read(batch)) {
            self.columns = None;
            return Err(self.damaged(what));
        }
        for request in &batch[first..] {
            if request.at_ns < self.last_ns {
                return Err(self.damaged("its requests are not in the order of their times"));
            }
            if usize::from(request.device) >= self.header.devices.len() {
                return Err(self.damaged(format!("there is no device {}", request.device)));
            }
            self.last_ns = request.at_ns;
        }
        Ok(())
    }

    fn read_bytes(&self) -> Option<u64> {
        let groups = self.reader.metadata().row_groups().iter().take(self.group);
        u64::try_from(groups.map(|group| group.compressed_size()).sum::<i64>()).ok()
    }

    fn end(&self) -> TraceEnd {
        self.end.clone()
    }
}
