//! Batches on a target whose every operation takes what the test says, in simulated time.

use std::collections::VecDeque;
use std::time::Duration;

use super::super::{Pace, Share, StepPlan};
use super::*;
use measure::Recorded;
use model::record::{self, Histogram};
use model::units::Nanos;

const MS: u64 = 1_000_000;
const START: u64 = 1_000 * MS;

/// An operation, numbered in its stream from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Task {
    kind: usize,
    number: u64,
}

impl Operation for Task {
    const KINDS: &'static [&'static str] = &["quick", "slow"];

    fn kind_index(&self) -> usize {
        self.kind
    }
}

/// Every `slow_each`-th operation is slow, every `think_each`-th is thought about; 0 is never.
#[derive(Debug, Clone, Copy, Default)]
struct Tasks {
    slow_each: u64,
    think_each: u64,
    think_ns: u64,
}

struct TaskStream(Tasks, u64);

impl Shape for Tasks {
    type Operation = Task;
    type Stream = TaskStream;

    fn stream_of(&self, session: u32) -> u32 {
        session
    }

    fn stream(&self, _seed: u64, _stream: u32) -> TaskStream {
        TaskStream(*self, 0)
    }
}

impl Stream for TaskStream {
    type Operation = Task;

    fn draw(&mut self) -> Drawn<Task> {
        self.1 += 1;
        let each = |each: u64| each > 0 && self.1.is_multiple_of(each);
        Drawn {
            operation: Task { kind: usize::from(each(self.0.slow_each)), number: self.1 },
            think_ns: if each(self.0.think_each) { self.0.think_ns } else { 0 },
        }
    }
}

/// What the fake target does with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    /// It ends so long after it was sent in an error.
    Fails(u64),
    /// It ends only when it is broken off.
    Hangs,
    /// It never ends.
    Silent,
    /// The lane breaks.
    Breaks,
}

type Fated = Box<dyn FnMut(u32, &[Task], u64) -> Fate>;

/// One server for each session. A batch begins `delay_ns` after it was sent and is known `delay_ns` after it has ended.
struct FakeLane {
    clock: Clock,
    batch_ns: u64,
    delay_ns: u64,
    quick_ns: u64,
    slow_ns: u64,
    fate: Fated,
    under_way: Vec<(u64, FinishedBatch, Fate)>,
    /// Session, when, and what.
    sent: Vec<(u32, u64, Vec<Task>)>,
    broken_off_ns: Option<u64>,
    abandoned: bool,
    /// The server still works on what never ends.
    is_at_work: bool,
    /// No operation begins in this time.
    stall: std::ops::Range<u64>,
    /// Whatever has not ended soon after it was asked to end is cancelled.
    cancels: bool,
    log: Vec<Logged>,
}

/// What becomes of a batch, when that is known unless it is cancelled, and when each of its operations began and ended.
type Logged = (Fate, u64, Vec<(u64, u64)>);

/// So long after it was asked to end a batch has ended.
const CANCELLED_NS: u64 = 5 * MS;

impl FakeLane {
    fn new(clock: Clock, quick_ns: u64) -> Self {
        Self {
            clock,
            batch_ns: 100 * MS,
            delay_ns: 0,
            quick_ns,
            slow_ns: 50 * MS,
            fate: Box::new(|_, _, _| Fate::Done),
            under_way: Vec::new(),
            sent: Vec::new(),
            broken_off_ns: None,
            abandoned: false,
            is_at_work: false,
            stall: 0..0,
            cancels: false,
            log: Vec::new(),
        }
    }

    fn batch_sizes(&self) -> Vec<usize> {
        self.sent.iter().map(|(_, _, tasks)| tasks.len()).collect()
    }
}

impl BatchLane<Task> for FakeLane {
    fn batch_ns(&self) -> u64 {
        self.batch_ns
    }

    fn max_operations(&self) -> usize {
        10_000
    }

