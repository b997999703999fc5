//! Wait event histograms: percentages of waits in several tables, joined into one set of counts.
//!
//! A report prints the middle of the range in its first table and the rest in further ones ("up to 64 us", "up to 32 ms", "64
//! msec to 2 sec", …). The first column of a further table is everything below it and its last everything above it. Where
//! buckets of several tables begin at one edge, the narrowest counts.

use crate::record::ToldBucket;

/// More columns than any such table has (22 are known): a longer row is no histogram.
const MOST_BUCKETS: usize = 64;
/// The exponent of the highest edge that is believed: 2^40 us are twelve days.
const HIGHEST: i32 = 40;
/// Percentages have one decimal.
const HALF_A_DIGIT: f64 = 0.05;
/// Differences of sums of percentages up to this are their rounding.
const ROUNDING: f64 = 0.35;

/// A duration range of a column: from, and up to or open.
pub(super) type Range = (u64, Option<u64>);

/// What a cell of such a table says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cell {
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

/// What one table says of one event.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// The number in front of the percentages: all waits in the first table, those within its range in another one.
    pub total: Option<Total>,
    /// One for each of the table's [ranges](ranges).
    pub cells: Vec<Cell>,
}

/// Whether a column heading is that of a bucket: `<8us`, `<=1s`, `>=2m`.
pub(super) fn is_bucket(label: &str) -> bool {
    let rest = label.trim().trim_start_matches(['<', '>', '=']).trim_start();
    rest.len() < label.trim().len() && rest.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether a bucket is told in microseconds. Then all edges of the report are powers of two of these, so that its millisecond
/// is 1,024 us; reports of releases before 12.1.0.2 know milliseconds only, and powers of two of them.
pub(super) fn is_micro(label: &str) -> bool {
    is_bucket(label) && label.trim_end().trim_end_matches('s').ends_with('u')
}

/// The ranges of a table's bucket columns, which cover all durations; nothing if the headings are not understood.
pub(super) fn ranges(labels: &[&str], micro: bool) -> Option<Vec<Range>> {
    if labels.len() < 2 || labels.len() > MOST_BUCKETS {
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

/// What a cell says; nothing if it is not understood.
pub(super) fn cell(text: &str) -> Option<Cell> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Cell::None);
    }
    if let Some((_, exactly)) = text.split_once('(') {
        return super::super::numbers::whole_number(exactly.trim_end_matches(')')).map(Cell::Exactly);
    }
    let percent = super::super::numbers::number(text)?;
    (0.0..=100.05).contains(&percent).then_some(Cell::Percent(percent))
}

/// A number of waits, as it is printed.
pub(super) fn total(text: &str) -> Option<Total> {
    let text = text.trim();
    let waits = super::super::draft::whole(super::super::numbers::scaled(text)?)?;
    let unit = match text.chars().last()? {
        'K' | 'k' => 1e3,
        'M' | 'm' => 1e6,
        'G' | 'g' => 1e9,
        'T' | 't' => 1e12,
        // A point without a unit: the unit was cut off.
        _ => return (!text.contains('.')).then_some(Total { waits, off: 0 }),
    };
    let decimals = text.split_once('.').map_or(0, |(_, rest)| rest.len().saturating_sub(1).min(12));
    Some(Total { waits, off: (unit / 2.0 / 10_f64.powi(decimals as i32)).ceil() as u64 })
}

/// A range with what is known of its share.
#[derive(Debug, Clone, Copy)]
struct Part {
    range: Range,
    /// Percent of all waits, or 0 where the count is exact.
    percent: f64,
    exactly: Option<u64>,
}

