//! `plimsoll io sweep --together`: whether volumes share a limit.

use std::io::BufRead;
use std::process::Stdio;

use crate::errors::refused;
use crate::manners::{signal, wait_for};
use crate::place::{Answer, Place};

/// Two volumes of 1,500 requests/s each, and what else is planted, in simulated time.
fn sweep(place: &Place, planted: &str, more: &[&str]) -> Answer {
    let path = format!("sim:volumes=2,iops_cap=1500,{planted}clock=simulated");
    let words = ["io", "sweep", "--together", "--pattern=randread", "--depth=1,16", "--duration=5", "--warmup=1"];
    let rest = ["--quiet", "--path", &path];
    place.run(&words.into_iter().chain(rest).chain(more.iter().copied()).collect::<Vec<_>>())
}

#[test]
fn a_planted_limit_of_both_volumes_is_found_and_none_where_none_is() {
    let place = Place::new();
    let shared = sweep(&place, "machine_iops_cap=2000,", &[]);
    assert_eq!(shared.code, Some(0), "{shared}");
    let one_line = |answer: &Answer| answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let reported = one_line(&shared);
    let answer = reported.split(" NEXT ").next().unwrap_or_default();
    assert!(
        answer.contains("of VOLUMES=A+B (SIMULATED) LIMITED A and B share a limit of 2,000 requests/s"),
        "{shared}"
    );
    for part in [
        "A and B share a limit of 2,000 requests/s, of the machine, or of what lies between it and them",
        "together they sustain 66.7 % (+/- 0.",
        "of the sum of each alone, 3,000 requests/s (A 1,500, B 1,500), with 16 outstanding on each",
        "Volumes alone and together (requests/s, from medians of undisturbed seconds)",
    ] {
        assert!(reported.contains(part), "{part}\n{shared}");
    }
    let own = sweep(&place, "", &[]);
    assert!(one_line(&own).contains("A and B share no limit up to 3,000 requests/s"), "{own}");
    let large = sweep(&place, "machine_mbps_cap=200,", &["--block-size=1M"]);
    assert!(one_line(&large).contains("A and B share a limit of 200 MB/s"), "{large}");

    let runs = place.runs();
    let again = place.done(&["report", &runs[0]]);
    assert!(one_line(&again).contains("A and B share a limit of 2,000 requests/s"), "{again}");
    place.done(&["report", &runs[0], "-o", "page.html"]);
    let page = std::fs::read_to_string(place.path("page.html")).expect("the page is there");
    assert!(page.contains("A and B share a limit of 2,000 requests/s") && page.contains("Volumes alone and together"));
}

#[test]
fn a_document_has_every_step_with_its_volumes() {
    let place = Place::new();
    let answer = sweep(&place, "", &["--json", "--rounds=1"]);
    let run = answer.json();
    let run = run.get("run").unwrap_or(&run);
    let steps = run["steps"].as_array().expect("steps");
    let volumes: Vec<_> = steps.iter().map(|step| step["parameters"]["VOLUMES"].as_str().unwrap_or_default()).collect();
    assert_eq!(volumes, ["A", "B", "A+B", "A", "B", "A+B"]);
    assert_eq!(
        (steps[5]["load"]["sessions"].as_u64(), steps[5]["parameters"]["DEPTH"].as_str()),
        (Some(32), Some("16"))
    );
}

#[test]
fn a_dry_run_lists_what_would_be_loaded() {
    let place = Place::new();
    let answer = sweep(&place, "", &["--dry-run", "--seed=7", "--size=1G"]);
    insta::assert_snapshot!(answer.reported());
    assert!(!place.path("plimsoll-runs").exists());
}

#[test]
fn what_cannot_be_compared_is_refused_with_advice() {
    let place = Place::on_disk();
    let reported: Vec<String> = [
        "--path one --size 1M --depth 8",
        "--path one --path two --size 1M --depth 8 --mirror",
        "--path one --path two --size 1M --depth 8 --stripe 1M",
        "--path one --path two --size 1M --rate 100",
        "--path one --path two --size 1M --depth 8 --verify",
        "--path one --path two --size 1M --depth 8 --rounds 0",
        "--path sim: --depth 8",
        "--path sim:volumes=2 --depth 4000",
    ]
    .iter()
    .map(|words| {
        let words: Vec<&str> = "io sweep --together --pattern randread".split(' ').chain(words.split(' ')).collect();
        refused(&place, &words)
    })
    .collect();
    insta::assert_snapshot!(reported.join("\n"));
    let alone = place.run(&["io", "sweep", "--path", "one", "--pattern", "randread", "--depth", "8", "--rounds", "2"]);
    assert!(alone.code == Some(2) && alone.stderr.contains("--together"), "{alone}");
    // The device differs from machine to machine.
    let words = "io sweep --together --pattern randread --path one --path two --size 1M --depth 8";
    let one_disk = place.run(&words.split(' ').collect::<Vec<_>>());
    assert_eq!(one_disk.code, Some(2), "{one_disk}");
    assert!(one_disk.stderr.contains("error: `one` and `two` lie on one device ("), "{one_disk}");
    assert!(one_disk.stderr.contains("hint: name paths on devices of their own"), "{one_disk}");
    assert!(!place.path("one").exists() && !place.path("plimsoll-runs").exists());
}

#[test]
fn one_that_is_ended_early_says_what_it_does_not_know() {
    let place = Place::new();
    let words =
        "io sweep --together --path sim:volumes=2,iops_cap=1500 --pattern randread --depth 16 --duration 60 --warmup 0";
    let mut command = place.plimsoll(&words.split(' ').collect::<Vec<_>>());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program can be started");
    let stderr = wait_for(&mut child, "step 1 of 6, d16_A_1");
    let mut lines = stderr.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.trim_start().starts_with("1 s ")), "no line reports on the first second");
    crate::manners::wait_for_intervals(&place, 2);
    signal(&child, "-INT");
    lines.for_each(drop);
    let answer = Answer::from(child.wait_with_output().expect("it ends"));
    assert_eq!(answer.code, Some(130), "{answer}");
    let reported = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let partial = "Whether A and B share a limit is unknown: the run ended before each alone and all together";
    assert!(reported.contains(partial), "{answer}");
}
