//! One step from the first connected session to the last interval.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use super::collect::{ExternalStats, Seen, Totals, interval};
use super::drive::{LaneReport, Part};
use super::lane::{LaneHandle, Leaving, run_lane};
use super::slow::{MomentsSoFar, SeenChoice, SlowBudget};
use super::waiting::{Over, Waiting, watch};
use super::{Begin, StepPlan, Stop, generator_ceiling};
use measure::os::{Difference, Probe, PromptThread, Snapshot, start_thread, thread_number};
use measure::{Clock, IntervalId, Outbox, Recorded, Timeline};
use model::record::{Ending, Generator, Histogram, Interval, Moment, Outcome, Outstanding, Step, Window};
use model::units::Nanos;
use model::workload::io::{IoBlend, IoShape};
use model::workload::net::NetShape;
use model::workload::orders::OrdersShape;
use model::workload::replay::ReplayShape;
use model::workload::{HostShape, Operation, Shape, SlobBlend, SlobShape};
use targets::{Background, OwnReports, TargetError, TargetFor};

/// Length of an interval.
const INTERVAL_NS: u64 = 1_000_000_000;
/// Between the moment when all lanes are ready and the start of the load: long enough for every thread to wake up, and to make
/// what it drives its lane with. There may be thousands of them, and two processors.
const START_DELAY_NS: u64 = 5_000_000;
const START_DELAY_OF_LANE_NS: u64 = 100_000;
/// Lanes up to which none waits for a processor when all begin at once. Of more, some would have their first turn well within the
/// window: so it begins no earlier than this after the load, for each lane.
const LANES_AT_ONCE: u32 = 64;
const LEAD_IN_OF_LANE_NS: u64 = 200_000;
/// So long before the start of the load the system's counters are read for its beginning: after it, the coordinator would be one of
/// thousands of threads that want a processor, and what they had moved by then would be missing.
const READ_AHEAD_NS: u64 = 2_000_000;
/// Intervals by which a lane may be ahead of the coordinator where time is simulated.
const MAX_AHEAD: usize = 16;
/// How often the coordinator looks whether it should stop.
const LOOK_AROUND: Duration = Duration::from_millis(20);

/// What came of a step. What was measured is there however it ended.
#[derive(Debug)]
pub struct StepOutcome {
    /// For the record.
    pub step: Step,
    /// What ended it early, if an error did.
    pub failure: Option<TargetError>,
    /// How long after its start the first operation could be sent; `None` where no load began.
    pub late_ns: Option<u64>,
    /// What the target's own reports say of the window, where they were asked for.
    pub own_reports: OwnReports,
}

/// What every step of a run has around it.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// When the run began, on `clock`.
    pub run_started_ns: u64,
    /// Block devices whose kernel counters are read.
    pub devices: &'a [String],
    /// The clock of the load.
    pub clock: Clock,
    /// A request to end.
    pub stop: &'a Stop,
    /// How long after its window a step waits for what is under way.
    pub drain: Nanos,
    /// Called every few seconds in which a step waits after its window, by a thread that cannot be held up by what it waits for.
    pub on_wait: &'a (dyn Fn(Waiting) + Sync),
}

/// How long a step waits for what is under way unless it is told: longer than most timeouts of storage.
pub const DRAIN: Nanos = Nanos::seconds(30);

impl<'a> Surroundings<'a> {
    /// Of a run that begins with its clock and watches no device.
    pub fn new(clock: Clock, stop: &'a Stop) -> Self {
        Self { run_started_ns: 0, devices: &[], clock, stop, drain: DRAIN, on_wait: &|_| () }
    }
}

/// A shape whose loop is compiled here, where code is optimised for speed. What is above this crate is optimised for size, and a
/// generic function is compiled where it is used.
pub trait Compiled: Shape + Clone {
    /// [`run_any_step`] of this shape.
    fn run_step(
        target: &dyn TargetFor<Self::Operation>,
        plan: &StepPlan<Self>,
        surroundings: Surroundings<'_>,
        when_ready: &mut dyn FnMut() -> Begin,
        on_interval: &mut dyn FnMut(&Interval),
    ) -> StepOutcome;

