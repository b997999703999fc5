//! The histogram tables of a report, and what their headings say.

use super::Row;
use super::cells::{cell, total};
use super::headings::{Range, counted_range, is_bucket, is_micro, ranges};
use crate::Notes;
use crate::oracle::header::last_part;
use crate::oracle::table::{self, Report, Table, plain};

/// Buckets of one histogram table.
pub(in super::super) struct Buckets<'a> {
    pub ranges: Vec<Range>,
    /// Whether it is the table of the whole range.
    pub is_whole: bool,
    /// The durations that its number of waits is of, where these are a part of the whole range.
    pub counted: Option<Range>,
    pub table: &'a Table,
}

/// The histogram tables of a report, those of the whole range first.
pub(in super::super) fn bucket_tables<'a>(report: &'a Report, notes: &mut Notes) -> Vec<Buckets<'a>> {
    let tables: Vec<&Table> =
        report.tables.iter().filter(|table| plain(&table.title).starts_with("waiteventhistogram")).collect();
    let labels = |table: &'a Table| -> Vec<&'a str> {
        table.columns.iter().map(|name| last_part(name)).filter(|name| is_bucket(name)).collect()
    };
    let micro = tables.iter().flat_map(|table| labels(table)).any(is_micro);
    let mut all = Vec::new();
    for table in tables {
        match ranges(&labels(table), micro) {
            Some(ranges) => {
                let title = plain(&table.title);
                // `Waits 64ms to 2s` counts a part of all waits.
                let of_part = table.columns.iter().map(|name| last_part(name)).find(|name| {
                    let name = plain(name);
                    name.starts_with("waits") && name.contains(|c: char| c.is_ascii_digit())
                });
                let is_whole = !title.contains("detail") && !title.contains("upto") && of_part.is_none();
                let counted = of_part.and_then(|heading| counted_range(heading, &ranges, micro));
                all.push(Buckets { ranges, is_whole, counted, table });
            }
            None if table.rows.is_empty() => {}
            None => {
                let columns = table.columns.join("`, `");
                notes.not_understood(
                    table.line,
                    format!("`{}` with the columns `{columns}`; rising durations were expected", table.title),
                );
            }
        }
    }
    all.sort_by_key(|buckets| !buckets.is_whole);
    all
}

impl Buckets<'_> {
    /// What its row of an event says; nothing if that is not understood.
    pub(in super::super) fn row(&self, row: &table::Row) -> Option<Row> {
        let columns = || self.table.columns.iter().enumerate().map(|(at, name)| (at, last_part(name)));
        let cells = columns().filter(|(_, name)| is_bucket(name)).map(|(at, _)| cell(row.cell(at)));
        let is_total = |name: &str| {
            let name = plain(name);
            name == "totalwaits" || name.starts_with("waits")
        };
        let total = columns().find(|(_, name)| is_total(name)).and_then(|(at, _)| total(row.cell(at)));
        Some(Row { total, cells: cells.collect::<Option<_>>()? })
    }
}
