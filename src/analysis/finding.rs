//! What the analysis has to say, with its words and its advice in one place.

use super::{
    BurstFound, CacheTrap, Ceiling, CreditNotSeen, DurableWrites, Failing, LatencyTarget, Limit, OpenLoadLine,
    PageCacheUse, Point, RateKnee, RateRose, Reached, Responds, Scales, SentLate, SizeLimits, SteadyState, Subject,
    Tiers, Told, Vocabulary, WritesDisagree,
};
use crate::units::{Bytes, Nanos, group_thousands, percent};

/// How a finding bears on the rest of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The figures do not mean what they seem to mean.
    Doubt,
    /// How much load is carried, and what limits it.
    Answer,
    /// Worth knowing.
    Note,
}

/// One thing that the analysis has to say. Shares are 0 to 1; `steps` are labels; `series` is empty where the run has
/// one series only.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant's fields are the figures of its sentence, named with their units")]
pub enum Finding {
    /// The load generator had no processor time left.
    ClientSaturated { steps: Vec<String>, share: f64, whole_machine: bool },
    /// An open loop fell behind its schedule.
    RateNotReached { step: String, asked_per_s: f64, achieved_per_s: f64, backlog: Option<u64>, words: Vocabulary },
    /// An error ended the run.
    Failed { error: String, steps: usize },
    /// The user ended the run.
    Interrupted { steps: usize, last_is_partial: bool },
    /// The run goes on, or was killed.
    Unfinished { steps: usize },
    /// Operations ended in errors.
    OperationErrors { steps: Vec<String>, errors: u64 },
    /// Data files are not read directly.
    PageCacheInPath,
    /// The page cache is in the path because it was asked for.
    PageCacheUsed(PageCacheUse),
    /// Requests were sent later than they were due.
    SentLate(SentLate),
    /// Our count of bytes written and the kernel's differ.
    WritesDisagree(WritesDisagree),
    /// Whether durable writes could be seen to be durable.
    DurableWrites(DurableWrites),
    /// Our count of bytes read and the kernel's differ.
    ReadsDisagree { steps: Vec<String>, share: f64, engine_bytes: u64, kernel_bytes: u64 },
    /// Throughput changed within the window.
    NotSteady { steps: Vec<String>, range: f64, drift: f64 },
    /// No operation finished for a while.
    Stalled { steps: Vec<String>, longest: Nanos },
    /// Sessions had nothing to do inside the window.
    WaitedForProcessor { steps: Vec<String>, share: f64, words: Vocabulary },
    /// Reads were served by the buffer cache.
    CacheHeld { steps: Vec<String>, hit_ratio: f64, data_fits: bool },
    /// The largest load that meets the latency target, with a larger one that does not.
    LoadLine { series: String, target: LatencyTarget, passing: Point, failing: Failing },
    /// The largest load meets the target although smaller ones do not.
    TargetMetOnlyAbove { series: String, target: LatencyTarget, passing: Point, below: Vec<String> },
    /// Even the largest load meets the target.
    AllStepsMeetTarget { series: String, target: LatencyTarget, most: Point, steps: usize },
    /// Even the least load does not meet the target.
    NoStepMeetsTarget { series: String, target: LatencyTarget, least: Point },
    /// Nothing of what the target judges happened.
    TargetNotJudged { series: String, target: LatencyTarget },
    /// Where latency starts to rise faster than load.
    Knee {
        series: String,
        bound: f64,
        most_operations_per_s: f64,
        cycle: Nanos,
        least_sessions: u32,
        measured_step: String,
        measured_sessions: u32,
        words: Vocabulary,
    },
    /// Which limit stopped the load, or that none did.
    Ceiling(Ceiling),
    /// Caps told by steps of several request sizes.
    SizeLimits(SizeLimits),
    /// The rate of an open loop at which requests wait as long as they are served.
    RateKnee(RateKnee),
    /// How a closed loop's rate grows with sessions.
    Scales(Scales),
    /// How an open loop's response grows with the rate.
    Responds(Responds),
    /// Sessions waited for the database writers.
    FreeBufferWaits { steps: Vec<String>, share: f64 },
    /// Sessions waited for a checkpoint to free a log file.
    CheckpointIncomplete { steps: Vec<String>, share: f64 },
    /// Sessions waited for commits more than for anything else.
    CommitsDominate { steps: Vec<String>, share: f64 },
    /// Too few waits for the target's quantile.
    FewWaits { steps: Vec<String>, target: LatencyTarget, wanted: u64 },
    /// The load ran on two levels, the second one lower.
    Burst(BurstFound),
    /// The load ran on two levels, the second one higher.
    Rose(RateRose),
    /// The windows are too short to see burst credits end.
    CreditNotSeen(CreditNotSeen),
    /// Somebody else reads from the device.
    DeviceSharedWithOthers { steps: Vec<String>, device: String, share: f64 },
    /// Reads are sent by plain system calls.
    FallbackEngine { engine: String },
    /// Where sessions waited most.
    TopWait { step: String, event: String, share: f64, mean: Nanos },
    /// Between which rates the load line of open loops lies.
    OpenLoadLine(OpenLoadLine),
    /// Whether a long load settled.
    Steady(SteadyState),
    /// Reads of one block fall into groups by their time.
    Tiers(Tiers),
    /// The data set is so small that a cache can answer for the storage.
    CacheTrap(CacheTrap),
}

