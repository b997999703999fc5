//! What a load on processors shows: what held it back, whether it kept its speed, and what the machine is.

mod held;
mod machine;

pub use held::{Competition, QuotaHeld, Stolen};
pub use machine::{FarMemory, MemorySaturated, SharedCores, SlowProcessor};

use super::measured;
use crate::message::one_of;
use crate::{Figures, Finding, Message, Rule, rate, steadiness, two_levels};
use model::record::{Histogram, HostLevel, HostStats, Interval, Level, Run, Step, Workload};
use model::units::{Bytes, Nanos, percent, short_count};

/// Everything to be said: first what makes figures smaller than the machine's, then what the machine is.
pub(super) fn find(run: &Run) -> Vec<HostFinding> {
    let mut findings = Vec::new();
    findings.extend(QuotaHeld::of(run).map(HostFinding::Quota));
    findings.extend(Stolen::of(run).map(HostFinding::Stolen));
    findings.extend(Competition::of(run).map(HostFinding::Competition));
    findings.extend(measured(run).filter_map(SpeedFell::of).map(HostFinding::Fell));
    findings.extend(SlowProcessor::of(run).map(HostFinding::Slow));
    findings.extend(SharedCores::of(run).map(HostFinding::SharedCores));
    findings.extend(MemorySaturated::of(run).map(HostFinding::Memory));
    findings.extend(FarMemory::of(run).map(HostFinding::Far));
    findings.extend(LateTimers::of(run).map(HostFinding::Late));
    findings
}

/// A sleep that ends later than this is reported: as long again as was asked for.
const LATE_NS: u64 = 1_000_000;
/// Share of sleeps from which it is no single accident.
const OFTEN: f64 = 0.001;
/// Fewest sleeps that say anything.
const SLEEPS: u64 = 200;

/// Sleeps of a millisecond ended more than another millisecond late.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LateTimers {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// The largest share of sleeps, 0 to 1.
    pub share: f64,
    /// The longest lateness.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

impl LateTimers {
    fn of(run: &Run) -> Option<Self> {
        let late: Vec<(&Step, f64, u64)> =
            measured(run).filter_map(|step| late(step).map(|(share, longest)| (step, share, longest))).collect();
        let share = late.iter().map(|(_, share, _)| *share).reduce(f64::max)?;
        let longest = late.iter().map(|(.., longest)| *longest).max()?;
        Some(Self { steps: late.iter().map(|(step, ..)| step.label.clone()).collect(), share, longest: Nanos(longest) })
    }
}

fn late(step: &Step) -> Option<(f64, u64)> {
    let sleeps = step.operations.iter().find(|kind| kind.kind == "timer")?;
    let count = sleeps.service.count();
    let late = count.checked_sub(sleeps.service.below_ns(LATE_NS).1)?;
    let share = late as f64 / count.max(1) as f64;
    (count >= SLEEPS && share >= OFTEN).then_some((share, sleeps.service.max_ns()?))
}

impl Message for LateTimers {
    fn rule(&self) -> Rule {
        Rule::HostTimers
    }

    fn sentence(&self) -> String {
        format!(
            "{} % of the sleeps of 1 ms ended more than another millisecond late, at most {}.",
            percent(self.share),
            self.longest
        )
    }

