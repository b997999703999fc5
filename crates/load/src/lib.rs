//! Doing it: pacing, sessions, the start barrier, stopping.
//!
//! A step's sessions are shared out among threads, the *lanes*. When every lane has connected its sessions, all start at
//! The same instant. Load then goes on through the warm-up and the whole measured window, and ends only after the window
//! has closed: no moment of the window is without load.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod batch;
mod collect;
mod drive;
mod lane;
mod order;
mod share;
mod slow;
mod step;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use share::Share;
pub use step::{Compiled, StepOutcome, Surroundings, run_any_step, run_step};
pub use waiting::Waiting;

use measure::{Clock, Counter};
use model::record;
use model::units::Nanos;
use model::workload::{Arrival, Shape};
use step::run_load;
use targets::{Background, Lane, SessionRange, Target, TargetError, TargetFor};

/// One load level to run.
#[derive(Debug, Clone)]
pub struct StepPlan<S> {
    /// Position in the run, from 0.
    pub index: u32,
    /// What distinguishes it, such as `s8_t4`.
    pub label: String,
    /// How much load to put on, for the record. Its sessions are those that work.
    pub load: record::Intensity,
    /// The point of the run's load at which it is, for the record; absent where steps differ in nothing but how intense they are.
    pub level: Option<record::Level>,
    /// How much of a production it is like, for the record.
    pub like: Option<record::LikeLevel>,
    /// What sessions do.
    pub shape: S,
    /// Seed of every choice.
    pub seed: u64,
    /// Operations of each session after the warm-up; `None` for no limit. The window closes with the first session that
    /// has done them.
    pub work_loop: Option<u64>,
    /// Load before the window.
    pub warmup: Nanos,
    /// Longest window.
    pub duration: Nanos,
    /// When operations are sent.
    pub pace: Pace,
    /// Threads that drive the sessions of all parts; at least 1, and no more than sessions.
    pub lanes: u32,
    /// Which of its lanes this process drives.
    pub share: Share,
}

impl<S> StepPlan<S> {
    /// How long load is on, warm-up included.
    pub fn time(&self) -> Nanos {
        Nanos(self.warmup.0.saturating_add(self.duration.0))
    }

    /// What its load is, for display: with it the parameters of the run, or those of them that differ from `common`.
    pub fn parameters(&self, common: &record::Parameters) -> record::Parameters {
        let mut own = self.level.as_ref().map(record::Level::parameters).unwrap_or_default();
        own.extend(self.like.iter().flat_map(record::LikeLevel::parameters));
        own.retain(|name, value| common.get(name) != Some(value));
        own
    }

    /// The same load shared out among several processes, each with as many threads as this plan has: the step of one of them.
    pub fn of_part(self, share: Share) -> Self {
        let lanes = self.lanes.saturating_mul(share.parts).min(self.load.slots().max(1));
        Self { lanes, share, ..self }
    }

    /// The load that this process puts on, of `lanes` that drive the whole.
    fn own_load(&self, lanes: u32) -> record::Intensity {
        let own = self.share.of(lanes).len();
        let rate = |per_s: f64| if self.share == Share::WHOLE { per_s } else { per_s * own as f64 / f64::from(lanes) };
        record::Intensity {
            sessions: self.load.sessions.map(|sessions| self.share.of(sessions).len() as u32),
            rate_operations_per_s: self.load.rate_operations_per_s.map(rate),
            ..self.load.clone()
        }
    }
}

/// When operations are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Each session sends its next operation when the last one is done (and thought about).
    Closed,
    /// Operations fall due at a rate, whether or not earlier ones are done.
    Open {
        /// Operations per second over all sessions and the whole window.
        rate_per_s: f64,
        /// How instants are spread. Recorded ones are said by the shape's own streams, of which each lane has one.
        arrival: Arrival,
    },
}

impl Pace {
    /// Operations per second over all sessions; absent for a closed loop.
    pub fn rate_per_s(self) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Open { rate_per_s, .. } => Some(rate_per_s),
        }
    }

    /// Whether operations fall due whether or not earlier ones are done.
    pub fn is_open(self) -> bool {
        self != Self::Closed
    }

    /// How instants are spread, where operations fall due at a rate.
    pub fn arrival(self) -> Option<Arrival> {
        match self {
            Self::Closed => None,
            Self::Open { arrival, .. } => Some(arrival),
        }
    }
}

/// When a load begins whose sessions are ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// As soon as every thread has woken up.
    AtOnce,
    /// At an instant on the clock of the step, together with loads of other processes.
    At(u64),
    /// Not at all: what it was to begin with has gone, or somebody asked to end.
    NotAtAll,
}

