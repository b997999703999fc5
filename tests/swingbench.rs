//! Results in Swingbench's format: what is written is read back equal, and has the form of files by Swingbench itself, as far as
//! specimens of them lie beside this repository.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use model::record::Load;
use model::record::OrdersOptions;
use model::units::Nanos;
use model::workload::orders::Preset;
use model::workload::orders::Reconnect;
use plimsoll::record::Workload;
use test_support::skip;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll::import::{self, FileRead, Source};
use plimsoll::record::{
    Counters, Environment, FORMAT, Histogram, ImportedFile, Interval, OperationStats, Outcome, Run, Step, Target,
    TargetKind, Timestamp, Tool, TransactionStats,
};
use plimsoll::report::swingbench::write;
use plimsoll::workload::orders::Pauses;
use proptest::prelude::*;
use quick_xml::Reader;
use quick_xml::events::Event;
use skip::skip;

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const DECILES: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
/// Kinds as the record has them, each with transactions a second that end well, those that fail in all, and a time.
const MIX: [(&str, u64, u64, u64); 9] = [
    ("customer registration", 15, 0, 2_100_000),
    ("update customer details", 10, 0, 1_700_000),
    ("browse products", 50, 3, 640_000),
    ("order products", 40, 7, 12_345_678),
    ("process orders", 5, 0, 3_000_000),
    ("browse orders", 5, 0, 900_001),
    ("sales rep query", 2, 0, 48_000_000),
    ("warehouse query", 1, 1, 350_000_000),
    ("warehouse activity query", 0, 0, 1),
];

const BETWEEN: Pauses = Pauses::Uniform { min_ns: 1_234 * MS, max_ns: 90 * SECOND };

/// Times around `ns`, with a tail.
fn times(count: u64, ns: u64) -> Histogram {
    let mut times = Histogram::default();
    (0..count).for_each(|at| times.record(ns + ns * (at % 100) / 50 + if at % 97 == 0 { 30 * ns } else { 0 }));
    times
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
        failed: Default::default(),
    }
}

fn orders() -> Load {
    Load::Orders(OrdersOptions {
        mix: Preset::V26.mix(),
        between: BETWEEN,
        inside: Pauses::None,
        duration_ns: Nanos(90 * SECOND),
        max_retries: 10,
        reconnect: Reconnect::Never,
        isolation: None,
    })
}

fn run(step: Step) -> Run {
    Run {
        format: FORMAT,
        id: "20261120-103000-orders".to_owned(),
        name: "u16".to_owned(),
        tool: Tool { name: "plimsoll".to_owned(), version: "0.1.0".to_owned() },
        load: orders(),
        check: None,
        command: Vec::new(),
        started_at: Timestamp("2026-11-20T23:58:30.25Z".parse().unwrap()),
        ended_at: None,
        outcome: Outcome::Completed,
        tags: BTreeMap::new(),
        seed: Some(1),
        parameters: orders().parameters(),
        target: Target {
            kind: Some(TargetKind::Mysql),
            address: "mysql://soe@db1:3307/shop".into(),
            ..Target::default()
        },
        environment: Environment::default(),
        notes: Vec::new(),
        imported: None,
        part: None,
        like: None,
        merged: None,
        parts: Vec::new(),
        steps: vec![step],
    }
}

fn interval(offset_ns: u64, operations: u64, warmup: bool) -> Interval {
    let counters = Counters { operations: Some(operations), ..Counters::default() };
    Interval { offset_ns, duration_ns: SECOND, warmup, counters, ..Interval::default() }
}

/// 90 s of all transactions, after 10 s of warm-up.
fn order_entry() -> Run {
    let seconds = 90;
    let mut step = Step::new(0, "u16");
    step.load.sessions = Some(16);
    step.window.offset_ns = 12 * SECOND;
    step.window.warmup_ns = 10 * SECOND;
    step.window.duration_ns = seconds * SECOND;
    step.outcome = Outcome::Completed;
    step.operations = MIX.map(|(kind, per_s, errors, ns)| operation(kind, times(per_s * seconds, ns), errors)).into();
    for operation in &mut step.operations {
        let (commits, rollbacks) = (operation.response.count(), operation.errors + 1);
        operation.transactions = Some(TransactionStats { commits, rollbacks, ..TransactionStats::default() });
    }
    let per_s: u64 = MIX.iter().map(|(_, per_s, ..)| per_s).sum();
    step.counters.operations = Some(per_s * seconds);
    step.counters.errors = Some(11);
    // The second half is twice as fast as the first one.
    let count = |second: u64| if second < 55 { per_s * 2 / 3 } else { per_s * 4 / 3 };
    step.intervals = (0..100).map(|second| interval(second * SECOND, count(second), second < 10)).collect();
    run(step)
}

