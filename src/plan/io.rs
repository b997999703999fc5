//! The plan of a run of requests to raw storage.

use std::ops::Range;

use super::steps::{check_share, seed_of_step};
use super::{PlanError, RunHead, of_chosen, schedule};
use load::{Pace, Share, StepPlan};
use model::config::Tag;
use model::config::io::{ConnectionList, Connections, DepthList, IoLevel, IoOptions, MAX_DEPTH, RateRange, Volumes};
use model::record::{Intensity, Level, Load, Soak};
use model::units::{Bytes, Nanos};
use model::workload::Arrival;
use model::workload::io::{IoClass, IoShape, RequestSize};

/// Memory of the program besides its requests' buffers.
pub(super) const OWN_MEMORY: Bytes = Bytes::mib(64);

/// What was asked for.
#[derive(Debug, Clone)]
pub struct IoPlanRequest {
    /// The load.
    pub asked: IoOptions,
    /// Length of each measured window.
    pub duration: Nanos,
    /// Load before each window.
    pub warmup: Nanos,
    /// How the requests of an open loop arrive.
    pub arrival: Arrival,
    /// Length of the rounds in which a long load is reported; absent for another load.
    pub round: Option<Nanos>,
    /// Seed of every random choice.
    pub seed: u64,
    /// What the user calls the things that vary between runs.
    pub tags: Vec<Tag>,
    /// Which part of every step this process carries out; the jobs that are asked for are those of each part.
    pub share: Share,
}

/// What is known about the volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Bytes that requests can touch.
    pub capacity_bytes: u64,
    /// Where each volume lies in that, if each path is one.
    pub volumes: Vec<Range<u64>>,
    /// What offsets and lengths of requests must be multiples of.
    pub unit_bytes: u32,
    /// Memory that can be taken, if it is known.
    pub available_memory: Option<Bytes>,
}

/// What will be done.
#[derive(Debug, Clone)]
pub struct IoPlan {
    /// What the run is before its first step.
    pub head: RunHead,
    /// Bytes of the volume that requests touch.
    pub region_bytes: u64,
    /// The load levels in the order in which they run; of a search, those it may choose from are its bounds.
    pub levels: Vec<IoLevel>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// The parts of the volume that requests touch: one, or one in each volume.
    regions: Vec<Range<u64>>,
    request: IoPlanRequest,
}

impl IoPlan {
    /// Step number `index` at a level.
    pub fn step(&self, index: u32, level: IoLevel) -> StepPlan<IoShape> {
        let IoPlanRequest { asked, duration, warmup, arrival, share, .. } = &self.request;
        let pace = match level {
            IoLevel::Depth(_) | IoLevel::Volumes { .. } | IoLevel::Connections { .. } => Pace::Closed,
            IoLevel::Rate { per_s, .. } => Pace::Open { rate_per_s: per_s, arrival: *arrival },
        };
        let (regions, slots) = match level {
            IoLevel::Volumes { depth, chosen, .. } => (of_chosen(chosen, &self.regions), depth),
            IoLevel::Depth(_) | IoLevel::Rate { .. } | IoLevel::Connections { .. } => {
                (self.regions.clone(), level.slots())
            }
        };
        let class = |region: &Range<u64>| IoClass {
            size: RequestSize::Small,
            block_bytes: asked.block.bytes(),
            from_bytes: region.start,
            region_bytes: region.end - region.start,
            access: asked.access(),
            read_pct: asked.read_pct_in_force(),
            streams: asked.jobs * share.parts,
            slots,
        };
        StepPlan {
            index,
            label: level.label(),
            load: Intensity {
                sessions: Some(level.slots()),
                rate_operations_per_s: pace.rate_per_s(),
                arrival: pace.arrival(),
                ..Intensity::default()
            },
            level: Some(Level::Io(level)),
            like: None,
            shape: IoShape { classes: regions.iter().map(class).collect() },
            seed: seed_of_step(self.head.seed, index),
            work_loop: None,
            warmup: *warmup,
            duration: *duration,
            pace,
            // Volumes have threads of their own, so that one does not wait for the other's requests.
            lanes: asked.jobs * regions.len() as u32,
            share: Share::WHOLE,
        }
        .of_part(*share)
    }

    /// The steps at all levels.
    pub fn steps(&self) -> Vec<StepPlan<IoShape>> {
        (0..).zip(&self.levels).map(|(index, level)| self.step(index, *level)).collect()
    }

    /// What the requests of its levels look like.
    pub fn classes(&self) -> impl Iterator<Item = IoClass> {
        self.levels.iter().flat_map(|level| self.step(0, *level).shape.classes)
    }