    fn advice(&self) -> Option<String> {
        Some(
            "Log writers and heartbeats of clusters feel this: look at steal, at power saving, and at who \
             else runs here."
                .to_owned(),
        )
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

one_of! {
    /// One thing that a load on processors shows.
    #[expect(missing_docs, reason = "each variant is documented at its type")]
    HostFinding {
        Quota(QuotaHeld),
        Stolen(Stolen),
        Competition(Competition),
        Fell(SpeedFell),
        Slow(SlowProcessor),
        SharedCores(SharedCores),
        Memory(MemorySaturated),
        Far(FarMemory),
        Late(LateTimers),
    }
}

impl HostFinding {
    /// In few words, as they stand in the opening sentence; nothing for what is a property of the machine.
    fn phrase(&self) -> Option<String> {
        match self {
            Self::Quota(it) => Some(it.phrase()),
            Self::Stolen(it) => Some(it.phrase()),
            Self::Competition(it) => Some(it.phrase()),
            Self::Fell(it) => Some(it.phrase()),
            Self::Slow(it) => Some(it.phrase()),
            Self::SharedCores(_) | Self::Memory(_) | Self::Far(_) | Self::Late(_) => None,
        }
    }
}

/// Blocks that are checked and compared.
const BLOCK_BYTES: f64 = 8_192.0;

/// Whether `run` put load on processors, by this program. Other programs' results have no work of ours.
pub fn is_host_load(run: &Run) -> bool {
    run.workload() == Workload::Host && run.imported.is_none()
}

/// What a kind of work is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkUnit {
    /// Logical reads of blocks.
    LogicalReads,
    /// Bytes of blocks of 8 KiB; the record counts blocks.
    BlockBytes,
    /// Keys that are sorted.
    Keys,
    /// Rows that look for a partner.
    Rows,
    /// Bytes read and written.
    Bytes,
    /// Loads that wait for the one before.
    Loads,
    /// Round trips between two threads.
    RoundTrips,
    /// Sleeps, of which the lateness is what matters.
    Sleeps,
}

impl WorkUnit {
    /// That of a kind of work, by its name in the record.
    pub fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "logical-read" => Self::LogicalReads,
            "checksum" | "compare" => Self::BlockBytes,
            "sort" => Self::Keys,
            "hash-join" => Self::Rows,
            "memory-copy" | "memory-triad" => Self::Bytes,
            "memory-latency" => Self::Loads,
            "wake" => Self::RoundTrips,
            "timer" => Self::Sleeps,
            _ => return None,
        })
    }

    /// Whether it keeps a processor busy without a pause.
    pub fn is_busy(self) -> bool {
        !matches!(self, Self::RoundTrips | Self::Sleeps)
    }

    /// A rate in words: `31M logical reads/s` or `24.1 GB/s`.
    pub fn words(self, per_s: f64) -> String {
        match self {
            Self::LogicalReads => format!("{} logical reads/s", short_count(per_s)),
            Self::BlockBytes => format!("{:.1} GB/s", per_s * BLOCK_BYTES / 1e9),
            Self::Keys => format!("{} keys/s", short_count(per_s)),
            Self::Rows => format!("{} rows/s", short_count(per_s)),
            Self::Bytes => format!("{:.1} GB/s", per_s / 1e9),
            Self::Loads => format!("{} loads/s", short_count(per_s)),
            Self::RoundTrips => format!("{} round trips/s", short_count(per_s)),
            Self::Sleeps => format!("{} sleeps/s", short_count(per_s)),
        }
    }
}

/// What one kind of work came to in one step.
#[derive(Debug, Clone)]
pub struct Speed<'a> {
    /// The step.
    pub step: &'a Step,
    /// Its name.
    pub kind: &'a str,
    /// What it is counted in.
    pub unit: WorkUnit,
    /// Processors at once.
    pub threads: u32,
    /// Memory that each of them went through, where that was chosen.
    pub size: Option<Bytes>,
    /// Units per second of all of them, where the step did nothing else.
    pub per_s: Option<f64>,
    /// Units per second of one of them while it was at this work.
    pub per_processor_s: f64,
    /// Times of slices; of round trips, of lateness.
    pub times: &'a Histogram,
}

impl<'a> Speed<'a> {
    /// Of each kind in a step.
    pub fn of_step(step: &'a Step) -> Vec<Self> {
        let size = host_level(step).and_then(|level| level.size_bytes);
        let is_alone = step.operations.len() == 1;
        let of = |operations: &'a model::record::OperationStats| {
            let unit = WorkUnit::of(&operations.kind)?;
            let busy_ns = operations.service.total_ns().filter(|ns| *ns > 0)?;
            let units = operations.block_touches;
            Some(Self {
                step,
                kind: &operations.kind,
                unit,
                threads: step.load.sessions?,
                size,
                per_s: crate::rate(Some(units), step.window.duration_ns).filter(|_| is_alone),
                per_processor_s: units as f64 * 1e9 / busy_ns as f64,
                times: &operations.service,
            })
        };
        step.operations.iter().filter_map(of).collect()
    }

    /// Of each kind in each step with figures.
    pub fn of_run(run: &'a Run) -> Vec<Self> {
        measured(run).flat_map(Self::of_step).collect()
    }

    /// How long one load takes.
    pub fn load_time(&self) -> Option<f64> {
        (self.unit == WorkUnit::Loads && self.per_processor_s > 0.0).then(|| 1e9 / self.per_processor_s)
    }

    /// Memory of all threads together.
    fn whole_size(&self) -> Option<u64> {
        self.size.map(|size| size.0.saturating_mul(u64::from(self.threads)))
    }
}

