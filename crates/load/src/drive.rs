//! One lane's thread: it keeps its sessions busy until the window has closed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use super::order::Order;
use super::waiting::UnderWay;
use super::{Pace, StepPlan, Stop};
use measure::{Clock, EndedOperation, KEPT_LONG, LaneRecorder, Outbox, Reservoir, Timeline};
use model::record::{Histogram, LONG_NS, Outstanding, Unended};
use model::units::Nanos;
use model::workload::{After, Arrival, Arrivals, Drawn, DueNext, Operation, Shape, Stream};
use targets::{Finished, Lane, OperationResult, TargetError};

/// Operations started before the clock is read again.
const BURST: usize = 8;
/// A burst that took less is followed by another before completions are looked at: on the way to fast storage a call into the kernel
/// costs more than eight operations do. What is sent last counts as sent too early by this and one burst, at most.
const BURSTS_NS: u64 = 1_000;

/// An arrival that is due so soon is waited for awake: the kernel would wake us later than that.
const AWAKE_NS: u64 = 10_000;

/// Errors of a lane with no success between them. A device that has gone refuses at once, and would be asked without end.
pub(super) const MAX_ERRORS: u64 = 10_000;

/// Arrivals that were never sent are drawn to be counted, up to this many; the rest follows from the rate, and chance has
/// no say in so many. Nobody waits minutes for the count of what did not happen.
const COUNTED_ARRIVALS: u32 = 10_000_000;

/// The part of a step that one lane has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) lane: u32,
    /// Lanes of the step.
    pub(super) lanes: u32,
    pub(super) first_session: u32,
    pub(super) sessions: u32,
}

impl Part {
    /// The streams that its sessions draw from.
    pub(super) fn streams<S: Shape>(&self, shape: &S) -> std::ops::Range<u32> {
        let first = shape.stream_of(self.first_session);
        let last = self.sessions.checked_sub(1).map_or(first, |more| shape.stream_of(self.first_session + more));
        first..last + 1
    }
}

/// What a lane reports besides its intervals.
#[derive(Debug, Default, Clone)]
pub(super) struct LaneReport {
    /// How long after the start of the load the lane began, if it did.
    pub(super) late_ns: Option<u64>,
    /// Time in the window that sessions stood ready and were not started, summed.
    pub(super) idle_session_ns: u64,
    /// Open loop: operations that fell due in the window.
    pub(super) due_operations: u64,
    /// Open loop: of these, how many were not sent before it closed.
    pub(super) backlog_operations: u64,
    /// From due to then, of these.
    pub(super) backlog_ages: Histogram,
    /// From due to sent, of those that fell due before it closed and were sent after it.
    pub(super) last_lag: Histogram,
    /// What was under way when it closed.
    pub(super) outstanding: Vec<Outstanding>,
    /// Long ones of that, those that never ended as if they had ended when they were given up.
    pub(super) late: Reservoir,
    /// What the target still worked on when the lane left it.
    pub(super) unended: Option<Unended>,
}

