//! One lane's thread where sessions take many operations at a time.
//!
//! The target times each operation of a batch itself and tells of all when the batch has ended. So operations become known
//! late and out of their order, and are kept until nothing can come any more that ended before them: then they are recorded
//! in their order, each in the interval in which it ended. Load is never waited for: while old results are put in order, new
//! batches are under way.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use super::StepPlan;
use super::drive::{LaneReport, MOST_ERRORS, Part};
use crate::measure::{Clock, Counter, LaneRecorder, Outbox, Timeline, WaitEvent};
use crate::target::{BatchLane, BatchedOperation, FinishedBatch, OperationResult, TargetError};
use crate::workload::{Drawn, Operation, Shape, Stream};

/// Most operations of one batch.
const MOST_OPERATIONS: usize = 10_000;

/// A batch that is still under way so long after the window closed is asked to end, and a while later given up.
const BREAK_OFF_NS: u64 = 2_000_000_000;
const GIVE_UP_NS: u64 = 10_000_000_000;

/// How often a lane looks up at the latest.
const LOOK_AROUND_NS: u64 = 20_000_000;

/// One operation whose turn to be recorded comes when nothing can have ended before it. Ordered by its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Known {
    ended_ns: u64,
    kind: usize,
    service_ns: u64,
    commit_ns: Option<u64>,
    block_touches: u64,
    failed: bool,
}

struct SessionState<S: Shape> {
    stream: u32,
    /// What is under way, and since when.
    batch: Vec<Drawn<S::Operation>>,
    sent_ns: Option<u64>,
    /// When what it did last had ended; it stands idle since.
    ended_ns: u64,
    /// What an operation takes on average, as far as it is known.
    operation_ns: Option<u64>,
    /// Operations left of the work loop.
    left: u64,
}

/// Drives one lane in batches. Made when the start is known.
pub(super) struct BatchDriver<'a, S: Shape> {
    clock: Clock,
    timeline: &'a Timeline,
    recorder: LaneRecorder,
    has_work_loop: bool,
    streams: Vec<S::Stream>,
    sessions: Vec<SessionState<S>>,
    ready: VecDeque<u32>,
    /// Sessions that think, and until when.
    thinking: BinaryHeap<Reverse<(u64, u32)>>,
    /// What is known and not yet recorded, the first to end first.
    known: BinaryHeap<Reverse<Known>>,
    operations: Vec<S::Operation>,
    /// Batches that failed since the last one that did not.
    errors: u64,
    report: LaneReport,
}

impl<'a, S: Shape> BatchDriver<'a, S> {
    pub(super) fn new(
        plan: &'a StepPlan<S>,
        part: Part,
        clock: Clock,
        timeline: &'a Arc<Timeline>,
        outbox: &Arc<Outbox>,
    ) -> Self {
        let numbers = part.first_session..part.first_session + part.sessions;
        let streams = part.streams(&plan.shape);
        let first_stream = streams.start;
        Self {
            clock,
            timeline,
            recorder: LaneRecorder::new(Arc::clone(timeline), Arc::clone(outbox)),
            has_work_loop: plan.work_loop.is_some(),
            streams: streams.map(|stream| plan.shape.stream(plan.seed, stream)).collect(),
            sessions: numbers
                .map(|session| SessionState {
                    stream: plan.shape.stream_of(session) - first_stream,
                    batch: Vec::new(),
                    sent_ns: None,
                    ended_ns: timeline.start_ns(),
                    operation_ns: None,
                    left: plan.work_loop.unwrap_or(u64::MAX),
                })
                .collect(),
            ready: (0..part.sessions).collect(),
            thinking: BinaryHeap::new(),
            known: BinaryHeap::new(),
            operations: Vec::new(),
            errors: 0,
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
        let abandoned = lane.abandon();
        result.and(abandoned).map(|()| self.report)
    }

    fn drive(&mut self, lane: &mut dyn BatchLane<S::Operation>) -> Result<(), TargetError> {
        let mut finished = Vec::new();
        let mut broken_off = false;
        loop {
            let now = self.clock.now_ns();
            let over_ns = now.saturating_sub(self.timeline.closed_at_ns());
            self.record_until(self.all_known_until(now));
            if self.recorder.is_closed() {
                return Ok(());
            }
            if over_ns > BREAK_OFF_NS && !broken_off {
                lane.break_off();
                broken_off = true;
            }
            if over_ns > GIVE_UP_NS {
                let silent = self.sessions.iter().filter(|session| session.sent_ns.is_some()).count();
                return Err(TargetError::Silent { sessions: silent as u64, waited_ns: over_ns });
            }
            if now < self.timeline.closed_at_ns() {
                self.wake_thinkers(now);
                self.send_ready(lane)?;
            }
            let thinker = self.thinking.peek().map_or(u64::MAX, |Reverse((wakes_ns, _))| *wakes_ns);
            lane.poll(thinker.min(now + LOOK_AROUND_NS), &mut finished)?;
            for batch in finished.drain(..) {
                self.finish(batch)?;
            }
        }
    }

    /// Until when everything that has ended is known: until the oldest batch under way was sent.
    fn all_known_until(&self, now: u64) -> u64 {
        self.sessions.iter().filter_map(|session| session.sent_ns).min().unwrap_or(now).min(now)
    }

    /// Records, in their order, all operations that ended until then.
    fn record_until(&mut self, until_ns: u64) {
        while let Some(Reverse(known)) = self.known.peek().copied().filter(|Reverse(known)| known.ended_ns <= until_ns)
        {
            self.known.pop();
            self.recorder.advance(known.ended_ns);
            if known.failed {
                self.recorder.failed_operation(known.kind);
                continue;
            }
            self.recorder.operation(known.kind, known.block_touches, known.service_ns, known.service_ns);
            if let Some(commit_ns) = known.commit_ns {
                self.recorder.count(Counter::Commits, 1);
                self.recorder.wait(WaitEvent::Commit, commit_ns);
            }
        }
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
            // A new session begins with one operation, to learn how long one takes.
            let wanted = session.operation_ns.map_or(1, |each| lane.batch_ns() / each.max(1)).max(1);
            let wanted = wanted.min(MOST_OPERATIONS as u64).min(session.left) as usize;
            let stream = &mut self.streams[session.stream as usize];
            session.batch.clear();
            while session.batch.len() < wanted {
                let drawn = stream.draw();
                session.batch.push(drawn);
                if drawn.think_ns > 0 {
                    break;
                }
            }
            self.operations.clear();
            self.operations.extend(session.batch.iter().map(|drawn| drawn.operation));
            let now = self.clock.now_ns();
            session.sent_ns = Some(now);
            lane.send(index, &self.operations, now)?;
        }
        Ok(())
    }

