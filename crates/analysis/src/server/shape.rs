//! Whether the tables still have the shape that was proven before the run: one row in one block, and as many blocks.

use std::collections::BTreeMap;

use super::{Served, ServerFinding};
use crate::measured;
use model::record::{Activity, Run, ServerStats, Step};

/// Growth of a table, as a share of its pages, beyond which it is not the table that was set up.
const GROWN: f64 = 0.01;
/// Below this share of updates whose new version stays on its page, rows move to other pages and indexes grow.
const HOT: f64 = 0.95;
/// The share of fewer updated rows than this says nothing.
const ENOUGH_ROWS: u64 = 1_000;

/// Growth adds up from step to step, so a step is distinguished from where the limit was crossed.
pub(super) fn find(run: &Run) -> Option<ServerFinding> {
    let (mut steps, mut max_grown, mut min_hot) = (Vec::new(), None::<(u64, f64)>, None::<f64>);
    let mut grown_of: BTreeMap<&str, u64> = BTreeMap::new();
    for step in measured(run) {
        for (node, grown) in growth(step) {
            *grown_of.entry(node).or_default() += grown;
        }
        let served = Served::of(run, step);
        let grown =
            grown_of.values().max().zip(served.pages()).map(|(grown, pages)| (*grown, *grown as f64 / pages as f64));
        let grown = grown.filter(|(_, share)| *share > GROWN);
        let hot = served
            .hot_share()
            .filter(|share| *share < HOT && served.rows_updated().is_some_and(|rows| rows >= ENOUGH_ROWS));
        if grown.is_some() || hot.is_some() {
            steps.push(step.label.clone());
            // Growth only adds up, so the last is the largest.
            max_grown = grown.or(max_grown);
            min_hot = hot.into_iter().chain(min_hot).reduce(f64::min);
        }
    }
    let (grown, hot_share) = (max_grown, min_hot);
    (!steps.is_empty()).then_some(ServerFinding::ShapeChanged { steps, grown, hot_share })
}

/// Pages by which each node's tables grew, the warm-up included: it writes as the window does.
fn growth(step: &Step) -> impl Iterator<Item = (&str, u64)> {
    let warmup = step.intervals.iter().filter(|interval| interval.warmup).flat_map(|interval| &interval.servers);
    let grown = |server: &'_ ServerStats| server.activity.get(&Activity::TableBlocksGrown).copied();
    warmup.chain(&step.servers).filter_map(move |server| Some((server.node.as_str(), grown(server)?)))
}
