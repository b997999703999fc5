use proptest::prelude::*;

use super::{aggregate, summary};
use crate::specimens::{damaged, source, survives};
use crate::{Began, Draft, ImportError, Notes};
use model::record::{Ending, OperationStats, Outcome};

const NEW: &str = "pgbench (16.2, server 15.6)\nstarting vacuum...end.\r\n\
progress: 2.0 s, 50.0 tps, lat 4.000 ms stddev 1.000, 1 failed, lag 0.300 ms, 2 skipped, 3 retried, 4 retries\n\
progress: 4.0 s, 0.0 tps, lat NaN ms stddev NaN, 0 failed\n\
transaction type: multiple scripts\nscaling factor: 9\nquery mode: simple\nnumber of clients: 6\nnumber of threads: 2\n\
maximum number of tries: 5\nduration: 4 s\nnumber of transactions actually processed: 100\n\
number of failed transactions: 1 (0.990%)\nnumber of transactions retried: 3 (2.970%)\ntotal number of retries: 4\n\
number of transactions above the 50.0 ms latency limit: 7/100 (7.000%)\nlatency average = 4.100 ms\nlatency stddev = 1.100 ms\n\
rate limit schedule lag: avg 0.310 (max 5.200) ms\ninitial connection time = 3.200 ms\n\
tps = 25.001 (without initial connection time)\nSQL script 1: one.sql\n - weight: 3 (targets 75.0% of total)\n\
 - 70 transactions (70.0% of total, tps = 17.5)\n - number of failed transactions: 1 (1.408%)\n - latency average = 5.000 ms\n\
 - latency stddev = 0.900 ms\n - statement latencies in milliseconds and failures:\n         0.500           0  UPDATE t SET a = 1;\n\
\x20        0.250           1  ALTER USER x PASSWORD 'hush';\nSQL script 2: <builtin: select only>\n - weight: 1 (targets 25.0% of total)\n\
 - 30 transactions (30.0% of total, tps = 7.5)\n - latency average = 2.000 ms\n";

const OLD: &str = "transaction type: TPC-B (sort of)\nscaling factor: 2\nquery mode: simple\nnumber of clients: 3\nnumber of threads: 1\n\
number of transactions per client: 10\nnumber of transactions actually processed: 28/30\nlatency average: 9.500 ms\n\
tps = 14.000000 (including connections establishing)\ntps = 15.500000 (excluding connections establishing)\n";

fn read(text: &str) -> Result<Vec<Draft>, ImportError> {
    let source = source(text);
    assert!(summary::recognises(source.head()), "{text}");
    summary::read(&source, &mut Notes::default())
}

fn figure_value(draft: &Draft, name: &str) -> Option<f64> {
    draft.steps[0].reported.iter().find(|figure| figure.name == name).map(|figure| figure.value)
}

#[test]
fn scripts_are_operations_and_progress_is_intervals() {
    let draft = read(NEW).unwrap().remove(0);
    let step = &draft.steps[0];
    let facts = (draft.version.as_str(), draft.target.facts.other["server_version"].as_str());
    assert_eq!((facts, step.load.sessions), (("16.2", "15.6"), Some(6)));
    assert_eq!(
        (step.counters.operations, step.counters.errors, step.window.ending),
        (Some(100), Some(1), Ending::Time)
    );
    let seen = |operation: &OperationStats| {
        (operation.kind.clone(), operation.count, operation.errors, operation.response.mean_ns())
    };
    let seen: Vec<_> = step.operations.iter().map(seen).collect();
    assert_eq!(
        seen,
        [("one.sql".to_owned(), 71, 1, Some(5e6)), ("<builtin: select only>".to_owned(), 30, 0, Some(2e6))]
    );
    assert_eq!(figure_value(&draft, "one.sql: weight"), Some(3.0));
    assert_eq!(figure_value(&draft, "rate limit schedule lag max"), Some(5.2));
    assert_eq!(figure_value(&draft, "number of transactions above the 50.0 ms latency limit"), Some(7.0));
    assert_eq!(figure_value(&draft, "one.sql: statement 1: UPDATE t SET a = 1;"), Some(0.5));
    assert!(!format!("{draft:?}").contains("hush"));
    let first = &step.intervals[0];
    assert_eq!(
        (first.counters.operations, first.counters.errors, first.response.mean_ns()),
        (Some(100), Some(1), Some(4e6))
    );
    assert_eq!(["lag", "skipped", "retried", "retries"].map(|name| first.reported[name]), [0.3, 2.0, 3.0, 4.0]);
    assert_eq!(
        (step.intervals[1].counters.operations, step.intervals[1].reported.contains_key("lat")),
        (Some(0), false)
    );
}

