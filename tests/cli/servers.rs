//! Private servers from outside: their processes, and runs on them that something ends.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::place::Place;

/// Processes whose command line names the data of the server in this directory.
pub fn servers(directory: &Path) -> Vec<u32> {
    let data = directory.canonicalize().unwrap_or_else(|_| directory.to_owned()).join("data");
    let named = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&*data.to_string_lossy())
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(named).collect()
}

pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(300), "waited five minutes until {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Starts a long run and waits until load has been reported on.
pub fn running(place: &Place, target: &str, more: &[&str]) -> Child {
    let arguments = [
        &["slob", "run", "-t", "2", "RUN_TIME=300", "WORK_UNIT=8", "--warmup", "1s", "--no-trace", "--target", target],
        more,
    ]
    .concat();
    let mut child = place.plimsoll(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut reported = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(reported.any(|line| line.unwrap().contains("ops/s")), "no load was reported on");
    // Whoever stops reading would end it by a broken pipe.
    std::thread::spawn(move || reported.for_each(drop));
    child
}

pub fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap().success());
}

pub fn last_run(place: &Place) -> Value {
    let id = place.runs().pop().expect("a run is kept");
    place.done(&["runs", "show", &id, "--json"]).json()
}
