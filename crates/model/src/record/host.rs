//! What a machine's processors did while load ran, and what held them back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Processors, limits and sensors of the machine between two readings. What the kernel does not report is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct HostStats {
    /// Time between the two readings.
    pub elapsed_ns: u64,
    /// What was done, in the units of each kind of work: `checksum` in blocks, `memory-triad` in bytes, …
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub work: BTreeMap<String, u64>,
    /// All processors that the load was on, added up.
    #[serde(default)]
    pub loaded: ProcessorTimes,
    /// Each of them; of a whole step only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processors: Vec<ProcessorStats>,
    /// Processors that the control group of this process, or one around it, may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_processors: Option<f64>,
    /// How often that limit held the group back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Throttled>,
    /// Times that processors were slowed because they were hot, as the kernel counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thermal_throttles: Option<u64>,
    /// Clock of the loaded processors, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_hz: Option<u64>,
    /// The hottest sensor of a processor; of a step the highest reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_celsius: Option<f64>,
    /// Time in which some task of the machine waited for a processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_pressure_ns: Option<u64>,
    /// Time in which some task of the machine waited for memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_pressure_ns: Option<u64>,
}

/// What processors did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ProcessorTimes {
    /// Busy with anybody's work, interrupts included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_ns: Option<u64>,
    /// Taken by the hypervisor for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal_ns: Option<u64>,
    /// Busy with the load's own threads.
    pub own_ns: u64,
    /// Operations of the load that finished.
    pub operations: u64,
}

/// One processor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ProcessorStats {
    /// Its number, as the kernel has it.
    pub number: u32,
    /// What it did.
    #[serde(flatten)]
    pub times: ProcessorTimes,
}

/// What a limit on processor time did to a control group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Throttled {
    /// Periods in which the group had something to do.
    pub periods: u64,
    /// Of these, in how many it was held back.
    pub throttled_periods: u64,
    /// Time for which it was, summed over processors.
    pub throttled_ns: u64,
}

impl Throttled {
    /// Adds what happened after it.
    pub fn add(&mut self, other: &Self) {
        self.periods = self.periods.saturating_add(other.periods);
        self.throttled_periods = self.throttled_periods.saturating_add(other.throttled_periods);
        self.throttled_ns = self.throttled_ns.saturating_add(other.throttled_ns);
    }

    /// What happened since `earlier`; none where a counter went backwards, as when the group is another.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        Some(Self {
            periods: self.periods.checked_sub(earlier.periods)?,
            throttled_periods: self.throttled_periods.checked_sub(earlier.throttled_periods)?,
            throttled_ns: self.throttled_ns.checked_sub(earlier.throttled_ns)?,
        })
    }
}

impl ProcessorTimes {
    /// Adds another processor's, or those of another time. What one of them does not know is unknown of both.
    pub fn add(&mut self, other: &Self) {
        let both = |a: Option<u64>, b: Option<u64>| a?.checked_add(b?);
        self.busy_ns = both(self.busy_ns, other.busy_ns);
        self.steal_ns = both(self.steal_ns, other.steal_ns);
        self.own_ns = self.own_ns.saturating_add(other.own_ns);
        self.operations = self.operations.saturating_add(other.operations);
    }

    /// Nothing, of which all is known.
    pub const NOTHING: Self = Self { busy_ns: Some(0), steal_ns: Some(0), own_ns: 0, operations: 0 };
}

impl HostStats {
    /// Adds what was seen after it.
    pub fn add(&mut self, other: &Self) {
        // A clock is a mean over time, so it is weighed by that.
        let weighed = |hz: u64, ns: u64| u128::from(hz) * u128::from(ns);
        let all_ns = u128::from(self.elapsed_ns.saturating_add(other.elapsed_ns)).max(1);
        self.frequency_hz = self.frequency_hz.zip(other.frequency_hz).map(|(mine, theirs)| {
            ((weighed(mine, self.elapsed_ns) + weighed(theirs, other.elapsed_ns)) / all_ns) as u64
        });
        self.elapsed_ns = self.elapsed_ns.saturating_add(other.elapsed_ns);
        for (kind, units) in &other.work {
            let sum = self.work.entry(kind.clone()).or_default();
            *sum = sum.saturating_add(*units);
        }
        self.loaded.add(&other.loaded);
        for more in &other.processors {
            match self.processors.iter_mut().find(|known| known.number == more.number) {
                Some(known) => known.times.add(&more.times),
                None => self.processors.push(more.clone()),
            }
        }
        self.quota_processors = self.quota_processors.into_iter().chain(other.quota_processors).reduce(f64::min);
        self.throttled = self.throttled.zip(other.throttled).map(|(mut both, theirs)| {
            both.add(&theirs);
            both
        });
        let both = |mine: Option<u64>, theirs: Option<u64>| mine?.checked_add(theirs?);
        self.thermal_throttles = both(self.thermal_throttles, other.thermal_throttles);
        self.temperature_celsius =
            self.temperature_celsius.into_iter().chain(other.temperature_celsius).reduce(f64::max);
        self.cpu_pressure_ns = both(self.cpu_pressure_ns, other.cpu_pressure_ns);
        self.memory_pressure_ns = both(self.memory_pressure_ns, other.memory_pressure_ns);
    }
}

