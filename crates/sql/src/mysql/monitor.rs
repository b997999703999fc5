//! What servers report on themselves while load runs on them: `SHOW GLOBAL STATUS`, `performance_schema` where it is on, and
//! what the load's sessions are doing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;

use super::LocalServer;
use super::connect::{Connected, Connector};
use crate::ServerError;
use crate::monitor::process::{ServerProcess, ThreadsReading};
use crate::{Doing, Readings, Sampled, ServerReader};
use measure::monotonic_ns;
use measure::os::Root;
use model::record::{Activity, Counters, Gauge, Look, NamedActivity, ServerStats, SessionState, activities};

/// Watches all servers of an address, until it is dropped.
pub type Monitor = crate::Monitor<MonitorRequest>;

/// What to watch.
#[derive(Debug, Clone)]
pub struct MonitorRequest {
    /// Makes connections to the servers.
    pub connector: Connector,
    /// The program name of the load's sessions, by which they are known where `performance_schema` is on.
    pub application: String,
    /// Size of a page of the servers, in bytes.
    pub page_bytes: u32,
    /// Whether the servers read data files past the page cache.
    pub reads_directly: bool,
    /// How often the sessions are looked at.
    pub sample_every: Duration,
}

/// A connection that reads counters.
#[derive(Debug)]
pub struct CounterLine {
    connected: Connected,
    /// What is asked for in addition to the status variables.
    extras: Vec<Extra>,
    /// The server's process, where it runs on this machine and this user sees it.
    process: Option<ServerProcess>,
}

/// Something that not every server lets everybody count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extra {
    /// Files by kind, with their times.
    Files,
    /// Waits of other kinds by their events, as far as the server's instruments are switched on.
    Waits,
    /// What only MySQL's own table of metrics has.
    Metrics,
}

/// A connection that looks at sessions.
#[derive(Debug)]
pub struct SampleLine {
    connected: Connected,
    statement: String,
    /// Who holds row locks that others wait for; absent where this user may not see that.
    locks: Option<LocksQuery>,
}

/// Asks who holds row locks that others wait for.
#[derive(Debug)]
struct LocksQuery {
    statement: String,
    /// The last answer, by who, and when it came.
    last: Option<(Instant, BTreeMap<String, u32>)>,
}

/// InnoDB answers from a snapshot that it renews only after 100 ms without a reader.
const LOCKS_EVERY: Duration = Duration::from_millis(120);

/// What a session is found doing that waits for a row lock: the server's list of sessions does not say so.
pub(super) const ROW_LOCK: &str = "row lock (InnoDB)";

/// Where each server says which transaction waits for which, and the columns of both.
pub(super) const LOCK_WAITS: [(&str, &str, &str); 2] = [
    ("performance_schema.data_lock_waits", "REQUESTING_ENGINE_TRANSACTION_ID", "BLOCKING_ENGINE_TRANSACTION_ID"),
    ("information_schema.innodb_lock_waits", "requesting_trx_id", "blocking_trx_id"),
];

/// A server's counters at one instant, by its own names.
type StatusCounts = BTreeMap<String, u64>;

/// What was read of a server at one instant.
#[derive(Debug)]
pub struct Reading {
    counts: StatusCounts,
    process: Option<ThreadsReading>,
}

