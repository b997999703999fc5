//! Loading rows: in pieces, each in one transaction with its mark, as a file that is never on a disk or as statements.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use mysql_async::Error;
use mysql_async::prelude::Queryable;

use crate::SqlText as _;
use crate::data::Content;
use crate::data::pieces::Piece;
use crate::data::streams::Stream;
use crate::mysql::Connector;
use crate::mysql::data::Session;
use crate::mysql::data::catalog::qualified as name_of;
use crate::orders::ddl::list;
use crate::orders::{OrdersData, Source};
use model::workload::orders::Table;
use model::workload::orders::rows::Fields;
use targets::TargetError;

/// Bytes that are sent at once: enough to cost few calls, and less than any server takes in one statement.
const BUFFER_BYTES: u64 = 256 << 10;
/// How long a piece may go on when the load is to end.
const PIECE_PATIENCE: Duration = Duration::from_secs(5);

/// How values are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As LOAD DATA reads them. No value of order entry has a character that it would take for something else.
    File,
    /// As a list behind VALUES.
    Values,
}

/// Writes rows as text.
struct Writer {
    bytes: Vec<u8>,
    form: Form,
    is_first: bool,
}

impl Writer {
    fn new(form: Form, bytes: Vec<u8>) -> Self {
        Self { bytes, form, is_first: true }
    }

    /// What stands before a field.
    fn next(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.bytes.push(match self.form {
                Form::File => b'\t',
                Form::Values => b',',
            });
        }
    }

    fn quote(&mut self) {
        if self.form == Form::Values {
            self.bytes.push(b'\'');
        }
    }

    /// A number in at least so many digits.
    fn digits(&mut self, mut number: u64, least: usize) {
        let (mut digits, mut first) = ([b'0'; 20], 20);
        while 20 - first < least || number > 0 {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
        }
        self.bytes.extend_from_slice(&digits[first..]);
    }

    fn date(&mut self, days: i32) {
        let (year, month, day) = civil(days);
        self.digits(year.into(), 4);
        self.bytes.push(b'-');
        self.digits(month.into(), 2);
        self.bytes.push(b'-');
        self.digits(day.into(), 2);
    }
}

/// Year, month and day of a day from 1970-01-01 on, by years that begin in March: Howard Hinnant's `civil_from_days`, for days that
/// are not before the year 0.
fn civil(days: i32) -> (u32, u32, u32) {
    let shifted = (days + 719_468).unsigned_abs();
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u32::from(month <= 2), month, day)
}

impl Fields for Writer {
    fn begin_row(&mut self) {
        if self.form == Form::Values {
            if !self.bytes.is_empty() && self.bytes.last() == Some(&b')') {
                self.bytes.push(b',');
            }
            self.bytes.push(b'(');
        }
        self.is_first = true;
    }

    fn null(&mut self) {
        self.next();
        self.bytes.extend_from_slice(match self.form {
            Form::File => b"\\N",
            Form::Values => b"NULL",
        });
    }

    fn whole(&mut self, number: i64) {
        self.next();
        self.digits(number.unsigned_abs(), 1);
    }

    fn money(&mut self, cents: i64) {
        self.next();
        self.digits(cents.unsigned_abs() / 100, 1);
        self.bytes.push(b'.');
        self.digits(cents.unsigned_abs() % 100, 2);
    }

    fn text(&mut self, parts: &[&str]) {
        self.next();
        self.quote();
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part.as_bytes()));
        self.quote();
    }

    fn day(&mut self, days: i32) {
        self.next();
        self.quote();
        self.date(days);
        self.quote();
    }

    fn instant(&mut self, micros: i64) {
        const DAY: i64 = 86_400_000_000;
        self.next();
        self.quote();
        self.date((micros / DAY) as i32);
        let (seconds, behind) = ((micros % DAY / 1_000_000).unsigned_abs(), (micros % 1_000_000).unsigned_abs());
        self.bytes.push(b' ');
        self.digits(seconds / 3_600, 2);
        self.bytes.push(b':');
        self.digits(seconds / 60 % 60, 2);
        self.bytes.push(b':');
        self.digits(seconds % 60, 2);
        self.bytes.push(b'.');
        self.digits(behind, 6);
        self.quote();
    }

    fn end_row(&mut self) {
        self.bytes.push(match self.form {
            Form::File => b'\n',
            Form::Values => b')',
        });
    }
}

/// The rows of these units as a part of a file, and how many they are.
fn file(source: &Source, table: Table, units: Range<u64>) -> (Vec<u8>, u64) {
    let mut writer = Writer::new(Form::File, Vec::with_capacity(2 * BUFFER_BYTES as usize));
    let rows = source.rows.each(table, units, &mut writer);
    (writer.bytes, rows)
}

/// The same as a statement.
fn insert(source: &Source, table: Table, into: &str, units: Range<u64>) -> (String, u64) {
    let mut writer = Writer::new(Form::Values, format!("INSERT INTO {into} VALUES ").into_bytes());
    let rows = source.rows.each(table, units, &mut writer);
    (String::from_utf8_lossy(&writer.bytes).into_owned(), rows)
}

