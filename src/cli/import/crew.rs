//! Reads units on all processors and hands them on in their order.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};

use super::walk::Unit;
use crate::observed;
use import::{self, FileRead, ImportError};
use model::record::Run;

/// What came of a unit.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Runs without ids.
    pub(super) runs: Vec<Run>,
    /// Files that could not be imported, though they should have been.
    pub(super) problems: Vec<ImportError>,
    /// Files that nobody named and that are no results.
    pub(super) passed_over: Vec<PathBuf>,
    /// Files that hold the same as another one of their folder, and that one.
    pub(super) repeated: Vec<(PathBuf, PathBuf)>,
    /// Files that were looked at, and their size on the disk.
    pub(super) files: usize,
    pub(super) bytes: u64,
}

/// Reads `units`, each by one of the workers, and calls `take` with each outcome in their order, until it fails or `stop` is set.
///
/// # Errors
/// Those of `take`.
pub(super) fn read<E>(units: &[Unit], stop: &AtomicBool, take: impl FnMut(Outcome) -> Result<(), E>) -> Result<(), E> {
    let one_trace = Mutex::new(());
    read_by(|unit| outcome(unit, &Traces { stop, one: &one_trace }), units, stop, take)
}

fn read_by<E>(
    outcome: impl Fn(&Unit) -> Outcome + Sync,
    units: &[Unit],
    stop: &AtomicBool,
    mut take: impl FnMut(Outcome) -> Result<(), E>,
) -> Result<(), E> {
    let workers = std::thread::available_parallelism().map_or(1, NonZero::get).min(units.len().max(1));
    let next = AtomicUsize::new(0);
    let gate = Gate::default();
    std::thread::scope(|scope| {
        // A few outcomes at most wait for one that takes long: each may hold many runs.
        let (sender, outcomes) = mpsc::sync_channel(workers);
        let most_ahead = MAX_AHEAD * workers;
        let mut started = 0;
        for _ in 0..workers {
            let (sender, next, gate, outcome) = (sender.clone(), &next, &gate, &outcome);
            let spawned = std::thread::Builder::new().spawn_scoped(scope, move || {
                let _wake_others = WakeOthers { gate, next, units: units.len() };
                while !stop.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(unit) = units.get(at) else { break };
                    gate.wait(|due| at < due.saturating_add(most_ahead));
                    // Nobody takes outcomes any more after an error.
                    if sender.send((at, outcome(unit))).is_err() {
                        break;
                    }
                }
            });
            // Fewer workers do where a limit forbids more: only time is lost.
            started += usize::from(spawned.is_ok());
        }
        drop(sender);
        if started == 0 {
            return units.iter().take_while(|_| !stop.load(Ordering::Relaxed)).try_for_each(|unit| take(outcome(unit)));
        }
        let mut early: BTreeMap<usize, Outcome> = BTreeMap::new();
        let mut due = 0;
        let taken = (|| {
            for (at, outcome) in outcomes {
                early.insert(at, outcome);
                while let Some(outcome) = early.remove(&due) {
                    due += 1;
                    gate.open(due);
                    take(outcome)?;
                }
            }
            Ok(())
        })();
        // Workers that wait must not do so for ever.
        gate.open(usize::MAX);
        taken
    })
}

/// Units that may be read beyond the one that is due, for each worker.
const MAX_AHEAD: usize = 8;

/// Which unit is due, for workers that must not run too far ahead of it.
#[derive(Default)]
struct Gate {
    due: Mutex<usize>,
    moved: Condvar,
}

impl Gate {
    fn open(&self, due: usize) {
        let mut so_far = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        *so_far = (*so_far).max(due);
        drop(so_far);
        self.moved.notify_all();
    }

    fn wait(&self, may_go: impl Fn(usize) -> bool) {
        let due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.moved.wait_while(due, |due| !may_go(*due)).unwrap_or_else(PoisonError::into_inner));
    }
}

/// Ends the other workers if one panics: what it was to read will never be due, and they would wait for it for ever.
struct WakeOthers<'a> {
    gate: &'a Gate,
    next: &'a AtomicUsize,
    units: usize,
}

impl Drop for WakeOthers<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.next.store(self.units, Ordering::Relaxed);
            self.gate.open(usize::MAX);
        }
    }
}

/// What is said of a file such as `slob.conf` that was named and is in no run.
const NOT_JOINED: &str = "it reports on a run and is none, and there is not exactly one result beside it";

/// How workers read traces.
struct Traces<'a> {
    /// A trace takes minutes: what was read of one is dropped when this is set.
    stop: &'a AtomicBool,
    /// The tables of a long trace take hundreds of megabytes, so workers read one at a time.
    one: &'a Mutex<()>,
}

impl Traces<'_> {
    /// The file at `path`; absent where it is a trace and the import was stopped.
    fn read(&self, path: &Path) -> Result<Option<FileRead>, ImportError> {
        if !observed::is_trace(path) {
            return import::read_file(path).map(Some);
        }
        let _one = self.one.lock().unwrap_or_else(PoisonError::into_inner);
        observed::read_file(path, self.stop)
    }
}

