//! One lane's thread where sessions take many operations at a time.
//!
//! The target times each operation of a batch itself and reports on all when the batch has ended. So operations become known
//! late and out of their order, and are kept until nothing can come any more that ended before them: then they are recorded
//! in their order, each in the interval in which it ended. Load is never waited for: while old results are put in order, new
//! batches are under way.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use super::StepPlan;
use super::drive::{LaneReport, MAX_ERRORS, Part, outstanding_of};
use super::waiting::UnderWay;
use measure::{Clock, Counter, EndedOperation, LaneRecorder, OPERATION_KINDS, Outbox, Timeline, WaitEvent};
use model::record::Unended;
use model::workload::{Drawn, Operation, Shape, Stream};
use targets::{BatchLane, BatchedOperation, FinishedBatch, OperationResult, TargetError};

/// A batch is at most so many times as long as any before it: what the first few operations took reports little.
const GROWTH: usize = 4;

/// A batch that is still under way so long after the window closed is asked to end, and a while later given up.
const BREAK_OFF_NS: u64 = 2_000_000_000;
const GIVE_UP_NS: u64 = 10_000_000_000;

/// No operation is kept longer than this for the sake of its order. Only what ended long before the end of a batch that took
/// longer than this is then recorded in a later interval than its own.
const LONGEST_KEPT_NS: u64 = 10_000_000_000;

/// How often a lane looks up at the latest.
const LOOK_AROUND_NS: u64 = 20_000_000;

/// Another lane's session that completes its work loop closes the window at an instant which is past by the time it is
/// known. What ended so short a time ago is not recorded yet, or it would count in a window that had closed before.
const HOLD_BACK_NS: u64 = 100_000_000;

/// One operation whose turn to be recorded comes when nothing can have ended before it.
#[derive(Debug)]
struct Known {
    /// Its session's number in the step.
    session: u32,
    kind: u8,
    failed: bool,
    done: BatchedOperation,
}

impl Happened for Known {
    fn at_ns(&self) -> u64 {
        self.done.ended_ns
    }
}

/// How long a session's next operations will take, as far as that is known.
#[derive(Debug)]
struct Expectation {
    /// One operation, by its kind; nothing before the first has ended.
    each_ns: [Option<u64>; OPERATION_KINDS],
    /// Most operations of the next batch.
    most: usize,
}

impl Expectation {
    /// A new session begins with one operation, to learn how long one takes.
    fn new() -> Self {
        Self { each_ns: [None; OPERATION_KINDS], most: 1 }
    }

    /// Learns from a batch that has ended: rises at once, since a batch must not become too long, and falls by halves.
    fn learn(&mut self, ended: impl Iterator<Item = (usize, u64)>) {
        let mut sums = [(0, 0); OPERATION_KINDS];
        let mut operations = 0;
        for (kind, service_ns) in ended {
            sums[kind].0 += 1;
            sums[kind].1 += service_ns;
            operations += 1;
        }
        for (each, (count, sum_ns)) in self.each_ns.iter_mut().zip(sums).filter(|(_, (count, _))| *count > 0) {
            let now_ns: u64 = sum_ns / count;
            *each = Some(each.map_or(now_ns, |before| now_ns.max(before.midpoint(now_ns))).max(1));
        }
        self.most = self.most.max(operations * GROWTH);
    }

    /// Learns that a batch of so many operations failed, perhaps because it took too long.
    fn learn_failure(&mut self, operations: usize) {
        self.most = (operations / 2).max(1);
    }
}

struct SessionState<S: Shape> {
    stream: u32,
    /// Drawn, and put off to the next batch because the last would have become too long with it.
    put_off: Option<Drawn<S::Operation>>,
    /// The kinds of what is under way, and since when.
    kinds: Vec<u8>,
    sent_ns: Option<u64>,
    /// What it thinks when that has ended.
    think_ns: u64,
    /// When what it did last had ended; it stands idle since.
    ended_ns: u64,
    expected: Expectation,
    /// Operations left of the work loop.
    left: u64,
}