/// Status variables that are read as they are: those that only grow.
const COUNTED: [&str; 31] = [
    "Aborted_clients",
    "Com_commit",
    "Com_rollback",
    "Created_tmp_disk_tables",
    "Handler_commit",
    "Handler_update",
    "Innodb_buffer_pool_pages_flushed",
    "Innodb_buffer_pool_read_ahead",
    "Innodb_buffer_pool_read_requests",
    "Innodb_buffer_pool_reads",
    "Innodb_buffer_pool_wait_free",
    "Innodb_buffer_pool_write_requests",
    "Innodb_data_fsyncs",
    "Innodb_data_read",
    "Innodb_data_reads",
    "Innodb_data_writes",
    "Innodb_data_written",
    "Innodb_dblwr_pages_written",
    "Innodb_deadlocks",
    "Innodb_log_waits",
    "Innodb_log_write_requests",
    "Innodb_log_writes",
    "Innodb_lsn_current",
    "Innodb_os_log_fsyncs",
    "Innodb_os_log_written",
    "Innodb_pages_read",
    "Innodb_pages_written",
    "Innodb_redo_log_current_lsn",
    "Innodb_row_lock_time",
    "Innodb_row_lock_waits",
    "Innodb_rows_updated",
];
/// Status variables that are levels.
const LEVELS: [(&str, Gauge); 5] = [
    ("Innodb_buffer_pool_pages_dirty", Gauge::DirtyBlocks),
    ("Innodb_checkpoint_age", Gauge::CheckpointAgeBytes),
    ("Innodb_history_list_length", Gauge::PurgeBacklog),
    ("innodb_metrics.log_lsn_checkpoint_age", Gauge::CheckpointAgeBytes),
    ("innodb_metrics.trx_rseg_history_len", Gauge::PurgeBacklog),
];
/// What the others mean.
const ACTIVITY: [NamedActivity; 14] = [
    (Activity::Commits, &["Com_commit"]),
    (Activity::Rollbacks, &["Com_rollback"]),
    (Activity::Deadlocks, &["Innodb_deadlocks", "innodb_metrics.lock_deadlocks"]),
    (Activity::LockWaits, &["Innodb_row_lock_waits"]),
    (Activity::LockWaitNs, &["Innodb_row_lock_time_ns"]),
    (Activity::RowsUpdated, &["Innodb_rows_updated", "Handler_update"]),
    (Activity::ReadAheadBlocks, &["Innodb_buffer_pool_read_ahead"]),
    (Activity::LogWrites, &["Innodb_log_writes"]),
    (Activity::LogSyncs, &["Innodb_os_log_fsyncs"]),
    (Activity::LogBufferFull, &["Innodb_log_waits"]),
    (Activity::BlockReadNs, &["file.innodb_data_file.read_ns"]),
    (Activity::BlockWriteNs, &["file.innodb_data_file.write_ns"]),
    (Activity::LogWriteNs, &["file.innodb_log_file.write_ns"]),
    (Activity::LogSyncNs, &["file.innodb_log_file.misc_ns"]),
];
/// Counts and times of files by kind; the server's are in picoseconds.
const FILES: &str = "SELECT SUBSTRING_INDEX(event_name, '/', -1), count_read, count_write, count_misc, \
    sum_timer_read DIV 1000, sum_timer_write DIV 1000, sum_timer_misc DIV 1000 \
    FROM performance_schema.file_summary_by_event_name WHERE event_name LIKE 'wait/io/file/innodb/%'";
/// Whether they are counted and timed at all: 1 or 0.
const FILES_ARE_TIMED: &str = "SELECT COUNT(*) FROM performance_schema.setup_instruments AS instrument, \
    performance_schema.setup_consumers AS consumer \
    WHERE instrument.name = 'wait/io/file/innodb/innodb_data_file' AND instrument.enabled = 'YES' \
    AND instrument.timed = 'YES' AND consumer.name = 'global_instrumentation' AND consumer.enabled = 'YES'";
const WAITS: &str = "SELECT event_name, count_star, sum_timer_wait DIV 1000 \
    FROM performance_schema.events_waits_summary_global_by_event_name \
    WHERE count_star > 0 AND event_name LIKE 'wait/%' AND event_name NOT LIKE 'wait/io/file/%'";
/// Those that are switched on and that status variables of this product lack.
const METRICS: &str = "SELECT name, CAST(GREATEST(count, 0) AS UNSIGNED) FROM information_schema.innodb_metrics \
    WHERE status = 'enabled' AND name IN \
    ('lock_deadlocks', 'trx_rseg_history_len', 'log_lsn_current', 'log_lsn_checkpoint_age')";
const OF_FILES: [&str; 6] = ["reads", "writes", "syncs_and_others", "read_ns", "write_ns", "misc_ns"];