/// The work of a step on processors.
fn host_level(step: &Step) -> Option<&HostLevel> {
    match &step.level {
        Some(Level::Host(level)) => Some(level),
        _ => None,
    }
}

/// Whether a step's memory is near to the processors that go through it.
fn is_near(step: &Step) -> bool {
    host_level(step).is_none_or(|level| level.memory_of.is_none())
}

/// Whether the threads that are woken are on another processor.
fn is_across(step: &Step) -> bool {
    host_level(step).is_some_and(|level| level.wake_on.is_some())
}

/// A time in few digits.
fn time_words(ns: f64) -> String {
    if ns < 1_000.0 { format!("{ns:.1} ns") } else { Nanos(ns as u64).to_string() }
}

/// The answer of a run on processors, in a sentence that may be repeated alone.
#[derive(Debug, Clone, PartialEq)]
pub struct HostAnswer {
    parts: Vec<String>,
}

impl HostAnswer {
    /// Of `run`, from the findings on it; `None` if it is no load on processors or nothing was measured.
    pub fn of(run: &Run, findings: &[Finding]) -> Option<Self> {
        if !is_host_load(run) {
            return None;
        }
        let speeds = Speed::of_run(run);
        let mut parts = match measured(run).count() {
            0 => return None,
            1 => of_one(&speeds),
            _ => of_many(run, &speeds),
        };
        let is_told = findings.iter().any(|finding| matches!(finding, Finding::Host(HostFinding::Stolen(_))));
        parts.extend(steal(run).filter(|_| !is_told));
        parts.extend(findings.iter().filter_map(|finding| match finding {
            Finding::Host(found) => HostFinding::phrase(found),
            _ => None,
        }));
        Some(Self { parts })
    }

    /// The sentence.
    pub fn sentence(&self) -> String {
        format!("{}.", self.parts.join("; "))
    }
}

fn processors(count: u32) -> String {
    if count == 1 { "One processor".to_owned() } else { format!("{count} processors") }
}

