//! `biolatency -j` of bcc: a dictionary for each table, as Python prints it, or as JSON once somebody converted it.

use serde_json::Value;

use super::{Table, Trace, bucket, unit_ns};
use crate::{Began, Draft, ImportError, Notes, Source};

/// Whether a line is such a dictionary.
pub(crate) fn recognises(head: &str) -> bool {
    head.lines().take(400).any(|line| {
        let line = line.trim_start();
        let begins = ["{'ts':", "{\"ts\":"].iter().any(|begin| line.starts_with(begin));
        begins && line.contains("val_type") && line.contains("interval-start")
    })
}

/// A dictionary as JSON: Python has other quotes, and `b` before those of bytes. No name of a disk or a flag has quotes.
fn json(line: &str) -> Option<Value> {
    let text = match line.contains('"') {
        true => line.to_owned(),
        false => line.replace(": b'", ": '").replace('\'', "\""),
    };
    serde_json::from_str(&text).ok()
}

/// Its table, and when it was printed.
fn table(value: &Value) -> Option<(Table, Option<Began>)> {
    let unit_ns = unit_ns(value.get("val_type")?.as_str()?)?;
    let mut table = Table::default();
    for row in value.get("data")?.as_array()? {
        let of = |key: &str| row.get(key).and_then(Value::as_u64);
        let to = of("interval-end")?.checked_add(1)?;
        table.buckets.push(bucket(of("interval-start")?, to, unit_ns, of("count")?)?);
    }
    // Of disks bcc names no key of its own.
    let of = ["flags", "disk", "Bucket ptr"].iter().find_map(|key| value.get(key)?.as_str());
    table.of = of.unwrap_or_default().chars().take(120).collect();
    let written = value.get("ts").and_then(Value::as_str);
    let time = written.and_then(|text| jiff::civil::DateTime::strptime("%Y-%m-%d %H:%M:%S", text).ok());
    let at = time.and_then(Began::wall);
    table.at_s = at.map(|at| at.timestamp().0.as_second());
    Some((table, at))
}

/// The run in it.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut trace = Trace::new("biolatency");
    for (number, line) in source.lines() {
        let line = line.trim();
        if let Some(words) = super::command(line) {
            trace.command = words;
        }
        if !line.starts_with('{') {
            continue;
        }
        let Some((table, at)) = json(line).as_ref().and_then(table) else {
            notes.not_understood(number, "a dictionary with val_type and data was expected");
            continue;
        };
        if trace.tables.is_empty() {
            trace.first_at = at;
        }
        if !trace.add(table) {
            return Err(ImportError::damaged(source, number, "it has too many tables"));
        }
    }
    trace
        .draft()
        .map(|draft| vec![draft])
        .ok_or_else(|| ImportError::no_result(source, "it holds no dictionary of biolatency that counted anything"))
}
