//! The plan of a replay: a step for each multiple of a trace's pace.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::io::{check_buffers, open_loop_depth};
use super::steps::check_share;
use super::{PlanError, RunHead};
use load::{Pace, Share, StepPlan};
use model::config::Tag;
use model::config::io::{IoLevel, MAX_DEPTH, RateRange};
use model::record::{Intensity, Level, Load, RecordedKind, ReplayChains, ReplayLoad, ReplayScale};
use model::trace::TraceKind;
use model::units::{Bytes, Nanos};
use model::workload::Arrival;
use model::workload::replay::ReplayShape;
use trace::replay::{COPY_SHIFT_NS, Replay, Scale, Survey};

/// Between the start of the load and the first request: threads have decoded their first requests by then, and the load's own lead-in for
/// many threads is shorter.
const LEAD_IN: Nanos = Nanos::millis(500);
/// Threads of a replay, of all parts together.
const MAX_JOBS: u32 = 1_024;
/// Threads of a replay as fast as possible: more begin one after the other, in a warm-up whose requests would not count.
const MAX_FAST_JOBS: u32 = 64;

/// So long a target may stand still while each request that falls due has a buffer.
const STANDS_STILL_S: usize = 30;
/// Buffers of a load that needs fewer.
const FEW: u32 = 64;

/// What the user requests.
#[derive(Debug, Clone)]
pub struct ReplayRequest {
    /// Multiples of the recorded pace.
    pub times: RateRange,
    /// Whether requests are sent as earlier ones end, at the recorded depth.
    pub is_fast: bool,
    /// What a multiple is.
    pub scale: ReplayScale,
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
    /// How far folding moves the hit ratios of caches, where addresses are folded.
    pub moved_hit_points: Option<f64>,
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
    /// How many requests were in flight when they were recorded, while any was.
    depth: Option<f64>,
    request: ReplayRequest,
    replay: Replay,
}

/// Plans the replay of what `survey` found.
///
/// # Errors
/// If a request is too long, or parts cannot share the load.
pub fn plan(request: &ReplayRequest, survey: &Survey, replay: &Replay) -> Result<ReplayPlan, PlanError> {
    let load = load(request, survey, replay);
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
    let times = match request.scale {
        ReplayScale::Pace => times,
        ReplayScale::Copies => format!("{times}-copies"),
    };
    let times = if request.is_fast { "fast".to_owned() } else { times };
    let words = [super::plain(&name), times];
    let plan = ReplayPlan {
        head: RunHead::new(&request.tags, words, request.seed, Load::Replay(load.clone()), [])?,
        load,
        region_bytes: replay.placement.size_bytes(),
        largest_bytes,
        depth: survey.depth,
        request: request.clone(),
        replay: replay.clone(),
    };
    if request.is_fast && survey.depth.is_none() && request.depth.is_none() {
        return Err(PlanError::ReplayDepthUnknown);
    }
    if replay.chains.is_some() && survey.depth.is_none() {
        return Err(PlanError::ReplayOrderUnknown);
    }
    if request.is_fast && request.jobs > MAX_FAST_JOBS {
        let (jobs, depth) = (request.jobs, plan.depth());
        return Err(PlanError::ReplayTooDeep { jobs, depth, most_jobs: MAX_FAST_JOBS, most: MAX_DEPTH });
    }
    let jobs = request.jobs.saturating_mul(request.share.parts);
    if jobs > MAX_JOBS || plan.depth() > MAX_DEPTH {
        return Err(PlanError::ReplayTooDeep { jobs, depth: plan.depth(), most_jobs: MAX_JOBS, most: MAX_DEPTH });
    }
    check_share("the replay", plan.depth(), request.jobs, request.share)?;
    let slots = plan.depth().div_ceil(request.share.parts.max(1));
    check_buffers(slots, Bytes(plan.largest_bytes.into()), Bytes(0), request.available_memory)?;
    Ok(plan)
}

