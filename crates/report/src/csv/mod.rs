//! A run as comma-separated files for spreadsheets: numbers unrounded, unknown values empty, durations in microseconds.

mod requests;

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::buckets::heading;
use analysis::{Figures, LastMinute, SINGLE_BLOCK_READ, counted_per_s, operations_are_requests, wait};
use model::record::{Histogram, Interval, Metric, POWER_OF_TWO_BOUNDS, ReportedFigure, Run, Step, WaitStats};

/// Writes one file of a run.
pub type Writer = fn(&mut dyn Write, &Run) -> io::Result<()>;

/// What every one of the files begins with.
pub const BEGINNING: &str = "run,step,";

/// Every file, by the name it should have.
pub const FILES: [(&str, Writer); 7] = [
    ("steps.csv", steps),
    ("waits.csv", waits),
    ("histogram.csv", histogram),
    ("operations.csv", operations),
    ("intervals.csv", intervals),
    ("figures.csv", figures),
    ("channels.csv", self::channels),
];

const STEP_COLUMNS: [Metric; 17] = [
    Metric::Sessions,
    Metric::Window,
    Metric::Operations,
    Metric::LogicalReads,
    Metric::Reads,
    Metric::Writes,
    Metric::ReadMegabytes,
    Metric::WriteMegabytes,
    Metric::RedoMegabytes,
    Metric::Commits,
    Metric::Hits,
    Metric::UserProcessors,
    Metric::SystemProcessors,
    Metric::IoPerCpuSecond,
    Metric::BusySessions,
    Metric::BufferMisses,
    Metric::PageCacheHits,
];

const DURATION_COLUMNS: [&str; 9] =
    ["count", "total_us", "mean_us", "p50_us", "p90_us", "p99_us", "p99_9_us", "p99_99_us", "max_us"];

/// One row a step: rates, and single-block reads; of raw storage rates, response and service time of requests, and the load
/// generator's verdict on itself.
///
/// # Errors
/// If `out` fails.
pub fn steps(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    if operations_are_requests(run) {
        return requests::steps(out, run);
    }
    let reads = DURATION_COLUMNS.map(|name| format!("read_{name}"));
    let mut header = vec!["run", "step"];
    header.extend(STEP_COLUMNS.map(|metric| metric.key()));
    header.extend(reads.iter().map(String::as_str));
    line(out, header)?;
    for step in &run.steps {
        let mut row = vec![field(&run.id), field(&step.label)];
        row.extend(STEP_COLUMNS.map(|metric| optional(Figures(step).value(metric))));
        match wait(step, SINGLE_BLOCK_READ) {
            Some(wait) => row.extend(durations_of(wait)),
            None => row.extend(DURATION_COLUMNS.map(|_| String::new())),
        }
        line(out, row)?;
    }
    Ok(())
}

/// One row for each wait event of each step.
///
/// # Errors
/// If `out` fails.
pub fn waits(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    line(
        out,
        ["run", "step", "sessions", "event", "class", "layer", "foreground"].into_iter().chain(DURATION_COLUMNS),
    )?;
    for step in &run.steps {
        for wait in &step.waits {
            let names = [&run.id, &step.label, &sessions(step), &wait.event, &wait.class, &wait.layer];
            let row = names.into_iter().map(|name| field(name)).chain([wait.foreground.to_string()]);
            line(out, row.chain(durations_of(wait)))?;
        }
    }
    Ok(())
}

/// One row for each wait event of each step: waits in each power-of-two bucket, as counts.
///
/// # Errors
/// If `out` fails.
pub fn histogram(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    let headings = (0..=POWER_OF_TWO_BOUNDS).map(heading);
    line(out, ["run", "step", "sessions", "event"].map(str::to_owned).into_iter().chain(headings))?;
    for step in &run.steps {
        for wait in &step.waits {
            let names = [&run.id, &step.label, &sessions(step), &wait.event];
            let counts =
                wait.waits.power_of_two_us().map(|count| count.map_or_else(String::new, |count| count.to_string()));
            line(out, names.into_iter().map(|name| field(name)).chain(counts))?;
        }
    }
    Ok(())
}

