//! The latency that a load must not exceed.

use std::fmt;
use std::str::FromStr;

use super::SINGLE_BLOCK_READ;
use crate::record::{Histogram, Step};
use crate::units::{Nanos, UnitError};

/// A limit on one quantile of one wait event. Parsed from `p99=5ms`, or `log file sync:p99.9=20ms` for another event.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyTarget {
    /// Wait event.
    pub event: String,
    /// 0 to 1, both excluded.
    pub quantile: f64,
    /// Longest duration that still meets the target.
    pub limit: Nanos,
}

/// Waits that should lie beyond a quantile before it means anything.
const WAITS_BEYOND: f64 = 10.0;

impl LatencyTarget {
    /// The quantile as users write it: `p99`, `p99.9`.
    pub fn quantile_name(&self) -> String {
        // Rounded, because 0.999 * 100 is 99.9 only nearly.
        format!("p{}", (self.quantile * 1e6).round() / 1e4)
    }

    /// The step's value of the quantile; absent if the event did not happen.
    pub fn value(&self, step: &Step) -> Option<Nanos> {
        self.waits(step).and_then(|waits| waits.quantile_ns(self.quantile)).map(Nanos)
    }

    /// Whether the step meets the target; absent if the event did not happen.
    pub fn is_met(&self, step: &Step) -> Option<bool> {
        self.value(step).map(|value| value <= self.limit)
    }

    /// Waits that the step should have for the quantile to mean anything, if it has fewer.
    pub fn waits_wanted(&self, step: &Step) -> Option<u64> {
        let wanted = (WAITS_BEYOND / (1.0 - self.quantile)).round() as u64;
        (self.waits(step)?.count() < wanted).then_some(wanted)
    }

    fn waits<'a>(&self, step: &'a Step) -> Option<&'a Histogram> {
        super::wait(step, &self.event).map(|wait| &wait.waits)
    }
}

/// 99 of 100 single-block reads within 5 ms.
impl Default for LatencyTarget {
    fn default() -> Self {
        Self { event: SINGLE_BLOCK_READ.to_owned(), quantile: 0.99, limit: Nanos::millis(5) }
    }
}

impl fmt::Display for LatencyTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of `{}` within {}", self.quantile_name(), self.event, self.limit)
    }
}

impl FromStr for LatencyTarget {
    type Err = UnitError;

    fn from_str(input: &str) -> Result<Self, Self::Err> {
        let fail = |reason| UnitError {
            input: input.to_owned(),
            wanted: "a latency target such as `p99=5ms` or `log file sync:p99.9=20ms`",
            reason,
        };
        let (event, rest) = match input.rsplit_once(':') {
            Some((event, rest)) => (event.trim(), rest),
            None => (SINGLE_BLOCK_READ, input),
        };
        if event.is_empty() {
            return Err(fail("the event before `:` is missing"));
        }
        let (quantile, limit) = rest.split_once('=').ok_or_else(|| fail("there is no `=`"))?;
        let percentile: f64 = quantile
            .trim()
            .strip_prefix(['p', 'P'])
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| fail("what stands before `=` is not `p` and a number"))?;
        if !(percentile > 0.0 && percentile < 100.0) {
            return Err(fail("the percentile is not between 0 and 100"));
        }
        let limit: Nanos = limit.parse()?;
        if limit == Nanos(0) {
            return Err(fail("no wait is shorter than zero"));
        }
        Ok(Self { event: event.to_owned(), quantile: percentile / 100.0, limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_users_write() {
        assert_eq!("p99=5ms".parse(), Ok(LatencyTarget::default()));
        let commit: LatencyTarget = "log file sync : p99.9 = 20ms".parse().unwrap();
        assert_eq!((commit.event.as_str(), commit.limit), ("log file sync", Nanos::millis(20)));
        assert_eq!(commit.to_string(), "p99.9 of `log file sync` within 20.0 ms");
        assert_eq!("p99.99=1s".parse::<LatencyTarget>().unwrap().quantile_name(), "p99.99");
    }

    #[test]
    fn refuses_what_is_not_a_target() {
        for text in ["", "p99", "99=5ms", "p0=5ms", "p100=5ms", "pNaN=5ms", "p99=fast", "p99=0", ":p99=5ms", "p=1ms"] {
            assert!(text.parse::<LatencyTarget>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics_on_any_text(text in ".*") {
            let _ = text.parse::<LatencyTarget>();
        }
    }
}
