//! The data of order entry in private servers: made, killed in the middle, gone on with, beside SLOB's, and removed.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use crate::place::Place;
use crate::servers::{servers, signal, wait_until};
use sql::mysql::test_server as mysql;
use sql::postgres::test_server as postgres;

/// Bytes of all files below a directory.
fn bytes_below(path: &Path) -> u64 {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => bytes_below(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}

/// A set-up of this scale on a private server of this kind that is killed while it loads; `data` is where the server keeps tables, and
/// `grown` how large that is when some pieces are there and others are not.
fn is_killed_and_goes_on(kind: &str, scale: &str, data: &str, grown: u64) {
    let place = Place::new();
    fs::set_permissions(place.path("."), fs::Permissions::from_mode(0o755)).unwrap();
    let address = format!("{kind}:{}", place.path("server").display());
    let server = ["--target", &address];
    let set_up =
        [&["orders", "setup", "--scale", scale, "--streams", "1", "--seed", "7", "--quiet"][..], &server].concat();
    let data = place.path("server").join(data);
    // Gone on with, or `None` where the kill came when all rows were there.
    let go_on = || {
        let mut command = place.plimsoll(&set_up);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until("rows are loaded", || bytes_below(&data) > grown);
        signal(child.id(), "KILL");
        child.wait().unwrap();
        wait_until("the server has ended too", || servers(&place.path("server")).is_empty());
        let unfinished = place.done(&[&["orders", "info"][..], &server].concat());
        if !unfinished.stdout.contains("its set-up was never finished") {
            return None;
        }
        let done = place.done(&[&set_up[..], &["--json"]].concat()).json();
        assert_eq!((&done["validation"]["is_valid"], &done["created"]), (&true.into(), &true.into()), "{done}");
        (done["bytes_written"].as_u64().unwrap() > 0).then_some(done)
    };
    let tried = |_| {
        let done = go_on();
        if done.is_none() {
            place.done(&[&["orders", "drop", "--yes"][..], &server].concat());
        }
        done
    };
    let done = (0..3).find_map(tried).expect("one of three kills comes in the middle");
    assert!(done["bytes_found"].as_u64().unwrap() > 0, "{done}");
    let again = place.done(&set_up);
    assert!(again.stdout.contains("nothing was written"), "{again}");

    // SLOB's data beside them stay when these go, and with them the server.
    place.done(&[&["slob", "setup", "-s", "1", "SCALE=1000", "--quiet"][..], &server].concat());
    let listed = place.done(&[&["orders", "drop", "--dry-run"][..], &server].concat());
    assert!(listed.stdout.contains("  inventories\n") && !listed.stdout.contains("slob_1"), "{listed}");
    assert!(listed.stderr.contains("would remove 12 tables of order entry"), "{listed}");
    place.done(&[&["orders", "drop", "--yes"][..], &server].concat());
    place.done(&[&["slob", "verify", "--quiet"][..], &server].concat());
    let gone = place.run(&[&["orders", "info"][..], &server].concat());
    assert_eq!(gone.code, Some(2), "{gone}");
    assert!(gone.stderr.contains("no order entry data") && gone.stderr.contains("plimsoll orders setup"), "{gone}");
    place.done(&[&["slob", "drop", "--yes"][..], &server].concat());
    assert!(!place.path("server").exists());
    // So do these when SLOB's go, and alone they take the server with them.
    place.done(&set_up);
    place.done(&[&["slob", "setup", "-s", "1", "SCALE=1000", "--quiet"][..], &server].concat());
    let dropped = place.done(&[&["slob", "drop", "--yes"][..], &server].concat());
    assert!(!dropped.to_string().contains("private server"), "{dropped}");
    let gone = place.run(&[&["slob", "info"][..], &server].concat());
    assert_eq!(gone.code, Some(2), "{gone}");
    assert!(place.done(&[&["orders", "verify"][..], &server].concat()).stdout.contains("rules"), "whole");
    place.done(&[&["orders", "drop", "--yes"][..], &server].concat());
    assert!(!place.path("server").exists());
}

#[test]
fn a_set_up_on_postgres_that_was_killed_goes_on_and_loads_no_row_twice() {
    if !postgres::is_installed() {
        return;
    }
    // Stocks come first, in one piece of about 117 MiB of blocks, then some 42 MiB in pieces.
    is_killed_and_goes_on("pg", "0.03", "data/base", 153 << 20);
}

#[test]
fn a_set_up_on_mysql_that_was_killed_goes_on_and_loads_no_row_twice() {
    if !mysql::is_installed() {
        return;
    }
    // Some 68 MiB in the end.
    is_killed_and_goes_on("my", "0.03", "data/plimsoll", 34 << 20);
}

#[test]
fn what_cannot_be_data_of_order_entry_is_refused_with_advice() {
    let place = Place::new();
    let target = format!("pg:{}", place.path("server").display());
    let cases = [
        (&["--scale", "0"][..], "a scale is from 0.001 to 10000, not 0"),
        (&["--scale", "NaN"], "a scale is from 0.001 to 10000, not NaN"),
        (&["--scale", "-1"], "a scale is from 0.001 to 10000, not -1"),
        (&["--partitions", "1"], "tables have 2 to 1024 partitions, not 1"),
        (&["--streams", "0"], "--streams"),
        (&["--indexes", "some"], "[possible values: all, keys, none]"),
        (&["--scale", "10000"], "the data take about"),
    ];
    for (words, reason) in cases {
        let answer = place.run(&[&["orders", "setup", "--target", &target][..], words].concat());
        assert_eq!(answer.code, Some(2), "{words:?}\n{answer}");
        assert!(answer.stderr.contains(reason), "{words:?}\n{answer}");
    }
    for address in ["dir:./data", "sim:"] {
        let answer = place.run(&["orders", "setup", "--target", address]);
        assert_eq!(answer.code, Some(2), "{answer}");
        assert!(answer.stderr.contains("cannot hold order entry") && answer.stderr.contains("pg:DIR"), "{answer}");
    }
    assert!(!place.path("server").exists() && !place.path("data").exists(), "nothing was made");
}

#[test]
fn a_dry_run_says_how_much_room_is_needed_and_makes_nothing() {
    let place = Place::new();
    for kind in ["pg", "my"] {
        let target = format!("{kind}:{}", place.path("server").display());
        let answer =
            place.done(&["orders", "setup", "--scale", "0.01", "--partitions", "4", "--dry-run", "--target", &target]);
        for part in
            ["order entry of scale 0.01 (10,000 customers, 14,298 orders), in 4 partitions", "of indexes", "to sort"]
        {
            assert!(answer.stdout.contains(part), "{part}\n{answer}");
        }
        assert!(!place.path("server").exists());
    }
}
