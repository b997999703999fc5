//! The lines that `pgbench --progress` prints while it runs.

use crate::draft::{count_of, whole};
use crate::interval::{self, seconds_ns};
use crate::numbers::ungrouped as number;
use model::record::{Histogram, Step};

/// Seconds since 1970 rather than since the run began: `--progress-timestamp`.
const EPOCH_S: f64 = 1e9;

/// One line of progress.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Progress {
    /// When the interval ended, in seconds since the run began or since 1970.
    pub at_s: f64,
    /// Name and value of each figure; times in milliseconds.
    pub figures: Vec<(&'static str, f64)>,
}

impl Progress {
    /// Whether transactions were begun at a rate (`--rate`), some of them late.
    pub fn is_limited(&self) -> bool {
        self.figures.iter().any(|(name, _)| *name == "lag")
    }
}

/// What a line of progress says, after `progress:`; nothing if it is none.
///
/// `5.0 s, 7.0 tps, lat 4.5 ms stddev 1.2, 0 failed, lag 0.1 ms, 3 skipped, 1 retried, 2 retries`
pub(super) fn parse(text: &str) -> Option<Progress> {
    let mut parts = text.split(", ").take(12).map(str::trim);
    let at_s = number(parts.next()?.strip_suffix('s')?)?;
    let tps = number(parts.next()?.strip_suffix("tps")?)?;
    let mut figures = vec![("tps", tps)];
    for part in parts {
        let words: Vec<&str> = part.split_whitespace().take(6).collect();
        match words[..] {
            ["lat", latency, "ms", "stddev", deviation, ..] => {
                figures.extend(number(latency).map(|latency| ("lat", latency)));
                figures.extend(number(deviation).map(|deviation| ("stddev", deviation)));
            }
            ["lat", latency, "ms"] => figures.extend(number(latency).map(|latency| ("lat", latency))),
            ["lag", lag, "ms"] => figures.extend(number(lag).map(|lag| ("lag", lag))),
            [count, what] => {
                let name = ["failed", "skipped", "retried", "retries"].into_iter().find(|name| *name == what);
                figures.extend(name.zip(number(count)));
            }
            _ => {}
        }
    }
    Some(Progress { at_s, figures })
}

/// Whether the times are those of a clock.
pub(super) fn is_epoch(lines: &[Progress]) -> bool {
    lines.first().is_some_and(|first| first.at_s >= EPOCH_S)
}

/// When load began, in seconds of the same clock: 0, or an interval before the first line. Its length is that of the second.
pub(super) fn began_s(lines: &[Progress]) -> Option<f64> {
    match lines {
        [first, second, ..] if is_epoch(lines) => Some(first.at_s - (second.at_s - first.at_s).max(0.0)),
        _ if is_epoch(lines) => None,
        _ => Some(0.0),
    }
}

/// Makes the intervals of a step. Counts are rates times the length of the interval, rounded.
pub(super) fn fill(step: &mut Step, lines: &[Progress]) {
    let began_s = began_s(lines).or(lines.first().map(|first| first.at_s)).unwrap_or(0.0);
    let mut before_s = began_s;
    for line in lines {
        let length_ns = seconds_ns(line.at_s - before_s);
        let mut interval = interval::of(step, seconds_ns(before_s - began_s), length_ns);
        before_s = line.at_s;
        interval.reported = line.figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let of = |name: &str| interval.reported.get(name).copied();
        let count = of("tps").and_then(|tps| count_of(tps, length_ns)).filter(|_| length_ns > 0);
        interval.counters.operations = count;
        interval.counters.errors = of("failed").and_then(whole);
        if let Some(count) = count {
            interval.response = Histogram::counted(count, of("lat").and_then(|ms| whole(ms * 1e6 * count as f64)));
        }
        step.intervals.push(interval);
    }
}