fn outcome(unit: &Unit, traces: &Traces<'_>) -> Outcome {
    let mut outcome = Outcome { files: unit.files.len(), bytes: unit.bytes, ..Outcome::default() };
    let (mut read, mut unjoined) = (Vec::new(), Vec::new());
    let mut contents: BTreeMap<String, &PathBuf> = BTreeMap::new();
    for (path, is_named) in &unit.files {
        match traces.read(path) {
            Ok(None) => outcome.files -= 1,
            Ok(Some(file)) => {
                // Before files are joined: two copies would be two results, and nothing is joined to one of several.
                if let Some(first) = contents.get(&file.file.crc64) {
                    outcome.repeated.push((path.clone(), (*first).clone()));
                    continue;
                }
                contents.insert(file.file.crc64.clone(), path);
                unjoined.push((file.file.path.clone(), path, *is_named));
                read.push(file);
            }
            Err(
                ImportError::NotRecognised { .. }
                | ImportError::NotRead { .. }
                | ImportError::NotText { .. }
                | ImportError::NoResult { .. },
            ) if !is_named => {
                outcome.passed_over.push(path.clone());
            }
            Err(problem) => outcome.problems.push(problem),
        }
    }
    outcome.runs = import::runs(read);
    // Settings of a run are in it, or in none.
    let of_runs = outcome.runs.iter().filter_map(|run| run.imported.as_ref()).flat_map(|imported| &imported.files);
    let of_runs: BTreeSet<&str> = of_runs.map(|file| file.path.as_str()).collect();
    unjoined.retain(|(shown, ..)| !of_runs.contains(shown.as_str()));
    for (shown, path, is_named) in unjoined {
        match is_named {
            true => outcome.problems.push(ImportError::NoResult { path: shown, what: NOT_JOINED.to_owned() }),
            false => outcome.passed_over.push(path.clone()),
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(count: u64) -> Vec<Unit> {
        (0..count).map(|bytes| Unit { files: Vec::new(), bytes }).collect()
    }

    fn alone(unit: &Unit) -> Outcome {
        outcome(unit, &Traces { stop: &AtomicBool::new(false), one: &Mutex::new(()) })
    }

    fn as_reported(unit: &Unit) -> Outcome {
        Outcome { bytes: unit.bytes, ..Outcome::default() }
    }

    #[test]
    fn outcomes_come_in_the_order_of_their_units() {
        let mut taken = Vec::new();
        let all: Result<(), ()> = read_by(as_reported, &units(500), &AtomicBool::new(false), |outcome| {
            taken.push(outcome.bytes);
            Ok(())
        });
        assert_eq!((all, taken), (Ok(()), (0..500).collect::<Vec<u64>>()));
    }

    #[test]
    fn an_error_ends_the_reading() {
        let all = read_by(as_reported, &units(500), &AtomicBool::new(false), |outcome| match outcome.bytes {
            7 => Err("full"),
            _ => Ok(()),
        });
        assert_eq!(all, Err("full"));
    }

    #[test]
    fn a_worker_that_panics_does_not_leave_the_others_waiting() {
        let (units, stop) = (units(500), AtomicBool::new(false));
        let panics = |unit: &Unit| match unit.bytes {
            3 => panic!("a bug of an importer"),
            _ => as_reported(unit),
        };
        let read = std::panic::AssertUnwindSafe(|| read_by::<()>(panics, &units, &stop, |_| Ok(())));
        assert!(std::panic::catch_unwind(read).is_err());
    }

    #[test]
    fn a_copy_does_not_keep_settings_from_the_run_that_they_are_of() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            ("a.csv", "EVENT,WAIT_TIME_MICRO,WAIT_COUNT\na,1,7\n"),
            ("slob.conf", "UPDATE_PCT=20\nRUN_TIME=300\nWORK_UNIT=64\n"),
        ];
        let mut paths: Vec<PathBuf> = files
            .iter()
            .map(|(name, text)| {
                let path = folder.path().join(name);
                std::fs::write(&path, text).unwrap();
                path
            })
            .collect();
        let copies = [folder.path().join("b.csv"), folder.path().join("c.csv")];
        std::fs::hard_link(&paths[0], &copies[0]).unwrap();
        std::os::unix::fs::symlink(&paths[0], &copies[1]).unwrap();
        paths.extend(copies.clone());
        let files = paths.iter().map(|path| (path.clone(), true)).collect();
        let outcome = alone(&Unit { files, bytes: 0 });
        assert_eq!((outcome.runs.len(), outcome.problems.len()), (1, 0));
        assert_eq!(outcome.runs[0].parameters["WORK_UNIT"], "64");
        assert_eq!(outcome.repeated, copies.map(|copy| (copy, paths[0].clone())));
    }

    #[test]
    fn settings_that_are_in_no_run_are_passed_over_or_an_error_where_they_were_named() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let settings = write("slob.conf", "UPDATE_PCT=20\nRUN_TIME=300\nWORK_UNIT=64\n");
        let results = ["one", "two"]
            .map(|event| write(&format!("{event}.csv"), &format!("EVENT,WAIT_TIME_MICRO,WAIT_COUNT\n{event},1,7\n")));
        let of = |results: &[PathBuf], is_named: bool| {
            let files = results.iter().map(|path| (path.clone(), true)).chain([(settings.clone(), is_named)]).collect();
            let outcome = alone(&Unit { files, bytes: 0 });
            (outcome.runs.len(), outcome.passed_over.len(), outcome.problems.len())
        };
        assert_eq!(of(&results[..1], true), (1, 0, 0));
        for results in [&results[..0], &results[..]] {
            assert_eq!(of(results, false), (results.len(), 1, 0));
            assert_eq!(of(results, true), (results.len(), 0, 1));
        }
    }
}
