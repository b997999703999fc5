//! Sorting as a database does it for `ORDER BY` or a merge join: keys, each with the row that it belongs to.

use model::workload::Rng;

/// Keys and rows, kept from slice to slice so that none allocates.
#[derive(Debug, Default)]
pub(super) struct Sort(Vec<(u64, u32)>);

impl Sort {
    /// Draws `keys` keys and sorts them. The row of the middle one; `None` if they were not in order.
    pub(super) fn run(&mut self, rng: &mut Rng, keys: u64) -> Option<u64> {
        self.0.clear();
        self.0.extend((0..keys as u32).map(|row| (rng.next_u64(), row)));
        self.0.sort_unstable();
        let sorted = self.0.is_sorted();
        let middle = self.0.get(self.0.len() / 2)?;
        sorted.then_some(u64::from(middle.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_row_is_that_of_the_middle_key() {
        let mut rng = Rng::new(9, 0);
        let mut keys: Vec<(u64, u64)> = (0..1_001).map(|row| (rng.next_u64(), row)).collect();
        keys.sort();
        let mut sort = Sort::default();
        assert_eq!(sort.run(&mut Rng::new(9, 0), 1_001), Some(keys[500].1));
        assert_eq!(sort.0.len(), 1_001);
        assert_eq!(sort.run(&mut Rng::new(9, 0), 0), None);
    }
}
