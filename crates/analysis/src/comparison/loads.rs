//! Which steps of two runs carried the same load.

use model::record::Workload;
use std::collections::{BTreeMap, BTreeSet};

use crate::at_once::parts;
use crate::series::{LOAD_PARAMETERS, distinguishes};
use crate::{Vocabulary, measured};
use model::record::{Run, Step};

/// Steps of two runs with the same load.
pub(crate) struct Matched<'a> {
    /// The load in words.
    pub(crate) name: String,
    pub(crate) sides: [Vec<&'a Step>; 2],
}

/// Loads of two runs.
pub(crate) struct Loads<'a> {
    /// Those that both have, in the order of the baseline.
    pub(crate) both: Vec<Matched<'a>>,
    /// Those that only the baseline has, and only the other run, in words.
    pub(crate) only: [Vec<String>; 2],
}

/// What was asked of a step. Labels play no part: those of imported runs may be any.
struct LoadKey<'a> {
    vocabulary: Vocabulary,
    workload: Workload,
    sessions: Option<u32>,
    rate_per_s: Option<f64>,
    schemas: Option<u32>,
    /// Parameters that distinguish steps of these runs.
    parameters: BTreeMap<&'a str, &'a str>,
}

impl<'a> LoadKey<'a> {
    fn of(run: &'a Run, step: &'a Step, names: &BTreeSet<&'a str>) -> Self {
        let in_force = |name: &&'a str| {
            let value = run.parameter(step, name)?;
            distinguishes(step, name, value).then_some((*name, value))
        };
        Self {
            vocabulary: Vocabulary::of(run),
            workload: run.workload(),
            sessions: step.load.sessions,
            rate_per_s: step.load.rate_operations_per_s,
            schemas: step.load.schemas,
            parameters: names.iter().filter_map(in_force).collect(),
        }
    }

    /// In an open loop the rate is the load, and sessions are only room for it.
    fn is_same(&self, other: &Self) -> bool {
        let same_load = match (self.rate_per_s, other.rate_per_s) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs(),
            (None, None) => self.sessions == other.sessions,
            _ => false,
        };
        // A source that does not report how sessions were spread over schemas contradicts nobody.
        let same_schemas = self.schemas.zip(other.schemas).is_none_or(|(a, b)| a == b);
        self.workload == other.workload && same_load && same_schemas && self.parameters == other.parameters
    }

    fn words(&self) -> String {
        let words = self.vocabulary;
        let load = match (self.rate_per_s, self.sessions) {
            (Some(rate), _) => words.rate(rate),
            (None, Some(sessions)) => words.closed_load(sessions),
            (None, None) => "load that is not reported".to_owned(),
        };
        let parameters = self.parameters.iter().map(|(name, value)| format!("{name}={value}"));
        parameters.chain([load]).collect::<Vec<_>>().join(" ")
    }
}

/// Groups the measured steps of two runs by their load. Steps of one run with the same load are repeats of it.
pub(crate) fn of<'a>(runs: [&'a Run; 2]) -> Loads<'a> {
    let varied = runs.iter().flat_map(|run| measured(run)).flat_map(|step| step.parameters.keys().map(String::as_str));
    let mut names: BTreeSet<&str> = varied.filter(|name| is_no_load(name)).collect();
    // Where the data lie, and how large they are, differs between platforms: it makes no other load.
    names.retain(|name| !PLACES.contains(name) || values(runs[0], name) == values(runs[1], name));
    let mut groups: Vec<(LoadKey<'a>, [Vec<&'a Step>; 2])> = Vec::new();
    // Points of a map are where its search led, and what lies beyond its line is meant to fail.
    let is_map = |run: &&Run| run.load.map().is_some();
    for (side, run) in runs.into_iter().enumerate().filter(|(_, run)| !is_map(run)) {
        // What one job did beside others is no load, unless all that they did is known.
        let parts = parts(run);
        for step in measured(run).filter(|step| !parts.contains(&step.index)) {
            let asked = LoadKey::of(run, step, &names);
            match groups.iter_mut().find(|(known, _)| known.is_same(&asked)) {
                Some((_, sides)) => sides[side].push(step),
                None => {
                    let mut sides = [Vec::new(), Vec::new()];
                    sides[side].push(step);
                    groups.push((asked, sides));
                }
            }
        }
    }
    let only = [0, 1].map(|side: usize| {
        let alone = groups.iter().filter(|(_, sides)| sides[1 - side].is_empty());
        alone.map(|(asked, _)| asked.words()).collect()
    });
    let both = groups.into_iter().filter(|(_, sides)| sides.iter().all(|side| !side.is_empty()));
    Loads { both: both.map(|(asked, sides)| Matched { name: asked.words(), sides }).collect(), only }
}

/// Parameters of fio's jobs that name files and say how large these are.
const PLACES: [&str; 6] = ["filename", "directory", "size", "filesize", "nrfiles", "filename_format"];

/// What a parameter is in the steps of a run.
fn values<'a>(run: &'a Run, name: &str) -> BTreeSet<Option<&'a str>> {
    measured(run).map(|step| run.parameter(step, name)).collect()
}

/// Whether a parameter of steps may say what load consists of. ORION's pair of loads may, each beside the other.
fn is_no_load(name: &str) -> bool {
    !LOAD_PARAMETERS.contains(&name) || name == "SMALL"
}
