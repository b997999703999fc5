//! A table in a terminal that folds its columns rather than its lines when there is too little room.

use std::borrow::Borrow;
use std::io::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::words::{UNKNOWN, plain};

/// Spaces between two columns.
const GAP: usize = 2;

/// Rows under a header. The first `keys` columns name the row; they are left-aligned and repeated in each fold.
pub(super) struct Grid {
    keys: usize,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// A heading, and what stands below it of a row.
pub(super) type Column<R> = (&'static str, fn(&R) -> String);

impl Grid {
    /// A row for each of `rows`, named by what stands below `keys`.
    pub(super) fn of<R, B: Borrow<R>, const KEYS: usize>(
        keys: [&str; KEYS],
        columns: &[Column<R>],
        rows: impl IntoIterator<Item = ([String; KEYS], B)>,
    ) -> Self {
        let mut grid = Self::new(KEYS, keys.into_iter().chain(columns.iter().map(|(name, _)| *name)));
        for (names, row) in rows {
            let cells = columns.iter().map(|(_, cell)| cell(row.borrow()));
            grid.push(names.into_iter().chain(cells).collect());
        }
        grid
    }

    pub(super) fn new<T: Into<String>>(keys: usize, header: impl IntoIterator<Item = T>) -> Self {
        let header = header.into_iter().map(|name| plain(&name.into())).collect();
        Self { keys, header, rows: Vec::new() }
    }

    pub(super) fn push(&mut self, row: Vec<String>) {
        debug_assert_eq!(row.len(), self.header.len());
        self.rows.push(row.iter().map(|cell| plain(cell)).collect());
    }

    /// How many of the first columns name the row.
    pub(super) fn keys(&self) -> usize {
        self.keys
    }

    pub(super) fn header(&self) -> &[String] {
        &self.header
    }

    pub(super) fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The same without columns in which no row knows a value; without rows if none is left.
    pub(super) fn with_known_columns(&self) -> Self {
        let is_known = |column: usize| column < self.keys || self.rows.iter().any(|row| row[column] != UNKNOWN);
        let kept: Vec<usize> = (0..self.header.len()).filter(|column| is_known(*column)).collect();
        let grid = self.with_columns(&kept);
        if kept.len() > self.keys || self.header.len() == self.keys { grid } else { Self { rows: Vec::new(), ..grid } }
    }

    /// The same without column `name` if it says in every row what column `other` says.
    pub(super) fn without_same(self, name: &str, other: &str) -> Self {
        let place = |name: &str| self.header.iter().position(|heading| heading == name);
        let (Some(same), Some(other)) = (place(name), place(other)) else { return self };
        if self.rows.iter().any(|row| row[same] != row[other]) {
            return self;
        }
        let kept: Vec<usize> = (0..self.header.len()).filter(|column| *column != same).collect();
        self.with_columns(&kept)
    }

    fn with_columns(&self, kept: &[usize]) -> Self {
        let pick = |row: &Vec<String>| kept.iter().map(|column| row[*column].clone()).collect();
        Self { keys: self.keys, header: pick(&self.header), rows: self.rows.iter().map(pick).collect() }
    }

    /// Writes the table in as many folds as `width` needs; a fold always has at least one column beside the keys.
    pub(super) fn write(&self, out: &mut dyn Write, width: usize) -> io::Result<()> {
        let every: Vec<usize> = (0..self.header.len()).collect();
        let widths: Vec<usize> =
            self.render(&every).column_max_content_widths().into_iter().map(|w| usize::from(w) + GAP).collect();
        let keys_width: usize = widths[..self.keys].iter().sum();
        let mut folds: Vec<Vec<usize>> = vec![(0..self.keys).collect()];
        let mut used = keys_width;
        for (column, column_width) in widths.iter().enumerate().skip(self.keys) {
            let fold = folds.last_mut().expect("it starts with one fold and only grows");
            if used + column_width > width + GAP && fold.len() > self.keys {
                used = keys_width;
                folds.push((0..self.keys).chain([column]).collect());
            } else {
                fold.push(column);
            }
            used += column_width;
        }
        for (index, fold) in folds.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            writeln!(out, "{}", self.render(fold).trim_fmt())?;
        }
        Ok(())
    }

    fn render(&self, columns: &[usize]) -> Table {
        let pick = |row: &[String]| columns.iter().map(|column| row[*column].clone()).collect::<Vec<_>>();
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled).force_no_tty();
        table.set_header(pick(&self.header));
        for row in &self.rows {
            table.add_row(pick(row));
        }
        for (position, column) in table.column_iter_mut().enumerate() {
            let right = if columns[position] < self.keys { CellAlignment::Left } else { CellAlignment::Right };
            column.set_cell_alignment(right);
            column.set_padding((0, GAP as u16));
        }
        table
    }
}
