//! What one thread saw, interval by interval.
//!
//! A [`LaneRecorder`] belongs to one thread: recording takes no lock and allocates nothing once an event has been seen in
//! the interval. At an interval's end the thread hands its counts over and goes on with empty ones; the collector merges
//! the threads' parts. Engine threads that work in batches share a [`SharedRecorder`] instead.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::os::{thread_cpu_ns, thread_run_delay_ns};
use super::slow::{EndedOperation, SlowOnes, SlowSample};
use super::{Counter, WaitEvent};
use model::record::{Counts, Histogram, TransactionStats};

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
    /// From due to the error, of those that failed.
    failed: Option<Box<Timings>>,
}

impl OperationTimings {
    /// Adds the times from sent to finished to `histogram`.
    pub fn merge_service_into(&self, histogram: &mut Histogram) {
        self.late_service.merge_into(histogram);
        self.prompt.merge_into(histogram);
    }

    /// Adds the times from due to the error to `histogram`.
    pub fn merge_failed_into(&self, histogram: &mut Histogram) {
        if let Some(failed) = &self.failed {
            failed.merge_into(histogram);
        }
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
    /// Time for which it was ready to run and got no processor; absent where that is not known.
    pub run_delay_ns: Option<u64>,
    /// Operations that were slow.
    pub slow: SlowOnes,
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
            run_delay_ns: None,
            slow: SlowOnes::default(),
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
    /// The same of the time that it waited for a processor.
    run_delay_ns: Option<u64>,
    slow: SlowSample,
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
            run_delay_ns: thread_run_delay_ns(),
            slow: SlowSample::default(),
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
        // Told of each operation that ends late, of which a lane may have a hundred thousand.
        if self.closed {
            return;
        }
        let cpu_ns = thread_cpu_ns();
        self.now.cpu_ns += cpu_ns.saturating_sub(std::mem::replace(&mut self.cpu_ns, cpu_ns));
        let delay_ns = thread_run_delay_ns();
        let before_ns = std::mem::replace(&mut self.run_delay_ns, delay_ns);
        self.now.run_delay_ns = delay_ns.zip(before_ns).map(|(now, before)| now.saturating_sub(before));
        let mut response = Histogram::default();
        self.now.operations.iter().flatten().for_each(|operations| operations.merge_response_into(&mut response));
        self.now.slow = self.slow.end_interval(&response);
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
    pub fn operation(&mut self, ended: &EndedOperation) {
        let EndedOperation { kind, block_touches, service_ns, response_ns, .. } = *ended;
        self.slow.see(ended);
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

    /// Counts an operation that failed so long after it was due. This time does not count as latency: the work was not done.
    pub fn failed_operation(&mut self, kind: usize, after_ns: u64) {
        self.now.count(Counter::Errors, 1);
        let timings = self.now.operations[kind].get_or_insert_default();
        timings.count += 1;
        timings.errors += 1;
        timings.failed.get_or_insert_default().record(after_ns);
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

// Sessions that are made while load runs.

/// Why an attempt at a connection failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectFailure {
    /// The server, or the user's share of it, takes no more sessions for now.
    OutOfConnections,
    /// Nobody took the connection: no listener, a full queue of them, a server that starts or stops.
    Refused,
    /// The server does not let this user in, or not with this password, or not to this database.
    Login,
    /// Anything else, such as encryption.
    Other,
}

impl ConnectFailure {
    /// Every reason, in the order of its number.
    pub const ALL: [Self; 4] = [Self::OutOfConnections, Self::Refused, Self::Login, Self::Other];

    /// The word for it in tables and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OutOfConnections => "out of connections",
            Self::Refused => "refused",
            Self::Login => "login",
            Self::Other => "other",
        }
    }

    /// Whether an application would try again: the reason may pass by itself.
    pub const fn is_worth_another_attempt(self) -> bool {
        matches!(self, Self::OutOfConnections | Self::Refused)
    }
}

/// Attempts that failed, by [`ConnectFailure`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailedConnects([u64; ConnectFailure::ALL.len()]);

impl FailedConnects {
    /// Counts one.
    pub fn count(&mut self, failure: ConnectFailure) {
        self.0[failure as usize] += 1;
    }

    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }

    /// How many failed.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The document's form: reasons that there were.
    pub fn by_reason(&self) -> BTreeMap<String, u64> {
        let reasons = ConnectFailure::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0);
        reasons.map(|(reason, count)| (reason.name().to_owned(), count)).collect()
    }
}

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

/// Why a server refused what a transaction asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalClass {
    /// Two sessions waited for each other.
    Deadlock,
    /// The isolation level does not let it see what it saw.
    Serialization,
    /// Somebody else held a lock for too long.
    LockTimeout,
    /// It took too long, or somebody cancelled it.
    Cancelled,
    /// A key, a foreign key or a check stands against it.
    Constraint,
    /// Anything else.
    Other,
}

impl RefusalClass {
    /// Every class, in the order of its number.
    pub const ALL: [Self; 6] =
        [Self::Deadlock, Self::Serialization, Self::LockTimeout, Self::Cancelled, Self::Constraint, Self::Other];

    /// The word for it in tables and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deadlock => "deadlock",
            Self::Serialization => "serialization failure",
            Self::LockTimeout => "lock timeout",
            Self::Cancelled => "cancelled",
            Self::Constraint => "constraint",
            Self::Other => "other",
        }
    }

    /// Whether an application would try the same again: whoever does may succeed.
    pub const fn is_worth_another_attempt(self) -> bool {
        matches!(self, Self::Deadlock | Self::Serialization | Self::LockTimeout)
    }
}

