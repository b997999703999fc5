//! What files on NFS servers show: whether their connections are the limit, or the calls on them, or the volume's quota, or the disk that
//! writes wait for, and which path is slower than the others.

mod connections;
mod paths;
mod quota;
#[cfg(test)]
mod tests;

use super::{Finding, Message};
use crate::message::{list, one_of};
use crate::{Figures, Rule, measured};
use model::platforms::Catalogue;
use model::record::{ChannelKind, ChannelStats, KernelClient, NfsFacts, Run, Step, known_sum};
use model::units::{Nanos, group_thousands, percent};

pub use connections::{ConnectionPoint, ConnectionSweep, SweepVerdict};
pub use paths::{NamedPath, PathTrouble, SeenTrouble, SlowPath};
pub use quota::{Plateau, Published};

one_of! {
    /// Something about files on NFS servers.
    NfsFinding {
        /// What more connections bring.
        Connections(ConnectionSweep),
        /// The volume gives what it is sold with.
        Quota(Plateau),
        /// The calls that connections may have in flight are the limit.
        Slots(SlotsFull),
        /// A path answers later than the others.
        SlowPath(SlowPath),
        /// Paths lost their connections, or packets.
        Trouble(PathTrouble),
    }
}

/// All that is to be said of the NFS servers of a run. `found` is what was found of its loads before.
pub(super) fn find(run: &Run, found: &[Finding]) -> Vec<Finding> {
    if !is_on_nfs(run) {
        return Vec::new();
    }
    let sweep = ConnectionSweep::of(run);
    let quota = match &sweep {
        Some(sweep) => sweep.plateau.clone().filter(Plateau::is_quota),
        None => quota::of_depths(run, found),
    };
    let quota = quota.map(NfsFinding::Quota);
    // A sweep of connections says itself which of its steps had no room, and a quota lets no more through where there is room.
    let slots = find_slots(run).filter(|_| sweep.is_none() && quota.is_none()).map(NfsFinding::Slots);
    let paths = [paths::slow(run).map(NfsFinding::SlowPath), paths::trouble(run).map(NfsFinding::Trouble)];
    let all = [sweep.map(NfsFinding::Connections), quota, slots].into_iter().chain(paths);
    all.flatten().map(Finding::Nfs).collect()
}

/// Whether load went to an NFS server by our own client.
pub(crate) fn is_on_nfs(run: &Run) -> bool {
    run.imported.is_none() && run.steps.iter().any(|step| ways(step).next().is_some())
}

/// Connections, or paths where there are many of them.
fn ways(step: &Step) -> impl Iterator<Item = &ChannelStats> {
    step.channels.iter().filter(|channel| channel.kind != ChannelKind::Member)
}

/// Calls that one connection may have in flight, as the record says: what was asked for, or the slots that a server granted if these are
/// fewer.
fn bound(run: &Run) -> Option<u32> {
    let NfsFacts { outstanding, slots, .. } = run.target.facts.nfs;
    let asked = outstanding?;
    Some(slots.map_or(asked, |granted| granted.min(asked)))
}

/// A connection with this share of its calls in flight on average has no room most of the time: at its bound the mean lies below it by
/// what a reply and the next call take, and by the calls that are timed alone.
const FULL: f64 = 0.85;
/// A rate of this share of another is as high.
const AS_MUCH: f64 = 0.95;
/// Requests that waited for room in more than this share of all show that it is missing. One in a hundred waits in any case, while a
/// connection is kept for a call that asks for nothing.
const WAITED: f64 = 0.1;

/// Calls that take no more than so many times as long as others take as long.
const AS_LONG: f64 = 1.1;

/// The calls that connections may have in flight are the limit.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SlotsFull {
    /// Labels of the steps in which they were all in use.
    pub steps: Vec<String>,
    /// Calls that one connection may have in flight.
    pub bound: u32,
    /// Of the step with most waiting: calls in flight on one connection on average.
    pub mean: f64,
    /// Its connections.
    pub connections: u32,
    /// Share of its requests that waited in this program first, from 0 to 1.
    pub waited: f64,
    /// How long these waited on average.
    #[serde(rename = "wait_ns")]
    pub wait: Nanos,
}

fn find_slots(run: &Run) -> Option<SlotsFull> {
    let bound = bound(run)?;
    let full: Vec<SlotsFull> = measured(run).filter_map(|step| of_step(step, bound)).collect();
    let steps: Vec<String> = full.iter().flat_map(|found| found.steps.clone()).collect();
    // What was reached with room on the connections is not limited by the lack of it.
    let best = |is_full: bool| {
        let of = measured(run).filter(|step| steps.contains(&step.label) == is_full);
        of.filter_map(|step| Figures(step).requests_per_s()).reduce(f64::max)
    };
    if best(false).zip(best(true)).is_some_and(|(roomy, full)| roomy >= AS_MUCH * full) {
        return None;
    }
    let most = full.into_iter().max_by(|one, other| one.waited.total_cmp(&other.waited))?;
    Some(SlotsFull { steps, ..most })
}