/// One row for each operation type of each step: service and response time.
///
/// # Errors
/// If `out` fails.
pub fn operations(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    line(
        out,
        ["run", "step", "sessions", "kind", "errors", "block_touches", "time"].into_iter().chain(DURATION_COLUMNS),
    )?;
    for step in &run.steps {
        for operation in &step.operations {
            for (time, histogram) in [("service", &operation.service), ("response", &operation.response)] {
                let row = [
                    field(&run.id),
                    field(&step.label),
                    sessions(step),
                    field(&operation.kind),
                    operation.errors.to_string(),
                    operation.block_touches.to_string(),
                    time.to_owned(),
                ];
                line(out, row.into_iter().chain(durations(histogram)))?;
            }
        }
    }
    Ok(())
}

/// What is counted in each second.
const IN_SECONDS: [Metric; 10] = [
    Metric::Operations,
    Metric::LogicalReads,
    Metric::Reads,
    Metric::Writes,
    Metric::ReadMegabytes,
    Metric::WriteMegabytes,
    Metric::RedoMegabytes,
    Metric::Commits,
    Metric::BufferMisses,
    Metric::PageCacheHits,
];

/// One row a second, warm-up included and marked.
///
/// # Errors
/// If `out` fails.
pub fn intervals(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    let before = ["run", "step", "sessions", "offset_s", "duration_s", "warmup"].map(str::to_owned);
    let after = ["read_mean_us", "read_p99_us", "read_max_us", "response_p99_us", "operations_per_minute"];
    let rates = IN_SECONDS.map(|metric| format!("{}_per_s", metric.count_name()));
    line(out, before.into_iter().chain(rates).chain(after.map(str::to_owned)))?;
    let mut minute = LastMinute::default();
    for step in &run.steps {
        for interval in &step.intervals {
            let Interval { counters, servers, duration_ns, .. } = interval;
            let mut row = vec![
                field(&run.id),
                field(&step.label),
                sessions(step),
                (interval.offset_ns as f64 / 1e9).to_string(),
                (interval.duration_ns as f64 / 1e9).to_string(),
                interval.warmup.to_string(),
            ];
            row.extend(IN_SECONDS.map(|it| optional(counted_per_s(counters, servers, *duration_ns, |c| it.count(c)))));
            let reads = interval.waits.get(SINGLE_BLOCK_READ);
            row.push(optional(reads.and_then(Histogram::mean_ns).map(|ns| ns / 1e3)));
            row.push(microseconds(reads.and_then(|reads| reads.quantile_ns(0.99))));
            row.push(microseconds(reads.and_then(Histogram::max_ns)));
            row.push(microseconds(interval.response.quantile_ns(0.99)));
            row.push(optional(minute.add(interval).map(|ended| ended as f64)));
            line(out, row)?;
        }
    }
    Ok(())
}

/// One row for each figure that an imported run has by the names of its source: of the step, of an interval (`offset_s` says
/// which), or of a table (`table`, and the names of its row joined by ` / `). In the units of the source, and beside that as a metric of the
/// catalogue where it is one.
///
/// # Errors
/// If `out` fails.
pub fn figures(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    let own = ["offset_s", "table", "instance", "row", "figure", "layer", "unit", "value"];
    let columns = own.into_iter().chain(["metric", "part", "metric_value"]);
    line(out, ["run", "step"].into_iter().chain(columns))?;
    for step in &run.steps {
        let names = [field(&run.id), field(&step.label)];
        let row = |cells: [&str; 7], value: f64, figure: Option<&ReportedFigure>| {
            let known = figure.and_then(|figure| figure.metric.as_ref());
            let of = known.and_then(|known| known.of.as_deref());
            let metric = [
                known.map_or_else(String::new, |known| known.key.key().to_owned()),
                field(of.unwrap_or_default()),
                optional(known.map(|known| value * known.factor)),
            ];
            names.clone().into_iter().chain(cells.map(field)).chain([value.to_string()]).chain(metric)
        };
        let sums: BTreeMap<&str, &ReportedFigure> =
            step.reported.iter().map(|figure| (figure.name.as_str(), figure)).collect();
        for figure in &step.reported {
            line(out, row(["", "", "", "", &figure.name, &figure.layer, &figure.unit], figure.value, Some(figure)))?;
        }
        for interval in &step.intervals {
            let offset = (interval.offset_ns as f64 / 1e9).to_string();
            for (name, value) in &interval.reported {
                let sum = sums.get(name.as_str()).copied();
                let (layer, unit) = sum.map_or(("", ""), |sum| (&sum.layer, &sum.unit));
                line(out, row([&offset, "", "", "", name, layer, unit], *value, sum))?;
            }
        }
        for table in &step.tables {
            let node = table.node.as_deref().unwrap_or_default();
            for of_table in &table.rows {
                let names = of_table.names.join(" / ");
                for (at, (column, value)) in table.columns.iter().zip(&of_table.values).enumerate() {
                    let Some(value) = value else { continue };
                    let unit = table.unit(of_table, at);
                    let cells = ["", &table.subject, node, &names, &column.name, &table.layer, unit];
                    line(out, row(cells, *value, None))?;
                }
            }
        }
    }
    Ok(())
}

