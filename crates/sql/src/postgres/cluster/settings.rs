//! Settings of private servers, given on the command line, so that the cluster's own files stay as initdb and the user made
//! them.

use std::collections::BTreeMap;
use std::path::Path;

use super::CLUSTER_NAME;
use crate::private::{PrivateError, file_error};
use model::units::Bytes;

/// The server's own processes, its small shared memory and some page cache for catalogs and WAL.
const BASE: Bytes = Bytes::mib(64);
/// A session's process: catalog caches, prepared statements, stack.
const SESSION: Bytes = Bytes::mib(4);
/// Each process maps the shared buffers by page tables of its own, 8 bytes for 4 KiB, and they are charged too.
const PAGE_TABLES_OF: u64 = 512;
/// WAL between two checkpoints. PostgreSQL's own 1 GiB would have a load of updates checkpoint all the time.
const DEFAULT_MAX_WAL: Bytes = Bytes::gib(4);
const SMALLEST_MAX_WAL: Bytes = Bytes::mib(128);

/// What the settings are chosen from.
#[derive(Debug)]
pub(super) struct SettingOptions<'a> {
    pub(super) shared_buffers: Bytes,
    pub(super) page_protection: bool,
    pub(super) max_connections: u32,
    pub(super) socket_directory: &'a str,
    pub(super) port: u16,
    /// Size of the file system that the cluster is on.
    pub(super) file_system: Bytes,
}

/// Settings that old versions do not know, so they are given only where `postgres --describe-config` names them.
const NOT_EVERYWHERE: [&str; 1] = ["track_wal_io_timing"];

/// Settings that matter to results and that we leave as they are; those that a version does not know are not shown.
const ALSO_SHOWN: [&str; 19] = [
    "bgwriter_delay",
    "bgwriter_lru_maxpages",
    "block_size",
    "checkpoint_completion_target",
    "data_checksums",
    "debug_io_direct",
    "effective_io_concurrency",
    "huge_pages_status",
    "io_combine_limit",
    "io_method",
    "io_workers",
    "maintenance_work_mem",
    "min_wal_size",
    "shared_memory_type",
    "wal_buffers",
    "wal_compression",
    "wal_level",
    "wal_segment_size",
    "wal_sync_method",
];

/// Settings that only say where the server is reached.
const PLUMBING: [&str; 8] = [
    "cluster_name",
    "listen_addresses",
    "log_destination",
    "logging_collector",
    "port",
    "unix_socket_directories",
    "unix_socket_group",
    "unix_socket_permissions",
];

/// The settings to start a server with. `known` are the names of those that its version has.
pub(super) fn chosen(options: &SettingOptions, known: impl Fn(&str) -> bool) -> BTreeMap<&'static str, String> {
    let max_wal = options.file_system.0 / 4;
    let max_wal = max_wal.clamp(SMALLEST_MAX_WAL.0, DEFAULT_MAX_WAL.0) >> 20;
    let mut settings: BTreeMap<&'static str, String> = [
        // Reached only through its socket, which only its user and root reach.
        ("listen_addresses", ""),
        ("unix_socket_group", ""),
        ("unix_socket_permissions", "0700"),
        ("cluster_name", CLUSTER_NAME),
        // What commits promise is what is measured.
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        // Time of reads and writes is half of what the report reports.
        ("track_io_timing", "on"),
        ("track_wal_io_timing", "on"),
        // Compiling statements has no place among statements that take microseconds.
        ("jit", "off"),
        ("huge_pages", "try"),
        ("checkpoint_timeout", "5min"),
        // As in real life; the log says when it ran.
        ("autovacuum", "on"),
        ("log_autovacuum_min_duration", "0"),
        ("log_checkpoints", "on"),
        ("logging_collector", "off"),
        ("log_destination", "stderr"),
        // Nobody else's code in the server.
        ("shared_preload_libraries", ""),
        ("archive_mode", "off"),
    ]
    .into_iter()
    .map(|(name, value)| (name, value.to_owned()))
    .collect();
    settings.insert("full_page_writes", if options.page_protection { "on" } else { "off" }.to_owned());
    settings.insert("max_wal_size", format!("{max_wal}MB"));
    settings.insert("shared_buffers", format!("{}kB", options.shared_buffers.0 >> 10));
    settings.insert("max_connections", options.max_connections.to_string());
    settings.insert("port", options.port.to_string());
    // A list, in which a comma would part two directories.
    settings.insert("unix_socket_directories", format!("\"{}\"", options.socket_directory));
    settings.retain(|name, _| !NOT_EVERYWHERE.contains(name) || known(name));
    settings
}

