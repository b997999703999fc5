//! Where the time of sessions went: one model for every target, over a step and in each second.
//!
//! Every session, user or request slot is in one place at a time, from the client to the server to the device. A part is the mean number of
//! sessions in a place, which is the share of their time that they spent there, times their number. Each has a lower and an upper bound,
//! since few of them are measured by themselves, and what lies between these is a part of its own, [`Place::Unknown`].
//!
//! How many operations are under way (`U`) comes first:
//!
//! - By Little's law it is their service time (from sent to finished) summed, over the window. Operations that the edges of the window cut
//!   may be counted too much or too little: by at most the share of the window that a mean operation takes. Failed ones are not timed, so
//!   that there may be more than that.
//! - In a closed loop without think time it is all sessions but those that stood ready and were not sent, which the load generator counts
//!   itself ([`Generator::idle_session_ns`](model::record::Generator)), and needs no law.
//!
//! What is known of `U` depends on the target, see [`split`]. What nothing measures is between 0 and all that is left, and never 0.

mod split;
#[cfg(test)]
mod tests;

use serde::Serialize;

use super::{Figures, Served, operations_are_requests, traffic};
use model::record::{
    DeviceStats, Histogram, Interval, Load, Run, SentAs, Step, TargetKind, WaitStats, Workload, known_sum,
};
use model::workload::orders::Pauses;

/// A number that is known between bounds: how many sessions, on average.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Range {
    /// At least that.
    pub(crate) least: f64,
    /// What was measured, as far as it was; else the lower bound.
    pub(crate) likely: f64,
    /// At most that.
    pub(crate) most: f64,
}

impl Range {
    /// A measured value between bounds, none of them below zero.
    pub(crate) fn new(least: f64, likely: f64, most: f64) -> Self {
        let most = most.max(0.0);
        let least = least.clamp(0.0, most);
        Self { least, likely: likely.clamp(least, most), most }
    }

    fn exactly(value: f64) -> Self {
        Self::new(value, value, value)
    }

    /// Of which nothing is known but an upper bound.
    fn up_to(most: f64) -> Self {
        Self::new(0.0, 0.0, most)
    }

    /// The part of it that fits into so many sessions.
    fn within(self, sessions: f64) -> Self {
        let cap = |value: f64| value.min(sessions);
        Self::new(cap(self.least), cap(self.likely), cap(self.most))
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self::new(self.least + other.least, self.likely + other.likely, self.most + other.most)
    }
}

/// Where a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// It thinks, or pauses; in an open loop a slot for which no operation is due.
    Idle,
    /// It is ready, and the load generator has not come to it. Of operations in batches also the way between two batches.
    Generator,
    /// Open loop: operations that are due and find no free slot. They are in no slot, so that this part is beside the sessions.
    Queue,
    /// The load generator works for an operation that is under way: between nothing and all processor time that it used.
    Client,
    /// Neither end works for it: networks, and the queues of both kernels. Answers are there too that wait for a load generator without a
    /// processor.
    Outside,
    /// The database uses a processor for it.
    Running,
    /// The database is ready to work for it and has no processor: others use them, or a quota holds it back.
    Ready,
    /// The database waits for blocks that were not in its cache.
    Reads,
    /// The database waits for its log, as commits do.
    Log,
    /// The database waits for locks of other transactions.
    Locks,
    /// The database waits for anything else.
    OtherWaits,
    /// A request to storage is not in the device: a limiter such as the kernel's throttle, or the file system, keeps it. What the device has
    /// finished and a busy load generator has not yet taken is there too.
    BeforeDevice,
    /// A request to storage is in the device or in the kernel's queue of it.
    Device,
    /// Somewhere in a target into which nothing sees: a server of files, a simulation.
    Target,
    /// Between the bounds of all others.
    Unknown,
}

impl Place {
    /// Every place, from the client to the device.
    pub const ALL: [Self; 15] = [
        Self::Idle,
        Self::Generator,
        Self::Queue,
        Self::Client,
        Self::Outside,
        Self::Running,
        Self::Ready,
        Self::Reads,
        Self::Log,
        Self::Locks,
        Self::OtherWaits,
        Self::BeforeDevice,
        Self::Device,
        Self::Target,
        Self::Unknown,
    ];

