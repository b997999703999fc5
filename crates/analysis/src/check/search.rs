//! Which multiple of what is asked is tried next.

use super::{ASKED, Tried};
use crate::sending::behind;
use crate::{Figures, Search, SearchPlan, Verdict, VerdictOutcome};
use model::record::Run;

/// More room than this is more than anybody asks about.
const MAX_TIMES: f64 = 64.0;
/// Less of what is asked than this is nothing.
const MIN_TIMES: f64 = 1.0 / 64.0;
/// How finely the multiple is wanted.
const RESOLUTION: f64 = 0.1;
/// What is carried is sought from this share on of what was finished at too high a rate.
const BELOW: f64 = 0.9;
/// So much more than what was finished at too high a rate is not carried.
const ABOVE: f64 = 1.02;
/// A failure at what is asked is measured once more before it counts: one hiccup does not decide.
const CONFIRMED: usize = 2;
/// Noise that three measurements do not settle is not settled by more.
const MAX_VERDICTS: usize = 3;

/// The multiple to measure next, 1 for exactly what is asked; absent when nothing is left to find out.
pub fn next_multiple(run: &Run) -> Option<f64> {
    let demands = run.check.as_ref()?.demands;
    let tried = Tried::of(run, &demands);
    let Some(outcome) = tried.outcome(1.0) else {
        // A step that was cut short or failed is not tried again.
        let is_first = !run.steps.iter().any(|step| step.label.starts_with(ASKED));
        return is_first.then_some(1.0);
    };
    let measured = tried.all_at(1.0).count();
    let is_decided = outcome == VerdictOutcome::Passed
        || tried.is_failed_by_errors(1.0)
        || measured >= CONFIRMED && !tried.is_contradictory(1.0);
    if !is_decided && measured < MAX_VERDICTS {
        return Some(1.0);
    }
    let (low, high) = match outcome {
        VerdictOutcome::Passed => (1.0, MAX_TIMES),
        VerdictOutcome::GeneratorBound => return None,
        VerdictOutcome::Failed | VerdictOutcome::Unsteady => (MIN_TIMES, 1.0),
    };
    let has_passed = tried.steps.iter().any(|(_, _, outcome)| *outcome == VerdictOutcome::Passed);
    if outcome != VerdictOutcome::Passed && !has_passed {
        return lower(&tried);
    }
    let plan = SearchPlan { low, high, resolution: RESOLUTION, repeats: 1, max_points: usize::MAX };
    let mut search = Search::new(plan);
    tried.outcomes().into_iter().for_each(|(rate, outcome)| search.record(Verdict { rate, outcome }));
    if let Some(finished) = finished_share(&tried) {
        search.record(Verdict { rate: finished * ABOVE, outcome: VerdictOutcome::Failed });
    }
    search.next()
}

/// The next multiple where none was carried yet: first just below what was finished of what is asked, if it fell behind, then half
/// of the least that was tried.
fn lower(tried: &Tried<'_>) -> Option<f64> {
    let least = tried.steps.iter().map(|(_, times, _)| *times).fold(1.0, f64::min);
    let next = match finished_share(tried) {
        Some(share) if least == 1.0 => share * BELOW,
        _ => least / 2.0,
    };
    // Two digits, for people will read it.
    let next = if next >= 0.1 { (next * 100.0).round() / 100.0 } else { next };
    (next >= MIN_TIMES).then_some(next)
}

/// Share of what is asked that was finished, of a load that fell behind: more than that was not to be had.
fn finished_share(tried: &Tried<'_>) -> Option<f64> {
    let step = tried.deciding(1.0).filter(|step| behind(step).is_some())?;
    let share = Figures(step).operations_per_s()? / step.load.rate_operations_per_s?;
    (share * ABOVE < 1.0).then_some(share)
}
