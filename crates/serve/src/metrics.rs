//! What runs in progress have done so far. Each line of their intervals is read once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::problem::Problem;
use super::state::State;
use model::record::store::{INTERVALS_FILE, IntervalLines, Look, Stamp};
use model::record::{Interval, Timestamp};
use report::openmetrics::{self, SoFar};

/// Runs in progress, each with what was read of it.
#[derive(Debug, Default)]
pub(super) struct Metrics(Mutex<HashMap<PathBuf, Followed>>);

/// A run that is read as it grows.
#[derive(Debug)]
struct Followed {
    /// The file that was opened: another one of the same name is another run's.
    inode: u64,
    lines: IntervalLines,
    so_far: SoFar,
}

impl Metrics {
    /// The text of all runs that go on. What has ended, or was read wrong, is forgotten.
    pub(super) fn text(&self, runs: &Look, now: Timestamp) -> Result<String, Problem> {
        let going_on: Vec<_> = runs
            .iter()
            .filter_map(|run| Some((run, run.read.as_ref().ok()?)))
            .filter(|(run, summary)| State::of(&summary.outcome, run.written_at, now) == State::InProgress)
            .collect();
        let mut followed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        followed.retain(|path, _| going_on.iter().any(|(run, _)| run.path == *path));
        for (run, _) in &going_on {
            let before = followed.remove(&run.path);
            if let Some(now) = read_on(&run.path, before)? {
                followed.insert(run.path.clone(), now);
            }
        }
        // A run that has only just begun has no intervals, and nothing to report but its name.
        let nothing = SoFar::default();
        let so_far = |path: &Path| followed.get(path).map_or(&nothing, |followed| &followed.so_far);
        let runs: Vec<_> =
            going_on.iter().map(|(run, summary)| (run.key.as_str(), *summary, so_far(&run.path))).collect();
        Ok(openmetrics::text(&runs))
    }
}

/// Reads what has been added to a run since it was last read.
fn read_on(directory: &Path, before: Option<Followed>) -> Result<Option<Followed>, Problem> {
    let Some(stamp) = Stamp::of(&directory.join(INTERVALS_FILE)) else { return Ok(None) };
    let mut followed = match before.filter(|followed| followed.inode == stamp.inode) {
        Some(followed) => followed,
        None => {
            let Some(lines) = IntervalLines::open(directory)? else { return Ok(None) };
            Followed { inode: stamp.inode, lines, so_far: SoFar::default() }
        }
    };
    while let Some(interval) = followed.lines.read::<Interval>()? {
        followed.so_far.add(&interval);
    }
    // Half a line was taken, whose other half would be no interval: the next time begins anew.
    if followed.lines.is_cut_short() {
        followed.inode = 0
    }
    Ok(Some(followed))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;
    use model::record::store::{Index, Store};
    use model::record::{Outcome, sample};

    struct Kept {
        _directory: tempfile::TempDir,
        index: Index,
        run: PathBuf,
        metrics: Metrics,
    }

    impl Kept {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let store = Store::new(directory.path());
            let mut run = sample::updates(3);
            run.outcome = Outcome::Unfinished;
            let path = store.save(&run).unwrap();
            Self { _directory: directory, index: Index::new(store), run: path, metrics: Metrics::default() }
        }

        fn operations(&mut self) -> Option<u64> {
            self.index.refresh().unwrap();
            let text = self.metrics.text(&self.index.runs(), Timestamp(jiff::Timestamp::now())).unwrap();
            let line = text.lines().find(|line| line.starts_with("plimsoll_operations_total"))?;
            line.rsplit(' ').next()?.parse().ok()
        }
    }

    #[test]
    fn a_run_that_goes_on_is_read_as_it_grows() {
        let mut kept = Kept::new();
        let before = kept.operations().unwrap();
        assert_eq!(kept.operations(), Some(before), "nothing was added");
        let path = kept.run.join(INTERVALS_FILE);
        let lines = fs::read_to_string(&path).unwrap();
        let last = lines.lines().last().unwrap().to_owned();
        let more = serde_json::from_str::<Interval>(&last).unwrap().counters.operations.unwrap();
        let mut file = fs::File::options().append(true).open(&path).unwrap();
        writeln!(file, "{last}").unwrap();
        assert_eq!(kept.operations(), Some(before + more));
        // Half a line counts for nothing, and for all of itself once it is whole.
        write!(file, "{}", &last[..last.len() / 2]).unwrap();
        assert_eq!(kept.operations(), Some(before + more));
        writeln!(file, "{}", &last[last.len() / 2..]).unwrap();
        assert_eq!(kept.operations(), Some(before + 2 * more));
    }

    #[test]
    fn a_run_that_has_ended_is_gone() {
        let mut kept = Kept::new();
        assert!(kept.operations().is_some());
        let text = fs::read_to_string(kept.run.join("run.json")).unwrap().replace("\"unfinished\"", "\"completed\"");
        fs::write(kept.run.join("run.json"), text).unwrap();
        assert_eq!(kept.operations(), None);
        let text = kept.metrics.text(&kept.index.runs(), Timestamp(jiff::Timestamp::now())).unwrap();
        assert!(text.ends_with("# EOF\n") && !text.contains("plimsoll_run_info{"), "{text}");
        assert!(kept.metrics.0.lock().unwrap().is_empty());
    }
}
