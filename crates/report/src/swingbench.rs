//! A step of a run as the results file that Swingbench would have written, for whatever reads those.
//!
//! Names, order and form of the elements are those of files by Swingbench 2.7, with its misspelt deciles and its namespace. What its
//! form leaves open is settled so:
//!
//! - The whole of the file is of the measured window: the warm-up is in none of its figures.
//! - Response times count from the instant a transaction was due. The shortest, the longest and the deciles are whole milliseconds,
//!   rounded up: Swingbench has nothing below 1 either. The means have decimals.
//! - A transaction that failed has no response time, and is not among those completed.
//! - A reading is of the transactions since the one before, at the instant at which its second ended. The highest rate is that of the
//!   sixty seconds with most transactions, as it is in files of Swingbench.
//! - Times of day are in UTC, as those of our own names.
//! - What is not known is never 0. In `Overview` and `Configuration` its element is there and empty, since readers look those up
//!   without asking whether they are there; everywhere else it is left out.
//!
//! What the form cannot hold is not in it: percentiles above the ninth decile, service times, waits, what the machine did. A run
//! that was imported from such a file gives its own figures back, by the names that it reports.

use model::record::{
    Interval, Load, OperationStats, Outcome, Run, SentAs, Step, Timestamp, TransactionStats, Workload,
};
use model::workload::orders::{PauseBounds, Pauses};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::escape::partial_escape;
use quick_xml::events::{BytesDecl, BytesText, Event};

use analysis::highest_minute;

/// The namespace of Swingbench 2.7; older files have it without the last part.
const NAMESPACE: &str = "http://www.dominicgiles.com/swingbench/results";
const MS: u64 = 1_000_000;
const NS_PER_MS: i128 = 1_000_000;

/// Each decile by the name of its element, which is misspelt in some.
const DECILES: [(&str, f64); 9] = [
    ("TenthPrecentile", 0.1),
    ("TwentiethPercentile", 0.2),
    ("ThirtiethPercentile", 0.3),
    ("FortiethPrecentile", 0.4),
    ("FiftythPercentile", 0.5),
    ("SixtiethPercentile", 0.6),
    ("SeventiethPercentile", 0.7),
    ("EightiethPercentile", 0.8),
    ("NinetiethPercentile", 0.9),
];
const COMMITS: &str = "CommitStatements";
const ROLLBACKS: &str = "RollbackStatements";
const STATEMENTS: [&str; 6] =
    ["SelectStatements", "InsertStatements", "UpdateStatements", "DeleteStatements", COMMITS, ROLLBACKS];

/// Writes `step` of `run` as XML.
///
/// No secret is in it: of the target it has the address as it is shown, and of the command line nothing.
///
/// # Errors
/// If `out` fails.
pub fn write(run: &Run, step: &Step, out: &mut dyn Write) -> io::Result<()> {
    let began = began(run, step);
    let readings = IntervalCounts::of(step);
    document_xml(out, |xml| {
        let root = xml.create_element("Results").with_attribute(("xmlns", NAMESPACE));
        root.write_inner_content(|xml| {
            fields(xml, "Overview", None, overview(run, step, began), Unknown::Empty)?;
            fields(xml, "Configuration", None, configuration(run, step), Unknown::Empty)?;
            let statements = statements(step);
            if statements.iter().any(|(_, count)| count.is_some()) {
                fields(xml, "DMLResults", None, statements, Unknown::LeftOut)?;
            }
            xml.create_element("TransactionResults").write_inner_content(|xml| {
                step.operations.iter().try_for_each(|operation| {
                    let name = name_of(&operation.kind);
                    fields(xml, "Result", Some(&name), transaction(step, operation), Unknown::LeftOut)
                })
            })?;
            if let Some(text) = readings.zip(began).map(|(readings, began)| readings.text(began)) {
                let metrics = xml.create_element("BenchmarkMetrics");
                metrics.write_inner_content(|xml| text_element(xml, "TPSReadings", &text))?;
            }
            Ok(())
        })?;
        Ok(())
    })
}