/// How the processors of a machine lie.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Topology {
    /// Processors as the kernel counts them, in its order.
    pub processors: Vec<Processor>,
    /// NUMA nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NumaNode>,
    /// Caches of the first processor that hold data, the nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<Cache>,
}

/// One processor: a hardware thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Processor {
    /// Its number.
    pub number: u32,
    /// Number of its core in its socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
    /// Number of its socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<u32>,
}

/// Memory and the processors near to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct NumaNode {
    /// Its number.
    pub number: u32,
    /// Numbers of its processors.
    pub processors: Vec<u32>,
    /// Its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Distances to all nodes as the firmware has them, 10 to itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distances: Vec<u32>,
}

/// One cache.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Cache {
    /// 1, 2, 3, …
    pub level: u32,
    /// Its size.
    pub bytes: u64,
    /// Processors that share it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_by: Option<u32>,
}

impl Topology {
    /// Cores, each once however many hardware threads it has; absent where a processor does not say.
    pub fn cores(&self) -> Option<u32> {
        let cores: Option<std::collections::BTreeSet<(u32, u32)>> =
            self.processors.iter().map(|processor| Some((processor.socket?, processor.core?))).collect();
        cores.and_then(|cores| u32::try_from(cores.len()).ok()).filter(|cores| *cores > 0)
    }

    /// Of `among`, the first hardware thread of each core.
    pub fn one_of_each_core(&self, among: &[u32]) -> Vec<u32> {
        let mut seen = std::collections::BTreeSet::new();
        let core = |number: &u32| self.processors.iter().find(|processor| processor.number == *number);
        among
            .iter()
            .filter(|number| match core(number).map(|found| (found.socket, found.core)) {
                Some((Some(socket), Some(core))) => seen.insert((socket, core)),
                _ => true,
            })
            .copied()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processor(number: u32, core: u32) -> Processor {
        Processor { number, core: Some(core), socket: Some(0) }
    }

    #[test]
    fn hardware_threads_of_one_core_are_one_core() {
        let processors = vec![processor(0, 0), processor(1, 1), processor(2, 0), processor(3, 1)];
        let mut topology = Topology { processors, ..Topology::default() };
        assert_eq!(topology.cores(), Some(2));
        assert_eq!(topology.one_of_each_core(&[3, 0, 1]), [3, 0]);
        topology.processors[0].core = None;
        assert_eq!(topology.cores(), None);
        assert_eq!(Topology::default().cores(), None);
    }

    #[test]
    fn what_one_reading_does_not_know_is_unknown_of_both() {
        let second = |steal_ns, celsius| HostStats {
            elapsed_ns: 1_000,
            loaded: ProcessorTimes { busy_ns: Some(900), steal_ns, own_ns: 800, operations: 5 },
            frequency_hz: Some(3_000),
            temperature_celsius: celsius,
            work: BTreeMap::from([("checksum".to_owned(), 7)]),
            ..HostStats::default()
        };
        let mut both = second(Some(10), Some(60.0));
        both.add(&HostStats { frequency_hz: Some(1_000), ..second(None, Some(70.0)) });
        assert_eq!(both.loaded, ProcessorTimes { busy_ns: Some(1_800), steal_ns: None, own_ns: 1_600, operations: 10 });
        assert_eq!((both.frequency_hz, both.temperature_celsius, both.work["checksum"]), (Some(2_000), Some(70.0), 14));
    }
}
