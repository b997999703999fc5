//! Wait event histograms: percentages of waits in several tables, joined into one set of counts.
//!
//! A report prints the middle of the range in its first table and the rest in further ones ("up to 64 us", "up to 32 ms", "64
//! msec to 2 sec", …). The first column of a further table is everything below it and its last everything above it. Where
//! buckets of several tables begin at one edge, the narrowest counts. A further table also says how many waits lie within its
//! range, which is more exact than their share of all waits.

mod cells;
mod counts;
mod headings;
mod tables;
#[cfg(test)]
mod tests;

use self::cells::Cell;
pub(super) use self::cells::Total;
use self::counts::{Counted, Part};
pub(super) use self::headings::Range;
pub(super) use self::tables::{Buckets, bucket_tables};
use model::record::ReportedBucket;

/// Differences of sums of percentages up to this are their rounding.
const ROUNDING: f64 = 0.35;

/// What one table says of one event.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// The number in front of the percentages: all waits in the first table, those within its range in another one.
    pub total: Option<Total>,
    /// One for each of the table's [ranges](headings::ranges).
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
