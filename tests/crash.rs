//! The process is killed at random moments under update load, and no acknowledged commit is ever missing.
//!
//! `make test` kills it [`KILLS`] times; `make torture` goes on for as long as PLIMSOLL_TORTURE_SECONDS says.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use test_support::scratch;

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll::config::MAX_SESSIONS;
use plimsoll::workload::Rng;
use scratch::scratch;
use serde_json::Value;

const KILLS: u32 = 20;

fn plimsoll() -> Command {
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
}

fn set_up(data: &Path) {
    let done = plimsoll()
        .args(["slob", "setup", "-s", "2", "SCALE=3000", "SCAN_TABLE_SZ=100", "--redo-size", "8M", "--redo-files", "3"])
        .args(["--quiet", "--target", &target(data)])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn target(data: &Path) -> String {
    format!("dir:{}", data.display())
}

fn load(data: &Path, runs: &Path, rng: &mut Rng) -> Child {
    let threads = (1 + rng.below(16)).to_string();
    let unit = format!("WORK_UNIT={}", 1 + rng.below(64));
    let stress = if rng.below(3) == 0 { "REDO_STRESS=HEAVY" } else { "REDO_STRESS=LITE" };
    let cache = ["2M", "8M", "64M"][rng.below(3) as usize];
    let mut words: Vec<String> = ["-t", &threads, &unit, stress, "--cache", cache].map(str::to_owned).into();
    words.extend(flash(data, cache, rng));
    load_of(data, runs, &words)
}

fn load_of(data: &Path, runs: &Path, words: &[impl AsRef<OsStr>]) -> Child {
    plimsoll()
        .args(["slob", "run", "-s", "2", "RUN_TIME=60", "UPDATE_PCT=80", "SCAN_PCT=2", "--warmup", "0s", "--quiet"])
        .args(["--target", &target(data), "--runs", &runs.display().to_string()])
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Half of the loads have a flash cache where there is memory for its map, whose file a killed one leaves to the next.
fn flash(data: &Path, cache: &str, rng: &mut Rng) -> Vec<String> {
    let place = format!("{}:24M", data.with_file_name("flash").display());
    if rng.below(2) == 0 && cache != "2M" { vec!["--flash-cache".to_owned(), place] } else { Vec::new() }
}

fn acknowledged(data: &Path) -> u64 {
    acknowledged_in(&data.join("acknowledged.led"))
}

fn acknowledged_in(ledger: &Path) -> u64 {
    let ledger = std::fs::read(ledger).unwrap();
    ledger.chunks_exact(8).take(MAX_SESSIONS as usize).map(|word| u64::from_le_bytes(word.try_into().unwrap())).sum()
}

fn wait_for_commits(data: &Path, count: u64) {
    let begin = Instant::now();
    while acknowledged(data) < count {
        assert!(begin.elapsed() < Duration::from_secs(300), "no commits");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn verify(data: &Path) -> (Option<i32>, Value) {
    let reported =
        plimsoll().args(["slob", "verify", "--json", "--quiet", "--target", &target(data)]).output().unwrap();
    let report = serde_json::from_slice(&reported.stdout).unwrap_or(Value::Null);
    (reported.status.code(), report)
}

#[test]
fn no_acknowledged_commit_is_lost_however_often_the_process_is_killed() {
    let dir = scratch();
    let (data, runs) = (dir.path().join("data"), dir.path().join("runs"));
    set_up(&data);
    let seconds = std::env::var("PLIMSOLL_TORTURE_SECONDS").ok().map(|text| text.parse().unwrap());
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let seed = until.map_or(1, |_| u64::from(std::process::id()));
    let mut rng = Rng::new(seed, 0);
    let (mut kills, mut recovered, mut commits) = (0, 0, 0);
    while until.map_or(kills < KILLS, |until| Instant::now() < until) {
        let mut child = load(&data, &runs, &mut rng);
        // At any moment from the start on, or when it is at work, however long this machine takes to come so far.
        if rng.below(4) > 0 {
            wait_for_commits(&data, commits + 1);
        }
        std::thread::sleep(Duration::from_millis(rng.below(500)));
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        commits = acknowledged(&data);
        // Now and then the next load recovers instead, and is killed itself, perhaps while it does.
        if rng.below(4) == 0 {
            continue;
        }
        let (code, report) = verify(&data);
        assert_eq!(code, Some(0), "seed {seed}, kill {kills}: {report:#}");
        assert_eq!(report["bad_block_count"], 0);
        assert_eq!(report["commits_acknowledged"], commits);
        assert!(report["commits_found"].as_u64().unwrap() >= commits);
        recovered += u32::from(!report["recovery"].is_null());
    }
    println!("{kills} kills, {recovered} recoveries seen, {commits} commits acknowledged");
    assert!(recovered >= kills / 3, "only {recovered} of {kills} kills left something to recover");
    assert!(commits > u64::from(kills), "only {commits} commits were acknowledged");
}

/// Kills a load after it acknowledged commits: at least 75 writes of redo by four sessions, and so small that all are in one log file,
/// with no checkpoint after them.
fn killed(dir: &Path) -> std::path::PathBuf {
    let (data, runs) = (dir.join("data"), dir.join("runs"));
    set_up(&data);
    let mut child = load_of(&data, &runs, &["-t", "2", "WORK_UNIT=4", "REDO_STRESS=LITE", "--cache", "64M"]);
    wait_for_commits(&data, 300);
    child.kill().unwrap();
    child.wait().unwrap();
    data
}

/// The log files with the offset of each write in them, in the order of their redo positions.
fn redo_writes(data: &Path) -> Vec<(u64, std::path::PathBuf, u64, usize)> {
    let mut writes = Vec::new();
    for file in 1..=3 {
        let path = data.join(format!("redo-{file:02}.log"));
        let bytes = std::fs::read(&path).unwrap();
        for at in (0..bytes.len()).step_by(512).filter(|at| bytes[at + 8..at + 16] == *b"PLIMREDO") {
            let word = |offset: usize| u64::from_le_bytes(bytes[at + offset..at + offset + 8].try_into().unwrap());
            writes.push((word(32), path.clone(), at as u64, (word(16) >> 32) as usize));
        }
    }
    writes.sort();
    writes
}

fn spoil(path: &Path, offset: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[!byte[0]], offset).unwrap();
}

#[test]
fn a_torn_redo_tail_is_reported_and_a_lost_commit_with_it() {
    let dir = scratch();
    let data = killed(dir.path());
    // Tear so many of the last writes that acknowledged commits must be among them, also if a session had no processor for a while.
    let writes = redo_writes(&data);
    for (_, path, offset, bytes) in writes.iter().rev().take(64) {
        spoil(path, offset + 40 + *bytes as u64 / 2);
    }
    let (code, report) = verify(&data);
    assert_eq!(code, Some(1), "{report:#}");
    assert!(!report["recovery"]["torn_tail"].is_null(), "the torn write is reported: {report:#}");
    let lost = &report["lost"][0];
    assert!(lost["acknowledged"].as_u64() > lost["found"].as_u64(), "{report:#}");
    // The loss is not forgotten: nothing works on such data any more.
    let run = plimsoll().args(["slob", "run", "--quiet", "--target", &target(&data)]).output().unwrap();
    assert_eq!(run.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&run.stderr).contains("acknowledged commits are missing"));
}

#[test]
fn a_ledger_that_went_back_in_time_proves_nothing() {
    let dir = scratch();
    let data = killed(dir.path());
    // As a disk without power leaves it: the file is there, its newest pages are not.
    let file = OpenOptions::new().write(true).open(data.join("acknowledged.led")).unwrap();
    file.write_all_at(&vec![0; MAX_SESSIONS as usize * 8], 0).unwrap();
    let (code, report) = verify(&data);
    assert_eq!(code, Some(2), "{report:#}");
    assert_eq!((&report["sound"], &report["proven"]), (&Value::Bool(true), &Value::Bool(false)), "{report:#}");
    assert!(report["ledger"]["behind"]["commits"].as_u64() > Some(0), "{report:#}");
    let reported = plimsoll().args(["slob", "verify", "--quiet", "--target", &target(&data)]).output().unwrap();
    let words = String::from_utf8_lossy(&reported.stdout);
    assert!(words.contains("not proven") && !words.contains("no acknowledged commit is missing"), "{words}");
}

#[test]
fn redo_destroyed_in_the_middle_is_an_error_not_an_end() {
    let dir = scratch();
    let data = killed(dir.path());
    let writes = redo_writes(&data);
    let (_, path, offset, _) = &writes[writes.len() - 5];
    spoil(path, offset + 50);
    let reported = plimsoll().args(["slob", "verify", "--quiet", "--target", &target(&data)]).output().unwrap();
    assert_eq!(reported.status.code(), Some(1));
    let report = String::from_utf8_lossy(&reported.stdout);
    assert!(report.contains("redo is damaged in") && report.contains("sound redo follows"), "{report}");
}

/// A disk that loses everything which was written to it since the data were made, and answered that it was durable.
#[test]
fn a_ledger_in_another_directory_proves_what_a_disk_lost() {
    let dir = scratch();
    let place = |name: &str| dir.path().join(name);
    let (data, before, kept, runs) = (place("data"), place("before"), place("kept"), place("runs"));
    std::fs::create_dir(&kept).unwrap();
    let slob = |command: &str, words: &[&str]| {
        let mut program = plimsoll();
        program.args(["slob", command, "--target", &target(&data), "--quiet"]).args(words);
        program
    };
    let ledger = ["--ledger", kept.to_str().unwrap()];
    let sizes = ["-s", "1", "SCALE=1000", "--redo-size", "8M", "--redo-files", "3"];
    let made = slob("setup", &sizes).args(ledger).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let copy = |from: &Path, to: &Path| {
        std::fs::create_dir_all(to).unwrap();
        for file in std::fs::read_dir(from).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    };
    copy(&data, &before);
    let words = ["-t", "2", "RUN_TIME=60", "UPDATE_PCT=100", "--warmup", "0s", "--runs", runs.to_str().unwrap()];
    let mut child = slob("run", &words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let file = std::fs::read_dir(&kept).unwrap().next().unwrap().unwrap().path();
    let begin = Instant::now();
    while acknowledged_in(&file) < 50 {
        assert!(begin.elapsed() < Duration::from_secs(300), "no commits");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What is there holds all that was acknowledged, and the ledger that lies elsewhere is found without a word.
    let verified = || slob("verify", &["--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&verified().stdout).unwrap();
    assert_eq!((&report["sound"], &report["proven"]), (&true.into(), &true.into()), "{report:#}");
    std::fs::remove_dir_all(&data).unwrap();
    copy(&before, &data);
    let lying = verified();
    let report: Value = serde_json::from_slice(&lying.stdout).unwrap();
    assert_eq!(lying.status.code(), Some(1), "{report:#}");
    assert!(report["lost"].as_array().is_some_and(|lost| !lost.is_empty()), "{report:#}");

    // A directory that is not mounted, or that has no ledger of these data, is named.
    std::fs::rename(&kept, place("away")).unwrap();
    let said = |words: &[&str]| {
        let refused = slob("verify", words).output().unwrap();
        (refused.status.code(), String::from_utf8_lossy(&refused.stderr).into_owned())
    };
    let (code, missing) = said(&[]);
    assert!(code == Some(2) && missing.contains("has no ledger of the data in"), "{missing}");
    assert!(
        missing.contains("hint: mount that directory, or name the one that has the ledger: `--ledger DIR`"),
        "{missing}"
    );
    let (code, unknown) = said(&["--ledger", "/nowhere/at/all"]);
    assert!(code == Some(2) && unknown.contains("hint: mount or make that directory"), "{unknown}");
    assert_eq!(said(&["--ledger", place("away").to_str().unwrap()]).0, Some(1));
}
