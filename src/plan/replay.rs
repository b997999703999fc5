//! The plan of a replay: a step for each multiple of a trace's pace.

use std::sync::Arc;

use super::io::{check_buffers, open_loop_depth};
use super::steps::check_share;
use super::{PlanError, RunHead};
use load::{Pace, Share, StepPlan};
use model::config::Tag;
use model::config::io::{IoLevel, MAX_DEPTH, RateRange};
use model::record::{Intensity, Level, Load, RecordedKind, ReplayLoad};
use model::trace::TraceKind;
use model::units::{Bytes, Nanos};
use model::workload::replay::ReplayShape;
use trace::replay::{Replay, Survey};

/// Between the start of the load and the first request: threads have decoded their first requests by then, and the load's own lead-in for
/// many threads is shorter.
const LEAD_IN: Nanos = Nanos::millis(500);
/// Threads of a replay, of all parts together.
const MAX_JOBS: u32 = 1_024;

/// What the user requests.
#[derive(Debug, Clone)]
pub struct ReplayRequest {
    /// Multiples of the recorded pace.
    pub times: RateRange,
    /// Threads of this process.
    pub jobs: u32,
    /// Requests outstanding at most; absent for what fits into 1 GiB.
    pub depth: Option<u32>,
    /// What the user calls the things that vary between runs.
    pub tags: Vec<Tag>,
    /// Seed of what is written.
    pub seed: u64,
    /// Which part of every step this process carries out.
    pub share: Share,
    /// Whether time is only simulated: then one thread does all.
    pub is_simulated: bool,
    /// Memory that can be taken, if it is known.
    pub available_memory: Option<Bytes>,
}

/// What will be done.
#[derive(Debug, Clone)]
pub struct ReplayPlan {
    /// What the run is before its first step.
    pub head: RunHead,
    /// The trace at its recorded pace.
    pub load: ReplayLoad,
    /// Bytes of the target that requests touch.
    pub region_bytes: u64,
    /// The longest request.
    pub largest_bytes: u32,
    request: ReplayRequest,
    replay: Replay,
}

