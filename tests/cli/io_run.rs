//! `plimsoll io run` and `io sweep` on small real files: what is refused, what is made, what is kept.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::errors::refused;
use crate::manners::{long_enough, signal, wait_for, wait_for_counted};
use crate::place::{Answer, Place, kinds};
use crate::servers::wait_until;
use crate::skip::skip;

/// A run on a file of 4 MiB.
const SMALL: [&str; 8] = ["io", "run", "--path", "new", "--size=4M", "--warmup=0s", "--depth=4", "--quiet"];

/// Such a run of so many seconds.
fn lasting<'a>(seconds: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    SMALL.into_iter().chain(["--duration", seconds]).chain(more.iter().copied()).collect()
}

fn short<'a>(more: &[&'a str]) -> Vec<&'a str> {
    lasting("1", more)
}

fn all_refused(place: &Place, lines: &[&str]) -> String {
    let reported: Vec<String> = lines.iter().map(|line| refused(place, &line.split(' ').collect::<Vec<_>>())).collect();
    reported.join("\n")
}

/// A file that Plimsoll did not lay out, with data that are on storage.
fn write_theirs(place: &Place) -> Vec<u8> {
    let data: Vec<u8> = (0..4_u32 << 20).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(place.path("theirs"), &data).unwrap();
    File::open(place.path("theirs")).unwrap().sync_all().unwrap();
    data
}

fn kept_document(place: &Place) -> Value {
    place.done(&["runs", "show", "last", "--json"]).json()
}

fn operations(run: &Value) -> u64 {
    run["steps"][0]["counters"]["operations"].as_u64().unwrap()
}

fn is_root() -> bool {
    // SAFETY: a plain system call without arguments.
    unsafe { libc::geteuid() == 0 }
}

#[test]
fn bad_words_are_refused_with_advice() {
    let place = Place::on_disk();
    write_theirs(&place);
    insta::assert_snapshot!(all_refused(
        &place,
        &[
            "io run --path new --pattern backwards",
            "io run --path theirs --pattern randread --block-size 700",
            "io run --path theirs --pattern randread --block-size 8M",
            "io run --path theirs --pattern randread --depth 0",
            "io run --path theirs --pattern randread --depth 5000",
            "io run --path theirs --pattern randread --depth 2 --jobs 4",
            "io run --path theirs --pattern randread --read-pct 101",
            "io run --path theirs --pattern randread --read-pct 70",
            "io run --path theirs --pattern randread --rate 0",
            "io run --path theirs --pattern randread --rate 1e99",
            "io run --path theirs --pattern randread --arrival fixed",
            "io run --path theirs --pattern randread --durable dsync",
            "io run --path theirs --pattern read --distribution zipf:1.1",
            "io run --path theirs --pattern randread --duration 0",
            "io run --path theirs --pattern randread --duration soon",
            "io run --path theirs --pattern randread --mirror",
            "io run --path theirs --pattern randread --stripe 1M",
            "io run --path theirs --path theirs --pattern randread",
            "io run --path theirs --pattern randread --verify --direct off",
            "io run --path theirs --pattern randread --size 4K",
            "io run --path new --size 64K --pattern randwrite --depth 32 --verify",
            "io run --path new --path sim: --pattern randread",
            "io run --path sim:colour=blue --pattern randread",
            "io sweep --path theirs --pattern randread --depth 4,2,4",
            "io sweep --path theirs --pattern randread --depth 1,2 --rate 100..200",
            "io sweep --path theirs --pattern randread --rate 200..100",
        ]
    ));
}

