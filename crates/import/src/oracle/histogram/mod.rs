//! Wait event histograms: percentages of waits in several tables, joined into one set of counts.
//!
//! A report prints the middle of the range in its first table and the rest in further ones ("up to 64 us", "up to 32 ms", "64
//! msec to 2 sec", …). The first column of a further table is everything below it and its last everything above it. Where
//! buckets of several tables begin at one edge, the narrowest counts. A further table also says how many waits lie within its
//! range, which is more exact than their share of all waits.

mod counts;
#[cfg(test)]
mod tests;

use self::counts::{Counted, Part};
use crate::Notes;
use crate::draft::whole;
use crate::numbers::{multiple, number, scaled, whole_number};
use crate::oracle::header::last_part;
use crate::oracle::table;
use crate::oracle::table::{Report, Table, plain};
use model::record::ReportedBucket;

/// Differences of sums of percentages up to this are their rounding.
const ROUNDING: f64 = 0.35;

/// What one table says of one event.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// The number in front of the percentages: all waits in the first table, those within its range in another one.
    pub total: Option<Total>,
    /// One for each of the table's [ranges](ranges).
    cells: Vec<Cell>,
}

/// Joins what the tables of a report say of one event, whose waits are `waits` in all: first table first. Nothing if the
/// percentages contradict each other.
pub(super) fn join(rows: &[(&Buckets<'_>, &Row)], waits: u64) -> Option<Vec<ReportedBucket>> {
    let counted = |(table, row): &(&Buckets<'_>, &Row)| Some(Counted { range: table.counted?, total: row.total? });
    let ranges: Vec<Counted> = rows.iter().filter_map(counted).collect();
    let all = rows.iter().find(|(table, _)| table.is_whole).and_then(|(_, row)| row.total);
    counts::counts(&parts(rows, waits), waits, all, &ranges)
}

/// The ranges that hold something, with what is known of each one's share.
fn parts(rows: &[(&Buckets<'_>, &Row)], waits: u64) -> Vec<Part> {
    let percent_of = |cell: &Cell| match cell {
        Cell::None => 0.0,
        Cell::Percent(percent) => *percent,
        Cell::Exactly(count) => *count as f64 / waits.max(1) as f64 * 100.0,
    };
    let mut cells: Vec<(Range, Cell)> =
        rows.iter().flat_map(|(table, row)| table.ranges.iter().copied().zip(row.cells.iter().copied())).collect();
    // Sorted so that of those that begin at one edge the narrowest is first.
    cells.sort_by_key(|((from, to), _)| (*from, to.unwrap_or(u64::MAX)));
    let below = |edge: u64| {
        let begins_here = |(table, _): &&(&Buckets<'_>, &Row)| table.ranges.iter().any(|range| range.0 == edge);
        let (table, row) = rows.iter().find(begins_here)?;
        let lower = table.ranges.iter().zip(&row.cells).filter(|((from, _), _)| *from < edge);
        Some(lower.map(|(_, cell)| percent_of(cell)).sum::<f64>())
    };
    let mut parts: Vec<Part> = Vec::new();
    let (mut at, mut so_far) = (0_u64, 0.0_f64);
    loop {
        let first = cells.iter().find(|((from, _), _)| *from >= at).copied();
        let begins_later = cells.iter().map(|((from, _), _)| *from).find(|from| *from > at);
        match (first, begins_later) {
            // A further table begins above, and says what lies between here and there only as a whole.
            (Some(((from, to), _)), Some(edge)) if from > at || to.is_none() => {
                let percent = below(edge).map_or(0.0, |all| all - so_far);
                if percent > ROUNDING {
                    parts.push(Part { off: ROUNDING, ..Part::new((at, Some(edge)), percent) });
                    so_far += percent;
                }
                at = edge;
            }
            (Some(((from, to), cell)), _) if from == at => {
                match cell {
                    Cell::None => {}
                    Cell::Percent(percent) => parts.push(Part::new((from, to), percent)),
                    Cell::Exactly(count) => {
                        parts.push(Part { exactly: Some(count), off: 0.0, ..Part::new((from, to), 0.0) });
                    }
                }
                so_far += percent_of(&cell);
                match to {
                    Some(to) if to > at => at = to,
                    _ => break,
                }
            }
            _ => break,
        }
    }
    parts
}

/// What a cell of such a table says.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cell {
    /// Blank: truly none.
    None,
    /// A percentage of all waits of the event, to one decimal; 0 is more than none.
    Percent(f64),
    /// `0.0(122)`: exactly so many.
    Exactly(u64),
}

/// A number of waits as it is printed: `2464` is exact, `4.8M` is not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Total {
    /// The number.
    pub waits: u64,
    /// How far the true number may be away.
    pub off: u64,
}

/// What a cell says; nothing if it is not understood.
fn cell(text: &str) -> Option<Cell> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Cell::None);
    }
    if let Some((_, exactly)) = text.split_once('(') {
        return whole_number(exactly.trim_end_matches(')')).map(Cell::Exactly);
    }
    let percent = number(text)?;
    (0.0..=100.05).contains(&percent).then_some(Cell::Percent(percent))
}

/// A number of waits, as it is printed.
fn total(text: &str) -> Option<Total> {
    let text = text.trim();
    let waits = whole(scaled(text)?)?;
    // A point without a unit: the unit was cut off.
    let Some(unit) = multiple(text) else { return (!text.contains('.')).then_some(Total { waits, off: 0 }) };
    // One decimal is printed unless it is zero: `19K` is 19.0 thousand.
    let decimals = text.split_once('.').map_or(1, |(_, rest)| rest.len().saturating_sub(1).clamp(1, 12));
    Some(Total { waits, off: (unit / 2.0 / 10_f64.powi(decimals as i32)).ceil() as u64 })
}

/// Buckets of one histogram table.
pub(super) struct Buckets<'a> {
    pub ranges: Vec<Range>,
    /// Whether it is the table of the whole range.
    pub is_whole: bool,
    /// The durations that its number of waits is of, where these are a part of the whole range.
    pub counted: Option<Range>,
    pub table: &'a Table,
}

