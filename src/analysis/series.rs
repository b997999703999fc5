//! Steps that differ in load only, and so can be laid along one curve.

use std::collections::BTreeMap;

use super::measured;
use crate::record::{Run, Step};

/// Parameters that say how much load is put on, rather than what it consists of.
pub(super) const LOAD_PARAMETERS: [&str; 6] = ["SCHEMAS", "THREADS_PER_SCHEMA", "SESSIONS", "RATE", "DEPTH", "JOBS"];

/// Loads of ORION's points. A point with small requests alone lies on the curve of such points, and likewise with large
/// ones; beside a fixed large load, the small one rises.
const SMALL: &str = "SMALL";
const LARGE: &str = "LARGE";

/// Whether a parameter says how much load a step puts on.
fn says_how_much(step: &Step, name: &str) -> bool {
    let is_none = |load: &str| step.parameters.get(load).is_some_and(|load| load == "0");
    match name {
        SMALL => !is_none(SMALL),
        LARGE => is_none(SMALL) && !is_none(LARGE),
        _ => LOAD_PARAMETERS.contains(&name),
    }
}

/// Measured steps with equal parameters, least load first.
#[derive(Debug, Clone)]
pub struct Series<'a> {
    /// What these steps have in common and other series of the run have not, as `WORK_UNIT=16`; empty if there is one
    /// series only.
    pub name: String,
    /// The steps, by rate in an open loop, else by sessions; equal loads in the order in which they ran.
    pub steps: Vec<&'a Step>,
}

impl<'a> Series<'a> {
    /// Splits the measured steps of a run into series, in the order in which they first ran.
    pub fn of(run: &'a Run) -> Vec<Self> {
        let mut groups: Vec<(BTreeMap<&str, &str>, Vec<&Step>)> = Vec::new();
        for step in measured(run) {
            let key: BTreeMap<_, _> = step
                .parameters
                .iter()
                .filter(|(name, _)| !says_how_much(step, name))
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, steps)) => steps.push(step),
                None => groups.push((key, vec![step])),
            }
        }
        groups
            .into_iter()
            .map(|(key, mut steps)| {
                steps.sort_by(|a, b| {
                    let rate = |step: &Step| step.load.rate_operations_per_s.unwrap_or(f64::INFINITY);
                    rate(a).total_cmp(&rate(b)).then(a.load.sessions.cmp(&b.load.sessions)).then(a.index.cmp(&b.index))
                });
                let name = key.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ");
                Self { name, steps }
            })
            .collect()
    }

    /// Whether every step is an open loop, where the rate is the load.
    pub fn is_open_loop(&self) -> bool {
        self.steps.iter().all(|step| step.load.rate_operations_per_s.is_some())
    }

    /// Whether every step is a closed loop, where sessions are the load.
    pub fn is_closed_loop(&self) -> bool {
        self.steps.iter().all(|step| step.load.rate_operations_per_s.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;

    #[test]
    fn orions_points_lie_on_a_curve_for_each_large_load() {
        let mut run = sample::run(&[]);
        let loads = [(1, 0), (2, 0), (0, 1), (0, 2), (1, 1), (2, 1), (1, 2)];
        run.steps = (0..)
            .zip(loads)
            .map(|(index, (small, large))| {
                let sessions = small + large;
                let level = sample::Level { sessions, operations_per_s: 1, read_ns: 1, seconds: 1, update_pct: 0 };
                let mut step = sample::step(index, level);
                step.parameters =
                    [(SMALL, small), (LARGE, large)].map(|(name, load)| (name.to_owned(), load.to_string())).into();
                step
            })
            .collect();
        let series = Series::of(&run);
        let seen: Vec<(&str, usize)> = series.iter().map(|series| (series.name.as_str(), series.steps.len())).collect();
        assert_eq!(seen, [("LARGE=0", 2), ("SMALL=0", 2), ("LARGE=1", 2), ("LARGE=2", 1)]);
    }
}
