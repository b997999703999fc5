//! Rows and columns of values that are written for people or for programs.

use std::io::{self, Write};

use serde_json::{Map, Value};

use super::comma::{line, quoted};
use super::words::{NONE, UNKNOWN, plain};

/// One value.
pub(super) enum Cell {
    Text(String),
    /// A number, and how a table for people shows it.
    Number {
        value: f64,
        shown: String,
    },
    Absent,
    /// Not known where [`Self::Absent`] would read as none.
    Unknown,
}

impl Cell {
    pub(super) fn number(value: Option<f64>, decimals: usize) -> Self {
        value.map_or(Self::Absent, |value| Self::Number { value, shown: format!("{value:.decimals$}") })
    }

    pub(super) fn shown(value: Option<f64>, show: impl Fn(f64) -> String) -> Self {
        value.map_or(Self::Absent, |value| Self::Number { value, shown: show(value) })
    }

    pub(super) fn text(&self, absent: &str) -> String {
        match self {
            Self::Text(text) => plain(text),
            Self::Number { shown, .. } => shown.clone(),
            Self::Absent => absent.to_owned(),
            Self::Unknown => UNKNOWN.to_owned(),
        }
    }
}

pub(super) struct Sheet {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
    /// The first of the columns, from there to the last, that are shares of waits in percent; absent where none are.
    pub shares_from: Option<usize>,
}

impl Sheet {
    /// `A|B|C` without padding, as SLOB's own scripts print it; absent values are blank.
    pub(super) fn write_piped(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.columns.iter().map(|name| plain(name)).collect::<Vec<_>>().join("|"))?;
        for row in &self.rows {
            let cells: Vec<_> = row.iter().map(|cell| cell.text("").replace('|', "/")).collect();
            writeln!(out, "{}", cells.join("|"))?;
        }
        Ok(())
    }

    /// A Markdown table with aligned columns; absent values are `-`.
    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let escape = |text: &str| text.replace('|', "\\|");
        let header: Vec<_> = self.columns.iter().map(|name| escape(&plain(name))).collect();
        let body: Vec<Vec<_>> =
            self.rows.iter().map(|row| row.iter().map(|cell| escape(&cell.text(NONE))).collect()).collect();
        let widths: Vec<usize> = (0..header.len())
            .map(|column| {
                let cells = body.iter().map(|row| &row[column]).chain([&header[column]]);
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
            })
            .collect();
        let is_text = |column: usize| self.rows.iter().any(|row| matches!(row[column], Cell::Text(_)));
        let line = |cells: &[String]| -> String {
            let padded = cells.iter().enumerate().map(|(column, cell)| {
                let width = widths[column];
                if is_text(column) { format!(" {cell:<width$} |") } else { format!(" {cell:>width$} |") }
            });
            format!("|{}", padded.collect::<String>())
        };
        writeln!(out, "{}", line(&header))?;
        let rule: String = (0..header.len())
            .map(|column| {
                let dashes = "-".repeat(widths[column]);
                if is_text(column) { format!(" {dashes} |") } else { format!(" {dashes}:|") }
            })
            .collect();
        writeln!(out, "|{rule}")?;
        body.iter().try_for_each(|row| writeln!(out, "{}", line(row)))
    }

    /// Comma-separated values with unrounded numbers; absent values are empty.
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        line(out, self.columns.iter().map(|name| quoted(name)))?;
        self.rows.iter().try_for_each(|row| {
            let cells = row.iter().map(|cell| match cell {
                Cell::Text(text) => quoted(text),
                Cell::Number { value, .. } => value.to_string(),
                Cell::Absent | Cell::Unknown => String::new(),
            });
            line(out, cells)
        })
    }

    /// A list of objects with unrounded numbers; absent values are `null`.
    pub(super) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let pairs = self.columns.iter().zip(row).map(|(name, cell)| {
                    let value = match cell {
                        Cell::Text(text) => Value::from(text.as_str()),
                        Cell::Number { value, .. } => json_number(*value),
                        Cell::Absent | Cell::Unknown => Value::Null,
                    };
                    (name.clone(), value)
                });
                Value::Object(pairs.collect::<Map<_, _>>())
            })
            .collect();
        serde_json::to_writer_pretty(&mut *out, &rows)?;
        writeln!(out)
    }
}

/// Counts stay whole numbers. Up to 2^53 every whole number has its own floating-point value.
fn json_number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < (1_u64 << 53) as f64 {
        Value::from(value as i64)
    } else {
        Value::from(value)
    }
}
