//! A table over many runs as a page of its own.

use std::io::{self, Write};

use maud::{Markup, PreEscaped, html};

use super::{Head, Kept, page};
use crate::sheet::{Cell, Sheet};

const STYLE: &str = include_str!("table.css");

/// What stands around a table.
pub(crate) struct Around<'a> {
    /// What the table is of.
    pub caption: &'a str,
    /// What its columns mean, with their units.
    pub legend: &'a str,
}

/// Writes a sheet as one page that loads nothing.
pub(crate) fn write(out: &mut dyn Write, sheet: &Sheet, around: &Around<'_>) -> io::Result<()> {
    let body = part(sheet, around);
    out.write_all(page(&Head { title: around.caption, kept: &Kept::File }, &body).as_bytes())
}

/// The same as a part of a page.
pub(super) fn part(sheet: &Sheet, around: &Around<'_>) -> Markup {
    html! {
        style { (PreEscaped(STYLE)) }
        div.sheet role="region" aria-label="Table, may be scrolled" tabindex="0" {
            table {
                caption { (around.caption) }
                thead { (header(sheet)) }
                tbody { @for row in &sheet.rows { tr { (cells(sheet, row)) } } }
            }
        }
        p.legend { (around.legend) }
    }
}

/// One row of headings, or two where the last columns are shares of one thing.
fn header(sheet: &Sheet) -> Markup {
    let (single, shares) = sheet.columns.split_at(sheet.shares_from.unwrap_or(sheet.columns.len()));
    let rows = (!shares.is_empty()).then_some(2);
    html! {
        tr {
            @for (column, name) in single.iter().enumerate() {
                th scope="col" rowspan=[rows] class=[is_of_numbers(sheet, column).then_some("number")] { (name) }
            }
            @if !shares.is_empty() { th scope="colgroup" colspan=(shares.len()) { "Share of waits, %" } }
        }
        @if !shares.is_empty() {
            tr { @for name in shares { th.number scope="col" { (name) } } }
        }
    }
}

/// A column without any text is one of numbers, also where none is known.
fn is_of_numbers(sheet: &Sheet, column: usize) -> bool {
    !sheet.rows.iter().any(|row| matches!(row[column], Cell::Text(_)))
}

/// The first cell names its row.
fn cells(sheet: &Sheet, row: &[Cell]) -> Markup {
    html! {
        @for (column, cell) in row.iter().enumerate() {
            @let class = is_of_numbers(sheet, column).then_some("number");
            @let share = share(sheet, column, cell);
            @if column == 0 {
                th scope="row" class=[class] { (value(cell)) }
            } @else if let Some(share) = share {
                td.number.share style=(format!("--share:{share:.2}")) { (value(cell)) }
            } @else {
                td class=[class] { (value(cell)) }
            }
        }
    }
}

/// 0 to 1, of a cell that has something to shade.
fn share(sheet: &Sheet, column: usize, cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Number { value, .. } if column >= sheet.shares_from? => Some(value / 100.0).filter(|share| *share > 0.0),
        _ => None,
    }
}

/// The dash means that a value is not known, so that none at all is a zero.
fn value(cell: &Cell) -> Markup {
    html! {
        @match cell {
            Cell::Absent | Cell::Unknown => span.unknown role="img" aria-label="not known" { "\u{2013}" },
            Cell::Number { value, .. } if *value == 0.0 => span.none { "0" },
            Cell::Number { .. } | Cell::Text(_) => (cell.text("")),
        }
    }
}
