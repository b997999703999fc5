//! The power-of-two wait table: columns `<32us` to `<128ms` and shares in percent, as Oracle's users know it.

use std::ops::RangeInclusive;

use super::words::{NONE, UNKNOWN};
use model::record::{Histogram, POWER_OF_TWO_BOUNDS};
use model::units::percent;

/// Columns shown even if empty: bounds of 2^5 us to 2^17 us, `<32us` to `<128ms`.
const DEFAULT: RangeInclusive<usize> = 5..=17;

/// Counts of all power-of-two buckets: element `k` those below 2^k us, the last those above all bounds; absent where only the sum
/// of several is known.
pub(super) type Counts = [Option<u64>; POWER_OF_TWO_BOUNDS + 1];

/// Columns of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns(RangeInclusive<usize>);

impl Columns {
    /// The usual columns, widened so that every count of these histograms has its column.
    pub(super) fn covering<'a>(histograms: impl IntoIterator<Item = &'a Histogram>) -> Self {
        Self::covering_counts(histograms.into_iter().map(Histogram::power_of_two_us))
    }

    /// The same for counts of power-of-two buckets.
    pub(super) fn covering_counts(histograms: impl IntoIterator<Item = Counts>) -> Self {
        let (mut first, mut last) = (*DEFAULT.start(), *DEFAULT.end());
        for counts in histograms {
            if let Some(lowest) = counts.iter().position(|count| *count > Some(0)) {
                first = first.min(lowest);
            }
            if let Some(highest) = counts.iter().rposition(|count| *count > Some(0)) {
                last = last.max(highest);
            }
        }
        Self(first..=last)
    }

    pub(super) fn headings(&self) -> Vec<String> {
        self.0.clone().map(heading).collect()
    }

    /// Share of all waits in each column, 0 to 1; absent where it is not known.
    pub(super) fn shares(&self, histogram: &Histogram) -> Vec<Option<f64>> {
        self.shares_of_counts(&histogram.power_of_two_us(), histogram.count())
    }

    /// The same for counts of power-of-two buckets, of `all` waits.
    pub(super) fn shares_of_counts(&self, counts: &Counts, all: u64) -> Vec<Option<f64>> {
        self.0.clone().map(|column| Some(counts[column]? as f64 / all.max(1) as f64)).collect()
    }

    /// Where a duration lies when the columns stand side by side, each as wide as the others: 0 at the left edge of the first and
    /// 1 at the right edge of the last. Absent beyond them, and in the one that has no upper bound.
    pub(super) fn share_of_ns(&self, ns: u64) -> Option<f64> {
        let (first, count) = (*self.0.start() as f64, self.0.clone().count() as f64);
        let column = (ns as f64 / 1e3).log2() + 1.0;
        let is_bounded = column <= POWER_OF_TWO_BOUNDS as f64;
        Some((column - first) / count).filter(|share| is_bounded && (0.0..=1.0).contains(share))
    }

    /// The shares as text: `-` where there was no wait, `0.0` where there were less than 0.05 %, `?` where that is not known.
    pub(super) fn cells(&self, histogram: &Histogram) -> Vec<String> {
        self.shares(histogram).into_iter().map(cell).collect()
    }
}

/// A share as the table prints it.
pub(super) fn cell(share: Option<f64>) -> String {
    match share {
        None => UNKNOWN.to_owned(),
        Some(0.0) => NONE.to_owned(),
        Some(share) => percent(share),
    }
}

/// Name of a column. As in Oracle's tables, `1ms` is 1024 us and `1s` is 1024 ms.
pub(super) fn heading(column: usize) -> String {
    let (sign, exponent) = if column < POWER_OF_TWO_BOUNDS { ("<", column) } else { (">=", column - 1) };
    let (power, unit) = match exponent {
        0..10 => (exponent, "us"),
        10..20 => (exponent - 10, "ms"),
        _ => (exponent - 20, "s"),
    };
    format!("{sign}{}{unit}", 1_u32 << power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|ns| histogram.record(*ns));
        histogram
    }

    #[test]
    fn headings_are_those_of_awr() {
        let usual = Columns::covering([]).headings();
        assert_eq!(usual.first().map(String::as_str), Some("<32us"));
        assert_eq!(usual.join(" "), "<32us <64us <128us <256us <512us <1ms <2ms <4ms <8ms <16ms <32ms <64ms <128ms");
        assert_eq!([heading(0), heading(20), heading(26), heading(27)].join(" "), "<1us <1s <64s >=64s");
    }

    #[test]
    fn a_duration_lies_within_the_column_that_counts_it() {
        let columns = Columns::covering([]);
        // The first column is below 32 us, the last from 64 ms to 128 ms: 13 columns.
        assert_eq!(columns.share_of_ns(16_000), Some(0.0));
        assert_eq!(columns.share_of_ns(32_000), Some(1.0 / 13.0));
        assert_eq!(columns.share_of_ns(128_000 * 1_024), Some(13.0 / 13.0));
        assert_eq!([1_000, 132_000_000].map(|ns| columns.share_of_ns(ns)), [None, None]);
        assert_eq!(Columns::covering([&of(&[80_000_000_000])]).share_of_ns(80_000_000_000), None);
    }

    #[test]
    fn columns_widen_to_where_the_counts_are() {
        let columns = Columns::covering([&of(&[500]), &of(&[70_000_000_000])]);
        let headings = columns.headings();
        assert_eq!((headings[0].as_str(), headings.last().unwrap().as_str()), ("<1us", ">=64s"));
    }

    #[test]
    fn none_and_almost_none_are_distinguished() {
        let mut histogram = Histogram::default();
        histogram.record_n(300_000, 9_999);
        histogram.record(2_000_000);
        let columns = Columns::covering([&histogram]);
        let cells = columns.cells(&histogram);
        assert_eq!(&cells[3..8], ["-", "100.0", "-", "0.0", "-"]);
    }

    proptest! {
        #[test]
        fn percentages_of_a_row_sum_to_a_hundred(values in prop::collection::vec(0u64..1 << 42, 1..300)) {
            let histogram = of(&values);
            let columns = Columns::covering([&histogram]);
            let cells = columns.cells(&histogram);
            let sum: f64 = cells.iter().filter(|cell| *cell != NONE).map(|cell| cell.parse::<f64>().unwrap()).sum();
            let rounding = 0.05 * cells.len() as f64 + 1e-9;
            prop_assert!((sum - 100.0).abs() <= rounding, "{cells:?}");
        }
    }
}