impl Extra {
    fn query(self) -> &'static str {
        match self {
            Self::Files => FILES,
            Self::Waits => WAITS,
            Self::Metrics => METRICS,
        }
    }

    /// What is not known without it.
    fn lack(self) -> &'static str {
        match self {
            Self::Files => "files are not counted",
            Self::Waits => "waits are not counted",
            Self::Metrics => "deadlocks, the purge backlog, and before 8.0.30 redo are not counted (`GRANT PROCESS`)",
        }
    }

    async fn read(self, connected: &mut Connected) -> Result<StatusCounts, mysql_async::Error> {
        let mut reading = StatusCounts::new();
        let conn = &mut connected.conn;
        match self {
            Self::Files => {
                let rows = conn.query::<(String, u64, u64, u64, u64, u64, u64), _>(FILES).await?;
                for (file, reads, writes, misc, read_ns, write_ns, misc_ns) in rows {
                    let values = [reads, writes, misc, read_ns, write_ns, misc_ns];
                    reading.extend(
                        OF_FILES.iter().zip(values).map(|(name, value)| (format!("file.{file}.{name}"), value)),
                    );
                }
            }
            Self::Waits => {
                for (event, count, ns) in conn.query::<(String, u64, u64), _>(WAITS).await? {
                    reading.extend([(format!("{event}.count"), count), (format!("{event}.wait_ns"), ns)]);
                }
            }
            Self::Metrics => {
                let rows = conn.query::<(String, u64), _>(METRICS).await?;
                reading.extend(rows.into_iter().map(|(name, count)| (format!("innodb_metrics.{name}"), count)));
            }
        }
        Ok(reading)
    }
}

impl ServerReader for MonitorRequest {
    type Reading = Reading;
    type CounterLine = CounterLine;
    type SampleLine = SampleLine;

    fn nodes(&self) -> Vec<String> {
        self.connector.nodes()
    }

    fn sample_every(&self) -> Duration {
        self.sample_every
    }

    async fn open_counters(&self, node: usize) -> Result<(CounterLine, Vec<String>), ServerError> {
        let mut connected = self.connector.connect(node).await?;
        let mut notes = Vec::new();
        let is_on = connected.conn.query_first::<bool, _>("SELECT @@performance_schema").await;
        let is_on = is_on.map_err(|error| connected.error("ask for its settings", &error))?.unwrap_or(false);
        let mut extras = Vec::new();
        if !is_on {
            notes.push(
                "`performance_schema` is off, so the server times neither its reads and writes nor other waits: it can only be \
                 switched on when the server starts"
                    .to_owned(),
            );
        }
        for extra in [Extra::Files, Extra::Waits, Extra::Metrics] {
            let is_there = if extra == Extra::Metrics { !connected.version.is_mariadb } else { is_on };
            if !is_there {
                continue;
            }
            // Instruments that are off count nothing, which would read as no reads at all.
            let is_counting = match extra {
                Extra::Files => connected.conn.query_first::<u64, _>(FILES_ARE_TIMED).await,
                _ => connected.conn.query_drop(extra.query()).await.map(|()| Some(1)),
            };
            match is_counting {
                Ok(Some(1)) => extras.push(extra),
                Ok(_) => notes.push(format!("{}: `wait/io/file/innodb/%` of setup_instruments are off", extra.lack())),
                Err(mysql_async::Error::Server(refusal)) => {
                    notes.push(format!("{}: {}", extra.lack(), refusal.message))
                }
                Err(error) => return Err(connected.error("find out what the server counts", &error)),
            }
        }
        if locks_query(&mut connected, "FALSE").await.is_none() {
            notes.push(
                "row locks cannot be seen, so no stall is explained by them: `GRANT PROCESS ON *.*` to this user, and on MySQL 8 \
                 `GRANT SELECT ON performance_schema.*`"
                    .to_owned(),
            );
        }
        // What cannot be asked is unknown; a connection that has ended is noticed by the next question.
        let local = LocalServer::of_client(&mut connected).await.unwrap_or_default();
        let process = local.and_then(|server| ServerProcess::new(Root::default(), server.pid));
        Ok((CounterLine { connected, extras, process }, notes))
    }