/// What one transaction, or many of one kind, came to. Attempts that were given up count like the last one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Statements that were sent and answered, those that begin and end transactions left out.
    pub statements: u64,
    /// Times that an answer was waited for.
    pub round_trips: u64,
    /// Rows that queries gave.
    pub rows_read: u64,
    /// Rows that were inserted, changed or removed.
    pub rows_changed: u64,
    /// Commits that were acknowledged.
    pub commits: u64,
    /// Rollbacks that the transaction itself asked for, such as of an order of products that are sold out.
    pub rollbacks: u64,
    /// Attempts that the server refused and that were made again, by [`RefusalClass`].
    pub retries: [u64; RefusalClass::ALL.len()],
    /// Transactions that failed, by the class of the last refusal.
    pub failures: [u64; RefusalClass::ALL.len()],
    /// Pauses between its steps, in nanoseconds.
    pub paused_ns: u64,
}

impl Tally {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        let Self { statements, round_trips, rows_read, rows_changed, commits, rollbacks, retries, failures, paused_ns } =
            other;
        self.statements += statements;
        self.round_trips += round_trips;
        self.rows_read += rows_read;
        self.rows_changed += rows_changed;
        self.commits += commits;
        self.rollbacks += rollbacks;
        self.retries.iter_mut().zip(retries).for_each(|(sum, more)| *sum += more);
        self.failures.iter_mut().zip(failures).for_each(|(sum, more)| *sum += more);
        self.paused_ns = self.paused_ns.saturating_add(*paused_ns);
    }

    /// The document's form.
    pub fn stats(&self) -> TransactionStats {
        let by_class = |counts: &[u64; RefusalClass::ALL.len()]| -> BTreeMap<String, u64> {
            let classes = RefusalClass::ALL.into_iter().zip(counts).filter(|(_, count)| **count > 0);
            classes.map(|(class, count)| (class.name().to_owned(), *count)).collect()
        };
        TransactionStats {
            statements: self.statements,
            round_trips: self.round_trips,
            rows_read: self.rows_read,
            rows_changed: self.rows_changed,
            commits: self.commits,
            rollbacks: self.rollbacks,
            retries: by_class(&self.retries),
            failures: by_class(&self.failures),
            paused_ns: self.paused_ns,
        }
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
        let ended =
            EndedOperation { kind: 1, session: 4, at_ns: 1_050, block_touches: 64, service_ns: 10, response_ns: 30 };
        let stalled = EndedOperation { service_ns: 50_000_000, response_ns: 50_000_000, ..ended };
        recorder.operation(&stalled);
        recorder.operation(&ended);
        recorder.operation(&EndedOperation { service_ns: 5, response_ns: 5, ..ended });
        recorder.advance(1100);
        let (_, recorded) = outbox.take(Duration::ZERO).unwrap();
        let timings = recorded.operations[1].as_ref().unwrap();
        let (mut service, mut response) = (Histogram::default(), Histogram::default());
        timings.merge_service_into(&mut service);
        timings.merge_response_into(&mut response);
        assert_eq!(
            (service.total_ns(), service.count(), response.total_ns(), response.count()),
            (Some(50_000_015), 3, Some(50_000_035), 3)
        );
        assert_eq!((timings.count, timings.block_touches), (3, 192));
        assert_eq!((recorded.slow.long.count, recorded.slow.long.kept), (1, vec![stalled]));
        assert_eq!(recorded.counts[Counter::Operations as usize], 3);
    }

    #[test]
    fn a_failed_operation_is_counted_with_a_time_that_is_no_latency() {
        let (mut recorder, _, outbox) = recorder(Some(100));
        recorder.failed_operation(0, 70);
        recorder.advance(1100);
        let (_, recorded) = outbox.take(Duration::ZERO).unwrap();
        let timings = recorded.operations[0].as_ref().unwrap();
        let mut response = Histogram::default();
        timings.merge_response_into(&mut response);
        let mut failed = Histogram::default();
        timings.merge_failed_into(&mut failed);
        assert_eq!((timings.count, timings.errors, response.count()), (1, 1, 0));
        assert_eq!((failed.count(), failed.total_ns()), (1, Some(70)));
        assert_eq!(recorded.counts[Counter::Operations as usize], 0);
    }

    #[test]
    fn failures_are_counted_by_their_reason_and_only_some_pass_by_themselves() {
        let mut failed = FailedConnects::default();
        for (reason, times) in ConnectFailure::ALL.into_iter().zip([3, 0, 1, 2]) {
            (0..times).for_each(|_| failed.count(reason));
        }
        let more = failed;
        failed.add(&more);
        assert_eq!(failed.total(), 12);
        let expected = [("login", 2), ("other", 4), ("out of connections", 6)];
        assert_eq!(failed.by_reason(), expected.map(|(reason, count)| (reason.to_owned(), count)).into());
        let passing = ConnectFailure::ALL.map(ConnectFailure::is_worth_another_attempt);
        assert_eq!(passing, [true, true, false, false]);
    }

    #[test]
    fn sums_have_everything_and_documents_only_classes_that_happened() {
        let mut sum = Tally { statements: 3, commits: 1, ..Tally::default() };
        let mut more = Tally { rows_changed: 4, paused_ns: 5, ..Tally::default() };
        more.retries[RefusalClass::LockTimeout as usize] = 2;
        sum.add(&more);
        let stats = sum.stats();
        assert_eq!((stats.statements, stats.commits, stats.rows_changed, stats.paused_ns), (3, 1, 4, 5));
        assert_eq!(stats.retries, BTreeMap::from([("lock timeout".to_owned(), 2)]));
        assert!(stats.failures.is_empty());
    }

    #[test]
    fn classes_stand_in_the_list_at_their_numbers() {
        for (place, class) in RefusalClass::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, place);
        }
    }
}

#[cfg(test)]
mod timeline_tests {
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
