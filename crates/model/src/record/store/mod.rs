//! Runs on disk: a directory of run directories, each with a `run.json` and the interval series beside it.

mod limits;
mod reader;
mod writer;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

pub use limits::{
    Allowance, MAX_DOCUMENT, MAX_INTERVALS, MAX_LINE, MAX_NESTING, MAX_PAGE_INTERVALS, MAX_PAGE_STEPS, MAX_STEPS,
    MAX_TEXT,
};
pub use reader::{Headline, IntervalLines, Limit, Summary, document, load, load_within};
pub use writer::{RunWriter, tag};

use super::{Run, Timestamp};
use crate::record::Outcome;

/// The document of a run, in its directory.
pub const RUN_FILE: &str = "run.json";
/// The intervals of a run, one JSON object a line, in its directory.
pub const INTERVALS_FILE: &str = "intervals.jsonl";
const TEMPORARY_FILE: &str = "run.json.tmp";

/// Files that may lie in a run's directory and go with it. Anything else there is somebody's own.
const KNOWN_FILES: [&str; 12] = [
    TEMPORARY_FILE,
    INTERVALS_FILE,
    "steps.csv",
    "waits.csv",
    "histogram.csv",
    "operations.csv",
    "intervals.csv",
    "figures.csv",
    "channels.csv",
    "report.txt",
    "report.html",
    RUN_FILE,
];

/// Whether a file in a run's directory is a report that a database made of itself: `awr-0-0.txt`, `statspack-0-0.txt`.
fn is_own_report(name: &str) -> bool {
    let numbers = ["awr-", "statspack-"].iter().find_map(|kind| name.strip_prefix(kind)?.strip_suffix(".txt"));
    numbers.is_some_and(|numbers| numbers.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
}

/// A directory of runs. It need not exist until the first run is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    path: PathBuf,
}

impl Store {
    /// The store at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An id that no run here has: the instant in UTC and the workload, `20261120-103000-slob`, then `-2` and so on.
    ///
    /// Found by doubling and halving: of thousands of imported runs that began at the same instant, each would otherwise ask for
    /// all before it.
    pub fn new_id(&self, timestamp: Timestamp, workload: &str) -> String {
        let base = format!("{}-{workload}", timestamp.0.strftime("%Y%m%d-%H%M%S"));
        let id = |number: u64| if number == 1 { base.clone() } else { format!("{base}-{number}") };
        let is_taken = |number: u64| self.path.join(id(number)).symlink_metadata().is_ok();
        let (mut taken, mut free) = (0, 1);
        while is_taken(free) {
            (taken, free) = (free, free * 2);
        }
        while free - taken > 1 {
            let middle = taken.midpoint(free);
            if is_taken(middle) { taken = middle } else { free = middle }
        }
        id(free)
    }