/// A request to end, which may come from any thread at any time.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Nobody has asked to end yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the load to end.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has asked.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag behind it, for signal handlers and for functions that only look.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.0
    }
}

// What the load generator itself can do: the same loop, with no device behind it.

/// Long enough for some hundred thousand operations, short enough not to be noticed.
const WARMUP: Nanos = Nanos::millis(20);
const DURATION: Nanos = Nanos::millis(150);

/// Operations per second that the load of `plan` reaches when nothing is moved; `None` where the target cannot do without
/// moving anything, where time is only simulated, or where it cannot be found out: a busy machine may give the load no
/// processor at all for the time that this takes.
pub fn generator_ceiling<S: Shape + Clone>(
    target: &dyn TargetFor<S::Operation>,
    plan: &StepPlan<S>,
    clock: Clock,
    stop: &Stop,
) -> Option<f64> {
    let range = SessionRange { lane: 0, first_session: 0, sessions: 1, clock };
    if clock.is_simulated() || target.open_idle_lane(range).ok()?.is_none() {
        return None;
    }
    let shape = plan.shape.rehearsal();
    let plan =
        StepPlan { shape, pace: Pace::Closed, work_loop: None, warmup: WARMUP, duration: DURATION, ..plan.clone() };
    let outcome =
        run_load(&Idle(target), &plan, Surroundings::new(clock, stop), None, &mut || Begin::AtOnce, &mut |_| {});
    let window = outcome.step.window.duration_ns;
    let whole = outcome.failure.is_none() && window == DURATION.0;
    per_s(outcome.step.counters.operations.filter(|_| whole), window)
}

/// Operations per second of a window; `None` where there were none, which says nothing of what would have been reached.
fn per_s(operations: Option<u64>, window_ns: u64) -> Option<f64> {
    operations.filter(|operations| *operations > 0).map(|operations| operations as f64 * 1e9 / window_ns as f64)
}

/// A target whose lanes move nothing.
struct Idle<'t, O>(&'t dyn TargetFor<O>);

impl<O> Target for Idle<'_, O> {
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
        &[Counter::Operations]
    }

    fn take_background(&self) -> Background {
        Background::default()
    }

    fn check_health(&self) -> Result<(), TargetError> {
        Ok(())
    }
}

impl<O> TargetFor<O> for Idle<'_, O> {
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<O> + '_>, TargetError> {
        self.0.open_idle_lane(range)?.ok_or(TargetError::Stopped)
    }
}

#[cfg(test)]
mod chained_tests;
#[cfg(test)]
mod postgres_tests;
#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod tests;

#[cfg(test)]
mod net_tests {
    //! Loads on a network, from lanes to a server of ours in this process.

    use std::net::{SocketAddr, TcpListener};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread::JoinHandle;
    use std::time::{Duration, Instant};

    use super::{Pace, Share, StepOutcome, StepPlan, Stop, Surroundings, run_step};
    use measure::Clock;
    use model::record::{Intensity, Interval, NetworkSide, Outcome};
    use model::units::Nanos;
    use model::workload::Arrival;
    use model::workload::net::{NetClass, NetKind, NetShape, Sizes, WeightedSize};
    use targets::network::server::{Server, ServerOptions, WriteTo};
    use targets::network::wire::Token;
    use targets::network::{ClientOptions, NetError, NetTarget, TestEnds, TestOptions};
    use targets::{Target, TargetError};

    struct Serving {
        address: SocketAddr,
        token: Token,
        stop: Arc<AtomicBool>,
        thread: Option<JoinHandle<()>>,
    }

    impl Serving {
        fn start(change: impl FnOnce(&mut ServerOptions)) -> Self {
            let token = Token::new("a token of tests").unwrap();
            let mut options = ServerOptions::own(token.clone());
            change(&mut options);
            let server = Server::bind(options).unwrap();
            let (address, stop) = (server.address(), Arc::new(AtomicBool::new(false)));
            let stopped = Arc::clone(&stop);
            let thread = std::thread::spawn(move || server.serve(&stopped, &|_| ()).unwrap());
            Self { address, token, stop, thread: Some(thread) }
        }

        fn target(&self, is_udp: bool, clock: Clock) -> NetTarget {
            NetTarget::open("db2", &[self.address], &self.token.key(), options(is_udp), clock).unwrap()
        }
    }

    impl Drop for Serving {
        fn drop(&mut self) {
            self.stop.store(true, Ordering::Relaxed);
            let _ = self.thread.take().map(JoinHandle::join);
        }
    }

