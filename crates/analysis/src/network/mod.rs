//! Why a network carries no more: what both ends saw of themselves, and what follows of it.
//!
//! docs/method/network.md says what each figure means, and where thresholds come from.

mod bits;
mod cause;
mod matrix;
mod one_host;
mod seen;
mod stop;
mod survey;
#[cfg(test)]
mod tests;
mod way;
mod words;

use super::Finding;
use super::measured::measured;
use model::platforms;
use model::record::{NetworkSide, Run};

pub use cause::{NetworkBurst, NetworkCause, NoProcessor};
pub use matrix::{MatrixLink, NetworkMatrix, SlowLink};
pub(super) use one_host::is_one_host;
pub use seen::{CountedLoss, NetworkSeen};
pub use stop::{NetworkStop, stops_of};
pub use survey::{Bulk, BulkAnswer, NetworkSurvey, RoundTrip};
use way::Way;

/// Several flows that come to this many times what one does show that something holds each of them.
const MORE_THAN_ONE: f64 = 1.5;
/// As many are several.
const SEVERAL: u32 = 4;

/// What is to be said of a network.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum NetworkFinding {
    /// Where bulk data stopped, and why.
    Stop(NetworkStop),
    /// What both ends saw besides.
    Seen(NetworkSeen),
    /// A link of several that is slower than the others.
    SlowLink(SlowLink),
    /// What a survey answers besides its first sentence, in a sentence.
    Survey {
        /// That sentence.
        answer: String,
    },
}

impl NetworkFinding {}

/// All that is to be said of the network of a run.
pub(super) fn find(run: &Run) -> Vec<Finding> {
    let mut stops: Vec<NetworkStop> = Vec::new();
    for stop in measured(run).flat_map(stops_of) {
        let is_same = |known: &&mut NetworkStop| {
            (known.from, &known.server, known.flows) == (stop.from, &stop.server, stop.flows)
                && std::mem::discriminant(&known.cause) == std::mem::discriminant(&stop.cause)
        };
        match stops.iter_mut().find(is_same) {
            Some(known) => {
                known.steps.extend(stop.steps);
                known.bits_per_s = known.bits_per_s.min(stop.bits_per_s);
                known.most_bits_per_s = known.most_bits_per_s.max(stop.most_bits_per_s);
            }
            None => stops.push(stop),
        }
    }
    // On one host no network holds a flow, but the processor that its threads share.
    let sides = [NetworkSide::Client, NetworkSide::Server].into_iter().filter(|_| !is_one_host(run));
    let one_flow = sides.filter_map(|from| one_flow(run, from));
    let seen: Vec<NetworkSeen> = one_flow.chain(seen::find(run)).collect();
    let is_one_host = is_one_host(run);
    let stops = stops.into_iter().map(|stop| NetworkFinding::Stop(NetworkStop { is_one_host, ..stop }));
    let slow = NetworkMatrix::of(run).map(|matrix| matrix.slow).unwrap_or_default();
    let survey = NetworkSurvey::of(run).map(|survey| survey.lines()).unwrap_or_default();
    let seen = seen.into_iter().map(NetworkFinding::Seen);
    let slow = slow.into_iter().map(NetworkFinding::SlowLink);
    slow.chain(stops)
        .chain(survey.into_iter().map(|answer| NetworkFinding::Survey { answer }))
        .chain(seen)
        .map(Finding::Network)
        .collect()
}

/// One flow against several in the same direction. What stops a single one at its ends has been said: a processor, a window, a buffer.
fn one_flow(run: &Run, from: NetworkSide) -> Option<NetworkSeen> {
    let ways: Vec<Way<'_>> = measured(run)
        .flat_map(|step| if let [_] = Way::all(step).as_slice() { Way::all(step) } else { Vec::new() })
        .filter(|way| way.from == from)
        .collect();
    let rate = |way: &&Way<'_>| way.bits_per_s();
    let alone = ways.iter().find(|way| way.flows() == 1)?;
    let several = ways
        .iter()
        .filter(|way| way.flows() >= SEVERAL)
        .max_by(|left, right| rate(left).unwrap_or(0.0).total_cmp(&rate(right).unwrap_or(0.0)))?;
    let (one_bits_per_s, several_bits_per_s) = (alone.bits_per_s()?, several.bits_per_s()?);
    let is_held_outside = matches!(
        NetworkCause::of(alone),
        None | Some(
            NetworkCause::Shaper { .. }
                | NetworkCause::Policer { .. }
                | NetworkCause::Loss { .. }
                | NetworkCause::TokenBucket(_)
        )
    );
    (is_held_outside && several_bits_per_s >= MORE_THAN_ONE * one_bits_per_s).then(|| NetworkSeen::OneFlow {
        one: alone.step.label.clone(),
        one_bits_per_s,
        several: several.step.label.clone(),
        flows: several.flows(),
        several_bits_per_s,
        like: platforms::flow_like(run.environment.machine.as_deref(), one_bits_per_s),
    })
}
