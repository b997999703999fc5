//! A replay beside what was recorded.

use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use crate::words::{NONE, duration};
use analysis::{DifferingInterval, FAITHFUL_HIT_POINTS, FAITHFUL_LAG_NS, Replayed, replayed};
use model::record::{Histogram, Load, Run};
use model::units::{Nanos, group_thousands};

/// A row for each kind of each step, recorded and replayed, and whether it was the same load.
pub(crate) fn write(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let Load::Replay(load) = &run.load else { return Ok(()) };
    let steps = replayed(run);
    let header = ["step", "type", "recorded", "replayed", "rec. p50", "rec. p99", "rec. p99.9", "p50", "p99", "p99.9"];
    let mut grid = Grid::new(2, header);
    for step in &steps {
        for kind in &step.kinds {
            let count = |number: u64| group_thousands(number as f64);
            let mut row = vec![step.step.clone(), kind.kind.clone(), count(kind.recorded), count(kind.finished)];
            row.extend(latencies(kind.recorded_latency.as_ref()));
            row.extend(latencies(Some(&kind.service)));
            grid.push(row);
        }
    }
    if grid.is_empty() {
        return Ok(());
    }
    paper.table(&format!("Recorded and replayed: {}", load.trace), &grid)?;
    faithful(run).iter().try_for_each(|words| paper.remark(words))?;
    steps.iter().filter_map(differing).try_for_each(|words| paper.remark(&words))?;
    paper.remark(
        "rec.: recorded, from issued to completed at the device. The others: from sent to finished in the replay.",
    )
}

fn latencies(histogram: Option<&Histogram>) -> Vec<String> {
    let of = |quantile: f64| {
        let known = histogram.filter(|histogram| histogram.count() > 0);
        known
            .and_then(|histogram| histogram.quantile_ns(quantile))
            .map_or_else(|| NONE.to_owned(), |ns| duration(Some(ns)))
    };
    [0.5, 0.99, 0.999].map(of).to_vec()
}

/// When a step differed most from the trace.
fn differing(step: &Replayed) -> Option<String> {
    let count = |number: u64| group_thousands(number as f64);
    let of = |one: &DifferingInterval| {
        format!("{} in {} from {} on, recorded {}", count(one.finished), one.duration, one.after, count(one.recorded))
    };
    let worst: Vec<String> = step.differing.iter().map(of).collect();
    (!worst.is_empty()).then(|| format!("{} differed most where it finished {}", step.step, worst.join("; ")))
}

/// Whether each step was the recorded load.
pub(crate) fn faithful(run: &Run) -> Vec<String> {
    replayed(run).iter().map(of_step).collect()
}

fn of_step(step: &Replayed) -> String {
    let label = &step.step;
    let late =
        step.lag_p99_ns.map_or_else(String::new, |ns| format!(", 99 % within {} of when they were due", Nanos(ns)));
    let sent = step.sent.map_or_else(|| "an unknown number".to_owned(), |sent| group_thousands(sent as f64));
    let of = group_thousands(step.requests as f64);
    if step.times.is_none() {
        return format!(
            "{label}: {sent} of {of} requests were sent, each when an earlier one ended: their recorded times do not count"
        );
    }
    match step.is_faithful() {
        Some(true) => {
            format!("{label} is faithful: all {of} requests were sent{late}")
        }
        Some(false) => {
            let moved = step.moved_hit_points.filter(|points| *points > FAITHFUL_HIT_POINTS);
            let moved = moved.map_or_else(String::new, |points| {
                format!("; folded addresses move the hit ratios of caches by up to {points:.1} points (limit {FAITHFUL_HIT_POINTS})")
            });
            format!(
                "{label} is not faithful: {sent} of {of} requests were sent{late} (limit {}){moved}",
                Nanos(FAITHFUL_LAG_NS)
            )
        }
        None => format!("{label}: whether it is faithful is not known"),
    }
}
