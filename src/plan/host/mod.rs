//! The plan of a load on processors.

mod survey;

use super::steps::seed_of_step;
use super::{PlanError, RunHead};
use load::{Pace, Share, StepPlan};
use model::config::host::{HostProblem, ProcessorChoice, WorkList, ranges};
use model::config::io::DepthList;
use model::config::{ConfigError, Tag};
use model::record::{HostLevel, HostLoad, Intensity, Level, Load, Topology};
use model::units::{Bytes, Nanos};
use model::workload::{HostKind, HostShape};
use targets::embedded::CachedBlocks;
use targets::host::HostOptions;

/// Memory that each thread goes through unless the user says otherwise.
pub const DEFAULT_SIZE: Bytes = Bytes::mib(64);
/// Buffer cache of the logical reads unless the user says otherwise: so large that the blocks' headers alone do not fit into the
/// caches of a core.
pub const DEFAULT_CACHE: Bytes = Bytes::mib(256);
/// Window of a load whose length nobody asked for.
pub const DEFAULT_DURATION: Nanos = Nanos::seconds(30);
/// Load before it.
pub const DEFAULT_WARMUP: Nanos = Nanos::seconds(1);
/// Memory of the program besides.
const OWN_MEMORY: Bytes = Bytes::mib(64);

/// One step, and what its target is opened with.
#[derive(Debug, Clone)]
pub struct HostStep {
    /// The load.
    pub plan: StepPlan<HostShape>,
    /// The processors and their memory.
    pub options: HostOptions,
}

/// What will be done.
#[derive(Debug, Clone)]
pub struct HostPlan {
    /// What the run is before its first step.
    pub head: RunHead,
    /// Processors of any step.
    pub processors: Vec<u32>,
    /// The steps in the order in which they run.
    pub steps: Vec<HostStep>,
}

impl HostPlan {
    /// How long load will run, warm-up included, if nothing ends it before.
    pub fn duration(&self) -> Nanos {
        Nanos(self.steps.iter().map(|step| step.plan.time().0).fold(0, u64::saturating_add))
    }
}

/// Plans a run.
///
/// # Errors
/// If a processor is not there, there is too little memory, or a tag is given twice.
pub fn plan(request: &HostRequest, facts: &HostFacts) -> Result<HostPlan, PlanError> {
    if request.duration == Some(Nanos(0)) {
        return Err(PlanError::NoDuration);
    }
    check_sizes(request)?;
    let processors = chosen(&request.load.processors, facts)?;
    let drafts = match (&request.load.work, &request.load.threads) {
        (None, None) => survey::drafts(request, facts, &processors),
        (work, Some(DepthList(threads))) => {
            sweep(request, facts, work.as_ref().map(|WorkList(kinds)| kinds.as_slice()), threads, &processors)?
        }
        (Some(WorkList(kinds)), None) => at_once(request, kinds, &processors),
    };
    let cache = request.load.cache_bytes.unwrap_or(DEFAULT_CACHE);
    check_memory(&drafts, cache, facts)?;
    let steps: Vec<HostStep> =
        (0..).zip(&drafts).map(|(index, draft)| step(index, draft, cache, request.seed)).collect();
    let levels = steps.iter().filter_map(|step| step.plan.level.as_ref());
    let load = Load::Host(request.load.clone());
    let head = RunHead::new(&request.tags, name(request, &processors), request.seed, load, levels)?;
    Ok(HostPlan { head, processors, steps })
}

/// One load on all of them, or on each in turn.
fn at_once(request: &HostRequest, kinds: &[HostKind], processors: &[u32]) -> Vec<Draft> {
    let label = label_of(kinds);
    let draft = |label: String, processors: Vec<u32>| Draft {
        label,
        kinds: kinds.to_vec(),
        processors,
        size: request.load.size_bytes.unwrap_or(DEFAULT_SIZE),
        memory_of: None,
        wake_on: None,
        warmup: request.warmup.unwrap_or(DEFAULT_WARMUP),
        duration: request.duration.unwrap_or(DEFAULT_DURATION),
    };
    match request.load.processors {
        ProcessorChoice::Each => {
            processors.iter().map(|number| draft(format!("{label}_cpu{number}"), vec![*number])).collect()
        }
        _ => vec![draft(label, processors.to_vec())],
    }
}

