//! The one way of every load: from its plan to a dry run, or over its steps to a record and a report.

use std::path::PathBuf;

use super::Interrupt;
use super::arguments::KeepingArgs;
use super::dry_run::DryRun;
use super::exit::{Exit, Failure};
use super::fleet::Joined;
use super::live::{RunProgress, Steps};
use super::recording::{Recorded, Recording};
use crate::plan::RunHead;
use analysis::{LatencyTarget, SearchPlan};
use measure::Clock;
use model::config::io::RateRange;
use model::record::{self, CheckRequest, Like};
use model::units::Nanos;
use targets::Target;

/// A load that is planned and checked, and has touched nothing. `'a` is how long the command line lives.
pub(super) trait Work<'a>: Sized {
    /// What is known of it before anything is opened.
    fn outline(&self) -> Outline<'a>;

    /// What would be done.
    fn described(self) -> Result<DryRun, Failure>;

    /// Opens where it lands, begins to record, carries out its steps, and closes what it has opened.
    fn carry_out(self, beginning: Beginning<'_>) -> Result<Recorded, Failure>;
}

/// What every load has, whatever it does.
#[derive(Clone)]
pub(super) struct Outline<'a> {
    /// Its name, its load and what else is planned.
    pub(super) head: RunHead,
    /// How the run is kept and reported.
    pub(super) keeping: &'a KeepingArgs,
    /// What it has to do with other processes, if anything.
    pub(super) joined: Option<Joined>,
    /// Latencies that it must keep.
    pub(super) limits: Vec<LatencyTarget>,
    /// What it is asked whether the platform carries it, if it is a check.
    pub(super) check: Option<CheckRequest>,
    /// The production that it is made like.
    pub(super) like: Option<Like>,
    /// How many steps are expected.
    pub(super) steps: Steps,
    /// How long load is on, of a search at most; `None` where that follows from what is measured.
    pub(super) time: Option<Nanos>,
    /// Whether time is only simulated.
    pub(super) is_simulated: bool,
}

impl<'a> Outline<'a> {
    /// Of a load by itself that keeps no limit.
    pub(super) fn new(head: &RunHead, keeping: &'a KeepingArgs, steps: Steps) -> Self {
        let time = match steps {
            Steps::Known(_, time) => Some(time),
            Steps::UpTo(_) | Steps::About(_) => None,
        };
        Self {
            head: head.clone(),
            keeping,
            joined: None,
            limits: Vec::new(),
            check: None,
            like: None,
            steps,
            time,
            is_simulated: false,
        }
    }

    /// The same of so many `levels` of `each` length, or of a search for a rate.
    pub(super) fn of_rates(
        head: &RunHead,
        keeping: &'a KeepingArgs,
        rates: Option<&RateRange>,
        levels: usize,
        each: Nanos,
    ) -> Self {
        let total = |steps: usize| Nanos(each.0.saturating_mul(steps as u64));
        match rates {
            Some(RateRange::Between { .. }) => {
                let most = SearchPlan::default().max_points;
                Self { time: Some(total(most)), ..Self::new(head, keeping, Steps::UpTo(most)) }
            }
            Some(RateRange::Each(_)) | None => Self::new(head, keeping, Steps::Known(levels, total(levels))),
        }
    }

    /// A run of it that is about to begin.
    pub(super) fn beginning(self, interrupt: &'a Interrupt) -> Beginning<'a> {
        let progress = RunProgress::new(self.steps, self.keeping.progress.verbosity());
        let has_users = matches!(self.head.load, record::Load::Orders(_));
        let progress = if has_users { progress.of_transactions() } else { progress };
        Beginning { outline: self, interrupt, progress }
    }
}

/// Where a load lands.
pub(super) struct Landing {
    /// For the record.
    pub(super) target: record::Target,
    /// The clock of the load.
    pub(super) clock: Clock,
    /// Files and directories whose devices are watched.
    pub(super) paths: Vec<PathBuf>,
    /// What the user has read before.
    pub(super) said: Vec<String>,
    /// What is to be known of the target.
    pub(super) notes: Vec<String>,
}

impl Landing {
    /// On an open target.
    pub(super) fn on(target: &(impl Target + ?Sized), clock: Clock) -> Self {
        Self { target: target.describe(), clock, paths: Vec::new(), said: Vec::new(), notes: target.notes() }
    }
}

/// A run that is about to begin.
pub(super) struct Beginning<'a> {
    outline: Outline<'a>,
    pub(super) interrupt: &'a Interrupt,
    pub(super) progress: RunProgress,
}

impl Beginning<'_> {
    /// What was opened, or why it was not, with no progress left on the terminal.
    pub(super) fn opened<T>(&self, opened: Result<T, impl Into<Failure>>) -> Result<T, Failure> {
        opened.map_err(Into::into).inspect_err(|_| self.progress.end())
    }

    /// Writes down what is about to be done, before any load.
    pub(super) fn record(self, landing: Landing) -> Result<Recording, Failure> {
        landing.notes.iter().for_each(|note| self.progress.note(note));
        Recording::begin(self.outline, landing, self.interrupt, self.progress)
    }
}

/// Says what would be done where that was asked for; else does it, keeps it and reports it.
pub(super) fn run<'a>(work: impl Work<'a>) -> Result<Exit, Failure> {
    run_with(work, None, |recorded, outline, interrupt| recorded.report(outline, interrupt))
}

/// The same for who listens to `interrupt` already, or reports in another way.
pub(super) fn run_with<'a>(
    work: impl Work<'a>,
    interrupt: Option<&Interrupt>,
    report: impl FnOnce(Recorded, &Outline<'a>, &Interrupt) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let outline = work.outline();
    let sent_to = outline.keeping.push.check()?;
    if outline.keeping.dry_run {
        let described = work.described()?.facts("send to", sent_to);
        let described = outline.joined.iter().fold(described, DryRun::part);
        return described.print(outline.time, outline.is_simulated);
    }
    let interrupt = interrupt.map_or_else(Interrupt::listen, |interrupt| Ok(interrupt.clone()))?;
    let recorded = record(work, &interrupt)?;
    report(recorded, &outline, &interrupt)
}

/// Carries it out and keeps it.
pub(super) fn record<'a>(work: impl Work<'a>, interrupt: &Interrupt) -> Result<Recorded, Failure> {
    let beginning = work.outline().beginning(interrupt);
    interrupt.judge(work.carry_out(beginning))
}
