//! Answers as bytes: descriptions of columns, rows, binds that go out, counts and errors.

use super::Repeats;
use super::answers::{Answer, Call, Column, Kind, Way};
use super::calls::Cursor;
use super::session::Session;
use super::values::{self, Value};
use super::wire::Writer;

const ERROR: u8 = 4;
const ROW_HEADER: u8 = 6;
const ROW: u8 = 7;
const PARAMETERS: u8 = 8;
const STATUS: u8 = 9;
const BIND_WAYS: u8 = 11;
const DESCRIPTION: u8 = 16;
const COLUMNS_SENT: u8 = 21;

const CALL_ENDED: u64 = 1;
const IN_TRANSACTION: u64 = 2;
const UTF8: u64 = 873;
const NO_MORE_ROWS: u32 = 1403;

/// An error with Oracle's number.
#[derive(Clone, Debug)]
pub struct Error {
    code: u32,
    text: String,
}

impl Error {
    /// `message` is without the number, which Oracle puts in front of it.
    pub fn new(code: u32, message: &str) -> Error {
        Error { code, text: format!("ORA-{code:05}: {message}\n") }
    }
}

impl Session<'_> {
    /// The message that says `answer`, and what the session remembers of it.
    pub fn reply(&mut self, call: &Call, number: u16, answer: Answer) -> Vec<u8> {
        if let Answer::Error { code, message } = answer {
            return self.error(number, 0, Some(&Error::new(code, &message)));
        }
        match call.kind {
            Kind::Fetch => self.more_rows(call, number),
            Kind::Commit | Kind::Rollback => {
                self.is_in_transaction = false;
                self.status()
            }
            Kind::Ping | Kind::Logoff => self.status(),
            Kind::Parse => match answer {
                Answer::Rows { columns, .. } | Answer::RowsThenError { columns, .. } => {
                    let mut writer = self.description(&columns);
                    parameters(&mut writer);
                    writer.raw(&self.error(number, 0, None));
                    writer.bytes
                }
                _ => self.error(number, 0, None),
            },
            Kind::Execute | Kind::Reexecute => self.executed(call, number, answer),
        }
    }

    fn executed(&mut self, call: &Call, number: u16, answer: Answer) -> Vec<u8> {
        let (columns, rows, error) = match answer {
            Answer::Rows { columns, rows } => (columns, rows, None),
            Answer::RowsThenError { columns, rows, code, message } => (columns, rows, Some(Error::new(code, &message))),
            Answer::Block { ways, out } => return self.block(call, number, &ways, &out),
            Answer::Changed(count) => {
                self.is_in_transaction = true;
                let mut writer = Writer::default();
                parameters(&mut writer);
                writer.raw(&self.error(number, count, None));
                return writer.bytes;
            }
            _ => {
                let mut writer = Writer::default();
                parameters(&mut writer);
                writer.raw(&self.error(number, 0, None));
                return writer.bytes;
            }
        };
        let mut writer = match call.kind {
            // The client remembers the columns of what it executes again.
            Kind::Reexecute => Writer::default(),
            _ => self.description(&columns),
        };
        let repeats = self.shared.options.repeats;
        let cursor = self.cursors.get_mut(number).expect("the cursor was looked up for the call");
        (cursor.columns, cursor.rows, cursor.fetched, cursor.error) = (columns, rows.into(), 0, error);
        cursor.last = None;
        let end = next_rows(cursor, call.rows_wanted, repeats, &mut writer);
        let fetched = cursor.fetched;
        parameters(&mut writer);
        writer.raw(&self.error(number, fetched, end.as_ref()));
        writer.bytes
    }

    fn more_rows(&mut self, call: &Call, number: u16) -> Vec<u8> {
        let mut writer = Writer::default();
        let repeats = self.shared.options.repeats;
        let cursor = self.cursors.get_mut(number).expect("the cursor was looked up for the call");
        let end = next_rows(cursor, call.rows_wanted, repeats, &mut writer);
        let fetched = cursor.fetched;
        writer.raw(&self.error(number, fetched, end.as_ref()));
        writer.bytes
    }

    fn block(&mut self, call: &Call, number: u16, ways: &[Way], out: &[Vec<Value>]) -> Vec<u8> {
        let cursor = self.cursors.get_mut(number).expect("the cursor was looked up for the call");
        assert_eq!(ways.len(), cursor.binds.len(), "a way for each bind of {}", call.sql);
        for (bind, way) in cursor.binds.iter_mut().zip(ways) {
            bind.way = *way;
        }
        let going_out: Vec<u8> = cursor.binds.iter().filter(|bind| bind.way.is_out()).map(|bind| bind.kind).collect();
        let mut writer = Writer::default();
        if !ways.is_empty() {
            writer.byte(BIND_WAYS).byte(0).number(ways.len() as u64).number(0).number(call.binds.len() as u64);
            writer.number(0).number(0).number(0);
            for way in ways {
                writer.byte(match way {
                    Way::In => 0x20,
                    Way::Out => 0x10,
                    Way::InOut => 0x30,
                });
            }
        }
        if !going_out.is_empty() {
            assert_eq!(out.len(), call.binds.len(), "values for each row of binds of {}", call.sql);
            for values in out {
                assert_eq!(values.len(), going_out.len(), "a value for each bind of {} that goes out", call.sql);
                writer.byte(ROW);
                for (value, kind) in values.iter().zip(&going_out) {
                    value.encode(*kind, &mut writer);
                    // No value was cut off.
                    writer.number(0);
                }
            }
        }
        parameters(&mut writer);
        writer.raw(&self.error(number, call.binds.len() as u64, None));
        writer.bytes
    }

    fn status(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.byte(STATUS).number(self.call_status()).number(0);
        writer.bytes
    }

    fn call_status(&self) -> u64 {
        if self.is_in_transaction { CALL_ENDED | IN_TRANSACTION } else { CALL_ENDED }
    }

    /// The end of every answer to a statement, which says "error" even if there is none.
    pub fn error(&self, cursor: u16, rows: u64, error: Option<&Error>) -> Vec<u8> {
        let code = error.map_or(0, |error| error.code.into());
        let mut writer = Writer::default();
        writer.byte(ERROR).number(self.call_status()).number(1).number(rows & 0xffff_ffff);
        // The short number of the error has two bytes.
        writer
            .number(if code > 0xffff { 0 } else { code })
            .number(0)
            .number(0)
            .number(cursor.into())
            .number(0)
            .zeros(6);
        // A row's address, the operating system's error, the statement, and no errors of a batch.
        writer.number(0).number(0).byte(0).number(0).number(0).number(0).zeros(2).number(0).number(0);
        writer.number(0).number(0).number(0).number(0).number(code).number(rows);
        if self.field_version() >= 14 {
            writer.number(0).number(0);
        }
        if let Some(error) = error {
            writer.bytes(error.text.as_bytes());
        }
        writer.bytes
    }

    fn description(&self, columns: &[Column]) -> Writer {
        let version = self.field_version();
        let mut writer = Writer::default();
        writer.byte(DESCRIPTION).bytes(&[0; 23]).number(100).number(columns.len() as u64).byte(1);
        for (column, position) in columns.iter().zip(1_u64..) {
            let is_text = matches!(column.kind, values::VARCHAR2 | values::CHAR);
            writer.byte(column.kind).zeros(3).number(column.bytes.into()).number(0).number(0).number(0).number(0);
            writer.number(if is_text { UTF8 } else { 0 }).byte(is_text.into()).number(column.bytes.into()).number(0);
            // It may be NULL.
            writer.byte(1).byte(column.name.len() as u8).long_bytes(column.name.as_bytes()).number(0).number(0);
            writer.number(position).number(0);
            if version >= 17 {
                writer.number(0).number(0);
            }
            if version >= 20 {
                writer.number(0);
            }
            if version >= 24 {
                writer.number(0).zeros(2);
            }
        }
        writer.long_bytes(&[0; 7]).number(0).number(0).number(0).number(0).number(0);
        writer
    }
}