    /// [`generator_ceiling`] of this shape.
    fn generator_ceiling(
        target: &dyn TargetFor<Self::Operation>,
        plan: &StepPlan<Self>,
        clock: Clock,
        stop: &Stop,
    ) -> Option<f64>;
}

macro_rules! compiled {
    ($($shape:ty),+ $(,)?) => {$(
        impl Compiled for $shape {
            #[inline(never)]
            fn run_step(
                target: &dyn TargetFor<Self::Operation>,
                plan: &StepPlan<Self>,
                surroundings: Surroundings<'_>,
                when_ready: &mut dyn FnMut() -> Begin,
                on_interval: &mut dyn FnMut(&Interval),
            ) -> StepOutcome {
                run_any_step(target, plan, surroundings, when_ready, on_interval)
            }

            #[inline(never)]
            fn generator_ceiling(
                target: &dyn TargetFor<Self::Operation>,
                plan: &StepPlan<Self>,
                clock: Clock,
                stop: &Stop,
            ) -> Option<f64> {
                generator_ceiling(target, plan, clock, stop)
            }
        }
    )+};
}

compiled!(HostShape, IoBlend, IoShape, NetShape, OrdersShape, ReplayShape, SlobBlend, SlobShape);

/// Carries out one step; `on_interval` hears of every interval as it ends.
pub fn run_step<S: Compiled>(
    target: &dyn TargetFor<S::Operation>,
    plan: &StepPlan<S>,
    surroundings: Surroundings<'_>,
    on_interval: &mut dyn FnMut(&Interval),
) -> StepOutcome {
    S::run_step(target, plan, surroundings, &mut || Begin::AtOnce, on_interval)
}

/// The same for a load that others may have to be waited for: `when_ready` is asked once, when every session can start, and
/// says when the load begins. It is not asked where a session could not be opened. Any shape can be run so; those of
/// [`Compiled`] run faster by its method.
pub fn run_any_step<S: Shape + Clone>(
    target: &dyn TargetFor<S::Operation>,
    plan: &StepPlan<S>,
    surroundings: Surroundings<'_>,
    when_ready: &mut dyn FnMut() -> Begin,
    on_interval: &mut dyn FnMut(&Interval),
) -> StepOutcome {
    let ceiling = generator_ceiling(target, plan, surroundings.clock, surroundings.stop);
    run_load(target, plan, surroundings, ceiling, when_ready, on_interval)
}