impl<S: Shape> SessionState<S> {
    /// Fills the next batch: at most `max_operations` that together take about `batch_ns`, and nothing after one that is thought
    /// about.
    fn fill(&mut self, stream: &mut S::Stream, batch_ns: u64, max_operations: usize, batch: &mut Vec<S::Operation>) {
        let most = (self.expected.most.min(max_operations) as u64).min(self.left) as usize;
        let mut takes_ns = 0_u64;
        batch.clear();
        self.kinds.clear();
        self.think_ns = 0;
        while batch.len() < most && takes_ns < batch_ns {
            let drawn = self.put_off.take().unwrap_or_else(|| stream.draw());
            let expected_ns = self.expected.each_ns[drawn.operation.kind_index()];
            if !batch.is_empty() && expected_ns.is_some_and(|each| takes_ns.saturating_add(each) > batch_ns) {
                self.put_off = Some(drawn);
                return;
            }
            // Nothing follows what is done for the first time: nobody knows how long it takes.
            takes_ns = takes_ns.saturating_add(expected_ns.unwrap_or(batch_ns));
            self.kinds.push(drawn.operation.kind_index() as u8);
            batch.push(drawn.operation);
            if drawn.think_ns > 0 {
                self.think_ns = drawn.think_ns;
                return;
            }
        }
    }
}

/// Drives one lane in batches. Made when the start is known.
pub(super) struct BatchDriver<'a, S: Shape> {
    clock: Clock,
    timeline: &'a Timeline,
    recorder: LaneRecorder,
    under_way: &'a UnderWay,
    /// The number of its first session in the step.
    first_session: u32,
    has_work_loop: bool,
    hold_back_ns: u64,
    streams: Vec<S::Stream>,
    sessions: Vec<SessionState<S>>,
    ready: VecDeque<u32>,
    /// Sessions that think, and until when.
    thinking: BinaryHeap<Reverse<(u64, u32)>>,
    /// What is known and not yet recorded.
    known: InOrder<Known>,
    operations: Vec<S::Operation>,
    /// Batches that failed since the last one that did not: in each of them one operation did.
    errors: u64,
    /// What was under way was asked to end.
    broken_off: bool,
    report: LaneReport,
}

