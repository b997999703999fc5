//! The plan of a check: demands and facts about what is there → steps at multiples of what is asked.

use super::PlanError;
use super::io::open_loop_depth;
use super::steps::seed_of_step;
use load::{Pace, Share, StepPlan};
use model::record::{ASKED, Demands, Intensity};
use model::units::{Bytes, Nanos};
use model::workload::io::{Access, Distribution, IoBlend, IoClass, IoKind, IoPart, IoShape, RequestSize};
use model::workload::{Arrival, OperationKind, SlobBlend, SlobPart};

/// Length of a request of a scan of raw storage: what databases ask for when they read a table.
pub const SCAN_REQUEST: Bytes = Bytes::mib(1);
/// Size of the scan table of each schema of an engine's data that are made for a check.
pub const SCAN_TABLE: Bytes = Bytes::mib(8);
/// Reads that are outstanding in a second look: enough that a disk gives what it has.
const AT_ONCE: u32 = 64;
/// More steps than any check takes.
pub const MAX_STEPS: u32 = 12;
/// Requests that one thread sends each second without effort.
const PER_THREAD: f64 = 50_000.0;
/// One block in so many of the engine's cache may be pinned by sessions.
const PINNED_SHARE: u64 = 4;
/// A database keeps recently used blocks: at most this share of the reads may be answered by the cache of the engine.
const MAX_HITS: f64 = 0.5;

/// When the steps of a check begin and how long they last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pacing {
    /// Load before the window of each step.
    pub warmup: Nanos,
    /// Window at exactly the rates that are asked.
    pub asked: Nanos,
    /// Window at each multiple of them.
    pub multiple: Nanos,
}

/// Multiples of what is asked that there is time for.
const MULTIPLES: u64 = 5;
/// Share of the time in which exactly what is asked runs.
const ASKED_SHARE: f64 = 0.35;
/// No more time than this is spent on multiples: a longer check is to look at what is asked for longer.
const MULTIPLES_AT_MOST: Nanos = Nanos::seconds(180);
/// Below this, a window says nothing.
pub const MIN_WINDOW: Nanos = Nanos::seconds(3);

impl Pacing {
    /// Of so much time; absent if it is too little for one window of each kind.
    pub fn of(time: Nanos) -> Option<Self> {
        let rest = Nanos(((time.0 as f64 * (1.0 - ASKED_SHARE)) as u64).min(MULTIPLES_AT_MOST.0));
        // Whole seconds, for intervals are cut at those.
        let whole = |nanos: u64| Nanos::seconds(nanos / 1_000_000_000);
        let each = whole(rest.0 / MULTIPLES);
        let warmup = whole(each.0 / 5).max(Nanos::seconds(1)).min(Nanos::seconds(10));
        let multiple = Nanos(each.0.saturating_sub(warmup.0));
        let asked = whole(time.0.saturating_sub(rest.0).saturating_sub(warmup.0));
        (multiple >= MIN_WINDOW && asked >= MIN_WINDOW).then_some(Self { warmup, asked, multiple })
    }

    /// Of so much time, with a window of at least `window` at what is asked, for which multiples get less time or none; absent if
    /// it is too little for that.
    pub fn with_window(time: Nanos, window: Nanos) -> Option<Self> {
        let pacing = Self::of(time)?;
        let most = Nanos::seconds(time.0.saturating_sub(pacing.warmup.0) / 1_000_000_000);
        // Whole seconds, for intervals are cut at those.
        let window = Nanos::seconds(window.0.div_ceil(1_000_000_000));
        (window <= most).then_some(Self { asked: pacing.asked.max(window), ..pacing })
    }

    /// The least time in which a window of `window` at what is asked leaves time for multiples, in whole seconds.
    pub fn time_for(window: Nanos) -> Nanos {
        let mut time = Nanos::seconds(window.0.div_ceil(1_000_000_000).max(1));
        while Self::of(time).is_none_or(|pacing| pacing.asked < window) {
            time.0 += 1_000_000_000;
        }
        time
    }

    /// How long a step at a multiple lasts, warm-up included.
    pub fn step(&self, times: f64) -> Nanos {
        Nanos(self.warmup.0 + if times == 1.0 { self.asked.0 } else { self.multiple.0 })
    }
}

/// One step of a check.
#[derive(Debug, Clone, Copy)]
pub struct Multiple {
    /// How many times what is asked.
    pub times: f64,
    /// Position in the run, from 0.
    pub index: u32,
    /// How many steps at this multiple came before.
    pub repeat: u32,
}

