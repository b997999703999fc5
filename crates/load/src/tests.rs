//! Steps against the simulated target, whose behaviour is known.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::*;
use measure::{Clock, Counter, LaneRecorder};
use model::record::{Ending, Interval, Outcome, Step};
use model::workload::io::{Access, Distribution, IoClass, IoShape, RequestSize};
use model::workload::{RedoStress, SlobOperation, SlobShape, Think};
use targets::simulated::{Simulated, SimulatedOptions, Stall};
use targets::{
    Background, BatchLane, BatchedOperation, Finished, FinishedBatch, Lane, OperationResult, SessionRange, Target,
    TargetError, TargetFor,
};

pub(super) fn plan(sessions: u32) -> StepPlan<SlobShape> {
    StepPlan {
        index: 0,
        label: "test".to_owned(),
        load: record::Intensity { sessions: Some(sessions), ..record::Intensity::default() },
        level: None,
        like: None,
        shape: SlobShape {
            schemas: 1,
            threads_per_schema: sessions,
            scale_blocks: 10_000,
            work_unit: 2,
            update_pct: 0,
            update_share: None,
            scan_pct: 0,
            redo_stress: RedoStress::Lite,
            hot_spot: None,
            hot_schema_frequency: 0,
            think: None,
        },
        seed: 7,
        work_loop: None,
        warmup: Nanos::millis(300),
        duration: Nanos::millis(1_500),
        pace: Pace::Closed,
        lanes: 2,
        share: Share::WHOLE,
    }
}

fn service(us: u64, servers: u32) -> SimulatedOptions {
    SimulatedOptions { service: Nanos(us * 1_000), servers, ..SimulatedOptions::default() }
}

/// Tests that need real time take turns, so that they do not take each other's processors.
pub(super) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In simulated time, which nothing else on the machine can slow.
fn run(plan: &StepPlan<SlobShape>, options: SimulatedOptions) -> (Step, Vec<Interval>) {
    run_on(Clock::simulated(), plan, options)
}

fn run_for_real(plan: &StepPlan<SlobShape>, options: SimulatedOptions) -> (Step, Vec<Interval>) {
    let _turn = turn();
    run_on(Clock::start(), plan, options)
}

fn run_on(clock: Clock, plan: &StepPlan<SlobShape>, options: SimulatedOptions) -> (Step, Vec<Interval>) {
    let target = Simulated::open(options, clock);
    let mut heard = Vec::new();
    let outcome =
        run_step(&target, plan, Surroundings::new(clock, &Stop::new()), &mut |interval| heard.push(interval.clone()));
    assert!(outcome.failure.is_none());
    (outcome.step, heard)
}

fn operations(step: &Step) -> u64 {
    step.counters.operations.unwrap()
}

#[test]
fn a_closed_loop_goes_as_fast_as_its_servers_and_no_faster() {
    // Four sessions at four servers of 1 ms: 4,000 reads/s, two to an operation, 1.5 s.
    let (step, _) = run(&plan(4), service(1_000, 4));
    assert_eq!(step.outcome, Outcome::Completed);
    assert_eq!(step.window.duration_ns, 1_500_000_000);
    assert!((2_996..=3_004).contains(&operations(&step)), "{} operations", operations(&step));
    let service = &step.operations[0].service;
    assert_eq!(step.operations[0].block_touches, 2 * operations(&step));
    assert!(service.quantile_ns(0.5).unwrap() >= 2_000_000 && service.quantile_ns(0.5).unwrap() < 2_500_000);
}

#[test]
fn queueing_shows_as_latency_not_as_throughput() {
    let (step, _) = run(&plan(16), service(1_000, 4));
    let p50 = step.operations[0].response.quantile_ns(0.5).unwrap();
    assert!((6_500_000..10_000_000).contains(&p50), "16 sessions at 4 servers wait four times: p50 is {p50} ns");
    assert!(operations(&step) <= 3_004);
}

