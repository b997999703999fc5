use model::record::OrdersOptions;
use model::record::Workload;
use model::units::Nanos;
use model::workload::orders::Preset;
use model::workload::orders::Reconnect;
use std::collections::BTreeMap;

use super::*;
use model::record::sample::{self, Level, latencies};
use model::record::{Counters, Histogram, Interval, ReportedFigure, Step};

const SECOND: u64 = 1_000_000_000;

fn text(run: &Run) -> String {
    let mut out = Vec::new();
    write(run, &run.steps[0], &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn operation(kind: &str, response: Histogram, errors: u64) -> OperationStats {
    let (kind, count) = (kind.to_owned(), response.count() + errors);
    OperationStats {
        kind,
        count,
        errors,
        block_touches: 0,
        service: Histogram::default(),
        response,
        transactions: None,
    }
}

/// The text of the first element of this name; nothing if there is none.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    if text.contains(&format!("<{name}/>")) {
        return Some("");
    }
    Some(text.split_once(&format!("<{name}>"))?.1.split_once(&format!("</{name}>"))?.0)
}

/// Three seconds of order entry after two of warm-up.
fn orders() -> Run {
    let level = Level { sessions: 4, operations_per_s: 300, read_ns: 700_000, seconds: 3, update_pct: 0 };
    let mut run = sample::run(&[level]);
    run.id = "20261120-103000-orders".to_owned();
    run.load = Load::Orders(OrdersOptions {
        mix: Preset::V26.mix(),
        between: "5ms".parse().unwrap(),
        inside: "500us..2ms".parse().unwrap(),
        duration_ns: Nanos::seconds(3),
        max_retries: 10,
        reconnect: Reconnect::Never,
        isolation: None,
    });
    run.target.kind = "postgres".to_owned();
    run.target.address = "postgres://soe@db1/shop".to_owned();
    run.parameters.clear();
    let step = &mut run.steps[0];
    step.counters = Counters { operations: Some(898), errors: Some(2), ..Counters::default() };
    step.operations = vec![
        operation("order products", latencies(600, 4_300_000), 2),
        operation("browse orders", latencies(298, 400_000), 0),
        operation("sales rep query", Histogram::default(), 0),
    ];
    run
}

#[test]
fn the_file_of_a_run() {
    insta::assert_snapshot!(text(&orders()));
}

#[test]
fn all_nine_transactions_have_the_names_that_their_readers_know() {
    let kinds =
        ["customer registration", "update customer details", "warehouse activity query", "Two  blanks", "é x", ""];
    assert_eq!(
        kinds.map(name_of),
        ["Customer Registration", "Update Customer Details", "Warehouse Activity Query", "Two  Blanks", "é X", ""]
    );
}

#[test]
fn what_is_not_known_is_no_zero() {
    let mut run = orders();
    run.load = Load::foreign(Workload::Orders);
    let step = &mut run.steps[0];
    step.load.sessions = None;
    step.window.duration_ns = 0;
    step.counters = Counters::default();
    step.intervals.clear();
    step.operations = vec![operation("order products", Histogram::counted(7, None), 0)];
    let text = text(&run);
    // Readers of these look them up without asking whether they are there.
    let empty = [
        "TotalRunTime",
        "TotalLogonTime",
        "TotalFailedTransactions",
        "AverageTransactionsPerSecond",
        "MaximumTransactionRate",
        "NumberOfUsers",
        "MinimumInterThinkTime",
        "MaximumInterThinkTime",
        "MinimumIntraThinkTime",
        "MaximumIntraThinkTime",
    ];
    for name in empty {
        assert_eq!(element(&text, name), Some(""), "{name} in {text}");
    }
    assert_eq!(element(&text, "TotalCompletedTransactions"), Some("7"));
    assert_eq!((element(&text, "TransactionCount"), element(&text, "FailedTransactionCount")), (Some("7"), Some("0")));
    for name in ["Response", "Mean", "centile", "RollbackCount", "DMLResults", "BenchmarkMetrics"] {
        assert!(!text.contains(name), "{name} in {text}");
    }
}

#[test]
fn a_second_whose_count_is_not_known_leaves_all_readings_out() {
    let mut run = orders();
    run.steps[0].intervals[3].counters.operations = None;
    let text = text(&run);
    assert_eq!((element(&text, "TPSReadings"), element(&text, "MaximumTransactionRate")), (None, Some("")));
}

#[test]
fn times_are_rounded_up_to_milliseconds() {
    let mut times = Histogram::default();
    [1, 999_999, 1_000_000, 1_000_001, 2_500_000].into_iter().for_each(|ns| times.record(ns));
    let mut run = orders();
    run.steps[0].operations = vec![operation("order products", times, 0)];
    let text = text(&run);
    let of = |names: [&str; 4]| names.map(|name| element(&text, name).unwrap().to_owned());
    assert_eq!(
        of(["MinimumResponse", "MaximumResponse", "TenthPrecentile", "NinetiethPercentile"]),
        ["1", "3", "1", "3"]
    );
    assert_eq!(element(&text, "AverageResponse"), Some("1.1000002"));
}