impl Multiple {
    fn label(&self) -> String {
        let name = if self.times == 1.0 { ASKED.to_owned() } else { format!("x{}", short(self.times)) };
        if self.repeat == 0 { name } else { format!("{name}_{}", self.repeat + 1) }
    }
}

/// A multiple without digits that nobody needs.
fn short(times: f64) -> String {
    ((times * 1e3).round() / 1e3).to_string()
}

/// What is asked, put on raw storage.
#[derive(Debug, Clone)]
pub struct StorageCheck {
    shape: IoBlend,
}

impl StorageCheck {
    /// Of demands without commits on a volume of which so many bytes are touched.
    ///
    /// # Errors
    /// If the volume holds no request of the length that is needed.
    pub fn new(demands: &Demands, region_bytes: u64, block_bytes: u32, processors: u32) -> Result<Self, PlanError> {
        let random = Access::Random(Distribution::Uniform);
        let part = |kind, per_s, block_bytes, access| IoPart { kind, per_s, block_bytes, region_bytes, access };
        let small = |kind, demand: Option<model::record::Demand>| Some(part(kind, demand?.per_s, block_bytes, random));
        let scan_bytes = SCAN_REQUEST.0 as u32;
        let scan = demands
            .scan
            .map(|scan| part(IoKind::LargeRead, scan.0 / f64::from(scan_bytes), scan_bytes, Access::Sequential));
        let parts: Vec<IoPart> = [small(IoKind::Read, demands.reads), small(IoKind::Write, demands.writes), scan]
            .into_iter()
            .flatten()
            .collect();
        Ok(Self { shape: blend(parts, region_bytes, processors)? })
    }

    /// The longest request.
    pub fn largest_bytes(&self) -> u32 {
        self.shape.parts.iter().map(|part| part.block_bytes).max().unwrap_or(1)
    }

    /// Its reads without a rate, as many outstanding as tell a limiter from the device; absent where it asks for anything besides.
    pub fn reads_at_once(&self, seed: u64) -> Option<StepPlan<IoShape>> {
        let [IoPart { kind: IoKind::Read, block_bytes, region_bytes, access, .. }] = *self.shape.parts.as_slice()
        else {
            return None;
        };
        let slots = AT_ONCE.min(self.shape.slots);
        let class = IoClass {
            size: RequestSize::Small,
            block_bytes,
            from_bytes: 0,
            region_bytes,
            access,
            read_pct: 100,
            streams: 1,
            slots,
        };
        let shape = IoShape { classes: vec![class] };
        let pacing = Pacing { warmup: Nanos(0), asked: MIN_WINDOW, multiple: MIN_WINDOW };
        let multiple = Multiple { times: 1.0, index: MAX_STEPS, repeat: 0 };
        let open = step(shape, (self.per_s(), slots, 1), multiple, &pacing, seed);
        let load = Intensity { sessions: Some(slots), ..Intensity::default() };
        Some(StepPlan { load, pace: Pace::Closed, label: format!("{slots} outstanding"), ..open })
    }

    /// Requests per second of all kinds, once what is asked.
    pub fn per_s(&self) -> f64 {
        self.shape.parts.iter().map(|part| part.per_s).sum()
    }

    /// One step.
    pub fn step(&self, multiple: Multiple, pacing: &Pacing, seed: u64) -> StepPlan<IoBlend> {
        step(self.shape.clone(), (self.per_s(), self.shape.slots, self.shape.streams), multiple, pacing, seed)
    }
}

/// Kinds of request at their rates, with as many threads and slots as they need.
///
/// # Errors
/// If the volume holds no request of the longest kind.
pub(super) fn blend(parts: Vec<IoPart>, region_bytes: u64, processors: u32) -> Result<IoBlend, PlanError> {
    let largest = parts.iter().map(|part| part.block_bytes).max().unwrap_or(1);
    if u64::from(largest) > region_bytes {
        return Err(PlanError::VolumeBelowBlock { block: Bytes(u64::from(largest)), capacity: Bytes(region_bytes) });
    }
    let all: f64 = parts.iter().map(|part| part.per_s).sum();
    let streams = (all / PER_THREAD).ceil().clamp(1.0, f64::from(processors.max(1))) as u32;
    // A quarter of what a load of one kind may have outstanding: buffers of the longest kind take memory for all.
    let has_large = parts.iter().any(|part| part.kind == IoKind::LargeRead);
    let slots = (open_loop_depth(largest) / if has_large { 4 } else { 1 }).max(streams);
    Ok(IoBlend { parts, streams, slots })
}

