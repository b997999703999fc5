//! What files on NFS servers show: whether their connections are the limit, or the calls on them, or the volume's quota, or the disk that
//! writes wait for, and which path is slower than the others.

mod clients;
mod connections;
mod paths;
mod point;
mod quota;
mod slots;
#[cfg(test)]
mod tests;
mod ways;

use super::{Finding, Message, Severity};
use crate::Rule;
use model::record::Run;

pub use clients::{ClientsAtLoad, NfsClients};
pub use connections::{ConnectionSweep, SweepVerdict};
pub use paths::{NamedPath, PathTrouble, SeenTrouble, SlowPath};
pub use point::ConnectionPoint;
pub use quota::{Plateau, Published};
pub use slots::SlotsFull;
use ways::is_on_nfs;

/// Something about files on NFS servers.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum NfsFinding {
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
    // A sweep of connections says itself which of its steps had no room.
    let slots = slots::find(run).filter(|_| sweep.is_none()).map(NfsFinding::Slots);
    let paths = [paths::slow(run).map(NfsFinding::SlowPath), paths::trouble(run).map(NfsFinding::Trouble)];
    let all = [sweep.map(NfsFinding::Connections), quota, slots].into_iter().chain(paths);
    all.flatten().map(Finding::Nfs).collect()
}

impl NfsFinding {
    fn message(&self) -> &dyn Message {
        match self {
            Self::Connections(it) => it,
            Self::Quota(it) => it,
            Self::Slots(it) => it,
            Self::SlowPath(it) => it,
            Self::Trouble(it) => it,
        }
    }
}

impl Message for NfsFinding {
    fn rule(&self) -> Rule {
        self.message().rule()
    }

    fn severity(&self) -> Severity {
        self.message().severity()
    }

    fn sentence(&self) -> String {
        self.message().sentence()
    }

    fn advice(&self) -> Option<String> {
        self.message().advice()
    }

    fn steps(&self) -> Option<&[String]> {
        self.message().steps()
    }
}
