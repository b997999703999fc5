//! `plimsoll record`, `plimsoll trace` and `plimsoll io replay`: a load is recorded, looked at, and replayed.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::fmt::Write;
use std::fs::File;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::manners::signal;
use crate::place::{Answer, Place};
use crate::servers::wait_until;
use crate::skip::skip;
use test_support::loop_device::LoopDevice;

/// A trace in Alibaba's form: a request each millisecond, three reads and a write of 8 KiB in turn, over so many blocks.
fn csv(requests: u64, blocks: u64) -> String {
    let mut text = String::new();
    for request in 0..requests {
        let opcode = if request % 4 == 3 { "W" } else { "R" };
        let block = request * 7_919 % blocks;
        let _ = writeln!(text, "4,{opcode},{},8192,{}", block * 8_192, 1_577_808_000_000_000 + request * 1_000);
    }
    text
}

/// A place with such a trace of two seconds, converted.
fn with_trace() -> Place {
    let place = Place::on_disk();
    place.write("alibaba.csv", &csv(2_000, 1_000));
    place.done(&["trace", "convert", "alibaba.csv", "-o", "a.trace", "--quiet"]);
    place
}

fn refused(answer: &Answer, why: &str) {
    assert_eq!(answer.code, Some(2), "{answer}");
    assert!(answer.stderr.contains(why) && !answer.stderr.contains("panicked"), "{answer}");
}

#[test]
fn a_trace_of_another_program_is_converted_and_shown() {
    let place = with_trace();
    let shown = place.done(&["trace", "show", "a.trace", "--cache", "16M", "--quiet"]);
    for row in [
        "requests   2,000: 75 % reads, 25 % writes",
        "mean       1,001 requests/s, reads 6.1 MB/s, writes 2.0 MB/s",
        "reads of 8 KiB each",
        "touched    7.8 MiB in blocks of 4 KiB",
        "cache      answers of the reads: 16 MiB ",
    ] {
        assert!(shown.stdout.contains(row), "{row}\n{shown}");
    }
    let document: Value = place.done(&["trace", "show", "alibaba.csv", "--json", "--quiet"]).json();
    assert_eq!(document["profile"]["requests"], 2_000);
    assert_eq!(document["profile"]["counted"]["write"]["bytes"], 500 * 8_192);
    let with_limits =
        place.done(&["trace", "show", "a.trace", "--machine", "m5.large", "--volume", "gp2:100G", "--quiet"]);
    assert!(
        with_limits.stdout.contains("the volumes' requests: 300 requests/s is exceeded in 1.00 s of 1.00 s"),
        "{with_limits}"
    );
}

#[test]
fn what_is_no_trace_is_refused_and_nothing_is_left() {
    let place = with_trace();
    place.write("text", "not a trace\n");
    refused(&place.run(&["trace", "show", "text"]), "`text`: unrecognized trace format");
    refused(&place.run(&["trace", "show", "nowhere"]), "cannot read `nowhere`");
    refused(&place.run(&["trace", "convert", "text", "-o", "new.trace"]), "unrecognized trace format");
    refused(&place.run(&["trace", "convert", "alibaba.csv", "-o", "a.trace"]), "exists");
    refused(&place.run(&["import", "alibaba.csv"]), "alibaba.csv is a trace of requests of another program");
    place.write("table.parquet", "PAR1 of something else PAR1");
    refused(&place.run(&["import", "table.parquet"]), "table.parquet");
    refused(&place.run(&["fit", "--trace", "text", "--platforms"]), "`text`: unrecognized trace format");
    refused(&place.run(&["fit", "--trace", "a.trace", "--platforms", "--at", "p95"]), "every second of the trace");
    place.write("damaged.csv", &format!("{}{}", csv(5, 5), "x,y\n".repeat(1_000)));
    let damaged = place.run(&["trace", "convert", "damaged.csv", "-o", "new.trace"]);
    assert_eq!(damaged.code, Some(2), "{damaged}");
    assert!(!place.path("new.trace").exists());
    refused(&place.run(&["io", "replay", "alibaba.csv", "--path", "sim:"]), "is a trace of another program");
    refused(&place.run(&["io", "replay", "text", "--path", "sim:"]), "unrecognized trace format");
    refused(
        &place.run(&["io", "replay", "a.trace", "--path", "sim:", "--window", "5s..9s"]),
        "has no part of the trace",
    );
    refused(&place.run(&["io", "replay", "a.trace", "--path", "sim:", "--window", "9"]), "has no `..`");
    refused(&place.run(&["io", "replay", "a.trace", "--path", "sim:", "--times", "0"]), "`0`");
    refused(
        &place.run(&["record", "--device", "no-such-device", "-o", "r.trace"]),
        "there is no block device `no-such-device`",
    );
    refused(&place.run(&["record", "--device", "loop0", "-o", "a.trace"]), "exists already");
    for (words, why) in [
        (&["--layer", "file"][..], "`--layer file` needs `--pid`"),
        (&["--layer", "file", "--pid", "1", "--device", "sda"], "`--device` does not go with `--layer file`"),
        (&["--layer", "device"], "`--layer device` needs `--device`"),
        (&["--device", "sda", "--names"], "`--names` needs `--layer file`"),
    ] {
        refused(&place.run(&[&["record", "-o", "r.trace"], words].concat()), why);
    }
    assert!(!place.path("r.trace").exists());
}

