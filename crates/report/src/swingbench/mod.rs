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

#[cfg(test)]
mod tests;
mod xml;

use model::record::Load;
use model::record::Workload;
use model::workload::orders::PauseBounds;
use model::workload::orders::Pauses;
use std::fmt::Write as _;
use std::io::{self, Write};

use analysis::highest_minute;
use model::record::{Interval, OperationStats, Outcome, Run, Step, Timestamp, TransactionStats};
use xml::{Field, Unknown, fields, text_element};

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
    xml::document(out, |xml| {
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
    if run.target.facts.get("send").is_some_and(|how| how == "procedure") {
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
