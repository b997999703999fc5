//! Rates and shares of what servers reported.

use std::collections::BTreeMap;

use crate::rate;
use model::record::{Activity, Gauge, Interval, Metric, Run, ServerStats, SessionState, Step, Throttled};

/// Layer of the waits that a server timed.
const LAYER: &str = "server";

/// Whether load landed on a database server, as far as the step reports.
pub fn is_on_server(step: &Step) -> bool {
    !step.servers.is_empty() || step.waits.iter().any(|wait| wait.layer == LAYER)
}

/// The same of a run.
pub fn is_on_servers(run: &Run) -> bool {
    run.steps.iter().any(is_on_server)
}

/// What one server or several reported on one window. Rates and counts are sums over them; each is absent where one of them
/// does not report what it needs. All sessions of the database are in them, not only those of the load.
#[derive(Debug, Clone, Copy)]
pub struct Served<'a> {
    servers: &'a [ServerStats],
    block_bytes: Option<u64>,
    data_bytes: Option<u64>,
}

impl<'a> Served<'a> {
    /// All servers of a step together.
    pub fn of(run: &Run, step: &'a Step) -> Self {
        let (block_bytes, data_bytes) = (run.target.block_bytes, run.target.data_bytes);
        Self { servers: &step.servers, block_bytes, data_bytes }
    }

    /// All servers together in one second.
    pub(crate) fn of_second(run: &Run, second: &'a Interval) -> Self {
        let (block_bytes, data_bytes) = (run.target.block_bytes, run.target.data_bytes);
        Self { servers: &second.servers, block_bytes, data_bytes }
    }

    /// Whether there are servers, and something looked at the sessions of each.
    pub(crate) fn is_sampled(&self) -> bool {
        !self.servers.is_empty() && self.servers.iter().all(|server| server.sampled_times > 0)
    }

    /// Of each server at which something looked: how often, and how many sessions were found in one of these states, all looks together.
    pub(crate) fn samples(&self, states: &[SessionState]) -> impl Iterator<Item = (u64, u64)> {
        self.servers.iter().filter(|server| server.sampled_times > 0).map(move |server| {
            let found = server.session_samples.iter().filter(|(what, _)| states.contains(&self.state(what)));
            (server.sampled_times, found.map(|(_, samples)| *samples).fold(0, u64::saturating_add))
        })
    }

    /// Each server of a step by itself, with its name.
    pub fn each(run: &Run, step: &'a Step) -> impl Iterator<Item = (&'a str, Self)> {
        let all = Self::of(run, step);
        step.servers
            .iter()
            .map(move |server| (server.node.as_str(), Self { servers: std::slice::from_ref(server), ..all }))
    }

    fn per_s(&self, count: impl Fn(&ServerStats) -> Option<u64>) -> Option<f64> {
        if self.servers.is_empty() {
            return None;
        }
        self.servers.iter().map(|server| rate(count(server), server.elapsed_ns)).sum()
    }

    fn total(&self, count: impl Fn(&ServerStats) -> Option<u64>) -> Option<u64> {
        if self.servers.is_empty() {
            return None;
        }
        self.servers.iter().map(count).sum()
    }

    /// Share of `all` that `part` is, 0 to 1 unless more was counted as the part.
    fn share(
        &self,
        part: impl Fn(&ServerStats) -> Option<u64>,
        all: impl Fn(&ServerStats) -> Option<u64>,
    ) -> Option<f64> {
        let all = self.total(all).filter(|all| *all > 0)?;
        Some(self.total(part)? as f64 / all as f64)
    }

