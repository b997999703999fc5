//! SLOB on a real MariaDB: a private server from its set-up to its removal, by the commands that know no database.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::manners::wait_for_counted;
use crate::place::{Answer, Place};
use crate::probe::not_permitted;
use crate::servers::{last_run, running, servers, signal, wait_until};
use crate::skip::skip;
use sql::mysql::test_server::is_installed;

/// A place that the server's own user may reach too; `None`, with a word about it, without a server.
fn place() -> Option<Place> {
    if !is_installed() {
        return None;
    }
    let place = Place::new();
    fs::set_permissions(place.path("."), fs::Permissions::from_mode(0o755)).unwrap();
    Some(place)
}

fn address(place: &Place) -> String {
    format!("my:{}", place.path("my").display())
}

/// Two small schemas on a private server.
fn set_up(place: &Place, more: &[&str]) -> Answer {
    let words = ["slob", "setup", "-s", "2", "SCALE=600", "SCAN_TABLE_SZ=0", "--db-cache", "16M", "--quiet"];
    place.done(&[&words[..], &["--target", &address(place)], more].concat())
}

/// The server itself, rather than the shell that watches it; absent where none runs.
pub(crate) fn server_process(place: &Place) -> Option<u32> {
    let is_server = |pid: &u32| {
        let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        program.file_name().is_some_and(|name| name == "mariadbd" || name == "mysqld")
    };
    servers(&place.path("my")).into_iter().find(is_server)
}

#[test]
fn a_server_that_is_killed_ends_the_run_with_what_was_measured() {
    let Some(place) = place() else { return };
    set_up(&place, &[]);
    for send in ["statement", "batch"] {
        let mut child = running(&place, &address(&place), &["--send", send, "--db-cache", "16M", "UPDATE_PCT=20"]);
        wait_for_counted(&place, "operations");
        signal(server_process(&place).expect("the server runs"), "KILL");
        assert_eq!(child.wait().unwrap().code(), Some(2));
        let run = last_run(&place);
        let error = run["outcome"]["failed"]["error"].as_str().unwrap();
        assert!(error.contains("is gone"), "{error}");
        assert!(run["steps"][0]["counters"]["operations"].as_u64().unwrap() > 0);
        wait_until("no process of the server is left", || servers(&place.path("my")).is_empty());
    }
    // What was committed is recovered.
    assert!(place.done(&["slob", "verify", "--target", &address(&place)]).stdout.contains("sound"));
}

#[test]
fn ctrl_c_and_a_kill_leave_no_server() {
    let Some(place) = place() else { return };
    set_up(&place, &[]);
    let mut child = running(&place, &address(&place), &["--db-cache", "16M"]);
    signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(servers(&place.path("my")).is_empty());
    let run = last_run(&place);
    assert!(run["outcome"] == "interrupted" && run["steps"][0]["counters"]["operations"].as_u64().is_some());

    let mut child = running(&place, &address(&place), &["--db-cache", "16M"]);
    let refused = place.run(&["slob", "info", "--target", &address(&place)]);
    assert!(refused.stderr.contains(&format!("in use by process {}", child.id())), "{refused}");
    signal(child.id(), "KILL");
    child.wait().unwrap();
    wait_until("no server is left", || servers(&place.path("my")).is_empty());
}

#[test]
fn more_sessions_than_connections_are_refused_with_the_setting_to_raise() {
    let Some(place) = place() else { return };
    set_up(&place, &["--keep-running"]);
    let socket = place.path("my/run/sock").display().to_string();
    if !Path::new(&socket).exists() {
        place.done(&["slob", "drop", "--yes", "--target", &address(&place)]);
        return skip("the place's name is too long for a socket, so the server's is elsewhere");
    }
    let target = format!("mysql://root@/plimsoll?socket={socket}");
    // A private server has room for 64 sessions and 20 more; the last one is kept for an administrator, who this is.
    let words = ["slob", "run", "-t", "60", "RUN_TIME=2", "WORK_UNIT=8", "--no-trace", "--quiet", "--target", &target];
    let refused = place.run(&words);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("(error 1040)") && refused.stderr.contains("max_connections"), "{refused}");
    // Nothing of it holds connections, or else this one would be refused too.
    let fits = place.run(&[
        "slob",
        "run",
        "-t",
        "4",
        "WORK_LOOP=2",
        "--warmup",
        "0",
        "WORK_UNIT=8",
        "--no-trace",
        "--quiet",
        "--target",
        &target,
    ]);
    assert_eq!(fits.code, Some(0), "{fits}");
    place.done(&["slob", "drop", "--yes", "--target", &address(&place)]);
    assert!(!place.path("my").exists() && servers(&place.path("my")).is_empty());
}

