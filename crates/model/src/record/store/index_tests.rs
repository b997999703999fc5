//! A store looked at again and again.

use super::*;
use crate::record::sample;

struct Kept {
    _directory: tempfile::TempDir,
    index: Index,
}

impl Kept {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::new(Store::new(directory.path()));
        Self { _directory: directory, index }
    }

    fn save(&self, id: &str, minute: u32) -> PathBuf {
        let mut run = sample::interrupted();
        run.id = id.to_owned();
        run.started_at = Timestamp(format!("2026-11-20T10:{minute:02}:00Z").parse().unwrap());
        self.index.store().save(&run).unwrap()
    }

    fn keys(&mut self) -> Vec<String> {
        self.index.refresh().unwrap();
        self.index.runs().iter().map(|run| run.key.clone()).collect()
    }
}

#[test]
fn runs_come_newest_first_and_go_when_they_are_removed() {
    let mut kept = Kept::new();
    let first = kept.save("a", 1);
    kept.save("b", 2);
    assert_eq!(kept.keys(), ["b", "a"]);
    kept.save("c", 0);
    assert_eq!(kept.keys(), ["b", "a", "c"]);
    super::remove(&first).unwrap();
    assert_eq!(kept.keys(), ["b", "c"]);
    assert!(kept.index.get("a").is_none() && kept.index.get("c").is_some());
}

#[test]
fn only_a_document_that_was_replaced_is_read_again() {
    let mut kept = Kept::new();
    let (first, _) = (kept.save("a", 1), kept.save("b", 2));
    kept.keys();
    let before = kept.index.runs();
    let text = fs::read_to_string(first.join(RUN_FILE)).unwrap().replace("\"interrupted\"", "\"completed\"  ");
    fs::write(first.join("new"), text).unwrap();
    fs::rename(first.join("new"), first.join(RUN_FILE)).unwrap();
    kept.keys();
    let after = kept.index.runs();
    assert!(Arc::ptr_eq(&before[0], &after[0]), "nothing happened to b");
    assert_eq!(after[1].read.as_ref().unwrap().outcome, Outcome::Completed);
}

#[test]
fn what_cannot_be_read_is_kept_as_a_problem_until_it_can_be() {
    let mut kept = Kept::new();
    let directory = kept.save("a", 1);
    kept.save("b", 2);
    let whole = fs::read(directory.join(RUN_FILE)).unwrap();
    fs::write(directory.join(RUN_FILE), &whole[..whole.len() / 2]).unwrap();
    assert_eq!(kept.keys(), ["b", "a"]);
    let error = kept.index.get("a").unwrap();
    assert!(matches!(error.read, Err(StoreError::Unreadable { cut_short: true, .. })), "{error:?}");
    fs::write(directory.join(RUN_FILE), r#"{"format": 99, "id": "a"}"#).unwrap();
    kept.keys();
    assert!(matches!(kept.index.get("a").unwrap().read, Err(StoreError::NewerFormat { .. })));
    fs::write(directory.join(RUN_FILE), whole).unwrap();
    kept.keys();
    assert!(kept.index.get("a").unwrap().read.is_ok());
}

#[test]
fn a_directory_that_is_renamed_is_another_run() {
    let mut kept = Kept::new();
    let directory = kept.save("a", 1);
    kept.keys();
    fs::rename(&directory, directory.with_file_name("z")).unwrap();
    assert_eq!(kept.keys(), ["z"]);
    let run = kept.index.get("z").unwrap();
    assert_eq!((run.read.as_ref().unwrap().id.as_str(), run.path.file_name()), ("a", Some("z".as_ref())));
}

#[test]
fn an_unfinished_run_tells_when_something_was_last_written() {
    let mut kept = Kept::new();
    let ended = kept.save("a", 1);
    let mut run = sample::interrupted();
    (run.id, run.outcome) = ("b".to_owned(), Outcome::Unfinished);
    let going_on = kept.index.store().save(&run).unwrap();
    kept.keys();
    assert_eq!(kept.index.get("a").unwrap().written_at, None);
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    for directory in [&ended, &going_on] {
        for name in [RUN_FILE, INTERVALS_FILE] {
            fs::File::options().append(true).open(directory.join(name)).unwrap().set_modified(old).unwrap();
        }
    }
    kept.keys();
    let written_at = kept.index.get("b").unwrap().written_at;
    assert_eq!(written_at.unwrap().0.as_second(), 1_000_000_000);
    fs::write(going_on.join(INTERVALS_FILE), "").unwrap();
    kept.keys();
    assert!(kept.index.get("b").unwrap().written_at > written_at, "only the intervals have changed");
}

#[test]
fn many_runs_are_read_by_several_threads_and_none_twice() {
    let mut kept = Kept::new();
    for number in 0..WORTH_SHARING + 5 {
        let directory = kept.index.store().path().join(format!("run-{number:03}"));
        fs::create_dir(&directory).unwrap();
        let text = if number % 7 == 0 { "{" } else { r#"{"format": 99, "id": "x"}"# };
        fs::write(directory.join(RUN_FILE), text).unwrap();
    }
    let keys = kept.keys();
    let mut once = keys.clone();
    once.sort();
    once.dedup();
    assert_eq!((keys.len(), once.len()), (WORTH_SHARING + 5, WORTH_SHARING + 5));
}

#[test]
fn a_store_that_is_gone_is_an_error_and_nothing_is_forgotten() {
    let mut kept = Kept::new();
    kept.save("a", 1);
    kept.keys();
    let path = kept.index.store().path().to_owned();
    fs::rename(&path, path.with_extension("away")).unwrap();
    assert!(matches!(kept.index.refresh(), Err(StoreError::Io { doing: "list", .. })));
    assert_eq!(kept.index.runs().len(), 1);
    fs::rename(path.with_extension("away"), &path).unwrap();
}

#[test]
fn the_largest_load_is_reported_without_decoding_a_histogram() {
    let mut kept = Kept::new();
    kept.save("a", 1);
    let run = sample::interrupted();
    let largest = run.steps.iter().max_by_key(|step| step.load.sessions).unwrap();
    kept.keys();
    let indexed = kept.index.get("a").unwrap();
    let summary = indexed.read.as_ref().unwrap();
    assert_eq!(summary.largest_load.as_ref(), Some(&largest.label));
    assert_eq!((&summary.tags, summary.ended_at), (&run.tags, run.ended_at));
}