impl LaneReport {
    /// Keeps an operation that was under way when the window closed, if it was long.
    pub(super) fn keep_late(&mut self, ended: EndedOperation) {
        if ended.response_ns >= LONG_NS {
            // The bits of an instant in nanoseconds are as good as chance.
            let chance = (ended.at_ns ^ u64::from(ended.session)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
            self.late.add(ended, KEPT_LONG, chance);
        }
    }
}

/// So long after the window a target that still works on what it was asked is waited for. Storage that is held up gets over it, and what
/// comes after is then not measured beside the rest of this.
const LATE_PATIENCE_NS: u64 = 10_000_000_000;
/// So long after the window an operation is still sent that only waited for the one before it in its chain.
const LATE_CHAIN_NS: u64 = 1_000_000_000;
/// How often a target that is late is asked again.
const ASK_AGAIN_NS: u64 = 20_000_000;

struct SessionState<O> {
    /// Which of the lane's streams it draws from.
    stream: u32,
    drawn: Option<Drawn<O>>,
    due_ns: u64,
    sent_ns: u64,
    is_under_way: bool,
    /// The chain that its operation belongs to.
    chain: Option<u64>,
    /// Operations left of the work loop.
    left: u64,
}

/// An operation that is due.
struct DueNow<O> {
    due_ns: u64,
    /// When it was due before it had to wait for another.
    first_due_ns: u64,
    /// What to do, where that is known.
    drawn: Option<Drawn<O>>,
    /// The chain that it belongs to.
    chain: Option<u64>,
}

impl<O> DueNow<O> {
    fn of_chain((due_ns, next): (u64, DueNext<O>)) -> Self {
        let chain = next.after.map(|after| after.chain);
        Self { due_ns, first_due_ns: next.due_ns, drawn: Some(next.drawn), chain }
    }
}

/// What says when operations are due.
enum Due {
    /// Their sessions, by being ready.
    WhenReady,
    /// A rate.
    AtRate(Arrivals),
    /// The lane's one stream.
    AsRecorded,
}

/// Drives one lane. Made when the start is known.
pub(super) struct Driver<'a, S: Shape> {
    plan: &'a StepPlan<S>,
    lanes: u32,
    /// The number of its first session in the step.
    first_session: u32,
    clock: Clock,
    timeline: &'a Timeline,
    recorder: LaneRecorder,
    under_way: &'a UnderWay,
    streams: Vec<S::Stream>,
    sessions: Vec<SessionState<S::Operation>>,
    /// Sessions with nothing to do, and since when.
    ready: VecDeque<(u32, u64)>,
    /// Sessions that think, and until when.
    thinking: BinaryHeap<Reverse<(u64, u32)>>,
    due: Due,
    next_due_ns: u64,
    /// What is due then, where a stream says both.
    next_drawn: Option<Drawn<S::Operation>>,
    /// What it waits for besides.
    next_after: Option<After>,
    /// Operations that wait for others to end.
    order: Order<S::Operation>,
    /// Operations that failed since the last one that did not.
    errors: u64,
    /// When a session was free again after the window had closed.
    free_at_ns: Option<u64>,
    report: LaneReport,
}

