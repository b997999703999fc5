//! What a database server reported on itself, by its counters and in a report of its own, and what kernel tracing saw below it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Activity, Counters, CpuTime, Gauge, SessionState, Throttled, WaitStats};

/// One database server in one window or interval, as the difference of two readings of its own counters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ServerStats {
    /// Which server: `db1:5432`, the directory of its socket, or the name of an instance of a cluster that was reached over one
    /// address.
    pub node: String,
    /// Time between the two readings.
    pub elapsed_ns: u64,
    /// What has the same meaning in every database.
    pub counters: Counters,
    /// What else the server counted, by its meaning.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub activity: BTreeMap<Activity, u64>,
    /// Levels that it reports: the largest that was read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gauges: BTreeMap<Gauge, u64>,
    /// The server's own counters by its own names, such as `pg_stat_wal.wal_fpi`; times in nanoseconds end in `_ns`.
    pub own: BTreeMap<String, u64>,
    /// Samples of what the load's sessions were doing, by `type:event` in the server's words; a session that used or
    /// wanted a processor counts as `CPU`.
    pub session_samples: BTreeMap<String, u64>,
    /// What those words mean.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub session_states: BTreeMap<String, SessionState>,
    /// How often sessions were looked at; samples divided by it are sessions on average.
    pub sampled_times: u64,
    /// Processor time of all processes of the server, where it runs on this machine and lets us see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuTime>,
    /// Time for which these processes were ready to run and did not, waiting for a processor or held back by a quota, summed over them.
    /// At least that: what processes that ended had waited since the reading before is not in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_delay_ns: Option<u64>,
    /// What a quota on processor time did to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Throttled>,
    /// Waits of this instance alone: where an imported run was joined with a report of its own, and where servers that time their
    /// waits are several. Those of an only server are the step's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<WaitStats>,
}

/// `count` per second over `duration_ns`.
pub fn rate(count: Option<u64>, duration_ns: u64) -> Option<f64> {
    let count = count?;
    (duration_ns > 0).then(|| count as f64 * 1e9 / duration_ns as f64)
}

/// What was counted, per second. What servers count is divided by the time between their own readings, which need not
/// have been taken at the edges of the window; it is unknown if one of several servers does not report.
pub fn counted_per_s(
    counters: &Counters,
    servers: &[ServerStats],
    duration_ns: u64,
    count: impl Fn(&Counters) -> Option<u64>,
) -> Option<f64> {
    if servers.iter().all(|server| count(&server.counters).is_none()) {
        return rate(count(counters), duration_ns);
    }
    servers.iter().map(|server| rate(count(&server.counters), server.elapsed_ns)).sum()
}

impl ServerStats {
    /// Whether it keeps redo of changed blocks, which it writes in place later and past the page cache. Such servers report levels of
    /// what they hold back, or count the blocks of their requests.
    pub fn keeps_redo(&self) -> bool {
        !self.gauges.is_empty() || self.counters.physical_read_blocks.is_some()
    }

    /// Adds the readings that followed, of the same server.
    pub fn add(&mut self, other: &Self) {
        let Self {
            node: _,
            elapsed_ns,
            counters,
            activity,
            gauges,
            own,
            session_samples,
            session_states,
            sampled_times,
            cpu,
            run_delay_ns,
            throttled,
            waits,
        } = other;
        self.elapsed_ns += elapsed_ns;
        self.counters.add(counters);
        add_by_name(&mut self.activity, activity);
        for (gauge, level) in gauges {
            let largest = self.gauges.entry(*gauge).or_default();
            *largest = (*largest).max(*level);
        }
        add_by_name(&mut self.own, own);
        add_by_name(&mut self.session_samples, session_samples);
        self.session_states.extend(session_states.iter().map(|(name, state)| (name.clone(), *state)));
        self.sampled_times += sampled_times;
        WaitStats::add_to(&mut self.waits, waits);
        if let Some(more) = cpu {
            let sum = self.cpu.get_or_insert_default();
            sum.user_ns += more.user_ns;
            sum.system_ns += more.system_ns;
        }
        if let Some(more) = run_delay_ns {
            *self.run_delay_ns.get_or_insert_default() += more;
        }
        if let Some(more) = throttled {
            self.throttled.get_or_insert_default().add(more);
        }
    }
}

/// A report that a database made of itself, between two snapshots that were taken for it at the edges of the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct OwnReport {
    /// What made it: `AWR` or `Statspack`.
    pub kind: String,
    /// Which server, as [`ServerStats::node`] has it.
    pub node: String,
    /// The instance that it is of, by the number that the database gives it.
    pub instance: u64,
    /// Number of the snapshot before the window.
    pub begin_snapshot: u64,
    /// Number of the snapshot after it.
    pub end_snapshot: u64,
    /// From the request for the first snapshot to the beginning of the window.
    pub lead_ns: u64,
    /// How much of the window had passed when the first snapshot was there; 0 where that was in time.
    pub overlap_ns: u64,
    /// From the end of the window until the second snapshot was there.
    pub lag_ns: u64,
    /// File of the run's directory that holds the report; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What it says was counted, under the names that `servers` of the step uses; absent where nobody has read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<ServerStats>,
    /// What its reader must know, such as figures in it that cannot be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