impl<'a, S: Shape> BatchDriver<'a, S> {
    pub(super) fn new(
        plan: &'a StepPlan<S>,
        part: Part,
        clock: Clock,
        timeline: &'a Arc<Timeline>,
        (outbox, under_way): (&Arc<Outbox>, &'a UnderWay),
    ) -> Self {
        let numbers = part.first_session..part.first_session + part.sessions;
        let streams = part.streams(&plan.shape);
        let first_stream = streams.start;
        let has_work_loop = plan.work_loop.is_some();
        Self {
            clock,
            timeline,
            recorder: LaneRecorder::new(Arc::clone(timeline), Arc::clone(outbox)),
            under_way,
            first_session: part.first_session,
            has_work_loop,
            hold_back_ns: if has_work_loop && part.lanes > 1 { HOLD_BACK_NS } else { 0 },
            streams: streams.map(|stream| plan.shape.stream(plan.seed, stream)).collect(),
            sessions: numbers
                .map(|session| SessionState {
                    stream: plan.shape.stream_of(session) - first_stream,
                    put_off: None,
                    kinds: Vec::new(),
                    sent_ns: None,
                    think_ns: 0,
                    ended_ns: timeline.start_ns(),
                    expected: Expectation::new(),
                    left: plan.work_loop.unwrap_or(u64::MAX),
                })
                .collect(),
            ready: (0..part.sessions).collect(),
            thinking: BinaryHeap::new(),
            known: InOrder::new(part.sessions),
            operations: Vec::new(),
            errors: 0,
            broken_off: false,
            report: LaneReport::default(),
        }
    }

    /// Drives the lane until everything that ended in the window is known, then gives up what is under way.
    pub(super) fn run(mut self, lane: &mut dyn BatchLane<S::Operation>) -> Result<LaneReport, TargetError> {
        let result = self.drive(lane);
        if result.is_err() {
            self.timeline.close(self.clock.now_ns());
        }
        // Whatever happened, what was measured is handed over.
        self.record_until(u64::MAX);
        self.recorder.advance(self.clock.now_ns().max(self.timeline.closed_at_ns()));
        match (result, lane.abandon()) {
            // What ended only now is late as well: nobody knows any more when its operations ended.
            (Err(TargetError::Silent { waited_ns, .. }), Ok(()) | Err(TargetError::StillAtWork { .. })) => {
                let late = self.sessions.iter().filter(|session| session.sent_ns.is_some());
                late.for_each(|session| add_unended(&mut self.report, session.kinds.len(), waited_ns));
                Ok(self.report)
            }
            (result, abandoned) => result.and(abandoned).map(|()| self.report),
        }
    }

    fn drive(&mut self, lane: &mut dyn BatchLane<S::Operation>) -> Result<(), TargetError> {
        let mut finished = Vec::new();
        loop {
            let now = self.clock.now_ns();
            let closed_at_ns = self.timeline.closed_at_ns();
            let oldest_ns = self.sessions.iter().filter_map(|session| session.sent_ns).min();
            let mut until_ns = now + LOOK_AROUND_NS;
            if now < closed_at_ns {
                self.record_until(self.in_order_until(oldest_ns, now));
                self.wake_thinkers(now);
                self.send_ready(lane)?;
                until_ns = self.thinking.peek().map_or(until_ns, |Reverse((wakes_ns, _))| until_ns.min(*wakes_ns));
            } else if oldest_ns.is_none() {
                return Ok(());
            }
            let is_sent = |session: &&SessionState<S>| session.sent_ns.is_some();
            self.under_way.set(self.sessions.iter().filter(is_sent).map(|session| session.kinds.len()).sum());
            let over_ns = now.saturating_sub(closed_at_ns);
            if over_ns > BREAK_OFF_NS && !self.broken_off {
                lane.break_off();
                self.broken_off = true;
            }
            if over_ns > GIVE_UP_NS {
                let silent = self.sessions.iter().filter(|session| session.sent_ns.is_some()).count();
                return Err(TargetError::Silent { sessions: silent as u64, waited_ns: over_ns });
            }
            lane.poll(until_ns, &mut finished)?;
            for batch in finished.drain(..) {
                self.finish(batch)?;
            }
        }
    }

    /// Until when everything that has ended is known: until the oldest batch under way was sent.
    fn in_order_until(&self, oldest_ns: Option<u64>, now: u64) -> u64 {
        let known_until = oldest_ns.unwrap_or(now).saturating_sub(self.hold_back_ns);
        known_until.max(now.saturating_sub(LONGEST_KEPT_NS))
    }

    /// Records, in their order, all operations that ended until then.
    fn record_until(&mut self, until_ns: u64) {
        let Self { known, recorder, report, timeline, .. } = self;
        let closed_at_ns = timeline.closed_at_ns();
        known.take_until(until_ns, |Known { session, kind, failed, done }| {
            let kind = usize::from(kind);
            let BatchedOperation { ended_ns: at_ns, block_touches, service_ns, .. } = done;
            let ended = EndedOperation { kind, session, at_ns, block_touches, service_ns, response_ns: service_ns };
            recorder.advance(at_ns);
            if recorder.is_closed() {
                // Those of a batch that began later were not due in the window. Of a failed one it is not known which did.
                if failed {
                    outstanding_of(&mut report.outstanding, S::Operation::KINDS[kind]).errors += 1;
                } else if done.ended_ns.saturating_sub(done.service_ns) < closed_at_ns {
                    let late = outstanding_of(&mut report.outstanding, S::Operation::KINDS[kind]);
                    late.service.record(done.service_ns);
                    late.response.record(done.service_ns);
                    report.keep_late(ended);
                }
                return;
            }
            if failed {
                recorder.failed_operation(kind, done.service_ns);
                return;
            }
            recorder.operation(&ended);
            recorder.count(Counter::BlockChanges, done.block_changes);
            if let Some(commit_ns) = done.commit_ns {
                recorder.count(Counter::Commits, 1);
                recorder.wait(WaitEvent::Commit, commit_ns);
            }
        });
        if until_ns < u64::MAX {
            self.recorder.advance(until_ns);
        }
    }

    fn wake_thinkers(&mut self, now: u64) {
        while let Some(Reverse((wakes_ns, session))) =
            self.thinking.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            self.thinking.pop();
            self.sessions[session as usize].ended_ns = wakes_ns;
            self.ready.push_back(session);
        }
    }