/// Every kind of work by each number of threads.
fn sweep(
    request: &HostRequest,
    facts: &HostFacts,
    work: Option<&[HostKind]>,
    threads: &[u32],
    processors: &[u32],
) -> Result<Vec<Draft>, PlanError> {
    let order = spread(processors, facts);
    let kinds = work.unwrap_or(&HostKind::PROCESSOR);
    let mut drafts = Vec::new();
    for kind in kinds {
        for count in threads {
            let chosen = order.get(..*count as usize).ok_or_else(|| too_few(*count, &order))?;
            drafts.extend(at_once(request, &[*kind], chosen));
        }
    }
    Ok(drafts)
}

/// The processors that are meant, those of different cores first.
fn chosen(choice: &ProcessorChoice, facts: &HostFacts) -> Result<Vec<u32>, PlanError> {
    let allowed = &facts.allowed;
    let spread = spread(allowed, facts);
    match choice {
        ProcessorChoice::All => Ok(spread),
        ProcessorChoice::Each => Ok(allowed.clone()),
        ProcessorChoice::Cores => Ok(cores(allowed, facts)),
        ProcessorChoice::Count(count) => {
            spread.get(..*count as usize).map(<[u32]>::to_vec).ok_or_else(|| too_few(*count, allowed))
        }
        ProcessorChoice::List(list) => match list.iter().find(|number| !allowed.contains(number)) {
            None => Ok(list.clone()),
            Some(number) => Err(PlanError::NoSuchProcessor { number: *number, allowed: ranges(allowed) }),
        },
    }
}

fn too_few(asked: u32, there: &[u32]) -> PlanError {
    PlanError::TooFewProcessors { asked, there: there.len() as u32 }
}

/// The same processors, with those first that share a core with none before them.
fn spread(processors: &[u32], facts: &HostFacts) -> Vec<u32> {
    let mut first = cores(processors, facts);
    let rest: Vec<u32> = processors.iter().filter(|number| !first.contains(number)).copied().collect();
    first.extend(rest);
    first
}

/// Refuses sizes that nothing of what is asked for has, or that it could not have: another would be measured in silence.
fn check_sizes(request: &HostRequest) -> Result<(), PlanError> {
    let kinds = match (&request.load.work, &request.load.threads) {
        (Some(WorkList(kinds)), _) => kinds.as_slice(),
        (None, Some(_)) => &HostKind::PROCESSOR,
        // The survey has work of every kind.
        (None, None) => &HostKind::ALL,
    };
    let is_cached = |kind: HostKind| kind == HostKind::LogicalRead;
    let of_memory: (&str, fn(HostKind) -> bool) = ("--size", HostKind::is_of_memory);
    let asked = [
        (request.load.size_bytes, of_memory, Bytes(HostKind::MIN_MEMORY_BYTES)),
        (request.load.cache_bytes, ("--cache", is_cached as fn(HostKind) -> bool), CachedBlocks::MIN),
    ];
    for (size, (flag, has_it), least) in asked {
        let Some(size) = size else { continue };
        if !kinds.iter().any(|kind| has_it(*kind)) {
            return Err(ConfigError::Host(HostProblem::NotFor { flag, kinds: kinds.to_vec() }).into());
        }
        if size < least {
            return Err(ConfigError::Host(HostProblem::TooSmall { flag, size, least }).into());
        }
    }
    Ok(())
}

fn check_memory(drafts: &[Draft], cache: Bytes, facts: &HostFacts) -> Result<(), PlanError> {
    let Some(available) = facts.available_memory else { return Ok(()) };
    for draft in drafts {
        let of_memory = draft.kinds.iter().any(|kind| kind.is_of_memory());
        let threads = draft.processors.len() as u64;
        let streams = if of_memory { 2 * draft.size.0.saturating_mul(threads) } else { 0 };
        let cached = if draft.kinds.contains(&HostKind::LogicalRead) { cache.0 } else { 0 };
        let needed = Bytes(streams.saturating_add(cached).saturating_add(OWN_MEMORY.0));
        if needed > available {
            return Err(PlanError::WorkTooLarge { threads, size: draft.size, needed, available });
        }
    }
    Ok(())
}