/// Plans the replay of what `survey` found.
///
/// # Errors
/// If a request is too long, or parts cannot share the load.
pub fn plan(request: &ReplayRequest, survey: &Survey, replay: &Replay) -> Result<ReplayPlan, PlanError> {
    let load = load(survey, replay);
    let largest_bytes =
        u32::try_from(survey.replayed.largest_bytes).unwrap_or(u32::MAX).max(replay.selection.unit_bytes);
    let times = match &request.times {
        RateRange::Each(times) => match times.as_slice() {
            [only] => format!("x{only}"),
            times => format!("x{}-{}", times.first().unwrap_or(&1.0), times.last().unwrap_or(&1.0)),
        },
        RateRange::Between { lowest, highest } => format!("x{lowest}-{highest}"),
    };
    let name = replay.path.file_stem().map_or_else(|| "trace".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let words = [super::plain(&name), times];
    let plan = ReplayPlan {
        head: RunHead::new(&request.tags, words, request.seed, Load::Replay(load.clone()), [])?,
        load,
        region_bytes: replay.placement.size_bytes(survey),
        largest_bytes,
        request: request.clone(),
        replay: replay.clone(),
    };
    let jobs = request.jobs.saturating_mul(request.share.parts);
    if jobs > MAX_JOBS || plan.depth() > MAX_DEPTH {
        return Err(PlanError::ReplayTooDeep { jobs, depth: plan.depth(), most_jobs: MAX_JOBS, most: MAX_DEPTH });
    }
    check_share("the replay", plan.depth(), request.jobs, request.share)?;
    let slots = plan.depth().div_ceil(request.share.parts.max(1));
    check_buffers(slots, Bytes(plan.largest_bytes.into()), Bytes(0), request.available_memory)?;
    Ok(plan)
}

fn load(survey: &Survey, replay: &Replay) -> ReplayLoad {
    let window = &replay.selection.window_ns;
    let end = window.end.min(survey.end.duration_ns.unwrap_or(u64::MAX));
    // A trace that does not say how long it is ends with its last request.
    let end = if end == u64::MAX { survey.recorded.last_ns + 1 } else { end };
    let kinds = [TraceKind::Read, TraceKind::Write, TraceKind::Flush].into_iter().map(|kind| {
        let latency = &survey.latencies[kind.index()];
        RecordedKind {
            kind: kind.name().to_owned(),
            requests: survey.replayed.of(kind),
            bytes: survey.replayed.bytes[kind.index()],
            latency: (latency.count() > 0).then(|| latency.clone()),
        }
    });
    ReplayLoad {
        trace: replay.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        source: survey.header.source.clone(),
        began: survey.header.began,
        from_ns: Nanos(window.start),
        duration_ns: Nanos(end.saturating_sub(window.start).max(1)),
        is_part: window.start > 0 || window.end < survey.end.duration_ns.unwrap_or(survey.whole_ns),
        fua_writes: survey.replayed.fua_writes,
        devices: survey.header.devices.iter().map(|device| device.name.clone()).collect(),
        placement: replay.placement.kind(),
        shared_pct: replay.placement.shared_pct(survey),
        reads_only: replay.selection.reads_only,
        discards: survey.recorded.of(TraceKind::Discard),
        lengthened: survey.lengthened,
        kinds: kinds.filter(|kind| kind.requests > 0).collect(),
        by_second: survey.by_second.clone(),
    }
}

impl ReplayPlan {
    /// Requests outstanding at most.
    fn depth(&self) -> u32 {
        let usual = open_loop_depth(self.largest_bytes);
        self.request.depth.unwrap_or(usual).max(self.request.jobs.saturating_mul(self.request.share.parts))
    }

    /// Multiples as rates, which is how steps are judged and searched for.
    pub fn rates(&self) -> RateRange {
        let rate = |times: f64| times * self.load.rate_per_s();
        match &self.request.times {
            RateRange::Each(times) => RateRange::Each(times.iter().map(|times| rate(*times)).collect()),
            RateRange::Between { lowest, highest } => {
                RateRange::Between { lowest: rate(*lowest), highest: rate(*highest) }
            }
        }
    }

    /// The steps at all multiples that were named.
    pub fn steps(&self) -> Vec<StepPlan<ReplayShape>> {
        match &self.request.times {
            RateRange::Each(times) => (0..).zip(times).map(|(index, times)| self.step(index, *times)).collect(),
            RateRange::Between { .. } => Vec::new(),
        }
    }

    /// Step number `index` at a rate.
    pub fn step_at(&self, index: u32, per_s: f64) -> StepPlan<ReplayShape> {
        self.step(index, per_s / self.load.rate_per_s())
    }

    fn step(&self, index: u32, times: f64) -> StepPlan<ReplayShape> {
        let ReplayRequest { jobs, share, is_simulated, .. } = self.request;
        let (per_s, most) = (times * self.load.rate_per_s(), self.depth());
        let lanes = if is_simulated { share.parts } else { jobs * share.parts };
        let replay = Replay { times, lead_in_ns: LEAD_IN.0, ..self.replay.clone() };
        let step = StepPlan {
            index,
            label: format!("x{}", (times * 1_000.0).round() / 1_000.0),
            load: Intensity { sessions: Some(most), rate_operations_per_s: Some(per_s), ..Intensity::default() },
            level: Some(Level::Io(IoLevel::Rate { per_s, most })),
            like: None,
            shape: ReplayShape { source: Arc::new(replay), streams: lanes, slots: most },
            seed: self.head.seed,
            work_loop: None,
            warmup: LEAD_IN,
            duration: self.time(times),
            pace: Pace::Recorded { rate_per_s: per_s },
            lanes: jobs,
            share: Share::WHOLE,
        };
        step.of_part(share)
    }

    /// How long a window is at a multiple: whole milliseconds, so that the last request is within it.
    pub fn time(&self, times: f64) -> Nanos {
        let ms = (self.load.duration_ns.0 as f64 / times / 1e6).ceil().max(1.0);
        Nanos::millis(ms as u64)
    }

    /// How long its longest step takes.
    pub fn longest(&self) -> Nanos {
        let slowest = match &self.request.times {
            RateRange::Each(times) => times.iter().copied().fold(f64::MAX, f64::min),
            RateRange::Between { lowest, .. } => *lowest,
        };
        Nanos(self.time(slowest).0.saturating_add(LEAD_IN.0))
    }

    /// Why the trace could not be read to its end, if so.
    pub fn failure(&self) -> Option<String> {
        self.replay.failure()
    }
}