    async fn read(&self, line: &mut CounterLine) -> Result<Readings<Reading>, ServerError> {
        let CounterLine { connected, extras, process } = line;
        let doing = "read the server's counters";
        let asked = connected.conn.query::<(String, String), _>("SHOW GLOBAL STATUS LIKE 'Innodb%'").await;
        let mut rows = asked.map_err(|error| connected.error(doing, &error))?;
        let at = Instant::now();
        let process = process.as_mut().and_then(ServerProcess::read);
        let others = "SHOW GLOBAL STATUS WHERE variable_name IN ('Aborted_clients', 'Com_commit', 'Com_rollback', \
                      'Created_tmp_disk_tables', 'Handler_commit', 'Handler_update')";
        let asked = connected.conn.query::<(String, String), _>(others).await;
        rows.extend(asked.map_err(|error| connected.error(doing, &error))?);
        let is_ours = |name: &str| COUNTED.contains(&name) || LEVELS.iter().any(|(level, _)| *level == name);
        let mut reading: StatusCounts = rows
            .into_iter()
            .filter(|(name, _)| is_ours(name))
            .filter_map(|(name, text)| Some((name, text.parse().ok()?)))
            .collect();
        // The server counts milliseconds.
        if let Some(ms) = reading.remove("Innodb_row_lock_time") {
            reading.insert("Innodb_row_lock_time_ns".to_owned(), ms.saturating_mul(1_000_000));
        }
        for extra in extras {
            let more = extra.read(connected).await;
            reading.extend(more.map_err(|error| connected.error(doing, &error))?);
        }
        Ok((at, vec![Reading { counts: reading, process }.into()]))
    }

    async fn open_samples(&self, node: usize) -> Result<SampleLine, ServerError> {
        let mut connected = self.connector.connect(node).await?;
        let doing = "look at the sessions";
        let settings = "SELECT @@performance_schema, EXISTS (SELECT 1 FROM information_schema.tables WHERE table_schema = \
                        'performance_schema' AND table_name = 'session_connect_attrs'), \
                        EXISTS (SELECT 1 FROM information_schema.columns WHERE table_schema = 'information_schema' AND \
                        table_name = 'PROCESSLIST' AND column_name = 'TIME_MS')";
        let asked = connected.conn.query_first::<(bool, bool, bool), _>(settings).await;
        let (has_performance_schema, has_attributes, has_milliseconds) =
            asked.map_err(|error| connected.error(doing, &error))?.unwrap_or_default();
        // Without them sessions are known by their user; monitoring has others of the same, which are asleep or this one.
        let name = self.application.replace('\\', "").replace('\'', "''");
        let of_load = if has_performance_schema && has_attributes {
            format!(
                "p.id IN (SELECT processlist_id FROM performance_schema.session_connect_attrs \
                 WHERE attr_name = 'program_name' AND attr_value = '{name}')"
            )
        } else {
            "p.user = SUBSTRING_INDEX(USER(), '@', 1)".to_owned()
        };
        let ms = if has_milliseconds { "MAX(p.time_ms)" } else { "MAX(p.time) * 1000" };
        let statement = format!(
            "SELECT COALESCE(NULLIF(p.state, ''), 'executing'), COUNT(*), CAST(GREATEST({ms}, 0) AS UNSIGNED) \
             FROM information_schema.processlist p \
             WHERE p.command NOT IN ('Sleep', 'Daemon') AND p.id <> CONNECTION_ID() AND {of_load} GROUP BY 1"
        );
        let tried = connected.conn.query_drop(&statement).await;
        tried.map_err(|error| connected.error(doing, &error))?;
        let locks = locks_query(&mut connected, &of_load).await;
        Ok(SampleLine { connected, statement, locks })
    }

