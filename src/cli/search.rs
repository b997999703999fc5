//! `--rate LOW..HIGH`: which rates are tried, and when it is enough.

use super::recording::{NextStep, Recording};
use analysis::{LatencyTarget, Search, SearchPlan, Verdict, judge_all};

/// Tries rates until the load line is known well enough: `run_step` makes a step of a number and a rate. Returns how many steps a
/// whole run has: those that were needed.
pub(super) fn run(
    recording: &mut Recording,
    (low, high): (f64, f64),
    limits: &[LatencyTarget],
    run_step: &mut dyn FnMut(&mut Recording, u32, f64) -> NextStep,
) -> usize {
    let mut search = Search::new(SearchPlan { low: asked(low), high: asked(high), ..SearchPlan::default() });
    let mut steps = 0;
    while let Some(per_s) = search.next() {
        let per_s = asked(per_s);
        let next_step = run_step(recording, steps, per_s);
        steps += 1;
        let own = recording.steps().last().and_then(|step| judge_all(recording.run().workload(), step, limits));
        if next_step == NextStep::Stop {
            break;
        }
        let Some(outcome) = recording.judged(steps - 1, own) else { break };
        search.record(Verdict { rate: per_s, outcome });
    }
    steps as usize
}

/// Rates are printed and recorded as they are asked for, so they have no more digits than a person reads. The ends of the
/// range too: the search waits for a verdict on just these.
fn asked(per_s: f64) -> f64 {
    if per_s >= 100.0 { per_s.round() } else { per_s }
}
