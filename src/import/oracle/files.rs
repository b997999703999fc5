//! I/O by function and by type of file, as it is printed.

use super::header::bytes;
use super::table::{Report, Table, plain};
use super::times;
use crate::import::draft::told;
use crate::import::numbers::{number, scaled};
use crate::record::ToldFigure;

/// Figures of the tables that sum up I/O by function and by file type.
pub(super) fn figures(report: &Report) -> Vec<ToldFigure> {
    let mut all = Vec::new();
    for table in &report.tables {
        let title = plain(&table.title);
        let by = if title.starts_with("iostatbyfunction") && !title.contains("filetype") {
            "function"
        } else if title.starts_with("iostatbyfiletype") {
            "file type"
        } else {
            continue;
        };
        add(table, by, title.contains("persecond"), &mut all);
    }
    all
}

/// Adds the figures of a table, of which all may be rates, as release 11 has them for clusters.
fn add(table: &Table, by: &str, are_rates: bool, all: &mut Vec<ToldFigure>) {
    // A cluster's report has the instance in front, and `*` for their sum.
    let instance = table.column("I#");
    let name = table.columns.iter().position(|column| plain(column).ends_with("name")).unwrap_or(0);
    let mut under = "";
    let headings: Vec<String> = table
        .columns
        .iter()
        .map(|column| match column.split_once(':') {
            Some((group, _)) => {
                under = group;
                column.clone()
            }
            // `Reqs per sec` stands twice, below reads and below writes.
            None if under.is_empty() || !is_shared(column) => column.clone(),
            None => format!("{under}: {column}"),
        })
        .collect();
    for row in &table.rows {
        if instance.is_some_and(|at| row.cell(at) != "*") {
            continue;
        }
        let of = row.cell(name);
        for (at, (heading, cell)) in headings.iter().zip(&row.cells).enumerate() {
            if at == name || Some(at) == instance || cell.is_empty() {
                continue;
            }
            if let Some((unit, value)) = value(heading, cell) {
                let unit = match unit {
                    "" if are_rates => "/s",
                    "MB" if are_rates => "MB/s",
                    "B" if are_rates => "B/s",
                    unit => unit,
                };
                all.push(told("engine", format!("{by} {of}: {heading}"), unit, value));
            }
        }
    }
}

fn is_shared(column: &str) -> bool {
    let column = plain(column);
    column.ends_with("persec") || column.starts_with("avgt")
}

/// Whether a column is per second: `Reqs per sec`, `Reads/s`, and in Statspack `Requests /sec`.
fn is_rate(heading: &str) -> bool {
    ["per sec", "persec", "/s", "/sec"].iter().any(|end| heading.trim_end().ends_with(end))
}

/// The unit and value of a cell: data in multiples of 1,024, counts in those of 1,000, times in milliseconds.
fn value(heading: &str, cell: &str) -> Option<(&'static str, f64)> {
    let plain = plain(heading);
    if plain.contains("data") {
        let unit = if is_rate(heading) { "B/s" } else { "B" };
        return bytes(cell).map(|bytes| (unit, bytes as f64));
    }
    // Statspack also counts `Small Read Reqs`.
    let is_time_of_reads =
        ["smallread", "largeread"].iter().any(|reads| plain.contains(reads)) && !plain.contains("req");
    if plain.contains("avgt") || is_time_of_reads {
        let unit_ns = if plain.ends_with("ms") || number(cell).is_some() { Some(1e6) } else { None };
        return times::rounded_ns(cell, unit_ns).map(|time| ("ms", time.value / 1e6));
    }
    let unit = match () {
        () if plain.contains("mbs") => "MB/s",
        () if plain.starts_with("mb") => "MB",
        () if is_rate(heading) => "/s",
        () => "",
    };
    scaled(cell).map(|value| (unit, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_from_the_headings() {
        for (heading, cell, expected) in [
            ("Reads: Data", "2G", ("B", 2_147_483_648.0)),
            ("Reads: Data per sec", "1.5M", ("B/s", 1_572_864.0)),
            ("Read: Data Vol/sec", ".5M", ("B/s", 524_288.0)),
            ("Read: Requests /sec", "2.5", ("/s", 2.5)),
            ("Reads: Reqs per sec", "4.25", ("/s", 4.25)),
            ("Waits: Count", "1.2K", ("", 1_200.0)),
            ("Waits: Avg Time", "640.50us", ("ms", 0.6405)),
            ("Wait: Avg Tm(ms)", "3.5", ("ms", 3.5)),
            ("Small Read", ".25ms", ("ms", 0.25)),
            ("Large Read", "7.5", ("ms", 7.5)),
            ("Read: Small Read Reqs", "12K", ("", 12_000.0)),
            ("Read: Large Read Reqs", "7", ("", 7.0)),
        ] {
            assert_eq!(value(heading, cell), Some(expected), "{heading}");
        }
    }

    #[test]
    fn tables_per_second_hold_rates() {
        let owned = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let row = crate::import::oracle::table::Row { line: 1, cells: owned(["*", "DBWR", "12.5", "3.25"]) };
        let columns = owned(["I#", "Function Name", "Requests: Total", "MB: Total"]);
        let table = Table { columns, rows: vec![row], ..Table::default() };
        let units = |are_rates| {
            let mut all = Vec::new();
            add(&table, "function", are_rates, &mut all);
            all.into_iter().map(|figure| figure.unit).collect::<Vec<_>>()
        };
        assert_eq!((units(false).join(","), units(true).join(",")), (",MB".to_owned(), "/s,MB/s".to_owned()));
    }
}
