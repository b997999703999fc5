//! Which part of a step one process carries out, where several share it.

use std::ops::Range;

/// One of several processes that carry out a step together. Each drives lanes that follow each other, and the sessions of those:
/// with the numbers that they have in the whole, so that all of them together do what one process would.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of the process, from 0.
    pub part: u32,
    /// How many there are; at least 1 and more than `part`.
    pub parts: u32,
}

impl Share {
    /// One process does all.
    pub const WHOLE: Self = Self { part: 0, parts: 1 };

    /// Which of so many things, numbered from 0, are its own: nearly as many as any other's.
    pub fn of(self, all: u32) -> Range<u32> {
        let first = |part: u32| (u64::from(all) * u64::from(part) / u64::from(self.parts.max(1))) as u32;
        first(self.part)..first(self.part + 1)
    }
}

impl Default for Share {
    fn default() -> Self {
        Self::WHOLE
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Share;

    proptest! {
        #[test]
        fn parts_have_everything_once_and_in_its_order(all in 0..5_000_u32, parts in 1..300_u32) {
            let shares = (0..parts).map(|part| Share { part, parts }.of(all));
            prop_assert!(shares.clone().flatten().eq(0..all));
            let (least, most) = (shares.clone().map(|share| share.len()).min(), shares.map(|share| share.len()).max());
            prop_assert!(most.unwrap() - least.unwrap() <= 1);
        }

        #[test]
        fn sessions_of_a_part_do_not_depend_on_how_many_threads_each_part_has(
            sessions in 1..600_u32,
            parts in 1..40_u32,
            threads in 1..20_u32,
        ) {
            let lanes = (threads * parts).min(sessions);
            for part in 0..parts {
                let share = Share { part, parts };
                let own = super::super::step::parts(sessions, lanes)
                    .filter(|lane| share.of(lanes).contains(&lane.lane))
                    .flat_map(|lane| lane.first_session..lane.first_session + lane.sessions);
                prop_assert!(own.eq(share.of(sessions)), "part {part} of {parts}");
            }
        }
    }
}
