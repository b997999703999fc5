//! What a replay was to do: the trace, and what became of its requests.

use serde::{Deserialize, Serialize};

use super::{Histogram, Timestamp};
use crate::units::Nanos;

/// A trace that is replayed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ReplayLoad {
    /// Name of its file.
    pub trace: String,
    /// The program and form that it comes from.
    pub source: String,
    /// When its recording began; absent where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Timestamp>,
    /// Where in the trace the replayed window begins, in nanoseconds.
    pub from_ns: Nanos,
    /// How long the window was when it was recorded, in nanoseconds.
    pub duration_ns: Nanos,
    /// Whether the window is a part of the trace.
    pub is_part: bool,
    /// The recorded devices.
    pub devices: Vec<String>,
    /// Where requests went.
    pub placement: ReplayPlacement,
    /// Touched parts of 1 MiB that share their place with another, in percent; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_pct: Option<f64>,
    /// How far folding moves the hit ratios of caches of any size, at most, in points of 100; absent where addresses are not folded or
    /// nothing is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_hit_points: Option<f64>,
    /// Whether all but reads were left out.
    pub reads_only: bool,
    /// Discards that are not sent.
    pub discards: u64,
    /// Writes that were on the medium when acknowledged (FUA): a flush follows each.
    pub fua_writes: u64,
    /// Requests whose ends were moved to multiples of the target's unit.
    pub lengthened: u64,
    /// The requests of the window that are replayed, by kind, with their latencies when they were recorded.
    pub kinds: Vec<RecordedKind>,
    /// These by second of the window.
    pub by_second: Vec<u32>,
    /// What a multiple is.
    #[serde(default)]
    pub scale: ReplayScale,
    /// How often the window is replayed, one lap after the other: durations and counts here are of all laps.
    #[serde(default = "once")]
    pub laps: u32,
    /// Streams whose requests are not sent before the one before them has ended; absent where order is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chained: Option<ReplayChains>,
}

fn once() -> u32 {
    1
}

/// What a multiple of a trace is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReplayScale {
    /// Time runs so many times as fast.
    #[default]
    Pace,
    /// So many copies at other addresses, at the recorded pace. The last one is a part, with as large a share of the requests.
    Copies,
}

/// Streams that a trace shows to issue each request only after an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ReplayChains {
    /// How many.
    pub streams: u32,
    /// Their requests.
    pub requests: u64,
}

/// Where the requests of a replay go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReplayPlacement {
    /// Where they were, the devices one behind the other.
    #[default]
    AsRecorded,
    /// Touched parts of 1 MiB side by side, in their order.
    Compact,
    /// Where they were, modulo the size of the target.
    Folded,
}

impl ReplayPlacement {
    /// Its words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AsRecorded => "as recorded",
            Self::Compact => "compact",
            Self::Folded => "folded",
        }
    }
}

/// Requests of a kind in the recorded window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct RecordedKind {
    /// Its word, as in the operations of a step.
    pub kind: String,
    /// How many.
    pub requests: u64,
    /// Their bytes, as they are replayed.
    pub bytes: u64,
    /// Their latencies when they were recorded; absent where none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Histogram>,
}

impl ReplayLoad {
    /// All requests that are replayed.
    pub fn requests(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.requests).sum()
    }

    /// Requests at so many times the recorded load. Of the copy that is a part, each lap has whole requests.
    pub fn requests_at(&self, times: f64) -> u64 {
        let laps = u64::from(self.laps.max(1));
        match self.scale {
            ReplayScale::Pace => self.requests(),
            ReplayScale::Copies => {
                let of_lap = (self.requests() / laps) as f64;
                // Of 2.5 copies of 3 requests: 3 + 3 + 1.
                let (whole, part) = (times.floor(), times.fract());
                laps * ((of_lap * whole) as u64 + (of_lap * part).floor() as u64)
            }
        }
    }

    /// Requests per second over the recorded window.
    pub fn rate_per_s(&self) -> f64 {
        self.requests() as f64 * 1e9 / self.duration_ns.0.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_whole_requests_in_each_lap() {
        let kinds = vec![RecordedKind { requests: 6, ..RecordedKind::default() }];
        let load = ReplayLoad { kinds, laps: 2, ..ReplayLoad::default() };
        assert_eq!(load.requests_at(2.5), 6, "time that runs faster adds none");
        let copies = ReplayLoad { scale: ReplayScale::Copies, ..load };
        assert_eq!((copies.requests_at(1.0), copies.requests_at(2.5)), (6, 14));
    }
}
