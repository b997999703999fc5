//! The steps of a run in turn, and those again that a hiccup may have decided.

use super::recording::{NextStep, Recording};
use crate::plan::again;
use analysis::{LatencyTarget, MAX_VERDICTS, to_repeat};
use load::{Compiled, StepPlan};
use model::record::Step;
use targets::TargetFor;

/// Carries out every step. See [`run_by`].
pub(super) fn run<S: Compiled>(
    recording: &mut Recording,
    target: &dyn TargetFor<S::Operation>,
    steps: &[StepPlan<S>],
    limits: &[LatencyTarget],
) -> usize {
    run_by(recording, steps, limits, &mut |recording, step| recording.step(target, step))
}

/// Has every step carried out. A load that does not keep `limits` although a larger one does is measured again at once; without
/// limits nothing is. Returns how many steps a whole run has.
pub(super) fn run_by<S: Compiled>(
    recording: &mut Recording,
    steps: &[StepPlan<S>],
    limits: &[LatencyTarget],
    run_step: &mut dyn FnMut(&mut Recording, &StepPlan<S>) -> NextStep,
) -> usize {
    // Of each step that was recorded, the plan that its load comes from.
    let mut plans: Vec<&StepPlan<S>> = Vec::with_capacity(steps.len());
    let mut repeats = 0;
    for plan in steps {
        let mut next = StepPlan { index: plans.len() as u32, ..plan.clone() };
        let mut origin = plan;
        loop {
            if run_step(recording, &next) == NextStep::Stop {
                return steps.len() + repeats;
            }
            plans.push(origin);
            let run = recording.run();
            let position = |step: &Step| run.steps.iter().position(|known| std::ptr::eq(known, step));
            let Some(again_at) = to_repeat(run, limits).and_then(position) else { break };
            origin = plans[again_at];
            let time = 1 + plans.iter().filter(|known| std::ptr::eq(**known, origin)).count();
            next = again(origin, plans.len() as u32, time);
            repeats += 1;
            recording.one_more(&next);
            recording.note(format!(
                "{} did not keep the limit although a larger load did: it is measured again as {}, {MAX_VERDICTS} times at most",
                origin.label, next.label
            ));
        }
    }
    steps.len() + repeats
}