#[test]
fn the_window_holds_exactly_the_intervals_after_the_warmup() {
    let (step, heard) = run_for_real(&plan(4), service(1_000, 4));
    assert_eq!(heard, step.intervals);
    let shape: Vec<(bool, u64)> = heard.iter().map(|i| (i.warmup, i.duration_ns / 1_000_000)).collect();
    assert_eq!(shape, [(true, 300), (false, 1_000), (false, 500)]);
    let in_window: u64 = heard.iter().filter(|i| !i.warmup).map(|i| i.counters.operations.unwrap()).sum();
    assert_eq!(in_window, operations(&step), "the totals are the sum of the window's intervals");
    assert!(heard[0].counters.operations.unwrap() > 0, "the warm-up has load");
}

#[test]
fn the_window_of_many_lanes_begins_when_all_of_them_run() {
    let mut plan = plan(200);
    (plan.warmup, plan.duration, plan.lanes) = (Nanos(0), Nanos::millis(300), 200);
    let (step, heard) = run_for_real(&plan, service(1_000, 200));
    assert_eq!(step.window.warmup_ns, 200 * 200_000, "0.2 ms for each lane");
    assert!(heard[0].warmup && heard[0].duration_ns == step.window.warmup_ns, "{heard:?}");
    assert_eq!(step.window.duration_ns, 300_000_000);
    plan.lanes = 2;
    assert_eq!(run_for_real(&plan, service(1_000, 200)).0.window.warmup_ns, 0);
}

#[test]
fn a_session_that_never_has_its_turn_is_idle_all_the_time() {
    use super::drive::{Driver, Part};
    let under_way = super::waiting::UnderWay::default();
    let (plan, clock) = (plan(4), Clock::simulated());
    let timeline = std::sync::Arc::new(measure::Timeline::new(0, plan.warmup.0, Some(plan.duration.0), 1_000_000_000));
    timeline.close(1_000_000_000);
    clock.sleep_until(2_000_000_000);
    let part = Part { lane: 0, lanes: 1, first_session: 0, sessions: 4 };
    let driver = Driver::new(&plan, part, clock, &timeline, (&std::sync::Arc::default(), &under_way));
    let target = Simulated::open(service(1_000, 4), clock);
    let range = SessionRange { lane: 0, first_session: 0, sessions: 4, clock };
    let mut lane = TargetFor::<SlobOperation>::open_lane(&target, range).unwrap();
    let report = driver.run(lane.as_mut(), &Stop::new(), Nanos::seconds(1)).unwrap();
    // From the end of the warm-up, 0.3 s, to the end of the window.
    assert_eq!(report.idle_session_ns, 4 * 700_000_000);
}

#[test]
fn unknown_counters_stay_unknown() {
    let (step, _) = run(&plan(1), service(1_000, 4));
    assert_eq!(step.counters.physical_writes, None);
    assert_eq!(step.counters.commits, None);
}

#[test]
fn an_open_loop_keeps_its_rate_and_counts_from_the_due_instant() {
    let mut plan = plan(64);
    plan.pace = Pace::Open { rate_per_s: 1_000.0, arrival: Arrival::Poisson };
    let (step, _) = run(&plan, service(500, 8));
    let done = operations(&step);
    assert!((1_300..1_700).contains(&done), "{done} operations where about 1500 were due");
    let generator = step.generator.unwrap();
    assert!(generator.due_operations.unwrap().abs_diff(done) < 100);
    assert!(generator.backlog_operations.unwrap() < 20, "{:?}", generator.backlog_operations);
}

#[test]
fn a_stall_shows_in_every_operation_that_fell_due_in_it() {
    let mut plan = plan(200);
    plan.warmup = Nanos(0);
    plan.duration = Nanos::seconds(2);
    plan.pace = Pace::Open { rate_per_s: 1_000.0, arrival: Arrival::Fixed };
    let stalls = vec![Stall { at: Nanos::millis(1_000), length: Nanos::millis(500) }];
    let (step, _) = run(&plan, SimulatedOptions { stalls, ..service(100, 64) });
    // 500 operations fell due while nothing was served; they waited 250 ms on average.
    let slow: u64 =
        step.operations[0].response.buckets_ns().filter(|(low, ..)| *low > 10_000_000).map(|(.., n)| n).sum();
    // Hiding the stall would make far fewer so.
    assert!((450..=500).contains(&slow), "{slow} operations were slow");
    let total_ms = step.operations[0].response.total_ns().unwrap() / 1_000_000;
    assert!((120_000..130_000).contains(&total_ms), "they waited {total_ms} ms together");
}

