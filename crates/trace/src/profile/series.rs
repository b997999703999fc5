//! How requests are spread over time: a series of at most [`MAX_POINTS`] intervals, and the busiest seconds.

use model::trace::TraceKind;
use serde::Serialize;

/// Points of a series, at most: an hour of seconds. Intervals double in length where a trace is longer.
pub const MAX_POINTS: usize = 14_400;

/// One second.
pub(super) const SECOND_NS: u64 = 1_000_000_000;

/// What was issued within one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Point {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes and discards.
    pub others: u64,
    /// Bytes of the reads.
    pub read_bytes: u64,
    /// Bytes of the writes.
    pub write_bytes: u64,
}

impl Point {
    #[inline]
    fn add(&mut self, kind: TraceKind, bytes: u64) {
        match kind {
            TraceKind::Read => {
                self.reads += 1;
                self.read_bytes = self.read_bytes.saturating_add(bytes);
            }
            TraceKind::Write => {
                self.writes += 1;
                self.write_bytes = self.write_bytes.saturating_add(bytes);
            }
            TraceKind::Flush | TraceKind::Discard => self.others += 1,
        }
    }

    fn merge(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.others += other.others;
        self.read_bytes = self.read_bytes.saturating_add(other.read_bytes);
        self.write_bytes = self.write_bytes.saturating_add(other.write_bytes);
    }

    /// Reads and writes: what limits of IOPS count.
    pub fn transfers(&self) -> u64 {
        self.reads.saturating_add(self.writes)
    }

    /// Bytes of both.
    pub fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.write_bytes)
    }
}

/// Requests by the time of their issue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// The length of each interval: one second, or 2, 4, 8 … seconds where the trace has more than [`MAX_POINTS`] seconds.
    pub interval_ns: u64,
    /// The intervals from the beginning of the trace to its end; the last one may be only partly in the trace.
    pub points: Vec<Point>,
}

/// A second, and what was issued within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Second {
    /// When it begins, after the trace began: a multiple of one second.
    pub begin_ns: u64,
    /// What was issued within it.
    pub point: Point,
}

/// Intervals in which a limit was exceeded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Over {
    /// Intervals that exceed at least one of the limits.
    pub intervals: usize,
    /// All intervals.
    pub of: usize,
    /// The length of each. A mean over more than one second can hide a second that exceeds the limit.
    pub interval_ns: u64,
    /// When the first of them begins; absent without one.
    pub first_ns: Option<u64>,
    /// The one that exceeds a limit by the largest factor; absent without one.
    pub worst: Option<Worst>,
}

/// The interval that exceeds a limit most.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Worst {
    /// When it begins.
    pub begin_ns: u64,
    /// Its reads and writes per second.
    pub requests_per_s: f64,
    /// Their bytes per second.
    pub bytes_per_s: f64,
    /// The larger of its two rates over their limits: above 1.
    pub factor: f64,
}

impl Series {
    /// Which intervals exceed a limit of reads and writes per second, or of their bytes per second.
    ///
    /// Rates are over the whole length of an interval, also of the last one: what a trace has only a part of cannot be scaled.
    pub fn over(&self, iops: Option<f64>, bytes_per_s: Option<f64>) -> Over {
        let seconds = self.interval_ns as f64 / SECOND_NS as f64;
        let (mut intervals, mut first_ns) = (0, None);
        let mut worst: Option<Worst> = None;
        for (number, point) in self.points.iter().enumerate() {
            let rates = (point.transfers() as f64 / seconds, point.bytes() as f64 / seconds);
            let exceeded = |rate: f64, limit: Option<f64>| {
                let limit = limit.filter(|limit| rate > *limit)?;
                // Every rate exceeds a limit of zero without end.
                Some(if limit > 0.0 { rate / limit } else { f64::MAX })
            };
            let factors = [exceeded(rates.0, iops), exceeded(rates.1, bytes_per_s)];
            let Some(factor) = factors.into_iter().flatten().reduce(f64::max) else { continue };
            let begin_ns = self.interval_ns.saturating_mul(number as u64);
            intervals += 1;
            first_ns = first_ns.or(Some(begin_ns));
            if worst.as_ref().is_none_or(|worst| factor > worst.factor) {
                worst = Some(Worst { begin_ns, requests_per_s: rates.0, bytes_per_s: rates.1, factor });
            }
        }
        Over { intervals, of: self.points.len(), interval_ns: self.interval_ns, first_ns, worst }
    }
}

/// Fills a [`Series`].
#[derive(Debug)]
pub(super) struct Clock {
    series: Series,
    /// The second that requests are counted in now, and its end.
    second: Second,
    end_ns: u64,
    by_requests: Option<Second>,
    by_bytes: Option<Second>,
}