    fn finish(&mut self, finished: FinishedBatch) -> Result<(), TargetError> {
        let FinishedBatch { session: index, operations, result } = finished;
        let now = self.clock.now_ns();
        let session = &mut self.sessions[index as usize];
        let sent_ns = session.sent_ns.take().expect("only batches that were sent end");
        match result {
            OperationResult::Done => {
                self.errors = 0;
                let service: u64 = operations.iter().map(|done| done.service_ns).sum();
                session.operation_ns = Some((service / operations.len().max(1) as u64).max(1));
                let mut idle_since = session.ended_ns;
                for (drawn, done) in session.batch.iter().zip(&operations) {
                    let BatchedOperation { ended_ns, service_ns, commit_ns, block_touches } = *done;
                    // Never before it was sent, whatever two clocks say of each other, nor after it was known.
                    let ended_ns = ended_ns.clamp(sent_ns, now);
                    let began_ns = ended_ns.saturating_sub(service_ns);
                    if idle_since >= self.timeline.window_start_ns() && ended_ns < self.timeline.closed_at_ns() {
                        self.report.idle_session_ns += began_ns.saturating_sub(idle_since);
                    }
                    idle_since = ended_ns;
                    let kind = drawn.operation.kind_index();
                    let known = Known { ended_ns, kind, service_ns, commit_ns, block_touches, failed: false };
                    self.known.push(Reverse(known));
                    if self.has_work_loop && ended_ns >= self.timeline.window_start_ns() {
                        session.left -= 1;
                        if session.left == 0 {
                            // From now on not all sessions are at work, so the window ends here.
                            self.timeline.close(ended_ns);
                        }
                    }
                }
                session.ended_ns = idle_since;
            }
            OperationResult::Failed => {
                // What of it was done is not known, so none of it is counted as done.
                self.errors += 1;
                for drawn in &session.batch {
                    let kind = drawn.operation.kind_index();
                    let known =
                        Known { ended_ns: now, kind, service_ns: 0, commit_ns: None, block_touches: 0, failed: true };
                    self.known.push(Reverse(known));
                }
                session.ended_ns = now;
                if self.errors > MOST_ERRORS {
                    return Err(TargetError::TooManyErrors { errors: self.errors });
                }
            }
        }
        let think_ns = session.batch.last().map_or(0, |drawn| drawn.think_ns);
        if session.left == 0 {
            return Ok(());
        }
        if think_ns > 0 {
            self.thinking.push(Reverse((session.ended_ns + think_ns, index)));
        } else {
            self.ready.push_back(index);
        }
        Ok(())
    }
}