#[test]
fn what_is_missing_or_cannot_be_measured_is_refused_with_advice() {
    let place = Place::on_disk();
    write_theirs(&place);
    std::fs::hard_link(place.path("theirs"), place.path("other-name")).unwrap();
    std::os::unix::fs::symlink("theirs", place.path("link")).unwrap();
    File::create(place.path("sparse")).unwrap().set_len(8 << 20).unwrap();
    place.write("empty", "");
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    insta::assert_snapshot!(all_refused(
        &place,
        &[
            "io run --path missing --pattern randread",
            "io run --path missing/file --size 1M --pattern randread",
            "io run --path theirs/file --size 1M --pattern randread",
            "io run --path . --pattern randread",
            "io run --path /dev/null --pattern randread",
            "io run --path pipe --pattern randread",
            "io run --path empty --pattern randread",
            "io run --path sparse --pattern randread",
            "io run --path theirs --pattern randread --size 1G",
            "io run --path theirs --path other-name --pattern randread",
            "io run --path theirs --path ./link --pattern randread",
            "io run --path theirs --pattern randwrite",
            "io run --path theirs --pattern randwrite --destroy other-name",
            "io run --path theirs --pattern randwrite --destroy-signature",
            "io run --path theirs --pattern randread --verify",
        ]
    ));
}

#[test]
fn a_file_that_was_only_reserved_is_not_read() {
    let place = Place::on_disk();
    let file = File::create(place.path("reserved")).unwrap();
    // SAFETY: a plain system call on a descriptor that lives.
    if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, 8 << 20) } != 0 {
        return skip("this file system cannot reserve space");
    }
    let reported = refused(&place, &["io", "run", "--path", "reserved", "--pattern", "randread"]);
    assert!(reported.contains("error: reading `reserved` would measure nothing: only 0 % of it"), "{reported}");
}

#[test]
fn more_than_the_file_system_holds_is_refused_before_anything_is_made() {
    let place = Place::on_disk();
    let reported = refused(&place, &["io", "run", "--path", "new", "--size", "1000T", "--pattern", "randread"]);
    assert!(
        reported.contains("error: `new` needs 1,000 TiB and its file system has ")
            || reported.contains("needs 1000 TiB")
    );
    assert!(reported.contains("hint: ask for less (`--size`)"), "{reported}");
    assert_eq!(std::fs::read_dir(place.path("")).unwrap().count(), 0);
}

#[test]
fn somebody_elses_file_is_written_to_only_with_its_name_typed_out() {
    let place = Place::on_disk();
    let before = write_theirs(&place);
    let words = ["io", "run", "--path", "theirs", "--pattern=randwrite", "--warmup=0s", "--quiet"];
    refused(&place, &words);
    refused(&place, &[&words[..], &["--destroy", "new"]].concat());
    place.done(&["io", "run", "--path", "theirs", "--pattern=randread", "--duration=1s", "--warmup=0s", "--quiet"]);
    assert!(std::fs::read(place.path("theirs")).unwrap() == before, "reads and refusals changed it");
    let destroy = ["--destroy", "theirs", "--json"];
    let run = long_enough(
        |seconds| place.done(&[&words[..], &["--duration", seconds], &destroy].concat()).run(),
        |run| operations(run) > 0,
    );
    assert!(operations(&run) > 0);
    assert!(std::fs::read(place.path("theirs")).unwrap() != before);
}

#[test]
fn a_dry_run_says_everything_and_makes_nothing() {
    let place = Place::on_disk();
    let words = "io sweep --path new --path new2 --size 8M --stripe 64K --pattern randrw --read-pct 70 --depth 1..4 --seed 7 \
                 --duration 2 --durable fsync:8 --tag vm=d8s --dry-run";
    let answer = place.done(&words.split_whitespace().collect::<Vec<_>>());
    insta::assert_snapshot!(answer.reported());
    assert_eq!(std::fs::read_dir(place.path("")).unwrap().count(), 0, "something was made");
}

