//! The order in which findings are reported: the answer first, unless something makes that very answer doubtful.

use std::collections::BTreeSet;

use super::{ClientSaturated, Finding, ServerFinding, Severity, StepLine};

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum FindingRank {
    /// Whoever repeats the answer must hear this first.
    BeforeAnswer,
    Answer,
    /// Doubts about steps that the answer does not rest on.
    AfterAnswer,
    Rest,
}

/// Puts findings in the order in which they are reported.
pub(super) fn sort(findings: &mut [Finding]) {
    let basis = Basis::of(findings);
    findings.sort_by_key(|finding| (basis.place(finding), finding.rank()));
}

/// Steps that the answers of a run rest on.
struct Basis {
    /// Steps whose figures are reported as the load that is carried.
    reported: BTreeSet<String>,
    /// These, and the steps that bound the answer from above: if the load generator was the limit there, it is the
    /// generator's load line.
    bounding: BTreeSet<String>,
}

impl Basis {
    fn of(findings: &[Finding]) -> Self {
        let (mut reported, mut bounding) = (BTreeSet::new(), BTreeSet::new());
        for finding in findings {
            match finding {
                Finding::StepLine(StepLine::Between { passing, failing, .. }) => {
                    reported.insert(passing.step.clone());
                    bounding.insert(failing.above.step.clone());
                }
                Finding::StepLine(StepLine::OnlyAbove { passing: point, .. })
                | Finding::StepLine(StepLine::AllMeet { most: point, .. })
                | Finding::StepLine(StepLine::NoneMeets { least: point, .. }) => {
                    reported.insert(point.step.clone());
                }
                Finding::OpenLoadLine(line) => {
                    reported.extend(line.passing.iter().map(|point| point.step.clone()));
                    bounding.extend(line.ceiling().map(|point| point.step.clone()));
                }
                _ => {}
            }
        }
        bounding.extend(reported.iter().cloned());
        Self { reported, bounding }
    }

    fn place(&self, finding: &Finding) -> FindingRank {
        // Without a step to rest on, any doubt may be the reason why there is none.
        let concerns = |basis: &BTreeSet<String>, steps: &[String]| {
            basis.is_empty() || steps.iter().any(|step| basis.contains(step))
        };
        let leads = match (finding.severity(), finding) {
            (Severity::Answer, _) => return FindingRank::Answer,
            (Severity::Note, _) => return FindingRank::Rest,
            (
                Severity::Doubt,
                Finding::ClientSaturated(ClientSaturated { steps, .. })
                | Finding::Server(ServerFinding::ProcessorsExhausted { steps, .. }),
            ) => concerns(&self.bounding, steps),
            (Severity::Doubt, Finding::Ceiling(ceiling)) => concerns(&self.bounding, &ceiling.steps),
            (Severity::Doubt, finding) => finding.steps().is_none_or(|steps| concerns(&self.reported, steps)),
        };
        if leads { FindingRank::BeforeAnswer } else { FindingRank::AfterAnswer }
    }
}

#[cfg(test)]
mod tests {
    use crate::StepLine;
    use crate::{Finding, LatencyTarget, analyse};
    use model::record::sample;
    use model::record::{Outcome, Run};

    /// The findings of a sweep of 1 to 32 sessions, of which 16 are the load line, with one step disturbed.
    fn findings_with(step: usize, disturb: impl Fn(&mut model::record::Step)) -> Vec<Finding> {
        let mut run = sample::sweep(60);
        disturb(&mut run.steps[step]);
        analyse(&run, &LatencyTarget::default())
    }

    fn stall(step: &mut model::record::Step) {
        for interval in step.intervals.iter_mut().filter(|interval| !interval.warmup).take(3) {
            interval.counters.operations = Some(0);
        }
    }

    fn saturate(step: &mut model::record::Step) {
        step.generator.as_mut().unwrap().busiest_share = 0.99;
    }

    fn position(found: &[Finding], is: impl Fn(&Finding) -> bool) -> usize {
        found.iter().position(is).unwrap_or_else(|| panic!("not in {found:#?}"))
    }

    #[test]
    fn a_doubt_about_another_step_comes_after_the_answer() {
        for step in [0, 2, 5] {
            let found = findings_with(step, stall);
            assert!(matches!(found[0], Finding::StepLine(StepLine::Between { .. })), "step {step}: {found:#?}");
            let doubt = position(&found, |finding| matches!(finding, Finding::Stalled(_)));
            let knee = position(&found, |finding| matches!(finding, Finding::Knee(_)));
            assert!(doubt > knee, "answers stand together: {found:#?}");
        }
    }

    #[test]
    fn a_doubt_about_the_step_that_the_answer_rests_on_comes_first() {
        let found = findings_with(4, stall);
        let doubt = position(&found, |finding| matches!(finding, Finding::Stalled(_)));
        let line = position(&found, |finding| matches!(finding, Finding::StepLine(StepLine::Between { .. })));
        assert!(doubt < line, "{found:#?}");
    }

    #[test]
    fn the_load_generator_comes_first_where_it_can_have_drawn_the_line() {
        for (step, leads) in [(0, false), (3, false), (4, true), (5, true)] {
            let found = findings_with(step, saturate);
            assert_eq!(matches!(found[0], Finding::ClientSaturated(_)), leads, "step {step}: {found:#?}");
        }
    }

    #[test]
    fn how_a_run_ended_and_what_is_true_of_all_steps_comes_first() {
        let first = |change: fn(&mut Run)| {
            let mut run = sample::sweep(60);
            change(&mut run);
            analyse(&run, &LatencyTarget::default()).swap_remove(0)
        };
        assert!(matches!(first(|run| run.outcome = Outcome::Interrupted), Finding::NotCompleted(_)));
        let page_cache = |run: &mut Run| {
            let _ = run.target.facts.insert("direct_io".to_owned(), "off".to_owned());
        };
        assert!(matches!(first(page_cache), Finding::PageCacheUsed(_)));
    }

    #[test]
    fn without_an_answer_every_doubt_comes_first() {
        let mut run = sample::sweep(60);
        stall(&mut run.steps[1]);
        let target = LatencyTarget { subject: Some("nothing".into()), ..LatencyTarget::default() };
        let found = analyse(&run, &target);
        let doubt = position(&found, |finding| matches!(finding, Finding::Stalled(_)));
        assert!(doubt < position(&found, |finding| matches!(finding, Finding::StepLine(StepLine::NotJudged { .. }))));
    }
}
