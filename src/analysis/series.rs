//! Steps that differ in load only, and so can be laid along one curve.

use std::collections::BTreeMap;

use super::{Vocabulary, measured};
use crate::record::{Run, Step};

/// Parameters that say how much load is put on, rather than what it consists of.
pub(super) const LOAD_PARAMETERS: [&str; 6] = ["SCHEMAS", "THREADS_PER_SCHEMA", "SESSIONS", "RATE", "DEPTH", "JOBS"];

/// Measured steps with equal parameters, least load first.
#[derive(Debug, Clone)]
pub struct Series<'a> {
    /// What these steps have in common and other series of the run have not, as `WORK_UNIT=16`; empty if there is one
    /// series only.
    pub name: String,
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
                .filter(|(name, _)| !LOAD_PARAMETERS.contains(&name.as_str()))
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
                Self { name, steps, words: Vocabulary::of(run) }
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