    /// Every run here in the order in which they began, and what could not be read. Directories and files that are not
    /// runs are passed over; a store that does not exist is empty.
    pub fn list(&self) -> (Vec<Summary>, Vec<StoreError>) {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return (Vec::new(), Vec::new()),
            Err(error) => return (Vec::new(), vec![StoreError::io(&self.path, "list", error)]),
        };
        let mut summaries = Vec::new();
        let mut problems = Vec::new();
        for entry in entries {
            match entry {
                Ok(entry) if entry.path().join(RUN_FILE).is_file() => {
                    match reader::summarise(&entry.path(), Allowance::default()) {
                        Ok(summary) => summaries.push(summary),
                        Err(error) => problems.push(error),
                    }
                }
                Ok(_) => {}
                Err(error) => problems.push(StoreError::io(&self.path, "list", error)),
            }
        }
        summaries.sort_by(Summary::in_time);
        (summaries, problems)
    }

    /// What [`list`](Self::list) has, of those runs only that any of `words` means; of all where there is no word.
    ///
    /// # Errors
    /// If nothing answers to a word, or a run that does cannot be read.
    pub fn list_of(&self, words: &[String]) -> Result<(Vec<Summary>, Vec<StoreError>), StoreError> {
        if words.is_empty() {
            return Ok(self.list());
        }
        let mut paths = words.iter().map(|word| self.find_all(word)).collect::<Result<Vec<_>, _>>()?.concat();
        paths.sort();
        paths.dedup();
        let mut runs: Vec<Summary> =
            paths.iter().map(|path| reader::summarise(path, Allowance::default())).collect::<Result<_, _>>()?;
        runs.sort_by(Summary::in_time);
        Ok((runs, Vec::new()))
    }

    /// The directory of the run that `word` means; see [`find_all`](Self::find_all).
    ///
    /// # Errors
    /// If nothing answers to it, or several do.
    pub fn find(&self, word: &str) -> Result<PathBuf, StoreError> {
        let mut found = self.answering(word)?;
        match found.len() {
            1 => Ok(found.remove(0).path),
            _ => Err(StoreError::Ambiguous {
                name: word.to_owned(),
                candidates: found.into_iter().map(|found| found.id).collect(),
            }),
        }
    }

    /// The directories of all runs that `word` means, at least one: an id; the path of a run's directory, of its `run.json` or
    /// of a directory of runs; `last`; a name; a tag as in `vm=d8s`; or the beginning of ids. The first of these that anything
    /// answers to counts.
    ///
    /// # Errors
    /// If nothing answers to it.
    pub fn find_all(&self, word: &str) -> Result<Vec<PathBuf>, StoreError> {
        Ok(self.answering(word)?.into_iter().map(|found| found.path).collect())
    }

    fn answering(&self, word: &str) -> Result<Vec<Found>, StoreError> {
        let one = |path| Ok(vec![Found { id: word.to_owned(), path }]);
        if let Ok(directory) = self.directory_of(word)
            && directory.join(RUN_FILE).is_file()
        {
            return one(directory);
        }
        match reader::directory_of_run(Path::new(word)) {
            Ok(directory) => return one(directory),
            Err(error) if word.contains('/') => {
                let (inside, _) = Self::new(word).list();
                return if inside.is_empty() { Err(error) } else { Ok(inside.into_iter().map(Found::from).collect()) };
            }
            Err(_) => {}
        }
        let (mut runs, _) = self.list();
        if word == "last" {
            runs.drain(..runs.len().saturating_sub(1));
        } else {
            let is_tagged = |run: &Summary| {
                word.split_once('=').is_some_and(|(key, value)| run.tags.get(key).is_some_and(|tag| tag == value))
            };
            let answers: [&dyn Fn(&Summary) -> bool; 3] =
                [&|run: &Summary| run.name == word, &is_tagged, &|run: &Summary| {
                    !word.is_empty() && run.id.starts_with(word)
                }];
            match answers.into_iter().find(|answers| runs.iter().any(answers)) {
                Some(answers) => runs.retain(|run| answers(run)),
                None => runs.clear(),
            }
        }
        if runs.is_empty() {
            return Err(StoreError::NotFound { name: word.to_owned(), store: self.path.clone() });
        }
        Ok(runs.into_iter().map(Found::from).collect())
    }

    /// Keeps a whole run at once, as an importer has it, and returns its directory.
    ///
    /// # Errors
    /// If the id cannot name a directory, a run of that id is there already, or the file system refuses; then nothing is kept.
    pub fn save(&self, run: &Run) -> Result<PathBuf, StoreError> {
        writer::save(self, run)
    }

    /// Replaces the document of a run that is kept, whose intervals stay. At every instant it is either the old or the new one.
    ///
    /// # Errors
    /// If the id cannot name a directory, or the file system refuses; the old document is kept then.
    pub fn replace(&self, run: &Run) -> Result<(), StoreError> {
        writer::write_document(&self.directory_of(&run.id)?, run)
    }

    fn directory_of(&self, id: &str) -> Result<PathBuf, StoreError> {
        let plain = id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if id.is_empty() || id.starts_with('.') || !plain {
            return Err(StoreError::BadId { id: id.to_owned() });
        }
        Ok(self.path.join(id))
    }
}

