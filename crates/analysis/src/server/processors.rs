//! Whose processor time was used on this machine: a server that runs beside the load generator shares its processors.

use super::Served;
use crate::Figures;
use model::record::{CpuTime, Run, Step};

/// A machine that was idle for less than the rest had no processor time left.
const EXHAUSTED: f64 = 0.95;
/// Below this share of the time used, it was not the server that used it up.
const MOSTLY_SERVER: f64 = 0.5;

/// The processors of the machine that the load generator runs on, over one window. Shares are 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Processors {
    /// Processors in use, as a mean.
    pub used: f64,
    /// Share of the time that processors were not idle; time that the hypervisor took counts as not idle.
    pub busy: Option<f64>,
    /// Share of the time that processors were idle while storage was waited for.
    pub io_wait: Option<f64>,
    /// Share of the time used that the load generator used.
    pub generator: Option<f64>,
    /// Share of the time used that the servers used; absent where they run elsewhere, or do not let us see.
    pub server: Option<f64>,
}

impl Processors {
    /// Of one step; absent where the machine's processor time is not known.
    pub fn of(run: &Run, step: &Step) -> Option<Self> {
        let figures = Figures(step);
        let CpuTime { user_ns, system_ns, iowait_ns, steal_ns, idle_ns } = step.host_cpu?;
        let seconds = Some(figures.seconds()).filter(|seconds| *seconds > 0.0)?;
        let used = (user_ns + system_ns) as f64 / 1e9 / seconds;
        let share = |part: f64| (used > 0.0).then_some(part / used);
        let all = (user_ns + system_ns + iowait_ns.unwrap_or(0) + steal_ns.unwrap_or(0)) as f64;
        let of_all = |ns: u64| idle_ns.map(|idle| ns as f64 / (all + idle as f64));
        Some(Self {
            used,
            busy: idle_ns.and_then(|idle| of_all(idle + iowait_ns.unwrap_or(0))).map(|idle| 1.0 - idle),
            io_wait: iowait_ns.and_then(of_all),
            generator: figures.processors_busy().and_then(share),
            server: Served::of(run, step).processors().and_then(share),
        })
    }

    pub(super) fn are_exhausted_by_server(&self) -> bool {
        self.busy.is_some_and(|busy| busy >= EXHAUSTED) && self.server.is_some_and(|share| share >= MOSTLY_SERVER)
    }
}