    /// The rate of what servers count as one of [`Metric::COUNTED`]. Reads are blocks that sessions had fetched from storage, read-ahead
    /// included.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        self.per_s(|server| metric.count(&server.counters)).map(|per_s| per_s / metric.scale())
    }

    /// What servers counted of something, per second.
    pub fn activity_per_s(&self, activity: Activity) -> Option<f64> {
        self.per_s(counted(activity))
    }

    /// How much of it there was.
    pub fn activity(&self, activity: Activity) -> Option<u64> {
        self.total(counted(activity))
    }

    /// Share of logical reads that the buffer cache answered, 0 to 1.
    pub fn hit_ratio(&self) -> Option<f64> {
        self.share(|server| server.counters.cache_hits, |server| server.counters.logical_reads)
    }

    /// How many blocks were asked of the operating system.
    pub fn buffer_misses(&self) -> Option<u64> {
        self.total(|server| server.counters.buffer_misses)
    }

    /// Share of buffer misses that these are, 0 to 1.
    pub fn page_cache_share(&self) -> Option<f64> {
        self.share(|server| server.counters.page_cache_hits, |server| server.counters.buffer_misses)
    }

    /// Share of the log's bytes that full-page images are, at most: an image leaves out the hole in the middle of its page,
    /// and may be compressed.
    pub fn page_image_share(&self) -> Option<f64> {
        let images = counted(Activity::LogBlockImages);
        let share = self.share(|server| Some(images(server)?.saturating_mul(self.block_bytes?)), log_bytes);
        share.map(|share| share.min(1.0))
    }

    /// Bytes of write-ahead log for each of `updates_per_s`.
    pub fn wal_bytes_for_each(&self, updates_per_s: f64) -> Option<f64> {
        (updates_per_s > 0.0).then_some(self.per_s(log_bytes)? / updates_per_s)
    }

    /// Bytes of log per second.
    pub(super) fn log_bytes_per_s(&self) -> Option<f64> {
        self.per_s(log_bytes)
    }

    /// Blocks that sessions had to write themselves, to the page cache, before they could read.
    pub fn session_writes_per_s(&self) -> Option<f64> {
        let of_block = |bytes: u64| Some(bytes / self.block_bytes.filter(|bytes| *bytes > 0)?);
        self.per_s(|server| match server.activity.get(&Activity::BytesWrittenBySessions) {
            Some(bytes) => of_block(*bytes),
            None => counted(Activity::BlocksWrittenBySessions)(server),
        })
    }

    /// Share of them whose new version stayed on its page without an index entry (HOT), 0 to 1.
    pub fn hot_share(&self) -> Option<f64> {
        self.share(counted(Activity::RowsUpdatedInPlace), counted(Activity::RowsUpdated))
    }

    /// The same as a share of the pages that were set up, on the node where it is the largest.
    pub fn grown_share(&self) -> Option<f64> {
        let most = self.servers.iter().filter_map(counted(Activity::TableBlocksGrown)).max()?;
        Some(most as f64 / self.pages()? as f64)
    }

    /// Pages that operations can touch.
    pub(super) fn pages(&self) -> Option<u64> {
        let pages = self.data_bytes? / self.block_bytes.filter(|bytes| *bytes > 0)?;
        (pages > 0).then_some(pages)
    }

    /// Transactions committed, and those rolled back.
    pub(super) fn transactions(&self) -> Option<(u64, u64)> {
        let committed = self.total(counted(Activity::Commits))?;
        Some((committed, self.total(counted(Activity::Rollbacks))?))
    }

    /// Seconds that sessions spent in reads of data blocks, for each second, where the server times them.
    pub fn read_seconds_per_s(&self) -> Option<f64> {
        self.per_s(counted(Activity::BlockReadNs)).map(|ns| ns / 1e9)
    }

    /// Seconds that sessions waited for locks of rows, for each second, where the server times it: of waits that ended.
    pub fn lock_seconds_per_s(&self) -> Option<f64> {
        self.per_s(counted(Activity::LockWaitNs)).map(|ns| ns / 1e9)
    }

    /// How long it took on average to make the log durable, in nanoseconds, where the server times it.
    pub fn mean_log_sync_ns(&self) -> Option<f64> {
        self.share(counted(Activity::LogSyncNs), counted(Activity::LogSyncs))
    }

    /// How long they lasted on average, in nanoseconds; nothing if there was none.
    pub fn mean_lock_wait_ns(&self) -> Option<f64> {
        self.share(counted(Activity::LockWaitNs), counted(Activity::LockWaits))
    }

    /// The largest level that was read, on the server where it was the largest.
    pub fn level(&self, gauge: Gauge) -> Option<u64> {
        self.servers.iter().filter_map(|server| server.gauges.get(&gauge)).max().copied()
    }

    /// Whether the servers keep redo of changed blocks, which they write in place later.
    pub fn keeps_redo(&self) -> bool {
        self.servers.iter().any(ServerStats::keeps_redo)
    }

    /// Reads of one block, of several that need not lie together, and of neighbours, that the load's sessions waited for.
    pub fn reads_by_blocks(&self) -> Option<[u64; 3]> {
        let total = |activity| self.total(counted(activity));
        Some([total(Activity::SingleBlockReads)?, total(Activity::BatchedReads)?, total(Activity::MultiBlockReads)?])
    }

    /// Processors that the servers' processes kept busy in user code.
    pub fn user_processors(&self) -> Option<f64> {
        self.per_s(|server| server.cpu.map(|cpu| cpu.user_ns)).map(|ns| ns / 1e9)
    }

    /// Processors that the kernel kept busy for them.
    pub fn system_processors(&self) -> Option<f64> {
        self.per_s(|server| server.cpu.map(|cpu| cpu.system_ns)).map(|ns| ns / 1e9)
    }

    /// Both together.
    pub fn processors(&self) -> Option<f64> {
        Some(self.user_processors()? + self.system_processors()?)
    }

    /// Blocks that the servers read from storage or from a page cache, per second.
    pub(super) fn reads_per_s(&self) -> Option<f64> {
        self.per_s(|server| server.counters.physical_reads)
    }

    /// Processes of the servers that were ready to run and did not, on average: at least so many.
    pub fn ready(&self) -> Option<f64> {
        self.per_s(|server| server.run_delay_ns).map(|ns| ns / 1e9)
    }

    /// What quotas on processor time did to the servers, where all of them can be seen.
    pub fn throttled(&self) -> Option<Throttled> {
        let each: Option<Vec<Throttled>> = self.servers.iter().map(|server| server.throttled).collect();
        each?.into_iter().reduce(|mut all, more| {
            all.add(&more);
            all
        })
    }

    /// How often sessions were looked at, on the server where that was done most often.
    pub fn looks(&self) -> u64 {
        self.servers.iter().map(|server| server.sampled_times).max().unwrap_or(0)
    }

    /// What the load's sessions were doing, and how many of them on average.
    pub fn doing(&self) -> BTreeMap<&'a str, f64> {
        let mut doing: BTreeMap<&str, f64> = BTreeMap::new();
        for server in self.servers.iter().filter(|server| server.sampled_times > 0) {
            // What was seen only between the looks that are averaged has none there.
            for (what, samples) in server.session_samples.iter().filter(|(_, samples)| **samples > 0) {
                *doing.entry(what).or_default() += *samples as f64 / server.sampled_times as f64;
            }
        }
        doing
    }

    /// What it means to be found in `doing`, one of the names of [`Self::doing`].
    pub fn state(&self, doing: &str) -> SessionState {
        self.servers.iter().find_map(|server| server.session_states.get(doing)).copied().unwrap_or_default()
    }
}

/// How far values of several nodes lie apart: the largest less the smallest, as a share of their mean. Absent for fewer
/// than two, or where all are zero.
pub fn imbalance(values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let (least, most) = (values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?);
    (values.len() > 1 && mean > 0.0).then(|| (most - least) / mean)
}

/// What a server counted of something.
fn counted(activity: Activity) -> impl Fn(&ServerStats) -> Option<u64> {
    move |server| server.activity.get(&activity).copied()
}

fn log_bytes(server: &ServerStats) -> Option<u64> {
    server.counters.redo_bytes
}