#[test]
fn a_rate_that_cannot_be_met_leaves_a_backlog() {
    let mut plan = plan(4);
    plan.pace = Pace::Open { rate_per_s: 4_000.0, arrival: Arrival::Fixed };
    let (step, _) = run(&plan, service(1_000, 4));
    let generator = step.generator.unwrap();
    assert_eq!(generator.due_operations, Some(6_000));
    assert!(generator.backlog_operations.unwrap() > 2_000, "{:?}", generator.backlog_operations);
    let (service, response) = (&step.operations[0].service, &step.operations[0].response);
    assert!(response.quantile_ns(0.9).unwrap() > 20 * service.quantile_ns(0.9).unwrap());
}

#[test]
fn an_absurd_rate_ends_in_time_with_its_backlog() {
    let mut plan = plan(4);
    (plan.warmup, plan.duration) = (Nanos(0), Nanos::seconds(1));
    let rate_per_s = 5e9;
    plan.pace = Pace::Open { rate_per_s, arrival: Arrival::Fixed };
    let (step, _) = run_for_real(&plan, service(1_000, 4));
    let generator = step.generator.unwrap();
    for counted in [generator.due_operations, generator.backlog_operations] {
        assert!((counted.unwrap() as f64 / rate_per_s - 1.0).abs() < 0.001, "{counted:?}");
    }
}

#[test]
fn a_work_loop_closes_the_window_with_the_first_session_that_is_done() {
    let mut plan = plan(4);
    plan.work_loop = Some(100);
    plan.duration = Nanos::seconds(20);
    let (step, _) = run(&plan, service(1_000, 4));
    assert_eq!(step.window.ending, Ending::WorkLoop);
    // Nobody does more than its hundred.
    assert!((390..=400).contains(&operations(&step)), "{} operations", operations(&step));
    assert!((195_000_000..=205_000_000).contains(&step.window.duration_ns), "{} ns", step.window.duration_ns);
}

#[test]
fn thinking_sessions_send_less() {
    let mut plan = plan(4);
    plan.shape.think = Some(Think { frequency: 1, min_ns: 18_000_000, max_ns: 18_000_000 });
    let (step, _) = run(&plan, service(1_000, 4));
    // 2 ms of work, 18 ms of thought: 50 operations/s for each session.
    assert!((280..=304).contains(&operations(&step)), "{} operations", operations(&step));
    assert!(step.operations[0].response.quantile_ns(0.5).unwrap() < 3_000_000, "thinking is no response time");
}

#[test]
fn a_wish_to_stop_keeps_what_was_measured() {
    let _turn = turn();
    let mut plan = plan(4);
    plan.duration = Nanos::seconds(60);
    let (clock, stop) = (Clock::start(), Stop::new());
    let target = Simulated::open(service(1_000, 4), clock);
    // Asked when the first second of the window is over.
    let mut heard = Vec::new();
    let outcome = run_step(&target, &plan, Surroundings::new(clock, &stop), &mut |interval| {
        heard.push(interval.counters.operations.unwrap());
        if !interval.warmup {
            stop.ask();
        }
    });
    assert_eq!((outcome.step.outcome.clone(), outcome.step.window.ending), (Outcome::Interrupted, Ending::Interrupt));
    assert!((1_000_000_000..plan.duration.0).contains(&outcome.step.window.duration_ns));
    assert!(heard[1] > 0 && operations(&outcome.step) == heard[1..].iter().sum::<u64>(), "{heard:?}");
}

/// A target on which every lane but the first breaks.
struct Broken(Simulated, Fault);

enum Fault {
    /// It panics when it is first polled.
    Panics,
    /// It cannot be opened, and nor can the first.
    Refuses,
    /// It has an error when it is first polled, and then the first has no answers.
    Dies,
    /// All lanes are given up so many times in vain, since the server still works on what they asked.
    IsLate(u64),
}

