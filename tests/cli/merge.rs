//! `plimsoll merge`: parts of a fleet become one run.

use serde_json::{Value, json};

use crate::place::{Answer, Place};

/// Storage in simulated time, so that minutes take no time.
const TARGET: &str = "sim:service=300us,servers=32,clock=simulated";

/// Changes the document of the run in a directory.
fn change(place: &Place, run: &str, change: impl FnOnce(&mut Value)) {
    let name = format!("{run}/run.json");
    let text = std::fs::read_to_string(place.path(&name)).expect("a run is there");
    let mut document = serde_json::from_str(&text).expect("a run is JSON");
    change(&mut document);
    place.write(&name, &document.to_string());
}

/// Makes the parts of one experiment, each in a store of its own host, begun at the same instant.
fn parts(place: &Place, number: usize) -> Vec<String> {
    let make = |part: usize| {
        let (place_of, store) = (format!("{part}/{number}"), format!("host{part}"));
        let words = ["io", "sweep", "--path", TARGET, "--pattern", "randread", "--depth", "4,8", "--duration", "20s"];
        let words = words.iter().copied().chain(["--seed", "7", "--part", &place_of, "--runs", &store, "--quiet"]);
        let answer = place.run(&words.collect::<Vec<_>>());
        assert_eq!(answer.code, Some(0), "{answer}");
        let run = std::fs::read_dir(place.path(&store)).expect("a store").next().expect("a run").expect("a run");
        let run = format!("{store}/{}", run.file_name().to_string_lossy());
        change(place, &run, |document| {
            document["started_at"] = json!("2026-11-20T10:30:00Z");
            document["environment"]["hostname"] = json!(store);
        });
        run
    };
    (0..number).map(make).collect()
}

fn operations(answer: &Value, step: usize) -> u64 {
    answer["run"]["steps"][step]["counters"]["operations"].as_u64().expect("operations are counted")
}

fn merge(place: &Place, words: &[&str]) -> Answer {
    place.run(&[&["merge"], words].concat())
}

#[test]
fn parts_become_one_run_that_all_commands_take() {
    let place = Place::new();
    let parts = parts(&place, 2);
    let planned = merge(&place, &["host0", "host1", "--dry-run", "-o", "planned"]);
    assert!(parts.iter().all(|part| planned.stdout.contains(&format!("part       {part}\n"))), "{planned}");
    assert!(planned.code == Some(0) && !place.path("planned").exists(), "{planned}");
    let answer = merge(&place, &["host0", "host1", "--json"]);
    assert_eq!(answer.code, Some(0), "{answer}");
    let merged = answer.json();
    let of_part = |part: &str, step: usize| {
        let text = std::fs::read_to_string(place.path(&format!("{part}/run.json"))).expect("a run");
        let run: Value = serde_json::from_str(&text).expect("a document");
        run["steps"][step]["counters"]["operations"].as_u64().expect("operations")
    };
    for step in 0..2 {
        let sum: u64 = parts.iter().map(|part| of_part(part, step)).sum();
        assert_eq!(operations(&merged, step), sum);
        assert_eq!(merged["run"]["merged"]["steps"][step]["windows"], "whole");
    }
    assert_eq!(merged["run"]["steps"][1]["load"]["sessions"], 8);
    assert_eq!(merged["run"]["parts"].as_array().map(Vec::len), Some(2));

    let id = merged["run"]["id"].as_str().expect("an id");
    let report = place.done(&["report", id]);
    assert!(report.stdout.contains("2 of 2 on 2 hosts") && report.stdout.contains("host1"), "{report}");
    let page = place.path("page.html");
    place.done(&["report", id, "-o", &page.display().to_string()]);
    assert!(std::fs::read_to_string(page).expect("a page").contains("Parts, each over its own window"));
    let judged = place.run(&["report", id, "--limit", "p99=1us"]);
    assert_eq!(judged.code, Some(1), "the load line is judged: {judged}");
    assert_eq!(merge(&place, &["host0", "host1", "-o", "again", "--limit", "p99=1us"]).code, Some(1));
    place.done(&["compare", id, "again"]);
    place.done(&["table", id]);
    place.done(&["trend", id, "./again"]);
    place.done(&["runs", "show", id]);
    place.done(&["report", id, "--csv", "figures"]);
}

#[test]
fn what_is_missing_is_refused_by_name_or_stands_before_the_answer() {
    let place = Place::new();
    parts(&place, 3);
    let answer = merge(&place, &["host0", "host2"]);
    assert_eq!(answer.code, Some(2), "{answer}");
    assert!(answer.stderr.contains("of 3 parts one is missing: 1") && answer.stderr.contains("--partial"), "{answer}");
    let answer = merge(&place, &["host0", "host2", "--partial", "-o", "two"]);
    assert_eq!(answer.code, Some(0), "{answer}");
    assert!(answer.stdout.contains("By 2 of 3 parts, with 33.3 % of the load missing"), "{answer}");
    let left = std::fs::read_dir(place.path(".")).expect("a directory");
    let hidden = left.filter_map(Result::ok).filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0, "nothing half-written is left");
}

#[test]
fn what_does_not_belong_together_is_refused_with_advice_and_marked_by_force() {
    let place = Place::new();
    let parts = parts(&place, 2);
    change(&place, &parts[1], |document| document["seed"] = json!(8));
    let answer = merge(&place, &["host0", "host1"]);
    assert_eq!(answer.code, Some(2), "{answer}");
    assert!(
        answer.stderr.contains("seed is `7` in one and `8` in the other") && answer.stderr.contains("--force"),
        "{answer}"
    );
    let forced = merge(&place, &["host0", "host1", "--force", "--json"]);
    assert_eq!(forced.json()["run"]["merged"]["forced"].as_array().map(Vec::len), Some(1), "{forced}");
    let (message, hint) = (merge(&place, &["nowhere"]), merge(&place, &["host0", "host1", "-o", "host0"]));
    assert_eq!((message.code, hint.code), (Some(2), Some(2)));
    assert!(hint.stderr.contains("is there already"), "{hint}");
    let whole = place.run(&["io", "run", "--path", TARGET, "--pattern", "randread", "--duration", "5s", "--quiet"]);
    assert_eq!(whole.code, Some(0), "{whole}");
    let answer = merge(&place, &["last"]);
    assert!(answer.stderr.contains("is not a part of a fleet"), "{answer}");
    assert!(merge(&place, &["plimsoll-runs"]).stderr.contains("holds no part"), "{answer}");
}
