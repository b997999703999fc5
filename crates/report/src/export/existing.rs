//! What lies where tables are to be written: runs that are there already, and files of others.

use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::record::Field;
use parquet::schema::parser::parse_message_type;

use super::table::{Cell, Column, Form, Kind, Sink, Table};
use crate::comma::restored;
use model::plain::{self, Links};

/// A run that a file of the table `runs` has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// What it is called in all tables.
    pub key: String,
    /// When it began: microseconds since 1970.
    pub started_us: Option<i64>,
    /// The host that it ran on.
    pub host: Option<String>,
}

/// The runs that a file of the table `runs` has.
///
/// # Errors
/// If it cannot be read, or is no such table.
pub fn known(path: &Path, form: Form) -> io::Result<Vec<Known>> {
    match form {
        Form::Parquet => of_parquet(path),
        Form::Csv => of_csv(path),
    }
}

/// Whether a file is one of `table` that this program wrote.
pub fn is_ours(path: &Path, table: &Table, form: Form) -> bool {
    let is_ours = || -> io::Result<bool> {
        let mut file = plain::open(path, Links::Followed)?;
        Ok(match form {
            Form::Parquet => {
                let reader = SerializedFileReader::new(file).map_err(failed)?;
                let pairs = reader.metadata().file_metadata().key_value_metadata();
                let name = pairs.and_then(|pairs| pairs.iter().find(|pair| pair.key == TABLE_KEY));
                name.and_then(|pair| pair.value.as_deref()) == Some(table.name)
            }
            Form::Csv => {
                let header = table.columns().iter().map(|column| column.name).collect::<Vec<_>>().join(",") + "\n";
                let mut found = vec![0; header.len()];
                file.read_exact(&mut found)?;
                found == header.as_bytes()
            }
        })
    };
    is_ours().unwrap_or(false)
}

fn of_parquet(path: &Path) -> io::Result<Vec<Known>> {
    let reader = SerializedFileReader::new(plain::open(path, Links::Followed)?).map_err(failed)?;
    let columns = "message runs { OPTIONAL BYTE_ARRAY run (STRING); OPTIONAL INT64 started_at (TIMESTAMP(MICROS,false)); \
                   OPTIONAL BYTE_ARRAY host (STRING); }";
    let projection = parse_message_type(columns).map_err(failed)?;
    let mut runs = Vec::new();
    for row in reader.get_row_iter(Some(projection)).map_err(failed)? {
        let mut known = Known::default();
        for (name, value) in row.map_err(failed)?.get_column_iter() {
            match (name.as_str(), value) {
                ("run", Field::Str(text)) => known.key.clone_from(text),
                ("host", Field::Str(text)) => known.host = Some(text.clone()),
                ("started_at", Field::TimestampMicros(us) | Field::Long(us)) => known.started_us = Some(*us),
                _ => {}
            }
        }
        runs.push(known);
    }
    Ok(runs)
}

fn of_csv(path: &Path) -> io::Result<Vec<Known>> {
    let mut records = Records { bytes: BufReader::new(plain::open(path, Links::Followed)?).bytes() };
    let header = records.next_record()?.unwrap_or_default();
    let place = |name: &str| {
        let missing = || io::Error::new(io::ErrorKind::InvalidData, format!("it has no column `{name}`"));
        header.iter().position(|column| column == name).ok_or_else(missing)
    };
    let places = [place("run")?, place("started_at")?, place("host")?];
    let mut runs = Vec::new();
    while let Some(record) = records.next_record()? {
        let [key, started_at, host] = places.map(|at| record.get(at).cloned().unwrap_or_default());
        let at: Option<jiff::Timestamp> = format!("{}Z", started_at.replace(' ', "T")).parse().ok();
        let (key, host) = (restored(&key).to_owned(), restored(&host).to_owned());
        let host = Some(host).filter(|host| !host.is_empty());
        runs.push(Known { key, started_us: at.map(jiff::Timestamp::as_microsecond), host });
    }
    Ok(runs)
}

/// Records as RFC 4180 has them.
struct Records<R: Read> {
    bytes: io::Bytes<BufReader<R>>,
}

impl<R: Read> Records<R> {
    fn next_record(&mut self) -> io::Result<Option<Vec<String>>> {
        let (mut fields, mut bytes, mut is_quoted, mut any) = (Vec::new(), Vec::new(), false, false);
        let text = |bytes: &mut Vec<u8>| String::from_utf8_lossy(&std::mem::take(bytes)).into_owned();
        // A quotation mark that is doubled closes its field and opens it again: only the mark itself is added.
        let mut closed = false;
        for byte in self.bytes.by_ref() {
            any = true;
            match byte? {
                b'"' if is_quoted => (is_quoted, closed) = (false, true),
                b'"' => {
                    if closed {
                        bytes.push(b'"');
                    }
                    (is_quoted, closed) = (true, false);
                }
                b',' if !is_quoted => {
                    fields.push(text(&mut bytes));
                    closed = false;
                }
                b'\n' if !is_quoted => break,
                byte => bytes.push(byte),
            }
        }
        if any {
            fields.push(text(&mut bytes));
        }
        Ok(any.then_some(fields))
    }
}

