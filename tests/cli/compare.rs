//! `plimsoll compare`: runs of a simulated target in which it is known what differs.

use crate::place::{Answer, Place};

/// A short sweep of storage that takes `service`, made on a clock that is simulated too.
fn sweep(place: &Place, service: &str, seed: &str) -> String {
    let path = format!("sim:service={service},spread=exponential,clock=simulated,seed={seed}");
    let words = ["io", "sweep", "--path", &path, "--pattern", "randread", "--depth", "1,2", "--duration", "20s"];
    let more = ["--warmup", "1s", "--quiet", "--seed", seed];
    place.done(&[&words[..], &more].concat());
    place.runs().pop().expect("a run was just kept")
}

fn compared(place: &Place, words: &[&str]) -> Answer {
    place.run(&[&["compare"][..], words].concat())
}

#[test]
fn storage_that_is_a_tenth_slower_is_a_regression_and_the_same_storage_is_not() {
    let place = Place::new();
    let [old, again, slow] =
        [("2ms", "1"), ("2ms", "2"), ("2200us", "3")].map(|(service, seed)| sweep(&place, service, seed));

    let same = compared(&place, &[&old, &again]);
    assert_eq!(same.code, Some(0), "{same}");
    assert!(same.stdout.contains("What differs in configuration"), "{same}");
    assert!(same.stdout.contains("not how one run differs from the next"), "{same}");

    let worse = compared(&place, &[&old, &slow]);
    assert_eq!(worse.code, Some(1), "{worse}");
    assert!(worse.stdout.contains(&format!("`{slow}` is worse than `{old}`")), "{worse}");
    assert!(worse.stdout.contains("a real difference, and worse by more than 5.0 %."), "{worse}");

    let allowed = compared(&place, &[&old, &slow, "--threshold", "20%", "--full"]);
    assert_eq!(allowed.code, Some(0), "{allowed}");
    assert!(allowed.stdout.contains("a real difference, but within 20.0 %."), "{allowed}");

    let turned = compared(&place, &[&old, "--baseline", &slow]);
    assert_eq!(turned.code, Some(0), "the old one is faster than the new one: {turned}");
    assert!(turned.stdout.contains(&format!("`{old}` is better than `{slow}`")), "{turned}");

    let many = compared(&place, &[&old, &slow, &again, "--json"]);
    assert_eq!(many.code, Some(1), "{many}");
    let document = many.json();
    assert_eq!((&document["format"], &document["baseline"]), (&1.into(), &0.into()));
    assert_eq!((&document["threshold"], &document["regression"]), (&0.05.into(), &true.into()));
    assert_eq!(document["pairs"][0]["overall"], "worse");
    let figure = &document["pairs"][0]["loads"][0]["figures"][0];
    assert_eq!((&figure["figure"], &figure["evidence"]), (&"requests/s".into(), &"seconds".into()));
    assert_eq!((&figure["answer"], &figure["regression"]), (&"worse".into(), &true.into()));
    assert!(figure["low"].as_f64() < figure["change"].as_f64() && figure["change"].as_f64() < figure["high"].as_f64());
}

#[test]
fn repeats_that_are_joined_with_commas_are_the_evidence() {
    let place = Place::new();
    // The same service times with other addresses: the repeats do not scatter, so the planted tenth is found.
    let repeated = |service: &str, seeds: [&str; 3]| {
        let path = format!("sim:service={service},clock=simulated");
        let runs = seeds.map(|seed| {
            let words = ["io", "run", "--path", &path, "--pattern", "randread", "--duration", "2s", "--warmup", "0s"];
            place.done(&[&words[..], &["--quiet", "--seed", seed]].concat());
            place.runs().pop().expect("a run was just kept")
        });
        runs.join(",")
    };
    let (old, new) = (repeated("2ms", ["1", "2", "3"]), repeated("2200us", ["4", "5", "6"]));
    let worse = compared(&place, &[&old, &new, "--json"]);
    assert_eq!(worse.code, Some(1), "{worse}");
    let document = worse.json();
    assert_eq!(document["runs"][1]["ids"].as_array().map(Vec::len), Some(3));
    let figure = &document["pairs"][0]["loads"][0]["figures"][0];
    assert_eq!((&figure["evidence"], &figure["counts"]), (&"repeats".into(), &serde_json::json!([3, 3])));
    let reported = compared(&place, &[&old, &new]);
    assert!(reported.stdout.contains("They come from repeats"), "{reported}");
}