#[test]
fn pauses_with_bounds_are_whole_milliseconds_and_others_are_left_open() {
    let read = ["5ms", "0", "1ms..3ms", "500us", "2..60s", "exp:5ms"].map(|text| bounds_ms(text.parse().unwrap()));
    assert_eq!(read, [Some((5, 5)), Some((0, 0)), Some((1, 3)), Some((1, 1)), Some((2_000, 60_000)), None]);
}

#[test]
fn the_highest_rate_is_that_of_the_best_sixty_seconds() {
    let most = |counts: &[(u64, u64)]| {
        let mut step = Step::new(0, "all");
        let mut offset_ns = 0;
        for (duration_ns, operations) in counts {
            let counters = Counters { operations: Some(*operations), ..Counters::default() };
            step.intervals.push(Interval { offset_ns, duration_ns: *duration_ns, counters, ..Interval::default() });
            offset_ns += duration_ns;
        }
        highest_minute(&step)
    };
    assert_eq!(most(&[]), None);
    assert_eq!(most(&[(SECOND, 5), (SECOND, 7)]), None, "two seconds are no minute");
    assert_eq!(most(&[(SECOND, 1); 60]), Some(60));
    assert_eq!(most(&[(SECOND, 1); 200]), Some(60));
    assert_eq!(most(&[(SECOND + 1_000_000, 1); 200]), Some(60), "seconds are a little longer at times");
    assert_eq!(most(&[(10 * SECOND, 5); 20]), Some(30));
    let best: Vec<(u64, u64)> =
        (0..200).map(|second| (SECOND, if (50..110).contains(&second) { 3 } else { 1 })).collect();
    assert_eq!(most(&best), Some(180));
}

#[test]
fn the_comment_says_which_step_of_which_run_it_is_and_how_it_ended() {
    let mut run = orders();
    run.steps[0].outcome = Outcome::Failed { error: "FATAL: role soe has the password tiger".to_owned() };
    run.steps.push(run.steps[0].clone());
    let of = |run: &Run| element(&text(run), "Comment").unwrap().to_owned();
    assert_eq!(
        of(&run),
        "Run 20261120-103000-orders of plimsoll 0.1.0, step s4_t1, disk=p30x2, vm=d8s, ended early by an error"
    );
    run.parameters.insert("Comment".to_owned(), "as it was <imported> & \"kept\"\r\u{1}".to_owned());
    assert_eq!(of(&run), "as it was &lt;imported&gt; &amp; \"kept\"&#13;\u{fffd}");
}

#[test]
fn neither_the_command_nor_facts_nor_notes_are_in_it() {
    let mut run = orders();
    run.command.push("--password=tiger".to_owned());
    run.notes.push("tiger".to_owned());
    run.target.facts = BTreeMap::from([("password".to_owned(), "tiger".to_owned())]);
    run.parameters.insert("PASSWORD".to_owned(), "tiger".to_owned());
    let text = text(&run);
    assert!(!text.contains("tiger"), "{text}");
    assert_eq!(element(&text, "ConnectString"), Some("postgres://soe@db1/shop"));
}

#[test]
fn commits_and_rollbacks_are_summed_where_all_are_known() {
    let mut run = orders();
    let ended = |commits, rollbacks| Some(TransactionStats { commits, rollbacks, ..TransactionStats::default() });
    run.steps[0].operations[0].transactions = ended(590, 10);
    let partly = text(&run);
    assert!(!partly.contains("DMLResults"), "{partly}");
    assert_eq!(element(&partly, "RollbackCount"), Some("10"));
    run.steps[0].operations[1].transactions = ended(298, 0);
    let text = text(&run);
    assert_eq!((element(&text, "CommitStatements"), element(&text, "RollbackStatements")), (Some("888"), Some("10")));
    assert_eq!(element(&text, "SelectStatements"), None, "statements are not counted by what they do");
}

#[test]
fn statements_of_an_imported_run_are_those_that_it_reports() {
    let mut run = orders();
    let figure = |name: &str, value| ReportedFigure::new("client", name, "", value);
    run.steps[0].reported = vec![figure("SelectStatements", 4_730_734.0), figure("order products RollbackCount", 0.0)];
    let text = text(&run);
    assert_eq!((element(&text, "SelectStatements"), element(&text, "InsertStatements")), (Some("4730734"), None));
    assert_eq!(text.matches("<RollbackCount>0</RollbackCount>").count(), 1);
}
