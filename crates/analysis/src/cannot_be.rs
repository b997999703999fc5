//! Values of a run of our own that contradict each other. Those of imported runs were held against the same rules when they were imported.

use super::message::list;
use super::{Finding, Message, Rule, measured};
use model::record::Run;
use model::record::invariants::{At, Invariant, Measured, Times, Violation, violations};

/// Values of the run break a rule that values always keep: a defect of the measurement.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CannotBe {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// Each value with the rule and with what it contradicts.
    pub values: Vec<String>,
}

pub(super) fn find(run: &Run) -> Option<Finding> {
    let (mut steps, mut values): (Vec<String>, Vec<String>) = Default::default();
    for step in measured(run).filter(|_| run.imported.is_none()) {
        // In an open loop a response begins when an operation is due, which may be long before it is sent.
        let is_closed = step.load.rate_operations_per_s.is_none();
        let load_ns = step.window.warmup_ns.saturating_add(step.window.duration_ns);
        let found = violations(step, Measured { load_ns: Some(load_ns).filter(|_| is_closed), ..Measured::default() });
        // A wait of another session may have begun long before, and kernels count the queue of a device in several ways.
        let is_own = |found: &Violation| {
            let of_wait = |at: &At| match at {
                At::Shortest(times) | At::Mean(times) | At::Longest(times) => matches!(times, Times::Wait(_)),
                _ => false,
            };
            found.rule != Invariant::DepthOfDevice && !found.at.iter().any(of_wait)
        };
        let found: Vec<Violation> = found.into_iter().filter(is_own).collect();
        if !found.is_empty() {
            steps.push(step.label.clone());
        }
        for value in found.iter().map(ToString::to_string) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    (!steps.is_empty()).then_some(Finding::CannotBe(CannotBe { steps, values }))
}

impl Message for CannotBe {
    fn rule(&self) -> Rule {
        Rule::RunCannotBe
    }

    fn sentence(&self) -> String {
        let more = self.values.len().saturating_sub(1);
        let more = if more > 0 { format!(" So do {more} more.") } else { String::new() };
        let first = self.values.first().map_or("", String::as_str);
        format!("A value contradicts another one in {}. {first}{more}", list(&self.steps))
    }

    fn advice(&self) -> Option<String> {
        Some("Measure again, and report the run as a defect: these values are not to be used.".to_owned())
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample;

    #[test]
    fn what_contradicts_itself_in_a_run_of_our_own_is_a_doubt() {
        let mut run = sample::sweep(60);
        assert_eq!(find(&run), None);
        let step = &mut run.steps[0];
        step.counters.operations = step.counters.operations.map(|operations| 2 * operations);
        let Some(Finding::CannotBe(found)) = find(&run) else { panic!("it is not found") };
        assert!(found.sentence().contains("(rule `intervals-add-up`)"), "{}", found.sentence());
        assert_eq!((found.steps.len(), found.values.len()), (1, 1));
    }
}
