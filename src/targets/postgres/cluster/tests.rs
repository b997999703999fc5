//! Private clusters with a real server.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::super::connect::{Connected, Connector};
use super::super::test_server::block_on;
use super::*;
use crate::scratch::is_in_memory;
use crate::skip::skip;
use crate::targets::sql::private::{MemoryLimit, PrivateServer, ServerRequest, inspect, is_alive, limit_of, remove};

type Cluster = PrivateServer<Binaries>;

/// A directory that the server's user can enter.
fn place() -> Option<tempfile::TempDir> {
    if Binaries::find(None, None).is_err() {
        skip("PostgreSQL's server is not installed");
        return None;
    }
    let place = tempfile::Builder::new().prefix("plimsoll-test-").tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    Some(place)
}

fn request(directory: &Path) -> ServerRequest {
    ServerRequest {
        directory: directory.to_owned(),
        create: true,
        db_cache: Bytes::mib(16),
        host_memory: None,
        max_sessions: 4,
        sessions: 4,
        keep_running: false,
        binaries: None,
    }
}

fn start(request: &ServerRequest) -> Result<Cluster, TargetError> {
    Cluster::start(request, &|_| {}, &AtomicBool::new(false))
}

fn reported(error: &TargetError) -> String {
    format!("{error}; {}", error.hint().unwrap_or_default())
}

