//! `plimsoll io soak` on simulated storage.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::place::Place;

/// An hour of a small volume in simulated time: the bucket lasts for twenty minutes at full rate.
const BURST: [&str; 9] = [
    "io",
    "soak",
    "--path=sim:iops_cap=10,burst=30:20m,clock=simulated",
    "--depth=4",
    "--duration=1h",
    "--warmup=0",
    "--seed=7",
    "--block-size=8K",
    "-q",
];

#[test]
fn a_credit_that_runs_out_is_found_and_shown_round_by_round() {
    let place = Place::new();
    let answer = place.done(&BURST);
    let text = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.starts_with("RESULT 10 requests/s sustained, after 30 requests/s for 20m0"), "{answer}");
    assert!(text.contains("then 10 requests/s: this looks like a burst credit of at least 24,0"), "{answer}");
    assert!(text.contains("Rounds of d4, 2m00s each, 2 rounds a line (all of them with --full)"), "{answer}");
    assert!(text.contains("d4 is steady after 2"), "{answer}");
    assert!(text.contains("at 10 requests/s (rounds of 1m00s), drifting by 0.0 % an hour"), "{answer}");

    let full = place.done(&["report", "last", "--full"]).stdout;
    let rounds = full.lines().skip_while(|line| !line.starts_with("Rounds of d4, 1m00s each")).skip(3);
    let rates: Vec<&str> = rounds.take_while(|line| !line.is_empty()).map(rate_of_line).collect();
    assert_eq!(rates.len(), 60, "{full}");
    assert_eq!((rates[0], rates[18], rates[22], rates[59]), ("30.0", "30.0", "10.0", "10.0"), "{full}");
}

/// The second column, after a first one that may have a blank within.
fn rate_of_line(line: &str) -> &str {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).nth(1).expect("each line has a rate")
}

#[test]
fn a_soak_is_one_step_of_one_second_intervals_that_names_its_round() {
    let place = Place::new();
    let sim = "--path=sim:service=5ms,servers=2,clock=simulated";
    let run =
        place.done(&["io", "soak", sim, "--rate=100", "--duration=10m", "--pattern=randwrite", "-q", "--json"]).run();
    assert_eq!((&run["load"]["kind"], &run["parameters"]["ROUND"]), (&"soak".into(), &"30s".into()));
    assert_eq!(run["steps"].as_array().map(Vec::len), Some(1));
    let kept = place.path("plimsoll-runs").join(&place.runs()[0]).join("intervals.jsonl");
    let intervals = std::fs::read_to_string(kept).expect("the intervals are kept");
    assert_eq!(intervals.lines().count(), 605, "10 minutes and the warm-up");
    let plan = place.done(&["io", "soak", sim, "--duration", "2h", "--dry-run"]).stdout;
    assert!(
        plan.contains("ROUND=60s") && plan.contains("PATTERN=randread") && plan.contains("2h00m measured"),
        "{plan}"
    );
}

#[test]
fn a_soak_too_short_for_five_rounds_is_refused() {
    let place = Place::new();
    for (words, why) in [
        (&["--duration=4"][..], "a soak of 4.00 s has fewer than 5 rounds of 1.00 s"),
        (&["--duration=4m", "--round=1m"], "a soak of 4m00s has fewer than 5 rounds of 1m00s"),
        (&["--round=0"], "a round of 0 s has nothing in it"),
    ] {
        let refused = place.run(&[&["io", "soak", "--path=sim:"][..], words].concat());
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(why) && refused.stderr.contains("hint: use "), "{refused}");
    }
    assert!(!place.path("plimsoll-runs").exists());
}

#[test]
fn an_interrupt_keeps_all_seconds_so_far() {
    let place = Place::new();
    let mut soak = place.plimsoll(&["io", "soak", "--path=sim:", "--duration=300", "--round=1", "--warmup=0"]);
    let mut soak = soak.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program can be started");
    let mut seconds = BufReader::new(soak.stderr.take().expect("it is piped")).lines();
    let first = seconds.find(|line| line.as_ref().is_ok_and(|line| line.trim_start().starts_with("1 s ")));
    assert!(first.is_some(), "it ended before a second was over");
    crate::manners::wait_for_intervals(&place, 3);
    let kill = std::process::Command::new("kill").args(["-INT", &soak.id().to_string()]).status();
    assert!(kill.is_ok_and(|status| status.success()));
    seconds.for_each(drop);
    let ended = soak.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(130));
    let report = place.done(&["report", "last", "--full"]).stdout;
    // On a busy machine another doubt may come first.
    assert!(report.starts_with("RESULT    not reliable (") && report.contains("The run was ended early"), "{report}");
    assert!(report.contains("Rounds of d32, 1.00 s each"), "{report}");
}
