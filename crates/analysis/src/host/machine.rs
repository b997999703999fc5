//! What the machine is: processors that differ or share a core, memory that is saturated or far.

use super::held::{held_back, of_others, stolen};
use super::{Speed, WorkUnit, is_near, time_words};
use crate::{Message, Rule, measured};
use model::record::{Run, Step, Topology};
use model::units::percent;

/// A processor is slow that does less than this share of what the others do. Turbo clocks of single cores differ by less.
const SLOW: f64 = 0.93;
/// Share of a processor's time that others may take before it is they who make it slow.
const DISTURBED: f64 = 0.02;
/// Slices of each processor from which their numbers are compared.
const SLICES: u64 = 200;
/// Bandwidth that is within this share of the most is as much.
const SATURATED: f64 = 0.95;
/// Memory of another node is far if a load from it takes so many times as long.
const FAR: f64 = 1.1;

/// One processor is slower than the others.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SlowProcessor {
    /// Its number.
    pub number: u32,
    /// What it does of what the others do, 0 to 1.
    pub share: f64,
    /// Labels of the steps.
    pub steps: Vec<String>,
}

impl SlowProcessor {
    pub(super) fn of(run: &Run) -> Option<Self> {
        Self::at_once(run).or_else(|| Self::in_turn(run))
    }

    /// Among those that were loaded at once.
    fn at_once(run: &Run) -> Option<Self> {
        let undisturbed = |step: &&Step| {
            held_back(step).is_none()
                && of_others(step).is_some_and(|share| share < DISTURBED)
                && stolen(step).is_none_or(|share| share < DISTURBED)
        };
        let slow = measured(run).filter(undisturbed).filter_map(|step| {
            let processors = &step.host.as_ref()?.processors;
            let done: Vec<(u32, f64)> =
                processors.iter().map(|processor| (processor.number, processor.times.operations as f64)).collect();
            if processors.iter().any(|processor| processor.times.operations < SLICES) {
                return None;
            }
            slowest(&done).map(|(number, share)| Self { number, share, steps: vec![step.label.clone()] })
        });
        slow.min_by(|a, b| a.share.total_cmp(&b.share))
    }

    /// Among those that had the same work one after the other.
    fn in_turn(run: &Run) -> Option<Self> {
        let alone: Vec<&Step> = measured(run).filter(|step| step.label.contains("_cpu")).collect();
        if alone.iter().any(|step| of_others(step).is_none_or(|share| share >= DISTURBED)) {
            return None;
        }
        let done: Vec<(u32, f64)> = alone
            .iter()
            .filter_map(|step| {
                let number = step.host.as_ref()?.processors.first()?.number;
                Some((number, crate::rate(step.counters.operations, step.window.duration_ns)?))
            })
            .collect();
        let (number, share) = slowest(&done)?;
        Some(Self { number, share, steps: alone.iter().map(|step| step.label.clone()).collect() })
    }

    pub(super) fn phrase(&self) -> String {
        format!("processor {} does {} % of what the others do", self.number, percent(self.share))
    }
}

/// The slowest against the median, or of two against the other.
fn slowest(done: &[(u32, f64)]) -> Option<(u32, f64)> {
    let mut sorted = done.to_vec();
    sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
    let usual = sorted.get(sorted.len() / 2)?.1;
    let (number, least) = *sorted.first()?;
    (usual > 0.0 && least < SLOW * usual).then(|| (number, least / usual))
}

impl Message for SlowProcessor {
    fn rule(&self) -> Rule {
        Rule::HostSlowProcessor
    }

    fn sentence(&self) -> String {
        format!("Processor {} does only {} % of what the others do.", self.number, percent(self.share))
    }

    fn advice(&self) -> Option<String> {
        Some(
            "It may share its core with a neighbour, be a core of another kind, or serve interrupts: look at \
             `/proc/interrupts`."
                .to_owned(),
        )
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

/// Processors are hardware threads that share cores.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SharedCores {
    /// Processors of the machine.
    pub processors: u32,
    /// Its cores.
    pub cores: u32,
    /// What all processors did of what one on each core did, by kind of work, where both were measured.
    pub gains: Vec<(String, f64)>,
}

impl SharedCores {
    pub(super) fn of(run: &Run) -> Option<Self> {
        let topology: &Topology = run.environment.topology.as_ref()?;
        let processors = u32::try_from(topology.processors.len()).ok()?;
        let cores = topology.cores().filter(|cores| *cores < processors)?;
        let speeds = Speed::of_run(run);
        let at = |kind: &str, threads: u32| {
            let found = speeds.iter().find(|speed| speed.kind == kind && speed.threads == threads);
            found.filter(|speed| speed.size.is_none() && speed.unit.is_busy())?.per_s
        };
        let mut gains: Vec<(String, f64)> = Vec::new();
        for speed in &speeds {
            let gain = at(speed.kind, processors).zip(at(speed.kind, cores)).map(|(all, cores)| all / cores);
            if let Some(gain) = gain.filter(|_| gains.iter().all(|(kind, _)| kind != speed.kind)) {
                gains.push((speed.kind.to_owned(), gain));
            }
        }
        Some(Self { processors, cores, gains })
    }
}

impl Message for SharedCores {
    fn rule(&self) -> Rule {
        Rule::HostSharedCores
    }