#[test]
fn the_json_is_the_report_of_the_run_that_is_kept() {
    let place = Place::on_disk();
    let more = ["--pattern", "randrw", "--json", "--seed", "42", "--tag", "disk=p30"];
    let answer =
        long_enough(|seconds| place.done(&lasting(seconds, &more)), |answer| kinds(&answer.run()) == ["read", "write"]);
    assert_eq!(answer.json(), place.done(&["report", "last", "--json"]).json());
    let run = answer.run();
    assert_eq!(run, kept_document(&place));
    assert!(answer.json()["generator"][0]["limited_by"].is_string(), "{answer}");
    assert_eq!((&run["load"]["kind"], &run["target"]["kind"]), (&"io".into(), &"block".into()));
    assert_eq!((&run["seed"], &run["parameters"]["DEPTH"]), (&42.into(), &"4".into()));
    assert_eq!(run["target"]["data_bytes"], 4 << 20);
    assert_eq!(std::fs::metadata(place.path("new")).unwrap().len(), 4 << 20);
    assert_eq!(kinds(&run), ["read", "write"]);
}

#[test]
fn a_sweep_makes_its_file_once_and_has_a_step_for_each_depth() {
    let place = Place::on_disk();
    let words = "io sweep --path new --size 4M --pattern randread --depth 1,2,4 --duration 1s --warmup 0s --json";
    let answer = place.done(&words.split(' ').collect::<Vec<_>>());
    let labels: Vec<Value> =
        answer.run()["steps"].as_array().unwrap().iter().map(|step| step["label"].clone()).collect();
    assert_eq!(labels, ["d1", "d2", "d4"]);
    assert!(answer.stderr.contains("step 3 of 3, d4"), "{answer}");
    place.done(&short(&["--pattern", "randread", "--json"]));
}

/// A cap whose bucket is empty by the last depth: after a pause it has credit again.
#[test]
fn pulses_tell_a_limiter_that_saves_credit() {
    let place = Place::new();
    let sweep = |storage: &str, more: &[&str]| {
        let path = format!("--path=sim:service=200us,clock=simulated,{storage}");
        let words =
            ["io", "sweep", &path, "--pattern=randread", "--depth=8,16,32", "--duration=6", "--warmup=2", "--json"];
        place.done(&[&words[..], more].concat())
    };
    let tested = |run: &Value| run["steps"][2]["pulse_test"].clone();
    let credit = sweep("servers=8,iops_cap=2000,burst=20000:50ms", &[]);
    let pulses = tested(&credit.run());
    assert_eq!((&pulses["pause_ns"], &pulses["window_ns"]), (&700_000_000.into(), &10_000_000.into()), "{pulses}");
    let ratios: Vec<f64> =
        pulses["pulses"].as_array().unwrap().iter().map(|pulse| pulse["ratio"].as_f64().unwrap()).collect();
    assert!(ratios.len() == 5 && ratios.iter().all(|ratio| *ratio > 5.0), "{ratios:?}");
    assert!(credit.stdout.contains("by an IOPS limit set by software at 2,000 requests/s"), "{credit}");
    assert_eq!(credit.run()["steps"].as_array().unwrap().len(), 3, "a pulse is no step");

    let without = sweep("servers=8,iops_cap=2000,burst=20000:50ms", &["--no-pulse"]);
    assert!(tested(&without.run()).is_null(), "{without}");
    assert!(without.stdout.contains("a limit on requests, set for it or its own"), "{without}");
    let other = |run: &Value| run["steps"][2]["size_test"].clone();
    assert_eq!(other(&without.run())["request_bytes"], 4_096, "{without}");

    let neither = sweep("servers=8,iops_cap=2000,burst=20000:50ms", &["--no-experiments"]);
    assert!(tested(&neither.run()).is_null() && other(&neither.run()).is_null(), "{neither}");
    assert!(neither.stdout.contains("a limit, set for it or its own"), "{neither}");
    let how_known = |answer: &Answer| answer.json()["answer"]["how_known"].clone();
    assert_eq!([&credit, &without, &neither].map(how_known), ["tested", "tested", "seen"]);
    let bytes = sweep("servers=8,mbps_cap=16", &[]);
    assert!(bytes.stdout.contains("Requests of 4 KiB came at ") && bytes.stdout.contains("it counts bytes"), "{bytes}");

    let paced = sweep("servers=8,iops_cap=2000", &[]);
    assert!(paced.stdout.contains("it lets no more through than before"), "{paced}");
    // Where throughput still grows, a pulse would tell nothing.
    let growing = sweep("servers=64", &[]);
    assert!(tested(&growing.run()).is_null(), "{growing}");
}

