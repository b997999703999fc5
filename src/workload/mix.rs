//! Which kind of operation comes next.

use super::operation::OperationKind;

/// Operations in which the asked percentages hold exactly.
const PERIOD: usize = 100;

/// An endless pattern of operation kinds: *every* hundred operations in a row hold exactly the asked numbers of updates
/// and scans, spread as evenly as whole operations allow.
#[derive(Clone, Debug)]
pub(super) struct Mix {
    pattern: [OperationKind; PERIOD],
    next: usize,
}

impl Mix {
    /// A mix that starts `phase` operations into its pattern, so that sessions do not all update at once. Updates come
    /// first where the percentages add to more than 100.
    pub(super) fn new(update_pct: u8, scan_pct: u8, phase: u64) -> Self {
        let updates = usize::from(update_pct).min(PERIOD);
        let others = PERIOD - updates;
        let scans = usize::from(scan_pct).min(others);
        let mut other = 0;
        let pattern = std::array::from_fn(|slot| {
            if is_marked(slot, updates, PERIOD) {
                return OperationKind::Update;
            }
            other += 1;
            if is_marked(other - 1, scans, others) { OperationKind::Scan } else { OperationKind::Read }
        });
        Self { pattern, next: (phase % PERIOD as u64) as usize }
    }

    /// The kind of the next operation.
    #[inline]
    pub(super) fn draw(&mut self) -> OperationKind {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Mix, OperationKind};

    fn count(window: &[OperationKind], kind: OperationKind) -> usize {
        window.iter().filter(|&&drawn| drawn == kind).count()
    }

    fn percentages() -> impl Strategy<Value = (u8, u8)> {
        (0..=100_u8).prop_flat_map(|update| (Just(update), 0..=100 - update))
    }

    proptest! {
        #[test]
        fn any_hundred_operations_hold_exactly_the_percentages((update, scan) in percentages(), phase: u64) {
            let mut mix = Mix::new(update, scan, phase);
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
            let mut mix = Mix::new(update, scan, phase);
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
        let mut mix = Mix::new(70, 200, 0);
        let drawn: Vec<_> = (0..100).map(|_| mix.draw()).collect();
        assert_eq!((count(&drawn, OperationKind::Update), count(&drawn, OperationKind::Scan)), (70, 30));
    }
}