struct BrokenLane<'t> {
    lane: Box<dyn Lane<SlobOperation> + 't>,
    is_first: bool,
    panics: bool,
    /// Times that it is given up in vain; `None` where it breaks.
    late: Option<u64>,
}

impl Target for Broken {
    fn describe(&self) -> record::Target {
        self.0.describe()
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    fn layer(&self) -> &'static str {
        self.0.layer()
    }

    fn known_counters(&self) -> &'static [Counter] {
        self.0.known_counters()
    }

    fn take_background(&self) -> Background {
        self.0.take_background()
    }

    fn check_health(&self) -> Result<(), TargetError> {
        Ok(())
    }
}

impl TargetFor<SlobOperation> for Broken {
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<SlobOperation> + '_>, TargetError> {
        let lane = self.0.open_lane(range)?;
        match self.1 {
            Fault::Refuses => Err(TargetError::Shape("no lane today".to_owned())),
            Fault::Panics if range.lane == 0 => Ok(lane),
            Fault::Panics => Ok(Box::new(BrokenLane { lane, is_first: false, panics: true, late: None })),
            Fault::Dies => Ok(Box::new(BrokenLane { lane, is_first: range.lane == 0, panics: false, late: None })),
            Fault::IsLate(times) => Ok(Box::new(BrokenLane { lane, is_first: true, panics: false, late: Some(times) })),
        }
    }
}

impl Lane<SlobOperation> for BrokenLane<'_> {
    fn start(
        &mut self,
        session: u32,
        operation: &SlobOperation,
        sent_ns: u64,
        recorder: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        self.lane.start(session, operation, sent_ns, recorder)
    }

    fn poll(
        &mut self,
        until_ns: u64,
        recorder: &mut LaneRecorder,
        finished: &mut Vec<Finished>,
    ) -> Result<(), TargetError> {
        assert!(!self.panics, "a bug in the target");
        if self.is_first {
            return self.lane.poll(until_ns, recorder, finished);
        }
        Err(TargetError::Shape("the server is gone".to_owned()))
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.lane.abandon()?;
        if let Some(left) = &mut self.late {
            let is_late = *left > 0;
            *left = left.saturating_sub(1);
            return if is_late {
                Err(TargetError::StillAtWork { sessions: 2, waited_ns: 2_000_000_000 })
            } else {
                Ok(())
            };
        }
        if self.is_first { Err(TargetError::Silent { sessions: 1, waited_ns: 2_000_000_000 }) } else { Ok(()) }
    }
}

#[test]
fn the_error_that_ended_the_load_is_reported_and_not_the_silence_that_followed_it() {
    let clock = Clock::start();
    let target = Broken(Simulated::open(service(1_000, 4), clock), Fault::Dies);
    let outcome = run_step(&target, &plan(4), Surroundings::new(clock, &Stop::new()), &mut |_| {});
    assert_eq!(outcome.failure.unwrap().to_string(), "the server is gone");
}

#[test]
fn a_server_that_works_on_after_the_window_makes_a_late_step_and_no_failed_one() {
    let clock = Clock::simulated();
    let late = |times| {
        let target = Broken(Simulated::open(service(1_000, 4), clock), Fault::IsLate(times));
        run_step(&target, &plan(4), Surroundings::new(clock, &Stop::new()), &mut |_| {})
    };
    let outcome = late(u64::MAX);
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    let unended = outcome.step.unended.unwrap();
    assert_eq!((unended.operations, unended.sessions), (2, 2));
    assert!((10_000_000_000..11_000_000_000).contains(&unended.waited_ns), "{unended:?}");
    assert_eq!((outcome.step.outcome.clone(), operations(&outcome.step)), (Outcome::Completed, 3_000));
    assert_eq!(late(3).step.unended, None, "what ends in time is not late");

    // Nobody who wants an end waits so long.
    let (stop, real) = (Stop::new(), Clock::start());
    let target = Broken(Simulated::open(service(1_000, 4), real), Fault::IsLate(u64::MAX));
    let outcome = run_step(&target, &plan(4), Surroundings::new(real, &stop), &mut |_| stop.ask());
    let waited_ns = outcome.step.unended.unwrap().waited_ns;
    assert!(outcome.step.outcome == Outcome::Interrupted && waited_ns < 5_000_000_000, "{waited_ns}");
}

