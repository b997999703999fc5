//! What will be done, decided from what was asked and the facts about the target.
//!
//! Nothing here touches a file or prints: asked and facts go in, a plan or the reason against it comes out. Whatever can
//! be found wrong with a run is found here, before anything starts.

pub mod caches;
pub mod check;
mod error;
pub mod experiment;
pub mod host;
pub mod io;
pub mod like;
pub mod map;
pub mod net;
pub mod orders;
#[cfg(test)]
mod orders_tests;
pub mod orion;
pub mod replay;
pub mod slob;
mod steps;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use io::{Facts, OWN_MEMORY, check_buffers};
use load::{Pace, Share, StepPlan};
use model::config::io::{BlockSize, Chosen, IoLevel};
use model::config::net::{FlowDirection, NetOptions, NetPattern, NetProblem, NetServer, Outstanding};
use model::config::{ConfigError, Filler, Key, SlobParameters, Tag};
use model::record::facts::UNWAITED_MARK;
use model::record::{self, CalibrateLevel, CalibrateLoad, Intensity, Level, LikeLevel, Load, NetLevel, Parameters};
use model::units::{Bytes, Nanos};
use model::workload::io::{Access, Distribution, IoClass, IoShape, RequestSize};
use model::workload::net::{MAX_FLOW_THREADS, NetShape};
use net::{NetPlanRequest, step};
use slob::tags_by_key;
use steps::seed_of_step;
use targets::database::{Filling, Replace, SetupRequest};

pub use error::PlanError;
pub use steps::{again, share_out};

/// Theirs of what each volume has one of.
fn of_chosen(chosen: Chosen, regions: &[Range<u64>]) -> Vec<Range<u64>> {
    match chosen {
        Chosen::One(volume) => vec![regions[volume].clone()],
        Chosen::All { .. } => regions.to_vec(),
    }
}

/// `all` in so many rounds, each with its number from 1. Every other round goes backwards: over two rounds each lies at the same mean
/// instant, so that a platform that drifts does so for all of them alike, and a credit that is used up shows as rounds that differ.
fn alternating<T: Clone>(all: &[T], rounds: u32) -> Vec<(u32, T)> {
    let of_round = |round: u32| {
        let mut chosen = all.to_vec();
        if round.is_multiple_of(2) {
            chosen.reverse();
        }
        chosen.into_iter().map(move |chosen| (round, chosen))
    };
    (1..=rounds).flat_map(of_round).collect()
}

/// Each of `loads` alone and all together in turn, with the round of each turn, in rounds that go to and fro.
pub fn turns(loads: usize, rounds: u32) -> Vec<(u32, Chosen)> {
    let all: Vec<Chosen> = (0..loads).map(Chosen::One).chain([Chosen::All { volumes: loads }]).collect();
    alternating(&all, rounds)
}

/// Depth by depth, the turns of volumes.
fn schedule(depths: &[u32], volumes: usize, rounds: u32) -> Vec<IoLevel> {
    let of_depth = |depth: &u32| {
        let depth = *depth;
        turns(volumes, rounds).into_iter().map(move |(round, chosen)| IoLevel::Volumes { depth, chosen, round })
    };
    depths.iter().flat_map(of_depth).collect()
}

/// What was asked for besides the parameters.
#[derive(Debug, Clone, Copy)]
pub struct DataSetRequest {
    /// Schemas to make.
    pub schemas: u32,
    /// Size of a block, in bytes, where the data are to be.
    pub block_bytes: u64,
    /// Seed of the placement of rows and of their filling.
    pub seed: u64,
    /// Whether the user named the seed.
    pub is_seed_asked: bool,
    /// What to do with other data that are there.
    pub replace: Replace,
}

/// What set-up is asked for.
///
/// # Errors
/// [`PlanError::EmptyScale`] if the scale does not hold one block.
pub fn plan_data_set(parameters: &SlobParameters, request: &DataSetRequest) -> Result<SetupRequest, PlanError> {
    let &DataSetRequest { schemas, block_bytes: block, seed, is_seed_asked, replace } = request;
    let scale_blocks = parameters.scale.blocks(block);
    if scale_blocks == 0 {
        return Err(PlanError::EmptyScale {
            value: parameters.to_map().remove(Key::Scale.name()).unwrap_or_default(),
            origin: parameters.origin(Key::Scale),
            block_bytes: block,
        });
    }
    Ok(SetupRequest {
        schemas,
        scale_blocks,
        scan_blocks: parameters.scan_table.blocks(block),
        block_bytes: u32::try_from(block).unwrap_or(u32::MAX),
        filling: match parameters.filler {
            Filler::Incompressible => Filling::Incompressible,
            Filler::Compressible => Filling::Compressible,
        },
        streams: parameters.load_parallel_degree,
        seed,
        is_seed_asked,
        replace,
    })
}

