//! The tables `waits`, `buckets` and `counters`: what a step has many of, one row each.

use std::io;

use serde::Serialize;
use serde_json::Value;

use super::durations::{self, durations, waited};
use super::steps::of_step;
use super::table::{Cell, Exported, Field, Kind, Rows, Table, columns, count, field, fill, number, text, words};
use model::record::{Histogram, POWER_OF_TWO_BOUNDS, ServerStats, Step, WaitStats};

pub(super) const WAITS: Table = Table {
    name: "waits",
    words: "a wait event of a step, of all instances or of one",
    columns: || columns(&waits()),
    rows: |exported, out| {
        let rows = exported.run.steps.iter().flat_map(|step| {
            events(step).map(move |(instance, wait)| Event { key: exported.key, step, instance, wait })
        });
        fill(&waits(), rows, out)
    },
};

pub(super) const BUCKETS: Table = Table {
    name: "buckets",
    words: "a bucket of a histogram in which something was counted: of a wait event, or of the times of one kind of operation",
    columns: || columns(&buckets()),
    rows: |exported, out| exported.run.steps.iter().try_for_each(|step| fill_buckets(exported, step, out)),
};

pub(super) const COUNTERS: Table = Table {
    name: "counters",
    words: "a figure of a step that is known, in the long form: whatever was counted has a row, and what is not known has none",
    columns: || columns(&counters()),
    rows: |exported, out| exported.run.steps.iter().try_for_each(|step| fill_counters(exported, step, out)),
};

/// Every event of a step, with the instance that it is of alone.
fn events(step: &Step) -> impl Iterator<Item = (Option<&String>, &WaitStats)> {
    let own = step.waits.iter().map(|wait| (None, wait));
    own.chain(step.instances_with_waits().flat_map(|it| it.waits.iter().map(|wait| (Some(&it.node), wait))))
}

pub(crate) struct Event<'a> {
    pub(crate) key: &'a str,
    pub(crate) step: &'a Step,
    pub(crate) instance: Option<&'a String>,
    pub(crate) wait: &'a WaitStats,
}

/// The column of the instance.
macro_rules! instance {
    ($row:ty) => {
        field("instance", Kind::Text, "", "the instance that it is of; NULL for all of them together", |row: &$row| {
            words(row.instance)
        })
    };
}

