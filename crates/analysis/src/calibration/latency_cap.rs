//! The latency that a calibration must not exceed.

use std::fmt;
use std::str::FromStr;

use crate::LatencyTarget;
use model::record::Histogram;
use model::units::{Nanos, UnitError};

/// Which latency is held against the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Statistic {
    /// The mean, as CALIBRATE_IO does.
    Mean,
    /// A quantile, 0 to 1, both excluded.
    Quantile(f64),
}

/// A limit of the latency of reads: `10ms` or `mean=10ms` for their mean, `p99=10ms` for a quantile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyCap {
    /// Which latency.
    pub statistic: Statistic,
    /// The most that it may be.
    pub limit: Nanos,
}

impl LatencyCap {
    /// The latency in nanoseconds that is held against the limit; absent where nothing was read.
    pub fn value_ns(&self, times: &Histogram) -> Option<f64> {
        match self.statistic {
            Statistic::Mean => times.mean_ns(),
            Statistic::Quantile(quantile) => times.quantile_ns(quantile).map(|ns| ns as f64),
        }
    }

    /// Whether so many nanoseconds are within the limit.
    pub fn is_kept_by(&self, ns: f64) -> bool {
        ns <= self.limit.0 as f64
    }

    /// The statistic as users write it.
    pub fn name(&self) -> String {
        match self.statistic {
            Statistic::Mean => "mean".to_owned(),
            Statistic::Quantile(quantile) => {
                LatencyTarget { subject: None, quantile, limit: self.limit }.quantile_name()
            }
        }
    }
}

impl Default for LatencyCap {
    fn default() -> Self {
        Self { statistic: Statistic::Mean, limit: Nanos::millis(10) }
    }
}

impl FromStr for LatencyCap {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = |reason| UnitError {
            input: text.to_owned(),
            wanted: "a latency limit such as `10ms` (mean) or `p99=10ms`",
            reason,
        };
        let trimmed = text.trim();
        let cap = match trimmed.split_once('=') {
            None => Self { statistic: Statistic::Mean, limit: trimmed.parse()? },
            Some((name, limit)) if name.trim().eq_ignore_ascii_case("mean") => {
                Self { statistic: Statistic::Mean, limit: limit.trim().parse()? }
            }
            Some(_) => {
                let LatencyTarget { subject, quantile, limit } = trimmed.parse()?;
                if subject.is_some() {
                    return Err(bad("only the latency of the reads themselves is judged"));
                }
                Self { statistic: Statistic::Quantile(quantile), limit }
            }
        };
        if cap.limit == Nanos(0) { Err(bad("no request takes no time")) } else { Ok(cap) }
    }
}

/// Written so that it is read back to the nanosecond.
impl fmt::Display for LatencyCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Nanos(ns) = self.limit;
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
        let (scale, unit) = units.into_iter().find(|(scale, _)| ns.is_multiple_of(*scale)).unwrap_or((1, "ns"));
        write!(f, "{}={}{unit}", self.name(), ns / scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_written_exactly() {
        for (text, written) in [
            ("10ms", "mean=10ms"),
            ("mean=1500us", "mean=1500us"),
            (" p99=10ms ", "p99=10ms"),
            ("p99.9=2s", "p99.9=2s"),
            ("1.5ms", "mean=1500us"),
        ] {
            let cap: LatencyCap = text.parse().unwrap();
            assert_eq!(cap.to_string(), written);
            assert_eq!(written.parse(), Ok(cap));
        }
        for text in ["", "0ms", "fast", "log file sync:p99=10ms", "p0=1ms", "mean=", "-1ms"] {
            assert!(text.parse::<LatencyCap>().is_err(), "{text}");
        }
    }
}
