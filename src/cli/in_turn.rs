//! The steps of a run in turn, and those again that a hiccup may have decided.

use super::limits;
use super::recording::{NextStep, Recording};
use crate::plan::again;
use analysis::{LatencyTarget, MAX_VERDICTS, Search, SearchPlan, Verdict, is_hung, judge_all, to_repeat};
use load::{Compiled, StepPlan};
use model::config::io::RateRange;
use model::record::Step;
use targets::TargetFor;

/// Carries out every step, or searches for the rate that is carried where `rates` are a range: each step is then made by `step_at` of its
/// number and its rate. Returns how many steps a whole run has.
pub(super) fn run_rates<S: Compiled>(
    recording: &mut Recording,
    rates: Option<&RateRange>,
    steps: &[StepPlan<S>],
    limits: &[LatencyTarget],
    step_at: &mut dyn FnMut(u32, f64) -> Option<StepPlan<S>>,
    run_step: &mut dyn FnMut(&mut Recording, &StepPlan<S>) -> NextStep,
) -> usize {
    match rates {
        Some(RateRange::Between { lowest, highest }) => {
            let limits = limits::of_lines(limits);
            search(recording, (*lowest, *highest), &limits, &mut |recording, index, per_s| {
                step_at(index, per_s).map_or(NextStep::Stop, |step| run_step(recording, &step))
            })
        }
        Some(RateRange::Each(_)) => run_by(recording, steps, &limits::of_lines(limits), run_step),
        None => run_by(recording, steps, limits, run_step),
    }
}

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
    let limits = if recording.may_repeat() { limits } else { &[] };
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

/// Tries rates until the load line is known well enough: `run_step` makes a step of a number and a rate. Returns how many steps a
/// whole run has: those that were needed.
pub(super) fn search(
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
        let last = recording.steps().last();
        let own = last.and_then(|step| judge_all(recording.run().workload(), step, limits));
        let has_hung = last.zip(own).is_some_and(|(step, outcome)| is_hung(outcome, step));
        if next_step == NextStep::Stop {
            break;
        }
        let Some(outcome) = recording.judged(steps - 1, own) else { break };
        search.record(Verdict { rate: per_s, outcome });
        if has_hung {
            search.settle(per_s);
        }
    }
    steps as usize
}

/// Rates are printed and recorded as they are asked for, so they have no more digits than a person reads. The ends of the
/// range too: the search waits for a verdict on just these.
fn asked(per_s: f64) -> f64 {
    if per_s >= 100.0 { per_s.round() } else { per_s }
}
