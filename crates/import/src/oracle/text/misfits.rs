//! Lines of a table that are no row of it.

use crate::oracle::table::{Row, Table};

/// What a cell holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Blank,
    Number,
    /// A number with a unit of time behind it.
    Time,
    Text,
}

/// The lines of a table whose cells are not of the kind of their columns: text or a time where the others have numbers, or no number at
/// all.
pub(super) fn lines(table: &Table) -> Vec<u64> {
    let columns = table.columns.len();
    // How many cells of each column hold a number, a time, and text.
    let mut counts = vec![(0_usize, 0_usize, 0_usize); columns];
    for row in &table.rows {
        for (count, cell) in counts.iter_mut().zip(&row.cells) {
            match of(cell) {
                Cell::Blank => {}
                Cell::Number => count.0 += 1,
                Cell::Time => count.1 += 1,
                Cell::Text => count.2 += 1,
            }
        }
    }
    // The first one has the names of the rows.
    let numeric: Vec<(usize, bool)> = counts
        .iter()
        .enumerate()
        .skip(1)
        .filter(|(_, (numbers, times, others))| numbers + times > 0 && numbers + times > *others)
        .map(|(column, (numbers, times, _))| (column, *times == 1 && *numbers > 1))
        .collect();
    let is_misfit = |row: &&Row| {
        let is_other = |(column, is_alone): &(usize, bool)| match of(row.cell(*column)) {
            Cell::Blank | Cell::Number => false,
            Cell::Time => *is_alone,
            Cell::Text => true,
        };
        let has_number = row.cells.iter().skip(1).any(|cell| matches!(of(cell), Cell::Number | Cell::Time));
        numeric.iter().any(is_other) || !has_number
    };
    if numeric.is_empty() { Vec::new() } else { table.rows.iter().filter(is_misfit).map(|row| row.line).collect() }
}

fn of(cell: &str) -> Cell {
    let cell = cell.trim();
    let digits = cell.trim_start_matches(['-', '+', '<', '>', '=', '.', '~', ' ']);
    if cell.is_empty() || cell == "N/A" {
        return Cell::Blank;
    }
    if !digits.starts_with(|char: char| char.is_ascii_digit()) {
        // What had no room is a number.
        return if cell.starts_with('#') { Cell::Number } else { Cell::Text };
    }
    let is_time = ["ms", "us", "ns"].iter().any(|unit| cell.ends_with(unit));
    if is_time { Cell::Time } else { Cell::Number }
}