    fn sentence(&self) -> String {
        let gains: Vec<String> = self.gains.iter().map(|(kind, gain)| format!("{gain:.2} times in {kind}")).collect();
        let gained = match gains.is_empty() {
            true => String::new(),
            false => format!(" All of them did what one on each core does, {}.", gains.join(", ")),
        };
        format!("{} processors are {} cores: some share one as hardware threads.{gained}", self.processors, self.cores)
    }

    fn advice(&self) -> Option<String> {
        Some("Licences and sizing by cores count half as many as the machine shows.".to_owned())
            .filter(|_| self.processors == 2 * self.cores)
    }
}

/// More processors move no more memory.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct MemorySaturated {
    /// Processors from which on there is no more.
    pub threads: u32,
    /// Bytes per second there.
    pub per_s: f64,
    /// The most processors that were tried.
    pub most_threads: u32,
}

impl MemorySaturated {
    pub(super) fn of(run: &Run) -> Option<Self> {
        let speeds = Speed::of_run(run);
        let far_enough = behind_caches(run, &speeds);
        let mut points: Vec<(u32, f64)> = speeds
            .iter()
            .filter(|speed| speed.kind == "memory-triad" && is_near(speed.step))
            .filter(|speed| speed.whole_size().is_some_and(|bytes| bytes >= far_enough))
            .filter(|speed| held_back(speed.step).is_none())
            .filter(|speed| of_others(speed.step).is_none_or(|share| share < DISTURBED))
            .filter_map(|speed| Some((speed.threads, speed.per_s?)))
            .collect();
        points.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        points.dedup_by_key(|(threads, _)| *threads);
        let most = points.iter().map(|(_, per_s)| *per_s).reduce(f64::max)?;
        let (most_threads, _) = *points.last()?;
        let (threads, per_s) = *points.iter().find(|(_, per_s)| *per_s >= SATURATED * most)?;
        (threads < most_threads).then_some(Self { threads, per_s, most_threads })
    }
}

/// Memory that no cache holds: what the largest measurement of one thread went through, if it is larger than every cache.
fn behind_caches(run: &Run, speeds: &[Speed<'_>]) -> u64 {
    let caches = run.environment.topology.as_ref().map_or(&[][..], |topology| &topology.caches);
    let largest = caches.iter().map(|cache| cache.bytes).max().unwrap_or(0);
    let tried = speeds.iter().filter_map(Speed::whole_size).max().unwrap_or(0);
    (2 * largest).min(tried)
}

impl Message for MemorySaturated {
    fn rule(&self) -> Rule {
        Rule::HostMemory
    }

    fn sentence(&self) -> String {
        let who = if self.threads == 1 {
            "One processor moves".to_owned()
        } else {
            format!("{} processors move", self.threads)
        };
        format!(
            "{who} {} through memory, and up to {} of them no more than that: it is saturated.",
            WorkUnit::Bytes.words(self.per_s),
            self.most_threads
        )
    }

    fn advice(&self) -> Option<String> {
        Some("Scans, sorts and joins of more sessions than that wait for memory, not for processors.".to_owned())
    }
}

/// Memory of another node.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FarMemory {
    /// Nanoseconds of a load from the processor's own node.
    pub near_ns: f64,
    /// The same from another one.
    pub far_ns: f64,
}

impl FarMemory {
    pub(super) fn of(run: &Run) -> Option<Self> {
        let speeds = Speed::of_run(run);
        let far = speeds.iter().find(|speed| speed.load_time().is_some() && !is_near(speed.step))?;
        let is_same = |speed: &&Speed<'_>| speed.size == far.size && is_near(speed.step);
        let near_ns = speeds.iter().filter(is_same).find_map(Speed::load_time)?;
        let far_ns = far.load_time()?;
        (far_ns >= FAR * near_ns).then_some(Self { near_ns, far_ns })
    }
}

impl Message for FarMemory {
    fn rule(&self) -> Rule {
        Rule::HostFarMemory
    }

    fn sentence(&self) -> String {
        format!(
            "A load from the memory of another NUMA node takes {} rather than {}, {:.2} times as long.",
            time_words(self.far_ns),
            time_words(self.near_ns),
            self.far_ns / self.near_ns
        )
    }

    fn advice(&self) -> Option<String> {
        Some("Let a database know its nodes, or keep an instance on one: `numactl --cpunodebind --membind`.".to_owned())
    }
}