/// A run that answers to a word.
struct Found {
    id: String,
    path: PathBuf,
}

impl From<Summary> for Found {
    fn from(Summary { id, path, .. }: Summary) -> Self {
        Self { id, path }
    }
}

/// Removes the run directory at `path`.
///
/// # Errors
/// If it is not a run, is a symbolic link, or holds anything that does not belong to a run; then nothing is removed. If
/// the file system refuses midway, `run.json` is still there, so that removing can be tried again.
pub fn remove(path: &Path) -> Result<(), StoreError> {
    let refuse = |reason: String| Err(StoreError::NotRemoved { path: path.to_owned(), reason });
    let kind = fs::symlink_metadata(path).map_err(|e| StoreError::io(path, "look at", e))?;
    if kind.is_symlink() {
        return refuse("it is a symbolic link".to_owned());
    }
    if !kind.is_dir() {
        return refuse("it is not a directory".to_owned());
    }
    if !path.join(RUN_FILE).is_file() {
        return Err(StoreError::NoRunThere { path: path.to_owned() });
    }
    if let Err(error) = reader::check_head(path) {
        return refuse(format!("its `{RUN_FILE}` is not ours ({error})"));
    }
    let mut own_reports = Vec::new();
    for entry in fs::read_dir(path).map_err(|e| StoreError::io(path, "list", e))? {
        let entry = entry.map_err(|e| StoreError::io(path, "list", e))?;
        let name = entry.file_name();
        let is_own_report = name.to_str().is_some_and(is_own_report);
        if is_own_report {
            own_reports.push(name.clone());
        }
        let known = is_own_report || KNOWN_FILES.iter().any(|known| name == *known);
        let plain = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !(known && plain) {
            return refuse(format!("`{}` in it does not belong to a run", name.to_string_lossy()));
        }
    }
    // `run.json` comes last in the list: as long as it is there, the directory is known as ours.
    for name in own_reports.iter().map(Path::new).chain(KNOWN_FILES.map(Path::new)) {
        let file = path.join(name);
        match files::remove(&file) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io(&file, "remove", error)),
        }
    }
    files::remove_directory(path).map_err(|e| StoreError::io(path, "remove", e))
}

const CUT_SHORT: &str = "the file is cut short; copy it again from where it came from";
const LIMITS: &str = "no run of this program is that large; docs/help/troubleshooting.md has the limits";
const PAGE_LIMITS: &str =
    "`plimsoll report` and `plimsoll compare` take larger runs; docs/help/troubleshooting.md has the limits";
const NO_RUN: &str = "a run is a directory with a `run.json` written by this program";