/// Calls that one connection may have in flight, where they bound this step and nothing behind them does: its calls take as long as those of
/// the step that had room and took least.
pub(crate) fn calls_in_flight(run: &Run, label: &String) -> Option<u32> {
    let slots = find_slots(run).filter(|slots| slots.steps.contains(label))?;
    // By Little's law.
    let took = |step: &Step| {
        let calls: f64 = ways(step).map(|way| way.reads as f64 + way.writes as f64).sum();
        let in_flight_ns: f64 = ways(step).map(|way| way.outstanding_ns as f64).sum();
        (calls > 0.0).then(|| in_flight_ns / calls)
    };
    let full = took(measured(run).find(|step| step.label == *label)?)?;
    let roomy = measured(run).filter(|step| !slots.steps.contains(&step.label)).filter_map(took);
    (full <= AS_LONG * roomy.reduce(f64::min)?).then_some(slots.bound)
}

/// Of one step; absent where connections had room.
fn of_step(step: &Step, bound: u32) -> Option<SlotsFull> {
    let sum = |of: fn(&ChannelStats) -> u64| ways(step).map(of).fold(0, u64::saturating_add);
    let connections: u32 = ways(step).map(|way| way.channels).sum();
    let requests = sum(|way| way.reads.saturating_add(way.writes));
    let queued = known_sum(ways(step).map(|way| way.queued))?;
    let queued_ns = known_sum(ways(step).map(|way| way.queued_ns))?;
    if requests == 0 || queued == 0 || connections == 0 || step.window.duration_ns == 0 {
        return None;
    }
    let mean = sum(|way| way.outstanding_ns) as f64 / step.window.duration_ns as f64 / f64::from(connections);
    let waited = queued as f64 / requests as f64;
    let is_full = mean > FULL * f64::from(bound) && waited > WAITED;
    let wait = Nanos(queued_ns / queued);
    is_full.then(|| SlotsFull { steps: vec![step.label.clone()], bound, mean, connections, waited, wait })
}

/// Of the kinds of volume that say so, those whose servers take no more than `bound` calls from one connection.
fn published(bound: u32) -> Option<String> {
    let takes_no_more = |most: Option<u32>| most.is_some_and(|most| bound >= most);
    let kind = Catalogue::built_in().volumes().iter().find(|kind| takes_no_more(kind.calls_per_connection))?;
    Some(format!("{} takes {} from one", kind.kind, kind.calls_per_connection?))
}

impl Message for SlotsFull {
    fn rule(&self) -> Rule {
        Rule::NfsSlots
    }

    fn sentence(&self) -> String {
        let Self { steps, bound, mean, connections, waited, wait } = self;
        let each =
            if *connections == 1 { "the connection".to_owned() } else { format!("each of {connections} connections") };
        format!(
            "The calls in flight on a connection are the limit. In {} {each} had {mean:.1} of at most {bound} on \
             average. {} % of the requests first waited here, for {wait} on average.",
            list(steps),
            percent(waited.min(1.0))
        )
    }

    fn advice(&self) -> Option<String> {
        let published = published(self.bound).map_or_else(String::new, |words| format!(" ({words})"));
        Some(format!(
            "Use more connections, or a larger `outstanding=` in the address, if the server allows it{published}. If \
             the rate stays, the server is the limit after all."
        ))
    }
}

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
        let instead = match kernel.target.facts.nfs.kernel_client.as_ref()? {
            KernelClient::Mount(_) => None,
            KernelClient::Instead(words) => Some(words.clone()),
        };
        let mut depths: Vec<u32> = measured(kernel).filter_map(|step| step.load.sessions).collect();
        depths.sort_unstable();
        depths.dedup();
        let at = |outstanding: u32| {
            let (kernel_per_s, direct_per_s) = (mean(kernel, outstanding)?, mean(direct, outstanding)?);
            Some(ClientsAtLoad { outstanding, kernel_per_s, direct_per_s })
        };
        let loads: Vec<ClientsAtLoad> = depths.into_iter().filter_map(at).collect();
        (!loads.is_empty()).then_some(Self { loads, instead })
    }
}

/// Mean rate over the repeats of a load.
fn mean(run: &Run, outstanding: u32) -> Option<f64> {
    let of_load = measured(run).filter(|step| step.load.sessions == Some(outstanding));
    let rates: Vec<f64> = of_load.filter_map(|step| Figures(step).requests_per_s()).collect();
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
                format!("Direct NFS reaches up to {:.1} times the rate of {kernel} ({}){low}.", most.times(), at(most))
            }
            () if least.times() < 1.0 - SAME => {
                format!("Direct NFS reaches no more than {kernel}, down to {:.2} times ({}).", least.times(), at(least))
            }
            () => format!("Direct NFS reaches the same rate as {kernel} ({}).", at(most)),
        };
        note + &answer
    }
}