/// What a run is before its first step.
#[derive(Debug, Clone)]
pub struct RunHead {
    /// Name built from tags and load.
    pub name: String,
    /// Tags by key.
    pub tags: BTreeMap<String, String>,
    /// Seed of the run; each step draws from one of its own.
    pub seed: u64,
    /// The load.
    pub load: Load,
    /// Parameters that all steps have in common, for display.
    pub parameters: Parameters,
}

impl RunHead {
    /// Of a run whose name is the values of its tags and these `words`. Its levels are in `levels`, as far as they are known.
    ///
    /// # Errors
    /// If a tag is given twice.
    pub fn new<'a>(
        tags: &[Tag],
        words: impl IntoIterator<Item = String>,
        seed: u64,
        load: Load,
        levels: impl IntoIterator<Item = &'a Level>,
    ) -> Result<Self, PlanError> {
        let mut parameters = in_common(levels.into_iter().map(Level::parameters));
        parameters.extend(load.parameters());
        let name: Vec<String> = tags.iter().map(|tag| plain(&tag.value)).chain(words).collect();
        Ok(Self { name: name.join("_"), tags: tags_by_key(tags)?, seed, load, parameters })
    }

    /// The same for a load that is so many times a production, where all of it is.
    fn like(mut self, times: &[f64]) -> Self {
        if let [only] = times {
            self.parameters.extend(LikeLevel { times: *only, moment: None }.parameters());
        }
        self
    }
}

/// The entries that all maps share.
fn in_common(mut maps: impl Iterator<Item = Parameters>) -> Parameters {
    let mut common = maps.next().unwrap_or_default();
    for map in maps {
        common.retain(|name, value| map.get(name) == Some(value));
    }
    common
}

/// What stands for a parameter in a name. Only those that may vary within a sweep are needed.
fn abbreviation(key: Key) -> &'static str {
    match key {
        Key::UpdatePct => "up",
        Key::ScanPct => "sp",
        Key::WorkUnit => "wu",
        Key::RedoStress => "rs",
        Key::DoHotspot => "hs",
        Key::HotspotMb => "hsmb",
        Key::HotspotOffsetMb => "hsoff",
        Key::HotspotFrequency => "hsf",
        Key::HotSchemaFrequency => "hschf",
        Key::ThinkTmFrequency => "thf",
        Key::ThinkTmMin => "thmin",
        Key::ThinkTmMax => "thmax",
        other => other.name(),
    }
}

/// The numbers that a name reports on one step.
#[derive(Debug, Clone, PartialEq)]
struct Numbers {
    schemas: u32,
    threads: u32,
    work_unit: u32,
    rate_per_s: Option<f64>,
    /// Whether its commits are not waited for.
    is_unwaited: bool,
}

/// What distinguishes a step, such as `s8_t4` or `s8_t4_up50`. `varied` are the parameters that differ within the run,
/// threads left out.
fn step_label(numbers: &Numbers, varied: &[(Key, &str)]) -> String {
    let mut parts = vec![format!("s{}", numbers.schemas), format!("t{}", numbers.threads)];
    parts.extend(numbers.rate_per_s.map(|rate| format!("r{rate}")));
    parts.extend(varied.iter().map(|(key, value)| plain(&format!("{}{value}", abbreviation(*key)))));
    parts.join("_") + mark(numbers.is_unwaited)
}

/// The name of a run, such as `p30x2_d8s_s64_t1_wu64`: the values of the tags in the order given, then the load, with a
/// range where it varies (`t1-32`).
fn run_name(tags: &[Tag], steps: &[Numbers]) -> String {
    let range = |number: fn(&Numbers) -> u32| {
        let least = steps.iter().map(number).min().unwrap_or(0);
        let most = steps.iter().map(number).max().unwrap_or(0);
        if least == most { least.to_string() } else { format!("{least}-{most}") }
    };
    let mut parts: Vec<String> = tags.iter().map(|tag| plain(&tag.value)).collect();
    parts.push(format!("s{}", range(|step| step.schemas)));
    parts.push(format!("t{}", range(|step| step.threads)));
    parts.push(format!("wu{}", range(|step| step.work_unit)));
    parts.extend(steps.first().and_then(|step| step.rate_per_s).map(|rate| format!("r{rate}")));
    parts.join("_") + mark(steps.iter().any(|step| step.is_unwaited))
}