/// A row group ends with the run that reaches so many rows: as many as make groups worth their heads, and few enough that the columns
/// of all tables stay in some tens of megabytes.
const GROUP_ROWS: usize = 32_768;
/// A run of more rows, such as one of days by the second, fills several groups.
const MAX_GROUP_ROWS: usize = 4 * GROUP_ROWS;
/// What was meant for one.
const TABLE_KEY: &str = "plimsoll.table";

pub(super) struct ParquetFile<W: Write + Send> {
    out: SerializedFileWriter<W>,
    columns: Vec<Buffer>,
    rows: usize,
}

impl<W: Write + Send> ParquetFile<W> {
    pub(super) fn begin(table: &Table, out: W) -> io::Result<Self> {
        let columns = table.columns();
        let schema = Arc::new(parse_message_type(&schema(table.name, &columns)).map_err(failed)?);
        let mut pairs = vec![KeyValue::new(TABLE_KEY.to_owned(), table.name.to_owned())];
        let described =
            columns.iter().map(|column| KeyValue::new(format!("column.{}", column.name), described(column)));
        pairs.extend(described);
        let properties = WriterProperties::builder()
            .set_created_by(concat!("plimsoll ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            // Of pages they would be as large as what they are of.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_key_value_metadata(Some(pairs))
            .build();
        let out = SerializedFileWriter::new(out, schema, Arc::new(properties)).map_err(failed)?;
        Ok(Self { out, columns: columns.iter().map(|column| Buffer::new(column.kind)).collect(), rows: 0 })
    }

    fn write_group(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.out.next_row_group().map_err(failed)?;
        for buffer in &mut self.columns {
            let Some(mut column) = group.next_column().map_err(failed)? else { break };
            let is_known = &buffer.is_known;
            match &buffer.values {
                Values::Text(values) => column.typed::<ByteArrayType>().write_batch(values, Some(is_known), None),
                Values::Whole(values) => column.typed::<Int64Type>().write_batch(values, Some(is_known), None),
                Values::Number(values) => column.typed::<DoubleType>().write_batch(values, Some(is_known), None),
                Values::Flag(values) => column.typed::<BoolType>().write_batch(values, Some(is_known), None),
            }
            .map_err(failed)?;
            column.close().map_err(failed)?;
            buffer.clear();
        }
        group.close().map_err(failed)?;
        self.rows = 0;
        Ok(())
    }
}

impl<W: Write + Send> Sink for ParquetFile<W> {
    fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        self.columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
        self.rows += 1;
        if self.rows >= MAX_GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    fn end_of_run(&mut self) -> io::Result<()> {
        if self.rows >= GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.write_group()?;
        let mut out = self.out.into_inner().map_err(failed)?;
        out.flush()
    }
}

/// A column of the row group that is being filled.
struct Buffer {
    /// 1 for each row whose value is known, else 0.
    is_known: Vec<i16>,
    values: Values,
}

/// Those that are known.
enum Values {
    Text(Vec<ByteArray>),
    Whole(Vec<i64>),
    Number(Vec<f64>),
    Flag(Vec<bool>),
}

impl Buffer {
    fn new(kind: Kind) -> Self {
        let values = match kind {
            Kind::Text => Values::Text(Vec::new()),
            Kind::Count | Kind::Time => Values::Whole(Vec::new()),
            Kind::Number => Values::Number(Vec::new()),
            Kind::Flag => Values::Flag(Vec::new()),
        };
        Self { is_known: Vec::new(), values }
    }

    fn push(&mut self, cell: &Cell) {
        let is_known = match (&mut self.values, cell) {
            (Values::Text(values), Cell::Text(text)) => {
                // Rows that follow each other often have the same run and event: these share their memory.
                let again = values.last().filter(|last| last.data() == text.as_bytes()).cloned();
                values.push(again.unwrap_or_else(|| ByteArray::from(text.as_str())));
                true
            }
            (Values::Whole(values), Cell::Count(whole) | Cell::Time(whole)) => {
                values.push(*whole);
                true
            }
            (Values::Number(values), Cell::Number(number)) => {
                values.push(*number);
                true
            }
            (Values::Flag(values), Cell::Flag(flag)) => {
                values.push(*flag);
                true
            }
            _ => false,
        };
        self.is_known.push(i16::from(is_known));
    }

    fn clear(&mut self) {
        self.is_known.clear();
        match &mut self.values {
            Values::Text(values) => values.clear(),
            Values::Whole(values) => values.clear(),
            Values::Number(values) => values.clear(),
            Values::Flag(values) => values.clear(),
        }
    }
}

/// The unit and the meaning of a column, which stand in the file too.
fn described(column: &Column) -> String {
    if column.unit.is_empty() { column.words.to_owned() } else { format!("{} [{}]", column.words, column.unit) }
}

fn schema(name: &str, columns: &[Column]) -> String {
    let fields = columns.iter().map(|column| match column.kind {
        Kind::Text => format!("OPTIONAL BYTE_ARRAY {} (STRING);", column.name),
        Kind::Count => format!("OPTIONAL INT64 {};", column.name),
        Kind::Number => format!("OPTIONAL DOUBLE {};", column.name),
        Kind::Flag => format!("OPTIONAL BOOLEAN {};", column.name),
        Kind::Time => format!("OPTIONAL INT64 {} (TIMESTAMP(MICROS,false));", column.name),
    });
    format!("message {name} {{ {} }}", fields.collect::<Vec<_>>().join(" "))
}

fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}
