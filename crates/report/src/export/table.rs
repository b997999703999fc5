//! What a table is made of: columns with their meaning, cells, and what fills one from the other.

use std::io;

use analysis::Finding;
use model::record::Run;

/// What is in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8 text.
    Text,
    /// A whole number of 64 bits.
    Count,
    /// A floating-point number of 64 bits.
    Number,
    /// `true` or `false`.
    Flag,
    /// Microseconds since 1970, without a zone: UTC, or the clock on the wall where a run's column `clock` says so.
    Time,
}

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name, the same in all formats.
    pub name: &'static str,
    /// What is in it.
    pub kind: Kind,
    /// Unit of its numbers; empty for plain numbers and text.
    pub unit: &'static str,
    /// What it means.
    pub words: &'static str,
}

/// A value in a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Not known, or there is none.
    Unknown,
    /// Of a [`Kind::Text`].
    Text(String),
    /// Of a [`Kind::Count`].
    Count(i64),
    /// Of a [`Kind::Number`].
    Number(f64),
    /// Of a [`Kind::Flag`].
    Flag(bool),
    /// Of a [`Kind::Time`].
    Time(i64),
}

/// A column and what fills it from a row of `R`.
pub(crate) struct Field<R> {
    pub(crate) column: Column,
    pub(crate) of: fn(&R) -> Cell,
}

/// One run on its way into all tables.
#[derive(Debug, Clone, Copy)]
pub struct Exported<'a> {
    /// What it is called in the column `run` of every table.
    pub key: &'a str,
    /// The directory that it was read from.
    pub directory: &'a str,
    /// The run.
    pub run: &'a Run,
    /// What is to be said about it.
    pub findings: &'a [Finding],
}

/// Takes the rows of a run.
pub(crate) type Rows<'a> = dyn FnMut(&[Cell]) -> io::Result<()> + 'a;

/// One of the tables.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Its name, with which its files begin.
    pub name: &'static str,
    /// What a row of it is.
    pub words: &'static str,
    pub(crate) columns: fn() -> Vec<Column>,
    pub(crate) rows: fn(&Exported<'_>, &mut Rows<'_>) -> io::Result<()>,
}

impl Table {
    /// Its columns, in their order.
    pub fn columns(&self) -> Vec<Column> {
        (self.columns)()
    }

    /// Hands each row of a run to `out`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn rows(&self, exported: &Exported<'_>, out: &mut dyn FnMut(&[Cell]) -> io::Result<()>) -> io::Result<()> {
        (self.rows)(exported, out)
    }
}

/// Writes one file of a table.
pub trait Sink {
    /// Takes a row, which has a cell for each column.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn row(&mut self, cells: &[Cell]) -> io::Result<()>;

    /// What came so far are whole runs.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn end_of_run(&mut self) -> io::Result<()>;

    /// Writes what is left.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

pub(crate) const fn field<R>(
    name: &'static str,
    kind: Kind,
    unit: &'static str,
    words: &'static str,
    of: fn(&R) -> Cell,
) -> Field<R> {
    Field { column: Column { name, kind, unit, words }, of }
}

pub(crate) fn columns<R>(fields: &[Field<R>]) -> Vec<Column> {
    fields.iter().map(|field| field.column).collect()
}

/// Hands a row for each of `rows` to `out`.
pub(crate) fn fill<R>(fields: &[Field<R>], rows: impl IntoIterator<Item = R>, out: &mut Rows<'_>) -> io::Result<()> {
    let mut cells = Vec::with_capacity(fields.len());
    for row in rows {
        cells.clear();
        cells.extend(fields.iter().map(|field| (field.of)(&row)));
        out(&cells)?;
    }
    Ok(())
}

/// Text that is not empty.
pub(crate) fn text(text: &str) -> Cell {
    if text.is_empty() { Cell::Unknown } else { Cell::Text(text.to_owned()) }
}

pub(crate) fn words(text: Option<&String>) -> Cell {
    text.map_or(Cell::Unknown, |it| self::text(it))
}

/// A count; one that 63 bits do not hold is none.
pub(crate) fn count(count: impl Into<Option<u64>>) -> Cell {
    count.into().and_then(|count| i64::try_from(count).ok()).map_or(Cell::Unknown, Cell::Count)
}

pub(crate) fn small(count: Option<u32>) -> Cell {
    self::count(count.map(u64::from))
}

pub(crate) fn signed(count: Option<i64>) -> Cell {
    count.map_or(Cell::Unknown, Cell::Count)
}

/// A number; what is none, such as a rate over no time, is not known.
pub(crate) fn number(number: impl Into<Option<f64>>) -> Cell {
    number.into().filter(|number| number.is_finite()).map_or(Cell::Unknown, Cell::Number)
}

/// `ns` after `at`.
pub(crate) fn time(at: model::record::Timestamp, ns: u64) -> Cell {
    let micros = i64::try_from(ns / 1_000).ok().and_then(|us| at.0.as_microsecond().checked_add(us));
    micros.map_or(Cell::Unknown, Cell::Time)
}

/// A value that is written as one word of the document.
pub(crate) fn word(value: &impl serde::Serialize) -> Cell {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => text(&word),
        Ok(serde_json::Value::Object(object)) => object.keys().next().map_or(Cell::Unknown, |word| text(word)),
        _ => Cell::Unknown,
    }
}

/// Names and values as a JSON object.
pub(crate) fn json(map: &std::collections::BTreeMap<String, String>) -> Cell {
    serde_json::to_string(map).map_or(Cell::Unknown, Cell::Text)
}

/// In which form tables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Apache Parquet, compressed with Zstandard.
    Parquet,
    /// Comma-separated values as RFC 4180 has them, with a header.
    Csv,
}

impl Form {
    /// How names of its files end.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
        }
    }
}