    fn send(&mut self, session: u32, operations: &[Task], sent_ns: u64) -> Result<(), TargetError> {
        assert!(!self.under_way.iter().any(|(_, batch, _)| batch.session == session), "one batch at a time");
        self.sent.push((session, sent_ns, operations.to_vec()));
        let fate = (self.fate)(session, operations, sent_ns);
        let mut ended_ns = sent_ns + self.delay_ns;
        let mut log = Vec::new();
        let (known_ns, done) = match fate {
            Fate::Done => {
                let done = operations.iter().map(|task| {
                    let began_ns = ended_ns;
                    let served_ns = if self.stall.contains(&began_ns) { self.stall.end } else { began_ns };
                    ended_ns = served_ns + if task.kind == 1 { self.slow_ns } else { self.quick_ns };
                    log.push((began_ns, ended_ns));
                    let service_ns = ended_ns - began_ns;
                    let commit_ns = (task.kind == 1).then_some(MS);
                    BatchedOperation { ended_ns, service_ns, commit_ns, block_touches: 3, block_changes: 2 }
                });
                let done: Vec<BatchedOperation> = done.collect();
                (ended_ns + self.delay_ns, done)
            }
            Fate::Fails(after_ns) => (sent_ns + after_ns, Vec::new()),
            Fate::Hangs | Fate::Silent | Fate::Breaks => (u64::MAX, Vec::new()),
        };
        self.log.push((fate, known_ns, log));
        let result = if fate == Fate::Done { OperationResult::Done } else { OperationResult::Failed };
        self.under_way.push((known_ns, FinishedBatch { session, operations: done, result }, fate));
        Ok(())
    }

    fn poll(&mut self, until_ns: u64, finished: &mut Vec<FinishedBatch>) -> Result<(), TargetError> {
        let first_ns = self.under_way.iter().map(|(known_ns, ..)| *known_ns).min().unwrap_or(u64::MAX);
        self.clock.sleep_until(first_ns.min(until_ns));
        let now = self.clock.now_ns();
        if self.under_way.iter().any(|(_, _, fate)| *fate == Fate::Breaks) {
            return Err(TargetError::Shape("gone".to_owned()));
        }
        let (ended, left) =
            std::mem::take(&mut self.under_way).into_iter().partition(|(known_ns, ..)| *known_ns <= now);
        self.under_way = left;
        let mut ended: Vec<_> = ended;
        ended.sort_by_key(|(known_ns, ..)| *known_ns);
        finished.extend(ended.into_iter().map(|(_, batch, _)| batch));
        Ok(())
    }

    fn break_off(&mut self) {
        let now = self.clock.now_ns();
        assert!(self.broken_off_ns.replace(now).is_none(), "asked once");
        for (known_ns, batch, fate) in &mut self.under_way {
            let is_cancelled = self.cancels && *fate == Fate::Done && *known_ns > now + CANCELLED_NS;
            if *fate == Fate::Hangs || is_cancelled {
                *known_ns = now + CANCELLED_NS;
                (batch.operations, batch.result) = (Vec::new(), OperationResult::Failed);
            }
        }
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.abandoned = true;
        match self.under_way.iter().filter(|(_, _, fate)| *fate == Fate::Silent).count() as u64 {
            0 => Ok(()),
            sessions if self.is_at_work => Err(TargetError::StillAtWork { sessions, waited_ns: 2_000 * MS }),
            sessions => Err(TargetError::Silent { sessions, waited_ns: 2_000 * MS }),
        }
    }
}

fn plan(sessions: u32, duration: Nanos, tasks: Tasks) -> StepPlan<Tasks> {
    StepPlan {
        index: 0,
        label: "test".to_owned(),
        load: record::Intensity { sessions: Some(sessions), ..record::Intensity::default() },
        level: None,
        like: None,
        shape: tasks,
        seed: 1,
        work_loop: None,
        warmup: Nanos(0),
        duration,
        pace: Pace::Closed,
        lanes: 1,
        share: Share::WHOLE,
    }
}

struct Outcome {
    result: Result<LaneReport, TargetError>,
    intervals: Vec<Recorded>,
    timeline: Arc<Timeline>,
}

impl Outcome {
    /// Operations done in each interval.
    fn done(&self) -> Vec<u64> {
        self.counts(Counter::Operations)
    }

    fn counts(&self, counter: Counter) -> Vec<u64> {
        self.intervals.iter().map(|recorded| recorded.counts[counter as usize]).collect()
    }

    /// Times of all operations of a kind.
    fn service(&self, kind: usize) -> Histogram {
        self.sum(|recorded, sum| recorded.operations[kind].iter().for_each(|kind| kind.merge_service_into(sum)))
    }

    fn failed(&self, kind: usize) -> Histogram {
        self.sum(|recorded, sum| recorded.operations[kind].iter().for_each(|kind| kind.merge_failed_into(sum)))
    }

