//! Why an opening sentence should not be repeated, in few words.

use super::{Carried, Claim};
use crate::message::list;
use crate::{
    Calibration, Finding, FleetFinding, GroupFinding, NotCompleted, PageCacheUse, RunVerdict, ServerFinding, Severity,
};
use model::record::Run;

/// Something that makes the answer void, or less than it seems.
#[derive(Debug, Clone, PartialEq)]
pub struct OpeningDoubt {
    /// In few words, as they stand after a colon.
    pub phrase: String,
    /// The same with its figures, as the finding has it.
    pub sentence: String,
}

/// Doubts that the analysis puts before the answer.
pub(super) fn leading(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    findings.iter().take_while(|finding| finding.severity() == Severity::Doubt)
}

/// The first doubt that stands before the answer, or that is about the very step that is reported. A burst that the answer
/// has taken into account is none.
pub(super) fn find(
    run: &Run,
    findings: &[Finding],
    carried: Option<&Carried>,
    calibration: Option<&Calibration>,
    verdict: Option<&RunVerdict>,
) -> Option<OpeningDoubt> {
    let leads = leading(findings).count();
    let steps_of_answer: Vec<&String> = match (carried, calibration) {
        (Some(carried), _) => carried.step.iter().collect(),
        (_, Some(found)) => {
            [&found.max_iops, &found.max_bytes].into_iter().flatten().flat_map(|it| &it.steps).collect()
        }
        _ => Vec::new(),
    };
    let is_reported_so = |finding: &Finding| {
        matches!(finding, Finding::Burst(_))
            && carried.is_some_and(|carried| matches!(carried.claim, Claim::Sustained { .. }))
    };
    let concerns = |at: usize, finding: &Finding| match finding.steps() {
        // A calibration has an answer of its own, which findings are not sorted by.
        Some(steps) if calibration.is_some() => steps.iter().any(|step| steps_of_answer.contains(&step)),
        Some(steps) => at < leads || steps.iter().any(|step| steps_of_answer.contains(&step)),
        None => at < leads || calibration.is_some(),
    };
    let is_doubt = |at: usize, finding: &Finding| {
        let is_missing = matches!(finding, Finding::Fleet(FleetFinding::Missing { .. }));
        let is_said = is_missing || is_reported_so(finding) || verdict.is_some_and(|verdict| verdict.says(finding));
        finding.severity() == Severity::Doubt && !is_said && concerns(at, finding)
    };
    let (_, finding) = findings.iter().enumerate().find(|(at, finding)| is_doubt(*at, finding))?;
    let place = match finding.steps() {
        Some(steps) if run.steps.len() > 1 => format!(" in {}", list(steps)),
        _ => String::new(),
    };
    Some(OpeningDoubt { phrase: format!("{}{place}", phrase(finding)), sentence: finding.sentence() })
}

fn phrase(finding: &Finding) -> String {
    let words = match finding {
        Finding::ClientSaturated(_) => "the load generator had no processor time left",
        Finding::RateNotReached(_) => "the rate asked for was not reached",
        Finding::NotCompleted(NotCompleted::Failed { .. }) => "the run failed",
        Finding::NotCompleted(NotCompleted::Interrupted { .. }) => "the run was ended early",
        Finding::NotCompleted(NotCompleted::Unfinished { .. }) => "the run has not finished, or its process was killed",
        Finding::OperationErrors(errors) => return format!("{} ended in errors", errors.words.work()),
        Finding::PageCacheUsed(PageCacheUse::Asked { .. }) => "requests went through the page cache",
        Finding::PageCacheUsed(_) => "the operating system's page cache may have served reads",
        Finding::SentLate(_) => "the load generator sent requests late",
        Finding::BytesDisagree(bytes) if bytes.copies.is_some() => "the kernel counted other writes than this program",
        Finding::BytesDisagree(_) => "the kernel counted other reads than this program",
        Finding::NotSteady(_) => "throughput was not steady",
        Finding::Stalled(_) => "nothing finished for a while although load was on",
        Finding::Burst(_) => "a burst credit may have run out",
        Finding::Rose(_) => "the rate rose while it was measured",
        Finding::CacheHeld(_) => "the buffer cache answered most reads",
        Finding::DurableWrites(_) => "durable writes did not reach the device",
        Finding::Ceiling(_) => "the load generator was the limit",
        Finding::Steady(_) => "throughput did not settle",
        Finding::CacheTrap(_) => "the data set fits into a cache",
        Finding::Server(ServerFinding::ProcessorsExhausted { .. }) => "the server had no processor time left",
        Finding::Server(ServerFinding::ShapeChanged { .. }) => "the tables changed their shape",
        Finding::Server(ServerFinding::PageCacheServed { .. }) => "the page cache answered most buffer misses",
        Finding::Server(ServerFinding::Unread { .. }) => "a server's counters are incomplete",
        Finding::Server(ServerFinding::RolledBack { .. }) => "transactions were rolled back",
        Finding::Fleet(FleetFinding::Died { .. }) => "a part of the fleet did not come to its end",
        Finding::Fleet(FleetFinding::Forced { .. }) => "runs were merged that do not belong together",
        Finding::Group(GroupFinding::Dropped(_)) => "a member of a disk group failed",
        // Findings of other kinds are never doubts.
        other => return other.sentence().trim_end_matches('.').to_owned(),
    };
    words.to_owned()
}