/// What is asked, put on a database of blocks.
#[derive(Debug, Clone)]
pub struct EngineCheck {
    shape: SlobBlend,
    rates: EngineRates,
    sessions: u32,
    lanes: u32,
}

/// What is put on, once what is asked, per second.
#[derive(Debug, Clone, Copy)]
struct EngineRates {
    /// Reads that are no part of an update.
    reads_per_s: f64,
    updates_per_s: f64,
    /// Blocks that an update reads and changes, in the mean.
    update_blocks: f64,
    scans_per_s: f64,
}

/// What is known of the data of an engine.
#[derive(Debug, Clone, Copy)]
pub struct EngineFacts {
    /// Schemas.
    pub schemas: u32,
    /// Blocks of each.
    pub scale_blocks: u64,
    /// Blocks of each scan table.
    pub scan_blocks: u64,
    /// Size of a block.
    pub block_bytes: u32,
    /// Size of the buffer cache.
    pub cache: Bytes,
    /// Processors that this process may use.
    pub processors: u32,
    /// Sessions that there can be.
    pub max_sessions: u32,
}

/// Sessions of an engine of our own at most.
pub const MAX_SESSIONS: u32 = 1024;
/// Sessions of a server at most: its usual limit leaves as many.
pub const MAX_SERVER_SESSIONS: u32 = 64;

/// Sessions of an open loop: all that there can be, for what is carried must not be decided by the number of slots, and idle ones cost
/// nothing. Each pins a block of the cache.
pub(super) fn open_sessions(most: u32, cache: Bytes, block_bytes: u32) -> u32 {
    let pinned = cache.0 / (PINNED_SHARE * u64::from(block_bytes.max(1)));
    let fits = if cache == Bytes(0) { u32::MAX } else { u32::try_from(pinned).unwrap_or(u32::MAX) };
    most.min(fits).max(1)
}

impl EngineCheck {
    /// Of demands with commits.
    ///
    /// A commit is an update of as many blocks as there are writes for it, for what a database writes is what it changed. It
    /// reads them first, and what the cache is expected to hold is asked for once more, so that reads reach storage.
    ///
    /// # Errors
    /// If more blocks are to be written than are read, or if scans are asked and there is nothing to scan.
    pub fn new(demands: &Demands, facts: &EngineFacts) -> Result<Self, PlanError> {
        let per_s = |demand: Option<model::record::Demand>| demand.map_or(0.0, |demand| demand.per_s);
        let (reads, writes, commits) = (per_s(demands.reads), per_s(demands.writes), per_s(demands.commits));
        let blocks = f64::from(facts.schemas.max(1)) * facts.scale_blocks.max(1) as f64;
        let cached = facts.cache.0 as f64 / (f64::from(facts.block_bytes.max(1)) * blocks);
        let (hits, block) = (cached.min(MAX_HITS), f64::from(facts.block_bytes.max(1)));
        let update_blocks = if commits > 0.0 { (writes / commits).max(1.0) } else { 1.0 };
        if update_blocks > facts.scale_blocks as f64 {
            return Err(PlanError::CommitTooLarge { blocks: update_blocks.ceil(), scale_blocks: facts.scale_blocks });
        }
        let changed = commits * update_blocks;
        if demands.writes.is_some() && demands.reads.is_some() && changed > reads / (1.0 - hits) {
            return Err(PlanError::MoreWritesThanReads { changed, commits, reads });
        }
        let scan_bytes = facts.scan_blocks as f64 * block;
        let scans_per_s = match demands.scan {
            Some(_) if scan_bytes == 0.0 => return Err(PlanError::NothingToScan),
            Some(scan) => scan.0 / scan_bytes,
            None => 0.0,
        };
        let reads_per_s = (reads / (1.0 - hits) - changed).max(0.0);
        let rates = EngineRates { reads_per_s, updates_per_s: commits, update_blocks, scans_per_s };
        let part = |kind, per_s, blocks| SlobPart::on_all(kind, per_s, blocks, facts.scale_blocks);
        let shape = SlobBlend {
            schemas: facts.schemas,
            parts: vec![
                part(OperationKind::Read, reads_per_s, 1.0),
                part(OperationKind::Update, commits, update_blocks),
                part(OperationKind::Scan, scans_per_s, 0.0),
            ],
        };
        let sessions = open_sessions(facts.max_sessions, facts.cache, facts.block_bytes);
        Ok(Self { shape, rates, sessions, lanes: facts.processors.clamp(1, sessions) })
    }

