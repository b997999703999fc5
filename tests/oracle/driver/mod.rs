//! What the driver does with a server: everything that the target for Oracle rests on.

mod blocks;
mod connecting;
mod ends;
mod rows;
mod statements;

use oracledb::{Config, Connection, Error, ErrorKind};

use crate::responder::{Answer, Call, Column, Generation, Options, Responder, Value};

/// Hashes passwords once, since these tests measure nothing and log on often.
fn options(generation: Generation) -> Options {
    Options { hashings: 1, ..Options::of(generation) }
}

/// A responder that knows no statement and refuses none.
fn quiet(generation: Generation) -> Responder {
    Responder::start(options(generation), |_: &Call| Answer::Ok)
}

fn config(responder: &Responder) -> Config {
    with_descriptor(&responder.descriptor("orcl"))
}

fn with_descriptor(descriptor: &str) -> Config {
    Config::default().set_credentials("SLOB", "secret").set_connect_string(descriptor).unwrap()
}

fn connect(responder: &Responder) -> Connection {
    oracledb::connect(config(responder)).unwrap()
}

/// Oracle's number of an error, or zero for an error of the driver itself.
fn code(error: &Error) -> usize {
    if let ErrorKind::DbError(error) = error.kind() { error.code() } else { 0 }
}

/// `count` rows of a number and a text.
fn numbered(count: i64) -> Answer {
    let rows = (0..count).map(|row| [row.into(), format!("row {row}").into()]);
    Answer::rows([Column::number("N"), Column::text("T")], rows.collect())
}

/// The number in the first column of each row.
fn first_column(cursor: oracledb::Cursor) -> Vec<i64> {
    cursor.map(|row| row.unwrap().get(0).unwrap()).collect()
}

fn number(digits: &str) -> Value {
    Value::Number(digits.to_owned())
}
