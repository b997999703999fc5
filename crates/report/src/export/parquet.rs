//! Tables as Parquet.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::table::{Cell, Column, Kind, Sink, Table};

/// A row group ends with the run that reaches so many rows: as many as make groups worth their heads, and few enough that the columns
/// of all tables stay in some tens of megabytes.
const GROUP_ROWS: usize = 32_768;
/// A run of more rows, such as one of days by the second, fills several groups.
const MAX_GROUP_ROWS: usize = 4 * GROUP_ROWS;
/// What was meant for one.
pub(super) const TABLE_KEY: &str = "plimsoll.table";

pub(super) struct File<W: Write + Send> {
    out: SerializedFileWriter<W>,
    columns: Vec<Buffer>,
    rows: usize,
}

impl<W: Write + Send> File<W> {
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

impl<W: Write + Send> Sink for File<W> {
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

pub(super) fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}