fn mark(is_unwaited: bool) -> &'static str {
    if is_unwaited { UNWAITED_MARK } else { "" }
}

/// Text that can be typed as one word.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' }).collect()
}

// The plan of a look at several servers of a network from one host: each by itself, then all of them at once.

/// Flows to each server where nobody says how many.
pub const DEFAULT_FLOWS: u32 = 4;

/// What will be done.
#[derive(Debug, Clone)]
pub struct NetMatrix {
    /// What the run is before its first step.
    pub head: RunHead,
    /// Its steps.
    pub steps: Vec<MatrixStep>,
}

/// One step.
#[derive(Debug, Clone)]
pub struct MatrixStep {
    /// The load on all of its servers.
    pub plan: StepPlan<NetShape>,
    /// The load on each of them.
    pub each: NetShape,
    /// Which servers these are, by their places in the list.
    pub servers: std::ops::Range<usize>,
}

/// Plans it: of each server a round trip and bulk flows in each direction, then flows of all servers at once. Of the request's load
/// only its duration, warm-up, seed and tags count.
///
/// # Errors
/// The first thing that cannot be done.
pub fn matrix(request: &NetPlanRequest, servers: &[NetServer], flows: u32) -> Result<NetMatrix, PlanError> {
    if request.duration.0 == 0 {
        return Err(PlanError::NoDuration);
    }
    let all = servers.len();
    if flows == 0 {
        return Err(ConfigError::Net(NetProblem::NoFlows).into());
    }
    if (all as u64).saturating_mul(flows.into()) > MAX_FLOW_THREADS.into() {
        let problem = NetProblem::TooManyFlows { flows, servers: all, most: MAX_FLOW_THREADS };
        return Err(ConfigError::Net(problem).into());
    }
    let bulk = |direction| NetOptions { direction: Some(direction), ..NetOptions::new(NetPattern::Bulk) };
    let (up, down) = ((bulk(FlowDirection::Up), flows), (bulk(FlowDirection::Down), flows));
    let idle = (NetOptions::new(NetPattern::Ping), 1);
    let mut steps: Vec<MatrixStep> = Vec::new();
    let mut add =
        |name: &str, what: &str, (asked, connections): &(NetOptions, u32), servers: std::ops::Range<usize>| {
            let outstanding = Outstanding { connections: *connections, each: 1 };
            let each = asked.shape(outstanding);
            let server = (servers.len() == 1).then(|| name.to_owned());
            let level = NetLevel { options: Some(asked.clone()), outstanding, rate_per_s: None, beside: None, server };
            let (index, label) = (steps.len() as u32, format!("{name}_{what}"));
            let plan = step(request, index, label, each.times(servers.len()), level);
            steps.push(MatrixStep { plan, each, servers });
        };
    for (place, server) in servers.iter().enumerate() {
        for (what, load) in [("idle", &idle), ("up", &up), ("down", &down)] {
            add(&server.to_string(), what, load, place..place + 1);
        }
    }
    add("all", "up", &up, 0..all);
    add("all", "down", &down, 0..all);
    let load = Load::NetworkMatrix(record::NetMatrix { servers: all as u32, flows });
    let words = ["matrix".to_owned(), format!("{all}-servers")];
    Ok(NetMatrix { head: RunHead::new(&request.tags, words, request.seed, load, [])?, steps })
}

/// Most reads outstanding of each size. Deeper queues than these are found in no database, and a slot of a large read takes
/// a MiB of memory.
const MAX_SMALL: u32 = 1_024;
const MAX_LARGE: u32 = 128;
/// Reads outstanding from which another thread is worth its while.
const DEPTH_OF_A_LANE: u32 = 32;
/// The part of the available memory that buffers may take, as a divisor.
const SHARE_OF_MEMORY: u64 = 4;

