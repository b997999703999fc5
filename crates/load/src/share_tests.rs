//! Parts of a step on targets whose behaviour is known: together they do what one process does.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use proptest::prelude::*;

use super::step::parts;
use super::tests::turn;
use super::{Pace, Share, StepPlan, Stop, Surroundings, run_step};
use measure::{Clock, Counter, LaneRecorder};
use model::record::{self, Step};
use model::units::Nanos;
use model::workload::{Arrival, RedoStress, SlobOperation, SlobShape, Think};
use targets::simulated::{Simulated, SimulatedOptions};
use targets::{Background, Finished, Lane, OperationResult, SessionRange, Target, TargetError, TargetFor};

/// What each session was asked, in its order.
type Lists = BTreeMap<u32, Vec<SlobOperation>>;

/// Writes down what it is asked. What answers is the simulated target, or nobody: then all is done in the order in which it came.
struct Observer {
    behind: Option<Simulated>,
    lists: Mutex<Lists>,
}

impl Observer {
    fn note(&self, session: u32, operation: SlobOperation) {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner).entry(session).or_default().push(operation);
    }
}

impl Target for Observer {
    fn describe(&self) -> record::Target {
        record::Target::default()
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    fn layer(&self) -> &'static str {
        "client"
    }

    fn known_counters(&self) -> &'static [Counter] {
        &[Counter::Operations]
    }

    fn take_background(&self) -> Background {
        Background::default()
    }

    fn check_health(&self) -> Result<(), TargetError> {
        Ok(())
    }
}

impl TargetFor<SlobOperation> for Observer {
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<SlobOperation> + '_>, TargetError> {
        let behind =
            self.behind.as_ref().map(|target| TargetFor::<SlobOperation>::open_lane(target, range)).transpose()?;
        Ok(Box::new(ObserverLane { observer: self, range, behind, under_way: Vec::new() }))
    }
}

struct ObserverLane<'t> {
    observer: &'t Observer,
    range: SessionRange,
    behind: Option<Box<dyn Lane<SlobOperation> + 't>>,
    under_way: Vec<u32>,
}

impl Lane<SlobOperation> for ObserverLane<'_> {
    fn start(
        &mut self,
        session: u32,
        operation: &SlobOperation,
        sent_ns: u64,
        recorder: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        self.observer.note(self.range.first_session + session, *operation);
        match &mut self.behind {
            Some(lane) => lane.start(session, operation, sent_ns, recorder),
            None => {
                self.under_way.push(session);
                Ok(())
            }
        }
    }

    fn poll(
        &mut self,
        until_ns: u64,
        recorder: &mut LaneRecorder,
        done: &mut Vec<Finished>,
    ) -> Result<(), TargetError> {
        if let Some(lane) = &mut self.behind {
            return lane.poll(until_ns, recorder, done);
        }
        if self.under_way.is_empty() {
            self.range.clock.sleep_until(until_ns);
        }
        let at_ns = self.range.clock.now_ns();
        done.extend(self.under_way.drain(..).map(|session| Finished {
            session,
            at_ns,
            paused_ns: 0,
            connecting_ns: 0,
            block_touches: 1,
            result: OperationResult::Done,
        }));
        Ok(())
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.behind.as_mut().map_or(Ok(()), |lane| lane.abandon())
    }
}

fn plan(sessions: u32, lanes: u32, pace: Pace) -> StepPlan<SlobShape> {
    StepPlan {
        index: 0,
        label: "shared".to_owned(),
        load: record::Intensity {
            sessions: Some(sessions),
            rate_operations_per_s: pace.rate_per_s(),
            ..record::Intensity::default()
        },
        level: None,
        like: None,
        shape: SlobShape {
            schemas: 3,
            threads_per_schema: sessions.div_ceil(3),
            scale_blocks: 10_000,
            work_unit: 2,
            update_pct: 30,
            update_share: None,
            scan_pct: 0,
            redo_stress: RedoStress::Lite,
            hot_spot: None,
            hot_schema_frequency: 4,
            think: None,
        },
        seed: 7,
        work_loop: None,
        warmup: Nanos::millis(100),
        duration: Nanos::millis(200),
        pace,
        lanes,
        share: Share::WHOLE,
    }
}

fn run(plan: &StepPlan<SlobShape>, clock: Clock, is_simulated: bool) -> (Lists, Step) {
    let options = SimulatedOptions { service: Nanos::millis(1), servers: 1_000, ..SimulatedOptions::default() };
    let behind = is_simulated.then(|| Simulated::open(options, clock));
    let observer = Observer { behind, lists: Mutex::default() };
    let outcome = run_step(&observer, plan, Surroundings::new(clock, &Stop::new()), &mut |_| {});
    assert!(outcome.failure.is_none());
    (observer.lists.into_inner().unwrap(), outcome.step)
}

