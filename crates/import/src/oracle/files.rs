//! I/O by function and by type of file, as it is printed.

use super::header::bytes;
use super::table::{Report, Table, plain};
use super::times;
use crate::draft::reported_figure;
use crate::numbers::{number, scaled};
use model::record::ReportedFigure;

/// Figures of the tables that sum up I/O by function and by file type.
pub(super) fn figures(report: &Report, window_ns: u64) -> Vec<ReportedFigure> {
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
        add(table, by, title.contains("persecond"), window_ns, &mut all);
    }
    all
}

/// Adds the figures of a table, of which all may be rates, as release 11 has them for clusters.
fn add(table: &Table, by: &str, are_rates: bool, window_ns: u64, all: &mut Vec<ReportedFigure>) {
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
            let beside = || beside(&headings, &row.cells, heading, window_ns);
            if let Some((unit, value)) = value(heading, cell, beside) {
                let unit = match unit {
                    "" if are_rates => "/s",
                    "MB" if are_rates => "MB/s",
                    "B" if are_rates => "B/s",
                    unit => unit,
                };
                all.push(reported_figure("engine", format!("{by} {of}: {heading}"), unit, value));
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
    let heading = heading.split('(').next().unwrap_or_default().trim_end();
    ["per sec", "persec", "/s", "/sec"].iter().any(|end| heading.ends_with(end))
}

/// What a cell of data must be in bytes, or bytes per second, by the other of total and rate in its row, if that has its unit.
fn beside(headings: &[String], cells: &[String], heading: &str, window_ns: u64) -> Option<f64> {
    let group = heading.split_once(':').map(|(group, _)| group);
    let is_other = |other: &str| {
        plain(other).contains("data")
            && is_rate(other) != is_rate(heading)
            && other.split_once(':').map(|(group, _)| group) == group
    };
    let (_, cell) = headings.iter().zip(cells).find(|(other, cell)| is_other(other) && has_suffix(cell))?;
    let seconds = window_ns as f64 / 1e9;
    let other = bytes(cell)? as f64;
    let expected = if is_rate(heading) { other / seconds } else { other * seconds };
    (expected.is_finite() && expected > 0.0).then_some(expected)
}

fn has_suffix(cell: &str) -> bool {
    cell.trim_end().ends_with(|c: char| c.is_alphabetic())
}

/// The unit that a heading states.
fn unit_of_heading(plain: &str) -> Option<f64> {
    let units = [("kb", 1_024.0), ("mb", MB), ("gb", MB * 1_024.0)];
    units.into_iter().find(|(name, _)| plain.contains(name)).map(|(_, unit)| unit)
}

const MB: f64 = 1_048_576.0;

/// Bytes in a cell of data. Release 11.2.0.3 prints `Data per sec` as a bare number of MB: a cell without a suffix is in the unit of
/// its heading, or in the one that fits the total or rate beside it.
fn data(heading: &str, cell: &str, beside: impl Fn() -> Option<f64>) -> Option<f64> {
    if has_suffix(cell) {
        return bytes(cell).map(|bytes| bytes as f64);
    }
    let value = number(cell)?;
    let by_fit = || {
        let expected = beside().filter(|_| value > 0.0)?;
        let off = |unit: &f64| (value * unit / expected).ln().abs();
        [1.0, 1_024.0, MB, MB * 1_024.0].into_iter().min_by(|one, other| off(one).total_cmp(&off(other)))
    };
    let usual = if is_rate(heading) { MB } else { 1.0 };
    Some(value * unit_of_heading(&plain(heading)).or_else(by_fit).unwrap_or(usual))
}

/// The unit and value of a cell: data in multiples of 1,024, counts in those of 1,000, times in milliseconds.
fn value(heading: &str, cell: &str, beside: impl Fn() -> Option<f64>) -> Option<(&'static str, f64)> {
    let plain = plain(heading);
    if plain.contains("data") {
        let unit = if is_rate(heading) { "B/s" } else { "B" };
        return data(heading, cell, beside).map(|bytes| (unit, bytes));
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
            assert_eq!(value(heading, cell, || None), Some(expected), "{heading}");
        }
    }

    #[test]
    fn data_without_a_suffix_is_in_the_unit_that_fits_what_stands_beside_it() {
        // As 11.2.0.3 prints it: 70.1 G in an hour are 19.94 MB a second.
        let headings =
            ["Reads: Data", "Reqs per sec", "Reads: Data per sec", "Writes: Data per sec"].map(str::to_owned);
        let cells = ["70.1G", "416.3", "19.9415", "7"].map(str::to_owned);
        let of = |at: usize, cells: &[String; 4]| {
            value(&headings[at], &cells[at], || beside(&headings, cells, &headings[at], 3_600_000_000_000))
        };
        assert_eq!(of(2, &cells), Some(("B/s", 19.9415 * MB)));
        assert_eq!(of(3, &cells), Some(("B/s", 7.0 * MB)), "megabytes where nothing stands beside it");
        let bytes = ["70.1G", "416.3", "20910000", "7"].map(str::to_owned);
        assert_eq!(of(2, &bytes), Some(("B/s", 20_910_000.0)));
        let bare = ["71782", "416.3", "19.94M", "7"].map(str::to_owned);
        assert_eq!(of(0, &bare), Some(("B", 71_782.0 * MB)));
        assert_eq!(value("Reads: Data per sec (KB)", "5", || Some(1e9)), Some(("B/s", 5_120.0)), "its heading says so");
    }

    #[test]
    fn tables_per_second_hold_rates() {
        let owned = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let row = crate::oracle::table::Row { line: 1, cells: owned(["*", "DBWR", "12.5", "3.25"]) };
        let columns = owned(["I#", "Function Name", "Requests: Total", "MB: Total"]);
        let table = Table { columns, rows: vec![row], ..Table::default() };
        let units = |are_rates| {
            let mut all = Vec::new();
            add(&table, "function", are_rates, 0, &mut all);
            all.into_iter().map(|figure| figure.unit).collect::<Vec<_>>()
        };
        assert_eq!((units(false).join(","), units(true).join(",")), (",MB".to_owned(), "/s,MB/s".to_owned()));
    }
}
