//! Which steps have figures, and by which waits a database judges storage.

use model::record::{Outcome, Run, Step};

/// One block read into the buffer cache: the event by which databases judge storage.
pub const SINGLE_BLOCK_READ: &str = "db file sequential read";

/// The same where storage cells of Exadata answer.
pub(super) const CELL_SINGLE_BLOCK_READ: &str = "cell single block physical read";

/// Steps with figures: those that ended as asked, or were cut short by the user with something measured.
pub fn measured(run: &Run) -> impl Iterator<Item = &Step> {
    run.steps.iter().filter(|step| is_measured(step))
}

pub(super) fn is_measured(step: &Step) -> bool {
    matches!(step.outcome, Outcome::Completed | Outcome::Interrupted) && step.window.duration_ns > 0
}

/// Labels of the steps for which `rule` answers, and the largest answer.
pub(super) fn worst<T: PartialOrd>(run: &Run, rule: impl Fn(&Step) -> Option<T>) -> Option<(Vec<String>, T)> {
    let mut labels = Vec::new();
    let mut largest = None;
    for step in measured(run) {
        if let Some(answer) = rule(step) {
            labels.push(step.label.clone());
            if largest.as_ref().is_none_or(|known| answer > *known) {
                largest = Some(answer);
            }
        }
    }
    Some((labels, largest?))
}

/// Repeats of one load, or a single step, show what was done at that load and no line.
pub fn is_one_load(run: &Run) -> bool {
    let mut loads = measured(run).map(|step| (step.load.sessions, step.load.rate_operations_per_s, &step.parameters));
    let first = loads.next();
    loads.all(|load| Some(load) == first)
}