    /// How long a step lasts, warm-up included.
    pub fn step_time(&self) -> Nanos {
        Nanos(self.request.warmup.0.saturating_add(self.request.duration.0))
    }
}

/// Most requests of an open loop that are outstanding unless the user says otherwise, and the memory that they may take.
const OPEN_LOOP_DEPTH: u32 = 1024;
const OPEN_LOOP_MEMORY: Bytes = Bytes::gib(1);

/// The bound on outstanding requests of an open loop for which none was asked.
pub fn open_loop_depth(block_bytes: u32) -> u32 {
    let fits = OPEN_LOOP_MEMORY.0 / u64::from(block_bytes.max(1));
    OPEN_LOOP_DEPTH.min(u32::try_from(fits).unwrap_or(u32::MAX)).max(1)
}

/// Plans a run on a volume.
///
/// # Errors
/// The first thing that cannot be done.
pub fn plan(request: &IoPlanRequest, facts: &Facts) -> Result<IoPlan, PlanError> {
    let asked = &request.asked;
    asked.check()?;
    if request.duration == Nanos(0) {
        return Err(PlanError::NoDuration);
    }
    let block_bytes = asked.block.bytes();
    if !block_bytes.is_multiple_of(facts.unit_bytes) {
        return Err(PlanError::BlockBelowUnit { block: asked.block.into(), unit: Bytes(u64::from(facts.unit_bytes)) });
    }
    let regions = match asked.volumes {
        Volumes::One => vec![region(asked, 0..facts.capacity_bytes)?],
        Volumes::Each { .. } => {
            facts.volumes.iter().map(|volume| region(asked, volume.clone())).collect::<Result<Vec<_>, _>>()?
        }
    };
    let region_bytes = regions.iter().map(|region| region.end - region.start).sum::<u64>();
    let levels = levels(asked, regions.len());
    check_parts(request, &levels)?;
    check_depth(asked, &levels)?;
    check_blocks(asked, &levels, region_bytes / u64::from(block_bytes))?;
    check_memory(request, &levels, facts)?;
    // Jobs that are asked for are those of each part; the record has those of the whole.
    let whole = IoOptions { jobs: asked.jobs * request.share.parts, ..asked.clone() };
    let load = match request.round {
        Some(round_ns) => Load::Soak(Soak { requests: whole, round_ns }),
        None => Load::Io(whole),
    };
    let points: Vec<Level> = levels.iter().copied().map(Level::Io).collect();
    Ok(IoPlan {
        head: RunHead::new(&request.tags, name(asked), request.seed, load, &points)?,
        region_bytes,
        levels,
        notes: Vec::new(),
        regions,
        request: request.clone(),
    })
}

/// The part of a volume that requests touch.
fn region(asked: &IoOptions, volume: Range<u64>) -> Result<Range<u64>, PlanError> {
    let (capacity, block) = (Bytes(volume.end - volume.start), Bytes::from(asked.block));
    if block > capacity {
        return Err(PlanError::VolumeBelowBlock { block, capacity });
    }
    let wanted = asked.size.unwrap_or(capacity);
    if wanted > capacity {
        return Err(PlanError::VolumeTooSmall { asked: wanted, capacity });
    }
    Ok(volume.start..volume.start + wanted.0 - wanted.0 % block.0)
}

fn levels(asked: &IoOptions, volumes: usize) -> Vec<IoLevel> {
    let DepthList(depths) = &asked.depths;
    if let Volumes::Each { rounds } = asked.volumes {
        return schedule(depths, volumes, rounds);
    }
    if let Connections::Each { list, rounds } = &asked.connections {
        return over_connections(depths.first().copied().unwrap_or(1), list, *rounds);
    }
    match &asked.rates {
        None => depths.iter().map(|depth| IoLevel::Depth(*depth)).collect(),
        Some(rates) => {
            let most = depths.first().copied().unwrap_or(1);
            rates.named().into_iter().map(|per_s| IoLevel::Rate { per_s, most }).collect()
        }
    }
}

/// Each number of connections in turn. Every other round goes backwards, so that what changes with time does so for all of them alike.
fn over_connections(depth: u32, ConnectionList(numbers): &ConnectionList, rounds: u32) -> Vec<IoLevel> {
    let of_round = |round: u32| {
        let mut numbers = numbers.clone();
        if round.is_multiple_of(2) {
            numbers.reverse();
        }
        let round = (rounds > 1).then_some(round);
        numbers.into_iter().map(move |each| IoLevel::Connections { depth, each, round })
    };
    (1..=rounds).flat_map(of_round).collect()
}

