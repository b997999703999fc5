//! Rates and shares of one step.

use super::{CELL_SINGLE_BLOCK_READ, SINGLE_BLOCK_READ, counted_per_s, is_on_server, rate, traffic};
use model::record::{Histogram, Metric, Outstanding, ServerStats, Step, WaitStats, Waited, known_sum};

/// Rates and shares over the measured window of a step. Each is absent where the step does not report what it needs, or
/// where it would divide by nothing.
#[derive(Debug, Clone, Copy)]
pub struct Figures<'a>(
    /// The step.
    pub &'a Step,
);

/// Class of waits of sessions that have nothing to do.
const IDLE: &str = "Idle";
/// Statistics of Oracle's instances.
const DB_TIME: &str = "DB time_ns";
const DB_CPU: &str = "DB CPU_ns";
/// Processor time is a part of DB time. Both are sampled a little apart; beyond this, one of the two is wrong.
const MAX_CPU_SHARE: f64 = 1.1;

/// Mean in microseconds.
pub fn mean_us(waits: &Histogram) -> Option<f64> {
    waits.mean_ns().map(|ns| ns / 1e3)
}

/// The waits of one event, if it happened.
pub fn wait<'a>(step: &'a Step, event: &str) -> Option<&'a WaitStats> {
    step.waits.iter().find(|wait| wait.event == event && wait.waits.count() > 0)
}

/// Reads of one block each: those of [`SINGLE_BLOCK_READ`], or else those of Exadata's cells, the most frequent first. Newer
/// releases have an event for each place that answers, such as `cell single block physical read: flash cache`, and no read is in
/// two of them.
pub fn single_block_reads(step: &Step) -> Vec<&WaitStats> {
    if let Some(usual) = wait(step, SINGLE_BLOCK_READ) {
        return vec![usual];
    }
    let is_of_cells = |event: &str| {
        event.strip_prefix(CELL_SINGLE_BLOCK_READ).is_some_and(|place| place.is_empty() || place.starts_with(": "))
    };
    let mut reads: Vec<&WaitStats> =
        step.waits.iter().filter(|wait| wait.waits.count() > 0 && is_of_cells(&wait.event)).collect();
    reads.sort_by_key(|wait| std::cmp::Reverse(wait.waits.count()));
    reads
}

/// What sessions waited in it for something: idle sessions wait for their user, which is no waiting.
fn waited(wait: &WaitStats) -> Option<Waited> {
    wait.of_sessions().filter(|waited| waited.count > 0 && wait.class != IDLE)
}

/// Waits that sessions stood in, the longest total first; not those of idle sessions.
pub fn foreground_waits(step: &Step) -> Vec<&WaitStats> {
    let mut waits: Vec<_> = step.waits.iter().filter_map(|wait| Some((waited(wait)?.total_ns, wait))).collect();
    waits.sort_by_key(|(total_ns, wait)| (std::cmp::Reverse(*total_ns), wait.event.clone()));
    waits.into_iter().map(|(_, wait)| wait).collect()
}

