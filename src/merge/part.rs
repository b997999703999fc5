//! One part: its document, and where its intervals lie.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering as Atomic};
use std::thread;

use serde::Deserialize;

use super::MergeError;
use model::record::store::{IntervalLines, document};
use model::record::{FleetPart, Interval, Run};

/// More parts than this are an error in a document and no fleet.
pub const MAX_PARTS: u32 = 65_536;

/// One part of a fleet's experiment, its histograms packed and its intervals not read yet.
#[derive(Debug)]
pub struct Part {
    pub(super) run: Run,
    pub(super) place: FleetPart,
    pub(super) source: Source,
    /// What is known of the intervals of each step, in the order of `run.steps`.
    pub(super) seconds: Vec<Vec<Second>>,
}

/// Where the intervals of a part are.
#[derive(Debug)]
pub(super) enum Source {
    /// In the directory of its run.
    Kept(PathBuf),
    /// Here.
    Held(Vec<Interval>),
}

/// What has to be known of an interval before it is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Second {
    /// Which of all intervals of the run it is.
    pub(super) line: usize,
    pub(super) duration_ns: u64,
    pub(super) warmup: bool,
    pub(super) operations: Option<u64>,
}

/// The beginning of an interval. What is not named is passed over without being decoded.
#[derive(Deserialize)]
struct Head {
    step: u32,
    duration_ns: u64,
    warmup: bool,
    counters: Counted,
}

#[derive(Deserialize)]
struct Counted {
    #[serde(default)]
    operations: Option<u64>,
}

impl From<&Interval> for Head {
    fn from(interval: &Interval) -> Self {
        let Interval { step, duration_ns, warmup, .. } = *interval;
        let counters = Counted { operations: interval.counters.operations };
        Self { step, duration_ns, warmup, counters }
    }
}

impl Part {
    /// Reads the part in a run's directory.
    ///
    /// # Errors
    /// If there is no run, it cannot be read, or it is no part.
    pub fn open(path: &Path) -> Result<Self, MergeError> {
        let (directory, run) = document(path)?;
        let mut part = Self::new(run, Source::Kept(directory.clone()))?;
        if let Some(mut lines) = IntervalLines::open(&directory)? {
            let mut line = 0;
            while let Some(head) = lines.read::<Head>()? {
                part.know(line, &head);
                line += 1;
            }
        }
        Ok(part)
    }

    /// Reads many of them, on several processors.
    ///
    /// # Errors
    /// The first of those that [`open`](Self::open) has; [`MergeError::Stopped`] if `stop` was set.
    pub fn open_all(paths: &[PathBuf], stop: &AtomicBool) -> Result<Vec<Self>, MergeError> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut read = Vec::new();
            while let Some(path) = paths.get(next.fetch_add(1, Atomic::Relaxed)) {
                if stop.load(Atomic::Relaxed) {
                    return Err(MergeError::Stopped);
                }
                read.push(Self::open(path)?);
            }
            Ok(read)
        };
        thread::scope(|scope| {
            // There are fewer where a limit forbids more threads: only time is lost.
            let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
            let workers: Vec<_> = (1..workers()).filter_map(start).collect();
            let mut read = work()?;
            for worker in workers {
                read.extend(worker.join().expect("reading a document does not panic")?);
            }
            Ok(read)
        })
    }

    /// A run that is held with all of its intervals.
    ///
    /// # Errors
    /// If it is no part.
    pub fn of(mut run: Run) -> Result<Self, MergeError> {
        let held: Vec<Interval> = run.steps.iter_mut().flat_map(|step| std::mem::take(&mut step.intervals)).collect();
        let heads: Vec<Head> = held.iter().map(Head::from).collect();
        let mut part = Self::new(run, Source::Held(held))?;
        heads.iter().enumerate().for_each(|(line, head)| part.know(line, head));
        Ok(part)
    }

    fn new(mut run: Run, source: Source) -> Result<Self, MergeError> {
        let Some(place) = run.part.clone() else { return Err(MergeError::NotAPart { run: run.id }) };
        if place.number >= place.parts || place.parts > MAX_PARTS {
            return Err(MergeError::BadPlace { run: run.id, number: place.number, parts: place.parts });
        }
        run.steps.iter_mut().for_each(model::record::Step::pack);
        let seconds = vec![Vec::new(); run.steps.len()];
        Ok(Self { run, place, source, seconds })
    }

    fn know(&mut self, line: usize, head: &Head) {
        let at = self.run.steps.iter().position(|step| step.index == head.step);
        if let Some(seconds) = at.and_then(|at| self.seconds.get_mut(at)) {
            let Head { duration_ns, warmup, .. } = *head;
            seconds.push(Second { line, duration_ns, warmup, operations: head.counters.operations });
        }
    }

    /// By what parts are sorted, so that the order in which they are named does not matter.
    pub(super) fn order(&self) -> impl Ord + use<'_> {
        (self.place.number, &self.run.id, self.host())
    }

    /// The machine that it ran on; a run that does not say is taken for one of its own.
    pub(super) fn host(&self) -> &str {
        self.run.environment.hostname.as_deref().unwrap_or(&self.run.id)
    }
}

/// Threads that read.
pub(super) fn workers() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The largest by `of`, of equals the first.
pub(super) fn widest<T>(all: impl IntoIterator<Item = T>, of: impl Fn(&T) -> u64) -> Option<T> {
    all.into_iter().reduce(|best, next| if of(&next).cmp(&of(&best)) == Ordering::Greater { next } else { best })
}
