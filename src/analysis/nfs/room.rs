//! Whether requests wait until a server has made durable what it took before.

use super::slots;
use super::ways::{bound, ways};
use crate::analysis::message::list;
use crate::analysis::{Message, measured};
use crate::record::{ChannelStats, Run, Step};
use crate::units::{Nanos, group_thousands, percent};

/// Waiting that is worth a word: this share of the requests' time, from 0 to 1.
const NOTICEABLE: f64 = 0.1;

/// Requests waited for COMMITs that the load did not ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitsForRoom {
    /// Labels of the steps in which they did.
    pub steps: Vec<String>,
    /// Of the step with most waiting: COMMITs that made room for more writes.
    pub commits: u64,
    /// Share of its requests that waited in this program first, from 0 to 1.
    pub waited: f64,
    /// How long these waited on average.
    pub wait: Nanos,
    /// Share of the time of all its requests that this is, from 0 to 1.
    pub share: f64,
}

pub(super) fn find(run: &Run) -> Option<WaitsForRoom> {
    let bound = bound(run)?;
    let found: Vec<WaitsForRoom> = measured(run).filter_map(|step| of_step(step, bound)).collect();
    let steps = found.iter().flat_map(|found| found.steps.clone()).collect();
    let most = found.into_iter().max_by(|one, other| one.share.total_cmp(&other.share))?;
    Some(WaitsForRoom { steps, ..most })
}

fn of_step(step: &Step, bound: u32) -> Option<WaitsForRoom> {
    let sum = |of: fn(&ChannelStats) -> Option<u64>| ways(step).map(of).sum::<Option<u64>>();
    let commits = sum(|way| way.room_commits).filter(|commits| *commits > 0)?;
    let queued = sum(|way| way.queued).filter(|queued| *queued > 0)?;
    let queued_ns = sum(|way| way.queued_ns)?;
    let requests: u64 = ways(step).map(|way| way.reads.saturating_add(way.writes)).sum();
    let sent_ns: u64 = ways(step).map(|way| way.outstanding_ns).sum();
    // Where connections have no room that is what they wait for.
    if requests == 0 || slots::of_step(step, bound).is_some() {
        return None;
    }
    let share = queued_ns as f64 / (queued_ns as f64 + sent_ns as f64);
    let (waited, wait) = (queued as f64 / requests as f64, Nanos(queued_ns / queued));
    (share >= NOTICEABLE).then(|| WaitsForRoom { steps: vec![step.label.clone()], commits, waited, wait, share })
}

impl Message for WaitsForRoom {
    fn sentence(&self) -> String {
        let Self { steps, commits, waited, wait, share } = self;
        let commits = if *commits == 1 {
            "1 COMMIT that the load did not ask for".to_owned()
        } else {
            format!("{} COMMITs that the load did not ask for", group_thousands(*commits as f64))
        };
        format!(
            "Requests waited until the server had made durable what it took before: in {} {} % of them waited here first, for {wait} on \
             average, {} % of the time of all, although connections had room; {commits} made room for more.",
            list(steps),
            percent(waited.min(1.0)),
            percent(*share)
        )
    }

    fn advice(&self) -> Option<String> {
        Some(
            "What a server has not made durable is kept here, at most 64 MiB of a file, and a kernel's client has a bound as well: over \
             a longer time the server's disks are the limit rather than its memory. `--durable dsync` or `--durable fsync:N` says what \
             writes cost that a database waits for."
                .to_owned(),
        )
    }
}
