//! Which rows lie where, and what they are filled with.

use super::descriptor::{DataSet, TableId, TableKind};
use model::workload::{Permutation, Rng, mix64};
use targets::database::Filling;

/// Keeps the filling's numbers apart from those that place rows, which have the same seed.
const FILLING_STREAMS: u64 = u64::from_le_bytes(*b"filling\0");

/// Which rows of a table: places are numbered in the order in which rows are loaded.
#[derive(Debug, Clone)]
pub struct RowSource {
    permutation: Option<Permutation>,
    filling: Filling,
    seed: u64,
}

impl RowSource {
    /// The rows of one table of a data set.
    pub fn new(data: &DataSet, table: TableId) -> Self {
        let permutation = match table.kind {
            TableKind::Rows => Some(data.permutation(table.schema)),
            TableKind::Scan => None,
        };
        let number = u64::from(table.schema) << 1 | u64::from(table.kind == TableKind::Scan);
        Self { permutation, filling: data.filling, seed: mix64(data.seed ^ FILLING_STREAMS ^ mix64(number + 1)) }
    }

    /// The key of the row at `place`. The scan table is in the order of its keys.
    pub fn key(&self, place: u64) -> u64 {
        self.permutation.as_ref().map_or(place, |permutation| permutation.invert(place))
    }

    /// The numbers that fill the row at `place`, where rows must not be compressible. Each row has a stream of its own, so it is
    /// the same whichever connection it is sent on.
    pub fn numbers(&self, place: u64) -> Option<Rng> {
        (self.filling == Filling::Incompressible).then(|| Rng::new(self.seed, place))
    }
}
