//! Rows that are loaded, and about how large they are.

use super::descriptor::OrdersData;
use model::workload::orders::rows::{Fields, Rows};
use model::workload::orders::{Sizes, Table};

/// Units of a table that are looked at.
const SAMPLE_UNITS: u64 = 400;

/// Rows of a data set, and about how large those of each table are.
#[derive(Debug, Clone)]
pub struct Source {
    /// The rows.
    pub rows: Rows,
    measured: [Measured; Table::ALL.len()],
}

/// How large the rows of a table are, in the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measured {
    /// Rows of a unit.
    pub rows: f64,
    /// Bytes of the values of a row: 4 or 8 of a number, and those of a text.
    pub(crate) row_bytes: f64,
}

/// Adds up bytes of values.
#[derive(Default)]
struct Bytes(u64);

impl Fields for Bytes {
    fn begin_row(&mut self) {}
    fn null(&mut self) {}
    fn whole(&mut self, _: i64) {
        self.0 += 6;
    }
    fn money(&mut self, _: i64) {
        self.0 += 8;
    }
    fn text(&mut self, parts: &[&str]) {
        self.0 += 1 + parts.iter().map(|part| part.len() as u64).sum::<u64>();
    }
    fn day(&mut self, _: i32) {
        self.0 += 4;
    }
    fn instant(&mut self, _: i64) {
        self.0 += 8;
    }
    fn end_row(&mut self) {}
}

impl Source {
    /// The rows of this seed, in tables of these sizes.
    pub fn new(seed: u64, sizes: Sizes) -> Self {
        let rows = Rows::new(seed, sizes);
        let measured = Table::ALL.map(|table| {
            let units = table.units(&sizes).min(SAMPLE_UNITS);
            let mut bytes = Bytes::default();
            let count = rows.each(table, 0..units, &mut bytes).max(1);
            Measured { rows: count as f64 / units.max(1) as f64, row_bytes: bytes.0 as f64 / count as f64 }
        });
        Self { rows, measured }
    }

    /// The rows of a data set.
    pub(crate) fn of(data: &OrdersData) -> Self {
        Self::new(data.seed, data.sizes)
    }

    /// How large rows of a table are.
    pub(crate) fn measured(&self, table: Table) -> Measured {
        self.measured[table as usize]
    }

    /// About how many rows a table has.
    pub(crate) fn rows_of(&self, table: Table) -> f64 {
        table.units(self.rows.sizes()) as f64 * self.measured(table).rows
    }

    /// About how many bytes the values of so many units have.
    pub fn bytes_of_units(&self, table: Table, units: u64) -> u64 {
        let Measured { rows, row_bytes } = self.measured(table);
        (units as f64 * rows * row_bytes) as u64
    }

    /// About how many bytes the values of a table have.
    pub(crate) fn bytes_of(&self, table: Table) -> u64 {
        self.bytes_of_units(table, table.units(self.rows.sizes()))
    }

    /// The same of all tables.
    pub(crate) fn bytes(&self) -> u64 {
        Table::ALL.into_iter().map(|table| self.bytes_of(table)).sum()
    }

    /// Bytes of the values of a row of any table, in the mean.
    pub(crate) fn mean_row_bytes(&self) -> f64 {
        let rows: f64 = Table::ALL.into_iter().map(|table| self.rows_of(table)).sum();
        self.bytes() as f64 / rows.max(1.0)
    }
}
