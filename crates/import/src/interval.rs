//! One second, or ten, of a run that is imported.

use model::record::{Histogram, Interval, Step};

/// An interval of `step` in which nothing is known yet. It is empty and small: files hold hundreds of thousands of them.
pub(super) fn of(step: &Step, offset_ns: u64, duration_ns: u64) -> Interval {
    let mut interval = Interval { step: step.index, offset_ns, duration_ns, ..Interval::default() };
    interval.response = Histogram::reported([], None, None, None);
    interval
}

/// Seconds in nanoseconds.
pub(super) fn seconds_ns(seconds: f64) -> u64 {
    super::draft::whole(seconds * 1e9).unwrap_or(0)
}