    /// As legends have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle or thinking",
            Self::Generator => "ready, not sent",
            Self::Queue => "due, no free slot",
            Self::Client => "load generator's work",
            Self::Outside => "outside of both ends",
            Self::Running => "database on a processor",
            Self::Ready => "database without a processor",
            Self::Reads => "waiting for reads",
            Self::Log => "waiting for the log",
            Self::Locks => "waiting for locks",
            Self::OtherWaits => "other waits of the database",
            Self::BeforeDevice => "before the device",
            Self::Device => "in the device and its queue",
            Self::Target => "in the target",
            Self::Unknown => "unknown",
        }
    }

    /// Whether an operation is in it, from due to finished.
    pub fn is_of_operations(self) -> bool {
        !matches!(self, Self::Idle | Self::Unknown)
    }
}

/// The sessions in one place.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct TimePart {
    /// Where they are.
    pub part: Place,
    /// At least so many sessions, on average.
    pub least_sessions: f64,
    /// At most so many sessions, on average.
    pub most_sessions: f64,
    /// How many were measured to be there, on average: between the bounds. All parts but [`Place::Queue`] add up to the sessions in it.
    #[serde(skip)]
    pub likely_sessions: f64,
}

/// Where the sessions of a load were, on average over a time.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct TimeParts {
    /// Sessions, users, or slots for requests.
    pub sessions: f64,
    /// From the client to the device, the unknown last; places that this target does not have are missing.
    pub parts: Vec<TimePart>,
}

/// How many sessions are in all of these places, but for the queue, which is beside them.
fn sum(ranges: &[(Place, Range)], of: fn(&Range) -> f64) -> f64 {
    ranges.iter().filter(|(place, _)| *place != Place::Queue).map(|(_, range)| of(range)).sum()
}

/// Makes parts fit into so many sessions: a sample can find more than there are.
fn fit(ranges: &mut [(Place, Range)], sessions: f64) {
    let all = sum(ranges, |range| range.likely);
    if all > sessions {
        for (_, range) in ranges.iter_mut().filter(|(place, _)| *place != Place::Queue) {
            let likely = range.likely * sessions / all;
            *range = Range { least: range.least.min(likely), likely, most: range.most };
        }
    }
}

impl TimeParts {
    /// Over the window of a step. Absent of imported runs, of loads on processors and networks, and where nothing was measured.
    pub fn of(run: &Run, step: &Step) -> Option<Self> {
        Some(Seen::of(run, step)?.parts())
    }

    /// Of an engine's waiting time in a step, the share that reads spent before they reached the devices, at least.
    pub(crate) fn held_reads(run: &Run, step: &Step) -> Option<f64> {
        Seen::of(run, step)?.held_reads()
    }

    /// In one of the step's seconds, as far as seconds have what is needed; warm-up has it as the window does.
    pub fn of_second(run: &Run, step: &Step, second: &Interval) -> Option<Self> {
        Some(Seen::of_second(run, step, second)?.parts())
    }

    /// The sessions in a place; absent where the target has no such place.
    pub fn part(&self, place: Place) -> Option<&TimePart> {
        self.parts.iter().find(|part| part.part == place)
    }

    /// Puts the parts in order, and adds what is left.
    fn new(sessions: f64, mut ranges: Vec<(Place, Range)>) -> Self {
        ranges.sort_by_key(|(place, _)| *place);
        let left = |of: fn(&Range) -> f64| sessions - sum(&ranges, of);
        let unknown = Range::new(left(|range| range.most), left(|range| range.likely), left(|range| range.least));
        let part = |(part, Range { least, likely, most }): (Place, Range)| TimePart {
            part,
            least_sessions: least,
            most_sessions: most,
            likely_sessions: likely,
        };
        Self { sessions, parts: ranges.into_iter().chain([(Place::Unknown, unknown)]).map(part).collect() }
    }
}

/// Waits that an engine timed, in sessions: their total over the time.
#[derive(Debug, Clone, Copy)]
struct Waits {
    reads: f64,
    log: f64,
    other: f64,
}

/// What a window or a second has of where sessions were.
struct Seen<'a> {
    run: &'a Run,
    step: &'a Step,
    sessions: f64,
    /// Operations under way.
    under_way: Range,
    idle: Option<Range>,
    generator: Range,
    queue: Option<Range>,
    /// Processors that the load generator used, at most.
    client: Option<f64>,
    /// Processors that its lanes used, which in an engine are the sessions'.
    lanes: Option<f64>,
    waits: Option<Waits>,
    devices: &'a [DeviceStats],
    /// Bytes that operations moved.
    bytes: Option<u64>,
    served: Served<'a>,
}