/// The histogram tables of a report, those of the whole range first.
pub(super) fn bucket_tables<'a>(report: &'a Report, notes: &mut Notes) -> Vec<Buckets<'a>> {
    let tables: Vec<&Table> =
        report.tables.iter().filter(|table| plain(&table.title).starts_with("waiteventhistogram")).collect();
    let labels = |table: &'a Table| -> Vec<&'a str> {
        table.columns.iter().map(|name| last_part(name)).filter(|name| is_bucket(name)).collect()
    };
    let micro = tables.iter().flat_map(|table| labels(table)).any(is_micro);
    let mut all = Vec::new();
    for table in tables {
        match ranges(&labels(table), micro) {
            Some(ranges) => {
                let title = plain(&table.title);
                // `Waits 64ms to 2s` counts a part of all waits.
                let of_part = table.columns.iter().map(|name| last_part(name)).find(|name| {
                    let name = plain(name);
                    name.starts_with("waits") && name.contains(|c: char| c.is_ascii_digit())
                });
                let is_whole = !title.contains("detail") && !title.contains("upto") && of_part.is_none();
                let counted = of_part.and_then(|heading| counted_range(heading, &ranges, micro));
                all.push(Buckets { ranges, is_whole, counted, table });
            }
            None if table.rows.is_empty() => {}
            None => {
                let columns = table.columns.join("`, `");
                notes.not_understood(
                    table.line,
                    format!("`{}` with the columns `{columns}`; rising durations were expected", table.title),
                );
            }
        }
    }
    all.sort_by_key(|buckets| !buckets.is_whole);
    all
}

impl Buckets<'_> {
    /// What its row of an event says; nothing if that is not understood.
    pub(super) fn row(&self, row: &table::Row) -> Option<Row> {
        let columns = || self.table.columns.iter().enumerate().map(|(at, name)| (at, last_part(name)));
        let cells = columns().filter(|(_, name)| is_bucket(name)).map(|(at, _)| cell(row.cell(at)));
        let is_total = |name: &str| {
            let name = plain(name);
            name == "totalwaits" || name.starts_with("waits")
        };
        let total = columns().find(|(_, name)| is_total(name)).and_then(|(at, _)| total(row.cell(at)));
        Some(Row { total, cells: cells.collect::<Option<_>>()? })
    }
}

/// More columns than any such table has (22 are known): a longer row is no histogram.
const MAX_BUCKETS: usize = 64;
/// The exponent of the highest edge that is believed: 2^40 us are twelve days.
const HIGHEST: i32 = 40;

/// A duration range of a column: from, and up to or open.
pub(super) type Range = (u64, Option<u64>);