    fn options(is_udp: bool) -> ClientOptions {
        ClientOptions { timeout: Duration::from_secs(10), is_udp, drains: true, ..ClientOptions::default() }
    }

    fn class(kind: NetKind, connections: u32, outstanding: u32) -> NetClass {
        let (bytes, answer_bytes) = match kind {
            NetKind::Send | NetKind::Receive => (128 << 10, 0),
            NetKind::Redo => (8_192, 32),
            NetKind::Block => (200, 8_192),
            NetKind::Rows => (200, 1_532),
            NetKind::Ping => (64, 64),
        };
        NetClass { kind, connections, outstanding, sizes: Sizes::Fixed(bytes), answer_bytes, is_durable: false }
    }

    fn plan(shape: NetShape, pace: Pace, duration: Nanos) -> StepPlan<NetShape> {
        StepPlan {
            index: 0,
            label: "test".to_owned(),
            load: Intensity { sessions: Some(shape.sessions()), ..Intensity::default() },
            level: None,
            like: None,
            lanes: shape.lanes(2),
            shape,
            seed: 7,
            work_loop: None,
            warmup: Nanos::millis(50),
            duration,
            pace,
            share: Share::WHOLE,
        }
    }

    fn run_plan(
        target: &NetTarget,
        plan: &StepPlan<NetShape>,
        clock: Clock,
    ) -> (StepOutcome, Result<TestEnds, TargetError>) {
        run_plan_with(target, plan, clock, &mut |_| {})
    }

    fn run_plan_with(
        target: &NetTarget,
        plan: &StepPlan<NetShape>,
        clock: Clock,
        on_interval: &mut dyn FnMut(&Interval),
    ) -> (StepOutcome, Result<TestEnds, TargetError>) {
        target.begin(&plan.shape, &TestOptions { what: "test".to_owned(), duration: Nanos::seconds(5) }).unwrap();
        let outcome = run_step(target, plan, Surroundings::new(clock, &Stop::new()), on_interval);
        let ends = target.end().map(|ends| ends.expect("a test was open"));
        (outcome, ends)
    }

    const SHORT: Nanos = Nanos::millis(250);

    #[test]
    fn every_pattern_is_carried_out_and_both_ends_count_the_same() {
        let (serving, clock) = (Serving::start(|_| ()), Clock::start());
        let target = serving.target(false, clock);
        let drawn =
            Sizes::Drawn(vec![WeightedSize { bytes: 32, weight: 1 }, WeightedSize { bytes: 70_000, weight: 1 }]);
        let shapes = [
            NetShape::of(class(NetKind::Send, 2, 1)),
            NetShape::of(class(NetKind::Receive, 2, 1)),
            NetShape {
                classes: vec![class(NetKind::Send, 1, 1), class(NetKind::Receive, 1, 1), class(NetKind::Ping, 1, 1)],
            },
            NetShape::of(class(NetKind::Redo, 1, 1)),
            NetShape::of(NetClass { sizes: drawn, ..class(NetKind::Redo, 2, 16) }),
            NetShape::of(class(NetKind::Block, 3, 4)),
            NetShape::of(class(NetKind::Rows, 5, 1)),
            NetShape::of(class(NetKind::Ping, 1, 1)),
        ];
        for shape in shapes {
            let (outcome, ends) = run_plan(&target, &plan(shape.clone(), Pace::Closed, SHORT), clock);
            let (step, ends) = (&outcome.step, ends.unwrap());
            assert!(
                outcome.failure.is_none() && step.outcome == Outcome::Completed,
                "{shape:?}: {:?}",
                outcome.failure
            );
            for class in &shape.classes {
                let found = step.operations.iter().find(|operations| operations.kind == class.kind.name());
                let found = found.unwrap_or_else(|| panic!("no {} in {:?}", class.kind.name(), step.operations));
                assert!(found.count > 0 && found.errors == 0, "{shape:?}");
            }
            let sides: Vec<_> = step.network.iter().map(|end| end.side).collect();
            assert!(sides.contains(&NetworkSide::Client), "{sides:?}");
            let has_down = shape.classes.iter().any(|class| class.kind == NetKind::Receive);
            assert_eq!(ends.client.sent_bytes, ends.server.received_bytes, "{shape:?}");
            assert!(has_down || ends.client.received_bytes <= ends.server.sent_bytes, "{shape:?}");
        }
    }