#[test]
fn a_lane_that_panics_ends_the_step_instead_of_hanging_it() {
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let clock = Clock::start();
        let target = Broken(Simulated::open(service(1_000, 4), clock), Fault::Panics);
        let mut plan = plan(4);
        plan.duration = Nanos::seconds(60);
        let step = || run_step(&target, &plan, Surroundings::new(clock, &Stop::new()), &mut |_| {});
        done.send(std::panic::catch_unwind(std::panic::AssertUnwindSafe(step)).is_err())
    });
    assert_eq!(ended.recv_timeout(std::time::Duration::from_secs(120)), Ok(true), "the panic is passed on");
}

#[test]
fn a_lane_that_cannot_be_opened_ends_the_step_in_real_and_in_simulated_time() {
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for clock in [Clock::start(), Clock::simulated()] {
            let target = Broken(Simulated::open(service(1_000, 4), clock), Fault::Refuses);
            let outcome = run_step(&target, &plan(4), Surroundings::new(clock, &Stop::new()), &mut |_| {});
            let message = outcome.failure.map(|failure| failure.to_string());
            done.send((message, outcome.step.intervals.len())).unwrap();
        }
    });
    for _ in 0..2 {
        let ending = ended.recv_timeout(std::time::Duration::from_secs(120));
        assert_eq!(ending, Ok((Some("no lane today".to_owned()), 0)));
    }
}

#[test]
fn a_load_that_waits_for_others_begins_at_their_instant_or_not_at_all() {
    let clock = Clock::simulated();
    let target = Simulated::open(service(1_000, 4), clock);
    let begin = |when: &mut dyn FnMut() -> Begin, stop: &Stop| {
        run_any_step(&target, &plan(4), Surroundings::new(clock, stop), when, &mut |_| {}).step
    };
    let instant_ns = 40_000_000_000;
    let step = begin(&mut || Begin::At(instant_ns), &Stop::new());
    assert_eq!((step.outcome, step.window.offset_ns), (Outcome::Completed, instant_ns + Nanos::millis(300).0));
    assert!(step.counters.operations.is_some_and(|operations| operations > 0));

    let stop = Stop::new();
    let mut asked = 0;
    let mut leave = || {
        asked += 1;
        stop.ask();
        Begin::NotAtAll
    };
    let step = begin(&mut leave, &stop);
    assert_eq!((asked, step.outcome, step.intervals.len()), (1, Outcome::Interrupted, 0));

    // Nobody else is held up by sessions that will never begin.
    let broken = Broken(Simulated::open(service(1_000, 4), clock), Fault::Refuses);
    let mut never = || -> Begin { panic!("the start was waited for although a lane was refused") };
    let outcome = run_any_step(&broken, &plan(4), Surroundings::new(clock, &Stop::new()), &mut never, &mut |_| {});
    assert_eq!(outcome.failure.map(|failure| failure.to_string()), Some("no lane today".to_owned()));
}

/// Simulated time needs no turn: nothing else can slow it.
fn simulate(plan: &StepPlan<SlobShape>, options: SimulatedOptions, stop: &Stop) -> Step {
    let clock = Clock::simulated();
    let target = Simulated::open(options, clock);
    let outcome = run_step(&target, plan, Surroundings::new(clock, stop), &mut |_| {});
    assert!(outcome.failure.is_none());
    outcome.step
}

#[test]
fn a_step_of_simulated_time_is_exact_whatever_its_pace_and_lanes() {
    let all = |mut plan: StepPlan<SlobShape>, pace| {
        plan.pace = pace;
        let step = simulate(&plan, service(1_000, 4), &Stop::new());
        let done: Vec<u64> = step.intervals.iter().map(|interval| interval.counters.operations.unwrap()).collect();
        let generator = step.generator.clone().unwrap();
        assert_eq!((step.window.duration_ns, generator.busy_ns, generator.lanes), (1_500_000_000, 0, 1));
        assert_eq!(operations(&step), done[1..].iter().sum::<u64>());
        (done, generator.due_operations, generator.backlog_operations)
    };
    // Two reads of 1 ms one after the other, four at a time. What ends at an edge belongs after it.
    assert_eq!(all(plan(4), Pace::Closed), (vec![596, 2_000, 1_000], None, None));
    let pace = Pace::Open { rate_per_s: 1_000.0, arrival: Arrival::Fixed };
    assert_eq!(all(plan(64), pace), (vec![298, 1_000, 500], Some(1_500), Some(0)));
}

