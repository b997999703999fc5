//! A database that stops answering before the window ends: what it owes then is in the record with its age, and the answer is no.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value as Json;

use crate::place::Answer;
use crate::responder::Generation;
use crate::whole::{PASSWORD, Site};

/// Past the end of the window, and not so long that sessions are given up.
const AWAY: Duration = Duration::from_millis(2_500);
/// Nothing but a database that is away takes so long, and one operation of a million is too many.
const LIMIT: &str = "--limit=response:p99.9999=500ms";

/// What was under way when the window of a run closed, how much of that never ended, and the longest time in seconds.
fn owed(run: &Json) -> (u64, u64, f64) {
    let step = &run["steps"][0];
    let kinds = step["outstanding"].as_array().cloned().unwrap_or_default();
    let ended = kinds.iter().map(|kind| kind["response"]["count"].as_u64().unwrap_or(0)).sum();
    let longest = kinds.iter().filter_map(|kind| kind["response"]["max_ns"].as_f64()).fold(0.0, f64::max);
    let waited = step["unended"]["waited_ns"].as_f64().unwrap_or(0.0);
    (ended, step["unended"]["sessions"].as_u64().unwrap_or(0), longest.max(waited) / 1e9)
}

/// The directories of runs.
fn kept(site: &Site) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(site.place.path("plimsoll-runs")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Runs a load on a database that is away from shortly before the end of the window until after it. `words` end where its length in
/// seconds follows.
fn run_without_an_end(site: &Site, words: &[&str], length: &str) -> Answer {
    let run = |seconds: u64| {
        let (length, address) = (format!("{length}{seconds}"), site.address());
        let words = [words, &[&length, LIMIT, "--warmup", "0", "--json", "--target", &address]].concat();
        let mut command = site.place.plimsoll(&words);
        command.env("PLIMSOLL_ORACLE_PASSWORD", PASSWORD).stdout(Stdio::piped()).stderr(Stdio::piped());
        let before = kept(site);
        let load = command.spawn().unwrap();
        let is_counted =
            |run: &PathBuf| std::fs::read_to_string(run.join("intervals.jsonl")).is_ok_and(|text| text.contains('\n'));
        site.responder
            .wait_until("a second is over", |_| kept(site).iter().any(|run| !before.contains(run) && is_counted(run)));
        // The longer one leaves room for a machine that begins late.
        let earlier = Duration::from_secs(if seconds > 4 { 3 } else { 0 });
        std::thread::sleep(Duration::from_secs(seconds - 2) - Duration::from_millis(300) - earlier);
        site.model.with(|_| std::thread::sleep(AWAY + earlier));
        Answer::from(load.wait_with_output().unwrap())
    };
    let first = run(4);
    // On a busy machine a short window may have ended before.
    if owed(&first.json()["run"]).2 > 0.5 { first } else { run(9) }
}

fn is_owed(answer: &Answer, sessions: u64) {
    let document = answer.json();
    // Where other programs leave no processor, a missed limit has no verdict.
    assert!(answer.code == Some(1) || (answer.code == Some(2) && answer.stdout.contains(r#""crowded""#)), "{answer}");
    let (ended, unended, longest_s) = owed(&document["run"]);
    assert_eq!(ended + unended, sessions, "{}", document["run"]["steps"][0]["outstanding"]);
    assert!((0.5..10.0).contains(&longest_s), "{longest_s} s");
    assert_eq!(document["run"]["outcome"], "completed", "a database that comes back does not fail the run");
}

#[test]
fn statements_that_a_database_owes_at_the_end_are_counted_with_their_age() {
    let site = Site::new(Generation::V19);
    site.set_up();
    // Batches are timed by the server, and the model has times of its own for them.
    let words = ["slob", "run", "-s", "2", "-t", "1", "WORK_UNIT=8", "--send", "statement"];
    is_owed(&run_without_an_end(&site, &words, "RUN_TIME="), 2);
}

#[test]
fn transactions_that_a_database_owes_at_the_end_are_counted_with_their_age() {
    let site = crate::orders::site();
    let words = ["orders", "run", "--users", "2", "--no-trace", "--seed=3"];
    is_owed(&run_without_an_end(&site, &words, "--duration="), 2);
}