/// The same, knowing what the load generator itself can do.
pub(super) fn run_load<S: Shape>(
    target: &dyn TargetFor<S::Operation>,
    plan: &StepPlan<S>,
    Surroundings { run_started_ns, devices, clock, stop, drain, on_wait }: Surroundings<'_>,
    ceiling: Option<f64>,
    when_ready: &mut dyn FnMut() -> Begin,
    on_interval: &mut dyn FnMut(&Interval),
) -> StepOutcome {
    // Simulated time passes when its one thread sleeps: each part has one.
    let most_lanes = if clock.is_simulated() { plan.share.parts.max(1) } else { plan.load.slots().max(1) };
    let lanes = plan.lanes.clamp(1, most_lanes);
    let own = plan.share.of(lanes);
    // Of the lanes of all parts, so that the windows of all are the same.
    let lead_in_ns = if lanes > LANES_AT_ONCE { u64::from(lanes) * LEAD_IN_OF_LANE_NS } else { 0 };
    let warmup_ns = plan.warmup.0.max(lead_in_ns);
    let outbox = || if clock.is_simulated() { Outbox::bounded(MAX_AHEAD) } else { Outbox::default() };
    let lane_handles: Vec<LaneHandle> =
        own.clone().map(|_| LaneHandle { outbox: Arc::new(outbox()), ..LaneHandle::default() }).collect();
    let (ready, all_ready) = mpsc::channel();
    // Whether every lane has its thread: else none is opened, for memory may be short, and servers need not hear of it.
    let all_started = OnceLock::new();
    let timeline = OnceLock::new();
    let (lanes_seen, timeline_seen, is_over) = (&lane_handles, &timeline, AtomicBool::new(false));
    std::thread::scope(|scope| {
        let watcher = (!clock.is_simulated()).then(|| {
            let requests = move || {
                let there = lanes_seen.iter().filter(|lane| !lane.gone.load(Ordering::Acquire));
                there.map(|lane| lane.under_way.get()).sum::<u64>()
            };
            let over = &is_over;
            let watcher = std::thread::Builder::new().name("waiting".to_owned());
            // Without a thread to spare the step waits all the same, and says nothing of it.
            watcher.spawn_scoped(scope, move || watch(clock, timeline_seen, over, &requests, on_wait)).ok()
        });
        let over = Over::new(&is_over, watcher.flatten().map(|watcher| watcher.thread().clone()));
        let mut handles = Vec::with_capacity(lane_handles.len());
        let mut refused = None;
        let parts = parts(plan.load.slots(), lanes).skip(own.start as usize);
        for (part, handle) in parts.zip(&lane_handles) {
            let (ready, all_started, timeline) = (ready.clone(), &all_started, &timeline);
            let lane = std::thread::Builder::new().name(format!("lane {}", part.lane));
            let spawned = start_thread(|begun| {
                lane.spawn_scoped(scope, move || {
                    begun.say();
                    let _leaving = Leaving { handle, timeline, clock };
                    if !all_started.wait() {
                        return Ok(LaneReport::default());
                    }
                    run_lane(target, plan, part, clock, (stop, drain), ready, timeline, handle)
                })
            });
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(source) => {
                    refused = Some(TargetError::Kernel { action: "start a thread for each lane of sessions", source });
                    break;
                }
            }
        }
        all_started.get_or_init(|| refused.is_none());
        lane_handles[handles.len()..].iter().for_each(|handle| handle.gone.store(true, Ordering::Release));
        // Fewer answers come only from a lane that panicked, and its handle says that.
        drop(ready);
        let are_open = handles.iter().fold(true, |open, _| all_ready.recv().unwrap_or(false) && open);
        // What cannot begin as a whole holds up nobody: it ends at once, and says why.
        let begin = if refused.is_none() && are_open { when_ready() } else { Begin::AtOnce };
        let is_off = refused.is_some() || begin == Begin::NotAtAll;
        let own_reporter = target.own_reporter().filter(|_| !is_off);
        if let Some(reporter) = own_reporter {
            reporter.load_begins(clock, Duration::from_nanos(warmup_ns));
        }
        // What earlier steps and the connecting of sessions left behind is not this step's.
        drop(target.take_background());
        let start_ns = match begin {
            Begin::At(instant_ns) => instant_ns,
            Begin::AtOnce | Begin::NotAtAll => {
                clock.now_ns() + START_DELAY_NS + own.len() as u64 * START_DELAY_OF_LANE_NS
            }
        };
        let begun = Arc::new(Timeline::new(start_ns, warmup_ns, Some(plan.duration.0), INTERVAL_NS));
        if is_off {
            begun.close(begun.start_ns());
        }
        timeline.get_or_init(|| Arc::clone(&begun));
        let devices = Probe::new(devices.to_vec());
        let timeline = Arc::clone(&begun);
        let coordinator = Coordinator {
            target,
            plan,
            devices,
            clock,
            stop,
            timeline: begun,
            lane_handles: &lane_handles,
            lanes,
            ceiling,
        };
        // Of thousands of lanes it would be one more that waits for a processor, and read what the system counted when it has one.
        let prompt = PromptThread::begin();
        let mut outcome = coordinator.run(run_started_ns, handles, refused, on_interval);
        drop((prompt, over));
        if let Some(reporter) = own_reporter {
            let is_whole = outcome.step.outcome == Outcome::Completed;
            let window_ns = timeline.window_start_ns()..timeline.closed_at_ns();
            outcome.own_reports = reporter.load_ended(clock, is_whole.then_some(window_ns));
        }
        outcome
    })
}