/// When the window began.
fn began(run: &Run, step: &Step) -> Option<Timestamp> {
    let offset = jiff::SignedDuration::from_nanos(i64::try_from(step.window.offset_ns).ok()?);
    run.started_at.0.checked_add(offset).ok().map(Timestamp)
}

fn overview(run: &Run, step: &Step, began: Option<Timestamp>) -> Vec<Field> {
    let title = if run.workload() == Workload::Orders { "Order Entry (Plimsoll) V2" } else { &run.name };
    let duration_ns = Some(step.window.duration_ns).filter(|ns| *ns > 0);
    let completed = completed(step);
    let mean = || Some(completed? as f64 / (duration_ns? as f64 / 1e9));
    let most = figure_value(step, "MaximumTransactionRate").map(whole);
    vec![
        ("BenchmarkName", Some(format!("\"{title}\""))),
        ("Comment", Some(run.parameters.get("Comment").cloned().unwrap_or_else(|| comment(run, step)))),
        ("TimeOfRun", began.map(|began| began.0.strftime("%b %-d, %Y, %-I:%M:%S %p").to_string())),
        ("TotalRunTime", duration_ns.map(|ns| clock(ns as f64 / 1e9))),
        ("TotalLogonTime", figure_value(step, "TotalLogonTime").map(clock)),
        ("TotalCompletedTransactions", completed.map(|completed| completed.to_string())),
        ("TotalFailedTransactions", step.counters.errors.map(|failed| failed.to_string())),
        ("AverageTransactionsPerSecond", mean().map(|mean| format!("{mean:.2}"))),
        ("MaximumTransactionRate", most.or_else(|| highest_minute(step).map(|most| most.to_string()))),
    ]
}

/// Transactions that ended well.
fn completed(step: &Step) -> Option<u64> {
    let sum = || step.operations.iter().fold(0_u64, |sum, operation| sum.saturating_add(operation.response.count()));
    step.counters.operations.or_else(|| (!step.operations.is_empty()).then(sum))
}

/// What leads from the file to its run, and how far that got.
fn comment(run: &Run, step: &Step) -> String {
    let mut words = vec![format!("Run {} of {} {}", run.id, run.tool.name, run.tool.version)];
    if run.steps.len() > 1 {
        words.push(format!("step {}", step.label));
    }
    words.extend(run.tags.iter().map(|(tag, value)| format!("{tag}={value}")));
    if run.target.facts.server.sent_as == Some(SentAs::Procedure) {
        words.push("a procedure call for each transaction".to_owned());
    }
    match step.outcome {
        Outcome::Completed => {}
        Outcome::Unfinished => words.push("not finished".to_owned()),
        Outcome::Interrupted => words.push("ended early by its user".to_owned()),
        Outcome::Failed { .. } => words.push("ended early by an error".to_owned()),
    }
    words.join(", ")
}

fn configuration(run: &Run, step: &Step) -> Vec<Field> {
    let (between, inside) = match &run.load {
        Load::Orders(load) => (bounds_ms(load.between), bounds_ms(load.inside)),
        _ => (None, None),
    };
    let least = |pauses: Option<(u64, u64)>| pauses.map(|(least, _)| least.to_string());
    let most = |pauses: Option<(u64, u64)>| pauses.map(|(_, most)| most.to_string());
    // All sessions have begun before the window does.
    let is_ours = run.imported.is_none();
    let own = vec![
        ("NumberOfUsers", step.load.sessions.map(|sessions| sessions.to_string())),
        ("MinimumInterThinkTime", least(between)),
        ("MaximumInterThinkTime", most(between)),
        ("MinimumIntraThinkTime", least(inside)),
        ("MaximumIntraThinkTime", most(inside)),
        ("ConnectString", Some(run.target.address.clone()).filter(|address| !address.is_empty())),
        ("TimingsIn", Some("milliseconds".to_owned())),
        ("WaitTillAllLogon", is_ours.then(|| "true".to_owned())),
        ("Driver", is_ours.then(|| format!("{} {}", run.tool.name, run.tool.version))),
    ];
    let known = |(name, value): Field| (name, value.or_else(|| run.parameter(step, name).map(str::to_owned)));
    own.into_iter().map(known).collect()
}

