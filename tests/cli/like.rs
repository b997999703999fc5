//! `--like`: a load that is made like what a run reports of a database.

use model::record::Load;
use plimsoll::record::Workload;
use std::collections::BTreeMap;

use plimsoll::record::store::Store;
use plimsoll::record::{
    Clock, Counters, Environment, FORMAT, Imported, Outcome, Run, Step, Target, TargetKind, Timestamp, Tool,
};
use serde_json::Value;

use crate::place::Place;

const STORAGE: &str = "sim:service=200us,servers=16,iops_cap=8000,clock=simulated";

/// A store with the reports of two hours of a database, the second of which is the busier one.
fn reports(place: &Place) {
    for (hour, reads, commits) in [(9, 500, 10), (10, 1_000, 20)] {
        let seconds = 3_600;
        let mut step = Step::new(0, format!("snapshots {hour}"));
        step.outcome = Outcome::Completed;
        step.window.duration_ns = seconds * 1_000_000_000;
        step.counters = Counters {
            logical_reads: Some(20_000 * seconds),
            physical_reads: Some(reads * seconds),
            physical_read_bytes: Some(reads * seconds * 8_192),
            physical_writes: Some(100 * seconds),
            physical_write_bytes: Some(100 * seconds * 8_192),
            commits: Some(commits * seconds),
            redo_bytes: Some(100_000 * seconds),
            redo_writes: Some(15 * seconds),
            ..Counters::default()
        };
        let run = Run {
            format: FORMAT,
            id: format!("20261103-{hour:02}0000-awr"),
            name: "PROD".to_owned(),
            tool: Tool { name: "awr".to_owned(), version: "19".to_owned() },
            load: Load::foreign(Workload::Database),
            check: None,
            command: Vec::new(),
            started_at: Timestamp(format!("2026-11-03T{hour:02}:00:00Z").parse().expect("an instant")),
            ended_at: None,
            outcome: Outcome::Completed,
            tags: BTreeMap::new(),
            seed: None,
            parameters: BTreeMap::new(),
            target: Target { kind: Some(TargetKind::Oracle), address: "PROD/PROD1".to_owned(), ..Target::default() },
            environment: Environment::default(),
            notes: Vec::new(),
            imported: Some(Imported { files: Vec::new(), clock: Clock::Wall, not_understood: Vec::new() }),
            part: None,
            like: None,
            merged: None,
            parts: Vec::new(),
            steps: vec![step],
        };
        Store::new(place.path("plimsoll-runs")).save(&run).expect("it can be kept");
    }
}

fn figure<'a>(report: &'a Value, step: &str, name: &str) -> &'a Value {
    let rows = report["like"].as_array().unwrap_or_else(|| panic!("{report}"));
    rows.iter().find(|row| row["step"] == step && row["figure"] == name).unwrap_or_else(|| panic!("{rows:?}"))
}

#[test]
fn reads_of_a_production_are_put_on_simulated_storage_at_a_multiple() {
    let place = Place::new();
    reports(&place);
    let run = ["slob", "run", "--like", "20261103", "--times", "2", "RUN_TIME=20", "--target", STORAGE];
    let planned = place.done(&[&run[..], &["--dry-run"]].concat()).stdout;
    assert!(planned.contains("like       PROD/PROD1: the busiest of 2 windows, 2026-11-03 10:00"), "{planned}");
    assert!(planned.contains("not reproduced") && planned.contains("no buffer cache that is known"), "{planned}");
    let report = place.done(&[&run[..], &["--json", "--quiet"]].concat()).json();
    let reads = figure(&report, "x2", "reads");
    assert_eq!((&reads["production"], &reads["asked"]), (&1_000.0.into(), &2_000.0.into()));
    assert!(reads["difference_percent"].as_f64().unwrap().abs() < 3.0, "{reads}");
    assert!(figure(&report, "x2", "commits")["reached"].is_null(), "simulated storage counts none");
    assert_eq!(report["run"]["like"]["runs"].as_array().unwrap().len(), 2);
    let text = place.done(&["report", "last"]).stdout;
    assert!(text.contains("Like PROD/PROD1, the busiest of 2 windows"), "{text}");
}

