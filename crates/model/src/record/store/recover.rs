//! Giving a step that was never closed what its intervals know.

use crate::record::{Outcome, Run, Step, WaitStats};

/// Events in which the engine's own writers wait, where no closed step of the run reports.
const BACKGROUND: [&str; 2] = ["db file parallel write", "log file parallel write"];

/// Sums the measured intervals of every step that was written down when it began and not again: its process was killed.
/// Such a step stays unfinished, and a note says how its figures came to be.
pub(super) fn unfinished_steps(run: &mut Run) {
    let never_closed = |step: &Step| step.outcome == Outcome::Unfinished && step.window.duration_ns == 0;
    if !run.steps.iter().any(never_closed) {
        return;
    }
    let known: Vec<WaitStats> = run.steps.iter().flat_map(|step| step.waits.clone()).collect();
    let mut notes = Vec::new();
    for step in run.steps.iter_mut().filter(|step| never_closed(step)) {
        sum_intervals(step, &known);
        if step.window.duration_ns > 0 {
            notes.push(format!("{} was never closed; its figures are the sum of its intervals", step.label));
        }
    }
    run.notes.extend(notes);
}

fn sum_intervals(step: &mut Step, known: &[WaitStats]) {
    let Step { intervals, window, counters, waits, .. } = step;
    for interval in intervals.iter().filter(|interval| !interval.warmup) {
        window.duration_ns += interval.duration_ns;
        counters.add(&interval.counters);
        for (event, histogram) in &interval.waits {
            match waits.iter_mut().find(|wait| wait.event == *event) {
                Some(wait) => wait.waits.merge(histogram),
                None => waits.push(WaitStats { waits: histogram.clone(), ..description(event, known) }),
            }
        }
    }
}

fn description(event: &str, known: &[WaitStats]) -> WaitStats {
    let same = known.iter().find(|wait| wait.event == event);
    WaitStats {
        event: event.to_owned(),
        class: same.map_or_else(|| "unknown".to_owned(), |wait| wait.class.clone()),
        layer: same.map_or_else(|| "engine".to_owned(), |wait| wait.layer.clone()),
        foreground: same.map_or_else(|| !BACKGROUND.contains(&event), |wait| wait.foreground),
        waits: crate::record::Histogram::default(),
        reported: Vec::new(),
    }
}
