//! Runs and names that were made to hurt whoever looks at them.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use crate::place::Place;

const RUN: &str = "plimsoll-runs/format-1-sweep";

/// What a terminal obeys, what turns text, what ends a line and begins a message, and what a spreadsheet takes for a formula.
const HOSTILE: &str = "=cmd|' /C calc'!A0\x1b]0;pwn\x07\x1b[31m\u{9b}2J\u{202e}RTL\u{2066}\nerror: all is lost\r\x08";

/// A run with that in every text that commands show.
fn hostile(place: &Place) {
    let path = place.path(RUN).join("run.json");
    let mut run: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for text in ["name", "notes", "tags", "parameters", "command"] {
        run[text] = match &run[text] {
            serde_json::Value::Array(_) => serde_json::json!([HOSTILE]),
            serde_json::Value::Object(_) => serde_json::json!({ HOSTILE: HOSTILE, "vm": HOSTILE }),
            _ => HOSTILE.into(),
        };
    }
    run["target"]["address"] = HOSTILE.into();
    run["outcome"] = serde_json::json!({ "failed": { "error": HOSTILE } });
    run["environment"]["hostname"] = HOSTILE.into();
    for step in run["steps"].as_array_mut().unwrap() {
        step["label"] = HOSTILE.into();
        step["waits"][0]["event"] = HOSTILE.into();
        step["operations"][0]["kind"] = HOSTILE.into();
    }
    std::fs::write(&path, run.to_string()).unwrap();
}

/// Of a file: a line end in a quoted cell is a part of it.
#[track_caller]
fn assert_nothing_acts(text: &str) {
    let acts = |c: char| (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{2069}').contains(&c);
    if let Some(at) = text.find(acts) {
        panic!("{:?} acts on a terminal: {text:?}", text[at..].chars().next());
    }
}

#[track_caller]
fn assert_harmless(text: &str) {
    assert_nothing_acts(text);
    assert!(!text.lines().any(|line| line.starts_with("error: all")), "a name forged a message: {text}");
}

#[test]
fn no_text_of_a_run_acts_on_a_terminal() {
    let place = Place::with_kept_runs();
    hostile(&place);
    for words in [
        &["runs", "list"][..],
        &["runs", "list", "--json"],
        &["runs", "show", RUN],
        &["runs", "show", RUN, "--json"],
        &["report", RUN],
        &["report", RUN, "--full"],
        &["report", RUN, "--json"],
        &["report", RUN, "-o", "-"],
        &["table", RUN],
        &["table", RUN, "--format", "csv"],
        &["table", RUN, "--format", "json"],
        &["compare", RUN, "plimsoll-runs/format-1-updates"],
    ] {
        let answer = place.run(words);
        assert!(answer.code.is_some_and(|code| code < 3), "{words:?}: {answer}");
        assert!(!answer.stdout.is_empty(), "{words:?}: {answer}");
        // Pages and tables for programs are files.
        if words.contains(&"csv") || words.contains(&"-") {
            assert_nothing_acts(&answer.stdout);
        } else {
            assert_harmless(&answer.stdout);
        }
        assert_harmless(&answer.stderr);
    }
    // To a program it is the same text.
    assert_eq!(place.run(&["runs", "show", RUN, "--json"]).json()["name"], HOSTILE);
    let missing = place.run(&["report", HOSTILE]);
    assert_eq!(missing.code, Some(2), "{missing}");
    assert!(missing.stderr.contains("[U+001B]]0;pwn[U+0007]") && missing.stderr.contains("[U+202E]"), "{missing}");
    assert_harmless(&missing.stderr);
    let unknown = place.run(&["report", "--no-such-flag\x1b[2J"]);
    assert_eq!(unknown.code, Some(2), "{unknown}");
    assert_harmless(&unknown.stderr);
}

#[test]
fn no_cell_of_a_file_is_a_formula() {
    let place = Place::with_kept_runs();
    hostile(&place);
    place.run(&["report", RUN, "--csv", "tables"]);
    place.run(&["export", RUN, "--format", "csv", "-o", "exported"]);
    let mut cells = 0;
    for folder in ["tables", "exported"] {
        for entry in std::fs::read_dir(place.path(folder)).into_iter().flatten() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            assert_nothing_acts(&text);
            // The hostile text has no comma, so that cells can be told without a parser.
            for cell in text.split([',', '\n']).map(|cell| cell.trim_matches('"')) {
                assert!(!cell.trim_start().starts_with(['=', '@']), "{folder}: {cell}");
                cells += usize::from(cell.starts_with("'=cmd"));
            }
        }
    }
    assert!(cells > 0, "the hostile text is in the tables");
}

