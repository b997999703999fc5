//! Steps that were jobs at the same time: what the platform carried is what they did together.

use std::borrow::Cow;

use super::is_measured;
use model::record::at_once::{self, TOGETHER};
use model::record::{JobsAtOnce, OperationStats, Outcome, Run, Step};

/// What ran by itself: a step, or all that ran at the same time.
#[derive(Debug, Clone)]
pub(super) struct Level<'a> {
    /// The step, or those that ran together summed up.
    pub(super) step: Cow<'a, Step>,
    /// How many steps it is.
    pub(super) jobs: usize,
    /// Whether it is all that ran in its time; else a part of a load of which the rest is not known.
    pub(super) is_whole: bool,
}

/// The levels of `run`, in the order in which their first steps stand there. Steps that ran together are one level, unless one of
/// them is not measured to its end, or they were not there together nearly all the time, so that nobody knows what the load was
/// while all of them ran: then each is a part.
pub(super) fn levels(run: &Run) -> Vec<Level<'_>> {
    let groups = groups(run);
    let are_several = groups.len() > 1;
    let mut levels = Vec::new();
    for (steps, is_reported) in groups {
        let sum = if steps.len() > 1 && is_reported { sum(&steps, are_several) } else { None };
        match sum {
            Some(sum) => levels.push(Level { step: Cow::Owned(sum), jobs: steps.len(), is_whole: true }),
            None => {
                let is_whole = is_reported && steps.len() == 1;
                levels.extend(steps.into_iter().map(|step| Level { step: Cow::Borrowed(step), jobs: 1, is_whole }));
            }
        }
    }
    levels
}

/// The run with a step for each level in place of jobs that ran at the same time: these are no repeats of each other, and what one of
/// them did is no load. Parts of levels that are not known as a whole stay what they are.
pub fn joined(mut run: Run) -> Run {
    if !is_of_jobs(&run) {
        return run;
    }
    let (mut steps, mut groups): (Vec<Step>, Vec<Option<u32>>) = Default::default();
    for (level, index) in levels(&run).into_iter().zip(0..) {
        groups.push(level.is_whole.then_some(index));
        steps.push(Step { index, ..level.step.into_owned() });
    }
    run.steps = steps;
    run.target.facts.jobs_at_once = Some(JobsAtOnce::Each(groups));
    run
}

/// Numbers of the steps of `run` that are parts of a load of which the rest is not known.
pub(super) fn parts(run: &Run) -> Vec<u32> {
    levels(run).iter().filter(|level| !level.is_whole).map(|level| level.step.index).collect()
}

/// Whether some steps of `run` were jobs at the same time.
pub fn is_of_jobs(run: &Run) -> bool {
    groups(run).iter().any(|(steps, is_reported)| steps.len() > 1 || !is_reported)
}

/// Steps by what they ran with, and whether that is reported on them.
fn groups(run: &Run) -> Vec<(Vec<&Step>, bool)> {
    let jobs = run.imported.as_ref().and(run.target.facts.jobs_at_once.as_ref());
    let steps = |places: Vec<usize>| places.into_iter().filter_map(|place| run.steps.get(place)).collect();
    let groups = at_once::groups(jobs, run.steps.len());
    groups.into_iter().map(|(places, is_reported)| (steps(places), is_reported)).collect()
}

/// Steps that ran at the same time as the one level that they were.
fn sum(steps: &[&Step], are_several: bool) -> Option<Step> {
    let (first, others) = steps.split_first()?;
    if steps.iter().any(|step| step.outcome != Outcome::Completed) {
        return None;
    }
    let windows: Vec<(u64, u64)> = steps.iter().map(|step| (step.window.offset_ns, step.window.duration_ns)).collect();
    let (from_ns, to_ns) = at_once::together(&windows)?;
    let label = if are_several {
        format!("{} and {} more together", first.label, others.len())
    } else {
        format!("{} jobs together", steps.len())
    };
    let mut all = Step::new(first.index, label);
    all.outcome = Outcome::Completed;
    all.window = first.window.clone();
    (all.window.offset_ns, all.window.duration_ns) = (from_ns, to_ns.saturating_sub(from_ns));
    let is_of_all = |name: &String, value: &String| others.iter().all(|step| step.parameters.get(name) == Some(value));
    all.parameters = first.parameters.clone();
    all.parameters.retain(|name, value| is_of_all(name, value));
    all.load.sessions = steps.iter().map(|step| step.load.sessions).sum();
    all.counters = others.iter().fold(first.counters.clone(), |sum, step| sum.with(&step.counters));
    steps.iter().flat_map(|step| &step.operations).for_each(|more| add(&mut all.operations, more));
    Some(all)
}

/// Whether levels of an imported run must have overlapped, since together they are longer than the run took, though which did so is
/// not reported: what one of them missed it missed beside an unknown load.
pub(super) fn is_beside_others(run: &Run) -> bool {
    let Some(ended_at) = run.ended_at.filter(|_| run.imported.is_some() && run.steps.len() > 1) else { return false };
    let took_ns = ended_at.0.duration_since(run.started_at.0).as_nanos() as f64;
    let levels = levels(run);
    let all_ns: f64 =
        levels.iter().filter(|level| is_measured(&level.step)).map(|level| level.step.window.duration_ns as f64).sum();
    levels.len() > 1 && took_ns < TOGETHER * all_ns
}