/// Loads one piece and its mark: both or neither. `as_file` says whether the server takes rows as a file.
pub(super) fn load(
    session: &mut Session<'_>,
    source: &Source,
    piece: &Piece<Table>,
    as_file: bool,
    progress: &Stream<'_>,
) -> Result<(), TargetError> {
    let Piece { table, first, places, .. } = *piece;
    let access = session.access();
    let name = Connector::qualified(access.namespace, table.name());
    let columns: Vec<&str> = table.columns().iter().map(|column| column.name).collect();
    let columns = list::<Connector>(&columns);
    let at_once = (BUFFER_BYTES / source.bytes_of_units(table, 1).max(1)).clamp(1, BUFFER_BYTES / 64);
    let end = first + places;
    let parts = move || (first..end).step_by(at_once as usize).map(move |at| at..(at + at_once).min(end));
    let load_table = name_of(access, OrdersData::LOAD_TABLE);
    let sent = Arc::new(AtomicU64::new(0));
    let loaded = session.transact(&format!("load rows into {name}"), progress.halt, PIECE_PATIENCE, async |conn| {
        sent.store(0, Ordering::Relaxed);
        let mut loaded = 0;
        if as_file {
            let (rows_source, counted) = (source.clone(), Arc::clone(&sent));
            conn.set_infile_handler(async move {
                let parts: Vec<_> = parts().collect();
                let buffers = stream::iter(parts).map(move |units| {
                    let (bytes, rows) = file(&rows_source, table, units);
                    counted.fetch_add(rows, Ordering::Relaxed);
                    Ok(bytes.into())
                });
                Ok(buffers.boxed())
            });
            let statement = format!(
                "LOAD DATA LOCAL INFILE 'plimsoll' INTO TABLE {name} CHARACTER SET utf8mb4 FIELDS TERMINATED BY '\\t' \
                 LINES TERMINATED BY '\\n' ({columns})"
            );
            conn.query_drop(statement).await?;
            loaded += conn.affected_rows();
        } else {
            let into = format!("{name} ({columns})");
            for units in parts() {
                let (statement, rows) = insert(source, table, &into, units);
                sent.fetch_add(rows, Ordering::Relaxed);
                conn.query_drop(statement).await?;
                loaded += conn.affected_rows();
            }
        }
        // Rows that the server passes over, such as those whose key is taken, are no error of its.
        if loaded == sent.load(Ordering::Relaxed) {
            let mark = format!("INSERT INTO {load_table} VALUES ('{}', {first}, {places}, {loaded})", table.name());
            conn.query_drop(mark).await?;
            conn.query_drop("COMMIT").await?;
        } else {
            conn.query_drop("ROLLBACK").await?;
        }
        Ok::<_, Error>(loaded)
    })?;
    let wanted = sent.load(Ordering::Relaxed);
    if loaded == wanted {
        progress.done(source.bytes_of_units(table, places));
        return Ok(());
    }
    let what = format!("the server took {loaded} of {wanted} rows for {name}");
    Err(access.unfit(
        what,
        "another program has inserted rows. Create the data again: `plimsoll orders setup \
        --replace`",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::workload::orders::Sizes;

    fn written(form: Form, write: impl FnOnce(&mut Writer)) -> String {
        let mut writer = Writer::new(form, Vec::new());
        writer.begin_row();
        write(&mut writer);
        writer.end_row();
        String::from_utf8(writer.bytes).unwrap()
    }

    fn each_kind(writer: &mut Writer) {
        writer.whole(0);
        writer.whole(1_234_567_890_123);
        writer.money(5);
        writer.money(123_400);
        writer.null();
        writer.text(&["a", "b"]);
        writer.day(-1);
        writer.day(20_454);
        writer.instant(1_709_210_096_000_123);
    }

    #[test]
    fn values_are_written_as_the_server_reads_them() {
        assert_eq!(
            written(Form::File, each_kind),
            "0\t1234567890123\t0.05\t1234.00\t\\N\tab\t1969-12-31\t2026-01-01\t2024-02-29 12:34:56.000123\n"
        );
        assert_eq!(
            written(Form::Values, each_kind),
            "(0,1234567890123,0.05,1234.00,NULL,'ab','1969-12-31','2026-01-01','2024-02-29 12:34:56.000123')"
        );
    }

    #[test]
    fn no_value_has_a_character_that_means_something_else() {
        let source = Source::new(3, Sizes::of(0.001));
        for table in Table::ALL {
            let units = table.units(source.rows.sizes()).min(300);
            let (bytes, rows) = file(&source, table, 0..units);
            let text = String::from_utf8(bytes).unwrap();
            let fields = text.lines().map(|line| line.split('\t').count());
            assert_eq!(text.lines().count() as u64, rows);
            assert!(fields.into_iter().all(|count| count == table.columns().len()), "{table:?}");
            assert!(!text.replace("\\N", "").contains(['\\', '\'', '"', '\r']), "{table:?}");
            let (statement, count) = insert(&source, table, "t", 0..units);
            assert_eq!((statement.matches("),(").count() as u64 + 1, count), (rows, rows), "{table:?}");
        }
    }
}
