//! Writing a trace.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use files::How;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::{COLUMNS, END_KEY, HEADER_KEY, MESSAGE, SUMMARY_KEY, VERSION, VERSION_KEY, failed, rounded};
use crate::{TraceError, TraceSummary};
use model::trace::{TraceEnd, TraceHeader, TraceKind, TraceRequest};

/// Requests of a row group: some megabytes, which is what a reader has in memory.
const GROUP_ROWS: usize = 1 << 18;
/// Groups after which a table of contents is added: so many are lost where a file is cut off.
const GROUPS_OF_CONTENTS: usize = 8;

/// Writes the file of a trace.
pub struct TraceWriter<W: Write + Send> {
    path: String,
    out: SerializedFileWriter<W>,
    rows: Rows,
    kinds: [ByteArray; 4],
    summary: TraceSummary,
    groups: usize,
}

/// Columns of the group that is being filled.
#[derive(Default)]
struct Rows {
    at_ns: Vec<i64>,
    device: Vec<i32>,
    kind: Vec<ByteArray>,
    fua: Vec<bool>,
    offset_bytes: Vec<i64>,
    bytes: Vec<i64>,
    latency_ns: Vec<i64>,
    is_timed: Vec<i16>,
}

impl TraceWriter<BufWriter<File>> {
    /// Begins a new file. What is there already is never replaced: a trace cannot be recorded again.
    ///
    /// # Errors
    /// [`TraceError::Write`].
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let file = files::make_new(path, How::default());
        let file = file.map_err(|source| TraceError::Write { path: name.clone(), source })?;
        Self::begin(&name, BufWriter::with_capacity(1 << 20, file))
    }
}

impl<W: Write + Send> TraceWriter<W> {
    /// Begins to write to `out`, which errors call `path`.
    ///
    /// # Errors
    /// [`TraceError::Write`].
    pub fn begin(path: &str, out: W) -> Result<Self, TraceError> {
        let path = path.to_owned();
        let column = |name: &str| ColumnPath::from(name);
        let properties = WriterProperties::builder()
            .set_created_by(concat!("plimsoll ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_max_row_group_row_count(None)
            // Instants rise by little, addresses differ in their middle bytes, and of sizes there are few.
            .set_column_dictionary_enabled(column("at_ns"), false)
            .set_column_encoding(column("at_ns"), Encoding::DELTA_BINARY_PACKED)
            .set_column_dictionary_enabled(column("offset_bytes"), false)
            .set_column_encoding(column("offset_bytes"), Encoding::BYTE_STREAM_SPLIT)
            .build();
        let made = parse_message_type(MESSAGE)
            .and_then(|schema| SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties)));
        let out = made.map_err(|error| TraceError::Write { path: path.clone(), source: failed(error) })?;
        let kinds = TraceKind::ALL.map(|kind| ByteArray::from(kind.name()));
        Ok(Self { path, out, rows: Rows::default(), kinds, summary: TraceSummary::default(), groups: 0 })
    }

    /// Takes one more request; its time is not before that of the one before it.
    pub fn push(&mut self, request: &TraceRequest) {
        self.summary.add(request);
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let rows = &mut self.rows;
        rows.at_ns.push(whole(request.at_ns));
        rows.device.push(i32::from(request.device));
        rows.kind.push(self.kinds[request.kind.index()].clone());
        rows.fua.push(request.is_fua);
        rows.offset_bytes.push(whole(request.offset_bytes));
        rows.bytes.push(whole(request.bytes));
        rows.is_timed.push(i16::from(request.latency_ns.is_some()));
        rows.latency_ns.extend(request.latency_ns.map(|latency_ns| whole(rounded(latency_ns))));
    }

    /// Takes several, and writes what makes a group. `header` is what is known so far.
    ///
    /// # Errors
    /// [`TraceError::Write`].
    pub fn write(&mut self, requests: &[TraceRequest], header: &TraceHeader) -> Result<(), TraceError> {
        for request in requests {
            self.push(request);
            if self.rows.at_ns.len() >= GROUP_ROWS {
                self.write_group().map_err(|source| self.error(source))?;
                if self.groups.is_multiple_of(GROUPS_OF_CONTENTS) {
                    self.write_contents(header).map_err(|source| self.error(source))?;
                }
            }
        }
        Ok(())
    }

