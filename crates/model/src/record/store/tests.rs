use std::os::unix::fs::symlink;

use super::*;
use crate::record::{Counters, FORMAT, Outcome, interval_schema, sample, schema};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/runs");

fn store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::new(directory.path().join("runs"));
    (directory, store)
}

/// A run with the sample's contents under another id, name and start.
fn saved(store: &Store, id: &str, name: &str, started_at: &str) -> PathBuf {
    let mut run = sample::interrupted();
    run.id = id.to_owned();
    run.name = name.to_owned();
    run.started_at = Timestamp(started_at.parse().unwrap());
    store.save(&run).unwrap()
}

#[test]
fn a_run_comes_back_as_it_was_written_intervals_included() {
    let (_directory, store) = store();
    for run in [sample::sweep(3), sample::updates(2), sample::imported()] {
        let directory = store.save(&run).unwrap();
        assert_eq!(load(&directory).unwrap(), run);
        assert_eq!(load(&directory.join(RUN_FILE)).unwrap(), run);
        remove(&directory).unwrap();
        assert!(!directory.exists());
    }
}

#[test]
fn a_run_whose_process_was_killed_is_readable_and_unfinished() {
    let (_directory, store) = store();
    let mut run = sample::interrupted();
    let last = run.steps[1].intervals.pop().unwrap();
    run.outcome = Outcome::Unfinished;
    let mut writer = RunWriter::create(&store, &run).unwrap();
    for interval in run.steps.iter().flat_map(|step| &step.intervals) {
        writer.append(interval).unwrap();
    }
    let directory = writer.directory().to_owned();
    drop(writer);
    let half = serde_json::to_string(&last).unwrap();
    let intervals = directory.join(INTERVALS_FILE);
    let text = fs::read_to_string(&intervals).unwrap() + &half[..half.len() / 2];
    fs::write(&intervals, text).unwrap();
    fs::write(directory.join(TEMPORARY_FILE), "{\"form").unwrap();

    let mut read = load(&directory).unwrap();
    assert_eq!(read.notes.len(), 1, "{:?}", read.notes);
    assert!(read.notes[0].contains("half-written"), "{:?}", read.notes);
    read.notes.clear();
    assert_eq!(read, run);
}

#[test]
fn a_step_that_was_never_closed_gets_its_counts_from_its_intervals() {
    let (_directory, store) = store();
    let whole = sample::interrupted();
    let mut run = whole.clone();
    let step = &mut run.steps[1];
    step.outcome = Outcome::Unfinished;
    step.window.duration_ns = 0;
    step.counters = Counters::default();
    step.waits.clear();
    let read = load(&store.save(&run).unwrap()).unwrap();
    let (recovered, closed) = (&read.steps[1], &whole.steps[1]);
    assert_eq!(recovered.window.duration_ns, 3_000_000_000);
    let inside: u64 = closed.intervals.iter().filter(|i| !i.warmup).map(|i| i.counters.operations.unwrap()).sum();
    assert_eq!(recovered.counters.operations, Some(inside));
    assert_eq!(recovered.waits.len(), 1);
    assert_eq!(recovered.waits[0].waits.count(), inside * 63);
    assert_eq!(recovered.waits[0].class, "User I/O", "known from the step before");
    assert_eq!(recovered.outcome, Outcome::Unfinished);
    assert!(read.notes[0].contains("s2_t1"), "{:?}", read.notes);
}

#[test]
fn a_broken_interval_before_the_last_is_an_error_with_its_line() {
    let (_directory, store) = store();
    let directory = store.save(&sample::interrupted()).unwrap();
    let intervals = directory.join(INTERVALS_FILE);
    let mut lines: Vec<_> = fs::read_to_string(&intervals).unwrap().lines().map(str::to_owned).collect();
    lines[1] = "{\"step\": \"one\"}".to_owned();
    fs::write(&intervals, lines.join("\n") + "\n").unwrap();
    let error = load(&directory).unwrap_err().to_string();
    assert!(error.contains("intervals.jsonl`, line 2, column"), "{error}");
}

