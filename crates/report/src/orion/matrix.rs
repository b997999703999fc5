//! The three matrices: a row for each large load, a column for each small one.

use super::point::{Point, Points};

/// Width of a cell, without the comma before it.
const CELL: usize = 7;
/// Width of the first cell.
const CORNER: usize = "Large/Small".len();

/// `_mbps.csv`: large loads from 1 on.
pub(super) fn megabytes_per_s(points: &Points<'_>) -> String {
    let rows = from_one(&points.large_loads);
    matrix(points, &points.small_loads, &rows, |point| point.megabytes_per_s().map(|rate| format!("{rate:.2}")))
}

/// `_iops.csv`: small loads from 1 on.
pub(super) fn requests_per_s(points: &Points<'_>) -> String {
    let columns = from_one(&points.small_loads);
    matrix(points, &columns, &points.large_loads, |point| point.small_per_s().map(|rate| format!("{rate:.0}")))
}

/// `_lat.csv`: small loads from 1 on, in microseconds.
pub(super) fn latencies(points: &Points<'_>) -> String {
    let columns = from_one(&points.small_loads);
    matrix(points, &columns, &points.large_loads, |point| point.small_latency_us().map(|us| format!("{us:.2}")))
}

fn from_one(loads: &[u32]) -> Vec<u32> {
    loads.iter().copied().filter(|load| *load > 0).collect()
}

fn matrix(points: &Points<'_>, columns: &[u32], rows: &[u32], cell: impl Fn(&Point<'_>) -> Option<String>) -> String {
    let mut text = line("Large/Small", columns.iter().map(|small| Some(small.to_string())));
    for large in rows {
        let cells = columns.iter().map(|small| points.at(*small, *large).and_then(&cell));
        text.push_str(&line(&large.to_string(), cells));
    }
    text
}

/// One line. Cells after the last that is known are left out with their commas, as ORION does.
fn line(first: &str, cells: impl Iterator<Item = Option<String>>) -> String {
    let mut cells: Vec<Option<String>> = cells.collect();
    cells.truncate(cells.iter().rposition(Option::is_some).map_or(0, |last| last + 1));
    let cells = cells.into_iter().map(|cell| format!(",{:>CELL$}", cell.unwrap_or_default())).collect::<String>();
    format!("{first:>CORNER$}{cells}\n")
}
