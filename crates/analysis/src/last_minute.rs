//! Transactions per minute: those of the last sixty seconds, second after second.

use std::collections::VecDeque;

use model::record::{Interval, Step};

const MINUTE_NS: u64 = 60_000_000_000;

/// The last sixty seconds of a load.
#[derive(Debug, Clone, Default)]
pub struct LastMinute {
    /// The middle of each second and what ended well in it; absent where that is not known.
    seconds: VecDeque<(u64, Option<u64>)>,
    /// The load, and when its first second began.
    of: Option<(u32, u64)>,
}

impl LastMinute {
    /// Adds the next second, and gives what ended well in the sixty seconds up to its end. Not known before sixty seconds of the
    /// same load have passed, and where a second of them is not: a shorter time is never taken for a minute. A second belongs to the
    /// minute that its middle lies in.
    pub fn add(&mut self, second: &Interval) -> Option<u64> {
        let (from_ns, to_ns) = (second.offset_ns, second.offset_ns.saturating_add(second.duration_ns));
        let began_ns = match self.of {
            Some((step, began_ns)) if step == second.step && began_ns < from_ns => began_ns,
            _ => {
                *self = Self { of: Some((second.step, from_ns)), ..Self::default() };
                from_ns
            }
        };
        self.seconds.push_back((from_ns + second.duration_ns / 2, second.counters.operations));
        while self.seconds.front().is_some_and(|(middle_ns, _)| middle_ns.saturating_add(MINUTE_NS) < to_ns) {
            self.seconds.pop_front();
        }
        if to_ns - began_ns < MINUTE_NS {
            return None;
        }
        self.seconds.iter().map(|(_, ended)| *ended).sum()
    }
}

/// The most that ended well in any sixty seconds of the measured window; not known of a shorter one.
pub fn highest_minute(step: &Step) -> Option<u64> {
    let mut minute = LastMinute::default();
    let measured = step.intervals.iter().filter(|second| !second.warmup);
    measured.filter_map(|second| minute.add(second)).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::Counters;

    /// Seconds with so many transactions each.
    fn seconds(counts: impl IntoIterator<Item = u64>) -> Vec<Interval> {
        let second = |(at, count): (u64, u64)| Interval {
            offset_ns: at * 1_000_000_000,
            duration_ns: 1_000_000_000,
            counters: Counters { operations: Some(count), ..Counters::default() },
            ..Interval::default()
        };
        (0..).zip(counts).map(second).collect()
    }

    fn minutes(seconds: &[Interval]) -> Vec<Option<u64>> {
        let mut minute = LastMinute::default();
        seconds.iter().map(|second| minute.add(second)).collect()
    }

    #[test]
    fn a_minute_is_known_once_it_has_passed_and_then_each_second() {
        let found = minutes(&seconds(1..=62));
        assert!(found[..59].iter().all(Option::is_none));
        let sums = [(1..=60).sum::<u64>(), (2..=61).sum(), (3..=62).sum()];
        assert_eq!(found[59..], sums.map(Some));
    }

    #[test]
    fn a_gap_a_short_end_and_another_load_are_not_taken_for_a_minute() {
        let mut unknown = seconds([10; 130]);
        unknown[65].counters.operations = None;
        let found = minutes(&unknown);
        assert!(found[60].is_some() && found[65..125].iter().all(Option::is_none) && found[125].is_some());

        let mut short = seconds([10; 61]);
        (short[60].duration_ns, short[60].counters.operations) = (500_000_000, Some(5));
        assert_eq!(minutes(&short)[60], Some(605), "the second that half of it leaves is still in it");

        let mut next = seconds([10; 61]);
        next.extend(seconds([20; 60]).into_iter().map(|second| Interval { step: 1, ..second }));
        let found = minutes(&next);
        assert!(found[61..120].iter().all(Option::is_none), "{found:?}");
        assert_eq!(found[120], Some(1_200));
    }

    #[test]
    fn the_highest_minute_is_one_of_the_window() {
        let mut step = Step::new(0, "u4");
        step.intervals = seconds((0..100).map(|at| if at < 30 { 1_000 } else { at }));
        step.intervals[..20].iter_mut().for_each(|second| second.warmup = true);
        let sum: u64 = step.intervals[20..80].iter().filter_map(|second| second.counters.operations).sum();
        assert_eq!(highest_minute(&step), Some(sum));
        step.intervals.truncate(70);
        assert_eq!(highest_minute(&step), None, "fifty seconds are no minute");
    }
}