#[test]
fn scripts_of_version_19_and_before_15_count_what_was_processed() {
    let newest = NEW.replace(
        " - 70 transactions (70.0% of total, tps = 17.5)\n",
        " - 75 transactions (70.8% of total)\n - number of transactions actually processed: 70 (tps = 17.5)\n",
    );
    let draft = read(&newest).unwrap().remove(0);
    let step = &draft.steps[0];
    assert_eq!((step.counters.operations, step.operations[0].count), (Some(100), 71));
    assert_eq!(figure_value(&draft, "one.sql: tps"), Some(17.5));
    let skipped = |text: &str| {
        text.replace(
            " - latency average = 2.000",
            " - number of transactions skipped: 4 (13.3%)\n - latency average = 2.000",
        )
    };
    let count = |text: &str| read(text).unwrap()[0].steps[0].operations[1].count;
    assert_eq!(count(&skipped(NEW)), 26);
    let since_15 = NEW.replace("tps = 7.5)\n", "tps = 7.5)\n - number of failed transactions: 0 (0.000%)\n");
    assert_eq!(count(&skipped(&since_15)), 30);
}

#[test]
fn failures_and_retries_of_statements_are_kept() {
    let draft = read(NEW).unwrap().remove(0);
    assert_eq!(figure_value(&draft, "one.sql: statement 1: UPDATE t SET a = 1; (failures)"), Some(0.0));
    assert_eq!(figure_value(&draft, "one.sql: statement 2: (left out) (failures)"), Some(1.0));
    let both = NEW
        .replace("milliseconds and failures:", "milliseconds, failures and retries:")
        .replace("  0  UPDATE", "  3  8 UPDATE");
    let draft = read(&both).unwrap().remove(0);
    let name = "one.sql: statement 1: UPDATE t SET a = 1;";
    let figures = ["", " (failures)", " (retries)"].map(|what| figure_value(&draft, &format!("{name}{what}")));
    assert_eq!(figures, [Some(0.5), Some(3.0), Some(8.0)]);
}

#[test]
fn a_run_after_one_that_was_killed_has_its_own_progress() {
    let lines: Vec<&str> = NEW.lines().collect();
    let killed = lines[..4].join("\n");
    let counts =
        |text: &str| -> Vec<usize> { read(text).unwrap().iter().map(|draft| draft.steps[0].intervals.len()).collect() };
    assert_eq!(counts(&format!("{killed}\n{NEW}")), [2, 2]);
    let no_banner = lines[2..].join("\n");
    assert_eq!(
        counts(&format!("{no_banner}\n").replacen(
            "transaction type",
            "progress: 2.0 s, 5.0 tps, lat 4.0 ms stddev 1.0\ntransaction type",
            1
        )),
        [2, 1]
    );
    // Standard error first, then standard output: one run.
    let apart = format!("{}\n{}\n{}", lines[1..4].join("\n"), lines[0], lines[4..].join("\n"));
    assert_eq!(counts(&apart), [2]);
    assert_eq!(read(&apart).unwrap()[0].version, "16.2");
}

#[test]
fn a_mean_latency_that_was_not_measured_is_said_to_be_so() {
    let has_note = |text: &str| read(text).unwrap()[0].notes.iter().any(|note| note.contains("was not measured"));
    assert!(has_note(OLD) && !has_note(NEW));
    let unknown = read(&OLD.replace("9.500 ms", "0.000 ms")).unwrap().remove(0);
    assert_eq!(unknown.steps[0].operations[0].response.mean_ns(), None);
    assert_eq!(figure_value(&unknown, "latency average"), None);
}