/// Six numbers, the first of them a system change number, and nothing else.
fn parameters(writer: &mut Writer) {
    writer.byte(PARAMETERS).number(6).number(0x23_e6fe).number(0).number(1).number(0).number(0).number(0);
    writer.number(0).number(0).number(0);
}

/// Writes up to `wanted` of the rows that are left. Gives the end of the rows, or the error that comes in its place.
fn next_rows(cursor: &mut Cursor, wanted: u32, repeats: Repeats, writer: &mut Writer) -> Option<Error> {
    if wanted == 0 {
        return None;
    }
    let count = cursor.rows.len().min(wanted as usize);
    if count > 0 {
        writer.byte(ROW_HEADER).byte(0x22).number(1).number(0).number(wanted.into()).number(0).number(0).number(0);
    }
    for row in cursor.rows.drain(..count) {
        assert_eq!(row.len(), cursor.columns.len(), "a value for each column of {}", cursor.sql);
        let is_repeated = |at: usize| cursor.last.as_ref().is_some_and(|last| last[at] == row[at]);
        let sent: Vec<bool> = (0..row.len()).map(|at| repeats == Repeats::Sent || !is_repeated(at)).collect();
        let is_marked = match repeats {
            Repeats::Sent => false,
            Repeats::LeftOut => cursor.last.is_some(),
            Repeats::LeftOutWhereAny => sent.contains(&false),
        };
        if is_marked {
            writer.byte(COLUMNS_SENT).number(sent.iter().filter(|sent| **sent).count() as u64);
            for eight in sent.chunks(8) {
                writer.byte(eight.iter().rev().fold(0, |bits, sent| bits << 1 | u8::from(*sent)));
            }
        }
        writer.byte(ROW);
        for ((value, column), _) in row.iter().zip(&cursor.columns).zip(&sent).filter(|(_, sent)| **sent) {
            value.encode(column.kind, writer);
        }
        cursor.last = Some(row);
    }
    cursor.fetched += count as u64;
    if count == wanted as usize {
        return None;
    }
    Some(cursor.error.take().unwrap_or_else(|| Error::new(NO_MORE_ROWS, "no data found")))
}
