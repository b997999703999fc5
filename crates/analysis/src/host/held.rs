//! What held processors back: a limit of a control group, the hypervisor, other processes.

use super::WorkUnit;
use crate::generator::throttled_share;
use crate::message::list;
use crate::{Message, Rule, measured, worst};
use model::record::{HostStats, Run, Step};
use model::units::percent;

/// Share of its periods in which a group has to be held back for its limit to be what limits. A limit that is just enough is met
/// now and then by what else the program does.
const HELD_BACK: f64 = 0.1;
/// Periods, of 100 ms by default, from which that is believed.
const PERIODS: u64 = 5;
/// Share of the time of its processors that the hypervisor took from which it is reported. Below, an ordinary neighbour starts a job.
const STOLEN: f64 = 0.02;
/// The same for other processes: the kernel counts in hundredths of a second, and has work of its own.
const OTHERS: f64 = 0.03;

/// Both are counted in hundredths of a second: less than this is a matter of where the window begins.
const COUNTED_NS: u64 = 50_000_000;

/// Processors' time in a step: as many times the window as there are processors.
fn all_ns(step: &Step, host: &HostStats) -> f64 {
    host.elapsed_ns as f64 * f64::from(step.load.sessions.unwrap_or(0))
}

/// A limit of a control group held the load back.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct QuotaHeld {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// The limit in processors, where the group shows it.
    pub limit: Option<f64>,
    /// Processors that the load used, in the step that was held back most.
    pub used: f64,
    /// Share of its periods in which the group was held back there, 0 to 1.
    pub periods: f64,
}

impl QuotaHeld {
    pub(super) fn of(run: &Run) -> Option<Self> {
        let (steps, periods) = worst(run, held_back)?;
        let step = measured(run).find(|step| held_back(step) == Some(periods))?;
        let host = step.host.as_ref()?;
        let used = host.loaded.own_ns as f64 / host.elapsed_ns.max(1) as f64;
        Some(Self { steps, limit: host.quota_processors, used, periods })
    }

    pub(super) fn phrase(&self) -> String {
        match self.limit {
            Some(limit) => format!("a limit of {limit:.2} processors held it back"),
            None => format!("a limit on processor time held it back, at {:.2} processors", self.used),
        }
    }
}

/// Share of the periods in which a step was held back, if that is what limited it.
pub(super) fn held_back(step: &Step) -> Option<f64> {
    let throttled = step.host.as_ref()?.throttled.filter(|throttled| throttled.periods >= PERIODS)?;
    let share = throttled_share(throttled);
    (share >= HELD_BACK).then_some(share)
}

impl Message for QuotaHeld {
    fn rule(&self) -> Rule {
        Rule::HostQuota
    }

    fn sentence(&self) -> String {
        let limit = match self.limit {
            Some(limit) => format!("A control group limits this process to {limit:.2} processors"),
            None => "A control group that others share, or that is not seen from here, limits this process".to_owned(),
        };
        format!(
            "{limit}: {:.2} were used, and it was held back in {} % of the periods of {}.",
            self.used,
            percent(self.periods),
            list(&self.steps)
        )
    }

    fn advice(&self) -> Option<String> {
        Some(
            "Compare this machine with others by one CPU below the limit (`--processors 1`). Or raise the limit: \
             `cpu.max`, in version 1 `cpu.cfs_quota_us`, in Kubernetes the limit on `cpu`."
                .to_owned(),
        )
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

/// The hypervisor gave processors' time to others.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Stolen {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// The largest share of the time of the loaded processors, 0 to 1.
    pub share: f64,
}

impl Stolen {
    pub(super) fn of(run: &Run) -> Option<Self> {
        let is_counted =
            |step: &Step| step.host.as_ref().and_then(|host| host.loaded.steal_ns).is_some_and(|ns| ns >= COUNTED_NS);
        let found = |step: &Step| stolen(step).filter(|share| *share >= STOLEN && is_counted(step));
        let (steps, share) = worst(run, found)?;
        Some(Self { steps, share })
    }

    pub(super) fn phrase(&self) -> String {
        format!("the hypervisor took up to {} % of the time", percent(self.share))
    }
}

/// Share of its processors' time that the hypervisor took in a step.
pub(super) fn stolen(step: &Step) -> Option<f64> {
    let host = step.host.as_ref()?;
    let all = all_ns(step, host);
    (all > 0.0).then_some(host.loaded.steal_ns? as f64 / all)
}

impl Message for Stolen {
    fn rule(&self) -> Rule {
        Rule::HostSteal
    }

    fn sentence(&self) -> String {
        format!(
            "The hypervisor gave up to {} % of the time of the loaded processors to others (steal), in {}.",
            percent(self.share),
            list(&self.steps)
        )
    }

    fn advice(&self) -> Option<String> {
        Some(
            "Its host has more virtual CPUs than real ones, or a burstable machine has exhausted its credits. Look \
             at the machine type, and repeat at another time of day."
                .to_owned(),
        )
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

/// Other processes ran on the loaded processors.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Competition {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// The largest share of the time of the loaded processors that they took, 0 to 1.
    pub share: f64,
}

impl Competition {
    pub(super) fn of(run: &Run) -> Option<Self> {
        // The kernel samples who is busy: where a limit stops and starts the load in step with that, it may be far off.
        let undisturbed = |step: &Step| held_back(step).is_none();
        let found = |step: &Step| of_others(step).filter(|share| undisturbed(step) && *share >= OTHERS);
        let (steps, share) = worst(run, found)?;
        Some(Self { steps, share })
    }

    pub(super) fn phrase(&self) -> String {
        format!("other processes took up to {} % of the time", percent(self.share))
    }
}

/// Share of its processors' time that others worked on them in a step which would have used all of it.
pub(super) fn of_others(step: &Step) -> Option<f64> {
    let is_busy = step.operations.iter().all(|kind| WorkUnit::of(&kind.kind).is_some_and(WorkUnit::is_busy));
    let host = step.host.as_ref().filter(|_| is_busy)?;
    let all = all_ns(step, host);
    let others = host.loaded.busy_ns?.saturating_sub(host.loaded.own_ns);
    let others = if others >= COUNTED_NS { others } else { 0 };
    (all > 0.0).then_some(others as f64 / all)
}

impl Message for Competition {
    fn rule(&self) -> Rule {
        Rule::HostCompetition
    }

    fn sentence(&self) -> String {
        format!(
            "Other processes of this machine took up to {} % of the time of the loaded CPUs, in {}. The results are \
             what they left over.",
            percent(self.share),
            list(&self.steps)
        )
    }

    fn advice(&self) -> Option<String> {
        Some("See which with `top`, and repeat without them, if they are not meant to be there.".to_owned())
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}
