//! When intervals begin and end, and when the measured window closes.

use std::sync::atomic::{AtomicU64, Ordering};

/// Number of an interval in its step, from 0, warm-up included.
pub type IntervalId = u32;

/// The instants of one step, on the process's [`super::Clock`]. Shared by all threads of the step.
///
/// Intervals start with the load. The last one of the warm-up is cut short, so that the window starts a new one, and the
/// last one of the window is cut short at its end.
#[derive(Debug)]
pub struct Timeline {
    start_ns: u64,
    warmup_ns: u64,
    interval_ns: u64,
    /// First instant that is outside the window. Only ever moves to an earlier time.
    closed_at_ns: AtomicU64,
}

impl Timeline {
    /// A step whose load starts at `start_ns` and whose window lasts `window_ns` after the warm-up; `None` leaves it open
    /// until [`Timeline::close`].
    ///
    /// # Panics
    /// When `interval_ns` is zero.
    pub fn new(start_ns: u64, warmup_ns: u64, window_ns: Option<u64>, interval_ns: u64) -> Self {
        assert!(interval_ns > 0, "an interval lasts longer than nothing");
        let end = window_ns.map_or(u64::MAX, |window| (start_ns + warmup_ns).saturating_add(window));
        Self { start_ns, warmup_ns, interval_ns, closed_at_ns: AtomicU64::new(end) }
    }

    /// Start of the load.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Start of the measured window.
    pub fn window_start_ns(&self) -> u64 {
        self.start_ns + self.warmup_ns
    }

    /// First instant after the window.
    #[inline]
    pub fn closed_at_ns(&self) -> u64 {
        self.closed_at_ns.load(Ordering::Relaxed)
    }

    /// Ends the window at `at_ns` unless it ends before. Returns whether this call decided the end.
    pub fn close(&self, at_ns: u64) -> bool {
        self.closed_at_ns.fetch_min(at_ns, Ordering::Relaxed) > at_ns
    }

    fn warmup_intervals(&self) -> u64 {
        self.warmup_ns.div_ceil(self.interval_ns)
    }

    /// First instant after interval `id`, before the closing is considered.
    #[inline]
    pub fn scheduled_end_ns(&self, id: IntervalId) -> u64 {
        let id = u64::from(id);
        let in_warmup = self.warmup_intervals();
        if id < in_warmup {
            self.start_ns + ((id + 1) * self.interval_ns).min(self.warmup_ns)
        } else {
            self.window_start_ns() + (id - in_warmup + 1) * self.interval_ns
        }
    }

    /// First instant of interval `id`.
    pub fn begin_ns(&self, id: IntervalId) -> u64 {
        id.checked_sub(1).map_or(self.start_ns, |before| self.scheduled_end_ns(before))
    }

    /// First instant after interval `id`, cut where the window closes.
    #[inline]
    pub fn end_ns(&self, id: IntervalId) -> u64 {
        self.scheduled_end_ns(id).min(self.closed_at_ns())
    }

    /// Whether interval `id` lies before the window.
    pub fn is_warmup(&self, id: IntervalId) -> bool {
        u64::from(id) < self.warmup_intervals()
    }

    /// Whether no interval follows `id`.
    pub fn is_last(&self, id: IntervalId) -> bool {
        self.scheduled_end_ns(id) >= self.closed_at_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn warmup_and_window_each_end_on_an_interval_edge() {
        let timeline = Timeline::new(100, 25, Some(25), 10);
        let ends: Vec<u64> = (0..6).map(|id| timeline.end_ns(id)).collect();
        assert_eq!(ends, [110, 120, 125, 135, 145, 150]);
        assert_eq!((0..4).map(|id| timeline.is_warmup(id)).collect::<Vec<_>>(), [true, true, true, false]);
        assert!(!timeline.is_last(4) && timeline.is_last(5));
    }

    #[test]
    fn the_earliest_closing_wins() {
        let timeline = Timeline::new(0, 0, Some(100), 10);
        assert!(timeline.close(55));
        assert!(!timeline.close(60));
        assert_eq!(timeline.closed_at_ns(), 55);
        assert!(timeline.is_last(5) && !timeline.is_last(4));
    }

    proptest! {
        #[test]
        fn intervals_cover_the_step_without_gap_or_overlap(
            start in 0u64..1000, warmup in 0u64..100, window in 1u64..200, interval in 1u64..50,
        ) {
            let timeline = Timeline::new(start, warmup, Some(window), interval);
            let mut at = start;
            let mut id = 0;
            loop {
                prop_assert_eq!(timeline.begin_ns(id), at);
                prop_assert!(timeline.end_ns(id) > at);
                prop_assert_eq!(timeline.is_warmup(id), at < start + warmup);
                at = timeline.end_ns(id);
                if timeline.is_last(id) {
                    break;
                }
                id += 1;
            }
            prop_assert_eq!(at, start + warmup + window);
        }
    }
}
