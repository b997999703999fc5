//! What a load on processors shows: what held it back, whether it kept its speed, and what the machine is.

mod answer;
mod falls;
mod finding;
mod held;
mod machine;
mod speed;
mod waiting;

pub use answer::HostAnswer;
pub use falls::{FallCause, SpeedFell};
pub use finding::HostFinding;
pub use held::{Competition, QuotaHeld, Stolen};
pub use machine::{FarMemory, MemorySaturated, SharedCores, SlowProcessor};
pub use speed::{Speed, WorkUnit, is_host_load};
pub use waiting::LateTimers;

use super::measured;
use model::record::Run;

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

#[cfg(test)]
mod tests;
