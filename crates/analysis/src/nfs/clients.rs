//! The kernel's NFS client and direct NFS under the same loads.

use crate::measured;
use crate::traffic::requests_per_s;
use model::record::Run;
use model::record::facts::{KERNEL_CLIENT, NO_KERNEL_CLIENT};
use model::units::group_thousands;

/// Rates that differ by less are the same, for a first sentence; the comparison below it says what is shown.
const SAME: f64 = 0.05;

/// Both clients at one load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClientsAtLoad {
    /// Requests outstanding.
    pub outstanding: u32,
    /// Requests per second by the kernel's client.
    pub kernel_per_s: f64,
    /// The same by direct NFS.
    pub direct_per_s: f64,
}

impl ClientsAtLoad {
    fn times(&self) -> f64 {
        self.direct_per_s / self.kernel_per_s
    }
}

/// Both clients at all loads that they have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct NfsClients {
    /// Each load, the least first; never empty.
    pub loads: Vec<ClientsAtLoad>,
    /// What there was in place of the kernel's client, if it was not there.
    pub instead: Option<String>,
}

impl NfsClients {
    /// Of the two sides of a comparison, the kernel's first; absent where they are something else.
    pub fn of(runs: &[&Run]) -> Option<Self> {
        let [kernel, direct] = runs else { return None };
        let client = kernel.target.facts.get(KERNEL_CLIENT)?;
        let mut depths: Vec<u32> = measured(kernel).filter_map(|step| step.load.sessions).collect();
        depths.sort_unstable();
        depths.dedup();
        let at = |outstanding: u32| {
            let (kernel_per_s, direct_per_s) = (mean(kernel, outstanding)?, mean(direct, outstanding)?);
            Some(ClientsAtLoad { outstanding, kernel_per_s, direct_per_s })
        };
        let loads: Vec<ClientsAtLoad> = depths.into_iter().filter_map(at).collect();
        (!loads.is_empty()).then(|| Self { loads, instead: client.strip_prefix(NO_KERNEL_CLIENT).map(str::to_owned) })
    }
}

/// Mean rate over the repeats of a load.
fn mean(run: &Run, outstanding: u32) -> Option<f64> {
    let of_load = measured(run).filter(|step| step.load.sessions == Some(outstanding));
    let rates: Vec<f64> = of_load.filter_map(requests_per_s).collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    (mean > 0.0).then_some(mean)
}

impl NfsClients {
    /// What was seen, in one or two sentences.
    pub fn sentence(&self) -> String {
        let times = |load: &&ClientsAtLoad| load.times();
        let by = |one: &&ClientsAtLoad, other: &&ClientsAtLoad| times(one).total_cmp(&times(other));
        let (Some(most), Some(least)) = (self.loads.iter().max_by(by), self.loads.iter().min_by(by)) else {
            return String::new();
        };
        let (kernel, note) = match &self.instead {
            None => ("the kernel's client", String::new()),
            Some(what) => (
                "the local file",
                format!(
                    "The kernel's half is a local file, not NFS ({what}): it says nothing of the kernel's client. "
                ),
            ),
        };
        let at = |load: &ClientsAtLoad| {
            format!(
                "{} against {} requests/s with {} outstanding",
                group_thousands(load.direct_per_s),
                group_thousands(load.kernel_per_s),
                load.outstanding
            )
        };
        let answer = match () {
            () if most.times() > 1.0 + SAME => {
                let low = if least.times() < 1.0 - SAME {
                    format!(", but only {:.1} times as much elsewhere ({})", least.times(), at(least))
                } else {
                    String::new()
                };
                format!("Direct NFS carries up to {:.1} times what {kernel} carries ({}){low}.", most.times(), at(most))
            }
            () if least.times() < 1.0 - SAME => {
                format!("Direct NFS carries no more than {kernel}, down to {:.2} times ({}).", least.times(), at(least))
            }
            () => format!("Direct NFS carries what {kernel} carries ({}).", at(most)),
        };
        note + &answer
    }
}