    fn sum(&self, add: impl Fn(&Recorded, &mut Histogram)) -> Histogram {
        let mut sum = Histogram::default();
        self.intervals.iter().for_each(|recorded| add(recorded, &mut sum));
        sum
    }

    fn idle_ns(&self) -> u64 {
        self.result.as_ref().unwrap().idle_session_ns
    }
}

fn run(plan: &StepPlan<Tasks>, lane: &mut FakeLane) -> Outcome {
    let part = Part { lane: 0, lanes: plan.lanes, first_session: 0, sessions: plan.load.slots() };
    let timeline = Arc::new(Timeline::new(START, plan.warmup.0, Some(plan.duration.0), 1_000 * MS));
    let outbox = Arc::new(Outbox::default());
    lane.clock.sleep_until(START);
    let under_way = UnderWay::default();
    let driver = BatchDriver::new(plan, part, lane.clock, &timeline, (&outbox, &under_way));
    let result = driver.run(lane);
    assert!(lane.abandoned, "what is under way is given up, however it ends");
    let taken = std::iter::from_fn(|| outbox.take(Duration::ZERO));
    let intervals = taken.enumerate().map(|(place, (id, recorded))| {
        assert_eq!(place as u32, id, "every interval is handed over once, in order");
        *recorded
    });
    Outcome { result, intervals: intervals.collect(), timeline: Arc::clone(&timeline) }
}

#[test]
fn every_operation_counts_in_the_interval_in_which_it_ended() {
    // Operations of 7 and batches of about 100 ms do not fit into seconds: many batches lie across an edge.
    let mut lane = FakeLane::new(Clock::simulated(), 7 * MS);
    let outcome = run(&plan(3, Nanos::seconds(4), Tasks::default()), &mut lane);
    // In the n-th second end those whose end k·7 ms is in it; what ends at an edge belongs after it.
    let expected: Vec<u64> = (0..4)
        .map(|second| {
            3 * (1..)
                .map(|k| k * 7)
                .skip_while(|at| *at < second * 1_000)
                .take_while(|at| *at < (second + 1) * 1_000)
                .count() as u64
        })
        .collect();
    assert_eq!(outcome.done(), expected);
    assert_eq!(outcome.idle_ns(), 0);
    let service = outcome.service(0);
    assert_eq!(
        (service.count(), service.total_ns()),
        (expected.iter().sum(), Some(expected.iter().sum::<u64>() * 7 * MS))
    );
}

#[test]
fn what_sessions_end_in_turns_is_recorded_in_order_and_counted_with_its_blocks_and_commits() {
    let mut lane = FakeLane::new(Clock::simulated(), 3 * MS);
    let tasks = Tasks { slow_each: 10, ..Tasks::default() };
    let outcome = run(&plan(4, Nanos::seconds(3), tasks), &mut lane);
    let (quick, slow) = (outcome.service(0), outcome.service(1));
    assert_eq!(
        (quick.min_ns(), quick.max_ns(), slow.min_ns(), slow.max_ns()),
        (Some(3 * MS), Some(3 * MS), Some(50 * MS), Some(50 * MS))
    );
    // Ten operations take 77 ms.
    assert_eq!(slow.count(), 4 * (3_000 / 77));
    let sum = |counter| outcome.counts(counter).iter().sum::<u64>();
    assert_eq!(sum(Counter::Operations), quick.count() + slow.count());
    assert_eq!(sum(Counter::BlockChanges), 2 * sum(Counter::Operations));
    assert_eq!(sum(Counter::Commits), slow.count());
    let commits: u64 =
        outcome.intervals.iter().filter(|seen| seen.waits[WaitEvent::Commit.index()].is_some()).count() as u64;
    assert_eq!(commits, 3, "commits were timed in each interval");
    let touches: u64 =
        outcome.intervals.iter().flat_map(|seen| seen.operations.iter().flatten()).map(|of| of.block_touches).sum();
    assert_eq!(touches, 3 * sum(Counter::Operations));
}

#[test]
fn the_warmup_is_no_part_of_the_window() {
    let mut lane = FakeLane::new(Clock::simulated(), 10 * MS);
    let plan = StepPlan { warmup: Nanos::millis(300), ..plan(2, Nanos::millis(1_500), Tasks::default()) };
    let outcome = run(&plan, &mut lane);
    assert_eq!(outcome.done(), [2 * 29, 2 * 100, 2 * 50], "an end at an edge belongs after it");
    // Of each session the operation that was under way at the end, and nothing of its batch after that.
    let outstanding = &outcome.result.as_ref().unwrap().outstanding;
    let [only] = outstanding.as_slice() else { panic!("{outstanding:?}") };
    assert_eq!((only.count(), only.service.max_ns(), only.unended.count()), (2, Some(10 * MS), 0));
    assert!(lane.sent.iter().all(|(_, sent_ns, _)| *sent_ns < START + 1_800 * MS), "nothing is sent after the window");
}