/// Hit ratio from which a run is about the cache rather than about storage.
const MOSTLY_CACHED: f64 = 0.9;

impl Finding {
    /// How the finding bears on the rest of the report.
    pub fn severity(&self) -> Severity {
        match self {
            Self::ClientSaturated { .. }
            | Self::RateNotReached { .. }
            | Self::Failed { .. }
            | Self::Interrupted { .. }
            | Self::Unfinished { .. }
            | Self::OperationErrors { .. }
            | Self::PageCacheInPath
            | Self::PageCacheUsed(_)
            | Self::WritesDisagree(_)
            | Self::ReadsDisagree { .. }
            | Self::NotSteady { .. }
            | Self::Stalled { .. }
            | Self::Burst(_)
            | Self::Rose(_) => Severity::Doubt,
            Self::CacheHeld { hit_ratio, .. } if *hit_ratio >= MOSTLY_CACHED => Severity::Doubt,
            Self::SentLate(late) if late.is_doubt() => Severity::Doubt,
            Self::DurableWrites(writes) if writes.is_doubt() => Severity::Doubt,
            Self::Ceiling(Ceiling { limit: Limit::Generator { .. }, .. }) => Severity::Doubt,
            Self::LoadLine { .. }
            | Self::TargetMetOnlyAbove { .. }
            | Self::AllStepsMeetTarget { .. }
            | Self::NoStepMeetsTarget { .. }
            | Self::TargetNotJudged { .. }
            | Self::OpenLoadLine(_)
            | Self::Knee { .. }
            | Self::Ceiling(_)
            | Self::SizeLimits(_)
            | Self::RateKnee(_) => Severity::Answer,
            Self::CacheHeld { .. }
            | Self::SentLate(_)
            | Self::DurableWrites(_)
            | Self::FreeBufferWaits { .. }
            | Self::CheckpointIncomplete { .. }
            | Self::CommitsDominate { .. }
            | Self::FewWaits { .. }
            | Self::CreditNotSeen(_)
            | Self::Scales(_)
            | Self::Responds(_)
            | Self::DeviceSharedWithOthers { .. }
            | Self::FallbackEngine { .. }
            | Self::WaitedForProcessor { .. }
            | Self::TopWait { .. } => Severity::Note,
            Self::Steady(state) if matches!(state.reached, Reached::From { .. }) => Severity::Answer,
            Self::Steady(_) => Severity::Doubt,
            Self::CacheTrap(trap) if trap.is_doubt() => Severity::Doubt,
            Self::Tiers(_) | Self::CacheTrap(_) => Severity::Note,
        }
    }

