//! What a summary of pgbench says of the whole run, or of one of its scripts.

use crate::draft::whole;
use crate::numbers::{number, whole_number};
use crate::percentiles::{ms, sum_of_mean};
use model::record::{Histogram, OperationStats};

/// The count of transactions that were too late to be begun.
pub(super) const SKIPPED: &str = "number of transactions skipped";

/// Figures of the whole run, or of one of its scripts.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// Of a script.
    pub name: String,
    /// Transactions that were processed.
    pub count: Option<u64>,
    /// Those that failed.
    pub failed: Option<u64>,
    /// Their mean.
    pub latency_ms: Option<f64>,
    /// Failed transactions are in the mean.
    pub with_failures: bool,
    /// `count` may hold those that were skipped, as that of a script did before version 15.
    pub with_skipped: bool,
    /// The rest, by its names.
    pub reported: Vec<(String, &'static str, f64)>,
    /// Mean time by which transactions began late, with a rate limit; the latency includes it.
    pub lag_ms: Option<f64>,
}

impl Figures {
    /// Nothing if it does not report how many there were. With a rate limit (`limited`) the latency begins when a transaction was
    /// due, and without the lag nobody knows when it was sent.
    pub fn operation(&self, kind: &str, limited: bool) -> Option<OperationStats> {
        let skipped = self.reported.iter().find(|(name, ..)| self.with_skipped && name == SKIPPED);
        let count = self.count?.saturating_sub(skipped.and_then(|(.., skipped)| whole(*skipped)).unwrap_or(0));
        let mean_ms = self.latency_ms.filter(|_| !self.with_failures);
        let total_ns = mean_ms.and_then(ms).and_then(|_| sum_of_mean(mean_ms? * 1e6, count));
        let response = Histogram::counted(count, total_ns);
        let service = match self.lag_ms {
            Some(lag_ms) => {
                Histogram::counted(count, mean_ms.and_then(|mean| sum_of_mean((mean - lag_ms) * 1e6, count)))
            }
            None if limited => Histogram::counted(count, None),
            None => response.clone(),
        };
        let errors = self.failed.unwrap_or(0);
        Some(OperationStats {
            kind: kind.to_owned(),
            count: count.saturating_add(errors),
            errors,
            block_touches: 0,
            service,
            response,
            transactions: None,
        })
    }
}

/// `1000 transactions (50.0% of total, tps = 123.4)`.
pub(super) fn words_of_script(text: &str) -> Option<(u64, &str, &str)> {
    let (count, rest) = text.split_once(' ')?;
    let (what, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((whole_number(count)?, what, rest))
}

/// The rate in `1000 transactions (50.0% of total, tps = 123.4)` or `1000 (tps = 123.4)`.
pub(super) fn rate_of_script(text: &str) -> Option<(String, &'static str, f64)> {
    let (_, tps) = text.rsplit_once("tps = ")?;
    Some(("tps".to_owned(), "/s", number(tps.trim_end_matches([')', ' ']))?))
}
