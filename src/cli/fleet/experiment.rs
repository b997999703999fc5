//! What all parts of an experiment have in common, and its digest.

use model::record::Workload;
use std::collections::BTreeMap;

use serde_json::json;

use crate::load::{Pace, StepPlan};
use model::record::{FORMAT, Load};

/// Everything that decides the load of all parts. No host, path, tag or number of a part is in it.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Experiment {
    workload: Workload,
    parameters: BTreeMap<String, String>,
    seed: u64,
    pub(super) steps: Vec<StepFacts>,
}

/// A step as all parts know it.
#[derive(Debug, Clone)]
pub(super) struct StepFacts {
    pub(super) label: String,
    parameters: BTreeMap<String, String>,
    pub(super) load: Load,
    pub(super) warmup_ns: u64,
    pub(super) duration_ns: u64,
    /// Threads, where they decide when something is due: hosts of other processors may have more otherwise.
    lanes: Option<u32>,
}

impl Experiment {
    /// Of the plan of a run.
    pub(in crate::cli) fn new<'a, S: 'a>(
        workload: Workload,
        parameters: &BTreeMap<String, String>,
        seed: u64,
        steps: impl IntoIterator<Item = &'a StepPlan<S>>,
    ) -> Self {
        let facts = |step: &StepPlan<S>| StepFacts {
            label: step.label.clone(),
            parameters: step.parameters.clone(),
            load: step.load.clone(),
            warmup_ns: step.warmup.0,
            duration_ns: step.duration.0,
            lanes: matches!(step.pace, Pace::Open { .. }).then_some(step.lanes),
        };
        let steps = steps.into_iter().map(facts).collect();
        Self { workload, parameters: parameters.clone(), seed, steps }
    }

    /// Whether every host puts on the whole load, so that nothing is shared out.
    pub(super) fn is_of_each_host(&self) -> bool {
        matches!(self.workload, Workload::Host | Workload::Network)
    }

    /// Its digest: SHA-256, in hexadecimal digits.
    pub(super) fn digest(&self) -> String {
        let Self { workload, parameters, seed, steps } = self;
        let steps: Vec<_> = steps
            .iter()
            .map(|StepFacts { label, parameters, load, warmup_ns, duration_ns, lanes }| {
                json!([label, parameters, load, warmup_ns, duration_ns, lanes])
            })
            .collect();
        let text = json!([FORMAT, env!("CARGO_PKG_VERSION"), workload, parameters, seed, steps]).to_string();
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// A seed that every part finds by itself; 53 bits, which survive every format of JSON.
    pub(super) fn derived_seed(&self) -> u64 {
        let digest = Self { seed: 0, ..self.clone() }.digest();
        digest.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default() >> 11
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Share;
    use model::units::Nanos;
    use model::workload::Arrival;

    fn step() -> StepPlan<()> {
        StepPlan {
            index: 0,
            label: "d8".to_owned(),
            load: Load { sessions: Some(8), ..Load::default() },
            parameters: BTreeMap::new(),
            shape: (),
            seed: 7,
            work_loop: None,
            warmup: Nanos::seconds(1),
            duration: Nanos::seconds(5),
            pace: Pace::Closed,
            lanes: 4,
            share: Share::WHOLE,
        }
    }

    fn digest(parameter: &str, seed: u64, step: &StepPlan<()>) -> String {
        let parameters = BTreeMap::from([("DEPTH".to_owned(), parameter.to_owned())]);
        Experiment::new(Workload::Io, &parameters, seed, [step]).digest()
    }

    #[test]
    fn whatever_decides_the_load_is_in_the_digest_and_the_part_is_not() {
        let whole = digest("8", 7, &step());
        assert_eq!(whole.len(), 64);
        assert_eq!(digest("8", 7, &StepPlan { share: Share { part: 1, parts: 2 }, ..step() }), whole);
        assert_eq!(digest("8", 7, &StepPlan { lanes: 8, ..step() }), whole, "sessions are the same on any threads");
        let others = [
            digest("9", 7, &step()),
            digest("8", 8, &step()),
            digest("8", 7, &StepPlan { label: "d9".to_owned(), ..step() }),
            digest("8", 7, &StepPlan { warmup: Nanos::seconds(2), ..step() }),
            digest("8", 7, &StepPlan { duration: Nanos::seconds(6), ..step() }),
            digest("8", 7, &StepPlan { load: Load { sessions: Some(9), ..Load::default() }, ..step() }),
        ];
        others.iter().for_each(|other| assert_ne!(*other, whole));
        let pace = Pace::Open { rate_per_s: 5.0, arrival: Arrival::Poisson };
        let open = |lanes| digest("8", 7, &StepPlan { pace, lanes, ..step() });
        assert_ne!(open(4), open(8), "threads decide when something is due");
    }

    #[test]
    fn a_derived_seed_depends_on_the_configuration_alone() {
        let seed = |parameter: &str, seed| {
            let parameters = BTreeMap::from([("DEPTH".to_owned(), parameter.to_owned())]);
            Experiment::new(Workload::Io, &parameters, seed, [&step()]).derived_seed()
        };
        assert_eq!(seed("8", 0), seed("8", 99));
        assert_ne!(seed("8", 0), seed("9", 0));
        assert!(seed("8", 0) < 1 << 53);
    }
}
