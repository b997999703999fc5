//! Which part of a fleet's experiment a run is, what it knows of the others' clock, and what became of the parts in a merged run.

use serde::{Deserialize, Serialize};

use super::Outcome;

/// The part of a fleet that a run was. A part drives contiguous lanes and sessions of the whole experiment, so that all parts
/// together send what one process with all sessions would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FleetPart {
    /// Its number, from 0.
    pub number: u32,
    /// Parts of the experiment; at least 1 and more than `number`.
    pub parts: u32,
    /// Where both came from, such as `--part` or `OMPI_COMM_WORLD_RANK`.
    pub source: String,
    /// Digest of everything that decides the load: equal in all parts of one experiment. Hosts, paths and part numbers are not in it.
    pub configuration: String,
    /// What the parts agreed on as the start, by this host's clock: nanoseconds since 1970 in UTC. Absent where each began by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at_ns: Option<u64>,
    /// How far the load began from `start_at_ns`: positive is late. Absent where nothing was agreed on, or no load began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_error_ns: Option<i64>,
    /// This host's clock beside that of part 0; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockOffset>,
}

/// A clock beside another: what has to be added to its times to have the other's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClockOffset {
    /// Offset in nanoseconds by the exchange of the least round trip, before the load.
    pub before_ns: i64,
    /// The same after the load; absent where the end came without an exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ns: Option<i64>,
    /// Half of the least round trip: the true offset is no farther away than this.
    pub bound_ns: u64,
}

impl ClockOffset {
    /// What is added to this clock's times: the middle of both offsets where there are two.
    pub fn offset_ns(&self) -> i64 {
        self.after_ns.map_or(self.before_ns, |after_ns| self.before_ns.midpoint(after_ns))
    }

    /// How far the true offset may be away, at any time of the run: the bound, and half of what the clocks drifted meanwhile.
    pub fn uncertainty_ns(&self) -> u64 {
        let drift_ns = self.after_ns.map_or(0, |after_ns| after_ns.abs_diff(self.before_ns));
        self.bound_ns.saturating_add(drift_ns.div_ceil(2))
    }
}

/// How the parts of a fleet became one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Merged {
    /// Parts that the experiment had.
    pub parts: u32,
    /// Digest of everything that decided the load, which the parts have in common.
    pub configuration: String,
    /// Numbers of the parts of which there was no run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<u32>,
    /// What did not belong together and was merged all the same, because that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forced: Vec<String>,
    /// One element for each step of the run, in its order.
    pub steps: Vec<MergedStep>,
}

/// How the windows of the parts became that of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MergedStep {
    /// The step, by its index.
    pub step: u32,
    /// Parts that are in it.
    pub parts: u32,
    /// What its figures are of.
    pub windows: MergedWindows,
    /// How far the first intervals of the merged window begin apart in the parts, by the clock of part 0; unknown where parts have no
    /// intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart_ns: Option<u64>,
    /// How far a part's clock may be away from where it was taken to be, of the worst one; unknown where a clock was compared with
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_uncertainty_ns: Option<u64>,
    /// Whether the step has intervals: not where the parts' lie more than half a second apart, or some have none.
    pub has_intervals: bool,
}

/// What the figures of a merged step are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergedWindows {
    /// The whole windows of all parts, which lie over each other interval by interval: every figure is an exact sum.
    Whole,
    /// The intervals that all parts share. What intervals carry is an exact sum; what they do not is unknown, or of whole windows
    /// where it is a share or a lateness.
    Shared,
    /// The whole windows of all parts, although they do not lie over each other, since there are no intervals to cut them by. Counts
    /// are exact sums, rates are not.
    Apart,
}

/// One part of a merged run, as its own run has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MergedPart {
    /// Its number, from 0.
    pub number: u32,
    /// Host that it ran on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Processors that it could use there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Processor model of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Memory of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Kernel of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Id of its run.
    pub run: String,
    /// How its run ended.
    pub outcome: Outcome,
    /// Its clock beside that of part 0: that of the run, or no offset at all on the host of part 0. Absent where it is not known; its
    /// times were taken as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockOffset>,
    /// How far its load began from the agreed start: positive is late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_error_ns: Option<i64>,
    /// Steps that it is in.
    pub steps: Vec<PartStep>,
}

/// What one part did in one step, over the whole of its own window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PartStep {
    /// The step, by its index in the merged run.
    pub step: u32,
    /// Sessions that it drove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u32>,
    /// Rate that it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_operations_per_s: Option<f64>,
    /// Length of its window; 0 where its process was killed before it had any.
    pub window_ns: u64,
    /// Operations that finished in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// Of these, how many failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<u64>,
    /// Operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations_per_s: Option<f64>,
    /// Standard deviation of that from interval to interval; absent with fewer than two of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation_per_s: Option<f64>,
    /// Median of the response times of all operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<u64>,
    /// Their 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
    /// Processors that its process kept busy, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_processors: Option<f64>,
    /// Processor time of the busiest thread of its load generator, as a share of the window: 1 is saturated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_share: Option<f64>,
    /// Largest resident memory of its process so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
    /// What was cut from the beginning of its window.
    pub cut_before_ns: u64,
    /// What was cut from the end of it.
    pub cut_after_ns: u64,
}