impl Figures<'_> {
    /// Length of the window in seconds.
    pub fn seconds(&self) -> f64 {
        self.0.window.duration_ns as f64 / 1e9
    }

    fn rate(&self, count: Option<u64>) -> Option<f64> {
        rate(count, self.0.window.duration_ns)
    }

    /// A rate of what the target's engine counts, or the servers that load landed on.
    pub(super) fn counted(&self, metric: Metric) -> Option<f64> {
        let Step { counters, servers, window, .. } = self.0;
        counted_per_s(counters, servers, window.duration_ns, |counters| metric.count(counters))
            .map(|per_s| per_s / metric.scale())
    }

    /// Operations finished per second (SLOBops/s), or what another program reports without a count.
    pub fn operations_per_s(&self) -> Option<f64> {
        self.rate(self.0.counters.operations).or_else(|| self.reported(Metric::Operations))
    }

    /// Operations that ended per second, those that failed included: what was carried of a rate that was asked for.
    pub fn ended_per_s(&self) -> Option<f64> {
        let done = self.0.counters.operations?;
        self.rate(Some(done.saturating_add(self.0.counters.errors.unwrap_or(0))))
    }

    /// Share of the operations that ended which failed, those included that ended after the window.
    pub fn failed_share(&self) -> Option<f64> {
        let late = |count: fn(&Outstanding) -> u64| self.0.outstanding.iter().map(count).sum::<u64>();
        let (late_errors, late_done) = (late(|late| late.errors), late(|late| late.response.count()));
        let errors = self.0.counters.errors?.saturating_add(late_errors);
        let ended = self.0.counters.operations?.saturating_add(late_done).saturating_add(errors);
        (ended > 0).then(|| errors as f64 / ended as f64)
    }

    /// Read requests and write requests for data blocks together per second; where only one of them is known, that one. On a
    /// server only reads: its writes go to the page cache, and to storage later in other requests. Never of blocks, of which a request
    /// may carry many.
    pub fn requests_per_s(&self) -> Option<f64> {
        match (self.value(Metric::Reads), self.value(Metric::Writes)) {
            (reads, _) if is_on_server(self.0) => reads,
            (None, None) => None,
            (reads, writes) => Some(reads.unwrap_or(0.0) + writes.unwrap_or(0.0)),
        }
    }

    /// What tables call IOPS: [`Self::requests_per_s`]. Where a database counts blocks apart from requests, as Oracle does, it
    /// is its blocks: `physical reads` and `physical writes`, which everybody who makes such tables from its reports adds up.
    pub fn physical_io_per_s(&self) -> Option<f64> {
        let blocks = self.value(Metric::BlocksRead).zip(self.value(Metric::BlocksWritten));
        blocks.map(|(read, written)| read + written).or_else(|| self.requests_per_s())
    }

    /// A statistic of a database by its own name, over all instances of a report or all servers; absent if one of them does not
    /// report.
    pub(super) fn own(&self, name: &str) -> Option<u64> {
        let Step { instances, servers, .. } = self.0;
        let all = if instances.is_empty() { servers } else { instances };
        if all.is_empty() { None } else { all.iter().map(|instance| instance.own.get(name).copied()).sum() }
    }

    /// The same of servers, per second.
    fn served_per_s(&self, name: &str) -> Option<f64> {
        let servers = &self.0.servers;
        let rates = servers.iter().map(|server| rate(server.own.get(name).copied(), server.elapsed_ns));
        if servers.is_empty() { None } else { rates.sum() }
    }

    /// Statements executed per second, of a database that counts them; elsewhere operations are statements.
    pub fn executes_per_s(&self) -> Option<f64> {
        let name = "execute count";
        self.served_per_s(name).or_else(|| self.operations_per_s()).or_else(|| self.rate(self.own(name)))
    }

    /// Commits acknowledged per second.
    pub fn commits_per_s(&self) -> Option<f64> {
        self.rate(self.0.counters.commits)
    }

    /// Share of logical reads that the buffer cache answered, 0 to 1.
    pub fn hit_ratio(&self) -> Option<f64> {
        let logical = self.0.counters.logical_reads.filter(|reads| *reads > 0)?;
        Some(self.0.counters.cache_hits? as f64 / logical as f64)
    }

    /// Megabytes (10^6) read and written per second; where only one of them is known, that one.
    pub fn megabytes_per_s(&self) -> Option<f64> {
        match (self.value(Metric::ReadMegabytes), self.value(Metric::WriteMegabytes)) {
            (None, None) => self.reported(Metric::Megabytes),
            (reads, writes) => Some(reads.unwrap_or(0.0) + writes.unwrap_or(0.0)),
        }
    }

    /// Megabytes read and written per second, known where both are: a sum of one part would pass for the whole. What no request
    /// was sent for is no bytes.
    pub fn all_megabytes_per_s(&self) -> Option<f64> {
        let part = |megabytes: Option<f64>, requests: Option<f64>| megabytes.or(requests.filter(|rate| *rate == 0.0));
        let reads = part(self.value(Metric::ReadMegabytes), self.value(Metric::Reads));
        match (reads, part(self.value(Metric::WriteMegabytes), self.value(Metric::Writes))) {
            (None, None) => self.reported(Metric::Megabytes),
            (reads, writes) => Some(reads? + writes?),
        }
    }

    /// Whether storage was both read and written.
    pub fn reads_and_writes(&self) -> bool {
        let happened = |count: Option<u64>| count.is_some_and(|count| count > 0);
        happened(self.0.counters.physical_reads) && happened(self.0.counters.physical_writes)
    }

    /// Time of all operations together from sent to finished; absent if none finished. Those that were under way when the window closed
    /// are among them with the time that they took, or were waited for.
    pub fn service(&self) -> Option<Histogram> {
        let outstanding = self.0.outstanding.iter().flat_map(|late| [&late.service, &late.unended]);
        traffic::merged(self.0.operations.iter().map(|operation| &operation.service).chain(outstanding))
    }

    /// The same of those that finished within the window, for laws that hold for it alone.
    pub fn service_in_window(&self) -> Option<Histogram> {
        traffic::merged(self.0.operations.iter().map(|operation| &operation.service))
    }

    /// Time of all operations together from due to finished, as in [`service`](Self::service); absent if none finished.
    pub fn response(&self) -> Option<Histogram> {
        let outstanding = self.0.outstanding.iter().flat_map(|late| [&late.response, &late.unended]);
        traffic::merged(self.0.operations.iter().map(|operation| &operation.response).chain(outstanding))
    }

    /// Open loop: share of the response time that operations spent between due and sent, 0 to 1.
    pub fn queued_share(&self) -> Option<f64> {
        self.0.load.rate_operations_per_s?;
        let total = |times: Option<Histogram>| times?.total_ns().map(|ns| ns as f64).filter(|ns| *ns > 0.0);
        let response = total(self.response())?;
        Some(((response - total(self.service())?) / response).max(0.0))
    }

    fn processors(&self, ns: Option<u64>) -> Option<f64> {
        self.rate(ns).map(|ns_per_s| ns_per_s / 1e9)
    }

    /// Processors that this process kept busy in user code, as a mean: 1.0 is one whole processor.
    pub fn user_processors(&self) -> Option<f64> {
        self.processors(self.0.process_cpu.map(|cpu| cpu.user_ns))
    }

    /// Processors that the kernel kept busy for this process.
    pub fn system_processors(&self) -> Option<f64> {
        self.processors(self.0.process_cpu.map(|cpu| cpu.system_ns))
    }

    /// Both together.
    pub fn processors_busy(&self) -> Option<f64> {
        Some(self.user_processors()? + self.system_processors()?)
    }

    /// The same of the database: of its servers, where load landed on some and they report, else of the engine that runs in
    /// this process.
    pub fn database_processors(&self) -> Option<f64> {
        if !is_on_server(self.0) {
            return self.processors_busy().or_else(|| self.processors(self.own(DB_CPU)));
        }
        let busy = |server: &ServerStats| rate(server.cpu.map(|cpu| cpu.busy_ns()), server.elapsed_ns);
        let ns_per_s = self.0.servers.iter().map(busy).sum::<Option<f64>>().filter(|_| !self.0.servers.is_empty());
        ns_per_s.or_else(|| self.served_per_s(DB_CPU)).map(|ns_per_s| ns_per_s / 1e9)
    }

    /// Bytes read from storage per second: of Oracle all I/O of its instances, of what else the data files.
    pub fn all_read_bytes_per_s(&self) -> Option<f64> {
        self.all_bytes_per_s(Metric::AllReadBytes, "physical read total bytes")
            .or_else(|| self.counted(Metric::ReadMegabytes).map(|megabytes| megabytes * 1e6))
    }

    /// Bytes written to storage per second, likewise.
    pub fn all_written_bytes_per_s(&self) -> Option<f64> {
        self.all_bytes_per_s(Metric::AllWrittenBytes, "physical write total bytes")
            .or_else(|| self.counted(Metric::WriteMegabytes).map(|megabytes| megabytes * 1e6))
    }

    fn all_bytes_per_s(&self, metric: Metric, statistic: &str) -> Option<f64> {
        let Some(bytes) = self.reported(metric) else { return self.served_per_s(statistic) };
        let seconds = self.seconds();
        (seconds > 0.0).then(|| bytes / seconds)
    }

    /// Requests sent to storage for each second of processor time of this process; absent on a server, which does
    /// the work that they cost.
    pub fn io_per_cpu_second(&self) -> Option<f64> {
        if is_on_server(self.0) {
            return None;
        }
        let busy = self.processors_busy().filter(|busy| *busy > 0.0)?;
        Some(self.requests_per_s()? / busy)
    }

    /// Mean number of sessions in calls of the database, its DB time per second, where it counts that; else those inside an operation.
    pub fn sessions_in_calls(&self) -> Option<f64> {
        self.served_per_s(DB_TIME).map(|ns_per_s| ns_per_s / 1e9).or_else(|| self.busy_sessions())
    }

    /// Mean number of sessions inside an operation (AWR's "DB time per second").
    pub fn busy_sessions(&self) -> Option<f64> {
        if self.0.operations.is_empty() {
            return self.processors(self.db_time_ns());
        }
        let total = known_sum(self.0.operations.iter().map(|operation| operation.service.total_ns()));
        self.processors(total)
    }

    /// Seconds that a session takes for one operation, think time included: by Little's law, sessions over rate.
    pub fn cycle_s(&self) -> Option<f64> {
        let operations = self.operations_per_s().filter(|rate| *rate > 0.0)?;
        Some(f64::from(self.0.load.sessions?) / operations)
    }

    /// Time that sessions waited, all events together. Waits of one session may overlap, so this can exceed the
    /// window times its sessions.
    pub fn foreground_wait_ns(&self) -> u64 {
        self.0.waits.iter().filter_map(|wait| waited(wait)?.total_ns).fold(0, u64::saturating_add)
    }

    /// Time that sessions were in calls, working or waiting, as an imported report or a server has it. Sessions of our own engine wait
    /// for several blocks at once, so that their waits are no shares of it.
    pub fn db_time_ns(&self) -> Option<u64> {
        self.own(DB_TIME)
    }

    /// Share of DB time that sessions waited in `event`, 0 to 1; absent where either is not known, or the event is idleness.
    pub fn share_of_db_time(&self, event: &str) -> Option<f64> {
        let all = self.db_time_ns().filter(|ns| *ns > 0)?;
        let wait = self.0.waits.iter().find(|wait| wait.event == event && waited(wait).is_some())?;
        Some(waited(wait)?.total_ns? as f64 / all as f64)
    }

    /// Share of DB time that sessions used processors, as a report or a server has it; absent where it is far more than all of it.
    pub fn cpu_share_of_db_time(&self) -> Option<f64> {
        let all = self.db_time_ns().filter(|ns| *ns > 0)?;
        Some(self.own(DB_CPU)? as f64 / all as f64).filter(|share| *share <= MAX_CPU_SHARE)
    }

    /// Share of [`Self::foreground_wait_ns`] that `event` takes, 0 to 1; absent if nobody waited.
    pub fn share_of_waiting(&self, event: &str) -> Option<f64> {
        let all = self.foreground_wait_ns();
        if self.0.waits.iter().any(|wait| wait.event == event && wait.class == IDLE) {
            return None;
        }
        let mut of_event = self.0.waits.iter().filter(|wait| wait.event == event).filter_map(waited);
        let share = |waited: Waited| waited.total_ns.map(|ns| ns as f64 / all as f64);
        if all == 0 { None } else { of_event.next().map_or(Some(0.0), share) }
    }
}
