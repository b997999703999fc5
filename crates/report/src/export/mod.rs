//! Runs as tidy tables for the engines that people query with: one row for one thing, columns with units in their names, and the
//! same columns in every file of a table.
//!
//! What a column is stands once, beside what fills it: the files, `docs/export.md` and the reader of a file all have it from there.
//! What is not known is `NULL` in Parquet and empty in CSV.

mod csv;
mod details;
mod durations;
mod existing;
mod parquet;
mod runs;
mod seconds;
mod steps;
mod table;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

pub use existing::{Known, is_ours, known};
pub use table::{Cell, Column, Exported, Form, Kind, Sink, Table};

/// All tables. `runs` comes last, since a file of it says that the others of its number are complete.
pub const TABLES: [Table; 8] = [
    steps::STEPS,
    seconds::INTERVALS,
    details::WAITS,
    details::BUCKETS,
    details::COUNTERS,
    runs::FINDINGS,
    runs::PARTS,
    runs::RUNS,
];

/// Begins a file of `table` on `out`.
///
/// # Errors
/// If `out` fails.
pub fn begin<W: Write + Send + 'static>(table: &Table, form: Form, out: W) -> io::Result<Box<dyn Sink>> {
    Ok(match form {
        Form::Parquet => Box::new(parquet::File::begin(table, out)?),
        Form::Csv => Box::new(csv::File::begin(table, out)?),
    })
}
