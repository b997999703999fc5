//! Histograms of a point.

use super::super::ImportError;
use super::super::Source;
use super::super::numbers::{number, whole_number};
use model::record::ReportedBucket;

/// Percentages have two decimals.
const PERCENT_OFF: f64 = 0.02;

/// A histogram in the making: small or large requests of a point.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows {
    /// Buckets of reads.
    pub(super) reads: Vec<ReportedBucket>,
    /// Buckets of writes, of as many rows as have them.
    pub(super) writes: Vec<ReportedBucket>,
    /// The lines of the rows and their percentages.
    rows: Vec<(u64, [Option<f64>; 2])>,
}

impl Rows {
    /// Takes `64 - 128  us:  1112243 ( 91.12%)  0 (  0.00%)`; whether it is such a row.
    pub(super) fn take(&mut self, line: u64, text: &str) -> bool {
        self.row(line, text).is_some()
    }

    fn row(&mut self, line: u64, text: &str) -> Option<()> {
        let (range, counts) = text.split_once("us:")?;
        // A log may have put something before it, such as a date.
        let (from, to) = range.rsplit_once('-')?;
        let from_us = whole_number(from.split_whitespace().next_back()?)?;
        let to_us = whole_number(to)?;
        let bucket = |count| ReportedBucket {
            from_ns: from_us.saturating_mul(1_000),
            to_ns: Some(to_us.saturating_mul(1_000)),
            count,
        };
        let mut columns = counts.split(')').map(|column| {
            let (count, percent) = column.split_once('(').unwrap_or((column, ""));
            (whole_number(count), number(percent.trim().trim_end_matches('%')))
        });
        let (read, read_percent) = columns.next()?;
        let (written, write_percent) = columns.next().unwrap_or_default();
        self.reads.push(bucket(read?));
        self.writes.extend(written.map(bucket));
        self.rows.push((line, [read_percent, write_percent]));
        Some(())
    }

    /// Whether there is no row.
    pub(super) fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// Whether the percentages, which add up from row to row, are what the counts make, to the last one of 100.
    pub(super) fn check(&self, source: &Source) -> Result<(), ImportError> {
        let total =
            |buckets: &[ReportedBucket]| buckets.iter().fold(0_u64, |sum, bucket| sum.saturating_add(bucket.count));
        for (column, buckets) in [&self.reads, &self.writes].into_iter().enumerate() {
            let all = total(buckets);
            let mut so_far = 0_u64;
            for (bucket, (line, percents)) in buckets.iter().zip(&self.rows) {
                so_far = so_far.saturating_add(bucket.count);
                let Some(percent) = percents.get(column).copied().flatten() else { continue };
                let made = if all == 0 { 0.0 } else { so_far as f64 * 100.0 / all as f64 };
                if (made - percent).abs() > PERCENT_OFF {
                    let what = format!(
                        "{percent:.2} % stands here, but the counts make {made:.2} %: rows of the histogram are missing or \
                         wrong"
                    );
                    return Err(ImportError::damaged(source, *line, what));
                }
            }
        }
        Ok(())
    }
}