#[test]
fn intervals_of_an_unknown_step_are_noted() {
    let (_directory, store) = store();
    let mut run = sample::interrupted();
    let directory = store.save(&run).unwrap();
    run.steps.pop();
    let mut text = serde_json::to_vec_pretty(&run).unwrap();
    text.push(b'\n');
    fs::write(directory.join(RUN_FILE), text).unwrap();
    let read = load(&directory).unwrap();
    assert!(read.notes[0].starts_with("5 intervals"), "{:?}", read.notes);
}

#[test]
fn an_update_that_fails_keeps_the_old_document() {
    let (_directory, store) = store();
    let mut run = sample::interrupted();
    run.outcome = Outcome::Unfinished;
    let mut writer = RunWriter::create(&store, &run).unwrap();
    // A directory in the way fails for root too, unlike missing permission.
    fs::create_dir(writer.directory().join(TEMPORARY_FILE)).unwrap();
    let error = writer.update(&sample::interrupted()).unwrap_err();
    assert!(error.to_string().contains("run.json.tmp"), "{error}");
    assert_eq!(load(writer.directory()).unwrap().outcome, Outcome::Unfinished);
}

#[test]
fn the_same_id_is_never_written_twice() {
    let (_directory, store) = store();
    store.save(&sample::interrupted()).unwrap();
    let error = RunWriter::create(&store, &sample::interrupted()).unwrap_err().to_string();
    assert!(error.contains("20261120-105000-slob"), "{error}");
}

#[test]
fn a_new_id_avoids_what_is_there() {
    let (_directory, store) = store();
    let instant = Timestamp("2026-11-20T10:30:00Z".parse().unwrap());
    assert_eq!(store.new_id(instant, "slob"), "20261120-103000-slob");
    saved(&store, "20261120-103000-slob", "a", "2026-11-20T10:30:00Z");
    assert_eq!(store.new_id(instant, "slob"), "20261120-103000-slob-2");
    saved(&store, "20261120-103000-slob-2", "a", "2026-11-20T10:30:00Z");
    assert_eq!(store.new_id(instant, "slob"), "20261120-103000-slob-3");
    for number in 3..=40 {
        let id = format!("20261120-103000-slob-{number}");
        assert_eq!(store.new_id(instant, "slob"), id, "ids have no gaps");
        fs::create_dir(store.path().join(id)).unwrap();
    }
    fs::remove_dir(store.path().join("20261120-103000-slob-20")).unwrap();
    assert!(!store.path().join(store.new_id(instant, "slob")).exists(), "a gap does no harm");
}

#[test]
fn a_whole_run_that_cannot_be_kept_leaves_nothing() {
    let (_directory, store) = store();
    let run = Run { id: "20261120-103000-slob".to_owned(), ..sample::interrupted() };
    let directory = store.save(&run).unwrap();
    let document = fs::read(directory.join(RUN_FILE)).unwrap();
    assert!(store.save(&run).is_err(), "one of that id is there");
    assert_eq!(fs::read(directory.join(RUN_FILE)).unwrap(), document);

    let bad = Run { id: "../elsewhere".to_owned(), ..sample::interrupted() };
    assert!(matches!(store.save(&bad), Err(StoreError::BadId { .. })));
    assert_eq!(fs::read_dir(store.path()).unwrap().count(), 1);
}

#[test]
fn the_list_is_in_order_of_time_and_passes_over_foreign_things() {
    let (_directory, store) = store();
    assert!(store.list().0.is_empty(), "a store that is not there is empty");
    saved(&store, "b", "later", "2026-11-20T11:00:00Z");
    saved(&store, "c", "earlier", "2026-11-20T10:00:00Z");
    fs::create_dir(store.path().join("foreign")).unwrap();
    fs::write(store.path().join("foreign/data.txt"), "x").unwrap();
    fs::write(store.path().join("file"), "x").unwrap();
    fs::create_dir(store.path().join("broken")).unwrap();
    fs::write(store.path().join("broken/run.json"), "{\n  \"format\": 1,").unwrap();

    let (summaries, problems) = store.list();
    assert_eq!(summaries.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["earlier", "later"]);
    assert_eq!(summaries[0].steps, 2);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].to_string().contains("broken/run.json`, line 2, column"), "{}", problems[0]);
    assert!(problems[0].hint().unwrap().contains("cut short"));
}

