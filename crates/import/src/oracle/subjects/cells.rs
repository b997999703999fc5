//! Exadata: what the database counts of its storage cells, and what these count of themselves.
//!
//! Sections on cells are in HTML alone, differ much between releases, and hold the I/O of all databases on the cells. They are read
//! by their headings; of a column whose heading and title do not report what it holds, nothing is kept.

use super::{Measure, Subject, empty, row, subject, table_of, table_of_names};
use crate::oracle::activity;
use crate::oracle::table::{Report, Row, Table, plain};
use model::record::{Covers, ReportedColumn, ReportedTable};

const BY_DATABASE: Subject = subject("Exadata storage, as the database counts it", "engine", Covers::Window);

/// Beginnings of the titles of sections on cells.
const TITLES: [&str; 14] = [
    "exadata",
    "flashcache",
    "flashlog",
    "smartflashlog",
    "smartio",
    "smartscan",
    "cellserver",
    "pmemcache",
    "xrmemcache",
    "ramcache",
    "columnarcache",
    "ioreasons",
    "topioreasons",
    "singleblockreads",
];

/// Statistics of the instance that report how storage cells served it, in the order in which they are shown.
const STATISTICS: [&str; 21] = [
    "physical read IO requests",
    "physical read requests optimized",
    "physical read total IO requests",
    "physical read total bytes",
    "physical read total bytes optimized",
    "cell flash cache read hits",
    "cell flash cache read hits for smart IO",
    "cell flash cache read hits for temp IO",
    "cell RDMA reads",
    "cell pmem cache read hits",
    "cell xrmem cache read hits",
    "cell writes to flash cache",
    "cell writes to flash cache for temp IO",
    "cell overwrites in flash cache",
    "cell partial writes in flash cache",
    "cell physical IO interconnect bytes",
    "cell physical IO interconnect bytes returned by smart scan",
    "cell physical IO bytes eligible for predicate offload",
    "cell physical IO bytes eligible for smart IOs",
    "cell physical IO bytes saved by storage index",
    "cell physical IO bytes saved by columnar cache",
];
/// Databases without cells count this one, too.
const ALSO_ELSEWHERE: &str = "cell physical IO interconnect bytes";
/// Columns that name a row: cell, type of disk, reason or database, type of request.
const MAX_KEYS: usize = 4;

/// Whether a title, as [`plain`] makes it, is that of a section on cells.
pub(super) fn is_title(plain: &str) -> bool {
    TITLES.iter().any(|begin| plain.starts_with(begin))
}

/// The tables on cells that a report reports.
pub(super) fn tables(report: &Report) -> Vec<ReportedTable> {
    let sections = report.tables.iter().filter(|table| is_title(&plain(&table.title)));
    by_database(report).into_iter().chain(sections.filter_map(of_cells)).collect()
}

/// Nothing of a database without cells, where all of them are zero.
fn by_database(report: &Report) -> Option<ReportedTable> {
    let statistics = activity::statistics(report);
    let is_of_cells = |name: &&&str| name.starts_with("cell ") && **name != ALSO_ELSEWHERE;
    let has_cells =
        STATISTICS.iter().filter(is_of_cells).any(|name| statistics.get(*name).is_some_and(|count| *count > 0));
    if !has_cells {
        return None;
    }
    let of_name = |name: &&str| {
        let count = statistics.get(*name)?;
        let measure = if name.contains("bytes") { Measure::Data(1.0) } else { Measure::Count };
        Some(row(name, measure, &[&count.to_string()]))
    };
    let rows = STATISTICS.iter().filter_map(of_name).collect();
    table_of_names(BY_DATABASE, "Instance Activity Stats", "statistic", &["total"], rows)
}

/// A section on cells, by its headings.
fn of_cells(table: &Table) -> Option<ReportedTable> {
    let of_all = subject("", "storage cell", Covers::Window);
    let is_time = |row: &Row, at: usize| Measure::TimeWithUnit.value(row.cell(at)).is_some();
    let is_figure = |row: &Row, at: usize| Measure::Percent.value(row.cell(at)).is_some() || is_time(row, at);
    // Names stand before figures. A sum over all cells has no other name.
    let is_name = |at: usize| {
        let cells = || table.rows.iter().filter(|row| !row.cell(at).is_empty());
        cells().next().is_some() && cells().all(|row| !is_figure(row, at))
    };
    let named = (0..table.columns.len().min(MAX_KEYS)).take_while(|at| is_name(*at)).count();
    if named == 0 {
        return None;
    }
    let keys: Vec<(&str, usize)> = table
        .columns
        .iter()
        .take(named)
        .zip(0..)
        .map(|(name, at)| (if name.is_empty() { "name" } else { name }, at))
        .collect();
    let of_title = Measure::of_heading(&table.title);
    let (mut columns, mut left_out) = (Vec::new(), Vec::new());
    for (at, heading) in table.columns.iter().enumerate().skip(named) {
        let as_rate = || Measure::of_heading(&format!("{heading} per second"));
        // `Flash Cache User Reads Per Second` has requests and MB in columns that do not say so.
        let measure = match (Measure::of_heading(heading), of_title) {
            (Some(Measure::Count), Some(Measure::PerSecond)) => Some(Measure::PerSecond),
            (None, _) if table.rows.iter().all(|row| row.cell(at).is_empty() || is_time(row, at)) => {
                Some(Measure::TimeWithUnit)
            }
            (None, Some(Measure::PerSecond)) => as_rate().filter(|measure| matches!(measure, Measure::As(_))),
            (known, _) => known,
        };
        match measure {
            Some(measure) => {
                let column = ReportedColumn { name: heading.clone(), unit: measure.unit().to_owned() };
                columns.push((column, at, measure));
            }
            None if table.rows.iter().any(|row| is_figure(row, at)) => left_out.push(heading.as_str()),
            None => {}
        }
    }
    let remark = format!("Left out, as the report does not give their unit: {}.", left_out.join(", "));
    let mut read = table_of(of_all, table, &keys, &columns, |_| true)
        .or_else(|| (!left_out.is_empty()).then(|| empty(of_all, &table.title, Vec::new())))?;
    read.subject.clone_from(&table.title);
    read.remarks.push("I/O of all databases on these cells.".to_owned());
    if !left_out.is_empty() {
        read.remarks.push(remark);
    }
    Some(read)
}