/// The least memory in which a server can live with so many sessions, in whole MiB: with less it would be killed, or its shared
/// buffers squeezed.
pub(super) fn needed_memory(shared_buffers: Bytes, sessions: u32) -> Bytes {
    let each = SESSION.0 + shared_buffers.0 / PAGE_TABLES_OF;
    let needed = shared_buffers.0.saturating_add(BASE.0).saturating_add(each.saturating_mul(sessions.into()));
    Bytes(needed.checked_next_multiple_of(1 << 20).unwrap_or(u64::MAX))
}

/// Size of the file system that holds `path`.
///
/// # Errors
/// The system's error.
pub(super) fn file_system_bytes(path: &Path) -> Result<Bytes, PrivateError> {
    let reported = rustix::fs::statvfs(path);
    let reported = reported.map_err(|error| file_error("look at the file system of", path)(error.into()))?;
    Ok(Bytes(reported.f_blocks.saturating_mul(reported.f_frsize)))
}

/// Reads the settings to show: those that we choose, those that matter, and whatever the cluster's own files set besides
/// language and formats. Gives names and values.
pub(super) const SHOWN_SQL: &str = "SELECT name, current_setting(name) FROM pg_settings \
    WHERE name = ANY($1) \
    OR (source = 'configuration file' AND category NOT LIKE 'Client Connection Defaults%' AND name <> 'log_timezone' \
        AND name <> ALL($2)) \
    ORDER BY name";

/// Values of the two parameters of [`SHOWN_SQL`].
pub(super) fn shown() -> (Vec<&'static str>, Vec<&'static str>) {
    let options = SettingOptions {
        shared_buffers: Bytes(0),
        page_protection: true,
        max_connections: 0,
        socket_directory: "",
        port: 0,
        file_system: Bytes(0),
    };
    let chosen = chosen(&options, |_| true);
    let names = chosen.into_keys().filter(|name| !PLUMBING.contains(name)).chain(ALSO_SHOWN).collect();
    (names, PLUMBING.to_vec())
}

#[cfg(test)]
mod tests {
    use targets::DatabaseError as _;

    use super::super::Binaries;
    use super::*;
    use crate::private::check_memory;

    fn settings(file_system: Bytes, known: &str) -> BTreeMap<&'static str, String> {
        let options = SettingOptions {
            shared_buffers: Bytes::mib(64),
            page_protection: true,
            max_connections: 28,
            socket_directory: "/u01/my pg, really/run",
            port: 5432,
            file_system,
        };
        chosen(&options, |name| name == known)
    }

    #[test]
    fn settings_follow_the_request_and_the_version() {
        let chosen = settings(Bytes::gib(100), "track_wal_io_timing");
        assert_eq!((chosen["shared_buffers"].as_str(), chosen["max_connections"].as_str()), ("65536kB", "28"));
        assert_eq!(chosen["unix_socket_directories"], "\"/u01/my pg, really/run\"");
        assert_eq!((chosen["max_wal_size"].as_str(), chosen["track_wal_io_timing"].as_str()), ("4096MB", "on"));
        assert!(!settings(Bytes::gib(100), "").contains_key("track_wal_io_timing"));
        assert_eq!(chosen["full_page_writes"], "on");
    }

    #[test]
    fn a_small_file_system_is_not_filled_with_wal() {
        assert_eq!(settings(Bytes::gib(2), "")["max_wal_size"], "512MB");
        assert_eq!(settings(Bytes::mib(200), "")["max_wal_size"], "128MB");
    }

    #[test]
    fn what_is_chosen_for_results_is_shown_and_where_the_server_is_reached_is_not() {
        let (shown, hidden) = shown();
        assert!(shown.contains(&"shared_buffers") && shown.contains(&"fsync") && shown.contains(&"wal_level"));
        assert!(hidden.iter().all(|name| !shown.contains(name)));
    }

    #[test]
    fn a_limit_that_leaves_the_server_no_room_is_refused() {
        check_memory::<Binaries>(Bytes::mib(128 + 64 + 8 * 5), Bytes::mib(128), 8, Bytes(0)).unwrap();
        let error = check_memory::<Binaries>(Bytes::mib(128), Bytes::mib(128), 8, Bytes(0)).unwrap_err();
        assert!(error.to_string().contains("and 8 sessions: it needs at least 226 MiB"), "{error}");
        assert!(error.hint().unwrap().contains("--host-memory 226M"), "{error}");
        check_memory::<Binaries>(needed_memory(Bytes::mib(128), 8), Bytes::mib(128), 8, Bytes(0)).unwrap();
        // 16 GiB of buffers take 32 MiB of page tables in each process.
        check_memory::<Binaries>(
            Bytes((16 << 30) + 64 * (1 << 20) + 100 * 36 * (1 << 20) - 1),
            Bytes::gib(16),
            100,
            Bytes(0),
        )
        .unwrap_err();
    }
}