/// Joins what the tables of a report say of one event, whose waits are `waits` in all: first table first. Nothing if the
/// percentages contradict each other.
pub(super) fn join(rows: &[(&[Range], &Row)], waits: u64) -> Option<Vec<ToldBucket>> {
    let percent_of = |cell: &Cell| match cell {
        Cell::None => 0.0,
        Cell::Percent(percent) => *percent,
        Cell::Exactly(count) => *count as f64 / waits.max(1) as f64 * 100.0,
    };
    let mut cells: Vec<(Range, Cell)> =
        rows.iter().flat_map(|(ranges, row)| ranges.iter().copied().zip(row.cells.iter().copied())).collect();
    // Sorted so that of those that begin at one edge the narrowest is first.
    cells.sort_by_key(|((from, to), _)| (*from, to.unwrap_or(u64::MAX)));
    let below = |edge: u64| {
        let begins_here = |row: &&(&[Range], &Row)| row.0.iter().any(|range| range.0 == edge);
        let (ranges, row) = rows.iter().find(begins_here)?;
        let lower = ranges.iter().zip(&row.cells).filter(|((from, _), _)| *from < edge);
        Some(lower.map(|(_, cell)| percent_of(cell)).sum::<f64>())
    };
    let mut parts: Vec<Part> = Vec::new();
    let (mut at, mut so_far) = (0_u64, 0.0_f64);
    loop {
        let first = cells.iter().find(|((from, _), _)| *from >= at).copied();
        let begins_later = cells.iter().map(|((from, _), _)| *from).find(|from| *from > at);
        match (first, begins_later) {
            // A further table begins above, and tells what lies between here and there only as a whole.
            (Some(((from, to), _)), Some(edge)) if from > at || to.is_none() => {
                let percent = below(edge).map_or(0.0, |all| all - so_far);
                if percent > ROUNDING {
                    parts.push(Part { range: (at, Some(edge)), percent, exactly: None });
                    so_far += percent;
                }
                at = edge;
            }
            (Some(((from, to), cell)), _) if from == at => {
                let exactly = if let Cell::Exactly(count) = cell { Some(count) } else { None };
                if cell != Cell::None {
                    let percent = if exactly.is_some() { 0.0 } else { percent_of(&cell) };
                    parts.push(Part { range: (from, to), percent, exactly });
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
    counts(&parts, waits)
}

/// Whole numbers that sum to `waits`: what rounding left over goes to each share as far as its own rounding allows.
fn counts(parts: &[Part], waits: u64) -> Option<Vec<ToldBucket>> {
    let exact: u64 = parts.iter().filter_map(|part| part.exactly).fold(0, u64::saturating_add);
    let shared = waits.checked_sub(exact)?;
    let open: Vec<&Part> = parts.iter().filter(|part| part.exactly.is_none()).collect();
    let all = waits as f64;
    let at = |percent: f64| all * percent / 100.0;
    let sum: f64 = open.iter().map(|part| part.percent).sum();
    let told: f64 = sum + exact as f64 / all.max(1.0) * 100.0;
    // As far apart as this, percentages are not rounded but wrong.
    let allowed = 1.0 + HALF_A_DIGIT * parts.len() as f64;
    if open.is_empty() && shared > 0 && at(allowed) < shared as f64 || (told - 100.0).abs() > allowed {
        return None;
    }
    let left = shared as f64 - at(sum);
    let room = |part: &Part| {
        let down = at(part.percent.min(HALF_A_DIGIT));
        if left < 0.0 { down } else { at(HALF_A_DIGIT) }
    };
    let rooms: f64 = open.iter().map(|part| room(part)).sum();
    let wanted = |part: &Part| {
        let step = if rooms > 0.0 { left * room(part) / rooms } else { 0.0 };
        (at(part.percent) + step).max(0.0)
    };
    let mut rounded: Vec<(u64, f64)> =
        open.iter().map(|part| wanted(part)).map(|value| (value.floor() as u64, value.fract())).collect();
    let given: u64 = rounded.iter().map(|(count, _)| *count).fold(0, u64::saturating_add);
    let mut order: Vec<usize> = (0..rounded.len()).collect();
    order.sort_by(|a, b| {
        let fraction = |at: &usize| rounded.get(*at).map_or(0.0, |(_, fraction)| *fraction);
        fraction(b).total_cmp(&fraction(a))
    });
    let mut missing = shared.saturating_sub(given);
    for index in order {
        let more = u64::from(missing > 0);
        if let Some((count, _)) = rounded.get_mut(index) {
            *count += more;
        }
        missing -= more;
    }
    if let Some((count, _)) = rounded.iter_mut().max_by_key(|(count, _)| *count) {
        // What float arithmetic could not tell apart; nothing with fewer than 2^53 waits.
        *count = count.saturating_add(missing).saturating_sub(given.saturating_sub(shared));
    }
    // A cell that is not blank holds something, if only one wait.
    for index in 0..rounded.len() {
        if rounded.get(index).is_some_and(|(count, _)| *count == 0)
            && let Some((most, _)) = rounded.iter_mut().max_by_key(|(count, _)| *count).filter(|(most, _)| *most > 1)
        {
            *most -= 1;
            if let Some((count, _)) = rounded.get_mut(index) {
                *count = 1;
            }
        }
    }
    let mut rounded = rounded.into_iter();
    let bucket = |part: &Part| {
        let count = part.exactly.or_else(|| rounded.next().map(|(count, _)| count)).unwrap_or(0);
        ToldBucket { from_ns: part.range.0, to_ns: part.range.1, count }
    };
    Some(parts.iter().map(bucket).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAIN: [&str; 8] = ["<8us", "<16us", "<32us", "<64us", "<128us", "<256us", "<512us", ">=512us"];
    const UP_TO_32_MS: [&str; 8] = ["<512us", "<1ms", "<2ms", "<4ms", "<8ms", "<16ms", "<32ms", ">=32ms"];
    const UP_TO_2_S: [&str; 8] = ["<32ms", "<64ms", "<1/8s", "<1/4s", "<1/2s", "<1s", "<2s", ">=2s"];

    fn row(cells: &[&str]) -> Row {
        Row { total: None, cells: cells.iter().map(|text| cell(text).unwrap()).collect() }
    }

    fn joined(tables: &[(&[&str], &[&str])], waits: u64) -> Option<Vec<(u64, Option<u64>, u64)>> {
        let micro = tables.iter().any(|(labels, _)| labels.iter().any(|label| is_micro(label)));
        let read: Vec<(Vec<Range>, Row)> =
            tables.iter().map(|(labels, cells)| (ranges(labels, micro).unwrap(), row(cells))).collect();
        let rows: Vec<(&[Range], &Row)> = read.iter().map(|(ranges, row)| (ranges.as_slice(), row)).collect();
        let buckets = join(&rows, waits)?;
        Some(buckets.iter().map(|bucket| (bucket.from_ns, bucket.to_ns, bucket.count)).collect())
    }

    #[test]
    fn edges_are_powers_of_two_of_microseconds() {
        let edges = |labels: &[&str]| -> Vec<u64> {
            ranges(labels, true).unwrap().iter().filter_map(|(_, to)| *to).map(|ns| ns / 1_000).collect()
        };
        assert_eq!(edges(&MAIN), [8, 16, 32, 64, 128, 256, 512]);
        assert_eq!(edges(&UP_TO_2_S), [1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21]);
        let cut = ["<512", "<1ms", "<2ms", "<4ms", "<8ms", "<16ms", "<32ms", ">=32m"];
        assert_eq!(edges(&cut), edges(&UP_TO_32_MS), "text reports cut their headings");
        let minutes = ["<2s", "<4s", "<8s", "<16s", "<32s", "< 1m", "< 2m", ">=2m"];
        assert_eq!(edges(&minutes), [1 << 21, 1 << 22, 1 << 23, 1 << 24, 1 << 25, 1 << 26, 1 << 27]);
        let hour = ["<2m", "<4m", "<8m", "<1/4h", "<1/2h", "<1h", ">=1h"];
        assert_eq!(edges(&hour), [1 << 27, 1 << 28, 1 << 29, 1 << 30, 1 << 31, 1 << 32]);
    }

    #[test]
    fn milliseconds_stay_milliseconds_where_nothing_is_shorter() {
        let old = ["<1ms", "<2ms", "<4ms", "<8ms", "<16ms", "<32ms", "<=1s", ">1s"];
        let edges: Vec<u64> = ranges(&old, false).unwrap().iter().filter_map(|(_, to)| *to).collect();
        assert_eq!(edges, [1, 2, 4, 8, 16, 32, 1024].map(|ms| ms * 1_000_000));
    }

    #[test]
    fn headings_that_do_not_rise_are_not_understood() {
        assert_eq!(ranges(&["<8us", "<4us", ">=4us"], true), None);
        assert_eq!(ranges(&["<8us", "<apples", ">=1s"], true), None);
        assert_eq!(ranges(&["<8us"], true), None);
        assert!(!is_bucket("Event") && !is_bucket("< of waits") && is_bucket("<= 1s"));
    }

    #[test]
    fn tables_are_joined_where_they_meet() {
        let told = joined(
            &[
                (&MAIN, &["", "", "", "", "10.0", "20.0", "30.0", "40.0"]),
                (&UP_TO_32_MS, &["60.0", "10.0", "15.0", "5.0", "", "", "", "10.0"]),
                (&UP_TO_2_S, &["90.0", "6.0", "", "", "", "", "4.0", ""]),
            ],
            1_000,
        );
        let us = |us: u64| us * 1_000;
        let expected = vec![
            (us(64), Some(us(128)), 100),
            (us(128), Some(us(256)), 200),
            (us(256), Some(us(512)), 300),
            (us(512), Some(us(1_024)), 100),
            (us(1_024), Some(us(2_048)), 150),
            (us(2_048), Some(us(4_096)), 50),
            (us(32_768), Some(us(65_536)), 60),
            (us(1 << 20), Some(us(1 << 21)), 40),
        ];
        assert_eq!(told, Some(expected));
    }

    #[test]
    fn an_event_that_a_middle_table_leaves_out_has_nothing_there() {
        let told = joined(
            &[
                (&MAIN, &["", "", "", "", "", "", "98.0", "2.0"]),
                (&UP_TO_2_S, &["98.0", "2.0", "", "", "", "", "", ""]),
            ],
            100,
        );
        assert_eq!(told, Some(vec![(256_000, Some(512_000), 98), (32_768_000, Some(65_536_000), 2)]));
    }

    #[test]
    fn what_lies_above_the_first_table_stays_open_where_no_other_tells() {
        let told = joined(&[(&MAIN, &["", "", "", "", "", "", "98.0", "2.0"])], 100);
        assert_eq!(told, Some(vec![(256_000, Some(512_000), 98), (512_000, None, 2)]));
    }

    #[test]
    fn traces_and_exact_counts_are_more_than_nothing() {
        let told = joined(&[(&["<1ms", "<2ms", "<4ms", ">=4ms"], &["99.9", ".0", "0.0(7)", ""])], 1_000_000).unwrap();
        assert_eq!(told[2], (2_000_000, Some(4_000_000), 7));
        assert!((1..=500).contains(&told[1].2), "{told:?}");
        assert_eq!(told.iter().map(|bucket| bucket.2).sum::<u64>(), 1_000_000);
        let few = joined(&[(&["<1ms", "<2ms", ">=2ms"], &["100.0", ".0", ".0"])], 5_000).unwrap();
        assert!(few[1].2 >= 1 && few[2].2 >= 1, "{few:?}");
    }

    #[test]
    fn percentages_far_from_a_hundred_are_refused() {
        assert_eq!(joined(&[(&["<1ms", "<2ms", ">=2ms"], &["40.0", "20.0", "1.0"])], 1_000), None);
        assert_eq!(joined(&[(&["<1ms", "<2ms", ">=2ms"], &["100.0", "0.0(2000)", ""])], 1_000), None);
        assert_eq!(cell("1,0,x"), None);
        assert_eq!(cell("300"), None);
    }

    #[test]
    fn rounded_numbers_of_waits_know_how_rounded_they_are() {
        let of = |text: &str| total(text).map(|total| (total.waits, total.off));
        assert_eq!(
            ["2464", "4.8M", "359K", "12.3K", "7M", "1,234"].map(of),
            [
                Some((2_464, 0)),
                Some((4_800_000, 50_000)),
                Some((359_000, 500)),
                Some((12_300, 50)),
                Some((7_000_000, 500_000)),
                Some((1_234, 0)),
            ]
        );
        assert_eq!(["", "K", "many", "118.6"].map(of), [None, None, None, None]);
    }

    proptest! {
        #[test]
        fn counts_sum_to_all_waits_and_stay_near_their_shares(counts in prop::collection::vec(0_u64..200_000, 4)) {
            let waits: u64 = counts.iter().sum();
            prop_assume!(waits > 0);
            let print = |count: &u64| match count {
                0 => String::new(),
                count => format!("{:.1}", *count as f64 / waits as f64 * 100.0),
            };
            let cells: Vec<String> = counts.iter().map(print).collect();
            let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
            let told = joined(&[(&["<1ms", "<2ms", "<4ms", ">=4ms"], &cells)], waits).unwrap();
            prop_assert_eq!(told.iter().map(|bucket| bucket.2).sum::<u64>(), waits);
            let mut told = told.iter().map(|bucket| bucket.2);
            for count in counts.iter().filter(|count| **count > 0) {
                let apart = told.next().unwrap().abs_diff(*count) as f64;
                prop_assert!(apart <= waits as f64 * 0.001 + 2.0, "{} of {}", apart, waits);
            }
        }
    }
}