#[test]
fn a_work_loop_that_ends_at_an_intervals_edge_ends_there_each_time() {
    let mut plan = plan(4);
    (plan.warmup, plan.work_loop, plan.duration) = (Nanos(0), Some(1_000), Nanos::seconds(20));
    for _ in 0..20 {
        let step = simulate(&plan, service(1_000, 4), &Stop::new());
        assert_eq!((step.window.ending, step.window.duration_ns), (Ending::WorkLoop, 2_000_000_000));
        let done: Vec<u64> = step.intervals.iter().map(|interval| interval.counters.operations.unwrap()).collect();
        assert_eq!((operations(&step), done), (3_996, vec![1_996, 2_000]));
    }
}

#[test]
fn a_wish_to_stop_ends_simulated_time_within_the_interval_in_which_it_is_seen() {
    let stop = Stop::new();
    let asked = stop.clone();
    std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        asked.ask();
    });
    let mut plan = plan(4);
    plan.duration = Nanos::seconds(1_000_000_000);
    let step = simulate(&plan, service(1_000, 4), &stop);
    assert_eq!((step.outcome.clone(), step.window.ending), (Outcome::Interrupted, Ending::Interrupt));
    assert_eq!(step.intervals.iter().skip(1).map(|i| i.duration_ns).sum::<u64>(), step.window.duration_ns);
    let expected = step.window.duration_ns / 500_000;
    assert!(operations(&step).abs_diff(expected) <= 4, "{} operations, not {expected}", operations(&step));
}

#[test]
fn a_stream_of_requests_is_never_drawn_from_by_two_lanes() {
    // Two lanes would open it twice and ask for the same places: what the second reads, a cache would have.
    for (depth, jobs) in (1..200).flat_map(|depth| (1..=17).map(move |jobs| (depth, jobs))) {
        let shape = IoShape::of(IoClass {
            size: RequestSize::Small,
            block_bytes: 8192,
            from_bytes: 0,
            region_bytes: 1 << 30,
            access: Access::Random(Distribution::Uniform),
            read_pct: 100,
            streams: jobs,
            slots: depth,
        });
        let mut seen = BTreeSet::new();
        for part in super::step::parts(depth, jobs.min(depth)) {
            let sessions = part.first_session..part.first_session + part.sessions;
            let streams: BTreeSet<u32> = sessions.map(|session| shape.stream_of(session)).collect();
            assert!(!streams.is_empty() && streams.is_disjoint(&seen), "depth {depth}, {jobs} lanes, {part:?}");
            seen.extend(streams);
        }
    }
}

/// A target that takes batches of which each is one operation of 1.7 s, and that counts milliseconds beside its lanes.
struct Slow {
    inner: Simulated,
    clock: Clock,
    taken_ns: Mutex<u64>,
}

struct SlowLane {
    clock: Clock,
    under_way: Vec<(u32, u64)>,
}

const SLOW_NS: u64 = 1_700_000_000;

impl Target for Slow {
    fn describe(&self) -> record::Target {
        self.inner.describe()
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    fn layer(&self) -> &'static str {
        "server"
    }

    fn known_counters(&self) -> &'static [Counter] {
        &[Counter::Operations]
    }

    fn take_background(&self) -> Background {
        let now = self.clock.now_ns();
        let since_ns = now - std::mem::replace(&mut *self.taken_ns.lock().unwrap(), now);
        let counters = record::Counters { buffer_misses: Some(since_ns / 1_000_000), ..record::Counters::default() };
        Background { counters, ..Background::default() }
    }

    fn check_health(&self) -> Result<(), TargetError> {
        Ok(())
    }
}

