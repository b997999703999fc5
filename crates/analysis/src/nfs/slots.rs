//! Whether the calls that connections may have in flight are the limit.

use super::ways::{bound, ways};
use crate::Rule;
use crate::message::list;
use crate::{Message, measured};
use model::platforms::Catalogue;
use model::record::{ChannelStats, Run, Step};
use model::units::{Nanos, percent};

/// A connection with this share of its calls in flight on average has no room most of the time: at its bound the mean lies below it by
/// what a reply and the next call take, and by the calls that are timed alone.
const FULL: f64 = 0.85;
/// Requests that waited for room in more than this share of all show that it is missing. One in a hundred waits in any case, while a
/// connection is kept for a call that asks for nothing.
const WAITED: f64 = 0.1;

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

pub(super) fn find(run: &Run) -> Option<SlotsFull> {
    let bound = bound(run)?;
    let full: Vec<SlotsFull> = measured(run).filter_map(|step| of_step(step, bound)).collect();
    let steps = full.iter().flat_map(|found| found.steps.clone()).collect();
    let most = full.into_iter().max_by(|one, other| one.waited.total_cmp(&other.waited))?;
    Some(SlotsFull { steps, ..most })
}

/// Of one step; absent where connections had room.
pub(super) fn of_step(step: &Step, bound: u32) -> Option<SlotsFull> {
    let sum = |of: fn(&ChannelStats) -> u64| ways(step).map(of).fold(0, u64::saturating_add);
    let connections: u32 = ways(step).map(|way| way.channels).sum();
    let requests = sum(|way| way.reads.saturating_add(way.writes));
    let queued = ways(step).map(|way| way.queued).sum::<Option<u64>>()?;
    let queued_ns = ways(step).map(|way| way.queued_ns).sum::<Option<u64>>()?;
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
            "The calls in flight on a connection are the limit: in {} {each} had {mean:.1} of at most {bound} on average, and \
             {} % of the requests waited here first, for {wait} on average.",
            list(steps),
            percent(waited.min(1.0))
        )
    }

    fn advice(&self) -> Option<String> {
        let published = published(self.bound).map_or_else(String::new, |words| format!(" ({words})"));
        Some(format!(
            "Use more connections, or a larger `outstanding=` in the address as far as the server takes it{published}: if the rate \
             stays, the server is the limit after all."
        ))
    }
}
