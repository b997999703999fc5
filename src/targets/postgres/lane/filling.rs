//! What updates write.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::targets::SessionRange;
use crate::workload::Rng;

/// Makes contents that nothing can compress and no run repeats.
#[derive(Debug)]
pub(super) struct Filling(Rng);

impl Filling {
    /// For the sessions of a range. It needs no repetition: two runs must not write the same bytes.
    pub(super) fn new(range: SessionRange) -> Self {
        let entropy = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        Self(Rng::new(entropy, u64::from(range.first_session)))
    }

    /// So many bytes.
    pub(super) fn make(&mut self, bytes: u32) -> Vec<u8> {
        let mut filling = vec![0; bytes as usize];
        self.0.fill(&mut filling);
        filling
    }
}
