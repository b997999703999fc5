//! What lies where tables are to be written: runs that are there already, and files of others.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::record::Field;
use parquet::schema::parser::parse_message_type;

use super::parquet::{TABLE_KEY, failed};
use super::table::{Form, Table};

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
        let mut file = File::open(path)?;
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
    let reader = SerializedFileReader::new(File::open(path)?).map_err(failed)?;
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
    let mut records = Records { bytes: BufReader::new(File::open(path)?).bytes() };
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
