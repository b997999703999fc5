//! What one thread saw, interval by interval.
//!
//! A [`LaneRecorder`] belongs to one thread: recording takes no lock and allocates nothing once an event has been seen in
//! the interval. At an interval's end the thread hands its counts over and goes on with empty ones; the collector merges
//! the threads' parts. Engine threads that work in batches share a [`SharedRecorder`] instead.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::os::thread_cpu_ns;
use super::{Counter, FailedConnects, IntervalId, Tally, Timeline, WaitEvent};
use model::record::{Counts, Histogram};

/// Operation types that a recorder can distinguish.
pub const OPERATION_KINDS: usize = 10;

/// Durations, with 32-bit counts: an interval cannot hold more.
#[derive(Debug, Clone)]
pub struct Timings {
    buckets: Counts<u32>,
    total_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Timings {
    fn default() -> Self {
        Self { buckets: Counts::default(), total_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }
}

impl Timings {
    /// Counts one duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.buckets.record_n(ns, 1);
        self.total_ns = self.total_ns.saturating_add(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds everything to `histogram`.
    pub fn merge_into(&self, histogram: &mut Histogram) {
        histogram.merge_counts(&self.buckets, self.total_ns, self.min_ns, self.max_ns);
    }
}

/// Operations of one type.
#[derive(Debug, Clone, Default)]
pub struct OperationTimings {
    /// Operations that finished.
    pub count: u64,
    /// Of these, how many failed.
    pub errors: u64,
    /// Blocks that they touched.
    pub block_touches: u64,
    /// What they came to, where they are transactions.
    pub transactions: Option<Box<Tally>>,
    /// From sent to finished, of those that were sent later than due.
    late_service: Timings,
    /// From due to finished, of those that were sent later than due; the others' response time is their service time,
    /// which need not be recorded twice.
    late_response: Timings,
    /// From sent to finished, of those that were sent when they were due.
    prompt: Timings,
}

impl OperationTimings {
    /// Adds the times from sent to finished to `histogram`.
    pub fn merge_service_into(&self, histogram: &mut Histogram) {
        self.late_service.merge_into(histogram);
        self.prompt.merge_into(histogram);
    }

    /// Adds the times from due to finished to `histogram`.
    pub fn merge_response_into(&self, histogram: &mut Histogram) {
        self.late_response.merge_into(histogram);
        self.prompt.merge_into(histogram);
    }
}

/// Everything recorded in one interval by one thread.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Indexed by [`Counter`].
    pub counts: [u64; Counter::ALL.len()],
    /// Indexed by [`WaitEvent`]; absent when the event did not happen.
    pub waits: [Option<Box<Timings>>; WaitEvent::ALL.len()],
    /// Indexed by the operation type's number; absent when no such operation finished.
    pub operations: [Option<Box<OperationTimings>>; OPERATION_KINDS],
    /// Attempts at a connection that failed.
    pub failed_connects: FailedConnects,
    /// From due to sent, of every operation of an open loop.
    pub schedule_lag: Option<Box<Timings>>,
    /// The same from when it was due and a slot was free for it.
    pub own_lag: Option<Box<Timings>>,
    /// Processor time of the thread.
    pub cpu_ns: u64,
}

impl Default for Recorded {
    fn default() -> Self {
        Self {
            counts: [0; Counter::ALL.len()],
            waits: [const { None }; WaitEvent::ALL.len()],
            operations: [const { None }; OPERATION_KINDS],
            failed_connects: FailedConnects::default(),
            schedule_lag: None,
            own_lag: None,
            cpu_ns: 0,
        }
    }
}

impl Recorded {
    /// Adds to a counter.
    #[inline]
    pub fn count(&mut self, counter: Counter, by: u64) {
        self.counts[counter as usize] += by;
    }

    /// Records one wait.
    #[inline]
    pub fn wait(&mut self, event: WaitEvent, ns: u64) {
        self.waits[event.index()].get_or_insert_default().record(ns);
    }
}

/// Intervals that a lane has finished and the collector has not yet taken.
#[derive(Debug, Default)]
pub struct Outbox {
    finished: Mutex<VecDeque<(IntervalId, Box<Recorded>)>>,
    changed: Condvar,
    most: Option<usize>,
}

/// A lane waits no longer than this for its collector, which may be gone.
const COLLECTOR_PATIENCE: Duration = Duration::from_secs(10);

impl Outbox {
    /// One in which no more than `most` intervals wait: a lane that is ahead waits instead. Only for a lane whose time is
    /// simulated, for that passes faster than intervals are kept; where time is real, a lane must never wait.
    pub fn bounded(most: usize) -> Self {
        Self { most: Some(most), ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(IntervalId, Box<Recorded>)>> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, id: IntervalId, recorded: Box<Recorded>) {
        let mut finished = self.lock();
        if let Some(most) = self.most {
            let waited = self.changed.wait_timeout_while(finished, COLLECTOR_PATIENCE, |waiting| waiting.len() >= most);
            finished = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        finished.push_back((id, recorded));
        self.changed.notify_all();
    }

    /// Takes the oldest finished interval, waiting up to `patience` for one.
    pub fn take(&self, patience: Duration) -> Option<(IntervalId, Box<Recorded>)> {
        let guard = self.lock();
        let waited = self.changed.wait_timeout_while(guard, patience, |finished| finished.is_empty());
        let taken = waited.unwrap_or_else(PoisonError::into_inner).0.pop_front();
        self.changed.notify_all();
        taken
    }
}

/// The recorder of one thread that drives sessions.
#[derive(Debug)]
pub struct LaneRecorder {
    timeline: Arc<Timeline>,
    outbox: Arc<Outbox>,
    interval: IntervalId,
    scheduled_end_ns: u64,
    closed: bool,
    /// Processor time of the thread when the present interval began.
    cpu_ns: u64,
    now: Box<Recorded>,
}

impl LaneRecorder {
    /// A recorder that begins with interval 0. Must be made on the thread that records.
    pub fn new(timeline: Arc<Timeline>, outbox: Arc<Outbox>) -> Self {
        let scheduled_end_ns = timeline.scheduled_end_ns(0);
        Self {
            timeline,
            outbox,
            interval: 0,
            scheduled_end_ns,
            closed: false,
            cpu_ns: thread_cpu_ns(),
            now: Box::default(),
        }
    }

    /// The step's instants.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// When the present interval ends: the thread must call [`LaneRecorder::advance`] soon after.
    pub fn interval_end_ns(&self) -> u64 {
        self.scheduled_end_ns.min(self.timeline.closed_at_ns())
    }

    /// Whether the window is over, so that nothing is recorded any more.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Tells the recorder what time it is. What is recorded next belongs to the interval that holds `now_ns`; instants
    /// must not run backwards by more than one batch of completions.
    #[inline]
    pub fn advance(&mut self, now_ns: u64) {
        if now_ns >= self.scheduled_end_ns || now_ns >= self.timeline.closed_at_ns() {
            self.hand_over(now_ns);
        }
    }

    #[cold]
    fn hand_over(&mut self, now_ns: u64) {
        let cpu_ns = thread_cpu_ns();
        self.now.cpu_ns += cpu_ns.saturating_sub(std::mem::replace(&mut self.cpu_ns, cpu_ns));
        while !self.closed && now_ns >= self.interval_end_ns() {
            self.closed = self.timeline.is_last(self.interval);
            self.outbox.put(self.interval, std::mem::take(&mut self.now));
            self.interval += 1;
            self.scheduled_end_ns = self.timeline.scheduled_end_ns(self.interval);
        }
        if self.closed {
            *self.now = Recorded::default();
        }
    }

    /// Adds to a counter.
    #[inline]
    pub fn count(&mut self, counter: Counter, by: u64) {
        self.now.count(counter, by);
    }

    /// Records a wait that ended at the instant last asked to [`LaneRecorder::advance`].
    #[inline]
    pub fn wait(&mut self, event: WaitEvent, ns: u64) {
        self.now.wait(event, ns);
    }

    /// Counts attempts at a connection that failed.
    pub fn failed_connects(&mut self, failed: &FailedConnects) {
        self.now.failed_connects.add(failed);
    }

    /// Records an operation that ended at the instant last asked to [`LaneRecorder::advance`].
    #[inline]
    pub fn operation(&mut self, kind: usize, block_touches: u64, service_ns: u64, response_ns: u64) {
        self.now.count(Counter::Operations, 1);
        let timings = self.now.operations[kind].get_or_insert_default();
        timings.count += 1;
        timings.block_touches += block_touches;
        if service_ns == response_ns {
            timings.prompt.record(service_ns);
        } else {
            timings.late_service.record(service_ns);
            timings.late_response.record(response_ns);
        }
    }

    /// Counts an operation that failed. It has no latency.
    pub fn failed_operation(&mut self, kind: usize) {
        self.now.count(Counter::Errors, 1);
        let timings = self.now.operations[kind].get_or_insert_default();
        timings.count += 1;
        timings.errors += 1;
    }

    /// Counts what a transaction came to that ended at the instant last asked to [`LaneRecorder::advance`], however it ended.
    pub fn transaction(&mut self, kind: usize, tally: &Tally) {
        self.now.count(Counter::Commits, tally.commits);
        self.now.operations[kind].get_or_insert_default().transactions.get_or_insert_default().add(tally);
    }

    /// Records how long after its due instant an operation of an open loop was sent, and how much of that the generator itself
    /// took: the time in which a slot was free for it.
    #[inline]
    pub fn schedule_lag(&mut self, ns: u64, own_ns: u64) {
        self.now.schedule_lag.get_or_insert_default().record(ns);
        self.now.own_lag.get_or_insert_default().record(own_ns);
    }
}

/// A recorder for engine threads that work in batches: a lock for each batch is nothing there.
#[derive(Debug, Default)]
pub struct SharedRecorder(Mutex<Recorded>);

impl SharedRecorder {
    /// Records under the lock.
    pub fn with(&self, record: impl FnOnce(&mut Recorded)) {
        record(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Takes everything recorded since the last call.
    pub fn take(&self) -> Recorded {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder(window_ns: Option<u64>) -> (LaneRecorder, Arc<Timeline>, Arc<Outbox>) {
        let timeline = Arc::new(Timeline::new(1000, 0, window_ns, 100));
        let outbox = Arc::new(Outbox::default());
        (LaneRecorder::new(Arc::clone(&timeline), Arc::clone(&outbox)), timeline, outbox)
    }

    fn taken(outbox: &Outbox) -> Vec<(IntervalId, u64)> {
        let mut all = Vec::new();
        while let Some((id, recorded)) = outbox.take(Duration::ZERO) {
            all.push((id, recorded.counts[Counter::Commits as usize]));
        }
        all
    }

    #[test]
    fn what_is_recorded_belongs_to_the_interval_of_its_instant() {
        let (mut recorder, _, outbox) = recorder(Some(300));
        for (instant, count) in [(1000, 1), (1099, 2), (1100, 4), (1299, 8), (1300, 16)] {
            recorder.advance(instant);
            recorder.count(Counter::Commits, count);
        }
        assert_eq!(taken(&outbox), [(0, 3), (1, 4), (2, 8)], "16 came after the window");
        assert!(recorder.is_closed());
    }

    #[test]
    fn an_interval_without_events_is_handed_over_all_the_same() {
        let (mut recorder, _, outbox) = recorder(Some(300));
        recorder.advance(1250);
        assert_eq!(taken(&outbox), [(0, 0), (1, 0)]);
    }

    #[test]
    fn closing_early_cuts_the_interval_and_drops_what_follows() {
        let (mut recorder, timeline, outbox) = recorder(None);
        recorder.advance(1110);
        recorder.count(Counter::Commits, 1);
        timeline.close(1150);
        recorder.advance(1160);
        recorder.count(Counter::Commits, 5);
        recorder.advance(1500);
        assert_eq!(taken(&outbox), [(0, 0), (1, 1)]);
    }

    #[test]
    fn operations_keep_service_and_response_apart() {
        let (mut recorder, _, outbox) = recorder(Some(100));
        recorder.operation(1, 64, 10, 30);
        recorder.operation(1, 64, 5, 5);
        recorder.advance(1100);
        let (_, recorded) = outbox.take(Duration::ZERO).unwrap();
        let timings = recorded.operations[1].as_ref().unwrap();
        let (mut service, mut response) = (Histogram::default(), Histogram::default());
        timings.merge_service_into(&mut service);
        timings.merge_response_into(&mut response);
        assert_eq!(
            (service.total_ns(), service.count(), response.total_ns(), response.count()),
            (Some(15), 2, Some(35), 2)
        );
        assert_eq!((timings.count, timings.block_touches), (2, 128));
        assert_eq!(recorded.counts[Counter::Operations as usize], 2);
    }

    #[test]
    fn a_failed_operation_is_counted_and_has_no_latency() {
        let (mut recorder, _, outbox) = recorder(Some(100));
        recorder.failed_operation(0);
        recorder.advance(1100);
        let (_, recorded) = outbox.take(Duration::ZERO).unwrap();
        let timings = recorded.operations[0].as_ref().unwrap();
        let mut response = Histogram::default();
        timings.merge_response_into(&mut response);
        assert_eq!((timings.count, timings.errors, response.count()), (1, 1, 0));
        assert_eq!(recorded.counts[Counter::Operations as usize], 0);
    }
}