    /// The steps that a doubt is about; `None` if it is about the whole run, or if it is no doubt.
    pub(super) fn steps(&self) -> Option<&[String]> {
        match self {
            Self::ClientSaturated { steps, .. }
            | Self::OperationErrors { steps, .. }
            | Self::ReadsDisagree { steps, .. }
            | Self::NotSteady { steps, .. }
            | Self::Stalled { steps, .. }
            | Self::WaitedForProcessor { steps, .. }
            | Self::CacheHeld { steps, .. } => Some(steps),
            Self::Steady(state) => state.steps(),
            Self::SentLate(told) => told.steps(),
            Self::WritesDisagree(told) => told.steps(),
            Self::DurableWrites(told) => told.steps(),
            Self::CacheTrap(trap) => trap.steps(),
            Self::Burst(told) => told.steps(),
            Self::Rose(told) => told.steps(),
            _ => None,
        }
    }

    /// Place among findings of the same kind.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::ClientSaturated { .. } => 0,
            Self::Ceiling(Ceiling { limit: Limit::Generator { .. }, .. }) => 0,
            Self::RateNotReached { .. } | Self::SentLate(_) => 1,
            Self::Failed { .. } | Self::Interrupted { .. } | Self::Unfinished { .. } => 2,
            Self::OperationErrors { .. } => 3,
            Self::PageCacheInPath | Self::PageCacheUsed(_) => 4,
            _ => 5,
        }
    }

    /// Whether it says that the latency target is missed at every load.
    pub fn is_missed_target(&self) -> bool {
        match self {
            Self::NoStepMeetsTarget { .. } => true,
            Self::OpenLoadLine(line) => line.is_missed(),
            _ => false,
        }
    }

    /// The finding as one or two sentences.
    pub fn sentence(&self) -> String {
        match self {
            Self::ClientSaturated { steps, share, whole_machine } => {
                let who = if *whole_machine { "This process used" } else { "The busiest thread used" };
                let of = if *whole_machine { "of all processors" } else { "of its processor" };
                format!(
                    "{who} {} % {of} in {}: these figures show the limit of the load generator, not of the target.",
                    percent(*share),
                    list(steps)
                )
            }
            Self::RateNotReached { step, asked_per_s, achieved_per_s, backlog, words } => {
                let queue = backlog.map_or(String::new(), |operations| {
                    format!(", with {} {} due but not sent at the end", group_thousands(operations as f64), words.work())
                });
                format!(
                    "The rate asked for was not reached in {step}: {} of {}{queue}.",
                    group_thousands(*achieved_per_s),
                    words.rate(*asked_per_s)
                )
            }
            Self::Failed { error, steps } => format!("The run failed with {}: {error}", begun(*steps)),
            Self::Interrupted { steps: 0, .. } => "The run was ended early, before anything was measured.".to_owned(),
            Self::Interrupted { steps, last_is_partial } => format!(
                "The run was ended early with {}{}.",
                begun(*steps),
                if *last_is_partial { "; the last is partial" } else { "" }
            ),
            Self::Unfinished { steps } => {
                format!("The run has not finished, or its process was killed, with {}.", begun(*steps))
            }
            Self::OperationErrors { steps, errors } => {
                format!("{} operations ended in errors in {}.", group_thousands(*errors as f64), list(steps))
            }
            Self::PageCacheInPath => {
                "Files are not read directly (direct_io is off): the operating system's page cache may have served reads."
                    .to_owned()
            }
            Self::PageCacheUsed(told) => told.sentence(),
            Self::SentLate(told) => told.sentence(),
            Self::WritesDisagree(told) => told.sentence(),
            Self::DurableWrites(told) => told.sentence(),
            Self::ReadsDisagree { steps, share, engine_bytes, kernel_bytes } => format!(
                "Bytes read by our count and by the kernel's differ by {} % in {}: {} against {}.",
                percent(*share),
                list(steps),
                Bytes(*engine_bytes),
                Bytes(*kernel_bytes)
            ),
            Self::NotSteady { steps, range, drift } => format!(
                "Throughput was not steady in {}: it ranged over {} % of its mean (20 % is allowed) and drifted by {}{} % within the \
                 window (10 % is allowed).",
                list(steps),
                percent(*range),
                if *drift > 0.0 { "+" } else { "" },
                percent(*drift)
            ),
            Self::Stalled { steps, longest } => {
                format!("No operation finished for {longest} in {}, although load was on.", list(steps))
            }
            Self::WaitedForProcessor { steps, share, words } => format!(
                "{} for {} % of the window in {} before a thread came to them.",
                match words {
                    Vocabulary::Sessions => "Sessions stood ready",
                    Vocabulary::Requests => "Request slots stood empty in the load generator",
                },
                percent(*share),
                list(steps)
            ),
            Self::CacheHeld { steps, hit_ratio, data_fits } => {
                let why = if *data_fits { " The data set fits into the cache." } else { "" };
                format!(
                    "{} % of logical reads never reached storage in {}.{why}",
                    percent(*hit_ratio),
                    list(steps)
                )
            }
            Self::LoadLine { series, target, passing, failing } => {
                let below = if failing.below.is_empty() {
                    String::new()
                } else {
                    format!(" The curve is not monotonic: {} below the line missed it.", list(&failing.below))
                };
                format!(
                    "Load line{}: {} ({}), {}; {} is {} there and {} at {}, against a limit of {}.{below}",
                    of_series(series),
                    passing.load,
                    passing.step,
                    passing.rates(),
                    target.what(),
                    passing.value,
                    failing.above.value,
                    failing.above.load,
                    target.limit
                )
            }
            Self::TargetMetOnlyAbove { series, target, passing, below } => format!(
                "Load line{}: not clear. {} ({}) meets {target} with {}, but {} with less load did not.",
                of_series(series),
                passing.load,
                passing.step,
                passing.value,
                list(below)
            ),
            Self::AllStepsMeetTarget { series, target, most, steps } => {
                let which = if *steps == 1 { "The step" } else { "Every step" };
                format!(
                    "Load line{}: not reached. {which} meets {target}; at {} ({}) it is {}, {}.",
                    of_series(series),
                    most.load,
                    most.step,
                    most.value,
                    most.rates()
                )
            }
            Self::NoStepMeetsTarget { series, target, least } => format!(
                "Load line{}: below the least load. No step meets {target}; at {} ({}) it is {} already, {}.",
                of_series(series),
                least.load,
                least.step,
                least.value,
                least.rates()
            ),
            Self::TargetNotJudged { series, target } => {
                let why = match &target.subject {
                    Some(Subject::Event(event)) => format!("Nobody waited for `{event}`"),
                    _ => "No such operation finished".to_owned(),
                };
                format!("Load line{}: unknown. {why}, so {target} says nothing.", of_series(series))
            }
            Self::Knee {
                series,
                bound,
                most_operations_per_s,
                cycle,
                least_sessions,
                measured_step,
                measured_sessions,
                words,
            } => format!(
                "Knee{}: about {bound:.1} {}. That is the operational bound, the highest rate of {} times {cycle} for {} at {}; \
                 throughput over latency was best at {} ({measured_step}).",
                of_series(series),
                words.slots(),
                words.rate(*most_operations_per_s),
                match words {
                    Vocabulary::Sessions => "an operation",
                    Vocabulary::Requests => "a request",
                },
                words.closed_load(*least_sessions),
                words.closed_load(*measured_sessions)
            ),
            Self::Ceiling(told) => told.sentence(),
            Self::SizeLimits(told) => told.sentence(),
            Self::RateKnee(told) => told.sentence(),
            Self::Scales(told) => told.sentence(),
            Self::Responds(told) => told.sentence(),
            Self::FreeBufferWaits { steps, share } => format!(
                "Sessions waited for a clean buffer for {} % of their waiting time in {}: the database writers were the limit, not reads.",
                percent(*share),
                list(steps)
            ),
            Self::CheckpointIncomplete { steps, share } => format!(
                "Sessions waited for a checkpoint to free a log file for {} % of their waiting time in {}: the redo logs are too \
                 small for this rate of change, or writers too slow.",
                percent(*share),
                list(steps)
            ),
            Self::CommitsDominate { steps, share } => format!(
                "Sessions waited for commits more than for anything else in {}: `log file sync` is {} % of their waiting time.",
                list(steps),
                percent(*share)
            ),
            Self::FewWaits { steps, target, wanted } => format!(
                "{} has fewer than the {} {} that {} needs to mean something.",
                list(steps),
                group_thousands(*wanted as f64),
                target.subject.as_ref().map_or("waits", Subject::things),
                target.quantile_name()
            ),
            Self::Burst(told) => told.sentence(),
            Self::Rose(told) => told.sentence(),
            Self::CreditNotSeen(told) => told.sentence(),
            Self::DeviceSharedWithOthers { steps, device, share } => format!(
                "Of what `{device}` read in {}, {} % was not for this run: somebody else uses it, or it reads ahead.",
                list(steps),
                percent(*share)
            ),
            Self::FallbackEngine { engine } => {
                format!("Reads were sent by `{engine}`, not io_uring: they cost more processor time and fewer can be outstanding.")
            }
            Self::TopWait { step, event, share, mean } => format!(
                "Sessions of {step} waited most for `{event}`: {} % of their waiting time, {mean} each.",
                percent(*share)
            ),
            Self::OpenLoadLine(line) => line.sentence(),
            Self::Steady(state) => state.sentence(),
            Self::Tiers(tiers) => tiers.sentence(),
            Self::CacheTrap(trap) => trap.sentence(),
        }
    }

    /// What the user can do about it.
    pub fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::ClientSaturated { .. } => {
                "Judge storage by steps with less load, use fewer, larger operations, or give the machine more processors."
            }
            Self::RateNotReached { words: Vocabulary::Sessions, .. } => {
                "Ask for a lower rate, or more sessions if latency was low; response times include the queue."
            }
            Self::RateNotReached { words: Vocabulary::Requests, .. } => {
                "Ask for a lower rate, or a larger --depth if service times were short; response times include the queue."
            }
            Self::Failed { .. } => "Mend what the error names and run again; the steps before it stand.",
            Self::Interrupted { steps: 0, .. } => return None,
            Self::Interrupted { .. } => "Compare the complete steps only.",
            Self::Unfinished { .. } => "If it is not running any more, take it as cut short.",
            Self::OperationErrors { .. } => "Find out what failed before using these figures.",
            Self::PageCacheInPath => {
                "Put the target on a file system that takes O_DIRECT, such as xfs or ext4, and allow it."
            }
            Self::PageCacheUsed(told) => return told.advice(),
            Self::SentLate(told) => return told.advice(),
            Self::WritesDisagree(told) => return told.advice(),
            Self::DurableWrites(told) => return told.advice(),
            Self::ReadsDisagree { .. } => {
                "If the kernel counted less, its page cache served reads; check direct I/O, or network file systems, which it does not count."
            }
            Self::NotSteady { .. } => "Run longer, or with more warm-up; look at the intervals for when it changed.",
            Self::Stalled { .. } => {
                "Look at the intervals and the kernel log for that time: storage or a noisy neighbour stopped answering."
            }
            Self::WaitedForProcessor { words: Vocabulary::Requests, .. } => {
                "Storage saw fewer requests at once than asked for. Where processors are idle, more threads (`--jobs`) help."
            }
            Self::WaitedForProcessor { .. } => {
                "They waited for processor time, as sessions of a busy database do. Where processors are idle, more threads (`--lanes`) help."
            }
            Self::CacheHeld { .. } => "To measure storage, use a larger SCALE or a smaller cache.",
            Self::LoadLine { .. } => "A sweep with steps between the two narrows it down.",
            Self::TargetMetOnlyAbove { .. } => "Repeat the sweep: something disturbed the smaller loads.",
            Self::AllStepsMeetTarget { most, .. } if most.words == Vocabulary::Requests => {
                "Raise the load: more requests outstanding or a higher rate."
            }
            Self::AllStepsMeetTarget { .. } => "Raise the load: more threads, more schemas or a higher rate.",
            Self::NoStepMeetsTarget { .. } => "Start with less load, or set a target that this storage can meet.",
            Self::TargetNotJudged { .. } => {
                "Make sure that reads reach storage, or judge something else, such as `response:p99=5ms`."
            }
            Self::Ceiling(told) => return told.advice(),
            Self::SizeLimits(told) => return told.advice(),
            Self::RateKnee(told) => return told.advice(),
            Self::Scales(told) => return told.advice(),
            Self::Responds(told) => return told.advice(),
            Self::FreeBufferWaits { .. } => "Lower UPDATE_PCT to judge reads; a larger cache only postpones it.",
            Self::CheckpointIncomplete { .. } => "Use larger redo logs, as on the database being modelled.",
            Self::CommitsDominate { .. } => {
                "Put redo on storage with faster durable writes; judge it by `log file parallel write`."
            }
            Self::FewWaits { .. } => "Run longer.",
            Self::Burst(told) => return told.advice(),
            Self::Rose(told) => return told.advice(),
            Self::CreditNotSeen(told) => return told.advice(),
            Self::DeviceSharedWithOthers { .. } => "Repeat when the device is quiet.",
            Self::FallbackEngine { .. } => {
                "Allow io_uring (kernel.io_uring_disabled, or the container's seccomp profile)."
            }
            Self::OpenLoadLine(line) => return line.advice(),
            Self::Steady(state) => return state.advice(),
            Self::Tiers(tiers) => return tiers.advice(),
            Self::CacheTrap(trap) => return trap.advice(),
            Self::Knee { .. } | Self::TopWait { .. } => return None,
        };
        Some(advice.to_owned())
    }
}