#[test]
fn runs_are_found_by_every_name_they_answer_to() {
    let (directory, store) = store();
    let first = saved(&store, "20261120-103000-slob", "one", "2026-11-20T10:30:00Z");
    let second = saved(&store, "20261120-113000-slob", "two", "2026-11-20T11:30:00Z");
    let third = saved(&store, "20261121-103000-slob", "two", "2026-11-21T10:30:00Z");
    assert_eq!(store.find("20261120-103000-slob").unwrap(), first);
    assert_eq!(store.find("20261120-11").unwrap(), second);
    assert_eq!(store.find("one").unwrap(), first);
    assert_eq!(store.find("last").unwrap(), third);
    assert_eq!(store.find(second.to_str().unwrap()).unwrap(), second);
    assert_eq!(store.find(second.join(RUN_FILE).to_str().unwrap()).unwrap(), second);
    for ambiguous in ["two", "20261120"] {
        let error = store.find(ambiguous).unwrap_err();
        assert!(matches!(&error, StoreError::Ambiguous { candidates, .. } if candidates.len() == 2), "{error}");
    }
    assert!(matches!(store.find("three"), Err(StoreError::NotFound { .. })));
    assert!(matches!(store.find(""), Err(StoreError::NotFound { .. })));
    assert!(matches!(store.find(directory.path().to_str().unwrap()), Err(StoreError::NoRunThere { .. })));
}

#[test]
fn a_word_that_several_runs_answer_to_means_all_of_them() {
    let (_directory, store) = store();
    let tagged = |id: &str, vm: &str| {
        let tags = [("vm".to_owned(), vm.to_owned())].into();
        store.save(&Run { id: id.to_owned(), name: "two".to_owned(), tags, ..sample::sweep(1) }).unwrap()
    };
    let one = tagged("20261120-103000-slob", "d8s");
    let two = tagged("20261120-113000-slob", "d8s");
    let three = tagged("20261121-103000-slob", "d16s");
    let all = |word: &str| store.find_all(word).unwrap();
    assert_eq!(all("vm=d8s"), [one.clone(), two.clone()]);
    assert_eq!(all("vm=d16s"), std::slice::from_ref(&three));
    assert_eq!(all("20261120"), [one.clone(), two.clone()]);
    assert_eq!(all("two").len(), 3);
    assert_eq!(all(store.path().to_str().unwrap()).len(), 3, "a directory of runs is all in it");
    assert_eq!(all("last").len(), 1);
    assert!(matches!(store.find("vm=d8s"), Err(StoreError::Ambiguous { .. })));
    for none in ["vm=d32s", "vm=", "=", "disk=d8s", "nobody"] {
        assert!(matches!(store.find_all(none), Err(StoreError::NotFound { .. })), "{none}");
    }
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let listed = |chosen: &[&str]| store.list_of(&words(chosen)).unwrap().0.len();
    assert_eq!((listed(&[]), listed(&["vm=d8s", "20261120"]), listed(&["vm=d8s", "last"])), (3, 2, 3));
    assert!(store.list_of(&words(&["vm=d8s", "nobody"])).is_err());
}

#[test]
fn an_id_is_found_even_if_others_begin_with_it() {
    let (_directory, store) = store();
    let first = saved(&store, "20261120-103000-slob", "one", "2026-11-20T10:30:00Z");
    saved(&store, "20261120-103000-slob-2", "two", "2026-11-20T10:30:00Z");
    assert_eq!(store.find("20261120-103000-slob").unwrap(), first);
}

#[test]
fn an_id_that_leads_out_of_the_store_is_refused() {
    let (_directory, store) = store();
    for id in ["", "..", ".hidden", "a/b", "../a", "a b"] {
        let mut run = sample::interrupted();
        run.id = id.to_owned();
        assert!(matches!(store.save(&run), Err(StoreError::BadId { .. })), "{id}");
    }
}

