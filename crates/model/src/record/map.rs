//! A map of what storage carries: the rates of reads and of writes at which a limit is still kept.

use serde::{Deserialize, Serialize};

use crate::config::io::{BlockSize, Durable};

/// Random reads and writes at rates of their own, at points that are found on the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct IoMap {
    /// Length of a request.
    pub block: BlockSize,
    /// The latency that reads and writes must each keep, such as `p99=5ms`.
    pub limit: String,
    /// Least share of reads, in percent of the requests.
    pub least_read_pct: u8,
    /// Largest share of reads.
    pub most_read_pct: u8,
    /// Least rate of all requests that is tried, per second.
    pub lowest_per_s: f64,
    /// Largest rate of them.
    pub highest_per_s: f64,
    /// How well the line is to be known, as a share of the rate: `0.05` is 5 % to either side.
    pub within: f64,
    /// Points that are measured at most, repeats included.
    pub most_points: u32,
    /// When writes count as durable.
    #[serde(default, skip_serializing_if = "crate::text::is_default")]
    pub durable: Durable,
    /// What is to be inside of the line; absent where nothing was demanded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demand: Option<MapDemand>,
}

/// Reads and writes per second that storage is to carry.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct MapDemand {
    /// Reads per second.
    pub reads_per_s: f64,
    /// Writes per second.
    pub writes_per_s: f64,
}

/// A point of a map, as it was requested: a mix of reads and writes, and a rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct IoMapLevel {
    /// The mix that it belongs to, counted from 0 in the order in which mixes were begun.
    pub mix: u32,
    /// The share of reads of that mix, 0 to 1.
    pub read_share: f64,
    /// Requests per second.
    pub per_s: f64,
}

impl IoMapLevel {
    /// Reads per second.
    pub fn reads_per_s(self) -> f64 {
        self.per_s * self.read_share
    }

    /// Writes per second.
    pub fn writes_per_s(self) -> f64 {
        self.per_s * (1.0 - self.read_share)
    }
}