#[test]
fn batches_grow_from_one_operation_to_their_time_and_no_further() {
    let mut lane = FakeLane::new(Clock::simulated(), MS);
    run(&plan(1, Nanos::seconds(2), Tasks::default()), &mut lane);
    assert_eq!(lane.batch_sizes()[..6], [1, 4, 16, 64, 100, 100]);
    let mut fast = FakeLane::new(Clock::simulated(), 100);
    run(&plan(1, Nanos::millis(10), Tasks::default()), &mut fast);
    assert_eq!(fast.batch_sizes().into_iter().max(), Some(10_000));
}

#[test]
fn a_slow_kind_of_operation_does_not_make_the_batch_of_others_long() {
    let mut lane = FakeLane::new(Clock::simulated(), MS);
    lane.slow_ns = 5_000 * MS;
    let outcome = run(&plan(1, Nanos::seconds(60), Tasks { slow_each: 130, ..Tasks::default() }), &mut lane);
    let drawn: Vec<u64> = lane.sent.iter().flat_map(|(_, _, tasks)| tasks).map(|task| task.number).collect();
    assert!(drawn.iter().copied().eq(1..=drawn.len() as u64), "what is put off keeps its place");
    let slow: Vec<&Vec<Task>> =
        lane.sent.iter().map(|(_, _, tasks)| tasks).filter(|tasks| tasks.iter().any(|task| task.kind == 1)).collect();
    assert!(slow.len() > 5);
    assert!(slow[1..].iter().all(|tasks| tasks.len() == 1), "once its time is known it goes alone");
    let quick = lane.batch_sizes().into_iter().skip(6).collect::<Vec<_>>();
    assert!(quick.contains(&100), "the others are not slowed by it: {quick:?}");
    assert_eq!(outcome.service(1).count(), 60_000 / 5_129);
}

#[test]
fn a_session_that_was_slow_once_is_soon_sent_whole_batches_again() {
    let mut expected = Expectation::new();
    expected.learn([(0, MS), (0, MS)].into_iter());
    expected.learn([(0, 64 * MS)].into_iter());
    assert_eq!(expected.each_ns[0], Some(64 * MS));
    let halves: Vec<u64> = (0..4)
        .map(|_| {
            expected.learn([(0, 0)].into_iter());
            expected.each_ns[0].unwrap() / MS
        })
        .collect();
    assert_eq!(halves, [32, 16, 8, 4]);
}

#[test]
fn the_first_session_to_complete_its_work_loop_ends_the_window_with_its_last_operation() {
    let mut lane = FakeLane::new(Clock::simulated(), 7 * MS);
    lane.delay_ns = 2 * MS;
    let plan = StepPlan { work_loop: Some(300), ..plan(3, Nanos::seconds(60), Tasks::default()) };
    let outcome = run(&plan, &mut lane);
    let last = lane.sent.iter().rfind(|(session, ..)| *session == 0).unwrap();
    let batches = lane.sent.iter().filter(|(session, ..)| *session == 0).count() as u64;
    assert_eq!(
        lane.sent.iter().filter(|(session, ..)| *session == 0).map(|(_, _, tasks)| tasks.len()).sum::<usize>(),
        300
    );
    assert_eq!(outcome.timeline.closed_at_ns(), START + 300 * 7 * MS + (2 * batches - 1) * 2 * MS + 1);
    assert_eq!(last.1 + 2 * MS + last.2.len() as u64 * 7 * MS + 1, outcome.timeline.closed_at_ns());
    assert_eq!(outcome.done().iter().sum::<u64>(), 3 * 300, "what ends the window is in it");
}

#[test]
fn a_work_loop_counts_from_the_window_on() {
    let mut lane = FakeLane::new(Clock::simulated(), 10 * MS);
    let plan =
        StepPlan { work_loop: Some(50), warmup: Nanos::millis(1_000), ..plan(1, Nanos::seconds(60), Tasks::default()) };
    let outcome = run(&plan, &mut lane);
    // The one that ends as the window opens is the first.
    assert_eq!(outcome.timeline.closed_at_ns(), START + 1_000 * MS + 490 * MS + 1);
    assert_eq!(outcome.done(), [99, 50]);
}

