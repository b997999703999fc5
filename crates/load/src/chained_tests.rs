//! Chains whose operations wait for each other, in simulated time: what is held back is bounded and counted, and goes on after the window.

use super::tests::plan;
use super::*;
use measure::Clock;
use model::record::Step;
use model::workload::{After, Drawn, DueNext, SlobOperation, SlobSession, SlobShape, Stream};
use order::MAX_WAITING;
use targets::simulated::{Simulated, SimulatedOptions};

/// Operations of one chain, due at one distance.
#[derive(Clone)]
struct Chained {
    shape: SlobShape,
    each_ns: u64,
    operations: u64,
}

struct ChainedStream {
    session: SlobSession,
    each_ns: u64,
    drawn: u64,
    operations: u64,
}

impl Shape for Chained {
    type Operation = SlobOperation;
    type Stream = ChainedStream;

    fn stream_of(&self, _: u32) -> u32 {
        0
    }

    fn stream(&self, seed: u64, stream: u32) -> ChainedStream {
        let &Self { each_ns, operations, .. } = self;
        ChainedStream { session: self.shape.stream(seed, stream), each_ns, drawn: 0, operations }
    }
}

impl Stream for ChainedStream {
    type Operation = SlobOperation;

    fn draw(&mut self) -> Drawn<SlobOperation> {
        self.session.draw()
    }

    fn draw_due(&mut self) -> Option<DueNext<SlobOperation>> {
        let due_ns = self.drawn * self.each_ns;
        self.drawn += 1;
        let after = Some(After { chain: 1, gap_ns: 0 });
        (self.drawn <= self.operations).then(|| DueNext { due_ns, drawn: self.draw(), after })
    }
}

/// One chain for a second, at a target of which each operation takes 10 ms.
fn chained(each_ns: u64, operations: u64) -> Step {
    let StepPlan { index, label, load, level, like, shape, seed, work_loop, share, .. } = plan(8);
    let plan = StepPlan {
        shape: Chained { shape: SlobShape { work_unit: 1, ..shape }, each_ns, operations },
        warmup: Nanos(0),
        duration: Nanos::seconds(1),
        pace: Pace::Open { rate_per_s: 1e9 / each_ns as f64, arrival: Arrival::Recorded },
        lanes: 1,
        index,
        label,
        load,
        level,
        like,
        seed,
        work_loop,
        share,
    };
    let clock = Clock::simulated();
    let target =
        Simulated::open(SimulatedOptions { service: Nanos::millis(10), servers: 8, ..Default::default() }, clock);
    let outcome =
        run_any_step(&target, &plan, Surroundings::new(clock, &Stop::new()), &mut || Begin::AtOnce, &mut |_| ());
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    outcome.step
}

/// What fell due, ended within the window, ended after it, and was never sent.
fn counts(step: &Step) -> [u64; 4] {
    let generator = step.generator.as_ref().unwrap();
    let outstanding = step.outstanding.iter().map(record::Outstanding::count).sum();
    let done = step.counters.operations.unwrap();
    [generator.due_operations.unwrap(), done, outstanding, generator.backlog_operations.unwrap()]
}

#[test]
fn what_is_held_back_is_bounded_and_all_that_fell_due_is_counted() {
    // One each millisecond, and each takes ten: after a tenth of the window more wait than may be held.
    let [due, done, late, backlog] = counts(&chained(1_000_000, 10_000));
    assert!(due > MAX_WAITING as u64 * 2, "{due} due, of which {MAX_WAITING} may be held");
    assert!((99..=101).contains(&done), "one after the other in 10 ms each: {done}");
    assert_eq!(due, done + late + backlog, "{due} due, {done} done, {late} late");
}

#[test]
fn what_waits_only_for_its_chain_is_sent_after_the_window() {
    // 120 in the window's first half take 1.2 s.
    let [due, done, late, backlog] = counts(&chained(4_000_000, 120));
    assert_eq!((due, backlog), (120, 0), "{done} done, {late} late");
    assert!((99..=101).contains(&done), "{done}");
    assert_eq!(done + late, 120);
}
