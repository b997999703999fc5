//! What database servers reported on themselves: rates and shares of it, and what it means for the figures of a run.

mod activity;
mod cache;
mod exhausted;
mod figures;
mod finding;
mod own_report;
mod processors;
mod shape;
mod stopped;
#[cfg(test)]
mod tests;

pub use figures::{Served, imbalance, is_on_server, is_on_servers};
pub use finding::ServerFinding;
pub use own_report::{Beside, BesideLine, BesideUnit, MAX_AGREEING, Why as BesideWhy};
pub use processors::Processors;
pub use stopped::{Stops, UsedBy};

use super::Finding;
use model::record::Run;

/// Everything that is to be said about servers.
pub(super) fn find(run: &Run) -> Vec<Finding> {
    if !is_on_servers(run) {
        return Vec::new();
    }
    let found =
        exhausted::find(run).into_iter().chain(shape::find(run)).chain(cache::find(run)).chain(activity::find(run));
    found.map(Finding::Server).collect()
}

pub(super) use exhausted::are_exhausted;
