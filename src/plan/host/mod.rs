//! The plan of a load on processors.

mod draft;
mod survey;

use draft::{Draft, cores};
pub use draft::{HostFacts, HostRequest};

use super::steps::seed_of_step;
use super::{PlanError, RunHead};
use crate::load::{Pace, Share, StepPlan};
use model::config::ConfigError;
use model::config::host::{HostProblem, ProcessorChoice, WorkList, ranges};
use model::config::io::DepthList;
use model::record::{HostLevel, Intensity, Level, Load};
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
        let of_step = |step: &HostStep| step.plan.warmup.0.saturating_add(step.plan.duration.0);
        Nanos(self.steps.iter().map(of_step).fold(0, u64::saturating_add))
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

#[cfg(test)]
mod tests;
