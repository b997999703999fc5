//! Private servers with a real server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicBool;

use mysql_async::prelude::Queryable;

use super::*;
use crate::scratch::is_in_memory;
use crate::skip::skip;
use crate::targets::mysql::test_server::block_on;
use crate::targets::sql::private::{MemoryLimit, PrivateServer, ServerRequest, is_alive, limit_of, remove};

type Server = PrivateServer<Binaries>;

/// A directory that the server's user can enter.
fn place() -> Option<tempfile::TempDir> {
    if Binaries::find(None).is_err() {
        skip("no MySQL or MariaDB server is installed");
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

fn start(request: &ServerRequest) -> Result<Server, TargetError> {
    Server::start(request, &|_| {}, &AtomicBool::new(false))
}

fn reported(error: &TargetError) -> String {
    format!("{error}; {}", error.hint().unwrap_or_default())
}

fn ask(server: &Server, sql: &str) -> String {
    block_on(async {
        let connector = Connector::new(server.address(), "test").unwrap();
        let mut connected = connector.connect(0).await.unwrap();
        connected.conn.query_first::<String, _>(sql).await.unwrap().unwrap_or_default()
    })
}

/// Processes that were started for the directory, supervisors among them.
fn processes_of(directory: &Path) -> Vec<String> {
    let named = |pid: &str| -> Option<String> {
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        (command.contains(directory.to_str()?) && is_alive(pid.parse().ok()?)).then(|| format!("{pid}: {command}"))
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| named(entry.file_name().to_str()?)).collect()
}

#[test]
fn a_server_is_made_with_the_settings_asked_for_and_leaves_no_process() {
    let Some(place) = place() else { return };
    let directory = place.path().join("new/my");
    assert_eq!(inspect::<Binaries>(&directory).unwrap(), None);
    let server = start(&request(&directory)).unwrap();
    for (setting, value) in [
        ("innodb_buffer_pool_size", "16777216"),
        ("max_connections", "24"),
        ("skip_networking", "1"),
        ("performance_schema", "1"),
        ("innodb_adaptive_hash_index", "0"),
        ("innodb_doublewrite", "1"),
        ("innodb_flush_log_at_trx_commit", "1"),
        ("innodb_read_ahead_threshold", "0"),
        ("log_bin", "0"),
    ] {
        let shown = ask(&server, &format!("SELECT CAST(@@{setting} AS CHAR)"));
        let shown = shown.replace("ON", "1").replace("OFF", "0");
        assert_eq!(shown, value, "{setting}");
    }
    let facts = server.facts();
    assert_eq!((facts["setting.max_connections"].as_str(), facts["started_by_us"].as_str()), ("24", "yes"));
    assert_eq!(facts["server_version"], ask(&server, "SELECT VERSION()"));
    let found = inspect::<Binaries>(&directory).unwrap().unwrap();
    assert_eq!(found.in_use_by, Some(format!("process {}", std::process::id())));
    assert_eq!(
        found.running.map(|running| (running.pid, running.address)),
        Some((server.pid(), Some(server.address().clone())))
    );
    assert_eq!(fs::metadata(directory.join("run")).unwrap().permissions().mode() & 0o777, 0o700);
    let error = start(&request(&directory)).unwrap_err();
    assert!(reported(&error).contains("in use by process"), "{}", reported(&error));
    ask(&server, "CREATE DATABASE kept");
    server.stop().unwrap();
    assert_eq!(processes_of(&directory), Vec::<String>::new());
    // What is stored outlives servers that end and servers that are killed.
    let server = start(&ServerRequest { create: false, ..request(&directory) }).unwrap();
    let killed = std::process::Command::new("kill").args(["-KILL", &server.pid().to_string()]).status().unwrap();
    assert!(killed.success());
    let error = server.stop().unwrap_err();
    assert!(reported(&error).contains("the next start recovers it"), "{}", reported(&error));
    let server = start(&ServerRequest { create: false, ..request(&directory) }).unwrap();
    assert_eq!(ask(&server, "SHOW DATABASES LIKE 'kept'"), "kept");
    drop(server);
    assert_eq!(processes_of(&directory), Vec::<String>::new());
    let removed = remove::<Binaries>(&directory, &|_| {}, &AtomicBool::new(false)).unwrap();
    assert!(removed.iter().any(|file| file.path == directory.join("data") && file.bytes > Bytes::mib(10)));
    assert!(!directory.exists());
}

#[test]
fn directories_of_others_and_missing_servers_are_refused_and_stay_as_they_are() {
    let Some(place) = place() else { return };
    let missing = place.path().join("missing");
    let error = start(&ServerRequest { create: false, ..request(&missing) }).unwrap_err();
    assert!(reported(&error).contains("no private server") && reported(&error).contains("my:"), "{}", reported(&error));
    assert!(!missing.exists());
    fs::write(place.path().join("ibdata1"), "years of work").unwrap();
    for error in [
        start(&request(place.path())).unwrap_err(),
        inspect::<Binaries>(place.path()).unwrap_err().into(),
        remove::<Binaries>(place.path(), &|_| {}, &AtomicBool::new(false)).unwrap_err(),
    ] {
        assert!(
            reported(&error).contains("it holds `ibdata1`") && reported(&error).contains("mysql://"),
            "{}",
            reported(&error)
        );
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn a_set_up_that_is_stopped_leaves_nothing() {
    let Some(place) = place() else { return };
    let directory = place.path().join("my");
    let stopped = Server::start(&request(&directory), &|_| {}, &AtomicBool::new(true));
    assert!(matches!(stopped, Err(TargetError::Interrupted)), "{stopped:?}");
    assert!(!directory.exists());
    assert_eq!(processes_of(&directory), Vec::<String>::new());
}

#[test]
fn a_kept_server_is_used_by_later_commands_and_ends_with_its_directory() {
    let Some(place) = place() else { return };
    // Also one whose path is too long for a socket.
    let directory = place.path().join("long".repeat(30));
    let kept = ServerRequest { keep_running: true, ..request(&directory) };
    let server = start(&kept).unwrap();
    let (pid, socket) = (server.pid(), server.address().socket.clone().unwrap());
    assert!(!socket.starts_with(place.path()));
    server.stop().unwrap();
    assert!(is_alive(pid));
    let later = start(&ServerRequest { db_cache: Bytes::mib(32), ..request(&directory) }).unwrap();
    assert_eq!((later.pid(), later.facts()["started_by_us"].as_str()), (pid, "no"));
    assert!(
        later.notes().join("; ").contains("it has 16 MiB of buffer pool, not the 32 MiB asked for"),
        "{:?}",
        later.notes()
    );
    later.stop().unwrap();
    for (more, complaint) in [
        (ServerRequest { max_sessions: 400, ..request(&directory) }, "24 connections, and 420 are needed"),
        (ServerRequest { host_memory: Some(Bytes::gib(1)), ..request(&directory) }, "without a memory limit of 1 GiB"),
    ] {
        let error = start(&more).unwrap_err();
        assert!(
            reported(&error).contains(complaint) && reported(&error).contains(&format!("kill {pid}")),
            "{}",
            reported(&error)
        );
    }
    remove::<Binaries>(&directory, &|_| {}, &AtomicBool::new(false)).unwrap();
    assert_eq!(processes_of(&directory), Vec::<String>::new());
    assert!(!directory.exists() && !socket.exists());
}

#[test]
fn limited_memory_bounds_the_server_and_its_group_goes_with_it() {
    let Some(place) = place() else { return };
    let error = start(&ServerRequest { host_memory: Some(Bytes::mib(64)), ..request(place.path()) }).unwrap_err();
    assert!(reported(&error).contains("it needs at least 286 MiB"), "{}", reported(&error));
    let error = start(&ServerRequest { db_cache: Bytes::mib(1), ..request(place.path()) }).unwrap_err();
    assert!(reported(&error).contains("at least 5 MiB"), "{}", reported(&error));
    match MemoryLimit::make(Bytes::mib(256)) {
        Ok(made) => drop(made),
        Err(refused) => return skip(refused),
    }
    if is_in_memory(place.path()) {
        return skip("on tmpfs the server's files count as its memory, which is limited here");
    }
    let limit = Bytes::mib(320);
    let server = start(&ServerRequest { host_memory: Some(limit), ..request(place.path()) }).unwrap();
    assert_eq!((limit_of(server.pid()), server.facts()["host_memory"].as_str()), (Some(limit), "320 MiB"));
    assert_eq!(ask(&server, "SELECT 'alive'"), "alive");
    server.stop().unwrap();
}
