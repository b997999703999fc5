//! I/O of tablespaces and files, with their mean times.

use super::{ColumnRule, Measure, Subject, columns_of, subject, table_of, time, wanted};
use crate::oracle::table::{Report, Table, plain};
use model::record::invariants::is_rate_of;
use model::record::{Covers, ReportedColumn, ReportedTable};

const TABLESPACES: Subject = subject("Tablespace I/O", "engine", Covers::Window);
const FILES: Subject = subject("File I/O", "engine", Covers::Window);

const READS: &str = "reads";
const READS_PER_S: &str = "reads/s";
const SINGLE_PER_S: &str = "1-block reads/s";
const SINGLE_MEAN: &str = "1-block read mean";
const WRITES: &str = "writes";
const WRITES_PER_S: &str = "writes/s";

/// By their headings in all releases: `Av Rds/s`, `Av Reads/s`, `Rds/s`.
const COLUMNS: [ColumnRule; 12] = [
    wanted(|name| name == "reads", READS, Measure::Count),
    wanted(|name| ["avrdss", "avreadss"].contains(&name), READS_PER_S, Measure::PerSecond),
    time(|name| name == "avrdms", "read mean"),
    wanted(|name| name == "avblksrd", "blocks per read", Measure::Count),
    wanted(|name| name == "1bkrdss", SINGLE_PER_S, Measure::PerSecond),
    time(|name| name == "av1bkrdms", SINGLE_MEAN),
    wanted(|name| name == "%optreads", "optimized reads", Measure::Percent),
    wanted(|name| name == "writes", WRITES, Measure::Count),
    wanted(|name| ["writesavgs", "avwritess"].contains(&name), WRITES_PER_S, Measure::PerSecond),
    time(|name| name == "avwritesms", "write mean"),
    wanted(|name| name == "bufferwaits", "buffer waits", Measure::Count),
    time(|name| name == "avbufwtms", "buffer wait mean"),
];

/// Rates are printed as whole numbers, and the window may be off by a second.
const RATE_ROUNDING: f64 = 0.6;
const RATE_TOLERANCE: f64 = 0.01;

/// The tables of tablespaces and files of a report whose window is so long; 0 if that is not known.
pub(super) fn tables(report: &Report, window_ns: u64) -> Vec<ReportedTable> {
    let mut all = Vec::new();
    for table in &report.tables {
        let (subject, names): (Subject, &[(&str, &str)]) = match plain(&table.title).as_str() {
            "tablespaceiostats" => (TABLESPACES, &[("tablespace", "Tablespace"), ("container", "PDB Name")]),
            "fileiostats" => (FILES, &[("tablespace", "Tablespace"), ("file", "Filename"), ("container", "PDB Name")]),
            _ => continue,
        };
        all.extend(of_table(subject, names, table, window_ns));
    }
    all
}

fn of_table(subject: Subject, names: &[(&str, &str)], table: &Table, window_ns: u64) -> Option<ReportedTable> {
    let keys: Vec<(&str, usize)> =
        names.iter().filter_map(|(name, heading)| Some((*name, table.column(heading)?))).collect();
    let named_by = keys.first().map(|(_, at)| *at)?;
    let mut columns = columns_of(table, &COLUMNS);
    let doubted = doubted(table, &columns, window_ns);
    columns.retain(|(column, ..)| !doubted.contains(&column.name.as_str()));
    // A container that is not reported is not that of the row above.
    let mut read = table_of(subject, table, &keys, &columns, |row| !row.cell(named_by).is_empty())?;
    if !doubted.is_empty() {
        read.remarks.push(format!(
            "Left out: {}. Under these headings the report prints figures that contradict its other columns, as those of \
             release 11.2 do.",
            doubted.join(", ")
        ));
    }
    Some(read)
}

/// Columns that cannot hold what their headings say. Reports of release 11.2 print writes, single-block reads and their time each
/// one column further to the left or right: more single-block reads than reads, or other writes than their rate has.
fn doubted(table: &Table, columns: &[(ReportedColumn, usize, Measure)], window_ns: u64) -> Vec<&'static str> {
    let of = |name: &str, row: usize| {
        let (_, at, measure) = columns.iter().find(|(column, ..)| column.name == name)?;
        measure.value(table.rows.get(row)?.cell(*at))
    };
    let seconds = window_ns as f64 / 1e9;
    let agree = |count: Option<f64>, per_s: Option<f64>| match count.zip(per_s).filter(|_| seconds > 0.0) {
        Some((count, per_s)) => is_rate_of(per_s, count, seconds, RATE_ROUNDING + per_s * RATE_TOLERANCE),
        None => true,
    };
    let rows = || 0..table.rows.len();
    let more_of_one_block = rows().any(|row| {
        let pair = of(SINGLE_PER_S, row).zip(of(READS_PER_S, row));
        pair.is_some_and(|(single, all)| single > all + 2.0 * RATE_ROUNDING + all * RATE_TOLERANCE)
    });
    let other_writes = rows().any(|row| !agree(of(WRITES, row), of(WRITES_PER_S, row)));
    let other_reads = rows().any(|row| !agree(of(READS, row), of(READS_PER_S, row)));
    let mut doubted = Vec::new();
    if more_of_one_block || other_writes && of_any(columns, SINGLE_PER_S) {
        doubted.extend([SINGLE_PER_S, SINGLE_MEAN]);
    }
    if more_of_one_block || other_writes {
        doubted.extend([WRITES]);
    }
    if other_reads {
        doubted.extend([READS, READS_PER_S]);
    }
    doubted
}

fn of_any(columns: &[(ReportedColumn, usize, Measure)], name: &str) -> bool {
    columns.iter().any(|(column, ..)| column.name == name)
}
