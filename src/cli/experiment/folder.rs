//! An experiment's folder: a copy of its file, its runs, and its page. What is still to do follows from the runs.

use std::collections::BTreeSet;
use std::fs::{self, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::asked::{self, Asked, FILE, MAX_FILE};
use crate::cli::exit::Failure;
use crate::cli::say;
use crate::plan::experiment::Turn;
use analysis::FailureCost;
use files::{How, LockedFile};
use model::plain::{self, Links};
use model::record::store::{self, Store};
use model::record::{ExperimentMark, Outcome, Run};

/// The page.
pub(super) const PAGE: &str = "experiment.html";
/// What is locked while the experiment is carried out.
const LOCK: &str = "experiment.lock";

/// A folder that this process alone works in.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    _lock: LockedFile,
}

impl Folder {
    /// Makes it, or goes on in it if it is of the same experiment. With `fresh` one that is there gets another name first.
    pub(super) fn open(asked: &Asked, path: &Path, fresh: bool) -> Result<Self, Failure> {
        check(asked, path, fresh)?;
        if fresh && path.exists() {
            // Whoever carries it out holds it until it ends.
            drop(lock(path)?);
            let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
            let kept = path.with_file_name(format!("{}-until-{now}", asked.name));
            files::rename(path, &kept).map_err(|error| cannot("rename", path, &error))?;
            say::line(format_args!("what was measured before is kept in `{}`", kept.display()));
        }
        files::make_directories(path).map_err(|error| cannot("make directory", path, &error))?;
        let lock = lock(path)?;
        // A copy of the same experiment may have had another title or budget.
        let copy = path.join(FILE);
        files::write_result(&copy, |out| out.write_all(asked.text.as_bytes()))
            .map_err(|error| cannot("write", &copy, &error))?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }
}

/// Refuses a folder of another experiment, or of somebody else. Writes nothing.
pub(super) fn check(asked: &Asked, path: &Path, fresh: bool) -> Result<(), Failure> {
    let copy = path.join(FILE);
    let text = match plain::read_text(&copy, Links::Refused, MAX_FILE) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let is_empty = fs::read_dir(path).map_or(true, |mut entries| entries.next().is_none());
            if is_empty {
                return Ok(());
            }
            let failure =
                Failure::new(format_args!("`{}` exists already, and does not belong to an experiment", path.display()));
            return Err(
                failure.with_hint("call the file otherwise, or keep its runs elsewhere: `--runs DIR`".to_owned())
            );
        }
        Err(error) => return Err(cannot("read", &copy, &error)),
    };
    if fresh {
        return Ok(());
    }
    let is_same = asked::plan(&copy, &text).is_ok_and(|kept| kept.measures_the_same(&asked.plan));
    if is_same {
        return Ok(());
    }
    let (file, folder) = (asked.file.display(), path.display());
    let failure = Failure::new(format_args!("`{file}` asks for something else than what was begun in `{folder}`"));
    Err(failure.with_hint(format!(
        "`--fresh` starts over, and keeps earlier measurements under another name. `{}` is what was requested before",
        copy.display()
    )))
}

fn lock(path: &Path) -> Result<LockedFile, Failure> {
    let file = path.join(LOCK);
    let lock = files::open_or_make_own(&file, How::default()).map_err(|error| cannot("write", &file, &error))?;
    let lock = LockedFile::from(lock);
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            let failure =
                Failure::new(format_args!("another process carries out the experiment in `{}`", path.display()));
            Err(failure.with_hint("wait until it ends, or end it: what was measured is kept".to_owned()))
        }
        Err(TryLockError::Error(error)) => Err(cannot("lock", &file, &error)),
    }
}

fn cannot(doing: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::of_file(doing, path, error)
}

/// The runs of an experiment that are whole, each with its turn, in the order of steps and rounds; the last one of each turn. What
/// cannot be read is said.
pub(super) fn runs(asked: &Asked, path: &Path) -> Result<Vec<(Turn, Run)>, Failure> {
    let mut found: Vec<(Turn, Run)> = Vec::new();
    for (turn, run) in turns_done(asked, path) {
        found.retain(|(known, _)| *known != turn);
        found.push((turn, store::load(&run)?));
    }
    found.sort_by_key(|(turn, _)| (turn.step, turn.round));
    Ok(found)
}

/// The turns whose runs are whole.
pub(super) fn done(asked: &Asked, path: &Path) -> BTreeSet<Turn> {
    turns_done(asked, path).into_iter().map(|(turn, _)| turn).collect()
}

fn turns_done(asked: &Asked, path: &Path) -> Vec<(Turn, PathBuf)> {
    let (runs, problems) = Store::new(path).list();
    problems.iter().for_each(say::note);
    let turn = |run: &store::Summary| {
        let mark = ExperimentMark::of_tags(&run.tags)?;
        let turn = Turn { round: mark.round, step: usize::try_from(mark.step).ok()?.checked_sub(1)? };
        asked.plan.turns.contains(&turn).then_some(turn)
    };
    let whole = runs.into_iter().filter(|run| run.outcome == Outcome::Completed);
    // A run without the failure that it was to have is another measurement.
    let is_as_asked = |(turn, run): &(Turn, PathBuf)| {
        let has_failure = |run: Run| FailureCost::of(&run).is_some();
        !asked.has_failure(turn.step) || store::load(run).is_ok_and(has_failure)
    };
    whole.filter_map(|run| Some((turn(&run)?, run.path))).filter(is_as_asked).collect()
}
