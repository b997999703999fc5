//! A run as comma-separated files for spreadsheets: the columns of [`crate::export`], but steps by their labels and durations in
//! microseconds. Numbers are unrounded, unknown values empty.

mod steps;

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::buckets::heading;
use super::comma::{line, optional, quoted};
use super::export::durations::{self, durations, waited};
use super::export::table::{Cell, Field, Kind, count, field, fill, number, small, text, words};
use super::export::{details, seconds, stalls, written};
use analysis::LastMinute;
use model::record::{ChannelStats, Histogram, Metric, OperationStats, POWER_OF_TWO_BOUNDS, ReportedFigure, Run, Step};
use seconds::counted;

pub use steps::steps;

/// Writes one file of a run.
pub type Writer = fn(&mut dyn Write, &Run) -> io::Result<()>;

/// What every one of the files begins with.
pub const BEGINNING: &str = "run,step,";

/// Every file, by the name it should have.
pub const FILES: [(&str, Writer); 8] = [
    ("steps.csv", steps),
    ("waits.csv", waits),
    ("histogram.csv", histogram),
    ("operations.csv", operations),
    ("intervals.csv", intervals),
    ("figures.csv", figures),
    ("channels.csv", channels),
    ("episodes.csv", episodes),
];

/// Writes a row for each of `rows` below the names of the columns: what exports have in nanoseconds in microseconds.
fn write<R>(out: &mut dyn Write, fields: &[Field<R>], rows: impl IntoIterator<Item = R>) -> io::Result<()> {
    let names = fields.iter().map(|field| match field.column.name.strip_suffix("_ns") {
        Some(name) => format!("{name}_us"),
        None => field.column.name.to_owned(),
    });
    line(out, names)?;
    fill(fields, rows, &mut |cells| {
        let cells = fields.iter().zip(cells).map(|(field, cell)| match cell {
            Cell::Count(ns) if field.column.unit == "ns" => (*ns as f64 / 1e3).to_string(),
            Cell::Number(ns) if field.column.unit == "ns" => (ns / 1e3).to_string(),
            cell => written(cell),
        });
        line(out, cells)
    })
}

/// The first columns of each file whose rows have a step.
macro_rules! of_step {
    ($row:ty) => {
        [own("run", |row: &$row| text(row.key)), own("step", |row: &$row| text(&row.step.label))]
    };
}
use of_step;

/// A column that exports do not have.
const fn own<R>(name: &'static str, of: fn(&R) -> Cell) -> Field<R> {
    field(name, Kind::Text, "", "", of)
}

/// The same of durations.
const fn own_ns<R>(name: &'static str, of: fn(&R) -> Cell) -> Field<R> {
    field(name, Kind::Count, "ns", "", of)
}

/// The columns of these names, in their order.
fn pick<R>(mut fields: Vec<Field<R>>, names: &[&str]) -> impl Iterator<Item = Field<R>> {
    names.iter().filter_map(move |name| {
        let at = fields.iter().position(|field| field.column.name == *name)?;
        Some(fields.swap_remove(at))
    })
}