/// Whether sessions pause between or within operations.
fn thinks(run: &Run, step: &Step) -> bool {
    let is_asked = match &run.load {
        Load::Orders(asked) => asked.between != Pauses::None || asked.inside != Pauses::None,
        _ => run.parameter(step, "THINK_TM_FREQUENCY").is_some_and(|every| every != "0"),
    };
    is_asked || step.operations.iter().filter_map(|kind| kind.transactions.as_ref()).any(|kind| kind.paused_ns > 0)
}

/// Whether there is anything to say of the sessions of a step, and how many there are.
fn sessions_of(run: &Run, step: &Step) -> Option<f64> {
    let is_without = matches!(run.target.kind, Some(TargetKind::Host | TargetKind::Network))
        || matches!(run.workload(), Workload::Host | Workload::Network);
    let is_measured = step.window.duration_ns > 0 && step.counters.operations.is_some();
    let sessions = f64::from(step.load.sessions?);
    (run.imported.is_none() && !is_without && is_measured && sessions > 0.0).then_some(sessions)
}

/// Sums of the waits of an engine's sessions by class, in sessions over `ns`.
fn waits(step: &Step, ns: f64, total_ns: impl Fn(&WaitStats) -> Option<u64>) -> Option<Waits> {
    let sum = |is_part: fn(&str) -> bool| {
        let of_part = super::foreground_waits(step).into_iter().filter(|wait| is_part(&wait.class)).map(&total_ns);
        known_sum(of_part).map(|total| total as f64 / ns)
    };
    // An engine that timed no waits at all says nothing of them.
    (!step.waits.is_empty()).then_some(())?;
    Some(Waits {
        reads: sum(|class| class == "User I/O")?,
        log: sum(|class| class == "Commit")?,
        other: sum(|class| !["User I/O", "Commit"].contains(&class))?,
    })
}

/// Operations under way by Little's law: their times summed, over `ns`, with what the edges may hide.
fn by_littles_law(total_ns: f64, count: u64, ns: f64, sessions: f64) -> Range {
    let edge = if count > 0 { (total_ns / count as f64 / ns).min(1.0) } else { 1.0 };
    let mean = total_ns / ns;
    let most = if count > 0 { mean * (1.0 + edge) } else { sessions };
    Range::new(mean * (1.0 - edge), mean, most).within(sessions)
}

impl<'a> Seen<'a> {
    fn of(run: &'a Run, step: &'a Step) -> Option<Self> {
        let sessions = sessions_of(run, step)?;
        let ns = step.window.duration_ns as f64;
        let figures = Figures(step);
        let service = figures.service_in_window();
        let total_ns = service.as_ref().and_then(|times| times.total_ns()).unwrap_or(0) as f64;
        let mut law = by_littles_law(total_ns, service.map_or(0, |times| times.count()), ns, sessions);
        if step.counters.errors.is_some_and(|errors| errors > 0) {
            law.most = sessions;
        }
        let generator = step.generator.as_ref();
        let lanes = generator.map(|generator| generator.busy_ns as f64 / ns);
        let mut seen = Self {
            run,
            step,
            sessions,
            under_way: law,
            idle: None,
            generator: Range::default(),
            queue: None,
            client: lanes.into_iter().chain(figures.processors_busy()).reduce(f64::max),
            lanes,
            waits: waits(step, ns, |wait| wait.of_sessions()?.total_ns),
            devices: &step.devices,
            bytes: traffic::bytes(&step.counters),
            served: Served::of(run, step),
        };
        if step.load.rate_operations_per_s.is_some() {
            let total = |lag: Option<&Histogram>| lag.and_then(|lag| lag.total_ns()).map(|all| all as f64 / ns);
            let lag = total(generator.and_then(|generator| generator.schedule_lag.as_ref()));
            let own = total(generator.and_then(|generator| generator.own_lag.as_ref()));
            seen.open(lag.map(|lag| (lag, own)));
        } else {
            let idle =
                generator.map(|generator| Range::exactly(generator.idle_session_ns as f64 / ns).within(sessions));
            seen.closed(idle);
        }
        Some(seen)
    }