    /// Writes what there is so far, with a table of contents: what is cut off later is read up to here.
    ///
    /// # Errors
    /// [`TraceError::Write`].
    pub fn settle(&mut self, header: &TraceHeader) -> Result<(), TraceError> {
        if self.rows.at_ns.is_empty() {
            return Ok(());
        }
        self.write_group().and_then(|()| self.write_contents(header)).map_err(|source| self.error(source))
    }

    /// Bytes written so far, without the group that is being filled.
    pub fn written_bytes(&self) -> u64 {
        self.out.bytes_written() as u64
    }

    /// What is known of the requests so far.
    pub fn summary(&self) -> &TraceSummary {
        &self.summary
    }

    /// Writes what is left, and the table of contents.
    ///
    /// # Errors
    /// [`TraceError::Write`].
    pub fn finish(mut self, header: &TraceHeader, end: &TraceEnd) -> Result<(TraceSummary, W), TraceError> {
        let path = self.path.clone();
        let failed_at = |source| TraceError::Write { path: path.clone(), source };
        self.write_group().map_err(failed_at)?;
        for pair in self.pairs(header, end) {
            self.out.append_key_value_metadata(pair);
        }
        let mut out = self.out.into_inner().map_err(|error| failed_at(failed(error)))?;
        out.flush().map_err(failed_at)?;
        Ok((self.summary, out))
    }

    fn error(&self, source: io::Error) -> TraceError {
        TraceError::Write { path: self.path.clone(), source }
    }

    fn pairs(&self, header: &TraceHeader, end: &TraceEnd) -> Vec<KeyValue> {
        let json = |key: &str, value: Result<String, serde_json::Error>| {
            KeyValue::new(key.to_owned(), value.unwrap_or_default())
        };
        vec![
            KeyValue::new(VERSION_KEY.to_owned(), VERSION.to_owned()),
            json(HEADER_KEY, serde_json::to_string(header)),
            json(END_KEY, serde_json::to_string(end)),
            json(SUMMARY_KEY, serde_json::to_string(&self.summary)),
        ]
    }

    fn write_group(&mut self) -> io::Result<()> {
        let rows = &mut self.rows;
        if rows.at_ns.is_empty() {
            return Ok(());
        }
        let mut group = self.out.next_row_group().map_err(failed)?;
        column::<Int64Type, W>(&mut group, &rows.at_ns, None)?;
        column::<Int32Type, W>(&mut group, &rows.device, None)?;
        column::<ByteArrayType, W>(&mut group, &rows.kind, None)?;
        column::<BoolType, W>(&mut group, &rows.fua, None)?;
        column::<Int64Type, W>(&mut group, &rows.offset_bytes, None)?;
        column::<Int64Type, W>(&mut group, &rows.bytes, None)?;
        column::<Int64Type, W>(&mut group, &rows.latency_ns, Some(&rows.is_timed))?;
        group.close().map_err(failed)?;
        self.rows.clear();
        self.groups += 1;
        Ok(())
    }

    /// A table of contents of what there is so far, for a reader of a file that was cut off.
    fn write_contents(&mut self, header: &TraceHeader) -> io::Result<()> {
        let groups = self.out.flushed_row_groups().to_vec();
        let rows = groups.iter().map(|group| group.num_rows()).sum();
        let schema = groups.first().map(|group| group.schema_descr_ptr());
        let Some(schema) = schema else { return Ok(()) };
        let created_by = Some(self.out.properties().created_by().to_owned());
        let pairs = self.pairs(header, &TraceEnd::default());
        let file = FileMetaData::new(1, rows, created_by, Some(pairs), schema, None);
        let mut contents = Vec::new();
        ParquetMetaDataWriter::new(&mut contents, &ParquetMetaData::new(file, groups)).finish().map_err(failed)?;
        self.out.write_all(&contents)?;
        self.out.flush()
    }
}

impl Rows {
    fn clear(&mut self) {
        self.at_ns.clear();
        self.device.clear();
        self.kind.clear();
        self.fua.clear();
        self.offset_bytes.clear();
        self.bytes.clear();
        self.latency_ns.clear();
        self.is_timed.clear();
    }
}

fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    is_known: Option<&[i16]>,
) -> io::Result<()> {
    let missing = || io::Error::other(format!("the table has {} columns", COLUMNS.len()));
    let mut column = group.next_column().map_err(failed)?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, is_known, None).map_err(failed)?;
    column.close().map_err(failed)
}