/// Refuses less load than there are threads of parts.
fn check_parts(request: &IoPlanRequest, levels: &[IoLevel]) -> Result<(), PlanError> {
    let IoPlanRequest { asked, share, .. } = request;
    levels.iter().try_for_each(|level| check_share(&level.label(), level.slots(), asked.jobs, *share))
}

/// Refuses more requests on all volumes together than can be outstanding.
fn check_depth(asked: &IoOptions, levels: &[IoLevel]) -> Result<(), PlanError> {
    let (slots, most) = (levels.iter().map(|level| level.slots()).max().unwrap_or(1), MAX_DEPTH);
    let is_too_deep = asked.volumes != Volumes::One && slots > most;
    if is_too_deep { Err(PlanError::TooDeepTogether { slots, most }) } else { Ok(()) }
}

/// Refuses writes that could never all be under way where a block has one at a time.
fn check_blocks(asked: &IoOptions, levels: &[IoLevel], blocks: u64) -> Result<(), PlanError> {
    let slots = levels.iter().map(|level| level.slots()).max().unwrap_or(1);
    let one_at_a_time = asked.verify == model::config::io::Verify::Blocks && asked.writes();
    if one_at_a_time && blocks < u64::from(slots) {
        return Err(PlanError::FewerBlocksThanWrites { slots, blocks });
    }
    Ok(())
}

fn check_memory(request: &IoPlanRequest, levels: &[IoLevel], facts: &Facts) -> Result<(), PlanError> {
    let asked = &request.asked;
    let slots = levels.iter().map(|level| level.slots()).max().unwrap_or(1).div_ceil(request.share.parts.max(1));
    let block_bytes = u64::from(asked.block.bytes());
    let mut more = 0;
    if asked.redundancy == model::config::io::Redundancy::Mirror {
        more += u64::from(slots) * block_bytes;
    }
    if asked.verify == model::config::io::Verify::Blocks {
        more += 4 * (facts.capacity_bytes / block_bytes);
    }
    check_buffers(slots, asked.block.into(), Bytes(more), facts.available_memory)
}

/// Refuses buffers that the kernel would have to kill somebody for: one for each slot, and `more`.
pub(super) fn check_buffers(
    slots: u32,
    block: Bytes,
    more: Bytes,
    available_memory: Option<Bytes>,
) -> Result<(), PlanError> {
    let Some(available) = available_memory else { return Ok(()) };
    let buffers = u64::from(slots).saturating_mul(block.0);
    let needed = Bytes(buffers.saturating_add(more.0).saturating_add(OWN_MEMORY.0));
    if needed > available {
        return Err(PlanError::BuffersTooLarge { slots, block, needed, available });
    }
    Ok(())
}