#[test]
fn a_server_that_runs_is_probed_by_its_address_and_one_that_does_not_is_refused_with_the_cure() {
    let Some(place) = place() else { return };
    let probe = |target: &str| place.run(&["probe", "--target", target, "--duration", "500ms", "--quiet", "--json"]);
    let none = probe(&address(&place));
    assert!(none.code == Some(2) && none.stderr.contains("there is no private server"), "{none}");
    set_up(&place, &[]);
    let asleep = probe(&address(&place));
    assert!(asleep.code == Some(2) && asleep.stderr.contains("--keep-running"), "{asleep}");
    set_up(&place, &["--keep-running"]);
    let socket = place.path("my/run/sock").display().to_string();
    let mut targets = vec![address(&place)];
    match Path::new(&socket).exists() {
        true => targets.push(format!("mysql://root@/plimsoll?socket={socket}")),
        false => skip("the place's name is too long for a socket, so the server's is elsewhere"),
    }
    for target in targets {
        let seen = probe(&target);
        if not_permitted().is_some() {
            // The process was found, which is what the address is for.
            assert!(!seen.stderr.contains("cannot be seen"), "{seen}");
            skip("nothing can be traced here");
            break;
        }
        assert_eq!(seen.code, Some(0), "{seen}");
        let last: serde_json::Value = serde_json::from_str(seen.stdout.lines().last().unwrap()).unwrap();
        let traces = last["traces"].as_array().unwrap();
        for event in ["data read", "redo sync"] {
            assert!(traces.iter().any(|trace| trace["event"] == event), "its files are known: {last}");
        }
    }
    place.done(&["slob", "drop", "--yes", "--target", &address(&place)]);
}