fn add_by_name<K: Clone + Ord>(sums: &mut BTreeMap<K, u64>, more: &BTreeMap<K, u64>) {
    for (name, count) in more {
        *sums.entry(name.clone()).or_default() += count;
    }
}

/// Calls or requests of one kind that kernel tracing timed, in power-of-two buckets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct TraceStats {
    /// `OS file` (system calls of the server's processes, answered by page cache or device) or `device`.
    pub layer: String,
    /// What was timed: `data read`, `data write`, `data sync`, `wal write`, `wal sync`, `redo write`, `redo sync`, `read`, `write`, `flush`.
    pub event: String,
    /// The device, where the layer is `device`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Time that the counts are of.
    pub elapsed_ns: u64,
    /// How many.
    pub count: u64,
    /// How many the kernel itself counted in the same time, of a device's requests. Tracing misses those that end while
    /// their processor runs another tracing program, so this may be more; times and bytes are of `count` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_by_kernel: Option<u64>,
    /// Bytes moved by them.
    pub bytes: u64,
    /// Sum of their durations.
    pub total_ns: u64,
    /// Counts: element `k` holds those shorter than 2^k µs and not shorter than 2^(k-1) µs; element 0 those below 1 µs.
    pub buckets: Vec<u64>,
}

impl TraceStats {
    /// Adds what was traced after it, of the same kind.
    pub fn add(&mut self, other: &Self) {
        let Self { layer: _, event: _, device: _, elapsed_ns, count, counted_by_kernel, bytes, total_ns, buckets } =
            other;
        self.elapsed_ns += elapsed_ns;
        self.count += count;
        self.counted_by_kernel = self.counted_by_kernel.zip(*counted_by_kernel).map(|(sum, more)| sum + more);
        self.bytes += bytes;
        self.total_ns += total_ns;
        if self.buckets.len() < buckets.len() {
            self.buckets.resize(buckets.len(), 0);
        }
        for (sum, more) in self.buckets.iter_mut().zip(buckets) {
            *sum += more;
        }
    }

    /// Whether both are of the same kind.
    pub fn is_same_kind(&self, other: &Self) -> bool {
        (&self.layer, &self.event, &self.device) == (&other.layer, &other.event, &other.device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_followed_is_added_and_the_unknown_stays_unknown() {
        let stats = |commits, fpi, cpu| ServerStats {
            node: "db1:5432".to_owned(),
            elapsed_ns: 10,
            counters: Counters { commits, ..Counters::default() },
            activity: [(Activity::Rollbacks, fpi)].into(),
            gauges: [(Gauge::DirtyBlocks, 10 - fpi)].into(),
            own: [("pg_stat_wal.wal_fpi".to_owned(), fpi)].into(),
            session_samples: [("CPU".to_owned(), 2)].into(),
            sampled_times: 1,
            cpu,
            ..ServerStats::default()
        };
        let mut sum = stats(Some(1), 5, None);
        sum.add(&stats(Some(2), 7, Some(CpuTime { user_ns: 3, system_ns: 4, ..CpuTime::default() })));
        assert_eq!(sum.counters, Counters { commits: Some(3), ..Counters::default() });
        assert_eq!((sum.elapsed_ns, sum.own["pg_stat_wal.wal_fpi"], sum.session_samples["CPU"]), (20, 12, 4));
        assert_eq!((sum.activity[&Activity::Rollbacks], sum.gauges[&Gauge::DirtyBlocks]), (12, 5));
        assert_eq!((sum.sampled_times, sum.cpu.unwrap().system_ns), (2, 4));
    }

    #[test]
    fn traced_buckets_are_added_one_by_one() {
        let stats = |buckets: &[u64]| TraceStats {
            count: buckets.iter().sum(),
            counted_by_kernel: buckets.first().map(|first| first + 10),
            buckets: buckets.to_vec(),
            ..TraceStats::default()
        };
        let mut sum = stats(&[1, 2]);
        sum.add(&stats(&[0, 1, 4]));
        assert_eq!((sum.count, sum.buckets.as_slice()), (8, &[1, 3, 4][..]));
        assert_eq!(sum.counted_by_kernel, Some(21));
        sum.add(&TraceStats::default());
        assert_eq!(sum.counted_by_kernel, None, "what is unknown in part is unknown in all");
    }
}