/// What [`Clock`] knows at the end.
#[derive(Debug)]
pub(super) struct Seconds {
    pub(super) series: Series,
    /// The seconds with most reads and writes, and with most of their bytes.
    pub(super) by_requests: Option<Second>,
    pub(super) by_bytes: Option<Second>,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self {
            series: Series { interval_ns: SECOND_NS, points: Vec::new() },
            second: Second { begin_ns: 0, point: Point::default() },
            end_ns: SECOND_NS,
            by_requests: None,
            by_bytes: None,
        }
    }

    /// `now_ns` does not fall from call to call.
    #[inline]
    pub(super) fn add(&mut self, now_ns: u64, kind: TraceKind, bytes: u64) {
        if now_ns >= self.end_ns {
            self.close();
            let begin_ns = now_ns - now_ns % SECOND_NS;
            self.second = Second { begin_ns, point: Point::default() };
            self.end_ns = begin_ns.saturating_add(SECOND_NS);
        }
        self.second.point.add(kind, bytes);
    }

    fn close(&mut self) {
        let second = self.second;
        if second.point == Point::default() {
            return;
        }
        let number = self.place(second.begin_ns);
        if let Some(point) = self.series.points.get_mut(number) {
            point.merge(&second.point);
        }
        let more = |best: Option<Second>, by: fn(&Point) -> u64| {
            if best.is_none_or(|best| by(&second.point) > by(&best.point)) { Some(second) } else { best }
        };
        self.by_requests = more(self.by_requests, Point::transfers);
        self.by_bytes = more(self.by_bytes, Point::bytes);
    }

    /// The place of an interval by a time in it, which the series is made long enough for.
    fn place(&mut self, at_ns: u64) -> usize {
        while at_ns / self.series.interval_ns >= MAX_POINTS as u64 {
            let Series { interval_ns, points } = &mut self.series;
            *interval_ns *= 2;
            let half = points.len().div_ceil(2);
            for number in 0..half {
                let mut sum = points[2 * number];
                if let Some(next) = points.get(2 * number + 1) {
                    sum.merge(next);
                }
                points[number] = sum;
            }
            points.truncate(half);
        }
        let number = (at_ns / self.series.interval_ns) as usize;
        if self.series.points.len() <= number {
            self.series.points.resize(number + 1, Point::default());
        }
        number
    }

    pub(super) fn finish(mut self, duration_ns: u64) -> Seconds {
        self.close();
        if let Some(last_ns) = duration_ns.checked_sub(1) {
            self.place(last_ns);
        }
        Seconds { series: self.series, by_requests: self.by_requests, by_bytes: self.by_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_counted_and_idle_ones_are_there() {
        let mut clock = Clock::new();
        clock.add(0, TraceKind::Read, 4096);
        clock.add(SECOND_NS - 1, TraceKind::Write, 8192);
        clock.add(3 * SECOND_NS, TraceKind::Write, 1 << 20);
        clock.add(3 * SECOND_NS, TraceKind::Flush, 0);
        let Seconds { series, by_requests, by_bytes } = clock.finish(5 * SECOND_NS);
        assert_eq!(series.interval_ns, SECOND_NS);
        assert_eq!(series.points.iter().map(Point::transfers).collect::<Vec<_>>(), [2, 0, 0, 1, 0]);
        assert_eq!(by_requests.unwrap().begin_ns, 0);
        assert_eq!(by_bytes.unwrap().begin_ns, 3 * SECOND_NS);
        let over = series.over(Some(1.5), None);
        assert_eq!((over.intervals, over.of, over.first_ns), (1, 5, Some(0)));
        let over = series.over(Some(0.5), Some(1e5));
        assert_eq!((over.intervals, over.first_ns, over.worst.unwrap().begin_ns), (2, Some(0), 3 * SECOND_NS));
        assert_eq!(series.over(None, None).intervals, 0);
        assert_eq!(series.over(Some(2.0), None).worst, None, "a limit that is met is not exceeded");
    }

    #[test]
    fn a_long_trace_has_longer_intervals_and_loses_nothing() {
        let mut clock = Clock::new();
        for second in 0..40_000 {
            clock.add(second * SECOND_NS + 5, TraceKind::Read, 512);
        }
        let series = clock.finish(40_000 * SECOND_NS).series;
        assert_eq!((series.interval_ns, series.points.len()), (4 * SECOND_NS, 10_000));
        assert!(series.points.iter().all(|point| point.reads == 4 && point.read_bytes == 2_048));
    }
}