/// The shortest and the longest pause in milliseconds: of `5ms`, or of `1ms..3ms`. Nothing for pauses without bounds.
fn bounds_ms(pauses: Pauses) -> Option<(u64, u64)> {
    let PauseBounds { least_ns, most_ns, mean_ns } = pauses.bounds();
    (mean_ns == 0).then(|| (whole_ms(least_ns), whole_ms(most_ns)))
}

/// What statements were sent, as far as that was counted: of ours those that end transactions.
fn statements(step: &Step) -> Vec<Field> {
    let sum = |of: fn(&TransactionStats) -> u64| {
        // A sum of some kinds would pass for that of all.
        let counts = step.operations.iter().filter(|operation| operation.count > 0);
        let known: Option<Vec<u64>> = counts.map(|operation| operation.transactions.as_ref().map(of)).collect();
        known.filter(|counts| !counts.is_empty()).map(|counts| counts.into_iter().fold(0, u64::saturating_add))
    };
    let known = |name: &'static str| {
        let own = match name {
            COMMITS => sum(|transactions| transactions.commits),
            ROLLBACKS => sum(|transactions| transactions.rollbacks),
            _ => None,
        };
        (name, own.map(|count| count.to_string()).or_else(|| figure_value(step, name).map(whole)))
    };
    STATEMENTS.map(known).into()
}

fn transaction(step: &Step, operation: &OperationStats) -> Vec<Field> {
    let OperationStats { kind, errors, response, transactions, .. } = operation;
    let own = |name: &str| figure_value(step, &format!("{kind} {name}"));
    let geometric_mean = response.geometric_mean_ns().map(|ns| ns / MS as f64).or_else(|| own("GeometricMean"));
    let rollbacks = transactions.as_ref().map(|transactions| transactions.rollbacks.to_string());
    let ms = |ns: u64| whole_ms(ns).to_string();
    let mut fields = vec![
        ("AverageResponse", response.mean_ns().map(|ns| (ns / MS as f64).to_string())),
        ("MinimumResponse", response.min_ns().map(ms)),
        ("MaximumResponse", response.max_ns().map(ms)),
        // Those that failed were counted, and not timed.
        ("TransactionCount", Some(response.count().to_string())),
        ("FailedTransactionCount", Some(errors.to_string())),
        ("RollbackCount", rollbacks.or_else(|| own("RollbackCount").map(whole))),
        ("GeometricMean", geometric_mean.map(|ms| ms.to_string())),
    ];
    let decile = |(name, share): (&'static str, f64)| {
        (name, response.quantile_ns(share).filter(|_| response.knows_quantile(share)).map(ms))
    };
    fields.extend(DECILES.map(decile));
    fields
}

/// Its name in Swingbench's files: `sales rep query` is `Sales Rep Query` there.
fn name_of(kind: &str) -> String {
    let capital = |word: &str| {
        let mut word = word.to_owned();
        if let Some(first) = word.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        word
    };
    kind.split(' ').map(capital).collect::<Vec<_>>().join(" ")
}