    /// Reads per second that are no part of an update, once what is asked: those that are timed by themselves.
    pub fn reads_alone_per_s(&self) -> f64 {
        self.rates.reads_per_s
    }

    /// Its operations in words, once what is asked.
    pub fn words(&self) -> String {
        let EngineRates { reads_per_s, updates_per_s, update_blocks, scans_per_s } = self.rates;
        let changed = updates_per_s * update_blocks;
        let scans = if scans_per_s > 0.0 { format!(", {scans_per_s:.1} scans/s") } else { String::new() };
        format!(
            "{reads_per_s:.0} reads/s, {updates_per_s:.0} updates/s of {update_blocks:.2} blocks ({changed:.0} blocks/s read and changed){scans}"
        )
    }

    /// Sessions of every step.
    pub fn sessions(&self) -> u32 {
        self.sessions
    }

    /// One step.
    pub fn step(&self, multiple: Multiple, pacing: &Pacing, seed: u64) -> StepPlan<SlobBlend> {
        step(self.shape.clone(), (self.shape.per_s(), self.sessions, self.lanes), multiple, pacing, seed)
    }
}

fn step<S>(
    shape: S,
    (per_s, sessions, lanes): (f64, u32, u32),
    multiple: Multiple,
    pacing: &Pacing,
    seed: u64,
) -> StepPlan<S> {
    let pace = Pace::Open { rate_per_s: per_s * multiple.times, arrival: Arrival::Poisson };
    StepPlan {
        index: multiple.index,
        label: multiple.label(),
        load: Intensity {
            sessions: Some(sessions),
            rate_operations_per_s: pace.rate_per_s(),
            arrival: pace.arrival(),
            ..Intensity::default()
        },
        level: None,
        like: None,
        shape,
        seed: seed_of_step(seed, multiple.index),
        work_loop: None,
        warmup: pacing.warmup,
        duration: if multiple.times == 1.0 { pacing.asked } else { pacing.multiple },
        pace,
        lanes,
        share: Share::WHOLE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::Throughput;

    const FACTS: EngineFacts = EngineFacts {
        schemas: 1,
        scale_blocks: 100_000,
        scan_blocks: 1_024,
        block_bytes: 8_192,
        cache: Bytes(10_000 * 8_192),
        processors: 2,
        max_sessions: MAX_SESSIONS,
    };

    fn demands(reads: &str, writes: &str, commits: &str) -> Demands {
        let rate = |text: &str| (!text.is_empty()).then(|| text.parse().unwrap());
        Demands { reads: rate(reads), writes: rate(writes), commits: rate(commits), scan: None }
    }

    #[test]
    fn most_of_a_long_check_runs_at_what_is_asked_and_a_short_one_is_refused() {
        let two_minutes = Pacing::of(Nanos::seconds(110)).unwrap();
        assert_eq!(
            two_minutes,
            Pacing { warmup: Nanos::seconds(2), asked: Nanos::seconds(36), multiple: Nanos::seconds(12) }
        );
        let half_an_hour = Pacing::of(Nanos::seconds(1_790)).unwrap();
        assert!(half_an_hour.asked > Nanos::seconds(1_600) && half_an_hour.multiple > Nanos::seconds(25));
        assert_eq!(Pacing::of(Nanos::seconds(30)), None);
        for seconds in 31..4_000 {
            let pacing = Pacing::of(Nanos::seconds(seconds)).unwrap();
            let all = pacing.step(1.0).0 + MULTIPLES * pacing.step(2.0).0;
            assert!(all <= seconds * 1_000_000_000, "{seconds} s: {pacing:?}");
        }
    }

    #[test]
    fn a_window_that_is_needed_is_taken_from_multiples_and_its_time_is_known() {
        let time_for = |seconds| Pacing::time_for(Nanos::seconds(seconds)).0 / 1_000_000_000;
        assert_eq!((time_for(36), time_for(1_000)), (109, 1_187));
        let short = Nanos::seconds(60);
        assert!(Pacing::of(short).unwrap().asked < Nanos::seconds(50));
        assert_eq!(Pacing::with_window(short, Nanos::seconds(50)).unwrap().asked, Nanos::seconds(50));
        assert_eq!(Pacing::with_window(short, Nanos::seconds(60)), None);
    }

    #[test]
    fn raw_storage_is_asked_for_each_kind_at_its_rate() {
        let mut asked = demands("20000@5ms", "130", "");
        asked.scan = Some(Throughput(800e6));
        let check = StorageCheck::new(&asked, 1 << 30, 8_192, 4).unwrap();
        let step =
            check.step(Multiple { times: 2.5, index: 3, repeat: 0 }, &Pacing::of(Nanos::seconds(110)).unwrap(), 7);
        assert_eq!((step.label.as_str(), step.lanes), ("x2.5", 1));
        let scans = 800e6 / f64::from(1 << 20);
        assert_eq!(step.load.rate_operations_per_s, Some((20_000.0 + 130.0 + scans) * 2.5));
        assert_eq!(check.largest_bytes(), 1 << 20);
        assert!(matches!(StorageCheck::new(&asked, 4_096, 8_192, 4), Err(PlanError::VolumeBelowBlock { .. })));
    }

    #[test]
    fn reads_of_updates_count_and_what_the_cache_answers_is_asked_for_again() {
        let check = EngineCheck::new(&demands("9000@5ms", "1000", "200@10ms"), &FACTS).unwrap();
        // One block in ten is cached: 10,000 touches bring 9,000 reads, 1,000 of them by updates of 5 blocks.
        assert_eq!((check.rates.update_blocks, check.rates.updates_per_s), (5.0, 200.0));
        assert!((check.rates.reads_per_s - 9_000.0).abs() < 1e-6, "{}", check.rates.reads_per_s);
    }

    #[test]
    fn as_many_slots_as_there_can_be_so_that_they_do_not_decide() {
        let sessions = |facts| EngineCheck::new(&demands("3000@5ms", "", "10"), &facts).unwrap().sessions();
        assert_eq!(sessions(FACTS), MAX_SESSIONS);
        assert_eq!(sessions(EngineFacts { max_sessions: 64, ..FACTS }), 64, "of a server");
        let large = EngineFacts { block_bytes: 32_768, cache: Bytes::mib(64), ..FACTS };
        assert_eq!(sessions(large), 512, "each pins a block of the cache");
    }

    #[test]
    fn writes_that_are_no_whole_number_for_each_commit_are_asked_for_as_they_are() {
        let facts = EngineFacts { cache: Bytes(0), ..FACTS };
        let check = EngineCheck::new(&demands("449@5ms", "428", "282@10ms"), &facts).unwrap();
        assert!((check.rates.update_blocks - 428.0 / 282.0).abs() < 1e-9);
        assert!((check.reads_alone_per_s() - 21.0).abs() < 1e-6, "{}", check.reads_alone_per_s());
    }

    #[test]
    fn what_an_engine_cannot_be_asked_for_is_refused() {
        let error = EngineCheck::new(&demands("100", "5000", "200"), &FACTS).unwrap_err();
        assert_eq!(
            error.to_string(),
            "5000 blocks are changed each second by 200 commits/s, but only 100 reads/s are requested: a database reads each block that it changes"
        );
        let error = EngineCheck::new(&demands("", "5000", "0.01"), &FACTS).unwrap_err();
        assert!(matches!(error, PlanError::CommitTooLarge { .. }), "{error}");
        let scan = Demands { scan: Some(Throughput(1e6)), ..demands("", "", "1") };
        let error = EngineCheck::new(&scan, &EngineFacts { scan_blocks: 0, ..FACTS }).unwrap_err();
        assert!(matches!(error, PlanError::NothingToScan), "{error}");
    }

    #[test]
    fn reads_alone_can_be_looked_at_again_without_a_rate() {
        let demands = |text: &str| Demands { reads: Some(text.parse().unwrap()), ..Demands::default() };
        let check = StorageCheck::new(&demands("8000@5ms"), 1 << 30, 8_192, 2).unwrap();
        let plan = check.reads_at_once(7).unwrap();
        assert_eq!((plan.load.sessions, plan.load.rate_operations_per_s, plan.pace), (Some(64), None, Pace::Closed));
        assert_eq!((plan.shape.classes[0].read_pct, plan.shape.classes[0].block_bytes), (100, 8_192));
        let mixed = Demands { writes: Some("100@5ms".parse().unwrap()), ..demands("8000@5ms") };
        assert!(
            StorageCheck::new(&mixed, 1 << 30, 8_192, 2).unwrap().reads_at_once(7).is_none(),
            "writes may be cached"
        );
    }
}