#[test]
fn old_summaries_and_several_runs_in_a_file_are_read() {
    let drafts = read(&format!("{OLD}\n{OLD}{NEW}{OLD}")).unwrap();
    assert_eq!(
        drafts.iter().map(|draft| draft.steps[0].counters.operations.unwrap()).collect::<Vec<_>>(),
        [28, 28, 100, 28]
    );
    let draft = &drafts[0];
    assert_eq!(figure_value(draft, "tps (excluding connections establishing)"), Some(15.5));
    assert_eq!((draft.steps[0].window.duration_ns, draft.steps[0].window.ending), (2_000_000_000, Ending::Unknown));
    assert_eq!(draft.steps[0].operations[0].response.mean_ns(), Some(9.5e6));
    assert!(draft.notes.contains(&"28 of 30 transactions were processed.".to_owned()));
}

#[test]
fn wrapped_and_coloured_output_is_read() {
    let wrapped: String =
        OLD.lines().map(|line| format!("bench-1  | \u{1b}[32m2024-05-06T07:08:09Z {line}\u{1b}[0m\r\n")).collect();
    assert_eq!(read(&wrapped).unwrap()[0].steps[0].load.sessions, Some(3));
}

#[test]
fn progress_by_the_clock_tells_when_a_run_began() {
    let text = "progress: 1700000010.5 s, 4.0 tps, lat 1.0 ms stddev 0.1\nprogress: 1700000015.5 s, 6.0 tps, lat 1.0 ms stddev 0.1\n";
    let draft = read(text).unwrap().remove(0);
    assert_eq!(draft.began.map(Began::timestamp).map(|at| at.0.as_millisecond()), Some(1_700_000_005_500));
    let step = &draft.steps[0];
    assert_eq!((step.intervals[1].offset_ns, step.intervals[1].counters.operations), (5_000_000_000, Some(30)));
    assert_eq!(
        (&step.outcome, step.window.ending, step.window.duration_ns),
        (&Outcome::Unfinished, Ending::Unknown, 10_000_000_000)
    );
}

#[test]
fn what_ends_before_its_results_is_damaged_or_failed() {
    assert!(matches!(read(&OLD[..150]), Err(ImportError::Damaged { .. })));
    let aborted = NEW.replace(
        "transaction type",
        "pgbench: error: client 1 aborted\nRun was aborted; the above results are incomplete.\ntransaction type",
    );
    assert!(matches!(read(&aborted).unwrap()[0].steps[0].outcome, Outcome::Failed { .. }));
    let since_12 = format!("{NEW}pgbench: error: Run was aborted; the above results are incomplete.\n");
    let step = read(&since_12).unwrap().remove(0).steps.remove(0);
    assert!(matches!(step.outcome, Outcome::Failed { .. }) && step.window.ending == Ending::Unknown, "{step:?}");
}

#[test]
fn texts_about_pgbench_are_not_its_output() {
    assert!(!summary::recognises(
        "pgbench prints progress: lines, and `transaction type: x`\nsysbench 1.0\nprogress: 50%\n"
    ));
    assert!(!summary::recognises("progress: soon s, 3 tps\n"));
}

#[test]
fn aggregated_logs_of_every_version_are_read() {
    let logs = [
        ("1700000000 10 500 30000 20 90\n1700000005 0 0 0 0 0\n1700000010 4 400 50000 80 120\n", 14, 0),
        ("1700000000 10 500 30000 20 90 7 9 1 2\n1700000005 4 400 50000 80 120 1 1 1 1\n", 14, 0),
        (
            "1700000000 10 500 30000 20 90 7 9 1 2 3 0 0 1 2\n1700000005 4 400 50000 80 120 1 1 1 1 0 0 0 0 0\n17000",
            14,
            3,
        ),
    ];
    for (text, count, failed) in logs {
        assert!(aggregate::recognises(text) && !super::recognises_transactions(text), "{text}");
        let draft = aggregate::read(&source(text), &mut Notes::default()).unwrap().remove(0);
        let operation = &draft.steps[0].operations[0];
        assert_eq!(
            (operation.count, operation.errors, operation.response.total_ns()),
            (count + failed, failed, Some(900_000)),
            "those that failed are among those that ended"
        );
        assert_eq!((operation.response.min_ns(), operation.response.max_ns()), (Some(20_000), Some(120_000)));
        assert_eq!(draft.steps[0].intervals[0].duration_ns, 5_000_000_000);
        assert_eq!(draft.steps[0].intervals[0].counters.errors, (failed > 0).then_some(failed));
    }
}

