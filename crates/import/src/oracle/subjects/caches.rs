//! Memory: of the host, of the SGA and PGA, and the caches in it, at the begin and the end snapshot.

use super::{Measure, Subject, empty, is_of_instance, row, subject, table_of_names};
use crate::oracle::header::last_part;
use crate::oracle::table::{Report, ReportKind, Row, Table, plain};
use model::record::{Covers, ReportedColumn, ReportedRow, ReportedTable};

const MEMORY: Subject = subject("Memory", "host", Covers::Edges);
const HOST_MEMORY: Subject = subject("Host memory", "host", Covers::Edges);
const CACHES: Subject = subject("Caches", "engine", Covers::Edges);
const SGA: Subject = subject("SGA", "engine", Covers::Edges);
const COMPONENTS: Subject = subject("Memory components", "engine", Covers::Edges);
const EDGES: [&str; 2] = ["begin", "end"];

/// The tables of memory of a report.
pub(super) fn tables(report: &Report) -> Vec<ReportedTable> {
    let mut all = Vec::new();
    for table in &report.tables {
        match plain(&table.title).as_str() {
            "memorystatistics" => all.extend(memory(table)),
            "cachesizes" | "cachesizesend" if report.kind != ReportKind::AwrGlobal => all.extend(caches(table)),
            "cachesizes" => all.extend(of_instances(CACHES, table, Measure::Data(1_048_576.0))),
            "sgamemorysummary" => all.extend(sizes(SGA, table, "region", |_| true)),
            "memorydynamiccomponents" => {
                // Of the many kinds of caches most are not used.
                let is_used = |row: &Row| row.cells.iter().skip(1).any(|cell| Measure::Count.value(cell) > Some(0.0));
                all.extend(sizes(COMPONENTS, table, "component", is_used));
            }
            "osstatisticsbyinstance" => all.extend(host_memory(table)),
            _ => {}
        }
    }
    all
}

/// Memory of the host and what instance takes of it.
fn memory(table: &Table) -> Option<ReportedTable> {
    let of_row =
        |line: &Row| Some(row(line.cell(0), Measure::of_heading(line.cell(0))?, &[line.cell(1), line.cell(2)]));
    table_of_names(MEMORY, &table.title, "memory", &EDGES, table.rows.iter().filter_map(of_row).collect())
        .map(without_units_in_names)
}

/// `Host Mem (MB)` is kept in bytes.
fn without_units_in_names(mut table: ReportedTable) -> ReportedTable {
    for name in table.rows.iter_mut().flat_map(|row| row.names.iter_mut()) {
        if let Some(plain) = name.strip_suffix("(MB)") {
            *name = plain.trim_end().to_owned();
        }
    }
    table
}

/// Sizes such as `292M`. One that stands once has not changed.
fn caches(table: &Table) -> Option<ReportedTable> {
    let only_end = plain(&table.title).ends_with("end");
    let of_row = |line: &Row| {
        let end = if line.cell(2).is_empty() { line.cell(1) } else { line.cell(2) };
        let edges = if only_end { ["", line.cell(1)] } else { [line.cell(1), end] };
        (line.cell(0) != "Std Block Size").then(|| row(line.cell(0), Measure::DataWithUnit, &edges))
    };
    table_of_names(CACHES, &table.title, "cache", &EDGES, table.rows.iter().filter_map(of_row).collect())
}

/// Sizes of parts in the unit of their columns, of which the end stands only where it is another than the begin.
fn sizes(subject: Subject, table: &Table, key: &str, is_wanted: fn(&Row) -> bool) -> Option<ReportedTable> {
    let at = |words: &[&str]| {
        table.columns.iter().position(|name| {
            let name = plain(name);
            name.contains("size") && words.iter().any(|word| name.starts_with(word))
        })
    };
    let (begin, end) = (at(&["begin"])?, at(&["end", "current"])?);
    let measure = Measure::of_heading(table.columns.get(begin)?)?;
    let heading = plain(table.columns.get(end)?);
    let blank_is_same = heading.contains("different") || heading.starts_with("endsnap");
    let of_row = |line: &Row| {
        let end = if line.cell(end).is_empty() && blank_is_same { line.cell(begin) } else { line.cell(end) };
        row(line.cell(0), measure, &[line.cell(begin), end])
    };
    table_of_names(
        subject,
        &table.title,
        key,
        &EDGES,
        table.rows.iter().filter(|row| is_wanted(row)).map(of_row).collect(),
    )
}

/// A cluster's sizes: a row for each instance, a pair of columns for each cache.
fn of_instances(subject: Subject, table: &Table, measure: Measure) -> Option<ReportedTable> {
    let is_in_megabytes = table.remarks.is_empty() || table.remarks.iter().any(|remark| remark.contains("Megabytes"));
    let mut rows = Vec::new();
    for line in table.rows.iter().filter(|row| is_of_instance(row) && is_in_megabytes) {
        for (at, heading) in table.columns.iter().enumerate().skip(1) {
            let (name, end) = match heading.strip_suffix(": Begin") {
                Some(name) => (name, table.columns.iter().position(|other| *other == format!("{name}: End"))),
                None if heading.ends_with(": End") => continue,
                None => (heading.as_str(), None),
            };
            let begin = measure.value(line.cell(at));
            // The end stands only where it is another.
            let end = end.and_then(|end| measure.value(line.cell(end))).or(begin);
            if begin.or(end).is_some() {
                let names = vec![line.cell(0).to_owned(), name.to_owned()];
                rows.push(ReportedRow { names, unit: String::new(), values: vec![begin, end] });
            }
        }
    }
    by_instance(subject, table, "cache", rows)
}

/// Memory of the machine of each instance.
fn host_memory(table: &Table) -> Option<ReportedTable> {
    let at = |group: &str, begin: &str| {
        table.columns.iter().position(|name| name.starts_with(group) && last_part(name).starts_with(begin))
    };
    let begin = at("Memory", "MB")?;
    let end = at("End Values", "Memory");
    let measure = Measure::Data(1_048_576.0);
    let of_instance = |line: &Row| {
        let first = measure.value(line.cell(begin))?;
        let last = end.and_then(|end| measure.value(line.cell(end))).unwrap_or(first);
        let names = vec![line.cell(0).to_owned(), "Host Mem".to_owned()];
        Some(ReportedRow { names, unit: String::new(), values: vec![Some(first), Some(last)] })
    };
    let rows = table.rows.iter().filter(|row| is_of_instance(row)).filter_map(of_instance).collect();
    by_instance(HOST_MEMORY, table, "memory", rows)
}

fn by_instance(subject: Subject, table: &Table, key: &str, rows: Vec<ReportedRow>) -> Option<ReportedTable> {
    let column = |name: &str| ReportedColumn { name: name.to_owned(), unit: "B".to_owned() };
    (!rows.is_empty()).then(|| ReportedTable {
        keys: vec!["instance".to_owned(), key.to_owned()],
        columns: EDGES.map(column).to_vec(),
        ..empty(subject, &table.title, rows)
    })
}
