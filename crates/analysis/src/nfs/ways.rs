//! The ways to servers that a run used.

use model::record::facts::{NFS_OUTSTANDING, NFS_SLOTS};
use model::record::{ChannelKind, ChannelStats, Run, Step};

/// Whether load went to an NFS server by our own client.
pub(super) fn is_on_nfs(run: &Run) -> bool {
    run.imported.is_none() && run.steps.iter().any(|step| ways(step).next().is_some())
}

/// Connections, or paths where there are many of them.
pub(super) fn ways(step: &Step) -> impl Iterator<Item = &ChannelStats> {
    step.channels.iter().filter(|channel| channel.kind != ChannelKind::Member)
}

/// Calls that one connection may have in flight, as the record says: what was asked for, or the slots that a server granted if these are
/// fewer.
pub(super) fn bound(run: &Run) -> Option<u32> {
    let fact = |name: &str| run.target.facts.get(name)?.parse::<u32>().ok();
    let asked = fact(NFS_OUTSTANDING)?;
    Some(fact(NFS_SLOTS).map_or(asked, |granted| granted.min(asked)))
}