impl TargetFor<SlobOperation> for Slow {
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<SlobOperation> + '_>, TargetError> {
        self.inner.open_lane(range)
    }

    fn open_batch_lane(
        &self,
        range: SessionRange,
    ) -> Result<Option<Box<dyn BatchLane<SlobOperation> + '_>>, TargetError> {
        Ok(Some(Box::new(SlowLane { clock: range.clock, under_way: Vec::new() })))
    }
}

impl BatchLane<SlobOperation> for SlowLane {
    fn batch_ns(&self) -> u64 {
        100_000_000
    }

    fn max_operations(&self) -> usize {
        10_000
    }

    fn send(&mut self, session: u32, operations: &[SlobOperation], sent_ns: u64) -> Result<(), TargetError> {
        assert_eq!(operations.len(), 1, "what takes longer than a batch goes alone");
        self.under_way.push((session, sent_ns + SLOW_NS));
        Ok(())
    }

    fn poll(&mut self, until_ns: u64, finished: &mut Vec<FinishedBatch>) -> Result<(), TargetError> {
        self.clock.sleep_until(until_ns);
        let now = self.clock.now_ns();
        finished.extend(self.under_way.extract_if(.., |(_, ended_ns)| *ended_ns <= now).map(|(session, ended_ns)| {
            let done =
                BatchedOperation { ended_ns, service_ns: SLOW_NS, commit_ns: None, block_touches: 1, block_changes: 0 };
            FinishedBatch { session, operations: vec![done], result: OperationResult::Done }
        }));
        Ok(())
    }

    fn break_off(&mut self) {}

    fn abandon(&mut self) -> Result<(), TargetError> {
        Ok(())
    }
}

#[test]
fn what_others_count_is_read_at_the_edges_however_late_batches_tell_of_themselves() {
    let _turn = turn();
    let mut plan = plan(2);
    (plan.warmup, plan.duration) = (Nanos::seconds(1), Nanos::seconds(4));
    // A thread that gets no processor at an edge is late without any batch.
    let late = (0..5).map_while(|_| {
        let clock = Clock::start();
        let target = Slow { inner: Simulated::open(service(1_000, 4), clock), clock, taken_ns: Mutex::new(0) };
        let mut heard = Vec::new();
        let outcome = run_step(&target, &plan, Surroundings::new(clock, &Stop::new()), &mut |interval| {
            heard.push(interval.counters.clone());
        });
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        assert_eq!(heard.len(), 5);
        let counted: Vec<u64> = heard.iter().map(|counters| counters.buffer_misses.unwrap()).collect();
        let done: Vec<u64> = heard.iter().map(|counters| counters.operations.unwrap()).collect();
        // Each session's operations end 1.7, 3.4 and about 5.1 s after the start.
        let is_at_edges = counted.iter().all(|ms| (850..1_150).contains(ms)) && done == [0, 2, 0, 2, 0];
        (!is_at_edges).then_some((counted, done))
    });
    let late: Vec<_> = late.collect();
    assert!(late.len() < 5, "{late:?}");
}

#[test]
fn operations_that_fall_due_at_a_rate_are_never_sent_in_batches() {
    let _turn = turn();
    let clock = Clock::start();
    let target = Slow { inner: Simulated::open(service(1_000, 4), clock), clock, taken_ns: Mutex::new(0) };
    let mut plan = plan(4);
    plan.pace = Pace::Open { rate_per_s: 200.0, arrival: Arrival::Fixed };
    let outcome = run_step(&target, &plan, Surroundings::new(clock, &Stop::new()), &mut |_| {});
    let generator = outcome.step.generator.as_ref().unwrap();
    assert_eq!(generator.due_operations, Some(300));
    // What a machine is late with is left at the end; in batches each session would have done one.
    let (done, backlog, sessions) = (operations(&outcome.step), generator.backlog_operations.unwrap(), 4);
    assert!(done > sessions && done + backlog + sessions >= 300, "{done} done, {backlog} left");
}

/// Idle lanes of which none gets to finish an operation within the time that a ceiling takes.
struct Starved(Simulated);

impl Target for Starved {
    fn describe(&self) -> record::Target {
        self.0.describe()
    }

    fn notes(&self) -> Vec<String> {
        self.0.notes()
    }