fn step(index: u32, draft: &Draft, cache: Bytes, seed: u64) -> HostStep {
    let Draft { label, kinds, processors, size, memory_of, wake_on, warmup, duration } = draft;
    let of_memory = kinds.iter().any(|kind| kind.is_of_memory());
    let cache = kinds.contains(&HostKind::LogicalRead).then_some(cache);
    let level = HostLevel {
        work: WorkList(kinds.clone()),
        processors: processors.clone(),
        size_bytes: of_memory.then_some(*size),
        cache_bytes: cache,
        memory_of: *memory_of,
        wake_on: *wake_on,
    };
    let threads = processors.len() as u32;
    let plan = StepPlan {
        index,
        label: if label.contains("_cpu") { label.clone() } else { format!("{label}_p{threads}") },
        load: Intensity { sessions: Some(threads), ..Intensity::default() },
        level: Some(Level::Host(level)),
        like: None,
        shape: HostShape { kinds: kinds.clone(), size_bytes: size.0 },
        seed: seed_of_step(seed, index),
        work_loop: None,
        warmup: *warmup,
        duration: *duration,
        pace: Pace::Closed,
        lanes: threads,
        share: Share::WHOLE,
    };
    let options = HostOptions {
        processors: processors.clone(),
        size_bytes: size.0,
        cache,
        memory_of: *memory_of,
        wake_on: *wake_on,
    };
    HostStep { plan, options }
}

/// `checksum`, or `mixed` for several.
fn label_of(kinds: &[HostKind]) -> String {
    match kinds {
        [only] => only.name().to_owned(),
        _ => "mixed".to_owned(),
    }
}

fn name(request: &HostRequest, processors: &[u32]) -> [String; 2] {
    let what = match (&request.load.work, &request.load.threads) {
        (None, None) => "host".to_owned(),
        (None, Some(_)) => "processor".to_owned(),
        (Some(WorkList(kinds)), _) if kinds.as_slice() == HostKind::PROCESSOR.as_slice() => "processor".to_owned(),
        (Some(WorkList(kinds)), _) => label_of(kinds),
    };
    let on = match &request.load.threads {
        Some(DepthList(threads)) => {
            let (least, most) = (threads.iter().min().copied(), threads.iter().max().copied());
            format!("p{}-{}", least.unwrap_or(0), most.unwrap_or(0))
        }
        None if request.load.processors == ProcessorChoice::Each => "each".to_owned(),
        None => format!("p{}", processors.len()),
    };
    [what, on]
}

/// What was asked for.
#[derive(Debug, Clone)]
pub struct HostRequest {
    /// The work, and on which processors.
    pub load: HostLoad,
    /// Length of each measured window.
    pub duration: Option<Nanos>,
    /// Load before each window.
    pub warmup: Option<Nanos>,
    /// Seed of every random choice.
    pub seed: u64,
    /// What the user calls the things that vary between runs.
    pub tags: Vec<Tag>,
}

/// What is known about the machine.
#[derive(Debug, Clone, Default)]
pub struct HostFacts {
    /// Processors that this process may run on.
    pub allowed: Vec<u32>,
    /// How they lie, if the kernel says so.
    pub topology: Option<Topology>,
    /// Memory that can be taken, if it is known.
    pub available_memory: Option<Bytes>,
}

/// A step before it is put into its place.
#[derive(Debug, Clone)]
struct Draft {
    /// What distinguishes it besides the number of its processors.
    label: String,
    kinds: Vec<HostKind>,
    processors: Vec<u32>,
    size: Bytes,
    memory_of: Option<u32>,
    wake_on: Option<u32>,
    warmup: Nanos,
    duration: Nanos,
}

