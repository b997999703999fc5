//! Reads units on all processors and hands them on in their order.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};

use super::walk::Unit;
use crate::import::{self, ImportError};
use crate::record::Run;

/// What came of a unit.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Runs without ids.
    pub(super) runs: Vec<Run>,
    /// Files that could not be imported, though they should have been.
    pub(super) problems: Vec<ImportError>,
    /// Files that nobody named and that are no results.
    pub(super) passed_over: Vec<PathBuf>,
    /// Files that were looked at, and their size on the disk.
    pub(super) files: usize,
    pub(super) bytes: u64,
}

/// Reads `units`, each by one of the workers, and calls `take` with each outcome in their order, until it fails or `stop` is set.
///
/// # Errors
/// Those of `take`.
pub(super) fn read<E>(
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
        let most_ahead = MOST_AHEAD * workers;
        for _ in 0..workers {
            let (sender, next, gate) = (sender.clone(), &next, &gate);
            scope.spawn(move || {
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
        }
        drop(sender);
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
const MOST_AHEAD: usize = 8;

/// Which unit is due, for workers that must not run too far ahead of it.
#[derive(Default)]
struct Gate {
    due: Mutex<usize>,
    moved: Condvar,
}

impl Gate {
    fn open(&self, due: usize) {
        *self.due.lock().unwrap_or_else(PoisonError::into_inner) = due;
        self.moved.notify_all();
    }

    fn wait(&self, may_go: impl Fn(usize) -> bool) {
        let due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.moved.wait_while(due, |due| !may_go(*due)).unwrap_or_else(PoisonError::into_inner));
    }
}

fn outcome(unit: &Unit) -> Outcome {
    let mut outcome = Outcome { files: unit.files.len(), bytes: unit.bytes, ..Outcome::default() };
    let mut read = Vec::new();
    for (path, is_named) in &unit.files {
        match import::read_file(path) {
            Ok(file) => read.push(file),
            Err(ImportError::NotRecognised { .. } | ImportError::NotText { .. } | ImportError::NoResult { .. })
                if !is_named =>
            {
                outcome.passed_over.push(path.clone());
            }
            Err(problem) => outcome.problems.push(problem),
        }
    }
    outcome.runs = import::runs(read);
    outcome
}
