//! Runs as tables, as their user meets it.

use std::collections::BTreeSet;
use std::fs;

use crate::place::{Answer, Place};
use crate::skip::skip;

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

#[test]
fn a_run_in_fios_form_is_read_by_fios_own_tool_and_by_us() {
    let place = Place::new();
    let load = "io run --path sim:service=1ms,servers=4,clock=simulated --pattern randrw --depth 4 --duration 2 --seed 7 --quiet";
    place.done(&load.split(' ').collect::<Vec<_>>());
    place.done(&["report", "last", "--fio", "steps.json"]);
    let ours = place.done(&["report", "last", "--json"]).run();
    place.done(&["import", "steps.json", "--quiet"]);
    let back = place.done(&["report", "last", "--json"]).run();
    for (one, other) in ours["steps"][0]["operations"]
        .as_array()
        .unwrap()
        .iter()
        .zip(back["steps"][0]["operations"].as_array().unwrap())
    {
        assert_eq!((&one["kind"], &one["count"]), (&other["kind"], &other["count"]));
        for quantile in ["p50_ns", "p99_ns"] {
            let ns = |of: &serde_json::Value| of["service"][quantile].as_f64().unwrap();
            assert!((ns(one) / ns(other) - 1.0).abs() < 0.03, "{quantile}: {one} {other}");
        }
    }
    let theirs = place.run(&["report", "last", "--fio", "plimsoll-runs"]);
    assert_eq!(theirs.code, Some(2), "{theirs}");
    let kept = Place::with_kept_runs();
    let none = fails(&kept, 2, &["report", "format-1-updates", "--fio", "none.json"]);
    assert!(none.stderr.contains("no counted requests of raw storage") && !kept.path("none.json").exists(), "{none}");
    let tool = std::process::Command::new("fio_jsonplus_clat2csv")
        .args(["steps.json", "out.csv"])
        .current_dir(place.path("."))
        .output();
    let Ok(tool) = tool else { return skip("`fio_jsonplus_clat2csv` of fio is not installed") };
    let said = String::from_utf8_lossy(&tool.stderr);
    if said.contains("No module named") {
        return skip("`fio_jsonplus_clat2csv` lacks a module of Python");
    }
    assert!(tool.status.success(), "{said}");
    let table = fs::read_to_string(place.path("out_job0.csv")).unwrap();
    let last = table.lines().last().unwrap();
    assert!(table.starts_with("nsec, read_") && last.contains(", 1.0, "), "{last}");
}