    async fn sample(&self, line: &mut SampleLine, closely: bool) -> Result<Sampled, ServerError> {
        let SampleLine { connected, statement, locks } = line;
        let doing = "look at the sessions";
        let asked = connected.conn.query_map(statement.as_str(), |row: (String, u64, u64)| row).await;
        let rows = asked.map_err(|error| connected.error(doing, &error))?;
        let mut sampled = Sampled {
            oldest: rows.iter().map(|(.., ms)| Duration::from_millis(*ms)).max(),
            doing: rows.into_iter().map(|(what, sessions, _)| Doing::from((what, sessions))).collect(),
            answered_ns: Some(monotonic_ns()),
            ..Sampled::default()
        };
        if let Some(locks) = locks.as_mut().filter(|_| closely) {
            if locks.last.as_ref().is_none_or(|(asked, _)| asked.elapsed() >= LOCKS_EVERY) {
                let asked = connected.conn.query_map(locks.statement.as_str(), |row: (String, u32)| row).await;
                let held = match asked {
                    Ok(held) => held.into_iter().collect(),
                    // What sessions do is known all the same.
                    Err(mysql_async::Error::Server(_)) => BTreeMap::new(),
                    Err(error) => return Err(connected.error(doing, &error)),
                };
                locks.last = Some((Instant::now(), held));
            }
            sampled.blockers = locks.last.iter().flat_map(|(_, held)| held.clone()).collect();
            let waiters: u64 = sampled.blockers.values().map(|waiters| u64::from(*waiters)).sum();
            if waiters > 0 {
                sampled.in_locks = Some(Doing::from((ROW_LOCK.to_owned(), waiters)));
            }
        }
        Ok(sampled)
    }

    fn compare(&self, earlier: &Reading, later: &mut Reading, stats: &mut ServerStats) -> Vec<String> {
        if let (Some(earlier), Some(later)) = (&earlier.process, &later.process) {
            later.since(earlier, stats);
        }
        let (earlier, later) = (&earlier.counts, &later.counts);
        let mut was_reset = false;
        for (name, now) in later {
            if LEVELS.iter().any(|(level, _)| level == name) {
                continue;
            }
            // What was never waited for has no row yet.
            let first = || name.starts_with("wait/").then_some(&0);
            match earlier.get(name).or_else(first).and_then(|then| now.checked_sub(*then)) {
                Some(difference) => drop(stats.own.insert(name.clone(), difference)),
                None => was_reset |= earlier.contains_key(name),
            }
        }
        let gauges = LEVELS.iter().filter_map(|(name, gauge)| Some((*gauge, *later.get(*name)?)));
        stats.gauges = gauges.collect();
        stats.activity = activities(&stats.own, &ACTIVITY);
        stats.counters = counters(&stats.own, self.page_bytes, self.reads_directly);
        let seen = stats.session_samples.keys().map(String::as_str).chain([ROW_LOCK]);
        stats.session_states = seen.map(|name| (name.to_owned(), state(name))).collect();
        if was_reset { vec!["SHOW GLOBAL STATUS".to_owned()] } else { Vec::new() }
    }
}

/// Asks who holds row locks, where this user may; `of_load` says which sessions `p` are the load's.
async fn locks_query(connected: &mut Connected, of_load: &str) -> Option<LocksQuery> {
    for (table, requesting, blocking) in LOCK_WAITS {
        let statement = format!(
            "SELECT CASE WHEN p.id IS NULL THEN 'a session of another user' WHEN {of_load} THEN '{}' \
             ELSE CONCAT(p.user, IF(p.command = 'Sleep', ', idle in a transaction', ', at work')) END, \
             COUNT(DISTINCT w.{requesting}) FROM {table} w \
             JOIN information_schema.innodb_trx b ON b.trx_id = w.{blocking} \
             LEFT JOIN information_schema.processlist p ON p.id = b.trx_mysql_thread_id \
             WHERE b.trx_state <> 'LOCK WAIT' GROUP BY 1",
            Look::OWN
        );
        if connected.conn.query_drop(&statement).await.is_ok() {
            return Some(LocksQuery { statement, last: None });
        }
    }
    None
}