/// What went wrong with the store or with one run in it. Nothing that was there before is lost by any of them.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum StoreError {
    /// The operating system refused.
    #[error("cannot {doing} `{}`: {source}", path.display())]
    #[diagnostic(help("{}", hint_for_io(source)))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried, as an infinitive.
        doing: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// A document is cut short, is not JSON, or is not a run.
    #[error("cannot read `{}`, line {line}, column {column}: {reason}", path.display())]
    #[diagnostic(help("{}", if *cut_short { CUT_SHORT } else { NO_RUN }))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1; 0 is before the first character.
        column: usize,
        /// What the parser found.
        reason: String,
        /// Whether the text ends before the document does.
        cut_short: bool,
    },
    /// A run made before there was a release, whose load is text.
    #[error("`{}` was made before the first release, and its record is not read any more", path.display())]
    #[diagnostic(help("measure or import again; the version of the program that made it still reads it"))]
    OlderFormat {
        /// The file.
        path: PathBuf,
    },
    /// A run made by a later version of the program.
    #[error("`{}` has format {format}, but this program reads formats up to {newest}", path.display())]
    #[diagnostic(help("read it with the version of the program that made it, or a later one"))]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The newest that is understood.
        newest: u32,
    },
    /// A run that is larger than those which are read, so that whoever made it cannot exhaust the machine of whoever reads it.
    #[error("`{}` is too large{}: it has {what}", path.display(), if *is_page { " for a page" } else { "" })]
    #[diagnostic(help("{}", if *is_page { PAGE_LIMITS } else { LIMITS }))]
    TooMuch {
        /// The run's directory, or the file.
        path: PathBuf,
        /// What it has too much of.
        what: String,
        /// Whether other limits hold elsewhere.
        is_page: bool,
    },
    /// The time for reading is over.
    #[error("`{}` takes too long to read for a page", path.display())]
    #[diagnostic(help("`plimsoll report` makes its page without a limit of time"))]
    TooSlow {
        /// The run's directory.
        path: PathBuf,
    },
    /// No run of that name.
    #[error("there is no run `{name}` in `{}`", store.display())]
    #[diagnostic(help("`plimsoll runs list` shows what there is; a tag `vm=d8s` or a run's directory works too"))]
    NotFound {
        /// What was asked for.
        name: String,
        /// Where it was looked for.
        store: PathBuf,
    },
    /// The path given holds no run.
    #[error("`{}` holds no run: there is no `run.json`", path.display())]
    #[diagnostic(help("give the directory that holds `run.json`, or that file itself"))]
    NoRunThere {
        /// The path.
        path: PathBuf,
    },
    /// Several runs answer to the name.
    #[error("`{name}` may be any of {}", candidates.join(", "))]
    #[diagnostic(help("name one of them: give more of its id"))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// Ids of the runs that match.
        candidates: Vec<String>,
    },
    /// An id that cannot be the name of a directory.
    #[error(
        "`{id}` cannot be the id of a run: an id has letters, digits, `-`, `_` and `.`, and does not begin with `.`"
    )]
    BadId {
        /// The id.
        id: String,
    },
    /// Whoever makes the run would write over a change.
    #[error("`{id}` has no end: it still goes on, or was killed")]
    #[diagnostic(help("wait until it has ended; a run that was killed keeps its tags"))]
    StillGoesOn {
        /// Its id.
        id: String,
    },
    /// Something that is not ours would be lost.
    #[error("`{}` is not removed: {reason}", path.display())]
    #[diagnostic(help("look into the directory, and remove by hand what is not needed"))]
    NotRemoved {
        /// The directory.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl StoreError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        crate::hint(self)
    }

    fn io(path: &Path, doing: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), doing, source }
    }

    fn json(path: &Path, error: &serde_json::Error) -> Self {
        let full = error.to_string();
        let reason = full.split(" at line ").next().unwrap_or(&full).to_owned();
        Self::Unreadable {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
            reason,
            cut_short: error.is_eof(),
        }
    }
}

fn hint_for_io(source: &io::Error) -> &'static str {
    match files::refusal(source) {
        Some(files::Refusal::NotPlain(_)) => return "a run consists of plain files in its own folder; put a copy there",
        Some(refusal) => return refusal.hint(),
        None => {}
    }
    match source.kind() {
        io::ErrorKind::PermissionDenied => "choose a directory that you may write to",
        io::ErrorKind::StorageFull => "free some space; what was written before is intact",
        io::ErrorKind::ReadOnlyFilesystem => "choose a directory on a writable file system",
        io::ErrorKind::NotFound => {
            "a directory on the way to it is missing or was removed; choose one that you may write to"
        }
        io::ErrorKind::NotADirectory => "choose a directory, or a path that does not exist yet",
        io::ErrorKind::FileTooLarge => "the file size limit of this process is reached: `ulimit -f unlimited`",
        _ if matches!(source.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
            "raise the limit of open files: `ulimit -n 65536`"
        }
        _ => "",
    }
}

/// Longest that reading one run for a list may take.
const LONGEST_SUMMARY: Duration = Duration::from_secs(5);
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
        let read = reader::summarise(&path, Allowance::of_page(Instant::now() + LONGEST_SUMMARY));
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
mod tests;

#[cfg(test)]
mod index_tests;

#[cfg(test)]
mod hostile_tests;