#[test]
fn pipes_and_endless_files_in_a_run_end_no_command() {
    let place = Place::with_kept_runs();
    let intervals = place.path(RUN).join("intervals.jsonl");
    for (make, what) in [
        (&(|| assert!(Command::new("mkfifo").arg(&intervals).status().unwrap().success())) as &dyn Fn(), "a pipe"),
        (&|| symlink("/dev/zero", &intervals).unwrap(), "a symbolic link"),
    ] {
        let _ = std::fs::remove_file(&intervals);
        make();
        for words in [&["report", RUN][..], &["runs", "show", RUN], &["compare", RUN, "plimsoll-runs/format-1-updates"]]
        {
            let answer = place.run(words);
            assert_eq!(answer.code, Some(2), "{words:?}: {answer}");
            assert!(answer.stderr.contains(&format!("intervals.jsonl`: it is {what}, not a plain file")), "{answer}");
        }
        let listed = place.run(&["runs", "list"]);
        assert!(listed.code == Some(0) && listed.stdout.contains("format-1-sweep"), "{listed}");
    }
}

#[test]
fn files_that_a_command_is_given_end_no_command() {
    let place = Place::new();
    let pipe = place.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for words in [
        &["slob", "run", "--target", "sim:", "--conf", "pipe"][..],
        &["experiment", "run", "pipe"],
        &["platforms", "list", "--platforms-file", "pipe"],
    ] {
        let answer = place.run(words);
        assert_eq!(answer.code, Some(2), "{words:?}: {answer}");
    }
    let mut child = place.plimsoll(&["slob", "run", "--target", "sim:", "--conf", "/dev/stdin", "--dry-run"]);
    child.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = child.spawn().unwrap();
    let mut typed = child.stdin.take().unwrap();
    // The program waits for what is typed.
    std::thread::sleep(Duration::from_millis(300));
    std::io::Write::write_all(&mut typed, b"UPDATE_PCT=17\n").unwrap();
    drop(typed);
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success() && String::from_utf8_lossy(&out.stdout).contains("17"), "{out:?}");
}

/// A document whose every time in nanoseconds is replaced by `ns`.
fn with_every_time(document: &mut serde_json::Value, ns: u64) {
    match document {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    serde_json::Value::Number(_) if name.ends_with("_ns") => *value = ns.into(),
                    _ => with_every_time(value, ns),
                }
            }
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(|value| with_every_time(value, ns)),
        _ => {}
    }
}

/// In a release build a sum that overflowed would be a wrong figure; this build panics.
#[test]
fn times_that_no_sum_holds_end_nothing() {
    let place = Place::with_kept_runs();
    for kept in ["format-1-updates", "format-1-sweep", "format-1-imported"] {
        let path = place.path("plimsoll-runs").join(kept).join("run.json");
        let mut document = serde_json::from_slice(&std::fs::read(&path).expect("a kept run")).expect("a kept run");
        with_every_time(&mut document, u64::MAX);
        std::fs::write(&path, document.to_string()).expect("a file can be written");
        let history = ["compare", "--history", kept];
        for arguments in
            [&["report", kept, "--full"][..], &["report", kept, "--json"], &["compare", kept, kept], &history]
        {
            let answer = place.run(arguments);
            assert!(matches!(answer.code, Some(0..=3)), "{arguments:?}: {answer}");
            assert!(!answer.stderr.contains("panicked"), "{arguments:?}: {answer}");
        }
    }
}
