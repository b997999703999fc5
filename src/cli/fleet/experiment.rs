//! What all parts of an experiment have in common, and its digest.

use model::record::Workload;

use serde_json::json;

use crate::load::{Pace, StepPlan};
use crate::plan::RunHead;
use model::record::{FORMAT, Intensity, Parameters};

/// Everything that decides the load of all parts. No host, path, tag or number of a part is in it.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Experiment {
    head: RunHead,
    pub(super) steps: Vec<StepFacts>,
}

/// A step as all parts know it.
#[derive(Debug, Clone)]
pub(super) struct StepFacts {
    pub(super) label: String,
    parameters: Parameters,
    pub(super) load: Intensity,
    pub(super) warmup_ns: u64,
    pub(super) duration_ns: u64,
    /// Threads, where they decide when something is due: hosts of other processors may have more otherwise.
    lanes: Option<u32>,
}

impl Experiment {
    /// Of the plan of a run.
    pub(in crate::cli) fn new<'a, S: 'a>(head: &RunHead, steps: impl IntoIterator<Item = &'a StepPlan<S>>) -> Self {
        let facts = |step: &StepPlan<S>| StepFacts {
            label: step.label.clone(),
            parameters: step.parameters(&head.parameters),
            load: step.load.clone(),
            warmup_ns: step.warmup.0,
            duration_ns: step.duration.0,
            lanes: matches!(step.pace, Pace::Open { .. }).then_some(step.lanes),
        };
        let steps = steps.into_iter().map(facts).collect();
        Self { head: head.clone(), steps }
    }

    /// Whether every host puts on the whole load, so that nothing is shared out.
    pub(super) fn is_of_each_host(&self) -> bool {
        matches!(self.head.load.workload(), Workload::Host | Workload::Network)
    }

    /// Its digest: SHA-256, in hexadecimal digits.
    pub(super) fn digest(&self) -> String {
        let Self { head: RunHead { load, parameters, seed, .. }, steps } = self;
        let steps: Vec<_> = steps
            .iter()
            .map(|StepFacts { label, parameters, load, warmup_ns, duration_ns, lanes }| {
                json!([label, parameters, load, warmup_ns, duration_ns, lanes])
            })
            .collect();
        let text = json!([FORMAT, env!("CARGO_PKG_VERSION"), load, parameters, seed, steps]).to_string();
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// A seed that every part finds by itself; 53 bits, which survive every format of JSON.
    pub(super) fn derived_seed(&self) -> u64 {
        let head = RunHead { seed: 0, ..self.head.clone() };
        let digest = Self { head, steps: self.steps.clone() }.digest();
        digest.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default() >> 11
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Share;
    use model::record::IoMix;
    use model::record::Load;
    use model::units::Nanos;
    use model::workload::Arrival;

    fn step() -> StepPlan<()> {
        StepPlan {
            index: 0,
            label: "d8".to_owned(),
            load: Intensity { sessions: Some(8), ..Intensity::default() },
            level: None,
            like: None,
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

    fn head(block: &str, seed: u64) -> RunHead {
        RunHead::new(&[], [], seed, Load::IoMix(IoMix { block: format!("{block}K").parse().unwrap() }), []).unwrap()
    }

    fn digest(parameter: &str, seed: u64, step: &StepPlan<()>) -> String {
        Experiment::new(&head(parameter, seed), [step]).digest()
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
            digest("8", 7, &StepPlan { load: Intensity { sessions: Some(9), ..Intensity::default() }, ..step() }),
        ];
        others.iter().for_each(|other| assert_ne!(*other, whole));
        let pace = Pace::Open { rate_per_s: 5.0, arrival: Arrival::Poisson };
        let open = |lanes| digest("8", 7, &StepPlan { pace, lanes, ..step() });
        assert_ne!(open(4), open(8), "threads decide when something is due");
    }

    #[test]
    fn a_derived_seed_depends_on_the_configuration_alone() {
        let seed = |parameter: &str, seed| Experiment::new(&head(parameter, seed), [&step()]).derived_seed();
        assert_eq!(seed("8", 0), seed("8", 99));
        assert_ne!(seed("8", 0), seed("9", 0));
        assert!(seed("8", 0) < 1 << 53);
    }
}
