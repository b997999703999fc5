//! SLOB on a real PostgreSQL: a private cluster from its set-up to its removal, and what ends a run in the middle.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::manners::wait_for_counted;
use crate::place::{Answer, Place};
use crate::servers::{last_run, running, servers, signal, wait_until};
use crate::skip::skip;
use sql::postgres::test_server::is_installed;

/// A place on a disk that the server's own user may reach too; `None`, with a word about it, without PostgreSQL.
fn place() -> Option<Place> {
    if !is_installed() {
        return None;
    }
    let place = Place::new();
    fs::set_permissions(place.path("."), fs::Permissions::from_mode(0o755)).unwrap();
    Some(place)
}

fn address(place: &Place) -> String {
    format!("pg:{}", place.path("pg").display())
}

/// Two small schemas in a private cluster.
fn set_up(place: &Place) -> Answer {
    place.done(&[
        "slob",
        "setup",
        "-s",
        "2",
        "SCALE=2000",
        "SCAN_TABLE_SZ=100",
        "--target",
        &address(place),
        "--db-cache",
        "2M",
    ])
}

#[test]
fn a_check_makes_a_private_server_and_removes_it_again() {
    let Some(place) = place() else { return };
    let answer = place.run(&[
        "check",
        "--reads",
        "30@p50=60s",
        "--commits",
        "30@p50=60s",
        "--size",
        "16M",
        "--db-cache",
        "2M",
        "--for",
        "60",
        "--quiet",
        &address(&place),
    ]);
    assert!(!place.path("pg").exists() && servers(&place.path("pg")).is_empty(), "{answer}");
    if answer.stderr.contains("is too short") {
        return skip("the disk was too slow to make 16 MiB and a cluster in half a minute, so nothing was checked");
    }
    // Its few tables are in the page cache, so that a yes would be one of memory.
    let said = &answer.stdout;
    assert!(["Yes.", "No.", "Not measurable: "].iter().any(|word| said.starts_with(word)), "{answer}");
}

#[test]
fn a_page_cache_that_answers_is_said_before_anything_is_made() {
    let Some(place) = place() else { return };
    let words = ["check", "--reads", "300@20ms", "--commits", "30@20ms", "--size", "64M", "--dry-run"];
    let plain = place.run(&[&words[..], &[&address(&place)]].concat());
    assert!(plain.stderr.contains("or as root `--host-memory 338M`"), "{plain}");
    assert!(!place.path("pg").exists(), "{plain}");
    let limited = place.run(&[&words[..], &["--host-memory", "340M", &address(&place)]].concat());
    assert!(!limited.stderr.contains("may answer many reads"), "{limited}");
}

