//! Paths to a server that differ from each other, or were in trouble.

use super::ways;
use crate::message::list;
use crate::{Message, Rule, Severity, measured};
use model::record::{ChannelStats, Histogram, Run, Step};
use model::units::{Nanos, group_thousands, percent};

/// A path whose requests take so many times as long as those of the others is another kind of network, or in trouble.
const SLOW: f64 = 1.5;
/// Requests of a path on which a mean can rest: it strays by a few per cent then. A path that is slow gets few of them.
const ENOUGH: u64 = 200;
/// Segments that TCP sent again matter from this share of the requests, and this number of them.
const RESENT: f64 = 0.001;
const FEW_RESENT: u64 = 20;

/// A path, as sentences name it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct NamedPath {
    /// The server.
    pub server: String,
    /// The address.
    pub path: String,
}

impl NamedPath {
    fn of(path: &ChannelStats) -> Self {
        Self { server: path.of.clone(), path: path.name.clone() }
    }

    fn words(&self) -> String {
        format!("path `{}` to `{}`", self.path, self.server)
    }
}

/// A path answers later than the others.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SlowPath {
    /// The step where it shows most.
    pub step: String,
    /// The path.
    pub path: NamedPath,
    /// Mean time of its reads and writes.
    #[serde(rename = "mean_ns")]
    pub mean: Nanos,
    /// That of all others together.
    #[serde(rename = "others_ns")]
    pub others: Nanos,
    /// Mean time of its calls that ask for nothing, and that of the others: what of it is the network.
    pub nothing: Option<(Nanos, Nanos)>,
    /// Its share of the requests, from 0 to 1.
    pub share: f64,
    /// The share of each if all had the same.
    pub equal: f64,
}

/// Paths lost their connections, or packets.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct PathTrouble {
    /// Labels of the steps in which they did.
    pub steps: Vec<String>,
    /// What happened to each path.
    pub paths: Vec<(NamedPath, SeenTrouble)>,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct SeenTrouble {
    /// Times that a connection was made again.
    pub reconnects: u64,
    /// Requests that were sent again by it: another one had not answered, or the server had forgotten their session.
    pub retries: u64,
    /// Segments that TCP sent again.
    pub resent: u64,
}

fn requests(path: &ChannelStats) -> u64 {
    path.reads.saturating_add(path.writes)
}

fn paths(step: &Step) -> Vec<ChannelStats> {
    ChannelStats::groups(&ways(step).cloned().collect::<Vec<_>>())
}

fn times<'a>(paths: impl Iterator<Item = &'a ChannelStats>) -> Histogram {
    let mut all = Histogram::default();
    for path in paths {
        all.merge(&path.read);
        all.merge(&path.write);
    }
    all
}

/// The path that is slowest beside the others of its server, in the step where that shows most.
pub(super) fn slow(run: &Run) -> Option<SlowPath> {
    let seen = measured(run).filter_map(of_step);
    seen.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(found, _)| found)
}

fn of_step(step: &Step) -> Option<(SlowPath, f64)> {
    let all = paths(step);
    let candidates = all.iter().filter(|path| requests(path) >= ENOUGH).filter_map(|path| {
        let siblings: Vec<&ChannelStats> =
            all.iter().filter(|other| other.of == path.of && !other.is_same_as(path)).collect();
        if siblings.is_empty() || siblings.iter().any(|other| requests(other) < ENOUGH) {
            return None;
        }
        let (own, others) = (times([path].into_iter()).mean_ns()?, times(siblings.iter().copied()).mean_ns()?);
        let mut nothing = Histogram::default();
        siblings.iter().for_each(|other| nothing.merge(&other.nothing));
        let nothing = path.nothing.mean_ns().zip(nothing.mean_ns());
        let carried: u64 = siblings.iter().map(|other| requests(other)).sum::<u64>() + requests(path);
        let found = SlowPath {
            step: step.label.clone(),
            path: NamedPath::of(path),
            mean: Nanos(own as u64),
            others: Nanos(others as u64),
            nothing: nothing.map(|(own, others)| (Nanos(own as u64), Nanos(others as u64))),
            share: requests(path) as f64 / carried as f64,
            equal: 1.0 / (siblings.len() + 1) as f64,
        };
        (own > SLOW * others).then_some((found, own / others))
    });
    candidates.max_by(|one, other| one.1.total_cmp(&other.1))
}