/// One load: what each kind of work came to.
fn of_one(speeds: &[Speed<'_>]) -> Vec<String> {
    let Some(first) = speeds.first() else { return vec!["Nothing was finished".to_owned()] };
    let who = processors(first.threads);
    let lasted = Nanos(first.step.window.duration_ns);
    let words: Vec<String> = speeds.iter().map(|speed| each(speed)).collect();
    vec![format!("{who}: {}, for {lasted}", words.join(", "))]
}

/// A speed in the middle of a sentence.
fn each(speed: &Speed<'_>) -> String {
    let of_one = if speed.threads > 1 { " each" } else { "" };
    match speed.unit {
        WorkUnit::Loads => {
            speed.load_time().map_or_else(String::new, |ns| format!("a load in {}{of_one}", time_words(ns)))
        }
        WorkUnit::RoundTrips => {
            let across = if is_across(speed.step) { " across processors" } else { "" };
            format!("a wake-up and its answer{across} in {}", quantile(speed, 0.5))
        }
        WorkUnit::Sleeps => format!("sleeps of 1 ms {} late (p99)", quantile(speed, 0.99)),
        unit => {
            let done = match speed.kind {
                "checksum" => " of checksums",
                "compare" => " compared",
                "sort" => " sorted",
                "hash-join" => " joined",
                "memory-copy" => " copied",
                "memory-triad" => " of triads",
                _ => "",
            };
            format!("{}{done}{of_one}", unit.words(speed.per_processor_s))
        }
    }
}

fn quantile(speed: &Speed<'_>, quantile: f64) -> String {
    speed.times.quantile_ns(quantile).map_or_else(|| "an unknown time".to_owned(), |ns| Nanos(ns).to_string())
}

/// Several steps: one processor, all of them, memory, wake-ups and timers.
fn of_many(run: &Run, speeds: &[Speed<'_>]) -> Vec<String> {
    let mut parts = Vec::new();
    let is_work = |speed: &&Speed<'_>| speed.unit.is_busy() && speed.size.is_none();
    let of_work: Vec<&Speed<'_>> = speeds.iter().filter(is_work).collect();
    let mut kinds: Vec<&str> = Vec::new();
    of_work.iter().for_each(|speed| {
        if !kinds.contains(&speed.kind) {
            kinds.push(speed.kind);
        }
    });
    let least = of_work.iter().map(|speed| speed.threads).min().unwrap_or(0);
    let at = |kind: &str, threads: u32| of_work.iter().find(|speed| speed.kind == kind && speed.threads == threads);
    let alone: Vec<String> = kinds.iter().filter_map(|kind| Some(each(at(kind, least)?))).collect();
    if !alone.is_empty() {
        parts.push(
            format!("{} does {}", processors(least), alone.join(", ")).replace("processors does", "processors do"),
        );
    }
    let most = of_work.iter().map(|speed| speed.threads).max().unwrap_or(0);
    let times = |kind: &&str| Some(at(kind, most)?.per_s? / at(kind, least)?.per_s?);
    let scaling: Vec<f64> = kinds.iter().filter(|_| most > least).filter_map(times).collect();
    if let Some((low, high)) = range(&scaling) {
        let words = if format!("{low:.1}") == format!("{high:.1}") {
            format!("{low:.1}")
        } else {
            format!("{low:.1} to {high:.1}")
        };
        parts.push(format!("all {most} do {words} times that"));
    }
    parts.extend(of_memory(speeds));
    let waiting = |kind: &str| speeds.iter().find(|speed| speed.kind == kind);
    parts.extend(waiting("wake").map(|speed| each(speed)));
    parts.extend(waiting("timer").map(|speed| each(speed)));
    if parts.is_empty() {
        let most = measured(run).filter_map(|step| Figures(step).operations_per_s()).reduce(f64::max);
        parts.push(format!("At most {:.0} slices/s", most.unwrap_or(0.0)));
    }
    parts
}

fn of_memory(speeds: &[Speed<'_>]) -> Option<String> {
    let near = |speed: &&Speed<'_>| is_near(speed.step);
    let largest = |unit: WorkUnit| {
        let of_unit = speeds.iter().filter(near).filter(move |speed| speed.unit == unit && speed.threads == 1);
        of_unit.max_by_key(|speed| speed.size)
    };
    let triads = || speeds.iter().filter(near).filter(|speed| speed.unit == WorkUnit::Bytes);
    let one = largest(WorkUnit::Bytes).and_then(|speed| speed.per_s);
    let most_threads = triads().map(|speed| speed.threads).max()?;
    let all = triads().filter(|speed| speed.threads == most_threads).max_by_key(|speed| speed.size)?.per_s?;
    let latency = largest(WorkUnit::Loads).and_then(Speed::load_time);
    let bandwidth = match one {
        Some(one) if most_threads > 1 => {
            format!(
                "memory moves {} with one and {} with {most_threads}",
                WorkUnit::Bytes.words(one),
                WorkUnit::Bytes.words(all)
            )
        }
        _ => format!("memory moves {} with {most_threads}", WorkUnit::Bytes.words(all)),
    };
    let latency = latency.map_or_else(String::new, |ns| format!(", a load from it takes {}", time_words(ns)));
    Some(format!("{bandwidth}{latency}"))
}

fn range(values: &[f64]) -> Option<(f64, f64)> {
    Some((values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?))
}

/// How much the hypervisor took at most; nothing where the kernel does not say.
fn steal(run: &Run) -> Option<String> {
    let share = measured(run).filter_map(held::stolen).reduce(f64::max)?;
    Some(format!("steal at most {} %", percent(share)))
}

// Whether the speed fell while the same work went on, when, and why.

/// A fall of less than this share does not matter.
const FELL: f64 = 0.05;
/// Parts that a load is cut into to see a slow fall, and the fewest seconds of each.
const PARTS: usize = 5;
const SECONDS_PER_PART: usize = 6;
/// By how much a share of time has to grow to be the cause of a fall: a good part of the smallest fall that is reported.
const GREW: f64 = 0.02;
/// What explains less than this part of a fall is not its cause.
const EXPLAINS: f64 = 0.5;
/// By how much a clock has to fall.
const CLOCK_FELL: f64 = 0.03;
/// From this temperature on processors slow themselves, or are about to: limits are from 95 to 105 degrees.
const HOT_CELSIUS: f64 = 90.0;

/// The speed fell.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SpeedFell {
    /// Label of the step.
    pub steps: Vec<String>,
    /// Slices per second before.
    pub before_per_s: f64,
    /// Slices per second after.
    pub after_per_s: f64,
    /// Measured time until it fell; of a slow fall until the last part began.
    #[serde(rename = "after_ns")]
    pub after: Nanos,
    /// Whether it fell bit by bit rather than at once.
    pub is_slow: bool,
    /// Why, where that was seen.
    pub cause: FallCause,
}

/// Why a speed fell.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FallCause {
    /// The kernel counted that processors were slowed for their heat, or they were as hot as that when their clock fell.
    Heat {
        /// The highest temperature, where it is known.
        celsius: Option<f64>,
    },
    /// The hypervisor took more: the credits of a burstable machine are used up, or a neighbour woke up.
    Steal {
        /// Share of time that it took after the fall, 0 to 1.
        share: f64,
    },
    /// A limit on processor time held the load back.
    Quota {
        /// Share of time for which it did after the fall, 0 to 1.
        share: f64,
    },
    /// Other processes came.
    Others {
        /// Share of time that they took after the fall, 0 to 1.
        share: f64,
    },
    /// The clock fell, and nothing says why: many processors lower it when all of them are busy for long.
    Clock {
        /// Before the fall.
        from_hz: u64,
        /// After it.
        to_hz: u64,
    },
    /// Nothing that is counted explains it.
    Unknown,
}

impl SpeedFell {
    fn of(step: &Step) -> Option<Self> {
        let seconds = steadiness::seconds_inside(step);
        let per_s: Vec<f64> =
            seconds.iter().map(|second| rate(second.counters.operations, second.duration_ns)).collect::<Option<_>>()?;
        let (at, before_per_s, after_per_s, is_slow) = at_once(&per_s).or_else(|| slowly(&per_s))?;
        let (before, after) = seconds.split_at(at);
        let elapsed = before.iter().map(|second| second.duration_ns).sum();
        // A slow fall is from the first part to the last.
        let first = if is_slow { &before[..seconds.len() / PARTS] } else { before };
        let cause = cause(step, 1.0 - after_per_s / before_per_s, (first, after));
        let steps = vec![step.label.clone()];
        Some(Self { steps, before_per_s, after_per_s, after: Nanos(elapsed), is_slow, cause })
    }

    fn share(&self) -> f64 {
        1.0 - self.after_per_s / self.before_per_s
    }

    fn phrase(&self) -> String {
        let why = match self.cause {
            FallCause::Heat { .. } => ": it was hot",
            FallCause::Steal { .. } => ": the hypervisor took the rest",
            FallCause::Quota { .. } => ": a limit on processor time held it back",
            FallCause::Others { .. } => ": other processes came",
            FallCause::Clock { .. } => ": its clock fell",
            FallCause::Unknown => "",
        };
        format!("the speed fell by {} % after {}{why}", percent(self.share()), self.after)
    }
}

fn at_once(per_s: &[f64]) -> Option<(usize, f64, f64, bool)> {
    let levels = two_levels(per_s).filter(|levels| levels.after < levels.before * (1.0 - FELL))?;
    Some((levels.at, levels.before, levels.after, false))
}

/// Every part is slower than the one before it.
fn slowly(per_s: &[f64]) -> Option<(usize, f64, f64, bool)> {
    if per_s.len() < PARTS * SECONDS_PER_PART {
        return None;
    }
    let begin = |part: usize| part * per_s.len() / PARTS;
    let median = |part: usize| {
        let mut values = per_s[begin(part)..begin(part + 1)].to_vec();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let medians: [f64; PARTS] = std::array::from_fn(median);
    let falls = medians.windows(2).all(|pair| pair[1] < pair[0]);
    let (first, last) = (medians[0], medians[PARTS - 1]);
    (falls && last < first * (1.0 - FELL)).then(|| (begin(PARTS - 1), first, last, true))
}

/// The cause of a fall by the share `fell`.
fn cause(step: &Step, fell: f64, (before, after): (&[&Interval], &[&Interval])) -> FallCause {
    let sum = |seconds: &[&Interval]| {
        let mut hosts = seconds.iter().filter_map(|second| second.host.as_ref());
        let mut sum: HostStats = hosts.next()?.clone();
        hosts.for_each(|host| sum.add(host));
        Some(sum)
    };
    let Some((before, after)) = sum(before).zip(sum(after)) else { return FallCause::Unknown };
    let processors = f64::from(step.load.sessions.unwrap_or(1).max(1));
    let of_time = |host: &HostStats, ns: u64| ns as f64 / (host.elapsed_ns.max(1) as f64 * processors);
    let clocks = before.frequency_hz.zip(after.frequency_hz);
    let clock_fell = clocks.is_some_and(|(from, to)| (to as f64) < from as f64 * (1.0 - CLOCK_FELL));
    let heated = |host: &HostStats| Some(host.thermal_throttles? as f64 / host.elapsed_ns.max(1) as f64);
    let is_slowed = heated(&before).zip(heated(&after)).is_some_and(|(before, after)| after > before);
    let is_hot = is_slowed || after.temperature_celsius.is_some_and(|celsius| celsius >= HOT_CELSIUS);
    let heat = FallCause::Heat { celsius: after.temperature_celsius };
    // A fall is a share of what was done before, with the processor time that there was.
    let (had, has) = (of_time(&before, before.loaded.own_ns), of_time(&after, after.loaded.own_ns));
    let of_fall = |more: f64| more / had.clamp(GREW, 1.0);
    let grown = |of: fn(&HostStats) -> Option<u64>| {
        let share = |host: &HostStats| of(host).map(|ns| of_time(host, ns));
        let (earlier, later) = (share(&before)?, share(&after)?);
        (later - earlier >= GREW).then_some((of_fall(later - earlier), later))
    };
    let explains = |(more, _): &(f64, FallCause)| *more >= EXPLAINS * fell;
    // Others in the group were held back as well: this load at most for what it lost.
    let quota = grown(|host| Some(host.throttled?.throttled_ns)).map(|(more, share)| {
        (more.min(of_fall(had - has)), FallCause::Quota { share: share.min((1.0 - has).max(0.0)) })
    });
    // The kernel samples who is busy: where a limit stops and starts the load in step with that, it may be far off.
    if let Some((_, quota)) = quota.filter(explains) {
        return quota;
    }
    let others = grown(|host| Some(host.loaded.busy_ns?.saturating_sub(host.loaded.own_ns)));
    let clock = clocks.filter(|_| clock_fell).map(|(from_hz, to_hz)| {
        let cause = if is_hot { heat } else { FallCause::Clock { from_hz, to_hz } };
        (1.0 - to_hz as f64 / from_hz.max(1) as f64, cause)
    });
    let found = [
        grown(|host| host.loaded.steal_ns).map(|(more, share)| (more, FallCause::Steal { share })),
        others.map(|(more, share)| (more, FallCause::Others { share })),
        clock,
    ];
    let most = found.into_iter().flatten().filter(explains).max_by(|one, other| one.0.total_cmp(&other.0));
    match most {
        Some((_, cause)) => cause,
        // The kernel counts that processors were slowed; a clock that is read now and then need not show it.
        None if is_slowed => heat,
        None => FallCause::Unknown,
    }
}

impl Message for SpeedFell {
    fn rule(&self) -> Rule {
        Rule::HostSpeedFell
    }

    fn sentence(&self) -> String {
        let how = if self.is_slow { "bit by bit, most of all" } else { "at once" };
        let why = match self.cause {
            FallCause::Heat { celsius: Some(celsius) } => {
                format!("; processors slowed themselves, at {celsius:.0} degrees")
            }
            FallCause::Heat { celsius: None } => "; processors slowed themselves because they were hot".to_owned(),
            FallCause::Steal { share } => {
                format!("; from then on the hypervisor took {} % of the time", percent(share))
            }
            FallCause::Quota { share } => {
                format!("; from then on a limit on processor time held it back for {} % of the time", percent(share))
            }
            FallCause::Others { share } => {
                format!("; from then on other processes took {} % of the time", percent(share))
            }
            FallCause::Clock { from_hz, to_hz } => {
                format!("; the clock fell from {:.2} to {:.2} GHz", from_hz as f64 / 1e9, to_hz as f64 / 1e9)
            }
            FallCause::Unknown => "; no single thing that the kernel shows explains it".to_owned(),
        };
        format!(
            "The speed of {} fell by {} % after {}, {how}: from {:.0} to {:.0} slices/s{why}.",
            self.steps.join(", "),
            percent(self.share()),
            self.after,
            self.before_per_s,
            self.after_per_s
        )
    }

    fn advice(&self) -> Option<String> {
        Some(match self.cause {
            FallCause::Heat { .. } => "Size by the speed after the fall; look at cooling and at the power limit.".to_owned(),
            FallCause::Steal { .. } => {
                "Size by the speed after the fall. A burstable machine type that has used its credits up behaves so; so does a \
                 host that is shared with others."
                    .to_owned()
            }
            FallCause::Quota { .. } => {
                "See which control group has that limit (`plimsoll doctor`), and whether credits of it run out.".to_owned()
            }
            FallCause::Others { .. } => "See which with `top`, and repeat without them.".to_owned(),
            FallCause::Clock { .. } | FallCause::Unknown => {
                "Size by the speed after the fall, and repeat for longer: `--duration 1h`.".to_owned()
            }
        })
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

#[cfg(test)]
mod tests;