#[test]
fn a_private_cluster_lives_from_its_set_up_to_its_removal() {
    let Some(place) = place() else { return };
    let target = address(&place);
    let reported = set_up(&place);
    assert!(reported.stdout.starts_with("Set up 2 schemas of 15.6 MiB (2,000 blocks of 8 KiB)"), "{reported}");
    assert!(servers(&place.path("pg")).is_empty(), "the server went on after the set-up");
    assert!(set_up(&place).stdout.contains("nothing was written"));

    let info = place.done(&["slob", "info", "--json", "--target", &target]).json();
    assert_eq!((&info["stage"], &info["descriptor"]["scale_blocks"]), (&Value::from("ready"), &Value::from(2000)));

    // Before anything is updated: each old version of a row is a block more that the index leads to, and is vacuumed while the
    // sweep counts.
    let sweep = |run_time: &str| {
        let words = "slob sweep -s 2 --threads 1,2 WORK_UNIT=64 UPDATE_PCT=0 --json --quiet --target".split(' ');
        place.done(&words.chain([target.as_str(), run_time]).collect::<Vec<_>>()).run()
    };
    let touched = |step: &Value| step["operations"][0]["block_touches"].as_u64().unwrap();
    // So much and so long that what is under way at either edge of the window does not matter, however slow the server is: a
    // batch takes half a second, and the server counts it when it has ended.
    let is_enough = |swept: &Value| swept["steps"].as_array().unwrap().iter().all(|step| touched(step) > 20_000);
    let swept = ["RUN_TIME=8", "RUN_TIME=32", "RUN_TIME=120"].into_iter().map(sweep).find(is_enough);
    let swept = swept.expect("the server touches 20,000 blocks in two minutes");
    let steps = swept["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2);
    for step in steps {
        // What the server counted is what was asked of it: a row has a block of its own, and few of the index lead to it.
        let logical = step["counters"]["logical_reads"].as_u64().unwrap() as f64 / touched(step) as f64;
        assert!((0.9..1.2).contains(&logical), "{logical} logical reads for each block touched");
    }

    for (send, timed_by) in [("batch", "server"), ("statement", "client")] {
        let run = place
            .done(&[
                "slob",
                "run",
                "-t",
                "2",
                "RUN_TIME=300",
                "WORK_LOOP=150",
                "--warmup",
                "1s",
                "UPDATE_PCT=30",
                "WORK_UNIT=8",
                "--send",
                send,
                "--db-cache",
                "2M",
                "--json",
                "--quiet",
                "--target",
                &target,
            ])
            .run();
        let (facts, step) = (&run["target"]["facts"], &run["steps"][0]);
        assert_eq!(
            (&facts["server"]["sent_as"], &facts["other"]["timed_by"]),
            (&Value::from(send), &Value::from(timed_by))
        );
        let count =
            |name: &str| step["counters"][name].as_u64().unwrap_or_else(|| panic!("{name} is not known: {step}"));
        assert_eq!(step["operations"].as_array().unwrap().len(), 2, "reads and updates");
        assert!(count("operations") > 100 && count("errors") == 0 && count("commits") > 20, "{}", step["counters"]);
        assert_eq!(count("buffer_misses"), count("logical_reads") - count("cache_hits"));
        let version = facts["other"]["server_version"].as_str().unwrap();
        // Version 13 has no such view, and 14 counts in it only now and then.
        if version.split('.').next().unwrap().parse::<u32>().unwrap() >= 15 {
            assert!(step["servers"][0]["own"]["pg_stat_wal.wal_bytes"].as_u64().unwrap() > 0);
        }
        let commit = step["waits"].as_array().unwrap().iter().find(|wait| wait["event"] == "commit");
        assert_eq!(commit.is_some(), send == "batch", "only the server can time commits apart");
        assert!(servers(&place.path("pg")).is_empty(), "the server went on after the run");
    }
    assert!(place.done(&["slob", "verify", "--target", &target]).stdout.contains("sound"));
    let dry = place.done(&["slob", "run", "--dry-run", "--target", &target]);
    assert!(dry.stdout.contains("step 1"), "{dry}");

    let refused = place.run(&["slob", "drop", "--target", &target]);
    assert!(refused.code == Some(2) && refused.stderr.contains("must be confirmed"), "{refused}");
    place.done(&["slob", "drop", "--yes", "--target", &target]);
    assert!(!place.path("pg").exists() && servers(&place.path("pg")).is_empty());
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_leaves_no_server() {
    let Some(place) = place() else { return };
    set_up(&place);
    let mut child = running(&place, &address(&place), &[]);
    signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(servers(&place.path("pg")).is_empty());
    let run = last_run(&place);
    assert_eq!(run["outcome"], "interrupted");
    assert!(run["steps"][0]["counters"]["operations"].as_u64().is_some());
}

#[test]
fn ctrl_c_while_a_cluster_is_made_ends_as_ctrl_c_does_and_leaves_nothing() {
    let Some(place) = place() else { return };
    let address = address(&place);
    crate::manners::ctrl_c_leaves_nothing(&place, "pg", &address);
    assert!(servers(&place.path("pg")).is_empty());
}

#[test]
fn the_server_of_a_killed_command_ends_and_the_next_command_waits_for_that() {
    let Some(place) = place() else { return };
    set_up(&place);
    let info = ["slob", "info", "--target", &address(&place)];
    let mut child = running(&place, &address(&place), &[]);
    let refused = place.run(&info);
    assert!(refused.stderr.contains(&format!("in use by process {}", child.id())), "{refused}");
    let postmaster = fs::read_to_string(place.path("pg/data/postmaster.pid")).unwrap();
    let postmaster = postmaster.lines().next().unwrap();
    assert!(servers(&place.path("pg")).iter().any(|pid| pid.to_string() == postmaster));
    signal(child.id(), "KILL");
    child.wait().unwrap();
    // It begins only when the lock is free, and that is when the server has ended.
    assert!(place.done(&info).stdout.contains("whole"));
    wait_until("no server is left", || servers(&place.path("pg")).is_empty());
}

/// Its user can write whatever he likes into the directory of a private server.
#[test]
fn a_drop_believes_no_file_that_the_servers_user_can_write() {
    let Some(place) = place() else { return };
    set_up(&place);
    let victims = place.path("victims");
    fs::create_dir(&victims).unwrap();
    fs::write(victims.join("precious"), "precious").unwrap();
    let mut victim = Command::new("sleep").arg("600").spawn().unwrap();
    let (data, run) = (place.path("pg/data"), place.path("pg/run"));
    let said = format!("{}\n{}\n1700000000\n5432\n{}\n\n 1 2\nready\n", victim.id(), data.display(), victims.display());
    fs::write(data.join("postmaster.pid"), said).unwrap();
    let _ = fs::remove_dir_all(&run);
    std::os::unix::fs::symlink(&victims, &run).unwrap();
    std::os::unix::fs::symlink(&victims, data.join("more")).unwrap();
    let answer = place.run(&["slob", "drop", "--yes", "--target", &address(&place)]);
    let is_alive = victim.try_wait().unwrap().is_none();
    victim.kill().and_then(|()| victim.wait()).unwrap();
    assert!(is_alive, "{answer}");
    assert_eq!(fs::read_to_string(victims.join("precious")).unwrap(), "precious", "{answer}");
    assert!(answer.code == Some(0) && !place.path("pg").exists() || answer.code == Some(2), "{answer}");
}

#[test]
fn a_server_that_dies_ends_the_run_with_what_was_measured() {
    let Some(place) = place() else { return };
    set_up(&place);
    let mut child = running(&place, &address(&place), &["--send", "statement"]);
    let postmaster = fs::read_to_string(place.path("pg/data/postmaster.pid")).unwrap();
    wait_for_counted(&place, "operations");
    signal(postmaster.lines().next().unwrap().parse().unwrap(), "QUIT");
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let run = last_run(&place);
    let error = run["outcome"]["failed"]["error"].as_str().unwrap();
    assert!(error.contains("is gone"), "{error}");
    assert!(run["steps"][0]["counters"]["operations"].as_u64().unwrap() > 0);
    wait_until("the server has ended", || servers(&place.path("pg")).is_empty());
}

#[test]
fn no_password_reaches_a_file_or_the_screen_and_a_hostile_name_is_only_a_name() {
    const PASSWORD: &str = "Tiger-4711-secret";
    const NAME: &str = "x\"; DROP SCHEMA plimsoll CASCADE; --";
    let Some(place) = place() else { return };
    let cluster = address(&place);
    place.done(&["slob", "setup", "SCALE=500", "SCAN_TABLE_SZ=0", "--keep-running", "--target", &cluster]);
    let socket = place.path("pg/run").display().to_string().replace('/', "%2F");
    let server = format!("postgres://plimsoll@{socket}/plimsoll");
    let with_password = |arguments: &[&str]| {
        let output = place.plimsoll(arguments).env("PGPASSWORD", PASSWORD).output();
        Answer::from(output.expect("the program can be started"))
    };
    let mut reported = String::new();
    let commands: [&[&str]; 6] = [
        &["slob", "setup", "SCALE=500", "SCAN_TABLE_SZ=0", "--db-schema", NAME],
        &["slob", "run", "-t", "2", "RUN_TIME=1", "WORK_UNIT=8", "--no-trace", "--db-schema", NAME],
        &["slob", "info", "--db-schema", NAME],
        &["slob", "verify", "--db-schema", NAME],
        &["slob", "drop", "--yes", "--db-schema", NAME],
        &["slob", "info"],
    ];
    for command in commands {
        let answer = with_password(&[command, &["--target", &server]].concat());
        assert_eq!(answer.code, Some(0), "{command:?}\n{answer}");
        reported += &answer.to_string();
    }
    let refused = with_password(&["slob", "info", "--target", "postgres://plimsoll@127.0.0.1:1/plimsoll"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("hint:"), "{refused}");
    reported += &refused.to_string();
    let in_address = format!("postgres://plimsoll:{PASSWORD}@{socket}/plimsoll");
    let refused = place.run(&["slob", "info", "--target", &in_address]);
    assert!(refused.code == Some(2) && refused.stderr.contains("PGPASSWORD"), "{refused}");
    reported += &refused.to_string();
    place.done(&["slob", "drop", "--yes", "--target", &cluster]);
    assert!(!reported.contains(PASSWORD), "{reported}");
    let mut folders = vec![place.path(".")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = fs::read(&path).unwrap();
                assert!(!holds(&text, PASSWORD), "the password is in {}", path.display());
            }
        }
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn what_means_nothing_for_a_target_is_refused() {
    let place = Place::new();
    let cases: [(&[&str], &str); 6] = [
        (&["slob", "run", "--db-cache", "64M", "--target", "dir:x"], "`--db-cache` is for a private server"),
        (
            &["slob", "run", "--host-memory", "1G", "--target", "postgres://h/d"],
            "`--host-memory` is for a private server",
        ),
        (&["slob", "run", "--send", "batch", "--target", "sim:"], "`--send` is for database servers"),
        (&["slob", "run", "--cache", "64M", "--target", "pg:x"], "`--cache` is for the embedded engine"),
        (&["slob", "setup", "--redo-files", "4", "--target", "pg:x"], "`--redo-files` is for the embedded engine"),
        (&["slob", "info", "--db-schema", "x", "--target", "dir:x"], "`--db-schema` is for PostgreSQL"),
    ];
    for (arguments, message) in cases {
        let refused = place.run(arguments);
        assert!(refused.code == Some(2) && refused.stderr.contains(message), "{arguments:?}\n{refused}");
        assert!(refused.stderr.contains("hint:"), "{refused}");
    }
    assert!(!Path::new("x").exists());
}

#[test]
fn a_missing_server_is_said_with_what_to_install() {
    let place = Place::new();
    let refused = place.run(&["slob", "setup", "--target", "pg:x", "--pg-bin", "/nowhere"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("/nowhere"), "{refused}");
    assert!(!place.path("x").exists(), "nothing is made before it is known that it can be");
}
