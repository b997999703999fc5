use super::*;
use crate::draft::{reported_figure, step};
use crate::percentiles;
use model::record::OperationStats;
use model::record::Workload;
use model::workload::Arrival;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// A run of 10 s with four sessions, whose reads took so long.
fn run(response: Histogram) -> Draft {
    let mut draft = Draft::new(Workload::Io, "program", "run");
    let mut step = step(0, "all", 10 * S);
    step.load.sessions = Some(4);
    let (kind, count, service) = ("read".to_owned(), response.count(), response.clone());
    step.operations.push(OperationStats {
        kind,
        count,
        errors: 0,
        block_touches: 0,
        service,
        response,
        transactions: None,
    });
    draft.steps.push(step);
    draft
}

fn checked(mut draft: Draft) -> (Draft, Vec<String>) {
    check(&mut draft);
    let notes = draft.notes.clone();
    (draft, notes)
}

#[test]
fn what_may_be_is_left_as_it_is() {
    let response = percentiles::histogram(
        100,
        Some(100 * 2 * MS),
        Some(MS),
        Some(10 * S + S / 2),
        &[(0.5, 2 * MS), (0.99, 3 * MS)],
    );
    let before = run(response);
    let (after, notes) = checked(before.clone());
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(after.steps, before.steps);
}

#[test]
fn a_latency_longer_than_the_load_is_left_unknown_with_its_value() {
    let response = percentiles::histogram(100, Some(200 * MS), Some(MS), Some(3_600 * S), &[(0.5, 2 * MS)]);
    let (draft, notes) = checked(run(response));
    assert_eq!(
        notes,
        ["The longest latency of read is reported as 1h00m, longer than the load of 10.0 s: it is left unknown."]
    );
    let response = &draft.steps[0].operations[0].response;
    assert_eq!((response.count(), response.max_ns(), response.mean_ns()), (100, None, Some(2.0 * MS as f64)));
    assert_eq!(response.quantiles_ns(&[0.5, 0.99]), [Some(2 * MS), None], "the last percentile ended at the maximum");
    let mut database = run(percentiles::histogram(100, None, None, Some(3_600 * S), &[]));
    database.workload = Workload::Database;
    assert!(checked(database).1.is_empty(), "a wait may have begun long before");
}

#[test]
fn buckets_beyond_the_load_are_kept_and_reported() {
    let bucket = ReportedBucket { from_ns: 60 * S, to_ns: None, count: 1 };
    let (draft, notes) = checked(run(Histogram::reported([bucket], None, None, None)));
    assert_eq!(
        notes,
        ["The highest bucket of the latency of read is reported as 1m00s, longer than the load of 10.0 s: it is kept."]
    );
    assert_eq!(draft.steps[0].operations[0].response.count(), 1);
}

#[test]
fn a_mean_outside_its_extremes_is_left_unknown() {
    let of = |mean_ns: u64, min_ns: u64, max_ns: u64| {
        let (draft, notes) =
            checked(run(percentiles::histogram(10, Some(10 * mean_ns), Some(min_ns), Some(max_ns), &[])));
        (draft.steps[0].operations[0].response.total_ns().is_some(), notes)
    };
    let (is_known, notes) = of(9_123_456, 123_456, 8_765_432);
    assert!(!is_known);
    assert_eq!(
        notes,
        ["The mean latency of read is reported as 9.12 ms, above the longest, 8.77 ms: the mean is left unknown."]
    );
    assert!(of(100_001, 123_456, 8_765_432).1[0].contains("below the shortest, 123 us"));
    // Extremes in whole milliseconds are rounded.
    assert_eq!(of(8_400_000, MS, 8 * MS), (true, vec![]));
    assert_eq!(of(600_000, MS, 8 * MS), (true, vec![]));
}

#[test]
fn figures_by_other_names_stay_and_are_reported() {
    let mut draft = run(Histogram::counted(1, None));
    draft.steps[0].reported = vec![
        reported_figure("client", "latency min", "ms", 1.5),
        reported_figure("client", "latency avg", "ms", 1.25),
        reported_figure("client", "latency max", "ms", 20_000.0),
        reported_figure("client", "latency sum", "ms", 900_000.0),
    ];
    let (draft, notes) = checked(draft);
    assert_eq!(
        notes,
        [
            "`latency max` is reported as 20,000 ms, longer than the load of 10.0 s: it is kept as reported.",
            "`latency avg` is reported as 1.25 ms, below `latency min` of 1.5: both are kept as reported."
        ]
    );
    assert_eq!(draft.steps[0].reported.len(), 4);
}

#[test]
fn a_rate_that_its_counts_do_not_allow_is_not_believed() {
    let of = |program: &'static str, name: &str, rate: f64| {
        let mut draft = run(Histogram::counted(1_000, None));
        draft.program = program;
        draft.steps[0].counters.operations = Some(1_000);
        draft.steps[0].reported.push(reported_figure("client", name, "/s", rate));
        let (draft, notes) = checked(draft);
        (draft.steps[0].reported.len(), notes)
    };
    assert_eq!(of("pgbench", "tps (without initial connection time)", 101.0), (1, vec![]));
    let (left, notes) = of("pgbench", "tps (without initial connection time)", 200.0);
    assert_eq!((left, notes.len()), (0, 1));
    assert!(
        notes[0].ends_with("is not believed: 1,000 transactions in 10.0 s are 100/s. The counts are kept."),
        "{notes:?}"
    );
    assert_eq!(of("sysbench", "events per second", 10.0).0, 0);
    assert_eq!(of("pgbench", "tps (excluding connections establishing)", 200.0).0, 1, "it is of a shorter time");
}

#[test]
fn a_rate_and_its_bytes_that_contradict_each_other_are_reported() {
    let of = |bits_per_s: f64| {
        let mut draft = run(Histogram::counted(1, None));
        let figures = [("stream 5 sent bits/s", "bits/s", bits_per_s), ("stream 5 sent bytes", "bytes", 1e9)];
        draft.steps[0].reported =
            figures.map(|(name, unit, value)| reported_figure("network", name, unit, value)).into();
        checked(draft).1
    };
    assert!(of(0.81e9).is_empty());
    assert!(of(8e9)[0].contains("`stream 5 sent bytes` over 10.0 s are 800,000,000"), "{:?}", of(8e9));
}

#[test]
fn operations_do_not_take_longer_than_their_sessions_have() {
    assert!(checked(run(Histogram::counted(1_000, Some(40 * S)))).1.is_empty());
    let (draft, notes) = checked(run(Histogram::counted(1_000, Some(90 * S))));
    assert!(
        notes[0].starts_with("Operations are reported to have taken 1m30s in all, more than 4 sessions have"),
        "{notes:?}"
    );
    assert_eq!(draft.steps[0].operations[0].response.total_ns(), Some(90 * S));
    let mut open = run(Histogram::counted(1_000, Some(90 * S)));
    open.steps[0].load.arrival = Some(Arrival::Poisson);
    assert!(checked(open).1.is_empty(), "in an open loop they wait without a session");
}

#[test]
fn doubts_without_end_are_counted() {
    let mut draft = run(Histogram::counted(1, None));
    draft.steps[0].reported = (0..50).map(|at| reported_figure("client", format!("latency {at}"), "ms", 1e9)).collect();
    let (_, notes) = checked(draft);
    assert_eq!((notes.len(), notes[MAX_DOUBTS].as_str()), (MAX_DOUBTS + 1, "38 more figures cannot be."));
}
