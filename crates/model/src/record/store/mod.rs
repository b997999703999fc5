//! Runs on disk: a directory of run directories, each with a `run.json` and the interval series beside it.

mod error;
mod headline;
mod index;
mod lines;
mod reader;
mod recover;
mod writer;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use error::StoreError;
pub use headline::{Headline, Limit};
pub use index::{Index, Indexed, Look, Stamp, Stamps};
pub use lines::IntervalLines;
pub use reader::{Summary, document, load};
pub use writer::{RunWriter, tag};

use super::{Run, Timestamp};

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
                Ok(entry) if entry.path().join(RUN_FILE).is_file() => match reader::summarise(&entry.path()) {
                    Ok(summary) => summaries.push(summary),
                    Err(error) => problems.push(error),
                },
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
        let mut runs: Vec<Summary> = paths.iter().map(|path| reader::summarise(path)).collect::<Result<_, _>>()?;
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
        match fs::remove_file(&file) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io(&file, "remove", error)),
        }
    }
    fs::remove_dir(path).map_err(|e| StoreError::io(path, "remove", e))
}

#[cfg(test)]
mod tests;