#[test]
fn lanes_do_not_record_what_another_lanes_work_loop_may_still_shut_out() {
    let clock = Clock::simulated();
    let mut lane = FakeLane::new(clock, MS);
    lane.batch_ns = 10 * MS;
    let plan = StepPlan { work_loop: Some(1_000_000), lanes: 2, ..plan(1, Nanos::seconds(60), Tasks::default()) };
    let part = Part { lane: 0, lanes: 2, first_session: 0, sessions: 1 };
    let timeline = Arc::new(Timeline::new(START, 0, Some(plan.duration.0), 1_000 * MS));
    // At 2,000 ms the other lane learns that its session was done at 1,950 ms.
    let (other, closed) = (Arc::clone(&timeline), START + 1_950 * MS);
    lane.fate = Box::new(move |_, _, sent_ns| {
        if sent_ns >= START + 2_000 * MS {
            other.close(closed);
        }
        Fate::Done
    });
    let outbox = Arc::new(Outbox::default());
    clock.sleep_until(START);
    BatchDriver::new(&plan, part, clock, &timeline, (&outbox, &UnderWay::default())).run(&mut lane).unwrap();
    let done: Vec<u64> = std::iter::from_fn(|| outbox.take(Duration::ZERO))
        .map(|(_, recorded)| recorded.counts[Counter::Operations as usize])
        .collect();
    assert_eq!(done, [999, 950]);
}

#[test]
fn sessions_think_after_the_batch_that_ends_with_the_thought() {
    let mut lane = FakeLane::new(Clock::simulated(), MS);
    let tasks = Tasks { think_each: 10, think_ns: 90 * MS, ..Tasks::default() };
    let outcome = run(&plan(2, Nanos::seconds(10), tasks), &mut lane);
    assert!(lane.sent.iter().all(|(_, _, tasks)| {
        tasks.iter().position(|task| task.number.is_multiple_of(10)).is_none_or(|place| place + 1 == tasks.len())
    }));
    // Ten operations in each 100 ms.
    assert_eq!(outcome.done().iter().sum::<u64>(), 2 * 1_000);
    assert_eq!(outcome.idle_ns(), 0, "thinking is not standing idle");
}

#[test]
fn the_time_between_batches_is_idle_and_only_that_within_the_window() {
    let mut lane = FakeLane::new(Clock::simulated(), 10 * MS);
    lane.delay_ns = 3 * MS;
    let plan = StepPlan { warmup: Nanos::seconds(1), ..plan(2, Nanos::seconds(2), Tasks::default()) };
    let outcome = run(&plan, &mut lane);
    let busy: u64 = outcome.intervals[1..].iter().map(|seen| seen.counts[Counter::Operations as usize] * 10 * MS).sum();
    let window = 2 * 2_000 * MS;
    // An operation at each edge of each session is partly outside.
    assert!((busy + outcome.idle_ns()).abs_diff(window) <= 2 * 20 * MS, "{busy} busy, {} idle", outcome.idle_ns());
    assert!(outcome.idle_ns() > 2 * 15 * 6 * MS, "{}", outcome.idle_ns());
}

#[test]
fn a_failed_batch_is_counted_as_errors_has_no_latency_and_makes_the_next_one_half_as_long() {
    let mut lane = FakeLane::new(Clock::simulated(), MS);
    let mut batches = 0;
    lane.fate = Box::new(move |_, _, _| {
        batches += 1;
        if batches == 6 { Fate::Fails(40 * MS) } else { Fate::Done }
    });
    let outcome = run(&plan(1, Nanos::seconds(2), Tasks::default()), &mut lane);
    assert_eq!(lane.batch_sizes()[3..8], [64, 100, 100, 50, 100]);
    assert_eq!(outcome.counts(Counter::Errors), [100, 0]);
    assert_eq!(outcome.done(), [999 - 40, 1_000]);
    assert_eq!(outcome.service(0).count(), 1_959);
    let failed = outcome.failed(0);
    assert_eq!((failed.count(), failed.min_ns(), failed.max_ns()), (100, Some(40 * MS), Some(40 * MS)));
}