/// All parts of a plan, one after the other: nothing that they do depends on each other.
fn run_parts(plan: &StepPlan<SlobShape>, parts: u32, clock: fn() -> Clock, simulated: bool) -> (Lists, Vec<Step>) {
    let (mut lists, mut steps) = (Lists::new(), Vec::new());
    for part in 0..parts {
        let (own, step) = run(&plan.clone().of_part(Share { part, parts }), clock(), simulated);
        for (session, list) in own {
            assert!(lists.insert(session, list).is_none(), "session {session} is of two parts");
        }
        steps.push(step);
    }
    (lists, steps)
}

/// Every session was asked the same as far as both lists go, and each was asked something.
fn assert_same(parts: &Lists, whole: &Lists, sessions: u32) {
    assert!(whole.keys().copied().eq(0..sessions) && parts.keys().copied().eq(0..sessions), "all sessions have work");
    for (session, list) in whole {
        let both = list.len().min(parts[session].len());
        assert_eq!(list[..both], parts[session][..both], "session {session}");
    }
}

#[test]
fn parts_of_a_closed_loop_together_ask_for_what_one_process_does() {
    for (sessions, count) in [(8, 4), (10, 4), (7, 3), (5, 5)] {
        let mut plan = plan(sessions, 1, Pace::Closed);
        plan.duration = Nanos::seconds(2);
        plan.shape.think = Some(Think { frequency: 3, min_ns: 1_000_000, max_ns: 4_000_000 });
        let (whole, step) = run(&plan, Clock::simulated(), true);
        let (parts, steps) = run_parts(&plan, count, Clock::simulated, true);
        // Nobody waits for anybody else there, so nothing is cut off elsewhere either.
        assert_eq!(parts, whole, "{sessions} sessions of {count} parts");
        let operations = |step: &Step| step.counters.operations.unwrap();
        assert_eq!(steps.iter().map(operations).sum::<u64>(), operations(&step));
        assert_eq!(steps.iter().map(|step| step.load.slots()).sum::<u32>(), sessions, "each tells its own");
    }
}

#[test]
fn parts_of_an_open_loop_together_ask_for_what_one_process_does() {
    let _turn = turn();
    // Sessions are many enough to be idle whenever something is due, so that they take turns.
    for (arrival, sessions, count, threads) in [
        (Arrival::Fixed, 64, 2, 2),
        (Arrival::Poisson, 64, 2, 2),
        (Arrival::Poisson, 7, 3, 4),
        (Arrival::Fixed, 10, 4, 1),
    ] {
        let rate_per_s = 3_000.0;
        let shared = plan(sessions, threads, Pace::Open { rate_per_s, arrival });
        let whole = StepPlan { lanes: (threads * count).min(sessions), ..shared.clone() };
        let (one, step) = run(&whole, Clock::start(), false);
        let (parts, steps) = run_parts(&shared, count, Clock::start, false);
        assert_same(&parts, &one, sessions);
        // What falls due in the window depends on nothing but the schedule.
        let due = |step: &Step| step.generator.as_ref().and_then(|generator| generator.due_operations).unwrap();
        assert_eq!(steps.iter().map(due).sum::<u64>(), due(&step), "{arrival:?}, {count} parts");
        let rates = steps.iter().map(|step| step.load.rate_operations_per_s.unwrap() * 1e6);
        assert_eq!((rates.sum::<f64>() / 1e6).round(), rate_per_s, "each tells its share of the rate");
    }
}

proptest! {
    #[test]
    fn lanes_of_parts_are_those_of_the_whole(sessions in 1..400_u32, threads in 1..9_u32, count in 1..17_u32) {
        prop_assume!(sessions >= count);
        let plan = plan(sessions, threads.min(sessions), Pace::Closed);
        let of_all = plan.clone().of_part(Share { part: 0, parts: count }).lanes;
        let whole: Vec<_> = parts(sessions, of_all).collect();
        let mut shared = Vec::new();
        for part in 0..count {
            let step = plan.clone().of_part(Share { part, parts: count });
            let own = step.share.of(step.lanes);
            prop_assert!(!own.is_empty());
            shared.extend(parts(sessions, step.lanes).skip(own.start as usize).take(own.len()));
        }
        let numbers = |lanes: &[super::drive::Part]| -> Vec<_> {
            lanes.iter().map(|part| (part.lane, part.lanes, part.first_session, part.sessions)).collect()
        };
        prop_assert_eq!(numbers(&shared), numbers(&whole));
    }
}
