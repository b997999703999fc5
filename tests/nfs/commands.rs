//! The program on files of the server, as its user calls it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll::config::MAX_SESSIONS;
use plimsoll::targets::io::Durability;
use plimsoll::targets::nfs::{NfsFile, NfsMount};
use serde_json::Value;
use tempfile::TempDir;

use crate::ganesha::Ganesha;
use crate::scratch::scratch;
use test_support::patience::patiently;

fn plimsoll(place: &TempDir, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(words).current_dir(place.path()).env("PLIMSOLL_RUNS", place.path().join("runs"));
    command
}

pub(super) fn output(place: &TempDir, words: &[&str]) -> Output {
    plimsoll(place, words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a command wrote that ended well.
fn done(place: &TempDir, words: &[&str]) -> String {
    let output = output(place, words);
    assert!(output.status.success(), "{words:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// What a command said that could not do what was asked.
fn refused(place: &TempDir, words: &[&str]) -> String {
    let output = output(place, words);
    assert_eq!(output.status.code(), Some(2), "{words:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stderr)
}

fn document(place: &TempDir) -> Value {
    serde_json::from_str(&done(place, &["runs", "show", "last", "--json"])).unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const SHORT: [&str; 4] = ["--duration=1s", "--warmup=0s", "--quiet", "--depth=8"];

fn run<'a>(path: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let words = ["io", "run", "--path", path];
    words.into_iter().chain(SHORT).chain(more.iter().copied()).collect()
}

#[test]
fn a_file_is_laid_out_loaded_checked_and_described_as_what_it_is() {
    let Some(ganesha) = Ganesha::start() else { return };
    let place = scratch();
    let url = ganesha.url("new.dat", "&connections=2");
    let missing = refused(&place, &run(&url, &["--pattern=randread"]));
    assert!(missing.contains("is not there") && missing.contains("--size"), "{missing}");
    done(&place, &run(&url, &["--pattern=randrw", "--size=8M", "--verify"]));
    assert_eq!(fs::metadata(ganesha.exported("new.dat")).unwrap().len(), 8 << 20);
    assert_eq!(names(&ganesha.exported("")), ["new.dat"], "neither a claim nor an unfinished file is left");

    let run = document(&place);
    let (target, step) = (&run["target"], &run["steps"][0]);
    assert_eq!(target["facts"]["files"]["io_engine"], "nfs3");
    assert_eq!(target["facts"]["nfs"]["connections"], serde_json::json!([2]));
    assert!(step["devices"].as_array().unwrap().is_empty(), "no device of this machine is below: {}", step["devices"]);
    assert_eq!(step["waits"][0]["layer"], "NFS client");
    let channels = step["channels"].as_array().unwrap();
    assert_eq!(channels.len(), 2, "{channels:?}");
    let sum = |field: &str| channels.iter().map(|channel| channel[field].as_u64().unwrap()).sum::<u64>();
    let counters = &step["counters"];
    // A batch of completions at an edge may count to the second before.
    for (of_channels, of_load) in [("reads", "physical_reads"), ("writes", "physical_writes")] {
        let (sent, done) = (sum(of_channels), counters[of_load].as_u64().unwrap());
        assert!(sent > 0 && sent.abs_diff(done) <= 64 + done / 10, "{of_channels}: {sent} and {done}");
    }
    let report = done(&place, &["report", "last", "--full"]);
    assert!(report.contains("Paths (") && report.contains("Connections of each path"), "{report}");
}

#[test]
fn version_4_1_is_what_is_asked_for_told_and_recorded() {
    let Some(ganesha) = Ganesha::start() else { return };
    let place = scratch();
    let url = ganesha.url_4("new.dat", "&outstanding=1000");
    let output = output(&place, &run(&url, &["--pattern=randrw", "--size=8M", "--verify"]));
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("NFS version 4.1") && said.contains("at most 64 requests outstanding"), "{said}");
    assert!(said.contains("64 slots of the 1000 asked"), "{said}");
    assert_eq!(names(&ganesha.exported("")), ["new.dat"], "neither a claim nor an unfinished file is left");
    let facts = document(&place)["target"]["facts"].clone();
    assert_eq!((&facts["files"]["io_engine"], &facts["nfs"]["slots"]), (&"nfs4.1".into(), &64.into()));
    let refusal = refused(&place, &run(&ganesha.url("new.dat", "&version=4.1"), &["--pattern=randread"]));
    assert!(refusal.contains("no mount service"), "{refusal}");
}

#[test]
fn connections_are_varied_in_one_run() {
    let Some(ganesha) = Ganesha::start() else { return };
    let place = scratch();
    let url = ganesha.url("data", "");
    let sweep = ["io", "sweep", "--path", &url, "--size=8M", "--pattern=randread", "--connections=1,3", "--depth=8"];
    let words = |more: &[&'static str]| -> Vec<&str> { sweep.into_iter().chain(more.iter().copied()).collect() };
    let planned = done(&place, &words(&["--dry-run", "--duration=1s"]));
    assert!(planned.contains("c1: 8 outstanding over 1 connection of each thread to each path"), "{planned}");
    assert!(planned.contains("c3: 8 outstanding over 3 connections"), "{planned}");
    assert!(names(&ganesha.exported("")).is_empty(), "a dry run makes nothing");

    let told = done(&place, &words(&["--duration=300ms", "--warmup=0s", "--quiet", "--rounds=2"]));
    assert!(told.contains("Connections of each thread to each path, with 8 outstanding"), "{told}");
    // Three tenths of a second say nothing, nor does a machine that is too busy to send.
    let is_open = ["whether one connection is enough is unknown", "the load generator alone reaches"];
    assert!(is_open.iter().any(|words| told.contains(words)), "{told}");
    let run = document(&place);
    assert_eq!(
        (&run["target"]["facts"]["nfs"]["connections"], &run["parameters"]["DEPTH"]),
        (&serde_json::json!([1, 3]), &"8".into())
    );
    let steps = run["steps"].as_array().unwrap();
    let of = |step: &Value| (step["parameters"]["CONNECTIONS"].clone(), step["channels"].as_array().unwrap().len());
    let seen: Vec<_> = steps.iter().map(of).collect();
    assert_eq!(seen, [("1".into(), 1), ("3".into(), 3), ("3".into(), 3), ("1".into(), 1)]);
}

#[test]
fn what_is_not_ours_is_not_written_to() {
    let Some(ganesha) = Ganesha::start() else { return };
    let place = scratch();
    fs::write(ganesha.exported("theirs.dat"), vec![7; 1 << 20]).unwrap();
    let url = ganesha.url("theirs.dat", "");
    done(&place, &run(&url, &["--pattern=randread"]));
    let answer = refused(&place, &run(&url, &["--pattern=randwrite"]));
    assert!(answer.contains("--destroy theirs.dat"), "{answer}");
    assert_eq!(fs::read(ganesha.exported("theirs.dat")).unwrap(), vec![7; 1 << 20]);
    done(&place, &run(&url, &["--pattern=randwrite", "--destroy=theirs.dat"]));

    fs::write(ganesha.exported(".theirs.dat.plimsoll-claim"), "process 1 on another host").unwrap();
    let answer = refused(&place, &run(&url, &["--pattern=randwrite", "--destroy=theirs.dat"]));
    assert!(answer.contains("process 1 on another host"), "{answer}");
    let answer =
        refused(&place, &["io", "run", "--path", &url, "--path", "here.dat", "--size=8M", "--pattern=randread"]);
    assert!(answer.contains("cannot be one volume"), "{answer}");
    let answer = refused(&place, &run(&url, &["--pattern=randread", "--direct=off"]));
    assert!(answer.contains("no page cache"), "{answer}");
    assert!(!place.path().join("here.dat").exists());
}

#[test]
fn the_engine_has_its_files_there_and_recovers_them() {
    let Some(ganesha) = Ganesha::start() else { return };
    let place = scratch();
    fs::create_dir(ganesha.exported("ora")).unwrap();
    let destination = ganesha.url("ora", "");
    let set_up = ["slob", "setup", "-s", "2", "SCALE=8M", "--target", "dir:set", "--redo-size=8M", "--quiet"];
    let places = ["--data-dest", &destination, "--redo-dest", &destination];
    let words: Vec<&str> = set_up.into_iter().chain(places).collect();
    done(&place, &words);
    assert_eq!(names(&ganesha.exported("ora")).len(), 5, "{:?}", names(&ganesha.exported("ora")));
    assert!(!names(&place.path().join("set")).iter().any(|name| name.contains("data-")));

    let load = ["slob", "run", "-s", "2", "--target", "dir:set", "UPDATE_PCT=50", "--cache=4M", "--quiet"];
    let brief: Vec<&str> = load.into_iter().chain(["--duration=1s", "--warmup=0s"]).collect();
    done(&place, &brief);
    let step = document(&place)["steps"][0].clone();
    let channels = step["channels"].as_array().unwrap();
    let sum = |field: &str| channels.iter().map(|channel| channel[field].as_u64().unwrap()).sum::<u64>();
    assert!(sum("reads") > 0 && sum("writes") > 0, "{channels:?}");

    // Killed in the middle: what was acknowledged is there.
    let long: Vec<&str> = load.into_iter().chain(["--duration=60s", "--warmup=0s"]).collect();
    let mut child = plimsoll(&place, &long).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let ledger = place.path().join("set").join("acknowledged.led");
    // Behind the words of the sessions it names the boot, which is written as the load begins.
    let words = || fs::read(&ledger).unwrap()[..MAX_SESSIONS as usize * 8].to_vec();
    let (before, patience) = (words(), Instant::now() + Duration::from_secs(60));
    while words() == before {
        assert!(Instant::now() < patience, "nothing is committed");
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let verified = done(&place, &["slob", "verify", "--target", "dir:set"]);
    assert!(verified.contains("recovered") && verified.contains("every block is what was written last"), "{verified}");
    let info = done(&place, &["slob", "info", "--target", "dir:set"]);
    assert!(info.contains("data files in") && info.contains("nfs://"), "{info}");
    done(&place, &["slob", "drop", "--target", "dir:set", "--yes"]);
    assert_eq!(names(&ganesha.exported("ora")), [""; 0]);
}

/// Seconds that a server may be silent; after five times that it is given up.
const TIMEOUTS: [u32; 2] = [1, 3];

#[test]
fn a_disk_group_with_a_member_on_the_server_goes_on_when_the_server_dies() {
    patiently(TIMEOUTS, goes_on_when_the_server_dies);
}

fn goes_on_when_the_server_dies(timeout: u32) {
    let Some(mut ganesha) = Ganesha::start() else { return };
    let place = scratch();
    let member = ganesha.url("member.dat", &format!("&timeout={timeout}"));
    let spec = format!("data=normal,au=1M,size=16M:here.dat|{member}");
    let load = ["io", "run", "--group", &spec, "--size=8M", "--pattern=randrw", "--verify", "--depth=8", "--quiet"];
    let load: Vec<&str> = load.into_iter().chain(["--warmup=0s"]).collect();
    done(&place, &[&load[..], &["--duration=1s"]].concat());
    let members = |field: &str| -> Vec<u64> {
        let step = &document(&place)["steps"][0];
        step["channels"].as_array().unwrap().iter().map(|member| member[field].as_u64().unwrap_or(0)).collect()
    };
    assert!(members("reads").iter().chain(&members("writes")).all(|count| *count > 0), "each is counted by itself");
    assert_eq!(fs::metadata(ganesha.exported("member.dat")).unwrap().len(), 16 << 20);

    let duration = format!("--duration={}s", 5 * timeout + 7);
    let words = [&load[..], &[duration.as_str()]].concat();
    let child = plimsoll(&place, &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(60);
    // Its members are open by then, and the load has begun or does so now.
    while names(&place.path().join("runs")).len() < 2 {
        assert!(Instant::now() < patience, "no run begins");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    ganesha.kill();
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}{}", text(&ended.stdout), text(&ended.stderr));
    assert_eq!(members("drops").iter().sum::<u64>(), 1, "the member is dropped, and the load goes on");

    // What it missed is written to it before anything is read there.
    ganesha.start_again();
    let claimed = refused(&place, &[&load[..], &["--duration=1s"]].concat());
    assert!(
        claimed.contains(".member.dat.plimsoll-claim"),
        "whoever could not take its claim back says where it is: {claimed}"
    );
    // The server remembers names that are removed behind its back.
    ganesha.kill();
    fs::remove_file(ganesha.exported(".member.dat.plimsoll-claim")).unwrap();
    ganesha.start_again();
    done(&place, &[&load[..], &["--duration=1s"]].concat());
    assert!(members("reads").iter().all(|count| *count > 0), "{:?}", document(&place)["steps"][0]["channels"]);
}

/// A load of a minute that ends by itself once `harm` was done to its server. It tells what it said.
fn harmed(place: &TempDir, words: &[&str], harm: impl FnOnce()) -> String {
    done(place, &[words, &["--duration=200ms"]].concat());
    let runs = || names(&place.path().join("runs")).len();
    let (before, begun) = (runs(), Instant::now());
    let mut command = plimsoll(place, &[words, &["--duration=60s"]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while runs() == before {
        assert!(begun.elapsed() < Duration::from_secs(60), "no run begins");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    harm();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(2), "{}{}", text(&ended.stdout), text(&ended.stderr));
    assert!(begun.elapsed() < Duration::from_secs(55), "it ended with its time");
    text(&ended.stderr)
}

#[test]
fn a_run_ends_when_its_file_is_replaced_on_the_server() {
    let Some(ganesha) = Ganesha::start() else { return };
    let place = scratch();
    let url = ganesha.url("data", "");
    let load = ["io", "run", "--path", &url, "--size=8M", "--pattern=randrw", "--depth=8", "--warmup=0s", "--quiet"];
    let said = harmed(&place, &load, || {
        let mount = NfsMount::connect(&url.parse().unwrap()).unwrap();
        let path = mount.address().path.clone();
        mount.rename(&path, &format!("{path}.moved")).unwrap();
        drop(NfsFile::create(&mount, &path, Durability::OnSync).unwrap());
    });
    assert!(said.contains("was replaced by another file"), "{said}");
}

#[test]
fn a_run_on_a_group_without_copies_says_which_server_died() {
    patiently(TIMEOUTS, says_which_server_died);
}

fn says_which_server_died(timeout: u32) {
    let Some(mut ganesha) = Ganesha::start() else { return };
    let place = scratch();
    let url = ganesha.url("member.dat", &format!("&timeout={timeout}"));
    let spec = format!("data=external,au=1M,size=16M:{url}");
    let load = ["io", "run", "--group", &spec, "--size=8M", "--pattern=randrw", "--depth=8", "--warmup=0s", "--quiet"];
    let said = harmed(&place, &load, || ganesha.kill());
    // What was under way when it died decides what is said of it: load, or the connections for it.
    let error = said.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    let is_named =
        ["cannot wait for requests: ", "cannot make a queue for requests: "].iter().any(|it| error.contains(it));
    assert!(is_named && error.contains("127.0.0.1:"), "{said}");
}

#[test]
fn both_clients_have_their_turns_and_a_local_file_is_told() {
    let Some(ganesha) = Ganesha::start() else { return };
    let place = scratch();
    let url = ganesha.url("direct.dat", "&connections=2");
    let compare = ["io", "compare-nfs", "--kernel", "kernel.dat", "--direct", &url, "--size=8M", "--seed=7"];
    let brief = ["--threads=1,4", "--repeats=1", "--duration=300ms", "--warmup=0s"];
    let words =
        |more: &[&'static str]| -> Vec<&str> { compare.into_iter().chain(brief).chain(more.iter().copied()).collect() };
    let planned = done(&place, &words(&["--dry-run"]));
    assert!(planned.contains("-- the kernel's client") && planned.contains("turn 2   direct NFS"), "{planned}");
    assert!(names(place.path()).is_empty() && names(&ganesha.exported("")).is_empty(), "a dry run makes nothing");

    let output = output(&place, &words(&["-o", "page.html", "--text"]));
    let (told, said) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{told}{said}");
    assert!(said.contains("`kernel.dat` is not on NFS"), "{said}");
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("The kernel's half is a local file, not NFS ("), "{told}");
    assert!(told.contains("tag client kernel direct"), "{told}");
    let page = fs::read_to_string(place.path().join("page.html")).unwrap();
    assert!(page.contains("id=\"throughput\"") && page.contains("id=\"load-line\""), "both charts are there");
    assert!(page.contains("half is a local file, not NFS"), "the page says so as well");

    let kept = done(&place, &["runs", "list", "--json"]);
    let runs: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(runs.as_array().or_else(|| runs["runs"].as_array()).map(Vec::len), Some(2), "{kept}");
    let again = done(&place, &["compare", "client=kernel", "client=direct"]);
    assert!(again.contains("The kernel's half is a local file"), "{again}");

    fs::write(ganesha.exported("small.dat"), vec![7; 1 << 20]).unwrap();
    let small = ganesha.url("small.dat", "");
    let unlike = refused(&place, &["io", "compare-nfs", "--kernel", "kernel.dat", "--direct", &small, "--threads=1"]);
    assert!(unlike.contains("the two files are not used alike") && unlike.contains("--size"), "{unlike}");
}

#[test]
fn requests_that_a_server_owes_at_the_end_are_counted_with_their_age() {
    let Some(ganesha) = Ganesha::start() else { return };
    let place = scratch();
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &ganesha.pid().to_string()]).status().unwrap().success());
    };
    for url in [ganesha.url("data", ""), ganesha.url_4("data", "")] {
        let words = |seconds: u64, more: &[&str]| {
            let duration = format!("--duration={seconds}s");
            let common = ["io", "run", "--path", &url, "--size=8M", "--warmup=0s", "--depth=4", "--quiet", &duration];
            let words = common.into_iter().chain(more.iter().copied()).map(str::to_owned);
            words.collect::<Vec<String>>()
        };
        let owed = |seconds: u64| {
            let words = words(seconds, &["--pattern=randread", "--limit=response:p99.9999=500ms", "--json"]);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let load = plimsoll(&place, &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            // From shortly before the end of the window until after it.
            thread::sleep(Duration::from_millis(1_000 * seconds - 700));
            signal("-STOP");
            thread::sleep(Duration::from_millis(2_500));
            signal("-CONT");
            let output = load.wait_with_output().unwrap();
            let is_crowded = text(&output.stdout).contains(r#""crowded""#);
            let run = serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default()["run"].take();
            let late = &run["steps"][0]["outstanding"][0]["response"];
            let (count, longest_ns) = (late["count"].as_u64().unwrap_or(0), late["max_ns"].as_u64().unwrap_or(0));
            // Where other programs leave no processor, a missed limit has no verdict.
            let is_no = output.status.code() == Some(if is_crowded { 2 } else { 1 });
            (count, longest_ns / 1_000_000, is_no, text(&output.stderr))
        };
        done(&place, &words(1, &["--pattern=randwrite"]).iter().map(String::as_str).collect::<Vec<_>>());
        // On a busy machine the load may begin so late that its window goes on beyond that.
        let found = [2, 5, 12].into_iter().map(owed).find(|(_, longest_ms, ..)| *longest_ms >= 500);
        let (count, longest_ms, is_no, said) = found.expect("nothing was owed");
        assert!(count == 4 && is_no, "{url}: {count}, {said}");
        assert!((500..10_000).contains(&longest_ms), "{url}: {longest_ms} ms");
    }
}