/// What has the same meaning in every database. What InnoDB counts as reads of files are reads of storage where it reads past the
/// page cache, and else nobody knows which of them the page cache answered.
fn counters(own: &BTreeMap<String, u64>, page_bytes: u32, reads_directly: bool) -> Counters {
    let value = |name: &str| own.get(name).copied();
    let pages = |name: &str| value(name).map(|count| count * u64::from(page_bytes));
    let misses = value("Innodb_buffer_pool_reads");
    // A miss is a request: where none is counted beside misses, the server's count stands still (seen on MariaDB 10.11.5).
    let requests =
        value("Innodb_buffer_pool_read_requests").filter(|requests| *requests > 0 || misses.unwrap_or(0) == 0);
    Counters {
        logical_reads: requests,
        cache_hits: requests.zip(misses).map(|(requests, misses)| requests.saturating_sub(misses)),
        buffer_misses: misses.filter(|_| !reads_directly),
        physical_reads: value("Innodb_data_reads").filter(|_| reads_directly),
        physical_read_bytes: value("Innodb_data_read").filter(|_| reads_directly),
        physical_read_blocks: value("Innodb_pages_read"),
        physical_write_blocks: value("Innodb_pages_written"),
        physical_write_bytes: pages("Innodb_pages_written"),
        // What sessions wrote into the log; what reached its files has padding.
        redo_bytes: ["Innodb_lsn_current", "Innodb_redo_log_current_lsn", "innodb_metrics.log_lsn_current"]
            .into_iter()
            .find_map(value),
        redo_writes: value("Innodb_log_writes"),
        redo_write_bytes: value("Innodb_os_log_written"),
        ..Counters::default()
    }
}

