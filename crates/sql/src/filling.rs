//! What updates write.

use std::time::{SystemTime, UNIX_EPOCH};

use super::session::StatementKind;
use model::workload::Rng;
use targets::SessionRange;

/// Filling columns of a row, as SLOB's has.
pub const COLUMNS: u32 = 19;
/// Columns that a light update changes.
const LITE_COLUMNS: u32 = 2;
/// Operations of one batch begin their filling at different places, so many bytes apart.
pub const FILLING_STEP: u32 = 16;
/// How many such places there are.
pub const FILLING_PLACES: u32 = 64;

/// Bytes of filling that a batch with updates is sent.
pub fn batch_filling_bytes(column_bytes: u32) -> u32 {
    COLUMNS * column_bytes + FILLING_STEP * FILLING_PLACES
}

/// Makes contents that nothing can compress and no run repeats.
#[derive(Debug)]
pub(super) struct Filling {
    rng: Rng,
    column_bytes: u32,
}

impl Filling {
    /// For the sessions of a range. It needs no repetition: two runs must not write the same bytes.
    pub(super) fn new(range: SessionRange, column_bytes: u32) -> Self {
        let entropy = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        Self { rng: Rng::new(entropy, u64::from(range.first_session)), column_bytes }
    }

    /// Puts into `filling` what one statement writes.
    pub(super) fn of_statement(&mut self, kind: StatementKind, filling: &mut Vec<u8>) {
        let columns = match kind {
            StatementKind::Read | StatementKind::Scan => 0,
            StatementKind::UpdateLite => LITE_COLUMNS,
            StatementKind::UpdateHeavy => COLUMNS,
        };
        self.make(columns * self.column_bytes, filling);
    }

    /// Puts into `filling` what the updates of one batch write parts of.
    pub(super) fn of_batch(&mut self, filling: &mut Vec<u8>) {
        self.make(batch_filling_bytes(self.column_bytes), filling);
    }

    fn make(&mut self, bytes: u32, filling: &mut Vec<u8>) {
        filling.resize(bytes as usize, 0);
        self.rng.fill(filling);
    }
}
