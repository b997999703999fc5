//! Private servers with a real server of each kind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, kill_process};

use super::*;
use crate::private::{OurFile, inspect, is_alive, remove};
use crate::{mysql, postgres};
use test_support::scratch::is_in_memory;
use test_support::skip::skip;

type Postgres = postgres::cluster::Binaries;
type Mysql = mysql::server::Binaries;

/// What distinguishes kinds of servers in these tests.
pub(crate) trait Tested: Programs {
    /// Statements, and what they give on a server of 16 MiB of buffers for 4 sessions.
    const SETTINGS: &'static [(&'static str, &'static str)];
    /// Stores something; and asks for what was stored.
    const STORED: [&'static str; 3];
    /// A limit of memory that a server can live with.
    const LIMIT: Bytes;
    /// A directory with as odd a name as its programs take.
    const ODD: &'static str;

    /// The first field of the first row.
    fn ask(server: &PrivateServer<Self>, sql: &str) -> String;
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

impl Tested for Postgres {
    const SETTINGS: &'static [(&'static str, &'static str)] = &[
        ("SHOW shared_buffers", "16MB"),
        ("SHOW max_connections", "24"),
        ("SHOW listen_addresses", ""),
        ("SHOW data_checksums", "on"),
        ("SHOW fsync", "on"),
        ("SELECT current_user || current_database()", "plimsollplimsoll"),
    ];
    const STORED: [&'static str; 3] = ["CREATE TABLE t AS SELECT 42 AS answer", "SELECT answer FROM t", "42"];
    const LIMIT: Bytes = Bytes::mib(128);
    const ODD: &'static str = "with \"quotes\", and commas";

    fn ask(server: &PrivateServer<Self>, sql: &str) -> String {
        block_on(async {
            let connector = postgres::Connector::new(server.address(), "test").unwrap();
            let rows = connector.connect(0).await.unwrap().client.simple_query(sql).await.unwrap();
            let first = rows.iter().find_map(|row| match row {
                tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            });
            first.unwrap_or_default()
        })
    }
}

impl Tested for Mysql {
    const SETTINGS: &'static [(&'static str, &'static str)] = &[
        ("SELECT @@innodb_buffer_pool_size", "16777216"),
        ("SELECT @@max_connections", "24"),
        ("SELECT CAST(@@skip_networking AS CHAR) IN ('1', 'ON')", "1"),
        ("SELECT CAST(@@performance_schema AS CHAR) IN ('1', 'ON')", "1"),
        ("SELECT CAST(@@innodb_adaptive_hash_index AS CHAR) IN ('1', 'ON')", "0"),
        ("SELECT CAST(@@innodb_doublewrite AS CHAR) IN ('1', 'ON')", "1"),
        ("SELECT @@innodb_flush_log_at_trx_commit", "1"),
        ("SELECT @@innodb_read_ahead_threshold", "0"),
        ("SELECT @@innodb_lru_scan_depth", "100"),
        ("SELECT CAST(@@log_bin AS CHAR) IN ('1', 'ON')", "0"),
    ];
    const STORED: [&'static str; 3] = ["CREATE DATABASE kept", "SHOW DATABASES LIKE 'kept'", "kept"];
    const LIMIT: Bytes = Bytes::mib(320);
    const ODD: &'static str = "data";

    fn ask(server: &PrivateServer<Self>, sql: &str) -> String {
        mysql::server::ask(server.address(), sql)
    }
}

/// A directory that the server's user can enter; `None`, with a word about it, where no server of the kind is installed.
pub(crate) fn place<P: Programs>() -> Option<tempfile::TempDir> {
    let place = tempfile::Builder::new().prefix("plimsoll-test-").tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    if P::find(None, &Files::new(P::KIND, place.path()).unwrap()).is_err() {
        skip(format_args!("no server of {} is installed", P::KIND.product));
        return None;
    }
    Some(place)
}

pub(crate) fn request(directory: &Path) -> ServerRequest {
    ServerRequest {
        directory: directory.to_owned(),
        create: true,
        db_cache: Bytes::mib(16),
        host_memory: None,
        max_sessions: 4,
        sessions: 4,
        page_protection: true,
        keep_running: false,
        binaries: None,
    }
}

pub(crate) fn start<P: Programs>(request: &ServerRequest) -> Result<PrivateServer<P>, TargetError> {
    PrivateServer::start(request, &|_| {}, &AtomicBool::new(false))
}

pub(crate) fn remove_it<P: Programs>(directory: &Path) -> Result<Vec<OurFile>, TargetError> {
    remove::<P>(directory, &|_| {}, &AtomicBool::new(false))
}

/// The message and the hint of a refusal.
pub(crate) fn refusal<T>(result: Result<T, impl Into<TargetError>>) -> String {
    let Err(error) = result else { panic!("it was not refused") };
    let error = error.into();
    format!("{error}; {}", error.hint().unwrap_or_default())
}

#[track_caller]
pub(crate) fn assert_says(said: &str, words: &[&str]) {
    assert!(words.iter().all(|word| said.contains(word)), "{words:?} in: {said}");
}

/// Processes that work in the server's data or were started for them, supervisors among them.
pub(crate) fn processes_of(directory: &Path) -> Vec<String> {
    let named = |pid: &str| -> Option<String> {
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        let works_in = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        let is_ours = command.contains(directory.to_str()?) || works_in.starts_with(directory);
        (is_ours && is_alive(pid.parse().ok()?)).then(|| format!("{pid}: {command}"))
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| named(entry.file_name().to_str()?)).collect()
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
    let begun = Instant::now();
    while is_alive(pid) {
        assert!(begun.elapsed() < Duration::from_secs(30), "process {pid} does not end");
        thread::sleep(Duration::from_millis(20));
    }
}

fn parent_of(pid: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Made with the settings asked for; what is stored outlives servers that end, and those that are killed; nothing is left.
fn lives<P: Tested>() {
    let Some(place) = place::<P>() else { return };
    let directory = place.path().join("new/server");
    assert_eq!(inspect::<P>(&directory).unwrap(), None);
    let server = start::<P>(&request(&directory)).unwrap();
    for (asked, value) in P::SETTINGS {
        assert_eq!(P::ask(&server, asked), *value, "{asked}");
    }
    let TargetFacts { server: known, other, .. } = server.facts();
    assert_eq!((known.settings["max_connections"].as_str(), known.is_private), ("24", Some(true)));
    let buffers: Bytes = known.settings[P::KIND.buffers_setting].parse().unwrap();
    assert!(buffers == Bytes::mib(16) && other.contains_key("server_version"), "{known:?} {other:?}");
    assert!(!known.settings.contains_key("listen_addresses") && known.memory_limit_bytes.is_none(), "{known:?}");
    assert_eq!(server.data_directory(), directory.join("data"));
    let found = inspect::<P>(&directory).unwrap().unwrap();
    assert_eq!(found.in_use_by, Some(format!("process {}", std::process::id())));
    let running = found.running.unwrap();
    assert_eq!((running.pid, running.is_ours, running.address.as_ref()), (server.pid(), true, Some(server.address())));
    // Nobody but the server's user gets to the socket.
    assert_eq!(fs::metadata(directory.join("run")).unwrap().permissions().mode() & 0o777, 0o700);
    let [store, ask, stored] = P::STORED;
    P::ask(&server, store);
    server.stop().unwrap();
    assert_eq!(processes_of(&directory), Vec::<String>::new());
    let again = ServerRequest { create: false, ..request(&directory) };
    let server = start::<P>(&again).unwrap();
    kill(server.pid());
    assert_says(&refusal(server.stop()), &["failed", "the next start recovers it"]);
    let server = start::<P>(&again).unwrap();
    assert_eq!(P::ask(&server, ask), stored);
    // Without its supervisor it is ended all the same.
    kill(parent_of(server.pid()));
    server.stop().unwrap();
    drop(start::<P>(&again).unwrap());
    assert_eq!(processes_of(&directory), Vec::<String>::new());
    let removed = remove_it::<P>(&directory).unwrap();
    assert!(
        removed.iter().any(|file| file.path == directory.join("data") && file.bytes > Bytes::mib(10)),
        "{removed:?}"
    );
    assert!(!directory.exists());
}

#[test]
fn what_is_stored_outlives_servers_that_end_and_nothing_else_does() {
    lives::<Postgres>();
    lives::<Mysql>();
}

fn refuses_others<P: Tested>() {
    let Some(place) = place::<P>() else { return };
    let ServerKind { noun, data_file, schemes: [address, private], .. } = P::KIND;
    let missing = place.path().join("missing");
    let said = refusal(start::<P>(&ServerRequest { create: false, ..request(&missing) }));
    assert_says(&said, &[&format!("no private {noun}"), "slob setup", private]);
    assert!(!missing.exists());
    fs::write(place.path().join("thesis.tex"), "years of work").unwrap();
    for said in [
        refusal(start::<P>(&request(place.path()))),
        refusal(inspect::<P>(place.path())),
        refusal(remove_it::<P>(place.path())),
    ] {
        assert_says(&said, &["it holds `thesis.tex`"]);
    }
    fs::rename(place.path().join("thesis.tex"), place.path().join(data_file)).unwrap();
    assert_says(&refusal(start::<P>(&request(place.path()))), &[address]);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn directories_of_others_and_missing_servers_are_refused_and_stay_as_they_are() {
    refuses_others::<Postgres>();
    refuses_others::<Mysql>();
}

/// One that was never finished is started over, and one that is stopped while it is made leaves nothing.
fn starts_over<P: Tested>() {
    let Some(place) = place::<P>() else { return };
    let directory = place.path().join("stopped");
    let stopped = PrivateServer::<P>::start(&request(&directory), &|_| {}, &AtomicBool::new(true));
    assert!(matches!(stopped, Err(TargetError::Interrupted)), "{stopped:?}");
    assert!(!directory.exists());
    assert_eq!(processes_of(&directory), Vec::<String>::new());
    let files = Files::new(P::KIND, place.path()).unwrap();
    files.mark("15.0".to_owned()).unwrap();
    fs::create_dir(files.unfinished_data()).unwrap();
    fs::write(files.unfinished_data().join(P::KIND.data_file), "15").unwrap();
    let said = refusal(start::<P>(&ServerRequest { create: false, ..request(place.path()) }));
    assert_says(&said, &["never finished"]);
    let server = start::<P>(&request(place.path())).unwrap();
    assert!(!files.unfinished_data().exists());
    server.stop().unwrap();
}

#[test]
fn a_server_that_was_never_finished_is_started_over() {
    starts_over::<Postgres>();
    starts_over::<Mysql>();
}

/// Used by later commands, and ended with its directory; also one whose path is too long, or too odd, for a socket.
fn is_kept<P: Tested>() {
    let Some(place) = place::<P>() else { return };
    let directory = place.path().join("long".repeat(30)).join(P::ODD);
    let kept = ServerRequest { keep_running: true, ..request(&directory) };
    let server = start::<P>(&kept).unwrap();
    let (pid, sockets) = (server.pid(), PathBuf::from(&server._sockets.path));
    assert!(!sockets.starts_with(place.path()) && sockets.is_dir());
    assert_eq!(fs::metadata(&sockets).unwrap().permissions().mode() & 0o777, 0o700);
    assert_says(&refusal(start::<P>(&kept)), &[&format!("in use by process {}", std::process::id())]);
    server.stop().unwrap();
    assert!(is_alive(pid));
    let later = start::<P>(&ServerRequest { db_cache: Bytes::mib(32), ..request(&directory) }).unwrap();
    assert_eq!((later.pid(), later.facts().server.is_private), (pid, Some(false)));
    assert_eq!(P::ask(&later, "SELECT 1"), "1");
    let note = format!("it has 16 MiB of {}, not the requested 32 MiB", P::KIND.buffers);
    assert_says(&later.notes().join("; "), &[&note]);
    later.stop().unwrap();
    assert!(is_alive(pid));
    let stop = stop_command(P::KIND, pid);
    let many = ServerRequest { max_sessions: 400, ..request(&directory) };
    assert_says(&refusal(start::<P>(&many)), &["24 connections, and 420 are needed", &stop]);
    let limited = ServerRequest { host_memory: Some(Bytes::gib(1)), ..request(&directory) };
    assert_says(&refusal(start::<P>(&limited)), &["without a memory limit of 1 GiB", &stop]);
    let unprotected = ServerRequest { page_protection: false, keep_running: false, ..request(&directory) };
    assert_says(
        &refusal(start::<P>(&unprotected)),
        &["runs with full-page writes", "without `--no-page-protection` it is used", &stop],
    );
    remove_it::<P>(&directory).unwrap();
    assert_eq!(processes_of(&directory), Vec::<String>::new());
    assert!(!directory.exists() && !sockets.exists());
    // Also as the server says it.
    let server = start::<P>(&unprotected).unwrap();
    let settings = &server.facts().server.settings;
    let set = settings.get("full_page_writes").or(settings.get("innodb_doublewrite")).unwrap();
    assert!(set.eq_ignore_ascii_case("off"), "{set}");
    server.stop().unwrap();
    remove_it::<P>(&directory).unwrap();
}

#[test]
fn a_kept_server_is_used_by_later_commands_and_ends_with_its_directory() {
    is_kept::<Postgres>();
    is_kept::<Mysql>();
}

/// Bounded by its limit, in a group that goes with it.
fn is_limited<P: Tested>(fill: &[&str]) {
    let Some(place) = place::<P>() else { return };
    let too_small = ServerRequest { host_memory: Some(Bytes::mib(64)), ..request(place.path()) };
    assert_says(&refusal(start::<P>(&too_small)), &["--host-memory", "it needs at least"]);
    let too_small = ServerRequest { db_cache: Bytes::kib(64), ..request(place.path()) };
    let least = format!("{} is the least", P::KIND.min_db_cache);
    assert_says(&refusal(start::<P>(&too_small)), &[P::KIND.buffers, &least, "--db-cache"]);
    match MemoryLimit::make(Bytes::mib(256)) {
        Ok(made) => drop(made),
        Err(refused) => return skip(refused),
    }
    if is_in_memory(place.path()) {
        return skip("on tmpfs the server's files count as its memory, which is limited here");
    }
    let files = Files::new(P::KIND, place.path()).unwrap();
    let more = P::find(None, &files).unwrap().more_memory();
    if more.0 > 0 {
        let error = start::<P>(&ServerRequest { host_memory: Some(P::LIMIT), ..request(place.path()) });
        assert_says(&refusal(error), &["--host-memory", "it needs at least"]);
    }
    let limit = Bytes(P::LIMIT.0 + more.0);
    let server = start::<P>(&ServerRequest { host_memory: Some(limit), ..request(place.path()) }).unwrap();
    let recorded = server.facts().server.memory_limit_bytes.map(Bytes);
    assert_eq!((limit_of(server.pid()), recorded), (Some(limit), Some(limit)));
    // More data than the limit: what the group holds of them is bounded.
    for statement in fill {
        P::ask(&server, statement);
    }
    let group = MemoryLimit::take_over(server.pid()).unwrap();
    let directory = group.directory().to_owned();
    group.keep();
    let used = ["memory.usage_in_bytes", "memory.current"]
        .iter()
        .find_map(|file| fs::read_to_string(directory.join(file)).ok());
    let used: u64 = used.unwrap().trim().parse().unwrap();
    assert!(used <= limit.0 && used > limit.0 / 4, "{used}");
    server.stop().unwrap();
    assert!(!directory.exists(), "{} is left", directory.display());
}

#[test]
fn limited_memory_bounds_the_server_and_its_group_goes_with_it() {
    is_limited::<Postgres>(&["CREATE TABLE t AS SELECT repeat('x', 1000) FROM generate_series(1, 200000)"]);
    is_limited::<Mysql>(&["SELECT 1"]);
}