#[test]
fn a_sweep_says_which_multiple_is_carried_and_what_stops_it() {
    let place = Place::new();
    reports(&place);
    let sweep = ["slob", "sweep", "--like", "20261103", "--times", "1..32", "--limit", "response:p99=10ms"];
    let swept =
        place.run(&[&sweep[..], &["RUN_TIME=60", "--seed", "1", "--target", STORAGE, "--quiet", "--json"]].concat());
    let report = swept.json();
    let opening = report["opening"].as_str().unwrap().to_owned();
    let times = opening.split("ustains ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().parse::<f64>();
    // 1,000 reads/s go eight times into the cap.
    assert!((7.0..=8.2).contains(&times.unwrap()), "{opening}");
    assert!(opening.contains(" times the peak of PROD/PROD1 ("), "{opening}");
    // One step beyond what is carried shows at which rate it ends.
    let of_reads = |row: &&Value| row["figure"] == "reads" && row["asked"].as_f64() > Some(10_000.0);
    let beyond = report["like"].as_array().unwrap().iter().find(of_reads).expect("a step beyond the least that fails");
    assert!((7_800.0..=8_200.0).contains(&beyond["reached"].as_f64().unwrap()), "{beyond}");
}

#[test]
fn a_day_is_a_step_an_hour() {
    let place = Place::new();
    reports(&place);
    let run = ["slob", "run", "--like", "20261103", "--shape", "day", "RUN_TIME=10", "--target", STORAGE];
    let report = place.done(&[&run[..], &["--json", "--quiet"]].concat()).json();
    assert_eq!(figure(&report, "h09_x1", "reads")["asked"], 500.0);
    assert_eq!(figure(&report, "h10_x1", "reads")["moment"], "10");
}

#[test]
fn requests_of_a_production_are_put_on_raw_storage() {
    let place = Place::new();
    reports(&place);
    let run = ["io", "run", "--like", "20261103", "--at", "9", "--path", STORAGE, "--duration", "20", "--warmup", "1"];
    let report = place.done(&[&run[..], &["--json", "--quiet"]].concat()).json();
    for (name, asked) in [("reads", 500.0), ("writes", 100.0), ("write_bytes", 819_200.0)] {
        let row = figure(&report, "x1", name);
        assert_eq!(row["asked"], asked);
        assert!((row["reached"].as_f64().unwrap() / asked - 1.0).abs() < 0.1, "{row}");
    }
}

/// On a page as in a terminal, from small data of the engine: what is asked for is exact, and a second says little of what is reached.
#[test]
fn the_engine_is_asked_for_every_figure() {
    let place = Place::on_disk();
    reports(&place);
    place.set_up();
    let run = ["slob", "run", "--like", "20261103-10", "--cache", "4M", "RUN_TIME=2", "--warmup", "1"];
    let report = place.done(&[&run[..], &["--json", "--quiet"]].concat()).json();
    for (name, asked) in [("reads", 1_000.0), ("writes", 100.0), ("commits", 20.0), ("redo_bytes", 1e5)] {
        let row = figure(&report, "x1", name);
        assert!((row["asked"].as_f64().unwrap() / asked - 1.0).abs() < 1e-6, "{row}");
        assert!(row["reached"].is_number(), "{row}");
    }
    place.done(&["report", "last", "-o", "like.html"]);
    let page = std::fs::read_to_string(place.path("like.html")).unwrap();
    assert!(page.contains("Like PROD/PROD1") && page.contains("redo kB/s"));
}

#[test]
fn what_a_production_decides_is_refused_beside_it_and_nothing_is_measured() {
    let place = Place::new();
    reports(&place);
    let target = ["--target", STORAGE];
    for (words, why) in [
        (&["slob", "run", "--like", "20261103", "WORK_UNIT=8"][..], "which takes what operations are from a run"),
        (&["slob", "run", "--like", "20261103", "--rate", "500"], "`--rate` beside `--like`"),
        (&["slob", "run", "--like", "20261103", "--at", "noon"], "is not a moment"),
        (&["slob", "run", "--like", "20261103", "--at", "3"], "no window of these runs lies in hour 3"),
        (&["slob", "run", "--like", "20261103", "--times", "0"], "a multiple such as"),
        (&["slob", "run", "--times", "2"], "--like"),
        (&["slob", "sweep", "--like", "20261103", "--threads", "1,2"], "multiples"),
        (&["slob", "run", "--like", "awrrpt.txt"], "awrrpt.txt"),
    ] {
        let refused = place.run(&[words, &target[..]].concat());
        assert!(refused.code == Some(2) && refused.stderr.contains(why), "{words:?}: {refused}");
    }
    let refused = place.run(&["io", "run", "--like", "20261103", "--pattern", "randread", "--path", "sim:"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("`--pattern` beside `--like`"), "{refused}");
    assert_eq!(place.runs().len(), 2);
}