#[test]
fn a_trace_that_was_cut_off_is_no_trace_or_used_up_to_its_end() {
    let place = with_trace();
    let whole = std::fs::read(place.path("a.trace")).unwrap();
    std::fs::write(place.path("cut.trace"), &whole[..whole.len() - 5]).unwrap();
    refused(&place.run(&["trace", "show", "cut.trace"]), "it was cut off before its first part was complete");
    refused(&place.run(&["import", "cut.trace"]), "cut.trace: it was cut off before its first part was complete");
    let text = std::fs::read_to_string(place.path("alibaba.csv")).unwrap();
    place.write("cut.csv", &text[..text.len() - 10]);
    let shown = place.done(&["trace", "show", "cut.csv", "--quiet"]);
    assert!(shown.stdout.contains("requests   1,999") && shown.stderr.contains("note:"), "{shown}");
    let ranked = place.done(&["fit", "--trace", "cut.csv", "--platforms"]);
    assert!(ranked.stderr.contains("note:"), "{ranked}");
}

#[test]
fn a_trace_becomes_a_run_that_is_production() {
    let place = Place::on_disk();
    place.write("alibaba.csv", &csv(4_000, 1_000));
    place.done(&["trace", "convert", "alibaba.csv", "-o", "a.trace", "--quiet"]);
    let imported = place.done(&["import", "a.trace", "--json"]).json();
    assert_eq!((&imported[0]["steps"], &imported[0]["program"]), (&1.into(), &"Alibaba".into()), "{imported}");
    let run = place.done(&["report", "last", "--json"]).run();
    assert_eq!(counts(&run["steps"][0]), [("read".to_owned(), 3_000), ("write".to_owned(), 1_000)]);
    assert_eq!(run["started_at"], "2019-12-31T16:00:00Z");
    assert_eq!(run["imported"]["clock"], "utc");
    let again = place.done(&["import", "a.trace"]);
    assert!(again.stderr.contains("was imported before"), "{again}");
    place.done(&["report", "last"]);
    // Each whole second of its 3.999 s is a window.
    let trend = place.done(&["trend", "last", "--json"]).json();
    assert!(trend.to_string().contains("\"windows\":3"), "{trend}");
    let ranked = place.done(&["fit", "--demand", "last", "--platforms", "--json"]).json();
    assert_eq!((&ranked["need"]["requests_per_s"], &ranked["need"]["read_share"]), (&1_600.0.into(), &0.75.into()));
    let plan = place.done(&["io", "run", "--like", "last", "--path", "sim:", "--dry-run"]);
    assert!(plan.stdout.contains("busiest of 3 windows"), "{plan}");
}

#[test]
fn platforms_are_ranked_by_each_second_of_a_trace() {
    let place = with_trace();
    let words = ["fit", "--trace", "a.trace", "--platforms"];
    let ranked = place.done(&[&words[..], &["--json"]].concat()).json();
    // Of its 1.999 s one second is whole.
    assert_eq!((&ranked["trace"]["intervals"], &ranked["need"]["requests_per_s"]), (&1.into(), &1_600.0.into()));
    place.write("short.csv", &csv(900, 100));
    refused(&place.run(&["fit", "--trace", "short.csv", "--platforms"]), "`short.csv` is too short");
    refused(&place.run(&["trace", "show", "short.csv", "--machine", "D8s_v3", "--volume", "p10"]), "is too short");
    let two = place.done(&[&words[..], &["--json", "--nodes", "2"]].concat()).json();
    assert!(two["trace"]["next"].is_null(), "{}", two["trace"]);
    let first = &ranked["carry"][0];
    assert!(first["headroom"].as_f64() >= Some(1.6), "{first}");
    // The command that it names shows the same platform.
    let next: Vec<&str> = ranked["trace"]["next"].as_str().unwrap().split(' ').skip(1).collect();
    let shown = place.done(&[&next[..], &["--quiet"]].concat());
    assert!(shown.stdout.contains(first["machine"].as_str().unwrap()), "{shown}");
    let is_met = |line: &str| !line.contains(" is exceeded ") || line.ends_with("a full credit lasts");
    assert!(shown.stdout.contains("is never exceeded") && shown.stdout.lines().all(is_met), "{shown}");
    let text = place.done(&words);
    assert!(
        text.stdout.contains("`a.trace` asks for 1,000 requests/s of 8.2 KB at its busiest 1.00 s, 75 % of them"),
        "{text}"
    );
    let cached = place.done(&[&words[..], &["--json", "--host-cache", "read"]].concat()).json();
    let cached = cached["carry"].as_array().unwrap();
    assert!(!cached.is_empty() && cached.iter().all(|it| it["cache_hit_share"].as_f64() > Some(0.3)), "{cached:?}");
    // Of what was measured the busiest second of the trace is the demand.
    place.done(&[
        "io",
        "sweep",
        "--path",
        "sim:service=100us,servers=8,clock=simulated",
        "--depth",
        "1,2,4",
        "--duration",
        "2s",
        "--block-size",
        "8K",
        "--pattern",
        "randrw",
        "--read-pct",
        "75",
        "--quiet",
    ]);
    let fit = place.run(&["fit", "--trace", "a.trace", "--capacity", "last", "--json"]);
    let fit = fit.json();
    assert_eq!((&fit["answer"], &fit["windows"]), (&"sustains".into(), &1.into()), "{fit}");
}