/// Empty where it is not known.
fn sessions(step: &Step) -> String {
    step.load.sessions.map_or_else(String::new, |sessions| sessions.to_string())
}

/// Number and sum as they are reported, quantiles by the histogram.
fn durations_of(wait: &WaitStats) -> [String; DURATION_COLUMNS.len()] {
    let mut row = durations(&wait.waits);
    let sum = wait.sum();
    row[0] = sum.count.to_string();
    row[1] = microseconds(sum.total_ns);
    row[2] = optional(sum.mean_ns().map(|ns| ns / 1e3));
    row
}

fn durations(histogram: &Histogram) -> [String; DURATION_COLUMNS.len()] {
    // The edge of a wide bucket that another program reported is no percentile.
    let quantile = |q| microseconds(histogram.quantile_ns(q).filter(|_| histogram.knows_quantile(q)));
    [
        histogram.count().to_string(),
        microseconds(histogram.total_ns()),
        optional(histogram.mean_ns().map(|ns| ns / 1e3)),
        quantile(0.5),
        quantile(0.9),
        quantile(0.99),
        quantile(0.999),
        quantile(0.9999),
        microseconds(histogram.max_ns()),
    ]
}

fn microseconds(ns: Option<u64>) -> String {
    optional(ns.map(|ns| ns as f64 / 1e3))
}

pub(super) fn optional(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// One field, quoted where RFC 4180 wants it.
pub(super) fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

pub(super) fn line<T: AsRef<str>>(out: &mut dyn Write, cells: impl IntoIterator<Item = T>) -> io::Result<()> {
    for (index, cell) in cells.into_iter().enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        out.write_all(cell.as_ref().as_bytes())?;
    }
    writeln!(out)
}

// Ways to storage: connections to a server, members of a disk group.

const COUNTS: [&str; 9] = [
    "channels",
    "reads",
    "read_bytes",
    "writes",
    "write_bytes",
    "errors",
    "outstanding_us",
    "most_outstanding",
    "window_us",
];
const KNOWN: [&str; 13] = [
    "queued",
    "queued_us",
    "retries",
    "reconnects",
    "segments_resent",
    "busy_us",
    "rwnd_limited_us",
    "room_commits",
    "resent_writes",
    "resent_bytes",
    "repairs",
    "drops",
    "resynced_bytes",
];

/// One row for each channel of each step.
///
/// # Errors
/// If `out` fails.
fn channels(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    let times = ["read", "write", "nothing"].map(|work| DURATION_COLUMNS.map(|name| format!("{work}_{name}")));
    let names = ["run", "step", "kind", "of", "within", "name"].into_iter().chain(COUNTS).chain(KNOWN);
    line(out, names.map(str::to_owned).chain(times.into_iter().flatten()))?;
    let us = |ns: u64| (ns as f64 / 1e3).to_string();
    let known = |count: Option<u64>| count.map_or_else(String::new, |count| count.to_string());
    let known_us = |ns: Option<u64>| ns.map_or_else(String::new, us);
    for step in &run.steps {
        for it in &step.channels {
            let names =
                [run.id.as_str(), &step.label, it.kind.name(), &it.of, it.within.as_deref().unwrap_or(""), &it.name];
            let counts = [it.channels.into(), it.reads, it.read_bytes, it.writes, it.write_bytes, it.errors];
            let known = [
                known(it.queued),
                known_us(it.queued_ns),
                known(it.retries),
                known(it.reconnects),
                known(it.segments_resent),
                known_us(it.busy_ns),
                known_us(it.rwnd_limited_ns),
                known(it.room_commits),
                known(it.resent_writes),
                known(it.resent_bytes),
                known(it.repairs),
                known(it.drops),
                known(it.resynced_bytes),
            ];
            let row = names.into_iter().map(field).chain(counts.map(|count: u64| count.to_string()));
            let outstanding = [us(it.outstanding_ns), it.most_outstanding.to_string(), us(step.window.duration_ns)];
            let times = [&it.read, &it.write, &it.nothing].into_iter().flat_map(durations);
            line(out, row.chain(outstanding).chain(known).chain(times))?;
        }
    }
    Ok(())
}