#[test]
fn failures_count_for_the_work_loop_and_failures_without_end_end_the_load() {
    let mut lane = FakeLane::new(Clock::simulated(), MS);
    lane.fate = Box::new(|_, _, _| Fate::Fails(MS));
    let work_loop = StepPlan { work_loop: Some(5), ..plan(1, Nanos::seconds(60), Tasks::default()) };
    let outcome = run(&work_loop, &mut lane);
    assert_eq!(outcome.timeline.closed_at_ns(), START + 5 * MS + 1);
    let mut lane = FakeLane::new(Clock::simulated(), MS);
    lane.fate = Box::new(|_, _, _| Fate::Fails(MS));
    let outcome = run(&plan(1, Nanos::seconds(60), Tasks::default()), &mut lane);
    assert!(matches!(outcome.result, Err(TargetError::TooManyErrors { errors: 10_001 })), "{:?}", outcome.result);
    assert_eq!(outcome.counts(Counter::Errors).iter().sum::<u64>(), 10_000, "the last one came as the window closed");
}

#[test]
fn a_batch_under_way_at_the_end_is_waited_for_and_counts_as_far_as_it_lay_in_the_window() {
    let mut lane = FakeLane::new(Clock::simulated(), 30 * MS);
    lane.batch_ns = 700 * MS;
    let outcome = run(&plan(2, Nanos::seconds(3), Tasks::default()), &mut lane);
    assert_eq!(outcome.done().iter().sum::<u64>(), 2 * 99);
    assert!(lane.clock.now_ns() > START + 3_000 * MS && lane.broken_off_ns.is_none());
}

#[test]
fn a_batch_that_does_not_end_is_broken_off_soon_after_the_window() {
    let mut lane = FakeLane::new(Clock::simulated(), 10 * MS);
    lane.fate = Box::new(
        |session, _, sent_ns| {
            if session == 1 && sent_ns >= START + 900 * MS { Fate::Hangs } else { Fate::Done }
        },
    );
    let outcome = run(&plan(2, Nanos::seconds(2), Tasks::default()), &mut lane);
    let over_ns = lane.broken_off_ns.unwrap() - (START + 2_000 * MS);
    assert!((BREAK_OFF_NS..BREAK_OFF_NS + 2 * LOOK_AROUND_NS).contains(&over_ns), "{over_ns}");
    let report = outcome.result.as_ref().unwrap();
    assert_eq!(outcome.counts(Counter::Errors), [0, 0], "it was broken off after the window");
    let last = lane.sent.iter().rfind(|(session, ..)| *session == 1).unwrap().2.len() as u64;
    let unended = report.unended.expect("what was broken off had not ended");
    assert_eq!((unended.operations, unended.sessions), (last, 1));
    assert!((BREAK_OFF_NS..BREAK_OFF_NS + 100 * MS).contains(&unended.waited_ns), "{unended:?}");
    assert_eq!(
        outcome.done()[1],
        100,
        "the other session's operations are kept, in their interval: {:?}",
        outcome.done()
    );
}

#[test]
fn a_session_that_never_answers_is_given_up_and_the_rest_is_kept() {
    let mut lane = FakeLane::new(Clock::simulated(), 10 * MS);
    lane.fate = Box::new(
        |session, _, sent_ns| {
            if session == 1 && sent_ns >= START + 900 * MS { Fate::Silent } else { Fate::Done }
        },
    );
    let outcome = run(&plan(2, Nanos::seconds(2), Tasks::default()), &mut lane);
    assert!(matches!(outcome.result, Err(TargetError::Silent { sessions: 1, .. })), "{:?}", outcome.result);
    assert_eq!(outcome.done()[1], 100, "{:?}", outcome.done());
    assert!(lane.clock.now_ns() < START + 13_000 * MS);
}

#[test]
fn a_server_that_still_works_on_a_batch_makes_the_step_late_and_fails_nothing() {
    let mut lane = FakeLane::new(Clock::simulated(), 10 * MS);
    lane.is_at_work = true;
    lane.fate = Box::new(
        |session, _, sent_ns| {
            if session == 1 && sent_ns >= START + 900 * MS { Fate::Silent } else { Fate::Done }
        },
    );
    let outcome = run(&plan(2, Nanos::seconds(2), Tasks::default()), &mut lane);
    let last = lane.sent.iter().rfind(|(session, ..)| *session == 1).unwrap().2.len() as u64;
    let unended = outcome.result.as_ref().unwrap().unended.unwrap();
    assert_eq!((unended.operations, unended.sessions), (last, 1));
    assert!(last > 1 && (GIVE_UP_NS..GIVE_UP_NS + 100 * MS).contains(&unended.waited_ns), "{unended:?}");
    assert_eq!(outcome.done()[1], 100, "what ended in the window is kept: {:?}", outcome.done());
}

