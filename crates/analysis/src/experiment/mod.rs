//! What an experiment found: every combination of values with what it carries, and what that comes to in five sentences.

mod case;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use case::{Against, Bound, Case, CaseRate, CaseReading};

use super::{Compared, LatencyTarget, LimitAnswer, Repeats};
use model::record::{ExperimentMark, Run};

/// Change from which a difference between combinations matters, as a share.
const THRESHOLD: f64 = 0.05;

/// What an experiment found.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentFound {
    /// What stands above it.
    pub title: String,
    /// How many runs were asked for.
    pub asked: usize,
    /// Every combination that has a run, in the order of the steps.
    pub cases: Vec<Case>,
    /// Names of tags in which cases differ, in the order of their names.
    pub varied: Vec<String>,
    /// Combinations of one load against the first of them, where any was measured more than once.
    pub compared: Vec<Compared>,
    /// Why some runs are no repeats of each other although one step made them.
    pub not_compared: Vec<String>,
}

impl ExperimentFound {
    /// Of whole runs, in the order of steps and of rounds, each with the limits of its command. Runs that have no place in an
    /// experiment are passed over.
    pub fn of(title: String, asked: usize, runs: Vec<(Run, Vec<LatencyTarget>)>) -> Self {
        let mut groups: Vec<(ExperimentMark, Vec<LatencyTarget>, Vec<Run>)> = Vec::new();
        for (run, limits) in runs {
            let Some(mark) = ExperimentMark::of_tags(&run.tags) else { continue };
            match groups.last_mut() {
                Some((known, _, runs)) if known.step == mark.step => runs.push(run),
                _ => groups.push((mark, limits, vec![run])),
            }
        }
        let cases: Vec<Case> =
            groups.into_iter().filter_map(|(mark, limits, runs)| Case::of(&mark, &limits, runs)).collect();
        let names: BTreeSet<&String> = cases.iter().flat_map(|case| case.tags.keys()).collect();
        let is_varied = |name: &&&String| {
            let values: BTreeSet<_> = cases.iter().map(|case| case.tags.get(**name)).collect();
            values.len() > 1
        };
        let varied = names.iter().filter(is_varied).map(|name| (*name).clone()).collect();
        let (compared, not_compared) = compare(&cases);
        Self { title, asked, cases, varied, compared, not_compared }
    }

    /// The worst answer to the limits of all commands: one that was not kept, else one that is not known.
    pub fn verdict(&self) -> LimitAnswer {
        let any = |answer: LimitAnswer| {
            self.cases.iter().flat_map(|case| &case.readings).any(|reading| reading.verdict == Some(answer))
        };
        let worse = [LimitAnswer::No, LimitAnswer::NoVerdict].into_iter().find(|answer| any(*answer));
        worse.unwrap_or(LimitAnswer::Yes)
    }

    /// Runs that are there.
    pub fn runs(&self) -> usize {
        self.cases.iter().map(|case| case.readings.len()).sum()
    }

    /// What distinguishes a case: its load where there are several, and the tags that vary.
    pub fn name(&self, case: &Case) -> String {
        let load = Some(case.load.clone()).filter(|_| self.has_loads() || self.varied.is_empty());
        let tags = self.varied.iter().filter_map(|name| Some(format!("{name}={}", case.tags.get(name)?)));
        load.into_iter().chain(tags).collect::<Vec<_>>().join(" ")
    }

    /// Whether there is more than one load.
    pub fn has_loads(&self) -> bool {
        self.cases.iter().any(|case| case.load != self.cases[0].load)
    }

    /// Its loads, in the order of their first case.
    pub fn loads(&self) -> Vec<&str> {
        let mut loads: Vec<&str> = Vec::new();
        for case in &self.cases {
            if !loads.contains(&case.load.as_str()) {
                loads.push(&case.load);
            }
        }
        loads
    }
}

/// Combinations of each load against its first one; figures of single runs would be compared by seconds, which do not know how runs
/// differ.
fn compare(cases: &[Case]) -> (Vec<Compared>, Vec<String>) {
    let (mut compared, mut problems) = (Vec::new(), Vec::new());
    for load in cases.iter().map(|case| case.load.as_str()).collect::<BTreeSet<_>>() {
        let of_load: Vec<&Case> = cases.iter().filter(|case| case.load == load).collect();
        problems.extend(of_load.iter().filter_map(|case| case.not_repeats.as_ref().map(ToString::to_string)));
        if of_load.len() < 2 || of_load.iter().any(|case| case.readings.len() < 2 || case.not_repeats.is_some()) {
            continue;
        }
        let sides: Vec<Repeats> = of_load.iter().map(|case| case.side.clone()).collect();
        compared.extend(Compared::of_repeats(&sides, 0, THRESHOLD));
    }
    (compared, problems)
}
