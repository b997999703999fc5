//! Steps that differ in load only, and so can be laid along one curve.

use std::collections::BTreeMap;

use super::{Vocabulary, measured};
use model::record::{Level, OrionLevel, Run, Step};

/// Parameters that say how much load is put on, rather than what it consists of.
pub(super) const LOAD_PARAMETERS: [&str; 8] =
    ["SCHEMAS", "THREADS_PER_SCHEMA", "SESSIONS", "RATE", "DEPTH", "JOBS", "TIMES", SMALL];
/// ORION's loads of small and of large requests. Its matrix is read by rows, each one curve of small loads beside one large
/// load; its column of large loads alone is one curve of large loads.
const SMALL: &str = "SMALL";
const LARGE: &str = "LARGE";
const NO_LOAD: &str = "0";

/// Measured steps with equal parameters, least load first.
#[derive(Debug, Clone)]
pub struct Series<'a> {
    /// What these steps have in common and other series of the run have not, as `WORK_UNIT=16`; empty if there is one
    /// series only.
    pub name: String,
    /// What all series of the run have in common, written alike.
    pub common: String,
    /// The steps, by rate in an open loop, else by sessions; equal loads in the order in which they ran.
    pub steps: Vec<&'a Step>,
    /// What their load and work are called.
    pub words: Vocabulary,
}

impl<'a> Series<'a> {
    /// Splits the measured steps of a run into series, in the order in which they first ran.
    pub fn of(run: &'a Run) -> Vec<Self> {
        let mut groups: Vec<(BTreeMap<&str, &str>, Vec<&Step>)> = Vec::new();
        for step in measured(run) {
            let key: BTreeMap<_, _> = step
                .parameters
                .iter()
                .filter(|(name, value)| distinguishes(step, name, value))
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, steps)) => steps.push(step),
                None => groups.push((key, vec![step])),
            }
        }
        let is_common = |pair: &(&str, &str)| groups.iter().all(|(key, _)| key.get(pair.0) == Some(&pair.1));
        let listed = |key: &BTreeMap<&str, &str>, is_wanted: &dyn Fn(&(&str, &str)) -> bool| {
            let wanted = key.iter().map(|(name, value)| (*name, *value)).filter(is_wanted);
            wanted.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        let common = groups.first().map(|(key, _)| listed(key, &is_common)).unwrap_or_default();
        let names: Vec<String> = groups.iter().map(|(key, _)| listed(key, &|pair| !is_common(pair))).collect();
        groups
            .into_iter()
            .zip(names)
            .map(|((_, mut steps), name)| {
                steps.sort_by(|a, b| {
                    let rate = |step: &Step| step.load.rate_operations_per_s.unwrap_or(f64::INFINITY);
                    rate(a).total_cmp(&rate(b)).then(a.load.sessions.cmp(&b.load.sessions)).then(a.index.cmp(&b.index))
                });
                Self { name, common: common.clone(), steps, words: Vocabulary::of(run) }
            })
            .collect()
    }

    /// Whether every step is an open loop, where the rate is the load.
    pub fn is_open_loop(&self) -> bool {
        self.steps.iter().all(|step| step.load.rate_operations_per_s.is_some())
    }

    /// Whether every step is a closed loop, where sessions are the load, and says how many there were.
    pub fn is_closed_loop(&self) -> bool {
        self.steps.iter().all(|step| step.load.rate_operations_per_s.is_none() && step.load.sessions.is_some())
    }
}

/// Whether a parameter of a step keeps it apart from steps with another value of it.
pub(super) fn distinguishes(step: &Step, name: &str, value: &str) -> bool {
    let large_alone = matches!(step.level, Some(Level::Orion(OrionLevel { small: 0, .. })));
    match name {
        SMALL => value == NO_LOAD,
        LARGE => !large_alone,
        _ => !LOAD_PARAMETERS.contains(&name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::Load;
    use model::record::Workload;
    use model::record::sample;

    fn series(points: &[(u32, u32)]) -> Vec<(String, Vec<u32>)> {
        let mut run = sample::sweep(10);
        let step = run.steps.swap_remove(0);
        run.load = Load::foreign(Workload::Orion);
        run.steps = points
            .iter()
            .map(|(small, large)| {
                let mut step = step.clone();
                let level = Level::Orion(OrionLevel { small: *small, large: *large });
                step.parameters = level.parameters();
                step.level = Some(level);
                step.load.sessions = Some(small + large);
                step
            })
            .collect();
        let sessions = |series: &Series<'_>| series.steps.iter().map(|step| step.load.slots()).collect();
        Series::of(&run).iter().map(|series| (series.name.clone(), sessions(series))).collect()
    }

    #[test]
    fn a_row_of_orions_matrix_is_one_curve() {
        assert_eq!(series(&[(1, 0), (2, 0), (5, 0)]), [(String::new(), vec![1, 2, 5])]);
    }

    #[test]
    fn only_what_differs_names_a_series() {
        let mut run = sample::sweep(10);
        run.steps.truncate(3);
        for (step, block) in run.steps.iter_mut().zip(["8k", "8k", "64k"]) {
            let parameters = [("rw", "randread"), ("bs", block)];
            step.parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        }
        let found = Series::of(&run);
        let names: Vec<&str> = found.iter().map(|series| series.name.as_str()).collect();
        assert_eq!((names.as_slice(), found[0].common.as_str()), (&["bs=8k", "bs=64k"][..], "rw=randread"));
    }

    #[test]
    fn its_column_of_large_loads_alone_is_another_and_each_row_its_own() {
        let found = series(&[(0, 1), (0, 2), (1, 0), (2, 0), (1, 1), (2, 1), (0, 3)]);
        let expected = [("SMALL=0", vec![1, 2, 3]), ("LARGE=0", vec![1, 2]), ("LARGE=1", vec![2, 3])];
        assert_eq!(found, expected.map(|(name, loads)| (name.to_owned(), loads)));
    }
}