#[test]
fn a_later_format_is_named_before_any_missing_field() {
    let (_directory, store) = store();
    let directory = saved(&store, "a", "a", "2026-11-20T10:30:00Z");
    fs::write(directory.join(RUN_FILE), r#"{"format": 99, "id": "a", "unheard_of": []}"#).unwrap();
    let error = load(&directory).unwrap_err();
    assert!(matches!(error, StoreError::NewerFormat { format: 99, newest: FORMAT, .. }), "{error}");
    assert!(error.hint().is_some());
}

#[test]
fn foreign_json_is_an_error_with_file_line_and_column() {
    let (_directory, store) = store();
    let directory = saved(&store, "a", "a", "2026-11-20T10:30:00Z");
    for text in ["", "null", "[]", "{\"fio version\": \"fio-3.39\"}", "{\"format\":1,\"id\":\"a\"}", "\u{fffd}"] {
        fs::write(directory.join(RUN_FILE), text).unwrap();
        let error = load(&directory).unwrap_err();
        assert!(matches!(error, StoreError::Unreadable { .. }), "{text}: {error}");
        assert!(!error.to_string().contains("at line"), "{error}");
    }
}

#[test]
fn unknown_fields_are_tolerated() {
    let (_directory, store) = store();
    let directory = saved(&store, "a", "a", "2026-11-20T10:30:00Z");
    let path = directory.join(RUN_FILE);
    let text = fs::read_to_string(&path).unwrap().replacen("{", "{\n  \"written_by_a_later_minor\": {\"x\": [1]},", 1);
    fs::write(&path, text).unwrap();
    load(&directory).unwrap();
    assert_eq!(store.list().0.len(), 1);
}

#[test]
fn removing_spares_whatever_is_not_ours() {
    let (directory, store) = store();
    let run = saved(&store, "a", "a", "2026-11-20T10:30:00Z");

    let notes = run.join("my_notes.txt");
    fs::write(&notes, "precious").unwrap();
    assert!(remove(&run).unwrap_err().to_string().contains("my_notes.txt"));
    assert!(run.join(RUN_FILE).exists() && run.join(INTERVALS_FILE).exists());
    fs::remove_file(&notes).unwrap();

    fs::create_dir(run.join("report.txt")).unwrap();
    assert!(matches!(remove(&run), Err(StoreError::NotRemoved { .. })), "a directory under a known name");
    fs::remove_dir(run.join("report.txt")).unwrap();

    let link = directory.path().join("link");
    symlink(&run, &link).unwrap();
    assert!(matches!(remove(&link), Err(StoreError::NotRemoved { .. })));

    let foreign = directory.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    assert!(matches!(remove(&foreign), Err(StoreError::NoRunThere { .. })));
    fs::write(foreign.join(RUN_FILE), "{\"scripts\": {}}").unwrap();
    assert!(matches!(remove(&foreign), Err(StoreError::NotRemoved { .. })));
    assert!(foreign.join(RUN_FILE).exists());

    remove(&run).unwrap();
    assert!(!run.exists());
}

fn golden() -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(GOLDEN).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 4, "golden runs are gone");
    paths
}

#[test]
fn every_golden_run_validates_against_the_schema_and_loads() {
    let documents = jsonschema::validator_for(&schema()).unwrap();
    let intervals = jsonschema::validator_for(&interval_schema()).unwrap();
    for path in golden() {
        let text = fs::read_to_string(path.join(RUN_FILE)).unwrap();
        let value = serde_json::from_str(&text).unwrap();
        let errors: Vec<_> = documents.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", path.display());
        for line in fs::read_to_string(path.join(INTERVALS_FILE)).unwrap().lines() {
            let value = serde_json::from_str(line).unwrap();
            assert!(intervals.is_valid(&value), "{}: {line}", path.display());
        }
        let run = load(&path).unwrap();
        assert_eq!(run.format, 1);
        assert!(run.notes.is_empty(), "{:?}", run.notes);
    }
}

#[test]
fn a_record_from_before_the_first_release_is_refused_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let mut value = serde_json::to_value(sample::sweep(10)).unwrap();
    let document = value.as_object_mut().unwrap();
    (document["format"], document["load"]) = (3.into(), serde_json::Value::Null);
    document.remove("load");
    document.insert("workload".to_owned(), "slob".into());
    fs::write(directory.path().join(RUN_FILE), value.to_string()).unwrap();
    let error = load(directory.path()).unwrap_err();
    assert!(error.to_string().contains("was made before the first release"), "{error}");
}

#[test]
fn the_schema_refuses_a_document_without_steps() {
    let mut value = serde_json::to_value(sample::imported()).unwrap();
    value.as_object_mut().unwrap().remove("steps");
    assert!(!jsonschema::is_valid(&schema(), &value));
}