/// A file system of its own size, gone when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None`, with a word about it, where nothing can be mounted.
    fn mount(at: PathBuf, size: &str) -> Option<Self> {
        fs::create_dir(&at).unwrap();
        let options = format!("size={size},mode=755");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&at).output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(at)),
            Ok(output) => {
                skip(format!("no small file system can be mounted: {}", String::from_utf8_lossy(&output.stderr)));
                None
            }
            Err(error) => {
                skip(format!("no small file system can be mounted: {error}"));
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_ends_set_up_and_load_and_the_same_commands_go_on_once_there_is_room() {
    let Some(place) = place() else { return };
    let Some(disk) = SmallDisk::mount(place.path("small"), "420M") else { return };
    let (directory, ballast) = (disk.0.join("my"), disk.0.join("ballast"));
    let target = format!("my:{}", directory.display());
    let words = [
        "slob",
        "setup",
        "-s",
        "1",
        "SCALE=4000",
        "SCAN_TABLE_SZ=0",
        "--db-cache",
        "16M",
        "--quiet",
        "--target",
        &target,
    ];
    // The server itself fits, and its data do not.
    place.done(&[
        "slob",
        "setup",
        "-s",
        "1",
        "SCALE=50",
        "SCAN_TABLE_SZ=0",
        "--db-cache",
        "16M",
        "--quiet",
        "--target",
        &target,
    ]);
    let room = free_bytes(&disk.0);
    fs::write(&ballast, vec![b'x'; usize::try_from(room.saturating_sub(24 << 20)).unwrap()]).unwrap();
    let full = place.run(&[&words[..], &["--replace"]].concat());
    assert_eq!(full.code, Some(2), "{full}");
    assert!(full.stderr.contains("hint:") && full.stderr.contains("free some space"), "{full}");
    assert!(servers(&directory).is_empty(), "nothing is left running");
    fs::remove_file(&ballast).unwrap();
    let again = place.run(&words);
    if again.code != Some(0) && again.stderr.contains("/mysqld` failed") {
        // MySQL 8.0.15 was seen to crash whenever it starts after that; its data can only be removed.
        place.done(&["slob", "drop", "--yes", "--target", &target]);
        assert!(!directory.exists());
        return skip("this server does not start again once its disk was full");
    }
    assert_eq!(again.code, Some(0), "{again}");
    // Room for the server's own temporary files, and soon none for what updates keep of old rows.
    let room = free_bytes(&disk.0);
    fs::write(&ballast, vec![b'x'; usize::try_from(room.saturating_sub(18 << 20)).unwrap()]).unwrap();
    let load = ["slob", "run", "-s", "1", "-t", "4", "RUN_TIME=120", "UPDATE_PCT=100", "--warmup", "0", "--no-trace"];
    let ended = place.run(&[&load[..], &["--db-cache", "16M", "--quiet", "--target", &target]].concat());
    assert!(servers(&directory).is_empty(), "nothing is left running");
    if ended.code == Some(0) {
        skip("the server removed old rows as fast as they came, so the disk did not fill under load");
    } else {
        assert!(ended.code == Some(2) && ended.stderr.contains("free some space"), "{ended}");
        let run = last_run(&place);
        assert!(run["outcome"]["failed"]["error"].as_str().unwrap().contains("is full"), "{}", run["outcome"]);
    }
    fs::remove_file(&ballast).unwrap();
    assert!(place.done(&["slob", "verify", "--target", &target]).stdout.contains("sound"));
    place.done(&["slob", "drop", "--yes", "--target", &target]);
    assert!(!directory.exists());
}

fn free_bytes(directory: &Path) -> u64 {
    let output = Command::new("df").args(["-B1", "--output=avail"]).arg(directory).output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().last().unwrap().trim().parse().unwrap()
}

#[test]
fn ctrl_c_while_a_server_is_made_ends_as_ctrl_c_does_and_leaves_nothing() {
    let Some(place) = place() else { return };
    let address = format!("my:{}", place.path("my").display());
    crate::manners::ctrl_c_leaves_nothing(&place, "my", &address);
}

#[test]
fn a_private_server_is_set_up_loaded_verified_and_removed() {
    let Some(place) = place() else { return };
    let address = format!("my:{}", place.path("my").display());
    let at = |words: &[&str], more: &[&str]| place.run(&[words, &["--target", &address], more].concat());
    let set_up = ["slob", "setup", "-s", "2", "SCALE=600", "SCAN_TABLE_SZ=20"];
    let planned = at(&set_up, &["--dry-run", "--db-cache", "16M"]);
    assert!(planned.stdout.contains("a private server would be made") && !place.path("my").exists(), "{planned}");
    let made = at(&set_up, &["--db-cache", "16M", "--quiet", "--json"]);
    assert_eq!((made.json()["created"].as_bool(), made.json()["scale_blocks"].as_u64()), (Some(true), Some(600)));
    let again = at(&set_up, &["--db-cache", "16M", "--quiet", "--json"]);
    assert_eq!((again.json()["created"].as_bool(), &again.json()["seed"]), (Some(false), &made.json()["seed"]));

    let words = ["slob", "run", "-s", "2", "-t", "2", "UPDATE_PCT=30", "WORK_UNIT=8", "RUN_TIME=2"];
    for send in ["batch", "statement"] {
        let loaded = at(&words, &["--db-cache", "16M", "--warmup", "0", "--send", send, "--quiet", "--json"]);
        let run = loaded.run();
        assert_eq!((&run["target"]["kind"], &run["outcome"]), (&"mysql".into(), &"completed".into()), "{loaded}");
        let counters = &run["steps"][0]["counters"];
        assert!(counters["operations"].as_u64().unwrap() > 0 && counters["errors"] == 0, "{counters}");
        // What the server itself counted: it cannot have found fewer blocks than operations touched.
        let touched = counters["operations"].as_u64().unwrap() * 8;
        match counters["logical_reads"].as_u64() {
            Some(reads) => assert!(reads >= touched, "{counters}"),
            // MariaDB 10.11.5 forgets to count them.
            None => {
                assert_eq!(run["steps"][0]["servers"][0]["own"]["Innodb_buffer_pool_read_requests"], 0, "{counters}")
            }
        }
    }
    let sound = at(&["slob", "verify"], &["--quiet", "--json"]);
    assert_eq!((sound.code, sound.json()["sound"].as_bool()), (Some(0), Some(true)), "{sound}");
    let removed = at(&["slob", "drop"], &["--yes"]);
    assert!(removed.code == Some(0) && !place.path("my").exists(), "{removed}");
}