#[test]
fn runs_without_a_load_in_common_are_reported_so() {
    let place = Place::with_kept_runs();
    let answer = compared(&place, &["format-1-updates", "format-1-imported"]);
    assert_eq!(answer.code, Some(2), "a pipeline must not take it for a comparison: {answer}");
    assert!(answer.stdout.contains("have no load in common, so nothing of them was compared."), "{answer}");
    insta::assert_snapshot!(compared(&place, &["format-1-sweep", "format-1-updates"]).reported());
}

#[test]
fn what_cannot_be_compared_is_refused_with_advice() {
    let place = Place::with_kept_runs();
    let copy = |to: &str, change: fn(String) -> String| {
        let kept = std::fs::read_to_string(place.path("plimsoll-runs/format-1-sweep/run.json")).expect("a kept run");
        std::fs::create_dir_all(place.path(to)).expect("a directory can be made");
        place.write(&format!("{to}/run.json"), &change(kept));
    };
    copy("truncated", |document| document[..document.len() / 2].to_owned());
    copy("newer", |document| {
        document.replacen("\"format\":1", "\"format\":99", 1).replacen("\"format\": 1", "\"format\": 99", 1)
    });
    let reported: Vec<String> = [
        "format-1-sweep",
        "format-1-sweep no-such-run",
        "format-1-sweep format-1-sweep",
        "format-1-sweep plimsoll-runs/format-1-sweep",
        "format-1-sweep --baseline format-1-sweep",
        "format-1-sweep format-1-updates --baseline no-such-run",
        "format-1-sweep,format-1-updates format-1-imported",
        "format-1-sweep,format-1-sweep format-1-imported",
        "format-1-sweep format-1-updates,format-1-sweep",
        "format-1-sweep ,",
        "format-1-sweep ./truncated",
        "format-1-sweep ./newer",
        "format-1-sweep format-1-updates --threshold much",
        "format-1-sweep format-1-updates --threshold=-5%",
        "format-1-sweep format-1-updates --threshold 1001%",
    ]
    .iter()
    .map(|words| {
        let answer = compared(&place, &words.split(' ').collect::<Vec<_>>());
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(2), ""), "{words}\n{answer}");
        format!("$ plimsoll compare {words}\n{}", answer.stderr)
    })
    .collect();
    insta::assert_snapshot!(reported.join("\n"));
}

#[test]
fn runs_of_two_machines_that_were_given_one_id_are_two_runs() {
    let place = Place::with_kept_runs();
    std::fs::create_dir_all(place.path("other")).expect("a directory can be made");
    for file in ["run.json", "intervals.jsonl"] {
        let from = place.path("plimsoll-runs/format-1-sweep").join(file);
        std::fs::copy(from, place.path("other").join(file)).expect("a file can be copied");
    }
    let answer = compared(&place, &["format-1-sweep", "other"]);
    assert_eq!(answer.code, Some(0), "{answer}");
    assert!(answer.stdout.contains("`format-1-sweep (2)` against `format-1-sweep (1)`"), "{answer}");
    let twice = compared(&place, &["format-1-sweep", "plimsoll-runs/format-1-sweep/run.json"]);
    assert!(twice.code == Some(2) && twice.stderr.contains("is named twice"), "{twice}");
    place.done(&["report", "format-1-sweep", "other", "--csv", "figures", "-o", "both.html"]);
    assert!(place.path("figures/format-1-sweep/steps.csv").is_file());
    assert!(place.path("figures/other/steps.csv").is_file());
}