#[test]
fn a_dry_run_says_what_pulses_cost() {
    let place = Place::new();
    let words = ["io", "sweep", "--path=sim:", "--pattern=randread", "--depth=1,8", "--dry-run"];
    let said = |more: &[&str]| place.done(&[&words[..], more].concat()).reported();
    let line = "pulses     5 after pauses of 700 ms, about 6.50 s in all, if the steps do not show whether a limiter";
    assert!(said(&[]).contains(line), "{}", said(&[]));
    assert!(!said(&["--no-pulse"]).contains("pulses"), "{}", said(&["--no-pulse"]));
    let size = "other size 2.50 s of requests of another size, if the steps do not show whether a limit counts";
    assert!(said(&["--no-pulse"]).contains(size), "{}", said(&["--no-pulse"]));
    assert!(!said(&["--no-experiments"]).contains("other size"), "{}", said(&["--no-experiments"]));
}

#[test]
fn a_search_to_an_odd_rate_ends_where_that_rate_passes() {
    let place = Place::new();
    let storage = "--path=sim:service=200us,servers=8,clock=simulated";
    let range = ["--rate=1000.4..2000.4", "--pattern=randread", "--duration=5", "--warmup=0", "--seed=7", "-q"];
    place.done(&[&["io", "sweep", storage][..], &range].concat());
    let run = kept_document(&place);
    assert_eq!(run["steps"].as_array().unwrap().len(), 2, "the least rate and the largest one, and neither again");
}

#[test]
fn checked_runs_end_well_on_sound_storage_and_with_exit_code_one_on_spoilt() {
    use std::os::unix::fs::FileExt;
    let place = Place::on_disk();
    let is_sound = |written: &Answer| written.stderr.contains("blocks written were read back and are sound");
    let written =
        long_enough(|seconds| place.done(&lasting(seconds, &["--pattern", "randrw", "--verify", "--json"])), is_sound);
    assert!(is_sound(&written), "{written}");
    place.done(&short(&["--pattern", "randread", "--verify"]));
    // Checking needs data, so what the loop does without a device is another one.
    let has_ceiling = || kept_document(&place)["steps"][0]["generator"]["ceiling_operations_per_s"].is_number();
    assert!(!has_ceiling());
    // A busy machine may give that no processor.
    let found = (0..10).any(|_| {
        place.done(&short(&["--pattern", "randread"]));
        has_ceiling()
    });
    assert!(found);
    let file = File::options().write(true).open(place.path("new")).unwrap();
    // Not the first sector and not the last, by which the file is known.
    for sector in 1..1_000 {
        file.write_all_at(&[0; 512], sector * 4096).unwrap();
    }
    file.sync_all().unwrap();
    let spoilt = long_enough(
        |seconds| place.run(&lasting(seconds, &["--pattern", "randread", "--verify"])),
        |spoilt| spoilt.code != Some(0),
    );
    assert_eq!(spoilt.code, Some(1), "{spoilt}");
    assert!(spoilt.stderr.contains("error: bad data in `new`: the sector at offset "), "{spoilt}");
    assert!(spoilt.stderr.contains("was never written: it holds zeroes"), "{spoilt}");
    let reported = kept_document(&place);
    assert!(reported["outcome"]["failed"]["error"].as_str().unwrap().starts_with("bad data in `new`"));
}

