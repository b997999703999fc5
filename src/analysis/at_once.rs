//! Steps that were jobs at the same time: what the platform carried is what they did together.

use super::measured;
use crate::record::{OperationStats, Outcome, Run, Step};

/// Fact that all steps of an imported run are jobs that ran at the same time, and how many they are.
const AT_ONCE: &str = "jobs_at_once";
/// Jobs of which the shortest lasted less than this share of the longest were not there together all the time.
const EQUALLY_LONG: f64 = 0.9;

/// How many jobs the steps of `run` were at the same time; absent where they ran one after the other.
pub(super) fn jobs(run: &Run) -> Option<&str> {
    run.imported.as_ref().and(run.target.facts.get(AT_ONCE)).map(String::as_str)
}

/// All steps as the one level that they were; absent where they ran one after the other, where one of them is not measured to
/// its end, and where some ended long before the others, so that nobody knows what the load was while all of them ran.
pub(super) fn together(run: &Run) -> Option<Step> {
    let count = jobs(run)?;
    let steps: Vec<&Step> = measured(run).filter(|step| step.outcome == Outcome::Completed).collect();
    let lengths = || steps.iter().map(|step| step.window.duration_ns);
    let (shortest, longest) = (lengths().min()?, lengths().max()?);
    if steps.len() != run.steps.len() || (shortest as f64) < EQUALLY_LONG * longest as f64 {
        return None;
    }
    let (first, others) = steps.split_first()?;
    let mut all = Step::new(first.index, format!("{count} jobs together"));
    all.outcome = Outcome::Completed;
    all.window = first.window.clone();
    all.window.duration_ns = longest;
    all.load.sessions = steps.iter().map(|step| step.load.sessions).sum();
    all.counters = others.iter().fold(first.counters.clone(), |sum, step| sum.with(&step.counters));
    steps.iter().flat_map(|step| &step.operations).for_each(|more| add(&mut all.operations, more));
    Some(all)
}

/// Whether steps of an imported run must have overlapped, since together they are longer than the run took, though which did so is
/// not told: what one of them missed it missed beside an unknown load.
pub(super) fn is_beside_others(run: &Run) -> bool {
    let Some(ended_at) = run.ended_at.filter(|_| run.imported.is_some() && run.steps.len() > 1) else { return false };
    let took_ns = ended_at.0.duration_since(run.started_at.0).as_nanos() as f64;
    let all_ns: f64 = measured(run).map(|step| step.window.duration_ns as f64).sum();
    took_ns < EQUALLY_LONG * all_ns
}

/// Whether nobody told when each of several imported steps began: all of them stand at the beginning of the run.
pub(super) fn has_no_order(run: &Run) -> bool {
    let mut offsets = run.steps.iter().map(|step| step.window.offset_ns);
    let first = offsets.next();
    run.imported.is_some() && run.steps.len() > 1 && offsets.all(|offset| Some(offset) == first)
}

fn add(operations: &mut Vec<OperationStats>, more: &OperationStats) {
    let Some(sum) = operations.iter_mut().find(|operation| operation.kind == more.kind) else {
        operations.push(more.clone());
        return;
    };
    sum.count = sum.count.saturating_add(more.count);
    sum.errors = sum.errors.saturating_add(more.errors);
    sum.block_touches = sum.block_touches.saturating_add(more.block_touches);
    sum.service.merge(&more.service);
    sum.response.merge(&more.response);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Clock, Imported, sample};

    #[test]
    fn steps_that_are_longer_than_their_run_overlapped() {
        let mut run = sample::sweep(60);
        run.imported = Some(Imported { files: Vec::new(), clock: Clock::Utc, not_understood: Vec::new() });
        let took =
            |seconds| Some(crate::record::Timestamp(run.started_at.0 + jiff::SignedDuration::from_secs(seconds)));
        let (all, half) = (took(60 * 6), took(60 * 3));
        run.ended_at = all;
        assert!(!is_beside_others(&run) && !has_no_order(&run));
        run.ended_at = half;
        assert!(is_beside_others(&run));
        run.steps.iter_mut().for_each(|step| step.window.offset_ns = 0);
        assert!(has_no_order(&run));
        run.imported = None;
        assert!(!is_beside_others(&run) && !has_no_order(&run));
    }

    #[test]
    fn jobs_at_the_same_time_are_one_level_and_steps_after_each_other_are_not() {
        let mut run = sample::sweep(60);
        assert_eq!(together(&run), None);
        run.target.facts.insert(AT_ONCE.to_owned(), run.steps.len().to_string());
        assert_eq!(together(&run), None, "our own steps never are");
        run.imported = Some(Imported { files: Vec::new(), clock: Clock::Utc, not_understood: Vec::new() });
        let all = together(&run).unwrap();
        let reads = |step: &Step| step.counters.physical_reads.unwrap();
        assert_eq!(reads(&all), run.steps.iter().map(reads).sum::<u64>());
        let count = |step: &Step| step.operations.iter().map(|operation| operation.response.count()).sum::<u64>();
        assert_eq!(
            (count(&all), all.operations.len()),
            (run.steps.iter().map(count).sum(), run.steps[0].operations.len())
        );

        run.steps[1].counters.physical_writes = None;
        assert_eq!(together(&run).unwrap().counters.physical_writes, None, "not that of the others");
        run.steps[0].window.duration_ns /= 2;
        assert_eq!(together(&run), None, "half of the time it was not there");
    }
}
