//! What was seen in one interval of a step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    ChannelStats, Counters, CpuTime, DeviceStats, Histogram, HostStats, Looks, Moments, NetworkEnd, ServerStats,
    SlowOperations, TraceStats,
};

/// What was seen in one second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Interval {
    /// Step it belongs to.
    pub step: u32,
    /// From the start of the step's load to the start of the interval.
    pub offset_ns: u64,
    /// Length; the last one of a step may be short.
    pub duration_ns: u64,
    /// Whether it lies in the warm-up, outside the measured window.
    pub warmup: bool,
    /// Engine counts.
    pub counters: Counters,
    /// Waits that ended in the interval, by event name.
    pub waits: BTreeMap<String, Histogram>,
    /// Response times of all operations together.
    pub response: Histogram,
    /// Processor time of this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_cpu: Option<CpuTime>,
    /// Devices below the target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceStats>,
    /// What each database server reported on itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerStats>,
    /// What kernel tracing timed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TraceStats>,
    /// What the processors did, where the load was on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostStats>,
    /// What each end of a network test saw of itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<NetworkEnd>,
    /// What each way to storage carried, without histograms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<ChannelStats>,
    /// Operations that took far longer than most; absent where there were none, or where they were not looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<SlowOperations>,
    /// What the system did in shorter spans, of this interval and before, where operations were slow; of a minute, then of every tenth interval, in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moments: Option<Moments>,
    /// What each database server was seen doing, looked at many times a second; of the same time as `moments`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<Looks>,
    /// Figures of an imported run by the names that [`Step::reported`](super::Step::reported) uses, of this interval.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reported: BTreeMap<String, f64>,
}

impl Interval {
    /// Keeps its histograms in little memory, as a run does that has one interval for every second of hours.
    pub fn pack(&mut self) {
        self.response.pack();
        self.waits.values_mut().for_each(Histogram::pack);
    }
}
