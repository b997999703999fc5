//! SLOB on a real MariaDB: a private server from its set-up to its removal, by the commands that know no database.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::place::Place;
use crate::skip::skip;

const PROGRAMS: [&str; 2] = ["/usr/sbin/mariadbd", "/usr/sbin/mysqld"];

/// A place that the server's own user may reach too; `None`, with a word about it, without a server.
fn place() -> Option<Place> {
    if !PROGRAMS.iter().any(|program| Path::new(program).exists()) {
        skip("neither MariaDB's nor MySQL's server is installed");
        return None;
    }
    let place = Place::new();
    fs::set_permissions(place.path("."), fs::Permissions::from_mode(0o755)).unwrap();
    Some(place)
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
        assert!(counters["logical_reads"].as_u64().unwrap() >= touched, "{counters}");
    }
    let sound = at(&["slob", "verify"], &["--quiet", "--json"]);
    assert_eq!((sound.code, sound.json()["sound"].as_bool()), (Some(0), Some(true)), "{sound}");
    let removed = at(&["slob", "drop"], &["--yes"]);
    assert!(removed.code == Some(0) && !place.path("my").exists(), "{removed}");
}