/// The first hardware thread of each core.
fn cores(processors: &[u32], facts: &HostFacts) -> Vec<u32> {
    facts.topology.as_ref().map_or_else(|| processors.to_vec(), |topology| topology.one_of_each_core(processors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::{Cache, HostLoad, NumaNode, Processor, Topology};

    fn request(work: Option<&[HostKind]>) -> HostRequest {
        HostRequest {
            load: HostLoad { work: work.map(|kinds| WorkList(kinds.to_vec())), ..HostLoad::default() },
            duration: None,
            warmup: None,
            seed: 7,
            tags: Vec::new(),
        }
    }

    /// The same after a change of its load.
    fn changed(work: Option<&[HostKind]>, change: impl FnOnce(&mut HostLoad)) -> HostRequest {
        let mut request = request(work);
        change(&mut request.load);
        request
    }

    /// Two sockets of two cores with two threads each, as Linux numbers them.
    fn facts() -> HostFacts {
        let processor = |number: u32| Processor { number, core: Some(number % 2), socket: Some(number / 2 % 2) };
        let node = |number: u32, processors: Vec<u32>, distances: Vec<u32>| NumaNode {
            number,
            processors,
            memory_bytes: None,
            distances,
        };
        let topology = Topology {
            processors: (0..8).map(processor).collect(),
            nodes: vec![node(0, vec![0, 1, 4, 5], vec![10, 21]), node(1, vec![2, 3, 6, 7], vec![21, 10])],
            caches: vec![Cache { level: 3, bytes: 32 << 20, shared_by: Some(4) }],
        };
        HostFacts { allowed: (0..8).collect(), topology: Some(topology), available_memory: Some(Bytes::gib(64)) }
    }

    fn labels(plan: &HostPlan) -> Vec<&str> {
        plan.steps.iter().map(|step| step.plan.label.as_str()).collect()
    }

    #[test]
    fn threads_are_put_on_cores_before_they_share_one() {
        let count = |count| changed(Some(&[HostKind::Sort]), |load| load.processors = ProcessorChoice::Count(count));
        let on = |count_| plan(&count(count_), &facts()).map(|plan| plan.processors);
        assert_eq!(on(4).unwrap(), [0, 1, 2, 3]);
        assert_eq!(on(5).unwrap(), [0, 1, 2, 3, 4]);
        assert!(matches!(on(9), Err(PlanError::TooFewProcessors { asked: 9, there: 8 })));
        let cores = changed(Some(&[HostKind::Sort]), |load| load.processors = ProcessorChoice::Cores);
        assert_eq!(plan(&cores, &facts()).unwrap().steps[0].options.processors, [0, 1, 2, 3]);
        let other = changed(Some(&[HostKind::Sort]), |load| load.processors = ProcessorChoice::List(vec![3, 9]));
        assert!(matches!(plan(&other, &facts()), Err(PlanError::NoSuchProcessor { number: 9, .. })));
    }

    #[test]
    fn one_load_is_one_step_and_each_processor_is_one() {
        let kinds = [HostKind::Checksum, HostKind::Sort];
        let planned = plan(&request(Some(&kinds)), &facts()).unwrap();
        assert_eq!((labels(&planned), planned.head.name.as_str()), (vec!["mixed_p8"], "mixed_p8"));
        assert_eq!(planned.head.parameters["WORK"], "checksum,sort");
        assert_eq!(planned.head.parameters["PROCESSORS"], "0-7");
        assert_eq!((planned.steps[0].plan.lanes, planned.duration()), (8, Nanos::seconds(31)));
        let each = changed(Some(&kinds), |load| load.processors = ProcessorChoice::Each);
        let planned = plan(&each, &facts()).unwrap();
        assert_eq!(labels(&planned)[..2], ["mixed_cpu0", "mixed_cpu1"]);
        assert_eq!((planned.steps.len(), planned.steps[5].options.processors.as_slice()), (8, [5].as_slice()));
    }

    #[test]
    fn a_sweep_has_a_step_for_each_number_of_threads_of_each_kind() {
        let sweep = changed(Some(&[HostKind::Sort, HostKind::Checksum]), |load| load.threads = "1,4,8".parse().ok());
        let planned = plan(&sweep, &facts()).unwrap();
        assert_eq!(labels(&planned)[..4], ["sort_p1", "sort_p4", "sort_p8", "checksum_p1"]);
        assert_eq!(planned.steps[1].options.processors, [0, 1, 2, 3]);
        assert_eq!(planned.head.name, "mixed_p1-8");
        let seeds: std::collections::BTreeSet<u64> = planned.steps.iter().map(|step| step.plan.seed).collect();
        assert_eq!(seeds.len(), planned.steps.len());
    }

    #[test]
    fn a_survey_takes_about_a_minute_and_looks_at_everything() {
        let planned = plan(&request(None), &facts()).unwrap();
        let takes = planned.duration().0 / 1_000_000_000;
        assert!((40..=75).contains(&takes), "{takes} s");
        let labels = labels(&planned);
        let distinct: std::collections::BTreeSet<&&str> = labels.iter().collect();
        assert_eq!(distinct.len(), labels.len(), "{labels:?}");
        for label in [
            "checksum_p1",
            "checksum_p4",
            "checksum_p8",
            "memory-latency_16KiB_p1",
            "memory-latency_256MiB_p1",
            "memory-triad_64MiB_p4",
            "memory-latency_node0-1_p1",
            "wake-across_p1",
            "timer_p8",
        ] {
            assert!(labels.contains(&label), "{label} is not in {labels:?}");
        }
        let far = planned.steps.iter().find(|step| step.options.memory_of.is_some()).unwrap();
        assert_eq!(far.options.memory_of, Some(2));
    }

    #[test]
    fn a_survey_of_one_processor_of_which_nothing_is_known_is_one_too() {
        let bare = HostFacts { allowed: vec![5], ..HostFacts::default() };
        let planned = plan(&request(None), &bare).unwrap();
        assert!(planned.steps.iter().all(|step| step.options.processors == [5]));
        assert!(labels(&planned).contains(&"timer_p1"));
    }

    #[test]
    fn more_memory_than_there_is_is_refused() {
        let little = HostFacts { available_memory: Some(Bytes::mib(512)), ..facts() };
        let asked = changed(Some(&[HostKind::MemoryTriad]), |load| load.size_bytes = Some(Bytes::mib(64)));
        assert!(matches!(plan(&asked, &little), Err(PlanError::WorkTooLarge { threads: 8, .. })));
        assert!(plan(&request(None), &little).is_ok(), "a survey takes what there is");
    }

    #[test]
    fn sizes_that_would_not_be_measured_are_refused() {
        let refused = |kinds: &[HostKind], size: Option<Bytes>, cache: Option<Bytes>| {
            let asked = changed(Some(kinds), |load| (load.size_bytes, load.cache_bytes) = (size, cache));
            plan(&asked, &facts()).map(drop).map_err(|error| error.to_string())
        };
        let sort = [HostKind::Sort, HostKind::Checksum];
        assert_eq!(refused(&sort, Some(Bytes::mib(1)), None).unwrap_err(), "`--size` has no meaning for sort,checksum");
        assert_eq!(
            refused(&sort, None, Some(Bytes::mib(1))).unwrap_err(),
            "`--cache` has no meaning for sort,checksum"
        );
        let small = refused(&[HostKind::MemoryCopy], Some(Bytes(1)), None).unwrap_err();
        assert!(small.starts_with("`--size 1 B` is too small"), "{small}");
        assert!(refused(&[HostKind::LogicalRead], None, Some(Bytes(1))).is_err());
        assert_eq!(
            refused(&[HostKind::MemoryCopy, HostKind::LogicalRead], Some(Bytes(4 << 10)), Some(Bytes::mib(1))),
            Ok(())
        );
        let survey =
            changed(None, |load| (load.size_bytes, load.cache_bytes) = (Some(Bytes::mib(64)), Some(Bytes::mib(64))));
        assert!(plan(&survey, &facts()).is_ok());
    }
}