/// A figure of an imported run.
fn figure_value(step: &Step, name: &str) -> Option<f64> {
    step.reported.iter().find(|figure| figure.name == name).map(|figure| figure.value)
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

fn whole_ms(ns: u64) -> u64 {
    ns.div_ceil(MS)
}

/// Hours, minutes and whole seconds.
fn clock(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    format!("{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// How many transactions ended in each interval of a window.
struct IntervalCounts(Vec<IntervalCount>);

struct IntervalCount {
    /// Its end, from the beginning of the window.
    to_ns: u64,
    completed: u64,
}

impl IntervalCounts {
    /// Nothing if the step has no intervals, or the count of one is not known: a reading is of all since the one before.
    fn of(step: &Step) -> Option<Self> {
        let mut measured = step.intervals.iter().filter(|interval| !interval.warmup).peekable();
        let first_ns = measured.peek()?.offset_ns;
        let reading = |interval: &Interval| {
            let to_ns = interval.offset_ns.saturating_sub(first_ns).saturating_add(interval.duration_ns);
            Some(IntervalCount { to_ns, completed: interval.counters.operations? })
        };
        measured.map(reading).collect::<Option<_>>().map(Self)
    }

    /// Milliseconds since 1970 and a count for each, of a window that began at `began`.
    fn text(&self, began: Timestamp) -> String {
        let mut text = String::new();
        for IntervalCount { to_ns, completed } in &self.0 {
            let at_ms = (began.0.as_nanosecond() + i128::from(*to_ns)).div_euclid(NS_PER_MS);
            let _ = write!(text, "{at_ms}, {completed},");
        }
        text
    }
}

/// Blanks for each level.
const INDENT: usize = 3;

/// Where elements are written.
pub(crate) type Xml<'a> = Writer<&'a mut dyn Write>;

/// An element's name, and its text if that is known.
type Field = (&'static str, Option<String>);

/// What stands for a field that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unknown {
    /// An element without text.
    Empty,
    /// Nothing.
    LeftOut,
}

/// A document in UTF-8 that `content` fills.
pub(crate) fn document_xml(
    out: &mut dyn Write,
    content: impl FnOnce(&mut Xml<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut xml = Writer::new_with_indent(out, b' ', INDENT);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    content(&mut xml)?;
    xml.into_inner().write_all(b"\n")
}

/// An element with these in it, in their order.
fn fields(xml: &mut Xml<'_>, name: &str, id: Option<&str>, fields: Vec<Field>, unknown: Unknown) -> io::Result<()> {
    let id = id.map(possible);
    let element = xml.create_element(name).with_attributes(id.as_deref().map(|id| ("id", id)));
    element.write_inner_content(|xml| {
        for (name, value) in fields {
            match value {
                Some(text) => text_element(xml, name, &text)?,
                None if unknown == Unknown::Empty => _ = xml.create_element(name).write_empty()?,
                None => {}
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// An element with text in it. Quotation marks stand in it as they are, as they do in Swingbench's files.
fn text_element(xml: &mut Xml<'_>, name: &str, text: &str) -> io::Result<()> {
    let text = possible(text);
    xml.create_element(name).write_text_content(BytesText::from_escaped(partial_escape(text)))?;
    Ok(())
}

/// The text with what XML 1.0 cannot hold in any form, such as most control characters, replaced by U+FFFD.
pub(crate) fn possible(text: &str) -> Cow<'_, str> {
    let is_impossible =
        |char: char| matches!(char, '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}') && !"\t\n\r".contains(char);
    if text.contains(is_impossible) { Cow::Owned(text.replace(is_impossible, "\u{fffd}")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use model::record::{Counters, Histogram, Interval, OrdersOptions, ReportedFigure, Step, TargetKind, Workload};
    use model::units::Nanos;
    use model::workload::orders::{Preset, Reconnect};
    use std::collections::BTreeMap;

    use super::*;
    use model::record::sample::{self, Level, latencies};

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
            failed: Default::default(),
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
        run.target.kind = Some(TargetKind::Postgres);
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
        assert_eq!(
            (element(&text, "TransactionCount"), element(&text, "FailedTransactionCount")),
            (Some("7"), Some("0"))
        );
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
        run.target.facts.other = BTreeMap::from([("password".to_owned(), "tiger".to_owned())]);
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
        assert_eq!(
            (element(&text, "CommitStatements"), element(&text, "RollbackStatements")),
            (Some("888"), Some("10"))
        );
        assert_eq!(element(&text, "SelectStatements"), None, "statements are not counted by what they do");
    }

    #[test]
    fn statements_of_an_imported_run_are_those_that_it_reports() {
        let mut run = orders();
        let figure = |name: &str, value| ReportedFigure::new("client", name, "", value);
        run.steps[0].reported =
            vec![figure("SelectStatements", 4_730_734.0), figure("order products RollbackCount", 0.0)];
        let text = text(&run);
        assert_eq!((element(&text, "SelectStatements"), element(&text, "InsertStatements")), (Some("4730734"), None));
        assert_eq!(text.matches("<RollbackCount>0</RollbackCount>").count(), 1);
    }
}