    #[test]
    fn an_open_loop_sends_when_operations_are_due() {
        let (serving, clock) = (Serving::start(|_| ()), Clock::start());
        let target = serving.target(false, clock);
        let pace = Pace::Open { rate_per_s: 400.0, arrival: Arrival::Fixed };
        let (outcome, ends) = run_plan(&target, &plan(NetShape::of(class(NetKind::Block, 1, 64)), pace, SHORT), clock);
        ends.unwrap();
        let generator = outcome.step.generator.unwrap();
        assert_eq!(generator.due_operations, Some(100));
        let waits: Vec<&str> = outcome.step.waits.iter().map(|wait| wait.event.as_str()).collect();
        assert!(waits.contains(&"network round trip") && waits.contains(&"remote service"), "{waits:?}");
    }

    #[test]
    fn durable_redo_is_cut_into_the_network_and_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let write = WriteTo { directory: directory.path().to_owned(), max_bytes: 1 << 20 };
        let (serving, clock) = (Serving::start(|options| options.write = Some(write)), Clock::start());
        let target = serving.target(false, clock);
        let shape = NetShape::of(NetClass { is_durable: true, ..class(NetKind::Redo, 1, 1) });
        let (outcome, ends) = run_plan(&target, &plan(shape, Pace::Closed, SHORT), clock);
        ends.unwrap();
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        let count = |event: &str| {
            outcome.step.waits.iter().find(|wait| wait.event == event).map_or(0, |wait| wait.waits.count())
        };
        assert!(count("RFS write") > 0 && count("RFS write") == count("network round trip"));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "the server leaves nothing behind");
    }

    #[test]
    fn datagrams_are_counted() {
        let (serving, clock) = (Serving::start(|_| ()), Clock::start());
        let target = serving.target(true, clock);
        let (outcome, ends) =
            run_plan(&target, &plan(NetShape::of(class(NetKind::Block, 2, 2)), Pace::Closed, SHORT), clock);
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        let counters = ends.unwrap().client.counters;
        assert!(counters["udp.asked"] >= counters["udp.answered"] && counters["udp.answered"] > 0, "{counters:?}");
        assert_eq!((counters["udp.strange"], counters["udp.duplicated"]), (0, 0));
    }

    #[test]
    fn the_largest_packet_of_loopback_is_its_own() {
        let (serving, clock) = (Serving::start(|_| ()), Clock::start());
        let target = serving.target(false, clock);
        let path = target.look_at_path().unwrap();
        assert_eq!((path.up_bytes, path.down_bytes), (path.interface_bytes, path.interface_bytes), "{path:?}");
        assert!(target.describe().facts.path_mtu.up_bytes.is_some());
    }

    #[test]
    fn a_server_that_goes_in_the_middle_ends_the_step_with_what_was_measured() {
        let (serving, clock) = (Serving::start(|_| ()), Clock::start());
        let target = serving.target(false, clock);
        let plan = plan(NetShape::of(class(NetKind::Ping, 2, 1)), Pace::Closed, Nanos::seconds(20));
        let stop = Arc::clone(&serving.stop);
        let began = Instant::now();
        let mut end_it = |interval: &Interval| {
            if interval.counters.operations > Some(0) {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let (outcome, ends) = run_plan_with(&target, &plan, clock, &mut end_it);
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
        assert!(matches!(outcome.failure, Some(TargetError::Net(_))), "{:?}", outcome.failure);
        assert!(outcome.step.counters.operations.is_some_and(|operations| operations > 0));
        assert!(ends.is_err());
    }

    #[test]
    fn who_does_not_know_the_token_is_told_so() {
        let serving = Serving::start(|_| ());
        let wrong = Token::new("another token").unwrap();
        let error =
            NetTarget::open("db2", &[serving.address], &wrong.key(), options(false), Clock::start()).unwrap_err();
        assert_eq!(error.to_string(), "`db2`: the server did not accept the token");
        assert!(error.hint().unwrap().contains("PLIMSOLL_NET_TOKEN"));
    }

    #[test]
    fn who_is_silent_or_a_stranger_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let short = ClientOptions { timeout: Duration::from_millis(200), ..ClientOptions::default() };
        let key = Token::new("a token of tests").unwrap().key();
        let error = NetTarget::open("db2", &[address], &key, short.clone(), Clock::start()).unwrap_err();
        assert_eq!(error.to_string(), "`db2`: no answer in the handshake");
        drop(listener);
        let error = NetTarget::open("db2", &[address], &key, short, Clock::start()).unwrap_err();
        assert!(matches!(error, TargetError::Net(NetError::Connect { .. })), "{error}");
    }
}