/// What the name of a run says of its load, such as `randread_8K_d1-256`.
fn name(asked: &IoOptions) -> Vec<String> {
    let mut parts = vec![asked.pattern.to_string(), asked.block.to_string()];
    let range = |letter: &str, numbers: Vec<f64>| {
        let least = numbers.iter().copied().fold(f64::MAX, f64::min);
        let most = numbers.iter().copied().fold(f64::MIN, f64::max);
        if least == most { format!("{letter}{least}") } else { format!("{letter}{least}-{most}") }
    };
    match &asked.rates {
        Some(RateRange::Between { lowest, highest }) => parts.push(range("r", vec![*lowest, *highest])),
        Some(RateRange::Each(rates)) => parts.push(range("r", rates.clone())),
        None => parts.push(range("d", asked.depths.0.iter().map(|depth| f64::from(*depth)).collect())),
    }
    if asked.volumes != Volumes::One {
        parts.push("together".to_owned());
    }
    if let Connections::Each { list, .. } = &asked.connections {
        parts.push(range("c", list.0.iter().map(|number| f64::from(*number)).collect()));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::config::io::{PageCache, Redundancy, Verify};

    fn asked(depths: &str) -> IoOptions {
        IoOptions {
            paths: vec!["/dev/x".into()],
            pattern: "randread".parse().unwrap(),
            block: "8K".parse().unwrap(),
            read_pct: None,
            distribution: None,
            depths: depths.parse().unwrap(),
            jobs: 1,
            rates: None,
            arrival: None,
            volumes: Volumes::One,
            connections: Connections::Addressed,
            size: None,
            durable: model::config::io::Durable::None,
            page_cache: PageCache::Bypassed,
            stripe: None,
            redundancy: Redundancy::None,
            verify: Verify::Nothing,
        }
    }

    fn request(asked: IoOptions) -> IoPlanRequest {
        let (duration, warmup) = (Nanos::seconds(30), Nanos::seconds(5));
        let tags = vec!["disk=p30".parse().unwrap()];
        IoPlanRequest {
            asked,
            duration,
            warmup,
            arrival: Arrival::Poisson,
            round: None,
            seed: 7,
            tags,
            share: Share::WHOLE,
        }
    }

    const FACTS: Facts =
        Facts { capacity_bytes: (1 << 30) + 5_000, volumes: Vec::new(), unit_bytes: 512, available_memory: None };

    #[test]
    fn each_depth_is_a_step_and_the_tail_of_the_volume_is_left_alone() {
        let plan = plan(&request(asked("1,4,16")), &FACTS).unwrap();
        assert_eq!(plan.head.name, "p30_randread_8K_d1-16");
        assert_eq!(plan.region_bytes, 1 << 30);
        let steps: Vec<_> = (0..).zip(&plan.levels).map(|(index, level)| plan.step(index, *level)).collect();
        assert_eq!(steps.iter().map(|step| step.label.as_str()).collect::<Vec<_>>(), ["d1", "d4", "d16"]);
        assert_eq!(steps[2].shape.sessions(), 16);
        assert_eq!(steps[1].parameters(&plan.head.parameters)["DEPTH"], "4");
        assert!(!plan.head.parameters.contains_key("DEPTH"), "it differs from step to step");
        assert_ne!(steps[0].seed, steps[1].seed, "a step that repeats another's places would read a cache");
    }

    #[test]
    fn each_volume_is_loaded_alone_and_with_the_others_forth_and_back() {
        let paths = vec!["/dev/x".into(), "/dev/y".into()];
        let together = IoOptions { paths, volumes: Volumes::Each { rounds: 2 }, ..asked("1,8") };
        let facts = Facts { volumes: vec![0..100_000, 100_000..200_000], ..FACTS };
        let plan = plan(&request(together.clone()), &facts).unwrap();
        let steps: Vec<_> = (0..).zip(&plan.levels).map(|(index, level)| plan.step(index, *level)).collect();
        let labels: Vec<_> = steps.iter().map(|step| step.label.as_str()).collect();
        assert_eq!(labels[..6], ["d1_A_1", "d1_B_1", "d1_A+B_1", "d1_A+B_2", "d1_B_2", "d1_A_2"]);
        assert_eq!((plan.head.name.as_str(), labels.len()), ("p30_randread_8K_d1-8_together", 12));
        assert_eq!(plan.region_bytes, 2 * 98_304);
        let of = |label: &str| steps.iter().find(|step| step.label == label).unwrap();
        let places = |label: &str| -> Vec<_> {
            of(label).shape.classes.iter().map(|class| (class.from_bytes, class.region_bytes, class.slots)).collect()
        };
        assert_eq!(places("d8_B_1"), [(100_000, 98_304, 8)]);
        assert_eq!(places("d8_A+B_2"), [(0, 98_304, 8), (100_000, 98_304, 8)]);
        let both = of("d8_A+B_1");
        assert_eq!((both.load.sessions, both.lanes, of("d8_A_1").lanes), (Some(16), 2, 1));
        let parameters = |label: &str| {
            let parameters = of(label).parameters(&plan.head.parameters);
            (parameters["DEPTH"].clone(), parameters["VOLUMES"].clone())
        };
        assert_eq!(parameters("d8_A+B_2"), ("8".to_owned(), "A+B".to_owned()));
        let large = IoOptions { size: Some(Bytes(100_001)), ..together.clone() };
        assert!(matches!(super::plan(&request(large), &facts), Err(PlanError::VolumeTooSmall { .. })));
        let deep = IoOptions { depths: "4096".parse().unwrap(), ..together };
        let error = super::plan(&request(deep), &facts).unwrap_err();
        assert_eq!(error.to_string(), "all volumes together would have 8192 requests outstanding; 4096 is the most");
    }

    #[test]
    fn each_number_of_connections_is_a_step_at_the_same_depth() {
        let of = |list: &str, rounds| {
            let connections = Connections::Each { list: list.parse().unwrap(), rounds };
            plan(&request(IoOptions { connections, ..asked("64") }), &FACTS).unwrap()
        };
        let once = of("1,2,4", 1);
        let steps = once.steps();
        assert_eq!(once.head.name, "p30_randread_8K_d64_c1-4");
        assert_eq!(steps.iter().map(|step| step.label.as_str()).collect::<Vec<_>>(), ["c1", "c2", "c4"]);
        assert!(steps.iter().all(|step| step.shape.sessions() == 64), "the depth is that of all connections together");
        assert_eq!(
            (
                steps[2].parameters(&once.head.parameters)["CONNECTIONS"].as_str(),
                once.head.parameters["DEPTH"].as_str()
            ),
            ("4", "64")
        );
        let twice = of("1,8", 2);
        let labels: Vec<_> = twice.steps().into_iter().map(|step| step.label).collect();
        assert_eq!(labels, ["c1_1", "c8_1", "c8_2", "c1_2"]);
    }

    #[test]
    fn parts_have_the_threads_of_the_whole_between_them() {
        let of = |depths: &str, jobs, parts| {
            let share = Share { part: 1, parts };
            plan(&IoPlanRequest { share, ..request(IoOptions { jobs, ..asked(depths) }) }, &FACTS)
        };
        let shared = of("32", 2, 4).unwrap();
        let step = shared.step(0, shared.levels[0]);
        assert_eq!((step.lanes, step.load.sessions, step.shape.classes[0].streams), (8, Some(32), 8));
        assert_eq!(shared.head.parameters["JOBS"], "8");
        let whole = plan(&request(IoOptions { jobs: 8, ..asked("32") }), &FACTS).unwrap();
        assert_eq!(whole.step(0, whole.levels[0]).shape, step.shape, "as one process with all threads has it");
        let error = of("16,7", 2, 4).unwrap_err().to_string();
        assert_eq!(error, "d7 has 7 at once, which is less than one for each of 8 threads of 4 parts");
    }

    #[test]
    fn a_rate_has_slots_for_all_that_may_be_outstanding() {
        let mut open = asked("64");
        open.rates = Some("5000".parse().unwrap());
        let plan = plan(&request(open), &FACTS).unwrap();
        let step = plan.step(0, plan.levels[0]);
        assert_eq!((step.label.as_str(), step.load.sessions), ("r5000", Some(64)));
        assert_eq!(step.load.rate_operations_per_s, Some(5_000.0));
        assert_eq!(plan.head.parameters["RATE"], "5000");
    }

    #[test]
    fn what_the_volume_cannot_hold_is_refused() {
        let mut large = asked("1");
        large.size = Some(Bytes::gib(2));
        let error = plan(&request(large), &FACTS).unwrap_err();
        assert_eq!(error.to_string(), "2 GiB are to be used, but there are only 1.0 GiB");
        let mut huge = asked("1");
        huge.block = "64M".parse().unwrap();
        let error = plan(&request(huge), &Facts { capacity_bytes: 4 << 20, ..FACTS }).unwrap_err();
        assert_eq!(error.to_string(), "no request of 64 MiB fits: there are only 4 MiB");
        let mut instant = request(asked("1"));
        instant.duration = Nanos(0);
        assert!(matches!(plan(&instant, &FACTS), Err(PlanError::NoDuration)));
        let sectors = Facts { unit_bytes: 4096, ..FACTS };
        let mut small = asked("1");
        small.block = "512".parse().unwrap();
        let error = plan(&request(small), &sectors).unwrap_err();
        assert_eq!(error.to_string(), "requests of 512 B cannot be sent: this storage takes multiples of 4 KiB");
    }

    #[test]
    fn checked_writes_need_as_many_blocks_as_requests() {
        let mut few = asked("16");
        (few.pattern, few.verify) = ("randwrite".parse().unwrap(), Verify::Blocks);
        few.size = Some(Bytes::kib(120));
        let error = plan(&request(few.clone()), &FACTS).unwrap_err();
        assert!(matches!(error, PlanError::FewerBlocksThanWrites { slots: 16, blocks: 15 }), "{error}");
        few.size = Some(Bytes::kib(128));
        plan(&request(few.clone()), &FACTS).unwrap();
        (few.pattern, few.size) = ("randread".parse().unwrap(), Some(Bytes::kib(8)));
        plan(&request(few), &FACTS).unwrap();
    }

    #[test]
    fn buffers_that_do_not_fit_into_memory_are_refused() {
        let mut many = asked("4096");
        many.block = "16M".parse().unwrap();
        let facts = Facts { available_memory: Some(Bytes::gib(8)), ..FACTS };
        let error = plan(&request(many), &facts).unwrap_err();
        assert!(matches!(error, PlanError::BuffersTooLarge { slots: 4096, .. }), "{error}");
        assert!(open_loop_depth(16 << 20) == 64 && open_loop_depth(8 << 10) == 1024);
    }
}