impl<'a, S: Shape> Driver<'a, S> {
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
        let streams = streams.map(|stream| plan.shape.stream(plan.seed, stream)).collect();
        let sessions = numbers
            .map(|session| SessionState {
                stream: plan.shape.stream_of(session) - first_stream,
                drawn: None,
                due_ns: 0,
                sent_ns: 0,
                is_under_way: false,
                chain: None,
                left: plan.work_loop.unwrap_or(u64::MAX),
            })
            .collect();
        let due = match plan.pace {
            Pace::Closed => Due::WhenReady,
            Pace::Open { arrival: Arrival::Recorded, .. } => Due::AsRecorded,
            Pace::Open { rate_per_s, arrival } => {
                Due::AtRate(Arrivals::new(rate_per_s, arrival, part.lane, part.lanes, plan.seed))
            }
        };
        let mut driver = Self {
            plan,
            lanes: part.lanes,
            first_session: part.first_session,
            clock,
            timeline,
            recorder: LaneRecorder::new(Arc::clone(timeline), Arc::clone(outbox)),
            under_way,
            streams,
            sessions,
            ready: (0..part.sessions).map(|session| (session, timeline.start_ns())).collect(),
            thinking: BinaryHeap::new(),
            due,
            next_due_ns: u64::MAX,
            next_drawn: None,
            next_after: None,
            order: Order::default(),
            errors: 0,
            free_at_ns: None,
            report: LaneReport::default(),
        };
        driver.draw_arrival();
        driver
    }

    /// Drives the lane until the window has closed, waits for what is under way, and gives up what does not end in time.
    pub(super) fn run(
        mut self,
        lane: &mut dyn Lane<S::Operation>,
        stop: &Stop,
        drain: Nanos,
    ) -> Result<LaneReport, TargetError> {
        let mut result = self.drive(lane, stop);
        if result.is_err() {
            self.timeline.close(self.clock.now_ns());
        } else if self.is_whole() {
            result = self.drain(lane, stop, drain);
        }
        let were_awaited = result.is_ok() && self.is_whole() && !stop.is_asked();
        self.count_unended(were_awaited);
        // Whatever happened, what was measured is handed over.
        self.recorder.advance(self.clock.now_ns().max(self.timeline.closed_at_ns()));
        self.count_backlog();
        self.count_idle_to_the_end();
        // After an error nothing follows that a late target could disturb.
        let is_patient = result.is_ok();
        let abandoned = self.abandon(lane, stop, is_patient);
        result.and(abandoned).map(|()| self.report)
    }

    /// Whether the window came to its end, and was not closed since something failed or the user wanted an end.
    fn is_whole(&mut self) -> bool {
        let scheduled_ns = self.timeline.window_start_ns().saturating_add(self.plan.duration.0);
        let is_over = self.timeline.closed_at_ns() >= scheduled_ns || self.plan.work_loop.is_some();
        is_over || (matches!(self.due, Due::WhenReady) && self.streams.iter_mut().any(Stream::is_over))
    }

    /// Waits for what was under way when the window closed: how long it takes belongs to the answer, a stall at the end above all. What it
    /// comes to after an error or a request to end is not waited for.
    fn drain(&mut self, lane: &mut dyn Lane<S::Operation>, stop: &Stop, drain: Nanos) -> Result<(), TargetError> {
        let closed_at_ns = self.timeline.closed_at_ns();
        let (until_ns, chained_until_ns) = (closed_at_ns.saturating_add(drain.0), closed_at_ns + LATE_CHAIN_NS);
        let mut finished = Vec::new();
        loop {
            let left = self.sessions.iter().filter(|session| session.is_under_way).count();
            self.under_way.set(left);
            let now = self.clock.now_ns();
            let held_ns = Some(self.order.next_due_ns()).filter(|held_ns| *held_ns <= chained_until_ns);
            if (left == 0 && held_ns.is_none()) || stop.is_asked() || now >= until_ns {
                break;
            }
            let free = if left < self.sessions.len() { held_ns } else { None };
            if free.is_some_and(|held_ns| held_ns <= now)
                && let Some(session) = self.sessions.iter().position(|session| !session.is_under_way)
                && let Some(due) = self.order.take().map(DueNow::of_chain)
            {
                // It may have waited for a session, so that its lateness is not the generator's.
                self.sessions[session].chain = due.chain;
                self.start(lane, session as u32, due.drawn, (due.due_ns, now))?;
                continue;
            }
            let instant_ns = until_ns.min(now + ASK_AGAIN_NS).min(free.unwrap_or(u64::MAX));
            lane.poll(instant_ns, &mut self.recorder, &mut finished)?;
            finished.drain(..).for_each(|done| self.finish_late(&done));
        }
        Ok(())
    }

    /// An operation that ended after the window had closed.
    fn finish_late(&mut self, done: &Finished) {
        let state = &mut self.sessions[done.session as usize];
        state.is_under_way = false;
        if let Some(chain) = state.chain.take() {
            self.order.ended(chain, done.at_ns);
        }
        self.free_at_ns.get_or_insert(done.at_ns);
        let since = |began_ns: u64| done.at_ns.saturating_sub(began_ns).saturating_sub(done.paused_ns);
        let (service_ns, response_ns) = (since(state.sent_ns).saturating_sub(done.connecting_ns), since(state.due_ns));
        let outstanding = outstanding(&mut self.report.outstanding, state);
        match done.result {
            OperationResult::Done => {
                outstanding.service.record(service_ns);
                outstanding.response.record(response_ns);
                let kind = state.drawn.map_or(0, |drawn| drawn.operation.kind_index());
                let session = self.first_session + done.session;
                let (at_ns, block_touches) = (done.at_ns, done.block_touches);
                self.report.keep_late(EndedOperation { kind, session, at_ns, block_touches, service_ns, response_ns });
            }
            OperationResult::Failed => outstanding.errors += 1,
        }
    }

    /// Counts what never ended, with its age; as a fault of the target if it was waited for.
    fn count_unended(&mut self, were_awaited: bool) {
        let now = self.clock.now_ns();
        let operations = self.sessions.iter().filter(|session| session.is_under_way).count() as u64;
        let waited_ns = now.saturating_sub(self.timeline.closed_at_ns());
        self.report.unended =
            (were_awaited && operations > 0).then_some(Unended { operations, sessions: operations, waited_ns });
        for (session, state) in (self.first_session..).zip(&self.sessions).filter(|(_, state)| state.is_under_way) {
            let (service_ns, response_ns) = (now.saturating_sub(state.sent_ns), now.saturating_sub(state.due_ns));
            outstanding(&mut self.report.outstanding, state).unended.record(response_ns);
            let kind = state.drawn.map_or(0, |drawn| drawn.operation.kind_index());
            let (at_ns, block_touches) = (now, 0);
            self.report.keep_late(EndedOperation { kind, session, at_ns, block_touches, service_ns, response_ns });
        }
    }

    /// Gives up what is under way. A target that is late with it is no reason to end more than this step.
    fn abandon(&mut self, lane: &mut dyn Lane<S::Operation>, stop: &Stop, is_patient: bool) -> Result<(), TargetError> {
        loop {
            let sessions = match lane.abandon() {
                Err(TargetError::StillAtWork { sessions, .. }) => sessions,
                ended => return ended,
            };
            let now = self.clock.now_ns();
            let waited_ns = now.saturating_sub(self.timeline.closed_at_ns());
            if !is_patient || waited_ns >= LATE_PATIENCE_NS || stop.is_asked() {
                self.report.unended = Some(Unended { operations: sessions, sessions, waited_ns });
                return Ok(());
            }
            self.clock.sleep_until(now + ASK_AGAIN_NS);
        }
    }

    /// Closed loop: counts sessions that stood ready when the window closed. One that never had its turn was idle all the time.
    fn count_idle_to_the_end(&mut self) {
        if self.plan.pace.is_open() {
            return;
        }
        let (window_start_ns, closed_at_ns) = (self.timeline.window_start_ns(), self.timeline.closed_at_ns());
        let idle = |(_, since_ns): &(u32, u64)| closed_at_ns.saturating_sub((*since_ns).max(window_start_ns));
        self.report.idle_session_ns += self.ready.iter().map(idle).sum::<u64>();
    }

    fn drive(&mut self, lane: &mut dyn Lane<S::Operation>, stop: &Stop) -> Result<(), TargetError> {
        let mut finished = Vec::new();
        loop {
            let now = self.clock.now_ns();
            // No other thread can tell when in simulated time it is.
            if self.clock.is_simulated() && stop.is_asked() {
                self.timeline.close(now);
            }
            self.recorder.advance(now);
            if self.recorder.is_closed() {
                return if self.is_whole() && !stop.is_asked() { self.start_last(lane) } else { Ok(()) };
            }
            self.wake_thinkers(now);
            let more = loop {
                let more = match self.due {
                    Due::WhenReady => self.start_ready(lane, now)?,
                    Due::AtRate(_) | Due::AsRecorded => self.start_due(lane, now)?,
                };
                if !more || self.clock.is_simulated() || self.clock.now_ns() >= now + BURSTS_NS {
                    break more;
                }
            };
            let until = if more { 0 } else { self.next_instant(now) };
            self.under_way.set(self.sessions.len() - self.ready.len() - self.thinking.len());
            lane.poll(until, &mut self.recorder, &mut finished)?;
            for done in finished.drain(..) {
                self.finish(done)?;
            }
        }
    }

    /// Until when there is nothing to do unless something finishes.
    fn next_instant(&self, now: u64) -> u64 {
        let mut instant = self.recorder.interval_end_ns();
        if let Some(Reverse((wakes_ns, _))) = self.thinking.peek() {
            instant = instant.min(*wakes_ns);
        }
        if !self.ready.is_empty() {
            // Where no more can be held back, nothing is drawn until a chain has gone on.
            let drawn_ns = if self.order.is_full() { u64::MAX } else { self.next_due_ns };
            let next_due_ns = drawn_ns.min(self.order.next_due_ns());
            instant = instant.min(next_due_ns);
            if next_due_ns.saturating_sub(now) < AWAKE_NS && !self.clock.is_simulated() {
                return 0;
            }
        }
        instant
    }

    fn wake_thinkers(&mut self, now: u64) {
        while let Some(Reverse((wakes_ns, session))) =
            self.thinking.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            self.thinking.pop();
            self.ready.push_back((session, wakes_ns));
        }
    }

    /// Closed loop: starts what is ready, a burst at most. Returns whether more is ready. `now` is one reading of the clock
    /// for all of the bursts: what is sent last counts from before the first, never from too late.
    fn start_ready(&mut self, lane: &mut dyn Lane<S::Operation>, now: u64) -> Result<bool, TargetError> {
        for _ in 0..BURST {
            let Some((session, since_ns)) = self.ready.front().copied() else { return Ok(false) };
            let stream = self.sessions[session as usize].stream as usize;
            if self.streams[stream].is_over() {
                // All streams of such a load have one source: what is under way elsewhere is waited for.
                if self.sessions.iter().all(|session| !session.is_under_way) {
                    self.timeline.close(now);
                }
                return Ok(false);
            }
            self.ready.pop_front();
            self.report.idle_session_ns += now.saturating_sub(since_ns.max(self.timeline.window_start_ns()));
            // A session that thought was due when it had thought enough, however late it is sent.
            let thought = self.sessions[session as usize].drawn.is_some_and(|drawn| drawn.think_ns > 0);
            self.start(lane, session, None, (if thought { since_ns } else { now }, now))?;
        }
        Ok(!self.ready.is_empty())
    }

    /// Open loop: starts what has fallen due, as far as sessions are free, a burst at most. Returns whether more could be
    /// started.
    fn start_due(&mut self, lane: &mut dyn Lane<S::Operation>, now: u64) -> Result<bool, TargetError> {
        for _ in 0..BURST {
            if self.ready.is_empty() {
                return Ok(false);
            }
            let Some(due) = self.next_due(now) else { return Ok(false) };
            let Some((session, since_ns)) = self.ready.pop_front() else { return Ok(false) };
            let due_ns = due.due_ns;
            self.recorder.schedule_lag(now - due.first_due_ns, now.saturating_sub(due_ns.max(since_ns)));
            self.sessions[session as usize].chain = due.chain;
            self.start(lane, session, due.drawn, (due_ns, now))?;
        }
        Ok(true)
    }

    /// Open loop: the next operation that is due by now.
    fn next_due(&mut self, now: u64) -> Option<DueNow<S::Operation>> {
        loop {
            let held_ns = self.order.next_due_ns();
            if held_ns <= now && (held_ns <= self.next_due_ns || self.order.is_full()) {
                return self.order.take().map(DueNow::of_chain);
            }
            if self.next_due_ns > now || self.order.is_full() {
                return None;
            }
            let (due_ns, drawn, after) = (self.next_due_ns, self.next_drawn.take(), self.next_after.take());
            self.draw_arrival();
            let Some((drawn, after)) = drawn.zip(after) else {
                return Some(DueNow { due_ns, first_due_ns: due_ns, drawn, chain: None });
            };
            if let Some(next) = self.order.admit(DueNext { due_ns, drawn, after: Some(after) }, after, now) {
                return Some(DueNow::of_chain(next));
            }
        }
    }

    /// Recorded operations that fell due before the window closed and while this thread was waking up: none of them is to be missing. They
    /// are under way when it closes, as others are.
    fn start_last(&mut self, lane: &mut dyn Lane<S::Operation>) -> Result<(), TargetError> {
        let last_ns = self.timeline.closed_at_ns().saturating_sub(1);
        while matches!(self.due, Due::AsRecorded) && !self.ready.is_empty() {
            let Some(due) = self.next_due(last_ns) else { break };
            let Some((session, _)) = self.ready.pop_front() else { break };
            self.start_late(lane, session, due)?;
        }
        Ok(())
    }

    /// Starts an operation after the window has closed.
    fn start_late(
        &mut self,
        lane: &mut dyn Lane<S::Operation>,
        session: u32,
        due: DueNow<S::Operation>,
    ) -> Result<(), TargetError> {
        let now = self.clock.now_ns();
        self.report.last_lag.record(now.saturating_sub(due.due_ns));
        self.sessions[session as usize].chain = due.chain;
        self.start(lane, session, due.drawn, (due.due_ns, now))
    }

    fn start(
        &mut self,
        lane: &mut dyn Lane<S::Operation>,
        session: u32,
        drawn: Option<Drawn<S::Operation>>,
        (due_ns, sent_ns): (u64, u64),
    ) -> Result<(), TargetError> {
        let state = &mut self.sessions[session as usize];
        let drawn = drawn.unwrap_or_else(|| self.streams[state.stream as usize].draw());
        state.drawn = Some(drawn);
        state.due_ns = due_ns;
        state.sent_ns = sent_ns;
        state.is_under_way = true;
        lane.start(session, &drawn.operation, sent_ns, &mut self.recorder)
    }

    fn finish(&mut self, done: Finished) -> Result<(), TargetError> {
        self.recorder.advance(done.at_ns);
        if self.recorder.is_closed() {
            self.finish_late(&done);
            return Ok(());
        }
        let Finished { session, at_ns, paused_ns, connecting_ns, block_touches, result } = done;
        let state = &mut self.sessions[session as usize];
        state.is_under_way = false;
        if let Some(chain) = state.chain.take() {
            self.order.ended(chain, at_ns);
        }
        let drawn = state.drawn.expect("only started operations finish");
        let kind = drawn.operation.kind_index();
        let since = |began_ns: u64| at_ns.saturating_sub(began_ns).saturating_sub(paused_ns);
        let response_ns = since(state.due_ns);
        match result {
            OperationResult::Done => {
                let service_ns = since(state.sent_ns).saturating_sub(connecting_ns);
                let session = self.first_session + session;
                self.recorder.operation(&EndedOperation {
                    kind,
                    session,
                    at_ns,
                    block_touches,
                    service_ns,
                    response_ns,
                });
                self.errors = 0;
            }
            OperationResult::Failed => {
                self.recorder.failed_operation(kind, response_ns);
                self.errors += 1;
                if self.errors > MAX_ERRORS {
                    return Err(TargetError::TooManyErrors { errors: self.errors });
                }
            }
        }
        if self.plan.work_loop.is_some() && at_ns >= self.timeline.window_start_ns() {
            state.left -= 1;
            if state.left == 0 {
                // From now on not all sessions are at work, so the window ends here.
                self.timeline.close(at_ns);
                return Ok(());
            }
        }
        if drawn.think_ns > 0 {
            self.thinking.push(Reverse((at_ns + drawn.think_ns, session)));
        } else {
            self.ready.push_back((session, at_ns));
        }
        Ok(())
    }

    /// Goes on to the next arrival; the one before it counts as due.
    fn draw_arrival(&mut self) {
        if (self.timeline.window_start_ns()..self.timeline.closed_at_ns()).contains(&self.next_due_ns) {
            self.report.due_operations += 1;
        }
        let after_ns = match &mut self.due {
            Due::WhenReady => return,
            Due::AtRate(arrivals) => Some(arrivals.next_ns()),
            Due::AsRecorded => self.streams.first_mut().and_then(Stream::draw_due).map(|next| {
                (self.next_drawn, self.next_after) = (Some(next.drawn), next.after);
                next.due_ns
            }),
        };
        self.next_due_ns = after_ns.map_or(u64::MAX, |after_ns| self.timeline.start_ns().saturating_add(after_ns));
    }

    /// Counts what fell due before the window closed and was never sent. Where no session was free for it, it would have had to wait until one
    /// was: so old it is at least.
    fn count_backlog(&mut self) {
        let closed_at_ns = self.timeline.closed_at_ns();
        let sent_ns = match self.ready.is_empty() {
            true => self.free_at_ns.unwrap_or_else(|| self.clock.now_ns()).max(closed_at_ns),
            false => closed_at_ns,
        };
        for due_ns in self.order.left().filter(|due_ns| *due_ns >= self.timeline.window_start_ns()) {
            self.report.backlog_operations += 1;
            self.report.backlog_ages.record(sent_ns.saturating_sub(due_ns));
        }
        for _ in 0..COUNTED_ARRIVALS {
            if self.next_due_ns >= self.timeline.closed_at_ns() {
                return;
            }
            if self.next_due_ns >= self.timeline.window_start_ns() {
                self.report.backlog_operations += 1;
                self.report.backlog_ages.record(sent_ns - self.next_due_ns);
            }
            self.draw_arrival();
        }
        if let Some(rate_per_s) = self.plan.pace.rate_per_s() {
            let from_ns = self.next_due_ns.max(self.timeline.window_start_ns());
            let rest_s = self.timeline.closed_at_ns().saturating_sub(from_ns) as f64 / 1e9;
            let rest = (rest_s * rate_per_s / f64::from(self.lanes)).round() as u64;
            self.report.due_operations += rest;
            self.report.backlog_operations += rest;
            // They are spread evenly over the rest of the window.
            self.report.backlog_ages.record_n((rest_s * 1e9 / 2.0) as u64 + sent_ns - closed_at_ns, rest);
        }
    }
}

/// What is counted of a session's operation that was under way when the window closed.
fn outstanding<'r, O: Operation>(all: &'r mut Vec<Outstanding>, state: &SessionState<O>) -> &'r mut Outstanding {
    let drawn = state.drawn.expect("only started operations are under way");
    outstanding_of(all, O::KINDS[drawn.operation.kind_index()])
}

/// The same of a kind.
pub(super) fn outstanding_of<'r>(all: &'r mut Vec<Outstanding>, kind: &str) -> &'r mut Outstanding {
    let at = all.iter().position(|known| known.kind == kind).unwrap_or_else(|| {
        all.push(Outstanding { kind: kind.to_owned(), ..Outstanding::default() });
        all.len() - 1
    });
    &mut all[at]
}
