//! What processors are doing and what holds them back, read at the edges of intervals: `/proc/stat`, control groups, pressure,
//! clocks and sensors. What the kernel hides is unknown.

mod sensors;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::os::{Quota, Root, Throttling, mounts, proc, ticks_per_second};
use model::record::{HostStats, ProcessorStats, ProcessorTimes};

/// What is read of the machine.
#[derive(Debug)]
pub struct HostProbe {
    root: Root,
    processors: Vec<u32>,
    quota: Quota,
    sensors: Vec<String>,
    ticks_per_second: Option<u64>,
}

/// Counters at one instant. Only the difference of two means something.
#[derive(Debug, Clone, Default)]
pub struct HostReading {
    instant_ns: u64,
    /// Busy and stolen time of each processor that is looked at.
    processors: BTreeMap<u32, (u64, Option<u64>)>,
    /// The smallest limit, and the group that has it.
    smallest: Option<(f64, PathBuf)>,
    throttled: Throttling,
    thermal_throttles: Option<u64>,
    frequency_hz: Option<u64>,
    temperature_celsius: Option<f64>,
    cpu_pressure_ns: Option<u64>,
    memory_pressure_ns: Option<u64>,
}

impl HostProbe {
    /// Looks at this machine, and at these of its processors.
    pub fn new(processors: Vec<u32>) -> Self {
        Self::under(Root::default(), processors)
    }

    /// The same with the kernel's files below another root.
    pub fn under(root: Root, processors: Vec<u32>) -> Self {
        let quota = Quota::of(&root, &mounts::all(&root), "self");
        let sensors = sensors::of_processors(&root);
        Self { root, processors, quota, sensors, ticks_per_second: ticks_per_second() }
    }

    /// Processors that the control groups around this process leave it, where one limits it.
    pub fn quota_processors(&self) -> Option<f64> {
        self.quota.smallest(&self.root).map(|(processors, _)| processors)
    }

    /// Reads everything. Takes some tenths of a millisecond, and more on a machine with many processors.
    pub fn read(&self, instant_ns: u64) -> HostReading {
        let root = &self.root;
        let stat = root.text("/proc/stat").unwrap_or_default();
        let times = |number: &u32| {
            let time = proc::one_cpu(&stat, *number, self.ticks_per_second?)?;
            Some((*number, (time.user_ns.checked_add(time.system_ns)?, time.steal_ns)))
        };
        HostReading {
            instant_ns,
            processors: self.processors.iter().filter_map(times).collect(),
            smallest: self.quota.smallest(root).map(|(processors, group)| (processors, group.to_owned())),
            throttled: self.quota.throttled(root),
            thermal_throttles: sensors::throttles(root, &self.processors),
            frequency_hz: sensors::frequency_hz(root, &self.processors),
            temperature_celsius: sensors::hottest(root, &self.sensors),
            cpu_pressure_ns: pressure_ns(root, "cpu"),
            memory_pressure_ns: pressure_ns(root, "memory"),
        }
    }
}

impl HostReading {
    /// What happened since `earlier`. `own` is what threads of the load did on each processor.
    pub fn since(&self, earlier: &Self, own: &[(u32, OwnTimes)]) -> HostStats {
        let times = |(number, own): &(u32, OwnTimes)| {
            let both = self.processors.get(number).zip(earlier.processors.get(number));
            let busy_ns = both.and_then(|(later, earlier)| later.0.checked_sub(earlier.0));
            let steal_ns = both.and_then(|(later, earlier)| later.1?.checked_sub(earlier.1?));
            let times = ProcessorTimes { busy_ns, steal_ns, own_ns: own.cpu_ns, operations: own.operations };
            ProcessorStats { number: *number, times }
        };
        let processors: Vec<ProcessorStats> = own.iter().map(times).collect();
        let mut loaded = ProcessorTimes::NOTHING;
        processors.iter().for_each(|processor| loaded.add(&processor.times));
        let counted = |later: Option<u64>, earlier: Option<u64>| later?.checked_sub(earlier?);
        let most = self.throttled.most_since(&earlier.throttled);
        // Where another group was held back, the smallest limit is not what did it.
        let is_smallest = |group: &Path| most.is_none_or(|(held, of)| held == group || of.throttled_periods == 0);
        let quota_processors = self.smallest.as_ref().filter(|(_, group)| is_smallest(group)).map(|(limit, _)| *limit);
        HostStats {
            elapsed_ns: self.instant_ns.saturating_sub(earlier.instant_ns),
            work: BTreeMap::new(),
            loaded,
            processors,
            quota_processors,
            throttled: most.map(|(_, held)| held),
            thermal_throttles: counted(self.thermal_throttles, earlier.thermal_throttles),
            frequency_hz: self.frequency_hz,
            temperature_celsius: self.temperature_celsius,
            cpu_pressure_ns: counted(self.cpu_pressure_ns, earlier.cpu_pressure_ns),
            memory_pressure_ns: counted(self.memory_pressure_ns, earlier.memory_pressure_ns),
        }
    }
}

