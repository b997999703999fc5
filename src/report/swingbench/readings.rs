//! Transactions second by second.

use std::fmt::Write as _;

use crate::record::{Interval, Step, Timestamp};

const NS_PER_MS: i128 = 1_000_000;
const MINUTE_NS: u64 = 60 * 1_000_000_000;

/// How many transactions ended in each interval of a window.
pub(super) struct Readings(Vec<Reading>);

struct Reading {
    /// Its beginning and its end, from that of the window.
    from_ns: u64,
    to_ns: u64,
    completed: u64,
}

impl Readings {
    /// Nothing if the step has no intervals, or the count of one is not known: a reading is of all since the one before.
    pub(super) fn of(step: &Step) -> Option<Self> {
        let mut measured = step.intervals.iter().filter(|interval| !interval.warmup).peekable();
        let first_ns = measured.peek()?.offset_ns;
        let reading = |interval: &Interval| {
            let from_ns = interval.offset_ns.saturating_sub(first_ns);
            let to_ns = from_ns.saturating_add(interval.duration_ns);
            Some(Reading { from_ns, to_ns, completed: interval.counters.operations? })
        };
        measured.map(reading).collect::<Option<_>>().map(Self)
    }

    /// Milliseconds since 1970 and a count for each, of a window that began at `began`.
    pub(super) fn text(&self, began: Timestamp) -> String {
        let mut text = String::new();
        for Reading { to_ns, completed, .. } in &self.0 {
            let at_ms = (began.0.as_nanosecond() + i128::from(*to_ns)).div_euclid(NS_PER_MS);
            let _ = write!(text, "{at_ms}, {completed},");
        }
        text
    }

    /// The most in sixty seconds; all of them where there are fewer. An interval counts where its middle lies.
    pub(super) fn most_in_a_minute(&self) -> u64 {
        let (mut first, mut sum, mut most) = (self.0.iter().peekable(), 0_u64, 0);
        for last in &self.0 {
            sum = sum.saturating_add(last.completed);
            let is_before = |reading: &&Reading| {
                (reading.from_ns / 2).saturating_add(reading.to_ns / 2).saturating_add(MINUTE_NS) < last.to_ns
            };
            while let Some(gone) = first.next_if(is_before) {
                sum = sum.saturating_sub(gone.completed);
            }
            most = sum.max(most);
        }
        most
    }
}