#[test]
fn the_host_cache_of_a_machine_answers_what_the_trace_reads_again() {
    let place = with_trace();
    let words = ["trace", "show", "a.trace", "--quiet", "--machine", "Standard_D8s_v3", "--volume", "p10"];
    let shown = place.done(&words);
    // 2,000 requests to 1,000 blocks: of the 1,500 reads 750 are first ones.
    let hits = "host cache of 200 GiB answers 50 % of the reads";
    assert!(shown.stdout.contains(hits) && shown.stdout.contains("see `--host-cache`"), "{shown}");
    assert!(shown.stdout.contains("the volumes' requests: 500 requests/s is exceeded in 1.00 s of 1.00 s"), "{shown}");
    let cached = place.done(&[&words[..], &["--host-cache", "read"]].concat());
    assert!(cached.stdout.contains(hits) && cached.stdout.contains("the hit share is the mean"), "{cached}");
    let factor = |words: &[&str]| {
        let limits = place.done(&[words, &["--json"]].concat()).json()["limits"].clone();
        let of_volumes = limits.as_array().unwrap().iter().find(|limit| limit["limit"] == "the volumes' requests");
        of_volumes.unwrap()["worst_factor"].as_f64().unwrap()
    };
    let (without, with) = (factor(&words), factor(&[&words[..], &["--host-cache", "read"]].concat()));
    // 750 reads/s and 250 writes/s, of which the cache takes half of the reads.
    assert_eq!((without, with), (2.0, 1.25));
    let no_cache =
        ["trace", "show", "a.trace", "--machine", "m5.large", "--volume", "gp2:100G", "--host-cache", "read"];
    refused(&place.run(&no_cache), "no host cache of m5.large is known");
    place.write("writes.csv", &csv(2_000, 100).replace(",R,", ",W,"));
    let of_writes = ["trace", "show", "writes.csv", "--machine", "D8s_v3", "--volume", "p10", "--host-cache", "read"];
    refused(&place.run(&of_writes), "no reads that a host cache could answer");
    refused(&place.run(&["fit", "--trace", "writes.csv", "--platforms", "--host-cache", "read"]), "no reads");
}

/// The kinds of operations of a step, with their counts.
fn counts(step: &Value) -> Vec<(String, u64)> {
    let operations = step["operations"].as_array().unwrap().iter();
    operations.map(|of| (of["kind"].as_str().unwrap().to_owned(), of["count"].as_u64().unwrap())).collect()
}

#[test]
fn a_replay_in_simulated_time_sends_every_request_at_every_multiple() {
    let place = with_trace();
    let words = [
        "io",
        "replay",
        "a.trace",
        "--path",
        "sim:service=200us,servers=8,clock=simulated",
        "--times",
        "1,4",
        "--quiet",
    ];
    let run = place.done(&[&words[..], &["--json"]].concat()).run();
    for (step, seconds) in run["steps"].as_array().unwrap().iter().zip([2.0, 0.5]) {
        assert_eq!(counts(step), [("read".to_owned(), 1_500), ("write".to_owned(), 500)]);
        assert_eq!(
            (&step["generator"]["due_operations"], &step["generator"]["backlog_operations"]),
            (&2_000.into(), &0.into())
        );
        let window = step["window"]["duration_ns"].as_f64().unwrap() / 1e9;
        assert!((window - seconds).abs() < 0.002, "{window}");
    }
    assert_eq!(run["load"]["kind"], "replay");
    let report = place.done(&["report", "last"]);
    assert!(report.stdout.contains("Recorded and replayed: a.trace"), "{report}");
    assert!(report.stdout.contains("x1 is faithful: all 2,000 requests were sent"), "{report}");
    let half = place.done(&[
        "io",
        "replay",
        "a.trace",
        "--path",
        "sim:clock=simulated",
        "--window",
        "0.5s..1.5s",
        "--reads-only",
        "--quiet",
        "--json",
    ]);
    assert_eq!(counts(&half.run()["steps"][0]), [("read".to_owned(), 750)]);
}

