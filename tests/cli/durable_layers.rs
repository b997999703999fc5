//! Commits on devices, answers of several cuts, and the command that cuts.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use test_support::loop_device::LoopDevice;

use crate::durable::place;
use crate::place::{Answer, Place};

/// Pipes a load into a witness that has these options. How the witness ended. The process of the load is in the file `pid`.
fn piped(place: &Place, load: &[&str], witness: &[&str]) -> Answer {
    let mut load = place.plimsoll(&[&["durable", "load", "--sessions", "2", "--blocks", "16"], load].concat());
    let mut load = load.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    place.write("pid", &format!("{}\n", load.id()));
    let mut command: Command = place.plimsoll(&[&["durable", "witness", "--stdin"], witness].concat());
    let ended = command.stdin(load.stdout.take().unwrap()).output().unwrap();
    load.wait().unwrap();
    Answer::from(ended)
}

/// Ends the load, as a cut would.
const END: &str = "until test -s pid; do sleep 0.1; done; kill -INT $(cat pid)";

#[test]
fn a_command_cuts_once_and_only_while_a_load_is_under_way() {
    let Some(place) = place() else { return };
    let cut = format!("echo cut >>cuts; {END}");
    let witness = ["--notes", "notes1", "--cut", &cut, "--cut-after", "0.2"];
    let ended = piped(&place, &["--target", "dir:first", "--duration", "10m"], &witness);
    assert!(ended.code == Some(0) && ended.stderr.contains("cutting: `echo cut >>cuts"), "{ended}");
    assert_eq!(std::fs::read_to_string(place.path("cuts")).unwrap(), "cut\n");

    // It ended in order before, so nothing is cut.
    let words = ["--target", "dir:second", "--duration", "0"];
    let ended = piped(&place, &words, &["--notes", "notes2", "--cut", "echo cut >>cuts", "--cut-after", "1h"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("nothing was cut: no load was under way"), "{ended}");
    assert_eq!(std::fs::read_to_string(place.path("cuts")).unwrap(), "cut\n");

    let cut = format!("{END}; exit 3");
    let witness = ["--notes", "notes3", "--cut", &cut, "--cut-after", "0.1"];
    let ended = piped(&place, &["--target", "dir:third", "--duration", "10m"], &witness);
    assert!(ended.code == Some(2) && ended.stderr.contains("ended with exit status: 3"), "{ended}");
    assert!(place.path("notes3").exists(), "what was noted is kept");

    let plan = ["durable", "witness", "--stdin", "--notes", "notes4", "--cut", "poweroff", "--dry-run"];
    let plan = place.done(&plan);
    assert!(plan.stdout.contains("`poweroff`, 10.0 s after the load begins"), "{plan}");
    let alone = place.run(&["durable", "witness", "--stdin", "--notes", "notes4", "--cut-after", "3"]);
    assert!(alone.code == Some(2) && alone.stderr.contains("--cut"), "{alone}");
}

#[test]
fn the_first_layer_that_loses_is_named_by_the_answers_of_several_cuts() {
    let Some(place) = place() else { return };
    let words = ["--target", "dir:commits", "--duration", "0"];
    piped(&place, &words, &["--notes", "notes"]);
    let words = ["durable", "verify", "--target", "dir:commits", "--notes", "notes", "--json"];
    let answer = place.run(&words).json();
    assert!(answer["verdict"] == "no_verdict" && answer["kind"] == "files" && answer["torn_writes"].is_null());
    let mut files = Vec::new();
    let mut keep = |kind: &str, target: &str, verdict: &str| {
        let mut answer = answer.clone();
        for (key, value) in [("kind", kind), ("target", target), ("verdict", verdict)] {
            answer[key] = json!(value);
        }
        answer["run"] = json!(files.len() + 1);
        let name = format!("cut{}.json", files.len() + 1);
        place.write(&name, &answer.to_string());
        files.push(name);
        files.iter().map(String::clone).collect::<Vec<_>>()
    };
    let layers = |files: &[String]| {
        let mut words = vec!["durable", "layers", "--json"];
        words.extend(files.iter().map(String::as_str));
        let ended = place.run(&words);
        let document: Value = serde_json::from_str(&ended.stdout).unwrap_or_default();
        (ended.code, document)
    };
    let one = keep("files", "dir:/u01/x", "no_verdict");
    assert_eq!(layers(&one).0, Some(2), "nothing is shown");
    for _ in 0..4 {
        keep("files", "dir:/u01/x", "lost");
    }
    let (code, document) = layers(&keep("device", "raw:/dev/sdb", "kept"));
    assert_eq!((code, &document["verdict"]), (Some(1), &json!("lost_at_or_below")));
    for _ in 0..2 {
        keep("device", "raw:/dev/sdb", "kept");
    }
    let all = keep("device", "raw:/dev/sdb", "kept");
    let (code, document) = layers(&all);
    assert_eq!((code, &document["verdict"]), (Some(1), &json!("lost_at")));
    assert_eq!(document["first_that_loses"], "dir:/u01/x");
    assert_eq!(document["layers"][0]["kept"], 4, "the device comes first: {document}");

    let twice = place.run(&["durable", "layers", &all[1], &all[1]]);
    assert!(twice.code == Some(2) && twice.stderr.contains("are of the same load"), "{twice}");
    place.write("noise", "PK\u{3}\u{4}");
    for bad in ["noise", "nothing.json", "."] {
        let refused = place.run(&["durable", "layers", &all[0], bad]);
        assert!(refused.code == Some(2) && refused.stdout.is_empty() && refused.stderr.contains(bad), "{refused}");
    }
}

#[test]
fn commits_on_a_device_want_its_name_and_leave_no_heading() {
    let place = Place::new();
    std::fs::File::create(place.path("disk")).unwrap().set_len(16 << 20).unwrap();
    let Some(disk) = LoopDevice::over(&place.path("disk")) else { return };
    let target = format!("raw:{}", disk.path().display());
    let load = ["durable", "load", "--target", &target, "--duration", "0", "--blocks", "16"];
    let refused = place.run(&load);
    assert!(refused.code == Some(2) && refused.stderr.contains(&format!("--destroy {}", disk.name())), "{refused}");
    let words = ["--target", &target, "--destroy", &disk.name(), "--duration", "0.2"];
    let ended = piped(&place, &words, &["--notes", "notes"]);
    assert_eq!(ended.code, Some(0), "{ended}");
    let answer = place.run(&["durable", "verify", "--target", &target, "--notes", "notes", "--json"]);
    let document = answer.json();
    assert!(document["kind"] == "device" && document["found"]["missing"] == 0 && document["verdict"] == "no_verdict");
    let ids: Vec<&str> = document["reasons"].as_array().unwrap().iter().filter_map(|one| one["id"].as_str()).collect();
    assert!(ids.contains(&"same_boot") && ids.contains(&"ended_on_target"), "{ids:?}");
    let again = place.run(&[&load[..], &["--destroy", &disk.name()]].concat());
    assert!(again.code == Some(2) && again.stderr.contains("holds an earlier load of commits"), "{again}");
    let dropped = place.done(&["durable", "drop", "--yes", "--target", &target]);
    assert!(dropped.stderr.contains("heading") || dropped.stdout.contains("heading"), "{dropped}");
    let nothing = place.run(&["durable", "drop", "--yes", "--target", &target]);
    assert!(nothing.code == Some(2) && nothing.stderr.contains("holds no load of commits"), "{nothing}");
    let wrong = place.run(&["durable", "load", "--target", "dir:x", "--destroy", "x", "--duration", "0"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("`--destroy` is for devices"), "{wrong}");
    let empty = place.run(&["durable", "load", "--target", "raw:", "--duration", "0"]);
    assert!(empty.code == Some(2) && empty.stderr.contains("names no path"), "{empty}");
}
