//! Transactions second by second.

use std::fmt::Write as _;

use model::record::{Interval, Step, Timestamp};

const NS_PER_MS: i128 = 1_000_000;

/// How many transactions ended in each interval of a window.
pub(super) struct Readings(Vec<Reading>);

struct Reading {
    /// Its end, from the beginning of the window.
    to_ns: u64,
    completed: u64,
}

impl Readings {
    /// Nothing if the step has no intervals, or the count of one is not known: a reading is of all since the one before.
    pub(super) fn of(step: &Step) -> Option<Self> {
        let mut measured = step.intervals.iter().filter(|interval| !interval.warmup).peekable();
        let first_ns = measured.peek()?.offset_ns;
        let reading = |interval: &Interval| {
            let to_ns = interval.offset_ns.saturating_sub(first_ns).saturating_add(interval.duration_ns);
            Some(Reading { to_ns, completed: interval.counters.operations? })
        };
        measured.map(reading).collect::<Option<_>>().map(Self)
    }

    /// Milliseconds since 1970 and a count for each, of a window that began at `began`.
    pub(super) fn text(&self, began: Timestamp) -> String {
        let mut text = String::new();
        for Reading { to_ns, completed } in &self.0 {
            let at_ms = (began.0.as_nanosecond() + i128::from(*to_ns)).div_euclid(NS_PER_MS);
            let _ = write!(text, "{at_ms}, {completed},");
        }
        text
    }
}