/// What was asked for.
#[derive(Debug, Clone)]
pub struct CalibrateRequest {
    /// Length of a small read.
    pub small: BlockSize,
    /// Length of a large read.
    pub large: BlockSize,
    /// The latency limit, as it is recorded.
    pub max_latency: String,
    /// How much of the volume is read; all of it where nobody says.
    pub size: Option<Bytes>,
    /// Length of each window.
    pub duration: Nanos,
    /// Load before each window.
    pub warmup: Nanos,
    /// Seed of every random choice.
    pub seed: u64,
    /// What the user calls the things that vary between runs.
    pub tags: Vec<Tag>,
    /// Processors of this machine.
    pub processors: u32,
}

/// What will be done.
#[derive(Debug, Clone)]
pub struct CalibratePlan {
    /// What the run is before its first step.
    pub head: RunHead,
    /// Bytes of the volume that reads touch.
    pub region_bytes: u64,
    /// Most small reads outstanding.
    pub max_small: u32,
    /// Most large reads outstanding.
    pub max_large: u32,
    request: CalibrateRequest,
}

/// Plans a calibration of a volume.
///
/// # Errors
/// The first thing that cannot be done.
pub fn plan(request: &CalibrateRequest, facts: &Facts) -> Result<CalibratePlan, PlanError> {
    let CalibrateRequest { small, large, max_latency, size, tags, .. } = request;
    let capacity = Bytes(facts.capacity_bytes);
    let wanted = size.unwrap_or(capacity);
    if wanted > capacity {
        return Err(PlanError::VolumeTooSmall { asked: wanted, capacity });
    }
    let region_bytes = wanted.0 - wanted.0 % u64::from(large.bytes());
    if region_bytes == 0 {
        return Err(PlanError::VolumeTooSmall { asked: (*large).into(), capacity: wanted });
    }
    check_buffers(1, (*large).into(), Bytes(0), facts.available_memory)?;
    let most = |usual: u32, block: BlockSize| match facts.available_memory {
        None => usual,
        Some(Bytes(available)) => {
            let buffers = available.saturating_sub(OWN_MEMORY.0) / SHARE_OF_MEMORY / u64::from(block.bytes());
            usual.min(u32::try_from(buffers).unwrap_or(u32::MAX)).max(1)
        }
    };
    let (max_small, max_large) = (most(MAX_SMALL, *small), most(MAX_LARGE, *large));
    let load = CalibrateLoad { small: *small, large: *large, max_small, max_large, max_latency: max_latency.clone() };
    Ok(CalibratePlan {
        head: RunHead::new(tags, ["calibrate".to_owned()], request.seed, Load::Calibrate(load), [])?,
        region_bytes,
        max_small,
        max_large,
        request: request.clone(),
    })
}

impl CalibratePlan {
    /// Step number `index`: so many reads of a size outstanding, the `reading`-th time, counted from 1.
    pub fn step(&self, index: u32, block: BlockSize, depth: u32, reading: usize) -> StepPlan<IoShape> {
        let CalibrateRequest { duration, warmup, seed, processors, .. } = &self.request;
        let lanes = (depth / DEPTH_OF_A_LANE).clamp(1, (*processors).max(1));
        let again = if reading > 1 { format!("_r{reading}") } else { String::new() };
        StepPlan {
            index,
            label: format!("{block}_d{depth}{again}"),
            load: Intensity { sessions: Some(depth), ..Intensity::default() },
            level: Some(Level::Calibrate(CalibrateLevel { block, depth, jobs: lanes })),
            like: None,
            shape: IoShape::of(IoClass {
                size: RequestSize::Small,
                block_bytes: block.bytes(),
                from_bytes: 0,
                region_bytes: self.region_bytes,
                access: Access::Random(Distribution::Uniform),
                read_pct: 100,
                streams: lanes,
                slots: depth,
            }),
            // Places that were read before may have stayed in a cache.
            seed: seed_of_step(*seed, index),
            work_loop: None,
            warmup: *warmup,
            duration: *duration,
            pace: Pace::Closed,
            lanes,
            share: Share::WHOLE,
        }
    }

    /// How long a step lasts, warm-up included.
    pub fn step_time(&self) -> Nanos {
        Nanos(self.request.warmup.0.saturating_add(self.request.duration.0))
    }
}

#[cfg(test)]
mod data_set_tests {
    use super::*;
    use model::config::{Key, Setting};

