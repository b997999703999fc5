//! Settings of private servers, given on the command line, and what a server reports on its own.

use std::collections::BTreeMap;

use mysql_async::prelude::Queryable;

use super::binaries::Binaries;
use super::{PID_FILE, SOCKET};
use crate::ServerError;
use crate::ending::on_own_runtime;
use crate::mysql::connect::Connector;
use crate::private::{PrivateError, Starting, file_error};
use model::record::{ServerFacts, TargetFacts, Term};
use model::units::{Bytes, group_thousands};

/// Redo between two checkpoints. The servers' own hundred megabytes would have a load of updates checkpoint all the time.
const DEFAULT_REDO: Bytes = Bytes::gib(1);
const MIN_REDO: Bytes = Bytes::mib(96);
/// The server itself and its performance_schema.
const BASE: Bytes = Bytes::mib(256);
/// What MySQL takes more than MariaDB: 8.0.15 holds 380 MB with a buffer pool of 24 MiB and no session.
pub(super) const MORE_OF_MYSQL: Bytes = Bytes::mib(256);
/// A session's thread: buffers, prepared statements, stack.
const SESSION: Bytes = Bytes::mib(3);
/// InnoDB's own bookkeeping of its buffer pool: one part in this many.
const BOOKKEEPING_PART: u64 = 8;

/// Settings that matter to results; those that a version does not have are not shown.
const SHOWN: [&str; 33] = [
    "binlog_format",
    "innodb_adaptive_hash_index",
    "innodb_buffer_pool_instances",
    "innodb_buffer_pool_load_at_startup",
    "innodb_buffer_pool_size",
    "innodb_change_buffering",
    "innodb_checksum_algorithm",
    "innodb_data_file_buffering",
    "innodb_data_file_write_through",
    "innodb_doublewrite",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_flush_neighbors",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_lock_wait_timeout",
    "innodb_log_buffer_size",
    "innodb_log_file_buffering",
    "innodb_log_file_size",
    "innodb_lru_scan_depth",
    "innodb_max_dirty_pages_pct",
    "innodb_page_size",
    "innodb_purge_threads",
    "innodb_random_read_ahead",
    "innodb_read_ahead_threshold",
    "innodb_read_io_threads",
    "innodb_redo_log_capacity",
    "innodb_use_native_aio",
    "innodb_write_io_threads",
    "log_bin",
    "max_connections",
    "performance_schema",
    "sync_binlog",
];

/// Pages that the page cleaner keeps free, as a part of the buffer pool: enough for sessions to find one, and few beside the rest.
/// The servers' own 1,024 or more would be most of a small one, which would then hold next to nothing.
const FREE_PART: u64 = 32;
/// Bounds of `innodb_lru_scan_depth`: InnoDB's own least, and what MySQL takes by itself.
const FREE_PAGES: [u64; 2] = [100, 1_024];
/// The usual page: the server's own is not known before it runs.
const PAGE: u64 = 16_384;
/// More of the pool than this must not be kept free, or hit ratios are others than its size suggests.
const MAX_FREE_SHARE: f64 = 0.125;

/// What the server calls things.
const TERMS: [(Term, &str); 3] =
    [(Term::Log, "redo log"), (Term::BufferCache, "innodb_buffer_pool_size"), (Term::Sessions, "the process list")];

/// The least memory in which a server can live with so many sessions, in whole MiB.
pub(super) fn needed_memory(db_cache: Bytes, sessions: u32) -> Bytes {
    let pool = db_cache.0.saturating_add(db_cache.0 / BOOKKEEPING_PART);
    let needed = pool.saturating_add(BASE.0 + SESSION.0 * u64::from(sessions));
    Bytes(needed.checked_next_multiple_of(1 << 20).unwrap_or(u64::MAX))
}

/// What to know where the server keeps so many pages free that its buffer pool holds much less than its size suggests.
pub(in crate::mysql) fn free_pages_note(settings: &BTreeMap<String, String>, page_bytes: u32) -> Option<String> {
    let setting = |name: &str| settings.get(name)?.parse::<u64>().ok();
    let (depth, pool) = (setting("innodb_lru_scan_depth")?, setting("innodb_buffer_pool_size")?);
    let pages = pool / u64::from(page_bytes.max(1));
    let free = depth.saturating_mul(setting("innodb_buffer_pool_instances").unwrap_or(1).max(1));
    (free as f64 > pages as f64 * MAX_FREE_SHARE).then(|| {
        format!(
            "the server keeps {} of the {} pages of its buffer pool free (`innodb_lru_scan_depth`). Fewer reads hit \
            it than its size suggests. About {} would be enough",
            group_thousands(free.min(pages) as f64),
            group_thousands(pages as f64),
            group_thousands(free_pages(pool) as f64)
        )
    })
}

/// How many pages of a buffer pool of so many bytes to keep free.
fn free_pages(pool_bytes: u64) -> u64 {
    (pool_bytes / PAGE / FREE_PART).clamp(FREE_PAGES[0], FREE_PAGES[1])
}