/// Whether a column heading is that of a bucket: `<8us`, `<=1s`, `>=2m`.
fn is_bucket(label: &str) -> bool {
    let rest = label.trim().trim_start_matches(['<', '>', '=']).trim_start();
    rest.len() < label.trim().len() && rest.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether a bucket is reported in microseconds. Then all edges of the report are powers of two of these, so that its millisecond
/// is 1,024 us; reports of releases before 12.1.0.2 know milliseconds only, and powers of two of them.
fn is_micro(label: &str) -> bool {
    is_bucket(label) && label.trim_end().trim_end_matches('s').ends_with('u')
}

/// The ranges of a table's bucket columns, which cover all durations; nothing if the headings are not understood.
fn ranges(labels: &[&str], micro: bool) -> Option<Vec<Range>> {
    if labels.len() < 2 || labels.len() > MAX_BUCKETS {
        return None;
    }
    let (last, below) = labels.split_last()?;
    if !last.trim_start().starts_with('>') {
        return None;
    }
    let candidates: Vec<Vec<i32>> = below.iter().map(|label| exponents(label, micro)).collect();
    let only = |at: usize| candidates.get(at).and_then(|all| if let [one] = all[..] { Some(one) } else { None });
    let mut edges: Vec<i32> = Vec::with_capacity(below.len());
    for (at, all) in candidates.iter().enumerate() {
        let before = edges.last().copied();
        // Headings that were cut (`<512`, `<2m`) mean what makes the next power of two.
        let fits = |edge: &&i32| before.map(|one| one + 1) == Some(**edge) || only(at + 1) == Some(**edge + 1);
        let rises = |edge: &&i32| before.is_none_or(|one| one < **edge);
        let edge = all.iter().filter(rises).find(fits).or_else(|| all.iter().find(rises))?;
        edges.push(*edge);
    }
    let unit_ns: u64 = if micro { 1_000 } else { 1_000_000 };
    let edges: Vec<u64> = edges.into_iter().map(|exponent| unit_ns << exponent).collect();
    let from = std::iter::once(0).chain(edges.iter().copied());
    let to = edges.iter().copied().map(Some).chain([None]);
    Some(from.zip(to).collect())
}

/// The powers of two of the base unit that a heading may mean.
fn exponents(label: &str, micro: bool) -> Vec<i32> {
    let Some(text) = label.trim().strip_prefix('<') else { return Vec::new() };
    let text = text.trim_start_matches('=').trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '/' && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let value: Option<f64> = match number.split_once('/') {
        Some((above, below)) => above.parse::<f64>().ok().zip(below.parse::<f64>().ok()).map(|(a, b)| a / b),
        None => number.parse().ok(),
    };
    let seconds: &[f64] = match unit.trim() {
        "u" | "us" | "usec" => &[1e-6],
        "ms" | "msec" => &[1e-3],
        "s" | "sec" => &[1.0],
        "m" => &[60.0, 1e-3],
        "min" => &[60.0],
        "h" | "hr" => &[3_600.0],
        "" => &[1e-6, 1e-3, 1.0],
        _ => &[],
    };
    let base_s = if micro { 1e-6 } else { 1e-3 };
    let exponent = |unit_s: &f64| {
        let edge = (value? * unit_s / base_s).log2().round();
        (0.0..=f64::from(HIGHEST)).contains(&edge).then_some(edge as i32)
    };
    seconds.iter().filter_map(exponent).collect()
}

/// The durations that the number of waits in a detail table is of: `Waits 64ms to 2s` counts the waits of the columns `<64ms` to
/// `<2s`, those from 32 ms to 2 s. Nothing of the number of all waits, or if the columns do not have these edges.
fn counted_range(heading: &str, ranges: &[Range], micro: bool) -> Option<Range> {
    let edges: Vec<u64> = ranges.iter().filter_map(|(_, to)| *to).collect();
    let (first, last) = (*edges.first()?, *edges.last()?);
    let unit_ns: u64 = if micro { 1_000 } else { 1_000_000 };
    let is = |text: &str, edge_ns: u64| {
        exponents(&format!("<{text}"), micro).into_iter().any(|exponent| unit_ns << exponent == edge_ns)
    };
    let words = heading.split(|c: char| c.is_whitespace() || c == '-');
    let mut edge_texts = words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let (from, to) = (edge_texts.next()?, edge_texts.next()?);
    let from_ns = match edges.get(1) {
        _ if is(from, first) => 0,
        Some(second) if is(from, *second) => first,
        _ => return None,
    };
    (is(to, last) && from_ns < last).then_some((from_ns, Some(last)))
}