    fn send_ready(&mut self, lane: &mut dyn BatchLane<S::Operation>) -> Result<(), TargetError> {
        while let Some(index) = self.ready.pop_front() {
            let session = &mut self.sessions[index as usize];
            let stream = &mut self.streams[session.stream as usize];
            session.fill(stream, lane.batch_ns(), lane.max_operations(), &mut self.operations);
            let now = self.clock.now_ns();
            session.sent_ns = Some(now);
            lane.send(index, &self.operations, now)?;
        }
        Ok(())
    }

    fn finish(&mut self, finished: FinishedBatch) -> Result<(), TargetError> {
        let FinishedBatch { session: index, operations, result } = finished;
        let now = self.clock.now_ns();
        match result {
            OperationResult::Done => self.finish_done(index, &operations, now),
            OperationResult::Failed => self.finish_failed(index, now)?,
        }
        let session = &mut self.sessions[index as usize];
        session.sent_ns = None;
        if session.left == 0 {
            // From now on not all sessions are at work, so the window ends here. What ended it belongs to it, and is recorded
            // only after the window is known to end.
            self.timeline.close(session.ended_ns + 1);
            return Ok(());
        }
        match session.think_ns {
            0 => self.ready.push_back(index),
            think_ns => self.thinking.push(Reverse((session.ended_ns + think_ns, index))),
        }
        Ok(())
    }

    fn finish_done(&mut self, index: u32, operations: &[BatchedOperation], now: u64) {
        let number = self.first_session + index;
        let session = &mut self.sessions[index as usize];
        assert_eq!(operations.len(), session.kinds.len(), "a lane reports on each operation of a batch");
        let sent_ns = session.sent_ns.expect("only batches that were sent end");
        let kinds = session.kinds.iter().map(|kind| usize::from(*kind));
        session.expected.learn(kinds.zip(operations.iter().map(|done| done.service_ns)));
        let (window_start_ns, closed_at_ns) = (self.timeline.window_start_ns(), self.timeline.closed_at_ns());
        let known = session.kinds.iter().zip(operations).map(|(&kind, done)| {
            // Never before it was sent, whatever two clocks say of each other, nor after it was known.
            let ended_ns = done.ended_ns.clamp(sent_ns, now);
            let began_ns = ended_ns.saturating_sub(done.service_ns);
            let idle_since_ns = session.ended_ns.max(window_start_ns);
            self.report.idle_session_ns += began_ns.min(closed_at_ns).saturating_sub(idle_since_ns);
            session.ended_ns = ended_ns;
            if self.has_work_loop && ended_ns >= window_start_ns {
                session.left -= 1;
            }
            Known { session: number, kind, failed: false, done: BatchedOperation { ended_ns, ..*done } }
        });
        self.known.add(index, known.collect());
        self.errors = 0;
    }

    /// What of a failed batch was done is not known, so none of it is counted as done: each failed when the batch did, so long after the
    /// batch was sent.
    fn finish_failed(&mut self, index: u32, now: u64) -> Result<(), TargetError> {
        let number = self.first_session + index;
        let session = &mut self.sessions[index as usize];
        session.expected.learn_failure(session.kinds.len());
        if self.broken_off {
            // The end is ours and no error of the server, which had not done in all that time what it was sent.
            let waited_ns = now.saturating_sub(self.timeline.closed_at_ns());
            add_unended(&mut self.report, session.kinds.len(), waited_ns);
            session.ended_ns = now;
            return Ok(());
        }
        let service_ns = now.saturating_sub(session.sent_ns.unwrap_or(now));
        let failed = session.kinds.iter().map(|&kind| Known {
            session: number,
            kind,
            failed: true,
            done: BatchedOperation { ended_ns: now, service_ns, commit_ns: None, block_touches: 0, block_changes: 0 },
        });
        self.known.add(index, failed.collect());
        session.ended_ns = now;
        if self.has_work_loop && now >= self.timeline.window_start_ns() {
            session.left -= session.kinds.len() as u64;
        }
        self.errors += 1;
        if self.errors > MAX_ERRORS {
            return Err(TargetError::TooManyErrors { errors: self.errors });
        }
        Ok(())
    }
}

