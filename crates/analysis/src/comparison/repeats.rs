//! Runs that repeat each other, as one side of a comparison.

use super::settings::{self, Bearing};
use crate::{Finding, analyse_asked};
use model::record::{Run, is_mark};

/// One side of a comparison: a run, or several that repeat the same experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeats {
    /// The first of them, with the steps of all, numbered anew in the order in which they were given.
    pub run: Run,
    /// Ids of all of them.
    pub ids: Vec<String>,
    /// What is to be said about each by itself.
    pub(super) findings: Vec<Finding>,
}

/// Why runs are no repeats of each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{first}` and `{other}` are no repeats of each other: they differ in {what}")]
pub struct NotRepeats {
    /// Id of the first run.
    pub first: String,
    /// Id of the one that differs.
    pub other: String,
    /// Names of what differs.
    pub what: String,
}

impl Repeats {
    /// Takes runs for one side; absent without any.
    ///
    /// # Errors
    /// If they differ in more than what is incidental.
    pub fn of(runs: Vec<Run>) -> Option<Result<Self, NotRepeats>> {
        let original = runs.first()?;
        for run in runs.iter().skip(1) {
            let differing = settings::differences(&[original, run]);
            let names: Vec<String> = differing
                .into_iter()
                .filter(|setting| setting.bearing != Bearing::Incidental)
                .map(|setting| setting.name)
                .collect();
            if !names.is_empty() {
                let (first, other) = (original.id.clone(), run.id.clone());
                return Some(Err(NotRepeats { first, other, what: names.join(", ") }));
            }
        }
        Self::of_one_command(runs).map(Ok)
    }

    /// Takes runs of one command for one side, whatever else differs; absent without any.
    pub(crate) fn of_one_command(runs: Vec<Run>) -> Option<Self> {
        let mut runs = runs.into_iter();
        let first = runs.next()?;
        let mut side = Self { findings: analyse_asked(&first, None), ids: vec![first.id.clone()], run: first };
        runs.for_each(|run| side.add(run));
        Some(side)
    }

    /// What all of them are called: their tags, or the name or id of the first.
    pub(super) fn in_common(&self) -> String {
        let run = &self.run;
        let tags = run.tags.iter().filter(|(name, _)| !is_mark(name));
        let tags: Vec<String> = tags.map(|(name, value)| format!("{name}={value}")).collect();
        match () {
            () if !tags.is_empty() => tags.join(" "),
            () if run.name.is_empty() => run.id.clone(),
            () => run.name.clone(),
        }
    }

    fn add(&mut self, run: Run) {
        // Analysed by itself: what changes from one run to the next is no change within a run.
        for finding in analyse_asked(&run, None) {
            if !self.findings.contains(&finding) {
                self.findings.push(finding);
            }
        }
        self.ids.push(run.id);
        let steps = self.run.steps.len();
        for (mut step, index) in run.steps.into_iter().zip(steps..) {
            step.index = u32::try_from(index).unwrap_or(u32::MAX);
            step.intervals.iter_mut().for_each(|interval| interval.step = step.index);
            self.run.steps.push(step);
        }
    }
}