fn ask(cluster: &Cluster, sql: &str) -> String {
    block_on(async {
        let connector = Connector::new(cluster.address(), "test").unwrap();
        let Connected { client, .. } = connector.connect(0).await.unwrap();
        let rows = client.simple_query(sql).await.unwrap();
        let first = rows.iter().find_map(|row| match row {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        first.unwrap_or_default()
    })
}

/// Processes that work in the cluster's data or were started for them, supervisors among them.
fn processes_of(directory: &Path) -> Vec<String> {
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

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(30), "waited in vain: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_cluster_is_made_with_the_settings_asked_for_and_leaves_no_process() {
    let Some(place) = place() else { return };
    let directory = place.path().join("new/pg");
    assert_eq!(inspect::<Binaries>(&directory).unwrap(), None);
    let cluster = start(&request(&directory)).unwrap();
    assert_eq!(ask(&cluster, "SHOW shared_buffers"), "16MB");
    assert_eq!(ask(&cluster, "SHOW max_connections"), "24");
    assert_eq!(ask(&cluster, "SHOW listen_addresses"), "");
    assert_eq!(ask(&cluster, "SHOW data_checksums"), "on");
    assert_eq!(ask(&cluster, "SELECT current_user || current_database()"), "plimsollplimsoll");
    let facts = cluster.facts();
    let fact = |name: &str| facts[name].as_str();
    assert_eq!((fact("setting.shared_buffers"), fact("setting.fsync"), fact("started_by_us")), ("16MB", "on", "yes"));
    assert_eq!(fact("server_version"), ask(&cluster, "SHOW server_version"));
    assert!(!facts.contains_key("setting.listen_addresses") && !facts.contains_key("host_memory"), "{facts:?}");
    assert_eq!(cluster.data_directory(), directory.join("data"));
    let found = inspect::<Binaries>(&directory).unwrap().unwrap();
    assert_eq!(found.in_use_by, Some(format!("process {}", std::process::id())));
    assert_eq!(found.running.unwrap().pid, cluster.pid());
    // Nobody but the server's user gets to the socket.
    assert_eq!(fs::metadata(directory.join("run")).unwrap().permissions().mode() & 0o777, 0o700);
    cluster.stop().unwrap();
    assert_eq!(processes_of(&directory), Vec::<String>::new());
    let removed = remove::<Binaries>(&directory, &|_| {}, &AtomicBool::new(false)).unwrap();
    assert!(
        removed.iter().any(|file| file.path == directory.join("data") && file.bytes > Bytes::mib(10)),
        "{removed:?}"
    );
    assert!(!directory.exists());
}

#[test]
fn what_is_stored_outlives_servers_that_end_and_servers_that_are_killed() {
    let Some(place) = place() else { return };
    let request = request(place.path());
    let cluster = start(&request).unwrap();
    ask(&cluster, "CREATE TABLE t AS SELECT 42 AS answer");
    drop(cluster);
    assert_eq!(processes_of(place.path()), Vec::<String>::new());
    let request = ServerRequest { create: false, ..request };
    let cluster = start(&request).unwrap();
    let pid = cluster.pid();
    signal(pid, Signal::KILL);
    wait_until("the server ends", || !is_alive(pid));
    let error = cluster.stop().unwrap_err();
    assert!(error.to_string().contains("failed"), "{error}");
    let cluster = start(&request).unwrap();
    assert_eq!(ask(&cluster, "SELECT answer FROM t"), "42");
    cluster.stop().unwrap();
}

#[test]
fn a_server_whose_supervisor_was_killed_is_ended_all_the_same() {
    let Some(place) = place() else { return };
    let cluster = start(&request(place.path())).unwrap();
    let server = cluster.pid();
    let parent = fs::read_to_string(format!("/proc/{server}/stat")).unwrap();
    let parent: u32 = parent.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap();
    signal(parent, Signal::KILL);
    cluster.stop().unwrap();
    assert_eq!(processes_of(place.path()), Vec::<String>::new());
}

#[test]
fn directories_of_others_and_missing_clusters_are_refused_and_stay_as_they_are() {
    let Some(place) = place() else { return };
    let missing = place.path().join("missing");
    let error = start(&ServerRequest { create: false, ..request(&missing) }).unwrap_err();
    assert!(
        reported(&error).contains("no private cluster") && reported(&error).contains("slob setup"),
        "{}",
        reported(&error)
    );
    assert!(!missing.exists());
    fs::write(place.path().join("thesis.tex"), "years of work").unwrap();
    for error in [
        start(&request(place.path())).unwrap_err(),
        inspect::<Binaries>(place.path()).unwrap_err().into(),
        remove::<Binaries>(place.path(), &|_| {}, &AtomicBool::new(false)).unwrap_err(),
    ] {
        assert!(reported(&error).contains("it holds `thesis.tex`"), "{}", reported(&error));
    }
    fs::rename(place.path().join("thesis.tex"), place.path().join("PG_VERSION")).unwrap();
    let error = start(&request(place.path())).unwrap_err();
    assert!(reported(&error).contains("postgres://"), "{}", reported(&error));
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn a_cluster_that_was_never_finished_is_started_over() {
    let Some(place) = place() else { return };
    let files = Files::new(&CLUSTER, place.path()).unwrap();
    files.mark("15.0".to_owned()).unwrap();
    fs::create_dir(files.unfinished_data()).unwrap();
    fs::write(files.unfinished_data().join("PG_VERSION"), "15").unwrap();
    let error = start(&ServerRequest { create: false, ..request(place.path()) }).unwrap_err();
    assert!(reported(&error).contains("never finished"), "{}", reported(&error));
    let cluster = start(&request(place.path())).unwrap();
    assert!(!files.unfinished_data().exists());
    cluster.stop().unwrap();
}

#[test]
fn a_set_up_that_is_stopped_or_fails_leaves_nothing() {
    let Some(place) = place() else { return };
    let directory = place.path().join("pg");
    let stopped = Cluster::start(&request(&directory), &|_| {}, &AtomicBool::new(true));
    assert!(matches!(stopped, Err(TargetError::Interrupted)), "{stopped:?}");
    assert!(!directory.exists());
    assert_eq!(processes_of(&directory), Vec::<String>::new());
}

#[test]
fn a_path_too_long_for_a_socket_gets_one_elsewhere_which_goes_with_the_server() {
    let Some(place) = place() else { return };
    let directory = place.path().join("long".repeat(30)).join("with \"quotes\", and commas");
    let cluster = start(&request(&directory)).unwrap();
    let sockets = PathBuf::from(&cluster.address().nodes[0].host);
    assert!(!sockets.starts_with(place.path()) && sockets.is_dir());
    assert_eq!(fs::metadata(&sockets).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(ask(&cluster, "SELECT 1"), "1");
    cluster.stop().unwrap();
    assert!(!sockets.exists());
}

#[test]
fn a_kept_server_is_used_by_later_commands_and_ends_with_the_cluster() {
    let Some(place) = place() else { return };
    let kept = ServerRequest { keep_running: true, ..request(place.path()) };
    let cluster = start(&kept).unwrap();
    let pid = cluster.pid();
    let error = start(&kept).unwrap_err();
    assert!(reported(&error).contains(&format!("in use by process {}", std::process::id())), "{}", reported(&error));
    cluster.stop().unwrap();
    assert!(is_alive(pid));

    let later = start(&ServerRequest { db_cache: Bytes::mib(32), ..request(place.path()) }).unwrap();
    assert_eq!((later.pid(), ask(&later, "SELECT 1").as_str()), (pid, "1"));
    assert_eq!(later.facts()["started_by_us"], "no");
    let notes = later.notes().join("; ");
    assert!(notes.contains("it has 16 MiB of shared buffers, not the 32 MiB"), "{notes}");
    later.stop().unwrap();
    assert!(is_alive(pid));

    for (more, complaint) in [
        (ServerRequest { max_sessions: 400, ..request(place.path()) }, "24 connections, and 420 are needed"),
        (
            ServerRequest { host_memory: Some(Bytes::mib(512)), ..request(place.path()) },
            "without a memory limit of 512 MiB",
        ),
    ] {
        let error = start(&more).unwrap_err();
        assert!(
            reported(&error).contains(complaint) && reported(&error).contains(&format!("kill -INT {pid}")),
            "{}",
            reported(&error)
        );
    }

    let options = place.path().join("data/postmaster.opts");
    let ours = fs::read_to_string(&options).unwrap();
    fs::write(&options, "/usr/bin/postgres \"-D\" \"data\"\n").unwrap();
    let nobody = AtomicBool::new(false);
    for error in [start(&kept).unwrap_err(), remove::<Binaries>(place.path(), &|_| {}, &nobody).unwrap_err()] {
        assert!(reported(&error).contains("Plimsoll has not started"), "{}", reported(&error));
    }
    fs::write(&options, ours).unwrap();
    remove::<Binaries>(place.path(), &|_| {}, &nobody).unwrap();
    assert_eq!(processes_of(place.path()), Vec::<String>::new());
    assert!(!place.path().exists());
}

#[test]
fn a_server_that_cannot_start_says_why_and_leaves_no_process() {
    let Some(place) = place() else { return };
    start(&request(place.path())).unwrap().stop().unwrap();
    let configuration = place.path().join("data/postgresql.conf");
    let text = fs::read_to_string(&configuration).unwrap();
    fs::write(&configuration, format!("{text}\nno_such_setting = 7\n")).unwrap();
    let error = start(&request(place.path())).unwrap_err();
    assert!(error.to_string().contains("no_such_setting"), "{error}");
    assert_eq!(processes_of(place.path()), Vec::<String>::new());
}

#[test]
fn what_the_user_set_in_the_clusters_own_files_is_shown() {
    let Some(place) = place() else { return };
    let cluster = start(&request(place.path())).unwrap();
    ask(&cluster, "ALTER SYSTEM SET random_page_cost = 1.5");
    ask(&cluster, "ALTER SYSTEM SET shared_buffers = '99MB'");
    cluster.stop().unwrap();
    let cluster = start(&request(place.path())).unwrap();
    let facts = cluster.facts();
    assert_eq!((facts["setting.random_page_cost"].as_str(), facts["setting.shared_buffers"].as_str()), ("1.5", "16MB"));
    cluster.stop().unwrap();
}

#[test]
fn limited_memory_bounds_the_server_and_its_group_goes_with_it() {
    let Some(place) = place() else { return };
    let too_small = ServerRequest { host_memory: Some(Bytes::mib(64)), ..request(place.path()) };
    let error = start(&too_small).unwrap_err();
    assert!(
        reported(&error).contains("--host-memory") && reported(&error).contains("at least"),
        "{}",
        reported(&error)
    );
    match MemoryLimit::make(Bytes::mib(256)) {
        Ok(made) => drop(made),
        Err(refused) => {
            return skip(refused);
        }
    }
    if is_in_memory(place.path()) {
        return skip("on tmpfs the server's files count as its memory, which is limited here");
    }
    let limit = Bytes::mib(128);
    let cluster = start(&ServerRequest { host_memory: Some(limit), ..request(place.path()) }).unwrap();
    let pid = cluster.pid();
    assert_eq!((limit_of(pid), cluster.facts()["host_memory"].as_str()), (Some(limit), "128 MiB"));
    // More data than the limit: what the group holds of them is bounded.
    ask(&cluster, "CREATE TABLE t AS SELECT repeat('x', 1000) FROM generate_series(1, 200000)");
    assert_eq!(ask(&cluster, "SELECT count(*) FROM t"), "200000");
    let group = MemoryLimit::take_over(pid).unwrap();
    let directory = group.directory().to_owned();
    group.keep();
    let used = ["memory.usage_in_bytes", "memory.current"]
        .iter()
        .find_map(|file| fs::read_to_string(directory.join(file)).ok());
    let used: u64 = used.unwrap().trim().parse().unwrap();
    assert!(used <= limit.0 && used > limit.0 / 4, "{used}");
    cluster.stop().unwrap();
    assert!(!directory.exists(), "{} is left", directory.display());
}
