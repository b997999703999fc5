//! Where bulk data stopped, in each direction of a step.

use super::cause::NetworkCause;
use super::way::Way;
use model::record::{NetworkSide, Step};

/// Where bulk data stopped in one direction, and why.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct NetworkStop {
    /// Labels of the steps that were stopped by the same.
    pub steps: Vec<String>,
    /// The server, where the run has several.
    pub server: Option<String>,
    /// Who sent.
    pub from: NetworkSide,
    /// Connections.
    pub flows: u32,
    /// What was received, in bits per second: in the slowest of the steps.
    pub bits_per_s: f64,
    /// The same in the fastest.
    pub most_bits_per_s: f64,
    /// Why it was not more.
    pub cause: NetworkCause,
    /// Whether both ends are known to be one host, whose processors they share.
    pub is_one_host: bool,
}

/// Why bulk data stopped in a step, in each direction in which it went; absent where nothing can be known.
pub fn stops_of(step: &Step) -> Vec<NetworkStop> {
    let stop = |way: &Way<'_>| {
        let bits_per_s = way.bits_per_s()?;
        Some(NetworkStop {
            steps: vec![step.label.clone()],
            server: way.server.map(str::to_owned),
            from: way.from,
            flows: way.flows(),
            bits_per_s,
            most_bits_per_s: bits_per_s,
            cause: NetworkCause::of(way)?,
            is_one_host: false,
        })
    };
    Way::all(step).iter().filter_map(stop).collect()
}
