//! Where sessions spent their time.

use super::{Figures, Finding, SINGLE_BLOCK_READ, foreground_waits, is_on_servers, measured, operations_are_requests};
use crate::record::{Run, Step};

const FREE_BUFFER: &str = "free buffer waits";
const CHECKPOINT: &str = "log file switch (checkpoint incomplete)";
const COMMIT: &str = "log file sync";

/// Shares of waited time from which the engine's own writers are worth naming.
const WRITERS: f64 = 0.05;
const LOG_SWITCH: f64 = 0.02;

pub(super) fn find(run: &Run) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(above(run, FREE_BUFFER, WRITERS).map(|(steps, share)| Finding::FreeBufferWaits { steps, share }));
    findings.extend(
        above(run, CHECKPOINT, LOG_SWITCH).map(|(steps, share)| Finding::CheckpointIncomplete { steps, share }),
    );
    let commits: Vec<&Step> = measured(run).filter(|step| top(step) == Some(COMMIT)).collect();
    let share_of_commits = commits.iter().filter_map(|step| Figures(step).share_of_waiting(COMMIT)).reduce(f64::max);
    if let Some(share) = share_of_commits {
        let steps = commits.iter().map(|step| step.label.clone()).collect();
        findings.push(Finding::CommitsDominate { steps, share });
    }
    findings.extend(top_wait(run));
    findings
}

fn top(step: &Step) -> Option<&str> {
    foreground_waits(step).first().map(|wait| wait.event.as_str())
}

/// Steps in which `event` takes more than `limit` of the waited time, and the largest share.
fn above(run: &Run, event: &str, limit: f64) -> Option<(Vec<String>, f64)> {
    let shares: Vec<(String, f64)> = measured(run)
        .filter_map(|step| Some((step.label.clone(), Figures(step).share_of_waiting(event)?)))
        .filter(|(_, share)| *share > limit)
        .collect();
    let largest = shares.iter().map(|(_, share)| *share).reduce(f64::max)?;
    Some((shares.into_iter().map(|(label, _)| label).collect(), largest))
}

/// The top wait of the step with the most sessions; not reported where it is what a read load must wait for anyway.
fn top_wait(run: &Run) -> Option<Finding> {
    // Requests wait for what they were sent to do, and of what sessions of a server wait for, commits alone are timed.
    if operations_are_requests(run) || is_on_servers(run) {
        return None;
    }
    let step = measured(run).max_by_key(|step| step.load.sessions)?;
    let wait = *foreground_waits(step).first()?;
    if [SINGLE_BLOCK_READ, FREE_BUFFER, CHECKPOINT, COMMIT].contains(&wait.event.as_str()) {
        return None;
    }
    let share = Figures(step).share_of_waiting(&wait.event)?;
    let mean = crate::units::Nanos(wait.of_sessions()?.mean_ns()? as u64);
    Some(Finding::TopWait { step: step.label.clone(), event: wait.event.clone(), share, mean })
}
