//! Runs as tables, as their user meets it.

use std::collections::BTreeSet;
use std::fs;

use crate::place::{Answer, Place};

const TABLES: [&str; 9] =
    ["buckets", "counters", "episodes", "findings", "intervals", "parts", "runs", "steps", "waits"];

/// Names of what lies in a directory.
fn files(place: &Place, directory: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(place.path(directory)).expect("the tables have a directory");
    entries.map(|entry| entry.expect("it can be listed").file_name().to_string_lossy().into_owned()).collect()
}

/// Runs what ends with an exit code other than 0.
fn fails(place: &Place, code: i32, arguments: &[&str]) -> Answer {
    let answer = place.run(arguments);
    assert_eq!(answer.code, Some(code), "{answer}");
    answer
}

fn set(number: u32, ending: &str) -> BTreeSet<String> {
    TABLES.iter().map(|table| format!("{table}-{number:04}.{ending}")).collect()
}

/// The first column of the runs in files of CSV.
fn runs(place: &Place, number: u32) -> Vec<String> {
    let path = place.path(&format!("tables/runs-{number:04}.csv"));
    let text = fs::read_to_string(path).expect("there is a table of runs");
    text.lines().skip(1).filter_map(|line| line.split_once(",format-1-")).map(|(run, _)| run.to_owned()).collect()
}

#[test]
fn all_runs_become_a_file_of_each_table_and_more_are_added_beside_them() {
    let place = Place::with_kept_runs();
    let planned = place.done(&["export", "-o", "tables", "--dry-run"]).stdout;
    assert!(planned.contains("into       tables\n") && planned.matches("\nrun        ").count() == 4, "{planned}");
    assert!(!place.path("tables").exists());
    let answer = place.done(&["export", "-o", "tables", "--json"]).json();
    assert_eq!((&answer["runs"], &answer["known"], &answer["broken"]), (&4.into(), &0.into(), &serde_json::json!([])));
    let rows = |table: &str| {
        let files = answer["files"].as_array().unwrap().iter();
        files.filter(|file| file["table"] == table).map(|file| file["rows"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((rows("runs"), rows("parts")), (4, 0));
    assert!(rows("steps") > 9 && rows("buckets") > rows("waits"), "{answer}");
    assert_eq!(files(&place, "tables"), set(1, "parquet"));

    let again = fails(&place, 2, &["export", "-o", "tables"]);
    assert!(
        again.stderr.contains("runs-0001.parquet` is there already") && again.stderr.contains("--append"),
        "{again}"
    );
    let nothing = place.done(&["export", "-o", "tables", "--append"]);
    assert!(nothing.stderr.contains("4 runs there already"), "{nothing}");
    assert_eq!(files(&place, "tables"), set(1, "parquet"), "files without a run are not kept");
}

#[test]
fn what_is_appended_are_the_runs_that_are_not_there() {
    let place = Place::with_kept_runs();
    place.done(&["export", "format-1-sweep", "-o", "tables", "--format", "csv"]);
    let answer = place.done(&["export", "-o", "tables", "--format", "csv", "--append"]);
    assert!(answer.stderr.starts_with("3 runs written into `tables`; 1 run there already\n"), "{answer}");
    assert_eq!(runs(&place, 1), ["format-1-sweep"]);
    assert_eq!(runs(&place, 2), ["format-1-imported", "format-1-interrupted", "format-1-updates"]);
}

#[test]
fn a_run_that_cannot_be_read_is_named_and_the_others_are_written() {
    let place = Place::with_kept_runs();
    place.write("plimsoll-runs/format-1-sweep/run.json", "{");
    let answer = fails(&place, 1, &["export", "-o", "tables", "--format", "csv"]);
    assert!(
        answer.stderr.contains("format-1-sweep/run.json") && answer.stderr.contains("1 run could not be read"),
        "{answer}"
    );
    assert_eq!(runs(&place, 1).len(), 3);
}

#[test]
fn files_of_others_and_directories_without_runs_are_left_alone() {
    let place = Place::with_kept_runs();
    fs::create_dir(place.path("tables")).unwrap();
    place.write("tables/waits-0001.parquet", "mine");
    let answer = fails(&place, 2, &["export", "-o", "tables"]);
    assert!(answer.stderr.contains("waits-0001.parquet` is not overwritten"), "{answer}");
    assert_eq!(
        files(&place, "tables"),
        BTreeSet::from(["waits-0001.parquet".to_owned()]),
        "nothing half-written is left"
    );

    fs::create_dir(place.path("empty")).unwrap();
    let answer = fails(&place, 2, &["export", "empty", "-o", "other"]);
    assert!(answer.stderr.starts_with("error: there is no run in empty\nhint: "), "{answer}");
    assert!(!place.path("other").exists());
}

#[test]
fn what_a_killed_export_left_is_replaced() {
    let place = Place::with_kept_runs();
    place.done(&["export", "format-1-sweep", "-o", "tables"]);
    fs::remove_file(place.path("tables/runs-0001.parquet")).unwrap();
    let answer = place.done(&["export", "-o", "tables", "--json"]).json();
    assert_eq!((answer["runs"].as_u64(), files(&place, "tables")), (Some(4), set(1, "parquet")));
}