#[test]
fn skipped_transactions_of_old_aggregated_logs_are_not_counted() {
    let text = "1700000000 10 300 30000 50 90 7 9 1 2 6\n1700000005 4 400 50000 80 120 1 1 1 1 0\n";
    assert!(aggregate::recognises(text));
    let draft = aggregate::read(&source(text), &mut Notes::default()).unwrap().remove(0);
    assert_eq!((draft.steps[0].counters.operations, figure_value(&draft, "skipped")), (Some(8), Some(6.0)));
}

#[test]
fn numbers_that_cannot_be_latencies_are_no_log() {
    assert!(!aggregate::recognises("1700000000 10 5000 30000 20 90\n"), "ten of at most 90 are less than 5000");
    assert!(!aggregate::recognises("1700000005 1 50 1 20 90\n1700000000 1 50 1 20 90\n"), "time goes forward");
    assert!(!super::recognises_transactions("0 1 2 3 4 5\n") && !aggregate::recognises("0 1 2 3 4 5\n"));
}

#[test]
fn a_log_of_transactions_has_exact_times() {
    let text = "0 1 4000 0 1700000000 500000\n1 1 6000 1 1700000000 900000 12 0\n0 2 skipped 0 1700000001 100000\n\
                1 2 failed 0 1700000002 600000\n";
    assert!(super::recognises_transactions(text) && !aggregate::recognises(text));
    let draft = super::read_transactions(&source(text), &mut Notes::default()).unwrap().remove(0);
    let step = &draft.steps[0];
    let seen: Vec<_> =
        step.operations.iter().map(|one| (one.kind.as_str(), one.count, one.errors, one.response.max_ns())).collect();
    assert_eq!(seen, [("script 0", 2, 1, Some(4_000_000)), ("script 1", 1, 0, Some(6_000_000))]);
    assert_eq!((step.window.duration_ns, step.intervals.len()), (2_104_000_000, 2));
    assert_eq!(figure_value(&draft, "clients in this log"), Some(2.0));
    assert_eq!(step.load.sessions, None);
}

#[test]
fn time_that_a_transaction_was_late_is_no_part_of_its_service() {
    let operation = |text: &str| {
        let read = if aggregate::recognises(text) { aggregate::read } else { super::read_transactions };
        read(&source(text), &mut Notes::default()).unwrap().remove(0).steps.remove(0).operations.remove(0)
    };
    let service = |text: &str| operation(text).service.total_ns();
    assert_eq!(service("0 1 4000 0 1700000000 500000 1500 0\n"), Some(2_500_000));
    assert_eq!(service("0 1 4000 0 1700000000 500000 1500\n"), None, "a lag or retries");
    assert_eq!(service("0 1 4000 0 1700000000 500000\n"), Some(4_000_000));
    assert_eq!(service("1700000000 10 500 30000 20 90 200 9 1 90\n"), Some(300_000));
    let late = format!("{OLD}rate limit schedule lag: avg 3.5 (max 9.0) ms\n");
    let step = read(&late).unwrap().remove(0).steps.remove(0);
    assert_eq!((step.operations[0].service.mean_ns(), step.operations[0].response.mean_ns()), (Some(6e6), Some(9.5e6)));
}

const AGGREGATED: &str = "1700000000 10 500 30000 20 90\n1700000005 4 400 50000 80 120\n";
const LOGGED: &str = "0 1 4000 0 1700000000 500000\n1 1 60 1 1700000000 9 1\n";

proptest! {
    #[test]
    fn damaged_files_give_runs_or_errors(file in damaged(&[NEW, AGGREGATED, LOGGED])) {
        survives(file);
    }
}