#[test]
fn requests_that_failed_or_hung_at_the_end_are_said_first_and_are_exit_code_one() {
    let place = Place::new();
    let on = |sim: &str, more: &[&str]| {
        let path = format!("sim:service=1ms,{sim},clock=simulated");
        let words =
            ["io", "run", "--path", &path, "--pattern=randread", "--depth=4", "--duration=6", "--warmup=0", "--quiet"];
        let ended = place.run(&[&words, more].concat());
        (ended.code, ended.stdout)
    };
    let (code, said) = on("errors=0.01", &[]);
    assert!(code == Some(1) && said.lines().next().unwrap().contains("requests ended in errors"), "{code:?}: {said}");
    assert!(said.contains(", half of them within 1.") || said.contains(", half of them within 9"), "{said}");
    // From 5.9 s of 6 on nothing is answered, for 6 s.
    let hung = "stall=5.9s:6s";
    let (code, said) = on(hung, &["--limit", "p99.99=200ms"]);
    assert!(code == Some(1) && said.starts_with("RESULT    No: p99.99 of response time is 6.0"), "{code:?}: {said}");
    let (code, said) = on(hung, &["--limit", "p99.99=200ms", "--drain=1s"]);
    assert!(code == Some(1) && said.starts_with("RESULT    No: p99.99 of response time is 1.1"), "{code:?}: {said}");
    let (code, said) = on("spread=fixed", &["--limit", "p99.99=200ms"]);
    assert!(code == Some(0) && said.starts_with("RESULT    Yes: "), "{code:?}: {said}");
}

#[test]
fn the_page_cache_is_labelled() {
    let place = Place::on_disk();
    let through = place.done(&short(&["--pattern", "randread", "--direct", "off"]));
    assert!(through.stdout.contains("direct_io=off"), "{through}");
    assert!(through.stdout.contains("(times from sent to finished, through the page cache)"), "{through}");
    let past = place.done(&short(&["--pattern", "randread"]));
    assert!(past.stdout.contains("direct_io=on") && !past.stdout.contains("through the page cache"), "{past}");
}

/// Simulated storage serves 1,000 requests a second at most.
#[test]
fn a_rate_above_the_capacity_is_reported_first_and_missing_a_target_is_exit_code_one() {
    let place = Place::new();
    let words = [
        "io",
        "run",
        "--path=sim:service=1ms,servers=1,clock=simulated",
        "--pattern=randread",
        "--rate=5000",
        "--duration=2",
        "--quiet",
    ];
    let answer = place.done(&words);
    assert!(answer.stdout.contains("The requested rate was not reached in r5000: 1,000 of 5,000"), "{answer}");
    let missed = place.run(&[&words[..], &["--limit", "p99=5ms"]].concat());
    assert_eq!(missed.code, Some(1), "{missed}");
    assert!(missed.stdout.starts_with("RESULT    No: the rate was not reached: p99 of response time is "), "{missed}");
}

#[test]
fn a_seed_repeats_the_load_and_without_one_no_load_is_like_another() {
    let place = Place::new();
    let run = |seed: &[&str]| {
        let words = "io run --path sim:service=1ms,servers=2,clock=simulated --pattern randrw --rate 500 --duration 1 --warmup 0s --json --quiet";
        place.done(&[&words.split(' ').collect::<Vec<_>>()[..], seed].concat()).run()
    };
    let (one, again, other) = (run(&["--seed", "7"]), run(&["--seed", "7"]), run(&["--seed", "8"]));
    assert_eq!(one["steps"][0]["operations"], again["steps"][0]["operations"]);
    assert_ne!(one["steps"][0]["operations"], other["steps"][0]["operations"]);
    let fresh = [run(&[]), run(&[])];
    assert_ne!(fresh[0]["seed"], fresh[1]["seed"]);
}