#[test]
fn the_multiple_at_which_storage_breaks_is_found() {
    let place = with_trace();
    // 2,000 requests/s at most: twice the pace of the trace.
    let storage = "sim:service=500us,servers=1,clock=simulated";
    let words = ["io", "replay", "a.trace", "--path", storage, "--times", "1..8", "--limit", "p99=20ms", "--quiet"];
    let answer = place.run(&words);
    let run = place.done(&["report", "last", "--json"]).run();
    let rates: Vec<f64> = run["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["load"]["rate_operations_per_s"].as_f64().unwrap())
        .collect();
    assert!(
        rates.len() >= 4 && rates.iter().any(|rate| *rate < 2_000.0) && rates.iter().any(|rate| *rate > 2_000.0),
        "{rates:?}"
    );
    let first = answer.stdout.lines().next().unwrap_or_default();
    assert!(first.contains("times the load of a.trace"), "{answer}");
    assert!(first.contains(" 1.9") || first.contains(" 2"), "{answer}");
}

#[test]
fn a_replay_goes_to_real_files_and_writes_only_where_it_may() {
    let place = with_trace();
    std::fs::write(place.path("mine"), vec![1; 16 << 20]).unwrap();
    refused(&place.run(&["io", "replay", "a.trace", "--path", "mine", "--quiet"]), "mine");
    let replay = place
        .done(&["io", "replay", "a.trace", "--path", "r.dat", "--size", "16M", "--jobs", "2", "--quiet", "--json"]);
    assert_eq!(replay.run()["steps"][0]["generator"]["due_operations"], 2_000);
    let report = place.done(&["report", "last"]);
    for row in ["read: recorded 1,500, replayed 1,500", "write: recorded 500, replayed 500", "2,000 of 2,000|all 2,000"]
    {
        assert!(row.split('|').any(|words| report.stdout.contains(words)), "{row}\n{report}");
    }
    assert_eq!(replay.run()["load"]["placement"], "as_recorded");
    // 8 MiB of addresses do not fit into 4: they are folded, and that is reported.
    let folded = place.done(&["io", "replay", "a.trace", "--path", "small.dat", "--size", "4M", "--quiet", "--json"]);
    assert_eq!(folded.run()["load"]["placement"], "folded");
    let notes = folded.run()["notes"].to_string();
    // Two blocks became one each, so that a small cache answers about twice as many reads.
    assert!(notes.contains("share their place, which moves the hit ratios of caches below by up to"), "{notes}");
    assert!(folded.run()["load"]["moved_hit_points"].as_f64() > Some(1.0), "{}", folded.run()["load"]);
    let plan = place.done(&["io", "replay", "a.trace", "--path", "r.dat", "--size", "16M", "--dry-run"]);
    assert!(plan.stdout.contains("a.trace in 2.00 s: 1,500 reads, 500 writes"), "{plan}");
}

#[test]
fn discards_are_sent_where_the_user_says_so() {
    let place = with_trace();
    let log = "fio version 2 iolog\nx add\nx open\nx read 0 8192\nx wait 100000\nx trim 1048576 2097152\nx write 8192 8192\nx wait 100000\nx read 0 8192\nx close\n";
    place.write("x.log", log);
    place.done(&["trace", "convert", "x.log", "-o", "x.trace", "--quiet"]);
    let replay = |words: &[&str]| place.run(&[&["io", "replay", "x.trace", "--quiet"][..], words].concat());
    refused(&replay(&["--path", "sim:", "--discards"]), "`--discards` needs files or devices of this machine");
    let to_file = ["--path", "d.dat", "--size", "4M", "--json"];
    let without = replay(&to_file).run();
    assert!(
        without["notes"].to_string().contains("discards of the trace that are not sent: 1"),
        "{}",
        without["notes"]
    );
    let sent = |run: &Value| ["read", "write", "discard"].map(|kind| ended_of(&run["steps"][0], kind).0);
    assert_eq!(sent(&without), [2, 1, 0]);
    let with = replay(&[&to_file[..], &["--discards"]].concat()).run();
    assert_eq!(sent(&with), [2, 1, 1]);
    assert_eq!(with["load"]["discards"], 0);
    let report = place.done(&["report", "last"]);
    assert!(
        ["all 4", "4 of 4"].iter().any(|all| report.stdout.contains(&format!("{all} requests were sent"))),
        "{report}"
    );
    assert!(report.stdout.contains("discard: recorded 1, replayed 1"), "{report}");
    let data = std::fs::read(place.path("d.dat")).unwrap();
    assert!(data[1 << 20..3 << 20].iter().all(|byte| *byte == 0), "2 MiB were discarded");
    assert!(data[3 << 20..].iter().any(|byte| *byte != 0) && data[..1 << 20].iter().any(|byte| *byte != 0));
    // What has no data is not measured in silence.
    refused(&replay(&to_file), "was ever written");
    let striped = ["--path", "s1.dat", "--path", "s2.dat", "--stripe", "64K", "--size", "4M", "--discards", "--json"];
    assert_eq!(sent(&replay(&striped).run()), [2, 1, 1]);
    for name in ["s1.dat", "s2.dat"] {
        let data = std::fs::read(place.path(name)).unwrap();
        let is_empty = |from: usize, to: usize| data[from << 10..to << 10].iter().all(|byte| *byte == 0);
        assert!(is_empty(512, 1_536) && !is_empty(448, 512) && !is_empty(1_536, 1_600), "{name}");
    }
    // Where nothing is written, nothing is opened for it.
    place.write("r.log", "fio version 2 iolog\nx add\nx open\nx read 0 8192\nx wait 100000\nx read 0 8192\nx close\n");
    place.done(&["trace", "convert", "r.log", "-o", "r.trace", "--quiet"]);
    place.done(&["io", "replay", "r.trace", "--quiet", "--path", "r.dat", "--size", "4M", "--discards"]);
    place.done(&[&["io", "replay", "x.trace", "--quiet", "--prefill"][..], &to_file, &["--discards"]].concat());
}

/// A recording that has begun; `None`, with the reason reported, where the kernel's tracing cannot be used.
fn recording(place: &Place, device: &LoopDevice, out: &str, more: &[&str]) -> Option<Child> {
    recording_of(place, &["--device", &device.name()], out, more)
}

/// A recording of what `of` names.
fn recording_of(place: &Place, of: &[&str], out: &str, more: &[&str]) -> Option<Child> {
    if !Path::new("/sys/kernel/tracing/events/block").is_dir() {
        let _ = Command::new("mount").args(["-t", "tracefs", "tracefs", "/sys/kernel/tracing"]).output();
    }
    let words = [&["record", "-o", out, "--json"][..], of, more].concat();
    let mut child = place.plimsoll(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("it records or has ended", || place.path(out).exists() || child.try_wait().unwrap().is_some());
    match child.try_wait().unwrap() {
        None => Some(child),
        Some(_) => {
            let answer = Answer::from(child.wait_with_output().unwrap());
            assert!(
                [
                    "not permitted",
                    "not mounted",
                    "offers no tracing",
                    "does not trace system calls",
                    "runs in a container"
                ]
                .iter()
                .any(|why| answer.stderr.contains(why)),
                "{answer}"
            );
            skip(answer.stderr);
            None
        }
    }
}

fn ended(mut child: Child) -> Answer {
    signal(&child, "-INT");
    let _ = child.wait();
    Answer::from(child.wait_with_output().unwrap())
}

/// Whether the kernel still has the tracing instance of a process.
fn has_instance(pid: u32) -> bool {
    Path::new(&format!("/sys/kernel/tracing/instances/plimsoll-{pid}")).exists()
}

#[test]
fn every_request_of_a_load_is_recorded_and_replayed() {
    let place = Place::on_disk();
    File::create(place.path("image")).unwrap().set_len(64 << 20).unwrap();
    let Some(device) = LoopDevice::over(&place.path("image")) else { return };
    let Some(child) = recording(&place, &device, "load.trace", &[]) else { return };
    let (path, name) = (device.path().display().to_string(), device.name());
    let load = place.done(&[
        "io",
        "run",
        "--path",
        &path,
        "--destroy",
        &name,
        "--pattern",
        "randrw",
        "--depth",
        "1",
        "--duration",
        "1s",
        "--warmup",
        "0s",
        "--quiet",
        "--json",
    ]);
    let recorded = ended(child);
    assert_eq!(recorded.code, Some(0), "{recorded}");
    let recorded = recorded.json();
    let of_load = counts(&load.run()["steps"][0]);
    let requests = &recorded["summary"]["requests"];
    for (at, (kind, count)) in of_load.iter().enumerate() {
        // Before and after the load the program looks at the device as well.
        let found = requests[at].as_u64().unwrap();
        assert!(found >= *count && found <= count + 400, "{kind}: {found} recorded of {count}, {requests}");
    }
    assert_eq!(recorded["lost_events"], 0, "{recorded}");
    assert!(
        recorded["summary"]["timed"].as_u64()
            >= recorded["summary"]["requests"]
                .as_array()
                .map(|all| all.iter().filter_map(Value::as_u64).sum::<u64>() - 8)
    );

    let Some(child) = recording(&place, &device, "again.trace", &[]) else { return };
    let replay = place.done(&["io", "replay", "load.trace", "--path", &path, "--destroy", &name, "--quiet", "--json"]);
    let pid = child.id();
    let again = ended(child).json();
    let step = &replay.run()["steps"][0];
    let due = step["generator"]["due_operations"].as_u64().unwrap();
    assert_eq!(due, requests[0].as_u64().unwrap() + requests[1].as_u64().unwrap() + requests[2].as_u64().unwrap());
    let (before, after) =
        (recorded["summary"]["requests"][1].as_u64().unwrap(), again["summary"]["requests"][1].as_u64().unwrap());
    assert!(after >= before && after <= before + 400, "{before} writes recorded, {after} when they were replayed");
    assert!(!has_instance(pid), "it is left behind");
}

#[test]
fn a_recording_ends_at_its_limits_and_is_a_whole_trace() {
    let place = Place::on_disk();
    File::create(place.path("image")).unwrap().set_len(64 << 20).unwrap();
    let Some(device) = LoopDevice::over(&place.path("image")) else { return };
    let Some(child) = recording(&place, &device, "short.trace", &["--duration", "300ms"]) else { return };
    let answer = Answer::from(child.wait_with_output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer}");
    assert_eq!(answer.json()["ended_by"], "duration");
    let Some(long) = recording(&place, &device, "long.trace", &["--duration", "1h"]) else { return };
    std::thread::sleep(Duration::from_millis(100));
    let answer = ended(long);
    assert_eq!((answer.code, answer.json()["ended_by"].as_str()), (Some(130), Some("signal")), "{answer}");
    let shown = place.done(&["trace", "show", "long.trace", "--json", "--quiet"]);
    assert!(shown.json()["profile"]["duration_ns"].as_u64() >= Some(100_000_000), "{shown}");
}

#[test]
fn a_recording_that_was_killed_leaves_nothing_that_costs() {
    let place = Place::on_disk();
    File::create(place.path("image")).unwrap().set_len(64 << 20).unwrap();
    let Some(device) = LoopDevice::over(&place.path("image")) else { return };
    let Some(mut child) = recording(&place, &device, "killed.trace", &[]) else { return };
    child.kill().unwrap();
    child.wait().unwrap();
    // The next one removes what it left.
    let Some(next) = recording(&place, &device, "next.trace", &["--duration", "100ms"]) else { return };
    assert_eq!(Answer::from(next.wait_with_output().unwrap()).code, Some(0));
    assert!(!has_instance(child.id()));
}

#[test]
fn a_window_beyond_the_end_ends_with_the_trace() {
    let place = with_trace();
    let words = ["io", "replay", "a.trace", "--path", "sim:clock=simulated", "--window", "1s..1h"];
    let plan = place.done(&[&words[..], &["--dry-run"]].concat());
    assert!(plan.stdout.contains("a.trace in 999 ms: 750 reads, 250 writes"), "{plan}");
    // All that fall due while a target stands still have a buffer, and no more are made than that.
    let slots = |more: &[&str]| -> u32 {
        let plan = place.done(&[&words[..5], more, &["--dry-run"]].concat()).stdout;
        let most = plan.rsplit_once("at most ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        most.unwrap_or_else(|| panic!("{plan}"))
    };
    assert_eq!(slots(&["--window", "1s..1010ms"]), 64);
    let hundred = slots(&["--window", "1s..1100ms"]);
    assert!((95..=105).contains(&hundred) && slots(&["--window", "1s..1100ms", "--times", "1,4"]) == hundred * 4);
    assert_eq!(slots(&["--times", "2"]), 1_024);
    refused(&place.run(&[&words[..], &["--jobs", "2000"]].concat()), "2000 threads");
}

#[test]
fn parts_of_a_fleet_replay_each_request_once() {
    let place = with_trace();
    let words =
        ["io", "replay", "a.trace", "--path", "sim:clock=simulated,service=100us,servers=9", "--quiet", "--json"];
    let parts: Vec<[u64; 2]> = (0..3)
        .map(|part| {
            let run = place.done(&[&words[..], &["--part", &format!("{part}/3")]].concat()).run();
            ["read", "write"].map(|kind| ended_of(&run["steps"][0], kind).0)
        })
        .collect();
    assert!(parts.iter().flatten().all(|requests| *requests > 100), "{parts:?}");
    assert_eq!([0, 1].map(|kind| parts.iter().map(|part| part[kind]).sum::<u64>()), [1_500, 500], "{parts:?}");
}

/// The operations of a step that ended in its window or were waited for, and how long 99 of 100 took from when they were due.
fn ended_of(step: &Value, kind: &str) -> (u64, f64) {
    let of = |list: &str| step[list].as_array().into_iter().flatten().find(|one| one["kind"] == kind).cloned();
    let (done, late) = (of("operations").unwrap_or_default(), of("outstanding").unwrap_or_default());
    let count = |one: &Value| one["service"]["count"].as_u64().unwrap_or(0);
    let max = |one: &Value| one["response"]["max_ns"].as_f64().unwrap_or(0.0) / 1e6;
    (count(&done) + count(&late), max(&done).max(max(&late)))
}

#[test]
fn more_of_a_trace_is_copies_or_laps_and_all_of_it_is_sent() {
    let place = with_trace();
    let words = ["io", "replay", "a.trace", "--path", "sim:service=200us,servers=8,clock=simulated", "--quiet"];
    let copies = place.done(&[&words[..], &["--times", "2.5", "--copies", "--json"]].concat()).run();
    // The third copy has every second request, so each write and every third read.
    assert_eq!(counts(&copies["steps"][0]), [("read".to_owned(), 3_500), ("write".to_owned(), 1_500)]);
    let report = place.done(&["report", "last"]);
    assert!(report.stdout.contains("is faithful: all 5,000 requests were sent"), "{report}");
    let laps = place.done(&[&words[..], &["--loop", "3", "--json"]].concat()).run();
    assert_eq!(counts(&laps["steps"][0]), [("read".to_owned(), 4_500), ("write".to_owned(), 1_500)]);
    assert_eq!(laps["steps"][0]["window"]["duration_ns"].as_u64().map(|ns| ns / 1_000_000), Some(5_998));
    let by_second: Vec<u64> = laps["load"]["by_second"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert_eq!((by_second.len(), by_second.iter().sum()), (6, 6_000));
}

#[test]
fn as_fast_as_possible_ends_with_the_last_request() {
    let place = with_trace();
    let words = ["io", "replay", "a.trace", "--as-fast-as-possible", "--quiet"];
    let simulated = "sim:service=1ms,servers=8,clock=simulated";
    refused(&place.run(&[&words[..], &["--path", simulated]].concat()), "the trace has no latencies");
    refused(&place.run(&[&words[..], &["--path", simulated, "--times", "2"]].concat()), "--times");
    let run = place.done(&[&words[..], &["--path", simulated, "--depth", "4", "--json"]].concat()).run();
    let step = &run["steps"][0];
    assert_eq!(counts(step), [("read".to_owned(), 1_500), ("write".to_owned(), 500)]);
    // 2,000 requests, four at a time, each for a millisecond.
    assert_eq!(step["window"]["duration_ns"].as_u64().map(|ns| ns / 1_000_000), Some(500));
    let report = place.done(&["report", "last"]);
    assert!(report.stdout.contains("2,000 of 2,000 requests were sent, each when an earlier one ended"), "{report}");
    let file = ["--path", "r.dat", "--size", "16M", "--depth", "4", "--jobs", "2", "--json"];
    let run = place.done(&[&words[..], &file].concat()).run();
    assert_eq!([ended_of(&run["steps"][0], "read").0, ended_of(&run["steps"][0], "write").0], [1_500, 500]);
}

/// A trace in the form of MSR: a log on disk 1 that writes each millisecond and waits for half of that, and beside some of its writes a read
/// on disk 0.
fn msr(writes: u64, read_every: u64) -> String {
    let mut text = String::new();
    for number in 0..writes {
        let at = 128_166_372_000_000_000 + number * 10_000;
        if number % read_every == 0 {
            let _ = writeln!(text, "{at},host,0,Read,{},8192,1000", number * 7_919 % 1_000 * 8_192);
        }
        let _ = writeln!(text, "{},host,1,Write,{},8192,5000", at + 100, number * 8_192);
    }
    text
}

#[test]
fn a_log_that_waited_for_its_answers_does_so_again() {
    let place = Place::on_disk();
    place.write("msr.csv", &msr(200, 100));
    place.done(&["trace", "convert", "msr.csv", "-o", "m.trace", "--quiet"]);
    // A write takes twice the time between two of them, so a log that does not wait has a queue.
    let words = ["io", "replay", "m.trace", "--path", "sim:service=2ms,servers=1,clock=simulated", "--quiet", "--json"];
    let alone = ["--map", "host_0=none"];
    let open = place.done(&words).run();
    let ordered = place.done(&[&words[..], &["--keep-order"]].concat()).run();
    let (sent, open_ms) = ended_of(&open["steps"][0], "write");
    let (kept, ordered_ms) = ended_of(&ordered["steps"][0], "write");
    assert_eq!((sent, kept), (200, 200), "each is sent, the last ones after the window");
    assert_eq!((&ordered["load"]["chained"]["streams"], &open["load"]["chained"]), (&1.into(), &Value::Null));
    assert!(open_ms > 100.0 && ordered_ms < 10.0, "{open_ms} ms, in order {ordered_ms} ms");
    refused(&place.run(&[&words[..], &alone].concat()), "`--map`");
}

#[test]
fn devices_of_a_trace_go_to_the_paths_that_the_user_names() {
    let place = Place::on_disk();
    place.write("msr.csv", &msr(100, 1));
    place.done(&["trace", "convert", "msr.csv", "-o", "m.trace", "--quiet"]);
    let header = place.done(&["trace", "show", "m.trace", "--json", "--quiet"]).json();
    let names: Vec<&str> =
        header["header"]["devices"].as_array().unwrap().iter().filter_map(|device| device["name"].as_str()).collect();
    let [reads, log] = names[..] else { panic!("{names:?}") };
    let words = ["io", "replay", "m.trace", "--path", "a.dat", "--path", "b.dat", "--size", "32M", "--quiet"];
    let map = |device: &str, path: &str| format!("{device}={path}");
    let both = [map(reads, "b.dat"), map(log, "a.dat")];
    let run = place.done(&[&words[..], &["--map", &both[0], "--map", &both[1], "--json"]].concat()).run();
    let sent = |run: &Value| ["read", "write"].map(|kind| ended_of(&run["steps"][0], kind).0);
    assert_eq!(sent(&run), [100, 100]);
    // What was written lies at the beginning of the log's file, and its reads went to the other.
    let without =
        place.done(&[&words[..], &["--map", &both[1], "--map", &map(reads, "none"), "--json"]].concat()).run();
    assert_eq!(sent(&without), [0, 100]);
    assert!(without["notes"].to_string().contains(&format!("requests of {reads} are left out")), "{without}");
    refused(&place.run(&[&words[..], &["--map", &both[0]]].concat()), &format!("names no path for device `{log}`"));
    let elsewhere = map(log, "c.dat");
    refused(&place.run(&[&words[..], &["--map", &both[0], "--map", &elsewhere]].concat()), "a path that is not used");
    refused(&place.run(&[&words[..], &["--map", "sdz=a.dat"]].concat()), "the trace has no device `sdz`");
    refused(&place.run(&[&words[..], &["--map", &both[0], "--map", &both[0]]].concat()), "twice");
}

#[test]
fn a_trace_whose_rate_swings_gets_a_verdict() {
    let place = Place::on_disk();
    let mut text = String::new();
    let mut at_us = 1_577_808_000_000_000_u64;
    for second in 0..20 {
        let per_s = if second / 5 % 2 == 0 { 100 } else { 1_000 };
        for request in 0..per_s {
            let _ = writeln!(text, "4,R,{},8192,{}", request * 8_192, at_us + request * 1_000_000 / per_s);
        }
        at_us += 1_000_000;
    }
    place.write("swings.csv", &text);
    place.done(&["trace", "convert", "swings.csv", "-o", "s.trace", "--quiet"]);
    let storage = "sim:service=500us,servers=8,clock=simulated";
    let words = ["io", "replay", "s.trace", "--path", storage, "--limit", "p99=5ms", "--quiet"];
    let answer = place.run(&words);
    assert_eq!(answer.code, Some(0), "{answer}");
    assert!(answer.stdout.contains("p99") && !answer.stdout.contains("not reliable"), "{answer}");
    let slow = place.run(&[&words[..6], &["p99=100us", "--quiet"]].concat());
    assert_eq!(slow.code, Some(1), "{slow}");
}

/// Where the child finds its files: it is this test program once more.
const CALLS_IN: &str = "PLIMSOLL_TEST_CALLS_IN";

/// What the child does when it may; nothing in a usual run of the tests.
#[test]
fn a_child_makes_calls_that_are_counted() {
    let Some(folder) = std::env::var_os(CALLS_IN) else { return };
    let wait = || {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
    };
    println!("ready");
    wait();
    let both = File::options().read(true).write(true).clone();
    let data = both.open(Path::new(&folder).join("users01.dbf")).unwrap();
    let mut log = both.open(Path::new(&folder).join("redo01.log")).unwrap();
    let mut block = [0; 8_192];
    for number in [0, 3, 1, 6, 2] {
        assert_eq!(data.read_at(&mut block, number * 8_192).unwrap(), 8_192);
    }
    assert_eq!(data.read_at(&mut block, 1 << 30).unwrap(), 0);
    data.write_all_at(&block, 8_192).unwrap();
    data.write_all_at(&block[..4_096], 1 << 20).unwrap();
    data.sync_all().unwrap();
    for _ in 0..3 {
        log.write_all(&block[..512]).unwrap();
        log.sync_data().unwrap();
    }
    println!("done");
    wait();
}

#[test]
fn every_call_of_a_process_on_its_files_is_recorded() {
    let place = Place::on_disk();
    std::fs::write(place.path("users01.dbf"), vec![1; 64 << 10]).unwrap();
    std::fs::write(place.path("redo01.log"), vec![1; 4 << 10]).unwrap();
    for (out, more, names) in [
        ("calls.trace", &[][..], ["data-1".to_owned(), "log-1".to_owned()]),
        (
            "names.trace",
            &["--names"],
            ["users01.dbf", "redo01.log"]
                .map(|name| std::fs::canonicalize(place.path(name)).unwrap().display().to_string()),
        ),
    ] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "trace::a_child_makes_calls_that_are_counted", "--nocapture"])
            .env(CALLS_IN, place.path(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut ask, mut said) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
        let mut says = |what: &str| assert!(said.any(|line| line.unwrap().contains(what)), "it ends without `{what}`");
        says("ready");
        let pid = child.id().to_string();
        let of = ["--layer", "file", "--pid", &pid];
        let Some(recorder) = recording_of(&place, &of, out, more) else {
            drop(ask);
            child.wait().unwrap();
            return;
        };
        ask.write_all(b"\n").unwrap();
        says("done");
        let instance = recorder.id();
        let answer = ended(recorder);
        drop(ask);
        assert!(child.wait().unwrap().success());
        assert_eq!(answer.code, Some(0), "{answer}");
        let recorded = answer.json();
        assert_eq!(recorded["summary"]["requests"], serde_json::json!([5, 5, 4, 0]), "{recorded}");
        assert_eq!(recorded["summary"]["bytes"][1], 8_192 + 4_096 + 3 * 512);
        assert_eq!((&recorded["calls"]["empty"], &recorded["lost_events"]), (&1.into(), &0.into()), "{recorded}");
        assert_eq!(
            (&recorded["calls"]["unknown"], &recorded["calls"]["unplaced"]),
            (&0.into(), &0.into()),
            "{recorded}"
        );
        assert!(recorded["calls"]["not_files"].as_u64() >= Some(1), "what it said: {recorded}");
        let devices: Vec<&str> =
            recorded["header"]["devices"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(devices, names);
        assert!(!has_instance(instance), "it is left behind");
    }
    let shown = place.done(&["trace", "show", "calls.trace", "--json", "--quiet"]).json();
    let devices = shown["profile"]["devices"].as_array().unwrap();
    assert_eq!(devices[0]["counted"]["read"]["requests"], 5, "{shown}");
    assert_eq!(devices[0]["size_bytes"], (1 << 20) + 4_096, "it grew");
    assert_eq!(devices[1]["extent"]["end_bytes"], 3 * 512, "{shown}");
    let replay =
        place.done(&["io", "replay", "calls.trace", "--path", "sim:service=200us,servers=8,clock=simulated", "--json"]);
    let step = &replay.run()["steps"][0];
    assert_eq!(step["generator"]["due_operations"], 14, "{step}");
}