    fn of_second(run: &'a Run, step: &'a Step, second: &'a Interval) -> Option<Self> {
        let sessions = sessions_of(run, step)?;
        let ns = Some(second.duration_ns as f64).filter(|ns| *ns > 0.0)?;
        let response_ns = second.response.total_ns().unwrap_or(0) as f64;
        let law = by_littles_law(response_ns, second.response.count(), ns, sessions);
        let waits = waits(step, ns, |wait| second.waits.get(&wait.event).map_or(Some(0), |waits| waits.total_ns()));
        let mut seen = Self {
            run,
            step,
            sessions,
            under_way: law,
            idle: None,
            generator: Range::default(),
            queue: None,
            client: second.process_cpu.map(|cpu| cpu.busy_ns() as f64 / ns),
            lanes: None,
            waits,
            devices: &second.devices,
            bytes: traffic::bytes(&second.counters),
            served: Served::of_second(run, second),
        };
        if step.load.rate_operations_per_s.is_some() {
            // A second has response times alone, which contain the queue. Requests to storage have their waits as well.
            let due = response_ns / ns;
            let share = Figures(step).queued_share().map_or(0.0, |queued| 1.0 - queued);
            seen.under_way = match waits.filter(|_| operations_are_requests(run)) {
                Some(waits) => Range::exactly(waits.reads + waits.log + waits.other).within(sessions),
                None => Range::new(0.0, due * share, law.most),
            };
            // Of what was due and not sent the generator itself had as much as over the whole step.
            let not_sent = (due - seen.under_way.likely).max(0.0);
            let generator = step.generator.as_ref();
            let total = |lag: Option<&Histogram>| lag.and_then(|lag| lag.total_ns()).map(|all| all as f64);
            let lag = total(generator.and_then(|generator| generator.schedule_lag.as_ref())).filter(|lag| *lag > 0.0);
            let own = total(generator.and_then(|generator| generator.own_lag.as_ref()));
            let own = own.zip(lag).map_or(0.0, |(own, lag)| (own / lag).min(1.0));
            seen.queue = Some(Range::new(0.0, not_sent * (1.0 - own), due));
            let ready = Range::new(0.0, not_sent * own, due).within(sessions - seen.under_way.least);
            seen.generator = ready;
            seen.idle = Some(seen.left(ready));
        } else {
            // The whole step's, of which any part may be this second's.
            let all_ns = step.generator.as_ref().map(|generator| generator.idle_session_ns as f64);
            let mean = |all_ns: f64| all_ns / step.window.duration_ns as f64;
            let most = |all_ns: f64| if second.warmup { sessions } else { all_ns / ns };
            let idle = all_ns.map(|all_ns| Range::new(0.0, mean(all_ns), most(all_ns)).within(sessions));
            seen.closed(idle);
        }
        Some(seen)
    }

    /// What is neither under way nor that: so many sessions.
    fn left(&self, other: Range) -> Range {
        let Self { sessions, under_way, .. } = self;
        Range::new(
            sessions - under_way.most - other.most,
            sessions - under_way.likely - other.likely,
            sessions - under_way.least - other.least,
        )
    }

    /// Closed loop: `ready` is how many sessions stood ready and were not sent, where it is known.
    fn closed(&mut self, ready: Option<Range>) {
        let Self { sessions, under_way: law, .. } = *self;
        // Nothing but a batch's end and its next beginning is seen of it.
        let is_batch = self.run.target.facts.server.sent_as == Some(SentAs::Batch);
        self.generator = match ready {
            Some(ready) if is_batch => Range::up_to(ready.most),
            Some(ready) => ready,
            None => Range::up_to(sessions - law.least),
        };
        if thinks(self.run, self.step) {
            self.idle = Some(self.left(self.generator));
        } else if let Some(ready) = ready {
            let most = if is_batch { sessions } else { sessions - ready.least };
            self.under_way = Range::new(sessions - ready.most, sessions - ready.likely, most);
        }
    }

    /// Open loop, with the mean number of operations that were due and not sent, and of these those that had a free slot.
    fn open(&mut self, lag: Option<(f64, Option<f64>)>) {
        let (generator, queue) = match lag {
            Some((lag, Some(own))) => (Range::exactly(own), Some(Range::exactly(lag - own))),
            Some((lag, None)) => (Range::up_to(lag), Some(Range::new(0.0, lag, lag))),
            None => (Range::up_to(self.sessions), None),
        };
        self.generator = generator.within(self.sessions - self.under_way.least);
        self.queue = queue;
        self.idle = Some(self.left(self.generator));
    }

    fn parts(&self) -> TimeParts {
        let mut parts = self.under_way_parts();
        fit(&mut parts, self.under_way.most);
        parts.push((Place::Generator, self.generator));
        parts.extend(self.idle.map(|idle| (Place::Idle, idle)));
        parts.extend(self.queue.map(|queue| (Place::Queue, queue)));
        fit(&mut parts, self.sessions);
        TimeParts::new(self.sessions, parts)
    }
}