fn load(request: &ReplayRequest, survey: &Survey, replay: &Replay) -> ReplayLoad {
    let window = &replay.selection.window_ns;
    let laps = u64::from(replay.laps.max(1));
    let kinds = TraceKind::ALL.into_iter().map(|kind| {
        let latency = &survey.latencies[kind.index()];
        RecordedKind {
            kind: kind.name().to_owned(),
            requests: survey.replayed.of(kind).saturating_mul(laps),
            bytes: survey.replayed.bytes[kind.index()].saturating_mul(laps),
            latency: (latency.count() > 0).then(|| latency.clone()),
        }
    });
    ReplayLoad {
        trace: replay.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        source: survey.header.source.clone(),
        began: survey.header.began,
        from_ns: Nanos(window.start),
        duration_ns: Nanos(replay.lap_ns.saturating_mul(laps)),
        is_part: window.start > 0 || window.end < survey.end.duration_ns.unwrap_or(survey.whole_ns),
        fua_writes: survey.replayed.fua_writes.saturating_mul(laps),
        devices: survey.header.devices.iter().map(|device| device.name.clone()).collect(),
        placement: replay.placement.kind(),
        shared_pct: replay.placement.shared_pct(survey),
        moved_hit_points: request.moved_hit_points,
        reads_only: replay.selection.reads_only,
        discards: (survey.recorded.of(TraceKind::Discard) - survey.replayed.of(TraceKind::Discard))
            .saturating_mul(laps),
        lengthened: survey.lengthened.saturating_mul(laps),
        kinds: kinds.filter(|kind| kind.requests > 0).collect(),
        by_second: by_second(survey, replay),
        scale: request.scale,
        laps: replay.laps.max(1),
        chained: replay.chains.as_ref().map(|chains| ReplayChains {
            streams: u32::try_from(chains.count()).unwrap_or(u32::MAX),
            requests: chains.requests.saturating_mul(laps),
        }),
    }
}

/// How long a lap of a window is when it is replayed as it was recorded, in nanoseconds.
pub fn lap_ns(survey: &Survey, window: &Range<u64>) -> u64 {
    let end = window.end.min(survey.end.duration_ns.unwrap_or(u64::MAX));
    // A trace that does not say how long it is ends with its last request.
    let end = if end == u64::MAX { survey.recorded.last_ns + 1 } else { end };
    end.saturating_sub(window.start).max(1)
}

/// Seconds of all laps that are kept.
const MAX_SECONDS: usize = 7 * 86_400;

/// Requests by second of all laps. A lap that ends within a second has the others' seconds begin within one.
fn by_second(survey: &Survey, replay: &Replay) -> Vec<u32> {
    if replay.laps <= 1 {
        return survey.by_second.clone();
    }
    let mut sums: Vec<f64> = Vec::new();
    for lap in 0..replay.laps {
        let begin_s = u64::from(lap).saturating_mul(replay.lap_ns) as f64 / 1e9;
        if begin_s >= MAX_SECONDS as f64 {
            break;
        }
        for (second, count) in survey.by_second.iter().enumerate() {
            // The last second of a lap is as short as it was.
            let length_s = (replay.lap_ns as f64 / 1e9 - second as f64).clamp(1e-9, 1.0);
            let from_s = begin_s + second as f64;
            let first = from_s.floor();
            let in_first = ((first + 1.0 - from_s) / length_s).min(1.0);
            if first as usize + 1 >= MAX_SECONDS {
                break;
            }
            sums.resize(sums.len().max(first as usize + 2), 0.0);
            sums[first as usize] += f64::from(*count) * in_first;
            sums[first as usize + 1] += f64::from(*count) * (1.0 - in_first);
        }
    }
    while sums.last().is_some_and(|last| *last < 0.5) {
        sums.pop();
    }
    sums.into_iter().map(|sum| sum.round() as u32).collect()
}

impl ReplayPlan {
    /// Requests outstanding at most.
    fn depth(&self) -> u32 {
        let usual = match self.depth {
            Some(recorded) if self.request.is_fast => (recorded.ceil() as u32).clamp(1, MAX_DEPTH),
            _ => open_loop_depth(self.largest_bytes).min(self.most_due().max(FEW)),
        };
        self.request.depth.unwrap_or(usual).max(self.request.jobs.saturating_mul(self.request.share.parts))
    }