/// Whether nobody reported when each of several levels of an imported run began: all of them stand at the beginning of the run.
pub(super) fn has_no_order(run: &Run) -> bool {
    let levels = levels(run);
    let mut offsets = levels.iter().map(|level| level.step.window.offset_ns);
    let first = offsets.next();
    run.imported.is_some() && levels.len() > 1 && offsets.all(|offset| Some(offset) == first)
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
    use model::record::{Clock, Imported, sample};

    #[test]
    fn steps_that_are_longer_than_their_run_overlapped() {
        let mut run = sample::sweep(60);
        run.imported = Some(Imported { files: Vec::new(), clock: Clock::Utc, not_understood: Vec::new() });
        let took =
            |seconds| Some(model::record::Timestamp(run.started_at.0 + jiff::SignedDuration::from_secs(seconds)));
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

    fn imported(steps: usize, jobs: JobsAtOnce) -> Run {
        let mut run = sample::sweep(60);
        run.steps.truncate(steps);
        run.steps.iter_mut().for_each(|step| step.window.offset_ns = 0);
        run.imported = Some(Imported { files: Vec::new(), clock: Clock::Utc, not_understood: Vec::new() });
        run.target.facts.jobs_at_once = Some(jobs);
        run
    }

    /// By a number for each step, 0 where it is not reported.
    fn each<const STEPS: usize>(numbers: [u32; STEPS]) -> JobsAtOnce {
        JobsAtOnce::Each(numbers.map(|number| Some(number).filter(|number| *number > 0)).into())
    }

    fn reads(step: &Step) -> u64 {
        step.counters.physical_reads.unwrap()
    }

    /// How many jobs each level is, and whether it is whole.
    fn shape(run: &Run) -> Vec<(usize, bool)> {
        levels(run).iter().map(|level| (level.jobs, level.is_whole)).collect()
    }

    #[test]
    fn jobs_at_the_same_time_are_one_level_and_steps_after_each_other_are_not() {
        let mut run = imported(6, JobsAtOnce::All(6));
        let of_import = run.imported.take();
        assert!(levels(&run).len() == 6 && !is_of_jobs(&run), "our own steps never are");
        run.imported = of_import;
        let all = levels(&run).remove(0).step.into_owned();
        assert!(shape(&run) == [(6, true)] && is_of_jobs(&run));
        assert_eq!((reads(&all), all.label.as_str()), (run.steps.iter().map(reads).sum(), "6 jobs together"));
        let count = |step: &Step| step.operations.iter().map(|operation| operation.response.count()).sum::<u64>();
        assert_eq!(
            (count(&all), all.operations.len()),
            (run.steps.iter().map(count).sum(), run.steps[0].operations.len())
        );

        run.steps[1].counters.physical_writes = None;
        assert_eq!(levels(&run)[0].step.counters.physical_writes, None, "not that of the others");
        run.steps[0].window.duration_ns /= 2;
        assert_eq!(shape(&run), [(1, false); 6], "half of the time it was not there");
        run.target.facts.jobs_at_once = None;
        assert!(shape(&run) == [(1, true); 6] && !is_of_jobs(&run));
    }

    #[test]
    fn of_several_groups_each_is_a_level_of_its_own_jobs() {
        let run = imported(6, each([1, 1, 2, 3, 3, 1]));
        assert_eq!(shape(&run), [(3, true), (1, true), (2, true)]);
        let (levels, steps) = (levels(&run), &run.steps);
        assert_eq!(reads(&levels[0].step), reads(&steps[0]) + reads(&steps[1]) + reads(&steps[5]));
        assert_eq!(reads(&levels[1].step), reads(&steps[2]));
        assert_eq!(reads(&levels[2].step), reads(&steps[3]) + reads(&steps[4]));
        assert_eq!(levels[2].step.label, format!("{} and 1 more together", steps[3].label));
        assert!(is_of_jobs(&run) && !is_of_jobs(&imported(3, each([1, 2, 3]))));
    }

    #[test]
    fn jobs_of_which_nobody_tells_how_long_they_ran_together_are_parts() {
        assert_eq!(shape(&imported(3, each([0, 0, 2]))), [(1, false), (1, false), (1, true)]);
        assert_eq!(shape(&imported(2, each([1, 1, 2]))), [(1, true); 2], "it is of another run");
    }

    #[test]
    fn a_run_of_jobs_is_joined_to_its_whole_levels() {
        let run = imported(6, each([1, 1, 0, 0, 2, 2]));
        let all = joined(run.clone());
        assert_eq!(all.steps.iter().map(|step| step.index).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(reads(&all.steps[3]), reads(&run.steps[4]) + reads(&run.steps[5]));
        assert_eq!((parts(&all), parts(&run)), (vec![1, 2], vec![2, 3]));
        assert!(all.steps[0].load.sessions > run.steps[1].load.sessions && joined(all.clone()) == all);
        let only_parts = joined(imported(2, each([0, 0])));
        assert_eq!((only_parts.steps.len(), parts(&only_parts)), (2, vec![0, 1]));
        let by_itself = sample::sweep(60);
        assert_eq!(joined(by_itself.clone()), by_itself);
    }

    #[test]
    fn jobs_that_began_after_each_other_are_no_sum() {
        let mut run = imported(2, JobsAtOnce::All(2));
        run.steps[1].window.offset_ns = 3_000_000_000;
        let level = levels(&run).remove(0);
        assert_eq!((level.is_whole, level.step.window.duration_ns), (true, 63_000_000_000));
        run.steps[1].window.offset_ns = 60_000_000_000;
        assert_eq!(shape(&run), [(1, false); 2]);
    }

    #[test]
    fn levels_of_several_jobs_are_no_longer_than_their_run() {
        let mut run = imported(6, each([1, 1, 1, 2, 2, 2]));
        run.ended_at = Some(model::record::Timestamp(run.started_at.0 + jiff::SignedDuration::from_secs(120)));
        assert!(!is_beside_others(&run));
        run.target.facts.jobs_at_once = None;
        assert!(is_beside_others(&run));
    }
}