    fn planned(settings: &[(Key, &str)]) -> Result<SetupRequest, PlanError> {
        let settings: Vec<_> = settings.iter().map(|(key, value)| Setting::from_command_line(*key, *value)).collect();
        let parameters = SlobParameters::from_settings(&settings).unwrap();
        let block_bytes = parameters.block_size.map_or(8 << 10, |size| size.0);
        plan_data_set(
            &parameters,
            &DataSetRequest { schemas: 8, block_bytes, seed: 7, is_seed_asked: false, replace: Replace::Refuse },
        )
    }

    #[test]
    fn sizes_are_counted_in_the_blocks_of_the_data_set() {
        let usual = planned(&[(Key::Scale, "1G")]).unwrap();
        assert_eq!((usual.block_bytes, usual.scale_blocks, usual.scan_blocks), (8_192, 131_072, 128));
        let large = planned(&[(Key::Scale, "1G"), (Key::BlockSz, "32K"), (Key::ScanTableSz, "0")]).unwrap();
        assert_eq!((large.block_bytes, large.scale_blocks, large.scan_blocks), (32_768, 32_768, 0));
        assert_eq!(planned(&[(Key::Scale, "2000")]).unwrap().scale_blocks, 2_000);
    }

    #[test]
    fn rows_are_incompressible_unless_asked_otherwise() {
        assert_eq!(planned(&[]).unwrap().filling, Filling::Incompressible);
        assert_eq!(planned(&[(Key::ObfuscateColumns, "FALSE")]).unwrap().filling, Filling::Compressible);
    }

    #[test]
    fn less_than_one_block_is_refused() {
        let error = planned(&[(Key::Scale, "16K"), (Key::BlockSz, "32K")]).unwrap_err();
        assert_eq!(error.to_string(), "`SCALE=16K` (command line) is less than one block of 32768 bytes");
    }
}

#[cfg(test)]
mod names_tests {
    use super::*;
    use model::config::PARAMETERS;

    const NUMBERS: Numbers = Numbers { schemas: 64, threads: 1, work_unit: 64, rate_per_s: None, is_unwaited: false };

    #[test]
    fn commits_that_nobody_waits_for_are_in_every_name() {
        let unwaited = Numbers { is_unwaited: true, ..NUMBERS };
        assert_eq!(run_name(&[], &[NUMBERS, unwaited.clone()]), "s64_t1_wu64_nowait");
        assert_eq!(step_label(&unwaited, &[(Key::UpdatePct, "20")]), "s64_t1_up20_nowait");
    }

    #[test]
    fn a_run_is_named_by_its_tags_and_its_load() {
        let tags = ["disk=p30x2".parse().unwrap(), "vm=d8s v3".parse().unwrap()];
        assert_eq!(run_name(&tags, &[NUMBERS]), "p30x2_d8s-v3_s64_t1_wu64");
    }

    #[test]
    fn what_varies_in_a_sweep_is_named_as_a_range() {
        let sweep = [Numbers { threads: 32, ..NUMBERS }, NUMBERS, Numbers { threads: 8, ..NUMBERS }];
        assert_eq!(run_name(&[], &sweep), "s64_t1-32_wu64");
    }

    #[test]
    fn a_step_is_labelled_by_what_varies() {
        assert_eq!(step_label(&NUMBERS, &[]), "s64_t1");
        assert_eq!(step_label(&NUMBERS, &[(Key::WorkUnit, "16"), (Key::ThinkTmMin, ".1")]), "s64_t1_wu16_thmin.1");
        let open = Numbers { rate_per_s: Some(2_500.5), ..NUMBERS };
        assert_eq!(step_label(&open, &[]), "s64_t1_r2500.5");
    }

    #[test]
    fn every_parameter_that_may_vary_has_an_abbreviation_of_its_own() {
        let mut seen = std::collections::BTreeSet::new();
        for parameter in PARAMETERS.iter().filter(|parameter| parameter.role == model::config::Role::Load) {
            let short = abbreviation(parameter.key);
            assert!(short != parameter.name && seen.insert(short), "{}", parameter.name);
        }
    }
}

#[cfg(test)]
mod net_matrix_tests {
    use super::*;
    use model::config::net::NetServers;
    use model::record::Level;
    use model::units::Nanos;
    use model::workload::Arrival;

    fn request() -> NetPlanRequest {
        NetPlanRequest {
            asked: NetOptions::new(NetPattern::Ping),
            duration: Nanos::seconds(6),
            warmup: Nanos::seconds(1),
            arrival: Arrival::Poisson,
            times: None,
            seed: 7,
            tags: vec!["net=lan 10g".parse().unwrap()],
            processors: 2,
        }
    }

