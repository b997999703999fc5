//! Processes as parts of one experiment: their place, what they share, when they begin, and how they end.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::manners::{signal, wait_for_intervals};
use crate::place::{Answer, Place};

/// A run on simulated storage.
const SHORT: [&str; 11] = [
    "io",
    "run",
    "--path",
    "sim:service=1ms,servers=64",
    "--pattern",
    "randread",
    "--depth",
    "10",
    "--warmup",
    "0",
    "--quiet",
];

/// Variables by which a launcher says which part a process is; a tester may be below one.
const LAUNCHERS: [&str; 10] = [
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_ID",
    "SLURM_ARRAY_TASK_ID",
    "JOB_COMPLETION_INDEX",
];

fn with(place: &Place, more: &[&str], variables: &[(&str, &str)]) -> Answer {
    let mut command = place.plimsoll(&[&SHORT, more].concat());
    for name in LAUNCHERS {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    Answer::from(command.output().unwrap())
}

/// Flags, variables, and what is said against them.
type Refused<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a str);

fn seconds_from_now(seconds: f64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    format!("{:.3}", now + seconds)
}

fn kept(place: &Place) -> Value {
    place.done(&["runs", "show", "last", "--json"]).json()
}

#[test]
fn a_plan_says_which_part_it_is_and_by_whom() {
    let place = Place::new();
    let planned = |more: &[&str], variables: &[(&str, &str)]| {
        let answer = with(&place, &[more, &["--dry-run"]].concat(), variables);
        assert_eq!(answer.code, Some(0), "{answer}");
        answer.stdout
    };
    let one = planned(&["--part", "1/4"], &[]);
    assert!(one.contains("\npart       1 of 4, counted from 0; by --part\n"), "{one}");
    assert!(one.contains("d10: sessions 2 to 4 of 10\n"), "{one}");
    assert!(one.contains("the seed comes from the configuration"), "{one}");
    let mpi = [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4"), ("SLURM_PROCID", "0")];
    let three = planned(&["--part", "auto"], &mpi);
    assert!(three.contains("\npart       3 of 4, counted from 0; by OMPI_COMM_WORLD_RANK\n"), "{three}");
    let line = |plan: &str, key: &str| plan.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    for key in ["seed ", "digest "] {
        assert_eq!(line(&one, key), line(&three, key), "all parts find the same");
    }
    let pod = planned(&["--part", "auto/4", "--seed", "9"], &[("JOB_COMPLETION_INDEX", "2")]);
    assert!(pod.contains("by JOB_COMPLETION_INDEX\n") && !pod.contains("the seed comes"), "{pod}");
    assert_ne!(line(&pod, "digest "), line(&one, "digest "), "another seed is another experiment");
    let start = planned(&["--part", "0/2", "--start-at", &seconds_from_now(600.0)], &[]);
    assert!(start.contains(" d10: sessions 0 to 4 of 10, begins 20") && start.contains("\nclock      "), "{start}");
}

#[test]
fn what_is_no_part_and_no_start_is_refused_with_advice() {
    let place = Place::new();
    let cases: &[Refused<'_>] = &[
        (&["--part", "4/4"], &[], "there is no part 4 of 4"),
        (&["--part", "3"], &[], "`3` does not say of how many parts"),
        (&["--part", "auto"], &[], "nothing says which part this process is"),
        (&["--part", "auto"], &[("JOB_COMPLETION_INDEX", "1")], "nothing says of how many"),
        (&["--part", "auto/3"], &[("PMI_RANK", "1"), ("PMI_SIZE", "2")], "`PMI_SIZE` says that there are 2 parts"),
        (&["--hosts", "one,two"], &[], "is none of `--hosts one,two`"),
        (&["--part", "0/11"], &[], "d10 has 10 at once, which is less than one for each of 11 threads"),
        (&["--start-at", "+60s"], &[], "counts from now"),
        (&["--start-at", "60"], &[], "a number is seconds since 1970"),
        (&["--start-at", "2026-11-24T03:00:00"], &[], "has no time zone"),
        (&["--start-at", &seconds_from_now(-5.0)], &[], "this part is too late"),
        (&["--step-gap", "5"], &[], "--start-at"),
    ];
    for (more, variables, why) in cases {
        let answer = with(&place, more, variables);
        assert_eq!(answer.code, Some(2), "{more:?}: {answer}");
        assert!(answer.stderr.contains(why), "{more:?}: {answer}");
        assert!(why.starts_with("--") || answer.stderr.contains("hint: "), "{more:?}: {answer}");
    }
    let load = |words: &str| place.run(&words.split(' ').collect::<Vec<_>>());
    for (words, why) in [
        ("io sweep --path sim: --pattern randread --rate 1000..9000 --part 0/2", "a search for the load line"),
        ("slob run -s 4 --target sim: WORK_LOOP=100 --part 0/2", "a load that ends when its work is done"),
        ("slob run -s 1 --target sim: --part 0/2", "has 1 at once"),
        ("io run --path sim:clock=simulated --pattern randread --start-at 4000000000", "days ahead"),
    ] {
        let answer = load(words);
        assert_eq!(answer.code, Some(2), "{words}: {answer}");
        assert!(answer.stderr.contains(why) && answer.stderr.contains("hint: "), "{words}: {answer}");
    }
    let simulated = ["slob", "run", "--target", "sim:clock=simulated", "--start-at", &seconds_from_now(60.0)];
    let answer = place.run(&simulated);
    assert!(answer.code == Some(2) && answer.stderr.contains("time is only simulated here"), "{answer}");
}

#[test]
fn parts_keep_their_own_share_and_one_configuration() {
    let place = Place::new();
    let mut parts = Vec::new();
    for number in 0..3 {
        let part = format!("{number}/3");
        let line = [
            "slob",
            "run",
            "-s",
            "5",
            "--rate",
            "3000",
            "--target",
            "sim:clock=simulated,service=100us,servers=9",
            "RUN_TIME=4",
            "--quiet",
            "--tag",
            &format!("host=h{number}"),
            "--part",
            &part,
        ];
        place.done(&line);
        parts.push(kept(&place));
    }
    let of = |run: &Value, pointer: &str| run.pointer(pointer).unwrap().clone();
    let sum = |pointer: &str| parts.iter().map(|run| of(run, pointer).as_f64().unwrap()).sum::<f64>();
    assert_eq!(sum("/steps/0/load/sessions"), 5.0);
    assert_eq!(sum("/steps/0/load/rate_operations_per_s"), 3_000.0);
    for (number, run) in parts.iter().enumerate() {
        let part = of(run, "/part");
        assert_eq!((part["number"].as_u64(), part["parts"].as_u64()), (Some(number as u64), Some(3)));
        assert_eq!(part["source"], "--part");
        assert_eq!((&run["seed"], &part["configuration"]), (&parts[0]["seed"], &parts[0]["part"]["configuration"]));
        assert_eq!(of(run, "/steps/0/label"), parts[0]["steps"][0]["label"]);
        let notes = run["notes"].to_string();
        assert!(notes.contains("no start was agreed on"), "{notes}");
    }
}

#[test]
fn parts_begin_together_and_say_how_exactly() {
    let place = Place::new();
    let start = seconds_from_now(20.0);
    let children: Vec<_> = (0..2)
        .map(|number| {
            let part = format!("{number}/2");
            let runs = format!("runs{number}");
            let more = ["--duration", "1", "--part", &part, "--start-at", &start, "--runs", &runs];
            let mut command = place.plimsoll(&[&SHORT[..], &more].concat());
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for (number, child) in children.into_iter().enumerate() {
        let answer = Answer::from(child.wait_with_output().unwrap());
        let (code, runs) = (answer.code, format!("runs{number}"));
        assert!(matches!(code, Some(0 | 2)), "{answer}");
        if code == Some(2) && !place.path(&runs).exists() {
            assert!(answer.stderr.contains("this part is too late"), "{answer}");
            continue;
        }
        let run = place.done(&["runs", "show", "last", "--json", "--runs", &runs]).json();
        let started = run["part"]["start_at_ns"].as_u64().unwrap() as f64 / 1e9;
        assert!((started - start.parse::<f64>().unwrap()).abs() < 0.001, "{started} is not {start}");
        // A busy machine may be late: it then says so.
        match (code, run["part"]["start_error_ns"].as_i64()) {
            (Some(0), Some(late_ns)) => assert!(late_ns >= 0),
            (Some(2), _) => assert!(run["outcome"].to_string().contains("was not ready until"), "{run}"),
            other => panic!("{other:?}: {run}"),
        }
        assert!(run["notes"].to_string().contains("this host's clock"), "{}", run["notes"]);
    }
}

#[test]
fn a_sweep_takes_its_steps_at_their_times() {
    let place = Place::new();
    let start = seconds_from_now(20.0);
    let line = [
        "io",
        "sweep",
        "--path",
        "sim:",
        "--pattern",
        "randread",
        "--depth",
        "2,4",
        "--warmup",
        "0",
        "--duration",
        "1",
        "--start-at",
        &start,
        "--step-gap",
        "2",
        "--quiet",
    ];
    let answer = place.run(&line);
    if answer.code == Some(2) {
        // A machine that is too busy says which step it has missed.
        let says = if place.runs().is_empty() { "this part is too late" } else { "was not ready until" };
        assert!(answer.stderr.contains(says), "{answer}");
        return;
    }
    let run = kept(&place);
    let began = |step: usize| run["steps"][step]["window"]["offset_ns"].as_u64().unwrap();
    let apart_ns = began(1) - began(0);
    assert!(apart_ns.abs_diff(3_000_000_000) < 400_000_000, "a window and a gap: {apart_ns}");
    assert!(run["part"].is_null(), "nobody said that there are parts");
}

#[test]
fn a_part_that_is_ended_has_its_run_on_disk_within_a_second_and_exit_code_0() {
    let place = Place::new();
    let more = ["--duration", "600", "--part", "0/2", "--limit", "p99=1ns"];
    let mut child = place.plimsoll(&[&SHORT[..], &more].concat()).stdout(Stdio::null()).spawn().unwrap();
    wait_for_intervals(&place, 2);
    let asked = Instant::now();
    signal(&child, "-TERM");
    let code = child.wait().unwrap().code();
    // A second on a machine that is not busy, and never the rest of ten minutes.
    assert!(asked.elapsed() < Duration::from_secs(60), "{:?}", asked.elapsed());
    assert_eq!(code, Some(0), "limits are for the merge to judge");
    let run = kept(&place);
    assert_eq!(run["outcome"], "interrupted");
    assert!(run["steps"][0]["window"]["duration_ns"].as_u64().unwrap() > 0);
}

#[test]
fn a_part_that_does_not_keep_its_limit_is_done_all_the_same() {
    let place = Place::new();
    let alone = with(&place, &["--duration", "1", "--limit", "p99=1ns"], &[]);
    // On a busy machine it may be no verdict.
    assert!(matches!(alone.code, Some(1 | 2)), "{alone}");
    let part = with(&place, &["--duration", "1", "--limit", "p99=1ns", "--part", "0/2"], &[]);
    assert_eq!(part.code, Some(0), "{part}");
    assert!(part.stderr.contains("the limit"), "{part}");
}
