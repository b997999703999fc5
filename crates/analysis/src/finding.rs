//! The list of all that the analysis can have to say. Each kind is a type beside the rule that finds it, with its figures and its
//! words.

use super::message::one_of;
use super::{
    BurstFound, BytesDisagree, CacheHeld, CacheSizes, CacheTrap, CannotBe, Ceiling, ClientSaturated, CreditNotSeen,
    DeviceSharedWithOthers, DurableWrites, FallbackEngine, FewWaits, FlashCache, FleetFinding, GroupFinding, HeldUp,
    HostFinding, Knee, Limit, NetworkFinding, NfsFinding, NotCompleted, NotEnded, NotLike, NotSteady, OpenLoadLine,
    OperationErrors, PageCacheUse, RateKnee, RateNotReached, RateRose, ReplayIncomplete, Responds, Rule, RunVerdict,
    Scales, SentLate, ServerFinding, Severity, SizeLimits, StackFinding, Stalled, Stalls, SteadyState, StepLine, Tiers,
    Together, TopWait, WaitedForProcessor, WaitedForWriters,
};

one_of! {
    /// One thing that the analysis has to say. Serialized, it is its evidence: the figures that its rule stands on.
    #[expect(missing_docs, reason = "each variant is documented at its type")]
    Finding {
    Verdict(RunVerdict),
    ClientSaturated(ClientSaturated),
    RateNotReached(RateNotReached),
    NotCompleted(NotCompleted),
    OperationErrors(OperationErrors),
    CannotBe(CannotBe),
    NotEnded(NotEnded),
    PageCacheUsed(PageCacheUse),
    SentLate(SentLate),
    BytesDisagree(BytesDisagree),
    DurableWrites(DurableWrites),
    NotSteady(NotSteady),
    HeldUp(HeldUp),
    Stalled(Stalled),
    WaitedForProcessor(WaitedForProcessor),
    CacheHeld(CacheHeld),
    StepLine(StepLine),
    Knee(Knee),
    Ceiling(Ceiling),
    Together(Together),
    SizeLimits(SizeLimits),
    RateKnee(RateKnee),
    Scales(Scales),
    Responds(Responds),
    WaitedForWriters(WaitedForWriters),
    FewWaits(FewWaits),
    Burst(BurstFound),
    Rose(RateRose),
    CreditNotSeen(CreditNotSeen),
    DeviceSharedWithOthers(DeviceSharedWithOthers),
    FallbackEngine(FallbackEngine),
    TopWait(TopWait),
    OpenLoadLine(OpenLoadLine),
    Steady(SteadyState),
    Tiers(Tiers),
    CacheTrap(CacheTrap),
    CacheSizes(CacheSizes),
    FlashCache(FlashCache),
    Server(ServerFinding),
    Host(HostFinding),
    Network(NetworkFinding),
    Fleet(FleetFinding),
    Group(GroupFinding),
    Nfs(NfsFinding),
    NotLike(NotLike),
    ReplayIncomplete(ReplayIncomplete),
    Stack(StackFinding),
    Stalls(Stalls),
    }
}

impl Finding {
    /// The rule that made it.
    pub fn rule(&self) -> Rule {
        self.message().rule()
    }

    /// How the finding bears on the rest of the report.
    pub fn severity(&self) -> Severity {
        self.message().severity()
    }

    /// The finding as one or two sentences.
    pub fn sentence(&self) -> String {
        self.message().sentence()
    }

    /// What the user can do about it.
    pub fn advice(&self) -> Option<String> {
        self.message().advice()
    }

    /// The steps that a doubt is about; `None` if it is about the whole run, or if it is no doubt.
    pub fn steps(&self) -> Option<&[String]> {
        self.message().steps()
    }

    /// Whether it says how much load meets the latency target.
    pub fn is_load_line(&self) -> bool {
        matches!(self, Self::StepLine(_) | Self::OpenLoadLine(_))
    }

    /// Place among findings of the same kind.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::ClientSaturated(_) | Self::Server(ServerFinding::ProcessorsExhausted { .. }) => 0,
            Self::Ceiling(Ceiling { limit: Limit::Generator { .. }, .. }) | Self::Together(_) | Self::Verdict(_) => 0,
            Self::Nfs(NfsFinding::Connections(_)) => 0,
            Self::RateNotReached(_) | Self::ReplayIncomplete(_) | Self::SentLate(_) | Self::Stalls(_) => 1,
            // Beside the cause, of which it may be a part.
            Self::Server(ServerFinding::LogCheckpoints { .. }) => 0,
            Self::NotCompleted(_) => 2,
            Self::OperationErrors(_) | Self::NotEnded(_) => 3,
            Self::PageCacheUsed(_) | Self::Server(ServerFinding::PageCacheServed { .. }) => 4,
            _ => 5,
        }
    }
}
