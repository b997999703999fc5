//! A hash join: the smaller side is put into a table, the rows of the larger one look for their partners in it.

use model::workload::{HostKind, Rng, mix64};

/// What no key is.
const EMPTY: u64 = u64::MAX;

/// A table with open addressing, kept from slice to slice so that none allocates.
#[derive(Debug, Default)]
pub(super) struct Join {
    keys: Vec<u64>,
    rows: Vec<u32>,
}

impl Join {
    /// Builds a table of an eighth as many keys as are probed, and probes it; every other row has a partner. The sum of the
    /// partners' numbers; `None` if another number of rows had one.
    pub(super) fn run(&mut self, rng: &mut Rng, probes: u64) -> Option<u64> {
        let built = (probes / HostKind::PROBES).max(1);
        let slots = (2 * built).next_power_of_two() as usize;
        self.keys.clear();
        self.keys.resize(slots, EMPTY);
        self.rows.resize(slots, 0);
        let first = rng.below(1 << 40);
        for row in 0..built {
            let slot = self.slot(first + 2 * row);
            self.keys[slot] = first + 2 * row;
            self.rows[slot] = row as u32;
        }
        let (mut sum, mut matches) = (0_u64, 0_u64);
        for probe in 0..probes {
            // Odd ones lie between the keys, so that they have no partner.
            let key = first + 2 * rng.below(built) + probe % 2;
            let slot = self.slot(key);
            if self.keys[slot] == key {
                matches += 1;
                sum += u64::from(self.rows[slot]);
            }
        }
        (matches == probes.div_ceil(2)).then_some(sum)
    }

    /// Where a key is, or would be.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mask = self.keys.len() - 1;
        let mut slot = mix64(key) as usize & mask;
        while self.keys[slot] != EMPTY && self.keys[slot] != key {
            slot = (slot + 1) & mask;
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_with_a_partner_finds_it_and_no_other_does() {
        let mut rng = Rng::new(4, 0);
        let first = rng.below(1 << 40);
        let partners = (0..8_000).filter_map(|probe| {
            let row = rng.below(1_000);
            (probe % 2 == 0).then_some(row)
        });
        let expected: u64 = partners.sum();
        let mut join = Join::default();
        assert_eq!(join.run(&mut Rng::new(4, 0), 8_000), Some(expected));
        assert_eq!(join.keys.iter().filter(|key| **key != EMPTY).count(), 1_000);
        assert!(join.keys.contains(&first));
    }
}