#[test]
fn one_silent_session_does_not_hold_the_intervals_of_the_others_back_for_ever() {
    let clock = Clock::simulated();
    let mut lane = FakeLane::new(clock, 10 * MS);
    let outbox = Arc::new(Outbox::default());
    let plan = plan(2, Nanos::seconds(60), Tasks::default());
    let timeline = Arc::new(Timeline::new(START, 0, Some(plan.duration.0), 1_000 * MS));
    let (seen, handed_over) = (Arc::clone(&outbox), std::rc::Rc::new(std::cell::RefCell::new(VecDeque::new())));
    let handed = std::rc::Rc::clone(&handed_over);
    lane.fate = Box::new(move |session, _, sent_ns| {
        while let Some((id, _)) = seen.take(Duration::ZERO) {
            handed.borrow_mut().push_back((id, sent_ns));
        }
        if session == 1 { Fate::Silent } else { Fate::Done }
    });
    clock.sleep_until(START);
    let part = Part { lane: 0, lanes: 1, first_session: 0, sessions: 2 };
    assert!(BatchDriver::new(&plan, part, clock, &timeline, (&outbox, &UnderWay::default())).run(&mut lane).is_err());
    let handed_over = handed_over.borrow();
    let late = |(id, at): &(u32, u64)| at - (START + u64::from(id + 1) * 1_000 * MS);
    assert!(handed_over.len() >= 48, "{}", handed_over.len());
    assert!(handed_over.iter().map(late).all(|late| late <= LONGEST_KEPT_NS + 200 * MS));
}

#[test]
fn a_lane_that_breaks_ends_the_window_and_keeps_what_was_known() {
    let mut lane = FakeLane::new(Clock::simulated(), 10 * MS);
    lane.fate = Box::new(|_, _, sent_ns| if sent_ns >= START + 1_200 * MS { Fate::Breaks } else { Fate::Done });
    let outcome = run(&plan(2, Nanos::seconds(60), Tasks::default()), &mut lane);
    assert!(outcome.result.is_err());
    let closed = outcome.timeline.closed_at_ns();
    assert!((START + 1_200 * MS..START + 1_400 * MS).contains(&closed));
    let done = outcome.done();
    assert_eq!((done.len(), done[0]), (2, 2 * 99));
    assert!(done[1] >= 2 * 20, "{done:?}");
}

#[test]
fn clocks_that_disagree_cannot_put_an_operation_before_its_batch_or_after_its_answer() {
    struct Skewed(FakeLane, i64);
    impl BatchLane<Task> for Skewed {
        fn batch_ns(&self) -> u64 {
            self.0.batch_ns()
        }
        fn max_operations(&self) -> usize {
            self.0.max_operations()
        }
        fn send(&mut self, session: u32, operations: &[Task], sent_ns: u64) -> Result<(), TargetError> {
            self.0.send(session, operations, sent_ns)
        }
        fn poll(&mut self, until_ns: u64, finished: &mut Vec<FinishedBatch>) -> Result<(), TargetError> {
            self.0.poll(until_ns, finished)?;
            for done in finished.iter_mut().flat_map(|batch| &mut batch.operations) {
                done.ended_ns = done.ended_ns.saturating_add_signed(self.1);
            }
            Ok(())
        }
        fn break_off(&mut self) {
            self.0.break_off();
        }
        fn abandon(&mut self) -> Result<(), TargetError> {
            self.0.abandon()
        }
    }
    for skew in [-3_600_000 * MS as i64, 3_600_000 * MS as i64] {
        let clock = Clock::simulated();
        let mut lane = Skewed(FakeLane::new(clock, 10 * MS), skew);
        let plan = plan(1, Nanos::seconds(3), Tasks::default());
        let timeline = Arc::new(Timeline::new(START, 0, Some(plan.duration.0), 1_000 * MS));
        let outbox = Arc::new(Outbox::default());
        clock.sleep_until(START);
        let part = Part { lane: 0, lanes: 1, first_session: 0, sessions: 1 };
        BatchDriver::new(&plan, part, clock, &timeline, (&outbox, &UnderWay::default())).run(&mut lane).unwrap();
        let done: Vec<u64> = std::iter::from_fn(|| outbox.take(Duration::ZERO))
            .map(|(_, recorded)| recorded.counts[Counter::Operations as usize])
            .collect();
        assert!(done.iter().all(|done| done.abs_diff(100) <= 11), "skewed by {skew}: {done:?}");
    }
}

