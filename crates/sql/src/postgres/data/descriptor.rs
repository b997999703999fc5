//! What only PostgreSQL makes of a data set.

use crate::COLUMNS;
use crate::postgres::sql::Sql;

pub(super) use crate::data::{DataSet, TableId, TableKind};

#[cfg(test)]
pub(super) use crate::data::sample;

/// A tuple's header and its key, and a length for each of its columns.
const ROW_OVERHEAD_BYTES: u32 = 32 + 4 * COLUMNS;
/// What the write-ahead log needs for a row besides the row: its place, and its share of the record.
const REDO_OVERHEAD_BYTES: u64 = 90;
/// An entry of a B-tree on `bigint` and its line pointer.
const INDEX_ENTRY_BYTES: u64 = 20;

impl DataSet {
    /// About what the indexes take: leaves are filled to nine tenths when an index is built.
    pub fn estimated_index_bytes(&self) -> u64 {
        let block = u64::from(self.block_bytes);
        let one = (self.scale_blocks * INDEX_ENTRY_BYTES * 10 / 9).div_ceil(block) + 2;
        one * block * u64::from(self.schemas)
    }

    /// About what the write-ahead log grows by while the data are made.
    pub fn estimated_redo_bytes(&self) -> u64 {
        let row = u64::from(ROW_OVERHEAD_BYTES + COLUMNS * self.column_bytes) + REDO_OVERHEAD_BYTES;
        self.blocks() * row + self.estimated_index_bytes()
    }

    /// Names and statements of the data in this namespace.
    pub fn sql(&self, namespace: &str) -> Sql {
        Sql::new(namespace, self.block_bytes)
    }
}

impl TableId {
    /// Its name, qualified and quoted.
    pub(super) fn qualified(self, sql: &Sql) -> String {
        sql.qualified(&self.name())
    }
}