/// Paths whose connections were made again, that answered for others, or whose packets were lost.
pub(super) fn trouble(run: &Run) -> Option<PathTrouble> {
    let (mut steps, mut found): (Vec<String>, Vec<(NamedPath, SeenTrouble)>) = (Vec::new(), Vec::new());
    for step in measured(run) {
        for path in paths(step) {
            let lost = path.segments_resent.unwrap_or(0);
            let is_lossy = lost >= FEW_RESENT && lost as f64 > RESENT * requests(&path) as f64;
            let (reconnects, retries) = (path.reconnects.unwrap_or(0), path.retries.unwrap_or(0));
            let seen = SeenTrouble { reconnects, retries, resent: if is_lossy { lost } else { 0 } };
            if seen == SeenTrouble::default() {
                continue;
            }
            steps.push(step.label.clone());
            let named = NamedPath::of(&path);
            match found.iter_mut().find(|(known, _)| *known == named) {
                Some((_, sum)) => {
                    sum.reconnects += seen.reconnects;
                    sum.retries += seen.retries;
                    sum.resent += seen.resent;
                }
                None => found.push((named, seen)),
            }
        }
    }
    steps.dedup();
    (!found.is_empty()).then_some(PathTrouble { steps, paths: found })
}

impl PathTrouble {
    /// Whether connections or answers were lost: then the load was another one for a while. TCP makes up for packets.
    pub fn is_doubt(&self) -> bool {
        self.paths.iter().any(|(_, seen)| seen.reconnects > 0 || seen.retries > 0)
    }
}

impl Message for SlowPath {
    fn rule(&self) -> Rule {
        Rule::NfsSlowPath
    }

    fn sentence(&self) -> String {
        let Self { step, path, mean, others, nothing, share, equal } = self;
        let nothing = nothing.map_or_else(String::new, |(own, others)| {
            format!("; calls that ask for nothing took {own} there, and {others} on the others")
        });
        format!(
            "The {} is slow: in {step} its requests took {mean} on average, those of the others {others}{nothing}. It was given \
             {} % of the requests, where an equal part is {} %.",
            path.words(),
            percent(*share),
            percent(*equal)
        )
    }

    fn advice(&self) -> Option<String> {
        Some(
            "The connection with fewest calls in flight takes the next one, so a slow path costs little as long as others have room. \
             Look at its link, switch and interface; without it (`paths=` in the address) the load shows what it is worth."
                .to_owned(),
        )
    }
}

impl Message for PathTrouble {
    fn rule(&self) -> Rule {
        Rule::NfsPathTrouble
    }

    fn severity(&self) -> Severity {
        if self.is_doubt() { Severity::Doubt } else { Severity::Note }
    }

    fn sentence(&self) -> String {
        let many = |count: u64, one: &str, several: &str| {
            (count > 0).then(|| format!("{} {}", group_thousands(count as f64), if count == 1 { one } else { several }))
        };
        let each = |(path, seen): &(NamedPath, SeenTrouble)| {
            let parts = [
                many(seen.reconnects, "connection made again", "connections made again"),
                many(seen.retries, "request sent again", "requests sent again"),
                many(seen.resent, "TCP segment sent again", "TCP segments sent again"),
            ];
            format!("{} on the {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "), path.words())
        };
        let what = match self.paths.iter().any(|(_, seen)| seen.reconnects > 0) {
            true => "Connections to the server were lost",
            false if self.is_doubt() => "Requests were not answered, or the server forgot its sessions",
            false => "The network lost packets",
        };
        let all: Vec<String> = self.paths.iter().map(each).collect();
        format!("{what} in {}: {}.", list(&self.steps), all.join("; "))
    }

    fn advice(&self) -> Option<String> {
        let advice = if self.is_doubt() {
            "For a while the load was not the requested one: look at the server's log and the network, and repeat \
             these steps."
        } else {
            "TCP makes up for lost packets, late: look at the link's counters; `plimsoll net run` measures it without NFS."
        };
        Some(advice.to_owned())
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}
