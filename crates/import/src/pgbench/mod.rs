//! pgbench: what it prints, and the logs that it writes with `--log`.

pub(super) mod aggregate;
mod figures;
mod progress;
pub(super) mod summary;
#[cfg(test)]
mod tests;
pub(super) mod transactions;

/// What a log of transactions leaves out.
const ONE_THREAD: &str =
    "pgbench writes one log for each of its threads (`-j`): this one holds the transactions of a single thread.";
/// Seconds since 1970 that a benchmark of a database can have: 2001 to 2286.
const EPOCH_S: std::ops::Range<u64> = 1_000_000_000..10_000_000_000;

/// The whole numbers of a line; nothing if it holds anything else.
fn numbers(line: &str) -> Option<Vec<u64>> {
    line.split_ascii_whitespace().take(32).map(|word| word.parse().ok()).collect()
}
