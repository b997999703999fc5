//! Servers that stop answering before the window ends: what they owe then is in the record with its age, and the answer is no.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::manners::wait_for_counted;
use crate::mysql::server_process;
use crate::net::{Served, TOKEN};
use crate::place::{Answer, Place};
use crate::servers::{signal, wait_until};
use sql::mysql::test_server::is_installed;

/// So long a server is away: past the end of the window, and not so long that its sessions are given up.
const AWAY: Duration = Duration::from_millis(2_500);
/// Nothing but a server that is away takes so long, and one operation of a million is too many.
const LIMIT: &str = "--limit=response:p99.9999=500ms";

/// The longest time of what was under way when the window of a run closed, and how much that was; zeros where nothing was.
fn owed(run: &Value) -> (u64, f64) {
    let kinds = run["steps"][0]["outstanding"].as_array().cloned().unwrap_or_default();
    let count = |histogram: &Value| histogram["count"].as_u64().unwrap_or(0);
    let all =
        kinds.iter().map(|kind| count(&kind["response"]) + count(&kind["unended"]) + kind["errors"].as_u64().unwrap());
    let longest = kinds.iter().flat_map(|kind| [&kind["response"]["max_ns"], &kind["unended"]["max_ns"]]);
    (all.sum(), longest.filter_map(Value::as_f64).fold(0.0, f64::max) / 1e9)
}

/// Runs a load whose server is away from shortly before the end of the window until after it. `words` end where its length in seconds
/// follows.
///
/// Where a machine is so busy that the server is stopped late, another and longer run is tried, in which all `sessions` were at work.
fn run_without_an_end(
    place: &Place,
    words: &[&str],
    length: &str,
    sessions: u64,
    server: &dyn Fn() -> Option<u32>,
) -> Answer {
    // On a busy machine a short window may have ended before the server is stopped, and a private server with it.
    let run = |seconds: u64| {
        let length = format!("{length}{seconds}");
        let words = [words, &[&length, LIMIT, "--quiet", "--json"]].concat();
        let mut command = place.plimsoll(&words);
        command.env("PLIMSOLL_NET_TOKEN", TOKEN).stdout(Stdio::piped()).stderr(Stdio::piped());
        let before = place.runs().len();
        let load = command.spawn().unwrap();
        wait_until("a run is kept", || place.runs().len() > before);
        wait_for_counted(place, "operations");
        // Longer ones leave room for a machine that begins late.
        let earlier = Duration::from_secs(match seconds {
            4 => 0,
            9 => 3,
            _ => 6,
        });
        std::thread::sleep(Duration::from_secs(seconds - 2) - Duration::from_millis(300) - earlier);
        if let Some(server) = server() {
            signal(server, "STOP");
            std::thread::sleep(AWAY + earlier);
            signal(server, "CONT");
        }
        Answer::from(load.wait_with_output().unwrap())
    };
    let is_owing = |answer: &Answer| {
        let (count, longest_s) = owed(&answer.json()["run"]);
        count == sessions && longest_s > 0.5
    };
    [4, 9, 20].into_iter().map(run).find(is_owing).unwrap_or_else(|| run(20))
}

/// Checks that so many operations were owed, with their age, and that the limit was missed by them.
fn is_owed(answer: &Answer, sessions: u64) {
    let document = answer.json();
    // Where other programs leave no processor, a missed limit has no verdict.
    assert!(answer.code == Some(1) || (answer.code == Some(2) && answer.stdout.contains(r#""crowded""#)), "{answer}");
    let (count, longest_s) = owed(&document["run"]);
    assert_eq!(count, sessions, "{}", document["run"]["steps"][0]["outstanding"]);
    assert!((0.5..10.0).contains(&longest_s), "{longest_s} s");
    assert_eq!(document["run"]["outcome"], "completed", "a server that comes back does not fail the run");
}

/// A place for a private server; `None`, with a word about it, where none is installed.
fn place() -> Option<(Place, String)> {
    if !is_installed() {
        return None;
    }
    let place = Place::new();
    fs::set_permissions(place.path("."), fs::Permissions::from_mode(0o755)).unwrap();
    let address = format!("my:{}", place.path("my").display());
    Some((place, address))
}

#[test]
fn statements_that_a_server_owes_at_the_end_are_counted_with_their_age() {
    let Some((place, address)) = place() else { return };
    let set_up = ["slob", "setup", "-s", "1", "SCALE=600", "SCAN_TABLE_SZ=0", "--db-cache", "16M", "--quiet"];
    place.done(&[&set_up[..], &["--target", &address]].concat());
    let load = ["slob", "run", "-t", "2", "WORK_UNIT=8", "UPDATE_PCT=20", "--warmup", "0", "--no-trace"];
    for send in ["statement", "batch"] {
        let words = [&load[..], &["--db-cache", "16M", "--send", send, "--target", &address]].concat();
        let answer = run_without_an_end(&place, &words, "RUN_TIME=", 2, &|| server_process(&place));
        is_owed(&answer, 2);
    }
}

#[test]
fn transactions_of_order_entry_that_a_server_owes_at_the_end_are_counted_with_their_age() {
    let Some((place, address)) = place() else { return };
    let set_up = ["orders", "setup", "--scale", "0.001", "--seed", "7", "--quiet", "--target", &address];
    place.done(&set_up);
    let words = ["orders", "run", "--users", "3", "--warmup", "0s", "--no-trace", "--seed=3", "--target", &address];
    let answer = run_without_an_end(&place, &words, "--duration=", 3, &|| server_process(&place));
    is_owed(&answer, 3);
}

#[test]
fn exchanges_that_a_server_owes_at_the_end_are_counted_with_their_age() {
    let place = Place::new();
    let server = Served::start(&place, &[]);
    let load = ["net", "run", "--to", &server.address, "--warmup=0s", "--pattern"];
    for (pattern, sessions) in [("ping", 1), ("bulk", 1)] {
        let words = [&load[..], &[pattern]].concat();
        let answer = run_without_an_end(&place, &words, "--duration=", sessions, &|| Some(server.child.id()));
        is_owed(&answer, sessions);
    }
}