fn text(run: &Run) -> String {
    let mut out = Vec::new();
    write(run, &run.steps[0], &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The run that our importer makes of it, with nothing left that was not understood.
fn read(text: &str) -> Run {
    let source = Source::new("results.xml", text.into(), Timestamp(jiff::Timestamp::UNIX_EPOCH)).unwrap();
    let (importer, drafts, notes) = import::read(&source).unwrap_or_else(|error| panic!("{error} in {text}"));
    assert_eq!((importer.kind, notes.into_list()), ("swingbench-xml", vec![]), "{text}");
    let (path, kind) = ("results.xml".to_owned(), importer.kind.to_owned());
    let file = ImportedFile { path, kind, bytes: text.len() as u64, crc64: String::new(), part: 0, lines: None };
    import::runs(vec![FileRead { file, changed: source.changed(), drafts, not_understood: Vec::new() }]).remove(0)
}

fn reported(step: &Step, name: &str) -> Option<f64> {
    step.reported.iter().find(|figure| figure.name == name).map(|figure| figure.value)
}

fn whole_ms(ns: Option<u64>) -> Option<u64> {
    ns.map(|ns| ns.div_ceil(MS) * MS)
}

/// Holds what was read against what was written: every count and time that the format carries.
fn same_transactions(written: &Step, read: &Step) {
    assert_eq!(written.operations.len(), read.operations.len());
    for (mine, theirs) in written.operations.iter().zip(&read.operations) {
        let what = &mine.kind;
        assert_eq!((mine.count, mine.errors), (theirs.count, theirs.errors), "{what}");
        let (mine, theirs) = (&mine.response, &theirs.response);
        assert_eq!(mine.count(), theirs.count(), "{what}");
        assert_eq!(
            [whole_ms(mine.min_ns()), whole_ms(mine.max_ns())],
            [theirs.min_ns(), theirs.max_ns()],
            "shortest and longest {what}"
        );
        if mine.count() == 0 {
            continue;
        }
        assert_eq!(mine.total_ns(), theirs.total_ns(), "sum of {what}");
        for share in DECILES {
            assert_eq!(whole_ms(mine.quantile_ns(share)), theirs.quantile_ns(share), "{what} at {share}");
        }
    }
    assert_eq!(
        (written.counters.operations, written.counters.errors, written.load.sessions),
        (read.counters.operations, read.counters.errors, read.load.sessions)
    );
}

#[test]
fn a_run_is_read_back_equal() {
    let written = order_entry();
    let run = read(&text(&written));
    let (mine, theirs) = (&written.steps[0], &run.steps[0]);
    same_transactions(mine, theirs);
    let kinds: Vec<String> = theirs.operations.iter().map(|operation| operation.kind.to_lowercase()).collect();
    assert_eq!(kinds, MIX.map(|(kind, ..)| kind));
    for operation in mine.operations.iter().filter(|operation| operation.count > 0) {
        let name = theirs.operations.iter().find(|theirs| theirs.kind.to_lowercase() == operation.kind).unwrap();
        let mean = reported(theirs, &format!("{} GeometricMean", name.kind)).unwrap() * 1e6;
        assert_eq!(Some(mean.round()), operation.response.geometric_mean_ns().map(f64::round));
    }

    assert_eq!(mine.window.duration_ns, theirs.window.duration_ns);
    let measured = mine.intervals.iter().filter(|interval| !interval.warmup);
    let measured: Vec<(u64, u64, Option<u64>)> = measured
        .map(|second| (second.offset_ns - mine.window.warmup_ns, second.duration_ns, second.counters.operations))
        .collect();
    let seconds: Vec<(u64, u64, Option<u64>)> = theirs
        .intervals
        .iter()
        .map(|second| (second.offset_ns, second.duration_ns, second.counters.operations))
        .collect();
    assert_eq!(measured, seconds);
    assert_eq!(reported(theirs, "MaximumTransactionRate"), Some((85 * 15 + 170 * 45) as f64));
    assert_eq!(reported(theirs, "AverageTransactionsPerSecond"), Some(128.0));
    let ends = ["CommitStatements", "RollbackStatements", "Order Products RollbackCount", "SelectStatements"];
    assert_eq!(ends.map(|name| reported(theirs, name)), [Some(11_520.0), Some(19.0), Some(8.0), None]);

    assert_eq!((&written.tool, &written.target), (&run.tool, &run.target));
    assert_eq!(run.started_at.0.to_string(), "2026-11-20T23:58:42Z", "of the window, in whole seconds");
    assert_eq!(run.ended_at.map(|at| at.0.to_string()).as_deref(), Some("2026-11-21T00:00:12Z"));
    let set = |name: &str| run.parameters.get(name).map(String::as_str);
    let think = ["MinimumInterThinkTime", "MaximumInterThinkTime", "MinimumIntraThinkTime", "MaximumIntraThinkTime"];
    assert_eq!(think.map(set), ["1234", "90000", "0", "0"].map(Some));
    assert_eq!((set("WaitTillAllLogon"), set("TimingsIn")), (Some("true"), Some("milliseconds")));
}

#[test]
fn a_run_without_transactions_is_one_of_none() {
    let mut written = order_entry();
    let step = &mut written.steps[0];
    step.counters.operations = Some(0);
    step.counters.errors = Some(0);
    step.operations = MIX.map(|(kind, ..)| operation(kind, Histogram::default(), 0)).into();
    step.intervals.iter_mut().for_each(|interval| interval.counters.operations = Some(0));
    let run = read(&text(&written));
    same_transactions(&written.steps[0], &run.steps[0]);
    assert!(run.steps[0].intervals.iter().all(|interval| interval.counters.operations == Some(0)));
    assert_eq!(reported(&run.steps[0], "AverageTransactionsPerSecond"), Some(0.0));
    assert!(!run.steps[0].reported.iter().any(|figure| figure.name.ends_with("GeometricMean")));
    written.steps[0].operations.clear();
    assert_eq!(read(&text(&written)).steps[0].counters.operations, Some(0));
}

#[test]
fn a_run_without_seconds_has_no_readings() {
    let mut written = order_entry();
    written.steps[0].intervals.clear();
    let run = read(&text(&written));
    same_transactions(&written.steps[0], &run.steps[0]);
    assert!(run.steps[0].intervals.is_empty());
    assert_eq!(reported(&run.steps[0], "MaximumTransactionRate"), None);
    assert_eq!(run.started_at.0.to_string(), "2026-11-20T23:58:42Z", "the time of day is enough");
}

#[test]
fn whatever_stands_in_comment_and_address_comes_back() {
    let mut written = order_entry();
    let odd = "a < b & c > \"d\" 'e' ]]> &amp; <!-- f --> \u{e9}\u{1f6a2}\tg\r\nh";
    written.parameters.insert("Comment".to_owned(), odd.to_owned());
    for (kind, address) in [
        ("postgres", "postgres://soe@db1,[::1]:5433/shop?sslmode=require&application_name=%3Cx%3E"),
        ("mysql", "my:/u01/a <b> & 'c'"),
        ("oracle", "oracle://soe@scan/orcl?services=2"),
        ("simulated", "sim:service=200us,servers=8"),
    ] {
        written.target.address = address.to_owned();
        let run = read(&text(&written));
        assert_eq!((run.target.kind_name(), run.target.address.as_str()), (kind, address));
        assert_eq!(run.parameters["Comment"], odd);
    }
}

/// Elements by their paths, with the texts of those that have one; fails unless the text is well-formed XML 1.0.
fn elements(text: &str) -> Vec<(String, String)> {
    assert_eq!(text, possible(text));
    let mut reader = Reader::from_str(text);
    let (mut found, mut path, mut inside) = (Vec::new(), Vec::new(), String::new());
    loop {
        let event = reader.read_event().unwrap_or_else(|error| panic!("{error} in {text}"));
        match event {
            Event::Start(start) | Event::Empty(start) if start.attributes().any(|attribute| attribute.is_err()) => {
                panic!("{start:?} has an attribute that is none")
            }
            Event::Start(start) => {
                let id = start.try_get_attribute("id").unwrap();
                let id = id.map(|id| format!("[{}]", id.normalized_value(quick_xml::XmlVersion::Implicit1_0).unwrap()));
                path.push(format!("{}{}", start.name().as_ref(), id.unwrap_or_default()));
                found.push((path.join("/"), String::new()));
                inside.clear();
            }
            Event::Empty(start) => {
                let name = start.name().as_ref().to_owned();
                found.push((format!("{}/{name}", path.join("/")), String::new()));
            }
            Event::Text(more) => inside.push_str(&more.xml10_content()),
            Event::GeneralRef(reference) => {
                assert!(reference.is_char_ref() || ["lt", "gt", "amp"].contains(&&*reference.xml10_content()));
                inside.push('?');
            }
            Event::End(_) => {
                let here = path.join("/");
                if let Some((_, text)) = found.last_mut().filter(|(last, _)| *last == here) {
                    *text = std::mem::take(&mut inside);
                }
                path.pop();
            }
            Event::Decl(declaration) => assert_eq!(declaration.encoding().unwrap().unwrap(), "UTF-8"),
            Event::Eof if path.is_empty() => return found,
            other => panic!("{other:?} in {text}"),
        }
    }
}

/// What XML can hold of a text.
fn possible(text: &str) -> String {
    let is_impossible = |char: char| char < ' ' && !"\t\r\n".contains(char) || matches!(char, '\u{fffe}' | '\u{ffff}');
    text.replace(is_impossible, "\u{fffd}")
}

/// Any text, of characters that XML or our importer may stumble over.
fn any_text() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(
        "<>&\"'\0\u{1}\u{b}\u{1f}\t\r\n ]\u{85}\u{2028}\u{fffe}\u{feff}@:/=é\u{10ffff}".chars().collect::<Vec<_>>(),
    );
    let char = prop_oneof![odd, any::<char>(), prop::char::range('a', 'z')];
    prop::collection::vec(char, 0..40).prop_map(String::from_iter)
}

prop_compose! {
    fn any_operation()(
        kind in any_text(),
        values in prop::collection::vec((0..2 * SECOND, 1..500_u64), 0..30),
        errors in 0..1_000_u64,
    ) -> OperationStats {
        let mut times = Histogram::default();
        values.iter().for_each(|(ns, count)| times.record_n(*ns, *count));
        operation(&kind, times, errors)
    }
}

prop_compose! {
    fn any_step()(
        operations in prop::collection::vec(any_operation(), 0..10),
        intervals in prop::collection::vec((any::<u32>(), any::<bool>(), prop::option::weighted(0.99, 0..1_u64 << 40)), 0..100),
        label in any_text(),
        sessions in prop::option::of(any::<u32>()),
        offset_ns in prop_oneof![0..1_u64 << 45, any::<u64>()],
        duration_ns in prop_oneof![Just(0), 4 * SECOND..1 << 50],
        errors in prop::option::of(any::<u32>()),
        outcome in prop::sample::select(vec![Outcome::Completed, Outcome::Interrupted, Outcome::Unfinished]),
    ) -> Step {
        let mut step = Step::new(0, label);
        step.load.sessions = sessions;
        (step.window.offset_ns, step.window.duration_ns) = (offset_ns, duration_ns);
        step.outcome = outcome;
        step.counters.operations = Some(operations.iter().map(|operation| operation.response.count()).sum());
        step.counters.errors = errors.map(u64::from);
        step.operations = operations;
        let mut at_ns = 0;
        for (length_ns, warmup, count) in intervals {
            let mut second = interval(at_ns, 0, warmup);
            (second.duration_ns, second.counters.operations) = (u64::from(length_ns), count);
            at_ns += second.duration_ns;
            step.intervals.push(second);
        }
        step
    }
}

prop_compose! {
    fn any_run()(
        step in any_step(),
        texts in prop::collection::vec(any_text(), 6),
        workload in prop::sample::select(vec![Workload::Orders, Workload::Slob, Workload::Transactions]),
        began_s in 400_000_000..5_000_000_000_i64,
        steps in 1..3_usize,
    ) -> Run {
        let mut texts = texts.into_iter();
        let mut next = || texts.next().unwrap_or_default();
        let mut run = run(step);
        (run.id, run.name, run.tool.version, run.target.address) = (next(), next(), next(), next());
        run.tags.insert(next(), next());
        run.load = Load::foreign(workload);
        run.started_at = Timestamp(jiff::Timestamp::from_second(began_s).unwrap());
        run.steps = vec![run.steps[0].clone(); steps];
        run
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_run_is_well_formed_and_read_back(written in any_run()) {
        let text = text(&written);
        let count = elements(&text).iter().filter(|(path, _)| path.ends_with("/TransactionCount")).count();
        prop_assert_eq!(count, written.steps[0].operations.len());
        let run = read(&text);
        same_transactions(&written.steps[0], &run.steps[0]);
        for (mine, theirs) in written.steps[0].operations.iter().zip(&run.steps[0].operations) {
            prop_assert_eq!(possible(&mine.kind).to_ascii_lowercase(), theirs.kind.to_ascii_lowercase());
        }
        let read_back: u64 = run.steps[0].intervals.iter().filter_map(|interval| interval.counters.operations).sum();
        let measured = || written.steps[0].intervals.iter().filter(|interval| !interval.warmup);
        let known: Option<u64> = measured().map(|interval| interval.counters.operations).sum();
        // Intervals that end in the same millisecond are one to their readers.
        let ends: Vec<u64> = measured().map(|interval| interval.duration_ns).collect();
        if ends.iter().all(|duration_ns| *duration_ns >= MS) && written.steps[0].window.offset_ns < 1 << 45 {
            prop_assert_eq!(read_back, known.unwrap_or(0));
        }
    }

    #[test]
    fn any_comment_is_read_back(comment in any_text()) {
        let mut written = order_entry();
        written.parameters.insert("Comment".to_owned(), comment.clone());
        let read_back = read(&text(&written)).parameters.get("Comment").cloned().unwrap_or_default();
        let expected = possible(&comment);
        prop_assert_eq!(read_back, expected.trim());
    }
}

/// Results by Swingbench itself.
fn specimen(sprint: u32) -> Option<PathBuf> {
    let folder = std::env::var_os("PLIMSOLL_CORPUS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"), PathBuf::from);
    let path = folder.join(format!("swingbench/oci_sprint{sprint}_results.xml"));
    if !path.is_file() {
        skip(format_args!("there is no {}", path.display()));
        return None;
    }
    Some(path)
}

#[test]
fn a_file_of_swingbench_is_written_as_swingbench_wrote_it() {
    for sprint in [15, 17, 18] {
        let Some(path) = specimen(sprint) else { return };
        let theirs = std::fs::read_to_string(&path).unwrap();
        let mut run = import::runs(vec![import::read_file(&path).unwrap()]).remove(0);
        let without_readings = |text: &str| {
            let mut elements = elements(text);
            let readings = elements.iter().position(|(path, _)| path.ends_with("/TPSReadings")).unwrap();
            let (_, readings) = elements.remove(readings);
            (elements, readings)
        };
        let ((mine, readings), (expected, their_readings)) = (without_readings(&text(&run)), without_readings(&theirs));
        let is_same = |mine: &str, theirs: &str| match (mine.parse::<f64>(), theirs.parse::<f64>()) {
            // Means of Java's may differ in their last digit.
            (Ok(mine), Ok(theirs)) if mine.fract() != 0.0 => (mine / theirs - 1.0).abs() < 1e-14,
            _ => mine == theirs,
        };
        let both = mine.iter().zip(&expected);
        let differ: Vec<_> = both.filter(|(mine, theirs)| mine.0 != theirs.0 || !is_same(&mine.1, &theirs.1)).collect();
        assert!(mine.len() == expected.len() && differ.is_empty(), "{differ:#?}");
        let counts = |text: &str| -> Vec<String> { text.split(',').skip(1).step_by(2).map(str::to_owned).collect() };
        assert_eq!(counts(&readings), counts(&their_readings));

        // What it reports of itself, from what it reports of its seconds.
        run.steps[0].reported.clear();
        let mine = text(&run);
        let most = |text: &str| elements(text).into_iter().find(|(path, _)| path.ends_with("MaximumTransactionRate"));
        if run.steps[0].window.duration_ns > 60 * SECOND {
            assert_eq!(most(&mine), most(&theirs));
        }
    }
}