/// One row for each wait event of each step.
///
/// # Errors
/// If `out` fails.
fn waits(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    let mut fields = Vec::from(of_step!(details::Event<'_>));
    fields.push(own("sessions", |row: &details::Event<'_>| small(row.step.load.sessions)));
    fields.extend(details::event());
    let rows = run.steps.iter().flat_map(|step| {
        step.waits.iter().map(move |wait| details::Event { key: &run.id, step, instance: None, wait })
    });
    write(out, &fields, rows)
}

/// One row for each wait event of each step: waits in each power-of-two bucket, as counts.
///
/// # Errors
/// If `out` fails.
fn histogram(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    let headings = (0..=POWER_OF_TWO_BOUNDS).map(heading);
    line(out, ["run", "step", "sessions", "event"].map(str::to_owned).into_iter().chain(headings))?;
    for step in &run.steps {
        for wait in &step.waits {
            let names = [text(&run.id), text(&step.label), small(step.load.sessions), text(&wait.event)];
            let counts = wait.waits.power_of_two_us().map(count);
            line(out, names.iter().chain(&counts).map(written))?;
        }
    }
    Ok(())
}

/// Times of one kind of operation.
struct Times<'a> {
    key: &'a str,
    step: &'a Step,
    operation: &'a OperationStats,
    time: &'static str,
    histogram: &'a Histogram,
}

/// One row for each operation type of each step: service and response time.
///
/// # Errors
/// If `out` fails.
fn operations<'a>(out: &mut dyn Write, run: &'a Run) -> io::Result<()> {
    let mut fields = Vec::from(of_step!(Times<'a>));
    fields.extend([
        own("sessions", |row: &Times<'a>| small(row.step.load.sessions)),
        own("kind", |row| text(&row.operation.kind)),
        own("errors", |row| count(row.operation.errors)),
        own("block_touches", |row| count(row.operation.block_touches)),
        own("time", |row| text(row.time)),
    ]);
    fields.extend(waited!("", "operations", |row: &Times<'a>| durations::of(Some(row.histogram))));
    fields.extend(durations!("", "operations", |row: &'_ Times<'a>| Some(row.histogram)));
    let rows = run.steps.iter().flat_map(|step| {
        step.operations.iter().flat_map(move |operation| {
            [("service", &operation.service), ("response", &operation.response)].map(|(time, histogram)| Times {
                key: &run.id,
                step,
                operation,
                time,
                histogram,
            })
        })
    });
    write(out, &fields, rows)
}

/// One row a second, warm-up included and marked.
///
/// # Errors
/// If `out` fails.
fn intervals(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    let rates = [
        "warmup",
        "operations_per_s",
        "logical_reads_per_s",
        "reads_per_s",
        "writes_per_s",
        "read_bytes_per_s",
        "write_bytes_per_s",
        "redo_bytes_per_s",
        "commits_per_s",
    ];
    let times = ["read_mean_ns", "read_p99_ns", "read_max_ns", "response_p99_ns"];
    let mut fields = Vec::from(of_step!(seconds::Row<'_>));
    fields.extend([
        own("sessions", |row: &seconds::Row<'_>| small(row.step.load.sessions)),
        own("offset_s", |row| number(row.interval.offset_ns as f64 / 1e9)),
        own("duration_s", |row| number(row.interval.duration_ns as f64 / 1e9)),
    ]);
    fields.extend(pick(seconds::fields(), &rates));
    fields.extend([counted!(BufferMisses), counted!(PageCacheHits)]);
    fields.extend(pick(seconds::fields(), &times));
    fields.push(own("operations_per_minute", |row| count(row.in_last_minute)));
    let mut minute = LastMinute::default();
    let seconds = run.steps.iter().flat_map(|step| step.intervals.iter().map(move |interval| (step, interval)));
    let rows = seconds.map(|(step, interval)| {
        let mut row = seconds::Row::new(&run.id, run, step, interval);
        row.in_last_minute = minute.add(interval);
        row
    });
    write(out, &fields, rows)
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
        let names = [quoted(&run.id), quoted(&step.label)];
        let row = |cells: [&str; 7], value: f64, figure: Option<&ReportedFigure>| {
            let known = figure.and_then(|figure| figure.metric.as_ref());
            let of = known.and_then(|known| known.of.as_deref());
            let metric = [
                known.map_or_else(String::new, |known| known.key.key().to_owned()),
                quoted(of.unwrap_or_default()),
                optional(known.map(|known| value * known.factor)),
            ];
            names.clone().into_iter().chain(cells.map(quoted)).chain([value.to_string()]).chain(metric)
        };
        let sums: BTreeMap<&str, &ReportedFigure> =
            step.reported.iter().map(|figure| (figure.name.as_str(), figure)).collect();
        for figure in step.reported.iter().filter(|figure| figure.doubted.is_none()) {
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

/// A way to storage: connections to a server, or a member of a disk group.
struct Channel<'a> {
    key: &'a str,
    step: &'a Step,
    it: &'a ChannelStats,
}

/// One row for each channel of each step.
///
/// # Errors
/// If `out` fails.
fn channels<'a>(out: &mut dyn Write, run: &'a Run) -> io::Result<()> {
    let mut fields = Vec::from(of_step!(Channel<'a>));
    fields.extend([
        own("kind", |row: &Channel<'a>| text(row.it.kind.name())),
        own("of", |row| text(&row.it.of)),
        own("within", |row| words(row.it.within.as_ref())),
        own("name", |row| text(&row.it.name)),
        own("channels", |row| count(u64::from(row.it.channels))),
        own("reads", |row| count(row.it.reads)),
        own("read_bytes", |row| count(row.it.read_bytes)),
        own("writes", |row| count(row.it.writes)),
        own("write_bytes", |row| count(row.it.write_bytes)),
        own("errors", |row| count(row.it.errors)),
        own_ns("outstanding_ns", |row| count(row.it.outstanding_ns)),
        own("most_outstanding", |row| count(u64::from(row.it.most_outstanding))),
        own_ns("window_ns", |row| count(row.step.window.duration_ns)),
        own("queued", |row| count(row.it.queued)),
        own_ns("queued_ns", |row| count(row.it.queued_ns)),
        own("retries", |row| count(row.it.retries)),
        own("reconnects", |row| count(row.it.reconnects)),
        own("segments_resent", |row| count(row.it.segments_resent)),
        own_ns("busy_ns", |row| count(row.it.busy_ns)),
        own_ns("rwnd_limited_ns", |row| count(row.it.rwnd_limited_ns)),
        own("room_commits", |row| count(row.it.room_commits)),
        own("resent_writes", |row| count(row.it.resent_writes)),
        own("resent_bytes", |row| count(row.it.resent_bytes)),
        own("repairs", |row| count(row.it.repairs)),
        own("drops", |row| count(row.it.drops)),
        own("resynced_bytes", |row| count(row.it.resynced_bytes)),
    ]);
    fields.extend(waited!("read_", "reads", |row: &Channel<'a>| durations::of(Some(&row.it.read))));
    fields.extend(durations!("read_", "reads", |row: &'_ Channel<'a>| Some(&row.it.read)));
    fields.extend(waited!("write_", "writes", |row: &Channel<'a>| durations::of(Some(&row.it.write))));
    fields.extend(durations!("write_", "writes", |row: &'_ Channel<'a>| Some(&row.it.write)));
    fields.extend(waited!("nothing_", "empty calls", |row: &Channel<'a>| durations::of(Some(&row.it.nothing))));
    fields.extend(durations!("nothing_", "empty calls", |row: &'_ Channel<'a>| Some(&row.it.nothing)));
    let rows = run.steps.iter().flat_map(|step| step.channels.iter().map(move |it| Channel { key: &run.id, step, it }));
    write(out, &fields, rows)
}

/// One row for each episode of slow operations.
///
/// # Errors
/// If `out` fails.
fn episodes<'a>(out: &mut dyn Write, run: &'a Run) -> io::Result<()> {
    let mut fields = Vec::from(of_step!(stalls::Row<'a>));
    fields.extend(stalls::what());
    write(out, &fields, stalls::rows(&run.id, run))
}