/// What a thread of the load did between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnTimes {
    /// Its processor time.
    pub cpu_ns: u64,
    /// Operations that it finished.
    pub operations: u64,
}

/// `some … total=` of a file in `/proc/pressure`: time in which some task waited.
fn pressure_ns(root: &Root, file: &str) -> Option<u64> {
    let text = root.text(format!("/proc/pressure/{file}"))?;
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let micros: u64 = some.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()?;
    micros.checked_mul(1_000)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use model::record::Throttled;

    fn put(directory: &Path, path: &str, text: &str) {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_difference_has_what_each_loaded_processor_did_and_what_held_them_back() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        put(at, "proc/self/cgroup", "0::/app\n");
        put(at, "proc/self/mountinfo", "2 1 0:9 / /sys/fs/cgroup rw - cgroup2 none rw\n");
        put(at, "sys/fs/cgroup/app/cpu.max", "50000 100000\n");
        put(at, "sys/fs/cgroup/app/cpu.stat", "usage_usec 1\nnr_periods 10\nnr_throttled 2\nthrottled_usec 100\n");
        put(at, "proc/stat", "cpu 1 1 1 1\ncpu0 10 0 10 100 0 0 0 5 0 0\ncpu1 7 0 0 0 0 0 0 0 0 0\n");
        put(at, "proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\n");
        put(at, "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "2000000\n");
        put(at, "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "3\n");
        let probe = HostProbe::under(Root::at(at), vec![1]);
        assert_eq!(probe.quota_processors(), Some(0.5));
        let earlier = probe.read(1_000);
        put(at, "sys/fs/cgroup/app/cpu.stat", "usage_usec 1\nnr_periods 20\nnr_throttled 11\nthrottled_usec 700\n");
        put(at, "proc/stat", "cpu 1 1 1 1\ncpu0 10 0 10 100 0 0 0 5 0 0\ncpu1 57 0 0 0 0 0 0 4 0 0\n");
        put(at, "proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=3500\n");
        put(at, "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "5\n");
        let own = OwnTimes { cpu_ns: 400, operations: 9 };
        let seen = probe.read(5_000).since(&earlier, &[(1, own)]);
        let tick = 1_000_000_000 / ticks_per_second().unwrap();
        let times = ProcessorTimes { busy_ns: Some(50 * tick), steal_ns: Some(4 * tick), own_ns: 400, operations: 9 };
        assert_eq!((seen.elapsed_ns, seen.loaded), (4_000, times));
        assert_eq!(seen.processors, [ProcessorStats { number: 1, times }]);
        let throttled = Throttled { periods: 10, throttled_periods: 9, throttled_ns: 600_000 };
        assert_eq!((seen.throttled, seen.quota_processors), (Some(throttled), Some(0.5)));
        assert_eq!((seen.cpu_pressure_ns, seen.memory_pressure_ns), (Some(2_500_000), None));
        assert_eq!((seen.frequency_hz, seen.thermal_throttles), (Some(2_000_000_000), Some(2)));
    }

    #[test]
    fn a_hidden_kernel_tells_nothing_but_what_threads_did() {
        let directory = tempfile::tempdir().unwrap();
        let probe = HostProbe::under(Root::at(directory.path()), vec![0]);
        let seen = probe.read(2).since(&probe.read(1), &[(0, OwnTimes { cpu_ns: 1, operations: 2 })]);
        let loaded = ProcessorTimes { busy_ns: None, steal_ns: None, own_ns: 1, operations: 2 };
        let processors = vec![ProcessorStats { number: 0, times: loaded }];
        assert_eq!(seen, HostStats { elapsed_ns: 1, loaded, processors, ..HostStats::default() });
    }
}