impl Point {
    fn rates(&self) -> String {
        if self.words == Vocabulary::Requests {
            let requests = self.operations_per_s.map_or("rate unknown".to_owned(), |rate| self.words.rate(rate));
            let bytes = self.megabytes_per_s.map_or(String::new(), |rate| format!(" ({} MB/s)", group_thousands(rate)));
            return requests + &bytes;
        }
        let reads = self.reads_per_s.map(|rate| format!("{} physical reads/s", group_thousands(rate)));
        let operations = self.operations_per_s.map(|rate| format!("{} operations/s", group_thousands(rate)));
        match (reads, operations) {
            (Some(reads), Some(operations)) => format!("{reads}, {operations}"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => "rates unknown".to_owned(),
        }
    }
}

pub(super) fn of_series(series: &str) -> String {
    if series.is_empty() { String::new() } else { format!(" of {series}") }
}

fn begun(steps: usize) -> String {
    match steps {
        0 => "no step recorded".to_owned(),
        1 => "1 step recorded".to_owned(),
        n => format!("{n} steps recorded"),
    }
}

/// Labels in a sentence; many are told by their number.
pub(super) fn list(labels: &[String]) -> String {
    match labels {
        [] => "no step".to_owned(),
        [one] => one.clone(),
        [first @ .., last] if labels.len() <= 4 => format!("{} and {last}", first.join(", ")),
        [first, .., last] => format!("{} steps ({first} to {last})", labels.len()),
    }
}