/// What goes wrong in a window of a second.
#[derive(Debug, Clone)]
struct Planted {
    sessions: u32,
    quick_ns: u64,
    delay_ns: u64,
    stall: std::ops::Range<u64>,
    /// Batches that are sent then fail so long after.
    fails: std::ops::Range<u64>,
    fails_after_ns: u64,
    /// From then on the first session has no answers.
    silent_from_ns: u64,
}

fn planted() -> impl proptest::strategy::Strategy<Value = Planted> {
    use proptest::prelude::*;
    let instant = || prop_oneof![2 => (850..1_000_u64).prop_map(|ms| ms * MS), 1 => 0..1_000 * MS];
    let length = || prop_oneof![0..40 * MS, 0..4_000 * MS];
    let silent = proptest::option::of(instant());
    (1..5_u32, MS..60 * MS, 0..4 * MS, (instant(), length()), (instant(), 0..80 * MS), 0..500 * MS, silent).prop_map(
        |(sessions, quick_ns, delay_ns, (stalls_ns, stalled_ns), (fails_ns, failing_ns), fails_after_ns, silent)| {
            let stall = START + stalls_ns..START + stalls_ns + stalled_ns;
            let fails = START + fails_ns..START + fails_ns + failing_ns;
            let silent_from_ns = silent.map_or(u64::MAX, |silent_ns| START + silent_ns);
            Planted { sessions, quick_ns, delay_ns, stall, fails, fails_after_ns, silent_from_ns }
        },
    )
}

proptest::proptest! {
    #[test]
    fn all_that_was_sent_is_done_failed_outstanding_or_unended_whatever_hangs_at_the_end(planted in planted()) {
        let closed_ns = START + 1_000 * MS;
        let mut lane = FakeLane::new(Clock::simulated(), planted.quick_ns);
        (lane.delay_ns, lane.stall, lane.cancels, lane.is_at_work) =
            (planted.delay_ns, planted.stall.clone(), true, true);
        let Planted { fails, fails_after_ns, silent_from_ns, .. } = planted.clone();
        lane.fate = Box::new(move |session, _, sent_ns| match () {
            () if session == 0 && sent_ns >= silent_from_ns => Fate::Silent,
            () if fails.contains(&sent_ns) => Fate::Fails(fails_after_ns),
            () => Fate::Done,
        });
        let outcome = run(&plan(planted.sessions, Nanos::seconds(1), Tasks::default()), &mut lane);
        let report = outcome.result.as_ref().unwrap();
        let given_up_ns = lane.broken_off_ns.map_or(u64::MAX, |at_ns| at_ns + CANCELLED_NS);
        let (mut done, mut late, mut failed, mut unended) = (0, Histogram::default(), 0, 0);
        for ((fate, known_ns, operations), size) in lane.log.iter().zip(lane.batch_sizes()) {
            match fate {
                Fate::Fails(_) => failed += size as u64,
                Fate::Done if *known_ns <= given_up_ns => {
                    done += operations.iter().filter(|(_, ended_ns)| *ended_ns < closed_ns).count() as u64;
                    let at_the_end = operations.iter().filter(|(began, ended)| *began < closed_ns && *ended >= closed_ns);
                    at_the_end.for_each(|(began_ns, ended_ns)| late.record(ended_ns - began_ns));
                }
                _ => unended += size as u64,
            }
        }
        let outstanding = &report.outstanding;
        let mut seen = Histogram::default();
        outstanding.iter().for_each(|kind| seen.merge(&kind.response));
        let late_errors: u64 = outstanding.iter().map(|kind| kind.errors).sum();
        let errors = outcome.counts(Counter::Errors).iter().sum::<u64>() + late_errors;
        proptest::prop_assert_eq!(outcome.done().iter().sum::<u64>(), done);
        proptest::prop_assert_eq!((seen.count(), seen.total_ns()), (late.count(), late.total_ns()));
        proptest::prop_assert_eq!(errors, failed);
        proptest::prop_assert_eq!(report.unended.map_or(0, |unended| unended.operations), unended);
    }
}