    fn layer(&self) -> &'static str {
        self.0.layer()
    }

    fn known_counters(&self) -> &'static [Counter] {
        self.0.known_counters()
    }

    fn take_background(&self) -> Background {
        self.0.take_background()
    }

    fn check_health(&self) -> Result<(), TargetError> {
        self.0.check_health()
    }
}

impl TargetFor<SlobOperation> for Starved {
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<SlobOperation> + '_>, TargetError> {
        self.0.open_lane(range)
    }

    fn open_idle_lane(&self, range: SessionRange) -> Result<Option<Box<dyn Lane<SlobOperation> + '_>>, TargetError> {
        self.open_lane(range).map(Some)
    }
}

#[test]
fn a_ceiling_in_whose_time_nothing_was_reached_is_unknown() {
    let _turn = turn();
    let (clock, stop) = (Clock::start(), Stop::new());
    let ceiling = |service_us| {
        let options = service(service_us, 64);
        generator_ceiling(&Starved(Simulated::open(options, clock)), &plan(2), clock, &stop)
    };
    assert!((0..20).any(|_| ceiling(100).is_some_and(|per_s| per_s > 0.0)));
    assert_eq!(ceiling(400_000), None);
}

/// Storage that answers neither lanes nor those who look at it, from one instant to another.
struct Hung {
    inner: Simulated,
    clock: Clock,
    hangs_ns: std::ops::Range<u64>,
}

struct HungLane<'t> {
    lane: Box<dyn Lane<SlobOperation> + 't>,
    target: &'t Hung,
}

impl Hung {
    fn hang(&self) {
        if self.hangs_ns.contains(&self.clock.now_ns()) {
            self.clock.sleep_until(self.hangs_ns.end);
        }
    }
}

impl Target for Hung {
    fn describe(&self) -> record::Target {
        self.inner.describe()
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    fn layer(&self) -> &'static str {
        self.inner.layer()
    }

    fn known_counters(&self) -> &'static [Counter] {
        self.inner.known_counters()
    }

    fn take_background(&self) -> Background {
        self.inner.take_background()
    }

    fn check_health(&self) -> Result<(), TargetError> {
        self.hang();
        Ok(())
    }
}

impl TargetFor<SlobOperation> for Hung {
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<SlobOperation> + '_>, TargetError> {
        Ok(Box::new(HungLane { lane: self.inner.open_lane(range)?, target: self }))
    }
}

impl Lane<SlobOperation> for HungLane<'_> {
    fn start(
        &mut self,
        session: u32,
        operation: &SlobOperation,
        sent_ns: u64,
        recorder: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        self.lane.start(session, operation, sent_ns, recorder)
    }

    fn poll(
        &mut self,
        until_ns: u64,
        recorder: &mut LaneRecorder,
        finished: &mut Vec<Finished>,
    ) -> Result<(), TargetError> {
        self.target.hang();
        self.lane.poll(until_ns, recorder, finished)
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.lane.abandon()
    }
}

#[test]
fn a_wait_for_storage_is_told_again_and_again_although_every_thread_of_the_load_hangs() {
    let clock = Clock::start();
    let mut plan = plan(4);
    (plan.warmup, plan.duration) = (Nanos(0), Nanos::seconds(1));
    let from_ns = clock.now_ns() + 600_000_000;
    let hangs_ns = from_ns..from_ns + 8_000_000_000;
    let target = Hung { inner: Simulated::open(service(1_000, 4), clock), clock, hangs_ns };
    let (stop, heard) = (Stop::new(), Mutex::new(Vec::new()));
    let on_wait = |waiting: Waiting| heard.lock().unwrap().push(waiting);
    let surroundings = Surroundings { on_wait: &on_wait, ..Surroundings::new(clock, &stop) };
    let outcome = run_step(&target, &plan, surroundings, &mut |_| {});
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    let heard = heard.into_inner().unwrap();
    let (first, again) = (heard[0], heard[1]);
    assert!((first.requests, again.requests) == (4, 4), "{heard:?}");
    assert!(first.since >= Nanos::seconds(2) && first.since < Nanos::seconds(5), "{heard:?}");
    assert!(again.since >= Nanos::seconds(5) && again.since < Nanos::seconds(8), "{heard:?}");
}
