//! Tables as comma-separated values.

use std::io::{self, Write};

use super::table::{Cell, Sink, Table};
use crate::csv::{field, line};

pub(super) struct File<W>(W);

impl<W: Write> File<W> {
    pub(super) fn begin(table: &Table, mut out: W) -> io::Result<Self> {
        line(&mut out, table.columns().iter().map(|column| column.name))?;
        Ok(Self(out))
    }
}

impl<W: Write> Sink for File<W> {
    fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        line(&mut self.0, cells.iter().map(written))
    }

    fn end_of_run(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}

fn written(cell: &Cell) -> String {
    match cell {
        Cell::Unknown => String::new(),
        Cell::Text(text) => field(text),
        Cell::Count(count) => count.to_string(),
        Cell::Number(number) => number.to_string(),
        Cell::Flag(flag) => flag.to_string(),
        // What programs take for a time unasked.
        Cell::Time(us) => jiff::Timestamp::from_microsecond(*us)
            .map_or_else(|_| String::new(), |at| at.strftime("%Y-%m-%d %H:%M:%S%.6f").to_string()),
    }
}