    /// Requests that fall due while a target stands still, at the largest multiple.
    fn most_due(&self) -> u32 {
        let in_a_row = |seconds: &[u32]| seconds.iter().map(|count| u64::from(*count)).sum::<u64>();
        let by_second = &self.load.by_second;
        let most = by_second.windows(STANDS_STILL_S.min(by_second.len()).max(1)).map(in_a_row).max().unwrap_or(0);
        let times = self.request.times.named().into_iter().fold(1.0, f64::max);
        (most as f64 * times).ceil() as u32
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
        let times = per_s / self.load.rate_per_s();
        let times = match (self.load.scale, &self.request.times) {
            // Room was made for so many copies, and a search asks for whole requests per second.
            (ReplayScale::Copies, RateRange::Between { lowest, highest }) => {
                ((times * 1_000.0).round() / 1_000.0).clamp(*lowest, *highest)
            }
            _ => times,
        };
        self.step(index, times)
    }

    fn step(&self, index: u32, times: f64) -> StepPlan<ReplayShape> {
        let ReplayRequest { jobs, share, is_simulated, .. } = self.request;
        let (per_s, most) = (times * self.load.rate_per_s(), self.depth());
        let pace = Pace::Open { rate_per_s: per_s, arrival: Arrival::Recorded };
        let lanes = if is_simulated { share.parts } else { jobs * share.parts };
        let scale = match self.load.scale {
            ReplayScale::Pace => Scale::Pace(times),
            ReplayScale::Copies => Scale::Copies(times),
        };
        let replay = Replay { scale, lead_in_ns: LEAD_IN.0, ..self.replay.clone() };
        if self.request.is_fast {
            return self.fast_step(index, lanes).of_part(share);
        }
        let step = StepPlan {
            index,
            label: format!("x{}", (times * 1_000.0).round() / 1_000.0),
            load: Intensity {
                sessions: Some(most),
                rate_operations_per_s: Some(per_s),
                arrival: pace.arrival(),
                ..Intensity::default()
            },
            level: Some(Level::Io(IoLevel::Rate { per_s, most })),
            like: None,
            shape: ReplayShape { source: Arc::new(replay), streams: lanes, slots: most, is_rehearsal: false },
            seed: self.head.seed,
            work_loop: None,
            warmup: LEAD_IN,
            duration: self.time(times),
            pace,
            lanes: jobs,
            share: Share::WHOLE,
        };
        step.of_part(share)
    }

    /// All requests, each when an earlier one ends.
    fn fast_step(&self, index: u32, lanes: u32) -> StepPlan<ReplayShape> {
        let (depth, jobs) = (self.depth(), self.request.jobs);
        let replay = Replay { shared: Arc::default(), ..self.replay.clone() };
        StepPlan {
            index,
            label: "fast".to_owned(),
            load: Intensity { sessions: Some(depth), arrival: Some(Arrival::Recorded), ..Intensity::default() },
            level: Some(Level::Io(IoLevel::Depth(depth))),
            like: None,
            shape: ReplayShape { source: Arc::new(replay), streams: lanes, slots: depth, is_rehearsal: false },
            seed: self.head.seed,
            work_loop: None,
            // Every request counts.
            warmup: Nanos(0),
            duration: self.longest_fast(),
            pace: Pace::Closed,
            lanes: jobs,
            share: Share::WHOLE,
        }
    }

    /// The end of a replay as fast as possible that does not come to its own.
    fn longest_fast(&self) -> Nanos {
        Nanos(self.load.duration_ns.0.saturating_mul(10)).max(Nanos::seconds(60))
    }

    /// How long a window is at a multiple: whole milliseconds, so that the last request is within it.
    pub fn time(&self, times: f64) -> Nanos {
        let duration_ns = self.load.duration_ns.0 as f64;
        let ns = match self.load.scale {
            ReplayScale::Pace => duration_ns / times,
            ReplayScale::Copies => duration_ns + (times.ceil() - 1.0).max(0.0) * COPY_SHIFT_NS as f64,
        };
        Nanos::millis((ns / 1e6).ceil().max(1.0) as u64)
    }

    /// How long its longest step takes.
    pub fn longest(&self) -> Nanos {
        let slowest = match &self.request.times {
            RateRange::Each(times) => times.iter().copied().fold(f64::MAX, f64::min),
            RateRange::Between { lowest, .. } => *lowest,
        };
        Nanos(self.time(slowest).0.saturating_add(LEAD_IN.0))
    }

    /// Devices of the trace that are left out.
    pub fn without(&self) -> &BTreeSet<u16> {
        &self.replay.selection.without
    }

    /// Why the trace could not be read to its end, if so.
    pub fn failure(&self) -> Option<String> {
        self.replay.failure()
    }
}
