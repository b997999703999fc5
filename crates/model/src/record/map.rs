//! A map: the rates of reads and of changes at which a limit is still kept.

use serde::{Deserialize, Serialize};

use super::SlobLoad;
use crate::config::io::{BlockSize, Durable};

/// Random reads and writes of raw storage at rates of their own, at points that are found on the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct IoMap {
    /// Length of a request.
    pub block: BlockSize,
    /// When writes count as durable.
    #[serde(default, skip_serializing_if = "crate::text::is_default")]
    pub durable: Durable,
    /// Which points are looked for.
    #[serde(flatten)]
    pub search: MapSearch,
}

/// Reads and updates of SLOB's method at rates of their own, at points that are found on the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct SlobMap {
    /// What operations are; `UPDATE_PCT` is that of the points.
    #[serde(flatten)]
    pub load: SlobLoad,
    /// Which points are looked for.
    #[serde(flatten)]
    pub search: MapSearch,
}

/// Which points of a map are looked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct MapSearch {
    /// What is counted.
    #[serde(default, skip_serializing_if = "crate::text::is_default")]
    pub of: MapOf,
    /// The latency that reads and changes must each keep, such as `p99=5ms`.
    pub limit: String,
    /// Least share of reads, in percent of all.
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
    /// What is to be inside of the line; absent where nothing was demanded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demand: Option<MapDemand>,
}

/// What a map counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MapOf {
    /// Requests to storage: reads and writes.
    #[default]
    Requests,
    /// Operations of SLOB's method: reads and updates.
    Operations,
}

impl MapOf {
    /// The kinds of which each has a rate, by the names under which they are timed: reads first.
    pub const fn kinds(self) -> [&'static str; 2] {
        match self {
            Self::Requests => ["read", "write"],
            Self::Operations => ["read", "update"],
        }
    }

    /// What changes something, of which there are several.
    pub const fn changes(self) -> &'static str {
        match self {
            Self::Requests => "writes",
            Self::Operations => "updates",
        }
    }

    /// What carries it.
    pub const fn carrier(self) -> &'static str {
        match self {
            Self::Requests => "storage",
            Self::Operations => "the database",
        }
    }

    /// Both kinds together.
    pub const fn all(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Operations => "operations",
        }
    }
}

/// Reads and changes per second that are to be inside of the line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct MapDemand {
    /// Reads per second.
    pub reads_per_s: f64,
    /// Writes per second, or updates.
    pub writes_per_s: f64,
}

/// A point of a map, as it was requested: a mix of reads and changes, and a rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct MapLevel {
    /// The mix that it belongs to, counted from 0 in the order in which mixes were begun.
    pub mix: u32,
    /// The share of reads of that mix, 0 to 1.
    pub read_share: f64,
    /// Requests or operations per second.
    pub per_s: f64,
}

impl MapLevel {
    /// Reads per second.
    pub fn reads_per_s(self) -> f64 {
        self.per_s * self.read_share
    }

    /// Writes per second, or updates.
    pub fn writes_per_s(self) -> f64 {
        self.per_s * (1.0 - self.read_share)
    }
}
