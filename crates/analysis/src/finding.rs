//! The list of all that the analysis can have to say. Each kind is a type beside the rule that finds it, with its figures and its
//! words.

use std::fmt::{self, Write as _};

use super::{
    BurstFound, BytesDisagree, CacheHeld, CacheSizes, CacheTrap, Ceiling, ClientSaturated, CreditNotSeen,
    DeviceSharedWithOthers, DurableWrites, FallbackEngine, FewWaits, FlashCache, FleetFinding, GroupFinding,
    HostFinding, Knee, Limit, Message, NetworkFinding, NfsFinding, NotCompleted, NotLike, NotSteady, OpenLoadLine,
    OperationErrors, PageCacheUse, RateKnee, RateNotReached, RateRose, Reached, Responds, RunVerdict, Scales, SentLate,
    ServerFinding, Severity, SizeLimits, Stalled, SteadyState, StepLine, Tiers, Together, TopWait, WaitedForProcessor,
    WaitedForWriters,
};

/// One thing that the analysis has to say.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant is documented at its type")]
pub enum Finding {
    Verdict(RunVerdict),
    ClientSaturated(ClientSaturated),
    RateNotReached(RateNotReached),
    NotCompleted(NotCompleted),
    OperationErrors(OperationErrors),
    PageCacheUsed(PageCacheUse),
    SentLate(SentLate),
    BytesDisagree(BytesDisagree),
    DurableWrites(DurableWrites),
    NotSteady(NotSteady),
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
}

impl Finding {
    /// How the finding bears on the rest of the report.
    pub fn severity(&self) -> Severity {
        match self {
            Self::ClientSaturated(_)
            | Self::RateNotReached(_)
            | Self::NotCompleted(_)
            | Self::OperationErrors(_)
            | Self::PageCacheUsed(_)
            | Self::BytesDisagree(_)
            | Self::NotSteady(_)
            | Self::Stalled(_)
            | Self::Burst(_)
            | Self::Rose(_) => Severity::Doubt,
            Self::CacheHeld(held) if held.is_doubt() => Severity::Doubt,
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
            Self::CacheHeld(_)
            | Self::SentLate(_)
            | Self::DurableWrites(_)
            | Self::WaitedForWriters(_)
            | Self::FewWaits(_)
            | Self::CreditNotSeen(_)
            | Self::Scales(_)
            | Self::Responds(_)
            | Self::DeviceSharedWithOthers(_)
            | Self::FallbackEngine(_)
            | Self::WaitedForProcessor(_)
            | Self::TopWait(_)
            | Self::NotLike(_) => Severity::Note,
            Self::Steady(state) if matches!(state.reached, Reached::From { .. }) => Severity::Answer,
            Self::Steady(_) => Severity::Doubt,
            Self::CacheTrap(trap) if trap.is_doubt() => Severity::Doubt,
            Self::FlashCache(flash) if flash.is_doubt() => Severity::Doubt,
            Self::Tiers(_) | Self::CacheTrap(_) | Self::CacheSizes(_) | Self::FlashCache(_) => Severity::Note,
            Self::Server(reported) => reported.severity(),
            Self::Host(found) => found.severity(),
            Self::Network(found) => found.severity(),
            Self::Fleet(found) => found.severity(),
            Self::Group(found) => found.severity(),
            Self::Nfs(found) => found.severity(),
        }
    }

    fn message(&self) -> &dyn Message {
        match self {
            Self::Verdict(it) => it,
            Self::ClientSaturated(it) => it,
            Self::RateNotReached(it) => it,
            Self::NotCompleted(it) => it,
            Self::OperationErrors(it) => it,
            Self::PageCacheUsed(it) => it,
            Self::SentLate(it) => it,
            Self::BytesDisagree(it) => it,
            Self::DurableWrites(it) => it,
            Self::NotSteady(it) => it,
            Self::Stalled(it) => it,
            Self::WaitedForProcessor(it) => it,
            Self::CacheHeld(it) => it,
            Self::StepLine(it) => it,
            Self::Knee(it) => it,
            Self::Ceiling(it) => it,
            Self::Together(it) => it,
            Self::SizeLimits(it) => it,
            Self::RateKnee(it) => it,
            Self::Scales(it) => it,
            Self::Responds(it) => it,
            Self::WaitedForWriters(it) => it,
            Self::FewWaits(it) => it,
            Self::Burst(it) => it,
            Self::Rose(it) => it,
            Self::CreditNotSeen(it) => it,
            Self::DeviceSharedWithOthers(it) => it,
            Self::FallbackEngine(it) => it,
            Self::TopWait(it) => it,
            Self::OpenLoadLine(it) => it,
            Self::Steady(it) => it,
            Self::Tiers(it) => it,
            Self::CacheTrap(it) => it,
            Self::CacheSizes(it) => it,
            Self::FlashCache(it) => it,
            Self::Server(it) => it,
            Self::Host(it) => it,
            Self::Network(it) => it,
            Self::Fleet(it) => it,
            Self::Group(it) => it,
            Self::Nfs(it) => it,
            Self::NotLike(it) => it,
        }
    }

    /// Its rule in one word, such as `not_steady` or `server_page_cache_served`: that of the variant, below a room of its own with the
    /// room's before it.
    pub fn kind(&self) -> String {
        let mut variants = Variants::default();
        // It refuses all after the names.
        let _ = write!(variants, "{self:?}");
        let deep = matches!(self, Self::Server(_) | Self::Host(_) | Self::Network(_) | Self::Group(_) | Self::Nfs(_));
        let mut word = String::new();
        for name in variants.0.split(|c: char| !c.is_ascii_alphanumeric()).take(if deep { 2 } else { 1 }) {
            for (at, letter) in name.char_indices() {
                if letter.is_ascii_uppercase() && (at > 0 || !word.is_empty()) {
                    word.push('_');
                }
                word.push(letter.to_ascii_lowercase());
            }
        }
        word
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
            Self::RateNotReached(_) | Self::SentLate(_) => 1,
            Self::NotCompleted(_) => 2,
            Self::OperationErrors(_) => 3,
            Self::PageCacheUsed(_) | Self::Server(ServerFinding::PageCacheServed { .. }) => 4,
            _ => 5,
        }
    }
}

/// The beginning of what a finding is written as for those who look for faults: its variants.
#[derive(Default)]
struct Variants(String);

impl fmt::Write for Variants {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        const LONGEST: usize = 80;
        self.0.push_str(text);
        if self.0.len() > LONGEST { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_the_rule_in_one_word() {
        let survey = Finding::Network(NetworkFinding::Survey("Nine of ten, and more.".to_owned()));
        assert_eq!(survey.kind(), "network_survey");
        let kinds: Vec<String> =
            crate::analyse_asked(&model::record::sample::sweep(10), None).iter().map(Finding::kind).collect();
        assert!(kinds.iter().any(|kind| kind == "step_line"), "{kinds:?}");
    }
}
