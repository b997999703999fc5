//! `plimsoll tour`.

use crate::place::{Answer, Place};

fn tour(place: &Place, options: &[&str]) -> Answer {
    let arguments = [&["tour"], options].concat();
    Answer::from(
        place.plimsoll(&arguments).env("TMPDIR", place.path(".")).output().expect("the program can be started"),
    )
}

#[test]
fn a_dry_run_lists_the_commands_and_makes_nothing() {
    let place = Place::new();
    let planned = tour(&place, &["--dry-run"]);
    assert!(planned.code == Some(0) && planned.stdout.matches("plimsoll ").count() == 8, "{planned}");
    assert_eq!(std::fs::read_dir(place.path(".")).expect("it can be listed").count(), 0);
}

/// What lies where the tour may make its folder.
fn folders(place: &Place) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(place.path(".")).expect("the place can be listed");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

#[test]
fn a_newcomer_is_shown_what_was_planted_by_commands_that_can_be_typed_again() {
    let place = Place::new();
    let answer = tour(&place, &["--keep"]);
    assert_eq!(answer.code, Some(0), "{answer}");
    for part in [
        "1. The load line",
        "    plimsoll slob sweep --threads 1,2,4,8,16,32,64",
        "with p99 of `db file sequential read` within 2.00 ms (16 sessions: p99 ",
        "by an IOPS limit set by software",
        "100 requests/s sustained",
        "`new_randread_8K_d4` is worse than `old_randread_8K_d4`",
        "    plimsoll report from=fio",
        "fio 3.33",
    ] {
        assert!(answer.stdout.contains(part), "{part}\n{answer}");
    }
    let folder = folders(&place).pop().expect("its folder");
    assert!(
        answer.stdout.contains("export PLIMSOLL_RUNS=") && answer.stderr.contains("The runs are kept in"),
        "{answer}"
    );
    let list = place.done(&["runs", "list", "--runs", folder.to_str().expect("a name"), "--json"]).json();
    assert_eq!(list.as_array().map(Vec::len), Some(6));
}

#[test]
fn nothing_stays_behind_that_nobody_asked_to_keep() {
    let place = Place::new();
    let mut command = place.plimsoll(&["tour"]);
    let command = command.env("TMPDIR", place.path(".")).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("the program can be started");
    // Whoever reads it has gone: the tour ends, and its folder with it.
    drop(child.stdout.take());
    let _ = child.wait();
    assert!(folders(&place).is_empty(), "{:?}", folders(&place));
    let nowhere = place.plimsoll(&["tour"]).env("TMPDIR", place.path("none")).output().expect("it can be started");
    let nowhere = Answer::from(nowhere);
    assert!(nowhere.code == Some(2) && nowhere.stderr.contains("TMPDIR=DIR"), "{nowhere}");
}