/// What a state of the processlist means ("Examining Server Thread Information"). Neither server says there whether a session
/// uses a processor or reads a page.
pub(super) fn state(name: &str) -> SessionState {
    let name = name.to_ascii_lowercase();
    let is = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if is(&["lock"]) {
        SessionState::Lock
    // MariaDB hands a commit to its log and waits for it when all else of the statement is done.
    } else if is(&["commit", "query end", "log", "updating status"]) {
        SessionState::LogWrite
    } else if is(&["execut", "sending data", "updating", "statistics", "init", "end", "open", "clos"]) {
        SessionState::ProcessorOrRead
    } else {
        SessionState::Other
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::data::catalog::load;
    use crate::monitor::tests::next;
    use crate::mysql::data::Access;
    use crate::mysql::data::tests::{request as data_request, set_up};
    use crate::mysql::test_server::{block_on, server_with};
    use crate::mysql::{MysqlServers, Sql};
    use crate::{SlobSession, SqlServers};
    use model::workload::{OperationKind, RedoStress, SlobOperation};
    use targets::database::SetupRequest;

    #[test]
    fn states_of_sessions_have_a_meaning() {
        assert_eq!(state("Waiting for table metadata lock"), SessionState::Lock);
        assert_eq!(state("Sending data"), SessionState::ProcessorOrRead);
        assert_eq!(state("Commit"), SessionState::LogWrite);
        assert_eq!(state("Updating status"), SessionState::LogWrite);
        assert_eq!(state("Updating"), SessionState::ProcessorOrRead);
        assert_eq!(state("waiting for handler commit"), SessionState::LogWrite);
        assert_eq!(state("Rolling back"), SessionState::Other);
    }

    #[test]
    fn requests_that_a_server_forgets_to_count_are_unknown_and_not_zero() {
        let seen = |requests, misses| {
            let own = [("Innodb_buffer_pool_read_requests", requests), ("Innodb_buffer_pool_reads", misses)];
            let counters = counters(&own.map(|(name, count)| (name.to_owned(), count)).into(), 16_384, true);
            (counters.logical_reads, counters.cache_hits)
        };
        assert_eq!(seen(30, 10), (Some(30), Some(20)));
        assert_eq!(seen(0, 0), (Some(0), Some(0)));
        assert_eq!(seen(0, 10), (None, None));
    }

    #[test]
    fn times_that_the_server_does_not_take_are_unknown_and_not_zero() {
        let off = "--performance-schema-instrument=wait/io/file/innodb/%=OFF";
        let Some(server) = server_with(&["--performance-schema=ON", off]) else { return };
        let monitor = Monitor::start(MonitorRequest {
            connector: server.connector(),
            application: "tests".to_owned(),
            page_bytes: 16_384,
            reads_directly: true,
            sample_every: Duration::from_millis(10),
        })
        .unwrap();
        assert!(monitor.notes().iter().any(|note| note.starts_with("files are not counted")), "{:?}", monitor.notes());
        let node = next(&monitor).servers.remove(0);
        assert!(!node.activity.contains_key(&Activity::BlockReadNs), "{node:?}");
    }

    #[test]
    fn what_the_server_counted_is_what_the_load_did() {
        let Some(server) = server_with(&[
            "--performance-schema=ON",
            "--innodb-buffer-pool-size=8M",
            "--innodb-read-ahead-threshold=0",
            "--loose-innodb-monitor-enable=log_lsn_%",
        ]) else {
            return;
        };
        let connector = server.connector();
        let access = Access::new(&connector, "run_watched");
        set_up(&access, &SetupRequest { scale_blocks: 2000, ..data_request() }).unwrap();
        let data = load(&access).unwrap();
        let sample_every = Duration::from_millis(10);
        let servers = MysqlServers::new(connector.clone(), Sql::new("run_watched", data.block_bytes));
        let monitor = Monitor::start(MonitorRequest {
            connector,
            application: "plimsoll tests".to_owned(),
            page_bytes: data.block_bytes,
            reads_directly: true,
            sample_every,
        })
        .unwrap();
        assert_eq!(monitor.notes(), Vec::<String>::new());
        next(&monitor);
        let operation =
            |kind, first_key, keys| SlobOperation { kind, schema: 0, first_key, keys, redo_stress: RedoStress::Heavy };
        let batch: Arc<[SlobOperation]> = (0..20)
            .flat_map(|number| {
                [operation(OperationKind::Read, number * 90, 90), operation(OperationKind::Update, number * 90, 4)]
            })
            .collect();
        let filling = vec![5; crate::batch_filling_bytes(128) as usize];
        block_on(async {
            let session = servers.open_session(0).await.unwrap();
            session.execute_batch(&batch, &filling).await.unwrap();
        });
        let reported = next(&monitor);
        let [node] = reported.servers.as_slice() else { panic!("{reported:?}") };
        let counters = &node.counters;
        // Each row that is touched is a page; the pool holds a quarter of them.
        match counters.logical_reads {
            Some(reads) => assert!(reads > 20 * 94, "{node:?}"),
            // MariaDB 10.11.5 forgets to count them.
            None => assert_eq!(node.own["Innodb_buffer_pool_read_requests"], 0, "{node:?}"),
        }
        let read = counters.physical_reads.unwrap();
        assert!((900..3000).contains(&read), "{node:?}");
        assert_eq!(counters.physical_read_bytes, Some(read * 16_384), "{node:?}");
        // Read one after the other, while the server purges.
        assert!(node.own["file.innodb_data_file.reads"].abs_diff(read) <= read / 10, "{node:?}");
        assert!(counters.redo_bytes.unwrap() > 80 * 19 * 128, "{node:?}");
        assert!(node.activity[&Activity::Commits] >= 20 && node.activity[&Activity::RowsUpdated] >= 80, "{node:?}");
        assert!(node.activity[&Activity::BlockReadNs] > 0, "{node:?}");
        assert!(node.gauges[&Gauge::DirtyBlocks] > 0, "{node:?}");
        // The server is a process of this user on this machine, and has worked.
        assert!(node.cpu.is_some_and(|cpu| cpu.user_ns + cpu.system_ns > 0), "{node:?}");
        assert!(node.run_delay_ns.is_some(), "{node:?}");
        assert_eq!(reported.counters, node.counters, "of one server all that it counts");
    }
}
