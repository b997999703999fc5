//! Which kind of operation comes next.

use super::Rng;

/// Operations in which the asked percentages hold exactly.
const PERIOD: usize = 100;

/// An endless pattern of operation kinds: *every* hundred operations in a row hold exactly the asked numbers of each
/// kind, spread as evenly as whole operations allow.
#[derive(Clone, Debug)]
pub(super) struct Mix<K> {
    pattern: [K; PERIOD],
    next: usize,
}

impl<K: Copy> Mix<K> {
    /// A mix of kinds with their percentages, and of `rest` for what they leave of a hundred. Earlier kinds come first
    /// where the percentages add to more. It starts `phase` operations into its pattern, so that sessions do not all do
    /// the same at once.
    pub(super) fn new(shares: &[(K, u8)], rest: K, phase: u64) -> Self {
        let mut pattern = [None; PERIOD];
        let mut free = PERIOD;
        for &(kind, pct) in shares {
            let marks = usize::from(pct).min(free);
            for (place, slot) in pattern.iter_mut().filter(|slot| slot.is_none()).enumerate() {
                if is_marked(place, marks, free) {
                    *slot = Some(kind);
                }
            }
            free -= marks;
        }
        Self { pattern: pattern.map(|slot| slot.unwrap_or(rest)), next: (phase % PERIOD as u64) as usize }
    }

    /// The kind of the next operation.
    #[inline]
    pub(super) fn draw(&mut self) -> K {
        let kind = self.pattern[self.next];
        self.next = if self.next + 1 == PERIOD { 0 } else { self.next + 1 };
        kind
    }
}

/// Whether `slot` is one of `marks` out of `slots` laid out as Bresenham lays the steps of a line: a run of any length,
/// across the end too, holds the proportional number of marks, rounded up or down.
fn is_marked(slot: usize, marks: usize, slots: usize) -> bool {
    (slot + 1) * marks / slots != slot * marks / slots
}

/// Kinds drawn at random in proportion to their rates: arrivals at random that are shared out by chance are, for each kind,
/// arrivals at random at its own rate (the splitting of a Poisson process).
#[derive(Clone, Debug)]
pub(super) struct Split {
    /// The share of each kind and of all before it, 0 to 1.
    up_to: Vec<f64>,
    rng: Rng,
}

impl Split {
    /// Of kinds with these rates, of which one is above 0.
    pub(super) fn new(rates: impl Iterator<Item = f64> + Clone, rng: Rng) -> Self {
        let all: f64 = rates.clone().sum();
        let up_to = rates.scan(0.0, |sum, rate| {
            *sum += rate / all;
            Some(*sum)
        });
        Self { up_to: up_to.collect(), rng }
    }

    /// The number of the next kind.
    #[inline]
    pub(super) fn draw(&mut self) -> usize {
        let drawn = self.rng.unit_f64();
        self.up_to.iter().position(|up_to| drawn < *up_to).unwrap_or(self.up_to.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Mix;
    use crate::workload::OperationKind;

    fn updates_and_scans(update_pct: u8, scan_pct: u8, phase: u64) -> Mix<OperationKind> {
        let shares = [(OperationKind::Update, update_pct), (OperationKind::Scan, scan_pct)];
        Mix::new(&shares, OperationKind::Read, phase)
    }

    fn count(window: &[OperationKind], kind: OperationKind) -> usize {
        window.iter().filter(|&&drawn| drawn == kind).count()
    }

    fn percentages() -> impl Strategy<Value = (u8, u8)> {
        (0..=100_u8).prop_flat_map(|update| (Just(update), 0..=100 - update))
    }

    proptest! {
        #[test]
        fn any_hundred_operations_hold_exactly_the_percentages((update, scan) in percentages(), phase: u64) {
            let mut mix = updates_and_scans(update, scan, phase);
            let drawn: Vec<_> = (0..350).map(|_| mix.draw()).collect();
            for window in drawn.windows(100) {
                prop_assert_eq!(count(window, OperationKind::Update), usize::from(update));
                prop_assert_eq!(count(window, OperationKind::Scan), usize::from(scan));
            }
        }

        #[test]
        fn a_window_of_any_length_is_as_even_as_whole_operations_allow(
            (update, scan) in percentages(), phase: u64, length in 1..100_usize,
        ) {
            let mut mix = updates_and_scans(update, scan, phase);
            let drawn: Vec<_> = (0..300).map(|_| mix.draw()).collect();
            for window in drawn.windows(length) {
                let fair = |pct: u8| length as f64 * f64::from(pct) / 100.0;
                let updates = count(window, OperationKind::Update) as f64;
                prop_assert!((updates - fair(update)).abs() < 1.0, "{} updates in {}", updates, length);
                let scans = count(window, OperationKind::Scan) as f64;
                prop_assert!((scans - fair(scan)).abs() < 2.0, "{} scans in {}", scans, length);
            }
        }
    }

    #[test]
    fn updates_come_first_where_the_percentages_add_to_more_than_a_hundred() {
        let mut mix = updates_and_scans(70, 200, 0);
        let drawn: Vec<_> = (0..100).map(|_| mix.draw()).collect();
        assert_eq!((count(&drawn, OperationKind::Update), count(&drawn, OperationKind::Scan)), (70, 30));
    }
}