/// Counts a batch of so many operations that had not ended so long after the window.
fn add_unended(report: &mut LaneReport, operations: usize, waited_ns: u64) {
    let unended = report.unended.get_or_insert_default();
    unended.add(&Unended { operations: operations as u64, sessions: 1, waited_ns });
}

/// Something that happened at an instant.
trait Happened {
    /// When, in nanoseconds of the run's clock.
    fn at_ns(&self) -> u64;
}

/// Lists of many sessions. Within a session everything is in its order, from list to list as well.
#[derive(Debug)]
struct InOrder<T> {
    sessions: Vec<VecDeque<std::vec::IntoIter<T>>>,
    /// The first instant of each session that has any.
    heads: BinaryHeap<Reverse<(u64, u32)>>,
}

impl<T: Happened> InOrder<T> {
    /// Of so many sessions, and nothing of any yet.
    pub(super) fn new(sessions: u32) -> Self {
        Self { sessions: (0..sessions).map(|_| VecDeque::new()).collect(), heads: BinaryHeap::new() }
    }

    /// Adds what a session did after everything that is known of it.
    pub(super) fn add(&mut self, session: u32, list: Vec<T>) {
        debug_assert!(list.is_sorted_by_key(T::at_ns), "what a session did is in its order");
        let Some(first) = list.first() else { return };
        let lists = &mut self.sessions[session as usize];
        if lists.is_empty() {
            self.heads.push(Reverse((first.at_ns(), session)));
        }
        lists.push_back(list.into_iter());
    }

    /// Takes everything until `until_ns` inclusive, in its order.
    pub(super) fn take_until(&mut self, until_ns: u64, mut each: impl FnMut(T)) {
        while let Some(mut head) = self.heads.peek_mut() {
            let Reverse((at_ns, session)) = *head;
            if at_ns > until_ns {
                return;
            }
            let lists = &mut self.sessions[session as usize];
            // A head stands for a list that is not at its end.
            if let Some(next) = lists.front_mut().and_then(Iterator::next) {
                each(next);
            }
            if lists.front().is_some_and(|list| list.as_slice().is_empty()) {
                lists.pop_front();
            }
            match lists.front().and_then(|list| list.as_slice().first()) {
                Some(following) => *head = Reverse((following.at_ns(), session)),
                None => drop(PeekMut::pop(head)),
            }
        }
    }
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;

#[cfg(test)]
mod in_order_tests {
    use proptest::prelude::*;

    use super::*;

    impl Happened for (u64, u32) {
        fn at_ns(&self) -> u64 {
            self.0
        }
    }

    proptest! {
        #[test]
        fn everything_comes_once_in_its_order_and_nothing_before_its_time(
            lists in prop::collection::vec((0..4_u32, prop::collection::vec(0..9_u64, 0..5)), 0..12),
            looks in prop::collection::vec(0..200_u64, 0..6),
        ) {
            let mut known = InOrder::new(4);
            let (mut ended, mut all, mut taken) = ([0; 4], Vec::new(), Vec::new());
            for (session, steps) in lists {
                let at = &mut ended[session as usize];
                let list: Vec<(u64, u32)> = steps.iter().map(|step| { *at += step; (*at, session) }).collect();
                all.extend_from_slice(&list);
                known.add(session, list);
            }
            all.sort_unstable();
            let mut until = 0;
            for look in looks {
                until = look.max(until);
                known.take_until(until, |one| taken.push(one));
                prop_assert_eq!(taken.len(), all.iter().filter(|(at, _)| *at <= until).count());
            }
            known.take_until(u64::MAX, |one| taken.push(one));
            prop_assert!(taken.is_sorted_by_key(|(at, _)| *at));
            taken.sort_unstable();
            prop_assert_eq!(taken, all);
        }
    }
}