fn waits<'a>() -> Vec<Field<Event<'a>>> {
    let mut fields: Vec<Field<Event<'a>>> = Vec::with_capacity(24);
    fields.extend(of_step!(Event<'a>));
    fields.push(instance!(Event<'a>));
    fields.extend(event());
    fields
}

/// The columns of a wait event itself.
pub(crate) fn event<'a>() -> Vec<Field<Event<'a>>> {
    let mut fields: Vec<Field<Event<'a>>> = Vec::with_capacity(20);
    fields.extend([
        field("event", Kind::Text, "", "its name, such as `db file sequential read`", |row: &Event<'a>| {
            text(&row.wait.event)
        }),
        field("class", Kind::Text, "", "its class, such as `User I/O`", |row| text(&row.wait.class)),
        field("layer", Kind::Text, "", "the layer that timed it, such as `engine`", |row| text(&row.wait.layer)),
        field("foreground", Kind::Flag, "", "whether sessions waited in it", |row| Cell::Flag(row.wait.foreground)),
    ]);
    fields.extend(waited!("", "waits", |row: &Event<'a>| Some(row.wait.sum())));
    fields.extend(durations!("", "waits", |row: &'_ Event<'a>| Some(&row.wait.waits)));
    fields.extend(waited!("session_", "waits of sessions", |row: &Event<'a>| row.wait.of_sessions()));
    fields.extend(waited!("background_", "waits of the database's own processes", |row: &Event<'a>| row
        .wait
        .of_background()));
    fields
}

/// A bucket of a histogram.
struct Bucket<'a> {
    key: &'a str,
    step: &'a Step,
    instance: Option<&'a String>,
    of: &'static str,
    name: &'a str,
    at: usize,
    count: Option<u64>,
}

fn buckets<'a>() -> Vec<Field<Bucket<'a>>> {
    let mut fields: Vec<Field<Bucket<'a>>> = Vec::with_capacity(8);
    fields.extend(of_step!(Bucket<'a>));
    fields.push(instance!(Bucket<'a>));
    fields.extend([
        field("of", Kind::Text, "", "`wait`, `response` or `service`", |row: &Bucket<'a>| text(row.of)),
        field("name", Kind::Text, "", "the wait event, or the kind of operation", |row| text(row.name)),
        field(
            "lower_ns",
            Kind::Count,
            "ns",
            "no duration in it is shorter; a power of two in microseconds, or 0",
            |row| count(row.at.checked_sub(1).map_or(0, |below| 1_000 << below)),
        ),
        field("upper_ns", Kind::Count, "ns", "all durations in it are shorter; NULL in the last one", |row| {
            count((row.at < POWER_OF_TWO_BOUNDS).then(|| 1_000 << row.at))
        }),
        field(
            "count",
            Kind::Count,
            "",
            "durations in it; NULL where a wider bucket of the source, counted in its last, hides it",
            |row| count(row.count),
        ),
    ]);
    fields
}

fn fill_buckets(exported: &Exported<'_>, step: &Step, out: &mut Rows<'_>) -> io::Result<()> {
    let waits = events(step).map(|(instance, wait)| (instance, "wait", wait.event.as_str(), &wait.waits));
    let operations = step.operations.iter().flat_map(|it| {
        [(None, "response", it.kind.as_str(), &it.response), (None, "service", it.kind.as_str(), &it.service)]
    });
    let fields = buckets();
    for (instance, of, name, histogram) in waits.chain(operations) {
        // Where only a number is known, no bucket is.
        let known: Option<&Histogram> = Some(histogram).filter(|histogram| histogram.is_distribution());
        let counts = known.map(Histogram::power_of_two_us);
        let counts = counts.iter().flatten().enumerate().filter(|(_, count)| **count != Some(0));
        let rows = counts.map(|(at, count)| Bucket { key: exported.key, step, instance, of, name, at, count: *count });
        fill(&fields, rows, out)?;
    }
    Ok(())
}

/// A figure of a step.
struct Counter<'a> {
    key: &'a str,
    step: &'a Step,
    source: &'static str,
    of: String,
    name: String,
    unit: String,
    value: f64,
}

fn counters<'a>() -> Vec<Field<Counter<'a>>> {
    let mut fields: Vec<Field<Counter<'a>>> = Vec::with_capacity(8);
    fields.extend(of_step!(Counter<'a>));
    fields.extend([
        field(
            "source",
            Kind::Text,
            "",
            "what counted: `engine`, `operation`, `server`, `instance`, `device`, `process`, `trace`, \
               `processors`, `network`, `channel`, `connect`, or `reported` (by another program, under its own names)",
            |row: &Counter<'a>| text(row.source),
        ),
        field(
            "of",
            Kind::Text,
            "",
            "which of them: kind of operation, server, device; of reported figures the layer",
            |row| text(&row.of),
        ),
        field("name", Kind::Text, "", "its name, which ends in its unit", |row| text(&row.name)),
        field("unit", Kind::Text, "", "the unit of a reported figure", |row| text(&row.unit)),
        field("value", Kind::Number, "", "its value: in the window, not per second", |row| number(row.value)),
    ]);
    fields
}

fn fill_counters(exported: &Exported<'_>, step: &Step, out: &mut Rows<'_>) -> io::Result<()> {
    let fields = counters();
    let mut put = |source: &'static str, of: &str, unit: &str, named: Vec<(String, f64)>| {
        let (of, unit) = (of.to_owned(), unit.to_owned());
        let rows = named.into_iter().map(|(name, value)| Counter {
            key: exported.key,
            step,
            source,
            of: of.clone(),
            name,
            unit: unit.clone(),
            value,
        });
        fill(&fields, rows, out)
    };
    put("engine", "", "", numbers(&step.counters))?;
    for operation in &step.operations {
        put("operation", &operation.kind, "", numbers(operation))?;
    }
    for (source, servers) in [("server", &step.servers), ("instance", &step.instances)] {
        for server in servers {
            put(source, &server.node, "", numbers(&ServerStats { waits: Vec::new(), ..server.clone() }))?;
        }
    }
    for device in &step.devices {
        put("device", &device.name, "", numbers(device))?;
    }
    put("process", "", "", numbers(&step.process_io))?;
    for trace in &step.traces {
        let of =
            [&trace.layer, &trace.event, trace.device.as_ref().unwrap_or(&String::new())].map(String::as_str).join(" ");
        put("trace", of.trim_end(), "", numbers(trace))?;
    }
    put("processors", "", "", numbers(&step.host))?;
    for (end, number) in step.network.iter().zip(0..) {
        put("network", &format!("{number}"), "", numbers(end))?;
    }
    for channel in &step.channels {
        let names = [Some(&channel.of), channel.within.as_ref(), Some(&channel.name)];
        let of: Vec<&str> = names.into_iter().flatten().map(String::as_str).collect();
        put("channel", &of.join(" "), "", numbers(channel))?;
    }
    put(
        "connect",
        "failed",
        "",
        step.failed_connects.iter().map(|(why, count)| (why.clone(), *count as f64)).collect(),
    )?;
    for figure in step.reported.iter().filter(|figure| figure.doubted.is_none()) {
        put("reported", &figure.layer, &figure.unit, vec![(figure.name.clone(), figure.value)])?;
    }
    Ok(())
}

/// Every number in a document, by its name; within another one with that one's name before it. Lists, histograms among them, are left out.
fn numbers(document: &impl Serialize) -> Vec<(String, f64)> {
    let mut found = Vec::new();
    if let Ok(document) = serde_json::to_value(document) {
        collect("", &document, &mut found);
    }
    found
}

fn collect(path: &str, value: &Value, found: &mut Vec<(String, f64)>) {
    match value {
        Value::Number(number) => found.extend(number.as_f64().map(|number| (path.to_owned(), number))),
        Value::Object(fields) if !is_histogram(fields) => {
            for (name, value) in fields {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                collect(&below, value, found);
            }
        }
        _ => {}
    }
}

/// Histograms have tables of their own.
fn is_histogram(fields: &serde_json::Map<String, Value>) -> bool {
    ["hdr_v2_deflate_base64", "reported"].iter().any(|name| fields.contains_key(*name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample;

    #[test]
    fn numbers_have_the_names_of_the_record_and_histograms_are_no_numbers() {
        let step = &sample::sweep(10).steps[0];
        let names: Vec<String> = numbers(&step.operations[0]).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["block_touches", "count", "errors"]);
        assert!(numbers(&step.counters).iter().any(|(name, value)| name == "physical_reads" && *value > 0.0));
    }
}
