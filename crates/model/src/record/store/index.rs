//! The store for something that looks at it often: what was read is kept, and read again only where it has changed.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::{INTERVALS_FILE, RUN_FILE, Store, StoreError, Summary, reader};
use crate::record::{Outcome, Timestamp};

/// Runs to be read below which one thread is as quick as several.
const WORTH_SHARING: usize = 64;

/// By what a changed file is known. Documents are replaced by renaming, so a new one also has another inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Number of the file in its file system.
    pub inode: u64,
    /// Length.
    pub bytes: u64,
    /// Time of the last change, in nanoseconds since 1970.
    pub modified_ns: i128,
}

impl Stamp {
    /// The stamp of the file at `path`; none if it is not there or is no plain file.
    pub fn of(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().filter(Metadata::is_file).map(|file| Self::from(&file))
    }

    /// The time of the last change.
    pub fn modified_at(&self) -> Option<Timestamp> {
        jiff::Timestamp::from_nanosecond(self.modified_ns).ok().map(Timestamp)
    }
}

impl From<&Metadata> for Stamp {
    fn from(file: &Metadata) -> Self {
        let modified_ns = i128::from(file.mtime()) * 1_000_000_000 + i128::from(file.mtime_nsec());
        Self { inode: file.ino(), bytes: file.len(), modified_ns }
    }
}

/// The two files of a run as they were at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamps {
    /// Of `run.json`.
    pub document: Stamp,
    /// Of `intervals.jsonl`, if there is one.
    pub intervals: Option<Stamp>,
}

impl Stamps {
    /// The stamps of the run in `directory`; none if there is no run.
    pub fn of(directory: &Path) -> Option<Self> {
        let document = Stamp::of(&directory.join(RUN_FILE))?;
        Some(Self { document, intervals: Stamp::of(&directory.join(INTERVALS_FILE)) })
    }

    /// When something was last written to the run.
    pub fn written_at(&self) -> Option<Timestamp> {
        let intervals = self.intervals.as_ref().and_then(Stamp::modified_at);
        intervals.max(self.document.modified_at())
    }
}

/// A run of the store, or what looks like one and cannot be read.
#[derive(Debug)]
pub struct Indexed {
    /// Name of its directory in the store.
    pub key: String,
    /// Its directory.
    pub path: PathBuf,
    /// What it is, or why it cannot be read.
    pub read: Result<Summary, StoreError>,
    /// When something was last written to it; only where it has not ended.
    pub written_at: Option<Timestamp>,
    document: Stamp,
}

impl Indexed {
    fn read(key: String, path: PathBuf, document: Stamp) -> Self {
        let read = reader::summarise(&path);
        let mut indexed = Self { key, path, read, written_at: None, document };
        indexed.written_at = indexed.last_written();
        indexed
    }

    fn is_unfinished(&self) -> bool {
        self.read.as_ref().is_ok_and(|summary| summary.outcome == Outcome::Unfinished)
    }

    fn last_written(&self) -> Option<Timestamp> {
        if !self.is_unfinished() {
            return None;
        }
        let intervals = Stamp::of(&self.path.join(INTERVALS_FILE));
        Stamps { document: self.document, intervals }.written_at()
    }

    /// The same run as it is now, its document being unchanged.
    fn looked_at_again(self: Arc<Self>) -> Arc<Self> {
        let written_at = self.last_written();
        if written_at == self.written_at {
            return self;
        }
        let Ok(summary) = &self.read else { return self };
        Arc::new(Self {
            key: self.key.clone(),
            path: self.path.clone(),
            read: Ok(summary.clone()),
            written_at,
            document: self.document,
        })
    }

    /// Newest first; what cannot be read comes last.
    fn place(&self) -> (Reverse<Option<(Timestamp, &str)>>, &str) {
        (Reverse(self.read.as_ref().ok().map(|summary| (summary.started_at, summary.id.as_str()))), &self.key)
    }
}

/// Runs as one look found them: newest first, then what could not be read.
pub type Look = Arc<[Arc<Indexed>]>;

/// What is known of a store.
#[derive(Debug)]
pub struct Index {
    store: Store,
    runs: Look,
}

impl Index {
    /// An index that has not looked yet.
    pub fn new(store: Store) -> Self {
        Self { store, runs: Arc::default() }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What the last look found.
    pub fn runs(&self) -> Look {
        Arc::clone(&self.runs)
    }

    /// The run in the directory of that name, if the last look found one. No path is made from `key`.
    pub fn get(&self, key: &str) -> Option<Arc<Indexed>> {
        self.runs.iter().find(|run| run.key == key).cloned()
    }

    /// Looks again: reads what is new or has changed, and forgets what is gone.
    ///
    /// # Errors
    /// If the directory of the store cannot be listed; then what is known stays as it was.
    pub fn refresh(&mut self) -> Result<(), StoreError> {
        let cannot = |error: io::Error| StoreError::io(self.store.path(), "list", error);
        let mut known: HashMap<&str, &Arc<Indexed>> = self.runs.iter().map(|run| (run.key.as_str(), run)).collect();
        let mut runs = Vec::with_capacity(self.runs.len());
        let mut unread = Vec::new();
        for entry in fs::read_dir(self.store.path()).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            let path = entry.path();
            let Some(document) = Stamp::of(&path.join(RUN_FILE)) else { continue };
            let key = entry.file_name().to_string_lossy().into_owned();
            match known.remove(key.as_str()) {
                Some(run) if run.document == document && run.path == path => {
                    runs.push(Arc::clone(run).looked_at_again());
                }
                _ => unread.push((key, path, document)),
            }
        }
        runs.extend(read_all(unread));
        runs.sort_by(|one, other| one.place().cmp(&other.place()));
        self.runs = runs.into();
        Ok(())
    }
}

/// Reads them on all processors but one, if there are many: somebody may be measuring.
fn read_all(unread: Vec<(String, PathBuf, Stamp)>) -> Vec<Arc<Indexed>> {
    let read = |(key, path, document): &(String, PathBuf, Stamp)| {
        Arc::new(Indexed::read(key.clone(), path.clone(), *document))
    };
    if unread.len() < WORTH_SHARING {
        return unread.iter().map(read).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(one) = unread.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push(read(one));
        }
        done
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        // This thread is one of them; there are fewer others where a limit forbids more: only time is lost.
        let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let workers: Vec<_> = (2..processors).filter_map(start).collect();
        let mut runs = work();
        for worker in workers {
            runs.extend(worker.join().expect("reading a document does not panic"));
        }
        runs
    })
}

#[cfg(test)]
mod tests {
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
        super::super::remove(&first).unwrap();
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
}
