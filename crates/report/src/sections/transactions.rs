//! Transactions of order entry: how many, how long they took, and what they came to.

use std::io;

use super::Column;
use super::spread;
use crate::grid::Grid;
use crate::paper::Paper;
use crate::words::{NONE, duration, mean, number, quantile};
use analysis::{Figures, highest_minute};
use model::record::{Histogram, OperationStats, Run, Step, TransactionStats};
use model::units::group_thousands;

const RATES: [Column; 10] = [
    ("users", |f| super::sessions(f.0)),
    ("transactions/s", |f| number(f.operations_per_s())),
    ("per minute", |f| number(f.operations_per_s().map(|per_s| per_s * 60.0))),
    ("highest minute", |f| highest_minute(f.0).map_or_else(unknown, |most| group_thousands(most as f64))),
    ("commits/s", |f| number(f.commits_per_s())),
    ("mean", |f| response(f, mean)),
    ("p50", |f| response(f, |times| quantile(times, 0.5))),
    ("p99", |f| response(f, |times| quantile(times, 0.99))),
    ("p99.9", |f| response(f, |times| quantile(times, 0.999))),
    ("max", |f| response(f, |times| duration(times.max_ns()))),
];

fn response(figures: &Figures<'_>, show: fn(&Histogram) -> String) -> String {
    figures.response().map_or_else(|| NONE.to_owned(), |times| show(&times))
}

/// How many transactions each step did, and how long they took.
pub(crate) fn rates(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    super::steps(paper, run, "Transactions and their response times (layer: client; pauses left out)", &RATES)?;
    spread::write(paper, run)
}

/// Each kind of transaction: times, and what one came to.
pub(crate) fn kinds(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let names =
        ["step", "transaction", "count", "/s", "failed", "retried", "rolled back", "mean", "p50", "p95", "p99", "max"];
    let mut times = Grid::new(2, names);
    let mut work = Grid::new(
        2,
        ["step", "transaction", "statements", "round trips", "rows read", "rows changed", "commits", "paused"],
    );
    for (step, operation) in of_steps(run) {
        let OperationStats { kind, count, errors, response, transactions, .. } = operation;
        let named = [step.label.clone(), kind.clone()];
        let per_s = analysis::rate(Some(*count), step.window.duration_ns);
        let stats = transactions.as_ref();
        let some = |count: u64| if count == 0 { NONE.to_owned() } else { group_thousands(count as f64) };
        let counts = [
            group_thousands(*count as f64),
            number(per_s),
            some(*errors),
            stats.map_or_else(unknown, |stats| some(stats.retries.values().sum())),
            stats.map_or_else(unknown, |stats| some(stats.rollbacks)),
            mean(response),
        ];
        let quantiles = [0.5, 0.95, 0.99].map(|q| quantile(response, q));
        times.push(named.iter().cloned().chain(counts).chain(quantiles).chain([duration(response.max_ns())]).collect());
        let figures: [fn(&TransactionStats) -> u64; 5] =
            [|s| s.statements, |s| s.round_trips, |s| s.rows_read, |s| s.rows_changed, |s| s.commits];
        let each = |total: u64| (*count > 0).then(|| total as f64 / *count as f64);
        let figures = figures.map(|of| stats.map_or_else(unknown, |stats| number(each(of(stats)))));
        let paused =
            stats.map_or_else(unknown, |stats| duration(stats.paused_ns.checked_div(*count).filter(|ns| *ns > 0)));
        work.push(named.into_iter().chain(figures).chain([paused]).collect());
    }
    paper.table("Each kind of transaction and its response time, from due to finished", &times)?;
    paper.table("What one of each kind came to, on average, with all attempts", &work)?;
    for (step, operation) in of_steps(run) {
        let Some(stats) = &operation.transactions else { continue };
        for (what, classes) in [("tried again", &stats.retries), ("failed", &stats.failures)] {
            let words: Vec<String> =
                classes.iter().map(|(class, count)| format!("{class} {}", group_thousands(*count as f64))).collect();
            if !words.is_empty() {
                paper.remark(&format!("{}, {}: {what} after {}", step.label, operation.kind, words.join(", ")))?;
            }
        }
    }
    Ok(())
}

fn unknown() -> String {
    crate::words::UNKNOWN.to_owned()
}

fn of_steps(run: &Run) -> impl Iterator<Item = (&Step, &OperationStats)> {
    run.steps.iter().flat_map(|step| step.operations.iter().map(move |operation| (step, operation)))
}