/// The sessions of each lane. A shape that has a stream for each lane shares them out in the same way.
pub(super) fn parts(sessions: u32, lanes: u32) -> impl Iterator<Item = Part> + use<> {
    (0..lanes).map(move |lane| {
        let first_session = (u64::from(sessions) * u64::from(lane) / u64::from(lanes)) as u32;
        let end = (u64::from(sessions) * u64::from(lane + 1) / u64::from(lanes)) as u32;
        Part { lane, lanes, first_session, sessions: end - first_session }
    })
}

/// Leaves out what the system counted of another time than was meant: an edge of it was read so late, since thousands of threads
/// wanted a processor. Bytes are held against our own count, and processor time against the time itself.
fn without_what_is_late(mut system: Difference, late_ns: u64, length_ns: u64) -> Difference {
    const MAX_LATE_BYTES: f64 = 0.01;
    const MAX_LATE: f64 = 0.1;
    /// The coordinator looks at an end that a lane decided as late as this, whatever the machine does.
    const ALWAYS_LATE_NS: u64 = 2 * LOOK_AROUND.as_nanos() as u64;
    let share = late_ns as f64 / length_ns.max(1) as f64;
    if late_ns > ALWAYS_LATE_NS && share > MAX_LATE_BYTES {
        system.process_io = None;
    }
    if late_ns > ALWAYS_LATE_NS && share > MAX_LATE {
        (system.process_cpu, system.host_cpu, system.throttled) = (None, None, None);
    }
    system
}

struct Coordinator<'a, S: Shape> {
    target: &'a dyn TargetFor<S::Operation>,
    plan: &'a StepPlan<S>,
    devices: Probe,
    clock: Clock,
    stop: &'a Stop,
    timeline: Arc<Timeline>,
    lane_handles: &'a [LaneHandle],
    /// Lanes of all parts.
    lanes: u32,
    /// Operations per second that the load generator reaches with no device.
    ceiling: Option<f64>,
}

/// An interval that has ended, and what is known of it. Lanes that send batches hand their parts over later.
struct Edge {
    id: IntervalId,
    /// What the system counted in it.
    system: Difference,
    /// What happened in the target besides its lanes.
    background: Background,
    /// What the system did in shorter spans.
    moments: Vec<(u64, Moment)>,
    /// Each lane's part.
    parts: Vec<Option<Box<Recorded>>>,
}

/// Intervals on their way from the lanes to the record.
struct Gathering<'a> {
    /// Those that have ended and were not reported yet, the oldest first.
    waiting: VecDeque<Edge>,
    totals: Totals,
    intervals: Vec<Interval>,
    /// The longest time in the window by which this thread woke late.
    stopped_ns: u64,
    moments: MomentsSoFar,
    choice: SeenChoice,
    /// Slow operations that may still be kept.
    slow: SlowBudget,
    on_interval: &'a mut dyn FnMut(&Interval),
}