#[test]
fn ctrl_c_while_files_are_laid_out_leaves_none_of_them() {
    let place = Place::on_disk();
    let words = ["io", "run", "--path", "new", "--size", "2G", "--pattern", "randread"];
    let mut child = place.plimsoll(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a file is begun, or none can be", || {
        std::fs::read_dir(place.path("")).unwrap().count() > 0 || child.try_wait().unwrap().is_some()
    });
    signal(&child, "-INT");
    let answer = Answer::from(child.wait_with_output().unwrap());
    assert_eq!(answer.code, Some(130), "{answer}");
    assert!(answer.stderr.contains("interrupted while laying out"), "{answer}");
    assert_eq!(std::fs::read_dir(place.path("")).unwrap().count(), 0, "something was left behind");
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_reports_it() {
    let place = Place::on_disk();
    let words =
        ["io", "run", "--path", "new", "--size=4M", "--pattern=randrw", "--duration=60", "--warmup=0s", "--verify"];
    let mut child = place.plimsoll(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = wait_for(&mut child, " IOPS ");
    wait_for_counted(&place, "operations");
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    drop(stderr);
    let reported = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{reported}");
    assert!(reported.contains("(times from sent to finished)"), "{reported}");
    // On a busy machine the first screen has other warnings first.
    let full = place.run(&["report", "last", "--full"]).stdout;
    assert!(full.contains("The run was ended early"), "{full}");
    let run = kept_document(&place);
    assert_eq!((&run["outcome"], &run["steps"][0]["outcome"]), (&"interrupted".into(), &"interrupted".into()));
    assert!(operations(&run) > 0);
    // What was laid out is whole and can be used again.
    place.done(&short(&["--pattern", "randread", "--verify"]));
}

#[test]
fn ctrl_c_while_blocks_are_read_back_is_not_success() {
    let place = Place::on_disk();
    let words = "io run --path new --size 64M --pattern randwrite --block-size 512 --duration 60 --warmup 0s --verify";
    let words: Vec<&str> = words.split(' ').collect();
    let mut child = place.plimsoll(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = wait_for(&mut child, "IOPS");
    // What was not written is not read back.
    wait_for_counted(&place, "physical_writes");
    signal(&child, "-INT");
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.contains("reading back was cut short"), "{said}");
    assert_eq!(kept_document(&place)["outcome"], "interrupted");
}

#[test]
fn a_user_who_may_not_is_reported_so() {
    let place = Place::on_disk();
    write_theirs(&place);
    let run = |words: &[&str]| {
        let mut command = place.plimsoll(words);
        if is_root() {
            command.uid(65_534).gid(65_534);
        }
        command.output()
    };
    let mode = |name: &str, mode: u32| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(place.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("", 0o555);
    if !run(&["--version"]).is_ok_and(|output| output.status.success()) {
        return skip("an ordinary user cannot start the program where it stands");
    }
    let cases: [(u32, &[&str], &str); 3] = [
        (0o000, &["--path", "theirs", "--pattern=randread"], "error: cannot open `theirs`: Permission denied"),
        (
            0o444,
            &["--path", "theirs", "--pattern=randwrite", "--destroy=theirs"],
            "error: cannot open `theirs`: Permission",
        ),
        (0o444, &["--path", "new", "--size=1M", "--pattern=randread"], "error: cannot create `"),
    ];
    for (file, words, reported) in cases {
        mode("theirs", file);
        let answer = Answer::from(run(&[&["io", "run"], words].concat()).unwrap());
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(2), ""), "{answer}");
        assert!(answer.stderr.contains(reported) && answer.stderr.contains("hint: "), "{answer}");
    }
    mode("", 0o755);
    mode("theirs", 0o644);
    assert!(!place.path("new").exists() && !place.path("plimsoll-runs").exists());
}

#[test]
fn whoever_waits_for_what_is_under_way_is_told_so() {
    let place = Place::new();
    let stalled = "sim:service=1ms,stall=800ms:60s";
    let words = ["io", "run", "--path", stalled, "--pattern=randread", "--depth=2", "--duration=1s", "--warmup=0s"];
    let mut child = place.plimsoll(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let said = stderr.find(|line| line.contains("waiting for 2 requests since ")).expect("it says so");
    assert!(said.contains("30.0 s at most (--drain); Ctrl-C ends the wait"), "{said}");
    signal(&child, "-INT");
    stderr.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
