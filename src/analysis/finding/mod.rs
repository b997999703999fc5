//! What the analysis has to say; its words and its advice are in one place beside it.

mod words;

use super::{
    BurstFound, CacheTrap, Ceiling, CreditNotSeen, DurableWrites, Knee, LatencyTarget, Limit, Message, OpenLoadLine,
    PageCacheUse, RateKnee, RateRose, Reached, Responds, RunVerdict, Scales, SentLate, ServerFinding, Severity,
    SizeLimits, SteadyState, StepLine, ThreadsFlag, Tiers, Together, Vocabulary, WritesDisagree,
};
use crate::units::Nanos;

/// One thing that the analysis has to say. Shares are 0 to 1; `steps` are labels; `series` is empty where the run has
/// one series only.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant's fields are the figures of its sentence, named with their units")]
pub enum Finding {
    /// Whether the limits that were asked for were kept.
    Verdict(RunVerdict),
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
    WaitedForProcessor { steps: Vec<String>, share: f64, words: Vocabulary, threads: ThreadsFlag },
    /// Reads were served by the buffer cache.
    CacheHeld { steps: Vec<String>, hit_ratio: f64, data_fits: bool },
    /// How much load meets the latency target, as steps show it.
    StepLine(StepLine),
    /// Where latency starts to rise faster than load.
    Knee(Knee),
    /// Which limit stopped the load, or that none did.
    Ceiling(Ceiling),
    /// Whether volumes share a limit.
    Together(Together),
    /// Caps reported by steps of several request sizes.
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
    /// What the counters of database servers say.
    Server(ServerFinding),
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
            Self::Verdict(_)
            | Self::StepLine(_)
            | Self::OpenLoadLine(_)
            | Self::Knee(_)
            | Self::Ceiling(_)
            | Self::SizeLimits(_)
            | Self::Together(_)
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
            Self::Server(reported) => reported.severity(),
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
            Self::RateNotReached { step, .. } => Some(std::slice::from_ref(step)),
            Self::Steady(state) => state.steps(),
            Self::SentLate(reported) => reported.steps(),
            Self::WritesDisagree(reported) => reported.steps(),
            Self::DurableWrites(reported) => reported.steps(),
            Self::CacheTrap(trap) => trap.steps(),
            Self::Server(reported) => reported.steps(),
            Self::Burst(reported) => reported.steps(),
            Self::Rose(reported) => reported.steps(),
            _ => None,
        }
    }

    /// Whether it says how much load meets the latency target.
    pub fn is_load_line(&self) -> bool {
        matches!(self, Self::StepLine(_) | Self::OpenLoadLine(_))
    }

    /// Place among findings of the same kind.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::ClientSaturated { .. } | Self::Server(ServerFinding::ProcessorsExhausted { .. }) => 0,
            Self::Ceiling(Ceiling { limit: Limit::Generator { .. }, .. }) | Self::Together(_) | Self::Verdict(_) => 0,
            Self::RateNotReached { .. } | Self::SentLate(_) => 1,
            Self::Failed { .. } | Self::Interrupted { .. } | Self::Unfinished { .. } => 2,
            Self::OperationErrors { .. } => 3,
            Self::PageCacheInPath | Self::PageCacheUsed(_) | Self::Server(ServerFinding::PageCacheServed { .. }) => 4,
            _ => 5,
        }
    }

    /// Whether it says that the latency target is missed at every load.
    pub fn is_missed_target(&self) -> bool {
        match self {
            Self::StepLine(line) => line.is_missed(),
            Self::OpenLoadLine(line) => line.is_missed(),
            _ => false,
        }
    }
}