    #[test]
    fn each_server_has_steps_of_its_own_and_all_of_them_two() {
        let NetServers(servers) = "db2,db3".parse().unwrap();
        let planned = matrix(&request(), &servers, 4).unwrap();
        assert_eq!(planned.head.name, "lan-10g_matrix_2-servers");
        let labels: Vec<&str> = planned.steps.iter().map(|step| step.plan.label.as_str()).collect();
        let of_each =
            ["db2:7018_idle", "db2:7018_up", "db2:7018_down", "db3:7018_idle", "db3:7018_up", "db3:7018_down"];
        assert_eq!(labels, [&of_each[..], &["all_up", "all_down"]].concat());
        let (alone, all) = (&planned.steps[4], &planned.steps[6]);
        let server = |step: &MatrixStep| match &step.plan.level {
            Some(Level::Network(level)) => level.server.clone(),
            _ => None,
        };
        assert_eq!((alone.servers.clone(), server(alone).as_deref()), (1..2, Some("db3:7018")));
        assert_eq!((all.servers.clone(), all.plan.shape.sessions(), all.plan.lanes), (0..2, 8, 8));
        assert_eq!((all.each.sessions(), server(all)), (4, None));
    }

    #[test]
    fn flows_that_would_share_threads_are_refused() {
        let NetServers(servers) = "db2,db3,db4".parse().unwrap();
        assert!(matrix(&request(), &servers, 42).is_ok());
        let error = matrix(&request(), &servers, 43).unwrap_err();
        assert_eq!(error.to_string(), "43 flows to each of 3 servers are more than 128 at once");
        assert!(error.hint().unwrap().contains("`--flows 42` fits"));
        assert!(matrix(&request(), &servers, 0).is_err());
        assert!(matrix(&NetPlanRequest { duration: Nanos(0), ..request() }, &servers, 4).is_err());
    }
}

#[cfg(test)]
mod calibrate_tests {
    use super::*;

    fn request() -> CalibrateRequest {
        CalibrateRequest {
            small: "8K".parse().unwrap(),
            large: "1M".parse().unwrap(),
            max_latency: "mean=10ms".to_owned(),
            size: None,
            duration: Nanos::seconds(10),
            warmup: Nanos::seconds(2),
            seed: 7,
            tags: vec!["disk=p30".parse().unwrap()],
            processors: 4,
        }
    }

    const FACTS: Facts =
        Facts { capacity_bytes: (1 << 30) + 5_000, volumes: Vec::new(), unit_bytes: 512, available_memory: None };

    #[test]
    fn no_two_steps_read_the_same_places() {
        let plan = plan(&request(), &FACTS).unwrap();
        assert_eq!((plan.head.name.as_str(), plan.region_bytes), ("p30_calibrate", 1 << 30));
        let (first, again) = (plan.step(3, request().small, 64, 1), plan.step(9, request().small, 64, 2));
        assert_eq!((first.label.as_str(), again.label.as_str()), ("8K_d64", "8K_d64_r2"));
        assert_ne!(first.seed, again.seed);
        assert_eq!((first.lanes, first.shape.streams(), first.shape.sessions()), (2, 2, 64));
        assert_eq!(plan.step(0, request().large, 1, 1).lanes, 1);
    }

    #[test]
    fn buffers_never_take_more_than_a_part_of_the_memory() {
        let facts = Facts { available_memory: Some(Bytes::mib(192)), ..FACTS };
        let plan = plan(&request(), &facts).unwrap();
        assert_eq!((plan.max_small, plan.max_large), (1_024, 32));
        let none = Facts { available_memory: Some(Bytes::mib(32)), ..FACTS };
        assert!(matches!(super::plan(&request(), &none), Err(PlanError::BuffersTooLarge { .. })));
    }

    #[test]
    fn what_cannot_hold_a_large_read_is_refused() {
        let small = Facts { capacity_bytes: 1 << 19, ..FACTS };
        let error = plan(&request(), &small).unwrap_err();
        assert_eq!(error.to_string(), "1 MiB are to be used, but there are only 512 KiB");
        let large = CalibrateRequest { size: Some(Bytes::gib(2)), ..request() };
        assert!(matches!(plan(&large, &FACTS), Err(PlanError::VolumeTooSmall { .. })));
    }
}