/// The parameters that a server is started with. What begins with `loose` is passed over by versions that do not have it.
///
/// # Errors
/// When the size of the file system cannot be found out.
pub(super) fn arguments(start: &Starting<'_>, binaries: &Binaries) -> Result<Vec<String>, PrivateError> {
    let files = start.files;
    let directory = files.directory();
    let system = rustix::fs::statvfs(directory).map_err(|error| file_error("look at", directory)(error.into()))?;
    let redo = (system.f_blocks.saturating_mul(system.f_frsize) / 8).clamp(MIN_REDO.0, DEFAULT_REDO.0);
    let data = files.data();
    // A relocated server looks for its messages beside its programs.
    let mut arguments = vec![
        "--no-defaults".to_owned(),
        format!("--datadir={}", data.display()),
        format!("--socket={}/{SOCKET}", start.sockets),
        format!("--pid-file={}", data.join(PID_FILE).display()),
        format!("--tmpdir={}", files.run().display()),
        format!("--innodb-buffer-pool-size={}", start.db_cache.0),
        format!("--innodb-doublewrite={}", if start.page_protection { "ON" } else { "OFF" }),
        format!("--max-connections={}", start.max_connections),
        format!("--innodb-lru-scan-depth={}", free_pages(start.db_cache.0)),
    ];
    let fixed = [
        // Reached only through its socket, which only its user and root reach.
        "skip-networking",
        "loose-mysqlx=OFF",
        "skip-log-bin",
        "local-infile=1",
        // What commits promise is what is measured.
        "innodb-flush-log-at-trx-commit=1",
        // A block that is read is one that was asked for.
        "innodb-buffer-pool-dump-at-shutdown=OFF",
        "innodb-buffer-pool-load-at-startup=OFF",
        "innodb-adaptive-hash-index=OFF",
        "loose-innodb-change-buffering=none",
        "innodb-read-ahead-threshold=0",
        "innodb-random-read-ahead=OFF",
        "performance-schema=ON",
    ];
    arguments.extend(fixed.iter().map(|setting| format!("--{setting}")));
    let version: Vec<u32> = binaries.version.split(['.', '-']).map_while(|part| part.parse().ok()).collect();
    arguments.push(if binaries.is_mariadb() && version >= vec![11] {
        "--innodb-data-file-buffering=OFF".to_owned()
    } else {
        "--innodb-flush-method=O_DIRECT".to_owned()
    });
    if !binaries.is_mariadb() && version < vec![8, 0, 30] {
        // Only there the log's position and the age of its checkpoint are counted, and they are off.
        arguments.push("--innodb-monitor-enable=log_lsn_%".to_owned());
    }
    arguments.push(match (binaries.is_mariadb(), version >= vec![8, 0, 30]) {
        (false, true) => format!("--innodb-redo-log-capacity={redo}"),
        // Two files of MySQL make one of MariaDB.
        (false, false) => format!("--innodb-log-file-size={}", redo / 2),
        (true, _) => format!("--innodb-log-file-size={redo}"),
    });
    Ok(arguments)
}

/// What matters to results on any server: `server_version`, and the settings that matter to results.
///
/// # Errors
/// When the server cannot be connected to, or refuses.
pub fn facts(connector: &Connector, node: usize) -> Result<TargetFacts, ServerError> {
    on_own_runtime(async {
        let mut connected = connector.connect(node).await?;
        let asked = connected.conn.query::<(String, String), _>("SHOW GLOBAL VARIABLES").await;
        let variables = asked.map_err(|error| connected.error("read its settings", &error))?;
        let settings: BTreeMap<String, String> =
            variables.into_iter().filter(|(name, _)| SHOWN.contains(&name.as_str())).collect();
        // Where both are there, the newer one can be changed while the server runs, and the older one only says how it was started.
        let (setting, direct) = match settings.contains_key("innodb_data_file_buffering") {
            true => ("innodb_data_file_buffering", "OFF"),
            false => ("innodb_flush_method", "O_DIRECT"),
        };
        let is_direct = settings.get(setting).is_some_and(|set| set.starts_with(direct));
        let terms = TERMS.map(|(term, name)| (term, name.to_owned())).into_iter();
        let mut server = ServerFacts {
            reads_directly: Some(is_direct),
            counts_device_reads: Some(is_direct),
            settings,
            terms: terms.chain([(Term::DirectReads, format!("{setting}={direct}"))]).collect(),
            ..ServerFacts::default()
        };
        connector.describe(&connected, &mut server);
        let other = [("server_version".to_owned(), connected.version.text.clone())].into();
        Ok(TargetFacts { server, other, ..TargetFacts::default() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_that_is_mostly_kept_free_is_pointed_out() {
        let settings = |depth: &str, pool: u64, instances: Option<&str>| {
            let mut settings = BTreeMap::from([
                ("innodb_lru_scan_depth".to_owned(), depth.to_owned()),
                ("innodb_buffer_pool_size".to_owned(), pool.to_string()),
            ]);
            settings.extend(instances.map(|count| ("innodb_buffer_pool_instances".to_owned(), count.to_owned())));
            settings
        };
        let note = free_pages_note(&settings("1024", 16 << 20, None), 16_384).unwrap();
        assert!(note.contains("keeps 1,024 of the 1,024 pages") && note.contains("About 100 would"), "{note}");
        assert_eq!(free_pages_note(&settings("100", 16 << 20, None), 16_384), None);
        assert_eq!(free_pages_note(&settings("1024", 8 << 30, Some("8")), 16_384), None);
        assert!(free_pages_note(&settings("1024", 1 << 30, Some("16")), 16_384).is_some());
        assert_eq!(free_pages_note(&BTreeMap::new(), 16_384), None);
    }
}