impl<S: Shape> Coordinator<'_, S> {
    fn run(
        &self,
        run_started_ns: u64,
        handles: Vec<ScopedJoinHandle<'_, Result<LaneReport, TargetError>>>,
        refused: Option<TargetError>,
        on_interval: &mut dyn FnMut(&Interval),
    ) -> StepOutcome {
        let mut failure = refused;
        let mut gathering = Gathering {
            waiting: VecDeque::new(),
            totals: Totals::new(self.lane_handles.len()),
            intervals: Vec::new(),
            stopped_ns: 0,
            moments: MomentsSoFar::new((!self.clock.is_simulated()).then(|| self.devices.watch())),
            choice: SeenChoice::default(),
            slow: SlowBudget::new(self.plan.time().0.div_ceil(INTERVAL_NS)),
            on_interval,
        };
        self.wait_until_begin();
        let mut edge = self.snapshot();
        let is_window = self.timeline.window_start_ns() == self.timeline.start_ns();
        let mut late_ns = self.clock.now_ns().saturating_sub(self.timeline.start_ns());
        let mut window_edge = is_window.then(|| (edge.clone(), late_ns));
        for id in 0.. {
            if let Some(error) = self.wait_until_end(id, &mut gathering) {
                failure.get_or_insert(error);
            }
            let now = self.snapshot();
            let now_late_ns = self.clock.now_ns().saturating_sub(self.timeline.end_ns(id));
            let length_ns = self.timeline.end_ns(id).saturating_sub(self.timeline.begin_ns(id));
            // What others count is read at the edge, though the lanes' own parts may come later.
            gathering.waiting.push_back(Edge {
                id,
                system: without_what_is_late(self.between(&edge, &now), late_ns.max(now_late_ns), length_ns),
                background: self.target.take_background(),
                moments: gathering.moments.take(),
                parts: self.lane_handles.iter().map(|_| None).collect(),
            });
            (edge, late_ns) = (now, now_late_ns);
            if self.timeline.is_last(id) {
                break;
            }
            // Simulated time is ahead of us: intervals would be counted on without end.
            if self.clock.is_simulated() {
                self.gather_all(&mut gathering);
            }
            if !self.timeline.is_warmup(id + 1) && window_edge.is_none() {
                window_edge = Some((edge.clone(), late_ns));
            }
            if let Err(error) = self.target.check_health() {
                failure.get_or_insert(error);
                self.timeline.close(self.clock.now_ns());
            }
        }
        self.gather_all(&mut gathering);
        let window_ns = self.timeline.closed_at_ns().saturating_sub(self.timeline.window_start_ns());
        // After its end nothing more is sent, so that what is read late has no more in it.
        let system =
            window_edge.map(|(start, late_ns)| without_what_is_late(self.between(&start, &edge), late_ns, window_ns));
        let system = system.unwrap_or_default();

        let (mut reports, mut silent) = (Vec::new(), None);
        for handle in handles {
            match handle.join() {
                Ok(Ok(report)) => reports.push(report),
                // One thread's error stops the others: theirs only says so.
                Ok(Err(TargetError::Stopped)) => {}
                // Sessions that had no answer when another lane's error closed the window: that error says why.
                Ok(Err(error @ TargetError::Silent { .. })) => {
                    silent.get_or_insert(error);
                }
                Ok(Err(error)) => {
                    failure.get_or_insert(error);
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        let (kept, start_ns) =
            (reports.iter_mut().map(|report| std::mem::take(&mut report.late)), self.timeline.start_ns());
        let late = gathering.slow.choose_late(kept, S::Operation::KINDS, start_ns);
        if let Some((last, late)) = gathering.intervals.last_mut().zip(late) {
            gathering.choice.add_late(last, late);
        }
        let Gathering { mut totals, intervals, stopped_ns, .. } = gathering;
        let mut outstanding = Vec::new();
        reports.iter().for_each(|report| Outstanding::add_to(&mut outstanding, &report.outstanding));
        let unended = reports.iter().filter_map(|report| report.unended).reduce(|mut all, more| {
            all.add(&more);
            all
        });
        failure = match failure {
            None => self.target.check_health().err().or(silent),
            Some(error) => Some(self.target.why_gone().unwrap_or(error)),
        };

        // The user's request is no failure of the load.
        failure = failure.filter(|failure| !matches!(failure, TargetError::Interrupted) || !self.stop.is_asked());

        let (outcome, ending) = self.outcome(failure.as_ref());
        let counters = totals.counters_of_window(self.target.known_counters());
        let waits = totals.waits(self.target.layer());
        let mut besides = std::mem::take(&mut totals.besides);
        let traces = std::mem::take(&mut besides.traces);
        let host = besides.host.take();
        let network = std::mem::take(&mut besides.network);
        let channels = std::mem::take(&mut besides.channels);
        let servers = besides.into_servers();
        let step = Step {
            index: self.plan.index,
            label: self.plan.label.clone(),
            load: self.plan.own_load(self.lanes),
            level: self.plan.level.clone(),
            like: self.plan.like.clone(),
            parameters: model::record::Parameters::new(),
            window: Window {
                offset_ns: self.timeline.window_start_ns().saturating_sub(run_started_ns),
                warmup_ns: self.timeline.window_start_ns() - self.timeline.start_ns(),
                duration_ns: window_ns,
                ending,
            },
            outcome,
            counters,
            waits,
            failed_connects: totals.failed_connects.by_reason(),
            failure: None,
            outstanding,
            unended,
            generator: Some(Generator {
                throttled: system.throttled,
                ..self.verdict(&totals, &reports, window_ns, stopped_ns)
            }),
            operations: totals.operations(S::Operation::KINDS),
            process_cpu: system.process_cpu,
            host_cpu: system.host_cpu,
            process_io: system.process_io,
            peak_memory_bytes: system.peak_memory_bytes,
            devices: system.devices,
            servers,
            own_reports: Vec::new(),
            instances: Vec::new(),
            reported: Vec::new(),
            tables: Vec::new(),
            traces,
            // Of everything that the lanes saw, and they are gone.
            cache_curve: self.target.take_cache_curve(),
            host,
            network,
            channels,
            // Measured after the step, if at all.
            pulse_test: None,
            size_test: None,
            relief_test: None,
            intervals,
        };
        let late_ns = reports.iter().filter_map(|report| report.late_ns).min();
        StepOutcome { step, failure, late_ns, own_reports: OwnReports::default() }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.devices, self.clock.now_ns())
    }

    /// What the system counted meanwhile; nothing is known where time is only simulated.
    fn between(&self, start: &Snapshot, end: &Snapshot) -> Difference {
        if self.clock.is_simulated() { Difference::default() } else { end.since(start) }
    }

    /// A start that was agreed on lies ahead, and what is counted before it is no part of the step.
    fn wait_until_begin(&self) {
        while !self.clock.is_simulated() && !self.stop.is_asked() {
            let left = self.timeline.start_ns().saturating_sub(self.clock.now_ns() + READ_AHEAD_NS);
            if left == 0 {
                return;
            }
            std::thread::sleep(LOOK_AROUND.min(Duration::from_nanos(left)));
        }
    }

    /// Sleeps until interval `id` has ended, and closes the window if that is wished meanwhile.
    ///
    /// Simulated time is not waited for: it passes faster than it could be looked at, so the lane itself sees the request,
    /// and the interval has ended when the lane hands it over.
    ///
    /// The target is looked at all the while: writes make a file that was cut long again, and soon nobody could see it. And
    /// what the lanes have of earlier intervals is reported as soon as it is there.
    fn wait_until_end(&self, id: IntervalId, gathering: &mut Gathering<'_>) -> Option<TargetError> {
        let mut failure = None;
        while !self.clock.is_simulated() {
            let now = self.clock.now_ns();
            if self.stop.is_asked() {
                self.timeline.close(now);
            }
            let left = self.timeline.end_ns(id).saturating_sub(now);
            if left == 0 {
                break;
            }
            let nap = LOOK_AROUND.min(Duration::from_nanos(left));
            std::thread::sleep(nap);
            let late_ns = self.clock.now_ns().saturating_sub(now + nap.as_nanos() as u64);
            if self.timeline.begin_ns(id) >= self.timeline.window_start_ns() {
                gathering.stopped_ns = gathering.stopped_ns.max(late_ns);
            }
            // This thread is one of them: where it woke late since it had no processor, nothing was stopped.
            let lanes = self.lane_handles.iter().filter_map(|lane| lane.thread.get().copied());
            let threads = std::iter::once(thread_number()).chain(lanes);
            gathering.moments.look(self.clock.now_ns(), self.timeline.start_ns(), threads, late_ns);
            while self.gather_first(gathering, Duration::ZERO) {}
            if failure.is_none()
                && let Err(error) = self.target.check_health()
            {
                self.timeline.close(self.clock.now_ns());
                failure = Some(error);
            }
        }
        failure
    }

    /// Takes every lane's part of all intervals that have ended, and waits for them.
    fn gather_all(&self, gathering: &mut Gathering<'_>) {
        while !gathering.waiting.is_empty() {
            if !self.gather_first(gathering, LOOK_AROUND) && self.stop.is_asked() && !self.clock.is_simulated() {
                self.timeline.close(self.clock.now_ns());
            }
        }
    }

    /// Takes what lanes have of the oldest interval that was not reported yet, waiting so long for each of them, and reports on it
    /// if that is all. Returns whether it was reported.
    fn gather_first(&self, gathering: &mut Gathering<'_>, patience: Duration) -> bool {
        let Some(edge) = gathering.waiting.front_mut() else { return false };
        let mut is_whole = true;
        for (handle, part) in self.lane_handles.iter().zip(&mut edge.parts) {
            while part.is_none() {
                // Looked at first: what was handed over before the lane went is still there to be taken.
                let gone = handle.gone.load(Ordering::Acquire);
                let patience = if gone { Duration::ZERO } else { patience };
                match handle.outbox.take(patience) {
                    Some((taken, recorded)) if taken == edge.id => *part = Some(recorded),
                    // A lane that handed over less than the others was stopped by an error.
                    Some(_) => {}
                    None if gone => break,
                    None => {
                        is_whole = false;
                        break;
                    }
                }
            }
        }
        if is_whole && let Some(edge) = gathering.waiting.pop_front() {
            self.notify(edge, gathering);
        }
        is_whole
    }

    /// Tells of an interval, and adds it to the totals if it is in the window.
    fn notify(&self, edge: Edge, gathering: &mut Gathering<'_>) {
        let Edge { id, system, background, moments, parts: of_lanes } = edge;
        let Background { recorded, counters, servers, traces, host, network, channels, looks } = background;
        let besides = ExternalStats { counters, servers, traces, host, network, channels };
        let of_lane = |part: &Option<Box<Recorded>>| {
            part.as_ref().map_or((0, Some(0)), |recorded| (recorded.cpu_ns, recorded.run_delay_ns))
        };
        let lane_times: Vec<(u64, Option<u64>)> = of_lanes.iter().map(of_lane).collect();
        let mut parts = vec![recorded];
        parts.extend(of_lanes.into_iter().flatten().map(|recorded| *recorded));
        // Looked at last: a window that was closed at an interval's edge has nothing of the interval after it.
        let in_window = !self.timeline.is_warmup(id) && self.timeline.end_ns(id) > self.timeline.begin_ns(id);
        let totals = &mut gathering.totals;
        if in_window {
            parts.iter().for_each(|part| totals.add(part));
            totals.besides.add(&besides);
            // Processor time says nothing beside time that is only simulated.
            if !self.clock.is_simulated() {
                for (lane, (cpu_ns, delay_ns)) in lane_times.into_iter().enumerate() {
                    totals.lane_cpu_ns[lane] += cpu_ns;
                    let wanted_ns = &mut totals.lane_wanted_ns[lane];
                    *wanted_ns = wanted_ns.zip(delay_ns).map(|(sum, delay_ns)| sum + cpu_ns + delay_ns);
                }
            }
        }
        let known = (self.target.known_counters(), totals.have_servers_timed());
        let slow = gathering.slow.choose(&mut parts, S::Operation::KINDS, self.timeline.start_ns());
        let since_start_ns = |at_ns| self.clock.instant_of(at_ns).checked_sub(self.timeline.start_ns());
        let is_warmup = self.timeline.is_warmup(id);
        let (moments, looks) = gathering.choice.choose(is_warmup, moments, looks, slow.as_ref(), since_start_ns);
        let seen = Seen { parts, besides, moments, looks, slow };
        let mut seen = interval(self.plan.index, id, &self.timeline, seen, known, system);
        if seen.duration_ns > 0 {
            (gathering.on_interval)(&seen);
            seen.pack();
            gathering.intervals.push(seen);
        }
    }

    fn outcome(&self, failure: Option<&TargetError>) -> (Outcome, Ending) {
        match failure {
            // Nobody waited for them, since the user wanted an end.
            Some(TargetError::Silent { .. }) if self.stop.is_asked() => (Outcome::Interrupted, Ending::Interrupt),
            Some(error) => (Outcome::Failed { error: error.to_string() }, Ending::Failure),
            None if self.stop.is_asked() => (Outcome::Interrupted, Ending::Interrupt),
            None => {
                let scheduled = self.timeline.window_start_ns() + self.plan.duration.0;
                let early = self.timeline.closed_at_ns() < scheduled;
                (Outcome::Completed, if early { Ending::WorkLoop } else { Ending::Time })
            }
        }
    }

    fn verdict(&self, totals: &Totals, reports: &[LaneReport], window_ns: u64, stopped_ns: u64) -> Generator {
        let sum = |of: fn(&LaneReport) -> u64| reports.iter().map(of).sum();
        let is_open = self.plan.pace.is_open();
        let busiest = totals.lane_cpu_ns.iter().copied().max().unwrap_or(0);
        let most_wanted = totals.lane_wanted_ns.iter().copied().max().flatten();
        let is_timed = window_ns > 0 && !self.clock.is_simulated();
        // Sessions were free for them, so their lag is the generator's own.
        let with_last = |mut lag: Histogram| {
            reports.iter().for_each(|report| lag.merge(&report.last_lag));
            lag
        };
        Generator {
            lanes: self.lane_handles.len() as u32,
            busy_ns: totals.lane_cpu_ns.iter().sum(),
            busiest_share: if window_ns > 0 { busiest as f64 / window_ns as f64 } else { 0.0 },
            wanted_share: most_wanted.filter(|_| is_timed).map(|ns| (ns as f64 / window_ns as f64).min(1.0)),
            idle_session_ns: sum(|report| report.idle_session_ns),
            due_operations: is_open.then(|| sum(|report| report.due_operations)),
            backlog_operations: is_open.then(|| sum(|report| report.backlog_operations)),
            backlog_ages: is_open.then(|| {
                let mut ages = Histogram::default();
                reports.iter().for_each(|report| ages.merge(&report.backlog_ages));
                ages
            }),
            schedule_lag: totals.schedule_lag().map(with_last),
            own_lag: totals.own_lag().map(with_last),
            ceiling_operations_per_s: self.ceiling,
            stopped_ns: (!self.clock.is_simulated()).then_some(stopped_ns),
            throttled: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::{CpuTime, ProcessIo};

    #[test]
    fn what_was_read_late_is_unknown_and_not_another_count() {
        let whole = Difference {
            process_cpu: Some(CpuTime::default()),
            host_cpu: Some(CpuTime::default()),
            process_io: Some(ProcessIo::default()),
            ..Difference::default()
        };
        const SECOND: u64 = 1_000_000_000;
        let left = |late_ns, length_ns| {
            let left = without_what_is_late(whole.clone(), late_ns, length_ns);
            (left.process_io.is_some(), left.process_cpu.is_some(), left.host_cpu.is_some())
        };
        assert_eq!(left(0, 3 * SECOND), (true, true, true));
        assert_eq!(left(30_000_000, SECOND / 10), (true, true, true), "the coordinator looks every 20 ms");
        assert_eq!(left(100_000_000, 3 * SECOND), (false, true, true));
        assert_eq!(left(2 * SECOND, 3 * SECOND), (false, false, false));
        assert_eq!(left(100_000_000, 60 * SECOND), (true, true, true));
    }
}
